#!/bin/sh
# SPDX-License-Identifier: MIT
# Install the Debian packages that building or testing ftr needs, as far as they are missing.
#
#   sh tools/packages.sh build     to build libftr.so, the tools and the package
#   sh tools/packages.sh test      to run tests/run.sh too
#
# This is the only list of them.
set -eu

build='cmake ninja-build gcc libc6-dev pkg-config libzydis-dev libiberty-dev file dpkg-dev'
test="$build g++ clang libclang-rt-14-dev libcriterion-dev python3 binutils elfutils gdb valgrind
libunwind-dev libgtest-dev systemtap-sdt-dev procps perl python3.11 lua5.4 sqlite3 git tcl make gcc-aarch64-linux-gnu
g++-aarch64-linux-gnu gcc-powerpc64le-linux-gnu g++-powerpc64le-linux-gnu qemu-user qemu-user-static
apache2-utils busybox bzip2 curl gawk nginx-light nodejs openssl php-cli postgresql redis-server
rsync ruby vim xz-utils zstd"
servers='nginx postgresql redis-server' # which tests start by themselves

case "${1:-}" in
build) wanted=$build ;;
test) wanted=$test ;;
*)
	echo 'usage: packages.sh build|test' >&2
	exit 2
	;;
esac

missing=
for package in $wanted; do
	state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || state=
	[ "$state" = installed ] || missing="$missing $package"
done
if [ -z "$missing" ]; then
	echo "packages: all of what a $1 needs is installed"
	exit 0
fi

if ! command -v apt-get >/dev/null; then
	echo "packages: this is no Debian system (no apt-get); install yourself:$missing" >&2
	exit 1
fi
as_root=
if [ "$(id -u)" != 0 ]; then
	if ! command -v sudo >/dev/null; then
		echo "packages: must be root, or have sudo, to install:$missing" >&2
		exit 1
	fi
	as_root=sudo
fi
echo "packages: installing$missing"
export DEBIAN_FRONTEND=noninteractive

# No server of a package is started: invoke-rc.d(8) asks this script, unless there is one already.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
	printf '#!/bin/sh\nexit 101\n' | $as_root tee $policy >/dev/null
	$as_root chmod 755 $policy
	trap '$as_root rm -f $policy' EXIT
fi
$as_root apt-get -q update
# shellcheck disable=SC2086 # words
$as_root apt-get -q install -y --no-install-recommends $missing

# Nor is it when the machine starts again.
for server in $servers; do
	case " $missing " in
	*" $server "* | *" $server-light "*)
		[ ! -d /run/systemd/system ] || $as_root systemctl -q disable --now "$server" || :
		;;
	esac
done

#!/bin/sh
# SPDX-License-Identifier: MIT
# Make a sysroot for another CPU from Debian's packages.
#
#   sh tools/sysroot.sh arm64|powerpc DIR
#
# DIR is then what --sysroot of a cross compiler and -L of qemu-user want: libc, the runtimes of C
# and C++, and the libraries that ftr and its tests are linked with (Criterion where Debian has it). Lists, archives and the
# (empty) package state are apt's own, below DIR.apt: the machine's are neither used nor changed.
# apt verifies what it downloads, and nothing is downloaded twice. A directory made by this version
# of this script is left as it is, without asking the network.
set -eu

packages='libc6-dev libgcc-12-dev libstdc++-12-dev libiberty-dev libunwind-dev zlib1g-dev libzydis-dev
	libgtest-dev'
mirror=http://deb.debian.org/debian
suite=bookworm

usage() {
	echo 'usage: sysroot.sh arm64|powerpc DIR' >&2
	exit 2
}

stop() {
	echo "sysroot: $1" >&2
	exit 1
}

[ $# = 2 ] || usage
case $1 in
arm64)
	architecture=arm64 triplet=aarch64-linux-gnu
	packages="$packages libcriterion-dev"
	;;
powerpc) architecture=ppc64el triplet=powerpc64le-linux-gnu ;;
*) usage ;;
esac
dir=$2
version="$architecture $(cksum <"$0")"

# The stamp is written last.
is_ready() {
	[ "$(cat "$dir/.ready" 2>/dev/null)" = "$version" ] && [ -e "$dir/usr/lib/$triplet/libc.so.6" ]
}

if is_ready; then
	exit 0
fi
for tool in apt-get dpkg-deb flock; do
	command -v $tool >/dev/null || stop "no $tool: the packages cannot be fetched; make $dir yourself"
done

mkdir -p "$dir.apt"
apt=$(cd "$dir.apt" && pwd)
exec 9>"$apt/lock"
flock 9
if is_ready; then
	exit 0 # made by another while this one waited
fi

mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
: >"$apt/status"
echo "deb $mirror $suite main" >"$apt/sources.list"
fetch() {
	apt-get -q -o "APT::Architecture=$architecture" -o "APT::Architectures::=$architecture" \
		-o "Dir::Etc::SourceList=$apt/sources.list" -o 'Dir::Etc::SourceParts=-' \
		-o "Dir::State=$apt" -o "Dir::State::Lists=$apt/lists" -o "Dir::State::status=$apt/status" \
		-o "Dir::Cache=$apt/cache" -o 'APT::Sandbox::User=' -o 'Debug::NoLocking=true' \
		-o 'APT::Install-Recommends=false' -o 'Acquire::Retries=3' "$@" >"$apt/log" 2>&1 || {
		tail -n 5 "$apt/log" >&2
		stop "cannot fetch Debian's packages for $architecture"
	}
}
echo "sysroot: $dir: packages of $suite for $architecture"
fetch update
# With nothing installed and nothing in a cache these are the packages and all they depend on.
mkdir -p "$apt/none/partial"
# shellcheck disable=SC2086 # words
fetch install -y --print-uris -o "Dir::Cache::archives=$apt/none" $packages
archives=$(sed -n "s/^'[^']*' \([^ ]*\.deb\) .*/\1/p" "$apt/log")
[ -n "$archives" ] || stop "apt names no packages; see $apt/log"
# shellcheck disable=SC2086 # words
fetch install -y --download-only $packages

# Every package in place of an older sysroot; directories of /usr are those of /.
rm -rf "$dir" "$dir.new"
mkdir -p "$dir.new/usr"
for name in lib lib64 bin sbin; do
	mkdir "$dir.new/usr/$name"
	ln -s "usr/$name" "$dir.new/$name"
done
for archive in $archives; do
	dpkg-deb --fsys-tarfile "$apt/cache/archives/$archive" |
		tar -x --keep-directory-symlink -C "$dir.new" || stop "cannot unpack $archive"
done

# Absolute links lead out of the sysroot.
find "$dir.new" -type l -lname '/*' | while read -r link; do
	ln -snfr "$dir.new$(readlink "$link")" "$link"
done
# So do the absolute names in linker scripts, in the eyes of linkers that are told no sysroot.
find "$dir.new/usr/lib/$triplet" -maxdepth 1 -name '*.so' -type f -size -4k | while read -r script; do
	if grep -q '^ *GROUP *(' "$script"; then
		sed -i "s|/usr/lib/$triplet/||g; s|/lib64/||g; s|/lib/$triplet/||g; s|/lib/ld-|ld-|g" "$script"
	fi
done
echo "$version" >"$dir.new/.ready"
mv "$dir.new" "$dir"

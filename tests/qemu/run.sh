#!/bin/sh
# SPDX-License-Identifier: MIT
# Run a program of another CPU under qemu-user, as if this machine had that CPU.
#
#   run.sh arm64|powerpc SYSROOT [qemu's options] PROGRAM [argument...]
#
# What the program starts by execve(2) runs too where the kernel lets a user name an interpreter for
# it: /proc/sys/fs/binfmt_misc/ftr (in a user namespace, Linux 6.7). QEMU_CPU chooses the model.
# FTR_QEMU is a program to run instead of the usual qemu, which is a static one if there is one, so
# that the LD_PRELOAD of an emulated program is not its own.
set -eu

# The handlers' names, magic numbers and masks are those of qemu's scripts/qemu-binfmt-conf.sh.
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00'
case $1 in
arm64)
	qemu=qemu-aarch64 model=max,pauth-impdef=on machine='\xb7\x00'
	mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
	;;
powerpc)
	qemu=qemu-ppc64le model=power10 machine='\x15\x00'
	mask='\xff\xff\xff\xff\xff\xff\xff\xfc\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\x00'
	;;
*)
	echo "run.sh: no CPU $1" >&2
	exit 2
	;;
esac
export QEMU_LD_PREFIX="$2"
export QEMU_CPU="${QEMU_CPU:-$model}"
shift 2
found=${FTR_QEMU:-$(command -v $qemu-static || command -v $qemu)} || {
	echo "SKIP: needs $qemu" >&2
	exit 77
}
unset FTR_QEMU

handler=":ftr:M::$magic$machine:$mask:$found:FP"
if unshare --user --map-root-user --mount true 2>/dev/null; then
	# shellcheck disable=SC2016 # for the inner shell
	exec unshare --user --map-root-user --mount sh -c '
		if mount -t binfmt_misc none /proc/sys/fs/binfmt_misc; then
			printf %s "$1" >/proc/sys/fs/binfmt_misc/register
		fi 2>/dev/null
		shift
		exec "$@"' sh "$handler" "$found" "$@"
fi
exec "$found" "$@"

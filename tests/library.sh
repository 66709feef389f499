#!/bin/sh
# SPDX-License-Identifier: MIT
# libftr.so exports nothing but ftr_*; it needs only libc and Zydis, and of libc only the loader,
# on_exit, errno and __register_atfork; it has no text relocations, no writable code and no
# executable stack, and is initialised first.
#   sh tests/library.sh PATH/libftr.so
set -eu
library=$1
failed=0
fail() {
	echo "FAIL: $1"
	failed=1
}

names=$(nm -D --defined-only "$library" | awk '{ print $3 }' | grep -v '^ftr_' |
	tr '\n' ' ') || :
[ -z "$names" ] || fail "exports $names"

needed=$(readelf -dW "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
	grep -v -e '^libc\.so\.6$' -e '^libZydis\.so' -e '^ld-linux' -e '^ld64' | tr '\n' ' ') || :
[ -z "$needed" ] || fail "needs $needed"

# From __stack_chk_ on: what comes with every shared object.
used=$(nm -D --undefined-only "$library" | awk '{ sub(/@.*/, "", $2); print $2 }' |
	grep -v -e '^dl' -e '^_dl' -e '^on_exit$' -e '^__errno_location$' -e '^__register_atfork$' \
		-e '^Zydis' -e '^__tls_get_addr$' -e '^__[atm]san_init$' \
		-e '^__stack_chk_' -e '^__cxa_finalize$' -e '^__gmon_start__$' -e '^_ITM_' |
	tr '\n' ' ') || :
[ -z "$used" ] || fail "uses $used"

dynamic=$(readelf -dW "$library")
case $dynamic in *TEXTREL*) fail 'has text relocations' ;; esac
case $dynamic in *INITFIRST*) ;; *) fail 'is not initialised first' ;; esac

segments=$(readelf -lW "$library")
if echo "$segments" | grep -q 'LOAD.*RWE'; then fail 'has a writable and executable segment'; fi
if echo "$segments" | grep -q 'GNU_STACK.*RWE'; then fail 'wants an executable stack'; fi

[ $failed = 0 ] && echo "ok: $library"
exit $failed

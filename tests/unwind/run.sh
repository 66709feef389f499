#!/bin/sh
# SPDX-License-Identifier: MIT
# Unwinding through traced functions: sh tests/unwind/run.sh BUILDDIR [CASE-PATTERN]
# Every program is run untraced and traced, and what an unwinder sees is compared frame by frame,
# leaving out the return points, whose symbols hold "@ftr". A build for another CPU runs under qemu-user:
# call stacks seen from inside, and exceptions. Ends with the numbers of all cases.

[ "$1" = --build ] && shift
build=$(cd "${1:-build}" && pwd) || exit 2
pattern=${2:-*}
source=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 2
passed=0 failed=0 skipped=0
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
mkdir bin out
ulimit -c 0

cc=${CC:-gcc} cxx=${CXX:-g++} clangxx=clang++ report=$build/ftr-report emulator= set_env=
# Another CPU: what cannot be done under qemu-user is left out.
if [ -f "$build/machine.json" ]; then
	field() { sed -n "s/.*\"$1\": \"\([^\"]*\)\".*/\1/p" "$build/machine.json"; }
	triplet=$(field triplet) sysroot=$(field sysroot) report=$(field report)
	cc="$triplet-gcc --sysroot=$sysroot" cxx="$triplet-g++ --sysroot=$sysroot"
	clangxx="clang++ --target=$triplet --sysroot=$sysroot"
	emulator="sh $source/../qemu/run.sh $(field cpu) $sysroot" set_env=-E
elif [ "$(uname -m)" != x86_64 ]; then
	echo "SKIP: not x86_64"
	exit 77
fi
[ -f "$build/libftr.so" ] || { echo "SKIP: no libftr.so"; exit 77; }

pass() { passed=$((passed + 1)); }
fail() { failed=$((failed + 1)); echo "FAIL $1: $2"; }
skip() {
	wanted_any "$1" || return 0
	skipped=$((skipped + 1))
	echo "SKIP $1: $2"
}

wanted() {
	case $1 in
	$pattern) return 0 ;;
	*) return 1 ;;
	esac
}

settings="count: profile: count:* profile:*"
[ ! "$emulator" ] || settings="count: profile:*"

# Is a case of this name wanted, in any setting?
wanted_any() {
	set -f
	for setting in "" $settings; do
		if wanted "$1${setting:+-$setting}"; then
			set +f
			return 0
		fi
	done
	set +f
	return 1
}

# traced MODE MODULES COMMAND...: runs it with tracing, its data in data/
traced() {
	mode=$1 modules=$2
	shift 2
	rm -rf data
	env FTR_DATA="$work/data" FTR_MODE="$mode" ${modules:+FTR_MODULES="$modules"} \
		$emulator $set_env LD_PRELOAD="$preload$build/libftr.so" "$@"
}

# untraced COMMAND...
untraced() {
	env $emulator ${preload:+$set_env LD_PRELOAD="${preload%:}"} "$@"
}

# compare CASE EXPECTED FOUND: the same but for return points, of which there must be at least 8
compare() {
	grep -v @ftr "$3" >"$3.plain"
	if ! cmp -s "$2" "$3.plain"; then
		fail "$1" "other frames than untraced"
		diff "$2" "$3.plain" | head -20
	elif [ "$(grep -c @ftr "$3")" -lt "${4:-8}" ]; then
		fail "$1" "only $(grep -c @ftr "$3") return points are seen"
	else
		pass
	fi
}

# each_setting FUNCTION CASE ARGUMENT: FUNCTION MODE MODULES CASE-SETTING ARGUMENT in all of them
each_setting() {
	set -f
	for setting in $settings; do
		set +f
		case_name=$2-$setting
		wanted "$case_name" && $1 "${setting%%:*}" "${setting#*:}" "$case_name" "$3"
	done
	set +f
}

# ---- call stacks seen from inside ----

preload=
if ! $cc -O2 -g -rdynamic "$source/chain.c" -o bin/chain -lunwind -pthread || [ ! "$emulator" ] &&
	! $cc -O2 "$source/remote.c" -o bin/remote -lunwind-ptrace -lunwind-x86_64 -lunwind; then
	skip chain "libunwind's headers are missing"
	have_chain=
else
	have_chain=1
fi

inside() {
	untraced bin/chain "$4" >out/expected 2>/dev/null || {
		skip "$3" "this system does not unwind it untraced"
		return
	}
	traced "$1" "$2" bin/chain "$4" >out/found || fail "$3" "exit status $?"
	compare "$3" out/expected out/found
}

for how in ${have_chain:+backtrace unwind libunwind signal thread}; do
	each_setting inside "chain-$how" "$how"
done

# A thread that waits is cancelled in a signal's handler. qemu-ppc64le has handlers return by other
# instructions than unwinders know, so that none passes.
cancelled=1
if [ "$have_chain" ] && ! { untraced bin/chain signal | grep -q leaf; } 2>/dev/null; then
	cancelled=
	skip exceptions-cancelled "this system does not unwind signal frames untraced"
fi

# ---- seen from outside ----

# start COMMAND...: its process is $pid, and it waits
start() {
	rm -f ready
	mkfifo ready
	"$@" >ready &
	pid=$!
	read -r _ <ready
	# It has not yet left write(2), perhaps: nothing else that it does makes it sleep.
	until grep -q '^State:.S' "/proc/$pid/status" 2>/dev/null; do
		kill -0 "$pid" || return
		sleep 0.01
	done
}

stop() {
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
}

# The program is started by exec in a subshell, so that $! is its own id.
start_untraced() {
	start sh -c 'exec bin/chain wait'
}

start_traced() {
	rm -rf data
	mode=$1 modules=$2
	start env LD_PRELOAD="$build/libftr.so" FTR_DATA="$work/data" FTR_MODE="$mode" \
		${modules:+FTR_MODULES="$modules"} bin/chain wait
}

see_remote() { bin/remote "$1"; }
see_elfutils() { eu-stack -p "$1" | sed -n 's/^#[0-9]* *0x[0-9a-f]* *//p' | sed 's/ - .*//'; }
# qsort has no frame: it jumps to another function. gdb makes one up from the instruction at the return
# address, where that is not a return point.
see_gdb() { gdb -nx -batch -p "$1" -ex bt 2>/dev/null | frames | grep -v qsort$; }

# gdb's frame lines -> names
frames() { sed -nE 's/^#[0-9]+ +(0x[0-9a-f]+ in )?([^ ]+).*/\2/p'; }

outside() {
	start_untraced
	"$4" "$pid" >out/expected
	stop
	start_traced "$1" "$2"
	"$4" "$pid" >out/found
	stop
	[ -s out/expected ] || fail "$3" "nothing is seen of the untraced program"
	compare "$3" out/expected out/found
}

[ ! "$emulator" ] || have_chain=
if [ "$have_chain" ]; then
	each_setting outside ptrace see_remote
	if command -v eu-stack >/dev/null; then
		each_setting outside elfutils see_elfutils
	else
		skip elfutils "no eu-stack"
	fi
	if command -v gdb >/dev/null; then
		each_setting outside gdb-attach see_gdb
	else
		skip gdb "no gdb"
	fi
fi

# ---- gdb's commands ----

# up and down find the callers; finish ends in each of them, next goes on in them.
gdb_commands() { # COUNT ENVIRONMENT...
	count=$1
	shift
	set -- "$@" -ex run
	for command in up finish; do
		[ $command = finish ] && set -- "$@" -ex "frame 0"
		for _ in $(seq "$count"); do
			set -- "$@" -ex $command
			[ $command = finish ] && set -- "$@" -ex "bt 1"
		done
	done
	gdb -nx -batch -iex "set debuginfod enabled off" -ex "set startup-with-shell off" "$@" \
		--args bin/chain trap 2>/dev/null | frames | uniq
}

gdb_case() {
	gdb_commands 6 >out/expected
	rm -rf data
	gdb_commands 12 -ex "set environment LD_PRELOAD=$build/libftr.so" \
		-ex "set environment FTR_DATA=$work/data" -ex "set environment FTR_MODE=$1" \
		${2:+-ex "set environment FTR_MODULES=$2"} >out/all
	grep -v @ftr out/all | uniq >out/plain
	grep @ftr out/all >out/points
	cat out/plain out/points >out/found
	compare "$3" out/expected out/found
}

if [ "$have_chain" ] && command -v gdb >/dev/null; then
	each_setting gdb_case gdb-commands
fi

# ---- exceptions ----

report() {
	"$report" --data data --format json
}

# check_counts CASE: the `expect:` lines of exceptions.cpp against the report, and those for `cancelled:`
check_counts() {
	report | python3 -c '
import json, re, sys
found = {f["name"]: f for f in json.load(sys.stdin)["functions"] if f["module"].startswith("'"$work"'")}
wrong = 0
for line in open(sys.argv[1]):
    m = re.match(r" \* (expect|cancelled): (.*?) (calls=.*)", line)
    if not m or (m[1] == "cancelled" and not sys.argv[3]):
        continue
    f = found.get(m[2])
    for field, value in re.findall(r"(\w+)=(\d+)", m[3]):
        if sys.argv[2] == "entry-only" and field != "calls":
            continue
        if not f or f[field] != int(value):
            print("  %s: %s=%s, must be %s" % (m[2], field, f and f[field], value))
            wrong = 1
sys.exit(wrong)' "$source/exceptions.cpp" "$2" "$cancelled" >out/counts || {
		fail "$1" "wrong numbers"
		head -5 out/counts
		return 1
	}
}

run_to() { # FILE COMMAND...: its output and exit status
	to=$1
	shift
	"$@" >"$to" 2>"$to.err"
	echo "status $?" >>"$to"
	grep -v '^ftr: ' "$to.err" >>"$to"
}

# exceptions PROGRAM KIND: KIND "counts": the numbers too; "plain": the behaviour alone
exceptions_case() {
	program=${4%:*} kind=${4#*:}
	for how in "" noexcept uncaught; do
		how_run=${how:-${cancelled:+cancelled}}
		run_to out/expected untraced "$program" $how_run
		run_to out/found traced "$1" "$2" "$program" $how_run
		if ! cmp -s out/expected out/found; then
			fail "$3${how:+-$how}" "other behaviour than untraced"
			diff out/expected out/found | head -5
			continue
		fi
		[ "$how" ] || [ "$kind" = plain ] || check_counts "$3" "$kind" || continue
		pass
	done
}

# build_exceptions NAME COMPILER FLAG...
build_exceptions() {
	name=$1 compiler=$2
	shift 2
	$cc -O2 -fexceptions -c "$source/callback.c" -o callback.o
	$compiler -w -g "$source/exceptions.cpp" callback.o -o "bin/$name" -pthread "$@" 2>out/build
}

exceptions() { # NAME KIND COMPILER FLAG...
	name=$1 kind=$2
	shift 2
	wanted_any "exceptions-$name" || return
	if build_exceptions "$name" "$@"; then
		each_setting exceptions_case "exceptions-$name" "bin/$name:$kind"
	else
		skip "exceptions-$name" "cannot be built here"
	fi
}

exceptions gcc counts $cxx -O2
exceptions gcc-O0 counts $cxx -O0
exceptions static-libgcc counts $cxx -O2 -static-libgcc -static-libstdc++
exceptions static-libgcc-stripped plain $cxx -O2 -static-libgcc -static-libstdc++ -s
if command -v clang++ >/dev/null; then
	exceptions clang counts "$clangxx" -O2
	# LIBCXX: where libc++ and its headers are, when they are not installed
	exceptions libc++ plain "$clangxx" -O2 -stdlib=libc++ \
		${LIBCXX:+-nostdinc++ -isystem "$LIBCXX/include/c++/v1" -L"$LIBCXX/lib"} \
		-rtlib=compiler-rt -unwindlib=none -l:libunwind.so.1
else
	skip exceptions-clang "no clang++"
	skip exceptions-libc++ "no clang++"
fi

# Other unwinders in libgcc's place.
# LLVM's cannot pass pthread_cancel (untraced neither): no numbers.
for other in nongnu:libunwind.so.8:counts llvm:libunwind.so.1:plain; do
	name=exceptions-with-${other%%:*} kind=${other##*:} library=${other#*:}
	library=${library%:*}
	file=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p |
		sed -n "s/.*[[:space:]]$library .*x86-64.* => //p" | head -1)
	[ ! "$emulator" ] || file=$(find "$sysroot/usr/lib/$triplet" -name "$library")
	wanted_any "$name" || continue
	if [ "$file" ] && build_exceptions preloaded $cxx -O2; then
		preload=$file:
		each_setting exceptions_case "exceptions-with-${other%%:*}" "bin/preloaded:$kind"
		preload=
	else
		skip "$name" "no $library"
	fi
done

# An unwinder inside a stripped program cannot be addressed: its functions are entry only.
if wanted hidden-unwinder; then
	if ! build_exceptions hidden $cxx -O2 -static-libgcc -static-libstdc++ -s; then
		skip hidden-unwinder "cannot be built here"
	elif traced count "" bin/hidden >/dev/null 2>&1
		"$report" --data data --all --skipped 2>/dev/null |
			grep -q hidden-unwinder; then
		pass
	else
		fail hidden-unwinder "is not reported"
	fi
fi

# ---- every instruction ----

step() { # CASE MODE FUNCTIONS ARGUMENT...
	name=$1 mode=$2 functions=$3
	shift 3
	wanted "$name" || return
	rm -rf data
	if env STEP_PRELOAD="$build/libftr.so" FTR_DATA="$work/data" FTR_MODE="$mode" \
		${functions:+FTR_FUNCTIONS="$functions"} bin/step 1500 bin/stepped "$@" >out/steps 2>out/wrong; then
		pass
		tail -1 out/steps
	else
		fail "$name" "a caller is not found at some instruction"
		grep FAIL out/steps
		head -12 out/wrong
	fi
}

if [ ! "$emulator" ] && $cc -O2 "$source/step.c" -o bin/step -lunwind-ptrace -lunwind-x86_64 -lunwind 2>/dev/null &&
	$cxx -O2 -w -fno-reorder-blocks-and-partition -I"$source/../../include" "$source/stepped.cpp" \
		-o bin/stepped -pthread \
		-Wl,-z,nostart-stop-gc; then
	for mode in count profile; do
		step "step-first-$mode" $mode '*normal*' first
		for call in normal nested twice tail tail_twice many_arguments entry_only floats \
			riprel push pushes call call_first jump endbr_jump nops short branch flags \
			jumps after_jump; do
			step "step-$call-$mode" $mode '' $call
		done
		for call in pushes after_jump; do
			step "step-hooked-$call-$mode" $mode '' hooked $call
		done
		# Exceptions, and all calls with handlers, take from minutes to hours: when asked for.
		[ "$pattern" = '*' ] && continue
		for call in throws catches rethrows forks thread; do
			step "step-$call-$mode" $mode '' $call
		done
		step "step-hooked-all-$mode" $mode '' hooked
	done
else
	skip step "cannot be built or run here"
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]

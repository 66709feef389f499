#!/bin/sh
# SPDX-License-Identifier: MIT
# ftr as a test library, the way its users have it: installed, and from there found by
# find_package() and by pkg-config; as a part of another project (FetchContent); linked as libftr.so
# and libftr.a, opened with dlopen (from Python), and preloaded. Also the example of ftr(3).
# Built for another CPU (a build directory with machine.json) it runs under qemu-user; what differs by
# the way that ftr is found, and Python, is left to this machine's own.
#   sh tests/harness/run.sh --build DIR [--keep]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
build=$source/build/dev
keep=no
while [ $# -gt 0 ]; do
	case $1 in
	--build) build=$2; shift ;;
	--keep) keep=yes ;;
	*) echo "usage: run.sh [--build DIR] [--keep]" >&2; exit 2 ;;
	esac
	shift
done

# The machine that it is built for and runs on: this one where cpu is empty.
cpu='' triplet='' sysroot='' report=''
value() {
	sed -n "s/.*\"$1\": \"\([^\"]*\)\".*/\1/p" "$build/machine.json"
}
if [ -e "$build/machine.json" ]; then
	cpu=$(value cpu) triplet=$(value triplet) sysroot=$(value sysroot) report=$(value report)
fi
emulate() {
	sh "$source/tests/qemu/run.sh" "$cpu" "$sysroot" "$@"
}
run() { # program, arguments ...
	if [ -n "$cpu" ]; then emulate "$@"; else "$@"; fi
}
preload() { # the same with $libftr
	if [ -n "$cpu" ]; then emulate -E "LD_PRELOAD=$libftr" "$@"; else LD_PRELOAD=$libftr "$@"; fi
}
compile() {
	if [ -n "$cpu" ]; then "$triplet-gcc" "--sysroot=$sysroot" "$@"; else cc "$@"; fi
}

scratch=$(mktemp -d)
end() {
	[ "$keep" = yes ] && echo "kept: $scratch" || rm -rf "$scratch"
}
trap end EXIT
prefix=$scratch/installed
failed=0

# Run a command; its output is shown when it fails.
step() { # what, command ...
	what=$1
	shift
	if "$@" >"$scratch/log" 2>&1; then
		echo "ok: $what"
	else
		echo "FAIL: $what"
		sed 's/^/    /' "$scratch/log"
		failed=1
	fi
}

project() { # where ftr comes from, cmake options ...
	from=$1
	shift
	cmake -G Ninja -S "$here" -B "$scratch/$from" -DFTR_FROM="$from" "$@" &&
		cmake --build "$scratch/$from" -j2 &&
		ctest --test-dir "$scratch/$from" --output-on-failure --no-tests=error
}

# The flags of a project are for its own code.
instrumented() {
	cmake -G Ninja -S "$here" -B "$scratch/instrumented" -DFTR_FROM=source -DFTR_SOURCE="$source" \
		-DCMAKE_C_FLAGS='-fsanitize=address --coverage' -DCMAKE_UNITY_BUILD=ON \
		-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON -DCMAKE_POLICY_DEFAULT_CMP0069=NEW &&
		cmake --build "$scratch/instrumented" -j2 --target ftr ftr_static &&
		sh "$source/tests/library.sh" "$scratch/instrumented/_deps/ftr-build/libftr.so"
}

# Debian's libraries are two levels below the prefix.
several_levels() {
	cmake -G Ninja -S "$source" -B "$scratch/levels" -DBUILD_TESTING=OFF \
		-DCMAKE_INSTALL_LIBDIR=lib/some-triplet &&
		[ "$(PKG_CONFIG_PATH=$scratch/levels pkg-config --variable=prefix ftr)" = \
			"$scratch/levels/../../.." ]
}

# Who links libftr.a without what it needs is told the name of the package.
no_zydis() {
	mkdir -p "$scratch/no_zydis" &&
		printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(no_zydis C)' \
			'set(CMAKE_FIND_USE_CMAKE_SYSTEM_PATH OFF)' \
			'set(CMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH OFF)' \
			'find_package(ftr REQUIRED)' 'add_executable(test test.c)' \
			'target_link_libraries(test ftr::ftr_static)' >"$scratch/no_zydis/CMakeLists.txt" &&
		echo 'int main(void) { return 0; }' >"$scratch/no_zydis/test.c"
	cmake -G Ninja -S "$scratch/no_zydis" -B "$scratch/no_zydis/build" \
		-Dftr_DIR="${libftr%/*}/cmake/ftr" >"$scratch/no_zydis/log" 2>&1 && return 1
	grep libzydis-dev "$scratch/no_zydis/log"
}

step install cmake --install "$build" --prefix "$prefix"
libftr=$(find "$prefix" -name libftr.so)
export LD_LIBRARY_PATH="${libftr%/*}" PKG_CONFIG_PATH="${libftr%/*}/pkgconfig"
kv=$scratch/package

# Criterion starts each test by an execve(2) of its own program.
why_no_criterion() {
	if ! ls "$sysroot/usr/lib/$triplet/pkgconfig/criterion.pc" >/dev/null 2>&1; then
		echo "Debian has no Criterion for $cpu"
	elif ! FTR_QEMU=$(command -v cat) emulate /proc/sys/fs/binfmt_misc/ftr >/dev/null 2>&1; then
		echo 'Criterion needs execve(2), and the kernel has no binfmt_misc in user namespaces'
	fi
}

# The stand-in of the unit tests, found as Criterion would be.
stand_in() {
	standin=$source/tests/unit/standin
	mkdir -p "$scratch/standin" &&
		compile -g -c -I"$standin" -o "$scratch/standin/standin.o" "$standin/standin.c" &&
		ar rc "$scratch/standin/libcriterion.a" "$scratch/standin/standin.o" &&
		printf '%s\n' 'Name: criterion' 'Description: stand-in' 'Version: 0' 'Libs: -lcriterion' \
			>"$scratch/standin/criterion.pc"
}

# Flags of the stand-in are no paths of the sysroot, as pkg-config would take them for.
emulated_project() {
	PKG_CONFIG_PATH=$scratch/standin project package \
		-DCMAKE_TOOLCHAIN_FILE="$source/cmake/$cpu.cmake" -DFTR_SYSROOT="$sysroot" \
		-Dftr_DIR="${libftr%/*}/cmake/ftr" -DCMAKE_C_FLAGS="$1" -DCMAKE_EXE_LINKER_FLAGS="$2"
}

if [ -z "$cpu" ]; then
	step 'find_package: Criterion, GoogleTest, assert, libftr.a' \
		project package -DCMAKE_PREFIX_PATH="$prefix"
	step pkg-config project pkg-config
	step FetchContent project source -DFTR_SOURCE="$source"
	step 'FetchContent: instrumented, LTO' instrumented
	step 'pkg-config: a prefix of several levels' several_levels
	step 'find_package: no Zydis' no_zydis
	step 'dlopen: Python' env LIBFTR="$libftr" LIBKV="$kv/libkv.so" python3 "$here/test_kv.py"
	step 'preloaded: Python' env LD_PRELOAD="$libftr" FTR_DATA="$scratch/data" \
		FTR_MODULES='libkv.so' LIBFTR="$libftr" LIBKV="$kv/libkv.so" python3 "$here/test_kv.py"
else
	why=$(why_no_criterion)
	if [ -n "$why" ]; then
		echo "SKIP: Criterion itself, a stand-in takes its place: $why"
		step 'a stand-in for Criterion' stand_in
		step 'find_package: stand-in, GoogleTest, assert, libftr.a' emulated_project \
			"-I$source/tests/unit/standin" "-L$scratch/standin"
	else
		step 'find_package: Criterion, GoogleTest, assert, libftr.a' emulated_project '' ''
	fi
fi

# Preloaded, the tracer runs at the same time, and both see the same calls.
preloaded() {
	FTR_DATA=$scratch/data FTR_MODULES='*kv*' preload "$kv/test_kv" --jobs 1
}
step 'preloaded: Criterion' preloaded

archive() {
	# shellcheck disable=SC2046 # words
	compile -g -o "$scratch/archive" "$here/test_kv_assert.c" -I"$here" \
		$(pkg-config --cflags --libs ftr-static) -L"$kv" -lkv -Wl,-rpath,"$kv" && run "$scratch/archive"
}
step 'libftr.a by pkg-config' archive

# The program itself.
program() {
	printf 'put a 1\nget a\nput b\nget b\nsync\n' |
		FTR_DATA=$scratch/program FTR_MODULES='kvstore,libkv.so' \
			preload "$kv/kvstore" "$scratch/store" >"$scratch/answers" &&
		[ "$(tr '\n' , <"$scratch/answers")" = 'ok,1,error what?,none,ok,' ] &&
		"${report:-$prefix/bin/ftr-report}" --format csv --data "$scratch/program" >"$scratch/report" &&
		grep -q 'kv_put' "$scratch/report" && grep -q 'writer_main' "$scratch/report"
}
step 'the program, traced' program

# The first example of the section EXAMPLE.
manual() {
	awk '/^\.SH EXAMPLE/ { on = 1 } on && /^\.EE/ { exit }
		text { print } on && /^\.EX/ { text = 1 }' \
		"$source/docs/man/ftr.3" | sed 's/\\e/\\/g; s/\\-/-/g' >"$scratch/example.c" &&
		grep -q main "$scratch/example.c" &&
		# shellcheck disable=SC2046 # words
		compile -g -Wall -Wextra -Werror -o "$scratch/example" "$scratch/example.c" \
			$(pkg-config --cflags --libs ftr) &&
		run "$scratch/example"
}
step 'the example of ftr(3)' manual

# Killed with all in use: its directory holds the store alone, no memory has a name, no child runs.
killed() {
	mkdir "$scratch/killed"
	find /dev/shm /tmp -maxdepth 1 -name '*ftr*' | sort >"$scratch/before"
	status=0
	(cd "$scratch/killed" && run "$kv/killed" store) || status=$?
	find /dev/shm /tmp -maxdepth 1 -name '*ftr*' | sort >"$scratch/after"
	echo "status $status"
	[ $status = 137 ] && [ "$(ls -A "$scratch/killed")" = store ] &&
		diff "$scratch/before" "$scratch/after" && ! pgrep -f "$kv/killed"
}
step 'killed, it leaves nothing' killed

exit $failed

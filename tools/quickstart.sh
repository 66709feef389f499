#!/bin/sh
# SPDX-License-Identifier: MIT
# From a fresh Debian to a first report: install what the build needs, build ftr, trace a program
# that was never built for tracing (Debian's perl), and print what it did.
set -eu
cd "$(dirname "$0")/.."
build=build/release
data=$PWD/build/quickstart.data

stop() {
	echo "quickstart: $1" >&2
	exit 1
}

echo '== 1. packages'
sh tools/packages.sh build || stop 'cannot install what the build needs'

echo "== 2. build in $build"
mkdir -p build
cmake --preset release >build/release.log 2>&1 || {
	cat build/release.log
	stop 'cannot configure'
}
cmake --build --preset release -j "$(nproc)" || stop 'cannot build'

# shellcheck disable=SC2016 # the variables are perl's
program='my %words; $words{$_ % 100} .= "x" for 1 .. 20000;
	print join(",", (sort { $a <=> $b } keys %words)[0 .. 9]), "\n";'
echo '== 3. run a program with libftr.so preloaded'
echo "FTR_DATA=$data LD_PRELOAD=$build/libftr.so perl -e '...'"
rm -rf "$data"
FTR_DATA=$data LD_PRELOAD=$PWD/$build/libftr.so perl -e "$program" ||
	stop 'the traced program failed'

echo '== 4. what it did'
echo "$build/ftr-report --data $data"
"$build/ftr-report" --data "$data" --top 25 || stop 'no report'

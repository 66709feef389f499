#!/bin/sh
# SPDX-License-Identifier: MIT
# Install what the tests need, build everything, run all tests; the last line is
# "N passed, N failed, N skipped". Can be repeated: what is there already is kept.
set -eu
cd "$(dirname "$0")/.."
jobs=$(nproc)

stop() {
	echo "tests/run.sh: $1" >&2
	exit 1
}

# Build a preset, of it what $targets names (all when empty), and run its tests; the result is summed up at the end.
results=
status=0
targets=
run_tests() { # preset, then ctest options
	preset=$1
	shift
	echo "== $preset: configure and build in build/$preset"
	cmake --preset "$preset" >"build/$preset.log" 2>&1 || {
		cat "build/$preset.log"
		stop "cannot configure the preset $preset"
	}
	# shellcheck disable=SC2086 # words
	cmake --build --preset "$preset" -j "$jobs" ${targets:+--target $targets} || stop "cannot build the preset $preset"
	echo "== $preset: tests"
	result=$PWD/build/$preset.xml
	rm -f "$result"
	results="$results $preset=$result"
	ctest --test-dir "build/$preset" -j "$jobs" --output-on-failure --no-tests=error \
		--test-output-size-passed 4000000 --test-output-size-failed 4000000 \
		--test-output-truncation head --output-junit "$result" "$@" || status=1
}

echo '== packages'
sh tools/packages.sh test || stop 'cannot install what the tests need'
mkdir -p build
run_tests dev -LE fuzz
run_tests asan -L unit -E '^unit/test_live$' # its threads are stopped amid the sanitizer's work
targets='test_shadow test_mirror' # the structures that threads share
run_tests tsan -R '^unit/test_(shadow|mirror)$'
targets=
run_tests fuzz -L fuzz
for cpu in arm64 powerpc; do
	run_tests $cpu -LE fuzz
done

echo '== summary'
# shellcheck disable=SC2086 # words
python3 tests/summary.py $results || status=1
exit $status

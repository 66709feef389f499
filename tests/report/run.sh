#!/bin/sh
# SPDX-License-Identifier: MIT
# ftr-report as its users run it, over generated data files.
# usage: run.sh BUILD_DIR
# shellcheck disable=SC2086 # options are split on purpose
set -u
build=${1:?usage: run.sh BUILD_DIR}
report=$build/ftr-report
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

if [ ! -x "$report" ]; then
	echo "SKIP: $report is not built"
	exit 77
fi
if ! ${CC:-cc} -std=gnu11 -I "$source" -o "$work/generate" "$source/tests/report/generate.c" \
	"$source/tests/unit/support_report.c"; then
	echo "SKIP: no C compiler"
	exit 77
fi
unset FTR_DATA NO_COLOR
mkdir "$work/ftr.data" "$work/large" && "$work/generate" "$work/ftr.data" || exit 1
cd "$work" || exit 1

# check NAME STATUS: the command before it ended so; its output is in out and err.
check()
{
	if [ "$status" -ne "$2" ]; then
		echo "FAIL: $1: exit status $status, not $2"
		cat err
		failed=$((failed + 1))
		return 1
	fi
	passed=$((passed + 1))
}

run()
{
	"$report" "$@" >out 2>err
	status=$?
}

# expect NAME COMMAND...: succeeds.
expect()
{
	name=$1
	shift
	"$@" >out2 2>&1
	status=$?
	check "$name" 0 || cat out2
}

no_escape()
{
	! grep -q "$(printf '\033')" "$1"
}

lines()
{
	test "$(wc -l <"$2")" -eq "$1"
}

# ---- formats ----
for options in "" "--threads" "--skipped --threads" "--all" "--pid 100" "--top 1" "--filter app*"; do
	for format in table json csv; do
		test "$format $options" = "csv --skipped --threads" && continue
		run --format $format $options
		check "--format $format $options" 0
		expect "nothing is complained about" test ! -s err
		test $format = table && expect "no colour in a file" no_escape out
		test $format = json || continue
		if command -v python3 >/dev/null; then
			expect "JSON of $options" python3 -m json.tool out
		else
			skipped=$((skipped + 1))
		fi
	done
done

if command -v python3 >/dev/null; then
	run --format csv
	expect "CSV" python3 -c '
import csv
rows = list(csv.DictReader(open("out", newline="", encoding="utf-8"), strict=True))
assert len(rows) == 12, rows
for r in rows:
    assert int(r["calls"]) == int(r["returned"]) + int(r["unwound"]) + int(r["open"]), r
assert any("\n" in r["name"] and "\"" in r["name"] for r in rows)'
	run --format json
	expect "JSON" python3 -c '
import json
d = json.load(open("out", encoding="utf-8"))
assert d["format"] == 1
assert [(p["pid"], p["end"], p["status"]) for p in d["processes"]] == [
    (100, "exit", 3), (101, "signal", None)], d["processes"]
for f in d["functions"]:
    assert f["calls"] == f["returned"] + f["unwound"] + f["open"], f
assert len(d["functions"]) == 12 and len(d["skipped"]) == 6'
else
	skipped=$((skipped + 2))
fi

# ---- where the data is ----
mkdir elsewhere && cd elsewhere || exit 1
run
check "no data directory" 1
expect "one line about it" lines 1 err
expect "with its name" grep -q "^ftr-report: ftr.data: No such" err
FTR_DATA=../ftr.data run
check "FTR_DATA" 0
run --data ../ftr.data
check "--data" 0
cd ..

# ---- command line ----
for options in "--bogus" "--top" "--top x" "--sort x" "--format x" "--pid 0" "x" "-x" "--all=1"; do
	run $options
	check "$options" 2
	expect "$options: one line" lines 1 err
	expect "$options: no output" test ! -s out
done
for options in --help --version; do
	run $options
	check "$options" 0
	expect "$options: output" test -s out
done

# ---- static probes ----
cat >probes.c <<'END'
#include <sys/sdt.h>
int main(int argc, char **argv)
{
	(void)argv;
	DTRACE_PROBE(first, alone);
	DTRACE_PROBE2(second, with_two, argc, 5);
	return 0;
}
END
if ${CC:-cc} -o probes probes.c 2>/dev/null; then
	run --list-usdt probes
	check "--list-usdt" 0
	expect "a line for each, and the head" lines 3 out
	expect "the first" grep -Eq "^first +alone +0x[0-9a-f]+ +- +-$" out
	expect "the second" grep -Eq "^second +with_two +0x[0-9a-f]+ +- +-4@[^ ]+ -4@[$]5$" out
else
	echo "SKIP: no sys/sdt.h"
	skipped=$((skipped + 4))
fi
run --list-usdt probes.c
check "--list-usdt of no ELF file" 1
expect "one line about it" grep -q "^ftr-report: probes.c: not an ELF file" err
run --list-usdt nothing
check "--list-usdt of no file" 1
: >empty
run --list-usdt empty
check "--list-usdt of an empty file" 1
expect "says so" grep -q "^ftr-report: empty: empty" err

# ---- damage ----
mkdir bad && cp ftr.data/* bad || exit 1
head -c 20000 ftr.data/100-7-0.counts >bad/100-7-0.counts
echo "not a data file" >bad/foreign.counts
run --data bad --format csv
check "damaged files" 1
expect "a line for each" lines 2 err
expect "the first" grep -q "^ftr-report: bad/100-7-0.counts: cut off" err
expect "the second" grep -q "^ftr-report: bad/foreign.counts: not a data file" err
expect "the good ones are reported" grep -q "^101,main,main,/usr/bin/app,0x1139,1,0,0,1" out

# ---- terminals ----
if [ -w /dev/full ]; then
	"$report" >/dev/full 2>err
	status=$?
	check "a full disk" 1
	expect "is said" grep -q "^ftr-report: cannot write" err
else
	skipped=$((skipped + 1))
fi
if command -v script >/dev/null && script -qec true /dev/null >/dev/null 2>&1; then
	TERM=xterm script -qec "'$report'" /dev/null >out 2>err </dev/null
	expect "colour on a terminal" grep -q "$(printf '\033\\[1m')" out
	NO_COLOR=1 TERM=xterm script -qec "'$report'" /dev/null >out 2>err </dev/null
	expect "none with NO_COLOR" no_escape out
else
	skipped=$((skipped + 2))
fi

# ---- size ----
if ./generate large 107000 4; then
	run --data large --format csv
	check "a large process" 0
	expect "every function" lines 107001 out
else
	skipped=$((skipped + 1))
fi

echo "$passed passed, $failed failed, $skipped skipped"
test "$failed" -eq 0

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sum up what ctest ran, from its JUnit files: skips with their reasons, failures, and the line
"N passed, N failed, N skipped". A test that says how many cases it had counts as that many.

    summary.py NAME=FILE...     exit status 1 when anything failed or nothing ran
"""
import re
import sys
import xml.etree.ElementTree as ElementTree

SUITE = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped\s*$", re.M)
CRITERION = re.compile(r"Synthesis: Tested: \d+ \| Passing: (\d+) \| Failing: (\d+) \| Crashing: (\d+)")
SKIP = re.compile(r"^(?:skip |SKIP:? ?|\[SKIP\] )(.*)$", re.M)


def count(case):
    """(passed, failed, skipped, reasons) of one <testcase>."""
    output = re.sub(r"\x1b\[[\d;]*m", "", case.findtext("system-out") or "")
    reasons = SKIP.findall(output)
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        if case.find("skipped") is not None and case.find("skipped").get("message", "").startswith(
                "SKIP_RETURN_CODE"):
            return 0, 0, 1, reasons or ["no reason given"]
        return 0, 1, 0, []
    passed, failed, skipped = 1, 0, 0
    if SUITE.search(output):
        passed, failed, skipped = map(int, SUITE.findall(output)[-1])
    elif CRITERION.search(output):
        found = CRITERION.findall(output)[-1]
        passed, failed, skipped = int(found[0]), int(found[1]) + int(found[2]), len(reasons)
    if case.get("status") != "run" and failed == 0:
        passed, failed = max(passed - 1, 0), 1
    return passed, failed, skipped, reasons


def main():
    total = [0, 0, 0]
    for argument in sys.argv[1:]:
        name, path = argument.split("=", 1)
        try:
            cases = list(ElementTree.parse(path).getroot().iter("testcase"))
        except (OSError, ElementTree.ParseError) as error:
            print(f"failed: {name}: {error}")
            cases = []
        if not cases:
            print(f"failed: {name}: no test ran")
            total[1] += 1
        for case in cases:
            *counts, reasons = count(case)
            total = [a + b for a, b in zip(total, counts)]
            for reason in reasons:
                print(f"skipped: {name} {case.get('name')}: {reason}")
            if counts[1]:
                print(f"failed: {name} {case.get('name')}")
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())

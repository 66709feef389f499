#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run programs of tests/target under valgrind's memcheck, without and with ftr.

The program does the same, memcheck finds the same errors and leaks, and the numbers are exact."""
import argparse
import functools
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.path.join(HERE, "..", "target")
sys.path.insert(0, TARGET)
from check import Program, check_expectations, in_scratch  # noqa: E402
from harness import (Fault, Report, Run, check_same, find_build, run_all,  # noqa: E402
                     trace_environment)
from machine import machine_of  # noqa: E402

# With all modules of a C++ program valgrind gives no memory near libc's code.
PROGRAMS = (("basic.c", "-O2", True), ("longjmp.c", "-O0", True), ("throw.cpp", "-O2", False))
FOUND = re.compile(r"==\d+== *((?:ERROR SUMMARY|definitely lost|indirectly lost|Invalid|Use of).*)")


def memcheck(program, environment, work):
    """(the run, what memcheck says of it)"""
    os.makedirs(work)
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C", "TARGET_DIR": program.dir, **environment}
    run = Run(["valgrind", "--leak-check=full", f"--log-file={work}/log", program.exe], env,
              f"{work}/run", timeout=120)
    with open(f"{work}/log", encoding="utf-8", errors="replace") as log:
        found = FOUND.findall(log.read())
    return run, [line for line in found if not line.endswith(" 0 bytes in 0 blocks")]


def check(everything, program, build, work):
    runs = [("count", program.name), ("profile", program.name)]
    program.build()
    plain, before = memcheck(program, {}, f"{work}/plain")
    for mode, modules in runs + [("profile", "*")] * everything:
        title = f"{mode} of all" if modules == "*" else mode
        data = f"{work}/data of {title}"
        run, after = memcheck(program, trace_environment(build, data, mode, modules),
                              f"{work}/{title}")
        check_same(plain, run)
        if before != after:
            raise Fault(f"{title}: memcheck said {before}, and now {after}")
        report = Report(build, data)
        report.check_counts()
        check_expectations(report, program.header, run.pid, program.machine)
    return before[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", help="build directory")
    parser.add_argument("--keep", action="store_true", help="keep the files of failures")
    options = parser.parse_args()
    build = find_build(options.build)
    machine = machine_of(build)
    if not shutil.which("valgrind") or not machine.has("kernel"):
        print("SKIP: needs valgrind, on this machine's CPU")
        return 77
    checks = []
    for name, flags, everything in PROGRAMS:
        program = Program(machine, os.path.join(TARGET, name), flags, os.path.join(build, "valgrind"))
        checks.append((program.title, functools.partial(
            in_scratch, functools.partial(check, everything), program, build,
            options.keep)))
    return run_all(checks, [], os.cpu_count())


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trace soak.cpp for a while, in each mode, and compare every count with the program's own.

It prints its seed; the same seed makes the same choices, though not at the same moments."""
import argparse
import functools
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "target"))
from check import Program, in_scratch  # noqa: E402
from harness import Fault, Report, Run, find_build, run_all, trace_environment  # noqa: E402
from machine import machine_of  # noqa: E402


def compare(report, lines):
    """Fault unless the report agrees with what the program says of itself; the sum of calls."""
    fields = {"calls": ["calls"], "about": ["calls"], "left": ["unwound", "open"]}
    sums, faults = 0, []
    for what, name, number, *spare in map(str.split, lines):
        rows = report.select(f"all:{name}", 0, report.functions)
        found = sum(row[field] for row in rows for field in fields[what])
        number, spare = int(number), int(spare[0]) if spare else 0
        if not number <= found <= number + spare:
            faults.append(f"{name}: {what} {number} (spare {spare}), the report says {found}")
        sums += found if what != "left" else 0
    if faults:
        raise Fault("; ".join(faults))
    return sums


def check(options, mode, program, build, work):
    modules = f"{program.name},late_lib.so,phases_lib.so"
    env = {"PATH": os.environ["PATH"], "TARGET_DIR": program.dir,
           **trace_environment(build, f"{work}/data", mode, modules)}
    run = Run([program.exe, str(options.seed), str(options.seconds)], env, f"{work}/run",
              timeout=2 * options.seconds + 60, processors=os.cpu_count())
    if run.status or run.err:
        raise Fault(f"status {run.status_text()}; {run.tail()}")
    report = Report(build, f"{work}/data")
    report.check_counts()
    calls = compare(report, run.out.decode().splitlines())
    return f"seed {options.seed}, {options.seconds} s, {calls} calls, " \
        f"{len(report.json['processes'])} processes"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", help="build directory")
    parser.add_argument("--seconds", type=int, default=15, help="in each mode")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 1 << 32))
    parser.add_argument("--keep", action="store_true", help="keep the files of failures")
    options = parser.parse_args()
    build = find_build(options.build)
    machine = machine_of(build)
    if not machine.has("kernel"):
        print("SKIP: too slow under qemu-user")
        return 77
    print(f"seed {options.seed}", flush=True)
    program = Program(machine, os.path.join(HERE, "soak.cpp"), "-O2 -pthread -ldl",
                      os.path.join(build, "soak"))
    program.build()
    checks = [(f"soak {mode}", functools.partial(
        in_scratch, functools.partial(check, options, mode), program, build, options.keep))
        for mode in ("count", "profile")]
    return run_all(checks, [], 1)


if __name__ == "__main__":
    sys.exit(main())

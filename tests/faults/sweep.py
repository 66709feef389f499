#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Let every system call that is made for the tracer fail, one per run of tests/target/phases.c.

The program must do what it does untraced, to the byte, but for one line of ftr's on stderr. A call
of the program may be missing from the report only where the report or that line tells of a loss.
Each call fails once ("once"), and once with all later ones of its kind ("on").
"""
import argparse
import collections
import functools
import itertools
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "target"))
from check import Program, in_scratch, parse_expectation  # noqa: E402
from harness import COUNTS, Fault, Report, Run, find_build, run_all  # noqa: E402
from machine import machine_of  # noqa: E402

VICTIM = os.path.join(HERE, "..", "target", "phases.c")
COMPLAINT = re.compile(rb"^ftr: [^\n]*\n", re.M)


def build_injector(out):
    os.makedirs(out, exist_ok=True)
    target = os.path.join(out, "inject")
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", target, f"{HERE}/inject.c"],
                   check=True)
    return target


class Sweep:
    def __init__(self, build, out):
        self.build = build
        self.inject = build_injector(out)
        self.program = Program(machine_of(build), VICTIM, "-O2 -pthread -ldl", out)
        self.program.build()

    def run(self, work, number, how):
        """(the run, its log as [(number, kind, failed)])"""
        command = [self.inject, f"{self.build}/libftr.so", f"{work}/log", str(number), how,
                   self.program.exe]
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C", "TARGET_DIR": self.program.dir,
               "FTR_DATA": f"{work}/data", "FTR_MODE": "profile" if number % 2 else "count"}
        env.update(line.split("=", 1) for line in self.program.header["env"])
        run = Run(command, env, f"{work}/run", timeout=60)
        with open(f"{work}/log", encoding="utf-8") as log:
            return run, [line.split() for line in log]

    def list_calls(self, _program, _build, work):
        """Kinds of calls, in their order, in a run without a fault."""
        return [words[1] for words in self.run(work, 0, "once")[1]]

    def check(self, plain, number, how, work):
        run, log = self.run(work, number, how)
        if run.status == 125:
            raise Fault(f"inject: {run.tail()}")
        said = COMPLAINT.findall(run.err)
        if run.status != plain.status or run.out != plain.out or COMPLAINT.sub(b"", run.err):
            raise Fault(f"status {run.status_text()}; {run.tail()}")
        if len(said) > (1 if how == "once" else 2):  # the start or a dlopen, and a later dlopen
            raise Fault(f"{len(said)} lines on stderr: {said[:3]}")
        if not any(words[2:] for words in log):
            raise Fault("no call has failed")
        told = bool(said)
        if not os.path.exists(f"{work}/data") or not os.listdir(f"{work}/data"):
            if not told:
                raise Fault("nothing recorded, and nothing said")
            return
        self.check_report(Report(self.build, f"{work}/data", damaged=True), run.pid, told)

    def check_report(self, report, injector, told):
        told |= any(report.json["lost"].values())
        root = next((p["pid"] for p in report.json["processes"] if p["ppid"] == injector), 0)
        for row in report.functions:
            if row["calls"] != row["returned"] + row["unwound"] + row["open"]:
                raise Fault(f"does not add up: {row}")
        for name, wanted, _ in map(parse_expectation, self.program.header["expect"]):
            rows = report.select(name, root, report.functions)
            found = sum(row["calls"] for row in rows)
            refused = report.select(name, root, report.skipped)
            if found > wanted["calls"] or (found < wanted["calls"] and not told and not refused):
                raise Fault(f"{name}: {found} calls of {wanted['calls']}, and nothing said")


def choose(kinds, everything):
    """
    (number, kind, how): which calls to let fail. By default of equal ones in a row the first, and
    with all later ones only each fifth of a kind.
    """
    at, seen = 0, collections.Counter()
    for kind, group in itertools.groupby(kinds):
        count = len(list(group))
        for number in range(at + 1, at + 1 + (count if everything else 1)):
            yield number, kind, "once"
            if everything or seen[kind] % 5 == 0:
                yield number, kind, "on"
            seen[kind] += 1
        at += count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="calls to let fail, by number and kind: 17-mmap")
    parser.add_argument("--build", help="build directory")
    parser.add_argument("--all", action="store_true", help="every call, both ways")
    parser.add_argument("--keep", action="store_true", help="keep the files of failures")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    build = find_build(options.build)
    if not machine_of(build).has("kernel"):
        print("SKIP: qemu-user hands over no system calls")
        return 77
    sweep = Sweep(build, os.path.join(build, "faults"))
    plain = in_scratch(lambda program, _, work: program.run({}, f"{work}/run"), sweep.program, None,
                       False)
    kinds = in_scratch(sweep.list_calls, sweep.program, build, False)
    checks = []
    for number, kind, how in choose(kinds, options.all):
        title = f"{number}-{kind} {how}"
        if not options.names or title.split()[0] in options.names:
            check = functools.partial(sweep.check, plain, number, how)
            checks.append((title, functools.partial(
                in_scratch, lambda _p, _b, work, check=check: check(work), sweep.program, build,
                options.keep)))
    return run_all(checks, [], options.jobs)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How many instructions ftr adds to a call, counted by a plugin of qemu-user: no noise, no clock.

    count.py --build BUILD      of a preset for another CPU

Prints a table and fails when a figure is above its limit, or the report has other numbers of calls.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, f"{TOP}/tests/target")
from harness import Fault, Report, Run, trace_environment  # noqa: E402
from machine import machine_of  # noqa: E402

ROUNDS = 1000
QEMU = {"arm64": "qemu-aarch64", "powerpc": "qemu-ppc64le"}
# What it must not come to cost again in count and in profile mode. A function that makes calls may be active more than
# once. A tail call is one of two functions.
LIMITS = {"arm64": {"": (40, 68), "calls": (40, 70), "tail": (121, 182)},
          "powerpc": {"": (46, 74), "calls": (46, 79), "tail": (114, 180)}}


def skip(reason):
    print(f"SKIP: {reason}")
    sys.exit(77)


def command(words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Fault(f"{' '.join(words)[:200]}: {done.stderr.strip()[-300:]}")
    return done.stdout


def build_all(machine, out):
    """The plugin and the program, which is at a fixed address so that its symbols are places."""
    bench = f"{TOP}/tools/bench"
    command(["gcc", "-O2", "-shared", "-fPIC", "-o", f"{out}/libcount.so", f"{HERE}/count.c"])
    command([*machine.compiler("gcc"), "-O2", "-fno-pie", "-no-pie", f"-I{TOP}", "-o", f"{out}/calls",
             f"{HERE}/calls.c", f"{bench}/target.c", f"{bench}/target_{machine.cpu}.S"])
    symbols = command([machine.tool("nm"), f"{out}/calls"])
    return {name: int(value, 16) for value, name in re.findall(r"^(\w+) T (begin|end)$", symbols, re.M)}


def measure(machine, build, out, places, mode):
    """{row: instructions of a call} in a mode of ftr; None: not traced."""
    work = f"{out}/{mode}"
    os.makedirs(work)
    plugin = f"{out}/libcount.so,from={places['begin']:#x},to={places['end']:#x},out={work}/counts"
    env = {"PATH": os.environ["PATH"], "FTR_QEMU": shutil.which(QEMU[machine.cpu])}
    if mode:
        env.update(trace_environment(build, f"{work}/data", mode), FTR_FUNCTIONS="ftr_bench_*")
    words, env = machine.command([f"{out}/calls", str(ROUNDS)], env)
    words[4:4] = ["-plugin", plugin]
    run = Run(words, env, f"{work}/run")
    if run.status:
        raise Fault(f"status {run.status_text()}; {run.tail()}")
    rows = [line.split() for line in run.out.decode().splitlines()]
    with open(f"{work}/counts", encoding="utf-8") as file:
        counts = [int(line) for line in file]
    if len(counts) != 2 * len(rows):
        raise Fault(f"{len(counts)} counts for {len(rows)} rows")
    if mode:
        check_report(Report(build, f"{work}/data"), rows)
    return {row[0]: (counts[2 * i + 1] - counts[2 * i]) / ROUNDS for i, row in enumerate(rows)}


def check_report(report, rows):
    for name, calls in rows:
        function = next(row for row in report.functions if row["symbol"] == f"ftr_bench_{name}")
        if function["calls"] != int(calls):
            raise Fault(f"{name}: {calls} calls, the report has {function['calls']}")
        if ("entry_only" in function) != name.endswith("_only"):
            raise Fault(f"{name}: entry only: {function.get('entry_only')}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, help="build directory of a preset for another CPU")
    build = os.path.abspath(parser.parse_args().build)
    machine = machine_of(build)
    if machine.cpu not in QEMU or not machine.triplet:
        skip("not a build for another CPU")
    qemu = shutil.which(QEMU[machine.cpu])
    if not qemu or "-plugin" not in command([qemu, "-h"]):
        skip(f"needs a {QEMU[machine.cpu]} with plugins")
    with tempfile.TemporaryDirectory(prefix="ftr-count-") as out:
        places = build_all(machine, out)
        plain, *traced = (measure(machine, build, out, places, mode) for mode in (None, "count", "profile"))
    print(f"instructions that ftr adds to a call on {machine.cpu}")
    print(f"{'entry of':12} {'hooked':14} {'call':>6} {'count':>6} {'profile':>8}")
    limits = LIMITS[machine.cpu]
    above = 0
    for name in plain:
        added = [times[name] - plain[name] for times in traced]
        hooked = "entry" if name.endswith("_only") else "entry + return"
        print(f"{name.removesuffix('_only'):12} {hooked:14} {plain[name]:6.1f} {added[0]:6.1f} {added[1]:8.1f}")
        above += sum(round(value) > limit for value, limit in zip(added, limits.get(name, limits[""])))
    print("limits in count and profile mode: " + ", ".join(f"{name} {count} {profile}".strip()
                                                            for name, (count, profile) in limits.items())
          + f"; {above} figures above")
    return 1 if above else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Fault as fault:
        sys.exit(f"FAIL: {fault}")

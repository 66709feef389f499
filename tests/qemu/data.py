#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Data of one CPU is read on another: ftr-report of this machine and that of another CPU, under
qemu-user, must say the same of a program traced here and of one traced there.

    data.py --build BUILD      of a preset for another CPU
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../target")
from harness import Fault, Run, trace_environment  # noqa: E402
from machine import Machine, machine_of  # noqa: E402

EXPECTED = {"factorial": 11, "fibonacci": 465, "ackermann": 44}


def trace(machine, build, out):
    """The data directory of a traced run of basic.c in profile mode."""
    os.makedirs(out)
    program = f"{out}/basic"
    subprocess.run([*machine.compiler("gcc"), "-O2", "-g", "-o", program, f"{HERE}/../target/basic.c"],
                   check=True)
    env = {"PATH": os.environ["PATH"], **trace_environment(build, f"{out}/data", "profile")}
    run = Run(*machine.command([program], env), f"{out}/run")
    if run.status:
        raise Fault(f"{machine.cpu}: status {run.status_text()}; {run.tail()}")
    return f"{out}/data"


def read(machine, tool, data):
    words, env = machine.command([tool, "--data", data, "--format", "json", "--all"], dict(os.environ))
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Fault(f"{tool} on {data}: status {done.returncode}: {done.stderr.strip()[:300]}")
    return json.loads(done.stdout)


def without_times(value):
    """The clock of a process that ran for less than a moment is measured anew where it can be."""
    if isinstance(value, dict):
        return {key: item is not None if key.endswith("_ns") else without_times(item)
                for key, item in value.items()}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def check(build, out):
    here, there = Machine(f"{build}/host"), machine_of(build)
    for machine, library in ((here, f"{build}/host"), (there, build)):
        data = trace(machine, library, f"{out}/{machine.cpu}")
        reports = [read(here, here.report, data), read(there, f"{build}/ftr-report", data)]
        if without_times(reports[0]) != without_times(reports[1]):
            raise Fault(f"two reports on data of {machine.cpu} differ")
        calls = {row["symbol"]: row["calls"] for row in reports[0]["functions"]}
        for name, number in EXPECTED.items():
            if calls.get(name) != number:
                raise Fault(f"{machine.cpu}: {name}: {calls.get(name)} calls, not {number}")
        print(f"ok   data of {machine.cpu}: {len(calls)} functions, read on {here.cpu} and {there.cpu}")
    print("2 passed, 0 failed, 0 skipped")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, help="build directory of a preset for another CPU")
    build = os.path.abspath(parser.parse_args().build)
    if not machine_of(build).triplet:
        print("SKIP: not a build for another CPU")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="ftr-data-") as out:
        check(build, out)


if __name__ == "__main__":
    try:
        main()
    except Fault as fault:
        sys.exit(f"FAIL: {fault}")

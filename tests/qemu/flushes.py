#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How often instruction caches are flushed, exactly: a probe that is attached again finds its detour
in place, so that of its three pieces of code (detour, patch, patch taken back) two are flushed.

    flushes.py --build BUILD
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../target")
from harness import Fault, Run, trace_environment  # noqa: E402
from machine import machine_of  # noqa: E402

PROBES = 2  # in a round


def flushes(machine, build, out, rounds):
    """(asked, done) of flushes.c, as the report has them in both forms."""
    data = f"{out}/data-{rounds}"
    env = {"PATH": os.environ["PATH"], "FTR_FUNCTIONS": "traced",
           **trace_environment(build, data, "count")}
    run = Run(*machine.command([f"{out}/flushes", str(rounds)], env), f"{out}/run-{rounds}")
    if run.status:
        raise Fault(f"{rounds} rounds: status {run.status_text()}; {run.tail()}")
    texts = [subprocess.run([machine.report, "--data", data, "--format", name], check=True, text=True,
                            capture_output=True).stdout for name in ("json", "table")]
    told = json.loads(texts[0])["flushes"]
    line = re.search(r"^flushed: (\d+) of (\d+) detours and patches", texts[1], re.M)
    if ((int(line[2]), int(line[1])) if line else (0, 0)) != (told["asked"], told["done"]):
        raise Fault(f"the table has {line and line[0]}, JSON {told}")
    return told["asked"], told["done"]


def check(build, out):
    machine = machine_of(build)
    subprocess.run([*machine.compiler("gcc"), "-O0", "-g", "-o", f"{out}/flushes", f"{HERE}/flushes.c"],
                   check=True)
    first, *more = [(rounds, *flushes(machine, build, out, rounds)) for rounds in (1, 2, 7)]
    counted = machine.cpu != "x86_64"
    if (first[1] > 0) != counted or first[1] != first[2]:
        raise Fault(f"one round: {first[2]} done of {first[1]}: all were new")
    for rounds, asked, done in more:
        again = (rounds - 1) * PROBES * counted
        if (asked - first[1], done - first[2]) != (3 * again, 2 * again):
            raise Fault(f"{rounds} rounds: {done} done of {asked}, after one {first[2]} of {first[1]}")
    print(f"ok   {machine.cpu}: {first[2]} of {first[1]}, after {rounds} rounds {done} of {asked}")
    print("1 passed, 0 failed, 0 skipped")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, help="build directory")
    build = os.path.abspath(parser.parse_args().build)
    with tempfile.TemporaryDirectory(prefix="ftr-flushes-") as out:
        check(build, out)


if __name__ == "__main__":
    try:
        main()
    except Fault as fault:
        sys.exit(f"FAIL: {fault}")

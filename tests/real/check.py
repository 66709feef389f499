#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run well-known programs untraced and with every function traced: the same to the byte.

Programs are built from Debian's sources, or are those of this machine. Each case is run untraced,
then traced; output, files and exit status must be the same, and the report must add up.
"""
import argparse
import collections
import functools
import os
import re
import shutil
import socket
import sys
import tempfile

from sources import Sources  # first: it finds the harness
from harness import (Fault, Report, Run, check_same, compare_hooks, find_build, run_all,
                     trace_environment)
from machine import machine_of
from cases import PATH, cases, find_program


def run_case(case, machine, command, env, work):
    env = {"PATH": PATH, "LC_ALL": "C.UTF-8", "HOME": work, **case.env, **env}
    if case.port:
        with socket.create_server(("127.0.0.1", 0)) as server:
            env["PORT"] = str(server.getsockname()[1])
    return Run(*machine.command(command, env), work, case.stdin.encode(), case.timeout,
               setup=case.setup, user=ordinary(case))


def ordinary(case):
    """The user to run as, None: no other."""
    return case.user if os.geteuid() == 0 else None


def trace_case(case, machine, command, build, work):
    """The traced run."""
    user = ordinary(case)
    if user:  # who may not be able to read the build directory, nor write here
        shutil.copy(f"{build}/libftr.so", work)
        build = work
        os.mkdir(f"{work}/data")
        shutil.chown(f"{work}/data", user)
    return run_case(case, machine, command, trace_environment(build, f"{work}/data", case.mode, case.modules),
                    f"{work}/run")


def check_case(case, machine, path, build, work):
    shell = isinstance(path, list)  # see shell_of()
    command = [path[0], *case.args, path[1]] if shell else [path, *case.args]

    def normalise(text):
        text = re.sub(rb"test_\w+ passed in .*\n", b"", text)  # which Python says of slow ones only
        return re.sub(case.volatile, b"~", text) if case.volatile else text

    # The same directory name both times: programs print it.
    plain = run_case(case, machine, command, {}, f"{work}/run")
    os.rename(f"{work}/run", f"{work}/plain")
    again = run_case(case, machine, command, {}, f"{work}/run")
    os.rename(f"{work}/run", f"{work}/again")
    try:
        check_same(plain, again, normalise, case.files)
    except Fault as fault:
        raise Fault(f"differs from run to run untraced: {fault}") from fault
    if plain.status != case.status:
        raise Fault(f"untraced: status {plain.status_text()}, expected {case.status}; {plain.tail()}")
    if not build:
        return f"status {plain.status_text()}, {len(plain.out)} bytes"
    data = f"{work}/data"
    traced = trace_case(case, machine, command, build, work)
    check_same(plain, traced, normalise, case.files)
    report = Report(build, data)
    report.check_counts(case.lost)
    report.check_end(traced)
    if case.hooks:
        functions, calls = compare_hooks(machine, path, f"{work}/run/cross.txt", report, traced.pid)
        return f"{functions} functions, {calls} calls agree"
    main = case.main or command[-1 if shell else 0]
    about = summary(build, data, report, find_program(main) or main)
    try:
        report.check_times(case.stacks)
    except Fault as fault:
        raise Fault(f"same output, {about}; but {fault}") from fault
    return about


def summary(build, data, report, name):
    """
    Of the busiest process of the program @name, a path or its last part: functions traced, called, skipped (pieces of others
    apart); of all: calls. It must have been traced, with functions of its own.
    """
    calls, own = collections.Counter(), collections.Counter()
    for row in report.functions:
        calls[row["process"]] += row["calls"]
        own[row["process"]] += row["module"] == report.json["processes"][row["process"]]["exe"]
    busiest = max((index for index, process in enumerate(report.json["processes"])
                   if name in (process["exe"], os.path.basename(process["exe"]))
                   and own[index]), key=calls.get, default=None)
    if busiest is None:
        raise Fault(f"no process of {name} is in the report with functions of its own")
    process = report.json["processes"][busiest]
    alone = Report(build, data, "--all", "--pid", str(process["pid"]))
    index = alone.json["processes"].index(process)
    rows = [row for row in alone.functions if row["process"] == index]
    reasons = collections.Counter(row["reason"] for row in alone.skipped if row["process"] == index)
    fragments = reasons.pop("fragment", 0)
    skips = sum(reasons.values())
    mostly = "".join(f", mostly {reason}" for reason, _ in reasons.most_common(1))
    called = sum(row["calls"] > 0 for row in rows)
    share = 100 * len(rows) / max(1, len(rows) + skips)
    return (f"{len(rows)} functions traced ({share:.1f} %), {skips} skipped{mostly}, {fragments} "
            f"fragments, {called} called, {calls.total()} calls in {len(report.json['processes'])} processes")


def in_scratch(case, sources, build, keep):
    with sources.lock:
        path = case.program()
    work = tempfile.mkdtemp(prefix="ftr-real-")
    try:
        return check_case(case, sources.machine, path, build, work)
    except Fault as fault:
        raise Fault(f"{fault}" + (f" (kept {work})" if keep else "")) from fault
    finally:
        if not keep:
            shutil.rmtree(work, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="cases whose name begins so; all by default")
    parser.add_argument("--build", default=os.environ.get("FTR_BUILD"), help="build directory")
    parser.add_argument("--cache", help="where sources and programs are kept (BUILD/real)")
    parser.add_argument("--untraced", action="store_true", help="check the programs alone")
    parser.add_argument("--quick", action="store_true", help="a subset of a few minutes")
    parser.add_argument("--keep", action="store_true", help="keep the files of failures")
    parser.add_argument("--list", action="store_true", help="only print the cases")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    build = find_build(options.build)
    if not build and not options.untraced:
        sys.exit("run.sh: no build directory with libftr.so; give --build DIR or --untraced")
    sources = Sources(os.path.abspath(options.cache or (f"{build}/real" if build else "/tmp/ftr-real")),
                      machine_of(build))
    checks = []
    for case in cases(sources):
        if not (case.emulated if sources.machine.triplet else case.quick or not options.quick):
            continue
        if options.names and not any(case.name.startswith(name) for name in options.names):
            continue
        if options.list:
            print(case.name)
            continue
        checks.append((case.name, functools.partial(
            in_scratch, case, sources, None if options.untraced else build, options.keep)))
    return 0 if options.list else run_all(checks, [], options.jobs)


if __name__ == "__main__":
    sys.exit(main())

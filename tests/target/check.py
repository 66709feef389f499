#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run the programs of this directory without and with ftr and check what the report says.

Every program states in its first comment what must be found; README.md explains the words. A
program is run untraced first: its output must have the expected status and its own counters
("calls NAME N" lines) must agree with the expectations. Traced, it must behave the same to the
byte, and the report must hold exactly the expected numbers.
"""
import argparse
import fnmatch
import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from harness import (COUNTS, HERE, HOOK_FLAGS, Fault, Report, Run, build_hooks, check_same,
                     compare_hooks, find_build, run_all, trace_environment)
from machine import machine_of

WORDS = ("flags", "mode", "args", "stdin", "env", "exit", "expect", "maybe", "absent", "skipped",
         "needs", "library", "strip", "limit", "timeout", "cross", "lost", "stacks", "end", "says",
         "letgo")
DEFAULT_FLAGS = ["-O0", "-O2", "-Os", "clang -O2"]


def read_header(path):
    """The `word: value` lines of the first comment, as a dictionary of lists."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    comment = re.search(r"/\*.*?\*/", text[text.index("\n"):], re.S)
    header = {word: [] for word in WORDS}
    for line in comment.group(0).splitlines() if comment else []:
        found = re.match(r"^[\s/*]*([a-z]+):\s*(.*?)\s*$", line)
        if found and found.group(1) in WORDS:
            header[found.group(1)].append(found.group(2))
    return header


def parse_expectation(line):
    """`[child:]name calls=1 open=1` -> (name, {"calls": 1, ...}, at_least)"""
    name, *fields = line.split()
    at_least = any(">=" in field for field in fields)
    pairs = (re.split(">?=", field) for field in fields)
    return name, {key: int(value) for key, value in pairs}, at_least


def flags_for(header, cpu, brief):
    """The `flags:` lines for @cpu: those that name it and those that name none; @brief: one of these."""
    general, special = [], []
    for line in header["flags"] or DEFAULT_FLAGS:
        only = re.match(r"([\w,]+):\s*", line)
        if not only:
            general.append(line)
        elif cpu in only.group(1).split(","):
            special.append(line[only.end():])
    return general[:1 if brief else None] + special


class Program:
    """One source file built one way."""

    def __init__(self, machine, path, flags, out):
        self.machine = machine
        self.path = path
        self.name = os.path.splitext(os.path.basename(path))[0]
        self.flags = flags
        self.header = read_header(path)
        self.dir = os.path.join(out, re.sub(r"[^\w+.=-]+", "_", f"{self.name} {flags}"))
        self.exe = os.path.join(self.dir, self.name)
        self.title = f"{os.path.basename(path)} [{flags}]"

    def build(self, extra=()):
        os.makedirs(self.dir, exist_ok=True)
        words = self.flags.split()
        compiler = words.pop(0) if words and not words[0].startswith("-") else "gcc"
        if self.path.endswith(".cpp"):
            compiler = {"gcc": "g++", "clang": "clang++"}[compiler]
        sources = [self.path] + [f"{HERE}/{word}" for word in words if word.endswith(".S")]
        late = [word for word in words if word.startswith("-l")]
        words = [word for word in words if word not in late and not word.endswith(".S")]
        common = [*self.machine.compiler(compiler), "-g", "-Wall", "-Wextra", "-Wno-unused-parameter", f"-I{HERE}", *words]
        self.compile([*common, *extra], sources, self.exe, late)
        for library in self.header["library"]:
            name, *options = library.split()
            path = os.path.join(self.dir, os.path.splitext(name)[0] + ".so")
            language = ["-x", "c"] if name.endswith(".c") else []  # of a C++ program, too
            self.compile([*common, *options, "-shared", "-fPIC", *language], [f"{HERE}/{name}"], path, [])

    def compile(self, command, sources, target, late):
        """Unless it is there already, newer than its sources and made by the same command."""
        command = [*command, "-o", target, *sources, *late]
        stamp = target + ".command"
        newest = max(os.path.getmtime(path) for path in [*sources, f"{HERE}/target.h"])
        if os.path.exists(target) and os.path.exists(stamp):
            with open(stamp, encoding="utf-8") as file:
                if file.read() == str(command) and os.path.getmtime(target) > newest:
                    return
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.dir)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if re.search("error|undefined", line, re.I)]
            raise Fault("does not build: " + " | ".join(lines[:4]))
        if self.header["strip"]:
            subprocess.run([self.machine.tool("strip"), target], check=True)
        with open(stamp, "w", encoding="utf-8") as file:
            file.write(str(command))

    def run(self, environment, work):
        header = self.header
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C", "TARGET_DIR": self.dir}
        # A program built for gcov or gprof writes what it counted, and when.
        env["GCOV_PREFIX"] = os.path.dirname(work)
        env["GMON_OUT_PREFIX"] = os.path.join(os.path.dirname(work), "gmon")
        for line in header["env"]:
            env.update(word.split("=", 1) for word in shlex.split(line))
        env.update(environment)
        limits = [(name, int(value)) for name, value in map(str.split, header["limit"])]
        command = [self.exe, *shlex.split(" ".join(header["args"]))]
        return Run(*self.machine.command(command, env), work,
                   "\n".join(header["stdin"]).encode(), int((header["timeout"] or [120])[0]), limits)


def check_untraced(program, run):
    header = program.header
    wanted = header["exit"][0] if header["exit"] else "0"
    if run.status_text() != wanted:
        raise Fault(f"status {run.status_text()}, expected {wanted}; {run.tail()}")
    own = dict(re.findall(r"^calls (\S+) (\d+)$", run.out.decode(errors="replace"), re.M))
    for name, counts, _ in map(parse_expectation, header["expect"] + header["maybe"]):
        if "calls" in counts and name in own and int(own[name]) != counts["calls"]:
            raise Fault(f"{name} counted {own[name]} calls, expected {counts}")
    if not own and header["expect"]:
        raise Fault("the program counts no calls of its own")


def expectation(line, machine):
    """That of a line; where the end of a frame cannot be told from its stack, `unwound` may be open."""
    name, wanted, at_least = parse_expectation(line)
    if "unwound" in wanted and not machine.tells_unwound:
        wanted["left"] = wanted.pop("unwound") + wanted.pop("open", 0)
    return name, wanted, at_least


def check_expectations(report, header, root, machine):
    missing = 0
    for line in header["expect"] + header["maybe"]:
        name, wanted, at_least = expectation(line, machine)
        rows = report.select(name, root, report.functions)
        refused = report.select(name, root, report.skipped)
        if not rows and refused and line in header["maybe"]:
            continue
        found = {field: sum(row[field] for row in rows) for field in COUNTS}
        found["left"] = found["unwound"] + found["open"]
        if header["lost"]:
            missing += wanted["calls"] - found["calls"]
            continue
        if not rows and wanted.get("calls") != 0:
            reason = f"skipped, {refused[0]['reason']}" if refused else "not in the report"
            raise Fault(f"{name}: {reason}, expected {wanted}")
        if "returned" in wanted and any("entry_only" in row for row in rows):
            raise Fault(f"{name}: entry only, {rows[0]['entry_only']}: returns are not seen")
        if wanted.keys() == {"calls"} and not at_least and not any("entry_only" in r for r in rows):
            wanted["returned"] = wanted["calls"]
        if any(found[field] < count or (found[field] > count and not at_least)
               for field, count in wanted.items()):
            raise Fault(f"{name}: expected {wanted}, found {found}")
    if missing != (report.json["lost"]["calls"] if header["lost"] else 0):
        raise Fault(f"{missing} expected calls are not there, lost are {report.json['lost']}")
    for name in " ".join(header["absent"]).split():
        rows = report.select(name, root, report.functions)
        if any(row["calls"] for row in rows):
            raise Fault(f"{name}: must not be counted, found {rows[0]}")
    for line in header["skipped"]:
        name, *reason = line.split()
        rows = report.select(name, root, report.skipped)
        if not rows or (reason and rows[0]["reason"] != reason[0].removeprefix("reason=")):
            raise Fault(f"{name}: must be skipped, {reason}, found {rows}")


def check_traced(program, build, mode, plain, work):
    os.makedirs(work)
    data = os.path.join(work, "data")
    run = program.run(trace_environment(build, data, mode), os.path.join(work, "run"))
    beyond = re.search(rb"^ftr: .* traced .*\((\d+) out of reach", run.err, re.M)
    for text in program.header["says"]:
        run.err, n = re.subn(rb"^ftr: .*" + re.escape(text.encode()) + rb".*\n", b"", run.err, flags=re.M)
        if not n:
            raise Fault(f"does not say: {text}; {run.tail()}")
    check_same(plain, run)
    if not os.path.exists(data) and not program.header["expect"]:
        return  # nothing to trace, nothing to tell
    report = Report(build, data, damaged=bool(program.header["lost"]))
    report.check_counts(program.header["lost"], bool(program.header["letgo"]))
    check_expectations(report, program.header, run.pid, program.machine)
    if beyond:
        report.check_reach(int(beyond[1]))
    report.check_end(run, unseen=program.header["end"] == ["unseen"])
    report.check_times(program.header["stacks"])


def check_program(program, build, work):
    """Untraced, then traced in each mode; without a build directory untraced only."""
    program.build()
    stage = "untraced"
    try:
        os.makedirs(f"{work}/plain")
        plain = program.run({}, f"{work}/plain/run")
        check_untraced(program, plain)
        for stage in " ".join(program.header["mode"] or ["count profile"]).split() if build else []:
            check_traced(program, build, stage, plain, f"{work}/{stage}")
    except Fault as fault:
        raise Fault(f"{stage}: {fault}") from fault


def check_cross(program, build, work):
    """The program's functions counted twice in one run: by ftr and by gcc's own hooks."""
    program.build([*HOOK_FLAGS, build_hooks(program.machine, program.dir)])
    run = program.run(trace_environment(build, f"{work}/data", "count"), f"{work}/run")
    functions, calls = compare_hooks(program.machine, program.exe, f"{work}/run/cross.txt",
                                     Report(build, f"{work}/data"), run.pid)
    return f"{functions} functions, {calls} calls agree"


def in_scratch(check, program, build, keep):
    """check(program, build, directory), with a directory that goes away unless kept."""
    work = tempfile.mkdtemp(prefix="ftr-target-")
    try:
        return check(program, build, work)
    except Fault as fault:
        raise Fault(f"{fault}" + (f" (kept {work})" if keep else "")) from fault
    finally:
        if not keep:
            shutil.rmtree(work, ignore_errors=True)


def collect(options, machine, out):
    """(programs, skipped) of this directory, as the options say."""
    programs, skipped = [], []
    for name in sorted(os.listdir(HERE)):
        path = os.path.join(HERE, name)
        base, ext = os.path.splitext(name)
        if ext not in (".c", ".cpp") or base.endswith("_lib"):
            continue
        if options.names and not any(fnmatch.fnmatch(base, glob) for glob in options.names):
            continue
        header = read_header(path)
        if options.cross and not header["cross"]:
            continue
        missing = [word for word in " ".join(header["needs"]).split() if not machine.has(word)]
        if missing:
            skipped.append((name, "needs " + " ".join(missing)))
            continue
        ways = flags_for(header, machine.cpu, options.quick)
        for flags in ways[:1] if options.cross else ways:
            if flags.startswith("clang") and not machine.has("clang"):
                skipped.append((f"{name} [{flags}]", "needs clang"))
                continue
            programs.append(Program(machine, path, flags, out))
    return programs, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="programs, by glob; all by default")
    parser.add_argument("--build", default=os.environ.get("FTR_BUILD"), help="build directory")
    parser.add_argument("--out", help="where to build the programs (BUILD/target)")
    parser.add_argument("--untraced", action="store_true", help="check the programs alone")
    parser.add_argument("--quick", action="store_true", help="only the first way to build each, and those for one CPU")
    parser.add_argument("--cross", action="store_true", help="compare with -finstrument-functions")
    parser.add_argument("--keep", action="store_true", help="keep the files of failures")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    build = find_build(options.build)
    if not build and not options.untraced:
        sys.exit("run.sh: no build directory with libftr.so; give --build DIR or --untraced")
    out = options.out or (f"{build}/target" if build else f"{tempfile.gettempdir()}/ftr-target")
    out = os.path.join(os.path.abspath(out), "cross" if options.cross else "plain")
    programs, skipped = collect(options, machine_of(build), out)
    check = check_cross if options.cross else check_program
    use = None if options.untraced else build
    return run_all([(program.title, functools.partial(in_scratch, check, program, use, options.keep))
                    for program in programs], skipped, options.jobs)


if __name__ == "__main__":
    sys.exit(main())

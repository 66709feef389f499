#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run well-known programs untraced and with every function traced: the same to the byte.

Programs are built from Debian's sources, or are those of this machine. Each case is run untraced,
then traced; output, files and exit status must be the same, and the report must add up.
"""
import argparse
import collections
import functools
import glob
import os
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass, field

from sources import Sources  # first: it finds the harness
from harness import (HOOK_FLAGS, Fault, Missing, Report, Run, build_hooks, check_same, compare_hooks,
                     find_build, run_all, trace_environment)
from machine import machine_of

PYTHON = "/usr/bin/python3.11"  # the one that Debian's package of tests belongs to
HERE = os.path.dirname(os.path.abspath(__file__))
NATIVE = {"arm64": "-mbranch-protection=standard", "powerpc": "-mcpu=power10"}


@dataclass
class Case:
    """A program and what it is to do. @program gives its path, or raises Missing."""
    name: str
    program: object
    args: list = field(default_factory=list)
    stdin: str = ""
    modules: str = None
    mode: str = "profile"
    status: int = 0
    quick: bool = False
    env: dict = field(default_factory=dict)
    timeout: int = 600
    volatile: str = None  # what differs from run to run anyway, as a pattern
    setup: object = None  # makes files in the work directory
    files: bool = True
    lost: bool = False
    hooks: bool = False
    emulated: bool = False  # quick enough under qemu, which runs nothing but programs of this build


def machine(name):
    """A program that is installed."""
    def find():
        path = shutil.which(name)
        if not path:
            raise Missing(name)
        return os.path.realpath(path)
    return find


def write_samples(work):
    """A text, a binary file and a file of zeros, always the same."""
    seed, noise = 1, bytearray()
    for _ in range(60000):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        noise += seed.to_bytes(8, "little")[3:]
    for name, data in (("text", b"".join(b"%d squared is %d\n" % (i, i * i) for i in range(15000))),
                       ("noise", bytes(noise)), ("zeros", bytes(400000))):
        with open(os.path.join(work, name), "wb") as file:
            file.write(data)


def python_tests(sources):
    """The directory in which Debian's python3.11 finds its own regression tests."""
    tree = sources.package("libpython3.11-testsuite")
    merged = os.path.join(sources.root, "python-tests")
    if not os.path.exists(merged):
        shutil.copytree("/usr/lib/python3.11/test", f"{merged}.new/test", dirs_exist_ok=True)
        shutil.copytree(f"{tree}/usr/lib/python3.11/test", f"{merged}.new/test", dirs_exist_ok=True)
        os.rename(f"{merged}.new", merged)
    return merged


def cases(sources):
    """Every case, those of --quick and for emulated CPUs marked."""
    def lua(*flags):
        return functools.partial(sources.lua, *flags)

    script = [f"{HERE}/work.lua", "argument"]
    with open(f"{HERE}/work.sql", encoding="utf-8") as file:
        sql = file.read()
    native = NATIVE.get(sources.machine.cpu, "-march=native")
    for flags in (("-O2",), ("-Os",), ("-O0",), ("-O3", native), ("-O2", "-fno-pie", "-no-pie"),
                  ("clang", "-O2")):
        text = " ".join(flags)
        quick = flags in (("-O2",), ("-Os",))
        emulated = quick or flags[-1] == native
        yield Case(f"lua {text}", lua(*flags), script, quick=quick, emulated=emulated)
        yield Case(f"zstd {text}", functools.partial(sources.zstd, *flags),
                   ["-q", "-T2", "-6", "-k", "text", "noise", "zeros"], setup=write_samples,
                   quick=flags == ("-O2",), emulated=flags == ("-O2",))
        yield Case(f"zstd -19 and back {text}", functools.partial(shell_of, sources.zstd, flags),
                   ["-c", '"$0" -q -T2 -19 -k text noise && "$0" -dc text.zst noise.zst | sha256sum; '
                    '"$0" -q -b3e4i0 text >/dev/null; "$0" -d nothing'], setup=write_samples, status=1)
        yield Case(f"zlib example {text}", functools.partial(sources.zlib, "example", *flags),
                   quick=flags == ("-O2",), emulated=emulated)
        yield Case(f"zlib minigzip {text}", functools.partial(sources.zlib, "minigzip", *flags),
                   ["-9", "text", "noise"], setup=write_samples, quick=flags == ("-O2",),
                   emulated=emulated)
        yield Case(f"bzip2 {text}", functools.partial(sources.bzip2, *flags), ["-k", "text", "zeros"],
                   setup=write_samples, quick=flags == ("-Os",))
        yield Case(f"sqlite3 {text}", functools.partial(sources.sqlite, "sqlite3", *flags),
                   ["-batch", ":memory:"], stdin=sql, status=1, quick=flags == ("-O0",))
        yield Case(f"sqlite speedtest1 {text}", functools.partial(sources.sqlite, "speedtest1", *flags),
                   ["--size", "5", "--verify", ":memory:"], volatile=rb"\d+\.\d+s",
                   quick=flags == ("-O0",))
    yield Case("lua ends with an error", lua("-O2"), [f"{HERE}/fail.lua"], status=1, quick=True,
               emulated=True)
    yield Case("lua counted", lua("-O2"), script, mode="count", quick=True, emulated=True)
    yield Case("lua with all libraries", lua("-O2"), script, modules="*", quick=True, emulated=True)
    yield Case("lua counted by gcc's hooks too", functools.partial(hooked_lua, sources), script,
               mode="count", quick=True, hooks=True, files=False, emulated=True)

    yield Case("lua of this machine with all libraries", machine("lua5.4"), script, modules="*")
    yield Case("sqlite3 of this machine with all libraries", machine("sqlite3"),
               ["-batch", ":memory:"], stdin=sql, status=1, modules="*", quick=True)
    hash_seed = {"PYTHONHASHSEED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    yield Case("python", machine(PYTHON), ["-E", f"{HERE}/work.py"], env=hash_seed, status=5,
               quick=True)
    yield Case("python with all libraries", machine(PYTHON), ["-E", f"{HERE}/work.py"],
               env=hash_seed, status=5, modules="*")
    for test in ("test_json", "test_re", "test_generators", "test_exceptions", "test_signal",
                 "test_ctypes", "test_zlib", "test_bigmem",
                 "test_struct", "test_descr", "test_coroutines", "test_decimal"):
        yield Case(f"python {test}", functools.partial(python_test, sources),
                   ["-m", "test", "-q", "--randseed=1", test], env={
                       **hash_seed, "PYTHONPATH": os.path.join(sources.root, "python-tests")},
                   volatile=rb"(in |duration: |load avg: )[\d.]+ ?\w+|test_python_\S+|0x[0-9a-f]+",
                   files=False, quick=test in ("test_json", "test_generators"))
    yield Case("perl", machine("perl"), [f"{HERE}/work.pl"], env={"PERL_HASH_SEED": "0"}, status=9,
               quick=True)
    yield Case("perl with all libraries", machine("perl"), [f"{HERE}/work.pl"], modules="*",
               env={"PERL_HASH_SEED": "0"}, status=9)
    yield Case("git", machine("sh"), [f"{HERE}/git.sh"], quick=True)
    yield Case("git with all libraries", machine("sh"), [f"{HERE}/git.sh"], modules="*")
    yield Case("small tools", machine("bash"), [f"{HERE}/tools.sh"], quick=True, lost=True)
    yield Case("small tools with all libraries", machine("bash"), [f"{HERE}/tools.sh"], modules="*",
               lost=True)
    yield Case("node", machine("node"), [f"{HERE}/work.js"], status=4)
    yield Case("gcc compiling lua", functools.partial(gcc_on_lua, sources), [
        "-O2", "-S", "-o", "lvm.s", f"{sources.root}/source/lua5.4/tree/src/lvm.c"],
        env={"TMPDIR": "/tmp"})
    yield Case("gdb", machine("gdb"), ["-nx", "-batch", "-ex", "info line main", "-ex", "ptype main",
                                       "-ex", "print sizeof(long) * 3", "-ex", "nonsense"], status=1)


def shell_of(builder, flags):
    """A shell whose $0 is the program (see check_case)."""
    return ["/bin/sh", builder(*flags)]


def hooked_lua(sources):
    hooks = build_hooks(sources.machine, os.path.join(sources.root, "hooks"))
    return sources.lua("-O1", *HOOK_FLAGS, extra=[hooks])


def python_test(sources):
    path = machine(PYTHON)()
    python_tests(sources)
    return path


def gcc_on_lua(sources):
    sources.source("lua5.4")
    return machine("gcc")()


def run_case(case, machine, command, env, work):
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": work, **case.env, **env}
    return Run(*machine.command(command, env), work, case.stdin.encode(), case.timeout, setup=case.setup)


def check_case(case, machine, path, build, work):
    if isinstance(path, list):
        shell, program = path
        command = [shell, case.args[0], case.args[1], program]
    else:
        command = [path, *case.args]

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
    traced = run_case(case, machine, command,
                      trace_environment(build, data, case.mode, case.modules), f"{work}/run")
    check_same(plain, traced, normalise, case.files)
    report = Report(build, data, "--all")
    report.check_counts(case.lost)
    report.check_end(traced)
    if case.hooks:
        functions, calls = compare_hooks(machine, path, f"{work}/run/cross.txt", report, traced.pid)
        return f"{functions} functions, {calls} calls agree"
    try:
        report.check_times()
    except Fault as fault:
        raise Fault(f"same output, {summary(report, traced.pid)}; but {fault}") from fault
    return summary(report, traced.pid)


def summary(report, root):
    """Of the main process: functions traced, called, skipped (pieces of others apart); of all: calls."""
    rows = [row for row in report.functions if row["pid"] == root]
    reasons = collections.Counter(row["reason"] for row in report.skipped if row["pid"] == root)
    fragments = reasons.pop("fragment", 0)
    skips = sum(reasons.values())
    mostly = "".join(f", mostly {reason}" for reason, _ in reasons.most_common(1))
    called = sum(row["calls"] > 0 for row in rows)
    calls = sum(row["calls"] for row in report.functions)
    share = 100 * len(rows) / max(1, len(rows) + skips)
    return (f"{len(rows)} functions traced ({share:.1f} %), {skips} skipped{mostly}, {fragments} "
            f"fragments, {called} called, {calls} "
            f"calls in {len(report.json['processes'])} processes")


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

# SPDX-License-Identifier: MIT
"""What tests/target and tests/real share: run a program, read its report, compare, sum up."""
import concurrent.futures
import fnmatch
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess

from machine import machine_of

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
COUNTS = ("calls", "returned", "unwound", "open")


class Fault(Exception):
    """What a program or the report got wrong, in one line."""


class Missing(Exception):
    """Something this machine does not have: the case is skipped."""


class Run:
    """What one run of a program left behind."""

    def __init__(self, command, env, work, stdin=b"", timeout=120, limits=(), setup=None,
                 processors=1, user=None):
        """@user: to run as, who gets the directory @work."""
        os.makedirs(work)
        if setup:
            setup(work)
        groups = None
        if user:
            os.chmod(os.path.dirname(work), 0o755)
            shutil.chown(work, user)
            groups = ()
        with subprocess.Popen(
            command, cwd=work, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True, user=user, extra_groups=groups,
            preexec_fn=lambda: set_limits([*limits, ("cpu", 2 * timeout * processors)]),
        ) as process:
            self.pid = process.pid
            try:
                self.out, self.err = process.communicate(stdin, timeout)
            except subprocess.TimeoutExpired as late:
                os.killpg(process.pid, signal.SIGKILL)
                self.out, self.err = process.communicate()
                raise Fault(f"still running after {timeout} s; {self.tail()}") from late
            self.status = process.returncode
        self.files = {}
        for path, _, names in os.walk(work):
            for name in names:
                self.files[os.path.relpath(os.path.join(path, name), work)] = \
                    digest(os.path.join(path, name))

    def status_text(self):
        return f"signal {-self.status}" if self.status < 0 else str(self.status)

    def tail(self):
        return f"stdout ends {self.out[-200:]!r}, stderr ends {self.err[-300:]!r}"


def digest(path):
    if not os.path.isfile(path) or os.path.islink(path):
        return "special"
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def set_limits(limits):
    """Of processor time too: a program in an endless loop must not outlive a killed harness."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name, value in limits:
        which = getattr(resource, "RLIMIT_" + name.upper())
        resource.setrlimit(which, (value, resource.getrlimit(which)[1]))


def check_same(plain, traced, normalise=lambda text: text, files=True):
    """Fault when the traced run shows anything that the plain one does not."""
    if plain.status != traced.status:
        raise Fault(f"status {plain.status_text()} became {traced.status_text()}; {traced.tail()}")
    for what in ("out", "err"):
        before, after = normalise(getattr(plain, what)), normalise(getattr(traced, what))
        if before != after:
            at = next((i for i, (a, b) in enumerate(zip(before, after)) if a != b),
                      min(len(before), len(after)))
            raise Fault(f"std{what} differs at byte {at}: {before[at:at + 200]!r} became "
                        f"{after[at:at + 200]!r}")
    if files and plain.files != traced.files:
        names = {name for name, _ in plain.files.items() ^ traced.files.items()}
        raise Fault(f"files differ: {' '.join(sorted(names))[:300]}")


class Report:
    """What ftr-report says about one data directory."""

    def __init__(self, build, data, *options, damaged=False):
        """@damaged: files may be half written, which the report says by its status 1."""
        done = subprocess.run(
            [machine_of(build).report, "--data", data, "--format", "json", *options],
            capture_output=True, text=True, check=False, errors="replace")
        if done.returncode not in ((0, 1) if damaged and done.stdout else (0,)):
            raise Fault(f"ftr-report: status {done.returncode}: {done.stderr.strip()[:300]}")
        self.json = json.loads(done.stdout)
        self.functions = self.json["functions"]
        self.skipped = self.json["skipped"]

    def generation(self, pid, root):
        """0 for the traced command, 1 for its children, 2 for theirs."""
        parents = {process["pid"]: process["ppid"] for process in self.json["processes"]}
        depth = 0
        while pid != root and pid in parents and depth < 100:
            pid = parents[pid]
            depth += 1
        return depth

    def pids(self, who, root):
        depth = {"": 0, "child": 1, "grandchild": 2}.get(who)
        pids = {process["pid"] for process in self.json["processes"]}
        return {pid for pid in pids if depth is None or self.generation(pid, root) == depth}

    def select(self, name, root, rows):
        """Rows of a function; `child:name`, `grandchild:name` and `all:name` choose processes."""
        who, name = name.split(":", 1) if re.match(r"(child|grandchild|all):", name) else ("", name)
        pids = self.pids(who, root)
        return [row for row in rows if row["pid"] in pids and matches(row, name)]

    def check_counts(self, lost_allowed=False, let_go=False):
        lost = dict(self.json["lost"])
        if bool(lost.pop("functions")) != let_go or any(lost.values()) and not lost_allowed:
            raise Fault(f"lost: {self.json['lost']}")
        for row in self.functions:
            if row["calls"] != row["returned"] + row["unwound"] + row["open"]:
                raise Fault(f"does not add up: {row}")
            if any(row[field] < 0 for field in COUNTS):
                raise Fault(f"impossible numbers: {row}")

    def check_reach(self, number):
        """@number functions are said to be out of reach."""
        found = sum(row["reason"] == "out-of-reach" for row in self.skipped)
        if found != number:
            raise Fault(f"{number} functions are said to be out of reach, the report has {found}")

    def check_times(self, several_stacks=False):
        """
        Time is the wall's: that of frames open on several stacks of one thread at the same time
        overlaps, so that self may exceed total. Total is booked when the outermost activation ends;
        a signal handler that calls the function it has interrupted, before the clock of the
        interrupted call was read, is not in it: one part in a hundred is allowed for that.
        """
        for row in self.functions:
            if row["total_ns"] is None:  # count mode
                continue
            settled = not row["open"] and not several_stacks
            if (row["self_ns"] > row["total_ns"] * 1.01 and settled) or (
                    row["min_ns"] is not None and row["min_ns"] > row["max_ns"]):
                raise Fault(f"impossible times: {row}")

    def check_end(self, run, unseen=False):
        ends = [p for p in self.json["processes"] if p["pid"] == run.pid]
        if not ends:
            raise Fault("the traced process is not in the report")
        last = ends[-1]
        wrong = last["end"] == "running" or \
            (last["end"] == "exit" and (run.status < 0 or last["status"] not in (None, run.status))) or \
            (last["end"] == "signal" and run.status >= 0 and not unseen)
        if wrong:
            raise Fault(f"ended with status {run.status_text()}, the report says {last}")


def matches(row, pattern):
    """Whether a row is the function @pattern: its symbol, name, alias, or a C++ name as in the source."""
    names = [row["name"], row["symbol"] or "", *row["aliases"]]
    mangled = rf"_ZL?{len(pattern)}{re.escape(pattern)}\w*"
    return (any(fnmatch.fnmatchcase(name, pattern) or re.fullmatch(mangled, name) for name in names)
            or "::" in pattern and row["name"].split("(")[0] == pattern)


def trace_environment(build, data, mode, modules=None):
    env = {"LD_PRELOAD": f"{build}/libftr.so", "FTR_DATA": data, "FTR_MODE": mode}
    return {**env, "FTR_MODULES": modules} if modules else env


HOOK_FLAGS = ["-finstrument-functions", "-fno-inline", "-fno-partial-inlining"]


def build_hooks(machine, directory):
    """The object that counts calls by gcc's own hooks, for programs built with HOOK_FLAGS."""
    os.makedirs(directory, exist_ok=True)
    target = os.path.join(directory, "hooks.o")
    subprocess.run([*machine.compiler("gcc"), "-O2", "-g", "-c", "-o", target, f"{HERE}/cross/hooks.c"], check=True)
    return target


def compare_hooks(machine, exe, counts, report, pid):
    """What the hooks wrote to the file @counts against the report: (functions, calls) compared."""
    with open(counts, encoding="utf-8") as file:
        hooked = [line.split() for line in file]
    symbols = {}
    listed = subprocess.run([machine.tool("nm"), "--defined-only", exe], capture_output=True, text=True,
                            check=True).stdout
    for address, _, name in (line.split(None, 2) for line in listed.splitlines()):
        symbols.setdefault(int(address, 16), []).append(name)
    compared, total = 0, 0
    for address, calls in hooked:
        address, calls = int(address, 16), int(calls)
        at = [row for row in report.skipped if row["pid"] == pid and number(row["address"]) == address]
        if at:
            continue
        found = sum(row["calls"] for row in report.functions
                    if row["pid"] == pid and number(row["address"]) == address
                    and row["symbol"] in symbols[address])
        if found != calls:
            raise Fault(f"{symbols[address][0]}: gcc's hooks counted {calls} calls, ftr {found}")
        compared, total = compared + 1, total + calls
    if not compared:
        raise Fault("nothing to compare")
    return compared, total


def number(address):
    return address if isinstance(address, int) else int(address, 16)


def find_build(argument):
    """The build directory: the one asked for, else the newest that holds libftr.so."""
    if argument:
        return os.path.abspath(argument)
    found = [os.path.join(TOP, name) for name in os.listdir(TOP) if name.startswith("build")]
    found = [path for path in found if os.path.isdir(path)]
    found += [os.path.join(path, name) for path in found for name in os.listdir(path)]
    found = [path for path in found if os.path.exists(f"{path}/libftr.so")]
    return max(found, key=lambda path: os.path.getmtime(f"{path}/libftr.so"), default=None)


def run_all(checks, skipped, jobs):
    """
    Run @checks, pairs of a title and a function that gives a remark or raises Fault or Missing;
    print a line for each and the sum. Returns the exit status.
    """
    passed, failed = 0, 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        tasks = [(title, pool.submit(check)) for title, check in checks]
        for title, task in tasks:
            try:
                remark = task.result()
                passed += 1
                print(f"ok   {title}" + (f": {remark}" if remark else ""), flush=True)
            except Missing as missing:
                skipped.append((title, f"needs {missing}"))
            except Fault as fault:
                failed += 1
                print(f"FAIL {title}\n     {fault}", flush=True)
    for title, reason in skipped:
        print(f"skip {title}: {reason}")
    print(f"{passed} passed, {failed} failed, {len(skipped)} skipped")
    return 1 if failed else 0

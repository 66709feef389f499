#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What servers get done while they are traced, and at what CPU time, beside the same untraced.

The server alone is traced; its clients are not. A round runs every way to trace once, on a new
server with the same load; the figures are medians of the rounds' ratios to the untraced run of the
same round, so that what else the machine does matters little.
"""
import argparse
import contextlib
import glob
import os
import pwd
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

from sources import TOP  # first: it finds the harness
from harness import Fault, find_build, trace_environment

WAYS = (("untraced", None, None), ("program, count", "count", None),
        ("program, profile", "profile", None), ("every module, count", "count", "*"),
        ("every module, profile", "profile", "*"))
USER = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name  # postgres refuses root


@dataclass
class Load:
    """@run does @requests; @answer is what the server must hold afterwards."""
    name: str
    requests: int
    run: object
    answer: object


class Server:
    """A server in the directory @work, traced when its environment says so, until stop()."""

    def __init__(self, work, env):
        self.work = work
        self.env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": work}
        self.process = self.start({**self.env, **env})
        try:
            self.wait()
        except BaseException:
            self.stop()
            raise

    def spawn(self, words, env, **options):
        return subprocess.Popen(words, cwd=self.work, env=env, user=USER, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)

    def client(self, *words):
        """Run a client, which must succeed; its output."""
        done = subprocess.run(words, cwd=self.work, env=self.env, user=USER, capture_output=True, text=True,
                              timeout=600, check=False)
        if done.returncode:
            raise Fault(f"{words[0]}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def wait(self):
        """Until it answers, a minute at most."""
        for _ in range(600):
            with contextlib.suppress(Fault):
                return self.ping()
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise Fault("the server does not answer")

    def cpu(self):
        """Seconds that it has used, with the children it has waited for: proc(5), stat, from field 14."""
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            ticks = file.read().rpartition(")")[2].split()[11:15]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Redis(Server):
    def start(self, env):
        return self.spawn(["redis-server", "--port", "0", "--unixsocket", f"{self.work}/socket", "--save", ""], env)

    def ping(self):
        return self.client("redis-cli", "-s", "socket", "ping")

    def benchmark(self, requests, *words):
        self.client("redis-benchmark", "-s", "socket", "-q", "-c", "20", "-n", str(requests), *words)

    def loads(self, scale):
        def value(*words):
            return self.client("redis-cli", "-s", "socket", *words).strip()

        single, many = 50000 * scale, 400000 * scale
        return (Load("redis: incr", single, lambda: self.benchmark(single, "incr", "counter"),
                     lambda: value("get", "counter") == str(single)),
                Load("redis: lpush, 16 in a pipeline", many,
                     lambda: self.benchmark(many, "-P", "16", "lpush", "list", "element"),
                     lambda: value("llen", "list") == str(many)))


class Postgres(Server):
    def start(self, env):
        bins = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        self.env = {**self.env, "PATH": ":".join([*bins, self.env["PATH"]]), "PGHOST": self.work,
                    "PGUSER": "me", "PGDATABASE": "postgres", "PGDATA": f"{self.work}/db"}
        self.client("initdb", "-A", "trust", "-N", "-U", "me", "--no-locale", "-E", "UTF8")
        return self.spawn([f"{bins[-1]}/postgres", "-k", self.work, "-c", "listen_addresses=", "-c", "fsync=off",
                           "-c", "autovacuum=off"], {**self.env, **env})

    def ping(self):
        return self.client("psql", "-c", "select 1")

    def benchmark(self, transactions, *words):
        out = self.client("pgbench", "-n", "-c", "4", "--random-seed=7", "-t", str(transactions // 4), *words)
        if not re.search(rf"processed: {transactions}/{transactions}\n", out):
            raise Fault(f"pgbench: {out}")

    def loads(self, scale):
        def sums():
            return self.client("psql", "-At", "-c", "select (select sum(abalance) from pgbench_accounts),"
                               " sum(delta), count(*) from pgbench_history").strip().split("|")

        self.client("pgbench", "-i", "-q")
        reads, writes = 8000 * scale, 2000 * scale
        return (Load("postgres: pgbench -S", reads, lambda: self.benchmark(reads, "-S"), lambda: True),
                Load("postgres: pgbench", writes, lambda: self.benchmark(writes),
                     lambda: sums()[0] == sums()[1] and sums()[2] == str(writes)))


def measure(server_class, build, way, scale):
    """{load's name: (seconds, CPU seconds of the server) per request} of a new server."""
    _, mode, modules = way
    work = tempfile.mkdtemp(prefix="ftr-throughput-")
    try:
        shutil.copy(f"{build}/libftr.so", work)  # which @USER may not be able to read
        shutil.chown(work, USER)
        server = server_class(work, trace_environment(work, f"{work}/data", mode, modules) if mode else {})
        try:
            figures = {}
            for load in server.loads(scale):
                wall, cpu = time.monotonic(), server.cpu()
                load.run()
                figures[load.name] = ((time.monotonic() - wall) / load.requests,
                                      (server.cpu() - cpu) / load.requests)
                if not load.answer():
                    raise Fault(f"{load.name}, {way[0]}: a wrong answer")
            return figures
        finally:
            server.stop()
    finally:
        shutil.rmtree(work, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", help="build directory")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=int, default=1, help="how much to do in a round")
    options = parser.parse_args()
    build = find_build(options.build)
    if not build:
        sys.exit(f"throughput: no build directory with libftr.so in {TOP}; give --build DIR")
    rounds = []  # of {load's name: {way: (seconds, CPU seconds)}}
    for number in range(options.rounds):
        figures = {}
        for way in WAYS:
            for server_class in (Redis, Postgres):
                for name, figure in measure(server_class, build, way, options.scale).items():
                    figures.setdefault(name, {})[way[0]] = figure
        rounds.append(figures)
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    print("| load | traced | throughput | server's CPU time |\n|---|---|---|---|")
    for name in rounds[0]:
        for way, _, _ in WAYS[1:]:
            slower, cpu = (statistics.median(figures[name][way][i] / figures[name]["untraced"][i]
                                             for figures in rounds) for i in (0, 1))
            print(f"| {name} | {way} | {1 / slower:.2f} | {cpu:.2f} |")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Fault as fault:
        sys.exit(f"throughput: {fault}")

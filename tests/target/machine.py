# SPDX-License-Identifier: MIT
"""The machine that traced programs are built for and run on: this one, or one that qemu-user
emulates, as the build directory's machine.json says (cmake/tests.cmake writes it)."""
import functools
import json
import os
import platform
import shutil
import subprocess

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../qemu/run.sh")
CPUS = {"aarch64": "arm64", "ppc64le": "powerpc"}  # x86_64 is called the same everywhere
# What the emulated models have, as /proc/cpuinfo names it.
FEATURES = {"arm64": {"paca", "bti", "sve", "sve2"}, "powerpc": {"power8", "power9", "power10"}}


class Machine:
    """@cpu is the name of a directory in arch/; @report an ftr-report that runs here."""

    def __init__(self, build, cpu=None, triplet=None, sysroot=None, report=None):
        self.cpu = cpu or CPUS.get(platform.machine(), platform.machine())
        self.triplet = triplet
        self.sysroot = sysroot
        self.report = report or f"{build}/ftr-report"

    @property
    def tells_unwound(self):
        """Whether frames keep their return address where it can be looked up: its absence tells of an end."""
        return self.cpu != "arm64"

    def compiler(self, name):
        """The words of gcc, g++, clang or clang++ for this machine."""
        if not self.triplet:
            return [name]
        if name.startswith("clang"):
            return [name, f"--target={self.triplet}", f"--sysroot={self.sysroot}"]
        return [f"{self.triplet}-{name}", f"--sysroot={self.sysroot}"]

    def tool(self, name):
        """The name of a binary utility (nm, strip)."""
        return f"{self.triplet}-{name}" if self.triplet else name

    def command(self, words, env):
        """(words, env) that run the program words[0] with its arguments and environment."""
        if not self.triplet:
            return words, env
        env = dict(env)
        preload = [f"LD_PRELOAD={env.pop('LD_PRELOAD')}"] if "LD_PRELOAD" in env else []
        options = [word for value in preload for word in ("-E", value)]
        return ["sh", RUN, self.cpu, self.sysroot, *options, *words], env

    @functools.cached_property
    def executes(self):
        """Whether a program can start others of this machine."""
        if not self.triplet:
            return True
        look = ["sh", RUN, self.cpu, self.sysroot, "/proc/sys/fs/binfmt_misc/ftr"]
        return subprocess.run(look, env={**os.environ, "FTR_QEMU": shutil.which("cat")}, check=False,
                              capture_output=True).returncode == 0

    def has(self, word):
        """Whether there is what a program `needs:` (tests/target/README.md)."""
        if word in ("x86_64", "arm64", "powerpc"):
            return self.cpu == word
        if word == "kernel":
            return not self.triplet
        if word == "execve":
            return self.executes
        if word in ("gcc", "clang"):
            return shutil.which(self.compiler(word)[0]) is not None
        if self.triplet:
            return word in FEATURES[self.cpu]
        if word == "root":
            return os.geteuid() == 0
        if word.startswith("/"):
            return os.path.exists(word)
        if shutil.which(word):
            return True
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return word in file.read().split()


@functools.lru_cache(maxsize=None)
def machine_of(build):
    """That of a build directory; this one where it does not say, or without a build directory."""
    if build and os.path.exists(f"{build}/machine.json"):
        with open(f"{build}/machine.json", encoding="utf-8") as file:
            return Machine(build, **json.load(file))
    return Machine(build)

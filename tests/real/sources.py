# SPDX-License-Identifier: MIT
"""Programs built from Debian's sources, without installing anything, and kept for the next time.

The package lists and sources are fetched with apt's own tools into a folder of the tests' own:
the machine's package state is not touched.
"""
import glob
import os
import shutil
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../target"))
from harness import TOP, Fault, Missing  # noqa: E402

MIRROR = "http://deb.debian.org/debian"
SUITE = "bookworm"


class Sources:
    """Sources below @root/source, programs for @machine below @root/programs."""

    def __init__(self, root, machine):
        self.root = root
        self.machine = machine
        self.apt_ready = False
        self.lock = threading.Lock()  # one fetches or builds at a time

    def apt(self, *words, cwd=None):
        if not shutil.which("apt-get"):
            raise Missing("apt-get")
        home = os.path.join(self.root, "apt")
        if not self.apt_ready:
            self.apt_ready = True
            for name in ("lists/partial", "cache/archives/partial"):
                os.makedirs(os.path.join(home, name), exist_ok=True)
            with open(f"{home}/sources.list", "w", encoding="utf-8") as file:
                file.write(f"deb {MIRROR} {SUITE} main\ndeb-src {MIRROR} {SUITE} main\n")
            self.apt("update")
        done = subprocess.run(
            ["apt-get", "-q", "-o", f"Dir::Etc::sourcelist={home}/sources.list",
             "-o", "Dir::Etc::sourceparts=-", "-o", f"Dir::State::lists={home}/lists",
             "-o", f"Dir::Cache={home}/cache", "-o", "APT::Sandbox::User=root", *words],
            cwd=cwd, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Missing(f"apt-get {' '.join(words)}: {done.stderr.strip()[-200:]}")

    def source(self, package):
        """The directory of the package's unpacked source."""
        place = os.path.join(self.root, "source", package)
        if not os.path.exists(f"{place}/ready"):
            shutil.rmtree(place, ignore_errors=True)
            os.makedirs(place)
            self.apt("source", "--download-only", package, cwd=place)
            self.command(["dpkg-source", "--skip-patches", "-x", glob.glob(f"{place}/*.dsc")[0], f"{place}/tree"], place)
            with open(f"{place}/ready", "w", encoding="utf-8"):
                pass
        return f"{place}/tree"

    def package(self, package):
        """The directory of a binary package's unpacked files."""
        place = os.path.join(self.root, "source", package)
        if not os.path.exists(f"{place}/ready"):
            shutil.rmtree(place, ignore_errors=True)
            os.makedirs(place)
            self.apt("download", package, cwd=place)
            self.command(["dpkg", "-x", glob.glob(f"{place}/*.deb")[0], f"{place}/tree"], place)
            with open(f"{place}/ready", "w", encoding="utf-8"):
                pass
        return f"{place}/tree"

    def command(self, words, cwd):
        done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Fault(f"{' '.join(words)[:150]}: {done.stderr.strip()[-400:]}")

    def program(self, name, flags, parts, cwd, late=()):
        """One cc command, unless its result is there already."""
        variant = "".join(c if c.isalnum() else "_" for c in " ".join(flags)).strip("_")
        target = os.path.join(self.root, "programs", f"{name}-{variant}", name)
        if not os.path.exists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            name, *options = flags if flags[0] == "clang" else ("gcc", *flags)
            if not self.machine.has(name):
                raise Missing(name)
            self.command([*self.machine.compiler(name), *options, "-g1", "-w", "-o", target + ".new", *parts, *late], cwd)
            os.rename(target + ".new", target)
        return target

    def lua(self, *flags, extra=()):
        tree = self.source("lua5.4") + "/src"
        parts = sorted(set(glob.glob(f"{tree}/*.c")) - {f"{tree}/luac.c"})
        return self.program("lua", flags, ["-std=gnu99", "-DLUA_USE_LINUX", "-Wl,-E", *parts, *extra],
                            tree, ["-lm", "-ldl"])

    def zstd(self, *flags):
        tree = self.source("libzstd")
        parts = [path for name in ("lib/common/*.c", "lib/compress/*.c", "lib/decompress/*.[cS]",
                                   "lib/dictBuilder/*.c", "programs/*.c")
                 for path in sorted(glob.glob(f"{tree}/{name}"))]
        return self.program("zstd", flags, [
            "-DZSTD_MULTITHREAD", "-DZSTD_LEGACY_SUPPORT=0", "-pthread", f"-I{tree}/lib",
            f"-I{tree}/lib/common", *parts], tree)

    def zlib(self, main, *flags):
        tree = self.source("zlib")
        return self.program(main, flags, [
            "-DHAVE_UNISTD_H", f"-I{tree}", f"{tree}/test/{main}.c", *sorted(glob.glob(f"{tree}/*.c"))],
            tree)

    def bzip2(self, *flags):
        tree = self.source("bzip2")
        names = "blocksort huffman crctable randtable compress decompress bzlib bzip2"
        return self.program("bzip2", flags, [f"{tree}/{name}.c" for name in names.split()], tree)

    def sqlite(self, main, *flags):
        """The shell or a test program, on the amalgamation (which takes tclsh to make)."""
        tree = self.source("sqlite3")
        if not shutil.which("tclsh"):
            raise Missing("tclsh")
        made = f"{tree}/made"
        if not os.path.exists(f"{made}/shell.c"):
            shutil.rmtree(made, ignore_errors=True)
            os.makedirs(made)
            self.command(["../configure", "--disable-tcl"], made)
            self.command(["make", "sqlite3.c", "shell.c"], made)
        source = f"{made}/shell.c" if main == "sqlite3" else f"{tree}/test/{main}.c"
        return self.program(main, flags, [
            f"-I{made}", "-DSQLITE_ENABLE_FTS5", "-DSQLITE_ENABLE_RTREE", source, f"{made}/sqlite3.c",
            "-pthread"], tree, ["-lm", "-ldl"])

# SPDX-License-Identifier: MIT
"""The programs, and what each is to do."""
import functools
import glob
import os
import shutil
from dataclasses import dataclass, field

from sources import HERE, TOP  # first: it finds the harness
from harness import HOOK_FLAGS, Missing, build_hooks

WORK = f"{HERE}/work"
PATH = os.environ["PATH"] + ":/usr/sbin"  # where servers are
PYTHON = "/usr/bin/python3.11"  # the one that Debian's package of tests belongs to
NATIVE = {"arm64": "-mbranch-protection=standard", "powerpc": "-mcpu=power10"}
HASH_SEED = {"PYTHONHASHSEED": "1", "PYTHONDONTWRITEBYTECODE": "1"}


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
    timeout: int = 300
    volatile: str = None  # what differs from run to run anyway, as a pattern
    setup: object = None  # makes files in the work directory
    files: bool = True
    lost: bool = False
    stacks: bool = False  # frames of several stacks overlap in time
    hooks: bool = False
    emulated: bool = False  # quick enough under qemu, which runs nothing but programs of this build
    main: str = None  # the program that it is about, where that is not @program
    port: bool = False  # $PORT is a free one
    user: str = None  # to run as, where this is root


def find_program(name):
    """Its path on this machine, links followed; None: there is none. @name may be a pattern."""
    found = sorted(glob.glob(name)) if "/" in name else [shutil.which(name, path=PATH)]
    return os.path.realpath(found[-1]) if found and found[-1] else None


def machine(*names):
    """A program that is installed, with the others that the case needs."""
    def find():
        for name in names:
            if not find_program(name):
                raise Missing(name)
        return find_program(names[0])
    return find


def by_script(name, *tools, arguments=(), main=None):
    """
    What a Case needs to run a script of work/, which uses @tools and is about the first or @main. A
    shell gets its text: another user may not be able to read the file.
    """
    with open(f"{WORK}/{name}", encoding="utf-8") as file:
        text = file.read()
    return {"program": machine("sh", *tools), "args": ["-c", text, name, *arguments],
            "main": main or tools[0]}


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

    run_lua = [f"{WORK}/lua.lua", "argument"]
    with open(f"{WORK}/sqlite3.sql", encoding="utf-8") as file:
        sql = file.read()
    native = NATIVE.get(sources.machine.cpu, "-march=native")
    for flags in (("-O2",), ("-Os",), ("-O0",), ("-O3", native), ("-O2", "-fno-pie", "-no-pie"),
                  ("clang", "-O2")):
        text = " ".join(flags)
        quick = flags in (("-O2",), ("-Os",))
        emulated = flags == ("-O3", native)
        yield Case(f"lua {text}", lua(*flags), run_lua, quick=quick, emulated=emulated)
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
    flags = ("-O3", native) if sources.machine.triplet else ("-O2",)  # there is such a one already
    yield Case("lua ends with an error", lua(*flags), [f"{WORK}/fail.lua"], status=1, quick=True,
               emulated=True)
    yield Case("lua counted", lua("-O2"), run_lua, mode="count", quick=True)
    yield Case(f"lua {' '.join(flags)} with all libraries", lua(*flags), run_lua, modules="*", emulated=True)
    yield Case("lua counted by gcc's hooks too", functools.partial(hooked_lua, sources), run_lua,
               mode="count", quick=True, hooks=True, files=False, emulated=True)
    for test in ("test_json", "test_re", "test_generators", "test_exceptions", "test_signal",
                 "test_ctypes", "test_zlib", "test_bigmem",
                 "test_struct", "test_descr", "test_coroutines", "test_decimal"):
        yield Case(f"python {test}", quick=test == "test_json", **python_test(sources, test))
    yield Case("gcc compiling lua", functools.partial(gcc_on_lua, sources), [
        "-O2", "-S", "-o", "lvm.s", f"{sources.root}/source/lua5.4/tree/src/lvm.c"],
        env={"TMPDIR": "/tmp"}, main="cc1")
    yield from well_known(sources, sql)


def everything(name, quick="profile", **more):
    """With every library, in both modes; the quick subset has it in the mode @quick."""
    for mode in ("count", "profile"):
        yield Case(f"{name} with all libraries, {mode}", modules="*", mode=mode, quick=quick == mode,
                   **more)


def well_known(sources, sql):
    """Programs of this machine at work, the C library and the loader traced with them."""
    def compressor(*words):
        return {**by_script("compress.sh", words[0], arguments=words), "setup": write_samples}

    postgres = {**by_script("postgres.sh", "/usr/lib/postgresql/*/bin/postgres"), "user": "nobody"}
    squares = "".join(f"{n} {n * n}\n" for n in range(20000))
    yield from everything("bash", "count", program=machine("bash"), args=[f"{WORK}/bash.sh"], lost=True)
    yield from everything("busybox", program=machine("busybox"), args=["sh", f"{WORK}/busybox.sh"],
                          status=9)
    yield from everything("bzip2", **compressor("bzip2", "-9"))
    yield from everything("clang", "count", **by_script("gcc.sh", "clang", arguments=("clang", TOP)))
    yield from everything("cmake", "count", **by_script("cmake.sh", "cmake", "make", "gcc"))
    yield from everything("curl", **by_script("curl.sh", "curl", "/usr/bin/python3"))
    yield from everything("g++", "count", **by_script("c++.sh", "g++", arguments=["g++"], main="cc1plus"))
    yield from everything("gawk", program=machine("gawk"), args=["-f", f"{WORK}/gawk.awk"], stdin=squares,
                          status=4)
    yield from everything("gcc", **by_script("gcc.sh", "gcc", arguments=("gcc", TOP), main="cc1"))
    yield from everything("gdb", **by_script("gdb.sh", "gdb", "gcc"))
    yield from everything("git", "count", **by_script("git.sh", "git"))
    yield from everything("gzip", "count", **compressor("gzip", "-9n"))
    yield from everything("lua", "count", program=machine("lua5.4"), args=[f"{WORK}/lua.lua", "argument"])
    yield from everything("make", **by_script("make.sh", "make", "gcc"))
    yield from everything("nginx", **by_script("nginx.sh", "nginx", "ab", "curl"), port=True)
    yield from everything("node", program=machine("node"), args=[f"{WORK}/node.js"], status=4)
    yield from everything("openssl", **by_script("openssl.sh", "openssl", "perl"), port=True)
    yield from everything("perl", "count", program=machine("perl"), args=[f"{WORK}/perl.pl"], status=9,
                          env={"PERL_HASH_SEED": "0"})
    yield from everything("php", program=machine("php"), args=["-n", f"{WORK}/php.php"], status=6,
                          stacks=True)
    yield from everything("postgres", **postgres)
    yield from everything("postgres compiling", None, **postgres, env={"JIT": "on"})
    yield from everything("python", program=machine(PYTHON), args=["-E", f"{WORK}/python.py"], status=5,
                          env=HASH_SEED)
    for test in ("test_generators", "test_re", "test_thread", "test_fork1", "test_descr"):
        yield from everything(f"python {test}", "count" if test == "test_generators" else None,
                              **python_test(sources, test))
    yield from everything("redis", **by_script("redis.sh", "redis-server", "redis-cli", "redis-benchmark"))
    yield from everything("rsync", "count", **by_script("rsync.sh", "rsync"))
    yield from everything("ruby", program=machine("ruby"), args=[f"{WORK}/ruby.rb"], status=7, stacks=True)
    yield from everything("sqlite3", program=machine("sqlite3"), args=["-batch", ":memory:"], stdin=sql,
                          status=1)
    yield from everything("tar", "count", **by_script("tar.sh", "tar", "gzip", "bzip2", "xz", "zstd"))
    yield from everything("tcl", program=machine("tclsh"), args=[f"{WORK}/tcl.tcl"], status=5)
    yield from everything("vim", program=machine("vim"), status=5,
                          args=["-es", "-u", "NONE", "-i", "NONE", "-S", f"{WORK}/vim.vim"])
    yield from everything("xz", **compressor("xz", "-T2", "--block-size=100KiB"))
    yield from everything("zstd", "count", **compressor("zstd", "-q", "-T2", "-12"))


def shell_of(builder, flags):
    """A shell whose $0 is the program (see check_case)."""
    return ["/bin/sh", builder(*flags)]


def hooked_lua(sources):
    hooks = build_hooks(sources.machine, os.path.join(sources.root, "hooks"))
    return sources.lua("-O1", *HOOK_FLAGS, extra=[hooks])


def python_test(sources, test):
    """What a Case needs to run one of Python's own regression tests."""
    def find():
        path = machine(PYTHON)()
        python_tests(sources)
        return path
    return {"program": find, "args": ["-m", "test", "-q", "--randseed=1", test], "files": False,
            "env": {**HASH_SEED, "PYTHONPATH": os.path.join(sources.root, "python-tests")},
            "volatile": rb"(in |duration: |load avg: )[\d.]+ ?\w+|test_python_\S+|0x[0-9a-f]+"}


def gcc_on_lua(sources):
    sources.source("lua5.4")
    return machine("gcc")()



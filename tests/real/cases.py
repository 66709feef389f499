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


def script(name, *arguments):
    """The arguments with which a shell runs a script of work/ by its text: another user may not
    be able to read the file."""
    with open(f"{WORK}/{name}", encoding="utf-8") as file:
        return ["-c", file.read(), name, *arguments]
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
        emulated = quick or flags[-1] == native
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
    yield Case("lua ends with an error", lua("-O2"), [f"{WORK}/fail.lua"], status=1, quick=True,
               emulated=True)
    yield Case("lua counted", lua("-O2"), run_lua, mode="count", quick=True, emulated=True)
    yield Case("lua -O2 with all libraries", lua("-O2"), run_lua, modules="*", emulated=True)
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


def everything(name, program, args=(), quick="profile", **more):
    """With every library, in both modes; the quick subset has it in the mode @quick."""
    for mode in ("count", "profile"):
        yield Case(f"{name} with all libraries, {mode}", program, list(args), modules="*", mode=mode,
                   quick=quick == mode, **more)


def well_known(sources, sql):
    """Programs of this machine at work, the C library and the loader traced with them."""
    yield from everything("bash", machine("bash"), script("bash.sh"), quick="count", lost=True)
    yield from everything("bzip2", machine("sh", "bzip2"), script("compress.sh", "bzip2", "-9"),
                          setup=write_samples, main="bzip2")
    yield from everything("busybox", machine("busybox"), ["sh", *script("busybox.sh")], status=9)
    yield from everything("cmake", machine("sh", "cmake", "make", "gcc"), script("cmake.sh"), "count",
                          main="cmake")
    yield from everything("clang", machine("sh", "clang"), script("gcc.sh", "clang", TOP), "count",
                          main="clang")
    yield from everything("curl", machine("sh", "curl", "/usr/bin/python3"), script("curl.sh"), main="curl")
    yield from everything("g++", machine("sh", "g++"), script("c++.sh", "g++"), "count", main="cc1plus")
    yield from everything("gawk", machine("gawk"), ["-f", f"{WORK}/gawk.awk"], status=4,
                          stdin="".join(f"{n} {n * n}\n" for n in range(20000)))
    yield from everything("gcc", machine("sh", "gcc"), script("gcc.sh", "gcc", TOP), main="cc1")
    yield from everything("gdb", machine("sh", "gdb", "gcc"), script("gdb.sh"), main="gdb")
    yield from everything("git", machine("sh", "git"), script("git.sh"), "count", main="git")
    yield from everything("gzip", machine("sh", "gzip"), script("compress.sh", "gzip", "-9n"), "count",
                          setup=write_samples, main="gzip")
    yield from everything("lua", machine("lua5.4"), [f"{WORK}/lua.lua", "argument"], "count")
    yield from everything("make", machine("sh", "make", "gcc"), script("make.sh"), main="make")
    yield from everything("nginx", machine("sh", "nginx", "ab", "curl"), script("nginx.sh"), main="nginx",
                          port=True)
    yield from everything("node", machine("node"), [f"{WORK}/node.js"], status=4)
    yield from everything("openssl", machine("sh", "openssl"), script("openssl.sh"), main="openssl", port=True)
    yield from everything("perl", machine("perl"), [f"{WORK}/perl.pl"], "count", status=9,
                          env={"PERL_HASH_SEED": "0"})
    yield from everything("php", machine("php"), ["-n", f"{WORK}/php.php"], status=6, stacks=True)
    yield from everything("postgres", machine("sh", "/usr/lib/postgresql/*/bin/postgres"), script("postgres.sh"), main="postgres",
                          user="nobody")
    yield from everything("python", machine(PYTHON), ["-E", f"{WORK}/python.py"], status=5,
                          env=HASH_SEED)
    for test in ("test_generators", "test_re", "test_threading", "test_descr"):
        yield from everything(f"python {test}", quick="count" if test == "test_generators" else None,
                              **python_test(sources, test))
    yield from everything("redis", machine("sh", "redis-server", "redis-cli", "redis-benchmark"),
                          script("redis.sh"), main="redis-server")
    yield from everything("rsync", machine("sh", "rsync"), script("rsync.sh"), "count", main="rsync")
    yield from everything("ruby", machine("ruby"), [f"{WORK}/ruby.rb"], status=7, stacks=True)
    yield from everything("sqlite3", machine("sqlite3"), ["-batch", ":memory:"], stdin=sql, status=1)
    yield from everything("tar", machine("sh", "tar", "gzip", "bzip2", "xz", "zstd"), script("tar.sh"), "count",
                          main="tar")
    yield from everything("tcl", machine("tclsh"), [f"{WORK}/tcl.tcl"], status=5)
    yield from everything("vim", machine("vim"), ["-es", "-u", "NONE", "-i", "NONE", "-S", f"{WORK}/vim.vim"],
                          status=5)
    yield from everything("xz", machine("sh", "xz"), script("compress.sh", "xz", "-T2", "--block-size=100KiB"),
                          setup=write_samples, main="xz")
    yield from everything("zstd", machine("sh", "zstd"), script("compress.sh", "zstd", "-q", "-T2", "-12"),
                          "count", setup=write_samples, main="zstd")


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



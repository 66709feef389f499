# SPDX-License-Identifier: MIT
# Interpreter work: exceptions, generators, threads, processes, compression, big numbers, C modules.
import bz2, collections, ctypes, decimal, functools, hashlib, itertools, json, lzma, math, os
import pickle, random, re, sqlite3, struct, subprocess, sys, threading, zlib

random.seed(7)


def deep(n):
    if n == 0:
        raise ValueError("bottom")
    try:
        return deep(n - 1) + 1
    finally:
        counter["finally"] += 1


counter = collections.Counter()
for depth in (1, 10, 300):
    try:
        deep(depth)
    except ValueError as error:
        print(error, counter["finally"])
try:
    (lambda f: f(f))(lambda f: f(f))
except RecursionError as error:
    print(type(error).__name__)


def generate(n):
    received = 0
    for i in range(n):
        received += (yield i) or 0
    return received


def delegate(n):
    return (yield from generate(n))


g = delegate(100)
next(g)
try:
    while True:
        g.send(2)
except StopIteration as stop:
    print("sent", stop.value)

data = json.dumps([{"n": i, "t": "x" * (i % 17), "f": i / 7} for i in range(2000)], sort_keys=True)
print(len(data), hashlib.sha256(data.encode()).hexdigest()[:16])
for module in (zlib, bz2, lzma):
    packed = module.compress(data.encode())
    assert module.decompress(packed).decode() == data
    print(module.__name__, hashlib.md5(packed).hexdigest()[:8])
assert pickle.loads(pickle.dumps(json.loads(data))) == json.loads(data)
print(math.factorial(400) % (10**9 + 7), pow(3, 10**5, 2**521 - 1) % 10**20)
decimal.getcontext().prec = 50
print(decimal.Decimal(2).sqrt(), sum(map(decimal.Decimal, "1.1 2.2 3.3".split())))
print(len(re.findall(r"(?<=t\": \")x+", data)), re.sub(r"(\d+)", r"<\1>", "a1b22c333"))
print(struct.pack("<ihd", 1, 2, 3.5).hex(), sorted(itertools.permutations("abc"))[-1])


@functools.lru_cache(None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


print(fib(200))
total = []
lock = threading.Lock()


def work(k):
    for i in range(300):
        with lock:
            total.append(k * i)


threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("threads", sum(total), len(total))

db = sqlite3.connect(":memory:")
db.create_function("twice", 1, lambda x: x * 2)
db.execute("create table t(a, b)")
db.executemany("insert into t values(?, ?)", [(i, str(i)) for i in range(1000)])
print(db.execute("select sum(twice(a)), max(b) from t").fetchone())

compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
values = (ctypes.c_int * 200)(*[random.randrange(1000) for _ in range(200)])
ctypes.CDLL(None).qsort(values, 200, 4, compare(lambda a, b: a[0] - b[0]))
print(list(values)[:5], list(values)[-5:])

sys.stdout.flush()
pid = os.fork()
if pid == 0:
    print("child", sum(range(1000)))
    sys.stdout.flush()
    os._exit(3)
print("status", os.waitpid(pid, 0)[1] >> 8)
print(subprocess.run(["sh", "-c", "echo from sh; exit 4"], capture_output=True).stdout)
print(subprocess.run([sys.executable, "-S", "-c", "print(1/0)"], capture_output=True).returncode)
sys.exit(5)

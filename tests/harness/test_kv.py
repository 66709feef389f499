# SPDX-License-Identifier: MIT
"""The same library from Python, by ctypes: LIBFTR and LIBKV are the paths of the libraries."""
import ctypes
import errno
import os
import tempfile
import unittest

ftr = ctypes.CDLL(os.environ.get("LIBFTR", "libftr.so"))
ftr.ftr_expect_at.restype = ctypes.c_void_p
ftr.ftr_error.restype = ctypes.c_char_p
ftr.ftr_argument_word.restype = ctypes.c_uint64
ftr.ftr_expect_seen.restype = ctypes.c_uint64
Report = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)
Predicate = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
MUST, MUST_NOT, WHEN, UNLESS = 1, 2, 3, 4
RESULT = 0xFFFF

kv = ctypes.CDLL(os.environ.get("LIBKV", "libkv.so"))
kv.kv_get.restype = ctypes.c_char_p


def expect(name, signature=None):
    return ctypes.c_void_p(ftr.ftr_expect_at(None, 0, name, signature))


def failures():
    """What was not as expected, as a list of messages; ends all expectations."""
    told = []
    report = Report(lambda message, data: told.append(message.decode()))
    assert ftr.ftr_verify(report, None) == len(told)
    return told


class Fault:
    """with Fault(b"malloc", 0, errno.ENOMEM): ..."""

    def __init__(self, name, value, error, first=1, last=0):
        self.args = name, ctypes.c_uint64(value), error, ctypes.c_uint64(first), ctypes.c_uint64(last)
        self.probe = ctypes.c_void_p()

    def __enter__(self):
        if ftr.ftr_fail(*self.args, ctypes.byref(self.probe)) <= 0:
            raise OSError(ftr.ftr_error().decode())
        return self

    def __exit__(self, *exception):
        ftr.ftr_detach(self.probe)


class StoreTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.dir.name, "store").encode()
        self.store = ctypes.c_void_p()

    def tearDown(self):
        if self.store:
            kv.kv_close(self.store)
        self.assertEqual(failures(), [])
        self.dir.cleanup()

    def open(self):
        return kv.kv_open(self.path, ctypes.byref(self.store))

    def test_counts_and_arguments(self):
        puts = expect(b"kv_put", b"w(pzz)")
        ftr.ftr_expect_calls(puts, ctypes.c_uint64(2), ctypes.c_uint64(2))
        ftr.ftr_expect_string(puts, MUST, 1, b"key")
        ftr.ftr_expect_integer(puts, MUST, RESULT, ctypes.c_int64(0))
        self.assertEqual(self.open(), 0)
        self.assertEqual(kv.kv_put(self.store, b"key", b"1"), 0)
        self.assertEqual(kv.kv_put(self.store, b"key", b"2"), 0)
        self.assertEqual(kv.kv_get(self.store, b"key"), b"2")
        self.assertEqual(ftr.ftr_expect_seen(puts), 2)

    def test_order(self):
        names = b"kv_open", b"kv_put", b"kv_sync"
        steps = (ctypes.c_void_p * 3)(*(expect(name).value for name in names))
        ftr.ftr_expect_order_at(None, 0, 0, steps, ctypes.c_size_t(3))
        self.assertEqual(self.open(), 0)
        self.assertEqual(kv.kv_put(self.store, b"a", b"1"), 0)
        self.assertEqual(kv.kv_sync(self.store), 0)

    def test_faults(self):
        with Fault(b"open", 2**64 - 1, errno.EACCES):
            self.assertEqual(self.open(), -errno.EACCES)
        with Fault(b"pthread_create", errno.EAGAIN, 0):
            self.assertEqual(self.open(), -errno.EAGAIN)
        self.store = ctypes.c_void_p()
        self.assertEqual(self.open(), 0)

    def test_predicates_in_python(self):
        puts = expect(b"kv_put", b"w(pzz)")
        seen = []

        @Predicate
        def is_short(call, data):
            key = ctypes.string_at(ftr.ftr_argument_word(ctypes.c_void_p(call), 1))
            seen.append(key)
            return len(key) < 3

        ftr.ftr_expect_predicate(puts, MUST, 0, is_short, None, b"a short key")
        self.assertEqual(self.open(), 0)
        kv.kv_put(self.store, b"ab", b"1")
        kv.kv_put(self.store, b"abc", b"1")
        message = failures()
        self.assertEqual(len(message), 1)
        self.assertTrue(message[0].startswith(
            "kv_put: expected a short key, seen otherwise in 1 of 2 calls\n"
            "  call 2: kv_put(0x"), message[0])
        self.assertEqual(seen, [b"ab", b"abc"])

    def test_failures_are_messages(self):
        expect(b"kv_get")
        self.assertEqual(failures(), ["kv_get: expected at least 1 call, seen none"])
        expect(b"no_such_function")
        self.assertEqual(failures(), [
            "no_such_function: cannot be watched: no_such_function: no such function"])


if __name__ == "__main__":
    unittest.main()

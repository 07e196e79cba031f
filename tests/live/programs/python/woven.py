"""woven.py SECONDS: CPU time in C called from Python, each library from a function of its own."""
import ctypes
import hashlib
import json
import os
import re
import sys
import zlib

DATA = bytes(range(256)) * 4096
TEXT = "the key=value pairs, all alike; " * 2000
ROWS = [{"id": number, "name": "row %d" % number, "tags": ["a", "b"]} for number in range(2000)]
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
QSORT = ctypes.CDLL(None).qsort


def digest():
    for _ in range(10):
        hashlib.sha256(DATA)


def squeeze():
    return zlib.compress(DATA, 6)


def search():
    return re.findall(r"(\w+)=(\w+)", TEXT)


def dump():
    return json.dumps(ROWS)


def in_order():
    return sorted(range(200000, 0, -1), key=str)


def compare(one, two):
    total = 0
    for number in range(50):
        total += number
    return one[0] - two[0]


def from_c():
    """The C library's qsort calls back into Python."""
    numbers = (ctypes.c_int * 300)(*[number * 7919 % 300 for number in range(300)])
    QSORT(numbers, len(numbers), ctypes.sizeof(ctypes.c_int), COMPARE(compare))
    return numbers[0]


def main():
    end = sum(os.times()[:2]) + float(sys.argv[1])
    while sum(os.times()[:2]) < end:
        for deed in (digest, squeeze, search, dump, in_order, from_c):
            deed()


main()

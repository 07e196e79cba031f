# Python frames on the native stack: the interpreter, a C module calling back, regular expressions.
import json
import re
import sys


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def by_fib(n):
    return fib(n % 12)


def main(rounds):
    for _ in range(rounds):
        fib(18)
        sorted(range(300), key=by_fib)
        json.dumps([{"a": list(range(50))}] * 100)
        re.sub("a+", "b", "xaaay" * 2000)


main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)

"""A stack that is easily read torn: below `depth` recursive calls, two chains that share nothing take turns, some
microseconds each. Every stack read must have frames of one chain only.

    torn.py [SECONDS [DEPTH]]     works so long (for ever without), DEPTH frames deep (25)
"""
import sys
import time


def leaf_a(n):
    x = 0
    for i in range(n):
        x += i
    return x


def mid_a(n):
    return leaf_a(n) + 1


def hot_a(n):
    return mid_a(n) + 1


def leaf_b(n):
    x = 1
    for i in range(n):
        x ^= i
    return x


def mid_b(n):
    return leaf_b(n) - 1


def hot_b(n):
    return mid_b(n) - 1


def work(seconds):
    end = time.time() + seconds
    while seconds == 0 or time.time() < end:
        for _ in range(1000):
            hot_a(20)
            hot_b(20)


def recurse(depth, seconds):
    if depth > 1:
        return recurse(depth - 1, seconds)
    return work(seconds)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0
    depth = int(sys.argv[2]) if len(sys.argv) > 2 else 25
    sys.setrecursionlimit(depth + 100)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    recurse(depth, seconds)


main()

"""locks.py SECONDS (of CPU time): in turn, two threads that compute, so that one of them has the interpreter's lock at any
time, and as long system calls that are made without it.
"""
import os
import sys
import threading
import time

LONG = "/tmp" + "/../tmp" * 500
TURNS = 8
used = getattr(time, "process_time", None) or time.clock


def inside(end):
    total = 0
    while used() < end:
        for number in range(1000):
            total += number * number


def outside(end):
    while used() < end:
        os.stat(LONG)


def main(seconds):
    for _ in range(TURNS):
        threads = [threading.Thread(target=inside, args=(used() + seconds / TURNS / 2,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        outside(used() + seconds / TURNS / 2)


main(float(sys.argv[1]))

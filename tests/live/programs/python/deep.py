"""deep.py DEPTH SECONDS: works below so many frames. 2.7 and every 3."""
import os
import sys
import threading

sys.setrecursionlimit(100000)


def bottom(seconds):
    end = sum(os.times()[:2]) + seconds
    while sum(os.times()[:2]) < end:
        for i in range(10000):
            pass


def down(depth, seconds):
    if depth:
        down(depth - 1, seconds)
    else:
        bottom(seconds)


def main():
    down(int(sys.argv[1]), float(sys.argv[2]))


threading.stack_size(512 << 20)
thread = threading.Thread(target=main)
thread.start()
thread.join()

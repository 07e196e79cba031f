"""work_python.py FRAMES BUSY IDLE [FILE]: threads that are busy FRAMES Python frames deep, until the process is ended.

BUSY 1: the main thread works without a pause. More: that many threads each work a little and sleep, so that together
they use some two thirds of a CPU. IDLE ones only sleep, as deep. The main thread writes what it has done to FILE:
pieces of equal work and the process's CPU time in ns, two 64-bit numbers that belong together (the first one again
behind them tells). Runs on every CPython from 2.7 on.
"""
import mmap
import struct
import sys
import threading
import time

WORK, PAUSE = 600, .01  # some 0.1 ms of work in 10 ms


def mix(number):
    number = (number * 1103515245 + 12345) & 0xffffffff
    return number ^ number >> 13


def piece(number, rounds):
    for _ in range(rounds):
        number = mix(number)
    return number


def without_pause(told):
    number = done = 0
    while True:
        number = piece(number, 2000)
        done += 1
        if told is not None:
            struct.pack_into("qqq", told, 0, done, time.process_time_ns(), done)


def with_pauses(told):
    number = 0
    while True:
        number = piece(number, WORK)
        time.sleep(PAUSE)


def asleep(told):
    while True:
        time.sleep(3600)


def descend(depth, work, told):
    if depth > 0:
        return descend(depth - 1, work, told)
    return work(told)


def thread(frames, work):
    # the threading module has two or three frames below
    started = threading.Thread(target=descend, args=(frames - 6, work, None))
    started.daemon = True
    started.start()


def main(frames, busy, idle, path=None):
    told = None
    if path is not None:
        with open(path, "r+b") as file:
            told = mmap.mmap(file.fileno(), 4096)
    for _ in range(int(idle)):
        thread(int(frames), asleep)
    for _ in range(int(busy) if int(busy) > 1 else 0):
        thread(int(frames), with_pauses)
    # module, main, and of what follows the leaf's two
    descend(int(frames) - 6, without_pause if int(busy) == 1 else asleep, told)


if __name__ == "__main__":
    sys.setrecursionlimit(20000)
    main(*sys.argv[1:])

#!/usr/bin/env python3
"""How long pillion takes to end by TERM, at random moments of its life, where something does not answer.

    tests/lab/term.py --count 100 [--seed N] [--jobs 8] [-v] [STATE...]

States: plain, frozen (the program's file system stops answering at a random moment before), full (the disk of the
output folder), dead (the server takes connections and says nothing). One line for each turn that took longer than the
bound, one of how far it is at times, then one per state: the longest and the median. Most of a turn is waiting, so
several run beside each other; a turn's moments are the seed's and its number's, whatever runs beside it. Wants root.
"""
import argparse
import collections
import contextlib
import multiprocessing
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import compiler, fuse, process

ROOT = Path(__file__).resolve().parents[2]
BOUND_S = 6
LATEST_S = 3  # of its life: start, windows of a second, their ends
HANGS_S = 30
TOLD_S = 15  # between lines of how far it is


def program():
    return compiler.program(ROOT / "tests" / "live" / "programs", "act", "-static")


def nothing():
    pass


@contextlib.contextmanager
def plain(folder, lot):
    yield program(), [], nothing, nothing


@contextlib.contextmanager
def frozen(folder, lot):
    where = folder / "mount"
    where.mkdir()
    with fuse.mounted(where, "act", program()) as server:
        yield where / "act", [], server.freeze, server.thaw


@contextlib.contextmanager
def full(folder, lot):
    disk = folder / "out"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={lot.choice((4, 16, 64))}k", "full", disk], check=True)
    try:
        yield program(), [], nothing, nothing
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@contextlib.contextmanager
def dead(folder, lot):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(64)
        yield program(), ["-u", "--backend", "http", "--server-host", f"http://127.0.0.1:{server.getsockname()[1]}/x"], nothing, nothing


STATES = {one.__name__: one for one in (plain, frozen, full, dead)}


def turn(pillion, state, lot):
    """Seconds from TERM to the end, and what it said."""
    with tempfile.TemporaryDirectory(prefix="term-") as name, STATES[state](Path(name), lot) as (target, options, disturb, undo):
        busy = process.start(["nice", "-n", "9", target, "threads", "3", "60"])  # what is timed goes before
        process.until(lambda: process.cpu_seconds(busy.pid) > 0.05, 20, "it runs")
        own = process.start([pillion, "-p", busy.pid, "-c", "-d", "1", "-o", Path(name) / "out", *options])
        life = lot.uniform(0, LATEST_S)
        before = lot.uniform(0, life)
        time.sleep(before)
        disturb()
        time.sleep(life - before)
        begin = time.monotonic()
        own.signal(signal.SIGTERM)
        try:
            done = own.finish(HANGS_S)
            took = time.monotonic() - begin
        except TimeoutError as error:
            done, took = error, HANGS_S
            own.end()
        undo()  # before: a thread that waits for a file cannot be killed
        busy.end()
        return took, str(done), life


def begin():
    process.become_subreaper()
    os.nice(10)


def one(job):
    pillion, state, seed, number = job
    return (state, number, *turn(pillion, state, random.Random(f"{seed} {state} {number}")))


class Progress:
    def __init__(self, count):
        self.count, self.done, self.told = count, 0, time.monotonic()

    def step(self, worst):
        self.done += 1
        if time.monotonic() - self.told > TOLD_S:
            self.told = time.monotonic()
            print(f"{self.done} of {self.count} turns, the longest {worst:.2f} s", flush=True)


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=25, help="turns per state")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--pillion", type=Path, default=ROOT / "build" / "out" / "x86_64" / "pillion")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("states", nargs="*", default=list(STATES), metavar="STATE")
    options = parser.parse_args(argv)
    program()  # compiled once, not by each job
    jobs = [(options.pillion, state, options.seed, number) for number in range(options.count) for state in options.states]
    times, progress = collections.defaultdict(list), Progress(len(jobs))
    with multiprocessing.Pool(options.jobs, begin) as pool:
        for state, number, took, done, life in pool.imap_unordered(one, jobs):
            times[state].append(took)
            if options.verbose or took > BOUND_S:
                print(f"{state} {number}: {took:.2f} s after {life:.2f} s of life: {done}", flush=True)
            progress.step(max(map(max, times.values())))
    for state, found in times.items():
        print(f"{state}: {len(found)} turns, the longest {max(found):.2f} s, median {statistics.median(found):.2f}, "
              f"beyond {BOUND_S} s: {sum(took > BOUND_S for took in found)}", flush=True)
    return any(took > BOUND_S for found in times.values() for took in found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

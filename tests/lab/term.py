#!/usr/bin/env python3
"""How long pillion takes to end by TERM, at random moments of its life, where something does not answer.

    tests/lab/term.py --count 100 [--seed N] [-v] [STATE...]

States: plain, frozen (the program's file system stops answering at a random moment before), full (the disk of the
output folder), dead (the server takes connections and says nothing). One line for each turn that took longer than the
bound, then one per state: the longest and the median. Wants root.
"""
import argparse
import contextlib
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
        busy = process.start([target, "threads", "3", "60"])
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
        return took, done, life


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=25, help="turns per state")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pillion", type=Path, default=ROOT / "build" / "out" / "x86_64" / "pillion")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("states", nargs="*", default=list(STATES), metavar="STATE")
    options = parser.parse_args(argv)
    process.become_subreaper()
    lot, bad = random.Random(options.seed), 0
    for state in options.states:
        times = []
        for number in range(options.count):
            took, done, life = turn(options.pillion, state, lot)
            times.append(took)
            bad += took > BOUND_S
            if options.verbose or took > BOUND_S:
                print(f"{state} {number}: {took:.2f} s after {life:.2f} s of life: {done}", flush=True)
        print(f"{state}: {options.count} turns, the longest {max(times):.2f} s, median {statistics.median(times):.2f}, "
              f"beyond {BOUND_S} s: {sum(one > BOUND_S for one in times)}", flush=True)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

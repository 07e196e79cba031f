#!/usr/bin/env python3
"""Profilers that stop threads (--brief-stops) are killed at random moments: nobody is left stopped or traced.

    tests/lab/kills.py --count 10000 [--seed N] [--jobs 4]

Each job has a target of its own, programs/steady.c, whose 61 threads compute, get signals, start programs and make system calls;
a profiler attaches to it with 2,000 stops a second and is killed 0.1 to 0.5 s later, again and again. After each kill no thread may be
in state T or t, and none may have a tracer. In the end the target says itself that no sum, signal or program went wrong.
"""
import argparse
import os
import random
import re
import signal
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import compiler, process  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PILLION = ROOT / "build" / "out" / os.uname().machine / "pillion"
SECONDS_EACH = 0.45  # a kill takes so long, with what is looked at


def wrong_threads(pid):
    return {tid: of for tid, of in process.threads_of(pid).items() if of[0] in "Tt" or of[1]}


def job(seed, count):
    """(kills, what was wrong)"""
    draw, wrong = random.Random(seed), []
    steady = compiler.program(ROOT / "tests/live/programs", "steady")
    target = process.start([steady, str(count * SECONDS_EACH * 2 + 5)])
    process.until(lambda: "ready" in target.out, 20, "the target runs")
    kills, until = 0, time.monotonic() + count * SECONDS_EACH * 2
    with tempfile.TemporaryDirectory() as out:
        while kills < count and time.monotonic() < until:
            running = process.start([PILLION, "-q", "-p", target.pid, "-d", "60", "-o", out, "--perf-mode", "disabled", "--brief-stops",
                                     "--max-cpu", "100", "-f", "2000"])
            time.sleep(0.1 + 0.4 * draw.random())
            os.kill(running.pid, signal.SIGKILL)
            running.finish(10)
            kills += 1
            left = wrong_threads(target.pid)
            if left:
                wrong.append(f"seed {seed}, kill {kills}: {left}")
    done = target.finish(count * SECONDS_EACH * 2 + 60)
    told = dict(re.findall(r"(\w+) (\d+)", done.out))
    if done.status or told["wrong"] != "0" or told["failed"] != "0" or told["signals"] != told["of"]:
        wrong.append(f"seed {seed}: {done}")
    return kills, wrong, done.out.strip().splitlines()[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=4)
    options = parser.parse_args()
    begin = time.monotonic()
    each = max(options.count // options.jobs, 1)
    with ProcessPoolExecutor(options.jobs) as pool:
        results = list(pool.map(job, range(options.seed, options.seed + options.jobs), [each] * options.jobs))
    wrong = [line for _, lines, _ in results for line in lines]
    print("\n".join(wrong + [last for _, _, last in results]))
    print(f"{sum(kills for kills, _, _ in results)} kills in {time.monotonic() - begin:.0f} s: {len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

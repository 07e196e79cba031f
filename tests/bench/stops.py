"""What brief stops (--brief-stops) take: how long a stop is, alone and beside hogs, what the target loses by the clock on the
wall, what the profiler uses, and how long other tools hold a process for one look.

A stop's times are the profiler's own, from asking for it to letting the thread go. What the target loses is work per
second of its turns, against targets without a profiler that live at the same time (turns.py): by CPU time nothing would be
seen, for a stopped thread uses none.

    tests/bench/stops.py [--quick] [--steady]
"""
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cost
import rows
import turns
from lab import process

OPTIONS = ["--perf-mode", "disabled", "--brief-stops"]


class WallTurns(cost.Turns):
    def speed(self):
        """Pieces of work per second."""
        pieces, begin = sum(self.numbers()[1:]), time.monotonic()
        turns.take(self.pid)
        return (sum(self.numbers()[1:]) - pieces) / (time.monotonic() - begin)


def lengths(hogs):
    seconds = 4 if cost.QUICK else 15
    others = [process.start(cost.work_count(1, seconds + 5)) for _ in range(hogs)]
    try:
        run = cost.Profiled(cost.work_count(1, seconds), 99, *OPTIONS, "--max-cpu", "5")
    finally:
        for other in others:
            os.kill(other.pid, signal.SIGKILL)
            other.finish(10)
    window = run.windows[-1]
    return float(window["stops_median_us"]), float(window["stops_p99_us"]), int(float(window["stops"]))


def stop_times():
    median, long, count = lengths(0)
    rows.add("a brief stop, median", median, "µs", most=40, note=f"{count} stops")
    rows.add("a brief stop, 99 of 100", long, "µs", most=200)
    median, long, count = lengths(2)
    rows.add("a brief stop beside two hogs, median", median, "µs", most=100, note=f"{count} stops; 99 of 100 {long:.0f}")


def losses():
    rounds = 40 if cost.QUICK else 200
    with tempfile.TemporaryDirectory() as out:
        out = Path(out)
        targets = {"bare": [], "again": []}
        for hz in (19, 99):
            targets[hz] = [cost.PILLION, "--log-format", "json", "--launch", "exec", *OPTIONS, "-f", hz, "-d", 3600, "-o", out, "--"]
        targets = {name: WallTurns(prefix, out / f"{name}.shown") for name, prefix in targets.items()}
        time.sleep(1)
        lost = {name: [] for name in targets}
        for _ in range(rounds):
            speed = {name: targets[name].speed() for name in random.sample(list(targets), len(targets))}
            bare = (speed["bare"] + speed["again"]) / 2
            for name in targets:
                lost[name].append(100 * (1 - speed[name] / bare))
        rates = {name: target.end() for name, target in targets.items()}
        process.settle(30)
    for hz, most in ((19, .2), (99, .8)):
        rows.add(f"what the target loses by brief stops, {hz} Hz", statistics.median(lost[hz]), "%", most=most,
                 note=f"± {turns.error(lost[hz]):.2f}, median of {rounds} turns of {turns.SECONDS} s; bare against bare "
                      f"{statistics.median(lost['again']):.2f} ± {turns.error(lost['again']):.2f}; {rates[hz]:.1f} stops per CPU second")


def steady_of(pid, seconds):
    """Percent of a core that each of a process's threads used in that time, the first thread's first."""
    def threads():
        return {task.name: int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()}
    before, begin = threads(), time.monotonic()
    time.sleep(seconds)
    after, passed = threads(), time.monotonic() - begin
    return [100 * (after[tid] - before.get(tid, 0)) / 1e9 / passed for tid in sorted(after, key=lambda tid: (tid != str(pid), int(tid)))]


def steady(command):
    """The least of some turns: what else runs on the machine makes everything dearer, and is looked at when it begins."""
    first, seconds, rounds = (2, 4, 1) if cost.QUICK else (5, 30, 2)
    found = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as out:
            target = process.start(command)
            running = process.start([cost.PILLION, "-p", target.pid, "-d", 600, "-o", out, *OPTIONS])
            try:
                time.sleep(first)
                found.append(steady_of(running.pid, seconds))
            finally:
                for one in running, target:
                    os.kill(one.pid, signal.SIGTERM if one is running else signal.SIGKILL)
                    one.finish(30)
    return min(found, key=sum), f"from second {first} to {first + seconds}, least of {rounds}"


STEADY = {"1 busy thread": (1, 0), "2 busy threads": (2, 0), "2 busy threads of 50": (2, 48)}


def steady_rows(where):
    for name, (busy, idle) in STEADY.items():
        shares, how = steady(cost.work_count(busy, 3600, idle))
        rows.add(f"own CPU, steady, brief stops, 19 Hz, {name}{where}", sum(shares), "% of a core", most=.3,
                 note=f"{how}; sampler {shares[0]:.3f}, catchers {sum(shares[1:]):.3f}")


def own_cost():
    """All of a run, and then what it costs for as long as it lasts: beside the machine's processes, and among few, as in
    a container."""
    seconds = 5 if cost.QUICK else 30
    run = cost.Profiled(cost.work_count(2, seconds), 19, *OPTIONS)
    rows.add("own CPU, brief stops, 19 Hz, 2 busy threads", 100 * run.cpu / run.seconds, "% of a core",
             note=f"{run.cpu:.3f} s, start and files in it")
    steady_rows("")
    if os.getuid() != 0 or not shutil.which("unshare"):
        print("  own CPU in a PID namespace: skipped, it wants root and unshare")
        return
    subprocess.run(["unshare", "-pf", "--mount-proc", sys.executable, __file__, "--steady", *sys.argv[1:]], check=False, timeout=600)


def held_by(command):
    """How long a busy thread does not run for one look, in µs: what it lacks of the time on the wall."""
    target = process.start(cost.work_count(1, 3600))
    try:
        time.sleep(.5)
        used, begin = cost.thread_seconds(target.pid), time.monotonic()
        time.sleep(3)
        idle = (time.monotonic() - begin) - (cost.thread_seconds(target.pid) - used)
        used, begin = cost.thread_seconds(target.pid), time.monotonic()
        looks = 0
        while time.monotonic() - begin < 3:
            process.run([*command, str(target.pid)], timeout=60)
            looks += 1
        lacking = (time.monotonic() - begin) - (cost.thread_seconds(target.pid) - used)
        return 1e6 * (lacking - idle) / looks, looks
    finally:
        os.kill(target.pid, signal.SIGKILL)
        target.finish(10)


def peers():
    commands = {"gdb -batch": ["gdb", "-batch", "-nx", "-ex", "bt", "-p"], "py-spy dump --native": ["py-spy", "dump", "--native", "--pid"]}
    for name, command in commands.items():
        if shutil.which(command[0]):
            held, looks = held_by(command)
            rows.add(f"{name}: held for one look", held, "µs", note=f"{looks} looks")


if __name__ == "__main__":
    process.become_subreaper()
    if "--steady" in sys.argv:
        steady_rows(", among few processes")
        sys.exit()
    stop_times()
    losses()
    own_cost()
    peers()

"""What brief stops (--brief-stops) take: how long a stop is, alone and beside hogs, what the target loses by the clock on the
wall, what the profiler uses, and how long other tools hold a process for one look.

A stop's times are the profiler's own, from asking for it to letting the thread go. What the target loses is work per
second of its turns, against targets without a profiler that live at the same time (turns.py): by CPU time nothing would be
seen, for a stopped thread uses none.

    tests/bench/stops.py [--quick] [--steady]
"""
import os
import random
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cost
import python
import rows
import turns
from lab import compiler, process

HERE = Path(__file__).resolve().parent
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
            running = process.start([cost.PILLION, "-p", target.pid, "-d", 600, "-o", out, "--log-format", "json", *OPTIONS])
            try:
                time.sleep(first)
                shares = steady_of(running.pid, seconds)
            finally:
                for one in running, target:
                    os.kill(one.pid, signal.SIGTERM if one is running else signal.SIGKILL)
                    one.finish(30)
            window = cost.windows_in(running.out + running.err)[-1]
            found.append((shares, float(window["stops"]) / float(window["cpu_s"])))
    shares, rate = min(found, key=lambda one: sum(one[0]))
    return shares, f"from second {first} to {first + seconds}, least of {rounds}; {rate:.1f} stops per CPU second"


def floor(busy):
    """What holding alone takes: on the CPU of each busy thread something that wakes up as often, and holds it each time."""
    wake, seconds = compiler.compile_file(HERE / "wake.c", "wake"), 4 if cost.QUICK else 20
    target = process.start(cost.work_count(busy, 3600))
    time.sleep(.5)
    stats = sorted(Path(f"/proc/{target.pid}/task").glob("*/stat"), key=lambda stat: int(stat.read_text().rpartition(") ")[2].split()[11]))
    holders = [process.start(["taskset", "-c", cpu, wake, 19, 19 * seconds, stat.parent.name])
               for cpu, stat in zip(sorted(os.sched_getaffinity(0)), stats[-busy:])]
    took = [float(holder.finish(60).out) for holder in holders]
    os.kill(target.pid, signal.SIGKILL)
    target.finish(10)
    return sum(took) * 19 / 1e7


STEADY = {"1 busy thread": (1, 0), "2 busy threads": (2, 0), "2 busy threads of 50": (2, 48)}


def steady_rows(where):
    for name, (busy, idle) in STEADY.items():
        shares, how = steady(cost.work_count(busy, 3600, idle))
        rows.add(f"own CPU, steady, brief stops, 19 Hz, {name}{where}", sum(shares), "% of a core", most=.3,
                 peer="what only wakes and holds", peer_value=floor(busy),
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


THOUSAND = {"few": "2 busy threads of 1,000", "all": "1,000 threads that each run half a ms a second"}


def a_thousand():
    """The program counts what must not change itself (test_stops.py asserts it), and tells how long a piece of its work took."""
    program = compiler.program(cost.ROOT / "tests" / "live" / "programs", "thousand")
    first, seconds, turns_each = (1, 3, 1) if cost.QUICK else (5, 10, 3)
    for mode, name in THOUSAND.items():
        took, shares = {"bare": [], "stopped": []}, []
        for way in ["bare", "stopped"] * turns_each:
            with tempfile.TemporaryDirectory() as out:
                target = process.start([program, mode, first + seconds + 1])
                process.until(lambda: "ready" in target.out, 10, "it is ready")
                running = process.start([cost.PILLION, "-p", target.pid, "-d", 600, "-o", out, *OPTIONS]) if way == "stopped" else None
                if running:
                    time.sleep(first)
                    shares.append(sum(steady_of(running.pid, seconds)))
                took[way].append(int(re.search(r"took (\d+)", target.finish(60).out)[1]))
                if running:
                    running.finish(30)
        least = {way: min(values) for way, values in took.items()}
        rows.add(f"own CPU, brief stops, 19 Hz, {name}", min(shares), "% of a core", note=f"from second {first} to {first + seconds}, least of {turns_each}")
        rows.add(f"a piece of work of {name} takes longer by brief stops, 19 Hz", 100 * (least["stopped"] / least["bare"] - 1), "%",
                 note=f"{least['bare'] / 1000:.0f} µs bare; medians, the least of {turns_each} each")


class Busy:
    """A Python program that tells what it has done: py-spy stops nothing else."""

    def __init__(self, folder):
        self.told = Path(folder) / "told"
        self.told.write_bytes(bytes(4096))
        self.started = process.start([python.PYTHON, HERE / "work_python.py", 30, 1, 0, self.told])
        self.pid = self.started.pid
        process.until(lambda: self.pieces() > 100, 20, "it works")

    def pieces(self):
        return struct.unpack("q", self.told.read_bytes()[:8])[0]

    def watch(self, seconds):
        """Pieces per second, and the share of looks at which a tracer held it, about two thousand a second."""
        pieces, begin, looks, held = self.pieces(), time.monotonic(), 0, 0
        with open(f"/proc/{self.pid}/stat", "rb", buffering=0) as stat:
            while time.monotonic() - begin < seconds:
                held += os.pread(stat.fileno(), 64, 0).rpartition(b") ")[2][:1] == b"t"
                looks += 1
                time.sleep(random.random() / 1000)
        return (self.pieces() - pieces) / (time.monotonic() - begin), 100 * held / looks


def ways(pid, out):
    """Tools at the same rate; gdb, which cannot look so often, as often as it can."""
    yield "brief stops, 19 Hz", [cost.PILLION, "-p", pid, "-d", 600, "-o", out, *OPTIONS, "-f", 19]
    spy = python.peer("py-spy")
    if spy:
        yield "py-spy record --native, 19 Hz", [spy, "record", "--native", "-r", 19, "-d", 600, "-f", "raw", "-o", Path(out) / "raw", "-p", pid]
    if shutil.which("gdb"):
        look = f"while :; do gdb -batch -nx -ex bt -p {pid} >/dev/null 2>&1; echo; done"
        yield "gdb -batch, one look after the other", ["sh", "-c", look]
    else:
        print("  gdb -batch: left out, there is no gdb here (make setup)")


def peers():
    seconds, rounds = (4, 2) if cost.QUICK else (10, 5)
    with tempfile.TemporaryDirectory() as out:
        target = Busy(out)
        commands = dict(ways(target.pid, out))
        speed, held = {name: [] for name in ["bare", *commands]}, {name: [] for name in ["bare", *commands]}
        looks = []
        try:
            for _ in range(rounds):
                for name in speed:
                    running = process.start(commands[name]) if name in commands else None
                    time.sleep(2)
                    before = len(running.out) if running else 0
                    for of, value in zip((speed, held), target.watch(seconds)):
                        of[name].append(value)
                    if running:
                        looks += [(len(running.out) - before) / seconds] if name.startswith("gdb") else []
                        end_group(running)
        finally:
            os.kill(target.pid, signal.SIGKILL)
            target.started.finish(10)
    for name in commands:
        note = f"{statistics.median(looks):.1f} looks a second" if name.startswith("gdb") else f"the best of {rounds} turns of {seconds} s each"
        rows.add(f"a Python program is held by {name}", statistics.median(held[name]), "%", note="of looks at its state")
        rows.add(f"what it loses of its work by {name}", 100 * (1 - max(speed[name]) / max(speed["bare"])), "%", note=note)


def end_group(running):
    """A shell's child as well, which may hold the target just now: it is asked, and lets it go."""
    for pid in [running.pid, *process.descendants_of(running.pid)]:
        try:
            os.kill(pid, signal.SIGINT if pid == running.pid else signal.SIGTERM)
        except ProcessLookupError:
            pass
    running.finish(60)


if __name__ == "__main__":
    process.become_subreaper()
    if "--steady" in sys.argv:
        steady_rows(", among few processes" if os.getpid() < 10 else "")
        sys.exit()
    stop_times()
    losses()
    own_cost()
    a_thousand()
    peers()

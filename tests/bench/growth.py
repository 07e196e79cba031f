"""How the profiler's own cost grows with what is there: nobody that runs, idle threads, processes, processes that come and go.

Each figure is measured twice, with perf events and without. CPU is the profiler's clock over some seconds in the middle
of a window, so neither its start nor its files are in it; memory is the most it held then. What comes and goes is
lab/work_churn.c, which also says what it used itself; the 60 s of churn check the sums as well.

What many CPUs cost is cpus.py's.

    tests/bench/growth.py [--quick]
"""
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import col, compiler, namespace, process, profiler, vitals  # noqa: E402
import cost  # noqa: E402
import rows  # noqa: E402

QUICK, PILLION, ROOT = cost.QUICK, cost.PILLION, cost.ROOT
MODES = {"perf": [], "perf-less": ["--perf-mode", "disabled"]}


def work(*arguments):
    program = compiler.compile_file(ROOT / "tests" / "lab" / "work_churn.c", "work_churn", "-static")
    return [program, *map(str, arguments)]


def names(folder):
    for name in ("short", "middle", "long"):
        (Path(folder) / name).symlink_to(work()[0])
    return folder


class Steady:
    """A command under a detached pillion: share of a core in percent, and MB, while it samples. Without perf the mappings
    of a process are read often in its first seconds, which is waited out."""

    def __init__(self, command, seconds, *options, settle=6):
        with tempfile.TemporaryDirectory() as out:
            started = process.start([PILLION, "-q", "--launch", "exec", "-d", "600", *options, "-o", out, "--", *command],
                                    stdin=subprocess.DEVNULL)
            pid = profiler.find(started, PILLION)
            time.sleep(settle)
            readings = [vitals.Vitals(pid)]
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                time.sleep(.5)
                readings.append(vitals.Vitals(pid))
            self.share, self.rss = vitals.share(readings), max(one.rss for one in readings)
            self.fds = max(one.fds for one in readings)
            started.finish(60)
            process.settle(20)


def nobody_runs():
    """After its second minute: by then it looks the most rarely."""
    if QUICK:
        return
    sleeper = "import time; time.sleep(125)"
    for mode, options in MODES.items():
        for name, command in (("one process", ["sleep", "125"]), ("a Python process", [sys.executable, "-c", sleeper])):
            one = Steady(command, 40, *options, settle=75)
            rows.add(f"own CPU beside {name} that sleeps, {mode}", one.share, "% of a core", most=.05, note=f"{one.rss:.1f} MB")


def idle_threads():
    seconds, rounds, count = 3 if QUICK else 8, 1 if QUICK else 3, 2000
    for mode, options in MODES.items():
        few, many = ([Steady(cost.work_count(1, seconds + 8, idle), seconds, *options) for _ in range(rounds)]
                     for idle in (0, count))
        more = [one.share - other.share for one, other in zip(many, few)]
        rows.add(f"own CPU that {count} idle threads add, {mode}", statistics.median(more), "% of a core", most=.2,
                 note=f"{statistics.median(one.share for one in few):.2f} without; "
                      f"{many[0].rss - few[0].rss:+.1f} MB, {many[0].fds} descriptors")


def processes():
    seconds, counts = 3 if QUICK else 10, (1, 50, 200, 500)
    for mode, options in MODES.items():
        found = {count: Steady(work("idle", count, seconds + 8), seconds, *options) for count in counts}
        for count, one in found.items():
            rows.add(f"own CPU beside {count} mostly idle processes, {mode}", one.share, "% of a core",
                     note=f"{one.rss:.1f} MB, {one.fds} descriptors")
        rows.add(f"RSS beside 200 processes, {mode}", found[200].rss, "MB", most=32)
        slope = (found[500].share - found[50].share) / 450
        rows.add(f"own CPU that 100 mostly idle processes add, {mode}", 100 * slope, "% of a core",
                 note=f"each wakes up five times a second; {(found[500].rss - found[50].rss) / 450 * 1000:.0f} kB RSS each")


def churn():
    seconds, rates = 4 if QUICK else 12, (0, 50, 200)
    for mode, options in MODES.items():
        found = {}
        for rate in rates:
            with tempfile.TemporaryDirectory() as folder:
                found[rate] = Steady(work("churn", seconds + 8, rate, 2, names(folder)), seconds, *options)
            rows.add(f"own CPU while {rate} processes per second come and go, {mode}", found[rate].share, "% of a core",
                     note=f"{found[rate].rss:.1f} MB")
        slope = (found[200].share - found[0].share) / 200
        rows.add(f"own CPU per short process, {mode}", 1e4 * slope, "us", note="its records, its mappings, its row in the accounting")


def long_churn():
    """-a in a PID namespace while 200 processes per second come and go: the sums, and what is held at the end."""
    if os.geteuid() != 0:
        print("  -a while processes come and go: not measured, a PID namespace wants root")
        return
    seconds, longs = 12 if QUICK else 60, 3
    for mode, options in MODES.items():
        with tempfile.TemporaryDirectory() as out, tempfile.TemporaryDirectory() as folder:
            space = namespace.Namespace(work("churn", seconds, 200, longs, names(folder)))
            load = space.load
            started, pid = space.profile(PILLION, "-a", "-c", "-d", seconds + 60, *options, "-o", out)
            space.begin()
            time.sleep(1)
            readings = vitals.watch(pid, lambda: load.out.count("\n") == longs + 2, 1)
            time.sleep(.5)
            os.kill(pid, signal.SIGINT)
            done = started.finish(60)
            space.end()
            found = {}
            for window in col.every(out):
                for stack in window.stacks:
                    found[stack.comm] = found.get(stack.comm, 0) + stack.count / 99
        truth = {}
        for name, ns in re.findall(r"^(\w+) \d+ (\d+)$", load.out, re.MULTILINE):
            truth[name] = truth.get(name, 0) + int(ns) / 1e9
        ended = re.search(r"^dead (\d+)", load.out, re.MULTILINE)[1]
        dead = found.get("short", 0) + found.get("middle", 0) + found.get("work_churn", 0)
        before = f"-a, 200 processes per second for {seconds} s, {mode}"
        rows.add(f"{before}: survivors' time off", 100 * abs(found.get("long", 0) / truth["long"] - 1), "%", most=3,
                 note=f"{found.get('long', 0):.2f} s of {truth['long']:.2f}; status {done.status}")
        rows.add(f"{before}: the dead's time off", 100 * abs(dead / (truth["dead"] + truth["own"]) - 1), "%",
                 note=f"{dead:.2f} s of {truth['dead'] + truth['own']:.2f}, {ended} processes")
        rows.add(f"{before}: descriptors gained", vitals.growth(readings, "fds"), "", most=4,
                 note=f"{readings[0].fds} at first, {readings[-1].fds} at last")
        rows.add(f"{before}: memory gained", vitals.growth(readings, "rss"), "MB in its last third", most=2,
                 note=f"{readings[0].rss:.1f} MB at first, {readings[-1].rss:.1f} at last, one window")
        rows.add(f"{before}: own CPU", vitals.share(readings), "% of a core")


def main():
    process.become_subreaper()
    nobody_runs()
    idle_threads()
    processes()
    churn()
    long_churn()


if __name__ == "__main__":
    main()

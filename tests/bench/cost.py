"""What the profiler itself uses: CPU and memory beside two busy threads, and what the target loses.

CPU is the profiler's own utime + stime over its whole life (sampling, symbols, encoding, writing), read by wait4 when
it has ended; the same work under `perf record -g` plus `perf script` is the yardstick where perf is installed.
"""
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import compiler, process, profiler  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PILLION = ROOT / "build" / "out" / platform.machine() / "pillion"
SECONDS = 10


def orphan_usage(pid):
    """Waits for a profiler that came to us and returns its resource usage."""
    return os.wait4(pid, 0)[2]


def own_cost(command, hz):
    """(CPU seconds, peak RSS in MB, wall seconds) of a detached profiler."""
    with tempfile.TemporaryDirectory() as out:
        begin = time.monotonic()
        started = process.start([PILLION, "-q", "--launch", "exec", "-f", hz, "-o", out, "--", *command])
        pid = profiler.find(started, PILLION)
        process.foreign.add(pid)
        started.finish(SECONDS * 4)
        usage = orphan_usage(pid)
        process.foreign.discard(pid)
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, time.monotonic() - begin


def perf_cost(command, hz):
    """The same by perf: recorder and script, without the command's own time."""
    with tempfile.TemporaryDirectory() as out:
        alone = process.run(command, timeout=SECONDS * 4).cpu_seconds
        record = process.run(["perf", "record", "-q", "-g", "-F", hz, "-o", out + "/data", "--", *command], timeout=SECONDS * 4)
        script = process.run(["perf", "script", "-i", out + "/data"], timeout=SECONDS * 4)
        return max(record.cpu_seconds - alone, 0) + script.cpu_seconds


def slowdown(command, rounds=5):
    """Wall time of a fixed amount of work with and without, as a ratio of medians of paired runs."""
    ratios = []
    with tempfile.TemporaryDirectory() as out:
        for _ in range(rounds):
            times = []
            for prefix in ([], [PILLION, "-q", "--launch", "exec", "-o", out, "--"]):
                started = process.start([*prefix, *command])
                started.wait(60)
                times.append(started.seconds)
                started.finish()
                process.settle(15)
            ratios.append(times[1] / times[0])
    return statistics.median(ratios)


def main():
    process.become_subreaper()
    act = compiler.program(ROOT / "tests" / "live" / "programs", "act")
    threads = [act, "threads", "2", str(SECONDS)]
    for hz in (99, 999):
        cpu, rss, wall = own_cost(threads, hz)
        print(f"own CPU at {hz} Hz, 2 busy threads: {cpu:.3f} s in {wall:.1f} s = {100 * cpu / wall:.2f} % of one core; "
              f"peak RSS {rss:.1f} MB")
    if shutil.which("perf"):
        yardstick = perf_cost(threads, 99)
        cpu, _, _ = own_cost(threads, 99)
        print(f"against perf record -g and perf script: {cpu:.3f} s to {yardstick:.3f} s = 1/{yardstick / max(cpu, 1e-3):.1f}")
    cpu, rss, wall = own_cost([act, "wait", str(SECONDS)], 99)
    print(f"own CPU beside a sleeping process: {cpu:.3f} s in {wall:.1f} s; peak RSS {rss:.1f} MB")
    loop = ["sh", "-c", "i=0; while [ $i -lt 2500000 ]; do i=$((i + 1)); done"]
    print(f"wall time of a fixed piece of work with pillion: x {slowdown(loop):.4f}")


if __name__ == "__main__":
    main()

"""Reading Perl's stacks: what one walk costs, and what the profiler uses beside a thread that only wakes up.

    tests/bench/perl.py [--quick] [walk|cost|calls]...
"""
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import process, workloads  # noqa: E402
import python as shared  # noqa: E402
import rows  # noqa: E402

PERL = workloads.tool("perl")


class Work(shared.Work):
    """work_perl.pl, running."""

    script = "work_perl.pl"

    def __init__(self, folder, cpu=None):
        super().__init__([PERL], folder, cpu=cpu)

    def arguments(self, busy, idle):
        return [shared.FRAMES]


class Wake(shared.Profiler):
    """A thread that wakes up as often on the target's CPU, and does nothing."""

    name, ending = "a thread that only wakes up", 9

    def command(self, pid):
        cpu = max(os.sched_getaffinity(0))
        return ["taskset", "-c", cpu, shared.PYTHON, "-c", f"import time\nwhile True: time.sleep({1 / self.hz})"]

    def samples(self):
        return self.hz * self.seconds


def walking(folder):
    with Work(folder, max(os.sched_getaffinity(0))) as work:
        version = process.run([PERL, "-e", 'printf "%vd", $^V']).out
        turns = [(shared.walk_once(work, 200 if shared.QUICK else 1000, 1000, "/libperl"),
                  shared.walk_once(work, 50 if shared.QUICK else 100, 100, "/libperl")) for _ in range(1 if shared.QUICK else 5)]
    dense, sparse = sorted(turns, key=lambda each: each[0]["walk_ns"]["median"])[len(turns) // 2]
    rows.add(f"Perl {version}, a stack of {dense['frames'] + .5:.0f} frames read, 1000 a second", dense["walk_ns"]["median"] / 1000, "µs",
             most=15, peer="a read of one word", peer_value=dense["word_ns"]["median"] / 1000,
             note=f"{dense['kernel_ns']['median'] / 1000:.1f} of it in the kernel, 9 of 10 below {dense['walk_ns']['p90'] / 1000:.0f}; "
                  f"{dense['stat_ns']['median'] / 1000:.1f} more to prove it; 100 a second {sparse['walk_ns']['median'] / 1000:.1f}")
    rows.add("Perl, system calls per stack read", max(dense["calls"], sparse["calls"]), "calls", most=6,
             note=f"{dense['complete']} of {dense['samples']} stacks complete; one more call to prove it")


def cost(folder):
    for hz in (100, 1000):
        rounds, costs = 1 if shared.QUICK else 5, {}
        with Work(folder, max(os.sched_getaffinity(0))) as work:
            for turn in range(rounds):
                for kind in (shared.Perf, shared.Perfless, Wake)[::-1 if turn % 2 else 1]:
                    costs.setdefault(kind, shared.Cost()).add(*shared.attached(kind, work, hz, 1 if shared.QUICK else 2, folder))
        used = {kind: statistics.median(each.of_core) for kind, each in costs.items()}
        for kind in (shared.Perf, shared.Perfless):
            rows.add(f"own CPU, Perl, {hz} Hz, one thread, {shared.HOW[kind]}", used[kind], "% of a core", peer=Wake.name,
                     peer_value=used[Wake], note=f"{statistics.median(costs[kind].rate):.0f} samples/s")


def calls(folder):
    """All system calls of a whole profiler, as perf counts them."""
    with Work(folder) as work:
        for kind in (shared.Perf, shared.Perfless) if shutil.which("perf") else ():
            counted = [each for each in (shared.counted_calls(kind, work, folder) for _ in range(1 if shared.QUICK else 3)) if each]
            if counted:
                every, reads = (statistics.median(each[which] / each[2] for each in counted) for which in (0, 1))
                rows.add(f"Perl, all system calls per sample, 100 Hz, {shared.HOW[kind]}", every, "calls",
                         note=f"{reads:.2f} of them read memory")


def main():
    parts = {"walk": walking, "cost": cost, "calls": calls}
    asked = [argument for argument in sys.argv[1:] if argument in parts] or list(parts)
    if PERL is None or not shared.WALK.exists():
        sys.exit("no perl here" if PERL is None else f"{shared.WALK.relative_to(shared.ROOT)} is missing; run make bench-programs")
    process.become_subreaper()
    for name in asked:
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="p") as folder:
            parts[name](folder)
        print(f"  {name}: {time.monotonic() - begin:.0f} s, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors", flush=True)


if __name__ == "__main__":
    main()

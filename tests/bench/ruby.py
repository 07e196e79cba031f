"""Reading Ruby's stacks: what one walk costs, what the profiler uses and the target loses; rbspy attached to the very same process
in turns.

rbspy is no part of any distribution: `cargo install rbspy --version 0.55.0 --root build/lab/bench/rbspy` builds it (some minutes);
one on PATH is taken, too. Without it its columns stay empty.

    tests/bench/ruby.py [--quick] [walk|cost|calls|loss]...
"""
import functools
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import cache, process, workloads  # noqa: E402
import python as shared  # noqa: E402
import rows  # noqa: E402

RUBY = workloads.tool("ruby")
HZ = 99


class Work(shared.Work):
    """work_ruby.rb, running."""

    script = "work_ruby.rb"

    def __init__(self, folder, cpu=None):
        super().__init__([RUBY], folder, cpu=cpu)

    def arguments(self, busy, idle):
        return [shared.FRAMES]


@functools.lru_cache(maxsize=None)
def rbspy():
    """Its program; None, with the reason printed, when there is none."""
    path = shutil.which("rbspy", path=f"{cache.folder('bench', 'rbspy')}/bin:{os.environ.get('PATH', '')}")
    if path is None:
        print("rbspy: left out, it is neither in build/lab/bench/rbspy/bin nor on PATH (cargo install rbspy builds it)", flush=True)
    return path


class Spy(shared.Profiler):
    name, options = "rbspy", ()

    def command(self, pid):
        return [rbspy(), "record", "-p", pid, "-r", self.hz, "--silent", *self.options, "-o", "collapsed", "-f", self.output / "out",
                "--raw-file", self.output / "raw"]

    def samples(self):
        return sum(count for _, count, _ in self.stacks())

    def stacks(self):
        for line in (self.output / "out").read_text(errors="replace").splitlines():
            frames, _, count = line.rpartition(" ")
            yield [frame.split(" - ")[0] for frame in frames.split(";")], int(count), True


class FreeSpy(Spy):
    name, options = "rbspy --nonblocking", ("--nonblocking",)


def profilers():
    return [shared.Perf, shared.Perfless, *([FreeSpy, Spy] if rbspy() else [])]


# ---- One walk

def walking(folder):
    with Work(folder, max(os.sched_getaffinity(0))) as work:
        version = process.run([RUBY, "-e", "print RUBY_VERSION"]).out
        turns = [(shared.walk_once(work, 200 if shared.QUICK else 1000, 1000, "/libruby"),
                  shared.walk_once(work, 50 if shared.QUICK else 100, 100, "/libruby")) for _ in range(1 if shared.QUICK else 5)]
    dense, sparse = sorted(turns, key=lambda each: each[0]["walk_ns"]["median"])[len(turns) // 2]
    what = f"Ruby {version}, a stack of {dense['frames'] + .5:.0f} frames read, 1000 a second"
    median = dense["walk_ns"]["median"] / 1000
    rows.add(what, median, "µs", most=15, peer="a read of one word", peer_value=dense["word_ns"]["median"] / 1000,
             note=f"{dense['kernel_ns']['median'] / 1000:.1f} of it in the kernel, 9 of 10 below {dense['walk_ns']['p90'] / 1000:.0f}; "
                  f"{dense['stat_ns']['median'] / 1000:.1f} more to prove it; 100 a second {sparse['walk_ns']['median'] / 1000:.1f}")
    rows.add("Ruby, system calls per stack read", max(dense["calls"], sparse["calls"]), "calls", most=6,
             note=f"{dense['complete']} of {dense['samples']} stacks complete; one more call to prove it")


# ---- What they use, and what the target loses

def cost(folder):
    """The least of some long turns: whatever else begins on the machine must be looked at, and spoils what stays in a cache."""
    rounds, seconds, costs = (1, 1, {}) if shared.QUICK else (3, 20, {})
    with Work(folder) as work:
        for turn in range(rounds):
            for kind in profilers()[::-1 if turn % 2 else 1]:
                costs.setdefault(kind, shared.Cost()).add(*shared.attached(kind, work, HZ, seconds, folder))
    used = {kind: min(each.of_target) for kind, each in costs.items()}
    for kind, each in costs.items():
        print(f"  {kind.name}: {' '.join(f'{percent:.2f}' for percent in each.of_target)} % of the target's, in turns of {seconds} s")
    for kind in (shared.Perf, shared.Perfless):
        said = [f"{each.name} {used[each]:.2f}, {statistics.median(costs[each].rate):.0f} samples/s" for each in costs]
        rows.add(f"own CPU, Ruby, {HZ} Hz, one thread, {shared.HOW[kind]}", used[kind], "% of the target's",
                 times=5 if kind is shared.Perfless and Spy in used else None, peer=FreeSpy.name if FreeSpy in used else None,
                 peer_value=used.get(FreeSpy), note="; ".join(said))


def calls(folder):
    """All system calls of a whole profiler, as perf counts them."""
    figures = {}
    with Work(folder) as work:
        for kind in profilers() if shutil.which("perf") else ():
            counted = [each for each in (shared.counted_calls(kind, work, folder) for _ in range(1 if shared.QUICK else 3)) if each]
            if counted:
                figures[kind] = [statistics.median(each[which] / each[2] for each in counted) for which in (0, 1)]
    if not {shared.Perf, shared.Perfless} <= figures.keys():
        print("system calls: left out, perf is missing or may not count them")
        return
    said = ", ".join(f"{kind.name} {every:.1f}, {reads:.2f} of them read memory" for kind, (every, reads) in figures.items())
    for kind in (shared.Perf, shared.Perfless):
        rows.add(f"Ruby, all system calls per sample, 100 Hz, {shared.HOW[kind]}", figures[kind][0], "calls",
                 peer=FreeSpy.name if FreeSpy in figures else None, peer_value=figures[FreeSpy][0] if FreeSpy in figures else None, note=said)


def losses(folder):
    rounds = 50
    of = {kind: shared.loss(kind, HZ if kind else 0, folder, Work, rounds) for kind in (None, *profilers()) if kind is not Spy}
    bare, bare_error = of[None]
    peer = f"; {FreeSpy.name} {of[FreeSpy][0]:.2f}" if FreeSpy in of else ""
    for kind in (shared.Perf, shared.Perfless):
        percent, error = of[kind]
        rows.add(f"what a Ruby target loses, {HZ} Hz, {shared.HOW[kind]}", percent, "%", most=.5,
                 note=f"± {error:.2f}, turns of {shared.turns.SECONDS} s; bare against bare {bare:.2f} ± {bare_error:.2f}{peer}")


def main():
    parts = {"walk": walking, "cost": cost, "calls": calls, "loss": losses}
    asked = [argument for argument in sys.argv[1:] if argument in parts] or list(parts)
    if RUBY is None or not shared.WALK.exists():
        sys.exit("no ruby here" if RUBY is None else f"{shared.WALK.relative_to(shared.ROOT)} is missing; run make bench-programs")
    process.become_subreaper()
    for name in asked:
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="r") as folder:
            parts[name](folder)
        print(f"  {name}: {time.monotonic() - begin:.0f} s, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors", flush=True)


if __name__ == "__main__":
    main()

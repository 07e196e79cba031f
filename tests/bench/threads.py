"""A thread for each request: what is seen of threads that end before a sample is due, and what looking costs.

The programs (tests/live/programs/requests.c and python/requests_in_threads.py) say themselves what their threads used, and how
many turns they made. The peer samples the same command with `perf record -e cpu-clock`. Of the two or three seconds that it takes to see that
bursts are needed there are hardly any samples; those that follow stand for them, too.

    tests/bench/threads.py [--quick]
"""
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import col, compiler, process  # noqa: E402
import cost  # noqa: E402
import growth  # noqa: E402
import rows  # noqa: E402

PROGRAMS = cost.ROOT / "tests" / "live" / "programs"
SECONDS = 4 if cost.QUICK else 12
HZ = 99


def commands():
    return {"C": [compiler.program(PROGRAMS, "requests"), str(SECONDS)],
            "Python": ["/usr/bin/python3", str(PROGRAMS / "python" / "requests_in_threads.py"), str(SECONDS)]}


class Told:
    """What the program says of itself: the true share of seventy(), its CPU time, its turns."""

    def __init__(self, done):
        found = re.search(r"seventy ([\d.]+) seconds ([\d.]+) turns (\d+)", done.out)
        self.share, self.seconds, self.turns = float(found[1]), float(found[2]), int(found[3])


def bare(command):
    return Told(process.run(command))


def ours(command):
    """What it told, seconds without a stack, seconds below seventy() and thirty()."""
    with tempfile.TemporaryDirectory() as out:
        told = Told(process.run([cost.PILLION, "-q", "--format", "col", "-o", out, "--launch", "init", "--", *command], timeout=120))
        stacks = [stack for window in col.every(out) for stack in window.stacks]
    lost = sum(stack.count for stack in stacks if "[lost]" in stack.frames) / HZ
    of = [sum(stack.count for stack in stacks if any(frame.split(" ")[0] == name for frame in stack.frames)) / HZ
          for name in ("seventy", "thirty")]
    return told, lost, of


def perf(command):
    """Seconds that perf record has samples of."""
    if not shutil.which("perf"):
        return None, None
    with tempfile.TemporaryDirectory() as out:
        data = f"{out}/perf.data"
        told = Told(process.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", str(HZ), "-g", "-o", data, "--", *command], timeout=120))
        script = subprocess.run(["perf", "script", "-F", "comm", "-G", "-i", data], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                text=True)
    return told, len(script.stdout.split("\n")) / HZ


def main():
    process.become_subreaper()
    for name, command in commands().items():
        runs = [(bare(command), *ours(command)) for _ in range(1 if cost.QUICK else 3)]
        _, told, lost, (seventy, thirty) = runs[0]
        peer, seen = perf(command)
        rows.add(f"threads shorter than a sample, {name}: CPU time without a stack", 100 * lost / told.seconds, "%", most=5,
                 peer="perf record -g", peer_value=None if peer is None else 100 * (1 - min(seen / peer.seconds, 1)),
                 note=f"{told.seconds:.1f} s in {2 * told.turns} threads")
        rows.add(f"threads shorter than a sample, {name}: a function's share off", 100 * abs(seventy / (seventy + thirty) - told.share),
                 "points", note=f"{100 * seventy / (seventy + thirty):.1f} of {100 * told.share:.1f} %, of a sample by lot")
        rows.add(f"threads shorter than a sample, {name}: turns less", statistics.median(
            100 * (1 - with_us.turns / alone.turns) for alone, with_us, *_ in runs), "%", note=f"{runs[0][0].turns} alone")
        steady = growth.Steady([*command[:-1], str(SECONDS + 8)], SECONDS - 2)
        rows.add(f"threads shorter than a sample, {name}: own CPU", steady.share, "% of a core", note=f"{steady.rss:.1f} MB")


if __name__ == "__main__":
    main()

"""How complete the stacks of real programs are: each workload under load, profiled from outside, by how its stacks end.

    tests/bench/stacks.py [NAME...] [--seconds N] [--perf-mode MODE]

The counts are pillion's own (docs/stacks.md says what they mean). "outermost" is what the profile shows besides: the
share of samples whose outermost frame is one that threads begin with, by its name or by who it called. "true" is the
share whose frames are those the source says, where the source is ours.
"""
import argparse
import json
import os
import platform
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import col, process, workloads  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PILLION = ROOT / "build" / "out" / platform.machine() / "pillion"
VERDICTS = ("complete", "truncated", "no_rule", "bad_memory", "guessed")
# Where threads begin, in the kernel's, the C libraries' and the threads' own words.
FIRST = re.compile(r"_start|_start_c|__libc_start_main|clone3?|__clone3?|start_thread|thread_start|ret_from_fork.*|main")


def measure(work, folder, seconds, mode):
    """(window fields, .col) of one profile."""
    out = folder / "out"
    done = process.run([PILLION, "--log-format", "json", "--perf-mode", mode, "-p", ",".join(map(str, work.pids)), "-d", seconds,
                        "--no-continuous", "--format", "col", "-o", out], timeout=seconds + 60)
    windows = [event for event in map(json.loads, done.err.splitlines()) if event.get("event") == "window"]
    if done.status or not windows:
        raise RuntimeError(f"pillion gave no window: {done}")
    return windows[-1], col.last(out)


def outermost(profile):
    user = [stack for stack in profile.stacks if stack.frames and not stack.frames[0].endswith("_[k]")]
    return sum(stack.count for stack in user if begins(stack.frames)) / max(sum(stack.count for stack in user), 1)


def begins(frames):
    """A stripped program's entry has no name; that it called __libc_start_main tells it."""
    return bool(FIRST.fullmatch(frames[0])) or "__libc_start_main" in frames[1:2]


def true_share(workload, profile):
    """In percent, as text."""
    if workload.true is None:
        return "-"
    good = sum(stack.count for stack in profile.stacks if workload.true(stack.frames))
    return f"{100 * good / max(profile.total, 1):.1f}"


def row(workload, window, profile):
    counts = {verdict: int(window.get(f"stacks_{verdict}", 0)) for verdict in VERDICTS}
    total = sum(counts.values())
    shares = " ".join(f"{100 * counts[verdict] / max(total, 1):10.2f}" for verdict in VERDICTS)
    return (f"{workload.name:12} {total:8} {shares} {100 * outermost(profile):10.1f} {true_share(workload, profile):>6} {float(window['cpu_s']):7.1f} "
            f"{100 * float(window['own_cpu_s']) / float(window['window_s']):6.2f} {window['own_rss_mb']:>6}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="*", help="workloads; all without")
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--perf-mode", default="smart")
    asked = parser.parse_args()
    process.become_subreaper()
    print(f"{'workload':12} {'stacks':>8} " + " ".join(f"{verdict + ' %':>10}" for verdict in VERDICTS)
          + f" {'outermost':>10} {'true':>6} {'cpu s':>7} {'own %':>6} {'own MB':>6}")
    for workload in workloads.ALL:
        if asked.name and workload.name not in asked.name:
            continue
        reason = workload.needs()
        if reason:
            print(f"{workload.name:12} skipped: {reason}")
            continue
        with tempfile.TemporaryDirectory(prefix="w") as folder:
            os.chmod(folder, 0o755)
            with workload.running(Path(folder) / "work") as work:
                window, profile = measure(work, Path(folder), asked.seconds, asked.perf_mode)
        print(row(workload, window, profile), flush=True)


if __name__ == "__main__":
    main()

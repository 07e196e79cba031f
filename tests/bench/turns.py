"""Turns: programs that live at once and run one after the other, each for a tenth of a second, the others stopped meanwhile.

A machine's speed drifts: the longer apart two moments are, the more it differs, some percent within a minute.
"""
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import process  # noqa: E402

SECONDS = .1


def is_stopped(pid):
    return all(task.joinpath("stat").read_text().rpartition(")")[2].split()[0] == "T" for task in Path(f"/proc/{pid}/task").iterdir())


def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    process.until(lambda: is_stopped(pid), 20, f"process {pid} has stopped", .0005)


def go_on(pid):
    os.kill(pid, signal.SIGCONT)


def take(pid):
    """One turn of a stopped process."""
    go_on(pid)
    time.sleep(SECONDS)
    stop(pid)


def error(values):
    """Of their median, one sigma, however they are distributed: its rank is off by half of the root of their number."""
    ordered, off = sorted(values), len(values) ** .5 / 2
    low, high = (round((len(values) - 1) / 2 + side * off) for side in (-1, 1))
    return (ordered[high] - ordered[low]) / 2

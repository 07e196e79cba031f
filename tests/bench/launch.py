"""What pillion adds to the start of a command: wall time until the command has ended, paired with a plain run.

In init mode the end includes writing the profile, because pillion returns when that is done.
"""
import platform
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import process  # noqa: E402
import rows  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PILLION = ROOT / "build" / "out" / platform.machine() / "pillion"
ROUNDS = 60


def measure(launch, command):
    with tempfile.TemporaryDirectory() as out:
        prefix = [PILLION, "-q", "--launch", launch, "-o", out, "--"]
        plain, profiled = [], []
        for _ in range(ROUNDS):
            for before, times in (([], plain), (prefix, profiled)):
                started = process.start([*before, *command])
                started.wait()
                times.append(started.seconds * 1000)
                started.finish()
            process.settle(15)
    added = sorted(b - a for a, b in zip(plain, profiled))
    rows.add(f"added to {' '.join(command)}, {launch} mode", statistics.median(added), "ms", most=10 if launch == "exec" else None,
             note=f"median of {ROUNDS} pairs, 9 of 10 below {added[ROUNDS * 9 // 10]:.1f}; plain {statistics.median(plain):.1f}")


def main():
    process.become_subreaper()
    for command in (["/bin/true"], ["/bin/sh", "-c", ":"]):
        measure("exec", command)
    measure("init", ["/bin/true"])


if __name__ == "__main__":
    main()

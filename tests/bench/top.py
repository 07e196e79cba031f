"""What `pillion top` uses on a screen of 80 x 24, drawn twice a second: of a busy Python program beside `py-spy top` on the same process
in the same run, of one that sleeps, and of 1,000 idle processes.

    tests/bench/top.py [--quick]
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from lab import process, screen  # noqa: E402
import python  # noqa: E402
import rows  # noqa: E402

QUICK = "--quick" in sys.argv
SETTLE, SECONDS, TURNS = (4, 5, 1) if QUICK else (6, 15, 3)
IDLE = "import os, signal, ctypes\nfor _ in range(int(os.sys.argv[1]) - 1):\n    if os.fork() == 0:\n        ctypes.CDLL(None).prctl(1, 9)\n        break\nsignal.pause()"


def used_s(pid):
    """By the scheduler, of all threads that live."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def percent_of_a_core(argv, name, settle=SETTLE):
    """On a screen, after it has settled."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        terminal = screen.Screen(Path(folder), argv)
        try:
            time.sleep(settle)
            pid = next(pid for pid in process.descendants_of(terminal.server) if Path(process.command_line(pid).split(" ")[0]).name == name)
            before, begin = used_s(pid), time.monotonic()
            time.sleep(SECONDS)
            return 100 * (used_s(pid) - before) / (time.monotonic() - begin)
        finally:
            terminal.close()


def top(pid, settle=SETTLE):
    return percent_of_a_core([python.PILLION, "top", "-p", pid], "pillion", settle)


def spy(pid):
    return percent_of_a_core([python.peer("py-spy"), "top", "--delay", "0.5", "-p", pid], "py-spy")


def beside_py_spy():
    busy = subprocess.Popen([python.PYTHON, python.HOT, "100000"], stdout=subprocess.DEVNULL)
    try:
        turns = [(top(busy.pid), spy(busy.pid) if python.peer("py-spy") else None) for _ in range(TURNS)]
    finally:
        busy.kill()
        busy.wait()
    own, peer = zip(*turns)
    rows.add("top, a busy Python program", statistics.median(own), "% of a core", most=1, peer="py-spy top",
             peer_value=statistics.median(peer) if None not in peer else None, note="both drawn twice a second; 99 and 100 Hz")


def of_idle(processes, what):
    idle = subprocess.Popen([python.PYTHON, "-c", IDLE, str(processes)])
    try:
        time.sleep(1 + processes / 500)
        settle = SETTLE + processes / 40  # each is looked at more closely once: 1 ms, and not all at once
        rows.add(f"top, {what}", statistics.median(top(idle.pid, settle) for _ in range(TURNS)), "% of a core", most=1)
    finally:
        idle.kill()
        idle.wait()


if __name__ == "__main__":
    beside_py_spy()
    of_idle(1, "a process that sleeps")
    of_idle(1000, "1,000 idle processes")

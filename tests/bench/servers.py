"""Python servers that start a thread for each request: http.server, Flask's own and Django's runserver, with pillion and its
peers attached by turns.

The server (tests/live/programs/python/thread_servers.py) says what its three functions used: the truth of that turn. A
thread lives for 4 ms, less than a sampling period.

    tests/bench/servers.py [--quick] [TURNS]
"""
import re
import signal
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import process, vitals, workloads  # noqa: E402
import cost  # noqa: E402
import python  # noqa: E402
import rows  # noqa: E402

PROGRAM = cost.ROOT / "tests" / "live" / "programs" / "python" / "thread_servers.py"
SECONDS, HZ = 3 if cost.QUICK else 12, 100
SERVERS = ("http", "flask", "django")
NAMES = ("half", "three_tenths", "fifth")


class Server:
    """One under load, that a profiler can be attached to."""

    def __init__(self, kind):
        self.port = workloads.free_port()
        self.running = process.start([python.PYTHON, PROGRAM, kind, self.port])
        process.until(lambda: workloads.answers(self.port), 30, lambda: self.running.err)
        self.ends, self.count = False, 0
        self.client = threading.Thread(target=self._ask)
        self.client.start()

    def _ask(self):
        while not self.ends:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=10) as answer:
                answer.read()
            self.count += 1

    def finish(self):
        """{function: seconds}, of its whole life."""
        self.ends = True
        self.client.join()
        self.running.signal(signal.SIGTERM)
        out = self.running.finish(30).out
        return {name: float(re.search(rf"\b{name} ([\d.]+)", out)[1]) for name in NAMES}


def turn(server_kind, profiler_kind):
    """Of one profiler on one server: the share of its CPU time that Python stacks tell of, and the most that a function's
    share is off, in points."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(server_kind)
        pid = server.running.pid
        try:
            before = vitals.cpu_seconds(pid)
            profiler = profiler_kind(pid, HZ, folder, cpu_only=True)
            time.sleep(python.SETTLE + SECONDS)
            used = vitals.cpu_seconds(pid) - before
            profiler.stop()
        finally:
            truth = server.finish()
        told, named = dict.fromkeys(NAMES, 0), 0
        for frames, count, *_ in profiler.stacks():
            named += count if frames else 0
            for name in set(NAMES).intersection(frames):
                told[name] += count
    off = max(abs(told[name] / max(sum(told.values()), 1) - truth[name] / sum(truth.values())) for name in NAMES)
    return 100 * named / HZ / used, 100 * off


def median(server_kind, profiler_kind, turns):
    found = [turn(server_kind, profiler_kind) for _ in range(turns)]
    print("   ", profiler_kind.name, ", ".join(f"{named:.0f} % ({off:.1f})" for named, off in found), flush=True)
    return [statistics.median(column) for column in zip(*found)]


def main():
    turns = next((int(argument) for argument in sys.argv[1:] if argument.isdigit()), 1 if cost.QUICK else 3)
    peers = [kind for name, kind in (("austin", python.Austin), ("py-spy", python.FreeSpy)) if python.peer(name)]
    for server in SERVERS:
        if process.run([python.PYTHON, "-c", f"import {server}"]).status != 0:
            print(f"{server}: left out, it is not installed", flush=True)
            continue
        theirs = [(kind.name, *median(server, kind, turns)) for kind in peers]
        best = max(theirs, key=lambda one: one[1], default=(None, None, None))
        for kind in (python.Perf, python.Perfless):
            named, off = median(server, kind, turns)
            what = f"a thread for each request, {server}, {python.HOW[kind]}"
            rows.add(f"{what}: CPU time in Python stacks", named, "%", least=85, peer=best[0], peer_value=best[1])
            rows.add(f"{what}: a function's share off", off, "points", most=4, peer=best[0], peer_value=best[2])


if __name__ == "__main__":
    main()

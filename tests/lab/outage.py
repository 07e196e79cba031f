#!/usr/bin/env python3
"""Windows through a server that fails in every way: each arrives, or is said to be lost.

    tests/lab/outage.py --count 2000 --spool [--kills 100] [--tls] [--seed N]

A process that sleeps is profiled, windows are asked for (SIGUSR1), and so is every try (SIGHUP). The server cuts requests,
loses its responses, is slow, refuses with 401, 404, 429, 5xx or words that are no HTTP, ends handshakes, or is away for
seconds. With --spool the profiler is killed now and then, and its spool taken over by the next. In the end the server is
well, and what came is held against what was told. One line of figures; status 1 when a window is nowhere.
"""
import argparse
import collections
import random
import re
import signal
import sys
import tempfile
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import process, uploading  # noqa: E402
from lab.sink import Sink, free_port  # noqa: E402

PILLION = Path(__file__).resolve().parents[2] / "build/out/x86_64/pillion"
# half, lie: the request was read, and its response is lost
FAULTS = ["cut", "cut", "half", "lie", "slow", (401, {}, b"who"), (404, {}, b"no"), (429, {"Retry-After": "1"}, b"slow down"),
          (500, {}, b"trouble"), (503, {}, b"soon"), (302, {"Location": "/elsewhere"}, b"")]
LOST_RESPONSE = ("half", "lie")


class Faults(list):
    """A script that never ends, of which a share are faults."""

    def __init__(self, random_of, share):
        super().__init__(["ok"])
        self.random, self.share, self.dealt = random_of, share, collections.Counter()

    def pop(self, _at=0):
        deed = self.random.choice(FAULTS) if self.random.random() < self.share else "ok"
        self.dealt[str(deed[0] if isinstance(deed, tuple) else deed)] += 1
        return deed


class Server:
    """The back end, which can be away. `seen` counts each window by (start, sequence)."""

    def __init__(self, random_of, tls):
        self.faults, self.tls, self.port = Faults(random_of, 0.4), tls, free_port()
        self.sinks = []
        self.come()

    def come(self):
        self.sinks.append(Sink(port=self.port, tls=self.tls))
        self.sinks[-1].script = self.faults

    def go(self):
        self.sinks[-1].close()

    def windows(self, taken=False):
        requests = [request for sink in self.sinks for request in (sink.taken if taken else sink.seen) if request.path.startswith("/in/")]
        return collections.Counter(request.path for request in requests)


class Told:
    """What runs said: windows made, and lost."""

    def __init__(self):
        self.made = self.lost = self.kept = self.runs = 0

    def add(self, run):
        self.runs += 1
        self.made += len(run.summaries)
        end = re.findall(r"uploads: \d+ sent \(\d+ KB\), (\d+) kept in the spool, (\d+) lost", run.err)
        if end:
            self.kept, self.lost = int(end[-1][0]), self.lost + int(end[-1][1])


def start(options, server, folder):
    scheme = "https" if server.tls else "http"
    extra = ["--spool-dir", folder / "spool"] if options.spool else []
    extra += ["--no-verify"] if server.tls else []
    return uploading.Run(PILLION, "--server-host", f"{scheme}://127.0.0.1:{server.port}{uploading.WINDOWS}", *extra,
                         command=("sleep", "86400"))


def drain(run, server, seconds):
    """The server is well; every try is asked for until nothing waits."""
    server.faults.share = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        run.pillion.signal(signal.SIGHUP)
        time.sleep(0.3)
        run.window()
        if "waiting=0" in run.summaries[-1]:
            return


def work(options, server, folder):
    told, chance = Told(), random.Random(options.seed)
    run, until_kill = start(options, server, folder), options.count // (options.kills + 1)
    for count in range(options.count):
        run.window()
        if chance.random() < 0.5:
            run.pillion.signal(signal.SIGHUP)
        time.sleep(chance.random() * 0.1)
        if chance.random() < 0.01:
            server.go()
            time.sleep(chance.random() * 2)
            server.come()
        if options.kills and count % until_kill == until_kill - 1 and count + 1 < options.count:
            time.sleep(chance.random() * 0.2)
            run.pillion.signal(signal.SIGUSR1)  # another window, which may be cut off anywhere
            time.sleep(chance.random() * 0.02)
            run.kill()
            told.add(run)
            time.sleep(1)  # a window is known by the second in which it began and its number: no two runs share both
            run = start(options, server, folder)
    drain(run, server, 600)
    run.end()
    told.add(run)
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spool", action="store_true")
    parser.add_argument("--tls", action="store_true")
    options = parser.parse_args()
    if options.kills and not options.spool:
        parser.error("--kills wants --spool: what memory holds is lost with the process")
    process.become_subreaper()
    with tempfile.TemporaryDirectory(prefix="outage-") as name:
        folder = Path(name)
        tls = uploading.certificate(folder)[1] if options.tls else None
        server = Server(random.Random(options.seed + 1), tls)
        told = work(options, server, folder)
        left = len(list((folder / "spool").rglob("*.pprof"))) if options.spool else 0
        server.go()
    arrived, taken = server.windows(), server.windows(taken=True)
    twice = sum(1 for count in arrived.values() if count > 1)
    twice_taken = sum(1 for count in taken.values() if count > 1)
    missing = told.made - len(taken) - told.lost
    print(f"{told.made} windows told by {told.runs} runs, {len(taken)} taken, {twice} seen more than once, {twice_taken} taken more than once, "
          f"{told.lost} said to be lost, {left} left in the spool, {max(missing, 0)} nowhere; {sum(server.faults.dealt.values())} requests: "
          + ", ".join(f"{count} {deed}" for deed, count in sorted(server.faults.dealt.items())))
    # a kill may come between a response and the removal of its file
    sys.exit(missing > 0 or twice_taken > options.kills or left > 0)


if __name__ == "__main__":
    main()

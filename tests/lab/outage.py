#!/usr/bin/env python3
"""Windows through a server that fails in every way: each arrives, or is said to be lost.

    tests/lab/outage.py --count 2000 --spool [--kills 100] [--ends 1] [--tls 1.3] [--seed N]

A process that sleeps is profiled, windows are asked for (SIGUSR1), and so is every try (SIGHUP). The server cuts requests,
loses its responses, is slow, refuses with 401, 404, 429, 5xx or words that are no HTTP, ends handshakes, or is away for
seconds. The profiler is ended (SIGTERM) now and then, with --spool killed as well, and its spool taken over by the next. In the end
the server is well, and what came is held against what was told. Two lines of figures; status 1 when a window is nowhere.

All of it runs in a network and a mount namespace of its own, where the server has a name and moves to another address now and
then. The name server is silent, late, says SERVFAIL, REFUSED, NXDOMAIN, nothing, rubbish or less than the whole, or leads to where
nobody listens or everything is swallowed. Where no namespace can be made, the server is an address.
"""
import argparse
import collections
import os
import random
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import nameserver, process, uploading  # noqa: E402
from lab.sink import Sink, free_port  # noqa: E402

PILLION = Path(__file__).resolve().parents[2] / "build/out/x86_64/pillion"
# half, lie: the request was read, and its response is lost
FAULTS = ["cut", "cut", "half", "lie", "slow", (401, {}, b"who"), (404, {}, b"no"), (429, {"Retry-After": "1"}, b"slow down"),
          (500, {}, b"trouble"), (503, {}, b"soon"), (302, {"Location": "/elsewhere"}, b"")]
LOST_RESPONSE = ("half", "lie")
# cut-off: truncated, and the answer by TCP ends in its middle; noise: with a number that was not asked for
NAME_FAULTS = ["silent", "late", "servfail", "refused", "nxdomain", "empty", "truncated", "cut-off", "garbage", "noise", "dead",
               "swallowed"]
NAME, DEAD, SWALLOWED = "backend.test", "127.0.9.9", "10.9.9.2"
NAMESPACE = "OUTAGE_NAMESPACE"


class Faults(list):
    """A script that never ends, of which a share are faults."""

    def __init__(self, random_of, share):
        super().__init__(["ok"])
        self.random, self.share, self.dealt = random_of, share, collections.Counter()

    def pop(self, _at=0):
        deed = self.random.choice(FAULTS) if self.random.random() < self.share else "ok"
        self.dealt[str(deed[0] if isinstance(deed, tuple) else deed)] += 1
        return deed


class Names:
    """What answers for NAME: one fault for some seconds, as it is told, else mostly the truth."""

    def __init__(self, random_of, share):
        self.random, self.share, self.dealt = random_of, share, collections.Counter()
        self.address, self.mood, self.until = "127.0.0.1", "ok", 0

    def trouble(self, seconds):
        self.mood, self.until = self.random.choice(NAME_FAULTS), time.monotonic() + seconds

    def deed(self):
        if self.share and time.monotonic() < self.until:
            return self.mood
        return self.random.choice(NAME_FAULTS) if self.random.random() < self.share else "ok"

    def __call__(self, query, tcp):
        """The answer, if there is one: for nameserver.serve."""
        deed = "tcp" if tcp else self.deed()
        self.dealt[deed] += 1
        address = {"dead": DEAD, "swallowed": SWALLOWED}.get(deed, self.address)
        whole = nameserver.reply(query, {"servfail": 2, "nxdomain": 3, "refused": 5}.get(deed, 0),
                                 [] if deed in ("servfail", "nxdomain", "refused", "empty") else [(nameserver.A, address)])
        if tcp:
            return whole[:-3] if self.share and (self.mood == "cut-off" or self.random.random() < self.share) else whole
        if deed == "late":
            time.sleep(self.random.random() * 7)
        if deed in ("truncated", "cut-off"):
            return nameserver.reply(query, 0x0200, [])
        if deed in ("garbage", "noise"):
            head = query[:2] if deed == "garbage" else bytes(2)
            return head + self.random.choice([b"\x81\x80", b"\x80\x00", b"\xff\xff"]) + self.random.randbytes(self.random.randrange(300))
        return None if deed == "silent" else whole


class Server:
    """The back end, which can be away, and somewhere else after it. `seen` counts each window by (start, sequence)."""

    def __init__(self, random_of, tls, names):
        self.faults, self.tls, self.port = Faults(random_of, 0.4), tls, free_port()
        self.names, self.sinks = names, []
        self.come()

    @property
    def host(self):
        return NAME if self.names else "127.0.0.1"

    def come(self):
        if self.names:
            self.names.address = f"127.0.0.{1 + len(self.sinks) % 200}"
            self.names.trouble(self.names.random.random() ** 2 * 8)
        self.sinks.append(Sink(port=self.port, tls=self.tls, host=self.names.address if self.names else "127.0.0.1"))
        self.sinks[-1].script = self.faults

    def go(self):
        self.sinks[-1].close()

    def be_well(self):
        self.faults.share = 0
        if self.names:
            self.names.share = 0

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
    return uploading.Run(PILLION, "--server-host", f"{scheme}://{server.host}:{server.port}{uploading.WINDOWS}", *extra,
                         command=("sleep", "86400"))


def waiting(run):
    return int(re.search(r"waiting=(\d+)", run.summaries[-1]).group(1)) if run.summaries else 0


def breathe(run, server, most):
    """A spool holds 1,000 files, and gives up the oldest: before that the server is well for a while."""
    ill = server.faults.share, server.names.share if server.names else 0
    while waiting(run) > most:
        server.be_well()
        run.pillion.signal(signal.SIGHUP)
        time.sleep(0.3)
        run.window()
    server.faults.share = ill[0]
    if server.names:
        server.names.share = ill[1]


def drain(run, server, seconds):
    """The server is well; every try is asked for until nothing waits."""
    server.be_well()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        run.pillion.signal(signal.SIGHUP)
        time.sleep(0.3)
        run.window()
        if waiting(run) == 0:
            return


def work(options, server, folder):
    told, chance = Told(), random.Random(options.seed)
    run = start(options, server, folder)
    deeds = ["kill"] * options.kills + ["end"] * options.ends
    chance.shuffle(deeds)
    turns = {(at + 1) * options.count // (len(deeds) + 1): deed for at, deed in enumerate(deeds)}
    for count in range(options.count):
        run.window()
        if chance.random() < 0.8:  # at 0.5 what waits only grows
            run.pillion.signal(signal.SIGHUP)
        time.sleep(chance.random() * 0.1)
        if options.spool and waiting(run) > 700:
            breathe(run, server, 300)
        if chance.random() < (0.02 if server.names else 0.01):
            server.go()
            time.sleep(chance.random() * 2)
            server.come()
        if count in turns:
            time.sleep(chance.random() * 0.2)
            run.pillion.signal(signal.SIGUSR1)  # another window, which may be cut off anywhere
            time.sleep(chance.random() * 0.02)
            {"kill": run.kill, "end": run.end}[turns[count]]()
            told.add(run)
            time.sleep(1)  # a window is known by the second in which it began and its number: no two runs share both
            run = start(options, server, folder)
    drain(run, server, 600)
    run.end()
    told.add(run)
    return told


def counted(dealt):
    return ", ".join(f"{count} {deed}" for deed, count in sorted(dealt.items()))


def namespace(seed):
    """Enters it: this program begins anew. The name server in it; None where there can be none."""
    if NAMESPACE not in os.environ:
        enter = ["unshare", "--net", "--mount"]
        done = subprocess.run([*enter, "true"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode == 0:
            os.environ[NAMESPACE] = "1"
            os.execvp("unshare", [*enter, sys.executable, *sys.argv])
        print(f"the server has no name, for there can be no namespace: {done.stdout.strip()}")
        return None
    nameserver.loopback_up()
    nameserver.name_server_is_here()
    # Its other end takes what is sent to it, and says nothing.
    for words in ("link add gone type veth peer name void", "addr add 10.9.9.1/24 dev gone", "link set gone up", "link set void up",
                  f"neigh add {SWALLOWED} lladdr 02:00:00:00:00:02 dev gone"):
        if subprocess.run(["ip", *words.split()], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            print("nothing can be swallowed here: that address is unreachable")
            break
    names = Names(random.Random(seed + 2), 0.3)
    nameserver.serve(names)
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--ends", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spool", action="store_true")
    parser.add_argument("--tls", choices=["1.2", "1.3"], help="the version that the server speaks alone")
    options = parser.parse_args()
    if options.kills and not options.spool:
        parser.error("--kills wants --spool: what memory holds is lost with the process")
    names = namespace(options.seed)
    process.become_subreaper()
    with tempfile.TemporaryDirectory(prefix="outage-") as name:
        folder = Path(name)
        tls = uploading.certificate(folder)[1] if options.tls else None
        if tls is not None:
            tls.minimum_version = tls.maximum_version = ssl.TLSVersion["TLSv" + options.tls.replace(".", "_")]
        server = Server(random.Random(options.seed + 1), tls, names)
        told = work(options, server, folder)
        left = len(list((folder / "spool").rglob("*.pprof"))) if options.spool else 0
        server.go()
    arrived, taken = server.windows(), server.windows(taken=True)
    twice = sum(1 for count in arrived.values() if count > 1)
    twice_taken = sum(1 for count in taken.values() if count > 1)
    missing = told.made - len(taken) - told.lost
    print(f"{told.made} windows told by {told.runs} runs, {len(taken)} taken, {twice} seen more than once, {twice_taken} taken more than once, "
          f"{told.lost} said to be lost, {left} left in the spool, {max(missing, 0)} nowhere; {sum(server.faults.dealt.values())} requests: "
          + counted(server.faults.dealt))
    if names:
        print(f"{sum(names.dealt.values())} questions for {len(server.sinks)} addresses in turn: {counted(names.dealt)}")
    # an end may come between a response and the removal of its file
    sys.exit(missing > 0 or twice_taken > options.kills + options.ends or left > 0)


if __name__ == "__main__":
    main()

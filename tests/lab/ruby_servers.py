#!/usr/bin/python3
"""Ruby's servers under load: what a profile says of them against what their own clocks say.

    tests/lab/ruby_servers.py [--seconds 5] [--hz 487] [--threads 4] [puma|unicorn|jobs]...

puma (threads) and unicorn (processes) serve programs/ruby/web.ru, with requests over connections that are kept from several
threads; jobs is a pool of threads that take from a queue. Each with perf events and without. Needs puma, unicorn and
ruby-sinatra of Debian.
"""
import argparse
import http.client
import os
import platform
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

if __package__:
    from . import process, profiler, rbstacks, workloads
else:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from lab import process, profiler, rbstacks, workloads

ROOT = Path(__file__).resolve().parents[2]
PILLION = ROOT / "build" / "out" / platform.machine() / "pillion"
PROGRAMS = ROOT / "tests" / "live" / "programs" / "ruby"
MODES = {"perf": [], "perf-less": ["--perf-mode", "disabled"]}
PARTS = ("fifty", "thirty", "twenty")
HZ = 487  # 499 would keep step with what takes 10 ms for a round


def command_of(name, port, seconds, folder):
    """The command, and the signal that ends it in good order; None: it ends by itself."""
    if name == "puma":
        bind = f"tcp://127.0.0.1:{port}"
        return ["puma", "-e", "production", "-t", "4:4", "-b", bind, "-q", "-C", "-", PROGRAMS / "web.ru"], signal.SIGTERM
    if name == "unicorn":
        settings = Path(folder, "unicorn.rb")
        settings.write_text(f"worker_processes 3\nlisten '127.0.0.1:{port}'\nlogger Logger.new('/dev/null')\n")
        return ["unicorn", "-E", "production", "-c", settings, PROGRAMS / "web.ru"], signal.SIGQUIT
    return ["ruby", PROGRAMS / "jobs.rb", seconds], None


def needs(name):
    """What this machine lacks for it, in words; else None."""
    programs = ["ruby"] if name == "jobs" else [name]
    missing = [each for each in programs if workloads.tool(each) is None]
    if not missing and name != "jobs" and process.run(["ruby", "-e", "require 'sinatra/base'"]).status != 0:
        missing = ["ruby-sinatra"]
    return f"not installed: {', '.join(missing)}" if missing else None


def load(port, seconds, threads):
    """Requests from several threads, each over a connection that is kept where the server keeps it; how many."""
    finish, counts, failures = time.monotonic() + seconds, [0] * threads, []

    def ask(number):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        while time.monotonic() < finish:
            part = PARTS[counts[number] % 3]
            connection.request("GET", f"/{part}")
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200 or body != f"{part}\n".encode():
                failures.append((answer.status, body))
                return
            counts[number] += 1
        connection.close()

    asking = [threading.Thread(target=ask, args=(number,)) for number in range(threads)]
    for each in asking:
        each.start()
    for each in asking:
        each.join()
    assert not failures, failures[0]
    return sum(counts)


def told(folder):
    """Seconds that the functions took, by the clocks of the threads that ran them."""
    spent = Counter()
    for path in Path(folder).glob("told.*"):
        for part, seconds in zip(*[iter(path.read_text().split())] * 2):
            spent[part] += float(seconds)
    return spent


class Figures:
    """`total` and `true_total` in seconds; `shares` and `true_shares` of the three functions; parts of all stacks that are `ruby`'s,
    `named` (no frame of Ruby without a name) and `proven` (of the very moment); stacks that the program cannot have."""

    def __init__(self, session, spent, hz):
        stacks = rbstacks.of_col(session)
        self.total, self.true_total = session.seconds(hz), session.done.cpu_seconds
        count = sum(stack.count for stack in stacks)
        self.parts = Counter()
        self.ruby = sum(stack.count for stack in stacks if stack.ruby) / max(count, 1)
        self.named = sum(stack.count for stack in stacks if stack.ruby and not is_unnamed(stack)) / max(count, 1)
        self.proven = sum(stack.count for stack in stacks if stack.ruby and "[~]" not in stack.frames) / max(count, 1)
        self.impossible = [stack for stack in stacks if is_impossible(stack)]
        for stack in stacks:
            for part in set(PARTS) & {name.rpartition(".")[2] for name in stack.names}:
                self.parts[part] += stack.count
        self.seconds = {part: self.parts[part] / hz for part in PARTS}
        self.shares = shares(self.parts)
        self.true_seconds, self.true_shares = spent, shares(spent)
        self.others = Counter()
        for stack in stacks:
            if not stack.ruby:
                self.others[";".join(map(str, stack.frames[-3:]))] += stack.count

    def __str__(self):
        each = ", ".join(f"{part} {100 * self.shares[part]:.1f} (true {100 * self.true_shares[part]:.1f}) %" for part in PARTS)
        return (f"{self.total:.2f} s of {self.true_total:.2f} ({100 * (self.total / self.true_total - 1):+.1f} %); {each}; "
                f"{sum(self.seconds.values()):.2f} s in them of {sum(self.true_seconds.values()):.2f}; "
                f"Ruby {100 * self.ruby:.1f} %, named {100 * self.named:.1f} %, proven {100 * self.proven:.1f} %; "
                f"{len(self.impossible)} impossible")


def shares(parts):
    total = sum(parts.values())
    return {part: parts[part] / max(total, 1e-9) for part in PARTS}


def is_unnamed(stack):
    return any(isinstance(frame, str) and frame.endswith("_[rb]") and not frame.startswith("[gc]") for frame in stack.frames)


def is_impossible(stack):
    """One of the three functions that was not called by spend(), or beside another, or that calls what it does not."""
    names = [name.rpartition(".")[2] for name in stack.names]
    at = [place for place, name in enumerate(names) if name in PARTS]
    if not at:
        return False
    callers = [name for name in names[:at[0]] if name not in ("__send__", "send", "synchronize")]
    calls = {"cpu", "clock_gettime", "times", "block in thirty", "map", "each", "block in twenty", "to_s", "inspect", "sort", "join",
             "<=>", "&", "*", "%", "+", "<", "fetch"}
    return len(at) != 1 or not callers or callers[-1] != "spend" or not set(names[at[0] + 1:]) <= calls


def run(pillion, name, folder, *options, seconds=5, hz=HZ, threads=4):
    """The Figures of a server that is profiled from its start to its end, under load for so many seconds."""
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    port = workloads.free_port()
    command, ending = command_of(name, port, seconds, folder)
    environment = {"PATH": workloads.PATH, "HOME": str(folder), "TOLD": str(folder / "told"), "LC_ALL": "C.UTF-8"}
    server = process.start([pillion, "--launch", "exec", "-o", folder / "out", "-f", hz, "--log-format", "json", *options, "--", *command],
                           cwd=folder, env=environment)
    try:
        if ending is not None:
            process.until(lambda: workloads.answers(port), 20, lambda: server.err)
            print(f"{name}: {load(port, seconds, threads)} requests")
            server.signal(ending)
        done = server.finish(30 + seconds)
    finally:
        server.end()
    process.settle(15)
    return Figures(profiler.Session(done, folder / "out"), told(folder), hz)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--hz", type=int, default=HZ)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("names", nargs="*", metavar="puma|unicorn|jobs")
    asked = parser.parse_args()
    process.become_subreaper()
    for name in asked.names or ["puma", "unicorn", "jobs"]:
        if needs(name):
            print(f"{name}: left out, {needs(name)}")
            continue
        for mode, options in MODES.items():
            with tempfile.TemporaryDirectory(prefix="rb") as folder:
                figures = run(PILLION, name, folder, *options, seconds=asked.seconds, hz=asked.hz, threads=asked.threads)
            print(f"{name}, {mode}: {figures}", flush=True)
            for stack in figures.impossible[:3]:
                print(f"    impossible: {stack}")
            for frames, count in figures.others.most_common(4):
                print(f"    without Ruby: {count} {frames}")
            print(f"    load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    main()

"""Brief stops in a container without perf, beside perf from the host on the same processes: are the shares the same, the stacks
complete, the sums right? Of a sidecar perf comes afterwards: its timers, beside ours, change who is switched to when.

    tests/bench/stops_shares.py [--seconds 12] [--hz 199] [--turns 1] [--way TEXT] [NAME…]

The truth is pillion's with perf events, outside the container. Of postgres, which sleeps ten thousand times per second, it is that of
perf record with events of the processors (-a): events of a process are set up again at each switch, which lengthens its way to sleep and
back, and a timer that goes off on that way has its sample after the next waking. `by process` tells what such events say of it.

Each program runs in a container as an engine makes it (its seccomp profile forbids perf events) in four ways: started by
pillion, with no capability; the same with SYS_PTRACE; and looked at by a sidecar with SYS_PTRACE, and with SYS_NICE, that
shares its PID namespace. A function's share is that of the CPU time of stacks that have it; told are the three that differ most. Two
profiles of some n samples differ by chance, by up to 2 * sqrt(p * (1 - p) * 2 / n) in 95 of 100 cases.
"""
import argparse
import math
import os
import re
import signal
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import compiler, container, process, profiler, workloads  # noqa: E402
from lab.golang import Go  # noqa: E402
import cost  # noqa: E402

PROGRAMS = cost.ROOT / "tests" / "live" / "programs"
SHARED = 0.02  # what has less is not compared
TRACES = container.CAPABILITIES + ["CAP_SYS_PTRACE"]
# the program's container's capabilities, the sidecar's, and who that runs as (null: as the program)
WAYS = {"started, without a capability": ([], None, None), "started, SYS_PTRACE": (TRACES, None, None),
        "sidecar, SYS_PTRACE": (None, TRACES, None), "sidecar, SYS_PTRACE, SYS_NICE": (None, TRACES + ["CAP_SYS_NICE"], 0)}


def built(name, folder):
    """A static program, so that a scratch image is enough."""
    target = folder / name
    if name == "go":
        Go("local").run("build", "-o", target, PROGRAMS / "mixed.go")
    elif name == "rust":
        process.run(["rustc", "-O", "-C", "target-feature=+crt-static", "-o", target, PROGRAMS / "rusty.rs"], timeout=120)
    elif name == "musl":
        process.run(["musl-gcc", "-O2", "-static", "-o", target, PROGRAMS / "shares.c"], timeout=60)
    else:
        process.run(["g++", "-O2", "-static", "-pthread", "-o", target, PROGRAMS / "mixed.cc"], timeout=60)
    return target


class Service:
    """A program of ours in a scratch image: what is mounted, how it starts, who it runs as."""

    uid, mounts, end_by, sleeps = 0, (), signal.SIGTERM, False

    def __init__(self, name, folder, seconds):
        program = built(name, folder)
        self.root = container.scratch(folder / "image", cost.PILLION, program)
        self.command = [f"/{program.name}", str(4 * seconds + 30), *{"musl": ["0.02"], "cxx": ["2"]}.get(name, [])]

    def load(self, ends):
        """What keeps it busy: nothing."""


class Postgres(Service):
    """The distribution's, below the machine's folders, under pgbench from the host."""

    uid, end_by, sleeps = profiler.NOBODY, signal.SIGINT, True

    def __init__(self, name, folder, seconds):
        self.home = folder / "pg"
        self.home.mkdir(mode=0o700)
        os.chown(self.home, self.uid, self.uid)
        self.root = container.scratch(folder / "image", cost.PILLION)
        for place in ("usr", "lib", "lib64", "bin", "etc", "pg"):
            (self.root / place).mkdir()
        self.mounts = [(f"/{place}", f"/{place}", "ro") for place in ("usr", "lib", "lib64", "bin", "etc")] + [(self.home, "/pg", "rw")]
        self.run("initdb", "-D", self.home / "data", "-A", "trust", "-U", "bench", "--no-sync", "--locale=C", "-E", "UTF8")
        self.command = [workloads.Postgres.bin("postgres"), "-D", "/pg/data", "-k", "/pg", "-c", "listen_addresses=", "-c", "fsync=off",
                        "-c", "shared_buffers=32MB"]

    def argv(self, name, *arguments):
        return [*profiler.as_nobody(), workloads.Postgres.bin(name), *arguments]

    def run(self, name, *arguments):
        done = process.run(self.argv(name, *arguments), cwd=self.home, timeout=120)
        if done.status:
            raise RuntimeError(f"{name}: {done}")

    def load(self, ends):
        connection = ["-h", str(self.home), "-U", "bench"]
        process.until(lambda: (self.home / ".s.PGSQL.5432").exists(), 30, "postgres is ready")
        time.sleep(.5)
        self.run("pgbench", *connection, "-i", "-q", "-s", "2", "postgres")
        workloads.start(ends, self.argv("pgbench", *connection, "-n", "-c", "4", "-T", workloads.FOREVER, "postgres"), self.home)
        time.sleep(1)


def shares_of(session):
    counts, whole = {}, 0
    for window in session.windows:
        for stack in window.stacks:
            if stack.frames[-1] == "[native, no perf]":  # a command's first moments
                continue
            whole += stack.count
            for name in {frame for frame in stack.frames if not frame.endswith("_[k]")}:
                counts[name] = counts.get(name, 0) + stack.count
    return {name: count / whole for name, count in counts.items()}, whole


def whole_machine(pids, seconds, folder):
    """The shares of these processes, and how many samples tell them. While they live: perf finds their files by them."""
    data = folder / "perf.data"
    for command in (["perf", "record", "-q", "-a", "-e", "cpu-clock", "-F", "499", "--call-graph", "dwarf,16384", "-o", data, "sleep", seconds],
                    ["perf", "script", "-i", data, "-F", "pid,ip,sym", "--no-inline", "--pid", ",".join(map(str, pids))]):
        done = process.run(command, timeout=seconds + 240)
        if done.status:
            raise RuntimeError(f"{command[:2]}: {done.err[-300:]}")
    counts, samples = {}, [block.splitlines() for block in done.out.split("\n\n") if block.strip()]
    for _, *frames in samples:
        for name in {frame.split(None, 1)[1].strip().partition("@")[0] for frame in frames if not frame.split(None, 1)[0].startswith("ffff")}:
            counts[name] = counts.get(name, 0) + 1
    return {name: count / len(samples) for name, count in counts.items()}, len(samples)


def seconds_of(pids):
    return sum(process.cpu_seconds(pid) for pid in pids)


def of_program(top):
    """The program's processes below a container's first one: all but pillion's own."""
    found = [top, *process.descendants_of(top)]
    return [pid for pid in found if Path(f"/proc/{pid}/comm").read_text().strip() != "pillion"]


def run(service, way, seconds, hz, folder):
    capabilities, beside_it, sidecar_uid = WAYS[way]
    out, by_process = folder / "out", folder / "host"
    for each in (out, by_process):
        each.mkdir()
        each.chmod(0o777)
    options = ["--brief-stops", "-f", hz, "--max-cpu", "20", "--format", "col", "-o", "/out", "-d", seconds]
    mounts = [*service.mounts, (out, "/out", "rw")]
    with ExitStack() as ends:
        begin = ["/pillion", *options, "-c", "--"] if capabilities is not None else []
        app = container.Container(service.root, [*begin, *service.command], mounts=mounts, uid=service.uid, capabilities=capabilities)
        ends.callback(app.remove)
        top = app.pid()
        process.until(lambda: of_program(top) or None, 10, "it runs")
        time.sleep(1)
        service.load(ends)
        pids = of_program(top)
        perf = [cost.PILLION, "-f", hz, "--max-cpu", "20", "--format", "col", "-o", by_process, "-d", seconds, "-p", ",".join(map(str, pids))]
        before = seconds_of(pids)
        if capabilities is None:
            sidecar = container.Container(service.root, ["/pillion", *options, "-p", "1"], mounts=mounts, pid_of=top,
                                          uid=service.uid if sidecar_uid is None else sidecar_uid, capabilities=beside_it)
            done = sidecar.finish(seconds + 60)
        used = seconds_of(pids) - before
        machine = whole_machine(pids, seconds, folder) if service.sleeps else None
        process.run(perf, timeout=seconds + 60)
        if capabilities is not None:
            app.signal(service.end_by)
            done = app.finish(60)
    return tell(way, profiler.Session(done, out), machine, profiler.Session(None, by_process), hz, used, done)


def tell(way, stops, machine, by_process, hz, used, done):
    shown, other = shares_of(stops)[0], shares_of(by_process)
    true, true_count = machine or other
    true = {name: share for name, share in true.items() if name in other[0]}  # the two name what has no symbol differently
    names = [name for name, share in true.items() if share > SHARED]
    worst = sorted(names, key=lambda name: -abs(true[name] - shown.get(name, 0)))[:3]
    stopped = re.findall(r"stops=(\S+)", done.err)
    count = sum(int(each.split("/")[0]) for each in stopped) or 1
    complete = re.findall(r"stacks=([\d.]+)%", done.err)
    chance = max((200 * math.sqrt(true[name] * (1 - true[name]) * (1 / count + 1 / true_count)) for name in names), default=0)
    told = ", ".join(f"{name[:40]} {100 * true[name]:.1f} -> {100 * shown.get(name, 0):.1f}{f' (by process {100 * other[0][name]:.1f})' if machine else ''}"
                     for name in worst)
    sums = f"; {stops.seconds(hz):.2f} of {used:.2f} s" if way.startswith("sidecar") else ""
    print(f"  {way}: {'/'.join(complete)} % complete{sums}; stops {' '.join(stopped)}; of {len(names)} functions (± {chance:.1f}): {told}", flush=True)
    return {name: 100 * (shown.get(name, 0) - share) for name, share in true.items() if share > SHARED}


def summarise(way, turns):
    """By how many points each function is off on average, and how sure that is: the deviation of the mean. What is
    farther off than twice that is no chance."""
    names = set.intersection(*map(set, turns))
    off = {name: [turn[name] for turn in turns] for name in names}
    error = {name: statistics.stdev(values) / math.sqrt(len(values)) for name, values in off.items()}
    worst = sorted(names, key=lambda name: -abs(statistics.mean(off[name])))[:5]
    told = ", ".join(f"{name[:40]} {statistics.mean(off[name]):+.2f} ± {error[name]:.2f}" for name in worst)
    print(f"  {way}, mean of {len(turns)} turns, points: {told}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=12)
    parser.add_argument("--hz", type=int, default=199)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--way", help="only ways whose name has this in it", default="")
    parser.add_argument("names", nargs="*", default=["cxx", "rust", "go", "musl", "postgres"])
    given = parser.parse_args()
    process.become_subreaper()
    for name in given.names:
        print(name)
        for way in WAYS:
            turns = [turn(name, way, given) for _ in range(given.turns if given.way in way else 0)]
            if len(turns) > 1:
                summarise(way, turns)


def turn(name, way, given):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        folder.chmod(0o755)
        service = (Postgres if name == "postgres" else Service)(name, folder, given.seconds)
        return run(service, way, given.seconds, given.hz, folder)


if __name__ == "__main__":
    main()

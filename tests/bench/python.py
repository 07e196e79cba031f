"""Reading CPython's stacks: what one walk costs, what the profiler uses and the target loses, how often a stack is torn;
austin and py-spy attached to the very same process in turns.

The peers come from the Python package index, once, into build/lab/bench; without them their columns stay empty.
LAB_OFFLINE=1: nothing is fetched.

    tests/bench/python.py [--quick] [walk|cost|loss|calls|torn]...
"""
import functools
import itertools
import json
import math
import mmap
import os
import platform
import random
import re
import shutil
import signal
import statistics
import struct
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import cache, col, compiler, process, pythons  # noqa: E402
import rows  # noqa: E402
import torn  # noqa: E402
import turns  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PILLION = ROOT / "build" / "out" / platform.machine() / "pillion"
WALK = ROOT / "build" / "out" / "bench" / "python_walk"
HOT = ROOT / "tests" / "live" / "programs" / "python" / "hot.py"
PYTHON = "/usr/bin/python3"
QUICK = "--quick" in sys.argv
FRAMES = 30
PEERS = {"austin": "austin-dist==3.7.0", "py-spy": "py-spy==0.4.1"}
SETTLE = 2  # from the attachment until samples come at their pace


# ---- The profilers, each attached to a process

@functools.lru_cache(maxsize=None)
def peer(name):
    """The path of a peer's program; None, with the reason printed, when it cannot be had."""
    folder = cache.folder("bench", PEERS[name].replace("==", "-"))
    path = folder / "bin" / name
    if not path.exists():
        if os.environ.get("LAB_OFFLINE"):
            reason = "LAB_OFFLINE is set and it is not in build/lab"
        else:
            done = process.run([PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--target", folder,
                                PEERS[name]], timeout=180)
            reason = (done.err.strip().splitlines() or [f"pip: {done}"])[0] if done.status else "its package has no program"
        if not path.exists():
            print(f"{name}: left out, {reason}", flush=True)
            return None
    return path


def cpu_seconds(pid):
    """Of the threads that a process has, by the scheduler's count of nanoseconds."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9


class Profiler:
    """One that is attached: `stop` ends it and returns how many samples it took and how long it lived."""

    name, ending = "", signal.SIGINT

    def __init__(self, pid, hz, folder, cpu_only=False):
        self.hz, self.cpu_only = hz, cpu_only
        self.output = Path(tempfile.mkdtemp(dir=folder))
        self.started = process.start(self.command(pid))
        self.begin = time.monotonic()

    @property
    def pid(self):
        return self.started.pid

    def stop(self):
        self.seconds = time.monotonic() - self.begin
        if self.started.poll() is None:
            self.started.signal(self.ending)
        self.done = self.started.finish(30)
        return self.samples()

    def samples(self):
        raise NotImplementedError

    def stacks(self):
        """(function names root first, count)."""
        raise NotImplementedError


class Pillion(Profiler):
    ending = signal.SIGTERM
    mode = ""

    def command(self, pid):
        return [PILLION, "--log-format", "json", "-p", pid, "-d", 600, "-f", self.hz, "--perf-mode", self.mode, "--max-cpu", 100,
                "--format", "col", "-o", self.output]

    @property
    def window(self):
        events = [json.loads(line) for line in self.done.err.splitlines() if line.startswith("{")]
        return [event for event in events if event.get("event") == "window"][-1]

    def samples(self):
        return float(self.window["samples"])

    def stacks(self):
        for stack in col.last(self.output).stacks:
            # of another moment than its native leaf, and so not proven
            proven = "[~]" not in stack.frames
            yield [re.sub(r" \(.*", "", frame) for frame in stack.frames if frame.endswith("_[p]")], stack.count, proven


class Perf(Pillion):
    name, mode = "pillion", "smart"


class Perfless(Pillion):
    name, mode = "pillion, no perf", "disabled"


class Austin(Profiler):
    name = "austin 3.7"

    def command(self, pid):
        return [peer("austin"), "-i", 1000000 // self.hz, *(["-s"] if self.cpu_only else []), "-p", pid, "-o", self.output / "out"]

    def samples(self):
        found = re.search(r"Error rate\W.*?\d+/(\d+)", self.done.out + self.done.err)
        return float(found[1]) if found else 0

    def stacks(self):
        for line in (self.output / "out").read_text(errors="replace").splitlines():
            if line.startswith("P"):
                yield [frame.split(":")[-2] for frame in line.rpartition(" ")[0].split(";")[2:] if frame.count(":") > 1], 1, True


class Spy(Profiler):
    name, options = "py-spy", ()

    def command(self, pid):
        return [peer("py-spy"), "record", "-r", self.hz, "-f", "raw", *self.options, "-o", self.output / "out", "-p", pid]

    def samples(self):
        found = re.search(r"Samples: (\d+)", self.done.out + self.done.err)
        return float(found[1]) if found else 0

    def stacks(self):
        for line in (self.output / "out").read_text(errors="replace").splitlines():
            frames, _, count = line.rpartition(" ")
            yield [re.sub(r" \(.*", "", frame) for frame in frames.split(";")], int(count), True


class FreeSpy(Spy):
    name, options = "py-spy --nonblocking", ("--nonblocking",)


HOW = {Perf: "woven", Perfless: "without perf"}


@functools.lru_cache(maxsize=None)
def works(kind):
    """Whether a peer goes on when it is attached here; it may lack a right."""
    with tempfile.TemporaryDirectory() as folder, Work([PYTHON], folder) as work:
        profiler = kind(work.pid, 100, folder)
        time.sleep(SETTLE)
        if profiler.started.poll() is None:
            profiler.stop()
            return True
        print(f"{kind.name}: left out, {profiler.started.finish()}", flush=True)
        return False


@functools.lru_cache(maxsize=None)
def profilers():
    peers = [kind for name, kinds in (("austin", [Austin]), ("py-spy", [FreeSpy, Spy])) if peer(name) for kind in kinds]
    return [Perf, Perfless, *filter(works, peers)]


# ---- What they are attached to

class Work:
    """work_python.py, running. `told` is its count of pieces and of its CPU time."""

    script = "work_python.py"

    def __init__(self, python, folder, busy=1, idle=0, cpu=None):
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(bytes(4096))
        with open(file.name, "rb") as kept:
            self.shared = mmap.mmap(kept.fileno(), 4096, prot=mmap.PROT_READ)
        place = [] if cpu is None else ["taskset", "-c", cpu]
        tells = [file.name] if busy == 1 and not idle and cpu is None else []
        self.started = process.start([*place, *python, HERE / self.script, *self.arguments(busy, idle), *tells])
        self.pid = self.started.pid
        time.sleep(.5)

    def arguments(self, busy, idle):
        return [FRAMES, busy, idle]

    def told(self):
        while True:
            first, cpu_ns, again = struct.unpack_from("qqq", self.shared)
            if first == again:
                return first, cpu_ns

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.started.end()
        self.started.done()


# ---- One walk

def interpreters():
    """Those that are a part of this machine, one of each version, the host's first."""
    found = {}
    for name in filter(pythons.is_here, pythons.rows()):
        try:
            python = pythons.get(name)
        except pythons.Missing as reason:
            print(f"{name}: left out, {reason}")
            continue
        found.setdefault(python.number[:2], python)
    return list(found.values())


def mapped(pid, library):
    """The file in which this process has its interpreter: a library whose name begins so, or the program."""
    files = {line.split()[-1] for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if library in line}
    return sorted(files)[0] if files else os.path.realpath(f"/proc/{pid}/exe")


def walk_once(work, samples, hz, library="/libpython"):
    done = process.run([WALK, work.pid, mapped(work.pid, library), samples, hz], timeout=60)
    if done.status:
        raise RuntimeError(f"python_walk: {done}")
    return json.loads(done.out)


def walking(folder):
    cpu, calls = max(os.sched_getaffinity(0)), {}
    for python in interpreters():
        with Work(python.argv, folder, cpu=cpu) as work:
            dense = walk_once(work, 200 if QUICK else 1000, 1000)
            sparse = walk_once(work, 50 if QUICK else 100, 100)
        what = f"Python {'.'.join(map(str, python.number[:2]))}, a stack of {dense['frames'] + .5:.0f} frames read"
        calls[python.version] = dense["calls"], sparse["calls"]
        rows.add(f"{what}, 1000 a second", dense["walk_ns"]["median"] / 1000, "µs", most=8,
                 peer="a read of one word", peer_value=dense["word_ns"]["median"] / 1000,
                 note=f"{dense['kernel_ns']['median'] / 1000:.1f} of it in the kernel, 9 of 10 below {dense['walk_ns']['p90'] / 1000:.0f}; "
                      f"{dense['stat_ns']['median'] / 1000:.1f} more to prove it; 100 a second {sparse['walk_ns']['median'] / 1000:.1f}")
    version, (dense, sparse) = max(calls.items(), key=lambda item: max(item[1]))
    rows.add("Python, system calls per stack read", max(dense, sparse), "calls", most=1.5,
             note=f"{len(calls)} versions, the dearest {version}; one more to prove it")


# ---- What they use, and what the target loses

class Cost:
    """Figures of one profiler at one rate, over the turns."""

    def __init__(self):
        self.of_core, self.of_target, self.rate = [], [], []

    def add(self, profiler, used):
        samples = profiler.stop()
        own, target, wall = used
        self.of_core.append(100 * own / wall)
        self.of_target.append(100 * own / max(target, 1e-9))
        self.rate.append(samples / profiler.seconds)


def attached(kind, work, hz, seconds, folder, cpu_only=False):
    """(the profiler, still attached; in a while of its sampling: its CPU seconds, the target's, those of the wall)."""
    profiler = kind(work.pid, hz, folder, cpu_only)
    time.sleep(SETTLE)
    before = cpu_seconds(profiler.pid), cpu_seconds(work.pid), time.monotonic()
    time.sleep(seconds)
    after = cpu_seconds(profiler.pid), cpu_seconds(work.pid), time.monotonic()
    return profiler, [now - then for now, then in zip(after, before)]


def one_thread(folder):
    """{(kind, hz): Cost}: the profilers take turns at the same process. Ours have more of them: what they cost is less, and
    harder to tell."""
    rounds, seconds = (1, 1) if QUICK else (4, 2)
    costs = {}
    with Work([PYTHON], folder) as work:
        for turn in range(rounds):
            order = [each for each in itertools.product(profilers(), (100, 1000)) if turn % 2 == 0 or issubclass(each[0], Pillion)]
            for kind, hz in order if turn % 4 < 2 else order[::-1]:
                costs.setdefault((kind, hz), Cost()).add(*attached(kind, work, hz, seconds, folder))
    return costs


def many_threads(folder, busy, idle):
    costs = {}
    with Work([PYTHON], folder, busy, idle) as work:
        for hz in (100, 1000):
            for kind in (each for each in profilers() if each is not Spy):
                profiler, used = attached(kind, work, hz, 1 if QUICK else 2, folder, True)
                costs.setdefault((kind, hz), Cost()).add(profiler, used)
    return costs


def seen(costs, kind, hz):
    return f"{statistics.median(costs[kind, hz].rate):.0f} samples/s"


def others(costs, figure, hz):
    """{peer: its figure} at this rate."""
    return {each: figure(costs[each, hz]) for each in (Austin, FreeSpy, Spy) if (each, hz) in costs}


def report_share(costs, what, figure, unit, most, times):
    """One row for each of our two ways, beside austin's; without perf, with `times`, one more for each peer."""
    for hz, kind in itertools.product((100, 1000), (Perf, Perfless)):
        ours, peers = figure(costs[kind, hz]), others(costs, figure, hz)
        if max(costs[kind, hz].rate) == 0:
            print(f"  {kind.name}, {what}, {hz} Hz: no samples")
            continue
        said = ", ".join([seen(costs, kind, hz)] + [f"{each.name} {theirs:.2f}" for each, theirs in peers.items() if each is not Austin])
        rows.add(f"own CPU, Python, {hz} Hz, {what}, {HOW[kind]}", ours, unit, most=most.get((kind, hz)), note=said,
                 peer=Austin.name if Austin in peers else None, peer_value=peers.get(Austin))
        for each in peers if times and kind is Perfless else ():
            rows.add(f"own CPU, Python, {hz} Hz, without perf, against {each.name}", ours, unit, times=times, peer=each.name, peer_value=peers[each],
                     note=seen(costs, each, hz))


def speed(work, beside):
    """Pieces per CPU second in a turn; the processes `beside` go on and stop with it."""
    before = work.told()
    for pid in beside:
        turns.go_on(pid)
    turns.take(work.pid)
    for pid in beside:
        turns.stop(pid)
    pieces, cpu_ns = (now - then for now, then in zip(work.told(), before))
    return pieces / cpu_ns


def slower(kind, hz, one, other, folder, rounds=100):
    """By how much `one`, profiled, is slower than `other`, as logarithms of each pair of turns."""
    profiler, begun = kind and kind(one.pid, hz, folder), cpu_seconds(one.pid)
    time.sleep(SETTLE)
    # a peer wakes up whatever its target does: it would take from the other's turns as well
    beside = [profiler.pid] if profiler is not None and not isinstance(profiler, Pillion) else []
    for pid in (one.pid, other.pid, *beside):
        turns.stop(pid)
    logs = []
    for _ in range(10 if QUICK else rounds):
        of = {each: speed(each, beside if each is one else []) for each in random.sample([one, other], 2)}
        logs.append(math.log(of[other] / of[one]))
    seconds = cpu_seconds(one.pid) - begun
    for pid in (one.pid, other.pid, *beside):
        turns.go_on(pid)
    samples = profiler.stop() if profiler is not None else 0
    if samples < .7 * hz * seconds:
        raise RuntimeError(f"{profiler.name} took {samples:.0f} samples of {seconds:.1f} s at {hz} Hz: {profiler.done}")
    return logs


def loss(kind, hz, folder, start=lambda folder: Work([PYTHON], folder), rounds=100):
    """(percent, error). Two processes of one program differ in speed: each is the profiled one in half of the turns."""
    with start(folder) as one, start(folder) as other:
        halves = [slower(kind, hz, *pair, folder, rounds) for pair in ((one, other), (other, one))]
    middle = statistics.mean(map(statistics.median, halves))
    return 100 * (1 - math.exp(-middle)), 100 * math.hypot(*map(turns.error, halves)) / 2


def losses(folder):
    of = {each: loss(*each, folder) for each in [(None, 0), *itertools.product([Perf, Perfless], (100, 1000)),
                                                 *((kind, 100) for kind in (Austin, FreeSpy) if kind in profilers())]}
    peers = "".join(f"; {kind.name} {percent:.2f}" for (kind, _), (percent, _) in of.items() if kind in (Austin, FreeSpy))
    bare, bare_error = of[None, 0]
    for hz, kind in itertools.product((100, 1000), (Perf, Perfless)):
        percent, error = of[kind, hz]
        rows.add(f"what a Python target loses, {hz} Hz, {HOW[kind]}", percent, "%", most=.5 if hz == 100 else None,
                 note=f"± {error:.2f}, turns of {turns.SECONDS} s; bare against bare {bare:.2f} ± {bare_error:.2f}"
                      + (peers if hz == 100 else ""))


def waking_up(folder):
    """What is left of the price when nothing is read: the floor of whatever interrupts its target on the target's CPU."""
    cpu = max(os.sched_getaffinity(0))
    with Work([PYTHON], folder, cpu=cpu):
        for hz in (100, 1000):
            done = process.run(["taskset", "-c", cpu, compiler.compile_file(HERE / "wake.c", "wake"), hz, hz if QUICK else 3 * hz])
            rows.add(f"a thread that only wakes up on the CPU of a busy Python, {hz} Hz", float(done.out) * hz / 1e7, "% of a core",
                     note=f"{float(done.out) / 1000:.1f} µs each: no profiler that interrupts its target there can cost less")


def cost(folder):
    waking_up(folder)
    costs = one_thread(folder)
    report_share(costs, "one thread", lambda each: statistics.median(each.of_target), "% of the target's",
                 {(Perf, 100): .5, (Perfless, 100): .1}, 5)
    for busy, idle, what in ((1, 63, "1 of 64 threads busy"), (64, 0, "64 threads that work and sleep")):
        report_share(many_threads(folder, busy, idle), what, lambda each: statistics.median(each.of_core), "% of a core", {}, None)


# ---- System calls of all of it

COUNTED = ("raw_syscalls:sys_enter", "syscalls:sys_enter_process_vm_readv")


def counted_calls(kind, work, folder):
    """(system calls, those that read memory, samples) of a whole profiler in the same while; None: perf cannot count."""
    seconds = 1 if QUICK else 2
    profiler = kind(work.pid, 100, folder)
    time.sleep(SETTLE)
    perf = process.run(["perf", "stat", "-x", ",", "-e", ",".join(COUNTED), "-p", profiler.pid, "--", "sleep", seconds], timeout=30)
    samples = profiler.stop() / profiler.seconds * seconds
    counts = [int(number) for number in re.findall(r"^(\d+),", perf.err, re.M)]
    return (*counts, samples) if len(counts) == len(COUNTED) and samples > 0 else None


def calls(folder):
    figures = {}
    with Work([PYTHON], folder) as work:
        for kind in profilers() if shutil.which("perf") else ():
            counted = counted_calls(kind, work, folder)
            if counted:
                every, reads, samples = counted
                figures[kind] = every / samples
                print(f"  {kind.name}: {every / samples:.1f} per sample, {reads / samples:.2f} of them read memory; {samples:.0f} samples")
    if not {Perf, Perfless} <= figures.keys():
        print("system calls: left out, perf is missing or may not count them")
        return
    for kind in (Perf, Perfless):
        rows.add(f"Python, all system calls per sample, 100 Hz, {HOW[kind]}", figures[kind], "calls",
                 peer=Austin.name if Austin in figures else None, peer_value=figures.get(Austin),
                 note=", ".join(f"{each.name} {figures[each]:.0f}" for each in (FreeSpy, Spy) if each in figures))


# ---- Torn stacks

def torn_stacks(folder):
    seconds, found = 2 if QUICK else 4, {}
    started = process.start([PYTHON, HOT, 1000])
    time.sleep(.3)
    for kind in profilers():
        profiler = kind(started.pid, 1000, folder)
        time.sleep(seconds)
        profiler.stop()
        found[kind] = torn.Counts(profiler.stacks())
        print(f"  {kind.name}: {found[kind]}")
    started.end()
    started.done()
    peers = ", ".join(f"{kind.name} {each.share:.2f} of {each.total}" for kind, each in found.items() if not issubclass(kind, Pillion))
    for kind in (Perf, Perfless):
        counts = found[kind]
        if counts.total == 0:
            print(f"  {kind.name}: no stack of Python's")
            continue
        rows.add(f"Python, stacks that never were, 1000 Hz, {HOW[kind]}", counts.share, "%", most=.1,
                 peer=Austin.name if Austin in found else None, peer_value=found[Austin].share if Austin in found else None,
                 note=f"{counts.wrong} of {counts.total}; {peers}")
    counts = found[Perf]
    rows.add("Python, stacks that never were among the proven ones", counts.wrong_proven, "stacks", most=0,
             note=f"of {counts.proven}; {100 * counts.proven / max(counts.total, 1):.1f} % are proven")


def main():
    parts = {"walk": walking, "cost": cost, "loss": losses, "calls": calls, "torn": torn_stacks}
    asked = [argument for argument in sys.argv[1:] if argument in parts] or list(parts)
    if not WALK.exists():
        sys.exit(f"{WALK.relative_to(ROOT)} is missing; run make bench-programs")
    process.become_subreaper()
    for name in asked:
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="p") as folder:
            parts[name](folder)
        print(f"  {name}: {time.monotonic() - begin:.0f} s, load {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main()

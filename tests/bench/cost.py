"""What profiling costs: the profiler's CPU and memory, what the target loses, how soon it begins; perf on the same work.

The profiler's CPU is its utime + stime over its whole life (sampling, unwinding, symbols, encoding, writing), read by
wait4 when it has ended; what it says of itself stands beside. perf's is that of `perf record` without the command's own,
and of the `perf script` that makes text of its file. The target counts its own work (work_count.c), so that its loss is
pieces of work per CPU second; all targets of one comparison live at once and run by turns (turns.py).

    tests/bench/cost.py [--quick]
"""
import json
import os
import platform
import random
import shutil
import signal
import statistics
import struct
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import compiler, perfdata, process, profiler, workloads  # noqa: E402
import rows  # noqa: E402
import turns  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PILLION = ROOT / "build" / "out" / platform.machine() / "pillion"
RECORD = PILLION.parent / "lab" / "record"  # linked with the product's objects: tests/lab/record.c
QUICK = "--quick" in sys.argv
BARE = ("-fomit-frame-pointer", "-momit-leaf-frame-pointer")


def work_count(*arguments):
    return [compiler.compile_file(HERE / "work_count.c", "work_count", *BARE), *arguments]


def windows_in(log):
    """The windows that a log in JSON tells of; whatever else wrote there is passed over."""
    lines = [line for line in log.splitlines() if line.startswith("{")]
    return [event for event in map(json.loads, lines) if event.get("event") == "window"]


class Profiled:
    """A command under a detached pillion: what each of the two used."""

    def __init__(self, command, hz, *options):
        with tempfile.TemporaryDirectory() as out:
            begin = time.monotonic()
            started = process.start([PILLION, "--log-format", "json", "--launch", "exec", "-f", hz, *options, "-o", out, "--", *command])
            pid = profiler.find(started, PILLION)
            process.foreign.add(pid)
            done = started.finish(180)
            usage = os.wait4(pid, 0)[2]
            process.foreign.discard(pid)
            self.seconds = time.monotonic() - begin
        self.cpu, self.rss = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        self.out = done.out
        self.windows = windows_in(done.err)

    def total(self, field):
        return sum(float(window.get(field, 0)) for window in self.windows)


class Perf:
    """The same under perf record and perf script. `cpu` is None when perf is not there."""

    def __init__(self, command, hz, graph):
        with tempfile.TemporaryDirectory() as out:
            data = f"{out}/data"
            record = process.run(["perf", "record", "-q", "-e", "cpu-clock", "--call-graph", graph, "-F", hz, "-o", data, "--", *command],
                                 timeout=180)
            # kptr and frequency warnings go to standard error; the text itself goes nowhere
            script = process.run(["sh", "-c", f"exec perf script -i {data} --no-inline -F comm,pid,tid,time,ip,sym,dso >/dev/null"],
                                 timeout=300)
            if record.status or script.status:
                raise RuntimeError(f"perf {graph}: {record} {script}")
            own = int(record.out.split()[1]) / 1e9
            self.record, self.script = max(record.cpu_seconds - own, 0), script.cpu_seconds
            self.cpu, self.mb = self.record + self.script, os.path.getsize(data) / 1e6
            self.rss = max(record.usage.ru_maxrss, script.usage.ru_maxrss) / 1024


def own_cost():
    """Two busy threads, 25 frames without frame pointers."""
    for hz, seconds in ((99, 20), (999, 10)):
        seconds = 4 if QUICK else seconds
        ours = Profiled(work_count(2, seconds), hz)
        spent = int(ours.out.split()[1]) / 1e9
        peers = {graph: Perf(work_count(2, seconds), hz, graph) for graph in ("dwarf", "fp")} if shutil.which("perf") else {}
        print(f"  {hz} Hz: {ours.total('samples'):.0f} samples of {spent:.1f} CPU s in {ours.seconds:.1f} s, "
              f"own CPU {ours.cpu:.3f} s by wait4, {ours.total('own_cpu_s'):.3f} s by itself")
        for graph, peer in peers.items():
            print(f"  {hz} Hz: perf {graph} {peer.record:.3f} s to record, {peer.script:.3f} s to script, {peer.mb:.1f} MB, "
                  f"{peer.rss:.0f} MB RSS")
        if peers:
            rows.add(f"own CPU, {hz} Hz, 2 busy threads, all of a {seconds} s run", ours.cpu * 1000, "ms",
                     peer="perf record --call-graph dwarf, perf script", peer_value=peers["dwarf"].cpu * 1000)
            rows.add(f"the same against frame pointers, {hz} Hz", ours.cpu * 1000, "ms", peer="perf record -g, perf script",
                     peer_value=peers["fp"].cpu * 1000, note="perf's stacks end at the first function without one")
        if hz == 999:
            lost = ours.total("lost_percent")
            rows.add(f"lost samples, {hz} Hz", lost, "%", most=0, note=f"{ours.total('samples'):.0f} samples")
            rows.add(f"whole stacks, {hz} Hz", 100 * ours.total("stacks_complete") / max(ours.total("samples"), 1), "%", least=99.8)
    one_window(6 if QUICK else 60)


def one_window(seconds):
    """What a run costs by default."""
    ours = Profiled(work_count(2, seconds), 99)
    if shutil.which("perf"):
        rows.add(f"own CPU, 99 Hz, 2 busy threads, one window of {seconds} s, in all", ours.cpu * 1000, "ms", times=5,
                 peer="perf record --call-graph dwarf, perf script", peer_value=Perf(work_count(2, seconds), 99, "dwarf").cpu * 1000)
    rows.add(f"own CPU, 99 Hz, 2 busy threads, one window of {seconds} s", 100 * ours.cpu / ours.seconds, "% of a core", most=.3,
             note=f"{ours.cpu:.3f} s; flame graph, pprof and collapsed stacks written")


def memory():
    seconds = 3 if QUICK else 6
    node = workloads.named("node")
    if node.needs() is None:
        with tempfile.TemporaryDirectory(prefix="n") as folder:
            command = ["timeout", str(seconds), *map(str, node.command(Path(folder)))]
            ours = Profiled(command, 99)
        rows.add("RSS beside node (a program of 98 MB)", ours.rss, "MB", most=12)
    act = compiler.program(ROOT / "tests" / "live" / "programs", "act")
    ours = Profiled([act, "processes", "200", ".05"], 99)
    rows.add("RSS beside 200 processes", ours.rss, "MB", most=32)


def thread_seconds(pid):
    """CPU time of the threads that a process has now, by the scheduler's count of nanoseconds."""
    return sum(int(Path(task, "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9


def steady_share(command, seconds):
    """Percent of a core that the profiler uses while it samples: nothing of its start, and no window ends meanwhile."""
    with tempfile.TemporaryDirectory() as out:
        started = process.start([PILLION, "-q", "--launch", "exec", "-d", "600", "-o", out, "--", *command])
        pid = profiler.find(started, PILLION)
        time.sleep(2)
        before, begin = thread_seconds(pid), time.monotonic()
        time.sleep(seconds)
        share = 100 * (thread_seconds(pid) - before) / (time.monotonic() - begin)
        started.finish(60)
        process.settle(15)
        return share


def steady():
    seconds = 3 if QUICK else 8
    busy = steady_share(work_count(2, seconds + 3), seconds)
    rows.add("own CPU, 99 Hz, 2 busy threads, while sampling", busy, "% of a core", most=.3, note="without start and files")


class Turns:
    """A busy target that runs in its turns only."""

    def __init__(self, prefix, show):
        self.show = show
        self.started = process.start([*prefix, *work_count(2, 3600, 0, show)])
        process.until(lambda: show.exists() and show.stat().st_size and self.numbers()[0], 20, "the target runs")
        self.pid = self.numbers()[0]
        turns.stop(self.pid)

    def numbers(self):
        return struct.unpack("<3Q", b"".join(self.show.read_bytes()[at:at + 8] for at in (0, 64, 128)))

    def speed(self):
        """Pieces of work per CPU second in a turn."""
        pieces, cpu = sum(self.numbers()[1:]), thread_seconds(self.pid)
        turns.take(self.pid)
        return (sum(self.numbers()[1:]) - pieces) / (thread_seconds(self.pid) - cpu)

    def end(self):
        """Samples per CPU second, by pillion's own count; 0: it was not there."""
        cpu = thread_seconds(self.pid)
        os.kill(self.pid, signal.SIGTERM)
        turns.go_on(self.pid)
        done = self.started.finish(60)
        return sum(float(window["samples"]) for window in windows_in(done.err)) / cpu


def slowdown():
    rounds = 40 if QUICK else 400
    with tempfile.TemporaryDirectory() as out:
        out = Path(out)
        prefixes = {"bare": [], "again": []}
        for hz in (99, 999):
            prefixes[hz] = [PILLION, "--log-format", "json", "--launch", "exec", "-f", hz, "-d", 3600, "-o", out, "--"]
            if shutil.which("perf"):
                prefixes[f"perf {hz}"] = ["perf", "record", "-q", "-e", "cpu-clock", "-F", hz, "-o", out / f"{hz}.data", "--"]
        targets = {name: Turns(prefix, out / f"{name}.shown") for name, prefix in prefixes.items()}
        time.sleep(1)
        losses = {name: [] for name in targets}
        for _ in range(rounds):
            speed = {name: targets[name].speed() for name in random.sample(list(targets), len(targets))}
            bare = (speed["bare"] + speed["again"]) / 2
            for name in targets:
                losses[name].append(100 * (1 - speed[name] / bare))
        rates = {name: target.end() for name, target in targets.items()}
        process.settle(30)
    error = {name: turns.error(of) for name, of in losses.items()}
    for hz, limit in ((99, .5), (999, None)):
        peer = f"perf {hz}" if f"perf {hz}" in losses else None
        if abs(rates[hz] / hz - 1) > .05:
            raise RuntimeError(f"{rates[hz]:.1f} samples per CPU second at {hz} Hz")
        rows.add(f"what the target loses, {hz} Hz", statistics.median(losses[hz]), "%", most=limit,
                 peer="perf record without stacks" if peer else None,
                 peer_value=statistics.median(losses[peer]) if peer else None,
                 note=f"± {error[hz]:.2f}, median of {rounds} turns of {turns.SECONDS} s; bare against bare "
                      f"{statistics.median(losses['again']):.2f} ± {error['again']:.2f}")


def first_sample():
    """From the exec to the first sample, by the kernel's own times of the two records."""
    waits = []
    with tempfile.TemporaryDirectory() as out:
        for i in range(5 if QUICK else 20):
            path = Path(out) / f"{i}.recording"
            process.run([RECORD, path, "--launch", "init", "-q", "-o", out, "--", *work_count(1, .1)])
            process.settle(15)
            recording = perfdata.Recording(path)
            kinds = [(struct.unpack_from("<IHH", record), recording.time_of(record)) for record in recording.records]
            kinds.sort(key=lambda entry: entry[1])
            execs = [when for (kind, misc, _), when in kinds if kind == perfdata.RECORD_COMM and misc & perfdata.MISC_COMM_EXEC]
            samples = [when for (kind, _, _), when in kinds if kind == perfdata.RECORD_SAMPLE and when >= execs[0]]
            waits.append((samples[0] - execs[0]) / 1e6)
    waits.sort()
    rows.add("first sample after exec, 99 Hz", statistics.median(waits), "ms", most=20,
             note=f"median of {len(waits)}, latest {waits[-1]:.1f}; one every 10.1 ms of CPU time")


def main():
    process.become_subreaper()
    rows.add("binary", os.path.getsize(PILLION) / 1e6, "MB", most=2)
    own_cost()
    memory()
    steady()
    slowdown()
    first_sample()


if __name__ == "__main__":
    main()

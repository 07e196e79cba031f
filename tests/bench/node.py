"""JavaScript from the registers of samples: what the profiler uses beside a busy Node.js, what a frame costs; what the program loses by it and by
node's own ways (--cpu-prof, --perf-basic-prof); and how far the shares of six functions are from what the program's own clocks say, by the
profiler and by --cpu-prof. The same where samples have no registers, by node's inspector.

    tests/bench/node.py [--quick] [cost|turns|truth|inspector]... [Node.js, as tests/lab/nodes.py names it]...
"""
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import nodes, process, profiler, versions  # noqa: E402
import rows  # noqa: E402
import turns  # noqa: E402
from stops import steady_of  # noqa: E402

HERE = Path(__file__).resolve().parent
SHARES = HERE.parent / "live" / "programs" / "node" / "shares.js"
WORK = HERE / "node_work.js"
PILLION = HERE.parents[1] / "build" / "out" / platform.machine() / "pillion"
QUICK = "--quick" in sys.argv
HZ, TURN = 99, 2
INSPECTOR = ["--perf-mode", "disabled", "--nodejs-mode", "inspector"]
SHALLOW, DEEP = 1, 61 # within the copied part of a stack: what is beyond it is read while the thread waits


# ---- Own CPU

def used_by(node, depth, *options, seconds=20):
    """Percent of a core that the profiler uses beside a program that is busy so many functions deep."""
    target = process.start([*node.argv, WORK, "", depth])
    with tempfile.TemporaryDirectory() as out:
        time.sleep(2) # by then it is compiled
        running = process.start([PILLION, "-p", target.pid, "-d", 600, "-f", HZ, "--max-cpu", 50, "-o", out, *options])
        try:
            time.sleep(2 if QUICK else 8)
            return sum(steady_of(running.pid, 3 if QUICK else seconds))
        finally:
            running.signal(15)
            running.finish(30)
            target.signal(9)
            target.finish(10)


def cost(node):
    shallow, deep = used_by(node, SHALLOW), used_by(node, DEEP)
    rows.add(f"own CPU, Node.js {node.version}, {HZ} Hz, one busy thread", shallow, "% of a core", most=.5)
    rows.add("Node.js, a frame", (deep - shallow) * 1e7 / HZ / (DEEP - SHALLOW), "ns/frame", most=150,
             note=f"unwinding, name, line, in the profile; {deep:.3f} % of a core {DEEP} functions deep")


# ---- What the program loses

class Worked:
    def __init__(self, node, folder, *options):
        self.counts = Path(folder) / "counts"
        self.started = process.start([*node.argv, *options, WORK, self.counts], cwd=folder)
        self.pid = self.started.pid

    def told(self):
        return int.from_bytes(self.counts.read_bytes(), "big"), time.clock_gettime(~self.pid << 3 | 2) # CPUCLOCK_SCHED of a process

    def speed(self):
        pieces, cpu = self.told()
        time.sleep(TURN)
        more, used = self.told()
        return (more - pieces) / (used - cpu)


def lost_by(node, what, *options):
    """The program under pillion and without it, in turns."""
    lost = []
    with tempfile.TemporaryDirectory() as folder:
        work = Worked(node, folder)
        time.sleep(3)
        for _ in range(2 if QUICK else 10):
            before = work.speed()
            running = process.start([PILLION, "-p", work.pid, "-c", "-d", 3600, "-f", HZ, "-o", f"{folder}/out", *options])
            time.sleep(2 if not options else 4) # it asks who has run for a second
            during = work.speed()
            running.signal(15)
            running.finish(30)
            lost.append(100 * (1 - during / ((before + work.speed()) / 2)))
        os.kill(work.pid, 9)
    rows.add(f"a Node.js program's work per CPU second, {HZ} Hz, less by {what}", statistics.median(lost), "%",
             note=f"± {1.96 * turns.error(lost):.2f}, {len(lost)} turns of {TURN} s")


def turns_of(node):
    """And programs with node's own options beside a plain one."""
    lost_by(node, "perf events")
    for options in (["--cpu-prof", "--cpu-prof-interval", str(1_000_000 // HZ)], ["--perf-basic-prof", "--interpreted-frames-native-stack"]):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            plain, with_it = Worked(node, one), Worked(node, other, *options)
            time.sleep(3)
            lost = []
            for _ in range(2 if QUICK else 10):
                before, during = plain.speed(), with_it.speed()
                lost.append(100 * (1 - during / ((before + plain.speed()) / 2)))
            for work in (plain, with_it):
                os.kill(work.pid, 9)
            for map_ in Path("/tmp").glob(f"perf-{with_it.pid}.map"):
                map_.unlink()
        rows.add(f"a Node.js program's work per CPU second, less by {options[0]}", statistics.median(lost), "%",
                 note=f"± {1.96 * turns.error(lost):.2f}, against another process of the same program")


# ---- Shares

def told(text):
    return {name: float(share) for name, share in zip(*[iter(text.split())] * 2)}


def largest(shares, truth):
    total = sum(shares.values())
    return max(abs(100 * shares[name] / total - 100 * share) for name, share in truth.items())


def of_cpu_profile(path, names):
    profile = json.loads(path.read_text())
    nodes_ = {node["id"]: node["callFrame"]["functionName"] for node in profile["nodes"]}
    parents = {child: node["id"] for node in profile["nodes"] for child in node.get("children", [])}
    found = Counter()
    for at, passed in zip(profile["samples"], profile["timeDeltas"]):
        while at and nodes_[at] not in names:
            at = parents.get(at)
        found.update({nodes_[at]: passed} if at else {})
    return found


def ours_of(node, folder, seconds, warm, *options):
    """Samples of each function, and the shares that the program tells."""
    session = profiler.profile(PILLION, Path(folder) / "o", node.command(SHARES, seconds, warm), "-f", HZ, *options, launch="init", timeout=90)
    real, ours = told(session.done.out), Counter()
    for stack in session.col.stacks:
        ours.update({one: stack.count for one in real if any(frame.startswith(f"{one} ") for frame in stack.frames)})
    return ours, real


def inspector(name, node):
    """Between two sessions it has nothing to do: what it uses is that of a minute."""
    rows.add(f"own CPU by the inspector, Node.js {node.version}, {HZ} Hz, one busy thread", used_by(node, SHALLOW, *INSPECTOR, seconds=60), "% of a core",
             most=.5)
    lost_by(node, "the inspector, while it is open", *INSPECTOR)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        ours, real = ours_of(node, folder, 9, 2.5, *INSPECTOR)
    rows.add(f"Node.js {name}, shares by the inspector, largest difference from the program's clocks", largest(ours, real), "points",
             note=f"{sum(ours.values())} samples")


def truth(name, node):
    seconds = 3 if QUICK else 20
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        ours, real = ours_of(node, folder, seconds, .5)
        where = Path(node.inside or "/") / "tmp" / f"pillion-bench-{os.getpid()}"
        inner = f"/tmp/{where.name}"
        done = process.run([*node.argv, "--cpu-prof", f"--cpu-prof-dir={inner}", "--cpu-prof-interval", 1_000_000 // HZ, node.where(SHARES), seconds, .5],
                           timeout=90)
        file = next(where.glob("*.cpuprofile"))
        peer = largest(of_cpu_profile(file, told(done.out)), told(done.out))
        file.unlink()
        where.rmdir()
    rows.add(f"Node.js {name}, shares of six functions, largest difference from the program's clocks", largest(ours, real), "points", most=2,
             peer="--cpu-prof", peer_value=peer, note=f"{sum(ours.values())} samples of {seconds} s")


def main():
    asked = [each for each in sys.argv[1:] if not each.startswith("--")]
    parts = [each for each in ("cost", "turns", "truth", "inspector") if each in asked] or ["cost", "turns", "truth"]
    names = [each for each in asked if each in nodes.NAMES] or nodes.NAMES
    process.become_subreaper()
    if "cost" in parts:
        cost(nodes.get("host"))
    if "turns" in parts:
        turns_of(nodes.get("host"))
    for part, run in (("truth", truth), ("inspector", inspector)):
        for name in names if part in parts else ():
            try:
                run(name, nodes.get(name))
            except versions.Missing as reason:
                print(f"  Node.js {name}: skipped, {reason}")


if __name__ == "__main__":
    main()

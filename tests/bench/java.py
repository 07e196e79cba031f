"""Java methods from the registers of samples: what the profiler uses beside a busy JVM, what a frame costs, and whether async-profiler,
loaded into the very same JVM in the same run, tells the same stacks and shares; and what each way costs the JVM, in turns.

async-profiler is no part of a distribution, and left out with its reason where it is not: libasyncProfiler.so (of the jar
tools.profiler:async-profiler) goes to build/lab/bench/async-profiler.

    tests/bench/java.py [--quick] [cost|turns|compare]... [JDK, as tests/lab/javas.py names it]...
"""
import os
import platform
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import cache, javas, process, profiler, versions  # noqa: E402
import rows  # noqa: E402
import turns  # noqa: E402
from stops import steady_of  # noqa: E402

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE.parent / "live" / "programs" / "java"
PILLION = HERE.parents[1] / "build" / "out" / platform.machine() / "pillion"
QUICK = "--quick" in sys.argv
HZ = 99
SHALLOW, DEEP = 5, 205
THREADS, TURN = 2, 4
# Frames for what they are: nothing is inlined, no loop is left in the midst.
APART = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Deep.*"]
# Places for all instructions, as async-profiler asks for by itself.
EXACT = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"]


def compiled(folder):
    subprocess.run(["javac", "-nowarn", "-Xlint:-options", "--release", "8", "-d", folder, HERE / "Deep.java", HERE / "Work.java", *PROGRAMS.glob("*.java")],
                   check=True)
    return sorted(Path(folder).glob("*.class"))


# ---- Own CPU

def used_by(classes, depth, idle):
    """Percent of a core, beside a thread that is busy below so many frames."""
    seconds = 3 if QUICK else 20
    command = [shutil.which("java"), *APART, "-cp", classes[0].parent, "Deep", depth, 3600, idle]
    target = process.start(command)
    with tempfile.TemporaryDirectory() as out:
        time.sleep(3) # by then it is compiled
        running = process.start([PILLION, "-p", target.pid, "-d", 600, "-f", HZ, "--max-cpu", 50, "-o", out])
        try:
            time.sleep(2 if QUICK else 8)
            return sum(steady_of(running.pid, seconds))
        finally:
            running.signal(15)
            running.finish(30)
            target.signal(9)
            target.finish(10)


def cost(classes):
    shallow, deep, beside = used_by(classes, SHALLOW, 0), used_by(classes, DEEP, 0), used_by(classes, SHALLOW, 200)
    rows.add(f"own CPU, Java, {HZ} Hz, one busy thread beside 200 others", beside, "% of a core", most=.5,
             note=f"{shallow:.3f} without the others; {SHALLOW} frames")
    rows.add("Java, a frame of compiled code", (deep - shallow) * 1e7 / HZ / (DEEP - SHALLOW), "ns/frame",
             note=f"unwinding, name, line, in the profile; {deep:.3f} % of a core with {DEEP} frames")


# ---- What it costs the JVM, in turns without and with it

class Worked:
    """A JVM at work: how many pieces it has done, and its CPU time, that of its compilers and of its recorder included."""

    def __init__(self, classes, folder):
        self.counts = Path(folder) / "counts"
        self.pid = process.start([shutil.which("java"), "-cp", classes[0].parent, "Work", self.counts, THREADS]).pid
        time.sleep(5) # by then it is compiled

    def told(self):
        pieces = sum(struct.unpack(f">{THREADS}q", self.counts.read_bytes()))
        return pieces, time.clock_gettime(~self.pid << 3 | 2) # CPUCLOCK_SCHED of a process, whoever of it has ended

    def speed(self):
        pieces, cpu = self.told()
        time.sleep(TURN)
        more, used = self.told()
        return (more - pieces) / (used - cpu)


class Ours:
    """pillion for a turn."""

    def __init__(self, *options):
        self.options = options

    def begin(self, jvm, out):
        self.running = process.start([PILLION, "-p", jvm.pid, "-c", "-d", 3600, "-f", HZ, "-o", out, *self.options])
        time.sleep(3) # until it samples, and a recorder records

    def end(self, jvm):
        self.running.signal(15)
        self.running.finish(30)


class Peer:
    """async-profiler in the JVM, which is told by the JDK's own tool to start and to stop."""

    def __init__(self, library):
        self.library = library

    def tell(self, jvm, text):
        done = process.run(["jcmd", jvm.pid, "JVMTI.agent_load", self.library, f'"{text}"'], timeout=30)
        assert done.status == 0, done

    def begin(self, jvm, out):
        self.tell(jvm, f"start,event=cpu,interval={1_000_000_000 // HZ}")
        time.sleep(1)

    def end(self, jvm):
        self.tell(jvm, "stop,file=/dev/null,collapsed")


def in_turns(jvm, way, out):
    """Percent of the JVM's work per CPU second, turn by turn."""
    lost = []
    for _ in range(2 if QUICK else 10):
        before = jvm.speed()
        way.begin(jvm, out)
        during = jvm.speed()
        way.end(jvm)
        time.sleep(.5) # a recorder ends
        lost.append(100 * (1 - during / ((before + jvm.speed()) / 2)))
    return lost


def turns_of(classes, library):
    ways = {"perf events": Ours(), "the JVM's recorder": Ours("--perf-mode", "disabled"),
            "thread dumps": Ours("--perf-mode", "disabled", "--java-mode", "dump")}
    if library.exists() and shutil.which("jcmd"):
        ways["async-profiler, loaded"] = Peer(library)
    for what, way in ways.items():
        with tempfile.TemporaryDirectory() as folder:
            jvm = Worked(classes, folder)
            way.begin(jvm, f"{folder}/out") # what it costs to begin the first time is no turn's
            way.end(jvm)
            lost = in_turns(jvm, way, f"{folder}/out")
            rows.add(f"a JVM's work per CPU second, {HZ} Hz, less by {what}", statistics.median(lost), "%",
                     note=f"± {1.96 * turns.error(lost):.2f}, {len(lost)} turns of {TURN} s")
            os.kill(jvm.pid, 9)


# ---- Beside async-profiler

class Told:
    """Stacks of Java methods alone, outermost first, and how often."""

    def __init__(self, stacks):
        self.stacks = Counter()
        for frames, count in stacks:
            if frames:
                self.stacks[tuple(map(plain, frames))] += count
        self.total = sum(self.stacks.values())

    def shares(self):
        """Of the methods that ran, by the innermost one."""
        found = Counter()
        for frames, count in self.stacks.items():
            found[frames[-1]] += 100 * count / self.total
        return found


def plain(method):
    """Hidden classes have a number behind their name, written in several ways."""
    return re.sub(r"(\$\$Lambda|LambdaForm\$\w+)[$/.+\w]*(?=\.[^.]+$)", r"\1", method)


def of_peer(path):
    method = re.compile(r"[\w$/.+]+\.[\w$<>]+")
    for line in path.read_text().splitlines():
        frames, _, count = line.rpartition(" ")
        yield [frame for frame in frames.split(";")[1:] if method.fullmatch(frame)], int(count)


def of_ours(session):
    for stack in session.col.stacks:
        yield [frame.removesuffix("_[j]") for frame in stack.frames if frame.endswith("_[j]")], stack.count


def compare(classes, name, library):
    java, seconds = javas.get(name), 3 if QUICK else 20
    where = Path(java.where(classes[0], *classes)).parent
    agent = java.where(library)
    with tempfile.TemporaryDirectory() as out:
        told = Path(java.inside or "/") / "tmp" / "async.col"
        told.unlink(missing_ok=True)
        load = f"-agentpath:{agent}=start,event=cpu,interval=5ms,collapsed,threads,file=/tmp/async.col"
        session = profiler.profile(PILLION, Path(out) / "o", [*java.argv, load, *EXACT, "-cp", where, "Known", seconds], "-f", 199,
                                   "--max-cpu", 50, launch="init")
        ours, peers = Told(of_ours(session)), Told(of_peer(told))
        told.unlink()
    known = {frames[:len_] for frames in peers.stacks for len_ in range(1, len(frames) + 1)}
    same = sum(count for frames, count in ours.stacks.items() if frames in known)
    once = sum(1 for frames in ours.stacks if frames not in known)
    one, other = ours.shares(), peers.shares()
    off = max(abs(one[method] - other[method]) for method in one | other)
    rows.add(f"Java {name}, stacks that async-profiler has in the same JVM, too", 100 * same / ours.total, "%", least=99,
             note=f"of {ours.total:.0f}; {once} different ones it has not, of {len(ours.stacks)}")
    rows.add(f"Java {name}, share of a method beside async-profiler's, largest difference", off, "points", most=2,
             note=f"{ours.total:.0f} and {peers.total} samples")
    for frames, count in sorted(((frames, count) for frames, count in ours.stacks.items() if frames not in known), key=lambda each: -each[1])[:4]:
        print(f"    {count}: {' > '.join(frames[-6:])}")


def main():
    asked = [each for each in sys.argv[1:] if not each.startswith("--")]
    parts = [each for each in ("cost", "turns", "compare") if each in asked] or ["cost", "turns", "compare"]
    names = [each for each in asked if each in javas.NAMES] or javas.NAMES
    library = cache.folder("bench", "async-profiler") / "libasyncProfiler.so"
    process.become_subreaper()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        classes = compiled(folder)
        if "cost" in parts:
            cost(classes)
        if "turns" in parts:
            turns_of(classes, library)
        if "compare" in parts and not library.exists():
            print(f"  beside async-profiler: skipped, {library} is not there")
            return
        for name in names if "compare" in parts else ():
            try:
                compare(classes, name, library)
            except versions.Missing as reason:
                print(f"  Java {name}: skipped, {reason}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Totals of random process trees, held against what the kernel told each process of them (lab/trees.c).

    tests/lab/trees.py --count 100 --perf|--no-perf --launch|--attach|--all --hogs 0 [--seed N] [--jobs N] [-v]
    tests/lab/trees.py --build FOLDER 'make -j2' [--clean 'make clean'] --count 3 --no-perf --hogs 4

One line for each tree whose total, or the sum of a name in it, is not within 3 % or 0.1 s; then the sums over all. The same
seed is the same tree. --attach is -p to the tree's first process, when some of its processes and threads are there already;
--all is -a beside it. A build is held against wait4's rusage.

Without perf some time can be known to nobody: a process that no other waits for, between the last look at it and its
end; and of one that waited for others, what its times of them are cut to ticks by, if nobody looks any more at who waits for
it. The most that this can be is counted apart, and so is what names may be off by, where children were too short to be
seen alive. With perf a total may be larger by what a hypervisor took from this machine's CPUs meanwhile (steal).
"""
import argparse
import concurrent.futures
import contextlib
import copy
import os
import platform
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import compiler, pprof, process, vitals  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("ash", "beech", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "yew")
RELATIVE, ABSOLUTE = 0.03, 0.1
TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
SHELL_SECONDS = 0.0007  # what a shell takes that nobody waited for
LATE_SECONDS = 90
BUILD_SECONDS = 1800


def suffix():
    """The end of the names of our trees' processes: with -a others of this machine, trees as well, are in the profile."""
    return f".{os.getpid():x}"


def environment():
    return {**os.environ, "TREES_SUFFIX": suffix()}


# ---- The truth

class Life:
    def __init__(self, pid):
        self.pid, self.parent, self.began, self.ended = pid, 0, None, None
        self.pieces = []  # (name, own seconds so far)
        self.children = None  # seconds of those that it waited for
        self.waited = None  # own + children, by wait4, …
        self.waited_at = None  # … then
        self.is_shell = False
        self.own = 0

    @property
    def seconds(self):
        return self.ended - self.began


class Truth:
    """What a tree used: `total`, and `names`. `unseen` and `moved`, by name, are the most that may be missing or told by
    another name if processes are seen only each `look` seconds."""

    def __init__(self, text, look):
        self.lives, go = {}, 0
        for line in text.splitlines():
            word, *rest = line.split()
            go = self._take(word, rest) or go
        root = next(iter(self.lives.values()))
        self.root = root.pid
        for life in self.lives.values():
            life.own = self._own(life)
        self.total, self.names, self.unseen, self.moved = 0, Counter(), Counter(), Counter()
        others_ended = max([life.ended for life in self.lives.values() if life is not root], default=root.began)
        rested = root.ended - others_ended > look
        for life in self.lives.values():
            if life.ended < go:
                continue
            pieces = self._pieces(life)
            self.names.update(pieces)
            if life is root:
                continue
            hidden = self._hidden(life, look)
            for name, seconds in pieces.items():
                if hidden or not self._reached(life) or (not rested and life.ended > root.ended - look):
                    self.unseen[name] += seconds if hidden or life.seconds < look else min(seconds, 2 * look)
                if life.seconds < look:
                    self.moved[name] += seconds
            if life.waited_at and life.waited_at > root.ended - look:
                self.unseen[life.pieces[-1][0]] += min(life.children or 0, 2 * TICK_SECONDS)
        if not rested:
            self.unseen["tree"] += min(self.names["tree"], 2 * look)
        self.total = sum(self.names.values())
        self.waited_for = sum(life.own for life in self.lives.values() if self._reached(life))

    def _take(self, word, rest):
        if word == "go":
            return int(rest[0]) / 1e9
        life = self.lives.setdefault(int(rest[0]), Life(int(rest[0])))
        when = int(rest[-1]) / 1e9 if len(rest) > 1 else None
        if word in ("began", "shell") and life.began is None:
            life.parent, life.began, life.ended, life.is_shell = int(rest[1]), when, when, word == "shell"
        elif word == "used":
            life.pieces.append((rest[1].removesuffix(suffix()), int(rest[2]) / 1e9))
            life.children, life.ended = int(rest[3]) / 1e9, when
        elif word == "waited":
            life.waited, life.waited_at = int(rest[1]) / 1e9, when
        return None

    def _below(self, shell):
        return [life for life in self.lives.values() if life.parent == shell.pid]

    def _own(self, life):
        if life.is_shell:
            life.ended = max([life.began, *(child.ended for child in self._below(life))])
            life.pieces = [("sh", 0)]
            if life.waited is None:
                return SHELL_SECONDS
            below = sum(child.pieces[-1][1] + child.children for child in self._below(life) if child.pieces)
            return max(life.waited - below, 0)
        if not life.pieces:
            raise RuntimeError(f"process {life.pid} of the tree ended without a word")
        return life.pieces[-1][1] if life.waited is None else life.waited - life.children

    @staticmethod
    def _pieces(life):
        """{name: seconds}; of the last name it is what wait4 found in the end."""
        found, before = Counter(), 0
        for at, (name, so_far) in enumerate(life.pieces):
            so_far = life.own if at == len(life.pieces) - 1 else so_far
            if name != "-":
                found[name] += max(so_far - before, 0)
            before = so_far
        return found

    def _reached(self, life):
        """Is its time in the root's, by waiting?"""
        while life.pid != self.root:
            parent = self.lives.get(life.parent)
            if parent is None or (life.waited is None and not parent.is_shell):
                return False
            life = parent
        return True

    def _hidden(self, life, look):
        """Was it orphaned, or somebody between it and the root, before a look can have seen whose child it was?"""
        while life.pid != self.root:
            parent = self.lives.get(life.parent)
            if parent is None:
                return True
            if life.waited is None and not parent.is_shell and parent.ended - life.began < look:
                return True
            life = parent
        return False


# ---- One run

class Found:
    """What the profiles in a folder tell: seconds by name, all of them and those without a stack."""

    def __init__(self, folder):
        self.names, self.lost = Counter(), Counter()
        for path in Path(folder).glob("profile_[0-9]*.pprof"):
            if path.name.count(".") > 1:
                continue
            profile = pprof.read(path)
            at = profile.column("cpu")
            for sample in profile.samples:
                name = sample.labels.get("thread name", "?")  # "comm" is what a process was called last
                self.names[name] += sample.values[at] / 1e9
                if sample.frames == ["[lost]"]:
                    self.lost[name] += sample.values[at] / 1e9

    def total(self):
        return sum(self.names.values())

    def of_tree(self, alone):
        """The same with a tree's names as they were drawn; `alone`: without others."""
        tree = copy.copy(self)
        tree.names, tree.lost = ({name.removesuffix(suffix()): seconds for name, seconds in one.items()
                                  if not alone or name.endswith(suffix())} for one in (self.names, self.lost))
        tree.names = Counter(tree.names)
        return tree


def cpu_times():
    """(seconds that all CPUs were busy, seconds that a hypervisor took from them), by /proc/stat."""
    user, nice, system, _, _, irq, softirq, stolen = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:9])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK"), stolen / os.sysconf("SC_CLK_TCK")


def busy_seconds():
    return cpu_times()[0]


def trees_program():
    return compiler.compile_file(ROOT / "tests" / "lab" / "trees.c", "trees", "-static")


def links(folder):
    """Puts a tree's names there; the root's."""
    for name in ("tree", *NAMES):
        (folder / f"{name}{suffix()}").symlink_to(trees_program())
    (folder / f"sh{suffix()}").symlink_to("/bin/sh")
    return folder / f"tree{suffix()}"


def late_seconds(options):
    return LATE_SECONDS + 30 * options.hogs


def launched(options, folder, command, timeout, **more):
    """Profiles a command to its end and to the profiler's: what came of it."""
    done = process.run([options.pillion, "-o", folder / "out", "--launch", "exec", *options.mode, "--", *command],
                       timeout=timeout, **more)
    process.settle(30)
    return done


def attached(options, folder, root_command):
    """Profiles a tree that stands ready; (its root's end, all CPU seconds by /proc/stat but our own)."""
    reads, writes = os.pipe()
    root = process.start(root_command, stdin=reads, env=environment())
    os.close(reads)
    process.until(lambda: "ready" in root.out, 30, "the tree stands ready")
    target = ["-a"] if options.how == "all" else ["-p", root.pid, "--children"]
    own = process.start([options.pillion, *target, "-d", "900", *options.mode, "-o", folder / "out"])
    process.until(lambda: " profiles " in own.err or own.poll() is not None, 30, lambda: own.err)
    busy, mine = busy_seconds(), vitals.cpu_seconds(own.pid)
    os.write(writes, b"g")
    os.close(writes)
    done = root.finish(late_seconds(options))
    spent = 0
    if options.how == "all":
        time.sleep(0.3)
        spent = busy_seconds() - busy - (vitals.cpu_seconds(own.pid) - mine)
        own.signal(signal.SIGINT)
    ended = own.finish(60)
    process.settle(30)
    if ended.status not in (0, 1):
        raise RuntimeError(f"pillion ended with {ended}")
    return done, spent


class Verdict:
    def __init__(self, seed, truth, found, options, spent=0, stolen=0):
        """`stolen`: what the hypervisor took meanwhile. A perf event's clock goes on then, a process's clock does not."""
        self.seed, self.truth, self.spent, self.stolen = seed, truth, spent, stolen
        self.used = truth.total
        self.all_told = found.total()
        found = found.of_tree(options.how == "all")
        self.told, self.lost = found.total(), sum(found.lost.values())
        perf = not options.mode
        unseen = Counter() if perf else truth.unseen
        self.apart = min(max(self.used - self.told, 0), sum(unseen.values()))
        bound = max(RELATIVE * self.used, ABSOLUTE)
        more = stolen if perf else 0
        self.wrong = 1 if self.told > self.used + bound + more else -1 if self.told + self.apart < self.used - bound else 0
        self.names = []
        most_moved = 0 if perf else sum(truth.moved.values()) + sum(unseen.values())
        for name in sorted({*truth.names, *found.names}):
            used, told = truth.names[name], found.names[name]
            bound = max(RELATIVE * used, ABSOLUTE)
            least = used - bound - (0 if perf else truth.moved[name] + unseen[name])
            if not least <= told <= used + bound + most_moved + more:
                self.names.append((name, used, told))

    def __str__(self):
        more = ", ".join(f"{name} {told:.2f} of {used:.2f}" for name, used, told in self.names)
        return (f"seed {self.seed}: {'TOO MUCH' if self.wrong > 0 else 'too little' if self.wrong < 0 else 'total right'}: "
                f"told {self.told:.2f} of {self.used:.2f} s ({100 * (self.told / max(self.used, 1e-9) - 1):+.0f} %), "
                f"[lost] {self.lost:.2f}, apart {self.apart:.2f}, {len(self.truth.lives)} processes"
                f"{f', stolen {self.stolen:.2f}' if self.stolen > 0.05 else ''}"
                f"{'; names: ' if more else ''}{more}")


def look_seconds(options):
    return 0.15 + 0.02 * options.hogs


def judge(options, seed):
    """Profiles the tree of this seed: a Verdict."""
    with tempfile.TemporaryDirectory(prefix="trees-") as name:
        folder = Path(name)
        root = links(folder)
        (folder / "out").mkdir()
        amount = 200000 + seed * 7919 % 1600 * 1000
        command = [root, "root", seed, amount]
        spent, stolen = 0, cpu_times()[1]
        if options.how == "launch":
            done = launched(options, folder, command, late_seconds(options), env=environment())
        else:
            done, spent = attached(options, folder, [*command, "hold"])
        if done.status != 0:
            raise RuntimeError(f"seed {seed}: the tree ended with {done}")
        truth = Truth((folder / "truth").read_text(), look_seconds(options))
        if abs(done.cpu_seconds - truth.waited_for) > max(0.02 * truth.waited_for, 0.03):
            print(f"seed {seed}: the truth contradicts itself: {truth.waited_for:.3f}, wait4 says {done.cpu_seconds:.3f}")
        if not any((folder / "out").iterdir()):
            print(f"seed {seed}: no profile was written: {done.err[-400:]!r}", flush=True)
        verdict = Verdict(seed, truth, Found(folder / "out"), options, spent, cpu_times()[1] - stolen)
        if options.keep and (verdict.wrong or verdict.names):
            kept = Path(options.keep) / f"{mode_name(options)}-{options.how}-{seed}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(folder, kept, symlinks=True)
        return verdict


@contextlib.contextmanager
def hogs(count):
    """So many processes beside that always run."""
    running = [process.start([trees_program(), "hog"]) for _ in range(count)]
    try:
        yield
    finally:
        for one in running:
            one.end()


def verdicts(options):
    seeds = range(options.seed, options.seed + options.count)
    trees_program()
    with hogs(options.hogs):
        if options.jobs == 1:
            yield from (judge(options, seed) for seed in seeds)
            return
        with concurrent.futures.ProcessPoolExecutor(options.jobs, initializer=process.become_subreaper) as pool:
            for future in concurrent.futures.as_completed([pool.submit(judge, options, seed) for seed in seeds]):
                yield future.result()


def mode_name(options):
    return "no-perf" if options.mode else "perf"


def summary(options, found):
    used, told = sum(one.used for one in found) or 1e-9, sum(one.told for one in found)
    wrong = Counter(one.wrong for one in found)
    spent = sum(one.spent for one in found)
    more = f"; all processes {sum(one.all_told for one in found):.1f} s of {spent:.1f} by /proc/stat" if spent else ""
    return (f"{mode_name(options)} {options.how} hogs={options.hogs}: {len(found)} trees, told {told:.1f} of {used:.1f} s "
            f"({100 * (told / used - 1):+.1f} %); totals: right {wrong[0]}, too much {wrong[1]}, too little {wrong[-1]}; "
            f"names wrong in {sum(bool(one.names) for one in found)}; "
            f"[lost] {100 * sum(one.lost for one in found) / used:.1f} %, "
            f"in {sum(one.stolen > ABSOLUTE for one in found)} the hypervisor took more than {ABSOLUTE} s, "
            f"apart {100 * sum(one.apart for one in found) / used:.1f} %{more}")


# ---- Builds and other commands

def judge_command(options, folder, command, cwd):
    """(seconds told, seconds used by wait4, seconds without a stack) of a shell's command."""
    done = launched(options, folder, ["sh", "-c", command], BUILD_SECONDS, cwd=cwd)
    if done.status != 0:
        raise RuntimeError(f"{command} in {cwd} ended with {done}")
    found = Found(folder / "out")
    return found.total(), done.cpu_seconds, sum(found.lost.values())


def builds(options):
    where, command = options.build
    bad = 0
    for _ in range(options.count):
        if options.clean:
            process.run(["sh", "-c", options.clean], timeout=60, cwd=where)
        with tempfile.TemporaryDirectory(prefix="trees-") as name, hogs(options.hogs):
            (Path(name) / "out").mkdir()
            told, used, lost = judge_command(options, Path(name), command, where)
        wrong = abs(told - used) > max(RELATIVE * used, ABSOLUTE)
        bad += wrong
        print(f"{mode_name(options)} hogs={options.hogs} {command}: told {told:.2f} of {used:.2f} s "
              f"({100 * (told / used - 1):+.1f} %), [lost] {100 * lost / used:.1f} %{' WRONG' if wrong else ''}", flush=True)
    return bad


def parsed(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--hogs", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    for name, value in (("perf", []), ("no-perf", ["--perf-mode", "disabled"])):
        parser.add_argument(f"--{name}", dest="mode", action="store_const", const=value, default=[])
    for name in ("launch", "attach", "all"):
        parser.add_argument(f"--{name}", dest="how", action="store_const", const=name, default="launch")
    parser.add_argument("--build", nargs=2, metavar=("FOLDER", "COMMAND"))
    parser.add_argument("--clean", metavar="COMMAND", help="before each build")
    parser.add_argument("--pillion", type=Path, default=ROOT / "build" / "out" / platform.machine() / "pillion")
    parser.add_argument("--keep", metavar="FOLDER", help="for what a wrong one left")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for each tree")
    return parser.parse_args(argv)


def main(argv):
    options = parsed(argv)
    process.become_subreaper()
    process.take_default_signals()
    options.pillion = options.pillion.resolve()
    if options.build:
        return builds(options) > 0
    found = []
    for one in verdicts(options):
        found.append(one)
        if options.verbose or one.wrong or one.names:
            print(one, flush=True)
    print(summary(options, found))
    return any(one.wrong or one.names for one in found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

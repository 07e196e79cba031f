"""Reading the stacks of Ruby, PHP and Perl: what one walk costs, what the profiler uses and the target loses; peers attached to the
very same process in turns.

Peers are no part of a distribution, and left out with their reason where they are not: rbspy (`cargo install rbspy --version 0.55.0
--root build/lab/bench/rbspy`, or on PATH), phpspy (`make` in its public source; the program goes to build/lab/bench/phpspy, or on
PATH). No peer reads Perl from outside without root.

    tests/bench/interpreters.py [--quick] [ruby|php|perl]... [walk|cost|calls|loss]...
"""
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import cache, process, workloads  # noqa: E402
import python as shared  # noqa: E402
import rows  # noqa: E402

HZ = 99


def peer_program(name, *below):
    return shutil.which(name, path=":".join([str(cache.folder("bench", name).joinpath(*below)), os.environ.get("PATH", "")]))


class Wake(shared.Profiler):
    """A thread that wakes up as often on the target's CPU, and does nothing."""

    name, ending = "a thread that only wakes up", 9

    def command(self, pid):
        cpu = max(os.sched_getaffinity(0))
        return ["taskset", "-c", cpu, shared.PYTHON, "-c", f"import time\nwhile True: time.sleep({1 / self.hz})"]

    def samples(self):
        return self.hz * self.seconds


class Peer(shared.Profiler):
    program, path, options = "", (), ()

    @classmethod
    def found(cls):
        return peer_program(cls.program, *cls.path)


class Rbspy(Peer):
    """It stops the program for every sample unless told otherwise."""

    name, program, path = "rbspy", "rbspy", ("bin",)

    def command(self, pid):
        return [self.found(), "record", "-p", pid, "-r", self.hz, "--silent", *self.options, "-o", "collapsed", "-f", self.output / "out",
                "--raw-file", self.output / "raw"]

    def samples(self):
        return sum(int(line.rpartition(" ")[2]) for line in (self.output / "out").read_text(errors="replace").splitlines())


class FreeRbspy(Rbspy):
    name, options = "rbspy --nonblocking", ("--nonblocking",)


class Phpspy(Peer):
    name, program = "phpspy", "phpspy"

    def command(self, pid):
        return [self.found(), "-p", pid, "-H", self.hz, "-n", 64, "-l", 0, "-o", self.output / "out"]

    def samples(self):
        return (self.output / "out").read_text(errors="replace").count("\n0 ") + 1  # of each stack the leaf


class Language:
    """`library` is a part of the path of the file that reading begins with, `tells` prints the version."""

    def __init__(self, name, script, library, tells, peers, times):
        self.name, self.script, self.library, self.tells, self.peers, self.times = name, script, library, tells, peers, times

    @property
    def tool(self):
        return workloads.tool(self.name.lower())

    def profilers(self):
        return [shared.Perf, shared.Perfless, *(peer for peer in self.peers if peer.found())]

    def work(self, folder, cpu=None):
        language = self

        class Work(shared.Work):
            script = language.script

            def arguments(self, busy, idle):
                return [shared.FRAMES]
        return Work([self.tool], folder, cpu=cpu)


LANGUAGES = {
    "ruby": Language("Ruby", "work_ruby.rb", "/libruby", ["-e", "print RUBY_VERSION"], [FreeRbspy, Rbspy], 5),
    "php": Language("PHP", "work_php.php", "/php8", ["-r", "echo PHP_VERSION;"], [Phpspy], 2),
    "perl": Language("Perl", "work_perl.pl", "/libperl", ["-e", 'printf "%vd", $^V'], [], None)}


def walking(language, folder):
    with language.work(folder, max(os.sched_getaffinity(0))) as work:
        version = process.run([language.tool, *language.tells]).out
        turns = [(shared.walk_once(work, 200 if shared.QUICK else 1000, 1000, language.library),
                  shared.walk_once(work, 50 if shared.QUICK else 100, 100, language.library)) for _ in range(1 if shared.QUICK else 5)]
    dense, sparse = sorted(turns, key=lambda each: each[0]["walk_ns"]["median"])[len(turns) // 2]
    rows.add(f"{language.name} {version}, a stack of {dense['frames'] + .5:.0f} frames read, 1000 a second",
             dense["walk_ns"]["median"] / 1000, "µs", most=15, peer="a read of one word", peer_value=dense["word_ns"]["median"] / 1000,
             note=f"{dense['kernel_ns']['median'] / 1000:.1f} of it in the kernel, 9 of 10 below {dense['walk_ns']['p90'] / 1000:.0f}; "
                  f"{dense['stat_ns']['median'] / 1000:.1f} more to prove it; 100 a second {sparse['walk_ns']['median'] / 1000:.1f}")
    rows.add(f"{language.name}, system calls per stack read", max(dense["calls"], sparse["calls"]), "calls", most=6,
             note=f"{dense['complete']} of {dense['samples']} stacks complete; one more call to prove it")


def cost(language, folder):
    """The least of some long turns: whatever else begins on the machine must be looked at, and spoils what stays in a cache."""
    rounds, seconds, costs = (1, 1, {}) if shared.QUICK else (3, 20, {})
    kinds = [*language.profilers(), Wake]
    with language.work(folder, max(os.sched_getaffinity(0))) as work:
        for turn in range(rounds):
            for kind in kinds[::-1 if turn % 2 else 1]:
                costs.setdefault(kind, shared.Cost()).add(*shared.attached(kind, work, HZ, seconds, folder))
    used = {kind: min(each.of_target) for kind, each in costs.items()}
    for kind, each in costs.items():
        print(f"  {kind.name}: {' '.join(f'{percent:.3f}' for percent in each.of_target)} % of the target's, in turns of {seconds} s")
    said = "; ".join(f"{each.name} {used[each]:.3f}, {statistics.median(costs[each].rate):.0f} samples/s" for each in costs)
    peer = kinds[2]
    for kind in (shared.Perf, shared.Perfless):
        rows.add(f"own CPU, {language.name}, {HZ} Hz, one thread, {shared.HOW[kind]}", used[kind], "% of the target's",
                 times=language.times if kind is shared.Perfless and peer is not Wake else None, peer=peer.name, peer_value=used[peer],
                 note=said)


def calls(language, folder):
    """All system calls of a whole profiler, as perf counts them."""
    figures = {}
    with language.work(folder) as work:
        for kind in language.profilers() if shutil.which("perf") else ():
            counted = [each for each in (shared.counted_calls(kind, work, folder) for _ in range(1 if shared.QUICK else 3)) if each]
            if counted:
                figures[kind] = [statistics.median(each[which] / each[2] for each in counted) for which in (0, 1)]
    if not {shared.Perf, shared.Perfless} <= figures.keys():
        print("system calls: left out, perf is missing or may not count them")
        return
    said = ", ".join(f"{kind.name} {every:.1f}, {reads:.2f} of them read memory" for kind, (every, reads) in figures.items())
    peer = next((kind for kind in language.peers if kind in figures), None)
    for kind in (shared.Perf, shared.Perfless):
        rows.add(f"{language.name}, all system calls per sample, 100 Hz, {shared.HOW[kind]}", figures[kind][0], "calls",
                 peer=peer.name if peer else None, peer_value=figures[peer][0] if peer else None, note=said)


def losses(language, folder):
    peers = [peer for peer in language.peers if peer is not Rbspy and peer.found()]
    of = {kind: shared.loss(kind, HZ if kind else 0, folder, language.work, 50) for kind in (None, shared.Perf, shared.Perfless, *peers)}
    bare, bare_error = of[None]
    said = "".join(f"; {peer.name} {of[peer][0]:.2f}" for peer in peers)
    for kind in (shared.Perf, shared.Perfless):
        percent, error = of[kind]
        rows.add(f"what a {language.name} target loses, {HZ} Hz, {shared.HOW[kind]}", percent, "%", most=.5,
                 note=f"± {error:.2f}, turns of {shared.turns.SECONDS} s; bare against bare {bare:.2f} ± {bare_error:.2f}{said}")


def main():
    parts = {"walk": walking, "cost": cost, "calls": calls, "loss": losses}
    asked = [argument for argument in sys.argv[1:] if argument in parts] or list(parts)
    if not shared.WALK.exists():
        sys.exit(f"{shared.WALK.relative_to(shared.ROOT)} is missing; run make bench-programs")
    process.become_subreaper()
    for language in [LANGUAGES[argument] for argument in sys.argv[1:] if argument in LANGUAGES] or LANGUAGES.values():
        if language.tool is None:
            print(f"{language.name}: left out, it is not installed")
            continue
        for peer in language.peers:
            if not peer.found():
                print(f"{language.name}: {peer.name} is left out, it is neither in build/lab/bench nor on PATH")
        for name in asked:
            begin = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="i") as folder:
                parts[name](language, folder)
            print(f"  {language.name}, {name}: {time.monotonic() - begin:.0f} s, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} "
                  "processors", flush=True)


if __name__ == "__main__":
    main()

"""gVisor: what pillion at 99 Hz costs the sandbox that a Python program runs in, for the same work, and the shares it tells.

CPU time inside is told in ticks of 10 ms to whoever is on at the tick; the control group on this machine, in which the
sandbox runs, has the true one, of all of its processes. Machines drift, so pillion is stopped for every other second.

    tests/bench/gvisor.py [--quick] [TURNS]
    tests/bench/gvisor.py --matrix [PROGRAM...]    what is seen of programs of several languages, as a prefix and as a sidecar: the table
                                                   of docs/gvisor.md
"""
import os
import re
import shutil
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import compiler, container, gvisor, process, profiler, pystacks  # noqa: E402
import cost  # noqa: E402
import rows  # noqa: E402
import turns  # noqa: E402

SECONDS = 1
NAMES = {"fifty": .5, "thirty": .3, "twenty": .2}
# /mnt/count has how much it has done until now, in tenths of a round.
WORK = """
def spin(unit, times):
    total = 0
    for i in range(unit * times):
        total += i * i % 7

def fifty(): spin(27000, 5)
def thirty(): spin(27000, 3)
def twenty(): spin(27000, 2)

count = 0
out = open("/mnt/count", "w")
while True:
    for share, function in ((5, fifty), (3, thirty), (2, twenty)):
        function()
        count += share
        out.seek(0)
        out.write("%12d" % count)
        out.flush()
"""
# $1 turns: pillion is stopped in every other one. /mnt/turn has the turn's number. With none, it profiles for $2 seconds.
TURNS = f"""
cd /mnt
/usr/bin/python3 work.py &
worker=$!
/mnt/pillion -q -f 99 --max-cpu 100 -o /mnt -p $worker &
pillion=$!
sleep "$2"
turn=0
while [ $turn -lt "$1" ]; do
    [ $((turn % 2)) = 0 ] && kill -STOP $pillion || kill -CONT $pillion
    turn=$((turn + 1))
    echo $turn >turn.new && mv turn.new turn
    sleep {SECONDS}
done
echo end >turn.new && mv turn.new turn
kill -CONT $pillion
kill $worker
wait $pillion
"""


class Group:
    """A control group of this machine, in which this process and what it starts is, and its CPU time."""

    def __init__(self):
        root = Path("/sys/fs/cgroup/unified" if os.path.isdir("/sys/fs/cgroup/unified") else "/sys/fs/cgroup")
        self.root, self.path = root, root / f"bench-{os.getpid()}"
        self.path.mkdir()
        (self.path / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")

    def seconds(self):
        return int(self.path.joinpath("cpu.stat").read_text(encoding="ascii").split()[1]) / 1e6

    def remove(self):
        (self.root / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        self.path.rmdir()


def watch(folder, group, marks):
    """(CPU time, work done) at the begin of each turn, and at the last one's end."""
    seen = None
    while seen != "end":
        time.sleep(.005)
        try:
            turn = (folder / "turn").read_text(encoding="ascii").strip()
        except FileNotFoundError:
            continue
        if turn != seen:
            marks.append((group.seconds(), int((folder / "count").read_text(encoding="ascii"))))
            seen = turn


def run(count, seconds):
    """(The marks of all turns, the stacks that were told)."""
    group, marks = Group(), []
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            folder.chmod(0o777)
            profiler.copy(cost.PILLION, folder)
            (folder / "work.py").write_text(WORK, encoding="ascii")
            watcher = threading.Thread(target=watch, args=(folder, group, marks), daemon=True)
            watcher.start()
            done = gvisor.run(["/bin/sh", "-c", TURNS, "turns", str(count), str(seconds)], timeout=60 + 2 * count * SECONDS + seconds,
                              mounts=[(folder, "/mnt", "rw")], environment=["LC_ALL=C.UTF-8"],
                              capabilities=[*container.CAPABILITIES, "CAP_SYS_PTRACE"])
            assert done.status == 0, done
            watcher.join()
            return marks, [stack for stack in pystacks.of_col(profiler.Session(done, folder)) if stack.python]
    finally:
        group.remove()


# ---- The matrix

SECONDS_EACH = 4 if cost.QUICK else 12
# Counted work, for CPU clocks there are too coarse to measure a call by: the same as the Python program above.
RUBY = """
def spin(times) = times.times { |i| i * i % 7 }
def fifty = spin(50000)
def thirty = spin(30000)
def twenty = spin(20000)
finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + ARGV[0].to_f
(fifty; thirty; twenty) while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
"""
PHP = """<?php
function spin($times) { for ($i = 0, $total = 0; $i < $times; $i++) { $total += $i * $i % 7; } }
function fifty() { spin(500000); }
function thirty() { spin(300000); }
function twenty() { spin(200000); }
for ($finish = microtime(true) + $argv[1]; microtime(true) < $finish; twenty()) { fifty(); thirty(); }
"""
PERL = """
use Time::HiRes "time";
sub spin { my $total = 0; $total += $_ * $_ % 7 for 1 .. $_[0]; }
sub fifty { spin(50000); }
sub thirty { spin(30000); }
sub twenty { spin(20000); }
my $finish = time + $ARGV[0];
while (time < $finish) { fifty(); thirty(); twenty(); }
"""
# program -> its command, options, and its functions' shares; None: it prints the shares at its end.
PROGRAMS = {
    "Python": (["/usr/bin/python3", "/mnt/python/shares.py", SECONDS_EACH, 1], [], NAMES),
    "node": (["/usr/bin/node", "/mnt/node/shares.js", SECONDS_EACH, 1], [], {}),
    "node --inspect": (["/usr/bin/node", "--inspect", "/mnt/node/shares.js", SECONDS_EACH, 1], ["--nodejs-mode", "inspector"],
                       dict.fromkeys(("loops", "shapes", "steps", "parsing", "matching", "hashing"))),
    "Java": (["/usr/bin/java", "-XX:+StartAttachListener", "-cp", "/mnt", "Shares", SECONDS_EACH], [], NAMES),
    "C": (["/mnt/act", "spin", SECONDS_EACH], [], {}),
    "Ruby": (["/usr/bin/ruby", "/mnt/work.rb", SECONDS_EACH], [], NAMES),
    "PHP": (["/usr/bin/php", "/mnt/work.php", SECONDS_EACH], [], NAMES),
    "Perl": (["/usr/bin/perl", "/mnt/work.pl", SECONDS_EACH], [], NAMES),
}
TIMES = ["/bin/sh", "-c", '"$@"; times', "sh"]  # its children's CPU time is in the last line
LIVE = Path(__file__).resolve().parents[1] / "live" / "programs"
RIGHTS = [*container.CAPABILITIES, "CAP_SYS_PTRACE"]
ALWAYS = ["--max-cpu", "100", "--log-format", "logfmt"]


def as_prefix(folder, command, options):
    return [gvisor.run(["/mnt/pillion", *ALWAYS, *options, "-o", "/mnt/out", "--launch", "init", "--", *TIMES, *command], timeout=120,
                       mounts=[(folder, "/mnt", "rw")], environment=["LC_ALL=C.UTF-8"], capabilities=RIGHTS)] * 2


def as_sidecar(folder, command, options):
    """In a root with nothing but pillion, for as long as the program runs: (the program's end, pillion's)."""
    small = container.scratch(folder / "scratch", cost.PILLION)
    with gvisor.pod() as pod:
        beside = pod.start(["/pillion", "-a", "-c", *ALWAYS, *options, "-o", "/out"], base=small, mounts=[(folder / "out", "/out", "rw")],
                           capabilities=RIGHTS)
        process.until(lambda: "event=start" in beside.err, 20, lambda: beside.err)
        done = pod.start([*TIMES, *command], mounts=[(folder, "/mnt", "ro")], environment=["LC_ALL=C.UTF-8"]).finish(120)
        pod.signal(beside, "TERM")
        return done, beside.finish(20)


def seconds_of(times):
    return sum(60 * int(minutes) + float(seconds) for minutes, seconds in re.findall(r"(\d+)m([\d.]+)s", times.strip().split("\n")[-1]))


def figure(log, key):
    return sum(float(found) for found in re.findall(rf"\b{key}=([\d.]+)", log))


def row_of(name, place, take):
    """One line of the table, and what pillion warned of."""
    command, options, functions = PROGRAMS[name]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        shutil.copytree(LIVE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(compiler.program(LIVE, "act"), folder)
        for ending, text in (("rb", RUBY), ("php", PHP), ("pl", PERL)):
            (folder / f"work.{ending}").write_text(text, encoding="ascii")
        process.run(["javac", "-d", folder, LIVE / "java" / "Shares.java"])
        profiler.copy(cost.PILLION, folder)
        (folder / "out").mkdir()
        done, told = take(folder, command, options)
        assert "Error" not in done.err and done.status == 0 and (told.status == 0 or "EMPTY" in told.err), (done, told)
        stacks = [stack for window in profiler.Session(told, folder / "out").windows for stack in window.stacks
                  if stack.comm not in ("sh", "sleep")]
    used, seen = seconds_of(done.out), sum(stack.count for stack in stacks)
    named = sum(stack.count for stack in stacks if any(not frame.startswith("[") for frame in stack.frames))
    counts = {each: sum(stack.count for stack in stacks if any(re.search(rf"(?<![a-z]){each}(?![a-z])", frame) for frame in stack.frames))
              for each in functions}
    printed = dict(re.findall(r"([a-z]+) ([\d.]+)", done.out.split("\n")[0]))
    off = max((abs(counts[each] / max(sum(counts.values()), 1) - float(share or printed[each])) for each, share in functions.items()),
              default=None)
    samples = figure(told.err, "runtime_unprovable")
    whole, part = figure(told.err, "runtime_consistent"), figure(told.err, "runtime_consistent_in_part")
    told_as = f"{figure(told.err, 'runtime_proven'):.0f} / {100 * whole / samples:.0f} / {100 * part / samples:.0f}" if samples else "-"
    print(f"| {name} | {place} | {used:.1f} s | {100 * seen / 99 / used:.0f} % | {100 * named / max(seen, 1):.0f} % | {told_as} | "
          f"{'-' if off is None or not named else f'{100 * off:.1f}'} | {figure(told.err, 'own_cpu_s'):.1f} s |", flush=True)
    return re.findall(r'level=warning .*msg="(.*)"', told.err)


def matrix():
    print(f"runsc {gvisor.version()}\n| program | pillion | CPU time | seen | with names | proven / consistent / in part | off at most | own |\n"
          "|---|---|---|---|---|---|---|---|")
    said = {}
    for name in [word for word in sys.argv[1:] if word in PROGRAMS] or PROGRAMS:
        for place, take in (("prefix", as_prefix), ("sidecar", as_sidecar)):
            for sentence in row_of(name, place, take):
                said.setdefault(re.sub(r"\d+", "N", sentence), []).append(f"{name} {place}")
    for sentence, by in said.items():
        print(f"\n{', '.join(by)}:\n  {sentence}")


def main():
    if "--matrix" in sys.argv:
        process.become_subreaper()
        matrix()
        return
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    pairs = numbers[0] if numbers else 4 if cost.QUICK else 100
    gvisor.runsc()
    marks, _ = run(2 * pairs, 2)
    each = [(end[0] - begin[0]) / (end[1] - begin[1]) for begin, end in zip(marks, marks[1:])]
    costs = [100 * (on / off - 1) for off, on in zip(each[::2], each[1::2])]
    rows.add("gVisor: pillion's share of a sandbox's CPU time at 99 Hz", statistics.median(costs), "%", most=2,
             note=f"± {1.96 * turns.error(costs):.2f}, {pairs} turns of {SECONDS} s each way, mean {statistics.mean(costs):.2f}")
    _, stacks = run(0, 6 if cost.QUICK else 40)
    counts = {name: sum(stack.count for stack in stacks if name in [frame.name for frame in stack.python]) for name in NAMES}
    told = {name: counts[name] / sum(counts.values()) for name in NAMES}
    rows.add("gVisor: a function's share, off at most", 100 * max(abs(told[name] - share) for name, share in NAMES.items()),
             "points", most=3, note=", ".join(f"{name} {share:.3f}" for name, share in told.items()))


main()

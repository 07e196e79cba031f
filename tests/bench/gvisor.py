"""gVisor: what pillion at 99 Hz costs the sandbox that a Python program runs in, for the same work, and the shares it tells.

CPU time inside is told in ticks of 10 ms to whoever is on at the tick; the control group on this machine, in which the
sandbox runs, has the true one, of all of its processes. Machines drift, so pillion is stopped for every other second.

    tests/bench/gvisor.py [--quick] [TURNS]
"""
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import container, gvisor, profiler, pystacks  # noqa: E402
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


def main():
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

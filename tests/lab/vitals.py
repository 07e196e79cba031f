"""What a process holds and uses: descriptors, resident memory, CPU time; and how these go on while it runs."""
import os
import time
from pathlib import Path

CPUCLOCK_SCHED = 2


class Vitals:
    def __init__(self, pid):
        self.when = time.monotonic()
        self.fds = len(os.listdir(f"/proc/{pid}/fd"))
        self.rss = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6
        self.cpu = cpu_seconds(pid)

    def __repr__(self):
        return f"{self.fds} descriptors, {self.rss:.1f} MB, {self.cpu:.3f} CPU s"


def cpu_seconds(pid):
    """CPU time of all threads, ended ones included, to the nanosecond."""
    return time.clock_gettime(~pid << 3 | CPUCLOCK_SCHED)


def watch(pid, until, pause=0.5):
    """Readings until `until()` is true, and one after that."""
    found = [Vitals(pid)]
    while not until():
        time.sleep(pause)
        found.append(Vitals(pid))
    return found


def share(readings):
    """Percent of a core that was used between the first and the last."""
    first, last = readings[0], readings[-1]
    return 100 * (last.cpu - first.cpu) / (last.when - first.when)


def growth(readings, field):
    """How much more the last third has at most than the middle one: a plateau has none."""
    third = max(len(readings) // 3, 1)
    return max(getattr(one, field) for one in readings[-third:]) - max(getattr(one, field) for one in readings[third:-third])

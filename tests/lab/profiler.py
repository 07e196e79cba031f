"""Running pillion: what several live tests do with it and look at afterwards."""
import os
import re
import shutil
from pathlib import Path

from . import col, pprof, process

NOBODY = 65534


def as_nobody(*argv, user=NOBODY):
    """The command line that runs argv as uid 65534, or another, without groups and capabilities."""
    return ["setpriv", f"--reuid={user}", f"--regid={NOBODY}", "--clear-groups", *argv]


def paranoid(level, *argv):
    """Runs argv where /proc/sys/kernel/perf_event_paranoid reads `level`: what a program sees of such a kernel."""
    script = 'mount -t tmpfs none /mnt && echo "$0" > /mnt/level && mount --bind /mnt/level ' \
             '/proc/sys/kernel/perf_event_paranoid && umount -l /mnt && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", script, str(level), *argv]


class Session:
    """What a finished run left: `done`, its windows, and the sums over them."""

    def __init__(self, done, folder):
        self.done, self.folder = done, Path(folder)
        self.windows = col.every(folder)

    @property
    def col(self):
        assert self.windows, f"no .col in {self.folder}: {sorted(p.name for p in self.folder.iterdir())}\n{self.done}"
        return self.windows[-1]

    @property
    def pprof(self):
        return pprof.last(self.folder)

    def seconds(self, hz=99, comm=None):
        return sum(window.seconds(hz, comm) for window in self.windows)

    def share(self, frame):
        total = sum(window.total for window in self.windows)
        return sum(window.counted(frame) for window in self.windows) / max(total, 1)

    def frames(self):
        return set().union(*(window.frames() for window in self.windows)) if self.windows else set()


STOLEN = [0.0]  # seconds, while the last profile was made


def by_chance(share, samples):
    """How far a share of so many samples, drawn by lot, may be off: once in some 10,000 it is more."""
    return 4 * (share * (1 - share) / samples) ** .5


def stolen_seconds():
    """CPU time of all CPUs that the machine's host had."""
    return int(Path("/proc/stat").read_text().split("\n", 1)[0].split()[8]) / os.sysconf("SC_CLK_TCK")


def profile(pillion, folder, command, *options, launch="exec", prefix=(), timeout=60, **more):
    """Profiles a command to its end and waits for the detached profiler.

    In exec mode `done.cpu_seconds` is the command's alone; in init mode it includes the profiler's.
    """
    Path(folder).mkdir(exist_ok=True)
    before = stolen_seconds()
    done = process.run([*prefix, pillion, "-o", folder, "--launch", launch, *options, "--", *command],
                       timeout=timeout, **more)
    process.settle(15)
    STOLEN[0] = stolen_seconds() - before
    return Session(done, folder)


def find(started, pillion, timeout=20):
    """The profiler process that belongs to a started pillion: below it (init) or given to us (exec)."""
    binary = os.path.realpath(pillion)

    def running():
        for pid in process.descendants_of(started.pid) + process.leftovers():
            try:
                # The profiler leads its own session; a fork on its way to become the command does not.
                found = os.path.samefile(f"/proc/{pid}/exe", binary) and os.getsid(pid) == pid
            except OSError:  # it has ended meanwhile
                continue
            if found and pid != started.pid and process.state_of(pid) not in (None, "Z"):
                return pid
        return None
    return process.until(running, timeout, "the profiler runs")


def wait_for(path, timeout=10):
    """Until a file exists; its path."""
    process.until(lambda: os.path.exists(path), timeout, f"{path} exists")
    return Path(path)


def copy(pillion, folder):
    """A copy of the binary where every uid can run it."""
    target = Path(folder) / "pillion"
    shutil.copy2(pillion, target)
    target.chmod(0o755)
    return target


def lines(text):
    """The profiler's own messages on standard error: one per event; continuation lines are indented."""
    return [line for line in text.splitlines() if re.match(r"pillion( |:)", line)]


def within(measured, truth, relative, absolute=0.0):
    """Whether two sums agree within a relative or an absolute bound, whichever is wider. perf's clock goes on while the machine's
    host has the CPU, its accounting does not: what was stolen in the last profile may be too much."""
    bound = max(relative * truth, absolute)
    return truth - bound <= measured <= truth + bound + STOLEN[0]

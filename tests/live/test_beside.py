"""Beside another profiler: both are right, or the second one says exactly what is missing and counts CPU time."""
import os
import signal
import subprocess
from pathlib import Path

import pytest

from lab import process, profiler, tiers

pytestmark = pytest.mark.measures

TICK = 1 / 100
CPUS = os.sysconf("SC_NPROCESSORS_ONLN")
# Nobody else here has this uid: locked memory is counted per user.
UID = 60000 + os.getpid() % 5000


def as_user(memlock_kib=None):
    """The command line that runs another one as that user, with a limit of locked memory."""
    limit = ["sh", "-c", f'ulimit -l {memlock_kib}; exec "$@"', "sh"] if memlock_kib else []
    return [*limit, "setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]


class Target:
    """Two threads with 0.6 s of CPU time each. It stands still until it is continued, so that each profiler that is
    there by then has the same to see: `truth` after its end."""

    def __init__(self, program, prefix=()):
        self.process = process.start([*prefix, program("act"), "threads", "2", "0.6"])
        self.pid = self.process.pid
        process.until(lambda: process.stat(self.pid) and process.cpu_seconds(self.pid) > 0.05 and
                      len(os.listdir(f"/proc/{self.pid}/task")) == 3, 20, "its threads work")
        self.process.signal(signal.SIGSTOP)
        process.until(lambda: process.state_of(self.pid) == "T", 10)
        self.before = process.cpu_seconds(self.pid)

    def finish(self):
        self.process.signal(signal.SIGCONT)
        self.truth = self.process.finish(60).cpu_seconds - self.before


def start(pillion, target, folder, prefix=()):
    folder.mkdir()
    folder.chmod(0o777)
    started = process.start([*prefix, pillion, "-p", target.pid, "-d", "120", "-o", folder])
    process.until(lambda: "profiles" in started.err or started.poll() is not None, 20, lambda: started.err)
    return started


def judged(started, target, folder):
    session = profiler.Session(started.finish(30), folder)
    assert session.done.status in (0, 1), session.done
    counted = session.seconds()
    assert profiler.within(counted, target.truth, 0.03, 20 * TICK), (counted, target.truth, session.done)
    return session


def test_two_of_us_on_one_target_are_both_right(pillion, program, workdir):
    target = Target(program)
    both = [start(pillion, target, workdir / name) for name in ("one", "two")]
    target.finish()
    for name, started in zip(("one", "two"), both):
        session = judged(started, target, workdir / name)
        assert session.share("thread_work") > 0.9, session.frames()
        assert "lock" not in session.done.err, session.done


def perf_record(target, file, prefix=()):
    if tiers.tool_missing("perf"):
        pytest.skip("not installed: perf (linux-perf)")
    recording = process.start([*prefix, "perf", "record", "-q", "-e", "cpu-clock:u", "-F", "99", "-g", "-p", target.pid,
                               "-o", file])

    def follows():
        assert recording.poll() is None, recording.err
        links = [os.readlink(link) for link in Path(f"/proc/{recording.pid}/fd").iterdir() if os.path.lexists(link)]
        rings = Path(f"/proc/{recording.pid}/maps").read_text().count("perf_event]")
        return rings >= CPUS and "anon_inode:[perf_event]" in links
    process.until(follows, 20, lambda: recording.err)
    return recording


def samples_of(file):
    done = subprocess.run(["perf", "script", "-f", "-G", "-i", file, "-F", "comm,time"], stdout=subprocess.PIPE, text=True)
    return done.stdout.count("worker")


@pytest.mark.root
@pytest.mark.parametrize("memlock_kib", [8192, 16])
def test_beside_perf_record_both_are_right_or_what_is_missing_is_said(pillion, program, workdir, memlock_kib):
    """perf takes all that its user may lock beyond the limit of each process; 16 KiB are too little for any ring."""
    workdir.chmod(0o777)
    copy = profiler.copy(pillion, workdir)
    target = Target(program, as_user())
    recording = perf_record(target, workdir / "perf.data", as_user(8192))
    started = start(copy, target, workdir / "out", as_user(memlock_kib))
    target.finish()
    session = judged(started, target, workdir / "out")
    assert recording.finish(30).status == 0
    assert samples_of(workdir / "perf.data") > 0.5 * 99 * target.truth
    said = " ".join(session.done.err.split())
    if memlock_kib == 8192:
        assert session.share("thread_work") > 0.9 and "lock" not in said, session.done
    else:
        assert_refused(session, said)


@pytest.mark.root
def test_without_locked_memory_the_second_of_us_says_so_with_the_arithmetic(pillion, program, workdir):
    copy = profiler.copy(pillion, workdir)
    target = Target(program, as_user())
    first = start(copy, target, workdir / "one", as_user(8192))
    second = start(copy, target, workdir / "two", as_user(16))
    target.finish()
    session = judged(first, target, workdir / "one")
    assert session.share("thread_work") > 0.9 and "lock" not in session.done.err, session.done
    session = judged(second, target, workdir / "two")
    assert_refused(session, " ".join(session.done.err.split()))


def assert_refused(session, said):
    """The smallest ring has eight pages and one more."""
    page_kib = os.sysconf("SC_PAGESIZE") >> 10
    purse = int(Path("/proc/sys/kernel/perf_event_mlock_kb").read_text())
    ring = 9 * page_kib
    others = CPUS * purse + 16 - CPUS * ring
    assert (f"cannot lock memory for perf rings of {CPUS} x {ring} KiB (EPERM): uid {UID} may lock {CPUS} x {purse} KiB "
            "in all its processes together (kernel.perf_event_mlock_kb) and 16 KiB in each of them (ulimit -l), and other processes hold "
            f"more than {others} KiB of it; stop the other profiler or raise a limit") in said, said
    assert session.share("[native, no perf]") + session.share("[kernel, hidden]") > 0.99, session.frames()
    assert "worker" in session.col.comms()

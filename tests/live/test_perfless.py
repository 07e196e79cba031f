"""One unit: without perf events, Python of any version and programs that nobody can read stand beside each other at
their true CPU time, as they do with perf events.

These runs measure CPU shares, on one processor: nothing else runs on it beside them.
"""
import os
import re
from collections import Counter

import pytest

from lab import process, profiler, pystacks, pythons

pytestmark = pytest.mark.measures

PROGRAMS = "tests/live/programs/python"
MODES = {"perf": [], "perf-less": ["--perf-mode", "disabled"]}
TICK = 1 / 100
# A process that ended is counted from /proc without perf events: user and system time in whole ticks, as last read.
# Without perf what a process used since it was asked last, a tenth of a second ago, ends with it.
TICKS = {"perf": 3 * TICK, "perf-less": 15 * TICK}


def old_python():
    """A 2.7 of this machine or of a Debian suite."""
    for name in ("bullseye-python2.7", *(f"pyenv-{v}" for v in pythons.pyenv_versions() if v.startswith("2.7"))):
        try:
            return pythons.get(name)
        except pythons.Missing as reason:
            missing = reason
    pytest.skip(str(missing))
    return None


# Three at once on one CPU that this run has, each with an amount of CPU time of its own; each tells what it took.
CPU = min(os.sched_getaffinity(0))
THREE = f'taskset -c {CPU} "$0" "$1" 3 & taskset -c {CPU} $2 1.8 & taskset -c {CPU} "$3" spin 1.2 & wait'


def of_processes(session):
    """CPU seconds by what the process runs; the two Pythons are told apart by their executables' names."""
    total = Counter()
    for stack in pystacks.of_pprof(session.folder):
        total[stack.comm] += stack.count
    return total


@pytest.fixture(scope="module")
def shares():
    return {}


@pytest.mark.parametrize("mode", MODES)
def test_python_3_python_2_and_c_at_50_30_20_percent(mode, pillion, program, repository, workdir, shares):
    """Process shares within 2 points and the total within 3 % of utime + stime; perf's within 3 points of perf-less."""
    script = repository / PROGRAMS / "shares.py"
    new = workdir / "newpython"
    new.symlink_to("/usr/bin/python3")
    old = old_python()
    name = old.argv[-1].rsplit("/", 1)[1][:15]
    session = profiler.profile(pillion, workdir / "out", ["sh", "-c", THREE, new, script, " ".join(old.command(script)),
                                                          program("act")], *MODES[mode], timeout=60)
    assert session.done.status == 0, session.done
    counts = of_processes(session)
    total = sum(counts.values())
    found = {who: counts[who] / total for who in ("newpython", name, "act")}
    print(mode, found, f"{session.seconds():.2f} s, the kernel says {session.done.cpu_seconds:.2f} s")
    # What start and end took of the whole is in all of them; the amounts are of 6 s.
    for who, true in zip(found, (0.5, 0.3, 0.2)):
        assert abs(found[who] - true) < 0.02, found
    assert profiler.within(session.seconds(), session.done.cpu_seconds, 0.03, TICKS[mode])
    for other in shares.values():
        assert all(abs(one - two) < 0.03 for one, two in zip(found.values(), other.values())), (found, other)
    shares[mode] = found


def test_what_nobody_can_read_is_labelled_and_python_beside_it_is_named(pillion, program, repository, workdir):
    script = repository / PROGRAMS / "shares.py"
    session = profiler.profile(pillion, workdir, ["sh", "-c", '"$0" spin 1 & /usr/bin/python3 "$1" 1; wait',
                                                  program("act"), script], *MODES["perf-less"])
    stacks = pystacks.of_col(session)
    c = [stack for stack in stacks if stack.comm == "act"]
    assert c and all(re.match(r"\[native, no perf\]|\[kernel, hidden\]", stack.frames[-1]) for stack in c), c[:3]
    python = [stack for stack in stacks if stack.comm == "python3"]
    named = sum(stack.count for stack in python if stack.python)
    assert named > 0.8 * sum(stack.count for stack in python), Counter(str(s.frames[-1]) for s in python if not s.python)


def test_time_in_c_below_a_python_function_is_that_functions(pillion, repository, workdir):
    """Without perf the C library's time is on the Python function that called it, and none of it is missing."""
    session = profiler.profile(pillion, workdir, ["/usr/bin/python3", repository / PROGRAMS / "woven.py", "2"],
                               *MODES["perf-less"], "-f", "499")
    stacks = pystacks.of_col(session)
    leaves = Counter()
    for stack in stacks:
        leaves[stack.python[-1].name if stack.python else stack.frames[-1]] += stack.count
    print(leaves.most_common(12))
    total = sum(leaves.values())
    for name in ("digest", "squeeze", "compare", "in_order"):
        assert leaves[name] > 0.01 * total, leaves
    assert leaves["[partial]"] + leaves["[unreadable]"] < 0.02 * total, leaves
    assert profiler.within(session.seconds(499), session.done.cpu_seconds, 0.03, TICKS["perf-less"])


THREADS = """
import threading, time
def waits(): time.sleep(3)
def works(seconds):
    end = time.thread_time() + seconds
    total = 0
    while time.thread_time() < end:
        for i in range(10000):
            total += i % 7
for _ in range(50):
    threading.Thread(target=waits, daemon=True).start()
threads = [threading.Thread(target=works, args=(seconds,)) for seconds in (1.2, 0.6)]
[each.start() for each in threads]
[each.join() for each in threads]
"""


@pytest.mark.parametrize("mode", MODES)
def test_threads_that_share_a_lock_have_the_time_they_ran(mode, pillion, workdir):
    """Two threads take turns, fifty sleep: CPU time counts, waiting for the interpreter's lock does not."""
    session = profiler.profile(pillion, workdir, ["/usr/bin/python3", "-c", THREADS], *MODES[mode])
    by_thread = Counter()
    for stack in pystacks.of_pprof(workdir):
        if "works" in [frame.name for frame in stack.python]:
            by_thread[stack.tid] += stack.count
    assert len(by_thread) == 2, by_thread
    assert abs(max(by_thread.values()) - 1.2) < 0.2 and abs(min(by_thread.values()) - 0.6) < 0.2, by_thread
    # Ticks of more than one thread are cut off.
    assert profiler.within(session.seconds(), session.done.cpu_seconds, 0.03, 2 * TICKS[mode])
    waiting = sum(stack.count for stack in pystacks.of_col(session) if "waits" in [frame.name for frame in stack.python])
    assert waiting <= 5, waiting


def test_a_thread_for_each_request_is_read_where_it_runs(pillion, repository, workdir):
    """Threads of 2.8 and 1.2 ms, one after the other: a listing of the process's threads meets one in twenty."""
    script = repository / PROGRAMS / "requests_in_threads.py"
    session = profiler.profile(pillion, workdir, ["/usr/bin/python3", script, "8"], *MODES["perf-less"])
    words = session.done.out.split()
    share, seconds = float(words[1]), float(words[3])
    below = Counter()
    for stack in pystacks.of_col(session):
        names = [frame.name for frame in stack.python]
        below["seventy" if "seventy" in names else "thirty" if "thirty" in names else "else"] += stack.count / 99
        assert names[:2] == ["Thread._bootstrap", "Thread._bootstrap_inner"] or "work" not in names, stack
    named = below["seventy"] + below["thirty"]
    print(f"seventy {below['seventy'] / named:.3f} of {share:.3f}, named {named:.2f} of {seconds:.2f} s", session.frames())
    assert named > 0.8 * seconds, below
    # 400 samples, fewer on a busy machine, of different weights.
    assert abs(below["seventy"] / named - share) < 0.12, below
    assert profiler.within(session.seconds(), session.done.cpu_seconds, 0.03, TICKS["perf-less"])


@pytest.mark.root
@pytest.mark.alone  # what the quota leaves is judged, and who else runs takes of it
def test_in_a_cgroup_with_a_quota_the_total_stays_true(pillion, repository, workdir):
    """Throttled to half a CPU by the kernel: what did not run is not counted."""
    group = pythons.Path("/sys/fs/cgroup/cpu") / f"pillion-test-{workdir.name}"
    if not group.parent.is_dir():
        pytest.skip("no cgroup controller for CPU quotas here")
    group.mkdir()
    try:
        (group / "cpu.cfs_quota_us").write_text("50000")
        script = repository / PROGRAMS / "shares.py"
        session = profiler.profile(pillion, workdir, ["/usr/bin/python3", script, "1"], *MODES["perf-less"],
                                   prefix=["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"])
        assert session.done.seconds > 1.7, session.done.seconds
        assert profiler.within(session.seconds(), session.done.cpu_seconds, 0.03, TICKS["perf-less"])
        named = sum(stack.count for stack in pystacks.of_col(session) if stack.python)
        assert named > 0.85 * session.seconds() * 99, session.frames()
    finally:
        process.until(lambda: not (group / "cgroup.procs").read_text().split(), 10, "the group is empty")
        group.rmdir()

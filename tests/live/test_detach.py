"""What a profiler leaves in a program that it was attached to: nothing. And what of that program's threads stays with
the profiler when they end: nothing."""
import os
import re
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from lab import process, profiler

pytestmark = pytest.mark.measures

CYCLES = 50
# What may change by itself: how long it ran and waits, how much memory it happens to use; SigQ is of its whole user.
CHANGES = r"State|SigQ|Vm(?!Lck|Pin)\w*|Rss\w+|Hugetlb\w*|\w*ctxt_switches|Speculation.*|x86_.*"


def read(pid, name):
    return Path(f"/proc/{pid}/{name}").read_text()


def status_of(pid):
    return {key: value for key, value in (line.split(":", 1) for line in read(pid, "status").splitlines())
            if not re.fullmatch(CHANGES, key)}


def descriptors_of(pid):
    links = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):  # closed meanwhile
            links[int(fd)] = os.readlink(f"/proc/{pid}/fd/{fd}")
    return links


def traces_in(pid, memory):
    """All that somebody could have left in a process. An interpreter's own memory comes and goes."""
    maps = [line for line in read(pid, "maps").splitlines() if memory or "/" in line]
    tasks = sorted(map(int, os.listdir(f"/proc/{pid}/task")))
    return {
        "status": status_of(pid), "maps": maps, "descriptors": descriptors_of(pid), "threads": tasks,
        "blocked signals": {tid: status_of(f"{pid}/task/{tid}").get("SigBlk") for tid in tasks},
        "children": process.children_of(pid), "timers": read(pid, "timers"), "limits": read(pid, "limits"),
        "name": read(pid, "comm"), "score": read(pid, "oom_score_adj"), "dumps": read(pid, "coredump_filter"),
    }


def attach(pillion, pid, folder, *options, prefix=()):
    started = process.start([*prefix, pillion, "-p", pid, "-d", "600", "-o", folder, "--format", "col",
                             "--rotating-output", *options])
    process.until(lambda: "profiles" in started.err or started.poll() is not None, 20, lambda: started.err)
    return started


TARGETS = {
    "threads": (["crew", "4", "600"], True, []),
    "threads, as its user": (["crew", "4", "600"], True, profiler.as_nobody()),
    "python": (["/usr/bin/python3", "shares"], False, []),
    "python, perf-less": (["/usr/bin/python3", "shares"], False, []),
}


@pytest.mark.root
@pytest.mark.parametrize("name", TARGETS)
def test_fifty_times_attached_and_detached_leave_nothing_in_the_target(name, pillion, program, repository, workdir):
    words, memory, prefix = TARGETS[name]
    python = words[0].endswith("python3")
    command = [words[0], repository / "tests" / "live" / "programs" / "python" / "shares.py", "600"] if python else [
        program("act"), *words]
    copy = profiler.copy(pillion, workdir)
    (workdir / "out").mkdir()
    (workdir / "out").chmod(0o777)
    options = ["--perf-mode", "disabled"] if "perf-less" in name else []
    target = process.start([*prefix, *command])
    process.until(lambda: process.cpu_seconds(target.pid) > 0.3, 20, "it works")
    before = traces_in(target.pid, memory)
    said = []
    for _ in range(CYCLES):
        started = attach(copy, target.pid, workdir / "out", *options, prefix=prefix)
        started.signal(signal.SIGINT)
        done = started.finish(20)
        assert done.status in (0, 1), done
        said.append(re.sub(r"\d[\d.]*", "#", done.err.splitlines()[0]))
    after = traces_in(target.pid, memory)
    session = profiler.Session(process.run([*prefix, copy, "-p", target.pid, "-d", "1", "-o", workdir / "out", *options]),
                               workdir / "out")
    target.end()
    for what, found in before.items():
        assert after[what] == found, (what, found, after[what])
    assert set(said) == {said[0]}, set(said)
    assert session.seconds() > 0.02, session.done
    # A profiler that had not given back what it locked would have made the rings of later ones small.
    assert "lock" not in session.done.err, session.done


def test_threads_that_end_take_their_descriptors_with_them(pillion, program, workdir):
    """Each followed thread has one event per CPU, as long as it lives."""
    target = process.start([program("act"), "crew", "6", "600"])
    process.until(lambda: "ready" in target.out, 10)
    with_them = attach(pillion, target.pid, workdir)
    most = len(descriptors_of(with_them.pid))
    target.signal(signal.SIGUSR1)
    process.until(lambda: "alone" in target.out, 10)
    (workdir / "alone").mkdir()
    alone = attach(pillion, target.pid, workdir / "alone")
    least = len(descriptors_of(alone.pid))
    assert most >= least + 6, (most, least)
    try:
        process.until(lambda: len(descriptors_of(with_them.pid)) <= least, 30,
                      lambda: f"{len(descriptors_of(with_them.pid))} descriptors, {most} with threads, {least} without")
    finally:
        for started in (with_them, alone):
            started.signal(signal.SIGINT)
            started.finish(20)
        target.end()

"""Programs whose threads end before a sample is due: without bursts nearly all of their CPU time would be "[lost]"."""
import time
from pathlib import Path

import pytest

from lab import process, profiler, trees

pytestmark = pytest.mark.measures

SECONDS = 8
# How far a share may be off: slices are drawn by lot, some twenty of them with five to ten threads each. An interpreter is
# read by a timer instead, some 600 times.
NEAR = {"C": 0.12, "Python": 0.08}
LEAST = {"C": 0.7, "Python": 0.85}


def of(pillion, workdir, command, *options):
    session = profiler.profile(pillion, workdir, [*map(str, command), str(SECONDS)], *options)
    words = session.done.out.split()
    return session, float(words[1]), float(words[3])


def below(session, function):
    """Seconds of the stacks with this function."""
    return sum(stack.count for window in session.windows for stack in window.stacks
               if any(frame.split(" ")[0] == function for frame in stack.frames)) / 99


@pytest.mark.parametrize("name", ["C", "Python"])
def test_a_thread_for_each_request(name, pillion, program, repository, workdir):
    python = ["/usr/bin/python3", repository / "tests/live/programs/python/requests_in_threads.py"]
    session, share, seconds = of(pillion, workdir, [program("requests")] if name == "C" else python)
    seventy, thirty = below(session, "seventy"), below(session, "thirty")
    found = f"{seventy:.2f} s of {share:.3f}, {thirty:.2f} s of {1 - share:.3f}, in all {session.seconds():.2f} of {seconds} s"
    print(name, found)
    assert session.done.status == 0, session.done
    assert seventy + thirty > LEAST[name] * seconds, (found, session.frames(), session.done)
    assert abs(seventy / (seventy + thirty) - share) < NEAR[name], found
    assert profiler.within(session.seconds(), seconds, 0.03, 0.2), found
    assert "starts threads that end before they are sampled" in " ".join(session.done.err.split()), session.done


def test_threads_that_live_longer_are_sampled_as_ever(pillion, program, workdir):
    session = profiler.profile(pillion, workdir, [program("act"), "threads", "2", "2.5"])
    assert "starts threads" not in session.done.err, session.done


def switches(pid):
    """How often the threads of this process have gone to sleep: each time something had woken them."""
    return sum(int(line.split()[1]) for status in Path(f"/proc/{pid}/task").glob("*/status")
               for line in status.read_text().splitlines() if line.startswith("voluntary_ctxt_switches"))


@pytest.mark.root
def test_nobody_is_woken_by_threads_that_end(pillion, program, workdir):
    """Each end of a thread wakes who waits for the ring of an event that it inherited."""
    target = process.start([program("requests"), "7"])
    done = process.run([pillion, "-p", target.pid, "-d", "5", "-o", workdir])
    turns = int(target.finish().out.split()[-1])
    started = 2 * turns * 5 / 7
    print(done.usage.ru_nvcsw, started)
    assert done.usage.ru_nvcsw < started / 3, (done, started)


STARTS = """
import subprocess, sys, threading, time
def handle():
    begin = time.thread_time()
    while time.thread_time() < begin + 0.002:
        sum(range(100))
child, end, later = None, time.monotonic() + 9, time.monotonic() + 5
while time.monotonic() < end:
    one = threading.Thread(target=handle)
    one.start()
    one.join()
    if child is None and time.monotonic() > later:
        child = subprocess.Popen(sys.argv[1:])
child.wait()
time.sleep(0.5)  # its times hold the child's now, and are read
"""


def test_what_such_an_interpreter_starts_is_sampled_and_counts_once(pillion, workdir):
    """A timer reads the interpreter's stacks by then; its child is native, and is waited for."""
    command = ["/usr/bin/python3", "-c", STARTS, trees.trees_program(), "burn", "3000"]
    session = profiler.profile(pillion, workdir, command)
    found = trees.Found(workdir)
    print(found.names, session.done.cpu_seconds, below(session, "burn_us"), below(session, "handle"))
    assert "read by a timer" in " ".join(session.done.err.split()), session.done
    assert profiler.within(found.total(), session.done.cpu_seconds, 0.04, 0.2), (found.names, session.done)
    assert profiler.within(found.names["trees"], 3, 0.05, 0.2), found.names
    assert below(session, "burn_us") > 2, session.frames()  # all but what it did before it was found


STORM = """
import sys, threading, time
count, end = 0, time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    one = threading.Thread(target=int)
    one.start()
    one.join()
    count += 1
print(count)
"""


@pytest.mark.root
def test_an_interpreter_that_storms_wakes_nobody(pillion, workdir):
    """Its samples are caught one by one until a timer reads its stacks; then no end of a thread wakes anybody."""
    seconds = 12
    target = process.start(["/usr/bin/python3", "-c", STORM, seconds])
    own = process.start([pillion, "-p", target.pid, "-d", "60", "-o", workdir])
    process.until(lambda: "read by a timer" in " ".join(own.err.split()), what="the timer", timeout=seconds - 4)
    time.sleep(1)
    before, begun = switches(own.pid), time.monotonic()
    time.sleep(2)
    woken = (switches(own.pid) - before) / (time.monotonic() - begun)
    own.end()
    started = int(target.finish().out) / seconds
    print(woken, started)
    assert started > 500 and woken < max(started / 10, 300), (woken, started)

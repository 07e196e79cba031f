"""What the profiler itself takes: --max-cpu and --max-memory hold, what was done for it is told, the sum stays true.

CPU time is bounded, never wall time: on a busy machine everything takes longer and costs the same.
"""
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from lab import process, profiler, trace

pytestmark = pytest.mark.measures

BUSY = """
import sys, threading, time
def turn():
    while time.process_time() < float(sys.argv[1]):
        sum(i * i for i in range(2000))
threads = [threading.Thread(target=turn) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
START, FILES = 0.3, 0.25


def own_cpu(pid):
    """CPU seconds of all threads that live, as the scheduler counts them: to the nanosecond."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def own(session):
    return [window.header["pillion"]["own"] for window in session.windows]


@pytest.mark.parametrize("options", [[], ["--perf-mode", "disabled"]], ids=["perf", "perf-less"])
def test_a_small_budget_of_cpu_time_holds(pillion, workdir, options):
    """Four Python threads at 999 Hz would cost some 3 % of a core; 0.2 % are allowed."""
    out = workdir / "out"
    started = process.start([pillion, "-f", 999, "--max-cpu", "0.2", "-d", 600, "--launch", "exec", "-o", out, *options,
                             "--", sys.executable, "-c", BUSY, 11])
    profiler_pid = profiler.find(started, pillion)
    process.until(lambda: process.cpu_seconds(started.pid) > 4, 120, "four seconds of CPU time", pause=0.1)
    begin, before = time.monotonic(), own_cpu(profiler_pid)
    process.until(lambda: process.cpu_seconds(started.pid) > 10, 120, "ten seconds of CPU time", pause=0.1)
    passed, used = time.monotonic() - begin, own_cpu(profiler_pid) - before
    done = started.finish()
    process.settle(30)
    session = profiler.Session(done, out)
    print(f"{100 * used / passed:.2f} % of a core, {own(session)}\n{done.err}")
    # What ten seconds may take may be used at once; most of it was, in the first second.
    # Without a bound it would be fifteen times as much.
    assert used < 0.002 * (1.3 * passed + 10), (used, passed)
    assert before < 2 * START + 0.002 * 1.3 * 30 + 0.1, before
    assert own(session)[0]["frequency"] < 700
    assert "instead of 999 to stay within --max-cpu 0.2 %" in own(session)[0]["budget"]
    assert "instead of 999 to stay within --max-cpu 0.2 %" in done.err
    assert "sampling at less than 999 Hz now" in done.err
    # The frequency changed in mid-window, more than once, and no second is missing or there twice.
    assert profiler.within(session.seconds(999), done.cpu_seconds, 0.03, 0.05), (session.seconds(999), done)
    assert session.share("turn (<string>:3)_[p]") > 0.25  # without perf the rest may be known without a stack


def test_an_ordinary_run_is_within_its_budget(pillion, program, workdir):
    session = profiler.profile(pillion, workdir, [program("act"), "threads", "2", "3"])
    cost = own(session)[0]
    assert cost["budget"] is None and cost["frequency"] == 99, cost
    assert 0 < cost["cpu_ns"] < (START + FILES) * 1e9 and cost["rss_bytes"] <= cost["rss_peak_bytes"]




def test_a_small_budget_of_memory_holds(pillion, workdir, repository):
    """Thirty interpreters, and stacks that are never the same twice."""
    branching = repository / "tests/live/programs/python/branching.py"
    session = profiler.profile(pillion, workdir / "out", [sys.executable, branching, "0.2", 30], "-f", 199,
                               "--max-memory", 16, "--max-cpu", 100, timeout=120)
    print(own(session), session.done.err)
    assert max(cost["rss_peak_bytes"] for cost in own(session)) < 16 << 20
    # Of children that end between two looks the last tick and the last period are not known.
    assert profiler.within(session.seconds(199), session.done.cpu_seconds, 0.03, 30 * 0.015), (
        session.seconds(199), session.done)
    assert [frame for frame in session.frames() if frame.startswith("work (") and frame.endswith("branching.py:14)_[p]")]


def test_what_is_needed_again_is_given_back(pillion, workdir, repository):
    """8 MB are too few for a compiler's tables and symbols: the profile is made all the same, and it is said how."""
    branching = repository / "tests/live/programs/python/branching.py"
    command = f"{sys.executable} {branching} 4 2 & echo '#include <regex>\nint main() {{ return 0; }}' | " \
              "g++ -O2 -x c++ -o /dev/null -; wait"
    session = profiler.profile(pillion, workdir / "out", ["sh", "-c", command], "-f", 999, "--max-memory", 8,
                               "--max-cpu", 100, timeout=120)
    print(own(session), session.done.err)
    said = " ".join(cost["budget"] or "" for cost in own(session))
    assert "to stay within --max-memory 8 caches were given back" in said, said
    assert session.done.err.count("most of --max-memory 8 is in use: raise it. Until then unwind tables") == 1
    # Writing the files, above all reading the kernel's symbols, takes some 5 MB more for a moment.
    assert max(cost["rss_peak_bytes"] for cost in own(session)) < 16 << 20
    assert profiler.within(session.seconds(999), session.done.cpu_seconds, 0.03, 0.1), (
        session.seconds(999), session.done)


def rounds(pid, log):
    """How often the sampler has looked around, as it says itself."""
    said = len(re.findall("state:", log.read_text()))
    os.kill(pid, signal.SIGUSR2)
    process.until(lambda: len(re.findall("state:", log.read_text())) > said, 20, "it told its state")
    return int(re.findall(r"(\d+) rounds", log.read_text())[-1])


def test_waiting_for_the_publisher_costs_no_rounds(pillion, program, workdir):
    """A window has ended and the one before is still being written: an endless loop without a wait would be 20,000 rounds."""
    target = process.start([program("act"), "threads", "1", "60"])
    log, seconds = workdir / "log", 2
    profiled = process.start([pillion, "-p", str(target.pid), "-c", "-d", "1", "--log-file", log, "-o", workdir / "out"])
    process.until(lambda: log.exists() and "profiles pid" in log.read_text(), 20, "it began")
    threads = sorted(int(tid) for tid in os.listdir(f"/proc/{profiled.pid}/task"))
    assert len(threads) == 3, "the sampler, the publisher, and who speaks with runtimes"
    try:
        with trace.held(threads[1]):
            time.sleep(2.5)  # the first window waits for the publisher, the second one has ended
            before, begin = rounds(profiled.pid, log), time.monotonic()
            time.sleep(seconds)
            taken, passed = rounds(profiled.pid, log) - before, time.monotonic() - begin
    except PermissionError as error:
        pytest.skip(f"no thread may be held here: {error}")
    os.kill(profiled.pid, signal.SIGINT)
    done = profiled.finish()
    target.end()
    print(f"{taken} rounds in {passed:.1f} s")
    assert done.status == 0, done
    assert 3 <= taken < 40 * passed, (taken, passed)
    assert len(profiler.Session(done, workdir / "out").windows) >= 2

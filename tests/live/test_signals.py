"""Signals to the profiler's own process, whose pid the first line names."""
import os
import re
import signal
import time

import pytest

from lab import process, profiler

pytestmark = pytest.mark.measures


@pytest.fixture
def running(pillion, program, workdir):
    """A command profiled in one long window; the profiler's pid."""
    started = process.start([pillion, "--launch", "exec", "-d", "60", "-o", workdir, "--log-file", workdir / "log", "--",
                             program("act"), "spin", "5", "7"])
    started.profiler = profiler.find(started, pillion)
    time.sleep(0.5)
    return started


def test_usr1_writes_the_window_now_and_nothing_is_counted_twice(running, workdir):
    for _ in range(3):
        before = len(list(workdir.glob("profile_*.col")))
        os.kill(running.profiler, signal.SIGUSR1)
        process.until(lambda: len(list(workdir.glob("profile_*.col"))) > before, 10, "a window at USR1")
    assert running.poll() is None
    done = running.finish()
    process.settle(15)
    session = profiler.Session(done, workdir)
    assert len(session.windows) >= 4
    assert profiler.within(session.seconds(), done.cpu_seconds, 0.03, 0.05), (session.seconds(), done.cpu_seconds)


def test_hup_opens_the_log_again(running, workdir):
    log = profiler.wait_for(workdir / "log")
    log.rename(workdir / "log.1")
    os.kill(running.profiler, signal.SIGHUP)
    profiler.wait_for(log, 10)
    os.kill(running.profiler, signal.SIGUSR1)
    process.until(lambda: log.read_text(), 10, "the window's line in the new log")
    assert running.finish().status == 7
    process.settle(15)


def test_usr2_tells_the_state(running, workdir):
    log = profiler.wait_for(workdir / "log")
    before = log.read_text()
    os.kill(running.profiler, signal.SIGUSR2)
    process.until(lambda: log.read_text() != before, 10, "a line at USR2")
    assert running.poll() is None
    running.end()
    process.settle(15)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_term_and_int_end_the_profiler_after_a_flush_and_not_the_command(running, workdir, number):
    os.kill(running.profiler, number)
    process.until(lambda: process.state_of(running.profiler) in (None, "Z"), 10, "the profiler ends")
    assert running.poll() is None, "it waited for the command"
    session = profiler.Session(None, workdir)
    assert session.share("spin") > 0.9
    assert running.finish().status == 7
    process.settle(5)
    assert len(list(workdir.glob("profile_*.col"))) == 1


def test_term_twice_leaves_at_once(running, workdir):
    os.kill(running.profiler, signal.SIGTERM)
    try:
        os.kill(running.profiler, signal.SIGTERM)
    except ProcessLookupError:
        pass
    process.until(lambda: process.state_of(running.profiler) in (None, "Z"), 10, "the profiler ends")
    assert running.poll() is None, "it waited for the command"
    assert running.finish().status == 7
    # Whatever was written is whole.
    for path in workdir.glob("profile_*.col"):
        profiler.Session(None, workdir)
        assert path.stat().st_size


def test_ctrl_c_while_attached_ends_early_and_writes(pillion, program, workdir):
    target = process.start([program("act"), "spin", "5"])
    attached = process.start([pillion, "-p", target.pid, "-d", "30", "-o", workdir])
    process.until(lambda: " profiles pid " in attached.err, 10, lambda: attached.err)
    before = process.cpu_seconds(target.pid)
    process.until(lambda: process.cpu_seconds(target.pid) > before + 0.5, 20, "half a second of CPU time")
    attached.signal(signal.SIGINT)
    done = attached.finish(10)
    assert done.status == 0 and target.poll() is None, done
    session = profiler.Session(done, workdir)
    assert session.share("spin") > 0.9
    assert 0.4 < session.seconds() < process.cpu_seconds(target.pid) + 0.05
    target.end()


def test_closed_standard_descriptors_are_never_files_of_the_profiler(pillion, program, workdir):
    """Else what is said goes into an event, a profile or a back end's connection."""
    target = process.start([program("act"), "spin", "5"])
    attached = process.start(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", pillion, "-p", target.pid, "-d", "30", "-o",
                              workdir])
    folder = f"/proc/{attached.pid}/fd"
    process.until(lambda: len(os.listdir(folder)) >= 6, 5, "the profiler's own descriptors")
    assert [os.readlink(f"{folder}/{number}") for number in range(3)] == ["/"] * 3
    attached.signal(signal.SIGINT)
    assert attached.finish(10).status == 0
    target.end()


def test_the_first_line_names_the_command_and_its_pid(pillion, program, workdir):
    session = profiler.profile(pillion, workdir, [program("act"), "spin", "0.3"], "--launch", "exec")
    first = profiler.lines(session.done.err)[0]
    assert str(session.done.pid) in first and "99 Hz" in first and "perf" in first, first
    assert re.search(r"cpu|CPU", profiler.lines(session.done.err)[-1]), session.done


def test_quiet_says_nothing_at_all(pillion, program, workdir):
    session = profiler.profile(pillion, workdir, [program("act"), "spin", "0.3"], "-q")
    assert session.done.err == ""

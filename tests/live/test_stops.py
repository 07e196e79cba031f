"""Brief stops: native stacks where perf is refused, of programs that do not notice that they are stopped."""
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

from lab import cache, golang, process, profiler, pystacks

pytestmark = pytest.mark.measures

STOPS = ["--perf-mode", "disabled", "--brief-stops", "--max-cpu", "20"]
SAID = re.compile(r"stacks=([\d.]+)% stops=(\d+)/(\d+)us/(\d+)us")


def of_go(source):
    if not shutil.which("go"):
        pytest.skip("no Go here (make setup)")
    return golang.program("local", source)


def compiled(name, program, repository):
    """A program that tells its own shares."""
    folder, source = cache.folder("programs", "shares"), repository / "tests/live/programs"
    if name == "go":
        return of_go("shares.go")
    if name == "musl":
        if not shutil.which("musl-gcc"):
            pytest.skip("no musl-gcc here (make setup)")
        subprocess.run(["musl-gcc", "-O2", "-static", "-o", folder / "shares-musl", source / "shares.c"], check=True)
        return folder / "shares-musl"
    return program("shares", *(["-static"] if name == "static" else ["-fomit-frame-pointer"]), called=f"shares-{name}")


@pytest.mark.parametrize("name", ["glibc", "static", "musl", "go"])
def test_shares_are_those_the_program_tells(pillion, program, repository, workdir, name):
    session = profiler.profile(pillion, workdir, [compiled(name, program, repository), "3"], *STOPS, "-f", "397")
    told = dict(re.findall(r"(\w+) ([\d.]+)", session.done.out))
    dot = "main." if name == "go" else ""
    whole = sum(session.share(dot + function) for function in ("sixty", "thirty", "ten"))
    for function in ("sixty", "thirty", "ten"):
        off = .01 + profiler.by_chance(float(told[function]), int(SAID.search(session.done.err)[2]))
        assert abs(session.share(dot + function) / whole - float(told[function])) < off, (told, off, session.done)
    first = .1 / (session.col.total / 397) # until it is found: a tenth of a second at most
    assert whole > (0.9 if name == "go" else 0.98) - first, session.frames()
    assert profiler.within(session.seconds(397), session.done.cpu_seconds, 0.03, 0.2), (session.seconds(397), session.done)
    complete, stops, median, _ = map(float, SAID.search(session.done.err).groups())
    assert complete >= 99 and stops > 50 and median < 20000, session.done


def test_a_goroutine_below_the_systems_stack_is_found(pillion, workdir):
    """By frame pointers that are followed while the thread is held: what was copied is another stack."""
    session = profiler.profile(pillion, workdir, [of_go("large.go"), "3"], *STOPS, "-f", "397")
    below = [stack for window in session.windows for stack in window.stacks if "runtime.systemstack" in stack.frames]
    found = sum(stack.count for stack in below if "[truncated]" not in stack.frames)
    assert found > 0.97 * sum(stack.count for stack in below) > 30, (found, session.done)


def test_a_stop_at_a_handlers_first_instruction_is_what_the_signal_interrupted(pillion, workdir):
    """Go's scheduler sends signals, whose handlers have another stack: 2 % of the samples ended there."""
    session = profiler.profile(pillion, workdir, [of_go("mixed.go"), "6"], *STOPS, "-f", "397")
    stacks = [stack for window in session.windows for stack in window.stacks]
    begun = sum(stack.count for stack in stacks if stack.frames[-1] == "runtime.sigtramp")
    assert int(SAID.search(session.done.err)[2]) > 1000 and begun < 0.002 * sum(stack.count for stack in stacks), session.done
    assert float(SAID.search(session.done.err)[1]) > 99.2, session.done


@pytest.mark.parametrize("name, functions", [("cxx", ["shop::Money::operator+"]), ("rusty", ["rusty::Ledger::balance"])])
def test_functions_of_other_languages_are_named(pillion, program, workdir, name, functions):
    session = profiler.profile(pillion, workdir, [program(name), "2"], *STOPS, "-f", "199")
    for function in functions:
        assert max((session.share(frame) for frame in session.frames() if function in frame), default=0) > 0.8, session.frames()


def test_a_call_that_ends_turns_is_not_where_time_is(pillion, program, workdir):
    """Three threads on one processor read their process's clock, which ends a turn that is over: who waits for the next one
    stands there. By perf that call has 0.5 %."""
    cpu = str(max(os.sched_getaffinity(0)))
    session = profiler.profile(pillion, workdir, [program("mixed"), "3"], *STOPS, "-f", "397", prefix=["taskset", "-c", cpu])
    assert sum(map(session.share, ("print", "Table::run", "Order::run"))) > 0.8, session.frames()
    assert session.share("__clock_gettime") < 0.15, session.done


def test_python_and_what_it_calls_are_one_stack(pillion, repository, workdir):
    session = profiler.profile(pillion, workdir, ["/usr/bin/python3", "-S", "-c",
                                                  "import zlib, time\ndef pack():\n    zlib.compress(b'abcdefgh' * 40000)\n"
                                                  "while time.process_time() < 2: pack()"], *STOPS, "-f", "199")
    deep = [stack for stack in pystacks.of_col(session) if any(frame.name == "pack" for frame in stack.python)]
    inside = sum(stack.count for stack in deep if "deflate" in stack.above)
    assert inside > 0.8 * sum(stack.count for stack in deep) > 0, session.frames()
    assert "proven=100.0%" in session.done.err, session.done


def test_stacks_deeper_than_what_is_read_at_first(pillion, program, workdir):
    """More is read of them, as much as a catcher's buffer can take: not so much that none fits any more."""
    session = profiler.profile(pillion, workdir, [program("wander"), "300", "3"], *STOPS, "-f", "397")
    assert int(SAID.search(session.done.err)[2]) > 60, session.done
    session = profiler.profile(pillion, workdir, [program("wander"), "180", "3"], *STOPS, "-f", "397")
    assert session.share("bottom") > 0.8 and session.share("main") > 0.5, session.done


def stops_of(pillion, workdir, target, *options):
    log = workdir / "calls"
    done = process.run(["strace", "-f", "-qq", "--seccomp-bpf", "-e", "trace=ptrace", "-o", log, pillion, "-p", target, "-d", "1", "-o", workdir / "out",
                        *options], timeout=60)
    # one call asks whether others would be let through: of nobody
    return [call for call in re.findall(r"ptrace\(PTRACE_SEIZE, (\d+)", log.read_text()) if call == str(target)], done


def test_nobody_is_stopped_who_did_not_ask_for_it(pillion, program, workdir):
    """Nor where perf has the samples."""
    target = process.start([program("act"), "spin", "30"])
    try:
        for options in (["--perf-mode", "disabled"], ["--perf-mode", "disabled", "--wall"], ["--brief-stops"]):
            assert stops_of(pillion, workdir, target.pid, *options)[0] == []
        stopped, done = stops_of(pillion, workdir, target.pid, *STOPS)
        assert stopped, done
    finally:
        os.kill(target.pid, signal.SIGKILL)
        target.finish(10)


def switches(pid):
    """Of the first thread, which waits for signals and buffers."""
    return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", open(f"/proc/{pid}/task/{pid}/status").read(), re.M)[1])


def test_a_stop_wakes_the_catcher_alone(pillion, program, workdir):
    """Each stop sends its process SIGCHLD unless it is told not to, and the sampler waits for signals."""
    target = process.start([program("act"), "spin", "20"])
    try:
        running = process.start([pillion, "-p", target.pid, "-d", "60", "-o", workdir, *STOPS, "-f", "997"])
        time.sleep(1)
        before = switches(running.pid)
        time.sleep(4)
        woken = switches(running.pid) - before
        os.kill(running.pid, signal.SIGTERM)
        done = running.finish(20)
        stops = int(SAID.search(done.err)[2])
        # ten rounds a second by time, and buffers that are half full
        assert stops > 100 and woken < 100 + stops / 4, (woken, stops)
    finally:
        os.kill(target.pid, signal.SIGKILL)
        target.finish(10)


def counts(text):
    return {name: int(number) for name, number in re.findall(r"(\w+) (\d+)", text)}


def test_a_program_does_not_notice(pillion, program, workdir):
    """Sums, signals, programs started by vfork, and calls that could return EINTR: as without."""
    session = profiler.profile(pillion, workdir, [program("steady"), "4"], *STOPS, "-f", "997")
    told = counts(session.done.out)
    assert session.done.status == 0 and told["wrong"] == told["failed"] == 0, session.done
    assert told["signals"] == told["of"] > 1000 and told["starts"] > 10, session.done
    assert told["interrupted"] <= 40, session.done  # ten threads, at most one a second each
    assert int(SAID.search(session.done.err)[2]) > 20, session.done


@pytest.mark.parametrize("mode", ["few", "all"])
def test_a_thousand_threads_do_not_notice(pillion, program, workdir, mode):
    """Two that compute while the others wait, and a thousand that each compute for half a millisecond once a second."""
    session = profiler.profile(pillion, workdir, [program("thousand"), mode, "4"], *STOPS, "-f", "19")
    told = counts(session.done.out)
    assert session.done.status == 0 and told["wrong"] == told["interrupted"] == 0, session.done
    assert told["signals"] == told["of"] > 300 and told["sums"] > 100, session.done
    assert profiler.within(session.seconds(19), session.done.cpu_seconds, 0.03, 0.2), (session.seconds(19), session.done)
    print(f"{mode}: {' '.join(re.findall(r'stops=[^ ]+|own=[^ ]+', session.done.err))}; a sum took {told['took'] / 1000:.0f} µs (median)")
    if mode == "few":  # of threads that run for less than a sample each most have none
        assert int(SAID.search(session.done.err)[2]) > 10 and session.share("sum_up") > 0.9 - 0.2 / session.seconds(19), session.frames()


def test_a_killed_profiler_leaves_nobody_stopped(pillion, program, workdir):
    target = process.start([program("steady"), "60"])
    try:
        process.until(lambda: "ready" in target.out, 10, "it is ready")
        for turn in range(25):
            running = process.start([pillion, "-p", target.pid, "-d", "60", "-o", workdir / str(turn), *STOPS, "-f", "2000"])
            time.sleep(0.15 + random.Random(turn).random() / 4)
            os.kill(running.pid, signal.SIGKILL)
            running.finish(10)
            states = process.threads_of(target.pid)
            assert len(states) > 50 and all(state in "RSD" and tracer == 0 for state, tracer in states.values()), states
    finally:
        os.kill(target.pid, signal.SIGTERM)
        target.finish(10)


def test_who_is_traced_by_another_is_left_alone(pillion, program, workdir):
    target = process.start([program("act"), "spin", "8"])
    debugger = process.start(["strace", "-f", "-qq", "-o", "/dev/null", "-p", target.pid])
    try:
        process.until(lambda: all(tracer for _, tracer in process.threads_of(target.pid).values()), 10, "it is traced")
        done = process.run([pillion, "-p", target.pid, "-d", "3", "-o", workdir, *STOPS], timeout=30)
        assert done.status == 1 and re.search(rf"may not be stopped: pid {debugger.pid} traces it", done.err), done
        assert profiler.Session(done, workdir).share("[native, no perf]") > 0.9
        assert all(tracer == debugger.pid for _, tracer in process.threads_of(target.pid).values())
    finally:
        os.kill(debugger.pid, signal.SIGTERM)
        debugger.finish(10)
        os.kill(target.pid, signal.SIGKILL)
        target.finish(10)


def test_who_is_traced_now_and_then_is_told_so(pillion, program, workdir):
    """By the time that somebody asks why, nobody may trace it."""
    target = process.start([program("act"), "spin", "20"])
    other = process.start([program("moments"), target.pid, "8"])
    try:
        done = process.run([pillion, "-p", target.pid, "-d", "4", "-o", workdir, *STOPS, "-f", "499"], timeout=30)
        assert re.search(rf"may not be stopped: (something else traced it just then|pid {other.pid} traces it)", done.err), done
        assert "security module" not in done.err, done
    finally:
        for one in other, target:
            os.kill(one.pid, signal.SIGKILL)
            one.finish(10)


def test_who_is_suspended_stays_so_and_goes_on(pillion, program, workdir):
    target = process.start([program("act"), "threads", "2", "4"])
    running = process.start([pillion, "-p", target.pid, "-d", "6", "-o", workdir, *STOPS, "-f", "997"])
    time.sleep(1)
    for _ in range(20):
        os.kill(target.pid, signal.SIGSTOP)
        process.until(lambda: all(state == "T" for state, _ in process.threads_of(target.pid).values()), 5, "it is suspended")
        time.sleep(0.02)
        assert all(state == "T" and tracer == 0 for state, tracer in process.threads_of(target.pid).values())
        os.kill(target.pid, signal.SIGCONT)
        time.sleep(0.03)
    assert target.finish(20).status == 0
    assert running.finish(20).status == 0


@pytest.mark.root
def test_who_may_not_be_stopped_is_told_with_the_remedy(pillion, program, workdir):
    workdir.chmod(0o777)
    target = process.start([program("act"), "spin", "4"])
    try:
        done = process.run(profiler.as_nobody(profiler.copy(pillion, workdir), "-p", target.pid, "-d", "2", "-o", workdir / "out",
                                              *STOPS), timeout=30)
        assert "another user" in " ".join(done.err.split()), done
    finally:
        os.kill(target.pid, signal.SIGKILL)
        target.finish(10)


def test_who_may_be_looked_into_but_not_stopped_is_told(pillion, program, workdir):
    """As under Yama: mappings may be read, memory may not. Here it is CAP_PERFMON that lets them be read."""
    if os.getuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv")
    target = process.start(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program("act"), "spin", "20"])
    try:
        done = process.run(["setpriv", "--bounding-set=-sys_ptrace,-setuid,-setgid", "--inh-caps=-all",
                            pillion, "-p", target.pid, "-d", "3",
                            "-o", workdir / "out", *STOPS], timeout=30)
        assert "another user" in " ".join(done.err.split()), done
    finally:
        os.kill(target.pid, signal.SIGKILL)
        target.finish(10)

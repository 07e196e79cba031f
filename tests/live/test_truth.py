"""Is the profile true? Shares and sums against clocks that have nothing to do with the profiler.

These runs measure CPU shares: nothing else runs beside them.
"""
import os
import re
import shutil
import subprocess
import time
from collections import Counter

import pytest

from lab import process, profiler, workloads

pytestmark = pytest.mark.measures

HZ = 199
TICK = 1 / 100


def test_three_functions_at_60_30_10_percent(pillion, program, workdir):
    """Shares within 2 points of 2,000 samples, in the .col and in the pprof; totals within 3 %."""
    session = profiler.profile(pillion, workdir, [program("shares"), "10"], "-f", HZ)
    truth = dict(zip(*[iter(session.done.out.split())] * 2))
    assert len(session.windows) == 1
    for name in ("sixty", "thirty", "ten"):
        expected = float(truth[name])
        assert abs(session.col.share(name) - expected) < 0.02, (name, expected, session.col.share(name))
        assert abs(session.pprof.share(name) - expected) < 0.02, (name, expected, session.pprof.share(name))
    spent = float(truth["seconds"])
    for total in (session.seconds(HZ), session.pprof.total("cpu") / 1e9):
        assert profiler.within(total, spent, 0.03, TICK), (total, spent)
    # The whole way from the start of the thread, and the stack is named to the leaf.
    heavy = max(session.col.stacks, key=lambda s: s.count)
    assert heavy.frames[-2:] == ["main", "sixty"], heavy.frames
    assert heavy.comm == "shares"


@pytest.mark.parametrize("deed,seconds", [
    (["processes", "4", "1.2"], 4.8),
    (["threads", "4", "1.2"], 4.8),
    (["processes", "-150", "0.01"], 1.5),
    (["kernel", "2"], 2.0),
])
def test_totals_are_the_kernels_own(pillion, program, workdir, deed, seconds):
    """The sum of a profile is utime + stime within 3 % or one tick per thread."""
    session = profiler.profile(pillion, workdir, [program("act"), *deed])
    truth = session.done.cpu_seconds
    assert truth > seconds * 0.9
    threads = abs(int(deed[1])) if len(deed) > 2 else 1
    # A tick for each of a hundred short processes would be a wide gate.
    assert profiler.within(session.seconds(), truth, 0.03, min(TICK * threads, 0.2)), (
        session.seconds(), truth)


def test_totals_of_a_program_that_mostly_sleeps(pillion, program, workdir):
    session = profiler.profile(pillion, workdir, [program("act"), "sleepy", "6"])
    truth = session.done.cpu_seconds
    assert 1 < truth < 4
    assert profiler.within(session.seconds(), truth, 0.03, TICK), (session.seconds(), truth)
    assert session.share("doze") > 0.8


def test_the_profile_is_there_soon_after_the_command(pillion, program, workdir):
    """Also when each of its threads has events of its own, after 200 samples: the end is waited for, not found a second later."""
    waits = []
    while len(waits) < 4 and (not waits or min(waits) >= 0.7):
        out = workdir / f"out{len(waits)}"
        out.mkdir()
        process.run([pillion, "-q", "--launch", "exec", "-o", out, "--", program("act"), "threads", "4", "0.8"])
        begin = time.monotonic()
        process.until(lambda: (out / "last_profile.pprof").exists(), 20, "the profile is written", 0.01)
        waits.append(time.monotonic() - begin)
        process.settle()
    assert min(waits) < 0.7, waits


def test_each_thread_has_its_name_and_share(pillion, program, workdir):
    session = profiler.profile(pillion, workdir, [program("act"), "threads", "4", "0.8"])
    worker = session.seconds(comm="worker") + session.seconds(comm="act")
    assert profiler.within(worker, session.done.cpu_seconds, 0.03, 4 * TICK)
    assert session.seconds(comm="worker") > 0.9 * session.done.cpu_seconds
    threads = {int(s.labels["thread id"]) for s in session.pprof.samples if s.labels["thread name"] == "worker"}
    assert len(threads) == 4
    assert {int(s.labels["process_id"]) for s in session.pprof.samples} == {session.done.pid}
    assert session.done.pid not in threads


def test_cplusplus_names_are_read_back(pillion, program, workdir):
    session = profiler.profile(pillion, workdir, [program("cxx"), "2"])
    names = session.frames()
    assert {"shop::Money::operator+", "shop::Basket<shop::Money, 16>::total"} <= names, names
    assert not [n for n in names if n.startswith("_Z")], names
    assert session.share("shop::Money::operator+") > 0.9


def test_rust_names_are_read_back(pillion, program, workdir):
    session = profiler.profile(pillion, workdir, [program("rusty"), "2"])
    names = session.frames()
    assert {"rusty::Ledger::balance", "rusty::main"} <= names, names
    assert not [n for n in names if n.startswith(("_ZN", "_R")) or re.search(r"::h[0-9a-f]{16}", n)], names
    assert session.share("rusty::Ledger::balance") > 0.9


def test_a_deleted_binary_keeps_its_names(pillion, program, workdir):
    copy = workdir / "vanishing"
    shutil.copy2(program("act"), copy)
    session = profiler.profile(pillion, workdir / "out", [copy, "unlink", copy, "1.5"])
    assert not copy.exists()
    assert session.share("spin") > 0.9, session.frames()


@pytest.mark.parametrize("flags", [(), ("-static",)], ids=["dynamic", "static"])
def test_a_stripped_binary_is_file_and_offset(pillion, program, workdir, flags):
    """One frame per function, wherever in it the samples are; linkers write no table of functions into static programs."""
    copy = workdir / "bare"
    subprocess.run(["strip", "-s", "-o", copy, program("act", *flags)], check=True)
    session = profiler.profile(pillion, workdir / "out", [copy, "spin", "1"])
    unnamed = [n for n in session.frames() if re.match(r"\[bare\+0x[0-9a-f]+\]$", n)]
    assert unnamed, session.frames()
    assert sum(session.share(n) for n in unnamed) > 0.9
    assert max(leaves(session).values()) > 0.9, leaves(session)


def test_generated_code_without_names_is_one_frame(pillion, program, workdir):
    session = profiler.profile(pillion, workdir / "out", [program("act"), "generated", "1"])
    assert leaves(session)["[anon]"] > 0.9, leaves(session)
    assert not [n for n in session.frames() if n.startswith("[anon+")]


def leaves(session):
    """The share of each innermost function."""
    total, found = sum(s.count for s in session.col.stacks), Counter()
    for stack in session.col.stacks:
        found[stack.frames[-1]] += stack.count / total
    return found


def test_time_in_the_vdso_is_named(pillion, program, workdir):
    """Reading the clock happens in code that is in no file."""
    session = profiler.profile(pillion, workdir, [program("act"), "clock", "1.5"])
    leaves = {}
    for stack in session.col.stacks:
        leaves[stack.frames[-1]] = leaves.get(stack.frames[-1], 0) + stack.count
    vdso = sum(count for name, count in leaves.items() if "vdso" in name)
    assert vdso > 0.5 * session.col.total, leaves


def test_kernel_frames_are_marked_and_named(pillion, program, workdir):
    if int(open("/proc/sys/kernel/kptr_restrict").read()) > 1 or os.geteuid() != 0:
        pytest.skip("kernel names are hidden on this machine")
    session = profiler.profile(pillion, workdir, [program("act"), "kernel", "1"])
    kernel = sum(s.count for s in session.col.stacks if s.frames[-1].endswith("_[k]"))
    assert kernel > 0.9 * session.col.total
    assert not [n for n in session.frames() if n.startswith("_[k]") or re.match(r"\[?0x[0-9a-f]+\]?_\[k\]", n)]


def test_attach_sees_threads_from_before_and_children_from_after(pillion, program, workdir):
    target = process.start([program("act"), "grow", "4.5"])
    process.until(lambda: "ready" in target.out, 5)
    time.sleep(0.6)
    before = process.cpu_seconds(target.pid)
    attached = process.start([pillion, "-p", target.pid, "-d", "3", "-o", workdir])
    process.until(lambda: " profiles pid " in attached.err, 10, lambda: attached.err)
    began, begin = process.cpu_seconds(target.pid), time.monotonic()
    while time.monotonic() < begin + 2.9:
        inside = process.cpu_seconds(target.pid) - began
        time.sleep(0.02)
    done = attached.finish()
    after = process.cpu_seconds(target.pid)
    assert done.status == 0, done
    session = profiler.Session(done, workdir)
    assert len(session.windows) == 1
    for name in ("thread_before", "thread_after", "child_after"):
        assert session.share(name) > 0.03, (name, session.frames())
    assert {"earlier", "later", "act"} <= session.col.comms()
    children = [s for s in session.pprof.samples if int(s.labels["process_id"]) != target.pid]
    own = [s for s in session.pprof.samples if int(s.labels["process_id"]) == target.pid]
    assert children and own
    # Not more than with the start and the end of pillion, and not less than within its three seconds.
    measured = sum(s.values[session.pprof.column("cpu")] for s in own) / 1e9
    assert measured < (after - before) * 1.03 + 2 * TICK and measured > inside * 0.97 - 0.05, (
        measured, after - before, inside)
    assert target.finish().status == 0


def test_attach_to_a_process_that_ends_early_ends_too(pillion, program, workdir):
    target = process.start([program("act"), "spin", "1.5"])
    begin = time.monotonic()
    done = process.run([pillion, "-p", target.pid, "-d", "30", "-o", workdir])
    assert done.status == 0, done
    assert time.monotonic() - begin < 6
    assert profiler.Session(done, workdir).share("spin") > 0.9
    target.finish()


def test_attach_to_nothing_says_what_is_visible(pillion, workdir):
    done = process.run([pillion, "-p", "4000000", "-d", "1", "-o", workdir])
    assert done.status == 1
    assert re.match(r"pillion: no process 4000000 in this PID namespace", done.err), done
    assert not list(workdir.iterdir())


def test_of_several_those_that_are_gone_are_named_and_the_others_profiled(pillion, program, workdir):
    target = process.start([program("act"), "spin", "60"])
    done = process.run([pillion, "-p", f"4000000,{target.pid},4000001", "-d", "1", "-o", workdir])
    target.end()
    target.done()
    assert done.status == 0, done
    assert "no process 4000000, 4000001 in this PID namespace" in done.err and "the others are profiled" in done.err, done
    assert profiler.Session(done, workdir).share("spin") > 0.9


def test_all_processes_of_the_namespace(pillion, program, workdir):
    """-a, which is also what happens without a target; two unrelated programs are seen with their full time."""
    targets = [process.start([program("act", called=name), "spin", "2.0"]) for name in ("first", "second")]
    done = process.run([pillion, "-a", "-d", "2", "-o", workdir], timeout=20)
    assert done.status == 0, done
    session = profiler.Session(done, workdir)
    for target in targets:
        target.finish()
    for name in ("first", "second"):
        assert session.seconds(comm=name) > 0.2, session.col.comms()
        spinning = sum(stack.count for stack in session.col.stacks if stack.comm == name and "spin" in stack.frames)
        assert spinning / 99 > 0.5 * session.seconds(comm=name)  # its first moments are before it is found


def test_a_real_server_under_load(pillion, workdir):
    """redis-server and redis-benchmark for 10 s: at least 90 % of the CPU time in named frames, totals within 3 %.

    Debian's binaries are stripped and built without frame pointers: a leaf is named where the file exports a symbol
    for it, and most of a server's time is in the kernel, which names all.
    """
    port = str(workloads.free_port())
    server = process.start([pillion, "--launch", "exec", "-o", workdir / "out", "--", "redis-server", "--port", port,
                            "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", workdir,
                            "--daemonize", "no"])
    process.until(lambda: "Ready to accept connections" in server.out, 10)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        load = process.run(["redis-benchmark", "-p", port, "-q", "-n", "50000", "-c", "20", "-t",
                            "set,get,incr,lpush,rpop,sadd,hset,zadd,mset"], timeout=120)
        assert load.status == 0, load
    process.run(["redis-cli", "-p", port, "shutdown", "nosave"])
    done = server.finish()
    process.settle(15)
    assert done.status == 0, done
    session = profiler.Session(done, workdir / "out")
    assert session.seconds() > 1
    unnamed = sum(s.count for w in session.windows for s in w.stacks
                  if re.match(r"\[(?!kernel\])", s.frames[-1]))
    named = 1 - unnamed / sum(w.total for w in session.windows)
    print(f"named: {100 * named:.1f} % of {session.seconds():.2f} s CPU; the kernel says {done.cpu_seconds:.2f} s")
    assert named >= 0.90, named
    assert profiler.within(session.seconds(), done.cpu_seconds, 0.03, TICK), (
        session.seconds(), done.cpu_seconds)

"""-e: other events than CPU time, as sample types of the pprof. Bounds are counts and shares, never wall time."""
import os
import re
import shutil
import types
from pathlib import Path

import pytest

from lab import process, profiler

pytestmark = pytest.mark.measures

PAGES = 20000


def rows(profile, kind, frame=None):
    at = profile.column(kind)
    return [(s, s.values[at]) for s in profile.samples if s.values[at] and (frame is None or frame in s.frames)]


def counted(profile, kind, frame=None):
    return sum(value for _, value in rows(profile, kind, frame))


@pytest.fixture(params=["root", "nobody"])
def place(request, pillion, program, workdir):
    """A folder any uid can use: the binary, the programs, an output folder, and what stands before a command that
    runs as ourselves, or as a user who may not sample kernel code."""
    if request.param == "nobody" and os.geteuid() != 0:
        pytest.skip("to be another user needs root")
    made = types.SimpleNamespace(pillion=profiler.copy(pillion, workdir), out=workdir / "out",
                                 prefix=() if request.param == "root" else profiler.as_nobody())
    made.out.mkdir()
    made.out.chmod(0o777)
    for name in ("faults", "sleeps"):
        setattr(made, name, shutil.copy(program(name), workdir / name))
    return made


def said(session):
    """What the profiler wrote, as one text."""
    return " ".join(session.done.err.split())


def test_page_faults_stand_where_they_happen_and_sum_up(place):
    session = profiler.profile(place.pillion, place.out, [place.faults, PAGES, "2"], "-e", "sPF p=50",
                               prefix=place.prefix)
    truth = int(session.done.out.split()[1])
    assert truth > 4 * PAGES
    profile = session.pprof
    assert profile.sample_types == [("samples", "count"), ("cpu", "nanoseconds"), ("page-faults", "count")]
    total, lost = profile.total("page-faults"), counted(profile, "page-faults", "[lost]")
    assert profiler.within(total, truth, 0.02), (total, truth)
    one, three = counted(profile, "page-faults", "one"), counted(profile, "page-faults", "three")
    assert abs(one / (one + three) - 0.25) < 0.03, (one, three, lost)
    assert (one + three) / total > 0.9, (one, three, lost, total)
    for sample, faults in rows(profile, "page-faults", "three"):
        assert sample.values[:2] == [0, 0] and faults % 50 == 0, (sample.frames, sample.values)
        assert "main" in sample.frames, sample.frames
    # CPU time is sampled as ever. Of the kernel's nobody sees the accounting alone, which is read each quarter of a second, and
    # at the end only if that is before the parent has taken them away.
    missing = 0.3 if place.prefix else 0.05
    assert profiler.within(session.seconds(), session.done.cpu_seconds, 0.03, missing), (session.seconds(), session.done)
    assert not [s for s, _ in rows(profile, "cpu") if s.values[2]]


def test_children_and_threads_are_followed(pillion, program, workdir):
    command = ["sh", "-c", f"{program('faults')} 4000 0.4 & {program('faults')} 4000 0.4; wait"]
    session = profiler.profile(pillion, workdir / "out", command, "-e", "page-faults")
    truth = sum(int(n) for n in re.findall(r"faults (\d+)", session.done.out))
    profile = session.pprof
    assert profiler.within(profile.total("page-faults"), truth, 0.05), (profile.total("page-faults"), truth)
    one, three = counted(profile, "page-faults", "one"), counted(profile, "page-faults", "three")
    assert abs(one / (one + three) - 0.25) < 0.03, (one, three)
    assert (one + three) / truth > 0.9


def test_an_event_that_is_not_here_is_said_and_cpu_time_goes_on(pillion, program, workdir):
    session = profiler.profile(pillion, workdir / "out", [program("faults"), "1000", "0.5"],
                               "-e", "cycles; page-faults")
    types = [name for name, _ in session.pprof.sample_types]
    if "cycles" in types:
        assert session.pprof.total("cycles") > 1e6
        assert types == ["samples", "cpu", "cycles", "page-faults"]
    else:
        assert "-e: cycles cannot be sampled: this machine has no such hardware counter (ENOENT), like most virtual " \
               "machines; CPU time is sampled all the same" in said(session)
        assert types == ["samples", "cpu", "page-faults"]
    assert session.pprof.total("page-faults") > 4000
    assert profiler.within(session.seconds(), session.done.cpu_seconds, 0.03, 0.05)


def test_switches_need_kernel_code(place):
    session = profiler.profile(place.pillion, place.out, [place.sleeps, "turns", "1"], "-e", "sCS p=1",
                               prefix=place.prefix)
    if place.prefix and int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) > 1:
        assert "context-switches happen in the kernel, which may not be sampled here" in said(session)
        assert len(session.pprof.sample_types) == 2
        return
    profile = session.pprof
    assert counted(profile, "context-switches", "long_sleep") >= 1
    assert counted(profile, "context-switches", "short_sleep") >= 1


@pytest.mark.exact
def test_what_is_wrong_is_told_before_anything_starts(pillion, run, workdir):
    """What is misspelt; what ancestors have and we have not keeps no program from starting."""
    misspelt = run([pillion, "-e", "page-fualts", "--", "true"])
    assert misspelt.status == 125
    assert ('-e expects an event such as page-faults or cycles, got "page-fualts"; did you mean page-faults?'
            in " ".join(misspelt.err.split())), misspelt
    words = "-e sALLOC is not available: no code is put into the program"
    attached = run([pillion, "-p", "1", "-e", "sCPU;sALLOC"])
    assert attached.status == 2 and words in " ".join(attached.err.split()), attached
    started = run([pillion, "--launch", "init", "-o", workdir, "-e", "sCPU;sALLOC", "--", "sh", "-c", "exit 3"])
    assert started.status == 3 and words in " ".join(started.err.split()), started


# ---- --off-cpu ----


def test_sleeping_in_two_functions(pillion, program, workdir):
    """60 % and 30 % asleep, 10 % computing: the time off the CPU stands where the thread slept."""
    session = profiler.profile(pillion, workdir / "out", [program("sleeps"), "turns", "2"], "--off-cpu")
    truth = dict(zip(*[iter(session.done.out.split())] * 2))
    wall = sum(float(seconds) for seconds in truth.values())
    profile = session.pprof
    assert [name for name, _ in profile.sample_types] == ["samples", "cpu", "off_cpu", "wall"]
    for name, function in (("long", "long_sleep"), ("short", "short_sleep")):
        off = counted(profile, "off_cpu", function) / 1e9
        assert abs(off / wall - float(truth[name]) / wall) < 0.03, (name, off, truth)
    assert counted(profile, "off_cpu", "compute") == 0
    for sample, _ in rows(profile, "off_cpu", "long_sleep"):
        assert sample.frames[-1] == "[waits: sleep]" and "main" in sample.frames, sample.frames
    # Neither lost nor counted twice: what was not computed was slept, or was spent waiting for a CPU.
    assert profile.total("off_cpu") / 1e9 < wall + 0.1
    assert profile.total("wall") == profile.total("cpu") + profile.total("off_cpu")
    # CPU time is what it is without.
    assert profiler.within(session.seconds(), session.done.cpu_seconds, 0.03, 0.05)
    assert session.share("compute") > 0.8
    assert not [frame for frame in session.frames() if "waits" in frame or "off-CPU" in frame]


def test_short_waits_are_an_estimate_below_a_frame_that_says_so(pillion, program, workdir):
    """Waits of 6 and 3 ms in turns: most are over before they can be looked at, some fifty are seen."""
    session = profiler.profile(pillion, workdir / "out", [program("sleeps"), "naps", "450"], "--off-cpu")
    profile = session.pprof
    long, short = counted(profile, "off_cpu", "long_sleep"), counted(profile, "off_cpu", "short_sleep")
    assert (long + short) / profile.total("off_cpu") > 0.9, (long, short, profile.total("off_cpu"))
    assert long > 0.4 * (long + short), (long, short)
    estimated = [s for s, _ in rows(profile, "off_cpu", "long_sleep") if s.frames[0] == "[off-CPU]"]
    assert estimated and estimated[0].frames[-1] == "[waits: sleep]", profile.samples


def test_threads_that_never_run_are_seen_all_the_same(pillion, program, workdir, run):
    started = process.start([program("sleeps"), "blocked", "30"])
    process.until(lambda: "ready" in started.out, 10, "its threads wait")
    done = run([pillion, "-p", started.pid, "-d", "3", "--off-cpu", "-o", workdir / "out"], timeout=30)
    started.end()
    assert done.status == 0, done
    profile = profiler.Session(done, workdir / "out").pprof
    length = profile.duration_nanos / 1e9
    for function, reason in (("pauses", "[waits: signal]"), ("reads", "[waits: read pipe]"),
                             ("sleeps_on", "[waits: sleep]"), ("main", "[waits: lock]")):
        found = rows(profile, "off_cpu", function)
        assert [sample.frames[-1] for sample, _ in found] == [reason], (function, found)
        off = sum(value for _, value in found) / 1e9
        assert profiler.within(off, length, 0, 0.3), (function, off, length)

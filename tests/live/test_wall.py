"""--wall: where threads wait, beside where they use CPU time."""
import re
import sys
from collections import Counter

import pytest

from lab import pprof, process, profiler

pytestmark = pytest.mark.measures

SECONDS = 3
WAITS = {"holds_lock": "[waits: sleep]", "wants_lock": "[waits: lock]", "sleeps": "[waits: sleep]",
         "receives": "[waits: receive]", "<module>": "[waits: sleep]"}


@pytest.mark.parametrize("options", [[], ["--perf-mode", "disabled"]], ids=["perf", "perf-less"])
def test_waiting_threads_are_where_they_wait(pillion, workdir, repository, options):
    program = repository / "tests/live/programs/python/waiting.py"
    session = profiler.profile(pillion, workdir / "out", [sys.executable, program, SECONDS], "--wall", *options)
    assert session.done.status == 0, session.done
    profile = session.pprof
    assert [name for name, unit in profile.sample_types] == ["samples", "cpu", "off_cpu", "wall"]
    off_cpu = Counter()
    for sample in profile.samples:
        count, cpu, off, wall = sample.values
        assert wall == cpu + off and 0 in (cpu, off)
        if off:
            own = [name for name in sample.frames if name in WAITS]
            off_cpu[(own or ["another"])[0], sample.frames[-1]] += off / 1e9
    print(off_cpu)
    for function, reason in WAITS.items():
        # It is found when the interpreter has started, and seen until the last look.
        assert SECONDS - 0.8 < off_cpu[function, reason] < SECONDS + 0.5, off_cpu
    # The other files are of CPU time alone. Without perf what was used since it was asked last, a tenth of a second ago, ends with it.
    assert profiler.within(session.seconds(), session.done.cpu_seconds, 0.03, 0.16)
    assert not [frame for frame in session.frames() if "waits" in frame]


def test_without_it_there_is_cpu_time_only(pillion, workdir, repository):
    program = repository / "tests/live/programs/python/waiting.py"
    session = profiler.profile(pillion, workdir / "out", [sys.executable, program, 1])
    assert [name for name, unit in session.pprof.sample_types] == ["samples", "cpu"]


# ---- native threads ----

# What fifty threads wait in: the function, and what its leaf says.
WAYS = {"reads": "[waits: read pipe]", "locks": "[waits: lock]", "polls": "[waits: poll]", "naps": "[waits: sleep]",
        "accepts": "[waits: accept]", "flocks": "[waits: file lock]"}
FIRST = {"clone3", "clone", "_start"}  # functions, of threads


def told(text):
    """What the program says of itself: seconds by way, and how many calls were interrupted."""
    words = text.split()
    return {name: float(value) for name, value in zip(words[::2], words[1::2])}


def is_whole(frames):
    return frames[0] in FIRST and not {"[truncated]", "[guessed]"} & set(frames)


def by_way(profile):
    """Off-CPU seconds by way of waiting and leaf, and the seconds of stacks that are not whole."""
    place = [name for name, _ in profile.sample_types].index("off_cpu")
    found, broken = Counter(), Counter()
    for sample in profile.samples:
        seconds = sample.values[place] / 1e9
        way = next((name for name in WAYS if name in sample.frames), None)
        if seconds and way:
            found[way, sample.frames[-1]] += seconds
        if seconds and not is_whole(sample.frames):
            broken[" ; ".join(sample.frames)] += seconds
    return found, broken


def check_shares(found, truth):
    """All of a way's time says what for, and each way's share is the program's own to two points."""
    assert {(way, reason) for way, reason in found} == set(WAYS.items()), found
    for way, reason in WAYS.items():
        share, own = found[way, reason] / sum(found.values()), truth[way] / sum(truth[name] for name in WAYS)
        assert abs(share - own) < 0.02, (way, share, own, found, truth)


@pytest.mark.parametrize("option, flags", [("--wall", []), ("--off-cpu", []), ("--wall", ["-fomit-frame-pointer"]), ("--off-cpu", ["-O0"])],
                         ids=["frame-pointers", "frame-pointers-off-cpu", "none", "unoptimised"])
def test_native_threads_are_where_they_wait_without_perf(pillion, program, workdir, option, flags):
    session = profiler.profile(pillion, workdir / "out", [program("waiting", *flags), "4"], "--no-perf", option)
    assert session.done.status == 0, session.done
    truth = told(session.done.out)
    found, broken = by_way(session.pprof)
    print(found, broken, truth)
    check_shares(found, truth)
    assert truth["interrupted"] == 0, truth
    # Fifty threads from the first look to the last one.
    assert profiler.within(sum(found.values()), sum(truth[way] for way in WAYS), 0.1, 0), (found, truth)
    assert sum(broken.values()) < 0.05 * session.pprof.total("off_cpu") / 1e9, broken


def test_nobody_is_stopped_for_it(pillion, program, workdir, run):
    """No ptrace call and no signal by the profiler; its reads of memory show that strace sees what it calls."""
    started = process.start([program("waiting"), "6"])
    trace = workdir / "trace"
    calls = "ptrace,process_vm_readv,kill,tkill,tgkill,rt_sigqueueinfo,rt_tgsigqueueinfo,pidfd_send_signal"
    done = run(["strace", "-f", "-o", trace, "-e", f"trace={calls}", pillion, "-p", started.pid, "-d", "3", "--no-perf",
                "--wall", "-o", workdir / "out"], timeout=60)
    assert started.wait(20) == 0 and done.status == 0, (started.err, done)
    lines = trace.read_text().splitlines()
    counted = Counter(call.group(1) for call in (re.match(r"\d+ +(\w+)\(", line) for line in lines) if call)
    assert counted["process_vm_readv"] > 50 and counted["ptrace"] == 0, counted
    assert not [line for line in lines if f"({started.pid}, SIG" in line], counted
    assert told(started.out)["interrupted"] == 0, started.out
    found, broken = by_way(pprof.last(workdir / "out"))
    assert {way for way, _ in found} == set(WAYS), found
    assert sum(broken.values()) < 0.05 * sum(found.values()), (found, broken)


def test_a_python_process_beside_native_threads(pillion, program, workdir, repository):
    """Both are seen, and a waiting Python function has its native callers and the call that it waits in."""
    script = repository / "tests/live/programs/python/waiting.py"
    command = ["sh", "-c", f"{program('waiting')} {SECONDS} & {sys.executable} {script} {SECONDS}; wait"]
    session = profiler.profile(pillion, workdir / "out", command, "--no-perf", "--wall")
    assert session.done.status == 0, session.done
    check_shares(by_way(session.pprof)[0], told(session.done.out))
    for function, reason in WAITS.items():
        off = [(sample.values[2] / 1e9, sample.frames) for sample in session.pprof.samples
               if sample.values[2] and function in sample.frames and sample.frames[-1] == reason]
        assert SECONDS - 0.8 < sum(seconds for seconds, _ in off) < SECONDS + 0.5, (function, off)
        assert [frames for _, frames in off if is_whole(frames)], off


def test_a_library_that_was_loaded_late_is_in_the_stack(pillion, program, workdir):
    """The process has slept since its mappings were read, and no record tells of a new one."""
    library = program("late", "-shared", "-fPIC", "-DLIBRARY", called="liblate.so")
    session = profiler.profile(pillion, workdir / "out", [program("late"), library], "--no-perf", "--wall")
    assert session.done.status == 0, session.done
    stacks = [(sample.values[2] / 1e9, sample.frames) for sample in session.pprof.samples if sample.values[2]]
    late = [(seconds, frames) for seconds, frames in stacks if "waits_there" in frames and is_whole(frames)]
    assert sum(seconds for seconds, _ in late) > 1.5, stacks


@pytest.mark.root
def test_who_may_not_read_where_threads_wait_is_told_so(pillion, program, workdir, run):
    """How long they wait is for everybody to read; where is not."""
    (workdir / "out").mkdir(mode=0o777)
    (workdir / "out").chmod(0o777)
    started = process.start([program("waiting"), "4"])
    done = run(profiler.as_nobody(pillion, "-p", started.pid, "-d", "2", "--no-perf", "--off-cpu", "-o", workdir / "out"),
               timeout=60)
    assert started.wait(20) == 0, started.err
    said = f"where threads of pid {started.pid} (waiting) wait may not be read: it runs as another user (uid 0); run as its user " \
        'or add SYS_PTRACE. Their time off the CPU is "[off-CPU]"'
    assert said in " ".join(done.err.split()), done
    off = Counter()
    for sample in pprof.last(workdir / "out").samples:
        off[tuple(sample.frames)] += sample.values[2] / 1e9
    assert off["[off-CPU]",] > 0.7 * 2 * 50, off

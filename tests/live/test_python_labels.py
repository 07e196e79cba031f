"""What pprof's labels say of a Python thread: who had the lock, which asyncio task and which interpreter ran. And greenlets,
whose stacks are told apart by the stacks alone.
"""
import re
import subprocess
from collections import Counter

import pytest

from lab import pprof, profiler, pythons

pytestmark = pytest.mark.measures

PROGRAMS = "tests/live/programs/python"
MODES = {"perf": [], "perf-less": ["--perf-mode", "disabled"]}
EACH = [pytest.param(name, marks=[] if pythons.is_here(name) else pytest.mark.net) for name in pythons.rows()]


def those(pattern):
    return [each for each in EACH if re.match(pattern, each.values[0])]


@pytest.fixture
def profile(pillion, workdir, repository):
    """profile(Python's name, program, arguments, options...) -> session"""
    def run(name, program, arguments, *options):
        try:
            python = pythons.get(name)
        except pythons.Missing as reason:
            pytest.skip(f"{name}: {reason}")
        script = repository / PROGRAMS / f"{program}.py"
        session = profiler.profile(pillion, workdir / "out", python.command(script, *arguments), "-f", 999, *options)
        assert session.done.status == 0, session.done
        return session
    return run


def samples(session):
    """(frames root first, labels, CPU seconds) of all windows: the last one may be empty."""
    for file in sorted(session.folder.glob("profile_[0-9]*.pprof")):
        yield from samples_of(pprof.read(file))


def samples_of(read):
    at = read.column("cpu")
    return [(sample.frames, sample.labels, sample.values[at] / 1e9) for sample in read.samples]


def seconds_by(those, function, label):
    """Label's text -> CPU seconds of the stacks with that function; without the label: None."""
    found = Counter()
    for frames, labels, seconds in those:
        if function in frames:
            found[labels.get(label)] += seconds
    return found


def share(found, text):
    return found[text] / max(sum(found.values()), 1e-9)


# ---- The lock

@pytest.mark.parametrize("name", EACH)
def test_who_computes_has_the_lock_and_who_is_in_a_system_call_has_not(name, profile):
    read = [*samples(profile(name, "locks", [0.6], *MODES["perf"]))]
    inside, outside = seconds_by(read, "inside", "gil"), seconds_by(read, "outside", "gil")
    print(name, dict(inside), dict(outside))
    assert sum(inside.values()) > 0.05 and sum(outside.values()) > 0.05
    if name == "free-threaded":
        assert set(inside) == set(outside) == {None}
    else:  # 2.7's threads, on several CPUs, use as much time again to fight for the lock
        assert share(inside, "held") > (0.25 if "2.7" in name else 0.8) and share(outside, "held") < 0.25


def test_without_perf_events_as_well(profile):
    read = [*samples(profile("host", "locks", [0.6], *MODES["perf-less"]))]
    inside, outside = seconds_by(read, "inside", "gil"), seconds_by(read, "outside", "gil")
    print(dict(inside), dict(outside))
    assert share(inside, "held") > 0.8 and share(outside, "held") < 0.25


def test_labels_survive_being_merged_and_are_not_in_collapsed_stacks(profile, run, pillion, workdir):
    session = profile("host", "locks", [0.6])
    assert not {frame for frame in session.frames() if "held" in frame}
    files = [*session.folder.glob("profile_[0-9]*.pprof")]
    done = run([pillion, "render", *files, *files, "-o", workdir / "twice.pprof"])
    assert done.status == 0, done
    both = samples(session), samples_of(pprof.read(workdir / "twice.pprof"))
    once, twice = (seconds_by(those, "inside", "gil") for those in both)
    assert once["held"] > 0.05 and abs(twice["held"] - 2 * once["held"]) < 0.001


# ---- Tasks

@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", those("sid-python3.14"))
def test_each_task_has_its_name(name, mode, profile):
    """From when the loading of asyncio's library is seen: without perf events /proc tells, twice a second."""
    seconds, least = (1.2, 0.8) if mode == "perf" else (2.5, 0.5)
    tasks_are_told([*samples(profile(name, "named_tasks", [seconds], *MODES[mode]))], least)


@pytest.mark.parametrize("name", those("sid-python3.15"))
def test_where_asyncio_is_built_in_too(name, profile):
    tasks_are_told([*samples(profile(name, "named_tasks", [0.4]))])


def tasks_are_told(read, least=0.9):
    """Named ones by name, others by number; of the many the first, so that all texts together stay few. A task that ends
    while it is read late has no name rather than a wrong one."""
    told = {function: seconds_by(read, function, "asyncio task") for function in ("paying", "shipping", "nameless", "request")}
    print({function: found.most_common(3) for function, found in told.items()})
    assert share(told["paying"], "pay") > least and share(told["shipping"], "expédier 任务") > least
    assert set(told["paying"]) <= {"pay", None} and set(told["shipping"]) <= {"expédier 任务", None}
    numbered = sum(seconds for text, seconds in told["nameless"].items() if re.fullmatch(r"Task-\d+", str(text)))
    assert numbered > least * sum(told["nameless"].values()) > 0.02
    assert all(text is None or re.fullmatch(r"request-\d+|\(other\)", text) for text in told["request"])
    assert told["request"][None] < 0.1 * sum(told["request"].values())
    every = {labels.get("asyncio task") for _, labels, _ in read} - {None}
    assert 15 < len(every) <= 129 and ("(other)" in every) == (len(every) == 129)


def test_before_3_14_no_task_is_told(profile):
    read = samples(profile("host", "named_tasks", [0.2]))
    assert set(seconds_by(read, "paying", "asyncio task")) == {None}


# ---- Interpreters

@pytest.mark.parametrize("name", those(r"trixie-python3.13|sid-"))
def test_each_interpreter_has_its_number(name, profile):
    """Up to 3.12 a thread that runs what another one has made cannot be told from that one."""
    session = profile(name, "interpreters", [0.25])
    read = [*samples(session)]
    numbers = {"here": "0", **dict(line.split() for line in session.done.out.splitlines())}
    assert len(set(numbers.values())) == 3, session.done
    for function, number in numbers.items():
        found = seconds_by(read, function, "interpreter")
        print(name, function, number, dict(found))
        assert sum(found.values()) > 0.02 and share(found, number) > 0.95, session.done


def test_one_interpreter_is_not_told(profile):
    read = [*samples(profile("host", "locks", [0.3]))]
    assert seconds_by(read, "inside", "gil") and not any("interpreter" in labels for _, labels, _ in read)


# ---- Greenlets

@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["greenlet", "gevent"])
def test_frames_of_the_hub_and_of_greenlets_are_never_in_one_stack(kind, mode, profile):
    if subprocess.run(["/usr/bin/python3", "-c", f"import {kind}"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip(f"not installed: python3-{kind}")
    session = profile("host", "hub", [0.6, *(["gevent"] if kind == "gevent" else [])], *MODES[mode])
    seconds = Counter()
    for frames, _, spent in samples(session):
        owners = {found[1] for found in (re.match(r"(one|two|hub|Hub)(_|\.|$)", frame) for frame in frames) if found}
        seconds[tuple(sorted(owners))] += spent
    print(kind, mode, dict(seconds))
    assert not [owners for owners in seconds if len(owners) > 1]
    wanted = [("one",), ("two",)] + ([("hub",)] if kind == "greenlet" else [])
    assert all(seconds[owners] > 0.02 for owners in wanted), seconds


# ---- Names of threads

# What differs between versions is the same in both modes.
NAMED = {"perf": r"host|pyenv-(2\.7|3\.([6-9]|1[0-3])\.)|bullseye|trixie-python3.13|musl", "perf-less": r"host|bullseye-python2.7|trixie-python3.13"}


@pytest.mark.parametrize("name, mode", [pytest.param(*each.values, mode, marks=each.marks) for mode in MODES for each in those(NAMED[mode])])
def test_a_thread_has_the_name_that_threading_gave_it(name, mode, profile):
    session = profile(name, "thread_names", [2], "--launch", "init", *MODES[mode])
    names = {function: set() for function in ("named", "unnamed", "of_a_class", "told", "unknown", "main")}
    for frames, labels, seconds in samples(session):
        for function in names:
            if any(re.fullmatch(rf"(.*\.)?{function}", frame) for frame in frames):
                names[function].add(labels["thread name"])
                comm = labels["comm"]
    print(names, comm)
    assert names["named"] - {comm} == {"worker-db"}
    assert names["unnamed"] - {comm} in (set(), {"Thread (unnamed)"})  # from 3.10 on it says more than a number
    assert names["of_a_class"] - {comm} in ({"größer als 15 €"},
                                     {"a name of more than fifteen bytes; it is cut after sixty-four of"})
    # A thread cannot name itself in a chroot, which has no /proc. Without perf nothing tells that it has done so later.
    told = {"own-name"} if mode == "perf" else {"own-name", "not-this"}
    assert names["told"] & told or re.match("bullseye|trixie", name)
    assert names["unknown"] == names["main"] == {comm}
    col = {stack.comm for window in session.windows for stack in window.stacks}
    assert {"worker-db", comm} <= col


@pytest.mark.net
def test_the_system_has_the_name_of_a_thread_of_python_3_14_and_later(profile):
    session = profile("sid-python3.14", "thread_names", [2], "--launch", "init")
    assert "worker-db" in {stack.comm for window in session.windows for stack in window.stacks}

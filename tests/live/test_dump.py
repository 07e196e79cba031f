"""pillion dump: every thread's stack is what the program's own runtime says of it, and who waits for whom is told."""
import json
import re
import signal
import sys
import time
from collections import Counter

import pytest

from lab import compiler, golang, process, pythons

pytestmark = pytest.mark.measures

WAYS = pytest.mark.parametrize("options", [[], ["--perf-mode", "disabled"]], ids=["perf", "perf-less"])


def ready(argv, **options):
    """A program that runs and has said so."""
    running = process.start(argv, **options)
    process.until(lambda: running.out.startswith("ready\n"), timeout=30, what="its word")
    return running


def dump(pillion, running, *options):
    """Of its only process; nothing is written, and it takes a moment."""
    done = process.run([pillion, "dump", "-p", running.pid, "--json", *options], timeout=20)
    assert done.status == 0 and done.err == "", done
    told, = json.loads(done.out)["processes"]
    assert told["pid"] == running.pid
    return told


def python_frames(thread):
    return tuple((frame["function"].rpartition(".")[2], frame["line"]) for frame in thread["frames"] if frame["language"] == "python")


def faulthandler_frames(text):
    """By thread: (function, line), innermost first."""
    found = []
    for line in text.splitlines():
        frame = re.fullmatch(r'  File ".*", line (\d+) in (.*)', line)
        if frame:
            found[-1].append((frame[2].rpartition(".")[2], int(frame[1])))
        elif line.endswith("(most recent call first):"):
            found.append([])
    return Counter(map(tuple, found))


@pytest.fixture(params=[pytest.param(f"sid-python{version}", marks=pytest.mark.net) for version in ("3.14", "3.15")])
def newest(request):
    try:
        return pythons.get(request.param)
    except pythons.Missing as reason:
        pytest.skip(f"{request.param}: {reason}")


@WAYS
def test_python_threads_are_where_faulthandler_says(pillion, workdir, repository, options):
    running = ready([sys.executable, repository / "tests/live/programs/python/dumped.py", workdir / "own"])
    told = dump(pillion, running, *options)
    running.signal(signal.SIGUSR1)
    process.until(lambda: "main" in (workdir / "own").read_text().rpartition("most recent")[2], what="faulthandler's words")
    time.sleep(0.1)
    own = faulthandler_frames((workdir / "own").read_text())
    running.end()
    assert Counter(python_frames(thread) for thread in told["threads"]) == own
    assert told["runtime"].startswith("CPython 3.") and told["deadlocks"] == []
    names = {thread["name"] for thread in told["threads"]}
    assert {"wörker-0", "wörker-1", "wörker-2", "recursive", "generator"} <= names
    assert {thread["state"] for thread in told["threads"]} == {"sleeping"}
    assert Counter(thread["waits_for"].split(" 0x")[0] for thread in told["threads"]) == {"sleep": 4, "lock or condition": 3}


@pytest.mark.parametrize("kind", ["Lock", "RLock", "native"])
def test_a_deadlock_of_three_is_one(pillion, repository, kind):
    programs = repository / "tests/live/programs"
    native = [compiler.program(programs, "deadlock")]
    running = process.start(native if kind == "native" else [sys.executable, programs / "python/deadlock.py", kind])
    of = {"native": 5}.get(kind, 4)
    process.until(lambda: len(process.threads_of(running.pid)) == of, what="its threads")
    time.sleep(0.3)
    if kind != "native" and sys.version_info[:2] not in ((3, 11), (3, 12), (3, 13)):
        running.end()
        pytest.skip(f"who holds a lock is told of CPython 3.11 to 3.13, this is {sys.version.split()[0]}")
    told = dump(pillion, running)
    text = process.run([pillion, "dump", "-p", running.pid], timeout=20).out
    running.end()
    threads = {thread["name"]: thread for thread in told["threads"]}
    dead = [threads[f"dead-{number}"] for number in range(3)]
    assert [sorted(told["deadlocks"][0])] == [sorted(thread["tid"] for thread in dead)] and len(told["deadlocks"]) == 1
    for number, thread in enumerate(dead):
        assert thread["holder"] == dead[(number + 1) % 3]["tid"] and thread["deadlock"] == 1
    assert text.count("Deadlock of 3 threads") == 1
    if kind == "native":
        assert threads["late"]["holder"] == dead[1]["tid"] and "deadlock" not in threads["late"]
        main, = (thread for thread in told["threads"] if thread["tid"] == running.pid)
        assert main["waits_for"] == "end of a thread" and main["holder"] == dead[0]["tid"]


@pytest.mark.parametrize("kind", ["Lock", "RLock"])
def test_a_deadlock_is_told_where_locks_have_many_futexes(pillion, repository, newest, kind):
    running = process.start(newest.command(repository / "tests/live/programs/python/deadlock.py", kind))
    process.until(lambda: len(process.threads_of(running.pid)) == 4, what="its threads")
    time.sleep(0.5)
    told = dump(pillion, running)
    running.end()
    threads = {thread["name"]: thread for thread in told["threads"]}
    assert [len(dead) for dead in told["deadlocks"]] == [3]
    for number in range(3):
        assert threads[f"dead-{number}"]["holder"] == threads[f"dead-{(number + 1) % 3}"]["tid"]


def test_asyncio_tasks_that_wait_are_where_python_says(pillion, repository, newest):
    running = ready(newest.command(repository / "tests/live/programs/python/waiting_tasks.py"))
    told = dump(pillion, running)
    text = process.run([pillion, "dump", "-p", running.pid], timeout=20).out
    running.signal(signal.SIGUSR1)
    process.until(lambda: running.out.endswith("end\n"), what="Python's words")
    own = Counter()
    for line in running.out.splitlines()[1:-1]:
        name, awaited_by, *frames = line.split("\t")
        own[name, awaited_by, tuple((frame.split(":")[0], int(frame.split(":")[1])) for frame in frames)] += 1
    running.end()
    assert Counter((task["name"], task.get("awaited_by", ""), python_frames(task)) for task in told["tasks"]) == own
    assert sorted(Counter(task["tid"] for task in told["tasks"]).values()) == [7, 7] and "tasks_changed" not in told
    assert len(re.findall("^3 tasks, wait, awaited by group, thread .*: wörker-0, wörker-1, wörker-2$", text, re.M)) == 2


def test_tasks_that_take_turns_are_right_or_left_out(pillion, repository, newest):
    running = ready(newest.command(repository / "tests/live/programs/python/waiting_tasks.py", "busy"))
    told = [dump(pillion, running) for _ in range(3)]
    running.end()
    for one in told:
        stacks = {tuple(name for name, _ in python_frames(task)) for task in one["tasks"]}
        assert stacks <= {("__sleep0", "sleep", "spin"), ("sleep", "spin"), ("spin",), ("busy",)}, stacks
        assert len(one["tasks"]) + one.get("tasks_changed", 0) <= 201
    assert max(len(one["tasks"]) for one in told) > 50


def go_frames(text):
    """What Go prints of its goroutines: state and functions, as often as they are there."""
    found = Counter()
    for block in text.split("\n\n"):
        head, *lines = block.strip().splitlines()
        state = re.fullmatch(r"goroutine \d+ (?:gp=\S+ m=\S+ )?\[(.*)\]:", head)[1]
        functions = [re.sub(r"\([^()]*\)$", "", line) for line in lines[::2] if not line.startswith("created by")]
        found[state, tuple(functions)] += 1
    return found


def test_goroutines_are_those_that_go_prints(pillion):
    running = ready([golang.program("local", "go_dumped.go")])
    told = dump(pillion, running)["goroutines"]
    running.signal(signal.SIGUSR1)
    process.until(lambda: running.out.endswith("\nend\n"), what="what Go prints")
    own = go_frames(running.out.removeprefix("ready\n").removesuffix("end\n"))
    running.end()
    found = Counter()
    for group in told:
        functions = tuple(frame["function"] for frame in group["frames"] if not re.match(r"runtime\.[a-z]", frame["function"]))
        found[group["state"], functions] += group["count"]
    # The one that prints is not where it was, nor may be the one that took the signal; all others are. What Go adds by
    # itself it does not print.
    waiting = {key: count for key, count in own.items() if not {"main.main", "os/signal.loop"} & set(key[1])}
    assert len(waiting) == 5 and sum(waiting.values()) == 10, own
    assert waiting.items() <= found.items(), (waiting, found)


def test_a_stopped_process_is_told_as_such_and_stays_so(pillion, workdir, repository):
    running = ready([sys.executable, repository / "tests/live/programs/python/dumped.py", workdir / "own"])
    running.signal(signal.SIGSTOP)
    process.until(lambda: process.state_of(running.pid) == "T", what="the stop")
    told = dump(pillion, running)
    assert process.state_of(running.pid) == "T"
    running.end()
    assert {thread["state"] for thread in told["threads"]} == {"stopped"}
    assert all(python_frames(thread) for thread in told["threads"])


def test_running_native_code_has_a_stack_by_perf_or_by_a_brief_stop(pillion):
    running = process.start(["/bin/sh", "-c", "while :; do :; done"])
    time.sleep(0.3)
    without = process.run([pillion, "dump", "-p", running.pid, "--perf-mode", "disabled"], timeout=20)
    held = dump(pillion, running, "--perf-mode", "disabled", "--brief-stops")
    by_perf = process.run([pillion, "dump", "-p", running.pid, "--json"], timeout=20)
    running.end()
    assert without.status == 1 and "--brief-stops reads it" in without.out, without
    for told in (held, json.loads(by_perf.out)["processes"][0]) if '"mode":"perf"' in by_perf.out else (held,):
        running_threads = [thread for thread in told["threads"] if thread["state"] == "running"]
        assert running_threads and all(thread["frames"] for thread in running_threads)


def test_what_cannot_be_dumped_is_a_sentence(pillion, workdir):
    for arguments, status, words in ((["-p", "4194303"], 1, "no process 4194303 in this PID namespace"),
                                     ([], 2, "wrong arguments for dump; usage: pillion dump -p PID[,PID...] [--json]"),
                                     (["-p", "1", "--locals", "yes"], 2, "values of variables may be secrets")):
        done = process.run([pillion, "dump", *arguments], timeout=20, cwd=workdir)
        assert done.status == status and words in done.err and done.out == "", done
    assert list(workdir.iterdir()) == []

"""pillion dump: every thread's stack is what the program's own runtime says of it, and who waits for whom is told."""
import json
import re
import signal
import sys
import time
from collections import Counter

import pytest

from lab import compiler, golang, process

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
    # The one that prints is not where it was; all others are. What Go adds by itself it does not print.
    waiting = {key: count for key, count in own.items() if "main.main" not in key[1]}
    assert len(waiting) == 6 and sum(waiting.values()) == 11, own
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

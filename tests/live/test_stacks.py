"""Whole stacks of programs without frame pointers, and what is said when one is not whole."""
import json

import pytest

from lab import compiler, profiler

pytestmark = pytest.mark.measures

BARE = ("-fomit-frame-pointer", "-momit-leaf-frame-pointer", "-fno-optimize-sibling-calls")

UNTABLED = ("-fno-asynchronous-unwind-tables", "-fno-unwind-tables")


def window(session):
    """The counts of the last window's line."""
    events = [json.loads(line) for line in session.done.err.splitlines() if line.startswith("{")]
    return next(e for e in reversed(events) if e["event"] == "window")


def profile(pillion, folder, command, *options, **more):
    return profiler.profile(pillion, folder, command, "--log-format", "json", "--launch", "init", *options, **more)


def test_callers_are_there_without_frame_pointers(pillion, program, workdir):
    session = profile(pillion, workdir, [program("shares", *BARE), "3"])
    counts = window(session)
    whole, all_of_them = int(counts["stacks_complete"]), sum(int(v) for k, v in counts.items() if k.startswith("stacks_"))
    assert all_of_them > 250
    assert whole > 0.99 * all_of_them, counts
    heavy = max(session.col.stacks, key=lambda s: s.count)
    assert heavy.frames[0] == "_start" and heavy.frames[-2:] == ["main", "sixty"], heavy.frames


def test_only_tables_where_only_tables_are_asked_for(pillion, program, workdir):
    """Frame pointers are no help in dwarf mode, and not asked for in fp mode."""
    bare = program("shares", *BARE, *UNTABLED, "-g0")
    by_table = profile(pillion, workdir / "dwarf", [bare, "1"], "--perf-mode", "dwarf")
    assert int(window(by_table)["stacks_complete"]) <= 5, window(by_table)  # a sample of the loader's start has tables
    assert "[truncated]" in by_table.frames()
    by_pointer = profile(pillion, workdir / "fp", [program("shares"), "1"], "--perf-mode", "fp")
    assert "stacks_complete" not in window(by_pointer)
    assert by_pointer.share("main") > 0.9


def test_tables_of_the_debugger_serve_as_well(pillion, program, workdir):
    """.debug_frame, which -g leaves in a program without .eh_frame."""
    session = profile(pillion, workdir, [program("shares", *BARE, *UNTABLED), "1"], "--perf-mode", "dwarf")
    assert int(window(session)["stacks_complete"]) > 80, window(session)
    assert session.share("main") > 0.9


@pytest.fixture
def deep(repository):
    return compiler.compile_file(repository / "tests/recordings/programs/deep.c", "deep", *BARE)


def depth(session):
    """The share of samples with all of the recursion, and the program's start."""
    stacks = [s for w in session.windows for s in w.stacks]
    whole = sum(s.count for s in stacks if s.frames[0] == "_start" and s.frames.count("descend") > 140)
    return whole / max(sum(s.count for s in stacks), 1)


def test_a_stack_beyond_its_copy_is_read_on_from_memory(pillion, workdir, deep):
    session = profile(pillion, workdir, [deep, "3000000000"], "--perf-dwarf-stack-size", "4096")
    assert depth(session) > 0.8, session.frames() # what was sampled last is read when the process is gone


def test_a_stack_is_read_beyond_pages_that_were_never_touched(pillion, program, workdir):
    """There the kernel's copy ends, however large it may be; x264's stacks had hardly a start."""
    session = profile(pillion, workdir, [program("act", *BARE, "-fno-stack-clash-protection"), "gap", "3"])
    counts = window(session)
    assert int(counts["stacks_complete"]) > 0.9 * int(counts["samples"]), counts
    heavy = max(session.col.stacks, key=lambda s: s.count)
    assert heavy.frames[0] == "_start" and heavy.frames[-2:] == ["deed_gap", "burn"], heavy.frames


def test_a_program_that_only_began_deep_is_sampled_like_others_later(pillion, workdir, program):
    """Catching each sample, with a large copy, ends when 2,000 stacks in a row were not deep; and all are whole, before and after."""
    session = profile(pillion, workdir, [program("begins_deep", *BARE), "1.5", "4"], "-f", 999, "--max-cpu", 100, "--log-level", "debug",
                      "--perf-dwarf-stack-size", 32768, timeout=60)
    assert "stacks are read beyond their copy from now on" in session.done.err, session.done
    begun, ended = session.done.err.find("beyond their copy"), session.done.err.find("no longer deep")
    assert 0 < begun < ended, session.done
    counts = window(session)
    whole, all_of_them = int(counts["stacks_complete"]), sum(int(v) for k, v in counts.items() if k.startswith("stacks_"))
    assert whole > 0.97 * all_of_them, counts # the first deep ones are cut
    assert session.col.seconds(999) == pytest.approx(5.5, abs=.3)
    assert sum(stack.count for stack in session.col.stacks if stack.frames.count("below") == 41 and stack.frames[-1] == "work") > 900


def test_where_one_way_to_memory_is_refused_the_other_is_taken(pillion, workdir, deep, refuse):
    """A seccomp filter against process_vm_readv: the rest of a stack is read through /proc/PID/mem."""
    session = profile(pillion, workdir, [deep, "6000000000"], "--perf-dwarf-stack-size", "4096", "-v",
                      prefix=[refuse, "EPERM", "process_vm_readv", "--"])
    assert depth(session) > 0.9, window(session)

"""Ruby code by its own names: what Ruby itself says of its stacks is what the profile shows, for every Ruby this machine can
give (tests/lab/rubies.py), with perf events and without.
"""
import json
import os
import re
from collections import Counter

import pytest

from lab import process, profiler, rbstacks, rubies, versions

pytestmark = pytest.mark.measures

PROGRAMS = "tests/live/programs/ruby"
MODES = {"perf": [], "perf-less": ["--perf-mode", "disabled"]}
# Without perf events of two versions: what differs between versions is the same in both modes.
FEW = [(name, mode) for name in rubies.NAMES for mode in MODES if mode == "perf" or name in ("host", "experimental")]
EACH = [pytest.param(name, marks=[] if name == "host" else pytest.mark.net) for name in rubies.NAMES]
# These are built in some minutes: by tests/lab/rubies.py, not by a test.
MUSL = pytest.param("musl", marks=pytest.mark.net)
FEW = [pytest.param(*one, marks=[] if one[0] == "host" else pytest.mark.net) for one in FEW]


@pytest.fixture
def ruby_of():
    def get(name):
        if name in rubies.BUILT and not rubies.is_kept(name):
            pytest.skip(f"{name}: tests/lab/rubies.py builds it")
        try:
            return rubies.get(name)
        except rubies.Missing as reason:
            pytest.skip(f"{name}: {reason}")
    return get


@pytest.fixture
def profile(pillion, workdir, repository, ruby_of):
    """profile(name of the Ruby, script, its arguments, options...) -> session, with everything in order."""
    def run(name, script, arguments, *options, **more):
        command = ruby_of(name).command(repository / PROGRAMS / f"{script}.rb", *arguments)
        session = profiler.profile(pillion, workdir / "out", command, *options, **more)
        assert session.done.status == 0, session.done
        return session
    return run


def window(session):
    """The counts of the last window's line."""
    events = [json.loads(line) for line in session.done.err.splitlines() if line.startswith("{")]
    return next(event for event in reversed(events) if event["event"] == "window")


# ---- Names, files and lines; shares

def judged(session, what):
    """The stacks of a run of known_stacks.rb: what it told, and a Counter of verdicts for each format. None may be wrong."""
    known, all_verdicts = rbstacks.Known(session.done.out), []
    for form, stacks in (("col", rbstacks.of_col(session)), ("pprof", rbstacks.of_pprof(session.folder))):
        known.seen.clear()
        verdicts, wrong = Counter(), []
        for stack in stacks:
            gone = any(str(frame).startswith("[code is gone]") for frame in stack.frames) # no name, but a frame
            verdict = "gone" if gone else known.judge(stack.ruby) if stack.ruby else "none"
            verdicts[verdict] += stack.count
            wrong += [repr(stack)] if verdict == "wrong" else []
        total = sum(verdicts.values())
        shares = {verdict: f"{100 * count / total:.1f} %" for verdict, count in verdicts.items()}
        print(f"Ruby {known.version} {what} {form}: {shares}, {len(known.seen)} of {len(known.stacks)} stacks seen")
        assert verdicts["wrong"] == 0 and verdicts["gone"] < 0.05 * total, wrong[:3]
        assert len(known.seen) >= 0.95 * len(known.stacks), [known.stacks[i] for i in {*range(len(known.stacks))} - known.seen]
        all_verdicts.append(verdicts)
    return known, all_verdicts


@pytest.mark.exact
@pytest.mark.parametrize("name,mode", [*FEW, *(pytest.param("musl", mode, marks=pytest.mark.net) for mode in MODES)])
def test_stacks_are_those_ruby_tells(name, mode, profile):
    """Blocks, fibers, C functions, operators, code given as text, rescue, calls over several lines, functions of 1,800 lines: no
    stack that the program cannot have; classes where the version tells them, too."""
    session = profile(name, "known_stacks", [1, 100], "-f", 999, "--max-cpu", 50, *MODES[mode])
    known, all_verdicts = judged(session, mode)
    for verdicts in all_verdicts:
        assert verdicts["whole"] > 0.75 * sum(verdicts.values()), session.done
        assert verdicts["part"] < 0.15 * sum(verdicts.values())
    names = {frame.name for stack in rbstacks.of_col(session) for frame in stack.ruby}
    with_class = {"Sold#sell", "Sold.helper", "Shop.of_class", "Shop.of_singleton", "Shop::Inner#call", "Shop#<=>"}
    assert with_class <= names if known.minor >= (3, 3) else not with_class & names


@pytest.mark.exact
@pytest.mark.parametrize("name,option,mode", [("host", "--yjit", "perf"), ("host", "--yjit", "perf-less"), ("host", "--mjit", "perf"),
                                              pytest.param("yjit", "--yjit", "perf", marks=pytest.mark.net),
                                              pytest.param("yjit", "--yjit", "perf-less", marks=pytest.mark.net),
                                              pytest.param("experimental", "--rjit", "perf", marks=pytest.mark.net)])
def test_compiled_code_has_the_same_stacks(name, option, mode, profile, ruby_of):
    """Names, callers and their lines; what the compilers themselves do on top is theirs."""
    ruby = ruby_of(name)
    done = process.run([*ruby.argv, option, "-e", "print RUBY_DESCRIPTION"], env=versions.ENVIRONMENT)
    if option[2:].upper() not in done.out:
        pytest.skip(f"Ruby {ruby.version} of {name} has no {option}: {(done.out + done.err).strip()[:200]}")
    rounds = 500 if option == "--rjit" else 1 # it compiles for seconds, and that is no stack of the program
    session = profile(name, "known_stacks", [1, rounds], "-f", 999, "--max-cpu", 50, *MODES[mode], env={**os.environ, "RUBYOPT": option})
    _, all_verdicts = judged(session, f"{option} {mode}")
    assert all(verdicts["whole"] > (0.1 if option == "--rjit" else 0.3) * sum(verdicts.values()) for verdicts in all_verdicts), session.done


@pytest.mark.parametrize("name,mode", FEW)
def test_three_functions_at_50_30_20_percent(name, mode, profile):
    session = profile(name, "shares", [1.2, 0.2], "-f", 999, *MODES[mode])
    told = {function: float(share) for function, share in zip(*[iter(session.done.out.split())] * 2)}
    stacks = rbstacks.of_col(session)
    total = sum(stack.count for stack in stacks)
    shares = {function: sum(s.count for s in stacks if function in s.names) / total for function in told}
    assert sum(shares.values()) > 0.6, (session.done, session.frames())
    for function, true in told.items():
        share = shares[function] / sum(shares.values())
        print(f"{name} {mode}: {function} {share:.3f}, true {true:.3f}")
        assert abs(share - true) < 0.05, (session.done, session.frames())


# ---- Frames that come and go

@pytest.mark.exact
@pytest.mark.parametrize("name,mode", FEW)
def test_no_stack_is_put_together_from_two_moments(name, mode, profile):
    session = profile(name, "hot", [1.5], "-f", 999, *MODES[mode])
    total = impossible = short = 0
    for stack in rbstacks.of_col(session):
        names = stack.names
        if names[:2] != ["<main>", "main"] or "down" not in names:
            continue
        order = [each for each in names if each[-2:] in ("_a", "_b") or each == "each" or each.startswith("block")]
        legal = (["hot_a", "mid_a", "leaf_a"], ["hot_b", "each", "block in hot_b", "mid_b", "leaf_b"])
        total += stack.count
        impossible += stack.count * (order not in [way[:len(order)] for way in legal])
        short += stack.count * (bool(order) and names.count("down") != 26)
    print(f"{name} {mode}: {impossible} impossible, {short} short of {total}; torn "
          f"{session.share('[ruby: torn]_[rb]') + session.share('[partial]_[rb]'):.4f}")
    assert total > 0.6 * session.seconds(999) * 999, session.frames()
    # Up to 3.0 Ruby points to a frame before the frame is there, so that a leaf may be the one that was in its place: by a few
    # instructions, on which the interrupts of one machine fall more often (1.1 %) than those of another (0.1 %).
    early = rubies.get(name).minor < (3, 1)
    assert impossible + short <= (0.03 if early else 0.0005) * total


@pytest.mark.exact
@pytest.mark.parametrize("name", EACH)
def test_code_that_is_freed_leaves_its_name_to_nobody(name, profile):
    """New code lies where other code was a moment ago: name, file and first line are always of the same one."""
    session = profile(name, "made", [1.2], "-f", 999)
    right = wrong = 0
    for stack in rbstacks.of_col(session):
        for frame in stack.ruby:
            made = re.fullmatch(r"made_(\d+)", frame.bare)
            right += stack.count * bool(made and (frame.file, frame.first) == (f"<{made[1]}>", int(made[1])))
            wrong += stack.count * bool(made and (frame.file, frame.first) != (f"<{made[1]}>", int(made[1])))
    print(f"{name}: {right} right, {wrong} wrong, {session.share('[code is gone]_[rb]'):.3f} gone")
    assert wrong == 0 and right > 0.2 * session.seconds(999) * 999


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("depth", [300, 4000])
def test_deep_stacks_are_whole_or_say_what_is_left_out(mode, depth, profile):
    session = profile("host", "deep", [1, depth], "-f", 499, *MODES[mode])
    stacks = [stack for stack in rbstacks.of_col(session) if stack.ruby and stack.ruby[0].name == "<main>"]
    total = sum(stack.count for stack in stacks)
    whole = [stack for stack in stacks if stack.names[-1] == "leaf"]
    assert sum(stack.count for stack in whole) > 0.4 * total, session.frames()
    for stack in whole:
        downs = sum(name in ("down", "block in down") for name in stack.names)
        assert (downs == depth + 1 + depth // 10) if depth == 300 else "[frames left out]_[rb]" in stack.frames


# ---- Threads

@pytest.mark.parametrize("name,mode", FEW)
def test_each_thread_has_its_own_stack(name, mode, profile, ruby_of):
    """Threads that take turns, one in a fiber, a ractor beside them: each function is met in its own thread. Who runs holds the lock."""
    session = profile(name, "threads", [1.2], "-f", 499, *MODES[mode])
    told = json.loads(session.done.out)
    tids = {function: Counter() for function in [*told, "of_ractor"]}
    held = seconds = 0
    for stack in rbstacks.of_pprof(session.folder):
        for function in {name.replace("block in ", "") for name in stack.names} & set(tids):
            tids[function][stack.tid] += stack.count
            held += stack.count * (stack.labels.get("gil") == "held")
            seconds += stack.count
    print(f"{name} {mode}: {tids}, gil held {held:.2f} of {seconds:.2f} s")
    for function, tid in told.items():
        assert not tid or set(tids[function]) <= {tid}, (function, told)
    assert all(tids[function] for function in ("first", "second", "in_fiber")), tids
    minor = ruby_of(name).minor
    assert minor < (3, 0) or tids["of_ractor"], tids
    assert held > 0.8 * seconds


@pytest.mark.parametrize("name", [*EACH, MUSL])
def test_forked_children_are_read_in_all_their_threads(name, profile):
    session = profile(name, "prefork", [3], "-f", 499)
    stacks = [stack for stack in rbstacks.of_pprof(session.folder) if "child_work" in stack.names]
    threads = {stack.tid: "in_thread" in stack.names for stack in stacks}
    assert sorted(threads.values()) == [False, False, True, True], threads
    assert sum(stack.count for stack in stacks) > 0.8 * session.seconds(499)


@pytest.mark.net
def test_threads_that_share_one_of_the_system_are_told_apart_by_what_runs(profile, monkeypatch):
    monkeypatch.setenv("RUBY_MN_THREADS", "1")
    session = profile("experimental", "threads", [1.5], "-f", 499)
    stacks = rbstacks.of_pprof(session.folder)
    for function in ("first", "second", "block in in_fiber", "of_ractor"):
        assert any(function in stack.names for stack in stacks), function
    assert not any({"first", "second"} <= set(stack.names) for stack in stacks)


def test_waiting_threads_say_where(profile):
    session = profile("host", "threads", [1.5], "--wall", "-f", 199)
    waits = {frame for stack in rbstacks.of_pprof(session.folder) for frame in map(str, stack.frames)
             if "sleeps" in stack.names or "waits_for_queue" in stack.names}
    assert any(frame.startswith("[waits: ") for frame in waits), waits


# ---- Native code in its place

def test_c_extensions_stand_where_they_are_called(profile, workdir, pillion, ruby_of):
    script = workdir / "json_work.rb"
    script.write_text("require 'json'\nITEMS = (1..300).map { |i| { 'name' => i.to_s, 'all' => [i] * 20 } }\n"
                      "def generate_all\n  JSON.generate(ITEMS)\nend\n"
                      "finish = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + 1\n"
                      "generate_all while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < finish\n")
    done = profiler.profile(pillion, workdir / "out", ruby_of("host").command(script), "-f", 499, "--log-format", "json",
                            "--launch", "init")
    stacks = [stack for stack in rbstacks.of_col(done) if "generate_all" in stack.names]
    total = sum(stack.count for stack in stacks)
    placed = 0
    for stack in stacks:
        above = stack.frames[stack.frames.index(stack.ruby[-1]) + 1:]
        placed += stack.count * any("generator.so" in str(frame) for frame in above)
    counts = window(done)
    print(f"{placed} of {total} in the extension; {counts}")
    assert total > 200 and placed > 0.5 * total, done.frames()
    assert int(counts["woven_exact"]) > 0.9 * int(counts["samples"]), counts


COLLECTS = """
KEPT = Array.new(200_000) { |i| i.to_s }
def cpu
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
end
def collects
  GC.start
end
def works(finish)
  i = 0
  i += 1 while i % 1000 != 0 || cpu < finish
end
finish = cpu + 0.6
while cpu < finish
  collects
  works(cpu + 0.01)
end
"""


@pytest.mark.parametrize("name,mode", FEW)
def test_the_collector_stands_on_top_of_who_started_it(name, mode, profile, pillion, workdir, ruby_of):
    script = workdir / "collects.rb"
    script.write_text(COLLECTS)
    session = profiler.profile(pillion, workdir / "out", ruby_of(name).command(script), "-f", 499, *MODES[mode])
    assert session.done.status == 0, session.done
    marked, total = Counter(), Counter()
    for stack in rbstacks.of_col(session):
        for function in {"collects", "works"} & {name.rpartition("#")[2] for name in stack.names}:
            total[function] += stack.count
            above = stack.frames[stack.frames.index(stack.ruby[-1]) + 1:]
            marked[function] += stack.count * ("[gc]_[rb]" in above)
    print(f"{name} {mode}: {dict(marked)} of {dict(total)} below the collector")
    assert total["collects"] > 30 and total["works"] > 30, session.frames()
    assert marked["collects"] > 0.9 * total["collects"], session.frames()
    assert marked["works"] < 0.02 * total["works"], session.frames()


def test_ruby_may_be_left_out(profile):
    session = profile("host", "hot", [0.5], "--no-ruby")
    stacks = rbstacks.of_col(session)
    assert sum(stack.count for stack in stacks) > 10, session.done
    assert not any(stack.ruby for stack in stacks)

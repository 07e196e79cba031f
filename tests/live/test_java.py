"""Java methods by their own names, from the registers of samples: for every JDK this machine can give (tests/lab/javas.py), with perf
events and by brief stops. No stack that the program cannot have; lines inside the method that they are said to be of.
"""
import json
import re
import time
from collections import Counter

import pytest

from lab import framestacks, javas, javastacks, process, profiler

pytestmark = pytest.mark.measures

PROGRAMS = "tests/live/programs/java"
READER = framestacks.Reader("j", "[java]")
EACH = [pytest.param(name, marks=[] if name == "host" else pytest.mark.net) for name in javas.NAMES]
SOME = [each for each in EACH if each.values[0] in ("host", "8", "25")] # where what differs between versions is told by EACH already


@pytest.fixture(scope="session")
def classes(repository, tmp_path_factory):
    return javas.compiled(repository, tmp_path_factory)


@pytest.fixture
def command(classes):
    """command(name of the JDK, class, its arguments, options of the JVM...)."""
    return lambda name, program, arguments, *options: javas.command(classes, name, program, arguments, *options)


def window(session):
    events = [json.loads(line) for line in session.done.err.splitlines() if line.startswith("{")]
    return next(event for event in reversed(events) if event["event"] == "window")


def check(session, least=0.97, least_good=100, seen_at_least=("even", "odd", "leftLeaf", "rightLeaf", "apply", "spin", "library", "compressing")):
    verdicts, wrong = javastacks.judged(session)
    counts = window(session)
    total = sum(int(value) for key, value in counts.items() if re.fullmatch("stacks_(complete|truncated|no_rule|bad_memory|guessed)", key))
    print(verdicts, counts["stacks_complete"], "of", total, "complete", wrong[:3])
    assert verdicts["wrong"] <= 1 + 0.002 * sum(verdicts.values()), wrong[:3]
    assert verdicts["good"] > 0.95 * sum(verdicts.values()) and verdicts["good"] > least_good, verdicts
    assert int(counts["stacks_complete"]) >= least * total, counts
    seen = {method for stack in session.col.stacks for _, method in javastacks.own_names(stack.frames)}
    assert seen.issuperset(seen_at_least), seen
    return verdicts


@pytest.mark.parametrize("name", EACH)
def test_stacks_are_ones_the_program_has(name, pillion, workdir, command):
    session = profiler.profile(pillion, workdir / "out", command(name, "Known", [3, 2]), "--log-format", "json", "-f", 499,
                               "--max-cpu", 100, launch="init")
    check(session)
    frames = session.frames()
    assert any("_[k]" in frame for frame in frames), "no kernel frames beside Java's"
    assert any(frame.startswith("deflate") or "libz" in frame for frame in frames), "no native frames above Java's"


@pytest.mark.parametrize("options", ["-Xint", "-XX:TieredStopAtLevel=1", "-XX:-TieredCompilation"])
def test_interpreted_and_compiled_by_either_compiler(options, pillion, workdir, command):
    session = profiler.profile(pillion, workdir / "out", command("host", "Known", [3], options), "--log-format", "json", "-f", 499,
                               "--max-cpu", 100, launch="init")
    check(session)


@pytest.mark.parametrize("name", SOME)
def test_three_methods_at_50_30_20_percent(name, pillion, workdir, command):
    session = profiler.profile(pillion, workdir / "out", command(name, "Shares", [2], *javas.EXACT), "-f", 499, "--max-cpu", 100, launch="init")
    told = dict(zip(*[iter(session.done.out.split())] * 2))
    counts = Counter()
    for stack in session.col.stacks:
        if not any("Shares.warm_" in frame for frame in stack.frames):
            counts.update({function: stack.count for function in told if f"Shares.{function}_[j]" in stack.frames})
    total = sum(counts.values())
    assert total > 100, session.done
    for function, share in told.items():
        assert abs(counts[function] / total - float(share)) < 0.02 + profiler.by_chance(float(share), total), (function, counts, told)


@pytest.mark.parametrize("options, ending", [("-Xint", "[0]"), ("-XX:TieredStopAtLevel=1", "[1]"), ("-XX:-TieredCompilation", "[j]")])
def test_names_end_in_how_methods_ran(options, ending, pillion, workdir, command):
    shares = command("host", "Shares", [1], options, "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Shares.fifty")
    session = profiler.profile(pillion, workdir / "out", shares, "-f", 499, "--max-cpu", 100, "--code-tiers", launch="init")
    counts = Counter()
    for stack in session.col.stacks:
        counts.update(dict.fromkeys(stack.frames, stack.count))
    mine = {frame: count for frame, count in counts.items() if frame.startswith("Shares.")}
    print(mine)
    inlined = any("_[i]" in frame for frame in mine) # C2 inlines what it has met often enough by then
    assert mine[f"Shares.fifty_{ending}"] > 30 and (inlined if "[1]" in ending else not inlined or ending == "[j]"), mine


def test_lines_are_of_the_method(pillion, workdir, command, repository):
    session = profiler.profile(pillion, workdir / "out", command("host", "Known", [3]), "-f", 499, "--max-cpu", 100, launch="init")
    source = (repository / PROGRAMS / "Known.java").read_text().splitlines()
    starts = {}
    for number, line in enumerate(source, 1):
        found = re.match(r"    (?:public )?static (?:synchronized )?\w+ (\w+)\(", line)
        if found:
            starts[found[1]] = number, next(at for at in range(number, len(source) + 1)
                                            if source[at - 1] == "    }" or source[at - 1].endswith("; }"))
    checked, wrong = 0, []
    for frame in [frame for stack in READER.of_pprof(session.folder) for frame in stack.own]:
        method = frame.name.rpartition(".")[2]
        if frame.name.startswith("Known.") and method in starts and frame.line:
            checked += 1
            first, last = starts[method]
            wrong += [frame] if frame.file != "Known.java" or not first <= frame.line <= last else []
    assert checked > 200 and not wrong, (checked, wrong[:5])


@pytest.mark.net
@pytest.mark.parametrize("name", ["21", "25"])
def test_virtual_threads_stand_on_those_that_carry_them(name, pillion, workdir, command):
    session = profiler.profile(pillion, workdir / "out", command(name, "Virtual", [3]), "--log-format", "json", "-f", 199, launch="init")
    own = [stack for stack in session.col.stacks if "Virtual.spin_[j]" in stack.frames]
    carried = sum(stack.count for stack in own if "jdk/internal/vm/Continuation.run_[j]" in stack.frames
                  and any("ForkJoinWorkerThread.run_" in frame for frame in stack.frames))
    total = sum(stack.count for stack in own)
    assert total > 100 and carried > 0.98 * total, (carried, total)
    for stack in own:
        at = [frame[:-len("_[j]")] for frame in stack.frames if frame.startswith("Virtual.")]
        # of one that was resumed the leaf-most frames are back: callers wait in the heap
        ways = [[f"Virtual.{method}" for method in way.split()] for way in ("work outer spin", "work outer middle inner spin")]
        assert any(at == way[-len(at):] for way in ways), stack.frames


def test_by_brief_stops_where_perf_is_forbidden(pillion, workdir, command):
    session = profiler.profile(pillion, workdir / "out", command("host", "Known", [4]), "--log-format", "json", "--perf-mode", "disabled",
                               "--brief-stops", "-f", 99, "--max-cpu", 100, launch="init")
    check(session, 0.95, 40, ("even", "odd"))


def test_without_registers_the_way_out_is_told(pillion, workdir, command):
    session = profiler.profile(pillion, workdir / "out", command("host", "Known", [2]), "--perf-mode", "disabled", "--java-mode", "walk",
                               launch="init")
    assert "java functions are read with perf events, or with --brief-stops" in session.done.err, session.done


def test_attached_to_a_server_that_has_long_run(pillion, workdir, command):
    target = process.start(command("host", "Known", [60, 2]))
    process.until(lambda: process.stat(target.pid) and int(process.stat(target.pid)[11]) > 200, 30, "it has worked")
    done = process.run([pillion, "-p", target.pid, "-d", "2", "--log-format", "json", "-f", 499, "--max-cpu", 100, "-o", workdir / "out"], timeout=30)
    target.end()
    # by then all of it is compiled, much of it inlined without a place that leads to it; the first stacks are cut, until their copies
    # are as large as they have to be
    check(profiler.Session(done, workdir / "out"), seen_at_least=("even", "library", "compressing"))


def test_nobody_is_woken_for_each_sample(pillion, workdir, command):
    """Where a runtime is walked a thread on each CPU is; the JVM is asked about addresses when samples are taken from the rings."""
    target = process.start(command("host", "Shares", [60]))
    process.until(lambda: process.stat(target.pid) and int(process.stat(target.pid)[11]) > 200, 30, "its start, with deep stacks, is over")
    running = process.start([pillion, "-p", target.pid, "-d", "3", "-o", workdir / "out"])
    names = set()
    while running.poll() is None:
        names |= set(process.threads_of(running.pid))
        time.sleep(.05)
    done = running.finish(30)
    target.end()
    assert "Shares.main_[j]" in profiler.Session(done, workdir / "out").frames()
    assert len(names) <= 3, names # the sampler, who makes files, and who speaks with runtimes


def test_what_is_not_wanted_is_not_read(pillion, workdir, command):
    session = profiler.profile(pillion, workdir / "out", command("host", "Known", [2]), "--no-java", launch="init")
    assert not any(frame.endswith("_[j]") for frame in session.frames())


def test_the_doctor_tells_the_version(run, pillion, command):
    target = process.start(command("host", "Known", [60]))
    found = re.compile(rf"^  {target.pid} .*HotSpot \d+\.\d+.* perf \+ java reader", re.MULTILINE)
    process.until(lambda: found.search(run([pillion, "doctor", "-p", target.pid]).out), 20, "it is known", .3)
    target.end()

"""JavaScript on V8 by its own names, from the registers of samples: for every Node.js this machine can give (tests/lab/nodes.py), with perf
events and by brief stops, without an option of node's. No stack that the program cannot have.
"""
import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from lab import framestacks, nodes, nodestacks, process, profiler, versions

pytestmark = pytest.mark.measures

READER = framestacks.Reader("js", "[javascript]")
EACH = [pytest.param(name, marks=[] if name == "host" else pytest.mark.net) for name in nodes.NAMES]
SOME = [each for each in EACH if each.values[0] in ("host", "12", "14", "26")] # where what differs between versions is told by EACH already
# Before 24.20 its middle compiler tells no positions: what is inlined there is told as what it is inlined into.
INLINED_AWAY = {"24"}


@pytest.fixture
def command():
    return nodes.command


@pytest.fixture
def profile(pillion, workdir):
    def run(command, *options, **more):
        return profiler.profile(pillion, workdir / "out", command, "--log-format", "json", "--max-cpu", 100, *options, launch="init", **more)
    return run


def window(session):
    events = [json.loads(line) for line in session.done.err.splitlines() if line.startswith("{")]
    return next(event for event in reversed(events) if event["event"] == "window")


def check(session, name="host", complete=0.95):
    """On a busy machine code that is thrown away at a program's start, and what the collector moves then, is read too late: 1 to 3 % have no name
    on a quiet one."""
    verdicts, wrong = nodestacks.judged(session)
    counts = window(session)
    total = sum(int(value) for key, value in counts.items() if re.fullmatch("stacks_(complete|truncated|no_rule|bad_memory|guessed)", key))
    print(name, verdicts, counts["stacks_complete"], "of", total, "complete", wrong[:3])
    few = 0.35 if name in INLINED_AWAY else 0.003
    assert verdicts["wrong"] <= few * sum(verdicts.values()), wrong[:3]
    assert verdicts["good"] + verdicts["wrong"] > 0.8 * sum(verdicts.values()) and verdicts["good"] > 50, verdicts
    assert int(counts["stacks_complete"]) >= complete * total, counts
    seen = {function for stack in session.col.stacks for _, function in nodestacks.own_names(stack.frames)}
    rare = {"even", "odd"} if verdicts["good"] > 700 else set() # 2 % of its time: a few hundred samples may have none
    assert seen.issuperset({"round", "main", "spin"} | (set() if name in INLINED_AWAY else {"apply"} | rare)), seen


@pytest.mark.parametrize("name", EACH)
def test_stacks_are_ones_the_program_has(name, profile, command):
    session = profile(command(name, "known.js", [2]), "-f", 499)
    check(session, name)
    frames = session.frames()
    assert any("_[k]" in frame for frame in frames), "no kernel frames beside JavaScript's"


@pytest.mark.parametrize("options", [["--no-opt"], ["--no-opt", "--no-sparkplug"], ["--always-sparkplug"], ["--interpreted-frames-native-stack"]],
                         ids=["not optimised", "interpreted", "baseline", "copies of the interpreter"])
def test_interpreted_and_by_either_compiler(options, profile, command):
    check(profile(command("host", "known.js", [2], *options), "-f", 499))


@pytest.mark.parametrize("name", [each for each in EACH if each in SOME or each.values[0] in INLINED_AWAY])
def test_six_functions_have_the_shares_they_have(name, profile, command):
    """An optimised loop, a place that meets twelve classes, a generator, JSON, a regular expression, OpenSSL."""
    session = profile(command(name, "shares.js", [2.5, 0.3]), "-f", 463)
    told = dict(zip(*[iter(session.done.out.split())] * 2))
    counts = Counter()
    for stack in session.col.stacks:
        counts.update({function: stack.count for function in told if any(frame.startswith(f"{function} ") for frame in stack.frames)})
    total = sum(counts.values())
    print({function: (share, round(counts[function] / total, 4)) for function, share in told.items()})
    assert total > 150, session.done
    for function, share in told.items():
        assert abs(counts[function] / total - float(share)) < profiler.by_chance(float(share), total), (function, counts, told)


@pytest.mark.parametrize("options", [["--no-opt", "--no-sparkplug"], ["--no-opt", "--always-sparkplug"], []],
                         ids=["interpreted", "baseline", "optimised"])
def test_lines_are_the_ones_that_ran(options, pillion, workdir, command):
    """Of a module and of a worker, whose files are URLs."""
    session = profiler.profile(pillion, workdir / "out", command("host", "lines.mjs", [2], *options), "-f", 499, "--max-cpu", 100, launch="init")
    lines, threads = Counter(), set()
    for stack in READER.of_pprof(session.folder):
        leaf = stack.own[-1] if stack.own else None # on top of an interpreted one is V8's handler of an instruction
        found = leaf and re.fullmatch(r"on(\d+) /\S*/lines\.mjs:\d+", leaf.name)
        if found:
            lines[int(found[1]), leaf.line] += stack.count
            threads.add(stack.tid)
    right = sum(count for (wanted, line), count in lines.items() if wanted == line)
    print(lines, threads)
    assert {wanted for wanted, _ in lines} == {6, 9, 13} and right > 0.97 * sum(lines.values()), lines
    assert len(threads) == 2, threads


@pytest.mark.parametrize("name", SOME)
def test_code_of_web_assembly_has_its_callers(name, profile, command):
    session = profile(command(name, "wasm.js", [1]), "-f", 499)
    stacks = [stack for stack in session.col.stacks if any(frame.startswith("calling ") for frame in stack.frames)]
    total, turning = sum(stack.count for stack in stacks), sum(stack.count for stack in stacks if stack.frames[-1] == "(WebAssembly)_[js]")
    assert total > 50 and turning > 0.9 * total, session.frames()


def test_a_stripped_program(pillion, workdir, command, profile):
    """As distributions have it: where V8's own functions begin is not known."""
    node = workdir / "node"
    subprocess.run(["strip", "-o", node, command("host", "known.js", [2])[0]], check=True)
    check(profile([node, *command("host", "known.js", [2])[1:]], "-f", 499))


def test_by_brief_stops_where_perf_is_forbidden(profile, command):
    check(profile(command("host", "known.js", [4]), "--perf-mode", "disabled", "--brief-stops", "-f", 99))


def test_attached_to_a_server_that_has_long_run(pillion, workdir, command):
    target = process.start(command("host", "known.js", [60]))
    process.until(lambda: process.stat(target.pid) and int(process.stat(target.pid)[11]) > 200, 30, "it has worked")
    done = process.run([pillion, "-p", target.pid, "-d", "2", "--log-format", "json", "-f", 499, "--max-cpu", 100, "-o", workdir / "out"], timeout=30)
    target.end()
    session = profiler.Session(done, workdir / "out")
    check(session)
    script = nodes.command("host", "known.js", [60])[-2]
    assert {stack.appid for stack in session.col.stacks} == {f"appid: nodejs: {script} ({script})"}


def test_what_is_not_wanted_is_not_read(profile, command):
    session = profile(command("host", "known.js", [1]), "--no-nodejs")
    assert not any(frame.endswith("_[js]") for frame in session.frames())


def test_without_registers_the_way_out_is_told(pillion, workdir, command):
    session = profiler.profile(pillion, workdir / "out", command("host", "known.js", [1]), "--perf-mode", "disabled", launch="init")
    empty = re.search(r"EMPTY: .*", session.done.err)
    assert empty and "javascript functions are read with perf events, with --brief-stops, or by --nodejs-mode inspector" in session.done.err, session.done


def test_the_doctor_tells_the_version(run, pillion, command):
    target = process.start(command("host", "known.js", [60]))
    found = re.compile(rf"^  {target.pid} .*V8 \d+\.\d+.* perf \+ javascript reader", re.MULTILINE)
    process.until(lambda: found.search(run([pillion, "doctor", "-p", target.pid]).out), 20, "it is known", .3)
    target.end()


def test_compressed_pointers_are_refused(pillion, workdir, command):
    """A build of node's that is not among the usual ones: here the usual one says that it is."""
    plain = command("host", "known.js", [2])
    library = subprocess.run(["nm", "-D", plain[0]], capture_output=True, text=True, check=True).stdout
    address = int(re.search(r"^(\w+) . v8dbg_TaggedSize$", library, re.MULTILINE)[1], 16)
    loads = re.findall(r"^  LOAD +(\S+) (\S+) \S+ (\S+) ", subprocess.run(["readelf", "-lW", plain[0]], capture_output=True, text=True,
                                                                       check=True).stdout, re.MULTILINE)
    offset = next(int(at, 16) + address - int(start, 16) for at, start, size in loads
                  if 0 <= address - int(start, 16) < int(size, 16))
    node = workdir / "node"
    shutil.copy(plain[0], node)
    with open(node, "r+b") as file:
        file.seek(offset)
        assert file.read(4) == b"\x08\0\0\0"
        file.seek(offset)
        file.write(b"\x04\0\0\0")
    session = profiler.profile(pillion, workdir / "out", [node, *plain[1:]], launch="init")
    assert "this V8 compresses its pointers" in session.done.err and not any("_[js]" in frame for frame in session.frames()), session.done


@pytest.mark.net
def test_deno_is_told_how_to_have_names(pillion, workdir):
    """Its binary exports nothing of V8; the map that V8 writes names its functions, in the form of a later V8."""
    try:
        deno = nodes.of_package("deno")
    except versions.Missing as reason:
        pytest.skip(f"Deno: {reason}")
    program = workdir / "spin.js"
    program.write_text("function spin(n) { let x = 0; for (let i = 0; i < n; i++) { x += Math.sqrt(i); } return x; }\n"
                       "const end = Date.now() + 2000; while (Date.now() < end) { spin(1e5); }\n")
    for flags, named in ((), False), (["--v8-flags=--perf-basic-prof"], True):
        session = profiler.profile(pillion, workdir / f"out{named}", [*deno.argv, "run", *flags, program], launch="init", cwd=workdir)
        assert session.done.err.count("deno --v8-flags=--perf-basic-prof names its functions") == 1, session.done
        leaf = sum(stack.count for stack in session.col.stacks if any(f" {program}:1" in frame for frame in stack.frames)) # or what it is inlined into
        assert (leaf > .8 * session.col.total) == named, session.frames()


def test_a_program_that_hides_its_constants_is_told_once(pillion, workdir, command, profile):
    """What node writes on request (a perf map) names its functions then."""
    node = workdir / "node"
    plain = command("host", "known.js", [2.5])
    shutil.copy(plain[0], node)
    text = node.read_bytes()
    node.write_bytes(text.replace(b"v8dbg_class_Map__instance_type__uint16_t\0", b"v8dbg_class_Map__instance_type__uint16_x\0"))
    session = profiler.profile(pillion, workdir / "out", [node, *plain[1:]], "-d", "1", launch="init")
    hint = re.findall(r"^pillion: warning: (V8 .*--perf-basic-prof names them)$", session.done.err, re.MULTILINE)
    assert len(hint) == 1, session.done
    page = (workdir / "out" / "run_flamegraph.html").read_text()
    assert hint[0] in re.search(r'<p id="unseen".*?</p>', page, re.DOTALL)[0]
    session = profiler.profile(pillion, workdir / "mapped", [node, "--perf-basic-prof", *plain[1:]], "-d", "2", launch="init", cwd=workdir)
    assert any(frame.startswith("spin ") for frame in session.frames()), session.frames()


@pytest.mark.skipif(not shutil.which("esbuild"), reason="there is no esbuild, which makes one file with a source map of two")
@pytest.mark.parametrize("wanted", [True, False], ids=["with --source-maps", "without"])
def test_what_a_bundler_made_is_told_by_its_source_map(wanted, pillion, workdir, command):
    """Names, files and lines are those of the TypeScript that it was made of, though it is all on one line with names of one letter."""
    node, program = command("host", "mapped", [2])[0], workdir / "app.js"
    subprocess.run(["esbuild", "--bundle", "--minify", "--sourcemap", "--platform=node", "--log-level=error", f"--outfile={program}",
                    nodes.PROGRAMS / "mapped" / "main.ts"], check=True)
    session = profiler.profile(pillion, workdir / "out", [node, program, 2], "-f", 499, *(["--source-maps"] if wanted else []), launch="init")
    places = Counter()
    for stack in READER.of_pprof(session.folder):
        for frame in stack.own[-1:]:
            function, _, place = frame.name.partition(" ")
            places[function, Path(place).name, frame.line] += stack.count
    print(places)
    if wanted:
        right = {("spinning", "spin.ts:4"): {6, 7}, ("summing", "main.ts:5"): {7, 8}}
        found = [sum(count for (*of, line), count in places.items() if tuple(of) == key and line in ran) for key, ran in right.items()]
        total = sum(places.values())
        assert min(found) > .2 * total and sum(found) > .9 * total, places
    else:
        assert not any(".ts" in place for _, place, _ in places), places

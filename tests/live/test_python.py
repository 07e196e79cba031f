"""Python code by its own names: what the interpreter itself says of its stacks is what the profile shows, for every
CPython this machine can give (tests/lab/pythons.py), with perf events and without.
"""
import json
import re
import shutil
import subprocess
from collections import Counter

import pytest

from lab import process, profiler, pystacks, pythons

pytestmark = pytest.mark.measures

PROGRAMS = "tests/live/programs/python"
MODES = {"perf": [], "perf-less": ["--perf-mode", "disabled"]}
EACH = list(pythons.rows())
# One of each way to keep frames: a list of objects, the data stack, with shims in it, with tags, without a GIL.
FEW = ["bullseye-python2.7", "bullseye-python3.9", "host", "trixie-python3.13", "sid-python3.15", "free-threaded"]
TICK = 1 / 100
# A process that ended is counted from /proc without perf events: user and system time in whole ticks, as last read.
# Without perf what a process used since it was asked last, a tenth of a second ago, ends with it.
TICKS = {"perf": 3 * TICK, "perf-less": 15 * TICK}


def those(names, *mode):
    return [pytest.param(name, *mode, marks=[] if pythons.is_here(name) else pytest.mark.net) for name in names if name in EACH]


def in_modes(perf, perf_less):
    """These Pythons with perf events, and these without: what differs between versions is the same in both modes."""
    return pytest.mark.parametrize("name, mode", those(perf, "perf") + those(perf_less, "perf-less"))


@pytest.fixture
def python_of():
    def get(name):
        try:
            return pythons.get(name)
        except pythons.Missing as reason:
            pytest.skip(f"{name}: {reason}")
    return get


@pytest.fixture
def script(repository):
    return lambda name: repository / PROGRAMS / f"{name}.py"


@pytest.fixture
def profile(pillion, workdir):
    """profile(command, options...) -> session, with everything it took and left in order."""
    def run(command, *options, **more):
        session = profiler.profile(pillion, workdir / "out", command, *options, **more)
        assert session.done.status == 0, session.done
        return session
    return run


def python_share(session, name):
    """The share of samples with a Python function of that name on the stack."""
    stacks = pystacks.of_col(session)
    return sum(s.count for s in stacks if name in [f.name for f in s.python]) / max(sum(s.count for s in stacks), 1)


# ---- Names, files and lines; shares

def judged(known, stacks):
    """Samples by verdict; what is wrong as text."""
    verdicts, wrong = Counter(), []
    for stack in stacks:
        # of code that was freed before its name was read: a busy machine is late now and then
        verdict = "gone" if any("[code is gone]" in str(frame) for frame in stack.frames) else known.judge(stack.python)
        verdicts[verdict] += stack.count
        if verdict == "wrong":
            wrong.append(repr(stack))
    assert verdicts["gone"] <= 0.05 * sum(verdicts.values()), verdicts
    return verdicts, wrong


@in_modes(EACH, FEW)
def test_stacks_are_those_the_interpreter_tells(name, mode, profile, script, python_of):
    """Recursion, generators, callbacks from C, methods, calls over several lines, names of every width: no stack that
    the program cannot have, names and files in the .col, lines too in the pprof."""
    python = python_of(name)
    session = profile(python.command(script("known_stacks"), 1), "-f", 999, *MODES[mode])
    known = pystacks.Known(session.done.out)
    for form, stacks in (("col", pystacks.of_col(session)), ("pprof", pystacks.of_pprof(session.folder))):
        known.seen.clear()
        verdicts, wrong = judged(known, stacks)
        total = sum(verdicts.values())
        shares = {verdict: f"{100 * count / total:.1f} %" for verdict, count in verdicts.items()}
        print(f"{python!r} {mode} {form}: {shares}, {len(known.seen)} of {len(known.stacks)} stacks seen")
        assert not wrong, wrong[:3]
        assert verdicts["whole"] > 0.75 * total, session.done
        assert verdicts["part"] < 0.05 * total
        assert len(known.seen) == len(known.stacks), [known.stacks[i] for i in {*range(len(known.stacks))} - known.seen]
    assert profiler.within(session.seconds(999), session.done.cpu_seconds, 0.03, TICKS[mode])


@pytest.mark.parametrize("name", those(name for name in EACH if re.match(r"pyenv-(2\.7|3\.(8|12|13)\.)", name)))
def test_lines_being_executed_are_in_the_col_on_demand(name, profile, script, python_of):
    session = profile(python_of(name).command(script("known_stacks"), 1), "-f", 999, "--col-lines")
    known, stacks = pystacks.Known(session.done.out), pystacks.of_col(session)
    verdicts, wrong = judged(known, stacks)
    assert not wrong, wrong[:3]
    assert verdicts["whole"] > 0.75 * sum(verdicts.values()), session.done
    assert all(frame.line for stack in stacks for frame in stack.python if frame.name in ("main", "deeds"))


@pytest.mark.parametrize("name", those(name for name in EACH if re.match(r"pyenv-3\.12|trixie-|sid-", name)))
def test_functions_with_code_of_their_own_for_perf_stand_in_the_stack_once(name, profile, script, python_of):
    """-X perf: each function is called through a piece of generated code that bears its name in a perf map."""
    python = python_of(name)
    command = [*python.argv, "-X", "perf", python.where(script("known_stacks")), 1]
    session = profile(command, "-f", 999, "--log-format", "json", "--launch", "init")
    stacks = pystacks.of_col(session)
    verdicts, wrong = judged(pystacks.Known(session.done.out), stacks)
    total = sum(verdicts.values())
    named = re.compile(r"known_stacks\.py\)_\[p\]$")  # by the perf map; where Python's own stack is read, too
    twice = sum(s.count for s in stacks if s.python and any(named.search(str(frame)) for frame in s.frames[:-1]))
    ends = {key: int(count) for key, count in window(session).items() if key.startswith("stacks_")}
    print(f"{python!r}: {dict(verdicts)}, {twice} twice, {ends}")
    assert not wrong, wrong[:3]
    assert verdicts["whole"] > 0.75 * total, session.done
    assert twice < 0.01 * total
    # The first stacks, of imports, are deeper than the copies that are taken until their depth is known.
    assert ends["stacks_complete"] > 0.94 * sum(ends.values()), ends


def window(session):
    """The counts of the last window's line."""
    events = [json.loads(line) for line in session.done.err.splitlines() if line.startswith("{")]
    return next(event for event in reversed(events) if event["event"] == "window")


@in_modes(FEW, EACH)
def test_three_functions_at_50_30_20_percent(name, mode, profile, script, python_of):
    session = profile(python_of(name).command(script("shares"), 1, 0.2), "-f", 499, *MODES[mode])
    told = {function: float(share) for function, share in zip(*[iter(session.done.out.split())] * 2)}
    told.pop("seconds")
    shares = {function: python_share(session, function) for function in told}
    # The interpreter's start and warm() are in the profile too.
    assert sum(shares.values()) > 0.7, (session.done, session.frames())
    for function, true in told.items():
        share = shares[function] / sum(shares.values())
        print(f"{name} {mode}: {function} {share:.3f}, true {true:.3f}")
        assert abs(share - true) < (0.03 if mode == "perf" else 0.05), (session.done, session.frames())


# ---- Frames that come and go

@pytest.mark.exact
@in_modes(FEW, FEW)
def test_no_stack_is_put_together_from_two_moments(name, mode, profile, script, python_of):
    session = profile(python_of(name).command(script("hot"), 2), "-f", 999, *MODES[mode])
    total = impossible = short = 0
    for stack in pystacks.of_col(session):
        names = [frame.name for frame in stack.python]
        if names[:2] != ["<module>", "main"]:
            continue
        letters = {each[-1] for each in names if each[-2:] in ("_a", "_b")}
        order = [each[:-2] for each in names if each[-2:] in ("_a", "_b")]
        total += stack.count
        impossible += stack.count * (len(letters) > 1 or order != ["hot", "mid", "leaf"][:len(order)])
        short += stack.count * (bool(order) and names.count("down") != 26)
    print(f"{name} {mode}: {impossible} impossible, {short} short of {total}; torn {session.share('[python: torn]') + session.share('[partial]'):.4f}")
    assert total > 0.7 * session.seconds(999) * 999, session.frames()
    assert impossible + short <= 0.001 * total


@pytest.mark.exact
@in_modes(FEW, ["host", "sid-python3.15"])
def test_code_that_is_freed_leaves_its_name_to_nobody(name, mode, profile, script, python_of):
    """New code lies where other code was a moment ago: name, file and first line are always of the same one."""
    session = profile(python_of(name).command(script("made"), 1.5), "-f", 999, *MODES[mode])
    right = wrong = 0
    for stack in pystacks.of_col(session):
        for frame in stack.python:
            number = frame.name[5:] if frame.name.startswith("made_") else None
            right += stack.count * ((number, frame.file, frame.first) == (number, f"<{number}>", int(number or -1)))
            wrong += stack.count * (number is not None and (frame.file, frame.first) != (f"<{number}>", int(number)))
    gone = sum(s.count for s in pystacks.of_col(session) if "[code is gone]_[p]" in s.frames)
    print(f"{name} {mode}: {right} right, {wrong} wrong, {gone} gone")
    assert wrong == 0 and right + gone > 0.2 * session.seconds(999) * 999


@pytest.mark.parametrize("mode", MODES)
def test_modules_that_are_imported_have_their_names(mode, profile, workdir):
    """A module's code is freed as soon as it has run, so it is named while it runs. (No two alike: what lies where another
    lay and looks the same is not noticed at once.)"""
    for number in range(40):
        names = "".join(f"name_{number}_{i} = {i}\n" for i in range(number * 5))
        (workdir / f"part_{number}.py").write_text(f"{names}for i in range(1000000):\n    pass\n")
    (workdir / "whole.py").write_text("for number in range(40):\n    __import__('part_%d' % number)\n")
    session = profile(["/usr/bin/python3", "-B", workdir / "whole.py"], "-f", 499, *MODES[mode])
    stacks = [stack for stack in pystacks.of_col(session) if stack.python and stack.python[0].file.endswith("whole.py")]
    total = sum(stack.count for stack in stacks)
    named = sum(s.count for s in stacks if s.python[-1].name == "<module>" and "/part_" in s.python[-1].file)
    gone = sum(s.count for s in stacks if "[code is gone]_[p]" in s.frames)
    print(f"{mode}: {named} named, {gone} gone of {total}")
    assert total > 100 and named > 2 * gone


@in_modes(FEW, ["host", "bullseye-python3.9"])
def test_three_thousand_frames_keep_both_ends(name, mode, profile, script, python_of):
    """Up to 3.10 a frame is an object of its own, and its root is too far away to be read at once: that is said."""
    python = python_of(name)
    one_by_one = python.number < (3, 11)
    session = profile(python.command(script("deep"), 3000, 1), *MODES[mode])
    stacks = [stack for stack in pystacks.of_col(session) if "bottom" in [frame.name for frame in stack.python]]
    assert sum(stack.count for stack in stacks) > 0.8 * session.seconds() * 99, session.frames()
    for stack in stacks:
        names = [frame.name for frame in stack.python]
        is_root = names[0].rsplit(".", 1)[-1] in ("__bootstrap", "_bootstrap")
        assert is_root or (one_by_one and any("[frames left out]" in str(frame) for frame in stack.frames)), stack.python[:5]
        assert 1000 < len(names) < 3100 and names.count("down") > 990
    print(name, mode, len(stacks[0].python), [str(f) for f in stacks[0].frames if not isinstance(f, pystacks.Frame)])


@pytest.mark.parametrize("mode", MODES)
def test_greenlets_have_short_stacks_that_are_whole(mode, profile, script):
    if subprocess.run(["/usr/bin/python3", "-c", "import greenlet"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("not installed: python3-greenlet")
    session = profile(["/usr/bin/python3", script("greens"), 1], "-f", 499, *MODES[mode])
    paths = Counter()
    for stack in pystacks.of_col(session):
        names = [frame.name for frame in stack.python]
        if "work" in names:
            paths[tuple(names)] += stack.count
    print(paths)
    assert {("main.<locals>.until", "work"), ("green", "work")} <= {path[-2:] for path in paths}, paths
    assert sum(paths.values()) > 0.8 * session.seconds(499) * 499


# ---- Native frames in their place

def last_python(stacks, name):
    return [stack for stack in stacks if stack.python and stack.python[-1].name == name]


def native(stack):
    return [frame for frame in stack.above if not frame.endswith("_[k]")]


LIBRARIES = {
    "digest": r"sha256|SHA256|libcrypto", "squeeze": r"deflate|compress|adler|libz\.", "search": r"sre|_sre|python3",
    "in_order": r"sort|str|python3", "dump": r"json",
}


def test_what_c_does_stands_on_its_python_caller(profile, script):
    """hashlib, zlib, re, json, sorted: the library above the Python function, the interpreter's loop nowhere."""
    session = profile(["/usr/bin/python3", script("woven"), 2], "-f", 499)
    stacks = pystacks.of_col(session)
    for name, library in LIBRARIES.items():
        mine = [stack for stack in stacks if name in [frame.name for frame in stack.python]]
        within = sum(s.count for s in mine if re.search(library, " ".join(map(str, s.frames[s.frames.index(s.python[0]):]))))
        paths = {tuple(f.name for f in s.python[:3]) for s in mine}
        print(name, sum(s.count for s in mine), within, paths)
        assert paths == {("<module>", "main", name)}
        assert within > 0.85 * sum(s.count for s in mine), mine[:5]
    loops = sum(s.count for s in stacks if s.python and re.search("_PyEval_EvalFrame", " ".join(map(str, s.frames))))
    assert loops < 0.01 * sum(s.count for s in stacks)


def test_python_called_by_c_called_by_python_is_in_the_order_of_calls(profile, script):
    session = profile(["/usr/bin/python3", script("woven"), 1.5], "-f", 499)
    called = last_python(pystacks.of_col(session), "compare")
    assert sum(stack.count for stack in called) > 20
    # those of another moment are not woven, and have nothing between the two
    good = woven = 0
    for stack in called:
        between = stack.frames[stack.frames.index(stack.python[-2]) + 1:stack.frames.index(stack.python[-1])]
        woven += stack.count * bool(between)
        good += stack.count * (stack.python[-2].name == "from_c" and any("qsort" in frame for frame in between))
    assert good > 0.9 * woven > 0.4 * sum(stack.count for stack in called), called[:3]


def test_a_numpy_job_has_numpys_code_on_its_functions(profile, script):
    if subprocess.run(["/usr/bin/python3", "-c", "import numpy"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("not installed: python3-numpy")
    session = profile(["/usr/bin/env", "OPENBLAS_NUM_THREADS=1", "/usr/bin/python3", script("numbers_job"), 2], "-f", 999)
    stacks = pystacks.of_col(session)
    for name in ("multiply", "order", "transform"):
        mine = [stack for stack in stacks if name in [frame.name for frame in stack.python]]
        within = sum(stack.count for stack in mine if native(stack))
        print(name, sum(s.count for s in mine), within, Counter(native(s)[-1] for s in mine if native(s)).most_common(3))
        assert within > 0.8 * sum(stack.count for stack in mine) > 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("option", [["--no-python"], ["--python-mode", "disabled"]])
def test_python_can_be_left_out(option, mode, profile, script):
    session = profile(["/usr/bin/python3", script("shares"), 0.5], *MODES[mode], *option)
    assert not [frame for frame in session.frames() if frame.endswith("_[p]")]
    assert profiler.within(session.seconds(), session.done.cpu_seconds, 0.03, TICKS[mode])


def test_native_frames_can_be_left_out(profile, script):
    session = profile(["/usr/bin/python3", script("woven"), 1], "--python-native", "off")
    stacks = [stack for stack in pystacks.of_col(session) if stack.python]
    assert sum(stack.count for stack in stacks) > 0.8 * sum(s.count for w in session.windows for s in w.stacks)
    others = {frame for stack in stacks for frame in stack.frames if isinstance(frame, str)}
    assert not [frame for frame in others if not re.search(r"_\[[pk]\]$", frame)], others


# ---- Servers

@pytest.mark.parametrize("mode", MODES)
def test_forked_workers_are_seen_each_with_its_time(mode, profile, script):
    session = profile(["/usr/bin/python3", script("prefork"), 4, 0.5], *MODES[mode])
    workers = set(map(int, session.done.out.split()))
    by_pid = Counter()
    for stack in pystacks.of_pprof(session.folder):
        if [frame.name for frame in stack.python[:3]] == ["<module>", "main", "work"]:
            by_pid[stack.pid] += stack.count
    assert set(by_pid) == workers
    assert all(0.25 < seconds < 0.65 for seconds in by_pid.values()), by_pid


@in_modes(FEW, ["host", "bullseye-python2.7"])
def test_a_worker_that_c_forked_is_seen(name, mode, profile, script, python_of):
    """Its interpreter goes on knowing the parent's thread by number."""
    python = python_of(name)
    if subprocess.run([*python.argv, "-c", "import ctypes"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip(f"{python} has no ctypes")
    session = profile(python.command(script("rawfork"), 1.5), *MODES[mode])
    mine = [stack for stack in pystacks.of_pprof(session.folder)
            if [frame.name for frame in stack.python[:2]] == ["<module>", "work"]]
    assert {stack.pid for stack in mine} == {int(session.done.out)}, (session.done, session.frames())
    assert sum(stack.count for stack in mine) > 0.75 * 1.5


@pytest.mark.parametrize("mode", MODES)
def test_an_asyncio_server_has_its_coroutines_below_each_other(mode, profile, script):
    session = profile(["/usr/bin/python3", script("server"), 2], "-f", 499, *MODES[mode])
    stacks = pystacks.of_col(session)
    parsing = last_python(stacks, "parse") + last_python(stacks, "parse.<locals>.<genexpr>")
    assert sum(stack.count for stack in parsing) > 100
    for stack in parsing:
        names = [frame.name for frame in stack.python]
        assert names[0] == "<module>" and "BaseEventLoop.run_forever" in names, stack
        assert names[names.index("parse") - 2:names.index("parse") + 1] == ["serve", "answer", "parse"], stack
    if mode == "perf":  # how the interpreter resumes a coroutine is not shown, named or not
        between = Counter()
        for stack in parsing:
            at = [getattr(frame, "name", frame) for frame in stack.frames]
            between[tuple(at[at.index("serve") + 1:at.index("parse")])] += stack.count
        assert between[("answer",)] > 0.95 * sum(between.values()), between
    pool = [stack for stack in stacks if "blocking" in [frame.name for frame in stack.python]]
    assert pool and all(stack.python[0].name == "Thread._bootstrap" for stack in pool), pool[:3]


# ---- Interpreters that are not where one looks for them

def spins(session):
    return python_share(session, "fifty")


@pytest.mark.parametrize("mode", MODES)
def test_an_interpreter_whose_file_is_gone(mode, profile, script, workdir):
    python = workdir / "interpreter"
    shutil.copy2("/usr/bin/python3", python)
    command = ["sh", "-c", '"$0" "$1" 1 & sleep 0.2; rm "$0"; wait', python, script("shares")]
    session = profile(["/usr/bin/env", "PYTHONHOME=/usr", *command], *MODES[mode])
    assert not python.exists()
    assert spins(session) > 0.3, session.frames()


@pytest.mark.parametrize("mode", MODES)
def test_attaching_to_an_interpreter_whose_file_is_gone(mode, pillion, script, workdir):
    python = workdir / "interpreter"
    shutil.copy2("/usr/bin/python3", python)
    started = process.start([python, script("shares"), 60], env={"PYTHONHOME": "/usr"})
    process.until(lambda: process.cpu_seconds(started.pid) > 0.3, 10)
    python.unlink()
    session = attach(pillion, workdir, started, *MODES[mode])
    assert spins(session) > 0.3, (session.done, session.frames())


def attach(pillion, workdir, started, *options, prefix=()):
    try:
        (workdir / "out").mkdir(exist_ok=True)
        (workdir / "out").chmod(0o777)
        done = process.run([*prefix, pillion, "-p", started.pid, "-d", "1.5", "-o", workdir / "out", *options])
    finally:
        started.end()
    return profiler.Session(done, workdir / "out")


@in_modes([name for name in EACH if re.match(r"host|pyenv-(2\.7|3\.(6|9|13)\.)", name)], ["host"])
def test_an_interpreter_without_symbols_and_sections(name, mode, pillion, script, workdir, python_of):
    """Its file, or its libpython, stripped and without section headers; Python 2.7 to 3.6 have no exported start then."""
    python = python_of(name)
    copy = workdir / "bare"
    library = libpython(python.executable)
    made = bare(library or python.executable, workdir / (library.name if library else "bare"))
    environment = {"PYTHONHOME": prefix_of(python), "LD_LIBRARY_PATH": str(workdir), "LC_ALL": "C.UTF-8"}
    if library:
        shutil.copy2(python.executable, copy)
    assert made.exists()
    session = profiler.profile(pillion, workdir / "out", [copy, script("shares"), 1], *MODES[mode], env=environment)
    assert session.done.status == 0, session.done
    assert spins(session) > 0.3, (session.done, session.frames())


def prefix_of(python):
    return subprocess.run([*python.argv, "-c", "import sys; print(sys.prefix)"], stdout=subprocess.PIPE, text=True).stdout.strip()


def libpython(executable):
    told = subprocess.run(["ldd", executable], stdout=subprocess.PIPE, text=True).stdout
    found = re.search(r"libpython\S+ => (\S+)", told)
    return pythons.Path(found[1]) if found else None


def bare(file, target):
    subprocess.run(["strip", "-s", "-o", target, file], check=True)
    image = bytearray(target.read_bytes())
    image[0x28:0x30] = bytes(8)  # e_shoff
    image[0x3c:0x40] = bytes(4)  # e_shnum, e_shstrndx
    target.write_bytes(image)
    target.chmod(0o755)
    return target


@pytest.mark.parametrize("mode", MODES)
def test_python_that_comes_into_a_c_program_after_its_start(mode, profile, program, script):
    """dlopen of libpython, as uwsgi and frozen programs do: C first, then Python on top of C."""
    try:
        library = next(pythons.Path("/usr/lib").glob("*/libpython3.*.so.1.0"))
    except StopIteration:
        pytest.skip("not installed: libpython3")
    session = profile([program("embeds", "-ldl"), library, script("shares"), 1], "-f", 499, *MODES[mode])
    assert python_share(session, "fifty") > 0.3, session.frames()
    if mode == "perf":
        stack = max((s for s in pystacks.of_col(session) if s.python), key=lambda s: s.count)
        assert "run_python" in stack.frames[:stack.frames.index(stack.python[0])], stack


@pytest.mark.parametrize("mode", MODES)
def test_two_interpreters_of_one_process_are_in_the_order_of_calls(mode, profile, program, workdir):
    """A server with two plugins: each has its own libpython, and one calls the other through C."""
    try:
        library = next(pythons.Path("/usr/lib").glob("*/libpython3.*.so.1.0"))
    except StopIteration:
        pytest.skip("not installed: libpython3")
    copies = [workdir / name for name in ("first.so", "second.so")]
    for copy in copies:
        shutil.copy(library, copy)
    session = profile([program("two_pythons", "-ldl"), *copies, 2], "-f", 499, *MODES[mode])
    called = last_python(pystacks.of_col(session), "inner")
    total, good, between = sum(stack.count for stack in called), 0, 0
    for stack in called:
        names = [frame.name for frame in stack.python]
        good += stack.count * (names == ["<module>", "start", "outer", "<module>", "inner"])
        rest = stack.frames[stack.frames.index(stack.python[2]):] if len(stack.python) == 5 else []
        between += stack.count * ("into_second" in rest)
    assert total > 100 and good > 0.9 * total, called[:3]
    if mode == "perf":
        assert between > 0.5 * total, called[:3]


PIVOT = 'mount --bind "$0" "$0" && cd "$0" && pivot_root . mnt && exec "$@"'


@pytest.mark.root
@pytest.mark.parametrize("mode", MODES)
def test_an_interpreter_in_a_root_of_its_own_mount_namespace(mode, profile, script, python_of):
    python = python_of("trixie-python3.13")
    command = [python.argv[-1], python.where(script("shares")), 1]
    session = profile(["unshare", "--mount", "sh", "-c", PIVOT, python.inside, *command], *MODES[mode])
    assert spins(session) > 0.3, session.frames()
    assert {f.file for s in pystacks.of_col(session) for f in s.python if f.name == "fifty"} == {"/tmp/shares.py"}


# ---- Targets that change while they are read

CHANGING = """
import os, sys, time
def child(number):
    total = 0
    for i in range(number * 100000):
        total += i % 7
    if number % 3 == 0:
        os.execv(sys.executable, [sys.executable, "-S", "-c", "sum(i % 7 for i in range(300000))"])
    if number % 3 == 1:
        os.kill(os.getpid(), 9)
    os._exit(0)
for number in range(1, 41):
    if os.fork() == 0:
        child(number % 5 + 1)
    os.wait()
"""


@pytest.mark.parametrize("mode", MODES)
def test_programs_that_end_exec_and_die_while_they_are_read(mode, profile):
    session = profile(["/usr/bin/python3", "-c", CHANGING], "-f", 999, *MODES[mode])
    # Without perf the accounting is read each 0.1 s, and what ends in between takes what it used since then with it.
    assert profiler.within(session.seconds(999), session.done.cpu_seconds, 0.03, 0.2), (session.seconds(999), session.done)
    for stack in pystacks.of_col(session):
        names = [frame.name for frame in stack.python]
        if "child" in names:
            assert names == ["<module>", "child"], stack
    # These processes live for some milliseconds: not each is recognised in time.
    print(f"{mode}: child {python_share(session, 'child'):.2f}, of all {python_share(session, '<module>'):.2f}")


FIRST = """
import os, sys
def first():
    return sum(i % 7 for i in range(4000000))
first()
os.execv(sys.executable, [sys.executable, "-c", "def second():\\n return sum(i % 7 for i in range(8000000))\\nsecond()"])
"""


@pytest.mark.parametrize("name", those(name for name in EACH if re.match(r"host|pyenv-3\.1[123]\.", name)))
def test_an_interpreter_that_becomes_another_one_is_read_anew(name, profile, python_of):
    """The same file at the same addresses: what was found in the first one's memory is nothing of the second's."""
    session = profile([*python_of(name).argv, "-c", FIRST], "-f", 999)
    unread = sum(s.count for s in pystacks.of_col(session) if "[python: unreadable]_[p]" in s.frames)
    print(f"{name}: {[python_share(session, each) for each in ('first', 'second')]}, {unread} unread")
    assert python_share(session, "first") > 0.05 and python_share(session, "second") > 0.3, session.frames()
    # Within the exec itself, of some milliseconds: the memory is the new program's already, its record comes.
    assert unread <= 5, session.done


@pytest.mark.parametrize("mode", MODES)
def test_a_program_that_is_stopped_and_continued_while_it_is_read(mode, pillion, script, workdir):
    started = process.start([pillion, "--launch", "exec", "-o", workdir, "-f", "999", *MODES[mode], "--",
                             "/usr/bin/python3", script("known_stacks"), "1"])
    for pause in range(60):
        if started.poll() is not None:
            break
        started.signal(process.signal.SIGSTOP)
        process.time.sleep(0.005)
        started.signal(process.signal.SIGCONT)
        process.time.sleep(0.001 * (pause % 20))
    done = started.finish(30)
    process.settle(15)
    session = profiler.Session(done, workdir)
    known = pystacks.Known(done.out)
    verdicts, wrong = judged(known, pystacks.of_col(session))
    assert not wrong, wrong[:3]
    assert verdicts["whole"] > 0.7 * sum(verdicts.values())
    assert profiler.within(session.seconds(999), done.cpu_seconds, 0.03, TICKS[mode])


# ---- What is refused

@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("error", ["EPERM", "ENOSYS"])
def test_without_process_vm_readv_memory_is_read_another_way(error, mode, refuse, profile, script):
    session = profile(["/usr/bin/python3", script("known_stacks"), 1], "-f", 499, *MODES[mode],
                      prefix=[refuse, error, "process_vm_readv", "--"])
    verdicts, wrong = judged(pystacks.Known(session.done.out), pystacks.of_col(session))
    assert not wrong, wrong[:3]
    assert verdicts["whole"] > 0.6 * sum(verdicts.values()), (verdicts, session.done)


@pytest.mark.root
@pytest.mark.parametrize("mode", MODES)
def test_a_process_of_another_user_is_counted_and_said_to_be_unreadable(mode, pillion, script, workdir):
    started = process.start(["/usr/bin/python3", script("shares"), 60])
    process.until(lambda: process.cpu_seconds(started.pid) > 0.3, 10)
    copy = profiler.copy(pillion, workdir)
    session = attach(copy, workdir, started, *MODES[mode], prefix=profiler.as_nobody())
    assert session.done.status in (0, 1), session.done
    assert session.seconds() > 0.1, session.done
    assert not [frame for frame in session.frames() if frame.endswith("_[p]")]
    assert "uid" in " ".join(session.done.err.split()), session.done

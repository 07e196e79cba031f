"""PHP code by its own names: what PHP itself says of its stacks is what the profile shows, for every PHP this machine can give
(tests/lab/phps.py), with perf events and without.
"""
import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from lab import phps, phpstacks, pprof, profiler
from lab.root import Unreachable

pytestmark = pytest.mark.measures

PROGRAMS = "tests/live/programs/php"
MODES = {"perf": [], "perf-less": ["--perf-mode", "disabled"]}
NET = {name: [] if name == "host" else pytest.mark.net for name in phps.NAMES}
THREADS = [pytest.param("zts", mode, marks=pytest.mark.net) for mode in MODES]
FEW = ("host", "experimental")


def in_modes(perf, perf_less):
    """These PHPs with perf events, and these without: what differs between versions is the same in both modes."""
    return [pytest.param(name, mode, marks=NET[name]) for mode, names in (("perf", perf), ("perf-less", perf_less)) for name in names]


@pytest.fixture
def php_of():
    def get(name):
        if name == "zts" and not phps.is_kept(name):
            pytest.skip("zts: tests/lab/phps.py builds it")
        try:
            return phps.get(name)
        except phps.Missing as reason:
            pytest.skip(f"{name}: {reason}")
    return get


@pytest.fixture
def profile(pillion, workdir, repository, php_of):
    """profile(name of the PHP, script, its arguments, options...) -> session, with everything in order."""
    def run(name, script, arguments, *options, settings=("-n",), beside=()):
        php = php_of(name)
        folder = repository / PROGRAMS
        where = php.where(folder / f"{script}.php", *(folder / f"{one}.php" for one in beside))
        session = profiler.profile(pillion, workdir / "out", [*php.argv, *settings, where, *map(str, arguments)], *options)
        assert session.done.status == 0, session.done
        return session
    return run


# ---- Names, files and lines; shares

def check_known(session, mode):
    known = phpstacks.Known(session.done.out)
    for form, stacks in (("col", phpstacks.of_col(session)), ("pprof", phpstacks.of_pprof(session.folder))):
        known.seen.clear()
        verdicts, wrong = Counter(), []
        for stack in stacks:
            gone = "[code is gone]_[php]" in stack.frames or "[code is gone]" in stack.frames
            verdict = "gone" if gone else known.judge(stack.own) if stack.own else "none"
            verdicts[verdict] += stack.count
            wrong += [repr(stack)] if verdict == "wrong" else []
        total = sum(verdicts.values())
        shares = {verdict: f"{100 * count / total:.1f} %" for verdict, count in verdicts.items()}
        print(f"PHP {known.version} {mode} {form}: {shares}, {len(known.seen)} of {len(known.stacks)} stacks seen")
        assert not wrong, wrong[:3]
        assert verdicts["whole"] > 0.7 * total, session.done
        assert verdicts["gone"] < 0.12 * total # of code that is freed once it has run: of files and texts
        assert len(known.seen) >= 0.9 * len(known.stacks), [known.stacks[i] for i in {*range(len(known.stacks))} - known.seen]


@pytest.mark.exact
@pytest.mark.parametrize("name,mode", in_modes(phps.NAMES, FEW) + THREADS)
def test_stacks_are_those_php_tells(name, mode, profile):
    """Closures, callbacks of C functions, generators, fibers, methods with and without names, included files, code given as text,
    calls over several lines, exceptions: no stack that the program cannot have."""
    check_known(profile(name, "known_stacks", [1], "-f", 999, *MODES[mode], beside=["known_included"]), mode)


@pytest.mark.exact
@pytest.mark.parametrize("mode", MODES)
def test_stacks_of_compiled_functions_are_those_php_tells(mode, profile):
    settings = ["-d", "opcache.enable_cli=1", "-d", "opcache.jit=tracing", "-d", "opcache.jit_buffer_size=32M"]
    check_known(profile("host", "known_stacks", [1], "-f", 999, *MODES[mode], settings=settings, beside=["known_included"]), mode)


@pytest.mark.parametrize("name,mode", in_modes(FEW, phps.NAMES))
def test_three_functions_at_50_30_20_percent(name, mode, profile):
    session = profile(name, "shares", [1.2, 0.2], "-f", 999, *MODES[mode])
    told = {function: float(share) for function, share in zip(*[iter(session.done.out.split())] * 2)}
    stacks = phpstacks.of_col(session)
    total = sum(stack.count for stack in stacks)
    shares = {function: sum(s.count for s in stacks if function in s.names) / total for function in told}
    assert sum(shares.values()) > 0.6, (session.done, session.frames())
    for function, true in told.items():
        share = shares[function] / sum(shares.values())
        print(f"{name} {mode}: {function} {share:.3f}, true {true:.3f}")
        assert abs(share - true) < 0.05, (session.done, session.frames())


@pytest.mark.parametrize("name", [pytest.param(name, marks=NET[name]) for name in phps.NAMES])
def test_registers_tell_the_line_of_the_leaf(name, profile):
    """Without them all lines of the loop are charged to the one that may fail. The program runs in a fiber from its first line to its
    last."""
    session = profile(name, "lines", [1], "-f", 999)
    first = int(session.done.out)
    lines = Counter()
    for stack in phpstacks.of_pprof(session.folder):
        if stack.own and stack.own[-1].name == "loop":
            lines[stack.own[-1].line - first] += stack.count
    shares = [lines[line] / sum(lines.values()) for line in range(2, 8)]
    print(f"{name}: {[f'{share:.3f}' for share in shares]}")
    assert abs(sum(shares) - 1) < 0.02, lines
    if session.done.err.find("native_stacks=") >= 0: # there were registers
        assert min(shares[:5]) > 0.03, lines


# ---- Frames that come and go

@pytest.mark.exact
@pytest.mark.parametrize("name,mode", in_modes(phps.NAMES, FEW))
def test_no_stack_is_put_together_from_two_moments(name, mode, profile):
    session = profile(name, "hot", [1], "-f", 999, *MODES[mode])
    total = impossible = short = 0
    for stack in phpstacks.of_col(session):
        names = stack.names
        if names[:2] != ["<main>", "all"] or "down" not in names:
            continue
        order = [each for each in names if each[-2:] in ("_a", "_b") or each == "array_map"]
        legal = (["hot_a", "mid_a", "leaf_a"], ["hot_b", "array_map", "mid_b", "leaf_b"])
        total += stack.count
        impossible += stack.count * (order not in [way[:len(order)] for way in legal])
        short += stack.count * (bool(order) and names.count("down") != 26)
    print(f"{name} {mode}: {impossible} impossible, {short} short of {total}; torn "
          f"{session.share('[php: torn]_[php]') + session.share('[partial]_[php]'):.4f}")
    assert total > 0.6 * session.seconds(999) * 999, session.frames()
    assert impossible + short == 0


@pytest.mark.exact
@pytest.mark.parametrize("mode", MODES)
def test_code_that_is_freed_leaves_its_name_to_nobody(mode, profile, repository):
    """Code given as text lies where other code was a moment ago: place and first line are always of the same one."""
    lines = (repository / PROGRAMS / "made.php").read_text().splitlines()
    first = {f"({1 + at}) : eval()'d code": 3 if "$one" in line else 5 for at, line in enumerate(lines) if "eval($" in line}
    session = profile("host", "made", [1], "-f", 999, *MODES[mode])
    right = wrong = 0
    for stack in phpstacks.of_col(session):
        for frame in stack.own:
            if frame.name == "{closure}":
                fits = any(frame.file.endswith(end) and frame.first == line for end, line in first.items())
                right, wrong = right + fits * stack.count, wrong + (not fits) * stack.count
    print(f"{mode}: {right} right, {wrong} wrong, {session.share('[code is gone]_[php]'):.3f} gone")
    assert wrong == 0 and right > 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("depth", [300, 4000])
def test_deep_stacks_are_whole_or_say_what_is_left_out(mode, depth, profile):
    session = profile("host", "deep", [1, depth], "-f", 499, *MODES[mode])
    stacks = [stack for stack in phpstacks.of_col(session) if stack.own and stack.own[0].name == "<main>"]
    whole = [stack for stack in stacks if "leaf" in stack.names]
    assert sum(stack.count for stack in whole) > 0.4 * sum(stack.count for stack in stacks), session.frames()
    for stack in whole:
        downs = stack.names.count("down")
        assert downs == depth + 1 if depth == 300 else "[frames left out]_[php]" in stack.frames


# ---- Builds for threads

@pytest.mark.net
@pytest.mark.parametrize("mode", MODES)
def test_each_thread_has_its_own_stack(mode, pillion, workdir, repository, php_of):
    library = Path(php_of("zts").argv[0]).with_name("libphp.so")
    program = workdir / "threads"
    subprocess.run(["gcc", "-O1", "-o", program, repository / PROGRAMS / "threads.c", library, f"-Wl,-rpath,{library.parent}", "-lpthread"],
                   check=True)
    session = profiler.profile(pillion, workdir / "out", [program, "2"], "-f", 499, *MODES[mode])
    told = {name: float(cpu) for name, cpu in zip(*[iter(session.done.out.split())] * 2)}
    seen, wrong = Counter(), []
    for stack in phpstacks.of_col(session):
        if len(stack.names) > 1: # beside the time that making a thread's PHP takes
            seen[stack.comm] += stack.count / 499 * (stack.names == ["<eval>", stack.comm])
            wrong += [repr(stack)] * bool(({*told} - {stack.comm}) & {*stack.names})
    print(f"{mode}: " + ", ".join(f"{name} {seen[name]:.3f} s, true {cpu:.3f} s" for name, cpu in told.items()))
    assert not wrong, wrong[:3]
    for name, cpu in told.items():
        assert seen[name] > 0.6 * cpu, session.frames()


# ---- Servers; options

def labels(session, function):
    """(method, script, URL) of the requests that have stacks with the function."""
    found = set()
    for file in session.folder.glob("profile_[0-9]*.pprof"):
        for sample in pprof.read(file).samples:
            if any(function in str(frame) for frame in sample.frames):
                found.add(tuple(sample.labels.get(name) for name in ("http method", "script", "http url")))
    return found


@pytest.mark.parametrize("mode", MODES)
def test_workers_of_a_server_show_requests_and_nothing_when_idle(mode, pillion, workdir, repository):
    server = shutil.which("php-fpm8.2")
    if not server:
        pytest.skip("no php-fpm8.2 here")
    command = ["/usr/bin/python3", repository / "tests/lab/fastcgi.py", server, repository / PROGRAMS / "request.php", "2"]
    session = profiler.profile(pillion, workdir / "out", command, "-f", 499, "--request-urls", *MODES[mode])
    told = json.loads(session.done.out)
    assert labels(session, "Page::render") == {("GET", str(repository / PROGRAMS / "request.php"), "/request.php?id=7")}
    stacks = [stack for stack in phpstacks.of_col(session) if "php-fpm" in stack.comm]
    total = sum(stack.count for stack in stacks)
    inside = sum(stack.count for stack in stacks if stack.names[:2] == ["<main>", "Page::render"])
    print(f"{mode}: {told['requests']} requests; {total / 499:.3f} s, true {told['cpu']:.3f} s; {inside / total:.3f} in requests")
    assert {stack.appid for stack in session.col.stacks if any("Page::render" in frame for frame in stack.frames)} == {"appid: php-fpm: www"}
    assert told["requests"] > 20 and inside > 0.6 * total, session.frames()
    assert not any(frame.startswith("[php") for stack in stacks for frame in stack.frames if isinstance(frame, str) and "torn" in frame)


@pytest.mark.net
@pytest.mark.parametrize("mode", MODES)
def test_short_requests_of_apache_have_names(mode, pillion, workdir, repository):
    """No cache keeps their functions: they are gone when the request is over, after some 5 ms."""
    try:
        root = phps.apache()
    except (phps.Missing, Unreachable) as reason:
        pytest.skip(f"Apache: {reason}")
    command = ["/usr/bin/python3", repository / "tests/lab/apache.py", root, repository / PROGRAMS / "request.php", "3"]
    session = profiler.profile(pillion, workdir / "out", command, "-f", 499, *MODES[mode])
    told = json.loads(session.done.out)
    [(method, script, url)] = labels(session, "Page::render")
    assert method == "GET" and script.endswith("/request.php") and url is None # not asked for
    verdicts, wrong = Counter(), []
    for stack in phpstacks.of_col(session):
        gone = any("[code is gone]" in str(frame) for frame in stack.frames)
        verdicts["gone" if gone else "whole" if stack.names[:2] == ["<main>", "Page::render"] else "else"] += stack.count
        wrong += [repr(stack)] * bool({"render", "row"} & {*stack.names}) # without their class
    print(f"{mode}: {told['requests']} requests, {dict(verdicts)}")
    assert not wrong, wrong[:3]
    assert verdicts["whole"] > 2 * verdicts["gone"] and told["requests"] > 20, session.frames()


def test_php_may_be_left_out(profile):
    session = profile("host", "hot", [0.5], "--no-php")
    stacks = phpstacks.of_col(session)
    assert sum(stack.count for stack in stacks) > 10, session.done
    assert not any(stack.own for stack in stacks)

"""Perl code by its own names: what Perl itself says of its stacks is what the profile shows, for every Perl this machine can
give (tests/lab/perls.py), with perf events and without.
"""
import json
import shutil
import socket
from collections import Counter

import pytest

from lab import perls, plstacks, process, profiler

pytestmark = pytest.mark.measures

PROGRAMS = "tests/live/programs/perl"
MODES = {"perf": [], "perf-less": ["--perf-mode", "disabled"]}
EACH = [pytest.param(name, marks=[] if name == "host" else pytest.mark.net) for name in perls.NAMES]


@pytest.fixture
def perl_of():
    def get(name):
        try:
            return perls.get(name)
        except perls.Missing as reason:
            pytest.skip(f"{name}: {reason}")
    return get


@pytest.fixture
def profile(pillion, workdir, repository, perl_of):
    """profile(name of the Perl, script, its arguments, options...) -> session, with everything in order."""
    def run(name, script, arguments, *options, **more):
        folder = repository / PROGRAMS
        command = perl_of(name).command(folder / f"{script}.pl", *arguments, beside=[folder / "lib"])
        session = profiler.profile(pillion, workdir / "out", command, *options, **more)
        assert session.done.status == 0, session.done
        return session
    return run


def window(session):
    """The counts of the last window's line."""
    events = [json.loads(line) for line in session.done.err.splitlines() if line.startswith("{")]
    return next(event for event in reversed(events) if event["event"] == "window")


@pytest.mark.exact
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", EACH)
def test_stacks_are_those_perl_tells(name, mode, profile):
    """Sorts, overloads, closures, code given as text, required files, handlers, signals, DESTROY, ties, code in patterns: no
    stack that the program cannot have."""
    session = profile(name, "known_stacks", [1.2], "-f", 999, *MODES[mode])
    known = plstacks.Known(session.done.out)
    for form, stacks in (("col", plstacks.of_col(session)), ("pprof", plstacks.of_pprof(session.folder))):
        known.seen.clear()
        verdicts, wrong = Counter(), []
        for stack in stacks:
            gone = any(str(frame).startswith("[code is gone]") for frame in stack.frames)
            verdict = "gone" if gone else known.judge(stack.own) if stack.own else "none"
            verdicts[verdict] += stack.count
            wrong += [repr(stack)] if verdict == "wrong" else []
        total = sum(verdicts.values())
        shares = {verdict: f"{100 * count / total:.1f} %" for verdict, count in verdicts.items()}
        print(f"Perl {known.version} {mode} {form}: {shares}, {len(known.seen)} of {len(known.stacks)} stacks seen")
        assert not wrong, wrong[:3]
        assert verdicts["whole"] > 0.7 * total and verdicts["gone"] < 0.1 * total, session.done
        assert len(known.seen) >= 0.9 * len(known.stacks), [known.stacks[i] for i in {*range(len(known.stacks))} - known.seen]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", EACH)
def test_three_functions_at_50_30_20_percent(name, mode, profile):
    if mode != "perf" and name not in ("host", "sid"):
        pytest.skip("what differs between versions is the same in both modes")
    session = profile(name, "shares", [1.2, 0.2], "-f", 999, *MODES[mode])
    told = {f"main::{function}": float(share) for function, share in zip(*[iter(session.done.out.split())] * 2)}
    stacks = plstacks.of_col(session)
    total = sum(stack.count for stack in stacks)
    shares = {function: sum(s.count for s in stacks if function in s.names) / total for function in told}
    assert sum(shares.values()) > 0.6, (session.done, session.frames())
    for function, true in told.items():
        share = shares[function] / sum(shares.values())
        print(f"{name} {mode}: {function} {share:.3f}, true {true:.3f}")
        assert abs(share - true) < 0.05, (session.done, session.frames())
    seconds, spent = session.seconds(999), session.done.cpu_seconds
    print(f"{name} {mode}: {seconds:.3f} s of {spent:.3f}")
    # without perf events a program is met some time after it has started
    assert abs(seconds - spent) < 0.03 * spent + (0.02 if mode == "perf" else 0.2), session.done


@pytest.mark.exact
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", EACH)
def test_no_stack_is_put_together_from_two_moments(name, mode, profile):
    if mode != "perf" and name not in ("host", "sid"):
        pytest.skip("what differs between versions is the same in both modes")
    session = profile(name, "hot", [1.5], "-f", 999, *MODES[mode])
    total = impossible = short = 0
    ways = (["hot_a", "mid_a", "leaf_a"], ["hot_b", "mid_b", "leaf_b"])
    for stack in plstacks.of_col(session):
        names = [name.removeprefix("main::") for name in stack.names]
        if "down" not in names:
            continue
        order = [each for each in names if each[-2:] in ("_a", "_b")]
        total += stack.count
        impossible += stack.count * (order not in [way[:len(order)] for way in ways])
        short += stack.count * ((bool(order) and names.count("down") != 26) or names[0] != "<main>")
    print(f"{name} {mode}: {impossible} impossible, {short} short of {total}; torn "
          f"{session.share('[perl: torn]_[perl]') + session.share('[partial]_[perl]'):.4f}")
    assert total > 0.6 * session.seconds(999) * 999, (session.done, session.frames())
    assert impossible + short == 0


@pytest.mark.parametrize("mode", MODES)
def test_what_a_sub_frees_while_it_is_left_has_its_callers(mode, profile):
    """Perl takes away the function of a sub that is left before its call."""
    stacks = plstacks.of_col(profile("host", "left", [0.8], "-f", 499, *MODES[mode]))
    total = sum(stack.count for stack in stacks)
    right = sum(stack.count for stack in stacks if stack.names == ["<main>", "main::left", "(eval)", "Held::DESTROY"])
    print(f"{mode}: {right} of {total}")
    assert total > 100 and right > 0.8 * total, stacks


def test_native_frames_stand_where_they_are_called(profile):
    """The regex engine under the sub that matches; a sort's C code between the sub that sorts and what its block calls."""
    # the program goes round in 10 ms: at 499 Hz each round would be sampled at the same places
    session = profile("host", "shares", [2.0, 0.4], "-f", 463, "--log-format", "json", "--launch", "init")
    stacks = [stack for stack in plstacks.of_col(session) if "main::twenty" in stack.names]
    total = sum(stack.count for stack in stacks)
    placed = sum(stack.count for stack in stacks
                 if "Perl_regexec_flags" in stack.frames[stack.frames.index(stack.own[-1]) + 1:])
    counts = window(session)
    print(f"{placed} of {total} in the regex engine; {counts}")
    assert total > 30 and placed > 0.4 * total, session.frames()
    assert int(counts["woven_exact"]) > 0.9 * int(counts["samples"]), counts
    session = profile("host", "hot", [2.0], "-f", 499)
    stacks = [stack for stack in plstacks.of_col(session) if "main::mid_b" in stack.names]
    sorts = sum(stack.count for stack in stacks
                if "Perl_sortsv_flags" in stack.frames[:stack.frames.index(stack.own[stack.names.index("main::mid_b")])])
    total = sum(stack.count for stack in stacks)
    print(f"{sorts} of {total} under the sort")
    assert total > 30 and sorts > 0.9 * total, session.frames()


def test_a_site_of_mojolicious_says_what_its_pages_cost(pillion, workdir, repository):
    """Callers through event loop (EV, in C), handlers and template are all there; the total is what the kernel counted."""
    if process.run(["perl", "-MMojolicious", "-e1"]).status or not shutil.which("wrk"):
        pytest.skip("no Mojolicious or no wrk here")
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    site = process.start(["perl", repository / PROGRAMS / "site.pl", "daemon", "-l", url])
    process.until(lambda: "requests in" in process.run(["wrk", "-t1", "-c1", "-d1s", url]).out, 20, "the site answers")
    load = process.start(["wrk", "-t1", "-c2", "-d4s", url])
    assert process.run([pillion, "-p", site.pid, "-f", 499, "-d", 3, "-o", workdir / "out", "--format", "pprof"]).status == 0
    load.finish()
    site.end()
    stacks = plstacks.of_pprof(workdir / "out")
    total = sum(stack.count for stack in stacks)
    shares = {name: sum(stack.count for stack in stacks if name in stack.names) / total
              for name in ("<main>", "Mojo::IOLoop::start", "Mojolicious::handler", "Mojolicious::Renderer::render")}
    print(f"{total:.2f} s: {shares}")
    assert total > 0.2 and shares["<main>"] > 0.9 and shares["Mojo::IOLoop::start"] > 0.9, shares
    assert shares["Mojolicious::handler"] > 0.25 and shares["Mojolicious::Renderer::render"] > 0.03, shares


def mails(count):
    """A mailbox of messages with many lines of advertisements."""
    for number in range(count):
        yield (f"From a@b.example Thu Jan  1 00:00:00 2026\nFrom: a{number}@b.example\nTo: c@d.example\nSubject: cheap offer {number}\n"
               f"Date: Thu, 1 Jan 2026 00:00:00 +0000\nMessage-Id: <{number}@b.example>\n\n")
        yield from (f"Buy now: http://shop{line}.example/{number} for $ {line * 7919}, dear friend\n" for line in range(60))
        yield "\n"


def test_spamassassin_says_what_its_rules_cost(pillion, workdir):
    """Callers of the code that it makes of its rules are those that they can have, and the total is what the kernel counted."""
    if not shutil.which("spamassassin"):
        pytest.skip("no spamassassin here")
    (workdir / "mbox").write_text("".join(mails(12)))
    command = ["env", f"HOME={workdir}", "spamassassin", "-x", "--local", "--mbox", workdir / "mbox"]
    session = profiler.profile(pillion, workdir / "out", command, "-f", 499)
    assert session.done.status == 0 and "X-Spam" in session.done.out, session.done
    package = "Mail::SpamAssassin::"
    way = ["<main>", "main::wanted", f"{package}check", f"{package}PerMsgStatus::check", f"{package}PerMsgStatus::check_timed",
           f"{package}Plugin::Check::check_main", f"{package}Plugin::Check::do_body_tests"]
    stacks = plstacks.of_col(session)
    total = sum(stack.count for stack in stacks)
    shares = {name: sum(stack.count for stack in stacks if name in stack.names) / total for name in way}
    wrong = [repr(stack) for stack in stacks
             if way[-1] in stack.names and [name for name in stack.names if name in way] != way]
    seconds, spent = session.seconds(499), session.done.cpu_seconds
    print(f"{seconds:.2f} s of {spent:.2f}: {shares}")
    assert not wrong, wrong[:3]
    assert shares["<main>"] > 0.95 and shares[way[3]] > 0.3 and shares[way[-1]] > 0.1, shares
    assert abs(seconds - spent) < 0.03 * spent + 0.05, session.done


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", EACH)
def test_each_thread_runs_its_own_interpreter(name, mode, profile):
    """Two threads, threads that come and go, and a process that a thread forks."""
    roots = {"main::first": ["<main>", "main::first"], "main::second": ["main::second"], "main::fourth": ["main::fourth"],
             "main::fifth": ["main::second", "main::fifth"]}
    if mode != "perf" and name not in ("host", "sid"):
        pytest.skip("what differs between versions is the same in both modes")
    session = profile(name, "threads", [1 if mode == "perf" else 3], "-f", 199, *MODES[mode])
    counts, wrong = Counter(), []
    for stack in plstacks.of_col(session):
        if "main::busy" in stack.names:
            of = stack.names[-2]
            counts[of] += stack.count
            wrong += [repr(stack)] if stack.names[:-1] != roots[of] else []
    print(f"{name} {mode}: {dict(counts)}")
    assert not wrong and counts.keys() == roots.keys(), (wrong[:3], session.done, session.frames())


def test_perl_may_be_left_out(profile):
    session = profile("host", "hot", [0.5], "--no-perl")
    stacks = plstacks.of_col(session)
    assert sum(stack.count for stack in stacks) > 10, session.done
    assert not any(stack.own for stack in stacks)

"""Execution traces of Go programs: whole ones that Go's own tool reads, of limited size, seldom, and where somebody says so."""
import os
import re
import subprocess
import urllib.request

import pytest

from lab import datadog_model, golang, process
from lab.studio_server import Server

pytestmark = pytest.mark.measures

# The format is another since Go 1.22; later ones say what ends a trace (1.26).
RELEASES = [*(pytest.param(version, marks=pytest.mark.net) for version in golang.releases(
    "go1.22.12", more=("go1.18.10", "go1.19.13", "go1.20.14", "go1.21.13", "go1.23.12", "go1.24.6", "go1.25.1", "go1.27.0"))), "local"]
TRACE = ["--go-mode", "trace"]
LIMIT, MOST = 5 << 20, 7 << 20


@pytest.fixture
def start():
    """start(version, options...): a go_traced, with its `address`."""
    running = []

    def of(version, *options):
        program = process.start([golang.program(version, "go_traced.go"), *options])
        running.append(program)
        process.until(lambda: ":" in program.out, 20, lambda: program.err)
        program.address = program.out.split()[0]
        return program
    yield of
    for program in running:
        program.end()


def asked(program):
    program.pump(0.1)
    return [float(seconds) for seconds in re.findall(r"^asked /debug/pprof/trace\?seconds=([\d.]+)$", program.out, re.M)]


def trace_of(folder):
    (path,) = folder.glob("profile_*.go.trace")
    return path


def read(path, workdir):
    """The events by Go's own tool, which fails at what is none, or is cut off: the last one's text, and how many have a text."""
    text = workdir / "events"
    with open(text, "wb") as out:
        done = subprocess.run([golang.Go("local").command, "tool", "trace", "-d=parsed", path], stdout=out, stderr=subprocess.PIPE)
    assert done.returncode == 0 and not done.stderr, done.stderr[-500:]
    count, last = 0, b""
    with open(text, "rb") as lines:
        for line in lines:
            count += b"main." in line
            last = line if line.startswith(b"M=") else last
    text.unlink()
    return last.decode(), count


def check_whole(path, workdir):
    last, named = read(path, workdir)
    assert re.search(r" Sync ", last) and named > 10, (last, named)


def is_free(program):
    """Its recorder is."""
    with urllib.request.urlopen(f"http://{program.address}/debug/pprof/trace?seconds=0.1", timeout=20) as answer:
        return answer.read().startswith(b"go 1.")


@pytest.mark.parametrize("version", RELEASES)
def test_a_trace_ends_with_its_window(version, pillion, workdir, start):
    """It is asked for a minute, and whole after three seconds."""
    program = start(version)
    done = process.run([pillion, *TRACE, "-p", program.pid, "-d", 3, "-o", workdir])
    assert asked(program) == [60], (program.out, done)
    check_whole(trace_of(workdir), workdir)
    assert is_free(program) and "execution trace" not in done.err


@pytest.mark.parametrize("version", RELEASES)
def test_a_busy_program_s_trace_ends_at_its_limit(version, pillion, workdir, start):
    program = start(version, "-n", 2)
    done = process.run([pillion, *TRACE, "-p", program.pid, "-d", 8, "-o", workdir], timeout=40) # one that has more than it may is taken again
    assert is_free(program), done
    path = trace_of(workdir)
    assert LIMIT / 20 < path.stat().st_size < MOST, done
    if version == "local":  # which takes the tool some time
        check_whole(path, workdir)


def test_there_is_one_in_fifteen_minutes(pillion, workdir, start):
    program = start("local")
    watching = process.start([pillion, "--go-mode", "endpoint-cpu+trace", "-p", program.pid, "-c", "-d", 2, "-o", workdir])
    process.until(lambda: len(list(workdir.glob("profile_*.metrics.json"))) >= 4, 30, lambda: watching.err, .1)
    watching.signal(15)
    watching.finish(30)
    assert asked(program) == [60] and len(list(workdir.glob("profile_*.go.trace"))) == 1, program.out


def test_of_several_programs_one_is_traced_at_a_time(pillion, workdir, start):
    programs = [start("local") for _ in range(3)]
    pids = [option for program in programs for option in ("-p", program.pid)]
    watching = process.start([pillion, *TRACE, *pids, "-c", "-d", 2, "-o", workdir])
    process.until(lambda: len(list(workdir.glob("profile_*.trace"))) >= 3, 40, lambda: watching.err, .1)
    watching.signal(15)
    watching.finish(30)
    names = [path.name.split(".") for path in workdir.glob("profile_*.trace")]
    assert len({stem for stem, *_ in names}) == 3 and {kind for _, kind, _ in names} == {f"go-{program.pid}" for program in programs}, names


def test_nothing_is_asked_without_the_option(pillion, workdir, start):
    program = start("local")
    for options in ([], ["--go-mode", "endpoint-cpu", "--perf-mode", "disabled"]):
        process.run([pillion, *options, "-p", program.pid, "-d", 3, "-o", workdir])
    program.pump(0.1)
    assert asked(program) == [] and "asked /debug/pprof/trace" not in program.out and "asked /debug/pprof/heap" in program.out


def test_a_recorder_in_use_is_left_to_its_user(pillion, workdir, start):
    """The other's trace is whole; that there is none of ours is said once."""
    program = start("local")
    other = process.start(["curl", "-sf", "-o", workdir / "other", f"http://{program.address}/debug/pprof/trace?seconds=8"])
    process.until(lambda: asked(program), 20, lambda: program.out)
    watching = process.start([pillion, *TRACE, "-p", program.pid, "-c", "-d", 2, "-o", workdir / "out"])
    process.until(lambda: len(list((workdir / "out").glob("profile_*.metrics.json"))) >= 4, 30, lambda: watching.err, .1)
    watching.signal(15)
    watching.finish(30)
    assert watching.err.count("Could not enable tracing") == 1 and not list((workdir / "out").glob("*.trace")), watching.err
    assert asked(program) == [8, 60]
    assert other.finish(20).status == 0
    check_whole(workdir / "other", workdir)


@pytest.mark.net
def test_a_server_in_a_hurry_is_asked_for_less(pillion, workdir, start):
    """Before Go 1.22 its WriteTimeout forbids more; since then pprof's handlers are excepted."""
    program = start("go1.18.10", "-t", 10)
    process.run([pillion, *TRACE, "-p", program.pid, "-d", 5, "-o", workdir])
    assert asked(program) == [60, 5]
    check_whole(trace_of(workdir), workdir)


def test_it_is_told_what_a_trace_needs(pillion, workdir):
    running = process.start([golang.program("local", "go_silent.go")])
    process.until(lambda: "ready" in running.out, 20, lambda: running.err)
    done = process.run([pillion, *TRACE, "-p", running.pid, "-d", 3, "-o", workdir])
    assert done.err.count("execution trace: that needs an address: import net/http/pprof") == 1, done
    running.end()


def test_it_is_told_where_nothing_takes_it(pillion, workdir, start):
    program = start("local")
    done = process.run([pillion, *TRACE, "-p", program.pid, "-d", 3, "-o", workdir, "--format", "col"])
    assert done.err.count("nothing takes execution traces here") == 1 and not list(workdir.glob("*.trace")), done


def test_datadog_gets_it_with_the_tags_of_its_library(pillion, workdir, start):
    program = start("local", "-n", 1)
    with Server(judge=datadog_model.agent) as server:
        done = process.run([pillion, *TRACE, "-p", program.pid, "-d", 3, "-u", "--backend", "datadog", "--server-host", server.url, "-S", "shop"],
                           cwd=workdir, env={"PATH": os.environ["PATH"]})
        (upload,) = server.accepted
    assert done.status == 0 and "execution traces" not in done.err, done
    assert upload.tag("go_execution_traced") == "yes" and upload.tag("_dd.profiler.go_execution_trace_enabled") == "true"
    assert upload.files["go.trace"].startswith(b"go 1.") and len(upload.files["go.trace"]) > LIMIT / 20


def test_old_windows_traces_go_with_them(pillion, workdir, start):
    program = start("local")
    watching = process.start([pillion, *TRACE, "-p", program.pid, "-c", "-d", 2, "--rotating-output", "-o", workdir])
    process.until(lambda: list(workdir.glob("*.go.trace")), 30, lambda: watching.err, .05)
    process.until(lambda: not list(workdir.glob("*.go.trace")), 30, lambda: watching.err, .05)
    watching.signal(15)
    watching.finish(30)

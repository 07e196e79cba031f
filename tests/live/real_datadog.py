"""Profiles that went through Datadog's own programs: `make test-backends DATADOG_AGENT=/path/of/one DATADOG_TEST_AGENT=/path/of/the/other`.

No part of `make test`. One is the receiver of the trace-agent, built from the agent's modules by a Go of its version:

    cp tests/live/programs/datadog_agent.go EMPTY_FOLDER && cd EMPTY_FOLDER && go mod init agent
    go get github.com/DataDog/datadog-agent/pkg/trace@v0.85.1 && go mod tidy && go build -o datadog_agent .

It passes on what it got, with a key and headers of its own, to an intake, which is the strict reader of lab/datadog_model.
The other is the agent that Datadog tests its libraries with: Python's package ddapm-test-agent. It shows what it got.
"""
import base64
import contextlib
import json
import os
import shutil
import signal
import time
import urllib.error
import urllib.request

import pytest

from lab import datadog_model, pprof, process, studio_model, uploading, workloads
from lab.studio_server import Server
from test_datadog import ambient, profiled  # noqa: F401  (a fixture)

ADDED = {"via", "x-datadog-additional-tags", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "accept-encoding",
         "datadog-container-tags"}


def program_of(variable, name):
    program = os.environ.get(variable) or shutil.which(name)
    if not program:
        pytest.skip(f"{variable} names no {name}, and there is none in PATH")
    return program


def through_the_agent(request):
    """The intake's answer, without what the agent has added."""
    headers = {name: value for name, value in request.headers.items() if name not in ADDED}
    return datadog_model.intake(studio_model.Request(request.method, request.target, headers, request.body), key="agents-own")


def is_open(port):
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/info", timeout=2).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def send(pillion, path, variables, *options):
    return process.run([pillion, "upload", "--backend", "datadog", *options, path], env=ambient(**variables), timeout=60)


def test_the_trace_agent_passes_a_profile_on(pillion, profiled, workdir):  # noqa: F811
    program, port, path = program_of("DATADOG_AGENT", "datadog_agent"), workloads.free_port(), workdir / "apm.socket"
    whole = pprof.read(profiled)
    with Server(judge=through_the_agent) as intake:
        agent = process.start([program, port, path, intake.url + datadog_model.INTAKE, "agents-own"])
        process.until(lambda: is_open(port), 20, lambda: agent.err, 0.1)
        tcp = send(pillion, profiled, {"DD_AGENT_HOST": "127.0.0.1", "DD_TRACE_AGENT_PORT": port, "DD_API_KEY": "SECRET-1"})
        unix = send(pillion, profiled, {"DD_TRACE_AGENT_URL": f"unix://{path}"})
        assert tcp.status == unix.status == 0 and intake.wait(accepted=2), (tcp, unix, [r.names for r in intake.requests])
        for upload in intake.accepted:
            assert upload.profile.total("cpu-time") == whole.total("cpu") > 0
        assert {request.headers["dd-api-key"] for request in intake.requests} == {"agents-own"}
        assert all("host:agent-host" in request.headers["x-datadog-additional-tags"] for request in intake.requests)
        intake.script += [403, (413, {}, b""), "ok"]
        refused = send(pillion, profiled, {"DD_AGENT_HOST": "127.0.0.1", "DD_TRACE_AGENT_PORT": port})
        assert refused.status == 1 and "the agent's API key is wrong" in refused.err, refused
        smaller = send(pillion, profiled, {"DD_AGENT_HOST": "127.0.0.1", "DD_TRACE_AGENT_PORT": port})
        assert smaller.status == 0 and intake.accepted[-1].tag("profile_dropped_to_fit") == "yes", smaller
    away = send(pillion, profiled, {"DD_AGENT_HOST": "127.0.0.1", "DD_TRACE_AGENT_PORT": port})
    assert away.status == 1 and "the Datadog agent at 127.0.0.1 answered 502" in away.err, away
    agent.end()


def attached(pillion, program, out, url):
    return uploading.Run(pillion, "-o", out, "--format", "pprof", backend="datadog", command=(program("act"), "spin", "60"),
                         env=ambient(DD_TRACE_AGENT_URL=url))


def busy_windows(run, count):
    for _ in range(count):
        time.sleep(0.2)
        run.window()


def cpu_times(folder):
    """Of the files beside what was sent."""
    return sorted(pprof.read(path).total("cpu") for path in folder.glob("profile_*.pprof"))


def test_each_window_of_a_run_passes_the_trace_agent_also_when_it_was_away(pillion, program, workdir):
    agents, port, path = program_of("DATADOG_AGENT", "datadog_agent"), workloads.free_port(), workdir / "apm.socket"
    with Server(judge=through_the_agent) as intake:
        def come():
            agent = process.start([agents, port, path, intake.url + datadog_model.INTAKE, "agents-own"])
            process.until(lambda: is_open(port), 20, lambda: agent.err, 0.1)
            return agent
        agent, run = come(), attached(pillion, program, workdir / "out", f"http://127.0.0.1:{port}")
        busy_windows(run, 8)
        assert intake.wait(accepted=8), run.err
        agent.end()
        busy_windows(run, 8)
        agent = come()
        run.pillion.signal(signal.SIGHUP)
        busy_windows(run, 4)
        assert intake.wait(accepted=20), run.err
        said = run.end()
        assert intake.wait(accepted=run.windows), said
        agent.end()
    # the agent may have ended between the intake's answer and its own: then that window came twice, as the same one
    by_sequence = {upload.sequence: upload.profile.total("cpu-time") for upload in intake.accepted}
    assert sorted(by_sequence) == list(range(run.windows)) and len(intake.accepted) <= run.windows + 1, said
    passed = sorted(by_sequence.values())
    assert passed == cpu_times(workdir / "out") and sum(passed) > 10**9
    print(f"{run.windows} windows, {len(passed)} passed on, {sum(passed)} ns of CPU time in the files and in what came")


@contextlib.contextmanager
def datadogs_test_agent(workdir):
    """Its addresses, and a function that returns what it was sent."""
    program, port, path = program_of("DATADOG_TEST_AGENT", "ddapm-test-agent"), workloads.free_port(), workdir / "apm.socket"
    agent = process.start([program, "--port", port, "--trace-uds-socket", path, "--otlp-http-port", workloads.free_port(),
                           "--otlp-grpc-port", workloads.free_port()], cwd=workdir)
    process.until(lambda: is_open(port), 60, lambda: agent.err, 0.2)

    def shown():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/test/session/requests", timeout=10) as answer:
            return [upload_of(one) for one in json.loads(answer.read())]
    yield f"http://127.0.0.1:{port}", f"unix://{path}", shown
    agent.end()


def upload_of(one):
    headers = {name: value for name, value in one["headers"].items() if name.lower() != "accept-encoding"}
    assert one["url"].endswith("/profiling/v1/input")
    request = studio_model.Request(one["method"], "/profiling/v1/input", headers, base64.b64decode(one["body"]))
    status, why, upload = datadog_model.agent(request)
    assert status == 200, why
    return upload


def test_the_test_agent_shows_what_was_sent(pillion, profiled, workdir):  # noqa: F811
    with datadogs_test_agent(workdir) as (url, local, shown):
        for variables in ({"DD_TRACE_AGENT_URL": url, "DD_API_KEY": "SECRET-1"}, {"DD_TRACE_AGENT_URL": local}):
            done = send(pillion, profiled, variables, "-T", "team:pay")
            assert done.status == 0, done
        process.until(lambda: len(shown()) == 2, 10, "it shows both", 0.2)
        for upload in shown():
            assert upload.profile.total("cpu-time") == pprof.read(profiled).total("cpu") and upload.tag("team") == "pay"


@pytest.mark.parametrize("way", [0, 1], ids=["tcp", "unix"])
def test_the_test_agent_shows_each_window_of_a_run(way, pillion, program, workdir):
    with datadogs_test_agent(workdir) as (*urls, shown):
        run = attached(pillion, program, workdir / "out", urls[way])
        busy_windows(run, 10)
        said = run.end()
        process.until(lambda: len(shown()) >= run.windows, 10, lambda: said, 0.2)
        uploads = shown()
    assert sorted(upload.sequence for upload in uploads) == list(range(run.windows)), said
    came = sorted(upload.profile.total("cpu-time") for upload in uploads)
    assert came == cpu_times(workdir / "out") and sum(came) > 10**9
    print(f"{run.windows} windows, {len(uploads)} shown, {sum(came)} ns of CPU time in the files and in what came")

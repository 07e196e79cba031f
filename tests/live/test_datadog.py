"""Profiles for Datadog, held against a strict reader of its wire format: what is sent, to whom, and what an answer does."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab import cache, datadog_model, delivery, golang, pprof, process, profiler, studio_model, uploading
from lab.studio_server import Server

pytestmark = pytest.mark.measures

START = 1763634664 * 10**9  # 2025-11-20T10:31:04
WINDOW = {"start": START, "end": START + 60 * 10**9, "sequence": 3}
SECRET = datadog_model.KEY


@pytest.fixture(scope="module")
def profiled(pillion, program, tmp_path_factory):
    """A pprof file of a real run, of stacks enough that it can be made smaller."""
    folder = tmp_path_factory.mktemp("profiled")
    work = "import json, re\nfor i in range(300): re.sub('a|b', 'c', json.dumps([json.loads('[1, {}]')] * i))"
    session = profiler.profile(pillion, folder, ["/usr/bin/python3", "-c", work])
    assert session.windows
    return folder / "last_profile.pprof"


@pytest.fixture(scope="module")
def make(out, tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")

    def of(path, **keys):
        return delivery.make(out / "host" / "lab" / "backend_request", folder, "datadog", "pprof", path,
                             **{"resource_of_x": "y", **WINDOW, **keys})
    return of


@pytest.fixture(scope="module")
def good(make, profiled):
    """What an agent is sent; not to be changed."""
    return make(profiled, container="8c046cb0-b72c-4214-ab51-ec1b94b1dd1c", tag_of_env="prod")


def ambient(**variables):
    """An environment without any of Datadog's variables but these."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DD_", "PILLION_", "GPROFILER_"))}
    return {**kept, **{name: str(value) for name, value in variables.items()}}


# ---- The checker refuses what is not as it should be

def changed(request, body=None, headers=None, target=None):
    body = request.body if body is None else body
    merged = {**request.headers, "content-length": str(len(body)), **(headers or {})}
    return studio_model.Request(request.method, target or request.target,
                                {name: value for name, value in merged.items() if value is not None}, body)


def with_event(request, change):
    """The request with its event.json changed."""
    start = request.body.index(b"\r\n\r\n") + 4
    end = request.body.index(b"\r\n--", start)
    event = json.loads(request.body[start:end])
    change(event)
    return changed(request, request.body[:start] + json.dumps(event).encode() + request.body[end:])


def set_to(key, value):
    return lambda event: event.update({key: value})


def tagged(old, new):
    def change(event):
        assert re.search(old, event["tags_profiler"])
        event["tags_profiler"] = re.sub(old, new, event["tags_profiler"])
    return change


def test_the_checker_takes_what_is_right(good):
    status, answer, upload = datadog_model.agent(good)
    assert (status, answer) == (200, b"") and upload.sequence == 2
    assert datadog_model.agent(with_event(good, lambda event: None))[0] == 200


@pytest.mark.exact
@pytest.mark.parametrize("change", [
    {"target": "/profiling/v1/input/"}, {"headers": {"dd-api-key": "x"}}, {"headers": {"dd-evp-origin": None}},
    {"headers": {"content-length": None}}, {"headers": {"content-length": "5"}}, {"headers": {"x-more": "1"}},
    {"headers": {"datadog-entity-id": None}}, {"headers": {"datadog-entity-id": "in-5"}},
    {"headers": {"datadog-container-id": "short"}}, {"headers": {"content-type": "multipart/form-data"}},
], ids=str)
def test_each_header_that_is_wrong_is_refused(good, change):
    assert datadog_model.agent(changed(good, **change))[0] in (400, 404)


@pytest.mark.exact
@pytest.mark.parametrize("old, new", [
    (rb"\r\n--(pillion-\w+)--\r\n$", rb"\r\n--\1\r\n"), (rb"^--", rb"\r\n--"), (rb"\r\n$", rb"\r\n\r\n"),
    (rb'name="event"', rb'name="events"'), (rb'"event.json"', rb'"event"'), (rb"application/json", rb"text/plain"),
    (rb'filename="profile.pprof"', rb'filename="cpu.pprof"'), (rb"octet-stream\r\n\r\n\x1f", b"octet-stream\r\n\r\n\x1e"),
    (rb'{"version"', rb'{"version":"4","version"'), (rb'"info":{', rb'"info":{,'),
])
def test_each_byte_of_the_form_that_is_wrong_is_refused(good, old, new):
    body, count = re.subn(old, new, good.body, count=1)
    assert count == 1 and datadog_model.agent(changed(good, body))[0] == 400


@pytest.mark.parametrize("key", sorted(datadog_model.EVENT))
def test_each_field_that_is_removed_or_of_another_type_is_refused(good, key):
    assert datadog_model.agent(with_event(good, lambda event: event.pop(key)))[0] == 400
    assert datadog_model.agent(with_event(good, set_to(key, [5])))[0] == 400


@pytest.mark.exact
@pytest.mark.parametrize("change", [
    set_to("version", "3"), set_to("family", "go"), set_to("attachments", ["profile.pprof", "more"]), set_to("start", "2025-11-20T10:31:04Z"),
    set_to("end", "2025-11-20T10:31:03.000000000Z"), set_to("endpoint_counts", {}), set_to("more", 1),
    set_to("process_tags", ""), set_to("process_tags", "entrypoint.name:A"), set_to("process_tags", "entrypoint.type:a,entrypoint.name:b"),
    tagged("service:[^,]*,", ""), tagged("language:native", "language:native,language:native"), tagged("env:prod", "env:a,env:b"),
    tagged("env:prod", "env:a b"), tagged("profile_seq:2", "profile_seq:-1"), tagged("runtime-id:[^,]*", "runtime-id:x"), tagged("env:prod", "env:"),
])
def test_each_thing_in_the_event_that_is_wrong_is_refused(good, change):
    assert datadog_model.agent(with_event(good, change))[0] == 400


# ---- What is sent

def test_a_profile_arrives_with_its_times_and_sums(good, profiled):
    upload, whole = datadog_model.agent(good)[2], pprof.read(profiled)
    assert upload.profile.total("cpu-time") == whole.total("cpu") > 0
    assert upload.profile.total("cpu-samples") == whole.total("samples") > 0
    assert (upload.start, upload.end) == (WINDOW["start"], WINDOW["end"])
    assert upload.profile.time_nanos == whole.time_nanos and upload.profile.duration_nanos == whole.duration_nanos
    assert {name for sample in upload.profile.samples for name in sample.labels} >= {"process_id", "thread id"}
    assert not good.secrets and SECRET.encode() not in good.body


def test_the_intake_gets_the_key_in_one_header(make, profiled):
    request = make(profiled, agentless=1)
    assert request.secrets == {"DD-API-KEY"} and SECRET.encode() not in request.body
    assert datadog_model.intake(request)[0] == 202
    assert datadog_model.intake(make(profiled, agentless=1, token="other"))[0] == 403


def test_names_of_any_characters_break_nothing(make, profiled):
    wild = 'a,env:evil"}\r\n--pillion-\\\u00e9\U0001f600\x01 b'
    request = make(profiled, service=wild, host=wild, external=wild, container=wild, tag_of_env=wild, argument_of_x=wild,
                   **{"tag_of_k:,\"": wild, "resource_of_k8s.pod.name": wild})
    status, answer, upload = datadog_model.agent(request)
    assert status == 200, answer
    clean = "a_env:evil____--pillion-\\\u00e9\U0001f600__b"
    assert [upload.tag(key) for key in ("service", "host", "env", "pod_name")] == [clean] * 4
    assert upload.event["info"]["application"]["service"] == wild
    assert "datadog-container-id" not in request.headers and "datadog-external-env" not in request.headers


def test_what_is_too_large_is_made_smaller_and_says_so(make, profiled):
    whole = pprof.read(profiled)
    size = len(make(profiled).body)
    upload = datadog_model.agent(make(profiled, most=size - 1))[2]
    assert upload.tag("profile_dropped_to_fit") == "yes" and len(upload.request.body) < size
    assert upload.profile.total("cpu-time") == whole.total("cpu")


# ---- Over an agent

def uploads_of(server, count):
    assert server.wait(accepted=count), server.statuses
    return server.accepted


@pytest.mark.parametrize("launch", ["exec", "init"])
def test_windows_arrive_at_an_agent(pillion, program, workdir, launch):
    """Found by Datadog's own variables. One answer is a failure; the window is sent again, and counts on."""
    out = workdir / "out"
    with Server(["ok", 500], judge=datadog_model.agent) as server:
        env = ambient(DD_AGENT_HOST="127.0.0.1", DD_TRACE_AGENT_PORT=server.port, DD_API_KEY=SECRET, DD_SERVICE="shop",
                      DD_ENV="prod", DD_VERSION="1.2", DD_TAGS="team:pay bad!:x unit:b", DD_EXTERNAL_ENV="it-false")
        done = process.run([pillion, "-u", "-d", "1", "-o", out, "--format", "pprof", "--launch", launch, "--",
                            program("act"), "spin", "2.2"], env=env, timeout=60)
        process.settle(20)
        assert done.status == 0, done
        uploads = sorted(uploads_of(server, 2), key=lambda upload: upload.sequence)
        assert [upload.sequence for upload in uploads] == list(range(len(uploads))), server.statuses
        assert server.statuses.count(500) == 1 and set(server.statuses) == {200, 500}
    kept = [pprof.read(path) for path in out.glob("profile_*.pprof")]
    assert sum(profile.total("cpu") for profile in kept) == sum(upload.profile.total("cpu-time") for upload in uploads) > 0
    for key, value in {"service": "shop", "env": "prod", "version": "1.2", "team": "pay", "unit": "b"}.items():
        assert {upload.tag(key) for upload in uploads} == {value}
    assert len({upload.tag("runtime-id") for upload in uploads}) == 1 and "bad!" not in uploads[0].tags
    # also of the last window, whose process has ended
    assert {upload.event.get("process_tags", "").count("entrypoint.type:executable") for upload in uploads} == {1}, [u.event for u in uploads]
    assert done.err.count('warning: datadog: the tag "bad!:x" is not sent: a tag holds letters, digits') == 1, done.err
    assert {request.headers["datadog-external-env"] for request in server.requests} == {"it-false"}
    assert SECRET not in str([request.headers for request in server.requests])
    assert all(after.start >= before.end for before, after in zip(uploads, uploads[1:]))


BUSY = """
import threading, time
def work():
    end = time.monotonic() + 4
    while time.monotonic() < end:
        sum(i * i for i in range(1000))
threading.Thread(target=work, name="worker").start()
work()
"""
BUILD = {"DD_SERVICE": "shop", "DD_ENV": "prod", "DD_VERSION": "1.2", "DD_TAGS": "team:pay", "DD_GIT_COMMIT_SHA": "0123abc",
         "DD_GIT_REPOSITORY_URL": f"https://me:{SECRET}@git.example/shop.git"}


def version_of(python):
    return subprocess.run([python, "-c", "import platform; print(platform.python_version())"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip()


def profiled_by_pillion(pillion, command, workdir, *options):
    with Server(judge=datadog_model.agent) as server:
        target = process.start(command, cwd=workdir)
        done = process.run([pillion, "-u", "-d", "2", "-p", target.pid, *options], cwd=workdir,
                           env=ambient(DD_TRACE_AGENT_URL=server.url, **BUILD))
        target.end()
        assert done.status == 0, done
        (upload,) = uploads_of(server, 1)
    return target.pid, upload


def profiled_by_its_own(command, workdir, **variables):
    """The first (event, tags) of a program that profiles itself, and its request."""
    with Server(judge=datadog_model.any_client) as server:
        done = process.run(command, timeout=60, cwd=workdir,
                           env=ambient(DD_TRACE_AGENT_URL=server.url, DD_INSTRUMENTATION_TELEMETRY_ENABLED="false", **BUILD, **variables))
        assert done.status == 0 and server.accepted, done
        (first, *_) = [request for request in server.requests if request.path == datadog_model.AGENT]
        return *server.accepted[0], first


@pytest.mark.parametrize("perf", [[], ["--perf-mode", "disabled"]], ids=["perf", "perf-less"])
def test_a_python_service_arrives_as_one(pillion, workdir, perf):
    """It came as native code of the profiler's own process."""
    pid, upload = profiled_by_pillion(pillion, ["/usr/bin/python3", "-c", BUSY], workdir, *perf)
    assert upload.event["family"] == "python" and upload.tag("language") == "python"
    assert (upload.tag("runtime"), upload.tag("runtime_version")) == ("CPython", version_of("/usr/bin/python3"))
    assert upload.event["info"]["runtime"] == {"engine": "CPython", "version": version_of("/usr/bin/python3")}
    assert upload.tag("process_id") == str(pid)
    assert upload.tag("git.commit.sha") == "0123abc" and upload.tag("git.repository_url") == "https://git.example/shop.git"
    assert process_tags(upload.event) == {"entrypoint.name": "-c", "entrypoint.type": "script", "entrypoint.basedir": workdir.name,
                                          "entrypoint.workdir": workdir.name}
    assert SECRET not in str(upload.event)
    assert {"worker", "MainThread"} & {sample.labels.get("thread name") for sample in upload.profile.samples}


def test_of_native_code_the_process_is_told(pillion, program, workdir):
    with Server(judge=datadog_model.agent) as server:
        target = process.start([program("act"), "spin", "20"])
        done = process.run([pillion, "-u", "-d", "1", "-p", target.pid], cwd=workdir, env=ambient(DD_TRACE_AGENT_URL=server.url))
        target.end()
        assert done.status == 0, done
        (upload,) = uploads_of(server, 1)
    assert upload.event["family"] == "native" and upload.tag("process_id") == str(target.pid) and "runtime" not in upload.tags


def process_tags(event):
    return dict(tag.split(":", 1) for tag in event["process_tags"].split(","))


@pytest.mark.net
@pytest.mark.parametrize("begun", [["-c", BUSY], ["-u", "Shop.v2/Busy_Loop-2.x.py", "--token", SECRET], ["-X", "utf8", "-m", "busy", SECRET]],
                         ids=["code", "script", "module"])
def test_beside_datadogs_own_profiler_of_python(begun, pillion, workdir):
    """Field by field: what both say is the same, and what it says alone is named here."""
    python = peer_python()
    (workdir / "Shop.v2").mkdir()
    for path in ("Shop.v2/Busy_Loop-2.x.py", "busy.py"):
        (workdir / path).write_text(BUSY)
    event, tags, _ = profiled_by_its_own([python.parent / "ddtrace-run", python, *begun], workdir, DD_PROFILING_ENABLED="true",
                                         DD_PROFILING_UPLOAD_INTERVAL="2", DD_TRACE_ENABLED="false")
    _, ours = profiled_by_pillion(pillion, [python, *begun], workdir)
    same = {"env", "service", "version", "language", "runtime", "runtime_version", "git.commit.sha", "git.repository_url", "team"}
    assert {key: tags[key] for key in same} == {key: ours.tags[key] for key in same}
    # profiler_config, runtime_platform: of that profiler itself, and a triple that runtime_arch and runtime_os say
    assert set(tags) - set(ours.tags) <= {"profiler_config", "runtime_platform"}, set(tags) - set(ours.tags)
    assert event["family"] == ours.event["family"] and event["version"] == ours.event["version"]
    assert set(event) <= set(ours.event)
    # svc.user: that the service was named by DD_SERVICE
    assert {**process_tags(ours.event), "svc.user": "true"} == process_tags(event)
    assert SECRET not in str(ours.event)
    assert set(ours.event["attachments"]) <= set(event["attachments"])


# What Datadog's profiler of Go says and pillion does not.
GO_TAGS = {"runtime_compiler": "gc: what runtime:go says, too",
           "go_path": "its main module, by the build information that the file holds; pillion takes the release alone from there",
           "pgo": "likewise whether a profile was used to build it",
           "_dd.profiler.go_execution_trace_enabled": "of that profiler itself, and stands beside a trace here",
           "go_execution_traced": "of its go.trace"}
GO_FILES = {"go.trace": "what its scheduler did: of programs that serve net/http/pprof, and with --go-mode trace"}
GO_HEADERS = {"accept-encoding": "of Go's HTTP client"}


@pytest.mark.net
def test_beside_datadogs_own_profiler_of_go(pillion, workdir):
    """Field by field: what both say is the same, and what it says alone is named above."""
    program = peer_of_go()
    event, tags, request = profiled_by_its_own([program, "4"], workdir)
    pid, ours = profiled_by_pillion(pillion, [program, "20", "alone"], workdir)
    same = {"env", "service", "version", "host", "runtime", "runtime_version", "runtime_arch", "runtime_os", "git.commit.sha",
            "git.repository_url", "team", "profile_seq"}
    assert {key: tags[key] for key in same} == {key: ours.tags[key] for key in same}
    assert set(tags) - set(ours.tags) == set(GO_TAGS)
    assert ours.tag("process_id") == str(pid) and datadog_model.UUID.fullmatch(tags["runtime-id"][0])
    assert set(event) <= set(ours.event), set(event) - set(ours.event)
    for key in ("family", "version", "process_tags"):
        assert event[key] == ours.event[key], (event, ours.event)
    assert set(event["info"]) <= set(ours.event["info"])
    own, profiler = event["info"]["profiler"], ours.event["info"]["profiler"]
    assert set(own) <= set(profiler) and all(own[key] == profiler[key] for key in ("ssi", "activation"))
    assert ours.event["info"]["runtime"] == {"engine": "go", "version": tags["runtime_version"][0]}
    assert set(event["attachments"]) - set(ours.event["attachments"]) == set(GO_FILES)
    assert set(request.headers) - set(ours.request.headers) == set(GO_HEADERS)
    mimes = [dict(re.findall(rb'name="([^"]+)"; filename="[^"]+"\r\nContent-Type: (\S+)\r\n', r.body)) for r in (request, ours.request)]
    assert mimes[0][b"event"] == mimes[1][b"event"] and mimes[0][b"cpu.pprof"] == mimes[1][b"cpu.pprof"], mimes
    assert {frame for sample in ours.profile.samples for frame in sample.frames} >= {"main.burn", "main.main"}


def peer_of_go():
    """The program with Datadog's library, whose modules come from where Go is told to get them."""
    module = "github.com/DataDog/dd-trace-go/v2/profiler@v2.12.0"
    built = cache.folder("dd-trace-go", "v2.12.0")
    with cache.locked("dd-trace-go"):
        if (built / "datadog_go").exists():
            return built / "datadog_go"
        if not shutil.which("go"):
            pytest.skip("not installed: go")
        go = golang.Go("local")
        go.environment["GOFLAGS"] = "-modcacherw"
        shutil.copy("tests/live/programs/datadog_go.go", built / "main.go")
        (built / "go.mod").write_text("module datadog_go\n")
        for step in (["get", module], ["build", "-o", "datadog_go", "."]):
            done = go.run(*step, cwd=built)
            if done.status:
                pytest.skip(f"tier net: go {step[0]}: {done.err.strip()[-300:]}")
    return built / "datadog_go"


def peer_python():
    """An interpreter with Datadog's library, from the index that pip knows."""
    folder = cache.folder("ddtrace")
    with cache.locked("ddtrace"):
        if not (folder / "bin/ddtrace-run").exists():
            for step in ([sys.executable, "-m", "venv", folder], [folder / "bin/pip", "install", "-q", "ddtrace==4.16.0"]):
                done = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                if done.returncode:
                    pytest.skip(f"tier net: {done.stdout.strip()[-300:]}")
    return folder / "bin/python"


def test_an_agents_socket(pillion, profiled, workdir):
    with Server(judge=datadog_model.agent, path=workdir / "apm.socket") as server:
        for how in ({"DD_TRACE_AGENT_URL": server.url}, {"DD_TRACE_AGENT_URL": str(workdir / "apm.socket")}):
            done = process.run([pillion, "upload", "--backend", "datadog", profiled], env=ambient(**how))
            assert done.status == 0, done
        done = process.run([pillion, "upload", "--backend", "datadog", "-U", server.url, profiled], env=ambient())
        assert done.status == 0, done
        assert len(uploads_of(server, 3)) == 3
        assert {request.headers["host"] for request in server.requests} == {"localhost"}


def test_the_options_name_the_agent_and_the_back_end(pillion, profiled):
    with Server(judge=datadog_model.agent) as server:
        env = ambient(DD_TRACE_AGENT_URL="http://127.0.0.1:9")
        done = process.run([pillion, "upload", "-H", "127.0.0.1", "-P", server.port, profiled], env=env)
        assert done.status == 0 and "sent to datadog" in done.err, done
        assert len(uploads_of(server, 1)) == 1


# ---- Without an agent

@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return uploading.certificate(tmp_path_factory.mktemp("tls"))


def test_the_key_goes_to_the_intake_and_nowhere_else(pillion, workdir, certificate):
    path, context = certificate
    echo = (500, {}, f"your key {SECRET} is fine, we are not".encode())
    with Server([echo], judge=datadog_model.intake, tls=context) as server:
        env = ambient(DD_PROFILING_AGENTLESS="true", DD_API_KEY=SECRET, DD_PROFILING_URL=server.url, TMPDIR=workdir)
        target = process.start(["sleep", "60"])
        run = process.start([pillion, "-p", target.pid, "-c", "-d", "600", "-u", "-v", "--ca-file", path, "--spool-dir",
                             workdir / "spool", "-o", workdir / "out", "--format", "col,pprof"], env=env)
        process.until(lambda: " profiles pid " in run.err, 10, lambda: run.err)
        for name in ("cmdline", "environ"):
            assert SECRET.encode() not in Path(f"/proc/{run.pid}/{name}").read_bytes(), name
        run.signal(signal.SIGUSR1)
        process.until(lambda: "upload to datadog failed" in run.err, 10, lambda: run.err)
        run.signal(signal.SIGHUP)
        uploads_of(server, 1)
        run.signal(signal.SIGTERM)
        done = run.finish(30)
        target.end()
        assert done.status == 0 and SECRET not in done.err, done
        assert len(uploads_of(server, 2)) == 2 and SECRET not in str([upload.event for upload in server.accepted])
        assert {request.headers["dd-api-key"] for request in server.requests} == {SECRET}
    for file in workdir.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file


def test_a_dry_run_shows_the_site_and_no_key(pillion, profiled):
    done = process.run([pillion, "upload", "--dry-run", "--agentless", profiled],
                       env=ambient(DD_API_KEY=SECRET, DD_SITE="datadoghq.eu"))
    assert done.status == 0, done
    assert "POST /api/v2/profile HTTP/1.1\nHost: intake.profile.datadoghq.eu\n" in done.out
    assert "DD-API-KEY: ***\n" in done.out and SECRET not in done.out + done.err


@pytest.mark.parametrize("variables, said", [
    ({}, "datadog needs a token"),
    ({"DD_API_KEY": SECRET, "DD_SITE": "evil.example/x?"}, "DD_SITE is not a host name"),
])
def test_what_is_missing_without_an_agent_is_said(pillion, profiled, variables, said):
    done = process.run([pillion, "upload", "--agentless", profiled], env=ambient(**variables))
    assert done.status == 2 and said in done.err and SECRET not in done.err, done


# ---- Answers

@pytest.mark.parametrize("script, status, said", [
    ([202], 0, "sent to datadog"),
    ([503], 0, "tried again in"),
    ([(404, {}, b"404 page not found\n")], 1, "an agent of version 7.20 or later, with APM and profiling on, is needed there"),
    ([(403, {}, b"")], 1, "the agent's API key is wrong"),
    ([(400, {}, b"bad form\n")], 1, "the Datadog agent at 127.0.0.1 answered 400: bad form"),
    ([413, "ok"], 0, "sent to datadog"),
], ids=["202", "503", "404", "403", "400", "413"])
def test_an_answer_decides(pillion, profiled, script, status, said):
    with Server(script, judge=datadog_model.agent) as server:
        done = process.run([pillion, "upload", "--backend", "datadog", "-U", server.url, profiled], env=ambient(), timeout=60)
        assert done.status == status and said in done.err, done
        if script[0] == 413:
            (upload,) = uploads_of(server, 1)
            assert upload.tag("profile_dropped_to_fit") == "yes"
            assert upload.profile.total("cpu-time") == pprof.read(profiled).total("cpu")

"""What the back ends send, held against models of the services; and the models and their server against themselves."""
import gzip
import http.client
import json
import random
import time

import pytest

from lab import col, delivery, pprof, profiler, pyroscope_model, studio_model, studio_server

pytestmark = pytest.mark.measures

START = 1763634664 * 10**9  # 2025-11-20T10:31:04
WINDOW = {"start": START, "end": START + 60 * 10**9}


@pytest.fixture(scope="module")
def profiled(pillion, program, tmp_path_factory):
    """A folder with profiles of a real run."""
    folder = tmp_path_factory.mktemp("profiled")
    session = profiler.profile(pillion, folder, [program("act"), "spin", "0.5"])
    assert session.windows
    return folder


@pytest.fixture
def make(out, workdir):
    """make("studio", FILE, **keys) -> the request; its form is told by the file's ending."""
    def of(backend, path, /, **keys):
        form = "pprof" if str(path).endswith("pprof") else "col"
        return delivery.make(out / "host" / "lab" / "backend_request", workdir, backend, form, path, **{**WINDOW, **keys})
    return of


# ---- The validator refuses what the studio refuses

def sample():
    """A request that holds all there has to be, by hand."""
    metadata = {key: "text" for key in studio_model.TEXTS} | {key: 5 for key in studio_model.NUMBERS}
    metadata |= {"cloud_provider": "AWS", "agent_version": "1.2.3", "mac_address": "02:00:00:00:00:01", "run_arguments": {}, "run_mode": "container",
                 "current_time": "2025-11-20T10:31:04", "spawn_time": "2025-11-20T10:31:04"}
    header = {"containers": [], "metadata": metadata, "application_metadata": [None], "application_metadata_enabled": True,
              "metrics": {"cpu_avg": None, "mem_avg": None}}
    return {"header": header, "lines": "\n0;;sh;main 3", "start_time": "2025-11-20T10:31:04", "gpid": ""}


def request_of(parts, drop_header=None, **headers):
    fields = {name: parts[name] for name in ("start_time", "gpid") if name in parts}
    if "header" in parts:
        fields["profile"] = "# " + json.dumps(parts["header"]) + parts["lines"]
    body = gzip.compress(json.dumps(fields).encode())
    all_headers = {"Content-Length": str(len(body)), "Content-Encoding": "gzip", "GPROFILER-API-KEY": "SECRET-1",
                   "GPROFILER-SERVICE-NAME": "shop", **headers}
    all_headers.pop(drop_header, None)
    query = f"service=shop&hostname=h&timestamp={parts.get('start_time')}&version=1.2.3"
    return studio_model.Request("POST", f"/api/v2/profiles?{query}", all_headers, body)


def answered(parts, **more):
    status, answer, kept = studio_model.judge(request_of(parts, **more))
    assert (kept is not None) == (status == 200), answer
    return status, answer


def test_the_validator_takes_what_has_everything():
    status, answer = answered(sample())
    assert (status, answer) == (200, {"message": "ok", "gpid": "4711"})
    assert len(studio_model.REQUIRED) == 23


@pytest.mark.parametrize("key", sorted(studio_model.REQUIRED))
def test_each_key_that_is_removed_is_refused(key):
    parts = sample()
    kept = parts["header"]["metadata"].pop(key)
    assert answered(parts) == (400, {"message": "Failed to parse v2 metadata"})
    parts["header"]["metadata"][key] = None
    assert answered(parts)[0] == 400
    parts["header"]["metadata"][key] = [kept]
    assert answered(parts)[0] == 400


@pytest.mark.parametrize("field", studio_model.FIELDS)
def test_each_field_that_is_removed_is_refused(field):
    parts = sample()
    del parts["header" if field == "profile" else field]
    status, answer = answered(parts)
    assert status == 422 and [detail["loc"] for detail in answer["detail"]] == [["body", field]]


@pytest.mark.parametrize("header, status", [("GPROFILER-API-KEY", 422), ("GPROFILER-SERVICE-NAME", 422),
                                            ("Content-Length", 411)])
def test_each_header_that_is_removed_is_refused(header, status):
    assert answered(sample(), drop_header=header)[0] == status


def changed(path, value):
    parts = sample()
    at = parts
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return parts


@pytest.mark.exact
@pytest.mark.parametrize("path, value, status", [
    (["gpid"], None, 422), (["gpid"], "x1", 400), (["gpid"], "12", 200), (["gpid"], 12, 200),
    (["start_time"], "yesterday", 422), (["start_time"], "2025-11-20T10:31:04+00:00", 400),
    (["header", "metadata"], {}, 400), (["header", "containers"], None, 400), (["header", "containers"], ["a"], 200),
    (["header", "metadata", "cloud_provider"], "Oracle", 400), (["header", "metadata", "cloud_info"], None, 400),
    (["header", "metadata", "agent_version"], "pillion", 400), (["header", "metadata", "agent_version"], "1.2.2", 400),
    (["header", "metadata", "mac_address"], "", 400), (["header", "metadata", "run_mode"], "sidecar", 400),
    (["header", "metadata", "processors"], 0, 400), (["header", "metadata", "memory_capacity_mb"], 0, 400),
    (["header", "metadata", "run_arguments"], {"perf_mode": 5}, 400),
    (["header", "metrics"], {"cpu_avg": 1.0, "mem_avg": None}, 400), (["header", "metrics"], {"cpu_avg": 1, "mem_avg": 2}, 200),
    (["header", "application_metadata"], [{}], 400),
    (["lines"], "\n0;;sh;main 0", 400), (["lines"], "\n0;;sh;main", 400), (["lines"], "\n0 5", 400),
    (["lines"], "\n1;;sh;main 5", 400), (["lines"], "\n0;;sh;;main 5", 400), (["lines"], "", 200),
])
def test_each_thing_that_is_wrong_is_refused(path, value, status):
    assert answered(changed(path, value))[0] == status


@pytest.mark.exact
def test_a_body_above_a_mebibyte_and_a_wrong_key_are_refused():
    assert answered(sample(), **{"Content-Length": str(1024 * 1024 + 1)})[0] == 413
    assert answered(sample(), **{"GPROFILER-API-KEY": "other"}) == (400, {"message": "Invalid GPROFILER-API-KEY header"})


# ---- What is sent to the studio

def test_a_profile_of_a_run_is_taken_by_the_studio(make, profiled):
    request = make("studio", profiled / "last_profile.col")
    status, answer, upload = studio_model.judge(request)
    assert status == 200, answer
    assert upload.total == col.last(profiled).total > 0
    assert upload.start_time == "2025-11-20T10:31:04" and upload.gpid == ""
    assert request.secrets == {"GPROFILER-API-KEY"}
    sent = upload.header["metadata"]
    assert sent["hostname"] == col.last(profiled).header["metadata"]["hostname"], "the file's own facts stay"
    assert sent["run_arguments"]["profiler"].startswith("pillion ")


def test_the_process_id_of_the_server_goes_with_the_next(make, profiled):
    assert studio_model.judge(make("studio", profiled / "last_profile.col", gpid="4711"))[2].gpid == "4711"


def test_stacks_without_a_header_are_taken(make, workdir):
    (workdir / "plain.col").write_text("sh;main;read 3\nsh;main 2")
    status, answer, upload = studio_model.judge(make("studio", workdir / "plain.col"))
    assert status == 200 and upload.total == 5, answer


def test_names_of_any_characters_arrive_as_they_are(make, workdir):
    lines = '0;;sh;a "b"\\c\u00e9\U0001f600\u2028 3'
    (workdir / "odd.col").write_text("# {\"containers\": [], \"application_metadata_enabled\": true}\n" + lines)
    status, answer, upload = studio_model.judge(make("studio", workdir / "odd.col"))
    assert status == 200 and upload.profile.split("\n", 1)[1] == lines, answer


def test_a_profile_that_is_too_large_is_made_smaller_until_it_fits(make, workdir):
    """Names that hardly compress: 1.8 MB of them, and three services that take less and less."""
    names = random.Random(1)
    rows = [f"0;;sh{i % 50};{names.getrandbits(64):016x};{names.getrandbits(64):016x} {1 + i % 9}" for i in range(40000)]
    header = "# {\"containers\": [], \"application_metadata_enabled\": true}"
    (workdir / "large.col").write_text("\n".join([header, *rows]))
    whole = sum(1 + i % 9 for i in range(40000))
    for most in (400000, 100000, 20000):
        status, answer, upload = studio_model.judge(make("studio", workdir / "large.col", most=most))
        assert status == 200, answer
        assert most * 0.6 < upload.bytes <= most
        assert upload.total == whole
        by_process = {stack.split(";")[2]: 0 for stack, _ in upload.lines}
        for stack, count in upload.lines:
            by_process[stack.split(";")[2]] += count
        assert by_process == {f"sh{n}": sum(1 + i % 9 for i in range(n, 40000, 50)) for n in range(50)}


# ---- What is sent to Pyroscope and anywhere

def test_a_profile_of_a_run_is_taken_by_pyroscope(make, profiled):
    whole = pprof.last(profiled)
    for keys, judge in (({}, pyroscope_model.judge), ({"fallback": 1}, pyroscope_model.old)):
        request = make("pyroscope", profiled / "last_profile.pprof", tag_of_env="test", **keys)
        status, answer, push = judge(request)
        assert status == 200, answer
        assert push.labels["service_name"] == "shop" and push.labels["env"] == "test"
        assert push.profile.total("cpu") == whole.total("cpu") > 0
        assert push.profile.total("samples") == whole.total("samples")
        assert push.profile.time_nanos == whole.time_nanos and push.profile.duration_nanos == whole.duration_nanos
    assert pyroscope_model.old(make("pyroscope", profiled / "last_profile.pprof"))[0] == 404


def test_a_profile_goes_to_any_address(make, profiled):
    path = profiled / "last_profile.pprof"
    with studio_server.Server(judge=studio_server.keep_all) as server:
        request = make("http", path, path="/in/{service}-{start}.{format}", method="POST", token="t")
        assert delivery.send(server.url, request)[0] == 200
        (kept,) = server.accepted
    assert (kept.method, kept.target) == ("POST", "/in/shop-20251120T103104Z.pprof")
    assert kept.body == path.read_bytes() and kept.headers["authorization"] == "Bearer t"


# ---- The scripted server

@pytest.fixture
def upload():
    return request_of(sample())


def test_a_script_is_followed_and_then_all_is_taken(upload):
    script = [500, (429, {"Retry-After": "7"}), (503, {}, b"plain"), "ok", lambda request: (418, {}, b"tea")]
    with studio_server.Server(script) as server:
        answers = []
        for count in range(1, 7):
            answers.append(delivery.send(server.url, upload))
            assert server.wait(statuses=count)  # an answer is noted after it was sent, by a thread for each request
        assert [status for status, _, _ in answers] == server.statuses == [500, 429, 503, 200, 418, 200]
        assert answers[1][1]["Retry-After"] == "7" and answers[2][2] == b"plain"
        assert len(server.accepted) == 2 and len(server.requests) == 6


def test_health_checks_take_no_step_of_a_script(upload):
    check = studio_model.Request("GET", "/api/v1/health_check", {"GPROFILER-API-KEY": "wrong"}, b"")
    with studio_server.Server([500]) as server:
        assert delivery.send(server.url, check)[0] == 400
        assert delivery.send(server.url, upload)[0] == 500
        assert server.health_checks == 1


@pytest.mark.parametrize("step, taken", [("cut", 0), ("cut-answer", 0), ("drop", 1), ("lie", 0)])
def test_an_answer_that_does_not_come_whole(upload, step, taken):
    with studio_server.Server([step]) as server:
        with pytest.raises((OSError, http.client.HTTPException)):
            delivery.send(server.url, upload)
        assert server.wait(statuses=1)
        assert server.statuses == [None] and len(server.accepted) == taken
        assert delivery.send(server.url, upload)[0] == 200, "the server goes on"


def test_an_answer_that_never_comes(upload):
    with studio_server.Server(["hang"]) as server:
        with pytest.raises(TimeoutError):
            delivery.send(server.url, upload, timeout=0.3)
        begun = time.monotonic()
        server.close()
        assert time.monotonic() - begun < 5


def test_a_slow_reader_and_one_that_answers_early(upload):
    with studio_server.Server([("slow", 0.3), ("early", 413)]) as server:
        begun = time.monotonic()
        assert delivery.send(server.url, upload)[0] == 200
        assert time.monotonic() - begun >= 0.25
        assert delivery.send(server.url, upload)[0] == 413
        assert len(server.accepted) == 1

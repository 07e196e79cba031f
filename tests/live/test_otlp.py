"""OpenTelemetry's profiles as they arrive, read by what each release of the protocol publishes of itself."""
import gzip
import os

import pytest

from lab import otlp, pprof, process, profiler
from lab.sink import Sink

pytestmark = pytest.mark.measures

PATH = "/v1development/profiles"
WITHOUT = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "PILLION_"))}


@pytest.fixture(scope="module")
def release_of():
    """release_of("1.9"), or the test is skipped with the reason."""
    known = {}

    def get(name):
        if name not in known:
            try:
                known[name] = otlp.release(name)
            except otlp.Unavailable as reason:
                known[name] = str(reason)
        if isinstance(known[name], str):
            pytest.skip(f"tier net: {known[name]}")
        return known[name]
    return get


@pytest.fixture(scope="module")
def run(pillion, program, tmp_path_factory):
    """A run of a few processes whose windows were sent and kept: the requests, and the kept profiles."""
    folder = tmp_path_factory.mktemp("otlp")
    with Sink() as sink:
        profiler.profile(pillion, folder, ["sh", "-c", f"{program('act')} threads 2 0.5; {program('act')} spin 0.3; true"], "-u",
                         "--backend", "otlp", "--server-host", sink.url, "-S", "shop", "-E", "prod", "-T", "team:pay",
                         "--format", "pprof", "--wall", env=WITHOUT)
        kept = [pprof.read(path) for path in folder.glob("profile_*.pprof")]
        process.until(lambda: len(sink.taken) >= len(kept) > 0, 20, lambda: f"{len(sink.taken)} of {len(kept)} windows arrived")
        requests = list(sink.taken)
    assert len(kept) == len(requests)
    return folder, requests, kept


def decoded(release_of, name, request):
    assert request.method == "POST" and request.target == PATH
    assert request.headers["content-type"] == "application/x-protobuf" and request.headers["content-encoding"] == "gzip"
    return otlp.check(release_of(name).decode(gzip.decompress(request.body)), name)


def total(kept, kind):
    return sum(profile.total(kind) for profile in kept)


def test_all_of_the_time_arrives_by_process(release_of, run):
    _, requests, kept = run
    profiles = [profile for request in requests for profile in decoded(release_of, "1.10", request)]
    print(f"kept {total(kept, 'cpu')} ns, sent {otlp.cpu_ns(profiles)} ns, {len(profiles)} profiles")
    assert otlp.cpu_ns(profiles) == total(kept, "cpu") > 0
    by_process = {}
    for profile in kept:
        for sample in profile.samples:
            key = int(sample.labels["process_id"])
            by_process[key] = by_process.get(key, 0) + sample.values[profile.column("cpu")]
    sent = {}
    for profile in profiles:
        if profile.kind == "samples/count":
            key = profile.resource["process.pid"]
            sent[key] = sent.get(key, 0) + profile.total
    assert sent == {pid: ns for pid, ns in by_process.items() if ns} and len(sent) >= 2
    for kind, name in (("wall/nanoseconds", "wall"), ("off_cpu/nanoseconds", "off_cpu")):
        assert sum(profile.total for profile in profiles if profile.kind == kind) == total(kept, name)


def test_it_is_said_where_it_comes_from(release_of, run):
    _, requests, _ = run
    for profile in decoded(release_of, "1.10", requests[0]):
        told = profile.resource
        assert told["service.name"] == "shop" and told["deployment.environment.name"] == "prod" and told["team"] == "pay"
        assert told["host.name"] == os.uname().nodename and isinstance(told["process.pid"], int)
        assert profile.period == ("cpu/nanoseconds=1" if profile.kind == "samples/count" else
                                  "wall/nanoseconds=1" if profile.kind == "wall/nanoseconds" else "")
        for frames, attributes, _ in profile.samples:
            assert set(attributes) == {"thread.name", "thread.id"} and frames
    names = {frame for profile in decoded(release_of, "1.10", requests[0]) for frames, _, _ in profile.samples for frame in frames}
    assert {"spin", "burn"} <= names


def test_a_kept_profile_is_read_by_release_1_10_and_by_none_before(pillion, release_of, run):
    folder, _, kept = run
    path = max(folder.glob("profile_*.pprof"), key=os.path.getsize)
    with Sink() as sink:
        done = process.run([pillion, "upload", "--backend", "otlp", "--otlp-schema", "1.9", "--server-host", sink.url, path],
                           timeout=30, env=WITHOUT)
        assert done.status == 0 and "otlp-schema" in done.err, done
    profiles = decoded(release_of, "1.10", sink.seen[0])
    cpu = pprof.read(path).total("cpu")
    print(f"file {cpu} ns, sent {otlp.cpu_ns(profiles)} ns")
    assert otlp.cpu_ns(profiles) == cpu
    for other in set(otlp.RELEASES) - {"1.10", "1.11"}:
        with pytest.raises((otlp.Refused, AssertionError, KeyError, IndexError)):
            decoded(release_of, other, sink.seen[0])


def test_the_variables_of_opentelemetry_are_heeded(pillion, run):
    folder, _, _ = run
    path = next(folder.glob("profile_*.pprof"))
    told = {"OTEL_EXPORTER_OTLP_HEADERS": "api-key=SECRET%2D1,x-team=a b", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
            "OTEL_RESOURCE_ATTRIBUTES": "service.name=tagged,deployment.environment.name=a%2Cb"}
    with Sink() as sink:
        for variable, target in (("OTEL_EXPORTER_OTLP_ENDPOINT", "/base" + PATH), ("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "/base")):
            done = process.run([pillion, "upload", path], timeout=30, env={**WITHOUT, **told, variable: f"{sink.url}/base/"})
            assert done.status == 0 and "profiles go by HTTP" in done.err and "SECRET" not in done.err, done
            assert sink.seen[-1].target == target
            assert sink.seen[-1].headers["api-key"] == "SECRET-1" and sink.seen[-1].headers["x-team"] == "a b"
            plain = gzip.decompress(sink.seen[-1].body)
            assert b"tagged" in plain and b"a,b" in plain
    many = ",".join(f"t{i}=v" for i in range(21))
    shown = process.run([pillion, "upload", "--dry-run", path, "-T", many], timeout=30, env={**WITHOUT, **told, variable: sink.url})
    assert shown.status == 0 and "SECRET" not in shown.out + shown.err and "api-key" in shown.out
    assert shown.err.count('"t20:v" are not sent: a profile has at most twenty attributes') == 1, shown.err


def test_what_is_too_large_is_sent_smaller_with_all_of_its_time(pillion, release_of, workdir):
    rows = [f"0;one;sh;main;a_function_of_its_own_{i} {1 + i % 9}" for i in range(500)]
    (workdir / "many.col").write_text("\n".join(['# {"containers": ["one"]}', *rows]))
    with Sink([413, 413]) as sink:
        done = process.run([pillion, "upload", "--backend", "otlp", "--server-host", sink.url, workdir / "many.col"], timeout=30,
                           env=WITHOUT)
        assert done.status == 0 and len(sink.seen) == 3, done
        whole, smaller = (decoded(release_of, "1.10", sink.seen[i]) for i in (0, 2))
    assert len(sink.seen[2].body) < len(sink.seen[0].body) / 2
    assert [["[dropped to fit]"] in [frames for frames, _, _ in profile.samples] for profile in smaller] == [True]
    assert otlp.cpu_ns(smaller) == otlp.cpu_ns(whole) > 0
    assert "does not say when it was" in done.err and whole[0].raw["time_unix_nano"] > 10**18


def test_what_is_taken_in_part_is_told_and_not_sent_again(pillion, run):
    folder, _, _ = run
    path = next(folder.glob("profile_*.pprof"))
    partial, warning = b"\x0a\x08\x08\x02\x12\x04oops", b"\x0a\x06\x12\x04well"
    with Sink([(200, {}, partial), (200, {}, warning), (404, {}, b"404 page not found")]) as sink:
        argv = [pillion, "upload", "--backend", "otlp", "--server-host", sink.url, path]
        for status, words in ((1, "not all profiles of a window were accepted: oops"), (0, "well"), (1, "service.profilesSupport")):
            done = process.run(argv, timeout=30, env=WITHOUT)
            assert done.status == status and words in done.err, done
        assert len(sink.seen) == 3

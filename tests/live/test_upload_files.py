"""`pillion upload`: every value of a file arrives or is named, a file is the same one whenever it is sent, and folders.

Files of others are made here, field by field: pillion's own writer has no part in them.
"""
import fcntl
import gzip
import os
import re
import signal
import time

import pytest

from lab import datadog_model, otlp, pprof, process, profiler, pyroscope_model
from lab.sink import Sink, free_port
from lab.studio_server import Server
from lab.uploading import WINDOWS, Run, until_taken

pytestmark = pytest.mark.measures

# ---- Files of others


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def foreign(types, rows, age_s=10):
    """A pprof file, unpacked: sample types as (name, unit), rows as (frames leaf first, values)."""
    strings, functions = [""], {}

    def text(what):
        if what not in strings:
            strings.append(what)
        return strings.index(what)

    out = b"".join(field(1, field(1, text(name)) + field(2, text(unit))) for name, unit in types)
    for frames, values in rows:
        ids = [functions.setdefault(name, len(functions) + 1) for name in frames]
        out += field(2, field(1, b"".join(map(varint, ids))) + field(2, b"".join(map(varint, values))))
    for name, number in functions.items():
        out += field(4, field(1, number) + field(4, field(1, number) + field(2, 3)))
        out += field(5, field(1, number) + field(2, text(name)) + field(4, text(f"{name}.go")))
    out += b"".join(field(6, string.encode()) for string in strings)
    return out + field(9, int((time.time() - age_s) * 1e9)) + field(10, 10**10)


COUNTS = [("samples", "count"), ("cpu", "nanoseconds"), ("wall", "nanoseconds"), ("off_cpu", "nanoseconds"),
          *((f"type{i}", "bytes" if i % 2 else "count") for i in range(15))]
HEAP = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
MUTEX = [("contentions", "count"), ("delay", "nanoseconds")]
FOREIGN = {name: foreign(types, [(["leaf", "main"], range(1, len(types) + 1)), (["other", "main"], range(101, len(types) + 101))])
           for name, types in (("nineteen", COUNTS), ("heap", HEAP), ("mutex", MUTEX), ("goroutine", [("goroutine", "count")]))}


@pytest.fixture(scope="module")
def own(pillion, program, tmp_path_factory):
    """A window of ours with everything that is counted beside CPU time."""
    out = tmp_path_factory.mktemp("own")
    profiler.profile(pillion, out, [program("act"), "spin", "0.3"], "--off-cpu", "-e", "page-faults")
    return out


@pytest.fixture
def source(request, own, workdir):
    kind = request.param
    if kind == "own":
        return own / os.readlink(own / "last_profile.pprof")
    name, _, form = kind.partition(" ")
    path = workdir / f"{name}.{'pprof' if form else 'pb'}"
    path.write_bytes(gzip.compress(FOREIGN[name]) if form else FOREIGN[name])
    return path


SOURCES = ["own", *(f"{name}{form}" for name in FOREIGN for form in ("", " packed"))]


def read(path):
    data = path.read_bytes()
    return pprof.Profile(data if data[:2] == b"\x1f\x8b" else gzip.compress(data))


def totals(profile):
    """By names that all back ends have: Pyroscope takes no dash, Datadog has names of its own."""
    alias = {"cpu_time": "cpu", "cpu_samples": "samples"}
    sums = {name.replace("-", "_"): profile.total(name) for name, _ in profile.sample_types}
    return {alias.get(name, name): value for name, value in sums.items() if value}


# ---- What arrives


def upload(pillion, backend, url, *words):
    return process.run([pillion, "upload", "--backend", backend, "--server-host", url, "--token", "SECRET-1", *words])


def arrived(backend, request):
    if backend == "pyroscope":
        status, _, push = pyroscope_model.judge(request)
        assert status == 200
        return totals(push.profile)
    if backend == "datadog":
        boundary = re.search('boundary="?([^"]+)', request.headers["content-type"])[1]
        files = {name: content for name, _, _, content in datadog_model.parts_of(request.body, boundary.encode())}
        (profile,) = (content for name, content in files.items() if name != "event")
        return totals(pprof.Profile(profile))
    if backend == "otlp":
        try:
            release = otlp.release("1.10")
        except otlp.Unavailable as missing:
            pytest.skip(f"tier net: {missing}")
        body = gzip.decompress(request.body) if request.headers.get("content-encoding") == "gzip" else request.body
        sums = {}
        for profile in otlp.check(release.decode(body), "1.10"):
            is_cpu = profile.kind == "samples/count" and profile.period.startswith("cpu/nanoseconds=")
            name = "cpu" if is_cpu else profile.kind.split("/")[0]
            sums[name.replace("-", "_")] = sums.get(name.replace("-", "_"), 0) + profile.total
        return sums
    return totals(pprof.Profile(request.body))


@pytest.mark.parametrize("backend", ["http", "pyroscope", "datadog", "otlp"])
@pytest.mark.parametrize("source", SOURCES, indirect=True)
def test_every_value_of_a_file_arrives(pillion, source, backend):
    with Sink() as sink:
        done = upload(pillion, backend, sink.url + ("/x" if backend == "http" else ""), source)
        assert done.status == 0 and "warning" not in done.err and len(sink.taken) == 1, done
        sums = arrived(backend, sink.taken[0])
    wanted = totals(read(source))
    if backend == "otlp":
        wanted.pop("samples", None)  # a sample is its time there
    assert sums == wanted


@pytest.mark.parametrize("source", ["own", "nineteen packed", "heap packed"], indirect=True)
def test_a_packed_file_is_sent_as_it_is(pillion, source):
    with Sink() as sink:
        assert upload(pillion, "http", sink.url + "/x", source).status == 0
        assert sink.taken[0].body == source.read_bytes() and sink.taken[0].path == "/x"


@pytest.mark.parametrize("source", ["own", "nineteen packed"], indirect=True)
def test_what_a_back_end_has_no_place_for_is_named(pillion, source):
    """The studio shows CPU time: that is sent, and the status tells that it is not all."""
    with Server() as studio:
        done = upload(pillion, "studio", studio.url, source)
        assert done.status == 1 and len(studio.accepted) == 1, done
        said = re.search(r"warning: .*Performance Studio takes CPU time alone; not sent: (.*)", done.err)[1].split(", ")
    counted = {name.replace("_", "-") for name in totals(read(source))} - {"cpu", "samples"}
    derived = {"wall"} if source.name.startswith("profile_") else set()  # the sum of the two
    assert {name.replace("_", "-") for name in said} == counted - derived


@pytest.mark.parametrize("source", ["heap", "mutex packed", "goroutine"], indirect=True)
def test_a_file_without_cpu_time_is_nothing_for_the_studio(pillion, source):
    with Server() as studio:
        done = upload(pillion, "studio", studio.url, source)
        assert done.status == 1 and not studio.accepted, done
        first = read(source).sample_types[0][0]
        assert f"Performance Studio takes CPU time alone, and the file holds none; not sent: {first}" in done.err


@pytest.mark.parametrize("backend", ["http", "pyroscope", "datadog", "otlp", "studio"])
def test_a_live_window_has_the_same_values(pillion, program, workdir, backend):
    options = ["--off-cpu", "-e", "page-faults", "-u", "--backend", backend, "--token", "SECRET-1"]
    server = Server() if backend == "studio" else Sink()
    with server:
        session = profiler.profile(pillion, workdir, [program("act"), "spin", "0.3"],
                                   *options, "--server-host", server.url + ("/x" if backend == "http" else ""))
        warned = "studio: it takes CPU time alone; off_cpu, wall and other events are in pprof files (-o)" in session.done.err
        assert warned == (backend == "studio"), session.done
        if backend != "studio":
            wanted = totals(pprof.last(workdir))
            wanted.pop("samples" if backend == "otlp" else "", None)
            assert arrived(backend, sink_of(server)) == wanted


def test_each_warning_of_a_back_end_is_told(pillion, program, workdir):
    with Server() as studio, Sink() as sink:
        session = profiler.profile(pillion, workdir, [program("act"), "spin", "0.3"], "--wall", "--header", "X-Scope-OrgID: a", "-u",
                                   "--backend", "studio,pyroscope", "--token", "studio=SECRET-1", "--server-host",
                                   f"studio={studio.url},pyroscope={sink.url}")
        unsent, types = "--header is not sent: of several", "it takes CPU time alone; "
        times = [session.done.err.count(f"{name}: {what}") for name in ("studio", "pyroscope") for what in (unsent, types)]
        assert times == [1, 1, 1, 0], session.done


def sink_of(server):
    (request,) = server.taken
    return request


def test_more_sample_types_than_can_be_carried_are_an_error(pillion, workdir):
    many = [(f"type{i}", "count") for i in range(40)]
    (workdir / "many.pb").write_bytes(foreign(many, [(["leaf"], [1] * 40)]))
    with Sink() as sink:
        done = upload(pillion, "otlp", sink.url, workdir / "many.pb")
        assert done.status == 1 and "holds 40 sample types; 32 are read" in done.err and not sink.seen, done


# ---- The same file is the same window


def test_a_file_has_one_identity_in_any_order(pillion, program, workdir):
    profiler.profile(pillion, workdir / "out", [program("act"), "spin", "2.3"], "-d", "1")
    files = sorted((workdir / "out").glob("profile_*.pprof"), key=lambda path: path.stem)
    (workdir / "heap.pprof").write_bytes(gzip.compress(FOREIGN["heap"]))
    files.append(workdir / "heap.pprof")
    count = len(files)  # of seconds, on a machine that others use as well
    assert count >= 4, files
    seen = {}
    with Sink() as sink:
        for order in (files, files[::-1], files[1:2]):
            before = len(sink.taken)
            done = upload(pillion, "pyroscope", sink.url, *order)
            assert done.status == 0, done
            for path, request in zip(order, sink.taken[before:]):
                seen.setdefault(path, set()).add(pyroscope_model.judge(request)[2].identity)
    assert all(len(ids) == 1 for ids in seen.values()) and len(set.union(*seen.values())) == count, seen
    with Sink() as sink:
        for order in (files, files[::-1]):
            assert upload(pillion, "http", sink.url + "/{sequence}", *order).status == 0
        numbers = [int(request.path[1:]) for request in sink.taken]
        assert numbers[:count] == numbers[count:][::-1], numbers
        assert numbers[:count - 1] == list(range(1, count)) and numbers[count - 1] > 1000, numbers


def test_a_window_of_a_spool_is_the_one_that_was_tried(pillion, workdir):
    """Its answer is lost, the run is killed, and `pillion upload` sends it: with the same id."""
    spool = workdir / "spool"
    with Sink(["mute"]) as sink:
        run = Run(pillion, "--server-host", sink.url, "--spool-dir", spool, backend="pyroscope")
        run.window()
        run.pillion.signal(signal.SIGHUP)
        process.until(lambda: sink.seen, 20, lambda: run.err)
        run.kill()
        first = pyroscope_model.judge(sink.seen[0])[2].identity
        done = upload(pillion, "pyroscope", sink.url, spool)
        assert done.status == 0 and len(sink.taken) == 1, done
        assert pyroscope_model.judge(sink.taken[0])[2].identity == first


# ---- Folders


def left(folder):
    return sorted(path.name for path in folder.iterdir() if path.is_file() and path.name != "lock")


@pytest.fixture
def spooled(pillion, workdir):
    """A spool with three windows, of which one lies in the folder of a second owner; nobody holds it."""
    spool, nowhere = workdir / "spool", f"http://127.0.0.1:{free_port()}{WINDOWS}"
    runs = [Run(pillion, "--server-host", nowhere, "--spool-dir", spool) for _ in range(2)]
    runs[0].window(2)
    runs[1].window()
    for run in runs:
        run.kill()
    assert len(left(spool)) == 2 and len(left(spool / "2")) == 1
    return spool


@pytest.mark.parametrize("how", ["folder", "slash", "glob"])
def test_a_spool_is_sent_whole_and_is_empty_then(pillion, spooled, how):
    words = {"folder": [spooled], "slash": [f"{spooled}/"], "glob": sorted(spooled.iterdir())}[how]
    with Sink() as sink:
        done = upload(pillion, "http", sink.url + WINDOWS, *words)
        assert done.status == 0 and len(sink.taken) == 3 and "lock" not in done.err.replace("clock", ""), done
        assert not left(spooled) and not left(spooled / "2")
        again = upload(pillion, "http", sink.url + WINDOWS, spooled)
        assert again.status == 0 and "nothing waits in it" in again.err and len(sink.taken) == 3, again


def test_what_a_server_does_not_take_stays_in_the_spool(pillion, spooled):
    with Sink([(400, {}, b"no"), "ok", "ok"]) as sink:
        done = upload(pillion, "http", sink.url + WINDOWS, spooled)
        assert done.status == 1 and len(sink.taken) == 2 and len(left(spooled)) == 1, done
        shown = process.run([pillion, "upload", "--dry-run", "--backend", "http", "--server-host", sink.url + WINDOWS, spooled])
        assert shown.status == 0 and "PUT /in/" in shown.out and len(left(spooled)) == 1 and len(sink.seen) == 3, shown


def test_a_spool_in_use_is_left_to_its_owner(pillion, spooled):
    with Sink() as sink, open(spooled / "lock") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        for word in (spooled, spooled / left(spooled)[0]):
            done = upload(pillion, "http", sink.url + WINDOWS, word)
            assert done.status == 1 and not sink.seen, done
            assert f"the spool {spooled} is in use; who uses it sends what is in it" in done.err, done
        assert len(left(spooled)) == 2


def test_a_folder_of_windows_is_sent_each_once(pillion, program, workdir):
    """One form of each window, not the sum of the run, and no links."""
    profiler.profile(pillion, workdir / "out", [program("act"), "spin", "1.3"], "-d", "1")
    with Sink() as sink:
        done = upload(pillion, "http", sink.url + WINDOWS, workdir / "out")
        assert done.status == 0, done
        sent = re.findall(r"/([^/]*): sent to http", done.err)
        windows = [path.name for path in sorted((workdir / "out").glob("profile_*.pprof"), key=lambda path: path.stem)]
        assert sent == windows and len(windows) >= 2, done
        for path in (workdir / "out").glob("*.pprof"):
            path.unlink()
        done = upload(pillion, "http", sink.url + WINDOWS, workdir / "out")
        assert done.status == 0 and len(re.findall(r"profile_[^/]*\.col: sent to http", done.err)) == len(windows), done
    (workdir / "empty").mkdir()
    done = upload(pillion, "http", "http://127.0.0.1:9/x", workdir / "empty")
    assert done.status == 1 and "there are no profiles in it: files that end with .pprof, .pb.gz or .col" in done.err, done


# ---- Words before sending


def test_an_age_that_a_back_end_does_not_take_is_said_before(pillion, workdir):
    (workdir / "old.pb").write_bytes(foreign(COUNTS, [(["leaf"], [1] * len(COUNTS))], age_s=7200))
    with Sink() as sink:
        done = upload(pillion, "pyroscope", sink.url, workdir / "old.pb")
        assert done.status == 0 and "it began 2.0 hours ago; Pyroscope usually takes nothing that is older than 0.9 hours" in done.err
        assert "began" not in upload(pillion, "http", sink.url + "/x", workdir / "old.pb").err


def test_a_file_without_a_service_goes_under_its_own_name(pillion, workdir):
    (workdir / "shop.pb").write_bytes(FOREIGN["heap"])
    with Sink() as sink:
        assert upload(pillion, "pyroscope", sink.url, workdir / "shop.pb").status == 0
        assert upload(pillion, "pyroscope", sink.url, "-S", "till", workdir / "shop.pb").status == 0
        labels = [pyroscope_model.judge(request)[2].labels for request in sink.taken]
    assert [label["service_name"] for label in labels] == ["shop", "till"] and labels[0]["__name__"] == "memory", labels

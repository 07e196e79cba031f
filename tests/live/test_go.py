"""What Go programs have counted of their heap, locks and goroutines: by net/http/pprof where they have it, equal to what that tells to
everybody; each window its own part of it; and nobody else's server is troubled for it."""
import gzip
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "browser"))

import pages  # noqa: E402
from lab import datadog_model, golang, otlp, pprof, process, pyroscope_model
from lab.sink import Sink
from lab.studio_server import Server, keep_all

pytestmark = pytest.mark.measures

RELEASES = [*(pytest.param(version, marks=pytest.mark.net) for version in golang.releases("go1.22.12", more=("go1.19.13", "go1.21.13",
                                                                                                      "go1.24.6"))), "local"]
KINDS = ("heap", "mutex", "block", "goroutine")


NAMES = ["go_alloc_bytes_per_sec", "go_allocs_per_sec", "go_frees_per_sec", "go_heap_growth_bytes_per_sec", "go_gcs_per_sec",
         "go_gc_pause_time", "go_max_gc_pause_time", "go_num_goroutine"]


class Program:
    """A running go_profiles; `address` is where it serves, `pid` its own."""

    def __init__(self, program, *options, argv=()):
        read, self.input = os.pipe()
        self.process = process.start([*argv, program, *options], stdin=read)
        os.close(read)
        process.until(lambda: "ready" in self.process.out, 30, lambda: self.process.err)
        self.address = self.process.out.split()[1]

    def again(self):
        count = self.process.out.count("again")
        os.write(self.input, b"\n")
        process.until(lambda: self.process.out.count("again") > count, 30, lambda: self.process.err)

    def get(self, kind):
        if self.address.startswith("/"):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(self.address)
                connection.sendall(f"GET /debug/pprof/{kind} HTTP/1.0\r\n\r\n".encode())
                answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
            return pprof.Profile(answer.partition(b"\r\n\r\n")[2])
        return pprof.Profile(urllib.request.urlopen(f"http://{self.address}/debug/pprof/{kind}").read())

    def end(self):
        os.close(self.input)
        self.process.end()


@pytest.fixture
def run_program():
    """run_program(version, options..., tags=, flags=, argv=): ended with the test."""
    running = []

    def start(version, *options, served=True, flags=(), argv=()):
        flags = (*flags, *(("-tags", "served") if served else ()))
        sources = ("go_profiles.go", "go_profiles_served.go") if served else ("go_profiles.go",)
        running.append(Program(golang.program(version, *sources, flags=flags), *options, argv=argv))
        return running[-1]
    yield start
    for one in running:
        one.end()


OWN = {f"main.{name}" for name in ("keeps", "drops", "way", "holds", "waits", "leaks")}


def own(profile):
    """Values of what the program has done by then, by stack and labels: asking, and telling that it is ready, allocate, too."""
    found = {}
    for sample in profile.samples:
        if OWN & set(sample.frames):
            key = (*sample.frames, *sorted(sample.labels.items()))
            before = found.get(key, [0] * len(sample.values))
            found[key] = [a + b for a, b in zip(before, sample.values)]
    return {key: values for key, values in found.items() if any(values)}


def total(profile, function, kind):
    at = profile.column(kind)
    return sum(sample.values[at] for sample in profile.samples if function in sample.frames)


def files(folder, kind, count=1, timeout=30, of=None):
    """The newest files of a kind, once there are so many."""
    def all_of():
        return sorted(folder.glob(f"profile_*.{kind}.*"))
    process.until(lambda: len(all_of()) >= count, timeout, lambda: f"{of and of.err} {sorted(p.name for p in folder.glob('*'))}", 0.05)
    return all_of()


# ---- by address ----

@pytest.mark.parametrize("version", RELEASES)
def test_profiles_are_those_of_the_address(version, pillion, workdir, run_program):
    """Of a program that began with the run the first window has what was counted since then."""
    running = run_program(version, "-l", "127.0.0.1:0", argv=[pillion, "-d", 3, "-o", workdir, "--launch", "init", "--"])
    found = {kind: pprof.read(files(workdir, kind, of=running.process)[0]) for kind in KINDS}
    for kind in KINDS:
        theirs = running.get(kind)
        assert found[kind].sample_types == theirs.sample_types and found[kind].period == theirs.period, kind
        assert own(found[kind]) == own(theirs), kind
        assert [m["build_id"] for m in found[kind].mappings] == [m["build_id"] for m in theirs.mappings]
    assert total(found["heap"], "main.keeps", "inuse_objects") == 100 and total(found["heap"], "main.drops", "alloc_objects") == 1000
    assert total(found["goroutine"], "main.leaks", "goroutine") == 20 and total(found["mutex"], "main.holds", "contentions") > 0
    assert total(found["block"], "main.waits", "contentions") == 1
    told = subprocess.run(["go", "tool", "pprof", "-top", "-sample_index=alloc_objects", files(workdir, "heap")[0]], capture_output=True, text=True)
    assert told.returncode == 0 and "main.drops" in told.stdout, told


@pytest.mark.parametrize("served", [True, False], ids=["address", "memory"])
def test_the_windows_page_offers_them(served, pillion, workdir, run_program):
    """Each value of each file is a type of the page, with the same stacks and the same weights."""
    running = run_program("local", *(("-l", "127.0.0.1:0") if served else ()), served=served,
                          argv=[pillion, "-d", 3, "-o", workdir, "--launch", "init", "--"])
    for kind in KINDS:
        first = files(workdir, kind, of=running.process)[0]
    page = first.with_name(first.name.replace(".goroutine.pprof", ".html")).read_bytes()
    offered = pages.types_of(page)
    assert list(offered)[0] == "CPU time", offered
    box, = (name for name, kind, _ in pages.Decoded(page).names if kind == pages.KIND_PROCESS)
    assert re.fullmatch(rb"program \(pid \d+\)", box)
    assert {"delay (mutex)", "contentions (mutex)", "delay (block)", "contentions (block)", "goroutine"} < set(offered)
    checked = 0
    for kind in KINDS:
        made = pprof.read(first.with_name(first.name.replace(".goroutine.", f".{kind}.")))
        for at, (name, _) in enumerate(made.sample_types):
            wanted = Counter()
            for sample in made.samples:
                wanted[tuple(sample.frames) or ("[unknown]",)] += sample.values[at]  # a goroutine may have no stack
            label = name if kind == "heap" or name == kind else f"{name} ({kind})"
            block = pages.Decoded(page, offered[label])
            assert block.stacks() == +wanted and sum(wanted.values()) == made.total(name) > 0, label
            assert [name for name, kind, _ in block.names if kind == pages.KIND_PROCESS] == [box], label
            checked += 1
    assert checked == 9


def test_later_windows_have_their_part(pillion, workdir, run_program):
    """Of a program that was there before, what it had counted is in no window; what is in use now is in each."""
    running = run_program("local", "-l", "127.0.0.1:0")
    watching = process.start([pillion, "-p", running.process.pid, "-c", "-d", 3, "-o", workdir])
    files(workdir, "heap", 1, of=watching)
    running.again()
    files(workdir, "heap", 3, of=watching)
    watching.signal(15)
    watching.finish(30)
    heap, mutex, block = ([pprof.read(path) for path in files(workdir, kind)] for kind in ("heap", "mutex", "block"))
    assert total(heap[0], "main.keeps", "alloc_objects") == 0 and total(heap[0], "main.keeps", "inuse_objects") == 100
    assert sum(total(one, "main.keeps", "alloc_objects") for one in heap) == 100 and total(heap[-1], "main.keeps", "inuse_objects") == 200
    assert sum(total(one, "main.drops", "alloc_objects") for one in heap) == 1000
    assert sum(total(one, "main.waits", "contentions") for one in block) == 1
    assert 0 < sum(total(one, "main.holds", "contentions") for one in mutex) < 5
    heap.sort(key=lambda one: one.time_nanos)
    assert all(b.time_nanos - a.time_nanos == b.duration_nanos > 0 for a, b in zip(heap, heap[1:])), "a part of the time is in none, or in two"


def test_figures_stand_beside_them(pillion, workdir, run_program):
    """How long goroutines wait, and what Datadog's library calls metrics."""
    running = run_program("local", "-l", "127.0.0.1:0")
    process.run([pillion, "-p", running.process.pid, "-d", 3, "-o", workdir])
    metrics = dict(json.loads(files(workdir, "metrics")[0].read_text()))
    assert metrics["go_num_goroutine"] >= 21 and set(metrics) >= {"go_alloc_bytes_per_sec", "go_gcs_per_sec", "go_gc_pause_time"}, metrics
    waits = pprof.read(files(workdir, "goroutinewait")[0])
    states = Counter({sample.labels["state"]: sample.values[1] for sample in waits.samples if "main.leaks" in sample.frames})
    assert states == {"chan receive": 20}, states


@pytest.mark.net
def test_leaks_are_told_by_those_that_find_them(pillion, workdir, run_program):
    """Since Go 1.27: goroutines that wait for what nobody can reach."""
    running = run_program("go1.27.0", "-l", "127.0.0.1:0")
    process.run([pillion, "-p", running.process.pid, "-d", 3, "-o", workdir])
    found = pprof.read(files(workdir, "goroutineleak")[0])
    assert total(found, "main.leaks", found.sample_types[0][0]) == 20 and own(found) == own(running.get("goroutineleak"))


def test_a_unix_socket_is_an_address(pillion, workdir, run_program):
    running = run_program("local", "-l", f"unix:{workdir}/app.sock")
    done = process.run([pillion, "-p", running.process.pid, "-d", 3, "-o", workdir])
    assert own(pprof.read(files(workdir, "goroutine")[0])) == own(running.get("goroutine")), done


@pytest.mark.parametrize("option", ["--no-go-pprof", "--go-mode=walk", "--no-go"])
def test_it_is_not_asked_where_it_may_not_be(option, pillion, workdir, run_program):
    """It never had a connection."""
    running = run_program("local", "-l", "127.0.0.1:0")
    process.run([pillion, "-p", running.process.pid, "-d", 3, "-o", workdir, option])
    running.again()
    assert running.process.out.split()[-1] == "0", running.process.out


def test_a_given_address_is_the_only_one_that_is_asked(pillion, workdir, run_program):
    running = run_program("local", "-l", "127.0.0.1:0")
    for port, is_asked in ((1, False), (running.address.rpartition(":")[2], True)):
        process.run([pillion, "-p", running.process.pid, "-d", 3, "-o", workdir, "--go-pprof", f"http://127.0.0.1:{port}"])
        running.again()
        assert (int(running.process.out.split()[-1]) > 0) == is_asked, running.process.out


def test_a_malformed_address_is_told(pillion, workdir, run_program):
    """And nothing is asked in its place."""
    running = run_program("local", "-l", "127.0.0.1:0")
    done = process.run([pillion, "-p", running.process.pid, "-d", 2, "-o", workdir, "--go-pprof", "https://127.0.0.1:6060"])
    assert "--go-pprof https://127.0.0.1:6060: a port of this network namespace's loopback is wanted" in done.err, done
    running.again()
    assert running.process.out.split()[-1] == "0" and files(workdir, "heap"), running.process.out


# ---- by memory ----

@pytest.mark.parametrize("flags", [(), ("-ldflags=-s -w",)], ids=["plain", "stripped"])
def test_memory_tells_what_the_address_does(flags, pillion, workdir, run_program):
    """Waits are counted in cycles of the processor, whose pace everybody measures for himself."""
    running = run_program("local", "-l", "127.0.0.1:0", flags=flags)
    done = process.run([pillion, "-p", running.process.pid, "-d", 3, "-o", workdir, "--no-go-pprof"])
    for kind in ("heap", "goroutine"):
        found, theirs = own(pprof.read(files(workdir, kind)[0])), own(running.get(kind))
        growing = {"heap": 2}.get(kind, 0)  # counted before it was met
        assert {key: values[growing:] for key, values in found.items()} == \
            {key: values[growing:] for key, values in theirs.items() if any(values[growing:])}, (kind, done)
    running.again()
    assert running.process.out.split()[-1] == "2", running.process.out  # this test's own


def test_contention_is_known_without_an_address(pillion, workdir, run_program):
    running = run_program("local", served=False)
    watching = process.start([pillion, "-p", running.process.pid, "-c", "-d", 3, "-o", workdir])
    process.until(lambda: list(workdir.glob("profile_*.col")), 20, lambda: watching.err, .05)
    running.again()
    mutex, block = (pprof.read(files(workdir, kind, of=watching)[0]) for kind in ("mutex", "block"))
    watching.signal(15)
    watching.finish(30)
    assert total(block, "main.waits", "contentions") == 1 and 9e6 < total(block, "main.waits", "delay") < 2e9
    # a busy machine lets who holds it wait, too
    assert 0 < total(mutex, "main.holds", "contentions") < 5 and 1e7 < total(mutex, "main.holds", "delay") < 3e9
    waits = pprof.read(files(workdir, "goroutinewait")[0])
    assert {sample.labels["state"] for sample in waits.samples if "main.leaks" in sample.frames} == {"chan receive"}


@pytest.mark.parametrize("flags", [(), ("-ldflags=-s -w",)], ids=["plain", "stripped"])
def test_figures_are_known_without_an_address(flags, pillion, workdir, run_program):
    """Each window its own part of what the runtime counts."""
    running = run_program("local", served=False, flags=flags)
    watching = process.start([pillion, "-p", running.process.pid, "-c", "-d", 3, "-o", workdir])
    process.until(lambda: list(workdir.glob("profile_*.col")), 20, lambda: watching.err, .05)
    running.again()
    files(workdir, "metrics", 3, of=watching)
    watching.signal(15)
    watching.finish(30)
    found = [dict(json.loads(path.read_text())) for path in files(workdir, "metrics")]
    assert all(list(one) == NAMES for one in found), found
    assert [one["go_num_goroutine"] for one in (found[0], found[-1])] == [21, 41]
    sums = {name: sum(one[name] for one in found) for name in NAMES}
    assert sum(one["go_gcs_per_sec"] > 0 for one in found) in (1, 2) and sums["go_gc_pause_time"] > 0 and sums["go_max_gc_pause_time"] > 0, found
    collections = sums["go_gcs_per_sec"] / 2  # of two comes all that it did
    assert .8e6 < sums["go_alloc_bytes_per_sec"] / collections < 1.5e6 and 1100 < sums["go_allocs_per_sec"] / collections < 3000, found


def test_what_it_does_not_count_is_told(pillion, workdir):
    """Of a program that refers to no profile the linker leaves out the heap's; rates are 0 unless it sets them."""
    running = process.start([golang.program("local", "go_silent.go")])
    process.until(lambda: "ready" in running.out, 20, lambda: running.err)
    watching = process.start([pillion, "-p", running.pid, "-c", "-d", 2, "-o", workdir])
    process.until(lambda: watching.err.count("the go profiles of") >= 3, 30, lambda: watching.err, .1)
    watching.signal(15)
    watching.finish(30)
    for told in ("runtime.MemProfileRate is 0", "SetBlockProfileRate was not called", "SetMutexProfileFraction was not called"):
        assert told in watching.err, watching.err
    assert files(workdir, "goroutine") and not list(workdir.glob("*.heap.*"))
    running.end()


# ---- to where people look: that the address is asked makes it wait and contend, too ----

def sent(pillion, workdir, running, server, backend, *options):
    done = process.run([pillion, "-p", running.process.pid, "-d", 3, "-u", "--backend", backend, "--server-host", server.url, "-S", "shop",
                        *options], cwd=workdir, env={"PATH": os.environ["PATH"]})
    assert done.status == 0, done
    return done


def test_datadog_gets_them_in_one_request(pillion, workdir, run_program):
    running = run_program("local", "-l", "127.0.0.1:0")
    with Server(judge=datadog_model.agent) as server:
        sent(pillion, workdir, running, server, "datadog")
        (upload,) = server.accepted
    assert upload.event["family"] == "go" and upload.tag("process_id") == str(running.process.pid)
    assert set(upload.event["attachments"]) - {"delta-mutex.pprof", "delta-block.pprof"} == {
        "cpu.pprof", "delta-heap.pprof", "goroutines.pprof", "goroutineswait.pprof", "metrics.json"}, upload.event
    assert total(pprof.Profile(upload.files["delta-heap.pprof"]), "main.keeps", "inuse_objects") == 100
    assert dict(json.loads(upload.files["metrics.json"]))["go_num_goroutine"] > 20


def test_a_second_program_is_a_request_of_its_own(pillion, workdir, run_program):
    running, other = (run_program("local", "-l", "127.0.0.1:0") for _ in range(2))
    with Server(judge=datadog_model.agent) as server:
        sent(pillion, workdir, running, server, "datadog", "-p", other.process.pid)
        uploads = list(server.accepted)
    assert {upload.tag("process_id") for upload in uploads} == {str(one.process.pid) for one in (running, other)}
    assert all("delta-heap.pprof" in upload.files for upload in uploads) and sum("cpu.pprof" in upload.files for upload in uploads) <= 1
    assert len({upload.sequence for upload in uploads}) == 2


def test_pyroscope_gets_each_by_its_name(pillion, workdir, run_program):
    running = run_program("local", "-l", "127.0.0.1:0")
    with Server(judge=pyroscope_model.judge) as server:
        sent(pillion, workdir, running, server, "pyroscope")
        found = {push.labels["__name__"]: push.profile for push in server.accepted if "waitduration/nanoseconds" not in
                 [f"{kind}/{unit}" for kind, unit in push.profile.sample_types]}
    assert set(found) - {"mutex", "block"} == {"process_cpu", "memory", "goroutines"}, found
    assert total(found["memory"], "main.keeps", "inuse_objects") == 100 and total(found["goroutines"], "main.leaks", "goroutine") == 20


@pytest.mark.net
def test_opentelemetry_gets_each_sample_type(pillion, workdir, run_program):
    try:
        release = otlp.release("1.10")
    except otlp.Unavailable as reason:
        pytest.skip(f"tier net: {reason}")
    running = run_program("local", "-l", "127.0.0.1:0")
    with Sink() as sink:
        sent(pillion, workdir, running, sink, "otlp")
        profiles = [profile for request in sink.taken for profile in otlp.check(release.decode(gzip.decompress(request.body)), "1.10")]
    kinds = {profile.kind for profile in profiles}
    assert {"inuse_space/bytes", "inuse_objects/count", "goroutine/count"} <= kinds, kinds


def test_a_server_of_ones_own_gets_each_in_its_place(pillion, workdir, run_program):
    running = run_program("local", "-l", "127.0.0.1:0")
    with Server(judge=keep_all) as server:
        sent(pillion, workdir, running, server, "http")
        found = {request.path: request.body for request in server.accepted}
    assert set(found) - {"/.mutex", "/.block"} == {"/", "/.heap", "/.goroutine", "/.goroutinewait"}, set(found)
    assert total(pprof.Profile(found["/.heap"]), "main.keeps", "inuse_objects") == 100


def test_the_studio_gets_cpu_time_alone(pillion, workdir, run_program):
    running = run_program("local", "-l", "127.0.0.1:0")
    with Server() as server:
        done = sent(pillion, workdir, running, server, "studio", "--token", "SECRET-1")
        assert len(server.accepted) == 1 and done.err.count("takes CPU time alone: profiles of heap") == 1, done


def test_a_folder_is_sent_later(pillion, workdir, run_program):
    """What was carried out of a place without a network: each under its name where it is taken, and the studio is not told of it."""
    running = run_program("local", "-l", "127.0.0.1:0")
    process.run([pillion, "-p", running.process.pid, "-d", 3, "-o", workdir / "out"])
    argv = [pillion, "upload", "-S", "shop", "--token", "SECRET-1"]
    with Server(judge=datadog_model.any_client) as server:
        done = process.run([*argv, "--backend", "datadog", "--server-host", server.url, workdir / "out"])
        names = [event["attachments"] for event, *_ in server.accepted]
    assert done.status == 0 and {"delta-heap.pprof", "goroutines.pprof", "goroutineswait.pprof"} <= {name for one in names for name in one}, (names, done)
    with Server() as server:
        done = process.run([*argv, "--backend", "studio", "--server-host", server.url, workdir / "out"])
        assert done.status == 0 and done.err.count("only CPU time is sent") >= 3 and len(server.accepted) == 1, done


# ---- CPU time by address ----

@pytest.fixture
def busy():
    running = process.start([golang.program("local", "go_busy.go")])
    process.until(lambda: ":" in running.out, 20, lambda: running.err)
    running.url = f"http://{running.out.split()[0]}/debug/pprof/profile"
    yield running
    running.end()


CPU = ["--perf-mode", "disabled", "--go-mode", "endpoint-cpu"]


def test_cpu_time_is_that_of_the_process(pillion, workdir, busy):
    """Shares by the program's own recorder, the sum by the system's accounting; afterwards the recorder is free."""
    done = process.run([pillion, *CPU, "-p", busy.pid, "-d", 14, "-o", workdir])
    profile = pprof.last(workdir)
    print(done, profile.share("main.one"), profile.share("main.three"))
    assert abs(profile.share("main.one") - .25) < .06 and abs(profile.share("main.three") - .75) < .06, done
    assert abs(profile.total("cpu") / 1e9 - 14) < 2.5 or profile.total("cpu") / 1e9 < 14, done
    process.until(lambda: subprocess.run(["curl", "-sf", "-o", "/dev/null", f"{busy.url}?seconds=1"]).returncode == 0, 10)


def test_a_recorder_in_use_is_left_to_its_user(pillion, workdir, busy):
    """The other's profile is whole; ours says why it has none."""
    other = process.start(["curl", "-sf", "-o", workdir / "other", f"{busy.url}?seconds=6"])
    time.sleep(.5)
    done = process.run([pillion, *CPU, "-p", busy.pid, "-d", 4, "-o", workdir / "out"])
    assert "cpu profiling already in use" in done.err, done
    assert other.finish(20).status == 0 and pprof.read(workdir / "other").total("cpu") > 1e9


# ---- other servers ----

def test_other_servers_have_one_connection(pillion, workdir):
    """They are asked in two runs' windows, of several seconds each; what none of them is, is told to nobody twice."""
    program = golang.program("local", "go_servers.go")
    read, write = os.pipe()
    running = process.start([program], stdin=read)
    process.until(lambda: "ready" in running.out, 20, lambda: running.err)
    watching = process.start([pillion, "-p", running.pid, "-c", "-d", 2, "-o", workdir])
    process.until(lambda: len(list(workdir.glob("profile_*.col"))) >= 3, 40, lambda: watching.err, 0.1)
    watching.signal(15)
    watching.finish(30)
    os.write(write, b"\n")
    process.until(lambda: "tls" in running.out, 20, lambda: running.err)
    words = running.out.split()[1:]
    assert dict(zip(words[::2], map(int, words[1::2]))) == {"echo": 1, "silent": 1, "http2": 1, "logs": 1, "tls": 1}, words
    os.close(write)
    running.finish(20)


def test_who_has_no_pprof_has_none(pillion, workdir):
    """Its own table of functions says so: nobody knocks."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(.01)
        running = process.start([golang.program("local", "go_profiles.go")], pass_fds=(listener.fileno(),))
        process.until(lambda: "ready" in running.out, 20, lambda: running.err)
        process.run([pillion, "-p", running.pid, "-d", 3, "-o", workdir])
        with pytest.raises(TimeoutError):
            listener.accept()
        running.end()

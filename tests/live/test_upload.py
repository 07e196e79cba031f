"""Windows arrive: whatever the server does, each once, with its own times, and no secret anywhere but in the request.

The process that is profiled sleeps; windows are ended by SIGUSR1, so that ten of them take a second.
"""
import contextlib
import gzip
import json
import os
import re
import resource
import shutil
import signal
import ssl
import sys
import time
from pathlib import Path

import pytest

from lab import fuse, process, profiler, pyroscope_model, uploading
from lab.sink import Sink, free_port
from lab.studio_server import Server
from lab.uploading import BUSY, WINDOWS, Run, sent_kept_lost, sequences, starts, until_taken

pytestmark = pytest.mark.measures
WIDE = "tests/live/programs/python/wide.py"

# ---- The ordinary way

def test_windows_arrive_and_are_no_files(pillion, workdir):
    """With -u alone nothing is written; each window is what its own times say."""
    with Sink() as sink:
        before = set(os.listdir("."))
        run = Run(pillion, "--server-host", sink.url + WINDOWS, env={**os.environ, "TMPDIR": str(workdir)})
        run.window(2)
        until_taken(sink, 2, run)
        said = run.end()
        assert sorted(sequences(sink)) == [1, 2, 3]
        assert sent_kept_lost(said) == (3, 0, 0)
        assert ", to http every " in said and "sent=0 waiting=0" in said
        assert set(os.listdir(".")) == before
        for request in sink.taken:
            assert request.method == "PUT" and gzip.decompress(request.body)
            assert re.fullmatch(r"\d{8}T\d{6}Z", request.path.split("/")[2])


def test_counts_are_in_the_header_and_the_summary(pillion, workdir):
    with Sink() as sink:
        run = Run(pillion, "--server-host", sink.url + WINDOWS, "-o", workdir, "--format", "col")
        run.window()
        until_taken(sink, 1, run)
        time.sleep(0.3)  # until the answer has come
        run.window()
        assert "sent=0 waiting=0" in run.summaries[0] and "sent=1 waiting=0" in run.summaries[1]
        until_taken(sink, 2, run)
        time.sleep(0.3)
        run.end()
    newest = max(workdir.glob("profile_*.col"), key=lambda path: path.stat().st_mtime_ns)
    header = json.loads(newest.read_text().split("\n")[0][2:])
    uploads = header["pillion"]["uploads"]
    assert 0 < uploads.pop("cpu_ns") < 1e9
    assert uploads == {"sent": 2, "waiting": 0, "dropped": 0, "failures": 0}


def test_a_command_is_uploaded_at_its_end(pillion, program, workdir):
    """In both shapes: the last window, which is the only one, is sent before the profiler ends."""
    for launch in ("exec", "init"):
        with Sink() as sink:
            done = process.run([pillion, "-u", "--backend", "http", "--server-host", sink.url + WINDOWS, "--launch", launch,
                                "--", program("act"), "spin", "0.2"], cwd=workdir)
            process.settle(15)
            assert done.status == 0 and sequences(sink) == [1], done
            assert not list(workdir.iterdir())


@pytest.mark.parametrize("spool", [False, True])
def test_the_window_so_far_is_sent_before_the_parent_tells_that_the_command_ended(pillion, program, workdir, spool):
    """A container may end with it, its spool as well, while something else of the command runs on."""
    slow = (200, {}, b"")
    with Sink([lambda request: (time.sleep(0.6), slow)[1]]) as sink:
        done = process.run([pillion, "-u", "--backend", "http", "--server-host", sink.url + WINDOWS, "--launch", "init",
                            *(["--spool-dir", workdir / "spool"] if spool else []), "--", "sh", "-c",
                            '"$0" spin 3 >/dev/null 2>&1 & sleep 0.4; exit 3', program("act")], cwd=workdir)
        assert done.status == 3 and sequences(sink) == [1], done
        process.settle(20)
        assert sequences(sink) == [1, 2], done


def test_without_a_token_files_are_written(pillion, program, workdir):
    done = process.run([pillion, "-u", "--backend", "studio", "--server-host", "http://127.0.0.1:9", "--",
                        program("act"), "spin", "0.1"], cwd=workdir)
    process.settle(15)
    assert "studio needs a token: set PILLION_TOKEN_FILE; windows are written to files instead" in done.err, done
    assert (workdir / "last_profile.col").exists() and done.status == 0


def test_who_attaches_to_upload_is_told_that_there_is_no_address(pillion, workdir):
    """A sidecar without its variables ends at once; with a folder it has something to do."""
    without = {name: value for name, value in os.environ.items() if not name.startswith(("PILLION_", "GPROFILER_"))}
    done = process.run([pillion, "-a", "-cu"], cwd=workdir, env=without)
    assert (done.status, done.err) == (1, "pillion: studio needs an address: give --server-host URL\n"), done
    assert not list(workdir.iterdir())
    done = process.run([pillion, "-p", str(os.getpid()), "-u", "-d", "1", "-o", workdir, "--format", "col"], env=without)
    assert done.status == 0 and "windows are written to files instead" in done.err, done
    assert (workdir / "last_profile.col").exists()


# ---- The services, by their models

def test_all_back_ends_at_once(pillion):
    """Each takes every window in its own form, however it failed before; the models are strict."""
    with Server([500, "ok", 413]) as studio, Server(["cut"], judge=pyroscope_model.judge) as pyroscope, Sink() as sink:
        run = Run(pillion, "--server-host", f"studio={studio.url},pyroscope={pyroscope.url},http={sink.url}{WINDOWS}",
                  "--token", "studio=SECRET-1,http=SECRET-2", "-S", "checkout", "-E", "staging", "-T", "team:pay", "-f", 499,
                  backend="studio,pyroscope,http", command=(sys.executable, "-c", BUSY))
        for count in (1, 2):
            time.sleep(0.5)  # a window of one stack cannot be made smaller: 413 refuses it
            run.window()
            assert studio.wait(accepted=count) and pyroscope.wait(accepted=count), (studio.statuses, pyroscope.statuses, run.err)
        time.sleep(0.5)
        said = run.end()
        assert sent_kept_lost(said) == (9, 0, 0)
        assert len(studio.accepted) == len(pyroscope.accepted) == len(sink.taken) == 3, said
        assert [upload.gpid for upload in studio.accepted] == ["", "", "4711"]  # forgotten with a failure
        assert {upload.service for upload in studio.accepted} == {"checkout"} and studio.accepted[0].total > 10
        assert sorted(upload.start_time for upload in studio.accepted) == [upload.start_time for upload in studio.accepted]
        assert dict(pyroscope.accepted[0].labels)["env"] == "staging" and dict(pyroscope.accepted[0].labels)["team"] == "pay"
        # A secret goes to its own back end.
        assert "SECRET" not in str([request.headers for request in pyroscope.requests])
        assert {request.headers["authorization"] for request in sink.taken} == {"Bearer SECRET-2"}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return uploading.certificate(tmp_path_factory.mktemp("tls"))


def test_over_tls_a_server_has_to_be_trusted(pillion, certificate):
    """Not at first; then what was wrong is put right in the file, and HUP reads it again."""
    path, context = certificate
    wrong = path.with_name("given.pem")
    wrong.write_text("-----BEGIN CERTIFICATE-----\n")
    with Sink(tls=context) as sink:
        run = Run(pillion, "--server-host", sink.url + WINDOWS, "--ca-file", wrong)
        process.until(lambda: "contains no usable certificate" in run.err, 10, lambda: run.err)
        run.window()
        process.until(lambda: "later every 5 minutes" in run.err, 10, lambda: run.err)
        wrong.write_bytes(path.read_bytes())
        run.pillion.signal(signal.SIGHUP)
        until_taken(sink, 1, run)
        assert sent_kept_lost(run.end()) == (2, 0, 0)
        loud = Run(pillion, "--server-host", sink.url + WINDOWS, "--no-verify")
        assert "--no-verify: anyone between here and the server" in loud.err
        loud.end()
        assert len(sink.taken) == 3


def test_a_server_that_wants_tls_13(pillion, workdir):
    """It is refused once, and each window arrives."""
    path, context = uploading.certificate(workdir)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    with Sink(tls=context) as sink:
        run = Run(pillion, "--server-host", sink.url + WINDOWS, "--ca-file", path)
        for count in (1, 2, 3):  # of three that wait for a handshake the second would keep a fleet's pace
            run.window()
            until_taken(sink, count, run)
        assert sent_kept_lost(run.end()) == (4, 0, 0)
    assert "TLS" not in run.err, run.err


def test_a_token_over_plain_http_to_another_machine_is_one_warning(pillion):
    for address, words in (("http://192.0.2.1:9/", "http: the token is sent to another machine over plain http"),
                           ("192.0.2.1:8080", "http: the address has no scheme, which means http:// here: the token")):
        run = Run(pillion, "--server-host", address, "--token", "SECRET-1")
        run.end()
        assert run.err.count("in between can read it: give an https:// address") == 1
        assert f"pillion: warning: {words}" in run.err
        assert "SECRET-1" not in run.err
    with Sink() as sink:
        run = Run(pillion, "--server-host", sink.url + WINDOWS, "--token", "SECRET-1")
        run.end()
        assert "plain http" not in run.err and "no scheme" not in run.err
    run = Run(pillion, "--server-host", "https://192.0.2.1:9", "--api-server", "http://192.0.2.1:9", "--token", "SECRET-1",
              backend="studio")
    run.end()
    assert run.err.count("warning: --api-server: the token is sent to another machine over plain http") == 1
    assert "studio: the token" not in run.err
    done = process.run([pillion, "upload", "--dry-run", "--backend", "http", "--server-host", "192.0.2.1:8080/x",
                        "tests/fuzz/pprof_read/pillion.pprof"])
    assert done.status == 0 and done.err.count("http: the address has no scheme, which means http:// here: write it") == 1


# ---- Faults: every window arrives once

FAULTS = {
    "status 500 and 503": [500, 503],
    "429 with Retry-After": [(429, {"Retry-After": "1"}, b"slower")],
    "slow reader": ["slow"],
    "cut in the body": ["cut"],
    "half an answer": ["half"],
    "a lying length": ["lie"],
}


@pytest.mark.parametrize("script", FAULTS.values(), ids=[name.replace(" ", "-") for name in FAULTS])
def test_a_fault_delays_and_loses_nothing(pillion, script):
    with Sink(script) as sink:
        run = Run(pillion, "--server-host", sink.url + WINDOWS)
        run.window()
        process.until(lambda: not sink.script, 10, "the server has misbehaved")
        failed = time.monotonic()
        until_taken(sink, 1, run)
        said = run.end()
        assert sorted(set(sequences(sink))) == [1, 2], said
        assert sent_kept_lost(said) == (2, 0, 0)
        if "slow" not in script:
            assert said.count("upload to http failed: ") == 1, said  # once per cause, figures apart
            assert "upload to http works again" in said
        if isinstance(script[0], tuple):
            assert sink.taken[0].moment - failed >= 0.9


def test_an_answer_that_never_comes_holds_up_one_back_end_alone(pillion):
    """The other one goes on; the first one's window is sent again when the patience with it is over."""
    with Sink(["mute"]) as mute, Sink() as other:
        run = Run(pillion, "--server-upload-timeout", 6, "--server-host",
                  f"http={mute.url}{WINDOWS},pyroscope={other.url}", backend="http,pyroscope")
        run.window(2)
        until_taken(other, 2, run)
        assert not mute.taken
        run.pillion.signal(signal.SIGHUP)  # the older one need not wait for the backlog's pace
        until_taken(mute, 2, run)
        said = run.end()
        assert sorted(sequences(mute)) == [1, 2, 3] and len(other.taken) == 3, said
        assert sent_kept_lost(said) == (6, 0, 0)


def test_the_end_waits_no_longer_than_its_grace(pillion):
    with Sink(["mute", "mute", "mute"]) as sink:
        run = Run(pillion, "--server-host", sink.url + WINDOWS)
        run.window()
        process.until(lambda: sink.seen, 10, "the request arrives")
        begin = time.monotonic()
        said = run.end()
        assert 4 < time.monotonic() - begin < 15
        assert sent_kept_lost(said) == (0, 0, 2)


def test_what_is_refused_for_ever_is_dropped_and_said(pillion):
    with Sink([400]) as sink:
        run = Run(pillion, "--server-host", sink.url + WINDOWS)
        run.window()
        process.until(lambda: "http rejected a window, which is lost: " in run.err, 10, lambda: run.err)
        run.window()
        until_taken(sink, 1, run)
        said = run.end()
        assert sequences(sink) == [2, 3] and sent_kept_lost(said) == (2, 0, 1)


@pytest.mark.exact
def test_a_wrong_token_waits_for_somebody_and_hup_tries_at_once(pillion, workdir):
    """The file is read again, so that a token that was renewed is used without a restart."""
    token = workdir / "token"
    token.write_text("SECRET-old\n")
    with Sink([403]) as sink:
        run = Run(pillion, "--server-host", sink.url + WINDOWS, "--token-file", token)
        run.window()
        process.until(lambda: "later every 5 minutes" in run.err, 10, lambda: run.err)
        run.window(2)
        time.sleep(1.5)
        assert len(sink.seen) == 1  # more windows do not ask earlier
        token.write_text("SECRET-new\n")
        run.pillion.signal(signal.SIGHUP)
        until_taken(sink, 3, run)
        said = run.end()
        assert sequences(sink)[:3] == [3, 1, 2], sequences(sink)  # the newest, then the oldest first
        assert {"SECRET-new" in request.headers["authorization"] for request in sink.taken} == {True}
        assert said.count("upload to http failed") == 1 and sent_kept_lost(said) == (4, 0, 0)


def test_what_is_too_large_is_made_smaller(pillion):
    limits = []

    def small(request):
        limits.append(len(request.body))
        return 413 if len(request.body) > limits[0] * 0.8 or len(limits) == 1 else 200

    with Sink([small] * 12) as sink:
        run = Run(pillion, "--server-host", sink.url + WINDOWS, "-f", 999, command=(sys.executable, "-c", BUSY))
        time.sleep(1)
        run.window()
        until_taken(sink, 1, run)
        run.end()
        assert limits[1] < limits[0] and b"[dropped to fit]" in gzip.decompress(sink.taken[0].body), limits


# ---- Many of us

def test_windows_that_end_together_are_sent_apart(pillion, workdir):
    """Each run sends its windows after an offset within the period. The files do not wait for it."""
    period, runs = 2, range(4)
    since = time.time() - time.monotonic()
    with Sink() as sink:
        target = process.start(["sleep", "60"])
        started = [process.start([pillion, "-p", target.pid, "-c", "-d", period, "-u", "--backend", "http", "--server-host",
                                  f"{sink.url}/{i}/{{start}}/{{sequence}}", "-o", workdir / str(i), "--format", "col"])
                   for i in runs]
        process.until(lambda: {path.split("/")[1] for path in (r.path for r in sink.taken)} == set(map(str, runs)), 30, "one of each")
        for run in started:
            run.signal(signal.SIGTERM)
        said = [run.finish().err for run in started]
        target.end()
    sent = {request.path.split("/")[1]: request.moment + since for request in reversed(sink.taken)
            if request.path.endswith("/1")}
    written = {str(i): min(path.stat().st_mtime for path in (workdir / str(i)).glob("profile_*.col")) for i in runs}
    offsets = [sent[i] - written[i] for i in sent]
    assert len(offsets) == len(runs) and -1 < min(offsets) and 0.1 < max(offsets) < period + 2, offsets
    assert all(sent_kept_lost(text)[1:] == (0, 0) for text in said), said


def test_a_short_run_takes_one_file_of_an_earlier_one_along(pillion, program, workdir):
    """It ends before the backlog's moment has come: one for the window that was taken, so that the spool does not grow."""
    spool = workdir / "spool"
    with Sink([500] * 3) as sink:
        for _ in range(2):
            done = process.run([pillion, "-u", "--backend", "http", "--server-host", sink.url + WINDOWS, "--spool-dir", spool,
                                "--", program("act"), "spin", "0.2"], cwd=workdir)
            process.settle(15)
            assert done.status == 0, done
            sink.script = []
        assert not list(spool.glob("*.pprof")) and len(sink.taken) == 2, (done, list(spool.iterdir()))


# ---- Outages

def test_memory_keeps_an_hour_of_windows(pillion):
    """Without a spool; the process that is profiled works, so that windows have stacks."""
    port = free_port()
    run = Run(pillion, "--server-host", f"http://127.0.0.1:{port}{WINDOWS}", command=(sys.executable, "-c", BUSY))
    for _ in range(64):
        time.sleep(0.05)
        run.window()
    assert run.err.count("upload to http failed") == 1 and "sent=0 waiting=63" in run.err, run.err
    with Sink(port=port) as sink:
        run.pillion.signal(signal.SIGHUP)  # which does not wait for the back-off
        until_taken(sink, 64, run, 60)
        said = run.end()
        assert sequences(sink) == [64, *range(1, 64), 65], sequences(sink)
        assert sent_kept_lost(said) == (65, 0, 0)


def test_what_memory_has_no_room_for_is_counted(pillion):
    """Windows of many stacks, and 8 MB: the oldest are lost, and each is told."""
    run = Run(pillion, "--server-host", f"http://127.0.0.1:{free_port()}{WINDOWS}", "--max-memory", 8, "-f", 499, "--max-cpu", 100,
              command=(sys.executable, WIDE, "60", "2500"))
    for _ in range(40):
        before = process.cpu_seconds(run.target.pid)
        process.until(lambda: process.cpu_seconds(run.target.pid) > before + 0.25, 20)
        run.window()
        if "the queue in memory is full" in run.err:
            break
    assert "the queue in memory is full, the oldest windows are lost; give --spool-dir" in run.err
    sent, kept, lost = sent_kept_lost(run.end())
    assert (sent, kept, lost) == (0, 0, run.windows)


def test_one_404_costs_seconds_and_no_window(pillion):
    """A moment of a deployment: it is asked again after 15 to 30 s, not after five minutes."""
    with Sink([404]) as sink:
        run = Run(pillion, "--server-host", sink.url + WINDOWS)
        run.window()
        process.until(lambda: "upload to http failed" in run.err, 10, lambda: run.err)
        began = time.monotonic()
        until_taken(sink, 1, run, 40)
        assert 14 < time.monotonic() - began < 35
        assert re.search(r"next try in (1[5-9]|2\d|30) s, later every 5 minutes, and on HUP", run.err), run.err
        assert sent_kept_lost(run.end())[2] == 0


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_spool_that_is_removed_is_counted(pillion, workdir, what):
    """Somebody clears a volume while the server is away: what only files had is lost, and is told."""
    port, spool = free_port(), workdir / "spool"
    run = Run(pillion, "--server-host", f"http://127.0.0.1:{port}{WINDOWS}", "--spool-dir", spool)
    run.window(7)
    if what == "folder":
        shutil.rmtree(spool)
        run.window()
        process.until(lambda: f"the spool {spool} was removed, and windows with it: 3" in run.err, 10, lambda: run.err)
        assert "unsent windows are kept in memory only" in run.err
    else:
        for path in sorted(spool.glob("*.pprof"))[:2]:
            path.unlink()
    with Sink(port=port) as sink:
        run.pillion.signal(signal.SIGHUP)
        until_taken(sink, 5, run)
        said = run.end()
        assert sent_kept_lost(said) == (run.windows - (3 if what == "folder" else 2), 0, 3 if what == "folder" else 2), said


@pytest.mark.root
def test_a_window_is_in_the_spool_before_it_is_a_file(pillion, workdir):
    """Where files go does not answer: a kill then leaves the window in the spool."""
    reason = fuse.missing()
    if reason:
        pytest.skip(reason)
    spool, out = workdir / "spool", workdir / "out"
    out.mkdir()
    run = Run(pillion, "--server-host", f"http://127.0.0.1:{free_port()}{WINDOWS}", "--spool-dir", spool, "-o", out)
    run.window()  # the folder was tried by then
    with fuse.mounted(out, "x", "/bin/true") as server:
        server.freeze()
        run.pillion.signal(signal.SIGUSR1)
        process.until(lambda: list(spool.glob("*-000002-http.pprof")), 10, lambda: run.err)
        run.pillion.signal(signal.SIGKILL)
        server.thaw()
        run.kill()
    assert len(list(spool.glob("*.pprof"))) == 2


def test_a_spool_keeps_all_windows_of_an_outage(pillion, workdir):
    """Ten windows while the server is down: all arrive, once, the newest first, then the oldest first."""
    port, spool = free_port(), workdir / "spool"
    run = Run(pillion, "--server-host", f"http://127.0.0.1:{port}{WINDOWS}", "--spool-dir", spool)
    run.window(10)
    files = sorted(path.name for path in spool.iterdir() if path.name != "lock")
    assert len(files) == 10 and all(re.fullmatch(r"\d{13}-\d{6}-http\.pprof", name) for name in files), files
    assert spool.stat().st_mode & 0o777 == 0o700
    assert {(spool / name).stat().st_mode & 0o777 for name in files} == {0o600}
    with Sink(port=port) as sink:
        run.pillion.signal(signal.SIGHUP)
        until_taken(sink, 10, run)
        process.until(lambda: [p.name for p in spool.iterdir()] == ["lock"], 5, "the spool is empty")
        said = run.end()
        assert sequences(sink) == [10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11], sequences(sink)
        assert sent_kept_lost(said) == (11, 0, 0)


def test_a_killed_profiler_loses_nothing(pillion, workdir):
    """SIGKILL with a full spool; the next one sends it all with the original times."""
    port, spool = free_port(), workdir / "spool"
    url = f"http://127.0.0.1:{port}{WINDOWS}"
    run = Run(pillion, "--server-host", url, "--spool-dir", spool)
    run.window(5)
    run.kill()
    told = sorted(path.name for path in spool.glob("[0-9]*-http.pprof"))
    whole, now = (spool / told[0]).read_bytes(), int(time.time() * 1000)
    # What a power cut may leave, older than the whole ones: nothing, the first page alone, the length without the bytes, cut.
    damaged = [b"", whole[:4096] if len(whole) > 4096 else whole[:64], bytes(len(whole)), whole[:-3]]
    for i, content in enumerate(damaged):
        (spool / f"{now - 60000 + i}-000042-http.pprof").write_bytes(content)
    (spool / f".{now}-000042-http.pprof.tmp").write_bytes(b"never finished")
    large = spool / f"{now - 70000}-000001-http.pprof"  # of a run that had more memory
    large.write_bytes(whole + bytes((8 << 20) + 4096))  # more than the longest head
    with Sink(port=port) as sink:
        second = Run(pillion, "--server-host", url, "--spool-dir", spool)
        second.pillion.signal(signal.SIGHUP)  # which does not wait for its second of the minute
        until_taken(sink, 5, second)
        said = second.end()
        assert sequences(sink) == [1, 2, 3, 4, 5, 1]
        assert "a file of the spool is cut or damaged" in said and "it is no file of a spool and was removed" in said
        assert "larger than an eighth of --max-memory: they stay there" in said
        assert sent_kept_lost(said) == (6, 1, 4), said
        for name, start in zip(told, starts(sink)):
            moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(int(name[:13]) // 1000))
            assert start == moment
    assert list(spool.glob("[0-9]*")) == [large]


def test_two_profilers_share_a_spool_folder(pillion, workdir):
    port, spool = free_port(), workdir / "spool"
    url = f"http://127.0.0.1:{port}{WINDOWS}"
    first, second = (Run(pillion, "--server-host", url, "--spool-dir", spool) for _ in range(2))
    first.window(2)
    second.window(2)
    assert len(list((spool / "2").glob("*.pprof"))) == 2
    second.kill()
    first.kill()
    with Sink(port=port) as sink:
        third = Run(pillion, "--server-host", url, "--spool-dir", spool)
        third.pillion.signal(signal.SIGHUP)
        until_taken(sink, 4, third)
        third.end()
        assert sorted(sequences(sink)) == [1, 1, 1, 2, 2]


def test_windows_for_another_address_stay(pillion, workdir):
    spool = workdir / "spool"
    run = Run(pillion, "--server-host", f"http://127.0.0.1:{free_port()}{WINDOWS}", "--spool-dir", spool)
    run.window(2)
    run.kill()
    kept = sorted(spool.glob("*.pprof"))
    with Sink() as sink:
        second = Run(pillion, "--server-host", sink.url + WINDOWS, "--spool-dir", spool)
        second.pillion.signal(signal.SIGHUP)
        process.until(lambda: "for another address of http" in second.err, 10, lambda: second.err)
        second.end()
        assert len(sink.taken) == 1 and sorted(spool.glob("*.pprof")) == kept
        done = process.run([pillion, "upload", "--backend", "http", "--server-host", sink.url + WINDOWS, *kept])
        assert done.status == 0 and len(sink.taken) == 3, done


def test_a_spool_has_a_bound_and_the_oldest_go_first(pillion, workdir):
    """A thousand files; what is a week old goes whatever there is. The server is down."""
    spool = workdir / "spool"
    spool.mkdir(0o700)
    now = int(time.time() * 1000)
    names = [f"{now - 8 * 86400_000}-000001-studio.col", *(f"{now - 3600_000 + i}-000001-studio.col" for i in range(1003))]
    for name in names:
        (spool / name).touch()
    run = Run(pillion, "--server-host", f"http://127.0.0.1:{free_port()}{WINDOWS}", "--spool-dir", spool)
    run.window()
    run.kill()
    left = sorted(path.name for path in spool.iterdir() if path.name != "lock")
    assert len(left) == 1000 and left[:-1] == names[5:] and left[-1].endswith("-000001-http.pprof"), left[:9]
    assert "gave up a window: it is too old" in run.err and "--spool-max is reached, or a tenth of the free disk, or 1000 files" in run.err


@pytest.mark.root
def test_a_full_disk_falls_back_to_memory(pillion, workdir):
    """A small file system that others have filled: one warning, and nothing is lost while the server is there."""
    script = 'mount -t tmpfs -o size=64k none "$0" && { head -c 1000000 /dev/zero > "$0/full" 2>/dev/null; exec "$@"; }'
    with Sink() as sink:
        target = process.start(["sleep", "60"])
        run = process.start(["unshare", "--mount", "sh", "-c", script, workdir, pillion, "-p", target.pid, "-c", "-d", 600,
                             "-u", "--backend", "http", "--server-host", sink.url + WINDOWS, "--spool-dir",
                             workdir / "spool"])
        process.until(lambda: " profiles pid " in run.err, 10, lambda: run.err)
        for count in (1, 2):
            run.signal(signal.SIGUSR1)
            until_taken(sink, count)
        run.signal(signal.SIGTERM)
        done = run.finish()
        target.end()
        assert done.err.count("unsent windows are kept in memory only") == 1, done
        assert sequences(sink) == [1, 2, 3] and sent_kept_lost(done.err) == (3, 0, 0)


# ---- Secrets

SECRET = "SECRET-7f3a9c"


def places_of(pid):
    """What others can read of a process."""
    for name in ("cmdline", "environ"):
        yield name, Path(f"/proc/{pid}/{name}").read_bytes()


@pytest.mark.exact
@pytest.mark.parametrize("how", ["option", "attached", "file", "environment", "header"])
def test_a_secret_is_in_the_request_and_nowhere_else(pillion, workdir, how):
    token = workdir / "token"
    token.write_text(SECRET + "\n")
    token.chmod(0o600)
    options = {"option": ["--token", SECRET], "attached": [f"--token={SECRET}"], "file": ["--token-file", token],
               "environment": [], "header": ["--header", f"X-Key: {SECRET}"]}[how]
    env = {**os.environ, **({"PILLION_TOKEN": SECRET} if how == "environment" else {})}
    echo = (500, {}, f"your key {SECRET} is fine, we are not".encode())
    spool, out = workdir / "spool", workdir / "out"
    with Sink([echo]) as sink:
        run = Run(pillion, "--server-host", sink.url + WINDOWS, "--spool-dir", spool, "-o", out, "-v",
                  "--format", "col,html,pprof,speedscope", *options, env=env)
        for name, text in places_of(run.pillion.pid):
            assert SECRET.encode() not in text, name
        limits = Path(f"/proc/{run.pillion.pid}/limits").read_text()
        assert re.search(r"Max core file size +[01] +[01] ", limits), limits
        run.window()
        process.until(lambda: "upload to http failed" in run.err, 10, lambda: run.err)
        files = [path for path in workdir.rglob("*") if path.is_file() and path != token]
        assert any("spool" in str(path) for path in files) or sink.taken
        for path in files:
            with contextlib.suppress(FileNotFoundError):  # of the spool: the second try was taken meanwhile
                assert SECRET.encode() not in path.read_bytes(), path
        until_taken(sink, 1, run)
        said = run.end()
        assert SECRET not in said, said
        assert any(SECRET in value for value in sink.taken[0].headers.values())
        assert SECRET not in sink.taken[0].target and SECRET.encode() not in gzip.decompress(sink.taken[0].body)


@pytest.mark.exact
@pytest.mark.parametrize("launch", ["exec", "init"])
def test_no_process_of_a_run_shows_the_secret(pillion, workdir, launch):
    with Sink() as sink:
        started = process.start([pillion, "-u", "--backend", "http", "--server-host", sink.url + WINDOWS, "--token",
                                 SECRET, "--launch", launch, "--", "sleep", "5"], cwd=workdir)
        found = profiler.find(started, pillion)
        cores = resource.getrlimit(resource.RLIMIT_CORE)

        def all_of_them():
            return {started.pid, found, *process.descendants_of(started.pid)}

        process.until(lambda: "sleep 5" in map(process.command_line, all_of_them()), what="the command")
        commands = []
        for pid in all_of_them():
            try:
                for name, text in places_of(pid):
                    assert SECRET.encode() not in text, (pid, name)
            except (FileNotFoundError, ProcessLookupError):
                # one that pillion starts for a moment may have ended, the command and the profiler may not
                assert pid not in (started.pid, found)
                continue
            commands.append(process.command_line(pid))
            if commands[-1] == "sleep 5":
                limits = Path(f"/proc/{pid}/limits").read_text()
                soft = "unlimited" if cores[0] < 0 else str(cores[0])
                assert re.search(rf"Max core file size +{soft} ", limits), limits
        done = started.finish()
        process.settle(15)
        assert "sleep 5" in commands
        assert SECRET not in done.err and sequences(sink) == [1], done


# ---- pillion upload

def test_saved_profiles_are_sent_later(pillion, program, workdir):
    session = profiler.profile(pillion, workdir / "out", [program("act"), "spin", "0.3"])
    files = sorted((workdir / "out").glob("profile_*.[cp]*"))
    assert [path.suffix for path in files] == [".col", ".pprof"], session.done
    header = session.col.header
    with Sink() as sink:
        done = process.run([pillion, "upload", "--backend", "http", "--server-host", sink.url + WINDOWS, *files])
        assert done.status == 0 and len(sink.taken) == 2, done
        assert f"{files[0]}: sent to http" in done.err
        start = header["start_time"].replace("-", "").replace(":", "") + "Z"
        assert starts(sink) == [start, start]
        assert sink.taken[1].body == files[1].read_bytes()


@pytest.mark.root
def test_a_file_of_another_machine_tells_of_that_one(pillion, program, workdir):
    """All that the studio asks for stands in the file: what it says of its machine is not this one's."""
    renamed = ["unshare", "--uts", "sh", "-c", 'hostname far-1; exec "$@"', "sh"]
    session = profiler.profile(pillion, workdir / "out", [program("act"), "spin", "0.2"], prefix=renamed)
    told = session.col.header["metadata"]
    assert told["hostname"] == "far-1" and told["pid"] > 1 and told["kernel_release"] == os.uname().release, told
    assert told["spawn_time"] <= told["current_time"] and told["processors"] == os.cpu_count(), told
    (workdir / "old.col").write_text('# {"containers": [], "container_names_enabled": true, "application_metadata_enabled": true, '
                                      '"application_metadata": [null], "metadata": {"hostname": "far-2"}}\n0;;sh;main 2')
    with Server() as studio:
        sends = [pillion, "upload", "--backend", "studio", "--server-host", studio.url, "--token", "SECRET-1", "-T", "team:pay"]
        done = process.run([*sends, workdir / "out" / "last_profile.col", workdir / "old.col"])
        assert done.status == 0, done
        new, old = studio.accepted
        sent = new.header["metadata"]
        assert {name: sent[name] for name in told if name != "run_arguments"} == {
            name: value for name, value in told.items() if name != "run_arguments"}
        assert [request.query["hostname"] for request in studio.requests] == ["far-1", "far-2"]
        assert new.service == "act" and sent["tags"] == {"team": "pay"}
        # Of what a file does not tell nothing is made up from here.
        sent = old.header["metadata"]
        assert (sent["hostname"], sent["private_ip"], sent["kernel_release"]) == ("far-2", "0.0.0.0", "unknown"), sent
        assert sent["mac_address"].startswith("02:") and sent["cloud_provider"] == "Unknown" and sent["processors"] == 1, sent


@pytest.mark.exact
def test_a_dry_run_shows_the_request_without_the_secret(pillion, program, workdir):
    profiler.profile(pillion, workdir / "out", [program("act"), "spin", "0.1"])
    with Sink() as sink:
        done = process.run([pillion, "upload", "--dry-run", "--backend", "http,pyroscope", "--server-host",
                            sink.url + "/x/{sequence}", "--token", f"http={SECRET},pyroscope={SECRET}",
                            workdir / "out" / "last_profile.pprof"])
        assert done.status == 0 and not sink.seen, done
        assert "PUT /x/1 HTTP/1.1" in done.out and "POST " in done.out and SECRET not in done.out + done.err
        assert SECRET not in done.out


@pytest.mark.exact
def test_upload_says_what_is_wrong(pillion, workdir):
    (workdir / "x.txt").write_bytes(b"\0nothing")
    done = process.run([pillion, "upload"])
    assert done.status == 2 and "wrong arguments for upload; usage: pillion upload FILE|DIR..." in done.err
    done = process.run([pillion, "upload", "--backend", "http", "--server-host", "http://127.0.0.1:9/x", workdir / "x.txt",
                        workdir / "none"])
    assert done.status == 1 and "x.txt: " in done.err and "cannot open" in done.err, done
    done = process.run([pillion, "upload", "--backend", "http", workdir / "x.txt"])
    assert done.status == 2 and "http needs an address: give --server-host URL" in done.err, done

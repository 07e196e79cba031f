"""What uploads may not cost, whatever the network and the disk do: a window, a sample, memory beyond the budget."""
import contextlib
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from lab import col, link, process, pyroscope_model, stalls, studio_model, uploading, webserver
from lab.sink import Sink, free_port
from lab.studio_server import Server
from lab.uploading import BUSY, WINDOWS, Run, sent_kept_lost

pytestmark = pytest.mark.measures

WIDE = "tests/live/programs/python/wide.py"
BRANCHING = "tests/live/programs/python/branching.py"
NAMESERVER = "tests/lab/nameserver.py"
STALL = 0.1  # what is waited for here takes half a second; a machine that is busy keeps anybody off his CPU for some 0.02
# Where the sampler's thread waits for the next round.
ROUND = ("ppoll",)
# Where a catcher waits for the next tick, with perf events and without.
TICKS = ("clock_nanosleep", "ppoll")


def works(pid, seconds):
    """Until it has used so much CPU time from now on."""
    before = process.cpu_seconds(pid)
    process.until(lambda: process.cpu_seconds(pid) > before + seconds, 60, f"{seconds} s of CPU time")


@pytest.mark.root
def test_over_a_slow_link_windows_of_hundreds_of_kilobytes_arrive_once(pillion, workdir):
    """A true link of 1 MB/s: each window needs a good part of a second, and the sampler does not notice."""
    reason = link.missing()
    if reason:
        pytest.skip(f"no slow link can be made here: {reason}")
    with link.Server() as server:
        run = Run(pillion, "-f", 499, "--max-cpu", 100, "--server-host", server.url + WINDOWS, "-o", workdir, "--format", "col",
                  command=(sys.executable, WIDE, "60", "4000"), prefix=link.prefix(server, 1000000))
        before = process.cpu_seconds(run.target.pid)
        with stalls.Watch(run.pillion.pid) as watch:
            for count in (1, 2):
                works(run.target.pid, 0.6)
                run.window()
                process.until(lambda: server.count() >= count, 30, lambda: run.err)
        used = process.cpu_seconds(run.target.pid) - before
        said = run.end()
        process.until(lambda: server.count() >= 3, 20, "the last window")
    requests = server.requests
    print(requests, watch.longest(*ROUND), watch.looks, watch.waits)
    assert sorted(int(path.split("/")[3]) for path, _, _ in requests) == [1, 2, 3], requests
    assert sent_kept_lost(said) == (3, 0, 0)
    large = [(length, seconds) for _, length, seconds in requests if length > 200_000]
    assert len(large) >= 2, requests
    for length, seconds in large:  # what the bucket and the buffers hold is there at once
        assert seconds > 0.8 * (length - 64_000) / 1e6, requests
    assert watch.looks > 100 and watch.longest(*ROUND)[0] < STALL, watch.longest(*ROUND)
    windows = col.every(workdir)
    # A crowded machine makes the sampler wait for a processor: some of the 600 and more, never a window's.
    assert sum(window.header["pillion"]["lost_records"] for window in windows) < 10
    assert sum(window.header["pillion"]["cpu_ns"] for window in windows) / 1e9 > 0.95 * used - 0.1


# ---- The sampler's thread

def slowly(c):
    """Takes each body in small pieces, and then answers."""
    while (head := c.head()) is not None:
        while len(c.buffer) < webserver.length_of(head) and c.more(1000):
            time.sleep(0.02)
        c.buffer = b""
        c.say(200)


def catchers(pid):
    """Threads that are bound to one CPU each: they read interpreters' stacks at each tick."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        allowed = re.search(r"Cpus_allowed_list:\s+(\S+)", (task / "status").read_text())[1]
        found += [int(task.name)] if allowed.isdigit() else []
    return found


@pytest.mark.root
def test_nothing_that_uploads_wait_for_is_waited_for_by_the_sampler(pillion, workdir):
    """All at once: a server that never answers, one that reads slowly, a dead name server, and a spool on a full disk.

    Seen from outside, the sampler's thread and the catchers' stand nowhere for a tick but where they wait for the next one.
    """
    disk, out = workdir / "disk", workdir / "out"
    disk.mkdir()
    script = 'mount -t tmpfs -o size=64k none "$0" && { head -c 1000000 /dev/zero >"$0/full" 2>/dev/null; exec "$@"; }'
    target = process.start([sys.executable, "-c", BUSY])
    hosts = f"studio=unix:{workdir}/slow,pyroscope=http://name.test:4040,http=unix:{workdir}/mute"
    with webserver.Server(lambda c: (c.request(), c.hold()), f"{workdir}/mute") as mute, \
            webserver.Server(slowly, f"{workdir}/slow") as slow:
        started = process.start(
            ["unshare", "--net", "--mount", "sh", "-c", script, disk, sys.executable, NAMESERVER, "silent", pillion, "-p",
             target.pid, "-c", "-d", 1, "-u", "--backend", "studio,pyroscope,http", "--server-host", hosts, "--token", "studio=t",
             "--spool-dir", disk / "spool", "-o", out, "--format", "col"])
        process.until(lambda: " profiles pid " in started.err, 20, lambda: started.err)
        (pid,) = [each for each in process.descendants_of(started.pid) if os.path.samefile(f"/proc/{each}/exe", pillion)]
        try:
            process.until(lambda: catchers(pid), 20, "its catchers run")
            with contextlib.ExitStack() as stack:
                watch, *others = [stack.enter_context(stalls.Watch(pid, tid)) for tid in (pid, *catchers(pid))]
                process.until(lambda: "upload to pyroscope failed: cannot resolve the name name.test" in started.err and
                              len(re.findall(r"^pillion: .* own=", started.err, re.M)) >= 4, 60, lambda: started.err)
        except PermissionError as error:
            pytest.skip(f"a thread cannot be looked at here: {error}")
        finally:
            os.kill(pid, signal.SIGKILL)  # its end would wait for the server that never answers
            started.finish()
            target.end()
        assert mute.requests and slow.requests, "the servers have misbehaved"
    said = started.text(started.popen.stderr)
    print(watch.looks, watch.waits, watch.longest(*ROUND))
    assert "kept in memory only" in said, said
    windows = col.every(out)
    assert len(windows) >= 4
    assert watch.looks > 200 and watch.waits["ppoll"] > 20, (watch.looks, watch.waits)
    assert watch.longest(*ROUND)[0] < STALL, watch.longest(*ROUND)
    for other in others:
        print(other.looks, other.waits, other.longest(*ROUND))
        assert other.looks > 200 and other.longest(*TICKS)[0] < STALL, (other.looks, other.waits, other.longest(*TICKS))
    for window in windows[:4]:
        header = window.header["pillion"]
        assert header["lost_records"] == 0 and header["not_seen"].get("lost", 0) == 0, header


# ---- Memory

@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    return uploading.certificate(tmp_path_factory.mktemp("tls"))


def peak_mb(pid):
    return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024


def test_memory_stays_within_its_budget_while_windows_wait(pillion, tls):
    """Windows of about a megabyte and 16 MB for all: two servers take what they are sent, a third one is away.

    What cannot be kept is counted, and its cause said.
    """
    with Server(tls=tls[1]) as studio, Server(judge=pyroscope_model.judge, tls=tls[1]) as pyroscope:
        run = Run(pillion, "-f", 999, "--max-memory", 16, "--max-cpu", 100, "--ca-file", tls[0], "--token", "studio=SECRET-1",
                  "--server-host", f"studio={studio.url},pyroscope={pyroscope.url},http=http://127.0.0.1:{free_port()}/x",
                  backend="studio,pyroscope,http", command=(sys.executable, WIDE, "60", "2500"))
        for _ in range(5):
            works(run.target.pid, 0.25)  # twice that is more than is kept of a window
            before = len(run.summaries)
            run.pillion.signal(signal.SIGUSR1)
            process.until(lambda: len(run.summaries) > before, 20, lambda: run.err)
        peak = peak_mb(run.pillion.pid)
        said = run.end()
        windows = int(re.search(r"end: (\d+) windows", said)[1])
        arrived = len(studio.accepted), len(pyroscope.accepted)
        print(f"peak {peak:.1f} MB, {windows} windows, {arrived} arrived; studio {[upload.bytes for upload in studio.accepted]}\n{said}")
        assert peak < 16
        sent, kept, lost = sent_kept_lost(said)
        assert windows >= 6 and sent + lost == 3 * windows and kept == 0
        assert sent == sum(arrived) >= windows and max(upload.bytes for upload in studio.accepted) > 200_000
        assert lost == windows or re.search("is not uploaded: .*raise --max-memory|the queue in memory is full", said)


def test_what_requests_need_for_a_moment_is_needed_once(pillion, tls):
    """8,000 long names, and three back ends that get each window at once, for two of which it is unpacked and made anew.

    Were they made at once, beside the caches of the window before, 26 MB would be resident; see docs/upload.md, "Memory".
    """
    agents = [Server(judge=judge, tls=tls[1]) for judge in (studio_model.judge, lambda request: (200, b"", request), pyroscope_model.judge)]
    with contextlib.ExitStack() as stack:
        urls = [stack.enter_context(agent).url for agent in agents]
        run = Run(pillion, "-f", 999, "--max-memory", 16, "--max-cpu", 100, "--ca-file", tls[0], "--token", "studio=SECRET-1",
                  "--server-host", "studio={},datadog={},pyroscope={}".format(*urls), backend="studio,pyroscope,datadog",
                  command=(sys.executable, WIDE, "60", "8000"))
        for _ in range(3):
            works(run.target.pid, 0.8)
            run.window()
        process.until(lambda: len(agents[1].accepted) >= 3 and len(agents[2].accepted) >= 3, 30, lambda: run.err)
        peak = peak_mb(run.pillion.pid)
        said = run.end()
    print(f"peak {peak:.1f} MB, {[len(agent.accepted) for agent in agents]} arrived\n{said}")
    assert "--max-memory 16" in said, said  # less detail, and it is said
    assert peak < 20, said

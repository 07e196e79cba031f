"""A profile that a real Pyroscope server was sent, asked back from it: `make test-backends PYROSCOPE=/path/of/the/server`.

No part of `make test`: the server is built from its own sources, which takes minutes and a gigabyte of modules:

    git clone --depth 1 https://github.com/grafana/pyroscope && cd pyroscope && go build -o pyroscope ./cmd/pyroscope
"""
import gzip
import json
import os
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from lab import pprof, process, profiler, workloads

sys.path.insert(0, str(Path(__file__).parent))
from test_upload_files import FOREIGN  # noqa: E402

CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
ADDRESSES = ("server.http-listen-address", "server.grpc-listen-address", "memberlist.bind-addr", "memberlist.advertise-addr",
             "compactor.ring.instance-addr", "distributor.ring.instance-addr", "overrides-exporter.ring.instance-addr",
             "query-frontend.instance-addr", "query-scheduler.ring.instance-addr", "store-gateway.sharding-ring.instance-addr",
             "ingester.lifecycler.addr")


def ask(url, what=None):
    body = None if what is None else json.dumps(what).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=15) as answer:
        return answer.read()


def is_ready(url):
    try:
        return ask(f"{url}/ready").startswith(b"ready")
    except OSError:
        return False


@pytest.fixture
def server(workdir):
    """A server with all its parts on the loopback address: its URL."""
    program = os.environ.get("PYROSCOPE", "")
    if not program:
        pytest.skip("PYROSCOPE names no server; say make test-backends PYROSCOPE=/path/of/it")
    port = workloads.free_port()
    started = process.start([program, "-target=all", "-architecture.storage=v1", "-write-path=ingester",
                             "-self-profiling.disable-push=true", f"-pyroscopedb.data-path={workdir / 'db'}",
                             "-storage.backend=filesystem", f"-storage.filesystem.dir={workdir / 'files'}",
                             f"-server.http-listen-port={port}", f"-server.grpc-listen-port={workloads.free_port()}",
                             f"-memberlist.bind-port={workloads.free_port()}", *(f"-{name}=127.0.0.1" for name in ADDRESSES)])
    url = f"http://127.0.0.1:{port}"
    process.until(lambda: is_ready(url), 90, "the server is ready", 0.5)
    yield url
    os.kill(started.pid, 9)
    started.wait()


def graph_of(server, kind):
    now = int(time.time() * 1000)
    return json.loads(ask(f"{server}/querier.v1.QuerierService/SelectMergeStacktraces", {
        "profileTypeID": kind, "labelSelector": '{service_name="trial"}', "start": now - 600_000, "end": now + 60_000}))["flamegraph"]


def sent(pillion, server, *files):
    done = process.run([pillion, "upload", "--backend", "pyroscope", "--server-host", server, "-S", "trial", *files], timeout=60)
    assert done.status == 0, done


def test_what_is_sent_twice_counts_once(pillion, program, server, workdir):
    """Saved windows, in two orders, and one of them alone."""
    out = workdir / "out"
    profiler.profile(pillion, out, [program("act"), "threads", "2", "3"], "-d", "1")
    files = sorted(out.glob("profile_*.pprof"))
    assert len(files) >= 3
    sent(pillion, server, *files)
    once = int(graph_of(server, CPU)["total"])
    sent(pillion, server, *files[::-1])
    sent(pillion, server, files[1])
    kept = sum(pprof.read(path).total("cpu") for path in files)
    print(f"kept {kept} ns, sent once {once} ns, sent again {graph_of(server, CPU)['total']} ns")
    assert abs(once - kept) <= kept / 1000 and int(graph_of(server, CPU)["total"]) == once


def test_values_of_a_heap_are_shown(pillion, server, workdir):
    """Another program's file without CPU time, with its four sample types."""
    (workdir / "heap.pb").write_bytes(FOREIGN["heap"])
    sent(pillion, server, workdir / "heap.pb")
    wanted = pprof.Profile(gzip.compress(FOREIGN["heap"]))
    now = int(time.time() * 1000)
    told = json.loads(ask(f"{server}/querier.v1.QuerierService/ProfileTypes", {"start": now - 600_000, "end": now + 60_000}))
    kinds = {row["sampleType"]: row["ID"] for row in told["profileTypes"]}
    shown = {name: int(graph_of(server, kinds[name])["total"]) for name, _ in wanted.sample_types}
    print(kinds, shown)
    assert shown == {name: wanted.total(name) for name, _ in wanted.sample_types}
    assert {row["name"] for row in told["profileTypes"]} == {"memory"}


@pytest.mark.parametrize("backend", ["pyroscope", "otlp"])
def test_a_profile_comes_back_with_all_of_its_time(pillion, program, server, workdir, backend):
    out = workdir / "out"
    done = process.run([pillion, "-u", "--backend", backend, "--server-host", server, "-S", "trial", "-o", out, "-d", "3",
                        "--launch", "init", "--", program("act"), "threads", "2", "4"], timeout=60)
    assert done.status == 0 and "upload to" not in done.err, done
    kept = 0
    for path in out.glob("profile_*.pprof"):
        profile = pprof.Profile(path.read_bytes())
        column = [name for name, _ in profile.sample_types].index("cpu")
        kept += sum(sample.values[column] for sample in profile.samples)
    graph = graph_of(server, CPU)
    print(f"sent {kept} ns, asked back {graph['total']} ns, {len(graph['names'])} names")
    assert abs(int(graph["total"]) - kept) <= kept / 1000
    assert "spin" in graph["names"], graph["names"]

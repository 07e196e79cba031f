"""A profile that went through a real OpenTelemetry Collector: `make test-backends COLLECTOR=/path/of/the/collector`.

No part of `make test`: the collector is built from its own modules, which takes minutes. It needs the receiver "otlp", the
exporter "otlp_http" (once "otlphttp"), and 0.148 or later; OpenTelemetry's own distribution of it will do:

    ocb --config builder.yaml        # or their `otelcol`

What it was sent it sends on, in its own words, to a server here, which reads them by what the protocol publishes of itself.
"""
import gzip
import os
import urllib.error
import urllib.request

import pytest

from lab import otlp, pprof, process, workloads
from lab.sink import Sink

CONFIGURATION = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{otlp_http: {{endpoint: "{to}", retry_on_failure: {{enabled: false}}, sending_queue: {{enabled: false}}}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{profiles: {{receivers: [otlp], exporters: [otlp_http]}}}}
"""


def is_ready(port):
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=2)
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


@pytest.fixture
def collector(workdir):
    """start(GATE) -> its URL, and the server that it sends on to."""
    program = os.environ.get("COLLECTOR", "")
    if not program:
        pytest.skip("COLLECTOR names no collector; say make test-backends COLLECTOR=/path/of/it")
    port = workloads.free_port()
    with Sink() as sink:
        (workdir / "config.yaml").write_text(CONFIGURATION.format(port=port, to=sink.url))
        started = process.start([program, "--config", f"file:{workdir / 'config.yaml'}",
                                 "--feature-gates=service.profilesSupport"])
        process.until(lambda: is_ready(port), 30, lambda: started.err, 0.2)
        yield f"http://127.0.0.1:{port}", sink
        os.kill(started.pid, 9)
        started.wait()


def test_a_profile_goes_through_with_all_of_its_time(pillion, program, collector, workdir):
    url, sink = collector
    out = workdir / "out"
    done = process.run([pillion, "-u", "--backend", "otlp", "--server-host", url, "-S", "trial", "-o", out, "-d", "3",
                        "--launch", "init", "--", program("act"), "threads", "2", "4"], timeout=60)
    assert done.status == 0 and "warning" not in done.err.lower(), done
    kept = sum(pprof.read(path).total("cpu") for path in out.glob("profile_*.pprof"))
    process.until(lambda: sink.taken, 10, "the collector sends it on")
    release = otlp.release("1.10")
    found = 0
    for request in sink.taken:
        plain = gzip.decompress(request.body) if request.headers.get("content-encoding") == "gzip" else request.body
        profiles = otlp.check(release.decode(plain), "1.10")
        found += otlp.cpu_ns(profiles)
        assert {profile.resource["service.name"] for profile in profiles} == {"trial"}
    print(f"kept {kept} ns, came through {found} ns, in {len(sink.taken)} requests")
    assert abs(found - kept) <= kept / 1000 and kept > 0

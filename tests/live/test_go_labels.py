"""What a Go program has labelled its work with (pprof.Do) stands at the samples of that work and of no other, as in Go's own CPU
profile: tenants, endpoints, and the ids of spans, of which each request has one."""
from collections import Counter

import pytest

from lab import golang, pprof, process, profiler

pytestmark = pytest.mark.measures

# Up to Go 1.23 labels are a map.
RELEASES = [*(pytest.param(version, marks=pytest.mark.net) for version in
              golang.releases("go1.22.12", more=("go1.18.10", "go1.20.14", "go1.23.12", "go1.24.6", "go1.25.1", "go1.27.0"))), "local"]
MODES = {"perf": [], "brief stops": ["--perf-mode", "disabled", "--brief-stops"]}
FLAGS = {"plain": (), "stripped pie": ("-ldflags=-s -w", "-buildmode=pie"), "external": ("-ldflags=-linkmode=external",)}
OWN = ("tenant", "größe", "span id", "local root span id", "trace endpoint")
WORK = {"main.blue": {"tenant": "blue", "größe": "ü 1;"}, "main.red": {"tenant": "red", "größe": "ü 1;"}, "main.plain": {},
        "main.request": {"trace endpoint": "GET /pay/:id"}}


def check(session, profile):
    first, last = map(int, session.done.out.split())
    right, bare, wrong, ids = Counter(), Counter(), [], set()
    for sample in profile.samples:
        function = next((frame for frame in sample.frames if frame in WORK), None)
        own = {key: value for key, value in sample.labels.items() if key in OWN}
        count = sample.values[0]
        span = own.pop("span id", None)
        if span:
            ids.add(int(span))
            wrong += [] if own.pop("local root span id") == span and first <= int(span) <= last else [sample.labels]
        if function and own == WORK[function] and (span is not None) == (function == "main.request"):
            right[function] += count
        elif function and not own and not span:
            bare[function] += count # not proven, and taken while the runtime worked
        elif own or span: # labels begin and end in pprof.Do, at which a sample may be taken
            # Of a stack: on the runtime's own, or a signal's.
            is_part = sample.frames[0] == "[truncated]" or not any(frame.startswith("main.") for frame in sample.frames)
            within = is_part or any(frame.startswith(("runtime/pprof.", "context.", "main.main.func")) for frame in sample.frames)
            wrong += [] if within and not function else [sample.labels | {"stack": sample.frames}]
    print(right, bare, len(ids), "different spans", wrong[:3])
    assert not wrong, wrong[:3]
    assert set(right) == set(WORK) and all(right[each] > 10 for each in WORK), right
    assert sum(right.values()) > .9 * (sum(right.values()) + sum(bare.values())), (right, bare)
    assert len(ids) > .8 * right["main.request"], (len(ids), right)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", RELEASES)
def test_labels_stand_at_the_samples_of_their_work(version, mode, pillion, workdir):
    session = profiler.profile(pillion, workdir, [golang.program(version, "go_labels.go"), "4"], "-f", 199, "--max-cpu", 100, *MODES[mode],
                               launch="init")
    check(session, pprof.last(workdir))


def test_a_program_that_sets_none_is_not_looked_into(pillion, workdir, repository):
    """Nor are labels read where its language is not wanted."""
    for source, options in (("mixed.go", []), ("go_labels.go", ["--go-mode", "disabled"])):
        done = process.run([pillion, *options, "--log-level", "debug", "-o", workdir / source, "--", golang.program("local", source), "1"], timeout=60)
        assert "its go stacks are read" not in done.err, done
        assert not any(key in OWN for sample in pprof.last(workdir / source).samples for key in sample.labels)


def test_go_tool_pprof_shows_them(pillion, workdir, run):
    profiler.profile(pillion, workdir, [golang.program("local", "go_labels.go"), "1"], "--max-cpu", 100, launch="init")
    told = run(["go", "tool", "pprof", "-tags", workdir / "last_profile.pprof"])
    assert "tenant: Total" in told.out and "blue" in told.out and "trace endpoint: Total" in told.out, told

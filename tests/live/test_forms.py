"""Forms of other profilers' programs: what is written, by readers of the lab; what is read, by recordings of those tools."""
import collections
import json
import shutil
import subprocess

import pytest

from lab import gecko, pprof, profiler, trace_events

KEPT = "tests/fuzz"  # what the readers' fuzz targets begin with: what the tools wrote


@pytest.fixture(scope="module")
def session(pillion, program, tmp_path_factory):
    folder = tmp_path_factory.mktemp("forms")
    profiler.profile(pillion, folder, ["sh", "-c", f"{program('act')} threads 2 0.5; {program('act')} spin 0.2; true"],
                     "--format", "col,pprof,speedscope,gecko,trace", launch="init")
    return folder


def cpu_ns(folder):
    return pprof.read(folder / "last_profile.pprof").total("cpu")


def test_gecko_has_all_of_the_time_in_its_order(session):
    profile = gecko.check(session / "last_profile.gecko.json")
    assert gecko.total(profile) == cpu_ns(session)
    assert profile.meta["pillion"]["is_timed"] is True
    last = max(time for thread in profile.threads for time, _, stack in thread.samples if stack != ("[lost]",))
    assert 300 < last < 20_000, "ms of the run"
    assert {thread.process for thread in profile.threads} >= {"act"}


def test_gecko_comes_back_with_the_same_moments(run, pillion, session, workdir):
    again = workdir / "again.gecko.json"
    assert run([pillion, "render", session / "last_profile.gecko.json", "-o", again]).status == 0
    first, second = (gecko.check(path) for path in (session / "last_profile.gecko.json", again))
    told = [collections.Counter(), collections.Counter()]
    for profile, sums in zip((first, second), told):
        for thread in profile.threads:  # addresses of one function are one frame when it is read
            for time, weight, stack in thread.samples:
                step = "none" if stack == ("[lost]",) else time // 10
                sums[thread.process, thread.pid, thread.tid, thread.name, step, stack] += weight
    assert told[0].keys() == told[1].keys()
    assert all(abs(told[1][key] - weight) <= 10_000 for key, weight in told[0].items()), "a sum is shared out by microseconds"
    assert gecko.total(first) == gecko.total(second)


def test_a_profile_without_times_says_so(run, pillion, session, workdir):
    for name in ("x.gecko.json", "x.trace.json", "x.speedscope.json"):
        assert run([pillion, "render", session / "last_profile.pprof", "-o", workdir / name]).status == 0
    profile = gecko.check(workdir / "x.gecko.json")
    assert profile.meta["pillion"]["is_timed"] is False and gecko.total(profile) == cpu_ns(session)
    leaves = 0
    for track in trace_events.check(workdir / "x.trace.json").values():
        roots = [(begin, end) for begin, end, depth, _ in track.slices if depth == 0]
        leaves += sum(end - begin for begin, end in roots)
    assert leaves == cpu_ns(session), "without pauses slices are as long as the time that was used"
    for name, path in (("order", "x.speedscope.json"), ("otherData", "x.trace.json")):
        assert "call tree" in str(json.loads((workdir / path).read_text())[name])


def test_a_trace_has_the_threads_as_tracks(session):
    tracks = trace_events.check(session / "last_profile.trace.json")
    used = sum(end - begin for track in tracks.values() for begin, end, depth, _ in track.slices if depth == 0)
    assert cpu_ns(session) <= used <= 1.6 * cpu_ns(session) + 50_000_000, "and short pauses"
    assert "act" in {track.process for track in tracks.values()}


def test_speedscope_is_in_the_order_of_time(session):
    document = json.loads((session / "last_profile.speedscope.json").read_text())
    assert document["order"] == "time"
    assert sum(profile["endValue"] for profile in document["profiles"]) == cpu_ns(session)


@pytest.mark.parametrize("name, total, holds", [
    ("perf_read/flat", 2, "spin me;work 2"), ("python_read/austin", None, "g (/opt/w.py)_[p]"),
    ("python_read/spy-threads", 11, ";MainThread;<module> (w.py)_[p];run (w.py)_[p];f (w.py)_[p] 6"), ("gecko_read/rows", None, "do_it"),
])
def test_what_other_tools_wrote_is_read(run, pillion, repository, workdir, name, total, holds):
    done = run([pillion, "render", repository / KEPT / name, "-o", "-", "--format", "col"])
    assert done.status == 0 and done.err == "" and holds in done.out, done
    counts = [int(line.rsplit(" ", 1)[1]) for line in done.out.splitlines()[1:]]
    assert total is None or sum(counts) == total


def test_perf_script_of_now_is_read_to_the_last_sample(run, pillion, program, workdir):
    if not shutil.which("perf"):
        pytest.skip("no perf here (apt-get install linux-perf)")
    made = run(["perf", "record", "-q", "-e", "cpu-clock:u", "-F", "199", "-g", "-o", workdir / "p.data", program("act"), "spin", "0.4"])
    if made.status != 0:
        pytest.skip(f"perf record: {made.err.strip()[-200:]}")
    text = subprocess.run(["perf", "script", "-F", "+pid", "-i", workdir / "p.data"], capture_output=True, text=True).stdout
    (workdir / "p.txt").write_text(text)
    assert run([pillion, "render", workdir / "p.txt", "-o", workdir / "p.gecko.json"]).status == 0
    profile = gecko.check(workdir / "p.gecko.json")
    periods = [int(line.split(":")[1].split()[0]) for line in text.splitlines() if "cpu-clock:" in line]
    assert len(periods) > 20 and gecko.total(profile) == sum(periods)
    times = [float(line.split(":")[0].split()[-1]) for line in text.splitlines() if "cpu-clock:" in line]
    assert abs(profile.threads[0].samples[-1][0] - (times[-1] - times[0]) * 1000) < 11, "ms"

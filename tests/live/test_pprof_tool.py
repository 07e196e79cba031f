"""Our pprof files under Go's own tool: what it prints, merges and subtracts, and the way back."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lab import col, process, profiler

pytestmark = pytest.mark.measures

# Every kind of code, what was not seen, a container, and a name with everything in it.
STACKS = """\
# {"sampling_frequency": 100, "start_time": "2026-11-20T10:11:04", "end_time": "2026-11-20T10:12:04"}
;app;main;work 30
;app;main;read_[k] 6
;app;[lost] 4
;py;<module> (app.py:12)_[p];json.loads (json.py:3)_[p] 20
box;java;com/x/A.b(I)V_[j];com/x/B.c()V_[i] 10
;odd;a "b" <c> & 12 | d e: \u00e9 5"""


def find_tool():
    """The command line of pprof: the program that a Go tool chain brings, else `go tool pprof`."""
    version = re.compile(r"\d+")
    installed = sorted(Path("/usr/lib").glob("go-1.*/bin/go"), key=lambda p: int(version.findall(str(p))[1]))
    on_path = shutil.which("go")
    commands = [str(p) for p in installed] + ([on_path] if on_path else [])
    for go in commands:
        folder = subprocess.run([go, "env", "GOTOOLDIR"], stdout=subprocess.PIPE, text=True).stdout.strip()
        if os.access(f"{folder}/pprof", os.X_OK):
            return [f"{folder}/pprof"]
    return [commands[-1], "tool", "pprof"] if commands else None


@pytest.fixture
def tool(workdir):
    """tool("-top", file...) -> what pprof prints; it must succeed."""
    command = find_tool()
    if command is None:
        pytest.skip("no Go tool chain here (make setup installs golang-go)")
    environment = {"PATH": os.environ["PATH"], "HOME": str(workdir), "PPROF_TMPDIR": str(workdir), "TZ": "UTC",
                   "GOCACHE": str(workdir / "go-cache")}

    def run(*arguments):
        done = process.run([*command, *arguments], env=environment, timeout=180)
        assert done.status == 0, done
        return done.out
    return run


@pytest.fixture
def rendered(run, pillion, workdir):
    """A .pprof with the stacks above."""
    (workdir / "in.col").write_text(STACKS, encoding="utf-8")
    done = run([pillion, "render", workdir / "in.col", "-o", workdir / "out.pprof"])
    assert done.status == 0, done
    return workdir / "out.pprof"


def render(run, pillion, source, target):
    done = run([pillion, "render", source, "-o", target])
    assert done.status == 0, done
    return col.read(target)


def stacks(read):
    return sorted((s.container, s.comm, s.frames, s.count) for s in read.stacks)


def test_raw_shows_types_times_and_every_stack(tool, rendered):
    raw = tool("-raw", rendered)
    head, _, rest = raw.partition("Samples:\n")
    assert "PeriodType: cpu nanoseconds\nPeriod: 10000000\n" in head
    assert "Time: 2026-11-20 10:11:04 +0000 UTC\nDuration: 1m0" in head
    assert "Comment: not seen: [lost] 0.040 s of 0.750 s CPU time\n" in head
    assert rest.startswith("samples/count cpu/nanoseconds[dflt]\n")
    samples = re.findall(r"^ +(\d+) +(\d+): ([\d ]+?) *$", rest, re.M)
    assert sorted((int(count), int(ns)) for count, ns, _ in samples) == sorted(
        (count, n * 10_000_000) for count, n in [(30, 30), (6, 6), (0, 4), (20, 20), (10, 10), (5, 5)])
    names = dict(re.findall(r"^ +(\d+): 0x\d+ (?:M=\d+ )?(.*?) :0", rest.partition("Locations\n")[2], re.M))
    assert sorted([names[n] for n in locations.split()] for _, _, locations in samples) == sorted([
        ["work", "main"], ["read", "main"], ["[lost]"],
        ["json.loads (json.py:3)", "<module> (app.py:12)"], ["com/x/B.c()V_[i]", "com/x/A.b(I)V"],
        ['a "b" <c> & 12 | d e: \u00e9']])


def test_top_shows_the_time_of_each_function(tool, rendered):
    top = tool("-top", "-nodefraction=0", "-unit=ms", rendered)
    assert "Showing nodes accounting for 750ms, 100% of 750ms total" in top
    flat = {name: int(ms) for ms, name in re.findall(r"^ +(\d+)(?:ms)? +[\d.]+% +[\d.]+% +\d+(?:ms)? +[\d.]+%  (.*)$",
                                                     top, re.M)}
    assert flat["work"] == 300 and flat["read"] == 60 and flat["[lost]"] == 40 and flat["main"] == 0
    assert flat["json.loads (json.py:3)"] == 200


def test_samples_can_be_chosen_instead_of_time(tool, rendered):
    assert "71, 100% of 71 total" in tool("-top", "-sample_index=samples", "-nodefraction=0", rendered)


def test_tags_are_comm_and_container(tool, rendered):
    tags = tool("-tags", "-unit=ms", rendered)
    found = {label: dict((name, float(ms)) for ms, name in re.findall(r"([\d.]+)ms \( *[\d.]+%\): (.*)", rest))
             for label, rest in re.findall(r"^ ([a-z ]+): Total .*\n((?: +[\d.]+ms .*\n)+)", tags, re.M)}
    assert found["comm"] == {"app": 400, "py": 200, "java": 100, "odd": 50}, tags
    assert found["container"] == {"box": 100}, tags
    focused = tool("-top", "-tagfocus=comm=py", "-unit=ms", rendered)
    assert "200ms, 26.67% of 750ms total" in focused


def test_what_pprof_merges_is_read_back(tool, run, pillion, rendered, workdir):
    """pprof writes the file anew, with its own encoder; nothing is lost on the way in."""
    tool("-proto", f"-output={workdir}/merged.pb.gz", rendered, rendered)
    merged = render(run, pillion, workdir / "merged.pb.gz", workdir / "merged.col")
    once = render(run, pillion, rendered, workdir / "once.col")
    assert stacks(merged) == [(container, comm, frames, 2 * count) for container, comm, frames, count in stacks(once)]
    assert merged.header["pillion"]["not_seen"] == {"[lost]": 80_000_000}


def test_a_difference_is_refused_in_words(tool, run, pillion, rendered, workdir):
    (workdir / "less.col").write_text(STACKS.replace("work 30", "work 50"), encoding="utf-8")
    assert run([pillion, "render", workdir / "less.col", "-o", workdir / "less.pprof"]).status == 0
    tool("-proto", f"-output={workdir}/diff.pb.gz", f"-diff_base={workdir}/less.pprof", rendered)
    done = run([pillion, "render", workdir / "diff.pb.gz", "-o", workdir / "diff.html"])
    assert done.status == 1 and "negative values" in done.err
    assert not (workdir / "diff.html").exists()


def build_id(path):
    notes = subprocess.run(["readelf", "-n", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", notes)[1]


def test_a_real_program_is_the_main_mapping(pillion, program, workdir, tool):
    binary = program("shares", "-fno-omit-frame-pointer")
    session = profiler.profile(pillion, workdir / "out", [binary, "2"])
    pprof = workdir / "out" / "last_profile.pprof"
    top = tool("-top", "-unit=ms", pprof)
    assert f"File: {Path(binary).name}\nBuild ID: {build_id(binary)}\n" in top
    total = float(re.search(r"of ([\d.]+)ms total", top)[1]) / 1000
    assert profiler.within(total, session.seconds(), 0.005, 0.03)
    assert re.search(r"^ .* sixty$", top, re.M) and re.search(r"^ .* main$", top, re.M)
    raw = tool("-raw", pprof)
    mappings = {number: (int(start, 16), int(limit, 16)) for number, start, limit in
                re.findall(r"^(\d+): (0x[0-9a-f]+)/(0x[0-9a-f]+)/", raw.partition("Mappings\n")[2], re.M)}
    located = re.findall(r"^ +\d+: (0x[0-9a-f]+) M=(\d+) ", raw, re.M)
    assert len(located) > 5
    for address, mapping in located:
        start, limit = mappings[mapping]
        assert start <= int(address, 16) < limit, (address, mapping)
    assert re.search(r"process_id:\[\d+\] thread id:\[\d+\] thread name:\[", raw)


def test_tags_tell_who_had_pythons_lock(pillion, repository, workdir, tool, run):
    """From the profiler, and after pprof and pillion have both written the file anew."""
    script = repository / "tests/live/programs/python/locks.py"
    session = profiler.profile(pillion, workdir / "out", ["/usr/bin/python3", script, "0.6"], "-f", 499)
    files = [str(path) for path in session.folder.glob("profile_[0-9]*.pprof")]
    tool("-proto", f"-output={workdir}/theirs.pb.gz", *files)
    assert run([pillion, "render", workdir / "theirs.pb.gz", "-o", workdir / "ours.pprof"]).status == 0
    for written in (files, [workdir / "ours.pprof"]):
        focused = tool("-top", "-tagfocus=gil=held", "-focus=inside", "-unit=ms", *written)
        whole = tool("-top", "-focus=inside", "-unit=ms", *written)
        held, total = (float(re.search(r"nodes accounting for ([\d.]+)ms", text)[1]) for text in (focused, whole))
        assert held > 0.8 * total > 40, (focused, whole)
        assert re.search(r"^ gil: Total .*\n +[\d.]+\w+ .*: held$", tool("-tags", *written), re.M)

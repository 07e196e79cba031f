"""Flight recordings that real JVMs wrote, read by `pillion render`: the same stacks as the JDK's own reader tells."""
import json
import re
import shutil
import subprocess
from collections import Counter

import pytest

from lab import framestacks, javas, versions

READER = framestacks.Reader("j", "[java]")
# 17; the older form of a recording, which 8 has, too; CPU time of 25.
EACH = ["host", pytest.param("11", marks=pytest.mark.net), pytest.param("25", marks=pytest.mark.net)]
SETTINGS = {"jdk.ExecutionSample": "cpu", "jdk.CPUTimeSample": "cpu", "jdk.ObjectAllocationSample": "alloc_space",
            "jdk.ObjectAllocationInNewTLAB": "alloc_space", "jdk.ObjectAllocationOutsideTLAB": "alloc_space"}
AMOUNT = {"jdk.ObjectAllocationSample": "weight", "jdk.ObjectAllocationInNewTLAB": "tlabSize",
          "jdk.ObjectAllocationOutsideTLAB": "allocationSize"}


@pytest.fixture(scope="module")
def record(repository, tmp_path_factory):
    """record(name of the JDK, more settings) -> the file, as the JVM left it."""
    if not shutil.which("jfr"):
        pytest.skip("not installed: openjdk-17-jdk-headless (jfr)")
    folder = javas.compiled(repository, tmp_path_factory)

    def run(name, more=""):
        try:
            java = javas.get(name)
        except versions.Missing as reason:
            pytest.skip(f"JDK {name}: {reason}")
        where = java.where(next(folder.glob("*.class")), *folder.glob("*.class")).rpartition("/")[0]
        done = subprocess.run([*java.argv, f"-XX:StartFlightRecording=settings=profile,filename={where}/{name}.jfr{more}", "-cp", where,
                               "Known", "5"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        file = (folder if java.inside is None else java.inside / "tmp") / f"{name}.jfr"
        assert done.returncode == 0 and file.exists(), done.stdout
        return file.rename(folder / f"{name}.jfr")
    return run


def plain(name):
    """Of a class: without an address at its end, and with slashes, which classes made at run time have not always."""
    return re.sub(r"[+./]0x.*", "", name).replace(".", "/")


def told(file, *types):
    """What the JDK's reader says: (type, values) of each event."""
    done = subprocess.run(["jfr", "print", "--json", "--stack-depth", "64", "--events", ",".join(types), file], stdout=subprocess.PIPE, check=True)
    return [(event["type"], event["values"]) for event in json.loads(done.stdout)["recording"]["events"]]


def stack_of(values):
    frames = (values["stackTrace"] or {"frames": []})["frames"][::-1]
    return tuple((f"{plain(f['method']['type']['name'])}.{f['method']['name']}", max(f["lineNumber"], 0)) for f in frames)


def read(run, pillion, file, folder, *options):
    folder.mkdir(exist_ok=True)
    done = run([pillion, "render", *options, file, "-o", folder / "profile_1.pprof"])
    assert done.status == 0 and not done.err, done
    return READER.of_pprof(folder)


@pytest.mark.parametrize("name", EACH)
def test_stacks_are_those_that_the_jdk_reads(name, record, run, pillion, workdir):
    is_new = name == "25"
    file = record(name, ",+jdk.CPUTimeSample#enabled=true,+jdk.CPUTimeSample#throttle=10ms" if is_new else "")
    sample = "jdk.CPUTimeSample" if is_new else "jdk.ExecutionSample"
    events = told(file, *SETTINGS)
    samples = Counter()
    for kind, values in events:
        if kind == sample:
            periods = float(values["samplingPeriod"][2:-1]) / 0.01 if is_new else 1  # "PT0.02S": two, of a tick that was late
            thread = values.get("sampledThread", values.get("eventThread")) or {"javaName": "java"}  # the file has no name of one that ended
            samples[thread["javaName"], stack_of(values)] += round(periods)
    mine, seconds = Counter(), 0
    stacks = read(run, pillion, file, workdir / "cpu")
    period = 0.01  # of settings=profile
    for stack in stacks:
        frames = [frame for frame in stack.frames if frame not in ("[truncated]", "[unknown]")]
        mine[stack.labels.get("thread name"), tuple((frame.name, frame.line) for frame in frames)] += round(stack.count / period)
        seconds += stack.count
    print(f"JDK {name}: {sum(samples.values())} samples of {len(samples)} stacks, {seconds:.2f} s")
    assert samples and mine == samples  # of a busy machine some ten: the recorder misses its ticks
    allocated = Counter()
    for kind, values in events:
        if kind in AMOUNT:
            allocated[stack_of(values)] += values[AMOUNT[kind]]
    done = run([pillion, "render", "--type", "alloc_space", file, "-o", workdir / "alloc.col"])
    lines = (workdir / "alloc.col").read_text().splitlines()
    header = json.loads(lines[0][2:])["pillion"]
    assert done.status == 0 and allocated and sum(int(line.rsplit(" ", 1)[1]) for line in lines[1:]) == sum(allocated.values()), done
    assert header["value"] == "alloc_space" and header["unit"] == "bytes"


def test_a_recording_without_what_is_asked_for(record, run, pillion, workdir):
    file = record("host")
    done = run([pillion, "render", "--type", "lock", file, "-o", workdir / "a.col"])
    assert done.status == 1 and re.search(r"there is no sample type lock in it; there is: cpu.*alloc_space", done.err), done
    part = workdir / "part.jfr"
    part.write_bytes(file.read_bytes()[:-1000])
    done = run([pillion, "render", part, "-o", workdir / "a.col"])
    assert done.status == 1 and f"{part}: no flight recording: a chunk is cut off" in done.err, done
    assert not (workdir / "a.col").exists()

"""Differences of snapshots of Go programs: dd-trace-go's own engine, fastdelta, makes the same ones."""
import http.client
import json
import re
import shutil
import struct
from pathlib import Path

import pytest

from lab import cache, golang, process, tiers

MODULE = "github.com/DataDog/dd-trace-go/v2"
VERSION = "v2.12.0"
NEEDS = ("github.com/google/pprof", "github.com/richardartoul/molecule", "github.com/spaolacci/murmur3")
PROGRAMS = Path(__file__).parent / "programs"
SEED, SEQUENCES = 20, 1000
PROFILES = {"heap": "alloc_objects alloc_space", "mutex": "contentions delay", "block": "contentions delay"}

pytestmark = pytest.mark.net


@pytest.fixture(scope="module")
def go():
    reason = tiers.tool_missing("go", "gcc")
    if reason:
        pytest.skip(reason)
    found = golang.Go("local")
    found.environment["GOFLAGS"] = "-modcacherw"  # else only root can remove build/lab
    return found


def module(go, folder):
    """fastdelta and what it includes, in a folder of their own, with the module's name and the versions it asks for."""
    told = go.run("mod", "download", "-json", f"{MODULE}@{VERSION}", timeout=600, cwd=folder)
    if told.status:
        pytest.skip(f"tier net: {MODULE} cannot be fetched: {told.err.strip()[-200:]}{json.loads(told.out or '{}').get('Error', '')[-200:]}")
    source = Path(json.loads(told.out)["Dir"])
    inside = folder / "profiler" / "internal"
    for name in ("fastdelta", "pproflite", "pprofutils"):
        shutil.copytree(source / "profiler" / "internal" / name, inside / name, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("*_test.go", "testdata"), copy_function=shutil.copyfile)
    versions = dict(re.findall(r"^\t(\S+) (v\S+)", (source / "go.mod").read_text(), re.MULTILINE))
    (folder / "go.mod").write_text(f"module {MODULE}\n\ngo 1.21\n\nrequire (\n" +
                                   "".join(f"\t{name} {versions[name]}\n" for name in NEEDS) + ")\n")
    shutil.copyfile(source / "go.sum", folder / "go.sum")
    return inside


@pytest.fixture(scope="module")
def peer(go, tmp_path_factory):
    """The program beside fastdelta. Kept by its content."""
    source = PROGRAMS / "go_delta_peer.go"
    built = cache.folder("dd-trace-go", f"fastdelta-{VERSION}")
    with cache.locked("fastdelta"):
        if not (built / "peer").exists() or (built / "peer.go").read_text() != source.read_text():
            folder = tmp_path_factory.mktemp("fastdelta")
            main = module(go, folder) / "peer"
            main.mkdir()
            shutil.copyfile(source, main / "main.go")
            done = go.run("build", "-mod=mod", "-o", built / "peer.part", "./profiler/internal/peer", cwd=folder)
            if done.status and "go: " in done.err:
                pytest.skip(f"tier net: fastdelta cannot be built: {done.err.strip()[-300:]}")
            assert done.status == 0, done
            shutil.copyfile(source, built / "peer.go")
            (built / "peer.part").rename(built / "peer")
    return built / "peer"


@pytest.fixture(scope="module")
def reader(repository, out, tmp_path_factory):
    library = out / "host" / "libpillion.a"
    if not library.exists():
        pytest.fail(f"{library} is missing; run make unit", pytrace=False)
    program = tmp_path_factory.mktemp("delta-reader") / "reader"
    done = process.run(["gcc", "-std=gnu11", "-fsanitize=address,undefined", f"-I{repository}/src", f"-I{out}/host/vendor/include",
                        "-o", program, PROGRAMS / "go_delta_reader.c", library, out / "host" / "vendor" / "lib" / "libzlib.a"],
                       timeout=120)
    assert done.status == 0, done
    return program


def told(reader, peer, sequences, folder, given=None):
    """What the peer says of both engines' differences: where they are not the same, and numbers by name. `given`: ours
    gets something else."""
    (folder / "sequences").write_bytes(sequences)
    (folder / "given").write_bytes(given or sequences)
    with open(folder / "given", "rb") as file:
        ours = process.run([reader], timeout=300, stdin=file)
    assert ours.status == 0, ours.err
    (folder / "ours").write_bytes(ours.stdout)
    done = process.run([peer, "compare", folder / "sequences", folder / "ours"], timeout=300)
    assert done.status == 0, done
    *different, last = done.out.splitlines()
    names = ("sequences", "equal", "refused", "samples", "different")
    return different, dict(zip(names, map(int, re.findall(r"\d+", last))))


def compared(*arguments):
    different, found = told(*arguments)
    assert not different and not found["different"], "\n".join([str(found), *different[:20]])
    return found


def test_differences_are_those_of_fastdelta(reader, peer, workdir, capsys):
    made = process.run([peer, "make", SEED, SEQUENCES], timeout=300)
    assert made.status == 0, made.err
    found = compared(reader, peer, made.stdout, workdir)
    with capsys.disabled():
        print(f"\nseed {SEED}: {found}")
    assert found["sequences"] == SEQUENCES and found["equal"] > 3 * SEQUENCES and found["refused"] > 100, found
    assert found["samples"] > 20 * SEQUENCES, found


def test_a_difference_that_is_another_is_seen(reader, peer, workdir):
    made = process.run([peer, "make", SEED, 40], timeout=300).stdout
    for theirs, ours in ((b"alloc_objects", b"inuse_objects"), (b"delay", b"dela_")):
        assert made.count(theirs) > 40
        given = re.sub(b"(N....(?:baseline )?[a-z_ ]*)" + theirs, lambda found: found[1] + ours, made, flags=re.DOTALL)
        different, found = told(reader, peer, made, workdir, given)
        assert found["different"] > 10 and len(different) > 10, (found, different[:5])


def block(kind, data):
    return kind + struct.pack("<I", len(data)) + data


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        assert answer.status == 200, (path, answer.status)
        return answer.read()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def load(go, tmp_path_factory):
    folder = tmp_path_factory.mktemp("delta-load")
    shutil.copyfile(PROGRAMS / "go_delta_load.go", folder / "main.go")
    (folder / "go.mod").write_text("module load\n\ngo 1.18\n")
    done = go.run("build", "-o", "load", ".", cwd=folder)
    assert done.status == 0, done
    return folder / "load"


def snapshots(program, stacks, count):
    """{profile: its snapshots}, one after each round of work."""
    taken = {name: [] for name in PROFILES}
    worker = process.start([program, stacks])
    try:
        while "\n" not in worker.out:
            assert worker.poll() is None, worker.err
            worker.pump(0.5)
        for _ in range(count):
            get(int(worker.out), "/work")
            for name in PROFILES:
                taken[name].append(get(int(worker.out), f"/debug/pprof/{name}"))
    finally:
        worker.end()
    return taken


def test_snapshots_of_a_program_have_the_differences_of_fastdelta(reader, peer, load, workdir, capsys):
    taken = snapshots(load, 2000, 5)
    for name, growing in PROFILES.items():
        found = compared(reader, peer, block(b"N", growing.encode()) + b"".join(block(b"S", s) for s in taken[name]), workdir)
        with capsys.disabled():
            print(f"\n{name}, {', '.join(str(len(s)) for s in taken[name])} bytes: {found}")
        assert found["equal"] == 5 and found["samples"] >= (5000 if name == "heap" else 5), found

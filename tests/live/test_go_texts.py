"""The texts that net/http/pprof gives of real Go programs: every goroutine is found in the one, the other's numbers
agree with those that the program publishes, and Go's own tool opens what is made of them."""
import json
import re
import urllib.request

import pytest

from lab import golang, pprof, process, tiers

pytestmark = pytest.mark.measures

# Before Go named locks and told how many frames it leaves out, and since.
RELEASES = ["go1.18.10", "go1.22.12", "local"]

# goroutines.go starts so many, of which the innermost function of its own is this one; what they wait for
KINDS = {
    "main.(*worker).receive": (100, {"chan receive"}),
    "main.deep": (30, {"chan receive"}),
    "main.nilReceive": (20, {"chan receive (nil chan)"}),
    "main.nilSend": (20, {"chan send (nil chan)"}),
    "main.send": (70, {"chan send"}),
    "main.selectTwo": (100, {"select"}),
    "main.selectNone": (40, {"select (no cases)"}),
    "main.sleep": (150, {"sleep"}),
    "main.locked": (10, {"chan receive"}),
    "main.readPipe": (40, {"IO wait"}),
    "main.accept": (40, {"IO wait"}),
    "main.callSystem": (10, {"syscall"}),
    "main.lock": (100, {"sync.Mutex.Lock", "semacquire"}),
    "main.readLock": (60, {"sync.RWMutex.RLock", "semacquire"}),
    "main.waitGroup": (110, {"sync.WaitGroup.Wait", "semacquire"}),
    "main.condition": (50, {"sync.Cond.Wait"}),
    "main.generic[...]": (50, {"chan receive"}),
    "main.labelled": (20, {"chan receive"}),
}

READER = r"""
#include <stdio.h>
#include <stdlib.h>
#include "runtime/go/metrics.h"
#include "runtime/go/waits.h"

static struct str whole(const char *path)
{
    static const size_t most = 80 << 20;
    FILE *file = fopen(path, "rb");
    char *text = malloc(most);
    struct str read = {text, fread(text, 1, most, file)};
    fclose(file);
    return read;
}

static int waits(struct str dump, const char *path)
{
    struct buf out;
    struct go_waits_told told;
    struct err err = {0};
    buf_init(&out, 0);
    if (!go_waits_read(dump, 1700000000000000000, &out, &told, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    FILE *file = fopen(path, "wb");
    fwrite(out.ptr, 1, out.len, file);
    fclose(file);
    printf("{\"goroutines\": %llu, \"own\": %llu, \"damaged\": %llu, \"cut\": %d}\n", (unsigned long long)told.goroutines,
           (unsigned long long)told.own, (unsigned long long)told.damaged, told.cut);
    return 0;
}

static int metrics(char **paths)
{
    struct go_memstats before, now;
    struct buf json;
    struct err err = {0};
    bool is_json = whole(paths[0]).ptr[0] == '{';
    bool (*read)(struct str, struct go_memstats *, struct err *) = is_json ? go_memstats_of_json : go_memstats_of_text;
    buf_init(&json, 4096);
    if (!read(whole(paths[0]), &before, &err) || !read(whole(paths[1]), &now, &err) ||
        !go_memstats_goroutines(whole(paths[2]), &now, &err) || !go_metrics(&before, &now, 2000000000, &json, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    printf("%s\n", buf_cstr(&json));
    return 0;
}

int main(int argc, char **argv)
{
    return argc == 4 ? waits(whole(argv[2]), argv[3]) : metrics(argv + 2);
}
"""


@pytest.fixture(scope="session")
def reader(repository, out, tmp_path_factory):
    library, zlib = out / "host" / "libpillion.a", out / "host" / "vendor" / "lib" / "libzlib.a"
    if not library.exists():
        pytest.fail(f"{library} is missing; run make unit", pytrace=False)
    folder = tmp_path_factory.mktemp("go-texts-reader")
    (folder / "reader.c").write_text(READER)
    # what is read lives until the end
    done = process.run(["gcc", "-std=gnu11", "-fsanitize=address,undefined", f"-I{repository}/src", "-o", folder / "reader",
                        folder / "reader.c", library, zlib], timeout=120)
    assert done.status == 0, done

    def run(*arguments):
        told = process.run([folder / "reader", *arguments], timeout=120, env={"ASAN_OPTIONS": "detect_leaks=0"})
        assert told.status == 0, told
        return json.loads(told.out)
    return run


@pytest.fixture(scope="session")
def program_of(repository, tmp_path_factory):
    """program_of("go1.22.12") -> (Go, path of goroutines.go as a program)."""
    known = {}

    def get(version):
        reason = tiers.tool_missing("go", "gcc")
        if reason:
            pytest.skip(reason)
        if version not in known:
            go, folder = golang.Go(version), tmp_path_factory.mktemp("goroutines")
            text = (repository / "tests" / "live" / "programs" / "goroutines.go").read_text()
            text += "\nfunc generic[T any](channel chan T) { <-channel }\n"
            (folder / "main.go").write_text(text.replace('"fmt"', '_ "expvar"\n\t"fmt"'))
            release = ".".join(map(str, go.number))
            (folder / "go.mod").write_text(f"module program\n\ngo {release}\n")
            done = go.run("build", "-o", "program", ".", cwd=folder)
            assert done.status == 0, done
            known[version] = go, folder / "program"
        return known[version]
    return get


@pytest.fixture
def started(program_of):
    """started(version, **environment) -> get(path), of a program that runs."""
    running = []

    def start(version, **environment):
        program = process.start([program_of(version)[1]], env={"PATH": "/usr/bin:/bin", **environment})
        running.append(program)
        process.until(lambda: program.out.endswith("\n"), 20, "its port")
        port = int(program.out)
        return lambda path: urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20).read()
    yield start
    for program in running:
        program.popen.kill()
        program.wait()


def heads(text):
    """Lines that begin a goroutine, by a rule that is not ours."""
    return [line for line in text.decode().split("\n") if re.match(r"goroutine \d+ .*\[.*:$", line)]


def read_waits(reader, text, workdir):
    (workdir / "dump").write_bytes(text)
    told = reader("waits", workdir / "dump", workdir / "waits.pprof")
    return told, pprof.read(workdir / "waits.pprof")


def all_found(told, profile, text):
    assert told == {"goroutines": len(heads(text)) - 1, "own": 1, "damaged": 0, "cut": 0}
    assert profile.sample_types == [("waitduration", "nanoseconds"), ("goroutine", "count")]
    assert profile.total("goroutine") == told["goroutines"]
    for kind, (count, states) in KINDS.items():
        samples = [s for s in profile.samples if kind in s.frames and s.frames[0] == "main.start"]
        assert sum(s.values[1] for s in samples) == count, (kind, samples)
        assert {s.labels["state"] for s in samples} <= states, (kind, samples)
        assert {s.labels.get("lockedm") for s in samples} == {"true" if kind == "main.locked" else None}
    assert not any("writeGoroutineStacks" in frame for s in profile.samples for frame in s.frames)


@pytest.mark.net
@pytest.mark.parametrize("version", RELEASES)
def test_every_goroutine_is_found(version, reader, program_of, started, workdir):
    text = started(version)("/debug/pprof/goroutine?debug=2")
    told, profile = read_waits(reader, text, workdir)
    all_found(told, profile, text)
    deep = next(s for s in profile.samples if "main.deep" in s.frames)
    omitted = [frame for frame in deep.frames if frame.startswith("[")]
    if program_of(version)[0].number >= (1, 21):
        assert len(omitted) == 1 and re.fullmatch(r"\[5\d frames omitted\]", omitted[0]), omitted
        assert 30 < deep.frames.index(omitted[0]) < 70
    assert len(profile.samples) < 60  # equal ones are one


@pytest.mark.parametrize("environment, sign", [
    ({"GODEBUG": "tracebackancestors=5"}, b"\n[originating from goroutine 1]:\n"), ({"GODEBUG": "tracebacklabels=1"}, b'"d7"')], ids=str)
def test_what_else_the_runtime_can_be_told_to_print_is_read(environment, sign, reader, started, workdir):
    text = started("local", **environment)("/debug/pprof/goroutine?debug=2")
    assert sign in text
    told, profile = read_waits(reader, text, workdir)
    assert not profile.total("waitduration")
    assert (told["goroutines"], told["damaged"], told["cut"]) == (len(heads(text)) - 1, 0, 0)
    for kind, (count, states) in KINDS.items():
        samples = [s for s in profile.samples if kind in s.frames]
        assert sum(s.values[1] for s in samples) == count, (kind, samples)
        assert {s.labels["state"] for s in samples} <= states


@pytest.mark.net
def test_labels_that_go_1_27_prints_are_read_over(reader, program_of, started, workdir):
    text = started("go1.27.0")("/debug/pprof/goroutine?debug=2")
    assert text.count(b"plain: d7") == 20
    told, profile = read_waits(reader, text, workdir)
    all_found(told, profile, text)


def test_a_text_that_was_cut_tells_all_but_its_last_goroutine(reader, started, workdir):
    text = started("local")("/debug/pprof/goroutine?debug=2")
    for length in (len(text) // 2, len(text) // 3 + 7, len(text) - 1):
        length -= text[:length].endswith(b"\n")  # between two lines it does not show
        told, _ = read_waits(reader, text[:length], workdir)
        whole = text[:length].decode().rpartition("\n\n")[0]
        assert told == {"goroutines": len(heads(whole.encode())) - 1, "own": 1, "damaged": 0, "cut": 1}


def test_the_tool_of_go_opens_the_profile(reader, program_of, started, workdir):
    text = started("local")("/debug/pprof/goroutine?debug=2")
    read_waits(reader, text, workdir)
    go = program_of("local")[0]
    raw = go.run("tool", "pprof", "-raw", workdir / "waits.pprof")
    assert raw.status == 0 and "waitduration/nanoseconds goroutine/count" in raw.out, raw
    assert re.search(r"^ +0 +150: .*\n +state:\[sleep\]", raw.out, re.M), raw.out[:3000]
    top = go.run("tool", "pprof", "-top", "-cum", "-sample_index=goroutine", workdir / "waits.pprof")
    assert top.status == 0 and re.search(r" 150 .* main\.sleep$", top.out, re.M), top
    assert "main.(*worker).receive" in top.out and "main.generic[...]" in top.out


def test_the_metrics_of_both_sources_are_those_of_the_program(reader, started, workdir):
    get = started("local")
    sources = {"text": "/debug/pprof/heap?debug=1", "json": "/debug/vars"}
    for moment in ("before", "now"):
        for name, path in sources.items():
            (workdir / f"{name}-{moment}").write_bytes(get(path))
        if moment == "before":
            assert get("/allocate") == b"done\n"
    (workdir / "goroutines").write_bytes(get("/debug/pprof/goroutine?debug=1"))
    told = {name: dict(reader("metrics", workdir / f"{name}-before", workdir / f"{name}-now", workdir / "goroutines", "2"))
            for name in sources}
    known = [json.loads((workdir / f"json-{moment}").read_text())["memstats"] for moment in ("before", "now")]
    assert list(told["json"]) == [
        "go_alloc_bytes_per_sec", "go_allocs_per_sec", "go_frees_per_sec", "go_heap_growth_bytes_per_sec", "go_gcs_per_sec",
        "go_gc_pause_time", "go_max_gc_pause_time", "go_num_goroutine"]
    assert told["json"]["go_alloc_bytes_per_sec"] == (known[1]["TotalAlloc"] - known[0]["TotalAlloc"]) / 2 > 50e6
    assert told["json"]["go_gcs_per_sec"] == told["text"]["go_gcs_per_sec"] == (known[1]["NumGC"] - known[0]["NumGC"]) / 2
    assert told["json"]["go_gc_pause_time"] == pytest.approx((known[1]["PauseTotalNs"] - known[0]["PauseTotalNs"]) / 2e9)
    assert told["text"]["go_gc_pause_time"] == pytest.approx(told["json"]["go_gc_pause_time"], rel=0.01)
    assert told["text"]["go_alloc_bytes_per_sec"] == pytest.approx(told["json"]["go_alloc_bytes_per_sec"], rel=0.1)
    cycles = range(known[0]["NumGC"], known[1]["NumGC"])
    longest = max(known[1]["PauseNs"][cycle % 256] for cycle in cycles[-256:])
    assert told["json"]["go_max_gc_pause_time"] == told["text"]["go_max_gc_pause_time"] == longest
    assert told["json"]["go_num_goroutine"] >= sum(count for count, _ in KINDS.values())

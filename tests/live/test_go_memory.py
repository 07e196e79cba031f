"""Profiles read in the memory of Go programs are those that their own net/http/pprof tells, sample by sample."""
import os
import re
import subprocess
import textwrap
import time
import urllib.request

import pytest

from lab import go_pprof, golang, process, tiers

pytestmark = pytest.mark.measures

# One release for each row of src/runtime/go/memory/memory_layout.c, besides those installed here; each has to compile all that it brings.
FETCHED = golang.releases("go1.18.10", "go1.22.12", "go1.27.0", more=("go1.20.14", "go1.21.13", "go1.23.12", "go1.24.6", "go1.25.1"))
STRIPPED = ["-ldflags=-s -w"]
DEBIAN = "/usr/lib/go-1.19/bin/go"
STRIPPED_PIE = ["-buildmode=pie", "-ldflags=-s -w"]
MODES = {
    "plain": [],
    "stripped": ["-ldflags=-s -w"],
    "pie": ["-buildmode=pie"],
    "external": ["-ldflags=-linkmode=external"],
    "external stripped pie": ["-buildmode=pie", "-ldflags=-linkmode=external -s -w"],
}
PROFILES = ("heap", "block", "mutex", "goroutine")
MOVES = 2  # bits: the least that a value may differ by, for Go's exp is not C's to the last digit

READER = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "runtime/go/go.h"
#include "runtime/go/memory/memory_private.h"

static bool read_fd(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    return pread((int)(intptr_t)context, out, len, (off_t)address) == (ssize_t)len ||
           err_set(err, ERR_IO, 0, "short read");
}

static bool read_pieces(void *context, struct memory_piece *pieces, size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        struct iovec to = {pieces[i].out, pieces[i].len}, from = {(void *)pieces[i].address, pieces[i].len};
        ssize_t n = process_vm_readv((pid_t)(intptr_t)context, &to, 1, &from, 1, 0);
        pieces[i].got = n > 0 ? (uint32_t)n : 0;
    }
    (void)err;
    return true;
}

static uint64_t now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* As runtime/pprof lists them. */
static size_t read_maps(const char *pid, const struct elf *elf, uint64_t *bias, struct go_mapping *maps)
{
    static char paths[256][1024];
    char line[2048], prot[8], name[64], exe[1024] = "";
    snprintf(name, sizeof name, "/proc/%s/exe", pid);
    (void)!readlink(name, exe, sizeof exe - 1);
    snprintf(name, sizeof name, "/proc/%s/maps", pid);
    FILE *file = fopen(name, "r");
    size_t count = 0;
    bool known = false;
    while (fgets(line, sizeof line, file) != NULL && count < 256) {
        uint64_t start, limit, offset, inode;
        int at = 0;
        sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %" SCNu64 " %n", &start, &limit, prot, &offset, &inode,
               &at);
        line[strcspn(line, "\n")] = '\0';
        if (prot[2] != 'x' || (inode == 0 && line[at] == '\0')) {
            continue;
        }
        strcpy(paths[count], line + at);
        maps[count] = (struct go_mapping){start, limit, offset, str_of(paths[count]), STR("")};
        known = known || (strcmp(paths[count], exe) == 0 && elf_bias(elf, start, offset, 4096, bias));
        count++;
    }
    fclose(file);
    return count;
}

static void keep(const char *folder, const char *name, const struct buf *bytes)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    fwrite(bytes->ptr, 1, bytes->len, file);
    fclose(file);
}

static int show_layout(const char *version)
{
    const struct go_layout *l = go_layout_of(version);
    printf("lr=%u syscallsp=%u syscallpc=%u atomicstatus=%u goid=%u waitsince=%u waitreason=%u startpc=%u labels=%u "
           "ticks=%u heap_stats=%u pauses=%u sizes=%u cache=%u tiny=%u span_objects=%u span_base=%u procid=%u curg=%u\n", l->lr - GO_G_SP,
           l->syscall_sp, l->syscall_pc, l->status, l->goid, l->waitsince, l->waitreason, l->startpc, l->labels,
           l->ticks, l->heap_stats, l->pauses, l->sizes, l->cache, l->tiny, l->span_objects, l->span_base,
           l->procid, l->curg);
    return 0;
}

/* Which data the functions name that tables are found by: all versions and processors have to agree. */
static int show_operands(const char *path)
{
    struct go_code codes[] = {{"runtime.stkbucket", 0, 0}, {"runtime.allgadd", 0, 0}, {"runtime.mProf_PostSweep", 0, 0},
                              {"runtime.mProf_Flush", 0, 0}, {"runtime.blockevent", 0, 0},
                              {"runtime.semacquire1", 0, 0}, {"runtime.schedinit", 0, 0}, {"runtime.ticksPerSecond", 0, 0},
                              {"runtime.(*mcache).refill", 0, 0}, {"runtime.procresize", 0, 0}};
    enum { COUNT = sizeof codes / sizeof codes[0] };
    static unsigned char bytes[GO_CODE_MAX_BYTES];
    static struct go_operand all[GO_OPERANDS_MAX];
    struct elf elf;
    struct memory_reader file = {read_fd, (void *)(intptr_t)open(path, O_RDONLY)};
    struct go_table *table = elf_open(&elf, &file, NULL) ? go_table_open(&elf, NULL) : NULL;
    go_table_find(table, codes, COUNT);
    for (int i = 0; i < COUNT; i++) {
        uint64_t offset = 0, len = codes[i].limit - codes[i].start;
        len = len < sizeof bytes ? len : sizeof bytes;
        (void)(elf_offset_of(&elf, codes[i].start, &offset) && elf_read(&elf, offset, bytes, len, NULL));
        size_t count = go_operands(elf.machine, bytes, len, codes[i].start, all);
        for (size_t j = 0; j < count; j++) {
            printf("%s %" PRIx64 " %d %d\n", codes[i].name, all[j].address, all[j].bytes, all[j].stores_zero);
        }
    }
    go_table_release(table);
    elf_release(&elf);
    return 0;
}

/* So often, one after the other; a failure is told and counts as one. */
static void show_counts(struct go_memory *m, int times)
{
    struct go_memstats s;
    struct err err = {0};
    int failed = 0;
    for (int i = 0; i < times; i++) {
        if (!go_memory_counts(m, &s, &err)) {
            failed++;
            continue;
        }
        printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", s.total_alloc,
               s.mallocs, s.frees, s.heap_alloc, s.num_gc, s.pause_total_ns,
               s.num_gc > 0 ? s.pause_ns[(s.num_gc - 1) % GO_PAUSES] : 0);
    }
    printf("failed %d %s\n", failed, err.text);
}

/* PID FOLDER: writes the profiles there, says what it met. Or: layout VERSION, operands FILE, PID counts TIMES. */
int main(int argc, char **argv)
{
    static struct go_mapping maps[256];
    static const char *const names[] = {"heap", "block", "mutex", "goroutine", "waits"};
    char path[64];
    uint64_t bias = 0, count = 0;
    struct elf elf;
    struct err err = {0};
    struct buf version, out;
    struct go_settings s;
    if (argc < 3 || strcmp(argv[1], "layout") == 0) {
        return show_layout(argv[2]);
    }
    if (strcmp(argv[1], "operands") == 0) {
        return show_operands(argv[2]);
    }
    snprintf(path, sizeof path, "/proc/%s/exe", argv[1]);
    struct memory_reader file = {read_fd, (void *)(intptr_t)open(path, O_RDONLY)};
    struct memory_batch memory = {read_pieces, (void *)(intptr_t)atoi(argv[1])};
    buf_init(&version, 256);
    buf_init(&out, 64 << 20);
    struct go_table *table = elf_open(&elf, &file, &err) ? go_table_open(&elf, &err) : NULL;
    if (table == NULL || !go_version(&elf, &version)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    struct go_process process = {.elf = &elf, .table = table, .memory = &memory, .version = buf_cstr(&version)};
    process.map_count = read_maps(argv[1], &elf, &bias, maps);
    process.maps = maps;
    process.bias = bias;
    struct go_memory *m = go_memory_open(&process, &err);
    if (m == NULL || !go_memory_settings(m, &s, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    if (argc == 4) {
        show_counts(m, atoi(argv[3]));
    }
    printf("memory %d %" PRIu64 " block %d %d mutex %d %d collections %d\n", s.has_memory_rate, s.memory_rate,
           s.has_block_rate, s.block_rate > 0, s.has_mutex_rate, s.mutex_rate > 0, s.collections >= 3);
    for (int i = GO_HEAP; i <= GO_WAITS && argc == 3; i++) {
        uint64_t wall = now(CLOCK_REALTIME), mono = now(CLOCK_MONOTONIC);
        bool told = i == GO_HEAP         ? go_memory_heap(m, wall, &out, &err)
                    : i < GO_GOROUTINES  ? go_memory_contention(m, (enum go_profile)i, wall, &out, &err)
                    : i == GO_GOROUTINES ? go_memory_goroutines(m, wall, &out, &count, &err)
                                         : go_memory_waits(m, wall, mono, &out, &err);
        const char *remark = go_memory_remark(m, (enum go_profile)i);
        printf("%s: %s; %s\n", names[i], told ? "told" : err.text, remark != NULL ? remark : "");
        keep(argv[2], names[i], &out);
    }
    printf("%" PRIu64 " goroutines\n", count);
    go_memory_free(m);
    go_table_release(table);
    elf_release(&elf);
    buf_release(&out);
    buf_release(&version);
    return 0;
}
"""

# What debug information says about the runtime's structures.
OFFSETS = """
package main

import (
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"os"
)

func main() {
	file, _ := elf.Open(os.Args[1])
	data, _ := file.DWARF()
	want := map[string]bool{"runtime.g": true, "runtime.m": true, "runtime.gobuf": true, "runtime.bucket": true, "runtime.memRecord": true,
		"runtime.memRecordCycle": true, "runtime.blockRecord": true, "runtime.ticksType": true, "runtime.mstats": true,
		"runtime.consistentHeapStats": true, "runtime.heapStatsDelta": true, "runtime.p": true, "runtime.mcache": true,
		"runtime.mspan": true}
	for r := data.Reader(); ; {
		e, _ := r.Next()
		if e == nil {
			break
		}
		name, _ := e.Val(dwarf.AttrName).(string)
		if e.Tag == dwarf.TagStructType && want[name] {
			t, _ := data.Type(e.Offset)
			for _, f := range t.(*dwarf.StructType).Field {
				fmt.Printf("%s.%s %d\\n", name, f.Name, f.ByteOffset)
			}
		}
		if e.Tag != dwarf.TagCompileUnit {
			r.SkipChildren()
		}
	}
}
"""


@pytest.fixture(scope="session")
def reader(repository, out, tmp_path_factory):
    library = out / "host" / "libpillion.a"
    if not library.exists():
        pytest.fail(f"{library} is missing; run make unit", pytrace=False)
    folder = tmp_path_factory.mktemp("go-memory")
    (folder / "reader.c").write_text(READER)
    done = process.run(["gcc", "-std=gnu11", "-Wall", "-Werror", "-fsanitize=address,undefined", f"-I{repository}/src", "-o",
                        folder / "reader", folder / "reader.c", library, out / "host/vendor/lib/libzlib.a"], timeout=120)
    assert done.status == 0, done
    return folder / "reader"


@pytest.fixture(scope="session")
def build(repository, tmp_path_factory):
    """(version, flags) -> the program, built once."""
    known, releases = {}, {}

    def get(version, flags, source=None, environment=()):
        reason = tiers.tool_missing("go", "gcc")
        if reason:
            pytest.skip(reason)
        if version not in releases:
            releases[version] = golang.Go("local" if version == "debian" else version)
            if version == "debian":
                releases[version].command = DEBIAN
                releases[version].environment["GOCACHE"] += "-debian"
        key = (version, *flags, source, *environment)
        if key not in known:
            folder = tmp_path_factory.mktemp("go-program")
            (folder / "main.go").write_text(source or (repository / "tests/live/programs/profiled.go").read_text())
            (folder / "go.mod").write_text("module program\n\ngo 1.18\n")
            usual = dict(releases[version].environment)
            releases[version].environment.update(environment)
            done = releases[version].run("build", *flags, "-o", "program", ".", cwd=folder)
            releases[version].environment = usual
            assert done.status == 0, done
            known[key] = folder / "program"
        return known[key]
    return get


class Running:
    """The program, once it has printed a line."""

    def __init__(self, program, *arguments):
        self.process = process.start([program, *arguments])
        deadline = time.monotonic() + 30
        while "\n" not in self.process.out and time.monotonic() < deadline:
            self.process.pump(0.2)
        self.words = self.process.out.split()
        assert self.words, self.process.err
        time.sleep(0.2)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.end()

    def ask(self, profile):
        with urllib.request.urlopen(f"http://{self.words[0]}/debug/pprof/{profile}", timeout=30) as answer:
            return go_pprof.load(answer.read())


def read(reader, pid, folder):
    done = process.run([reader, str(pid), folder], timeout=60)
    assert done.status == 0, done
    return done.out


def about_program(stack, profile):
    """Not what comes and goes with the requests, nor the runtime's own contention."""
    names = go_pprof.names(stack)
    if profile in ("block", "mutex"):
        return any(name.startswith("main.") for name in names)
    return names and not any(name.startswith(("net/http.(*conn)", "net/http.(*connReader)", "net/http.(*Server).Serve"))
                             for name in names)


def is_near(ours, theirs):
    return len(ours) == len(theirs) and all(abs(a - b) <= max(MOVES, abs(b) >> 40) for a, b in zip(ours, theirs))


def compare(ours, theirs, profile):
    """Number of samples; fails at the first difference."""
    assert (ours.types, ours.period_type, ours.period) == (theirs.types, theirs.period_type, theirs.period)
    assert ours.mappings == theirs.mappings
    # a stack of which nothing is counted yet may have come between the two
    mine, other = ({key: values for key, values in p.samples.items() if about_program(key[0], profile) and any(map(any, values))}
                   for p in (ours, theirs))
    different = [key for key in mine.keys() | other.keys()
                 if len(mine.get(key, [])) != len(other.get(key, [])) or
                 not all(map(is_near, mine[key], other[key]))]
    assert not different, (profile, len(different), len(other), different[0], mine.get(different[0]),
                           other.get(different[0]))
    return len(other)


def check_all(reader, program, folder, rate, allocations, goroutines):
    with Running(program, rate, allocations, goroutines, "0", "0") as running:
        said = read(reader, running.process.pid, folder)
        assert "memory 1 %s block 1 1 mutex 1 1 collections 1" % (rate if rate != "0" else "524288") in said, said
        found = {}
        for profile in PROFILES:
            ours = go_pprof.load((folder / profile).read_bytes())
            theirs = running.ask(profile)
            found[profile] = compare(ours, theirs, profile)
        return found


ALL = [*FETCHED, "debian", "local"]


@pytest.mark.parametrize("version", ALL)
def test_profiles_are_those_the_program_tells_itself(version, reader, build, workdir):
    if version == "debian" and not golang.os.path.exists(DEBIAN):
        pytest.skip(f"no {DEBIAN}")
    found = check_all(reader, build(version, []), workdir, "1", "300", "700")
    assert found["heap"] > 80 and found["goroutine"] > 8 and found["block"] > 1 and found["mutex"] > 0, found
    found = check_all(reader, build(version, STRIPPED_PIE if version == "local" else STRIPPED), workdir, "0", "20000", "1000")
    assert found["heap"] > 2 and found["goroutine"] > 8, found


@pytest.mark.parametrize("mode", MODES)
def test_programs_linked_otherwise_are_read_the_same(mode, reader, build, workdir):
    found = check_all(reader, build("local", MODES[mode]), workdir, "512", "2000", "1000")
    assert found["heap"] > 20 and found["goroutine"] > 10 and found["block"] > 2 and found["mutex"] > 0, found


@pytest.mark.parametrize("version", ALL)
def test_offsets_are_those_of_the_debug_information(version, reader, build, workdir, run):
    if version == "debian" and not golang.os.path.exists(DEBIAN):
        pytest.skip(f"no {DEBIAN}")
    told = run([build("local", [], OFFSETS), build(version, [])]).out
    offsets = dict(re.findall(r"runtime\.(\S+) (\d+)", told))
    number = golang.Go("local").number if version == "local" else (1, 19) if version == "debian" else golang.number_of(version)
    said = run([reader, "layout", "go %d.%d" % number]).out
    offsets["sizes"] = str(int(offsets["heapStatsDelta.tinyAllocCount"]) // 8)
    named = {"lr": "gobuf.lr", "ticks": "ticksType.val", "procid": "m.procid", "curg": "m.curg", "heap_stats": "mstats.heapStats", "pauses": "mstats.pause_total_ns", "sizes": "sizes",
             "cache": "p.mcache", "tiny": "mcache.tinyAllocs", "span_objects": "mspan.allocCount",
             "span_base": "mspan.nelems" if number == (1, 18) else "mspan.allocCountBeforeCache"}
    for name, offset in re.findall(r"(\w+)=(\d+)", said):
        assert offsets.get(named.get(name, f"g.{name}"), offset if name == "ticks" else None) == offset, (version, name)
    follows = {"mstats.pause_ns": ("mstats.pause_total_ns", 8), "mstats.pause_end": ("mstats.pause_ns", 2048), "mstats.numgc": ("mstats.pause_end", 2048),
               "mcache.alloc": ("mcache.tinyAllocs", 8), "heapStatsDelta.largeAlloc": ("heapStatsDelta.tinyAllocCount", 8),
               "heapStatsDelta.smallAllocCount": ("heapStatsDelta.largeAlloc", 16), "heapStatsDelta.largeFree": ("heapStatsDelta.smallAllocCount", 544),
               "heapStatsDelta.smallFreeCount": ("heapStatsDelta.largeFree", 16),
               "consistentHeapStats.gen": ("consistentHeapStats.stats", 3 * (int(offsets["heapStatsDelta.smallFreeCount"]) + 544))}
    for name, (before, distance) in follows.items():
        assert int(offsets[name]) == int(offsets[before]) + distance, (version, name)
    fixed = {"g.sched": 56, "g.m": 48, "gobuf.sp": 0, "gobuf.pc": 8, "g.stack": 0, "bucket.allnext": 8, "bucket.typ": 16,
             "bucket.size": 32, "bucket.nstk": 40, "memRecord.active": 0, "blockRecord.cycles": 8, "p.id": 0, "heapStatsDelta.committed": 0,
             "heapStatsDelta.inHeap": 16}
    assert {name: int(offsets[name]) for name in fixed} == fixed
    assert ("memRecordCycle.alloc_bytes" in offsets) == (number < (1, 27))


class Counting:
    """A running go_counts."""

    def __init__(self, program, *arguments):
        read, self.input = os.pipe()
        self.process = process.start([program, *arguments], stdin=read)
        os.close(read)
        self.lines = 0
        self.until_next_line()

    def until_next_line(self):
        self.lines += 1
        process.until(lambda: self.process.err.count("\n") >= self.lines, 30, lambda: self.process.err)
        return self.process.err.split("\n")[self.lines - 1]

    def write(self, byte):
        os.write(self.input, byte)
        return self.until_next_line()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.input)
        self.process.end()


def counts(reader, pid, times=1):
    done = process.run([reader, str(pid), "counts", times], timeout=60)
    assert done.status == 0, done
    *lines, failed, _, _ = done.out.splitlines()
    return [list(map(int, line.split())) for line in lines], int(failed.split()[1])


@pytest.mark.parametrize("version", ALL)
def test_counts_are_those_of_read_mem_stats(version, reader, build, repository):
    """To the last object, though the program has not told its processors to hand over what they have allocated."""
    if version == "debian" and not golang.os.path.exists(DEBIAN):
        pytest.skip(f"no {DEBIAN}")
    source = (repository / "tests/live/programs/go_counts.go").read_text()
    for flags in ([], STRIPPED_PIE if version == "local" else STRIPPED):
        with Counting(build(version, flags, source)) as running:
            for byte in b"aagaggag":
                assert running.write(bytes([byte])) == "done"
                ours, failed = counts(reader, running.process.pid)
                theirs = running.write(b"?")
                assert failed == 0 and ours == [list(map(int, theirs.split()))], (flags, byte, ours, theirs)
            assert ours[0][2] > 0 and ours[0][4] == 4 and ours[0][5] > ours[0][6] > 0, ours


@pytest.mark.parametrize("version", ALL)
def test_counts_of_a_program_that_runs_do_not_jump(version, reader, build, repository):
    """While its own readers turn the ring of counts all the time, which would double them, or halve."""
    if version == "debian" and not golang.os.path.exists(DEBIAN):
        pytest.skip(f"no {DEBIAN}")
    source = (repository / "tests/live/programs/go_counts.go").read_text()
    with Counting(build(version, [], source), "loop") as running:
        time.sleep(0.5)
        seen, failed = counts(reader, running.process.pid, 3000)
    assert failed < 1500, failed
    span = 4 * 8192 * 20  # what few processors have in their hands
    # What was counted twice is missed the next time. Who is kept off its processor within a reading may be so once.
    jumps = [(before, now) for before, now in zip(seen, seen[1:])
             if now[0] <= before[0] - span or now[1] <= before[1] - 10000 or now[4] < before[4]]
    assert len(jumps) <= 3, (len(jumps), jumps[0])
    assert seen[-1][4] > seen[0][4] and seen[-1][0] > seen[0][0]


@pytest.mark.parametrize("flags", [[], STRIPPED_PIE], ids=["plain", "stripped pie"])
def test_goroutines_in_c_and_finalizers_are_told_as_the_program_does(flags, reader, build, workdir, repository):
    source = (repository / "tests/live/programs/calls_c.go").read_text()
    with Running(build("local", flags, source)) as running:
        read(reader, running.process.pid, workdir)
        ours = go_pprof.load((workdir / "goroutine").read_bytes())
        assert compare(ours, running.ask("goroutine"), "goroutine") == 6
        shown = [go_pprof.names(stack) for stack, _ in ours.samples]
        for name in ("main.back", "main._Cfunc_sleeps", "main.finalize.func1", "syscall.read"):
            assert any(name in names for names in shown), (name, shown)


# What refers to the runtime's profiles, else the linker leaves them out, and to little else that is to be compiled for another processor.
SMALL = """
package main

import (
	"os"
	"runtime"
	"runtime/pprof"
)

func main() {
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(1)
	runtime.GC()
	pprof.Lookup("heap").WriteTo(os.Stdout, 0)
}
"""


@pytest.mark.parametrize("machine", [(), (("GOARCH", "arm64"), ("CGO_ENABLED", "0"))], ids=["amd64", "arm64"])
def test_instructions_name_the_variables_that_symbols_do(machine, reader, build, run):
    """What tables are found by in a stripped program; on a processor that is not here, too."""
    program = build("local", [], SMALL, machine)
    named = {}
    for line in run(["nm", program]).out.splitlines():
        words = line.split()
        if len(words) == 3 and words[2].startswith("runtime."):
            named[int(words[0], 16)] = words[2].removeprefix("runtime.")
            if words[2] == "runtime.ticks":
                named[int(words[0], 16) + 24] = "ticks.val"
    met = {}
    for line in run([reader, "operands", program]).out.splitlines():
        function, address, size, stores_zero = line.split()
        if int(address, 16) in named:
            met.setdefault(function.removeprefix("runtime."), []).append((named[int(address, 16)], int(size), stores_zero))
    atomic = 0 if machine else None
    assert {"mbuckets", "bbuckets", "xbuckets"} <= {name for name, _, _ in met["stkbucket"]}, met
    assert "allgs" in {name for name, _, _ in met["allgadd"]}, met
    for function, name, size in (("mProf_PostSweep", "mProfCycle", 4), ("mProf_Flush", "mProfCycle", 4),
                                 ("blockevent", "blockprofilerate", 8), ("ticksPerSecond", "ticks.val", 8)):
        first = next(n for n, s, _ in met[function] if s in (size, atomic))
        assert first == name, (function, met[function])
    assert ("memstats", 0) in {(name, size) for name, size, _ in met["(*mcache).refill"]} and "allp" in {name for name, _, _ in met["procresize"]}, met
    rates = [name for name, size, _ in met["semacquire1"] if size == 8]
    assert rates[:2] == ["blockprofilerate", "mutexprofilerate"], met["semacquire1"]
    assert next(name for name, size, zero in met["schedinit"] if size == 8 and zero == "1") == "MemProfileRate"


def test_goroutines_that_run_or_wake_each_other_are_counted(reader, build, workdir):
    with Running(build("local", []), "0", "10", "70", "1", "20") as running:
        for _ in range(10):
            said = read(reader, running.process.pid, workdir)
            assert f"\n{running.words[1]} goroutines\n" in said, (running.words, said)
            told = go_pprof.load((workdir / "goroutine").read_bytes())
            spins = [go_pprof.names(stack) for stack, _ in told.samples if "main.spin" in go_pprof.names(stack)]
            assert spins and all(names in (["[running]", "main.spin"], ["[moved on]", "main.spin"],
                                           ["runtime.asyncPreempt2", "runtime.asyncPreempt", "main.spin"]) or
                                 names[-1] == "main.spin" for names in spins), spins


def test_waits_tell_states_and_how_long(reader, build, workdir):
    with Running(build("local", []), "0", "10", "700", "0", "0") as running:
        time.sleep(1)
        read(reader, running.process.pid, workdir)
        waits = go_pprof.load((workdir / "waits").read_bytes())
        assert waits.types == [("waitduration", "nanoseconds"), ("goroutine", "count")]
        states = {}
        for (_, labels), values in waits.samples.items():
            state = dict(labels)["state"]
            waited, count = states.get(state, (0, 0))
            states[state] = waited + sum(v[0] for v in values), count + sum(v[1] for v in values)
        assert {"chan receive", "chan send", "sleep", "select (no cases)", "sync.Mutex.Lock"} <= states.keys(), states
        for state, count in (("chan receive", 300), ("chan send", 100), ("select (no cases)", 100), ("sync.Mutex.Lock", 100)):
            assert states[state][1] == count and states[state][0] > count * 1e9, states


def test_why_a_profile_is_empty_is_told(reader, build, workdir):
    source = textwrap.dedent("""\
        package main

        import "time"

        func main() {
            print("127.0.0.1\\n")
            println()
            time.Sleep(time.Hour)
        }
        """).replace('print("127.0.0.1\\n")', 'os.Stdout.WriteString("ready\\n")').replace('import "time"', 'import (\n"os"\n"time"\n)')
    for flags in ([], STRIPPED_PIE):
        with Running(build("local", flags, source)) as running:
            said = read(reader, running.process.pid, workdir)
            assert "heap: told; the program samples no allocations: runtime.MemProfileRate is 0" in said, said
            assert "block: told; the program samples no blocking" in said, said
            assert "mutex: told; the program samples no contention" in said, said
            assert "waits: told; the program has not collected garbage yet" in said, said


def test_go_tool_pprof_reads_them(reader, build, workdir):
    with Running(build("local", []), "1", "300", "70", "0", "0") as running:
        read(reader, running.process.pid, workdir)
        for profile in (*PROFILES, "waits"):
            done = subprocess.run([golang.Go("local").command, "tool", "pprof", "-raw", workdir / profile],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            assert done.returncode == 0 and "Samples:" in done.stdout, (profile, done.stderr)
            assert " main.main" in done.stdout or profile in ("mutex", "waits"), done.stdout

"""Go programs tell by their own runtime what stands at thousands of addresses; the reader of their table agrees."""
import json
import os
import random
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from lab import golabels, golang, process, profiler, tiers

pytestmark = pytest.mark.measures

# One release for each version of the table, besides that of Debian's Go (half a gigabyte each in build/lab).
FETCHED = ["go1.15.15", "go1.17.13", "go1.22.12"]
MODES = {
    "plain": [],
    "stripped": ["-ldflags=-s -w"],
    "pie": ["-buildmode=pie"],
    "external": ["-ldflags=-linkmode=external"],
    "external pie": ["-buildmode=pie", "-ldflags=-linkmode=external"],
}
PER_FUNCTION = 3

# Reads addresses, writes "address<TAB>name|file|line<TAB>..." innermost first.
READER = r"""
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "runtime/go/table/private.h"

static bool read_fd(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    return pread((int)(intptr_t)context, out, len, (off_t)address) == (ssize_t)len ||
           err_set(err, ERR_IO, 0, "short read");
}

int main(int argc, char **argv)
{
    static struct go_frames frames;
    struct elf elf;
    struct err err = {0};
    char line[64];
    struct memory_reader file = {read_fd, (void *)(intptr_t)open(argv[argc - 1], O_RDONLY)};
    struct go_table *table = elf_open(&elf, &file, &err) ? go_table_open(&elf, &err) : NULL;
    if (table == NULL) {
        fprintf(stderr, "%s\n", err.text);
        elf_release(&elf);
        return 1;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        uint64_t address = strtoull(line, NULL, 16);
        printf("%" PRIx64, address);
        for (size_t i = 0; go_table_lookup(table, address, &frames) && i < frames.count; i++) {
            struct go_frame *f = &frames.at[i];
            printf("\t%.*s|%.*s|%u", (int)f->name.len, f->name.ptr, (int)f->file.len, f->file.ptr, f->line);
        }
        putchar('\n');
    }
    int status = table->damaged != 0;
    go_table_release(table);
    elf_release(&elf);
    return status;
}
"""

# Writes the same of itself. `chain` is by version. Addresses are the ELF's: main.main's is the argument.
PROGRAM = """
package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"unsafe"
)

var _, _ = unsafe.Pointer(nil), runtime.NumCPU

type shape interface{ area() float64 }
type square struct{ side float64 }

func (q square) area() float64 { return q.side * q.side }

type box struct {
	*square
	n int
}

func leaf(a, b int) int { return a*3 + b }
func middle(a int) int  { return leaf(a, 2) + leaf(a+1, 3) }
func outer(a int) int   { return middle(a) + middle(a*2) }

func show(name, file string, line int) string {
	if file == "?" || file == "" {
		file, line = "", 0
	}
	return fmt.Sprintf("%s|%s|%d", name, file, line)
}

func main() {
	base, _ := strconv.ParseUint(os.Args[1], 16, 64)
	bias := uint64(reflect.ValueOf(main).Pointer()) - base
	words := strings.Fields("c b a")
	sort.Strings(words)
	var s shape = box{&square{float64(outer(len(words)))}, 1}
	fmt.Fprintln(os.Stderr, s.area())
	in := bufio.NewScanner(os.Stdin)
	out := bufio.NewWriter(os.Stdout)
	for in.Scan() {
		address, _ := strconv.ParseUint(in.Text(), 16, 64)
		fmt.Fprintf(out, "%x%s\\n", address, chain(uintptr(address+bias)))
	}
	out.Flush()
}
"""

# The whole chain, by the runtime's own walk of inlined calls.
WHOLE = """
type funcInfo struct{ f, module unsafe.Pointer }
type unwinder struct {
	f    funcInfo
	tree unsafe.Pointer
}
type inlineFrame struct {
	pc    uintptr
	index int32
}
type srcFunc struct {
	module          unsafe.Pointer
	name, startLine int32
	id              uint8
}

//go:linkname findfunc runtime.findfunc
func findfunc(pc uintptr) funcInfo

//go:linkname funcline1 runtime.funcline1
func funcline1(f funcInfo, pc uintptr, strict bool) (string, int32)

//go:linkname newInlineUnwinder runtime.newInlineUnwinder
func newInlineUnwinder(f funcInfo, pc uintptr) (unwinder, inlineFrame)

//go:linkname next runtime.(*inlineUnwinder).next
func next(u *unwinder, f inlineFrame) inlineFrame

//go:linkname srcFuncOf runtime.(*inlineUnwinder).srcFunc
func srcFuncOf(u *unwinder, f inlineFrame) srcFunc

//go:linkname nameOf runtime.(*moduledata).funcName
func nameOf(module unsafe.Pointer, at int32) string

func chain(pc uintptr) string {
	f := findfunc(pc)
	if f.f == nil {
		return ""
	}
	text := ""
	for u, at := newInlineUnwinder(f, pc); at.pc != 0; at = next(&u, at) {
		s := srcFuncOf(&u, at)
		file, line := funcline1(f, at.pc, false)
		text += "\\t" + show(nameOf(s.module, s.name), file, int(line))
	}
	return text
}
"""

# Older: the public function. It takes return addresses, and since Go 1.12 tells the innermost call only.
INNERMOST = """
func chain(pc uintptr) string {
	text := ""
	frames := runtime.CallersFrames([]uintptr{pc + 1})
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		text += "\\t" + show(f.Function, f.File, f.Line)
	}
	return text
}
"""


class Go(golang.Go):
    def build(self, folder, name, flags):
        if self.number >= (1, 23):
            linker = [flag.removeprefix("-ldflags=") for flag in flags if flag.startswith("-ldflags=")]
            flags = [flag for flag in flags if not flag.startswith("-ldflags=")]
            flags.append(" ".join(["-ldflags=-checklinkname=0", *linker]))
        (folder / "main.go").write_text(PROGRAM + (WHOLE if self.tells_all else INNERMOST))
        (folder / "go.mod").write_text("module program\n\ngo 1.15\n")
        (folder / "empty.s").write_text("")  # lets functions have no body
        done = self.run("build", *flags, "-o", name, ".", cwd=folder)
        assert done.status == 0, done
        return folder / name

    @property
    def tells_all(self):
        return self.number >= (1, 22)


@pytest.fixture(scope="session")
def reader(repository, out, tmp_path_factory):
    library = out / "host" / "libpillion.a"
    if not library.exists():
        pytest.fail(f"{library} is missing; run make unit", pytrace=False)
    folder = tmp_path_factory.mktemp("go-reader")
    (folder / "reader.c").write_text(READER)
    done = process.run(["gcc", "-std=gnu11", "-fsanitize=address,undefined", f"-I{repository}/src", "-o",
                        folder / "reader", folder / "reader.c", library], timeout=120)
    assert done.status == 0, done
    return folder / "reader"


@pytest.fixture(scope="session")
def go_of():
    known = {}

    def get(version):
        reason = tiers.tool_missing("go", "gcc", "nm")
        if reason:
            pytest.skip(reason)
        if version not in known:
            known[version] = Go(version)
        return known[version]
    return get


def functions(program):
    """(address, bytes, name) of the functions, from the symbols."""
    told = subprocess.run(["nm", "-S", "--defined-only", program], stdout=subprocess.PIPE, text=True)
    for line in told.stdout.splitlines():
        parts = line.split(None, 3)
        if len(parts) == 4 and parts[2] in "tT" and int(parts[1], 16) > 1:
            yield int(parts[0], 16), int(parts[1], 16), parts[3]


def addresses(program):
    """Starts and places within functions; never the last byte, because CallersFrames takes the address behind."""
    chosen = random.Random(1)
    found = {start for start, _, _ in functions(program)}
    for start, size, _ in functions(program):
        found |= {start + chosen.randrange(size - 1) for _ in range(PER_FUNCTION)}
    return sorted(found)


def ask(command, places, folder):
    (folder / "places").write_text("".join(f"{place:x}\n" for place in places))
    with open(folder / "places", "rb") as file:
        done = process.run(command, timeout=120, stdin=file)
    assert done.status == 0, done
    return [line.split("\t") for line in done.out.splitlines()]


def shorter(name):
    """Go prints the type arguments of a generic function as "[...]"."""
    return name[:name.index("[")] + "[...]" + name[name.rindex("]") + 1:] if "[" in name and "]" in name else name


def same_frame(ours, theirs):
    """The runtime has no name for the function whose name comes first in its table."""
    our_name, our_place = ours.split("|", 1)
    their_name, their_place = theirs.split("|", 1)
    return our_place == their_place and (their_name == "" or their_name in (our_name, shorter(our_name)))


def same(ours, theirs, whole):
    if whole:
        return len(ours) == len(theirs) and all(map(same_frame, ours[1:], theirs[1:]))
    return len(ours) > 1 and same_frame(ours[1], theirs[1])


def compare(reader, go, mode, folder):
    """Number of addresses compared and of those with inlined calls; fails at the first difference."""
    program = go.build(folder, "program", MODES[mode])
    symbols = go.build(folder, "symbols", MODES["plain"]) if mode == "stripped" else program
    main = next(start for start, _, name in functions(symbols) if name == "main.main")
    places = addresses(symbols)
    ours = ask([reader, program], places, folder)
    theirs = ask([program, f"{main:x}"], places, folder)
    assert len(ours) == len(theirs) == len(places)
    go_places = [pair for pair in zip(ours, theirs) if len(pair[1]) > 1 and pair[1][1] != "||0"]
    different = [pair for pair in go_places if not same(*pair, go.tells_all)]
    assert not different, f"{len(different)} of {len(go_places)}, first: {different[0]}"
    return len(go_places), sum(len(pair[0]) > 2 for pair in go_places)


@pytest.mark.parametrize("mode", MODES)
def test_addresses_have_the_names_lines_and_inlined_calls_the_runtime_tells(mode, reader, go_of, workdir):
    compared, inlined = compare(reader, go_of("local"), mode, workdir)
    assert compared > 4000 and inlined > 400, (compared, inlined)


@pytest.mark.net
@pytest.mark.parametrize("version", FETCHED)
def test_other_releases_of_go_are_read_as_their_runtime_does(version, reader, go_of, workdir):
    compared, inlined = compare(reader, go_of(version), "plain", workdir)
    assert compared > 4000 and inlined > 100, (compared, inlined)


@pytest.mark.parametrize("mode", ["plain", "external pie"])
def test_a_program_without_section_headers_is_read_the_same(mode, reader, go_of, workdir):
    program = go_of("local").build(workdir, "program", MODES[mode])
    places = addresses(program)
    image = bytearray(program.read_bytes())
    image[0x28:0x30] = bytes(8)  # e_shoff
    image[0x3c:0x40] = bytes(4)  # e_shnum, e_shstrndx
    (workdir / "bare").write_bytes(image)
    assert ask([reader, workdir / "bare"], places, workdir) == ask([reader, program], places, workdir)


def test_an_image_that_is_not_go_is_said_to_be_none(reader, run):
    done = run([reader, shutil.which("true")])
    assert (done.status, done.err.strip()) == (1, "not a Go program")


def test_an_inlined_call_is_told_with_the_lines_of_all_callers(reader, go_of, workdir):
    go = go_of("local")
    (workdir / "main.go").write_text(textwrap.dedent("""\
        package main

        func innermost(x []int) int { return x[0] }

        func middle(x []int) int {
            return innermost(x)
        }

        //go:noinline
        func outermost(x []int) int {
            return middle(x)
        }

        func main() { println(outermost([]int{1})) }
        """))
    done = go.run("build", "-o", "program", "main.go", cwd=workdir)
    assert done.status == 0, done
    start, size, _ = next(f for f in functions(workdir / "program") if f[2] == "main.outermost")
    told = ask([reader, workdir / "program"], range(start, start + size), workdir)
    file = workdir / "main.go"
    chain = [f"main.innermost|{file}|3", f"main.middle|{file}|6", f"main.outermost|{file}|11"]
    assert chain in [row[1:] for row in told]


# Most of what it does is done by the garbage collector, on the thread's own stack.
COLLECTS = """
package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"time"
)

type node struct{ left, right *node }

func grow(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{grow(depth - 1), grow(depth - 1)}
}

func main() {
	seconds, _ := strconv.Atoi(os.Args[1])
	debug.SetGCPercent(10)
	kept := grow(17)
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); {
		kept.left = grow(14)
	}
	fmt.Println(kept != nil)
}
"""


@pytest.mark.alone  # the collector's own threads need processors that are idle
def test_a_goroutine_is_reached_from_its_threads_own_stack(pillion, go_of, workdir):
    """Read after the sample, its stack is another call's: 5 to 8 % ended at runtime.systemstack."""
    go = go_of("local")
    (workdir / "main.go").write_text(COLLECTS)
    done = go.run("build", "-o", "program", "main.go", cwd=workdir)
    assert done.status == 0, done
    session = profiler.profile(pillion, workdir / "out", [workdir / "program", "6"], "--log-format", "json",
                               "--launch", "init")
    events = [json.loads(line) for line in session.done.err.splitlines() if line.startswith("{")]
    counts = next(e for e in reversed(events) if e["event"] == "window")
    assert int(counts["stacks_complete"]) > 0.98 * int(counts["samples"]), counts
    markers = [s for s in session.col.stacks if "runtime.gcBgMarkWorker.func2" in s.frames]
    assert sum(s.count for s in markers) > 15, session.frames()
    wrong = [s.frames for s in markers if s.frames[0] != "runtime.goexit" or "runtime.systemstack" not in s.frames]
    assert len(wrong) < 0.02 * len(markers) + 1, wrong[:3]


@pytest.mark.parametrize("mode", ["plain", "stripped", "stripped pie"])
def test_who_calls_a_function_without_a_frame_is_told(mode, pillion, workdir):
    flags = {"plain": (), "stripped": ("-ldflags=-s -w",), "stripped pie": ("-ldflags=-s -w", "-buildmode=pie")}[mode]
    session = profiler.profile(pillion, workdir, [golang.program("local", "go_labels.go", flags=flags), "2"], "-f", 199, launch="init")
    stacks = [([str(frame).removesuffix("_[go]") for frame in stack.frames], stack.count) for stack in session.col.stacks]
    assert golabels.share_with_callers(stacks) > 0.98


@pytest.mark.net
@pytest.mark.parametrize("flags", [(), ("-ldflags=-s -w",)], ids=["plain", "stripped"])
def test_who_zeroes_and_copies_large_values_is_told(flags, pillion, workdir):
    """duffzero and duffcopy have no frame, and their caller's frame pointer points below SP meanwhile. C code starts the
    threads, and its frame pointer says nothing: their stacks end with Go's first function."""
    command = [golang.program("go1.22.12", "go_duff.go", flags=flags), "3"]
    session = profiler.profile(pillion, workdir, command, "-f", 199, launch="init")
    col = session.col
    for name, caller in (("runtime.duffzero", "main.zero"), ("runtime.duffcopy", "main.copied")):
        found = [s for s in col.stacks if s.frames[-1] == name]
        whole = [s for s in found if s.frames[:-1] == ["runtime.goexit", "runtime.main", "main.main", caller]]
        assert sum(s.count for s in whole) > 100, session.frames()
        assert sum(s.count for s in whole) > .98 * sum(s.count for s in found), [s.frames for s in found]
    ends = [s for s in col.stacks if "[truncated]" in s.frames]
    assert sum(s.count for s in ends) < .02 * col.total, [s.frames for s in ends]

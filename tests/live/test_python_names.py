"""Names, files and lines read out of running interpreters are those the interpreters tell."""
import pytest

from lab import process, pythons

# Run by each interpreter, 2.7 included: compiles its standard library and some names of all widths, tells where the
# code objects are and what they are called, and waits.
TELLER = r"""
# -*- coding: utf-8 -*-
import ctypes, os, sys, time

def codes_of(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, type(code)):
            for inner in codes_of(constant):
                yield inner

def text(name):
    return name if isinstance(name, bytes) else name.encode("utf-8", "replace")

library = os.path.dirname(os.__file__)
paths = [os.path.join(library, name) for name in sorted(os.listdir(library)) if name.endswith(".py")]
sources = [(path, open(path, "rb").read()) for path in paths if os.path.exists(path)]
odd = ["caf\xe9", "\u03b1\u03b2\u03b3", "\U0002000b\U0002000c", "a" * 300, "\u03b1" * 300, "long/" * 60]
if sys.version_info > (3,):
    sources += [(path, "def %s(): pass" % (path if path.isidentifier() else "f")) for path in odd]

line_of = ctypes.pythonapi.PyCode_Addr2Line
line_of.restype, line_of.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_int]
out = getattr(sys.stdout, "buffer", sys.stdout)
runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime")) if sys.version_info > (3, 7) else 0
out.write(("%d %x %x %x\n" % (os.getpid(), sys.hexversion, runtime, id(type(codes_of.__code__)))).encode())
kept = [code for path, source in sources for code in codes_of(compile(source, path, "exec"))]
for number, code in enumerate(kept):
    at = number * 2 % len(code.co_code)
    name = getattr(code, "co_qualname", code.co_name)
    out.write(("%x %d %d %d " % (id(code), at, max(line_of(code, at), 0), code.co_firstlineno)).encode())
    out.write(text(name) + b"\t" + text(code.co_filename) + b"\n")
out.write(b"\n")
out.flush()
time.sleep(600)
"""

# Makes functions for ever; the memory of one is the next one's. `cell` says which code object runs, and its number N:
# function f_N of file "-" when N is even, else f of file_N.
MAKER = r"""
import ctypes, os, sys

cell = (ctypes.c_uint64 * 2)()

def make(number):
    scope = {}
    name, file = ("f_%d" % number, "-") if number % 2 == 0 else ("f", "file_%d" % number)
    exec(compile("def %s():\n for i in range(20000): pass" % name, file, "exec"), scope)
    return scope[name]

out = getattr(sys.stdout, "buffer", sys.stdout)
runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime")) if sys.version_info > (3, 7) else 0
out.write(("%d %x %x %x\n" % (os.getpid(), sys.hexversion, runtime, id(type(make.__code__)))).encode())
out.write(("%x 0 0 0 -\t-\n\n" % ctypes.addressof(cell)).encode())
out.flush()
number = 0
while True:
    number += 1
    function = make(number)
    cell[1] = id(function.__code__)
    cell[0] = number
    function()
    cell[0] = 0
    function = None
"""

# Reads what they tell. "compare" names all code objects and says how many differ; "race" does as a sampler does (first
# the fingerprint of what runs, then its name) until it has seen so many, however busy the machine is, and says how
# many were seen running, were named, were named wrongly.
READER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "runtime/python/private.h"

enum { TOGETHER = 100, RUNTIME_BYTES = 4096 };

static unsigned batches;

static bool read_batch(void *context, struct memory_piece *pieces, size_t count, struct err *err)
{
    batches++;
    (void)err;
    for (size_t i = 0; i < count; i++) {
        uint64_t here = 4096 - pieces[i].address % 4096; /* a page at a time, as a piece may end in nothing */
        for (pieces[i].got = 0; pieces[i].got < pieces[i].len;) {
            size_t len = pieces[i].len - pieces[i].got < here ? pieces[i].len - pieces[i].got : here;
            struct iovec to = {(char *)pieces[i].out + pieces[i].got, len};
            struct iovec from = {(void *)(pieces[i].address + pieces[i].got), len};
            if (process_vm_readv((int)(intptr_t)context, &to, 1, &from, 1, 0) != (ssize_t)len) {
                break;
            }
            pieces[i].got += (uint32_t)len;
            here = 4096;
        }
    }
    return true;
}

struct told {
    struct runtime_frame frame;
    unsigned line, first_line;
    char *function, *file;
};

static struct told told[1 << 20];
static size_t count;

static void read_told(FILE *file)
{
    static char line[1 << 16];
    while (fgets(line, sizeof line, file) != NULL && line[0] != '\n') {
        struct told *t = &told[count++];
        int at = 0;
        sscanf(line, "%lx %u %u %u %n", &t->frame.code, &t->frame.position, &t->line, &t->first_line, &at);
        t->function = strdup(strtok(line + at, "\t"));
        t->file = strdup(strtok(NULL, "\n"));
    }
}

static int compare(void *names, struct memory_batch *memory)
{
    struct runtime_frame frames[TOGETHER];
    struct runtime_name found[TOGETHER];
    size_t wrong = 0;
    for (size_t at = 0; at < count; at += TOGETHER) {
        size_t some = count - at < TOGETHER ? count - at : TOGETHER;
        for (size_t i = 0; i < some; i++) {
            frames[i] = told[at + i].frame;
        }
        python_name_frames(names, frames, some, memory, found);
        for (size_t i = 0; i < some; i++) {
            struct told *t = &told[at + i];
            bool same = str_eq(found[i].function, str_of(t->function)) && str_eq(found[i].file, str_of(t->file)) &&
                        found[i].line == t->line && found[i].first_line == t->first_line;
            if (!same && wrong++ < 5) {
                fprintf(stderr, "%.*s (%.*s:%u) line %u, expected %s (%s:%u) line %u\n", (int)found[i].function.len,
                        found[i].function.ptr, (int)found[i].file.len, found[i].file.ptr, found[i].first_line,
                        found[i].line, t->function, t->file, t->first_line, t->line);
            }
        }
    }
    printf("%zu %zu %u\n", count, wrong, batches);
    return 0;
}

/* What runs now, proven to have run while its code object was read. */
static bool see(const struct python *python, struct memory_batch *memory, uint64_t *number, struct runtime_frame *frame)
{
    unsigned char head[LAYOUT_CODE_MAX];
    uint64_t cell[2], again[2];
    struct memory_piece piece = {told[0].frame.code, cell, sizeof cell, 0};
    read_batch(memory->context, &piece, 1, NULL);
    struct memory_piece pieces[] = {{cell[1], head, python->layout.code.bytes, 0},
                                    {told[0].frame.code, again, sizeof again, 0}};
    read_batch(memory->context, pieces, 2, NULL);
    *frame = (struct runtime_frame){cell[1], 0, 0, python_fingerprint(&python->layout, head)};
    *number = cell[0];
    return cell[0] != 0 && cell[0] == again[0] && pieces[0].got == pieces[0].len;
}

static int race(const struct python *python, void *names, struct memory_batch *memory, size_t enough)
{
    size_t seen = 0, named = 0, wrong = 0;
    struct timespec now, begin;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        struct runtime_frame frame;
        struct runtime_name found;
        uint64_t number;
        char expected[64];
        clock_gettime(CLOCK_MONOTONIC, &now);
        usleep(300); /* about as often as a fast sampler */
        if (!see(python, memory, &number, &frame)) {
            continue;
        }
        seen++;
        python_name_frames(names, &frame, 1, memory, &found);
        snprintf(expected, sizeof expected, number % 2 == 0 ? "f_%lu" : "file_%lu", number);
        bool same = str_eq(number % 2 == 0 ? found.function : found.file, str_of(expected)) &&
                    str_eq(number % 2 == 0 ? found.file : found.function, str_of(number % 2 == 0 ? "-" : "f")) &&
                    found.first_line == 1;
        named += found.function.len > 0;
        if (found.function.len > 0 && !same && wrong++ < 5) {
            fprintf(stderr, "%.*s (%.*s:%u), expected %lu\n", (int)found.function.len, found.function.ptr,
                    (int)found.file.len, found.file.ptr, found.first_line, number);
        }
    } while (seen < enough && now.tv_sec - begin.tv_sec < 100);
    printf("%zu %zu %zu\n", seen, named, wrong);
    return 0;
}

int main(int argc, char **argv)
{
    static unsigned char runtime[RUNTIME_BYTES];
    FILE *file = fopen(argv[argc - 1], "r");
    int pid;
    unsigned version;
    struct python python = {0};
    struct err err;
    if (fscanf(file, "%d %x %lx %lx\n", &pid, &version, &python.runtime, &python.code_type) != 4) {
        return 2;
    }
    struct memory_batch memory = {read_batch, (void *)(intptr_t)pid};
    read_told(file);
    fclose(file);
    struct memory_piece piece = {python.runtime, runtime, sizeof runtime, 0};
    read_batch(memory.context, &piece, 1, NULL);
    bool known = version >= PYTHON_VERSION(3, 13)
                     ? python_layout_read(runtime, piece.got, &python.layout, &err)
                     : python_layout_of(version, ELF_X86_64, false, false, &python.layout, &err);
    if (!known) {
        fprintf(stderr, "%s\n", err.text);
        return 3;
    }
    void *names = python_open_names(&python);
    int status = argv[1][0] == 'c' ? compare(names, &memory) : race(&python, names, &memory, (size_t)atol(argv[2]));
    python_close_names(names);
    return status;
}
"""


@pytest.fixture(scope="session")
def reader(repository, out, tmp_path_factory):
    library = out / "host" / "libpillion.a"
    if not library.exists():
        pytest.fail(f"{library} is missing; run make unit", pytrace=False)
    folder = tmp_path_factory.mktemp("python-names")
    (folder / "reader.c").write_text(READER)
    done = process.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE=", "-O1", "-fsanitize=address,undefined",
                        f"-I{repository}/src", "-o", folder / "reader", folder / "reader.c", library], timeout=120)
    assert done.status == 0, done
    return folder / "reader"


# Those built bare have no ctypes, and cannot tell where their runtime is.
INTERPRETERS = [pytest.param(name, marks=[] if pythons.is_here(name) else [pytest.mark.net])
                for name in pythons.rows() if name not in ("musl", "free-threaded")]


@pytest.fixture
def start(workdir):
    """start(name, script) -> the interpreter, its process, and the file with what it told before it went on."""
    started = []

    def make(name, script):
        try:
            interpreter = pythons.get(name)
        except pythons.Missing as reason:
            pytest.skip(str(reason))
        (workdir / "script.py").write_text(script.lstrip(), encoding="utf-8")
        target = process.start(interpreter.command(workdir / "script.py"))
        started.append(target)
        process.until(lambda: target.out.endswith("\n\n") or target.poll() is not None, 120, "what it tells")
        assert target.poll() is None, target.err
        (workdir / "told").write_text(target.out, encoding="utf-8")
        return interpreter, workdir / "told"
    yield make
    for target in started:
        target.end()


@pytest.mark.parametrize("name", INTERPRETERS)
def test_all_code_objects_of_the_library_have_the_names_the_interpreter_tells(name, start, reader):
    interpreter, told = start(name, TELLER)
    done = process.run([reader, "compare", told], timeout=300)
    assert done.status == 0, done
    codes, wrong, batches = map(int, done.out.split())
    print(f"{interpreter}: {codes} code objects, {wrong} wrong, {batches} batches")
    assert wrong == 0 and codes > 5000, done


@pytest.mark.parametrize("name", INTERPRETERS)
def test_names_are_right_while_functions_are_made_and_freed(name, start, reader):
    interpreter, told = start(name, MAKER)
    done = process.run([reader, "race", "500", told], timeout=120)
    assert done.status == 0, done
    seen, named, wrong = map(int, done.out.split())
    print(f"{interpreter}: {seen} seen, {named} named, {wrong} wrong")
    # Code objects are numbered from 3.12 on; before that, one may be taken for the first that looked the same.
    assert wrong <= (0 if interpreter.number >= (3, 12) else seen / 200 + 4 * (seen / 200) ** .5), done
    assert named > 0.5 * seen and seen >= 500, done

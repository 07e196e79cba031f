"""Positions of every interpreter's own standard library have the lines that interpreter itself tells.

Each interpreter compares a quarter of its library's files, the next one another quarter, and from 3.11 on, of which there are many,
an eighth; LINES=all compares everything, which takes minutes.
"""
import os

import pytest

from lab import process, pythons

# Run by each interpreter, 2.7 included. For each code object of its library: first line, bytes of the table, number
# of positions, the table, the line of each position by the interpreter's own C functions; 0 where it knows none.
DUMPER = r"""
import os, sys

step = 1 if sys.version_info < (3, 6) else 2
no_library = {"site-packages", "dist-packages", "test", "tests", "lib2to3"}

try:
    import ctypes
    line_of = ctypes.pythonapi.PyCode_Addr2Line
    line_of.restype, line_of.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_int]

    def lines_of(code):
        return [max(line_of(code, at), 0) for at in range(0, len(code.co_code), step)]
except ImportError:  # built bare
    def lines_of(code):
        lines = [0] * (len(code.co_code) // step)
        for start, limit, line in code.co_lines():
            lines[start // step:limit // step] = [line or 0] * ((limit - start) // step)
        return lines

def codes_of(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, type(code)):
            for inner in codes_of(constant):
                yield inner

def words(numbers):
    if sys.version_info < (3,):
        import struct
        return struct.pack("<%dI" % len(numbers), *numbers)
    return b"".join([number.to_bytes(4, "little") for number in numbers])

def write(out, code):
    table = code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab
    lines = lines_of(code)
    out.write(words([code.co_firstlineno, len(table), len(lines)]) + table + words(lines))

out = getattr(sys.stdout, "buffer", sys.stdout)
first, share, count = int(sys.argv[1]), int(sys.argv[2]), 0
for folder, folders, names in os.walk(os.path.dirname(os.__file__)):
    folders[:] = sorted(set(folders) - no_library)
    for path in sorted(os.path.join(folder, name) for name in names if name.endswith(".py")):
        if not os.path.exists(path):
            continue  # links out of an unpacked root
        count += 1
        if count % share != first % share:
            continue
        with open(path, "rb") as source:
            for code in codes_of(compile(source.read(), path, "exec")):
                write(out, code)
"""

# Reads that, says how many positions there were, how many had no line, and the first that differ.
COMPARER = r"""
#include <stdio.h>
#include <stdlib.h>
#include "runtime/python/private.h"

int main(int argc, char **argv)
{
    static const enum python_lines formats[] = {PYTHON_LNOTAB_UNSIGNED, PYTHON_LNOTAB, PYTHON_LINETABLE,
                                                PYTHON_LOCATIONS};
    enum python_lines format = formats[atoi(argv[1]) % 4];
    long step = atoi(argv[2]);
    uint32_t head[3];
    size_t codes = 0, positions = 0, without = 0, wrong = 0, longest = 0;
    FILE *file = fopen(argv[argc - 1], "rb");
    for (; fread(head, sizeof head, 1, file) == 1; codes++) {
        unsigned char *table = malloc(head[1] + 1);
        uint32_t *lines = malloc((head[2] + 1) * sizeof *lines);
        if (fread(table, 1, head[1], file) != head[1] || fread(lines, sizeof *lines, head[2], file) != head[2]) {
            return 2;
        }
        longest = head[1] > longest ? head[1] : longest;
        for (uint32_t i = 0; i < head[2]; i++, positions++) {
            uint32_t line = python_line(format, head[0], table, head[1], i * step);
            without += lines[i] == 0;
            if (line != lines[i] && wrong++ < 5) {
                fprintf(stderr, "code %zu, first line %u, offset %ld: %u, expected %u\n", codes, head[0], i * step,
                        line, lines[i]);
            }
        }
        free(table);
        free(lines);
    }
    printf("%zu %zu %zu %zu %zu\n", codes, positions, without, longest, wrong);
    return fclose(file);
}
"""


def format_of(version):
    return 0 if version < (3, 6) else 1 if version < (3, 10) else 2 if version < (3, 11) else 3


@pytest.fixture(scope="session")
def comparer(repository, out, tmp_path_factory):
    library = out / "host" / "libpillion.a"
    if not library.exists():
        pytest.fail(f"{library} is missing; run make unit", pytrace=False)
    folder = tmp_path_factory.mktemp("python-lines")
    (folder / "comparer.c").write_text(COMPARER)
    done = process.run(["gcc", "-std=gnu11", "-O1", "-fsanitize=address,undefined", f"-I{repository}/src", "-o",
                        folder / "comparer", folder / "comparer.c", library], timeout=120)
    assert done.status == 0, done
    return folder / "comparer"


# A program's loader makes no other library of it.
INTERPRETERS = [pytest.param(name, marks=[] if pythons.is_here(name) else [pytest.mark.net])
                for name in pythons.rows() if not name.startswith("loader")]


@pytest.fixture
def dump(workdir):
    """dump(name) -> the interpreter and the file it wrote."""
    def make(name):
        try:
            interpreter = pythons.get(name)
        except pythons.Missing as reason:
            pytest.skip(str(reason))
        (workdir / "dumper.py").write_text(DUMPER)
        share = 1 if os.environ.get("LINES") == "all" else 4 if interpreter.number < (3, 11) else 8
        done = process.run(interpreter.command(workdir / "dumper.py", list(pythons.rows()).index(name), share), timeout=300)
        assert done.status == 0, (interpreter, done.err)
        (workdir / "dump").write_bytes(done.stdout)
        return interpreter, workdir / "dump"
    return make


@pytest.mark.parametrize("name", INTERPRETERS)
def test_positions_of_the_standard_library_have_the_lines_the_interpreter_tells(name, dump, comparer):
    interpreter, file = dump(name)
    step = 1 if interpreter.number < (3, 6) else 2
    done = process.run([comparer, format_of(interpreter.number), step, file], timeout=300)
    assert done.status == 0, done
    codes, positions, without, longest, wrong = map(int, done.out.split())
    print(f"{interpreter}: {codes} code objects, {positions} positions, {without} without a line, "
          f"longest table {longest} bytes, {wrong} wrong")
    assert wrong == 0 and positions > 100000, done


def test_the_comparison_is_able_to_fail(dump, comparer):
    """A table read as another version's gives other lines."""
    _, file = dump("host")
    done = process.run([comparer, 2, 2, file], timeout=300)
    assert done.status == 0 and int(done.out.split()[-1]) > 10000, done

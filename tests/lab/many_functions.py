"""Programs with more functions than a table of them may take memory: cd tests; python3 -m lab.many_functions COUNT TARGET [FILLER]

Each of COUNT functions is a loop of its own; main runs three of them in turn, a tenth of a second each, until it has used
as many seconds as it is told. FILLER characters make names longer, as C++ has them.
"""
import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

from . import cache

MAIN = """
#include <stdlib.h>
#include <time.h>
{declared}
static void (*const chosen[])(unsigned long) = {{{names}}};
int main(int count, char **words)
{{
    double seconds = count > 1 ? atof(words[1]) : 1;
    for (unsigned turn = 0; clock() < seconds * CLOCKS_PER_SEC; turn++)
        for (clock_t limit = clock() + CLOCKS_PER_SEC / 10; clock() < limit;)
            chosen[turn % 3](1000000);
}}
"""
FUNCTION = """.globl {0}
.type {0}, @function
{0}:
.cfi_startproc
dec %rdi
jne {0}
ret
.cfi_endproc
.size {0}, .-{0}
"""


def name(number, filler=0):
    return f"f{number}_{'x' * filler}"


def chosen(count, filler=0):
    return [name(number, filler) for number in (count // 10, count // 2, count - 2)]


def make(count, target, filler=0):
    declared = "".join(f"void {each}(unsigned long);\n" for each in chosen(count, filler))
    with tempfile.TemporaryDirectory() as folder:
        source, code = Path(folder) / "main.c", Path(folder) / "code.s"
        source.write_text(MAIN.format(declared=declared, names=", ".join(chosen(count, filler))))
        with open(code, "w", encoding="ascii") as file:
            file.write(".text\n")
            file.writelines(FUNCTION.format(name(number, filler)) for number in range(count))
            file.write('.section .note.GNU-stack, "", @progbits\n')
        subprocess.run(["gcc", "-O1", "-fno-omit-frame-pointer", "-o", target, source, code], check=True)


def program(count):
    """Made once."""
    identity = hashlib.sha256(Path(__file__).read_bytes() + str(count).encode()).hexdigest()[:16]
    target = cache.folder("programs", identity) / "many"
    if not target.exists():
        make(count, target.with_suffix(".part"))
        target.with_suffix(".part").rename(target)
    return target


if __name__ == "__main__":
    make(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)

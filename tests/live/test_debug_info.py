"""Inlined functions and lines from debug files of all kinds, beside those of eu-addr2line and llvm-addr2line; and what a
debug file can do that its reader does not survive.

Asked are addresses where a row of the line table begins: elsewhere eu-addr2line tells the functions of the row's
beginning and not of the address. It tells no callers across units or from split units, so llvm-addr2line is asked as
well, and one of them must agree. Both read the file before it was packed or split by others' tools.
"""
import hashlib
import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lab import cache, linked, profiler

COUNT = int(os.environ.get("DEBUG_INFO_ADDRESSES", "300"))
SHARE = 0.999

CXX = """
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
int main(int count, char **words)
{
    std::map<std::string, std::vector<int>> places;
    std::regex wanted("a(b|c)*d");
    for (int i = 0; i < count; i++) {
        places[words[i]].push_back(i);
        if (std::regex_match(words[i], wanted))
            std::cout << i;
    }
    for (auto &place : places)
        std::sort(place.second.begin(), place.second.end());
    std::cout << places.size();
}
"""
SPIN = """
#include <ctime>
int main()
{
    volatile unsigned turns = 0;
    while (clock() < 2.5 * CLOCKS_PER_SEC)
        for (int i = 0; i < 100000; i++)
            turns = turns + 1;
}
"""
RUST = """
use std::collections::HashMap;
fn main() {
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    for (i, word) in std::env::args().enumerate() { places.entry(word).or_default().push(i); }
    let mut sorted: Vec<_> = places.into_iter().collect();
    sorted.sort();
    println!("{:?}", sorted);
}
"""
GO = """
package main
/*
#include <stdlib.h>
static inline int twice(int x) { return 2 * abs(x); }
static int both(int x) { return twice(x) + twice(x + 1); }
*/
import "C"
import ("fmt"; "os"; "sort")
func main() { sort.Strings(os.Args); fmt.Println(C.both(C.int(len(os.Args))), os.Args) }
"""


def make(folder, command, source, name):
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]} here")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(source)
    done = subprocess.run([*command, name], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "GOCACHE": str(folder / "cache"), "GO111MODULE": "off"})
    assert done.returncode == 0, done.stdout[-2000:]
    return folder / "program"


def gcc(folder):
    """A copy of a program that is compiled once."""
    kept = cache.folder("programs", "debug-info-" + hashlib.sha256(CXX.encode()).hexdigest()[:16])
    if not (kept / "program").exists():
        make(kept, ["g++", "-O2", "-g", "-o", "program"], CXX, "a.cc")
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(kept / "program", folder))


def split(folder, *flags):
    return make(folder, ["clang++", "-O2", "-g", "-gsplit-dwarf", *flags, "-o", "program"], CXX, "a.cc")


def packed(folder, how):
    plain = gcc(folder)
    run("objcopy", f"--compress-debug-sections={how}", plain, folder / "packed")
    return folder / "packed", plain


def beside(folder):
    """In a file of its own, packed, found by its link."""
    plain = gcc(folder)
    run("objcopy", "--only-keep-debug", "--compress-debug-sections=zstd", plain, folder / "lone.debug")
    run("objcopy", "--strip-debug", f"--add-gnu-debuglink={folder}/lone.debug", plain, folder / "lone")
    return folder / "lone", plain


def shared(folder):
    """What two programs have in common is in a third file."""
    plain = gcc(folder)
    for name in ("one", "two"):
        shutil.copy(plain, folder / name)
    run("dwz", "-m", folder / "common.debug", folder / "one", folder / "two")
    assert (folder / "common.debug").exists()
    return folder / "one", plain


def package(folder):
    program = split(folder)
    run("llvm-dwp", "-e", program, "-o", folder / "program.dwp")
    keep = folder / "kept"
    keep.mkdir()
    (wanted,) = folder.glob("*.dwo")
    reference = keep / "program"
    shutil.copy(program, reference)
    shutil.copy(wanted, keep)
    return program, reference, wanted


KINDS = {
    "g++": gcc,
    "rustc": lambda folder: make(folder, ["rustc", "-O", "-g", "-o", "program"], RUST, "a.rs"),
    "go": lambda folder: make(folder, ["go", "build", "-o", "program"], GO, "a.go"),
    "split-5": lambda folder: split(folder, "-gdwarf-5"),
    "split-4-types": lambda folder: split(folder, "-gdwarf-4", "-fdebug-types-section"),
    "dwarf-3": lambda folder: make(folder, ["g++", "-O2", "-g", "-gdwarf-3", "-o", "program"], CXX, "a.cc"),
    "zlib": lambda folder: packed(folder, "zlib"),
    "zlib-gnu": lambda folder: packed(folder, "zlib-gnu"),
    "zstd": lambda folder: packed(folder, "zstd"),
    "zstd-beside": beside,
    "dwz": shared,
}


def run(*command, text=""):
    done = subprocess.run([str(each) for each in command], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, errors="replace")
    assert done.returncode == 0, (command, done.stderr[-1000:])
    return done.stdout


def rows(program):
    """Where rows of the line table begin, within .text."""
    start, size = (int(each, 16) for each in re.search(r" \.text +PROGBITS +(\w+) \w+ (\w+)",
                                                       run("readelf", "-SW", program)).groups())
    found = set()
    for line in run("objdump", "--dwarf=decodedline", program).splitlines():
        match = re.search(r" (0x[0-9a-f]+)(\[\d+\])?(\s|$)", line)
        if match and "END" not in line and start <= int(match[1], 16) < start + size:
            found.add(int(match[1], 16))
    return sorted(found)


def peer(tool, program, addresses):
    told, at = {}, None
    for line in run(tool, "-i", "-a", "-e", program, text="".join(f"{a:#x}\n" for a in addresses)).splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line):
            at = int(line, 16)
            told[at] = []
        elif line not in ("??:0", "??:?"):
            line = re.sub(r" \(discriminator.*", "", line).replace(":?", ":0")
            told[at].append(os.path.normpath(re.sub(r"^(.*:\d+):\d+$", r"\1", line)))
    return told


class Answer:
    def __init__(self, text):
        *lines, end, cost = text.splitlines()
        self.end, _, self.why = end.removeprefix("end ").partition(" ")
        self.child_ms, self.own_kb = map(int, cost.split()[1:])
        self.late = sum(line.endswith(" late") for line in lines)
        self.lines = {int(first, 16): [os.path.normpath(each) for each in rest]
                      for first, *rest in (line.split(" ") for line in lines)}


@pytest.fixture(scope="module")
def ask(pillion):
    program = linked.program("tests/lab/lines_of.c", os.uname().machine, pillion)
    return lambda file, addresses, *fault: Answer(
        run(program, file, *fault, text="".join(f"{a:#x}\n" for a in addresses)))


def agree(ask, record_property, kind, program, reference, addresses):
    ours = ask(program, addresses)
    assert ours.end == "done", (ours.end, ours.why)
    told = peer("llvm-addr2line", reference, addresses)
    other = [a for a in addresses if ours.lines[a] != told[a]]
    if other:
        told.update((a, lines) for a, lines in peer("eu-addr2line", reference, other).items() if lines == ours.lines[a])
    wrong = [a for a in addresses if ours.lines[a] != told[a]]
    record_property(kind, f"{len(addresses) - len(wrong)} of {len(addresses)}, child {ours.child_ms} ms, own {ours.own_kb} KB")
    chains = sum(len(lines) > 1 for lines in ours.lines.values())
    assert len(wrong) <= (1 - SHARE) * len(addresses), [(hex(a), told[a], ours.lines[a]) for a in wrong[:5]]
    assert chains > len(addresses) / 20, f"only {chains} addresses with inlined functions"


def some(program):
    all_of_them = rows(program)
    return sorted(random.Random(5).sample(all_of_them, min(COUNT, len(all_of_them))))


@pytest.mark.parametrize("kind", KINDS)
def test_lines_and_inlined_functions_are_those_of_others(ask, record_property, workdir, kind):
    made = KINDS[kind](workdir / "made")
    program, reference = made if isinstance(made, tuple) else (made, made)
    agree(ask, record_property, kind, program, reference, some(reference))


def test_a_package_of_split_units(ask, record_property, workdir):
    program, reference, unit = package(workdir / "made")
    addresses = some(program)
    told = ask(program, addresses).lines
    unit.unlink()
    packaged = ask(program, addresses)
    assert packaged.why == "", packaged.why
    packaged = packaged.lines
    assert packaged == told and sum(len(each) > 1 for each in packaged.values()) > len(addresses) / 20
    (workdir / "made" / "program.dwp").unlink()
    left = ask(program, addresses)
    assert sum(len(each) > 1 for each in left.lines.values()) == 0
    assert left.end == "done" and left.why == f"split debug information {unit} is not there", left.why


def test_missing_split_units_are_told_once(pillion, workdir):
    """By the product, while lines that are there are used in every window."""
    program = make(workdir / "made", ["clang++", "-O2", "-g", "-gsplit-dwarf", "-o", "program"], SPIN, "a.cc")
    (unit,) = (workdir / "made").glob("*.dwo")
    unit.unlink()
    session = profiler.profile(pillion, workdir / "out", [program], "-I", "-c", "-d", "1")
    text = " ".join(session.done.err.split())
    said = f"{program}: split debug information {unit} is not there; inlined functions and lines are missing"
    assert text.count(said) == 1, text
    assert len(session.windows) > 1 and session.share("main") > 0.9, session.frames()


@pytest.mark.parametrize("fault, end", [("crash", "failed"), ("mute", "failed"), ("babble", "failed"),
                                        ("allocate", "failed"), ("loop", "late")])
def test_a_reader_that_fails_costs_its_lines(ask, workdir, fault, end):
    """It answers half, and then does what a debug file made it do."""
    program = gcc(workdir / "made")
    addresses = some(program)[:20]
    healthy, broken = ask(program, addresses), ask(program, addresses, fault)
    assert broken.end == end, (broken.end, broken.why)
    assert broken.late == 10 and all(broken.lines[a] == healthy.lines[a] for a in addresses[:10])
    assert broken.own_kb < healthy.own_kb + 1024
    if fault == "allocate":
        assert "memory" in broken.why


def test_a_damaged_debug_file_does_no_harm(ask, workdir):
    program = gcc(workdir / "made")
    addresses = some(program)[:20]
    section = re.search(r" \.debug_info +PROGBITS +\w+ (\w+) (\w+)", run("readelf", "-SW", program))
    start, size = (int(each, 16) for each in section.groups())
    content = bytearray(program.read_bytes())
    chance = random.Random(7)
    for _ in range(20):
        damaged = bytearray(content)
        for _ in range(2000):
            damaged[start + chance.randrange(size)] = chance.randrange(256)
        (workdir / "damaged").write_bytes(damaged)
        answer = ask(workdir / "damaged", addresses)
        assert answer.end in ("done", "failed"), (answer.end, answer.why)

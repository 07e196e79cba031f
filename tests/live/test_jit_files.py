"""Perf maps and jitdumps of real runtimes, read by the product's reader and by one that shares nothing with it."""
import bisect
import functools
import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from lab import process, root as roots, tiers

pytestmark = pytest.mark.measures

SOURCE = Path(__file__).parent / "jit_reader.c"

NODE_PROGRAM = """
function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
const shop = { total(n) { let sum = 0; for (let i = 0; i < n; i++) sum += i % 7; return sum; } };
// Functions that live shortly: their memory is used again, and the names in the files are replaced.
function made(i) {
  const f = new Function('x', '/* ' + i + ' */ let s = 0; for (let i = 0; i < 200; i++) s += i ^ x; return s;');
  let sum = 0;
  for (let k = 0; k < 30; k++) sum += f(k);
  return sum;
}
let sum = 0, count = 0;
for (let end = Date.now() + 1500; count < 5000 || Date.now() < end;) { // on a busy machine it takes longer, and does as much
  sum += fibonacci(20) + shop.total(10000);
  for (let i = 0; i < 200; i++) sum += made(count++);
  if (count % 1000 === 0) gc();
}
console.log(process.pid);
"""

PYTHON_PROGRAM = """
import os
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
class Shop:
    def total(self, n):
        return sum(i % 7 for i in range(n))
fibonacci(20), Shop().total(1000)
print(os.getpid())
"""


@pytest.fixture(scope="session")
def reader(repository, out):
    """jit_reader, linked with the library the unit tests use (AddressSanitizer and all)."""
    library, program = out / "host" / "libpillion.a", out / "host" / "jit_reader"
    if not library.exists():
        pytest.fail(f"{library} is missing; run make unit", pytrace=False)
    if not program.exists() or program.stat().st_mtime < max(library.stat().st_mtime, SOURCE.stat().st_mtime):
        subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE=", "-Isrc", "-Wall", "-Wextra", "-Werror", "-g", "-O1",
                        "-fsanitize=address,undefined", "-o", program, SOURCE, library], cwd=repository, check=True)

    def read(kind, path, questions, piece=4096, max_bytes=64 << 20):
        """The answers, (start, limit, line, file, name) or None each, and the stats."""
        asked = "".join(f"{address:x} {time}\n" for address, time in questions)
        done = subprocess.run([program, kind, path, str(piece), str(max_bytes)], input=asked.encode(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.returncode == 0, done.stderr.decode()
        answers = []
        for line in done.stdout.decode("utf-8", "replace").splitlines():
            if line == "-":
                answers.append(None)
                continue
            numbers, file, name = line.split("\t", 2)
            start, limit, number = numbers.split()
            answers.append((int(start, 16), int(limit, 16), int(number), file, name))
        assert len(answers) == len(questions)
        return answers, json.loads(done.stderr)
    return read


class Table:
    """What is where, by the rules of runtime/generated/jit.h: a plain sorted list."""

    def __init__(self):
        self.starts, self.rest = [], []

    def add(self, start, size, name):
        first = bisect.bisect_left(self.starts, start)
        last = bisect.bisect_left(self.starts, start + size)
        if first > 0 and self.rest[first - 1][0] > start:
            self.rest[first - 1] = (start, self.rest[first - 1][1])
        self.starts[first:last] = [start]
        self.rest[first:last] = [(start + size, name)]

    def at(self, address):
        """(start, limit, name) or None."""
        at = bisect.bisect_right(self.starts, address) - 1
        return (self.starts[at], *self.rest[at]) if at >= 0 and address < self.rest[at][0] else None


def table_of_map(path):
    table = Table()
    for line in path.read_text(errors="replace").splitlines():
        start, size, name = line.split(" ", 2)
        table.add(int(start, 16), int(size, 16), name)
    return table


def loads_of_dump(path):
    """(time, start, size, name) of each load."""
    data, at = path.read_bytes(), struct.unpack_from("<I", path.read_bytes(), 8)[0]
    found = []
    while at + 16 <= len(data):
        kind, size, time = struct.unpack_from("<IIQ", data, at)
        if kind == 0:
            start, code_bytes = struct.unpack_from("<QQ", data, at + 32)
            found.append((time, start, code_bytes, data[at + 56:data.index(b"\0", at + 56)].decode("utf-8", "replace")))
        at += size
    return found


def lines_of_dump(path):
    """(time, address, line, file) of V8's debug info: entries are 0x40 too high, and some records are damaged."""
    data, at, entries, found = path.read_bytes(), 40, {}, []
    while at + 16 <= len(data):
        kind, size, time = struct.unpack_from("<IIQ", data, at)
        end = at + size
        if kind == 2:
            (start, count), entry, entries = struct.unpack_from("<QQ", data, at + 16), at + 32, {}
            for _ in range(count):
                if entry + 17 > end:
                    break
                address, line, _ = struct.unpack_from("<QII", data, entry)
                nul = data.find(b"\0", entry + 16, end)
                if nul < 0:
                    break
                entries[address - 0x40] = (line, data[entry + 16:nul].decode("utf-8", "replace"))
                entry = nul + 1
            else:
                if end - entry < 8 and not any(data[entry:end]):
                    at = end
                    continue
            entries = {}
        elif kind == 0:
            start, code_bytes = struct.unpack_from("<QQ", data, at + 32)
            if not re.match(rb"[A-Za-z]+:\^", data[at + 56:at + 80]):
                found += [(time, address, *rest) for address, rest in entries.items() if start <= address < start + code_bytes]
            entries = {}
        at = end
    return found


def questions_of(table):
    """The first and last byte of all there is, and the byte behind."""
    return [address for start, (limit, _) in zip(table.starts, table.rest) for address in (start, limit - 1, limit)]


def check(reader, kind, path, table):
    addresses = questions_of(table)
    for piece in (1 << 16, 61):
        answers, stats = reader(kind, path, [(address, "now") for address in addresses], piece)
        for address, answer in zip(addresses, answers):
            expected = table.at(address)
            got = answer and (answer[0], answer[1], answer[4])
            assert got == expected, (hex(address), got, expected)
        assert stats["damaged"] == stats["refused"] == 0 and stats["names"] == len(table.starts), stats
    print(f"{path.name}: {stats['names']} names, {stats['replaced']} replaced, {stats['bytes'] // stats['names']} bytes each")
    return stats


def node(workdir, *options):
    """The pid of a node that has run."""
    program = shutil.which("node") or shutil.which("nodejs")
    if program is None:
        pytest.skip("no node here")
    (workdir / "program.js").write_text(NODE_PROGRAM)
    done = process.run([program, "--expose-gc", *options, "program.js"], cwd=workdir, timeout=60)
    if done.status == 9:
        pytest.skip(f"this node knows no {options[0]}: {done.err.strip()}")
    assert done.status == 0, done
    return int(done.out)


@pytest.fixture(scope="session")
def newer_python(tmp_path_factory):
    """A root with CPython 3.13, for machines that have none."""
    def make():
        reason = tiers.root_missing() or tiers.net_missing()
        if reason:
            pytest.skip(reason)
        try:
            return roots.make("python3.13", tmp_path_factory.mktemp("python3.13"))
        except roots.Unreachable as error:
            pytest.skip(f"tier net: {error}")
    return functools.cache(make)


@pytest.fixture
def python(workdir, newer_python):
    """python(option, minor, name) -> the file NAME % pid that a CPython of 3.minor or later has left in /tmp, taken away
    from there; run with -X option."""
    def run(option, minor, name):
        versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
        names = [f"python3.{n}" for n in range(minor, 20)]
        found = [([path], Path("/tmp")) for name_ in names
                 for path in [shutil.which(name_, path="/usr/local/bin:/usr/bin"), *sorted(versions.glob(f"*/bin/{name_}"))]
                 if path]
        if not found:
            root = newer_python()
            (root / "tmp").mkdir(exist_ok=True)
            found = [(["chroot", root, "/usr/bin/python3.13"], root / "tmp")]
        for program, folder in found:
            done = process.run([*program, "-X", option, "-c", PYTHON_PROGRAM], cwd=workdir, timeout=60)
            if done.status == 0 and not done.err:
                return Path(shutil.move(folder / (name % int(done.out)), workdir))
        pytest.skip(f"no CPython from 3.{minor} on with -X {option} here (tried: {', '.join(str(p[-1]) for p, _ in found)})")
    return run


@pytest.fixture
def take(workdir):
    """Moves a file that a runtime left in /tmp to the test's folder."""
    def move(path):
        return Path(shutil.move(path, workdir / Path(path).name))
    return move


def hits(reader, kind, path, table, wanted):
    """The names that hold one of the wanted texts, looked up in the middle of their code."""
    asked = [(start + limit) // 2 for start, (limit, name) in zip(table.starts, table.rest) if wanted in name]
    return [answer[4] for answer in reader(kind, path, [(address, "now") for address in asked])[0] if answer]


def test_perf_map_of_node(reader, workdir, take):
    path = take(f"/tmp/perf-{node(workdir, '--perf-basic-prof')}.map")
    table = table_of_map(path)
    stats = check(reader, "map", path, table)
    assert stats["names"] > 1000 and stats["replaced"] > 0
    optimised = [name for name in hits(reader, "map", path, table, "fibonacci") if "*fibonacci " in name]
    assert optimised and "program.js:2" in optimised[0], optimised
    assert hits(reader, "map", path, table, "total ") and hits(reader, "map", path, table, "Builtin:")


def test_perf_map_of_python(reader, python):
    path = python("perf", 12, "perf-%d.map")
    table = table_of_map(path)
    check(reader, "map", path, table)
    assert hits(reader, "map", path, table, "fibonacci") == ["py::fibonacci:<string>"]
    assert hits(reader, "map", path, table, "Shop.total:") == ["py::Shop.total:<string>"]


def test_jitdump_of_node(reader, workdir):
    pid = node(workdir, "--perf-prof")
    path = workdir / f"jit-{pid}.dump"
    loads, table = loads_of_dump(path), Table()
    for _, start, size, name in loads:
        table.add(start, size, name)
    stats = check(reader, "dump", path, table)
    assert stats["replaced"] > 0
    # Each load was there when it was written, whatever came later; the last 16,384 deaths are remembered.
    asked = loads[-10000:]
    answers, _ = reader("dump", path, [(start, time) for time, start, _, _ in asked])
    for (time, start, size, name), answer in zip(asked, answers):
        assert answer and (answer[0], answer[4]) == (start, name), (time, hex(start), name, answer)
    # V8 writes freed memory as some file names: what is no text is nobody's truth.
    lines = [entry for entry in lines_of_dump(path) if "\ufffd" not in entry[3]][-10000:]
    answers, _ = reader("dump", path, [(address, time) for time, address, _, _ in lines])
    for (time, address, line, file), answer in zip(lines, answers):
        assert answer and answer[2:4] == (line, file), (time, hex(address), line, file, answer)
    print(f"{len(lines)} lines")
    assert lines


def test_jitdump_of_python(reader, python):
    path = python("perf_jit", 13, "jit-%d.dump")
    table = Table()
    for _, start, size, name in loads_of_dump(path):
        table.add(start, size, name)
    check(reader, "dump", path, table)
    assert hits(reader, "dump", path, table, "fibonacci") == ["py::fibonacci:<string>"]


def test_a_table_of_the_usual_size_holds_what_it_can_of_a_large_map(reader, workdir):
    """8 MiB and 300,000 functions: who came first is found, nobody is misnamed, the maximum is kept."""
    path, count = workdir / "large.map", 300000
    with path.open("w") as file:
        for i in range(count):
            file.write(f"{0x10000000 + i * 0x40:x} 40 JS:*function_{i:06} /srv/app/modules/file_{i % 300}.js:{i % 997}:10\n")
    addresses = [0x10000000 + i * 0x40 + 0x11 for i in range(0, count, 101)]
    answers, stats = reader("map", path, [(address, "now") for address in addresses], max_bytes=8 << 20)
    print(f"{stats['names']} of {count} names in {stats['bytes']} bytes")
    assert stats["bytes"] <= 8 << 20 and stats["names"] > 80000 and stats["names"] + stats["refused"] == count
    for address, answer in zip(addresses, answers):
        number = (address - 0x10000000) // 0x40
        assert answer is None or f"*function_{number:06} " in answer[4]
    assert answers[0] and answers[1]

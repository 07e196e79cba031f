#!/usr/bin/python3
"""Targets that mean ill, below a profiler that is built with AddressSanitizer and UBSan, and below the product.

    tests/lab/hostile.py --count 5000 [--seed N] [--at-once 25] [--kind NAME...] [--mode N] [-v]

A target is a process that a seed draws: a program or a mapped file whose ELF bytes are wrong, a perf map or a jitdump of
rubbish, a Python or a Ruby that spoils its own structures, names, frames and files that change, lives of a millisecond. --at-once of
them run below one profiler of each kind, for a second, in the mode that the first one's seed says; the same seed is the same
targets, but their schedule. One line for each finding, with the command that tries again: what a sanitizer reported, a status
or a signal, an end that is more than LATE_SECONDS late, a file of output that cannot be read, and, of the product, a peak of
memory more than a tenth above --max-memory. The last line is the sum; the status 1 where there were findings.
"""
import argparse
import contextlib
import ctypes
import os
import platform
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import col, compiler, hostile_elf, process, pythons  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "lab"
SCRIBBLING = ROOT / "tests" / "live" / "programs" / "python" / "scribbling.py"
ARCH = platform.machine()
SANITIZED = ROOT / "build" / "out" / "host" / "pillion"
PRODUCT = ROOT / "build" / "out" / ARCH / "pillion"
LATE_SECONDS = 10
EMPTY = 1  # the status of a profile without a stack
PR_SET_PDEATHSIG = 1
DEFAULT_MEMORY_MB = 64
SANITIZED_MEMORY_MB = 1024  # a sanitizer's own is most of what it has: no detail is to be lost to that
MODES = ((), ("--perf-mode", "disabled"), ("--wall", "--off-cpu"), ("--perf-mode", "dwarf", "-I"), ("--perf-mode", "fp", "-I", "--col-lines"),
         ("--perf-mode", "disabled", "--wall"), ("-I", "-e", "page-faults"), ("--perf-mode", "none", "--python-native", "off"))


# ---- What targets are made of

def hostile(*flags, name="hostile"):
    return compiler.compile_file(HERE / "hostile.c", name, *flags)


def scribble():
    return compiler.compile_file(HERE / "scribble.c", "scribble.so", "-shared", "-fPIC", "-nostdlib", "-O1")


def with_symbols_packed():
    """As Fedora has it: no symbols but those in .gnu_debugdata."""
    made = hostile("-g0", name="minidebug")
    target = made.with_name("minidebug.done")
    if not target.exists():
        packed = made.with_name("symbols.xz")
        subprocess.run(["objcopy", "--only-keep-debug", made, f"{packed}.elf"], check=True)
        subprocess.run(["xz", "-kf0", f"{packed}.elf"], check=True)
        subprocess.run(["objcopy", "-S", "--add-section", f".gnu_debugdata={packed}.elf.xz", made, target], check=True)
    return target


def with_debug_file():
    """Its debug information is beside it: a program of two files."""
    made = hostile("-gdwarf-4", name="linked")
    target, debug = made.with_name("linked.done"), made.with_name("linked.debug")
    if not target.exists():
        subprocess.run(["objcopy", "--only-keep-debug", made, debug], check=True)
        subprocess.run(["objcopy", "-S", f"--add-gnu-debuglink={debug}", made, target], check=True)
    return target


def rubies():
    """Programs that look like Ruby, each of a version of another layout: row of tests/unit/ruby_process.h, version."""
    return [compiler.compile_file(HERE / "hostile_ruby.c", f"ruby{version}", "-rdynamic", f"-I{ROOT}/src", f"-I{ROOT}/tests/unit",
                                  f"-DFAMILY={row}", f"-DVERSION={version}")
            for row, version in ((0, "2.5.3"), (2, "2.7.8"), (4, "3.1.9"), (5, "3.2.11"), (7, "3.4.99"), (9, "4.0.6"))]


def go_program():
    """None where there is no Go."""
    if shutil.which("go") is None:
        return None
    from lab import cache
    folder = cache.folder("programs", "hostile-go")
    if not (folder / "spin").exists():
        (folder / "spin.go").write_text("package main\n\nfunc f(x int) int {\n\tfor i := 0; i < 9999; i++ {\n\t\tx = x*3 + i\n\t}\n"
                                        "\treturn x\n}\n\nfunc main() {\n\tgo func() {\n\t\tfor {\n\t\t\tf(2)\n\t\t}\n\t}()\n\tfor {\n\t\tf(1)\n\t}\n}\n")
        done = subprocess.run(["go", "build", "-o", "spin", "spin.go"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if done.returncode:
            return None
    return folder / "spin"


def programs():
    made = [hostile(), hostile("-g", "-gz", "-O1", name="packed"), hostile("-g", "-static", name="static"),
            hostile("-gdwarf-3", "-no-pie", "-O0", name="fixed"), hostile("-gsplit-dwarf", name="split"),
            with_symbols_packed(), with_debug_file(), go_program()]
    return [program for program in made if program is not None]


def libraries():
    found = [hostile("-shared", "-fPIC", name="hostile.so"), scribble()]
    return found + [path for name in ("libm.so.6", "libz.so.1", "libexpat.so.1")
                    for path in Path("/lib").glob(f"{ARCH}-linux-gnu/{name}")]


def interpreters(all_kept):
    """Of the machine, and with all_kept what the lab has unpacked or built already."""
    found = []
    for one in pythons.rows():
        if pythons.is_here(one) or all_kept:
            with contextlib.suppress(pythons.Missing):
                found.append(pythons.get(one))
    return found


class Stock:
    """What targets are made of, built and read once."""

    def __init__(self, all_kept):
        self.base, self.scribble, self.rubies = hostile(), scribble(), rubies()
        self.programs = [path.read_bytes() for path in programs()]
        self.libraries = [path.read_bytes() for path in libraries()]
        self.debug = with_debug_file().with_name("linked.debug").read_bytes()
        self.interpreters = interpreters(all_kept)


# ---- Kinds. Each: (stock, draw, folder) -> command line; what it needs it writes into the folder

def written(path, data):
    path.write_bytes(data)
    path.chmod(0o755)
    return path


def seed_of(draw):
    return str(draw.getrandbits(60))


def elf(stock, draw, folder):
    which = draw.randrange(len(stock.programs))
    program = written(folder / draw.choice(("elf", "linked")), hostile_elf.spoil(stock.programs[which], draw, True))
    if draw.random() < 0.5:
        (folder / ".debug").mkdir()
        written(draw.choice((folder, folder / ".debug")) / "linked.debug", hostile_elf.spoil(stock.debug, draw, False))
    return [program, "spin", seed_of(draw)]


def library(stock, draw, folder):
    data, offset = hostile_elf.library(draw.choice(stock.libraries + stock.programs[:1]), draw, ARCH)
    return [stock.base, "mapped", seed_of(draw), written(folder / "library.so", data), str(offset)]


def changing(stock, draw, folder):
    data = stock.libraries[0]
    if draw.random() < 0.5:
        data, offset = hostile_elf.library(data, draw, ARCH)
    else:
        _, offset = hostile_elf.library(data, draw, ARCH)
        data = bytearray(data)
        data[offset:offset + 16] = hostile_elf.COUNT_DOWN[ARCH].ljust(16, b"\0")
    return [stock.base, "changing", seed_of(draw), written(folder / "changing.so", data), str(offset)]


def number(draw, near):
    return draw.choice((near + draw.randrange(65536), near, draw.getrandbits(64), draw.getrandbits(80), 0, (1 << 64) - 1, draw.randrange(4096)))


def name(draw):
    return draw.choice((b"f", b"LazyCompile:*go /a.js:1:2", b"\xff\xfe\0x", b"a;b c\r", b"_ZN" + b"9aaaaaaaaaN" * 400, b"_RNv" + b"B_" * 200,
                        draw.randbytes(draw.randrange(60)), b"x" * draw.choice((0, 255, 4096, 70000)), "py::é:/ü.py".encode()))


def map_text(draw, near):
    lines = []
    for _ in range(draw.choice((1, 30, 3000))):
        lines.append(b"%x %x " % (number(draw, near), number(draw, 0)) + name(draw))
    lines += [b"%x 4000 covers" % near] * draw.randrange(3)
    text = draw.choice((b"\n", b"\n", b"\r\n", b"\0", b" ")).join(lines)
    return draw.choice((text, text, text + b"\n", draw.randbytes(draw.choice((1, 100, 100000)))))


def perf_map(stock, draw, folder):
    near = 0x10000000 + draw.randrange(1 << 16) * 4096
    written(folder / "map", map_text(draw, near))
    if draw.random() < 0.1:
        os.truncate(folder / "map", draw.choice((1 << 20, 1 << 33, 1 << 40)))
    how = draw.choice(("cp", "cp", "cp", "ln -s", "ln"))
    script = f'trap "" PIPE; {how} "$1" /tmp/perf-$$.map; shift; exec "$@"'
    if draw.random() < 0.05:
        script = 'shift; mkfifo /tmp/perf-$$.map; exec "$@"'
    return ["sh", "-c", script, "sh", folder / "map", stock.base, "generated", seed_of(draw), str(near)]


def record(draw, near):
    kind = draw.choice((0, 0, 0, 0, 1, 2, 3, 4, draw.getrandbits(32)))
    address, size = number(draw, near) & (1 << 64) - 1, number(draw, 0) & (1 << 64) - 1
    if kind == 0:
        body = struct.pack("<IIQQQQ", draw.getrandbits(32), 1, address, draw.choice((near, address)), size, draw.randrange(50))
        body += name(draw) + b"\0" + draw.randbytes(draw.randrange(64))
    elif kind == 1:
        body = struct.pack("<IIQQQQQ", 1, 1, address, near, address, size, draw.randrange(50))
    elif kind == 2:
        body = struct.pack("<QQ", draw.choice((near, address)), draw.choice((1, 5, size)))
        for _ in range(draw.randrange(20)):
            body += struct.pack("<QII", number(draw, near) & (1 << 64) - 1, draw.getrandbits(32), draw.randrange(9)) + name(draw) + b"\0"
    else:
        body = draw.randbytes(draw.randrange(80))
    length = draw.choice([16 + len(body)] * 8 + [0, 15, draw.getrandbits(32)])
    return struct.pack("<IIQ", kind, length & 0xffffffff, draw.getrandbits(64)) + body


def jitdump(stock, draw, folder):
    near = 0x10000000 + draw.randrange(1 << 16) * 4096
    head = struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62 if ARCH == "x86_64" else 183, 0, 1, 0, draw.choice((0, 1)))
    data = bytearray(head + b"".join(record(draw, near) for _ in range(draw.choice((1, 20, 1000)))))
    for _ in range(draw.choice((0, 0, 1, 20))):
        data[draw.randrange(4, len(data))] = draw.randrange(256)
    written(folder / "dump", data)
    script = 'cp "$1" "$2/jit-$$.dump"; dump=$2/jit-$$.dump; shift 2; exec "$@" "$dump"'
    return ["sh", "-c", script, "sh", folder / "dump", folder, stock.base, "generated", seed_of(draw), str(near)]


def python(stock, draw, folder):
    interpreter = draw.choice(stock.interpreters)
    library = stock.scribble
    if interpreter.inside is not None:
        library = Path("/tmp") / library.name
        inside = Path(f"{interpreter.inside}{library}")
        if not inside.exists() or inside.read_bytes() != stock.scribble.read_bytes():
            shutil.copyfile(stock.scribble, f"{inside}.{folder.name}")
            os.rename(f"{inside}.{folder.name}", inside)
    return interpreter.command(SCRIBBLING, draw.getrandbits(30), library)


def ruby(stock, draw, folder):
    return [draw.choice(stock.rubies), seed_of(draw)]


def frames(stock, draw, folder):
    return [stock.base, "frames", seed_of(draw)]


def names(stock, draw, folder):
    letters = bytes(set(range(1, 256)) - {ord("/")})
    called = bytes(draw.choices(letters, k=draw.choice((1, 15, 60, 255)))).replace(b"..", b"x") + b"x"
    place = os.fsencode(folder) + b"/" + called[:255]
    shutil.copyfile(stock.base, place)
    os.chmod(place, 0o755)
    return [place, "named", seed_of(draw), bytes(draw.choices(letters, k=draw.choice((1, 300, 60000))))]


def grouped(stock, draw, folder):
    """In a control group with a name of rubbish; where none can be made it is one process more."""
    called = bytes(draw.choices(bytes(set(range(1, 256)) - {10, 47}), k=draw.choice((5, 64, 200)))) + b"." + os.fsencode(folder.name)
    group = b"/sys/fs/cgroup/unified/" + called if os.path.isdir("/sys/fs/cgroup/unified") else b"/sys/fs/cgroup/" + called
    with contextlib.suppress(OSError):
        os.mkdir(group)
        (folder / "group").write_bytes(group)
    script = '{ echo $$ > "$1/cgroup.procs"; } 2>/dev/null; shift; exec "$@"'
    return ["sh", "-c", script, "sh", group, stock.base, "spin", seed_of(draw)]


def churn(stock, draw, folder):
    return [stock.base, "churn", seed_of(draw)]


KINDS = {"elf": elf, "library": library, "python": python, "ruby": ruby, "perf_map": perf_map, "jitdump": jitdump, "changing": changing,
         "frames": frames, "names": names, "grouped": grouped, "churn": churn}
# of forty: most of them where most bytes are read
ORDER = ("elf", "library", "python", "library", "elf", "perf_map", "elf", "jitdump", "python", "library", "changing", "elf", "frames",
         "library", "ruby", "elf", "jitdump", "names", "elf", "library", "python", "elf", "library", "changing", "frames",
         "ruby", "library", "python", "elf", "grouped", "library", "elf", "jitdump", "library", "elf", "perf_map", "library", "churn",
         "elf", "python")


def kind_of(seed, kinds):
    return ORDER[seed % len(ORDER)] if kinds is None else kinds[seed % len(kinds)]


# ---- The nest: targets below one process, which a profiler is told

def make(stock, folder, seed, kind):
    """The command line of one target."""
    place = folder / str(seed)
    place.mkdir()
    return ["nice", "-n", "10", *KINDS[kind](stock, random.Random(seed), place)]


def nest(stock, folder, seeds, kinds):
    """Makes the targets, starts them, waits until it is told to stop or a minute has passed, ends them all."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    os.setpgid(0, 0)
    process.become_subreaper()
    started = []
    try:
        for argv in [make(stock, folder, seed, kind_of(seed, kinds)) for seed in seeds]:
            started.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                            process_group=0))
        (folder / "ready").touch()
        with contextlib.suppress(TimeoutError):
            process.until((folder / "stop").exists, 60)
    finally:
        end(started, folder)


def end(started, folder):
    for one in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(one.pid, signal.SIGKILL)
    end_orphans()
    for one in started:
        with contextlib.suppress(OSError):
            os.unlink(f"/tmp/perf-{one.pid}.map")
    for group in folder.glob("*/group"):
        with contextlib.suppress(OSError):
            os.rmdir(group.read_bytes())


def end_orphans():
    """What targets started is ours when they have ended."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    with contextlib.suppress(ChildProcessError):
        while True:
            for pid in children.read_text().split():
                os.kill(int(pid), signal.SIGKILL)
            os.waitpid(-1, 0)


@contextlib.contextmanager
def nested(stock, folder, seeds, kinds):
    """The id of a nest, as long as it is wanted."""
    folder.mkdir()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
            nest(stock, folder, seeds, kinds)
            status = 0
        finally:
            os._exit(status)
    try:
        process.until((folder / "ready").exists, 120, "the targets run")
        yield pid
    finally:
        (folder / "stop").touch()
        os.waitpid(pid, 0)


def end(started, folder):
    for one in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(one.pid, signal.SIGKILL)
        one.wait()
    process.end_leftovers()
    for one in started:
        with contextlib.suppress(OSError):
            os.unlink(f"/tmp/perf-{one.pid}.map")
    for group in folder.glob("*/group"):
        with contextlib.suppress(OSError):
            os.rmdir(group.read_bytes())


# ---- A run: one nest, two profilers

def mode_of(seed, at_once):
    return seed // at_once % len(MODES)


def weigh(pid, nice):
    """A session's share of the processors, where sessions have shares: an end that is late is to be the profiler's own."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(nice))


class Watched:
    """A profiler that was started, and the most memory it had so far by its own page tables."""

    def __init__(self, argv, **more):
        self.process, self.peak_kb = process.start(argv, **more), 0
        weigh(self.process.pid, -10)

    def look(self):
        with contextlib.suppress(OSError, ValueError):
            status = Path(f"/proc/{self.process.pid}/status").read_text()
            found = re.search(r"^VmHWM:\s+(\d+)", status, re.M)
            self.peak_kb = max(self.peak_kb, int(found[1]) if found else 0)
        return self.process.poll()


# What looks for leaks traces the process, which a confined one does not (os/confine.h).
SANITIZER = {"ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
SAID = re.compile(r"ERROR: \w*Sanitizer|runtime error:|the reader of its debug information (crashed|sent a malformed)|assert|a defect of pillion", re.I)


def judge(who, watched, folder, most_mb):
    """What is wrong with a profiler's end, in words."""
    found = []
    if watched.process.status is None:
        found.append(f"{who}: still runs {LATE_SECONDS} s after its end")
        watched.process.end()
    done = watched.process.done()
    if done.status not in (0, EMPTY, 137 if found else 0):
        found.append(f"{who}: status {done.status}")
    if SAID.search(done.err):
        found.append(f"{who}: {SAID.search(done.err)[0]}")
    if most_mb is not None and watched.peak_kb > most_mb * 1024 * 1.1:
        found.append(f"{who}: a peak of {watched.peak_kb / 1024:.1f} MB, --max-memory {most_mb}")
    try:
        for path in folder.glob("*.col"):
            col.read(path)
    except (AssertionError, ValueError) as error:
        found.append(f"{who}: {path.name} cannot be read: {error}")
    return [f"{text}\n{done.err}" for text in found]


def start_below(pid, runs, folder, seconds):
    """name -> a profiler of the nest, for each row of runs: name -> (program, mode, MB of --max-memory)."""
    return {name: Watched([program, "-p", pid, "-d", seconds, "-f", 499, "--max-cpu", 100, "-o", folder / name, "--max-memory", memory_mb, *mode],
                          env={**os.environ, **SANITIZER}) for name, (program, mode, memory_mb) in runs.items()}


def beside(stock, seeds, kinds, runs, seconds=1):
    """Targets below profilers that run at the same time: (findings, name -> peak in MB)."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as place:
        folder = Path(place)
        folder.chmod(0o755)
        with nested(stock, folder / "nest", seeds, kinds) as pid:
            profilers = start_below(pid, runs, folder, seconds)
            deadline = time.monotonic() + seconds + LATE_SECONDS
            while any([one.look() is None for one in profilers.values()]) and time.monotonic() < deadline:
                for one in profilers.values():
                    one.process.pump(0.01)
            found = [text for name, one in profilers.items()
                     for text in judge(name, one, folder / name, None if name.startswith("sanitized") else runs[name][2])]
    return found, {name: one.peak_kb / 1024 for name, one in profilers.items()}


def one_run(options, stock, seed, count):
    """(findings, the product's peak in MB, its limit)"""
    mode = MODES[options.mode if options.mode is not None else mode_of(seed, options.at_once)]
    memory_mb = (16, DEFAULT_MEMORY_MB)[seed // options.at_once // len(MODES) % 2]
    runs = {"sanitized": (options.sanitized, mode, SANITIZED_MEMORY_MB), "product": (options.product, mode, memory_mb)}
    found, peaks = beside(stock, range(seed, seed + count), options.kind, runs, options.seconds)
    return found, peaks["product"], memory_mb


def again(options, seed, count):
    words = [f"--seed {seed} --count {count} --at-once {options.at_once}"]
    words += [f"--kind {' '.join(options.kind)}"] if options.kind else []
    words += [f"--mode {options.mode}"] if options.mode is not None else []
    return f"tests/lab/hostile.py {' '.join(words)}"


def main(options):
    """The number of findings."""
    os.environ["LAB_OFFLINE"] = "1"
    stock, findings, peaks, begin = Stock(True), 0, {}, time.time()
    for start in range(options.seed, options.seed + options.count, options.at_once):
        count = min(options.at_once, options.seed + options.count - start)
        found, peak, limit = one_run(options, stock, start, count)
        findings += len(found)
        peaks[limit] = max(peaks.get(limit, 0), peak)
        for text in found:
            print(f"finding: {text}\n  {again(options, start, count)}", flush=True)
        if options.verbose:
            print(f"{time.time() - begin:.0f} s: {start}: {count} targets, peak {peak:.1f} of {limit} MB, {len(found)} findings", flush=True)
    told = ", ".join(f"{peak:.1f} MB of --max-memory {limit}" for limit, peak in sorted(peaks.items()))
    print(f"{options.count} hostile targets from seed {options.seed} in {time.time() - begin:.0f} s: {findings} findings; peak {told}")
    return findings


def parsed(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=250)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at-once", type=int, default=25)
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument("--kind", nargs="+", choices=KINDS)
    parser.add_argument("--mode", type=int, choices=range(len(MODES)))
    parser.add_argument("--sanitized", type=Path, default=SANITIZED)
    parser.add_argument("--product", type=Path, default=PRODUCT)
    parser.add_argument("-v", "--verbose", action="store_true")
    return parser.parse_args(argv)


if __name__ == "__main__":
    process.become_subreaper()
    sys.exit(main(parsed(None)) > 0)

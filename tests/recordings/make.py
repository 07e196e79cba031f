#!/usr/bin/python3
"""Makes the recordings anew: NAME.rec, and NAME.txt with what its replay prints. Needs perf events, and `make linked`.

    tests/recordings/make.py [NAME...]

A recording holds the top of the stacks it sampled, which at the very top is the environment: programs are run with an
empty one, in a folder of their own. What was made is to be read before it is kept: NAME.txt is what the tests
believe from then on.
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import emulate, kernel  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = Path("/tmp/recordings")
MUSL = ROOT / "build/out/x86_64/vendor/lib/musl-gcc.specs"
CROSS_MUSL = ROOT / "build/out/aarch64/vendor/lib/musl-gcc.specs"

NO_FRAMES = ["-O2", "-fomit-frame-pointer"]
FRAMES = ["-O2", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"]


def c(source, *flags, strip=False, compiler="gcc"):
    def build(target):
        subprocess.run([compiler, *flags, "-o", target, HERE / "programs" / source], check=True, cwd=ROOT)
        if strip:
            subprocess.run(["strip", target], check=True)
    return build


def rust(target):
    subprocess.run(["rustc", "-O", "-o", target, HERE / "programs/shapes.rs"], check=True)


def go(target):
    subprocess.run(["go", "build", "-trimpath", "-ldflags=-s -w", "-o", target, HERE / "programs/shapes.go"], check=True)


def node(target):
    subprocess.run(["strip", "-o", target, os.path.realpath(shutil.which("node"))], check=True)


def system(path):
    return lambda target: shutil.copy(path, target)


# name: how the program is made, its arguments, pillion's options
ROWS = {
    "frames": (c("frames.c", *FRAMES), [], []),
    "no-frames": (c("frames.c", *NO_FRAMES), [], []),
    "frames-by-kernel": (c("frames.c", *FRAMES), [], ["--perf-mode", "fp"]),
    "stripped": (c("frames.c", *NO_FRAMES, strip=True), [], []),
    "musl": (c("frames.c", *NO_FRAMES, f"-specs={MUSL.relative_to(ROOT)}", "-static"), [], []),
    "deep": (c("deep.c", "-O2", "-fno-optimize-sibling-calls"), [], ["--perf-dwarf-stack-size", "4096"]),
    "handler": (c("handler.c", *NO_FRAMES), [], []),
    "exceptions": (c("exceptions.cc", "-O2", compiler="g++"), [], []),
    "rust": (rust, [], []),
    "go": (go, [], []),
    "python3.11": (system("/usr/bin/python3.11"), [HERE / "programs/shapes.py"], []),
    "node": (node, ["--perf-basic-prof", "--interpreted-frames-native-stack", HERE / "programs/shapes.js"],
             ["-f", "19"]),
}


# The same on the other processor, in a guest: name, its arguments. Emulated, so they do less.
CROSS = {
    "aarch64-frames": (c("frames.c", *FRAMES, "-static", compiler="aarch64-linux-gnu-gcc"), ["12"]),
    "aarch64-no-frames": (c("frames.c", *NO_FRAMES, "-static", "-Wl,--eh-frame-hdr", compiler="aarch64-linux-gnu-gcc"),
                          ["12"]),
    "aarch64-handler": (c("handler.c", *NO_FRAMES, "-static", "-Wl,--eh-frame-hdr", compiler="aarch64-linux-gnu-gcc"),
                        ["40"]),
    "aarch64-musl": (c("frames.c", *NO_FRAMES, f"-specs={CROSS_MUSL.relative_to(ROOT)}", "-static",
                       compiler="aarch64-linux-gnu-gcc"), ["12"]),
}

GUEST = """
cd /tmp
for row in {rows}; do
    name=${{row%%:*}}
    cp /$name . && env -i PATH=/bin /record /out/$name.rec -f 99 --launch init -o /tmp/out --format col -q \
        -- ./$name ${{row#*:}} && rm -r /tmp/out
done
"""


def record_in_guest(names):
    for name in names:
        CROSS[name][0](WORK / name)
    rows = " ".join(f"{name}:{' '.join(CROSS[name][1])}" for name in names)
    files = [emulate.linked("aarch64", "record"), *[WORK / name for name in names]]
    status, text = kernel.boot(kernel.kernel("bookworm", "aarch64"), GUEST.format(rows=rows), files, arch="aarch64", take=HERE,
                               timeout=600)
    if status:
        sys.exit(text)
    for name in names:
        keep_text(name, "aarch64")


def keep_text(name, arch):
    recording = HERE / f"{name}.rec"
    text = subprocess.run([*emulate.prefix(arch), emulate.linked(arch, "replay"), recording], check=True, stdout=subprocess.PIPE).stdout
    (HERE / f"{name}.txt").write_bytes(text)
    print(f"{name}: {recording.stat().st_size} bytes, {text.count(b'%c' % 10)} lines")


def record(name):
    build, arguments, options = ROWS[name]
    program = WORK / name
    build(program)
    recording = HERE / f"{name}.rec"
    copies = []
    for argument in arguments:
        if isinstance(argument, Path): # under a name that is nobody's
            copies.append(shutil.copy(argument, WORK / argument.name))
        else:
            copies.append(argument)
    subprocess.run([emulate.linked("x86_64", "record"), recording, "-f", "99", *options, "--launch", "init", "-o", WORK / "out",
                    "--format", "col", "-q", "--", f"./{name}", *[str(a) for a in copies]], check=True, cwd=WORK,
                   env={"PATH": "/usr/bin:/bin"})
    keep_text(name, "x86_64")


def main(names):
    WORK.mkdir(exist_ok=True)
    for name in names or ROWS:
        if name in ROWS:
            record(name)
    cross = [name for name in names or CROSS if name in CROSS]
    if cross:
        record_in_guest(cross)


main(sys.argv[1:])

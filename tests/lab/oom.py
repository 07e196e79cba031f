#!/usr/bin/env python3
"""Programs that leave little of their container's memory, bare and below pillion: the status is the bare one.

    tests/lab/oom.py [--left MB,MB...] [-v] [LIMIT_MB...]

Each limit, with each number of MB that the program leaves of it, is a row; in it are --launch exec and init, with perf
events and without, and a program whose `.gnu_debugdata` of some KB unpacks to 200 MB. A bare program that does not end twice
in the same way says nothing: such a row is counted and left out. Wants root and runc.
"""
import argparse
import collections
import lzma
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import compiler, container, process, root as roots

ROOT = Path(__file__).resolve().parents[2]
STATUS = 5
BOMB_BYTES = 200 << 20
SECONDS = "0.5"  # a window is made of it, debug data included


def image(folder, pillion):
    made = roots.busybox(folder / "image")
    program = compiler.program(ROOT / "tests" / "live" / "programs", "act", "-static")
    shutil.copy2(program, made / "plain")
    packed = folder / "packed"
    packed.write_bytes(lzma.compress(bytes(BOMB_BYTES)))
    subprocess.run(["objcopy", "--strip-all", "--add-section", f".gnu_debugdata={packed}", program, made / "bomb"], check=True)
    shutil.copy2(pillion, made / "pillion")
    for place in (folder, made):
        place.chmod(0o755)
    return made


def status(made, limit, words, rights):
    return container.Container(made, words, memory=limit << 20, cgroups=True, writable=True,
                               capabilities=container.CAPABILITIES + rights).finish()


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--left", default="0,1,2,3,4,6,8,16")
    parser.add_argument("--pillion", type=Path, default=ROOT / "build" / "out" / "x86_64" / "pillion")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("limits", nargs="*", type=int, default=(24, 48, 96, 220))
    options = parser.parse_args(argv)
    process.become_subreaper()
    sums = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="oom-", dir="/var/tmp") as name:
        made = image(Path(name), options.pillion)
        for limit, left in ((limit, int(left)) for limit in options.limits for left in options.left.split(",")):
            for program in ("/plain", "/bomb"):
                command = [program, "hold", str(limit - left), SECONDS, str(STATUS)]
                bare = {status(made, limit, command, []).status for _ in range(2)}
                if len(bare) > 1:
                    sums["unsteady"] += 1
                    continue
                for mode, rights in ((mode, rights) for mode in ("exec", "init") for rights in ([], ["CAP_PERFMON", "CAP_SYS_ADMIN"])):
                    done = status(made, limit, ["/pillion", "--launch", mode, "-d", "1", "-o", "/out", "--", *command], rights)
                    sums["runs"] += 1
                    sums["killed bare"] += bare != {STATUS}
                    sums["otherwise"] += {done.status} != bare
                    if options.verbose or {done.status} != bare:
                        print(f"{limit} MB, {left} left, {program}, {mode}, {rights}: {bare} is {done.status}\n  "
                              f"{done.err.strip()}", flush=True)
    print(f"{sums['runs']} runs: {sums['otherwise']} end otherwise than bare ({sums['killed bare']} of them are killed bare, too); "
          f"{sums['unsteady']} left out", flush=True)
    return sums["otherwise"] > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""gVisor without an engine: runsc, and containers in it.

A kernel of its own, in Go: no perf events, no schedstat, CPU time in ticks of 10 ms, and threads that no affinity binds.
"""
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import cache, container, process, root

# Debian's package there is a single static program. It reads the number of a goroutine where its release of Go has it: built with one that
# is too new for it, one run in three ends with status 2 and without a word ("running on goroutine 6649625390368", says --panic-log).
SUITE = "trixie"
STARTS = 4


class Unavailable(Exception):
    """Why there is no runsc here, in words."""


def runsc():
    """Its path, in build/lab, where the first call puts it."""
    kept = cache.folder("runsc", SUITE) / "runsc"
    with cache.locked("runsc"):
        if not kept.exists():
            _fetch(kept)
    return kept


def _fetch(kept):
    if os.environ.get("LAB_OFFLINE"):
        raise Unavailable("LAB_OFFLINE is set and build/lab has no runsc")
    try:
        deb = root.Apt(SUITE).one("runsc")
    except root.Unreachable as error:
        raise Unavailable(str(error)) from error
    with tempfile.TemporaryDirectory() as unpacked:
        subprocess.run(["dpkg-deb", "-x", deb, unpacked], check=True)
        cache.put(Path(unpacked, "usr", "bin", "runsc"), kept.parent)


def _once(command, timeout, options):
    bundle = Path(tempfile.mkdtemp(prefix="bundle-"))
    bundle.chmod(0o755)
    call = [runsc(), "--root", bundle / "state", "--platform=systrap", "--network=none", "--ignore-cgroups"]
    try:
        configuration = container.configuration("/", command, profile="off", **options)
        (bundle / "config.json").write_text(json.dumps(configuration))
        return process.run([*call, "run", "--bundle", bundle, bundle.name], timeout=timeout)
    finally:
        subprocess.run([*map(str, call), "delete", "--force", bundle.name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(bundle, ignore_errors=True)


def run(command, timeout=40, **options):
    """The command in a sandbox whose root is this machine's, read-only: a process.Done. Options as container.configuration's."""
    for _ in range(STARTS):
        done = _once(command, timeout, options)
        if done.status != 2:
            return done
    raise Unavailable(f"runsc ended with status 2 {STARTS} times")

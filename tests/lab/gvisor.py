"""gVisor without an engine: runsc, built once from its released module, and containers in it.

A kernel of its own, in Go: no perf events, no schedstat, CPU time in ticks of 10 ms, and threads that no affinity binds.
"""
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import cache, container, process

MODULE = "gvisor.dev/gvisor/runsc@v0.0.0-20250205023644-9414b50a5633"
# It reads the number of a goroutine where this release of Go has it. Built with 1.26 one run in three ends with status 2 and
# without a word ("running on goroutine 6649625390368", says --panic-log).
TOOLCHAIN = "go1.23.6"
BUILD_TIMEOUT = 900
STARTS = 4


class Unavailable(Exception):
    """Why there is no runsc here, in words."""


def runsc():
    """Its path. Built in build/lab on the first call, which takes some minutes."""
    with cache.locked("runsc"):
        built = cache.folder("runsc", TOOLCHAIN) / "runsc"
        return built if built.exists() else _build(built)


def _build(built):
    if os.environ.get("LAB_OFFLINE"):
        raise Unavailable("LAB_OFFLINE is set and build/lab has no runsc")
    go = shutil.which("go", path="/usr/local/go/bin:" + os.environ.get("PATH", ""))
    if not go:
        raise Unavailable("not installed: go")
    home = cache.folder("go")
    environment = {"PATH": f"{Path(go).parent}:/usr/bin:/bin", "HOME": str(home), "GOPATH": str(home / "path"), "CGO_ENABLED": "0",
                   "GO111MODULE": "on", "GOTOOLCHAIN": TOOLCHAIN, "GOFLAGS": "-mod=mod -modcacherw", "GOBIN": str(built.parent)}
    for name in ("GOPROXY", "GOSUMDB"):
        environment[name] = subprocess.run([go, "env", name], stdout=subprocess.PIPE, text=True).stdout.strip()
    try:
        done = subprocess.run([go, "install", MODULE], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=BUILD_TIMEOUT)
    except subprocess.TimeoutExpired as late:
        raise Unavailable(f"go install {MODULE} takes more than {BUILD_TIMEOUT} s") from late
    if done.returncode or not built.exists():
        raise Unavailable(f"go install {MODULE} failed: {done.stdout.strip()[-300:]}")
    return built


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

"""gVisor without an engine: runsc, containers in it, and several in one sandbox, as those of a pod are.

A kernel of its own, in Go: no perf events, no schedstat, CPU time in ticks of 10 ms, and threads that no affinity binds.
LAB_RUNSC=PATH takes another release of it. Those of 2026 show none of the mounts below a root of "/": LAB_RUNSC_ROOT=FOLDER takes another one, in
`unshare -m sh -c 'mount --bind / /srv && LAB_RUNSC_ROOT=/srv …'`.
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
ROOT = os.environ.get("LAB_RUNSC_ROOT", "/")
ANNOTATION = "io.kubernetes.cri."


class Unavailable(Exception):
    """Why there is no runsc here, in words."""


def runsc():
    """Its path, in build/lab, where the first call puts it."""
    if os.environ.get("LAB_RUNSC"):
        return Path(os.environ["LAB_RUNSC"])
    kept = cache.folder("runsc", SUITE) / "runsc"
    with cache.locked("runsc"):
        if not kept.exists():
            _fetch(kept)
    return kept


def version():
    told = subprocess.run([runsc(), "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return told.split("\n", 1)[0].removeprefix("runsc version ")


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


class Sandbox:
    """Containers that share a sandbox, its network and its PID namespace: a pod with shareProcessNamespace. The first one is the
    sandbox's own; when it ends, all do."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="sandbox-"))
        self.folder.chmod(0o755)
        self.call = [runsc(), "--root", self.folder / "state", "--platform=systrap", "--network=none", "--ignore-cgroups"]
        self.started, self.pid = {}, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name, each in reversed(self.started.items()):
            if each.poll() is None:
                self._quiet("kill", name, "KILL")
                each.wait(10)
            self._quiet("delete", "--force", name)
        # where it keeps a network namespace
        subprocess.run(["umount", self.folder / "state" / "null-netns"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _quiet(self, *arguments):
        subprocess.run([*map(str, self.call), *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

    def _running(self, name):
        """Its pid out here, True when it has ended."""
        told = subprocess.run([*map(str, self.call), "state", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        state = json.loads(told.stdout) if told.stdout else {}
        return self.started[name].poll() is not None or (state.get("status") == "running" and state["pid"])

    def start(self, command, base=ROOT, **options):
        """A container that runs; `base` is its root folder, options are container.configuration's: a process.Process."""
        name = f"{self.folder.name}-{len(self.started)}"
        configuration = container.configuration(base, command, profile="off", **options)
        kind = {"container-type": "container", "sandbox-id": f"{self.folder.name}-0"} if self.started else {"container-type": "sandbox"}
        configuration["annotations"] = {ANNOTATION + key: value for key, value in kind.items()}
        for namespace in configuration["linux"]["namespaces"]:
            if namespace["type"] == "pid" and self.started:
                namespace["path"] = f"/proc/{self.pid}/ns/pid"
        bundle = self.folder / name
        bundle.mkdir()
        (bundle / "config.json").write_text(json.dumps(configuration))
        self.started[name] = process.start([*self.call, "run", "--bundle", bundle, name])
        return self.started[name]

    def begin(self, command=("/bin/sleep", "infinity")):
        """The sandbox's own container, which only waits."""
        self.start(command)
        self.pid = process.until(lambda: self._running(f"{self.folder.name}-0"), 20, "the sandbox runs")
        if self.pid is True:
            raise Unavailable(f"no sandbox: {next(iter(self.started.values())).done()}")

    def signal(self, started, name):
        """To the first process of a container, as an engine's stop does."""
        self._quiet("kill", next(key for key, value in self.started.items() if value is started), name)


def run(command, timeout=40, **options):
    """The command in a sandbox whose root is this machine's, read-only: a process.Done. Options as container.configuration's."""
    for _ in range(STARTS):
        with Sandbox() as sandbox:
            done = sandbox.start(command, **options).finish(timeout)
        if done.status != 2:
            return done
    raise Unavailable(f"runsc ended with status 2 {STARTS} times")


def pod():
    """A sandbox that has begun."""
    for attempt in range(STARTS):
        sandbox = Sandbox()
        try:
            sandbox.begin()
            return sandbox
        except Unavailable:
            sandbox.__exit__()
            if attempt == STARTS - 1:
                raise
    return None

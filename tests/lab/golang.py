"""Releases of Go: the one here, and others.

    go = Go("go1.24.6")              # or "local"; a test that cannot have it is skipped
    go.run("build", "-o", "program", ".", cwd=folder)
"""
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from . import cache, process


class Go:
    """A release of Go; others than the one here are fetched by it, once, into build/lab, as the module they are
    published as: that works from any Go that knows modules."""

    def __init__(self, version):
        home = cache.folder("go")
        self.command = shutil.which("go")
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(home), "GOPATH": str(home / "path"),
                            "GOTOOLCHAIN": "local", "GO111MODULE": "on", "CGO_ENABLED": "1",
                            "GOCACHE": str(cache.folder("go", "built", version))}
        # Where the user lets Go fetch from; the other settings are not for old releases.
        for name in ("GOPROXY", "GOSUMDB"):
            told = subprocess.run([self.command, "env", name], stdout=subprocess.PIPE, text=True)
            self.environment[name] = told.stdout.strip()
        if version != "local":
            self.command = self.fetch(version, home)
        self.version = self.run("version").out.split()[2]
        assert version in ("local", self.version), self.version

    def fetch(self, version, home):
        module = f"golang.org/toolchain@v0.0.1-{version}.linux-amd64"
        told = self.run("mod", "download", "-json", module, timeout=600, cwd=home)
        if told.status:
            pytest.skip(f"tier net: {version} cannot be fetched: {told.err.strip()[-200:]}")
        root = Path(json.loads(told.out)["Dir"])
        for path in [root, *root.glob("**/")]:
            path.chmod(0o755)  # else only root can remove build/lab
        for path in [*root.glob("bin/*"), *root.glob("pkg/tool/*/*")]:
            path.chmod(0o755)  # a module's files cannot be run
        return str(root / "bin" / "go")

    def run(self, *arguments, timeout=900, **options):
        return process.run([self.command, *arguments], timeout=timeout, env=self.environment, **options)

    @property
    def number(self):
        return number_of(self.version)


def releases(*few, more=()):
    """Those that a test takes: `more` where LAB_GO=all is in the environment. Each is some 70 MB to be fetched, once, and a minute of
    compiling."""
    return [*few, *(more if os.environ.get("LAB_GO") == "all" else ())]


def program(version, *sources, flags=(), arch=None):
    """The path of a program of tests/live/programs, built by that release with these flags; kept by content. `arch`: "arm64"."""
    go = Go(version)
    go.environment |= {"GOARCH": arch, "CGO_ENABLED": "0"} if arch else {}
    folder = cache.FOLDER.parents[1] / "tests/live/programs"
    texts = [(folder / source).read_bytes() for source in sources]
    identity = hashlib.sha256(repr((go.version, flags, texts, arch)).encode()).hexdigest()[:16]
    place = cache.folder("go", "programs", identity)
    with cache.locked(f"go-{identity}"):
        if not (place / "program").exists():
            for source, text in zip(sources, texts):
                (place / source).write_bytes(text)
            (place / "go.mod").write_text("module program\n\ngo 1.18\n")
            done = go.run("build", "-o", "built", *flags, *sources, cwd=place)
            assert done.status == 0, done
            (place / "built").rename(place / "program")
    return place / "program"


def number_of(version):
    return tuple(int(part) for part in version.removeprefix("go").split("-")[0].split(".")[:2])

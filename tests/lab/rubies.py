#!/usr/bin/python3
"""Rubies of several versions.

    tests/lab/rubies.py              lists all, and why others are not there; LAB_OFFLINE=1: without fetching

The host's, and those of other Debian suites: a root unpacked from packages into build/lab/ruby, entered by chroot.
"""
import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

if __package__:
    from . import cache, root, suite
else:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from lab import cache, root, suite

# name -> suites of packages, program
SUITES = {"bullseye": ("bullseye", "ruby2.7"), "trixie": ("trixie", "ruby3.3"),
          "experimental": ("sid experimental", "ruby3.4")}
NAMES = ["host", *SUITES]
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}


class Missing(Exception):
    """This Ruby cannot be had; the text says why."""


class Ruby:
    def __init__(self, argv, inside=None):
        self.argv, self.inside = [str(a) for a in argv], inside
        done = subprocess.run([*self.argv, "-e", "print RUBY_VERSION"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT)
        if done.returncode or not re.match(r"\d+\.\d+\.\d+$", done.stdout):
            raise Missing(f"{argv[-1]} does not start: {done.stdout.strip()[-200:]!r}")
        self.version = done.stdout
        self.minor = tuple(int(part) for part in done.stdout.split(".")[:2])

    def where(self, script, *beside):
        """The script's path for this Ruby; in a root of its own it is put there, with the files beside it."""
        if self.inside is None:
            return str(script)
        for file in (script, *beside):
            shutil.copyfile(file, Path(self.inside, "tmp", file.name))
        return f"/tmp/{Path(script).name}"

    def command(self, script, *arguments):
        return [*self.argv, self.where(script), *map(str, arguments)]


def of_suite(name):
    if os.geteuid() != 0:
        raise Missing("wants root (chroot)")
    suites, program = SUITES[name]
    target = cache.folder("ruby") / name
    with cache.locked(f"ruby-{name}"):
        if not target.exists():
            if os.environ.get("LAB_OFFLINE"):
                raise Missing("LAB_OFFLINE is set and it is not in build/lab")
            part = target.with_name(f".{name}.part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            root.unpack(suite.debs(suites, [program]), part)
            (part / "tmp").chmod(0o1777)
            subprocess.run(["mknod", "-m", "666", part / "dev" / "null", "c", "1", "3"], check=False)
            part.rename(target)
    return Ruby(["/usr/sbin/chroot", target, f"/usr/bin/{program}"], target)


@functools.lru_cache(maxsize=None)
def looked_for(name):
    """The Ruby of that name, or why it is Missing: a mirror that is not there is asked once."""
    try:
        if name == "host":
            if not shutil.which("ruby"):
                raise Missing("no ruby here")
            return Ruby([shutil.which("ruby")])
        return of_suite(name)
    except (Missing, root.Unreachable) as error:
        return Missing(str(error))


def get(name):
    """The Ruby of that name; raises Missing with the reason."""
    found = looked_for(name)
    if isinstance(found, Missing):
        raise Missing(str(found))
    return found


def main():
    failed = 0
    for name in NAMES:
        try:
            print(f"{name:10} Ruby {get(name).version}", flush=True)
        except Missing as error:
            failed = 1
            print(f"{name:10} missing: {error}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())

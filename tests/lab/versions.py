"""Interpreters of a language in several versions: the host's, and those of other Debian suites, each in a root unpacked from
packages into build/lab/LANGUAGE and entered by chroot. rubies.py, phps.py and perls.py say which.
"""
import os
import re
import shutil
import subprocess
from pathlib import Path

from . import cache, root, suite

UNUSED = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/ri", "usr/share/info", "usr/lib/locale", "var")
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}


class Missing(Exception):
    """This version cannot be had; the text says why."""


def step(argv, folder):
    """One of building from source."""
    done = subprocess.run(argv, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Missing(f"{argv[0]} fails: {done.stdout.strip()[-500:]}")


def unpacked(language, name, suites, packages):
    """A root with these packages."""
    target = cache.folder(language) / name
    with cache.locked(f"{language}-{name}"):
        if not target.exists():
            if os.environ.get("LAB_OFFLINE"):
                raise Missing("LAB_OFFLINE is set and it is not in build/lab")
            part = target.with_name(f".{name}.part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            root.unpack(suite.debs(suites, packages), part)
            (part / "tmp").mkdir(exist_ok=True)
            (part / "tmp").chmod(0o1777)
            subprocess.run(["mknod", "-m", "666", part / "dev" / "null", "c", "1", "3"], check=False)
            part.rename(target)
    return target


def of_processor(language, suites, packages, architecture):
    """The folder of another processor's interpreter with all it needs, for a guest (lab/kernel.py)."""
    target = cache.folder(language) / f"{suites}-{architecture}"
    with cache.locked(f"{language}-{target.name}"):
        if not target.exists():
            part = target.with_name(f".{target.name}.part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            root.unpack(suite.debs(suites, packages, architecture), part)
            for unused in UNUSED:
                shutil.rmtree(part / unused, ignore_errors=True)
            part.rename(target)
    return target


class Interpreter:
    def __init__(self, argv, tell, inside=None):
        """`tell`: arguments that make it print its version."""
        self.argv, self.inside = [str(a) for a in argv], inside
        done = subprocess.run([*self.argv, *tell], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=ENVIRONMENT)
        found = re.search(r"\d+\.\d+\.\d+|\d+-ea", done.stdout)
        if done.returncode or not found:
            raise Missing(f"{argv[-1]} does not start: {done.stdout.strip()[-200:]!r}")
        self.version = found[0]
        self.minor = tuple(int(part) for part in re.findall(r"\d+", self.version)[:2])

    def where(self, script, *beside):
        """The script's path for this interpreter; in a root of its own it is put there, with the files and folders beside it."""
        if self.inside is None:
            return str(script)
        for each in (script, *beside):
            for file in filter(Path.is_file, each.rglob("*") if each.is_dir() else [each]):
                cache.put(file, Path(self.inside, "tmp", file.parent.relative_to(each.parent)))
        return f"/tmp/{Path(script).name}"

    def command(self, script, *arguments, beside=()):
        return [*self.argv, self.where(script, *beside), *map(str, arguments)]


class Versions:
    def __init__(self, language, suites, tell, built=None):
        """`suites`: name -> suites of packages, the program, and its packages if one of its name is not all. `built`: name -> what
        makes an Interpreter that is not among `names`, as building takes minutes."""
        self.language, self.suites, self.tell, self.built = language, suites, tell, built or {}
        self.names = ["host", *suites]
        self.found = {}

    def _of_suite(self, name):
        if os.geteuid() != 0:
            raise Missing("wants root (chroot)")
        suites, program, *packages = self.suites[name]
        target = unpacked(self.language, name, suites, packages or [program])
        return Interpreter(["/usr/sbin/chroot", target, f"/usr/bin/{program}"], self.tell, target)

    def _look_for(self, name):
        if name in self.built:
            return self.built[name]()
        if name != "host":
            return self._of_suite(name)
        if not shutil.which(self.language):
            raise Missing(f"no {self.language} here")
        return Interpreter([shutil.which(self.language)], self.tell)

    def get(self, name):
        """The interpreter of that name; raises Missing with the reason. A mirror that is not there is asked once."""
        if name not in self.found:
            try:
                self.found[name] = self._look_for(name)
            except (Missing, root.Unreachable) as error:
                self.found[name] = Missing(str(error))
        if isinstance(self.found[name], Missing):
            raise Missing(str(self.found[name]))
        return self.found[name]

    def main(self):
        failed = 0
        for name in [*self.names, *self.built]:
            try:
                print(f"{name:12} {self.language} {self.get(name).version}", flush=True)
            except Missing as error:
                failed = 1
                print(f"{name:12} missing: {error}", flush=True)
        return failed

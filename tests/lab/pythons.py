#!/usr/bin/python3
"""Every CPython this machine can give, of many versions and builds.

    tests/lab/pythons.py              lists all, and why others are not there; LAB_OFFLINE=1: without fetching
    tests/lab/pythons.py NAME...      these

Kinds: the host's own; what pyenv built, where pyenv is on PATH; those of other Debian suites, started through chroot
into their unpacked root; CPython from Debian's source against musl and without the GIL. What was fetched or built
stays in build/lab/python/NAME; a reason stands for what cannot be had.
"""
import functools
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

if __package__:
    from . import cache, root, suite, tiers
else:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from lab import cache, root, suite, tiers

SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
TELL = """
import sys
free = "t" if "t" in getattr(sys, "abiflags", "") else ""
sys.stdout.write("%d.%d.%d" % sys.version_info[:3] + free)
"""


class Missing(Exception):
    """Why an interpreter cannot be had, in words."""


class Interpreter:
    """How to start one: `command(script, ...)` is its command line. `where(script)` is the script's path as it sees it."""

    def __init__(self, version, argv, how, inside=None):
        self.version, self.argv, self.how, self.inside = version, [str(a) for a in argv], how, inside

    @property
    def number(self):
        return tuple(int(part) for part in re.findall(r"\d+", self.version))

    @property
    def executable(self):
        """The interpreter's file as this machine sees it."""
        return Path(f"{self.inside or ''}{self.argv[-1]}").resolve()

    def where(self, script):
        """The path the interpreter knows the script by; for a root of its own it is copied there first, with the
        files beside it."""
        if self.inside is None:
            return str(script)
        for file in Path(script).parent.glob("*.py"):
            cache.put(file, Path(self.inside, "tmp"))
        return f"/tmp/{Path(script).name}"

    def command(self, script, *arguments):
        return [*self.argv, self.where(script), *map(str, arguments)]

    def __repr__(self):
        return f"Python {self.version} ({self.how})"


def told(argv):
    """The version an interpreter tells; Missing when it does not start."""
    done = subprocess.run([*map(str, argv), "-c", TELL], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={"PATH": SYSTEM_PATH, "LC_ALL": "C.UTF-8"})
    if done.returncode or not re.match(r"\d+\.\d+\.\d+t?$", done.stdout):
        raise Missing(f"{argv[-1]} does not start: {done.stdout.strip()[-200:]!r}")
    return done.stdout


def kept(name, make):
    """build/lab/python/NAME, made by make(folder) in a folder that gets its name once it is complete."""
    target = cache.folder("python") / name
    with cache.locked(f"python-{name}"):
        if not target.exists():
            if os.environ.get("LAB_OFFLINE"):
                raise Missing("LAB_OFFLINE is set and it is not in build/lab")
            part = target.with_name(f".{name}.part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            try:
                make(part)
            except root.Unreachable as error:
                shutil.rmtree(part, ignore_errors=True)
                raise Missing(str(error)) from error
            part.rename(target)
    return target


# ---- The host's and pyenv's

def host():
    return Interpreter(told(["/usr/bin/python3"]), ["/usr/bin/python3"], "host")


def pyenv(version):
    prefix = subprocess.run(["pyenv", "prefix", version], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    argv = [Path(prefix, "bin", "python")]
    return Interpreter(told(argv), argv, "pyenv")


@functools.lru_cache(maxsize=None)
def pyenv_versions():
    if shutil.which("pyenv") is None:
        return []
    bare = subprocess.run(["pyenv", "versions", "--bare"], stdout=subprocess.PIPE, text=True).stdout.split()
    return [version for version in bare if re.match(r"\d+\.\d+\.\d+t?$", version)]


# ---- Other Debian suites: one root for each suite, entered by chroot

SUITES = {"bullseye": ["python2.7", "python3.9"], "trixie": ["python3.13"], "sid": ["python3.14", "python3.15"]}


def suite_root(name):
    def unpack(folder):
        root.unpack(suite.debs(name, SUITES[name]), folder)
        (folder / "tmp").chmod(0o1777)
        subprocess.run(["mknod", "-m", "666", folder / "dev" / "null", "c", "1", "3"], check=False)
    return kept(name, unpack)


def of_suite(name, program):
    if os.geteuid() != 0:
        raise Missing("wants root (chroot)")
    inside = suite_root(name)
    argv = ["/usr/sbin/chroot", inside, f"/usr/bin/{program}"]
    return Interpreter(told(argv), argv, f"suite {name}, chroot", inside)


# ---- The least of one, for a guest of either processor

# Debian's name of the processor, its folder of libraries, its loader.
PLACES = {"x86_64": ("amd64", "x86_64-linux-gnu", "lib64/ld-linux-x86-64.so.2"),
          "aarch64": ("arm64", "aarch64-linux-gnu", "lib/ld-linux-aarch64.so.1")}
LITTLE_LIBRARIES = ("c.so.6", "m.so.6", "dl.so.2", "pthread.so.0", "util.so.1", "expat.so.1", "z.so.1")


def other_root(name, arch):
    """A suite's root for another processor."""
    debian = PLACES[arch][0]
    return kept(f"{name}-{debian}", lambda folder: root.unpack(suite.debs(name, SUITES[name], debian), folder))


def little(name, folder, arch="x86_64"):
    """Into the folder: a suite's interpreter, e.g. "trixie-python3.13", as usr/bin/python3, with what it needs to start."""
    of, version = name.split("-", 1)
    inside = Path(get(name).inside if arch == "x86_64" else other_root(of, arch))
    _, libraries, loader = PLACES[arch]
    usr, folder = inside / "usr", Path(folder)
    modules = folder / "usr" / "lib" / version
    for made in (modules, folder / "usr" / "lib" / libraries, folder / "usr" / "bin", (folder / loader).parent):
        made.mkdir(parents=True, exist_ok=True)
    shutil.copy2(usr / "bin" / version, folder / "usr" / "bin" / "python3")
    for module in filter(Path.is_file, (usr / "lib" / version).glob("*.py")):
        shutil.copy2(module, modules)
    for package in ("encodings", "collections", "importlib"):
        shutil.copytree(usr / "lib" / version / package, modules / package)
    for library in LITTLE_LIBRARIES:
        shutil.copy2(inside / "lib" / libraries / f"lib{library}", folder / "usr" / "lib" / libraries)
    # Older ones call the loader ld-2.31.so and link to it.
    found = next(path for path in (usr / "lib" / libraries).glob("ld-*") if not path.is_symlink())
    shutil.copy2(found, folder / loader)
    return folder


def by_loader(interpreter):
    """One of another suite, started by its own loader from outside: /proc/PID/exe is the loader then."""
    inside = Path(interpreter.inside)
    libraries = ":".join(str(inside / "usr" / folder) for folder in ("lib/x86_64-linux-gnu", "lib"))
    argv = ["/usr/bin/env", f"PYTHONHOME={inside}/usr", inside / "lib64" / "ld-linux-x86-64.so.2", "--library-path",
            libraries, inside / interpreter.argv[-1].lstrip("/")]
    return Interpreter(told(argv), argv, f"{interpreter.how.split(',')[0]}, loader")


# ---- Built from Debian's source. Only the interpreter: what it has built in is what the programs here import.

SOURCE = ("trixie", "python3.13")
CONFIGURE = ["--disable-test-modules", "--without-ensurepip", "--without-doc-strings", "PKG_CONFIG=false",
             "OPT=-O0 -DNDEBUG -fwrapv"]
# What names outside ASCII take.
SETUP = "*static*\nunicodedata unicodedata.c\n"
# musl's wrapper knows no kernel headers, and CPython's configure asks the compiler for its platform.
MUSL_GCC = """#!/bin/sh
if [ "$1" = --print-multiarch ]; then echo x86_64-linux-musl; exit; fi
exec musl-gcc "$@" -idirafter /usr/include -idirafter /usr/include/x86_64-linux-gnu
"""


def step(argv, folder, environment):
    done = subprocess.run(argv, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise root.Unreachable(f"{argv[0]} fails: {done.stdout.strip()[-500:]}")


# name -> options of configure, compiler; its own when there is none
BUILDS = {"musl": ([], MUSL_GCC), "free-threaded": (["--disable-gil"], None)}


def build(name):
    options, compiler = BUILDS[name]

    def make(folder):
        source = suite.source(*SOURCE, folder / "source")
        environment = {"PATH": SYSTEM_PATH, "HOME": str(folder), "LC_ALL": "C.UTF-8"}
        if compiler:
            (folder / "compiler").write_text(compiler)
            (folder / "compiler").chmod(0o755)
            environment["CC"] = str(folder / "compiler")
        (source / "Modules" / "Setup.local").write_text(SETUP)
        step(["./configure", *CONFIGURE, *options], source, environment)
        step(["make", "-s", f"-j{os.cpu_count()}", "python"], source, environment)
        for heavy in ("Doc", "Mac", "PC", "PCbuild", "Lib/test", "Lib/idlelib"):
            shutil.rmtree(source / heavy, ignore_errors=True)
        for thing in [*source.glob("**/*.o"), *source.glob("*.a")]:
            thing.unlink()
    # Runs from where it was built: a moved folder loses its library only if its path was compiled in.
    reason = tiers.tool_missing("make", *(["musl-gcc"] if compiler else []))
    if reason:
        raise Missing(reason)
    return kept(name, make) / "source" / "python"


def built(name):
    """Whoever wants one of them gets all of them built: configure has one processor busy, so that two at once are sooner
    done than one after the other."""
    with ThreadPoolExecutor(len(BUILDS)) as pool:
        building = {one: pool.submit(build, one) for one in BUILDS}
    argv = [building[name].result()]
    return Interpreter(told(argv), argv, name)


def musl():
    return built("musl")


def free_threaded():
    return built("free-threaded")


# ---- All of them

def rows():
    """name -> how to get it. Names alone cost nothing: tests are parametrised by them."""
    found = {"host": host}
    for version in pyenv_versions():
        found[f"pyenv-{version}"] = functools.partial(pyenv, version)
    for name, programs in SUITES.items():
        for program in programs:
            found[f"{name}-{program}"] = functools.partial(of_suite, name, program)
    found["loader-trixie"] = lambda: by_loader(get("trixie-python3.13"))
    found["musl"], found["free-threaded"] = musl, free_threaded
    return found


@functools.lru_cache(maxsize=None)
def get(name):
    """The interpreter of that name; raises Missing with the reason."""
    if name not in rows():
        raise Missing("no such name")
    try:
        return rows()[name]()
    except root.Unreachable as error:
        raise Missing(str(error)) from error


def is_here(name):
    """Whether it is a part of the machine: the others want a mirror once."""
    return name.split("-")[0] in ("host", "pyenv")


def main(names):
    failed = 0
    for name in names or rows():
        begin = time.time()
        try:
            print(f"{name:20} {get(name)!r}  {time.time() - begin:.1f} s", flush=True)
        except Missing as error:
            failed = 1
            print(f"{name:20} missing: {error}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

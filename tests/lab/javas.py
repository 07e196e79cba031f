#!/usr/bin/python3
"""JDKs: the host's, and those of other Debian suites, each in a root of its own (versions.py), with /proc mounted, by which a JVM
finds its library.

    tests/lab/javas.py           lists all, and why others are not there; LAB_OFFLINE=1: without fetching
"""
import functools
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

if __package__:
    from . import versions
else:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from lab import versions

# Places for all instructions: else what is inlined may be told as what it is inlined into, by the JVM's own recorder, too.
EXACT = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"]
SUITES = {"8": "sid", "11": "bullseye", "21": "trixie", "25": "trixie"}
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
# A JVM's root is seen by it alone.
ENTER = 'mount --bind /proc "$0/proc" && exec chroot "$0" "$@"'


def of_suite(name):
    if os.geteuid() != 0:
        raise versions.Missing("wants root (chroot)")
    target = versions.unpacked("java", name, SUITES[name], [f"openjdk-{name}-jre-headless"])
    (target / "proc").mkdir(exist_ok=True)
    home = "/usr/lib/jvm/java-{}-openjdk-{}".format(name, DEBIAN[platform.machine()])
    java = home + ("/jre/bin/java" if name == "8" else "/bin/java")
    return versions.Interpreter(["/usr/bin/unshare", "--mount", "sh", "-c", ENTER, target, java],
                                ["-version"] if name == "8" else ["--version"], target)


def of_host():
    if not shutil.which("java"):
        raise versions.Missing("no java here")
    return versions.Interpreter([os.path.realpath(shutil.which("java"))], ["--version"])


def compiled(repository, tmp_path_factory):
    """A folder with the programs of the tests, for 8 and later."""
    if not shutil.which("javac"):
        pytest.skip("not installed: openjdk-17-jdk-headless (javac)")
    folder = tmp_path_factory.mktemp("classes")
    folder.chmod(0o755)
    sources = (repository / "tests/live/programs/java").glob("*.java")
    subprocess.run(["javac", "-nowarn", "-Xlint:-options", "--release", "8", "-d", folder, *sources], check=True)
    return folder


def command(classes, name, program, arguments, *options):
    """The command line of a program by the JDK `name`, which sees the classes in its own root."""
    try:
        java = get(name)
    except versions.Missing as reason:
        pytest.skip(f"JDK {name}: {reason}")
    where = java.where(next(classes.glob("*.class")), *classes.glob("*.class"))
    return [*java.argv, "-cp", where.rpartition("/")[0], *options, program, *map(str, arguments)]


ALL = versions.Versions("java", {}, [], {"host": of_host, **{name: functools.partial(of_suite, name) for name in SUITES}})
ALL.names = []
NAMES, get = list(ALL.built), ALL.get

if __name__ == "__main__":
    sys.exit(ALL.main())

"""Programs that are not where, or not what, one looks for: each is named all the same, launched and attached to."""
import os
import shutil
import subprocess

import pytest

from lab import compiler, process, profiler

pytestmark = pytest.mark.measures

LOADER = "/lib64/ld-linux-x86-64.so.2"
STACK = ["_start", "main", "deed_spin", "spin"]
WAYS = ("launch", "attach")


def profiled(way, pillion, folder, command):
    """A session of a command that ends its argument list with the seconds it is to work."""
    if way == "launch":
        return profiler.profile(pillion, folder, [*command, "0.8"])
    folder.mkdir(exist_ok=True)
    target = process.start([*command, "600"])
    try:
        process.until(lambda: process.cpu_seconds(target.pid) > 0.1, 10, "it works")
        done = process.run([pillion, "-p", target.pid, "-d", "1", "-o", folder])
    finally:
        target.end()
    assert done.status == 0, done
    return profiler.Session(done, folder)


def named(session, wanted=STACK):
    """The share of the samples whose stack has these functions in this order."""
    stacks = [stack for window in session.windows for stack in window.stacks]
    good = sum(s.count for s in stacks if [frame for frame in s.frames if frame in wanted] == wanted)
    return good / max(sum(stack.count for stack in stacks), 1)


def make_root(folder, file, path):
    """A root that has a program at `path`, the loader and the C library."""
    for source, target in ((file, path), *((p, p) for p in (LOADER, "/lib/x86_64-linux-gnu/libc.so.6",
                                                            "/lib/x86_64-linux-gnu/libm.so.6"))):
        (folder / target[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(source), folder / target[1:])
    return folder


@pytest.mark.root
@pytest.mark.parametrize("way", WAYS)
def test_a_program_in_a_chroot_is_not_taken_for_the_file_of_that_path_here(way, pillion, program, workdir):
    """maps shows the root's folder in front of the path, and a container's does not: here is a /usr/bin/env, too."""
    root = make_root(workdir / "root", program("act"), "/usr/bin/env")
    assert os.path.exists("/usr/bin/env")
    session = profiled(way, pillion, workdir / "out", ["/usr/sbin/chroot", root, "/usr/bin/env", "spin"])
    assert named(session) > 0.85, session.frames()


@pytest.mark.parametrize("way", WAYS)
def test_a_program_that_its_loader_started_is_named(way, pillion, program, workdir):
    """/proc/PID/exe is the loader, and the program just another mapped file."""
    session = profiled(way, pillion, workdir / "out", [LOADER, program("act"), "spin"])
    assert named(session) > 0.85, session.frames()
    assert "ld-linux-x86-64" in session.col.comms(), session.col.comms()


@pytest.mark.root
@pytest.mark.parametrize("way", WAYS)
def test_a_program_that_another_roots_loader_started_is_named(way, pillion, program, workdir):
    """Both at once: an unpacked root's own loader, from outside."""
    root = make_root(workdir / "root", program("act"), "/usr/bin/env")
    command = [root / LOADER[1:], "--library-path", root / "lib" / "x86_64-linux-gnu", root / "usr" / "bin" / "env", "spin"]
    session = profiled(way, pillion, workdir / "out", command)
    assert named(session) > 0.85, session.frames()


@pytest.mark.parametrize("way", WAYS)
def test_an_executable_that_only_calls_its_library_is_named_by_the_library(way, pillion, repository, workdir):
    """As Debian's node: 26 KB of executable, all of the program in a library, and no symbols in the executable."""
    library, source = workdir / "libengine.so", repository / "tests" / "live" / "programs" / "act.c"
    subprocess.run(["gcc", "-std=gnu11", *compiler.C_FLAGS, "-shared", "-fPIC", "-Dmain=engine_start", "-o", library, source,
                    "-lm"], check=True)
    (workdir / "stub.c").write_text("int engine_start(int, char **);\n"
                                    "int main(int c, char **v) { return engine_start(c, v); }\n")
    subprocess.run(["gcc", *compiler.C_FLAGS, "-s", "-o", workdir / "stub", workdir / "stub.c", library,
                    "-Wl,-rpath,$ORIGIN"], check=True)
    session = profiled(way, pillion, workdir / "out", [workdir / "stub", "spin"])
    assert named(session, ["engine_start", "deed_spin", "spin"]) > 0.85, session.frames()
    assert session.col.comms() >= {"stub"}, session.col.comms()

"""A profile is named as well when what it names is gone, hidden or elsewhere as when it lies open."""
import os
import shutil

import pytest

from lab import many_functions, process, profiler

pytestmark = pytest.mark.measures

# Not as the other programs are: without frame pointers, so that the whole path is the unwinder's work.
BARE = ("-fomit-frame-pointer", "-momit-leaf-frame-pointer")
STACK = ["main", "worker_turn", "hidden_spin"]


def build(program, folder):
    """The host and a library of its own, which the test may take away."""
    folder.chmod(0o755)
    library = folder / "libworker.so"
    shutil.copy(program("worker", "-shared", "-fPIC", *BARE), library)
    host = folder / "host"
    shutil.copy(program("hosting", *BARE, "-ldl"), host)
    return host, library


def seen(session):
    """The share of samples whose innermost functions are the expected ones, and which start at _start."""
    stacks = [s for w in session.windows for s in w.stacks]
    total = sum(s.count for s in stacks)
    named = sum(s.count for s in stacks if s.frames[0] == "_start" and
                [f for f in s.frames if not f.endswith("_[k]")][-3:] == STACK)
    return named / max(total, 1)


@pytest.mark.parametrize("deed", ["keep", "remove", "replace"])
def test_a_library_that_goes_away_keeps_its_names(pillion, program, workdir, deed):
    """All of this is symbolised after the process has ended."""
    host, library = build(program, workdir)
    session = profiler.profile(pillion, workdir / "out", [host, library, "1.5", deed])
    assert seen(session) > 0.9, session.frames()


def attach(pillion, workdir, host, library, deed, *options, prefix=()):
    started = process.start([*prefix, host, library, "6", deed])
    process.until(lambda: "ready" in started.out, 10, "the library is loaded, and its file as wanted")
    out = workdir / "out"
    out.mkdir(exist_ok=True)
    out.chmod(0o777)
    done = process.run([*prefix, pillion, "-p", str(started.pid), "-d", "2", "-o", out, *options])
    started.end()
    return profiler.Session(done, out)


@pytest.mark.parametrize("deed", ["remove", "replace"])
def test_attaching_finds_a_library_without_a_path(pillion, program, workdir, deed):
    """With the right to open what is mapped, by that: every name is there."""
    host, library = build(program, workdir)
    session = attach(pillion, workdir, host, library, deed)
    assert seen(session) > 0.9, session.frames()


def test_attaching_without_rights_reads_it_from_memory(pillion, program, workdir):
    """What was loaded are the unwind tables and the exported names."""
    host, library = build(program, workdir)
    workdir.chmod(0o777)
    session = attach(profiler.copy(pillion, workdir), workdir, host, library, "remove",
                     prefix=profiler.as_nobody())
    total = sum(s.count for s in session.col.stacks)
    whole = sum(s.count for s in session.col.stacks if s.frames[0] == "_start" and "main" in s.frames)
    assert whole > 0.95 * total, session.frames()
    assert session.share("worker_turn") > 0.9, session.frames()


def make_root(program, folder):
    """A root with the host, its library and the C library."""
    host, library = build(program, folder)
    for path in ("/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6"):
        target = folder / path[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(path), target)
    return host, library


def test_a_program_in_another_root_is_named(pillion, program, workdir):
    make_root(program, workdir)
    session = profiler.profile(pillion, workdir / "out", ["chroot", workdir, "/host", "/libworker.so", "1.5"])
    assert seen_below(session) > 0.9, session.frames()


def seen_below(session):
    """As seen, for the samples of the host alone."""
    stacks = [s for w in session.windows for s in w.stacks if s.comm == "host"]
    total = sum(s.count for s in stacks)
    named = sum(s.count for s in stacks if s.frames[0] == "_start" and
                [f for f in s.frames if not f.endswith("_[k]")][-3:] == STACK)
    return named / max(total, 1)


def test_a_program_in_a_pivoted_mount_namespace_is_named(pillion, program, workdir):
    """The namespace, and with it every path, is gone when names are looked up."""
    make_root(program, workdir)
    script = f"""mount --bind {workdir} {workdir} && cd {workdir} && mkdir -p old && pivot_root . old &&
        exec /host /libworker.so 1.5"""
    session = profiler.profile(pillion, "/tmp/" + workdir.name + "-out", ["unshare", "-m", "sh", "-c", script])
    try:
        assert seen_below(session) > 0.9, session.frames()
    finally:
        shutil.rmtree("/tmp/" + workdir.name + "-out")


def test_a_deleted_executable_is_named(pillion, program, workdir):
    host, library = build(program, workdir)
    started = process.start([host, library, "6"])
    process.until(lambda: "ready" in started.out, 10, "the library is loaded")
    host.unlink()
    out = workdir / "out"
    out.mkdir()
    done = process.run([pillion, "-p", str(started.pid), "-d", "2", "-o", out])
    started.end()
    assert seen(profiler.Session(done, out)) > 0.9, done


@pytest.mark.parametrize("whose", ["its own", "another's"])
def test_a_debug_file_is_taken_when_it_is_of_this_build_and_told_when_not(whose, pillion, program, workdir):
    """A stripped library keeps the names it exports; which others there are is in the file beside it."""
    host, library = build(program, workdir)
    other = workdir / "other.so"
    shutil.copy(library if whose == "its own" else program("worker", "-shared", "-fPIC", "-DOTHER", *BARE), other)
    if whose != "its own":  # the same sources make the same build id
        check(["objcopy", "--update-section", f".note.gnu.build-id={other_build_id(workdir)}", other])
    debug = workdir / "libworker.so.debug"
    check(["objcopy", "--only-keep-debug", other, debug])
    check(["strip", "--strip-all", library])
    check(["objcopy", f"--add-gnu-debuglink={debug}", library])
    session = profiler.profile(pillion, workdir / "out", [host, library, "1.5", "keep"])
    text = " ".join(session.done.err.split())
    if whose == "its own":
        assert seen(session) > 0.9, session.frames()
        assert "another build id" not in text, session.done
    else:
        assert f"{library}: debug file {debug} has another build id; its own symbols are used" in text, session.done
        assert "hidden_spin" not in session.frames() and "worker_turn" in session.frames(), session.frames()


def test_more_functions_than_a_table_has_room_for_have_their_names(pillion, workdir):
    """In each window, although no window has all of them."""
    count = 600_000
    command = [many_functions.program(count), "4"]
    session = profiler.profile(pillion, workdir / "out", command, "--max-memory", 32, "-c", "-d", "2")
    assert len(session.windows) > 1
    for window in session.windows:
        assert window.share("main") > 0.95, window.frames()
        assert sum(window.share(name) for name in many_functions.chosen(count)) > 0.95, window.frames()
    for name in many_functions.chosen(count):
        assert 0.2 < session.share(name) < 0.5, session.share(name)
    assert session.col.header["pillion"]["own"]["rss_peak_bytes"] < 32 << 20, session.col.header["pillion"]


def check(command):
    done = process.run([str(word) for word in command])
    assert done.status == 0, done


def other_build_id(workdir):
    note = workdir / "note"
    note.write_bytes((4).to_bytes(4, "little") + (20).to_bytes(4, "little") + (3).to_bytes(4, "little") + b"GNU\0" + bytes(range(20)))
    return note

"""Files of those that are profiled: file systems that do not answer, files without end, links that lead elsewhere. None of
them stops the profiler, or what it profiles."""
import lzma
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from lab import fuse, process, profiler

pytestmark = pytest.mark.measures

TERM_SECONDS = 6


@pytest.fixture
def server(workdir, program):
    """A program on a file system that is run by another, and may stop answering."""
    reason = fuse.missing()
    if reason:
        pytest.skip(reason)
    folder = workdir / "mount"
    folder.mkdir()
    with fuse.mounted(folder, "act", program("act", "-static")) as running:
        running.program = folder / "act"
        yield running


def ended(own, seconds):
    """Ends it by TERM; how long that took."""
    begin = time.monotonic()
    own.signal(signal.SIGTERM)
    done = own.finish(seconds + 20)
    return done, time.monotonic() - begin


@pytest.mark.root
def test_names_of_a_file_system_that_answers(pillion, workdir, server):
    session = profiler.profile(pillion, workdir / "out", [server.program, "spin", "1"])
    assert session.share("burn") > 0.9, session.done


@pytest.mark.root
@pytest.mark.parametrize("options", [[], ["--perf-mode", "disabled", "--wall"]], ids=["perf", "perf-less"])
def test_a_file_system_that_does_not_answer_costs_its_names(pillion, workdir, server, options):
    busy, other = process.start([server.program, "spin", "60"]), process.start(["sh", "-c", "while :; do :; done"])
    process.until(lambda: process.cpu_seconds(busy.pid) > 0.2, 20, "it runs")
    server.freeze()
    before = process.cpu_seconds(busy.pid) + process.cpu_seconds(other.pid)
    try:
        own = process.start([pillion, "-p", f"{busy.pid},{other.pid}", "-d", "2", "-o", workdir / "out", *options])
        done = own.finish(20)
        used = process.cpu_seconds(busy.pid) + process.cpu_seconds(other.pid) - before
    finally:
        server.thaw()
        busy.end()
        other.end()
    session = profiler.Session(done, workdir / "out")
    assert done.status in (0, 1), done
    assert 0.35 * used < session.seconds() < 1.1 * used + 0.1, (used, done)  # its start and end are in what was used
    if not options:
        assert "its file system did not answer within" in done.err, done
        assert session.seconds(comm="sh") > 0.35 * session.seconds(), done


@pytest.mark.root
def test_term_ends_it_while_a_file_system_does_not_answer(pillion, workdir, server):
    """Three moments: before the file is opened, while names are looked up, and between."""
    busy = process.start([server.program, "spin", "100"])
    process.until(lambda: process.cpu_seconds(busy.pid) > 0.2, 20, "it runs")
    server.freeze()
    try:
        for after in (0.1, 0.6, 2.2):
            own = process.start([pillion, "-p", busy.pid, "-c", "-d", "2", "-o", workdir / f"out{after}"])
            time.sleep(after)
            done, took = ended(own, TERM_SECONDS)
            assert took < TERM_SECONDS and done.status in (0, 1), (after, took, done)
    finally:
        server.thaw()
        busy.end()


@pytest.mark.root
def test_code_that_no_page_holds_is_not_asked_of_a_file_system_that_does_not_answer(pillion, workdir, server):
    """Opening the file drops its pages; then only what runs is read in again, and a caller's code would be waited for."""
    busy = process.start([server.program, "threads", "3", "100"])
    process.until(lambda: process.cpu_seconds(busy.pid) > 0.2, 20, "it runs")
    server.program.open("rb").close()
    before = process.cpu_seconds(busy.pid)
    process.until(lambda: process.cpu_seconds(busy.pid) > before + 0.3, 20, "it runs on")
    server.freeze()
    try:
        own = process.start([pillion, "-p", busy.pid, "-c", "-d", "1", "-o", workdir / "out"])
        time.sleep(1.5)
        done, took = ended(own, TERM_SECONDS)
        assert took < TERM_SECONDS and done.status in (0, 1), (took, done)
    finally:
        server.thaw()
        busy.end()


@pytest.mark.parametrize("name", ["map", "dump"])
def test_a_file_of_names_without_end(pillion, workdir, name):
    """A thousand gigabytes that take no room on the disk, written by the program itself."""
    script = """
import mmap, os, sys, time, ctypes
kind, folder = sys.argv[1:]
path = f"/tmp/perf-{os.getpid()}.map" if kind == "map" else f"{folder}/jit-{os.getpid()}.dump"
with open(path, "wb+") as file:
    if kind == "dump": # a header, and one record of 4 GB after the other
        import struct
        file.write(struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, os.getpid(), 0, 0) + struct.pack("<IIQ", 0, 0xfffffff0, 0))
    os.truncate(path, 1 << 40)
    mapped = mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("4889f8 48ffc8 75fb c3".replace(" ", ""))) # counts its argument down
turn = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
print("ready", path, flush=True)
while True:
    turn(10_000_000)
"""
    busy = process.start(["/usr/bin/python3", "-c", script, name, workdir])
    process.until(lambda: "ready" in busy.out, 20, lambda: busy.err)
    try:
        own = process.start([pillion, "-p", busy.pid, "-c", "-d", "1", "-o", workdir / "out"])
        process.until(lambda: len(list((workdir / "out").glob("profile_*.col"))) >= 3, 20, lambda: own.err)
        done, took = ended(own, TERM_SECONDS)
    finally:
        busy.end()
        os.unlink(busy.out.split()[1])
    session = profiler.Session(done, workdir / "out")
    assert took < TERM_SECONDS and done.status == 0, (took, done)
    assert max(window.header["pillion"]["own"]["cpu_ns"] for window in session.windows) < 0.5e9, done


@pytest.fixture(scope="module")
def bomb(tmp_path_factory, program):
    """A program whose packed symbols are 11 KB, and 68 MB when they are unpacked."""
    folder = tmp_path_factory.mktemp("bomb")
    shutil.copy2(program("act", "-static"), folder / "act")
    (folder / "packed").write_bytes(lzma.compress(bytes(68 << 20), preset=9))
    subprocess.run(["strip", folder / "act"], check=True)
    subprocess.run(["objcopy", f"--add-section=.gnu_debugdata={folder / 'packed'}", folder / "act"], check=True)
    return folder / "act"


def test_what_is_packed_does_not_unpack_to_more_than_the_memory_there_is(pillion, workdir, bomb):
    session = profiler.profile(pillion, workdir / "out", [bomb, "spin", "1"], "--max-memory", 16)
    own = session.col.header["pillion"]["own"]
    assert own["rss_peak_bytes"] < 17.6 * 2 ** 20, own
    assert profiler.within(session.seconds(), 1, 0.1), session.done


def test_checksums_of_large_files_are_bounded(pillion, workdir, program):
    """Eight libraries name debug files of 1 GB; computing their checksums took ten seconds of CPU time."""
    source, libraries = workdir / "x.c", []
    for i in range(8):
        source.write_text(f"int burn{i}(int n) {{ volatile int x = 0; for (int i = 0; i < n; i++) x += i; return x; }}")
        library = workdir / f"x{i}.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wl,--build-id=none", "-o", library, source], check=True)
        debug = workdir / f"x{i}.so.debug"
        subprocess.run(["objcopy", "--only-keep-debug", library, debug], check=True)
        subprocess.run(["strip", library], check=True)
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", library], check=True)
        os.truncate(debug, 1 << 30)
        libraries.append(str(library))
    script = f"""
import ctypes, time
burns = [getattr(ctypes.CDLL(path), f"burn{{i}}") for i, path in enumerate({libraries!r})]
while time.process_time() < 2:
    for burn in burns: burn(100000)
"""
    session = profiler.profile(pillion, workdir / "out", ["/usr/bin/python3", "-c", script], "-d", "4")
    own = sum(window.header["pillion"]["own"]["cpu_ns"] for window in session.windows) / 1e9
    assert own < 1, (own, session.done)
    assert re.search("too large for its checksum", session.done.err) or own < 0.5, session.done


@pytest.mark.root
def test_a_log_file_that_another_user_links_elsewhere_is_not_written(pillion, workdir):
    target, link = workdir / "target", workdir / "log"
    target.write_text("as it was")
    link.symlink_to(target)
    os.lchown(link, profiler.NOBODY, profiler.NOBODY)
    session = profiler.profile(pillion, workdir / "out", ["sh", "-c", "exit 3"], "--log-file", link)
    assert session.done.status == 3 and target.read_text() == "as it was"
    assert f"{link} is a link that belongs to another user" in session.done.err, session.done

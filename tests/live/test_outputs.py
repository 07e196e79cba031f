"""Files: names, links, rotation, atomicity, full and read-only folders."""
import base64
import ctypes
import os
import re
import struct
import subprocess
import time

import pytest

from lab import process, profiler

pytestmark = pytest.mark.measures

NAME = r"profile_\d{4}-\d\d-\d\dT\d{6}Z(?:-\d+)?"
LINKS = {"last_profile.col": "col", "last_flamegraph.html": "html", "last_profile.pprof": "pprof"}
RUN = {"run_profile.col": "col", "run_flamegraph.html": "html", "run_profile.pprof": "pprof"}


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def check_folder(folder, sets, kinds=("col", "html", "pprof")):
    """`sets` windows of files, links to the newest of each, the whole run's, nothing else."""
    files = [n for n in names(folder) if n not in LINKS and n not in RUN]
    assert [n for n in names(folder) if n in RUN] == sorted(n for n, kind in RUN.items() if kind in kinds)
    for name in files:
        assert re.fullmatch(NAME + r"\.(col|html|pprof)", name), names(folder)
    for kind in kinds:
        assert len([n for n in files if n.endswith("." + kind)]) == sets, names(folder)
    assert len(files) == sets * len(kinds), names(folder)
    for link, kind in LINKS.items():
        if kind in kinds:
            target = os.readlink(folder / link)
            assert "/" not in target, f"{link} -> {target}"
            newest = max((folder / n for n in files if n.endswith("." + kind)), key=lambda f: f.stat().st_mtime_ns)
            assert target == newest.name
        else:
            assert not (folder / link).is_symlink()


def test_names_and_links(pillion, program, workdir):
    before = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
    session = profiler.profile(pillion, workdir, [program("act"), "spin", "0.4"])
    after = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
    check_folder(workdir, 1)
    ended = os.readlink(workdir / "last_profile.col")[len("profile_"):][:18]
    assert before <= ended <= after, "the name is the window's end in UTC"
    header = session.col.header
    assert header["start_time"] <= header["end_time"]


def test_names_with_colons_as_gprofiler_has_them(pillion, program, workdir):
    profiler.profile(pillion, workdir, [program("act"), "spin", "0.2"], "--file-names", "gprofiler", "--format", "col")
    assert re.fullmatch(r"profile_\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.col", os.readlink(workdir / "last_profile.col"))


def test_the_output_folder_is_made(pillion, program, workdir):
    session = profiler.profile(pillion, workdir, [program("act"), "spin", "0.2"], "-o", workdir / "a" / "b")
    assert session.done.status == 0
    check_folder(workdir / "a" / "b", 1)


def test_without_o_the_files_come_into_the_current_folder(run, pillion, program, workdir):
    run([pillion, "--launch", "init", "-q", "--", program("act"), "spin", "0.2"], cwd=workdir)
    check_folder(workdir, 1)


def test_windows_follow_each_other_and_lose_nothing(pillion, program, workdir):
    session = profiler.profile(pillion, workdir, [program("act"), "spin", "3.4"], "-d", "1")
    assert 3 <= len(session.windows) <= session.done.seconds + 2
    check_folder(workdir, len(session.windows))
    assert profiler.within(session.seconds(), session.done.cpu_seconds, 0.03, 0.05)


def by_name(path):
    """Weights by all but the first field, which numbers processes of a file."""
    sums = {}
    for line in path.read_text().splitlines()[1:]:
        stack, weight = line.rsplit(" ", 1)
        stack = stack.split(";", 1)[1]
        sums[stack] = sums.get(stack, 0) + int(weight)
    return sums


@pytest.mark.parametrize("options,expected", [([], "python: shop.py ({})"), (["--disable-application-identifiers"], None)])
def test_an_interpreter_is_told_by_what_it_runs(options, expected, pillion, workdir):
    script = workdir / "shop.py"
    script.write_text("import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end:\n    sum(range(1000))\n")
    session = profiler.profile(pillion, workdir / "out", ["/usr/bin/python3", "shop.py", "--key=secret"], *options, cwd=workdir)
    told = {stack.appid for stack in session.col.stacks if any(frame.endswith("_[p]") for frame in stack.frames)}
    assert told == {expected and "appid: " + expected.format(script)}, session.done
    labels = {sample.labels.get("appid") for sample in session.pprof.samples if sample.labels.get("comm") == "python3"}
    assert labels == {expected and expected.format(script)}
    assert "secret" not in (workdir / "out" / "last_profile.col").read_text().partition("\n")[2]


def test_the_whole_run_is_there_as_well(run, pillion, program, workdir):
    session = profiler.profile(pillion, workdir, [program("act"), "spin", "3.4"], "-d", "1")
    windows = sorted(workdir.glob("profile_*.col"))
    count = len(windows)
    assert f"the whole run, {count} windows: {workdir}/run_flamegraph.html" in session.done.err, session.done
    assert all((workdir / name).is_file() and not (workdir / name).is_symlink() for name in RUN)
    merged = workdir / "merged.col"
    assert run([pillion, "render", *windows, "-o", merged]).status == 0
    run_of, of_windows = by_name(workdir / "run_profile.col"), by_name(merged)
    for stack in run_of.keys() | of_windows.keys():  # files of windows are rounded to whole samples
        assert abs(run_of.get(stack, 0) - of_windows.get(stack, 0)) <= count / 2 + 0.5, stack
    assert profiler.within(sum(run_of.values()) / 99, session.done.cpu_seconds, 0.05, 0.05)


def test_of_one_window_the_run_is_a_link(pillion, program, workdir):
    session = profiler.profile(pillion, workdir, [program("act"), "spin", "0.3"])
    assert "the whole run" not in session.done.err
    for name, kind in RUN.items():
        assert (workdir / name).resolve() == (workdir / os.readlink(workdir / name)) == \
               next(workdir.glob(f"profile_*.{kind}")), name


def test_an_attached_profiler_has_windows_alone(pillion, program, workdir):
    target = process.start([program("act"), "spin", "20"])
    process.run([pillion, "-p", target.pid, "-d", "1", "-o", workdir], 20)
    target.end()
    assert not any(name in RUN for name in names(workdir)) and "last_profile.col" in names(workdir)


def test_no_continuous_is_one_window(pillion, program, workdir):
    session = profiler.profile(pillion, workdir, [program("act"), "spin", "2.2", "5"], "-d", "1", "--no-continuous")
    assert session.done.status == 5
    assert len(session.windows) == 1
    assert 0.1 < session.seconds() < 1.3


def test_rotation_keeps_the_newest_set(pillion, program, workdir):
    profiler.profile(pillion, workdir, [program("act"), "spin", "2.5"], "-d", "1", "--rotating-output")
    check_folder(workdir, 1)


def test_at_most_n_sets_of_files_also_those_of_an_earlier_run(pillion, program, workdir):
    for age in (1, 2, 3):
        (workdir / f"profile_2020-01-0{age}T00:00:00.col").write_text("# {}")
    (workdir / "profile_of_somebody_else.col").write_text("mine")
    profiler.profile(pillion, workdir, [program("act"), "spin", "2.5"], "-d", "1", "--max-output-files", "2")
    assert (workdir / "profile_of_somebody_else.col").exists()
    (workdir / "profile_of_somebody_else.col").unlink()
    check_folder(workdir, 2)


@pytest.mark.parametrize("options,kinds", [
    (["--format", "col"], ["col"]),
    (["--no-flamegraph"], ["col", "pprof"]),
    (["--format", "pprof,html"], ["html", "pprof"]),
])
def test_only_what_was_asked_for(pillion, program, workdir, options, kinds):
    profiler.profile(pillion, workdir, [program("act"), "spin", "0.2"], *options)
    check_folder(workdir, 1, kinds)


IN_MODIFY, IN_MOVED_TO, IN_CREATE = 0x2, 0x80, 0x100


class Watch:
    """What happens to the names of a folder, in order, from the kernel."""

    def __init__(self, folder):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self.libc.inotify_add_watch(self.fd, os.fsencode(folder), IN_MODIFY | IN_MOVED_TO | IN_CREATE) >= 0

    def events(self):
        found = []
        while True:
            try:
                data = os.read(self.fd, 65536)
            except BlockingIOError:
                return found
            at = 0
            while at < len(data):
                _, mask, _, length = struct.unpack_from("iIII", data, at)
                found.append((mask, os.fsdecode(data[at + 16:at + 16 + length].rstrip(b"\0"))))
                at += 16 + length


def test_files_appear_whole_and_stale_temporary_files_do_not_matter(pillion, program, workdir):
    watch = Watch(workdir)
    profiler.profile(pillion, workdir, [program("act"), "spin", "1.5"], "-d", "1")
    events = watch.events()
    final = [(mask, name) for mask, name in events if re.fullmatch(NAME + r"\.\w+", name) or name in LINKS]
    assert final
    assert {mask for mask, _ in final} == {IN_MOVED_TO}, events
    temporary = {name for mask, name in events if mask == IN_CREATE}
    assert temporary
    for name in names(workdir):
        (workdir / name).unlink()
    # A killed run's leftovers under the very names, and under names of other programs' habits.
    for name in temporary | {link + ".tmp" for link in LINKS}:
        (workdir / name).write_text("left by a killed run")
    profiler.profile(pillion, workdir, [program("act"), "spin", "0.3"])
    for name in temporary | {link + ".tmp" for link in LINKS}:
        if (workdir / name).exists():
            (workdir / name).unlink()
    check_folder(workdir, 1)


def test_the_flame_graph_is_one_file_with_its_data_as_inert_text(pillion, program, workdir):
    profiler.profile(pillion, workdir, [program("act"), "spin", "0.5"])
    page = (workdir / "last_flamegraph.html").read_text(encoding="utf-8")
    blocks = re.findall(r"<script\b([^>]*)>(.*?)</script>", page, re.S)
    data = {re.search(r'id="(\w+)"', attributes).group(1): text for attributes, text in blocks
            if 'type="application/octet-stream"' in attributes}
    assert "data" in data, [a for a, _ in blocks]
    for text in data.values():
        assert re.fullmatch(r"[A-Za-z0-9+/=\n]*", text) and len(base64.b64decode(text)) > 100
    # Nothing is fetched from anywhere.
    assert not re.search(r"(?:src|href)\s*=\s*[\"']?(?:https?:)?//", page)
    assert not re.search(r"@import|url\(\s*[\"']?(?!data:|#)", page)
    assert page.count("<script") == len(blocks)


def test_the_same_totals_in_every_file(pillion, program, workdir):
    session = profiler.profile(pillion, workdir, [program("act"), "threads", "2", "0.6"])
    assert profiler.within(session.pprof.total("cpu") / 1e9, session.seconds(), 0.001, 0.03)
    assert [name for name, _ in session.pprof.sample_types] == ["samples", "cpu"]
    assert dict(session.pprof.sample_types) == {"samples": "count", "cpu": "nanoseconds"}


# ---- Folders that take nothing

@pytest.fixture
def small(workdir):
    """A file system with room for next to nothing."""
    folder = workdir / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k,mode=1777", "none", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


def complaints(done):
    return [line for line in profiler.lines(done.err) if re.search(r"cannot write|No space|ENOSPC|EROFS|read-only|EACCES", line)]


@pytest.mark.root
@pytest.mark.parametrize("launch", ["exec", "init"])
def test_a_full_disk_is_one_clear_line(pillion, program, small, launch, tmp_path):
    (small / "filler").write_bytes(b"x" * 4096)
    session = profiler.profile(pillion, small, [program("act"), "spin", "2.5", "6"], "-d", "1", "--heartbeat-file", tmp_path / "alive",
                               launch=launch)
    assert (tmp_path / "alive").stat().st_mtime < time.time() - 1, "touched when the run began, and by no window"
    assert session.done.status == 6
    said = complaints(session.done)
    assert len(said) == 1, session.done
    assert re.search(r"ENOSPC|full|[Nn]o space", said[0]) and str(small) in said[0], said
    assert names(small) == ["filler"], names(small)


@pytest.mark.root
@pytest.mark.parametrize("launch", ["exec", "init"])
def test_a_read_only_folder_is_one_clear_line(pillion, program, small, launch):
    subprocess.run(["mount", "-o", "remount,ro", small], check=True)
    session = profiler.profile(pillion, small, [program("act"), "spin", "1.5", "6"], "-d", "1", launch=launch)
    assert session.done.status == 6
    said = complaints(session.done)
    assert len(said) == 1, session.done
    assert re.match(rf"pillion: cannot write {re.escape(str(small))} \(read-only, EROFS\)", said[0]), said


@pytest.mark.root
def test_a_folder_of_somebody_else_is_one_clear_line(pillion, program, workdir):
    theirs = workdir / "theirs"
    theirs.mkdir(mode=0o755)
    copy = profiler.copy(pillion, workdir)
    session = profiler.profile(copy, theirs, ["true"], prefix=profiler.as_nobody(), launch="init")
    assert session.done.status == 0
    assert len(complaints(session.done)) == 1 and "EACCES" in session.done.err, session.done


@pytest.mark.root
def test_attaching_with_nowhere_to_write_is_status_1(pillion, program, small):
    subprocess.run(["mount", "-o", "remount,ro", small], check=True)
    target = process.start([program("act"), "spin", "3"])
    done = process.run([pillion, "-p", target.pid, "-d", "1", "-o", small])
    assert done.status == 1 and len(complaints(done)) == 1, done
    target.end()

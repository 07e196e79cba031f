"""What each thread of a running profiler keeps of its rights, and what becomes of one that does what it should not."""
import os
import re
import subprocess
from pathlib import Path

import pytest

from lab import linked, process, profiler
from lab.sink import Sink
from lab.uploading import BUSY, WINDOWS, Run, until_taken

pytestmark = pytest.mark.measures

FILES = {1, 2}                      # DAC_OVERRIDE, DAC_READ_SEARCH
READER = FILES | {6, 7, 14, 19, 21, 23, 24, 34, 38, 40}
PTRACE = 19


def threads(pid):
    """Of each thread: its capabilities, whether it may gain rights, how many filters it has behind it."""
    for folder in sorted(Path(f"/proc/{pid}/task").iterdir(), key=lambda path: int(path.name)):
        told = dict(line.split(":\t", 1) for line in (folder / "status").read_text().splitlines() if ":\t" in line)
        rights = int(told["CapPrm"], 16)
        yield {bit for bit in range(64) if rights >> bit & 1}, told["NoNewPrivs"], int(told.get("Seccomp_filters", 2)), told["Seccomp"]


def kinds(run, own):
    """(that reads targets, that sends) of the profiler's threads, when all have begun."""
    def begun():
        found = list(threads(run.pillion.pid))
        return found if all(filters == own + 2 for _, _, filters, _ in found) else None
    found = process.until(begun, 10, lambda: list(threads(run.pillion.pid)))
    assert all(told[1] == "1" and told[3] == "2" for told in found), found
    senders = [rights for rights, *_ in found if rights <= FILES]
    return [rights for rights, *_ in found if not rights <= FILES], senders


@pytest.mark.root
def test_each_thread_keeps_what_its_kind_needs(pillion, workdir):
    """Of root's rights: the sampler, the publisher and the catchers those that reading takes, the uploader those of files."""
    own_rights, _, own_filters, _ = next(threads(os.getpid()))
    if PTRACE not in own_rights:
        pytest.skip("root here has no CAP_SYS_PTRACE")
    with Sink() as sink:
        run = Run(pillion, "--server-host", sink.url + WINDOWS, "--spool-dir", workdir / "spool", "-o", workdir / "out",
                  command=["/usr/bin/python3", "-c", BUSY])
        run.window()
        until_taken(sink, 1, run)
        readers, senders = kinds(run, own_filters)
        run.end()
    assert len(readers) >= 2 + os.cpu_count() and len(senders) == 1, (readers, senders)
    assert all(PTRACE in rights and rights <= READER & own_rights for rights in readers), readers
    assert senders == [FILES & own_rights]


@pytest.mark.root
def test_rights_stay_where_targets_may_not_be_traced(pillion, workdir):
    """The kernel lets a process be read by who has all of its capabilities: a stock container's root keeps them."""
    with Sink() as sink:
        run = Run(pillion, "--server-host", sink.url + WINDOWS, prefix=["setpriv", "--bounding-set=-sys_ptrace"])
        run.window()
        expected = next(threads(os.getpid()))[0] - {PTRACE}
        readers, senders = kinds(run, next(threads(os.getpid()))[2])
        run.end()
    assert all(rights == expected for rights in readers) and len(readers) >= 2, readers
    assert all(rights <= FILES for rights in senders) and senders


def test_a_planted_violation_is_refused_and_told_once_and_the_run_goes_on(pillion, workdir, program, arch):
    plant = linked.program("tests/live/programs/plant.c", arch, pillion)
    session = profiler.profile(plant, workdir / "out", [program("act"), "spin", "2"])
    if "without perf events there is nothing to observe" in session.done.err:
        pytest.skip("no perf events here")
    assert session.done.status == 0 and "a socket" not in session.done.err, session.done
    assert len(re.findall(r"^pillion: warning: system call \d+ was refused: it is none ", session.done.err, re.M)) == 1, session.done
    assert session.share("burn") > 0.9 and profiler.within(session.seconds(), 2, 0.1), session.done


def test_the_command_has_its_rights(pillion, workdir):
    """They are the profiler's to give up."""
    command = ["sh", "-c", "grep -E 'Cap|NoNew|Seccomp' /proc/self/status"]
    bare = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    for launch in ("exec", "init"):
        assert profiler.profile(pillion, workdir / launch, command, launch=launch).done.out == bare

"""When less is allowed: every capture mode keeps the totals true and names the gate that was closed."""
import os
import re
import subprocess
import types

import pytest

from lab import process, profiler

pytestmark = [pytest.mark.root, pytest.mark.measures]
TICK = 1 / 100


@pytest.fixture
def place(workdir, pillion, program):
    """A folder any uid can use: the binary, the program of small deeds, an output folder."""
    place = types.SimpleNamespace(pillion=profiler.copy(pillion, workdir), act=workdir / "act", out=workdir / "out")
    place.act.write_bytes(program("act").read_bytes())
    place.act.chmod(0o755)
    place.out.mkdir()
    place.out.chmod(0o777)
    return place


def true_totals(session, least):
    truth = session.done.cpu_seconds
    assert truth > least
    assert profiler.within(session.seconds(), truth, 0.03, 3 * TICK), (session.seconds(), truth, session.done)


def unseen(session):
    """The share that is counted from /proc: user time, and system time as such."""
    return session.share("[native, no perf]") + session.share("[kernel, hidden]")


def said(session):
    """What the profiler wrote, as one text."""
    return " ".join(session.done.err.split())


def test_paranoid_2_without_rights_is_user_code_with_the_kernels_share_accounted(place):
    session = profiler.profile(place.pillion, place.out, [place.act, "kernel", "1.5"],
                               prefix=profiler.paranoid(2, *profiler.as_nobody()))
    true_totals(session, 1.4)
    hidden = session.share("[kernel, hidden]")
    kernel = session.done.usage.ru_stime / session.done.cpu_seconds
    assert abs(hidden - kernel) < 0.05, (hidden, kernel, session.frames())
    assert not [n for n in session.frames() if n.endswith("_[k]")]
    assert re.search(r"user (code )?only|paranoid 2", said(session)), session.done


def test_paranoid_2_without_rights_names_user_code(place):
    session = profiler.profile(place.pillion, place.out, [place.act, "threads", "2", "0.8"],
                               prefix=profiler.paranoid(2, *profiler.as_nobody()))
    true_totals(session, 1.5)
    assert session.share("spin") > 0.9


GATES = {
    "EPERM": r"EPERM.*seccomp|seccomp.*EPERM",
    "ENOSYS": r"ENOSYS.*seccomp|seccomp.*ENOSYS",
    # The level is 2 here and would not answer so: naming it would send people to the wrong gate.
    "EACCES": r"EACCES.*(seccomp|security)",
}


@pytest.mark.parametrize("error", GATES)
@pytest.mark.parametrize("who", ["root", "nobody"])
def test_perf_refused_by_a_filter_is_accounted_from_proc(place, refuse, error, who):
    prefix = [*(profiler.as_nobody() if who == "nobody" else []), refuse, error, "perf_event_open", "--"]
    session = profiler.profile(place.pillion, place.out, [place.act, "threads", "2", "0.6"],
                               prefix=profiler.paranoid(2, *prefix), launch="init")
    assert session.done.status == 0
    # In init mode the parent's usage has the profiler's in it; the program itself spends 2 x 0.6 s.
    assert profiler.within(session.seconds(), 1.2, 0.03, 3 * TICK), (session.seconds(), session.done)
    assert unseen(session) > 0.99, session.frames()
    assert "worker" in session.col.comms(), session.col.comms()
    assert re.search(GATES[error], said(session)), session.done
    # Told at the start and, as the reason, with the empty window; not once per process or thread. The gate stands in the
    # line of the window.
    told = [line for line in profiler.lines(session.done.err) if error in line and " cpu=" not in line]
    assert len(told) <= 2 and len([line for line in told if "EMPTY" in line]) <= 1, session.done


def test_without_perf_a_detached_profiler_counts_to_the_end(place, refuse):
    """Two threads, two processes. Nobody keeps the ended command for the profiler to read: what two of them did since
    the last poll, up to 0.2 s, is missing, so that it takes 8 s to be well within 3 %."""
    session = profiler.profile(place.pillion, place.out, ["sh", "-c", '"$0" threads 2 3; "$0" processes 2 1', place.act],
                               prefix=[refuse, "EPERM", "perf_event_open", "--"])
    true_totals(session, 7.9)
    assert unseen(session) > 0.99


def test_paranoid_3_is_named_as_such(place, refuse):
    """Debian's level 3 as a program sees it: the file says 3 and the call answers EACCES."""
    prefix = profiler.paranoid(3, *profiler.as_nobody(refuse, "EACCES", "perf_event_open", "--"))
    session = profiler.profile(place.pillion, place.out, [place.act, "spin", "1"], prefix=prefix, launch="init")
    assert profiler.within(session.seconds(), 1.0, 0.03, TICK), (session.seconds(), session.done)
    assert re.search(r"EACCES: kernel.perf_event_paranoid\); set kernel.perf_event_paranoid to 2", said(session)), session.done


def test_perf_mode_disabled_is_a_choice_not_a_failure(place):
    session = profiler.profile(place.pillion, place.out, [place.act, "processes", "2", "0.6"], "--perf-mode", "disabled",
                               launch="init")
    assert profiler.within(session.seconds(), 1.2, 0.03, 3 * TICK), (session.seconds(), session.done)
    assert unseen(session) > 0.99
    assert "seccomp" not in said(session) and "paranoid" not in said(session)


@pytest.mark.parametrize("calls", ["perf_event_open,memfd_create,close_range,clone3", "timerfd_create,signalfd4",
                                   "setsid,prctl", "epoll_create1,statx,renameat2,sched_setaffinity,pidfd_open"])
def test_with_any_mechanism_broken_the_command_is_the_same(place, refuse, calls):
    for launch in ("exec", "init"):
        done = process.run([refuse, "EPERM", calls, "--", place.pillion, "--launch", launch, "-o", place.out, "--",
                            "sh", "-c", "echo out; exit 9"])
        assert (done.status, done.out) == (9, "out\n"), done
        process.settle(15)


def test_attach_to_a_process_of_another_uid_counts_its_time(place):
    target = process.start([place.act, "spin", "6"])
    before = process.cpu_seconds(target.pid)
    done = process.run([*profiler.paranoid(2, *profiler.as_nobody()), place.pillion, "-p", target.pid, "-d", "2", "-o", place.out])
    after = process.cpu_seconds(target.pid)
    target.end()
    session = profiler.Session(done, place.out)
    # Between the two readings lie the start and the end of pillion too.
    assert 0.6 * (after - before) - 0.2 < session.seconds() <= after - before + 2 * TICK, (session.seconds(), after - before, done)
    assert "uid" in said(session), done


def test_as_uid_65534_with_nothing_else(place):
    session = profiler.profile(place.pillion, place.out, [place.act, "spin", "0.6", "4"], prefix=profiler.as_nobody("env", "-i"))
    assert session.done.status == 4
    assert session.share("spin") > 0.9
    assert (place.out / "last_flamegraph.html").exists() and (place.out / "last_profile.pprof").exists()


@pytest.fixture
def empty_root(workdir, pillion, program):
    """A root that holds only the binary, a static program, /proc and a writable output folder."""
    root = workdir / "root"
    for name in ("proc", "out"):
        (root / name).mkdir(parents=True)
    (root / "out").chmod(0o777)
    profiler.copy(pillion, root)
    (root / "act").write_bytes(program("act", "-static").read_bytes())
    (root / "act").chmod(0o755)
    subprocess.run(["mount", "-t", "proc", "proc", root / "proc"], check=True)
    yield root
    subprocess.run(["umount", root / "proc"], check=True)


@pytest.mark.parametrize("who, cpus", [("root", []), ("nobody", []), ("root", ["taskset", "-c", str(max(os.sched_getaffinity(0)))])],
                         ids=["root", "nobody", "on the last processor"])
def test_in_an_empty_root_without_an_environment(empty_root, who, cpus):
    user = [] if who == "root" else [f"--userspec={profiler.NOBODY}:{profiler.NOBODY}"]
    done = process.run([*cpus, "env", "-i", "/usr/sbin/chroot", *user, empty_root, "/pillion", "-o", "/out", "--",
                        "/act", "spin", "0.6", "3"])
    process.settle(15)
    session = profiler.Session(done, empty_root / "out")
    assert done.status == 3, done
    # The C library's own code has no frame pointers: a sample in its clock_gettime lacks the caller.
    assert session.share("spin") > 0.75 and session.share("deed_spin") > 0.95, session.frames()
    assert session.share("[unknown]") < 0.02

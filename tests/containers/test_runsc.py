"""gVisor: a kernel without perf events and schedstat, whose clocks move in ticks, where no thread can be made to stand still, and which does
not tell what signals are handled. Shares of Python are right all the same, beside it in a pod, too, and nothing is called proven."""
import os
import re
import shutil

import pytest

from lab import container, gvisor, process, profiler, pystacks

pytestmark = [pytest.mark.root, pytest.mark.net, pytest.mark.measures]
PROGRAMS = "tests/live/programs/python"
# What would be said on other kernels, and is not true of this one.
FALSE = ["ptrace_scope", "sched_setattr", "ended", "SYS_NICE", "cpuset", "--brief-stops", "a defect of pillion"]

# Two call chains in turns, as fast as calls are: a stack that is read once is often of both.
TEARING = """
import time
def leaf(): pass
def left_two(): leaf()
def left_one(): left_two()
def right_two(): leaf()
def right_one(): right_two()
def main():
    end = time.monotonic() + 4
    while time.monotonic() < end:
        for _ in range(5000):
            left_one()
            right_one()
main()
"""
SPINNING = "const end = Date.now() + 2000; while (Date.now() < end) Math.sqrt(2);"
RIGHTS = [*container.CAPABILITIES, "CAP_SYS_PTRACE"]
CHAINS = [["<module>", "main", f"{side}_one", f"{side}_two", "leaf"] for side in ("left", "right")]


@pytest.fixture(scope="module", autouse=True)
def built():
    try:
        print(gvisor.runsc())
    except gvisor.Unavailable as reason:
        pytest.skip(f"no runsc: {reason}")


@pytest.fixture
def inside(workdir, pillion, repository):
    """A folder that becomes /mnt: pillion, the programs, and what is written. `run` runs pillion there."""
    folder = workdir / "out"
    shutil.copytree(repository / PROGRAMS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    profiler.copy(pillion, folder)
    (folder / "tearing.py").write_text(TEARING)

    def run(*arguments):
        try:
            done = gvisor.run(["/mnt/pillion", *arguments], mounts=[(folder, "/mnt", "rw")], environment=["LC_ALL=C.UTF-8"],
                              capabilities=RIGHTS)
        except gvisor.Unavailable as reason:
            pytest.skip(str(reason))
        return profiler.Session(done, folder)
    return run


def value(session, key):
    found = re.findall(rf"\b{key}=([\d.]+)", session.done.err)
    assert found, (key, session.done)
    return float(found[-1])


def test_shares_are_right_and_nothing_is_called_proven(inside):
    # Not held to its budget: how many looks that allows is the machine's matter.
    session = inside("--max-cpu", "100", "--log-format", "logfmt", "-o", "/mnt", "--launch", "init", "--",
                     "/usr/bin/python3", "/mnt/shares.py", "8", "1")
    assert session.done.status == 0, session.done
    stacks = [stack for stack in pystacks.of_col(session) if stack.python]
    total = sum(stack.count for stack in stacks)
    found = {name: sum(stack.count for stack in stacks if name in [f.name for f in stack.python]) / max(total, 1)
             for name in ("fifty", "thirty", "twenty", "warm")}
    print(found, total, session.done.err)
    measured = 1 - found["warm"]
    samples = value(session, "runtime_unprovable")
    for name, share in (("fifty", 0.5), ("thirty", 0.3), ("twenty", 0.2)):  # samples weigh whole ticks: not all the same
        assert abs(found[name] / measured - share) < 5 * (share * (1 - share) / samples) ** 0.5, (found, samples)
    assert value(session, "runtime_proven") == 0
    assert samples > 30, session.done
    assert value(session, "runtime_consistent") > 0.6 * value(session, "runtime_unprovable")
    assert "does not tell when a thread runs" in session.done.err
    assert not [word for word in FALSE if word in session.done.err], session.done


def test_stacks_that_never_were_are_not_kept(inside):
    session = inside("--max-cpu", "100", "--log-format", "logfmt", "-o", "/mnt", "--launch", "init", "--",
                     "/usr/bin/python3", "/mnt/tearing.py")
    assert session.done.status == 0, session.done
    counts = {"whole": 0, "part": 0, "wrong": 0}
    for stack in pystacks.of_col(session):
        names = [frame.name for frame in stack.python]
        if names[:2] != ["<module>", "main"]:
            continue
        kind = "part" if "[partial]" in str(stack.frames) else "whole"
        counts[kind if any(names == chain[:len(names)] for chain in CHAINS) else "wrong"] += stack.count
    kept = sum(counts.values())
    print(counts, session.done.err)
    assert value(session, "runtime_proven") == 0
    assert kept > 50 and counts["wrong"] <= max(0.03 * kept, 1), counts


@pytest.fixture
def small(workdir, pillion):
    """A root that has nothing but pillion."""
    return container.scratch(workdir / "scratch", pillion)


@pytest.fixture
def pod():
    try:
        made = gvisor.pod()
    except gvisor.Unavailable as reason:
        pytest.skip(str(reason))
    with made:
        yield made


def test_a_sidecar_reads_what_begins_in_the_other_containers_of_its_pod(pod, small, repository):
    """Its own root has nothing but pillion: all that is told of the others comes from their roots."""
    beside = pod.start(["/pillion", "-a", "-c", "--max-cpu", "100", "-o", "/out"], base=small,
                       mounts=[(small / "out", "/out", "rw")], capabilities=RIGHTS)
    process.until(lambda: "profiles all processes" in beside.err, 20, lambda: beside.err)
    done = pod.start(["/usr/bin/python3", "/mnt/shares.py", "2", "1"], mounts=[(repository / PROGRAMS, "/mnt", "ro")]).finish(40)
    assert done.status == 0, done
    pod.signal(beside, "TERM")
    session = profiler.Session(beside.finish(20), small / "out")
    names = {frame.name for stack in pystacks.of_col(session) for frame in stack.python}
    print(names, session.done.err)
    assert session.done.status == 0 and {"main", "fifty", "thirty", "twenty"} <= names, session.done
    assert not [word for word in FALSE if word in session.done.err], session.done


def test_a_sidecar_without_the_right_tells_what_to_add(pod, small, repository):
    """Each container has a user namespace of its own there, and mappings are shown to everybody."""
    pod.start(["/usr/bin/python3", "/mnt/shares.py", "20"], mounts=[(repository / PROGRAMS, "/mnt", "ro")])
    done = pod.start(["/pillion", "-a", "-d", "2", "-o", "/out"], base=small, mounts=[(small / "out", "/out", "rw")]).finish(20)
    assert re.search(r"\(python3\) may not be looked into: it is in another user namespace, .*; add SYS_PTRACE", done.err), done
    assert not [word for word in FALSE if word in done.err.replace("SYS_PTRACE", "")], done


# /proc/PID/status has no SigCgt there: a signal might end it.
@pytest.mark.parametrize("flag", ["", "--inspect"])
def test_node_gets_no_signal_and_is_read_where_it_has_opened_its_inspector(inside, flag):
    if not shutil.which("node"):
        pytest.skip("no node here")
    session = inside("--max-cpu", "100", "--nodejs-mode", "inspector", "-o", "/mnt", "--launch", "init", "--",
                     shutil.which("node"), *filter(None, [flag]), "-e", SPINNING)
    frames = session.frames()
    print(frames, session.done.err)
    assert any(frame.endswith("_[js]") for frame in frames) == bool(flag), session.done
    assert ("does not tell which signals a process handles" in session.done.err) == (not flag), session.done
    assert session.done.err.count("Debugger listening") == bool(flag), session.done
    assert not [word for word in FALSE if word in session.done.err], session.done


def test_threads_have_their_own_time_and_more_than_there_are_cpus_is_told_to_be_the_systems(inside, program, workdir):
    """Its ticks count whoever wants a CPU: threads that are to be busy for a second each end after one."""
    shutil.copy(program("act"), workdir / "out")
    session = inside("-d", "1", "--max-cpu", "100", "-o", "/mnt", "--launch", "init", "--", "/mnt/act", "threads", min(64, 3 * os.cpu_count()), "1.2")
    assert session.seconds(comm="worker") > .7 * session.seconds(), session.done  # threads that have ended leave the rest to the first one
    assert "cannot have been used" in session.done.err and "this system counts it in ticks" in session.done.err, session.done
    assert not [word for word in FALSE if word in session.done.err], session.done


def test_the_doctor_says_what_is_so(inside):
    session = inside("doctor")
    print(session.done)
    assert "gVisor" in session.done.out
    assert not [word for word in FALSE if word in session.done.out], session.done

"""Python in containers as an engine makes them: no perf events there, and stacks by their own names all the same."""
import shutil
from collections import Counter

import pytest

from lab import container, process, profiler, pystacks, pythons, tiers

pytestmark = [pytest.mark.root, pytest.mark.net, pytest.mark.measures]
PROGRAMS = "tests/live/programs/python"
NOBODY = profiler.NOBODY
EACH = ["bullseye-python2.7", "bullseye-python3.9", "trixie-python3.13", "sid-python3.14", "sid-python3.15"]


@pytest.fixture
def shared(workdir, pillion, repository):
    """A folder that becomes /out: pillion, the programs, and what is written."""
    if tiers.tool_missing("runc"):
        pytest.fail("runc is missing; run make setup")
    folder = workdir / "out"
    shutil.copytree(repository / PROGRAMS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    profiler.copy(pillion, folder)
    folder.chmod(0o777)
    return folder


def inside(name):
    try:
        return pythons.get(name)
    except pythons.Missing as reason:
        return pytest.skip(f"{name}: {reason}")


def start(python, shared, command, **options):
    """A container whose root is the suite's."""
    return container.Container(python.inside, command, mounts=[(shared, "/out", "rw")],
                               environment=["LC_ALL=C.UTF-8"], **options)


def judged(known, session):
    verdicts, wrong = Counter(), []
    for stack in pystacks.of_pprof(session.folder):
        verdict = known.judge(stack.python)
        verdicts[verdict] += stack.count
        wrong += [repr(stack)] if verdict == "wrong" else []
    return verdicts, wrong


@pytest.mark.parametrize("name, profile", [*((name, "docker") for name in EACH), ("trixie-python3.13", "containers-common")])
def test_as_a_command_prefix_with_everything_stock(name, profile, shared):
    python = inside(name)
    command = [python.argv[-1], "/out/known_stacks.py", "1"]
    done = start(python, shared, ["/out/pillion", "-f", "499", "-o", "/out", "--", *command], profile=profile).finish()
    assert done.status == 0, done
    session = profiler.Session(done, shared)
    verdicts, wrong = judged(pystacks.Known(done.out), session)
    print(python, profile, dict(verdicts))
    assert not wrong, wrong[:3]
    assert verdicts["whole"] > 0.75 * sum(verdicts.values()), done
    assert profiler.within(session.seconds(499), 1.05, 0.1), session.seconds(499)
    assert "EMPTY" not in done.err


@pytest.mark.parametrize("more", [[], ["CAP_SYS_PTRACE"]], ids=["stock", "SYS_PTRACE"])
def test_as_a_command_prefix_without_being_root(more, shared):
    """Process 1 of a container with a read-only root, a /tmp without programs, and any user."""
    python = inside("trixie-python3.13")
    done = start(python, shared, ["/out/pillion", "-f", "199", "-o", "/out", "--", python.argv[-1], "/out/known_stacks.py", "1"],
                 uid=4711, capabilities=[*container.CAPABILITIES, *more]).finish()
    assert done.status == 0, done
    verdicts, wrong = judged(pystacks.Known(done.out), profiler.Session(done, shared))
    assert not wrong, wrong[:3]
    assert verdicts["whole"] > 0.75 * sum(verdicts.values()), (verdicts, done)


@pytest.mark.parametrize("name, uid", [*((name, NOBODY) for name in EACH), ("trixie-python3.13", 0)])
def test_from_a_sidecar_that_shares_the_pid_namespace(name, uid, shared, workdir, pillion):
    """The sidecar's root has nothing of Python; it runs as the same user as the application."""
    python = inside(name)
    image = container.scratch(workdir / "image", pillion)
    app = start(python, shared, [python.argv[-1], "/out/shares.py", "60"], uid=uid)
    try:
        process.until(lambda: process.cpu_seconds(app.pid()) > 0.2, 10)
        done = container.Container(image, ["/pillion", "-p", "1", "-d", "2", "-o", "/out"], uid=uid, pid_of=app.pid(),
                                   mounts=[(shared, "/out", "rw")]).finish()
    finally:
        app.remove()
    assert done.status == 0, done
    session = profiler.Session(done, shared)
    stacks = pystacks.of_col(session)
    total = sum(stack.count for stack in stacks)
    named = sum(stack.count for stack in stacks if [f.name for f in stack.python][:2] == ["<module>", "main"])
    assert named > 0.9 * total > 0, (session.frames(), done)
    assert {f.file for stack in stacks for f in stack.python} == {"/out/shares.py"}


@pytest.mark.parametrize("sidecar", ["root", "another user"])
def test_from_a_sidecar_of_another_user(sidecar, shared, workdir, pillion):
    """The application is nobody. Root of a stock container has no SYS_PTRACE but may become nobody for a moment; a third
    user may not, and says why it sees no stacks."""
    python = inside("trixie-python3.13")
    image = container.scratch(workdir / "image", pillion)
    app = start(python, shared, [python.argv[-1], "/out/shares.py", "60"], uid=NOBODY)
    try:
        process.until(lambda: process.cpu_seconds(app.pid()) > 0.2, 10)
        done = container.Container(image, ["/pillion", "-p", "1", "-d", "2", "-o", "/out"], pid_of=app.pid(),
                                   uid=0 if sidecar == "root" else 4711, mounts=[(shared, "/out", "rw")]).finish()
    finally:
        app.remove()
    session = profiler.Session(done, shared)
    assert session.seconds() > 0.3, done
    stacks = pystacks.of_col(session)
    named = sum(stack.count for stack in stacks if [f.name for f in stack.python][:2] == ["<module>", "main"])
    if sidecar == "root":
        assert named > 0.8 * sum(stack.count for stack in stacks), (session.frames(), done)
    else:
        assert named == 0
        assert "uid" in " ".join(done.err.split()), done

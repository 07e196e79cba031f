"""Who may look into whom, between two containers of one task that share a PID namespace: a right that is missing is
named, CPU time is counted all the same."""
import re
import shutil

import pytest

from lab import container, process, profiler, pystacks, pythons, tiers

pytestmark = [pytest.mark.root, pytest.mark.measures]
NOBODY = profiler.NOBODY
STOCK = container.CAPABILITIES


@pytest.fixture
def image(workdir, pillion, program):
    """A scratch image: pillion and one static program; and a folder that becomes /out."""
    if tiers.tool_missing("runc"):
        pytest.fail("runc is missing; run make setup")
    (workdir / "out").mkdir()
    (workdir / "out").chmod(0o777)
    return container.scratch(workdir / "image", pillion, program("act", "-static"))


@pytest.fixture
def python(image, repository):
    """A Python application to be started in a container of its own; its root is another Debian's."""
    try:
        found = pythons.get("trixie-python3.13")
    except pythons.Missing as reason:
        pytest.skip(str(reason))
    shutil.copy2(repository / "tests" / "live" / "programs" / "python" / "shares.py", image.parent / "out")

    def start(**options):
        return container.Container(found.inside, [found.argv[-1], "/out/shares.py", "600"],
                                   mounts=[(image.parent / "out", "/out", "rw")], environment=["LC_ALL=C.UTF-8"], **options)
    return start


def looked_into(image, app, **options):
    """A profiler in a container beside the application's: (session, what it said, the CPU time it can have seen)."""
    try:
        process.until(lambda: process.cpu_seconds(app.pid()) > 0.3, 20, "it works")
        before = process.cpu_seconds(app.pid())
        done = container.Container(image, ["/pillion", "-p", "1", "-d", "2", "-o", "/out"], pid_of=app.pid(),
                                   mounts=[(image.parent / "out", "/out", "rw")], **options).finish(60)
        most = process.cpu_seconds(app.pid()) - before
    finally:
        app.remove()
    session = profiler.Session(done, image.parent / "out")
    # The profiler starts and ends in between.
    assert 0.3 * most < session.seconds() < most + 0.03, (session.seconds(), most, done)
    return session, " ".join(done.err.split())


def of_python(session):
    """The share of all samples that has Python's own names."""
    stacks = pystacks.of_col(session)
    return sum(stack.count for stack in stacks if stack.python) / max(sum(stack.count for stack in stacks), 1)


@pytest.mark.net
@pytest.mark.parametrize("profile", ["containers-common", "off"])
def test_one_capability_more_in_the_application_is_named(image, python, profile):
    """Both are root with the stock fourteen; the application may configure the network as well."""
    app = python(capabilities=[*STOCK, "CAP_NET_ADMIN"])
    session, said = looked_into(image, app, profile=profile)
    assert re.search(r"capabilities that (pillion lacks|this process lacks) \((CAP_)?NET_ADMIN\)", said), said
    assert "add SYS_PTRACE" in said
    assert of_python(session) == 0
    assert session.share("[native, no perf]") + session.share("[kernel, hidden]") > 0.99, session.frames()


@pytest.mark.net
def test_with_sys_ptrace_one_capability_more_does_not_matter(image, python):
    app = python(capabilities=[*STOCK, "CAP_NET_ADMIN"])
    session, said = looked_into(image, app, capabilities=[*STOCK, "CAP_SYS_PTRACE"])
    assert of_python(session) > 0.8, (said, session.frames())


@pytest.mark.net
def test_another_users_application_is_read_with_sys_ptrace(image, python):
    session, said = looked_into(image, python(uid=NOBODY), capabilities=[*STOCK, "CAP_SYS_PTRACE"])
    assert of_python(session) > 0.8, (said, session.frames())


@pytest.mark.net
def test_another_users_application_is_read_without_it_or_the_reason_is_said(image, python):
    session, said = looked_into(image, python(uid=NOBODY))
    if of_python(session) < 0.8:
        assert of_python(session) == 0, session.frames()
        assert f"it runs as another user (uid {NOBODY}); run as its user or add SYS_PTRACE" in said, said


@pytest.mark.net
@pytest.mark.parametrize("added, said", [
    ([], rf"it runs as another user \(uid {NOBODY}\); run as its user or add SYS_PTRACE[^,]"),
    (["CAP_SYS_PTRACE"], r"add SYS_PTRACE, which was added but takes effect for root only: run pillion as root"),
], ids=["stock", "added in vain"])
def test_a_third_user_is_told_what_is_missing(image, python, added, said):
    """Also when the capability was added: to a user who is not root engines give none."""
    session, told = looked_into(image, python(uid=NOBODY), uid=4711, capabilities=[*STOCK, *added])
    assert of_python(session) == 0
    assert re.search(said, told), told
    assert re.search(said, session.col.header["pillion"]["reason"] + "."), session.col.header["pillion"]["reason"]


def test_perfmon_under_a_profile_that_does_not_know_it_is_told_truly(image):
    """podman's profile asks for SYS_ADMIN: to add CAP_PERFMON would be no advice where it is there already."""
    def run(*more):
        done = container.Container(image, ["/pillion", "-o", "/out", "--", "/act", "spin", "0.4"],
                                   mounts=[(image.parent / "out", "/out", "rw")], capabilities=[*STOCK, *more]).finish()
        assert done.status == 0, done
        return " ".join(done.err.split()), profiler.Session(done, image.parent / "out")
    said, _ = run()
    assert "perf events refused (EPERM: seccomp filter)" in said and "or add CAP_PERFMON" in said, said
    said, session = run("CAP_PERFMON")
    assert "perf events refused (EPERM: seccomp filter)" in said, said
    assert "CAP_PERFMON is present, but this profile does not allow the call" in said, said
    assert "or add CAP_SYS_ADMIN" in said and "or add CAP_PERFMON" not in said, said
    assert profiler.within(session.seconds(), 2 * 0.4, 0.1, 0.05), session.seconds()

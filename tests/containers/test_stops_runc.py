"""Brief stops in containers as an engine makes them, whose seccomp profile forbids perf events."""
import re
import time

import pytest

from lab import container, process, profiler, tiers

pytestmark = [pytest.mark.root, pytest.mark.measures]

STOPS = ["--brief-stops", "-f", "397", "--max-cpu", "20", "-o", "/out"]
FUNCTIONS = ("sixty", "thirty", "ten")


@pytest.fixture
def image(workdir, pillion, program):
    """A scratch image: pillion, a static program that tells its own shares, nothing else; and a folder that becomes /out."""
    if tiers.tool_missing("runc"):
        pytest.fail("runc is missing; run make setup")
    (workdir / "out").mkdir()
    (workdir / "out").chmod(0o777)
    return container.scratch(workdir / "image", pillion, program("shares", "-static", "-fomit-frame-pointer"))


def start(image, command, **options):
    return container.Container(image, ["/pillion", *command], mounts=[(image.parent / "out", "/out", "rw")], **options)


def right(done, image, told):
    """Shares and totals, and that they are by stops."""
    session = profiler.Session(done, image.parent / "out")
    told = {name: float(share) for name, share in re.findall(r"(\w+) ([\d.]+)", told)}
    whole = sum(session.share(function) for function in FUNCTIONS)
    stops = re.search(r"stops=(\d\d+)/", done.err)
    assert whole > 0.94 and stops, (session.frames(), done)
    for function in FUNCTIONS:
        off = .01 + profiler.by_chance(told[function], int(stops[1]))
        assert abs(session.share(function) / whole - told[function]) < off, (told, off, done)
    complete = float(re.search(r"stacks=([\d.]+)%", done.err)[1])
    assert complete >= 99, done
    return session.seconds(397)


@pytest.mark.parametrize("profile", ["docker", "containers-common"])
@pytest.mark.parametrize("uid", [0, 65534])
def test_before_a_command_without_a_capability(image, profile, uid):
    """Who is started by pillion may be stopped by it, whatever Yama says: it names pillion itself."""
    done = start(image, [*STOPS, "--", "/shares", "3"], profile=profile, uid=uid, capabilities=[] if uid else None).finish()
    assert done.status == 0, done
    seconds = right(done, image, done.out)
    assert profiler.within(seconds, float(done.out.split()[-1]), 0.03, 0.1), (seconds, done)


@pytest.mark.parametrize("uid, capabilities", [(0, container.CAPABILITIES + ["CAP_SYS_PTRACE"]), (0, None), (65534, [])],
                         ids=["SYS_PTRACE", "root without", "the same user"])
def test_from_a_sidecar_that_shares_the_pid_namespace(image, uid, capabilities):
    app = container.Container(image, ["/shares", "30", "0.01"], uid=uid)
    try:
        pid = app.pid()
        before, begin = process.cpu_seconds(pid), time.monotonic()
        done = start(image, [*STOPS, "-p", "1", "-d", "4"], pid_of=pid, uid=uid, capabilities=capabilities).finish()
        used, elapsed = process.cpu_seconds(pid) - before, time.monotonic() - begin
        assert done.status == 0, done
        seconds = right(done, image, "sixty 0.6 thirty 0.3 ten 0.1")
        # the container starts and ends meanwhile
        assert 0.9 * used * min(4 / elapsed, 1) - 0.3 < seconds <= used + 0.05, (seconds, used, elapsed, done)
    finally:
        app.remove()


def test_a_filter_that_forbids_ptrace_is_named(image, program, refuse):
    """Also one that kills for it: nobody is killed."""
    for answer, word in (("EPERM", "refuses ptrace"), ("KILL", "kills for ptrace")):
        done = process.run([refuse, answer, "ptrace,perf_event_open", "--", image / "pillion", "--brief-stops", "--launch", "init", "-o",
                            image.parent / "out", "--", image / "shares", "1"], timeout=30)
        assert done.status == 0 and word in " ".join(done.err.split()), done

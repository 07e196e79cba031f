"""In containers as an engine makes them: the stock seccomp profile and rights, a read-only root."""
import re
import signal
import time

import pytest

from lab import container, process, profiler, tiers

pytestmark = [pytest.mark.root, pytest.mark.measures]


@pytest.fixture
def image(workdir, pillion, program):
    """A scratch image: pillion, one static program, nothing else; and a folder that becomes /out."""
    if tiers.tool_missing("runc"):
        pytest.fail("runc is missing; run make setup")
    (workdir / "out").mkdir()
    (workdir / "out").chmod(0o777)
    return container.scratch(workdir / "image", pillion, program("act", "-static"))


def start(image, command, **options):
    return container.Container(image, ["/pillion", *command], mounts=[(image.parent / "out", "/out", "rw")], **options)


def test_a_scratch_image_with_everything_stock(image):
    """perf is refused there: totals come from /proc, the sentence names seccomp, the status is the command's."""
    done = start(image, ["-o", "/out", "--", "/act", "threads", "2", "0.7"]).finish()
    assert done.status == 0, done
    session = profiler.Session(done, image.parent / "out")
    assert profiler.within(session.seconds(), 1.4, 0.1), session.seconds()
    assert session.share("[native, no perf]") + session.share("[kernel, hidden]") > 0.99
    assert re.search(r"EPERM.*seccomp|seccomp.*EPERM", " ".join(done.err.split())), done


def test_where_perf_is_allowed_a_scratch_image_is_named(image):
    done = start(image, ["-o", "/out", "--", "/act", "spin", "0.8", "5"],
                 capabilities=container.CAPABILITIES + ["CAP_SYS_ADMIN"]).finish()
    assert done.status == 5, done
    assert profiler.Session(done, image.parent / "out").share("spin") > 0.7


@pytest.mark.parametrize("profile", ["docker", "containers-common"])
def test_term_reaches_the_command_and_the_last_window_is_on_disk(image, profile):
    running = start(image, ["-d", "60", "-o", "/out", "--", "/act", "signals"], profile=profile)
    try:
        process.until(lambda: "ready" in running.process.out, 10, lambda: running.process.err)
        running.signal(signal.SIGUSR1)
        process.until(lambda: "USR1" in running.process.out, 5)
        begin = time.monotonic()
        running.signal(signal.SIGTERM)
        done = running.process.finish(15)
    finally:
        running.remove()
    assert done.status == 7, done
    assert time.monotonic() - begin < 6, "longer than half an engine's grace"
    assert (image.parent / "out" / "last_profile.col").exists()


def test_orphans_are_reaped_by_pid_1(image):
    done = start(image, ["-q", "-o", "/out", "--", "/act", "orphans", "4"]).finish()
    assert (done.status, done.out) == (0, "zombies 0\n"), done


def test_another_uid_with_a_read_only_root_and_nowhere_to_write(image):
    done = start(image, ["-o", "/tmp/p", "--", "/act", "spin", "0.3", "6"], uid=65534).finish()
    assert done.status == 6, done
    done = start(image, ["--", "/act", "spin", "0.3", "6"], uid=65534).finish()
    assert done.status == 6
    said = [line for line in profiler.lines(done.err) if "cannot write" in line]
    assert len(said) == 1 and "EROFS" in said[0], done


def test_a_sidecar_that_shares_the_pid_namespace_attaches(image, program):
    """Two containers of one task: the profiler sees the application as process 1."""
    app = container.Container(image, ["/act", "spin", "6"])
    try:
        done = start(image, ["-p", "1", "-d", "2", "-o", "/out"], pid_of=app.pid(), profile="off").finish()
        assert done.status == 0, done
        session = profiler.Session(done, image.parent / "out")
        # The C library's clock_gettime has no frame pointers: a sample in it lacks spin().
        assert session.share("spin") > 0.7, session.frames()
        assert 0.3 < session.seconds() < 2.3
    finally:
        app.remove()


def test_a_sidecar_that_sees_nobody_says_so_once_and_how_to_share(image):
    running = start(image, ["-a", "-c", "-d", "1", "-o", "/out"])
    try:
        process.until(lambda: len(re.findall(r"procs=0", running.process.err)) >= 2, 20, lambda: running.process.err)
        running.signal(signal.SIGTERM)
        done = running.process.finish(15)
    finally:
        running.remove()
    assert done.status == 0, done
    assert done.err.count("no other process is visible") == 1, done
    for remedy in ('"pidMode": "task"', "shareProcessNamespace: true", "--pid container:NAME", "through pillion"):
        assert remedy in done.err, done


def test_installed_into_a_shared_volume(image):
    done = start(image, ["install", "/out"]).finish()
    assert done.status == 0, done
    assert (image.parent / "out" / "pillion").read_bytes() == (image / "pillion").read_bytes()

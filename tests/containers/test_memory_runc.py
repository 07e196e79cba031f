"""Where a container's memory is short, the profiler makes do with what is left."""
import os
import shutil
import signal

import pytest

from lab import container, process, profiler, root as roots, tiers

pytestmark = [pytest.mark.root, pytest.mark.measures]

LIMIT = 48


@pytest.fixture(scope="module")
def image(tmp_path_factory, pillion, program):
    if tiers.tool_missing("runc"):
        pytest.fail("runc is missing; run make setup")
    folder = roots.busybox(tmp_path_factory.mktemp("memory") / "image")
    shutil.copy2(pillion, folder / "pillion")
    shutil.copy2(program("act", "-static"), folder / "act")
    for place in (folder, folder.parent, folder.parent.parent):
        place.chmod(0o755)
    return folder


def test_a_profiler_that_was_killed_for_want_of_memory_does_not_come_back(image):
    """It would be killed again, or the command."""
    begun = container.Container(image, ["/pillion", "--launch", "init", "-o", "/tmp", "--", "/act", "hold", "43", "3", "5"],
                                memory=LIMIT << 20, cgroups=True)
    own = begun.pid()
    command = process.until(lambda: [pid for pid in process.descendants_of(own) if process.cpu_seconds(pid) > 0.5], 20, "it works")
    killed = [pid for pid in process.descendants_of(own) if pid not in command]
    assert len(killed) == 1, (killed, command)
    os.kill(killed[0], signal.SIGKILL)
    done = begun.finish()
    assert done.status == 5, done
    assert f"the profiler was killed, and of the {LIMIT} MB that this container may use" in done.err, done
    assert "the next begins" not in done.err, done


def test_what_is_left_of_the_containers_memory_bounds_the_profiler(image, workdir):
    """It is told which gate is near, and the window is whole."""
    out = workdir / "out"
    out.mkdir()
    command = ["/pillion", "--launch", "init", "-o", "/out", "--", "/act", "hold", "46", "4", "5"]
    done = container.Container(image, command, memory=LIMIT << 20, mounts=[(out, "/out", "rw")], cgroups=True).finish()
    session = profiler.Session(done, out)
    assert done.status == 5 and profiler.within(session.seconds(), 4, 0.1), done
    assert f"of the {LIMIT} MB that this container may use" in done.err, done

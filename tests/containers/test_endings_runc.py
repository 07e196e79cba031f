"""A container ends with its first process, and all in it: the last window of a short job is on disk before."""
import shutil

import pytest

from lab import container, process, profiler, root as roots, tiers

pytestmark = [pytest.mark.root, pytest.mark.measures]

RUNTIMES = ("runc", "crun")
JOB = ["/pillion", "-o", "/out", "--", "/act", "spin", "1", "5"]
# ends when what it leaves behind has used a second of CPU time, however many others want the processor
LEAVES = ["/pillion", "-o", "/out", "--", "/bin/sh", "-c",
          "/act spin 9 & until read -r all < /proc/$!/stat; set -- $! $all; [ ${15} -ge 100 ]; do sleep 0.05; done; exit 4"]


@pytest.fixture(scope="module")
def image(tmp_path_factory, pillion, program):
    """A shell, an init and the program of small deeds; `job` is a script that runs its arguments, and more after them."""
    for tool in (*RUNTIMES, "tini-static"):
        if tiers.tool_missing(tool):
            pytest.fail(f"{tool} is missing; run make setup")
    folder = roots.busybox(tmp_path_factory.mktemp("endings") / "image")
    for what, name in ((pillion, "pillion"), (program("act", "-static"), "act"), (shutil.which("tini-static"), "tini")):
        shutil.copy2(what, folder / name)
    (folder / "job").write_text('#!/bin/sh\n"$@"\nexit $?\n')
    (folder / "job").chmod(0o755)
    for place in (folder, folder.parent, folder.parent.parent):
        place.chmod(0o755)
    return folder


@pytest.fixture(params=RUNTIMES)
def run(request, image, workdir):
    """Runs a command in a container to its end: its session."""
    out = workdir / "out"
    out.mkdir()

    def run(*command, **options):
        done = container.Container(image, command, runtime=request.param, mounts=[(out, "/out", "rw")], **options).finish()
        return profiler.Session(done, out)
    return run


def whole(session):
    assert session.done.status == 5, session.done
    assert profiler.within(session.seconds(), 1.0, 0.1), session.done


@pytest.mark.parametrize("above", [[], ["/tini", "--"], ["/job"]], ids=["first", "tini", "script"])
def test_the_window_of_a_short_job_is_there_when_the_container_is_gone(run, above):
    whole(run(*above, *JOB))


def test_the_first_process_of_a_container_in_anothers_pid_namespace(run, image):
    other = container.Container(image, ["/act", "wait", "60"])
    try:
        whole(run(*JOB, pid_of=other.pid()))
    finally:
        other.remove()


def test_a_script_under_a_script_says_what_waits_for_the_last_window(run):
    session = run("/job", "/job", *JOB)
    assert session.done.status == 5
    assert "--launch init waits for it" in session.done.err.split("\n")[0], session.done
    for file in session.folder.iterdir():  # its last window may be there all the same
        file.unlink()
    whole(run("/job", "/job", JOB[0], "--launch", "init", *JOB[1:]))


@pytest.mark.parametrize("above", [[], ["/tini", "--"], ["/job"]], ids=["first", "tini", "script"])
def test_what_a_command_leaves_behind_does_not_keep_its_container(run, above):
    """It ends with the container; what it used until then is on disk."""
    session = run(*above, *LEAVES)
    assert session.done.status == 4, session.done
    assert 0.9 < session.seconds() < 1.5, session.done # it works on until the shell has seen it, and ended
    assert ("left behind" in session.done.err) == (above != []), session.done
    process.settle(10)

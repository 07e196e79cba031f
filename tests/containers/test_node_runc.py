"""Node.js in containers as an engine makes them: no perf events there, so that its inspector may be asked for, also from beside it."""
import re
import shutil

import pytest

from lab import container, nodes, process, profiler, tiers, versions

pytestmark = [pytest.mark.root, pytest.mark.net, pytest.mark.measures]
INSPECTOR = ["--nodejs-mode", "inspector"]


@pytest.fixture
def application(workdir, pillion):
    """(node's root, the folder that becomes /out, what runs a program there)."""
    if tiers.tool_missing("runc"):
        pytest.fail("runc is missing; run make setup")
    try:
        node = nodes.get("12")
    except versions.Missing as reason:
        pytest.skip(f"Node.js 12: {reason}")
    folder = workdir / "out"
    folder.mkdir()
    shutil.copy(nodes.PROGRAMS / "endings.js", folder)
    profiler.copy(pillion, folder)
    folder.chmod(0o777)
    return node.inside, folder, lambda *words: [node.argv[-1], "/out/endings.js", *words]


def start(root, folder, command, **options):
    return container.Container(root, command, mounts=[(folder, "/out", "rw")], profile="docker", **options)


def check(session):
    """Its functions have most of it; on 12 the collector of their garbage has a quarter."""
    work = sum(stack.count for stack in session.col.stacks if any(" /out/endings.js:" in frame for frame in stack.frames))
    assert work > .5 * session.col.total, (session.frames(), session.done)


@pytest.mark.parametrize("uid", [0, profiler.NOBODY], ids=["root", "nobody"])
def test_as_a_command_prefix_with_everything_stock(uid, application):
    root, folder, program = application
    done = start(root, folder, ["/out/pillion", *INSPECTOR, "-o", "/out", "--", *program("exit", "5000")], uid=uid).finish()
    assert done.status == 3 and re.search(r"javascript=(9\d|100)%", done.err), done
    check(profiler.Session(done, folder))


@pytest.mark.parametrize("uid,its", [(profiler.NOBODY, profiler.NOBODY), (0, profiler.NOBODY), (0, 0)], ids=["same user", "root", "both root"])
def test_from_a_sidecar_that_shares_the_namespaces(uid, its, application, workdir, pillion):
    root, folder, program = application
    image = container.scratch(workdir / "image", pillion)
    app = start(root, folder, program("exit", "9000"), uid=its)
    try:
        process.until(lambda: process.cpu_seconds(app.pid()) > 0.3, 20)
        side = start(image, folder, ["/pillion", *INSPECTOR, "-p", "1", "-d", "5", "-o", "/out"], uid=uid, pid_of=app.pid(),
                     network_of=app.pid()).finish()
        told = app.finish()
    finally:
        app.remove()
    assert side.status == 0 and told.status == 3, (side, told)
    check(profiler.Session(side, folder))


def test_in_another_network_the_remedy_is_told(application, workdir, pillion):
    """It gets no signal then: what it opened could not be closed from here."""
    root, folder, program = application
    image = container.scratch(workdir / "image", pillion)
    app = start(root, folder, program("exit", "7000"))
    try:
        process.until(lambda: process.cpu_seconds(app.pid()) > 0.3, 20)
        side = start(image, folder, ["/pillion", *INSPECTOR, "-p", "1", "-d", "4", "-o", "/out"], pid_of=app.pid()).finish()
        told = app.finish()
    finally:
        app.remove()
    assert side.status == 1 and "it is in another network namespace; run pillion in its container or pod" in side.err, side
    assert told.status == 3 and "Debugger" not in told.err, told

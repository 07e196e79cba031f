"""Java in containers as an engine makes them: no perf events there, so that the JVM's own recorder is asked, also from beside it."""
import shutil
from collections import Counter

import pytest

from lab import container, framestacks, javas, process, profiler, tiers, versions

pytestmark = [pytest.mark.root, pytest.mark.net, pytest.mark.measures]
READER = framestacks.Reader("j", "[java]")


@pytest.fixture
def application(workdir, pillion, repository, tmp_path_factory):
    """(the JDK's root, the folder that becomes /out, what runs a program there)."""
    if tiers.tool_missing("runc"):
        pytest.fail("runc is missing; run make setup")
    try:
        java = javas.get("25")
    except versions.Missing as reason:
        pytest.skip(f"JDK 25: {reason}")
    folder = workdir / "out"
    shutil.copytree(javas.compiled(repository, tmp_path_factory), folder)
    profiler.copy(pillion, folder)
    folder.chmod(0o777)
    (workdir / "tmp").mkdir()
    (workdir / "tmp").chmod(0o1777)
    return java.inside, folder, lambda *words: [java.argv[-1], "-cp", "/out", *javas.EXACT, *words]


def start(root, folder, command, **options):
    return container.Container(root, command, mounts=[(folder, "/out", "rw"), (folder.parent / "tmp", "/tmp", "rw")], **options)


def check_shares(session, told):
    true = {function: float(share) for function, share in zip(*[iter(told.split())] * 2)}
    counts = Counter()
    for stack in READER.of_col(session):
        counts.update({function: stack.count for function in true if f"Shares.{function}" in stack.names})
    print(counts, true)
    assert sum(counts.values()) > 100, session.done
    for function, share in true.items():
        assert abs(counts[function] / sum(counts.values()) - share) < .1, (counts, true)


@pytest.mark.parametrize("uid", [0, profiler.NOBODY], ids=["root", "nobody"])
def test_as_a_command_prefix_with_everything_stock(uid, application):
    root, folder, program = application
    done = start(root, folder, ["/out/pillion", "-o", "/out", "--", *program("Shares", "5")], profile="docker", uid=uid).finish()
    assert done.status == 0, done
    check_shares(profiler.Session(done, folder), done.out)


@pytest.mark.parametrize("uid,its", [(profiler.NOBODY, profiler.NOBODY), (0, profiler.NOBODY), (0, 0)], ids=["same user", "root", "both root"])
def test_from_a_sidecar_that_shares_the_pid_namespace(uid, its, application, workdir, pillion):
    root, folder, program = application
    image = container.scratch(workdir / "image", pillion)
    app = start(root, folder, program("Shares", "8"), uid=its, profile="docker")
    try:
        process.until(lambda: process.cpu_seconds(app.pid()) > 0.3, 20)
        side = container.Container(image, ["/pillion", "-p", "1", "-d", "5", "-o", "/out"], uid=uid, pid_of=app.pid(), profile="docker",
                                   mounts=[(folder, "/out", "rw")]).finish()
        told = app.finish()
    finally:
        app.remove()
    assert side.status == 0 and told.status == 0, (side, told)
    check_shares(profiler.Session(side, folder), told.out)

"""Go programs in containers as an engine makes them, of scratch images with the stock profile: no perf events there, and perhaps no address.
Their heap, locks and goroutines are all there, from within and from beside."""
import pytest

from lab import container, golang, pprof, process, profiler, tiers

pytestmark = [pytest.mark.root, pytest.mark.measures]
SOURCES = {"served": ("go_profiles.go", "go_profiles_served.go"), "alone": ("go_profiles.go",)}
OPTIONS = {"served": ["-l", "127.0.0.1:6060"], "alone": []}


@pytest.fixture(params=SOURCES)
def application(request, workdir, pillion):
    """(the image, the folder that becomes /out, the command)."""
    if tiers.tool_missing("runc"):
        pytest.fail("runc is missing; run make setup")
    program = golang.program("local", *SOURCES[request.param], flags=("-tags", "netgo served" if request.param == "served" else "netgo"))
    folder = workdir / "out"
    folder.mkdir()
    profiler.copy(pillion, folder)
    folder.chmod(0o777)
    image = container.scratch(workdir / "app", pillion, program)
    return image, folder, ["/program", *OPTIONS[request.param]]


def start(root, folder, command, **options):
    return container.Container(root, command, mounts=[(folder, "/out", "rw")], profile="docker", **options)


def check(folder, done):
    def total(kind, function, column):
        (path, *_) = sorted(folder.glob(f"profile_*.{kind}.pprof")) or [None]
        assert path, (kind, sorted(p.name for p in folder.iterdir()), done)
        profile = pprof.read(path)
        at = profile.column(column)
        return sum(sample.values[at] for sample in profile.samples if function in sample.frames)
    assert total("heap", "main.keeps", "inuse_objects") == 100
    assert total("goroutine", "main.leaks", "goroutine") == 20
    assert total("goroutinewait", "main.leaks", "goroutine") == 20


@pytest.mark.parametrize("uid", [0, profiler.NOBODY], ids=["root", "nobody"])
def test_as_a_command_prefix_with_everything_stock(uid, application):
    image, folder, program = application
    app = start(image, folder, ["/pillion", "-o", "/out", "-d", "4", "--", *program], uid=uid)
    try:
        process.until(lambda: list(folder.glob("profile_*.goroutinewait.pprof")), 20, lambda: app.started.err if hasattr(app, "started") else "", .1)
        app.signal(15)
        done = app.finish()
    finally:
        app.remove()
    check(folder, done)


@pytest.mark.parametrize("uid,its", [(profiler.NOBODY, profiler.NOBODY), (0, 0)], ids=["same user", "both root"])
def test_from_a_sidecar_that_shares_the_namespaces(uid, its, application, workdir, pillion):
    image, folder, program = application
    beside = container.scratch(workdir / "image", pillion)
    app = start(image, folder, program, uid=its)
    try:
        app.pid()
        side = start(beside, folder, ["/pillion", "-p", "1", "-d", "5", "-o", "/out"], uid=uid, pid_of=app.pid(), network_of=app.pid()).finish()
        app.signal(15)
        app.finish()
    finally:
        app.remove()
    assert side.status in (0, 1), side
    check(folder, side)

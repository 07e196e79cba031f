"""How busy a container is that may use less than its machine: by its own quota and limit, as the kernel's groups tell."""
import json

import pytest

from lab import container, pprof, process, tiers

pytestmark = [pytest.mark.root, pytest.mark.measures]


@pytest.fixture
def image(workdir, pillion, program):
    if tiers.tool_missing("runc"):
        pytest.fail("runc is missing; run make setup")
    (workdir / "out").mkdir()
    (workdir / "out").chmod(0o777)
    return container.scratch(workdir / "image", pillion, program("act", "-static"))


def metrics_of(image, *deed, quota):
    """What the window's header says, and how much of the quota was used by what it counted itself, per cent."""
    done = container.Container(image, ["/pillion", "-o", "/out", "--format", "col,pprof", "--", "/act", *deed],
                               mounts=[(image.parent / "out", "/out", "rw")], quota=quota, memory=64 << 20,
                               cgroups=True).finish(60)
    assert done.status == 0, done
    header = json.loads((image.parent / "out" / "last_profile.col").read_text().split("\n")[0][2:])
    used = header["pillion"]["process_cpu_ns"] + header["pillion"]["own"]["cpu_ns"]
    return header["metrics"], 100 * used / (pprof.last(image.parent / "out").duration_nanos * quota)


def test_a_quota_that_is_used_up_is_all_there_is(image):
    metrics, _ = metrics_of(image, "spin", "0.4", quota=0.2)
    assert 70 < metrics["cpu_avg"] <= 100, metrics
    assert 1 < metrics["mem_avg"] < 60, metrics


def test_a_container_is_told_of_alone_however_busy_the_machine_is(image, program):
    busy = [process.start([program("act"), "spin", "60"]) for _ in range(2)]
    try:
        metrics, used = metrics_of(image, "sleepy", "2", quota=0.8)
    finally:
        for one in busy:
            one.end()
    assert abs(metrics["cpu_avg"] - used) < 0.3 * used + 3, (metrics, used)
    assert metrics["cpu_avg"] < 75, metrics

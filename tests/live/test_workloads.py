"""The lab's workloads: each is at work when it says so, and is gone afterwards."""
import os
import time

import pytest

from lab import process, workloads

pytestmark = pytest.mark.measures


def cpu_seconds(work):
    """The CPU time of all its processes, ended ones that were waited for included."""
    total = 0
    for pid in work.pids:
        fields = process.stat(pid)
        total += sum(int(field) for field in fields[11:15]) / 100 if fields else 0
    return total


@pytest.mark.parametrize("name", [workload.name for workload in workloads.ALL])
def test_a_workload_works_and_ends(workdir, name):
    workload = workloads.named(name)
    reason = workload.needs()
    if reason:
        pytest.skip(reason)
    with workload.running(workdir / "work") as work:
        before, begin = cpu_seconds(work), time.monotonic()
        process.until(lambda: cpu_seconds(work) - before > 0.2, 20, "it uses CPU time")
        print(f"{name}: {cpu_seconds(work) - before:.2f} s CPU in {time.monotonic() - begin:.2f} s, {len(work.pids)} processes")
        pids = work.pids
    # What is left would have come to us; a pid may long be another program's.
    assert not set(pids) & set(process.descendants_of(os.getpid()))

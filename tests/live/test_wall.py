"""--wall: where threads of an interpreter wait, beside where they use CPU time."""
import sys
from collections import Counter

import pytest

from lab import profiler

pytestmark = pytest.mark.measures

SECONDS = 3
WAITS = {"holds_lock": "[waits: sleep]", "wants_lock": "[waits: lock]", "sleeps": "[waits: sleep]",
         "receives": "[waits: receive]", "<module>": "[waits: sleep]"}


@pytest.mark.parametrize("options", [[], ["--perf-mode", "disabled"]], ids=["perf", "perf-less"])
def test_waiting_threads_are_where_they_wait(pillion, workdir, repository, options):
    program = repository / "tests/live/programs/python/waiting.py"
    session = profiler.profile(pillion, workdir / "out", [sys.executable, program, SECONDS], "--wall", *options)
    assert session.done.status == 0, session.done
    profile = session.pprof
    assert [name for name, unit in profile.sample_types] == ["samples", "cpu", "off_cpu", "wall"]
    off_cpu = Counter()
    for sample in profile.samples:
        count, cpu, off, wall = sample.values
        assert wall == cpu + off and 0 in (cpu, off)
        if off:
            own = [name for name in sample.frames if name in WAITS]
            off_cpu[(own or ["another"])[0], sample.frames[-1]] += off / 1e9
    print(off_cpu)
    for function, reason in WAITS.items():
        # It is found when the interpreter has started, and seen until the last look.
        assert SECONDS - 0.8 < off_cpu[function, reason] < SECONDS + 0.5, off_cpu
    # The other files are of CPU time alone.
    assert profiler.within(session.seconds(), session.done.cpu_seconds, 0.03, 0.1)
    assert not [frame for frame in session.frames() if "waits" in frame]


def test_without_it_there_is_cpu_time_only(pillion, workdir, repository):
    program = repository / "tests/live/programs/python/waiting.py"
    session = profiler.profile(pillion, workdir / "out", [sys.executable, program, 1])
    assert [name for name, unit in session.pprof.sample_types] == ["samples", "cpu"]

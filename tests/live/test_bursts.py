"""Programs whose threads end before a sample is due: without bursts nearly all of their CPU time would be "[lost]"."""
import pytest

from lab import profiler

SECONDS = 8
# Slices are drawn by lot, some twenty of them with five to ten threads each.
NEAR = 0.12


def of(pillion, workdir, command, *options):
    session = profiler.profile(pillion, workdir, [*map(str, command), str(SECONDS)], *options)
    words = session.done.out.split()
    return session, float(words[1]), float(words[3])


def below(session, function):
    """Seconds of the stacks with this function."""
    return sum(stack.count for window in session.windows for stack in window.stacks
               if any(frame.split(" ")[0] == function for frame in stack.frames)) / 99


@pytest.mark.parametrize("name", ["C", "Python"])
def test_a_thread_for_each_request(name, pillion, program, repository, workdir):
    python = ["/usr/bin/python3", repository / "tests/live/programs/python/requests_in_threads.py"]
    session, share, seconds = of(pillion, workdir, [program("requests")] if name == "C" else python)
    seventy, thirty = below(session, "seventy"), below(session, "thirty")
    found = f"{seventy:.2f} s of {share:.3f}, {thirty:.2f} s of {1 - share:.3f}, in all {session.seconds():.2f} of {seconds} s"
    print(name, found)
    assert session.done.status == 0, session.done
    assert seventy + thirty > 0.7 * seconds, (found, session.frames(), session.done)
    assert abs(seventy / (seventy + thirty) - share) < NEAR, found
    assert profiler.within(session.seconds(), seconds, 0.03, 0.2), found
    assert "starts threads that end before they are sampled" in " ".join(session.done.err.split()), session.done


def test_threads_that_live_longer_are_sampled_as_ever(pillion, program, workdir):
    session = profiler.profile(pillion, workdir, [program("act"), "threads", "2", "2.5"])
    assert "starts threads" not in session.done.err, session.done

"""A few of what lab/faults.py and lab/launches.py do for a night: make faults, make launches."""
import shutil

import pytest

from lab import process

pytestmark = [pytest.mark.root, pytest.mark.measures]

SETUPS = ("plain", "closed 012", "a subreaper", "hidepid=2, nobody", "a setuid command", "arguments of 1.9 MB", "pids.max 3",
          "a pending signal", "a command with capabilities", "descriptors 10 to 200")


def test_forty_failed_system_calls_change_no_status_and_leave_nothing(repository, pillion):
    if shutil.which("strace") is None:
        pytest.skip("no strace here (make setup installs it)")
    done = process.run(["/usr/bin/python3", repository / "tests/lab/faults.py", "--pillion", pillion, "--count", "40", "exec", "init"],
                       timeout=400)
    assert done.status == 0, done


def test_ten_odd_set_ups_are_as_without(repository, pillion):
    done = process.run(["/usr/bin/python3", repository / "tests/lab/launches.py", "--pillion", pillion, "--count", "20", *SETUPS],
                       timeout=400)
    assert done.status == 0, done


@pytest.mark.parametrize("fault, shapes", [("prlimit64:ENOSYS:1+", ("upload", "spool")), ("mmap:ENOMEM:33+", ("upload", "spool")),
                                           ("mmap:EAGAIN:2", ("exec", "attach")), ("write:ENOMEM:1+", ("exec",))])
def test_what_was_found_by_a_fault_stays_mended(repository, pillion, fault, shapes):
    """Limits that are set in the older way; a window that goes to a file, for there is no memory to send it; formats that
    nobody chose are written without memory at the start, too; a thread that nobody can wake looks by itself whether all is over."""
    if shutil.which("strace") is None:
        pytest.skip("no strace here (make setup installs it)")
    done = process.run(["/usr/bin/python3", repository / "tests/lab/faults.py", "--pillion", pillion, "--only", fault, *shapes],
                       timeout=200)
    assert done.status == 0, done

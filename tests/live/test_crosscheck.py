"""The same samples unwound by perf: where both find the thread's beginning, they find the same way there."""
import pytest

from lab import crosscheck, process, workloads

HZ, SECONDS = "999", 4
LEAST = 150


@pytest.fixture(autouse=True)
def both_are_here():
    reason = crosscheck.missing()
    if reason:
        pytest.skip(reason)


def check(result):
    print(result)
    assert result.total >= LEAST and result.absent == 0, result
    assert result.agreement >= .98, result
    # perf finds its way where we do not
    assert result.only["perf"] <= .01 * result.total, result
    assert result.unexplained <= .01 * result.total, result


def record_launched(record, folder, *command):
    recording = folder / "recording"
    done = process.run([record, recording, "-f", HZ, "--max-cpu", "100", "--launch", "init", "-q", "-o", folder / "out", "--",
                        *command], timeout=180)
    process.settle(15)
    assert recording.exists(), done
    return recording


@pytest.mark.parametrize("name", ["g++", "python3", "redis", "openssl", "deep"])
def test_perf_agrees_about(record, workdir, name):
    workload = workloads.named(name)
    reason = workload.needs()
    if reason:
        pytest.skip(reason)
    recording = workdir / "recording"
    with workload.running(workdir / "work") as work:
        done = process.run([record, recording, "-f", HZ, "--max-cpu", "100", "-d", SECONDS, "-p", ",".join(map(str, work.pids)), "-q",
                            "-o", workdir / "out"], timeout=180)
    assert recording.exists(), done
    check(crosscheck.compare(recording))


def test_perf_agrees_about_exceptions_and_signals(record, program, workdir):
    command = [program("throws", "-fomit-frame-pointer", "-momit-leaf-frame-pointer"), "4"]
    result = crosscheck.compare(record_launched(record, workdir, *command))
    check(result)
    assert result.classes["trampoline"] > 0, result


def test_perf_agrees_about_what_starts(record, workdir):
    """Short processes: forks, execs, the dynamic linker at work."""
    command = ["/bin/sh", "-c", "i=0; while [ $i -lt 400 ]; do /bin/ls -l /usr/bin >/dev/null; i=$((i + 1)); done"]
    check(crosscheck.compare(record_launched(record, workdir, *command)))


def test_the_comparison_sees_a_wrong_frame():
    right = [(0x10, "x", "/a"), (0x20, "", "/a"), (0x30, "", "/a")]
    perf = [(0x10, "f+0x0", "/a"), (0x20, "g+0x4", "/a"), (0x30, "_start+0x21", "/a")]
    assert crosscheck.classify("complete", right, perf) == ("same", 3)
    assert crosscheck.classify("complete", right, [perf[0], perf[2]]) == ("perf leaves a caller out", 1)
    assert crosscheck.classify("complete", [right[0], right[2]], perf) == ("pillion leaves a caller out", 1)
    assert crosscheck.classify("complete", right[:2], perf) == ("pillion stops", 2)
    assert crosscheck.classify("complete", right, perf[:2]) == ("perf stops", 2)
    assert crosscheck.classify("complete", right, [perf[0], (0x21, "g+0x5", "/a"), perf[2]]) == ("other", 1)
    mine, theirs = {(1, n): ("complete", right) for n in range(99)}, {(1, n): perf for n in range(99)}
    theirs[1, 5] = [perf[0], (0x21, "g+0x5", "/a"), perf[2]]
    result = crosscheck.Result(mine, theirs)
    assert result.classes == {"same": 98, "other": 1} and round(result.agreement, 3) == .99 and result.unexplained == 1

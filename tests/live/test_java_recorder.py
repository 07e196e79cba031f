"""Java where samples have no registers: the JVM's own recorder is asked, and each thread's CPU time shared out among its samples. What
closes the way is told and does the JVM no harm: its output and its status are those of a run without us."""
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from lab import col, framestacks, javas, process, profiler

pytestmark = pytest.mark.measures
READER = framestacks.Reader("j", "[java]")
RUNTIME = re.compile(r'"runtime": "OpenJDK 64-Bit Server VM \([1-9][\d.]+[^ ]*\)"')
NO_PERF = ["--perf-mode", "disabled"]


@pytest.fixture(scope="session")
def classes(repository, tmp_path_factory):
    return javas.compiled(repository, tmp_path_factory)


@pytest.fixture
def command(classes):
    """command(name of the JDK, class, its arguments, options of the JVM...)."""
    return lambda name, program, arguments, *options: javas.command(classes, name, program, arguments, *options)


@pytest.fixture
def server(command):
    """server(options of the JVM..., prefix=[]) -> a JVM that works."""
    def start(*options, prefix=()):
        target = process.start([*prefix, *command("host", "Busy", [300], *options)])
        process.until(lambda: is_up(jvm_of(target)), 60, "the JVM works")
        return target
    return start


def jvm_of(target):
    """The JVM, which may be below what was started."""
    return next((pid for pid in [target.pid, *process.descendants_of(target.pid)]
                 if re.match(r"\S*java -cp", process.command_line(pid))), None)


def is_up(pid):
    return pid is not None and int(process.stat(pid)[11]) > 40


def jcmd(pid, *line):
    """What the JVM says to a command of its own tools."""
    inner = re.search(r"NSpid:.*\s(\d+)", Path(f"/proc/{pid}/status").read_text())[1]
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(f"/proc/{pid}/root/tmp/.java_pid{inner}")
        connection.sendall(b"".join(word.encode() + b"\0" for word in ("1", "jcmd", " ".join(line), "", "")))
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


def own_share(session, frame):
    seen = Counter()
    for stack in READER.of_col(session):
        seen[frame in stack.names] += stack.count
    return seen[True] / max(sum(seen.values()), 1)


def attach(pillion, pid, folder, *options, until=None, prefix=()):
    """Profiles it until that is said, or stacks of its work are seen."""
    def is_enough():
        if until:
            return until in running.err
        return any(own_share(window, "Busy.work") > .15 for window in windows_in(folder))
    running = process.start([*prefix, pillion, *NO_PERF, "-p", pid, "-c", "-d", 2, "-o", folder, *options])
    process.until(is_enough, 90, lambda: f"{until or 'stacks'}: {running.err}", .2)
    os.killpg(running.pid, signal.SIGTERM)
    return running.finish(30)


class Window:
    def __init__(self, window):
        self.windows = [window]


def windows_in(folder):
    return [Window(window) for window in col.every(folder)] if folder.exists() else []


def own_seconds(session):
    """Of pillion itself, which are in the CPU time of the whole run."""
    return sum(window.header["pillion"]["own"]["cpu_ns"] for window in session.windows) / 1e9


def ends_unharmed(target):
    """It runs on until it is ended, and has said nothing that it does not say by itself."""
    os.kill(jvm_of(target), signal.SIGTERM)
    done = target.finish(60)
    assert done.status == 143 and not done.out and "thread dump" not in done.err, done


# ---- samples ----

@pytest.mark.parametrize("name", ["host", pytest.param("11", marks=pytest.mark.net), pytest.param("25", marks=pytest.mark.net)])
def test_a_jvm_has_its_cpu_time_and_its_stacks(name, pillion, workdir, command):
    shares = command(name, "Recorded", ["Shares", 8, 3], *javas.EXACT, "-Dtier=shop", "-Dpassword=secret")
    session = profiler.profile(pillion, workdir / "out", shares, *NO_PERF, "--app-id-args-filter", "^-D(shard|tier)=", launch="init", timeout=90)
    told = dict(zip(*[iter(session.done.out.split())] * 2))
    counts = Counter()
    for stack in READER.of_col(session):
        counts.update({function: stack.count for function in told if f"Shares.{function}" in stack.names})
    print(counts, told, session.seconds(), session.done.cpu_seconds)
    assert profiler.within(session.seconds(), session.done.cpu_seconds, .03, .1 + own_seconds(session)), session.done
    assert sum(counts.values()) > .4 * session.col.total, session.done
    for function, share in told.items():
        assert abs(counts[function] / sum(counts.values()) - float(share)) < .05 + profiler.by_chance(float(share), sum(counts.values())), (function, counts, told)
    text = (workdir / "out" / "last_profile.col").read_text()
    assert "worker number 1" in text, "threads have the JVM's names"
    assert ";appid: java: Recorded (-Dtier=shop);" in text and "secret" not in text.partition("\n")[2]
    assert RUNTIME.search(text), text[:3000]
    assert "[no runtime samples]" in session.frames(), "its compilers' threads have no stacks of Java"


@pytest.mark.parametrize("name", ["host", pytest.param("8", marks=pytest.mark.net), pytest.param("25", marks=pytest.mark.net)])
def test_dumps_are_asked_for_again_and_again(name, pillion, workdir, command):
    """Where in a function is left to safepoints; who called it, and each thread's CPU time, are right."""
    session = profiler.profile(pillion, workdir / "out", command(name, "Shares", [6, 3]), *NO_PERF, "--java-mode", "dump", launch="init")
    assert profiler.within(session.seconds(), session.done.cpu_seconds, .03, .1 + own_seconds(session)), session.done
    assert own_share(session, "Shares.work") > .8, (session.done, session.col.stacks)
    text = (workdir / "out" / "last_profile.col").read_text()
    assert ";appid: java: Shares;" in text and RUNTIME.search(text), text[:3000]
    roots = {next(frame for frame in stack.frames if "_[j]" in frame) for stack in session.col.stacks if "Shares.work_[j]" in stack.frames}
    assert roots == {"Shares.main_[j]", "java/lang/Thread.run_[j]"}, session.col.stacks
    assert not re.search(r"Shares\$\$Lambda[^;]*/", (workdir / "out" / "last_profile.col").read_text())


@pytest.mark.parametrize("name", [pytest.param("21", marks=pytest.mark.net), pytest.param("25", marks=pytest.mark.net)])
def test_virtual_threads_have_the_time_of_those_that_carry_them(name, pillion, workdir, command):
    session = profiler.profile(pillion, workdir / "out", command(name, "Recorded", ["Virtual", 6]), *NO_PERF, launch="init")
    # a recorder that hardly gets a processor meets few threads, and the carriers at their own work, too
    assert own_share(session, "Virtual.work") > .1, session.done


def test_a_command_that_ends_by_itself_leaves_its_stacks(pillion, workdir, command):
    session = profiler.profile(pillion, workdir / "out", command("host", "Recorded", ["Shares", 5], *javas.EXACT), *NO_PERF, "--code-tiers", launch="init")
    counts = Counter(session.frames())
    assert counts["Shares.main_[0]"], session.done
    tiers = {frame for frame in counts if frame.startswith("Shares.fifty_[")} # the best one needs a processor for the compiler as well
    assert tiers - {"Shares.fifty_[0]"}, (session.done, tiers)
    fifty = sum(stack.count for stack in session.col.stacks if any(frame.startswith("Shares.fifty_[") for frame in stack.frames))
    assert fifty > .25 * session.col.total, session.done
    assert "is asked for a recording of its own" in session.done.err and "--no-java-attach lets it alone" in session.done.err


@pytest.mark.parametrize("options", [[], NO_PERF], ids=["perf", "no-perf"])
def test_allocations_and_locks_are_sample_types(options, run, pillion, workdir, command):
    busy = command("host", "Recorded", ["Busy", 6])
    session = profiler.profile(pillion, workdir / "out", busy, *options, "--java-events", "alloc,lock", launch="init")
    assert own_share(session, "Busy.hold") > .1 or options, session.done
    for kind, function in (("alloc_space", "Busy.big"), ("lock", "Busy.hold")):
        done = run([pillion, "render", workdir / "out" / "last_profile.pprof", "--type", kind, "-o", workdir / f"{kind}.col"])
        text = (workdir / f"{kind}.col").read_text()
        assert done.status == 0 and f"{function}_[j]" in text, (kind, done, text[-1000:])


# ---- nothing of ours is left ----

def left_of_us(pid):
    folder = Path(f"/proc/{pid}/root/tmp")
    return [name for name in os.listdir(folder) if "pillion" in name and name.startswith(".")] + \
        [name for name in [*os.listdir(f"/proc/{pid}/cwd"), *os.listdir(folder)] if name == f".attach_pid{pid}"]


def told_by_recorder(pid):
    try:
        return jcmd(pid, "JFR.check")
    except OSError:
        return ""


def start_recording(pillion, pid, folder):
    running = process.start([pillion, *NO_PERF, "-p", pid, "-c", "-d", 30, "-o", folder])
    process.until(lambda: "pillion" in told_by_recorder(pid), 60, lambda: f"it records: {running.err}", .1)
    return running


def test_after_term_and_after_kill_nothing_is_left(pillion, workdir, server):
    target = server()
    running = start_recording(pillion, target.pid, workdir / "term")
    os.kill(running.pid, signal.SIGTERM)
    running.finish(30)
    assert "No available recordings" in jcmd(target.pid, "JFR.check") and not left_of_us(target.pid)
    running = start_recording(pillion, target.pid, workdir / "kill")
    os.kill(running.pid, signal.SIGKILL)
    running.finish(30)
    assert "pillion" in told_by_recorder(target.pid), "a killed profiler leaves its recording, or this test tries nothing"
    assert "Started" in jcmd(target.pid, "JFR.start", "name=somebodys")
    done = attach(pillion, target.pid, workdir / "again")
    left = jcmd(target.pid, "JFR.check")
    assert done.status == 0 and "pillion" not in left and "somebodys" in left and not left_of_us(target.pid), left
    ends_unharmed(target)


# ---- ways that are closed ----

def test_attaching_that_is_disabled_is_told_and_no_signal_sent(pillion, workdir, server):
    if not shutil.which("strace"):
        pytest.skip("not installed: strace")
    target = server("-XX:+DisableAttachMechanism")
    calls = workdir / "calls"
    attach(pillion, target.pid, workdir / "out", until="was started with -XX:+DisableAttachMechanism",
           prefix=["strace", "-f", "-e", "trace=kill,tgkill,pidfd_send_signal", "-o", calls])
    assert "exited with" in calls.read_text() and "QUIT" not in calls.read_text()
    ends_unharmed(target)


def test_with_reduced_signals_it_is_asked_without_one(pillion, workdir, server):
    target = server("-Xrs")
    attach(pillion, target.pid, workdir / "out")
    os.unlink(f"/tmp/.java_pid{target.pid}")
    attach(pillion, target.pid, workdir / "gone", until="was started with -Xrs")
    ends_unharmed(target)


@pytest.mark.parametrize("option", [["--no-java-attach"], ["--java-mode", "walk"]], ids=" ".join)
def test_not_asked_when_that_is_unwanted(option, pillion, workdir, server):
    target = server()
    attach(pillion, target.pid, workdir / "out", *option, until="java functions are read with perf events")
    assert not os.path.exists(f"/tmp/.java_pid{target.pid}")
    ends_unharmed(target)


def test_a_socket_that_was_removed_is_made_again(pillion, workdir, server):
    target = server()
    attach(pillion, target.pid, workdir / "first")
    os.unlink(f"/tmp/.java_pid{target.pid}")
    attach(pillion, target.pid, workdir / "out")
    ends_unharmed(target)


def test_in_namespaces_of_its_own(pillion, workdir, server, classes):
    script = 'mount --bind "$0" /mnt && mount -t tmpfs none /tmp && mkdir -p "$0" && mount --bind /mnt "$0" && exec "$@"'
    target = server(prefix=["unshare", "--pid", "--fork", "--mount-proc", "--mount", "sh", "-c", script, classes])
    attach(pillion, jvm_of(target), workdir / "out")
    ends_unharmed(target)


def test_where_nothing_can_be_written(pillion, workdir, server):
    script = 'mount --bind / / && mount --bind /tmp /tmp && mount -o remount,ro,bind /tmp && mount -o remount,ro,bind / && cd / && exec "$@"'
    target = server(prefix=["unshare", "--mount", "sh", "-c", script, "sh"])
    attach(pillion, jvm_of(target), workdir / "out", until="make its /tmp writable")
    ends_unharmed(target)


def test_of_another_user(pillion, workdir, server):
    target = server(prefix=profiler.as_nobody())
    attach(pillion, target.pid, workdir / "out")
    copy = profiler.copy(pillion, workdir)
    workdir.chmod(0o777)
    attach(copy, target.pid, workdir / "stranger", until="run as its user", prefix=profiler.as_nobody(user=1234))
    ends_unharmed(target)


def test_without_a_recorder(pillion, workdir, command):
    if not shutil.which("jlink"):
        pytest.skip("not installed: openjdk-17-jdk-headless (jlink)")
    subprocess.run(["jlink", "--add-modules", "java.base", "--output", workdir / "image"], check=True)
    target = process.start([workdir / "image/bin/java", *command("host", "Busy", [300])[1:]])
    process.until(lambda: is_up(target.pid), 60, "the JVM works")
    done = attach(pillion, target.pid, workdir / "out")
    assert re.search(r"stacks of pid \d+ are coarse: .*safepoints.*jdk\.jfr", done.err), done
    ends_unharmed(target)


def test_a_jvm_that_lives_for_a_moment_is_let_alone(pillion, workdir, command):
    for _ in range(3):
        session = profiler.profile(pillion, workdir / "out", command("host", "Busy", [.05]), *NO_PERF, launch="init")
        assert session.done.status == 0 and session.done.out == "done\n", session.done


def test_the_doctor_tells_whether_it_can_be_asked(run, pillion, server):
    open_one, closed = server(), server("-XX:+DisableAttachMechanism")
    done = run([pillion, "doctor", *NO_PERF, "-p", open_one.pid])
    assert "java by its own recorder" in done.out and not os.path.exists(f"/tmp/.java_pid{open_one.pid}"), done
    done = run([pillion, "doctor", *NO_PERF, "-p", closed.pid])
    assert "was started with -XX:+DisableAttachMechanism" in re.sub(r"\s+", " ", done.out), done
    for target in (open_one, closed):
        ends_unharmed(target)

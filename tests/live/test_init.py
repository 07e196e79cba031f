"""The parent that stays: signals, orphans, PID 1, terminals."""
import os
import re
import signal
import time
from pathlib import Path

import pytest

from lab import process, profiler, terminal
from lab.sink import Sink

pytestmark = pytest.mark.measures


def start_signals(pillion, program, workdir, *options, prefix=()):
    started = process.start([*prefix, pillion, "--launch", "init", "-o", workdir, *options, "--", program("act"), "signals"])
    process.until(lambda: "ready" in started.out, 10, lambda: started.err)
    return started


def test_every_signal_reaches_the_command_in_init_mode(pillion, program, workdir):
    started = start_signals(pillion, program, workdir, "-q")
    wanted = ["HUP", "INT", "QUIT", "USR1", "USR2", "ALRM", "WINCH", "CONT", "RTMIN+0", "RTMIN+5", "RTMIN+30"]
    for name in wanted:
        number = signal.SIGRTMIN + int(name[6:]) if name.startswith("RTMIN") else getattr(signal, "SIG" + name)
        started.signal(number)
        process.until(lambda: name in started.out.split(), 5, f"{name} arrived in {started.out!r}")
    started.signal(signal.SIGTERM)
    done = started.finish()
    assert done.status == 7
    assert done.out.split()[2:] == [*wanted, "TERM"]


def test_a_command_that_stops_itself_is_seen_as_stopped(pillion, workdir):
    started = process.start([pillion, "-q", "--launch", "init", "-o", workdir, "--", "sh", "-c", "kill -STOP $$; exit 4"])
    process.until(lambda: process.state_of(started.pid) == "T", 5, "the parent stops with its command")
    started.signal(signal.SIGCONT)
    assert started.finish().status == 4


def test_orphans_are_reaped_and_the_status_is_the_commands(pillion, program, workdir):
    done = process.run([pillion, "-q", "--launch", "init", "-o", workdir, "--", program("act"), "leave", "2", "0.2"])
    assert done.status == 3
    process.settle(10)


PID1 = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


def pid1_of(started):
    """The pid, seen from here, of the first process in the namespace."""
    return process.until(lambda: (process.children_of(started.pid) or [None])[0], 5, "a process 1")


@pytest.mark.root
def test_as_pid_1_orphans_are_reaped(pillion, program, workdir):
    done = process.run([*PID1, pillion, "-q", "-o", workdir, "--", program("act"), "orphans", "5"])
    assert (done.status, done.out) == (0, "zombies 0\n"), done


@pytest.mark.root
def test_as_pid_1_term_reaches_the_command_and_the_last_window_is_on_disk(pillion, program, workdir):
    started = process.start([*PID1, pillion, "-d", "60", "-o", workdir, "--", "sh", "-c",
                             'trap "exit 9" TERM; echo ready; "$0" spin 30 & wait', program("act")])
    process.until(lambda: "ready" in started.out, 10)
    time.sleep(1.0)
    begin = time.monotonic()
    os.kill(pid1_of(started), signal.SIGTERM)
    done = started.finish()
    assert done.status == 9, done
    assert time.monotonic() - begin < 6
    session = profiler.Session(done, workdir)
    assert len(session.windows) == 1
    assert session.share("spin") > 0.8
    assert 0.1 < session.seconds() < 2.5


@pytest.mark.root
def test_as_pid_1_in_auto_mode_the_parent_stays(pillion, program, workdir):
    done = process.run([*PID1, pillion, "-q", "-o", workdir, "--", program("act"), "ids"])
    assert re.match(r"pid (\d+) parent 1 ", done.out) and not done.out.startswith("pid 1 "), done


# ---- On a terminal: a real shell in a pseudo terminal

@pytest.fixture
def shell(workdir, pillion, program):
    bash = terminal.Shell(workdir, {"PILLION": str(pillion), "ACT": str(program("act"))})
    yield bash
    bash.close()


def test_on_a_terminal_the_summary_comes_before_the_prompt(shell, workdir):
    text = shell.command('"$PILLION" -- "$ACT" spin 0.5')
    first, last = text.find("profiling"), text.find("CPU in 1 process")
    assert 0 <= first < last, text
    assert "last_flamegraph.html" in text
    assert shell.status() == 0
    # Nothing is printed over the prompt afterwards.
    assert shell.quiet(0.5) == ""


def test_ctrl_c_ends_the_command_and_the_summary_is_still_told(shell):
    shell.send('"$PILLION" -- "$ACT" spin 60\n')
    shell.expect("profiling")
    time.sleep(0.7)
    shell.send("\x03")
    text = shell.prompt()
    assert "CPU in 1 process" in text, text
    assert shell.status() == 130


def test_ctrl_z_and_fg_work_as_without(shell):
    shell.send('"$PILLION" -- "$ACT" wait 1.5 5\n')
    shell.expect("profiling")
    time.sleep(0.3)
    shell.send("\x1a")
    assert "Stopped" in shell.prompt()
    text = shell.command("fg")
    assert "CPU" in text, text
    assert shell.status() == 5


def test_a_stop_signal_to_the_parent_stops_the_command_and_cont_goes_on(shell):
    """kill -TSTP of the job's first process alone, as a supervisor does it."""
    shell.command('"$PILLION" -q -- sh -c "sleep 0.3; echo began; sleep 1.2; exit 4" &')
    shell.expect("began")
    shell.command("kill -TSTP $!")
    process.until(lambda: "Stopped" in shell.command("jobs"), 10, "the job has stopped", pause=0.1)
    stat = shell.command("ps -o stat=,args= --ppid $!")
    assert re.search(r"^T\S* +sh -c", stat, re.M), stat
    shell.command("kill -CONT $!")
    # Until the shell has heard that it goes on, wait answers at once that it is stopped.
    shell.command("for i in $(seq 100); do jobs | grep -q Stopped || break; sleep 0.05; done")
    shell.command("wait $!")
    assert shell.status() == 4


def test_a_full_screen_program_owns_the_terminal(shell):
    """Raw mode, the size and the foreground group are the command's own."""
    text = shell.command('"$PILLION" -q -- sh -c "stty -a | head -1; stty raw; stty cooked; tty >/dev/null && echo tty"')
    assert "rows" in text and "tty" in text
    assert shell.status() == 0


def test_a_missing_command_on_a_terminal_is_one_line(shell):
    text = shell.command('"$PILLION" -- ./nothing-here')
    assert "pillion: ./nothing-here: not found" in text
    assert shell.status() == 127


# ---- Which shape `auto` is

BELOW = [*PID1, "sh", "-c", '"$@"; exit $?', "sh"]


@pytest.mark.root
@pytest.mark.parametrize("prefix, stays, hint", [
    (BELOW, True, ""),  # the container ends with the first process, which waits for this one
    ([*BELOW, "env", "NOTIFY_SOCKET=/run/x"], False, ""),
    ([*BELOW, "sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh"], False, ""),
    ([*BELOW, "sh", "-c", 'LISTEN_PID=7777 exec "$@"', "sh"], True, ""),  # another's
    ([*BELOW, *BELOW[len(PID1):]], False, "takes the last window with it: --launch init waits for it"),
    ([], False, "; --launch init waits for the last window"),
])
def test_auto_stays_where_a_container_may_end_with_it_unless_its_pid_is_told(pillion, program, workdir, prefix, stays, hint):
    """Beneath exec the command has our place, below the shell or the test itself; beneath init it is below us."""
    brief = ["sh", "-c", 'sleep 0.3; exec "$@"', "sh"]  # whose container ends with it: the line is said before
    started = process.start([*prefix, "sh", "-c", 'echo "$$"; exec "$@"', "sh", pillion, "-o", workdir, "--",
                             *brief, program("act"), "ids"])
    done = started.finish()
    own, command = re.match(r"(\d+)\npid (\d+) parent", done.out).groups()
    assert (own != command) == stays, done
    first = done.err.split("\n")[0]
    assert hint in first and ("--launch init" in first) == bool(hint), done
    process.settle(10)


# ---- After the command

def test_what_a_command_leaves_behind_goes_on_being_profiled(pillion, program, workdir):
    started = process.start([pillion, "--launch", "init", "-o", workdir, "--", "sh", "-c",
                             '"$0" spin 2 >/dev/null 2>&1 & sleep 0.5; exit 3', program("act")])
    done = started.finish(10)  # our pipes as well: neither the parent nor the profiler holds them
    assert done.status == 3
    assert re.search(r"left behind goes on being profiled: act \(pid \d+\); to end that: kill \d+", done.err), done
    process.until(lambda: len(list(workdir.glob("profile_*.col"))) == 1, 5, "what ran so far is written, and it runs on")
    process.settle(40)
    assert profiler.within(profiler.Session(done, workdir).seconds(), 2.0, 0.1)


def test_on_a_terminal_what_is_left_behind_is_said_before_the_prompt_and_no_more_after(shell, workdir):
    text = shell.command('"$PILLION" -- sh -c \'"$ACT" spin 1.5 & sleep 0.4; exit 3\'')
    assert "left behind goes on being profiled: act (pid" in " ".join(text.split()), text
    assert shell.status() == 3
    assert shell.quiet(2.5) == ""
    process.until(lambda: len(list(workdir.glob("profile_*.col"))) == 2, 10, "the rest is written, too")


def test_a_command_that_leaves_nothing_behind_ends_without_a_word_of_it(pillion, program, workdir):
    done = process.run([pillion, "--launch", "init", "-o", workdir, "--", "sh", "-c", '"$0" spin 0.3; exit 3', program("act")])
    assert done.status == 3 and "left behind" not in done.err, done


def _children(pid):
    """By one small file: nothing of /proc is looked through while moments count."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_command_that_a_filter_ended_is_said_with_what_that_means(run, pillion, workdir):
    done = run([pillion, "-q", "--launch", "init", "-o", workdir, "--", "sh", "-c", "kill -SYS $$"])
    assert done.status == 128 + signal.SIGSYS and "a system call that a seccomp profile does not allow" in done.err, done
    done = run([pillion, "-q", "--launch", "init", "-o", workdir, "--", "sh", "-c", "kill -TERM $$"])
    assert done.status == 128 + signal.SIGTERM and done.err == "", done


@pytest.mark.root
@pytest.mark.parametrize("launch,most,missing", [("exec", 1, "no profile: cannot start a process"),
                                                 ("init", 1, "no profile: cannot start a process"),
                                                 ("init", 3, "cannot start the publisher's thread")])
def test_a_limit_of_processes_costs_the_profile_and_not_the_command(run, pillion, program, workdir, launch, most, missing):
    """The limit of a user of its own stands for a container's, which the kernel tells by the same error."""
    workdir.chmod(0o777)
    done = run(["setpriv", "--reuid", "47110", "--clear-groups", "prlimit", f"--nproc={most}", pillion, "-q", "--launch", launch,
                "-o", workdir, "--", program("act"), "spin", "0.2", "6"])
    assert done.status == 6, done
    assert missing in done.err and "raise the limit of processes (pids.max of the container, ulimit -u)" in done.err, done


def test_a_parent_that_is_killed_takes_its_command_with_it(pillion, program, workdir):
    act = str(program("act"))
    started = process.start([pillion, "-q", "--launch", "init", "-o", workdir, "--", act, "spin", "60"])
    process.until(lambda: [pid for pid in process.children_of(started.pid) if process.command_line(pid).startswith(act)],
                  10, "it runs")
    started.signal(signal.SIGKILL)
    started.finish()
    process.settle(10)


def test_a_parent_that_is_killed_takes_a_command_with_it_that_was_not_yet_executed(pillion, program, workdir):
    act = str(program("act"))
    met = 0
    for _ in range(100):
        started = process.start([pillion, "-q", "--launch", "init", "-o", workdir, "--", act, "spin", "60"])
        command = process.until(lambda: _children(started.pid), 10, "it is there", 0)[0]
        started.signal(signal.SIGSTOP)  # it tells the command nothing more
        met += not process.command_line(command).startswith(act)
        started.signal(signal.SIGKILL)
        started.finish()
        if met == 5:
            break
    assert met, "every command was executed before it was seen"
    process.settle(10)


@pytest.mark.parametrize("launch", ["exec", "init"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1])
def test_the_death_of_a_parent_is_told_as_the_caller_has_asked(pillion, program, workdir, launch, number):
    """setpriv --pdeathsig, systemd-nspawn: whose parent ends is sent that signal, with pillion as without."""
    command = ["bash", "-c", "trap 'exit' USR1; echo $$; while :; do sleep 0.05; done"]
    script = 'import ctypes, os, sys\nif os.fork(): sys.stdin.read(); os._exit(0)\n' \
             f'ctypes.CDLL(None).prctl(1, {int(number)}, 0, 0, 0); os.execvp(sys.argv[1], sys.argv[1:])'
    read_end, write_end = os.pipe()
    started = process.start(["python3", "-c", script, pillion, "-q", "--launch", launch, "-o", workdir, "--", *command],
                            stdin=read_end)
    os.close(read_end)
    pid = int(process.until(lambda: started.out.strip(), 10))
    os.close(write_end)  # the parent ends
    process.until(lambda: process.state_of(pid) in (None, "Z"), 10, "the command ends with its caller")
    started.finish()
    process.settle(15)


def test_the_parent_that_stays_shows_no_secret_and_the_command_and_a_new_profiler_have_it(pillion, program, workdir):
    secret = "SECRET-7f3a9c"
    with Sink() as sink:
        started = process.start([pillion, "--launch", "init", "-u", "--backend", "http", "--server-host", sink.url + "/w{sequence}",
                                 "-d", "1", "--", program("act"), "wait", "30"],
                                env={**os.environ, "PILLION_TOKEN": secret, "DD_API_KEY": secret, "TMPDIR": str(workdir)})
        first = profiler.find(started, pillion)

        def environment(pid):
            return Path(f"/proc/{pid}/environ").read_bytes()
        process.until(lambda: sink.taken, 10, lambda: started.err)
        os.kill(first, signal.SIGKILL)
        process.until(lambda: process.state_of(first) in (None, "Z"), 5)
        before = len(sink.taken)
        process.until(lambda: len(sink.taken) > before + 1, 15, lambda: started.err)
        command = next(pid for pid in process.children_of(started.pid) if "wait" in process.command_line(pid).split())
        second = profiler.find(started, pillion)
        assert second != first
        assert environment(command).count(secret.encode()) == 2
        for pid in (started.pid, second):
            assert secret.encode() not in environment(pid) and b"PILLION_TOKEN=***" in environment(pid)
        assert any(secret in value for value in sink.taken[-1].headers.values()), sink.taken[-1].headers
        os.kill(command, signal.SIGTERM)
        done = started.finish()
    assert done.err.count("the profiler was ended by signal 9; the next begins in 1 s") == 1, done
    process.settle(15)

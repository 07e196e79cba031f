"""A command started through pillion cannot tell, and neither can whoever started it."""
import difflib
import os
import re
import select
import shutil
import signal
import statistics
from pathlib import Path

import pytest

from lab import process, profiler

pytestmark = pytest.mark.measures

LONELY = 64997
MODES = ("exec", "init")


def shell(script):
    """A prefix that sets the stage: the script ends in `exec "$@"`."""
    return ["sh", "-c", script, "sh"]


# (what it shows, prefix, command, standard input). ACT stands for the bundled program of small deeds.
COMMANDS = [
    ("success", [], ["true"], b""),
    ("failure", [], ["false"], b""),
    ("both streams", [], ["sh", "-c", "echo out; echo err >&2; exit 4"], b""),
    ("standard input is passed on", [], ["cat"], b"one\ntwo\n\0three"),
    ("standard input at its end", [], ["sh", "-c", "read x; echo $? [$x]"], b""),
    ("half read input", [], ["sh", "-c", "read x; echo [$x]; cat"], b"first\nrest\n"),
    ("large output", [], ["seq", "30000"], b""),
    ("bytes, not text", [], ["printf", r"\000\377\200\n"], b""),
    ("arguments as given", [], ["printf", "[%s]", "a b", "", "-x", "--", "ü", "a\nb"], b""),
    ("words like our options", [], ["echo", "-p", "1", "--help", "-d", "5"], b""),
    ("environment", [], ["sh", "-c", "env | sort"], b""),
    ("empty environment", ["env", "-i"], ["/usr/bin/env"], b""),
    ("working directory", shell('cd /usr/share && exec "$@"'), ["pwd"], b""),
    ("file mode mask", shell('umask 027; exec "$@"'), ["sh", "-c", "umask"], b""),
    ("limits", shell('ulimit -n 64; ulimit -c 0; exec "$@"'), ["sh", "-c", "ulimit -a; ulimit -Ha"], b""),
    ("descriptors, signals, rights", [], ["ACT", "files"], b""),
    ("more descriptors", shell('exec 7</dev/null 9>/dev/null "$@"'), ["ACT", "files"], b""),
    ("closed input", shell('exec "$@" <&-'), ["ACT", "files"], b""),
    ("closed output", shell('exec "$@" >&-'), ["sh", "-c", "echo lost || echo no output >&2"], b""),
    ("closed error", shell('exec "$@" 2>&-'), ["sh", "-c", "echo out; echo lost >&2"], b""),
    ("all closed", shell('exec "$@" <&- >&- 2>&-'), ["ACT", "exit", "3"], b""),
    ("nohup", ["nohup"], ["ACT", "files"], b""),
    ("ignored signals", shell('trap "" INT QUIT USR1 PIPE; exec "$@"'), ["ACT", "files"], b""),
    ("setsid", ["setsid", "--wait"], ["sh", "-c", "echo here; exit 6"], b""),
    ("niceness", ["nice", "-n", "5"], ["nice"], b""),
    ("one processor", ["taskset", "-c", "0"], ["ACT", "files"], b""),
    ("below timeout", ["timeout", "5"], ["sh", "-c", "echo in; exit 9"], b""),
    ("ended by timeout", ["timeout", "0.3"], ["sleep", "5"], b""),
    ("a broken pipe", shell('"$@" | head -n 1'), ["yes"], b""),
    ("a background group", [], ["sh", "-c", "sleep 0.05 & wait $!; echo $?; (exit 3) & wait $!; echo $?"], b""),
    ("a signal to itself", [], ["sh", "-c", "trap 'echo got it' USR1; kill -USR1 $$; exit 8"], b""),
    ("a script without #!", ["env"], ["./plain"], b""),
    ("found in PATH", shell('PATH=$PWD:$PATH exec "$@"'), ["plain"], b""),
    ("a child that dies by a signal", [], ["sh", "-c", "sh -c 'kill -9 $$'; echo $?"], b""),
]


def difference(a, b):
    """What is said without (-) and with (+) pillion."""
    if isinstance(a, int):
        return f"- {a}\n+ {b}"
    lines = difflib.unified_diff(*(repr(x)[2:-1].split("\\n") for x in (a, b)), "without", "with", lineterm="", n=0)
    return "\n".join(lines)


@pytest.mark.parametrize("launch", MODES)
def test_thirty_commands_are_byte_identical_with_and_without(pillion, program, workdir, launch):
    act = str(program("act"))
    script = workdir / "plain"
    script.write_text("echo plain $0 $#\nexit 5\n")
    script.chmod(0o755)
    (workdir / "out").mkdir()
    prefix = [str(pillion), "-q", "--launch", launch, "-o", str(workdir / "out"), "--"]
    different = []

    def start(stage, before, command, text):
        command = [act if word == "ACT" else word for word in command]
        return process.start([*stage, *before, *command], stdin=text, cwd=workdir)

    def compare(batch):
        runs = [(what, start(stage, [], command, text), start(stage, prefix, command, text))
                for what, stage, command, text in batch]
        for what, plain, profiled in runs:
            plain, profiled = plain.finish(20), profiled.finish(20)
            for part in ("status", "stdout", "stderr"):
                a, b = getattr(plain, part), getattr(profiled, part)
                if a != b:
                    different.append(f"{what}: {part} differs\n{difference(a, b)}")

    for at in range(0, len(COMMANDS), 4):
        compare(COMMANDS[at:at + 4])
    process.settle(15)
    assert len(COMMANDS) >= 30
    assert not different, "\n".join(different)


@pytest.mark.parametrize("launch", MODES)
def test_every_exit_status_comes_through(pillion, program, workdir, launch):
    act = program("act")
    runs = {n: process.start([pillion, "-q", "--launch", launch, "-o", workdir, "--", act, "exit", str(n)])
            for n in (0, 1, 2, 3, 42, 125, 126, 127, 128, 137, 254, 255)}
    assert {n: r.finish(20).status for n, r in runs.items()} == {n: n for n in runs}
    process.settle(15)


@pytest.mark.parametrize("launch", MODES)
def test_death_by_a_signal_is_128_plus_its_number(pillion, program, workdir, launch):
    act = program("act")
    deaths = [signal.SIGHUP, signal.SIGINT, signal.SIGABRT, signal.SIGKILL, signal.SIGSEGV, signal.SIGPIPE,
              signal.SIGTERM, signal.SIGXCPU, signal.SIGRTMIN + 3]
    runs = {int(n): process.start([pillion, "-q", "--launch", launch, "-o", workdir, "--", act, "kill", str(int(n))])
            for n in deaths}
    assert {n: r.finish(20).status for n, r in runs.items()} == {n: 128 + n for n in runs}
    process.settle(15)


@pytest.mark.parametrize("launch", MODES)
def test_a_command_that_is_not_there_is_127_in_one_line(run, pillion, workdir, launch):
    (workdir / "serve.sh").write_text("#!/bin/sh\n")
    (workdir / "serve.sh").chmod(0o755)
    done = run([pillion, "--launch", launch, "-o", workdir, "--", "./srve.sh"], cwd=workdir)
    assert (done.status, done.stdout) == (127, b"")
    assert done.err == "pillion: ./srve.sh: not found; ./serve.sh exists\n"
    done = run([pillion, "--launch", launch, "-o", workdir, "--", "no-such-program-anywhere"], cwd=workdir)
    assert done.status == 127
    assert re.fullmatch(r"pillion: no-such-program-anywhere: not found\n", done.err)


@pytest.mark.parametrize("launch", MODES)
def test_a_command_that_may_not_run_is_126_in_one_line(run, pillion, workdir, launch):
    (workdir / "serve.sh").write_text("#!/bin/sh\n")
    (workdir / "serve.sh").chmod(0o644)
    done = run([pillion, "--launch", launch, "-o", workdir, "--", "./serve.sh"], cwd=workdir)
    assert (done.status, done.stdout) == (126, b"")
    assert done.err == "pillion: ./serve.sh: not executable; try: chmod +x ./serve.sh\n"
    done = run([pillion, "--launch", launch, "-o", workdir, "--", "/tmp"], cwd=workdir)
    assert done.status == 126 and len(done.err.splitlines()) == 1, done


@pytest.mark.parametrize("launch", MODES)
def test_a_missing_interpreter_is_told_apart_from_a_missing_file(run, pillion, program, workdir, launch):
    (workdir / "tool").write_text("#!/no/such/interpreter -x\n")
    (workdir / "tool").chmod(0o755)
    # As a program for musl on a system without it, or the other way round.
    elsewhere = program("act").read_bytes().replace(b"/lib64/ld-linux-x86-64.so.2", b"/lib64/ld-other-x86-64.so.2")
    (workdir / "other").write_bytes(elsewhere)
    (workdir / "other").chmod(0o755)
    for name, cause in (("tool", "its interpreter /no/such/interpreter does not exist"),
                        ("other", "its loader does not exist; was it built for another C library?")):
        done = run([pillion, "--launch", launch, "-o", workdir, "--", f"./{name}"], cwd=workdir)
        process.settle(10)
        assert done.status == 127
        assert f"pillion: ./{name}: {cause}\n" in done.err, done.err


@pytest.mark.exact
def test_a_wrong_option_before_a_command_is_125_and_runs_nothing(run, pillion, workdir):
    done = run([pillion, "--profiling-freqency", "5", "--", "touch", workdir / "ran"])
    assert done.status == 125 and not (workdir / "ran").exists()
    assert "--profiling-frequency" in done.err
    assert run([pillion, "--profiling-freqency", "5"]).status == 2


def test_in_exec_mode_the_command_has_our_pid_parent_group_and_session(pillion, program, workdir):
    started = process.start([pillion, "-q", "--launch", "exec", "-o", workdir, "--", program("act"), "ids"])
    done = started.finish()
    assert done.out == f"pid {started.pid} parent {os.getpid()} group {started.pid} session {started.pid}\n"
    process.settle(15)


def test_in_init_mode_the_command_stays_in_our_group_and_session(pillion, program, workdir):
    started = process.start([pillion, "-q", "--launch", "init", "-o", workdir, "--", program("act"), "ids"])
    done = started.finish()
    pid = int(done.out.split()[1])
    assert done.out == f"pid {pid} parent {started.pid} group {started.pid} session {started.pid}\n"


def test_auto_is_exec_without_a_terminal(pillion, program, workdir):
    started = process.start([pillion, "-q", "-o", workdir, "--", program("act"), "ids"])
    assert f"pid {started.pid} " in started.finish().out
    process.settle(15)


@pytest.mark.parametrize("launch", MODES)
def test_a_command_of_a_millisecond_is_fine_twenty_times(pillion, workdir, launch):
    """Status and output are those without pillion; the delay added is at most 10 ms at the median.

    Or, where others want the CPUs, as long as four such commands take: a process begins, tells that it is ready, and
    each of these waits for a CPU.
    """
    script = workdir / "script"
    script.write_text("#!/bin/sh\necho from a script\nexit 3\n")
    script.chmod(0o755)
    for command, status, out in ((["/bin/true"], 0, b""), ([str(script)], 3, b"from a script\n")):
        plain, profiled = [], []
        for _ in range(20):
            for prefix, times in (([], plain), ([pillion, "-q", "--launch", launch, "-o", workdir, "--"], profiled)):
                started = process.start([*prefix, *command])
                started.wait()
                times.append(started.seconds)
                done = started.finish()
                assert (done.status, done.stdout, done.stderr) == (status, out, b""), done
            process.settle(15)
        if launch == "exec":
            usual = statistics.median(plain)
            added = statistics.median(profiled) - usual
            print(f"{command[0]}: {usual * 1000:.1f} ms, and {added * 1000:.1f} ms added")
            assert added <= max(0.010, 4 * usual), f"{command[0]}: {added * 1000:.1f} ms added to {usual * 1000:.1f}"


@pytest.mark.parametrize("launch", MODES)
def test_children_left_by_the_command_are_profiled_and_let_be(pillion, program, workdir, launch):
    started = process.start([pillion, "--launch", launch, "-o", workdir, "--", program("act"), "leave", "2", "0.5"])
    done = started.finish()
    assert done.status == 3, done
    process.settle(15)
    session = profiler.Session(done, workdir)
    if launch == "exec":
        assert session.share("left_behind") > 0.5, session.frames()


def test_a_command_that_closes_every_descriptor_is_profiled(pillion, program, workdir):
    session = profiler.profile(pillion, workdir / "out", [program("act"), "closeall", "0.5", "5"], launch="exec")
    assert session.done.status == 5
    assert session.share("spin") > 0.9
    session = profiler.profile(pillion, workdir / "init", [program("act"), "closeall", "0.5", "5"])
    assert session.done.status == 5
    assert session.share("spin") > 0.9


@pytest.mark.parametrize("launch", MODES)
def test_a_double_forked_daemon_neither_delays_nor_dies(pillion, program, workdir, launch):
    """The caller gets the status and the end of output at once; the daemon works on."""
    started = process.start([pillion, "-q", "--launch", launch, "-o", workdir, "--", program("act"), "daemon", "15"])
    started.wait()
    daemon = int(process.until(lambda: started.out.strip(), 5))
    assert started.status == 0
    assert process.state_of(daemon) in ("R", "S"), "the daemon died, or was waited for"
    os.kill(daemon, signal.SIGKILL)
    process.settle(15)
    started.finish()


def test_capturing_output_does_not_hang_on_the_profiler_or_a_daemon(run, pillion, program, workdir):
    """$(pillion ...) returns when the command has ended, although the daemon and its profiler live on."""
    done = run(["sh", "-c", 'x=$("$@"); echo "captured $? $x"', "sh", pillion, "-q", "--launch", "exec", "-o", workdir, "--",
                program("act"), "daemon", "15"], stderr=None)
    captured = re.fullmatch(r"captured 0 (\d+)\n", done.out)
    assert captured, done
    assert process.state_of(int(captured[1])) in ("R", "S"), "the daemon died, or was waited for"
    os.kill(int(captured[1]), signal.SIGKILL)
    process.settle(15)


def test_the_profiler_holds_no_descriptor_of_the_command(pillion, program, workdir):
    """A pipe passed to the command ends when the command closes it, which then goes on until it is told to end."""
    read_end, write_end = os.pipe()
    go = workdir / "go"
    script = f'exec {write_end}>&-; for i in {{1..500}}; do [ -e "$0" ] && exit 3; sleep 0.05; done'
    started = process.start([pillion, "-q", "--launch", "exec", "-o", workdir, "--", "bash", "-c", script, go],
                            pass_fds=[write_end])
    os.close(write_end)
    ended, _, _ = select.select([read_end], [], [], 10)
    assert ended and os.read(read_end, 1) == b"" and started.poll() is None, "somebody holds it"
    os.close(read_end)
    go.touch()
    assert started.finish().status == 3
    process.settle(15)


def test_the_command_starts_even_if_no_profiler_can_be_made(run, pillion, program, workdir):
    """No process to be had: a fork that fails costs the profile, not the command."""
    copy = profiler.copy(pillion, workdir)
    limited = ["prlimit", "--nproc=1:1"]
    if os.geteuid() == 0:
        limited += profiler.as_nobody(user=LONELY) # tests beside this one are nobody, too, and would count
    done = run([*limited, copy, "--launch", "exec", "-o", workdir, "--", "/bin/echo", "still here"])
    assert (done.status, done.out) == (0, "still here\n"), done
    assert len(profiler.lines(done.err)) <= 1
    process.settle(10)


def test_kill_9_of_the_profiler_leaves_command_and_status(pillion, program, workdir):
    for launch in MODES:
        started = process.start([pillion, "--launch", launch, "-o", workdir, "--", program("act"), "spin", "1.0", "6"])
        os.kill(profiler.find(started, pillion), signal.SIGKILL)
        assert started.finish().status == 6, launch
        process.settle(15)


@pytest.mark.parametrize("launch", ["exec", "init"])
def test_where_memory_is_short_the_profiler_goes_first(pillion, program, workdir, launch):
    """The kernel takes it before the command, whose own place in that order stays."""
    started = process.start([pillion, "-o", workdir, "--launch", launch, "--", program("act"), "wait", "20"])
    found = profiler.find(started, pillion)
    command = started.pid if launch == "exec" else next(pid for pid in process.children_of(started.pid) if pid != found)
    process.until(lambda: process.command_line(command).startswith(str(program("act"))), 10, "the command runs")

    def place(pid):
        return int(Path(f"/proc/{pid}/oom_score_adj").read_text())
    assert (place(found), place(command), place(started.pid)) == (1000, place("self"), place("self"))
    os.kill(command, signal.SIGTERM)
    started.finish()


def test_in_init_mode_a_killed_profiler_comes_back(pillion, program, workdir):
    started = process.start([pillion, "--launch", "init", "-d", "1", "-o", workdir, "--", program("act"), "spin", "5", "6"])
    first = profiler.find(started, pillion)
    profiler.wait_for(workdir / "last_profile.col")
    os.kill(first, signal.SIGKILL)
    process.until(lambda: process.state_of(first) in (None, "Z"), 5)
    seen = set(workdir.glob("profile_*.col"))
    second = profiler.find(started, pillion, 5)
    assert second != first
    process.until(lambda: set(workdir.glob("profile_*.col")) - seen, 6, "windows after the restart")
    assert started.finish(20).status == 6
    assert profiler.Session(None, workdir).windows[-1].share("spin") > 0.9


def test_switched_off_the_command_runs_alone_and_it_is_said_once(pillion, program, workdir):
    """A roll-out's switch: the command has our place, and nobody is beside it."""
    environment = {**os.environ, "PILLION_ENABLED": "0"}
    done = process.run([pillion, "-o", workdir, "--", program("act"), "ids"], env=environment)
    plain = process.run([program("act"), "ids"], env=environment)
    def without_pids(text):
        return re.sub(r"\d+", "N", text)
    assert without_pids(done.out) == without_pids(plain.out)
    assert done.err.count("\n") == 1 and "profiling is switched off" in done.err, done
    assert not list(workdir.iterdir())
    missing = process.run([pillion, "-q", "--no-enable", "--", "./nothing-here"])
    assert (missing.status, missing.err) == (127, "pillion: ./nothing-here: not found\n")
    sidecar = process.run([pillion, "-a", "-d", "60", "-o", workdir], env=environment)
    assert sidecar.status == 0 and not list(workdir.iterdir())


# ---- What is refused or missing costs the profile, or a part of it: one line says so

KILLED = "a seccomp profile kills what starts a profiler; allow socketpair"
OPEN_FILES = "raise the limit of open files (ulimit -n)"


@pytest.mark.parametrize("launch", MODES)
@pytest.mark.parametrize("answer, calls, said", [
    ("KILL", "perf_event_open", "perf events refused (SIGSYS: seccomp filter); allow perf_event_open"),
    ("KILL", "close_range,access,perf_event_open", "perf events refused (SIGSYS: seccomp filter)"),
    ("KILL", "close_range,access", ""),
    ("KILL", "socketpair", KILLED),
    ("KILL", "fork", KILLED),
    ("EPERM", "socketpair", "no profile: cannot start a process: Operation not permitted; allow clone, fork and socketpair"),
    ("EPERM", "clone,fork", "no profile: cannot start a process: Operation not permitted; allow clone, fork and socketpair"),
    ("EAGAIN", "fork", "raise the limit of processes"),
])
def test_a_filter_that_refuses_or_kills_leaves_the_command_alone(pillion, program, refuse, workdir, launch, answer, calls, said):
    """The command is linked statically: a loader's own calls would be killed for without pillion, too."""
    act = program("act", "-static")
    done = process.run([refuse, answer, calls, "--", pillion, "--launch", launch, "-o", workdir, "--", act, "exit", "5"])
    process.settle(15)
    assert done.status == 5, done
    lines = [line for line in profiler.lines(done.err) if said and said in line]
    assert len(lines) == bool(said), done
    assert bool(list(workdir.glob("profile_*"))) == ("perf_event_open" in calls or "access" in calls), done


@pytest.mark.parametrize("launch", MODES)
@pytest.mark.parametrize("calls", ["stat", "poll", "waitid", "wait4", "rt_sigtimedwait"])
def test_a_call_that_always_fails_changes_no_status_and_holds_nothing_up(pillion, program, refuse, workdir, launch, calls):
    """What the call would have told is found out in another way, or done without."""
    act = program("act", "-static")
    done = process.run([refuse, "EPERM", calls, "--", pillion, "--launch", launch, "-o", workdir, "--", act, "spin", "0.2", "5"],
                       timeout=30)
    process.settle(15)
    assert done.status == 5, done
    assert calls == "stat" or list(workdir.glob("profile_*.col")), done


@pytest.mark.parametrize("launch", MODES)
def test_without_memory_the_command_runs_and_a_line_says_why_there_is_no_profile(pillion, program, refuse, workdir, launch):
    done = process.run([refuse, "ENOMEM", "mmap", "--", pillion, "-q", "--launch", launch, "-o", workdir, "--",
                        program("act", "-static"), "exit", "5"])
    process.settle(10)
    assert done.status == 5, done
    assert "memory" in done.err and all(profiler.lines(line) for line in done.err.splitlines()), done
    done = process.run([refuse, "ENOMEM", "mmap", "--", pillion, "-p", str(os.getpid()), "-d", "1", "-o", workdir])
    assert done.status == 1 and "memory" in done.err, done


@pytest.mark.parametrize("launch", MODES)
def test_a_small_stack_is_enough(pillion, program, workdir, launch):
    session = profiler.profile(pillion, workdir, [program("act"), "spin", "0.5", "5"], launch=launch,
                               prefix=shell('ulimit -s 160; exec "$@"'))
    assert session.done.status == 5
    assert session.share("spin") > 0.9 and "died" not in session.done.err, session.done


@pytest.mark.parametrize("launch", MODES)
@pytest.mark.parametrize("most", [4, 10])
def test_too_few_descriptors_cost_the_profile_and_one_line(pillion, program, workdir, launch, most):
    done = process.run([*shell(f'ulimit -n {most}; exec "$@"'), pillion, "-q", "--launch", launch, "-o", workdir, "--",
                        program("act"), "exit", "5"])
    assert done.status == 5
    assert len(done.err.splitlines()) == 1 and "no profile" in done.err and OPEN_FILES in done.err, done


@pytest.mark.root
@pytest.mark.parametrize("launch", MODES)
def test_without_proc_it_is_said_and_the_command_runs(pillion, program, workdir, launch):
    done = process.run(["unshare", "--mount", *shell('umount -l /proc && exec "$@"'), pillion, "--launch", launch,
                        "-o", workdir, "--", program("act"), "exit", "5"])
    process.settle(15)
    assert done.status == 5
    assert done.err.count("no /proc is mounted here") == 1, done


def test_what_the_mode_allows_and_the_system_does_not_is_passed_over(pillion, program, workdir):
    """The search in PATH goes on, as a shell's does."""
    first, second = workdir / "first", workdir / "second"
    for folder in (first, second):
        folder.mkdir()
        shutil.copy2(program("act"), folder / "tool")
    workdir.chmod(0o777)
    (first / "tool").chmod(0o700)
    (second / "tool").chmod(0o755)
    prefix = profiler.as_nobody() if os.geteuid() == 0 else []
    if not prefix:
        pytest.skip("one's own file cannot be closed to oneself alone")
    copy = profiler.copy(pillion, workdir)
    path = f"{first}:{second}:{os.environ['PATH']}"
    done = process.run([*prefix, copy, "-q", "-o", workdir, "--", "tool", "exit", "5"], env={**os.environ, "PATH": path})
    process.settle(15)
    assert (done.status, done.err) == (5, ""), done


# ---- A command that orphans come to

REAPER = "import ctypes, os, sys; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0); os.execvp(sys.argv[1], sys.argv[1:])"


@pytest.mark.parametrize("perf", ["smart", "disabled"])
@pytest.mark.parametrize("place", [
    pytest.param(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"], id="pid 1", marks=pytest.mark.root),
    pytest.param(["python3", "-c", REAPER], id="subreaper")])
def test_a_command_that_waits_for_all_its_children_does_not_wait_for_the_profiler(pillion, program, workdir, place, perf):
    done = process.run([*place, pillion, "-q", "--launch", "exec", "--perf-mode", perf, "-o", workdir, "--",
                        program("act"), "waitall", "5"], timeout=15)
    process.settle(15)
    assert done.status == 5, done

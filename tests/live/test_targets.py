"""Which processes are profiled: filters and ages among real processes, what begins, execs and ends in a window, and
processes of other users and other roots."""
import os
import re
import shutil
import signal
import time

import pytest

from lab import container, process, profiler, pystacks

pytestmark = pytest.mark.measures

PYTHON = "/usr/bin/python3"
PROGRAMS = "tests/live/programs/python"
MODES = {"perf": [], "perf-less": ["--perf-mode", "disabled"]}
# Without perf a process's last tenth of a second is seen by nobody, and with filters it is nobody's; two of them here.
UNSEEN = {"perf": 0.12, "perf-less": 0.3}
by_mode = pytest.mark.parametrize("mode", MODES)


@pytest.fixture
def named(workdir, program):
    """named("alpha") -> the program of small deeds under that name, where every uid can run it."""
    def copy(name, folder=workdir):
        target = folder / name
        if not target.exists():
            shutil.copy2(program("act"), target)
            target.chmod(0o755)
        return target
    return copy


@pytest.fixture
def started():
    """started(argv) -> a process that runs until the test ends."""
    running = []

    def start(*argv, **options):
        running.append(process.start([str(word) for word in argv], **options))
        return running[-1]
    yield start
    for one in running:
        one.end()
        one.done()


def attach(pillion, folder, *options, timeout=40):
    folder.mkdir(exist_ok=True)
    return profiler.Session(process.run([pillion, "-o", folder, *options], timeout=timeout), folder)


def said(session):
    return " ".join(session.done.err.split())


def left_out(session):
    found = re.findall(r"left_out=(\d+)", session.done.err)
    return int(found[-1]) if found else 0


def comms(session):
    return set().union(*(window.comms() for window in session.windows))


def made(session, mode="perf"):
    """Without perf a program that nobody can read leaves no stack, and the status of attaching says so."""
    return session.done.status == (0 if mode == "perf" else 1) and "no process fits" not in session.done.err


def works(one):
    """Until it has used CPU time."""
    process.until(lambda: process.cpu_seconds(one.pid) > 0.02, 10)


# ---- -a and filters

@by_mode
def test_all_that_fits_and_what_begins_later(mode, pillion, named, started, workdir):
    works(started(named("alpha"), "spin", "60"))
    works(started(named("beta"), "spin", "60"))
    folder = workdir / "out"
    folder.mkdir()
    run = started(pillion, "-a", "--exe", "alpha,gamma", "-d", "4", "-o", folder, *MODES[mode])
    process.until(lambda: "profiles" in run.err, 10)
    begun = time.monotonic()
    late = started(named("gamma"), "spin", "60")
    began_cpu = 0
    while time.monotonic() < begun + 1.5:  # found within one second, on a machine whose CPUs others want
        began_cpu = process.cpu_seconds(late.pid)
        time.sleep(0.05)
    run.wait(30)
    used = process.cpu_seconds(late.pid)
    session = profiler.Session(run.done(), folder)
    started_by = session.seconds(comm="gamma")
    assert made(session, mode), session.done
    assert comms(session) == {"alpha", "gamma"}, comms(session)
    assert started_by > 0.5 * (used - began_cpu) > 0, (started_by, used, began_cpu, session.done)
    assert left_out(session) >= 2, session.done  # beta, and this test


def test_all_but_what_is_excluded_and_by_command_line(pillion, named, started, workdir):
    works(started(named("alpha"), "spin", "60"))
    works(started(named("alpha"), "spin", "61"))
    works(started(named("beta"), "spin", "62"))
    session = attach(pillion, workdir / "out", "-a", "--match", "*/alpha spin *,beta", "--match", "!spin 61", "-d", "2")
    assert session.done.status == 0, session.done
    assert comms(session) == {"alpha", "beta"}


@by_mode
def test_nothing_fits_is_said_with_what_there_is_and_is_no_success(mode, pillion, named, started, workdir):
    works(started(named("alpha"), "spin", "60"))
    session = attach(pillion, workdir / "out", "-a", "--exe", "no-such-program", "-d", "1", *MODES[mode])
    assert session.done.status == 1, session.done
    assert re.search(r"no process fits --exe no-such-program; \d+ are visible: \d+ .* \(/", said(session)), session.done


# ---- a command, and what it starts

TWO = '"$0" spin 0.4; "$1" spin 0.3; "$1" spin 0.3 & wait; exec "$2" spin 1.3'


@by_mode
def test_what_a_command_starts_is_narrowed_and_itself_is_not(mode, pillion, named, workdir):
    """The shell itself becomes the last program: that stays in, whatever the filters say. (Without perf a process that
    slept is looked at once a second.)"""
    session = profiler.profile(pillion, workdir / "out", ["sh", "-c", TWO, named("alpha"), named("beta"), named("last")],
                               "--exe", "beta", *MODES[mode])
    assert session.done.status == 0, session.done
    assert "alpha" not in comms(session) and {"beta", "last"} <= comms(session), comms(session)
    assert profiler.within(session.seconds(comm="beta"), 0.6, 0.1, UNSEEN[mode]), (session.seconds(comm="beta"), session.done)
    assert profiler.within(session.seconds(), 1.9, 0.12, 2 * UNSEEN[mode]), (session.seconds(), session.done)
    assert left_out(session) == 1, session.done


@by_mode
def test_an_exec_changes_the_answer(mode, pillion, named, workdir):
    script = '"$0" -c \'"$0" spin 0.1; exec "$1" spin 1\' "$1" "$2"; true'
    session = profiler.profile(pillion, workdir / "out", ["sh", "-c", script, "/bin/sh", named("alpha"), named("beta")],
                               "--exe", "beta", *MODES[mode])
    assert session.done.status == 0, session.done
    assert comms(session) <= {"sh", "beta"}, comms(session)
    assert profiler.within(session.seconds(comm="beta"), 1.0, 0.1, UNSEEN[mode]), (session.seconds(comm="beta"), session.done)


@by_mode
def test_processes_younger_than_a_duration_are_left_out(mode, pillion, named, workdir):
    script = 'timeout -s KILL 0.6 "$0" spin 60; timeout -s KILL 3 "$1" spin 60; true'
    session = profiler.profile(pillion, workdir / "out", ["sh", "-c", script, named("alpha"), named("beta")],
                               "--min-duration", "1.5", *MODES[mode])
    assert session.done.status == 0, session.done
    assert "alpha" not in comms(session), comms(session)
    # 1.5 s of it by the clock, of which the machine gave it a part.
    assert 0.1 < session.seconds(comm="beta") < 1.75, (session.seconds(comm="beta"), session.done)
    assert left_out(session) == 2, session.done  # alpha and its timeout


@by_mode
def test_python_that_is_left_out_and_python_that_comes_of_age(mode, pillion, repository, workdir):
    script = f'timeout -s KILL 3 "$0" {repository / PROGRAMS / "shares.py"} 60; true'
    without = profiler.profile(pillion, workdir / "without", ["sh", "-c", script, PYTHON], "--exe", "!python3*", *MODES[mode])
    assert not [frame for frame in without.frames() if frame.endswith("_[p]")]
    assert "python3" not in comms(without) and left_out(without) == 1, without.done
    session = profiler.profile(pillion, workdir / "of-age", ["sh", "-c", script, PYTHON], "--min-duration", "1", *MODES[mode])
    stacks = pystacks.of_pprof(session.folder)
    python = sum(stack.count for stack in stacks if "main" in [frame.name for frame in stack.python])
    # A part is native: its runtime is looked at when it is of age, which takes its time on a busy machine.
    assert python > 0.2 * sum(stack.count for stack in stacks) > 0, (session.frames(), session.done)


# ---- -p

@by_mode
def test_a_process_is_profiled_with_all_below_it_or_alone(mode, pillion, named, started, workdir):
    shell = started("sh", "-c", '"$0" spin 60 & while :; do "$0" spin 0.1; done', named("alpha"))
    process.until(lambda: any("alpha spin 60" in process.command_line(p) for p in process.children_of(shell.pid)), 10)
    alone = attach(pillion, workdir / "alone", "-p", shell.pid, "--no-children", "-d", "2", *MODES[mode])
    assert alone.done.status == 0 and "alpha" not in comms(alone) and left_out(alone) >= 1, alone.done
    session = attach(pillion, workdir / "with", "-p", shell.pid, "-d", "2", *MODES[mode])
    assert made(session, mode), session.done
    assert "alpha" in comms(session), session.done
    assert len({s.labels["process_id"] for s in session.pprof.samples}) >= 2, "what ran before, and what is started now"
    assert re.search(rf"pid {shell.pid} sh and [12] below", said(session)), session.done
    narrowed = attach(pillion, workdir / "narrowed", "-p", shell.pid, "--exe", "!alpha", "-d", "1", *MODES[mode])
    assert "alpha" not in comms(narrowed) and left_out(narrowed) >= 1, narrowed.done


@by_mode
@pytest.mark.parametrize("wall", [[], ["--wall"]], ids=["cpu", "wall"])
def test_one_that_sleeps_is_no_failure_and_one_that_is_stopped_is_told(mode, wall, pillion, named, started, workdir):
    sleeper = started(named("sleeper"), "wait", "60")
    asleep = attach(pillion, workdir / "asleep", "-p", sleeper.pid, "-d", "1", *wall, *MODES[mode])
    assert asleep.done.status == 0 and "stopped" not in said(asleep), asleep.done
    sleeper.signal(signal.SIGSTOP)
    process.until(lambda: process.state_of(sleeper.pid) == "T", 10)
    stopped = attach(pillion, workdir / "stopped", "-p", sleeper.pid, "-d", "1", *wall, *MODES[mode])
    assert stopped.done.status == 0, stopped.done
    assert f"pid {sleeper.pid} (sleeper) is stopped; it goes on with: kill -CONT {sleeper.pid}" in said(stopped)
    sleeper.signal(signal.SIGCONT)


def test_threads_and_children_that_appear_while_attaching(pillion, named, started, workdir):
    many = [started(named("grower"), "grow", "30") for _ in range(2)]
    for one in many:
        process.until(lambda one=one: "ready" in one.out, 10)
    session = attach(pillion, workdir / "out", "-p", ",".join(str(one.pid) for one in many), "-d", "3")
    assert session.done.status == 0, session.done
    assert {"earlier", "later", "grower"} <= comms(session), comms(session)
    assert {"thread_before", "thread_after", "child_after"} <= session.frames()


# ---- ends, ids and rights

def test_a_pid_that_is_given_out_again_is_another_process(pillion, named, workdir):
    """In a PID namespace of its own, where the next id can be chosen; both users of the id have their own row. Ids go
    on in between, as they do until they begin again from the lowest."""
    script = ('"$0" spin 0.5 & first=$!; wait $first; (:); (:); sleep 0.5; '
              'echo $((first - 1)) > /proc/sys/kernel/ns_last_pid || exit 77; '
              '"$1" spin 0.7 & second=$!; wait $second; echo $first $second')
    prefix = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    for mode in MODES:
        session = profiler.profile(pillion, workdir / mode, ["sh", "-c", script, named("alpha"), named("beta")],
                                   "--launch", "init", *MODES[mode], prefix=prefix)
        if session.done.status == 77:
            pytest.skip("the next id cannot be chosen here")
        assert session.done.status == 0, session.done
        first, second = session.done.out.split()
        assert first == second, session.done
        assert profiler.within(session.seconds(comm="alpha"), 0.5, 0.1, 0.12 if mode == "perf" else 0.25), (mode, session.seconds(comm="alpha"))
        assert profiler.within(session.seconds(comm="beta"), 0.7, 0.1, 0.12 if mode == "perf" else 0.25), (mode, session.seconds(comm="beta"))


@pytest.mark.root
def test_a_set_uid_program_is_counted_where_it_may_not_be_read(pillion, named, workdir):
    """As nobody: the program belongs to root and runs as root, so nobody may look into it."""
    other = named("raised")
    other.chmod(0o4755)
    check = process.run([*profiler.as_nobody(), other, "ids"])
    probe = process.run([*profiler.as_nobody(), "sh", "-c", '"$0" wait 1 & sleep 0.3; cat /proc/$!/status', other])
    if check.status != 0 or not re.search(r"^Uid:\s+\d+\s+0\s", probe.out, re.M):
        pytest.skip("set-uid programs have no effect here")
    out = workdir / "out"
    out.mkdir()
    out.chmod(0o777)
    session = profiler.profile(profiler.copy(pillion, workdir), out, ["sh", "-c", '"$0" spin 0.6; "$1" spin 0.6', other,
                                                                      named("plain")], prefix=profiler.as_nobody())
    assert session.done.status == 0, session.done
    assert session.seconds(comm="plain") > 0.4, session.done
    assert profiler.within(session.seconds(), 1.2, 0.1, 0.15), (session.seconds(), session.done)


@pytest.mark.root
def test_two_roots_are_seen_by_one_profiler(pillion, program, started, workdir):
    """Two containers of one task: each has its own /app, another program with other functions."""
    for name, deed in (("one", "act"), ("two", "shares")):
        root = workdir / name
        (root / "proc").mkdir(parents=True)
        shutil.copy2(program(deed, "-static"), root / "app")
    inside = ["unshare", "--pid", "--fork", "--kill-child", "chroot"]
    started(*inside, workdir / "one", "/app", "spin", "60")
    started(*inside, workdir / "two", "/app", "60")
    process.until(lambda: len(apps()) == 2, 10)
    session = attach(pillion, workdir / "out", "-a", "--exe", "app", "-d", "2")
    assert session.done.status == 0, session.done
    assert {"spin", "sixty"} <= session.frames(), (session.frames(), session.done)
    assert comms(session) == {"app"}


def apps():
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            found += [name] if os.readlink(f"/proc/{name}/exe").endswith("/app") else []
        except OSError:
            pass
    return found


# ---- other users

STOCK = [name.removeprefix("CAP_").lower() for name in container.CAPABILITIES]


def with_rights(*names):
    """Root with these capabilities alone."""
    return ["setpriv", "--bounding-set", ",".join(["-all", *("+" + name for name in names)]), "--inh-caps", "-all"]


CAPLESS = with_rights(*STOCK)


@pytest.fixture
def of_another_user(started, repository, workdir):
    """Python as nobody, which works."""
    script = workdir / "shares.py"
    shutil.copy2(repository / PROGRAMS / "shares.py", script)
    script.chmod(0o644)
    one = started(*profiler.as_nobody(PYTHON, script, "60"))
    process.until(lambda: process.cpu_seconds(one.pid) > 0.3, 20)
    return one


@pytest.mark.root
@by_mode
def test_root_without_ptrace_reads_a_process_of_another_user(mode, pillion, of_another_user, workdir):
    """As in a stock container: root with SETUID and without SYS_PTRACE. The files it writes are root's."""
    refused = process.run([*CAPLESS, "cat", f"/proc/{of_another_user.pid}/maps"])
    assert refused.status != 0 and "ermission denied" in refused.err, "SYS_PTRACE was not taken away"
    folder = workdir / "out"
    folder.mkdir()
    done = process.run([*CAPLESS, pillion, "-p", of_another_user.pid, "-d", "2", "-o", folder, *MODES[mode]], timeout=40)
    assert done.status == 0, done
    session = profiler.Session(done, folder)
    stacks = pystacks.of_col(session)
    total = sum(stack.count for stack in stacks)
    python = sum(stack.count for stack in stacks if [f.name for f in stack.python][:2] == ["<module>", "main"])
    assert python > 0.8 * total > 0, (session.frames(), done)
    assert {"fifty", "thirty", "twenty"} <= {f.name for stack in stacks for f in stack.python}
    assert all((path.stat().st_uid, path.stat().st_gid) == (0, 0) for path in folder.iterdir())


@pytest.mark.root
def test_without_the_right_to_change_users_it_is_said(pillion, of_another_user, workdir):
    rights = with_rights(*(name for name in STOCK if name != "setuid"))
    done = process.run([*rights, pillion, "-p", of_another_user.pid, "-d", "1", "-o", workdir, "--perf-mode", "disabled"])
    assert done.status in (0, 1), done
    assert re.search(r"another uid|another user", " ".join(done.err.split())), done
    assert profiler.Session(done, workdir).seconds() > 0.1


@pytest.mark.root
def test_a_process_with_more_rights_stays_refused_and_is_counted(pillion, started, repository, workdir):
    one = started(PYTHON, repository / PROGRAMS / "shares.py", "60")
    process.until(lambda: process.cpu_seconds(one.pid) > 0.3, 20)
    done = process.run([*CAPLESS, pillion, "-p", one.pid, "-d", "1", "-o", workdir, "--perf-mode", "disabled"])
    assert profiler.Session(done, workdir).seconds() > 0.1, done
    assert "SYS_PTRACE" in done.err, done
    assert one.poll() is None and process.state_of(one.pid) != "T"


def test_what_ends_while_it_is_looked_at_is_no_error(pillion, named, started, workdir):
    churn = started("sh", "-c", 'while :; do "$0" exit 0; done', named("short"))
    run = process.start([pillion, "-a", "--match", "short", "-d", "2", "-o", workdir, "-v"])
    done = run.finish(30)
    assert done.status in (0, 1), done
    assert "error" not in done.err, done
    assert churn.poll() is None
    churn.signal(signal.SIGKILL)


# ---- containers

@pytest.fixture
def contained(started, named):
    """contained(id, name) -> a working program in a control group that is called as engines call a container's."""
    groups = []

    def start(identity, name):
        for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids"):
            group = f"{root}/{identity}"
            if not os.access(f"{root}/cgroup.procs", os.W_OK):
                continue
            os.mkdir(group)
            groups.append(group)
            one = started("sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$1" spin 60', group, named(name))
            process.until(lambda: one.poll() is not None or identity in text(f"/proc/{one.pid}/cgroup"), 5)
            if one.poll() is None:
                works(one)
                return one
        return pytest.skip("no control group can be made here")
    yield start
    for one in list(process.owned.values()):
        one.end()
    for group in groups:
        process.until(lambda group=group: removed(group), 5, f"{group} is empty")


def text(path):
    with open(path) as file:
        return file.read()


def removed(group):
    try:
        os.rmdir(group)
    except OSError:
        return not os.path.exists(group)
    return True


@pytest.mark.root
@by_mode
def test_one_container_of_two_by_the_beginning_of_its_id(mode, pillion, contained, workdir):
    first, second = "5ca1ab1e" + "0" * 56, "5ca1ab1e" + "1" * 56
    contained(first, "alpha")
    contained(second, "beta")
    session = attach(pillion, workdir / "one", "-a", "--container", "5ca1ab1e0", "-d", "1", *MODES[mode])
    assert made(session, mode), session.done
    assert comms(session) == {"alpha"}
    assert {stack.container for stack in session.col.stacks} == {first}
    both = attach(pillion, workdir / "both", "-a", "--container", "5ca1ab1e", "-d", "1", *MODES[mode])
    assert both.done.status == 1, both.done
    assert re.search(r"--container 5ca1ab1e fits 5ca1ab1e[01]{4} and 5ca1ab1e[01]{4}; give more", said(both)), both.done
    rest = attach(pillion, workdir / "rest", "-a", "--exe", "alpha,beta", "--container", "!5ca1ab1e0", "-d", "1", *MODES[mode])
    assert comms(rest) == {"beta"}, rest.done

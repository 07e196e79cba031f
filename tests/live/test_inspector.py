"""JavaScript where samples have no registers, by node's own inspector: asked for by name, open for a session, closed again. What a program is
doing when it is asked, or how it ends meanwhile, makes no difference to it: its output and its status are those of a run without us."""
import os
import re
import signal
import socket
import subprocess
import time
from collections import Counter

import pytest

from lab import framestacks, nodes, process, profiler

pytestmark = pytest.mark.measures

READER = framestacks.Reader("js", "[javascript]")
INSPECTOR = ["--perf-mode", "disabled", "--nodejs-mode", "inspector"]
# What they do as the newest and the oldest do is not tried of each; workers that end have made two of them crash.
SOME = ["host", *(pytest.param(name, marks=pytest.mark.net) for name in ("12", "26"))]
ENDINGS = [("host", how) for how in ("natural", "exit", "throw", "signal", "own", "loop", "blocked", "workers")] + \
          [pytest.param(name, how, marks=pytest.mark.net) for name in ("12", "26") for how in ("exit", "workers")]
SAID_BY_NODE = re.compile(r"Debugger listening on ws://127\.0\.0\.1:\d+/\S+|For help, see: \S+|Debugger attached\.|"
                          r"Waiting for the debugger to disconnect\.\.\.|\(node:\d+\) .*Warning.*|\(Use `node .*")


@pytest.fixture
def command():
    """command(name of the Node, program, its arguments, options of node...), with a port of its own."""
    def make(name, program, arguments, *options):
        make.port = free_port()
        return nodes.command(name, program, arguments, f"--inspect-port={make.port}", *options)
    return make


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def is_open(port):
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


def listeners():
    """Ports of this machine that a node, or a pillion, listens at: other tests' servers come and go."""
    lines = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[3] for line in lines if re.search(r'\("(node|MainThread|pillion)', line)}


def counted(session, functions):
    counts = Counter()
    for stack in session.col.stacks:
        counts.update({function: stack.count for function in functions if any(frame.startswith(f"{function} ") for frame in stack.frames)})
    return counts


def said(text):
    """What the program has said on its standard error, and not node of its inspector, nor we."""
    return [line for line in text.splitlines() if line and not line.startswith("pillion") and not SAID_BY_NODE.fullmatch(line)]


# ---- samples ----

@pytest.mark.parametrize("name", SOME)
def test_six_functions_have_the_shares_they_have(name, pillion, workdir, command):
    """Once it is asked; what is run before is long enough for that. V8's own profiler tells some of a function that it has inlined, or has
    just compiled again, as what called it: that is not ours."""
    session = profiler.profile(pillion, workdir / "out", command(name, "shares.js", [3.5, 2.5]), *INSPECTOR, "-f", 199, launch="init")
    told = dict(zip(*[iter(session.done.out.split())] * 2))
    counts = counted(session, told)
    total = sum(counts.values())
    print({function: (share, round(counts[function] / total, 4)) for function, share in told.items()}, session.seconds())
    assert total > 150, session.done
    for function, share in told.items():
        assert abs(counts[function] / total - float(share)) < profiler.by_chance(float(share), total) + .12, (function, counts, told)
    named = sum(stack.count for stack in session.col.stacks if any("_[js]" in frame for frame in stack.frames))
    assert named > .95 * session.col.total, session.frames()
    assert re.search(r'"runtime": "Node\.js v\d+\.\d+', (workdir / "out" / "last_profile.col").read_text())
    assert not is_open(command.port)


def test_lines_and_workers(pillion, workdir, command):
    """A worker's samples have its thread's CPU time; of a leaf the line is known, of callers not. (Of a function that was inlined before the
    session V8 tells nothing.)"""
    running = process.start(command("host", "lines.mjs", [600], "--no-opt"))
    done = process.run([pillion, *INSPECTOR, "-f", 199, "-p", running.pid, "-d", 9, "-o", workdir / "out"], 30)
    used = sum(map(process.cpu_seconds, [running.pid]))
    running.end()
    lines, threads = Counter(), Counter()
    for stack in READER.of_pprof(workdir / "out"):
        leaf = stack.own[-1] if stack.own else None
        found = leaf and re.fullmatch(r"on(\d+) /\S*/lines\.mjs:\d+", leaf.name)
        if found:
            lines[int(found[1]), leaf.line] += stack.count
            threads[stack.tid] += stack.count
    right = sum(count for (wanted, line), count in lines.items() if wanted == line)
    print(lines, threads, used, done)
    assert {wanted for wanted, _ in lines} == {6, 9, 13} and right > .97 * sum(lines.values()), lines
    assert len(threads) == 2 and min(threads.values()) > .3 * sum(threads.values()), threads
    assert .7 * used < sum(threads.values()) < used, (used, threads)


def test_a_long_run_is_asked_a_part_of_the_time(pillion, workdir, command):
    """A session of ten seconds, then none for twenty: both windows have stacks, and all of the time."""
    running = process.start([*command("host", "endings.js", ["natural", 60000])])
    watching = process.start([pillion, *INSPECTOR, "-p", running.pid, "-c", "-d", 8, "-o", workdir / "out"])
    process.until(lambda: watching.err.count("profile_") > 2, 60, lambda: watching.err, .2)
    assert not is_open(command.port), "it is open all the time"
    os.killpg(watching.pid, signal.SIGTERM)
    done = watching.finish(30)
    shares = [float(share) for share in re.findall(r" javascript=(\d+)%", done.err)]
    assert done.status == 0 and shares[0] > 50 and shares[1] > 50, done
    running.end()


# ---- it is not harmed ----

@pytest.mark.parametrize("name,how", ENDINGS)
def test_however_it_ends_its_status_and_output_are_its_own(name, how, pillion, workdir, command):
    alone = process.run(command(name, "endings.js", [how, 2500]), 60)
    session = profiler.profile(pillion, workdir / "out", command(name, "endings.js", [how, 2500]), *INSPECTOR, launch="init")
    done, asked = session.done, "Debugger listening" in session.done.err
    print(done)
    assert done.status == alone.status and done.out == (alone.out if how != "own" else "own handler\n"), (done, alone)
    # nothing of it waits for us but for what a look takes
    assert done.seconds < alone.seconds + 3, (done, alone)
    assert [line for line in said(done.err) if "Error" in line] == [line for line in said(alone.err) if "Error" in line], (done, alone)
    slow = alone.seconds > 2.9 # node's own start takes 0.1 s of an idle machine: it may be over before it is asked
    assert (asked == (how != "own") or (slow and not asked)) and not is_open(command.port), done


def test_a_running_one_goes_on(pillion, workdir, command):
    """An endless loop is asked, and let alone when the profiler ends."""
    running = process.start(command("host", "endings.js", ["loop", 600000]))
    for status in (0, 0):
        done = process.run([pillion, *INSPECTOR, "-p", running.pid, "-d", 3, "-o", workdir / "out"], 30)
        assert done.status == status and re.search(r"javascript=(9\d|100)%", done.err), done
        assert not is_open(command.port) and running.poll() is None, done
    running.end()


def test_while_it_only_begins_it_gets_no_signal(pillion, workdir, command):
    """Before node has a handler a signal would end it; so it is asked when it has one."""
    for _ in range(3):
        running = process.start(command("host", "endings.js", ["natural", 3000]))
        done = process.run([pillion, *INSPECTOR, "-p", running.pid, "-d", 4, "-o", workdir / "out"], 30)
        assert done.status == 0 and running.finish(30).status == 0, done


REFUSED = {"--permission": "was started with --permission", "--disable-sigusr1": "was started with --disable-sigusr1",
           "--inspect-publish-uid=stderr": "was started with --inspect-publish-uid without http"}


@pytest.mark.parametrize("word", REFUSED)
def test_with_such_an_option_it_is_let_alone(word, pillion, workdir, command):
    argv = [word if option.startswith("--inspect-port") else option for option in command("host", "endings.js", ["natural", 3500])]
    if word != "--inspect-publish-uid=stderr": # of a later node: the program itself takes such words for its own
        argv = [option for option in argv if option != word] + [word]
    session = profiler.profile(pillion, workdir / "out", argv, *INSPECTOR, launch="init")
    assert session.done.status == 0 and REFUSED[word] in session.done.err and "Debugger" not in session.done.err, session.done


def test_where_others_would_reach_it_it_is_not_opened(pillion, workdir, command):
    argv = [re.sub("--inspect-port=", "--inspect-port=0.0.0.0:", option) for option in command("host", "endings.js", ["natural", 3500])]
    session = profiler.profile(pillion, workdir / "out", argv, *INSPECTOR, launch="init")
    assert session.done.status == 0 and "give it an --inspect-port of 127.0.0.1" in session.done.err, session.done
    assert "Debugger" not in session.done.err, session.done


def test_one_that_is_open_is_used_and_stays_open(pillion, workdir, command):
    argv = command("host", "endings.js", ["natural", 600000], "--inspect")
    running = process.start(argv)
    process.until(lambda: is_open(command.port), 20, "it listens")
    done = process.run([pillion, *INSPECTOR, "-p", running.pid, "-d", 3, "-o", workdir / "out"], 30)
    assert done.status == 0 and re.search(r"javascript=(9\d|100)%", done.err) and is_open(command.port), done
    running.end()


@pytest.mark.parametrize("options", [["--inspect-port=0"], ["--title=renamed"]], ids=["any port", "another title"])
def test_it_is_found_where_it_opens(options, pillion, workdir, command):
    """Which port is not told before, or no longer: a title is written over the command line."""
    before = listeners()
    argv = command("host", "endings.js", ["natural", 6000], *options)
    session = profiler.profile(pillion, workdir / "out", argv, *INSPECTOR, launch="init")
    assert session.done.status == 0 and re.search(r"javascript=(9\d|100)%", session.done.err), session.done
    assert listeners() <= before, listeners() - before


def test_a_port_that_is_another_s_is_let_alone(pillion, workdir, command):
    """Nobody connects to it, and the process gets no signal as long as it is taken."""
    argv = command("host", "endings.js", ["natural", 4000])
    with socket.create_server(("127.0.0.1", command.port)) as listener:
        listener.settimeout(.01)
        session = profiler.profile(pillion, workdir / "out", argv, *INSPECTOR, launch="init")
        with pytest.raises(TimeoutError):
            listener.accept()
    assert session.done.status == 0 and "Debugger" not in session.done.err and "Starting inspector" not in session.done.err, session.done


def test_workers_of_a_cluster_take_turns(pillion, workdir, command):
    """Its primary is not asked, for it would have all of them open at once."""
    before = listeners()
    argv = [option for option in command("host", "endings.js", ["cluster", 18000]) if not option.startswith("--inspect-port")]
    session = profiler.profile(pillion, workdir / "out", argv, *INSPECTOR, launch="init")
    processes = {stack.labels.get("process_id") for stack in READER.of_pprof(session.folder) if stack.own}
    print(session.done, processes)
    assert session.done.status == 0 and len(processes) >= 2, session.done
    assert "primary of a cluster" in session.done.err and "address already in use" not in session.done.err, session.done
    assert listeners() <= before, listeners() - before


def test_a_killed_profiler_leaves_it_running(pillion, workdir, command):
    """Nobody closes the port then: it is used by the next one as it is, and closes with its process."""
    running = process.start(command("host", "endings.js", ["natural", 600000]))
    watching = process.start([pillion, *INSPECTOR, "-p", running.pid, "-c", "-d", 30, "-o", workdir / "out"])
    process.until(lambda: is_open(command.port), 20, lambda: watching.err)
    os.kill(watching.pid, signal.SIGKILL)
    watching.finish(30)
    time.sleep(.2)
    assert running.poll() is None and is_open(command.port)
    done = process.run([pillion, *INSPECTOR, "-p", running.pid, "-d", 3, "-o", workdir / "out"], 30)
    assert done.status == 0 and re.search(r"javascript=(9\d|100)%", done.err), done
    running.end()


def test_letting_jvms_alone_does_not_forbid_it(pillion, workdir, command):
    session = profiler.profile(pillion, workdir / "out", command("host", "endings.js", ["exit", 3000]), *INSPECTOR, "--no-java-attach", launch="init")
    assert session.done.status == 3 and "Debugger listening" in session.done.err, session.done


def test_it_is_asked_for_by_name_only(pillion, workdir, command):
    session = profiler.profile(pillion, workdir / "out", command("host", "endings.js", ["natural", 3500]), "--perf-mode", "disabled", launch="init")
    assert session.done.status == 0 and "Debugger" not in session.done.err, session.done
    assert "--nodejs-mode inspector" in session.done.err, "what there is to be had is not told"

"""What a run says, in each place where it is said: a terminal, a log, the files; and how much of it."""
import html
import os
import re
from pathlib import Path

import pytest

from lab import namespace, process, profiler, terminal, tiers

pytestmark = pytest.mark.measures

# Without perf events the sentences are the same on every machine.
PLAIN = ["--perf-mode", "disabled"]
REFUSAL = "perf events refused (EPERM: seccomp filter)"


GOLDEN = Path(__file__).parent.parent / "golden"


def normal(text):
    """A transcript without what is different each time: figures, moments, where it was run."""
    text = re.sub(r"pillion \d+\.\d+\.\d+", "pillion VERSION", text)
    text = re.sub(r"profile_\d{4}-\d\d-\d\dT\d{6}Z(-\d+)?", "profile_T", text)
    text = re.sub(r"\d\d:\d\d cpu=", "HH:MM cpu=", text)
    # A tick may fall into the kernel.
    text = re.sub(r"[0-9.]+ s kernel, hidden, | kernel_hidden=\d+%", "", text)
    return re.sub(r"(?<![\w.-])\d+(\.\d+)?", "N", text)


def golden(name):
    return (GOLDEN / name).read_text()


def words(text):
    """Where a line is broken depends on a pid's digits."""
    return normal(" ".join(text.split())).split()


# ---- A command on a terminal

ENVIRONMENTS = ["LC_ALL=C", "LC_ALL=C.UTF-8", "NO_COLOR=1", "CLICOLOR_FORCE=1", "TERM=dumb", "CI=1"]


@pytest.fixture
def here(workdir, pillion, program):
    """An empty folder with ./serve, and pillion in PATH."""
    (workdir / "serve").symlink_to(program("act"))
    return workdir, {"PATH": f"{pillion.parent}:{os.environ['PATH']}"}


def printed(here, columns, line):
    folder, variables = here
    shell = terminal.Shell(folder, variables, columns)
    try:
        return shell.command(line).removesuffix(terminal.PROMPT).split("\n", 1)[1]
    finally:
        shell.close()


def on_a_terminal(here, columns, line):
    return terminal.shown(printed(here, columns, line))


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_a_command_on_a_terminal(here, environment):
    text = on_a_terminal(here, 200, f"env {environment} pillion --perf-mode disabled -- ./serve spin 0.3")
    assert words(text) == golden("run-terminal.txt").split()
    assert all(len(line) <= 76 for line in text.splitlines()) and text.isascii() and "\x1b" not in text


def test_a_command_on_a_narrow_terminal(here):
    text = on_a_terminal(here, 40, "pillion --perf-mode disabled -- ./serve spin 0.3")
    assert all(len(line) < 40 for line in text.splitlines() if "profile_" not in line), text
    assert words(text) == golden("run-terminal.txt").split()


def test_a_command_in_a_container_log(here):
    folder, variables = here
    done = process.run(["pillion", *PLAIN, "--launch", "init", "-d", "1", "--", "./serve", "spin", "1.5"], cwd=folder,
                       env=variables)
    shown = re.sub(r"^pillion: HH:MM(.*\n)(pillion: HH:MM.*\n)+", r"pillion: HH:MM\1", normal(done.err.replace(str(folder), "HERE")), flags=re.M)
    assert shown == golden("run-log.txt")


def transcripts(name):
    for part in (GOLDEN / name).read_text().split("\n\n"):
        first, *shown, status = part.strip("\n").splitlines()
        yield first.removeprefix("$ ").split(), "\n".join(shown) + "\n", int(status.strip("[]"))


@pytest.mark.parametrize("line, shown, status", transcripts("run-mistakes.txt"))
def test_mistakes_that_a_run_finds(here, line, shown, status):
    folder, variables = here
    (folder / "serve.sh").write_text("#!/bin/sh\n")
    done = process.run([*line[:1], *(["--launch", "init"] if "--" in line else []), *line[1:]], cwd=folder, env=variables)
    said = re.sub(r"visible: [0-9, .]+", "visible: ...", done.err)
    # What true takes may be a tick, or nothing.
    assert re.sub(r"( native_noperf=N%)? lost=Ns?( \(.*?\)\))?", " lost=N", normal(said)) == shown
    assert (done.status, done.out) == (status, "")


@pytest.mark.root
@pytest.mark.parametrize("columns", [None, 80])
def test_nowhere_to_write_is_told_at_the_beginning(here, columns):
    """Not when the window ends, and what it saw is gone; a log names the folder, which is read elsewhere."""
    folder, variables = here
    line = f"unshare --mount sh -c 'mount -t tmpfs -o ro none /mnt && cd /mnt && exec pillion --perf-mode disabled -d 2 -- " \
           f"{folder}/serve spin 2'"
    if columns:
        text = on_a_terminal(here, columns, line)
        assert "\n  no files: cannot write . (read-only, EROFS); give -o DIR" in text, text
    else:
        text = process.run(["sh", "-c", line], env=variables).err
        process.settle(15)
        assert "to /mnt every" in text and text.count("cannot write /mnt (read-only, EROFS); give -o DIR") == 1, text
        assert text.count(" (no files)") == text.count(" cpu="), text
    first = text.index("cannot write")
    assert first < text.index(" s CPU" if columns else " cpu="), text


def test_a_process_that_is_attached_to(here):
    """On a terminal the block, in a log a line per window and the end."""
    folder, _ = here
    target = process.start([folder / "serve", "spin", "30"], cwd=folder)
    try:
        text = on_a_terminal(here, 80, f"pillion --perf-mode disabled -p {target.pid} -d 1")
    finally:
        target.end()
    assert words(text) == golden("attach-terminal.txt").split()


# ---- How it goes, while it goes on

@pytest.fixture
def spinning(here):
    """The pid of a program that runs on."""
    folder, _ = here
    one = process.start([folder / "serve", "spin", "60"], cwd=folder)
    yield one.pid
    one.end()


DRAWN = re.compile(r"\r(  \d+ s  [^\r\n]*)\r")


def drawn(text):
    return [line.rstrip(" ") for line in DRAWN.findall(text)]


@pytest.mark.parametrize("columns, colour", [(80, ""), (40, "NO_COLOR=1 ")])
def test_a_terminal_tells_how_it_goes_and_forgets_it(here, spinning, columns, colour):
    """One line, once a second, narrower than the terminal; nothing of it is left in the end."""
    text = printed(here, columns, f"{colour}pillion --perf-mode disabled -p {spinning} -d 3")
    lines = drawn(text)
    assert 1 <= len(lines) <= 3 and len(lines) == len(set(lines)), text
    for line in lines:
        assert re.fullmatch(r"  \d s  \d\.\d s CPU(  not seen \d+ %)?", line) and len(line) < columns, lines
    assert words(terminal.shown(text)) == golden("attach-terminal.txt").split(), text
    assert "\x1b" not in text and "\r" not in terminal.shown(text)


def test_nothing_is_drawn_where_nobody_looks_or_somebody_else_writes(here, spinning):
    """CI's log, a dumb terminal, other formats, a log file, a command's own terminal, a job in the background."""
    folder, variables = here
    for number in range(1, 8):
        (folder / str(number)).mkdir()
    attached = f"pillion --perf-mode disabled -p {spinning} -d 2 -o"
    lines = [f"CI=1 {attached} 1", f"TERM=dumb {attached} 2", f"{attached} 3 --log-format logfmt", f"{attached} 4 -q",
             f"{attached} 5 --log-file log", "pillion --perf-mode disabled -o 6 -- ./serve wait 2"]
    text = printed(here, 80, "(" + " & ".join(lines) + " & wait)")
    assert text.count(" CPU in ") == 3, "the summaries of the first two and the command"
    assert drawn(text) == [] and "\r  " not in text, text
    background = printed(here, 80, f"{attached} 7 & wait")
    assert drawn(background) == [] and " CPU in " in background, background
    done = process.run(["pillion", *PLAIN, "-p", spinning, "-d", "2"], cwd=folder, env=variables)
    assert "\r" not in done.err and "\r" not in (folder / "log").read_text(), done


def test_nothing_but_ascii_is_said_in_any_locale(here, run):
    """What is foreign is shown as it is; a list that is cut ends in dots."""
    folder, variables = here
    for line in (["-p", "4194304"], ["-a", "--match", "no such text", "-d", "1"], ["-o", "x" * 5000, "--", "true"]):
        done = run(["pillion", *PLAIN, *line], cwd=folder, env=variables)
        assert done.err.isascii() and done.err, done


# ---- A window that lacks stacks says why, everywhere

def page_says(folder):
    page = (folder / "last_flamegraph.html").read_text(encoding="utf-8")
    return html.unescape(re.search(r'<p id="unseen".*?</p>', page, re.S).group(0))


def told_everywhere(session, folder, reason):
    """`reason` is a pattern of gate and remedy; in the log it may stand in any line."""
    for what, text in (("log", session.done.err), (".col", session.col.header["pillion"]["reason"] or ""),
                       ("html", page_says(folder)), (".pprof", "\n".join(session.pprof.comments))):
        assert re.search(reason, text), (what, text, session.done)


SECCOMP = (r"perf events refused \(EPERM: seccomp filter\); allow perf_event_open in the container's seccomp profile[,;] "
           "(or add CAP_PERFMON|CAP_PERFMON is present|which no capability opens)")


def test_refused_perf_events(pillion, program, workdir, refuse):
    session = profiler.profile(pillion, workdir, [program("act"), "spin", "0.5"],
                               prefix=[refuse, "EPERM", "perf_event_open", "--"])
    told_everywhere(session, workdir, SECCOMP)
    assert "EMPTY: " in session.done.err
    assert re.search(r" cpu=.*\(perf events refused \(EPERM: seccomp filter\)\)", session.done.err), session.done


def test_refused_perf_events_on_a_terminal(here, refuse):
    text = on_a_terminal(here, 80, f"{refuse} EPERM perf_event_open -- pillion -- ./serve spin 0.3")
    block = text[text.index(" CPU in "):]
    assert re.search(r"\n  not seen: .*\n  why: " + SECCOMP, re.sub(r"\n    ", " ", block)), text


@pytest.mark.root
def test_hidden_kernel_time(pillion, program, workdir):
    (workdir / "out").mkdir()
    (workdir / "out").chmod(0o777)
    act = workdir / "act"
    act.write_bytes(program("act").read_bytes())
    act.chmod(0o755)
    script = 'mount -t tmpfs none /mnt && echo 2 > /mnt/level && mount --bind /mnt/level ' \
             '/proc/sys/kernel/perf_event_paranoid && umount -l /mnt && exec "$@"'
    session = profiler.profile(profiler.copy(pillion, workdir), workdir / "out", [act, "kernel", "0.8"],
                               prefix=["unshare", "--mount", "sh", "-c", script, "sh", *profiler.as_nobody()])
    if session.share("[kernel, hidden]") < 0.05:
        pytest.skip("kernel code may be sampled here by anybody")
    told_everywhere(session, workdir / "out", r"kernel code may not be sampled \(kernel.perf_event_paranoid\); "
                                              r"set kernel.perf_event_paranoid to 1 or less on the host, or add CAP_PERFMON")


@pytest.mark.root
def test_memory_that_may_not_be_read(pillion, repository, workdir):
    """The interpreter's stacks are what is missing, so who it runs as stands before the perf events."""
    (workdir / "out").mkdir()
    (workdir / "out").chmod(0o777)
    target = process.start(["/usr/bin/python3", repository / "tests/live/programs/python/shares.py", "30"])
    try:
        done = process.run([*profiler.as_nobody(), profiler.copy(pillion, workdir), *PLAIN, "-p", target.pid, "-d", "1",
                            "-o", workdir / "out"])
    finally:
        target.end()
    session = profiler.Session(done, workdir / "out")
    assert f" profiles pid {target.pid} " in done.err.splitlines()[0], done
    told_everywhere(session, workdir / "out", r"it runs as another user \(uid 0\); run as its user or add SYS_PTRACE")


def test_processes_that_are_too_short(pillion, workdir):
    loop = "i=0; while [ $i -lt 600 ]; do /bin/true; i=$((i+1)); done"
    session = profiler.profile(pillion, workdir, ["sh", "-c", loop], "-f", "2")
    sums = session.col.header["pillion"]
    if sums["not_seen"].get("[lost]", 0) < 0.1 * sums["cpu_ns"]:
        pytest.skip("perf events are refused here, or all of it was seen")
    told_everywhere(session, workdir, r"processes or threads ran for less than a sample each, .*; raise -f")


def test_a_window_that_saw_enough_gives_no_reason(pillion, program, workdir):
    session = profiler.profile(pillion, workdir, [program("act"), "spin", "0.6"])
    if REFUSAL in session.done.err or session.share("[native, no perf]"):
        pytest.skip("perf events are refused here")
    assert session.col.header["pillion"]["reason"] is None
    assert "why:" not in session.done.err and "warning" not in session.done.err


# ---- How much is said

def windows_and_others(text):
    lines = profiler.lines(text)
    assert len(lines) == len(text.splitlines()), "one event is one line"
    windows = [line for line in lines if re.match(r"pillion: \d\d:\d\d cpu=", line)]
    return windows, [line for line in lines if line not in windows]


def test_a_steady_run_is_a_line_per_window(pillion, program, workdir):
    """Windows of a second stand for those of a minute: 1.1 lines each once it runs, and two at its end."""
    session = profiler.profile(pillion, workdir, ["sh", "-c", '"$0" spin 0.5; "$0" wait 4.5', program("act")], "-d", "1",
                               launch="init")
    windows, others = windows_and_others(session.done.err)
    assert len(windows) == len(session.windows) >= 4
    behind = session.done.err.split(windows[0], 1)[1].splitlines()
    assert len(behind) - 1 <= 1.1 * (len(windows) - 1) + 2, session.done
    assert len(others) == len(set(others)) <= 4, others
    assert re.fullmatch(rf"pillion: end: {len(windows)} windows, 0\.\d s CPU, .* without stacks", behind[-1]), behind


@pytest.mark.root
def test_a_failing_start_is_at_most_15_lines_and_each_cause_is_said_once(pillion, program, workdir, refuse):
    """No perf events, forty programs of another user by forty names, nowhere to write, settings that are wrong."""
    names = [f"service{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(40)]
    for name in names:
        (workdir / name).symlink_to(program("act"))
    load = namespace.Namespace(["sh", "-c", " ".join(f"{workdir}/{name} spin 0.05 &" for name in names) + " wait; read end"])
    copy = profiler.copy(pillion, workdir)
    wrong = ["PILLION_FORMAT=cll", "PILLION_COLRO=never", "PILLION_MAX_MEMORY=much", "PILLION_PROFILING_FREQUENCY=-1"]
    try:
        seen, _ = load.profile("env", *wrong, refuse, "EPERM", "perf_event_open", "--", *profiler.as_nobody(), copy, "-a",
                               "--continuous", "-d", "1", "-o", "/proc/nowhere")
        load.begin()
        process.until(lambda: len(windows_and_others(seen.err)[0]) >= 3, 40)
    finally:
        load.end()
    for pid in process.descendants_of(seen.pid):
        os.kill(pid, 15)
    done = seen.finish()
    windows, others = windows_and_others(done.err)
    causes = [re.sub(r"\d+|service\w+", "", line) for line in others]
    assert len(causes) == len(set(causes)), others
    assert len(others) + 1 <= 15, others
    assert len([line for line in others if "may not be looked into" in line and "EMPTY" not in line]) == 1, others
    for said in ("PILLION_COLRO", "perf events refused", "cannot write", "EMPTY"):
        assert any(said in line for line in others), (said, others)
    assert len(windows) >= 3, "a window's line is not one of the 15"


# ---- Texts that programs read

ENTRY = re.compile(r"^ {2,6}(?:-\w, )?--(?:\[no-\])?([a-z-]+)(.*(?:\n {30,}.*)*)", re.M)


def options(text):
    """Every option that is listed, without dashes -> what is said of it."""
    return {found[1]: " ".join(found[2].split()) for found in ENTRY.finditer(text)}


def without_marks(page):
    return re.sub(r"\x1b\[[0-9;]*m|.\x08", "", page)


def test_the_manual_page_is_accepted_by_man_and_has_every_option(run, pillion, workdir):
    reason = tiers.tool_missing("man")
    if reason:
        pytest.skip(reason)
    (workdir / "pillion.1").write_text(run([pillion, "help", "man"]).out)
    done = run(["man", "--warnings", "-l", workdir / "pillion.1"],
               env={**os.environ, "LC_ALL": "C", "MANWIDTH": "80", "MANPAGER": "cat"})
    assert done.status == 0 and done.err == "", done
    page = without_marks(done.out).replace("-\n", "-")
    names = options(run([pillion, "help", "options"]).out)
    assert len(names) > 70
    for name in names:
        assert re.search(rf"--(\[no-\])?{name}\b", page), name


@pytest.mark.parametrize("shell, written", [("bash", "--{}"), ("zsh", "--{}"), ("fish", "-l {}")])
def test_completions_are_accepted_and_have_every_option_of_a_run(run, pillion, workdir, shell, written):
    reason = tiers.tool_missing(shell)
    script = run([pillion, "help", shell]).out
    (workdir / "script").write_text(script)
    works = options(run([pillion, "help", "options"]).out.split("\npillion dump\n")[0])
    assert len(works) > 50
    for name, said in works.items():
        assert "(not available yet)" in said or written.format(name) in script, name
    if reason:
        pytest.skip(reason)
    done = run([shell, "-n", workdir / "script"])
    assert done.status == 0 and done.err == "", done

"""pillion top: its screens at three sizes by keys (tests/golden/top-*.txt), on a dumb terminal, through a pipe, and at its ends."""
import json
import os
import re
import signal
from pathlib import Path

import pytest

from lab import process, screen

pytestmark = pytest.mark.measures

GOLDEN = Path(__file__).parent.parent / "golden"
FUNCTIONS = ("sixty", "thirty", "ten")


@pytest.fixture
def terminal(workdir):
    opened = []

    def show(argv, *size, **options):
        opened.append(screen.Screen(workdir, argv, *size, **options))
        return opened[-1]
    yield show
    for one in opened:
        one.close()


@pytest.fixture
def part_time(program):
    return program("part_time", "-O1", "-g")


def ended(terminal, status):
    """The program has ended with this status, and the terminal is as it was."""
    lines = terminal.expect(f"EXIT={status}$")
    assert lines[-1:] != [] and not any(line.strip() in ("-icanon", "-echo", "-isig") for line in lines), lines
    return lines


def screens(top, columns, rows):
    """What is seen at this size of a search, a selected row, processes, the functions of one, help and the question at the end."""
    top.resize(columns, rows)
    top.send("1", "o", "/", "t", "y", "Enter", "T")
    shown = [screen.normalised(top.expect(r">total%.*/ty.*\n.* sixty\n.* thirty$"), FUNCTIONS)]
    top.send("j", "j")
    shown.append(screen.normalised(top.expect(r"^> .*thirty"), FUNCTIONS))
    top.send("Escape")  # alone: a letter right behind it would be Alt and that letter
    top.expect(r">total%  function(?!.*/ty)")
    top.send("o", "2")
    shown.append(screen.normalised(top.expect(r"> *own%.*process(.|\n)*part_time \(pid"), ("part_time",)))
    top.send("Enter")
    top.expect(r"function of part_time")
    top.send("?")
    shown.append(screen.normalised(top.expect("any key goes back"), FUNCTIONS))
    top.send("x", "q")
    shown.append(screen.normalised(top.expect(r"\[y/N\]")[-1:], ()))
    top.send("Escape")
    top.expect("q end")
    top.send("Escape")
    top.expect(r"^ +> *own%[^\n]* function(?! of)")
    return "\n----\n".join(shown)


def test_screens_at_three_sizes_by_keys(pillion, part_time, terminal):
    top = terminal([pillion, "top", "--", part_time, "60"])
    top.expect(r" sixty$")
    for columns, rows in ((80, 24), (120, 40), (40, 12)):
        text = screens(top, columns, rows)
        assert text == (GOLDEN / f"top-{columns}x{rows}.txt").read_text(), text
    top.resize(80, 24)
    top.send("q", "n")
    assert "sixty" in "\n".join(ended(top, 143))  # the command's: it was ended by SIGTERM


def test_q_and_y_write_the_files_of_the_whole_run(pillion, part_time, terminal, workdir):
    top = terminal([pillion, "top", "--", part_time, "60"])
    top.expect("sixty")
    top.send("q")
    top.expect(r"\[y/N\]")
    assert not list(workdir.glob("*.html"))
    top.send("y")
    ended(top, 143)
    assert "sixty" in next(workdir.glob("profile_*.col")).read_text() and (workdir / "last_flamegraph.html").exists()


def test_it_follows_the_size_of_the_terminal_and_pauses(pillion, part_time, terminal):
    top = terminal([pillion, "top", "--", part_time, "60"], 100, 30)
    top.expect("sixty")
    top.resize(50, 10)
    assert len(top.expect(r"^pillion top[^\n]{1,39}$(.|\n)*q end")) <= 10
    top.send("Space")
    top.expect("PAUSED")
    top.resize(8, 3)
    top.expect("too smal")
    top.resize(80, 24)
    top.send("C-z", "C-s", "Space")  # the first two are keys without a meaning
    top.expect(r"^pillion top")
    top.send("C-c")
    ended(top, 143)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_terminal_is_given_back_at_a_signal(pillion, terminal, program, number):
    busy = process.start([program("part_time", "-O1", "-g"), "60"])
    top = terminal([pillion, "top", "-p", busy.pid])
    top.expect("sixty")
    profiler = next(pid for pid in process.descendants_of(top.server) if process.command_line(pid).startswith(str(pillion)))
    os.kill(profiler, number)
    if number == signal.SIGHUP:  # opens the log again, as ever
        top.send("C-c")
    ended(top, 0)
    busy.end()


def test_a_terminal_that_goes_away_ends_it(pillion, terminal, program):
    busy = process.start([program("part_time", "-O1", "-g"), "60"])
    top = terminal([pillion, "top", "-p", busy.pid])
    top.expect("sixty")
    pids = [pid for pid in process.descendants_of(top.server) if process.command_line(pid).startswith(str(pillion))]
    top.close()
    process.until(lambda: all(process.state_of(pid) in (None, "Z") for pid in pids), 10, "its end")
    top.close = lambda: None
    busy.end()


@pytest.mark.parametrize("environment, sequences", [({"TERM": "dumb"}, False), ({"NO_COLOR": "1"}, True)])
def test_dumb_terminals_get_lines_and_no_colour_is_none(pillion, part_time, terminal, environment, sequences):
    top = terminal([pillion, "top", "--interval", "1", "--", part_time, "60"], environment=environment)
    lines = top.expect("sixty")
    colours = top.call("capture-pane", "-p", "-e", "-t", "x")
    assert "\x1b[7m" not in colours and "\x1b[1m" not in colours
    assert any(line.startswith("pillion top: ") for line in lines) == sequences
    top.send("C-c")
    ended(top, r"(143|130)")


def test_a_pipe_gets_tables_without_sequences_whose_own_shares_are_all(run, pillion, part_time, workdir):
    done = run([pillion, "top", "--once", "--interval", "2", "--", part_time, "60"], cwd=workdir)
    assert done.status == 143 and "\x1b" not in done.out
    rows = re.findall(r"^ *([\d.]+) +([\d.]*) +(\S.*)$", done.out, re.M)
    own = {row[2].split()[-1]: float(row[0]) for row in rows if row[0].count(".") == 1}
    assert own["sixty"] == max(own.values())
    assert sum(own.values()) == pytest.approx(100, abs=2), done.out
    assert list(workdir.iterdir()) == []


def test_json_is_an_object_per_interval(run, pillion, part_time, workdir):
    done = run([pillion, "top", "--json", "--interval", "1", "-o", workdir / "out", "--", part_time, "3"], cwd=workdir)
    objects = [json.loads(line) for line in done.out.splitlines()]
    assert done.status == 0 and len(objects) >= 2
    last = objects[-1]
    for table in ("functions", "processes", "threads"):
        own = [row["own_percent_since_start"] for row in last[table]]
        assert sum(own) + last.get(f"other_{table}", {}).get("own_percent_since_start", 0) == pytest.approx(100, abs=1.5), last
    busiest = max(objects, key=lambda one: one["cpu_s"])
    recent = [*busiest["functions"], busiest.get("other_functions", {})]
    assert sum(row.get("own_percent", 0) for row in recent) == pytest.approx(100, abs=1.5), busiest
    sixty = next(row for row in last["functions"] if row["name"] == "sixty")
    assert sixty["language"] == "native" and 40 < sixty["total_percent_since_start"] < 75
    assert 0 <= last["own_cpu_percent"] and last["own_rss_mb"] > 0 and last["cores"] >= 0
    assert list((workdir / "out").glob("profile_*.col"))  # -o: without a question


def test_a_reader_that_has_enough_ends_it(run, pillion, part_time, workdir):
    done = run(["bash", "-c", f"{pillion} top --interval 0.2 -- {part_time} 60 | head -1; exit ${{PIPESTATUS[0]}}"], cwd=workdir)
    assert done.status == 143 and len(done.out.splitlines()) == 1


def test_wrong_lines_are_told(run, pillion, workdir):
    assert "not an option of top" in run([pillion, "top", "-u"], cwd=workdir).err
    assert run([pillion, "top", "-p", "1", "--", "true"], cwd=workdir).status == 125
    assert run([pillion, "top", "--", "./missing"], cwd=workdir).status == 127

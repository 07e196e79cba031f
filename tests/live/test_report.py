"""`pillion report`, and what a terminal sees at a run's end: the same heaviest functions and paths."""
import json
import re

import pytest

from lab import process, terminal

pytestmark = pytest.mark.measures

SPIN = "import sys, time\n" \
       "def inner(end):\n    while time.process_time() < end:\n        for i in range(20000): i * i\n" \
       "def outer(end):\n    inner(end)\n" \
       "outer(float(sys.argv[1]))\n"


@pytest.fixture(scope="module")
def saved(pillion, tmp_path_factory):
    """A folder with the profiles of a real run: half a second of Python, without perf, so that it is the same everywhere."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "spin.py").write_text(SPIN)
    done = process.run([pillion, "--launch", "init", "--", "/usr/bin/python3", "spin.py", "0.6"], cwd=folder)
    assert done.status == 0, done
    return folder


def tables(text):
    """The head's lines by key; the rows of each table by its last column's name."""
    head, *parts = text.split("\n\n")
    rows = {part.splitlines()[0].split()[-1]: [line.split(None, len(part.splitlines()[0].split()) - 1) for line in part.splitlines()[1:]]
            for part in parts}
    return dict(line.split(": ", 1) for line in head.splitlines()), rows


@pytest.mark.parametrize("name", ["last_profile.pprof", "last_profile.col"])
def test_a_saved_profile_is_told_as_text(run, pillion, saved, name):
    done = run([pillion, "report", name], cwd=saved)
    assert (done.status, done.err) == (0, ""), done
    head, rows = tables(done.out)
    total = float(re.match(r"([0-9.]+) s of CPU time, ", head["total"])[1])
    assert head["service"] == "python3" and 0.5 < total < 3
    assert sum(float(row[0]) for row in rows["kind"]) == pytest.approx(100, abs=0.1)
    assert sum(float(row[1]) for row in rows["kind"]) == pytest.approx(total, abs=0.01)
    functions = {row[-1]: row for row in rows["function"]}
    assert len(functions) <= 10
    own = [float(row[0]) for row in rows["function"]]
    assert own == sorted(own, reverse=True)
    inner = next(row for name, row in functions.items() if name.startswith("inner (") and name.endswith("spin.py)"))
    assert float(inner[1]) > 80 and inner[4] == "python"
    assert "outer (spin.py) > inner (spin.py)" in rows["path"][0][-1], rows["path"]
    assert rows["process"][0][-1].startswith("python3") and float(rows["process"][0][0]) > 95


def test_the_object_says_the_same_as_the_text(run, pillion, saved):
    text = run([pillion, "report", "last_profile.pprof", "--top=3"], cwd=saved).out
    _, rows = tables(text)
    done = run([pillion, "report", "--json", "--top", "3", "last_profile.pprof"], cwd=saved)
    told = json.loads(done.out)
    assert done.out.endswith("}\n") and done.out.isascii() and done.err == ""
    assert [one["function"] for one in told["functions"]] == [row[-1] for row in rows["function"]]
    assert len(told["functions"]) == 3 < told["function_count"]
    assert [f"{one['percent']:.2f}" for one in told["paths"]] == [row[0] for row in rows["path"]]
    assert sum(one["amount"] for one in told["kinds"] + told["not_seen"]) == told["total"]
    assert told["processes"][0]["pid"] > 1 and told["unit"] == "nanoseconds"
    assert told["start"] < told["end"]
    every = json.loads(run([pillion, "report", "--json", "--top", "1000", "last_profile.pprof"], cwd=saved).out)
    assert len(every["functions"]) == every["function_count"]
    assert sum(one["own"] for one in every["functions"]) + sum(one["amount"] for one in every["not_seen"]) == every["total"]


def test_several_files_add_up_and_standard_input_is_one(run, pillion, saved):
    one = json.loads(run([pillion, "report", "--json", "last_profile.col"], cwd=saved).out)
    done = process.run(["sh", "-c", f"{pillion} report --json - last_profile.col < last_profile.col"], cwd=saved)
    assert json.loads(done.out)["total"] == 2 * one["total"], done


def test_another_sample_type_is_told_in_its_unit(run, pillion, saved):
    done = run([pillion, "report", "last_profile.pprof", "--type", "samples"], cwd=saved)
    head, rows = tables(done.out)
    assert re.match(r"\d+ samples, ", head["total"]) and re.fullmatch(r"\d+", rows["function"][0][2]), done
    done = run([pillion, "report", "last_profile.pprof", "--type", "nope"], cwd=saved)
    assert done.status == 1 and "there is no sample type nope in it; there is: samples, cpu" in done.err


@pytest.mark.parametrize("words, status, said", [
    ([], 2, "wrong arguments for report; usage: pillion report FILE... [--top N] [--json]"),
    (["x.col", "--top", "0"], 2, '--top expects 1 to 1000 rows, got "0"'),
    (["x.col", "--topp", "3"], 2, "unknown option --topp; did you mean --top?"),
    (["x.col"], 1, "cannot open x.col: No such file or directory (ENOENT)"),
    (["last_flamegraph.html"], 1, "last_flamegraph.html: HTML cannot be read; collapsed stacks (.col), pprof and flight recordings (.jfr) can"),
    (["/dev/null"], 1, "/dev/null: the file is empty"),
])
def test_mistakes(run, pillion, saved, words, status, said):
    done = run([pillion, "report", *words], cwd=saved)
    assert (done.status, done.out, done.err) == (status, "", f"pillion: {said}\n")


def test_a_report_that_cannot_be_written_is_no_success(pillion, saved):
    done = process.run(["sh", "-c", f"{pillion} report last_profile.col > /dev/full"], cwd=saved)
    assert done.status == 1 and done.err.count("\n") == 1 and "ENOSPC" in done.err, done


def test_hostile_names_are_words(run, pillion, workdir):
    names = ["\x1b[31mred", "a\u202eb", "c\u2028d", "e\u009bf"]
    (workdir / "x.col").write_text("app;plain 1\n" * 400 + "".join(f"app;{name} 5000\n" for name in names), encoding="utf-8")
    done = run([pillion, "report", "x.col"], cwd=workdir)
    assert done.status == 0 and not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", done.out), ascii(done.out)
    told = [row[-1] for row in tables(done.out)[1]["function"]]
    assert sorted(told) == sorted(["\\x1b[31mred", "a\\u202eb", "c\\u2028d", "e\\x9bf", "plain"])
    told = json.loads(run([pillion, "report", "--json", "x.col"], cwd=workdir).out)
    assert {one["function"] for one in told["functions"]} == {*names, "plain"}


# ---- On a terminal

HEAVIEST = re.compile(r"\n +own    total  heaviest functions\n((?:  +[0-9.]+ %  +[0-9.]+ %  .*\n)+) +total  heaviest paths\n((?: +[0-9.]+ %  .*\n)+)  cost: ")


def on_a_terminal(pillion, folder, columns, line):
    shell = terminal.Shell(folder, {"PATH": f"{pillion.parent}:/usr/bin:/bin"}, columns)
    try:
        return terminal.shown(shell.command(line, 30))
    finally:
        shell.close()


@pytest.mark.parametrize("columns", [80, 40])
def test_a_run_on_a_terminal_ends_with_the_heaviest(pillion, saved, columns):
    text = on_a_terminal(pillion, saved, columns, "pillion -o t -- python3 spin.py 0.3")
    functions, paths = HEAVIEST.search(text).groups()
    assert 1 <= len(functions.splitlines()) <= 5 and 1 <= len(paths.splitlines()) <= 2, text
    assert all(len(line) < columns for line in (functions + paths).splitlines()), text
    assert "inner (spin.py)" in functions and all(re.match(r" +\d+\.\d %  (\.\.\. > )?\S", line) for line in paths.splitlines()), text


def test_of_several_windows_the_whole_run_is_told(pillion, saved):
    text = on_a_terminal(pillion, saved, 80, "pillion -o w -d 1 -- python3 spin.py 1.4")
    assert text.count(" CPU in ") >= 2 and text.count("heaviest functions") == text.count("heaviest paths") == 1, text
    assert re.search(r"the whole run, \d windows: w/run_flamegraph.html\n +own    total  heaviest functions\n", text), text


def test_nobody_else_is_told(pillion, saved):
    """A quiet run, a log, a file for messages; nor other formats."""
    line = "pillion {} -- python3 spin.py 0.2"
    shown = [on_a_terminal(pillion, saved, 80, line.format(options)) for options in
             ("-q -o q", "-o l --log-format logfmt", "-o f --log-file log")]
    done = process.run([pillion, "-o", "n", "--launch", "init", "--", "/usr/bin/python3", "spin.py", "0.2"], cwd=saved)
    assert "heaviest" not in "".join([*shown, done.err, (saved / "log").read_text()])


@pytest.mark.parametrize("line", ["pillion -o i -- ./loop", "pillion -o i -p $LOOP"])
def test_what_follows_ctrl_c_begins_on_a_line_of_its_own(pillion, saved, line):
    (saved / "loop").write_text("#!/bin/sh\nwhile :; do :; done\n")
    (saved / "loop").chmod(0o755)
    shell = terminal.Shell(saved, {"PATH": f"{pillion.parent}:/usr/bin:/bin"}, 80)
    try:
        shell.command("./loop & LOOP=$!")
        shell.send(f"{line}\n")
        shell.expect(" Hz")
        shell.quiet(0.4)
        shell.send("\x03")
        text = terminal.shown(shell.prompt())
        shell.command("kill $LOOP")
    finally:
        shell.close()
    assert re.search(r"^pillion: \d\.\d s, ", text, re.M), text

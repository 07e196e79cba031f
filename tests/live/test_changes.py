"""What `render --diff` says to have changed, of samples that are drawn with known chances."""
import json
import os
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))

from lab.chosen import PROGRAM, changed, draw  # noqa: E402
from pages import Decoded, block  # noqa: E402


@pytest.fixture
def compare(run, pillion, workdir):
    """compare(before, now) → what is said, and the page's judgement {function: [own, with callees]}."""
    def made(before, now):
        for name, text in (("before.col", before), ("now.col", now)):
            (workdir / name).write_text(text)
        done = run([pillion, "render", "now.col", "--diff", "before.col", "-o", "d.html"], cwd=workdir)
        assert done.status == 0 and done.err == "", done
        page = (workdir / "d.html").read_bytes()
        judged = {name: signs for name, _, *signs in Decoded(page).header.get("changed", [])}
        assert len(changed(done.out)) <= len(judged)
        return done.out, judged
    return made


def test_two_runs_of_the_same_program_differ_in_1_of_20_at_most(compare):
    marked = [seed for seed in range(20) if compare(draw(2 * seed), draw(2 * seed + 1))[1]]
    assert len(marked) <= 1, marked


def test_a_slower_function_and_its_callers_are_marked_and_nothing_else(compare):
    """`merge` takes a twentieth of the program's time more: 300 thousandths become 350. All else only shrinks as a share."""
    wanted = {"merge": [1, 1], "sort_rows": [0, 1], "main": [0, 1]}
    found = [compare(draw(2 * seed), draw(2 * seed + 1, merge=350 / 300))[1] for seed in range(20)]
    assert sum(judged == wanted for judged in found) >= 18, found
    out, _ = compare(draw(0), draw(1, merge=350 / 300))
    assert re.search(r"^grew: merge \d\d\.\d % \u2192 3\d\.\d % \(\+\d\.\d points, \u00b1 \d\.\d; \u00d7 1\.\d\d\)$", out, re.M), out
    assert "Through these, 2 callers changed. 16 other functions are within chance." in out


def test_five_per_cent_are_found_with_enough_samples(compare):
    found = [compare(draw(2 * seed, 200_000), draw(2 * seed + 1, 200_000, merge=1.05))[1] for seed in range(5)]
    assert found == [{"merge": [1, 1], "sort_rows": [0, 1], "main": [0, 1]}] * 5


def test_a_run_of_another_length_changes_nothing(compare):
    assert compare(draw(1, 20_000), draw(2, 60_000))[1] == {}
    _, judged = compare(draw(1, 20_000), draw(3, 60_000, parse=2))
    assert judged == {"parse": [1, 1], "read_input": [0, 1], "main": [0, 1]}


def test_new_and_gone_functions_are_told(compare):
    other = {stack.replace("format", "fast_format"): weight for stack, weight in PROGRAM.items()}
    out, judged = compare(draw(1), draw(2, program=other))
    assert judged == {"format": [-1, -1], "fast_format": [1, 1]}  # their callers take what they took
    assert "; new)" in out and "; gone)" in out


def test_several_changes_do_not_hide_each_other(compare):
    _, judged = compare(draw(1), draw(2, merge=1.5, parse=.5, encode=2))
    own = {name: signs[0] for name, signs in judged.items() if signs[0]}
    assert own == {"merge": 1, "parse": -1, "encode": 1}


def test_few_samples_are_no_ground_to_tell_anything(compare):
    out, judged = compare("p;a 20\np;b 20\n", "p;a 40\n")
    assert judged == {} and out.endswith("Too few samples to tell changes from chance.\n")


def test_hostile_names_do_nothing_to_a_terminal(compare):
    out, _ = compare("p;a 2000\np;b 500\n", "p;a 2000\np;\u202ered\u009b31m 500\n")
    assert "grew: ?red?31m " in out and "\u202e" not in out and "\u009b" not in out


SOURCE = 'def work(n):\n\ttotal = 0\n    # </script><img src=x onerror=alert(1)>\n    return n\n\n\ndef main():\n    work(1)\n'


@pytest.fixture
def app(workdir):
    (workdir / "app").mkdir()
    (workdir / "app" / "a.py").write_text(SOURCE)
    return workdir


def texts(page):
    return {row[0]: row[2:] for row in json.loads(block(page, "sources"))}


def render(run, pillion, app, names, *options):
    (app / "p.col").write_text("".join(f"py;main ({name}:7):8_[p];work ({name}:1):3_[p] 10\n" for name in names))
    done = run([pillion, "render", "p.col", "-o", "p.html", *options], cwd=app)
    return done, (app / "p.html").read_bytes() if done.status == 0 else b""


def test_sources_are_in_the_page_when_asked_for(run, pillion, app):
    done, page = render(run, pillion, app, ["app/a.py"])
    assert b'id="sources"' not in page
    for options in (["--sources", "."], [f"--sources={app}"]):
        done, page = render(run, pillion, app, ["app/a.py"], *options)
        assert done.status == 0 and done.err == ""
        lines = SOURCE.replace("\t", "    ").splitlines()
        assert texts(page) == {"work (app/a.py)": [[1, *lines[:6]]], "main (app/a.py)": [[5, *lines[4:8]]]}
    for name in (f"{app}/app/a.py", "/app/a.py"):  # as it is; below DIR as a container's root
        assert set(texts(render(run, pillion, app, [name], "--sources", ".")[1])) == {f"work ({name})", f"main ({name})"}


def test_a_source_ends_like_a_language_that_has_lines(run, pillion, app):
    names = [f"app/a{ending}" for ending in (".py", ".pyx", ".rake", ".phtml", ".pm", ".psgi")]
    others = ["app/a.go", "app/a.java", "app/a.c", "app/a"]
    for name in names + others:
        (app / name).write_text(SOURCE)
    done, page = render(run, pillion, app, names + others, "--sources", ".")
    assert done.status == 0 and set(texts(page)) == {f"{function} ({name})" for function in ("work", "main") for name in names}


def test_only_sources_below_the_folder_are_read(run, pillion, app):
    (app / "app" / "secret").write_text("secret\n" * 9)
    (app / "secret.py").write_text("secret\n" * 9)
    (app / "app" / "out.py").symlink_to(app / "secret.py")
    (app / "app" / "up.py").symlink_to("../secret.py")
    (app / "app" / "binary.py").write_bytes(b"\0secret\n" * 9)
    (app / "app" / "folder.py").mkdir()
    os.mkfifo(app / "app" / "pipe.py")
    names = ["secret", "../secret.py", f"{app}/secret.py", "out.py", "up.py", "binary.py", "folder.py", "pipe.py", "none.py", "/etc/passwd"]
    done, page = render(run, pillion, app, [*names, "a.py"], "--sources", "app")
    assert done.status == 0 and set(texts(page)) == {"work (a.py)", "main (a.py)"}
    assert re.fullmatch(r"pillion: warning: no text of lines from \d+ files that are not below \S+/app: .* \.\.\.\n", done.err), done.err
    done, _ = render(run, pillion, app, ["a.py"], "--sources", "nowhere")
    assert done.status == 1 and done.err == "pillion: --sources: there is no folder nowhere\n"

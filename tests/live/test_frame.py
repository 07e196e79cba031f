"""The frame of the tests: which failures tests/run tries once more, and the unit test that tests/README.md shows."""
import os
import re
import subprocess
import sys

import pytest

FAILS = "def test_{name}():\n    assert False\n"
HEAD = "import pytest\n"
MEASURES, EXACT = "@pytest.mark.measures\n", "@pytest.mark.exact\n"


def run_part(repository, folder, part, path, *options):
    """(how pytest ended, the tests that it lists for a second try)"""
    cache = folder / f"cache.{part}"
    done = subprocess.run([sys.executable, "-m", "pytest", "-p", "conftest", "--parts", part, "-o", f"cache_dir={cache}", *options, path],
                          cwd=folder, env={**os.environ, "PYTHONPATH": str(repository / "tests")}, stdout=subprocess.PIPE, text=True)
    listed = cache / "again"
    return done, [line.partition("::")[2] for line in listed.read_text().splitlines()] if listed.exists() else []


@pytest.fixture
def again(repository, tmp_path):
    """again(text of a test module) -> the tests that are listed for a second try."""
    def run(text):
        module = tmp_path / "test_made.py"
        module.write_text(HEAD + text)
        done, again = run_part(repository, tmp_path, "rest", module)
        assert done.returncode == 1, done.stdout
        return again
    return run


@pytest.mark.parametrize("end, part", [("TESTS(", "units"), ("TESTS_THAT_MEASURE(", "units-that-measure")])
def test_a_c_program_says_that_it_measures(repository, tmp_path, end, part):
    """The program is not built, which is a failed test of its part: of no other, and tried again where it measures."""
    (tmp_path / "unit").mkdir()
    (tmp_path / "unit/made_test.c").write_text(f"\n{end})\n")
    for name in ("guests", "waits", "plain", "easy", "halves", "units", "units-that-measure", "rest"):
        done, again = run_part(repository, tmp_path, name, tmp_path / "unit")
        assert ("made_test is missing" in done.stdout) == (name == part), done.stdout
        assert ("is built" in again) == (name == part == "units-that-measure"), done.stdout


def test_a_failed_measurement_is_tried_once_more(again):
    assert again(MEASURES + FAILS.format(name="a") + "def test_good():\n    pass\n") == ["test_a"]


def test_a_module_says_so_for_all_its_tests(again):
    assert again("pytestmark = pytest.mark.measures\n" + FAILS.format(name="a") + FAILS.format(name="b")) == ["test_a", "test_b"]


@pytest.mark.parametrize("text", [
    FAILS.format(name="plain"),
    MEASURES + FAILS.format(name="a") + FAILS.format(name="plain"),
    MEASURES + EXACT + FAILS.format(name="a"),
    "".join(MEASURES + FAILS.format(name=name) for name in "abcdef"),
    MEASURES + 'def test_a():\n    print("ERROR: AddressSanitizer: heap-use-after-free")\n    assert False\n',
    MEASURES + 'def test_a():\n    assert "x.c:1:2: runtime error: signed integer overflow" == ""\n',
], ids=["plain", "one plain", "exact", "six", "memory", "undefined"])
def test_no_other_failure_has_a_second_try(again, text):
    assert again(text) == []


# ---- The sum of all parts

PYTEST = """#!/bin/sh
# In the place of pytest: prints what is planned for a run, and leaves the list of what may be tried again.
while [ $# -gt 0 ]; do
    case $1 in
    cache_dir=*) cache=${1#cache_dir=} part=${1##*/cache.} ;;
    --lf) again=.again ;;
    esac
    shift
done
plan=PLANS/$part$again
if [ -e "$plan.list" ]; then mkdir -p "$cache" && cp "$plan.list" "$cache/again"; fi
[ -e "$plan" ] || { echo "5 passed, 0 failed, 1 skipped"; exit 0; }
cat "$plan"
! grep -q FAILED "$plan" && grep -q passed "$plan"
"""


@pytest.fixture
def run_all(repository, tmp_path):
    """run_all({part: text, ...}) -> (status, what tests/run prints) when pytest prints these texts; others pass."""
    def run(plans):
        (tmp_path / "tests").mkdir()
        pytest_here = tmp_path / "pytest"
        pytest_here.write_text(PYTEST.replace("PLANS", str(tmp_path)))
        pytest_here.chmod(0o755)
        script = (repository / "tests/run").read_text().replace("/usr/bin/python3", str(pytest_here))
        (tmp_path / "tests/run").write_text(script)
        for name, text in plans.items():
            (tmp_path / name).write_text(text)
        done = subprocess.run(["sh", tmp_path / "tests/run"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout.splitlines()
    return run


FAILED = "FAILED tests/live/test_x.py::test_x\n4 passed, 1 failed, 1 skipped\n"


def test_all_parts_are_added_up(run_all):
    status, lines = run_all({})
    assert status == 0 and lines[-1] == "30 passed, 0 failed, 6 skipped"


def test_a_part_that_fails_is_the_end_of_it(run_all):
    status, lines = run_all({"easy": FAILED})
    assert status != 0 and lines[-2:] == ["FAILED tests/live/test_x.py::test_x", "29 passed, 1 failed, 6 skipped"]


def test_what_may_be_tried_again_is_and_counts_once(run_all):
    status, lines = run_all({"plain": FAILED, "plain.list": "test_x\n", "plain.again": "1 passed, 0 failed, 0 skipped\n"})
    assert status == 0 and lines[-1] == "30 passed, 0 failed, 6 skipped" and "once more, alone:" in lines


def test_what_fails_twice_fails_once(run_all):
    again = FAILED.replace("4 passed, 1 failed, 1", "0 passed, 1 failed, 0")
    status, lines = run_all({"rest": FAILED, "rest.list": "test_x\n", "rest.again": again})
    assert status != 0 and lines[-1] == "29 passed, 1 failed, 6 skipped"


def test_a_part_that_breaks_off_is_a_failure(run_all):
    status, lines = run_all({"guests": "Traceback\n"})
    assert status != 0 and lines[-1] == "25 passed, 1 failed, 5 skipped"


def test_each_part_is_run_and_each_file_of_it_is_there_once(repository):
    conftest, script = ((repository / "tests" / name).read_text() for name in ("conftest.py", "run"))
    names = []
    for part in ("GUESTS", "EASY", "PLAIN", "WAITS", "HALVES"):
        names += re.findall(r'"(test_\w+\.py)"', re.search(rf"^{part} = \((.*?)\)$", conftest, re.S | re.M)[1])
    assert len(names) == len(set(names)) > 60
    assert {path.name for path in (repository / "tests").glob("*/test_*.py")} > set(names)
    # Without it pytest makes one of what the tests and the shared folder have in common, and a second try knows no test by its name.
    assert re.search(r'-m pytest tests --rootdir "\$PWD" ', script)
    parts = re.findall(r'"([\w-]+)": ', re.search(r"^PARTS = \{(.*)\}$", conftest, re.M)[1])
    assert {part for run in re.findall(r"^    \w+\) echo (\S+) ;;$", script, re.M) for part in run.split(",")} == {*parts} > {"rest"}


def test_what_two_runs_share_is_run_once(repository, tmp_path):
    """A file is of the run that comes to it first, the tests of one file are of one run, and whoever failed there is tried again."""
    tmp_path, shared = tmp_path / "tests", tmp_path / "shared"
    tmp_path.mkdir()
    for name in ("one", "two"):
        (tmp_path / f"test_{name}.py").write_text(HEAD + MEASURES + FAILS.format(name=name) + "def test_good():\n    pass\n")
    (shared / "test_one.py").mkdir(parents=True)
    options = "--shared", shared, "--rootdir", tmp_path
    done, again = run_part(repository, tmp_path, "rest", tmp_path, *options)
    assert again == ["test_two"] and done.stdout.splitlines()[-1] == "1 passed, 1 failed, 0 skipped", done.stdout
    done, again = run_part(repository, tmp_path, "rest", tmp_path, *options)
    assert again == [] and done.returncode == 0 and done.stdout.splitlines()[-1] == "0 passed, 0 failed, 0 skipped", done.stdout
    done, again = run_part(repository, tmp_path, "rest", tmp_path, "--rootdir", tmp_path, "--lf")
    assert again == ["test_two"] and done.stdout.splitlines()[-1] == "0 passed, 1 failed, 0 skipped", done.stdout


# ---- C programs

def compiled(repository, out, folder, text):
    """The text as a unit program, linked as tests/unit/ is."""
    archives = list((out / "host/vendor/lib").glob("*.a"))
    (folder / "made_test.c").write_text(text)
    subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE=", "-Wall", "-Wextra", "-Werror", "-Isrc", "-Itests/unit", "-g", "-O1",
                    "-fsanitize=address,undefined", "-o", folder / "made_test", folder / "made_test.c", out / "host/libpillion.a",
                    *archives, *archives, "-lpthread"], cwd=repository, check=True)
    return folder / "made_test"


def results(program, *options):
    return subprocess.run([program, *options], stdout=subprocess.PIPE, text=True).stdout.splitlines()


def test_the_unit_test_of_the_readme_runs_and_can_fail(repository, out, tmp_path):
    shown = re.search(r"```c\n(.*?)```", (repository / "tests/README.md").read_text(), re.S)[1]
    names = re.findall(r'\{"([^"]+)", \w+\}', shown)
    assert len(names) >= 2
    assert results(compiled(repository, out, tmp_path, shown)) == [f"ok {name}" for name in names]
    wrong, count = re.subn(r"(CHECK_INT\(.*), (\d+)\);", r"\1, \g<2>1);", shown, count=1)
    assert count == 1
    found = results(compiled(repository, out, tmp_path, wrong))
    assert f"not ok {names[0]}" in found and any("expected" in line for line in found), found

"""The frame of the tests: which failures tests/run tries once more, and the unit test that tests/README.md shows."""
import os
import re
import subprocess
import sys

import pytest

FAILS = "def test_{name}():\n    assert False\n"
HEAD = "import pytest\n"
MEASURES, EXACT = "@pytest.mark.measures\n", "@pytest.mark.exact\n"


@pytest.fixture
def again(repository, tmp_path):
    """again(text of a test module) -> the tests that are listed for a second try."""
    def run(text):
        module, cache = tmp_path / "test_made.py", tmp_path / "cache"
        module.write_text(HEAD + text)
        done = subprocess.run([sys.executable, "-m", "pytest", "-p", "conftest", "--part", "rest", "-o", f"cache_dir={cache}", module],
                              cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(repository / "tests")}, stdout=subprocess.PIPE, text=True)
        assert done.returncode == 1, done.stdout
        listed = cache / "again"
        return [line.partition("::")[2] for line in listed.read_text().splitlines()] if listed.exists() else []
    return run


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


@pytest.mark.parametrize("macro, mark", [("TESTS", ""), ("TESTS_THAT_MEASURE", "\tmeasures")])
def test_a_c_program_lists_its_tests_with_their_mark(repository, out, tmp_path, macro, mark):
    text = f'#include "test.h"\nstatic void a(void)\n{{\n    CHECK(true);\n}}\n{macro}({{"a promise", a}})\n'
    assert results(compiled(repository, out, tmp_path, text), "--list") == ["a promise" + mark]


def test_the_unit_test_of_the_readme_runs_and_can_fail(repository, out, tmp_path):
    shown = re.search(r"```c\n(.*?)```", (repository / "tests/README.md").read_text(), re.S)[1]
    names = re.findall(r'\{"([^"]+)", \w+\}', shown)
    assert len(names) >= 2
    assert results(compiled(repository, out, tmp_path, shown)) == [f"ok {name}" for name in names]
    wrong, count = re.subn(r"(CHECK_INT\(.*), (\d+)\);", r"\1, \g<2>1);", shown, count=1)
    assert count == 1
    found = results(compiled(repository, out, tmp_path, wrong))
    assert f"not ok {names[0]}" in found and any("expected" in line for line in found), found

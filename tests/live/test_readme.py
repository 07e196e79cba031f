"""The examples of README.md and docs/ are executed as written.

Of every fenced block marked ```console or ```sh the lines that begin with "$ " are run, in one shell, in an
empty folder, with pillion in PATH; a line that ends in a backslash goes on in the next. The folder holds
./serve.sh, which works for a second, and the bundled shop.py. Lines that build (make, git, apt-get, sudo) are left out
here: the clean root script runs those. What a ```text block shows directly below such a block is what is printed on a
terminal, but for the figures.
"""
import os
import re
import struct
from pathlib import Path

import pytest

from lab import process, terminal

pytestmark = pytest.mark.measures

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
LEFT_OUT = re.compile(r"^(make|git|apt-get|sudo|cd pillion)\b")


def blocks():
    for path in PAGES:
        for found in re.finditer(r"^```(?:console|sh)\n(.*?)^```", path.read_text(), re.M | re.S):
            text = found.group(1).replace("\\\n", " ")
            lines = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
            lines = [line for line in lines if not LEFT_OUT.match(line)]
            shown = path.read_text().startswith("\n\n```text", found.end())  # run below, on a terminal
            if lines and not shown:
                line = path.read_text().count("\n", 0, found.start()) + 1
                yield pytest.param(lines, id=f"{path.relative_to(ROOT)}:{line}")


def test_there_is_a_readme_with_examples():
    assert (ROOT / "README.md").exists()
    assert "```console" in (ROOT / "README.md").read_text()


@pytest.fixture
def here(workdir, program):
    (workdir / "serve.sh").write_text(f"#!/bin/sh\nexec {program('act')} spin 1\n")
    (workdir / "serve.sh").chmod(0o755)
    (workdir / "shop.py").symlink_to(ROOT / "tests/live/programs/shop.py")
    return workdir


@pytest.mark.parametrize("lines", list(blocks()))
def test_example(lines, pillion, here):
    script = "set -e\n" + "\n".join(lines) + "\n"
    done = process.run(["bash", "-c", script], cwd=here, timeout=90,
                       env={**os.environ, "PATH": f"{pillion.parent}:{os.environ['PATH']}"})
    process.settle(15)
    assert done.status == 0, f"{script}\n{done}"


# What cannot be run here (an engine's words, a task definition's, somebody's process) is checked for its options.
CALLED = re.compile(r"""(?:^(?:\$ )?(?:sudo )?[\w./]*pillion |/pillion"?, )(.*)""")
ENDED = re.compile(r"""(?:^|\s)"?--"?(?:[\s,\]]|$)|&&|[;|#]|\s{3}""")
OPTION = re.compile(r"""(?<![\w/=-])(--[a-z][a-z-]+|-[A-Za-z]\b)""")


def lines_with_pillion():
    for path in [*PAGES, *sorted((ROOT / "deploy").glob("*/README.md"))]:
        text, fences = path.read_text(), r"^```.*?^```"
        blocks = "\n".join(re.findall(fences, text, re.M | re.S)).replace("\\\n", " ")
        for line in [*re.findall(r"`([^`\n]+)`", re.sub(fences, "", text, flags=re.M | re.S)), *blocks.splitlines()]:
            called = CALLED.search(line)
            if called:
                yield path.name, line, ENDED.split(called.group(1))[0]


def test_options_in_lines_that_are_not_run_are_options():
    known = OPTION.findall((ROOT / "docs/options.md").read_text().replace("--[no-]", "--")) + ["--version", "--help"]
    seen = [(page, line, option) for page, line, words in lines_with_pillion() for option in OPTION.findall(words)]
    assert len(seen) > 60
    assert not [one for one in seen if one[2] not in known and one[2].replace("--no-", "--") not in known]


def masked(text):
    """Sentences in their order, without figures, line breaks (a pid's digits move them), and why one is not proven."""
    text = re.sub(r"profile_[\dTZ-]+", "profile_T", " ".join(text.split()))
    text = re.sub(r"(proven to be of one moment).*?(?= own total | cost: )", r"\1", text)
    text = re.sub(r"(heaviest (?:functions|paths)) .*?(?= total heaviest| cost: )", r"\1", text)
    return re.sub(r"(?<![\w.-])\d+(\.\d+)?( ± \d+)?", "N", text)


def transcripts():
    for path in PAGES:
        pairs = re.findall(r"^```console\n\$ (.*)\n```\n\n```text\n(.*?)^```", path.read_text(), re.M | re.S)
        for line, shown in pairs:
            yield pytest.param(line, shown, id=f"{path.relative_to(ROOT)}: {line}")


@pytest.mark.parametrize("line, shown", list(transcripts()))
def test_a_transcript_is_what_is_printed(line, shown, pillion, here):
    shell = terminal.Shell(here, {"PATH": f"{pillion.parent}:/usr/bin:/bin"})
    try:
        printed = shell.command(line, 60).removesuffix(terminal.PROMPT).split("\n", 1)[1]
        assert shell.status() == 0
    finally:
        shell.close()
    assert masked(terminal.shown(printed)) == masked(shown)


def test_the_picture_is_wide_enough_to_read_and_small_enough_to_load():
    picture = (ROOT / "docs/flamegraph.png").read_bytes()
    width, height = struct.unpack(">II", picture[16:24])
    assert 1100 <= width <= 1300 and height < width and len(picture) < 150_000

"""The examples of README.md and docs/ are executed as written.

Of every fenced block marked ```console or ```sh the lines that begin with "$ " are run, in one shell, in an
empty folder, with pillion in PATH; a line that ends in a backslash goes on in the next. The folder holds
./serve.sh, which works for a second. Lines that build (make, git, apt-get, sudo) are left out here: the clean
root script runs those.
"""
import os
import re
from pathlib import Path

import pytest

from lab import process

pytestmark = pytest.mark.measures

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = re.compile(r"^(make|git|apt-get|sudo|cd pillion)\b")


def blocks():
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]:
        if not path.exists():
            continue
        for found in re.finditer(r"^```(?:console|sh)\n(.*?)^```", path.read_text(), re.M | re.S):
            text = found.group(1).replace("\\\n", " ")
            lines = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
            lines = [line for line in lines if not LEFT_OUT.match(line)]
            if lines:
                line = path.read_text().count("\n", 0, found.start()) + 1
                yield pytest.param(lines, id=f"{path.relative_to(ROOT)}:{line}")


def test_there_is_a_readme_with_examples():
    assert (ROOT / "README.md").exists()
    assert "```console" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("lines", list(blocks()))
def test_example(lines, pillion, workdir, program):
    (workdir / "serve.sh").write_text(f"#!/bin/sh\nexec {program('act')} spin 1\n")
    (workdir / "serve.sh").chmod(0o755)
    script = "set -e\n" + "\n".join(lines) + "\n"
    done = process.run(["bash", "-c", script], cwd=workdir, timeout=90,
                       env={**os.environ, "PATH": f"{pillion.parent}:{os.environ['PATH']}"})
    process.settle(15)
    assert done.status == 0, f"{script}\n{done}"

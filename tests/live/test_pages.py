"""The pages tell the truth about the tree: what they name is there, links lead somewhere, how-to pages stay short."""
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "deploy").glob("**/README.md"))]
# Names with a placeholder are for the reader to fill in.
NAMED = re.compile(r"`((?:src|tests|build|vendor|docs|deploy)/[\w./-]*[\w/])`")
PLACEHOLDER = re.compile(r"NAME|CPU|build/out")


def page(path):
    return pytest.param(path, id=str(path.relative_to(ROOT)))


@pytest.mark.parametrize("path", [page(p) for p in PAGES])
def test_files_that_a_page_names_are_there(path):
    named = [name for name in NAMED.findall(path.read_text()) if not PLACEHOLDER.search(name)]
    assert not [name for name in named if not (ROOT / name).exists()]


def anchors(path):
    """As a forge makes them of headings."""
    found = re.findall(r"^#+ (.*)$", path.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in found}


@pytest.mark.parametrize("path", [page(p) for p in PAGES])
def test_links_lead_to_a_file_and_a_heading(path):
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        name, _, anchor = target.partition("#")
        there = path.parent / name if name else path
        if re.match(r"\w+:", target):
            continue
        if not there.exists() or (anchor and anchor not in anchors(there)):
            wrong.append(target)
    assert not wrong


def test_a_page_on_how_to_add_something_is_one_page():
    pages = sorted((ROOT / "docs").glob("add-*.md"))
    assert {p.stem for p in pages} >= {f"add-{what}" for what in ("a-runtime", "a-back-end", "a-format", "an-option", "a-processor")}
    assert not [p.name for p in pages if len(p.read_text().splitlines()) > 40]

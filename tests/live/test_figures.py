"""docs/figures.md is written by the bench, and docs/performance.md keeps its main rows."""
import json
import subprocess
import sys

HEAD = "| what | figure | the peer's | peer / pillion | target | met |"


def rows_of(text):
    return [line for line in text.splitlines() if line.startswith("| ")][1:]


def test_what_it_costs_is_one_page_whose_rows_are_among_the_figures(repository):
    page, figures = (repository / "docs" / name for name in ("performance.md", "figures.md"))
    text = page.read_text()
    assert len(text.splitlines()) <= 60
    shown, every = rows_of(text), rows_of(figures.read_text())
    assert 10 <= len(shown) <= 30 and set(shown) <= set(every), set(shown) - set(every)
    assert len(every) > 100 and {row for row in every if row.endswith("| **no** |")} <= set(shown)


def test_the_table_writes_both(repository, tmp_path):
    rows, stacks, page = tmp_path / "rows.json", tmp_path / "stacks.txt", tmp_path / "performance.md"
    row = {"unit": "MB", "peer": None, "peer_value": None, "ratio": None, "target": "≤ 2", "note": ""}
    rows.write_text("".join(json.dumps({**row, "what": what, "value": value, "met": value <= 2}) + "\n"
                            for what, value in (("binary", 1.25), ("something small", 1), ("something missed", 3))))
    stacks.write_text("g++  1475  100.00  more\n")
    page.write_text("before\n<!-- bench: begin -->\nold\n<!-- bench: end -->\nafter\n")
    call = [sys.executable, repository / "tests/bench/table.py", rows, stacks, "--write", tmp_path]
    subprocess.run(call, check=True, stdout=subprocess.PIPE)
    figures, text = (tmp_path / "figures.md").read_text(), page.read_text()
    assert [row.split(" | ")[0] for row in rows_of(figures)] == ["| binary", "| something small", "| something missed",
                                                                "| whole stacks, g++ (1475 stacks)"]
    assert [row.split(" | ")[0] for row in rows_of(text)] == ["| binary", "| something missed", "| whole stacks, g++ (1475 stacks)"]
    assert HEAD in figures and HEAD in text and "1.25 MB" in text
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    subprocess.run(call, check=True, stdout=subprocess.PIPE)
    machine = 2  # a line of its own: its load was another one meanwhile
    assert page.read_text().splitlines()[machine + 1:] == text.splitlines()[machine + 1:]


def test_a_page_without_marks_is_left_alone(repository, tmp_path):
    page = tmp_path / "performance.md"
    page.write_text("no marks\n")
    done = subprocess.run([sys.executable, repository / "tests/bench/table.py", tmp_path / "none", tmp_path / "none", "--write", tmp_path],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "has no marks" in done.stderr
    assert page.read_text() == "no marks\n" and not (tmp_path / "figures.md").exists()

"""The table that a run of tests/bench/run ends with, from the rows that the measurements noted.

    tests/bench/table.py ROWS STACKS [--write FOLDER]

STACKS is what stacks.py printed. With --write, FOLDER/figures.md becomes the table, and the rows of KEY replace what stands
between the two marks in FOLDER/performance.md.
"""
import json
import platform
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import rows  # noqa: E402

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
HEADING = """# All figures

Written by `make bench WRITE=1`, not by hand. [performance.md](performance.md) says what they amount to and how they are measured,
[tests/bench/README.md](../tests/bench/README.md) what each row means. A note in brackets belongs to the row; the peer stands in
brackets behind its figure.
"""
# The rows of performance.md, by how they begin; a target that is missed stands there in any case.
KEY = ("binary |", "own CPU, 99 Hz, 2 busy threads, one window of 60 s", "lost samples, 999 Hz", "what the target loses, 99 Hz",
       "added to /bin/true, exec mode", "first sample after exec", "RSS beside node", "RSS beside 200 processes |",
       "own CPU that 2000 idle threads add, perf (", "unwind cc1plus, warm", "whole stacks, g++", "Python 3.11, a stack",
       "own CPU, Python, 100 Hz, one thread, woven", "Python, stacks that never were, 1000 Hz, woven", "10,000 after an outage")
# What DESIGN asks of whole stacks, by workload; the others are there to be seen.
WHOLE = {"g++": 99.8, "redis": 99.8, "postgres": 99.8, "nginx": 99.8, "python3": 99.8, "python-nofp": 99.8, "openssl": 99.8, "deep": 99.8,
         "node": 99, "musl": 95}


def processor():
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1].strip() if found else platform.machine()


def machine():
    """One line: what it was measured on, and what else that had to do."""
    cpuinfo = Path("/proc/cpuinfo").read_text()
    cores = len(re.findall(r"^processor", cpuinfo, re.M))
    virtual = " (a virtual machine)" if re.search(r"^flags.*\bhypervisor\b", cpuinfo, re.M) else ""
    load = Path("/proc/loadavg").read_text().split()[:3]
    return (f"{processor()}, {cores} CPU{'s' if cores > 1 else ''}{virtual}, {platform.system()} {platform.release()}, "
            f"load {' '.join(load)} at the end, {time.strftime('%Y-%m-%d', time.gmtime())}")


def stack_rows(text):
    """From stacks.py's table: workload, stacks, share of complete ones."""
    for line in text.splitlines():
        found = re.match(r"(\S+)\s+(\d+)\s+([\d.]+)\s", line)
        if found and found[1] in WHOLE and int(found[2]) > 0:
            share = float(found[3])
            yield {"what": f"whole stacks, {found[1]}", "value": share, "unit": "%", "peer": None, "peer_value": None, "ratio": None,
                   "target": f"≥ {WHOLE[found[1]]:g}", "met": share >= WHOLE[found[1]], "note": f"{found[2]} stacks"}


def markdown(every):
    lines = ["| what | figure | the peer's | peer / pillion | target | met |", "|---|---|---|---|---|---|"]
    for row in every:
        peer = f"{rows.text(row['peer_value'])} ({row['peer']})" if row["peer_value"] is not None else ""
        ratio = rows.text(row["ratio"]) if row["ratio"] else ""
        met = "" if row["met"] is None else "yes" if row["met"] else "**no**"
        figure = f"{row['value']:.2f}" if row["unit"] == "%" else rows.text(row["value"])
        note = f" ({row['note']})" if row["note"] else ""
        lines.append(f"| {row['what']}{note} | {figure} {row['unit']} | {peer} | {ratio} | {row['target'] or ''} | {met} |")
    return lines


def key_rows(lines):
    """The table's head, the rows of KEY, and those that miss their target."""
    table = [line for line in lines if line.startswith("|")]
    return table[:2] + [row for row in table[2:] if row[2:].startswith(KEY) or row.endswith("| **no** |")]


def write(folder, lines):
    """`lines`: the machine, an empty line, the table."""
    path = folder / "performance.md"
    before, begin, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{path} has no marks {BEGIN} and {END}")
    (folder / "figures.md").write_text("\n".join([HEADING, *lines, ""]), encoding="utf-8")
    path.write_text("\n".join([before + BEGIN, lines[0], "", *key_rows(lines), END + after]), encoding="utf-8")


def main(arguments):
    if len(arguments) not in (2, 4):
        print(__doc__.split("\n\n")[1].strip())
        return 2
    noted, stacks = (Path(argument) for argument in arguments[:2])
    every = [json.loads(line) for line in noted.read_text(encoding="utf-8").splitlines()] if noted.exists() else []
    every += stack_rows(stacks.read_text(encoding="utf-8")) if stacks.exists() else []
    lines = [machine(), "", *markdown(every)]
    print("\n".join(lines))
    missed = sum(row["met"] is False for row in every)
    print(f"\n{len(every)} figures, {sum(row['met'] is True for row in every)} targets met, {missed} missed")
    if len(arguments) == 4:
        write(Path(arguments[3]), lines)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

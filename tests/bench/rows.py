"""The rows of the one table that a run of the measurements ends with.

A measurement calls `add` for each figure: it prints a line and, in a run of tests/bench/run, notes the row in the file
that BENCH_ROWS names; table.py prints and writes the table.
"""
import json
import os


def text(value):
    """With three digits that mean something."""
    if value is None:
        return "-"
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3}f}"


def add(what, value, unit, *, most=None, least=None, times=None, peer=None, peer_value=None, note=""):
    """A figure; the same of a peer on the same work in the same run; the target: `most`, `least`, or the peer that many
    times worse (`times`). Percentages of a whole are not divided."""
    row = {"what": what, "value": value, "unit": unit, "peer": peer, "peer_value": peer_value, "note": note, "ratio": None,
           "target": None, "met": None}
    if peer_value is not None and value and unit != "%":
        row["ratio"] = peer_value / value
    for limit, sign, figure in ((most, "≤", value), (least, "≥", value), (times, "peer ≥", row["ratio"])):
        if limit is not None and figure is not None:
            row["target"] = f"{sign} {limit:g}" + (" x" if limit is times else "")
            row["met"] = figure <= limit if sign == "≤" else figure >= limit
    parts = [f"{what}: {text(value)} {unit}"]
    if peer_value is not None:
        parts += [f"{peer}: {text(peer_value)}" + (f", x {text(row['ratio'])}" if row["ratio"] else "")]
    if row["target"]:
        parts += [f"target {row['target']}: {'met' if row['met'] else 'MISSED'}"]
    print("; ".join(parts) + (f" ({note})" if note else ""), flush=True)
    if os.environ.get("BENCH_ROWS"):
        with open(os.environ["BENCH_ROWS"], "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

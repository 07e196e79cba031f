"""Unwinding alone: nanoseconds per frame, the cost of new code, building the tables; libdwfl on the same samples.

Each workload of the lab is recorded for a few seconds (tests/lab/record.c), and build/out/bench/unwind unwinds
what was recorded over and over: unwind.c says how it is timed. The tables are timed on whole files by tables.c.
"""
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import process, workloads  # noqa: E402
import rows  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "build" / "out" / "bench"
RECORD = ROOT / "build" / "out" / platform.machine() / "lab" / "record"  # linked with the product's objects: tests/lab/record.c
SECONDS, HZ = 4, 999
# (workload, what it is called in the table)
RECORDED = (("deep", "25 frames of C"), ("g++", "cc1plus"), ("python3", "python3"), ("node", "node"))
LIBRARIES = Path(f"/usr/lib/{platform.machine()}-linux-gnu")
FILES = (("libc", LIBRARIES, "libc.so.6"), ("libstdc++", LIBRARIES, "libstdc++.so.6"), ("libcrypto", LIBRARIES, "libcrypto.so.3"),
         ("python3", Path("/usr/bin"), "python3"), ("cc1plus", Path("/usr/lib/gcc"), f"{platform.machine()}-linux-gnu/*/cc1plus"),
         ("node", Path("/usr/bin"), "node"), ("libLLVM", LIBRARIES, "libLLVM-*.so.1"))


def record(workload, folder):
    """The path of a recording of the workload."""
    recording = folder / f"{workload.name}.recording"
    with workload.running(folder / workload.name) as work:
        done = process.run([RECORD, recording, "-f", HZ, "-d", SECONDS, "-p", ",".join(map(str, work.pids)), "-q",
                            "-o", folder / "out"], timeout=SECONDS + 60)
    if not recording.exists():
        raise RuntimeError(f"{workload.name} was not recorded: {done}")
    return recording


def report(name, figures):
    every, warm = figures["all"], figures["warm"]
    stacks, frames = figures["stacks"], warm["frames"]
    peer = {"peer": f"libdwfl {figures['peer']}", "peer_value": figures["peer_stack"]["sum"] / figures["peer_warm"]["frames"]} \
        if "peer" in figures else {}
    share = f"{every['frames'] / stacks:.1f} frames per stack, {100 * warm['hits'] / frames:.0f} % from the rule cache"
    rows.add(f"unwind {name}, warm", figures["stack"]["sum"] / frames, "ns/frame", most=45, note=share, **peer)
    rows.add(f"unwind {name}, 99 of 100 stacks", figures["stack"]["p99"] / 1000, "µs/stack", most=5)
    rows.add(f"unwind {name}, first look-up in a page of code", figures["touch"]["median"] / 1000, "µs", most=50,
             note=f"median of {figures['touch']['count']}; 9 of 10 below {figures['touch']['p90'] / 1000:.0f}")
    rows.add(f"unwind {name}, whole stacks", 100 * every["complete"] / stacks, "%", least=99 if name == "node" else 99.8,
             note=f"{stacks} stacks", peer=peer.get("peer"),
             peer_value=100 * figures["peer_all"]["ends"] / stacks if peer else None)
    if peer:
        print(f"  mean depth {every['frames'] / stacks:.2f}, {peer['peer']} {figures['peer_all']['frames'] / stacks:.2f}; "
              f"by frame pointer {every['by_fp']}, by analysis {every['analysed']}, beyond the copy {every['continued']}, "
              f"guessed stacks {every['guessed']}, truncated {every['truncated']}")


def unwinding(folder):
    for name, title in RECORDED:
        workload = workloads.named(name)
        reason = workload.needs()
        if reason:
            print(f"unwind {title}: skipped, {reason}")
            continue
        recording = record(workload, folder)
        done = process.run([BUILT / "unwind", recording], timeout=300)
        if done.status:
            raise RuntimeError(f"unwind {recording}: {done}")
        report(title, json.loads(done.out))


def tables():
    found = [(name, path) for name, folder, pattern in FILES for path in sorted(folder.glob(pattern))[-1:]]
    done = process.run([BUILT / "tables", *[path for _, path in found]], timeout=120)
    if done.status:
        raise RuntimeError(f"tables: {done}")
    print(f"{'tables of':12}{'text MB':>9}{'rows':>10}{'rules':>7}{'analysed':>9}{'KB':>8}{'bytes/row':>10}{'KB/MB':>7}{'CFI ms/MB':>10}{'all ms/MB':>10}")
    figures = [json.loads(line) for line in done.out.splitlines()]
    for (name, _), f in zip(found, figures):
        mb = f["text"] / 1e6
        print(f"{name:12}{mb:9.2f}{f['rows']:10,}{f['rules']:7}{f['analysed']:9,}{f['bytes'] / 1000:8.0f}{f['bytes'] / f['rows']:10.2f}"
              f"{f['bytes'] / 1000 / mb:7.0f}{f['cfi_ns'] / 1e6 / mb:10.2f}{f['ns'] / 1e6 / mb:10.2f}")
    text, count = sum(f["text"] for f in figures) / 1e6, sum(f["rows"] for f in figures)
    held = sum(f["bytes"] for f in figures)
    names = ", ".join(name for name, _ in found)
    rows.add("tables from CFI, whole files", sum(f["cfi_ns"] for f in figures) / 1e6 / text, "ms/MB of text", most=1, note=names)
    rows.add("tables, analysis of code without CFI", sum(f["ns"] - f["cfi_ns"] for f in figures) / 1e6 / len(figures), "ms/file")
    rows.add("tables, memory", held / count, "bytes/row", most=5)
    rows.add("tables, memory of touched text", held / 1000 / text, "KB/MB of text", most=110)


def main():
    process.become_subreaper()
    missing = [path for path in (BUILT / "unwind", BUILT / "tables") if not path.exists()]
    if missing:
        sys.exit(f"{missing[0].relative_to(ROOT)} is missing; run make bench-programs")
    with tempfile.TemporaryDirectory(prefix="u") as folder:
        os.chmod(folder, 0o755)
        unwinding(Path(folder))
    tables()


if __name__ == "__main__":
    main()

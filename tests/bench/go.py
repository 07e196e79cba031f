"""What a Go program's heap, lock and goroutine profiles cost it and the profiler, by its address and by its memory: a program whose heap has
50,000 different stacks.

    tests/bench/go.py [--quick] [address|memory]...
"""
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import golang, process  # noqa: E402
import rows  # noqa: E402

PILLION = Path(__file__).resolve().parents[2] / "build" / "out" / platform.machine() / "pillion"
QUICK = "--quick" in sys.argv
STACKS, WINDOW = 50000, 5
WAYS = {"address": [], "memory": ["--no-go-pprof"], "neither": ["--no-go"]}


def memory_kb(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def measured(way, stacks):
    """CPU seconds of the program and of the profiler per window, and the profiler's greatest RSS in MB."""
    windows = 2 if QUICK else 5
    read, write = os.pipe()
    program = golang.program("local", "go_profiles.go", "go_profiles_served.go", flags=("-tags", "served"))
    target = process.start([program, "-l", "127.0.0.1:0", "-b", stacks], stdin=read)
    process.until(lambda: "ready" in target.out, 60, lambda: target.err)
    with tempfile.TemporaryDirectory() as out:
        running = process.start([PILLION, "-p", target.pid, "-c", "-d", WINDOW, "-o", out, "--max-memory", 200, *WAYS[way]])
        folder = Path(out)
        process.until(lambda: len(list(folder.glob("profile_*.pprof"))) >= 1, 60, lambda: running.err, .2)
        before = [process.cpu_seconds(pid) for pid in (target.pid, running.pid)]
        time.sleep(windows * WINDOW)
        used = [(process.cpu_seconds(pid) - start) / windows for pid, start in zip((target.pid, running.pid), before)]
        peak = memory_kb(running.pid) / 1024
        sizes = [path.stat().st_size for path in folder.glob("*.heap.pprof")]
        running.signal(15)
        running.finish(30)
    os.close(write)
    target.end()
    return *used, peak, max(sizes, default=0)


def main():
    wanted = [way for way in WAYS if way in sys.argv] or ["address", "memory"]
    none = measured("neither", STACKS)
    for way in wanted:
        few, many = measured(way, 0), measured(way, STACKS)
        rows.add(f"Go by its {way}, {STACKS:,} stacks: own CPU", (many[1] - none[1]) * 1000, "ms/window",
                 note=f"{(few[1] - none[1]) * 1000:.0f} ms with a few stacks; the heap's file has {many[3] / 1e6:.2f} MB")
        rows.add(f"Go by its {way}, {STACKS:,} stacks: the program's CPU", (many[0] - none[0]) * 1000, "ms/window")
        rows.add(f"Go by its {way}, {STACKS:,} stacks: memory", many[2] - none[2], "MB", most=5, note=f"RSS at most {many[2]:.1f} MB")


main()

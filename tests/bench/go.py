"""What a Go program's heap, lock and goroutine profiles cost it and the profiler, by its address and by its memory: a program whose heap has
50,000 different stacks; and what all of pillion costs beside prometheus under load.

    tests/bench/go.py [--quick] [address|memory|prometheus]...
"""
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import golang, process  # noqa: E402
import rows  # noqa: E402

PILLION = Path(__file__).resolve().parents[2] / "build" / "out" / platform.machine() / "pillion"
QUICK = "--quick" in sys.argv
STACKS, WINDOW = 50000, 5
QUERIES = ["sum(rate(prometheus_http_request_duration_seconds_bucket[1m]))by(le,handler)", "topk(5,go_memstats_alloc_bytes)",
           "rate(prometheus_tsdb_head_samples_appended_total[1m])"]
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


def prometheus():
    """Debian's, from PATH or from its package; none: there is no such package here."""
    folder = PILLION.parents[3] / "build/lab/bench/prometheus"
    found = shutil.which("prometheus") or next(folder.glob("usr/bin/prometheus"), None)
    if found is None:
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run("apt-get -qq download prometheus && dpkg -x prometheus_*.deb .", shell=True, cwd=folder, check=False)
        found = next(folder.glob("usr/bin/prometheus"), None)
    return found


def query(address, stop, asked):
    """Nearly ten range queries a second, each of them dearer as the data of five minutes comes together."""
    while not stop.wait(.1):
        now = time.time()
        words = urllib.parse.urlencode({"query": QUERIES[len(asked) % len(QUERIES)], "start": now - 300, "end": now, "step": 5})
        asked.append(len(urllib.request.urlopen(f"http://{address}/api/v1/query_range?{words}", timeout=10).read()))


def beside_prometheus():
    """One window of a minute after the other, as they come by default; the first has what a start costs and is left out."""
    program, windows, address = prometheus(), 1 if QUICK else 10, "127.0.0.1:19090"
    if program is None:
        print("prometheus: neither installed nor to be had from Debian", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "p.yml").write_text("global: {scrape_interval: 200ms, scrape_timeout: 200ms}\nscrape_configs:\n"
                                         f"  - {{job_name: self, static_configs: [{{targets: ['{address}']}}]}}\n")
        target = process.start([program, f"--config.file={folder}/p.yml", f"--storage.tsdb.path={folder}/data",
                                f"--web.listen-address={address}"])
        process.until(lambda: "ready to receive" in target.err, 60, lambda: target.err, .2)
        stop, asked = threading.Event(), []
        loads = [threading.Thread(target=query, args=(address, stop, asked)) for _ in range(3)]
        for load in loads:
            load.start()
        running = process.start([PILLION, "-p", target.pid, "-c", "-o", f"{folder}/out"])
        time.sleep(65)
        before = [process.cpu_seconds(pid) for pid in (target.pid, running.pid)]
        time.sleep(60 * windows)
        used = [(process.cpu_seconds(pid) - start) / windows for pid, start in zip((target.pid, running.pid), before)]
        peak = memory_kb(running.pid) / 1024
        stop.set()
        for load in loads:
            load.join()
        assert len(asked) > 600 * windows, f"the load ended after {len(asked)} queries"
        running.signal(15)
        running.finish(30)
        target.end()
    rows.add("beside prometheus: own CPU", used[1] / .6, "% of a core", most=.3, note=f"prometheus uses {used[0]:.1f} s a minute")
    rows.add("beside prometheus: memory", peak, "MB", most=24)


def beside_many_stacks(ways):
    none = measured("neither", STACKS)
    for way in ways:
        few, many = measured(way, 0), measured(way, STACKS)
        rows.add(f"Go by its {way}, {STACKS:,} stacks: own CPU", (many[1] - none[1]) * 1000, "ms/window",
                 note=f"{(few[1] - none[1]) * 1000:.0f} ms with a few stacks; the heap's file has {many[3] / 1e6:.2f} MB")
        rows.add(f"Go by its {way}, {STACKS:,} stacks: the program's CPU", (many[0] - none[0]) * 1000, "ms/window")
        rows.add(f"Go by its {way}, {STACKS:,} stacks: memory", many[2] - none[2], "MB", most=5, note=f"RSS at most {many[2]:.1f} MB")


def main():
    wanted = [word for word in ("address", "memory", "prometheus") if word in sys.argv] or ["address", "memory", "prometheus"]
    if "prometheus" in wanted:
        beside_prometheus()
    if wanted != ["prometheus"]:
        beside_many_stacks([word for word in wanted if word in WAYS])


main()

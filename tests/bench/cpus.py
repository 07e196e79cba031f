"""How the profiler's own cost grows with the CPUs that are there, in emulated machines: one thread is busy on one CPU, beside
processes that are mostly idle.

Descriptors, rings and memory are what they would be on a real machine. CPU time is not: the guests share this machine's
CPUs, so it stands relative to the same run with two, and says something only while nothing else runs here.

    tests/bench/cpus.py [--quick]
"""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import emulate, kernel, process, root as roots  # noqa: E402
import cost  # noqa: E402
import rows  # noqa: E402

COUNTS = (2, 8) if cost.QUICK else (2, 8, 32, 64)
IDLE, SECONDS = 30, 3 if cost.QUICK else 8
MODES = {"perf": "", "perf-less": "--perf-mode disabled"}

SCRIPT = f"""
until_it() {{ for i in $(seq 400); do eval "$1" && break; sleep 0.05; done; }}
cpu() {{ cat /proc/$1/task/*/schedstat | awk '{{ sum += $1 }} END {{ printf "%.0f", sum / 1000 }}'; }}
now() {{ cut -d ' ' -f 1 /proc/uptime | tr -d .; }}
maps() {{ grep 'perf_event' /proc/$1/maps; }}
mkdir -m 777 /tmp/o
/work_churn idle {IDLE} 600 >/dev/null &
idle=$!
/spread 0 1 600 >/dev/null &
busy=$!
sleep 1
run() {{
    /pillion -p $busy,$idle -d 600 --max-cpu 100 --format col -o /tmp/o $2 2>/tmp/said &
    pid=$!
    until_it 'grep -q profiles /tmp/said'
    sleep 4
    before=$(cpu $pid) begin=$(now)
    sleep {SECONDS}
    after=$(cpu $pid) end=$(now)
    echo "$1 cpu $((after - before)) $((end - begin))"
    echo "$1 rss $(awk '/^VmRSS/ {{ print $2 }}' /proc/$pid/status)"
    echo "$1 threads $(ls /proc/$pid/task | wc -l)"
    echo "$1 descriptors $(ls /proc/$pid/fd | wc -l)"
    echo "$1 rings $(maps $pid | wc -l)"
    echo "$1 locked $(maps $pid | cut -d ' ' -f 1 | awk -F- '{{ print "echo $(((0x" $2 " - 0x" $1 ") / 1024))" }}' | sh | awk '{{ sum += $1 }} END {{ print sum + 0 }}')"
    kill -INT $pid
    wait $pid
    echo "$1 status $?"
    sed 's/^/said /' /tmp/said
}}
run perf
run perf-less "--perf-mode disabled"
kill -9 $busy $idle
exit 0
"""


class Guest:
    """figures["perf"]["rss"] of one machine."""

    def __init__(self, count):
        lab = cost.ROOT / "tests"
        files = [cost.PILLION, emulate.program(lab / "live" / "programs" / "spread.c", emulate.HERE),
                 emulate.program(lab / "lab" / "work_churn.c", emulate.HERE)]
        status, self.text = kernel.boot(kernel.kernel("bookworm"), SCRIPT, files, processors=count, memory=512 + 8 * count,
                                        arguments="cryptomgr.notests=1", timeout=900)
        if status:
            raise RuntimeError(self.text)
        self.figures = {mode: {} for mode in MODES}
        for mode, name, value, over in re.findall(r"^(perf\S*) (\w+) (\d+)(?: (\d+))?$", self.text, re.M):
            # microseconds of CPU in hundredths of a second: percent of a core
            self.figures[mode][name] = int(value) / (100 * int(over)) if over else int(value)


def add(guests, mode):
    few = next(iter(guests.values())).figures[mode]
    for count, guest in guests.items():
        found = guest.figures[mode]
        held = f"{found['threads']} threads, {found['descriptors']} descriptors"
        if found["rings"]:
            held += f", {found['rings']} rings of {found['locked'] / found['rings']:.0f} KiB"
        rows.add(f"RSS on {count} CPUs, one of them busy, {mode}", found["rss"] / 1024, "MB", most=12, note=held)
        if found["rings"]:
            rows.add(f"locked by rings on {count} CPUs", found["locked"] / 1024, "MB", most=18)
        if count > COUNTS[0]:
            rows.add(f"own CPU on {count} CPUs against {COUNTS[0]}, one of them busy, {mode}", found["cpu"] / few["cpu"], "x",
                     note=f"{found['cpu']:.2f} and {few['cpu']:.2f} % of an emulated core, {IDLE} processes mostly idle")


def main():
    process.become_subreaper()
    reason = kernel.missing()
    try:
        reason or kernel.kernel("bookworm")
    except roots.Unreachable as error:
        reason = error
    if reason:
        print(f"  many CPUs: not measured, {reason}")
        return
    guests = {}
    for count in COUNTS:
        try:
            guests[count] = Guest(count)
        except TimeoutError:
            print(f"  {count} CPUs: not measured, the guest was too slow on this machine")
            break
    for mode in MODES if guests else ():
        add(guests, mode)


if __name__ == "__main__":
    main()

"""What ten thousand of us do to a server: together, after an outage of ten minutes, after 429 for all.

tests/bench/fleet.c decides by the product's own rules on a virtual clock; the seeds are fixed. "Steady" is what the fleet
sends on average when all is well, instances / period: 166.7 requests a second. The fullest second of half an hour is
compared with that, after an outage also while the backlog is sent.

    tests/bench/fleet.py
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import fleet  # noqa: E402
import rows  # noqa: E402

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "out" / "bench" / "fleet"


def main():
    figures = fleet.simulate(PROGRAM)
    for name, one in figures.items():
        print(f"  {name}: {one['steady']:.0f}/s steady; fullest second {one['peak_1s']:.0f} ({one['peak']:.2f} x steady, "
              f"{one['peak_1s'] / one['mean']:.2f} x the mean of the span), fullest 10 s {one['peak_10s']:.0f}/s, during the "
              f"fault {one['during']:.1f} x; {one['produced']} windows = {one['taken']} taken + {one['lost']} lost + "
              f"{one['waiting']} waiting; backlog gone after {one['gone_99_s']} s (99 %), {one['gone_s']} s (all)")
    alone, unspread = figures[fleet.UNSPREAD[0]], figures[fleet.UNSPREAD[1]]
    rows.add("10,000 started in one second: fullest second / steady rate", figures[fleet.STEADY]["peak"], "x",
             most=fleet.MOST_STEADY, note=f"without spreading {alone['peak']:.0f}")
    worst = max((figures[name] for name in fleet.AFTER), key=lambda one: one["peak"])
    rows.add("10,000 after an outage of 10 minutes, or 429 for all: fullest second / steady rate", worst["peak"], "x",
             most=fleet.MOST_AFTER, note=f"{worst['name']}; without spreading {unspread['peak']:.0f}")
    rows.add("their backlog is gone after", figures["refused-spool"]["gone_s"], "s",
             note=f"99 % after {figures['refused-spool']['gone_99_s']} s")
    rows.add("windows lost with a spool", sum(figures[name]["lost"] for name in fleet.SPOOLED), "windows", most=0)


main()

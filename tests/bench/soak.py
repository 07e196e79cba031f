"""A day of windows, one a minute, to a server that is unwell half of the time: the uploader itself, its clock run faster.

tests/lab/soak.c says what is counted and how. With a spool, and with memory alone.

    tests/bench/soak.py [SEED]
"""
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import fleet  # noqa: E402
import rows  # noqa: E402

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "out" / "bench" / "soak"
HOURS, FACTOR = 24, 2880


def main():
    seed = sys.argv[1] if len(sys.argv) > 1 else 1
    for kind, options in (("a spool", ()), ("memory alone", ("memory",))):
        with tempfile.TemporaryDirectory() as folder:
            soak = fleet.Soak(PROGRAM, HOURS, FACTOR, seed, folder, *options)
        print("  " + soak.done.out.strip().replace("\n", "\n  ") + soak.done.err)
        windows = soak.figures["windows"]
        rows.add(f"{HOURS} h of windows with {kind}: nowhere, and not said", 0 if soak.done.status == 0 else 1, "windows", most=0,
                 note=f"{windows['windows']} = {windows['arrived']} arrived + {windows['refused']} refused + {windows['kept']} kept + "
                      f"{windows['lost']} lost; {windows['duplicates']} twice")
        rows.add(f"growth of RSS from 10 % to 100 % of it, {kind}", (soak.rss_kb[10] - soak.rss_kb[1]) / 1024, "MB", most=1,
                 note=f"{soak.rss_kb[1] / 1024:.1f} MB, {soak.rss_kb[10] / 1024:.1f} MB")
        rows.add(f"growth of descriptors, {kind}", soak.descriptors[10] - soak.descriptors[1], "descriptors", most=2,
                 note=f"{soak.descriptors[1]}, {soak.descriptors[10]}; a connection and a file come and go")


main()

"""What `render --diff` calls a change: of two runs of the same program (nothing should be), and of one with a slower function.

    tests/bench/diff_noise.py                     samples drawn by chance only: no rights needed, a minute
    tests/bench/diff_noise.py --real 12           also pairs of real runs of diff_noise.c, sampled at 5,000 Hz

For each change it prints how many of the comparisons marked the function and its callers and nothing else, the function
and something else, or not the function. 20,000 samples each unless --samples says so.
"""
import argparse
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from lab.chosen import PROGRAM, changed, draw  # noqa: E402

PILLION = HERE.parents[1] / "build" / "out" / platform.machine() / "pillion"
HALF = {**{stack: weight * 500 / 700 for stack, weight in PROGRAM.items()}, "main;sort_rows;merge": 500}
TENTH = {**{stack: weight * 900 / 700 for stack, weight in PROGRAM.items()}, "main;sort_rows;merge": 100}


def said(now, before, folder):
    done = subprocess.run([PILLION, "render", now, "--diff", before, "-o", folder / "d.html"], stdout=subprocess.PIPE, check=True)
    return changed(done.stdout.decode())


def row(what, found, name):
    """`found`: what each comparison said."""
    only = sum(set(one) == {name} for one in found)
    more = sum(name in one and len(one) > 1 for one in found)
    other = sum(bool(one) and name not in one for one in found)
    print(f"{what:58} {name} alone {only:3}  and others {more:3}  others {other:3}  nothing {sum(not one for one in found):3}  of {len(found)}",
          flush=True)


def drawn(rounds, samples, folder):
    def one(seed, program, factor):
        for name, text in (("a.col", draw(2 * seed, samples, program)), ("b.col", draw(2 * seed + 1, samples, program, merge=factor))):
            (folder / name).write_text(text)
        return said(folder / "b.col", folder / "a.col", folder)

    for share, program in (("half", HALF), ("three tenths", PROGRAM), ("a tenth", TENTH)):
        for percent in (0, 5, 8, 10, 13, 17):
            row(f"drawn, merge is {share}, takes {percent} % more", [one(s, program, 1 + percent / 100) for s in range(rounds)], "merge")


def real(pairs, samples, folder):
    program = folder / "diff_noise"
    subprocess.run(["gcc", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-o", program, HERE / "diff_noise.c"], check=True)
    begun = time.process_time(), time.monotonic()
    subprocess.run([program, "20000"], check=True)
    rounds = int(20_000 * samples / 5_000 / (time.monotonic() - begun[1]))

    def run(name, percent):
        out = folder / name
        subprocess.run([PILLION, "-q", "-f", "5000", "--max-cpu", "80", "--launch", "init", "--format", "col", "-o", out, program,
                        str(rounds), str(percent)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return out / "run_profile.col"

    before = [run(f"before{i}", 0) for i in range(pairs + 1)]
    row("real, the same program", [said(b, a, folder) for a, b in zip(before, before[1:])], "merge")
    for percent in (5, 10):
        row(f"real, merge is half, takes {percent} % more", [said(run(f"now{percent}.{i}", percent), before[i], folder) for i in range(pairs)],
            "merge")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--real", type=int, default=0, metavar="PAIRS")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="diff-noise-") as folder:
        drawn(chosen.rounds, chosen.samples, Path(folder))
        if chosen.real:
            real(chosen.real, chosen.samples, Path(folder))


if __name__ == "__main__":
    main()

"""Ten thousand instances of the uploader on a virtual clock (bench/fleet.c), and one for a day in a minute (lab/soak.c).

Limits of the first are of the fullest second: 1.5 times the requests that the fleet makes on average when all is well, 3
times that after an outage, while what waited is sent as well.
"""
import json
import re

from . import process

MOST_STEADY, MOST_AFTER = 1.5, 3
STEADY = "together"
AFTER = ("refused-spool", "refused-memory", "hung-spool", "hung-memory", "429-retry-after-60", "429-until-one-moment",
         "restarted-with-10-in-the-spool")
SPOOLED = ("refused-spool", "hung-spool", "restarted-with-10-in-the-spool")
SMALL = "refused-a-minute-then-serves-1.5"
UNSPREAD = ("together-without-spreading", "refused-spool-without-spreading")


def simulate(fleet, *names):
    """name -> figures, as fleet.c explains them."""
    done = process.run([fleet, *names], timeout=120)
    assert done.status == 0, done
    return {line["name"]: line for line in map(json.loads, done.out.splitlines())}


class Soak:
    """A run of it. `figures` has the numbers of its account by their words; RSS and descriptors at 0 %, 10 % … 100 %."""

    def __init__(self, program, hours, factor, seed, folder, *options, timeout=300, env=None):
        self.done = process.run([program, hours, factor, seed, folder, *options], timeout=timeout, env=env)
        self.figures = {}
        for first in ("windows", "words"):
            line = re.search(rf"^{first} .*$", self.done.out, re.M)
            found = re.findall(r"([a-z]+) (\d+)", line.group()) if line else []
            self.figures[first] = {name: int(number) for name, number in found}
        vitals = re.search(r"^vitals: (.*)$", self.done.out, re.M)
        pairs = re.findall(r"(\d+) KB (\d+) fds", vitals.group(1)) if vitals else []
        self.rss_kb, self.descriptors = [int(kb) for kb, _ in pairs], [int(fds) for _, fds in pairs]

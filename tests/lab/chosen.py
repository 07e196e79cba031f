"""Profiles drawn by chance: collapsed stacks of a program whose functions' shares are known."""
import random
from collections import Counter

# Callers and their leaves' time in thousandths of the whole.
PROGRAM = {
    "main;read_input;parse": 100, "main;read_input;lex": 75, "main;read_input;scan": 50,
    "main;sort_rows;merge": 300, "main;sort_rows;hash": 60, "main;sort_rows;swap": 65,
    "main;write_output;format": 80, "main;write_output;encode": 50, "main;write_output;copy": 40, "main;write_output;log": 10,
    "main;check": 60, "main;count": 20, "main;rank": 50, "main;idle;poll": 40,
}


def draw(seed, samples=20_000, program=PROGRAM, **slower):
    """The text of a .col; `merge=1.05` makes that function so much slower: the program then takes as much longer."""
    weights = {stack: weight * slower.get(stack.rsplit(";", 1)[1], 1) for stack, weight in program.items()}
    made = Counter(random.Random(seed).choices(list(weights), weights=weights.values(), k=samples))
    return "".join(f"work;{stack} {count}\n" for stack, count in sorted(made.items()))


def changed(said):
    """{function: "grew", "shrank" …} of what `render --diff` prints."""
    rows = (line.partition(": ") for line in said.splitlines())
    return {rest.split(" ")[0]: what for what, _, rest in rows if what.startswith(("grew", "shrank"))}

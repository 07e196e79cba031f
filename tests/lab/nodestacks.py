"""Stacks of tests/live/programs/node/known.js in a profile: which the program cannot have."""
import re
from collections import Counter

FRAME = re.compile(r"(.*?) (\S*/known\.js|\(eval\)):(\d+)(?::(\d+))?(?:_\[js\])?")

# Who calls a function of known.js. What the library or V8 calls is called by whatever that has.
LIBRARY = None
SPINS = {"even", "odd", "leftLeaf", "rightLeaf", "apply", "inner", "double", "numbers", "deep", "get size", "size", "toJSON", "anonymous", "last",
         "chain", "(anonymous)"}
CALLERS = {"main": {"(anonymous)", LIBRARY}, "round": {"main"}, "left": {"round"}, "leftMiddle": {"left"}, "leftLeaf": {"leftMiddle"},
           "right": {"round"}, "rightMiddle": {"right"}, "rightLeaf": {"rightMiddle"}, "even": {"round", "odd"}, "odd": {"even"},
           "classes": {"round"}, "apply": {"classes"}, "closures": {"round"}, "inner": {"closures"}, "library": {"round"},
           "double": {"library", LIBRARY}, "compare": {"library", LIBRARY}, "add": {"library", LIBRARY}, "generators": {"round"},
           "numbers": {"generators", LIBRARY}, "throwing": {"round"}, "deep": {"throwing", "deep"}, "getting": {"round"},
           "texts": {"round"}, "json": {"round"}, "toJSON": {"json", LIBRARY}, "matching": {"round"}, "replaced": {"matching", LIBRARY},
           "chain": {"main", LIBRARY}, "last": {"chain"}, "spin": SPINS}
DEPTH = 41 + 2  # of even and odd


def own_names(frames):
    """(position, function) of those of known.js."""
    return [(at, found[1]) for at, found in ((at, FRAME.fullmatch(str(frame))) for at, frame in enumerate(frames)) if found]


def fault_of(frames):
    """What is impossible about a stack; None: nothing."""
    own = own_names(frames)
    before = None
    for at, name in own:
        adjacent = before is not None and before[0] == at - 1
        caller = before[1] if adjacent else LIBRARY
        known = CALLERS.get(name)
        if known and caller not in known and not (caller is LIBRARY and not frames[at - 1].endswith("_[js]")):
            return f"{caller} calls {name}"
        before = at, name
    turns = sum(name in ("even", "odd") for _, name in own)
    return f"{turns} deep" if turns > DEPTH else None


def judged(session):
    """Of all stacks: Counter of good, wrong, and those with a frame that has no name; and what is wrong."""
    verdicts, wrong = Counter(), []
    for stack in session.col.stacks:
        if not own_names(stack.frames):
            continue
        fault = fault_of(stack.frames)
        unnamed = any(frame in ("[anon]", "[guessed]", "[truncated]") for frame in stack.frames)
        verdicts["unnamed" if unnamed else "wrong" if fault else "good"] += stack.count
        wrong += [(fault, stack.frames)] if fault and not unnamed else []
    return verdicts, wrong

"""Stacks of tests/live/programs/node/known.js in a profile: which the program cannot have."""
import re

from . import callers
from .callers import LIBRARY

FRAME = re.compile(r"(.*?) (\S*/known\.js|\(eval\)):(\d+)(?::(\d+))?(?:_\[js\])?")

# Who calls a function of known.js. What the library or V8 calls is called by whatever that has.
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
    return callers.fault_of(frames, own_names(frames), CALLERS, lambda frame: not frame.endswith("_[js]"), ("even", "odd"), DEPTH)


def judged(session):
    return callers.judged(session, own_names, fault_of)

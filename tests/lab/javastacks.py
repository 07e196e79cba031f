"""Stacks of tests/live/programs/java/Known.java in a profile: which the program cannot have."""
from . import callers
from .callers import LIBRARY

# Who calls a function of Known.java. What is called by the library is called by whatever that has.
CALLERS = {"main": {LIBRARY}, "work": {"main", LIBRARY}, "round": {"work"}, "left": {"round", LIBRARY, "lambda$lambdas$1"}, "leftMiddle": {"left"},
           "leftLeaf": {"leftMiddle"}, "right": {"round"}, "rightMiddle": {"right"}, "rightLeaf": {"rightMiddle"},
           "even": {"round", "odd"}, "odd": {"even"}, "interfaces": {"round"}, "apply": {"interfaces"}, "lambdas": {"round"},
           "lambda$lambdas$0": {LIBRARY}, "lambda$lambdas$1": {LIBRARY}, "throwing": {"round"}, "deep": {"throwing", "deep"},
           "library": {"round"}, "copies": {"library"}, "compressing": {"round"}, "reflecting": {"round"}, "reflected": {LIBRARY},
           "locked": {"round"}, "spin": {"apply", "even", "odd", "leftLeaf", "rightLeaf", "lambda$lambdas$0", "locked", "reflected"}}
DEPTH = 41 + 4  # of even and odd; where they are inlined into each other, a leaf is told as the next instruction that can be asked about


def own_names(frames):
    """(position, method) of those of Known.java."""
    found = []
    for at, frame in enumerate(frames):
        if frame.startswith("Known") and frame.endswith("_[j]"):
            method = frame[:-len("_[j]")].rpartition(".")[2]
            if "$$" not in frame and not method.startswith("<"):
                found.append((at, method))
    return found


def fault_of(frames):
    return callers.fault_of(frames, own_names(frames), CALLERS, lambda frame: frame.startswith("["), ("even", "odd"), DEPTH)


def judged(session):
    return callers.judged(session, own_names, fault_of)

"""Stacks of tests/live/programs/java/Known.java in a profile: which the program cannot have."""
from collections import Counter

# Who calls a function of Known.java. What is called by the library is called by whatever that has.
LIBRARY = None
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
    """What is impossible about a stack; None: nothing."""
    own = own_names(frames)
    before = None
    for at, method in own:
        adjacent = before is not None and before[0] == at - 1
        caller = before[1] if adjacent else LIBRARY
        if method in CALLERS and caller not in CALLERS[method] and not (caller is LIBRARY and frames[at - 1].startswith("[")):
            return f"{caller} calls {method}"
        before = at, method
    turns = sum(method in ("even", "odd") for _, method in own)
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

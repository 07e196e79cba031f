"""Whether the stacks of a profile are ones that a program can have, which knows for each of its functions who calls it."""
from collections import Counter

LIBRARY = None  # what calls a function that is called by something else than the program


def judged(session, own_names, fault_of):
    """Of all stacks of the program's: Counter of good, wrong, and those with a frame that has no name; and what is wrong.

    `own_names`: frames -> (position, function) of the program's own; `fault_of`: frames -> what is impossible about them, or None."""
    verdicts, wrong = Counter(), []
    for stack in session.col.stacks:
        if not own_names(stack.frames):
            continue
        fault = fault_of(stack.frames)
        unnamed = any(frame in ("[anon]", "[guessed]", "[truncated]") for frame in stack.frames)
        verdicts["unnamed" if unnamed else "wrong" if fault else "good"] += stack.count
        wrong += [(fault, stack.frames)] if fault and not unnamed else []
    return verdicts, wrong


def fault_of(frames, own, callers, may_call, turning, depth):
    """What is impossible about a stack; None: nothing. `own`: as above, outermost first; `callers`: function -> who calls it;
    `may_call(frame)`: may this one, no function of the program's, have called any of them? `turning`: functions that call each other, `depth` deep
    at the most."""
    before = None
    for at, name in own:
        adjacent = before is not None and before[0] == at - 1
        caller = before[1] if adjacent else LIBRARY
        if name in callers and caller not in callers[name] and not (caller is LIBRARY and may_call(frames[at - 1])):
            return f"{caller} calls {name}"
        before = at, name
    turns = sum(name in turning for _, name in own)
    return f"{turns} deep" if turns > depth else None

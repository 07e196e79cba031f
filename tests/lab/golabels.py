"""What tests/live/programs/go_labels.go labels its work with, in a profile of it: each label at the samples of that work and of no other."""
from collections import Counter

OWN = ("tenant", "größe", "span id", "local root span id", "trace endpoint")
WORK = {"main.blue": {"tenant": "blue", "größe": "ü 1;"}, "main.red": {"tenant": "red", "größe": "ü 1;"}, "main.plain": {},
        "main.request": {"trace endpoint": "GET /pay/:id"}}


def check(profile, said, least=10):
    """`said`: what the program printed last; `least`: samples of each kind of work."""
    first, last = map(int, said.split())
    right, bare, wrong, ids = Counter(), Counter(), [], set()
    for sample in profile.samples:
        function = next((frame for frame in sample.frames if frame in WORK), None)
        own = {key: value for key, value in sample.labels.items() if key in OWN}
        count = sample.values[0]
        span = own.pop("span id", None)
        if span:
            ids.add(int(span))
            wrong += [] if own.pop("local root span id") == span and first <= int(span) <= last else [sample.labels]
        if function and own == WORK[function] and (span is not None) == (function == "main.request"):
            right[function] += count
        elif function and not own and not span:
            bare[function] += count # not proven, and taken while the runtime worked
        elif own or span: # labels begin and end in pprof.Do, at which a sample may be taken
            # Of a stack: on the runtime's own, or a signal's.
            is_part = sample.frames[0] == "[truncated]" or not any(frame.startswith("main.") for frame in sample.frames)
            within = is_part or any(frame.startswith(("runtime/pprof.", "context.", "main.main.func")) for frame in sample.frames)
            wrong += [] if within and not function else [sample.labels | {"stack": sample.frames}]
    print(right, bare, len(ids), "different spans", wrong[:3])
    assert not wrong, wrong[:3]
    assert set(right) == set(WORK) and all(right[each] > least for each in WORK), right
    assert sum(right.values()) > .9 * (sum(right.values()) + sum(bare.values())), (right, bare)
    assert len(ids) > .8 * right["main.request"], (len(ids), right)


def share_with_callers(stacks):
    """Of (frames, count) that stand in the function without a frame, and begin where goroutines do: those whose caller is one of the
    four. Frame pointers alone would lead to the next one."""
    within = Counter()
    for frames, count in stacks:
        if frames[-1] == "main.spin" and frames[0] == "runtime.goexit":
            within[frames[-2]] += count
    print(within)
    return sum(within[each] for each in WORK) / max(sum(within.values()), 1)

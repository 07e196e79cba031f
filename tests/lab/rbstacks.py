"""Ruby frames of a profile, from .col lines and from pprof files, and whether they are stacks a program can have.

In a .col a Ruby frame is `function (file:first line)_[rb]`, a C function's `function_[rb]`; in a pprof it is a function with
file and first line, and a line. Shares nothing with the product but the reading of pprof (lab/pystacks.py, lab/pprof.py).
"""
import gzip
import json
import re
from pathlib import Path

from . import pprof

FRAME = re.compile(r"(.*) \((.*):(\d+)\)(?::(\d+))?_\[rb\]", re.S)
# "block in Shop#sell" without the class, as versions before 3.4 call it.
CLASS = re.compile(r"(?<![\w:.#])[A-Z]\w*(?:::[A-Z]\w*)*[#.](?=[^\s.])")


class Frame:
    """`line` is the line being executed, None where the format does not tell it; a C function has no file."""

    def __init__(self, name, file="", first=0, line=None):
        self.name, self.file, self.first, self.line = name, file, first, line

    @property
    def bare(self):
        return CLASS.sub("", self.name)

    def __repr__(self):
        return f"{self.name} ({self.file}:{self.first}{'' if self.line is None else f' at {self.line}'})"


class Stack:
    """`ruby` are its Ruby frames, root first; `frames` all of them, Ruby's as Frame, others as text."""

    def __init__(self, frames, count, comm, tid=None, labels=None):
        self.frames, self.count, self.comm, self.tid, self.labels = frames, count, comm, tid, labels or {}
        self.ruby = [frame for frame in frames if isinstance(frame, Frame)]
        self.names = [frame.bare for frame in self.ruby]

    def __repr__(self):
        return f"{self.comm}: {' > '.join(map(str, self.frames))} x {self.count}"


def _from_text(text):
    found = FRAME.fullmatch(text)
    if found:
        return Frame(found[1], found[2], int(found[3]), found[4] and int(found[4]))
    is_named = text.endswith("_[rb]") and (text[0] != "[" or text[:-5] in ("[]", "[]="))
    return Frame(text[:-5]) if is_named else text


def of_col(session):
    return [Stack([_from_text(frame) for frame in stack.frames], stack.count, stack.comm)
            for window in session.windows for stack in window.stacks]


def of_pprof(folder):
    """All pprof files of a folder; counts are seconds of CPU time."""
    return [stack for path in sorted(Path(folder).glob("profile_[0-9]*.pprof")) for stack in _read(path)]


def _read(path):
    top = pprof._message(gzip.decompress(path.read_bytes()), repeated=(1, 2, 3, 4, 5, 6))
    text = [string.decode("utf-8") for string in top[6]]
    ruby = {m[1] for m in map(pprof._message, top[3]) if text[m.get(5, 0)] == "[ruby]"}
    functions = {m[1]: (text[m.get(2, 0)], text[m.get(4, 0)], m.get(5, 0)) for m in map(pprof._message, top[5])}
    places = {}
    for raw in top[4]:
        message = pprof._message(raw, repeated=(4,))
        is_ruby = message.get(2, 0) in ruby
        places[message[1]] = [_place(functions, pprof._message(line), is_ruby) for line in message[4]] or ["?"]
    cpu = [text[pprof._message(kind)[1]] for kind in top[1]].index("cpu")
    for raw in top[2]:
        message = pprof._message(raw, repeated=(1, 2, 3))
        frames = [frame for value in message[1] for at in pprof._numbers(value) for frame in places[at]]
        labels = {text[m[1]]: text[m[2]] if m.get(2) else m.get(3, 0) for m in map(pprof._message, message[3])}
        values = [number for value in message[2] for number in pprof._numbers(value)]
        yield Stack(frames[::-1], values[cpu] / 1e9, labels.get("comm", ""), int(labels.get("thread id", 0)), labels)


def _place(functions, line, is_ruby):
    name, file, first = functions[line[1]]
    return Frame(name, file, first, line.get(2, 0)) if is_ruby and not name.startswith("[") else name


# ---- Is it one of those that programs/ruby/known_stacks.rb says it has?

class Known:
    def __init__(self, said):
        told = json.loads(said)
        self.version, self.file = told["version"], told["file"]
        self.minor = tuple(int(part) for part in self.version.split(".")[:2])
        self.first, self.last = told["burn"]
        # Before 3.4 Ruby does not tell classes, so ours are not compared.
        self.classes = self.minor >= (3, 4)
        self.stacks = [[Frame(label, file, 0, line) for label, file, line in stack] for stack in told["stacks"]]
        self.seen = set()

    def judge(self, frames):
        """"whole": the stack of a call of burn(). "part": on the way there. "else": not of the rounds. "wrong"."""
        if self.classes: # Ruby does not tell a rescue's two frames apart since 3.4
            frames = [one for one, two in zip(frames, [*frames[1:], None]) if not two or two.name != f"rescue in {one.name}"]
        # RJIT is a compiler in Ruby, which runs on top of what it compiles.
        frames = frames[:next((at for at, frame in enumerate(frames) if "RubyVM::RJIT" in frame.name or "rjit" in frame.file), None)]
        if not frames:
            return "else"
        names = [frame.bare for frame in frames]
        whole = {at for at, stack in enumerate(self.stacks)
                 if len(frames) == len(stack) + 1 and names[-1] == "burn" and self._on(stack, frames[:-1])}
        self.seen |= whole
        if whole and frames[-1].file == self.file and (frames[-1].line is None or self.first <= frames[-1].line <= self.last):
            return "whole"
        if "round" not in names[:2] and not any(self._of_fiber(frames)):
            return "else" # the start, and the loop around the rounds
        if {"tell", "require", "generate"} & set(names):
            return "else"
        # C functions that lead to none of burn()'s calls may be at the leaf.
        callers = frames[:-1]
        while callers and frames[len(callers)].file == "" and not self._begins(callers):
            callers = callers[:-1]
        return "part" if self._begins(callers) else "wrong"

    def _begins(self, frames):
        return any(self._on(stack[:len(frames)], frames) for stack in self.stacks)

    def _of_fiber(self, frames):
        return (frames[0].name == stack[0].name for stack in self.stacks)

    def _on(self, path, frames):
        return len(path) == len(frames) and all(self._same(one, two) for one, two in zip(path, frames))

    def _same(self, told, ours):
        name = re.sub("^(rescue|ensure) in ", "", ours.name) if self.classes else ours.bare
        same = told.name == name
        mine = ours.file == told.file
        if not mine and (ours.file == "" or ours.file.startswith("<internal:")):
            return same # Ruby tells the caller's place for them
        return same and mine and ours.line in (None, told.line)

"""Frames of one language in a profile, from .col lines and from pprof files.

In a .col such a frame is `function (file:first line)_[suffix]`, or without a file `function_[suffix]`; in a pprof it is a
function with file and first line, and a line. Shares nothing with the product but the reading of pprof (lab/pprof.py).
"""
import gzip
import re
from pathlib import Path

from . import pprof


class Frame:
    """`line` is the line being executed, None where the format does not tell it."""

    def __init__(self, name, file="", first=0, line=None):
        self.name, self.file, self.first, self.line = name, file, first, line

    def __repr__(self):
        return f"{self.name} ({self.file}:{self.first}{'' if self.line is None else f' at {self.line}'})"


class Stack:
    """`own` are the language's frames, root first; `frames` all of them, the language's as Frame, others as text."""

    def __init__(self, frames, count, comm, tid=None, labels=None):
        self.frames, self.count, self.comm, self.tid, self.labels = frames, count, comm, tid, labels or {}
        self.own = [frame for frame in frames if isinstance(frame, Frame)]

    @property
    def names(self):
        return [frame.name for frame in self.own]

    def __repr__(self):
        return f"{self.comm}: {' > '.join(map(str, self.frames))} x {self.count}"


class Reader:
    def __init__(self, suffix, mapping, frame=Frame, stack=Stack):
        self.suffix, self.mapping, self.frame, self.stack = f"_[{suffix}]", mapping, frame, stack
        self.form = re.compile(rf"(.*) \((.*):(\d+)\)(?::(\d+))?_\[{suffix}\]", re.S)

    def _from_text(self, text):
        found = self.form.fullmatch(text)
        if found:
            return self.frame(found[1], found[2], int(found[3]), found[4] and int(found[4]))
        name = text.removesuffix(self.suffix)
        is_own = name != text and (text[0] != "[" or name in ("[]", "[]=")) # Ruby's operators
        return self.frame(name) if is_own else text

    def of_col(self, session):
        return [self.stack([self._from_text(frame) for frame in stack.frames], stack.count, stack.comm)
                for window in session.windows for stack in window.stacks]

    def of_pprof(self, folder):
        """All pprof files of a folder; counts are seconds of CPU time."""
        return [stack for path in sorted(Path(folder).glob("profile_[0-9]*.pprof")) for stack in self._read(path)]

    def _read(self, path):
        top = pprof._message(gzip.decompress(path.read_bytes()), repeated=(1, 2, 3, 4, 5, 6))
        text = [string.decode("utf-8") for string in top[6]]
        own = {m[1] for m in map(pprof._message, top[3]) if text[m.get(5, 0)] == self.mapping}
        functions = {m[1]: (text[m.get(2, 0)], text[m.get(4, 0)], m.get(5, 0)) for m in map(pprof._message, top[5])}
        places = {}
        for raw in top[4]:
            message = pprof._message(raw, repeated=(4,))
            is_own = message.get(2, 0) in own
            places[message[1]] = [self._place(functions, pprof._message(line), is_own) for line in message[4]] or ["?"]
        cpu = [text[pprof._message(kind)[1]] for kind in top[1]].index("cpu")
        for raw in top[2]:
            message = pprof._message(raw, repeated=(1, 2, 3))
            frames = [frame for value in message[1] for at in pprof._numbers(value) for frame in places[at]]
            labels = {text[m[1]]: text[m[2]] if m.get(2) else m.get(3, 0) for m in map(pprof._message, message[3])}
            values = [number for value in message[2] for number in pprof._numbers(value)]
            yield self.stack(frames[::-1], values[cpu] / 1e9, labels.get("comm", ""), int(labels.get("thread id", 0)),
                             labels)

    def _place(self, functions, line, is_own):
        name, file, first = functions[line[1]]
        return self.frame(name, file, first, line.get(2, 0)) if is_own and not name.startswith("[") else name

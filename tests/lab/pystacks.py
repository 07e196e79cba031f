"""Python frames of a profile, from .col lines and from pprof files, and whether they are stacks a program can have.

In a .col a Python frame is `function (file:first line)_[p]`, with --col-lines `function (file:first line):line_[p]`; in a pprof it is a function with file and first line, and
a line. Shares nothing with the product.
"""
import ast
import gzip
import re
from pathlib import Path

from . import pprof

FRAME = re.compile(r"(.*) \((.*):(\d+)\)(?::(\d+))?_\[p\]", re.S)


class Frame:
    """`line` is the line being executed, None where the format does not tell it."""

    def __init__(self, name, file, first, line=None):
        self.name, self.file, self.first, self.line = name, file, first, line

    def __repr__(self):
        return f"{self.name} ({self.file}:{self.first}{'' if self.line is None else f' at {self.line}'})"


class Stack:
    """`python` are its Python frames, root first; `frames` all of them, Python's as Frame, others as text."""

    def __init__(self, frames, count, comm, pid=None, tid=None):
        self.frames, self.count, self.comm, self.pid, self.tid = frames, count, comm, pid, tid
        self.python = [frame for frame in frames if isinstance(frame, Frame)]

    @property
    def above(self):
        """What is native and nearer to the leaf than the last Python frame."""
        last = max(at for at, frame in enumerate(self.frames) if isinstance(frame, Frame))
        return self.frames[last + 1:]

    def __repr__(self):
        return f"{self.comm}: {' > '.join(map(str, self.frames))} x {self.count}"


def _from_text(text):
    found = FRAME.fullmatch(text)
    return Frame(found[1], found[2], int(found[3]), found[4] and int(found[4])) if found else text


def of_col(session):
    return [Stack([_from_text(frame) for frame in stack.frames], stack.count, stack.comm)
            for window in session.windows for stack in window.stacks]


def of_pprof(folder):
    """All pprof files of a folder; counts are seconds of CPU time."""
    return [stack for path in sorted(Path(folder).glob("profile_[0-9]*.pprof")) for stack in _read(path)]


def _read(path):
    top = pprof._message(gzip.decompress(path.read_bytes()), repeated=(1, 2, 3, 4, 5, 6))
    text = [string.decode("utf-8") for string in top[6]]
    functions = {m[1]: (text[m.get(2, 0)], text[m.get(4, 0)], m.get(5, 0)) for m in map(pprof._message, top[5])}
    places = {}
    for raw in top[4]:
        message = pprof._message(raw, repeated=(4,))
        places[message[1]] = [_place(functions, pprof._message(line)) for line in message[4]] or [hex(message.get(3, 0))]
    cpu = [text[pprof._message(kind)[1]] for kind in top[1]].index("cpu")
    for raw in top[2]:
        message = pprof._message(raw, repeated=(1, 2, 3))
        frames = [frame for value in message[1] for at in pprof._numbers(value) for frame in places[at]]
        labels = {text[m[1]]: text[m[2]] if m.get(2) else m.get(3, 0) for m in map(pprof._message, message[3])}
        values = [number for value in message[2] for number in pprof._numbers(value)]
        yield Stack(frames[::-1], values[cpu] / 1e9, labels.get("comm", ""), int(labels.get("process_id", 0)),
                    int(labels.get("thread id", 0)))


def _place(functions, line):
    name, file, first = functions[line[1]]
    # Native files have other endings, and <string> is Python's.
    return Frame(name, file, first, line.get(2, 0)) if file.endswith(".py") or file.startswith("<") else name


# ---- Is it one of those that programs/python/known_stacks.py says it has?

class Known:
    def __init__(self, said):
        told = ast.literal_eval(said)
        self.version = told["version"]
        self.qualified = tuple(int(part) for part in re.findall(r"\d+", self.version)[:2]) >= (3, 11)
        self.burn = self._frame(told["burn"])
        self.stacks = [[self._frame(frame) for frame in stack] for stack in told["stacks"]]
        self.seen = set()

    def _frame(self, told):
        name, qualified, file, first, line = told
        return Frame(qualified if self.qualified else name, file, first, line)

    def judge(self, frames):
        """"whole": the stack of a call of burn(). "part": on the way there. "else": not of the rounds, and not judged.
        "wrong": a stack this program cannot have."""
        names = [frame.name for frame in frames]
        # what deeds() calls before its rounds
        others = {"tell", "named", "with_names", "abspath", "dirname"}
        if names[:3] != ["<module>", "main", "deeds"] or others & set(names):
            return "else"
        whole = {at for at, stack in enumerate(self.stacks)
                 if len(frames) == len(stack) + 1 and self._on([*stack, self.burn], frames)}
        self.seen |= whole
        if whole:
            return "whole"
        # What a generator expression goes through is made by its function, before the expression is.
        beginnings = [path for stack in self.stacks for path in
                      (stack, [frame for frame in stack if not frame.name.endswith("<genexpr>")])]
        return "part" if any(len(frames) <= len(path) and self._on(path, frames) for path in beginnings) else "wrong"

    def _on(self, path, frames):
        """Callers at their lines; the last one anywhere in its function, burn() in its own lines."""
        callers = all(_same(one, two) and two.line in (None, one.line) for one, two in zip(path, frames[:-1]))
        leaf = frames[-1]
        if not callers or not _same(path[len(frames) - 1], leaf):
            return False
        return leaf.line is None or not _same(leaf, self.burn) or leaf.first <= leaf.line <= self.burn.line


def _same(one, two):
    return (one.name, one.file, one.first) == (two.name, two.file, two.first)

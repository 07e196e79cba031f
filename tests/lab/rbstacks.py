"""Ruby frames of a profile (lab/framestacks.py), and whether they are stacks a program can have. In a .col a C function is
`function_[rb]`.
"""
import json
import re

from . import framestacks

# "block in Shop#sell" without the class, as versions before 3.4 call it.
CLASS = re.compile(r"(?<![\w:.#])[A-Z]\w*(?:::[A-Z]\w*)*[#.](?=[^\s.])")


class Frame(framestacks.Frame):
    @property
    def bare(self):
        return CLASS.sub("", self.name)


class Stack(framestacks.Stack):
    """`ruby` are its Ruby frames, root first; `frames` all of them, Ruby's as Frame, others as text."""

    @property
    def ruby(self):
        return self.own

    @property
    def names(self):
        return [frame.bare for frame in self.own]


READER = framestacks.Reader("rb", "[ruby]", Frame, Stack)
of_col, of_pprof = READER.of_col, READER.of_pprof


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
        names = [frame.bare for frame in frames]
        whole = {at for at, stack in enumerate(self.stacks)
                 if len(frames) == len(stack) + 1 and names[-1] == "burn" and self._on(stack, frames[:-1])}
        self.seen |= whole
        if whole and frames[-1].file == self.file and (frames[-1].line is None or self.first <= frames[-1].line <= self.last):
            return "whole"
        if "round" not in names[:2] and not any(self._of_fiber(frames)):
            return "else" # the start, and the loop around the rounds
        told = {stack[1].bare for stack in self.stacks if len(stack) > 1}
        # classes and modules that are being made; the text that the program gives to eval before its rounds
        starts = len(names) > 1 and (names[1].startswith(("<class:", "<module:")) or names[1] == "eval") and names[1] not in told
        compiles = any("/ruby_vm/rjit/" in frame.file for frame in frames) # RJIT is written in Ruby
        if starts or compiles or {"tell", "require", "generate"} & set(names):
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

"""Perl frames of a profile (lab/framestacks.py), and whether they are stacks that programs/perl/known_stacks.pl can have."""
from . import framestacks

READER = framestacks.Reader("perl", "[perl]")
of_col, of_pprof = READER.of_col, READER.of_pprof
Frame = framestacks.Frame


class Known:
    """What the program says of itself."""

    def __init__(self, said):
        lines = said.splitlines()
        told = dict(line.split(" ", 1) for line in lines[:3])
        self.version, self.file = told["version"], told["file"]
        self.first, self.last = map(int, told["burn"].split())
        self.stacks = [self._stack(line.split("\t")) for line in lines[3:]]
        self.seen = set()

    @staticmethod
    def _stack(parts):
        return [Frame(name, file, 0, int(line)) for name, file, line in zip(*[iter(parts)] * 3)]

    def judge(self, frames):
        """"whole": the stack of a call of burn(). "part": on the way there. "else": not of the rounds. "wrong"."""
        names = [frame.name for frame in frames]
        others = [name for name in names if name == "main::tell_stack" or name.startswith(("warnings::", "strict::"))]
        begins = "(require)" in names or any(name.endswith("::BEGIN") for name in names)
        uses = begins and names[-1] != "main::burn" # what a module or a text begins with
        if names[:2] != ["<main>", "main::round"] or others or uses:
            return "else" # the start, and the loop around the rounds; what does not lead to burn()
        whole = {at for at, stack in enumerate(self.stacks)
                 if len(frames) == len(stack) + 1 and names[-1] == "main::burn" and self._on(stack, frames[:-1])}
        self.seen |= whole
        if whole and frames[-1].file == self.file and (frames[-1].line is None or self.first <= frames[-1].line <= self.last):
            return "whole"
        # the leaf may be at any of its lines, or a module's own
        callers = frames[:-1]
        return "part" if any(self._on(stack[:len(callers)], callers) for stack in self.stacks) else "wrong"

    def _on(self, path, frames):
        return len(path) == len(frames) and all(self._same(path, at, ours) for at, ours in enumerate(frames))

    @staticmethod
    def _same(path, at, ours):
        told = path[at]
        if (told.name, told.file) == ("(eval)", "(eval)"): # a text goes by where it was given
            told = Frame(told.name, path[at - 1].file, 0, path[at - 1].line)
        if told.name in ("(eval)", "(require)") and ours.file == "": # its file's name was gone
            return told.name == ours.name
        return told.name == ours.name and (ours.line is None or (told.file, told.line) == (ours.file, ours.line))

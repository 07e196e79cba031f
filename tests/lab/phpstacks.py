"""PHP frames of a profile (lab/framestacks.py), and whether they are stacks that programs/php/known_stacks.php says it has."""
import json

from . import framestacks

READER = framestacks.Reader("php", "[php]")
of_col, of_pprof = READER.of_col, READER.of_pprof
BESIDE = {"tell", "label", "cpu"} # functions of the program that lead to no burn()


class Known:
    def __init__(self, said):
        told = json.loads(said)
        self.version, self.file = told["version"], told["file"]
        self.first, self.last = told["burn"]
        self.stacks = [[framestacks.Frame(name, file, 0, line) for name, file, line in stack] for stack in told["stacks"]]
        self.seen = set()

    def judge(self, frames):
        """"whole": the stack of a call of burn(). "part": on the way there. "else": not of the rounds. "wrong"."""
        names = [frame.name for frame in frames]
        if "round_of_all" not in names or BESIDE & set(names):
            return "else" # the start, and the loop around the rounds
        whole = {at for at, stack in enumerate(self.stacks)
                 if len(frames) == len(stack) + 1 and names[-1] == "burn" and self._on(stack, frames[:-1])}
        self.seen |= whole
        if whole and frames[-1].file == self.file and (frames[-1].line is None or self.first <= frames[-1].line <= self.last):
            return "whole"
        # C functions that lead to none of burn()'s calls may be at the leaf.
        callers = frames[:-1]
        while callers and frames[len(callers)].file == "" and not self._begins(callers):
            callers = callers[:-1]
        return "part" if names[-1] != "burn" and self._begins(callers) else "wrong"

    def _begins(self, frames):
        return any(self._on(stack[:len(frames)], frames) for stack in self.stacks)

    def _on(self, path, frames):
        return len(path) == len(frames) and all(self._same(one, two) for one, two in zip(path, frames))

    @staticmethod
    def _same(told, ours):
        """PHP tells no place of what C functions call."""
        return told.name == ours.name and told.file == ours.file and (ours.line in (None, told.line) or told.file == "")

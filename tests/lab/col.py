"""A reader of collapsed (.col) files that shares nothing with the product.

Line 1 is "# " and a JSON object; every other line is `index;container;comm[;appid: ...];frame;...
count`, root first, the count after the last space.
"""
import json
from pathlib import Path


class Stack:
    def __init__(self, line, number):
        text, separator, count = line.rpartition(" ")
        assert separator and count.isdigit(), f"line {number}: no count after the last space: {line!r}"
        fields = text.split(";")
        assert len(fields) >= 3, f"line {number}: fewer than three fields: {line!r}"
        assert fields[0].isdigit(), f"line {number}: the index is no number: {line!r}"
        self.index, self.container, self.comm = int(fields[0]), fields[1], fields[2]
        rest = fields[3:]
        self.appid = rest.pop(0) if rest and rest[0].startswith("appid: ") else None
        assert all(rest), f"line {number}: an empty frame: {line!r}"
        self.frames = rest
        self.count = int(count)


class Col:
    def __init__(self, text):
        first, *lines = text.split("\n")
        assert first.startswith("# {"), f"line 1 is no header: {first[:80]!r}"
        assert first.isascii(), "the header is not ASCII"
        assert not text.endswith("\n"), "a newline at the end of the file"
        self.header = json.loads(first[2:])
        self.stacks = [Stack(line, number) for number, line in enumerate(lines, 2)]

    @property
    def total(self):
        return sum(s.count for s in self.stacks)

    def seconds(self, hz=99, comm=None):
        """CPU seconds: of all, or of one comm."""
        return sum(s.count for s in self.stacks if comm is None or s.comm == comm) / hz

    def share(self, frame):
        """The part of all samples with a frame of this name anywhere in the stack."""
        return sum(s.count for s in self.stacks if frame in s.frames) / max(self.total, 1)

    def counted(self, frame):
        return sum(s.count for s in self.stacks if frame in s.frames)

    def frames(self):
        return {frame for s in self.stacks for frame in s.frames}

    def comms(self):
        return {s.comm for s in self.stacks}


def read(path):
    return Col(Path(path).read_text(encoding="utf-8"))


def last(folder):
    return read(Path(folder) / "last_profile.col")


def every(folder):
    """All windows of a folder, oldest first."""
    found = sorted(Path(folder).glob("profile_[0-9]*.col"), key=lambda path: path.stat().st_mtime_ns)
    return [read(path) for path in found]

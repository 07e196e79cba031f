"""A reader of pprof files that shares nothing with the product: gzip, then the protobuf wire format by hand.

Only what the tests ask for: sample types, samples with their function names and labels, mappings.
Field numbers are those of pprof's profile.proto.
"""
import gzip
from pathlib import Path


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _fields(data):
    """Yields (number, value): an integer, or bytes for length-delimited fields."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 2:
            length, at = _varint(data, at)
            value, at = data[at:at + length], at + length
            assert len(value) == length, "a field runs past the end"
        elif kind == 1:
            value, at = data[at:at + 8], at + 8
        else:
            raise AssertionError(f"wire type {kind}")
        yield number, value


def _numbers(value):
    """A repeated integer field, packed or not."""
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        found.append(number)
    return found


def _message(data, repeated=()):
    message = {number: [] for number in repeated}
    for number, value in _fields(data):
        if number in message and isinstance(message[number], list):
            message[number].append(value)
        else:
            message[number] = value
    return message


class Sample:
    def __init__(self, frames, values, labels):
        self.frames, self.values, self.labels = frames, values, labels


class Profile:
    """`samples` have frames root first, like a .col line."""

    def __init__(self, data):
        assert data[:2] == b"\x1f\x8b", "not gzip"
        top = _message(gzip.decompress(data), repeated=(1, 2, 3, 4, 5, 6, 13))
        strings = [s.decode("utf-8") for s in top[6]]
        assert strings and strings[0] == "", "string 0 is not empty"
        self.sample_types = [tuple(strings[_message(t).get(n, 0)] for n in (1, 2)) for t in top[1]]
        functions = {m[1]: strings[m.get(2, 0)] for m in map(_message, top[5])}
        self.mappings = [{"id": m[1], "file": strings[m.get(5, 0)], "build_id": strings[m.get(6, 0)]}
                         for m in map(_message, top[3])]
        locations = {}
        for raw in top[4]:
            m = _message(raw, repeated=(4,))
            lines = [functions[_message(line)[1]] for line in m[4]]
            locations[m[1]] = lines or [f"0x{m.get(3, 0):x}"]
        self.samples = []
        for raw in top[2]:
            m = _message(raw, repeated=(1, 2, 3))
            frames = []
            for location in (n for value in m[1] for n in _numbers(value)):
                frames += locations[location]
            labels = {}
            for label in map(_message, m[3]):
                labels[strings[label[1]]] = strings[label[2]] if label.get(2) else label.get(3, 0)
            self.samples.append(Sample(frames[::-1], [n for value in m[2] for n in _numbers(value)], labels))
        self.time_nanos, self.duration_nanos = top.get(9, 0), top.get(10, 0)
        self.period_type, self.period = top.get(11), top.get(12, 0)
        self.comments = [strings[n] for value in top[13] for n in _numbers(value)]

    def column(self, kind):
        return [name for name, _ in self.sample_types].index(kind)

    def total(self, kind):
        at = self.column(kind)
        return sum(s.values[at] for s in self.samples)

    def share(self, frame, kind="cpu"):
        at = self.column(kind)
        return sum(s.values[at] for s in self.samples if frame in s.frames) / max(self.total(kind), 1)


def make(types, samples, file="/usr/bin/program", period=("space", "bytes", 524288)):
    """A file such as Go's runtime makes. types: [(name, unit)]; samples: [(frames from the root on, values)]; a frame is text or bytes."""
    texts, functions = {b"": 0}, {}

    def raw(text):
        return text if isinstance(text, bytes) else text.encode()

    def text(value):
        return texts.setdefault(raw(value), len(texts))

    def varint(number):
        out = b""
        while number > 127:
            out, number = out + bytes([number & 127 | 128]), number >> 7
        return out + bytes([number])

    def field(number, value):
        if isinstance(value, int):
            return varint(number << 3) + varint(value)
        return varint(number << 3 | 2) + varint(len(value)) + value

    def packed(numbers):
        return b"".join(map(varint, numbers))

    def pair(name, unit):
        return field(1, text(name)) + field(2, text(unit))

    rows = [field(1, pair(*kind)) for kind in types]
    for frames, values in samples:
        places = [functions.setdefault(raw(frame), len(functions) + 1) for frame in reversed(frames)]
        rows.append(field(2, field(1, packed(places)) + field(2, packed(values))))
    rows.append(field(3, field(1, 1) + field(2, 0x400000) + field(3, 0x500000) + field(5, text(file))))
    for name, number in functions.items():
        rows.append(field(4, field(1, number) + field(2, 1) + field(4, field(1, number) + field(2, 7))))
        rows.append(field(5, field(1, number) + field(2, text(name)) + field(4, text("main.go"))))
    rows.append(field(11, pair(*period[:2])) + field(12, period[2]))
    rows += [field(6, value) for value in texts]
    return gzip.compress(b"".join(rows), mtime=0)


def read(path):
    return Profile(Path(path).read_bytes())


def last(folder):
    return read(Path(folder) / "last_profile.pprof")

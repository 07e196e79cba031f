"""A Go profile with everything that tells its samples apart: addresses, functions, files, lines, labels.

    profile = load(gzipped_bytes)
    profile.samples    # {(stack, labels): [values, ...]}; a stack is leaf first, of (address, ((name, file, line), ...))
"""
import gzip
from collections import defaultdict

from .pprof import _message, _numbers


class GoProfile:
    def __init__(self, data):
        top = _message(gzip.decompress(data), repeated=(1, 2, 3, 4, 5, 6))
        text = [s.decode() for s in top[6]]

        def pair(message):
            return tuple(text[message.get(n, 0)] for n in (1, 2))

        self.types = [pair(_message(raw)) for raw in top[1]]
        self.period_type, self.period = pair(_message(top[11])), top.get(12, 0)
        self.mappings = [(m.get(2, 0), m.get(3, 0), m.get(4, 0), text[m.get(5, 0)]) for m in map(_message, top[3])]
        functions = {m[1]: (text[m.get(2, 0)], text[m.get(4, 0)]) for m in map(_message, top[5])}
        locations = {}
        for m in (_message(raw, repeated=(4,)) for raw in top[4]):
            lines = (_message(raw) for raw in m[4])
            names = tuple((*functions[line[1]], line.get(2, 0)) for line in lines)
            locations[m[1]] = (m.get(3, 0), names)
        samples = defaultdict(list)
        for m in (_message(raw, repeated=(1, 2, 3)) for raw in top[2]):
            stack = tuple(locations[n] for value in m[1] for n in _numbers(value))
            values = tuple(n - (1 << 64) if n >> 63 else n for value in m[2] for n in _numbers(value))
            labels = tuple(sorted((text[x[1]], text[x[2]] if x.get(2) else x.get(3, 0)) for x in map(_message, m[3])))
            samples[stack, labels].append(values)
        self.samples = {key: sorted(values) for key, values in samples.items()}


def load(data):
    return GoProfile(data)


def names(stack):
    return [name for _, lines in stack for name, _, _ in lines]

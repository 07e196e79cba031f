"""Stacks that never were: tests/live/programs/python/hot.py has 26 frames of down(), then hot_a > mid_a > leaf_a and hot_b >
mid_b > leaf_b by turns, some microseconds each. A stack with both letters, or with a hole, was put together from two moments.
"""


def is_judged(names):
    return names[:2] == ["<module>", "main"]


def is_possible(names):
    inner = [name for name in names if name[-2:] in ("_a", "_b")]
    letters = {name[-1] for name in inner}
    in_order = [name[:-2] for name in inner] == ["hot", "mid", "leaf"][:len(inner)]
    return len(letters) < 2 and in_order and (not inner or names.count("down") == 26)


class Counts:
    """Of (function names root first, count, whether proven)."""

    def __init__(self, stacks):
        self.total = self.wrong = self.proven = self.wrong_proven = self.other = 0
        self.examples = []
        for names, count, proven in stacks:
            if not is_judged(names):
                self.other += count
                continue
            wrong = not is_possible(names)
            self.total += count
            self.wrong += count * wrong
            self.proven += count * proven
            self.wrong_proven += count * (wrong and proven)
            if wrong:
                self.examples.append([name for name in names if name[-2:] in ("_a", "_b")] + [names.count("down")])

    @property
    def share(self):
        """In percent."""
        return 100 * self.wrong / max(self.total, 1)

    def __str__(self):
        text = f"{self.wrong} impossible of {self.total} ({self.share:.2f} %), {self.other} not judged"
        return text + (f", for example {self.examples[0]}" if self.examples else "")

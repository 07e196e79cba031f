"""known_stacks.py SECONDS: CPU time in stacks that the program itself writes down. Runs on 2.7 and every 3.

A Python dictionary on standard output: "stacks", each root first with [name, qualified name, file, first line, line of the
call] for every caller of burn(), as sys._getframe tells; "burn", where the time goes: the same, with its last line; and
"version". While they are written down, in the first of many rounds, tell() is on the stack.
"""
import functools
import io
import os
import sys

NEW = sys.version_info >= (3,)
recorded = []
recording = [True]


def burn():
    if recording[0]:
        tell(sys._getframe(1))
    total = 0
    for i in range(6000):
        total += i * i % 7
    return total


def named(code):
    return [code.co_name, getattr(code, "co_qualname", code.co_name), code.co_filename, code.co_firstlineno]


def tell(frame):
    stack = []
    while frame is not None:
        stack.insert(0, named(frame.f_code) + [frame.f_lineno])
        frame = frame.f_back
    if stack not in recorded:
        recorded.append(stack)


def recursion(depth):
    if depth == 0:
        return burn()
    return recursion(depth - 1) + 1


def numbers(count):
    for number in range(count):
        burn()
        yield number


def generator():
    return sum(numbers(3))


def pipeline():
    last = 0
    for number in (number * 2 for number in numbers(2)):
        last += number
    return last


anonymous = lambda: burn()  # noqa: E731


def key(value):
    burn()
    return -value


def through_sorted():
    return sorted([3, 1, 2], key=key)


def through_map():
    return list(map(lambda value: burn() + value, [1, 2]))


class Shop(object):
    def method(self, one, two):
        return burn() + one + two

    @classmethod
    def of_class(cls):
        return burn()

    @staticmethod
    def of_nothing():
        return burn()

    def __getitem__(self, at):
        return burn() + at

    @property
    def price(self):
        return burn()

    class Inner(object):
        def __call__(self):
            return burn()


def over_several_lines():
    shop = Shop()
    return shop.method(
        1,
        shop.of_class(
        ),
    )


def class_methods():
    shop = Shop()
    shop.of_class()
    shop.of_nothing()
    return shop.price


def by_index():
    return Shop()[1]


def by_call():
    return Shop.Inner()()


def decorated(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)
    return wrapper


@decorated
def behind_decorator(value):
    return burn() + value


def nested():
    def inner():
        try:
            return burn()
        finally:
            burn()
    return inner()


def comprehension():
    return [burn() for _ in range(2)]


def exceptions():
    try:
        raise ValueError
    except ValueError:
        return burn()


def far_down(lines):
    """A function of many lines and bytes between two that do something, in a file that is none."""
    scope = {"burn": burn}
    exec(compile("def far():\n    a = 1\n" + "    a += 1\n" * 200 + "\n" * lines + "    a += burn()\n    return a\n",
                 "<far %d>" % lines, "exec"), scope)
    return scope["far"]


DEEDS = [
    ("recursion", lambda: recursion(30)), ("generator", generator), ("pipeline", pipeline), ("lambda", anonymous),
    ("sorted", through_sorted), ("map", through_map), ("lines", over_several_lines), ("methods", class_methods),
    ("index", by_index), ("call", by_call), ("decorator", lambda: behind_decorator(1)), ("nested", nested),
    ("comprehension", comprehension), ("exceptions", exceptions),
    ("far", far_down(100)), ("farther", far_down(40000)),
]


def with_names(folder):
    """Functions whose names a 2.7 source cannot have: Latin-1, UCS-2, UCS-4."""
    path = os.path.join(folder, "known_names.py")
    scope = {"burn": burn}
    with io.open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"), scope)
    return scope["DEEDS"]


def deeds(seconds):
    chosen = DEEDS + (with_names(os.path.dirname(os.path.abspath(__file__))) if NEW else [])
    end = sum(os.times()[:2]) + seconds
    while sum(os.times()[:2]) < end:
        for _, deed in chosen:
            deed()
        recording[0] = False


def main():
    deeds(float(sys.argv[1]))
    print(repr({"stacks": recorded, "burn": named(burn.__code__) + [burn.__code__.co_firstlineno + 6],
                "version": sys.version.split()[0]}).encode("ascii", "backslashreplace").decode("ascii"))
    sys.stdout.flush()


main()

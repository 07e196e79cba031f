"""wide.py SECONDS FUNCTIONS: CPU time in stacks of twenty out of many functions, whose names are long and hardly compress."""
import random
import sys
import time

DEPTH = 20
names, functions = random.Random(1), []


def pattern(n, depth):
    if depth == 0:
        return sum(i * n % 7 for i in range(3000))
    return functions[(n * 31 + depth * 7919) % len(functions)](n + depth, depth - 1)


for _ in range(int(sys.argv[2])):
    name = f"f{names.getrandbits(640):0160x}"
    more = {"co_qualname": name} if hasattr(pattern.__code__, "co_qualname") else {}
    code = pattern.__code__.replace(co_name=name, **more)
    functions.append(type(pattern)(code, globals(), name))
n = 0
while time.process_time() < float(sys.argv[1]):
    n = (n * 1103515245 + 12345) % (1 << 31)
    functions[n % len(functions)](n, DEPTH)

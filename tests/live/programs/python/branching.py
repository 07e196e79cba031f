"""branching.py SECONDS PROCESSES: CPU time in stacks that are hardly ever the same twice, and no two processes alike.

Each call chooses the next of eight functions by a number that walks through all of them.
"""
import os
import sys
import time

DEPTH = 24
source = "def f%d(n, depth):\n    if depth == 0:\n        return work(n)\n" \
         "    return functions[n %% 8](n // 8 * 5 + %d, depth - 1)\n"


def work(n):
    for i in range(40000):
        n = n * 31 % 1000003
    return n


functions = []
for number in range(8):
    scope = {"work": work, "functions": functions}
    exec(compile(source % (number, number * 7919), "branching.py", "exec"), scope)
    functions.append(scope["f%d" % number])

children = []
for _ in range(int(sys.argv[2]) - 1):
    child = os.fork()
    if child == 0:
        children = []
        break
    children.append(child)
n = os.getpid() * 7919
while time.process_time() < float(sys.argv[1]):
    n = (n * 6364136223846793005 + 1442695040888963407) % (1 << 64)
    functions[n % 8](n >> 8, DEPTH)
for child in children:
    os.waitpid(child, 0)

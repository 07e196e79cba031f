"""interpreters.py SECONDS (of CPU time, each): two interpreters beside the first one, each in a thread of its own. Prints
"NAME NUMBER".
"""
import sys
import threading
import time

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

WORK = """
import time
def %s(end):
    total = 0
    while time.thread_time() < end:
        for number in range(1000):
            total += number * number
%s(%r)
"""


def run(interpreter, name, end):
    start = getattr(interpreters, "exec", None) or interpreters.run_string
    start(interpreter, WORK % (name, name, end))


def here(end):
    total = 0
    while time.thread_time() < end:
        for number in range(1000):
            total += number * number


def main(seconds):
    made = {name: interpreters.create() for name in ("first", "second")}
    for name, interpreter in made.items():
        print(name, int(interpreter), flush=True)
    threads = [threading.Thread(target=run, args=(made[name], name, seconds)) for name in made]
    for thread in threads:
        thread.start()
    here(seconds)
    for thread in threads:
        thread.join()
    for interpreter in made.values():
        interpreters.destroy(interpreter)


main(float(sys.argv[1]))

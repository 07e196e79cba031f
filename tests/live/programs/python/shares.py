"""shares.py SECONDS [WARM]: CPU time, 50 % in fifty(), 30 % in thirty(), 20 % in twenty(). Runs on 2.7 and every 3.
Before them WARM seconds in warm(), while a profiler finds it: else what is missed at the start is fifty()'s.

At the end it prints the true shares, as CPU clocks around each call tell: "fifty 0.5003 thirty ... seconds 3.02".
"""
import sys
import time

now = getattr(time, "process_time", None) or time.clock
spent = {}


def fifty(unit):
    total = 0
    for i in range(unit * 5):
        total += i * i % 7
    return total


def thirty(unit):
    total = 0
    for i in range(unit * 3):
        total += i * i % 7
    return total


def twenty(unit):
    total = 0
    for i in range(unit * 2):
        total += i * i % 7
    return total


def warm(end):
    while now() < end:
        pass


def main():
    warm(now() + float((sys.argv[2:] or [0])[0]))
    end = now() + float(sys.argv[1])
    while now() < end:
        for function in (fifty, thirty, twenty):
            begin = now()
            function(100000)
            spent[function.__name__] = spent.get(function.__name__, 0) + now() - begin
    total = sum(spent.values())
    shares = ["%s %.4f" % (name, spent[name] / total) for name in ("fifty", "thirty", "twenty")]
    print(" ".join(shares) + " seconds %.3f" % total)


main()

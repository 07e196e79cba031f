"""made.py SECONDS: functions that are made, run and freed, one after the other: made_N in the file <N>, at its line N.
2.7 and every 3."""
import os
import sys


def make(number):
    scope = {}
    exec(compile("\n" * (number - 1) + "def made_%d():\n    for i in range(3000):\n        pass\n" % number, "<%d>" % number,
                 "exec"), scope)
    return scope["made_%d" % number]


def main(seconds):
    end = sum(os.times()[:2]) + seconds
    number = 0
    while sum(os.times()[:2]) < end:
        number = number % 500 + 1
        make(number)()


main(float(sys.argv[1]))

"""greens.py SECONDS: two greenlets take turns; each has a stack of its own."""
import os
import sys

import greenlet


def work():
    for i in range(20000):
        pass


def green(other):
    while True:
        work()
        greens[other].switch(1 - other)


def main(seconds):
    end = sum(os.times()[:2]) + seconds

    def until(other):
        while sum(os.times()[:2]) < end:
            work()
            greens[other].switch(0)
    greens.extend([greenlet.greenlet(until), greenlet.greenlet(green)])
    greens[0].switch(1)


greens = []
main(float(sys.argv[1]))

"""hot.py SECONDS: 25 frames deep, then hot_a > mid_a > leaf_a and hot_b > mid_b > leaf_b by turns, some microseconds
each. A stack with both letters never was. 2.7 and every 3."""
import os
import sys


def leaf_a(n):
    for i in range(n):
        pass


def mid_a(n):
    leaf_a(n)


def hot_a(n):
    mid_a(n)


def leaf_b(n):
    for i in range(n):
        pass


def mid_b(n):
    leaf_b(n)


def hot_b(n):
    mid_b(n)


def turns(count):
    for i in range(count):
        hot_a(i % 50)
        hot_b(i % 40)


def down(depth, count):
    if depth:
        down(depth - 1, count)
    else:
        turns(count)


def main(seconds):
    end = sum(os.times()[:2]) + seconds
    while sum(os.times()[:2]) < end:
        down(25, 1000)


main(float(sys.argv[1]))

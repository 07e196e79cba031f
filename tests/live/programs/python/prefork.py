"""prefork.py WORKERS SECONDS: a server as many are: a parent that waits, forked workers that work. 2.7 and every 3."""
import os
import sys


def request(number):
    total = 0
    for i in range(20000):
        total += i * number % 7
    return total


def work(seconds):
    end = sum(os.times()[:2]) + seconds
    while sum(os.times()[:2]) < end:
        request(3)


def main(workers, seconds):
    children = []
    for _ in range(workers):
        pid = os.fork()
        if pid == 0:
            work(seconds)
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    print(" ".join(map(str, children)))


main(int(sys.argv[1]), float(sys.argv[2]))

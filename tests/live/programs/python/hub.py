"""hub.py SECONDS [gevent]: for so much CPU time, greenlets that a hub switches to, each deep in functions of its own when it gives way."""
import sys
import time

END = time.process_time() + float(sys.argv[1])


def burn():
    total = 0
    for number in range(20000):
        total += number * number


def one_leaf(give_way):
    burn()
    give_way()


def one(give_way, depth=5):
    while depth and time.process_time() < END:
        one(give_way, depth - 1)
    if not depth:
        one_leaf(give_way)


def two_leaf(give_way):
    give_way()
    burn()


def two(give_way):
    while time.process_time() < END:
        two_leaf(give_way)


def hub_turn(greens):
    burn()
    for green in greens:
        if not green.dead:
            green.switch()


def hub():
    import greenlet
    give_way = greenlet.getcurrent().switch
    greens = [greenlet.greenlet(one), greenlet.greenlet(two)]
    for green in greens:
        green.switch(give_way)
    while time.process_time() < END:
        hub_turn(greens)


def by_gevent():
    import gevent
    gevent.joinall([gevent.spawn(each, gevent.idle) for each in (one, two)])


by_gevent() if sys.argv[2:] else hub()

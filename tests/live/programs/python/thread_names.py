# -*- coding: utf-8 -*-
"""thread_names.py SECONDS: threads that compute at the same time, each in a function of its own: one with a name, one without,
one of a class of its own with many attributes, one that has named itself for the system, one that threading does not know.
"""
import sys
import threading
import time
try:
    from thread import start_new_thread
except ImportError:
    from _thread import start_new_thread

END = time.time() + float(sys.argv[1])


def spin():
    number = 0
    while time.time() < END:
        for i in range(1000):
            number += i


def named():
    spin()


def unnamed():
    spin()


def unknown():
    spin()


def told():
    with open("/proc/thread-self/comm", "w") as file:
        file.write("own-name")
    spin()


def of_a_class():
    spin()


def main():
    spin()


class Worker(threading.Thread):
    def __init__(self, name):
        for i in range(40):
            setattr(self, "attribute_%d" % i, i)
        threading.Thread.__init__(self, name=name)

    def run(self):
        of_a_class()


threads = [threading.Thread(target=named, name="worker-db"), threading.Thread(target=unnamed),
           Worker("a name of more than fifteen bytes; it is cut after sixty-four of its characters" if sys.version_info < (3,)
                  else u"größer als 15 €"), threading.Thread(target=told, name="not-this")]
for thread in threads:
    thread.start()
start_new_thread(unknown, ())
main()
for thread in threads:
    thread.join()

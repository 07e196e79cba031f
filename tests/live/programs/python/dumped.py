"""Threads at known places, and at SIGUSR1 what faulthandler says of them, into the file that is named."""
import faulthandler
import queue
import signal
import sys
import threading
import time


class Work:
    def take(self, tasks):
        tasks.get()


def recurse(depth):
    return recurse(depth - 1) if depth else time.sleep(1000)


def generate():
    yield [time.sleep(1000) for _ in range(1)]


def collect():
    list(generate())


def native():
    sorted([2, 1], key=lambda item: time.sleep(1000))


def main():
    out = open(sys.argv[1], "w")
    faulthandler.register(signal.SIGUSR1, file=out, all_threads=True)
    tasks = queue.Queue()
    threads = [("wörker-%d" % number, Work().take, (tasks,)) for number in range(3)]
    threads += [("recursive", recurse, (40,)), ("generator", collect, ()), ("n" * 60, native, ())]
    for name, target, arguments in threads:
        threading.Thread(target=target, name=name, args=arguments, daemon=True).start()
    time.sleep(0.2)
    print("ready", flush=True)
    time.sleep(1000)


main()

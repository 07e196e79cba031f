"""scribbling.py SEED LIBRARY: spoils the interpreter's own structures while it runs (lab/scribble.c), in a child that another
one follows when it breaks. Any Python of 2.7 to 3.15."""
import ctypes
import os
import random
import sys
import threading
import time


def work(depth):
    if depth:
        return work(depth - 1)
    return sum(i * i for i in range(300))


def spin():
    while True:
        work(12)


def roots():
    """Addresses of what a profiler reads, each with how many words of it are spoilt."""
    api = ctypes.pythonapi
    state = api.PyThreadState_Get
    state.restype = ctypes.c_void_p
    thread = state()
    found = [(thread, 40), (id(work.__code__), 24), (id(sys._getframe()), 16), (id(work), 16), (id(type(work)), 30)]
    for name in ("_PyRuntime",):
        try:
            found.append((ctypes.addressof(ctypes.c_char.in_dll(api, name)), 600))
        except ValueError:
            pass
    return found


def child(seed, library):
    draw = random.Random(seed)
    spoil = ctypes.PyDLL(library).scribble
    spoil.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint, ctypes.c_long, ctypes.c_uint]
    spoil.restype = None
    for _ in range(2):
        thread = threading.Thread(target=spin)
        thread.daemon = True
        thread.start()
    end = time.time() + 0.7
    while time.time() < end:
        at, words = draw.choice(roots())
        work(draw.randrange(30))
        spoil(draw.getrandbits(63), at, words, os.getpid(), draw.choice((20000, 2000000, 10000000)))
    os._exit(0)


def main(seed, library):
    ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
    while True:
        pid = os.fork()
        if pid == 0:
            ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
            child(seed, library)
        os.waitpid(pid, 0)
        seed += 1
        time.sleep(0.01)


main(int(sys.argv[1]), sys.argv[2])

"""rawfork.py SECONDS: a worker that C forked behind the interpreter's back, as servers with a Python plugin do."""
import ctypes
import os
import sys


def work(seconds):
    end = sum(os.times()[:2]) + seconds
    while sum(os.times()[:2]) < end:
        for number in range(20000):
            pass


pid = ctypes.PyDLL(None).fork()
if pid == 0:
    work(float(sys.argv[1]))
    os._exit(0)
os.waitpid(pid, 0)
print(pid)

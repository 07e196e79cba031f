"""Holding one thread of a process: the others go on. ptrace, from this thread, of a process of this user or below root."""
import contextlib
import ctypes
import os

SEIZE, INTERRUPT, DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def request(what, tid):
    if libc.ptrace(ctypes.c_long(what), ctypes.c_long(tid), None, None) < 0:
        raise OSError(ctypes.get_errno(), f"ptrace {what:#x} of {tid}")


@contextlib.contextmanager
def held(tid):
    """The thread stands still until the block ends. OSError when that may not be done here."""
    request(SEIZE, tid)
    try:
        request(INTERRUPT, tid)
        os.waitpid(tid, WALL)
        yield
    finally:
        request(DETACH, tid)

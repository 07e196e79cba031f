"""Where a thread stands still: watched from outside, so that nothing has to be built in for it.

    with stalls.Watch(pid) as watch:    its main thread; Watch(pid, tid) another one
        ...
    watch.longest("poll", "ppoll")      (seconds, system call) of the longest stand outside of these
    watch.looks, watch.waits            how often it was looked at; and how often it was met waiting, by call

Two looks at a thread that stands in a call without having run in between are one stand; one that waits for a CPU
stands nowhere, so it does not matter how busy the machine is. Wants to be root, or the one who started it.
"""
import collections
import platform
import threading
import time
from pathlib import Path

NAMES = {"x86_64": {0: "read", 1: "write", 7: "poll", 17: "pread64", 35: "nanosleep", 74: "fsync", 202: "futex",
                    230: "clock_nanosleep", 232: "epoll_wait", 270: "pselect6", 271: "ppoll", 281: "epoll_pwait"},
         "aarch64": {22: "epoll_pwait", 63: "read", 64: "write", 67: "pread64", 72: "pselect6", 73: "ppoll", 82: "fsync",
                     98: "futex", 101: "nanosleep", 115: "clock_nanosleep"}}[platform.machine()]


class Watch:
    def __init__(self, pid, tid=None, pause=0.002):
        self.folder, self.pause = Path(f"/proc/{pid}/task/{tid or pid}"), pause
        self.looks, self.waits, self.stands = 0, collections.Counter(), []
        self._look()  # OSError when that may not be
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _look(self):
        """(name of the call that it stands in or None, how often it ran so far)"""
        runs = (self.folder / "schedstat").read_text().split()[2]
        words = (self.folder / "syscall").read_text().split()
        again = (self.folder / "schedstat").read_text().split()[2]
        stands = words[0].isdigit() and runs == again
        return NAMES.get(int(words[0]), f"call {words[0]}") if stands else None, runs

    def _run(self):
        before, since = None, 0.0
        while not self._ending.wait(self.pause):
            try:
                here, now = self._look(), time.monotonic()
            except OSError:
                return
            self.looks += 1
            self.waits[here[0]] += here[0] is not None
            if here != before:
                before, since = here, now
            elif here[0] is not None:
                self.stands.append((now - since, here[0]))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ending.set()
        self._thread.join()

    def longest(self, *allowed):
        return max((stand for stand in self.stands if stand[1] not in allowed), default=(0.0, None))

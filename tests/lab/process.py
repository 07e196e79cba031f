"""Starting, watching and ending processes.

Every process gets a session of its own, so that a signal to its group reaches nobody else. The
test run is a "child subreaper": whatever a process leaves behind (a daemon, a detached profiler)
becomes our child and can be waited for (`settle`) and, after a test, ended (`end_leftovers`).
Processes are ended by their id only.
"""
import ctypes
import errno
import os
import re
import selectors
import signal
import subprocess
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
owned = {}
# Children that other helpers started and end themselves.
foreign = set()


def become_subreaper():
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def take_default_signals():
    """A run started in the background or by nohup ignores some signals, and what we start would inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        signal.signal(number, signal.SIG_DFL)


class Done:
    """What came of a run. `status` is the shell's view: 0-255, or 128 + n when signal n killed it."""

    def __init__(self, process, status, usage, stdout, stderr, seconds):
        self.pid = process.pid
        self.status = status
        self.usage = usage
        self.stdout, self.stderr = stdout, stderr
        self.out, self.err = stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace")
        self.seconds = seconds

    @property
    def cpu_seconds(self):
        """CPU time of the process and of the children it waited for."""
        return self.usage.ru_utime + self.usage.ru_stime

    def __repr__(self):
        return f"status {self.status} after {self.seconds:.2f} s\nstdout: {self.out!r}\nstderr: {self.err}"


class Process:
    """A started process. Pipes are read into memory; use `finish` to get all of it, once."""

    def __init__(self, argv, *, stdin=b"", env=None, cwd=None, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                 **options):
        self.argv = [str(a) for a in argv]
        self.started = time.monotonic()
        piped = isinstance(stdin, bytes) and stdin
        source = subprocess.PIPE if piped else subprocess.DEVNULL if stdin == b"" else stdin
        self.popen = subprocess.Popen(self.argv, stdin=source, stdout=stdout, stderr=stderr, env=env, cwd=cwd,
                                      start_new_session=True, bufsize=0, **options)
        self.pid = self.popen.pid
        self.status = self.usage = None
        owned[self.pid] = self
        if piped:
            # All inputs of the tests are far below a pipe's 64 KiB.
            self.popen.stdin.write(stdin)
            self.popen.stdin.close()
        self.buffers = {stream: bytearray() for stream in (self.popen.stdout, self.popen.stderr) if stream}
        self.ending = os.pidfd_open(self.pid)
        self.selector = selectors.DefaultSelector()
        for stream in self.buffers:
            os.set_blocking(stream.fileno(), False)
            self.selector.register(stream, selectors.EVENT_READ)

    def poll(self):
        """Reaps it when it has ended. The status, or None while it runs."""
        if self.status is None:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self._ended(status, usage)
        return self.status

    def _ended(self, status, usage):
        code = os.waitstatus_to_exitcode(status)
        self.status = code if code >= 0 else 128 - code
        self.usage = usage
        self.seconds = time.monotonic() - self.started
        self.popen.returncode = self.status
        owned.pop(self.pid, None)

    def pump(self, seconds):
        """Reads what the pipes hold, waiting at most `seconds` for something."""
        for key, _ in self.selector.select(seconds):
            if key.fileobj == self.ending:
                continue
            data = key.fileobj.read(1 << 16)
            if data:
                self.buffers[key.fileobj] += data
            elif data == b"":
                self.selector.unregister(key.fileobj)

    @property
    def open_pipes(self):
        return len(self.selector.get_map())

    def text(self, stream):
        return bytes(self.buffers.get(stream, b"")).decode("utf-8", "replace")

    @property
    def err(self):
        self.pump(0)
        return self.text(self.popen.stderr)

    @property
    def out(self):
        self.pump(0)
        return self.text(self.popen.stdout)

    def wait(self, timeout=30):
        """Until the process itself has ended; its pipes may still be held by others."""
        deadline = time.monotonic() + timeout
        self.selector.register(self.ending, selectors.EVENT_READ)
        try:
            while self.poll() is None:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{' '.join(self.argv)} still runs after {timeout} s\n{self.err}")
                self.pump(0.5)
        finally:
            self.selector.unregister(self.ending)
        return self.status

    def finish(self, timeout=30):
        """Until it has ended and nobody holds its pipes: a Done. Ends its group when that takes too long."""
        deadline = time.monotonic() + timeout
        try:
            self.wait(timeout)
            while self.open_pipes:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"a pipe of {' '.join(self.argv)} is still open after {timeout} s\n{self.err}")
                self.pump(0.05)
        except BaseException:
            self.end()
            raise
        return self.done()

    def done(self):
        self.pump(0)
        for stream in self.buffers:
            stream.close()
        if self.ending >= 0:
            os.close(self.ending)
            self.ending = -1
        refused = re.search("system call .* was refused: it is none", self.text(self.popen.stderr))
        assert not refused or self.argv[0].endswith("/plant"), self.text(self.popen.stderr)
        return Done(self, self.status, self.usage, bytes(self.buffers.get(self.popen.stdout, b"")),
                    bytes(self.buffers.get(self.popen.stderr, b"")), self.seconds)

    def signal(self, number):
        os.kill(self.pid, number)

    def end(self):
        """Kills its own session's group, then reaps it."""
        if self.poll() is None:
            for kill in (os.killpg, os.kill):
                try:
                    kill(self.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            while self.poll() is None:
                time.sleep(0.002)


def start(argv, **options):
    return Process(argv, **options)


def run(argv, timeout=30, **options):
    return Process(argv, **options).finish(timeout)


# ---- What /proc says

def stat(pid):
    """The fields of /proc/PID/stat after the name, [0] is the state; None when it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")  # a name may be any bytes
    except OSError:
        return None
    return text[text.rindex(")") + 2:].split()


def parent_of(pid):
    fields = stat(pid)
    return int(fields[1]) if fields else 0


def state_of(pid):
    fields = stat(pid)
    return fields[0] if fields else None


def threads_of(pid):
    """Of each thread by its id: its state, and who traces it (0: nobody)."""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/status", encoding="utf-8", errors="replace") as file:
                text = file.read()
        except (FileNotFoundError, ProcessLookupError):
            continue
        found[tid] = re.search(r"^State:\t(.)", text, re.M)[1], int(re.search(r"^TracerPid:\t(\d+)", text, re.M)[1])
    return found


def cpu_seconds(pid):
    """utime + stime of a live process, in seconds."""
    fields = stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children_of(pid):
    return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and parent_of(int(p.name)) == pid]


def descendants_of(pid):
    parents = {int(p.name): parent_of(int(p.name)) for p in Path("/proc").iterdir() if p.name.isdigit()}
    found, level = [], {pid}
    while level:
        level = {p for p, parent in parents.items() if parent in level}
        found += sorted(level)
    return found


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def leftovers():
    """Orphans that came to us and still run. Reaps those that have ended.

    The children of what was just reaped come to us only now, so one look finds all only when it reaped nothing.
    """
    while True:
        running, reaped = [], False
        for pid in children_of(os.getpid()):
            if pid in owned or pid in foreign:
                continue
            try:
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    running.append(pid)
                else:
                    reaped = True
            except ChildProcessError:
                pass
        if not reaped:
            return running


def settle(timeout=10, ignore=()):
    """Waits until every orphan of earlier runs has ended: a detached profiler has then written its files."""
    until(lambda: not set(leftovers()) - set(ignore), timeout,
          lambda: "still running: " + ", ".join(f"{p} {command_line(p)}" for p in leftovers()))


def until(condition, timeout=10, what="the condition", pause=0.01):
    """Waits for condition() to be true and returns its value."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout} s: {what() if callable(what) else what}")
        time.sleep(pause)


def end_leftovers():
    """Ends what a test left running, by id; returns what it was, in words."""
    found = []
    for process in list(owned.values()):
        if process.poll() is None:
            found.append(f"{process.pid} {' '.join(process.argv)}")
            below = descendants_of(process.pid)
            process.end()
            for pid in below:
                _kill(pid)
    for _ in range(50):
        running = leftovers()
        if not running:
            break
        # What is about to end by itself is no leftover.
        if _ < 10:
            time.sleep(0.05)
            continue
        for pid in running:
            found.append(f"{pid} {command_line(pid)}")
            _kill(pid)
        time.sleep(0.01)
    return sorted(set(found))


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError as error:
        if error.errno != errno.ESRCH:
            raise

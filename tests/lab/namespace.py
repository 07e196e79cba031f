"""A PID namespace of its own for a load and a profiler of all processes, which then sees nothing else. Wants root."""
import subprocess

from . import process


class Namespace:
    """Its first process starts the load when it is told to, so that the load's parent is there before the profiler."""

    def __init__(self, load):
        self.load = process.start(["unshare", "-pf", "--mount-proc", "sh", "-c", 'read go; "$@"; exit $?', "sh", *load],
                                  stdin=subprocess.PIPE)
        self.first = process.until(lambda: process.children_of(self.load.pid), 10, "the first process runs")[0]
        # Until /proc is its own.
        process.until(lambda: process.command_line(self.first).startswith("sh -c"), 10, "the namespace is made")

    def profile(self, *argv):
        """Starts a profiler inside; the process to wait for, and the profiler's pid as it is here."""
        started = process.start(["nsenter", "-t", str(self.first), "-p", "-m", *argv])
        process.until(lambda: "all processes" in started.err, 20, "it began")
        return started, process.children_of(started.pid)[0]

    def begin(self):
        self.load.popen.stdin.write(b"go\n")

    def end(self):
        """Ends the load's input; its status."""
        self.load.popen.stdin.close()
        return self.load.finish().status

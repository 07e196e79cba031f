"""A real interactive shell in a pseudo terminal."""
import os
import pty
import re
import select
import signal
import struct
import termios
import time
import fcntl

from . import process

PROMPT = "lab-prompt> "
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")


def shown(text):
    """What of a text is seen in the end: behind a carriage return what follows is written over the line."""
    lines = []
    for line in text.split("\n"):
        seen = ""
        for part in line.split("\r"):
            seen = part + seen[len(part):]
        lines.append(seen.rstrip(" ") if "\r" in line else line)
    return "\n".join(lines)


class Shell:
    def __init__(self, folder, environment, columns=80):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            # Later the shell would be told, and might draw its prompt twice.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            os.chdir(folder)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], {
                "PATH": os.environ["PATH"], "PS1": PROMPT, "TERM": "xterm", "HOME": str(folder), "HISTFILE": "",
                "LC_ALL": "C", **environment})
        process.foreign.add(self.pid)
        self.seen = ""
        self.prompt()
        self.command("bind 'set enable-bracketed-paste off'")

    def read(self, seconds):
        ready, _, _ = select.select([self.terminal], [], [], seconds)
        if not ready:
            return ""
        try:
            text = os.read(self.terminal, 65536).decode("utf-8", "replace")
        except OSError:
            return ""
        return ESCAPES.sub("", text).replace("\r\n", "\n")

    def expect(self, wanted, timeout=15):
        """Reads until the text appears; what came before and the text."""
        deadline = time.monotonic() + timeout
        while wanted not in self.seen:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {wanted!r} within {timeout} s in:\n{self.seen}")
            self.seen += self.read(0.05)
        at = self.seen.index(wanted) + len(wanted)
        text, self.seen = self.seen[:at], self.seen[at:]
        return text

    def prompt(self, timeout=15):
        return self.expect(PROMPT, timeout)

    def send(self, text):
        os.write(self.terminal, text.encode())

    def command(self, line, timeout=15):
        self.send(line + "\n")
        return self.prompt(timeout)

    def status(self):
        """$? of the last command."""
        return int(re.search(r"=(\d+)=", self.command("echo =$?=").split("=$?=", 1)[1]).group(1))

    def quiet(self, seconds):
        """What is printed within that time although nothing was asked."""
        deadline, text = time.monotonic() + seconds, self.seen
        while time.monotonic() < deadline:
            text += self.read(0.05)
        self.seen = ""
        return text

    def close(self):
        below = process.descendants_of(self.pid)
        os.close(self.terminal)
        for pid in [self.pid, *below]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            pass
        process.foreign.discard(self.pid)

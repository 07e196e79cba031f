"""A program in a terminal of a given size, by tmux: keys in, what stands on the screen out."""
import os
import re
import shlex
import shutil
import subprocess
import time

import pytest

from . import process


class Screen:
    """`command` is what a shell runs; behind it EXIT and its status are printed, and the terminal's settings as before."""

    def __init__(self, folder, argv, columns=80, rows=24, environment=()):
        if not shutil.which("tmux"):
            pytest.skip("tmux is missing")
        self.socket = folder / "tmux"
        line = " ".join(shlex.quote(str(word)) for word in ("env", *(f"{name}={value}" for name, value in dict(environment).items()), *argv))
        script = f"cd {folder}; {line} 2>errors; echo EXIT=$?; stty -a | tr ';' '\\n' | grep -o -e '[-]*icanon' -e '[-]*echo$' -e '[-]*isig'; exec sleep 60"
        self.call("-f", "/dev/null", "new-session", "-d", "-s", "x", "-x", str(columns), "-y", str(rows), script,
                  env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TERM": "xterm"})
        self.pane = int(self.call("list-panes", "-F", "#{pane_pid}"))
        self.server = int(self.call("display-message", "-p", "#{pid}"))

    def call(self, *arguments, env=None):
        done = subprocess.run(["tmux", "-u", "-S", str(self.socket), *arguments], capture_output=True, text=True, env=env, timeout=20)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def send(self, *keys):
        self.call("send-keys", "-t", "x", *keys)

    def resize(self, columns, rows):
        self.call("resize-window", "-t", "x", "-x", str(columns), "-y", str(rows))

    def lines(self):
        return self.call("capture-pane", "-p", "-t", "x").splitlines()

    def expect(self, pattern, timeout=20):
        """Until the screen has it: the lines."""
        def seen():
            lines = self.lines()
            return lines if re.search(pattern, "\n".join(lines), re.M) else None
        return process.until(seen, timeout, lambda: f"{pattern!r} in\n" + "\n".join(self.lines()), 0.1)

    def close(self):
        below = process.descendants_of(self.server)
        self.call("kill-server")
        deadline = time.monotonic() + 10
        while any(process.state_of(pid) not in ("Z", None) for pid in below) and time.monotonic() < deadline:
            time.sleep(0.05)


NUMBER = re.compile(r" *\d+(\.\d+)?")


def normalised(lines, rows):
    """Numbers are N, and of a table's rows those with a name in `rows` stay."""
    out = []
    for line in lines:
        is_row = re.match(r"[ >]+\d+\.\d ", line)
        if not is_row or any(re.search(rf"\b{name}\b", line) for name in rows):
            out.append(NUMBER.sub(" N", line).strip())
    while out and out[-1] == "":
        out.pop()
    return re.sub(r"\n\n+", "\n\n", "\n".join(out)) + "\n"

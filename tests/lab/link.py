"""A slow link: two network namespaces, a cable between them, and on it a token bucket (tc-tbf). Wants root.

    with link.Server(...) as server:            what takes requests, in a namespace of its own
        prefix = link.prefix(server, 1000000)   a command behind it is at the other end, with so many bytes a second
        ... server.url
    server.requests                             (path, bytes, seconds that the body took), when it has ended

A kernel without the bucket, or without the right to have one: link.missing() says so.
"""
import json
import os
import subprocess
import sys

if __package__:
    from . import process
    from .sink import Sink
else:
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    from lab import process
    from lab.sink import Sink

NEAR, FAR, PORT = "10.9.0.1", "10.9.0.2", 8080
BURST = 16 * 1024


def missing():
    """Why there can be no such link here: None, or the reason in words."""
    done = subprocess.run(["unshare", "--net", sys.executable, __file__, "try"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=20)
    return None if done.returncode == 0 else (done.stdout.strip() or f"status {done.returncode}").splitlines()[-1]


def prefix(server, bytes_per_second):
    return ["unshare", "--net", sys.executable, __file__, "shape", str(bytes_per_second), str(server.pid)]


class Server:
    url = f"http://{FAR}:{PORT}"

    def __init__(self):
        self.process = process.start(["unshare", "--net", sys.executable, __file__, "serve"], stdin=subprocess.PIPE)
        self.pid, self.requests = self.process.pid, None
        process.until(lambda: "listening" in self.process.out, 20, lambda: self.process.err)

    def count(self):
        return self.process.out.count("\n") - 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.popen.stdin.close()
        done = self.process.finish(20)
        self.requests = [json.loads(line) for line in done.out.splitlines()[1:]]


# ---- Inside the namespaces

def call(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, timeout=20)


def add_bucket(bytes_per_second):
    call("ip", "link", "set", "near", "up")
    call("tc", "qdisc", "add", "dev", "near", "root", "tbf", "rate", f"{8 * bytes_per_second}bit", "burst", str(BURST),
         "latency", "400ms")


def shape(bytes_per_second, pid, *command):
    """Lays the cable to the namespace of that process, and becomes the command."""
    call("ip", "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", pid)
    call("ip", "addr", "add", f"{NEAR}/24", "dev", "near")
    add_bucket(int(bytes_per_second))
    there = ["nsenter", "-t", pid, "--net"]
    call(*there, "ip", "addr", "add", f"{FAR}/24", "dev", "far")
    call(*there, "ip", "link", "set", "far", "up")
    os.execvp(command[0], command)


def attempt():
    call("ip", "link", "add", "near", "type", "veth", "peer", "name", "far")
    add_bucket(1000000)


class Telling(Sink):
    """Says at once what has come."""

    def _answer(self, connection, request, *answer):
        print(json.dumps([request.path, len(request.body), request.moment - request.begun]), flush=True)
        return super()._answer(connection, request, *answer)


def serve():
    with Telling(host="0.0.0.0", port=PORT):
        print("listening", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    {"shape": shape, "serve": serve, "try": attempt}[sys.argv[1]](*sys.argv[2:])

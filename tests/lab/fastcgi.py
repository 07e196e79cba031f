#!/usr/bin/python3
"""A FastCGI server under load: starts php-fpm with three workers, of which requests, one behind the other, keep some busy.

    tests/lab/fastcgi.py PHP_FPM SCRIPT SECONDS       prints JSON: requests, CPU seconds of the server and its workers
"""
import json
import os
import resource
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONFIGURATION = """[global]
error_log = /dev/null
daemonize = no
[www]
listen = {socket}
user = nobody
group = nogroup
listen.mode = 0666
pm = static
pm.max_children = 3
"""


def record(kind, content):
    return struct.pack(">BBHHBB", 1, kind, 1, len(content), 0, 0) + content


def request(path, script):
    """One request; its answer's body."""
    names = {"SCRIPT_FILENAME": script, "REQUEST_METHOD": "GET", "SCRIPT_NAME": "/request.php", "REQUEST_URI": "/request.php",
             "QUERY_STRING": "id=7"}
    pairs = b"".join(bytes([len(name), len(value)]) + (name + value).encode() for name, value in names.items())
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(10)
        one.connect(path)
        one.sendall(record(1, struct.pack(">HB5x", 1, 0)) + record(4, pairs) + record(4, b"") + record(5, b""))
        answer = b""
        while part := one.recv(65536):
            answer += part
    body = b""
    while answer:
        kind, length, padding = struct.unpack(">xBxxHBx", answer[:8])
        body += answer[8:8 + length] if kind == 6 else b""
        answer = answer[8 + length + padding:]
    return body.partition(b"\r\n\r\n")[2]


def load(running, ask, seconds):
    """Asks once the server answers, ends it, and prints what became of it."""
    count, end = 0, time.monotonic() + 10
    while time.monotonic() < end:
        try:
            ask()
            break
        except OSError:
            time.sleep(0.01)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert ask() == b"2000\n"
        count += 1
    running.terminate()
    running.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({"requests": count, "cpu": used.ru_utime + used.ru_stime}))


def main(server, script, seconds):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = f"{folder}/php.socket"
        Path(folder, "php.conf").write_text(CONFIGURATION.format(socket=path))
        running = subprocess.Popen([server, "-F", "-y", f"{folder}/php.conf"])
        load(running, lambda: request(path, script), seconds)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))

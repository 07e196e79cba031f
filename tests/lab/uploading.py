"""pillion attached to a process and uploading, and what a server saw of it.

Windows are ended by SIGUSR1, so that ten of them take a second.
"""
import re
import signal
import ssl

from . import process

WINDOWS = "/in/{start}/{sequence}"
BUSY = """
import time
def outer(n):
    return inner(n) if n % 2 else leaf(n)
def inner(n):
    return leaf(n) + sum(range(n % 50))
def leaf(n):
    return sum(i * i for i in range(200))
n, end = 0, time.monotonic() + 60
while time.monotonic() < end:
    n += outer(n)
    n %= 1000003
"""


class Run:
    """pillion attached to a process, uploading."""

    def __init__(self, pillion, *options, backend="http", command=("sleep", "60"), env=None, prefix=()):
        self.target = process.start(list(command))
        argv = [*prefix, pillion, "-p", self.target.pid, "-c", "-d", 600, "-u", "--backend", backend, *options]
        self.pillion = process.start(argv, env=env)
        self.windows = 0
        process.until(lambda: " profiles pid " in self.pillion.err, 10, lambda: self.pillion.err)

    @property
    def err(self):
        return self.pillion.err

    def window(self, count=1):
        for _ in range(count):
            self.windows += 1
            self.pillion.signal(signal.SIGUSR1)
            process.until(lambda: len(self.summaries) == self.windows, 20, lambda: self.err)

    @property
    def summaries(self):
        return re.findall(r"^pillion: \d\d:\d\d cpu=.*$", self.err, re.M)

    def end(self):
        """Its last window is one more. What it said."""
        self.pillion.signal(signal.SIGTERM)
        done = self.pillion.finish(30)
        self.target.end()
        self.windows += 1
        assert done.status == 0, done
        return done.err

    def kill(self):
        self.pillion.end()
        self.target.end()


def until_taken(sink, count, run=None, timeout=20):
    process.until(lambda: len(sink.taken) >= count, timeout,
                  lambda: f"{len(sink.taken)} of {count} taken, {len(sink.seen)} seen\n{run.err if run else ''}")


def sequences(sink):
    return [int(request.path.split("/")[3]) for request in sink.taken]


def starts(sink):
    return [request.path.split("/")[2] for request in sink.taken]


def sent_kept_lost(said):
    found = re.search(r"uploads: (\d+) sent \(\d+ KB\), (\d+) kept in the spool, (\d+) lost", said)
    assert found, said
    return tuple(int(n) for n in found.groups())


def certificate(folder):
    """(file to trust, what a server of this machine shows): a certificate of its own, ECDSA P-256, for 127.0.0.1."""
    process.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                 folder / "key.pem", "-out", folder / "cert.pem", "-days", "2", "-subj", "/CN=lab",
                 "-addext", "subjectAltName=IP:127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return folder / "cert.pem", context

"""An HTTP server that takes what profilers send, and misbehaves as it is told.

Its `script` is a list of deeds; each request takes the next one, and "ok" when none is left:

    200 … 599, or (status, {header: value}, body)   this answer
    "mute"     reads all, never answers
    "slow"     reads the body in small pieces for half a second, then answers
    "cut"      resets the connection in the middle of the body
    "half"     begins an answer and ends the connection
    "lie"      says that its answer is longer than it is, and ends the connection

A callable deed is asked with the request and returns one of these.
"""
import json
import socket
import struct
import threading
import time


class Request:
    def __init__(self, method, target, headers, body, begun=0.0):
        self.method, self.target, self.headers, self.body = method, target, headers, body
        self.begun, self.moment = begun, time.monotonic()
        self.status = None

    @property
    def path(self):
        return self.target.split("?")[0]


class Sink:
    """`seen` has every request whose body was read; `taken` those that were answered with success."""

    def __init__(self, script=(), port=0, answer=None, tls=None, host="127.0.0.1"):
        self.script, self.seen, self.tls = list(script), [], tls
        self.answer = answer or (200, {}, b"")
        self.lock, self.ending = threading.Lock(), threading.Event()
        self.listener = socket.create_server((host, port))
        self.port = self.listener.getsockname()[1]
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def taken(self):
        with self.lock:
            return [request for request in self.seen if request.status and request.status < 300]

    def close(self):
        self.ending.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection:
            try:
                connection = self.tls.wrap_socket(connection, server_side=True) if self.tls else connection
                stream = connection.makefile("rb")
                while self._one(connection, stream):
                    pass
            except OSError:
                pass

    def _one(self, connection, stream):
        first = stream.readline().decode("latin-1").split()
        if len(first) != 3:
            return False
        headers = {}
        while (line := stream.readline().decode("latin-1").strip()):
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        begun, length = time.monotonic(), int(headers.get("content-length", 0))
        with self.lock:
            deed = self.script.pop(0) if self.script else "ok"
        if deed == "cut":
            stream.read(length // 2)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        request = Request(first[0], first[1], headers, self._body(stream, length, deed == "slow"), begun)
        with self.lock:
            self.seen.append(request)
        deed = deed(request) if callable(deed) else deed
        if deed == "mute":
            self.ending.wait(60)
            return False
        if deed in ("half", "lie"):
            connection.sendall(b"HTTP/1.1 2" if deed == "half" else b"HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\nsho")
            return False
        answer = self.answer if deed in ("ok", "slow") else deed if isinstance(deed, tuple) else (deed, {}, b"")
        return self._answer(connection, request, *answer)

    def _body(self, stream, length, slowly):
        if not slowly:
            return stream.read(length)
        body = b""
        while len(body) < length:
            body += stream.read(max(1, min(length - len(body), length // 20)))
            time.sleep(0.025)
        return body

    def _answer(self, connection, request, status, headers, body):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = f"HTTP/1.1 {status} Word\r\nContent-Length: {len(body)}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        with self.lock:
            request.status = status  # before it is sent: the client may be gone, and the test asking, at once after
        connection.sendall(head.encode() + b"\r\n" + body)
        return True


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]

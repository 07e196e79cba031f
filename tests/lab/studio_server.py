"""A server whose answers are scripted, for tests of deliveries: by default Performance Studio's, by its model.

    with studio_server.Server([500, (429, {"Retry-After": "1"}), 413, "ok", "hang", "cut"]) as server:
        ... server.url, server.accepted, server.statuses, server.wait(accepted=3)

Each request that is judged (uploads; health checks are not counted) takes the next step of the script; then all are "ok":

    "ok"             judged by the model, which may refuse it
    413              this status, whatever was sent; (413, {header: value}) and (413, {...}, body) as well
    "hang"           all is read, no answer comes until the server is closed
    "cut"            half of the body is read, then the connection is reset
    "cut-answer"     all is read, the answer ends in the middle
    "early", status  answered after the head, before any of the body is read
    "slow", seconds  the body is read over so long, then "ok"
    "lie"            the answer promises more bytes than it has
    "drop"           the upload is kept, and the connection is reset before the answer: it was taken and nobody knows
    callable         called with the request; gives (status, headers, body)

Logs have a script of their own, `logs`: statuses, "hang", or None for a studio without a log service. By default they are judged,
and accepted batches are kept in `batches`, all requests of them in `log_requests`.

Every accepted upload is kept in `accepted`, every request in `requests`, every answer in `statuses` (None: there was none).
`judge` takes a studio_model.Request and gives (status, answer, what is kept). Only addresses of this machine are listened at;
with `path` it is a Unix socket.
"""
import contextlib
import http.server
import json
import socket
import struct
import threading
import time

from . import studio_model


class Server:
    def __init__(self, script=(), judge=studio_model.judge, tls=None, port=0, is_upload=None, path=None, logs=()):
        self.log_script = None if logs is None else list(logs)
        self.log_requests, self.batches = [], []
        self.script, self.judge = list(script), judge
        self.requests, self.accepted, self.statuses, self.health_checks = [], [], [], 0
        self.connections = 0
        self.is_upload = is_upload or (lambda request: request.method in ("POST", "PUT"))
        self._changed, self._closing = threading.Condition(), threading.Event()
        self._open = set()
        self._server = _SocketListener(str(path), _Handler) if path else _Listener(("127.0.0.1", port), _Handler)
        self._server.owner = self
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = None if path else self._server.server_address[1]
        self.url = f"unix://{path}" if path else f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends listening and every connection; may be called twice."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def wait(self, seconds=20, **counts):
        """Waits until so many are there: accepted=3, requests=5. True when they are."""
        with self._changed:
            return self._changed.wait_for(
                lambda: all(len(getattr(self, name)) >= count for name, count in counts.items()), seconds)

    # ---- Called by handlers

    def next_step(self):
        with self._changed:
            return self.script.pop(0) if self.script else "ok"

    def next_log_step(self):
        with self._changed:
            if self.log_script is None:
                return 404
            return self.log_script.pop(0) if self.log_script else "ok"

    def note_logs(self, request=None, batch=None):
        with self._changed:
            if request is not None:
                self.log_requests.append(request)
            if batch is not None:
                self.batches.append(batch)
            self._changed.notify_all()

    def note(self, request=None, status=None, kept=None, answered=False):
        with self._changed:
            if request is not None:
                self.requests.append(request)
            if answered:
                self.statuses.append(status)
            if kept is not None:
                self.accepted.append(kept)
            self._changed.notify_all()

    def closed_within(self, seconds):
        return self._closing.wait(seconds)


class _Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        """Connections that are cut are what is tested."""


class _SocketListener(_Listener):
    address_family = socket.AF_UNIX

    def server_bind(self):
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = "localhost", 0


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def setup(self):
        super().setup()
        self.owner = self.server.owner
        self.owner.connections += 1
        self.owner._open.add(self.connection)
        if self.connection.family != socket.AF_UNIX:
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def finish(self):
        self.owner._open.discard(self.connection)
        super().finish()

    def log_message(self, *_):
        """Nothing is printed."""

    def handle_any(self):
        probe = studio_model.Request(self.command, self.path, self.headers, b"")
        if probe.path == studio_model.LOGS:
            return self.handle_logs()
        if not self.owner.is_upload(probe):
            self.owner.health_checks += 1
            return self.answer_by_model(self.request_of(self.read_body()), counted=False)
        step = self.owner.next_step()
        name, *more = step if isinstance(step, tuple) else (step,)
        scripted = {"hang": self.hang, "cut": self.cut, "cut-answer": self.cut_answer, "early": self.early, "slow": self.slow,
                    "lie": self.lie, "drop": self.drop}.get(name)
        if scripted:
            return scripted(*more)
        request = self.request_of(self.read_body())
        self.owner.note(request)
        if callable(name):
            status, headers, body = name(request)
            return self.send(status, headers, body)
        if isinstance(name, int):
            headers, body = (more + [{}, None][len(more):])[:2]
            return self.send(name, headers or {}, body if body is not None else b"{\"message\": \"scripted\"}")
        return self.answer_by_model(request)

    do_GET = do_POST = do_PUT = do_HEAD = handle_any

    def handle_logs(self):
        request = self.request_of(self.read_body())
        step = self.owner.next_log_step()
        self.owner.note_logs(request)
        if step == "hang":
            self.close_connection = True
            return self.owner.closed_within(120)
        if isinstance(step, int):
            return self.send(step, {}, {"detail": "scripted"}, counted=False)
        status, answer, batch = studio_model.judge_logs(request)
        self.owner.note_logs(batch=batch)
        return self.send(status, {"Content-Type": "application/json"}, answer, counted=False)

    # ---- Reading

    def length(self):
        return int(self.headers.get("Content-Length") or 0)

    def read_body(self, most=None):
        if self.headers.get("Transfer-Encoding"):
            return b""
        return self.rfile.read(self.length() if most is None else most)

    def request_of(self, body):
        return studio_model.Request(self.command, self.path, self.headers, body)

    # ---- Answering

    def answer_by_model(self, request, counted=True):
        status, answer, kept = self.owner.judge(request)
        if kept is not None:
            self.owner.note(kept=kept)
        self.send(status, {"Content-Type": "application/json"}, answer, counted)

    def send(self, status, headers, body, counted=True):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        if isinstance(body, str) and body.startswith("<"):
            data = body.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()
        if counted:
            self.owner.note(status=status, answered=True)

    def reset(self):
        """A reset instead of an orderly end."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.owner.note(answered=True)
        with contextlib.suppress(OSError):
            self.connection.close()

    # ---- Steps

    def hang(self):
        self.owner.note(self.request_of(self.read_body()))
        self.owner.note(answered=True)
        self.owner.closed_within(120)
        self.close_connection = True

    def cut(self):
        self.owner.note(self.request_of(self.read_body(self.length() // 2)))
        self.reset()

    def cut_answer(self):
        self.owner.note(self.request_of(self.read_body()))
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{\"mess")
        self.wfile.flush()
        self.reset()

    def early(self, status=413):
        self.owner.note(self.request_of(b""))
        self.close_connection = True
        self.send(status, {"Connection": "close"}, "<html>too early</html>")

    def slow(self, seconds=1.0):
        parts, left = [], self.length()
        step = max(1, left // 20)
        while left > 0:
            parts.append(self.rfile.read(min(step, left)))
            left -= step
            time.sleep(seconds / 20)
        request = self.request_of(b"".join(parts))
        self.owner.note(request)
        self.answer_by_model(request)

    def lie(self):
        self.owner.note(self.request_of(self.read_body()))
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\nContent-Type: application/json\r\n\r\n{\"message\": \"ok\"}")
        self.wfile.flush()
        self.close_connection = True
        self.owner.note(answered=True)

    def drop(self):
        request = self.request_of(self.read_body())
        self.owner.note(request)
        _, _, kept = self.owner.judge(request)
        if kept is not None:
            self.owner.note(kept=kept)
        self.reset()


def keep_all(request):
    """A judge that takes anything, for plain HTTP: what is kept is the request."""
    return 200, {}, request

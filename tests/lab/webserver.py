"""Web servers that do as a test tells them, on sockets: what a polite library would not let a server do.

    def late(c):                     # one connection, a Connection; runs on a thread of its own
        head, body = c.request()
        time.sleep(1)
        c.say(200)
    with webserver.Server(late) as server:
        server.url, server.port, server.connections, server.requests
"""
import contextlib
import socket
import struct
import threading


class Connection:
    def __init__(self, server, s, number):
        self.server, self.socket, self.number = server, s, number
        self.buffer = b""

    def more(self, size=65536):
        try:
            data = self.socket.recv(size)
        except OSError:
            data = b""
        self.buffer += data
        return bool(data)

    def head(self):
        """The head of the next request as text, or None at the end."""
        while b"\r\n\r\n" not in self.buffer:
            if not self.more():
                return None
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        head = head.decode("latin-1")
        self.server.requests.append(head)
        return head

    def request(self):
        """Head and body of the next request, or None."""
        head = self.head()
        if head is None:
            return None
        length = length_of(head)
        while len(self.buffer) < length:
            if not self.more():
                return None
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return head, body

    def send(self, data):
        with contextlib.suppress(OSError):
            self.socket.sendall(data.encode() if isinstance(data, str) else data)

    def say(self, status, body="", *headers):
        lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}", *headers, "", body]
        self.send("\r\n".join(lines))

    def cut(self):
        """With a reset, as a crash or a firewall does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def drain(self):
        self.buffer = b""
        while self.more():
            self.buffer = b""

    def hold(self):
        """Keeps the connection and reads nothing, until the server is closed."""
        self.server.closing.wait(60)


def length_of(head):
    for line in head.split("\r\n"):
        name, _, value = line.partition(":")
        if name.lower() == "content-length":
            return int(value)
    return 0


class Server:
    """Each connection is given to `handle` on a thread; an address that is text is a Unix socket's. `tls` is an
    ssl.SSLContext."""

    def __init__(self, handle, address=("127.0.0.1", 0), receive_buffer=None, tls=None):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.handle, self.requests, self.connections, self.tls = handle, [], 0, tls
        self.closing, self.open = threading.Event(), []
        self.socket = socket.socket(family)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if family != socket.AF_UNIX:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # after another one at the same port
        self.socket.bind(address)
        self.socket.listen(16)
        if family != socket.AF_UNIX:
            self.port = self.socket.getsockname()[1]
            host = f"[{address[0]}]" if ":" in address[0] else address[0]
            self.url = f"{'https' if tls else 'http'}://{host}:{self.port}"
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self):
        while True:
            try:
                s, _ = self.socket.accept()
            except OSError:
                return
            self.connections += 1
            self.open.append(s)
            threading.Thread(target=self._serve, args=(Connection(self, s, self.connections),), daemon=True).start()

    def _serve(self, connection):
        try:
            with contextlib.suppress(OSError):
                if self.tls:
                    connection.socket = self.tls.wrap_socket(connection.socket, server_side=True)
                self.handle(connection)
        finally:
            connection.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closing.set()
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        for s in self.open:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)


def answers(status=200, body="", *headers):
    """Answers every request alike and keeps the connection."""
    def handle(c):
        while c.request():
            c.say(status, body, *headers)
    return handle


def proxy(origin_port, user=None):
    """Tunnels every CONNECT, wherever to, to a port of this machine; wants `user` (what Basic says) when it is given."""
    def handle(c):
        head = c.head()
        if head is None:
            return
        if user is not None and f"Proxy-Authorization: Basic {user}" not in head.split("\r\n"):
            return c.say(407, "who are you?")
        if not head.startswith("CONNECT "):
            return c.say(405)
        with socket.create_connection(("127.0.0.1", origin_port)) as there:
            c.send("HTTP/1.0 200 Connection established\r\n\r\n")
            back = threading.Thread(target=_pump, args=(there, c.socket), daemon=True)
            back.start()
            _pump(c.socket, there)
            back.join(10)
    return handle


def _pump(source, to):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            to.sendall(data)
    with contextlib.suppress(OSError):
        to.shutdown(socket.SHUT_WR)

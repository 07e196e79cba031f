"""A name server and a web server in a network namespace of their own, and a command that meets them there.

    unshare --net --mount python3 tests/lab/nameserver.py MODE COMMAND...

The name server listens on 127.0.0.1:53, and a resolv.conf that names it lies over the machine's; the web server listens
on 127.0.0.1:8080 and answers every POST and GET with 200. What MODE makes of the questions:

    silent      nobody answers
    truncated   by UDP an answer with the truncated bit, by TCP one with 40 addresses, the last of which is 127.0.0.1
                (the others, of 127.0.0.0/8, too: whichever is tried answers)
    dead-first  20 times ::1, where nothing listens, and 127.0.0.1
    missing     there is no such name

After the command's output comes a line of JSON with the questions that were counted. Exits with the command's status.
"""
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
A, AAAA = 1, 28
counts = {"udp": 0, "tcp": 0, "http": 0}


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sh", b"lo", 0)
        flags = struct.unpack("16sh", fcntl.ioctl(s, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh", b"lo", flags | IFF_UP))


def name_server_is_here():
    """Without a resolv.conf it is 127.0.0.1 anyway."""
    if not os.path.exists("/etc/resolv.conf"):
        return
    with tempfile.NamedTemporaryFile("w", prefix="resolv") as file:
        file.write("nameserver 127.0.0.1\n")
        file.flush()
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["mount", "--bind", file.name, "/etc/resolv.conf"], check=True)


def question_of(query):
    """The question's bytes and its type."""
    at = 12
    while query[at]:
        at += query[at] + 1
    return query[12:at + 5], struct.unpack(">H", query[at + 1:at + 3])[0]


def reply(query, flags, addresses):
    question, kind = question_of(query)
    records = b""
    count = 0
    for family, address in addresses:
        if family == kind:
            data = socket.inet_pton(socket.AF_INET if kind == A else socket.AF_INET6, address)
            records += b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 60, len(data)) + data
            count += 1
    return query[:2] + struct.pack(">HHHHH", 0x8180 | flags, 1, count, 0, 0) + question + records


def answer(mode, query, tcp):
    if mode == "silent" and not tcp:
        return None
    if mode == "missing":
        return reply(query, 3, [])
    if mode == "dead-first":
        return reply(query, 0, [(AAAA, "::1")] * 20 + [(A, "127.0.0.1")])
    if tcp:
        return reply(query, 0, [(A, f"127.0.{i}.1") for i in range(39, -1, -1)])
    return reply(query, 0x0200, [])


def serve_udp(answer_of):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", 53))

    def one(query, peer):
        found = answer_of(query, False)
        if found is not None:
            s.sendto(found, peer)

    def run():
        while True:
            query, peer = s.recvfrom(4096)
            counts["udp"] += 1
            threading.Thread(target=one, args=(query, peer), daemon=True).start()
    threading.Thread(target=run, daemon=True).start()


def serve_tcp(answer_of):
    s = socket.create_server(("127.0.0.1", 53))

    def one(c):
        with c, c.makefile("rb") as file:
            while length := file.read(2):
                counts["tcp"] += 1
                found = answer_of(file.read(struct.unpack(">H", length)[0]), True)
                c.sendall(struct.pack(">H", len(found)) + found)

    def run():
        while True:
            threading.Thread(target=one, args=(s.accept()[0],), daemon=True).start()
    threading.Thread(target=run, daemon=True).start()


def serve(answer_of):
    """answer_of(query, tcp) makes the bytes of an answer; by UDP None is none."""
    serve_udp(answer_of)
    serve_tcp(answer_of)


def serve_http():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("0.0.0.0", 8080))
    s.listen()

    def run():
        while True:
            c = s.accept()[0]
            with c, c.makefile("rb") as file:
                counts["http"] += 1
                while file.readline().strip():
                    pass
                c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    threading.Thread(target=run, daemon=True).start()


def main(mode, *command):
    loopback_up()
    name_server_is_here()
    serve(lambda query, tcp: answer(mode, query, tcp))
    serve_http()
    status = subprocess.run(command).returncode
    print(json.dumps(counts), flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""A machine's own network and firmware, for tests of what is asked about the platform. Wants root.

    with Machine() as machine:
        machine.vendor("Amazon EC2")                       # what /sys/class/dmi/id/sys_vendor says; None: no such file
        server = machine.inside(lambda: webserver.Server(handler, (LINK_LOCAL, 80)))
        machine.run([pillion, …], env={…})

Namespaces of network and mounts, held by a process that sleeps: of all addresses there are only those of the machine itself, the
link-local ones of metadata services among them.
"""
import ctypes
import os
import socket
import threading
from pathlib import Path

from . import process

LINK_LOCAL = "169.254.169.254"
ECS = "169.254.170.2"
CLONE_NEWNET = 0x40000000

MAKE = f"""
mount -t tmpfs none /sys/class && mkdir -p /sys/class/dmi/id || exit 1
ip link set lo up || exit 1
for address in {LINK_LOCAL} {ECS}; do ip address add $address/32 dev lo || exit 1; done
echo ready
exec sleep 300
"""


class Machine:
    def __enter__(self):
        self.holder = process.start(["unshare", "-n", "-m", "sh", "-c", MAKE])
        process.until(lambda: "ready" in self.holder.out, 10, lambda: self.holder.err)
        self.pid = self.holder.pid
        return self

    def __exit__(self, *_):
        self.holder.end()

    def vendor(self, text):
        path = Path(f"/proc/{self.pid}/root/sys/class/dmi/id/sys_vendor")
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(text + "\n")

    def inside(self, make):
        """What make() gives, called on a thread that is in this network: sockets that it opens stay there."""
        result = []

        def enter():
            namespace = os.open(f"/proc/{self.pid}/ns/net", os.O_RDONLY)
            if ctypes.CDLL(None, use_errno=True).setns(namespace, CLONE_NEWNET) == 0:
                result.append(make())
            os.close(namespace)

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join(20)
        assert result, "the network's namespace cannot be entered"
        return result[0]

    def argv(self, argv):
        return ["nsenter", "-t", self.pid, "-n", "-m", "--", *argv]

    def run(self, argv, **options):
        return process.run(self.argv(argv), **options)

    def start(self, argv, **options):
        return process.start(self.argv(argv), **options)


class Deaf:
    """Takes no connection and refuses none: its queue is full, so what asks for one hears nothing, as behind a firewall."""

    def __init__(self, address):
        self.listener = socket.create_server(address, backlog=0)
        self.waiting = []
        for _ in range(8):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex(address)
            self.waiting.append(s)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for s in [*self.waiting, self.listener]:
            s.close()


def service(routes, *headers, guard=lambda head: 200):
    """A handler: routes[(method, target)] is the body of the answer, 404 elsewhere; guard(head) may give another status."""
    def handle(c):
        while (request := c.request()) is not None:
            method, target, _ = request[0].split("\r\n")[0].split(" ")
            status = guard(request[0]) if (method, target) in routes else 404
            c.say(status, routes[method, target] if status == 200 else "<html>no</html>", *headers)
    return handle


def field(head, name):
    for line in head.split("\r\n")[1:]:
        key, _, value = line.partition(":")
        if key.lower() == name.lower():
            return value.strip()
    return None

"""A file system of one file, in a process of its own, which can stop answering. Wants root and /dev/fuse.

    with fuse.mounted(folder, "program", Path("/bin/true")) as server:
        ... folder/program ...
        server.freeze()    whoever asks for what the kernel has not read yet waits
        server.thaw()

Protocol: linux/fuse.h, version 7.31; no more of it than a read-only file needs.
"""
import contextlib
import ctypes
import errno
import os
import signal
import stat
import struct
from pathlib import Path

from . import process

ROOT, FILE = 1, 2  # nodes
LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, OPENDIR, RELEASEDIR, ACCESS, INTERRUPT, BATCH_FORGET = (
    1, 2, 3, 14, 15, 17, 18, 25, 26, 27, 29, 34, 36, 42)
NEVER_LONG = 3600  # seconds that the kernel may keep what it was told


def missing():
    """Why there can be none here; None: there can."""
    if os.geteuid() != 0:
        return "a FUSE mount wants root"
    return None if os.access("/dev/fuse", os.R_OK | os.W_OK) else "no /dev/fuse"


class _Server:
    def __init__(self, device, name, content):
        self.device, self.name, self.content = device, name.encode(), content

    def attributes(self, node):
        size, mode = (len(self.content), stat.S_IFREG | 0o755) if node == FILE else (0, stat.S_IFDIR | 0o755)
        return struct.pack("<6Q10I", node, size, (size + 511) // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def answer(self, opcode, node, body):
        """The bytes of an answer, or an errno."""
        if opcode == INIT:
            return struct.pack("<4I2H2I2HI7I", 7, 31, 65536, 0, 16, 12, 65536, 1, 16, 0, 0, *[0] * 7)
        if opcode == LOOKUP:
            if node != ROOT or body.rstrip(b"\0") != self.name:
                return errno.ENOENT
            return struct.pack("<4Q2I", FILE, 0, NEVER_LONG, NEVER_LONG, 0, 0) + self.attributes(FILE)
        if opcode == GETATTR:
            return struct.pack("<Q2I", NEVER_LONG, 0, 0) + self.attributes(node)
        if opcode in (OPEN, OPENDIR):
            return struct.pack("<Q2I", 0, 0, 0)
        if opcode == READ:
            offset, size = struct.unpack_from("<8xQI", body)
            return self.content[offset:offset + size]
        if opcode == STATFS:
            return struct.pack("<5Q4I24x", 0, 0, 0, 0, 0, 4096, 255, 4096, 0)
        return b"" if opcode in (RELEASE, RELEASEDIR, FLUSH, ACCESS) else errno.ENOSYS

    def serve(self):
        while True:
            try:
                request = os.read(self.device, 1 << 20)
            except OSError:
                return  # it is unmounted
            _, opcode, unique, node = struct.unpack_from("<2I2Q", request)
            if opcode in (FORGET, INTERRUPT, BATCH_FORGET):
                continue
            answer = self.answer(opcode, node, request[40:])
            number, data = (-answer, b"") if isinstance(answer, int) else (0, answer)
            os.write(self.device, struct.pack("<IiQ", 16 + len(data), number, unique) + data)


class Mounted:
    def __init__(self, pid):
        self.pid = pid

    def freeze(self):
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self):
        os.kill(self.pid, signal.SIGCONT)


def _libc(name, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"{name} {arguments}: {os.strerror(ctypes.get_errno())}")


@contextlib.contextmanager
def mounted(folder, name, content):
    """`content`: the file whose bytes folder/name has."""
    data = Path(content).read_bytes()
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"
    _libc("mount", b"pillion-test", os.fsencode(folder), b"fuse", 0, options.encode())
    pid = os.fork()
    if pid == 0:
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            _Server(device, name, data).serve()
        finally:
            os._exit(0)
    os.close(device)
    process.foreign.add(pid)
    try:
        yield Mounted(pid)
    finally:
        os.kill(pid, signal.SIGKILL)  # requests that wait fail then
        os.kill(pid, signal.SIGCONT)
        os.waitpid(pid, 0)
        process.foreign.discard(pid)
        _libc("umount2", os.fsencode(folder), 2)

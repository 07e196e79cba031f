#!/usr/bin/python3
"""Other kernels: Debian's cloud kernels under qemu's own processor emulation (TCG), from an initramfs.

    tests/lab/kernel.py SUITE SCRIPT [FILE...]

boots the suite's cloud kernel with busybox and the FILEs in /, runs the shell script SCRIPT there
and prints what it printed. 4-8 s per boot. Under TCG counts and outcomes mean something, times do
not. KVM is not used even where its device exists: a guest may hang there.
"""
import gzip
import io
import os
import re
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

if __package__:
    from . import cache, process, root as roots
else:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from lab import cache, process, root as roots

BEGIN, END = "=== lab begin ===", "=== lab end, status "
INIT = f"""#!/bin/sh
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t securityfs security /sys/kernel/security 2>/dev/null
mount -t tmpfs -o mode=1777 tmp /tmp
stty -F /dev/ttyS0 -onlcr 2>/dev/null
echo '{BEGIN}'
sh /script 2>&1
echo "{END}$?"
sync
echo o > /proc/sysrq-trigger
sleep 10
"""


def kernel(suite="bookworm"):
    """vmlinuz of the suite's cloud kernel, kept in build/lab/kernel."""
    folder = cache.folder("kernel", suite)
    image = folder / "vmlinuz"
    if image.exists():
        return image
    apt = roots.Apt(suite)
    apt.update()
    shown = subprocess.run(["apt-cache", "-c", apt.configuration, "show", "linux-image-cloud-amd64"],
                           stdout=subprocess.PIPE, text=True).stdout
    named = re.search(r"^Depends: (linux-image-\S+)", shown, re.M)
    if not named:
        raise roots.Unreachable(f"{suite} has no cloud kernel")
    deb = apt.one(named.group(1))
    tar = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE, check=True).stdout
    with tempfile.TemporaryDirectory() as unpacked:
        subprocess.run(["tar", "-x", "-C", unpacked, "--wildcards", "./boot/vmlinuz-*"], input=tar, check=True)
        found = next(Path(unpacked, "boot").glob("vmlinuz-*"))
        (folder / "version").write_text(found.name[len("vmlinuz-"):])
        part = folder / "vmlinuz.part"
        part.write_bytes(found.read_bytes())
        part.rename(image)
    deb.unlink()
    return image


class Archive:
    """A cpio archive in the "newc" form the kernel unpacks as its first root."""

    def __init__(self):
        self.data, self.inode = io.BytesIO(), 0

    def add(self, name, mode, content=b""):
        self.inode += 1
        encoded = name.encode() + b"\0"
        numbers = [self.inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0]
        self.data.write(b"070701" + b"".join(b"%08x" % n for n in numbers) + encoded)
        self._align()
        self.data.write(content)
        self._align()

    def _align(self):
        self.data.write(b"\0" * (-self.data.tell() % 4))

    def tree(self, folder):
        for path in sorted(Path(folder).rglob("*")):
            name, info = str(path.relative_to(folder)), path.lstat()
            if path.is_symlink():
                self.add(name, info.st_mode, os.readlink(path).encode())
            elif path.is_dir():
                self.add(name, info.st_mode)
            elif path.is_file():
                self.add(name, info.st_mode, path.read_bytes())

    def packed(self):
        self.add("TRAILER!!!", 0)
        return gzip.compress(self.data.getvalue(), 1)


def boot(image, script, files=(), *, memory=384, processors=2, arguments="", clock=None, timeout=120):
    """Runs a shell script as root in the guest: (status, text). The guest powers off by itself."""
    with tempfile.TemporaryDirectory() as work:
        root = roots.busybox(Path(work, "root"))
        archive = Archive()
        archive.tree(root)
        archive.add("init", stat.S_IFREG | 0o755, INIT.encode())
        archive.add("script", stat.S_IFREG | 0o755, script.encode())
        for file in files:
            archive.add(Path(file).name, stat.S_IFREG | 0o755, Path(file).read_bytes())
        initramfs = Path(work, "initramfs")
        initramfs.write_bytes(archive.packed())
        done = process.run(
            ["qemu-system-x86_64", "-M", "q35", "-accel", "tcg,thread=multi", "-m", memory, "-smp", processors,
             "-nographic", "-nodefaults", "-no-reboot", "-serial", "stdio", *(["-rtc", f"base={clock}"] if clock else []),
             "-kernel", image, "-initrd", initramfs, "-append", f"console=ttyS0 panic=-1 quiet {arguments}"],
            timeout=timeout)
    text = done.out.replace("\r\n", "\n")
    ended = re.search(re.escape(END) + r"(\d+)", text)
    if BEGIN not in text or not ended:
        raise RuntimeError(f"the guest did not finish its script:\n{text[-3000:]}\n{done.err}")
    return int(ended.group(1)), text[text.index(BEGIN) + len(BEGIN) + 1:ended.start()]


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__.split("\n\n")[1])
    process.become_subreaper()
    status, text = boot(kernel(sys.argv[1]), Path(sys.argv[2]).read_text(), sys.argv[3:])
    print(text, end="")
    sys.exit(status)

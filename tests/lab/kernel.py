#!/usr/bin/python3
"""Other kernels: Debian's cloud kernels under qemu's own processor emulation (TCG), from an initramfs.

    tests/lab/kernel.py [--arch aarch64] [--take FOLDER] SUITE SCRIPT [FILE...]

boots the suite's cloud kernel with busybox, the FILEs in / and a FILE that is a folder unpacked
over /, runs the shell script SCRIPT there as root and prints what it printed; what the script left
in /out comes back into FOLDER. 4-8 s per boot, of either processor. Under TCG counts and outcomes
mean something, and times only when they are counted (see boot). KVM is not used even where its device exists: a guest may hang there.
"""
import argparse
import io
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

if __package__:
    from . import cache, process, root as roots, tiers
else:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from lab import cache, process, root as roots, tiers


class Machine:
    """What differs between processors: Debian's name, the emulator and its board, the console."""

    def __init__(self, debian, emulator, console):
        self.debian, self.emulator, self.console = debian, emulator, console


MACHINES = {
    "x86_64": Machine("amd64", ["qemu-system-x86_64", "-M", "q35"], "ttyS0"),
    # A Cortex-A57 has a counting unit, so hardware events work there.
    "aarch64": Machine("arm64", ["qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a57"], "ttyAMA0"),
}
HERE = platform.machine()
TAKEN_MAX = 1 << 30

BEGIN, END = "=== lab begin ===", "=== lab end, status "
INIT = """#!/bin/sh
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t securityfs security /sys/kernel/security 2>/dev/null
mount -t tmpfs -o mode=1777 tmp /tmp
mkdir -p /out
stty -F /dev/{console} -onlcr 2>/dev/null
echo '{begin}'
sh /script 2>&1
status=$?
if [ -b /dev/nvme0n1 ]; then
    tar -c -C /out . >/dev/nvme0n1 || status=files-not-taken
fi
echo "{end}$status"
sync
echo o > /proc/sysrq-trigger
sleep 10
"""


def missing(arch=HERE):
    """Why no guest of this processor can be booted here: None, or the reason in words."""
    return tiers.tool_missing(MACHINES[arch].emulator[0])


def kernel(suite="bookworm", arch=HERE):
    """vmlinuz of the suite's cloud kernel, kept in build/lab/kernel."""
    debian = MACHINES[arch].debian
    folder = cache.folder("kernel", suite if debian == "amd64" else f"{suite}-{debian}")
    image = folder / "vmlinuz"
    if image.exists():
        return image
    apt = roots.Apt(suite, debian)
    try:
        _fetch(apt, debian, folder)
    except roots.Unreachable:
        # The pool of a suite that moves drops a version while our lists still name it.
        (apt.folder / "updated").unlink(missing_ok=True)
        _fetch(apt, debian, folder)
    return image


def _needs(apt, package, prefix):
    """The first package of that name that one depends on; None: it is not there, or there is none."""
    shown = subprocess.run(["apt-cache", "-c", apt.configuration, "show", package], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True).stdout
    found = re.search(rf"^Depends: .*?({prefix}-\d\S*?)[ ,\n]", shown, re.M)
    return found and found.group(1)


def _fetch(apt, debian, folder):
    """Into the folder: vmlinuz and the version. Up to Debian 13 the image is in linux-image-VERSION; in sid that is
    empty and needs linux-binary-VERSION, whose vmlinuz lies among the modules."""
    apt.update()
    package = _needs(apt, f"linux-image-cloud-{debian}", "linux-image")
    if not package:
        raise roots.Unreachable(f"{apt.suite} has no cloud kernel for {debian}")
    deb = apt.one(_needs(apt, package, "linux-binary") or package)
    with tempfile.TemporaryDirectory() as unpacked:
        _unpacked(deb, unpacked, "*/vmlinuz*")
        found = next((path for path in Path(unpacked).rglob("vmlinuz*") if path.is_file()), None)
        if not found:
            raise roots.Unreachable(f"no vmlinuz in {deb.name}")
        version = found.name[len("vmlinuz-"):] or found.parent.name
        (folder / "version").write_text(version)
        _keep(found, folder / "vmlinuz")
    deb.unlink()


def busybox(folder, arch=HERE):
    """A root with busybox and nothing else, for either processor."""
    roots.busybox(folder)
    debian = MACHINES[arch].debian
    if arch != HERE:
        kept = cache.folder("busybox") / debian
        if not kept.exists():
            deb = roots.Apt("bookworm", debian).one("busybox-static")
            with tempfile.TemporaryDirectory() as unpacked:
                _keep(Path(_unpacked(deb, unpacked, "./bin/busybox"), "bin", "busybox"), kept)
        shutil.copy2(kept, Path(folder) / "bin" / "busybox")
    return folder


def _unpacked(deb, folder, pattern):
    tar = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "-x", "-C", folder, "--wildcards", pattern], input=tar, check=True)
    return folder


def _keep(found, kept):
    part = kept.with_name(f"{kept.name}.{os.getpid()}.part")
    shutil.copy2(found, part)
    part.rename(kept)


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

    def whole(self):
        """Not compressed: an emulated processor would unpack 10 MB a second."""
        self.add("TRAILER!!!", 0)
        return self.data.getbuffer()


def initramfs(target, init, script, files, arch):
    with tempfile.TemporaryDirectory() as work:
        archive = Archive()
        # busybox first: the /bin of a merged root is a link, which the kernel does not put in place of a full folder.
        for folder in [busybox(Path(work, "root"), arch)] + [f for f in map(Path, files) if f.is_dir()]:
            archive.tree(folder)
    archive.add("init", stat.S_IFREG | 0o755, init.encode())
    archive.add("script", stat.S_IFREG | 0o755, script.encode())
    for file in map(Path, files):
        if not file.is_dir():
            archive.add(file.name, stat.S_IFREG | 0o755, file.read_bytes())
    target.write_bytes(archive.whole())


def run_guest(argv, timeout):
    """(status, text) of the script. A kernel that dies is booted again, twice at most: on two emulated processors an
    allocator's compare-and-exchange of 16 bytes is not always atomic, and one may run an instruction that the other is
    just writing anew (static calls, jump labels). One boot in some hundred; what a program can do to a kernel happens
    each time.
    """
    for _ in range(3):
        done = process.run(argv, timeout=timeout)
        text = done.out.replace("\r\n", "\n")
        begun, ended = text.find(BEGIN), re.search(re.escape(END) + r"(\d+)", text)
        if begun >= 0 and ended:
            return int(ended.group(1)), text[begun + len(BEGIN) + 1:ended.start()]
        if begun >= 0 and "Kernel panic" not in text:
            break
    raise RuntimeError(f"the guest did not finish its script:\n{text[-3000:]}\n{done.err}")


def boot(image, script, files=(), *, arch=HERE, take=None, memory=384, processors=2, arguments="", clock=None,
         counted=None, timeout=120):
    """Runs a shell script as root in the guest: (status, text). The guest powers off by itself.

    A file lies in /, executable; a folder's content is unpacked over /. What the script leaves in /out is brought
    back into the folder `take`: as a tar archive on an NVMe disk, the one kind these kernels need no module for.

    counted: the guest's clock counts instructions, so many ns each (a power of two), and jumps when nothing runs. What
    takes how long is then the same on every machine, however busy it is; 4 is a machine ten times slower than a real
    one. With one processor only: of several just one runs at a time, while the clock goes on for all.
    """
    machine = MACHINES[arch]
    accelerator = ["-accel", "tcg,thread=multi"]
    if counted:
        accelerator = ["-accel", "tcg,thread=single", "-icount", f"shift={counted.bit_length() - 1},sleep=off"]
    init = INIT.format(begin=BEGIN, end=END, console=machine.console)
    with tempfile.TemporaryDirectory() as work:
        first, disk = Path(work, "initramfs"), Path(work, "disk")
        initramfs(first, init, script, files, arch)
        if take:
            disk.touch()
            os.truncate(disk, TAKEN_MAX)
        status, text = run_guest(
            [*machine.emulator, *accelerator, "-m", memory, "-smp", processors, "-nographic", "-nodefaults",
             "-no-reboot", "-serial", "stdio",
             *(["-drive", f"if=none,id=disk,format=raw,file={disk}", "-device", "nvme,drive=disk,serial=1"] if take else []),
             *(["-rtc", f"base={clock}"] if clock else []), "-kernel", image, "-initrd", first,
             "-append", f"console={machine.console} panic=-1 quiet {arguments}"], timeout)
        if take:
            Path(take).mkdir(parents=True, exist_ok=True)
            subprocess.run(["tar", "-x", "--no-same-owner", "-C", take, "-f", disk], check=True)
    return status, text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", choices=MACHINES, default=HERE)
    parser.add_argument("--take", metavar="FOLDER")
    parser.add_argument("suite")
    parser.add_argument("script", type=Path)
    parser.add_argument("files", nargs="*", metavar="FILE")
    given = parser.parse_args()
    process.become_subreaper()
    status, text = boot(kernel(given.suite, given.arch), given.script.read_text(), given.files, arch=given.arch,
                        take=given.take)
    print(text, end="")
    return status


if __name__ == "__main__":
    sys.exit(main())

"""A systemd that is booted: Debian's, as process 1 of a container, with the units and files of a test.

    with booted.Systemd(folder, {"etc/systemd/system/x.service": "[Service]..."}, ["x.service"], network_of=pid) as host:
        host.say("systemctl", "is-active", "x")

Wants root and packages (root.Unreachable when they can neither be had nor are kept).
"""
import json
import re
import shutil
from pathlib import Path

from . import cache, container, process, root

PACKAGES = ["systemd", *root.SHELL]
CONTROL = Path("/sys/fs/cgroup")
# All there were when this was written, by number.
NAMES = """CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST
NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE
SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND
AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE""".split()


def capabilities():
    """A host's root has what we have."""
    held = int(re.search(r"CapBnd:\s*(\w+)", Path("/proc/self/status").read_text())[1], 16)
    return [f"CAP_{name}" for number, name in enumerate(NAMES) if held >> number & 1]


def control_groups():
    """systemd takes the kind that it finds: version 2 alone, or its own tree of version 1."""
    if (CONTROL / "cgroup.controllers").exists():
        return [{"destination": str(CONTROL), "type": "bind", "source": str(CONTROL), "options": ["rbind", "rw"]}]
    return [{"destination": str(CONTROL), "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"]},
            {"destination": f"{CONTROL}/systemd", "type": "bind", "source": f"{CONTROL}/systemd", "options": ["rbind", "rw"]}]


def unpacked():
    """The root, unpacked once."""
    debs = root.Apt("bookworm").closure(PACKAGES)
    with cache.locked("booted"):
        made = cache.folder("booted") / "root"
        if not made.exists():
            part = made.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            root.unpack(debs, part)
            for heavy in ("usr/share/doc", "usr/share/locale", "usr/share/man"):
                shutil.rmtree(part / heavy, ignore_errors=True)
            part.rename(made)
    return made


class Systemd:
    def __init__(self, folder, files, wanted, network_of=None):
        self.place, self.bundle = Path(folder), Path(folder) / "bundle"
        self.root = self.place / "root"
        shutil.copytree(unpacked(), self.root, symlinks=True)
        files = {**files, "etc/machine-id": "", "etc/systemd/system/lab.target": f"[Unit]\nWants={' '.join(wanted)} systemd-journald.service\n"}
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            path.chmod(0o755 if "/bin/" in f"/{name}" else 0o644)
        made = container.configuration(self.root, ["/lib/systemd/systemd", "--unit=lab.target", "--log-target=console"], profile="off",
                                       capabilities=capabilities(), writable=True, network_of=network_of, environment=["container=runc"])
        made["mounts"] += [{"destination": "/run", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755", "rshared"]}, *control_groups()]
        made["linux"].update(rootfsPropagation="rshared", maskedPaths=[], readonlyPaths=[])
        made["linux"]["namespaces"].append({"type": "cgroup"})
        self.bundle.mkdir()
        (self.bundle / "config.json").write_text(json.dumps(made))
        self.name = f"{self.place.parent.name}-{self.place.name}"
        self.process = process.start([*self._runc(), "run", "--bundle", self.bundle, self.name])

    def _runc(self):
        return ["runc", "--root", self.bundle / "state"]

    def say(self, *words):
        """What a command says inside."""
        return process.run([*self._runc(), "exec", self.name, *words]).out

    def __enter__(self):
        return self

    def __exit__(self, *_):
        process.run([*self._runc(), "kill", self.name, "KILL"])
        self.process.finish(20)
        process.run([*self._runc(), "delete", "--force", self.name])

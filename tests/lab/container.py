#!/usr/bin/python3
"""Containers without an engine: a runc bundle from a generated config.json.

    tests/lab/container.py [--seccomp docker|containers-common|off] [--cap CAP_X]... [--uid N]
                           [--writable] [--pid-of NAME] [--root FOLDER] -- COMMAND [ARGS...]

The defaults are those of a stock container: the 14 usual capabilities, the seccomp profile of
containers-common, own namespaces, masked paths, and in addition a read-only root, a noexec /tmp
and one writable folder, /out. Without --root the root is a busybox system.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

if __package__:
    from . import cache, process, root as roots
else:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from lab import cache, process, root as roots

PROFILE = Path("/usr/share/containers/seccomp.json")
CAPABILITIES = ["CAP_" + name for name in (
    "CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL "
    "AUDIT_WRITE").split()]
MASKED = ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug"]
READ_ONLY = ["/proc/bus", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
EPERM = 1


def seccomp(profile, capabilities, architecture="amd64"):
    """The engine's profile in the form the container runtime wants.

    A rule counts when its architecture is ours (or any) and the container holds all capabilities it asks for and
    none it excludes; the kernels that rules ask for are older than any here. "containers-common" is this machine's file,
    "docker" the same with EPERM for unknown calls, a path another file (lab.seccomp).
    """
    if profile == "off":
        return None
    source = json.loads((profile if isinstance(profile, Path) else PROFILE).read_text())
    if "archMap" not in source:  # a node's own file is in that form already
        return source
    rules = []
    for rule in source["syscalls"]:
        includes, excludes = rule.get("includes", {}), rule.get("excludes", {})
        if includes.get("arches") and architecture not in includes["arches"]:
            continue
        if architecture in excludes.get("arches", []):
            continue
        if not set(includes.get("caps", [])) <= set(capabilities) or set(excludes.get("caps", [])) & set(capabilities):
            continue
        kept = {"names": rule["names"], "action": rule["action"]}
        if rule["action"] == "SCMP_ACT_ERRNO" and rule.get("errnoRet") is not None:
            kept["errnoRet"] = rule["errnoRet"]
        if rule.get("args"):
            kept["args"] = [{k: v for k, v in a.items() if not (k == "valueTwo" and v == 0)} for a in rule["args"]]
        rules.append(kept)
    machine = next(m for m in source["archMap"] if m["architecture"] == "SCMP_ARCH_X86_64")
    return {"defaultAction": source["defaultAction"],
            "defaultErrnoRet": EPERM if profile == "docker" else source.get("defaultErrnoRet", EPERM),
            "architectures": [machine["architecture"], *(machine.get("subArchitectures") or [])],
            "syscalls": rules}


def configuration(root, command, *, profile="containers-common", capabilities=None, uid=0, writable=False, mounts=(),
                  pid_of=None, network_of=None, environment=(), terminal=False, shares=None, memory=None, cgroup=None,
                  quota=None, cgroups=False, no_new_privileges=False):
    """config.json as a dictionary. `mounts` are (from, to, "ro" or "rw"); `shares` is a CPU weight (1024 is usual),
    `quota` how many CPUs it may use, `memory` a limit in bytes, `cgroup` the path of its group; `cgroups`: its group can
    be seen inside, as in engines."""
    held = CAPABILITIES if capabilities is None else capabilities
    # As engines do: a uid other than 0 gets nothing but the bound.
    active = held if uid == 0 else []
    plain = ["nosuid", "noexec", "nodev"]
    namespaces = [{"type": kind} for kind in ("ipc", "uts", "mount")]
    for kind, short, of in (("pid", "pid", pid_of), ("network", "net", network_of)):
        namespaces.append({"type": kind, "path": f"/proc/{of}/ns/{short}"} if of else {"type": kind})
    filters = seccomp(profile, held)
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": terminal,
            "user": {"uid": uid, "gid": uid},
            "args": [str(a) for a in command],
            "env": ["PATH=/bin:/usr/bin", *environment],
            "cwd": "/",
            "noNewPrivileges": no_new_privileges,
            "capabilities": {"bounding": held, "effective": active, "permitted": active},
            "rlimits": [{"type": "RLIMIT_NOFILE", "hard": 1024, "soft": 1024}],
        },
        "root": {"path": str(root), "readonly": not writable},
        "hostname": "lab",
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc", "options": plain},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=64k"]},
            {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": [*plain, "mode=1777", "size=64m"]},
            {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": [*plain, "ro"]},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": [*plain, "mode=1777"]},
            *([{"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup", "options": [*plain, "ro"]}]
              if cgroups else []),
            *({"destination": str(to), "type": "bind", "source": str(source), "options": ["bind", mode]}
              for source, to, mode in mounts),
        ],
        "linux": {
            "namespaces": namespaces,
            "maskedPaths": MASKED,
            "readonlyPaths": READ_ONLY,
            "resources": {**({"cpu": {**({"shares": shares} if shares else {}),
                                      **({"quota": int(quota * 100000), "period": 100000} if quota else {})}}
                             if shares or quota else {}),
                          **({"memory": {"limit": memory}} if memory else {})},
            **({"cgroupsPath": cgroup} if cgroup else {}),
            **({"seccomp": filters} if filters else {}),
        },
    }


class Container:
    """One container: started at once, its stdout and stderr as of any process of lab.process."""

    def __init__(self, root, command, *, runtime="runc", **options):
        self.runtime = runtime
        cache.folder()
        self.bundle = Path(tempfile.mkdtemp(prefix="bundle-"))
        # A container with another uid must be able to walk to its root.
        self.bundle.chmod(0o755)
        self.name = self.bundle.name
        (self.bundle / "config.json").write_text(json.dumps(configuration(root, command, **options)))
        self.process = process.start([*self._runc(), "run", "--bundle", self.bundle, self.name])

    def _runc(self):
        if self.runtime == "crun":  # it refuses a machine with control groups of both versions
            return ["unshare", "-m", "sh", "-c", "umount /sys/fs/cgroup/unified 2>&-; exec \"$@\"", "sh",
                    "crun", "--cgroup-manager=disabled", "--root", self.bundle / "state"]
        return [self.runtime, "--root", self.bundle / "state"]

    def pid(self, timeout=10):
        """The host's pid of the container's pid 1."""
        def running():
            if self.process.poll() is not None:
                raise RuntimeError(f"the container ended at once: {self.process.err}")
            state = subprocess.run([*self._runc(), "state", self.name], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True).stdout
            state = json.loads(state) if state else {}
            return state.get("status") == "running" and state["pid"]
        return process.until(running, timeout, "the container runs")

    def signal(self, number):
        """To pid 1 of the container, as an engine's stop does."""
        subprocess.run([*self._runc(), "kill", self.name, str(int(number))], check=True)

    def freeze(self, on=True):
        """All of it by the kernel's freezer, or on again."""
        subprocess.run([*self._runc(), "pause" if on else "resume", self.name], check=True)

    def finish(self, timeout=30):
        try:
            return self.process.finish(timeout)
        finally:
            self.remove()

    def remove(self):
        if self.process.poll() is None:
            subprocess.run([*self._runc(), "kill", self.name, "KILL"], stderr=subprocess.DEVNULL)
            time.sleep(0.05)
            self.process.end()
        subprocess.run([*self._runc(), "delete", "--force", self.name], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.bundle, ignore_errors=True)


def scratch(folder, *programs):
    """The smallest image: the given static programs in /, mount points, nothing else."""
    folder = Path(folder)
    for name in ("dev", "out", "proc", "sys", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "out").chmod(0o777)
    for program in programs:
        shutil.copy2(program, folder / Path(program).name)
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seccomp", choices=["docker", "containers-common", "off"], default="containers-common")
    parser.add_argument("--cap", action="append", default=[])
    parser.add_argument("--uid", type=int, default=0)
    parser.add_argument("--writable", action="store_true")
    parser.add_argument("--pid-of", type=int, help="share the PID namespace of this process")
    parser.add_argument("--root")
    parser.add_argument("--out", help="a folder to mount writable at /out")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    process.become_subreaper()
    root = Path(given.root) if given.root else roots.busybox(tempfile.mkdtemp(prefix="root-"))
    root.chmod(0o755)
    container = Container(root, given.command, profile=given.seccomp, capabilities=CAPABILITIES + given.cap,
                          uid=given.uid, writable=given.writable, pid_of=given.pid_of,
                          mounts=[(given.out, "/out", "rw")] if given.out else [])
    signal.signal(signal.SIGTERM, lambda *_: container.signal(signal.SIGTERM))
    done = container.finish(timeout=3600)
    sys.stdout.write(done.out)
    sys.stderr.write(done.err)
    return done.status


if __name__ == "__main__":
    sys.exit(main())

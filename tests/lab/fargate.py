"""What ECS asks of a task definition beyond the request model, and a task definition run by runc.

    fargate.problems(definition)     -> ["pidMode: host is not for Fargate", ...]
    fargate.ec2_problems(definition) -> the same for EC2 and Managed Instances
    with fargate.Task(definition, images, folder, pause) as task:
        task.start()                 in the order of dependsOn; one that must SUCCEED is waited for
        task.containers["app"].process.err
        done = task.stop()           {name: process.Done}, in the reverse order, with TERM as the service does

Everything about a container is taken from the definition: what it starts, user, capabilities, read-only root, CPU weight,
memory, volumes, whose processes it sees. An image is what no definition says: Image; values of secrets are given to Task.

lab.recipes makes such definitions of pods and of compose's services, with words that ECS does not have: a container's "seccomp"
(what container.seccomp takes), "noNewPrivileges", and as pidMode a container's name, whose processes the others then see.
"""
import os
import re
import signal
from pathlib import Path

from . import container, process

# Task CPU units -> MiB of memory.
GIB = 1024
PAIRS = {256: [512, 1 * GIB, 2 * GIB],
         512: range(1 * GIB, 4 * GIB + 1, GIB),
         1024: range(2 * GIB, 8 * GIB + 1, GIB),
         2048: range(4 * GIB, 16 * GIB + 1, GIB),
         4096: range(8 * GIB, 30 * GIB + 1, GIB),
         8192: range(16 * GIB, 60 * GIB + 1, 4 * GIB),
         16384: range(32 * GIB, 120 * GIB + 1, 8 * GIB)}
NOT_OF_A_TASK = ["ipcMode", "placementConstraints"]
NOT_OF_A_CONTAINER = ["privileged", "links", "hostname", "extraHosts", "dockerSecurityOptions", "disableNetworking",
                      "dnsServers", "dnsSearchDomains"]
NOT_OF_LINUX = ["devices", "sharedMemorySize", "tmpfs", "maxSwap", "swappiness"]
NOT_OF_A_VOLUME = ["host", "dockerVolumeConfiguration"]
# secret's ARN, then key, stage, version: the parts may be empty, the colons may not be missing.
SECRET = re.compile(r"arn:aws[\w-]*:secretsmanager:[\w-]+:\d{12}:secret:[\w/+=.@-]+(:[\w.-]*:[\w]*:[\w-]*)?")
# What the service says it takes; the instance's engine may know more.
CAPABILITIES = set("""
ALL AUDIT_CONTROL AUDIT_WRITE BLOCK_SUSPEND CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE
LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE MKNOD NET_ADMIN NET_BIND_SERVICE NET_BROADCAST NET_RAW SETFCAP SETGID SETPCAP SETUID
SYS_ADMIN SYS_BOOT SYS_CHROOT SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG SYSLOG
WAKE_ALARM
""".split())
LOG_DRIVERS = ["awslogs", "splunk", "awsfirelens"]
# What the agent sets in every container.
PLACE = "AWS_EXECUTION_ENV=AWS_ECS_FARGATE"
# What a container without `cpu` gets.
SHARES_LEAST = 2
GROUPS = Path("/sys/fs/cgroup")


def of_all(definition):
    """What every kind of capacity asks."""
    return [*_sums(definition), *_volumes(definition), *_order(definition),
            *(problem for one in definition["containerDefinitions"] for problem in _anywhere(definition, one))]


def problems(definition):
    return [*_task(definition), *of_all(definition),
            *(problem for one in definition["containerDefinitions"] for problem in _container(one))]


def ec2_problems(definition):
    return [*_instance(definition), *of_all(definition),
            *(problem for one in definition["containerDefinitions"] for problem in _on_instance(definition, one))]


def _instance(d):
    kinds = d.get("requiresCompatibilities")
    if kinds not in (["EC2"], ["MANAGED_INSTANCES"]):
        yield "requiresCompatibilities: wants EC2 or MANAGED_INSTANCES"
    modes = ("bridge", "host", "awsvpc", "none") if kinds == ["EC2"] else ("host", "awsvpc")
    if d.get("networkMode", modes[0]) not in modes:
        yield f"networkMode: {d['networkMode']} is none of {', '.join(modes)}"


def _on_instance(d, one):
    name = one["name"]
    if not (one.get("memory") or one.get("memoryReservation") or d.get("memory")):
        yield f"{name}: wants memory or memoryReservation, or the task memory"
    for capability in one.get("linuxParameters", {}).get("capabilities", {}).get("add", []):
        if capability not in CAPABILITIES:
            yield f"{name}: the service knows no capability {capability}"
    if d.get("networkMode") == "host" and one.get("hostname"):
        yield f"{name}: hostname is not for the host's network"


def _task(d):
    if d.get("requiresCompatibilities") != ["FARGATE"]:
        yield "requiresCompatibilities: wants FARGATE"
    if d.get("networkMode") != "awsvpc":
        yield "networkMode: wants awsvpc"
    if d.get("pidMode", "task") != "task":
        yield f"pidMode: {d['pidMode']} is not for Fargate"
    cpu, memory = int(d.get("cpu", 0)), int(d.get("memory", 0))
    if memory not in PAIRS.get(cpu, []):
        yield f"cpu, memory: there is no pair {cpu}, {memory}"
    yield from (f"{key}: not for Fargate" for key in NOT_OF_A_TASK if d.get(key))
    for volume in d.get("volumes", []):
        yield from (f"volume {volume['name']}: {key} is not for Fargate" for key in NOT_OF_A_VOLUME if volume.get(key))


def _sums(d):
    for key in ("cpu", "memory"):
        asked = sum(one.get(key, 0) for one in d["containerDefinitions"])
        if key in d and asked > int(d[key]):
            yield f"{key}: the containers ask for {asked} of {d[key]}"
    if not any(one.get("essential", True) for one in d["containerDefinitions"]):
        yield "essential: no container is"


def _volumes(d):
    names = {volume["name"] for volume in d.get("volumes", [])}
    for one in d["containerDefinitions"]:
        for mount in one.get("mountPoints", []):
            if mount["sourceVolume"] not in names:
                yield f"{one['name']}: there is no volume {mount['sourceVolume']}"


def _container(one):
    name, linux = one["name"], one.get("linuxParameters", {})
    yield from (f"{name}: {key} is not for Fargate" for key in NOT_OF_A_CONTAINER if one.get(key))
    yield from (f"{name}: {key} is not for Fargate" for key in NOT_OF_LINUX if linux.get(key))
    for capability in linux.get("capabilities", {}).get("add", []):
        if capability != "SYS_PTRACE":
            yield f"{name}: capability {capability} cannot be added"
    for limit in one.get("ulimits", []):
        if limit["name"] != "nofile":
            yield f"{name}: ulimit {limit['name']} cannot be set"
    if one.get("stopTimeout", 30) > 120:
        yield f"{name}: stopTimeout is at most 120"
    driver = one.get("logConfiguration", {}).get("logDriver")
    if driver not in [None, *LOG_DRIVERS]:
        yield f"{name}: log driver {driver} is not for Fargate"


def _anywhere(d, one):
    name, driver = one["name"], one.get("logConfiguration", {}).get("logDriver")
    given = [entry["name"] for key in ("environment", "secrets") for entry in one.get(key, [])]
    yield from (f"{name}: {twice} is given twice" for twice in sorted({key for key in given if given.count(key) > 1}))
    for secret in one.get("secrets", []):
        if not SECRET.fullmatch(secret["valueFrom"]):
            yield f"{name}: {secret['name']}: {secret['valueFrom']} is no secret of Secrets Manager"
    if (driver == "awslogs" or one.get("secrets")) and not d.get("executionRoleArn"):
        yield f"{name}: logs and secrets want an executionRoleArn"


def order(definition):
    """The containers' names, each behind those it depends on; raises ValueError on a cycle or an unknown name."""
    waiting = {one["name"]: [on["containerName"] for on in one.get("dependsOn", [])]
               for one in definition["containerDefinitions"]}
    found = []
    while waiting:
        ready = [name for name, on in waiting.items() if set(on) <= set(found)]
        if not ready:
            raise ValueError(f"dependsOn: cannot be started: {', '.join(sorted(waiting))}")
        found += ready
        waiting = {name: on for name, on in waiting.items() if name not in ready}
    return found


def _order(d):
    try:
        order(d)
    except ValueError as error:
        yield str(error)
    essential = {one["name"]: one.get("essential", True) for one in d["containerDefinitions"]}
    for one in d["containerDefinitions"]:
        for on in one.get("dependsOn", []):
            if on["condition"] in ("SUCCESS", "COMPLETE") and essential.get(on["containerName"]):
                yield f"{one['name']}: waits for the end of {on['containerName']}, which is essential"


class Image:
    """A root, what its image would start, what it has besides, and how a program of the recipe is called in it."""

    def __init__(self, root, entry_point=(), command=(), mounts=(), environment=(), called=None):
        self.root, self.entry_point, self.command = root, list(entry_point), list(command)
        self.mounts, self.environment, self.called = list(mounts), list(environment), called or {}


def capabilities(one):
    changes = one.get("linuxParameters", {}).get("capabilities", {})
    dropped = {"CAP_" + name for name in changes.get("drop", [])}
    kept = [] if "CAP_ALL" in dropped else [name for name in container.CAPABILITIES if name not in dropped]
    return kept + ["CAP_" + name for name in changes.get("add", []) if "CAP_" + name not in kept]


def environment(one, secrets):
    """A secret whose value is not given is not there, as on a platform where it is optional."""
    return [*(f"{e['name']}={e['value']}" for e in one.get("environment", [])),
            *(f"{e['name']}={secrets[e['name']]}" for e in one.get("secrets", []) if e["name"] in secrets)]


def options(one, image, volumes, secrets):
    """What container.Container is told of a container definition."""
    mounts = [(volumes / mount["sourceVolume"], mount["containerPath"], "ro" if mount.get("readOnly") else "rw")
              for mount in one.get("mountPoints", [])]
    return {"capabilities": capabilities(one), "uid": int(one.get("user", 0)), "profile": one.get("seccomp", "docker"),
            "no_new_privileges": one.get("noNewPrivileges", False),
            "writable": not one.get("readonlyRootFilesystem", False), "shares": one.get("cpu") or SHARES_LEAST,
            "memory": one["memory"] << 20 if "memory" in one else None, "mounts": [*image.mounts, *mounts],
            "environment": [*image.environment, *environment(one, secrets)]}


def words(one, image):
    """What is started: an entry point of the definition replaces the image's, and its command too."""
    command = one.get("command", [] if "entryPoint" in one else image.command)
    given = [*one.get("entryPoint", image.entry_point), *command]
    return [word for one in given for word in image.called.get(one, [one])]


def _gone(folder):
    try:
        folder.rmdir()
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True


class Task:
    """`pause` is a static program's command line that sleeps: process 1 of a shared PID namespace.

    The containers' groups are in one of the task: their weights are against each other's, not against this machine's.
    `secrets` are values by the variables' names, `network_of` is a process whose network they have (else each has its own, in
    which there is nothing).
    """
    count = 0

    def __init__(self, definition, images, folder, pause, secrets=None, network_of=None):
        self.definition, self.images, self.volumes = definition, images, Path(folder)
        self.containers, self.pause, self.finished = {}, pause, {}
        self.secrets, self.network_of = secrets or {}, network_of
        self.place = [PLACE] if definition.get("requiresCompatibilities") == ["FARGATE"] else []
        Task.count += 1
        self.group = f"lab-task-{os.getpid()}-{Task.count}"
        for volume in definition.get("volumes", []):
            (self.volumes / volume["name"]).mkdir(parents=True, exist_ok=True)
            (self.volumes / volume["name"]).chmod(0o777)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in [*reversed(self.containers.values()), *([self.shared] if self.shared else [])]:
            one.remove()
        for folder in [*GROUPS.glob(f"*/{self.group}"), GROUPS / self.group]:
            if folder.is_dir():
                process.until(lambda: _gone(folder), 10, f"{folder} is empty")

    shared = None

    def start(self):
        mode = self.definition.get("pidMode")
        if mode in ("task", "host"):  # the lab's own process 1 stands for an instance's
            self.shared = container.Container(*self.pause)
        described = {one["name"]: one for one in self.definition["containerDefinitions"]}
        for name in order(self.definition):
            one = described[name]
            image = self.images[one["image"]]
            for on in one.get("dependsOn", []):
                self._wait(on)
            whose = self.shared or (self.containers.get(mode) if name != mode else None)
            given = options(one, image, self.volumes, self.secrets)
            given["environment"] += self.place
            self.containers[name] = container.Container(
                image.root, words(one, image), cgroup=f"/{self.group}/{name}", network_of=self.network_of,
                pid_of=whose.pid() if whose else None, **given)

    def _wait(self, on):
        name = on["containerName"]
        if on["condition"] == "START":
            self.containers[name].pid()
            return
        if name in self.containers:  # nobody has waited for it before
            self.finished[name] = self.containers.pop(name).finish()
        assert on["condition"] == "COMPLETE" or self.finished[name].status == 0, self.finished[name]

    def stop(self):
        """TERM to one after the other, each within its stopTimeout; what each said."""
        described = {one["name"]: one for one in self.definition["containerDefinitions"]}
        for name in reversed([name for name in order(self.definition) if name in self.containers]):
            one = self.containers[name]
            if one.process.poll() is None:
                one.signal(signal.SIGTERM)
            self.finished[name] = one.finish(described[name].get("stopTimeout", 30))
        return self.finished

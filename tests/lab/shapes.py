"""What platforms take in the files of deploy/, as far as those use it: names and kinds of fields, from the published specifications.

    shapes.problems("compose", value)   -> ["services.app.prot: no such field", ...]

A shape is a type, a compiled pattern, a tuple of values, [shape], {"*": shape} for a map, {"field": shape} for a structure ("field!"
has to be there), OneOf(shape, ...), or the name of a shape in SHAPES.
"""
import re


class OneOf:
    def __init__(self, *shapes):
        self.shapes = shapes


TEXTS = [str]
QUANTITY = re.compile(r"\d+(\.\d+)?(m|k|M|G|Ki|Mi|Gi)?")
DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
CAPABILITY = re.compile(r"ALL|[A-Z]+(_[A-Z]+)*")
SIZE = re.compile(r"\d+[bkmg]?")
DURATION = re.compile(r"\d+(us|ms|s|m|h)")

SHAPES = {
    # ---- Kubernetes, core/v1 and apps/v1
    "workload": {"apiVersion!": ("apps/v1", "batch/v1"), "kind!": ("Deployment", "StatefulSet", "DaemonSet", "Job"),
                 "metadata!": "metadata", "spec!": {"selector": {"matchLabels": {"*": str}}, "template!": "template", "replicas": int}},
    "metadata": {"name": DNS_LABEL, "labels": {"*": str}},
    "template": {"metadata": "metadata", "spec!": "pod"},
    "pod": {"containers": ["container"], "initContainers": ["container"], "shareProcessNamespace": bool, "volumes": ["volume"],
            "securityContext": {"runAsUser": int, "fsGroup": int, "runAsNonRoot": bool, "seccompProfile": "seccomp of a pod"}},
    "container": {"name!": DNS_LABEL, "image": str, "command": TEXTS, "args": TEXTS, "env": ["variable"], "restartPolicy": ("Always",),
                  "volumeMounts": [{"name!": DNS_LABEL, "mountPath!": re.compile("/.*"), "readOnly": bool}],
                  "resources": {"requests": "amounts", "limits": "amounts"}, "securityContext": "rights"},
    "custom profile": {"args": TEXTS, "env": ["variable"], "securityContext": "rights"},
    "amounts": {"cpu": QUANTITY, "memory": QUANTITY},
    "variable": OneOf({"name!": VARIABLE, "value!": str},
                      {"name!": VARIABLE, "valueFrom!": OneOf({"fieldRef!": {"fieldPath!": re.compile(
                          r"metadata\.(name|namespace|uid)|spec\.nodeName|metadata\.labels\['[\w./-]+'\]")}},
                          {"secretKeyRef!": {"name!": DNS_LABEL, "key!": str, "optional": bool}})}),
    "rights": {"runAsUser": int, "runAsNonRoot": bool, "allowPrivilegeEscalation": bool, "readOnlyRootFilesystem": bool,
               "capabilities": {"add": [CAPABILITY], "drop": [CAPABILITY]}, "seccompProfile": "seccomp of a pod"},
    "seccomp of a pod": OneOf({"type!": ("RuntimeDefault", "Unconfined")},
                              {"type!": ("Localhost",), "localhostProfile!": re.compile(r"[\w-]+(/[\w.-]+)*")}),
    "volume": OneOf({"name!": DNS_LABEL, "emptyDir!": {"medium": ("Memory",), "sizeLimit": QUANTITY}},
                    {"name!": DNS_LABEL, "secret!": {"secretName!": DNS_LABEL, "optional": bool, "defaultMode": int}}),
    "component": {"apiVersion!": ("kustomize.config.k8s.io/v1alpha1",), "kind!": ("Component",),
                  "patches!": [{"path!": str, "target!": {"kind!": str}}]},
    # A node's file, as the runtime's specification has it
    "seccomp": {"defaultAction!": ("SCMP_ACT_ERRNO",), "defaultErrnoRet": int,
                "architectures": [re.compile("SCMP_ARCH_(X86_64|AARCH64)")],
                "syscalls!": [{"names!": [re.compile("[a-z0-9_]+")], "action!": ("SCMP_ACT_ALLOW",)}]},
    # ---- The compose specification
    "compose": {"services!": {"*": "service"}},
    "service": {"image!": str, "pid": re.compile("host|service:[a-z0-9._-]+"), "user": str, "cap_add": [CAPABILITY], "cap_drop": [CAPABILITY],
                "security_opt": TEXTS, "read_only": bool, "cpu_shares": int, "mem_limit": SIZE, "entrypoint": TEXTS, "command": TEXTS,
                "environment": {"*": str}, "restart": ("no", "always", "on-failure", "unless-stopped"), "stop_grace_period": DURATION},
    # ---- A composite action
    "action": {"name!": str, "description!": str, "inputs": {"*": {"description!": str, "required": bool, "default": str}},
               "runs!": {"using!": ("composite",), "steps!": [OneOf(
                   {"name": str, "id": VARIABLE, "if": str, "shell!": ("bash", "sh"), "run!": str, "env": {"*": str}},
                   {"name": str, "id": VARIABLE, "if": str, "uses!": re.compile(r"[\w-]+/[\w./-]+@[\w.-]+"), "with": {"*": str}})]}},
}


def problems(shape, value, where=""):
    return list(_check(shape, value, where))


def _check(shape, value, where):
    if isinstance(shape, str):
        yield from _check(SHAPES[shape], value, where)
    elif isinstance(shape, OneOf):
        found = [problems(one, value, where) for one in shape.shapes]
        if all(found):
            yield from min(found, key=len)
    elif isinstance(shape, re.Pattern):
        if not isinstance(value, str) or not shape.fullmatch(value):
            yield f"{where}: {value!r} is not as {shape.pattern}"
    elif isinstance(shape, tuple):
        if value not in shape:
            yield f"{where}: {value!r} is none of {', '.join(shape)}"
    elif isinstance(shape, type):
        if type(value) is not shape:
            yield f"{where}: wants {shape.__name__}, got {value!r}"
    elif isinstance(shape, list):
        yield from _list(shape[0], value, where)
    else:
        yield from _structure(shape, value, where)


def _list(shape, value, where):
    if not isinstance(value, list):
        yield f"{where}: wants a list, got {value!r}"
        return
    for number, one in enumerate(value):
        yield from _check(shape, one, f"{where}[{number}]")
    names = [one["name"] for one in value if isinstance(one, dict) and "name" in one]
    yield from (f"{where}: {name} is there twice" for name in sorted({name for name in names if names.count(name) > 1}))


def _structure(shape, value, where):
    before = f"{where}." if where else ""
    if not isinstance(value, dict):
        yield f"{where}: wants fields, got {value!r}"
        return
    for name in shape:
        if name.endswith("!") and name[:-1] not in value:
            yield f"{before}{name[:-1]}: missing"
    for name, one in value.items():
        known = shape.get(name, shape.get(f"{name}!", shape.get("*")))
        if known is None:
            yield f"{before}{name}: no such field"
        else:
            yield from _check(known, one, f"{before}{name}")

"""The recipes of deploy/ as tasks that lab.fargate runs: each platform's words in those of an ECS task definition.

    recipes.pod(recipes.component(POD, "kubernetes/sidecar"))   a pod after kustomize components
    recipes.compose("compose.yaml")                              services of compose
    recipes.unit("pillion.service", "pillion.conf")              what systemd would start, with what of it a container can show

What a task is told of its containers comes from the recipe alone, but for addresses: `at` replaces those of example.com.
"""
import re
import shlex
from pathlib import Path

import yaml

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
SHARES_OF_A_CPU = 1024


class _Strict(yaml.SafeLoader):
    """The same key twice in one map is an error, as it is to the platforms."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = {str(key) for key in keys if keys.count(key) > 1}
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f"twice: {', '.join(sorted(twice))}", node.start_mark)
        return super().construct_mapping(node, deep)


def load(name):
    return yaml.load((DEPLOY / name).read_text(), _Strict)


def at(url, value):
    """The same with every address of example.com replaced by the url."""
    if isinstance(value, dict):
        return {key: at(url, one) for key, one in value.items()}
    if isinstance(value, list):
        return [at(url, one) for one in value]
    return re.sub(r"https://[\w.-]*example\.com", url, value) if isinstance(value, str) else value


# ---- Kubernetes

KEYS = ("name", "mountPath")


def merged(base, patch):
    """A strategic merge as kustomize does it: maps field by field, lists of named things by their names, new ones first."""
    if isinstance(base, dict) and isinstance(patch, dict):
        return {**base, **{name: merged(base[name], one) if name in base else one for name, one in patch.items()}}
    key = next((key for key in KEYS[::-1] if patch and isinstance(patch, list) and all(key in one for one in patch if isinstance(one, dict))), None)
    if not isinstance(base, list) or key is None or not all(isinstance(one, dict) for one in patch):
        return patch
    there = {one[key] for one in base}
    changes = {one[key]: one for one in patch}
    return [one for one in patch if one[key] not in there] + [merged(one, changes.get(one[key], {})) for one in base]


def component(workload, folder):
    """The workload after a component of deploy/."""
    described = load(f"{folder}/kustomization.yaml")
    for one in described["patches"]:
        if re.fullmatch(one["target"]["kind"], workload["kind"]):
            patch = load(f"{folder}/{one['path']}")
            workload = {**workload, "spec": merged(workload["spec"], patch["spec"])}
    return workload


def _millis(text):
    return int(text[:-1]) if text.endswith("m") else int(float(text) * 1000)


def _mebibytes(text):
    return int(text.removesuffix("Mi"))


def _variables(one, pod):
    plain, secrets = [], []
    for entry in one.get("env", []):
        source = entry.get("valueFrom", {})
        if "secretKeyRef" in source:
            secrets.append({"name": entry["name"], "valueFrom": source["secretKeyRef"]["key"]})
        else:
            value = entry["value"] if "value" in entry else pod.get(source["fieldRef"]["fieldPath"], "")
            plain.append({"name": entry["name"], "value": value})
    return plain, secrets


def container(one, spec, pod):
    """A container of a pod; `pod` has what fields refer to."""
    rights = {**spec.get("securityContext", {}), **one.get("securityContext", {})}
    plain, secrets = _variables(one, pod)
    made = {"name": one["name"], "image": one["image"], "user": str(rights.get("runAsUser", 0)),
            "readonlyRootFilesystem": rights.get("readOnlyRootFilesystem", False),
            "noNewPrivileges": rights.get("allowPrivilegeEscalation") is False,
            "linuxParameters": {"capabilities": rights.get("capabilities", {})}, "secrets": secrets,
            "environment": [*plain, {"name": "KUBERNETES_SERVICE_HOST", "value": "10.0.0.1"}],
            "mountPoints": [{"sourceVolume": mount["name"], "containerPath": mount["mountPath"], "readOnly": mount.get("readOnly", False)}
                            for mount in one.get("volumeMounts", [])]}
    profile = rights.get("seccompProfile", {"type": "Unconfined"})
    made["seccomp"] = {"Unconfined": "off", "RuntimeDefault": "docker"}.get(profile["type"]) or DEPLOY / "kubernetes/seccomp/pillion.json"
    resources = one.get("resources", {})
    if "cpu" in resources.get("requests", {}):
        made["cpu"] = _millis(resources["requests"]["cpu"]) * SHARES_OF_A_CPU // 1000
    if "memory" in resources.get("limits", {}):
        made["memory"] = _mebibytes(resources["limits"]["memory"])
    for key, name in (("command", "entryPoint"), ("args", "command")):
        if key in one:
            made[name] = one[key]
    return made


def pod(workload, fields=None):
    """The task that is a workload's pod. An init container that restarts is beside the others, the rest end before they begin."""
    template = workload["spec"]["template"]
    spec, fields = template["spec"], dict(fields or {})
    fields.update({f"metadata.labels['{name}']": value for name, value in template["metadata"].get("labels", {}).items()})
    before = [{"containerName": one["name"], "condition": "START" if one.get("restartPolicy") == "Always" else "SUCCESS"}
              for one in spec.get("initContainers", [])]
    made = [{**container(one, spec, fields), "dependsOn": before[:number], "essential": False}
            for number, one in enumerate(spec.get("initContainers", []))]
    made += [{**container(one, spec, fields), "dependsOn": before} for one in spec["containers"]]
    return {"family": workload["metadata"]["name"], "containerDefinitions": made, **({"pidMode": "task"} if spec.get("shareProcessNamespace") else {}),
            "volumes": [{"name": one["name"]} for one in spec.get("volumes", [])]}


# ---- Compose

def _interpolated(value, secrets):
    """${NAME:-} stands for a variable of whoever calls compose: what is a secret stays one."""
    name = re.fullmatch(r"\$\{(\w+):-\}", value)
    return None if name and name[1] in secrets else "" if name else value


def service(name, one, secrets):
    variables = {key: _interpolated(value, secrets) for key, value in one.get("environment", {}).items()}
    made = {"name": name, "image": one["image"], "user": one.get("user", "0"), "readonlyRootFilesystem": one.get("read_only", False),
            "noNewPrivileges": "no-new-privileges:true" in one.get("security_opt", []),
            "linuxParameters": {"capabilities": {"add": one.get("cap_add", []), "drop": one.get("cap_drop", [])}},
            "environment": [{"name": key, "value": value} for key, value in variables.items() if value is not None],
            "secrets": [{"name": key, "valueFrom": key} for key, value in variables.items() if value is None],
            "stopTimeout": int(one.get("stop_grace_period", "10s").removesuffix("s"))}
    for key, field in (("entrypoint", "entryPoint"), ("command", "command")):
        if key in one:
            made[field] = one[key]
    if "cpu_shares" in one:
        made["cpu"] = one["cpu_shares"]
    if "mem_limit" in one:
        made["memory"] = int(one["mem_limit"].removesuffix("m"))
    joined = one.get("pid", "").removeprefix("service:")
    if joined:
        made["dependsOn"] = [{"containerName": joined, "condition": "START"}]
    return made


def compose(name, secrets=("PILLION_TOKEN",)):
    services = load(f"compose/{name}")["services"]
    (joined,) = {one["pid"].removeprefix("service:") for one in services.values() if "pid" in one} or {None}
    return {"family": name, "pidMode": joined, "containerDefinitions": [service(key, one, secrets) for key, one in services.items()]}


# ---- systemd

SECTION, SETTING = re.compile(r"\[(\w+)\]"), re.compile(r"([A-Z]\w*)=(.*)")


def settings(*names):
    """[(section, setting, value)] of a unit and its drop-ins, in order; raises ValueError on a line that is none of them."""
    found = []
    for name in names:
        section = None
        for number, line in enumerate((DEPLOY / "systemd" / name).read_text().splitlines(), 1):
            if not line or line[0] in "#;":
                continue
            if head := SECTION.fullmatch(line):
                section = head[1]
            elif section and (setting := SETTING.fullmatch(line)):
                found.append((section, *setting.groups()))
            else:
                raise ValueError(f"{name}:{number}: {line!r}")
    return found


def unit(*names, own=()):
    """The task of a service: `own` are settings of the unit that drop-ins change."""
    listed, one = [*own, *settings(*names)], {}
    for _, key, value in listed:
        if value == "":
            one.pop(key, None)
        else:
            one.setdefault(key, []).append(value)
    (line,) = one["ExecStart"]
    words = shlex.split(line.replace("${CREDENTIALS_DIRECTORY}", "/run/credentials"))
    variables = [value.split("=", 1) for value in one.get("Environment", [])]
    secrets = []
    for file in one.get("EnvironmentFile", []):
        given = [text.split("=", 1) for text in (DEPLOY / "systemd" / Path(file.removeprefix("-")).name).read_text().split()]
        secrets += [key for key, _ in given if "TOKEN" in key]
        variables += [[key, value] for key, value in given if "TOKEN" not in key]
    bound = one.get("CapabilityBoundingSet")
    made = {"name": "service", "image": "host", "entryPoint": words, "user": one.get("User", ["0"])[0],
            "readonlyRootFilesystem": one.get("ProtectSystem") == ["strict"], "noNewPrivileges": one.get("NoNewPrivileges") == ["yes"],
            "seccomp": "off", "secrets": [{"name": key, "valueFrom": key} for key in secrets],
            "environment": [{"name": key, "value": value} for key, value in variables],
            "mountPoints": [{"sourceVolume": f"state-{name}", "containerPath": f"/var/lib/{name}"} for name in one.get("StateDirectory", [])]}
    if bound:
        made["linuxParameters"] = {"capabilities": {"drop": ["ALL"], "add": [name.removeprefix("CAP_") for name in bound[0].split()]}}
    volumes = [{"name": mount["sourceVolume"]} for mount in made["mountPoints"]]
    if "LoadCredential" in one:
        made["mountPoints"].append({"sourceVolume": "credentials", "containerPath": "/run/credentials", "readOnly": True})
        volumes.append({"name": "credentials"})
    return {"family": names[0], "containerDefinitions": [made], "volumes": volumes}


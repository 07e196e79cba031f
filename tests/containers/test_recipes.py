"""The recipes of deploy/ for orchestrators and hosts: the platforms take them, and each uploads, from a read-only root, to a server
that takes it; where the token is wrong or there is no network, the service runs all the same.

lab/recipes.py makes a task of each recipe, which lab/fargate.py runs.
"""
import copy
import functools
import gzip
import hashlib
import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from lab import (booted, container, datadog_model, fargate, metadata_network, otlp, process, pyroscope_model, recipes, root, seccomp, service_model, shapes,
                 studio_model, studio_server, tiers)

pytestmark = pytest.mark.measures

DEPLOY = recipes.DEPLOY
PROFILER = "example.com/pillion:1"
TOKEN = "SECRET-1"
WORKLOAD = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "checkout"}, "spec": {
    "selector": {"matchLabels": {"app.kubernetes.io/name": "checkout"}}, "template": {
        "metadata": {"labels": {"app.kubernetes.io/name": "checkout"}},
        "spec": {"securityContext": {"runAsUser": 1000}, "volumes": [{"name": "cache", "emptyDir": {}}],
                 "initContainers": [{"name": "migrate", "image": "example.com/checkout:1", "command": ["/act", "exit"]}],
                 "containers": [{"name": "app", "image": "example.com/checkout:1", "command": ["python3", "/app/main.py"],
                                 "env": [{"name": "MODE", "value": "fast"}]}]}}}}
FIELDS = {"metadata.name": "checkout-7d9f-x2x4z", "metadata.namespace": "shop", "metadata.uid": "0aa7f7d2-9f5e-4a53-b7a1-3c1f6c1f2b11",
          "spec.nodeName": "node-7"}
BESIDE = {"name": "app", "image": "example.com/checkout:1", "user": "1000", "entryPoint": ["python3", "/app/main.py"], "essential": False}


def components(*names):
    workload = copy.deepcopy(WORKLOAD)
    for name in names:
        workload = recipes.component(workload, f"kubernetes/{name}")
    return workload


def pod(*names):
    return recipes.pod(components(*names), FIELDS)


def of_file(name):
    return json.loads((DEPLOY / name).read_text())


def of_host(definition):
    """One that profiles whatever runs: with a program beside it."""
    first = definition["containerDefinitions"][0]["name"]
    beside = {**BESIDE, "dependsOn": [{"containerName": first, "condition": "START"}]}
    return {**definition, "pidMode": "host", "containerDefinitions": [*definition["containerDefinitions"], beside]}


def below_docker(definition):
    """With the profile of a Docker that knows PERFMON, if it can be had; else with the usual one, which does not."""
    try:
        profile = seccomp.get("docker-26.1")
    except root.Unreachable:
        profile = "docker"
    return {**definition, "containerDefinitions": [{**one, "seccomp": profile} for one in definition["containerDefinitions"]]}


TASKS = {
    "fargate/prefix.json": lambda: of_file("fargate/prefix.json"),
    "fargate/scratch.json": lambda: of_file("fargate/scratch.json"),
    "fargate/sidecar.json": lambda: of_file("fargate/sidecar.json"),
    "ecs/daemon.json": lambda: of_host(of_file("ecs/daemon.json")),
    "ecs/managed.json": lambda: of_file("ecs/managed.json"),
    "kubernetes/sidecar": lambda: pod("sidecar"),
    "kubernetes/seccomp": lambda: pod("sidecar", "perf", "seccomp"),
    "kubernetes/install": lambda: pod("install"),
    "compose/compose.yaml": lambda: below_docker(recipes.compose("compose.yaml")),
    "compose/prefix.yaml": lambda: recipes.compose("prefix.yaml"),
    "systemd/pillion.service": lambda: of_host(recipes.unit("pillion.service")),
    "systemd/pillion.conf": lambda: recipes.unit("pillion.conf", own=[("Service", "User", "1000"), ("Service", "ProtectSystem", "strict"),
                                                                      ("Service", "ExecStart", "/usr/bin/python3 /app/main.py")]),
}
ALL = pytest.mark.parametrize("name", TASKS)
# Where capabilities open perf events, or nothing refuses them; besides these a seccomp profile of its own does.
OPENED = ("ecs/daemon.json", "ecs/managed.json", "systemd/pillion.service")


# ---- They run, all of a condition beside each other

class Ran:
    """A recipe as a task: what its profiler's container said, and how the service went."""

    def __init__(self, definition, images, folder, pause, **more):
        for one in definition["containerDefinitions"]:
            one["readonlyRootFilesystem"] = True
        (self.profiler,) = [one["name"] for one in definition["containerDefinitions"] if "-u" in one.get("entryPoint", []) + one.get("command", [])]
        names = [one["name"] for one in definition["containerDefinitions"]]
        self.service = "app" if "app" in names else self.profiler
        self.is_joined = definition.get("pidMode") == "app"
        self.filter = next(one.get("seccomp") for one in definition["containerDefinitions"] if one["name"] == self.profiler)
        self.task = fargate.Task(definition, images, folder, pause, **more)
        for volume in ("pillion-token", "credentials"):
            if (folder / volume).is_dir():
                (folder / volume / "token").write_text(more["secrets"]["PILLION_TOKEN"] + "\n")

    @property
    def is_beside(self):
        return self.profiler != self.service

    def until_it_worked(self):
        """A service whose processes the profiler has joined cannot end first: the kernel ends both."""
        one = self.task.containers[self.service]
        if self.is_joined:
            pid = one.pid()
            process.until(lambda: process.cpu_seconds(pid) > 0.2, 30, "the service works")
        elif self.is_beside:
            self.status = one.finish(30).status

    def end(self):
        one = self.task.containers[self.profiler]
        if self.is_beside and one.process.poll() is None:
            one.signal(signal.SIGTERM)

    def finish(self):
        self.done = self.task.containers[self.profiler].finish(30)
        if self.is_joined:
            self.status = 7 if self.task.containers[self.service].process.poll() is None else None
        elif not self.is_beside:
            self.status = self.done.status
        self.said = " ".join(self.done.err.split())
        self.task.__exit__()


# Long enough to be seen where that is looked at.
WORKS = {"in front": ["spin", "0.3", "7"], "beside": ["spin", "0.4", "7"], "joined": ["sleepy", "60"], "unseen": ["spin", "0.1", "7"]}


def kind_of(definition):
    names = {one["name"] for one in definition["containerDefinitions"]}
    beside = "app" in names and names & {"pillion", "service", "debugger"}
    return "joined" if definition.get("pidMode") == "app" else "beside" if beside else "in front"


def image_of(folder, pillion, act, kind):
    """A scratch image whose program is what recipes call python3 or /server; with the profiler in it or below it."""
    image = container.scratch(folder, act)
    for where in (image / "usr" / "local" / "bin", image / "opt" / "pillion", image / "run"):
        where.mkdir(parents=True, exist_ok=True)
    shutil.copy2(pillion, image / "usr" / "local" / "bin" / "pillion")
    program = ["/act", *WORKS[kind]]
    return fargate.Image(image, called={"python3": program, "/usr/bin/python3": program, "/server": program, "/app/main.py": []})


@pytest.fixture(scope="module")
def run_all(pillion, program, tmp_path_factory):
    """run_all({key: {"definition": ..., "secrets": ..., "url": ..., "machine": ...}}) -> {key: Ran}; without a url and a machine it has no
    network, and where what it does is not looked at ("seen") its program ends sooner."""
    if tiers.root_missing() or tiers.tool_missing("runc"):
        pytest.skip(tiers.root_missing() or tiers.tool_missing("runc"))
    place = tmp_path_factory.mktemp("recipes")
    for folder in (place.parent, place):
        folder.chmod(0o755)
    act = program("act", "-static")
    pause = (container.scratch(place / "pause", act), ["/act", "wait", "600"])
    profilers = fargate.Image(container.scratch(place / "profiler", pillion), ["/pillion"])
    images = {kind: image_of(place / kind.replace(" ", "-"), pillion, act, kind) for kind in WORKS}

    def begin(definition, folder, secrets, url=None, machine=None, seen=True):
        kind = kind_of(definition)
        image = images["unseen" if not seen and kind != "joined" else kind]
        used = {one["image"]: profilers if one["image"] == PROFILER else image for one in definition["containerDefinitions"]}
        return Ran(recipes.at(url, definition) if url else definition, used, folder, pause, secrets=secrets,
                   network_of=machine.pid if machine else None)

    def run(asked):
        ran, folder = {}, place / f"run-{len(list(place.iterdir()))}"
        try:
            for number, (key, more) in enumerate(asked.items()):
                ran[key] = begin(folder=folder / str(number), **more)
                ran[key].task.start()
            for step in ("until_it_worked", "end", "finish"):
                for one in ran.values():
                    getattr(one, step)()
        finally:
            for one in ran.values():
                one.task.__exit__()
        return ran
    return run


@pytest.fixture(scope="module")
def network():
    if tiers.root_missing():
        pytest.skip(tiers.root_missing())
    return metadata_network.Machine


CONDITIONS = {"right": TOKEN, "wrong token": "SECRET-2", "no network": TOKEN}


@pytest.fixture(scope="module")
def ran(run_all, network):
    """{(condition, name): (Ran, its server)} of all recipes, beside each other: most of the time they wait."""
    with network() as machine:
        servers = {(condition, name): machine.inside(studio_server.Server) for condition in CONDITIONS for name in TASKS}
        asked = {}
        for (condition, name), server in servers.items():
            there = {} if condition == "no network" else {"url": server.url, "machine": machine}
            asked[condition, name] = {"definition": TASKS[name](), "secrets": {"PILLION_TOKEN": CONDITIONS[condition]},
                                      "seen": condition == "right", **there}
        try:
            ran = run_all(asked)
        finally:
            for server in servers.values():
                server.close()
    return {key: (ran[key], servers[key]) for key in servers}


def service_went_on(one):
    """Its own status, or it works still."""
    assert one.status == 7, one.done


@pytest.mark.root
@ALL
def test_a_recipe_uploads_from_a_read_only_root(ran, name):
    one, server = ran["right", name]
    service_went_on(one)
    assert server.accepted, (server.statuses, one.done)
    names = {upload.service for upload in server.accepted}
    assert names == {{"ecs/daemon.json": "shop-hosts", "systemd/pillion.service": "hosts"}.get(name, "checkout")}
    assert "act" in "".join(upload.profile for upload in server.accepted), one.done
    if one.is_beside:
        is_open = name in OPENED or isinstance(one.filter, Path)
        assert ("EPERM: seccomp" in one.said) == (not is_open), one.done
    if name.startswith("kubernetes"):
        told = server.accepted[0].header["metadata"]["cloud_info"]
        assert told == {"pod_name": FIELDS["metadata.name"], "pod_namespace": "shop", "node_name": "node-7"}


@pytest.mark.root
@ALL
def test_a_wrong_token_is_told_and_the_service_runs(ran, name):
    one, server = ran["wrong token", name]
    service_went_on(one)
    assert not server.accepted and "upload to studio failed" in one.said and "Invalid" in one.said, one.done
    assert "SECRET" not in one.done.err


@pytest.mark.root
@ALL
def test_without_a_network_the_service_runs(ran, name):
    one, _ = ran["no network", name]
    service_went_on(one)
    # its time may be over before a name server has been waited for
    assert "cannot resolve the name profiler.example.com" in one.said or "uploads: 0 sent (0 KB), 0 kept in the spool, 1 lost" in one.said, one.done


# ---- Fargate: each back end

def judge_otlp(request):
    release = otlp.release("1.10")
    if request.path != "/v1development/profiles" or request.headers.get("authorization") != f"Bearer {TOKEN}":
        return 404, {}, None
    return 200, b"", otlp.check(release.decode(gzip.decompress(request.body)), "1.10")


def judge_http(request):
    is_right = request.method == "PUT" and request.headers.get("authorization") == f"Bearer {TOKEN}"
    return (201, b"", request) if is_right else (403, {}, None)


JUDGES = {"studio": studio_model.judge, "pyroscope": pyroscope_model.judge, "datadog": datadog_model.intake, "otlp": judge_otlp, "http": judge_http}
BACKENDS = of_file("fargate/backends.json")


def with_backend(definition, backend):
    definition = copy.deepcopy(definition)
    (one,) = [one for one in definition["containerDefinitions"] if "secrets" in one]
    one.update(copy.deepcopy(BACKENDS[backend]))
    return definition


def test_every_back_end_is_in_the_file():
    assert set(BACKENDS) == set(JUDGES)
    for name in ("prefix", "scratch", "sidecar"):
        for backend in BACKENDS:
            assert fargate.problems(with_backend(of_file(f"fargate/{name}.json"), backend)) == [], (name, backend)


@pytest.fixture(scope="module")
def backends(run_all, network):
    try:
        otlp.release("1.10")
    except otlp.Unavailable as reason:
        pytest.skip(str(reason))
    with network() as machine:
        servers = {name: machine.inside(functools.partial(studio_server.Server, judge=judge)) for name, judge in JUDGES.items()}
        asked = {}
        for name, server in servers.items():
            definition = with_backend(of_file("fargate/prefix.json"), name)
            if name == "datadog":  # where it is sent to is the site's own address
                definition["containerDefinitions"][0]["environment"].append(
                    {"name": "DD_PROFILING_URL", "value": f"{server.url}{datadog_model.INTAKE}"})
            asked[name] = {"definition": definition, "url": server.url, "machine": machine, "secrets": {"PILLION_TOKEN": TOKEN, "DD_API_KEY": TOKEN}}
        try:
            ran = run_all(asked)
        finally:
            for server in servers.values():
                server.close()
    return {name: (ran[name], servers[name]) for name in servers}


@pytest.mark.root
@pytest.mark.net
@pytest.mark.parametrize("backend", JUDGES)
def test_fargate_uploads_to_each_back_end(backends, backend):
    one, server = backends[backend]
    assert one.done.status == 7 and len(server.accepted) == 1, (server.statuses, one.done)


# ---- ECS

@pytest.mark.parametrize("name", ["ecs/daemon.json", "ecs/managed.json"])
def test_ecs_takes_a_recipe(name):
    assert fargate.ec2_problems(of_file(name)) == []


@pytest.mark.parametrize("change, said", [
    (lambda d, c: d.update(requiresCompatibilities=["FARGATE"]), "wants EC2"),
    (lambda d, c: d.update(networkMode="none of them"), "networkMode"),
    (lambda d, c: c.pop("memory"), "wants memory"),
    (lambda d, c: c["linuxParameters"]["capabilities"]["add"].append("PERFMON"), "knows no capability PERFMON"),
    (lambda d, c: d.pop("executionRoleArn"), "executionRoleArn"),
    (lambda d, c: c.update(dependsOn=[{"containerName": "gone", "condition": "START"}]), "cannot be started"),
])
def test_ecs_refuses(change, said):
    definition = of_file("ecs/daemon.json")
    change(definition, definition["containerDefinitions"][0])
    assert any(said in problem for problem in fargate.ec2_problems(definition)), fargate.ec2_problems(definition)


@pytest.mark.net
def test_the_service_knows_every_field_of_ecs_recipes():
    try:
        model = service_model.get("ecs")
    except root.Unreachable as reason:
        pytest.skip(str(reason))
    assert model.problems("RegisterTaskDefinition", of_file("ecs/daemon.json")) == []
    assert model.problems("CreateService", of_file("ecs/service.json")) == []
    # Debian's model is older than Managed Instances; nothing else may be wrong.
    found = model.problems("RegisterTaskDefinition", of_file("ecs/managed.json"))
    assert [one for one in found if "'MANAGED_INSTANCES' is none of" not in one] == []
    assert of_file("ecs/service.json")["taskDefinition"] == of_file("ecs/daemon.json")["family"]


# ---- Kubernetes and compose: what they take

@pytest.mark.parametrize("shape, name", [
    ("compose", "compose/compose.yaml"), ("compose", "compose/prefix.yaml"), ("custom profile", "kubernetes/debug.yaml"),
    ("seccomp", "kubernetes/seccomp/pillion.json"), ("action", "github-action/action.yml"),
    *(("component", f"kubernetes/{one}/kustomization.yaml") for one in ("sidecar", "perf", "seccomp", "install")),
    *(("workload", f"kubernetes/{one}/patch.yaml") for one in ("sidecar", "perf", "seccomp", "install"))])
def test_a_file_has_known_fields_alone(shape, name):
    assert shapes.problems(shape, recipes.load(name)) == []


@pytest.mark.parametrize("names", [["sidecar"], ["sidecar", "perf"], ["sidecar", "perf", "seccomp"], ["install"]])
def test_a_workload_after_components_is_one(names):
    made = components(*names)
    spec = made["spec"]["template"]["spec"]
    assert shapes.problems("workload", made) == []
    volumes = {volume["name"] for volume in spec["volumes"]}
    for one in spec["initContainers"] + spec["containers"]:
        assert "image" in one and {mount["name"] for mount in one.get("volumeMounts", [])} <= volumes, one
    assert [one["name"] for one in spec["containers"]] == ["app"] and "cache" in volumes


@pytest.mark.parametrize("change, said", [
    (lambda c: c.update(readOnly=True), "readOnly: no such field"),
    (lambda c: c["securityContext"].update(runAsUser="0"), "wants int"),
    (lambda c: c["securityContext"]["seccompProfile"].update(type="Local"), "is none of"),
    (lambda c: c.update(restartPolicy="OnFailure"), "is none of Always"),
    (lambda c: c["env"].append({"name": "POD_NAME", "value": "x"}), "POD_NAME is there twice"),
    (lambda c: c["env"].append({"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "metadata.pod"}}}), "is not as"),
    (lambda c: c["resources"]["limits"].update(memory="128MB"), "is not as"),
    (lambda c: c.pop("name"), "name: missing"),
    (lambda c: c.update(args="-a"), "wants a list"),
])
def test_what_kubernetes_refuses_is_found(change, said):
    made = components("sidecar")
    change(next(one for one in made["spec"]["template"]["spec"]["initContainers"] if one["name"] == "pillion"))
    assert any(said in problem for problem in shapes.problems("workload", made)), shapes.problems("workload", made)


def test_a_key_that_is_there_twice_is_found(tmp_path):
    (tmp_path / "x.yaml").write_text("a: 1\na: 2\n")
    with pytest.raises(recipes.yaml.constructor.ConstructorError):
        recipes.load(tmp_path / "x.yaml")


def test_components_are_merged_as_kustomize_does(workdir):
    if tiers.tool_missing("kubectl"):
        pytest.skip(tiers.tool_missing("kubectl"))
    shutil.copytree(DEPLOY / "kubernetes", workdir / "pillion")
    for number, names in enumerate((["sidecar"], ["sidecar", "perf", "seccomp"], ["install"])):
        folder = workdir / str(number)
        folder.mkdir()
        (folder / "w.yaml").write_text(json.dumps(WORKLOAD))
        (folder / "kustomization.yaml").write_text(json.dumps({"resources": ["w.yaml"], "components": [f"../pillion/{one}" for one in names]}))
        done = process.run(["kubectl", "kustomize", folder])
        assert done.status == 0 and recipes.yaml.safe_load(done.out) == components(*names), done


def test_the_seccomp_profile_allows_the_calls_that_pillion_lists_itself(repository):
    """And what a runtime makes on the way to it; nothing else can be executed in there but by execve."""
    source = (repository / "src" / "os" / "confine.c").read_text()
    lists = "".join(re.search(rf"{name}\[\] = {{(.*?)}};", source, re.S)[1] for name in ("all_calls", "stop_calls"))
    lists = re.sub(r"#ifdef __SANITIZE.*?#endif", "", lists, flags=re.S)
    by_number = {"444": "landlock_create_ruleset", "445": "landlock_add_rule", "446": "landlock_restrict_self", "424": "pidfd_send_signal",
                 "434": "pidfd_open"}
    listed = set(re.findall(r"SYS_(\w+)", lists)) | {by_number[number] for number in re.findall(r"\b(\d{3})\b", lists)}
    own, start = (set(rule["names"]) for rule in recipes.load("kubernetes/seccomp/pillion.json")["syscalls"])
    assert own == listed and len(start) < 8 and "execve" in start


@pytest.mark.root
def test_a_debug_container_uploads_one_window(run_all, network):
    """kubectl debug --target: the container has the target's processes, and what the custom profile says."""
    page = (DEPLOY / "kubernetes" / "README.md").read_text()
    words = re.search(r"--custom=debug\.yaml -- (.*)", page)[1].split()
    app = {**BESIDE, "seccomp": "docker"}
    spec = {"name": "debugger", "image": PROFILER, "command": words, **recipes.load("kubernetes/debug.yaml")}
    made = {**recipes.container(spec, {}, FIELDS), "dependsOn": [{"containerName": "app", "condition": "START"}]}
    made["command"] = [*made.pop("entryPoint")[1:]]
    made["command"][made["command"].index("-d") + 1] = "1"
    with network() as machine, machine.inside(studio_server.Server) as server:
        definition = {"family": "x", "pidMode": "app", "containerDefinitions": [app, made]}
        ran = run_all({"debug": {"definition": definition, "url": server.url, "machine": machine, "secrets": {"PILLION_TOKEN": TOKEN}}})["debug"]
    assert ran.status == 7 and ran.done.status == 0 and len(server.accepted) == 1, (server.statuses, ran.done)


# ---- systemd

def test_the_units_are_what_systemd_takes(workdir):
    if tiers.tool_missing("systemd-analyze"):
        pytest.skip(tiers.tool_missing("systemd-analyze"))
    text = (DEPLOY / "systemd" / "pillion.service").read_text().replace("/usr/local/bin/pillion", "/bin/true")
    (workdir / "pillion.service").write_text(text)
    (workdir / "checkout.service").write_text("[Service]\nExecStart=/bin/true\n")
    (workdir / "checkout.service.d").mkdir()
    text = (DEPLOY / "systemd" / "pillion.conf").read_text().replace("/usr/local/bin/pillion", "/bin/true")
    (workdir / "checkout.service.d" / "pillion.conf").write_text(text)
    for name in ("pillion.service", "checkout.service"):
        done = process.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", workdir / name])
        assert str(workdir) not in done.err and name not in done.err, done


@pytest.mark.root
@pytest.mark.net
def test_a_booted_systemd_runs_the_units(workdir, pillion, program, network):
    """The host's unit with all that hardens it, its token a credential; a service behind the drop-in, and one whose file is not there."""
    units, act = "etc/systemd/system", program("act", "-static").read_bytes()
    service = "[Service]\nUser=nobody\nExecStart=/usr/bin/python3 /app/main.py\n"
    words = {"/usr/bin/python3 /app/main.py": "/usr/local/bin/act spin 0.5 7"}
    drop = (DEPLOY / "systemd" / "pillion.conf").read_text().replace(*words.popitem())
    with network() as machine, machine.inside(studio_server.Server) as server:
        def file(name):
            return (DEPLOY / "systemd" / name).read_text().replace("https://profiler.example.com", server.url)
        files = {f"{units}/pillion.service": file("pillion.service"), "etc/pillion/token": TOKEN, "usr/local/bin/pillion": pillion.read_bytes(),
                 "usr/local/bin/act": act, f"{units}/checkout.service": service, f"{units}/checkout.service.d/pillion.conf": drop,
                 "etc/pillion/checkout.env": file("checkout.env").replace("replace-by-your-token", TOKEN),
                 f"{units}/bare.service": service, f"{units}/bare.service.d/pillion.conf": drop.replace("checkout.env", "none.env")}
        try:
            host = booted.Systemd(workdir, files, ["pillion.service", "checkout.service", "bare.service"], machine.pid)
        except root.Unreachable as reason:
            pytest.skip(str(reason))

        def state(name):
            return host.say("systemctl", "show", "--property=ActiveState,ExecMainStatus", name).split()
        with host:
            for name in ("checkout", "bare"):
                process.until(lambda: "ActiveState=failed" in state(name), 30, lambda: host.say("journalctl", "-o", "cat"), 0.3)
                assert "ExecMainStatus=7" in state(name)
            host.say("systemctl", "stop", "pillion")
            assert state("pillion") == ["ExecMainStatus=0", "ActiveState=inactive"], host.say("journalctl", "-o", "cat")
            said = host.say("journalctl", "-o", "cat", "-u", "pillion")
    assert sorted(upload.service for upload in server.accepted) == ["checkout", "hosts"], said
    assert "perf events refused" not in said and ";burn" in "".join(upload.profile for upload in server.accepted), said


def test_a_unit_with_a_line_that_is_none_is_refused(tmp_path):
    (tmp_path / "x.service").write_text("[Service]\nExecStart /bin/true\n")
    with pytest.raises(ValueError):
        recipes.settings(tmp_path / "x.service")


def test_the_units_have_known_settings_alone():
    """Those of systemd.unit, .service, .exec and .resource-control in version 247 that the recipes use."""
    known = set("""Unit.Description Unit.After Unit.Wants Service.Environment Service.EnvironmentFile Service.LoadCredential Service.ExecStart
        Service.ExecReload Service.StateDirectory Service.StateDirectoryMode Service.Restart Service.RestartSec Service.TimeoutStopSec
        Service.MemoryMax Service.CapabilityBoundingSet Service.NoNewPrivileges Service.ProtectSystem Service.ProtectHome Service.PrivateTmp
        Service.PrivateDevices Service.ProtectControlGroups Service.ProtectKernelModules Service.ProtectHostname
        Service.RestrictAddressFamilies Service.RestrictNamespaces Service.RestrictSUIDSGID Service.LockPersonality
        Service.MemoryDenyWriteExecute Service.SystemCallArchitectures Install.WantedBy""".split())
    assert {f"{section}.{key}" for section, key, _ in recipes.settings("pillion.service", "pillion.conf")} <= known


# ---- GitHub Actions

def evaluated(text, values):
    """A text of an action with its expressions replaced; one that is not known is an error."""
    return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda found: values[found[1]], text)


class Runner:
    """The steps of the composite action, as a runner calls them: bash --noprofile --norc -eo pipefail on a file."""

    def __init__(self, folder, inputs, **variables):
        self.action, self.folder, self.uses = recipes.load("github-action/action.yml"), folder, []
        given = {name: inputs.get(name, one.get("default", "")) for name, one in self.action["inputs"].items()}
        self.values = {**{f"inputs.{name}": value for name, value in given.items()}, "runner.temp": str(folder / "temp")}
        (folder / "temp").mkdir()
        self.environment = {"PATH": variables.pop("PATH", "/usr/bin:/bin"), "RUNNER_TEMP": str(folder / "temp"),
                            "GITHUB_STEP_SUMMARY": str(folder / "summary"), **variables}

    def run(self):
        """The status of the first step that fails, else 0; what was said; whether the artefact was left."""
        status, said = 0, ""
        for number, step in enumerate(self.action["runs"]["steps"]):
            if status and step.get("if") != "${{ !cancelled() }}":
                continue
            if "uses" in step:
                self.uses.append({"uses": step["uses"], **{key: evaluated(value, self.values) for key, value in step["with"].items()}})
                continue
            script = self.folder / f"step-{number}.sh"
            script.write_text(step["run"])
            assert "${{" not in step["run"], "an input in a script would be executed: it goes through env"
            variables = {name: evaluated(value, self.values) for name, value in step.get("env", {}).items()}
            done = process.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", script], cwd=self.folder, env={**self.environment, **variables})
            status, said = status or done.status, said + done.out + done.err
        process.settle(15)
        return status, said


@pytest.fixture
def released(pillion):
    """(address, hash): the release is a file of this machine."""
    if tiers.tool_missing("curl"):
        pytest.skip(tiers.tool_missing("curl"))
    return f"file://{pillion}", hashlib.sha256(pillion.read_bytes()).hexdigest()


def test_the_action_profiles_a_command_and_keeps_its_status(workdir, program, released):
    runner = Runner(workdir, {"url": released[0], "sha256": released[1], "run": f"{program('act')} spin 0.3 7 && echo no", "name": "flames"})
    status, said = runner.run()
    assert status == 7, said
    (left,) = runner.uses
    assert left["name"] == "flames" and left["uses"].startswith("actions/upload-artifact@")
    assert "<html" in (workdir / "temp" / "pillion-profiles" / "last_flamegraph.html").read_text().lower()
    assert left["path"] == str(workdir / "temp" / "pillion-profiles")


@pytest.mark.parametrize("url, digest", [("file:///nowhere/pillion", "right"), ("right", "0" * 64)])
def test_the_action_runs_the_command_without_the_profiler_where_it_is_not_had(workdir, released, url, digest):
    runner = Runner(workdir, {"url": url.replace("right", released[0]), "sha256": digest.replace("right", released[1]), "run": "echo it runs; exit 3"})
    status, said = runner.run()
    assert status == 3 and "it runs" in said and "::warning::" in said, said
    assert not (workdir / "temp" / "pillion").exists()


# ---- Without a network

@pytest.mark.root
def test_profiles_are_carried_out_of_a_place_without_a_network(workdir, pillion, program):
    page = (DEPLOY / "airgap" / "README.md").read_text()
    here, there = [[line[2:] for line in block.splitlines() if line.startswith("$ ")] for block in re.findall(r"^```sh\n(.*?)^```", page, re.M | re.S)]
    (workdir / "serve.sh").write_text(f"#!/bin/sh\nexec {program('act')} spin 0.5\n")
    (workdir / "serve.sh").chmod(0o755)
    file = workdir / f"pillion-0.1.0-linux-{os.uname().machine}"
    shutil.copyfile(pillion, file)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    (workdir / "SHA256SUMS").write_text(f"{'0' * 64}  another-file-of-the-release\n{digest}  {file.name}\n")
    done = process.run(["unshare", "-n", "sh", "-ec", "\n".join(here)], cwd=workdir, timeout=60)
    process.settle(15)
    assert done.status == 0 and (workdir / "profiles.tar.gz").exists(), done
    with studio_server.Server() as server:
        (workdir / "token").write_text(TOKEN)
        script = "\n".join(there).replace("https://profiler.example.com", server.url)
        done = process.run(["sh", "-ec", script], cwd=workdir, timeout=60)
    assert done.status == 0 and len(server.accepted) == 1 and "act" in server.accepted[0].profile, done


# ---- The pages

PAGES = ("alpine", "kubernetes", "compose", "ecs", "fargate", "systemd", "airgap", "github-action")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_every_file_and_is_in_the_table(name):
    page = (DEPLOY / name / "README.md").read_text()
    for path in (DEPLOY / name).rglob("*"):
        if path.is_file() and path.name not in ("README.md", "kustomization.yaml"):
            assert f"({path.relative_to(DEPLOY / name)})" in page, path
    assert f"({name}/README.md)" in (DEPLOY / "README.md").read_text()
    assert "## When something goes wrong" in page and "## What" in page
    assert name == "fargate" or len(page.splitlines()) <= 62, "one screen"


TOOLS = {"aws": "ecs", "kubectl": "create|apply|debug|label", "docker": "compose", "systemctl": "daemon-reload|enable|restart"}


@pytest.mark.parametrize("name", ["kubernetes", "compose", "ecs", "systemd"])
def test_the_lines_to_paste_are_a_shells(workdir, name):
    """Run with stand-ins for the platforms' tools; a file that a line names is there."""
    page = (DEPLOY / name / "README.md").read_text()
    block = re.search(r"^```sh\n(.*?)^```", page, re.M | re.S)[1].replace("\\\n", " ")
    lines = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    (workdir / "bin").mkdir()
    for tool, verbs in TOOLS.items():
        (workdir / "bin" / tool).write_text(f"#!/bin/sh\ncase $1 in {verbs}) ;; *) exit 64 ;; esac\n"
                                            "for w; do case $w in file://*) test -f \"${w#file://}\" || exit 65 ;; esac; done\n")
    (workdir / "bin" / "install").write_text("#!/bin/sh\nfor w; do case $w in -*|[0-7]*|/*) ;; *) test -f \"$w\" || exit 66 ;; esac; done\n")
    for tool in (workdir / "bin").iterdir():
        tool.chmod(0o755)
    folder = shutil.copytree(DEPLOY / name, workdir / name)
    for own in ("token", "pillion"):
        (folder / own).write_text("")
    done = process.run(["sh", "-ec", "\n".join(lines)], cwd=folder, env={"PATH": f"{workdir / 'bin'}:/usr/bin:/bin"})
    assert lines and done.status == 0, done

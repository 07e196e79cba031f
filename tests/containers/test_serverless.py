"""The recipes for places where nobody has a host: dataflow, lambda, cloudrun, azure-container-apps.

What they ask for is held against the fields that the platform has, and run by runc as it is written; a wrong token, no network and a
read-only root start nothing less.
"""
import base64
import json
import os
import re
import shutil
import signal
import time
import urllib.request
from pathlib import Path

import pytest
import yaml

from lab import col, container, gvisor, lambda_runtime, metadata_network, process, pythons, webserver
from lab.studio_server import Server

pytestmark = pytest.mark.measures

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
TOKEN = "SECRET-1"
NOWHERE = "http://127.0.0.1:9"
HOST = "/usr/bin/python3"


def instructions(path):
    """The instructions of a Dockerfile of one stage; exec forms as lists."""
    lines = [line.partition(" ") for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {word: json.loads(rest) if rest.startswith("[") else rest for word, _, rest in lines}


@pytest.fixture
def network():
    """A network of its own, with the link-local address of metadata services."""
    with metadata_network.Machine() as made:
        yield made


@pytest.fixture
def studio(network):
    with network.inside(Server) as server:
        yield server


@pytest.fixture
def place(workdir, pillion):
    """A folder that any uid may read, with the file pillion."""
    shutil.copy2(pillion, workdir / "pillion")
    return workdir


@pytest.fixture
def started(place):
    """started(command, network, mounts=[...], **variables): a container with this machine's programs, a read-only root, a /tmp without
    exec, the usual seccomp profile, and the folder `place` where it is; without a network it has one that leads nowhere."""
    root = place / "root"
    for name in ("dev", "proc", "sys", "tmp", "usr", "etc", "root"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    made = []

    def start(command, network=None, mounts=(), uid=0, **variables):
        mounts = [("/usr", "/usr", "ro"), ("/etc", "/etc", "ro"), ("/root", "/root", "ro"), (place, place, "rw"), *mounts]
        made.append(container.Container(
            root, command, profile="docker", uid=uid, mounts=mounts, network_of=network.pid if network else None,
            environment=["LC_ALL=C.UTF-8", *(f"{name}={value}" for name, value in variables.items())]))
        return made[-1]
    yield start
    for one in made:
        one.remove()


def counted(studio, frame):
    """Samples below a Python function in all that was uploaded."""
    return sum(stack.count for upload in studio.accepted for stack in col.Col(upload.profile).stacks
               if any(f.startswith(f"{frame} (") for f in stack.frames))


def until_seen(studio, frame, one, least=1, seconds=20):
    def found():
        below = process.descendants_of(one.process.pid)
        return f"{counted(studio, frame)} samples of {frame}, {len(studio.accepted)} windows; the container's status {one.process.poll()}; " \
               f"{[(pid, process.state_of(pid), process.command_line(pid)) for pid in below]}\n{one.process.err}"
    process.until(lambda: counted(studio, frame) >= least, seconds, found)


def profilers_below(pid):
    """Of a container whose first process has this id: the processes that are pillion."""
    found = []
    for one in [pid, *process.descendants_of(pid)]:
        try:
            if os.path.basename(os.readlink(f"/proc/{one}/exe")).split(" ")[0] == "pillion" and process.state_of(one) != "Z":
                found.append(one)
        except OSError:
            pass
    return found


# ---- Dataflow: setup.py on the way that it takes

# As Beam 2.77 does it: the virtual environment, pip with its output in a pipe, and then the worker. Of a folder only what pip calls.
BOOT = """\
python=$1; shift
cd "$HERE" || exit
"$python" -m venv --without-pip --system-site-packages venv && . ./venv/bin/activate || exit
for staged; do
    { if [ -d "$staged" ]; then cd "$staged" && python setup.py -q build
      else python -m pip install --no-cache-dir --disable-pip-version-check "$staged" --no-build-isolation --no-index; fi 2>&1 </dev/null
      echo "status $?"; } | cat >> pip.log
done
: > installed
python worker.py
"""
WORKER = """\
import os
def process_bundle():
    return sum(i * i for i in range(20000))
while not os.path.exists("stop"):
    process_bundle()
print("worker: done")
"""
SETUP = (DEPLOY / "dataflow" / "setup.py").read_text()


def setting(text, name, value):
    changed = re.sub(rf'^{name} = .*$', f"{name} = {json.dumps(value)}", text, flags=re.M)
    assert changed != text, name
    return changed


def pipeline(place, name, server, binary, secrets=None):
    """A pipeline's folder with setup.py."""
    folder = place / name
    (folder / "shop").mkdir(parents=True)
    (folder / "shop" / "__init__.py").write_text("")
    text = setting(SETUP, "SERVER", server)
    text = setting(text, "SECRETS", f"{secrets}/v1/") if secrets else setting(text, "SECRET", "")
    (folder / "setup.py").write_text(text)
    if binary:
        (folder / "pillion").write_bytes(binary)
        (folder / "pillion").chmod(0o755)
    return folder


def staged(folder):
    """What the stager makes of it (`setup.py sdist`): workflow.tar.gz, by another name."""
    made = folder.with_suffix(".dist")
    done = process.run([HOST, "setup.py", "-q", "sdist", "--dist-dir", made], cwd=folder)
    assert done.status == 0, done
    return next(made.glob("*.tar.gz"))


class Worker:
    """An SDK container. Its first process is `boot`."""

    def __init__(self, place, started, network, python, archives, **environment):
        self.place = place
        shutil.copy2("/bin/dash", place / "boot")
        (place / "boot.sh").write_text(BOOT)
        (place / "worker.py").write_text(WORKER)
        self.container = started([place / "boot", place / "boot.sh", python, *archives], network,
                                 HERE=place, HOME="/tmp", PILLION_PROFILING_DURATION="1", **environment)
        self.process = self.container.process

    def ready(self):
        """When the worker starts: how each pip ended, and what it said."""
        def installed():
            assert self.process.poll() is None, self.process.err
            return (self.place / "installed").exists()
        process.until(installed, 60, lambda: self.process.err)
        said = (self.place / "pip.log").read_text()
        return re.findall(r"^status (\d+)", said, re.M), said

    def end(self):
        (self.place / "stop").touch()
        done = self.container.finish()
        assert (done.status, done.out) == (0, "worker: done\n"), done
        return done


ROUTES = {("GET", "/computeMetadata/v1/instance/service-accounts/default/token"): '{"access_token": "ya29.x", "expires_in": 3599}',
          ("GET", "/v1/projects/shop/secrets/pillion/versions/latest:access"):
              json.dumps({"payload": {"data": base64.b64encode(TOKEN.encode()).decode()}})}


def google(head):
    """The metadata server answers who says what it is for; Secret Manager answers the account's own token."""
    given = metadata_network.field(head, "Authorization" if "/secrets/" in head else "Metadata-Flavor")
    return 200 if given in ("Bearer ya29.x", "Google") else 403


def has_pip(python):
    find = "import importlib.util; print([n for n in ('pip', 'setuptools', 'wheel') if not importlib.util.find_spec(n)] or '')"
    missing = process.run([python, "-c", find]).out.strip()
    if missing:
        pytest.skip(f"{python} has no {missing}")
    return python


@pytest.mark.root
def test_the_hook_leaves_one_profiler_behind_and_the_worker_starts(place, started, network, studio):
    """A binary for another processor first, then the right one, then once more: each succeeds."""
    binary = (place / "pillion").read_bytes()
    cloud = network.inside(lambda: webserver.Server(metadata_network.service(ROUTES, guard=google), (metadata_network.LINK_LOCAL, 80)))
    with cloud:
        right = pipeline(place, "right", studio.url, binary, cloud.url)
        broken = staged(pipeline(place, "broken", studio.url, b"\x7fELF, for another processor"))
        worker = Worker(place, started, network, has_pip(HOST), [broken, staged(right), right])
        statuses, said = worker.ready()
        assert statuses == ["0"] * 3, said
        running = profilers_below(worker.container.pid())
        assert len(running) == 1, worker.process.err
        until_seen(studio, "process_bundle", worker)
        assert profilers_below(worker.container.pid()) == running
        assert TOKEN.encode() not in Path(f"/proc/{running[0]}/environ").read_bytes()
        assert os.access(place / "venv" / "bin" / "pillion", os.X_OK), "in PATH, for --profiler_agent"
        done = worker.end()
    assert {upload.service for upload in studio.accepted} == {"checkout"}
    assert "pillion: this worker is not profiled: no folder takes the file pillion and executes it" in done.err
    assert TOKEN not in said + done.err


OLD = next((f"pyenv-{version}" for version in pythons.pyenv_versions() if version.startswith("3.9.")), "host")


@pytest.mark.root
def test_the_hook_does_no_harm_without_a_network_and_a_token(place, started):
    """Python 3.9 where there is one: its pip has no wheel and takes the old way, through `setup.py install`."""
    right = staged(pipeline(place, "right", NOWHERE, (place / "pillion").read_bytes(), NOWHERE))
    worker = Worker(place, started, None, pythons.get(OLD).executable, [pipeline(place, "forgotten", NOWHERE, None), right])
    statuses, said = worker.ready()
    assert statuses == ["0", "0"], said
    process.until(lambda: "needs a token" in worker.process.err, 20, lambda: worker.process.err)
    done = worker.end()
    assert "pillion: no token: projects/shop/secrets/pillion/versions/latest cannot be read (" in done.err
    assert "not profiled: the file pillion was not beside setup.py" in done.err


@pytest.mark.root
def test_the_hook_does_no_harm_with_a_wrong_token(place, started, network, studio):
    folder = pipeline(place, "right", studio.url, (place / "pillion").read_bytes())
    worker = Worker(place, started, network, HOST, [folder], PILLION_TOKEN="wrong")
    statuses, said = worker.ready()
    assert statuses == ["0"], said
    process.until(lambda: studio.statuses, 20, lambda: worker.process.err)
    worker.end()
    assert not studio.accepted and "wrong" not in said


def test_nothing_is_started_where_no_boot_is_above(place):
    """On the submitting machine, in a Flex Template's launcher, and where boot only prepares an image."""
    (place / "boot").write_bytes(Path("/bin/dash").read_bytes())
    (place / "boot").chmod(0o755)
    (place / "setup.py").write_text(SETUP)
    (place / "build.sh").write_text(f"{HOST} setup.py -q build\necho status $?\n")
    for command in (["sh", "build.sh"], [place / "boot", "build.sh", "--setup_only"]):
        done = process.run(command, cwd=place)
        assert (done.out, done.err) == ("status 0\n", ""), done
    assert process.leftovers() == []


# ---- Custom containers of Beam

@pytest.mark.parametrize("name", ["python.Dockerfile", "java.Dockerfile"])
def test_a_workers_image_has_boot_behind_pillion(name):
    made = instructions(DEPLOY / "dataflow" / name)
    words = made["ENTRYPOINT"]
    assert re.fullmatch(r"apache/beam_(python3\.\d+|java\d+)_sdk:\d+\.\d+\.\d+", made["FROM"])
    assert made["COPY"].split() == ["pillion", words[0]] and words[-2:] == ["--", "/opt/apache/beam/boot"]
    assert int(re.search(r"PILLION_PROFILING_DURATION=(\d+)", made["ENV"])[1]) <= 60


@pytest.mark.root
def test_a_workers_image_hands_boots_arguments_on(place, started, network, studio):
    """Dataflow adds them to ENTRYPOINT; the profiler sees what boot starts, and the container ends as boot ends."""
    made = instructions(DEPLOY / "dataflow" / "python.Dockerfile")
    shutil.copy2("/bin/dash", place / "boot")
    (place / "worker.py").write_text("def process_bundle():\n    return sum(i * i for i in range(20000))\n"
                                     "for _ in range(500): process_bundle()\n")
    variables = dict(word.split("=", 1) for word in made["ENV"].replace("https://profiler.example.com", studio.url).split())
    words = [{"/usr/local/bin/pillion": place / "pillion", "/opt/apache/beam/boot": place / "boot"}.get(word, word)
             for word in made["ENTRYPOINT"]]
    one = started([*words, "-c", f'{HOST} {place}/worker.py; echo "$0 $1"; exit 3', "--id=1-1", "--provision_endpoint=localhost:1"],
                  network, **variables, PILLION_TOKEN=TOKEN)
    done = one.finish()
    assert (done.status, done.out) == (3, "--id=1-1 --provision_endpoint=localhost:1\n"), done
    assert counted(studio, "process_bundle") > 10, done


# ---- Lambda

FUNCTION = """\
def total(n):
    return sum(i * i % 7 for i in range(n))
def handler(event):
    if event["n"] < 0:
        raise ValueError("n is below 0")
    return {"total": total(event["n"])}
"""
EVENTS = [{"n": 1000000}, {"n": 1500000}, {"n": 2000000}]


@pytest.fixture
def function(place, started, network):
    """function(api, layer=True, **variables): an environment with the function, its layer at /opt, and /tmp alone to write to."""
    layer = place / "layer"
    layer.mkdir()
    for file in (place / "pillion", DEPLOY / "lambda" / "pillion-wrapper"):
        shutil.copy2(file, layer)
    (place / "app.py").write_text(FUNCTION)
    (place / "bootstrap.py").write_text(lambda_runtime.BOOTSTRAP)

    def start(api, layered=True, **variables):
        # A runtime's own script starts the wrapper; process 1 is Lambda's, and reaps.
        wrapper = ["/opt/pillion-wrapper"] if layered else []
        return started(["/usr/bin/tini", "-s", "--", *wrapper, HOST, place / "bootstrap.py", place / "app.py"], network,
                       [(layer, "/opt", "ro")], 993, **api.environment, **variables)
    return start


@pytest.fixture
def api(network):
    with network.inside(lambda_runtime.Api) as made:
        yield made


@pytest.mark.root
def test_a_function_answers_the_same_and_is_profiled_through_freezes(function, network, api, studio):
    one = function(api, PILLION_SERVER_HOST=studio.url, PILLION_TOKEN=TOKEN, PILLION_PROFILING_DURATION="1")
    for event in EVENTS:
        assert api.invoke(event) == {"total": sum(i * i % 7 for i in range(event["n"]))}
        one.freeze()
        frozen = time.monotonic()
        process.until(lambda: time.monotonic() > frozen + 1, what="a window's end passes meanwhile")
        one.freeze(False)
    with pytest.raises(lambda_runtime.Failed, match="n is below 0"):
        api.invoke({"n": -1})
    known = profilers_below(one.pid())
    runtime = next(pid for pid in process.descendants_of(one.pid()) if pid not in known)
    used = process.cpu_seconds(runtime)
    until_seen(studio, "total", one, 0.5 * used * 99)
    assert sum(upload.total for upload in studio.accepted) / 99 < 1.3 * used + 1, (used, one.process.err)
    assert {upload.service for upload in studio.accepted} == {"checkout"}


@pytest.mark.root
@pytest.mark.parametrize("what", ["none", "wrong token", "no server", "another processor's file"])
def test_a_function_answers_whatever_is_wrong_with_the_profiler(function, place, api, studio, what):
    """And the same without it."""
    if what == "another processor's file":
        (place / "layer" / "pillion").write_bytes(b"\x7fELF, for another processor")
    one = function(api, what != "none", PILLION_SERVER_HOST=studio.url if what == "wrong token" else NOWHERE, PILLION_TOKEN="wrong",
                   PILLION_PROFILING_DURATION="1")
    assert api.invoke({"n": 7}) == {"total": sum(i * i % 7 for i in range(7))}, one.process.err
    with pytest.raises(lambda_runtime.Failed, match="n is below 0"):
        api.invoke({"n": -1})
    assert len(profilers_below(one.pid())) == (what in ("wrong token", "no server")), one.process.err
    if what == "wrong token":
        process.until(lambda: studio.statuses, 20, lambda: one.process.err)
    if what == "another processor's file":
        assert "pillion: not profiled: /opt/pillion cannot be executed here" in one.process.err
    assert not studio.accepted


def test_the_functions_image_starts_the_wrapper():
    made = instructions(DEPLOY / "lambda" / "Dockerfile")
    wrapper = (DEPLOY / "lambda" / "pillion-wrapper")
    assert made["ENV"] == "AWS_LAMBDA_EXEC_WRAPPER=/opt/pillion-wrapper" and os.access(wrapper, os.X_OK)
    assert "ENTRYPOINT" not in made, "the base image's own"
    assert process.run(["sh", "-n", wrapper]).status == 0


# ---- Cloud Run and Azure Container Apps: what the platform takes

TEXT, NUMBER, WHOLE = str, (int, float), int
# Of a service of the Admin API's first version, and of a container app: the fields that a recipe may use. [X] is a list of X,
# {TEXT: TEXT} a table with any names; a name that begins with "!" has to be there.
SECRET_ITEM = {"!key": TEXT, "!path": TEXT, "mode": WHOLE}
CLOUD_RUN = {
    "!apiVersion": "serving.knative.dev/v1", "!kind": "Service",
    "!metadata": {"!name": TEXT, "annotations": {TEXT: TEXT}, "labels": {TEXT: TEXT}},
    "!spec": {"!template": {
        "metadata": {"annotations": {TEXT: TEXT}, "labels": {TEXT: TEXT}},
        "!spec": {
            "serviceAccountName": TEXT, "containerConcurrency": WHOLE, "timeoutSeconds": WHOLE,
            "!containers": [{
                "!image": TEXT, "name": TEXT, "command": [TEXT], "args": [TEXT], "workingDir": TEXT,
                "ports": [{"!containerPort": WHOLE, "name": TEXT}], "resources": {"limits": {TEXT: TEXT}},
                "env": [{"!name": TEXT, "value": TEXT, "valueFrom": {"!secretKeyRef": {"!name": TEXT, "!key": TEXT}}}],
                "volumeMounts": [{"!name": TEXT, "!mountPath": TEXT, "readOnly": bool}]}],
            "volumes": [{"!name": TEXT, "secret": {"!secretName": TEXT, "items": [SECRET_ITEM], "defaultMode": WHOLE},
                         "emptyDir": {"medium": TEXT, "sizeLimit": TEXT}}]}}}}
APP_CONTAINER = {
    "!name": TEXT, "!image": TEXT, "command": [TEXT], "args": [TEXT], "env": [{"!name": TEXT, "value": TEXT, "secretRef": TEXT}],
    "resources": {"!cpu": NUMBER, "!memory": TEXT}, "volumeMounts": [{"!volumeName": TEXT, "!mountPath": TEXT, "subPath": TEXT}]}
CONTAINER_APP = {
    "!type": "Microsoft.App/containerApps", "!location": TEXT, "identity": {"!type": TEXT},
    "!properties": {
        "!environmentId": TEXT,
        "configuration": {"activeRevisionsMode": TEXT, "ingress": {"external": bool, "!targetPort": WHOLE},
                          "secrets": [{"!name": TEXT, "value": TEXT, "keyVaultUrl": TEXT, "identity": TEXT}]},
        "!template": {"initContainers": [APP_CONTAINER], "!containers": [APP_CONTAINER],
                      "scale": {"minReplicas": WHOLE, "maxReplicas": WHOLE},
                      "volumes": [{"!name": TEXT, "!storageType": TEXT, "secrets": [{"!secretRef": TEXT, "!path": TEXT}]}]}}}
RECIPES = {name: yaml.safe_load((DEPLOY / name).read_text())
           for name in ("cloudrun/service.yaml", "azure-container-apps/app.yaml")}
SCHEMAS = dict(zip(RECIPES, (CLOUD_RUN, CONTAINER_APP)))


def problems(schema, value, path=""):
    if isinstance(schema, str):
        return [] if value == schema else [f"{path}: {value!r} is not {schema}"]
    if isinstance(schema, list):
        return [p for i, one in enumerate(value) for p in problems(schema[0], one, f"{path}[{i}]")] if isinstance(value, list) else [
            f"{path}: no list"]
    if not isinstance(schema, dict):
        right = isinstance(value, schema) and (schema is bool or not isinstance(value, bool))
        return [] if right else [f"{path}: {value!r} is of another type"]
    if not isinstance(value, dict):
        return [f"{path}: no table"]
    if TEXT in schema:
        return [f"{path}.{name}: no text" for name, one in value.items() if not (isinstance(name, str) and isinstance(one, str))]
    known = {name.lstrip("!"): one for name, one in schema.items()}
    return [*(f"{path}.{name}: no such field" for name in value if name not in known),
            *(f"{path}.{name[1:]}: missing" for name in schema if name[0] == "!" and name[1:] not in value),
            *(p for name, one in value.items() if name in known for p in problems(known[name], one, f"{path}.{name}"))]


def containers_of(recipe):
    """(those that run first, those that stay, volumes by name)"""
    body = recipe["spec"]["template"]["spec"] if "spec" in recipe else recipe["properties"]["template"]
    return body.get("initContainers", []), body["containers"], {one["name"]: one for one in body["volumes"]}


def mounts_of(one):
    return {mount.get("name", mount.get("volumeName")): mount["mountPath"] for mount in one.get("volumeMounts", [])}


def variables_of(one):
    return {variable["name"]: variable.get("value") for variable in one.get("env", [])}


def loose_ends(recipe):
    first, then, volumes = containers_of(recipe)
    secrets = {one["name"] for one in recipe.get("properties", {}).get("configuration", {}).get("secrets", [])}
    named = [item["secretRef"] for volume in volumes.values() for item in volume.get("secrets", [])]
    return [*(f"{one.get('name')}: there is no volume {name}" for one in first + then for name in mounts_of(one) if name not in volumes),
            *(f"there is no secret {name}" for name in named if name not in secrets)]


each_recipe = pytest.mark.parametrize("name", RECIPES)


@each_recipe
def test_the_platform_takes_a_recipe(name):
    assert problems(SCHEMAS[name], RECIPES[name]) + loose_ends(RECIPES[name]) == []


@pytest.mark.parametrize("old, new, said", [
    ("image: example.com", "imagee: example.com", "no such field"), ("containerPort: 8080", 'containerPort: "8080"', "another type"),
    ("serving.knative.dev/v1", "serving.knative.dev/v2", "is not serving.knative.dev/v1"), ("secretName: pillion-token", "optional: true",
                                                                                           "secretName: missing"),
    ("- name: pillion-token\n              mountPath", "- name: tokens\n              mountPath", "there is no volume tokens"),
    ('cpu: "1"', "cpu: 1", "no text")])
def test_a_mistake_in_a_recipe_is_found(old, new, said):
    text = (DEPLOY / "cloudrun" / "service.yaml").read_text()
    assert text.count(old) == 1
    recipe = yaml.safe_load(text.replace(old, new))
    found = problems(CLOUD_RUN, recipe) or loose_ends(recipe)
    assert any(said in problem for problem in found), found


def test_a_container_apps_processors_and_memory_are_a_pair_of_the_platform():
    """On the plan "Consumption": 0.25 of a processor and 0.5 GiB, or a multiple of that, up to 16 times."""
    first, then, _ = containers_of(RECIPES["azure-container-apps/app.yaml"])
    for group in (first, then):
        quarters = sum(one["resources"]["cpu"] for one in group) * 4
        assert quarters == int(quarters) and 1 <= quarters <= 16
        assert sum(float(one["resources"]["memory"].removesuffix("Gi")) for one in group) * 2 == quarters


# ---- And what happens then

SERVICE = """\
import http.server, os
def handle_request():
    return sum(i * i % 7 for i in range(200000))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = str(handle_request()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Handler).serve_forever()
"""
ANSWER = str(sum(i * i % 7 for i in range(200000)))


@pytest.fixture
def service(place, started, network):
    """service("cloudrun/service.yaml", server, token): a container as the recipe says, after those that run before it."""
    def start(name, server, token):
        first, (one,), volumes = containers_of(RECIPES[name])
        (place / "main.py").write_text(SERVICE)
        folders = {}
        for volume in volumes.values():
            folders[volume["name"]] = place / f"volume-{volume['name']}"
            folders[volume["name"]].mkdir()
            for item in volume.get("secret", {}).get("items", volume.get("secrets", [])):
                (folders[volume["name"]] / item["path"]).write_text(token)
        for before in first:
            assert "pillion" in before["image"]
            image = container.scratch(place / before["name"], place / "pillion")
            done = container.Container(image, ["/pillion", *before["args"]], profile="docker", mounts=[
                (folders[volume], path, "rw") for volume, path in mounts_of(before).items()]).finish()
            assert done.status == 0, done
        made = instructions(DEPLOY / Path(name).parent / "Dockerfile") if not first else {}
        words = [*one.get("command", made.get("ENTRYPOINT", [])), *one.get("args", made.get("CMD", []))]
        words = [{"python3": HOST, "/app/main.py": place / "main.py", "/usr/local/bin/pillion": place / "pillion"}.get(word, word)
                 for word in words]
        variables = {**variables_of(one), "PILLION_SERVER_HOST": server, "PORT": "8080"}
        return started(words, network, [(folders[volume], path, "ro") for volume, path in mounts_of(one).items()], **variables)
    return start


def asked_of(network):
    def ask():
        try:
            return urllib.request.urlopen("http://127.0.0.1:8080/").read().decode()
        except OSError:
            return None
    return network.inside(lambda: (ask(),))[0]


def used_below(pid):
    """CPU seconds of a process and all below it."""
    return sum(process.cpu_seconds(one) for one in [pid, *process.descendants_of(pid)] if process.stat(one))


@pytest.mark.root
@pytest.mark.parametrize("name, token, online", [
    ("cloudrun/service.yaml", TOKEN, True), ("cloudrun/service.yaml", "wrong", True), ("azure-container-apps/app.yaml", TOKEN, True),
    ("azure-container-apps/app.yaml", TOKEN, False)])
def test_a_service_answers_whatever_becomes_of_its_profiles(service, network, studio, name, token, online):
    """It is told to end as the platform does it, and ends by that signal. Its root is read-only, perf events are refused."""
    one = service(name, studio.url if online else NOWHERE, token)
    answer = process.until(lambda: asked_of(network), 30, lambda: one.process.err)
    first = one.pid()
    while used_below(first) < 0.6:
        assert asked_of(network) == answer == ANSWER
    one.signal(signal.SIGTERM)
    done = one.finish()
    assert done.status == 128 + signal.SIGTERM, done
    assert (counted(studio, "handle_request") > 0) == (online and token == TOKEN), done
    if token != TOKEN:
        assert "PILLION_TOKEN_FILE" in done.err or "Invalid" in done.err, done
    if online:
        assert studio.requests, done


GEN1 = """\
import threading, urllib.request
exec(open("/mnt/main.py").read().replace("http.server.ThreadingHTTPServer", "made = http.server.ThreadingHTTPServer").replace(
    ".serve_forever()", ""))
threading.Thread(target=made.serve_forever, daemon=True).start()
for _ in range(5):
    print(urllib.request.urlopen("http://127.0.0.1:8080/").read().decode())
"""


@pytest.mark.root
@pytest.mark.net
def test_a_service_starts_in_the_first_generations_sandbox(place):
    """gVisor, which refuses perf events, with no network but its own; the image's command line."""
    (place / "main.py").write_text(SERVICE)
    (place / "once.py").write_text(GEN1)
    made = instructions(DEPLOY / "cloudrun" / "Dockerfile")
    words = [{"/usr/local/bin/pillion": "/mnt/pillion"}.get(word, word) for word in made["ENTRYPOINT"]]
    (one,) = containers_of(RECIPES["cloudrun/service.yaml"])[1]
    variables = {**variables_of(one), "PILLION_TOKEN_FILE": "/nowhere", "PILLION_TOKEN": TOKEN, "PILLION_SERVER_HOST": NOWHERE}
    try:
        done = gvisor.run([*words, HOST, "/mnt/once.py"], mounts=[(place, "/mnt", "ro")],
                          environment=["LC_ALL=C.UTF-8", *(f"{name}={value}" for name, value in variables.items())])
    except gvisor.Unavailable as reason:
        pytest.skip(str(reason))
    assert (done.status, done.out) == (0, f"{ANSWER}\n" * 5), done
    assert "pillion" in done.err and "gVisor" in done.err, done


# ---- What the pages say

PAGES = ["azure-container-apps", "cloudrun", "dataflow", "lambda"]
TOOL = """\
#!/bin/sh
for word; do case $word in --yaml | service.yaml | *.zip) shown=$word ;; esac; done
echo "$0 ${shown-}"
"""


@pytest.mark.parametrize("name", PAGES)
def test_the_first_block_of_a_page_works_as_written(place, name):
    """With stand-ins for the platform's own tools; Python is this machine's."""
    folder = shutil.copytree(DEPLOY / name, place / "folder")
    shutil.copy2(place / "pillion", folder / "pillion")
    (place / "bin").mkdir()
    for tool in ("aws", "az", "docker", "gcloud", "zip"):
        (place / "bin" / tool).write_text(TOOL)
        (place / "bin" / tool).chmod(0o755)
    block = re.search(r"^```sh\n(.*?)^```", (folder / "README.md").read_text(), re.M | re.S).group(1).replace("\\\n", " ")
    lines = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    done = process.run(["sh", "-c", "set -e\n" + "\n".join(lines)], cwd=folder, env={**os.environ, "PATH": f"{place}/bin:/usr/bin:/bin"})
    assert lines and (done.status, done.err) == (0, "") and done.out, done


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_every_file_beside_it(name):
    page = (DEPLOY / name / "README.md").read_text()
    for path in (DEPLOY / name).iterdir():
        assert path.name == "README.md" or f"({path.name})" in page, path.name

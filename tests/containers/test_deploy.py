"""The recipes of deploy/: what they ask for exists, is allowed there, and works when runc does what they say."""
import copy
import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from lab import container, fargate, process, profiler, pystacks, pythons, root, service_model, tiers

pytestmark = pytest.mark.measures

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
RECIPES = {name: json.loads((DEPLOY / "fargate" / name).read_text()) for name in ("prefix.json", "scratch.json", "sidecar.json")}
EFS = json.loads((DEPLOY / "fargate" / "efs.json").read_text())
recipes = pytest.mark.parametrize("name", RECIPES)
PROFILER = "example.com/pillion:1"
MAIN = """\
def busy():
    total = 0
    while True:
        for i in range(50000):
            total += i * i % 7


busy()
"""


def with_files(definition):
    """The recipe that writes files instead, as its page says: pillion's words, a mount, a volume."""
    changed = copy.deepcopy(definition)
    (one,) = [one for one in changed["containerDefinitions"] if "-u" in one.get("entryPoint", []) + one["command"]]
    key = "entryPoint" if "-u" in one.get("entryPoint", []) else "command"
    at = one[key].index("-u")
    assert one[key][at:at + 3] == ["-u", "-S", "checkout"]
    one[key][at:at + 3] = EFS["words"]
    one.setdefault("mountPoints", []).extend(EFS["mountPoints"])
    changed.setdefault("volumes", []).extend(EFS["volumes"])
    return changed


# ---- What the service takes

@pytest.fixture(scope="module")
def model():
    try:
        return service_model.get("ecs")
    except root.Unreachable as reason:
        pytest.skip(str(reason))


@pytest.mark.net
@recipes
def test_the_service_knows_every_field_of_a_recipe(model, name):
    assert model.problems("RegisterTaskDefinition", RECIPES[name]) == []
    assert model.problems("RegisterTaskDefinition", with_files(RECIPES[name])) == []


@recipes
def test_fargate_takes_a_recipe(name):
    assert fargate.problems(RECIPES[name]) == []
    assert fargate.problems(with_files(RECIPES[name])) == []


def changed(definition, change):
    definition = copy.deepcopy(definition)
    change(definition, definition["containerDefinitions"][-1])
    return definition


@pytest.mark.net
@pytest.mark.parametrize("change, said", [
    (lambda d, c: c.update(cpus=1), "no such member"),
    (lambda d, c: c.update(cpu="512"), "wants integer"),
    (lambda d, c: d.update(pidMode="pod"), "is none of"),
    (lambda d, c: d.pop("family"), "family: missing"),
])
def test_the_model_refuses(model, change, said):
    found = model.problems("RegisterTaskDefinition", changed(RECIPES["sidecar.json"], change))
    assert len(found) == 1 and said in found[0], found


@pytest.mark.parametrize("change, said", [
    (lambda d, c: d.update(memory="512"), "there is no pair 1024, 512"),
    (lambda d, c: d.update(pidMode="host"), "pidMode: host"),
    (lambda d, c: c["secrets"][0].update(valueFrom="pillion"), "no secret of Secrets Manager"),
    (lambda d, c: c["environment"].append({"name": "PILLION_TOKEN", "value": "x"}), "PILLION_TOKEN is given twice"),
    (lambda d, c: c.update(privileged=True), "privileged"),
    (lambda d, c: c["linuxParameters"]["capabilities"]["add"].append("SYS_ADMIN"), "SYS_ADMIN cannot be added"),
    (lambda d, c: c.update(cpu=1024), "the containers ask for 1536 of 1024"),
    (lambda d, c: c["mountPoints"][0].update(sourceVolume="none"), "there is no volume none"),
    (lambda d, c: c.update(dependsOn=[{"containerName": "app", "condition": "START"}]), "cannot be started: app, pillion"),
    (lambda d, c: d.pop("executionRoleArn"), "executionRoleArn"),
    (lambda d, c: d["volumes"][0].update(host={"sourcePath": "/"}), "host is not for Fargate"),
    (lambda d, c: c.update(ulimits=[{"name": "memlock", "softLimit": 1, "hardLimit": 1}]), "memlock cannot be set"),
])
def test_fargate_refuses(change, said):
    found = fargate.problems(changed(with_files(RECIPES["sidecar.json"]), change))
    assert any(said in problem for problem in found), found


@recipes
def test_a_profiler_beside_the_application_has_the_weight_it_needs(name):
    """Kernels before 6.6 want a third of 1024 for each CPU that is busy, later ones a quarter of the target's weight; a
    command prefix is in the application's own group."""
    d = RECIPES[name]
    beside = [one for one in d["containerDefinitions"] if one["image"] == PROFILER and "install" not in one["command"]]
    assert bool(beside) == (d.get("pidMode") == "task")
    most = max([one.get("cpu", 0) for one in d["containerDefinitions"] if one not in beside])
    for one in beside:
        assert one["cpu"] >= 342 * max(int(d["cpu"]) / 1024, 1)
        assert one["cpu"] >= most / 4


@recipes
def test_a_recipe_leaves_time_for_the_last_window_and_survives_the_profiler(name):
    for one in RECIPES[name]["containerDefinitions"]:
        if one["image"] == PROFILER:
            assert one["essential"] is False
        assert one.get("stopTimeout", 30) >= 10


# ---- What happens then

@pytest.fixture
def place(workdir, pillion):
    """A folder with the profiler's image and an application's main.py."""
    if tiers.tool_missing("runc"):
        pytest.fail("runc is missing; run make setup")
    container.scratch(workdir / "pillion", pillion)
    (workdir / "app").mkdir()
    (workdir / "app" / "main.py").write_text(MAIN)
    return workdir


def instructions(path):
    """The instructions of a Dockerfile's last stage; exec forms as lists."""
    found = {}
    for line in path.read_text().replace("\\\n", " ").splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            found = {}
        if word.isupper():
            found[word] = json.loads(rest) if rest.startswith("[") else rest
    return found


def profilers_image(place):
    made = instructions(DEPLOY / "fargate" / "Dockerfile")
    assert (made["FROM"], made["COPY"]) == ("scratch", "pillion /pillion")
    return fargate.Image(place / "pillion", made["ENTRYPOINT"])


def python_image(place, mounts=()):
    try:
        python = pythons.get("trixie-python3.13")
    except pythons.Missing as reason:
        pytest.skip(str(reason))
    return fargate.Image(python.inside, called={"python3": [python.argv[-1]]}, environment=["LC_ALL=C.UTF-8"],
                         mounts=[(place / "app", "/app", "ro"), *mounts])


@pytest.fixture
def task(place, program):
    """task("x.json", {image: Image}) starts it, writing files: these say what was measured."""
    made = []

    def start(name, images):
        pause = container.scratch(place / "pause", program("act", "-static"))
        made.append(fargate.Task(with_files(RECIPES[name]), images, place / "volumes", (pause, ["/act", "wait", "600"])))
        made[0].start()
        return made[0]
    yield start
    for one in made:
        one.__exit__()


def has_used(seconds, one):
    """Until a container's processes have used so much CPU time."""
    first = one.pid()
    process.until(lambda: sum(process.cpu_seconds(pid) for pid in [first, *process.descendants_of(first)]
                              if process.stat(pid)) > seconds, 30, f"{seconds} s are used")


def python_share(session):
    stacks = pystacks.of_col(session)
    named = sum(s.count for s in stacks if [f.name for f in s.python][-2:] == ["<module>", "busy"])
    return named / max(sum(s.count for s in stacks if "python" in s.comm), 1)


def shares_of(pid):
    """The CPU weight of a process's group as the kernel has it; None where that is not version 1."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "cpu" in controllers.split(","):
            return int(Path(f"/sys/fs/cgroup/cpu{path}/cpu.shares").read_text())
    return None


@pytest.mark.root
@pytest.mark.net
def test_the_sidecar_reads_python_of_another_user(place, task):
    running = task("sidecar.json", {PROFILER: profilers_image(place), "example.com/checkout:1": python_image(place)})
    has_used(1.5, running.containers["app"])
    assert shares_of(running.containers["pillion"].pid()) in (512, None)
    assert shares_of(running.containers["app"].pid()) in (512, None)
    done = running.stop()
    assert done["pillion"].status == 0, done
    session = profiler.Session(done["pillion"], place / "volumes" / "profiles")
    assert python_share(session) > 0.8, (session.frames(), done)
    assert session.seconds(comm="python3.13") > 1, done
    said = " ".join(done["pillion"].err.split())
    assert "perf events refused (EPERM: seccomp filter); Fargate forbids changing it" in said
    assert "seccomp profile" not in said and "CAP_PERFMON" not in said, "nothing is advised that cannot be done there"
    assert done["app"].status == 128 + signal.SIGTERM, done


@pytest.mark.root
@pytest.mark.net
def test_the_command_prefix_reads_python_as_process_1_of_any_user(place, task):
    mounts = [(place / "pillion" / "pillion", "/usr/local/bin/pillion", "ro")]
    running = task("prefix.json", {"example.com/checkout-with-pillion:1": python_image(place, mounts)})
    has_used(1.5, running.containers["app"])
    done = running.stop()["app"]
    assert done.status == 128 + signal.SIGTERM, "the command's own end"
    session = profiler.Session(done, place / "volumes" / "profiles")
    assert python_share(session) > 0.8, (session.frames(), done)


@pytest.mark.root
def test_a_scratch_image_gets_the_profiler_from_a_volume(place, task, program):
    image = container.scratch(place / "server")
    shutil.copy2(program("act", "-static"), image / "server")
    running = task("scratch.json", {PROFILER: profilers_image(place), "example.com/checkout-scratch:1": fargate.Image(
        image, called={"/server": ["/server", "spin", "1", "6"]})})
    process.until(lambda: running.containers["app"].process.poll() is not None, 30)
    done = running.stop()
    assert done["pillion-install"].status == 0 and done["app"].status == 6, done
    session = profiler.Session(done["app"], place / "volumes" / "profiles")
    assert profiler.within(session.seconds(), 1, 0.1, 0.05), done
    assert session.share("[native, no perf]") > 0.9, session.frames()


# ---- Alpine

@pytest.fixture
def alpine(place):
    """What Alpine is for a program: busybox, musl, and a Python that was built with it."""
    try:
        python = pythons.musl()
    except pythons.Missing as reason:
        pytest.skip(str(reason))
    folder = root.busybox(place / "alpine")
    (folder / "lib").mkdir(exist_ok=True)
    shutil.copy2(Path("/lib/ld-musl-x86_64.so.1").resolve(), folder / "lib" / "ld-musl-x86_64.so.1")
    return fargate.Image(folder, called={"python3": ["/opt/python/python"]}, environment=["LC_ALL=C.UTF-8"], mounts=[
        (Path(python.argv[-1]).parent, "/opt/python", "ro"), (place / "app", "/app", "ro")])


def folder_for_all(path):
    path.mkdir()
    path.chmod(0o777)
    return path


@pytest.mark.root
@pytest.mark.net
def test_the_alpine_image_profiles_its_program(place, alpine):
    made = instructions(DEPLOY / "alpine" / "Dockerfile")
    assert made["FROM"].startswith("alpine:")
    profiles = folder_for_all(place / "profiles")
    program = made["ENTRYPOINT"][0]
    assert program in (DEPLOY / "alpine" / "Dockerfile").read_text().split("COPY pillion ")[1].split()[0]
    command = [w for word in made["ENTRYPOINT"] + made["CMD"] for w in alpine.called.get(word, [word])]
    running = container.Container(alpine.root, command, uid=int(made["USER"]), writable=True,
                                  environment=alpine.environment, mounts=[
                                      *alpine.mounts, (profiles, made["VOLUME"], "rw"),
                                      (place / "pillion" / "pillion", program, "ro")])
    try:
        has_used(1.5, running)
        running.signal(signal.SIGTERM)
        done = running.process.finish(30)
    finally:
        running.remove()
    assert done.status == 128 + signal.SIGTERM
    session = profiler.Session(done, profiles)
    assert python_share(session) > 0.8, (session.frames(), done)


RECORDER = """\
#!/usr/bin/python3 -S
import json, os, sys
json.dump(sys.argv[1:], open(os.environ["RECORD"], "w"))
"""


def tool(folder, name, text):
    """A program of that name, first in PATH: the environment to run with."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "RECORD": str(folder / "record")}


FLAGS = {"--rm", "--read-only"}


def engine(words):
    """`docker run ...` as (options, volumes, image and what follows)."""
    assert words[0] == "run"
    options, at = {}, 1
    while words[at].startswith("--"):
        takes = 1 if words[at] in FLAGS else 2
        options.setdefault(words[at], []).append(words[at + takes - 1])
        at += takes
    return options, words[at:]


@pytest.mark.root
@pytest.mark.net
def test_the_alpine_script_profiles_a_container_that_runs(place, alpine, run):
    environment = tool(place / "bin", "docker", RECORDER)
    done = run([DEPLOY / "alpine" / "run.sh", "web", "-d", "2"], cwd=place, env=environment)
    assert done.status == 0 and done.err == "", done
    options, words = engine(json.loads((place / "bin" / "record").read_text()))
    assert options["--pid"] == ["container:web"] and words[0] == PROFILER
    shares = int(options["--cpu-shares"][0])
    assert shares >= max(1024, 342 * os.cpu_count())
    mounts = [(*volume.split(":"), "rw") for volume in options["--volume"]]
    app = container.Container(alpine.root, ["/opt/python/python", "/app/main.py"], uid=1000, mounts=alpine.mounts)
    try:
        has_used(0.3, app)
        seen = container.Container(place / "pillion", [*profilers_image(place).entry_point, *words[1:]], pid_of=app.pid(),
                                   uid=int(options["--user"][0]), writable="--read-only" not in options, shares=shares,
                                   capabilities=container.CAPABILITIES + ["CAP_" + c for c in options["--cap-add"]],
                                   memory=int(options["--memory"][0].rstrip("m")) << 20, mounts=mounts).finish()
    finally:
        app.remove()
    assert seen.status == 0, seen
    session = profiler.Session(seen, place / "profiles")
    assert python_share(session) > 0.8, (session.frames(), seen)


def test_the_alpine_script_uploads_by_the_containers_network(place, run):
    environment = {**tool(place / "bin", "docker", RECORDER), "PILLION_TOKEN": "SECRET-1"}
    done = run([DEPLOY / "alpine" / "run.sh", "web", "-c", "-u", "-S", "checkout"], cwd=place, env=environment)
    options, words = engine(json.loads((place / "bin" / "record").read_text()))
    assert done.status == 0 and words[-4:] == ["-c", "-u", "-S", "checkout"], done
    assert options["--network"] == ["container:web"] and options["--env"] == ["PILLION_SERVER_HOST", "PILLION_TOKEN", "PILLION_BACKEND"]


OLD_ENGINE = RECORDER + """
if sys.argv[1] == "version":
    print("20.10.5+dfsg1")
elif "PERFMON" in sys.argv:
    sys.exit("invalid CapAdd: unknown capability: \\"CAP_PERFMON\\"")
"""


def test_the_alpine_script_works_where_the_engine_does_not_know_perfmon(place, run):
    done = run([DEPLOY / "alpine" / "run.sh", "web"], cwd=place, env=tool(place / "bin", "docker", OLD_ENGINE))
    options, words = engine(json.loads((place / "bin" / "record").read_text()))
    assert done.status == 0 and words[0] == PROFILER, done
    assert options["--cap-add"] == ["SYS_PTRACE"] and "older than Docker 23" in done.err, (options, done)


# ---- What the pages say

FAKE_AWS = """\
#!/usr/bin/python3
import json, sys
assert sys.argv[1:3] == ["ecs", "register-task-definition"], sys.argv
given = sys.argv[sys.argv.index("--cli-input-json") + 1].removeprefix("file://")
print(json.dumps({"taskDefinition": {"family": json.load(open(given))["family"], "revision": 1}}))
"""


@pytest.mark.parametrize("name", ["fargate", "alpine"])
def test_the_first_block_of_a_page_works_as_written(place, name, run):
    page = (DEPLOY / name / "README.md").read_text()
    block = re.search(r"^```sh\n(.*?)^```", page, re.M | re.S).group(1).replace("\\\n", " ")
    lines = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    assert lines
    tool(place / "bin", "docker", RECORDER)
    environment = tool(place / "bin", "aws", FAKE_AWS)
    folder = shutil.copytree(DEPLOY / name, place / name)
    done = run(["sh", "-c", "set -e\n" + "\n".join(lines)], cwd=folder, env=environment)
    assert done.status == 0, done


@pytest.mark.parametrize("name", ["fargate", "alpine"])
def test_a_page_names_every_file_beside_it(name):
    page = (DEPLOY / name / "README.md").read_text()
    for path in (DEPLOY / name).iterdir():
        assert path.name == "README.md" or f"({path.name})" in page, path.name


# ---- What the help says

def squeezed(text):
    """One blank where there are many, none within brackets: how JSON is laid out does not matter."""
    return re.sub(r"\s+", " ", re.sub(r"([\[{])\s+|\s+([\]}])", r"\1\2", text))


def test_the_help_about_fargate_has_the_fields_of_the_recipes(run, pillion):
    shown = squeezed(run([pillion, "help", "fargate"]).out)
    sidecar, prefix, scratch = (RECIPES[name] for name in ("sidecar.json", "prefix.json", "scratch.json"))
    beside = next(one for one in sidecar["containerDefinitions"] if one["image"] == PROFILER)
    install = next(one for one in scratch["containerDefinitions"] if one["image"] == PROFILER)
    app = next(one for one in scratch["containerDefinitions"] if one["image"] != PROFILER)
    fields = [({"pidMode": sidecar["pidMode"]}, ["pidMode"]), (beside, ["user", "cpu", "essential", "linuxParameters", "command"]),
              (prefix["containerDefinitions"][0], ["entryPoint", "command"]), (install, ["essential", "command"]),
              (app, ["dependsOn", "entryPoint"])]
    for one, names in fields:
        for name in names:
            assert squeezed(f'"{name}": {json.dumps(one[name])}') in shown, (name, shown)
    assert "COPY pillion /usr/local/bin/pillion" in shown


@pytest.mark.root
def test_the_help_about_fargate_has_the_words_of_the_doctor(place, run, pillion):
    said = container.Container(place / "pillion", ["/pillion", "doctor", "-o", "/out"], environment=[fargate.PLACE],
                               profile="docker").finish()
    line = "EPERM: seccomp filter; Fargate forbids changing it"
    assert line in squeezed(said.out) and line in run([pillion, "help", "fargate"]).out
    assert max(map(len, said.out.splitlines())) <= 80


def test_the_help_about_alpine_has_the_lines_of_its_files(run, pillion):
    shown = squeezed(run([pillion, "help", "alpine"]).out)
    made = instructions(DEPLOY / "alpine" / "Dockerfile")
    for word in ("ENTRYPOINT", "CMD"):
        assert squeezed(f"{word} {json.dumps(made[word])}") in shown, shown
    assert squeezed(f"ENTRYPOINT {json.dumps(made['ENTRYPOINT'])}") in squeezed(run([pillion, "help", "containers"]).out)
    assert (DEPLOY / "alpine" / "run.sh").exists() and "deploy/alpine/run.sh" in shown


def test_the_help_about_containers_asks_for_what_the_script_asks_for(run, pillion):
    shown = squeezed(run([pillion, "help", "containers"]).out)
    script = squeezed((DEPLOY / "alpine" / "run.sh").read_text().replace("\\\n", " "))
    for option in ("--user 0", "--cap-add SYS_PTRACE", "--cap-add PERFMON", "--cpu-shares", '--volume "$PWD/profiles:/profiles"'):
        assert option in shown and option in script, option

"""Uploads say where the profile comes from: the platform is asked in the background, and whatever it does delays nothing.

Each test has a machine of its own (lab/metadata_network.py): its maker's name, its link-local addresses, and no other network.
"""
import json
import os
import re
import signal
import time
from pathlib import Path

import pytest

from lab import metadata_network, process, profiler, webserver
from lab.metadata_network import ECS, LINK_LOCAL, Deaf, field, service
from lab.studio_server import Server

pytestmark = [pytest.mark.root, pytest.mark.measures]

ARN = "arn:aws:ecs:eu-west-1:111122223333:"
TASK = "7d2a1b0c9e8f4a5b6c7d8e9f0a1b2c3d"
IDENTITY = {"accountId": "111122223333", "architecture": "x86_64", "availabilityZone": "us-west-2c", "billingProducts": None,
            "imageId": "ami-0fedcba9876543210", "instanceId": "i-0123456789abcdef0", "instanceType": "m7i.2xlarge",
            "kernelId": None, "pendingTime": "2026-11-20T09:00:00Z", "privateIp": "10.158.112.84", "region": "us-west-2",
            "version": "2017-09-30"}
EC2_TOKEN, EC2_DOCUMENT = "/latest/api/token", "/latest/dynamic/instance-identity/document"
EC2 = {("PUT", EC2_TOKEN): "AQAEAL-token==", ("GET", EC2_DOCUMENT): json.dumps(IDENTITY),
       ("GET", "/latest/meta-data/instance-life-cycle"): "spot"}
GOOGLE = {("GET", f"/computeMetadata/v1/{name}"): value for name, value in {
    "project/project-id": "shop-prod", "instance/zone": "projects/987/zones/europe-west1-b", "instance/id": "4520031799277581759",
    "instance/name": "web-1", "instance/machine-type": "projects/987/machineTypes/n2-standard-4",
    "instance/image": "projects/debian-cloud/global/images/debian-12", "instance/scheduling/preemptible": "FALSE"}.items()}
FLAVOR = "Metadata-Flavor: Google"
CONTAINER = {"DockerId": f"{TASK}-1234567890", "Name": "app", "DockerName": "app", "Image": "registry.example/shop/api:1",
             "ImageID": "sha256:00", "Labels": {"com.amazonaws.ecs.task-arn": f"{ARN}task/prod/{TASK}"},
             "Limits": {"CPU": 256, "Memory": 384}, "ContainerARN": f"{ARN}container/prod/{TASK}/0f1e"}
TASK_ANSWER = {"Cluster": "prod", "TaskARN": f"{ARN}task/prod/{TASK}", "Family": "shop-api", "Revision": "17",
               "Limits": {"CPU": 0.25, "Memory": 512}, "AvailabilityZone": "eu-west-1b", "LaunchType": "FARGATE", "Containers": []}
AZURE = {("GET", "/metadata/instance?api-version=2021-02-01"): json.dumps({"compute": {
    "location": "westeurope", "name": "web_1", "resourceGroupName": "shop-rg", "resourceId": "/subscriptions/8d10/x",
    "subscriptionId": "8d10", "vmId": "02aab8a4-74ef", "vmScaleSetName": "", "vmSize": "Standard_D4s_v5", "zone": "2"}})}


def google_guard(head):
    return 200 if field(head, "Metadata-Flavor") == "Google" else 403


def ec2_guard(head):
    """As IMDSv2: a token for who asks rightly, everything else for who has it."""
    if head.startswith("PUT"):
        return 200 if field(head, "X-aws-ec2-metadata-token-ttl-seconds") and not field(head, "X-Forwarded-For") else 400
    return 200 if field(head, "X-aws-ec2-metadata-token") == "AQAEAL-token==" else 401


@pytest.fixture
def machine():
    with metadata_network.Machine() as made:
        yield made


@pytest.fixture
def studio(machine):
    with machine.inside(Server) as server:
        yield server


def environment(**more):
    """Without what would tell of the platform that the tests run on."""
    clear = ("ECS_", "AWS_", "K_", "CLOUD_RUN", "GCE_", "KUBERNETES_", "POD_", "CONTAINER_APP", "PIPELINE_")
    return {name: value for name, value in os.environ.items() if not name.startswith(clear) and "proxy" not in name.lower()} | more


def options(studio):
    return ["-u", "--backend", "studio", "--server-host", studio.url, "--token", "SECRET-1"]


def metadata_of(upload):
    return upload.header["metadata"]


def profiled(machine, studio, pillion, argv, env=None):
    """The metadata of a command's only upload, and what came of the command."""
    done = machine.run([pillion, *options(studio), "--launch", "init", "--", *argv], env=env or environment(), timeout=30)
    assert done.status == 0 and studio.wait(accepted=1), (done, studio.statuses)
    return metadata_of(studio.accepted[-1]), done


@pytest.fixture
def learnt(machine, studio, pillion, program):
    """learnt(handler, vendor, address) -> metadata of an upload, and the server that was asked."""
    def run(handler, vendor=None, address=LINK_LOCAL, **env):
        machine.vendor(vendor)
        with machine.inside(lambda: webserver.Server(handler, (address, 80))) as server:
            found, _ = profiled(machine, studio, pillion, [program("act"), "spin", "0.4"], environment(**env))
        return found, server
    return run


# ---- Each platform's answers

def test_a_task_on_fargate(learnt):
    """Firmware of Amazon, too, but no instance is asked; processors and memory are the task's."""
    routes = {("GET", "/v4/x"): json.dumps(CONTAINER), ("GET", "/v4/x/task"): json.dumps(TASK_ANSWER)}
    found, server = learnt(service(routes), "Amazon EC2", ECS, ECS_CONTAINER_METADATA_URI_V4=f"http://{ECS}/v4/x",
                           AWS_EXECUTION_ENV="AWS_ECS_FARGATE")
    cloud = found["cloud_info"]
    assert found["cloud_provider"] == "AWS"
    assert cloud["execution_env"] == "AWS_ECS_FARGATE" and cloud["region"] == "eu-west-1" and cloud["zone"] == "eu-west-1b"
    assert cloud["container_arn"] == CONTAINER["ContainerARN"] and cloud["task_arn"] == TASK_ANSWER["TaskARN"]
    assert cloud["cluster_arn"] == f"{ARN}cluster/prod" and cloud["account_id"] == "111122223333"
    assert (cloud["task_family"], cloud["task_revision"], cloud["container_name"]) == ("shop-api", "17", "app")
    assert (found["processors"], found["memory_capacity_mb"]) == (1, 512)
    assert len(server.requests) == 2


def test_a_container_of_ecs_version_3(learnt):
    routes = {("GET", "/v3/x"): json.dumps(CONTAINER | {"ContainerARN": None}), ("GET", "/v3/x/task"): json.dumps(TASK_ANSWER)}
    found, _ = learnt(service(routes), None, ECS, ECS_CONTAINER_METADATA_URI=f"http://{ECS}/v3/x")
    assert found["cloud_provider"] == "AWS" and found["cloud_info"]["task_arn"] == TASK_ANSWER["TaskARN"]


def test_an_instance_of_ec2(learnt):
    found, server = learnt(service(EC2, guard=ec2_guard), "Amazon EC2")
    assert found["cloud_provider"] == "AWS"
    wanted = {"region": "us-west-2", "zone": "us-west-2c", "instance_type": "m7i.2xlarge", "life_cycle": "spot",
              "account_id": "111122223333", "image_id": "ami-0fedcba9876543210", "instance_id": "i-0123456789abcdef0"}
    assert wanted.items() <= found["cloud_info"].items()
    assert server.requests[0].startswith(f"PUT {EC2_TOKEN} ") and server.connections == 1
    assert "AQAEAL" not in json.dumps(found)


def test_a_machine_of_google(learnt):
    found, server = learnt(service(GOOGLE, FLAVOR, guard=google_guard), "Google")
    assert found["cloud_provider"] == "GCP"
    wanted = {"region": "europe-west1", "zone": "europe-west1-b", "instance_type": "n2-standard-4", "name": "web-1",
              "instance_id": "4520031799277581759", "project_id": "shop-prod", "preemptible": "false"}
    assert wanted.items() <= found["cloud_info"].items()
    assert not any("recursive" in head or "service-accounts" in head for head in server.requests)


def test_a_node_of_gke_and_its_pod(learnt):
    routes = GOOGLE | {("GET", "/computeMetadata/v1/instance/attributes/cluster-name"): "prod-eu"}
    found, _ = learnt(service(routes, FLAVOR, guard=google_guard), "Google", KUBERNETES_SERVICE_HOST="10.96.0.1", POD_NAME="shop-7f9c",
                      POD_NAMESPACE="prod", NODE_NAME="node-3")
    wanted = {"cluster_name": "prod-eu", "pod_name": "shop-7f9c", "pod_namespace": "prod", "node_name": "node-3"}
    assert wanted.items() <= found["cloud_info"].items()
    assert found["run_mode"] == "k8s"


def test_a_worker_of_dataflow_and_a_service_of_cloud_run(learnt, studio):
    routes = GOOGLE | {("GET", "/computeMetadata/v1/instance/attributes/job_id"): "2026-11-20_02_11_09-12"}
    found, _ = learnt(service(routes, FLAVOR, guard=google_guard), "Google")
    assert found["cloud_info"]["dataflow_job_id"] == "2026-11-20_02_11_09-12"
    studio.accepted.clear()
    routes = {key: GOOGLE[key] for key in GOOGLE if "project-id" in key[1] or "zone" in key[1]}
    routes |= {("GET", "/computeMetadata/v1/instance/id"): "00f4a1"}
    found, _ = learnt(service(routes, FLAVOR, guard=google_guard), None, K_SERVICE="web", K_REVISION="web-42")
    assert found["cloud_provider"] == "GCP"
    assert {"function_name": "web", "instance_id": "00f4a1"}.items() <= found["cloud_info"].items()


def test_a_machine_of_azure(learnt):
    found, _ = learnt(service(AZURE, guard=lambda head: 200 if field(head, "Metadata") == "true" else 400), "Microsoft Corporation")
    assert found["cloud_provider"] == "Azure"
    wanted = {"region": "westeurope", "zone": "2", "instance_type": "Standard_D4s_v5", "subscription_id": "8d10", "name": "web_1",
              "resource_group_name": "shop-rg", "resource_id": "/subscriptions/8d10/x", "instance_id": "02aab8a4-74ef"}
    assert wanted.items() <= found["cloud_info"].items()


def test_what_is_learnt_late_is_in_the_next_window(machine, studio, pillion):
    """Windows before have no fact of it, one after has; nothing waits."""
    machine.vendor("Amazon EC2")

    def late(c):
        time.sleep(0.5)
        service(EC2, guard=ec2_guard)(c)

    target = process.start(["sleep", "60"])
    with machine.inside(lambda: webserver.Server(late, (LINK_LOCAL, 80))) as server:
        started = machine.start([pillion, "-p", target.pid, "-c", "-d", 600, *options(studio)], env=environment())
        process.until(lambda: " profiles pid " in started.err, 10, lambda: started.err)
        for count in (1, 2):
            started.signal(signal.SIGUSR1)
            assert studio.wait(accepted=count), started.err
            process.until(lambda: len(server.requests) == 3, 10, "the instance was asked")
            time.sleep(1 if count == 1 else 0)  # until it has read the answer as well
        started.signal(signal.SIGTERM)
        started.finish(20)
        target.end()
    providers = [metadata_of(upload)["cloud_provider"] for upload in studio.accepted]
    assert providers == sorted(providers, reverse=True) and set(providers[1:]) == {"AWS"}, providers


# ---- Services that are not there, are slow, or lie

def silent(c):
    c.hold()


def huge(c):
    """More than is kept, of what would be right."""
    service({key: value + " " * 300000 for key, value in EC2.items()}, guard=ec2_guard)(c)


def cut(c):
    while (request := c.request()) is not None:
        if request[0].startswith("PUT"):
            c.say(200, EC2["PUT", EC2_TOKEN])
        else:
            body = EC2["GET", EC2_DOCUMENT]
            c.send(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body[:-9]}")
            return


def cut_word(c):
    """A project's name that goes on."""
    while c.request():
        c.send("HTTP/1.1 200 OK\r\nMetadata-Flavor: Google\r\nContent-Length: 9\r\n\r\nshop")
        return


def redirecting(c):
    while c.request():
        c.say(307, "", "Location: http://127.0.0.1:8888/latest")


BAD = {
    "absent": ("Amazon EC2", None),
    "deaf": ("Amazon EC2", Deaf),
    "silent": ("Amazon EC2", silent),
    "a-page": ("Amazon EC2", webserver.answers(200, "<html>Welcome to the hotel</html>")),
    "other-json": ("Microsoft Corporation", webserver.answers(200, '{"compute": {"name": 5}}')),
    "errors": ("Amazon EC2", webserver.answers(500, "no")),
    "huge": ("Amazon EC2", huge),
    "cut": ("Amazon EC2", cut),
    "cut-word": ("Google", cut_word),
    "no-flavor": ("Google", service(GOOGLE)),
    "wrong-flavor": ("Google", service(GOOGLE, "Metadata-Flavor: Acme")),
    "redirecting": ("Amazon EC2", redirecting),
}


class Command:
    """A command that says when it began; how long it was until then, and until all was over."""

    def __init__(self, machine, studio, pillion, env, then="exit"):
        begin = time.time()
        found, done = profiled(machine, studio, pillion, ["sh", "-c", f"date +%s.%N; {then}"], env)
        studio.accepted.clear()
        self.metadata, self.start, self.total = found, float(done.out) - begin, done.seconds


def best(runs):
    return min(run.start for run in runs), min(run.total for run in runs)


def test_whatever_it_does_nothing_waits_and_nothing_is_believed(machine, studio, pillion):
    """Start-up and end take as long as where nobody is asked; a proxy and what redirects lead to hear nothing."""
    with machine.inside(lambda: webserver.Server(webserver.answers(200, "x"))) as proxy, \
            machine.inside(lambda: webserver.Server(webserver.answers(200, "x"), ("127.0.0.1", 8888))) as elsewhere:
        env = environment(http_proxy=proxy.url, HTTP_PROXY=proxy.url, all_proxy=proxy.url)
        machine.vendor("QEMU")
        plain = best([Command(machine, studio, pillion, env) for _ in range(3)])
        figures = {"nobody asked": plain}
        for name, (vendor, handler) in BAD.items():
            machine.vendor(vendor)
            make = {None: lambda: webserver.Server(silent, ("127.0.0.1", 0)), Deaf: lambda: Deaf((LINK_LOCAL, 80))}
            with machine.inside(make.get(handler, lambda: webserver.Server(handler, (LINK_LOCAL, 80)))) as server:
                runs = [Command(machine, studio, pillion, env) for _ in range(2)]
                figures[name] = best(runs)
                runs.append(Command(machine, studio, pillion, env, "sleep 0.3"))  # time to hear what is said
                assert handler in (None, Deaf) or server.connections >= 1, name
            assert {run.metadata["cloud_provider"] for run in runs} == {"Unknown"}, name
            assert all("instance_id" not in run.metadata.get("cloud_info", {}) for run in runs), name
        for name, (start, total) in figures.items():
            print(f"{name}: the command begins after {start * 1000:.0f} ms, all is over after {total * 1000:.0f} ms")
        # The patience with a platform is 2 s, with a connection 1 s.
        assert max(start for start, _ in figures.values()) < plain[0] + 0.7, figures
        assert max(total for _, total in figures.values()) < plain[1] + 0.7, figures
        assert proxy.connections == elsewhere.connections == 0


def test_without_a_sign_nobody_is_asked(learnt):
    """A machine of another maker, and a region in the environment: there could be somebody, but nothing says so."""
    found, server = learnt(service(EC2, guard=ec2_guard), "QEMU", AWS_REGION="eu-west-1")
    assert found["cloud_provider"] == "Unknown" and server.connections == 0


# ---- What the container may use

@pytest.fixture
def group():
    """A control group of version 1 or 2 with half a processor and 64 MiB; its file for processes of each hierarchy."""
    name, made = f"pillion-test-{os.getpid()}", []
    limits = {"cpu": ("cpu", "cpu.cfs_quota_us", "50000"), "memory": ("memory", "memory.limit_in_bytes", str(64 << 20))}
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        limits = {"cpu": ("", "cpu.max", "50000 100000"), "memory": ("", "memory.max", str(64 << 20))}
    try:
        for folder, file, text in limits.values():
            path = Path("/sys/fs/cgroup", folder, name)
            if path not in made:
                path.mkdir()
                made.append(path)
            (path / file).write_text(text)
        yield [path / "cgroup.procs" for path in made]
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    finally:
        for path in made:
            for _ in range(50):
                try:
                    path.rmdir()
                    break
                except OSError:
                    time.sleep(0.05)


def test_processors_and_memory_are_the_containers(machine, studio, pillion, group):
    enter = "for file in %s; do echo $$ >$file; done; exec \"$@\"" % " ".join(str(path) for path in group)
    argv = ["sh", "-c", enter, "sh", pillion, *options(studio), "--launch", "init", "--", "true"]
    done = machine.run(argv, env=environment())
    assert done.status == 0 and studio.wait(accepted=1), done
    found = metadata_of(studio.accepted[0])
    assert (found["processors"], found["memory_capacity_mb"]) == (1, 64)


def test_in_a_container_with_a_limit_the_profiler_outweighs_what_fills_it(pillion, program, workdir, group):
    """The kernel counts oom_score_adj in whole thousandths of the limit: up to 999 pages of it are lost. The profiler counts
    as that much more, and says what it really has."""
    enter = "for file in %s; do echo $$ >$file; done; exec \"$@\"" % " ".join(str(path) for path in group)
    started = process.start(["sh", "-c", enter, "sh", pillion, "-d", "1", "-o", workdir, "--launch", "init", "--", program("act"), "spin", "2"])
    found = profiler.find(started, pillion)
    rows = {}

    def shared():
        lines = Path(f"/proc/{found}/status").read_text().splitlines()
        rows.update((line.split(":")[0], int(line.split()[1])) for line in lines if line.startswith(("Rss", "VmRSS")))
        return rows["RssShmem"] >= 1000 * 4
    process.until(shared, 10, "it counts as more")
    done = started.finish()
    said = int(re.search(r"own=[0-9.]+s/([0-9]+)MB", done.err).group(1))
    assert said <= rows["VmRSS"] / 1024 - 3, (said, rows)

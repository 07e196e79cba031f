"""Catchers read a thread's memory while it stands still: what they call proven is true, and what they cannot prove
they say.

A program counts in a register and in memory; lab/catching.c, linked with the product's own objects, catches its samples.
The count in memory less the register in the sample is what the thread went on in between. Whatever the machine
does meanwhile, what is proven must be right; how many are proven is asserted only where the machine is idle enough, and
printed always.
"""
import json
import os
import platform
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab import linked, process, profiler, tiers

QUIET = 0.5  # runnable threads of others per CPU, at most, for shares to mean something
USED = 0.25  # of each CPU's time, by others while it is measured
CGROUPS = Path("/sys/fs/cgroup")


@pytest.fixture(scope="session")
def catching(repository, out, arch):
    """lab/catching.c and the product's objects, as the product is linked."""
    listed, specs = out / arch / "objects.list", out / arch / "vendor" / "lib" / "musl-gcc.specs"
    if not listed.exists() or not specs.exists():
        pytest.fail(f"{listed} is missing; run make", pytrace=False)
    if arch != platform.machine():
        pytest.skip(f"the product is built for {arch}")
    objects = [name for name in listed.read_text().split() if not name.endswith("/obj/main.o")]
    target = out / arch / "catching"
    archives = [specs.with_name(f"lib{name}.a") for name in linked.ARCHIVES]
    done = subprocess.run(["gcc", f"-specs={specs}", "-std=gnu11", "-D_GNU_SOURCE=", "-Isrc", "-Wall", "-Wextra", "-Werror", "-g",
                    "-O2", "-fno-pie", "-static", "-no-pie", "-o", target, "-Wl,--wrap=catch_prove",
                    "tests/lab/catching.c", *objects, *archives], cwd=repository, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        pytest.fail(f"it does not link: {done.stderr[-1000:]}", pytrace=False)
    return target


@pytest.fixture
def lab(catching, program, workdir, request):
    return Lab(catching, program, workdir, request)


def ticks():
    """(all, idle) of all CPUs."""
    told = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(told), told[3] + told[4]


def others_running(seconds=0.5):
    """Runnable threads beside our own, on average."""
    seen = []
    for _ in range(int(seconds / 0.05)):
        seen.append(int(Path("/proc/loadavg").read_text().split()[3].split("/")[0]) - 1)
        time.sleep(0.05)
    return sum(seen) / len(seen)


class Result(dict):
    def share(self, name, of="samples"):
        return self[name] / max(self[of], 1)

    @property
    def wrong(self):
        return self["proven"] - self["proven_still"] if self["read"] else 0

    @property
    def still(self):
        return self.share("still", "read")

    def __str__(self):
        verdicts = ", ".join(f"{name} {100 * self.share(name):.1f} %" for name in (
            "proven", "late", "other_cpu", "long", "moved", "asleep", "not_preempted", "unread") if self[name])
        cpus = "; ".join(f"{c['wakes']} wakes{', starved' if c['starved'] else ''}{', given up' if c['given_up'] else ''}"
                         for c in self["cpus"] if c["wakes"] > 20)
        return (f"{self['samples']} samples, still {100 * self.still:.1f} %, {verdicts}, wrong {self.wrong} "
                f"(worst {self['worst']}); {cpus}; {self['trouble']}")


class Lab:
    """Everything is copied to where any uid may run it."""

    def __init__(self, catching, program, workdir, request):
        self.workdir, self.request = workdir, request
        self.program = {name: self.copy(program(name, "-pthread")) for name in ("counter", "burst")}
        self.catching = self.copy(catching)
        self.busy = others_running() / os.cpu_count()

    def copy(self, path):
        target = self.workdir / Path(path).name
        target.write_bytes(Path(path).read_bytes())
        target.chmod(0o755)
        return target

    @property
    def quiet(self):
        return self.busy <= QUIET

    @contextmanager
    def running(self, *argv, prefix=()):
        """A program that counts; its lines."""
        started = process.start([*prefix, self.program[argv[0]], *argv[1:]])
        try:
            process.until(lambda: "ready" in started.out, 10, f"{argv[0]} counts")
            yield started
        finally:
            started.end()

    def catch(self, started, seconds=2.5, *options, prefix=()):
        lines = started.out.encode().replace(b"ready\n", b"")
        done = process.run([*prefix, self.catching, started.pid, seconds, *options], stdin=lines, timeout=60 + seconds)
        assert done.status == 0 and done.out, done
        result = Result(json.loads(done.out))
        if "error" in result:
            pytest.skip(f"cannot be caught here: {result['error']}")
        print(f"\n  {self.request.node.name}: {self.busy:.1f} others per CPU, load {os.getloadavg()[0]:.1f}: {result}")
        return result

    def run(self, *argv, seconds=2.5, options=(), prefix=(), target_prefix=()):
        with self.running(argv[0], str(seconds + 20), *argv[1:], prefix=target_prefix) as started:
            return self.catch(started, seconds, *options, prefix=prefix)

    def proves(self, share, least, *argv, own=1, **how):
        """The first sound run of three with that share proven; any run where others want the CPUs. `own`: threads of ours.

        A host that takes a CPU away for some milliseconds makes a reader late, and shows in no load here. Nothing makes
        a share larger than it is.
        """
        for left in (2, 1, 0):
            all_before, idle_before = ticks()
            result = self.run(*argv, **how)
            sound(result, least)
            all_after, idle_after = ticks()
            used = (1 - (idle_after - idle_before) / (all_after - all_before)) * os.cpu_count()
            if not self.quiet or used - own > USED * os.cpu_count() or result.share("proven") >= share:
                return result
            assert left, f"not {share} proven in three runs: {result}"


def nobody(*more):
    return [*(profiler.as_nobody() if os.geteuid() == 0 else []), *more]


def sound(result, least=1, lost=0.1):
    """What holds whatever else runs here. `lost`: the share that may be, where a late round of the sampler is too late."""
    assert result.wrong == 0 and result["deep_wrong"] == 0, f"{result}; {result['wrongs']}"
    assert result["samples"] >= least, str(result)
    assert sum(c["lost"] for c in result["cpus"]) <= lost * result["samples"], str(result)


def test_a_counting_thread_stands_still(lab):
    """As an ordinary user, without any right."""
    result = lab.proves(0.95, 100, "counter", prefix=nobody(), target_prefix=nobody())
    assert result["others"] == 0 and not result["trouble"].startswith("1 of")
    if lab.quiet:
        assert result.still >= 0.99, str(result)


def test_two_hogs_beside_it(lab):
    hogs = [process.start([lab.program["counter"], "90"]) for _ in range(2)]
    try:
        lab.proves(0.9, 50, "counter", own=3, prefix=nobody(), target_prefix=nobody())
    finally:
        for hog in hogs:
            hog.end()


def test_more_threads_than_cpus(lab):
    sound(lab.run("counter", str(2 * os.cpu_count()), prefix=nobody(), target_prefix=nobody()), 100)


@pytest.mark.root
def test_with_all_rights(lab):
    lab.proves(0.8, 100, "counter", options=["--kernel"])


@pytest.mark.parametrize("busy", [10, 30, 100])
def test_a_thread_that_sleeps_often(lab, busy):
    """Freshly woken it may run on and sleep by itself: on the right CPU, soon after the sample, and elsewhere."""
    lab.proves(0.8, 30, "burst", str(busy), "200", seconds=5, prefix=nobody(), target_prefix=nobody(),
               options=["--hz", "997"])


def test_sleeps_as_short_as_can_be(lab):
    sound(lab.run("burst", "10", "1", seconds=5, prefix=nobody(), target_prefix=nobody()), 30)


def test_a_reader_that_starts_as_batch(lab):
    """A container may inherit that policy, which never preempts: it is set back."""
    missing = tiers.tool_missing("chrt")
    if missing:
        pytest.skip(missing)
    lab.proves(0.95, 100, "counter", prefix=nobody("chrt", "-b", "0"), target_prefix=nobody())


@pytest.mark.root
def test_a_favoured_thread(lab):
    result = lab.run("counter", prefix=nobody(), target_prefix=["nice", "-n", "-10", *nobody()])
    sound(result, 50)
    assert "nice value -10" in result["trouble"]


@pytest.mark.root
def test_a_realtime_thread_is_left_alone(lab):
    missing = tiers.tool_missing("chrt")
    if missing or subprocess.run(["chrt", "-f", "1", "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip(missing or "realtime policies are refused here")
    result = lab.run("counter", prefix=nobody(), target_prefix=["chrt", "-f", "1", *nobody()])
    assert result["unread"] == result["samples"] and result["read"] == 0, str(result)
    assert "realtime policy" in result["trouble"]


def test_where_binding_is_refused(lab, refuse):
    lab.copy(refuse)
    result = lab.run("counter", target_prefix=nobody(),
                     prefix=nobody(lab.workdir / "refuse", "EPERM", "sched_setaffinity", "--"))
    sound(result, 50)
    assert "not allowed to the profiler" in result["trouble"]
    assert not any(c["bound"] for c in result["cpus"])


@contextmanager
def cgroups(controller, *names, **settings):
    """Groups of one controller, version 1 or 2, with a setting each; their folders."""
    first = CGROUPS / controller
    root = first if (first / "tasks").exists() else CGROUPS
    made = []
    try:
        for name in names:
            folder = root / f"catch-{name}-{os.getpid()}"
            try:
                folder.mkdir()
                made.append(folder)
                for file, value in settings[name].items():
                    if (folder / file).exists():
                        (folder / file).write_text(value)
            except OSError as error:
                pytest.skip(f"no {controller} groups can be made here: {error}")
        yield made
    finally:
        for folder in made:
            for _ in range(100):
                try:
                    folder.rmdir()
                    break
                except OSError:
                    time.sleep(0.02)


def inside(folder):
    """Runs the rest of a command line in a group."""
    return ["sh", "-c", f'echo $$ > {folder}/cgroup.procs && exec "$@"', "sh"]


@pytest.mark.root
def test_a_reader_without_weight(lab):
    """The catcher rarely gets to run in time, says so, and proves nothing wrong."""
    weight = {"reader": {"cpu.shares": "2", "cpu.weight": "1"}, "target": {"cpu.shares": "1024", "cpu.weight": "100"}}
    with cgroups("cpu", "reader", "target", **weight) as (reader, target):
        if not any((reader / name).exists() for name in ("cpu.shares", "cpu.weight")):
            pytest.skip("no weights in cpu groups here")
        result = lab.run("counter", str(os.cpu_count()), seconds=10, prefix=inside(reader) + nobody(),
                         target_prefix=inside(target) + nobody())
    sound(result, lost=1)  # what is lost is the sampler's: it has as little weight
    assert result.share("proven") <= 0.2, str(result)
    assert "late" in result["trouble"] or "given up" in result["trouble"], str(result)


@pytest.mark.root
def test_a_reader_of_equal_weight(lab):
    weight = {"reader": {"cpu.shares": "1024"}, "target": {"cpu.shares": "1024"}}
    with cgroups("cpu", "reader", "target", **weight) as (reader, target):
        lab.proves(0.95, 50, "counter", prefix=inside(reader) + nobody(), target_prefix=inside(target) + nobody())


@pytest.mark.root
def test_a_reader_confined_to_another_cpu(lab):
    if os.cpu_count() < 2:
        pytest.skip("wants two CPUs")
    memory = {"cpuset.mems": "0"}
    sets = {"reader": {"cpuset.cpus": "1", **memory}, "target": {"cpuset.cpus": "0", **memory}}
    with cgroups("cpuset", "reader", "target", **sets) as (reader, target):
        if not (reader / "cpuset.cpus").exists():
            pytest.skip("no cpuset groups here")
        result = lab.run("counter", prefix=inside(reader) + nobody(), target_prefix=inside(target) + nobody())
    sound(result, 50)
    assert result["proven"] == 0 and result["other_cpu"] > 0, str(result)
    assert "not allowed to the profiler" in result["trouble"]


@pytest.mark.parametrize("stack", [8192, 64512])
def test_a_deep_native_stack(lab, stack):
    """No runtime: what stands beyond the copy is read upwards and is what stands there."""
    result = lab.run("counter", "1", "200", seconds=4, prefix=nobody(), target_prefix=nobody(),
                     options=["--deep", "--hz", "99", "--stack", str(stack)])
    sound(result, 20)
    assert result["deep_full"] >= 0.8 * result["samples"], str(result)
    assert result["deep_bytes"] / max(result["deep_full"], 1) >= 16 * 1024, str(result)


def test_a_process_that_ends(lab):
    """Its last records come through, and nothing is read of it any more."""
    with lab.running("counter", "2", prefix=nobody()) as started:
        result = lab.catch(started, 4, prefix=nobody())
    sound(result, 50)
    assert result["others"] >= 1  # its end

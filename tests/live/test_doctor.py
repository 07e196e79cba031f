"""The doctor's verdicts are the kernel's: each gate is closed in turn, an independent program makes the same attempts,
and with the printed change the line is gone."""
import json
import os
import subprocess
import types

import pytest

from lab import process, profiler, terminal

pytestmark = [pytest.mark.root, pytest.mark.measures]
UID = profiler.NOBODY
CPUS = os.sysconf("SC_NPROCESSORS_ONLN")
PYTHON = ["/usr/bin/python3", "-S", "-E"]


@pytest.fixture
def place(workdir, pillion, program):
    place = types.SimpleNamespace(pillion=profiler.copy(pillion, workdir), act=workdir / "act",
                                  attempts=workdir / "attempts", folder=workdir)
    place.act.write_bytes(program("act").read_bytes())
    place.act.chmod(0o755)
    place.attempts.write_bytes(program("attempts", "-static").read_bytes())
    place.attempts.chmod(0o755)
    workdir.chmod(0o777)
    return place


class Answer:
    """What the doctor says as JSON."""

    def __init__(self, done):
        self.done = done
        assert done.err == "" and done.status in (0, 1), done
        self.all = json.loads(done.out)
        assert done.status == (0 if self.all["can_profile"] else 1), done
        self.mechanisms = {m["name"]: m for m in self.all["mechanisms"]}

    def __getitem__(self, name):
        return self.mechanisms[name]

    @property
    def remedies(self):
        return {m["remedy"] for m in [*self.all["mechanisms"], *self.all["processes"]] if m["remedy"]}


def ask(place, prefix, *arguments, **more):
    return Answer(process.run([*prefix, place.pillion, "doctor", "--json", *arguments], cwd=place.folder, **more))


def attempts(place, prefix, pid):
    done = process.run([*prefix, place.attempts, pid], cwd=place.folder)
    assert done.status == 0, done
    return json.loads(done.out)


def same_as_the_kernel(place, prefix, pid, *arguments, untried=()):
    """The doctor's answer about a process, each line of which says what an independent attempt said."""
    answer, truth = ask(place, prefix, "-p", pid, *arguments), attempts(place, prefix, pid)
    for name, error in truth.items():
        line = answer[name]
        if line["state"] == "untried":
            assert line["errno"] is None
        else:
            assert line["errno"] == error, (name, line, truth)
            assert line["works"] == (error is None), (name, line)
    return answer


def gone(before, after, name):
    """The line that had a remedy before works now, and nothing advises that any more."""
    assert before[name]["remedy"] and after[name]["state"] == "ok", (before[name], after[name])
    assert before[name]["remedy"] not in after.remedies


@pytest.fixture
def target(place):
    """target(prefix, …): a process that waits, below `prefix`."""
    started = []

    def start(*prefix, command=None):
        one = process.start([*prefix, *(command or [place.act, "wait", "600"])])
        started.append(one)
        process.until(lambda: os.readlink(f"/proc/{one.pid}/exe") in (str(place.act), "/usr/bin/python3", os.path.realpath(
            "/usr/bin/python3")), 20, "it runs")
        return one.pid
    yield start
    for one in started:
        one.end()


def nobody(*argv):
    return profiler.as_nobody(*argv)


# ---- Filters: each call that a profile needs, refused by each errno that engines use

@pytest.mark.parametrize("call, error, mechanism, gate", [
    ("perf_event_open", "EPERM", "perf_events", "seccomp"),
    ("perf_event_open", "ENOSYS", "perf_events", "seccomp"),
    ("perf_event_open", "EACCES", "perf_events", "module"),
    ("perf_event_open", "ENODEV", "perf_events", "gvisor"),
    ("perf_event_open", "EINVAL", "perf_events", "kernel"),
    ("perf_event_open", "E2BIG", "perf_events", "kernel"),
    ("perf_event_open", "EMFILE", "perf_events", "nofile"),
    ("process_vm_readv", "EPERM", "process_vm_readv", "seccomp"),
    ("process_vm_readv", "ENOSYS", "process_vm_readv", "seccomp"),
    ("sched_setaffinity", "EPERM", "affinity", "seccomp"),
])
def test_a_filter_is_named_and_without_it_the_line_is_gone(place, target, refuse, call, error, mechanism, gate):
    pid = target(*nobody())
    before = same_as_the_kernel(place, profiler.paranoid(2, *nobody(refuse, error, call, "--")), pid)
    assert (before[mechanism]["gate"], before[mechanism]["errno"]) == (gate, error), before[mechanism]
    if call == "process_vm_readv":
        assert before["proc_mem"]["works"]
    gone(before, same_as_the_kernel(place, profiler.paranoid(2, *nobody()), pid), mechanism)


def test_a_slice_that_is_refused_is_named(place, target, refuse):
    pid = target(*nobody())
    before = ask(place, nobody(refuse, "EPERM", "sched_setattr", "--"), "-p", pid)
    assert (before["policy"]["state"], before["policy"]["gate"]) == ("partial", "seccomp"), before["policy"]
    gone(before, ask(place, nobody(), "-p", pid), "policy")


# ---- The paranoid level

def test_paranoid_3_is_named_and_at_2_the_line_is_gone(place, target, refuse):
    """Debian's level 3 as a program sees it: the file says 3 and the call answers EACCES."""
    pid = target(*nobody())
    before = same_as_the_kernel(place, profiler.paranoid(3, *nobody(refuse, "EACCES", "perf_event_open", "--")), pid)
    assert before["perf_events"]["gate"] == "paranoid" and "is 3" in before["perf_events"]["detail"]
    gone(before, same_as_the_kernel(place, profiler.paranoid(2, *nobody()), pid), "perf_events")


def test_kernel_code_without_the_right_is_one_line_and_with_it_none(place, target):
    pid = target()
    level = int(open("/proc/sys/kernel/perf_event_paranoid").read())
    if level < 2:
        pytest.skip(f"kernel.perf_event_paranoid is {level}: everybody may")
    before = same_as_the_kernel(place, nobody(), target(*nobody()))
    line = before["perf_kernel"]
    assert (line["gate"], line["errno"]) == ("paranoid", "EACCES") and before["perf_events"]["works"], line
    gone(before, same_as_the_kernel(place, [], pid), "perf_kernel")


# ---- Rights on a process

LOOKS = ("perf_process", "maps", "root")


@pytest.mark.parametrize("remedied", [nobody(), []], ids=["run as its user", "add SYS_PTRACE"])
def test_another_user_is_named_and_its_user_or_the_right_opens_all(place, target, remedied):
    pid = target(*nobody())
    before = same_as_the_kernel(place, ["setpriv", "--reuid=65533", "--regid=65533", "--clear-groups"], pid)
    for name in (*LOOKS, "process_vm_readv", "proc_mem"):
        assert before[name]["gate"] == "uid" and f"(uid {UID})" in before[name]["detail"], before[name]
    assert before.done.status == 1 and before.all["processes"][0]["gate"] == "uid"
    after = same_as_the_kernel(place, remedied, pid)
    for name in (*LOOKS, "process_vm_readv", "proc_mem"):
        gone(before, after, name)
    assert after.done.status == 0


def test_a_process_that_is_not_dumpable_is_named_and_with_the_right_it_is_open(place, target):
    pid = target(*nobody(), command=[*PYTHON, "-c", "import ctypes, time; ctypes.CDLL(None).prctl(4, 0); time.sleep(600)"])
    process.until(lambda: os.stat(f"/proc/{pid}/mem").st_uid == 0, 20, "it is not dumpable")
    before = same_as_the_kernel(place, nobody(), pid)
    for name in (*LOOKS, "process_vm_readv", "proc_mem"):
        assert (before[name]["gate"], before[name]["remedy"]) == ("dumpable", "add SYS_PTRACE"), before[name]
    after = same_as_the_kernel(place, [], pid)
    for name in (*LOOKS, "process_vm_readv", "proc_mem"):
        gone(before, after, name)


def test_one_capability_more_is_named_and_with_the_right_it_is_no_matter(place, target):
    pid = target()
    fewer = ["setpriv", "--bounding-set=-sys_ptrace,-net_admin,-sys_admin,-perfmon"]
    before = same_as_the_kernel(place, fewer, pid)
    assert before["proc_mem"]["gate"] == "capability" and "(NET_ADMIN" in before["proc_mem"]["detail"], before["proc_mem"]
    after = same_as_the_kernel(place, ["setpriv", "--bounding-set=-net_admin,-sys_admin,-perfmon"], pid)
    for name in ("process_vm_readv", "proc_mem", "maps"):
        gone(before, after, name)


def test_root_without_the_right_opens_what_it_can_as_the_other_user(place, target):
    """What a stock container has: SETUID and SETGID, no SYS_PTRACE. The call alone stays closed."""
    pid = target(*nobody())
    answer = ask(place, ["setpriv", "--bounding-set=-sys_ptrace,-sys_admin,-perfmon"], "-p", pid)
    assert answer["perf_process"]["works"] and answer["proc_mem"]["works"] and answer["maps"]["works"], answer.all
    assert (answer["process_vm_readv"]["errno"], answer["process_vm_readv"]["gate"]) == ("EPERM", "uid")
    assert answer.done.status == 0


def test_from_another_user_namespace_all_is_closed_and_that_is_said(place, target):
    """Root there is nobody here: the rights that it holds are good for its own namespace only."""
    inside = nobody("unshare", "--user", "--map-root-user")
    if process.run([*inside, "true"]).status != 0:
        pytest.skip("no user namespaces for ordinary users here")
    pid = target(*nobody())
    answer = same_as_the_kernel(place, inside, pid)
    for name in (*LOOKS, "process_vm_readv", "proc_mem"):
        assert answer[name]["gate"] == "module" and "another user namespace" in answer[name]["detail"], answer[name]
    assert ask(place, inside).done.status == 0  # its own commands are open to it


# ---- Limits

def test_locked_memory_that_others_hold_is_named_and_with_a_limit_the_line_is_gone(place, target):
    uid = 60000 + os.getpid() % 5000

    def as_user(memlock_kib):
        return ["sh", "-c", f'ulimit -l {memlock_kib}; exec "$@"', "sh", "setpriv", f"--reuid={uid}", f"--regid={uid}",
                "--clear-groups"]
    pid = target(*as_user(64))
    holder = process.start([*as_user(8192), place.pillion, "-p", pid, "-d", "600", "-o", place.folder / "held"],
                           cwd=place.folder)
    try:
        process.until(lambda: "profiles" in holder.err, 20, lambda: holder.err)
        before = ask(place, as_user(16), "-p", pid)
        after = ask(place, as_user(8192), "-p", pid)
    finally:
        holder.signal(15)
        holder.finish(30)
    line = before["perf_rings"]
    assert (line["state"], line["errno"], line["gate"]) == ("blocked", "EPERM", "memlock"), line
    assert f"uid {uid} may lock" in line["detail"] and "ulimit -l" in line["remedy"]
    gone(before, after, "perf_rings")


def test_descriptors_that_run_out_are_named_and_with_a_limit_the_line_is_gone(place, target):
    pid = target(command=[place.act, "threads", "40", "600"])
    process.until(lambda: len(os.listdir(f"/proc/{pid}/task")) > 40, 20, "its threads are there")
    before = ask(place, ["prlimit", "--nofile=64:64"], "-p", pid)
    assert (before["perf_process"]["state"], before["perf_process"]["gate"]) == ("partial", "nofile"), before["perf_process"]
    gone(before, ask(place, ["prlimit", "--nofile=4096:4096"], "-p", pid), "perf_process")


# ---- What decides the proven share

def test_a_program_of_a_lower_nice_value_is_told_and_with_the_right_it_is_no_matter(place, target):
    pid = target("nice", "-n", "-5", *nobody())
    before = ask(place, nobody(), "-p", pid)
    assert before["target_nice"]["gate"] == "nice" and "nice -5" in before["target_nice"]["detail"], before["target_nice"]
    gone(before, ask(place, [], "-p", pid), "target_nice")


def test_an_own_policy_that_never_preempts_is_told(place, target):
    pid = target(*nobody())
    before = ask(place, ["chrt", "--idle", "0", *nobody()], "-p", pid)
    assert before["policy"]["gate"] == "policy" and before["policy"]["state"] == "blocked", before["policy"]
    gone(before, ask(place, ["chrt", "--other", "0", *nobody()], "-p", pid), "policy")


def test_cpus_that_are_not_ours_are_told(place, target):
    if CPUS < 2:
        pytest.skip("one CPU")
    pid = target(*nobody())
    before = ask(place, ["taskset", "-c", "0", *nobody()], "-p", pid)
    assert (before["affinity"]["gate"], before["affinity"]["state"]) == ("cpuset", "partial"), before["affinity"]
    gone(before, ask(place, nobody(), "-p", pid), "affinity")


@pytest.fixture
def group():
    """group(weight): the command line that runs another in a new group of this CPU weight."""
    base, made = "/sys/fs/cgroup/cpu", []
    if not os.path.exists(f"{base}/cpu.shares"):
        pytest.skip("no control groups of version 1 here")

    def make(shares):
        folder = f"{base}/lab-{os.getpid()}-{shares}"
        try:
            os.mkdir(folder)
        except OSError as reason:
            pytest.skip(f"no control group can be made here: {reason}")
        made.append(folder)
        with open(f"{folder}/cpu.shares", "w") as file:
            file.write(str(shares))
        return ["sh", "-c", f'echo $$ >{folder}/tasks && exec "$@"', "sh"]
    yield make
    for folder in made:
        process.until(lambda: _removed(folder), 10, f"{folder} is empty")


def _removed(folder):
    for line in open(f"{folder}/tasks"):
        with open(os.path.dirname(folder) + "/tasks", "w") as parent:
            parent.write(line)
    try:
        os.rmdir(folder)
    except OSError:
        return False
    return True


def test_a_small_weight_of_the_own_group_is_told_and_a_larger_one_mends_it(place, target, group):
    pid = target(*group(1024), *nobody())
    before = ask(place, [*group(200), *nobody()], "-p", pid)
    line = before["cpu_weight"]
    assert (line["state"], line["gate"]) == ("partial", "cgroup") and "own group 200, that of" in line["detail"], line
    assert "CPU weight of 342 or more (cpu.shares)" in line["remedy"], line
    gone(before, ask(place, [*group(342), *nobody()], "-p", pid), "cpu_weight")


# ---- Places

def test_a_folder_that_is_mounted_read_only_is_told_and_another_mends_it(place):
    script = f'mount -t tmpfs -o ro none "{place.folder}/ro" && exec "$@"'
    (place.folder / "ro").mkdir()
    prefix = ["unshare", "--mount", "sh", "-c", script, "sh"]
    before = ask(place, prefix, "-o", place.folder / "ro" / "below" / "that")
    assert (before["output"]["errno"], before["output"]["gate"]) == ("EROFS", "mount"), before["output"]
    gone(before, ask(place, prefix, "-o", place.folder / "new"), "output")
    assert not (place.folder / "new").exists()


def test_without_proc_that_is_the_change(place):
    root = place.folder / "root"
    (root / "proc").mkdir(parents=True)
    profiler.copy(place.pillion, root)
    inside = types.SimpleNamespace(pillion="/pillion", folder="/")
    prefix = ["/usr/sbin/chroot", str(root)]
    before = ask(inside, prefix)
    assert (before["proc"]["errno"], before["proc"]["gate"]) == ("ENOENT", "mount"), before["proc"]
    mounted = ["unshare", "--mount", "sh", "-c", f'mount -t proc proc {root}/proc && exec "$@"', "sh"]
    gone(before, ask(inside, [*mounted, *prefix]), "proc")


def test_a_proc_that_hides_other_users_is_told_and_one_that_does_not_mends_it(place):
    def mounted(hidepid):
        script = f'mount -t proc -o hidepid={hidepid} proc /proc && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", script, "sh", *nobody()]
    before = ask(place, mounted(2))
    assert (before["proc"]["state"], before["proc"]["gate"]) == ("partial", "mount"), before["proc"]
    assert all(row["uid"] == UID for row in before.all["processes"])
    gone(before, ask(place, mounted(0)), "proc")


def test_a_process_that_is_not_there(place):
    answer = ask(place, [], "-p", 4194303)
    assert answer.done.status == 1 and answer.all["processes"] == []
    assert "No process 4194303 is visible in this PID namespace" in answer.all["verdict"]


def test_on_fargate_nothing_is_advised_that_cannot_be_done(place, refuse):
    environment = {"AWS_EXECUTION_ENV": "AWS_ECS_FARGATE", "PATH": os.environ["PATH"]}
    answer = ask(place, nobody(refuse, "EPERM", "perf_event_open", "--"), env=environment)
    assert answer["perf_events"]["remedy"] is None and "Fargate" in answer["perf_events"]["detail"]


def test_each_setting_names_its_source(place):
    """The last one that counts: a command line before a variable of ours, that before gProfiler's."""
    environment = {"PATH": os.environ["PATH"], "PILLION_PROFILING_FREQUENCY": "49", "GPROFILER_PROFILING_DURATION": "20",
                   "GPROFILER_PROFILING_FREQUENCY": "11", "DD_SERVICE": "shop", "PILLION_NO_PYTHON": "1",
                   "PILLION_PERF_DWARF_STACK_SIZE": "much", "PILLION_OUTPUT_DIR": "/nowhere"}
    settings = {one["name"]: (one["value"], one["source"])
                for one in ask(place, [], "-o", ".", env=environment).all["settings"]}
    wanted = {"profiling-frequency": ("49", "PILLION_PROFILING_FREQUENCY"), "output-dir": (".", "command line"),
              "profiling-duration": ("20", "GPROFILER_PROFILING_DURATION"), "service-name": ("shop", "DD_SERVICE"),
              "python-mode": ("disabled", "PILLION_NO_PYTHON"), "perf-mode": ("smart", "default"), "children": ("on", "default")}
    assert {name: settings.get(name) for name in wanted} == wanted
    assert "help" not in settings and all(source for _, source in settings.values())


@pytest.mark.exact
def test_no_setting_tells_a_secret(place):
    """Of a token, a header and an address with a password only that they are set."""
    environment = {"PATH": os.environ["PATH"], "PILLION_TOKEN": "hunter1", "PILLION_SERVER_HOST": "a=https://h,b=https://u:hunter2@h"}
    answer = ask(place, [], "--header", "Authorization: Bearer hunter3", env=environment)
    assert "hunter" not in answer.done.out
    settings = {one["name"]: one["value"] for one in answer.all["settings"]}
    assert settings["token"] == "set, 7 characters" and settings["server-host"].startswith("set, "), settings
    assert settings["header"].startswith("set, "), settings
    plain = ask(place, [], env={**environment, "PILLION_SERVER_HOST": "https://h/a@b"})
    assert {"name": "server-host", "value": "https://h/a@b", "source": "PILLION_SERVER_HOST"} in plain.all["settings"]


def test_a_variable_that_is_no_setting_is_told_beside_the_answer(place):
    environment = {"PATH": os.environ["PATH"], "PILLION_COLRO": "never"}
    done = process.run([place.pillion, "doctor"], cwd=place.folder, env=environment)
    assert done.err == "pillion: warning: PILLION_COLRO is not a setting; did you mean PILLION_COLOR?\n", done
    assert ask(place, [], env=environment).done.err == ""


# ---- The whole of it

def test_all_processes_have_a_row_with_their_runtime(place, target):
    python = target(*nobody(), command=[*PYTHON, "-c", "while True: pass"])
    native = target()
    process.until(lambda: process.cpu_seconds(python) > 0.3, 20)
    answer = ask(place, nobody())
    rows = {row["pid"]: row for row in answer.all["processes"]}
    version = subprocess.run([*PYTHON, "-V"], capture_output=True, text=True, check=True).stdout.split()[1]
    assert rows[python]["runtime"] == f"CPython {version}", rows[python]
    assert rows[python]["capture_mode"] == "perf+reader" and rows[python]["cpu_share"] > 0, rows[python]
    assert rows[native]["capture_mode"] == "proc" and rows[native]["gate"] == "uid", rows[native]
    assert answer["perf_process"]["works"] and answer.done.status == 0
    assert sum(row["cpu_share"] for row in rows.values()) < 1.01


def test_python_without_perf_is_read_and_one_block_otherwise(place, target, refuse):
    pid = target(*nobody(), command=[*PYTHON, "-c", "while True: pass"])
    process.until(lambda: process.cpu_seconds(pid) > 0.3, 20)
    answer = ask(place, nobody(refuse, "EPERM", "perf_event_open", "--"), "-p", pid)
    row = answer.all["processes"][0]
    assert (row["capture_mode"], row["how"]) == ("reader", "python reader; native as one block"), row
    assert row["rung"] == row["capture_mode"]  # the earlier name of the key
    assert "the functions of CPython 3" in answer.all["verdict"] and answer.done.status == 0


@pytest.mark.parametrize("kind, status", [("native", 1), ("python", 0)])
def test_a_profile_then_ends_as_the_doctor_foretold(place, target, refuse, kind, status):
    """Without perf events: no stacks of a native program, and an interpreter's own."""
    command = [*PYTHON, "-c", "while True: pass"] if kind == "python" else [place.act, "spin", "600"]
    pid = target(*nobody(), command=command)
    prefix = nobody(refuse, "EPERM", "perf_event_open", "--")
    process.until(lambda: process.cpu_seconds(pid) > 0.3, 20)
    answer = ask(place, prefix, "-p", pid)
    done = process.run([*prefix, place.pillion, "-p", pid, "-d", "1", "-o", place.folder / "out"], cwd=place.folder)
    assert (answer.done.status, done.status) == (status, status), (answer.all["verdict"], done)
    session = profiler.Session(done, place.folder / "out")
    assert any(frame.endswith("_[p]") for frame in session.frames()) == (kind == "python"), session.frames()


@pytest.mark.exact
def test_a_wrong_call_is_2(place):
    for arguments in (["-p", "1,2"], ["word"], ["--jsn"]):
        done = process.run([place.pillion, "doctor", *arguments])
        assert done.status == 2 and done.out == "" and len(done.err.splitlines()) == 1, done


@pytest.mark.parametrize("columns", [80, 40])
def test_on_a_terminal_no_line_is_wider_and_all_is_ascii(place, columns):
    shell = terminal.Shell(place.folder, {"PATH": f"{place.folder}:{os.environ['PATH']}", "LC_ALL": "C"}, columns)
    try:
        shown = shell.command("pillion doctor -p $$").removesuffix(terminal.PROMPT).splitlines()[1:]
    finally:
        shell.close()
    assert shown[0].startswith("pillion doctor: ") and shown[-1].isascii()
    assert max(len(line) for line in shown if " " in line.strip()) <= columns, shown
    assert any(line.startswith("A profile of pid ") for line in shown), shown


def test_what_is_said_is_what_a_profile_says_when_it_begins(place, refuse):
    """One source: the start's sentence holds the doctor's gate and remedy, word for word."""
    prefix = nobody(refuse, "EPERM", "perf_event_open", "--")
    answer = ask(place, prefix)
    session = profiler.profile(place.pillion, place.folder / "out", [place.act, "spin", "0.1"], prefix=prefix, launch="init")
    said = " ".join(session.done.err.split())
    assert answer["perf_events"]["remedy"] in said and answer["perf_events"]["detail"] in said, (answer["perf_events"], said)


def test_nothing_is_left_behind_and_nobody_is_disturbed(place, target):
    pid = target(*nobody())
    before = sorted(p.name for p in place.folder.iterdir())
    ask(place, [], "-p", pid)
    ask(place, [])
    assert process.state_of(pid) == "S" and process.children_of(pid) == []
    assert sorted(p.name for p in place.folder.iterdir()) == before
    assert subprocess.run(["ls", f"/proc/{pid}/fd"], capture_output=True).returncode == 0

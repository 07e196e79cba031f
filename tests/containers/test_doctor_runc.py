"""The doctor in containers as engines make them: its verdicts are the kernel's, its remedies help, and where a sidecar
shares the PID namespace it says what the other container lets it do."""
import json
import types

import pytest

from lab import container, root, seccomp, tiers

pytestmark = [pytest.mark.root, pytest.mark.measures]
STOCK = container.CAPABILITIES
APP_UID = 1000


@pytest.fixture
def image(workdir, pillion, program):
    if tiers.tool_missing("runc"):
        pytest.fail("runc is missing; run make setup")
    (workdir / "out").mkdir()
    (workdir / "out").chmod(0o777)
    return container.scratch(workdir / "image", pillion, program("act", "-static"), program("attempts", "-static"))


@pytest.fixture
def app(image):
    """app(**options): a container whose process 1 waits; what shares its PID namespace sees it as such."""
    started = []

    def start(**options):
        started.append(container.Container(image, ["/act", "wait", "600"], **options))
        return started[-1].pid()
    yield start
    for one in started:
        one.remove()


def in_container(image, command, **options):
    return container.Container(image, command, mounts=[(image.parent / "out", "/out", "rw")], **options).finish(60)


def ask(image, *arguments, **options):
    done = in_container(image, ["/pillion", "doctor", "--json", *arguments], **options)
    assert done.err == "", done
    answer = json.loads(done.out)
    assert done.status == (0 if answer["can_profile"] else 1), done
    lines = {m["name"]: m for m in answer["mechanisms"]}
    return types.SimpleNamespace(all=answer, lines=lines, status=done.status, row=(answer["processes"] or [None])[0])


def judged(image, pid, **options):
    """The doctor on process 1 of the other container. Each errno is what an independent attempt met, but where the doctor
    can do as the process's user what it may not do as itself."""
    truth = json.loads(in_container(image, ["/attempts", "1"], pid_of=pid, **options).out)
    answer = ask(image, "-p", "1", "-o", "/out", pid_of=pid, **options)
    for name, error in truth.items():
        line = answer.lines[name]
        if line["state"] == "untried" or (line["works"] and error == "EACCES" and name in ("proc_mem", "maps", "root")):
            continue
        assert line["errno"] == error and line["works"] == (error is None), (name, line, truth)
    return answer


def allowing(image, profile, call):
    """The profile with one call more, whatever it says of it otherwise."""
    changed = json.loads(profile.read_text())
    for rule in changed["syscalls"]:
        rule["names"] = [name for name in rule["names"] if name != call]
    changed["syscalls"] = [rule for rule in changed["syscalls"] if rule["names"]]
    changed["syscalls"].append({"names": [call], "action": "SCMP_ACT_ALLOW"})
    path = image.parent / f"{profile.stem}+{call}.json"
    path.write_text(json.dumps(changed))
    return path


# ---- The matrix: what engines publish as their default, and each remedy that is printed there

NONE = "none"
# What a profile answers, by the capabilities that the container has besides the stock ones.
MATRIX = [
    # profile        capabilities more                 perf_events  process_vm_readv
    (NONE,           [],                                None,        None),
    ("podman-0.50",  [],                                "EPERM",     None),
    ("podman-0.50",  ["CAP_PERFMON"],                   "EPERM",     None),
    ("podman-0.50",  ["CAP_SYS_ADMIN"],                 None,        None),
    # Two rules that contradict each other: either capability alone opens nothing.
    ("podman-0.62",  [],                                "EPERM",     None),
    ("podman-0.62",  ["CAP_PERFMON"],                   "EPERM",     None),
    ("podman-0.62",  ["CAP_SYS_ADMIN"],                 "ENOSYS",    None),
    ("podman-0.62",  ["CAP_PERFMON", "CAP_SYS_ADMIN"],  None,        None),
    # Memory is not read by call without SYS_PTRACE, and PERFMON does not count yet.
    ("docker-20.10", [],                                "EPERM",     "EPERM"),
    ("docker-20.10", ["CAP_PERFMON", "CAP_SYS_PTRACE"], "EPERM",     None),
    ("docker-20.10", ["CAP_SYS_ADMIN"],                 None,        "EPERM"),
    ("docker-26.1",  [],                                "EPERM",     None),
    ("docker-26.1",  ["CAP_PERFMON"],                   None,        None),
]


def published(engine):
    try:
        return "off" if engine == NONE else seccomp.get(engine)
    except root.Unreachable as reason:
        pytest.skip(str(reason))


@pytest.mark.net
@pytest.mark.parametrize("engine, more, perf, call", MATRIX)
def test_the_matrix_of_published_profiles(image, app, engine, more, perf, call):
    answer = judged(image, app(), profile=published(engine), capabilities=[*STOCK, *more])
    for name, error in (("perf_events", perf), ("process_vm_readv", call)):
        line = answer.lines[name]
        assert (line["errno"], line["gate"]) == (error, error and "seccomp"), line
        assert line["works"] == (error is None) and bool(line["remedy"]) == (error is not None), line
    # Whatever the call may not do, the file may.
    assert answer.lines["proc_mem"]["works"]


def remedies(answer):
    return {line["remedy"]: name for name, line in answer.lines.items() if line["remedy"]}


def with_call(image, profile, capabilities, call):
    return allowing(image, profile, call), capabilities


def with_right(image, profile, capabilities, right):
    return profile, [*capabilities, right]


# Words of a remedy -> what somebody does who follows it.
FOLLOWED = [
    ("allow perf_event_open in the container's seccomp profile", with_call, "perf_event_open"),
    ("allow process_vm_readv in the container's seccomp profile", with_call, "process_vm_readv"),
    ("set kernel.perf_event_paranoid to 1 or less on the host, or add CAP_PERFMON", with_right, "CAP_PERFMON"),
    ("add SYSLOG", with_right, "CAP_SYSLOG"),
    ("add IPC_LOCK", with_right, "CAP_IPC_LOCK"),
]


@pytest.mark.net
@pytest.mark.parametrize("engine", [NONE, *seccomp.PUBLISHED])
def test_each_remedy_that_is_followed_ends_its_line_until_none_is_left(image, app, engine):
    pid, profile, capabilities = app(), published(engine), STOCK
    answer = judged(image, pid, profile=profile, capabilities=capabilities)
    for _ in range(len(FOLLOWED)):
        if not remedies(answer):
            break
        printed = remedies(answer)
        for remedy in printed:
            follow, what = next((follow, what) for words, follow, what in FOLLOWED if words in remedy)
            profile, capabilities = follow(image, profile, capabilities, what)
        answer = judged(image, pid, profile=profile, capabilities=capabilities)
        for remedy, name in printed.items():
            assert remedy not in remedies(answer) and answer.lines[name]["state"] == "ok", (remedy, answer.lines[name])
    assert not remedies(answer) and answer.row["capture_mode"] == "perf", answer.all
    assert {line["state"] for line in answer.lines.values()} <= {"ok", "absent", "untried"}, answer.lines


@pytest.mark.net
def test_a_right_that_the_profile_opens_for_is_the_other_way(image, app):
    """Docker's of 20.10 lets memory be read by call with SYS_PTRACE."""
    before = judged(image, app(), profile=published("docker-20.10"))
    assert "or add SYS_PTRACE if the profile allows the call with it" in before.lines["process_vm_readv"]["remedy"]
    after = judged(image, app(), profile=published("docker-20.10"), capabilities=[*STOCK, "CAP_SYS_PTRACE"])
    assert after.lines["process_vm_readv"]["state"] == "ok", after.lines


# ---- The same by this machine's file alone

@pytest.mark.parametrize("profile", ["containers-common", "docker"])
def test_in_a_stock_container_perf_is_refused_and_memory_is_not(image, app, profile):
    pid = app(profile=profile)
    answer = judged(image, pid, profile=profile)
    line = answer.lines["perf_events"]
    assert (line["errno"], line["gate"]) == ("EPERM", "seccomp") and "or add CAP_PERFMON" in line["remedy"], line
    assert answer.lines["process_vm_readv"]["works"] and answer.lines["proc_mem"]["works"]
    # A native program without perf events has no stacks; a command's interpreter would.
    assert answer.status == 1
    alone = ask(image, "-o", "/out", profile=profile)
    assert alone.status == 0 and "the functions of interpreters" in alone.all["verdict"], alone.all


def test_the_right_and_a_profile_that_opens_for_it_end_the_line(image, app):
    """podman's of Debian 12 opens for SYS_ADMIN; without any filter nothing is refused."""
    before = judged(image, app(), capabilities=[*STOCK, "CAP_PERFMON"])
    assert "CAP_PERFMON is present, but this profile does not allow the call" in before.lines["perf_events"]["remedy"]
    for options in ({"capabilities": [*STOCK, "CAP_SYS_ADMIN"]}, {"profile": "off"}):
        after = judged(image, app(), **options)
        assert after.lines["perf_events"]["works"] and after.lines["perf_process"]["works"], after.lines
        assert after.status == 0 and after.row["capture_mode"] == "perf"


def test_another_users_application(image, app):
    """Root of a stock container reads it as its user; an ordinary user does not, and SYS_PTRACE is the change."""
    pid = app(uid=APP_UID)
    root = judged(image, pid)
    assert root.lines["proc_mem"]["works"] and root.lines["maps"]["works"], root.lines
    assert root.lines["process_vm_readv"]["gate"] == "uid", root.lines["process_vm_readv"]
    other = judged(image, pid, uid=APP_UID + 1)
    for name in ("process_vm_readv", "proc_mem", "maps", "root"):
        line = other.lines[name]
        assert line["gate"] == "uid" and line["remedy"] == "run as its user or add SYS_PTRACE", line
    same = judged(image, pid, uid=APP_UID)
    able = judged(image, pid, capabilities=[*STOCK, "CAP_SYS_PTRACE"])
    for after in (same, able):
        assert all(after.lines[name]["state"] == "ok" for name in ("process_vm_readv", "proc_mem", "maps", "root")), after.lines


def test_one_capability_more_in_the_application(image, app):
    pid = app(capabilities=[*STOCK, "CAP_NET_ADMIN"])
    before = judged(image, pid)
    assert before.lines["proc_mem"]["gate"] == "capability" and "NET_ADMIN" in before.lines["proc_mem"]["detail"]
    for capabilities in ([*STOCK, "CAP_NET_ADMIN"], [*STOCK, "CAP_SYS_PTRACE"]):
        after = judged(image, pid, capabilities=capabilities)
        assert after.lines["proc_mem"]["state"] == after.lines["maps"]["state"] == "ok", after.lines


def test_a_read_only_root_is_told_before_the_run(image):
    before = ask(image)
    assert (before.lines["output"]["errno"], before.lines["output"]["gate"]) == ("EROFS", "mount"), before.lines["output"]
    assert ask(image, "-o", "/out").lines["output"]["state"] == "ok"


def test_the_text_fits_a_log(image):
    done = in_container(image, ["/pillion", "doctor", "-o", "/out"])
    lines = done.out.splitlines()
    assert done.status == 0 and lines[0] == "pillion doctor: works, with gaps; 1 change helps", done
    assert max(map(len, lines)) <= 80 and done.out.isascii()

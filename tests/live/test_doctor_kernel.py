"""The doctor where this machine's kernel has no gate to close: Debian's paranoid level 3, Yama, hidden kernel symbols and
control groups of version 2, in one boot of an emulated machine. Beside each answer stands an independent program's."""
import json
import re
import types

import pytest

from lab import kernel

pytestmark = [pytest.mark.net, pytest.mark.root, pytest.mark.measures]

# Yama's 3 cannot be undone: it comes last.
SCRIPT = """
chmod 755 / /pillion /act /attempts /ranked
sysctl_to() { echo $2 >/proc/sys/kernel/$1; }
user() { /ranked 1000 nice 0 "$@"; }
root() { "$@"; }
cell() {
    name=$1 who=$2
    shift 2
    echo "cell $name"
    $who "$@" /pillion doctor --json -o /tmp -p $pid | tr -d '\\n'
    echo
    $who /attempts $pid
}
alone() { echo "cell $1"; user /pillion doctor --json -o /tmp | tr -d '\\n'; echo; echo '{}'; }
both() {
    sysctl_to perf_event_paranoid $1
    sysctl_to yama/ptrace_scope $2
    cell user-$1-$2 user
    cell root-$1-$2 root
}
/ranked 1000 nice 0 /act wait 100000 &
pid=$!
sleep 0.2
both 3 0
both 3 1
both 2 0
both 2 1
alone alone-2-1
both 2 2
alone alone-2-2
both 1 2

sysctl_to perf_event_paranoid 1
sysctl_to kptr_restrict 1
cell hidden user
sysctl_to kptr_restrict 0
cell shown user

groups=/sys/fs/cgroup
mount -t cgroup2 none $groups
echo +cpu >$groups/cgroup.subtree_control
mkdir $groups/app $groups/beside
echo $pid >$groups/app/cgroup.procs
beside() { sh -c "echo \\$\\$ >$groups/beside/cgroup.procs; exec /ranked 1000 nice 0 \\"\\$@\\"" sh "$@"; }
for weight in 1 33 34; do
    echo $weight >$groups/beside/cpu.weight
    cell weight-$weight beside
done

both 2 3
kill -9 $pid
exit 0
"""


@pytest.fixture(scope="module")
def guest(request, pillion, program):
    reason = kernel.missing()
    if reason:
        pytest.skip(reason)
    files = [program("act", "-static"), program("attempts", "-static"), program("ranked", "-static"), pillion]
    status, text = kernel.boot(kernel.kernel("bookworm"), SCRIPT, files, processors=1, counted=8,
                               arguments="cryptomgr.notests=1", timeout=300)
    assert status == 0, text
    cells = {}
    for name, answer, truth in re.findall(r"^cell (\S+)\n(\{.*\})\n(\{.*\})$", text, re.M):
        answer = json.loads(answer)
        cells[name] = types.SimpleNamespace(all=answer, truth=json.loads(truth),
                                            lines={m["name"]: m for m in answer["mechanisms"]})
    assert len(cells) == text.count("cell "), text
    return cells


def test_every_line_is_what_the_kernel_answers(guest):
    """Levels 1, 2, 3 by Yama 0, 1, 2, 3, as a user beside a process of his own and as root."""
    for name, cell in guest.items():
        for mechanism, error in cell.truth.items():
            line = cell.lines[mechanism]
            if line["state"] != "untried":
                assert line["errno"] == error and line["works"] == (error is None), (name, line, error)
    assert guest["user-3-0"].truth["perf_events"] == "EACCES" and guest["user-2-1"].truth["process_vm_readv"] == "EPERM"


def test_level_3_is_named_and_2_and_then_1_end_the_lines(guest):
    line = guest["user-3-0"].lines["perf_events"]
    assert line["gate"] == "paranoid" and line["detail"] == "EACCES: kernel.perf_event_paranoid is 3", line
    assert line["remedy"] == "set kernel.perf_event_paranoid to 2 or less on the host"
    assert guest["user-2-0"].lines["perf_events"]["state"] == "ok"
    line = guest["user-2-2"].lines["perf_kernel"]
    assert line["gate"] == "paranoid" and "to 1 or less" in line["remedy"], line
    assert guest["user-1-2"].lines["perf_kernel"]["state"] == "ok"


@pytest.mark.parametrize("scope, gate", [(0, None), (1, "only its parents and processes with SYS_PTRACE may"), (2, "only processes with SYS_PTRACE may"), (3, "no process may")])
def test_yama_is_named_where_it_has_a_say_and_nowhere_else(guest, scope, gate):
    cell = guest[f"user-{3 if scope == 0 else 2}-{scope}"]
    for name in ("process_vm_readv", "proc_mem"):
        line = cell.lines[name]
        assert (line["gate"], gate is None or gate in line["detail"]) == (gate and "yama", True), line
        assert bool(line["remedy"]) == (scope in (1, 2)), line
    assert cell.lines["maps"]["state"] == cell.lines["root"]["state"] == "ok"
    # With the right the line is gone, but for scope 3.
    assert guest[f"root-{3 if scope == 0 else 2}-{scope}"].lines["process_vm_readv"]["works"] == (scope != 3)


def test_what_pillion_starts_itself_may_be_read_under_yama_1(guest):
    """The remedy's other half: a child of its own is open where a sibling is closed."""
    assert guest["alone-2-1"].lines["process_vm_readv"]["state"] == "ok"
    line = guest["alone-2-2"].lines["process_vm_readv"]
    assert (line["gate"], line["remedy"]) == ("yama", "add SYS_PTRACE"), line


def test_kernel_symbols_without_addresses_are_told_and_the_change_mends_it(guest):
    line = guest["hidden"].lines["kernel_names"]
    assert (line["gate"], line["works"]) == ("sysctl", False) and "kernel.kptr_restrict to 0" in line["remedy"], line
    assert guest["shown"].lines["kernel_names"]["state"] == "ok"


def test_weights_of_version_2_are_told_and_the_least_that_is_advised_is_enough(guest):
    for weight in (1, 33, 34):
        line = guest[f"weight-{weight}"].lines["cpu_weight"]
        # A quarter of the other's is enough where that is visible.
        assert (line["state"], line["gate"]) == (("partial", "cgroup") if weight == 1 else ("ok", None)), line
    line = guest["weight-1"].lines["cpu_weight"]
    assert "own group 1, that of pid" in line["detail"] and "CPU weight of 34 or more (cpu.weight)" in line["remedy"], line

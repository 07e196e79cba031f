"""On the kernels people run, each in an emulated machine: what this machine's kernel cannot show.

One boot per kernel runs all cells and prints what came of them; the tests judge that. The machine's clock counts
instructions (lab/kernel.py, boot), so that nothing depends on what else runs here. Paranoid level 3 is what Debian's
kernels start with; Yama is in all of them.
"""
import base64
import os
import re
import shutil
import subprocess
import types
from concurrent.futures import ThreadPoolExecutor

import pytest

from lab import col, emulate, golabels, golang, kernel, linked, pprof, profiler, pystacks, pythons, root as roots

pytestmark = [pytest.mark.net, pytest.mark.root, pytest.mark.measures]

KERNELS = {"5.10": ("bullseye", "x86_64"), "6.1": ("bookworm", "x86_64"), "6.12": ("trixie", "x86_64"),
           "7": ("sid", "x86_64"), "6.12-aarch64": ("trixie", "aarch64")}
# test_catch_kernels.py has more of it.
PYTHONS = {"6.12": "trixie-python3.13"}
GOS = ("6.12-aarch64",)  # on x86-64 test_golang.py and test_go_labels.py have it
SCOPES = {"6.1": "0123", "6.12-aarch64": "0123"}  # of Yama, with brief stops; in the others 0 alone
QUICKER = "cryptomgr.notests=1"
HZ, TICK = 499, 1 / 100
POLL = 0.1 + 2 * TICK  # without perf, of a command whose parent does not keep it after its end

SCRIPT = """
echo "kernel $(uname -r), paranoid $(cat /proc/sys/kernel/perf_event_paranoid)"
chmod 755 / /pillion /act /shares /requests /ranked /peer
PILLION="/pillion --launch exec -f 499 --format col -o /tmp/o"
paranoid() { echo $1 >/proc/sys/kernel/perf_event_paranoid; }
yama() { echo $1 >/proc/sys/kernel/yama/ptrace_scope; }
user() { /ranked 1000 nice 0 "$@"; }
cell() { rm -rf /tmp/o /tmp/said /tmp/times; mkdir -m 777 /tmp/o; echo "cell $1"; }
until_it() { for i in $(seq 400); do eval "$1" && break; sleep 0.05; done; }
told() {
    tail -n 1 /tmp/times 2>/dev/null | sed 's/^/cpu /'
    sed 's/^/said /' /tmp/said
    echo "begin col"
    cat /tmp/o/last_profile.col
    echo
    echo "end col"
}
# A command is run by pillion, in its place: its status and its own CPU time are the command's.
profiled() {
    ( "$@" 2>/tmp/said; echo "status $?"; times >/tmp/times )
    until_it '[ -e /tmp/o/last_profile.col ]'
    told
}

cell nothing
profiled user $PILLION -- /act exit 3

cell launch
profiled $PILLION -- /shares 0.5 0.05

cell requests
profiled /pillion --launch exec -f 99 --format col -o /tmp/o -- /requests 5

# It stands still until it is followed, so that what it used before is known.
cell attach
( sh -c 'echo $$ >/tmp/pid; exec /ranked 1000 nice 0 /act threads 3 0.3'; times >/tmp/times ) &
shell=$!
sleep 0.2
pid=$(cat /tmp/pid)
kill -STOP $pid
echo "before $(cut -d ' ' -f 14,15 /proc/$pid/stat)"
$PILLION -p $pid -d 60 2>/tmp/said &
attached=$!
until_it 'grep -q profiles /tmp/said'
kill -CONT $pid
wait $shell
wait $attached
echo "status $?"
told

if [ $EVENTS = yes ]; then
    cell event
    profiled $PILLION --format col,pprof -e cycles -- /shares 0.5 0.05
    echo "begin pprof"
    base64 /tmp/o/last_profile.pprof
    echo "end pprof"
fi

if [ -e /program ]; then
    cell go
    profiled /pillion --launch init -o /tmp/o --format col,pprof -f 199 --max-cpu 100 -- /program 2
    echo "begin pprof"
    base64 /tmp/o/last_profile.pprof
    echo "end pprof"
fi

if [ -e /act ] && mkdir -p /tmp/group && mount -t cgroup2 none /sys/fs/cgroup; then
    cell group
    echo +memory >/sys/fs/cgroup/cgroup.subtree_control
    mkdir /sys/fs/cgroup/box
    echo 48M >/sys/fs/cgroup/box/memory.max
    echo 1 >/sys/fs/cgroup/box/memory.oom.group
    ( echo 0 >/sys/fs/cgroup/box/cgroup.procs; profiled $PILLION -- /act hold 44 2 5 )
    sed 's/^/events /' /sys/fs/cgroup/box/memory.events
    umount /sys/fs/cgroup
fi

cell paranoid3
paranoid 3
profiled user $PILLION -- /act threads 2 0.3
cell counted
profiled user $PILLION --launch init -- /shares 0.5 0.05

cell paranoid2
paranoid 2
profiled user $PILLION -- /shares 0.5 0.05

# Another pillion of this user holds rings while the second one starts.
cell alone
( ulimit -l 64; profiled user $PILLION -- /act spin 0.2 )
/ranked 1000 nice 0 /act wait 1000 &
idle=$!
beside() {
    ( ulimit -l $1; exec /ranked 1000 nice 0 /pillion -p $idle -d 600 -o /tmp/other ) 2>/tmp/other.said &
    other=$!
    until_it 'grep -q profiles /tmp/other.said'
    ( ulimit -l 16; profiled user $PILLION -- /act spin 0.2 )
    kill $other
    wait $other
    sed 's/^/other /' /tmp/other.said
}
mkdir -m 777 /tmp/other
cell short
beside 64
cell refused
beside 8192
kill -9 $idle

if [ -e /usr/bin/python3 ]; then
    head -c 8 /dev/random >/dev/null
    yama 0
    /ranked 1000 nice 0 /usr/bin/python3 -S /hot.py 1000 &
    python=$!
    until_it 'grep -q libexpat /proc/$python/maps && [ $(cut -d " " -f 14 /proc/$python/stat) -gt 60 ]'
    cell python
    paranoid 3
    user $PILLION -p $python -d 1 2>/tmp/said
    told
    cell python-yama
    yama 1
    paranoid 2
    user $PILLION -p $python -d 1 2>/tmp/said
    told
    kill -9 $python
fi

# Yama's 3 cannot be undone, so everything goes through the scopes once. With brief stops: a command, a process of the same
# user, and one that root looks at.
stops() {
    cell stops-$1
    profiled $2 $PILLION --perf-mode disabled --brief-stops $3
}
/ranked 1000 nice 0 /peer wait &
peer=$!
sleep 0.1
for scope in 0 1 2 3; do
    yama $scope
    echo "$scope child $(user /peer child)" >>/tmp/read
    echo "$scope sibling $(user /peer read $peer)" >>/tmp/read
    echo "$scope root $(/peer read $peer)" >>/tmp/read
    case "$SCOPES" in *$scope*) ;; *) continue ;; esac
    stops $scope-child user "-- /shares 0.6 0.01"
    /ranked 1000 nice 0 /shares 100 0.01 >/dev/null &
    shares=$!
    stops $scope-sibling user "-d 1 -p $shares"
    stops $scope-root "" "-d 1 -p $shares"
    kill -9 $shares
done
kill -9 $peer
cell yama
cat /tmp/read
exit 0
"""


# ---- What is run

class Cell:
    def __init__(self, text):
        self.text = text
        status, cpu, before = (re.search(rf"^{pattern}$", text, re.M) for pattern in
                               (r"status (\d+)", r"cpu (\d+)m([\d.]+)s (\d+)m([\d.]+)s", r"before (\d+) (\d+)"))
        self.status = status and int(status[1])
        self.cpu = cpu and 60 * int(cpu[1]) + float(cpu[2]) + 60 * int(cpu[3]) + float(cpu[4])
        self.before = before and (int(before[1]) + int(before[2])) * TICK
        self.said = " ".join(re.findall(r"^said (.*)$", text, re.M))
        written = re.search(r"^begin col\n(.*)\nend col$", text, re.M | re.S)
        packed = re.search(r"^begin pprof\n(.*)\nend pprof$", text, re.M | re.S)
        self.pprof = pprof.Profile(base64.b64decode(packed[1])) if packed else None
        self.col = col.Col(written[1]) if written and written[1].startswith("#") else None

    def seconds(self):
        return self.col.seconds(HZ)

    def shares_of(self, names):
        """How the samples in these functions are shared out among them."""
        counts = [self.col.counted(name) for name in names]
        return [count / max(sum(counts), 1) for count in counts]


@pytest.fixture(scope="module")
def boots(request, tmp_path_factory, pillion, pillion_for, repository):
    """name -> what came of that kernel's boot: of those that are asked for, on each processor of this machine one."""
    events = "yes" if has_events(pillion) else "no"
    programs = repository / "tests" / "live" / "programs"

    def boot(name):
        suite, arch = KERNELS[name]
        reason = kernel.missing(arch) or emulate.compiler_missing(arch)
        if reason:
            pytest.skip(reason)
        try:
            image = kernel.kernel(suite, arch)
            kernel.busybox(tmp_path_factory.mktemp("busybox"), arch)
            more = [pythons.little(PYTHONS[name], tmp_path_factory.mktemp("python"), arch)] if name in PYTHONS else []
        except (roots.Unreachable, pythons.Missing) as error:
            pytest.skip(f"tier net: no kernel {name}: {error}")
        more += [golang.program("local", "go_labels.go", flags=("-ldflags=-s -w",), arch="arm64")] if name in GOS and shutil.which("go") else []
        files = [emulate.program(programs / f"{each}.c", arch) for each in ("act", "shares", "requests", "ranked")]
        files += [linked.program("tests/live/programs/peer.c", arch, pillion_for(arch)), pillion_for(arch),
                  programs / "python" / "hot.py", *more]
        status, text = kernel.boot(image, f"EVENTS={events} SCOPES={SCOPES.get(name, '0')}\n{SCRIPT}", files, arch=arch, arguments=QUICKER, processors=1,
                                   counted=8, timeout=1200)
        assert status == 0 and f"kernel {name.split('-')[0]}." in text, text
        cells = {part.split("\n", 1)[0]: Cell(part) for part in text.split("\ncell ")[1:]}
        return types.SimpleNamespace(name=name, arch=arch, text=text, cells=cells)

    mine = [item for item in request.session.items if getattr(item, "module", None) is request.module]
    wanted = dict.fromkeys(item.callspec.params["guest"] for item in mine)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return {name: pool.submit(boot, name) for name in wanted}


@pytest.fixture(scope="module", params=KERNELS)
def guest(request, boots):
    """guest.cells["launch"] -> what that cell told, on each kernel."""
    return boots[request.param].result()


def has_events(pillion):
    """Whether this pillion can sample other events than CPU time."""
    told = subprocess.run([pillion, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    option = re.search(r"^ *-e, --event.*(?:\n {10,}.*)*", told, re.M)
    return bool(option) and "not available" not in " ".join(option[0].split())


def true_total(guest, cell, absolute=3 * TICK):
    """The kernel's count, without what pillion used before the command took its place."""
    truth = cell.cpu - guest.cells["nothing"].cpu
    assert truth > 0.15, cell.text
    assert profiler.within(cell.seconds(), truth, 0.03, absolute), (cell.seconds(), truth, cell.text)


def is_counted_only(cell):
    return cell.col.share("[native, no perf]") + cell.col.share("[kernel, hidden]") > 0.99


def is_named(cell, function):
    """What a slow processor is late with is shown as lost, what is the kernel's as hidden."""
    rest = cell.col.counted("[lost]") + cell.col.counted("[kernel, hidden]")
    return cell.col.counted(function) > 0.9 * (cell.col.total - rest) > 0.3 * cell.col.total


def named_shares(cell):
    told = re.search(r"sixty ([\d.]+) thirty ([\d.]+) ten ([\d.]+)", cell.text)
    found = cell.shares_of(["sixty", "thirty", "ten"])
    assert all(abs(one - float(true)) < 0.03 for one, true in zip(found, told.groups())), (found, cell.text)
    lost = cell.col.counted("[lost]") + cell.col.counted("[kernel, hidden]")
    assert sum(map(cell.col.counted, ("sixty", "thirty", "ten"))) > 0.85 * cell.col.total - lost, cell.text


# ---- What must hold

def test_a_launched_command_has_its_stacks_shares_and_time(guest):
    cell = guest.cells["launch"]
    assert cell.status == 0, cell.text
    named_shares(cell)
    true_total(guest, cell)
    stacks = {tuple(stack.frames[-2:]) for stack in cell.col.stacks if stack.frames[-1] in ("sixty", "thirty", "ten")}
    assert stacks == {("main", "sixty"), ("main", "thirty"), ("main", "ten")}, stacks
    assert all(stack.frames[0] == "_start" for stack in cell.col.stacks if "main" in stack.frames), cell.text
    assert guest.cells["nothing"].status == 3


def test_threads_shorter_than_a_period_are_sampled_in_bursts(guest):
    cell = guest.cells["requests"]
    share, seconds = map(float, re.search(r"seventy ([\d.]+) seconds ([\d.]+)", cell.text).groups())
    seventy, thirty = cell.col.counted("seventy") / 99, cell.col.counted("thirty") / 99
    lost = cell.col.counted("[lost]") / 99
    print(guest.name, f"{seventy:.2f} {thirty:.2f} lost {lost:.2f} of {seconds} s, share {share}")
    # In an emulated machine starting a thread takes as long as its work, and a sample longer than the bursts' period of
    # 0.1 ms: that they are sampled is seen here, how the shares come out on real processors (test_bursts.py).
    assert cell.status == 0 and seventy + thirty > 0.35 * seconds and lost < 0.1 * seconds, cell.text
    assert min(seventy, thirty) > 0.05 * seconds, (seventy, thirty, share)
    truth = seconds - guest.cells["nothing"].cpu
    # Its last moments are counted as those before them, in which pillion may have taken the only processor for itself.
    assert profiler.within(cell.col.seconds(99), truth, 0.1), (cell.col.seconds(99), truth, cell.text)


def test_threads_of_a_running_process_are_taken_in_all(guest):
    cell = guest.cells["attach"]
    assert cell.status == 0, cell.text
    truth = cell.cpu - cell.before
    assert truth > 0.5 and profiler.within(cell.seconds(), truth, 0.03, 3 * TICK), (cell.seconds(), truth, cell.text)
    assert cell.col.share("thread_work") > 0.9 and cell.col.share("burn") > 0.85, cell.text
    assert "worker" in cell.col.comms(), cell.col.comms()


def test_where_the_kernel_ends_a_whole_container_the_profiler_keeps_away(guest):
    """44 of 48 MB are the program's, and memory.oom.group is set: profiling ends, the program goes on."""
    cell = guest.cells["group"]
    assert cell.status == 5 and "memory.oom.group ends all of it" in cell.said, cell.text
    assert "events oom_kill 0" in cell.text.splitlines() and cell.col.total > 0, cell.text


def test_paranoid_3_without_rights_is_named_and_all_time_is_counted(guest):
    cell = guest.cells["paranoid3"]
    assert re.search("paranoid 3$", guest.text.splitlines()[0]), guest.text[:200]
    assert re.search(r"EACCES: kernel.perf_event_paranoid\); set kernel.perf_event_paranoid to 2", cell.said), cell.text
    assert is_counted_only(cell), cell.text
    assert "worker" in cell.col.comms()
    true_total(guest, cell, POLL)
    # Where nobody but pillion waits for the command, its last moment is counted as well.
    cell = guest.cells["counted"]
    assert is_counted_only(cell), cell.text
    truth = float(re.search(r"seconds ([\d.]+)", cell.text)[1])
    assert profiler.within(cell.seconds(), truth, 0.03, TICK), (cell.seconds(), truth, cell.text)


def test_paranoid_2_without_rights_names_user_code(guest):
    cell = guest.cells["paranoid2"]
    assert cell.status == 0, cell.text
    named_shares(cell)
    true_total(guest, cell)
    assert not [frame for frame in cell.col.frames() if frame.endswith("_[k]")], cell.text


def test_64_kib_of_locked_memory_are_enough_for_one(guest):
    cell = guest.cells["alone"]
    assert cell.status == 0 and is_named(cell, "spin"), cell.text
    assert "lock" not in cell.said, cell.said


def test_rings_that_another_profiler_makes_small_are_told_with_the_arithmetic(guest):
    cell = guest.cells["short"]
    assert re.search(r"perf rings have 1 x \d+ KiB instead of 1 x \d+ KiB, .*: uid 1000 may lock 1 x 516 KiB in all its processes together "
                     r"\(kernel.perf_event_mlock_kb\) and 16 KiB in each of them", cell.said), cell.text
    assert cell.status == 0 and is_named(cell, "spin"), cell.text
    true_total(guest, cell)
    assert "lock" not in " ".join(re.findall(r"^other (.*)$", cell.text, re.M)), cell.text


def test_no_locked_memory_at_all_is_told_with_the_arithmetic_and_time_is_counted(guest):
    """The first holds 516 KiB of the user's and more of its own: 16 are left, and the smallest ring takes 36."""
    cell = guest.cells["refused"]
    assert re.search(r"cannot lock memory for perf rings of 1 x 36 KiB \(EPERM\): uid 1000 may lock 1 x 516 KiB in all its "
                     r"processes together \(kernel.perf_event_mlock_kb\) and 16 KiB in each of them \(ulimit -l\), and other processes hold "
                     r"more than 496 KiB of it", cell.said), cell.text
    true_total(guest, cell, POLL)
    assert is_counted_only(cell), cell.text


def test_a_hardware_event_is_sampled_or_named_as_absent(guest):
    """Only the emulated Cortex-A57 has a counting unit. CPU time is sampled in any case."""
    if "event" not in guest.cells:
        pytest.skip("this pillion samples no other events (-e)")
    cell = guest.cells["event"]
    named_shares(cell)
    true_total(guest, cell)
    if guest.arch == "aarch64":
        shares = [cell.pprof.share(name, "cycles") for name in ("sixty", "thirty", "ten")]
        assert cell.pprof.total("cycles") > 0, cell.text
        assert all(abs(one - true) < 0.08 for one, true in zip(shares, (0.6, 0.3, 0.1))), (shares, cell.text)
    else:
        assert re.search(r"cycles cannot be sampled: this machine has no such hardware counter \(ENOENT\)", cell.said), cell.text


YAMA = {  # scope: what reads a word of a process of its own user; root reads with SYS_PTRACE
    0: {"child": "read", "sibling": "read", "root": "read"},
    1: {"child": "read", "sibling": "1: only its parents", "root": "read"},
    2: {"child": "2: only processes with SYS_PTRACE", "sibling": "2: only processes with SYS_PTRACE", "root": "read"},
    3: {"child": "3: no process", "sibling": "3: no process", "root": "3: no process"},
}


@pytest.mark.parametrize("scope", YAMA)
def test_memory_is_read_as_far_as_yama_allows_and_the_scope_is_named(guest, scope):
    told = dict(re.findall(rf"^{scope} (\w+) (.*)$", guest.cells["yama"].text, re.M))
    for who, expected in YAMA[scope].items():
        if expected == "read":
            assert told[who] == "read", told
        else:
            assert re.match(rf"refused: cannot read the memory of pid \d+ \((EPERM|EACCES)\): "
                            rf"kernel.yama.ptrace_scope is {expected}", told[who]), told


def test_python_is_read_without_perf_and_where_yama_forbids_it_that_is_said(guest):
    if guest.name not in PYTHONS:
        pytest.skip("no Python in this guest; it is in others")
    read, refused = guest.cells["python"], guest.cells["python-yama"]
    stacks = pystacks.of_col(types.SimpleNamespace(windows=[read.col]))
    # Until its interpreter is known, which takes a slow processor a while, its time is only counted.
    of_python = [stack for stack in stacks if stack.python]
    turns = sum(stack.count for stack in of_python if "turns" in [frame.name for frame in stack.python])
    assert turns > 0.9 * sum(stack.count for stack in of_python) > 0.1 * read.col.total > 0, read.text
    for stack in stacks:
        names = [frame.name for frame in stack.python]
        assert names == [] or names[:2] == ["<module>", "main"] or "torn" in str(stack.frames), stack
    assert "kernel.yama.ptrace_scope is 1" in refused.said, refused.text
    assert refused.col.total > 0 and not [f for f in refused.col.frames() if f.endswith("_[p]")], refused.text


STOPPED = {  # scope: whose native code brief stops show; of the others the sentence names what would
    0: {"child": "", "sibling": "", "root": ""},
    1: {"child": "", "sibling": "1: only its parents and processes with SYS_PTRACE may; start the program with pillion", "root": ""},
    2: {"child": "2: only processes with SYS_PTRACE may; add SYS_PTRACE", "sibling": "2: only processes with SYS_PTRACE may", "root": ""},
    3: dict.fromkeys(("child", "sibling", "root"), "3: no process may until the next boot"),
}


def test_brief_stops_show_native_code_as_far_as_yama_allows_and_the_scope_is_named(guest):
    stopped = 0
    for scope in map(int, SCOPES.get(guest.name, "0")):
        for who, refused in STOPPED[scope].items():
            cell = guest.cells[f"stops-{scope}-{who}"]
            assert f"kernel.yama.ptrace_scope is {refused}" in cell.said if refused else "may not" not in cell.said, cell.text
            if refused:
                assert is_counted_only(cell) and "EMPTY" in cell.said, cell.text
                continue
            # What comes before the first look at a command's mappings is counted only: on a machine that is emulated and busy a
            # cell may be over by then.
            stops = re.search(r"stops=(\d+)/", cell.said)
            stopped += bool(stops)
            if not stops:
                assert "EMPTY" in cell.said and is_counted_only(cell), cell.text
                continue
            found = cell.shares_of(["sixty", "thirty", "ten"])
            few = int(stops[1]) < 100  # where a round outlasts the catcher's turn
            off = [abs(one - true) - max(0.08, profiler.by_chance(true, int(stops[1]))) for one, true in zip(found, (0.6, 0.3, 0.1))]
            assert few or max(off) < 0, (found, cell.text)
            assert sum(map(cell.col.counted, ("sixty", "thirty", "ten"))) > 0.6 * cell.col.total, cell.text
            assert float(re.search(r"stacks=([\d.]+)%", cell.said)[1]) > 99, cell.text
    assert stopped, [cell.said for cell in guest.cells.values()]


def test_goroutines_have_whole_stacks_and_their_labels(guest):
    """A Go program for AArch64, stripped: it keeps frame pointers a word below SP, where a copied stack has nothing."""
    if "go" not in guest.cells:
        pytest.skip("no Go program in this guest" + ("; it is in another" if guest.name not in GOS else ": no go here"))
    cell = guest.cells["go"]
    golabels.check(cell.pprof, re.search(r"^\d{10,} \d{10,}$", cell.text, re.M)[0], least=5)
    assert golabels.share_with_callers((sample.frames, sample.values[0]) for sample in cell.pprof.samples) > 0.98, cell.text
    assert float(re.search(r"stacks=([\d.]+)%", cell.said)[1]) > 85, cell.text

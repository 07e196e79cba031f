"""Many CPUs, some of which go and come: in an emulated machine with eight.

One boot runs all cells and prints what came of them; the tests judge that. The machine has fewer real CPUs than the
guest believes, and what is missing passes for CPU time there, in which the sampling clock stands still: so there is
some [lost], and shares are as good as what is left of the samples.
"""
import functools
import re
import types

import pytest

from lab import col, emulate, kernel, root as roots

pytestmark = [pytest.mark.net, pytest.mark.root, pytest.mark.measures]

CPUS, HZ = 8, 99
SCRIPT = """
PILLION="/pillion -f 99 --max-cpu 100 --format col -o /tmp/o"
cpu=/sys/devices/system/cpu
cell() { rm -rf /tmp/o /tmp/said /tmp/true; mkdir -m 777 /tmp/o; echo "cell $1"; }
until_it() { for i in $(seq 2000); do eval "$1" && break; sleep 0.05; done; }
told() {
    until_it '[ -e /tmp/o/last_profile.col ]'
    sed 's/^/said /' /tmp/said
    sed 's/^/true /' /tmp/true
    echo "begin col"
    cat /tmp/o/last_profile.col
    echo
    echo "end col"
}
# A command beside the profiler, which is there before its threads begin.
attached() {
    sh -c 'kill -STOP $$; exec /spread "$@"' sh "$@" >/tmp/true &
    command=$!
    until_it 'grep -q "State:.T" /proc/$command/status'
    $PREFIX $PILLION -p $command -d 60 2>/tmp/said &
    until_it 'grep -q profiles /tmp/said'
    kill -CONT $command
}
echo "cpus $(cat $cpu/online)"

cell spread
( $PILLION --launch init -- /spread 0 1 0.9 4 0.45 6 0.15 >/tmp/true 2>/tmp/said; echo "status $?" ) &
until_it 'pidof spread >/dev/null'
sleep 0.2
for pid in $(pidof pillion); do echo "descriptors $(ls /proc/$pid/fd | wc -l)"; done
wait
told

cell deep
( $PILLION --launch init -- /spread 40 1 1.2 4 1.2 6 1.2 >/tmp/true 2>/tmp/said; echo "status $?" ) &
until_it 'pidof spread >/dev/null'
sleep 1
for pid in $(pidof pillion); do echo "threads $(ls /proc/$pid/task | wc -l)"; done
wait
told

cell offline
attached 0 1 30 4 0.9 6 0.2
sleep 0.2
echo 0 >$cpu/cpu4/online
echo "online $(cat $cpu/online)"
until_it 'grep -q off-line /tmp/said'
echo 1 >$cpu/cpu4/online
sleep 0.3
kill -TERM $command
wait
told

cell late
echo 0 >$cpu/cpu7/online
$PILLION --launch init -- sh -c "echo 1 >$cpu/cpu7/online; exec /spread 0 7 0.5" >/tmp/true 2>/tmp/said
told

cell new
for each in 4 5 6 7; do echo 0 >$cpu/cpu$each/online; done
$PILLION --launch init -- sh -c "echo 1 >$cpu/cpu5/online; exec /spread 0 5 1.3 1 0.4" >/tmp/true 2>/tmp/said
told
for each in 4 6 7; do echo 1 >$cpu/cpu$each/online; done

cell cpuset
mkdir /cg
mount -t cgroup2 none /cg && echo +cpuset >/cg/cgroup.subtree_control && mkdir /cg/few &&
    echo 0-3 >/cg/few/cpuset.cpus && echo 0 >/cg/few/cpuset.mems && echo "few $(cat /cg/few/cpuset.cpus.effective)"
echo 'echo $$ >/cg/few/cgroup.procs; exec "$@"' >/in-few
PREFIX="sh /in-few"
attached 0 1 0.6 5 0.3 6 0.3
until_it 'pidof pillion >/dev/null'
echo "allowed $(sed -n 's/Cpus_allowed_list:.//p' /proc/$(pidof pillion | cut -d ' ' -f 1)/status)"
wait
told

# Nothing in the purse that all of a user's processes share: only what the process itself may lock.
echo 0 >/proc/sys/kernel/perf_event_mlock_kb
echo 1 >/proc/sys/kernel/perf_event_paranoid
chmod 755 / /pillion /spread
as_user() { ( ulimit -l $1; /ranked 1000 nice 0 $PILLION --launch init -- /spread 0 1 0.4 >/tmp/true 2>/tmp/said ); told; }
cell little
as_user 1024
cell refused
as_user 256
exit 0
"""


class Cell:
    def __init__(self, text):
        self.text = text
        self.said = " ".join(re.findall(r"^said (.*)$", text, re.M))
        true = " ".join(re.findall(r"^true (.*)$", text, re.M))
        self.true = {name: float(seconds) for name, seconds in re.findall(r"(\w+) ([\d.]+)", true)}
        self.all = self.true.pop("all", 0)

    @functools.cached_property
    def col(self):
        written = re.search(r"^begin col\n(.*)\nend col$", self.text, re.M | re.S)
        assert written, self.text
        return col.Col(written[1])

    def most(self, name):
        return max(map(int, re.findall(rf"^{name} (\d+)$", self.text, re.M)), default=0)

    def has_all_time(self):
        """What the kernel says the threads took, and at most what the process did, and ending it where that is slow. Its
        last moments are told by samples alone, of which some are missing."""
        found, truth = self.col.total / HZ, sum(self.true.values())
        least = (0.95 - 0.3 * self.col.share("[lost]")) * truth - 0.1
        assert truth > 0.3 and least < found < 1.1 * self.all + 1, (truth, self.text)

    def has_shares(self):
        named = {name: self.col.counted(name) for name in self.true}
        found, truth = max(sum(named.values()), 1), sum(self.true.values())
        for name, seconds in self.true.items():
            off = abs(named[name] / found - seconds / truth)
            assert named[name] > 0 and off < 0.1 + 0.5 * self.col.share("[lost]"), (name, named, self.text)

    def has_whole_stacks(self):
        cut = sum(stack.count for stack in self.col.stacks if "[truncated]" in stack.frames and set(stack.frames) & set(self.true))
        assert cut <= 0.05 * self.col.total, self.text


@pytest.fixture(scope="module")
def cells(pillion, repository):
    reason = kernel.missing()
    if reason:
        pytest.skip(reason)
    try:
        image = kernel.kernel("bookworm")
    except roots.Unreachable as error:
        pytest.skip(f"tier net: no kernel: {error}")
    programs = repository / "tests" / "live" / "programs"
    files = [*(emulate.program(programs / f"{name}.c", emulate.HERE) for name in ("spread", "ranked")), pillion]
    status, text = kernel.boot(image, SCRIPT, files, arguments="cryptomgr.notests=1", processors=CPUS, timeout=300)
    assert status == 0 and "cpus 0-7\n" in text, text
    return types.SimpleNamespace(**{part.split("\n", 1)[0]: Cell(part) for part in text.split("\ncell ")[1:]})


def test_threads_on_three_of_eight_cpus_are_all_there(cells):
    cell = cells.spread
    cell.has_all_time()
    cell.has_shares()
    cell.has_whole_stacks()
    assert "status 0" in cell.text, cell.text


def test_a_command_costs_a_descriptor_for_each_cpu_and_its_ring(cells):
    """Two for each, and what a profiler holds anyway, files that are open for a moment included."""
    assert 2 * CPUS <= cells.spread.most("descriptors") <= 2 * CPUS + 16, cells.spread.text


def test_deep_stacks_get_a_catcher_for_each_cpu_and_no_more(cells):
    cell = cells.deep
    cell.has_all_time()
    cell.has_shares()
    assert cell.most("threads") <= 3 + CPUS, cell.text


def test_a_cpu_that_goes_and_comes_back_is_told_and_takes_no_samples_along(cells):
    cell = cells.offline
    assert "online 0-3,5-7" in cell.text, cell.text
    assert "1 of 8 CPUs is off-line now" in cell.said, cell.text
    assert "came on-line" not in cell.said, cell.text
    cell.has_all_time()
    cell.has_shares()


def test_what_runs_on_a_cpu_that_was_off_line_at_first_is_sampled(cells):
    """One of eight: it may come back, so it has a ring."""
    cell = cells.late
    cell.has_all_time()
    assert cell.col.counted("first") > 0 and "came on-line" not in cell.said, cell.text


def test_a_cpu_without_a_ring_is_told_and_its_time_counted(cells):
    """Four of eight are off-line: rings for these would cost too much, and there is none when one of them comes."""
    cell = cells.new
    assert "CPU 5 came on-line after the profiler began" in cell.said, cell.text
    assert "took the right" not in cell.said, cell.text
    cell.has_all_time()
    assert cell.col.counted("first") == 0 < cell.col.counted("second"), cell.text
    assert cell.col.counted("[lost]") / HZ > 0.8 * cell.true["first"], cell.text


def test_a_profiler_that_may_not_use_a_cpu_samples_what_runs_there(cells):
    cell = cells.cpuset
    assert "few 0-3\n" in cell.text and "allowed 0-3\n" in cell.text, cell.text
    assert "took the right" not in cell.said, cell.text
    cell.has_all_time()
    cell.has_shares()
    cell.has_whole_stacks()


def test_rings_for_all_cpus_fit_a_mebibyte_and_where_they_do_not_that_is_told(cells):
    """Eight rings of 64 KiB and a page take 544 KiB, and a second set of 32 KiB 288; the smallest of the first alone 288."""
    cells.little.has_all_time()
    assert cells.little.col.counted("first") > 0 and "lock" not in cells.little.said, cells.little.text
    assert "cannot lock memory for perf rings of 8 x 36 KiB (EPERM)" in cells.refused.said, cells.refused.text
    cells.refused.has_all_time()
    assert cells.refused.col.counted("first") == 0, cells.refused.text

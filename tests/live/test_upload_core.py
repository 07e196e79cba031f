"""A profiler that knows a secret and is killed leaves no core: seen in a machine of its own, whose core_pattern may be set.

The control is the same program with the same text where it is no secret: its core is there, and holds it.
"""
import re

import pytest

from lab import kernel, root as roots

pytestmark = [pytest.mark.net, pytest.mark.root]

SCRIPT = """
chmod 755 /pillion
S=SECRET
S=$S-5d1c77e2
mkdir -p /cores
cd /cores
ulimit -c unlimited
printf '#!/bin/sh\\ncat >/cores/piped.$1\\n' >/catch
chmod 755 /catch
sleep 1000 &
idle=$!
until_it() { for i in $(seq 400); do eval "$1" && break; sleep 0.05; done; }
# NAME SIGNAL COMMAND...: killed once it profiles, and what that left
killed() {
    name=$1 signal=$2
    shift 2
    rm -f /cores/* /tmp/said  # what the one before said is none of its words
    ( exec "$@" -p $idle -d 600 -c -o /tmp/o 2>/tmp/said ) &
    pid=$!
    until_it 'grep -qs "profiles pid" /tmp/said'
    kill -USR1 $pid
    sleep 0.3
    rm -f /tmp/token
    echo "$name limit $(grep 'core file' /proc/$pid/limits)"
    kill -$signal $pid
    wait $pid
    echo "$name status $?"
    sleep 0.2
    until_it '! pidof catch cat >/dev/null'
    for file in /cores/*; do
        [ -e "$file" ] && echo "$name core $file $(grep -c "$S" $file)"
    done
    find / /tmp /dev/shm -xdev -type f -size +0 -exec grep -l "$S" {} \\; 2>/dev/null | sed "s,^,$name holds ,"
    echo "$name end"
}
upload="-u --backend http --server-host http://127.0.0.1:9/in --spool-dir /tmp/spool"
echo core >/proc/sys/kernel/core_pattern
killed control-file ABRT /pillion -S $S
rm -rf /tmp/o
killed option-file ABRT /pillion $upload --token $S
killed environment-file SEGV env PILLION_TOKEN=$S /pillion $upload
echo '|/catch %p' >/proc/sys/kernel/core_pattern
killed control-pipe ABRT /pillion -S $S
rm -rf /tmp/o
printf '%s\\n' $S >/tmp/token
killed file-pipe SEGV /pillion $upload --token-file /tmp/token
kill -9 $idle
exit 0
"""
ABORTED, SEGMENTED = 128 + 6, 128 + 11


@pytest.fixture(scope="module")
def told(pillion):
    reason = kernel.missing()
    if reason:
        pytest.skip(reason)
    try:
        image = kernel.kernel("bookworm")
    except roots.Unreachable as why:
        pytest.skip(str(why))
    status, text = kernel.boot(image, SCRIPT, [pillion], arguments="cryptomgr.notests=1", timeout=400)
    assert status == 0, text
    return text


@pytest.mark.parametrize("way", ["file", "pipe"])
def test_the_same_text_that_is_no_secret_is_in_a_core(told, way):
    assert f"control-{way} status {ABORTED}" in told, told
    (count,) = re.findall(rf"^control-{way} core \S+ (\d+)$", told, re.M)
    assert int(count) > 0 and re.search(rf"^control-{way} limit .*unlimited +unlimited", told, re.M), told


@pytest.mark.parametrize("name, status", [("option-file", ABORTED), ("environment-file", SEGMENTED), ("file-pipe", SEGMENTED)])
def test_a_profiler_that_knows_a_secret_leaves_no_core_and_no_trace_of_it(told, name, status):
    """Where the kernel writes cores itself, and where it hands them to a program."""
    assert f"{name} status {status}" in told, told
    assert re.search(rf"^{name} limit Max core file size +1 +1 ", told, re.M), told
    assert re.findall(rf"^{name} (?:core|holds) .*$", told, re.M) == [], told
    assert f"{name} end" in told

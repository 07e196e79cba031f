"""On other kernels, in an emulated machine: what this machine's kernel cannot show."""
import re

import pytest

from lab import kernel, root as roots, tiers

pytestmark = [pytest.mark.net, pytest.mark.root]

SCRIPT = """
mkdir -p /tmp/out; chmod 777 /tmp/out
echo "kernel $(uname -r) paranoid $(cat /proc/sys/kernel/perf_event_paranoid)"
chmod 755 / /pillion /act
cat > /tmp/as_nobody <<'X'
cd /tmp/out
/pillion --launch init -o /tmp/out -- /act spin 1.5 5
echo "nobody status $?"
X
chmod 755 /tmp/as_nobody
su -s /bin/sh nobody -c 'sh /tmp/as_nobody' || echo failed
for f in $(ls /tmp/out/profile_*.col); do echo "file"; tail -n +2 "$f"; echo; done
rm -f /tmp/out/*
/pillion --launch init -o /tmp/out -- /act spin 1.5 6
echo "root status $?"
for f in $(ls /tmp/out/profile_*.col); do echo "file"; tail -n +2 "$f"; echo; done
"""


def counts(text):
    return [(line.rpartition(" ")[0], int(line.rpartition(" ")[2])) for line in text.splitlines()
            if re.match(r"\d+;.*;act;.* \d+$", line)]


def test_paranoid_3_of_a_real_kernel(pillion, program):
    """Debian's 6.1 starts with level 3: refused without rights (named so), everything as root."""
    if tiers.tool_missing("qemu-system-x86_64"):
        pytest.fail("qemu-system-x86_64 is missing; run make setup")
    try:
        image = kernel.kernel("bookworm")
    except roots.Unreachable as error:
        pytest.skip(f"tier net: {error}")
    status, text = kernel.boot(image, SCRIPT, [pillion, program("act", "-static")])
    assert status == 0, text
    assert re.search(r"kernel 6\.1\.\S+ paranoid 3", text), text
    nobody, root = text.split("nobody status 5")
    assert re.search(r"EACCES.*perf_event_paranoid", nobody), nobody
    refused, allowed = counts(root.split("root status 6")[0]), counts(root.split("root status 6")[1])
    assert refused and allowed, text
    assert all(re.search(r"\[native, no perf\]|\[kernel, hidden\]", stack) for stack, _ in refused), text
    # An emulated processor is late with its timer: what it loses is shown as such.
    named = sum(n for stack, n in allowed if ";main;deed_spin" in stack)
    lost = sum(n for stack, n in allowed if stack.endswith("[lost]"))
    assert named > 50 and named + lost > 0.95 * sum(n for _, n in allowed), text
    for found in (refused, allowed):
        assert 100 < sum(n for _, n in found) < 220, text

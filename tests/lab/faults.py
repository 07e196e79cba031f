#!/usr/bin/env python3
"""One system call of the profiler fails, again and again: every call, every plausible error, at every place.

    tests/lab/faults.py --count 3000 [--seed N] [--jobs 2] [-v] [SHAPE...]
    tests/lab/faults.py --only openat:ENOMEM:3 exec          one fault

strace makes the calls fail (-e inject=CALL:error=E:when=N; N+ is the Nth and all after it; it counts in each thread by
itself). Which calls a shape makes, and how often, is learned from a run without faults. The command is a program of two
system calls that the profiler does not make (programs/two_calls.c), so that what fails is never its own; execve, whose
failure is the command's own too, is left out, and so are calls that cannot fail.

Of each run is asked: the command's status and output; an end within 10 s; no death by a signal; a line on standard error
where a file or an upload is missing; no stray file. A finding is printed with the command that shows it again. No
findings are: an EINTR without an end that is waited for without an end (counted); what is silent because writing itself
fails; what stays because removing it fails. TERM ends it with the sums so far. Wants strace, and root for perf events.
"""
import argparse
import collections
import contextlib
import fnmatch
import multiprocessing
import os
import random
import re
import shlex
import signal
import sys
import tempfile
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import compiler, process, webserver

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "live" / "programs"
BOUND_S = 30
PLACES_MOST = 40  # of a call that is made more often, some later places as well
OUTPUT = b"the command's line\n"
STATUS = 5

# What cannot fail (getrandom: not once it has worked, and that is tried), what no library survives at its start or end, and
# what is the command's as well. A futex call that wakes does not fail; made to, it leaves others asleep in any library.
LEFT_OUT = set("""execve exit exit_group rt_sigreturn restart_syscall arch_prctl set_tid_address set_robust_list rseq
    getpid getppid gettid getuid geteuid getgid getegid uname umask pwritev2 sched_yield getpgid getsid rt_sigaction
    rt_sigprocmask futex getrandom""".split())
# Of the C library: no filter refuses them to a program that runs.
BASIC = set("mmap munmap mremap mprotect madvise brk".split())
WAITING = set("""read write writev pread64 open openat openat2 close connect accept4 recvfrom recvmsg sendto sendmsg poll
    ppoll epoll_wait epoll_pwait wait4 waitid flock fcntl nanosleep clock_nanosleep rt_sigtimedwait ioctl
    dup2 dup3""".split())
FILES = set("""read write writev pread64 open openat openat2 close stat lstat fstat newfstatat statx access readlink
    readlinkat getdents64 mkdir rename renameat unlink unlinkat symlink symlinkat flock fsync ftruncate fchmod statfs
    fstatfs lseek""".split())
GROWING = set("write writev pwrite64 open openat mkdir rename renameat symlink symlinkat ftruncate perf_event_open".split())
DESCRIPTORS = set("""open openat openat2 socket socketpair pipe pipe2 dup2 dup3 fcntl perf_event_open signalfd4 eventfd2
    timerfd_create epoll_create1 memfd_create pidfd_open accept4""".split())
BUSY = set("clone fork vfork read recvfrom recvmsg sendto sendmsg write writev mmap perf_event_open fcntl".split())

WRITES = {"write", "writev"}
REMOVES = {"unlink", "unlinkat", "rename", "renameat"}
# Deaths that somebody meant: of a helper that took too long.
MEANT = {"SIGKILL", "SIGTERM", "SIGPIPE"}


def errors_of(call):
    if call == "close":  # it has no other
        return ["EIO", "EINTR"]
    # stat looks at the command's file, and is believed that nobody may.
    found = ["ENOMEM"] if call in BASIC else ["ENOMEM", "EPERM", "ENOSYS"] if call == "stat" else ["ENOMEM", "EPERM", "EACCES", "ENOSYS"]
    for name, calls in (("EINTR", WAITING), ("EIO", FILES), ("ENOSPC", GROWING), ("EMFILE", DESCRIPTORS), ("EAGAIN", BUSY)):
        found += [name] if call in calls else []
    return found


# ---- The shapes: options and what is profiled

class Place:
    """What the runs of one worker share: a server, a process to attach to."""

    def __init__(self):
        process.become_subreaper()
        self.server = webserver.Server(self.answer)
        self.command = compiler.program(PROGRAMS, "two_calls", "-static", "-nostdlib")
        self.busy = None

    @staticmethod
    def answer(connection):
        while connection.request():
            connection.say(200)

    def target(self):
        """A Python program that runs a third of the time, until this worker ends."""
        if self.busy is None:
            code = "import time\ndef inner(n):\n return sum(range(n))\nwhile True:\n inner(100000)\n time.sleep(0.004)\n"
            self.busy = process.start(["setpriv", "--pdeathsig", "KILL", "nice", "/usr/bin/python3", "-c", code])
            process.until(lambda: process.cpu_seconds(self.busy.pid) > 0.1, 20, "it runs")
        return self.busy.pid


def to_server(place, folder):
    return ["-u", "--backend", "http", "--server-host", f"{place.server.url}/{folder.name}", "--spool-dir", folder / "spool"]


def to_nobody(place, folder):
    return ["-u", "--backend", "http", "--server-host", "http://127.0.0.1:9/x", "--spool-dir", folder / "spool"]


def launched(*options):
    return lambda place, folder: [*options, "-o", folder / "out", "--", place.command]


# Name -> (arguments, does it run the command, does it upload, its share of the lot)
SHAPES = {
    "exec": (launched("--launch", "exec"), True, False, 4),
    "init": (launched("--launch", "init"), True, False, 4),
    "perfless": (launched("--launch", "exec", "--perf-mode", "disabled"), True, False, 3),
    "upload": (lambda place, folder: [*to_server(place, folder), "--", place.command], True, True, 3),
    "spool": (lambda place, folder: [*to_nobody(place, folder), "--", place.command], True, True, 2),
    "attach": (lambda place, folder: ["-p", place.target(), "-d", "1", "-o", folder / "out"], False, False, 2),
    "attach-upload": (lambda place, folder: ["-p", place.target(), "-d", "1", *to_server(place, folder)], False, True, 1),
}
FORMATS = ("profile_*.col", "profile_*.pprof", "profile_*.html", "last_profile.col", "last_profile.pprof", "last_flamegraph.html")
EXPECTED = (*FORMATS, "run_*")


def argv_of(place, folder, shape, pillion):
    return [str(a) for a in (pillion, *SHAPES[shape][0](place, folder))]


def run(place, folder, shape, pillion, *tracing):
    """The run below strace: Done or None (it did not end), and strace's log."""
    log = folder / "strace.log"
    argv = ["nice", "prlimit", "--nofile=256", "strace", "-f", "-q", "-o", log, *tracing, *argv_of(place, folder, shape, pillion)]
    started = process.start(argv, cwd=folder, env={"PATH": os.environ["PATH"], "TMPDIR": str(folder), "HOME": str(folder)})
    try:
        started.wait(BOUND_S + (0 if SHAPES[shape][1] else 1))
        done = started.finish(5)
    except TimeoutError:
        below = process.descendants_of(started.pid)
        started.end()
        for pid in {*below, *process.leftovers()}:
            process._kill(pid)
        done = None
    process.leftovers()
    return done, log.read_text(errors="replace") if log.exists() else ""


def learn(place, shape, pillion):
    """{call: the most that one thread makes of it}."""
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        done, log = run(place, Path(name), shape, pillion)
        verdict = judge(place, Path(name), shape, done, log, "none")
        assert not verdict, f"{shape} without a fault: {verdict}\n{done}"
    counts = collections.Counter(re.findall(r"^(\d+) +(\w+)\(", log, re.M))
    most = collections.Counter()
    for (_, call), count in counts.items():
        most[call] = max(most[call], count)
    return {call: count for call, count in most.items() if call not in LEFT_OUT}


# ---- What is asked of a run

def explained(text):
    """Lines beyond those of a run where all is well."""
    usual = re.compile(r"pillion \S+: .*profiles|pillion: \d\d:\d\d cpu=|pillion: uploads: |  ")
    return [line for line in text.splitlines() if not usual.match(line)]


def missing(place, folder, shape):
    if SHAPES[shape][2]:
        sent = any(f"/{folder.name}" in head.split("\r\n")[0] for head in place.server.requests)
        kept = [p for p in (folder / "spool").rglob("*") if p.is_file() and p.name != "lock"]
        return [] if sent or kept else ["the upload"]
    return [name for name in FORMATS if not any(p.stat().st_size for p in (folder / "out").glob(name) if p.exists())]


def is_expected(path):
    return any(fnmatch.fnmatch(path.name, name) for name in EXPECTED) and path.exists()


def strays(folder, said):
    found, instead = [], "windows are written to files instead" in said
    for path in folder.rglob("*"):
        inside = path.relative_to(folder)
        known = str(inside) in ("strace.log", "out", "spool") or inside.parts[0] == "spool" and not path.name.endswith(".tmp")
        known = known or inside.parts[0] == "out" and is_expected(path) or len(inside.parts) == 1 and instead and is_expected(path)
        found += [] if known else [str(inside)]
    return found


def judge(place, folder, shape, done, log, call):
    """What is wrong, by kind: {} when nothing is."""
    found = {}
    deaths = set(re.findall(r"\+\+\+ killed by (\w+)", log)) - MEANT
    if deaths:
        found["crash"] = ", ".join(sorted(deaths))
    if done is None:
        return {**found, "hang": f"it had not ended after {BOUND_S} s"}
    if SHAPES[shape][1] and (done.status, done.stdout) != (STATUS, OUTPUT):
        found["command"] = f"status {done.status}, output {done.stdout!r}"
    gone = missing(place, folder, shape)
    if gone and not explained(done.err) and call not in WRITES:
        found["silent"] = "nothing said of " + ", ".join(gone)
    left = strays(folder, done.err)
    if left and call not in REMOVES:
        found["stray"] = ", ".join(left)
    return found


# ---- The lot

def cases_of(shape, counts):
    """{call: every (error, place)}"""
    found = {}
    for call, most in counts.items():
        places = [n for n in range(1, most + 1) if n <= PLACES_MOST or n % 17 == 0]
        found[call] = [(shape, call, error, f"{n}{rest}") for error in errors_of(call) for n in places for rest in ("", "+")]
    return found


def draw(lot, learned, count):
    """Calls in turn, so that a rare one has as many faults as one that is made a thousand times."""
    drawn = []
    share = sum(SHAPES[shape][3] for shape in learned)
    for shape, counts in learned.items():
        queues = list(cases_of(shape, counts).values())
        for queue in queues:
            lot.shuffle(queue)
        wanted, here = round(count * SHAPES[shape][3] / share), []
        while len(here) < wanted and any(queues):
            here += [queue.pop() for queue in queues if queue]
        drawn += here[:wanted]
    lot.shuffle(drawn)
    return drawn


PLACE = None


def begin():
    global PLACE
    PLACE = Place()


def turn(job):
    pillion, (shape, call, error, at) = job
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        folder = Path(name)
        tracing = ["-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={at}"]
        done, log = run(PLACE, folder, shape, pillion, *tracing)
        found = judge(PLACE, folder, shape, done, log, call)
        argv = shlex.join(["strace", "-f", *tracing, *argv_of(PLACE, folder, shape, pillion)])
        return job[1], log.count("(INJECTED)"), found, argv, done and done.err


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", help="CALL:ERROR:PLACE")
    parser.add_argument("--pillion", type=Path, default=ROOT / "build" / "out" / "x86_64" / "pillion")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("shapes", nargs="*", default=list(SHAPES), metavar="SHAPE")
    options = parser.parse_args(argv)
    begin()
    if options.only:
        drawn = [(shape, *options.only.split(":")) for shape in options.shapes]
    else:
        learned = {shape: learn(PLACE, shape, options.pillion) for shape in options.shapes}
        drawn = draw(random.Random(options.seed), learned, options.count)
    begun, sums, calls, endless, done = time.monotonic(), collections.Counter(), set(), 0, 0
    with multiprocessing.Pool(options.jobs, begin) as pool, contextlib.suppress(KeyboardInterrupt):
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # the sums so far
        for case, injected, found, command, said in pool.imap_unordered(turn, [(options.pillion, case) for case in drawn]):
            done += 1
            sums["injected"] += injected > 0
            calls.add(case[1])
            if set(found) == {"hang"} and case[2] == "EINTR" and case[3].endswith("+"):
                endless += 1
                found = {}
            sums.update(found.keys())
            if found or options.verbose:
                print(f"{' '.join(case)}: {found}\n  {command}\n  {said}", flush=True)
    print(f"{done} faults over {len(calls)} calls in {time.monotonic() - begun:.0f} s, {sums['injected']} came to pass: " +
          ", ".join(f"{sums[kind]} {kind}" for kind in ("hang", "crash", "command", "silent", "stray")) +
          f"; {endless} waits that an endless EINTR keeps", flush=True)
    return any(sums[kind] for kind in ("hang", "crash", "command", "silent", "stray"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

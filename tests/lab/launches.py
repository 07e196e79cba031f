#!/usr/bin/env python3
"""Launches in odd set-ups, each bare, below `--launch exec` and below `--launch init`: the command cannot tell.

    tests/lab/launches.py --count 10000 [--seed N] [--jobs 2] [-v] [SET-UP...]

A set-up is a row of SETUPS: what stands before the command, and what is in place of it. Compared are exit status, output
and what tell.c tells of itself (descriptors, signals, limits, rights, environment, /proc/self/status). Left out is what
the shape says of itself: an init's child has its death signal (docs/architecture.md). Nothing may be left behind: no
process, no file but a profile's. Standard error may have lines of pillion's, and else is the bare one's. What a bare
command does not do twice in the same way says nothing. Wants root; a set-up that this machine has not is skipped, said.
"""
import argparse
import collections
import contextlib
import difflib
import fnmatch
import multiprocessing
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import compiler, process
from lab.profiler import NOBODY

ROOT = Path(__file__).resolve().parents[2]
MODES = ("exec", "init")
BOUND_S = 15
# What the shape itself makes otherwise: it has a parent that stays, which dies with it, has its timers and other children.
OWN_OF_INIT = (r"death signal \d+ ", r"leads group .*", r"timer .*\n", r"children \w+")
FILES = ("profile_*", "last_*", "run_*")


def shell(script):
    return ["sh", "-c", script + '; exec "$@"', "sh"]


def nobody(*more):
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *more]


def mounts(script):
    return ["unshare", "--mount", *shell(script)]


def refuse(answer, calls):
    return ["REFUSE", answer, calls, "--"]


def python(code):
    return ["/usr/bin/python3", "-S", "-c", f"import os, sys, signal, resource, ctypes\n{code}\nos.execvp(sys.argv[1], sys.argv[1:])"]


def preset(code):
    return python("libc = ctypes.CDLL(None)\n" + code)


TELL = ["TELL", "SOCKET"]
LONG = "x" * 100000
KILLED_FOR = """perf_event_open process_vm_readv ptrace kcmp pidfd_open pidfd_getfd memfd_create close_range setsid clone3
    timerfd_create epoll_create1 signalfd4 statx renameat2 sched_setaffinity sched_setattr socketpair clone fork access""".split()

# Name -> what stands before, the command
SETUPS = {"plain": ([], TELL)}
for closed in ("0", "1", "2", "01", "02", "12", "012"):
    SETUPS[f"closed {closed}"] = (shell("exec " + " ".join(f"{fd}>&-" for fd in closed)), TELL)
for what, script in {
        "input is a folder": "exec < /", "input is a file": "exec < /etc/passwd; read x", "output is full": "exec > /dev/full",
        "error is full": "exec 2> /dev/full", "descriptors 3 to 9": "exec 3</dev/null 4</dev/null 5>&1 6>&2 7</ 8</dev/zero 9<&0",
        "descriptor 3 is a copy of error": "exec 3>&2 2>&-", "input is its output": "exec <&1"}.items():
    SETUPS[what] = (shell(script), TELL)
SETUPS["descriptors 10 to 200"] = (python("[os.dup2(0, n, inheritable=True) for n in range(10, 200)]"), TELL)
SETUPS["descriptor 1000"] = (python("os.dup2(0, 1000, inheritable=True)"), TELL)
for most in (4, 5, 6, 8, 11, 16, 32, 64, 1024):
    SETUPS[f"nofile {most}"] = (["prlimit", f"--nofile={most}:{most}"], TELL)
for limit in ("as=8000000", "as=16000000", "as=64000000", "as=300000000", "data=1000000", "data=8000000", "stack=65536", "stack=163840",
              "stack=unlimited", "core=0", "core=unlimited", "fsize=0", "fsize=1000", "cpu=1", "memlock=0", "sigpending=0", "msgqueue=0",
              "rss=0", "rttime=1000", "locks=0"):
    SETUPS[f"limit {limit}"] = (["prlimit", f"--{limit}"], TELL)
for most in (2, 20):
    # By a user that has no other process: other workers run as nobody.
    SETUPS[f"nproc {most}"] = (["prlimit", f"--nproc={most}:{most}", "setpriv", "--reuid", "ALONE", "--regid", "ALONE", "--clear-groups"],
                               TELL)
for most in range(1, 11):
    SETUPS[f"pids.max {most}"] = ([f"pids={most}"], TELL)
for most in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 50):
    SETUPS[f"memory.max {most} MB"] = ([f"memory={most}"], TELL)
for call in KILLED_FOR:
    SETUPS[f"killed for {call}"] = (refuse("KILL", call), TELL)
for answer, calls in (("EPERM", "prctl"), ("ENOSYS", "statx,close_range,clone3"), ("EPERM", "fork,clone,socketpair"),
                      ("ENOSYS", "perf_event_open,process_vm_readv,pidfd_open"), ("EPERM", "setsid,signalfd4"), ("ENOSYS", "access")):
    SETUPS[f"{answer} of {calls}"] = (refuse(answer, calls), TELL)
# A process is what tries the calls; one that may not be made is tried by nobody (os/trial.h).
del SETUPS["killed for clone"]
SETUPS["killed for prctl"] = (refuse("KILL", "prctl"), ["TWO"])
SETUPS |= {
    "no /proc": (mounts("umount -l /proc"), TELL),
    "an empty /proc": (mounts("mount -t tmpfs none /proc"), TELL),
    "hidepid=2": (mounts("mount -t proc -o hidepid=2 proc /proc"), TELL),
    "hidepid=2, nobody": (mounts("mount -t proc -o hidepid=2 proc /proc") + nobody(), TELL),
    "a read-only /": (mounts("mount -o remount,bind,ro / 2>/dev/null"), TELL),
    "no /dev": (mounts("mount -t tmpfs none /dev"), TELL),
    "no /sys": (mounts("umount -l /sys 2>/dev/null || mount -t tmpfs none /sys"), TELL),
    "pid 1": (["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"], TELL),
    "pid 1, the old /proc": (["unshare", "--pid", "--fork", "--kill-child"], TELL),
    "a user namespace": (["unshare", "--user", "--map-root-user"], TELL),
    "namespaces of all kinds": (["unshare", "--net", "--ipc", "--uts", "--cgroup"], TELL),
    "nobody": (nobody(), TELL),
    "no new rights": (["setpriv", "--no-new-privs"], TELL),
    "nobody, no new rights": (nobody("--no-new-privs"), TELL),
    "no capability": (["setpriv", "--bounding-set=-all", "--inh-caps=-all"], TELL),
    "ambient capabilities": (nobody("--inh-caps=+net_bind_service", "--ambient-caps=+net_bind_service"), TELL),
    "securebits": (["setpriv", "--securebits=+noroot,+no_setuid_fixup"], TELL),
    "a setuid command": (nobody(), ["SETUID", "SOCKET"]),
    "a setuid command for less": ([], ["SETNOBODY", "SOCKET"]),
    "a setgid command": (nobody(), ["SETGID", "SOCKET"]),
    "a command with capabilities": (nobody("env"), ["CAPABLE", "SOCKET"]),
    "a setuid command, no new rights": (nobody("--no-new-privs"), ["SETUID", "SOCKET"]),
    "arguments of 1.9 MB": ([], [*TELL, *[LONG] * 19]),
    "20,000 arguments": ([], [*TELL, *(str(n) for n in range(20000))]),
    "empty arguments": ([], [*TELL, "", "", "--", "-p", "1"]),
    "an environment of 1 MB": (python(f"[os.environ.__setitem__('V%d' % n, 'y' * 100000) for n in range(10)]"), TELL),
    "no environment": (["env", "-i"], TELL),
    "systemd's variables": (["env", "NOTIFY_SOCKET=/nothing", "LISTEN_FDS=1"], TELL),
    "switched off": (["env", "PILLION_ENABLED=0"], TELL),
    "in PATH": (shell("PATH=$(dirname TELL):$PATH"), ["tell", "SOCKET"]),
    "a folder that is gone": (shell("mkdir gone && cd gone && rmdir ../gone"), TELL),
    "the root as folder": (shell("cd /"), TELL),
    "umask 0": (shell("umask 0"), TELL),
    "umask 777": (shell("umask 777"), TELL),
    "nohup": (["nohup"], TELL),
    "all signals ignored": (["env", "--ignore-signal"], TELL),
    "all signals blocked": (["env", "--block-signal"], TELL),
    "SIGCHLD ignored": (["env", "--ignore-signal=CHLD"], TELL),
    "SIGCHLD blocked": (["env", "--block-signal=CHLD"], TELL),
    "real-time signals blocked": (preset("signal.pthread_sigmask(0, [34, 35, 36, 64])"), TELL),
    "a pending signal": (preset("signal.pthread_sigmask(0, [10]); os.kill(os.getpid(), 10)"), TELL),
    "an alarm": (preset("signal.alarm(300)"), TELL),
    "a timer": (preset("signal.setitimer(signal.ITIMER_PROF, 1000, 5)"), TELL),
    "a subreaper": (preset("libc.prctl(36, 1, 0, 0, 0)"), TELL),
    "a death signal": (["setpriv", "--pdeathsig", "USR1"], TELL),
    "timer slack": (preset("libc.prctl(29, 1000, 0, 0, 0)"), TELL),
    "no huge pages": (preset("libc.prctl(41, 1, 0, 0, 0)"), TELL),
    "keep capabilities": (preset("libc.prctl(8, 1, 0, 0, 0)"), TELL),
    "not dumpable": (preset("libc.prctl(4, 0, 0, 0, 0)"), TELL),
    "children before": (preset("os.fork() == 0 and os._exit(3)"), TELL),
    "a nice 19": (["nice", "-n", "19"], TELL),
    "a nice -10": (["nice", "-n", "-10"], TELL),
    "batch": (["chrt", "--batch", "0"], TELL),
    "idle": (["chrt", "--idle", "0"], TELL),
    "round robin": (["chrt", "--rr", "1"], TELL),
    "idle input": (["ionice", "-c", "3"], TELL),
    "one processor": (["taskset", "-c", "0"], TELL),
    "a personality": (["setarch", "--addr-no-randomize"], TELL),
    "32 bits": (["setarch", "linux32"], TELL),
    "first to go": (["choom", "-n", "900", "--"], TELL),
    "later to go": (["choom", "-n", "1", "--"], TELL),
    "core filter": (shell("echo 7 > /proc/self/coredump_filter"), TELL),
    "a session": (["setsid", "--wait"], TELL),
    "below timeout": (["timeout", "9"], TELL),
    "a job": (["bash", "-mc", '"$@" & wait $!', "bash"], TELL),
    "a job in front": (["bash", "-mc", '"$@"; exit $?', "bash"], TELL),
    "on a terminal": (["script", "-qec", "LINE", "/dev/null"], TELL),  # it takes a line, not words
    "a pipeline": (["bash", "-c", '"$@" | cat; exit ${PIPESTATUS[0]}', "bash"], TELL),
    "no reader": (["bash", "-c", 'exec > >(true); wait $!; exec "$@"', "bash"], TELL),
    "death by a signal": ([], ["sh", "-c", "kill -SEGV $$"]),
    "death by KILL": ([], ["sh", "-c", "echo here; kill -KILL $$"]),
    "not there": (shell("exec 2>&-"), ["/not/there"]),
    "a script": ([], ["SCRIPT", "one", "two"]),
    "a script without #!": (["env"], ["PLAIN", "one", "two"]),
}


# ---- A worker's place

class Place:
    def __init__(self, pillion):
        process.become_subreaper()
        self.folder = Path(tempfile.mkdtemp(prefix="launches-"))
        self.folder.chmod(0o777)
        self.out = self.folder / "out"
        self.pillion = shutil.copy2(pillion, self.folder / "pillion")
        self.words = self.programs()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.socket.bind(self.words["SOCKET"])
        os.chmod(self.words["SOCKET"], 0o777)
        self.socket.setblocking(False)

    def programs(self):
        lab = ROOT / "tests" / "lab"
        words = {"SOCKET": self.folder / "socket", "REFUSE": self.copy(compiler.program(lab, "refuse", "-static"), "refuse")}
        tell = compiler.program(lab, "tell", "-static")
        words["TWO"] = self.copy(compiler.program(ROOT / "tests/live/programs", "two_calls", "-static", "-nostdlib"), "two")
        for word, mode, owner in (("TELL", 0o755, 0), ("SETUID", 0o4755, 0), ("SETNOBODY", 0o4755, NOBODY), ("SETGID", 0o2755, 0),
                                  ("CAPABLE", 0o755, 0)):
            words[word] = self.copy(tell, word.lower())
            os.chown(words[word], owner, 0)
            words[word].chmod(mode)
        subprocess.run(["setcap", "cap_net_raw,cap_sys_ptrace+ep", words["CAPABLE"]], check=False)
        for word, first in (("SCRIPT", "#!/bin/sh\n"), ("PLAIN", "")):
            words[word] = self.folder / word.lower()
            words[word].write_text(first + 'echo "$# $*" "$PWD" "${0##*/}"; exit 7\n')
            words[word].chmod(0o755)
        words["ALONE"] = 100000 + os.getpid()
        return {word: str(value) for word, value in words.items()}

    def copy(self, program, name):
        return Path(shutil.copy2(program, self.folder / name))

    def told(self):
        with contextlib.suppress(BlockingIOError):
            return self.socket.recv(200000).decode("utf-8", "replace")
        return ""


@contextlib.contextmanager
def group(kind, value):
    """The words that put a command below a limit of a control group of its own."""
    name = f"launches-{os.getpid()}"
    old, new = Path("/sys/fs/cgroup", kind), Path("/sys/fs/cgroup")
    at = (old if old.is_dir() else new) / name
    at.mkdir()
    try:
        limit = {"pids": "pids.max", "memory": "memory.limit_in_bytes" if old.is_dir() else "memory.max"}[kind]
        (at / limit).write_text(str(int(value) << 20 if kind == "memory" else value))
        yield shell(f"echo $$ > {at}/cgroup.procs")
    finally:
        for _ in range(200):
            with contextlib.suppress(OSError):
                at.rmdir()
                break
            process.leftovers()
            time.sleep(0.02)


def words_of(place, prefix, command, own):
    """The whole command line, LINE being the words after it in one."""
    named = [place.words.get(word, word) for word in prefix]
    named = [word.replace("TELL", place.words["TELL"]) if "dirname" in word else word for word in named]
    rest = [str(word) for word in (*own, *(place.words.get(word, word) for word in command))]
    if "LINE" in named:
        return ["exec " + " ".join(rest) if word == "LINE" else word for word in named]
    return [*named, *rest]


class Outcome:
    def __init__(self, status, out, err, told, left):
        self.status, self.out, self.err, self.told, self.left = status, out, err, told, left

    def differs(self, bare, mode):
        """What is not as without pillion, in words."""
        found, told = [], without(bare.told, mode)
        if self.status != bare.status:
            found.append(f"status {bare.status} is {self.status}")
        if self.out != bare.out:
            found.append(f"output {bare.out!r} is {self.out!r}")
        if self.told != told:
            lines = difflib.unified_diff(told.splitlines(), self.told.splitlines(), "bare", mode, lineterm="", n=0)
            found += [line[:160] for line in lines if not line.startswith(("---", "+++", "@@"))]
        rest = b"".join(line for line in self.err.splitlines(True) if not line.startswith(b"pillion"))
        if rest != b"".join(line for line in bare.err.splitlines(True) if not line.startswith(b"pillion")):
            found.append(f"error {bare.err!r} is {self.err!r}")
        return found + self.left


def launch(place, name, mode):
    prefix, command = SETUPS[name]
    place.out.mkdir()
    place.out.chmod(0o777)
    own = [] if mode == "bare" else [place.pillion, "-q", "--launch", mode, "-o", place.out, "--"]
    with contextlib.ExitStack() as stack:
        if prefix and re.fullmatch(r"(pids|memory)=\d+", prefix[0]):
            prefix = stack.enter_context(group(*prefix[0].split("=")))
        left = []
        try:
            done = process.run(words_of(place, prefix, command, own), BOUND_S, cwd=place.out)
        except TimeoutError as error:
            ended = process.end_leftovers()
            shutil.rmtree(place.out)
            return Outcome(None, b"", b"", place.told(), [f"did not end: {error}; ended: {ended}"])
        try:
            process.settle(BOUND_S)
        except TimeoutError as error:
            left = [f"left behind: {error}"]
            process.end_leftovers()
        left += [f"left behind: {path.name}" for path in place.out.iterdir()
                 if path.name != "nohup.out" and not any(fnmatch.fnmatch(path.name, one) for one in FILES) or
                 path.name.endswith(".tmp")]
        shutil.rmtree(place.out)
        told = re.sub(rf"launches-{os.getpid()}", "GROUP", place.told())
        return Outcome(done.status, done.stdout, done.stderr, without(told, mode), left)


def without(told, mode):
    """What the shape promises to be otherwise, of the bare one's as of an init's child."""
    return re.sub("|".join(OWN_OF_INIT), "", told) if mode == "init" else told


PLACE = None


def begin(pillion):
    global PLACE
    PLACE = Place(pillion)


def turn(name):
    """Three launches: (set-up, is the bare one steady, [(mode, what differs)])."""
    bare = launch(PLACE, name, "bare")
    found = []
    for mode in MODES:
        outcome = launch(PLACE, name, mode)
        differs = outcome.differs(bare, mode)
        if differs:
            again = launch(PLACE, name, "bare")
            steady = not again.differs(bare, "bare")
            found.append((mode, steady, differs, outcome.err.decode("utf-8", "replace")))
    return name, bare.status, found


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=10000, help="launches below pillion")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--pillion", type=Path, default=ROOT / "build" / "out" / "x86_64" / "pillion")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("setups", nargs="*", default=list(SETUPS), metavar="SET-UP")
    options = parser.parse_args(argv)
    os.nice(10)
    jobs = [name for _ in range(-(-options.count // (len(options.setups) * len(MODES)))) for name in options.setups]
    random.Random(options.seed).shuffle(jobs)
    sums, begun, statuses = collections.Counter(), time.monotonic(), collections.defaultdict(collections.Counter)
    with multiprocessing.Pool(options.jobs, begin, (options.pillion,)) as pool, contextlib.suppress(KeyboardInterrupt):
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # the sums so far
        for name, status, found in pool.imap_unordered(turn, jobs):
            sums["launches"] += len(MODES)
            statuses[name][status] += 1
            for mode, steady, differs, said in found:
                sums["differ" if steady else "unsteady"] += 1
                if steady or options.verbose:
                    once = "" if steady else " (the bare one is not the same twice)"
                    print(f"{name}, {mode}{once}: " + "\n  ".join(differs) + f"\n  said: {said.strip()}", flush=True)
        pool.map(finish, range(options.jobs), 1)
    if options.verbose:
        for name, counts in statuses.items():
            print(f"{name}: {dict(counts)}")
    print(f"{sums['launches']} launches over {len(options.setups)} set-ups in {time.monotonic() - begun:.0f} s: "
          f"{sums['differ']} differ from the bare one, {sums['unsteady']} where the bare one is not the same twice", flush=True)
    return sums["differ"] > 0


def finish(_):
    time.sleep(0.2)  # so that each worker has one
    shutil.rmtree(PLACE.folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

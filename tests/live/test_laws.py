"""The three laws of the house, and what may not be in the repository. Checked on the sources and on the objects."""
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

# Level of each folder of src/; main.c is above all.
LEVELS = {"base": 0, "elf": 1, "profile": 1, "target": 2, "os": 3, "sample": 3, "unwind": 3, "symbol": 3, "runtime": 3,
          "encode": 3, "deliver": 3, "origin": 3, "capture": 4, "cli": 5}
TOP = 6

# Functions of the C library that enter the kernel (or may), by the name an object asks for.
SYSTEM_CALLS = set("""
accept accept4 access acct adjtime adjtimex alarm bind brk capget capset chdir chmod chown chroot clearenv clock
clock_adjtime clock_getres clock_gettime clock_nanosleep clock_settime clone close close_range closedir connect copy_file_range
creat daemon dup dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_wait eventfd execl execle execlp execv execve
execvp execvpe faccessat fallocate fanotify_init fchdir fchmod fchmodat fchown fchownat fclose fcntl fdatasync fdopen fdopendir
fexecve fflush fgetc fgets flock fopen fork forkpty fputc fputs fread freopen fstat fstatat fstatfs fsync ftell ftruncate ftw fseek
futimens fwrite getaddrinfo getc getchar getcwd getdelim getdents getegid geteuid getgid getgroups gethostbyname gethostname
getifaddrs getitimer getline getloadavg getpeername getpgid getpgrp getpid getppid getpriority getrandom getentropy getresgid
getresuid getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid glob if_nametoindex inotify_add_watch
inotify_init inotify_init1 ioctl isatty kill killpg lchown link linkat listen localtime localtime_r lseek lstat madvise
memfd_create mincore mkdir mkdirat mkdtemp mkfifo mknod mkostemp mkstemp mkstemps mktime mlock mlockall mmap mount mprotect mremap
msync munlock munmap nanosleep nftw nice open openat opendir openpty pause pclose perror pipe pipe2 poll popen posix_fadvise
posix_fallocate posix_openpt posix_spawn posix_spawnp ppoll prctl pread preadv printf prlimit process_vm_readv process_vm_writev
pselect ptrace putc putchar puts pwrite pwritev raise read readdir readlink readlinkat readv realpath recv recvfrom recvmmsg
recvmsg remove rename renameat renameat2 rewinddir rmdir scandir scanf sched_getaffinity sched_getcpu sched_getscheduler
sched_setaffinity sched_setscheduler sched_yield select send sendfile sendmmsg sendmsg sendto setegid seteuid setgid setgroups
sethostname setitimer setns setpgid setpgrp setpriority setregid setresgid setresuid setreuid setrlimit setsid setsockopt
setuid settimeofday setvbuf shm_open shm_unlink shutdown sigaction sigaltstack signal signalfd sigpending sigprocmask sigqueue
sigsuspend sigtimedwait sigwait sigwaitinfo sleep socket socketpair splice stat statfs statvfs symlink symlinkat sync sync_file_range syscall
sysconf sysinfo system tcgetattr tcgetpgrp tcsetattr tcsetpgrp tee tempnam tgkill time timegm timer_create timer_delete timer_settime
timerfd_create timerfd_gettime timerfd_settime times tmpfile tmpnam truncate ttyname tzset umask uname ungetc unlink unlinkat
unshare usleep utime utimensat utimes vfork vfprintf fprintf dprintf vdprintf vprintf vmsplice wait wait3 wait4 waitid waitpid
write writev
stdin stdout stderr
""".split())
# Locks and threads are the C library's business; only capture/ starts a thread.
ALLOWED_FOR = {"timegm": "pure arithmetic in musl"}

MUTABLE_ALLOWED = ("main", "cli")


def sources(repository):
    return sorted(p for p in (repository / "src").rglob("*") if p.suffix in (".c", ".h"))


def folder_of(path, base):
    parts = path.relative_to(base).parts
    return parts[0] if len(parts) > 1 else "main"


def level_of(folder):
    return TOP if folder == "main" else LEVELS[folder]


def test_every_folder_of_src_has_a_level(repository):
    found = {p.name for p in (repository / "src").iterdir() if p.is_dir() and any(p.rglob("*.[ch]"))}
    assert found <= set(LEVELS), found - set(LEVELS)


def test_the_root_holds_what_is_known_to_be_there(repository):
    tracked = subprocess.run(["git", "-C", repository, "ls-files", "-z"], capture_output=True, text=True)
    if tracked.returncode != 0:
        pytest.skip("no git checkout: nothing tells what belongs to the repository")
    top = {name.partition("/")[0] for name in tracked.stdout.split("\0") if name}
    assert top <= {".ci", ".gitignore", "LICENSE", "Makefile", "NOTICE", "README.md", "build", "deploy", "docs", "src", "tests", "vendor"}


def test_law_1_a_file_includes_its_own_folder_and_lower_levels_only(repository):
    base, wrong = repository / "src", []
    for path in sources(repository):
        own = folder_of(path, base)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            named = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if not named:
                continue
            other = named.group(1).split("/")[0] if "/" in named.group(1) else None
            place = f"{path.relative_to(repository)}:{number} includes {named.group(1)}"
            if other is None or not (base / named.group(1)).exists():
                wrong.append(f"{place}: write the path from src/")
            elif other != own and level_of(other) >= level_of(own):
                wrong.append(f"{place}: {own}/ is level {level_of(own)}, {other}/ is level {level_of(other)}")
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def built(out, arch):
    """The folder of the objects, and those that are linked into the product."""
    folder, listed = out / arch / "obj", out / arch / "objects.list"
    # What is linked: an object of a source that is gone may still lie there. The embedded assets are not ours to judge.
    found = [out.parents[1] / name for name in listed.read_text().split()] if listed.exists() else []
    found = [path for path in found if path.name != "assets.o"]
    if not found or not all(path.exists() for path in found):
        pytest.fail(f"no objects in {folder}; run make", pytrace=False)
    return folder, found


def test_law_2_system_calls_live_in_os_alone(built):
    folder, found = built
    wrong = []
    listing = subprocess.run(["nm", "-A", "-u", *found], stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in listing.splitlines():
        name = line.split()[-1]
        path = Path(line.split(":")[0])
        if folder_of(path, folder) != "os" and name in SYSTEM_CALLS and name not in ALLOWED_FOR:
            wrong.append(f"{path.relative_to(folder)} uses {name}")
    assert not wrong, "\n".join(wrong)


def test_law_2_is_able_to_find_a_call(built):
    """The check itself: os/ does use many of the listed names."""
    folder, found = built
    own = [p for p in found if folder_of(p, folder) == "os"]
    listing = subprocess.run(["nm", "-u", *own], stdout=subprocess.PIPE, text=True, check=True).stdout
    used = {line.split()[-1] for line in listing.splitlines() if line.strip().startswith("U ")}
    assert len(used & SYSTEM_CALLS) > 20


def test_law_3_no_mutable_globals_outside_main_and_cli(built):
    folder, found = built
    wrong = []
    for path in found:
        if folder_of(path, folder) in MUTABLE_ALLOWED:
            continue
        listing = subprocess.run(["readelf", "-SW", path], stdout=subprocess.PIPE, text=True, check=True).stdout
        for name, size in re.findall(r"^\s*\[ *\d+\] (\S+)\s+(?:PROGBITS|NOBITS)\s+\w+ \w+ (\w+)", listing, re.M):
            # Constant tables of pointers sit in .data.rel.ro and are not written.
            if re.match(r"\.(data|bss|tdata|tbss)(\.|$)", name) and not name.startswith(".data.rel.ro") and int(size, 16):
                wrong.append(f"{path.relative_to(folder)}: {name} holds {int(size, 16)} bytes")
    assert not wrong, "\n".join(wrong)


# ---- What the repository may hold

def files(repository):
    listed = subprocess.run(["git", "-c", "safe.directory=*", "-C", repository, "ls-files", "-co", "--exclude-standard"],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if listed.returncode == 0:
        found = [repository / name for name in listed.stdout.splitlines()]
    else:
        found = [p for p in repository.rglob("*") if not {".git", "out", "lab", "__pycache__"} & set(p.parts)]
    return [p for p in found if p.is_file()]


def texts(repository):
    """All that people wrote; the inputs that fuzzing found are what they are."""
    for path in files(repository):
        if "fuzz" in path.parts and path.suffix != ".c":
            continue
        data = path.read_bytes()
        if b"\0" not in data:
            yield path, data.decode("utf-8", "replace")


def test_no_paths_of_somebodys_machine(repository):
    """/proc/PID/root/... and the like are fine; a folder below a home or a work folder is not."""
    wrong = []
    for path, text in texts(repository):
        for found in re.finditer(r"(?<![\w/.})>*])/(?:root|home|work|Users)/[\w.-]+", text):
            line = text.count("\n", 0, found.start()) + 1
            wrong.append(f"{path.relative_to(repository)}:{line}: {found.group()}")
    assert not wrong, "\n".join(wrong)


def test_no_unfinished_business(repository):
    """Nothing says it is a stub; the words are put together here so that this file passes."""
    words = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "\\bXX" + "X\\b", "HA" + "CK\\b")))
    wrong = [f"{path.relative_to(repository)}:{number}: {line.strip()[:80]}" for path, text in texts(repository)
             for number, line in enumerate(text.splitlines(), 1) if words.search(line)]
    assert not wrong, "\n".join(wrong)


KNOW_LANGUAGES = ("runtime", "cli", "profile", "encode")  # rows, options and help, the language table, formats' names
NAME_LANGUAGES = ("capture/summary.c", "deliver/studio_header.c", "origin/environment.h")  # keys of others' formats


def test_no_language_is_known_outside_its_row(repository):
    """Else a runtime is more than a file and a row."""
    word = re.compile("python", re.IGNORECASE)
    wrong = [f"{path.relative_to(repository)}:{number}: {line.strip()[:80]}" for path, text in texts(repository)
             if path.is_relative_to(repository / "src")
             and path.relative_to(repository / "src").parts[0] not in KNOW_LANGUAGES
             and str(path.relative_to(repository / "src")) not in NAME_LANGUAGES
             for number, line in enumerate(text.splitlines(), 1) if word.search(line)]
    assert not wrong, "\n".join(wrong)


def test_no_foreign_source_and_no_binaries(repository):
    """vendor/ holds recipes; what is not text is a picture or a recording below tests/."""
    wrong = [str(p.relative_to(repository)) for p in files(repository)
             if p.suffix in (".o", ".a", ".so", ".gz", ".xz", ".bz2", ".tar", ".zip", ".deb")
             and "recordings" not in p.parts]
    assert not wrong, wrong


def test_lines_are_short_and_clean(repository):
    wrong = defaultdict(int)
    for path, text in texts(repository):
        if path.suffix in (".c", ".h"):
            for line in text.splitlines():
                if len(line) > 120 or line != line.rstrip() or "\t" in line:
                    wrong[str(path.relative_to(repository))] += 1
    assert not wrong, dict(wrong)

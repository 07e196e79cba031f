#!/usr/bin/python3
"""The laws of the code as checks: each takes a tree of sources or the linked objects, and returns what breaks it.

    tests/lab/laws.py [ARCH]      every law on this repository: the figures, and what breaks them

tests/live/test_laws.py runs them, and runs each on a planted violation. A check returns a list of sentences, empty when
the law is kept. `src` is the folder of the sources; `objects` are the objects that are linked, below `folder`.
"""
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

# Level of each folder of src/; main.c is above all.
LEVELS = {"base": 0, "elf": 1, "profile": 1, "target": 2, "os": 3, "sample": 3, "unwind": 3, "symbol": 3, "runtime": 3,
          "encode": 3, "deliver": 3, "origin": 3, "capture": 4, "cli": 5}
TOP = 6

# The rooms of src/capture/ from top to bottom; those of one line do not know each other. "" are the files that stand directly
# in capture/, which all rooms share.
ROOMS = (("run",), ("doctor", "live"), ("window",), ("upload",), ("stacks",), ("collect",), ("catch", "account"), ("follow",), ("",))

FIELDS_MOST = 30
CIRCLE_MOST = 2
CAPTURE_LINES_MOST, RUN_LINES_MOST = 500, 300
UNEXPLAINED_LINES_MOST, COMMENT_LINES_LEAST = 100, 3

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
ALLOWED_FOR = {"timegm": "pure arithmetic in musl"}
MUTABLE_ALLOWED = ("main", "cli")

INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout


# ---- Sources

def sources(src):
    return sorted(path for path in src.rglob("*") if path.suffix in (".c", ".h"))


def includes(src):
    """(path, line number, what is included) of each quoted include."""
    for path in sources(src):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if named := INCLUDE.match(line):
                yield path.relative_to(src), number, named[1]


def folder_of(path):
    """Of a path below src/ or below the objects' folder."""
    return path.parts[0] if len(path.parts) > 1 else "main"


def level_of(folder):
    return TOP if folder == "main" else LEVELS[folder]


def unknown_folders(src):
    found = {path.name for path in src.iterdir() if path.is_dir() and any(path.rglob("*.[ch]"))}
    return sorted(f"{name}/ has no level" for name in found - set(LEVELS))


def wrong_levels(src):
    """Law 1: a file includes its own folder and lower levels."""
    wrong = []
    for path, number, named in includes(src):
        own, place = folder_of(path), f"{path}:{number} includes {named}"
        other = folder_of(Path(named))
        if "/" not in named or not (src / named).exists():
            wrong.append(f"{place}: write the path from src/")
        elif other != own and level_of(other) >= level_of(own):
            wrong.append(f"{place}: {own}/ is level {level_of(own)}, {other}/ is level {level_of(other)}")
    return wrong


def room_of(path):
    """The room of a path below src/capture/."""
    return path.parts[1] if len(path.parts) > 2 else ""


def wrong_rooms(src):
    """The same inside capture/: a file includes its own room and rooms that stand strictly lower."""
    line_of = {room: line for line, rooms in enumerate(ROOMS) for room in rooms}
    inside = [(path, number, Path(named)) for path, number, named in includes(src)
              if folder_of(path) == folder_of(Path(named)) == "capture"]
    rooms = {room_of(path.relative_to(src)) for path in sources(src) if folder_of(path.relative_to(src)) == "capture"}
    wrong = [f"capture/{room}/ is no room of the table" for room in sorted(rooms - set(line_of))]
    for path, number, named in inside:
        own, other = room_of(path), room_of(named)
        if own != other and own in line_of and other in line_of and line_of[other] <= line_of[own]:
            wrong.append(f"{path}:{number} includes {named}: {other or 'capture'}/ does not stand below {own or 'capture'}/")
    return wrong


def lines_of(path):
    return len(path.read_text().splitlines())


def sizes(src):
    """(lines, path, most) of the files of capture/, the largest first."""
    found = [(lines_of(path), path.relative_to(src)) for path in sources(src) if folder_of(path.relative_to(src)) == "capture"]
    return sorted(((lines, path, RUN_LINES_MOST if room_of(path) == "run" else CAPTURE_LINES_MOST) for lines, path in found),
                  reverse=True)


def too_large(src):
    return [f"{path} has {lines} lines, {most} at most" for lines, path, most in sizes(src) if lines > most]


def unexplained(src):
    """A .c file of more than 100 lines begins with a comment of three lines that says what it is for: two of them with words."""
    wrong = []
    for path in sources(src):
        text = path.read_text()
        comment, closed, _ = text.partition("*/")
        comment = comment if closed and text.startswith("/*") else ""
        lines, said = comment.splitlines(), len(re.findall(r"^.*\w.*$", comment, re.M))
        if path.suffix == ".c" and lines_of(path) > UNEXPLAINED_LINES_MOST and (len(lines) < COMMENT_LINES_LEAST or said < 2):
            wrong.append(f"{path.relative_to(src)}: {lines_of(path)} lines, {len(lines)} of them at its beginning say what it is for")
    return wrong


# ---- Circles

def circles(graph):
    """The sets of nodes that reach each other, of more than one node (Tarjan), the largest first."""
    index, low, stack, on, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on.add(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            circle = set()
            while node not in circle:
                circle.add(stack.pop())
            on.difference_update(circle)
            if len(circle) > 1:
                found.append(sorted(circle))

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10 * limit)
    try:
        for node in sorted(graph):
            if node not in index:
                visit(node)
    finally:
        sys.setrecursionlimit(limit)
    return sorted(found, key=lambda circle: (-len(circle), circle))


def too_round(graph, verb):
    return [f"{len(circle)} files {verb} each other: {', '.join(circle)}" for circle in circles(graph) if len(circle) > CIRCLE_MOST]


def include_circles(src):
    graph = defaultdict(set)
    for path, _, named in includes(src):
        graph[str(path)].add(named)
    return too_round(graph, "include")


def calls(folder, objects):
    """object -> objects whose functions or data it uses."""
    defines, wants = {}, defaultdict(set)
    for line in output("nm", "-A", *objects).splitlines():
        place, _, rest = line.partition(":")
        words, name = rest.split(), str(Path(place).relative_to(folder).with_suffix(".c"))
        if words[-2] == "U":
            wants[name].add(words[-1])
        elif words[-2] in "TDRBVWC":
            defines[words[-1]] = name
    return {name: {defines[symbol] for symbol in symbols if defines.get(symbol, name) != name} for name, symbols in wants.items()}


def call_circles(folder, objects):
    return too_round(calls(folder, objects), "call")


# ---- Structs, from the debug information

FILE = re.compile(r"File: (.*)")
ROW = re.compile(r"\s*(\d+)\s+(?:(\d+)\s+)?(?:\([^)]*\): )?(\S+)\s*$")
DIE = re.compile(r" *<([0-9a-f]+)><([0-9a-f]+)>: Abbrev Number: \d+ \(DW_TAG_(\w+)\)")
ATTRIBUTE = re.compile(r" *<[0-9a-f]+> +DW_AT_(name|type|decl_file|decl_line) *: (?:\(alt[^)]*\) *|\(indirect[^)]*\): )?(.*?)\s*$")


def dump(what, objects):
    """readelf's lines; of several files each begins with its name, hence the first one twice."""
    return output("readelf", f"--debug-dump={what}", *objects, objects[0]).splitlines()


def file_tables(objects):
    """object -> {number of a file in its debug information: path}"""
    tables, folders, files, into = {}, {}, {}, None
    for line in dump("rawline", objects):
        if named := FILE.match(line):
            folders, files, into = {}, {}, None
            tables[named[1]] = files
        elif "Directory Table" in line:
            into = folders
        elif "File Name Table" in line:
            into = files
        elif "Line Number Statements" in line:
            into = None
        elif into is not None and (row := ROW.match(line)):
            into[int(row[1])] = row[3] if into is folders else f"{folders.get(int(row[2] or 0), '')}/{row[3]}"
    return tables


def entries(objects):
    """(object, {offset: entry}); an entry knows its tag, attributes and children."""
    name, every, above = None, {}, []
    for line in dump("info", objects):
        if die := DIE.match(line):
            depth, entry = int(die[1], 16), {"tag": die[3], "children": []}
            every[die[2]] = entry
            del above[depth:]
            if above and len(above) == depth:
                above[-1]["children"].append(entry)
            above += [{"children": []}] * (depth - len(above)) + [entry]
        elif (attribute := ATTRIBUTE.match(line)) and above:
            above[-1][attribute[1]] = attribute[2]
        elif named := FILE.match(line):
            if name is not None:
                yield name, every
            name, every, above = named[1], {}, []


def count_fields(every, entry):
    """A member without a name is a struct or union whose fields are those of the outer one."""
    count = 0
    for member in entry["children"]:
        if member["tag"] == "member":
            inner = every.get(member.get("type", "").strip("<>").removeprefix("0x")) if "name" not in member else None
            count += count_fields(every, inner) if inner else 1
    return count


def structs(objects):
    """{(file, line, name): fields} of every struct and union that a linked object uses and a file of src/ defines."""
    tables, found = file_tables(objects), {}
    for name, every in entries(objects):
        for entry in every.values():
            if entry["tag"] not in ("structure_type", "union_type") or "decl_file" not in entry:
                continue
            path = tables[name].get(int(entry["decl_file"].split()[0]), "")
            path = path.removeprefix("./")
            if path.startswith("src/"):
                found[path, int(entry["decl_line"]), entry.get("name", "without a name")] = count_fields(every, entry)
    return found


def too_wide(found):
    return [f"{path}:{line}: struct {name} has {fields} fields, {FIELDS_MOST} at most"
            for (path, line, name), fields in sorted(found.items(), key=lambda row: -row[1]) if fields > FIELDS_MOST]


# ---- System calls and state, from the objects

def system_calls(folder, objects):
    """Law 2, before what is allowed: object -> the listed functions that it asks for."""
    found = defaultdict(set)
    for line in output("nm", "-A", "-u", *objects).splitlines():
        path, name = Path(line.split(":")[0]).relative_to(folder), line.split()[-1]
        if name in SYSTEM_CALLS:
            found[path].add(name)
    return found


def misplaced_calls(folder, objects):
    """Law 2: system calls live in os/ alone."""
    return [f"{path} uses {name}" for path, names in system_calls(folder, objects).items() for name in sorted(names)
            if folder_of(path) != "os" and name not in ALLOWED_FOR]


def mutable_globals(folder, objects):
    """Law 3: none outside main.c and cli/. Constant tables of pointers sit in .data.rel.ro and are not written."""
    wrong = []
    for path in objects:
        own = path.relative_to(folder)
        if folder_of(own) in MUTABLE_ALLOWED:
            continue
        for name, size in re.findall(r"^\s*\[ *\d+\] (\S+)\s+(?:PROGBITS|NOBITS)\s+\w+ \w+ (\w+)", output("readelf", "-SW", path), re.M):
            if re.match(r"\.(data|bss|tdata|tbss)(\.|$)", name) and not name.startswith(".data.rel.ro") and int(size, 16):
                wrong.append(f"{own}: {name} holds {int(size, 16)} bytes")
    return wrong


# ---- This repository

def linked_objects(root, arch):
    """(their folder, the objects of src/ that are linked), or None: an object of a source that is gone may still lie there."""
    folder, listed = root / "build/out" / arch / "obj", root / "build/out" / arch / "objects.list"
    found = [root / name for name in listed.read_text().split() if not name.endswith("/assets.o")] if listed.exists() else []
    return (folder, found) if found and all(path.exists() for path in found) else None


def main(arguments):
    root = Path(__file__).resolve().parents[2]
    src, built = root / "src", linked_objects(root, arguments[0] if arguments else os.uname().machine)
    if built is None:
        sys.exit("no objects; run make")
    found = structs(built[1])
    (path, line, name), fields = max(found.items(), key=lambda row: row[1])
    print(f"{len(found)} structs and unions, the largest {name} ({path}:{line}): {fields} fields")
    print("largest file of capture/: " + "{1}, {0} lines".format(*sizes(src)[0]))
    wrong = [*unknown_folders(src), *wrong_levels(src), *wrong_rooms(src), *too_large(src), *unexplained(src), *include_circles(src),
             *call_circles(*built), *too_wide(found), *misplaced_calls(*built), *mutable_globals(*built)]
    print("\n".join(wrong) if wrong else "all laws are kept")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Real programs under load: what a profiler meets outside its own tests.

    with workloads.named("postgres").running(folder) as work:
        process.run([pillion, "-p", ",".join(map(str, work.pids)), "-d", 20, "-o", folder / "out"])

Each is busy from the moment `running` yields until the block ends, uses loopback, Unix sockets and the folder
only, and leaves no process behind. `needs()` is what it lacks on this machine in words, or None. The folder's parents must let every user pass.
"""
import contextlib
import hashlib
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import textwrap
import time
from pathlib import Path

from . import cache, compiler, process, profiler

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Longer than any measurement; the block's end is what ends the work.
FOREVER = "86400"


def tool(name, *folders):
    """The path of a program of the distribution, or None."""
    return shutil.which(name, path=":".join([*map(str, folders), PATH]))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Running:
    """A workload at work. `pid` is the process that all the measured ones are or descend from."""

    def __init__(self, started):
        self.pid = started.pid

    @property
    def pids(self):
        """It and its descendants, as they are now. One that starts between this and an attach is not followed."""
        return [self.pid, *process.descendants_of(self.pid)]

    def runs(self, comm):
        """Whether one of them has this name."""
        with contextlib.suppress(OSError):
            return any(Path(f"/proc/{pid}/comm").read_text().strip() == comm for pid in self.pids)
        return False


class Workload:
    """One row: `tools` are the programs it needs, with the Debian package of each."""
    name = ""
    what = ""
    tools = {}
    # The process that does the work, when it is not the first one.
    worker = None
    # Where the source says which frames belong together: true(frames, root first) -> bool.
    true = None

    def needs(self):
        missing = sorted({package for program, package in self.tools.items() if tool(program) is None})
        return f"not installed: {', '.join(missing)}" if missing else None

    @contextlib.contextmanager
    def running(self, folder):
        """The workload at work in an empty folder."""
        reason = self.needs()
        if reason:
            raise LookupError(reason)
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as ends:
            yield self.begin(folder, ends)

    def begin(self, folder, ends):
        """Starts it; what must end is entered into `ends`. Returns a Running."""
        work = Running(start(ends, self.command(folder), folder))
        if self.worker:
            process.until(lambda: work.runs(self.worker), 10, f"{self.worker} runs")
        return work

    def command(self, folder):
        """The command line of a workload that is one command."""
        raise NotImplementedError


def start(ends, argv, folder, end_by=signal.SIGTERM, **options):
    """Starts a process whose output goes to a file, to be ended with everything below it."""
    log = ends.enter_context(open(folder / f"{Path(str(argv[0])).name}.log", "ab"))
    started = process.start(argv, cwd=folder, stdout=log, stderr=subprocess.STDOUT, **options)
    ends.callback(stop, started, end_by)
    return started


def stop(started, end_by):
    """Ends a process and all that descends from it, by id; first the way that lets it clear up."""
    below = process.descendants_of(started.pid)
    if started.poll() is None:
        started.signal(end_by)
        with contextlib.suppress(TimeoutError):
            started.wait(5)
    started.end()
    for pid in below:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    started.done()
    process.settle(10)


def again_and_again(*command):
    """The command line of a shell that runs a command until it is ended."""
    return ["/bin/sh", "-c", 'while :; do "$@" || exit 1; done', "sh", *map(str, command)]


# ---- Programs of the distribution

CXX_HEAD = """
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <tuple>
#include <variant>
#include <vector>
template <int N> struct Chain { static int value(int x) { return Chain<N - 1>::value(x * N + 1) ^ N; } };
template <> struct Chain<0> { static int value(int x) { return x; } };
"""
CXX_PART = """
struct Item@ { int key; std::string name; std::variant<int, double, std::string> value; };
template <class T> int sum@(const std::vector<T> &items) {
    std::map<std::string, std::vector<std::shared_ptr<T>>> groups;
    for (const auto &item : items) groups[item.name].push_back(std::make_shared<T>(item));
    int total = 0;
    for (auto &[name, group] : groups) {
        std::sort(group.begin(), group.end(), [](const auto &a, const auto &b) { return a->key < b->key; });
        for (auto &item : group)
            total += std::visit([](auto &&v) -> int { if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::string>)
                return static_cast<int>(v.size()); else return static_cast<int>(v); }, item->value) + Chain<100 + @>::value(item->key);
    }
    return total;
}
int entry@(const std::string &text) {
    static const std::regex pattern("(a|b)+@[a-z]{2,@}");
    return std::regex_search(text, pattern) + sum@<Item@>({{@, text, @}, {1, "x", 2.5}, {2, "y", text}});
}
"""


class Compile(Workload):
    name, what = "g++", "cc1plus -O2 on generated templates"
    tools = {"g++": "g++"}
    worker = "cc1plus"

    def command(self, folder):
        source = folder / "heavy.cc"
        source.write_text(CXX_HEAD + "".join(CXX_PART.replace("@", str(i)) for i in range(3, 23)))
        return again_and_again("g++", "-std=c++17", "-O2", "-c", source, "-o", folder / "heavy.o")


class Redis(Workload):
    name, what = "redis", "redis-server under redis-benchmark"
    tools = {"redis-server": "redis-server", "redis-benchmark": "redis-tools"}

    def begin(self, folder, ends):
        port = str(free_port())
        server = start(ends, ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                              "--dir", folder, "--daemonize", "no"], folder)
        process.until(lambda: "Ready to accept connections" in (folder / "redis-server.log").read_text(), 10)
        start(ends, ["redis-benchmark", "-p", port, "-q", "-l", "-n", "200000", "-c", "20", "-t",
                     "set,get,incr,lpush,rpop,sadd,hset,zadd,mset"], folder)
        return Running(server)


class Postgres(Workload):
    name, what = "postgres", "postgres under pgbench, 4 clients"

    @staticmethod
    def bin(name):
        """Debian keeps the server's programs apart, one folder per version."""
        versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
        return tool(name, *versions)

    def needs(self):
        missing = [name for name in ("initdb", "postgres", "pgbench") if self.bin(name) is None]
        if missing:
            return "not installed: postgresql"
        return None if os.geteuid() or tool("setpriv") else "not installed: util-linux"

    def begin(self, folder, ends):
        # It refuses to run as root; nobody runs it then, in a folder of its own. The way there is open to all.
        home = folder / "pg"
        home.mkdir(mode=0o700)
        prefix, port = [], str(free_port())
        if os.geteuid() == 0:
            os.chown(home, profiler.NOBODY, profiler.NOBODY)
            prefix = profiler.as_nobody()
        folder.chmod(0o755)

        def run(name, *arguments):
            done = process.run([*prefix, self.bin(name), *arguments], cwd=home, timeout=120)
            if done.status:
                raise RuntimeError(f"{name}: {done}")
        run("initdb", "-D", home / "data", "-A", "trust", "-U", "bench", "--no-sync", "--locale=C", "-E", "UTF8")
        log = home / "server.log"
        server = start(ends, [*prefix, self.bin("postgres"), "-D", home / "data", "-k", home, "-p", port, "-c", "listen_addresses=",
                              "-c", "fsync=off", "-c", "shared_buffers=32MB"], home, end_by=signal.SIGQUIT)
        process.until(lambda: any("ready to accept connections" in file.read_text() for file in home.glob("*.log")), 30,
                      f"postgres is ready, see {log}")
        connection = ["-h", str(home), "-p", port, "-U", "bench"]
        run("pgbench", *connection, "-i", "-q", "-s", "2", "postgres")
        start(ends, [*prefix, self.bin("pgbench"), *connection, "-n", "-c", "4", "-T", FOREVER, "postgres"], home)
        process.until(lambda: len(process.descendants_of(server.pid)) >= 8, 10, "the backends run")
        return Running(server)


class Nginx(Workload):
    name, what = "nginx", "nginx that compresses, under wrk or ab"
    tools = {"nginx": "nginx-light"}

    def needs(self):
        if tool("wrk") is None and tool("ab") is None:
            return "not installed: wrk"
        return super().needs()

    def begin(self, folder, ends):
        port = free_port()
        (folder / "www").mkdir()
        (folder / "www" / "words.txt").write_text("".join(f"line {i} of {i * 7919 % 1000} words\n" for i in range(400)))
        (folder / "nginx.conf").write_text(textwrap.dedent(f"""
            daemon off; worker_processes 2; pid {folder}/nginx.pid; error_log {folder}/error.log;
            {"user root;" if os.geteuid() == 0 else ""}
            events {{ worker_connections 256; }}
            http {{
                access_log off; gzip on; gzip_types text/plain; default_type text/plain;
                client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
                uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
                server {{ listen 127.0.0.1:{port}; root {folder}/www; }}
            }}"""))
        server = start(ends, [tool("nginx"), "-c", folder / "nginx.conf", "-e", folder / "error.log"], folder)
        process.until(lambda: answers(port), 10, "nginx answers")
        address = f"http://127.0.0.1:{port}/words.txt"
        load = (["wrk", "-t", "1", "-c", "10", "-d", FOREVER, "-H", "Accept-Encoding: gzip", address] if tool("wrk")
                else again_and_again("ab", "-q", "-k", "-c", "10", "-n", "50000", "-H", "Accept-Encoding: gzip", address))
        start(ends, load, folder)
        return Running(server)


def answers(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


class Openssl(Workload):
    name, what = "openssl", "openssl speed: RSA, AES, SHA-2, hand-written assembler"
    tools = {"openssl": "openssl"}
    worker = "openssl"

    def command(self, folder):
        return again_and_again("openssl", "speed", "-seconds", "1", "-bytes", "8192", "rsa2048", "ecdsap256", "aes-256-cbc",
                               "sha256", "sha512")


# ---- Interpreters

PYTHON = """
import json, re
def numbers(n):
    return sum(i * i % 7 for i in range(n)) + sum(x ** 0.5 for x in range(n))
def texts(n):
    rows = [{"id": i, "name": "row %d" % i, "tags": ["a", "b", str(i)]} for i in range(n)]
    return len(json.loads(json.dumps(rows)))
def patterns(n):
    text = "key=value; " * n
    return len(re.findall(r"(\\w+)=(\\w+)", text)) + len(re.sub(r"[aeiou]+", "-", text))
def sorting(n):
    return sorted(range(n), key=lambda i: -i * 7919 % 1009)[0]
while True:
    numbers(20000); texts(500); patterns(1000); sorting(5000)
"""


class Python(Workload):
    name, what = "python3", "Debian's python3: numbers, json, regular expressions"
    tools = {"/usr/bin/python3": "python3"}

    def command(self, folder):
        return ["/usr/bin/python3", "-c", PYTHON]


class PlainPython(Python):
    name, what = "python-nofp", "a CPython that was built from source without frame pointers"

    @staticmethod
    def interpreter():
        """The newest of the versions that pyenv built, unless its flags ask for frame pointers."""
        versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
        for program in sorted(versions.glob("3.*/bin/python3"), key=lambda path: [int(n) for n in re.findall(r"\d+", path.parts[-3])],
                              reverse=True):
            asked = subprocess.run([program, "-c", "import sysconfig; print(sysconfig.get_config_var('CFLAGS'))"],
                                   stdout=subprocess.PIPE, text=True)
            if asked.returncode == 0 and "-fno-omit-frame-pointer" not in asked.stdout:
                return program
        return None

    def needs(self):
        return None if self.interpreter() else "no CPython built by pyenv here"

    def command(self, folder):
        return [self.interpreter(), "-c", PYTHON]


NODE = """
function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
function texts(n) { return JSON.parse(JSON.stringify(Array.from({length: n}, (_, i) => ({id: i, name: 'row ' + i})))).length; }
function patterns(n) { return 'key=value; '.repeat(n).replace(/(\\w+)=(\\w+)/g, '$2=$1').length; }
class Shop { constructor() { this.rows = new Map(); }
  add(i) { this.rows.set('k' + i % 1000, (this.rows.get('k' + i % 1000) || 0) + i); } }
const shop = new Shop();
for (let round = 0;; round++) {
  fibonacci(20); texts(300); patterns(500);
  for (let i = 0; i < 10000; i++) shop.add(i);
  Array.from({length: 3000}, (_, i) => (i * 7919) % 3001).sort((a, b) => a - b);
}
"""


class Node(Workload):
    name, what = "node", "node: a benchmark loop"

    def needs(self):
        return None if tool("node") or tool("nodejs") else "not installed: nodejs"

    def command(self, folder):
        (folder / "work.js").write_text(NODE)
        return [tool("node") or tool("nodejs"), folder / "work.js"]


# ---- Programs compiled here

GO = """
package main

import ("encoding/json"; "fmt"; "io"; "net/http"; "os"; "regexp"; "sort"; "strings"; "sync")

type row struct { ID int; Name string; Tags []string }

var words = regexp.MustCompile(`(\\w+)=(\\w+)`)
var lock sync.Mutex
var seen = map[string]int{}

func work(w http.ResponseWriter, r *http.Request) {
	rows := make([]row, 200)
	for i := range rows { rows[i] = row{i * 7919 % 211, fmt.Sprint("row ", i), []string{"a", "b"}} }
	sort.Slice(rows, func(a, b int) bool { return rows[a].ID < rows[b].ID })
	text, _ := json.Marshal(rows)
	found := words.FindAllString(strings.Repeat("key=value; ", 50), -1)
	lock.Lock()
	seen[r.URL.Path] += len(found)
	lock.Unlock()
	w.Write(text)
}

func main() {
	if len(os.Args) > 2 {
		for at := 0; at < 8; at++ {
			go func(at int) {
				for i := 0; ; i++ {
					answer, err := http.Get(fmt.Sprintf("http://%s/%d", os.Args[1], i % 50))
					if err != nil { continue }
					io.Copy(io.Discard, answer.Body)
					answer.Body.Close()
				}
			}(at)
		}
		select {}
	}
	http.HandleFunc("/", work)
	panic(http.ListenAndServe(os.Args[1], nil))
}
"""


class Go(Workload):
    name, what = "go", "a web server in Go: JSON, regular expressions, a collector that is busy"
    tools = {"go": "golang-go"}

    def begin(self, folder, ends):
        identity = hashlib.sha256(GO.encode()).hexdigest()[:16]
        program = cache.folder("programs", identity) / "work_go"
        if not program.exists():
            (folder / "main.go").write_text(GO)
            part = program.with_suffix(f".{os.getpid()}.part")
            subprocess.run([tool("go"), "build", "-o", part, "main.go"], cwd=folder, check=True,
                           env={"PATH": PATH, "HOME": str(folder), "GOTOOLCHAIN": "local", "GO111MODULE": "off"})
            part.rename(program)
        address = f"127.0.0.1:{free_port()}"
        server = start(ends, [program, address], folder)
        process.until(lambda: answers(int(address.rpartition(":")[2])), 10, "it answers")
        start(ends, [program, address, "load"], folder)
        return Running(server)


class Musl(Workload):
    name, what = "musl", "a static program whose leaves are in musl: no tables, no frame pointers"
    tools = {"gcc": "gcc"}
    library = ROOT / "build" / "out" / platform.machine() / "vendor" / "lib"

    def needs(self):
        if not (self.library / "musl-gcc.specs").exists():
            return "the product's C library is not built; run make"
        return super().needs()

    def command(self, folder):
        source = HERE / "work_libc.c"
        flags = ["-std=gnu11", "-O2", "-fomit-frame-pointer", "-fno-asynchronous-unwind-tables", "-static", "-no-pie", "-Wall", "-Wextra"]
        identity = hashlib.sha256(source.read_bytes() + repr(flags).encode() + (self.library / "libc.a").read_bytes()).hexdigest()[:16]
        program = cache.folder("programs", identity) / "work_libc"
        if not program.exists():
            part = program.with_suffix(f".{os.getpid()}.part")
            # The specs name their folders from the top of the repository.
            subprocess.run(["gcc", f"-specs={self.library}/musl-gcc.specs", *flags, "-o", part, source], cwd=ROOT, check=True)
            part.rename(program)
        return [program, FOREVER]

    @staticmethod
    def true(frames):
        """From the thread's function on: work, then either the clock or outer, inner, a deed, the library."""
        own = [frame for frame in frames if re.match(r"work$|outer$|inner$|deed_|by_value$", frame)]
        return bool(re.fullmatch(r"work( outer( inner( deed_\w+( by_value)?)?)?)?", " ".join(own)))


class Deep(Workload):
    name, what = "deep", "two busy threads of C, 25 frames, no frame pointers"
    tools = {"gcc": "gcc"}

    def command(self, folder):
        program = compiler.compile_file(HERE / "work_deep.c", "work_deep", "-fomit-frame-pointer", "-momit-leaf-frame-pointer")
        return [program, FOREVER]

    @staticmethod
    def true(frames):
        """The thread's function, then deep_0 to deep_n without a gap."""
        own = [frame for frame in frames if frame == "work" or frame.startswith("deep_")]
        return own == ["work", *(f"deep_{i}" for i in range(len(own) - 1))]


ALL = [each() for each in (Compile, Redis, Postgres, Nginx, Openssl, Python, PlainPython, Node, Go, Musl, Deep)]


def named(name):
    return next(each for each in ALL if each.name == name)

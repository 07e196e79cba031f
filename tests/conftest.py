"""The frame of all tests: `/usr/bin/python3 -m pytest tests`.

It collects the C unit programs beside the Python tests, skips a tier with its reason, takes care
that no test leaves a process behind, and ends with the line `N passed, N failed, N skipped`.
tests/README.md says how to run a part and how to write a test.
"""
import concurrent.futures
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))

from lab import compiler, emulate, process, tiers  # noqa: E402

REPOSITORY = Path(__file__).parent.parent
PROGRAMS = Path(__file__).parent / "live" / "programs"
ARCH = os.environ.get("ARCH") or platform.machine()
OUT = REPOSITORY / "build" / "out"


# ---- The frame

# Which files tests/run runs beside each other, those that take longest first. Guests' clocks count instructions, and easy ones, those that
# mostly compute (plain) and those that mostly wait (waits) do not mind company that makes them late. What measures runs on a processor that
# nobody else has (halves); and what wants several processors, or measures those, runs alone: that is the rest, with what is marked `alone`.
GUESTS = ("test_aarch64.py", "test_catch_kernels.py", "test_kernels.py", "test_doctor_kernel.py", "test_upload_core.py", "test_fleet.py")
EASY = ("test_inspector.py", "test_changes.py", "test_flame_use.py", "test_flame_types.py", "test_flame_time.py", "test_datadog.py", "test_python_lines.py", "test_flame_safety.py", "test_python_names.py",
        "test_doctor.py", "test_tls13.py", "test_laws.py", "test_build.py", "test_dist.py", "test_origin.py", "test_readme.py", "test_backends.py", "test_frame.py",
        "test_tls.py", "test_doctor_upload.py", "test_vendor.py", "test_http.py", "test_studio_facts.py", "test_otlp.py", "test_cli.py",
        "test_forms.py", "test_figures.py", "test_binary.py", "test_pages.py", "test_newest.py", "test_messages.py")
PLAIN = ("test_go.py", "test_go_memory.py", "test_debug_info.py", "test_crosscheck.py", "test_words.py", "test_doctor_runc.py", "test_jfr.py",
         "test_rows.py", "test_golang.py", "test_go_texts.py", "test_flame_size.py", "test_go_delta.py", "test_jit_files.py",
         "test_pprof_tool.py", "test_report.py", "test_top.py", "test_recordings.py", "test_faults.py", "test_hostile.py", "test_dump.py")
WAITS = ("test_java_recorder.py", "test_go_trace.py", "test_upload.py", "test_outputs.py", "test_launch.py", "test_init.py", "test_rights.py",
         "test_upload_files.py", "test_recipes.py", "test_run_files.py", "test_serverless.py")
HALVES = ("test_python.py", "test_trees.py", "test_node.py", "test_truth.py", "test_stops.py", "test_php.py", "test_ruby.py", "test_java.py", "test_go_labels.py",
          "test_targets.py", "test_python_labels.py", "test_perl.py", "test_wall.py", "test_go_runc.py", "test_java_runc.py",
          "test_python_servers.py", "test_node_runc.py", "test_budget.py", "test_names.py", "test_interpreters_runc.py", "test_perfless.py", "test_stacks.py",
          "test_stops_runc.py", "test_ladder.py", "test_foreign.py", "test_signals.py", "test_events.py", "test_endings_runc.py",
          "test_ruby_servers.py", "test_detach.py", "test_deploy.py", "test_traps.py", "test_runc.py", "test_memory_runc.py",
          "test_workloads.py", "test_usage_runc.py", "test_confine.py", "test_python_runc.py")
PARTS = {"guests": GUESTS, "easy": EASY, "plain": PLAIN, "waits": WAITS, "halves": HALVES, "units": (), "units-that-measure": (), "rest": ()}


def place_of(item):
    """An item's part, and its file's number there."""
    if isinstance(item, UnitTest):
        return "units-that-measure" if item.parent.measures else "units", 0
    name = "rest" if item.get_closest_marker("alone") else next((name for name, files in PARTS.items() if item.path.name in files), "rest")
    return name, PARTS[name].index(item.path.name) if item.path.name in PARTS[name] else 0


def pytest_addoption(parser):
    parser.addoption("--parts", default=[], type=lambda text: text.split(","), help=f"these of all tests, in this order: {', '.join(PARTS)}")
    parser.addoption("--shared", metavar="FOLDER", type=Path,
                     help="several runs have these parts in common: a file is run by who comes to it first, which this folder says")


@pytest.hookimpl(tryfirst=True)
def pytest_ignore_collect(collection_path, config):
    """A file whose tests all are of other parts is not even read, which takes a run seconds."""
    name, parts = collection_path.name, config.option.parts
    if not parts or not re.fullmatch(r"test_\w+\.py", name):
        return None
    own = next((part for part, files in PARTS.items() if name in files), "rest")
    may_be = {own, "rest"} if "mark.alone" in collection_path.read_text(encoding="utf-8") else {own}
    return None if may_be & set(parts) else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    parts = config.option.parts
    if not parts:
        return
    assert set(parts) <= set(PARTS), parts
    places = {item: place_of(item) for item in items}
    config.hook.pytest_deselected(items=[item for item in items if places[item][0] not in parts])
    items[:] = sorted((item for item in items if places[item][0] in parts),
                      key=lambda item: (parts.index(places[item][0]), places[item][1]))


TAKEN = {}  # file -> whether this run has it


def is_taken(path, shared):
    try:
        (shared / path.name).mkdir()
    except FileExistsError:
        return False
    return True


@pytest.hookimpl(tryfirst=True, specname="pytest_runtest_protocol")
def pytest_what_others_run_is_theirs(item, nextitem):
    shared = item.config.option.shared
    if shared and item.path not in TAKEN:
        TAKEN[item.path] = is_taken(item.path, shared)
    return True if shared and not TAKEN[item.path] else None


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    config.option.reportchars = "rsfE" if config.option.reportchars in ("", "fE") else config.option.reportchars
    config.addinivalue_line("markers", "measures: holds a measurement against the kernel's, or waits for processes: tests/run may "
                            "try it once more")
    config.addinivalue_line("markers", "exact: looks for a wrong stack or name, or a secret that is seen: never tried once more")
    config.addinivalue_line("markers", "alone: wants the machine's processors for itself")
    config.addinivalue_line("markers", "root: wants root (runc, namespaces); skipped with the reason otherwise")
    config.addinivalue_line("markers", "net: wants a package mirror once, then works from the cache in build/lab")
    process.become_subreaper()
    process.take_default_signals()


def pytest_runtest_setup(item):
    for name, missing in (("root", tiers.root_missing), ("net", tiers.net_missing)):
        if item.get_closest_marker(name):
            reason = missing()
            if reason:
                pytest.skip(f"tier {name}: {reason}")


TIME_OF, CPU_TIME_OF = {}, {}  # file -> s; of CPU time that of the tests and of processes that have ended


def pytest_runtest_logreport(report):
    file = report.nodeid.split("::")[0]
    TIME_OF[file] = TIME_OF.get(file, 0) + report.duration


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    before = sum(os.times()[:4])
    yield
    file = item.nodeid.split("::")[0]
    CPU_TIME_OF[file] = CPU_TIME_OF.get(file, 0) + sum(os.times()[:4]) - before


# ---- Once more: tests/run tries failures again if there are few of them and each may fail by chance

AGAIN_MOST = 5
MISUSED = re.compile(r"ERROR: (Address|Leak)Sanitizer|runtime error:")  # memory, by what a sanitizer prints


def may_be_tried_again(item):
    return bool(item.get_closest_marker("measures")) and not item.get_closest_marker("exact")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    """Leaves the file `again` in the cache's folder when the failed tests may be run a second time (--lf)."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not session.config.option.parts or not session.config.pluginmanager.has_plugin("cacheprovider"):
        return
    failed = [report for state in ("failed", "error") for report in reporter.stats.get(state, [])]
    of = {item.nodeid: item for item in session.items}
    mark = Path(session.config.getini("cache_dir")) / "again"
    mark.unlink(missing_ok=True)
    if (exitstatus == pytest.ExitCode.TESTS_FAILED and 0 < len(failed) <= AGAIN_MOST and
            all(report.nodeid in of and may_be_tried_again(of[report.nodeid]) for report in failed) and
            not any(MISUSED.search(report.longreprtext + report.capstdout + report.capstderr) for report in failed)):
        mark.write_text("".join(f"{report.nodeid}\n" for report in failed))


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    if sum(TIME_OF.values()) > 60:
        for what, of in (("seconds", TIME_OF), ("seconds of CPU time", CPU_TIME_OF)):
            slowest = sorted(of.items(), key=lambda row: -row[1])[:25]
            print(f"{what} by file: " + ", ".join(f"{Path(file).name} {seconds:.0f}" for file, seconds in slowest))
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or config.option.collectonly:
        return
    # A test that fails and leaves a process behind is one: it is taken off once when it passes the second time.
    named = {name: {report.nodeid for report in reporter.stats.get(name, [])} for name in ("passed", "failed", "error", "skipped")}
    failed = named["failed"] | named["error"]
    print(f"{len(named['passed'] - failed)} passed, {len(failed)} failed, {len(named['skipped'])} skipped", flush=True)


# ---- C unit programs: tests/unit/X_test.c is built to build/out/host/unit/X_test by `make unit`, and by `make
# unit-aarch64`, with the product's objects, to build/out/aarch64/unit/X_test, whose tests are named "aarch64: ..." and run under qemu-user

def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".c" and file_path.stem.endswith("_test") and file_path.parent.name == "unit":
        return UnitFile.from_parent(parent, path=file_path)
    return None


class UnitFile(pytest.File):
    def __init__(self, **more):
        super().__init__(**more)
        self.measures = "\nTESTS_THAT_MEASURE(" in self.path.read_text()
        if self.measures:
            self.add_marker("measures")

    def collect(self):
        parts = self.config.option.parts
        if parts and ("units-that-measure" if self.measures else "units") not in parts:
            return  # programs are not even asked for their tests
        yield from self.tests("", UnitProgram(OUT / "host" / "unit" / self.path.stem, []), {})
        if emulate.HERE == "aarch64":
            return
        reason = emulate.compiler_missing("aarch64") or emulate.missing("aarch64")
        reason = reason or emulate.UNIT_SKIPS.get((self.path.stem, None))
        if reason:
            yield UnitTest.from_parent(self, name="aarch64: all", program=None, test=None, reason=reason)
            return
        skips = {test: reason for (program, test), reason in emulate.UNIT_SKIPS.items() if program == self.path.stem}
        program = UnitProgram(OUT / "aarch64" / "unit" / self.path.stem, emulate.prefix("aarch64"), skips)
        yield from self.tests("aarch64: ", program, skips)

    def tests(self, prefix, program, skips):
        if not program.path.exists():
            yield UnitTest.from_parent(self, name=f"{prefix}is built", program=program, test=None)
            return
        for test in program.listed():
            yield UnitTest.from_parent(self, name=prefix + test, program=program, test=test, reason=skips.get(test))


class UnitProgram:
    def __init__(self, path, prefix, without=()):
        self.path, self.command, self.without, self.results = path, [*prefix, path], without, None

    def listed(self):
        return subprocess.run([*self.command, "--list"], stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()

    def outcome(self, name):
        """(state, detail) of one test."""
        if self.results is None:
            self.run()
        return self.results.get(name, ("not ok", self.rest))

    def run(self):
        self.results, notes = {}, []
        try:
            done = process.run([*self.command, *self.without], cwd=REPOSITORY, timeout=300)
        except TimeoutError as late:
            self.rest = str(late)
            return
        for line in done.out.splitlines():
            for state in ("ok", "not ok", "skip"):
                if line.startswith(state + " "):
                    test, _, reason = line[len(state) + 1:].partition(": ")
                    self.results[test if state == "skip" else line[len(state) + 1:]] = (
                        state, reason if state == "skip" else "\n".join(notes))
                    notes = []
                    break
            else:
                notes.append(line)
        if done.status != 0 and not any(state == "not ok" for state, _ in self.results.values()):
            self.results = {}
        self.rest = "\n".join(notes + [f"the program ended with status {done.status}", done.err])


UNIT_AT_ONCE = 2


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session):
    """Many unit programs run before all other tests, two at a time: most of them wait a good part of their time."""
    programs = {item.program for item in session.items if isinstance(item, UnitTest) and item.program and not item.reason}
    programs = [program for program in programs if program.path.exists()]
    if session.config.option.collectonly or len(programs) <= UNIT_AT_ONCE:
        return
    with concurrent.futures.ThreadPoolExecutor(UNIT_AT_ONCE) as pool:
        list(pool.map(UnitProgram.run, sorted(programs, key=lambda program: str(program.path))))


class UnitFailure(Exception):
    pass


class UnitTest(pytest.Item):
    def __init__(self, *, program, test, reason=None, **more):
        super().__init__(**more)
        self.program, self.test, self.reason = program, test, reason

    def runtest(self):
        if self.reason:
            pytest.skip(self.reason)
        if self.test is None:
            raise UnitFailure(f"{self.program.path} is missing; run make unit unit-aarch64")
        state, detail = self.program.outcome(self.test)
        if state == "skip":
            pytest.skip(detail)
        if state != "ok":
            raise UnitFailure(detail)

    def repr_failure(self, excinfo):
        return str(excinfo.value) if isinstance(excinfo.value, UnitFailure) else super().repr_failure(excinfo)

    def reportinfo(self):
        return self.path, 0, f"{self.path.stem}: {self.name}"


# ---- Fixtures

@pytest.fixture(scope="session")
def repository():
    return REPOSITORY


@pytest.fixture(scope="session")
def out():
    """Where `make` puts what it builds: build/out."""
    return OUT


@pytest.fixture(scope="session")
def arch():
    """The processor the product under test is for, as in build/out/ARCH."""
    return ARCH


@pytest.fixture(scope="session")
def pillion():
    """The built program. Missing is a failure, not a skip: it is what all this is about."""
    path = OUT / ARCH / "pillion"
    if not path.exists():
        pytest.fail(f"{path} is missing; run make", pytrace=False)
    return path


@pytest.fixture(scope="session")
def record():
    """lab/record.c: FILE [pillion's options] [-- command], a run that is written down."""
    path = emulate.linked(ARCH, "record")
    if not path.exists():
        pytest.fail(f"{path} is missing; run make linked", pytrace=False)
    return path


@pytest.fixture(scope="session")
def pillion_for():
    """pillion_for("aarch64") -> the program built for that processor, whatever this machine is."""
    def find(arch):
        path = emulate.binary(arch)
        if not path.exists():
            reason = emulate.compiler_missing(arch)
            (pytest.skip if reason else pytest.fail)(reason or f"{path} is missing; run make ARCH={arch}")
        return path
    return find


@pytest.fixture(scope="session")
def emulated(pillion_for):
    """emulated("aarch64") -> how that program is called here: [emulator, program], or [program] for our own processor."""
    def command(arch):
        reason = emulate.missing(arch)
        if reason:
            pytest.skip(reason)
        return [*emulate.prefix(arch), pillion_for(arch)]
    return command


@pytest.fixture
def workdir(tmp_path_factory):
    """An empty folder that any uid may enter, below a short path; removed after the test."""
    path = Path(tmp_path_factory.mktemp("t", numbered=True))
    for folder in (path.parent.parent, path.parent, path):
        folder.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def unbuilt(workdir):
    """A folder in which make finds all it reads, and nothing that was built."""
    folder = workdir / "unbuilt"
    shutil.copytree(REPOSITORY / "build", folder / "build", ignore=shutil.ignore_patterns("out", "lab"))
    for name in ("Makefile", "VERSION", "vendor", "src", "tests"):
        (folder / name).symlink_to(REPOSITORY / name)
    return folder


@pytest.fixture
def run():
    """run(argv, timeout=30, stdin=b"", env=None, cwd=None, ...) -> process.Done; see lab/process.py."""
    return process.run


@pytest.fixture(scope="session")
def program():
    """program("shares") -> path of tests/live/programs/shares.{c,cc,rs}, compiled once per content and flags."""
    def build(name, *flags, **options):
        return compiler.program(PROGRAMS, name, *flags, **options)
    return build


@pytest.fixture(scope="session")
def refuse(repository):
    """lab/refuse.c: runs a program whose system calls are refused by name."""
    return compiler.compile_file(repository / "tests" / "lab" / "refuse.c", "refuse", "-static")


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """Ends, by id, every process a test left running, and says so: a leftover profiler is a defect."""
    yield
    left = process.end_leftovers()
    if left:
        pytest.fail("the test left processes behind: " + ", ".join(left), pytrace=False)

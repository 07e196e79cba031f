"""Real Python servers under load: every worker's requests as the application's functions, below the server's own."""
import contextlib
import os
import signal
import time
import urllib.request
from collections import Counter

import pytest

from lab import process, profiler, pystacks, tiers, workloads

pytestmark = pytest.mark.measures

PROGRAMS = "tests/live/programs/python"
MODES = {"perf": [], "perf-less": ["--perf-mode", "disabled"]}
SYSTEM = "/usr/sbin:/usr/bin:/sbin:/bin"


def asked(port, seconds, least):
    """Requests one after the other for a while, and so many that they weigh more than the server's start."""
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end or count < least:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
            assert answer.read().startswith(b'{"primes": [2, 3, 5')
        count += 1
    return count


@pytest.fixture
def serve(pillion, repository, workdir):
    """serve(command, port, ...) -> what a profile of the server and its workers shows after some load."""
    def run(command, port, *options, stop=signal.SIGTERM):
        if tiers.tool_missing(command[0]):
            pytest.skip(tiers.tool_missing(command[0]))
        environment = {"PATH": SYSTEM, "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(workdir)}
        server = process.start([pillion, "--launch", "exec", "-o", workdir / "out", "-f", "499", *options, "--", *command],
                               cwd=repository / PROGRAMS, env=environment)
        try:
            process.until(lambda: workloads.answers(port), 15, lambda: server.err)
            count = asked(port, 2, 500)
            server.signal(stop)
            done = server.finish(20)
        finally:
            server.end()
        process.settle(15)
        session = profiler.Session(done, workdir / "out")
        print(f"{count} requests, {session.seconds(499):.2f} s")
        # Three processes, whose ends are counted in whole ticks where there are no perf events.
        assert profiler.within(session.seconds(499), done.cpu_seconds, 0.03, 0.3), (session.seconds(499), done)
        return session
    return run


def applications(session, function="primes"):
    """By what the processes that ran the application's function are told from others."""
    return {stack.appid for window in session.windows for stack in window.stacks if any(function in frame for frame in stack.frames)}


def working(session):
    """Stacks of the application's function: a good part of all is in them."""
    stacks = pystacks.of_col(session)
    mine = [stack for stack in stacks if "primes" in [frame.name for frame in stack.python]]
    total = sum(stack.count for stack in stacks)
    leaves = Counter()
    for stack in stacks:
        leaves[str(stack.python[-1]) if stack.python else f"no Python: {stack.frames[-1]}"] += stack.count
    print(leaves.most_common(8))
    print(max(mine, key=lambda s: s.count) if mine else session.frames())
    assert sum(stack.count for stack in mine) > 0.15 * total, session.done
    return mine


@pytest.mark.parametrize("mode", MODES)
def test_gunicorn_and_flask(mode, serve, repository):
    port = workloads.free_port()
    session = serve(["gunicorn", "-w", "2", "-b", f"127.0.0.1:{port}", "--no-sendfile", "web:app"], port, *MODES[mode])
    for stack in working(session):
        names = [frame.name for frame in stack.python]
        assert names[0] == "<module>" and "Arbiter.run" not in names[:1], stack
        assert "primes" in names and names[names.index("primes") - 1] == "page", stack
        assert "SyncWorker.handle_request" in names or "handle_request" in names, stack
    assert applications(session) == {f"appid: gunicorn: web:app ({repository / PROGRAMS}/web.py)"}


@pytest.mark.parametrize("mode", MODES)
def test_uwsgi_whose_python_is_a_plugin(mode, serve, repository, workdir):
    """No "python" in the executable; libpython comes with a plugin after the start; the workers are forked."""
    port = workloads.free_port()
    file, named = (None, "web.py") if mode == "perf" else (workdir / "shop.ini", workdir / "shop.ini")
    if file:
        file.write_text("[uwsgi]\nmodule = web\n")
    session = serve(["uwsgi", "--plugin", "python3", "--http-socket", f"127.0.0.1:{port}", *(["--ini", file] if file else ["--wsgi-file", "web.py"]),
                     "--master", "--processes", "2", "--die-on-term", "--disable-logging"], port, *MODES[mode])
    for stack in working(session):
        assert [frame.name for frame in stack.python[:3]] == ["application", "page", "primes"], stack
        if mode == "perf":
            assert any("uwsgi" in frame for frame in stack.frames[:stack.frames.index(stack.python[0])]), stack
    assert applications(session) == {f"appid: uwsgi: {named} ({repository / PROGRAMS}/web.py)"}


def module_missing(name):
    there = process.run(["/usr/bin/python3", "-c", f"import {name}"]).status == 0
    return None if there else f"not installed: python3-{name}"


@pytest.mark.parametrize("mode", MODES)
def test_django_in_threads_of_gunicorn(mode, serve):
    if module_missing("django"):
        pytest.skip(module_missing("django"))
    port = workloads.free_port()
    session = serve(["gunicorn", "-w", "1", "-k", "gthread", "--threads", "2", "-b", f"127.0.0.1:{port}", "--no-sendfile",
                     "django_web:application"], port, *MODES[mode])
    for stack in working(session):
        names = [frame.name for frame in stack.python]
        assert names[0] == "Thread._bootstrap" and names[names.index("primes") - 1] == "index", stack
        assert "WSGIHandler.__call__" in names and "BaseHandler._get_response" in names, stack
    gone = session.share("[code is gone]_[p]")
    assert gone < 0.2, gone


@pytest.mark.parametrize("mode", MODES)
def test_celery_has_its_tasks_in_the_workers_of_its_pool(mode, pillion, repository, workdir):
    if module_missing("celery"):
        pytest.skip(module_missing("celery"))
    environment = {"PATH": SYSTEM, "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(workdir), "TASKS": str(workdir / "tasks"),
                   "C_FORCE_ROOT": "1"}
    command = ["/usr/bin/python3", "-m", "celery", "-A", "tasks", "worker", "--concurrency", "2", "--without-gossip",
               "--without-mingle", "--without-heartbeat"]
    worker = process.start([pillion, "--launch", "exec", "-o", workdir / "out", "-f", "499", *MODES[mode], "--", *command],
                           cwd=repository / PROGRAMS, env=environment)
    try:
        done = process.run(["/usr/bin/python3", "tasks.py", 150], cwd=repository / PROGRAMS, env=environment, timeout=60)
        assert done.status == 0, (done, worker.err)
        worker.signal(signal.SIGTERM)
        done = worker.finish(30)
    finally:
        worker.end()
    process.settle(15)
    stacks = pystacks.of_pprof(workdir / "out")
    mine = [stack for stack in stacks if "primes" in [frame.name for frame in stack.python]]
    # the rest is imports, and the ends of three processes
    assert sum(stack.count for stack in mine) > 0.1 * sum(stack.count for stack in stacks)
    for stack in mine:
        names = [frame.name for frame in stack.python]
        assert names[-2:] == ["compute", "primes"] and "Worker.workloop" in names, stack
        assert stack.pid != done.pid, stack
    session = profiler.Session(done, workdir / "out")
    assert applications(session) == {f"appid: celery: tasks ({repository / PROGRAMS}/tasks.py)"}


POOL = """
import multiprocessing, sys
sys.path.insert(0, sys.argv[1])
import web
if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[2]).Pool(2) as pool:
        pool.map(web.primes, [12000] * 60, chunksize=1)
"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_a_pool_of_workers(how, mode, pillion, repository, workdir):
    """multiprocessing in its three ways to start one, as task queues do."""
    (workdir / "pool.py").write_text(POOL)
    command = ["/usr/bin/python3", workdir / "pool.py", repository / PROGRAMS, how]
    session = profiler.profile(pillion, workdir / "out", command, "-f", "499", *MODES[mode],
                               env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    assert session.done.status == 0, session.done
    mine = [stack for stack in pystacks.of_pprof(session.folder) if "primes" in [frame.name for frame in stack.python]]
    by_pid = Counter()
    for stack in mine:
        names = [frame.name for frame in stack.python]
        assert names[-3:] == ["worker", "mapstar", "primes"], stack
        by_pid[stack.pid] += stack.count
    total = sum(stack.count for stack in pystacks.of_pprof(session.folder))
    # the first worker that is there may take all the work before the second has started
    assert len(by_pid) in (1, 2) and session.done.pid not in by_pid, by_pid
    assert sum(by_pid.values()) > 0.5 * total
    with contextlib.suppress(IndexError):
        print(how, mode, by_pid, mine[0])

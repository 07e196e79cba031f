"""Ruby's servers under load: what they spend, as the application's functions, against their own clocks (lab/ruby_servers.py);
and one server that runs Python beside it.
"""
import os
import signal
import socket
import struct
import time
from collections import Counter
from pathlib import Path

import pytest

from lab import col, process, profiler, rbstacks, ruby_servers, workloads

pytestmark = pytest.mark.measures

ENOUGH = 0.3 # seconds: some 150 stacks
UWSGI = {"python": 0, "ruby": 7} # the number of a plugin, in the head of a request


def applications(folder):
    return {stack.appid for window in col.every(folder) for stack in window.stacks if any("_[rb]" in frame for frame in stack.frames)}


@pytest.mark.parametrize("name,mode,processes", [("puma", "perf", 1), ("puma", "perf-less", 1), ("unicorn", "perf", 4),
                                                 ("jobs", "perf-less", 1)])
def test_three_functions_of_a_server(name, mode, processes, pillion, workdir):
    if ruby_servers.needs(name):
        pytest.skip(ruby_servers.needs(name))
    figures = ruby_servers.run(pillion, name, workdir, *ruby_servers.MODES[mode], "--max-cpu", 20, seconds=2.5)
    print(f"{name} {mode}: {figures}")
    # Without perf events a process's last tenth of a second is what nobody sees: who waits for it takes its count away.
    unseen = 0.15 * processes if mode == "perf-less" else 0.02 * processes
    assert abs(figures.total - figures.true_total) <= max(0.03 * figures.true_total, unseen), str(figures)
    assert not figures.impossible, figures.impossible[:3]
    assert figures.ruby > 0.8 and figures.named > 0.95 * figures.ruby and figures.proven > 0.8 * figures.ruby, str(figures)
    if name != "jobs": # it runs before and after they give themselves a title
        assert applications(workdir / "out") == {f"appid: {name}: {workdir.name} ({workdir})"}
    for part, share in figures.shares.items():
        assert abs(share - figures.true_shares[part]) < max(0.06, profiler.by_chance(figures.true_shares[part], sum(figures.parts.values()))), str(figures)


# ---- Two languages in each process

def ask_uwsgi(path, number):
    """One request in uwsgi's own protocol; the process that answered and the seconds it spent."""
    words = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "REQUEST_URI": "/", "QUERY_STRING": "", "SCRIPT_NAME": "",
             "SERVER_NAME": "here", "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1", "HTTP_HOST": "here"}
    body = b"".join(struct.pack("<H", len(each)) + each.encode() for pair in words.items() for each in pair)
    with socket.socket(socket.AF_UNIX) as asked:
        asked.settimeout(20)
        asked.connect(str(path))
        asked.sendall(struct.pack("<BHB", number, len(body), 0) + body)
        with asked.makefile("rb") as answer:
            head, _, said = answer.read().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), (head, said)
    pid, seconds = said.split()
    return int(pid), float(seconds)


def load_uwsgi(path, most):
    """{(process, language): CPU seconds it told}: requests until both processes have spent enough in both, or `most` seconds."""
    told, finish, turn = Counter(), time.monotonic() + most, 0
    while time.monotonic() < finish and (len(told) < 4 or min(told.values()) < ENOUGH):
        turn += 1
        language = ("python", "ruby", "ruby", "python", "python")[turn % 5] # processes take turns, too: not always the same one's
        pid, spent = ask_uwsgi(path, UWSGI[language])
        told[pid, language] += spent
    return told


def languages_of(folder):
    """{(process, language): seconds} of a profile, by the functions that spend them; and of stacks that have both: none can."""
    seen, both = Counter(), []
    for stack in rbstacks.of_pprof(folder):
        names = {"python" for frame in map(str, stack.frames) if "python_works" in frame}
        names |= {"ruby" for name in stack.names if "ruby_works" in name}
        both += [stack] if len(names) > 1 else []
        for language in names:
            seen[int(stack.labels["process_id"]), language] += stack.count
    return seen, both


@pytest.mark.parametrize("mode", ruby_servers.MODES)
def test_one_server_with_python_and_ruby(mode, pillion, workdir, repository):
    """Each worker has both interpreters, and each second of it is its language's."""
    plugins = [Path("/usr/lib/uwsgi/plugins", f"{name}_plugin.so") for name in ("python3", "rack")]
    if not workloads.tool("uwsgi") or not all(map(os.path.exists, plugins)):
        pytest.skip("not installed: uwsgi-core with uwsgi-plugin-python3 and uwsgi-plugin-rack-ruby3.1")
    programs, path = repository / "tests" / "live" / "programs" / "uwsgi", workdir / "socket"
    command = ["uwsgi", "--plugin", "python3", "--plugin", "rack", "--socket", path, "--wsgi-file", programs / "two.py", "--rack",
               programs / "two.ru", "--master", "--processes", 2, "--die-on-term", "--disable-logging"]
    server = process.start([pillion, "--launch", "exec", "-o", workdir / "out", "-f", ruby_servers.HZ, *ruby_servers.MODES[mode], "--",
                            *command], cwd=workdir)
    try:
        process.until(path.exists, 20, lambda: server.err)
        told = load_uwsgi(path, 15)
        server.signal(signal.SIGTERM)
        done = server.finish(30)
    finally:
        server.end()
    process.settle(15)
    session = profiler.Session(done, workdir / "out")
    seen, both = languages_of(session.folder)
    total, true = session.seconds(ruby_servers.HZ), session.done.cpu_seconds
    print(f"{mode}: {total:.2f} s of {true:.2f}; {dict(seen)}, told {dict(told)}")
    assert not both, both[:3]
    assert abs(total - true) <= max(0.03 * true, 0.45 if mode == "perf-less" else 0.1), session.done
    assert {language for _, language in told} == set(UWSGI)
    for key in (key for key, spent in told.items() if spent >= 0.1): # on a busy machine not all four
        # without perf events what ran since the last stack is the next one's, be it the other language's
        assert abs(seen[key] - told[key]) <= 0.06 + (0.25 if mode == "perf-less" else 0.1) * told[key], (key, seen, told)

"""What else Performance Studio is told: messages, how busy we are, facts about the machine; and what switches each off.

The process that is profiled sleeps; windows are ended by SIGUSR1, messages are sent at once on SIGHUP and at the end.
"""
import json
import re
import signal
import socket
import time
from pathlib import Path

import pytest

from lab import process, pprof, profiler, pyroscope_model, studio_model
from lab.studio_server import Server, keep_all

pytestmark = pytest.mark.measures

SECRET = "SECRET-1"


class Run:
    """pillion attached to a process, uploading to the studio."""

    def __init__(self, pillion, server, *options, token=True, command=("sleep", "60")):
        self.target = process.start(list(command))
        self.windows = 0
        self.pillion = process.start([
            pillion, "-p", self.target.pid, "-c", "-d", 600, "-u", "--backend", "studio", "--server-host", server.url, "-S",
            "checkout", *(["--token", SECRET] if token else []), *options])
        process.until(lambda: " profiles pid " in self.pillion.err or "-q" in options and self.is_ready(), 10,
                      lambda: self.pillion.err)

    def is_ready(self):
        """It takes USR1, and has overwritten the token."""
        place = Path(f"/proc/{self.pillion.pid}")
        taken = [int(mask, 16) for mask in re.findall(r"^Sig(?:Blk|Cgt):\s*(\w+)", (place / "status").read_text(), re.M)]
        return any(mask >> signal.SIGUSR1 - 1 & 1 for mask in taken) and SECRET.encode() not in (place / "cmdline").read_bytes()

    @property
    def err(self):
        return self.pillion.err

    def window(self, server):
        self.windows += 1
        self.pillion.signal(signal.SIGUSR1)
        assert server.wait(accepted=self.windows), self.err

    def flush(self):
        self.pillion.signal(signal.SIGHUP)

    def end(self):
        self.pillion.signal(signal.SIGTERM)
        done = self.pillion.finish(30)
        self.target.end()
        assert done.status == 0, done
        return done.err


def messages(server):
    return [message for batch in server.batches for message in batch.messages]


def numbers(server):
    return [number for batch in server.batches for number in batch.numbers]


# ---- Messages

def test_what_is_said_arrives_once_in_order_and_typed(pillion):
    """The server is strict: gzip, types, no token outside its header."""
    with Server() as server:
        run = Run(pillion, server)
        run.window(server)
        process.until(lambda: " cpu=" in run.err, 10, lambda: run.err) # its line may come after its upload
        run.flush()
        assert server.wait(batches=1), run.err
        said = run.end()
        assert len(server.batches) == 2 and len(server.log_requests) == 2
        assert numbers(server) == list(range(len(numbers(server))))
        lines = [line.removeprefix("pillion: ").removeprefix("warning: ") for line in said.splitlines()]
        assert [line.removeprefix("pillion ") for line in lines] == [m.removeprefix("pillion ") for m in messages(server)]
        first, second = server.batches
        assert first.metadata == second.metadata and first.ident != second.ident
        assert first.metadata["service_name"] == "checkout" and first.metadata["hostname"] == socket.gethostname()
        assert first.lost == second.lost == 0
        windows = [log for log in first.fields["logs"] if log["text"]["extra"]["event"] == "window"]
        assert len(windows) == 1 and windows[0]["severity"] == 3 and "cpu_s" in windows[0]["text"]["extra"]
        assert abs(windows[0]["timestamp"] / 1000 - time.time()) < 60


def test_a_quiet_run_says_it_to_the_studio_all_the_same(pillion):
    with Server() as server:
        run = Run(pillion, server, "-q")
        run.window(server)
        assert run.end() == ""
        assert any("profiles pid" in message for message in messages(server))
        assert any(message.startswith("uploads: 2 sent") for message in messages(server))


def test_no_message_is_sent_when_it_is_not_wanted(pillion):
    with Server() as server:
        run = Run(pillion, server, "--dont-send-logs")
        run.window(server)
        run.flush()
        run.end()
        assert len(server.accepted) == 2 and not server.log_requests


def test_a_log_service_that_fails_delays_and_loses_no_window_and_is_asked_again(pillion):
    """The same batch goes again, under the same name; then what was said since."""
    with Server(logs=[500, 503]) as server:
        run = Run(pillion, server)
        run.flush()
        process.until(lambda: len(server.log_requests) == 1, 10, "the first try")
        run.window(server)
        run.flush()
        process.until(lambda: len(server.log_requests) == 2, 10, "the second try")
        assert not server.batches
        run.window(server)
        run.flush()
        assert server.wait(batches=1), run.err
        said = run.end()
        assert len(server.accepted) == 3
        assert numbers(server) == list(range(len(numbers(server)))) and server.batches[0].lost == 0
        bodies = [studio_model.judge_logs(request)[2] for request in server.log_requests]
        assert len({batch.ident for batch in bodies[:3]}) == 1 and len({tuple(batch.messages) for batch in bodies[:3]}) == 1
        assert "messages are not sent" not in said, "it is told at debug level alone"


def test_a_log_service_that_never_answers_holds_up_nothing(pillion):
    with Server(logs=["hang"] * 5) as server:
        run = Run(pillion, server)
        run.flush()
        process.until(lambda: len(server.log_requests) == 1, 10, "the first try")
        for _ in range(3):
            begun = time.monotonic()
            run.window(server)
            assert time.monotonic() - begun < 5, "a request for logs is given 10 s"
        begun = time.monotonic()
        said = run.end()
        assert time.monotonic() - begun < 5, "the end waits a second for messages, not the whole grace period"
        assert len(server.accepted) == 4 and "uploads: 4 sent" in said


def test_a_studio_without_a_log_service_is_asked_once(pillion):
    with Server(logs=None) as server:
        run = Run(pillion, server, "-v")
        run.flush()
        process.until(lambda: "messages are not sent any more: " in run.err, 10, lambda: run.err)
        run.flush()
        run.window(server)
        said = run.end()
        assert len(server.log_requests) == 1 and said.count("messages are not sent") == 1, said
        assert len(server.accepted) == 2


def test_messages_go_to_an_address_of_their_own(pillion):
    with Server() as server, Server() as logs:
        run = Run(pillion, server, "--api-server", logs.url)
        run.window(server)
        run.end()
        assert not server.log_requests and messages(logs) and not logs.accepted


@pytest.mark.exact
def test_a_secret_is_in_no_message(pillion, workdir):
    """Also when the server repeats it, and when it is the name of what is profiled."""
    odd = workdir / f"x-{SECRET}"
    odd.symlink_to("/bin/sleep")
    echo = (500, {}, f"your key {SECRET} is fine, we are not".encode())
    token = workdir / "token"
    token.write_text(SECRET + "\n")
    with Server([echo]) as server:
        run = Run(pillion, server, "--token-file", token, token=False, command=(odd, "60"))
        run.window(server)
        run.flush()
        assert server.wait(batches=1), run.err
        run.end()
        assert server.batches and not any(SECRET in message for message in messages(server))
        assert any("x-********" in message for message in messages(server)), messages(server)


# ---- How busy we are

def test_how_busy_the_machine_is_stands_in_the_profile_unless_it_is_not_wanted(pillion, program, workdir):
    for wanted in (True, False):
        with Server() as server:
            run = Run(pillion, server, *([] if wanted else ["--disable-metrics-collection"]), "-o", workdir, "--format", "col",
                      command=(program("act"), "spin", "60"))
            time.sleep(0.5)
            run.window(server)
            time.sleep(0.3)  # of a window shorter than the clock of /proc/stat nothing is known
            run.end()
            saved = json.loads((workdir / "last_profile.col").read_text().split("\n")[0][2:])
            for upload in server.accepted[:1]:
                metrics = upload.header["metrics"]
                assert metrics == {"cpu_avg": upload.fields["cpu_avg"], "mem_avg": upload.fields["mem_avg"]}
                if wanted:
                    assert 1 < metrics["cpu_avg"] <= 100 and 0 < metrics["mem_avg"] < 100, metrics
                else:
                    assert metrics == {"cpu_avg": None, "mem_avg": None}
            assert (saved["metrics"]["cpu_avg"] is not None) == wanted, saved["metrics"]


# ---- Facts about the machine

NEUTRAL = {"private_ip": "0.0.0.0", "cloud_provider": "Unknown", "processors": 1, "memory_capacity_mb": 1, "system_name": "Linux",
           "os_name": "unknown", "os_release": "unknown", "kernel_release": "unknown", "kernel_version": "unknown",
           "hardware_type": "unknown", "libc_type": "unknown", "libc_version": "unknown", "python_version": "none",
           "run_mode": "standalone_executable", "deployment_type": "instances", "spawn_uptime_ms": 0, "agent_version": "1.2.3"}
TOLD = {"hostname", "current_time", "spawn_time", "pid", "mac_address", "run_arguments", "profiling_mode", "continuous", "tags"}


def test_without_facts_the_studio_is_sent_what_it_cannot_do_without(pillion):
    with Server() as server:
        run = Run(pillion, server, "--disable-metadata-collection", "-E", "staging")
        run.window(server)
        said = run.end()
        assert said.count("--disable-metadata-collection: the studio refuses profiles without facts") == 1, said
        for upload in server.accepted:
            sent = upload.header["metadata"]
            assert set(sent) == set(NEUTRAL) | TOLD
            assert {key: sent[key] for key in NEUTRAL} == NEUTRAL
            assert sent["hostname"] == socket.gethostname() and re.fullmatch("02(:[0-9A-F]{2}){5}", sent["mac_address"])
        assert server.batches and not any("hostname" in batch.metadata for batch in server.batches)


@pytest.mark.parametrize("backend", ["pyroscope", "http"])
def test_without_facts_nobody_else_is_told_the_host(pillion, workdir, program, backend):
    judge = pyroscope_model.judge if backend == "pyroscope" else keep_all
    host = socket.gethostname()
    for told in (True, False):
        with Server(judge=judge) as server:
            done = process.run([pillion, "-u", "--backend", backend, "--server-host", server.url, "-o", workdir, "--format",
                                "pprof,col", "-E", "staging", *([] if told else ["--disable-metadata-collection"]), "--",
                                program("act"), "spin", "0.2"])
            process.settle(15)
            assert done.status == 0 and len(server.accepted) == 1, done
            saved = pprof.last(workdir)
            header = json.loads((workdir / "last_profile.col").read_text().split("\n")[0][2:])
            assert (header["metadata"]["hostname"] == host) == told
            assert any(host in comment for comment in saved.comments) == told, saved.comments
            if backend == "pyroscope":
                labels = dict(server.accepted[0].labels)
                assert (labels.get("hostname") == host) == told and labels["env"] == "staging"
            assert "refuses profiles without facts" not in done.err

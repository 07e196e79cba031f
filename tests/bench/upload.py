"""What it costs to send a window: CPU time of the thread that sends it, by back end; and of the one that encodes it.

A typical window has 500 stacks, a large one 2000: the heaviest of a real program. upload_send.c sends them as the uploader does, over
plain TCP and over TLS (ECDSA P-256), to a server on this machine. A window of a minute finds a connection that has ended and
a session that has not, so "again" is what it costs; a first handshake and a connection that is still there stand beside. At
last a real run, by what its own profiles say.

    tests/bench/upload.py [--quick]
"""
import contextlib
import json
import platform
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import col, linked, process, uploading  # noqa: E402
from lab.sink import Sink  # noqa: E402
from lab.uploading import BUSY, Run  # noqa: E402
import rows  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PILLION = ROOT / "build" / "out" / platform.machine() / "pillion"
QUICK = "--quick" in sys.argv
TYPICAL, LARGE = 500, 2000
MODULES = "ast json email http asyncio unittest logging argparse typing inspect".split()


class Polite(Sink):
    """Ends a connection in order: OpenSSL forgets the session of one that is only closed."""

    def _one(self, connection, stream):
        goes_on = super()._one(connection, stream)
        if not goes_on and self.tls:
            with contextlib.suppress(OSError):
                connection.unwrap()
        return goes_on


def profiled(folder):
    """The lines of a real program's .col, the heaviest stacks first: Python with the native code below it, some 40 frames."""
    done = process.run([PILLION, "-q", "--launch", "init", "-f", 9999, "--max-cpu", "100", "--format", "col", "-o", folder / "of",
                        "--", sys.executable, "-m", "pydoc", "-w", *MODULES], cwd=folder, timeout=60)
    assert done.status == 0, done
    header, *lines = (folder / "of" / "last_profile.col").read_text().rstrip("\n").split("\n")
    return header, sorted(lines, key=lambda line: -int(line.rsplit(" ", 1)[1]))


def window(path, header, lines):
    path.write_text("\n".join([header, *sorted(lines)]))
    return path


def send(program, backend, path, authority=None, context=None):
    times = 9 if QUICK else 51
    with Polite(tls=context) as sink:
        done = process.run([program, backend, sink.url, path, times, *([authority] if authority else [])], timeout=120)
        assert done.status == 0, done
        found = json.loads(done.out)
        found["kb"] = len(sink.taken[-1].body) / 1000
    assert not context or found["resumptions"] == times, found
    return found


def costs(folder):
    program = linked.program("tests/bench/upload_send.c", platform.machine(), PILLION)
    authority, context = uploading.certificate(folder)
    header, lines = profiled(folder)
    assert len(lines) >= LARGE, len(lines)
    for stacks in (TYPICAL, LARGE):
        path = window(folder / f"{stacks}.col", header, lines[:stacks])
        for backend in ("studio", "pyroscope", "http"):
            for how, secure in (("plain", ()), ("TLS", (authority, context))):
                cost = send(program, backend, path, *secure)
                whole = "a whole handshake" if secure else "the first one"
                rows.add(f"upload of a window of {stacks} stacks, {backend}, {how}", cost["again"], "ms",
                         most=5 if stacks == TYPICAL else None,
                         note=f"{cost['kb']:.0f} KB; {cost['encode']:.2f} more to encode it, as for a file; {cost['kept']:.2f} on a "
                              f"kept connection, {cost['first']:.1f} with {whole}")


def real_run(folder):
    """Windows of a busy Python, over TLS; what the uploader's threads used, by the profiles themselves."""
    authority, context = uploading.certificate(folder)
    out = folder / "out"
    windows = 4 if QUICK else 10
    with Polite(tls=context) as sink:
        run = Run(PILLION, "--backend", "http", "--server-host", f"{sink.url}/in", "--ca-file", authority, "-o", out, "--format",
                  "col", "-f", 999, command=(sys.executable, "-c", BUSY))
        for count in range(1, windows + 1):
            time.sleep(1)
            run.window()
            process.until(lambda: len(sink.taken) >= count, 20)
        time.sleep(0.2)
        run.end()
    last = [window.header["pillion"]["uploads"] for window in col.every(out)][-1]
    stacks = [len(window.stacks) for window in col.every(out)][:-1]
    rows.add("a window's upload in a run, http, TLS, the thread that sends", last["cpu_ns"] / last["sent"] / 1e6, "ms", most=5,
             note=f"{last['sent']} windows of {min(stacks)} to {max(stacks)} stacks, one whole handshake among them")


def main():
    process.become_subreaper()
    with tempfile.TemporaryDirectory() as folder:
        costs(Path(folder))
        real_run(Path(folder))


if __name__ == "__main__":
    main()

"""Recorded samples through the whole pipeline, as a user without any right: the stacks are those that were read and
believed when the recording was made (make.py)."""
import subprocess
from pathlib import Path

import pytest

from lab import emulate, profiler

HERE = Path(__file__).resolve().parent
RECORDINGS = sorted(HERE.glob("*.rec"))
NOBODY = 65534


def architecture(recording):
    return "aarch64" if recording.stem.startswith("aarch64") else "x86_64"


def replay(recording, folder):
    arch = architecture(recording)
    reason = emulate.missing(arch) or (arch != emulate.HERE and emulate.compiler_missing(arch))
    if reason:
        pytest.skip(reason)
    program = profiler.copy(emulate.linked(arch, "replay"), folder)
    done = subprocess.run([*emulate.prefix(arch), program, "/dev/stdin"], stdin=recording.open("rb"),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, user=NOBODY, group=NOBODY, extra_groups=[])
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().splitlines()


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda r: r.stem)
def test_a_recording_gives_the_stacks_it_gave_when_it_was_made(recording, workdir):
    expected = recording.with_suffix(".txt").read_text().splitlines()
    assert replay(recording, workdir) == expected


def test_every_kind_of_program_is_recorded():
    """A recording that is lost takes its test with it."""
    names = {r.stem for r in RECORDINGS}
    assert {"frames", "no-frames", "exceptions", "rust", "go", "python3.11", "node", "handler", "musl", "deep",
            "stripped"} <= names

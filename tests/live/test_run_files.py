"""What stands around a run: the process that ends it, the file that shows that it lives, facts that others tell of it."""
import json
import os
import time

import pytest

from lab import process, profiler

pytestmark = pytest.mark.measures


@pytest.fixture
def spinning(program):
    """A process to attach to."""
    target = process.start([program("act"), "spin", "60"])
    yield target.pid
    target.end()


def test_the_run_ends_with_its_controller(pillion, workdir, spinning):
    controller = process.start(["sleep", "60"])
    run = process.start([pillion, "-p", spinning, "-c", "-d", 60, "--controller-pid", controller.pid, "-o", workdir])
    process.until(lambda: f"pid {spinning}" in run.err, 10, lambda: run.err)
    assert run.poll() is None
    controller.end()
    done = run.finish(10)
    assert done.status == 0 and f"the controlling process, pid {controller.pid}, has ended" in done.err, done
    assert profiler.Session(done, workdir).col.total > 0, "its last window is written"


def test_a_controller_that_is_gone_has_ended(run, pillion, program, workdir):
    """Whoever started the run may end before it has begun; a command goes on by itself."""
    gone = run(["true"])
    done = run([pillion, "--launch", "init", "--controller-pid", gone.pid, "-o", workdir, "--", program("act"), "spin", "0.4"])
    assert done.status == 0 and f"the controlling process, pid {gone.pid}, has ended" in done.err, done


def test_each_window_touches_the_heartbeat_file(pillion, program, workdir):
    file = workdir / "alive"
    file.write_text("kept")
    os.utime(file, (1, 1))
    session = profiler.profile(pillion, workdir / "out", [program("act"), "spin", "1.1"], "-d", "1", "--heartbeat-file", file)
    assert len(session.windows) >= 2
    last = max((session.folder / name).stat().st_mtime for name in os.listdir(session.folder) if name.startswith("profile_"))
    assert file.stat().st_mtime >= last - 0.1 and file.read_text() == "kept"


def test_a_heartbeat_that_cannot_be_made_is_told_once(pillion, program, workdir):
    session = profiler.profile(pillion, workdir / "out", [program("act"), "spin", "0.3"], "--heartbeat-file",
                               workdir / "no" / "alive")
    assert session.windows and session.done.err.count("--heartbeat-file: cannot touch") == 1, session.done


FACTS = {"static": {"team": "Größe \U0001f600", "n": [1, {"a": "b"}]}, "application": {"1": {"x": "1"}}}


def external(pillion, workdir, program, facts, age=0):
    file = workdir / "facts.json"
    file.write_text(facts if isinstance(facts, str) else json.dumps(facts, indent=2, ensure_ascii=False))
    os.utime(file, (time.time() - age, time.time() - age))
    return profiler.profile(pillion, workdir / "out", [program("act"), "spin", "0.4"], "--external-metadata", file)


def test_facts_of_others_stand_in_the_header(run, pillion, program, workdir, spinning):
    facts = {**FACTS, "application": {str(spinning): {"job": "résumé", "pid": "mine"}, "1": 4}}
    (workdir / "facts.json").write_text(json.dumps(facts, indent=2, ensure_ascii=False))
    done = run([pillion, "-p", spinning, "-d", 1, "--external-metadata", workdir / "facts.json", "-o", workdir])
    header = profiler.Session(done, workdir).col.header
    assert header["metadata"]["external_metadata"] == FACTS["static"]
    mine, = [entry for entry in header["application_metadata"] if entry and entry["pid"] == spinning]
    assert mine["job"] == "résumé" and mine["comm"] == "act"
    assert "--external-metadata" not in done.err, done


@pytest.mark.parametrize("facts,age,sentence", [
    (FACTS, 400, "facts.json was changed more than 5 minutes ago: who writes it has ended"),
    ("{\"static\": {", 0, "facts.json is no JSON"),
])
def test_facts_that_are_old_or_none_are_told(facts, age, sentence, pillion, program, workdir):
    session = external(pillion, workdir, program, facts, age)
    assert sentence in session.done.err and "external_metadata" not in session.col.header["metadata"], session.done

"""Programs in languages whose functions are not read: that is told, once, and what names them does name them."""
import re
import shutil

import pytest

from lab import process, profiler

pytestmark = pytest.mark.measures

NODE = """
function hot(n) { let s = 0; for (let i = 0; i < n; i++) s += i % 7; return s }
const end = Date.now() + Number(process.argv[2])
while (Date.now() < end) hot(1e6)
"""
PROGRAMS = {
    "node": ("node", "busy.js"),
}
SENTENCES = {
    "node": "JavaScript functions have no names; with perf, node --perf-basic-prof names them",
}


@pytest.fixture
def command(workdir):
    """command(language, ms, *options): a program of it that is busy for so long."""
    def make(language, ms, *options):
        program, *rest = PROGRAMS[language]
        if not shutil.which(program):
            pytest.skip(f"no {program} here")
        (workdir / "busy.js").write_text(NODE)
        rest = [workdir / one if one == "busy.js" else one for one in rest]
        return [shutil.which(program), *options, *rest, str(ms)]
    return make


@pytest.mark.parametrize("language", PROGRAMS)
def test_functions_without_names_are_told_once(pillion, workdir, command, language):
    session = profiler.profile(pillion, workdir / "out", command(language, 2500), "-d", "1", launch="init")
    hint = re.findall(rf"^pillion: \S+ \(pid \d+\): {re.escape(SENTENCES[language])}$", session.done.err, re.MULTILINE)
    assert len(hint) == 1, session.done
    page = (workdir / "out" / "run_flamegraph.html").read_text()
    unseen = re.search(r'<p id="unseen".*?</p>', page, re.DOTALL)[0]
    assert SENTENCES[language] in unseen and "nothing missing (" not in unseen


@pytest.mark.parametrize("language", PROGRAMS)
def test_without_perf_an_empty_window_names_the_way_out(pillion, workdir, command, language):
    session = profiler.profile(pillion, workdir / "out", command(language, 1000), "--perf-mode", "disabled",
                               launch="init")
    empty = re.search(r"EMPTY: .*", session.done.err)
    assert empty and SENTENCES[language] in empty[0], session.done


@pytest.mark.parametrize("language", PROGRAMS)
def test_the_doctor_names_the_language(run, pillion, workdir, command, language):
    target = process.start(command(language, 60000))
    name = {"node": "javascript"}.get(language, language)
    row = re.compile(rf"^  {target.pid} +\S+ .* {name} .*", re.MULTILINE)
    process.until(lambda: row.search(run([pillion, "doctor", "-p", target.pid]).out), 20, "it is known", .3)
    target.end()


def test_what_node_writes_names_its_functions_and_nothing_is_told(pillion, workdir, command):
    session = profiler.profile(pillion, workdir / "out", command("node", 2500, "--perf-basic-prof"), "-d", "2",
                               launch="init", cwd=workdir)
    assert "JavaScript functions" not in session.done.err, session.done
    assert any(frame.startswith("hot ") for frame in session.frames()), session.frames()

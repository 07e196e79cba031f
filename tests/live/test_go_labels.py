"""What a Go program has labelled its work with (pprof.Do) stands at the samples of that work and of no other, as in Go's own CPU
profile: tenants, endpoints, and the ids of spans, of which each request has one."""
import pytest

from lab import golabels, golang, pprof, process, profiler

pytestmark = pytest.mark.measures

# Up to Go 1.23 labels are a map.
RELEASES = [*(pytest.param(version, marks=pytest.mark.net) for version in
              golang.releases("go1.22.12", more=("go1.18.10", "go1.20.14", "go1.23.12", "go1.24.6", "go1.25.1", "go1.27.0"))), "local"]
MODES = {"perf": [], "brief stops": ["--perf-mode", "disabled", "--brief-stops"]}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", RELEASES)
def test_labels_stand_at_the_samples_of_their_work(version, mode, pillion, workdir):
    session = profiler.profile(pillion, workdir, [golang.program(version, "go_labels.go"), "4"], "-f", 199, "--max-cpu", 100, *MODES[mode],
                               launch="init")
    golabels.check(pprof.last(workdir), session.done.out)


def test_a_program_that_sets_none_is_not_looked_into(pillion, workdir, repository):
    """Nor are labels read where its language is not wanted."""
    for source, options in (("mixed.go", []), ("go_labels.go", ["--go-mode", "disabled"])):
        done = process.run([pillion, *options, "--log-level", "debug", "-o", workdir / source, "--", golang.program("local", source), "1"], timeout=60)
        assert "its go stacks are read" not in done.err, done
        assert not any(key in golabels.OWN for sample in pprof.last(workdir / source).samples for key in sample.labels)


def test_go_tool_pprof_shows_them(pillion, workdir, run):
    profiler.profile(pillion, workdir, [golang.program("local", "go_labels.go"), "1"], "--max-cpu", 100, launch="init")
    told = run(["go", "tool", "pprof", "-tags", workdir / "last_profile.pprof"])
    assert "tenant: Total" in told.out and "blue" in told.out and "trace endpoint: Total" in told.out, told

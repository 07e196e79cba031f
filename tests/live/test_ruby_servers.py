"""Ruby's servers under load: what they spend, as the application's functions, against their own clocks (lab/ruby_servers.py)."""
import pytest

from lab import ruby_servers

pytestmark = pytest.mark.measures


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
    for part, share in figures.shares.items():
        assert abs(share - figures.true_shares[part]) < 0.06, str(figures) # some 1,000 stacks

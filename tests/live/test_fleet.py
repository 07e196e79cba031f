"""Ten thousand of us do not hurt a server, and a bad day loses nothing: bench/fleet.c and lab/soak.c, which say how."""
import os

import pytest

from lab import fleet

pytestmark = pytest.mark.measures


@pytest.fixture(scope="module")
def figures(out):
    return fleet.simulate(out / "bench" / "fleet")


def test_ten_thousand_started_in_one_second_send_evenly(figures):
    assert figures[fleet.STEADY]["peak"] <= fleet.MOST_STEADY
    assert figures[fleet.UNSPREAD[0]]["peak"] > 10  # what it would be otherwise


@pytest.mark.parametrize("name", fleet.AFTER)
def test_a_server_that_comes_back_is_not_flooded(figures, name):
    one = figures[name]
    assert one["peak"] <= fleet.MOST_AFTER
    assert one["old"] == 0 and one["gone_s"] <= 660, one  # ten minutes of windows, in little more than that


@pytest.mark.parametrize("name", fleet.SPOOLED)
def test_a_spool_loses_nothing_of_an_outage(figures, name):
    one = figures[name]
    assert one["lost"] == 0 and one["produced"] == one["taken"] + one["waiting"], one


def test_a_server_that_serves_little_gets_well_again(figures):
    """It refuses what is more than 1.5 times the usual rate: retries do not keep it down."""
    one = figures[fleet.SMALL]
    assert one["old"] == 0 and one["gone_s"] <= 300 and one["lost"] < one["produced"] / 10000, one


def test_all_windows_of_a_bad_time_are_accounted_for(out, workdir):
    """Two hours in five seconds, with the sanitizers, which look for what leaks."""
    kept = {**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=1"}
    soak = fleet.Soak(out / "host" / "lab" / "soak", 2, 1440, 3, workdir, env=kept)
    assert soak.done.status == 0, soak.done
    windows, words = soak.figures["windows"], soak.figures["words"]
    assert windows["windows"] == 120 and windows["arrived"] > 60 and words["failures"] > 5, soak.done.out
    assert windows["lost"] == 0 and soak.descriptors[10] <= soak.descriptors[1] + 3, soak.done.out

"""The page's size, and that nothing of the profile is missing in it. No browser."""
import pytest
from pages import Decoded, block, constant_bytes, make, wanted_tree

MB = 1_000_000


@pytest.mark.parametrize("stacks, page_bytes", [(100, 0.08 * MB), (10_000, 0.31 * MB), (100_000, 1.4 * MB)])
def test_every_node_of_a_large_profile_is_in_a_small_page(workdir, stacks, page_bytes):
    measured = make("synthetic", stacks, workdir / "page.html", workdir / "tree.tsv")
    page = (workdir / "page.html").read_bytes()
    assert len(page) <= page_bytes
    assert constant_bytes(page) <= 48 * 1024
    if stacks == 100_000:
        assert len(page) / measured["nodes"] <= 0.75
        assert measured["extra_bytes"] <= 2 * MB
    decoded = Decoded(page)
    wanted = wanted_tree(workdir / "tree.tsv")
    assert len(decoded.nodes) == measured["nodes"] == len(wanted)
    for (depth, own, name), want in zip(decoded.nodes, wanted):
        text, kind, _ = decoded.names[name]
        if (depth, kind, own, text) != want:
            raise AssertionError(f"{(depth, kind, own, text)} instead of {want}")


def test_a_hundred_thousand_stacks_with_time_are_a_small_page(workdir):
    measured = make("timed", 100_000, workdir / "page.html")
    page = (workdir / "page.html").read_bytes()
    assert len(page) <= 2.5 * MB and measured["extra_bytes"] <= 3 * MB
    assert b'"steps":6000' in block(page, "data")[:10_000]


def test_the_same_profile_gives_the_same_page(workdir):
    for name in ("a", "b"):
        make("synthetic", 1000, workdir / name)
    assert (workdir / "a").read_bytes() == (workdir / "b").read_bytes()

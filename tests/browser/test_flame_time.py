"""Time in the page: the strip, the heat map, and that a picked span is what an independent count of the block says."""
import json
import random
import re
from collections import Counter

import pytest
from pages import Decoded, Description, make, saved

START_NS = 1_795_170_000_000_000_000  # 10:20:00 UTC
GUTTER = 44


def day():
    """20 s. web is at work from 2 s to 6 s, db from 5 s to 15 s; of 1 s nobody knows when it was."""
    made = Description(start_ns=START_NS, end_ns=START_NS + 20 * 10 ** 9).process("web", pid=1, cpu=4)
    for tick in range(400):
        made.at(.01, 2 + tick / 100, "main", "parse" if tick < 100 else "render")
    made.process("db", pid=2, cpu=6)
    for tick in range(500):
        made.at(.01, 5 + tick / 50, "query", "scan")
    return made.stack(1, "not seen:[lost]")


@pytest.fixture
def timed(view, page_of):
    view.open(page_of(day()))
    view.until("!!document.querySelector('#time button')")
    return view


def drag(view, start, end, rows=(.5, .5)):
    """From one part of the window to another, by the mouse."""
    left, top, width, height = view.js("(() => { const b = document.getElementById('band').getBoundingClientRect();"
                                       " return [b.left, b.top, b.width, b.height]; })()")
    at = [(left + GUTTER + x * (width - GUTTER), top + y * (height - 18)) for x, y in zip((start, end), rows)]
    view.mouse("mouseMoved", *at[0])
    view.mouse("mousePressed", *at[0], "left")
    view.mouse("mouseMoved", *at[1], "left")
    view.mouse("mouseReleased", *at[1], "left")
    view.settle()


def crumbs(view):
    return view.text("#crumbs")


def test_the_strip_names_the_processes_and_stands_above_the_graph(timed):
    assert timed.text("#time p").split("\n")[:3] == ["Time: strip", "db (pid 2) 50.0 %", "web (pid 1) 40.0 %"]
    assert "not in time: 10.0 %" in timed.text("#time p")
    assert timed.js("document.getElementById('time').getBoundingClientRect().bottom <="
                    " document.getElementById('scroll').getBoundingClientRect().top + 1")
    label = timed.js("document.getElementById('band').getAttribute('aria-label')")
    assert "all 0.0 s to 20.0 s (10:20:00.0 to 10:20:20.0 UTC) shown" in label


def test_graph_table_search_and_legend_follow_a_span(timed, look):
    drag(timed, .11, .14)  # bars are 0.5 s wide
    assert timed.hash() == "#span=2-3" and timed.row_names(1) == ["web (pid 1)"]
    assert timed.row_names(3) == ["parse"] and "total 1.00 s, 100.0 % of all" in timed.at(.5, 3)[1]
    assert crumbs(timed) == "time: 2.0 s to 3.0 s (10:20:02.0 to 10:20:03.0 UTC) \u00d7"
    drag(timed, .23, .29)
    assert timed.hash() == "#span=4.5-6"
    assert timed.row_names(1) == ["web (pid 1)", "db (pid 2)"] and timed.search("query") == "25.0 % in 1 place"
    assert timed.text("#legend").split("\n") == ["native100.0 %", "not seen0.0 %"]
    timed.search("")
    timed.js("document.activeElement.blur()")
    timed.key("t")
    assert timed.js("[...document.querySelectorAll('#list tbody tr')].map(r => [...r.cells].map(c => c.textContent.split(' ± ')[0]))") == [
        ["75.0 %", "1.50 s", "75.0 %", "1.50 s", "native", "render"], ["25.0 %", "0.50 s", "25.0 %", "0.50 s", "native", "scan"],
        ["0.0 %", "0.0 s", "75.0 %", "1.50 s", "native", "main"], ["0.0 %", "0.0 s", "25.0 %", "0.50 s", "native", "query"]]
    timed.key("g")
    assert timed.status()[1].startswith("4.5 s to 6.0 s (10:20:04.5 to 10:20:06.0 UTC): 2.00 s of CPU, "
                                        "not in time: 10.0 % of the window. ")
    other = look()
    other.open(timed.js("location.href"))
    assert other.row_names(3) == ["render", "scan"]
    timed.key("Escape")
    assert timed.hash() == "" and timed.row_names(3) == ["scan", "render", "parse"]
    timed.js("history.back()")
    timed.until("location.hash.includes('span=')")
    timed.settle()
    assert timed.row_names(3) == ["render", "scan"]


def test_a_span_is_picked_and_moved_by_keys_alone(timed):
    timed.key("z")
    for key, shift, span in (("ArrowRight", False, "0-0.5"), ("ArrowRight", False, "0.5-1"), ("ArrowRight", True, "0.5-1.5"),
                             ("ArrowLeft", True, "0.5-1"), ("ArrowLeft", True, "0.5-1"), ("End", False, "19.5-20"),
                             ("ArrowRight", False, "19.5-20"), ("ArrowLeft", False, "19-19.5"), ("Home", False, "0-0.5")):
        timed.key(key, shift=shift)
        assert timed.hash() == "#span=" + span, key
        wanted = "picked " + " to ".join(f"{float(edge):.1f} s" for edge in span.split("-"))
        assert wanted in timed.js("document.getElementById('band').getAttribute('aria-label')")
    assert "nothing was seen" in timed.status()[1]
    timed.key("Escape")
    assert timed.hash() == "" and timed.js("document.activeElement.id") == "band"
    timed.key("q")
    for key, span in (("ArrowRight", "0-1"), ("ArrowDown", "0.02-1.02"), ("ArrowRight", "1.02-2.02")):
        timed.key(key)
        assert timed.hash() == f"#span={span}&times=heat"
    timed.key("u")
    assert timed.hash() == "#times=heat"
    timed.key("q")
    assert timed.hash() == "#times=hidden" and not timed.js("document.getElementById('time').checkVisibility()")
    timed.key("q")
    assert timed.hash() == "" and timed.js("document.getElementById('time').checkVisibility()")
    assert timed.js("[...document.querySelectorAll('#help dt')].map(e => e.textContent)").count("q") == 1


def test_a_heat_map_picks_from_cell_to_cell(timed):
    timed.click("#time button")
    drag(timed, .275, .275, (.502, .902))  # in second 5 from .5 to .92
    assert timed.hash() == "#span=5.5-5.92&times=heat"
    assert "total 0.63 s" in timed.at(.5, 0)[1], "42 of web, 21 of db"


def test_what_is_saved_is_of_the_span_and_says_so(timed):
    drag(timed, .11, .14)
    text, name = saved(timed, "e")
    header = json.loads(text.split("\n")[0][2:])
    assert name == "shop.2-3s.col" and re.findall(r"parse\S* (\d+)", text) == ["100"] and text.count("\n") == 2
    assert (header["start_time"], header["end_time"]) == ("2026-11-20T10:20:02.000Z", "2026-11-20T10:20:03.000Z")
    assert header["pillion"]["span"].startswith("2.0 s to 3.0 s")
    text, name = saved(timed, "s")
    assert name == "shop.2-3s.svg" and ">2.0 s to 3.0 s (10:20:02.0 to 10:20:03.0 UTC): 1.00 s of CPU" in text


def test_a_page_without_moments_has_no_strip(view, page_of):
    view.open(page_of(Description().process("p").stack(1, "main")))
    assert not view.js("document.getElementById('time').checkVisibility()")
    view.key("q")
    assert "not known" in view.status()[1] and view.hash() == ""


def test_a_broken_span_of_a_link_shows_all(timed):
    for broken in ["5-2", "x", "900-901", "-4-3", "0-1e99", "5-", "1.2.3-9", "0-20"]:
        timed.js(f"location.hash = 'times=heat&span={broken}'")
        timed.until("document.querySelector('#time button').textContent.includes('heat')")
        timed.settle()
        assert timed.row_names(1) == ["db (pid 2)", "web (pid 1)"], broken
        assert crumbs(timed) == "" and broken not in timed.status()[1].replace(broken + " s", "")
        timed.js("location.hash = 'span=2-3'")
        timed.until("document.querySelector('#time button').textContent.includes('strip')")


def test_any_spans_sum_is_what_the_block_says(view, workdir):
    """Against a count made here from the decoded block."""
    path = workdir / "page.html"
    make("timed", 3000, path)
    decoded = Decoded(path.read_bytes())
    whole = sum(own for _, own, _ in decoded.nodes)
    assert abs(sum(ns for _, _, ns in decoded.times) - whole) < 1000
    view.open(path)
    random.seed(3)
    for start, end in [(0, 1), (5999, 6000), *(sorted(random.sample(range(6001), 2)) for _ in range(4))]:
        wanted, functions = 0, Counter()
        for at, step, ns in decoded.times:
            if start <= step < end:
                wanted += ns
                functions[decoded.names[decoded.nodes[at][2]][0].decode()] += ns
        view.js(f"location.hash = 'span={start / 100}-{end / 100}&v=table'")
        view.until(f"document.getElementById('crumbs').textContent.startsWith('time: {start / 100:g}'.slice(0, 8))")
        view.settle()
        told = re.search(r": ([\d.]+) s of CPU|nothing was seen", view.status()[1])
        assert abs(float(told.group(1) or 0) - wanted / 1e9) <= max(.0051, wanted / 1e11), (start, end)
        name, most = functions.most_common(1)[0] if functions else ("", 0)
        first = view.js("document.querySelector('#list tbody tr')?.cells[1].textContent ?? '0 s'")
        assert abs(float(first.split()[0]) - most / 1e9) < .0051, (start, end, name)

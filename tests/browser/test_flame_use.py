"""What a user does with a flame graph: zoom, search, filter, other views, links, copies, keys."""
import base64
import itertools
import json
import math
import re
import urllib.parse
import xml.etree.ElementTree as ElementTree

import pytest
from pages import Description, make, saved

# 10 s of web (6 s main thread, 2 s worker) and db (2 s):
#
#   web (pid 1)                            8.0
#     main                                 6.0
#       parse 3.0   (own 1.0)
#         lex 2.0
#       render 2.0
#         lex 0.5 (own 0.5)   escape 1.5
#       [kernel read] 1.0
#     worker (thread)                      2.0
#       fib 2.0 > fib 1.5 > fib 1.0 > add 0.5
#   db (pid 2)                             2.0
#     query 1.2 > lex 0.7 > sys_read 0.4 (kernel)
#     [lost] 0.8


def shop(scale=1, **meta):
    description = Description(**meta)
    add = description.stack
    description.process("web", pid=1, container="front", cpu=8 * scale)
    add(1.0 * scale, "python:main (app.py:1)", "parse @ /usr/bin/web")
    add(2.0 * scale, "python:main (app.py:1)", "parse @ /usr/bin/web", "lex @ /lib/liblex.so")
    add(0.5 * scale, "python:main (app.py:1)", "render @ /usr/bin/web", "lex @ /lib/liblex.so")
    add(1.5 * scale, "python:main (app.py:1)", "render @ /usr/bin/web", "escape @ /usr/bin/web")
    add(1.0 * scale, "python:main (app.py:1)", "kernel:sys_read")
    description.thread("worker")
    add(0.5 * scale, "fib")
    add(0.5 * scale, "fib", "fib")
    add(0.5 * scale, "fib", "fib", "fib")
    add(0.5 * scale, "fib", "fib", "fib", "add")
    description.process("db", pid=2, container="back", cpu=2 * scale)
    add(0.5 * scale, "go:query")
    add(0.3 * scale, "go:query", "lex @ /lib/liblex.so")
    add(0.4 * scale, "go:query", "lex @ /lib/liblex.so", "kernel:sys_read")
    add(0.8 * scale, "not seen:[lost]")
    return description


@pytest.fixture
def graph(view, page_of):
    return view.open(page_of(shop()))


def test_every_row_is_where_its_weight_puts_it(graph):
    assert graph.row_names(0) == ["all"]
    assert graph.row_names(1) == ["web (pid 1)", "db (pid 2)"]
    assert graph.row_names(2) == ["main (app.py)", "worker", "query", "[lost]"]
    assert graph.row_names(3) == ["parse", "render", "sys_read", "fib", "lex"]
    name, facts = graph.at(.1, 3)
    assert (name, facts) == ("parse", "native \u00b7 /usr/bin/web \u00b7 total 3.00 s, 30.0 % of all \u00b7 own 1.00 s \u00b7 300 samples")
    assert graph.at(.78, 1)[0] == "web (pid 1)" and graph.at(.82, 1)[0] == "db (pid 2)"


def test_a_click_zooms_and_the_callers_stay(graph):
    graph.zoom(.4, 3)
    assert graph.row_names(0) == ["all"] and graph.row_names(2) == ["main (app.py)"]
    assert graph.row_names(3) == ["render"] and graph.row_names(4) == ["escape", "lex"]
    assert "75.0 % of view" in graph.at(.2, 4)[1]
    graph.zoom(.5, 2)
    assert graph.row_names(3) == ["parse", "render", "sys_read"]
    graph.key("Escape")
    assert graph.row_names(1) == ["web (pid 1)", "db (pid 2)"]


def test_back_and_forward_leave_and_return_to_a_zoom(graph):
    graph.zoom(.1, 3)
    graph.zoom(.1, 4)
    assert graph.row_names(3) == ["parse"] and graph.row_names(4) == ["lex"]
    graph.js("history.back()")
    graph.until("!location.hash.includes('lex')")
    graph.settle()
    assert graph.row_names(4, 10) == ["lex"] and graph.at(.9, 4)[0] == ""
    graph.js("history.back()")
    graph.until("!location.hash.includes('parse')")
    graph.settle()
    assert graph.row_names(1) == ["web (pid 1)", "db (pid 2)"]
    graph.js("history.forward()")
    graph.until("location.hash.includes('parse')")
    graph.settle()
    assert graph.row_names(3) == ["parse"]


@pytest.mark.parametrize("text, found", [
    ("lex", "32.0 % in 3 places"),          # 2.0 + 0.5 + 0.7
    ("LEX", "0.0 % in 0 places"),           # capitals count when there are any
    ("Web", "0.0 % in 0 places"),
    ("web", "80.0 % in 1 place"),           # what lies below a hit counts once
    ("fib", "20.0 % in 1 place"),
    ("fib|main", "0.0 % in 0 places"),
    ("/fib|main/", "80.0 % in 2 places"),
    ("/^l.x$/", "32.0 % in 3 places"),
    ("(app.py)", "60.0 % in 1 place"),
    ("/(/", "not a regular expression"),
    ("", ""),
])
def test_search_tells_the_share_of_what_matches(graph, text, found):
    assert (graph.search(text) or "") == found


def test_the_switch_makes_it_a_regular_expression(graph):
    assert graph.search("l.x") == "0.0 % in 0 places"
    graph.click("#regex")
    assert graph.text("#found") == "32.0 % in 3 places"
    assert graph.search("l(x") == "not a regular expression"
    assert graph.js("document.getElementById('query').getAttribute('aria-invalid')") == "true"


def test_the_share_is_of_what_the_zoom_shows(graph):
    graph.search("lex")
    graph.zoom(.4, 3)
    assert graph.text("#found") == "25.0 % in 1 place"
    graph.zoom(.9, 4)
    assert graph.text("#found") == "100.0 % in 1 place"


def test_enter_walks_through_the_hits_by_weight(graph):
    graph.search("lex")
    seen = []
    for _ in range(4):
        graph.key("Enter")
        seen.append(re.search(r"total ([\d.]+) s", graph.status()[1]).group(1))
    assert seen == ["2.00", "0.70", "0.50", "2.00"]
    assert graph.text("#found").startswith("1 of 32.0 %")
    graph.key("Enter", shift=True)
    assert "0.50 s" in graph.status()[1] and graph.text("#found").startswith("3 of")


def test_escape_clears_the_search_and_returns_to_the_graph(graph):
    graph.zoom(.1, 3)
    assert graph.search("lex") == "66.7 % in 1 place" and "query=lex" in graph.hash()
    graph.key("Escape")
    assert graph.js("document.getElementById('query').value") == "" and graph.js("document.activeElement.id") == "canvas"
    assert not graph.text("#found") and "query" not in graph.hash()
    assert graph.row_names(3) == ["parse"]  # the zoom is left by the next one
    graph.key("t")
    graph.search("lex")
    graph.key("Escape")
    assert len(table(graph)) == 10
    graph.key("g")
    assert "v=" not in graph.hash()


def test_a_tiny_hit_is_painted_and_found(view, page_of):
    description = Description().process("p")
    for i in range(3000):
        description.stack(1, "many", f"f{i}")
    description.stack(.01, "many", "f500", "needle")
    view.open(page_of(description))
    colour = "[...document.getElementById('canvas').getContext('2d').getImageData(0, 17 * 4 + 6, canvas.width, 1).data]"
    assert view.search("needle") == "0.0 % in 1 place"
    pixels = view.js(colour)
    assert [255, 79, 216] in [pixels[i:i + 3] for i in range(0, len(pixels), 4)]
    view.key("Enter")
    assert view.status()[0] == "needle" and "f500" in urllib.parse.unquote_plus(view.hash())


def test_a_wide_box_that_begins_in_a_tiny_ones_pixel_is_painted(view, page_of):
    # on 1600 pixels: b from 800.16 to 800.32, the next caller's c from there on
    description = Description()
    description.process("p").stack(50.01, "first", "a").stack(.01, "first", "b").stack(49.98, "second", "c")
    view.open(page_of(description))
    row = view.js("[...document.getElementById('canvas').getContext('2d').getImageData(0, 17 * 3 + 8, canvas.width, 1).data]")
    painted = [row[i:i + 3] != [255, 255, 255] for i in range(0, len(row), 4)]
    assert sum(painted) >= .95 * len(painted)


def chip(view, text):
    """As a mouse clicks it."""
    view.js("(b => { b.focus(); b.click(); })([...document.querySelectorAll('#chips button')].find("
            f"b => b.firstChild.data === {json.dumps(text)}))")
    view.settle()
    assert view.js("document.activeElement.firstChild.data") == text


def chips_of(view):
    return view.js("[...document.querySelectorAll('#choices .bar')].map(r => [...r.children].map(c => c.textContent))")


def test_filters_by_process_thread_and_container(graph):
    graph.key("p")
    assert chips_of(graph) == [["Process", "web (pid 1)80.0 %", "db (pid 2)20.0 %"],
                               ["Thread", "web60.0 %", "worker20.0 %", "db20.0 %"],
                               ["Container", "front80.0 %", "back20.0 %"]]
    chip(graph, "db (pid 2)")
    assert graph.row_names(1) == ["db (pid 2)"] and "100.0 % of view" in graph.at(.5, 1)[1]
    chip(graph, "db (pid 2)")
    chip(graph, "worker")
    assert graph.row_names(2) == ["worker"]
    chip(graph, "web")
    assert graph.row_names(2) == ["main (app.py)", "worker"]
    graph.key("u")
    chip(graph, "back")
    assert graph.row_names(2) == ["query", "[lost]"]
    assert "only: back" in graph.text("#crumbs")
    graph.click("#crumbs button")
    assert graph.row_names(1) == ["web (pid 1)", "db (pid 2)"]


def host(count=500):
    """As -a sees one: a third of so many processes is python3, in two containers; another worker thread each."""
    description = Description()
    for i in range(count):
        name = ("python3", "nginx", f"job-{i}")[i % 3]
        description.process(name, pid=1000 + i, container=("front", "back")[i % 2])
        description.stack(.02 if i == 7 else .01, f"{name}_main", "work")
        description.thread("worker").stack(.01, "work")
    return description


def test_processes_of_one_name_are_one_box(view, page_of):
    view.open(page_of(host(12)))
    # python3 and nginx 4 times 0.02 s, nginx's PID 1007 0.01 s more; the other four have names of their own
    assert view.row_names(1)[:3] == ["nginx (4 processes)", "python3 (4 processes)", "job-11 (pid 1011)"]
    assert "process \u00b7 total 0.090 s, 36.0 % of all \u00b1 18.8 \u00b7 own" in view.at(.1, 1)[1]
    assert "0.050 s" in view.at(.05, 2)[1] and view.row_names(2)[:2] == ["nginx_main", "worker"]
    view.zoom(.1, 1)
    assert view.hash() == "#z=nginx"  # another run has other PIDs
    view.key("Escape")
    view.key("j")
    assert view.row_names(1, 400)[0] == "nginx (pid 1007)" and len(view.row_names(1, 400)) == 12
    assert "processes apart" in view.text("#crumbs") and "apart=1" in view.hash()
    view.key("j")
    view.at(.1, 1)
    view.key("x")
    assert "total 0.16 s" in view.at(.5, 0)[1] and view.row_names(1)[0] == "python3 (4 processes)"
    view.key("u")
    view.at(.1, 1)
    view.key("f")
    assert "total 0.090 s" in view.at(.5, 0)[1] and view.row_names(1) == ["nginx (4 processes)"]
    view.key("u")
    assert view.row_names(1)[0] == "nginx (4 processes)" and view.hash() in ("", "#")


def test_a_link_to_a_process_finds_it_under_another_pid(look, page_of):
    other, link = Description(), "#z=web&z=main+(app.py)&proc=web"
    other.process("web", pid=71).stack(3, "python:main (app.py:1)", "parse")
    other.process("web", pid=72).stack(1, "python:main (app.py:1)", "lex").process("db", pid=73).stack(1, "query")
    for page, top in ((page_of(shop()), "web (pid 1)"), (page_of(other, name="other.html"), "web (2 processes)")):
        view = look()
        view.open(page.as_uri() + link)
        assert view.row_names(1) == [top] and view.row_names(2) == ["main (app.py)"] and view.hash() == link


def test_stacks_of_joined_processes_are_those_of_each(view, page_of):
    view.open(page_of(host(12)))
    text, _ = saved(view, "e")
    assert sum(line.startswith(("front;nginx;", "back;nginx;")) for line in text.splitlines()) == 4
    assert sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines()[1:]) == 25
    view.js("Object.defineProperty(navigator, 'clipboard', {value: {writeText: async t => { window.copied = t; }}})")
    view.at(.05, 3)
    view.key("y")
    assert copied(view) == ";nginx;nginx_main;work 5"  # in two containers, so in none


def test_a_process_among_many_is_found_by_typing(view, page_of):
    view.open(page_of(host()))
    view.key("p")
    assert view.js("document.activeElement.id") == "pick"
    processes, threads, containers = chips_of(view)
    assert processes[1:3] == ["nginx (167 processes)33.5 %", "python3 (167 processes)33.4 %"]
    # of 10.01 s; 2 names and 166 processes with a name of their own; 169 names of threads
    assert len(processes) == 22 and processes[-1] == "+ 148 more: type to find them"
    assert threads[1] == "worker50.0 %" and threads[-1] == "+ 149 more: type to find them"
    view.type("Python3 (pid 14")
    assert [row[0] for row in chips_of(view)] == ["Process"] and len(chips_of(view)[0]) == 1 + 20 + 1
    view.type("98")
    assert chips_of(view) == [["Process", "python3 (pid 1498)0.2 %"]]
    view.key("Enter")
    assert view.row_names(1) == ["python3 (167 processes)"] and "total 0.020 s" in view.at(.5, 0)[1]
    assert "only: python3 (pid 1498)" in view.text("#crumbs") and view.js("document.activeElement.id") == "pick"
    view.key("Escape")
    assert view.js("document.getElementById('pick').value") == "" and view.js("document.activeElement.id") == "canvas"
    assert chips_of(view)[0][1] == "python3 (pid 1498)0.2 %"  # what is chosen can be given up
    view.key("u")
    chip(view, "nginx (167 processes)")
    assert view.row_names(1) == ["nginx (167 processes)"] and "only: nginx" in view.text("#crumbs")


def test_kinds_can_be_left_out(graph):
    legend = graph.js("[...document.querySelectorAll('#legend button')].map(b => b.textContent)")
    assert legend == ["native73.0 %", "kernel14.0 %", "not seen8.0 %", "go5.0 %", "python0.0 %"]
    graph.key("k")
    # the kernel's time goes to its callers
    assert graph.at(.1, 2)[1].split(" \u00b7 ")[1:3] == ["total 6.00 s, 60.0 % of all, 60.0 % of view", "own 1.00 s"]
    assert "sys_read" not in graph.row_names(3)
    graph.key("a")
    assert graph.row_names(2) == ["main (app.py)", "worker", "query"]
    assert "total 1.20 s" in graph.at(.99, 2)[1] and "total 9.20 s" in graph.at(.5, 0)[1]
    graph.key("n")
    assert graph.row_names(2) == ["main (app.py)", "worker", "query"] and graph.row_names(3) == []
    graph.key("u")
    assert graph.row_names(3) == ["parse", "render", "sys_read", "fib", "lex"]


def test_frames_that_meet_when_others_go_are_merged(view, page_of):
    description = Description().process("p")
    description.stack(1, "python:a", "left", "python:b").stack(2, "python:a", "right", "python:b", "deep")
    view.open(page_of(description))
    view.key("n")
    assert view.row_names(3) == ["b"] and "total 3.00 s" in view.at(.5, 3)[1] and "own 3.00 s" in view.status()[1]


def test_focus_keeps_only_stacks_with_the_function(graph):
    graph.at(.05, 4)
    graph.key("f")
    assert "total 3.20 s" in graph.at(.5, 0)[1]
    assert graph.row_names(3) == ["parse", "render", "lex"] and graph.row_names(4) == ["lex", "sys_read"]
    assert "own 0.0 s" in graph.at(.1, 3)[1]
    assert "only: lex" in graph.text("#crumbs")


def test_hiding_removes_the_stacks_of_a_function(graph):
    graph.at(.05, 4)
    graph.key("x")
    assert "total 6.80 s" in graph.at(.5, 0)[1]
    # children stand by weight again
    assert graph.row_names(3) == ["render", "parse", "sys_read", "fib"]


def test_direct_recursion_collapses(graph):
    graph.key("r")
    assert graph.row_names(4) == ["lex", "escape", "lex", "add", "sys_read"]
    name, facts = graph.at(.7, 3)
    assert name == "fib" and "total 2.00 s" in facts and "own 1.50 s" in facts


def test_functions_collapse_to_their_modules(graph):
    graph.key("m")
    assert graph.row_names(2) == ["app.py", "worker", "(go)", "[lost]"]
    assert graph.row_names(3) == ["/usr/bin/web", "(kernel)", "(native)", "/lib/liblex.so"]
    assert "total 5.00 s" in graph.at(.1, 3)[1]
    graph.key("m")
    assert graph.row_names(3) == ["parse", "render", "sys_read", "fib", "lex"]


def test_bottom_up_begins_with_own_time(graph):
    graph.key("b")
    assert graph.row_names(1, 200) == ["lex", "escape", "fib", "sys_read", "parse", "[lost]", "add", "query"]
    assert graph.at(.1, 1)[1].startswith("native \u00b7 /lib/liblex.so \u00b7 total 2.80 s, 28.0 %")
    assert graph.row_names(2, 200)[:3] == ["parse", "render", "query"]
    graph.zoom(.1, 1)
    assert graph.row_names(2) == ["parse", "render", "query"]
    assert graph.row_names(3) == ["main (app.py)", "db (pid 2)"]
    assert graph.row_names(4) == ["web (pid 1)"]
    shares = [graph.share_of(graph.at(x, 2)[1]) for x in (.3, .8, .97)]
    assert shares == [20.0, 5.0, 3.0]


def test_a_sandwich_has_callers_above_and_callees_below(graph):
    graph.at(.05, 4)
    graph.key("w")
    assert "function: lex" in graph.text("#crumbs")
    assert graph.row_names(0) == ["web (pid 1)", "web (pid 1)"]
    assert graph.row_names(1) == ["main (app.py)", "db (pid 2)", "main (app.py)"]
    assert graph.row_names(2) == ["parse", "query", "render"]
    assert graph.row_names(3) == ["lex"] and "total 3.20 s" in graph.at(.5, 3)[1]
    assert graph.row_names(4) == ["sys_read"] and "total 0.40 s" in graph.at(.01, 4)[1]


def test_recursion_counts_once_in_a_sandwich(graph):
    graph.at(.7, 3)
    graph.key("w")
    assert "total 2.00 s, 20.0 % of all" in graph.status()[1]
    assert graph.row_names(3) == ["fib"] or graph.row_names(2) == ["fib"]


def table(view):
    return view.js("[...document.querySelectorAll('#list tbody tr')].map(r => [...r.cells].map(c => c.textContent))")


def test_the_table_sorts_and_follows_search_and_filters(graph):
    graph.key("t")
    rows = table(graph)
    assert rows[0] == ["28.0 %", "2.80 s", "32.0 %", "3.20 s", "native", "lex"]
    assert [r[-1] for r in rows] == ["lex", "escape", "fib", "sys_read", "parse", "[lost]", "add", "query",
                                     "main (app.py)", "render"]
    assert ["15.0 %", "1.50 s", "20.0 %", "2.00 s", "native", "fib"] in rows
    graph.js("[...document.querySelectorAll('#list th button')].find(b => b.textContent === 'With callees').click()")
    assert [r[-1] for r in table(graph)][:3] == ["main (app.py)", "lex", "parse"]
    assert graph.js("[...document.querySelectorAll('#list th')].map(h => h.getAttribute('aria-sort'))") == [
        "none", "descending", "none", "none"]
    assert graph.js("document.activeElement.textContent") == "With callees"
    graph.search("e")
    assert [r[-1] for r in table(graph)] == ["lex", "parse", "render", "escape", "sys_read", "query"]
    graph.key("Escape")
    graph.key("k")
    assert "sys_read" not in [r[-1] for r in table(graph)]
    graph.click("#list td button")
    assert "function: main (app.py)" in graph.text("#crumbs")


def test_a_link_restores_the_view_in_another_profile(graph, look, page_of):
    graph.zoom(.1, 3)
    graph.search("lex")
    graph.click("#canvas")
    graph.key("k")
    graph.key("i")
    link = graph.hash()
    other = look()
    other.open(page_of(shop(3, service="later"), name="later.html").as_uri() + link)
    assert other.js("document.getElementById('query').value") == "lex"
    assert other.js("document.getElementById('flip').getAttribute('aria-pressed')") == "true"
    assert other.js("document.querySelectorAll('#legend button[aria-pressed=false]')[0].textContent").startswith("kernel")
    assert "zoom: " in other.text("#crumbs")
    assert other.hash() == link


def test_unknown_names_of_a_link_are_left_out_with_a_note(look, page_of):
    view = look()
    view.open(page_of(shop()).as_uri() + "#z=web+(pid+1)&z=main+(app.py)&z=no+longer&z=lex&focus=nowhere&v=bogus&colour=99")
    assert "Not in this profile, so left out of the link: " in view.status()[1]
    view.open(page_of(shop()).as_uri() + "#z=web+(pid+1)&z=main+(app.py)&z=no+longer&z=lex")
    assert "no longer" in view.status()[1]
    assert view.row_names(2) == ["main (app.py)"]


@pytest.mark.parametrize("link", ["#", "#z", "#z=%", "#%FF%00=&&==&z=&z=", "#v=table&v=bottom", "#query=%28&regex=1",
                                  "#kind=nothing&proc=&thread=&box=", "#v=sandwich", "#v=sandwich&n=", "#flip=2"])
def test_a_broken_link_opens_the_graph(view, page_of, link):
    view.open(page_of(shop()).as_uri() + link, drawn="table" not in link)


def copied(view):
    return view.js("window.copied")


@pytest.fixture
def clipboard(graph):
    graph.js("window.copied = null; Object.defineProperty(navigator, 'clipboard', "
             "{value: {writeText: async t => { window.copied = t; }}})")
    return graph


def test_a_stack_is_copied_as_a_collapsed_line(clipboard):
    clipboard.at(.05, 4)
    clipboard.key("y")
    assert copied(clipboard) == "front;web;main (app.py:1)_[p];parse;lex 200"
    clipboard.at(.7, 4)
    clipboard.key("y")
    assert copied(clipboard) == "front;worker;fib;fib 150"
    clipboard.key("o")
    assert copied(clipboard) == "fib"
    clipboard.key("l")
    assert copied(clipboard).startswith("file:///")
    clipboard.key("b")
    clipboard.at(.05, 2)
    clipboard.key("y")
    assert copied(clipboard) == "parse;lex 200"


def test_copying_works_without_the_clipboard_interface(graph):
    graph.js("Object.defineProperty(navigator, 'clipboard', {value: undefined}); window.commands = [];"
             "document.execCommand = c => window.commands.push(c + ' ' + getSelection() + document.activeElement.value)")
    graph.at(.05, 4)
    graph.key("o")
    assert graph.js("window.commands") == ["copy lex"] or graph.js("window.commands")[0].endswith("lex")
    assert graph.status()[1] == "Copied: lex"


def test_the_profile_is_saved_as_collapsed_stacks(graph):
    text, name = saved(graph, "e")
    header, *lines = text.splitlines()
    assert name == "shop.col" and header.startswith("# ")
    facts = json.loads(header[2:])
    assert facts["container_names_enabled"] is True and facts["application_metadata_enabled"] is False
    assert sorted(facts["containers"]) == ["back", "front"] and facts["sampling_frequency"] == 100
    stacks = dict(line.rsplit(" ", 1) for line in lines)
    assert stacks["front;web;main (app.py:1)_[p];parse;lex"] == "200"
    assert stacks["front;web;main (app.py:1)_[p];sys_read_[k]"] == "100"
    assert stacks["front;worker;fib;fib;fib;add"] == "50"
    assert stacks["back;db;[lost]"] == "80"
    assert sum(map(int, stacks.values())) == 1000


def test_saved_counts_add_up_when_samples_are_fractions(view, page_of):
    description = Description().process("p")
    for i in range(300):
        description.stack(.0033, f"f{i % 7}", f"g{i}")
    view.open(page_of(description))
    text, _ = saved(view, "e")
    assert sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines()[1:]) == 99


def test_the_view_is_saved_as_svg(graph):
    graph.zoom(.1, 3)
    text, name = saved(graph, "s")
    root = ElementTree.fromstring(text)
    titles = [e.text for e in root.iter("{http://www.w3.org/2000/svg}title")]
    assert name == "shop.svg" and any(t.startswith("lex \u00b7 native") for t in titles)
    assert not any(t.startswith("render") for t in titles)
    assert "parse" in [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]


def test_files_really_come_down(graph, browser):
    graph.key("e")
    path = browser.downloads / "shop.col"
    graph.until("true")
    for _ in range(200):
        if path.exists() and path.stat().st_size > 100:
            break
        graph.settle()
    assert path.read_text().startswith("# {")


def test_everything_can_be_done_with_the_keyboard(graph):
    # from the top of the page to the graph by Tab alone
    reached = []
    for _ in range(40):
        graph.key("Tab")
        reached.append(graph.js("document.activeElement.id || document.activeElement.textContent"))
        if reached[-1] == "canvas":
            break
    assert reached[:6] == ["query", "regex", "graphview", "bottom", "sandwich", "table"] and reached[-1] == "canvas"
    outline = graph.js("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    walk = []
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowDown", "ArrowRight", "ArrowLeft", "ArrowUp"):
        graph.key(key)
        walk.append(graph.status()[0])
    assert walk == ["all", "web (pid 1)", "main (app.py)", "parse", "render", "escape", "lex", "escape", "render"]
    graph.key("Enter")
    assert graph.row_names(4) == ["escape", "lex"]
    graph.page.mouse("mouseMoved", 5, 5)
    graph.key("Backspace")
    assert graph.row_names(3) == ["parse", "render", "sys_read"]
    graph.page.mouse("mouseMoved", 5, 5)
    graph.key("0")
    graph.key("/")
    assert graph.js("document.activeElement.id") == "query"
    graph.type("kernel")
    graph.key("Escape")
    assert graph.js("document.activeElement.id") == "canvas"
    graph.key("f", ctrl=True)
    assert graph.js("document.activeElement.id") == "query"


def test_arrows_follow_the_picture_when_it_stands_on_its_head(graph):
    graph.key("i")
    graph.js("document.getElementById('canvas').focus()")
    walk = []
    for key in ("ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown"):
        graph.key(key)
        walk.append(graph.status()[0])
    assert walk == ["all", "web (pid 1)", "main (app.py)", "web (pid 1)"]


def test_the_context_menu_opens_by_mouse_and_by_key(graph):
    graph.page.click_at(*graph.place(.05, 4), "right")
    items = graph.js("[...document.querySelectorAll('#menu button')].map(b => b.textContent)")
    assert items[0].startswith("Zoom to this frame") and len(items) == 7
    assert graph.js("document.activeElement.parentNode.id") == "menu"
    graph.key("ArrowDown")
    graph.key("ArrowDown")
    assert graph.js("document.activeElement.textContent").startswith("Only stacks")
    graph.key("Enter")
    assert "only: lex" in graph.text("#crumbs") and graph.js("document.getElementById('menu').hidden")
    graph.key("u")
    graph.js("document.getElementById('canvas').focus()")
    graph.page.mouse("mouseMoved", 5, 5)
    for _ in range(3):
        graph.key("ArrowDown")
    graph.js("document.getElementById('canvas').dispatchEvent(new MouseEvent('contextmenu', {bubbles: true, button: 0}))")
    assert not graph.js("document.getElementById('menu').hidden")
    graph.key("Escape")
    assert graph.js("document.getElementById('menu').hidden") and graph.js("document.activeElement.id") == "canvas"


def test_the_list_of_keys_names_what_works(graph):
    graph.key("?")
    keys = graph.js("[...document.querySelectorAll('#help dt')].map(e => e.textContent)")
    assert graph.js("document.getElementById('help').open")
    assert {"Enter", "Escape", "Backspace", "w", "f", "x", "y", "b", "t", "i", "c", "r", "m", "/", "?"} <= set(keys)
    graph.key("b")
    graph.key("Escape")
    assert not graph.js("document.getElementById('help').open") and graph.hash() in ("", "#")


def test_the_flame_orientation_has_its_root_at_the_bottom(graph):
    graph.key("i")
    bottom = graph.js("document.getElementById('canvas').getBoundingClientRect().bottom")
    graph.page.hover(800, bottom - 8)
    assert graph.status()[0] == "all"
    graph.page.hover(800, bottom - 8 - 17)
    assert graph.status()[0] == "web (pid 1)"
    graph.page.click_at(800, bottom - 8 - 34)
    graph.page.hover(100, bottom - 8 - 51)
    assert graph.status()[0] == "parse"


def test_ten_thousand_rows_scroll(view, page_of):
    view.open(page_of(Description().process("p").add("deep", 1_000_000_000, 10_000, "f")))
    height = view.js("document.getElementById('scroll').scrollHeight")
    assert height == 10_002 * 17
    view.js("document.getElementById('scroll').scrollTop = 1e9")
    view.settle()
    assert view.name_at(.5, 10_001) == "f9999" and view.name_at(.5, 9_990) == "f9988"
    view.key("i")
    view.settle()
    assert view.name_at(.5, 10_001) == "all"
    view.js("document.getElementById('scroll').scrollTop = 0")
    view.settle()
    assert view.name_at(.5, 0) == "f9999"
    view.key("b")
    assert view.row_names(1, 5) != []


def test_sixty_five_thousand_rows_open(view, page_of):
    view.open(page_of(Description().process("p").add("deep", 1_000_000_000, 70_000, "f")))
    view.js("document.getElementById('scroll').scrollTop = 1e9")
    view.settle()
    assert view.name_at(.5, 65_535) == "[truncated]"


def test_the_graph_follows_the_window(graph):
    graph.page.resize(700, 900)
    graph.until("canvas.width <= 700")
    graph.settle()
    width = graph.js("document.getElementById('canvas').getBoundingClientRect().width")
    assert width == graph.js("document.getElementById('scroll').clientWidth") <= 700
    assert graph.row_names(1) == ["web (pid 1)", "db (pid 2)"]
    graph.page.resize(700, 900, scale=2.5)
    # the emulated screen draws no frame by itself when only its scale changes
    assert graph.name_at(.1, 3) == "parse"
    assert graph.js("canvas.width") == round(width * 2.5)
    assert graph.row_names(3) == ["parse", "render", "sys_read", "fib", "lex"]


def luminance(colour):
    return sum(w * ((c / 255 + .055) / 1.055) ** 2.4 if c / 255 > .04045 else w * c / 255 / 12.92
               for w, c in zip((.2126, .7152, .0722), colour))


def contrast(a, b):
    a, b = sorted((luminance(a), luminance(b)))
    return (b + .05) / (a + .05)


@pytest.mark.parametrize("scheme, ink", [("light", (17, 17, 17)), ("dark", (244, 244, 244))])
@pytest.mark.parametrize("colour", [0, 1, 2])
def test_labels_can_be_read_on_every_colour(look, page_of, scheme, ink, colour):
    from pages import KINDS
    description = Description().process("p")
    for kind in KINDS:
        for i in range(24):
            description.stack(1 + i / 10, f"{kind}:module{i}/{kind}{i}")
    view = look(media=[("prefers-color-scheme", scheme)])
    view.open(page_of(description))
    for _ in range(colour):
        view.key("c")
    view.search("native1")
    # the colours of boxes: everything in the row but ink, which is thin, and the gaps; also with the highlight
    colours = set()
    for x in (None, .03, .3, .6, .97):
        if x:
            view.at(x, 2)
        pixels = view.js("[...document.getElementById('canvas').getContext('2d')"
                         ".getImageData(0, 17 * 2 + 2, canvas.width, 1).data]")
        colours |= {tuple(pixels[i:i + 3]) for i in range(0, len(pixels), 4)}
    background = tuple(map(int, re.findall(r"\d+", view.js("getComputedStyle(canvas).backgroundColor"))[:3]))
    assert len(colours) > 10
    assert min(contrast(c, ink) for c in colours - {background}) >= 4.5


# What a colour is with no deficiency, and with full protanopia and deuteranopia (Machado et al. 2009), on linear RGB.
EYES = (((1, 0, 0), (0, 1, 0), (0, 0, 1)),
        ((.152286, 1.052583, -.204868), (.114503, .786281, .099216), (-.003882, -.048116, 1.051998)),
        ((.367322, .860646, -.227968), (.280085, .672501, .047413), (-.011820, .042940, .968881)))


def lab(colour, eye=EYES[0]):
    """CIE L*a*b* of 0xrrggbb, under D65."""
    rgb = [((c / 255 + .055) / 1.055) ** 2.4 if c / 255 > .04045 else c / 255 / 12.92 for c in colour.to_bytes(3, "big")]
    seen = [min(1, max(0, sum(a * b for a, b in zip(row, rgb)))) for row in eye]
    weights = ((.4124, .3576, .1805, .9505), (.2126, .7152, .0722, 1), (.0193, .1192, .9505, 1.089))
    x, y, z = (sum(a * b for a, b in zip(row, seen)) / row[3] for row in weights)
    x, y, z = (t ** (1 / 3) if t > .008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("scheme, page", [(2, 0xffffff), (3, 0x16181c)])
def test_native_code_stands_out_and_the_kernel_does_not(page_of, scheme, page):
    from pages import Decoded
    header = Decoded(page_of(shop()).read_bytes()).header
    colours = {kind[0]: kind[scheme] for kind in header["kinds"]}
    strength = {kind: math.hypot(*lab(colour)[1:]) for kind, colour in colours.items()}
    assert strength["native"] >= 50 and strength["kernel"] <= 20
    assert all(strength[kind] >= strength["kernel"] for kind in strength if kind != "not seen")
    assert math.dist(lab(colours["native"]), lab(page)) >= 55
    assert contrast(*(c.to_bytes(3, "big") for c in (colours["native"], page))) >= 1.7
    near = {(a, b): min(math.dist(lab(colours[a], eye), lab(colours[b], eye)) for eye in EYES)
            for a, b in itertools.combinations(colours, 2) if {a, b} != {"php", "perl"}}
    assert min(near.values()) >= 14, min(near, key=near.get)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_of_the_page_can_be_read(look, page_of, scheme):
    view = look(media=[("prefers-color-scheme", scheme)])
    view.open(page_of(shop(reason="perf: EPERM")))
    found = view.js("""(() => {
      const bad = [], rgb = c => c.match(/[\\d.]+/g).map(Number);
      const lum = c => c.slice(0, 3).map(v => v / 255).map(v => v > .04045 ? ((v + .055) / 1.055) ** 2.4 : v / 12.92)
        .reduce((s, v, i) => s + v * [.2126, .7152, .0722][i], 0);
      for (const e of document.querySelectorAll('body *')) {
        const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
        if (!own || !e.offsetParent || e.closest('script')) continue;
        let b = e;
        while (b && rgb(getComputedStyle(b).backgroundColor)[3] === 0) b = b.parentElement;
        const [x, y] = [lum(rgb(getComputedStyle(e).color)), lum(rgb(getComputedStyle(b).backgroundColor))];
        const ratio = (Math.max(x, y) + .05) / (Math.min(x, y) + .05);
        if (ratio < 4.5) bad.push(e.localName + '#' + e.id + ' ' + e.textContent.slice(0, 20) + ' ' + ratio.toFixed(1));
      }
      return bad; })()""")
    assert found == []


def test_the_theme_can_be_switched_and_is_kept(graph, page_of):
    background = "getComputedStyle(document.body).backgroundColor"
    assert graph.js(background) == "rgb(255, 255, 255)"
    graph.key("d")
    assert graph.js(background) == "rgb(22, 24, 28)"
    graph.open(page_of(shop(), name="again.html"))
    assert graph.js(background) == "rgb(22, 24, 28)"
    graph.js("localStorage.clear()")


def test_storage_that_throws_is_lived_with(look, page_of):
    view = look()
    view.call("Page.addScriptToEvaluateOnNewDocument",
              source="Object.defineProperty(window, 'localStorage', {get() { throw new Error('SecurityError'); }})")
    view.open(page_of(shop()))
    view.key("d")
    assert view.js("document.documentElement.dataset.theme") == "dark"


def test_forced_colours_draw_outlines_only(look, page_of):
    view = look(media=[("forced-colors", "active")])
    view.open(page_of(shop()))
    colours = view.js("""(() => {
      const image = document.getElementById('canvas').getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      const count = {};
      for (const pixel of new Uint32Array(image.data.buffer)) count[pixel] = (count[pixel] || 0) + 1;
      return count; })()""")
    two = sorted(colours.values())[-2:]
    assert sum(two) > .985 * sum(colours.values())  # the rest is the smooth edge of letters


@pytest.mark.parametrize("width", [1600, 420])
def test_controls_are_large_enough_to_touch(look, page_of, width):
    view = look(width=width, height=800)
    view.open(page_of(shop()))
    view.key("p")
    small = view.js("""[...document.querySelectorAll('button, input')].filter(e => e.offsetParent).filter(e => {
      const b = e.getBoundingClientRect(); return b.width < 24 || b.height < 24; }).map(e => e.id + e.textContent)""")
    assert small == []
    assert view.js("document.documentElement.scrollWidth") <= width


def test_without_script_the_page_still_tells_the_essence(look, page_of):
    view = look()
    view.call("Emulation.setScriptExecutionDisabled", value=True)
    path = page_of(shop(reason="perf: EPERM"))
    view.call("Page.navigate", url=path.as_uri())
    for _ in range(200):
        if view.page.loaded:
            break
        view.call("Page.getLayoutMetrics")
    view.call("Emulation.setScriptExecutionDisabled", value=False)
    text = view.text("body")
    assert "CPU time\n10.0 s" in text and "Not seen: 0.80 s of the CPU time (8.0 %)" in text and "perf: EPERM" in text
    assert "The tables below need no script." in text
    assert re.search(r"28\.0 %\s+2\.80 s\s+32\.0 %\s+3\.20 s\s+native\s+lex", text)
    assert re.search(r"80\.0 %\s+8\.00 s\s+1\s+web\s+front", text)
    assert not view.js("document.getElementById('bar').offsetParent")


def test_an_old_browser_is_told_which_ones_can(look, page_of):
    view = look()
    view.call("Page.addScriptToEvaluateOnNewDocument", source="delete window.DecompressionStream")
    view.page.open(page_of(shop()), drawn=False)
    view.until("document.getElementById('status').textContent.includes('Chromium 103')")
    assert view.text("#tables tbody td:last-child") == "lex"


def test_an_empty_profile_shows_the_reason_in_the_graphs_place(look, page_of):
    description = Description(reason="perf_event_open: EPERM (seccomp); allow it", start_ns=0, end_ns=60_000_000_000)
    description.process("sleep", pid=5, capture_mode=4)
    view = look()
    view.page.open(page_of(description), drawn=False)
    view.settle()
    text = view.text("body")
    assert "No CPU time was seen in 60.0 s" in text and "perf_event_open: EPERM (seccomp); allow it" in text
    assert "pillion doctor" in text and not view.js("!!document.querySelector('canvas')")


def test_it_is_one_file_that_needs_no_place(view, page_of, tmp_path):
    odd = tmp_path / "a #?%20 \u00e4\u4e16.html"
    odd.write_bytes(page_of(shop()).read_bytes())
    view.open(odd)
    view.zoom(.1, 3)
    assert view.row_names(3) == ["parse"] and "z=parse" in view.hash()


def test_a_page_without_a_frequency_counts_samples(view, page_of):
    description = Description(period_ns=1, hz=0)
    description.process("p").add("stack", 1500, "native:f")
    view.open(page_of(description))
    assert "total 1,500 samples, 100.0 % of all" in view.at(.5, 2)[1]


# ---- Two profiles

def changed():
    """As shop(), with half the time in all, render gone and escape new elsewhere."""
    description = Description()
    add = description.stack
    description.process("web", pid=71, container="front")
    add(2.0, "python:main (app.py:1)", "parse @ /usr/bin/web")
    add(1.0, "python:main (app.py:1)", "parse @ /usr/bin/web", "lex @ /lib/liblex.so")
    add(1.5, "python:main (app.py:1)", "old")
    description.process("db", pid=72, container="back")
    add(0.5, "go:query")
    return description


def test_a_comparison_is_relative_to_equal_totals(view, page_of):
    view.open(page_of(shop(), changed()))
    assert view.row_names(1) == ["front", "back"]
    # 8 of 10 s now, 4.5 of 5 s before
    assert "90.0 % before, 80.0 % now (\u221210.0 points)" in view.at(.1, 1)[1]
    assert "10.0 % before, 20.0 % now (+10.0 points)" in view.at(.95, 1)[1]
    names = view.row_names(4, 400)
    assert "old" in names and "render" in names  # what is gone and what is new are both there
    for name, text in (("old", "30.0 % before, 0.0 % now"), ("render", "0.0 % before, 20.0 % now (+20.0 points)"),
                       ("parse", "60.0 % before, 30.0 % now (\u221230.0 points)")):
        facts = next(facts for found, facts in (view.at((i + .5) / 60, 4) for i in range(60)) if found == name)
        assert text in facts
    assert view.search("lex") == "20.0 % before, 32.0 % now in 3 places"
    legend = view.js("[...document.querySelectorAll('#legend button')].map(b => b.textContent)")
    assert legend == ["native73.0 %", "kernel14.0 %", "not seen8.0 %", "go5.0 %", "python0.0 %"]  # of what is now
    assert "Heaviest functions by their own time, now" in view.text("#tables")


# own time, then with callees: seconds of 5 s before and of 10 s now, each as a share; and their difference
COMPARED = {
    "parse": (2.0, 1.0, 3.0, 3.0), "lex": (1.0, 2.8, 1.0, 3.2), "old": (1.5, 0, 1.5, 0), "query": (0.5, 0.5, 0.5, 1.2),
    "escape": (0, 1.5, 0, 1.5), "fib": (0, 1.5, 0, 2.0), "sys_read": (0, 1.4, 0, 1.4), "[lost]": (0, 0.8, 0, 0.8),
    "add": (0, 0.5, 0, 0.5), "render": (0, 0, 0, 2.0), "main (app.py)": (0, 0, 4.5, 6.0),
}


def three(before, now):
    before, now = before / 5 * 100, now / 10 * 100
    change = f"{now - before:+.1f}".replace("-", "\u2212") if now != before else "0.0"
    return [f"{before:.1f} %", f"{now:.1f} %", change]


def test_a_comparisons_table_has_both_shares_and_their_difference_in_points(view, page_of):
    view.open(page_of(shop(), changed()))
    view.key("t")
    rows = {r[-1]: r[:-2] for r in table(view)}
    bare = {name: [cell.lstrip("\u25b2\u25bc ") for cell in row] for name, row in rows.items()}
    assert bare == {name: three(*v[:2]) + three(*v[2:]) for name, v in COMPARED.items()}
    # what is beyond chance is marked: time not seen is not judged, and main's own time is none
    marked = {name: (row[2][0], row[5][0]) for name, row in rows.items()}
    up, down = "\u25b2", "\u25bc"
    assert marked["parse"] == marked["old"] == (down, down) and marked["escape"] == marked["sys_read"] == (up, up)
    assert marked["render"] == ("0", up) and marked["[lost]"] == ("+", "+")
    heads = view.js("[...document.querySelectorAll('#list thead tr')].map(r => [...r.querySelectorAll('th')].map("
                    "h => h.firstChild.textContent + h.colSpan))")
    assert heads == [["Own time3", "With callees3"],
                     ["before1", "now1", "points1", "before1", "now1", "points1", "Kind1", "Function1"]]
    # what grew most is first; the same column again turns it round
    assert [r[2] for r in table(view)][0] == "\u25b2 +15.0"
    view.click("#list [aria-sort=descending] button")
    assert [r[2] for r in table(view)][:2] == ["\u25bc \u221230.0", "\u25bc \u221230.0"]
    assert view.js("document.querySelector('#list [aria-sort=ascending]').textContent") == "points"
    # a filter changes no share of the whole
    view.js("document.activeElement.blur()")
    view.key("a")
    assert {r[-1]: r[:-2] for r in table(view)} == {n: r for n, r in rows.items() if n != "[lost]"}


def test_a_profile_compared_with_three_times_itself_shows_no_change(view, page_of):
    view.open(page_of(shop(), shop(3)))
    text, _ = saved(view, "s")
    labels = [e.text for e in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text")]
    assert "lex" in labels and not [label for label in labels if label[0] in "+\u2212"]
    view.key("t")
    assert {r[2] for r in table(view)} == {r[5] for r in table(view)} == {"0.0"}
    assert ["28.0 %", "28.0 %", "0.0", "32.0 %", "32.0 %", "0.0", "native", "lex"] in table(view)


@pytest.mark.parametrize("base", [None, changed()])
@pytest.mark.parametrize("width", [1280, 375])
def test_columns_of_numbers_end_where_their_titles_end(look, page_of, base, width):
    view = look(width=width, height=740)
    view.open(page_of(shop(), base))
    view.key("t")
    wrong = view.js("""(() => {
      const right = e => { const r = document.createRange(); r.selectNodeContents(e);
        return Math.round(r.getBoundingClientRect().right); };
      const wrong = [];
      for (const table of document.querySelectorAll('#list table, #tables section:first-child table')) {
        const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells], ends = [];
        for (const head of heads) ends.push(...Array(head.colSpan - 1).fill(null), head);
        for (const row of table.tBodies[0].rows) [...row.cells].slice(0, -2).forEach((cell, i) => {
          if (getComputedStyle(cell).textAlign !== 'right') wrong.push(cell.textContent);
          if (ends[i] && Math.abs(cell.getBoundingClientRect().right - ends[i].getBoundingClientRect().right) > 1)
            wrong.push([i, cell.textContent]);
          if (right(cell) > cell.getBoundingClientRect().right + 1) wrong.push([i, 'wide', cell.textContent]);
        });
      }
      return wrong; })()""")
    assert wrong == []


@pytest.mark.parametrize("base", [None, changed()])
def test_tables_fit_a_phone(look, page_of, base):
    description = shop()
    description.process("a-long-name", pid=4194304, container="production-7", runtime="CPython 3.11.2",
                        remedy="set kernel.perf_event_paranoid to 1 or lower", cpu=1)
    description.stack(1, "std::map<std::string, std::vector<long> >::find(std::string const&) const @ /usr/bin/web")
    view = look(width=375, height=740, touch=True)
    view.open(page_of(description, base))
    view.key("t")
    cut = view.js("""[document.documentElement, ...document.querySelectorAll('#list, #tables section')]
        .filter(e => e.scrollWidth > e.clientWidth).map(e => e.localName + e.id + e.scrollWidth)""")
    assert cut == []
    outside = view.js("""[...document.querySelectorAll('th, td')].filter(e => e.offsetParent && e.textContent)
        .filter(e => { const r = document.createRange(); r.selectNodeContents(e);
          const b = r.getBoundingClientRect(); return b.left < 0 || b.right > 375; }).map(e => e.textContent)""")
    assert outside == []
    overlapping = view.js("""[...document.querySelectorAll('tr')].flatMap(r => {
        const boxes = [...r.cells].filter(c => c.textContent).map(c => { const range = document.createRange();
          range.selectNodeContents(c); return [range.getBoundingClientRect(), c.textContent]; });
        return boxes.flatMap(([a, x], i) => boxes.slice(i + 1).filter(([b]) => a.left < b.right - 1 &&
          b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1).map(([, y]) => x + ' | ' + y)); })""")
    assert overlapping == []


def test_a_comparison_says_more_and_less_in_colour_and_sign(view, page_of):
    view.open(page_of(shop(), changed()))
    row = view.js("[...document.getElementById('canvas').getContext('2d').getImageData(0, 17 * 4 + 2, canvas.width, 1).data]")
    left = row[400:403]
    assert left[2] > left[0]  # parse: less, blue
    text, _ = saved(view, "s")
    labels = [e.text for e in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text")]
    assert "\u2212 parse" in labels and "+ render" in labels
    for key in ("b", "w", "k", "r", "g"):
        view.key(key)


def test_the_synthetic_profile_decodes_to_its_total(view, workdir):
    path, tree = workdir / "s.html", workdir / "s.tsv"
    make("synthetic", 10_000, path, tree)
    view.open(path)
    text, _ = saved(view, "e")
    counts = [int(line.rsplit(" ", 1)[1]) for line in text.splitlines()[1:]]
    own = [int(line.split("\t")[2]) for line in tree.read_text().splitlines()]
    assert sum(counts) * 10101010 == sum(own)
    assert len(counts) == sum(1 for ns in own if ns)


# ---- Lines

def test_a_line_inserted_above_a_function_is_one_subtree_and_lines_are_told(view, run, pillion, workdir):
    (workdir / "before.col").write_text("py;main (a.py:12):15_[p];work 10\n")
    (workdir / "now.col").write_text("py;main (a.py:13):16_[p];work 6\npy;main (a.py:13):18_[p] 4\n")
    done = run([pillion, "render", "now.col", "--diff", "before.col", "-o", "d.html"], cwd=workdir)
    assert done.status == 0, done
    view.open(workdir / "d.html")
    assert view.row_names(2) == ["main (a.py)"] and view.row_names(3) == ["work"]
    facts = view.at(.1, 2)[1]
    assert "100.0 % before, 100.0 % now" in facts and facts.endswith("begins at line 13 \u00b7 executes line 16 60.0 %, 18 40.0 %")
    text, _ = saved(view, "e")
    assert "py;main (a.py:13)_[p];work" in text


@pytest.fixture
def app(run, pillion, workdir):
    """A page with the text of lines."""
    (workdir / "a.py").write_text("def work(n):\n\ttotal = 0\n    for i in range(n):\n        total += i\n    return total\n")
    (workdir / "p.col").write_text("py;main (b.py:12):15_[p];work (a.py:1):3_[p] 30\npy;main (b.py:12):15_[p];work (a.py:1):4_[p] 60\n")
    done = run([pillion, "render", "p.col", "--sources", ".", "-o", "p.html"], cwd=workdir)
    assert done.status == 0 and done.err.endswith("b.py\n"), done
    return workdir / "p.html"


def rows_of_detail(view):
    return view.js("[...document.querySelectorAll('#detail tr')].map(r => [...r.cells].map(c => c.textContent))")


def test_the_lines_of_a_function_open_by_a_key_and_by_the_menu(look, app):
    view = look()
    view.open(app)
    view.at(.5, 3)
    view.key("h")
    assert view.text("#detail h2") == "work (a.py)" and "own 100.0 %" in view.text("#detail p")
    assert rows_of_detail(view) == [["1", "", "", "def work(n):"], ["2", "", "", "    total = 0"], ["3", "33.3 %", "", "    for i in range(n):"],
                                    ["4", "66.7 %", "", "        total += i"], ["5", "", "", "    return total"]]
    bars = view.js("[...document.querySelectorAll('#detail .heavy i')].map(e => Math.round(e.getBoundingClientRect().width))")
    assert bars[1] > 20 and abs(bars[0] * 2 - bars[1]) <= 2
    link = view.hash()
    view.at(.5, 3)
    view.key("h")
    assert view.text("#detail") is None or view.js("document.getElementById('detail').hidden")
    other = look(width=375, touch=True)  # a link opens it, on a phone as well
    other.open(f"{app.as_uri()}{link}")
    assert other.text("#detail h2") == "work (a.py)" and other.js("document.documentElement.scrollWidth") == 375
    view.page.click_at(*view.place(.5, 2), "right")
    view.js("[...document.querySelectorAll('#menu button')].find(b => b.textContent.startsWith('Lines')).click()")
    view.settle()
    assert view.text("#detail h2") == "main (b.py)" and rows_of_detail(view) == [["15", "100.0 %", "", ""]]
    view.click("#detail button")
    assert view.js("document.getElementById('detail').hidden") and "lines" not in view.hash()


def test_a_link_keeps_the_order_of_the_table(graph, look):
    graph.key("t")
    graph.click("#list th:nth-child(2) button")
    graph.click("#list th:nth-child(2) button")
    assert "sort=total-" in graph.hash()
    other = look()
    other.open(graph.js("location.href"), drawn=False)
    other.until("document.querySelector('#list table') !== null")
    assert other.js("document.querySelector('#list [aria-sort=ascending]').textContent") == "With callees"


def test_shares_of_few_samples_have_their_margin(view, page_of):
    """1.96 sqrt(p (1 - p) / n) of 100 samples, where it is a tenth of the share."""
    view.open(page_of(Description().process("p").stack(.90, "main", "f").stack(.10, "main", "g")))
    assert "90.0 % of all \u00b7" in view.at(.1, 3)[1] and "10.0 % of all \u00b1 5.9 \u00b7" in view.at(.95, 3)[1]
    view.key("t")
    assert [r[0] for r in table(view)][:2] == ["90.0 %", "10.0 % \u00b1 5.9"]
    view.open(page_of(Description().process("p").stack(900, "main", "f").stack(100, "main", "g")))
    assert "10.0 % of all \u00b7" in view.at(.95, 3)[1]


def test_on_paper_all_rows_are_there_in_light_colours(look, page_of):
    view = look(width=900, height=500, media=[("prefers-color-scheme", "dark")])
    view.open(page_of(Description().process("p").add("deep", 10 ** 9, 100, "f")))
    before = view.js("[scroll.clientHeight, getComputedStyle(document.body).backgroundColor]".replace("scroll.", "document.getElementById('scroll')."))
    view.js("addEventListener('beforeprint', () => { const s = document.getElementById('scroll'), c = document.getElementById('canvas');"
            "window.paper = [s.clientHeight, c.height, getComputedStyle(document.body).backgroundColor,"
            "c.getContext('2d').getImageData(5, c.height - 12, 1, 1).data[0] < 255]; })")
    pdf = base64.b64decode(view.call("Page.printToPDF", printBackground=True)["data"])
    assert pdf.startswith(b"%PDF") and len(pdf) > 10_000
    assert view.js("window.paper") == [102 * 17, 102 * 17, "rgb(255, 255, 255)", True]
    view.settle()
    assert view.js("[scroll.clientHeight, getComputedStyle(document.body).backgroundColor]".replace("scroll.", "document.getElementById('scroll').")) == before
    view.call("Emulation.setEmulatedMedia", media="print")
    shown = view.js("['bar', 'status', 'more', 'canvas', 'tables', 'unseen'].map(id => document.getElementById(id).offsetParent !== null)")
    assert shown == [False, False, False, True, True, True]


def test_a_tap_zooms_and_a_long_press_opens_the_menu(look, page_of):
    view = look(width=390, height=800, touch=True)
    view.open(page_of(shop()))
    x, y = view.js("(() => { const b = document.getElementById('canvas').getBoundingClientRect(); return [b.left + 40, b.top + 24 * 3 + 12]; })()")
    view.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
    view.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    view.until("location.hash.includes('z=')")
    view.js(f"document.getElementById('canvas').dispatchEvent(new PointerEvent('contextmenu', {{pointerType: 'touch', button: 0, bubbles: true,"
            f" cancelable: true, clientX: {x}, clientY: {y}}}))")
    assert len(view.js("[...document.querySelectorAll('#menu:not([hidden]) button')]")) == 7
    box = view.js("(() => { const b = document.getElementById('menu').getBoundingClientRect(); return [b.left >= 0, b.right <= 390, b.bottom <= 800]; })()")
    assert box == [True] * 3

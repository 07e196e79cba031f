"""A page with several sample types: each is offered, and is what an independent reader finds in the files."""
import gzip
import json
import random
import re
from collections import Counter

import pytest
from lab import pprof
from pages import FLAME_PAGE_MAX_BYTES, Decoded, Description, constant_bytes, escape, saved, types_of

HEAP = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
LOCKS = [("contentions", "count"), ("delay", "nanoseconds")]
NASTY = "</option></select><img src=x onerror=alert(1)>"

KEPT = [(("main.main", "main.load"), (10, 40_000, 5, 20_000)),
        (("main.main", "main.serve", "main.buffer"), (7_000, 1_500_000, 3, 2_000_000_000)),
        (("main.main", "main.serve", NASTY), (20, 900_000, 0, 0)),
        (("runtime.main",), (500, 200_000, 10, 100_000_000))]
HELD = [(("main.main", "sync.Unlock"), (4, 2_500_000_000)), (("main.serve", "sync.Unlock"), (1, 500_000_000))]


def at_work(workdir):
    """10 s of CPU time of server (pid 7) and 2 s of db (pid 8); waits and page faults; both are programs in Go."""
    for name, types, samples in (("heap", HEAP, KEPT), ("mutex", LOCKS, HELD), ("block", LOCKS, HELD[:1])):
        (workdir / name).write_bytes(pprof.make(types, samples))
    (workdir / "heap-8").write_bytes(pprof.make(HEAP, KEPT[:1], file="/usr/bin/other"))
    made = Description(service="shop").process("server", pid=7, container="front", cpu=10)
    made.stack(7, "go:main.main", "go:main.serve").stack(3, "go:main.main", "go:main.load")
    made.wait(20, "go:main.main", "go:read")
    made.event("page-faults", "count").count(41, "go:main.main", "go:main.load")
    made.process("db", pid=8, cpu=2).stack(2, "query")
    for pid, kind, file in ((7, "heap", "heap"), (8, "heap", "heap-8"), (7, "mutex", "mutex"), (7, "block", "block")):
        made.runtime(pid, kind, workdir / file)
    return made


@pytest.fixture
def several(view, page_of, workdir):
    return view.open(page_of(at_work(workdir)))


LABELS = ["CPU time", "off_cpu", "wall", "page-faults", "inuse_space", "inuse_objects", "alloc_space", "alloc_objects",
          "delay (mutex)", "contentions (mutex)", "delay (block)", "contentions (block)"]


def chosen(view):
    return view.js("document.getElementById('type').selectedOptions[0].text")


def choose(view, label):
    """By the keyboard: typing the name in the control."""
    view.js("document.getElementById('type').focus()")
    for _ in LABELS:
        if chosen(view) == label:
            break
        here = LABELS.index(chosen(view))
        view.key("ArrowDown" if LABELS.index(label) > here else "ArrowUp")
        view.until(f"document.getElementById('type').selectedOptions[0].text !== {json.dumps(LABELS[here])}")
    view.until(f"document.getElementById('status').textContent.includes({json.dumps(label + ': ')})")
    view.settle()
    view.js("document.activeElement.blur()")


def weighed(samples, at, depth):
    """{name of the function at that depth: weight}, heaviest first."""
    sums = Counter()
    for sample in samples:
        if len(sample.frames) > depth:
            sums[sample.frames[depth]] += sample.values[at]
    return [name for name, weight in sums.most_common() if weight]


def test_all_types_are_offered_and_cpu_time_is_first(several):
    assert several.js("[...document.getElementById('type').options].map(o => o.text)") == LABELS
    assert several.js("document.getElementById('type').closest('.bar').id") == "bar"
    assert several.js("document.getElementById('type').getAttribute('aria-label')") == "Sample type"
    assert several.hash() == "" and chosen(several) == "CPU time"
    assert several.row_names(1) == ["server (pid 7)", "db (pid 8)"] and "total 12.0 s" in several.at(.5, 0)[1]
    assert several.text("#unseen").startswith("Not seen: nothing missing")


def test_a_page_of_one_type_offers_none(view, page_of):
    path = page_of(Description().process("p").stack(1, "main"))
    view.open(path)
    assert view.js("document.querySelector('select')") is None and types_of(path.read_bytes()) == {}
    view.key("v")
    assert view.row_names(2) == ["main"] and view.hash() == ""


@pytest.mark.parametrize("label, file, kind, total", [
    ("inuse_space", "heap", "inuse_space", "2.10 GB"), ("alloc_space", "heap", "alloc_space", "2.68 MB"),
    ("alloc_objects", "heap", "alloc_objects", "7,540 alloc_objects"), ("delay (mutex)", "mutex", "delay", "3.00 s"),
    ("contentions (mutex)", "mutex", "contentions", "5 contentions"), ("delay (block)", "block", "delay", "2.50 s")])
def test_a_type_is_what_the_file_says(several, workdir, label, file, kind, total):
    choose(several, label)
    made = pprof.read(workdir / file)
    at = made.column(kind)
    samples = made.samples
    assert several.status()[1].startswith(f"{label}: {total} in all.")
    assert f"total {total}, 100.0 % of all" in several.at(.5, 0)[1]
    assert several.row_names(1, 4000)[0] == "server (pid 7)"
    names = several.row_names(2, 4000)
    assert names[:len(set(weighed(samples, at, 0)))] == weighed(samples, at, 0)
    heaviest = max(samples, key=lambda sample: sample.values[at])
    row = 1 + len(heaviest.frames)
    assert heaviest.frames[-1] in several.row_names(row, 4000)
    assert several.hash() == "#type=" + label.replace(" ", "+").replace("(", "%28").replace(")", "%29")
    assert not several.js("document.getElementById('unseen').checkVisibility()"), "what CPU time lacks is not said of memory"


def test_every_block_holds_its_file(page_of, workdir):
    page = page_of(at_work(workdir)).read_bytes()
    found = types_of(page)
    assert list(found) == LABELS
    for label, name in found.items():
        kind, _, file = label.partition(" (")
        decoded = Decoded(page, name)
        if kind in dict(HEAP + LOCKS):
            wanted = Counter()
            for path in [file.rstrip(")")] if file else ["heap", "heap-8"]:
                made = pprof.read(workdir / path)
                for sample in made.samples:
                    wanted[tuple(sample.frames)] += sample.values[made.column(kind)]
            assert decoded.stacks() == +wanted, label
            assert decoded.header["value"] == kind and decoded.header["unit_ns"] == 1
    assert Decoded(page, found["wall"]).stacks() == {("main.main", "main.serve"): 7 * 10 ** 9, ("main.main", "main.load"): 3 * 10 ** 9,
                                                     ("main.main", "read"): 20 * 10 ** 9, ("query",): 2 * 10 ** 9}
    assert Decoded(page, found["page-faults"]).stacks() == {("main.main", "main.load"): 41}
    # two programs: a box for each, under the names that the run knows them by
    heap = Decoded(page, found["inuse_space"])
    assert {heap.names[name][0] for depth, _, name in heap.nodes if depth == 1} == {b"server (pid 7)", b"db (pid 8)"}


def test_a_type_is_chosen_by_the_mouse(several):
    several.click("#type")
    several.key("ArrowDown")
    several.key("Enter")
    several.until("document.getElementById('status').textContent.includes('off_cpu: 20.0 s in all')")
    several.settle()
    assert several.row_names(3) == ["read"] and several.hash() == "#type=off_cpu"


def test_letters_in_the_control_choose_and_do_nothing_else(several):
    """Without it b would be the bottom-up view."""
    several.js("document.getElementById('type').focus()")
    several.key("d")
    several.until("document.getElementById('status').textContent.includes('delay (mutex): 3.00 s')")
    assert several.js("document.documentElement.dataset.theme ?? ''") == "", "d is light or dark elsewhere"


def test_v_goes_through_all_of_them(several):
    for label in [*LABELS[1:], LABELS[0]]:
        several.key("v")
        several.until(f"document.getElementById('status').textContent.startsWith({json.dumps(label + ': ')})")
    several.settle()
    assert several.row_names(2) == ["main.main", "query"] and several.hash() == ""
    several.js("history.back()")
    several.until("document.getElementById('status').textContent.startsWith('contentions (block): 4 contentions')")
    assert chosen(several) == "contentions (block)"


def test_search_zoom_filters_and_the_table_work_in_each(several):
    choose(several, "alloc_space")
    assert several.search("main.serve") == "89.6 % in 1 place"
    several.search("")
    several.js("document.activeElement.blur()")
    several.zoom(.5, 3)
    assert several.row_names(3) == ["main.serve"] and several.row_names(4) == ["main.buffer", NASTY]
    several.key("t")
    rows = several.js("[...document.querySelectorAll('#list tbody tr')].map(r => [...r.cells].map(c => c.textContent))")
    assert rows[0] == ["56.0 %", "1.50 MB", "56.0 %", "1.50 MB", "go", "main.buffer"]
    assert rows[1][:2] == ["33.6 %", "900 kB"] and rows[1][-1] == NASTY
    several.key("g")
    several.key("Escape")
    several.hover(*several.place(.5, 4))
    several.key("x")
    assert several.row_names(4) == [NASTY]
    # what is left out stays left out in another type
    choose(several, "inuse_space")
    assert several.text("#crumbs") == "without: main.buffer \u00d7" and "total 100 MB" in several.at(.5, 0)[1]


def test_a_zoom_is_kept_where_the_other_type_has_its_path(several):
    choose(several, "alloc_space")
    several.zoom(.5, 3)
    choose(several, "alloc_objects")
    assert several.row_names(3) == ["main.serve"] and several.row_names(4) == ["main.buffer"]
    several.key("Escape")
    choose(several, "delay (block)")
    assert several.row_names(3) == ["sync.Unlock"]


def test_a_link_holds_the_type(several, look, page_of, workdir):
    choose(several, "alloc_space")
    several.zoom(.5, 3)
    link = several.js("location.href")
    other = look()
    other.open(link)
    other.until("document.getElementById('status').textContent.length > 0 && document.getElementById('type').value === '6'")
    other.settle()
    assert chosen(other) == "alloc_space" and other.row_names(3) == ["main.serve"] and other.row_names(4)[0] == "main.buffer"
    # a page that has it not says so, and shows what it has
    other.open(str(page_of(Description().process("p").stack(1, "main"), name="one.html").resolve().as_uri()) + "#type=alloc_space")
    assert other.status()[1] == "Not in this profile, so left out of the link: alloc_space" and other.row_names(2) == ["main"]


def test_what_is_saved_is_of_the_type_that_is_shown(several, run, pillion, workdir):
    choose(several, "alloc_space")
    picture, name = saved(several, "s")
    assert name == "shop.alloc_space.svg" and "main.buffer \u00b7 go" in picture and "1.50 MB" in picture
    text, name = saved(several, "e")
    assert name == "shop.alloc_space.col"
    assert "front;server;main.main;main.serve;main.buffer 1500000" in text.splitlines()
    (workdir / "saved.col").write_text(text)
    done = run([pillion, "render", "saved.col", "-o", "saved.html"], cwd=workdir)
    assert done.status == 0 and done.err == "", done
    assert "<dt>alloc_space</dt><dd>2.68 MB</dd>" in (workdir / "saved.html").read_text()


def test_without_script_the_first_type_is_told(look, page_of, workdir):
    view = look()
    view.call("Emulation.setScriptExecutionDisabled", value=True)
    view.open(page_of(at_work(workdir)), drawn=False)
    view.call("Emulation.setScriptExecutionDisabled", value=False)
    assert not view.js("document.getElementById('type').checkVisibility()")
    assert "CPU time" in view.text("header") and "main.serve" in view.text("#tables") and "inuse" not in view.text("body")


def test_of_a_program_that_only_waited_the_waits_are_shown(view, page_of):
    """There is no CPU time to begin with; it is said, and what there is can be seen."""
    view.open(page_of(Description().process("idle", pid=1).wait(5, "main", "sleep").event("wakeups", "count").count(3, "main")))
    assert view.js("[...document.getElementById('type').options].map(o => o.text)") == ["off_cpu", "wall", "wakeups"]
    assert "No CPU time was seen" in view.text("body")
    assert view.row_names(3) == ["sleep"] and view.status()[1].startswith("off_cpu: 5.00 s in all.") and view.hash() == ""
    view.key("v")
    view.until("location.hash === '#type=wall'")


def test_a_page_of_a_heap_file_begins_with_what_is_in_use(view, run, pillion, workdir):
    (workdir / "profile_x.heap.pprof").write_bytes(pprof.make(HEAP, KEPT))
    done = run([pillion, "render", "profile_x.heap.pprof", "-o", "all.html"], cwd=workdir)
    assert done.status == 0 and done.err == "", done
    page = (workdir / "all.html").read_bytes()
    assert list(types_of(page)) == ["inuse_space", "inuse_objects", "alloc_space", "alloc_objects"]
    assert b"<dt>inuse_space</dt><dd>2.10 GB</dd>" in page and b"Width is inuse_space" in page and b"CPU time" not in page
    view.open(workdir / "all.html")
    assert view.row_names(1) == ["program"] and view.status()[1].startswith("inuse_space: 2.10 GB in all.")
    view.key("v")
    view.until("document.getElementById('status').textContent.startsWith('inuse_objects: 18 inuse_objects in all.')")
    # --type is that one alone, as ever
    done = run([pillion, "render", "profile_x.heap.pprof", "--type", "alloc_space", "-o", "one.html"], cwd=workdir)
    assert done.status == 0 and types_of((workdir / "one.html").read_bytes()) == {}
    assert "<dt>alloc_space</dt><dd>2.64 MB</dd>" in (workdir / "one.html").read_text()
    assert run([pillion, "render", "profile_x.heap.pprof", "-o", "none.col"], cwd=workdir).status == 1


def test_files_of_one_kind_add_up(run, pillion, workdir):
    for name in ("a", "b"):
        (workdir / name).write_bytes(pprof.make(HEAP, KEPT[:1]))
    (workdir / "c.col").write_text("p;main 99\n")
    assert run([pillion, "render", "a", "c.col", "b", "-o", "all.html"], cwd=workdir).status == 0
    page = (workdir / "all.html").read_bytes()
    assert list(types_of(page)) == ["CPU time", "inuse_space", "inuse_objects", "alloc_space", "alloc_objects"]
    assert Decoded(page, types_of(page)["alloc_space"]).stacks() == {("main.main", "main.load"): 80_000}


def test_times_in_other_units_are_seconds(view, run, pillion, workdir):
    (workdir / "wait.pprof").write_bytes(pprof.make([("stalls", "count"), ("stalled", "milliseconds")], [(("f",), (2, 1500))]))
    assert run([pillion, "render", "wait.pprof", "-o", "wait.html"], cwd=workdir).status == 0
    view.open(workdir / "wait.html")
    assert view.status()[1].startswith("stalled: 1.50 s in all.")


def test_a_type_that_would_make_the_page_too_large_is_left_out_and_named(view, page_of, workdir):
    """As of a program with very many different stacks."""
    draw = random.Random(1)
    names = [f"package{draw.getrandbits(40):x}.Function{draw.getrandbits(60):x}" for _ in range(40_000)]
    many = [([draw.choice(names) for _ in range(18)], [draw.getrandbits(20), draw.getrandbits(40), 0, 0]) for _ in range(50_000)]
    many.append((["main"], [1, 1, 7, 7]))
    (workdir / "heap").write_bytes(pprof.make(HEAP, many))
    path = page_of(Description().process("server", pid=7).stack(1, "main").runtime(7, "heap", workdir / "heap"))
    page = path.read_bytes()
    assert len(page) <= FLAME_PAGE_MAX_BYTES + 4096 and list(types_of(page)) == ["CPU time", "inuse_space", "inuse_objects"]
    view.open(path)
    assert view.text("#tables ~ footer ~ footer") == (
        "Not in this page: alloc_space (too large for a page), alloc_objects (too large for a page);"
        " pillion render FILE --type NAME draws one of a file.")


@pytest.mark.parametrize("damaged, reason", [
    (gzip.compress(b"\x0a\xff\xff"), "not a valid pprof file: it is cut off or no protocol buffer"),
    (gzip.compress(bytes(1 << 30), 1), "decompresses to more than"),
    (pprof.make(HEAP, [(("main",), (1, 1, 1, (1 << 64) - 5))]), "this pprof file holds negative values")],
    ids=["cut off", "bomb", "negative"])
def test_a_damaged_file_of_a_runtime_is_named(page_of, workdir, damaged, reason):
    (workdir / "heap").write_bytes(damaged)
    (workdir / "mutex").write_bytes(pprof.make(LOCKS, HELD))
    made = Description().process("server", pid=7).stack(1, "main")
    page = page_of(made.runtime(7, "heap", workdir / "heap").runtime(7, "mutex", workdir / "mutex")).read_text()
    assert list(types_of(page.encode())) == ["CPU time", "delay (mutex)", "contentions (mutex)"]
    assert re.search(r"Not in this page: heap \([^()]*" + re.escape(reason), page), page[-900:]


def test_a_damaged_block_leaves_the_first_type(look, page_of, workdir):
    path = page_of(at_work(workdir))
    path.write_text(re.sub(r'(id="data4">\n).{40}', r"\1" + "A" * 40, path.read_text()))
    view = look()
    view.open(path)
    choice = "document.getElementById('type')"
    view.js(f"{choice}.value = 4; {choice}.dispatchEvent(new Event('change'))")
    view.until("document.getElementById('status').textContent.startsWith('inuse_space cannot be shown')")
    view.settle()
    assert view.row_names(1) == ["server (pid 7)", "db (pid 8)"] and chosen(view) == "CPU time"


def test_further_types_are_nothing_but_their_blocks(page_of, workdir):
    """Of CPU time alone the page is what it was: the same bytes before the first of them."""
    several = page_of(at_work(workdir)).read_bytes()
    lines = [line for line in at_work(workdir).lines if line.split("\t")[0] not in ("wait", "event", "count", "runtime")]
    alone = Description()
    alone.lines = lines
    alone = page_of(alone, name="alone.html").read_bytes()
    shared = alone.removesuffix(b"</body>\n</html>\n")
    assert several.startswith(shared) and constant_bytes(several) - constant_bytes(alone) < 2500
    assert len(several) - len(alone) < 20_000


@pytest.mark.parametrize("name", [NASTY, "__proto__", "\u202egnp.exe", "nul\0", b"\xff\xfe<script>alert(1)</script>", "a" * 5000],
                         ids=["markup", "prototype", "reordered", "nul", "bytes", "long"])
def test_a_hostile_type_is_only_text(view, page_of, name):
    made = Description().process("p").stack(1, "main").event(name, name).count(3, "main", b"native:" + escape(name).encode())
    view.open(page_of(made))
    view.key("v")
    view.until("document.documentElement.classList.contains('other')")
    view.settle()
    assert view.js("document.querySelectorAll('option').length") == 2 and view.row_names(2) == ["main"]
    view.key("t")
    view.key("l")
    assert view.js("document.querySelectorAll('img, option script').length") == 0
    view.key("v")
    view.until("!document.documentElement.classList.contains('other')")

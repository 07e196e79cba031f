"""Fixtures of the flame graph's tests: the browser, pages, and what was seen in them."""
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import chromium  # noqa: E402
import pages  # noqa: E402
from lab import process  # noqa: E402

ROW = 17


@pytest.fixture(scope="session", autouse=True)
def flame_page():
    try:
        return pages.tool()
    except pages.NotBuilt as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def browser():
    reason = chromium.missing()
    if reason:
        pytest.skip(reason)
    with chromium.Chromium() as started:
        process.foreign.add(started.process.pid)
        yield started
    process.foreign.discard(started.process.pid)


class View:
    """A flame graph page as a user meets it. Frames are found by pointing at them."""

    def __init__(self, browser, **options):
        self.page = browser.page(**options)

    def __getattr__(self, name):
        return getattr(self.page, name)

    def open(self, path, **options):
        self.page.open(path, **options)
        if options.get("drawn", True):
            self.page.settle()
        return self

    def place(self, x, row):
        """Where on the screen the fraction x of a row is; row 0 is the outermost caller."""
        left, top, width = self.js("(() => { const b = document.getElementById('canvas').getBoundingClientRect();"
                                   " return [b.left, b.top, b.width]; })()")
        scrolled = self.js("document.getElementById('scroll').scrollTop")
        return left + x * width, top + row * ROW + ROW / 2 - scrolled

    def at(self, x, row):
        """(name, facts) of the frame there, as the status line tells."""
        self.page.hover(*self.place(x, row))
        return self.status()

    def status(self):
        return tuple(self.js("[...document.getElementById('status').children].map(e => e.textContent)"))

    def name_at(self, x, row):
        return self.at(x, row)[0]

    def row_names(self, row, steps=100):
        """The names of a row from left to right, at so many places."""
        x0, y = self.place(0, row)
        names = self.js(f"""Array.from({{length: {steps}}}, (_, i) => {{
            const canvas = document.getElementById('canvas'), width = canvas.getBoundingClientRect().width;
            canvas.dispatchEvent(new PointerEvent('pointermove', {{clientX: {x0} + (i + .5) / {steps} * width, clientY: {y}}}));
            return canvas.style.cursor && document.querySelector('#status b').textContent; }})""")
        self.js("document.getElementById('canvas').dispatchEvent(new PointerEvent('pointerleave'))")
        return [name for name, before in zip(names, [""] + names) if name and name != before]

    def zoom(self, x, row):
        self.page.click_at(*self.place(x, row))

    def search(self, text):
        self.js("document.getElementById('query').focus(); document.getElementById('query').select()")
        self.type(text) if text else self.key("Backspace")
        return self.text("#found")

    def hash(self):
        return self.js("location.hash")

    def share_of(self, name_or_facts):
        return float(re.search(r"([\d.]+) % of all", name_or_facts).group(1))

    def check_clean(self):
        assert self.page.complaints == []
        assert self.js("window.violations") == []
        assert self.js("window.pwned") == []


@pytest.fixture
def view(browser):
    made = View(browser)
    yield made
    made.check_clean()
    made.page.close()


@pytest.fixture
def look(browser):
    """look(width=…, media=…) → a View with options."""
    opened = []

    def make(**options):
        opened.append(View(browser, **options))
        return opened[-1]
    yield make
    for each in opened:
        each.check_clean()
        each.page.close()


@pytest.fixture
def page_of(workdir):
    """page_of(description) → path of its page."""
    def make(description, base=None, name="page.html"):
        path = workdir / name
        source = description.write(workdir / (name + ".tsv"))
        if base is None:
            pages.make("describe", source, path)
        else:
            pages.make("compare", source, base.write(workdir / (name + ".base.tsv")), path)
        return path
    return make

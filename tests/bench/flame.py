"""The flame graph at 100, 10,000 and 100,000 stacks: making it, opening it, using it. Medians of ROUNDS runs.

"with time" is the same with a moment for each sample, at random in 60 s, the hardest to compress. Its span is 10 s of them.

Times in the browser are from the deed to the second animation frame after it, that is until it was painted, by the
browser's clock; "graph" is from the start of the navigation. `tests/bench/flame.py --rounds 3` for a quick look.
"""
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "browser"))
import chromium  # noqa: E402
import pages  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent))
import rows  # noqa: E402

ROUNDS = 5
SIZES = {"S0.1": 100, "S10": 10_000, "S100": 100_000}
# what: (unit, demand at S10, demand at S100)
DEMANDS = {
    "page": ("MB", .31, 1.4),
    "page per node": ("bytes", None, .75),
    "constant part": ("KB", 48, 48),
    "CPU to make it, fold included": ("s", None, .6),
    "extra memory": ("MB", None, 2),
    "first paint": ("ms", 300, 300),
    "graph": ("ms", 1000, 1000),
    "search": ("ms", 250, 250),
    "zoom": ("ms", 100, 100),
    "bottom-up": ("ms", 300, 300),
    "table": ("ms", 200, 200),
    "sandwich": ("ms", None, None),
    "without a kind": ("ms", None, None),
    "heap": ("MB", None, None),
    "page with time": ("MB", None, 2.5),
    "extra memory with time": ("MB", None, 3),
    "first paint with time": ("ms", 1000, 1000),
    "graph with time": ("ms", 1000, 1000),
    "a span picked": ("ms", 300, 300),
    "another": ("ms", 300, 300),
    "all again": ("ms", 300, 300),
    "heat map": ("ms", None, None),
    "heap with time": ("MB", None, None),
}
TIMED = """(async deed => {
  const start = performance.now();
  deed();
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - start;
})"""


def click(selector):
    return f"() => document.querySelector({selector!r}).click()"


SEARCH = """() => {
  const query = document.getElementById('query');
  query.value = 'OrderSession';
  query.dispatchEvent(new Event('input'));
}"""
ZOOM = """() => {
  const canvas = document.getElementById('canvas'), box = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new MouseEvent('click', {clientX: box.left + 300, clientY: box.top + 17 * 4 + 8}));
}"""


def pick(part, to):
    """Drags over a part of the window."""
    return f"""() => {{
      const band = document.getElementById('band'), box = band.getBoundingClientRect(), width = box.width - 44;
      band.setPointerCapture = () => 0; // of a pointer that is there
      for (const [type, part] of [['down', {part}], ['move', {to}], ['up', {to}]]) {{
        const clientX = box.left + 44 + part * width;
        band.dispatchEvent(new PointerEvent('pointer' + type, {{clientX, clientY: box.top + 20}}));
      }}
    }}"""


def use_time(browser, path):
    page = browser.page()
    page.open(path)
    page.settle()
    page.until("!!document.querySelector('#time button')")
    figures = {
        "first paint with time": page.js("performance.getEntriesByName('first-paint')[0].startTime"),
        "graph with time": page.js("performance.getEntriesByName('graph')[0].startTime"),
    }
    for name, deed in (("a span picked", pick(.171, .329)), ("another", pick(.501, .659))):
        figures[name] = page.js(f"{TIMED}({deed})")
        if "span=" not in page.js("location.hash"):
            sys.exit("no span was picked")
    figures["all again"] = page.js(f"{TIMED}({click('#crumbs button')})")
    figures["heat map"] = page.js(f"{TIMED}({click('#time button')})")
    figures["heap with time"] = page.js("performance.memory.usedJSHeapSize") / 1e6
    if page.complaints:
        sys.exit(f"the page complains: {page.complaints}")
    page.close()
    return figures


def use(browser, path):
    page = browser.page()
    page.open(path)
    page.settle()
    figures = {
        "first paint": page.js("performance.getEntriesByName('first-paint')[0].startTime"),
        "graph": page.js("performance.getEntriesByName('graph')[0].startTime"),
        "search": page.js(f"{TIMED}({SEARCH})"),
        "zoom": page.js(f"{TIMED}({ZOOM})"),
    }
    page.key("0")
    for name, selector in (("bottom-up", "#bottom"), ("table", "#table"), ("sandwich", "#list td button")):
        figures[name] = page.js(f"{TIMED}({click(selector)})")
    page.js(f"({click('#graphview')})()")
    page.settle()
    figures["without a kind"] = page.js(f"{TIMED}({click('#legend button')})")
    figures["heap"] = page.js("performance.memory.usedJSHeapSize") / 1e6
    if page.complaints:
        sys.exit(f"the page complains: {page.complaints}")
    page.close()
    return figures


def measure(browser, folder, name, stacks, rounds):
    path, runs = folder / f"{name}.html", []
    for _ in range(rounds):
        made = pages.make("synthetic", stacks, path)
        figures = {"page": made["bytes"] / 1e6, "page per node": made["bytes"] / made["nodes"],
                   "constant part": pages.constant_bytes(path.read_bytes()) / 1024,
                   "CPU to make it, fold included": made["write_s"], "extra memory": made["extra_bytes"] / 1e6}
        if browser:
            figures.update(use(browser, path))
        timed = pages.make("timed", stacks, path)
        figures.update({"page with time": timed["bytes"] / 1e6, "extra memory with time": timed["extra_bytes"] / 1e6})
        if browser:
            figures.update(use_time(browser, path))
        runs.append(figures)
    print(f"{name}: {stacks:,} stacks, {made['nodes']:,} nodes")
    return {what: statistics.median(run[what] for run in runs) for what in runs[0]}


def main():
    rounds = int(sys.argv[sys.argv.index("--rounds") + 1]) if "--rounds" in sys.argv else ROUNDS
    reason = chromium.missing()
    browser = None if reason else chromium.Chromium()
    print(reason or f"{browser.version}, 1600x900, no GPU")
    with tempfile.TemporaryDirectory() as folder:
        results = {name: measure(browser, Path(folder), name, stacks, rounds) for name, stacks in SIZES.items()}
    if browser:
        browser.close()
    width = max(map(len, DEMANDS)) + 1
    print(f"{'':{width}}" + "".join(f"{name:>10}" for name in SIZES) + "  unit   demand at S10, S100")
    for what, (unit, small, large) in DEMANDS.items():
        values = [results[name].get(what) for name in SIZES]
        if values[0] is None:
            continue
        missed = any(d is not None and v > d for v, d in zip(values[1:], (small, large)))
        demand = ", ".join("-" if d is None else f"{d:g}" for d in (small, large))
        print(f"{what:{width}}" + "".join(f"{v:>10.{0 if v >= 20 else 2}f}" for v in values)
              + f"  {unit:6} {demand if (small, large) != (None, None) else '':14}{'  MISSED' if missed else ''}")
    for what in ("page", "CPU to make it, fold included", "graph", "page with time", "a span picked"):
        value = results["S100"].get(what)
        if value is not None:
            unit, _, large = DEMANDS[what]
            rows.add(f"flame graph of 100,000 stacks, {what}", value, unit, most=large)


if __name__ == "__main__":
    main()

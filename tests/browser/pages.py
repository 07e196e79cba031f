"""Pages to look at: made by flame_page from the product's own objects, and read back by a decoder that shares nothing with it."""
import base64
import html
import itertools
import json
import platform
import re
import subprocess
import zlib
from collections import Counter
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
OUT = REPOSITORY / "build" / "out" / platform.machine()
SOURCE = Path(__file__).parent / "flame_page.c"
SECOND = 1_000_000_000
FLAME_PAGE_MAX_BYTES = 2_500_000  # src/encode/flame.h
KIND_PROCESS, KIND_THREAD, KIND_CONTAINER = 64, 65, 66
WITH_FILE = 1


class NotBuilt(Exception):
    pass


def tool():
    """build/out/ARCH/flame_page, linked again whenever the product was built anew."""
    objects = sorted(p for part in ("base", "profile", "encode") for p in (OUT / "obj" / part).glob("*.o"))
    objects.append(OUT / "obj" / "assets.o")
    if len(objects) < 10 or not all(p.exists() for p in objects):
        raise NotBuilt(f"{OUT}/obj is not built; run make")
    program, vendor = OUT / "flame_page", OUT / "vendor" / "lib"
    if not program.exists() or program.stat().st_mtime < max(p.stat().st_mtime for p in [SOURCE, *objects]):
        subprocess.run(["gcc", f"-specs={vendor}/musl-gcc.specs", "-std=gnu11", "-D_GNU_SOURCE=", "-Isrc", "-Wall",
                        "-Wextra", "-Werror", "-O2", "-static", "-no-pie", "-o", program, SOURCE, *objects,
                        vendor / "libzlib.a", vendor / "libbearssl.a"], cwd=REPOSITORY, check=True)
    return program


def make(*arguments, timeout=120):
    """Runs flame_page and returns what it measured."""
    done = subprocess.run([tool(), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode())
    return json.loads(done.stdout)


def escape(text):
    """One field of a description: any str or bytes."""
    data = text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogatepass")
    return "".join(chr(b) if 0x20 <= b < 0x7f and b != 0x5c else f"\\x{b:02x}" for b in data)


class Description:
    """What flame_page's `describe` reads. Weights in seconds."""

    def __init__(self, **meta):
        self.lines = []
        for field, value in {"period_ns": 10_000_000, "hz": 100, "service": "shop", **meta}.items():
            self.add("meta", field, value)

    def add(self, *fields):
        self.lines.append("\t".join(escape(f) for f in fields))
        return self

    def process(self, name, pid=0, container="", runtime="", capture_mode=1, remedy="", cpu=0):
        return self.add("process", pid, name, container, runtime, capture_mode, remedy, round(cpu * SECOND))

    def thread(self, name):
        return self.add("thread", name)

    def stack(self, seconds, *frames):
        """Frames are "name" (native) or "kind:name", and may end in " @ library"."""
        return self.add("stack", round(seconds * SECOND), *map(_framed, frames))

    def at(self, seconds, moment, *frames):
        """A stack that was taken so many seconds after the beginning."""
        return self.add("at", round(seconds * SECOND), round(moment * 1000), *map(_framed, frames))

    def wait(self, seconds, *frames):
        return self.add("wait", round(seconds * SECOND), *map(_framed, frames))

    def event(self, name, unit):
        """A sample type; counts from here on are of it."""
        return self.add("event", name, unit)

    def count(self, amount, *frames):
        return self.add("count", amount, *map(_framed, frames))

    def runtime(self, pid, kind, path):
        """A pprof file that the runtime of this process made."""
        return self.add("runtime", pid, kind, path)

    def write(self, path):
        Path(path).write_text("\n".join(self.lines) + "\n")
        return path


KINDS = ("native", "kernel", "go", "java", "python", "ruby", "php", "perl", "javascript", "not seen")


def _framed(frame):
    text = frame.decode("latin-1") if isinstance(frame, bytes) else frame
    if text.partition(":")[0] in KINDS:
        return frame
    return b"native:" + frame if isinstance(frame, bytes) else "native:" + frame


# ---- Reading a page back

def block(page, name):
    """The bytes of one of the page's data blocks."""
    text = re.search(rb'<script type="application/octet-stream" id="' + name.encode() + rb'">([^<]*)</script>', page).group(1)
    assert re.fullmatch(rb"[A-Za-z0-9+/=\n]*", text)
    return zlib.decompress(base64.b64decode(text), -15)


def constant_bytes(page):
    return len(page) - sum(map(len, re.findall(rb'id="data\d*">([^<]*)</script>', page)))


def types_of(page):
    """{label: name of its data block}, in their order; of a page with one type none."""
    found = re.findall(rb'<option value="(\d+)">([^<]*)</option>', page)
    return {html.unescape(label.decode()): "data" + number.decode().removeprefix("0") for number, label in found}


class Decoded:
    """names: [(bytes, kind, place)]; nodes: [(depth, own ns, index of name)] in pre-order without the root."""

    def __init__(self, page, name="data"):
        self.bytes, self.at = block(page, name), 0
        length = self.number()
        self.header = json.loads(self.take(length))
        self.places = [b""] + [text for text in self.texts(self.number())]
        count, self.names = self.number(), []
        for text in self.texts(count):
            kind, place = self.number(), self.number()
            self.names.append((text, kind, place))
            if kind < KIND_PROCESS and self.header["kinds"][kind][4] == WITH_FILE:
                self.number()
                for _ in range(2 * self.number()):
                    self.number()
        self.nodes = self.tree()
        self.times = self.moments() if "steps" in self.header else []
        assert self.at == len(self.bytes) or self.header["compared"]

    def moments(self):
        """[(index of node, step, ns)]; what has no step is left out."""
        own = [(at, node[1]) for at, node in enumerate(self.nodes) if node[1]]
        counts = self.numbers(len(own))
        steps = [list(itertools.accumulate(self.numbers(count // 2))) for count in counts]
        found = []
        for (at, ns), count, when in zip(own, counts, steps):
            weights = self.numbers(count // 2 + count % 2 if count > 1 else 0)
            found += [(at, step, ns * weight / sum(weights)) for step, weight in zip(when, weights[count % 2:])]
        return found

    def stacks(self):
        """{functions from the root on, without process and thread: own weight}, of whatever unit."""
        found, path = Counter(), []
        for depth, own, name in self.nodes:
            path[depth - 1:] = [self.names[name]]
            if own:
                found[tuple(text.decode() for text, kind, _ in path if kind < KIND_PROCESS)] += own
        return found

    def take(self, length):
        self.at += length
        return self.bytes[self.at - length:self.at]

    def number(self):
        value = shift = 0
        while True:
            byte = self.bytes[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def texts(self, count):
        before = b""
        for _ in range(count):
            shared, rest = self.number(), self.number()
            before = before[:shared] + self.take(rest)
            yield before

    def numbers(self, count):
        """The next `count` numbers: one loop, as there are millions."""
        data, at, values = self.bytes, self.at, []
        for _ in range(count):
            value = data[at]
            at += 1
            if value > 127:
                shift, value, byte = 7, value & 127, value
                while byte > 127:
                    byte = data[at]
                    at += 1
                    value |= (byte & 127) << shift
                    shift += 7
            values.append(value)
        self.at = at
        return values

    def tree(self):
        n = self.number()
        parent, depth, last = [0] * (n + 1), [0] * (n + 1), 0
        for i, climb in enumerate(self.numbers(n), 1):
            while climb:
                last = parent[last]
                climb -= 1
            parent[i], depth[i], last = last, depth[last] + 1, i
        unit, units = self.header["unit_ns"], [0] + self.numbers(n)
        own = [(u - 1) * unit if u else 0 for u in units]
        if not self.header["exact"]:
            own = [ns + self.number() if u else 0 for ns, u in zip(own, units)]
        name, known = [len(self.names)] + [0] * n, {}
        for i in range(1, n + 1):
            callees = known.setdefault(name[parent[i]], [])
            rank = self.bytes[self.at] - 1  # at most 127: one byte
            self.at += 1
            if rank < 0:
                entry = [self.number(), 1]
                callees[len(callees) if len(callees) < 127 else 126:] = [entry]
            else:
                entry = callees[rank]
                entry[1] += 1
                while rank and callees[rank - 1][1] < entry[1]:
                    callees[rank] = callees[rank - 1]
                    rank -= 1
                callees[rank] = entry
            name[i] = entry[0]
        return list(zip(depth, own, name))[1:]


def wanted_tree(path):
    """The tree flame_page wrote beside the page: [(depth, kind, own ns, name)]."""
    rows = []
    for line in Path(path).read_text().splitlines():
        depth, kind, own, name = line.split("\t")
        kind = int(kind)
        rows.append((int(depth), kind if kind < len(KINDS) else KIND_PROCESS + kind - len(KINDS), int(own), bytes.fromhex(name)))
    return rows


def text_of(fragment):
    return html.unescape(re.sub(r"<[^>]*>", "", fragment))


def saved(view, key):
    """What the page saves by this key, and under which name."""
    view.js("window.saved = null; URL.createObjectURL = b => { b.text().then(t => { window.saved = t; }); return '#'; };"
            "HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download; }")
    view.key(key)
    view.until("window.saved !== null")
    return view.js("window.saved"), view.js("window.savedAs")

"""Names from hostile processes: they are shown, and do nothing."""
import base64
import json
import re
import zlib

import pytest
from pages import Description, block

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</SCRIPT ><SCRIPT>alert(1)</SCRIPT>",
    "</script><img src=x onerror=alert(1)>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "</title><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</textarea><iframe srcdoc='<script>parent.alert(1)</script>'>",
    "</td></tr></table><script>alert(1)</script>",
    "\" onmouseover=\"alert(1)\" x=\"",
    "' onfocus='alert(1)' autofocus='",
    "\"><a href=\"javascript:alert(1)\">click</a>",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "<a href=javascript:alert(1)>",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<style>@import '//evil.example'</style>",
    "<form action=//evil.example><input name=q autofocus onfocus=alert(1)>",
    "<object data=//evil.example></object><embed src=//evil.example>",
    "<math><mtext></mtext><script>alert(1)</script></math>",
    "<!--", "-->", "--!><script>alert(1)</script>", "<!-- <script>",
    "]]>", "<![CDATA[ ]]><script>alert(1)</script>",
    "${alert(1)}", "`;alert(1);`", "'+alert(1)+'", "\\\"+alert(1)+\\\"", "\\u003cscript\\u003ealert(1)\\u003c/script\\u003e",
    "{{constructor.constructor('alert(1)')()}}",
    "__proto__", "constructor", "hasOwnProperty", "toString",
    "nul\0<script>alert(1)</script>", "\0", "line\nfeed\r\nand\ttab",
    "\u2028alert(1)\u2029", "\u202egnp.exe\u202c", "\u2066\u2067isolates\u2069", "\ufeff\u200b\u200f",
    "\x1b]0;title\x07\x1b[31mred", "\x7f\x80\x9f",
    b"\xff\xfe<script>alert(1)</script>", b"\xc0\xbcscript\xc0\xbe", b"\xed\xa0\x80\xed\xb0\x80", b"\xf4\x90\x80\x80",
    b"cut \xe2\x82", b"\xe2<script>\x82\xac",
    "+ADw-script+AD4-alert(1)+ADw-/script+AD4-",
    "&lt;script&gt;alert(1)&lt;/script&gt;", "&#60;script&#62;", "&#x3c;", "&",
    "%3Cscript%3Ealert(1)%3C/script%3E", "#q=<script>", "a;b;c 5", "?", " ", "_[k]", "[lost]", "(", "<", "operator<",
    "a" * 100_000, "<b>" * 20_000, "\U0001f525" * 500, "e" + "\u0301" * 3000,
]

SKELETON = "[...document.querySelectorAll('*')].map(e => e.localName + '.' + e.getAttributeNames().join('.')).join(' ')"


def everywhere(name):
    """The name in every place a profile has for text."""
    description = Description(service=name, host=name, mode=name, reason=name)
    description.process(name, pid=7, container=name, runtime=name, remedy=name, cpu=4)
    description.stack(1, b"native:" + raw(name) + b" @ " + raw(name), b"python:" + raw(name))
    description.thread(name + "2" if isinstance(name, str) else name + b"2")
    description.stack(2, b"kernel:" + raw(name), b"java:x" + raw(name))
    description.stack(1, b"not seen:" + raw(name))
    return description


def raw(name):
    return name if isinstance(name, bytes) else name.encode("utf-8", "surrogatepass")


def test_there_are_enough_of_them():
    assert len(set(map(raw, HOSTILE))) >= 40


def use_everything(view):
    """Brings names to every place of the page they can get to."""
    for row in range(5):
        view.at(.3, row)
    view.search("a")
    view.key("Enter")
    view.key("Escape")
    for key in ("h", "b", "t", "w", "g", "h", "i", "c", "c", "j", "r", "m", "u", "p"):
        view.key(key)
    view.click("#table")
    view.js("document.querySelector('#list td button')?.click()")
    view.settle()
    view.click("#graphview")
    view.page.click_at(*view.place(.3, 3), "right")
    view.key("Escape")
    view.key("y")
    view.key("f")
    view.key("l")
    view.page.hover(*view.place(.3, 2))
    view.key("x")
    view.js("document.querySelectorAll('#chips button').forEach(b => b.click())")
    view.settle()
    view.key("s")
    view.key("e")


BATCH = 9


@pytest.mark.parametrize("first", range(0, len(HOSTILE), BATCH))
def test_a_hostile_name_is_only_text(view, page_of, first):
    view.open(page_of(everywhere("harmless")))
    plain = view.js(SKELETON)
    for number, name in enumerate(HOSTILE[first:first + BATCH], first):
        view.open(page_of(everywhere(name), name=f"{number}.html"))
        assert view.js(SKELETON) == plain, name
        view.at(.3, 3)
        view.key("t")
        view.check_clean()
    use_everything(view)


def test_all_of_them_in_one_page(view, page_of):
    description = Description(service="all")
    for number, name in enumerate(HOSTILE, 1):
        description.process(name, pid=number, container=name)
        description.stack(1, b"native:" + raw(name), *[b"python:" + raw(other)[:300] for other in HOSTILE[:20]])
    view.open(page_of(description))
    use_everything(view)


def test_hostile_text_of_lines_and_names_of_files_are_only_text(look, run, pillion, workdir):
    lines = [name.replace("\0", "").replace("\r", "").replace("\n", " ") for name in HOSTILE if isinstance(name, str)]
    files = [f"{number} {name[:60]}.py" for number, name in enumerate(lines) if "/" not in name and "(" not in name and ";" not in name and ":" not in name]
    for file in files:
        (workdir / file).write_text("\n".join(lines))
    stacks = [f"p;f{i} ({file}:1):{1 + (5 * i + k) % len(lines)}_[p] 5" for i, file in enumerate(files) for k in range(5)]
    (workdir / "p.col").write_text("\n".join(stacks) + "\n")
    done = run([pillion, "render", "p.col", "--sources", ".", "-o", "p.html"], cwd=workdir)
    assert done.status == 0 and len(files) > 20, done
    view = look(width=1600)
    view.open(workdir / "p.html")
    plain = view.js(SKELETON)
    seen = set()
    for name in view.js("[...new Set([...document.querySelectorAll('#tables section:first-child td:last-child')].map(e => e.textContent))]"):
        view.js(f"location.hash = new URLSearchParams({{lines: {json.dumps(name.rpartition(', line ')[0])}}})")
        view.settle()
        seen.update(view.js("[...document.querySelectorAll('#detail .heavy td:last-child')].map(e => e.textContent)"))
        assert view.js("[...document.querySelectorAll('#detail *')].every(e => 'H2 P BUTTON TABLE TBODY TR TD I'.split(' ').includes(e.tagName))")
    assert "<script>alert(1)</script>" in seen and len(seen) > 15
    view.js("location.hash = ''")
    view.settle()
    assert view.js("document.getElementById('detail').hidden") and len(view.js(SKELETON)) <= len(plain) + 2000
    use_everything(view)


@pytest.mark.parametrize("shown, name", [
    ("\\u202egnp.exe\\u202c", "\u202egnp.exe\u202c"), ("nul\\x00", "nul\0"), ("\\x1b[31m", "\x1b[31m"),
    ("\\u2028", "\u2028"), ("\ufffd\ufffdx", b"\xff\xfex")])
def test_what_cannot_be_seen_is_shown_as_an_escape(view, page_of, shown, name):
    view.open(page_of(Description().process("p").stack(1, b"native:" + raw(name))))
    assert view.name_at(.5, 2) == shown
    view.key("t")
    assert view.text("#list td button") == shown


def test_the_policy_stops_what_somebody_adds_to_the_file(look, page_of):
    path = page_of(Description().process("p").stack(1, "main"))
    page = path.read_text().replace("<header>", "<header><img src=x onerror=alert(1)><script>alert(2)</script><p style='color:red'"
                                 " onclick=alert(3)>x</p><script src=x.js></script><iframe src=data:text/html,x></iframe>")
    path.write_text(page)
    view = look()
    view.open(path)
    view.js("document.querySelector('header p').click()")
    stopped = " ".join(view.js("window.violations"))
    assert view.js("window.pwned") == []
    for kind in ("img-src", "script-src-elem", "script-src-attr", "style-src-attr", "frame-src"):
        assert kind in stopped
    # without the policy all of it would have acted: what watches here does see it
    path.write_text(re.sub("<meta http-equiv[^>]*>", "", page))
    view.open(path)
    view.js("document.querySelector('header p').click()")
    view.until("window.pwned.length === 3")
    view.page.complaints.clear()
    view.js("window.violations = []; window.pwned = []")


def test_a_changed_script_does_not_run(look, page_of, workdir):
    path = page_of(Description().process("p").stack(1, "main"))
    page = path.read_bytes()
    code = block(page, "code") + b"alert(1)"
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    other = base64.b64encode(packer.compress(code) + packer.flush())
    path.write_bytes(re.sub(rb'(id="code">)[^<]*', lambda m: m.group(1) + other, page))
    view = look()
    view.page.open(path, drawn=False)
    view.until("window.violations.length > 0")
    assert view.js("window.pwned") == [] and view.js("document.documentElement.dataset.drawn ?? ''") == ""
    view.page.complaints.clear()
    view.js("window.violations = []")


def test_a_damaged_data_block_says_so(look, page_of):
    path = page_of(Description().process("p").stack(1, "main"))
    page = path.read_text()
    path.write_text(re.sub(r'(id="data">\n).{40}', r"\1" + "A" * 40, page))
    view = look()
    view.page.open(path, drawn=False)
    view.until("document.getElementById('status').textContent.startsWith('The graph cannot be shown')")
    assert view.text("#tables td:last-child") == "main"


def test_nothing_is_fetched(view, page_of):
    view.open(page_of(everywhere("x")))
    use_everything(view)
    assert view.js("performance.getEntriesByType('resource').length") == 0

"""docs/troubleshooting.md has each message that a user may have to act upon, and none that the program no longer has.

Messages are read from the sources: the formats of warnings and errors, of `err_set` and its like, the doctor's refusals and remedies,
sentences that are put together by snprintf, and those in files with tables of them. A value is `…` here and on the page. What needs no
action is listed here, with the reason.
"""
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SRC, PAGE = ROOT / "src", ROOT / "docs/troubleshooting.md"

# The place of the format among the arguments.
FORMAT_AT = {"log_say": 2, "log_once": 2, "log_once_for": 3, "log_event": 5, "err_set": 3, "err_errno": 2, "doctor_refuse": 3, "doctor_set_remedy": 1,
             "set_remedy": 1, "snprintf": 2, "buf_printf": 1}
COMPOSED = ("snprintf", "buf_printf")  # of what they put together, only sentences
CALL = re.compile(rf"\b({'|'.join(FORMAT_AT)})\(")
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
SIDE_BY_SIDE = re.compile(rf"{LITERAL}(?:\s*{LITERAL})*")
CONVERSION = re.compile(r"%(?:%|[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|j|t|L)?[diouxXeEfgGaAcsp])")
WORD = re.compile(r"\b[a-z]{2,}\b")  # names of variables and of fields are none
WORDS_OF_A_SENTENCE = 4
LETTERS_LEAST = 8  # with fewer, a format only joins what others say

# Files with tables of reasons and remedies, which reach a message as a value.
TABLES = ("os/perf_gate.c", "os/access.c", "os/stop.c", "os/ring_memory.c", "deliver/tls_error.c", "deliver/backend_response.c",
          "deliver/datadog.c", "deliver/pyroscope.c", "deliver/otlp.c", "capture/catch/catch_counts.c", "capture/doctor/doctor_upload.c",
          "capture/unseen.c", "capture/upload/sender.c", "capture/upload/sender_open.c", "capture/upload/sender_otlp.c", "capture/run/open.c")

# (folder or file, kind or None, beginning of the message as a pattern, why nobody has to act)
NO_ACTION = (
    ("(?!os/launch)", "ERR_GONE", "", "what has ended, or was removed, is asked no more"),
    ("(elf|target|sample|unwind|profile|symbol|runtime|os|capture|deliver)/", "ERR_MALFORMED", "", "foreign bytes: a function without a name, a "
     "counted loss, or a reason within a message of the page"),
    ("(elf|target|sample|unwind|profile|symbol)/", None, "", "the same: what the file has besides, or nothing, names its functions"),
    ("base/", None, "", "a part of another message"),
    ("encode/", "ERR_LIMIT", "", "a writer's own limits: what does not fit is merged, which the output says"),
    ("encode/collapsed_read", "ERR_MEMORY", "line", "memory, as everywhere"),
    ("runtime/go/", None, "(?!--go-pprof|profiles from memory know go|that needs|it has)", "this window is without that one profile; it is asked for again"),
    ("runtime/(generated|v8|java)/", "ERR_LIMIT", "", "this window is without what it would have told"),
    ("runtime/generated/", None, "", "a jitdump of another kind: its code is [anon]"),
    ("runtime/", None, ".*( yet$|has not started)", "a program that begins is asked again in a moment"),
    ("runtime/v8/", None, "it is (stopped|the primary)|its inspector is asked", "nothing is wrong with the program"),
    ("os/(client|proc|probe|sandbox|foreign|remote|door)", None, "", "a reason within a message of the page"),
    ("os/net.c", None, "(waiting failed|the run ended|cannot get random)|.and", "nothing that a setting changes"),
    ("os/store.c", None, "the spool … is in use$|…/… has more", "the next folder is taken; the file stays where it is"),
    ("deliver/tls12", None, "the connection was given up", "an earlier message says why"),
    ("capture/upload/(shipment|sender_values)", None, "(there is no format|a profile as)", "no back end of the table asks for it"),
    ("deliver/spool", "ERR_LIMIT", "", "it stays in memory, and is sent from there"),
    ("deliver/pyroscope", "TEXT", "exceeds", "words that the server's answer is searched for"),
    ("deliver/pyroscope", None, "(, as those|is used)", "a part of a message that the page has"),
    ("(deliver|encode|runtime|cli/manual)", "MADE", "", "a piece of a request, a file or a page"),
    ("deliver/tls_error", None, "(no random|is valid|set the clock|renew|, or let|RSA of)", "a part of a message that the page has"),
    ("deliver/", "PART", "", "the same"),
    ("os/(ring_memory|net_names)", None, "(beside|, and other|no name server)", "the same"),
    ("(capture|cli)/", "PART", "", "the same"),
    ("capture/live/top_", None, "", "what is shown, and no message"),
    ("capture/run/rooms", None, "without perf events there", "only a program of the tests asks for that"),
    ("capture/run/open", None, "set kernel", "the same"),
    ("capture/(run|stacks|window)/", "MADE", "", "the first line, or the summary of a window"),
    ("capture/doctor/", "MADE", "", "the doctor's verdict; what helps stands below it"),
    ("capture/doctor/doctor_upload", None, "…: … (responds|is reachable)", "all is well"),
    ("capture/doctor/doctor_lines", None, "(the process ended|unknown gate|seccomp filter$|/proc/kallsyms cannot)", "the doctor's row says the rest"),
)


@functools.cache
def code_of(path):
    text = re.sub(rf"({LITERAL}|'(?:[^'\\]|\\.)')|/\*.*?\*/|//[^\n]*", lambda found: found.group(1) or "", path.read_text(), flags=re.S)
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))


def arguments(text, at):
    """Of the call whose parenthesis opens at `at`: its text, cut at the commas that are its own."""
    parts, depth, start = [], 0, at + 1
    for found in re.compile(rf"{LITERAL}|'(?:[^'\\]|\\.)'|[][(){{}},]").finditer(text, at):
        sign = found.group()
        depth += sign in ("(", "[", "{")
        depth -= sign in (")", "]", "}")
        if depth == 0 or (sign == "," and depth == 1):
            parts.append(text[start:found.start()])
            start = found.end()
        if depth == 0:
            return parts
    raise ValueError("a call without an end")


def texts(code):
    """Its literals, as they are printed: … for each value."""
    for found in SIDE_BY_SIDE.finditer(code):
        text = "".join(part[1:-1] for part in re.findall(LITERAL, found.group()))
        text = CONVERSION.sub(lambda value: "%" if value.group() == "%%" else "…", text)
        yield re.sub("…+", "…", text.replace('\\"', '"').replace("\\n", " ").replace("\\\\", "\\")).strip()


def is_sentence(text):
    return len(WORD.findall(text)) >= WORDS_OF_A_SENTENCE


def messages_of(path):
    """(kind, text) of one source file."""
    code, place = code_of(path), str(path.relative_to(SRC))
    for call in CALL.finditer(code):
        name, given = call.group(1), arguments(code, call.end() - 1)
        if name.startswith("log_") and not re.search("LOG_WARNING|LOG_ERROR", given[1]):
            continue
        kind = re.search(r"ERR_\w+", "".join(given[1:2])) if name == "err_set" else None
        for number, argument in enumerate(given[FORMAT_AT[name]:]):
            for text in texts(argument):
                if number == 0 and name not in COMPOSED:
                    yield kind.group() if kind else name, text
                elif is_sentence(text):
                    yield "MADE" if name in COMPOSED else "PART" if name.startswith(("log_", "err_")) else name, text
    if place in TABLES:
        yield from (("TEXT", text) for text in texts(code) if is_sentence(text) and " " in text and "/proc/" not in text)


def messages():
    found = {}
    for path in sorted(SRC.rglob("*.c")):
        for kind, text in messages_of(path):
            if len(re.sub("[^A-Za-z]", "", text)) >= LETTERS_LEAST:
                found.setdefault(text, (str(path.relative_to(SRC)), kind))
    return found


def entries():
    """What stands in backticks in the first cell of the page's tables."""
    found = []
    for line in PAGE.read_text().splitlines():
        if line.startswith("| `"):
            cell = re.split(r"(?<!\\) \| ", line[2:])[0]
            found += re.findall(r"`([^`]+)`", cell)
    return found


def begun(text):
    return re.sub(r"^([;,:. ]+|pillion: )", "", text)


def fits(entry, text):
    """Whether the text begins as the entry does, with anything in place of each …"""
    at = 0
    for number, part in enumerate(begun(entry).rstrip("… ").split("…")):
        found = text.find(part, at)
        if found < 0 or (number == 0 and found > 0):
            return False
        at = found + len(part)
    return True


def is_quiet(place, kind, text, rows=NO_ACTION):
    return any(re.match(where, place) and which in (None, kind) and re.match(words, text) for where, which, words, _ in rows)


def test_each_line_of_what_needs_no_action_is_needed():
    page = entries()
    rest = [(text, *where) for text, where in messages().items() if not any(fits(entry, begun(text)) for entry in page)]
    idle = [row for row in NO_ACTION if not any(is_quiet(place, kind, text, [row]) for text, place, kind in rest)]
    assert not idle


def test_every_message_is_on_the_page_or_needs_no_action():
    page = entries()
    absent = [f"{place}: {text}" for text, (place, kind) in messages().items()
              if not is_quiet(place, kind, text) and not any(fits(entry, begun(text)) for entry in page)]
    assert not absent, f"{len(absent)} are not in {PAGE.name}:\n" + "\n".join(absent)


def test_the_page_names_no_message_that_the_program_does_not_have():
    known = {begun(text) for path in SRC.rglob("*.[ch]") for text in texts(code_of(path))}
    gone = [entry for entry in entries() if not any(fits(entry, text) for text in known)]
    assert not gone, "\n".join(gone)


def test_the_page_can_be_searched():
    """No entry is so short that it fits everything, and none is there twice in one table; each table is in order."""
    assert len(entries()) > 200
    assert not [entry for entry in entries() if len(re.sub("[^A-Za-z]", "", entry)) < 4]
    for table in PAGE.read_text().split("\n## ")[1:]:
        first = [re.sub("[^a-z0-9]+", " ", re.search("`([^`]+)`", line).group(1).lower()).strip()
                 for line in table.splitlines() if line.startswith("| `")]
        assert first == sorted(first), [pair for pair in zip(first, sorted(first)) if pair[0] != pair[1]][:1]


@pytest.mark.parametrize("planted, what", [
    ('log_once(&log, LOG_WARNING, "the moon is in the way of %u: " "wait", moon);', "the moon is in the way of …: wait"),
    ('return err_set(err, ERR_LIMIT, 0, few ? "a (bracket, in a text" : "another text of %s", name);', "another text of …"),
    ("return err_errno(err, errno, \"%.*s holds '%c', and \\\"more\\\"\", (int)n, p, ',');", "… holds '…', and \"more\""),
])
def test_a_message_is_found_in_the_code(planted, what, tmp_path, monkeypatch):
    (tmp_path / "planted.c").write_text(f"bool f(void)\n{{\n    {planted}\n}}\n")
    monkeypatch.setattr("test_messages.SRC", tmp_path)
    assert what in messages() and not any(fits(entry, what) for entry in entries())

"""One row per thing: a new back end, format, runtime, language or choice is at most one file and one row.

The tree is copied with its objects, the files and rows are added, what changed is built, and each test asks the new program."""
import base64
import json
import os
import re
import shutil
import subprocess
import zlib
from dataclasses import dataclass

import pytest

from lab import process
from lab.webserver import Server, answers

BACK_END = """
#include "deliver/backend_private.h"

static bool fake_request(struct backend_context *context, const struct delivery *delivery,
                         struct http_request *out, struct buf *text, struct err *err)
{
    (void)text;
    *out = (struct http_request){.method = "POST", .target = STR("/fake"), .body = delivery->profile};
    return backend_add_headers(context, out, STR(""), err);
}

static enum verdict fake_classify(struct backend_context *context, const struct http_response *response,
                                  struct err *err)
{
    return backend_classify(context, "Fake", response, err);
}

const struct backend backend_fake = {
    .name = "fake",
    .title = "Fake",
    .format = "col",
    .default_port = 80,
    .env_host = "FAKE_ADDRESS",
    .env_service = "FAKE_SERVICE",
    .request = fake_request,
    .classify = fake_classify,
};
"""

FORMAT = """
#include "encode/encode.h"

static bool sketch_write(struct profile *p, const struct encode_rules *rules, struct sink *out, struct err *err)
{
    (void)rules;
    struct buf text;
    buf_init(&text, 100);
    buf_printf(&text, "sketch of %llu ns\\n", (unsigned long long)profile_sum(p).cpu_ns);
    bool ok = sink_write(out, text.ptr, text.len, err);
    buf_release(&text);
    return ok;
}

const struct encoder encoder_sketch = {
    .name = "sketch",
    .extension = ".sketch",
    .mime = "text/x-sketch",
    .description = "a sketch",
    .link = "last_profile.sketch",
    .write = sketch_write,
};
"""

RUNTIME = """
#include "runtime/runtime.h"

static enum runtime_answer toy_recognise(struct elf *elf, struct str path, const struct runtime_code *code,
                                         void **binary, struct err *why)
{
    (void)elf, (void)code, (void)binary, (void)why;
    return str_ends(path, STR("/toy")) ? RUNTIME_YES : RUNTIME_NO;
}

static void toy_forget(void *binary)
{
    (void)binary;
}

static enum runtime_answer toy_attach(const void *binary, const struct runtime_process *process, void **state,
                                      struct err *why)
{
    (void)binary, (void)process, (void)state;
    err_set(why, ERR_UNSUPPORTED, 0, "Toy 9 is too new");
    return RUNTIME_UNSUPPORTED;
}

const struct runtime runtime_toy = {
    .name = "toy",
    .kind = FRAME_RUBY,
    .recognise = toy_recognise,
    .forget = toy_forget,
    .attach = toy_attach,
};
"""

LANGUAGE = """LANGUAGE_MODE(TOY, "toytalk", "toy", "Toy code by its own names", .suffix = "_[toy]", .mapping = "[toy]", \
.otel = "toy", .endings = ".toy", .is_script = true, .light = 0x123456, .dark = 0x654321)"""


@dataclass
class Fake:
    registry: str  # file of src/ that gets the row
    before: str    # the line of it that the row stands before
    row: str
    file: str = None
    text: str = None


FAKES = {
    "backend": Fake("deliver/backends.c", r"    ROW\(otlp\)", "    ROW(fake) \\", "deliver/fake.c", BACK_END),
    "format": Fake("encode/encoders.c", r"    ROW\(otlp\)", "    ROW(sketch) \\", "encode/sketch.c", FORMAT),
    "runtime": Fake("runtime/runtimes.c", r"    ROW\(python\)", "    ROW(toy) \\", "runtime/toy.c", RUNTIME),
    "language": Fake("profile/language.def", r"LANGUAGE\(ACCOUNT", LANGUAGE),
    "choice": Fake("cli/option.c", r'    CHOICE\("fp", PERF_FP\)', '    CHOICE("frames", PERF_FP),'),
}


def copy_tree(repository, to):
    """Sources, and what is built of them with its times, so that only what changes is built again."""
    out = to / "build" / "out"
    out.mkdir(parents=True)
    for name in ("src", "vendor"):
        shutil.copytree(repository / name, to / name)
    for path in [repository / "Makefile", *(p for p in (repository / "build").iterdir() if p.is_file())]:
        shutil.copy2(path, to / path.relative_to(repository))
    for path in (repository / "build" / "out").iterdir():
        if path.is_file():
            shutil.copy2(path, out / path.name)
        elif path.name == os.uname().machine:
            shutil.copytree(path, out / path.name, symlinks=True)
        else:
            (out / path.name).symlink_to(path)


def changes(old, new):
    """{file: (lines added, lines removed)} of two folders, as `git diff --stat` counts them."""
    done = subprocess.run(["git", "diff", "--no-index", "--numstat", "--no-renames", old, new],
                          capture_output=True, text=True, check=False)
    found = {}
    for line in done.stdout.splitlines():
        added, removed, path = line.split("\t")
        found[path.rstrip("}").rpartition("src/")[2]] = (int(added), int(removed))
    return found


@pytest.fixture(scope="module")
def program(repository, pillion, tmp_path_factory):
    """The program with one more of everything, each its file and its row and nothing else. Built once and not optimised, for a
    language has every file compiled anew."""
    assert pillion.exists()
    folder = tmp_path_factory.mktemp("rows")
    tree, wanted = folder / "tree", {}
    copy_tree(repository, tree)
    for fake in FAKES.values():
        registry = tree / "src" / fake.registry
        text = registry.read_text()
        assert len(re.findall("^" + fake.before, text, re.MULTILINE)) == 1
        registry.write_text(re.sub("^" + fake.before, lambda found: fake.row + "\n" + found[0], text, flags=re.MULTILINE))
        wanted[fake.registry] = (1, 0)
        if fake.file:
            (tree / "src" / fake.file).write_text(fake.text.lstrip())
            wanted[fake.file] = (len(fake.text.lstrip().splitlines()), 0)
    assert changes(repository / "src", tree / "src") == wanted
    built = tree / "build" / "out" / os.uname().machine / "pillion.debug"
    done = subprocess.run(["make", "-j2", "optimise=-O0", built.relative_to(tree)], cwd=tree, capture_output=True, text=True, check=False,
                          env={key: value for key, value in os.environ.items() if key != "MAKEFLAGS"})
    assert done.returncode == 0, done.stderr[-3000:]
    yield built
    shutil.rmtree(folder, ignore_errors=True)  # 60 MB


def said(*command, env=None, status=0):
    done = process.run(command, env={"PATH": os.environ["PATH"], **(env or {})}, timeout=60)
    assert done.status == status, done
    return done.out + done.err


PROFILE = ('# {"pillion": {"version": "1", "period_ns": 10101010}}\n'
           "work-1;main;called_[toy] 90\nwork-1;main;plain 10\n")


def test_a_back_end(program, tmp_path):
    assert "datadog, fake, otlp" in said(program, "--help")
    assert "fake" in said(program, "help", "bash")
    assert "FAKE_SERVICE" in said(program, "help", "environment")
    assert "fake" in said(program, "-u", "--backend", "fka", "-a", status=2)
    (tmp_path / "x.col").write_text(PROFILE)
    with Server(answers(200)) as server:
        shown = said(program, "upload", tmp_path / "x.col", env={"FAKE_ADDRESS": server.url, "FAKE_SERVICE": "shop"})
    assert server.requests[0].startswith("POST /fake HTTP/1.1\r\n")
    assert "fake" in shown


def test_a_format(program, tmp_path):
    assert "col, html, pprof, speedscope, gecko, trace, sketch" in " ".join(said(program, "--help").split())
    assert "last_profile.sketch" in said(program, "help", "output")
    (tmp_path / "x.col").write_text(PROFILE)
    said(program, "render", tmp_path / "x.col", "-o", tmp_path / "x.sketch")
    assert (tmp_path / "x.sketch").read_text() == "sketch of 1010101000 ns\n"
    shown = said(program, "--format", "sketch", "-o", tmp_path / "out", "--launch", "init", "--", "sleep", "0.1")
    assert (tmp_path / "out" / "last_profile.sketch").read_text().startswith("sketch of ")
    assert "profile_" in shown and {p.suffix for p in (tmp_path / "out").iterdir()} == {".sketch"}


def test_a_runtime(program, tmp_path):
    shutil.copy("/bin/sleep", tmp_path / "toy")
    with subprocess.Popen([tmp_path / "toy", "60"]) as toy:
        try:
            shown = process.run([program, "doctor", "-p", toy.pid], timeout=60).out
        finally:
            toy.kill()
    assert "Toy 9 is too new" in " ".join(shown.split())


def test_a_language(program, tmp_path):
    assert "--toy-mode MODE" in said(program, "--help")
    assert "--no-toy" in said(program, "help", "toy-mode")
    assert "--toy-mode expects auto or disabled" in said(program, "--toy-mode", "x", "-a", status=2)
    (tmp_path / "x.col").write_text(PROFILE)
    said(program, "render", tmp_path / "x.col", "-o", tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text()
    assert "<td>toytalk<td>" in page
    data = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1]
    assert b'["toytalk","_[toy]",1193046,6636321,0]' in zlib.decompress(base64.b64decode(data), -zlib.MAX_WBITS)
    said(program, "render", tmp_path / "x.col", "-o", tmp_path / "again.col")
    again = (tmp_path / "again.col").read_text()
    assert '"leaf_ns": {"native": 101010100, "toytalk": 909090900}' in again and "called_[toy] 90" in again
    said(program, "render", tmp_path / "x.col", "-o", tmp_path / "x.pprof")
    listing = subprocess.run(["zcat", tmp_path / "x.pprof"], capture_output=True, check=True).stdout
    assert b"[toy]" in listing


def test_a_choice(program):
    assert "smart, frames, fp, dwarf" in said(program, "--help")
    assert "frames" in said(program, "help", "zsh")
    assert "frames" in said(program, "--perf-mode", "frame", "-a", status=2)
    settings = json.loads(said(program, "doctor", "--json", "--perf-mode", "frames"))["settings"]
    assert "frames" in json.dumps(settings)

"""What the command line says: transcripts in tests/golden, the texts made from the option table, completions."""
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from lab import pprof, terminal

pytestmark = pytest.mark.measures

GOLDEN = Path(__file__).parent.parent / "golden"


def transcripts(name):
    """(command line, what is shown, exit status) of each part of a golden file."""
    for part in (GOLDEN / name).read_text().split("\n\n"):
        first, *shown, status = part.strip("\n").splitlines()
        yield first.removeprefix("$ "), "\n".join(shown), int(status.strip("[]"))


def split(line):
    """The variables and the arguments of a shell line that calls pillion."""
    words = shlex.split(line)
    at = words.index("pillion")
    return dict(word.split("=", 1) for word in words[:at]), words[at + 1:]


@pytest.mark.parametrize("line, shown, status", transcripts("mistakes.txt"))
def test_mistakes_in_a_log_are_one_line(run, pillion, workdir, line, shown, status):
    variables, arguments = split(line)
    done = run([pillion, *arguments], cwd=workdir, env={"PATH": os.environ["PATH"], **variables})
    assert done.err == shown + "\n"
    assert done.out == ""
    assert done.status == status
    assert list(workdir.iterdir()) == []


@pytest.mark.parametrize("name, columns", [("mistakes-terminal.txt", 80), ("mistakes-40-columns.txt", 40)])
def test_mistakes_on_a_terminal_are_broken_between_words(pillion, workdir, name, columns):
    shell = terminal.Shell(workdir, {"PATH": f"{pillion.parent}:{os.environ['PATH']}"}, columns)
    try:
        for line, shown, status in transcripts(name):
            typed = shell.command(line + " 2>&1")
            assert typed.removesuffix(terminal.PROMPT).strip("\n").endswith("\n" + shown), typed
            assert shell.status() == status
    finally:
        shell.close()


def test_variables_only_warn_and_quiet_silences_them(run, pillion, workdir):
    variables = {"PATH": os.environ["PATH"], "PILLION_FORMAT": "cll", "PILLION_COLRO": "never",
                 "GPROFILER_PID_FILE": "x", "DD_API_KEY": "x", "PILLION_MAX_MEMORY": "much"}
    done = run([pillion, "-o", workdir, "--rootless", "--", "sh", "-c", "exit 3"], env=variables)
    assert done.status == 3
    warnings = [line for line in done.err.splitlines() if line.startswith("pillion: warning: ")]
    for expected in (
            'PILLION_FORMAT expects col, html, pprof, speedscope, gecko, trace, got "cll"; did you mean col? (ignored)',
            "PILLION_COLRO is not a setting; did you mean PILLION_COLOR?",
            "GPROFILER_PID_FILE has no effect: the first line names the pid, and several may run",
            'PILLION_MAX_MEMORY expects 8 MB to 16 GB, got "much" (ignored)',
            "--rootless has no effect: root is not needed, and used where it is given"):
        assert "pillion: warning: " + expected in warnings
    assert "DD_API_KEY" not in done.err
    quiet = run([pillion, "-q", "-o", workdir, "--", "sh", "-c", "exit 3"], env=variables)
    assert quiet.status == 3 and quiet.err == ""


def text_of(run, pillion, *arguments):
    done = run([pillion, *arguments])
    assert done.status == 0 and done.err == "", done
    return done.out


def test_help_is_one_screen(run, pillion):
    shown = text_of(run, pillion, "-h")
    assert shown == (GOLDEN / "help-screen.txt").read_text()
    assert len(shown.splitlines()) <= 24


def test_long_help_begins_with_the_screen(run, pillion):
    screen, everything = text_of(run, pillion, "-h").splitlines(), text_of(run, pillion, "--help").splitlines()
    assert everything[:len(screen) - 2] == screen[:-2]
    assert everything[-2:] == screen[-2:]
    assert text_of(run, pillion, "help") == text_of(run, pillion, "-h")


def test_the_first_line_of_version_is_name_and_number(run, pillion, repository):
    shown = text_of(run, pillion, "--version").splitlines()
    assert shown[0] == f"pillion {(repository / 'VERSION').read_text().strip()}"
    assert re.fullmatch(r"(x86_64|aarch64) static musl, \d\.\d MB, commit \S+; kernel here \S+", shown[1])


def test_the_libraries_in_version_are_the_manifests(run, pillion, repository):
    named = re.search(r"^libraries: (.+)$", text_of(run, pillion, "--version"), re.MULTILINE).group(1).split(", ")
    rows = [line.split() for line in (repository / "vendor/manifest").read_text().splitlines()]
    known = {f"{row[0]} {row[1]}" for row in rows if row and row[0] != "#"}
    assert set(named) <= known and {"musl", "zlib"} <= {name.split()[0] for name in named}


# What capture/ need not read yet: there is nothing that could be switched off.
NOTHING_TO_SWITCH_OFF = {"naming.application_identifiers"}


def test_no_setting_is_silently_ignored(run, pillion, repository):
    """A field of struct settings is read by capture/."""
    header = (repository / "src/capture/settings.h").read_text()
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    bodies = dict(re.findall(r"^struct (\w+) \{(.*?)^\};", header, re.DOTALL | re.MULTILINE))
    concerns = re.findall(r"struct (\w+_settings) (\w+);", bodies["settings"])
    fields = {f"{concern}.{field}" for kind, concern in concerns if concern != "upload"
              for field in re.findall(r"(\w+)(?:\[\w+\])?;", bodies[kind])}
    code = "".join(path.read_text() for path in (repository / "src/capture").rglob("*.c"))
    assert {"sampling.frequency_hz", "sampling.window_ns", "scope.pids", "runtime.mode"} <= fields
    for field in sorted(fields - NOTHING_TO_SWITCH_OFF):
        if not re.search(rf"(settings|s)(->|\.){re.escape(field)}\b", code):
            pytest.fail(field)


def test_options_page_is_what_the_table_prints(run, pillion, repository):
    assert (repository / "docs/options.md").read_text() == text_of(run, pillion, "help", "markdown"), (
        "docs/options.md is old: pillion help markdown >docs/options.md")


def test_manual_page_is_clean_roff(run, pillion):
    page = text_of(run, pillion, "help", "man")
    done = subprocess.run(["groff", "-ww", "-man", "-Tascii"], input=page, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "--profiling-frequency" in re.sub(r"\x1b\[\d+m|.\x08", "", done.stdout)


def test_result_that_cannot_be_written_is_an_error(pillion):
    with open("/dev/full", "w") as full:
        done = subprocess.run([pillion, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "ENOSPC" in done.stderr and len(done.stderr.splitlines()) == 1


# ---- pillion render

STACKS = "web;main;handle 30\nweb;main;idle 10\n"


def stacks(text):
    """{"web;main": 1} of a collapsed file of ours: lines behind the header, without index and container."""
    found = {}
    for line in text.splitlines()[1:]:
        stack, count = line.rsplit(" ", 1)
        found[stack.split(";", 2)[2]] = int(count)
    return found


@pytest.fixture
def saved(workdir):
    path = workdir / "a.col"
    path.write_text(STACKS)
    return path


def test_render_adds_files_up(run, pillion, saved):
    done = run([pillion, "render", saved, saved, "-o", "-", "--format=col"])
    assert done.status == 0 and done.err == ""
    assert stacks(done.out) == {"web;main;handle": 60, "web;main;idle": 20}


def test_render_through_pprof_and_back_keeps_every_stack(run, pillion, saved):
    for source, result in (("a.col", "b.pprof"), ("b.pprof", "c.col")):
        done = run([pillion, "render", source, "-o", result], cwd=saved.parent)
        assert done.status == 0 and done.out == done.err == ""
    assert stacks((saved.parent / "c.col").read_text()) == {"web;main;handle": 30, "web;main;idle": 10}


@pytest.mark.parametrize("name, begins", [("x.html", b"<!"), ("x.pprof", b"\x1f\x8b"), ("x.pb.gz", b"\x1f\x8b"),
                                          ("x.col", b"# {"), ("x.speedscope.json", b"{"),
                                          ("x.gecko.json", b'{"meta"'), ("x.trace.json", b'{"displayTimeUnit"')])
def test_render_chooses_the_form_by_the_name(run, pillion, saved, name, begins):
    assert run([pillion, "render", saved, "-o", name], cwd=saved.parent).status == 0
    assert (saved.parent / name).read_bytes().startswith(begins)


def test_render_writes_into_a_device(run, pillion, saved):
    link = saved.parent / "null"
    link.symlink_to("/dev/null")
    assert run([pillion, "render", saved, "--format", "html", "-o", link]).status == 0
    assert os.readlink(link) == "/dev/null"


def test_render_compares(run, pillion, saved):
    base = saved.parent / "base.col"
    base.write_text("web;main;handle 10\nweb;main;idle 30\n")
    done = run([pillion, "render", saved, "--diff", base, "-o", saved.parent / "d.html"])
    assert done.status == 0 and done.err == ""
    plain = run([pillion, "render", saved, "-o", saved.parent / "p.html"])
    assert plain.status == 0
    assert (saved.parent / "d.html").read_bytes() != (saved.parent / "p.html").read_bytes()


def test_render_writes_the_lines_being_executed_when_asked(run, pillion, saved):
    (saved.parent / "p.col").write_text("py;main (a.py:12):15_[p] 1\npy;main (a.py:12):16_[p];f_[k] 2\n")
    for source, result, *options in (("p.col", "b.pprof"), ("b.pprof", "with.col", "--col-lines"), ("b.pprof", "c.col")):
        assert run([pillion, "render", source, "-o", result, *options], cwd=saved.parent).status == 0
    assert stacks((saved.parent / "with.col").read_text()) == {"py;main (a.py:12):15_[p]": 1,
                                                               "py;main (a.py:12):16_[p];f_[k]": 2}
    assert stacks((saved.parent / "c.col").read_text()) == {"py;main (a.py:12)_[p]": 1, "py;main (a.py:12)_[p];f_[k]": 2}


def test_render_takes_another_sample_type(run, pillion, saved):
    """Of a pprof file of ours with two more; each form says what its numbers are."""
    (saved.parent / "m.pprof").write_bytes(two_types())

    def rendered(name, *options):
        done = run([pillion, "render", "m.pprof", "-o", name, *options], cwd=saved.parent)
        assert done.status == 0 and done.err == "", done
        return (saved.parent / name).read_bytes().decode()

    assert stacks(rendered("c.col")) == {"program;f": 99}
    assert stacks(rendered("w.col", "--type", "off_cpu")) == {"program;f": 198}
    faults = rendered("p.col", "--type", "page-faults")
    assert stacks(faults) == {"program;f": 41} and '"value": "page-faults", "unit": "count"' in faults
    assert '"unit":"none"' in rendered("p.speedscope.json", "--type", "page-faults")
    page = rendered("p.html", "--type", "page-faults")
    assert "<dt>page-faults</dt><dd>41</dd>" in page and "Width is page-faults." in page and "CPU time" not in page
    page = rendered("w.html", "--type", "off_cpu")
    assert "<dt>off_cpu</dt><dd>2.00 s</dd>" in page and "CPU time" not in page
    assert "<dt>CPU time</dt><dd>1.00 s</dd>" in rendered("c.html", "--type", "cpu")
    done = run([pillion, "render", "w.col", "--diff", "c.col", "-o", "d.html"], cwd=saved.parent)
    assert done.status == 1 and "off_cpu cannot be compared with CPU time" in done.err, done
    done = run([pillion, "render", "w.col", "c.col", "-o", "d.html"], cwd=saved.parent)
    assert done.status == 1 and "c.col: CPU time cannot be added to off_cpu" in done.err, done
    done = run([pillion, "render", "m.pprof", "--type", "heap", "-o", "d.html"], cwd=saved.parent)
    assert done.status == 1 and not (saved.parent / "d.html").exists()
    assert done.err == "pillion: m.pprof: there is no sample type heap in it; there is: cpu, off_cpu, page-faults\n"


def two_types():
    """A pprof file with one stack, `f`: 1 s of cpu, 2 s of off_cpu and 41 page-faults."""
    types = [("cpu", "nanoseconds"), ("off_cpu", "nanoseconds"), ("page-faults", "count")]
    return pprof.make(types, [(["f"], [10 ** 9, 2 * 10 ** 9, 41])])


@pytest.mark.exact
@pytest.mark.parametrize("arguments, status, shown", [
    (["a.col", "-o", "x.foo"], 2, "no format has the extension of x.foo; give --format"),
    (["a.col", "-o", "x", "--format", "col,html"], 2, "--format expects one format here"),
    (["a.col", "--diff", "a.col", "-o", "x.pprof"], 2, "--diff makes a flame graph; give -o NAME.html"),
    (["none.col", "-o", "x.html"], 1, "none.col"),
    (["empty", "-o", "x.html"], 1, "empty: the file is empty"),
    (["a.col", "damaged.pprof", "-o", "x.html"], 1, "damaged.pprof: "),
    (["a.col", "-o", "none/x.html"], 1, "none/x.html"),
])
def test_render_says_what_is_wrong_and_writes_nothing(run, pillion, saved, arguments, status, shown):
    (saved.parent / "empty").touch()
    (saved.parent / "damaged.pprof").write_bytes(b"\x1f\x8b\x08\0\0\0\0\0\0\xff\1\2\3")
    before = sorted(saved.parent.iterdir())
    done = run([pillion, "render", *arguments], cwd=saved.parent)
    assert done.status == status and done.out == ""
    assert done.err.startswith("pillion: ") and shown in done.err and len(done.err.splitlines()) == 1, done.err
    assert sorted(saved.parent.iterdir()) == before


def test_render_counts_lines_that_are_no_stacks(run, pillion, saved):
    saved.write_text(STACKS + "no count\nx y z\nweb;main 5\n")
    done = run([pillion, "render", saved, "-o", "-", "--format", "col"])
    assert done.status == 0 and stacks(done.out)["web;main"] == 5
    assert done.err == f"pillion: warning: {saved}: 2 lines that are not stacks were skipped, the first is line 3\n"


# ---- Completion: what bash offers for a line that ends where the cursor is

OFFER = r"""
source <("$1" help bash)
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
read -ra COMP_WORDS <<<"$2"
[[ $2 == *' ' ]] && COMP_WORDS+=('')
for i in "${!COMP_WORDS[@]}"; do
    if [[ ${COMP_WORDS[i]} == --*=* ]]; then
        COMP_WORDS=("${COMP_WORDS[@]:0:i}" "${COMP_WORDS[i]%%=*}" = "${COMP_WORDS[i]#*=}")
    fi
done
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_pillion
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize("line, wanted, unwanted", [
    ("pillion --profiling-f", {"--profiling-frequency"}, {"--profiling-duration"}),
    ("pillion --no-f", {"--no-flamegraph"}, set()),
    ("pillion --perf-mode ", {"smart", "fp", "dwarf"}, {"auto"}),
    ("pillion --perf-mode=d", {"dwarf", "disabled"}, {"smart"}),
    ("pillion -f 5 ren", {"render"}, {"--help"}),
    ("pillion -f ", set(), {"render", "1"}),
    ("pillion --switch", set(), {"--switch-user"}),
    ("pillion -q ls --perf", set(), {"--perf-mode"}),
    ("pillion -- ren", set(), {"--help"}),
    ("pillion help f", {"fargate", "fish"}, {"options", "--help"}),
])
def test_bash_completion(pillion, workdir, line, wanted, unwanted):
    done = subprocess.run(["bash", "-c", OFFER, "bash", str(pillion), line], cwd=workdir, capture_output=True,
                          text=True, check=True)
    offered = set(done.stdout.split())
    assert done.stderr == ""
    assert wanted <= offered and not offered & unwanted, offered


def test_the_command_line_costs_at_most_80_kb(pillion):
    """Code and texts: help, manual page and completions are made from one table when they are asked for; what to paste where
    pillion is to run (help fargate) is 4 KB of it, that code is position independent and its stack guarded 3 KB,
    folders and sample types of `pillion upload` 3 KB, which sources `render` may show 1.5 KB, `pillion top` 1 KB,
    `pillion dump` 1 KB."""
    sizes = subprocess.run(["size", *sorted((pillion.parent / "obj/cli").glob("*.o"))], capture_output=True, text=True,
                           check=True).stdout
    assert 0 < sum(int(line.split()[3]) for line in sizes.splitlines()[1:]) <= 80_000

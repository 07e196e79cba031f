"""The laws of the house, and what may not be in the repository. Checked on the sources and on the objects by lab/laws.py; each
check is run on a planted violation as well."""
import re
import subprocess
from collections import defaultdict

import pytest

from lab import laws


@pytest.fixture(scope="module")
def src(repository):
    return repository / "src"


@pytest.fixture(scope="module")
def built(repository, arch):
    """The folder of the objects, and those that are linked into the product."""
    return laws.linked_objects(repository, arch) or pytest.fail("no objects; run make", pytrace=False)


def kept(wrong):
    assert not wrong, "\n".join(wrong)


# ---- The laws

def test_every_folder_of_src_has_a_level(src):
    kept(laws.unknown_folders(src))


def test_law_1_a_file_includes_its_own_folder_and_lower_levels_only(src):
    kept(laws.wrong_levels(src))


def test_law_1_inside_capture_a_room_includes_the_rooms_below_it_only(src):
    kept(laws.wrong_rooms(src))


def test_law_2_system_calls_live_in_os_alone(built):
    kept(laws.misplaced_calls(*built))


def test_law_2_is_able_to_find_a_call(built):
    """The check itself: os/ does use many of the listed names."""
    calls = laws.system_calls(*built)
    assert len(set().union(*(names for path, names in calls.items() if laws.folder_of(path) == "os"))) > 20


def test_law_3_no_mutable_globals_outside_main_and_cli(built):
    kept(laws.mutable_globals(*built))


def test_no_struct_has_more_than_thirty_fields(built, capsys):
    found = laws.structs(built[1])
    (path, line, name), fields = max(found.items(), key=lambda row: row[1])
    with capsys.disabled():
        print(f"\nthe largest of {len(found)} structs: {name} ({path}:{line}), {fields} fields")
    assert len(found) > 500
    kept(laws.too_wide(found))


def test_no_more_than_two_files_include_each_other(src):
    kept(laws.include_circles(src))


def test_no_more_than_two_files_call_each_other(built):
    assert sum(map(len, laws.calls(*built).values())) > 500
    kept(laws.call_circles(*built))


def test_no_file_of_capture_is_too_large(src, capsys):
    lines, path, _ = laws.sizes(src)[0]
    with capsys.disabled():
        print(f"\nthe largest file of capture: {path}, {lines} lines")
    kept(laws.too_large(src))


def test_a_long_file_begins_with_what_it_is_for(src):
    kept(laws.unexplained(src))


# ---- Each of them broken on purpose

@pytest.fixture
def tree(tmp_path):
    """tree({"base/a.c": text, ...}) -> a folder src with these files."""
    def plant(files):
        for name, text in files.items():
            path = tmp_path / "src" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path / "src"
    return plant


@pytest.fixture
def objects(tree, tmp_path):
    """objects({"base/a.c": text, ...}) -> (folder, objects) of the .c files among them, compiled as the product's are."""
    def compile_all(files):
        tree(files)
        made = []
        for name in files:
            if name.endswith(".c"):
                made.append(tmp_path / "obj" / name.replace(".c", ".o"))
                made[-1].parent.mkdir(parents=True, exist_ok=True)
                subprocess.run(["gcc", "-g", "-O1", "-fdata-sections", "-Isrc", "-c", "-o", made[-1], f"src/{name}"], cwd=tmp_path, check=True)
        return tmp_path / "obj", made
    return compile_all


def including(*names):
    return "".join(f'#include "{name}"\n' for name in names)


def test_a_folder_without_a_level_is_found(tree):
    assert laws.unknown_folders(tree({"base/a.c": "", "utilities/b.c": ""})) == ["utilities/ has no level"]


@pytest.mark.parametrize("above, below, wrong", [("base/a.c", "cli/b.h", 1), ("os/a.c", "symbol/b.h", 1), ("cli/a.c", "capture/b.h", 0),
                                                 ("os/a.c", "os/b.h", 0), ("main.c", "cli/b.h", 0), ("cli/a.c", "main.h", 1)])
def test_an_include_upwards_or_sideways_is_found(tree, above, below, wrong):
    assert len(laws.wrong_levels(tree({above: including(below), below: ""}))) == wrong


def test_an_include_that_is_not_written_from_src_is_found(tree):
    assert len(laws.wrong_levels(tree({"base/a.c": including("b.h", "base/gone.h", "base/b.h"), "base/b.h": ""}))) == 2


@pytest.mark.parametrize("above, below, wrong", [
    ("run/a.c", "doctor/b.h", 0), ("doctor/a.c", "run/b.h", 1), ("doctor/a.c", "live/b.h", 1), ("window/a.c", "upload/b.h", 0),
    ("upload/a.c", "window/b.h", 1), ("catch/a.c", "account/b.h", 1), ("stacks/a.c", "collect/b.h", 0), ("follow/a.c", "stacks/b.h", 1),
    ("follow/a.c", "b.h", 0), ("a.c", "follow/b.h", 1), ("a.c", "b.h", 0), ("follow/a.c", "follow/b.h", 0), ("attic/a.c", "b.h", 1)])
def test_a_room_that_includes_one_above_or_beside_it_is_found(tree, above, below, wrong):
    found = laws.wrong_rooms(tree({f"capture/{above}": including(f"capture/{below}"), f"capture/{below}": ""}))
    assert len(found) == wrong, found


def test_a_system_call_outside_os_is_found(objects):
    use = "int getpid(void);\nint a(void);\nint a(void) { return getpid(); }\n"
    assert laws.misplaced_calls(*objects({"base/a.c": use, "os/b.c": use})) == ["base/a.o uses getpid"]


def test_a_mutable_global_is_found(objects):
    state = "const int *const shared(void);\nstatic int state = 5;\nint *a(void);\nint *a(void) { return &state; }\n"
    table = "static const int one = 1;\nconst int *const table[] = {&one};\n"
    assert laws.mutable_globals(*objects({"base/a.c": state, "cli/b.c": state, "elf/c.c": table})) == ["base/a.o: .data.state holds 4 bytes"]


def fields(count, more=""):
    return "".join(f"    int field_{number};\n" for number in range(count)) + more


@pytest.mark.parametrize("body, count", [
    (fields(30), 30), (fields(31), 31), (fields(29, "    struct {\n        int x, y;\n    };\n"), 31),
    (fields(29, "    union {\n        int x, y;\n    };\n"), 31), (fields(29, "    struct {\n        int x, y;\n    } both;\n"), 30),
    (fields(29, "    unsigned x : 3, y : 2;\n"), 31), (fields(29, "    int x[40];\n"), 30)])
def test_a_struct_of_too_many_fields_is_found(objects, body, count):
    header = f"struct wide {{\n{body}}};\n"
    _, made = objects({"base/wide.h": header, "base/a.c": including("base/wide.h") + "int a(struct wide *w) { return w->field_1; }\n",
                       "base/b.c": "int b(void) { return 1; }\n"})
    found = laws.structs(made)
    assert found["src/base/wide.h", 1, "wide"] == count
    assert len(laws.too_wide(found)) == (count > 30)


def test_a_wide_struct_of_the_system_is_none_of_ours(objects):
    _, made = objects({"os/a.c": "#include <linux/perf_event.h>\nunsigned a(struct perf_event_attr *p) { return p->type; }\n"})
    assert not laws.structs(made)


def ring_of(count, text):
    """Files of which each uses the next, and the last the first."""
    return {f"base/{number}.{'h' if 'include' in text else 'c'}": text.format(own=number, other=(number + 1) % count) for number in range(count)}


@pytest.mark.parametrize("count, wrong", [(2, 0), (3, 1), (7, 1)])
def test_an_include_circle_is_found(tree, count, wrong):
    found = laws.include_circles(tree(ring_of(count, '#include "base/{other}.h"\n')))
    assert len(found) == wrong and all(sentence.startswith(f"{count} files") for sentence in found)


@pytest.mark.parametrize("count, wrong", [(2, 0), (3, 1), (7, 1)])
def test_a_call_circle_is_found(objects, count, wrong):
    found = laws.call_circles(*objects(ring_of(count, "int f{other}(void);\nint f{own}(void) {{ return f{other}() + 1; }}\n")))
    assert len(found) == wrong and all(sentence.startswith(f"{count} files") for sentence in found)


def test_a_circle_by_way_of_a_table_of_functions_is_found(objects):
    table = "int f1(void);\nint (*const table[])(void) = {f1};\n"
    assert len(laws.call_circles(*objects({
        "base/0.c": table, "base/1.c": "int f2(void);\nint f1(void) { return f2() + 1; }\n",
        "base/2.c": "extern int (*const table[])(void);\nint f2(void) { return table[0]() + 1; }\n"}))) == 1


def test_a_chain_is_no_circle(objects):
    assert not laws.call_circles(*objects({
        "base/0.c": "int f1(void);\nint f2(void);\nint f0(void) { return f1() + f2(); }\n",
        "base/1.c": "int f2(void);\nint f1(void) { return f2() + 1; }\n", "base/2.c": "int f2(void) { return 1; }\n"}))


def test_a_file_of_capture_that_is_too_large_is_found(tree):
    lines = "/* a */\n"
    assert laws.too_large(tree({"capture/follow/a.c": 500 * lines, "capture/run/b.c": 300 * lines, "unwind/c.c": 900 * lines})) == []
    assert laws.too_large(tree({"capture/follow/a.c": 501 * lines, "capture/run/b.c": 301 * lines})) == [
        "capture/follow/a.c has 501 lines, 500 at most", "capture/run/b.c has 301 lines, 300 at most"]


@pytest.mark.parametrize("beginning, wrong", [
    ("/* One.\n * Two.\n * Three. */\n", 0), ("/*\n * One.\n * Two.\n */\n", 0), ("/* One.\n * Two. */\n", 1), ("/*\n *\n * One.\n */\n", 1),
    ("int x;\n/* One.\n * Two.\n * Three. */\n", 1), ("#include <a.h>\n", 1)])
def test_a_long_file_that_does_not_say_what_it_is_for_is_found(tree, beginning, wrong):
    planted = tree({"base/long.c": beginning + 100 * "int x;\n", "base/short.c": 100 * "int x;\n", "base/long.h": 200 * "int x;\n"})
    assert len(laws.unexplained(planted)) == wrong


# ---- What the repository may hold

def test_the_root_holds_what_is_known_to_be_there(repository):
    tracked = subprocess.run(["git", "-C", repository, "ls-files", "-z"], capture_output=True, text=True)
    if tracked.returncode != 0:
        pytest.skip("no git checkout: nothing tells what belongs to the repository")
    top = {name.partition("/")[0] for name in tracked.stdout.split("\0") if name}
    assert top <= {".ci", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "NOTICE", "README.md", "SECURITY.md", "VERSION", "build", "deploy", "docs", "src", "tests", "vendor"}


def files(repository):
    listed = subprocess.run(["git", "-c", "safe.directory=*", "-C", repository, "ls-files", "-co", "--exclude-standard"],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if listed.returncode == 0:
        found = [repository / name for name in listed.stdout.splitlines()]
    else:
        found = [p for p in repository.rglob("*") if not {".git", "out", "lab", "__pycache__"} & set(p.parts)]
    return [p for p in found if p.is_file()]


def texts(repository):
    """All that people wrote; the inputs that fuzzing found are what they are."""
    for path in files(repository):
        if "fuzz" in path.parts and path.suffix != ".c":
            continue
        data = path.read_bytes()
        if b"\0" not in data:
            yield path, data.decode("utf-8", "replace")


def test_no_paths_of_somebodys_machine(repository):
    """/proc/PID/root/... and the like are fine; a folder below a home or a work folder is not."""
    wrong = []
    for path, text in texts(repository):
        for found in re.finditer(r"(?<![\w/.})>*])/(?:root|home|work|Users)/[\w.-]+", text):
            line = text.count("\n", 0, found.start()) + 1
            wrong.append(f"{path.relative_to(repository)}:{line}: {found.group()}")
    assert not wrong, "\n".join(wrong)


def test_no_unfinished_business(repository):
    """Nothing says it is a stub; the words are put together here so that this file passes."""
    words = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "\\bXX" + "X\\b", "HA" + "CK\\b")))
    wrong = [f"{path.relative_to(repository)}:{number}: {line.strip()[:80]}" for path, text in texts(repository)
             for number, line in enumerate(text.splitlines(), 1) if words.search(line)]
    assert not wrong, "\n".join(wrong)


KNOW_LANGUAGES = ("runtime", "cli", "profile", "encode")  # rows, options and help, the language table, formats' names
NAME_LANGUAGES = ("capture/summary.c", "deliver/studio_header.c", "origin/environment.h")  # keys of others' formats


def test_no_language_is_known_outside_its_row(repository):
    """Else a runtime is more than a file and a row."""
    word = re.compile("python", re.IGNORECASE)
    wrong = [f"{path.relative_to(repository)}:{number}: {line.strip()[:80]}" for path, text in texts(repository)
             if path.is_relative_to(repository / "src")
             and path.relative_to(repository / "src").parts[0] not in KNOW_LANGUAGES
             and str(path.relative_to(repository / "src")) not in NAME_LANGUAGES
             for number, line in enumerate(text.splitlines(), 1) if word.search(line)]
    assert not wrong, "\n".join(wrong)


def test_no_foreign_source_and_no_binaries(repository):
    """vendor/ holds recipes; what is not text is a picture or a recording below tests/."""
    wrong = [str(p.relative_to(repository)) for p in files(repository)
             if p.suffix in (".o", ".a", ".so", ".gz", ".xz", ".bz2", ".tar", ".zip", ".deb")
             and "recordings" not in p.parts]
    assert not wrong, wrong


def test_lines_are_short_and_clean(repository):
    wrong = defaultdict(int)
    for path, text in texts(repository):
        if path.suffix in (".c", ".h"):
            for line in text.splitlines():
                if len(line) > 120 or line != line.rstrip() or "\t" in line:
                    wrong[str(path.relative_to(repository))] += 1
    assert not wrong, dict(wrong)

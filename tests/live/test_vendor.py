"""A library's source that is not the one the manifest names stops the build, with both hashes."""
import hashlib
import re

from lab import process

# Archives that a row of the manifest is linked as, where the names differ; roots are data (build/assets.S).
ARCHIVES = {"musl": ["c"], "elfutils": ["elf", "dw"], "zlib": ["zlib"], "roots": []}


def rows(repository):
    lines = (repository / "vendor" / "manifest").read_text().splitlines()
    return [line.split() for line in lines if line.strip() and not line.startswith("#")]


def test_a_tampered_tarball_stops_with_both_hashes(repository, workdir):
    name, _, _, _, _, file, expected = rows(repository)[0][:7]
    (workdir / file).write_bytes(b"something else")
    done = process.run(["sh", "build/fetch.sh", name, workdir / "taken"], cwd=repository, timeout=120,
                       env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "VENDOR_CACHE": str(workdir)})
    assert done.status != 0, done
    assert expected in done.err and hashlib.sha256(b"something else").hexdigest() in done.err, done
    assert not (workdir / "taken").exists()


def test_every_row_names_a_licence_and_a_hash(repository):
    assert {row[0] for row in rows(repository)} >= {"musl", "zlib", "elfutils", "bearssl"}
    notice = (repository / "NOTICE").read_text()
    for row in rows(repository):
        assert len(row) == 9 and len(row[6]) == 64, row
        assert row[0] in notice.lower(), f"NOTICE says nothing about {row[0]}"


def members(pillion):
    """Archive members that the linker took, by archive: "dw" → {"dwarf_attr.o", ...}."""
    taken = {}
    section = (pillion.parent / "pillion.map").read_text().split("Linker script and memory map")[1]
    for archive, member in re.findall(r"^ \.\S+(?:\s+0x[0-9a-f]+){2} \S*/lib(\w+)\.a\((\S+)\)$", section.replace("\n  ", " "), re.M):
        taken.setdefault(archive, set()).add(member)
    return taken


def test_what_is_named_is_in_the_program_and_nothing_else_is(repository, pillion, run):
    taken = members(pillion)
    named = re.search(r"^libraries: (.*)$", run([pillion, "--version"]).out, re.M)[1]
    named = {each.split()[0] for each in named.split(", ")}
    assert named == {row[0] for row in rows(repository)}
    assert taken["dw"] and taken["elf"], taken.keys()
    archives = {archive: name for name in named for archive in ARCHIVES.get(name, [name])}
    assert set(archives) <= set(taken), f"named and not linked: {set(archives) - set(taken)}"
    assert set(taken) - {"gcc", "gcc_eh"} <= set(archives), f"linked and not named: {set(taken) - set(archives)}"

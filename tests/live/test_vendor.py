"""Where the libraries' sources are looked for. One that is not what the manifest names stops the build."""
import hashlib
import os
import re
import shutil

import pytest

from lab import process

# Archives that a row of the manifest is linked as, where the names differ; roots are data (build/assets.S).
ARCHIVES = {"musl": ["c"], "elfutils": ["elf", "dw"], "zlib": ["zlib"], "roots": []}


def rows(repository):
    lines = (repository / "vendor" / "manifest").read_text().splitlines()
    return [line.split() for line in lines if line.strip() and not line.startswith("#")]


def test_a_tampered_tarball_stops_with_both_hashes(repository, workdir):
    name, _, _, _, file, expected = rows(repository)[0][:6]
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
        assert len(row) == 8 and len(row[5]) == 64, row
        assert row[0] in notice.lower(), f"NOTICE says nothing about {row[0]}"


def test_every_row_has_an_upstream_beside_debian(repository):
    for row in rows(repository):
        assert row[6].startswith("https://") and "debian" not in row[6] and len(row[7]) == 64, row


def pool_of(repository, folder, name):
    """A Debian archive that has this row's tarball and nothing else."""
    package, file, expected = next(row[3:6] for row in rows(repository) if row[0] == name)
    tarball = repository / "build/out/tarballs" / name
    if hashlib.sha256(tarball.read_bytes()).hexdigest() != expected:
        pytest.skip(f"{name} was not built from Debian's tarball here")
    place = folder / "pool/main" / package[:4 if package.startswith("lib") else 1] / package
    place.mkdir(parents=True)
    shutil.copy(tarball, place / file)
    return f"file://{folder}"


def fetch(repository, name, folder, prefix=(), **environment):
    return process.run([*prefix, "sh", "build/fetch.sh", name, folder / "taken"], cwd=repository, timeout=120,
                       env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **environment})


@pytest.mark.parametrize("name", ["musl", "zstd"])
def test_a_mirror_that_is_named_is_asked_in_its_pool(name, repository, workdir):
    mirror = pool_of(repository, workdir / "debian", name)
    done = fetch(repository, name, workdir, DEBIAN_MIRROR=mirror)
    assert done.status == 0 and mirror in done.err, done
    assert (workdir / "taken").read_bytes() == (repository / "build/out/tarballs" / name).read_bytes()


def with_sources(folder, **files):
    """Runs argv where apt has these sources only, without a network."""
    (folder / "apt/sources.list.d").mkdir(parents=True)
    for name, text in files.items():
        (folder / "apt/sources.list.d" / name.replace("_", ".")).write_text(text)
    return ["unshare", "--mount", "--net", "sh", "-c", 'mount --bind "$0" /etc/apt && exec "$@"', folder / "apt"]


@pytest.mark.root
def test_another_archive_of_debians_name_does_not_hide_debians(repository, workdir):
    mirror = pool_of(repository, workdir / "list/debian", "zstd")
    (workdir / "mirrors.list").write_text(f"# near\n{mirror}\tpriority:1\n")
    machine = with_sources(workdir, docker_list=f"deb [arch=amd64] file://{workdir}/docker/debian trixie stable\n",
                           some_sources=f"Types: deb\nURIs: mirror+file://{workdir}/mirrors.list\nSuites: trixie\n")
    done = fetch(repository, "zstd", workdir, machine)
    assert done.status == 0 and f"FETCH   zstd: {mirror}/pool/main/libz/libzstd/" in done.err, done


@pytest.mark.root
def test_where_nothing_is_reached_both_ways_out_are_told(repository, workdir):
    machine = with_sources(workdir, ubuntu_sources="Types: deb\nURIs: http://127.0.0.1:9/ubuntu/\nSuites: noble\n")
    done = fetch(repository, "iberty", workdir, machine)
    assert done.status == 1 and "make DEBIAN_MIRROR=ADDRESS" in done.err and "make VENDOR_CACHE=" in done.err, done
    assert "archive (none is named)" in done.err, done
    assert "binutils-2.44.tar.xz" in done.err and "libiberty_20250315.orig.tar.xz" in done.err, done


def test_mozillas_list_by_itself_gives_the_same_table(repository, unbuilt, workdir):
    (workdir / "upstream").mkdir()
    shutil.copy(repository / "build/out/src/roots/mozilla/certdata.txt", workdir / "upstream")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = process.run(["make", "-C", unbuilt, "build/out/roots.bin"], timeout=120,
                       env={**plain, "VENDOR_CACHE": str(workdir / "upstream")})
    assert done.status == 0, done
    assert (unbuilt / "build/out/roots.bin").read_bytes() == (repository / "build/out/roots.bin").read_bytes()


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

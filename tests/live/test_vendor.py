"""A library's source that is not the one the manifest names stops the build, with both hashes."""
import hashlib

from lab import process


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

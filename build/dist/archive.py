"""Archives whose bytes depend on nothing but their contents and one time: members sorted, owner 0, no name or time in gzip's header.

Where one is made, its folder, the umask, the zone and the machine's name are in none of them. What compresses is this
Python's zlib and liblzma: provenance.txt names them.
"""
import gzip
import io
import lzma
import stat
import tarfile
import time
import zipfile


def members(files, prefix=""):
    """[(name, bytes, mode)] sorted by name, and before them the folders that they are in (bytes are None there)."""
    folders = {name[:i] for name, _, _ in files for i, letter in enumerate(name) if letter == "/"}
    rows = [(name, None, 0o755) for name in folders] + list(files)
    return [(prefix + name, data, mode) for name, data, mode in sorted(rows, key=lambda row: row[0])]


def tar(rows, epoch, *, headers=None, end=True):
    """A tar file's bytes. headers(data) -> pax headers of a file; end=False: without the blocks that end it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT if headers else tarfile.USTAR_FORMAT) as archive:
        for name, data, mode in rows:
            info = tarfile.TarInfo(name)
            info.mtime, info.mode = epoch, mode
            if data is None:
                info.type = tarfile.DIRTYPE
            else:
                info.size = len(data)
                info.pax_headers = headers(data) if headers else {}
            archive.addfile(info, None if data is None else io.BytesIO(data))
        used = archive.offset
    return out.getvalue() if end else out.getvalue()[:used]


def gz(data):
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=out, mtime=0) as packer:
        packer.write(data)
    return out.getvalue()


def xz(data):
    """A higher preset takes four times as long for a tenth less."""
    return lzma.compress(data, preset=1)


def zip_of(rows, epoch):
    """A zip file's bytes, in the order of the rows; its times are UTC, and none is before 1980."""
    out = io.BytesIO()
    when = time.gmtime(max(epoch, 315532800))[:6]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data, mode in rows:
            info = zipfile.ZipInfo(name, when)
            info.create_system, info.external_attr = 3, (stat.S_IFREG | mode) << 16
            archive.writestr(info, data, zipfile.ZIP_DEFLATED, 9)
    return out.getvalue()


def ar(rows, epoch):
    """What dpkg reads: a plain ar archive of [(name, bytes)]."""
    parts = [b"!<arch>\n"]
    for name, data in rows:
        parts.append(f"{name:<16}{epoch:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode("ascii"))
        parts.append(data + b"\n" * (len(data) % 2))
    return b"".join(parts)

#!/usr/bin/python3
"""Makes what a release consists of, from programs that are built: `make dist` (docs/releases.md).

Nothing here reads the clock, the folder's name, the machine's name or the environment, but for SOURCE_DATE_EPOCH: the time that
all archives bear. Without it, it is the commit's.
"""
import argparse
import hashlib
import os
import platform
import re
import subprocess
import sys
import zlib
from pathlib import Path

sys.dont_write_bytecode = True

import archive  # noqa: E402
import packages  # noqa: E402
import sbom  # noqa: E402

VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-rc\.[1-9]\d*)?")


def said(*argv):
    return subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout


def git(*argv):
    """git's answer, or None where there is no repository."""
    try:
        return said("git", *argv).decode().strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def time_of(commit):
    given = os.environ.get("SOURCE_DATE_EPOCH") or (commit and git("log", "-1", "--format=%ct", commit))
    if not given:
        raise SystemExit("dist: there is no git repository to take the time from: set SOURCE_DATE_EPOCH")
    return int(given)


def licences(sources):
    """What goes with every copy of the program: elfutils' licence wants its own text and the GPL's beside it."""
    return {"LICENSE": Path("LICENSE").read_bytes(), "NOTICE": Path("NOTICE").read_bytes(),
            "GPL-3.0.txt": (sources / "elfutils/COPYING").read_bytes(), "LGPL-3.0.txt": (sources / "elfutils/COPYING-LGPLV3").read_bytes()}


def provenance(release, changes, compilers):
    """No name of a machine, folder or person, and no time of making: two that make the same say the same."""
    return "\n".join([
        f"pillion {release.version}", f"commit: {release.commit}", f"changed files that are not committed: {changes}",
        "command: make dist", f"SOURCE_DATE_EPOCH: {release.epoch}",
        *(f"{arch}: {said(gcc, '--version').decode().splitlines()[0]}; {said(linker, '--version').decode().splitlines()[0]}"
          for arch, (gcc, linker) in compilers.items()),
        f"packed by: python {platform.python_version()}, zlib {zlib.ZLIB_RUNTIME_VERSION}",
        "libraries (each of its tarball's hashes in vendor/manifest is as good as the other):",
        *(f"  {name} {row[0]} {row[3]}" for name, row in sbom.manifest(Path("vendor/manifest").read_text()).items()), ""]).encode()


def made(release, out, compilers, changes, with_debug):
    """Every file of a release but the sums: (name, bytes)."""
    manifest = Path("vendor/manifest").read_text()
    for arch, program in release.programs.items():
        compiler = said(compilers[arch][0], "-dumpfullversion").decode().strip()
        yield f"pillion-{release.version}-linux-{arch}", program
        yield f"pillion-{release.version}-linux-{arch}.spdx.json", sbom.document(
            release, arch, (out / arch / "pillion.map").read_text(), manifest, compiler)
        for kind in (packages.tarball, packages.wheel, packages.deb, packages.apk):
            yield kind(release, arch)
        if with_debug:
            yield packages.debug_tarball(release, arch, (out / arch / "pillion.debug").read_bytes())
    yield packages.npm(release)
    yield packages.image(release)
    yield f"pillion-{release.version}-provenance.txt", provenance(release, changes, compilers)


def write(folder, files):
    """The folder with these files and no others, and with their sums."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    sums = []
    for name, data in files:
        path = folder / name
        path.write_bytes(data)
        path.chmod(0o755 if data.startswith(b"\x7fELF") else 0o644)
        sums.append((name, hashlib.sha256(data).hexdigest()))
    (folder / "SHA256SUMS").write_text("".join(f"{digest}  {name}\n" for name, digest in sorted(sums)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, default=Path("build/out"), help="where the programs are: OUT/ARCH/pillion")
    parser.add_argument("--to", type=Path, default=Path("build/out/dist"))
    parser.add_argument("--arch", action="append", default=[], metavar="ARCH=PREFIX", help="a processor, and what stands before gcc and ld")
    parser.add_argument("--homepage", default="")
    parser.add_argument("--maintainer", default="the pillion authors")
    parser.add_argument("--no-debug", action="store_true", help="without the debug files, which take most of the time")
    given = parser.parse_args()
    version = Path("VERSION").read_text().strip()
    if not VERSION.fullmatch(version):
        raise SystemExit(f"dist: VERSION is {version!r}, not X.Y.Z or X.Y.Z-rc.N")
    compilers = {arch: (prefix + "gcc", prefix + "ld") for arch, _, prefix in (row.partition("=") for row in given.arch)}
    commit = git("rev-parse", "HEAD") or "unknown"
    changes = len((git("status", "--porcelain") or "").splitlines())
    here = given.out / platform.machine() / "pillion"
    release = packages.Release(
        version, time_of(commit), commit, given.homepage, given.maintainer,
        programs={arch: (given.out / arch / "pillion").read_bytes() for arch in compilers},
        pages={"changelog": Path("CHANGELOG.md").read_bytes(), **{page: said(here, "help", page) for page in ("man", "bash", "zsh", "fish")}},
        licences=licences(given.out / "src"))
    write(given.to, made(release, given.out, compilers, changes, not given.no_debug))
    if changes:
        print(f"dist: not of a commit: {changes} files are changed", file=sys.stderr)
    print(f"  DIST    {given.to}: {len(list(given.to.iterdir()))} files of pillion {version}, {commit[:12]}")


if __name__ == "__main__":
    main()

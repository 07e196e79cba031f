"""One function for each kind of package: from a Release and the name of a processor to a file's name and bytes.

Every one of them holds the same program, built once. None runs anything when it is installed.
"""
import base64
import hashlib
import json
import time

import archive

SUMMARY = "Profiles the programs it shares a container with"
# As the kernel, Debian, npm and OCI name a processor.
NAMES = {"x86_64": ("amd64", "x64"), "aarch64": ("arm64", "arm64")}


class Release:
    """What all packages are made of: texts, and per processor the program."""

    def __init__(self, version, epoch, commit, homepage, maintainer, *, programs, pages, licences):
        self.version, self.epoch, self.commit = version, epoch, commit
        self.homepage, self.maintainer = homepage, maintainer
        self.programs = programs    # processor -> the program's bytes
        self.pages = pages          # "man", "bash", "zsh", "fish", "changelog" -> text as bytes
        self.licences = licences    # file name -> bytes: LICENSE, NOTICE, and what the libraries' licences want beside a program

    def written(self, pre):
        """1.0.0-rc.1 as another kind of package wants it: `pre` stands between the version and the 'rc'."""
        number, dash, candidate = self.version.partition("-")
        return number + (pre + candidate.replace(".", "") if dash else "")

    def readme(self, install):
        return f"""# pillion {self.version}

{SUMMARY}: one static program, no root on the host, nothing loaded into the target.

    {install}
    pillion -- python3 shop.py

profiles the command and all that it starts, and leaves the flame graph in ./last_flamegraph.html. `pillion -p PID -d 30`
profiles what runs already. `pillion doctor` says what can be seen here and what would allow more; `pillion --help`
has every option. For Linux on x86-64 and aarch64, with any libc or none.

Licence: Apache-2.0 (LICENSE). What is linked into the program: NOTICE.
""".encode()

    def under(self, folder):
        return [(f"{folder}/{name}", data, 0o644) for name, data in self.licences.items()]

    def installed(self, arch, *, zsh):
        """Where a distribution's package has its files."""
        return [("usr/bin/pillion", self.programs[arch], 0o755),
                ("usr/share/man/man1/pillion.1.gz", archive.gz(self.pages["man"]), 0o644),
                ("usr/share/bash-completion/completions/pillion", self.pages["bash"], 0o644),
                (f"usr/share/zsh/{zsh}/_pillion", self.pages["zsh"], 0o644),
                ("usr/share/fish/vendor_completions.d/pillion.fish", self.pages["fish"], 0o644)]


def tarball(release, arch):
    top = f"pillion-{release.version}-linux-{arch}"
    files = [("pillion", release.programs[arch], 0o755), ("pillion.1", release.pages["man"], 0o644),
             *((f"completions/{name}", release.pages[shell], 0o644)
               for shell, name in (("bash", "pillion.bash"), ("zsh", "_pillion"), ("fish", "pillion.fish"))),
             ("README.md", release.readme(f"tar -xzf {top}.tar.gz && cp {top}/pillion /usr/local/bin/"), 0o644),
             *((name, data, 0o644) for name, data in release.licences.items())]
    return f"{top}.tar.gz", archive.gz(archive.tar(archive.members([(f"{top}/{n}", d, m) for n, d, m in files]), release.epoch))


def debug_tarball(release, arch, symbols):
    top = f"pillion-{release.version}-linux-{arch}-debug"
    return f"{top}.tar.xz", archive.xz(archive.tar(archive.members([(f"{top}/pillion.debug", symbols, 0o644)]), release.epoch))


def wheel(release, arch):
    """The script is the program itself: no Python runs when it is called. A static program needs none of the libcs that the tags name;
    who installs finds the tag of its own."""
    version = release.written("")
    tags = [f"py3-none-{system}_{arch}" for system in ("manylinux2014", "manylinux_2_17", "musllinux_1_1")]
    platform = ".".join(sorted(tag.split("-", 2)[2] for tag in tags))
    info = f"pillion-{version}.dist-info"
    metadata = ["Metadata-Version: 2.1", "Name: pillion", f"Version: {version}", f"Summary: {SUMMARY}", "License: Apache-2.0",
                *([f"Home-page: {release.homepage}"] if release.homepage else []), f"Author: {release.maintainer}",
                "Classifier: Operating System :: POSIX :: Linux", "Requires-Python: >=3", "Description-Content-Type: text/markdown", "", ""]
    rows = [(f"pillion-{version}.data/scripts/pillion", release.programs[arch], 0o755), *sorted(release.under(info)),
            (f"{info}/METADATA", "\n".join(metadata).encode() + release.readme("pip install pillion"), 0o644),
            (f"{info}/WHEEL", "\n".join(["Wheel-Version: 1.0", f"Generator: pillion {release.version}", "Root-Is-Purelib: false",
                                         *(f"Tag: {tag}" for tag in tags), ""]).encode(), 0o644)]
    record = "".join(f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
                     for name, data, _ in rows) + f"{info}/RECORD,,\n"
    return f"pillion-{version}-py3-none-{platform}.whl", archive.zip_of([*rows, (f"{info}/RECORD", record.encode(), 0o644)], release.epoch)


# Started by node it would stay a child of node for as long as it runs; exec keeps the PID that signals are sent to.
CHOOSE = b"""#!/bin/sh
exec "$(dirname "$(readlink -f "$0")")/pillion-$(uname -m)" "$@"
"""


def npm(release):
    """One package with the programs of all processors: it installs from one file, without a registry and without scripts."""
    about = {"name": "pillion", "version": release.version, "description": SUMMARY, "license": "Apache-2.0", "author": release.maintainer,
             **({"homepage": release.homepage} if release.homepage else {}),
             "os": ["linux"], "cpu": [NAMES[arch][1] for arch in release.programs], "bin": {"pillion": "bin/pillion"}}
    files = [("package.json", json.dumps(about, indent=2).encode() + b"\n", 0o644), ("README.md", release.readme("npm install -g pillion"), 0o644),
             ("bin/pillion", CHOOSE, 0o755), *release.under("licences"),
             *((f"bin/pillion-{arch}", program, 0o755) for arch, program in release.programs.items())]
    # npm makes folders itself, and knows files only.
    rows = [row for row in archive.members(files, "package/") if row[1] is not None]
    return f"pillion-{release.version}.tgz", archive.gz(archive.tar(rows, release.epoch))


def deb(release, arch):
    version, machine = release.written("~"), NAMES[arch][0]
    doc = "usr/share/doc/pillion"
    files = [*release.installed(arch, zsh="vendor-completions"), *release.under(doc),
             (f"{doc}/changelog.gz", archive.gz(release.pages["changelog"]), 0o644),
             (f"{doc}/copyright", b"See LICENSE and NOTICE in this folder.\n", 0o644)]
    control = ["Package: pillion", f"Version: {version}", f"Architecture: {machine}", "Multi-Arch: foreign", f"Maintainer: {release.maintainer}",
               f"Installed-Size: {sum(len(data) // 1024 + 1 for _, data, _ in files)}", "Section: devel", "Priority: optional",
               *([f"Homepage: {release.homepage}"] if release.homepage else []), f"Description: {SUMMARY}",
               " One static program: no root on the host, nothing loaded into the target, no", " other package needed.", ""]
    sums = "".join(f"{hashlib.md5(data).hexdigest()}  {name}\n" for name, data, _ in sorted(files))

    def packed(rows):
        return archive.gz(archive.tar([("./", None, 0o755), *archive.members(rows, "./")], release.epoch))
    return f"pillion_{version}_{machine}.deb", archive.ar([
        ("debian-binary", b"2.0\n"), ("control.tar.gz", packed([("control", "\n".join(control).encode(), 0o644), ("md5sums", sums.encode(), 0o644)])),
        ("data.tar.gz", packed(files))], release.epoch)


def apk(release, arch):
    """Version 2 of the format: two gzip streams, of which the first, a tar file without an end, names the second's hash. A signature
    would be a third in front."""
    version = release.written("_") + "-r0"
    files = [*release.installed(arch, zsh="site-functions"), *release.under("usr/share/licenses/pillion")]
    data = archive.gz(archive.tar(archive.members(files), release.epoch,
                                  headers=lambda content: {"APK-TOOLS.checksum.SHA1": hashlib.sha1(content).hexdigest()}))
    about = {"pkgname": "pillion", "pkgver": version, "pkgdesc": SUMMARY, "url": release.homepage or "none", "builddate": release.epoch,
             "packager": release.maintainer, "size": sum(len(content) for _, content, _ in files), "arch": arch, "origin": "pillion",
             "commit": release.commit, "license": "Apache-2.0", "provides": f"cmd:pillion={version}", "datahash": hashlib.sha256(data).hexdigest()}
    information = "".join(f"{key} = {value}\n" for key, value in about.items()).encode()
    control = archive.tar([(".PKGINFO", information, 0o644)], release.epoch, end=False)
    return f"pillion-{version}-{arch}.apk", archive.gz(control) + data


def image(release):
    """An OCI layout in a tar file: one index over one image per processor, of which each is the file /pillion and nothing else."""
    blobs = {}
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(release.epoch))

    def blob(data, kind, **more):
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data), **more}

    def text(value):
        return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()

    def one(arch):
        layer = archive.tar([("pillion", release.programs[arch], 0o755)], release.epoch)
        platform = {"architecture": NAMES[arch][0], "os": "linux", **({"variant": "v8"} if arch == "aarch64" else {})}
        # The licences want their notice with every copy, and there is no second file.
        labels = {"org.opencontainers.image.title": "pillion", "org.opencontainers.image.version": release.version,
                  "org.opencontainers.image.revision": release.commit, "org.opencontainers.image.licenses": "Apache-2.0",
                  "pillion.notice": release.licences["NOTICE"].decode()}
        config = blob(text({**platform, "created": created, "config": {"Entrypoint": ["/pillion"], "Labels": labels},
                            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
                            "history": [{"created": created, "created_by": f"pillion {release.version}"}]}), "config.v1+json")
        manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
                    "layers": [blob(archive.gz(layer), "layer.v1.tar+gzip")]}
        return blob(text(manifest), "manifest.v1+json", platform=platform)

    def index(rows):
        return text({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": rows})
    both = blob(index([one(arch) for arch in release.programs]), "index.v1+json",
                annotations={"org.opencontainers.image.ref.name": release.version})
    files = {**blobs, "index.json": index([both]), "oci-layout": text({"imageLayoutVersion": "1.0.0"})}
    rows = archive.members([(name, data, 0o644) for name, data in files.items()])
    return f"pillion-{release.version}-image.tar", archive.tar(rows, release.epoch)

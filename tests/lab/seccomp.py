"""The seccomp profiles that container engines start everything with, as their own packages have them.

    seccomp.get("docker-20.10")   -> the file; root.Unreachable when it can neither be had nor is kept

container.Container takes the file as its profile.
"""
import subprocess
from pathlib import Path

from . import cache, root

PODMANS = "golang-github-containers-common", "./usr/share/containers/seccomp.json"
DOCKERS = ("golang-github-docker-docker-dev",
           "./usr/share/gocode/src/github.com/docker/docker/profiles/seccomp/default.json")
# The engine's version (podman: that of its common part) -> the suite that has it, the package, the file's name in it.
PUBLISHED = {
    "podman-0.50": ("bookworm", *PODMANS),
    "podman-0.62": ("trixie", *PODMANS),
    "docker-20.10": ("bookworm", *DOCKERS),
    "docker-26.1": ("trixie", *DOCKERS),
}


def get(engine):
    release, package, name = PUBLISHED[engine]
    kept = cache.folder("seccomp") / f"{engine}.json"
    with cache.locked("seccomp"):
        if not kept.exists():
            kept.write_bytes(_of_package(root.Apt(release).one(package), name))
    return Path(kept)


def _of_package(package, name):
    files = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE, check=True).stdout
    return subprocess.run(["tar", "-x", "-O", name], input=files, stdout=subprocess.PIPE, check=True).stdout

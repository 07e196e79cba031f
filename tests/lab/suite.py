"""Packages of a Debian suite beyond what root.py's rows say: source, one root with several programs, a moving suite.

root.Apt is the private apt of a suite; here is what it does not do: `debs` asks once more with new lists when the
archive has moved on under the old ones (sid), `source` unpacks a source package without its Debian patches.
"""
import subprocess
from pathlib import Path

from . import cache, root


def debs(suite, packages, architecture="amd64"):
    """The .deb files of the packages and of all they depend on."""
    apt = root.Apt(suite, architecture)
    try:
        return apt.closure(packages)
    except root.Unreachable:
        # The pool drops a version as soon as the next one is there, while our lists still name it.
        (apt.folder / "updated").unlink(missing_ok=True)
        return apt.closure(packages)


def source(suite, package, folder):
    """The upstream source of a package, unpacked into the folder."""
    with cache.locked(f"source-{suite}-{package}"):
        tarball = fetched(suite, package)
    Path(folder).mkdir(parents=True, exist_ok=True)
    subprocess.run(["tar", "-x", "-f", tarball, "-C", folder, "--strip-components=1"], check=True)
    return Path(folder)


def fetched(suite, package):
    apt = root.Apt(suite)
    (apt.folder / "parts" / "source.sources").write_text(
        f"Types: deb-src\nURIs: {root.mirror()}\nSuites: {suite}\nComponents: main\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n")
    (apt.folder / "updated").unlink(missing_ok=True)
    apt.update()
    kept = cache.folder("source", f"{suite}-{package}")
    if not list(kept.glob("*.orig.tar.*")):
        done = subprocess.run(["apt-get", "-q", "-q", "-c", apt.configuration, "source", "--download-only", package],
                              cwd=kept, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise root.Unreachable(f"source of {package} from {suite}: {done.stdout.strip().splitlines()[-1:]}")
    return next(kept.glob("*.orig.tar.*[!c]"))

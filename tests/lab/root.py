#!/usr/bin/python3
"""Unpacked roots: other runtimes, a busybox system, a Debian minbase.

    tests/lab/root.py list                 the rows below and what is cached
    tests/lab/root.py make NAME FOLDER     makes one, prints what it cost
    tests/lab/root.py fetch NAME           only downloads its packages

A row is a name, a suite, packages and the version its program must print. Each suite has a private
apt (own lists, empty status, own cache), so the machine's packages are never touched; the mirror is
the one the machine's own apt uses. The .debs stay in build/lab/apt; a root is unpacked anew.
No maintainer script runs in a root: call programs by their full name.
"""
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

if __package__:
    from . import cache
else:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from lab import cache

SHELL = ["coreutils", "bash", "sed", "grep"]


class Row:
    def __init__(self, name, suite, packages, command, expect):
        self.name, self.suite, self.packages, self.command, self.expect = name, suite, packages, command, expect


ROWS = [
    Row("python3.9", "bullseye", ["python3.9"], ["/usr/bin/python3.9", "-V"], r"3\.9\."),
    Row("python3.11", "bookworm", ["python3.11"], ["/usr/bin/python3.11", "-V"], r"3\.11\."),
    Row("python3.13", "trixie", ["python3.13"], ["/usr/bin/python3.13", "-V"], r"3\.13\."),
    Row("ruby3.1", "bookworm", ["ruby3.1"], ["/usr/bin/ruby3.1", "-v"], r"3\.1\."),
    Row("ruby3.3", "trixie", ["ruby3.3"], ["/usr/bin/ruby3.3", "-v"], r"3\.3\."),
    Row("php8.2", "bookworm", ["php8.2-cli"], ["/usr/bin/php8.2", "-v"], r"8\.2\."),
    Row("perl5.40", "trixie", ["perl"], ["/usr/bin/perl", "-v"], r"v5\.40\."),
    Row("jdk17", "bookworm", ["openjdk-17-jre-headless"],
        ["/usr/lib/jvm/java-17-openjdk-amd64/bin/java", "-version"], r"17\."),
    Row("node18", "bookworm", ["nodejs"], ["/usr/bin/node", "--version"], r"v18\."),
]


class Unreachable(Exception):
    """A package could not be fetched; the text says which and why."""


def _text(argv, **options):
    return subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def mirror():
    """The archive this machine installs from. DEBIAN_MIRROR overrides."""
    if os.environ.get("DEBIAN_MIRROR"):
        return os.environ["DEBIAN_MIRROR"]
    found = _text(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]).stdout.split()
    for uri in found:
        if re.search(r"/debian(/[0-9TZ]+)?/?$", uri):
            return uri.rstrip("/")
    raise Unreachable("no Debian archive in this machine's apt sources; set DEBIAN_MIRROR")


class Apt:
    """A private apt for one suite (and one architecture). Parts of the tests that run beside each other share it."""

    def __init__(self, suite, architecture="amd64"):
        self.suite = suite # several, with spaces between: packages of one with what they need of another
        name = f"{suite.replace(' ', '+')}-{architecture}"
        self.lock = f"apt-{name}"
        self.folder = cache.folder("apt", name)
        for part in ("parts", "preferences", "lists/partial", "cache/archives/partial"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        (self.folder / "status").touch()
        self.configuration = self.folder / "apt.conf"
        text = ("".join(f'{key} "{value}";\n' for key, value in {
            "Dir::Etc::sourcelist": self.folder / "suite.sources",
            "Dir::Etc::sourceparts": self.folder / "parts",
            "Dir::Etc::preferencesparts": self.folder / "preferences",
            "Dir::State": self.folder,
            "Dir::State::Lists": self.folder / "lists",
            "Dir::State::status": self.folder / "status",
            "Dir::Cache": self.folder / "cache",
            "APT::Architecture": architecture,
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
            "Acquire::Retries": "2",
            "Acquire::Check-Valid-Until": "false", # a mirror that stands still still has what is needed
        }.items()) + f'APT::Architectures {{ "{architecture}"; }};\n'
            "APT::Update::Post-Invoke {};\nAPT::Update::Post-Invoke-Success {};\n")
        with cache.locked(self.lock):
            if not self.configuration.exists() or self.configuration.read_text() != text:
                self.configuration.write_text(text)

    def get(self, *arguments):
        return _text(["apt-get", "-q", "-q", "-c", self.configuration, *arguments])

    def update(self):
        with cache.locked(self.lock):
            self._update()

    def _update(self):
        stamp = self.folder / "updated"
        if stamp.exists() and time.time() - stamp.stat().st_mtime < 7 * 86400:
            return
        (self.folder / "suite.sources").write_text(
            f"Types: deb\nURIs: {mirror()}\nSuites: {self.suite}\nComponents: main\n"
            "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n")
        done = self.get("update")
        if done.returncode:
            raise Unreachable(f"no package lists of {self.suite}: {done.stdout.strip().splitlines()[-1:]}")
        stamp.touch()

    def closure(self, packages):
        """The .deb files of the packages and all they depend on, downloaded where missing."""
        with cache.locked(self.lock):
            return self._closure(packages)

    def _closure(self, packages):
        listed = self.folder / ("closure-" + "+".join(packages).replace("/", "_"))
        if listed.exists():
            files = [self.folder / "cache" / "archives" / name for name in listed.read_text().split()]
            if all(file.exists() for file in files):
                return files
        self._update()
        # of an empty cache: what is downloaded already would be left out
        wanted = self.get("-o", f"Dir::Cache::Archives={self.folder}/parts/", "install", "--print-uris", "-y", *packages)
        names = re.findall(r"^'[^']+' (\S+\.deb) ", wanted.stdout, re.M)
        done = self.get("install", "-y", "--download-only", *packages)
        if done.returncode:
            raise Unreachable(f"{' '.join(packages)} from {self.suite}: {done.stdout.strip().splitlines()[-1:]}")
        archives = self.folder / "cache" / "archives"
        names = names or sorted(file.name for file in archives.glob("*.deb"))
        listed.write_text("\n".join(names))
        return [archives / name for name in names]

    def one(self, package):
        """One .deb file alone."""
        archives = self.folder / "cache" / "archives"
        with cache.locked(self.lock):
            self._update()
            done = _text(["apt-get", "-q", "-q", "-c", self.configuration, "download", package], cwd=archives)
        if done.returncode:
            raise Unreachable(f"{package} from {self.suite}: {done.stdout.strip().splitlines()[-1:]}")
        return max(archives.glob(package.split("=")[0] + "_*.deb"), key=lambda file: file.stat().st_mtime)


def unpack(debs, root):
    """Unpacks .debs with a merged /usr, whatever folder names they use."""
    root = Path(root)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        if not (root / name).is_symlink():
            (root / name).symlink_to(f"usr/{name}")
    for name in ("proc", "sys", "dev", "tmp", "mnt", "out"):
        (root / name).mkdir(exist_ok=True)
    for deb in debs:
        tar = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", root, "--keep-directory-symlink"], stdin=tar.stdout, check=True)
        if tar.wait():
            raise Unreachable(f"{deb} is damaged")
    return root


def make(name, folder):
    """One of ROWS, unpacked into a folder and its version checked."""
    row = next(row for row in ROWS if row.name == name)
    unpack(Apt(row.suite).closure(row.packages + SHELL), folder)
    said = _text(["chroot", folder, *row.command], env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}).stdout
    if not re.search(row.expect, said):
        raise Unreachable(f"{name}: expected {row.expect}, got {said.strip()!r}")
    return Path(folder)


def busybox(folder):
    """A root with busybox and nothing else: a shell, 300 small programs, no libc. Takes no network."""
    folder = Path(folder)
    for name in ("bin", "dev", "etc", "out", "proc", "sys", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    shutil.copy2(shutil.which("busybox", path="/bin:/usr/bin"), folder / "bin" / "busybox")
    for name in ("sh", "cat", "echo", "sleep", "ls", "id", "kill", "mount", "stty", "sync", "poweroff", "chmod", "mkdir",
                 "env", "head", "true", "false", "su", "test", "grep", "ps", "tail", "seq", "wc", "uname", "rm", "cut", "date"):
        link = folder / "bin" / name
        if not link.is_symlink():
            link.symlink_to("busybox")
    (folder / "etc" / "passwd").write_text("root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
    return folder


def debootstrap(folder, suite="bookworm", include=()):
    """A configured minimal Debian; the base packages are kept in build/lab."""
    kept = cache.folder("debootstrap")
    done = _text(["debootstrap", "--variant=minbase", f"--cache-dir={kept}",
                  *([f"--include={','.join(include)}"] if include else []), suite, folder, mirror()])
    if done.returncode:
        raise Unreachable(f"debootstrap {suite}: {done.stdout.strip().splitlines()[-1:]}")
    return Path(folder)


def main(arguments):
    if arguments[:1] == ["list"]:
        for row in ROWS:
            print(f"{row.name:12} {row.suite:10} {' '.join(row.packages)}")
        print("busybox      (this machine's busybox-static)\ndebootstrap  bookworm")
        return 0
    if len(arguments) == 3 and arguments[0] == "make":
        begin, name, folder = time.time(), arguments[1], Path(arguments[2])
        folder.mkdir(parents=True, exist_ok=True)
        {"busybox": busybox, "debootstrap": debootstrap}.get(name, lambda to: make(name, to))(folder)
        size = sum(f.lstat().st_size for f in folder.rglob("*") if not f.is_symlink() and f.is_file()) / 1e6
        print(f"{name}: {time.time() - begin:.1f} s, {size:.0f} MB in {folder}")
        return 0
    if len(arguments) == 2 and arguments[0] == "fetch":
        row = next(row for row in ROWS if row.name == arguments[1])
        print("\n".join(map(str, Apt(row.suite).closure(row.packages + SHELL))))
        return 0
    print(__doc__.split("\n\n")[1])
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

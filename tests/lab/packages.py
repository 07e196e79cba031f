"""The packages of a release (make dist), opened by other programs than those that made them, and installed into roots.

    tests/lab/packages.py FOLDER [--alpine FILE.tar.gz] [--npm FOLDER] [--uv FILE]

runs each package of FOLDER in clean roots of its kind and prints how long it takes from the line of its README to the first flame
graph. debootstrap makes the Debian ones; Alpine's, an unpacked npm and a uv are given by whoever has them.
"""
import argparse
import gzip
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zlib
from pathlib import Path

if __package__:
    from . import container, process, root as roots
else:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from lab import container, process, root as roots

MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
PATTERNS = {"tarball": "pillion-*-linux-{0}.tar.gz", "wheel": "*_{0}.whl", "npm": "pillion-*.tgz", "deb": "*_{1}.deb", "apk": "*-{0}.apk",
            "image": "*-image.tar"}
# A second of work for a shell of any kind.
WORK = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"


def find(folder, kind, arch="x86_64"):
    """The one package of a kind."""
    found = list(Path(folder).glob(PATTERNS[kind].format(arch, MACHINES[arch])))
    assert len(found) == 1, (kind, found)
    return found[0]


# ---- Readers of our own

def apk_streams(path):
    """An .apk's gzip streams: [(packed, unpacked)]."""
    rest, streams = path.read_bytes(), []
    while rest:
        reader = zlib.decompressobj(31)
        data = reader.decompress(rest) + reader.flush()
        streams.append((rest[:len(rest) - len(reader.unused_data)], data))
        rest = reader.unused_data
    return streams


def apk_information(path):
    """.PKGINFO as a dictionary. The segment has no end, and Python's reader wants none."""
    with tarfile.open(fileobj=io.BytesIO(apk_streams(path)[0][1])) as control:
        text = control.extractfile(".PKGINFO").read().decode()
    return dict(line.split(" = ", 1) for line in text.splitlines())


class Layout:
    """An OCI layout in a tar file; every blob that is read is held against its digest and size."""

    def __init__(self, path):
        with tarfile.open(path) as archive:
            self.files = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}
        assert json.loads(self.files["oci-layout"])["imageLayoutVersion"] == "1.0.0"
        self.read = {"oci-layout", "index.json"}

    def blob(self, row):
        name = "blobs/" + row["digest"].replace(":", "/")
        data = self.files[name]
        assert (f"sha256:{hashlib.sha256(data).hexdigest()}", len(data)) == (row["digest"], row["size"]), name
        self.read.add(name)
        return data

    def images(self):
        """OCI's name of a processor -> (config, what its only layer unpacks to)."""
        outer, = json.loads(self.files["index.json"])["manifests"]
        found = {}
        for row in json.loads(self.blob(outer))["manifests"]:
            manifest = json.loads(self.blob(row))
            config = json.loads(self.blob(manifest["config"]))
            layer, = manifest["layers"]
            data = gzip.decompress(self.blob(layer))
            assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(data).hexdigest()}"]
            assert {key: config[key] for key in row["platform"]} == row["platform"]
            found[config["architecture"]] = config, data
        return found


# ---- Installers

def untar(data, to):
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(to)


def install(kind, path, root, arch="x86_64"):
    """Puts a package into a root from outside, by the kind's own program where one is needed: what to call there."""
    root = Path(root)
    if kind == "tarball":
        process_ok(["tar", "-xzf", path, "-C", root / "out"])
        return f"/out/{path.name.removesuffix('.tar.gz')}/pillion"
    if kind == "wheel":
        process_ok(["/usr/bin/python3", "-m", "pip", "-q", "install", "--no-index", "--no-deps", "--no-compile", "--no-cache-dir", "--root-user-action=ignore",
                    "--disable-pip-version-check", "--target", root / "wheel", path])
        return "/wheel/bin/pillion"
    if kind == "npm":
        process_ok(["npm", "install", "-g", "--prefix", root / "npm", "--offline", "--ignore-scripts", "--no-audit", "--no-fund",
                    "--no-update-notifier", "--cache", root / "npm/cache", path])
        return "/npm/bin/pillion"
    if kind == "deb":
        for name in ("info", "updates", "triggers"):
            (root / "var/lib/dpkg" / name).mkdir(parents=True, exist_ok=True)
        (root / "var/lib/dpkg/status").touch()
        process_ok(["dpkg", f"--root={root}", "--force-script-chrootless", "--log=/dev/null", "--install", path])
        return "/usr/bin/pillion"
    if kind == "apk":
        untar(apk_streams(path)[1][1], root)
        return "/usr/bin/pillion"
    untar(Layout(path).images()[MACHINES[arch]][1], root)
    return "/pillion"


def process_ok(argv, **options):
    done = process.run(argv, timeout=300, **options)
    assert done.status == 0, done
    return done


# ---- By hand, for a release: whole roots

def chrooted(root, line, timeout=300):
    """A line of shell in a root with /proc and /dev, the way the README has it."""
    script = 'mount -t proc proc "$0/proc"; mount --bind /dev "$0/dev"; exec chroot "$0" /bin/sh -c "$1"'
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
    return process.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, root, line], env=environment, timeout=timeout)


def first_graph(name, root, line, install_line, call="pillion"):
    """Installs, profiles a program, and looks for the page; what takes how long is told by the root's own clock."""
    clock = "cut -d ' ' -f 1 /proc/uptime"
    done = chrooted(root, f"set -e; mkdir -p /run/g; cd /run/g; {clock}; {install_line}; {clock}; "
                          f"{call} --launch init -- {line} >&2; {clock}; test -s last_flamegraph.html")
    fine = done.status == 0
    times = [float(row) for row in done.out.split()] if fine else []
    told(name, fine, f"installed in {times[1] - times[0]:.1f} s, the run and its flame graph {times[2] - times[1]:.1f} s" if fine else done)
    subprocess.run(["rm", "-rf", str(root / "run/g")], check=True)
    return fine


def told(name, fine, what):
    print(f"{name:38} {what if fine else f'FAILED: {what}'}", flush=True)


def in_containers(folder):
    """Roots that have nothing to install with: the file is unpacked into them from outside, and runc runs them."""
    fine = True
    for kind, name in (("image", "scratch"), ("tarball", "scratch"), ("tarball", "busybox"), ("deb", "no libc, dpkg --root")):
        with tempfile.TemporaryDirectory() as place:
            root = Path(place) / "root"
            roots.busybox(root)
            program = install(kind, find(folder, kind), root)
            if name == "scratch":
                shutil.rmtree(root / "bin")
            Path(place).chmod(0o755)
            begin = time.monotonic()
            done = run_in_container(root, program, Path(place) / "graphs")
            fine &= bool(done)
            told(f"{kind}, {name}", done, f"the run and its flame graph {time.monotonic() - begin:.1f} s")
    return fine


def run_in_container(root, program, out, **options):
    """A profile of a shell's work in runc, with an engine's usual seccomp profile and a read-only root: the page, or None."""
    out.mkdir()
    out.chmod(0o777)
    busybox = shutil.which("busybox", path="/bin:/usr/bin")
    done = container.Container(root, [program, "--launch", "init", "-o", "/graphs", "--", "/busybox", "sh", "-c", WORK],
                               mounts=[(out, "/graphs", "rw"), (busybox, "/busybox", "ro")], **options).finish()
    page = out / "last_flamegraph.html"
    assert done.status == 0, done
    return page if page.exists() and page.stat().st_size > 10000 else None


def distroless(folder):
    """Debian's python3.11 with the libraries it needs, and no shell."""
    root = roots.unpack(roots.Apt("bookworm").closure(["python3.11"]), folder)
    for shell in ("sh", "dash", "bash"):
        (root / "usr/bin" / shell).unlink(missing_ok=True)
    return root


def in_distroless(dist):
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        root, out = distroless(Path(place) / "root"), Path(place) / "graphs"
        program = install("wheel", find(dist, "wheel"), root)
        out.mkdir()
        begin = time.monotonic()
        done = container.Container(root, [program, "--launch", "init", "-o", "/graphs", "--", "/usr/bin/python3.11", "-c",
                                          "sum(i * i % 7 for i in range(9000000))"], mounts=[(out, "/graphs", "rw")]).finish()
        fine = done.status == 0 and "<genexpr>" in (out / "last_profile.col").read_text()
        told("wheel, python 3.11 and no shell", fine, f"the run and its flame graph {time.monotonic() - begin:.1f} s" if fine else done)
        return fine


def in_debian(suite, dist, given):
    """All kinds but Alpine's, by the lines of their READMEs."""
    shop = Path(__file__).resolve().parents[1] / "live/programs/shop.py"
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        root = roots.debootstrap(Path(place) / "root", suite, ["python3-pip", "python3-venv", *(["nodejs"] if given.npm else [])])
        for kind in ("tarball", "wheel", "npm", "deb"):
            shutil.copy2(find(dist, kind), root / "srv")
        shutil.copy2(shop, root / "srv/shop.py")
        tarball, wheel, tgz, deb = (f"/srv/{find(dist, kind).name}" for kind in ("tarball", "wheel", "npm", "deb"))
        top = Path(tarball).name.removesuffix(".tar.gz")
        python = "python3 /srv/shop.py"
        fine = [first_graph(f"tarball, {suite}", root, python, f"tar -xzf {tarball} && cp {top}/pillion /usr/local/bin/ && rm -r {top}")]
        (root / "usr/local/bin/pillion").unlink()
        fine.append(first_graph(f"wheel, {suite}, pip in a venv", root, python,
                                f"python3 -m venv v && v/bin/pip -q install --no-index {wheel} >&2", "v/bin/pillion"))
        if given.uv:
            shutil.copy2(given.uv, root / "srv/uv")
            fine.append(first_graph(f"wheel, {suite}, uv", root, python,
                                    f"/srv/uv -q venv v && /srv/uv -q pip install --offline -p v {wheel} >&2", "v/bin/pillion"))
        if given.npm:
            shutil.copytree(given.npm, root / "opt/npm")
            fine.append(first_graph(f"npm, {suite}", root, "node -e 'for (let i = 0; i < 2e9; i++);'",
                                    f"node /opt/npm/bin/npm-cli.js install -g --offline --ignore-scripts --no-audit --no-fund {tgz} >&2 && "
                                    "test -L /usr/bin/pillion"))
            (root / "usr/bin/pillion").unlink(missing_ok=True)
        fine.append(first_graph(f"deb, {suite}, apt", root, python, f"apt-get -qq install -y {deb} >&2"))
        return all(fine)


def in_alpine(dist, given):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        untar(gzip.decompress(Path(given.alpine).read_bytes()), place)
        root, work = Path(place), f"sh -c '{WORK}'"
        release = (root / "etc/alpine-release").read_text().strip()
        for kind in ("apk", "tarball"):
            shutil.copy2(find(dist, kind), root / "srv")
        apk, tarball = (f"/srv/{find(dist, kind).name}" for kind in ("apk", "tarball"))
        top = Path(tarball).name.removesuffix(".tar.gz")
        return all([
            first_graph(f"apk, Alpine {release}", root, work, f"apk verify --allow-untrusted {apk} >&2 && apk add -q --no-network --allow-untrusted {apk} && "
                        f"apk info -W /usr/bin/pillion >&2"),
            chrooted(root, "apk del -q --no-network pillion; ! command -v pillion").status == 0 and
            first_graph(f"tarball, Alpine {release}", root, work, f"tar -xzf {tarball} && cp {top}/pillion /usr/local/bin/ && rm -r {top}")])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--alpine", help="Alpine's mini root file system")
    parser.add_argument("--npm", help="npm's own package, unpacked")
    parser.add_argument("--uv", help="the program uv")
    parser.add_argument("--suite", action="append", default=[], help="of Debian (bookworm and trixie)")
    given = parser.parse_args()
    process.become_subreaper()
    dist = given.folder.resolve()
    fine = [in_containers(dist), in_distroless(dist), *(in_debian(suite, dist, given) for suite in given.suite or ["bookworm", "trixie"])]
    if given.alpine:
        fine.append(in_alpine(dist, given))
    else:
        print("apk, Alpine: not run, no --alpine")
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())

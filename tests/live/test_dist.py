"""What `make dist` makes: its names, formats and bytes; and that what each kind's installer puts there runs.

With DIST=FOLDER it is that release which is tested (make release-check); else one is packed of what is built.
"""
import csv
import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from base64 import urlsafe_b64encode
from hashlib import sha1, sha256
from pathlib import Path

import pytest

from lab import emulate, packages, process, root, tiers

pytestmark = pytest.mark.measures

KINDS = ("tarball", "wheel", "npm", "deb", "apk", "image")
ARCHS = ("x86_64", "aarch64")
EPOCH = "1790000000"


def environment(**more):
    """Without what an outer make hands down."""
    return {**{name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "ARCH"))}, **more}


@pytest.fixture(scope="module")
def built():
    reason = emulate.compiler_missing("aarch64")
    if reason:
        pytest.skip(reason)
    programs = [emulate.binary(arch) for arch in ARCHS]
    assert all(program.exists() for program in programs), "make product product-aarch64 first"
    return programs


@pytest.fixture(scope="module")
def dist(repository, built, tmp_path_factory):
    if os.environ.get("DIST"):
        return Path(os.environ["DIST"])
    folder = tmp_path_factory.mktemp("dist")
    done = process.run(["make", "-C", repository, "dist", f"DIST={folder}", "DIST_OPTIONS=--no-debug"],
                       env=environment(SOURCE_DATE_EPOCH=EPOCH), timeout=120)
    assert done.status == 0, done
    return folder


@pytest.fixture(scope="module")
def version(repository):
    return (repository / "VERSION").read_text().strip()


def both(test):
    return pytest.mark.parametrize("arch", ARCHS)(test)


def program_of(arch):
    return emulate.binary(arch).read_bytes()


# ---- The whole

def test_a_release_is_these_files_and_their_sums(dist, version):
    tags = "manylinux2014_{0}.manylinux_2_17_{0}.musllinux_1_1_{0}"
    wanted = {"SHA256SUMS", f"pillion-{version}.tgz", f"pillion-{version}-image.tar", f"pillion-{version}-provenance.txt",
              *(f"pillion_{version}_{machine}.deb" for machine in ("amd64", "arm64")),
              *(f"pillion-{version}{rest.format(arch)}" for arch in ARCHS
                for rest in ("-linux-{}", "-linux-{}.tar.gz", "-linux-{}.spdx.json", "-r0-{}.apk", f"-py3-none-{tags}.whl"))}
    debug = {f"pillion-{version}-linux-{arch}-debug.tar.xz" for arch in ARCHS}
    there = {path.name for path in dist.iterdir()}
    assert there - debug == wanted
    done = process.run(["sha256sum", "--strict", "-c", "SHA256SUMS"], cwd=dist)
    assert done.status == 0 and done.out.count(": OK\n") == len(there) - 1, done


@both
def test_what_is_built_is_not_built_again(dist, repository, arch):
    done = process.run(["make", "-q", "-C", repository, f"ARCH={arch}", "product"], env=environment(), timeout=60)
    assert done.status == 0, done


@pytest.mark.root
def test_another_folder_zone_umask_and_machine_name_make_the_same_bytes(dist, repository, workdir):
    epoch = re.search(r"^SOURCE_DATE_EPOCH: (\d+)$", next(dist.glob("*-provenance.txt")).read_text(), re.M)[1]
    (workdir / "another").mkdir()
    script = f'hostname another; umask 077; mount --bind {repository} another && cd another && exec "$@"'
    done = process.run(["unshare", "--mount", "--uts", "sh", "-c", script, "sh", "/usr/bin/python3", "build/dist/dist.py", "--to", workdir / "dist",
                        "--no-debug", "--arch", "x86_64=" + ("" if emulate.HERE == "x86_64" else "x86_64-linux-gnu-"),
                        "--arch", "aarch64=" + ("" if emulate.HERE == "aarch64" else "aarch64-linux-gnu-")],
                       cwd=workdir, env=environment(SOURCE_DATE_EPOCH=epoch, TZ="Asia/Tokyo", LC_ALL="C", USER="another"), timeout=60)
    assert done.status == 0, done
    made = {path.name: path.read_bytes() for path in (workdir / "dist").iterdir()}
    sums = made.pop("SHA256SUMS").decode()
    assert len(made) == 15
    assert [name for name, data in made.items() if data != (dist / name).read_bytes()] == []
    assert set(sums.splitlines()) <= set((dist / "SHA256SUMS").read_text().splitlines())


def test_no_time_but_the_given_one_and_no_owner_is_in_an_archive(dist):
    epoch = int(re.search(r"^SOURCE_DATE_EPOCH: (\d+)$", next(dist.glob("*-provenance.txt")).read_text(), re.M)[1])
    seen = 0
    for path in [*dist.glob("*.tar.gz"), *dist.glob("*.tgz"), *dist.glob("*.tar")]:
        with tarfile.open(path) as archive:
            names = [member.name for member in archive]
            assert names == sorted(names)
            for member in archive:
                assert (member.mtime, member.uid, member.gid, member.uname, member.gname) == (epoch, 0, 0, "", ""), (path, member)
                assert member.mode in (0o644, 0o755)
                seen += 1
    assert seen > 40
    for path in [*dist.glob("*.tar.gz"), *dist.glob("*.tgz"), *dist.glob("*.apk")]:
        assert path.read_bytes()[:9] == b"\x1f\x8b\x08\0\0\0\0\0\x02", "no name, no time"


@pytest.mark.parametrize("version, wanted", [("1.0", None), ("1.0.0-beta", None), ("v1.0.0", None), ("01.0.0", None),
                                             ("1.2.0-rc.3", ("1.2.0~rc3", "1.2.0rc3", "1.2.0_rc3-r0", "1.2.0-rc.3"))])
def test_a_version_that_is_none_is_refused_and_a_candidate_sorts_before_its_release(repository, built, workdir, version, wanted):
    for name in ("LICENSE", "NOTICE", "CHANGELOG.md", "vendor", "build"):
        (workdir / name).symlink_to(repository / name)
    (workdir / "VERSION").write_text(version + "\n")
    done = process.run(["/usr/bin/python3", "build/dist/dist.py", "--to", workdir / "dist", "--no-debug", "--arch", "x86_64="],
                       cwd=workdir, env=environment(SOURCE_DATE_EPOCH=EPOCH), timeout=60)
    if wanted is None:
        assert done.status == 1 and done.err == f"dist: VERSION is '{version}', not X.Y.Z or X.Y.Z-rc.N\n" and not (workdir / "dist").exists()
        return
    assert done.status == 0, done
    deb, wheel, apk, npm = wanted
    assert {f"pillion_{deb}_amd64.deb", f"pillion-{apk}-x86_64.apk", f"pillion-{npm}.tgz"} <= {path.name for path in (workdir / "dist").iterdir()}
    assert (workdir / "dist").joinpath(packages.find(workdir / "dist", "wheel").name).name.startswith(f"pillion-{wheel}-py3-")
    assert process.run(["dpkg", "--compare-versions", deb, "lt", "1.2.0"]).status == 0


def test_without_git_and_a_time_nothing_is_made(repository, built, workdir):
    for name in ("LICENSE", "NOTICE", "CHANGELOG.md", "VERSION", "vendor", "build"):
        (workdir / name).symlink_to(repository / name)
    done = process.run(["/usr/bin/python3", "build/dist/dist.py", "--to", workdir / "dist", "--arch", "x86_64="], cwd=workdir,
                       env={**environment(), "GIT_CEILING_DIRECTORIES": "/", "SOURCE_DATE_EPOCH": ""})
    assert done.status == 1 and "set SOURCE_DATE_EPOCH" in done.err and not (workdir / "dist").exists(), done


# ---- What is in it, and under which licence

@both
def test_the_parts_list_names_what_the_linker_took_and_nothing_else(dist, arch, repository):
    document = json.loads(next(dist.glob(f"*-{arch}.spdx.json")).read_text())
    assert document["spdxVersion"] == "SPDX-2.3" and document["dataLicense"] == "CC0-1.0"
    parts = {part["name"]: part for part in document["packages"]}
    said = process.run([*emulate.prefix(arch), emulate.binary(arch), "--version"]).out if not emulate.missing(arch) else ""
    libraries = dict(row.split(" ") for row in re.search(r"^libraries: (.+)$", said, re.M)[1].split(", ")) if said else {}
    assert libraries == {} or {name: part["versionInfo"] for name, part in parts.items() if name not in ("pillion", "libgcc")} == libraries
    linked = set(re.findall(r"/lib(\w+)\.a\(", (emulate.binary(arch).parent / "pillion.map").read_text().split("\nMemory Configuration\n")[0]))
    assert {"elfutils" if name in ("elf", "dw") else {"c": "musl", "gcc": "libgcc"}.get(name, name) for name in linked} | {"pillion", "roots"} == set(parts)
    file, = document["files"]
    assert {row["algorithm"]: row["checksumValue"] for row in file["checksums"]} == {
        "SHA1": sha1(program_of(arch)).hexdigest(), "SHA256": sha256(program_of(arch)).hexdigest()}
    ids = {row["SPDXID"] for row in [document, *document["packages"], *document["files"]]}
    assert all({row["spdxElementId"], row["relatedSpdxElement"]} <= ids for row in document["relationships"])
    kinds = [row["relationshipType"] for row in document["relationships"]]
    assert sorted(kinds) == ["DESCRIBES", "GENERATED_FROM", *["STATIC_LINK"] * (len(parts) - 1)]
    own = {row["licenseId"] for row in document["hasExtractedLicensingInfos"]}
    assert {part["licenseDeclared"] for part in parts.values() if "LicenseRef" in part["licenseDeclared"]} == own
    notice = (repository / "NOTICE").read_text()
    for name, part in parts.items():
        called = {"bearssl": "BearSSL", "mbedtls": "mbedTLS", "lzma": "liblzma", "iberty": "libiberty"}.get(name, name)
        row = re.search(rf"^{called} +(\S+)? +", notice, re.M)
        assert name == "pillion" or row and row[1] in (part["versionInfo"], "the"), name


def test_a_library_that_nobody_knows_ends_the_making(repository):
    """Of the maker itself: an archive in the map that is in no row of the manifest."""
    script = ("import sys; sys.path.insert(0, 'build/dist'); import sbom, packages\n"
              "r = packages.Release('1.0.0', 0, 'c', '', 'm', programs={'x86_64': b''}, pages={}, licences={'NOTICE': b''})\n"
              "sbom.document(r, 'x86_64', 'a/libnew.a(b.o)\\n\\nMemory Configuration\\n', '', '12')")
    done = process.run([sys.executable, "-B", "-c", script], cwd=repository)
    assert done.status == 1 and done.err == "dist: linked, and not in vendor/manifest: new\n"


def texts_of(dist, kind, arch, folder):
    """Every file of a package, by its last name."""
    path = packages.find(dist, kind, arch)
    if kind == "wheel":
        with zipfile.ZipFile(path) as archive:
            return {name.rpartition("/")[2]: archive.read(name) for name in archive.namelist()}
    if kind == "image":
        config, layer = packages.Layout(path).images()[packages.MACHINES[arch]]
        packages.untar(layer, folder)
        (folder / "NOTICE").write_text(config["config"]["Labels"]["pillion.notice"])
    elif kind == "deb":
        packages.process_ok(["dpkg-deb", "-x", path, folder])
    else:
        packages.untar(packages.apk_streams(path)[1][1] if kind == "apk" else packages.apk_streams(path)[0][1], folder)
    return {file.name: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@both
@pytest.mark.parametrize("kind", KINDS)
def test_a_package_holds_the_built_program_and_the_licences(dist, kind, arch, workdir, repository):
    files = texts_of(dist, kind, arch, workdir)
    assert files[f"pillion-{arch}" if kind == "npm" else "pillion"] == program_of(arch)
    assert files["NOTICE"] == (repository / "NOTICE").read_bytes()
    if kind != "image":
        assert files["LICENSE"] == (repository / "LICENSE").read_bytes()
        assert b"GNU LESSER GENERAL PUBLIC LICENSE" in files["LGPL-3.0.txt"] and b"GNU GENERAL PUBLIC LICENSE" in files["GPL-3.0.txt"]
    else:
        assert set(files) == {"NOTICE", "pillion"}, "in the layer, one file"


# ---- Each format, by other readers than its writer

@both
def test_a_wheel_is_what_its_record_says(dist, version, arch):
    with zipfile.ZipFile(packages.find(dist, "wheel", arch)) as archive:
        assert archive.testzip() is None
        info = f"pillion-{version}.dist-info"
        rows = {name: (digest, size) for name, digest, size in csv.reader(io.StringIO(archive.read(f"{info}/RECORD").decode()))}
        assert rows.pop(f"{info}/RECORD") == ("", "")
        for name, (digest, size) in rows.items():
            data = archive.read(name)
            assert (digest, int(size)) == (f"sha256={urlsafe_b64encode(sha256(data).digest()).rstrip(b'=').decode()}", len(data))
        assert set(archive.namelist()) == {*rows, f"{info}/RECORD"}
        script = archive.getinfo(f"pillion-{version}.data/scripts/pillion")
        assert stat.S_IMODE(script.external_attr >> 16) == 0o755 and script.create_system == 3
        named = archive.read(f"{info}/WHEEL").decode()
        tags = set(re.findall(r"^Tag: (.+)$", named, re.M))
        assert tags == {f"py3-none-{tag}" for tag in Path(archive.filename).stem.split("-")[-1].split(".")} and len(tags) == 3
        assert "Root-Is-Purelib: false" in named
        assert f"\nVersion: {version}\n" in archive.read(f"{info}/METADATA").decode()


@pytest.mark.parametrize("arch, platform", [("x86_64", "musllinux_1_1_x86_64"), ("aarch64", "manylinux_2_17_aarch64")])
def test_pip_takes_the_wheel_for_its_platforms_alone(dist, arch, platform, workdir):
    pip = ["/usr/bin/python3", "-m", "pip", "-q", "install", "--no-index", "--only-binary=:all:", "--disable-pip-version-check"]
    if process.run([*pip[:3], "--version"]).status:
        pytest.skip("not installed: python3-pip")
    other = packages.find(dist, "wheel", "aarch64" if arch == "x86_64" else "x86_64")
    done = process.run([*pip, "--platform", platform, "--target", workdir / "t", packages.find(dist, "wheel", arch)])
    assert done.status == 0 and (workdir / "t/bin/pillion").read_bytes() == program_of(arch), done
    assert "not a supported wheel" in process.run([*pip, "--platform", platform, "--target", workdir / "u", other]).err


@both
def test_dpkg_deb_reads_the_deb(dist, version, arch):
    path = packages.find(dist, "deb", arch)
    fields = process.run(["dpkg-deb", "--field", path]).out
    assert f"Version: {version}\nArchitecture: {packages.MACHINES[arch]}\n" in fields and "Depends" not in fields
    listed = process.run(["dpkg-deb", "--contents", path]).out
    assert re.search(r"^-rwxr-xr-x (root/root|0/0) .* \./usr/bin/pillion$", listed, re.M), listed
    assert all(re.match(r"[d-]rw.r-.r-. (root/root|0/0) ", line) for line in listed.splitlines())


@both
def test_an_apk_is_two_streams_of_which_the_first_names_the_second(dist, version, arch):
    path = packages.find(dist, "apk", arch)
    (_, control), (packed, data) = packages.apk_streams(path)
    known = packages.apk_information(path)
    assert (known["pkgname"], known["pkgver"], known["arch"]) == ("pillion", f"{version}-r0", arch) and "depend" not in known
    assert known["datahash"] == sha256(packed).hexdigest()
    assert not control.endswith(bytes(1024)) and len(control) % 512 == 0, "apk reads the streams as one tar file: no end in its middle"
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        files = [member for member in archive if member.isfile()]
        assert len(files) > 7
        for member in files:
            assert member.pax_headers["APK-TOOLS.checksum.SHA1"] == sha1(archive.extractfile(member).read()).hexdigest()


def test_the_image_is_one_index_and_every_blob_is_used(dist):
    layout = packages.Layout(packages.find(dist, "image"))
    images = layout.images()
    assert set(images) == {"amd64", "arm64"}
    assert layout.read == set(layout.files)
    for config, _ in images.values():
        assert config["config"]["Entrypoint"] == ["/pillion"] and config["os"] == "linux"


@pytest.mark.parametrize("tool", [["skopeo", "inspect", "oci-archive:{}"], ["umoci", "list", "--layout", "{}"]])
def test_other_programs_read_the_image(dist, version, workdir, tool):
    reason = tiers.tool_missing(tool[0])
    if reason:
        pytest.skip(reason)
    path = packages.find(dist, "image")
    packages.untar(path.read_bytes(), workdir)
    done = process.run([part.format(path if tool[0] == "skopeo" else workdir) for part in tool])
    assert done.status == 0 and version in done.out, done


def test_the_debug_file_has_the_programs_build_id(dist, workdir):
    if not list(dist.glob("*-debug.tar.xz")):
        pytest.skip("packed without debug files, which take long; make release-check has them")
    for arch in ARCHS:
        packages.process_ok(["tar", "-xJf", next(dist.glob(f"*-{arch}-debug.tar.xz")), "-C", workdir, "--strip-components=1"])
        ids = [re.search(r"Build ID: (\w+)", process.run(["readelf", "-n", path]).out)[1]
               for path in (workdir / "pillion.debug", emulate.binary(arch))]
        assert ids[0] == ids[1]


# ---- Installed by the kind's own program, and run

@pytest.mark.root
@pytest.mark.parametrize("kind", KINDS)
def test_an_installed_package_gives_a_flame_graph(dist, kind, workdir):
    """In a root that has busybox and nothing else; the image's in none at all."""
    tool = {"npm": ["npm", "node"], "deb": ["dpkg"]}.get(kind, [])
    reason = tiers.tool_missing("runc", *tool)
    if kind == "wheel" and process.run(["/usr/bin/python3", "-m", "pip", "--version"]).status:
        reason = "not installed: python3-pip"
    if reason:
        pytest.skip(reason)
    if emulate.HERE != "x86_64":
        pytest.skip("the containers' seccomp rules are made for x86-64")
    place = root.busybox(workdir / "root")
    for applet in ("readlink", "dirname"):
        (place / "bin" / applet).symlink_to("busybox")
    program = packages.install(kind, packages.find(dist, kind), place)
    if kind == "image":
        shutil.rmtree(place / "bin")
    page = packages.run_in_container(place, program, workdir / "graphs")
    assert page and "busybox" in (workdir / "graphs/last_profile.col").read_text()


def test_npm_gives_the_processor_of_the_machine_and_keeps_the_pid(dist, workdir):
    packages.untar(packages.apk_streams(packages.find(dist, "npm"))[0][1], workdir)
    about = json.loads((workdir / "package/package.json").read_text())
    assert about["os"] == ["linux"] and about["cpu"] == ["x64", "arm64"] and "scripts" not in about and "dependencies" not in about
    (workdir / "pillion").symlink_to("package/bin/pillion")
    done = process.run([workdir / "pillion", "--version"])
    assert done.status == 0 and re.match(rf"pillion \S+\n{emulate.HERE} static", done.out), done
    script = 'echo $$; exec "$0" --perf-mode disabled -o . -- sh -c "echo \\$\\$"'
    ran = process.run(["sh", "-c", script, workdir / "pillion"], cwd=workdir).out.split()
    assert len(ran) == 2 and ran[0] == ran[1], "neither node nor a shell stays in front of the command"
    process.settle(15)


@pytest.mark.parametrize("kind", KINDS)
def test_the_other_processors_program_runs(dist, kind, workdir, version):
    reason = emulate.missing("aarch64")
    if reason:
        pytest.skip(reason)
    texts_of(dist, kind, "aarch64", workdir)
    if kind == "wheel":
        with zipfile.ZipFile(packages.find(dist, kind, "aarch64")) as archive:
            archive.extractall(workdir)
    program = next(path for path in workdir.rglob("pillion*") if path.is_file() and path.read_bytes() == program_of("aarch64"))
    program.chmod(0o755)
    done = process.run([*emulate.prefix("aarch64"), program, "--version"])
    assert done.out.startswith(f"pillion {version}\naarch64 static musl"), done
    done = process.run([*emulate.prefix("aarch64"), program, "-o", workdir, "--", "sh", "-c", "exit 7"])
    assert done.status == 7
    process.settle(15)


def test_what_is_packed_is_committed_or_it_is_said(dist, repository):
    known = dict(row.split(": ", 1) for row in next(dist.glob("*-provenance.txt")).read_text().splitlines() if ": " in row)
    commit = subprocess.run(["git", "-C", repository, "rev-parse", "HEAD"], stdout=subprocess.PIPE, text=True).stdout.strip()
    assert known["commit"] == (commit or "unknown")
    assert re.fullmatch(r"\d+", known["changed files that are not committed"])
    assert "gcc" in known["x86_64"] and "ld" in known["aarch64"]

"""The file itself: static, small, complete."""
import os
import re
import subprocess

SIZE_MAX = 2 * 1024 * 1024  # as the make file has it


def readelf(*arguments):
    return subprocess.run(["readelf", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=True).stdout


def test_no_interpreter_and_no_libraries(pillion):
    assert "NEEDED" not in readelf("-dW", pillion)
    headers = readelf("-lW", pillion)
    assert "INTERP" not in headers
    # A stack that cannot be executed.
    assert re.search(r"GNU_STACK .* RW +0x", headers), headers


def test_hardened(pillion):
    """Its addresses are nobody's to know, what was relocated cannot be written, code is in pages of its own where these are small."""
    assert "DYN (Position-Independent Executable file)" in readelf("-hW", pillion)
    headers, dynamic = readelf("-lW", pillion), readelf("-dW", pillion)
    assert re.search(r"^ +GNU_RELRO ", headers, re.M) and "NOW" in dynamic and "TEXTREL" not in dynamic, headers + dynamic
    loads = re.findall(r"^ +LOAD .* (R|RW|R E) +0x\w+$", headers, re.M)
    assert loads == (["R", "R E", "RW", "RW"] if "AArch64" in readelf("-hW", pillion) else ["R", "R E", "R", "RW"]), headers
    symbols = subprocess.run(["nm", f"{pillion}.debug"], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "__stack_chk_fail" in symbols


def test_size(pillion, record_property):
    size = os.path.getsize(pillion)
    record_property("size", size)
    assert size <= SIZE_MAX, size


def test_stripped_and_of_no_machine(pillion, repository):
    assert ".symtab" not in readelf("-SW", pillion)
    assert ".debug_info" not in readelf("-SW", pillion)
    content = pillion.read_bytes()
    assert os.fsencode(str(repository) + "/src") not in content, "a path of the build is in the binary"


def test_a_build_id_to_find_its_symbols_by(pillion):
    assert re.search(r"Build ID: [0-9a-f]{40}", readelf("-nW", pillion))


def test_runs_without_environment_from_a_read_only_folder(run, pillion, workdir):
    done = run(["/usr/bin/env", "-i", pillion, "--version"])
    assert done.status == 0 and re.match(r"pillion \d+\.\d+\.\d+\n", done.out), done


def test_install_copies_itself(run, pillion, workdir):
    done = run([pillion, "install", workdir])
    assert done.status == 0, done
    copy = workdir / "pillion"
    assert copy.read_bytes() == pillion.read_bytes() and copy.stat().st_mode & 0o777 == 0o755
    assert run([copy, "--version"]).status == 0
    assert sorted(p.name for p in workdir.iterdir()) == ["pillion"]


def test_install_where_nothing_can_be_written(run, pillion, workdir):
    done = run([pillion, "install", "/proc"])
    assert done.status == 1 and len(done.err.splitlines()) == 1 and "/proc" in done.err, done
    assert "name a folder that can be written: pillion install DIR" in done.err and "-o DIR" not in done.err, done

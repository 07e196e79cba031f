"""What make promises about itself."""
import os
import re
from pathlib import Path

import pytest

from lab import process

pytestmark = pytest.mark.measures


def plain_environment():
    """Without what an outer make hands down."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "ARCH"))}


def test_a_second_make_does_nothing(repository, pillion):
    before = pillion.stat().st_mtime_ns
    done = process.run(["make", "-q", "-C", repository], env=plain_environment(), timeout=60)
    assert done.status == 0, done
    assert pillion.stat().st_mtime_ns == before


def test_help_names_every_goal_a_person_types(repository):
    done = process.run(["make", "-s", "-C", repository, "help"], env=plain_environment())
    for goal in ("demo", "test", "setup", "bench", "clean"):
        assert f"make {goal}" in done.out, done
    assert done.status == 0


def machine_without(names, folder):
    """The PATH of a machine that has this one's programs but those whose names begin so."""
    folder.mkdir()
    for place in ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for program in sorted(Path(place).glob("*")):
            if not program.name.startswith(names) and not (folder / program.name).is_symlink():
                (folder / program.name).symlink_to(program)
    return {"PATH": str(folder), "HOME": str(folder)}


def test_without_dpkg_the_first_make_names_all_tools_that_are_missing_and_stops(unbuilt, workdir):
    bare = machine_without(("dpkg", "apt", "gcc", "bzip2", "xz"), workdir / "bin")
    done = process.run(["make", "-C", unbuilt], env=bare, timeout=60)
    said = [line for line in done.err.splitlines() if not line.startswith("make")]
    assert done.status != 0
    assert said[0] == "setup: the build needs, and this machine lacks: gcc, bzip2, xz", done
    assert len(said) == 2 and "apt" not in said[1], done
    assert not (unbuilt / "build/out/tarballs").exists()


def test_without_dpkg_nothing_is_said_where_the_tools_are_there(repository, workdir):
    whole = machine_without(("dpkg", "apt"), workdir / "bin")
    done = process.run(["sh", "build/setup.sh", "build", "demo"], cwd=repository, env=whole)
    assert (done.status, done.out, done.err) == (0, "", "")


def test_where_there_is_apt_the_command_that_installs_is_shown(repository, workdir):
    bare = machine_without(("bzip2",), workdir / "bin")
    (workdir / "bin/apt-get").unlink(missing_ok=True)
    (workdir / "bin/apt-get").symlink_to("/bin/true")
    done = process.run(["sh", "build/setup.sh", "tools"], cwd=repository, env=bare)
    assert done.status == 1 and "lacks: bzip2\n" in done.err, done
    assert "apt-get install -y --no-install-recommends gcc libc6-dev" in done.err, done


@pytest.mark.parametrize("python, seen", [("/usr/bin/python3", r"run_day \(\S*/shop.py"), ("false", "run_day;")])
def test_the_demo_is_a_python_program_where_there_is_a_python(repository, python, seen):
    done = process.run(["make", "-C", repository, "demo", f"PYTHON={python}"], env=plain_environment(), timeout=120)
    assert done.status == 0, done
    assert re.search(r"^(/.*)/last_flamegraph.html\n\1/last_profile.col\n\1/last_profile.pprof$", done.out, re.M), done
    assert re.search(seen, (repository / "build/out/demo/last_profile.col").read_text())

"""What make promises about itself."""
import os

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

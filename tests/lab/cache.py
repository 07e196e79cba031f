"""build/lab: what the lab fetched or unpacked and keeps between runs. Ignored by git, safe to delete."""
import contextlib
import fcntl
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "build" / "lab"


def folder(*parts):
    path = FOLDER.joinpath(*parts)
    path.mkdir(parents=True, exist_ok=True)
    ignore = FOLDER / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    return path


@contextlib.contextmanager
def locked(name):
    """Nobody else makes the same thing of build/lab at the same time, in this run or another one."""
    with open(folder("locks") / name, "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def filled():
    """Whether a kernel was fetched before, so that the net tier can run without a network."""
    return any(FOLDER.glob("kernel/*/vmlinuz"))

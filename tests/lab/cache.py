"""build/lab: what the lab fetched or unpacked and keeps between runs. Ignored by git, safe to delete."""
import contextlib
import fcntl
import shutil
import threading
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "build" / "lab"


def folder(*parts):
    path = FOLDER.joinpath(*parts)
    path.mkdir(parents=True, exist_ok=True)
    ignore = FOLDER / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    return path


def put(file, folder):
    """A copy of the file in that folder, which others may be reading or writing as well."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f".{file.name}.{threading.get_native_id()}.part"
    shutil.copy(file, part)
    part.replace(folder / file.name)


@contextlib.contextmanager
def locked(name):
    """Nobody else makes the same thing of build/lab at the same time, in this run or another one."""
    with open(folder("locks") / name, "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def filled():
    """Whether a kernel was fetched before, so that the net tier can run without a network."""
    return any(FOLDER.glob("kernel/*/vmlinuz"))

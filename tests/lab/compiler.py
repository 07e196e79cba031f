"""Compiling the bundled test programs, kept in build/lab by content, so that a second run compiles nothing."""
import hashlib
import os
import shutil
import subprocess
import threading
from pathlib import Path

from . import cache

# Every function keeps its frame: what the tests expect to see is what the source says.
C_FLAGS = ["-O2", "-g", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer", "-fno-optimize-sibling-calls", "-pthread"]
SYSTEM = "/usr/bin:/usr/sbin:/bin:/sbin"


def _command(source, target, flags):
    if source.suffix == ".c":
        return ["gcc", "-std=gnu11", "-Wall", "-Wextra", *C_FLAGS, *flags, "-o", target, source, "-lm"]
    if source.suffix == ".cc":
        return ["g++", "-std=c++17", "-Wall", "-Wextra", *C_FLAGS, *flags, "-o", target, source]
    if source.suffix == ".rs":
        rustc = shutil.which("rustc", path=SYSTEM) or shutil.which("rustc")
        return [rustc, "-O", "-g", "-C", "force-frame-pointers=yes", *flags, "-o", target, source]
    raise ValueError(source)


def compile_file(source, name, *flags):
    """The path of the program made from a source file."""
    source = Path(source)
    identity = hashlib.sha256(source.read_bytes() + repr((source.suffix, C_FLAGS, flags)).encode()).hexdigest()[:16]
    folder = cache.folder("programs", identity)
    target = folder / name
    if not target.exists():
        part = folder / f"{name}.{threading.get_native_id()}.part"
        done = subprocess.run([str(a) for a in _command(source, part, flags)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise RuntimeError(f"{source} does not compile:\n{done.stdout}")
        part.rename(target)
    return target


def program(folder, name, *flags, called=None):
    """A bundled program by name; `called` gives the executable another file name."""
    for suffix in (".c", ".cc", ".rs"):
        source = folder / (name + suffix)
        if source.exists():
            return compile_file(source, called or name, *flags)
    raise FileNotFoundError(f"no {name}.c, .cc or .rs in {folder}")

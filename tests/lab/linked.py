"""Programs of the tests that are linked with the product's own objects, as the product is: static, against musl.

    linked.program("tests/live/programs/peer.c", "aarch64", product)     its path, kept in build/lab
"""
import subprocess
import threading
from pathlib import Path

from . import cache, emulate

REPOSITORY = Path(__file__).resolve().parents[2]
ARCHIVES = ("dw", "elf", "lzma", "bearssl", "mbedtls", "iberty", "zstd", "zlib")


class Fails(Exception):
    """Why it does not link."""


def program(source, arch, product):
    """`product` is the built program of that processor; what is older than it is linked anew."""
    source = REPOSITORY / source
    out = Path(product).parent
    target = cache.folder("programs", f"linked-{arch}") / source.stem
    if target.exists() and all(each.stat().st_mtime < target.stat().st_mtime for each in (Path(product), source)):
        return target
    specs = out / "vendor" / "lib" / "musl-gcc.specs"
    objects = [o for o in (out / "objects.list").read_text().split() if not o.endswith("/obj/main.o")]
    compiler = "gcc" if arch == emulate.HERE else f"{arch}-linux-gnu-gcc"
    part = target.with_name(f"{target.name}.{threading.get_native_id()}.part")  # several guests begin at once
    done = subprocess.run(
        [compiler, f"-specs={specs}", "-std=gnu11", "-D_GNU_SOURCE=", "-Isrc", f"-I{out}/vendor/include", "-Wall", "-Wextra", "-Werror", "-O2",
         "-s", "-fno-pie", "-static", "-no-pie", "-o", part, source, *objects,
         *(specs.with_name(f"lib{archive}.a") for archive in ARCHIVES)],
        cwd=REPOSITORY, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Fails(f"{source.stem} does not link: {done.stderr[-1000:]}")
    part.rename(target)
    return target

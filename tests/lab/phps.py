#!/usr/bin/python3
"""PHPs of several versions (lab/versions.py), all of Debian, which builds them without threads; each with its FastCGI server.

    tests/lab/phps.py              lists all, and why others are not there; LAB_OFFLINE=1: without fetching

The one for threads is built from Debian's source (some 5 to 25 minutes), without extensions: the program, and the library for others.
"""
import os
import shutil
import sys
from pathlib import Path

if __package__:
    from . import cache, suite, tiers, versions
else:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from lab import cache, suite, tiers, versions

Missing = versions.Missing
TELL = ["-n", "-r", "echo PHP_VERSION;"]
SOURCE = ("bookworm", "php8.2")
CONFIGURE = ["--disable-all", "--enable-cli", "--disable-cgi", "--disable-phpdbg", "--enable-embed=shared", "--enable-zts",
             "CFLAGS=-O2 -g0"]


def threads():
    """php and libphp.so, stripped as a distribution's are."""
    if tiers.tool_missing("gcc", "make"):
        raise Missing(tiers.tool_missing("gcc", "make"))
    target = cache.folder("php") / "zts"
    with cache.locked("php-zts"):
        if not target.exists():
            if os.environ.get("LAB_OFFLINE"):
                raise Missing("LAB_OFFLINE is set and it is not in build/lab")
            part = target.with_name(".zts.part")
            shutil.rmtree(part, ignore_errors=True)
            source = suite.source(*SOURCE, part / "source")
            versions.step(["./configure", *CONFIGURE], source)
            versions.step(["make", "-s", f"-j{os.cpu_count()}"], source)
            versions.step(["strip", "-o", part / "php", "sapi/cli/php"], source)
            versions.step(["strip", "-o", part / "libphp.so", "libs/libphp.so"], source)
            shutil.rmtree(source)
            part.rename(target)
    return versions.Interpreter([target / "php"], TELL)


def apache():
    """A root with Apache, whose workers run PHP."""
    if os.geteuid() != 0:
        raise Missing("wants root (chroot)")
    return versions.unpacked("php", "apache", "bookworm", ["libapache2-mod-php8.2"])


def is_kept(name):
    """Whether it is here already, or is the machine's."""
    return name == "host" or (cache.folder("php") / name).exists()


ALL = versions.Versions("php", {"bullseye": ("bullseye", "php7.4", "php7.4-cli", "php7.4-fpm", "php7.4-opcache"),
                                "trixie": ("trixie", "php8.4", "php8.4-cli", "php8.4-fpm", "php8.4-opcache"),
                                # whose opcache is built in
                                "experimental": ("sid experimental", "php8.6", "php8.6-cli", "php8.6-fpm")},
                        TELL, {"zts": threads})
NAMES, get = ALL.names, ALL.get

if __name__ == "__main__":
    sys.exit(ALL.main())

#!/usr/bin/python3
"""PHPs of several versions (lab/versions.py), all of Debian, which builds them without threads; each with its FastCGI server.

    tests/lab/phps.py              lists all, and why others are not there; LAB_OFFLINE=1: without fetching
"""
import sys
from pathlib import Path

if __package__:
    from . import versions
else:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from lab import versions

Missing = versions.Missing
ALL = versions.Versions("php", {"bullseye": ("bullseye", "php7.4", "php7.4-cli", "php7.4-fpm", "php7.4-opcache"),
                                "trixie": ("trixie", "php8.4", "php8.4-cli", "php8.4-fpm", "php8.4-opcache"),
                                # whose opcache is built in
                                "experimental": ("sid experimental", "php8.5", "php8.5-cli", "php8.5-fpm")},
                        ["-n", "-r", "echo PHP_VERSION;"])
NAMES, get = ALL.names, ALL.get

if __name__ == "__main__":
    sys.exit(ALL.main())

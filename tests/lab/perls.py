#!/usr/bin/python3
"""Perls of several versions (lab/versions.py), all of Debian, which builds them with threads.

    tests/lab/perls.py              lists all, and why others are not there; LAB_OFFLINE=1: without fetching
"""
import sys
from pathlib import Path

if __package__:
    from . import versions
else:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from lab import versions

Missing = versions.Missing
ALL = versions.Versions("perl", {"bullseye": ("bullseye", "perl"), "trixie": ("trixie", "perl"), "sid": ("sid", "perl")},
                        ["-e", 'printf "%vd", $^V'])
NAMES, get = ALL.names, ALL.get

if __name__ == "__main__":
    sys.exit(ALL.main())

"""The three tiers of tests and why one cannot run here: None, or the reason in words."""
import functools
import os
import shutil

from . import cache


def root_missing():
    if os.geteuid() != 0:
        return "wants root"
    return None


@functools.lru_cache(maxsize=None)
def net_missing():
    """`net` tests work from build/lab once it is filled; filling it wants root and a package mirror."""
    if cache.filled():
        return None
    if os.environ.get("LAB_OFFLINE"):
        return "LAB_OFFLINE is set and build/lab is empty"
    if os.geteuid() != 0:
        return "wants root to fill build/lab"
    return None


def tool_missing(*names):
    missing = [name for name in names if shutil.which(name, path="/usr/local/sbin:/usr/sbin:/sbin:" + os.environ.get("PATH", "")) is None]
    return f"not installed: {', '.join(missing)}" if missing else None

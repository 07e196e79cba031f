#!/usr/bin/python3
"""Rubies of several versions (lab/versions.py), all of Debian; one with musl, and one of 3.3 with YJIT.

    tests/lab/rubies.py              lists all, and why others are not there; LAB_OFFLINE=1: without fetching

These two are built from Debian's source (some minutes): the interpreter alone, without extensions.
"""
import functools
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
TELL = ["-e", "print RUBY_VERSION"]
# Both have the interpreter alone, without extensions.
PLAIN = ["debugflags=-g0", "--with-baseruby=/usr/bin/ruby", "--without-gmp", "--disable-install-doc", "--disable-dtrace", "--disable-rpath"]
BUILT = {
    "musl": (("bookworm", "ruby3.1"), ["musl-gcc"], ["CC=musl-gcc", "optflags=-O1", "--build=x86_64-linux-musl", "--disable-yjit",
                                                     "--disable-jit-support"]),
    "yjit": (("trixie", "ruby3.3"), ["rustc"], ["optflags=-O1", "--enable-yjit", "--disable-rjit"]), # Debian's later ones have none
}
# What known_stacks.rb says has no more in it.
JSON = """
module JSON
  def self.generate(value)
    case value
    when Hash then "{#{value.map { |key, each| "#{generate(key.to_s)}:#{generate(each)}" }.join(',')}}"
    when Array then "[#{value.map { |each| generate(each) }.join(',')}]"
    when String then value.inspect.gsub('\\#', "#")
    else value.nil? ? "null" : value.to_s
    end
  end
end
"""


def build(name):
    """Its library is where it was built; of that only what is written in Ruby itself."""
    source, tools, options = BUILT[name]
    missing = tiers.tool_missing(*tools, "make", "ruby")
    if missing:
        raise Missing(missing)
    target = cache.folder("ruby") / name
    with cache.locked(f"ruby-{name}"):
        if not target.exists():
            if os.environ.get("LAB_OFFLINE"):
                raise Missing("LAB_OFFLINE is set and it is not in build/lab")
            part = target.with_name(f".{name}.part")
            shutil.rmtree(part, ignore_errors=True)
            folder = suite.source(*source, part / "source")
            versions.step(["./configure", *PLAIN, *options], folder)
            versions.step(["make", "-s", f"-j{os.cpu_count()}", "miniruby"], folder)
            versions.step(["strip", "-o", part / "ruby", "miniruby"], folder) # as Alpine's is
            shutil.rmtree(folder)
            (part / "json.rb").write_text(JSON)
            part.rename(target)
    return versions.Interpreter([target / "ruby", "-I", target], TELL)


def is_kept(name):
    """Whether it is here already, or is the machine's."""
    return name == "host" or (cache.folder("ruby") / name).exists()


ALL = versions.Versions("ruby", {"bullseye": ("bullseye", "ruby2.7"), "trixie": ("trixie", "ruby3.3"),
                                 "experimental": ("sid experimental", "ruby3.4")}, TELL, {name: functools.partial(build, name) for name in BUILT})
NAMES, get = ALL.names, ALL.get

if __name__ == "__main__":
    sys.exit(ALL.main())

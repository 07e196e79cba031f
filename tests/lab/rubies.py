#!/usr/bin/python3
"""Rubies of several versions.

    tests/lab/rubies.py              lists all, and why others are not there; LAB_OFFLINE=1: without fetching

The host's, and those of other Debian suites: a root unpacked from packages into build/lab/ruby, entered by chroot. And one with musl, built
from Debian's source (some minutes): its interpreter alone, without extensions.
"""
import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

if __package__:
    from . import cache, root, suite, tiers
else:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from lab import cache, root, suite, tiers

# name -> suites of packages, program
SUITES = {"bullseye": ("bullseye", "ruby2.7"), "trixie": ("trixie", "ruby3.3"),
          "experimental": ("sid experimental", "ruby3.4")}
NAMES = ["host", *SUITES]
SOURCE = ("bookworm", "ruby3.1")
CONFIGURE = ["CC=musl-gcc", "optflags=-O1", "debugflags=-g0", "--build=x86_64-linux-musl", "--with-baseruby=/usr/bin/ruby", "--without-gmp",
             "--disable-install-doc", "--disable-yjit", "--disable-jit-support", "--disable-dtrace", "--disable-rpath"]
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
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}


class Missing(Exception):
    """This Ruby cannot be had; the text says why."""


class Ruby:
    def __init__(self, argv, inside=None):
        self.argv, self.inside = [str(a) for a in argv], inside
        done = subprocess.run([*self.argv, "-e", "print RUBY_VERSION"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT)
        if done.returncode or not re.match(r"\d+\.\d+\.\d+$", done.stdout):
            raise Missing(f"{argv[-1]} does not start: {done.stdout.strip()[-200:]!r}")
        self.version = done.stdout
        self.minor = tuple(int(part) for part in done.stdout.split(".")[:2])

    def where(self, script, *beside):
        """The script's path for this Ruby; in a root of its own it is put there, with the files beside it."""
        if self.inside is None:
            return str(script)
        for file in (script, *beside):
            shutil.copyfile(file, Path(self.inside, "tmp", file.name))
        return f"/tmp/{Path(script).name}"

    def command(self, script, *arguments):
        return [*self.argv, self.where(script), *map(str, arguments)]


def of_suite(name):
    if os.geteuid() != 0:
        raise Missing("wants root (chroot)")
    suites, program = SUITES[name]
    target = cache.folder("ruby") / name
    with cache.locked(f"ruby-{name}"):
        if not target.exists():
            if os.environ.get("LAB_OFFLINE"):
                raise Missing("LAB_OFFLINE is set and it is not in build/lab")
            part = target.with_name(f".{name}.part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            root.unpack(suite.debs(suites, [program]), part)
            (part / "tmp").chmod(0o1777)
            subprocess.run(["mknod", "-m", "666", part / "dev" / "null", "c", "1", "3"], check=False)
            part.rename(target)
    return Ruby(["/usr/sbin/chroot", target, f"/usr/bin/{program}"], target)


def step(argv, folder):
    done = subprocess.run(argv, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Missing(f"{argv[0]} fails: {done.stdout.strip()[-500:]}")


def musl():
    """Its library is where it was built; of that only what is written in Ruby itself."""
    if tiers.tool_missing("musl-gcc", "make", "ruby"):
        raise Missing(tiers.tool_missing("musl-gcc", "make", "ruby"))
    target = cache.folder("ruby") / "musl"
    with cache.locked("ruby-musl"):
        if not target.exists():
            if os.environ.get("LAB_OFFLINE"):
                raise Missing("LAB_OFFLINE is set and it is not in build/lab")
            part = target.with_name(".musl.part")
            shutil.rmtree(part, ignore_errors=True)
            source = suite.source(*SOURCE, part / "source")
            step(["./configure", *CONFIGURE], source)
            step(["make", "-s", f"-j{os.cpu_count()}", "miniruby"], source)
            step(["strip", "-o", part / "ruby", "miniruby"], source) # as Alpine's is
            shutil.rmtree(source)
            (part / "json.rb").write_text(JSON)
            part.rename(target)
    return Ruby([target / "ruby", "-I", target])


def is_kept(name):
    """Whether it is here already, or is the machine's."""
    return name == "host" or (cache.folder("ruby") / name).exists()


@functools.lru_cache(maxsize=None)
def looked_for(name):
    """The Ruby of that name, or why it is Missing: a mirror that is not there is asked once."""
    try:
        if name == "host":
            if not shutil.which("ruby"):
                raise Missing("no ruby here")
            return Ruby([shutil.which("ruby")])
        return musl() if name == "musl" else of_suite(name)
    except (Missing, root.Unreachable) as error:
        return Missing(str(error))


def get(name):
    """The Ruby of that name; raises Missing with the reason."""
    found = looked_for(name)
    if isinstance(found, Missing):
        raise Missing(str(found))
    return found


def main():
    failed = 0
    for name in [*NAMES, "musl"]:
        try:
            print(f"{name:10} Ruby {get(name).version}", flush=True)
        except Missing as error:
            failed = 1
            print(f"{name:10} missing: {error}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())

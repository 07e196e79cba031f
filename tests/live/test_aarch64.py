"""The program built for aarch64: under qemu-user what needs no kernel of its own, the rest in an aarch64 guest."""
import re
import shutil
import subprocess
from collections import Counter

import pytest

from lab import emulate, javastacks, kernel, nodestacks, phpstacks, plstacks, profiler, rbstacks, root as roots, versions

pytestmark = pytest.mark.measures


# ---- Under qemu-user

@pytest.fixture(scope="module")
def command(emulated):
    return emulated("aarch64")


def test_version_names_the_processor(run, command):
    done = run([*command, "--version"])
    assert done.status == 0 and done.err == "", done
    assert re.match(r"pillion \d+\.\d+\.\d+\naarch64 static musl, ", done.out), done


def test_help_and_mistakes_are_those_of_the_other_processor(run, command, pillion):
    for arguments in (["--help"], ["help", "man"], ["help", "zsh"], ["--frequncy", "9"], ["render"]):
        done, same = run([*command, *arguments]), run([pillion, *arguments])
        assert (done.status, done.out, done.err) == (same.status, same.out, same.err), arguments


@pytest.mark.parametrize("name, form", [("collapsed_read/gprofiler.col", "html"), ("collapsed_read/pillion.col", "pprof"),
                                        ("pprof_read/pillion.pprof", "col"), ("pprof_read/pillion.pprof", "speedscope.json"),
                                        ("gecko_read/columns", "gecko.json"), ("perf_read/fields", "trace.json")])
def test_render_gives_the_same_bytes_on_both_processors(run, command, pillion, repository, workdir, name, form):
    """The byte order is the same; signedness of char, alignment, float conversion and the libraries are not."""
    for called, out in ((command, "there"), ([pillion], "here")):
        done = run([*called, "render", repository / "tests" / "fuzz" / name, "-o", workdir / f"{out}.{form}"])
        assert done.status == 0, done
    there, here = ((workdir / f"{out}.{form}").read_bytes() for out in ("there", "here"))
    assert there == here and len(there) > 100


def test_every_skip_of_the_unit_tests_still_names_one(repository):
    for program, test in emulate.UNIT_SKIPS:
        assert (repository / "tests" / "unit" / f"{program}.c").exists(), program
        if test is not None:
            assert f'"{test}"' in (repository / "tests" / "unit" / f"{program}.c").read_text(), test


# ---- In a guest: a kernel, perf events and /proc of its own

@pytest.fixture(scope="module")
def guest(tmp_path_factory):
    """guest(script, files, folder) -> what the script printed; the folder receives what it left in /out."""
    reason = kernel.missing("aarch64")
    if reason:
        pytest.skip(reason)
    try:
        image = kernel.kernel("bookworm", "aarch64")
        kernel.busybox(tmp_path_factory.mktemp("busybox"), "aarch64")
    except roots.Unreachable as error:
        pytest.skip(f"tier net: {error}")

    def run(script, files, folder=None, memory=384):
        status, text = kernel.boot(image, script, files, arch="aarch64", take=folder, memory=memory, timeout=600)
        assert status == 0, text
        return text
    return run


PROFILE = """
echo "paranoid $(cat /proc/sys/kernel/perf_event_paranoid)"
/pillion --launch init --perf-mode fp -o /out -- /act spin 1.5 6
echo "status $?"
while pidof pillion >/dev/null; do sleep 0.2; done
"""


@pytest.mark.alone
@pytest.mark.net
@pytest.mark.root
def test_frame_pointer_stacks_on_an_aarch64_kernel(guest, pillion_for, repository, workdir):
    act = emulate.program(repository / "tests" / "live" / "programs" / "act.c", "aarch64")
    text = guest(PROFILE, [pillion_for("aarch64"), act], workdir)
    assert "paranoid 3\n" in text and "status 6\n" in text, text
    stacks = profiler.Session(text, workdir).col.stacks
    total = sum(s.count for s in stacks)
    assert 120 < total < 200, text  # 1.5 s at 99 Hz
    stack = ["_start", "__libc_start_main", "__libc_start_call_main", "main", "deed_spin", "spin", "burn"]
    burning = [s for s in stacks if "burn" in s.frames]
    assert all(s.comm == "act" and s.frames[:7] == stack for s in burning), [s.frames for s in burning]
    # An emulated processor is late with its timer: what it loses is shown as such.
    named = sum(s.count for s in burning)
    lost = sum(s.count for s in stacks if s.frames == ["[lost]"])
    assert named > 50 and named + lost > 0.9 * total, [(s.frames, s.count) for s in stacks]


INTERPRETER = """
/pillion --launch init -f 99 --max-cpu 90 --perf-mode disabled -o /out -- {} 5 >/out/told
echo "status $?"
while pidof pillion >/dev/null; do sleep 0.2; done
"""
INTERPRETERS = {
    "ruby-trixie": ("ruby", "trixie", ["ruby"], "/usr/bin/ruby --disable-gems /srv/known_stacks.rb", rbstacks), # 3.3
    "php-bookworm": ("php", "bookworm", ["php8.2-cli"], "/usr/bin/php8.2 -n /srv/known_stacks.php", phpstacks),
    "perl-bookworm": ("perl", "bookworm", ["perl"], "/usr/bin/perl /srv/known_stacks.pl", plstacks)} # 5.36


@pytest.mark.net
@pytest.mark.root
@pytest.mark.parametrize("name", INTERPRETERS)
def test_stacks_are_those_an_interpreter_tells_on_an_aarch64_kernel(name, guest, pillion_for, repository, workdir):
    """So slow a processor shows much of the program's start, and not all that its rounds do; it is busy for several seconds before it
    reads the first stack."""
    language, suite, packages, command, stacks = INTERPRETERS[name]
    try:
        interpreter = versions.of_processor(language, suite, packages, "arm64")
    except roots.Unreachable as error:
        pytest.skip(f"tier net: {error}")
    shutil.copytree(repository / "tests" / "live" / "programs" / language, workdir / "programs" / "srv")
    text = guest(INTERPRETER.format(command), [interpreter, workdir / "programs", pillion_for("aarch64")], workdir, 1024)
    assert "status 0\n" in text, text
    known, verdicts, wrong = stacks.Known((workdir / "told").read_text()), Counter(), []
    for stack in stacks.READER.of_pprof(workdir):
        gone = any(str(frame).startswith("[code is gone]") for frame in stack.frames)
        verdict = "gone" if gone else known.judge(stack.own) if stack.own else "none"
        verdicts[verdict] += 1
        wrong += [repr(stack)] if verdict == "wrong" else []
    print(f"{name} {known.version} on aarch64: {dict(verdicts)}, {len(known.seen)} of {len(known.stacks)} stacks seen")
    assert not wrong, wrong[:3]
    assert len(known.seen) > 3 and verdicts["whole"] > 0, text


JAVA = """
/pillion --launch init -f 29 --max-cpu 90 -o /out -- /usr/lib/jvm/java-17-openjdk-arm64/bin/java -cp /srv Known 20 >/out/told
echo "status $?"
while pidof pillion >/dev/null; do sleep 0.2; done
"""


@pytest.mark.net
@pytest.mark.root
def test_java_methods_on_an_aarch64_kernel(guest, pillion_for, repository, workdir):
    """Interpreted and by both compilers. Its code is asked for when the processor finds the time: some of it is gone by then."""
    if not shutil.which("javac"):
        pytest.skip("not installed: openjdk-17-jdk-headless (javac)")
    try:
        jre = versions.of_processor("java", "bookworm", ["openjdk-17-jre-headless"], "arm64")
    except roots.Unreachable as error:
        pytest.skip(f"tier net: {error}")
    programs = workdir / "programs"
    subprocess.run(["javac", "-nowarn", "-Xlint:-options", "--release", "8", "-d", programs / "srv",
                    repository / "tests/live/programs/java/Known.java"], check=True)
    text = guest(JAVA, [jre, programs, pillion_for("aarch64")], workdir / "taken", 2500)
    session = profiler.Session(text, workdir / "taken")
    verdicts, wrong = javastacks.judged(session)
    seen = {method for stack in session.col.stacks for _, method in javastacks.own_names(stack.frames)}
    reached = sum(s.count for s in session.col.stacks if s.frames[0] == "[truncated]"), sum(s.count for s in session.col.stacks)
    print(verdicts, "truncated, all:", reached, sorted(seen))
    assert "status 0\n" in text and verdicts["good"] > 40 and verdicts["wrong"] <= 0.02 * verdicts["good"], (text, wrong[:3])
    assert reached[0] < 0.03 * reached[1] + 1 and {"round", "even", "odd"} <= seen, text


NODE = """
/pillion --launch init -f 29 --max-cpu 90 -o /out -- /usr/bin/node /srv/known.js 20 >/out/told
echo "status $?"
while pidof pillion >/dev/null; do sleep 0.2; done
"""


@pytest.mark.net
@pytest.mark.root
def test_javascript_on_an_aarch64_kernel(guest, pillion_for, repository, workdir):
    """V8 in a library without symbols. Its code is asked for when the processor finds the time: some of it is gone by then.
    The first reading of node takes an emulated processor some seconds; what is sampled meanwhile is lost in full rings."""
    try:
        node = versions.of_processor("node", "bookworm", ["nodejs"], "arm64")
    except roots.Unreachable as error:
        pytest.skip(f"tier net: {error}")
    shutil.copytree(repository / "tests/live/programs/node", workdir / "programs" / "srv")
    text = guest(NODE, [node, workdir / "programs", pillion_for("aarch64")], workdir / "taken", 2500)
    session = profiler.Session(text, workdir / "taken")
    verdicts, wrong = nodestacks.judged(session)
    seen = {function for stack in session.col.stacks for _, function in nodestacks.own_names(stack.frames)}
    print(verdicts, sorted(seen))
    assert "status 0\n" in text and verdicts["good"] > 40 and verdicts["wrong"] <= 0.02 * verdicts["good"], (text, wrong[:3])
    assert {"round", "spin"} <= seen and len(seen & set(nodestacks.CALLERS)) > 10, text  # even and odd have one or two samples of 100


# busybox has no `nice`, which one of the tests asks.
UNIT = """
printf '#!/bin/sh\ncut -d " " -f 19 /proc/self/stat\n' >/bin/nice
chmod 755 /bin/nice
cd /tmp
for program in {}; do echo "# $program"; /$program 2>&1 || echo "# $program failed"; done
"""


@pytest.mark.net
@pytest.mark.root
def test_unit_programs_that_want_a_kernel_of_their_own(guest, out):
    programs = [out / "aarch64" / "unit" / name for name in emulate.UNIT_IN_GUEST]
    if not all(program.exists() for program in programs):
        reason = emulate.compiler_missing("aarch64")
        (pytest.skip if reason else pytest.fail)(reason or "the unit programs are missing; run make unit-aarch64")
    text = guest(UNIT.format(" ".join(emulate.UNIT_IN_GUEST)), programs)
    for name in emulate.UNIT_IN_GUEST:
        assert f"# {name}\n" in text and f"# {name} failed" not in text, text
    assert len(re.findall("^ok ", text, re.M)) > 40, text

"""Ruby, PHP and Perl in containers as an engine makes them: no perf events there, and the same stacks and shares all the same."""
import shutil
from collections import Counter

import pytest

from lab import container, perls, phps, phpstacks, plstacks, process, profiler, rbstacks, rubies, tiers, versions

pytestmark = [pytest.mark.root, pytest.mark.net, pytest.mark.measures]
LANGUAGES = {"ruby": (rubies, rbstacks, [], "rb"), "php": (phps, phpstacks, ["-n"], "php"), "perl": (perls, plstacks, [], "pl")}


@pytest.fixture(params=LANGUAGES)
def language(request, workdir, pillion, repository):
    """(interpreter of Debian 13 in a root of its own, its stacks, the folder that becomes /out, what runs a program there)."""
    if tiers.tool_missing("runc"):
        pytest.fail("runc is missing; run make setup")
    source, stacks, options, ending = LANGUAGES[request.param]
    try:
        interpreter = source.get("trixie")
    except versions.Missing as reason:
        pytest.skip(f"{request.param}: {reason}")
    folder = workdir / "out"
    shutil.copytree(repository / "tests" / "live" / "programs" / request.param, folder)
    profiler.copy(pillion, folder)
    folder.chmod(0o777)
    return interpreter, stacks, folder, lambda name, *words: [interpreter.argv[-1], *options, f"/out/{name}.{ending}", *words]


def start(interpreter, folder, command, **options):
    return container.Container(interpreter.inside, command, mounts=[(folder, "/out", "rw")], environment=["LC_ALL=C.UTF-8"], **options)


@pytest.mark.exact
def test_as_a_command_prefix_with_everything_stock(language):
    interpreter, stacks, folder, program = language
    done = start(interpreter, folder, ["/out/pillion", "-f", "499", "-o", "/out", "--", *program("known_stacks", "1.2")],
                 profile="docker").finish()
    assert done.status == 0, done
    known, verdicts, wrong = stacks.Known(done.out), Counter(), []
    for stack in stacks.of_pprof(folder):
        gone = any(str(frame).startswith("[code is gone]") for frame in stack.frames)
        verdict = "gone" if gone else known.judge(stack.own) if stack.own else "none"
        verdicts[verdict] += stack.count
        wrong += [repr(stack)] if verdict == "wrong" else []
    print(interpreter.version, dict(verdicts))
    assert not wrong, wrong[:3]
    assert verdicts["whole"] > 0.65 * sum(verdicts.values()), done


@pytest.mark.parametrize("uid,more", [(profiler.NOBODY, []), (0, ["CAP_SYS_PTRACE"])], ids=["same user", "SYS_PTRACE"])
def test_from_a_sidecar_that_shares_the_pid_namespace(uid, more, language, workdir, pillion):
    """Its root has nothing of the language; it runs as the application's user."""
    interpreter, stacks, folder, program = language
    image = container.scratch(workdir / "image", pillion)
    app = start(interpreter, folder, program("shares", "4.5", "0.1"), uid=uid)
    try:
        process.until(lambda: process.cpu_seconds(app.pid()) > 0.3, 20)
        side = container.Container(image, ["/pillion", "-p", "1", "-d", "2.5", "-f", "499", "--max-cpu", "20", "-o", "/out"], uid=uid,
                                   pid_of=app.pid(), mounts=[(folder, "/out", "rw")],
                                   capabilities=[*container.CAPABILITIES, *more]).finish()
        told = app.finish()
    finally:
        app.remove()
    assert side.status == 0 and told.status == 0, (side, told)
    true = {function: float(share) for function, share in zip(*[iter(told.out.split())] * 2)}
    found = stacks.of_col(profiler.Session(side, folder))
    total = sum(stack.count for stack in found)
    shares = {function: sum(s.count for s in found if any(name.rpartition("::")[2] == function for name in s.names)) / total
              for function in true}
    print(interpreter.version, shares, true)
    assert sum(shares.values()) > 0.9, (side, shares)
    for function, share in true.items():
        assert abs(shares[function] / sum(shares.values()) - share) < 0.05, (shares, true)

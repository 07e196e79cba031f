"""Programs for the other processor, under qemu's user emulation.

    reason = emulate.missing("aarch64")                       None, or why it cannot be done here
    process.run([*emulate.prefix("aarch64"), emulate.binary("aarch64"), ...])
                                                              the prefix is empty for this machine's own

Instructions are emulated, system calls go to this machine's kernel: files, pipes, signals and
threads work. perf_event_open, process_vm_readv and ptrace are refused, /proc shows the emulator, and
an instruction costs what it costs: what is live or measured belongs into a guest (lab/kernel.py).
"""
import hashlib
import os
import platform
import shutil
import subprocess
import threading
from pathlib import Path

from . import cache, compiler, tiers

HERE = platform.machine()
# The names under which Debian has them: linked with the machine's libraries, or static.
EMULATORS = ("qemu-{}", "qemu-{}-static")

# What a unit program cannot keep under the emulator, with the reason; None is the whole program. What is not marked
# so is run, and has to pass.
LONG = "takes long under the emulator, of code that is the same on both processors"
NO_FILTER = "the emulator lets no child have a filter of its own (runs in a guest)"
UNIT_SKIPS = {
    ("accounting_test", None): "compares processor time with clock ticks, and the emulator's own work is in it",
    ("analyse_test", None): "is about x86-64's instructions; analyse_aarch64_test is this processor's",
    ("readers_test", None): "reads programs that are the emulator's threads, in memory that is the emulator's, too",
    ("perfless_test", None): "reads programs that are the emulator's threads, in memory that is the emulator's, too",
    ("doctor_test", "a look leaves no child and no open file"): "the emulator has no process_vm_readv",
    ("filter_test", "targets are judged by what /proc says of them"): "/proc shows the emulator",
    ("filter_test", "a young stranger is asked about again when it is of age"): "/proc shows the emulator",
    ("identity_test", "without SYS_PTRACE a process of another user is read as that user, and nothing of it is left"):
        "/proc shows the emulator",
    ("unsampled_threads_test", "the threads that used most CPU time come first"): "the emulator has a thread of its own",
    ("offcpu_test", "a thread that slept all the time is found, with what it waits for"):
        "/proc tells the numbers of this machine's system calls",
    ("offcpu_test", "waits that nobody saw stand where short ones were seen, below [off-CPU]"):
        "/proc tells the numbers of this machine's system calls",
    ("tls_test", "a cut at any byte is no end"): LONG,
    ("tls_test", "a changed byte changes nothing unnoticed"): LONG,
    ("shipment_test", "a request fits what the service takes"): LONG,
    ("cfi_test", "spoiled bytes neither crash nor hang"): LONG,
    ("python_code_test", "functions that are made for ever keep their names right"): LONG,
    ("go_delta_test", "a bomb is stopped"): LONG,
    ("go_delta_test", "what is too much becomes one sample"): LONG,
    ("go_delta_test", "the one sample is called [other]"): LONG,
    ("inspector_test", "a large tree takes as long as its moments"): LONG,
    ("stop_test", None): "the emulator has no ptrace",
    ("held_test", None): "the emulator has no ptrace",
    ("launch_test", None): "starts programs and looks at what they inherit, and would see the emulator's (runs in a guest)",
    ("stacks_test", "the steady state allocates nothing per sample"): "counts by AddressSanitizer",
    ("inlines_test", "DWARF 4 gives chains, files and lines"): NO_FILTER,
    ("inlines_test", "DWARF 5 gives chains, files and lines"): NO_FILTER,
    ("inlines_test", "packed sections are unpacked"): NO_FILTER,
    ("inlines_test", "names that dwz moved are found in the alternate file, if it is the right one"): NO_FILTER,
    ("inlines_test", "cuts and flipped bits are survived"): NO_FILTER,
    ("inlines_test", "loops of references end"): NO_FILTER,
    ("inlines_test", "this program's own chain is as its compiler inlined it"): NO_FILTER,
    ("namer_test", "inlined functions are named by DWARF, the real one by its symbol"): NO_FILTER,
    ("namer_test", "when time is over there still are symbols"): NO_FILTER,
    ("namer_test", "without a reader of debug information there still are symbols"): NO_FILTER,
    ("namer_test", "names that dwz moved are found"): NO_FILTER,
    ("namer_test", "what DWARF told is kept, also that it told nothing"): NO_FILTER,
    ("target_test", "the test's own stat is its own"): "/proc shows the emulator (runs in a guest)",
    ("target_test", "the test's own status is its own"): "/proc shows the emulator (runs in a guest)",

}
# These run in the guest of live/test_aarch64.py, where they find a kernel of their own.
UNIT_IN_GUEST = ("inlines_test", "launch_test", "namer_test", "target_test")


def emulator(arch):
    return next((found for name in EMULATORS if (found := shutil.which(name.format(arch)))), None)


def missing(arch):
    """Why a program for this processor cannot be run here, or was not built: None, or the reason in words."""
    if arch != HERE and not emulator(arch):
        return f"not installed: {EMULATORS[0].format(arch)}"
    return None if binary(arch).exists() else compiler_missing(arch)


def binary(arch):
    """pillion for this processor. When it is not there and `missing` names no reason, that is a failure."""
    return Path(__file__).resolve().parents[2] / "build" / "out" / arch / "pillion"


def linked(arch, name):
    """A program of tests/lab that is linked as pillion is, with its objects: record, replay."""
    return binary(arch).parent / "lab" / name


def prefix(arch):
    """What stands before such a program's command line."""
    return [] if arch == HERE else [emulator(arch)]


def compiler_missing(arch):
    """Why nothing is built for this processor here."""
    return None if arch == HERE else tiers.tool_missing(f"{arch}-linux-gnu-gcc")


def program(source, arch):
    """The path of a bundled C program as a static one for this processor, kept in build/lab as by lab/compiler.py."""
    source = Path(source)
    command = [f"{arch}-linux-gnu-gcc", "-std=gnu11", *compiler.C_FLAGS, "-static"]
    identity = hashlib.sha256(source.read_bytes() + repr(command).encode()).hexdigest()[:16]
    target = cache.folder("programs", identity) / source.stem
    if not target.exists():
        part = target.with_name(f"{target.name}.{threading.get_native_id()}.part")
        subprocess.run([*command, "-o", part, source, "-lm"], check=True)
        part.rename(target)
    return target

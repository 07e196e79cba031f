"""Two unwinders over the same samples: ours, as tests/lab/stacks_of.c runs it, and perf script's (libunwind).

    tests/lab/crosscheck.py RECORDING

prints how the stacks compare, by class, with an example of each; `compare` returns that. A stack that differs is put
in the first class whose condition holds; CLASSES says what each means and which unwinder it finds right, and the
example shows why: whether a call stands before each return address, and where that call goes.
"""
import functools
import platform
import re
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab import perfdata  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
STACKS_OF = ROOT / "build" / "out" / "host" / "lab" / "stacks_of"
# Where threads and processes begin, by name; a program's entry is known from its header as well.
FIRST = re.compile(r"(_start|_dl_start_user|_*(GI_)*_*clone3?(_internal)?)(\+0x[0-9a-f]+)?$")

CLASSES = {
    "same": "every frame",
    "trampoline": "the same; perf names the signal trampoline by the address less one, where no instruction begins",
    "beyond the copy": "pillion right: perf has the copy of the stack only, pillion goes on in the process's memory",
    "no tables, perf stops": "pillion right: code without CFI, or whose CFA the copy does not hold, which pillion analyses or "
                             "follows by frame pointer",
    "no tables, perf leaves callers out": "pillion right: in code without CFI perf takes the frame pointer, which is an outer frame's",
    "no mappings": "perf did not see what the process had mapped (between fork and exec)",
    "guessed": "pillion says that it guesses; perf may be right",
    "perf stops": "pillion goes on, behind a call, and ends where threads begin",
    "pillion stops": "perf goes on",
    "perf leaves a caller out": "not explained by missing tables",
    "pillion leaves a caller out": "perf has one frame more",
    "other": "neither is a part of the other",
}
AGREE = ("same", "trampoline")
# What is no difference of opinion about the same code and memory.
EXPLAINED = (*AGREE, "beyond the copy", "no tables, perf stops", "no tables, perf leaves callers out", "no mappings")


def missing():
    """Why there is no cross-check here, or None."""
    if platform.machine() != "x86_64":
        return "perf's unwinding is compared on x86-64 only"
    if not STACKS_OF.exists():
        return f"{STACKS_OF.relative_to(ROOT)} is missing; run make unit"
    try:
        options = subprocess.run(["perf", "version", "--build-options"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 text=True).stdout
    except FileNotFoundError:
        return "not installed: linux-perf"
    return None if re.search(r"libunwind: \[ on", options) else "this perf unwinds without libunwind"


def ours(recording):
    """{(tid, ns): (end, [(offset, flags, path), ...])}"""
    done = subprocess.run([STACKS_OF, recording], stdout=subprocess.PIPE, text=True, check=True)
    stacks = {}
    for line in done.stdout.splitlines():
        time, _, tid, end, *frames = line.split(" ")
        stacks[int(tid), int(time)] = end, [(int(offset, 16), flags, path.replace("%20", " ")) for offset, flags, path in
                                            (re.fullmatch(r"([0-9a-f]+)\[(\w*)\]@(.*)", frame).groups() for frame in frames)]
    return stacks


# ---- What the code says

@functools.lru_cache(maxsize=None)
def contents(path):
    try:
        return Path(path).read_bytes() if path.startswith("/") else b""
    except OSError:
        return b""


@functools.lru_cache(maxsize=None)
def entry(path):
    """The file offset of an ELF file's entry, or None."""
    data = contents(path)
    if data[:5] != b"\x7fELF\x02":
        return None
    address = struct.unpack_from("<Q", data, 24)[0]
    for offset, begin, size, _ in perfdata.segments(path):
        if begin <= address < begin + size:
            return offset + address - begin
    return None


def call_before(path, offset):
    """What stands before the return address offset + 1: "call OFFSET" (direct), "call *", or None."""
    code = contents(path)[max(offset - 6, 0):offset + 1]
    if len(code) >= 5 and code[-5] == 0xE8:
        return f"call {offset + 1 + struct.unpack('<i', code[-4:])[0]:x}"
    # ff /2 with no displacement, an index byte, 8 or 32 bits of displacement
    for length, modes in ((2, (0, 3)), (3, (0, 1)), (4, (1,)), (6, (0, 2)), (7, (2,))):
        if len(code) >= length and code[-length] == 0xFF and code[-length + 1] >> 3 & 7 == 2 and code[-length + 1] >> 6 in modes:
            return "call *"
    return None


def is_first(frame):
    offset, symbol, path = frame
    begin = entry(path)
    return bool(FIRST.match(symbol)) or (begin is not None and 0 <= offset - begin < 0x40)


# ---- One stack

def same_code(a, b):
    """Whether a frame of ours and one of perf's are the same code; generated code has another file's name in perf."""
    return a[0] == b[0] and (a[2] == b[2] or not a[2].startswith("/"))


def classify(end, mine, perf):
    """(class, index of the first frame that differs)"""
    at, trampolines = 0, 0
    while at < min(len(mine), len(perf)):
        if not same_code(mine[at], perf[at]):
            if at == 0 or "x" not in mine[at][1] or mine[at][0] != perf[at][0] + 1:
                break
            trampolines += 1
        at += 1
    if at == len(mine) == len(perf):
        return ("trampoline" if trampolines else "same"), at
    if perf and perf[min(at, len(perf) - 1)][2] == "[unknown]" and at < 2:
        return "no mappings", at
    near = "".join(flags for _, flags, _ in mine[at:at + 2])
    if any("g" in flags for _, flags, _ in mine):
        return "guessed", at
    if at == len(perf):
        if "c" in near or (end == "truncated" and at + 1 == len(mine)):
            return "beyond the copy", at
        return ("no tables, perf stops" if "f" in near or "a" in near else "perf stops"), at
    if at == len(mine):
        return "pillion stops", at
    if "f" in near or "a" in near:
        return "no tables, perf leaves callers out", at
    if [f[0] for f in mine[at + 1:at + 3]] == [f[0] for f in perf[at:at + 2]]:
        return "perf leaves a caller out", at
    if [f[0] for f in mine[at:at + 2]] == [f[0] for f in perf[at + 1:at + 3]]:
        return "pillion leaves a caller out", at
    return "other", at


def is_whole(end, mine, perf):
    """Both reached the thread's beginning."""
    return end == "complete" and bool(perf) and (same_code(mine[-1], perf[-1]) or is_first(perf[-1]))


def example(end, mine, perf, at):
    lines = [f"    first difference at frame {at}; pillion: {len(mine)} frames, {end}; perf: {len(perf)}"]
    for i in range(max(at - 2, 0), at + 2):
        for name, frames in (("pillion", mine), ("perf", perf)):
            if i < len(frames):
                offset, text, path = frames[i]
                call = (call_before(path, offset) or "no call before it") if i > 0 else "leaf"
                lines.append(f"      {i:3} {name:8}{Path(path).name}+{offset:x} [{text}] {call}")
    return "\n".join(lines)


# ---- All of them

class Result:
    """`classes` counts all stacks, `whole` those that both followed to their beginning; `only` those one of them did."""

    def __init__(self, mine, theirs):
        self.classes, self.whole, self.only, self.examples = Counter(), Counter(), Counter(), {}
        self.absent = sum(key not in theirs for key in mine)
        self.ends = Counter(end for end, _ in mine.values())
        for key, (end, frames) in mine.items():
            perf = theirs.get(key)
            if perf is None:
                continue
            kind, at = classify(end, frames, perf)
            self.classes[kind] += 1
            if is_whole(end, frames, perf):
                self.whole[kind] += 1
            elif end == "complete" or (perf and is_first(perf[-1])):
                self.only["pillion" if end == "complete" else "perf"] += 1
            if kind not in AGREE:
                self.examples.setdefault(kind, example(end, frames, perf, at))

    @property
    def total(self):
        return sum(self.classes.values())

    @property
    def agreement(self):
        """Of the stacks that both followed to their beginning."""
        return sum(self.whole[kind] for kind in AGREE) / max(sum(self.whole.values()), 1)

    @property
    def unexplained(self):
        return sum(count for kind, count in self.classes.items() if kind not in EXPLAINED and kind != "guessed")

    def __str__(self):
        lines = [f"{self.total} stacks; whole in both {sum(self.whole.values())}, of these alike {100 * self.agreement:.2f} %; "
                 f"whole in pillion alone {self.only['pillion']}, in perf alone {self.only['perf']}"]
        for kind, count in self.classes.most_common():
            lines.append(f"  {count:6} {kind}: {CLASSES[kind]}")
            lines += [self.examples[kind]] if kind in self.examples else []
        return "\n".join(lines)


def compare(recording):
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "perf.data"
        perfdata.write(perfdata.Recording(recording), data)
        return Result(ours(recording), perfdata.script(data))


if __name__ == "__main__":
    print(compare(sys.argv[1]))

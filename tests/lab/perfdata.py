"""A recording of ours as a perf.data file, so that perf unwinds the very same samples.

    tests/lab/perfdata.py RECORDING perf.data; perf script -i perf.data

The ring records of a recording are what the kernel wrote, each with the stack's size cut to what was copied; they go
into the file as they are, in time order. What a live `perf record` adds for processes that already run, COMM and
MMAP2 records made from /proc, is made here from the recorded texts. We record executable mappings only; perf's unwinder
reads unwind tables through the mappings of a file's other segments, so those are added from the file's headers. perf
does not forget a process's mappings when it execs, and then finds the tables of a library where the parent had it; so a
fork that leads to an exec gets the mark (PERF_RECORD_MISC_FORK_EXEC) by which perf does not copy the parent's mappings.
perf finds the mapped files on this machine, so this is for recordings made here and now.

Formats: tools/perf/Documentation/perf.data-file-format.txt, linux/perf_event.h (struct perf_event_attr up to version
5, 112 bytes); ours is tests/lab/recording_chunks.h.
"""
import functools
import gzip
import re
import struct
import subprocess
import sys
from pathlib import Path

MAGIC = b"PILLREC1"
FORMAT, VDSO, TEXT, MAPPED, UNDER, PERF_MAP, PAGE, MEMORY, TARGET, RING, ROUND = range(11)
RECORD_MMAP2, RECORD_COMM, RECORD_FORK, RECORD_SAMPLE = 10, 3, 7, 9
MISC_COMM_EXEC = MISC_FORK_EXEC = MISC_MMAP_DATA = 0x2000
TYPE_IP, TYPE_TID, TYPE_TIME, TYPE_CPU, TYPE_PERIOD, TYPE_CALLCHAIN = 1, 2, 4, 1 << 7, 1 << 8, 1 << 5
TYPE_REGS_USER, TYPE_STACK_USER, TYPE_IDENTIFIER = 1 << 12, 1 << 13, 1 << 16
KNOWN = TYPE_IP | TYPE_TID | TYPE_TIME | TYPE_CPU | TYPE_PERIOD | TYPE_CALLCHAIN | TYPE_REGS_USER | TYPE_STACK_USER
ATTR_BYTES, HEADER_BYTES = 112, 104
FLAGS = {"inherit": 1, "mmap": 8, "comm": 9, "task": 13, "sample_id_all": 18, "exclude_callchain_user": 22, "mmap2": 23,
         "comm_exec": 24, "use_clockid": 25}


class Recording:
    """The chunks of a recording, of which only what perf needs is kept."""

    def __init__(self, path):
        data = gzip.decompress(Path(path).read_bytes())
        if not data.startswith(MAGIC):
            raise ValueError(f"{path} is no recording")
        self.records, self.texts, self.targets = [], [], {}
        at = len(MAGIC)
        while at < len(data):
            kind, size = struct.unpack_from("<BI", data, at)
            self._take(kind, data[at + 5:at + 5 + size])
            at += 5 + size

    def _take(self, kind, body):
        if kind == FORMAT:
            self.hz, self.sample_type, self.registers, _ = struct.unpack_from("<IQQB", body)
            self.has_ids = bool(self.sample_type & TYPE_IDENTIFIER)
            self.sample_type &= ~TYPE_IDENTIFIER
            if self.sample_type & ~KNOWN:
                raise ValueError(f"sample type {self.sample_type:#x} has fields that are not known here")
        elif kind == TEXT:
            pid, tid = struct.unpack_from("<II", body)
            name, _, text = body[8:].partition(b"\0")
            # `at`: what was drained before it was read
            self.texts.append((len(self.records), pid, tid, name.decode(), text))
        elif kind == TARGET:
            pid, running = struct.unpack_from("<IB", body)
            self.targets[pid] = bool(running)
        elif kind == RING:
            self.records.append(_without_id(body) if self.has_ids else body)

    def time_of(self, record):
        """Nanoseconds: of a sample behind IP and TID, of others in the tail TID, TIME, CPU."""
        if struct.unpack_from("<I", record)[0] == RECORD_SAMPLE:
            return struct.unpack_from("<Q", record, 24)[0]
        return struct.unpack_from("<Q", record, len(record) - 16)[0]

    def samples(self):
        return sum(struct.unpack_from("<I", record)[0] == RECORD_SAMPLE for record in self.records)


CHAIN_AT = 40  # behind ip, ids, time, CPU and period
CONTEXT_USER = (1 << 64) - 512


def _without_id(record):
    """The event's id stands first in samples and last in all others; perf is told of one event, which needs none."""
    kind, misc = struct.unpack_from("<IH", record)
    rest = _without_user_chain(record[16:]) if kind == RECORD_SAMPLE else record[8:-8]
    return struct.pack("<IHH", kind, misc, 8 + len(rest)) + rest


def _without_user_chain(sample):
    """What the kernel found by frame pointers; perf would take it for the stack, in which pillion goes by registers first."""
    count, = struct.unpack_from("<Q", sample, CHAIN_AT)
    chain = struct.unpack_from(f"<{count}Q", sample, CHAIN_AT + 8)
    kept = chain.index(CONTEXT_USER) if CONTEXT_USER in chain else count
    return (sample[:CHAIN_AT] + struct.pack(f"<{1 + kept}Q", kept, *chain[:kept]) + sample[CHAIN_AT + 8 + 8 * count:])


def _padded(text):
    return text + b"\0" * (8 - len(text) % 8)


def _record(kind, misc, body, pid, tid, time):
    tail = struct.pack("<IIQII", pid, tid, time, 0, 0)
    return struct.pack("<IHH", kind, misc, 8 + len(body) + len(tail)) + body + tail


def _comm(pid, tid, text, time):
    return _record(RECORD_COMM, 0, struct.pack("<II", pid, tid) + _padded(text.strip()[:15]), pid, tid, time)


MAPS_LINE = re.compile(rb"([0-9a-f]+)-([0-9a-f]+) (..(.).) ([0-9a-f]+) ([0-9a-f]+):([0-9a-f]+) (\d+) *(.*)")


@functools.lru_cache(maxsize=None)
def segments(path):
    """The PT_LOADs of an ELF file as (offset, address, bytes, flags); none when it is no 64-bit ELF file."""
    try:
        with open(path, "rb") as file:
            head = file.read(64)
            if head[:5] != b"\x7fELF\x02":
                return []
            at, size, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
            file.seek(at)
            rows = [struct.unpack_from("<IIQQQQQQ", file.read(size)) for _ in range(count)]
    except (OSError, struct.error):
        return []
    return [(row[2], row[3], row[5], row[1]) for row in rows if row[0] == 1]


MMAP2 = "<IIQQQIIQQII"  # pid, tid, start, bytes, offset, major, minor, inode, generation, prot, flags


def _other_segments(record, time):
    """MMAP2 records of the segments that are not executable, after the MMAP2 record of one that is."""
    pid, _, start, _, offset, major, minor, inode, _, _, _ = struct.unpack_from(MMAP2, record, 8)
    name = record[8 + struct.calcsize(MMAP2):].partition(b"\0")[0]
    loads = segments(name.decode(errors="surrogateescape")) if name.startswith(b"/") else []
    page = 4096
    bias = [start - (at - at % page) - (offset - (begin - begin % page)) for begin, at, size, flags in loads
            if flags & 1 and begin - begin % page <= offset < begin + size]
    for begin, at, size, flags in loads if bias else []:
        if flags & 1:
            continue
        skipped, prot = at % page, (flags & 4) >> 2 | (flags & 2)
        size = (size + skipped + page - 1) // page * page
        body = struct.pack(MMAP2, pid, pid, bias[0] + at - skipped, size, begin - skipped, major, minor, inode, 0, prot, 2)
        yield time, _record(RECORD_MMAP2, MISC_MMAP_DATA | 2, body + _padded(name), pid, pid, time)


def _mmap2(pid, line, time):
    found = MAPS_LINE.match(line)
    if not found or found[4] != b"x":
        return b""
    start, limit, offset, major, minor = (int(found[n], 16) for n in (1, 2, 5, 6, 7))
    prot = sum(bit for bit, letter in zip((1, 2, 4), b"rwx") if letter in found[3])
    body = struct.pack(MMAP2, pid, pid, start, limit - start, offset, major, minor, int(found[8]), 0, prot, 2)
    name = found[9].removesuffix(b" (deleted)") or b"//anon"
    # misc 2: user mode, the only address space that is recorded
    return _record(RECORD_MMAP2, 2, body + _padded(name), pid, pid, time)


def _synthesised(recording, time):
    """(time, bytes) of what /proc told; before all records when it was read first."""
    seen = set()
    for at, pid, tid, name, text in recording.texts:
        known = (pid, tid, name) in seen
        moment = time[min(at, len(time) - 1)] if known and time else 0
        seen.add((pid, tid, name))
        if name == "comm":
            yield moment, _comm(pid, tid or pid, text, moment)
        elif name == "maps":
            for line in text.splitlines():
                yield moment, _mmap2(pid, line, moment)


def _marked_forks(records):
    """The records, in time order, with the forks marked whose processes exec."""
    execs, out = set(), []
    for record in reversed(records):
        kind, misc, _ = struct.unpack_from("<IHH", record)
        if kind == RECORD_COMM and misc & MISC_COMM_EXEC:
            execs.add(struct.unpack_from("<I", record, 8)[0])
        elif kind == RECORD_FORK:
            pid, parent = struct.unpack_from("<II", record, 8)
            if pid != parent and pid in execs:
                record = record[:4] + struct.pack("<H", misc | MISC_FORK_EXEC) + record[6:]
                execs.discard(pid)
        out.append(record)
    return out[::-1]


def _attr(recording):
    flags = sum(1 << bit for bit in FLAGS.values())
    # type 1: software; config 0: cpu-clock; clockid 1: CLOCK_MONOTONIC
    return struct.pack("<IIQQQQQIIQQQQIiQIHH", 1, ATTR_BYTES, 0, 1_000_000_000 // recording.hz, recording.sample_type, 0,
                       flags, 0, 0, 0, 0, 0, recording.registers, 65528, 1, 0, 0, 0, 0)


def write(recording, path):
    """Writes the perf.data file of a Recording."""
    time = [recording.time_of(record) for record in recording.records]
    made = [*_synthesised(recording, time), *zip(time, recording.records)]
    for moment, record in list(made):
        if record and struct.unpack_from("<I", record)[0] == RECORD_MMAP2:
            made += _other_segments(record, moment)
    made.sort(key=lambda entry: entry[0])
    data = b"".join(_marked_forks([record for _, record in made if record]))
    attr_at = HEADER_BYTES
    data_at = attr_at + ATTR_BYTES + 16
    header = b"PERFILE2" + struct.pack("<QQQQQQQQ4Q", HEADER_BYTES, ATTR_BYTES + 16, attr_at, ATTR_BYTES + 16, data_at,
                                       len(data), 0, 0, 0, 0, 0, 0)
    assert len(header) == HEADER_BYTES and len(_attr(recording)) == ATTR_BYTES
    # no ids: one event, to which all records belong
    Path(path).write_bytes(header + _attr(recording) + struct.pack("<QQ", 0, 0) + data)


HEAD = re.compile(r"\s*(\d+)/(\d+)\s+(\d+)\.(\d{9}):")
FRAME = re.compile(r"\s+([0-9a-f]+) (.*) \((.*)\)$")


def script(path):
    """perf script's user frames, leaf first: {(tid, ns): [(offset in the file, function+distance, path), ...]}.

    A caller's offset is that of its return address less one. Code without a file has its runtime address.
    """
    done = subprocess.run(["perf", "script", "-i", path, "--ns", "--no-inline", "--max-stack", "4096", "-F",
                           "pid,tid,time,ip,sym,symoff,dso"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"})
    if done.returncode:
        raise RuntimeError(f"perf script: {done.stderr.strip()[-400:]}")
    stacks, frames = {}, None
    for line in done.stdout.splitlines():
        head = HEAD.match(line)
        if head:
            frames = stacks.setdefault((int(head[2]), int(head[3]) * 10**9 + int(head[4])), [])
            continue
        frame = FRAME.match(line)
        if frame and frames is not None and int(frame[1], 16) < 1 << 63:
            frames.append((int(frame[1], 16), frame[2], frame[3]))
    return stacks


def main(arguments):
    if len(arguments) != 2:
        print(__doc__.split("\n\n")[1].strip())
        return 2
    recording = Recording(arguments[0])
    write(recording, arguments[1])
    print(f"{len(recording.records)} records, {recording.samples()} of them samples")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

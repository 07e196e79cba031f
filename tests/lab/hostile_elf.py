"""ELF files that are wrong in places that a seed draws; those that are to start stay as the kernel and the loader want them."""
import lzma
import struct
import zlib

EXTREMES = (0, 1, 2, 3, 7, 8, 0x7f, 0x80, 0xff, 0x1000, 0x7fff, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xfffffff8, 0xffffffff,
            0x100000000, 0x7fffffffffffffff, 0x8000000000000000, 0xfffffffffffff000, 0xffffffffffffffff)
SHT_NOTE, SHT_NOBITS, SHF_ALLOC, SHF_EXECINSTR, SHF_COMPRESSED = 7, 8, 2, 4, 0x800
PT_LOAD, PT_NOTE, PT_GNU_EH_FRAME = 1, 4, 0x6474e550
SECTION = ("name", "type", "flags", "addr", "offset", "size", "link", "info", "align", "entry")
# What lies in memory, and is read by nobody but profilers, debuggers and whoever throws an exception.
UNUSED = (".eh_frame", ".eh_frame_hdr", ".note", ".gcc_except_table", ".gopclntab")
COUNT_DOWN = {"x86_64": bytes.fromhex("b900400000ffc975fcc3"), "aarch64": bytes.fromhex("0000885200040071e1ffff54c0035fd6")}


class Elf:
    """A file's bytes, little-endian and of 64 bits, as they were before they were spoilt."""

    def __init__(self, data):
        self.data = bytearray(data)
        self.phoff, self.shoff = struct.unpack_from("<QQ", data, 32)
        self.phnum, _, self.shnum, strings = struct.unpack_from("<HHHH", data, 56)
        self.sections = [dict(zip(SECTION, struct.unpack_from("<IIQQQQIIQQ", data, self.shoff + 64 * i)), header=self.shoff + 64 * i)
                         for i in range(self.shnum)]
        names = self.sections[strings]["offset"]
        for section in self.sections:
            at = names + section["name"]
            section["text"] = data[at:data.index(b"\0", at)].decode()
        self.segments = [(struct.unpack_from("<I", data, self.phoff + 56 * i)[0], self.phoff + 56 * i) for i in range(self.phnum)]

    def filled(self):
        return [s for s in self.sections if s["type"] not in (0, SHT_NOBITS) and s["size"] > 0]

    def unused(self):
        return [s for s in self.filled() if not s["flags"] & SHF_ALLOC or s["text"].startswith(UNUSED)]

    def code(self):
        return [s for s in self.filled() if s["flags"] & SHF_EXECINSTR and s["size"] > 256]


def put(elf, draw, at, width):
    value = draw.choice(EXTREMES) if draw.random() < 0.7 else draw.randrange(len(elf.data) * 2)
    if 0 <= at <= len(elf.data) - width:
        elf.data[at:at + width] = (value & (1 << 8 * width) - 1).to_bytes(width, "little")


def bytes_of_a_section(elf, draw, sections, program):
    section = draw.choice(sections)
    for _ in range(draw.choice((1, 4, 16, 64))):
        elf.data[section["offset"] + draw.randrange(section["size"])] = draw.randrange(256)


def numbers_of_a_section(elf, draw, sections, program):
    section = draw.choice(sections)
    for _ in range(draw.choice((1, 4, 16, 64))):
        width = draw.choice((1, 2, 4, 8))
        if section["size"] > width:
            put(elf, draw, section["offset"] + draw.randrange(section["size"] - width), width)


def start_of_a_section(elf, draw, sections, program):
    section = draw.choice(sections)
    width = draw.choice((1, 2, 4, 8))
    if section["size"] > 32:
        put(elf, draw, section["offset"] + draw.randrange(32 // width - 1) * width, width)


def piece_of_another(elf, draw, sections, program):
    to, source = draw.choice(sections), draw.choice(sections)
    count = draw.randrange(min(to["size"], source["size"])) + 1
    piece = elf.data[source["offset"]:source["offset"] + count]
    at = to["offset"] + draw.randrange(to["size"] - count + 1)
    elf.data[at:at + count] = piece


def header_of_a_section(elf, draw, sections, program):
    for _ in range(draw.choice((1, 1, 3))):
        at, width = draw.choice(((0, 4), (4, 4), (8, 8), (16, 8), (24, 8), (32, 8), (40, 4), (44, 4), (48, 8), (56, 8)))
        put(elf, draw, draw.choice(elf.sections)["header"] + at, width)


def header(elf, draw, sections, program):
    fields = [(40, 8), (58, 2), (60, 2), (62, 2)]
    if not program:
        fields += [(4, 1), (5, 1), (16, 2), (18, 2), (24, 8), (32, 8), (52, 2), (54, 2), (56, 2)]
    put(elf, draw, *draw.choice(fields))


def header_of_a_segment(elf, draw, sections, program):
    of = [at for kind, at in elf.segments if not program or kind in (PT_NOTE, PT_GNU_EH_FRAME)]
    if of:
        at, width = draw.choice(((4, 4), (8, 8), (16, 8), (24, 8), (32, 8), (40, 8), (48, 8)))
        put(elf, draw, draw.choice(of) + at, width)


def length_of_a_note(elf, draw, sections, program):
    notes = [s for s in elf.filled() if s["type"] == SHT_NOTE]
    if notes:
        put(elf, draw, draw.choice(notes)["offset"] + draw.choice((0, 4, 8)), 4)


def compressed(elf, draw, sections, program):
    """A section claims to be compressed, and to be of any size."""
    section = draw.choice([s for s in sections if not s["flags"] & SHF_ALLOC] or sections)
    struct.pack_into("<Q", elf.data, min(section["header"] + 8, len(elf.data) - 8), section["flags"] | SHF_COMPRESSED)
    plain = bytes(draw.choice((100, 1 << 16, 1 << 24)))
    packed = struct.pack("<IIQQ", draw.choice((1, 2, 3)), 0, draw.choice((len(plain), *EXTREMES)), draw.choice((0, 1, 8, 1 << 40)))
    packed = (packed + zlib.compress(plain))[:section["size"]]
    elf.data[section["offset"]:section["offset"] + len(packed)] = packed


def more_symbols(elf, draw, sections, program):
    """.gnu_debugdata that grows when it is unpacked, at the end of the file."""
    section = draw.choice(sections)
    plain = bytes(elf.data) if draw.random() < 0.5 else bytes(draw.choice((1 << 20, 1 << 24)))
    packed = bytearray(lzma.compress(plain, preset=0))
    for _ in range(draw.choice((0, 0, 1, 8))):
        packed[draw.randrange(len(packed))] = draw.randrange(256)
    struct.pack_into("<QQ", elf.data, min(section["header"] + 24, len(elf.data) - 16), len(elf.data), len(packed))
    elf.data += packed


SPOIL = (bytes_of_a_section, numbers_of_a_section, start_of_a_section, piece_of_another, header_of_a_section, header,
         header_of_a_segment, length_of_a_note, compressed, more_symbols)
WEIGHTS = (6, 6, 6, 2, 5, 2, 3, 1, 1, 1)


def spoil(data, draw, program):
    """The file's bytes, spoilt in one to twelve ways. `program`: it is to start yet."""
    elf = Elf(data)
    sections = [s for s in (elf.unused() if program else elf.filled()) if s["header"] < len(data) - 64]
    for way in draw.choices(SPOIL, WEIGHTS, k=draw.choice((1, 2, 4, 12))):
        way(elf, draw, sections, program)
    return elf.data


def library(data, draw, arch):
    """(bytes, offset): a file that is spoilt anywhere, but for code that returns at the offset."""
    elf = Elf(data)
    code = draw.choice(elf.code())
    offset = code["offset"] + draw.randrange(code["size"] - 64) & ~15
    spoilt = spoil(data, draw, False)
    if draw.random() < 0.1:
        del spoilt[offset + 64:]
    spoilt[offset:offset + len(COUNT_DOWN[arch])] = COUNT_DOWN[arch]
    return spoilt, offset

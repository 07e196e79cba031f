/* Finds the FDE of an address in a CFI section: by the sorted table of .eh_frame_hdr where there is
 * one, else by an index made in one scan. Reads the file through a window, so a section of any size
 * costs little memory. */
#include "unwind/frames.h"
#include "unwind/arch.h"

#include <elf.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

enum {
    ENTRY_BYTES_MAX = 16,   /* of .eh_frame_hdr's table */
    HEADER_BYTES = 4,       /* of .eh_frame_hdr: version and three encodings */
    ENCODING_OMIT = 0xff,
    METHOD_ZSTD = 2,        /* ELFCOMPRESS_ZSTD, which older headers lack */
    ENTRIES_MAX = 2 * FRAMES_MAX, /* FDEs, CIEs and terminators visited by a scan */
    ENTRY_PROBE = 128,            /* bytes; most FDEs have 24 to 72 */
    SECTION_AHEAD = 4 * 1024,     /* 32 KiB of text have some 3 KiB of CFI */
    TABLE_AHEAD = 1024,           /* and 100 FDEs */
};

static uint64_t entry_width(uint8_t encoding)
{
    switch (encoding & 0x0f) {
    case 0x03: /* udata4, sdata4 */
    case 0x0b:
        return 4;
    case 0x00: /* absolute, udata8, sdata8 */
    case 0x04:
    case 0x0c:
        return 8;
    default:
        return 0;
    }
}

/* The section's bytes as far as its segment has them, for files without section headers. */
static void take_extent(struct frames *f, uint64_t address)
{
    for (uint32_t i = 0; i < f->elf->load_count; i++) {
        const struct elf_load *load = &f->elf->loads[i];
        if (address >= load->address && address - load->address < load->file_bytes) {
            f->address = address;
            f->offset = load->offset + (address - load->address);
            f->bytes = load->file_bytes - (address - load->address);
        }
    }
}

static void take_header(struct frames *f)
{
    unsigned char bytes[HEADER_BYTES + 16];
    const struct elf_range *range = &f->elf->eh_frame_hdr;
    size_t len = range->bytes < sizeof bytes ? (size_t)range->bytes : sizeof bytes;
    uint64_t section, count;
    if (len < HEADER_BYTES || !elf_read(f->elf, range->offset, bytes, len, NULL) || bytes[0] != 1) {
        return;
    }
    struct cursor c = cursor_of(bytes + HEADER_BYTES, len - HEADER_BYTES);
    if (!cfi_pointer(&c, range->address + HEADER_BYTES, range->address, bytes[1], &section)) {
        return;
    }
    take_extent(f, section);
    uint64_t here = (uint64_t)(c.ptr - bytes), width = entry_width(bytes[3]);
    if (bytes[2] == ENCODING_OMIT || bytes[3] == ENCODING_OMIT || width == 0 ||
        !cfi_pointer(&c, range->address + here, range->address, bytes[2], &count)) {
        return;
    }
    here = (uint64_t)(c.ptr - bytes);
    uint64_t room = (range->bytes - here) / (2 * width);
    f->table_offset = range->offset + here;
    f->table_count = count < room ? count : room;
    f->table_encoding = bytes[3];
    f->header_address = range->address;
}

bool frames_open_eh(struct frames *f, struct elf *elf)
{
    *f = (struct frames){.elf = elf, .format = CFI_EH_FRAME, .file = elf->file};
    take_header(f);
    const struct elf_section *s = elf_section(elf, ".eh_frame");
    if (s != NULL && s->type != SHT_NOBITS && !s->compressed &&
        (f->bytes == 0 || s->address == f->address)) {
        f->address = s->address;
        f->offset = s->offset;
        f->bytes = s->bytes;
        f->has_end = true;
    }
    if (f->bytes > FRAMES_SECTION_MAX) {
        f->bytes = f->has_end ? 0 : FRAMES_SECTION_MAX;
    }
    return f->bytes > 0;
}

static bool read_unpacked(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    const struct str *bytes = context;
    if (address > bytes->len || len > bytes->len - address) {
        return err_set(err, ERR_MALFORMED, 0, "offset lies beyond the end of the decompressed section");
    }
    memcpy(out, bytes->ptr + address, len);
    return true;
}

static bool unpack_bytes(uint32_t method, unsigned char *to, uint64_t unpacked, const unsigned char *from,
                         uint64_t bytes)
{
    uLongf len = unpacked;
    return method == METHOD_ZSTD ? ZSTD_decompress(to, unpacked, from, bytes) == unpacked
                                      : uncompress(to, &len, from, bytes) == Z_OK && len == unpacked;
}

/* A compressed stream of the file, `bytes` long, as `unpacked` bytes of memory. */
static bool unpack(struct frames *f, uint32_t method, uint64_t offset, uint64_t bytes, uint64_t unpacked)
{
    if (unpacked == 0 || unpacked > FRAMES_UNPACKED_MAX || bytes > FRAMES_UNPACKED_MAX) {
        return false;
    }
    unsigned char *from = malloc(bytes);
    unsigned char *to = malloc(unpacked);
    bool good = from != NULL && to != NULL && elf_read(f->elf, offset, from, bytes, NULL) &&
                unpack_bytes(method, to, unpacked, from, bytes);
    free(from);
    if (!good) {
        free(to);
        return false;
    }
    f->unpacked = (struct str){(char *)to, unpacked};
    f->file = (struct memory_reader){read_unpacked, &f->unpacked};
    f->offset = 0;
    f->bytes = unpacked;
    return true;
}

/* SHF_COMPRESSED: an Elf64_Chdr, then the stream (gABI, "Section Compression"). */
static bool open_compressed(struct frames *f, const struct elf_section *s)
{
    Elf64_Chdr header;
    return s->bytes > sizeof header && elf_read(f->elf, s->offset, &header, sizeof header, NULL) &&
           (header.ch_type == ELFCOMPRESS_ZLIB || header.ch_type == METHOD_ZSTD) &&
           unpack(f, header.ch_type, s->offset + sizeof header, s->bytes - sizeof header, header.ch_size);
}

/* The older form: "ZLIB", the size as 8 bytes in big endian, then the stream. */
static bool open_legacy(struct frames *f, const struct elf_section *s)
{
    unsigned char header[12];
    if (s->bytes <= sizeof header || !elf_read(f->elf, s->offset, header, sizeof header, NULL) ||
        memcmp(header, "ZLIB", 4) != 0) {
        return false;
    }
    struct cursor c = cursor_of(header + 4, 8);
    uint64_t high = cursor_u32_be(&c), size = high << 32 | cursor_u32_be(&c);
    return unpack(f, ELFCOMPRESS_ZLIB, s->offset + sizeof header, s->bytes - sizeof header, size);
}

bool frames_open_debug(struct frames *f, struct elf *elf)
{
    *f = (struct frames){
        .elf = elf, .format = CFI_DEBUG_FRAME, .file = elf->file, .has_end = true};
    const struct elf_section *s = elf_section(elf, ".debug_frame");
    if (s == NULL) {
        s = elf_section(elf, ".zdebug_frame");
        return s != NULL && s->type != SHT_NOBITS && open_legacy(f, s);
    }
    if (s->type == SHT_NOBITS) {
        return false;
    }
    if (s->compressed) {
        return open_compressed(f, s);
    }
    f->offset = s->offset;
    f->bytes = s->bytes < FRAMES_SECTION_MAX ? s->bytes : 0;
    return f->bytes > 0;
}

void frames_release(struct frames *f)
{
    frames_end(f);
    vec_release(&f->index);
    free((void *)f->unpacked.ptr);
    *f = (struct frames){0};
}

void frames_begin(struct frames *f)
{
    uint64_t width = entry_width(f->table_encoding);
    window_init(&f->section, &f->file, f->offset + f->bytes, SECTION_AHEAD);
    window_init(&f->table, &f->file, f->table_offset + f->table_count * 2 * width, TABLE_AHEAD);
}

void frames_end(struct frames *f)
{
    window_release(&f->section);
    window_release(&f->table);
}

size_t frames_bytes(const struct frames *f)
{
    return f->index.cap * sizeof *f->index.at + f->unpacked.len;
}

static bool entry_at(struct frames *f, uint64_t at, struct cfi_entry *out)
{
    uint64_t offset = f->offset + at;
    struct cfi_bytes in = {.format = f->format, .address = f->address + at};
    if (at >= f->bytes) {
        return false;
    }
    in.bytes = window_some(&f->section, offset, ENTRY_PROBE, &in.len);
    if (in.bytes == NULL || cfi_entry_read(&in, out)) {
        return in.bytes != NULL;
    }
    if (out->bytes == 0 || out->bytes > f->bytes - at) {
        return false;
    }
    in.len = (size_t)out->bytes;
    in.bytes = window_at(&f->section, offset, in.len);
    return in.bytes != NULL && cfi_entry_read(&in, out);
}

static struct frames_cie *keep_cie(struct frames *f, uint64_t address,
                                   const struct cfi_entry *entry)
{
    struct frames_cie *kept = &f->cies[f->next_cie++ % FRAMES_CIES];
    *kept = (struct frames_cie){.address = address, .used = true};
    kept->good = entry != NULL && cfi_cie_read(&arch_cfi, entry, &kept->cie);
    return kept;
}

static struct frames_cie *find_cie(struct frames *f, uint64_t address)
{
    for (size_t i = 0; i < FRAMES_CIES; i++) {
        if (f->cies[i].used && f->cies[i].address == address) {
            return &f->cies[i];
        }
    }
    return NULL;
}

/* The FDE that stands `at` in the section. */
static bool fde_at(struct frames *f, uint64_t at, const struct cfi_cie **cie, struct cfi_fde *fde)
{
    struct cfi_entry entry, cie_entry;
    if (!entry_at(f, at, &entry) || entry.kind != CFI_FDE) {
        return false;
    }
    struct frames_cie *kept = find_cie(f, entry.cie);
    if (kept == NULL) {
        bool found = entry_at(f, entry.cie - f->address, &cie_entry);
        kept = keep_cie(f, entry.cie, found ? &cie_entry : NULL);
        if (!entry_at(f, at, &entry)) { /* the window was moved */
            return false;
        }
    }
    *cie = &kept->cie;
    return kept->good && cfi_fde_read(&kept->cie, &entry, fde);
}

static bool in_text(const struct frames *f, const struct cfi_fde *fde)
{
    uint64_t text = f->elf->text_start;
    return fde->start >= text && fde->start < fde->limit && fde->limit <= f->elf->text_limit &&
           fde->limit - text <= UINT32_MAX;
}

static bool index_fde(struct frames *f, uint64_t at)
{
    const struct cfi_cie *cie;
    struct cfi_fde fde;
    if (!fde_at(f, at, &cie, &fde)) {
        f->malformed++;
        return true;
    }
    if (!in_text(f, &fde)) {
        return true; /* a linker threw its function away and left the FDE */
    }
    struct frames_entry *e = f->index.len < FRAMES_MAX ? vec_push(&f->index) : NULL;
    if (e == NULL) {
        return false;
    }
    *e = (struct frames_entry){(uint32_t)(fde.start - f->elf->text_start),
                               (uint32_t)(fde.limit - fde.start), (uint32_t)at};
    return true;
}

static int by_start(const void *a, const void *b)
{
    const struct frames_entry *x = a, *y = b;
    return x->start != y->start ? (x->start < y->start ? -1 : 1)
                                : (x->at > y->at) - (x->at < y->at);
}

bool frames_scan(struct frames *f)
{
    struct cfi_entry entry;
    bool good = true;
    vec_clear(&f->index);
    uint64_t at = 0;
    for (size_t n = 0; good && n < ENTRIES_MAX && entry_at(f, at, &entry); n++) {
        if (entry.kind == CFI_FDE) {
            good = index_fde(f, at);
        } else if (entry.kind == CFI_CIE && find_cie(f, f->address + at) == NULL) {
            (void)keep_cie(f, f->address + at, &entry);
        } else if (entry.kind == CFI_TERMINATOR && !f->has_end) {
            break;
        }
        at += entry.bytes;
    }
    if (f->index.len > 0) {
        qsort(f->index.at, f->index.len, sizeof *f->index.at, by_start);
    }
    return good;
}

uint64_t frames_count(const struct frames *f)
{
    return f->indexed ? f->index.len : f->table_count;
}

static uint64_t table_offset(const struct frames *f, uint64_t number)
{
    return f->table_offset + number * 2 * entry_width(f->table_encoding);
}

/* An entry of .eh_frame_hdr: where code starts, and where its FDE is. */
static bool decode_entry(const struct frames *f, uint64_t offset, const unsigned char *p,
                         uint64_t *start, uint64_t *fde)
{
    uint64_t width = entry_width(f->table_encoding);
    uint64_t address = f->header_address + (offset - f->elf->eh_frame_hdr.offset);
    struct cursor c = cursor_of(p, 2 * width);
    return cfi_pointer(&c, address, f->header_address, f->table_encoding, start) &&
           cfi_pointer(&c, address + width, f->header_address, f->table_encoding, fde);
}

static bool table_entry(struct frames *f, uint64_t number, uint64_t *start, uint64_t *fde)
{
    uint64_t offset = table_offset(f, number);
    const unsigned char *p = window_at(&f->table, offset, 2 * entry_width(f->table_encoding));
    return p != NULL && decode_entry(f, offset, p, start, fde);
}

/* The same without moving the window: for the first steps of a search, which are far apart. */
static bool far_entry(struct frames *f, uint64_t number, uint64_t *start)
{
    unsigned char bytes[ENTRY_BYTES_MAX];
    uint64_t fde, offset = table_offset(f, number);
    return f->file.read(f->file.context, offset, bytes, 2 * entry_width(f->table_encoding), NULL) &&
           decode_entry(f, offset, bytes, start, &fde);
}

bool frames_start(struct frames *f, uint64_t number, uint64_t *start)
{
    uint64_t fde;
    if (!f->indexed) {
        return table_entry(f, number, start, &fde);
    }
    *start = f->elf->text_start + f->index.at[number].start;
    return true;
}

uint64_t frames_before(struct frames *f, uint64_t address)
{
    uint64_t low = 0, high = frames_count(f), start;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        bool far = !f->indexed && (high - low) * ENTRY_BYTES_MAX / 2 > TABLE_AHEAD;
        if (!(far ? far_entry(f, middle, &start) : frames_start(f, middle, &start))) {
            return 0;
        }
        if (start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool frames_fde(struct frames *f, uint64_t number, const struct cfi_cie **cie,
                struct cfi_fde *fde)
{
    uint64_t start, at;
    if (f->indexed) {
        at = f->index.at[number].at;
    } else if (table_entry(f, number, &start, &at)) {
        at -= f->address;
    } else {
        return false;
    }
    return fde_at(f, at, cie, fde);
}

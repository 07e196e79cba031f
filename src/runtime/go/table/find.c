/* Where the Go symbol table of an image is: by its section, else by its first bytes, which are searched for in
 * writable, then read-only, then executable segments. A header is believed when its sizes are possible and the first
 * function's record agrees with the list. At most GO_SCAN_MAX_BYTES are searched and CANDIDATES_MAX headers tried. */
#include <elf.h>
#include <stdlib.h>

#include "base/cursor.h"
#include "runtime/go/table/private.h"

enum {
    HEADER_BYTES = 8,
    PROT_WRITE = 2, /* of elf_load.prot */
    PROT_EXECUTE = 4,
    PIECE_BYTES = 64 * 1024,
    CANDIDATES_MAX = 4096, /* magic numbers that stand in the data for something else */
};

/* Go 1.9 to 1.11, 1.12, and 1.13 to 1.15 share a magic and number their arrays differently. */
static const struct go_format formats[] = {
    {0xfffffffb, 1, false, false, false, 0,
     {{1, 2, 16, 4, 12, 8, 0, true},
      {1, 2, 20, 2, 12, 8, 16, false},
      {2, 4, 20, 2, 12, 8, 16, false}}},
    {0xfffffffa, 7, false, true, false, 0, {{2, 3, 20, 2, 12, 8, 16, false}}},
    {0xfffffff0, 8, true, true, false, 38, {{2, 3, 20, 2, 12, 8, 16, false}}},
    {0xfffffff1, 8, true, true, true, 40, {{2, 3, 16, 0, 4, 12, 8, false}}},
};

static const struct go_format *format_of(uint32_t magic)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (formats[i].magic == magic) {
            return &formats[i];
        }
    }
    return NULL;
}

/* Instructions are multiples of 1 byte on x86 and of 4 on AArch64. */
static bool header_fits(const struct elf *elf, const unsigned char header[static HEADER_BYTES])
{
    return header[4] == 0 && header[5] == 0 &&
           header[6] == (elf->machine == ELF_AARCH64 ? 4 : 1) && header[7] == go_word_bytes(elf);
}

/* Go 1.2 to 1.15: no offsets but in the list of functions and behind it, all from the header on. */
static bool take_old_parts(struct go_table *t)
{
    size_t word = go_word_bytes(t->reader.elf);
    uint32_t files;
    t->names = t->streams = t->functions = t->files = t->whole;
    t->list = go_from(t->whole, HEADER_BYTES + word);
    if (!go_u32(&t->reader, t->list, (2 * t->function_count + 1) * word, &files)) {
        return false;
    }
    t->units = go_from(t->whole, files);
    return true;
}

static bool take_parts(struct go_table *t)
{
    struct go_span *const parts[] = {&t->names, &t->units, &t->files, &t->streams, &t->functions};
    size_t word = go_word_bytes(t->reader.elf);
    uint64_t at = HEADER_BYTES + (t->format->header_words - 5u) * word, offset;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (!go_word(&t->reader, t->whole, at + i * word, &offset) || offset >= t->whole.bytes) {
            return false;
        }
        *parts[i] = go_from(t->whole, offset);
    }
    t->list = t->functions;
    return true;
}

/* Is the record of the first function the one that the list says? */
static bool first_function_fits(struct go_table *t)
{
    unsigned char listed[8], recorded[8];
    uint64_t width = t->format->relative ? 4 : go_word_bytes(t->reader.elf), at = 0;
    uint32_t small;
    if (width == 8 ? !go_word(&t->reader, t->list, width, &at)
                   : !go_u32(&t->reader, t->list, width, &small)) {
        return false;
    }
    at = width == 8 ? at : small;
    return go_read(&t->reader, t->list, 0, listed, width) && at < t->functions.bytes &&
           go_read(&t->reader, t->functions, at, recorded, width) &&
           memcmp(listed, recorded, width) == 0;
}

static bool take_header(struct go_table *t, uint64_t address, struct go_span whole,
                        struct err *err)
{
    unsigned char header[HEADER_BYTES];
    if (!go_read(&t->reader, whole, 0, header, sizeof header)) {
        return err_set(err, ERR_MALFORMED, 0, "Go symbol table of %llu bytes",
                       (unsigned long long)whole.bytes);
    }
    struct cursor c = cursor_of(header, sizeof header);
    uint32_t magic = cursor_u32(&c);
    t->format = format_of(magic);
    if (t->format == NULL) {
        return err_set(err, ERR_UNSUPPORTED, 0,
                       "Go symbol table version %#x, those of Go 1.2 to 1.26 are known", magic);
    }
    t->quantum = header[6];
    t->address = address;
    t->whole = whole;
    bool good = header_fits(t->reader.elf, header) &&
                go_word(&t->reader, whole, HEADER_BYTES, &t->function_count) &&
                t->function_count > 0 && t->function_count <= GO_FUNCTIONS_MAX &&
                (t->format->header_words == 1 ? take_old_parts(t) : take_parts(t)) &&
                first_function_fits(t);
    return good || err_set(err, ERR_MALFORMED, 0, "Go symbol table with impossible sizes");
}

/* ---- without a section ---- */

/* The pieces of one segment. */
static bool scan_load(struct elf *elf, const struct elf_load *load, unsigned char *buffer,
                      uint64_t *left, bool (*each)(void *, const struct go_piece *), void *context)
{
    uint64_t at = (8 - load->address % 8) % 8;
    while (at < load->file_bytes && *left > 0) {
        uint64_t len = load->file_bytes - at;
        len = len < PIECE_BYTES ? len : PIECE_BYTES;
        if (!elf_read(elf, load->offset + at, buffer, (size_t)len, NULL)) {
            return false;
        }
        struct go_piece piece = {buffer, (size_t)len, load->address + at};
        if (each(context, &piece)) {
            return true;
        }
        at += len;
        *left -= *left < len ? *left : len;
    }
    return false;
}

bool go_scan(struct elf *elf, bool (*each)(void *context, const struct go_piece *piece),
             void *context)
{
    static const uint8_t passes[] = {PROT_WRITE, 0, PROT_EXECUTE};
    uint64_t left = GO_SCAN_MAX_BYTES;
    unsigned char *buffer = malloc(PIECE_BYTES);
    bool found = false;
    for (size_t pass = 0; pass < sizeof passes && buffer != NULL; pass++) {
        for (uint32_t i = 0; !found && i < elf->load_count; i++) {
            uint8_t prot = elf->loads[i].prot;
            prot &= prot & PROT_EXECUTE ? PROT_EXECUTE : PROT_WRITE;
            if (prot == passes[pass]) {
                found = scan_load(elf, &elf->loads[i], buffer, &left, each, context);
            }
        }
    }
    free(buffer);
    return found;
}

struct header_search {
    struct go_table *table;
    unsigned candidates;
};

static bool find_header(void *context, const struct go_piece *piece)
{
    struct header_search *s = context;
    struct elf *elf = s->table->reader.elf;
    for (size_t at = 0; at + HEADER_BYTES <= piece->len; at += go_word_bytes(elf)) {
        const unsigned char *p = piece->bytes + at;
        struct cursor c = cursor_of(p, 4);
        struct go_span span;
        if (p[3] != 0xff || p[2] != 0xff || !header_fits(elf, p) ||
            format_of(cursor_u32(&c)) == NULL || s->candidates++ >= CANDIDATES_MAX) {
            continue;
        }
        if (go_span_of(elf, piece->address + at, &span) &&
            take_header(s->table, piece->address + at, span, NULL)) {
            return true;
        }
    }
    return false;
}

/* An external linker may put the table into .data.rel.ro, but leaves these. */
static bool looks_like_go(struct elf *elf)
{
    static const char *const marks[] = {".go.buildinfo", ".note.go.buildid", ".go.module",
                                        ".noptrdata"};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        if (elf_section(elf, marks[i]) != NULL) {
            return true;
        }
    }
    return elf->sections.len == 0;
}

bool go_find(struct go_table *t, struct err *err)
{
    struct elf *elf = t->reader.elf;
    const struct elf_section *s = elf_section(elf, ".gopclntab");
    s = s != NULL ? s : elf_section(elf, ".data.rel.ro.gopclntab");
    if (s != NULL && s->type == SHT_PROGBITS && !s->compressed) {
        return take_header(t, s->address, (struct go_span){s->offset, s->bytes}, err);
    }
    struct header_search search = {.table = t};
    if (s == NULL && looks_like_go(elf) && go_scan(elf, find_header, &search)) {
        return true;
    }
    return err_set(err, ERR_GONE, 0, "not a Go program");
}

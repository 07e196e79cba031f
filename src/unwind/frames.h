/*
 * frames: a CFI section of an image, and the FDE of an address.
 *
 * Concept. FDEs are numbered in the order of the code they describe. For .eh_frame the order is the
 * sorted table in .eh_frame_hdr, which is searched where it stands in the file; a section without
 * such a table, and .debug_frame, is scanned once into an index of 12 bytes per FDE.
 *
 * Call order. frames_open_eh or frames_open_debug; then any number of times frames_begin, the
 * look-ups, frames_end; frames_release. Between begin and end windows on the file are held.
 *
 * Limits. FRAMES_MAX FDEs are indexed; an entry of more than WINDOW_BYTES is refused; a compressed
 * section is unpacked up to FRAMES_UNPACKED_MAX.
 */
#ifndef UNWIND_FRAMES_H
#define UNWIND_FRAMES_H

#include "elf/elf.h"
#include "unwind/cfi.h"
#include "unwind/window.h"

enum {
    FRAMES_MAX = 1 << 20, /* the largest browsers have 0.7 million */
    FRAMES_SECTION_MAX = 256 << 20,
    FRAMES_CIES = 16,     /* kept decoded; images use 1 to 14 */
    FRAMES_UNPACKED_MAX = 16 << 20,
};

struct frames_cie {
    uint64_t address;
    bool used, good;
    struct cfi_cie cie;
};

struct frames_entry {
    uint32_t start; /* of the code, from elf->text_start */
    uint32_t bytes; /* of the code */
    uint32_t at;    /* of the FDE in the section */
};

struct frames {
    struct elf *elf;
    enum cfi_format format;
    struct memory_reader file; /* the image's, or over `unpacked` */
    uint64_t address;          /* of the section in the image; 0 for .debug_frame */
    uint64_t offset, bytes;    /* in the file; bytes 0: there is no such section */
    bool has_end;              /* `bytes` is the section's; else its segment's, which a terminator ends.
                                * crt files put terminators in the middle of sections too */

    uint64_t table_offset, table_count; /* .eh_frame_hdr's; count 0: there is none */
    uint64_t header_address;
    uint8_t table_encoding;

    bool indexed; /* `index` replaces the table */
    VEC(struct frames_entry) index;

    struct frames_cie cies[FRAMES_CIES];
    unsigned next_cie;
    uint64_t malformed;

    struct window section, table; /* between begin and end */
    struct str unpacked;            /* owned */
};

/* False: the image has no such section, or it cannot be read. */
bool frames_open_eh(struct frames *f, struct elf *elf);
bool frames_open_debug(struct frames *f, struct elf *elf);
void frames_release(struct frames *f);

void frames_begin(struct frames *f);
void frames_end(struct frames *f);

/* Reads the whole section into the index. False when memory ends. */
bool frames_scan(struct frames *f);

uint64_t frames_count(const struct frames *f);

/* Where the code of FDE `number` starts. */
bool frames_start(struct frames *f, uint64_t number, uint64_t *start);

/* How many FDEs start at or before `address`: the last of them is the one that may hold it. */
uint64_t frames_before(struct frames *f, uint64_t address);

/* FDE `number`, decoded; both results are valid until the next call. */
bool frames_fde(struct frames *f, uint64_t number, const struct cfi_cie **cie,
                struct cfi_fde *fde);

size_t frames_bytes(const struct frames *f);

#endif

/*
 * kept_lines: what DWARF told of addresses, kept from one window to the next.
 *
 * A program that runs on is sampled at the same addresses again, and reading DWARF is the dearest
 * part of naming them. Kept is the finished answer per (image, address), also that there is none.
 * Texts are interned, so an address costs 24 bytes and 16 per function inlined at it.
 *
 * Limits. Beyond `max_bytes` everything is forgotten at once: what a program uses is back after one
 * window. An answer that does not fit is not kept.
 */
#ifndef SYMBOL_KEPT_LINES_H
#define SYMBOL_KEPT_LINES_H

#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "profile/profile.h"

struct kept_line {
    uint32_t name, system_name, file; /* numbers of texts */
    uint32_t line;
};

struct kept_answer {
    uint64_t image, address;
    uint32_t first; /* in lines */
    uint32_t count;
};

struct kept_lines {
    VEC(struct str) texts; /* element 0 is "" */
    struct intern text_ids;
    struct arena arena;
    VEC(struct kept_line) lines;
    VEC(struct kept_answer) answers;
    struct map ids; /* answers by image and address */
    size_t max_bytes;
};

void kept_lines_init(struct kept_lines *k, size_t max_bytes);
void kept_lines_release(struct kept_lines *k);
size_t kept_lines_bytes(const struct kept_lines *k);

/* False: nothing is kept of this address. *count 0: it is known that nothing is. The texts are
 * borrowed until the next kept_lines_add. */
bool kept_lines_find(const struct kept_lines *k, uint64_t image, uint64_t address,
                     struct source_line out[static PROFILE_INLINES_MAX], size_t *count);

void kept_lines_add(struct kept_lines *k, uint64_t image, uint64_t address,
                    const struct source_line *lines, size_t count);

#endif

/*
 * image: a file's constants and pointers, for what no symbol names.
 */
#ifndef RUNTIME_COMMON_IMAGE_H
#define RUNTIME_COMMON_IMAGE_H

#include "elf/elf.h"

enum {
    IMAGE_OVERLAP_BYTES = 32, /* of the pieces shown: what is looked for is shorter */
    IMAGE_WRITE = 2,          /* protections of segments, as in struct elf_load */
    IMAGE_EXECUTE = 4,
};

struct image_piece {
    const unsigned char *bytes;
    size_t len;
    uint64_t address;
};

/* Shows `each` the segments of this protection (but for reading), as the file has them, in pieces
 * that overlap, until it returns true; false when it never does. Reads 64 MiB at most. */
bool image_scan(struct elf *elf, uint8_t prot,
                       bool (*each)(void *context, const struct image_piece *piece), void *context);

/* The pointers that stand in a file's data once it is loaded: those it has in place, and those that
 * relative relocations put there (x86-64 and AArch64 psABI: R_X86_64_RELATIVE, R_AARCH64_RELATIVE;
 * addresses are the file's). */
struct image_pointer {
    uint64_t at, to;
};
struct image_pointers {
    struct elf *elf;
    struct image_pointer *relocated; /* by `at` */
    size_t count;
};
void image_pointers_open(struct image_pointers *p, struct elf *elf);
void image_pointers_close(struct image_pointers *p);

/* 0: none, or not known. */
uint64_t image_pointer_at(const struct image_pointers *p, uint64_t address);

/* Where pointers to `to` stand: the first `max` of them. */
size_t image_pointers_to(const struct image_pointers *p, uint64_t to, uint64_t *at, size_t max);

#endif

/*
 * ranges: which code of a file is what to its runtime: ranges of functions with what they stand for.
 *
 * Call order: code_ranges_open; add; code_ranges_close, which puts them in order; then code_range_at, from any
 * thread. A file that names its functions is read with code_name_among over elf_each_function.
 */
#ifndef RUNTIME_COMMON_RANGES_H
#define RUNTIME_COMMON_RANGES_H

#include "runtime/runtime.h"

struct code_range {
    uint64_t start, limit; /* ELF addresses */
    uint8_t native;        /* enum runtime_native */
};

struct code_ranges {
    struct code_range *at; /* by start, not overlapping, once closed; null: no memory */
    size_t count, max;
    bool has_names_only; /* of a stripped file: what is in no range has no name */
};

bool code_ranges_open(struct code_ranges *r, size_t max);
void code_ranges_add(struct code_ranges *r, uint64_t start, uint64_t limit, uint8_t native);
/* Of what several claim (aliases, parts that reach into the next function) the first one keeps all, the loop before
 * others. */
void code_ranges_close(struct code_ranges *r);
void code_ranges_release(struct code_ranges *r);
enum runtime_native code_range_at(const struct code_ranges *r, uint64_t elf_address);

/* A name ending in '*' stands for all that begin so; a compiler's suffix (".cold") counts as the function. */
bool code_name_among(struct str name, const char *const *patterns, size_t count);

/* cold.c: the other parts of the function [start, limit): compilers move what they think is seldom
 * run away from it, in an interpreter's loop often most of it. At most `max` ranges. */
size_t code_find_cold(struct elf *elf, const struct runtime_code *code, uint64_t start, uint64_t limit,
                      struct code_range *out, size_t max);

/* named.c: adds how an interpreter calls itself: functions of these names, but for those that begin a range which is
 * known to be something else; and, of a stripped file, those that have a name. */
struct code_plumbing {
    const char *const *names; /* as for code_name_among */
    size_t name_count;
    const struct code_range *known;
    size_t known_count;
};
void code_ranges_add_named(struct code_ranges *r, struct elf *elf, const struct code_plumbing *plumbing);
/* A function with its other parts. */
void code_ranges_add_with_cold(struct code_ranges *r, struct elf *elf, const struct runtime_code *code,
                               const struct code_range *range);
/* code_range_at; of a stripped file plumbing, where no name is. */
enum runtime_native code_range_or_unnamed(const struct code_ranges *r, uint64_t elf_address);

#endif

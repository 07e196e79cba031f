/* Any bytes as /proc/kallsyms, in pieces whose length is the first byte; and again for the addresses of some of the
 * functions, which then must be the same. */
#include "symbol/symbols.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SOME = 8 };

/* In front of all: lines do not rise then, and none is left unread as not needed. */
static const char first[] = "000000007fffffff T z\n";

static bool load(struct symbols *s, const uint8_t *data, size_t size, const uint64_t *address, size_t count)
{
    struct kallsyms k;
    struct err err;
    size_t step = size > 0 ? data[0] + 1u : 1;
    symbols_init(s, 4096);
    kallsyms_init(&k, s);
    if (count > 0 && !kallsyms_only(&k, address, count)) {
        abort();
    }
    (void)kallsyms_feed(&k, first, sizeof first - 1, &err);
    for (size_t at = 1; at < size; at += step) {
        (void)kallsyms_feed(&k, data + at, size - at < step ? size - at : step, &err);
    }
    return kallsyms_finish(&k, &err);
}

static struct symbol_hit name_at(const struct symbols *s, uint64_t address, struct buf *name)
{
    struct symbol_hit hit = {0};
    buf_init(name, 2 * KALLSYMS_LINE_MAX);
    if (symbols_find(s, address, &hit) && !symbols_name(s, NULL, &hit, name)) {
        abort();
    }
    return hit;
}

static void compare(const struct symbols *all, const struct symbols *some, uint64_t address)
{
    struct buf one, other;
    struct symbol_hit a = name_at(all, address, &one), b = name_at(some, address, &other);
    if (a.start != b.start || a.size != b.size || !str_eq(buf_slice(&one), buf_slice(&other))) {
        abort();
    }
    buf_release(&one);
    buf_release(&other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct symbols s, some;
    uint64_t address[SOME];
    size_t count = 0;
    if (!load(&s, data, size, NULL, 0)) {
        if (symbols_bytes(&s) != 0) {
            abort();
        }
        return 0;
    }
    for (size_t i = 0; i < s.table.len; i++) {
        struct buf name;
        (void)name_at(&s, s.base + s.table.at[i].start, &name);
        buf_release(&name);
    }
    for (size_t i = 0; i < s.table.len && count < SOME; i += 1 + s.table.len / SOME) {
        uint64_t next = s.base + s.table.at[i].start + i % 3;
        if (count == 0 || next > address[count - 1]) { /* functions may be shorter than what is added */
            address[count++] = next;
        }
    }
    if (!load(&some, data, size, address, count)) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        compare(&s, &some, address[i]);
    }
    symbols_release(&s);
    symbols_release(&some);
    return 0;
}

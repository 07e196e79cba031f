/* Any bytes as a perf map and as a jitdump. Byte 0 is the length of the pieces, byte 1 tells which
 * of the two, or both in turns. What is known in the end must not depend on the pieces, and a small
 * table must stay as small as it was told to be. */
#include "../lab/jit_stats.h"

#include <stdlib.h>

enum { AMPLE_BYTES = 1 << 22, SMALL_BYTES = 130 << 10, ADDRESSES = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void feed(struct jit_names *names, unsigned kind, const uint8_t *data, size_t size)
{
    struct err err;
    if (kind != 1) {
        jit_feed_map(names, data, size);
    }
    if (kind != 0) {
        (void)jit_feed_dump(names, data, size, &err);
    }
}

static struct jit_names *fed(size_t max_bytes, unsigned kind, const uint8_t *data, size_t size,
                             size_t piece)
{
    struct jit_names *names = jit_names_new(max_bytes);
    for (size_t at = 0; names != NULL && at < size; at += piece) {
        feed(names, kind, data + at, size - at < piece ? size - at : piece);
        if (jit_names_stats(names).bytes > max_bytes) {
            abort();
        }
    }
    if (names == NULL) {
        abort();
    }
    return names;
}

static uint64_t number_at(const uint8_t *data, size_t size, size_t at)
{
    uint64_t number = 0;
    memcpy(&number, data + at, size - at < sizeof number ? size - at : sizeof number);
    return number;
}

static bool look(struct jit_names *names, uint64_t address, uint64_t time_ns, struct jit_hit *hit)
{
    if (!jit_lookup(names, address, time_ns, hit)) {
        return false;
    }
    if (address < hit->start || address >= hit->limit || hit->name.len == 0 ||
        hit->name.len > JIT_LINE_MAX) {
        abort();
    }
    volatile char last = hit->name.ptr[hit->name.len - 1];
    (void)last;
    return true;
}

static void compare(struct jit_names *a, struct jit_names *b, uint64_t address, uint64_t time_ns)
{
    struct jit_hit x, y;
    bool in_a = look(a, address, time_ns, &x), in_b = look(b, address, time_ns, &y);
    if (in_a != in_b || (in_a && (x.start != y.start || x.limit != y.limit || x.line != y.line ||
                                  !str_eq(x.name, y.name) || !str_eq(x.file, y.file)))) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    size_t piece = data[0] + 1u;
    unsigned kind = data[1] % 3;
    data += 2;
    size -= 2;
    struct jit_names *whole = fed(AMPLE_BYTES, kind == 2 ? 1 : kind, data, size, size + 1);
    struct jit_names *pieces = fed(AMPLE_BYTES, kind == 2 ? 1 : kind, data, size, piece);
    struct jit_names *small = fed(SMALL_BYTES, kind, data, size, 4096);
    struct jit_stats a = jit_names_stats(whole), b = jit_names_stats(pieces);
    if (a.names != b.names || a.replaced != b.replaced || a.damaged != b.damaged) {
        abort();
    }
    for (size_t i = 0; i < ADDRESSES && i < size; i++) {
        uint64_t address = number_at(data, size, i * (size / ADDRESSES + 1) % size);
        uint64_t time_ns = number_at(data, size, (i * 7919) % size);
        struct jit_hit hit;
        compare(whole, pieces, address, time_ns);
        compare(whole, pieces, address & 0xffff, UINT64_MAX);
        (void)look(small, address, time_ns, &hit);
    }
    jit_names_free(whole);
    jit_names_free(pieces);
    jit_names_free(small);
    return 0;
}

/* What the runtime counts of all its heap and of its collector, as runtime.ReadMemStats tells; nobody is stopped.
 *
 * Of the heap it counts differences in a ring of three: who counts adds to the current one; a reader of runtime/metrics
 * makes the next one current, merges the two before, and clears the older. So outside of that the one behind the
 * current is clear, and all of them together are the truth; a merge may be met half done, which takes it microseconds.
 * Two copies are taken, one after the other. Where the same one is current in both, and the one behind it is clear in
 * both, no merge has touched the second: its turn would stand between the two, or what it merges in the first.
 *
 * Allocations of small objects are counted there when a processor is done with a span: what it has allocated of those
 * that it holds is added, as ReadMemStats has it flushed. Since Go 1.19 a span says how many of its objects were
 * counted before; in Go 1.18 all that it has room for are. One that changes hands meanwhile is missed or counted twice.
 *
 * Source: Go src/runtime/mstats.go, mcache.go, sizeclasses.go. */
#include "runtime/common/load.h"
#include "runtime/go/memory/memory_private.h"

enum {
    RING = 3,
    CLASSES = 68,
    SPANS = 2 * CLASSES, /* that a processor holds: with pointers, and without */
    DELTA_WORDS_MAX = 6 + 5 + 2 * CLASSES,
    COPY_BYTES_MAX = 8 * (RING * DELTA_WORDS_MAX + 1),
    TRIES = 4,
    PROCESSORS_MAX = 4096,
    SPAN_BYTES = 112, /* read of an mspan */
    COMMITTED = 0, IN_HEAP = 2, /* words of a delta; both are bytes of whole pages */
    SYSTEM_PAGE = 4096, PAGE = 8192,
};

/* Behind the sum of pauses: a ring of pauses, one of their ends, and the number of cycles. */
enum { PAUSES_AT = 8, CYCLES_AT = PAUSES_AT + 2 * 8 * GO_PAUSES, PAUSES_BYTES = CYCLES_AT + 4 };

/* Bytes of an object of a size class, the same in all versions. */
static const uint16_t class_bytes[CLASSES] = {
    0, 8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 288, 320, 352, 384, 416, 448,
    480, 512, 576, 640, 704, 768, 896, 1024, 1152, 1280, 1408, 1536, 1792, 2048, 2304, 2688, 3072, 3200, 3456, 4096,
    4864, 5376, 6144, 6528, 6784, 6912, 8192, 9472, 9728, 10240, 10880, 12288, 13568, 14336, 16384, 18432, 19072, 20480,
    21760, 24576, 27264, 28672, 32768,
};

/* ---- of the heap ---- */

struct ring {
    uint64_t words[RING * DELTA_WORDS_MAX];
    size_t delta; /* words of one */
    uint32_t current;
};

static bool copy_ring(struct go_memory *m, uint64_t address, struct ring *r)
{
    unsigned char raw[COPY_BYTES_MAX];
    r->delta = m->layout->sizes + 5U + 2 * CLASSES;
    size_t len = RING * r->delta * 8;
    if (!go_peek(m, address + m->layout->heap_stats, raw, len + 4)) {
        return false;
    }
    memcpy(r->words, raw, len);
    r->current = load_u32(raw + len);
    return r->current < RING;
}

static bool is_next_clear(const struct ring *r)
{
    const uint64_t *next = r->words + (r->current + 1) % RING * r->delta;
    uint64_t any = 0;
    for (size_t i = 0; i < r->delta; i++) {
        any |= next[i];
    }
    return any == 0;
}

static uint64_t sum(const struct ring *r, size_t word)
{
    return r->words[word] + r->words[r->delta + word] + r->words[2 * r->delta + word];
}

static bool read_ring(struct go_memory *m, uint64_t address, struct ring *r)
{
    for (unsigned i = 0; i < TRIES; i++) {
        uint32_t before;
        bool good = copy_ring(m, address, r) && is_next_clear(r);
        before = r->current;
        if (good && copy_ring(m, address, r) && is_next_clear(r) && r->current == before) {
            return true;
        }
    }
    return false;
}

static void add_heap(const struct ring *r, const struct go_layout *layout, struct go_memstats *out)
{
    size_t tiny = layout->sizes, large = tiny + 1, small = tiny + 3, large_freed = small + CLASSES,
           small_freed = large_freed + 2;
    uint64_t freed = sum(r, large_freed);
    out->total_alloc = sum(r, large);
    out->mallocs = sum(r, large + 1) + sum(r, tiny);
    out->frees = sum(r, large_freed + 1) + sum(r, tiny);
    for (size_t i = 0; i < CLASSES; i++) {
        out->mallocs += sum(r, small + i);
        out->frees += sum(r, small_freed + i);
        out->total_alloc += sum(r, small + i) * class_bytes[i];
        freed += sum(r, small_freed + i) * class_bytes[i];
    }
    out->heap_alloc = out->total_alloc - freed;
}

/* ---- of processors ---- */

static void add_objects(struct go_memstats *stats, uint64_t count, uint64_t bytes)
{
    stats->mallocs += count;
    stats->total_alloc += count * bytes;
    stats->heap_alloc += count * bytes;
}

static bool add_spans(struct go_memory *m, uint64_t cache, struct go_memstats *out)
{
    unsigned char raw[8 * (1 + SPANS)], spans[SPANS][SPAN_BYTES];
    struct memory_piece pieces[SPANS];
    if (!go_peek(m, cache + m->layout->tiny, raw, sizeof raw)) {
        return false;
    }
    for (size_t i = 0; i < SPANS; i++) {
        pieces[i] = (struct memory_piece){.address = load_u64(raw + 8 + 8 * i), .out = spans[i], .len = SPAN_BYTES};
        if (!plausible(pieces[i].address)) {
            return false;
        }
    }
    if (!memory_batch_read(m->process.memory, pieces, SPANS, &m->unread)) {
        return false;
    }
    add_objects(out, load_u64(raw), 0);
    out->frees += load_u64(raw); /* ReadMemStats counts small ones within an object as freed at once */
    for (size_t i = 0; i < SPANS; i++) {
        uint16_t objects, base;
        memcpy(&objects, spans[i] + m->layout->span_objects, sizeof objects);
        memcpy(&base, spans[i] + m->layout->span_base, sizeof base);
        if (pieces[i].got != SPAN_BYTES) {
            return false;
        }
        add_objects(out, (uint64_t)objects - base, class_bytes[i / 2]);
    }
    return true;
}

/* A processor knows its number; it has no cache before its first work. */
static bool read_processor(struct go_memory *m, uint64_t address, uint64_t number, uint64_t *cache)
{
    unsigned char id[4];
    return address % 8 == 0 && go_peek(m, address, id, sizeof id) && load_u32(id) == number &&
           go_peek_word(m, address + m->layout->cache, cache) && (*cache == 0 || plausible(*cache));
}

/* With null they are only looked at. */
static bool each_processor(struct go_memory *m, uint64_t slice, struct go_memstats *out)
{
    unsigned char raw[16];
    uint64_t address, cache;
    if (!go_peek(m, slice, raw, sizeof raw) || load_u64(raw + 8) == 0 || load_u64(raw + 8) > PROCESSORS_MAX) {
        return false;
    }
    for (uint64_t i = 0; i < load_u64(raw + 8); i++) {
        if (!go_peek_word(m, load_u64(raw) + 8 * i, &address) || !read_processor(m, address, i, &cache) ||
            (out != NULL && cache != 0 && !add_spans(m, cache, out))) {
            return false;
        }
    }
    return true;
}

/* ---- what is found ---- */

bool go_are_counts(struct go_memory *m, uint64_t address)
{
    struct ring r;
    return address % 8 == 0 && read_ring(m, address, &r) && sum(&r, IN_HEAP) > 0 && sum(&r, IN_HEAP) % PAGE == 0 &&
           sum(&r, COMMITTED) % SYSTEM_PAGE == 0 && sum(&r, IN_HEAP) <= sum(&r, COMMITTED) &&
           plausible(sum(&r, COMMITTED));
}

bool go_are_processors(struct go_memory *m, uint64_t slice)
{
    return each_processor(m, slice, NULL);
}

static void read_pauses(const unsigned char *raw, struct go_memstats *out)
{
    out->has_pause_total = true;
    out->pause_total_ns = load_u64(raw);
    out->num_gc = load_u32(raw + CYCLES_AT);
    memcpy(out->pause_ns, raw + PAUSES_AT, sizeof out->pause_ns);
}

bool go_memory_counts(struct go_memory *m, struct go_memstats *out, struct err *why)
{
    static const char what[] = "memory statistics of a Go program";
    unsigned char raw[PAUSES_BYTES];
    struct ring ring;
    struct go_memstats read = {0};
    if (m->counts == 0 || m->processors == 0) {
        return err_set(why, ERR_MALFORMED, 0, "%s: its tables were not found in its memory", what);
    }
    if (!go_peek(m, m->counts + m->layout->pauses, raw, sizeof raw) || !read_ring(m, m->counts, &ring)) {
        return go_unread(m, why, what);
    }
    read_pauses(raw, &read);
    add_heap(&ring, m->layout, &read);
    if (!each_processor(m, m->processors, &read) || read.heap_alloc > read.total_alloc || read.frees > read.mallocs) {
        return go_unread(m, why, what);
    }
    *out = read;
    return true;
}

/*
 * Any memory as that of a Go process: a well-made one (tests/unit/go_process.h) of the version and processor that the
 * first byte tells, its data and heap spoiled by records of a place (24 bits), a length and that many bytes; the
 * second byte says whether the memory changes while it is read. Whatever is told must be a whole profile.
 */
#include "base/cursor.h"
#include "base/gzip.h"

#include "../unit/go_process.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const enum go_function_number stack[] = {RUNTIME_GOPARK, MAIN_WAIT, MAIN_WRAPPER, RUNTIME_GOEXIT};
static const char *const versions[] = {"go 1.18.1", "go 1.19", "go 1.21.3", "go 1.22", "go 1.23", "go 1.24",
                                       "go 1.25", "go 1.26.8", "go 1.27"};

static void flicker(struct go_made *g, uint64_t address, size_t len)
{
    (void)len;
    unsigned char *at = g->heap + (address ^ g->reads * 0x9e3779b1u) % GO_HEAP_BYTES;
    *at = (unsigned char)(*at ^ 1u << g->reads % 8);
}

static void spoil(struct go_made *g, struct cursor *c)
{
    while (c->len >= 5) {
        uint32_t place = cursor_u16(c) | (uint32_t)cursor_u8(c) << 16, len = cursor_u8(c) % 32u;
        for (uint32_t i = 0; i < len && c->len > 0; i++, place++) {
            place %= GO_DATA_BYTES + GO_HEAP_BYTES;
            *(place < GO_DATA_BYTES ? g->data + place : g->heap + (place - GO_DATA_BYTES)) = cursor_u8(c);
        }
    }
}

static void check(bool told, struct buf *out)
{
    struct buf plain;
    buf_init(&plain, 64 << 20);
    if (told && (out->len == 0 || !gzip_inflate(out->ptr, out->len, &plain, NULL))) {
        abort();
    }
    buf_release(&plain);
}

static void tell(struct go_made *g)
{
    struct buf out;
    struct err err;
    struct go_settings settings;
    struct go_memstats counts;
    uint64_t count;
    buf_init(&out, GO_PROFILE_MAX_BYTES);
    (void)go_memory_settings(g->m, &settings, &err);
    if (go_memory_counts(g->m, &counts, &err) &&
        (counts.frees > counts.mallocs || counts.heap_alloc > counts.total_alloc)) {
        abort();
    }
    check(go_memory_heap(g->m, 1, &out, &err), &out);
    check(go_memory_contention(g->m, GO_BLOCK, 1, &out, &err), &out);
    check(go_memory_contention(g->m, GO_MUTEX, 1, &out, &err), &out);
    check(go_memory_goroutines(g->m, 1, &out, &count, &err), &out);
    check(go_memory_waits(g->m, 1, 1000, &out, &err), &out);
    for (enum go_profile i = GO_HEAP; i <= GO_WAITS; i++) {
        (void)go_memory_remark(g->m, i);
    }
    buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cursor c = cursor_of(data, size);
    unsigned which = cursor_u8(&c), changes = cursor_u8(&c);
    struct go_made *g = go_make(which & 0x80 ? EM_AARCH64 : EM_X86_64);
    const uint64_t pcs[] = {go_pc(RUNTIME_MALLOC), go_pc(MAIN_WAIT), go_pc(MAIN_MAIN)}, record[16] = {5, 1, 320, 64, 1};
    for (unsigned i = 0; i < 4; i++) {
        (void)go_add_goroutine(g, i + 1, GO_REASON_CHAN, MAIN_WAIT, stack, 4);
        (void)go_add_bucket(g, i % 3 + 1, 64, pcs, 3, record, i % 3 == 0 ? 16 : 2);
    }
    spoil(g, &c);
    g->moves = changes & 1 ? flicker : NULL;
    struct err err;
    if (go_make_ready(g) && go_make_open(g, versions[(which & 0x7f) % (sizeof versions / sizeof versions[0])], &err)) {
        tell(g);
    }
    go_make_release(g);
    return 0;
}

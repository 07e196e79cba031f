/* What the Go runtime counts by stack: allocations, and waiting for channels and locks. A bucket is a header, the
 * stack's return addresses and a record; those of a kind are a chain from the newest to the oldest, never freed and
 * only added to at its start. They lie one behind the other in chunks of 256 KiB, so memory is read in large pieces;
 * a record is always in one piece.
 *
 * Source: Go src/runtime/mprof.go (bucket, newBucket, stkbucket). */
#include "runtime/go/memory/buckets.h"

#include "runtime/common/load.h"

enum {
    NEXT_AT = 8, TYPE_AT = 16, SIZE_AT = 32, COUNT_AT = 40, STACK_AT = 48, /* of struct go_bucket */
};

static bool load(struct go_buckets *r, uint64_t start, size_t len)
{
    struct memory_piece piece = {.address = start, .out = r->bytes, .len = (uint32_t)len};
    bool read = memory_batch_read(r->m->process.memory, &piece, 1, &r->m->unread);
    r->start = start;
    r->have = read ? piece.got : 0;
    return read;
}

/* `len` bytes (far less than the window) at an address, from a window that may hold the next buckets too. */
static const unsigned char *view(struct go_buckets *r, uint64_t address, size_t len)
{
    uint64_t starts[] = {r->start, address / GO_WINDOW_BYTES * GO_WINDOW_BYTES, address & ~(uint64_t)4095};
    for (size_t i = 0; plausible(address) && i < sizeof starts / sizeof starts[0]; i++) {
        if (i > 0 && !load(r, starts[i], GO_WINDOW_BYTES)) {
            return NULL;
        }
        if (address >= r->start && address - r->start <= r->have && r->have - (address - r->start) >= len) {
            return r->bytes + (address - r->start);
        }
    }
    return plausible(address) && load(r, address, len) && r->have == len ? r->bytes : NULL;
}

static size_t record_bytes(const struct go_memory *m, uint64_t type)
{
    return type != GO_BUCKET_MEMORY ? 16 : m->layout->counts_bytes ? 128 : 64;
}

static bool is_header(const unsigned char *raw)
{
    uint64_t next = load_u64(raw + NEXT_AT), type = load_u64(raw + TYPE_AT);
    return type >= GO_BUCKET_MEMORY && type <= GO_BUCKET_MUTEX && load_u64(raw + COUNT_AT) <= GO_DEPTH_MAX &&
           (next == 0 || (plausible(next) && next % 8 == 0));
}

unsigned go_bucket_type(struct go_memory *m, uint64_t address)
{
    unsigned char raw[STACK_AT];
    if (address % 8 != 0 || !go_peek(m, address, raw, sizeof raw) || !is_header(raw)) {
        return 0;
    }
    return (unsigned)load_u64(raw + TYPE_AT);
}

static bool read_bucket(struct go_buckets *r, uint64_t address, uint64_t type)
{
    struct go_bucket *b = &r->bucket;
    const unsigned char *raw = address % 8 == 0 ? view(r, address, STACK_AT) : NULL;
    if (raw == NULL || !is_header(raw) || load_u64(raw + TYPE_AT) != type) {
        return false;
    }
    size_t count = (size_t)load_u64(raw + COUNT_AT), record = record_bytes(r->m, type);
    raw = view(r, address, STACK_AT + 8 * count + record);
    if (raw == NULL || load_u64(raw + COUNT_AT) != count) {
        return false;
    }
    b->next = load_u64(raw + NEXT_AT);
    b->size = load_u64(raw + SIZE_AT);
    b->count = count;
    for (size_t i = 0; i < count; i++) {
        b->pcs[i] = load_u64(raw + STACK_AT + 8 * i);
    }
    memcpy(b->record, raw + STACK_AT + 8 * count, record);
    return true;
}

uint64_t go_buckets_first(struct go_memory *m, enum go_bucket_type type)
{
    for (size_t i = 0; i < m->head_count; i++) {
        uint64_t first;
        if (go_peek_word(m, m->heads[i], &first) && first != 0 && go_bucket_type(m, first) == type) {
            return first;
        }
    }
    return 0;
}

/* Where all three lists are known, none of them leads to what is no bucket. */
static bool is_damaged(struct go_memory *m)
{
    uint64_t first;
    for (size_t i = 0; i < m->head_count && m->head_count == GO_BUCKET_MUTEX; i++) {
        if (!go_peek_word(m, m->heads[i], &first) || (first != 0 && go_bucket_type(m, first) == 0)) {
            return true;
        }
    }
    return false;
}

bool go_buckets_walk(struct go_buckets *r, enum go_bucket_type type,
                     bool (*each)(void *context, struct go_buckets *r), void *context, struct err *why)
{
    uint64_t at = go_buckets_first(r->m, type), passed = 0; /* a chain that comes back here is a circle (Brent) */
    if (at == 0 && is_damaged(r->m)) {
        return go_unread(r->m, why, "a Go program's profile");
    }
    r->have = 0; /* what was read earlier is of another moment */
    for (uint32_t n = 0; at != 0; n++) {
        if (n == GO_BUCKETS_MAX) {
            return err_set(why, ERR_LIMIT, 0, "a Go program's profile has more than %d stacks", GO_BUCKETS_MAX);
        }
        if (at == passed || !read_bucket(r, at, type)) {
            return go_unread(r->m, why, "a Go program's profile");
        }
        passed = (n & (n - 1)) == 0 ? at : passed;
        if (!each(context, r)) {
            return false;
        }
        at = r->bucket.next;
    }
    return true;
}

/* In steps, each of what the one before led to: the list or the map with its buckets, the pairs of strings, and all
 * texts at once. Every number read is the target's, which may be wrong or mean ill: counts are cut, and chains end
 * after CHAIN_MAX. */
#include "runtime/go/memory/label_set.h"
#include "runtime/common/load.h"

enum {
    PAIR_BYTES = 32, /* two strings: address and length */
    STRING_BYTES = 16,
    /* A map of strings: number of entries, log2 of the number of buckets, buckets, and those not moved yet. */
    MAP_BYTES = 40, MAP_LOG_AT = 9, MAP_BUCKETS_AT = 16, MAP_OLD_AT = 24, MAP_LOG_MAX = 4,
    /* A bucket: a byte for each of 8 entries (free below 5), keys, values, the next one. */
    SLOTS = 8, SLOT_USED = 5, KEYS_AT = 8, VALUES_AT = 136, NEXT_AT = 264, BUCKET_BYTES = 272, CHAIN_MAX = 8,
};

struct reading {
    struct memory_batch *memory;
    struct err *unread;
    unsigned char pairs[GO_LABELS_MAX][PAIR_BYTES];
    size_t count;
};

static bool peek(struct reading *r, uint64_t address, void *out, size_t len)
{
    struct memory_piece piece = {.address = address, .out = out, .len = (uint32_t)len};
    return plausible(address) && memory_batch_read(r->memory, &piece, 1, r->unread) && piece.got == len;
}

static bool read_list(struct reading *r, uint64_t address)
{
    unsigned char slice[16];
    if (!peek(r, address, slice, sizeof slice)) {
        return false;
    }
    uint64_t count = load_u64(slice + 8);
    r->count = count < GO_LABELS_MAX ? (size_t)count : GO_LABELS_MAX;
    return r->count == 0 || peek(r, load_u64(slice), r->pairs, r->count * PAIR_BYTES);
}

static bool read_chain(struct reading *r, uint64_t at)
{
    unsigned char raw[BUCKET_BYTES];
    for (unsigned n = 0; at != 0; n++, at = load_u64(raw + NEXT_AT)) {
        if (n == CHAIN_MAX || !peek(r, at, raw, sizeof raw)) {
            return false;
        }
        for (size_t i = 0; i < SLOTS && r->count < GO_LABELS_MAX; i++) {
            if (raw[i] >= SLOT_USED) {
                memcpy(r->pairs[r->count], raw + KEYS_AT + STRING_BYTES * i, STRING_BYTES);
                memcpy(r->pairs[r->count++] + STRING_BYTES, raw + VALUES_AT + STRING_BYTES * i, STRING_BYTES);
            }
        }
    }
    return true;
}

/* One that has grown beyond a bucket may not have moved all entries yet. */
static bool read_map(struct reading *r, uint64_t address)
{
    unsigned char raw[MAP_BYTES];
    if (!peek(r, address, raw, 8)) {
        return false;
    }
    uint64_t map = load_u64(raw);
    if (map == 0) {
        return true;
    }
    if (!peek(r, map, raw, sizeof raw) || raw[MAP_LOG_AT] > MAP_LOG_MAX || load_u64(raw + MAP_OLD_AT) != 0) {
        return false;
    }
    uint64_t buckets = load_u64(raw) == 0 ? 0 : (uint64_t)1 << raw[MAP_LOG_AT];
    for (uint64_t i = 0; i < buckets; i++) {
        if (!read_chain(r, load_u64(raw + MAP_BUCKETS_AT) + i * BUCKET_BYTES)) {
            return false;
        }
    }
    return true;
}

/* Keys and values by turns. */
static bool read_texts(struct reading *r, struct go_label_set *out)
{
    struct memory_piece pieces[2 * GO_LABELS_MAX];
    for (size_t i = 0; i < 2 * r->count; i++) {
        const unsigned char *string = r->pairs[i / 2] + i % 2 * STRING_BYTES;
        uint64_t len = load_u64(string + 8);
        pieces[i] = (struct memory_piece){.address = load_u64(string), .out = out->texts + i * GO_LABEL_TEXT_MAX,
                                          .len = (uint32_t)(len < GO_LABEL_TEXT_MAX ? len : GO_LABEL_TEXT_MAX)};
    }
    if (!memory_batch_read(r->memory, pieces, 2 * r->count, r->unread)) {
        return false;
    }
    for (size_t i = 0; i < 2 * r->count; i++) {
        struct str *text = i % 2 == 0 ? &out->keys[i / 2] : &out->values[i / 2];
        if (pieces[i].got != pieces[i].len) {
            return false;
        }
        *text = (struct str){pieces[i].out, strnlen(pieces[i].out, pieces[i].len)};
    }
    return true;
}

static void sort(struct go_label_set *set)
{
    for (size_t i = 1; i < set->count; i++) {
        for (size_t j = i; j > 0 && str_compare(set->keys[j], set->keys[j - 1]) < 0; j--) {
            struct str key = set->keys[j], value = set->values[j];
            set->keys[j] = set->keys[j - 1];
            set->values[j] = set->values[j - 1];
            set->keys[j - 1] = key;
            set->values[j - 1] = value;
        }
    }
}

bool go_label_set_read(struct memory_batch *memory, bool is_list, uint64_t address, struct go_label_set *out,
                       struct err *unread)
{
    struct reading r = {.memory = memory, .unread = unread};
    out->count = 0;
    if (!(is_list ? read_list(&r, address) : read_map(&r, address)) || (r.count > 0 && !read_texts(&r, out))) {
        return false;
    }
    out->count = r.count;
    sort(out);
    return true;
}

/* A goroutine's labels (pprof.Do, SetGoroutineLabels). Since Go 1.24 a slice of pairs of strings, sorted by key;
 * earlier a map of strings, whose order is another in each map, so it is sorted here. Either is never changed once it
 * was made: each set is read once, by its address, and equal sets at other addresses get one number.
 *
 * Sources: Go src/runtime/pprof/label.go; of maps up to Go 1.23 src/runtime/map.go (hmap, bmap). */
#include "runtime/common/load.h"
#include "runtime/go/memory/goroutines.h"

enum {
    TEXT_MAX = 256,
    PAIR_BYTES = 32,
    SET_MAX_BYTES = GO_LABELS_MAX * 2 * (TEXT_MAX + 1),
    /* A map of strings: number of entries, log2 of the number of buckets, buckets, and those not moved yet. */
    MAP_BYTES = 40, MAP_LOG_AT = 9, MAP_BUCKETS_AT = 16, MAP_OLD_AT = 24, MAP_LOG_MAX = 4,
    /* A bucket: a byte for each of 8 entries (free below 5), keys, values, the next one. */
    SLOTS = 8, SLOT_USED = 5, KEYS_AT = 8, VALUES_AT = 136, NEXT_AT = 264, BUCKET_BYTES = 272, CHAIN_MAX = 8,
};

struct pair {
    unsigned char key[16], value[16]; /* Go strings: address and length */
};

struct set {
    struct pair pairs[GO_LABELS_MAX];
    struct str keys[GO_LABELS_MAX], values[GO_LABELS_MAX];
    size_t count;
};

static bool read_list(struct go_memory *m, uint64_t address, struct set *out)
{
    unsigned char slice[16];
    if (!go_peek(m, address, slice, sizeof slice)) {
        return false;
    }
    uint64_t count = load_u64(slice + 8);
    out->count = count < GO_LABELS_MAX ? (size_t)count : GO_LABELS_MAX;
    return out->count == 0 || go_peek(m, load_u64(slice), out->pairs, out->count * PAIR_BYTES);
}

static bool read_chain(struct go_memory *m, uint64_t at, struct set *out)
{
    unsigned char raw[BUCKET_BYTES];
    for (unsigned n = 0; at != 0; n++, at = load_u64(raw + NEXT_AT)) {
        if (n == CHAIN_MAX || !go_peek(m, at, raw, sizeof raw)) {
            return false;
        }
        for (size_t i = 0; i < SLOTS && out->count < GO_LABELS_MAX; i++) {
            if (raw[i] >= SLOT_USED) {
                memcpy(out->pairs[out->count].key, raw + KEYS_AT + 16 * i, 16);
                memcpy(out->pairs[out->count++].value, raw + VALUES_AT + 16 * i, 16);
            }
        }
    }
    return true;
}

/* One that has grown beyond a bucket may not have moved all entries yet: it is not read. */
static bool read_map(struct go_memory *m, uint64_t address, struct set *out)
{
    unsigned char raw[MAP_BYTES];
    uint64_t map;
    if (!go_peek_word(m, address, &map) || (map != 0 && !go_peek(m, map, raw, sizeof raw))) {
        return false;
    }
    if (map == 0 || load_u64(raw) == 0) {
        return true;
    }
    if (raw[MAP_LOG_AT] > MAP_LOG_MAX || load_u64(raw + MAP_OLD_AT) != 0) {
        return false;
    }
    for (uint64_t i = 0; i < 1u << raw[MAP_LOG_AT]; i++) {
        if (!read_chain(m, load_u64(raw + MAP_BUCKETS_AT) + i * BUCKET_BYTES, out)) {
            return false;
        }
    }
    return true;
}

/* All texts at once, each at most TEXT_MAX bytes, in `texts`. One that holds a NUL ends there. */
static bool read_texts(struct go_memory *m, struct set *set, char *texts)
{
    struct memory_piece pieces[2 * GO_LABELS_MAX];
    for (size_t i = 0; i < 2 * set->count; i++) {
        const unsigned char *string = i % 2 == 0 ? set->pairs[i / 2].key : set->pairs[i / 2].value;
        uint64_t len = load_u64(string + 8);
        pieces[i] = (struct memory_piece){.address = load_u64(string), .out = texts + i * TEXT_MAX,
                                          .len = (uint32_t)(len < TEXT_MAX ? len : TEXT_MAX)};
    }
    if (!memory_batch_read(m->process.memory, pieces, 2 * set->count, &m->unread)) {
        return false;
    }
    for (size_t i = 0; i < 2 * set->count; i++) {
        struct str *text = i % 2 == 0 ? &set->keys[i / 2] : &set->values[i / 2];
        if (pieces[i].got != pieces[i].len) {
            return false;
        }
        *text = (struct str){pieces[i].out, strnlen(pieces[i].out, pieces[i].len)};
    }
    return true;
}

static void sort(struct set *set)
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

/* Key, NUL, value, NUL, …, sorted. */
static bool read_set(struct go_stacks *s, uint64_t address, struct buf *out)
{
    struct set set = {.count = 0};
    char texts[2 * GO_LABELS_MAX * TEXT_MAX];
    bool is_list = s->m->layout->lists_labels;
    if (!(is_list ? read_list(s->m, address, &set) : read_map(s->m, address, &set)) ||
        (set.count > 0 && !read_texts(s->m, &set, texts))) {
        return false;
    }
    sort(&set);
    for (size_t i = 0; i < set.count; i++) {
        buf_str(out, set.keys[i]);
        buf_byte(out, '\0');
        buf_str(out, set.values[i]);
        buf_byte(out, '\0');
    }
    return !out->failed;
}

static uint32_t number_of(struct go_stacks *s, struct str set)
{
    for (size_t i = 0; i < s->labels.len && i < GO_LABEL_SETS_COMPARED; i++) {
        if (str_eq(s->labels.at[i], set)) {
            return (uint32_t)i;
        }
    }
    struct str kept = arena_copy(&s->texts, set), *added = kept.ptr == NULL ? NULL : vec_push(&s->labels);
    if (added == NULL) {
        return 0;
    }
    *added = kept;
    return (uint32_t)(s->labels.len - 1);
}

uint32_t go_labels_number(struct go_stacks *s, uint64_t address)
{
    struct map_slot *slot = address == 0 ? NULL : map_find(&s->label_sets, address);
    if (address == 0 || slot != NULL) {
        return slot == NULL ? 0 : (uint32_t)slot->value;
    }
    struct buf set;
    buf_init(&set, SET_MAX_BYTES);
    uint32_t number = read_set(s, address, &set) ? number_of(s, buf_slice(&set)) : 0;
    buf_release(&set);
    if (s->label_sets.len < GO_PLACES_MAX) {
        (void)map_put(&s->label_sets, address, number);
    }
    return number;
}

size_t go_labels_of(const struct go_stacks *s, uint32_t number, struct go_label_texts *out)
{
    struct str rest = s->labels.at[number];
    size_t n = 0;
    while (rest.len > 0 && n < GO_LABELS_MAX) {
        out->keys[n] = str_cut(&rest, '\0').ptr;
        out->values[n++] = str_cut(&rest, '\0');
    }
    return n;
}

#include "deliver/pprof_cut.h"

#include "base/gzip.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/protobuf.h"
#include "base/vec.h"
#include "deliver/bisect.h"
#include "deliver/shrink.h"

#include <stdlib.h>

/* Field numbers of profile.proto, as far as they matter here. */
enum {
    TOP_TYPE = 1, TOP_SAMPLE, TOP_MAPPING, TOP_LOCATION, TOP_FUNCTION, TOP_STRING, TOP_DROP,
    TOP_KEEP, TOP_PERIOD_TYPE = 11, TOP_COMMENT = 13, TOP_DEFAULT_TYPE, TOP_DOC_URL,

    SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL,
    LABEL_KEY = 1,
    ROW_ID = 1,
    LOCATION_LINE = 4,
    LINE_FUNCTION = 1,
};

enum { COLUMNS_MAX = 32 };

/* A location or a function. */
struct row {
    struct str body;
    bool used;
};

struct table {
    VEC(struct row) rows;
    struct map by_id;
    uint64_t last_id;
};

/* What stands in a sample beside its values: its locations and labels, as written. */
struct part {
    size_t at, len; /* in cut.keys */
    uint64_t weight;
};

struct cut {
    const struct pprof_cut_rules *rules;
    struct str plain;
    size_t columns;
    VEC(struct str) strings;
    bool *used_string, *dropped_key; /* by string */
    bool *type_string;
    struct table locations, functions;
    struct buf keys;
    VEC(struct part) samples; /* element 0 is unused */
    VEC(uint64_t) values;     /* columns of each sample */
    struct intern ids;
    uint32_t *order;          /* of samples, the heaviest first */
    size_t read, kept;
    size_t most_bytes;        /* unpacked; 0: any */
    struct buf *out;          /* the file with `kept` of the samples */
    bool damaged;
    struct buf message, packed;
};

/* ---- samples of the same stack and labels are one ---- */

static struct str key_of(const struct cut *cut, uint32_t id)
{
    return str_sub(buf_slice(&cut->keys), cut->samples.at[id].at, cut->samples.at[id].len);
}

static uint64_t hash_of(const void *owner, uint32_t id)
{
    return str_hash(key_of(owner, id));
}

static bool same(const void *owner, uint32_t id, const void *key)
{
    return str_eq(key_of(owner, id), *(const struct str *)key);
}

static const struct intern_owner ops = {hash_of, same};

/* The key that was appended last as a sample; it is taken back when it is known. 0 when memory
 * ends. */
static uint32_t sample_of(struct cut *cut, size_t at)
{
    struct str key = str_sub(buf_slice(&cut->keys), at, cut->keys.len);
    uint64_t hash = str_hash(key);
    uint32_t id = intern_find(&cut->ids, &ops, cut, hash, &key);
    if (id != 0) {
        cut->keys.len = at;
        return id;
    }
    struct part *part = vec_push(&cut->samples);
    if (part == NULL) {
        return 0;
    }
    *part = (struct part){.at = at, .len = key.len};
    id = (uint32_t)(cut->samples.len - 1);
    while (cut->values.len < cut->samples.len * cut->columns) {
        if (vec_push(&cut->values) == NULL) {
            return 0;
        }
    }
    return intern_add(&cut->ids, &ops, cut, hash, id) ? id : 0;
}

/* ---- reading ---- */

/* The bytes of a field with what stands before them, of which `after` is what is left. */
static struct str whole(const unsigned char *from, const struct cursor *after)
{
    return (struct str){(const char *)from, (size_t)(after->ptr - from)};
}

static uint64_t number_of(struct str message, unsigned field)
{
    struct cursor c = cursor_of(message.ptr, message.len);
    struct protobuf_field f;
    uint64_t value = 0;
    while (protobuf_next(&c, &f)) {
        value = f.number == field ? f.value : value;
    }
    return value;
}

static bool add_row(struct table *table, struct str body)
{
    uint64_t id = number_of(body, ROW_ID);
    struct row *row = vec_push(&table->rows);
    if (row == NULL) {
        return false;
    }
    *row = (struct row){.body = body};
    table->last_id = id > table->last_id ? id : table->last_id;
    return map_put(&table->by_id, id, table->rows.len - 1);
}

/* Labels come before the texts that name them. */
static bool read_tables(struct cut *cut)
{
    struct cursor c = cursor_of(cut->plain.ptr, cut->plain.len);
    struct protobuf_field f;
    bool ok = true;
    while (ok && protobuf_next(&c, &f)) {
        struct str *text;
        switch (f.number) {
        case TOP_TYPE:
            cut->columns++;
            break;
        case TOP_LOCATION:
            ok = add_row(&cut->locations, f.bytes);
            break;
        case TOP_FUNCTION:
            ok = add_row(&cut->functions, f.bytes);
            break;
        case TOP_STRING:
            text = vec_push(&cut->strings);
            ok = text != NULL;
            if (ok) {
                *text = f.bytes;
            }
            break;
        default:
            break;
        }
    }
    cut->damaged |= c.short_read;
    return ok;
}

static bool is_dropped(const struct pprof_cut_rules *rules, struct str key)
{
    for (size_t i = 0; rules->drop_labels != NULL && rules->drop_labels[i] != NULL; i++) {
        if (str_eq(key, str_of(rules->drop_labels[i]))) {
            return true;
        }
    }
    return false;
}

static bool prepare_strings(struct cut *cut)
{
    size_t count = cut->strings.len;
    cut->used_string = calloc(count + 1, 1);
    cut->dropped_key = calloc(count + 1, 1);
    cut->type_string = calloc(count + 1, 1);
    if (cut->used_string == NULL || cut->dropped_key == NULL || cut->type_string == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        cut->dropped_key[i] = is_dropped(cut->rules, cut->strings.at[i]);
    }
    return true;
}

static bool is_known(const struct cut *cut, uint64_t string)
{
    return string < cut->strings.len;
}

/* Appends what the sample's key is made of, and reads its values; false: it is damaged. */
static bool take_apart(struct cut *cut, struct str sample, uint64_t *values)
{
    struct cursor c = cursor_of(sample.ptr, sample.len);
    struct protobuf_field f;
    size_t count = 0;
    bool damaged = false;
    for (const unsigned char *from = c.ptr; protobuf_next(&c, &f); from = c.ptr) {
        if (f.number == SAMPLE_VALUE) {
            uint64_t value;
            for (size_t at = 0; protobuf_packed_next(&f, &at, &value, &damaged); count++) {
                values[count < COLUMNS_MAX ? count : 0] = value;
            }
            continue;
        }
        uint64_t key = f.number == SAMPLE_LABEL ? number_of(f.bytes, LABEL_KEY) : 0;
        if (!is_known(cut, key) || !cut->dropped_key[key]) {
            buf_str(&cut->keys, whole(from, &c));
        }
    }
    return !damaged && !c.short_read && count == cut->columns;
}

static bool read_sample(struct cut *cut, struct str sample)
{
    uint64_t values[COLUMNS_MAX] = {0};
    size_t at = cut->keys.len;
    if (!take_apart(cut, sample, values)) {
        cut->damaged = true;
        return true;
    }
    uint32_t id = cut->keys.failed ? 0 : sample_of(cut, at);
    if (id == 0) {
        return false;
    }
    for (size_t i = 0; i < cut->columns; i++) {
        cut->values.at[id * cut->columns + i] += values[i];
        cut->samples.at[id].weight += values[i];
    }
    cut->read++;
    return true;
}

static bool read_samples(struct cut *cut)
{
    struct cursor c = cursor_of(cut->plain.ptr, cut->plain.len);
    struct protobuf_field f;
    bool ok = vec_push(&cut->samples) != NULL;
    while (ok && !cut->damaged && protobuf_next(&c, &f)) {
        ok = f.number != TOP_SAMPLE || read_sample(cut, f.bytes);
    }
    return ok;
}

struct weighed {
    uint64_t weight;
    uint32_t id;
};

static int by_weight(const void *left, const void *right)
{
    const struct weighed *a = left, *b = right;
    if (a->weight != b->weight) {
        return a->weight > b->weight ? -1 : 1;
    }
    return (a->id > b->id) - (a->id < b->id);
}

static bool sort_samples(struct cut *cut)
{
    size_t count = cut->samples.len;
    struct weighed *all = calloc(count, sizeof *all);
    cut->order = calloc(count, sizeof *cut->order);
    if (all == NULL || cut->order == NULL) {
        free(all);
        return false;
    }
    for (uint32_t i = 1; i < count; i++) {
        all[i] = (struct weighed){cut->samples.at[i].weight, i};
    }
    qsort(all + 1, count - 1, sizeof *all, by_weight);
    for (size_t i = 1; i < count; i++) {
        cut->order[i - 1] = all[i].id;
    }
    free(all);
    return true;
}

/* ---- what is used ---- */

static void use_string(struct cut *cut, uint64_t string)
{
    if (is_known(cut, string)) {
        cut->used_string[string] = true;
    } else {
        cut->damaged = true;
    }
}

/* Uses the texts that fields of a message name; bit n of `fields` is field n. */
static void use_strings(struct cut *cut, struct str message, uint32_t fields)
{
    struct cursor c = cursor_of(message.ptr, message.len);
    struct protobuf_field f;
    while (protobuf_next(&c, &f)) {
        if (f.number < 32 && (fields >> f.number & 1) != 0) {
            use_string(cut, f.value);
        }
    }
    cut->damaged |= c.short_read;
}

static struct row *row_of(struct cut *cut, const struct table *table, uint64_t id)
{
    const struct map_slot *slot = map_find(&table->by_id, id);
    if (slot == NULL) {
        cut->damaged = true;
        return NULL;
    }
    return &table->rows.at[slot->value];
}

static void use_function(struct cut *cut, uint64_t id)
{
    enum { NAME = 2, SYSTEM_NAME, FILE_NAME };
    struct row *row = row_of(cut, &cut->functions, id);
    if (row != NULL && !row->used) {
        row->used = true;
        use_strings(cut, row->body, 1u << NAME | 1u << SYSTEM_NAME | 1u << FILE_NAME);
    }
}

static void use_location(struct cut *cut, uint64_t id)
{
    struct row *row = row_of(cut, &cut->locations, id);
    if (row == NULL || row->used) {
        return;
    }
    row->used = true;
    struct cursor c = cursor_of(row->body.ptr, row->body.len);
    struct protobuf_field f;
    while (protobuf_next(&c, &f)) {
        if (f.number == LOCATION_LINE) {
            use_function(cut, number_of(f.bytes, LINE_FUNCTION));
        }
    }
    cut->damaged |= c.short_read;
}

static void use_sample(struct cut *cut, struct str key)
{
    enum { TEXT = 2, UNIT = 4 };
    struct cursor c = cursor_of(key.ptr, key.len);
    struct protobuf_field f;
    while (protobuf_next(&c, &f)) {
        uint64_t id;
        if (f.number == SAMPLE_LABEL) {
            use_strings(cut, f.bytes, 1u << LABEL_KEY | 1u << TEXT | 1u << UNIT);
        }
        for (size_t at = 0; f.number == SAMPLE_LOCATION &&
                            protobuf_packed_next(&f, &at, &id, &cut->damaged);) {
            use_location(cut, id);
        }
    }
}

/* What the file says of itself stays. */
static void use_rest(struct cut *cut)
{
    enum { TYPE = 1, TYPE_UNIT = 2, MAPPING_FILE = 5, MAPPING_BUILD_ID = 6 };
    struct cursor c = cursor_of(cut->plain.ptr, cut->plain.len);
    struct protobuf_field f;
    while (protobuf_next(&c, &f)) {
        uint64_t string;
        switch (f.number) {
        case TOP_TYPE:
            if (is_known(cut, number_of(f.bytes, TYPE))) {
                cut->type_string[number_of(f.bytes, TYPE)] = true;
            }
            use_strings(cut, f.bytes, 1u << TYPE | 1u << TYPE_UNIT);
            break;
        case TOP_PERIOD_TYPE:
            use_strings(cut, f.bytes, 1u << TYPE | 1u << TYPE_UNIT);
            break;
        case TOP_MAPPING:
            use_strings(cut, f.bytes, 1u << MAPPING_FILE | 1u << MAPPING_BUILD_ID);
            break;
        case TOP_COMMENT:
        case TOP_DROP:
        case TOP_KEEP:
        case TOP_DEFAULT_TYPE:
        case TOP_DOC_URL:
            for (size_t at = 0; protobuf_packed_next(&f, &at, &string, &cut->damaged);) {
                use_string(cut, string);
            }
            break;
        default:
            break;
        }
    }
}

static void mark(struct cut *cut)
{
    vec_each(&cut->locations.rows, row)
    {
        row->used = false;
    }
    vec_each(&cut->functions.rows, row)
    {
        row->used = false;
    }
    memset(cut->used_string, 0, cut->strings.len);
    use_rest(cut);
    for (size_t i = 0; i < cut->kept; i++) {
        use_sample(cut, key_of(cut, cut->order[i]));
    }
}

/* ---- writing ---- */

static void put_packed(struct cut *cut, unsigned field, const uint64_t *values, size_t count)
{
    buf_clear(&cut->packed);
    for (size_t i = 0; i < count; i++) {
        protobuf_varint(&cut->packed, values[i]);
    }
    protobuf_message(&cut->message, field, &cut->packed);
}

static void put_samples(struct cut *cut, struct buf *out)
{
    for (size_t i = 0; i < cut->kept; i++) {
        uint32_t id = cut->order[i];
        buf_clear(&cut->message);
        buf_str(&cut->message, key_of(cut, id));
        put_packed(cut, SAMPLE_VALUE, &cut->values.at[id * cut->columns], cut->columns);
        protobuf_message(out, TOP_SAMPLE, &cut->message);
    }
}

/* One function, location and sample more, with the next ids and the next string. */
static void put_dropped(struct cut *cut, struct buf *out)
{
    uint64_t sums[COLUMNS_MAX] = {0};
    uint64_t location = cut->locations.last_id + 1, function = cut->functions.last_id + 1;
    for (size_t i = cut->kept; i + 1 < cut->samples.len; i++) {
        for (size_t k = 0; k < cut->columns; k++) {
            sums[k] += cut->values.at[cut->order[i] * cut->columns + k];
        }
    }
    struct buf *m = &cut->message;
    protobuf_text(out, TOP_STRING, str_of(SHRINK_FRAME));
    buf_clear(m);
    protobuf_u64(m, ROW_ID, function);
    protobuf_u64(m, 2, cut->strings.len);
    protobuf_message(out, TOP_FUNCTION, m);
    buf_clear(&cut->packed);
    protobuf_u64(&cut->packed, LINE_FUNCTION, function);
    buf_clear(m);
    protobuf_u64(m, ROW_ID, location);
    protobuf_message(m, LOCATION_LINE, &cut->packed);
    protobuf_message(out, TOP_LOCATION, m);
    buf_clear(m);
    put_packed(cut, SAMPLE_LOCATION, &location, 1);
    put_packed(cut, SAMPLE_VALUE, sums, cut->columns);
    protobuf_message(out, TOP_SAMPLE, m);
}

/* The type's name as the service wants it. */
static struct str type_name(const struct pprof_cut_rules *rules, struct str text)
{
    const struct pprof_cut_name *name = rules->type_names;
    for (; name != NULL && name->from != NULL; name++) {
        if (str_eq(text, str_of(name->from))) {
            return str_of(name->to);
        }
    }
    return text;
}

static void put_string(struct cut *cut, struct buf *out, size_t number, struct str text)
{
    text = cut->type_string[number] ? type_name(cut->rules, text) : text;
    buf_clear(&cut->packed);
    buf_str(&cut->packed, cut->used_string[number] ? text : STR(""));
    for (size_t i = 0; cut->rules->plain_types && cut->type_string[number] && i < cut->packed.len;
         i++) {
        cut->packed.ptr[i] = cut->packed.ptr[i] == '-' ? '_' : cut->packed.ptr[i];
    }
    protobuf_message(out, TOP_STRING, &cut->packed);
}

/* The file with the `kept` heaviest samples. */
static void put_file(struct cut *cut, struct buf *out)
{
    struct cursor c = cursor_of(cut->plain.ptr, cut->plain.len);
    struct protobuf_field f;
    size_t string = 0, location = 0, function = 0;
    buf_clear(out);
    mark(cut);
    for (const unsigned char *from = c.ptr; protobuf_next(&c, &f); from = c.ptr) {
        if (f.number == TOP_STRING) {
            put_string(cut, out, string++, f.bytes);
        } else if (f.number != TOP_SAMPLE &&
                   (f.number != TOP_LOCATION || cut->locations.rows.at[location++].used) &&
                   (f.number != TOP_FUNCTION || cut->functions.rows.at[function++].used)) {
            buf_str(out, whole(from, &c));
        }
    }
    put_samples(cut, out);
    if (cut->kept + 1 < cut->samples.len) {
        put_dropped(cut, out);
    }
}

static bool fits(void *context, size_t kept)
{
    struct cut *cut = context;
    cut->kept = kept;
    put_file(cut, cut->out);
    return cut->most_bytes == 0 || cut->out->len <= cut->most_bytes;
}

static size_t most_samples(const struct cut *cut)
{
    size_t all = cut->samples.len - 1, most = cut->rules->most_samples;
    return most != 0 && all > most ? most - 1 : all; /* and the one for the others */
}

static size_t bound_of(const struct cut *cut)
{
    size_t share = (size_t)((uint64_t)cut->plain.len * cut->rules->permille / 1000);
    size_t most = cut->rules->most_bytes;
    return share == 0 || (most != 0 && most < share) ? most : share;
}

static bool pack(struct str plain, struct buf *out, struct err *err)
{
    struct gzip gzip;
    struct sink packed = sink_of_buf(out);
    if (!gzip_open_quick(&gzip, &packed, err)) {
        return false;
    }
    struct sink sink = gzip_sink(&gzip);
    bool ok = sink_write(&sink, plain.ptr, plain.len, err) && gzip_finish(&gzip, err);
    gzip_release(&gzip);
    return ok;
}

static bool check(const struct cut *cut, struct err *err)
{
    if (cut->damaged || cut->strings.len == 0) {
        return err_set(err, ERR_MALFORMED, 0, "it is no pprof file, or a damaged one");
    }
    return (cut->columns > 0 && cut->columns <= COLUMNS_MAX) ||
           err_set(err, ERR_UNSUPPORTED, 0, "a pprof file with %zu sample types", cut->columns);
}

static bool cut_plain(struct cut *cut, struct err *err)
{
    if (!read_tables(cut) || !prepare_strings(cut)) {
        return err_set(err, ERR_MEMORY, 0, "no memory to make a profile smaller");
    }
    if (!check(cut, err)) {
        return false;
    }
    if (!read_samples(cut) || !sort_samples(cut)) {
        return err_set(err, ERR_MEMORY, 0, "no memory to make a profile smaller");
    }
    cut->most_bytes = bound_of(cut);
    bool small = bisect(most_samples(cut), fits, cut);
    if (cut->out->failed) {
        return err_set(err, ERR_MEMORY, 0, "no memory to make a profile smaller");
    }
    return check(cut, err) &&
           (small || err_set(err, ERR_LIMIT, 0, "without any stack it still has %zu bytes of %zu",
                             cut->out->len, cut->most_bytes));
}

static void release(struct cut *cut)
{
    vec_release(&cut->strings);
    free(cut->used_string);
    free(cut->dropped_key);
    free(cut->type_string);
    vec_release(&cut->locations.rows);
    map_release(&cut->locations.by_id);
    vec_release(&cut->functions.rows);
    map_release(&cut->functions.by_id);
    buf_release(&cut->keys);
    vec_release(&cut->samples);
    vec_release(&cut->values);
    intern_release(&cut->ids);
    free(cut->order);
    buf_release(&cut->message);
    buf_release(&cut->packed);
}

static bool unpack(struct str file, struct buf *unpacked, struct str *plain, struct err *err)
{
    if (!gzip_is(file.ptr, file.len)) {
        *plain = file;
        return true;
    }
    bool ok = gzip_inflate(file.ptr, file.len, unpacked, err);
    *plain = buf_slice(unpacked);
    return ok;
}

bool pprof_cut(struct str file, const struct pprof_cut_rules *rules, struct buf *out,
               struct pprof_cut_result *result, struct err *err)
{
    struct buf unpacked, plain;
    struct cut cut = {.rules = rules, .out = &plain};
    buf_init(&unpacked, PPROF_CUT_MAX_BYTES);
    buf_init(&plain, PPROF_CUT_MAX_BYTES);
    buf_init(&cut.keys, PPROF_CUT_MAX_BYTES);
    buf_init(&cut.message, PPROF_CUT_MAX_BYTES);
    buf_init(&cut.packed, PPROF_CUT_MAX_BYTES);
    bool ok = unpack(file, &unpacked, &cut.plain, err) && cut_plain(&cut, err);
    if (ok) {
        *result = (struct pprof_cut_result){plain.len, cut.kept, cut.read - (cut.samples.len - 1),
                                            cut.samples.len - 1 - cut.kept};
    }
    release(&cut); /* the compressor needs some memory, too */
    buf_release(&unpacked);
    ok = ok && pack(buf_slice(&plain), out, err);
    buf_release(&plain);
    return ok;
}

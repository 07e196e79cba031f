#include "deliver/otlp_cut.h"

#include "base/map.h"
#include "base/vec.h"
#include "deliver/bisect.h"
#include "deliver/otlp_pass.h"
#include "deliver/shrink.h"

#include <stdlib.h>

enum { EXTRA_MAX = sizeof SHRINK_FRAME + 16 };

struct sample {
    uint64_t value;
    uint64_t stack;
    uint32_t profile;
    uint32_t type; /* a place in totals */
};

struct table {
    VEC(struct str) rows;
    bool *used;
    uint32_t *place;
    size_t kept;
};

struct cut {
    struct str request;
    size_t most_bytes;
    struct buf *out;        /* what is made of it */
    struct table tables[OTLP_TABLES];
    VEC(struct sample) samples;
    VEC(uint64_t) totals;   /* of each type */
    struct map type_of_name;
    size_t profiles;
    uint64_t dropped_stack; /* an old place */
    char extra[OTLP_TABLES][EXTRA_MAX]; /* rows for what goes, where they are not there yet */
    uint32_t *order;        /* of samples, the heaviest first */
    size_t choosable;       /* of these; behind them what went before */
    bool *keep;
    uint64_t *dropped;      /* by profile */
    bool drops;
    size_t met;             /* samples, while marking */
    bool damaged;
    struct otlp_pass pass;
    struct buf part, message;
};

static struct cursor message_of(struct str message)
{
    return cursor_of(message.ptr, message.len);
}

/* ---- reading ---- */

static bool add_row(struct cut *cut, unsigned number, struct str row)
{
    struct str *added = vec_push(&cut->tables[number].rows);
    if (added != NULL) {
        *added = row;
    }
    return added != NULL;
}

static bool read_dictionary(struct cut *cut, struct str dictionary)
{
    struct cursor c = message_of(dictionary);
    struct protobuf_field f;
    bool ok = true;
    while (ok && protobuf_next(&c, &f)) {
        ok = f.number >= OTLP_TABLES || f.wire != PROTOBUF_BYTES || add_row(cut, f.number, f.bytes);
    }
    cut->damaged |= c.short_read;
    return ok;
}

/* The place of a type's total, by the type's name; SIZE_MAX when memory ends. */
static size_t total_of(struct cut *cut, struct str value_type)
{
    struct cursor c = message_of(value_type);
    struct protobuf_field f;
    uint64_t name = 0;
    while (protobuf_next(&c, &f)) {
        name = f.number == OTLP_TYPE_NAME ? f.value : name;
    }
    const struct map_slot *slot = map_find(&cut->type_of_name, name);
    if (slot != NULL) {
        return (size_t)slot->value;
    }
    bool added = vec_push(&cut->totals) != NULL &&
                 map_put(&cut->type_of_name, name, cut->totals.len - 1);
    return added ? cut->totals.len - 1 : SIZE_MAX;
}

static bool read_sample(struct cut *cut, struct str message, size_t type)
{
    struct cursor c = message_of(message);
    struct protobuf_field f;
    struct sample *sample = vec_push(&cut->samples);
    if (sample == NULL) {
        return false;
    }
    *sample = (struct sample){.profile = (uint32_t)cut->profiles, .type = (uint32_t)type};
    while (protobuf_next(&c, &f)) {
        uint64_t value;
        for (size_t at = 0; f.number == OTLP_SAMPLE_VALUES &&
                            protobuf_packed_next(&f, &at, &value, &cut->damaged);) {
            sample->value += value;
        }
        sample->stack = f.number == OTLP_SAMPLE_STACK ? f.value : sample->stack;
    }
    cut->damaged |= c.short_read;
    cut->totals.at[type] += sample->value;
    return true;
}

/* The type stands before the samples. */
static bool read_profile(struct cut *cut, struct str message)
{
    struct cursor c = message_of(message);
    struct protobuf_field f;
    size_t type = total_of(cut, STR(""));
    while (type != SIZE_MAX && protobuf_next(&c, &f)) {
        if (f.number == OTLP_PROFILE_TYPE) {
            type = total_of(cut, f.bytes);
        } else if (f.number == OTLP_PROFILE_SAMPLE && !read_sample(cut, f.bytes, type)) {
            return false;
        }
    }
    cut->damaged |= c.short_read;
    cut->profiles++;
    return type != SIZE_MAX;
}

static bool read_scope(struct cut *cut, struct str scope)
{
    struct cursor c = message_of(scope);
    struct protobuf_field f;
    bool ok = true;
    while (ok && protobuf_next(&c, &f)) {
        const struct otlp_rule *rule = otlp_rule_of(OTLP_SCOPE_PROFILES, f.number);
        ok = rule == NULL || read_profile(cut, f.bytes);
    }
    cut->damaged |= c.short_read;
    return ok;
}

static bool read_resource(struct cut *cut, struct str resource)
{
    struct cursor c = message_of(resource);
    struct protobuf_field f;
    bool ok = true;
    while (ok && protobuf_next(&c, &f)) {
        const struct otlp_rule *rule = otlp_rule_of(OTLP_RESOURCE_PROFILES, f.number);
        ok = rule == NULL || rule->inner != OTLP_SCOPE_PROFILES || read_scope(cut, f.bytes);
    }
    cut->damaged |= c.short_read;
    return ok;
}

static bool read_request(struct cut *cut)
{
    struct cursor c = message_of(cut->request);
    struct protobuf_field f;
    bool ok = true;
    while (ok && protobuf_next(&c, &f)) {
        ok = f.number == OTLP_REQUEST_RESOURCE     ? read_resource(cut, f.bytes)
             : f.number == OTLP_REQUEST_DICTIONARY ? read_dictionary(cut, f.bytes)
                                                   : true;
    }
    cut->damaged |= c.short_read;
    for (unsigned i = 1; ok && i < OTLP_TABLES; i++) {
        ok = cut->tables[i].rows.len > 0 || add_row(cut, i, STR(""));
    }
    return ok;
}

/* ---- where what goes is counted ---- */

/* The place of the row, which is put behind the others when it is not there. */
static uint64_t place_of(struct cut *cut, unsigned number, struct str row)
{
    struct table *table = &cut->tables[number];
    for (size_t i = 1; i < table->rows.len; i++) {
        if (str_eq(table->rows.at[i], row)) {
            return i;
        }
    }
    char *copy = cut->extra[number];
    memcpy(copy, row.ptr, row.len);
    return add_row(cut, number, (struct str){copy, row.len}) ? table->rows.len - 1 : 0;
}

/* As otlp.h of the encoders writes a function, a location, a stack of which no more is known. Every
 * row is at most as long as a field of a number, or as the name. */
static void find_dropped_stack(struct cut *cut)
{
    struct buf *row = &cut->message, *inner = &cut->part;
    uint64_t place = place_of(cut, OTLP_STRINGS, str_of(SHRINK_FRAME));
    buf_clear(row);
    protobuf_u64(row, 1, place);
    place = place_of(cut, OTLP_FUNCTIONS, buf_slice(row));
    buf_clear(inner);
    protobuf_u64(inner, 1, place);
    buf_clear(row);
    protobuf_message(row, OTLP_LOCATION_LINE, inner);
    place = place_of(cut, OTLP_LOCATIONS, buf_slice(row));
    buf_clear(inner);
    protobuf_varint(inner, place);
    buf_clear(row);
    protobuf_message(row, 1, inner);
    cut->dropped_stack = place_of(cut, OTLP_STACKS, buf_slice(row));
}

/* ---- which samples ---- */

struct weighed {
    double weight;
    uint32_t at;
};

static int by_weight(const void *left, const void *right)
{
    const struct weighed *a = left, *b = right;
    if (a->weight < b->weight || a->weight > b->weight) {
        return a->weight > b->weight ? -1 : 1;
    }
    return (a->at > b->at) - (a->at < b->at);
}

/* What went before goes again, so that each profile has one such sample. */
static double weight_of(const struct cut *cut, const struct sample *s)
{
    if (s->stack == cut->dropped_stack) {
        return -1;
    }
    uint64_t total = cut->totals.at[s->type];
    return total == 0 ? 0 : (double)s->value / (double)total;
}

static bool sort_samples(struct cut *cut)
{
    size_t count = cut->samples.len;
    struct weighed *all = calloc(count + 1, sizeof *all);
    cut->order = calloc(count + 1, sizeof *cut->order);
    cut->keep = calloc(count + 1, sizeof *cut->keep);
    cut->dropped = calloc(cut->profiles + 1, sizeof *cut->dropped);
    bool ok = all != NULL && cut->order != NULL && cut->keep != NULL && cut->dropped != NULL;
    for (uint32_t i = 0; ok && i < count; i++) {
        all[i] = (struct weighed){weight_of(cut, &cut->samples.at[i]), i};
        cut->choosable += all[i].weight >= 0;
    }
    if (ok) {
        qsort(all, count, sizeof *all, by_weight);
    }
    for (size_t i = 0; ok && i < count; i++) {
        cut->order[i] = all[i].at;
    }
    free(all);
    return ok;
}

static void choose_samples(struct cut *cut, size_t kept)
{
    memset(cut->dropped, 0, cut->profiles * sizeof *cut->dropped);
    cut->drops = false;
    for (size_t i = 0; i < cut->samples.len; i++) {
        const struct sample *s = &cut->samples.at[cut->order[i]];
        cut->keep[cut->order[i]] = i < kept;
        if (i >= kept) {
            cut->dropped[s->profile] += s->value;
            cut->drops |= s->value != 0;
        }
    }
}

/* ---- what is used ---- */

static void mark(struct cut *cut, enum otlp_shape shape, struct str message);

static void mark_row(struct cut *cut, unsigned number, uint64_t place)
{
    struct table *table = &cut->tables[number];
    if (place >= table->rows.len) {
        cut->damaged = true;
    } else if (!table->used[place]) {
        table->used[place] = true;
        mark(cut, otlp_row_shape((enum otlp_table_number)number), table->rows.at[place]);
    }
}

/* As deep as the format is: no shape contains itself, and no table's rows refer to it. */
static void mark(struct cut *cut, enum otlp_shape shape, struct str message)
{
    struct cursor c = message_of(message);
    struct protobuf_field f;
    while (shape != OTLP_NO_SHAPE && protobuf_next(&c, &f)) {
        const struct otlp_rule *rule = otlp_rule_of(shape, f.number);
        uint64_t place;
        if (rule == NULL || (rule->inner == OTLP_SAMPLE && !cut->keep[cut->met++])) {
            continue;
        }
        if (rule->inner != OTLP_NO_SHAPE) {
            mark(cut, (enum otlp_shape)rule->inner, f.bytes);
        }
        for (size_t at = 0; rule->table != OTLP_NO_TABLE &&
                            protobuf_packed_next(&f, &at, &place, &cut->damaged);) {
            mark_row(cut, rule->table, place);
        }
    }
    cut->damaged |= c.short_read;
}

static void mark_all(struct cut *cut)
{
    struct cursor c = message_of(cut->request);
    struct protobuf_field f;
    cut->met = 0;
    for (unsigned i = 1; i < OTLP_TABLES; i++) {
        memset(cut->tables[i].used, 0, cut->tables[i].rows.len * sizeof *cut->tables[i].used);
    }
    for (unsigned i = 1; i < OTLP_TABLES; i++) {
        mark_row(cut, i, 0);
    }
    while (protobuf_next(&c, &f)) {
        if (f.number == OTLP_REQUEST_RESOURCE) {
            mark(cut, OTLP_RESOURCE_PROFILES, f.bytes);
        }
    }
    if (cut->drops) {
        mark_row(cut, OTLP_STACKS, cut->dropped_stack);
    }
}

static bool allocate_tables(struct cut *cut)
{
    bool ok = true;
    for (unsigned i = 1; i < OTLP_TABLES; i++) {
        struct table *table = &cut->tables[i];
        table->used = calloc(table->rows.len + 1, sizeof *table->used);
        table->place = calloc(table->rows.len + 1, sizeof *table->place);
        ok = ok && table->used != NULL && table->place != NULL;
    }
    return ok;
}

static void number_rows(struct cut *cut)
{
    for (unsigned i = 1; i < OTLP_TABLES; i++) {
        struct table *table = &cut->tables[i];
        uint32_t next = 0;
        for (size_t k = 0; k < table->rows.len; k++) {
            table->place[k] = next;
            next += table->used[k];
        }
        cut->pass.place[i] = table->place;
        cut->pass.rows[i] = table->rows.len;
    }
    cut->pass.keep = cut->keep;
    cut->pass.dropped = cut->dropped;
    cut->pass.dropped_stack = cut->tables[OTLP_STACKS].place[cut->dropped_stack];
    cut->pass.sample = cut->pass.profile = 0;
}

/* ---- writing ---- */

static void put_table(struct cut *cut, unsigned number)
{
    const struct table *table = &cut->tables[number];
    for (size_t i = 0; i < table->rows.len; i++) {
        if (table->used[i]) {
            buf_clear(&cut->part);
            otlp_pass_put(&cut->pass, otlp_row_shape((enum otlp_table_number)number),
                          table->rows.at[i], &cut->part);
            protobuf_message(&cut->message, number, &cut->part);
        }
    }
}

static void put_request(struct cut *cut, struct buf *out)
{
    struct cursor c = message_of(cut->request);
    struct protobuf_field f;
    while (protobuf_next(&c, &f)) {
        if (f.number == OTLP_REQUEST_RESOURCE) {
            buf_clear(&cut->message);
            otlp_pass_put(&cut->pass, OTLP_RESOURCE_PROFILES, f.bytes, &cut->message);
            protobuf_message(out, OTLP_REQUEST_RESOURCE, &cut->message);
        }
    }
    buf_clear(&cut->message);
    for (unsigned i = 1; i < OTLP_TABLES; i++) {
        put_table(cut, i);
    }
    protobuf_message(out, OTLP_REQUEST_DICTIONARY, &cut->message);
}

/* With the `kept` heaviest samples. */
static bool fits(void *context, size_t kept)
{
    struct cut *cut = context;
    buf_clear(cut->out);
    choose_samples(cut, kept);
    mark_all(cut);
    number_rows(cut);
    if (!cut->damaged) {
        put_request(cut, cut->out);
    }
    cut->damaged |= cut->pass.damaged;
    return cut->out->len <= cut->most_bytes;
}

static bool no_memory(struct err *err)
{
    return err_set(err, ERR_MEMORY, 0, "no memory to make a profile smaller");
}

static bool malformed(struct err *err)
{
    return err_set(err, ERR_MALFORMED, 0, "it is no OpenTelemetry profile, or a damaged one");
}

static bool cut_all(struct cut *cut, struct err *err)
{
    if (!read_request(cut)) {
        return no_memory(err);
    }
    if (cut->damaged) {
        return malformed(err);
    }
    find_dropped_stack(cut);
    if (cut->dropped_stack == 0 || !allocate_tables(cut) || !sort_samples(cut)) {
        return no_memory(err);
    }
    bool small = bisect(cut->choosable, fits, cut);
    if (cut->damaged) {
        return malformed(err);
    }
    if (cut->out->failed) {
        return no_memory(err);
    }
    return small || err_set(err, ERR_LIMIT, 0, "without any stack it still has %zu bytes of %zu",
                            cut->out->len, cut->most_bytes);
}

static void release(struct cut *cut)
{
    for (unsigned i = 1; i < OTLP_TABLES; i++) {
        vec_release(&cut->tables[i].rows);
        free(cut->tables[i].used);
        free(cut->tables[i].place);
    }
    vec_release(&cut->samples);
    vec_release(&cut->totals);
    map_release(&cut->type_of_name);
    free(cut->order);
    free(cut->keep);
    free(cut->dropped);
    otlp_pass_release(&cut->pass);
    buf_release(&cut->part);
    buf_release(&cut->message);
}

bool otlp_cut(struct str request, size_t most_bytes, struct buf *out, struct err *err)
{
    struct cut *cut = calloc(1, sizeof *cut);
    struct buf smaller;
    if (cut == NULL) {
        return no_memory(err);
    }
    cut->request = request;
    cut->most_bytes = most_bytes;
    cut->out = &smaller;
    otlp_pass_init(&cut->pass);
    buf_init(&cut->part, OTLP_PASS_MAX_BYTES);
    buf_init(&cut->message, OTLP_PASS_MAX_BYTES);
    buf_init(&smaller, OTLP_PASS_MAX_BYTES);
    bool ok = cut_all(cut, err);
    if (ok) {
        buf_str(out, buf_slice(&smaller));
    }
    release(cut);
    free(cut);
    buf_release(&smaller);
    return ok && (!out->failed || no_memory(err));
}

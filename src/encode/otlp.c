/* A profile as OpenTelemetry's request: resources with their profiles and samples, then the dictionary.
 * The tables are made by otlp_rows.c first. Lengths stand in front of messages, so each message is
 * gone through twice, the first time only to count. */
#include "encode/otlp.h"

#include "base/protobuf.h"
#include "base/utf8.h"
#include "base/version.h"
#include "encode/otlp_rows.h"
#include "encode/otlp_wire.h"
#include "encode/value.h"
#include "encode/encode.h"

enum { RECORD_MAX = 64 * 1024 * 1024 };

/* What a sample type is called; texts by their places. */
struct type {
    uint32_t name, unit, period_name, period_unit;
    uint64_t period;
};

/* The samples of one profile: `count` from `first` on; `bytes` of the profile's message. */
struct run {
    size_t first, count;
    uint64_t bytes;
};

struct writer {
    const struct profile *p;
    const struct encode_rules *rules; /* null: none */
    struct sink *out;
    struct err *err;
    struct otlp_rows rows;
    struct type types[OTLP_TYPES];
    bool counts;    /* nothing is written, only counted */
    uint64_t bytes; /* so far, when it counts */
    struct buf message, part, prefix;
};

/* ---- writing and counting ---- */

static bool put(struct writer *w, const struct buf *bytes)
{
    if (bytes->failed) {
        return err_set(w->err, ERR_LIMIT, 0, "one record is larger than %zu bytes", bytes->max);
    }
    w->bytes += bytes->len;
    return w->counts || sink_write(w->out, bytes->ptr, bytes->len, w->err);
}

/* What stands before `bytes` of a field. */
static bool put_head(struct writer *w, unsigned field, uint64_t bytes)
{
    buf_clear(&w->prefix);
    protobuf_varint(&w->prefix, field << 3 | PROTOBUF_BYTES);
    protobuf_varint(&w->prefix, bytes);
    return put(w, &w->prefix);
}

static bool put_field(struct writer *w, unsigned field, const struct buf *message)
{
    return put_head(w, field, message->len) && put(w, message);
}

static uint64_t varint_bytes(uint64_t value)
{
    uint64_t bytes = 1;
    for (; value >= 0x80; value >>= 7) {
        bytes++;
    }
    return bytes;
}

/* Of a field with its head; the numbers of all fields here take one byte. */
static uint64_t field_bytes(uint64_t bytes)
{
    return 1 + varint_bytes(bytes) + bytes;
}

/* ---- types ---- */

static uint32_t type_name(struct writer *w, struct str name)
{
    struct buf plain;
    buf_init(&plain, RECORD_MAX);
    buf_str(&plain, name);
    for (size_t i = 0; i < plain.len; i++) {
        plain.ptr[i] = plain.ptr[i] == '-' ? '_' : plain.ptr[i];
    }
    uint32_t place = otlp_rows_text(&w->rows, buf_slice(&plain));
    buf_release(&plain);
    return place;
}

/* A type that is its own period. */
static struct type own_type(struct writer *w, struct str name, struct str unit)
{
    uint32_t name_at = type_name(w, name);
    uint32_t unit_at = otlp_rows_text(&w->rows, unit);
    return (struct type){name_at, unit_at, name_at, unit_at, 1};
}

/* Places are given in the order of the calls, which no initialiser has. */
static struct type cpu_type(struct writer *w)
{
    struct otlp_rows *rows = &w->rows;
    const struct profile *p = w->p;
    struct type type = {.period = 1};
    if (value_is_other(p)) {
        return own_type(w, profile_text(p, p->meta.value), profile_text(p, p->meta.unit));
    }
    type.name = otlp_rows_text(rows, STR("samples"));
    type.unit = otlp_rows_text(rows, STR("count"));
    type.period_name = otlp_rows_text(rows, STR("cpu"));
    type.period_unit = otlp_rows_text(rows, STR(VALUE_TIME_UNIT));
    return type;
}

static struct type type_of(struct writer *w, unsigned type)
{
    if (type == OTLP_CPU) {
        return cpu_type(w);
    }
    if (type == OTLP_WALL) {
        return own_type(w, STR("wall"), STR(VALUE_TIME_UNIT));
    }
    if (type == OTLP_OFF_CPU) {
        struct type plain = own_type(w, STR("off_cpu"), STR(VALUE_TIME_UNIT));
        return (struct type){.name = plain.name, .unit = plain.unit};
    }
    const struct event_type *event = &w->p->event_types.at[type - OTLP_EVENT];
    return own_type(w, profile_text(w->p, event->name), profile_text(w->p, event->unit));
}

/* Only what is there is named: no text stands in the table for nothing. */
static void name_types(struct writer *w)
{
    bool is_there[OTLP_TYPES] = {[OTLP_CPU] = w->rows.samples.len == 0};
    vec_each(&w->rows.samples, s)
    {
        is_there[s->type] = true;
    }
    for (unsigned i = 0; i < OTLP_TYPES; i++) {
        w->types[i] = is_there[i] ? type_of(w, i) : (struct type){0};
    }
}

static void add_type(struct writer *w, unsigned field, uint32_t name, uint32_t unit)
{
    buf_clear(&w->part);
    protobuf_u64(&w->part, TYPE_NAME, name);
    protobuf_u64(&w->part, TYPE_UNIT, unit);
    protobuf_message(&w->message, field, &w->part);
}

/* ---- profiles ---- */

static bool put_sample(struct writer *w, const struct otlp_sample *s)
{
    buf_clear(&w->message);
    protobuf_u64(&w->message, SAMPLE_STACK, s->stack);
    buf_clear(&w->part);
    if (s->thread_name != 0) {
        protobuf_varint(&w->part, s->thread_name);
    }
    if (s->thread_id != 0) {
        protobuf_varint(&w->part, s->thread_id);
    }
    if (w->part.len > 0) {
        protobuf_message(&w->message, SAMPLE_ATTRIBUTES, &w->part);
    }
    buf_clear(&w->part);
    protobuf_varint(&w->part, s->value);
    protobuf_message(&w->message, SAMPLE_VALUES, &w->part);
    return put_field(w, PROFILE_SAMPLE, &w->message);
}

static void add_u64(struct buf *out, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++) {
        buf_byte(out, (char)(value >> 8 * i));
    }
}

/* Of the window, the process and the type: no other profile has it, and this one always. */
static void add_id(struct writer *w, uint32_t owner, unsigned type)
{
    const struct profile_meta *m = &w->p->meta;
    const struct process *process = &w->p->processes.at[owner];
    uint64_t where = str_hash(profile_text(w->p, m->host)) ^
                     hash_u64(str_hash(profile_text(w->p, m->service)));
    uint64_t what = hash_u64((uint64_t)owner << 8 | type) ^
                    hash_u64((uint64_t)process->pid << 32 ^ process->start_ticks);
    uint64_t one = hash_u64(m->start_wall_ns ^ hash_u64(what ^ where));
    uint64_t two = hash_u64(m->end_wall_ns ^ hash_u64(one ^ where) ^ what);
    buf_clear(&w->part);
    add_u64(&w->part, one);
    add_u64(&w->part, two | 1); /* all zeros would be none */
    protobuf_message(&w->message, PROFILE_ID, &w->part);
}

static bool put_profile(struct writer *w, uint32_t owner, unsigned type, const struct run *run)
{
    const struct type *t = &w->types[type];
    const struct profile_meta *m = &w->p->meta;
    buf_clear(&w->message);
    add_type(w, PROFILE_TYPE, t->name, t->unit);
    bool ok = put(w, &w->message);
    for (size_t i = 0; ok && i < run->count; i++) {
        ok = put_sample(w, &w->rows.samples.at[run->first + i]);
    }
    buf_clear(&w->message);
    if (m->start_wall_ns != 0) {
        protobuf_varint(&w->message, PROFILE_TIME << 3 | PROTOBUF_FIXED64);
        add_u64(&w->message, m->start_wall_ns);
    }
    protobuf_u64(&w->message, PROFILE_DURATION,
                 m->end_wall_ns > m->start_wall_ns ? m->end_wall_ns - m->start_wall_ns : 0);
    if (t->period != 0) {
        add_type(w, PROFILE_PERIOD_TYPE, t->period_name, t->period_unit);
        protobuf_u64(&w->message, PROFILE_PERIOD, t->period);
    }
    add_id(w, owner, type);
    return ok && put(w, &w->message);
}

static bool count_profile(struct writer *w, uint32_t owner, unsigned type, struct run *run)
{
    w->counts = true;
    w->bytes = 0;
    bool ok = put_profile(w, owner, type, run);
    run->bytes = w->bytes;
    w->counts = false;
    return ok;
}

/* ---- resources ---- */

static void add_attribute(struct writer *w, struct buf *out, struct str key, struct str text, uint64_t number)
{
    struct buf value;
    if (text.len == 0 && number == 0) {
        return;
    }
    buf_init(&value, RECORD_MAX);
    if (text.len > 0) {
        buf_clear(&w->rows.text);
        utf8_add(&w->rows.text, text);
        otlp_put_text(&value, buf_slice(&w->rows.text));
    } else {
        otlp_put_number(&value, number);
    }
    buf_clear(&w->part);
    protobuf_text(&w->part, KEY_VALUE_KEY, key);
    protobuf_message(&w->part, KEY_VALUE_VALUE, &value);
    protobuf_message(out, RESOURCE_ATTRIBUTE, &w->part);
    buf_release(&value);
}

/* Runtimes name a container by at least 12 digits; people use other letters, too. */
static bool is_container_id(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
            return false;
        }
    }
    return text.len >= 12;
}

/* Does the process say this itself? One in a container is in no other. */
static bool is_told(const struct process *process, struct str key)
{
    return (process->container != 0 && str_starts(key, STR("container."))) ||
           (process->pid != 0 && (str_eq(key, STR("process.pid")) ||
                                  (process->name != 0 && str_eq(key, STR("process.executable.name")))));
}

static void make_resource(struct writer *w, uint32_t owner, struct buf *out)
{
    const struct process *process = &w->p->processes.at[owner];
    struct str container = profile_text(w->p, process->container);
    if (process->pid != 0) {
        add_attribute(w, out, STR("process.pid"), STR(""), process->pid);
        add_attribute(w, out, STR("process.executable.name"), profile_text(w->p, process->name), 0);
    }
    add_attribute(w, out, STR("pillion.appid"), profile_text(w->p, process->appid), 0);
    add_attribute(w, out, is_container_id(container) ? STR("container.id") : STR("container.name"), container, 0);
    for (size_t i = 0; w->rules != NULL && i < w->rules->attribute_count; i++) {
        const struct fact *a = &w->rules->attributes[i];
        if (!is_told(process, a->name)) {
            add_attribute(w, out, a->name, a->value, 0);
        }
    }
}

/* The resource's profiles: runs of one type each, by their types. */
static bool split(struct writer *w, size_t first, size_t count, struct run runs[static OTLP_TYPES])
{
    uint32_t owner = count > 0 ? w->rows.samples.at[first].owner : 0;
    bool ok = true;
    memset(runs, 0, OTLP_TYPES * sizeof *runs);
    for (size_t i = first; i < first + count; i++) {
        struct run *run = &runs[w->rows.samples.at[i].type];
        run->first = run->count == 0 ? i : run->first;
        run->count++;
    }
    for (unsigned type = 0; ok && type < OTLP_TYPES; type++) {
        bool is_there = runs[type].count > 0 || (count == 0 && type == OTLP_CPU);
        ok = !is_there || count_profile(w, owner, type, &runs[type]);
    }
    return ok;
}

static bool put_profiles(struct writer *w, uint32_t owner, const struct run runs[static OTLP_TYPES])
{
    bool ok = true;
    for (unsigned type = 0; ok && type < OTLP_TYPES; type++) {
        ok = runs[type].bytes == 0 ||
             (put_head(w, SCOPE_PROFILES_PROFILE, runs[type].bytes) &&
              put_profile(w, owner, type, &runs[type]));
    }
    return ok;
}

/* What stands around the profiles of a resource. */
struct around {
    struct buf resource, scope, schema;
};

static bool put_scope(struct writer *w, uint32_t owner, const struct run runs[static OTLP_TYPES],
                      const struct around *around)
{
    uint64_t inner = field_bytes(around->scope.len) + field_bytes(around->schema.len);
    for (unsigned type = 0; type < OTLP_TYPES; type++) {
        inner += runs[type].bytes == 0 ? 0 : field_bytes(runs[type].bytes);
    }
    uint64_t outer = field_bytes(around->resource.len) + field_bytes(inner) +
                     field_bytes(around->schema.len);
    return put_head(w, REQUEST_RESOURCE, outer) &&
           put_field(w, RESOURCE_PROFILES_RESOURCE, &around->resource) &&
           put_head(w, RESOURCE_PROFILES_SCOPE, inner) &&
           put_field(w, SCOPE_PROFILES_SCOPE, &around->scope) && put_profiles(w, owner, runs) &&
           put_field(w, SCOPE_PROFILES_SCHEMA, &around->schema) &&
           put_field(w, RESOURCE_PROFILES_SCHEMA, &around->schema);
}

static bool put_resource(struct writer *w, size_t first, size_t count)
{
    struct run runs[OTLP_TYPES];
    struct around around;
    uint32_t owner = count > 0 ? w->rows.samples.at[first].owner : 0;
    buf_init(&around.resource, RECORD_MAX);
    buf_init(&around.scope, RECORD_MAX);
    buf_init(&around.schema, RECORD_MAX);
    make_resource(w, owner, &around.resource);
    protobuf_text(&around.scope, SCOPE_NAME, STR("pillion"));
    protobuf_text(&around.scope, SCOPE_VERSION, STR(PILLION_VERSION));
    buf_text(&around.schema, OTLP_SCHEMA_URL);
    bool ok = split(w, first, count, runs) && put_scope(w, owner, runs, &around);
    buf_release(&around.resource);
    buf_release(&around.scope);
    buf_release(&around.schema);
    return ok;
}

/* A window in which nothing ran is one profile without samples: a request without any is refused
 * by some. */
static bool put_resources(struct writer *w)
{
    size_t all = w->rows.samples.len, first = 0;
    bool ok = all > 0 || put_resource(w, 0, 0);
    while (ok && first < all) {
        size_t end = first;
        while (end < all && w->rows.samples.at[end].owner == w->rows.samples.at[first].owner) {
            end++;
        }
        ok = put_resource(w, first, end - first);
        first = end;
    }
    return ok;
}

/* ---- the dictionary ---- */

static bool put_table(struct writer *w, unsigned field, const struct otlp_table *table)
{
    bool ok = true;
    for (size_t i = 0; ok && i < otlp_table_rows(table); i++) {
        buf_clear(&w->message);
        buf_str(&w->message, otlp_table_row(table, i));
        ok = put_field(w, field, &w->message);
    }
    return ok;
}

/* Only what is not there: the zero value, as the first of each table has to be. */
static bool put_links(struct writer *w)
{
    buf_clear(&w->message);
    return put_field(w, TABLE_LINK, &w->message);
}

static bool put_stacks(struct writer *w)
{
    const struct otlp_rows *rows = &w->rows;
    bool ok = true;
    for (size_t i = 0; ok && i < rows->stacks.len; i++) {
        buf_clear(&w->part);
        for (uint32_t n = rows->stacks.at[i]; n != 0; n = w->p->nodes.at[n].parent) {
            protobuf_varint(&w->part, rows->location[w->p->nodes.at[n].frame]);
        }
        buf_clear(&w->message);
        if (i > 0) {
            protobuf_message(&w->message, STACK_LOCATIONS, &w->part);
        }
        ok = put_field(w, TABLE_STACK, &w->message);
    }
    return ok;
}

static bool put_tables(struct writer *w)
{
    return put_table(w, TABLE_MAPPING, &w->rows.mappings) &&
           put_table(w, TABLE_LOCATION, &w->rows.locations) &&
           put_table(w, TABLE_FUNCTION, &w->rows.functions) && put_links(w) &&
           put_table(w, TABLE_STRING, &w->rows.strings) &&
           put_table(w, TABLE_ATTRIBUTE, &w->rows.attributes) && put_stacks(w);
}

static bool put_dictionary(struct writer *w)
{
    w->counts = true;
    w->bytes = 0;
    bool ok = put_tables(w);
    w->counts = false;
    return ok && put_head(w, REQUEST_DICTIONARY, w->bytes) && put_tables(w);
}

bool otlp_write(struct profile *p, const struct encode_rules *rules, struct sink *out, struct err *err)
{
    struct writer w = {.p = p, .rules = rules, .out = out, .err = err};
    buf_init(&w.message, RECORD_MAX);
    buf_init(&w.part, RECORD_MAX);
    buf_init(&w.prefix, 32);
    bool ok = otlp_rows_init(&w.rows, p, err);
    if (ok) {
        name_types(&w);
        ok = !otlp_rows_failed(&w.rows) ||
             err_set(err, ERR_LIMIT, 0, "a table is larger than %d bytes", OTLP_TABLE_MAX_BYTES);
    }
    ok = ok && put_resources(&w) && put_dictionary(&w);
    otlp_rows_release(&w.rows);
    buf_release(&w.message);
    buf_release(&w.part);
    buf_release(&w.prefix);
    return ok;
}

const struct encoder encoder_otlp = {
    .name = "otlp",
    .extension = ".otlp",
    .mime = "application/x-protobuf",
    .description = "OpenTelemetry's protocol, which is sent and not kept",
    .apart = FIT_BY_PROCESS,
    .write = otlp_write,
};

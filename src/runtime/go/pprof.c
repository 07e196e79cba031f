/* Messages are built in a small buffer and go through the compressor one by one. Locations and functions are numbered
 * when they are first met and written right then (pprof_ids.h tells them apart). Texts are numbered likewise, but
 * written at the end, as Go does: there are readers that take the table of texts for the last field. */
#include "runtime/go/pprof.h"

#include <stdlib.h>

#include "base/gzip.h"
#include "base/protobuf.h"
#include "base/utf8.h"
#include "runtime/go/pprof_ids.h"

enum { MESSAGE_MAX_BYTES = 1 << 20 };

/* Field numbers. */
enum {
    SAMPLE_TYPE = 1, SAMPLE, MAPPING, LOCATION, FUNCTION, STRING,
    TIME = 9, DURATION, PERIOD_TYPE, PERIOD, COMMENT, DEFAULT_TYPE,

    TYPE_NAME = 1, TYPE_UNIT,
    SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL,
    LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER, LABEL_UNIT,
    MAPPING_ID = 1, MAPPING_START, MAPPING_LIMIT, MAPPING_OFFSET, MAPPING_FILE, MAPPING_BUILD_ID, MAPPING_HAS_FUNCTIONS,
    LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE,
    LINE_FUNCTION = 1, LINE_NUMBER,
    FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE,
};

struct map_range {
    uint64_t start, limit;
};

struct go_pprof {
    struct gzip gzip;
    struct sink plain, compressed;
    struct buf out;
    struct buf message, part, prefix;
    struct err err;
    bool failed;
    size_t value_count;
    uint64_t wall_ns, duration_ns;
    struct go_pprof_ids ids;
    VEC(struct map_range) maps;
};

/* ---- failure, and messages ---- */

static void fail(struct go_pprof *p, enum err_kind kind, const char *why)
{
    if (!p->failed) {
        p->failed = true;
        (void)err_set(&p->err, kind, 0, "a profile cannot be written: %s", why);
    }
}

/* The prefix, and what may come behind it. A number that could not be given makes a record that is not true. */
static void write_plain(struct go_pprof *p, struct str rest)
{
    if (p->ids.failed) {
        fail(p, ERR_LIMIT, "too many names or addresses, or no memory for them");
    }
    if (p->prefix.failed) {
        fail(p, ERR_MEMORY, "no memory");
    }
    if (!p->failed) {
        p->failed = !sink_write(&p->plain, p->prefix.ptr, p->prefix.len, &p->err) ||
                    !sink_write(&p->plain, rest.ptr, rest.len, &p->err);
    }
}

static void send(struct go_pprof *p, unsigned field)
{
    buf_clear(&p->prefix);
    protobuf_varint(&p->prefix, (uint64_t)field << 3 | PROTOBUF_BYTES);
    protobuf_varint(&p->prefix, p->message.len);
    if (p->message.failed) {
        fail(p, ERR_LIMIT, "a record is too large");
    }
    write_plain(p, buf_slice(&p->message));
}

static void send_number(struct go_pprof *p, unsigned field, uint64_t value)
{
    buf_clear(&p->prefix);
    protobuf_u64(&p->prefix, field, value);
    write_plain(p, (struct str){NULL, 0});
}

/* ---- texts, functions, locations ---- */

static uint32_t text_id(struct go_pprof *p, struct str text)
{
    return go_ids_text(&p->ids, str_sub(text, 0, GO_PPROF_TEXT_MAX));
}

static uint32_t word_id(struct go_pprof *p, const char *word)
{
    return text_id(p, str_of(word));
}

static uint32_t function_id(struct go_pprof *p, const struct go_frame *frame)
{
    struct go_function_names names = {text_id(p, frame->name), text_id(p, frame->file)};
    bool is_new;
    uint32_t id = go_ids_function(&p->ids, names, &is_new);
    if (is_new) {
        buf_clear(&p->message);
        protobuf_u64(&p->message, FUNCTION_ID, id);
        protobuf_u64(&p->message, FUNCTION_NAME, names.name);
        protobuf_u64(&p->message, FUNCTION_SYSTEM_NAME, names.name);
        protobuf_u64(&p->message, FUNCTION_FILE, names.file);
        send(p, FUNCTION);
    }
    return id;
}

uint64_t go_pprof_known(const struct go_pprof *p, uint64_t address)
{
    return address != 0 ? go_ids_find(&p->ids, &p->ids.by_address, address) : 0;
}

static uint64_t mapping_of(const struct go_pprof *p, uint64_t address)
{
    for (size_t i = 0; address != 0 && i < p->maps.len; i++) {
        if (address >= p->maps.at[i].start && address < p->maps.at[i].limit) {
            return i + 1;
        }
    }
    return 0;
}

static void send_location(struct go_pprof *p, uint64_t id, uint64_t address, const uint32_t *functions,
                          const struct go_frame *frames, size_t count)
{
    buf_clear(&p->message);
    protobuf_u64(&p->message, LOCATION_ID, id);
    protobuf_u64(&p->message, LOCATION_MAPPING, mapping_of(p, address));
    protobuf_u64(&p->message, LOCATION_ADDRESS, address);
    for (size_t i = 0; i < count; i++) {
        buf_clear(&p->part);
        protobuf_u64(&p->part, LINE_FUNCTION, functions[i]);
        protobuf_u64(&p->part, LINE_NUMBER, frames[i].line);
        protobuf_message(&p->message, LOCATION_LINE, &p->part);
    }
    send(p, LOCATION);
}

uint64_t go_pprof_location(struct go_pprof *p, uint64_t address, const struct go_frame *frames, size_t count)
{
    uint32_t functions[PROFILE_INLINES_MAX];
    struct intern *among = &p->ids.by_address;
    uint64_t key = address, id = go_pprof_known(p, address);
    if (id != 0 || p->failed) {
        return p->failed ? 0 : id;
    }
    count = count < PROFILE_INLINES_MAX ? count : PROFILE_INLINES_MAX;
    for (size_t i = 0; i < count; i++) { /* before the location: they are messages of their own */
        functions[i] = function_id(p, &frames[i]);
    }
    if (address == 0) {
        among = count == 1 ? &p->ids.by_name : NULL;
        key = count == 1 ? (uint64_t)functions[0] << 32 | frames[0].line : 0;
        id = count == 1 ? go_ids_find(&p->ids, among, key) : 0;
    }
    if (id == 0) {
        id = go_ids_new(&p->ids, among, key);
        send_location(p, id, address, functions, frames, count);
    }
    return p->failed ? 0 : id;
}

void go_pprof_map(struct go_pprof *p, uint64_t start, uint64_t limit, uint64_t file_offset, struct str path,
                  struct str build_id)
{
    struct map_range *at = p->maps.len < GO_PPROF_MAPS_MAX ? vec_push(&p->maps) : NULL;
    if (at == NULL) {
        return;
    }
    *at = (struct map_range){start, limit};
    buf_clear(&p->message);
    protobuf_u64(&p->message, MAPPING_ID, p->maps.len);
    protobuf_u64(&p->message, MAPPING_START, start);
    protobuf_u64(&p->message, MAPPING_LIMIT, limit);
    protobuf_u64(&p->message, MAPPING_OFFSET, file_offset);
    protobuf_u64(&p->message, MAPPING_FILE, text_id(p, path));
    protobuf_u64(&p->message, MAPPING_BUILD_ID, text_id(p, build_id));
    protobuf_u64(&p->message, MAPPING_HAS_FUNCTIONS, true);
    send(p, MAPPING);
}

/* ---- samples ---- */

static void add_label(struct go_pprof *p, const struct go_pprof_label *label)
{
    buf_clear(&p->part);
    protobuf_u64(&p->part, LABEL_KEY, word_id(p, label->key));
    if (label->text != NULL) {
        protobuf_u64(&p->part, LABEL_TEXT, text_id(p, *label->text));
    } else {
        protobuf_u64(&p->part, LABEL_NUMBER, (uint64_t)label->number);
        protobuf_u64(&p->part, LABEL_UNIT, label->unit != NULL ? word_id(p, label->unit) : 0);
    }
    protobuf_message(&p->message, SAMPLE_LABEL, &p->part);
}

void go_pprof_sample(struct go_pprof *p, const uint64_t *locations, size_t count, const int64_t *values,
                     const struct go_pprof_label *labels, size_t label_count)
{
    buf_clear(&p->message);
    buf_clear(&p->part);
    for (size_t i = 0; i < count; i++) {
        if (locations[i] != 0 && locations[i] < p->ids.keys.len) {
            protobuf_varint(&p->part, locations[i]);
        }
    }
    protobuf_message(&p->message, SAMPLE_LOCATION, &p->part);
    buf_clear(&p->part);
    for (size_t i = 0; i < p->value_count; i++) {
        protobuf_varint(&p->part, (uint64_t)values[i]);
    }
    protobuf_message(&p->message, SAMPLE_VALUE, &p->part);
    for (size_t i = 0; i < label_count; i++) {
        add_label(p, &labels[i]);
    }
    send(p, SAMPLE);
}

/* ---- beginning and end ---- */

static void send_type(struct go_pprof *p, unsigned field, struct go_value_type type)
{
    buf_clear(&p->message);
    protobuf_u64(&p->message, TYPE_NAME, word_id(p, type.type));
    protobuf_u64(&p->message, TYPE_UNIT, word_id(p, type.unit));
    send(p, field);
}

static void send_kind(struct go_pprof *p, const struct go_pprof_kind *kind)
{
    if (kind->period_type.type != NULL) {
        send_type(p, PERIOD_TYPE, kind->period_type);
        send_number(p, PERIOD, (uint64_t)kind->period);
    }
    for (size_t i = 0; i < p->value_count; i++) {
        send_type(p, SAMPLE_TYPE, kind->values[i]);
    }
    send_number(p, DEFAULT_TYPE, word_id(p, kind->default_type));
    send_number(p, COMMENT, word_id(p, kind->comment));
}

struct go_pprof *go_pprof_new(const struct go_pprof_kind *kind, size_t max_bytes)
{
    struct go_pprof *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return NULL;
    }
    buf_init(&p->out, max_bytes);
    buf_init(&p->message, MESSAGE_MAX_BYTES);
    buf_init(&p->part, MESSAGE_MAX_BYTES);
    buf_init(&p->prefix, 64);
    p->compressed = sink_of_buf(&p->out);
    p->value_count = kind->value_count < GO_PPROF_VALUES_MAX ? kind->value_count : GO_PPROF_VALUES_MAX;
    bool opened = gzip_open_quick(&p->gzip, &p->compressed, NULL);
    p->plain = gzip_sink(&p->gzip);
    if (!go_ids_init(&p->ids) || !opened) {
        go_pprof_free(p);
        return NULL;
    }
    send_kind(p, kind);
    return p;
}

void go_pprof_free(struct go_pprof *p)
{
    if (p != NULL) {
        gzip_release(&p->gzip);
        buf_release(&p->out);
        buf_release(&p->message);
        buf_release(&p->part);
        buf_release(&p->prefix);
        go_ids_release(&p->ids);
        vec_release(&p->maps);
        free(p);
    }
}

void go_pprof_times(struct go_pprof *p, uint64_t wall_ns, uint64_t duration_ns)
{
    p->wall_ns = wall_ns;
    p->duration_ns = duration_ns;
}

bool go_pprof_finish(struct go_pprof *p, struct buf *out, struct err *err)
{
    send_number(p, TIME, p->wall_ns);
    send_number(p, DURATION, p->duration_ns);
    for (size_t i = 0; i < p->ids.texts.len && !p->failed; i++) {
        buf_clear(&p->message);
        utf8_add(&p->message, p->ids.texts.at[i]);
        send(p, STRING);
    }
    if (p->failed || !gzip_finish(&p->gzip, &p->err)) {
        p->failed = true;
        return err_set(err, p->err.kind, p->err.number, "%s", p->err.text);
    }
    buf_release(out);
    buf_trim(&p->out);
    *out = p->out;
    buf_init(&p->out, 0);
    return true;
}

size_t go_pprof_bytes(const struct go_pprof *p)
{
    return sizeof *p + p->message.cap + p->part.cap + p->prefix.cap + p->maps.cap * sizeof *p->maps.at +
           go_ids_bytes(&p->ids);
}

/* What a difference is written of. Fields are copied as they stand in the snapshot, but for the values of samples and
 * the texts; so ids and indices stay what they were, and nothing has to be translated. Samples lead to locations,
 * these to functions, and all of them to texts; each needs the walk before it to have ended. In Go's own files texts
 * are last, and then they share a walk with the functions. */
#include "runtime/go/delta/delta_write.h"

#include <stdlib.h>

enum {
    FIELD_MAX_BYTES = 2 * GO_FIELD_MAX_BYTES, /* values may become longer, ten bytes at most each */
    OTHER_ID = GO_ID_MAX + 1,                 /* no location or function of the snapshot has it */
};

#define OTHER_NAME STR("[other]")

struct go_writer *go_writer_open(struct go_snapshot *snapshot, struct buf *out, struct err *err)
{
    struct go_writer *w = calloc(1, sizeof *w);
    if (w == NULL) {
        (void)err_set(err, ERR_MEMORY, 0, "no memory to write a profile");
        return NULL;
    }
    w->snapshot = snapshot;
    w->packed = sink_of_buf(out);
    buf_init(&w->field, FIELD_MAX_BYTES + 32);
    buf_init(&w->message, FIELD_MAX_BYTES);
    if (!gzip_open_quick(&w->gzip, &w->packed, err)) {
        free(w);
        return NULL;
    }
    w->plain = gzip_sink(&w->gzip);
    if (!go_bits_add(&w->texts, 0, err)) {
        go_writer_release(w);
        return NULL;
    }
    return w;
}

void go_writer_release(struct go_writer *writer)
{
    if (writer != NULL) {
        gzip_release(&writer->gzip);
        buf_release(&writer->field);
        buf_release(&writer->message);
        vec_release(&writer->locations.words);
        vec_release(&writer->functions.words);
        vec_release(&writer->texts.words);
        free(writer);
    }
}

/* ---- Fields ---- */

static bool flush(struct go_writer *w, struct err *err)
{
    if (w->field.failed) {
        return err_set(err, ERR_MEMORY, 0, "no memory for a field of the difference");
    }
    bool ok = sink_write(&w->plain, w->field.ptr, w->field.len, err);
    buf_clear(&w->field);
    return ok;
}

static void add_head(struct buf *out, unsigned number, enum protobuf_wire wire, uint64_t value)
{
    protobuf_varint(out, (uint64_t)number << 3 | wire);
    protobuf_varint(out, value);
}

static bool copy_field(struct go_writer *w, const struct protobuf_field *f, struct err *err)
{
    if (f->wire == PROTOBUF_BYTES) {
        add_head(&w->field, f->number, PROTOBUF_BYTES, f->bytes.len);
        buf_str(&w->field, f->bytes);
    } else {
        add_head(&w->field, f->number, PROTOBUF_VARINT, f->value);
    }
    return flush(w, err);
}

static bool write_message(struct go_writer *w, unsigned number, struct err *err)
{
    protobuf_message(&w->field, number, &w->message);
    buf_clear(&w->message);
    return flush(w, err);
}

static bool write_number(struct go_writer *w, unsigned number, uint64_t value, struct err *err)
{
    protobuf_u64(&w->field, number, value);
    return flush(w, err);
}

static bool write_text(struct go_writer *w, struct str text, struct err *err)
{
    add_head(&w->field, PROFILE_TEXT, PROTOBUF_BYTES, text.len);
    buf_str(&w->field, text);
    return flush(w, err);
}

static bool use_text(struct go_writer *w, uint64_t index, struct err *err)
{
    return index < w->snapshot->texts ? go_bits_add(&w->texts, index, err)
                                      : go_damaged(err, "a text that is named is not there");
}

/* ---- Samples ---- */

static bool use_locations(struct go_writer *w, const struct protobuf_field *f, struct err *err)
{
    size_t at = 0;
    uint64_t id;
    bool is_damaged = false, ok = true;
    while (ok && protobuf_packed_next(f, &at, &id, &is_damaged)) {
        ok = go_bits_add(&w->locations, id, err); /* it is there: go_snapshot_sample */
    }
    return ok;
}

static bool use_label(struct go_writer *w, struct str message, struct err *err)
{
    struct go_label label;
    return go_label_read(message, &label, err) && use_text(w, label.key, err) && use_text(w, label.text, err) &&
           use_text(w, label.unit, err);
}

static void add_values(struct go_writer *w, const uint64_t *values)
{
    size_t len = 0;
    for (size_t i = 0; i < w->snapshot->columns; i++) {
        uint64_t rest = values[i];
        for (len++; rest >= 0x80; rest >>= 7) {
            len++;
        }
    }
    add_head(&w->message, SAMPLE_VALUE, PROTOBUF_BYTES, len);
    for (size_t i = 0; i < w->snapshot->columns; i++) {
        protobuf_varint(&w->message, values[i]);
    }
}

bool go_writer_sample(struct go_writer *writer, struct str message, const uint64_t *values, struct err *err)
{
    struct cursor c = cursor_of(message.ptr, message.len);
    struct protobuf_field f;
    const unsigned char *from = c.ptr;
    for (; protobuf_next(&c, &f); from = c.ptr) {
        if (f.number == SAMPLE_VALUE) {
            continue;
        }
        buf_add(&writer->message, from, (size_t)(c.ptr - from));
        if ((f.number == SAMPLE_LOCATION && !use_locations(writer, &f, err)) ||
            (f.number == SAMPLE_LABEL && !use_label(writer, f.bytes, err))) {
            return false;
        }
    }
    add_values(writer, values);
    return write_message(writer, PROFILE_SAMPLE, err);
}

bool go_writer_other(struct go_writer *writer, const uint64_t *values, struct err *err)
{
    writer->has_other = true;
    protobuf_u64(&writer->message, SAMPLE_LOCATION, OTHER_ID);
    add_values(writer, values);
    return write_message(writer, PROFILE_SAMPLE, err);
}

/* ---- What they lead to ---- */

/* Marks the texts that a message names in two or three of its fields. */
static bool use_texts(struct go_writer *w, const struct protobuf_field *field, uint32_t numbers, struct err *err)
{
    struct cursor c = go_fields_of(field);
    struct protobuf_field f;
    while (protobuf_next(&c, &f)) {
        if (f.number < 32 && (numbers >> f.number & 1) != 0 && !use_text(w, f.value, err)) {
            return false;
        }
    }
    return !c.short_read || go_damaged(err, "a mapping, function or type");
}

static bool use_function(struct go_writer *w, const struct protobuf_field *line, struct err *err)
{
    struct cursor c = go_fields_of(line);
    struct protobuf_field f;
    while (protobuf_next(&c, &f)) {
        if (f.number != LINE_FUNCTION) {
            continue;
        }
        if (f.value > GO_ID_MAX) {
            return err_set(err, ERR_LIMIT, 0, "a function of the profile has the id %llu; up to %d are read",
                           (unsigned long long)f.value, GO_ID_MAX);
        }
        if (!go_bits_add(&w->functions, f.value, err)) {
            return false;
        }
    }
    return !c.short_read || go_damaged(err, "a line of a location");
}

static uint64_t id_of(const struct protobuf_field *message) /* locations and functions have it in field 1 */
{
    struct cursor c = go_fields_of(message);
    struct protobuf_field f;
    uint64_t id = 0;
    while (protobuf_next(&c, &f)) {
        id = f.number == FUNCTION_ID ? f.value : id;
    }
    return id;
}

static bool write_location(struct go_writer *w, const struct protobuf_field *field, struct err *err)
{
    struct cursor c = go_fields_of(field);
    struct protobuf_field f;
    if (!go_bits_has(&w->locations, id_of(field))) {
        return true;
    }
    while (protobuf_next(&c, &f)) {
        if (f.number == LOCATION_LINE && !use_function(w, &f, err)) {
            return false;
        }
    }
    return copy_field(w, field, err);
}

static bool write_comments(struct go_writer *w, const struct protobuf_field *f, struct err *err)
{
    size_t at = 0;
    uint64_t index;
    bool is_damaged = false;
    while (protobuf_packed_next(f, &at, &index, &is_damaged)) {
        if (!use_text(w, index, err)) {
            return false;
        }
    }
    return is_damaged ? go_damaged(err, "a comment") : copy_field(w, f, err);
}

static bool write_field(struct go_writer *w, const struct protobuf_field *f, bool has_duration, struct err *err)
{
    switch (f->number) {
    case PROFILE_SAMPLE_TYPE:
    case PROFILE_PERIOD_TYPE:
        return use_texts(w, f, 1u << TYPE_NAME | 1u << TYPE_UNIT, err) && copy_field(w, f, err);
    case PROFILE_MAPPING:
        return use_texts(w, f, 1u << MAPPING_FILE | 1u << MAPPING_BUILD_ID, err) && copy_field(w, f, err);
    case PROFILE_LOCATION:
        return write_location(w, f, err);
    case PROFILE_COMMENT:
        return write_comments(w, f, err);
    case PROFILE_DURATION:
        return has_duration || copy_field(w, f, err);
    case PROFILE_PERIOD:
        return copy_field(w, f, err);
    default: /* the index of a text */
        return use_text(w, f->value, err) && copy_field(w, f, err);
    }
}

static bool write_function(struct go_writer *w, const struct protobuf_field *f, struct err *err)
{
    return !go_bits_has(&w->functions, id_of(f)) ||
           (use_texts(w, f, 1u << FUNCTION_NAME | 1u << FUNCTION_SYSTEM_NAME | 1u << FUNCTION_FILE, err) &&
            copy_field(w, f, err));
}

/* Functions, texts or both. */
static bool write_names(struct go_writer *w, uint32_t wanted, struct err *err)
{
    struct protobuf_field f;
    size_t index = 0;
    go_scan_start(w->snapshot->scan, wanted);
    while (go_scan_next(w->snapshot->scan, &f, err)) {
        bool ok = f.number == PROFILE_FUNCTION ? write_function(w, &f, err)
                                               : write_text(w, go_bits_has(&w->texts, index) ? f.bytes : STR(""), err);
        if (!ok) {
            return false;
        }
        index += f.number == PROFILE_TEXT;
    }
    return go_scan_is_sound(w->snapshot->scan);
}

static bool write_other(struct go_writer *w, struct err *err)
{
    uint64_t name = w->snapshot->texts;
    struct buf line;
    if (!w->has_other) {
        return true;
    }
    buf_init(&line, 64);
    protobuf_u64(&line, LINE_FUNCTION, OTHER_ID);
    protobuf_u64(&w->message, LOCATION_ID, OTHER_ID);
    protobuf_message(&w->message, LOCATION_LINE, &line);
    buf_release(&line);
    if (!write_message(w, PROFILE_LOCATION, err)) {
        return false;
    }
    protobuf_u64(&w->message, FUNCTION_ID, OTHER_ID);
    protobuf_u64(&w->message, FUNCTION_NAME, name);
    protobuf_u64(&w->message, FUNCTION_SYSTEM_NAME, name);
    return write_message(w, PROFILE_FUNCTION, err) && write_text(w, OTHER_NAME, err);
}

bool go_writer_rest(struct go_writer *writer, const int64_t *duration_ns, struct err *err)
{
    struct go_snapshot *s = writer->snapshot;
    struct protobuf_field f;
    if (!write_number(writer, PROFILE_TIME, (uint64_t)s->time_ns, err) ||
        (duration_ns != NULL && !write_number(writer, PROFILE_DURATION, (uint64_t)*duration_ns, err))) {
        return false;
    }
    go_scan_start(s->scan, 1u << PROFILE_SAMPLE_TYPE | 1u << PROFILE_MAPPING | 1u << PROFILE_LOCATION |
                               1u << PROFILE_DROP_FRAMES | 1u << PROFILE_KEEP_FRAMES | 1u << PROFILE_DURATION |
                               1u << PROFILE_PERIOD_TYPE | 1u << PROFILE_PERIOD | 1u << PROFILE_COMMENT |
                               1u << PROFILE_DEFAULT_TYPE);
    while (go_scan_next(s->scan, &f, err)) {
        if (!write_field(writer, &f, duration_ns != NULL, err)) {
            return false;
        }
    }
    uint32_t functions = 1u << PROFILE_FUNCTION, texts = 1u << PROFILE_TEXT;
    bool ok = go_scan_is_sound(s->scan) && write_names(writer, functions | (s->has_text_first ? 0 : texts), err) &&
              (!s->has_text_first || write_names(writer, texts, err));
    return ok && write_other(writer, err) && gzip_finish(&writer->gzip, err);
}

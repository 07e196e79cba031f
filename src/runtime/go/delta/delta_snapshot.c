/* One snapshot. What samples are told apart by stands anywhere in the file, in Go's own before the samples (locations)
 * and at its very end (texts); so it is gathered in a first walk. Of texts only the hashes are kept, and only as far
 * as labels and sample types name them, which in Go's files are a few of the first; a second walk fetches those that
 * stood before what names them. */
#include "runtime/go/delta/delta_snapshot.h"

bool go_damaged(struct err *err, const char *what)
{
    return err_set(err, ERR_MALFORMED, 0, "the profile is damaged: %s", what);
}

static bool no_memory(struct err *err)
{
    return err_set(err, ERR_MEMORY, 0, "no memory for the index of a profile");
}

struct cursor go_fields_of(const struct protobuf_field *field)
{
    return cursor_of(field->bytes.ptr, field->bytes.len);
}

bool go_bits_add(struct go_bits *bits, uint64_t number, struct err *err)
{
    while (bits->words.len <= number / 64) {
        if (vec_push(&bits->words) == NULL) {
            return no_memory(err);
        }
    }
    bits->words.at[number / 64] |= (uint64_t)1 << number % 64;
    return true;
}

void go_snapshot_release(struct go_snapshot *snapshot)
{
    go_scan_free(snapshot->scan);
    vec_release(&snapshot->text_hashes);
    vec_release(&snapshot->addresses);
    vec_release(&snapshot->locations.words);
    snapshot->scan = NULL;
}

/* ---- The index ---- */

static void name_text(struct go_snapshot *s, uint64_t index)
{
    if (index >= s->texts_named) {
        s->texts_named = index < GO_ID_MAX ? index + 1 : GO_ID_MAX + 1;
    }
}

static bool add_column(struct go_snapshot *s, const struct protobuf_field *field, struct err *err)
{
    struct cursor c = go_fields_of(field);
    struct protobuf_field f;
    uint64_t name = 0;
    while (protobuf_next(&c, &f)) {
        name = f.number == TYPE_NAME ? f.value : name;
    }
    if (c.short_read) {
        return go_damaged(err, "a sample type");
    }
    if (s->columns == GO_DELTA_COLUMNS_MAX) {
        return err_set(err, ERR_UNSUPPORTED, 0, "the profile has more than %d sample types", GO_DELTA_COLUMNS_MAX);
    }
    s->column_names[s->columns++] = name;
    name_text(s, name);
    return true;
}

static bool name_labels(struct go_snapshot *s, const struct protobuf_field *field, struct err *err)
{
    struct cursor c = go_fields_of(field);
    struct protobuf_field f;
    s->samples++;
    while (protobuf_next(&c, &f)) {
        struct go_label label;
        if (f.number == SAMPLE_LABEL) {
            if (!go_label_read(f.bytes, &label, err)) {
                return false;
            }
            name_text(s, label.key);
            name_text(s, label.text);
            name_text(s, label.unit);
        }
    }
    return !c.short_read || go_damaged(err, "a sample");
}

static bool add_location(struct go_snapshot *s, const struct protobuf_field *field, struct err *err)
{
    struct cursor c = go_fields_of(field);
    struct protobuf_field f;
    uint64_t id = 0, address = 0;
    while (protobuf_next(&c, &f)) {
        id = f.number == LOCATION_ID ? f.value : id;
        address = f.number == LOCATION_ADDRESS ? f.value : address;
    }
    if (c.short_read || id == 0) {
        return go_damaged(err, "a location");
    }
    if (id > GO_ID_MAX) {
        return err_set(err, ERR_LIMIT, 0, "a location of the profile has the id %llu; up to %d are read",
                       (unsigned long long)id, GO_ID_MAX);
    }
    while (s->addresses.len <= id) {
        if (vec_push(&s->addresses) == NULL) {
            return no_memory(err);
        }
    }
    s->addresses.at[id] = address;
    return go_bits_add(&s->locations, id, err);
}

/* `index` is that of the text. They come in order, so a text that was left out leaves out the rest. */
static bool add_text(struct go_snapshot *s, struct str text, size_t index, struct err *err)
{
    if (index != s->text_hashes.len || index >= s->texts_named) {
        return true;
    }
    uint64_t *hash = vec_push(&s->text_hashes);
    if (hash == NULL) {
        return no_memory(err);
    }
    *hash = str_hash(text);
    return true;
}

static bool index_field(struct go_snapshot *s, const struct protobuf_field *f, struct err *err)
{
    switch (f->number) {
    case PROFILE_SAMPLE_TYPE:
        return add_column(s, f, err);
    case PROFILE_SAMPLE:
        return name_labels(s, f, err);
    case PROFILE_LOCATION:
        return add_location(s, f, err);
    case PROFILE_FUNCTION:
        s->has_text_first |= s->texts > 0;
        return true;
    case PROFILE_TIME:
        s->time_ns = (int64_t)f->value;
        s->has_time = true;
        return true;
    default: /* a text */
        return s->texts < GO_ID_MAX ? add_text(s, f->bytes, s->texts++, err)
                                    : err_set(err, ERR_LIMIT, 0, "the profile has more than %d texts", GO_ID_MAX);
    }
}

static bool fetch_texts(struct go_snapshot *s, struct err *err)
{
    struct protobuf_field f;
    size_t index = 0;
    if (s->texts_named > s->texts) {
        return go_damaged(err, "a text that is named is not there");
    }
    if (s->text_hashes.len == s->texts_named) {
        return true;
    }
    go_scan_start(s->scan, 1u << PROFILE_TEXT);
    while (s->text_hashes.len < s->texts_named && go_scan_next(s->scan, &f, err)) {
        if (!add_text(s, f.bytes, index++, err)) {
            return false;
        }
    }
    return go_scan_is_sound(s->scan);
}

bool go_snapshot_open(struct go_snapshot *snapshot, struct str bytes, struct err *err)
{
    struct protobuf_field f;
    *snapshot = (struct go_snapshot){.scan = go_scan_new(bytes, err)};
    if (snapshot->scan == NULL) {
        return false;
    }
    if (bytes.len == 0) {
        return go_damaged(err, "it is empty");
    }
    go_scan_start(snapshot->scan, 1u << PROFILE_SAMPLE_TYPE | 1u << PROFILE_SAMPLE | 1u << PROFILE_LOCATION |
                                      1u << PROFILE_FUNCTION | 1u << PROFILE_TEXT | 1u << PROFILE_TIME);
    while (go_scan_next(snapshot->scan, &f, err)) {
        if (!index_field(snapshot, &f, err)) {
            return false;
        }
    }
    return go_scan_is_sound(snapshot->scan) && fetch_texts(snapshot, err);
}

bool go_snapshot_is_column(const struct go_snapshot *snapshot, size_t column, struct str name)
{
    return snapshot->text_hashes.at[snapshot->column_names[column]] == str_hash(name);
}

/* ---- Samples ---- */

bool go_label_read(struct str message, struct go_label *out, struct err *err)
{
    struct cursor c = cursor_of(message.ptr, message.len);
    struct protobuf_field f;
    *out = (struct go_label){0};
    while (protobuf_next(&c, &f)) {
        out->key = f.number == LABEL_KEY ? f.value : out->key;
        out->text = f.number == LABEL_TEXT ? f.value : out->text;
        out->number = f.number == LABEL_NUMBER ? f.value : out->number;
        out->unit = f.number == LABEL_UNIT ? f.value : out->unit;
    }
    return !c.short_read || go_damaged(err, "a label");
}

static uint64_t mixed(uint64_t hash, uint64_t value)
{
    return hash_u64(hash ^ value);
}

static uint64_t hash_of_text(const struct go_snapshot *s, uint64_t index)
{
    return s->text_hashes.at[index];
}

/* All texts that labels name are there: fetch_texts. */
static uint64_t hash_of_label(const struct go_snapshot *s, const struct go_label *label)
{
    uint64_t hash = mixed(hash_of_text(s, label->key) + 1, hash_of_text(s, label->text));
    return mixed(mixed(hash, hash_of_text(s, label->unit)), label->number);
}

static bool add_locations(const struct go_snapshot *s, const struct protobuf_field *f, uint64_t *hash, struct err *err)
{
    size_t at = 0;
    uint64_t id;
    bool is_damaged = false;
    while (protobuf_packed_next(f, &at, &id, &is_damaged)) {
        if (!go_bits_has(&s->locations, id)) {
            return go_damaged(err, "a sample names a location that is not there");
        }
        *hash = mixed(*hash + 1, s->addresses.at[id]);
    }
    return !is_damaged || go_damaged(err, "the locations of a sample");
}

static bool add_values(const struct go_snapshot *s, const struct protobuf_field *f, size_t *count,
                       struct go_sample *out, struct err *err)
{
    size_t at = 0;
    uint64_t value;
    bool is_damaged = false;
    while (protobuf_packed_next(f, &at, &value, &is_damaged)) {
        if (*count == s->columns) {
            return go_damaged(err, "a sample has more values than there are sample types");
        }
        out->values[(*count)++] = value;
    }
    return !is_damaged || go_damaged(err, "the values of a sample");
}

bool go_snapshot_sample(const struct go_snapshot *snapshot, struct str message, struct go_sample *out, struct err *err)
{
    struct cursor c = cursor_of(message.ptr, message.len);
    struct protobuf_field f;
    struct go_label label;
    uint64_t stack = 0, labels = 0; /* the labels' is a sum: their order says nothing */
    size_t count = 0;
    *out = (struct go_sample){0};
    while (protobuf_next(&c, &f)) {
        bool ok = true;
        if (f.number == SAMPLE_LOCATION) {
            ok = add_locations(snapshot, &f, &stack, err);
        } else if (f.number == SAMPLE_VALUE) {
            ok = add_values(snapshot, &f, &count, out, err);
        } else if (f.number == SAMPLE_LABEL) {
            ok = go_label_read(f.bytes, &label, err);
            labels += ok ? hash_of_label(snapshot, &label) : 0;
        }
        if (!ok) {
            return false;
        }
    }
    out->identity = mixed(stack, labels);
    if (c.short_read) {
        return go_damaged(err, "a sample");
    }
    return count == snapshot->columns ||
           go_damaged(err, "a sample has fewer values than there are sample types");
}

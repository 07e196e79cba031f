/* A chunk of a flight recording, read where it lies: the types that it says of itself, its constants by type and key,
 * and values by the types' fields. Each step over a value is counted: arrays may claim any length, and a type may have
 * no bytes at all. */
#include "encode/jfr_chunk.h"

#include "base/time.h"
#include "base/utf8.h"

enum {
    HEADER_BYTES = 68,
    SIZE_AT = 8, METADATA_AT = 24, START_AT = 32, DURATION_AT = 40, TICKS_AT = 48, RATE_AT = 56, FLAGS_AT = 64,
    COMPRESSED = 1, /* a flag: numbers are of as many bytes as they need */
    STEPS_PER_BYTE = 64,
    TREE_DEPTH_MAX = 16,
    NONE = UINT32_MAX,
    EVENT_METADATA = 0, EVENT_CHECKPOINT = 1,
};

enum { TEXT_NULL, TEXT_EMPTY, TEXT_CONSTANT, TEXT_UTF8, TEXT_UTF16, TEXT_LATIN1 };

static bool malformed(struct err *err, const char *what)
{
    return err_set(err, ERR_MALFORMED, 0, "no flight recording: %s", what);
}

static uint64_t be64(const unsigned char *at)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) {
        value = value << 8 | at[i];
    }
    return value;
}

size_t jfr_chunk_size(struct str bytes)
{
    if (bytes.len < HEADER_BYTES || memcmp(bytes.ptr, "FLR\0", 4) != 0) {
        return 0;
    }
    uint64_t size = be64((const unsigned char *)bytes.ptr + SIZE_AT);
    return size >= HEADER_BYTES && size <= bytes.len ? (size_t)size : 0;
}

/* ---- Values ---- */

static struct cursor cursor_at(const struct jfr_chunk *c, size_t at)
{
    struct cursor cursor = cursor_of(c->bytes.ptr + at, at <= c->bytes.len ? c->bytes.len - at : 0);
    cursor.short_read = at > c->bytes.len;
    return cursor;
}

static size_t place_of(const struct jfr_chunk *c, const struct cursor *cursor)
{
    return (size_t)(cursor->ptr - (const unsigned char *)c->bytes.ptr);
}

/* Seven bits a byte, least first; a ninth byte has eight. */
static uint64_t number(struct cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 56; shift += 7) {
        uint8_t byte = cursor_u8(cursor);
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            return value;
        }
    }
    return value | (uint64_t)cursor_u8(cursor) << 56;
}

static void skip_text(struct cursor *cursor)
{
    uint8_t kind = cursor_u8(cursor);
    uint64_t count = kind >= TEXT_CONSTANT ? number(cursor) : 0;
    if (kind == TEXT_UTF16) {
        for (; count > 0 && !cursor->short_read; count--) {
            (void)number(cursor);
        }
    } else if (kind > TEXT_CONSTANT) {
        cursor->short_read |= kind > TEXT_LATIN1 || count > cursor->len;
        cursor_skip(cursor, (size_t)count);
    }
}

static void skip_value(struct jfr_chunk *c, const struct jfr_class *class, struct cursor *cursor, unsigned depth);

static void skip_field(struct jfr_chunk *c, const struct jfr_field *f, struct cursor *cursor, unsigned depth)
{
    uint64_t count = f->is_array ? number(cursor) : 1;
    for (; count > 0 && !cursor->short_read; count--) {
        if (c->steps == 0) {
            cursor->short_read = true;
        } else if (f->is_constant) {
            c->steps--;
            (void)number(cursor);
        } else if (f->class >= c->classes.len) {
            cursor->short_read = true;
        } else {
            skip_value(c, &c->classes.at[f->class], cursor, depth + 1);
        }
    }
}

static void skip_value(struct jfr_chunk *c, const struct jfr_class *class, struct cursor *cursor, unsigned depth)
{
    if (c->steps == 0 || depth > JFR_DEPTH_MAX) {
        cursor->short_read = true;
        return;
    }
    c->steps--;
    switch ((enum jfr_form)class->form) {
    case JFR_INTEGER: (void)number(cursor); break;
    case JFR_BYTE: cursor_skip(cursor, 1); break;
    case JFR_FLOAT: cursor_skip(cursor, 4); break;
    case JFR_DOUBLE: cursor_skip(cursor, 8); break;
    case JFR_STRING: skip_text(cursor); break;
    case JFR_STRUCT:
        for (uint32_t i = 0; i < class->field_count && !cursor->short_read; i++) {
            skip_field(c, &c->fields.at[class->field + i], cursor, depth);
        }
    }
}

bool jfr_skip(struct jfr_chunk *c, const struct jfr_class *class, size_t *at)
{
    struct cursor cursor = cursor_at(c, *at);
    skip_value(c, class, &cursor, 0);
    *at = place_of(c, &cursor);
    return !cursor.short_read;
}

bool jfr_array(struct jfr_chunk *c, size_t *at, uint64_t *count)
{
    struct cursor cursor = cursor_at(c, *at);
    *count = number(&cursor);
    *at = place_of(c, &cursor);
    return !cursor.short_read;
}

/* Of a number itself, of anything else the place. */
static uint64_t value_of(const struct jfr_chunk *c, const struct jfr_field *f, struct cursor cursor)
{
    if (f->is_array || (!f->is_constant && f->class >= c->classes.len)) {
        return place_of(c, &cursor);
    }
    uint8_t form = f->is_constant ? JFR_INTEGER : c->classes.at[f->class].form;
    return form == JFR_INTEGER ? number(&cursor) : form == JFR_BYTE ? cursor_u8(&cursor) : place_of(c, &cursor);
}

bool jfr_fields(struct jfr_chunk *c, const struct jfr_class *class, size_t at, const char *const *names,
                uint64_t *values, size_t count)
{
    struct cursor cursor = cursor_at(c, at);
    memset(values, 0, count * sizeof *values);
    for (uint32_t i = 0; i < class->field_count && !cursor.short_read; i++) {
        const struct jfr_field *f = &c->fields.at[class->field + i];
        for (size_t k = 0; k < count; k++) {
            if (str_eq(f->name, str_of(names[k]))) {
                values[k] = value_of(c, f, cursor);
            }
        }
        skip_field(c, f, &cursor, 0);
    }
    return !cursor.short_read;
}

bool jfr_constant(const struct jfr_class *class, uint64_t key, size_t *at)
{
    const struct map_slot *slot = class != NULL ? map_find(&class->constants, key) : NULL;
    *at = slot != NULL ? (size_t)slot->value : 0;
    return slot != NULL;
}

static void put_utf16(struct cursor *cursor, uint64_t count, struct buf *out)
{
    enum { HIGH = 0xd800, LOW = 0xdc00, HALF = 0x400, BEYOND = 0x10000, UNKNOWN = 0xfffd };
    for (; count > 0 && !cursor->short_read; count--) {
        uint32_t unit = (uint32_t)number(cursor) & 0xffff;
        if (unit - HIGH < HALF && count > 1) {
            uint32_t low = (uint32_t)number(cursor) & 0xffff;
            count--;
            unit = low - LOW < HALF ? BEYOND + (unit - HIGH) * HALF + (low - LOW) : UNKNOWN;
        } else if (unit - HIGH < 2 * HALF) {
            unit = UNKNOWN;
        }
        utf8_put(out, unit);
    }
}

static struct str text_at(struct jfr_chunk *c, size_t at, struct buf *held, bool is_constant)
{
    struct cursor cursor = cursor_at(c, at);
    uint8_t kind = cursor_u8(&cursor);
    uint64_t count = kind >= TEXT_CONSTANT ? number(&cursor) : 0;
    buf_clear(held);
    if (kind == TEXT_CONSTANT && !is_constant) {
        const struct jfr_class *strings = jfr_class_named(c, "java.lang.String");
        return jfr_constant(strings, count, &at) ? text_at(c, at, held, true) : STR("");
    }
    if (kind == TEXT_UTF16) {
        put_utf16(&cursor, count, held);
    } else if ((kind == TEXT_UTF8 || kind == TEXT_LATIN1) && count <= cursor.len) {
        struct str raw = {(const char *)cursor.ptr, (size_t)count};
        if (kind == TEXT_UTF8) {
            return raw;
        }
        for (size_t i = 0; i < raw.len; i++) {
            utf8_put(held, (unsigned char)raw.ptr[i]);
        }
    }
    return cursor.short_read || held->failed ? STR("") : buf_slice(held);
}

struct str jfr_text(struct jfr_chunk *c, size_t at, struct buf *held)
{
    return text_at(c, at, held, false);
}

/* ---- Metadata: a tree of elements, each with attributes ---- */

static struct str string_at(const struct jfr_chunk *c, uint64_t index)
{
    return index < c->strings.len ? c->strings.at[index] : STR("");
}

static bool read_strings(struct jfr_chunk *c, struct cursor *cursor)
{
    for (uint64_t count = number(cursor); count > 0 && !cursor->short_read; count--) {
        struct cursor text = *cursor;
        struct str *added = vec_push(&c->strings);
        if (added == NULL) {
            return false;
        }
        uint8_t kind = cursor_u8(&text);
        uint64_t len = kind >= TEXT_CONSTANT ? number(&text) : 0;
        skip_text(cursor);
        /* names of types are ASCII, of which each form has a byte for each */
        bool is_plain = kind > TEXT_CONSTANT && len == (uint64_t)(cursor->ptr - text.ptr);
        *added = is_plain ? (struct str){(const char *)text.ptr, (size_t)len} : STR("");
    }
    return !cursor->short_read;
}

static uint8_t form_of(struct str name)
{
    static const struct {
        struct str name;
        enum jfr_form form;
    } forms[] = {
        {STR("int"), JFR_INTEGER},   {STR("long"), JFR_INTEGER},  {STR("short"), JFR_INTEGER},
        {STR("char"), JFR_INTEGER},  {STR("byte"), JFR_BYTE},     {STR("boolean"), JFR_BYTE},
        {STR("float"), JFR_FLOAT},   {STR("double"), JFR_DOUBLE}, {STR("java.lang.String"), JFR_STRING},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (str_eq(name, forms[i].name)) {
            return (uint8_t)forms[i].form;
        }
    }
    return JFR_STRUCT;
}

struct element {
    struct str kind, name, id, class;
    bool is_constant, is_array;
};

static void read_attribute(const struct jfr_chunk *c, struct cursor *cursor, struct element *e)
{
    struct str key = string_at(c, number(cursor)), value = string_at(c, number(cursor));
    if (str_eq(key, STR("name"))) {
        e->name = value;
    } else if (str_eq(key, STR("id"))) {
        e->id = value;
    } else if (str_eq(key, STR("class"))) {
        e->class = value;
    } else if (str_eq(key, STR("constantPool"))) {
        e->is_constant = str_eq(value, STR("true"));
    } else if (str_eq(key, STR("dimension"))) {
        e->is_array = !str_eq(value, STR("0"));
    }
}

static bool add_class(struct jfr_chunk *c, const struct element *e)
{
    uint64_t id;
    struct jfr_class *class = c->classes.len < JFR_CLASSES_MAX && str_u64(e->id, &id) ? vec_push(&c->classes) : NULL;
    if (class == NULL) {
        return false;
    }
    class->name = e->name;
    class->id = id;
    class->field = (uint32_t)c->fields.len;
    class->form = form_of(e->name);
    return map_put(&c->class_of, id, c->classes.len - 1);
}

/* Of the class that was begun last. */
static bool add_field(struct jfr_chunk *c, const struct element *e)
{
    uint64_t class;
    struct jfr_class *of = c->classes.len > 0 ? &c->classes.at[c->classes.len - 1] : NULL;
    struct jfr_field *f =
        of != NULL && c->fields.len < JFR_FIELDS_MAX && str_u64(e->class, &class) ? vec_push(&c->fields) : NULL;
    if (f == NULL) {
        return false;
    }
    *f = (struct jfr_field){e->name, class, NONE, e->is_constant, e->is_array};
    of->field_count++;
    return true;
}

static bool read_element(struct jfr_chunk *c, struct cursor *cursor, unsigned depth)
{
    struct element e = {.kind = string_at(c, number(cursor))};
    for (uint64_t count = number(cursor); count > 0 && !cursor->short_read; count--) {
        read_attribute(c, cursor, &e);
    }
    bool good = !cursor->short_read && depth < TREE_DEPTH_MAX;
    if (good && str_eq(e.kind, STR("class"))) {
        good = add_class(c, &e);
    } else if (good && str_eq(e.kind, STR("field"))) {
        good = add_field(c, &e);
    }
    for (uint64_t count = number(cursor); good && count > 0; count--) {
        good = read_element(c, cursor, depth + 1);
    }
    return good && !cursor->short_read;
}

static bool read_metadata(struct jfr_chunk *c, uint64_t at)
{
    struct cursor cursor = cursor_at(c, at < c->bytes.len ? (size_t)at : c->bytes.len);
    (void)number(&cursor); /* size */
    if (number(&cursor) != EVENT_METADATA) {
        return false;
    }
    for (int i = 0; i < 3; i++) { /* start, duration, which */
        (void)number(&cursor);
    }
    if (!read_strings(c, &cursor) || !read_element(c, &cursor, 0)) {
        return false;
    }
    vec_each(&c->fields, f)
    {
        const struct map_slot *slot = map_find(&c->class_of, f->class_id);
        f->class = slot != NULL ? (uint32_t)slot->value : NONE;
    }
    return true;
}

struct jfr_class *jfr_class_named(struct jfr_chunk *c, const char *name)
{
    vec_each(&c->classes, class)
    {
        if (str_eq(class->name, str_of(name))) {
            return class;
        }
    }
    return NULL;
}

/* ---- Events and checkpoints ---- */

static bool read_pool(struct jfr_chunk *c, struct cursor *cursor)
{
    const struct map_slot *slot = map_find(&c->class_of, number(cursor));
    uint64_t count = number(cursor);
    if (slot == NULL) {
        return false;
    }
    struct jfr_class *class = &c->classes.at[slot->value];
    for (; count > 0 && !cursor->short_read; count--) {
        uint64_t key = number(cursor);
        if (!map_put(&class->constants, key, place_of(c, cursor))) {
            return false;
        }
        skip_value(c, class, cursor, 0);
    }
    return !cursor->short_read;
}

static bool read_checkpoint(struct jfr_chunk *c, size_t at)
{
    struct cursor cursor = cursor_at(c, at);
    for (int i = 0; i < 3; i++) { /* start, duration, where the one before is */
        (void)number(&cursor);
    }
    cursor_skip(&cursor, 1);
    bool good = true;
    for (uint64_t count = number(&cursor); good && count > 0; count--) {
        good = read_pool(c, &cursor);
    }
    return good && !cursor.short_read;
}

/* The next event's extent, type and fields. */
static bool next(const struct jfr_chunk *c, size_t *at, uint64_t *type, size_t *fields)
{
    size_t from = *at == 0 ? HEADER_BYTES : *at;
    struct cursor cursor = cursor_at(c, from);
    uint64_t size = number(&cursor);
    *type = number(&cursor);
    *fields = place_of(c, &cursor);
    if (cursor.short_read || size > c->bytes.len - from || *fields - from > size) {
        return false;
    }
    *at = from + (size_t)size;
    return true;
}

bool jfr_next(struct jfr_chunk *c, size_t *at, const struct jfr_class **class, size_t *fields)
{
    uint64_t type;
    while (next(c, at, &type, fields)) {
        const struct map_slot *slot = type > EVENT_CHECKPOINT ? map_find(&c->class_of, type) : NULL;
        if (slot != NULL) {
            *class = &c->classes.at[slot->value];
            return true;
        }
    }
    return false;
}

static bool read_constants(struct jfr_chunk *c, struct err *err)
{
    uint64_t type;
    size_t at = 0, fields;
    while (next(c, &at, &type, &fields)) {
        const struct map_slot *slot = type > EVENT_CHECKPOINT ? map_find(&c->class_of, type) : NULL;
        if (type == EVENT_CHECKPOINT && !read_checkpoint(c, fields)) {
            return malformed(err, "its constants cannot be read");
        }
        if (slot != NULL) {
            c->classes.at[slot->value].events++;
        }
    }
    return at == c->bytes.len || (at == 0 && c->bytes.len == HEADER_BYTES) || malformed(err, "an event is cut off");
}

bool jfr_chunk_read(struct jfr_chunk *c, struct str bytes, struct err *err)
{
    size_t size = jfr_chunk_size(bytes);
    const unsigned char *head = (const unsigned char *)bytes.ptr;
    *c = (struct jfr_chunk){.bytes = {bytes.ptr, size}, .steps = (uint64_t)size * STEPS_PER_BYTE};
    if (size == 0) {
        return malformed(err, "a chunk is cut off");
    }
    if (head[4] != 0 || head[5] != 2) { /* of JDK 8 before its update 262 */
        return err_set(err, ERR_UNSUPPORTED, 0, "a flight recording of version %u.%u: those of 2 are read",
                       (unsigned)head[4] << 8 | head[5], (unsigned)head[6] << 8 | head[7]);
    }
    if ((head[FLAGS_AT + 3] & COMPRESSED) == 0) {
        return err_set(err, ERR_UNSUPPORTED, 0, "a flight recording whose numbers are not compressed");
    }
    c->start_ns = be64(head + START_AT);
    c->duration_ns = be64(head + DURATION_AT);
    c->start_ticks = be64(head + TICKS_AT);
    c->ticks_per_s = be64(head + RATE_AT);
    if (c->ticks_per_s == 0 || !read_metadata(c, be64(head + METADATA_AT))) {
        return malformed(err, "its types cannot be read");
    }
    return read_constants(c, err);
}

void jfr_chunk_release(struct jfr_chunk *c)
{
    vec_each(&c->classes, class)
    {
        map_release(&class->constants);
    }
    vec_release(&c->strings);
    vec_release(&c->classes);
    vec_release(&c->fields);
    map_release(&c->class_of);
}

uint64_t jfr_span_ns(const struct jfr_chunk *c, uint64_t ticks)
{
    return (uint64_t)((unsigned __int128)ticks * NS_PER_S / c->ticks_per_s);
}

uint64_t jfr_time_ns(const struct jfr_chunk *c, uint64_t ticks)
{
    return c->start_ns + jfr_span_ns(c, ticks - c->start_ticks);
}

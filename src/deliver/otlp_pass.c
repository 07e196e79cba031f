#include "deliver/otlp_pass.h"

enum { AGGREGATION_FIELD = 3, AGGREGATION_DELTA = 1 };

static const struct otlp_rule resource_profiles[] = {
    {.number = 1, .inner = OTLP_RESOURCE}, {.number = 2, .inner = OTLP_SCOPE_PROFILES}, {0},
};
static const struct otlp_rule resource[] = {{0}};
static const struct otlp_rule scope_profiles[] = {{.number = 2, .inner = OTLP_PROFILE}, {0}};
static const struct otlp_rule profile[] = {
    {.number = 1, .inner = OTLP_VALUE_TYPE},
    {.number = 2, .inner = OTLP_SAMPLE},
    {.number = 5, .inner = OTLP_VALUE_TYPE},
    {.number = 7, .in_1_8 = 8},   /* profile_id */
    {.number = 8, .in_1_8 = 9},   /* dropped_attributes_count */
    {.number = 9, .in_1_8 = 10},  /* original_payload_format */
    {.number = 10, .in_1_8 = 11}, /* original_payload */
    {.number = 11, .in_1_8 = 12, .table = OTLP_ATTRIBUTES},
    {0},
};
static const struct otlp_rule sample[] = {
    {.number = 1, .table = OTLP_STACKS},
    {.number = 2, .in_1_9 = 3, .in_1_8 = 3, .table = OTLP_ATTRIBUTES},
    {.number = 3, .in_1_9 = 4, .in_1_8 = 4, .table = OTLP_LINKS},
    {.number = 4, .in_1_9 = 2, .in_1_8 = 2}, /* values */
    {0},
};
static const struct otlp_rule value_type[] = {
    {.number = 1, .table = OTLP_STRINGS}, {.number = 2, .table = OTLP_STRINGS}, {0},
};
static const struct otlp_rule mapping[] = {
    {.number = 4, .table = OTLP_STRINGS}, {.number = 5, .table = OTLP_ATTRIBUTES}, {0},
};
static const struct otlp_rule location[] = {
    {.number = 1, .table = OTLP_MAPPINGS},
    {.number = 3, .inner = OTLP_LINE},
    {.number = 4, .table = OTLP_ATTRIBUTES},
    {0},
};
static const struct otlp_rule line[] = {{.number = 1, .table = OTLP_FUNCTIONS}, {0}};
static const struct otlp_rule function[] = {
    {.number = 1, .table = OTLP_STRINGS},
    {.number = 2, .table = OTLP_STRINGS},
    {.number = 3, .table = OTLP_STRINGS},
    {0},
};
static const struct otlp_rule attribute[] = {
    {.number = 1, .table = OTLP_STRINGS}, {.number = 3, .table = OTLP_STRINGS}, {0},
};
static const struct otlp_rule stack[] = {{.number = 1, .table = OTLP_LOCATIONS}, {0}};

static const struct otlp_rule *const shapes[OTLP_SHAPES] = {
    [OTLP_RESOURCE_PROFILES] = resource_profiles,
    [OTLP_RESOURCE] = resource,
    [OTLP_SCOPE_PROFILES] = scope_profiles,
    [OTLP_PROFILE] = profile,
    [OTLP_SAMPLE] = sample,
    [OTLP_VALUE_TYPE] = value_type,
    [OTLP_MAPPING] = mapping,
    [OTLP_LOCATION] = location,
    [OTLP_LINE] = line,
    [OTLP_FUNCTION] = function,
    [OTLP_ATTRIBUTE] = attribute,
    [OTLP_STACK] = stack,
};

const struct otlp_rule *otlp_rule_of(enum otlp_shape shape, unsigned number)
{
    for (const struct otlp_rule *rule = shapes[shape]; rule != NULL && rule->number != 0; rule++) {
        if (rule->number == number) {
            return rule;
        }
    }
    return NULL;
}

enum otlp_shape otlp_row_shape(enum otlp_table_number table)
{
    static const enum otlp_shape rows[OTLP_TABLES] = {
        [OTLP_MAPPINGS] = OTLP_MAPPING,     [OTLP_LOCATIONS] = OTLP_LOCATION,
        [OTLP_FUNCTIONS] = OTLP_FUNCTION,   [OTLP_LINKS] = OTLP_NO_SHAPE,
        [OTLP_STRINGS] = OTLP_NO_SHAPE,     [OTLP_ATTRIBUTES] = OTLP_ATTRIBUTE,
        [OTLP_STACKS] = OTLP_STACK,
    };
    return rows[table];
}

void otlp_pass_init(struct otlp_pass *pass)
{
    *pass = (struct otlp_pass){.minor = 10};
    for (unsigned i = 0; i < OTLP_SHAPES; i++) {
        buf_init(&pass->part[i], OTLP_PASS_MAX_BYTES);
    }
    buf_init(&pass->numbers, OTLP_PASS_MAX_BYTES);
}

void otlp_pass_release(struct otlp_pass *pass)
{
    for (unsigned i = 0; i < OTLP_SHAPES; i++) {
        buf_release(&pass->part[i]);
    }
    buf_release(&pass->numbers);
}

/* ---- fields ---- */

static unsigned number_in(const struct otlp_pass *pass, const struct otlp_rule *rule)
{
    unsigned older = pass->minor == 8 ? rule->in_1_8 : pass->minor == 9 ? rule->in_1_9 : 0;
    return older != 0 ? older : rule->number;
}

static void put_plain(const struct protobuf_field *f, unsigned number, struct buf *out)
{
    protobuf_varint(out, (uint64_t)number << 3 | f->wire);
    switch (f->wire) {
    case PROTOBUF_VARINT:
        protobuf_varint(out, f->value);
        break;
    case PROTOBUF_FIXED64:
    case PROTOBUF_FIXED32:
        for (unsigned i = 0; i < (f->wire == PROTOBUF_FIXED64 ? 8u : 4u); i++) {
            buf_byte(out, (char)(f->value >> 8 * i));
        }
        break;
    case PROTOBUF_BYTES:
        protobuf_varint(out, f->bytes.len);
        buf_str(out, f->bytes);
        break;
    }
}

static uint64_t new_place(struct otlp_pass *pass, unsigned table, uint64_t place)
{
    if (pass->place[table] == NULL) {
        return place;
    }
    if (place >= pass->rows[table]) {
        pass->damaged = true;
        return 0;
    }
    return pass->place[table][place];
}

static void put_places(struct otlp_pass *pass, const struct otlp_rule *rule,
                       const struct protobuf_field *f, struct buf *out)
{
    unsigned number = number_in(pass, rule);
    uint64_t place;
    buf_clear(&pass->numbers);
    for (size_t at = 0; protobuf_packed_next(f, &at, &place, &pass->damaged);) {
        protobuf_varint(&pass->numbers, new_place(pass, rule->table, place));
    }
    if (f->wire == PROTOBUF_BYTES) {
        protobuf_message(out, number, &pass->numbers);
    } else {
        protobuf_varint(out, (uint64_t)number << 3 | PROTOBUF_VARINT);
        buf_str(out, buf_slice(&pass->numbers));
    }
}

static void put_inner(struct otlp_pass *pass, const struct otlp_rule *rule,
                      const struct protobuf_field *f, struct buf *out)
{
    struct buf *part = &pass->part[rule->inner];
    if (f->wire != PROTOBUF_BYTES) {
        pass->damaged = true;
        return;
    }
    buf_clear(part);
    otlp_pass_put(pass, (enum otlp_shape)rule->inner, f->bytes, part);
    protobuf_message(out, number_in(pass, rule), part);
}

static void put_field(struct otlp_pass *pass, enum otlp_shape shape, const struct protobuf_field *f,
                      struct buf *out)
{
    const struct otlp_rule *rule = otlp_rule_of(shape, f->number);
    if (rule == NULL) {
        put_plain(f, f->number, out);
    } else if (rule->inner == OTLP_SAMPLE && pass->keep != NULL && !pass->keep[pass->sample++]) {
        return;
    } else if (rule->inner != OTLP_NO_SHAPE) {
        put_inner(pass, rule, f, out);
    } else if (rule->table != OTLP_NO_TABLE && pass->place[rule->table] != NULL) {
        put_places(pass, rule, f, out);
    } else {
        put_plain(f, number_in(pass, rule), out);
    }
}

/* ---- what is added ---- */

/* A process in a container is in that one alone: a fact about another one is not added. */
static bool is_same_fact(struct str one, struct str other)
{
    struct str container = STR("container.");
    return str_eq(one, other) || (str_starts(one, container) && str_starts(other, container));
}

static bool has_key(struct str resource_message, struct str key)
{
    struct cursor c = cursor_of(resource_message.ptr, resource_message.len);
    struct protobuf_field f, inner;
    while (protobuf_next(&c, &f)) {
        struct cursor pair = cursor_of(f.bytes.ptr, f.bytes.len);
        while (f.number == OTLP_RESOURCE_ATTRIBUTE && protobuf_next(&pair, &inner)) {
            if (inner.number == OTLP_KEY && is_same_fact(inner.bytes, key)) {
                return true;
            }
        }
    }
    return false;
}

static void put_attributes(struct otlp_pass *pass, struct str message, struct buf *out)
{
    for (size_t i = 0; i < pass->attribute_count; i++) {
        if (!has_key(message, pass->attributes[i].key)) {
            buf_str(out, pass->attributes[i].field);
        }
    }
}

static void put_dropped(struct otlp_pass *pass, struct buf *out)
{
    struct buf *part = &pass->part[OTLP_SAMPLE];
    uint64_t dropped = pass->dropped[pass->profile++];
    if (dropped == 0) {
        return;
    }
    buf_clear(part);
    protobuf_u64(part, OTLP_SAMPLE_STACK, pass->dropped_stack);
    buf_clear(&pass->numbers);
    protobuf_varint(&pass->numbers, dropped);
    protobuf_message(part, OTLP_SAMPLE_VALUES, &pass->numbers);
    protobuf_message(out, OTLP_PROFILE_SAMPLE, part);
}

void otlp_pass_put(struct otlp_pass *pass, enum otlp_shape shape, struct str message,
                   struct buf *out)
{
    struct cursor c = cursor_of(message.ptr, message.len);
    struct protobuf_field f;
    if (shape == OTLP_NO_SHAPE) {
        buf_str(out, message);
        return;
    }
    while (!pass->damaged && protobuf_next(&c, &f)) {
        put_field(pass, shape, &f, out);
    }
    pass->damaged |= c.short_read;
    if (shape == OTLP_RESOURCE) {
        put_attributes(pass, message, out);
    } else if (shape == OTLP_VALUE_TYPE && pass->minor == 8) {
        protobuf_u64(out, AGGREGATION_FIELD, AGGREGATION_DELTA);
    } else if (shape == OTLP_PROFILE && pass->keep != NULL && !pass->damaged) {
        put_dropped(pass, out);
    }
}

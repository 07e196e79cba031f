#include "encode/pprof_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/time.h"
#include "encode/collapsed.h"
#include "encode/gzip.h"
#include "encode/intake.h"
#include "encode/pprof.h"
#include "encode/protobuf.h"
#include "profile/merge.h"

struct value_type {
    uint64_t name, unit; /* string indices */
};

struct mapping_row {
    struct str file;
    uint64_t start, file_offset;
    uint32_t module; /* id in the profile; 0 when it stands for a kind, or is nothing */
    uint8_t kind;    /* of frames in it, FRAME_NATIVE when the mapping does not say */
};

struct function_row {
    struct str name, system_name, file;
};

/* A location's frames are rows [first, first + count) of `frames`, root side first. */
struct location_row {
    uint32_t first, count;
};

struct reader {
    struct intake in;
    struct str file;
    struct err *err;
    VEC(struct str) strings;
    VEC(struct value_type) types;
    VEC(struct mapping_row) mappings;
    VEC(struct function_row) functions;
    VEC(struct location_row) locations;
    VEC(uint32_t) frames;
    struct map mapping_ids, function_ids, location_ids; /* id to row */
    struct value_type period_type;
    uint64_t time_ns, duration_ns, period;
    VEC(uint64_t) comments;
    size_t time_value, count_value; /* places in a sample's values; SIZE_MAX none */
    uint64_t scale_ns;              /* one unit of the chosen value */
    VEC(uint64_t) numbers;          /* of one sample: its locations or values */
    VEC(uint32_t) stack;
    uint64_t steps; /* frames of all stacks */
};

static bool malformed(struct reader *r, const char *what)
{
    return err_set(r->err, ERR_MALFORMED, 0, "not a valid pprof file: %s", what);
}

static bool full(struct reader *r, const char *what)
{
    return err_set(r->err, ERR_LIMIT, 0, "too many %s: at most %d are read", what,
                   PPROF_READ_MAX_ROWS);
}

static bool no_memory(struct reader *r)
{
    return err_set(r->err, ERR_MEMORY, 0, "no memory for a pprof file of %zu bytes", r->file.len);
}

static bool text_at(struct reader *r, uint64_t index, struct str *out)
{
    if (index >= r->strings.len) {
        return malformed(r, "a reference to a string that does not exist");
    }
    *out = r->strings.at[index];
    return true;
}

static struct cursor cursor_of_bytes(const struct protobuf_field *field)
{
    return cursor_of(field->bytes.ptr, field->bytes.len);
}

/* The numbers of a message by field, 0 where a field is absent; of a repeated field the last. */
enum { FIELDS_MAX = 8 };

static bool numbers_of(struct reader *r, struct cursor message, uint64_t value[static FIELDS_MAX],
                       const char *what)
{
    struct protobuf_field f;
    memset(value, 0, FIELDS_MAX * sizeof *value);
    while (protobuf_next(&message, &f)) {
        if (f.number < FIELDS_MAX) {
            value[f.number] = f.value;
        }
    }
    return !message.short_read || malformed(r, what);
}

/* One row of a table under its id. */
static bool add_id(struct reader *r, struct map *ids, uint64_t id, size_t row)
{
    if (id == 0 || map_find(ids, id) != NULL) {
        return malformed(r, id == 0 ? "a record has the id 0" : "two records have the same id");
    }
    return map_add(ids, id, row) || no_memory(r);
}

/* --- first pass: everything the others refer to --- */

static bool read_type(struct reader *r, struct cursor message, struct value_type *type)
{
    uint64_t value[FIELDS_MAX];
    if (!numbers_of(r, message, value, "a sample type is cut off")) {
        return false;
    }
    *type = (struct value_type){value[PPROF_TYPE_NAME], value[PPROF_TYPE_UNIT]};
    return true;
}

static bool add_string(struct reader *r, struct str text)
{
    if (r->strings.len == 0 && text.len > 0) {
        return malformed(r, "its string table does not begin with the empty string");
    }
    if (r->strings.len >= PPROF_READ_MAX_ROWS) {
        return full(r, "strings");
    }
    struct str *string = vec_push(&r->strings);
    if (string == NULL) {
        return no_memory(r);
    }
    *string = text;
    return true;
}

static bool add_type(struct reader *r, const struct protobuf_field *f)
{
    enum { TYPES_MAX = 256 };
    struct value_type *type = r->types.len < TYPES_MAX ? vec_push(&r->types) : NULL;
    return type == NULL ? full(r, "sample types") : read_type(r, cursor_of_bytes(f), type);
}

static bool add_comments(struct reader *r, const struct protobuf_field *f)
{
    enum { COMMENTS_MAX = 256 };
    uint64_t number;
    size_t at = 0;
    bool damaged = false;
    while (protobuf_packed_next(f, &at, &number, &damaged)) {
        uint64_t *comment = r->comments.len < COMMENTS_MAX ? vec_push(&r->comments) : NULL;
        if (comment != NULL) {
            *comment = number;
        }
    }
    return !damaged || malformed(r, "its comments are cut off");
}

static bool first_field(struct reader *r, const struct protobuf_field *f)
{
    switch (f->number) {
    case PPROF_STRING:
        return add_string(r, f->bytes);
    case PPROF_SAMPLE_TYPE:
        return add_type(r, f);
    case PPROF_PERIOD_TYPE:
        return read_type(r, cursor_of_bytes(f), &r->period_type);
    case PPROF_COMMENT:
        return add_comments(r, f);
    case PPROF_TIME:
        if (f->value != 0 && r->time_ns != 0) {
            return malformed(r, "it holds two profiles, one behind the other");
        }
        r->time_ns = f->value;
        return true;
    case PPROF_DURATION:
        r->duration_ns = f->value;
        return true;
    case PPROF_PERIOD:
        r->period = f->value;
        return true;
    default:
        return true;
    }
}

/* --- second pass: mappings and functions --- */

static struct str base_name(struct str path)
{
    size_t slash = str_find_last(path, '/');
    return slash == path.len ? path : str_sub(path, slash + 1, path.len);
}

static enum frame_kind kind_of_mapping(struct str file)
{
    for (unsigned k = FRAME_KERNEL; k < FRAME_KIND_COUNT; k++) {
        if (str_eq(file, str_of(pprof_kind_mapping((enum frame_kind)k)))) {
            return (enum frame_kind)k;
        }
    }
    bool is_kernel = str_starts(file, STR("[kernel")) || str_starts(file, STR("[guest.kernel")) ||
                     str_ends(file, STR(".ko")) || str_starts(base_name(file), STR("vmlinux"));
    return is_kernel ? FRAME_KERNEL : FRAME_NATIVE;
}

static bool stands_for_kind(const struct mapping_row *row)
{
    return row->kind != FRAME_NATIVE && row->kind != FRAME_KERNEL;
}

/* Makes the module a mapping is. ELF addresses are not in the file: the offset in the file stands
 * for them, which is the same for how most programs are linked. */
static void add_module(struct reader *r, struct mapping_row *row, uint64_t limit,
                       struct str build_id)
{
    bool fits = true;
    bool is_kernel = str_eq(row->file, STR(PPROF_KERNEL_MAPPING));
    struct module module = {.start = row->start,
                            .limit = limit,
                            .file_offset = row->file_offset,
                            .bias = is_kernel ? 0 : row->start - row->file_offset};
    module.path = intake_text(&r->in, is_kernel ? STR("[kernel]") : row->file, &fits);
    module.build_id = intake_text(&r->in, build_id, &fits);
    if (fits && module.path != 0 && !stands_for_kind(row)) {
        row->module = profile_module(r->in.profile, &module);
    }
}

static bool add_mapping(struct reader *r, struct cursor message)
{
    uint64_t value[FIELDS_MAX];
    struct mapping_row row = {0};
    struct str build_id;
    if (!numbers_of(r, message, value, "a mapping is cut off") ||
        !text_at(r, value[PPROF_MAPPING_FILE], &row.file) ||
        !text_at(r, value[PPROF_MAPPING_BUILD_ID], &build_id) ||
        !add_id(r, &r->mapping_ids, value[PPROF_MAPPING_ID], r->mappings.len)) {
        return false;
    }
    if (r->mappings.len >= PPROF_READ_MAX_ROWS) {
        return full(r, "mappings");
    }
    row.start = value[PPROF_MAPPING_START];
    row.file_offset = value[PPROF_MAPPING_OFFSET];
    row.kind = (uint8_t)kind_of_mapping(row.file);
    add_module(r, &row, value[PPROF_MAPPING_LIMIT], build_id);
    struct mapping_row *added = vec_push(&r->mappings);
    if (added == NULL) {
        return no_memory(r);
    }
    *added = row;
    return true;
}

static bool add_function(struct reader *r, struct cursor message)
{
    uint64_t value[FIELDS_MAX];
    struct function_row row;
    if (!numbers_of(r, message, value, "a function is cut off") ||
        !text_at(r, value[PPROF_FUNCTION_NAME], &row.name) ||
        !text_at(r, value[PPROF_FUNCTION_SYSTEM_NAME], &row.system_name) ||
        !text_at(r, value[PPROF_FUNCTION_FILE], &row.file) ||
        !add_id(r, &r->function_ids, value[PPROF_FUNCTION_ID], r->functions.len)) {
        return false;
    }
    if (r->functions.len >= PPROF_READ_MAX_ROWS) {
        return full(r, "functions");
    }
    struct function_row *added = vec_push(&r->functions);
    if (added == NULL) {
        return no_memory(r);
    }
    *added = row;
    return true;
}

static bool second_field(struct reader *r, const struct protobuf_field *f)
{
    switch (f->number) {
    case PPROF_MAPPING:
        return add_mapping(r, cursor_of_bytes(f));
    case PPROF_FUNCTION:
        return add_function(r, cursor_of_bytes(f));
    default:
        return true;
    }
}

/* --- third pass: locations --- */

struct location {
    uint64_t id, address;
    const struct mapping_row *mapping; /* null: none */
};

static enum frame_kind kind_of_file(struct str file)
{
    static const struct {
        struct str ending;
        enum frame_kind kind;
    } endings[] = {
        {STR(".py"), FRAME_PYTHON}, {STR(".go"), FRAME_GO},    {STR(".java"), FRAME_JVM},
        {STR(".kt"), FRAME_JVM},    {STR(".scala"), FRAME_JVM}, {STR(".rb"), FRAME_RUBY},
        {STR(".php"), FRAME_PHP},   {STR(".pl"), FRAME_PERL},  {STR(".pm"), FRAME_PERL},
        {STR(".js"), FRAME_JS},     {STR(".mjs"), FRAME_JS},   {STR(".ts"), FRAME_JS},
    };
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (str_ends(file, endings[i].ending)) {
            return endings[i].kind;
        }
    }
    return FRAME_NATIVE;
}

static enum frame_kind kind_of(const struct location *l, const struct function_row *function)
{
    if (l->mapping != NULL && l->mapping->kind != FRAME_NATIVE) {
        return (enum frame_kind)l->mapping->kind;
    }
    if (function == NULL) {
        return FRAME_NATIVE;
    }
    enum frame_kind kind = l->mapping == NULL ? intake_plain_kind(function->name) : FRAME_NATIVE;
    return kind != FRAME_NATIVE ? kind : kind_of_file(function->file);
}

/* "[file+0xoffset]", as code without a symbol is called everywhere. */
static struct str name_of_address(const struct location *l, char *out, size_t size)
{
    struct str file = l->mapping != NULL ? base_name(l->mapping->file) : STR("");
    uint64_t offset = l->mapping != NULL ? l->address - l->mapping->start + l->mapping->file_offset
                                         : l->address;
    file = str_sub(file, 0, 200);
    int len = file.len == 0 ? snprintf(out, size, "0x%" PRIx64, offset)
                            : snprintf(out, size, "[%.*s+0x%" PRIx64 "]", (int)file.len, file.ptr,
                                       offset);
    return (struct str){out, (size_t)len};
}

struct line {
    const struct function_row *function; /* null: unknown */
    uint64_t number;
};

/* The frame of one line, inlined into `caller`. The location's address belongs to the innermost. */
static uint32_t frame_of(struct reader *r, const struct location *l, const struct line *line,
                         bool has_address, uint32_t caller)
{
    char unnamed[256];
    bool fits = true;
    const struct function_row *function = line->function;
    struct frame f = {.kind = (uint8_t)kind_of(l, function), .caller = caller};
    struct str name = function != NULL ? function->name : STR("");
    if (name.len == 0 && function != NULL) {
        name = function->system_name;
    }
    if (name.len == 0) {
        name = name_of_address(l, unnamed, sizeof unnamed);
    }
    f.name = intake_text(&r->in, name, &fits);
    if (function != NULL) {
        f.system_name = str_eq(function->system_name, name)
                            ? 0
                            : intake_text(&r->in, function->system_name, &fits);
        f.file = intake_text(&r->in, function->file, &fits);
        f.line = line->number <= UINT32_MAX ? (uint32_t)line->number : 0;
    }
    f.module = l->mapping != NULL ? l->mapping->module : 0;
    if (has_address) {
        f.address = l->address - r->in.profile->modules.at[f.module].bias;
    }
    return fits ? profile_named_frame(r->in.profile, &f) : 0;
}

static bool push_frame(struct reader *r, struct location_row *row, uint32_t frame)
{
    if (r->frames.len >= PPROF_READ_MAX_ROWS) {
        return full(r, "lines");
    }
    uint32_t *added = vec_push(&r->frames);
    if (added == NULL) {
        return no_memory(r);
    }
    *added = frame;
    row->count++;
    return true;
}

static bool read_line(struct reader *r, struct cursor message, struct line *line)
{
    uint64_t value[FIELDS_MAX];
    if (!numbers_of(r, message, value, "a line is cut off")) {
        return false;
    }
    const struct map_slot *slot = map_find(&r->function_ids, value[PPROF_LINE_FUNCTION]);
    if (slot == NULL) {
        return malformed(r, "a line of a function that does not exist");
    }
    *line = (struct line){&r->functions.at[slot->value], value[PPROF_LINE_NUMBER]};
    return true;
}

static bool read_location(struct reader *r, struct cursor message, struct location *l)
{
    uint64_t value[FIELDS_MAX];
    if (!numbers_of(r, message, value, "a location is cut off")) {
        return false;
    }
    const struct map_slot *slot = map_find(&r->mapping_ids, value[PPROF_LOCATION_MAPPING]);
    l->id = value[PPROF_LOCATION_ID];
    l->address = value[PPROF_LOCATION_ADDRESS];
    l->mapping = slot != NULL ? &r->mappings.at[slot->value] : NULL;
    return true;
}

static void turn_round(uint32_t *at, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        uint32_t other = at[i];
        at[i] = at[count - 1 - i];
        at[count - 1 - i] = other;
    }
}

/* The frame of lines that are inlined into one another, innermost first; 0 when it does not fit. */
static uint32_t inlined_frame(struct reader *r, const struct location *l, const struct line *lines,
                              size_t count)
{
    uint32_t caller = 0;
    for (size_t i = count; i-- > 1;) {
        caller = frame_of(r, l, &lines[i], false, caller);
        if (caller == 0) {
            return 0;
        }
    }
    return frame_of(r, l, &lines[0], true, caller);
}

/* Lines beyond PROFILE_INLINES_MAX, which no compiler makes, become frames of their own. */
static bool read_lines(struct reader *r, struct cursor message, const struct location *l,
                       struct location_row *row)
{
    struct protobuf_field f;
    struct line lines[PROFILE_INLINES_MAX] = {{NULL, 0}}, beyond;
    size_t count = 0;
    if (!push_frame(r, row, 0)) {
        return false;
    }
    while (protobuf_next(&message, &f)) {
        bool fits = count < PROFILE_INLINES_MAX;
        if (f.number != PPROF_LOCATION_LINE) {
            continue;
        }
        if (!read_line(r, cursor_of_bytes(&f), fits ? &lines[count++] : &beyond) ||
            (!fits && !push_frame(r, row, frame_of(r, l, &beyond, false, 0)))) {
            return false;
        }
    }
    r->frames.at[row->first] = inlined_frame(r, l, lines, count > 0 ? count : 1);
    turn_round(&r->frames.at[row->first], row->count);
    return true;
}

static bool add_location(struct reader *r, struct cursor message)
{
    struct location l;
    struct location_row row = {.first = (uint32_t)r->frames.len};
    if (!read_location(r, message, &l) || !read_lines(r, message, &l, &row)) {
        return false;
    }
    if (!add_id(r, &r->location_ids, l.id, r->locations.len)) {
        return false;
    }
    struct location_row *added = vec_push(&r->locations);
    if (added == NULL) {
        return no_memory(r);
    }
    *added = row;
    return true;
}

static bool third_field(struct reader *r, const struct protobuf_field *f)
{
    return f->number != PPROF_LOCATION || add_location(r, cursor_of_bytes(f));
}

/* --- which value is CPU time --- */

static uint64_t time_unit_ns(struct str unit)
{
    static const struct {
        struct str name;
        uint64_t ns;
    } units[] = {
        {STR("nanoseconds"), 1},           {STR("ns"), 1},
        {STR("microseconds"), NS_PER_US},  {STR("us"), NS_PER_US},
        {STR("milliseconds"), NS_PER_MS},  {STR("ms"), NS_PER_MS},
        {STR("seconds"), NS_PER_S},        {STR("s"), NS_PER_S},
    };
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (str_eq(unit, units[i].name)) {
            return units[i].ns;
        }
    }
    return 0;
}

static bool unsuitable(struct reader *r)
{
    struct buf held;
    buf_init(&held, 200);
    vec_each(&r->types, type)
    {
        struct str name = r->strings.at[type->name], unit = r->strings.at[type->unit];
        buf_printf(&held, "%s%.*s/%.*s", held.len > 0 ? ", " : "", (int)str_sub(name, 0, 40).len,
                   name.len > 0 ? name.ptr : "", (int)str_sub(unit, 0, 40).len,
                   unit.len > 0 ? unit.ptr : "");
    }
    held.failed = false; /* a cut list is good enough for a sentence */
    err_set(r->err, ERR_UNSUPPORTED, 0, "this pprof file holds no CPU time: its values are %s",
            held.len > 0 ? buf_cstr(&held) : "not named");
    buf_release(&held);
    return false;
}

/* The period in nanoseconds; 0 when the file has none; false when it is no time. */
static bool period_in_ns(struct reader *r, uint64_t *out)
{
    struct str unit;
    if (!text_at(r, r->period_type.unit, &unit)) {
        return false;
    }
    uint64_t one = time_unit_ns(unit);
    *out = r->period <= INT64_MAX / (one + (one == 0)) ? r->period * one : 0;
    return unit.len == 0 || one != 0 || r->period == 0;
}

static bool choose_count(struct reader *r)
{
    uint64_t period;
    if (r->count_value == SIZE_MAX || !period_in_ns(r, &period)) {
        return unsuitable(r);
    }
    r->time_value = r->count_value;
    r->scale_ns = period != 0 ? period : collapsed_period(r->in.profile);
    return true;
}

static bool choose_value(struct reader *r)
{
    r->time_value = r->count_value = SIZE_MAX;
    for (size_t i = r->types.len; i-- > 0;) {
        struct str name, unit;
        if (!text_at(r, r->types.at[i].name, &name) || !text_at(r, r->types.at[i].unit, &unit)) {
            return false;
        }
        bool is_chosen = r->time_value != SIZE_MAX &&
                         str_eq(r->strings.at[r->types.at[r->time_value].name], STR("cpu"));
        if (time_unit_ns(unit) != 0 && (str_eq(name, STR("cpu")) || !is_chosen)) {
            r->time_value = i;
            r->scale_ns = time_unit_ns(unit);
        }
        if (str_eq(unit, STR("count"))) {
            r->count_value = i;
        }
    }
    return r->time_value != SIZE_MAX || choose_count(r);
}

/* --- fourth pass: samples --- */

static bool push_numbers(struct reader *r, const struct protobuf_field *f)
{
    size_t at = 0;
    uint64_t number;
    bool damaged = false;
    while (protobuf_packed_next(f, &at, &number, &damaged)) {
        uint64_t *added = vec_push(&r->numbers);
        if (added == NULL) {
            return no_memory(r);
        }
        *added = number;
    }
    return !damaged || malformed(r, "a sample is cut off");
}

/* All numbers of one repeated field of a sample, into r->numbers. */
static bool collect(struct reader *r, struct cursor sample, unsigned field)
{
    struct protobuf_field f;
    vec_clear(&r->numbers);
    while (protobuf_next(&sample, &f)) {
        if (f.number == field && !push_numbers(r, &f)) {
            return false;
        }
    }
    return !sample.short_read || malformed(r, "a sample is cut off");
}

/* Locations come leaf first, a stack is root first. */
static bool read_stack(struct reader *r, struct cursor sample)
{
    if (!collect(r, sample, PPROF_SAMPLE_LOCATION)) {
        return false;
    }
    vec_clear(&r->stack);
    for (size_t i = r->numbers.len; i-- > 0;) {
        const struct map_slot *slot = map_find(&r->location_ids, r->numbers.at[i]);
        if (slot == NULL) {
            return malformed(r, "a sample at a location that does not exist");
        }
        const struct location_row *row = &r->locations.at[slot->value];
        for (uint32_t k = 0; k < row->count; k++) {
            if (++r->steps > PPROF_READ_MAX_STEPS) {
                return err_set(r->err, ERR_LIMIT, 0, "too many frames: at most %d are read",
                               PPROF_READ_MAX_STEPS);
            }
            uint32_t *frame = vec_push(&r->stack);
            if (frame == NULL) {
                return no_memory(r);
            }
            *frame = r->frames.at[row->first + k];
        }
    }
    return true;
}

struct label {
    struct str key, text;
    uint64_t number;
};

static bool read_label(struct reader *r, struct cursor message, struct label *label)
{
    uint64_t value[FIELDS_MAX];
    if (!numbers_of(r, message, value, "a label is cut off")) {
        return false;
    }
    label->number = value[PPROF_LABEL_NUMBER];
    return text_at(r, value[PPROF_LABEL_KEY], &label->key) &&
           text_at(r, value[PPROF_LABEL_TEXT], &label->text);
}

static uint32_t id_number(const struct label *label)
{
    uint64_t number = label->number;
    if (label->text.len > 0 && !str_u64(label->text, &number)) {
        number = 0;
    }
    return number <= UINT32_MAX ? (uint32_t)number : 0;
}

enum label_meaning { LABEL_PID, LABEL_TID, LABEL_THREAD, LABEL_COMM, LABEL_CONTAINER, LABEL_APPID,
                     LABEL_OTHER };

static enum label_meaning meaning_of(struct str key)
{
    static const struct {
        struct str key;
        enum label_meaning meaning;
    } keys[] = {
        {STR("process_id"), LABEL_PID},       {STR("pid"), LABEL_PID},
        {STR("thread id"), LABEL_TID},        {STR("thread_id"), LABEL_TID},
        {STR("tid"), LABEL_TID},              {STR("thread name"), LABEL_THREAD},
        {STR("thread_name"), LABEL_THREAD},   {STR("thread"), LABEL_THREAD},
        {STR("comm"), LABEL_COMM},            {STR("process_name"), LABEL_COMM},
        {STR("container"), LABEL_CONTAINER},  {STR("container_id"), LABEL_CONTAINER},
        {STR("appid"), LABEL_APPID},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (str_eq(key, keys[i].key)) {
            return keys[i].meaning;
        }
    }
    return LABEL_OTHER;
}

static void take_label(struct intake_origin *o, const struct label *label)
{
    switch (meaning_of(label->key)) {
    case LABEL_PID:
        o->pid = id_number(label);
        break;
    case LABEL_TID:
        o->tid = id_number(label);
        break;
    case LABEL_THREAD:
        o->thread_name = label->text;
        break;
    case LABEL_COMM:
        o->comm = label->text;
        break;
    case LABEL_CONTAINER:
        o->container = label->text;
        break;
    case LABEL_APPID:
        o->appid = label->text;
        break;
    case LABEL_OTHER:
        break;
    }
}

static bool read_origin(struct reader *r, struct cursor sample, struct intake_origin *o)
{
    struct protobuf_field f;
    *o = (struct intake_origin){0};
    while (protobuf_next(&sample, &f)) {
        struct label label;
        if (f.number == PPROF_SAMPLE_LABEL) {
            if (!read_label(r, cursor_of_bytes(&f), &label)) {
                return false;
            }
            take_label(o, &label);
        }
    }
    if (o->comm.len == 0 && o->thread_name.len == 0) {
        o->comm = r->mappings.len > 0 ? base_name(r->mappings.at[0].file) : STR("");
    }
    if (o->comm.len == 0 && o->thread_name.len == 0) {
        o->comm = STR("all");
    }
    return true;
}

static bool read_weight(struct reader *r, struct cursor sample, uint64_t *cpu_ns, uint64_t *count)
{
    if (!collect(r, sample, PPROF_SAMPLE_VALUE)) {
        return false;
    }
    if (r->numbers.len != r->types.len) {
        return malformed(r, "a sample has not as many values as there are sample types");
    }
    for (size_t i = 0; i < r->numbers.len; i++) {
        if (r->numbers.at[i] > INT64_MAX) {
            return err_set(r->err, ERR_UNSUPPORTED, 0,
                           "this pprof file holds negative values, as a difference of two profiles "
                           "does");
        }
    }
    if (__builtin_mul_overflow(r->numbers.at[r->time_value], r->scale_ns, cpu_ns)) {
        *cpu_ns = UINT64_MAX; /* beyond the total's limit: intake_add refuses it */
    }
    *count = r->count_value != SIZE_MAX ? r->numbers.at[r->count_value] : 1;
    return true;
}

static bool add_sample(struct reader *r, struct cursor sample)
{
    uint64_t cpu_ns = 0, count = 0;
    struct intake_origin origin;
    if (r->types.len == 0) {
        return malformed(r, "it has samples but no sample types");
    }
    if (!read_weight(r, sample, &cpu_ns, &count) || !read_origin(r, sample, &origin) ||
        !read_stack(r, sample)) {
        return false;
    }
    if (r->stack.len == 0) {
        uint32_t *frame = vec_push(&r->stack);
        if (frame == NULL) {
            return no_memory(r);
        }
        *frame = intake_frame(&r->in, STR("[unknown]"), FRAME_NATIVE);
    }
    if (cpu_ns == 0 && count == 0) {
        return true;
    }
    return intake_add(&r->in, intake_thread(&r->in, &origin), r->stack.at, r->stack.len, cpu_ns,
                      count, r->err);
}

static bool fourth_field(struct reader *r, const struct protobuf_field *f)
{
    return f->number != PPROF_SAMPLE || add_sample(r, cursor_of_bytes(f));
}

/* --- the whole --- */

static bool each_field(struct reader *r,
                       bool (*take)(struct reader *, const struct protobuf_field *))
{
    struct cursor message = cursor_of(r->file.ptr, r->file.len);
    struct protobuf_field f;
    while (protobuf_next(&message, &f)) {
        bool is_record = f.number <= PPROF_STRING || f.number == PPROF_PERIOD_TYPE;
        if (is_record && f.wire != PROTOBUF_BYTES) {
            return malformed(r, "a record is a number");
        }
        if (!take(r, &f)) {
            return false;
        }
    }
    return !message.short_read || malformed(r, "it is cut off or no protocol buffer");
}

/* Our own comments tell what pprof has no field for. */
static uint32_t comment_after(struct reader *r, struct str what)
{
    bool fits = true;
    vec_each(&r->comments, index)
    {
        struct str text = *index < r->strings.len ? r->strings.at[*index] : STR("");
        if (str_starts(text, what)) {
            return intake_text(&r->in, str_sub(text, what.len, text.len), &fits);
        }
    }
    return 0;
}

static bool read_meta(struct reader *r)
{
    uint64_t period;
    struct profile_meta meta = {.start_wall_ns = r->time_ns, .end_wall_ns = r->time_ns};
    if (r->duration_ns < INTAKE_TOTAL_MAX_NS && r->time_ns < INTAKE_TOTAL_MAX_NS) {
        meta.end_wall_ns += r->duration_ns;
    }
    if (r->period_type.unit < r->strings.len && period_in_ns(r, &period) && period > 0) {
        meta.period_ns = period;
        meta.frequency_hz = (uint32_t)((NS_PER_S + period / 2) / period);
    }
    meta.service = comment_after(r, STR("service: "));
    meta.host = comment_after(r, STR("host: "));
    meta.mode = comment_after(r, STR("mode: "));
    meta.reason = comment_after(r, STR("reason: "));
    profile_merge_meta(r->in.profile, &meta);
    return true;
}

static bool read_all(struct reader *r)
{
    if (r->file.len == 0) {
        return malformed(r, "it is empty");
    }
    if (!each_field(r, first_field)) {
        return false;
    }
    if (r->strings.len == 0) {
        return malformed(r, "it has no string table");
    }
    return (r->types.len == 0 || choose_value(r)) && each_field(r, second_field) &&
           each_field(r, third_field) && each_field(r, fourth_field) && read_meta(r);
}

static bool read_plain(struct profile *p, struct str file, struct err *err)
{
    struct reader r = {.file = file, .err = err};
    intake_init(&r.in, p);
    bool ok = read_all(&r);
    vec_release(&r.strings);
    vec_release(&r.types);
    vec_release(&r.mappings);
    vec_release(&r.functions);
    vec_release(&r.locations);
    vec_release(&r.frames);
    vec_release(&r.comments);
    vec_release(&r.numbers);
    vec_release(&r.stack);
    map_release(&r.mapping_ids);
    map_release(&r.function_ids);
    map_release(&r.location_ids);
    return ok;
}

bool pprof_read(struct profile *p, struct str file, struct err *err)
{
    if (str_starts(file, STR("\x28\xb5\x2f\xfd"))) {
        return err_set(err, ERR_UNSUPPORTED, 0,
                       "compressed with zstd, which is not supported: unpack it with zstd -d");
    }
    if (!gzip_is(file.ptr, file.len)) {
        return read_plain(p, file, err);
    }
    struct buf plain;
    buf_init(&plain, PPROF_READ_MAX_BYTES);
    bool ok = gzip_inflate(file.ptr, file.len, &plain, err) &&
              read_plain(p, buf_slice(&plain), err);
    buf_release(&plain);
    return ok;
}

/* The tables of a pprof file in three passes: strings, types and numbers; mappings and functions; then
 * locations, which refer to both. Ids become rows, rows become modules and frames of the profile, and
 * what refers to nothing is malformed. */
#include "encode/pprof_table.h"

#include <inttypes.h>
#include <stdio.h>

#include "profile/merge.h"

bool pprof_malformed(struct pprof_reader *r, const char *what)
{
    return err_set(r->err, ERR_MALFORMED, 0, "not a valid pprof file: %s", what);
}

static bool too_many(struct pprof_reader *r, const char *what)
{
    return err_set(r->err, ERR_LIMIT, 0, "too many %s: at most %d are read", what,
                   PPROF_READ_MAX_ROWS);
}

bool pprof_no_memory(struct pprof_reader *r)
{
    return err_set(r->err, ERR_MEMORY, 0, "no memory for a pprof file of %zu bytes", r->file.len);
}

bool pprof_text_at(struct pprof_reader *r, uint64_t index, struct str *out)
{
    if (index >= r->strings.len) {
        return pprof_malformed(r, "a reference to a string that does not exist");
    }
    *out = r->strings.at[index];
    return true;
}

struct cursor pprof_message(const struct protobuf_field *field)
{
    return cursor_of(field->bytes.ptr, field->bytes.len);
}

bool pprof_numbers_of(struct pprof_reader *r, struct cursor message,
                      uint64_t value[static PPROF_FIELDS_MAX], const char *what)
{
    struct protobuf_field f;
    memset(value, 0, PPROF_FIELDS_MAX * sizeof *value);
    while (protobuf_next(&message, &f)) {
        if (f.number < PPROF_FIELDS_MAX) {
            value[f.number] = f.value;
        }
    }
    return !message.short_read || pprof_malformed(r, what);
}

/* One row of a table under its id. */
static bool add_id(struct pprof_reader *r, struct map *ids, uint64_t id, size_t row)
{
    if (id == 0 || map_find(ids, id) != NULL) {
        return pprof_malformed(r, id == 0 ? "a record has the id 0"
                                          : "two records have the same id");
    }
    return map_add(ids, id, row) || pprof_no_memory(r);
}

/* --- first pass: everything the others refer to --- */

static bool read_type(struct pprof_reader *r, struct cursor message, struct pprof_value_type *type)
{
    uint64_t value[PPROF_FIELDS_MAX];
    if (!pprof_numbers_of(r, message, value, "a sample type is cut off")) {
        return false;
    }
    *type = (struct pprof_value_type){value[PPROF_TYPE_NAME], value[PPROF_TYPE_UNIT]};
    return true;
}

static bool add_string(struct pprof_reader *r, struct str text)
{
    if (r->strings.len == 0 && text.len > 0) {
        return pprof_malformed(r, "its string table does not begin with the empty string");
    }
    if (r->strings.len >= PPROF_READ_MAX_ROWS) {
        return too_many(r, "strings");
    }
    struct str *string = vec_push(&r->strings);
    if (string == NULL) {
        return pprof_no_memory(r);
    }
    *string = text;
    return true;
}

static bool add_type(struct pprof_reader *r, const struct protobuf_field *f)
{
    enum { TYPES_MAX = 256 };
    struct pprof_value_type *type = r->types.len < TYPES_MAX ? vec_push(&r->types) : NULL;
    return type == NULL ? too_many(r, "sample types") : read_type(r, pprof_message(f), type);
}

static bool add_comments(struct pprof_reader *r, const struct protobuf_field *f)
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
    return !damaged || pprof_malformed(r, "its comments are cut off");
}

bool pprof_first_pass(struct pprof_reader *r, const struct protobuf_field *f)
{
    switch (f->number) {
    case PPROF_STRING:
        return add_string(r, f->bytes);
    case PPROF_SAMPLE_TYPE:
        return add_type(r, f);
    case PPROF_PERIOD_TYPE:
        return read_type(r, pprof_message(f), &r->period_type);
    case PPROF_COMMENT:
        return add_comments(r, f);
    case PPROF_TIME:
        if (f->value != 0 && r->when.time_ns != 0) {
            return pprof_malformed(r, "it holds two profiles, one behind the other");
        }
        r->when.time_ns = f->value;
        return true;
    case PPROF_DURATION:
        r->when.duration_ns = f->value;
        return true;
    case PPROF_PERIOD:
        r->period = f->value;
        return true;
    default:
        return true;
    }
}

/* --- second pass: mappings and functions --- */

static enum frame_kind kind_of_mapping(struct str file)
{
    for (unsigned k = FRAME_KERNEL; k < FRAME_KIND_COUNT; k++) {
        if (str_eq(file, str_of(languages[k].mapping))) {
            return (enum frame_kind)k;
        }
    }
    bool is_kernel = str_starts(file, STR("[kernel")) || str_starts(file, STR("[guest.kernel")) ||
                     str_ends(file, STR(".ko")) || str_starts(str_base_name(file), STR("vmlinux"));
    return is_kernel ? FRAME_KERNEL : FRAME_NATIVE;
}

static bool stands_for_kind(const struct pprof_mapping_row *row)
{
    return row->kind != FRAME_NATIVE && row->kind != FRAME_KERNEL;
}

/* Makes the module a mapping is. ELF addresses are not in the file: the offset in the file stands
 * for them, which is the same for how most programs are linked. */
static void add_module(struct pprof_reader *r, struct pprof_mapping_row *row, uint64_t limit,
                       struct str build_id)
{
    bool fits = true;
    bool is_kernel = str_eq(row->file, STR(PPROF_KERNEL_MAPPING));
    struct module module = {.start = row->start,
                            .limit = limit,
                            .file_offset = row->file_offset,
                            .bias = is_kernel ? 0 : row->start - row->file_offset};
    module.path = importer_text(&r->in, is_kernel ? STR("[kernel]") : row->file, &fits);
    module.build_id = importer_text(&r->in, build_id, &fits);
    if (fits && module.path != 0 && !stands_for_kind(row)) {
        row->module = profile_module(r->in.profile, &module);
    }
}

static bool add_mapping(struct pprof_reader *r, struct cursor message)
{
    uint64_t value[PPROF_FIELDS_MAX];
    struct pprof_mapping_row row = {0};
    struct str build_id;
    if (!pprof_numbers_of(r, message, value, "a mapping is cut off") ||
        !pprof_text_at(r, value[PPROF_MAPPING_FILE], &row.file) ||
        !pprof_text_at(r, value[PPROF_MAPPING_BUILD_ID], &build_id) ||
        !add_id(r, &r->mapping_ids, value[PPROF_MAPPING_ID], r->mappings.len)) {
        return false;
    }
    if (r->mappings.len >= PPROF_READ_MAX_ROWS) {
        return too_many(r, "mappings");
    }
    row.start = value[PPROF_MAPPING_START];
    row.file_offset = value[PPROF_MAPPING_OFFSET];
    row.kind = (uint8_t)kind_of_mapping(row.file);
    add_module(r, &row, value[PPROF_MAPPING_LIMIT], build_id);
    struct pprof_mapping_row *added = vec_push(&r->mappings);
    if (added == NULL) {
        return pprof_no_memory(r);
    }
    *added = row;
    return true;
}

static bool add_function(struct pprof_reader *r, struct cursor message)
{
    uint64_t value[PPROF_FIELDS_MAX];
    struct pprof_function_row row;
    if (!pprof_numbers_of(r, message, value, "a function is cut off") ||
        !pprof_text_at(r, value[PPROF_FUNCTION_NAME], &row.name) ||
        !pprof_text_at(r, value[PPROF_FUNCTION_SYSTEM_NAME], &row.system_name) ||
        !pprof_text_at(r, value[PPROF_FUNCTION_FILE], &row.file) ||
        !add_id(r, &r->function_ids, value[PPROF_FUNCTION_ID], r->functions.len)) {
        return false;
    }
    if (r->functions.len >= PPROF_READ_MAX_ROWS) {
        return too_many(r, "functions");
    }
    row.first_line = value[PPROF_FUNCTION_START_LINE];
    struct pprof_function_row *added = vec_push(&r->functions);
    if (added == NULL) {
        return pprof_no_memory(r);
    }
    *added = row;
    return true;
}

bool pprof_second_pass(struct pprof_reader *r, const struct protobuf_field *f)
{
    switch (f->number) {
    case PPROF_MAPPING:
        return add_mapping(r, pprof_message(f));
    case PPROF_FUNCTION:
        return add_function(r, pprof_message(f));
    default:
        return true;
    }
}

/* --- third pass: locations --- */

struct location {
    uint64_t id, address;
    const struct pprof_mapping_row *mapping; /* null: none */
};

static enum frame_kind kind_of(const struct location *l, const struct pprof_function_row *function)
{
    if (l->mapping != NULL && l->mapping->kind != FRAME_NATIVE) {
        return (enum frame_kind)l->mapping->kind;
    }
    if (function == NULL) {
        return FRAME_NATIVE;
    }
    enum frame_kind kind = l->mapping == NULL ? importer_plain_kind(function->name) : FRAME_NATIVE;
    return kind != FRAME_NATIVE ? kind : language_by_ending(function->file);
}

/* "[file+0xoffset]": nobody tells where its function begins. */
static struct str name_of_address(const struct location *l, char *out, size_t size)
{
    struct str file = l->mapping != NULL ? str_base_name(l->mapping->file) : STR("");
    uint64_t offset = l->mapping != NULL ? l->address - l->mapping->start + l->mapping->file_offset
                                         : l->address;
    file = str_sub(file, 0, 200);
    int len = file.len == 0 ? snprintf(out, size, "0x%" PRIx64, offset)
                            : snprintf(out, size, "[%.*s+0x%" PRIx64 "]", (int)file.len, file.ptr,
                                       offset);
    return (struct str){out, (size_t)len};
}

struct line {
    const struct pprof_function_row *function; /* null: unknown */
    uint64_t number;
};

/* An interpreter's function, which its file and first line tell from others of its name. */
static bool is_runtime_function(const struct frame *f, const struct pprof_function_row *function)
{
    return languages[f->kind].form == NAME_WITH_FILE && function->name.len > 0 &&
           function->file.len > 0 && function->first_line > 0 &&
           function->first_line <= UINT32_MAX;
}

/* "func (file:first line)", as it was before it was written. */
static uint32_t name_with_file(struct pprof_reader *r, const struct pprof_function_row *function,
                               bool *fits)
{
    struct buf text;
    buf_init(&text, 64 * 1024);
    buf_str(&text, function->name);
    buf_text(&text, " (");
    buf_str(&text, function->file);
    buf_printf(&text, ":%" PRIu64 ")", function->first_line);
    uint32_t name = importer_text(&r->in, buf_slice(&text), fits);
    buf_release(&text);
    return name;
}

/* The frame of one line, inlined into `caller`. The location's address belongs to the innermost. */
static uint32_t frame_of(struct pprof_reader *r, const struct location *l, const struct line *line,
                         bool has_address, uint32_t caller)
{
    char unnamed[256];
    bool fits = true;
    const struct pprof_function_row *function = line->function;
    struct frame f = {.kind = (uint8_t)kind_of(l, function), .caller = caller};
    struct str name = function != NULL ? function->name : STR("");
    if (name.len == 0 && function != NULL) {
        name = function->system_name;
    }
    if (name.len == 0) {
        name = name_of_address(l, unnamed, sizeof unnamed);
    }
    bool told_apart = function != NULL && is_runtime_function(&f, function);
    f.name = told_apart ? name_with_file(r, function, &fits) : importer_text(&r->in, name, &fits);
    if (function != NULL) {
        struct str system_name = told_apart ? function->name : function->system_name;
        f.system_name = !told_apart && str_eq(system_name, name)
                            ? 0
                            : importer_text(&r->in, system_name, &fits);
        f.first_line = told_apart ? (uint32_t)function->first_line : 0;
        f.file = importer_text(&r->in, function->file, &fits);
        f.line = line->number <= UINT32_MAX ? (uint32_t)line->number : 0;
    }
    f.module = l->mapping != NULL ? l->mapping->module : 0;
    if (has_address) {
        f.address = l->address - r->in.profile->modules.at[f.module].bias;
    }
    return fits ? profile_named_frame(r->in.profile, &f) : 0;
}

static bool push_frame(struct pprof_reader *r, struct pprof_location_row *row, uint32_t frame)
{
    if (r->frames.len >= PPROF_READ_MAX_ROWS) {
        return too_many(r, "lines");
    }
    uint32_t *added = vec_push(&r->frames);
    if (added == NULL) {
        return pprof_no_memory(r);
    }
    *added = frame;
    row->count++;
    return true;
}

static bool read_line(struct pprof_reader *r, struct cursor message, struct line *line)
{
    uint64_t value[PPROF_FIELDS_MAX];
    if (!pprof_numbers_of(r, message, value, "a line is cut off")) {
        return false;
    }
    const struct map_slot *slot = map_find(&r->function_ids, value[PPROF_LINE_FUNCTION]);
    if (slot == NULL) {
        return pprof_malformed(r, "a line of a function that does not exist");
    }
    *line = (struct line){&r->functions.at[slot->value], value[PPROF_LINE_NUMBER]};
    return true;
}

static bool read_location(struct pprof_reader *r, struct cursor message, struct location *l)
{
    uint64_t value[PPROF_FIELDS_MAX];
    if (!pprof_numbers_of(r, message, value, "a location is cut off")) {
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
static uint32_t inlined_frame(struct pprof_reader *r, const struct location *l,
                              const struct line *lines, size_t count)
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
static bool read_lines(struct pprof_reader *r, struct cursor message, const struct location *l,
                       struct pprof_location_row *row)
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
        if (!read_line(r, pprof_message(&f), fits ? &lines[count++] : &beyond) ||
            (!fits && !push_frame(r, row, frame_of(r, l, &beyond, false, 0)))) {
            return false;
        }
    }
    r->frames.at[row->first] = inlined_frame(r, l, lines, count > 0 ? count : 1);
    turn_round(&r->frames.at[row->first], row->count);
    return true;
}

static bool add_location(struct pprof_reader *r, struct cursor message)
{
    struct location l;
    struct pprof_location_row row = {.first = (uint32_t)r->frames.len};
    if (!read_location(r, message, &l) || !read_lines(r, message, &l, &row)) {
        return false;
    }
    if (!add_id(r, &r->location_ids, l.id, r->locations.len)) {
        return false;
    }
    struct pprof_location_row *added = vec_push(&r->locations);
    if (added == NULL) {
        return pprof_no_memory(r);
    }
    *added = row;
    return true;
}

bool pprof_third_pass(struct pprof_reader *r, const struct protobuf_field *f)
{
    return f->number != PPROF_LOCATION || add_location(r, pprof_message(f));
}

/* --- the end --- */

void pprof_release(struct pprof_reader *r)
{
    vec_release(&r->strings);
    vec_release(&r->types);
    vec_release(&r->mappings);
    vec_release(&r->functions);
    vec_release(&r->locations);
    vec_release(&r->frames);
    vec_release(&r->comments);
    vec_release(&r->numbers);
    vec_release(&r->others);
    vec_release(&r->values);
    vec_release(&r->stack);
    buf_release(&r->own_labels);
    map_release(&r->mapping_ids);
    map_release(&r->function_ids);
    map_release(&r->location_ids);
}

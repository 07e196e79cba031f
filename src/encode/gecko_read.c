/* Tables of the Firefox Profiler's forms, column by column: a column is a cursor over the text, which steps through an
 * array or, where a table is rows with a schema, through the rows. Strings stay where they are in the file until a
 * frame is named by one. Frames become frames of the profile, then stacks nodes, each from the one it stands on, which
 * has to come before it; then samples are added. */
#include "encode/gecko_read.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/time.h"
#include "encode/importer.h"
#include "profile/merge.h"

enum { TEXT_MAX = 64 * 1024, COLUMNS_MAX = 64, KINDS_MAX = 256 };
#define NONE UINT32_MAX

struct strings {
    VEC(struct str) list; /* values of JSON */
};

struct function {
    struct str name, file; /* file: null, not known */
    uint32_t resource;
    bool is_js;
};

struct stack {
    uint32_t node; /* 0: it does not fit */
    uint32_t depth;
};

struct reader {
    struct importer in;
    struct err *err;
    struct str wanted;
    struct strings strings, files, resources;
    VEC(struct function) functions;
    VEC(uint32_t) frames; /* ids of the profile */
    VEC(struct stack) stacks;
    uint8_t kinds[KINDS_MAX]; /* by category; FRAME_KIND_COUNT: not one of ours */
    uint64_t interval_ns, shift_ns;
    double cpu_unit_ns; /* of threadCPUDelta; 0: it is not in time */
    bool is_timed, is_other;
    unsigned threads;
    struct buf text, more; /* decoded */
};

/* --- columns --- */

struct column {
    struct str rest;
    uint64_t at;
    bool in_rows, is_there;
};

/* These members of an object, in one pass over it: an array in it may be most of the file. */
static void members_of(struct str object, const char *const *names, struct str *values, size_t count)
{
    struct str key, value, rest = str_starts(object, STR("{")) ? object : (struct str){NULL, 0};
    memset(values, 0, count * sizeof *values);
    while (json_next(&rest, &key, &value)) {
        for (size_t i = 0; i < count; i++) {
            if (values[i].len == 0 && str_eq(str_sub(key, 1, key.len - 2), str_of(names[i]))) {
                values[i] = value;
            }
        }
    }
}

enum { TABLE_COLUMNS_MAX = 6 };

static void columns_of(struct str table, const char *const *names, struct column *columns, size_t count)
{
    const char *all[TABLE_COLUMNS_MAX + 2] = {"schema", "data"};
    struct str values[TABLE_COLUMNS_MAX + 2];
    memcpy(all + 2, names, count * sizeof *names);
    members_of(table, all, values, count + 2);
    for (size_t i = 0; i < count; i++) {
        struct column *c = &columns[i];
        *c = (struct column){.in_rows = values[0].len > 0};
        if (!c->in_rows) {
            c->rest = values[i + 2];
        } else if (json_u64_of(json_member(values[0], names[i]), &c->at) && c->at < COLUMNS_MAX) {
            c->rest = values[1];
        }
        c->is_there = str_starts(c->rest, STR("["));
    }
}

/* False: there is no further row. A row that ends before the column has no value. */
static bool next_value(struct column *c, struct str *value)
{
    *value = (struct str){NULL, 0};
    if (!c->is_there || !json_next(&c->rest, NULL, value)) {
        return false;
    }
    if (c->in_rows) {
        struct str row = *value;
        bool ok = true;
        for (uint64_t i = 0; ok && i <= c->at; i++) {
            ok = json_next(&row, NULL, value);
        }
        if (!ok) {
            *value = (struct str){NULL, 0};
        }
    }
    return true;
}

/* NONE: null, or no such number. */
static uint32_t next_place(struct column *c)
{
    struct str value;
    uint64_t number;
    return next_value(c, &value) && json_u64_of(value, &number) && number < NONE ? (uint32_t)number : NONE;
}

static double number_of(struct str value)
{
    char text[48];
    size_t len = value.len < sizeof text - 1 ? value.len : sizeof text - 1;
    memcpy(text, len > 0 ? value.ptr : "", len);
    text[len] = '\0';
    return len > 0 && text[0] != '"' ? strtod(text, NULL) : 0;
}

static uint64_t scaled(double value, double by)
{
    double all = value * by + 0.5;
    return !(all >= 1) ? 0 : all < 9e18 ? (uint64_t)all : UINT64_MAX;
}

static uint64_t ns_of_ms(struct str value)
{
    return scaled(number_of(value), NS_PER_MS);
}

static bool damaged(struct reader *r, const char *table)
{
    return err_set(r->err, ERR_MALFORMED, 0, "no valid Firefox profile: its %s contradicts itself", table);
}

/* Is there room for one more row? */
static bool has_room(struct reader *r, size_t rows)
{
    return rows < GECKO_ROWS_MAX || err_set(r->err, ERR_LIMIT, 0, "a table of more than %d rows", GECKO_ROWS_MAX);
}

static bool no_memory(struct reader *r)
{
    return err_set(r->err, ERR_MEMORY, 0, "no memory for the tables of a Firefox profile");
}

/* --- tables --- */

static struct str at(const struct strings *strings, uint32_t place)
{
    return place < strings->list.len ? strings->list.at[place] : (struct str){NULL, 0};
}

static bool push_string(struct reader *r, struct strings *strings, struct str value)
{
    if (!has_room(r, strings->list.len)) {
        return false;
    }
    struct str *string = vec_push(&strings->list);
    if (string != NULL) {
        *string = value;
    }
    return string != NULL || no_memory(r);
}

static bool read_strings(struct reader *r, struct str list)
{
    struct str value;
    bool ok = true;
    vec_clear(&r->strings.list);
    while (ok && json_next(&list, NULL, &value)) {
        ok = push_string(r, &r->strings, value);
    }
    return ok;
}

/* A column of places of strings. */
static bool read_names(struct reader *r, struct strings *names, struct str table, const char *called)
{
    struct column column;
    struct str value;
    columns_of(table, &called, &column, 1);
    bool ok = true;
    vec_clear(&names->list);
    while (ok && next_value(&column, &value)) {
        uint64_t place;
        bool is_place = json_u64_of(value, &place) && place < NONE;
        ok = push_string(r, names, at(&r->strings, is_place ? (uint32_t)place : NONE));
    }
    return ok;
}

static bool read_functions(struct reader *r, struct str table)
{
    static const char *const called[] = {"name", "fileName", "source", "resource", "isJS"};
    struct column c[5], *names = &c[0], *files = &c[1], *sources = &c[2], *resources = &c[3], *is_js = &c[4];
    columns_of(table, called, c, 5);
    struct str value;
    uint64_t name;
    vec_clear(&r->functions);
    while (next_value(names, &value)) {
        struct function *f = has_room(r, r->functions.len) ? vec_push(&r->functions) : NULL;
        if (f == NULL) {
            return r->functions.len < GECKO_ROWS_MAX && no_memory(r);
        }
        f->name = at(&r->strings, json_u64_of(value, &name) && name < NONE ? (uint32_t)name : NONE);
        f->file = sources->is_there ? at(&r->files, next_place(sources)) : at(&r->strings, next_place(files));
        f->resource = next_place(resources);
        f->is_js = next_value(is_js, &value) && json_bool_of(value, &f->is_js) && f->is_js;
    }
    return true;
}

static struct str decoded(struct str value, struct buf *into)
{
    buf_clear(into);
    return json_text_of(value, into) && !into->failed ? buf_slice(into) : STR("");
}

static enum frame_kind kind_of(const struct reader *r, uint32_t category, bool is_js, struct str file)
{
    if (category < KINDS_MAX && r->kinds[category] < FRAME_KIND_COUNT) {
        return r->kinds[category];
    }
    return is_js ? FRAME_JS : language_by_ending(file);
}

/* "name (in library)"; code without a symbol is its place. */
static uint32_t name_frame(struct reader *r, struct function *f, uint32_t line, uint32_t category)
{
    char place[256 + 32];
    struct str file = decoded(f->file, &r->more);
    enum frame_kind kind = kind_of(r, category, f->is_js, file);
    bool fits = true;
    uint32_t of_file = importer_text(&r->in, file, &fits);
    struct str name = decoded(f->name, &r->text), library = decoded(at(&r->resources, f->resource), &r->more);
    for (size_t i = name.len; i-- > 0 && str_ends(name, STR(")"));) {
        if (str_starts(str_sub(name, i, name.len), STR(" (in "))) {
            library = str_sub(name, i + 5, name.len - i - 6);
            name.len = i;
        }
    }
    if (str_starts(name, STR("0x")) && library.len > 0) {
        library = str_sub(str_base_name(library), 0, 255);
        int len = snprintf(place, sizeof place, "[%.*s+%.*s]", (int)library.len, library.ptr,
                           (int)str_sub(name, 0, 20).len, name.ptr);
        name = (struct str){place, (size_t)len};
    }
    return importer_frame_in(&r->in, name.len > 0 ? name : STR("[unknown]"), profile_text(r->in.profile, of_file),
                             line == NONE ? 0 : line, kind);
}

/* Of the form with a schema, whose frames have a place instead of a function, too. */
static bool read_frames(struct reader *r, struct str table)
{
    static const char *const called[] = {"func", "location", "line", "category"};
    struct column c[4], *functions = &c[0], *places = &c[1], *lines = &c[2], *categories = &c[3];
    columns_of(table, called, c, 4);
    bool is_plain = places->is_there;
    struct str value;
    vec_clear(&r->frames);
    while (next_value(is_plain ? places : functions, &value)) {
        uint64_t place;
        struct function plain = {.resource = NONE};
        struct function *f = &plain;
        if (!json_u64_of(value, &place) || place >= (is_plain ? r->strings.list.len : r->functions.len)) {
            return damaged(r, "table of frames");
        }
        if (is_plain) {
            plain.name = at(&r->strings, (uint32_t)place);
        } else {
            f = &r->functions.at[place];
        }
        uint32_t line = next_place(lines), category = next_place(categories);
        uint32_t *frame = has_room(r, r->frames.len) ? vec_push(&r->frames) : NULL;
        if (frame == NULL) {
            return r->frames.len < GECKO_ROWS_MAX && no_memory(r);
        }
        *frame = name_frame(r, f, line, category);
    }
    return true;
}

/* The stack that this one stands on, or NONE; false: it does not come before. */
static bool prefix_of(struct str value, bool is_offset, size_t row, uint32_t *prefix)
{
    uint64_t number;
    *prefix = NONE;
    if (!json_u64_of(value, &number)) {
        return str_eq(value, STR("null")) || value.len == 0;
    }
    if (is_offset && number > 0 && number <= row) {
        *prefix = (uint32_t)(row - number);
    } else if (!is_offset && number < row) {
        *prefix = (uint32_t)number;
    }
    return *prefix != NONE || (is_offset && number == 0);
}

static bool read_stacks(struct reader *r, struct str table)
{
    static const char *const called[] = {"frame", "prefix", "prefixOffset"};
    struct column c[3], *frames = &c[0], *prefixes = &c[1], *offsets = &c[2];
    columns_of(table, called, c, 3);
    struct str value;
    uint64_t frame;
    vec_clear(&r->stacks);
    while (next_value(frames, &value)) {
        struct str on;
        uint32_t prefix;
        (void)next_value(offsets->is_there ? offsets : prefixes, &on);
        if (!json_u64_of(value, &frame) || frame >= r->frames.len ||
            !prefix_of(on, offsets->is_there, r->stacks.len, &prefix)) {
            return damaged(r, "table of stacks");
        }
        struct stack *stack = has_room(r, r->stacks.len) ? vec_push(&r->stacks) : NULL;
        if (stack == NULL) {
            return r->stacks.len < GECKO_ROWS_MAX && no_memory(r);
        }
        const struct stack *below = prefix == NONE ? NULL : &r->stacks.at[prefix];
        stack->depth = below == NULL ? 1 : below->depth + 1;
        if (stack->depth > IMPORTER_DEPTH_MAX) {
            return err_set(r->err, ERR_LIMIT, 0, "a stack of more than %d frames", IMPORTER_DEPTH_MAX);
        }
        if (below == NULL || below->node != 0) {
            stack->node = profile_child(r->in.profile, below == NULL ? 0 : below->node, r->frames.at[frame]);
        }
    }
    return true;
}

enum { STRINGS, OLD_STRINGS, SOURCES, RESOURCES, FUNCTIONS, FRAMES, STACKS, TABLES, TID = TABLES, PID, NAME, PROCESS,
       SAMPLES, MEMBERS };
static const char *const member_names[MEMBERS] = {
    "stringArray", "stringTable", "sources", "resourceTable", "funcTable", "frameTable", "stackTable",
    "tid", "pid", "name", "processName", "samples"};

/* All tables that an object has; what it does not have stays as it was. */
static bool read_tables(struct reader *r, const struct str *m)
{
    struct str strings = m[m[STRINGS].len > 0 ? STRINGS : OLD_STRINGS];
    return (strings.len == 0 || read_strings(r, strings)) &&
           (m[SOURCES].len == 0 || read_names(r, &r->files, m[SOURCES], "filename")) &&
           (m[RESOURCES].len == 0 || read_names(r, &r->resources, m[RESOURCES], "name")) &&
           (m[FUNCTIONS].len == 0 || read_functions(r, m[FUNCTIONS])) &&
           (m[FRAMES].len == 0 || read_frames(r, m[FRAMES])) && (m[STACKS].len == 0 || read_stacks(r, m[STACKS]));
}

/* --- samples --- */

enum { OF_STACK, OF_TIME, OF_DIFFERENCE, OF_WEIGHT, OF_CPU, SAMPLE_COLUMNS };

struct samples {
    struct column columns[SAMPLE_COLUMNS];
    bool in_ms, is_other;
    uint64_t now_ns;
    uint32_t thread;
};

/* What the weights of a thread's samples are; the whole file's are the same. */
static bool read_type(struct reader *r, struct samples *s, struct str table)
{
    static const char *const called[] = {"weightType"};
    struct str type;
    members_of(table, called, &type, 1);
    s->in_ms = str_eq(type, STR("\"tracing-ms\""));
    s->is_other = r->is_other;
    if (str_eq(type, STR("\"bytes\"")) && !r->is_other) {
        s->is_other = true;
        return importer_type(&r->in, r->wanted, STR("bytes"), STR("bytes"), r->err);
    }
    return r->is_other || importer_type(&r->in, r->wanted, STR(""), STR(""), r->err);
}

static bool add_sample(struct reader *r, struct samples *s, struct str stack)
{
    struct str time, weight, cpu;
    uint64_t row, ns, count;
    struct column *c = s->columns;
    bool by_difference = c[OF_DIFFERENCE].is_there;
    bool has_time = next_value(&c[by_difference ? OF_DIFFERENCE : OF_TIME], &time);
    bool has_weight = next_value(&c[OF_WEIGHT], &weight) && !str_eq(weight, STR("null"));
    (void)next_value(&c[OF_CPU], &cpu);
    s->now_ns = (by_difference ? s->now_ns : 0) + ns_of_ms(time);
    if (!json_u64_of(stack, &row)) {
        return true; /* no stack: it did not run */
    }
    if (row >= r->stacks.len) {
        return damaged(r, "table of samples");
    }
    count = has_weight && !s->in_ms ? scaled(number_of(weight), 1) : 1;
    ns = s->in_ms                                   ? ns_of_ms(weight)
         : s->is_other                              ? count
         : c[OF_CPU].is_there && r->cpu_unit_ns > 0  ? scaled(number_of(cpu), r->cpu_unit_ns)
         : count > UINT64_MAX / (r->interval_ns + 1) ? UINT64_MAX
                                                    : count * r->interval_ns;
    if (ns == 0) {
        return true;
    }
    if (s->in_ms && r->interval_ns > 0) {
        count = ns / r->interval_ns + (ns % r->interval_ns >= (r->interval_ns + 1) / 2);
        count += count == 0;
    }
    uint32_t node = r->stacks.at[row].node;
    bool is_account = node != 0 && r->in.profile->frames.at[r->in.profile->nodes.at[node].frame].kind == FRAME_ACCOUNT;
    bool is_timed = r->is_timed && has_time && !is_account;
    return importer_add_at(&r->in, s->thread, node, ns, is_account ? 0 : count,
                           is_timed ? r->shift_ns + s->now_ns : IMPORTER_NO_TIME, r->err);
}

/* "12", "12.3" (the third process of that id) or 12. */
static void read_pid(struct reader *r, struct str value, struct importer_origin *o)
{
    uint64_t pid, which;
    struct str text = value.len > 0 && value.ptr[0] == '"' ? decoded(value, &r->text) : value;
    struct str digits = str_cut(&text, '.');
    o->pid = str_u64(digits, &pid) && pid < NONE ? (uint32_t)pid : 0;
    o->start_ticks = str_u64(text, &which) ? which : 0;
}

static bool read_thread(struct reader *r, struct str thread)
{
    static const char *const called[] = {"stack", "time", "timeDeltas", "weight", "threadCPUDelta"};
    struct importer_origin o = {0};
    struct str m[MEMBERS], stack;
    uint64_t tid;
    struct samples s = {0};
    members_of(thread, member_names, m, MEMBERS);
    columns_of(m[SAMPLES], called, s.columns, SAMPLE_COLUMNS);
    if (r->threads++ >= GECKO_THREADS_MAX) {
        return err_set(r->err, ERR_LIMIT, 0, "more than %d threads", GECKO_THREADS_MAX);
    }
    read_pid(r, m[PID], &o);
    o.tid = json_u64_of(m[TID], &tid) && tid < NONE ? (uint32_t)tid : 0;
    o.thread_name = decoded(m[NAME], &r->text);
    o.comm = decoded(m[PROCESS], &r->more);
    s.thread = importer_thread(&r->in, &o);
    bool ok = read_tables(r, m) && read_type(r, &s, m[SAMPLES]);
    while (ok && next_value(&s.columns[OF_STACK], &stack)) {
        ok = add_sample(r, &s, stack);
    }
    return ok;
}

/* --- the whole --- */

static void read_categories(struct reader *r, struct str list)
{
    struct str category;
    memset(r->kinds, FRAME_KIND_COUNT, sizeof r->kinds);
    for (unsigned i = 0; i < KINDS_MAX && json_next(&list, NULL, &category); i++) {
        struct str name = decoded(json_member(category, "name"), &r->text);
        for (unsigned k = 0; k < FRAME_KIND_COUNT; k++) {
            if (str_eq(name, str_of(languages[k].name))) {
                r->kinds[i] = (uint8_t)k;
            }
        }
        if (str_eq(name, STR("Kernel"))) {
            r->kinds[i] = FRAME_KERNEL;
        }
    }
}

static bool read_meta(struct reader *r, struct str meta, bool is_first)
{
    struct str own = json_member(meta, "pillion"), units = json_member(meta, "sampleUnits");
    struct str unit = json_member(units, "threadCPUDelta");
    struct profile_meta whole = {.start_wall_ns = ns_of_ms(json_member(meta, "startTime"))};
    double end = number_of(json_member(meta, "profilingEndTime"));
    bool fits = true;
    r->interval_ns = ns_of_ms(json_member(meta, "interval"));
    bool is_time = unit.len > 0 && !str_eq(unit, STR("\"variable CPU cycles\""));
    r->cpu_unit_ns = !is_time ? 0 : str_eq(unit, STR("\"ns\"")) ? 1 : NS_PER_US;
    read_categories(r, json_member(meta, "categories"));
    if (!is_first) {
        uint64_t begin_ns = r->in.profile->meta.start_wall_ns;
        r->shift_ns = whole.start_wall_ns > begin_ns && begin_ns != 0 ? whole.start_wall_ns - begin_ns : 0;
        return true;
    }
    r->is_timed = true;
    (void)json_bool_of(json_member(own, "is_timed"), &r->is_timed);
    if (r->is_timed) {
        importer_begin(&r->in, whole.start_wall_ns);
    }
    whole.end_wall_ns = whole.start_wall_ns == 0 ? 0 : whole.start_wall_ns + scaled(end, NS_PER_MS);
    whole.period_ns = r->interval_ns;
    whole.service = importer_text(&r->in, decoded(json_member(meta, "product"), &r->text), &fits);
    profile_merge_meta(r->in.profile, &whole);
    struct str value = decoded(json_member(own, "value"), &r->text);
    r->is_other = value.len > 0;
    return !r->is_other || importer_type(&r->in, r->wanted, value, decoded(json_member(own, "unit"), &r->more), r->err);
}

static bool read_profile(struct reader *r, struct str object, unsigned depth)
{
    static const char *const called[] = {"meta", "threads", "shared", "processes"};
    struct str m[4], shared[MEMBERS], value;
    members_of(object, called, m, 4);
    if (depth == 0 && (m[0].len == 0 || m[1].len == 0)) {
        return err_set(r->err, ERR_UNSUPPORTED, 0, "JSON of another form than the Firefox Profiler's cannot be read");
    }
    members_of(m[2], member_names, shared, MEMBERS);
    bool ok = read_meta(r, m[0], depth == 0) && read_tables(r, shared);
    while (ok && json_next(&m[1], NULL, &value)) {
        ok = read_thread(r, value);
    }
    while (ok && depth < GECKO_NESTED_MAX && json_next(&m[3], NULL, &value)) {
        ok = read_profile(r, value, depth + 1);
    }
    return ok;
}

bool gecko_read(struct profile *p, struct str file, struct str type, struct err *err)
{
    struct reader r = {.err = err, .wanted = type};
    if (!json_valid(file)) {
        return err_set(err, ERR_MALFORMED, 0, "it is not valid JSON");
    }
    importer_init(&r.in, p);
    buf_init(&r.text, TEXT_MAX);
    buf_init(&r.more, TEXT_MAX);
    bool ok = read_profile(&r, file, 0);
    buf_release(&r.text);
    buf_release(&r.more);
    vec_release(&r.strings.list);
    vec_release(&r.files.list);
    vec_release(&r.resources.list);
    vec_release(&r.functions);
    vec_release(&r.frames);
    vec_release(&r.stacks);
    return ok;
}

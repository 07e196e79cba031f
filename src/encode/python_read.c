/* Lines of py-spy and austin: what stands in front of the frames, then a frame per field, then what it counts. Which
 * of both a file is of is known by how its lines begin: austin's by its header or by P and T, py-spy's because the
 * first field is a process, a thread or a frame with its file, which is no name of a process. */
#include "encode/python_read.h"

#include <stdio.h>

#include "base/time.h"
#include "encode/importer.h"
#include "encode/value.h"

#define SPY_PERIOD_NS UINT64_C(10000000)
enum { PROBE_LINES = 64, NAME_MAX_BYTES = 1024 };

struct reader {
    struct importer in;
    struct collapsed_damage *damage;
    struct err *err;
    bool is_austin;
    uint64_t line, unit; /* of what a line counts, in ns or bytes */
    VEC(uint32_t) frames;
};

static bool is_number(struct str text)
{
    uint64_t number;
    return str_u64(text, &number);
}

/* "f (a.py:12)" in parts. */
static bool take_spy_frame(struct str field, struct str *function, struct str *file, uint32_t *line)
{
    uint64_t number;
    size_t open = str_find_last(field, '(');
    if (!str_ends(field, STR(")")) || open == field.len || open < 2 || field.ptr[open - 1] != ' ') {
        return false;
    }
    *function = str_sub(field, 0, open - 1);
    *file = str_sub(field, open + 1, field.len - open - 2);
    size_t colon = str_find_last(*file, ':');
    *line = 0;
    if (str_u64(str_sub(*file, colon + 1, file->len), &number) && number <= UINT32_MAX) {
        *line = (uint32_t)number;
        file->len = colon;
    }
    return true;
}

/* "a.py:f:12" in parts; of ":GC:" the name alone. */
static bool take_austin_frame(struct str field, struct str *function, struct str *file, uint32_t *line)
{
    uint64_t number;
    size_t colon = str_find_last(field, ':');
    struct str before = str_sub(field, 0, colon);
    size_t second = str_find_last(before, ':');
    if (colon == field.len || second == before.len) {
        return false;
    }
    *line = str_u64(str_sub(field, colon + 1, field.len), &number) && number <= UINT32_MAX ? (uint32_t)number : 0;
    *function = str_sub(before, second + 1, before.len);
    *file = str_sub(field, 0, second);
    return true;
}

static bool push_frame(struct reader *r, struct str field)
{
    char text[NAME_MAX_BYTES];
    struct str name = field, file = STR("");
    uint32_t line = 0, *frame = vec_push(&r->frames);
    enum frame_kind kind = FRAME_NATIVE;
    bool is_frame = r->is_austin ? take_austin_frame(field, &name, &file, &line)
                                 : take_spy_frame(field, &name, &file, &line);
    if (is_frame && file.len > 0) {
        kind = r->is_austin || file.ptr[0] == '<' ? FRAME_PYTHON : language_by_ending(file);
    }
    if (kind == FRAME_PYTHON) {
        int len = snprintf(text, sizeof text, "%.*s (%.*s)", (int)str_sub(name, 0, 400).len, name.ptr,
                           (int)str_sub(file, 0, 600).len, file.ptr);
        name = (struct str){text, (size_t)len};
    }
    if (frame != NULL) {
        *frame = importer_frame_in(&r->in, name.len > 0 ? name : STR("[unknown]"), file, line, kind);
    }
    return frame != NULL;
}

/* --- what stands in front --- */

static uint32_t number_in(struct str text)
{
    uint64_t number;
    return str_u64(text, &number) && number <= UINT32_MAX ? (uint32_t)number : 0;
}

/* "process 12:"command"" and "thread (34): name", each where it is. */
static void take_spy_head(struct str *line, struct importer_origin *o)
{
    o->comm = STR("python");
    if (str_starts(*line, STR("process "))) {
        struct str rest = str_sub(*line, 8, line->len);
        o->pid = number_in(str_cut(&rest, ':'));
        rest = str_sub(rest, 1, rest.len); /* the quote; commands may hold semicolons */
        size_t end = 0;
        while (end < rest.len && !str_starts(str_sub(rest, end, 2), STR("\";"))) {
            end++;
        }
        struct str command = str_sub(rest, 0, end);
        o->comm = str_base_name(str_cut(&command, ' '));
        *line = str_sub(rest, end + 2, rest.len);
    }
    if (str_starts(*line, STR("thread ("))) {
        struct str thread = str_sub(str_cut(line, ';'), 8, SIZE_MAX);
        o->tid = number_in(str_cut(&thread, ')'));
        o->thread_name = str_trim(str_sub(thread, 1, thread.len));
    }
}

/* "P12;T0:34;" */
static bool take_austin_head(struct str *line, struct importer_origin *o)
{
    struct str pid = str_cut(line, ';'), tid = str_cut(line, ';');
    if (!str_starts(pid, STR("P")) || !str_starts(tid, STR("T"))) {
        return false;
    }
    size_t colon = str_find_last(tid, ':');
    o->comm = STR("python");
    o->pid = number_in(str_sub(pid, 1, pid.len));
    o->tid = number_in(str_sub(tid, colon < tid.len ? colon + 1 : 1, tid.len));
    return o->pid != 0;
}

/* --- lines --- */

static bool add_line(struct reader *r, struct str line, bool *is_stack)
{
    struct importer_origin o = {0};
    uint64_t count, ns;
    size_t blank = str_find_last(line, ' ');
    struct str metric = str_sub(line, blank + 1, line.len), idle = metric, amount = str_cut(&idle, ',');
    line = str_sub(line, 0, blank);
    bool is_idle = idle.len > 0 && str_eq(str_cut(&idle, ','), STR("1"));
    *is_stack = blank > 0 && str_u64(amount, &count) && (!r->is_austin || take_austin_head(&line, &o));
    if (!*is_stack || count == 0) {
        return true;
    }
    if (!r->is_austin) {
        take_spy_head(&line, &o);
    }
    vec_clear(&r->frames);
    bool ok = true;
    while (ok && line.len > 0) {
        ok = push_frame(r, str_cut(&line, ';'));
    }
    if (!ok || (r->frames.len == 0 && !push_frame(r, STR("[unknown]")))) {
        return err_set(r->err, ERR_MEMORY, 0, "line %llu: no memory for its frames", (unsigned long long)r->line);
    }
    uint32_t thread = importer_thread(&r->in, &o), node = importer_stack(&r->in, r->frames.at, r->frames.len);
    if (__builtin_mul_overflow(count, r->unit, &ns)) {
        ns = UINT64_MAX; /* beyond the total's limit */
    }
    if (is_idle) {
        profile_add_wait(r->in.profile, thread, node, ns < IMPORTER_TOTAL_MAX_NS ? ns : IMPORTER_TOTAL_MAX_NS);
        return true;
    }
    return importer_add(&r->in, thread, node, ns, r->is_austin ? 1 : count, r->err);
}

static bool read_lines(struct reader *r, struct str file)
{
    bool ok = true, is_stack;
    for (r->line = 1; ok && file.len > 0; r->line++) {
        struct str line = str_trim(str_cut(&file, '\n'));
        if (line.len == 0 || line.ptr[0] == '#') {
            continue;
        }
        ok = add_line(r, line, &is_stack);
        if (!is_stack && r->damage->lines++ == 0) {
            r->damage->first_line = r->line;
        }
    }
    return ok;
}

/* --- the whole --- */

/* What the lines count, by the header in front of them. */
static bool read_mode(struct reader *r, struct str file, struct str wanted)
{
    struct str mode = STR("wall");
    for (struct str line = str_cut(&file, '\n'); str_starts(line, STR("#")); line = str_cut(&file, '\n')) {
        mode = str_starts(line, STR("# mode: ")) ? str_trim(str_sub(line, 8, line.len)) : mode;
    }
    bool is_cpu = !r->is_austin || str_eq(mode, STR("cpu")) || str_eq(mode, STR("full"));
    bool is_memory = r->is_austin && str_eq(mode, STR("memory"));
    r->unit = !r->is_austin ? SPY_PERIOD_NS : is_memory ? 1 : NS_PER_US;
    return importer_type(&r->in, wanted, is_cpu ? STR("") : is_memory ? STR("memory") : STR("wall"),
                         is_cpu ? STR("") : is_memory ? STR("bytes") : STR(VALUE_TIME_UNIT), r->err);
}

static bool is_austin(struct str file)
{
    struct importer_origin o = {0};
    struct str line = str_cut(&file, '\n');
    return str_starts(line, STR("# austin:")) || (take_austin_head(&line, &o) && str_find(line, ':') < line.len);
}

static bool is_spy(struct str file)
{
    unsigned seen = 0;
    for (unsigned i = 0; i < PROBE_LINES && file.len > 0; i++) {
        struct str line = str_trim(str_cut(&file, '\n')), function, place;
        size_t blank = str_find_last(line, ' ');
        struct importer_origin o = {0};
        uint32_t number;
        struct str fields = str_sub(line, 0, blank);
        take_spy_head(&fields, &o);
        if (!is_number(str_sub(line, blank + 1, line.len))) {
            continue;
        }
        if (!take_spy_frame(str_cut(&fields, ';'), &function, &place, &number)) {
            return false;
        }
        seen++;
    }
    return seen > 0;
}

bool python_stacks_are(struct str file)
{
    return is_austin(file) || is_spy(file);
}

bool python_stacks_read(struct profile *p, struct str file, struct str type, struct collapsed_damage *damage,
                        struct err *err)
{
    struct reader r = {.damage = damage, .err = err, .is_austin = is_austin(file)};
    importer_init(&r.in, p);
    bool ok = read_mode(&r, file, type) && read_lines(&r, file);
    vec_release(&r.frames);
    if (ok && p->meta.period_ns == 0 && !r.is_austin) {
        p->meta.period_ns = SPY_PERIOD_NS;
    }
    return ok;
}

/* Further sample types of a window as profiles that the flame graph is made of: a view's samples are the window's
 * waits, or what was counted of one event, or that of a file which a runtime made. Nothing is kept of one when the
 * next one is made. */
#include "encode/flame_types.h"

#include <stdio.h>

#include "encode/importer.h"
#include "encode/pprof_read.h"
#include "encode/value.h"

/* In their order; those of events follow, the last first. */
enum { TYPE_CPU, TYPE_OFF_CPU, TYPE_WALL, TYPE_EVENTS };

enum { READ_SHARE = 2 }; /* of a window's bound */

void flame_types_init(struct flame_types *t, struct profile *p)
{
    *t = (struct flame_types){.p = p, .of = p, .type = TYPE_OFF_CPU};
}

static void end_view(struct flame_types *t)
{
    if (t->has_view) {
        t->of->strings = t->view.strings;
        t->of->string_ids = t->view.string_ids;
        t->of->text = t->view.text;
        vec_release(&t->view.samples);
        t->has_view = false;
    }
}

static void end_read(struct flame_types *t)
{
    if (t->has_read) {
        profile_release(&t->read);
        t->has_read = false;
    }
}

void flame_types_release(struct flame_types *t)
{
    end_view(t);
    end_read(t);
}

bool flame_types_any(const struct profile *p)
{
    vec_each(&p->of_runtimes.all, one)
    {
        if (runtime_profile_is_pprof(str_of(one->type))) {
            return true;
        }
    }
    return p->waits.len > 0 || p->occurrences.len > 0;
}

/* ---- one type's samples ---- */

struct filling {
    struct profile *view;
    uint64_t unit, sum;
    bool ok;
};

static void put(struct filling *f, uint32_t thread, uint32_t node, uint64_t amount)
{
    uint64_t weight;
    bool fits = !__builtin_mul_overflow(amount, f->unit, &weight) && weight <= IMPORTER_TOTAL_MAX_NS - f->sum;
    struct sample *added = fits && weight > 0 ? vec_push(&f->view->samples) : NULL;
    if (added != NULL) {
        *added = (struct sample){.thread = thread, .node = node, .cpu_ns = weight, .count = 1};
        f->sum += weight;
    } else {
        f->ok &= fits && weight == 0;
    }
}

/* False: it has no weight, or too much, or there is no memory. */
static bool fill(struct profile *view, const struct profile *of, size_t type, uint32_t event, uint64_t unit)
{
    struct filling f = {view, unit, 0, vec_push(&view->samples) != NULL};
    for (size_t i = 1; (type == TYPE_CPU || type == TYPE_WALL) && i < of->samples.len; i++) {
        put(&f, of->samples.at[i].thread, of->samples.at[i].node, of->samples.at[i].cpu_ns);
    }
    for (size_t i = 0; (type == TYPE_OFF_CPU || type == TYPE_WALL) && i < of->waits.len; i++) {
        put(&f, of->waits.at[i].thread, of->waits.at[i].node, of->waits.at[i].wait_ns);
    }
    for (size_t i = 0; type >= TYPE_EVENTS && i < of->occurrences.len; i++) {
        const struct occurrence *o = &of->occurrences.at[i];
        put(&f, o->thread, o->node, o->event == event ? o->amount : 0);
    }
    return f.ok && f.sum > 0;
}

static void set_label(struct flame_types *t, struct str name)
{
    struct str file = t->of == t->p ? STR("") : str_of(t->p->of_runtimes.all.at[t->file - 1].type);
    bool tells = file.len == 0 || str_eq(file, STR("heap")) || str_eq(file, name);
    snprintf(t->label, sizeof t->label, tells ? "%.*s" : "%.*s (%s)", (int)name.len, name.ptr, file.ptr);
}

static bool begin_view(struct flame_types *t, size_t type)
{
    static const char *const names[TYPE_EVENTS] = {"cpu", "off_cpu", "wall"};
    struct profile *of = t->of, *view = &t->view;
    uint32_t event = type < TYPE_EVENTS ? 0 : (uint32_t)(TYPE_EVENTS + of->event_types.len - 1 - type);
    if (type == TYPE_WALL && of->waits.len == 0) {
        return false; /* it is CPU time */
    }
    *view = *of;
    t->has_view = true;
    memset(&view->samples, 0, sizeof view->samples);
    memset(&view->moments, 0, sizeof view->moments); /* they are of the window's samples */
    view->meta.value = type < TYPE_EVENTS ? profile_cstring(view, names[type]) : of->event_types.at[event].name;
    view->meta.unit = type < TYPE_EVENTS ? profile_cstring(view, VALUE_TIME_UNIT) : of->event_types.at[event].unit;
    uint64_t unit = pprof_time_unit_ns(profile_text(view, view->meta.unit));
    if (unit == 0 || of == &t->read) {
        view->meta.period_ns = 1; /* nothing was sampled at the window's rate */
        view->meta.frequency_hz = 0;
    }
    if (unit == 0) {
        unit = 1;
    } else {
        view->meta.unit = profile_cstring(view, VALUE_TIME_UNIT);
    }
    set_label(t, value_name(view));
    return view->meta.value != 0 && fill(view, of, type, event, unit);
}

/* ---- what runtimes made ---- */

/* Whose file it is: its samples do not say it. */
static struct importer_origin origin_of(const struct profile *p, uint32_t pid)
{
    struct importer_origin origin = {.pid = pid};
    for (size_t i = 1; i < p->processes.len; i++) {
        const struct process *process = &p->processes.at[i];
        if (process->pid == pid) {
            origin.start_ticks = process->start_ticks;
            origin.comm = profile_text(p, process->name);
            origin.container = profile_text(p, process->container);
        }
    }
    return origin;
}

static bool is_first_of_type(const struct runtime_profiles *made, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (strcmp(made->all.at[i].type, made->all.at[at].type) == 0) {
            return false;
        }
    }
    return runtime_profile_is_pprof(str_of(made->all.at[at].type));
}

static bool read_files(struct flame_types *t, const char *type)
{
    bool ok = t->has_read = profile_init(&t->read, t->p->max_bytes / READ_SHARE, &t->why);
    vec_each(&t->p->of_runtimes.all, one)
    {
        if (ok && strcmp(one->type, type) == 0) {
            struct importer_origin origin = origin_of(t->p, one->pid);
            ok = pprof_read_runtime(&t->read, buf_slice(&one->bytes), &origin, &t->why);
        }
    }
    t->read.meta.service = ok ? profile_string(&t->read, profile_text(t->p, t->p->meta.service)) : 0;
    t->read.meta.host = ok ? profile_string(&t->read, profile_text(t->p, t->p->meta.host)) : 0;
    return ok;
}

/* The next file type's; false: there is none. */
static bool begin_files(struct flame_types *t)
{
    const struct runtime_profiles *made = &t->p->of_runtimes;
    end_read(t);
    while (t->file < made->all.len && !is_first_of_type(made, t->file)) {
        t->file++;
    }
    if (t->file == made->all.len) {
        return false;
    }
    const char *type = made->all.at[t->file++].type;
    t->of = &t->read;
    t->type = TYPE_CPU;
    snprintf(t->label, sizeof t->label, "%s", type);
    if (!read_files(t, type)) {
        t->type = SIZE_MAX;
    }
    return true;
}

bool flame_types_next(struct flame_types *t)
{
    t->why = (struct err){0};
    do {
        end_view(t);
        while (t->type != SIZE_MAX && t->type < TYPE_EVENTS + t->of->event_types.len) {
            if (begin_view(t, t->type++)) {
                return true;
            }
            end_view(t);
        }
        if (!begin_files(t)) {
            return false;
        }
    } while (t->why.kind == ERR_NONE);
    return true;
}

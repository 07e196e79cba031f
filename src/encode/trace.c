/* A profile as a trace in the Trace Event Format, which ui.perfetto.dev and chrome://tracing open: a track per thread,
 * on it a slice per function from the moment it was first on the stack to the moment it no longer was. Slices are pairs
 * of events B and E, whose order in the file settles what lies within what where times are equal: both programs go by
 * it, which they do not for X. Stacks that follow each other without a gap share the slices of their common callers.
 *
 * A pause shorter than a step of the moments, within which nobody knows its place, ends no slice that goes on
 * behind it: slices of callers are that much longer than the CPU time that was used in them, otherwise as long. What
 * was not seen stands behind the end. */
#include "base/json.h"
#include "base/map.h"
#include "base/version.h"
#include "encode/encode.h"
#include "encode/timeline.h"
#include "encode/value.h"

enum {
    OWN_PIDS = 1 << 22,       /* no system has such: of processes that the profile has no id of */
    OWN_TIDS = 1 << 30,       /* likewise; of a thread with two names the second */
    FLUSH_BYTES = 64 * 1024,
};

struct writer {
    const struct profile *p;
    struct sink *out;
    struct err *err;
    struct timeline timeline;
    struct map ids; /* pid and tid -> 1 */
    struct buf text;
    VEC(uint32_t) open; /* frames of slices that have not ended, root first */
    struct timeline_stack stack;
    uint32_t pid, tid;
    bool any;
};

static bool flush_some(struct writer *w)
{
    return (w->text.len < FLUSH_BYTES && !w->text.failed) || timeline_flush(&w->text, w->out, w->err);
}

static uint32_t frame_at(const struct writer *w, size_t depth)
{
    return w->stack.frames.at[w->stack.frames.len - 1 - depth];
}

/* Two addresses of one function are one slice. */
static bool same_function(const struct writer *w, size_t depth)
{
    const struct frame *a = &w->p->frames.at[w->open.at[depth]], *b = &w->p->frames.at[frame_at(w, depth)];
    return a->name == b->name && a->file == b->file && a->kind == b->kind;
}

static void event(struct writer *w, char phase)
{
    buf_printf(&w->text, "%s\n{\"ph\":\"%c\",\"pid\":%u,\"tid\":%u", w->any ? "," : "", phase, w->pid, w->tid);
    w->any = true;
}

static void event_at(struct writer *w, char phase, uint64_t ns)
{
    event(w, phase);
    buf_printf(&w->text, ",\"ts\":%llu.%03u", (unsigned long long)(ns / 1000), (unsigned)(ns % 1000));
}

static bool begin(struct writer *w, uint32_t id, uint64_t ns)
{
    const struct frame *frame = &w->p->frames.at[id];
    uint32_t *open = vec_push(&w->open);
    if (open == NULL) {
        return err_set(w->err, ERR_MEMORY, 0, "no memory for a stack of %zu frames", w->open.len);
    }
    *open = id;
    event_at(w, 'B', ns);
    buf_printf(&w->text, ",\"cat\":\"%s\",\"name\":", languages[frame->kind].name);
    json_text(&w->text, frame->name != 0 ? profile_text(w->p, frame->name) : STR("[unknown]"));
    if (frame->file != 0) {
        buf_text(&w->text, ",\"args\":{\"file\":");
        json_text(&w->text, profile_text(w->p, frame->file));
        buf_byte(&w->text, '}');
    }
    buf_byte(&w->text, '}');
    return flush_some(w);
}

/* Ends the innermost slices down to this depth. */
static bool end_to(struct writer *w, size_t depth, uint64_t ns)
{
    bool ok = true;
    for (; ok && w->open.len > depth; w->open.len--) {
        event_at(w, 'E', ns);
        buf_byte(&w->text, '}');
        ok = flush_some(w);
    }
    return ok;
}

static bool write_parts(struct writer *w, const struct timeline_row *row)
{
    uint64_t end_ns = 0;
    bool ok = true;
    for (uint32_t i = row->first; ok && i < row->first + row->count; i++) {
        const struct timeline_part *part = &w->timeline.parts.at[i];
        size_t depth = 0;
        ok = timeline_climb(&w->stack, w->p, w->p->samples.at[part->sample].node, w->err);
        bool goes_on = part->at_ns == end_ns || part->at_ns - end_ns < w->p->moments.step_ns;
        size_t both = w->open.len < w->stack.frames.len ? w->open.len : w->stack.frames.len;
        while (ok && goes_on && depth < both && same_function(w, depth)) {
            depth++;
        }
        ok = ok && end_to(w, depth, end_ns);
        for (; ok && depth < w->stack.frames.len; depth++) {
            ok = begin(w, frame_at(w, depth), part->at_ns);
        }
        end_ns = part->at_ns + part->ns;
    }
    return ok && end_to(w, 0, end_ns);
}

static void describe(struct writer *w, const char *what, struct str text)
{
    event(w, 'M');
    buf_printf(&w->text, ",\"name\":\"%s\",\"args\":{\"name\":", what);
    json_text(&w->text, text);
    buf_text(&w->text, "}}");
}

static bool write_row(struct writer *w, const struct timeline_row *row)
{
    const struct thread *thread = &w->p->threads.at[row->thread];
    const struct process *process = &w->p->processes.at[thread->process];
    w->pid = process->pid != 0 ? process->pid : OWN_PIDS + thread->process;
    w->tid = thread->tid != 0 ? thread->tid : OWN_TIDS + row->thread;
    uint64_t key = (uint64_t)w->pid << 32 | w->tid;
    if (map_find(&w->ids, key) != NULL) {
        w->tid = OWN_TIDS + row->thread;
    } else if (!map_put(&w->ids, key, 1)) {
        return err_set(w->err, ERR_MEMORY, 0, "no memory for a table of threads");
    }
    describe(w, "process_name", profile_text(w->p, process->name));
    describe(w, "thread_name", profile_text(w->p, thread->name));
    return write_parts(w, row);
}

static bool write_all(struct writer *w)
{
    struct str service = profile_text(w->p, w->p->meta.service);
    buf_printf(&w->text,
               "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"exporter\":\"pillion " PILLION_VERSION
               "\",\"order\":\"%s\",\"value\":",
               timeline_order(&w->timeline));
    json_text(&w->text, value_name(w->p));
    buf_text(&w->text, ",\"service\":");
    json_text(&w->text, service);
    buf_text(&w->text, "},\"traceEvents\":[");
    bool ok = true;
    for (size_t i = 0; ok && i < w->timeline.row_count; i++) {
        ok = write_row(w, &w->timeline.rows[i]);
    }
    buf_text(&w->text, "]}\n");
    return ok && timeline_flush(&w->text, w->out, w->err);
}

static bool trace_write(struct profile *p, const struct encode_rules *rules, struct sink *out, struct err *err)
{
    (void)rules;
    struct writer w = {.p = p, .out = out, .err = err};
    buf_init(&w.text, TIMELINE_TEXT_MAX);
    bool ok = timeline_init(&w.timeline, p, err) && write_all(&w);
    timeline_release(&w.timeline);
    map_release(&w.ids);
    buf_release(&w.text);
    vec_release(&w.open);
    vec_release(&w.stack.frames);
    return ok;
}

const struct encoder encoder_trace = {
    .name = "trace",
    .extension = ".trace.json",
    .extensions = ".trace .chrome.json",
    .mime = "application/json",
    .description = "for ui.perfetto.dev",
    .link = "last_profile.trace.json",
    .shows_moments = true,
    .apart = FIT_BY_THREAD,
    .write = trace_write,
};

/* A profile as JSON for speedscope: the table of frames, then one sampled profile per thread, each
 * with its stacks and weights. Functions are frames there, so addresses of one function are
 * one. */
#include "encode/speedscope.h"

#include "base/version.h"
#include "encode/functions.h"
#include "encode/timeline.h"
#include "encode/value.h"
#include "base/json.h"
#include "encode/encode.h"

struct writer {
    const struct profile *p;
    struct sink *out;
    struct err *err;
    struct functions functions;
    struct timeline timeline;
    struct buf text;
    struct timeline_stack stack;
};

static bool flush(struct writer *w)
{
    return timeline_flush(&w->text, w->out, w->err);
}

static bool write_frames(struct writer *w)
{
    const struct profile *p = w->p;
    buf_text(&w->text, "\"shared\":{\"frames\":[");
    for (size_t i = 1; i < w->functions.list.len; i++) {
        const struct function *f = &w->functions.list.at[i];
        buf_text(&w->text, i > 1 ? ",\n{\"name\":" : "\n{\"name\":");
        json_text(&w->text, f->name != 0 ? profile_text(p, f->name) : STR("[unknown]"));
        if (f->file != 0) {
            buf_text(&w->text, ",\"file\":");
            json_text(&w->text, profile_text(p, f->file));
        }
        buf_byte(&w->text, '}');
        if (!flush(w)) {
            return false;
        }
    }
    buf_text(&w->text, "]},\n\"profiles\":[");
    return flush(w);
}

/* One stack, root first. */
static bool write_stack(struct writer *w, const struct sample *s, bool is_first)
{
    if (!timeline_climb(&w->stack, w->p, s->node, w->err)) {
        return false;
    }
    buf_text(&w->text, is_first ? "[" : ",[");
    for (size_t i = w->stack.frames.len; i-- > 0;) {
        buf_printf(&w->text, i > 0 ? "%u," : "%u", w->functions.of_frame[w->stack.frames.at[i]] - 1);
    }
    buf_byte(&w->text, ']');
    return flush(w);
}

static void thread_label(struct writer *w, const struct thread *thread)
{
    const struct process *process = &w->p->processes.at[thread->process];
    struct buf label;
    buf_init(&label, 4096);
    struct str name = profile_text(w->p, process->name);
    buf_str(&label, str_sub(name, 0, 1024));
    if (process->pid != 0) {
        buf_printf(&label, " (pid %u)", process->pid);
    }
    if (thread->name != process->name || thread->tid != process->pid) {
        buf_byte(&label, ' ');
        buf_str(&label, str_sub(profile_text(w->p, thread->name), 0, 1024));
    }
    if (thread->tid != 0 && thread->tid != process->pid) {
        buf_printf(&label, " (tid %u)", thread->tid);
    }
    json_text(&w->text, buf_slice(&label));
    buf_release(&label);
}

static bool write_thread(struct writer *w, const struct timeline_row *row, bool is_first)
{
    const struct timeline_part *parts = &w->timeline.parts.at[row->first];
    buf_text(&w->text, is_first ? "\n{\"type\":\"sampled\",\"name\":"
                                : ",\n{\"type\":\"sampled\",\"name\":");
    thread_label(w, &w->p->threads.at[row->thread]);
    buf_printf(&w->text, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%llu",
               value_is_counted(w->p) ? "none" : VALUE_TIME_UNIT, (unsigned long long)row->cpu_ns);
    buf_text(&w->text, ",\"samples\":[");
    for (uint32_t i = 0; i < row->count; i++) {
        if (!write_stack(w, &w->p->samples.at[parts[i].sample], i == 0)) {
            return false;
        }
    }
    buf_text(&w->text, "],\"weights\":[");
    for (uint32_t i = 0; i < row->count; i++) {
        buf_printf(&w->text, i > 0 ? ",%llu" : "%llu",
                   (unsigned long long)parts[i].ns);
        if (!flush(w)) {
            return false;
        }
    }
    buf_text(&w->text, "]}");
    return flush(w);
}

static bool write_all(struct writer *w)
{
    struct str service = profile_text(w->p, w->p->meta.service);
    buf_text(&w->text, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
                       "\"exporter\":\"pillion " PILLION_VERSION "\",\n\"name\":");
    json_text(&w->text, service.len > 0 ? service : STR("pillion"));
    buf_printf(&w->text, ",\n\"order\":\"%s\",\n\"activeProfileIndex\":0,\n", timeline_order(&w->timeline));
    bool ok = write_frames(w);
    for (size_t i = 0; ok && i < w->timeline.row_count; i++) {
        ok = write_thread(w, &w->timeline.rows[i], i == 0);
    }
    buf_text(&w->text, "]}\n");
    return ok && flush(w);
}

bool speedscope_write(struct profile *p, struct sink *out, struct err *err)
{
    struct writer w = {.p = p, .out = out, .err = err};
    buf_init(&w.text, TIMELINE_TEXT_MAX);
    bool ok = timeline_init(&w.timeline, p, err) && functions_init(&w.functions, p, NULL, err) && write_all(&w);
    functions_release(&w.functions);
    timeline_release(&w.timeline);
    buf_release(&w.text);
    vec_release(&w.stack.frames);
    return ok;
}

static bool write_row(struct profile *p, const struct encode_rules *rules, struct sink *out, struct err *err)
{
    (void)rules;
    return speedscope_write(p, out, err);
}

const struct encoder encoder_speedscope = {
    .name = "speedscope",
    .extension = ".speedscope.json",
    .extensions = ".speedscope .json",
    .mime = "application/json",
    .description = "for speedscope",
    .link = "last_profile.speedscope.json",
    .shows_moments = true,
    .apart = FIT_BY_THREAD,
    .write = write_row,
};

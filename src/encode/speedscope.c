/* A profile as JSON for speedscope: the table of frames, then one sampled profile per thread, each
 * with its stacks and weights. Functions are frames there, so addresses of one function are
 * one. */
#include "encode/speedscope.h"

#include <stdlib.h>

#include "base/version.h"
#include "encode/functions.h"
#include "encode/value.h"
#include "base/json.h"
#include "encode/encode.h"

enum { TEXT_MAX = 16 * 1024 * 1024 };

struct thread_row {
    uint64_t cpu_ns;
    uint32_t thread;
    uint32_t first, count; /* its samples, places in `order` */
};

struct writer {
    const struct profile *p;
    struct sink *out;
    struct err *err;
    struct functions functions;
    struct thread_row *threads;
    uint32_t *order; /* sample ids, those of one thread together */
    struct buf text;
    VEC(uint32_t) path;
};

/* Sends what is in w->text. */
static bool flush(struct writer *w)
{
    if (w->text.failed) {
        return err_set(w->err, ERR_LIMIT, 0, "one stack or name is larger than %d bytes", TEXT_MAX);
    }
    bool ok = sink_write(w->out, w->text.ptr, w->text.len, w->err);
    buf_clear(&w->text);
    return ok;
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

/* The functions from a node to the root. */
static bool climb(struct writer *w, uint32_t node)
{
    uint32_t chain[PROFILE_INLINES_MAX];
    vec_clear(&w->path);
    for (uint32_t n = node; n != 0; n = w->p->nodes.at[n].parent) {
        size_t count = profile_expand(w->p, w->p->nodes.at[n].frame, chain);
        for (size_t i = 0; i < count; i++) {
            uint32_t *step = vec_push(&w->path);
            if (step == NULL) {
                return err_set(w->err, ERR_MEMORY, 0, "no memory for a stack of %zu frames",
                               w->path.len);
            }
            *step = w->functions.of_frame[chain[i]] - 1;
        }
    }
    return true;
}

/* One stack, root first. */
static bool write_stack(struct writer *w, const struct sample *s, bool is_first)
{
    if (!climb(w, s->node)) {
        return false;
    }
    buf_text(&w->text, is_first ? "[" : ",[");
    for (size_t i = w->path.len; i-- > 0;) {
        buf_printf(&w->text, i > 0 ? "%u," : "%u", w->path.at[i]);
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

static bool write_thread(struct writer *w, const struct thread_row *row, bool is_first)
{
    buf_text(&w->text, is_first ? "\n{\"type\":\"sampled\",\"name\":"
                                : ",\n{\"type\":\"sampled\",\"name\":");
    thread_label(w, &w->p->threads.at[row->thread]);
    buf_printf(&w->text, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%llu",
               value_is_counted(w->p) ? "none" : VALUE_TIME_UNIT, (unsigned long long)row->cpu_ns);
    buf_text(&w->text, ",\"samples\":[");
    for (uint32_t i = 0; i < row->count; i++) {
        if (!write_stack(w, &w->p->samples.at[w->order[row->first + i]], i == 0)) {
            return false;
        }
    }
    buf_text(&w->text, "],\"weights\":[");
    for (uint32_t i = 0; i < row->count; i++) {
        buf_printf(&w->text, i > 0 ? ",%llu" : "%llu",
                   (unsigned long long)w->p->samples.at[w->order[row->first + i]].cpu_ns);
        if (!flush(w)) {
            return false;
        }
    }
    buf_text(&w->text, "]}");
    return flush(w);
}

static int by_weight(const void *left, const void *right)
{
    const struct thread_row *a = left, *b = right;
    if (a->cpu_ns != b->cpu_ns) {
        return a->cpu_ns > b->cpu_ns ? -1 : 1;
    }
    return (a->thread > b->thread) - (a->thread < b->thread);
}

/* Whatever its labels. */
static struct thread_row *row_of(struct writer *w, const struct sample *s)
{
    uint32_t plain = w->p->threads.at[s->thread].plain;
    return &w->threads[plain != 0 ? plain : s->thread];
}

/* Puts the samples of each thread together, and the heaviest thread first. */
static void group(struct writer *w)
{
    const struct profile *p = w->p;
    for (size_t i = 1; i < p->samples.len; i++) {
        struct thread_row *row = row_of(w, &p->samples.at[i]);
        row->count++;
        row->cpu_ns += p->samples.at[i].cpu_ns;
    }
    uint32_t next = 0;
    for (size_t i = 0; i < p->threads.len; i++) {
        struct thread_row *row = &w->threads[i];
        row->thread = (uint32_t)i;
        row->first = next;
        next += row->count;
        row->count = 0;
    }
    for (size_t i = 1; i < p->samples.len; i++) {
        struct thread_row *row = row_of(w, &p->samples.at[i]);
        w->order[row->first + row->count++] = (uint32_t)i;
    }
    qsort(w->threads, p->threads.len, sizeof *w->threads, by_weight);
}

static bool write_all(struct writer *w)
{
    struct str service = profile_text(w->p, w->p->meta.service);
    buf_text(&w->text, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
                       "\"exporter\":\"pillion " PILLION_VERSION "\",\n\"name\":");
    json_text(&w->text, service.len > 0 ? service : STR("pillion"));
    buf_text(&w->text, ",\n\"activeProfileIndex\":0,\n");
    bool ok = write_frames(w);
    for (size_t i = 0; ok && i < w->p->threads.len && w->threads[i].count > 0; i++) {
        ok = write_thread(w, &w->threads[i], i == 0);
    }
    buf_text(&w->text, "]}\n");
    return ok && flush(w);
}

bool speedscope_write(struct profile *p, struct sink *out, struct err *err)
{
    struct writer w = {.p = p, .out = out, .err = err};
    buf_init(&w.text, TEXT_MAX);
    w.threads = calloc(p->threads.len, sizeof *w.threads);
    w.order = calloc(p->samples.len, sizeof *w.order);
    bool ok = w.threads != NULL && w.order != NULL;
    if (!ok) {
        err_set(err, ERR_MEMORY, 0, "no memory to write %zu stacks", p->samples.len);
    }
    ok = ok && functions_init(&w.functions, p, NULL, err);
    if (ok) {
        group(&w);
        ok = write_all(&w);
    }
    functions_release(&w.functions);
    free(w.threads);
    free(w.order);
    buf_release(&w.text);
    vec_release(&w.path);
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

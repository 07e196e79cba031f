/* Moments of a process, as text, into samples of a window: each thread's stack is put into the profile when the next
 * line begins another thread or moment. The text has its frames leaf first, the profile root first. What is no number
 * where one has to be makes its line none. */
#include "encode/moments_read.h"

#include "base/time.h"
#include "encode/importer.h"

#define MOMENT_MAX_NS (60 * NS_PER_S) /* a moment that stands for more is no measurement */

struct reader {
    struct importer in;
    const struct live *live;
    enum frame_kind kind;
    struct live_sample sample; /* of the thread that is being read */
    struct str name;
    bool any;                  /* is one? */
    uint64_t moment_ns;
    uint32_t stack[MOMENTS_DEPTH + 1]; /* leaf first */
    size_t depth;
    bool cut;
};

bool moments_are(struct str text)
{
    return str_starts(text, STR("moment "));
}

/* The number that a text begins with, up to a blank; false: there is none. */
static bool take_number(struct str *text, uint64_t *out)
{
    struct str digits = str_cut(text, ' ');
    return str_u64(digits, out);
}

static void end_thread(struct reader *r)
{
    if (r->any && r->depth > 0) {
        struct importer_origin o = {.pid = r->live->pid,
                                    .start_ticks = r->live->start_ticks,
                                    .comm = r->live->comm,
                                    .tid = r->live->thread(r->live->context, r->sample.tid),
                                    .thread_name = r->name};
        if (r->cut) {
            r->stack[r->depth++] = importer_frame(&r->in, STR("[truncated]"), 0, FRAME_NATIVE);
        }
        for (size_t i = 0; i < r->depth / 2; i++) { /* root first */
            uint32_t other = r->stack[i];
            r->stack[i] = r->stack[r->depth - 1 - i];
            r->stack[r->depth - 1 - i] = other;
        }
        r->sample.thread = r->name.len > 0 ? importer_thread(&r->in, &o) : 0;
        r->sample.node = importer_stack(&r->in, r->stack, r->depth);
        r->live->sample(r->live->context, &r->sample);
    }
    r->any = r->cut = false;
    r->depth = 0;
}

static void begin_thread(struct reader *r, struct str rest)
{
    uint64_t tid, waits;
    if (take_number(&rest, &tid) && take_number(&rest, &waits) && tid > 0 && tid <= UINT32_MAX) {
        r->any = true;
        r->name = rest;
        r->sample = (struct live_sample){.tid = (uint32_t)tid, .cpu_ns = r->moment_ns, .may_wait = waits != 0};
    }
}

static void add_frame(struct reader *r, struct str rest)
{
    uint64_t line;
    if (!r->any || !take_number(&rest, &line) || rest.len == 0) {
        return;
    }
    if (r->depth < MOMENTS_DEPTH) {
        r->stack[r->depth++] = importer_frame(&r->in, rest, line <= UINT32_MAX ? (uint32_t)line : 0, r->kind);
    } else {
        r->cut = true;
    }
}

void moments_read(struct profile *p, struct str text, enum frame_kind kind, const struct live *live)
{
    struct reader r = {.live = live, .kind = kind};
    importer_init(&r.in, p);
    while (text.len > 0) {
        struct str line = str_cut(&text, '\n'), rest = line;
        struct str word = str_cut(&rest, ' ');
        bool is_moment = str_eq(word, STR("moment")), is_thread = str_eq(word, STR("thread"));
        if (is_moment || is_thread) {
            end_thread(&r);
        }
        if (is_moment) {
            r.moment_ns = str_u64(rest, &r.moment_ns) && r.moment_ns <= MOMENT_MAX_NS ? r.moment_ns : 0;
        } else if (is_thread) {
            begin_thread(&r, rest);
        } else if (str_eq(word, STR("runtime"))) {
            p->processes.at[live->process].runtime = profile_string(p, rest);
        } else {
            add_frame(&r, line);
        }
    }
    end_thread(&r);
}

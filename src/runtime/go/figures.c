/* The texts of an address: asked for one after the other, each into the same buffer, which is given back. What one of
 * them lacks, and memory, too, is left out without a word: these are figures beside the profiles, and a program that
 * has not imported expvar lacks nothing. */
#include "runtime/go/figures.h"
#include "runtime/go/waits.h"

enum {
    ANSWER_MS = 5000,
    TEXT_MAX = 16 << 20,
    METRICS_MAX = 4096,
    SMALL_HEAP = 256 << 10, /* packed: as text it is some 20 times as large */
};

static void take_waits(const struct process_port *port, const struct go_endpoint *at, struct buf *text,
                       const struct runtime_sink *sink)
{
    struct go_waits_told told;
    struct buf profile;
    buf_init(&profile, TEXT_MAX);
    if (go_endpoint_get(port, at, "goroutine?debug=2", text, ANSWER_MS, NULL) &&
        go_waits_read(buf_slice(text), port->wall_ns(port->context), &profile, &told, NULL)) {
        sink->file(sink->context, "goroutinewait", &profile);
    }
    buf_release(&profile);
}

static bool ask_stats(struct go_figures *f, const struct go_figures_from *from, struct buf *text,
                      struct go_memstats *out)
{
    if (!f->has_no_vars && go_endpoint_get(from->port, from->at, "/debug/vars", text, ANSWER_MS, NULL) &&
        go_memstats_of_json(buf_slice(text), out, NULL)) {
        return true;
    }
    f->has_no_vars = true;
    return from->heap_bytes > 0 && from->heap_bytes < SMALL_HEAP &&
           go_endpoint_get(from->port, from->at, "heap?debug=1", text, ANSWER_MS, NULL) &&
           go_memstats_of_text(buf_slice(text), out, NULL);
}

static bool read_stats(struct go_figures *f, const struct go_figures_from *from, struct buf *text,
                       struct go_memstats *out)
{
    *out = (struct go_memstats){0};
    return (from->at != NULL && ask_stats(f, from, text, out)) ||
           (from->memory != NULL && go_memory_counts(from->memory, out, NULL));
}

static bool count_goroutines(const struct go_figures_from *from, struct buf *text, struct go_memstats *out)
{
    if (from->at == NULL) {
        out->has_num_goroutine = from->goroutines != NULL;
        out->num_goroutine = out->has_num_goroutine ? *from->goroutines : 0;
        return out->has_num_goroutine;
    }
    return go_endpoint_get(from->port, from->at, "goroutine?debug=1", text, ANSWER_MS, NULL) &&
           go_memstats_goroutines(buf_slice(text), out, NULL);
}

void go_figures_begin(struct go_figures *f, const struct go_figures_from *from)
{
    struct buf text;
    buf_init(&text, TEXT_MAX);
    f->before_ns = read_stats(f, from, &text, &f->before) ? from->port->now_ns(from->port->context) : 0;
    buf_release(&text);
}

static void take_metrics(struct go_figures *f, const struct go_memstats *now, uint64_t now_ns,
                         const struct runtime_sink *sink)
{
    struct buf json;
    buf_init(&json, METRICS_MAX);
    if (f->before_ns != 0 && go_metrics(&f->before, now, now_ns - f->before_ns, &json, NULL)) {
        sink->file(sink->context, "metrics.json", &json);
    }
    buf_release(&json);
    f->before = *now;
    f->before_ns = now_ns;
}

void go_figures_take(struct go_figures *f, const struct go_figures_from *from, bool wants_waits,
                     const struct runtime_sink *sink)
{
    struct go_memstats now;
    struct buf text;
    buf_init(&text, TEXT_MAX);
    bool has_stats = read_stats(f, from, &text, &now);
    uint64_t now_ns = from->port->now_ns(from->port->context);
    bool has_count = count_goroutines(from, &text, &now);
    if (has_stats) {
        take_metrics(f, &now, now_ns, sink);
    }
    if (wants_waits && from->at != NULL && has_count && now.num_goroutine <= GO_FIGURES_WAITS_MOST) {
        take_waits(from->port, from->at, &text, sink);
    }
    buf_release(&text);
}

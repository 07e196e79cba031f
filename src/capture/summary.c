#include "capture/summary.h"
#include "base/time.h"

#include <stdio.h>

enum { TEXT_MAX = 2048, SHARES_MAX = FRAME_KIND_COUNT };

static double seconds(uint64_t ns)
{
    return (double)ns / (double)NS_PER_S;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0.0 : 100.0 * (double)part / (double)whole;
}

struct share {
    const char *name;
    uint64_t ns;
};

static const char *const not_seen_words[ACCOUNT_COUNT] = {
    [ACCOUNT_LOST] = "lost",
    [ACCOUNT_KERNEL_HIDDEN] = "kernel, hidden",
    [ACCOUNT_NATIVE_NO_PERF] = "native without perf",
    [ACCOUNT_UNREADABLE] = "unreadable",
    [ACCOUNT_PARTIAL] = "partial",
};

static const char *const not_seen_keys[ACCOUNT_COUNT] = {
    [ACCOUNT_LOST] = "lost",
    [ACCOUNT_KERNEL_HIDDEN] = "kernel_hidden",
    [ACCOUNT_NATIVE_NO_PERF] = "native_noperf",
    [ACCOUNT_UNREADABLE] = "unreadable",
    [ACCOUNT_PARTIAL] = "partial",
};

/* Shares of what was seen, largest first. */
static size_t shares_of(const struct profile_totals *sum, struct share out[static SHARES_MAX])
{
    size_t count = 0;
    for (unsigned kind = 0; kind < FRAME_KIND_COUNT; kind++) {
        if (kind == FRAME_ACCOUNT || sum->leaf_ns[kind] == 0) {
            continue;
        }
        size_t at = count++;
        for (; at > 0 && out[at - 1].ns < sum->leaf_ns[kind]; at--) {
            out[at] = out[at - 1];
        }
        out[at] = (struct share){frame_kind_name((enum frame_kind)kind), sum->leaf_ns[kind]};
    }
    return count;
}

static size_t processes_with_time(const struct profile *p)
{
    size_t count = 0;
    for (size_t i = 1; i < p->processes.len; i++) {
        count += p->processes.at[i].cpu_ns > 0;
    }
    return count;
}

static uint64_t length_ns(const struct profile *p)
{
    return p->meta.end_wall_ns > p->meta.start_wall_ns ? p->meta.end_wall_ns - p->meta.start_wall_ns
                                                       : 1;
}

static void add_not_seen(struct buf *out, const struct profile_totals *sum)
{
    uint64_t missing = sum->leaf_ns[FRAME_ACCOUNT];
    if (missing == 0) {
        buf_printf(out, "\n  nothing missing (100.0 %% of %.1f s)", seconds(sum->cpu_ns));
        return;
    }
    buf_printf(out, "\n  not seen: %.1f s (%.1f %%):", seconds(missing),
               percent(missing, sum->cpu_ns));
    const char *separator = " ";
    for (unsigned a = 0; a < ACCOUNT_COUNT; a++) {
        if (sum->account_ns[a] > 0) {
            buf_printf(out, "%s%.1f s %s", separator, seconds(sum->account_ns[a]),
                       not_seen_words[a]);
            separator = ", ";
        }
    }
}

/* Share of the stacks unwound here that reached their thread's first function. */
static bool stacks_complete(const struct profile *p, double *out)
{
    uint64_t all = 0;
    for (unsigned i = 0; i < STACK_END_COUNT; i++) {
        all += p->meta.stack_ends[i];
    }
    *out = percent(p->meta.stack_ends[STACK_COMPLETE], all);
    return all > 0;
}

static void add_files(struct buf *out, const struct outputs *o, const struct outputs_written *w)
{
    if (w->formats == 0) {
        return;
    }
    bool html = (w->formats & FORMAT_HTML) != 0;
    buf_printf(out, "\n  %s/%s", o->dir, html ? "last_flamegraph.html" : w->stem);
    const char *separator = html ? "  (also " : ".";
    static const struct {
        unsigned format;
        const char *extension;
    } others[] = {{FORMAT_COL, ".col"}, {FORMAT_PPROF, ".pprof"},
                  {FORMAT_SPEEDSCOPE, ".speedscope.json"}};
    bool any = false;
    for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++) {
        if ((w->formats & others[i].format) != 0) {
            buf_printf(out, "%s%s", separator, others[i].extension + !html);
            separator = html ? ", " : ", .";
            any = true;
        }
    }
    if (html && any) {
        buf_printf(out, ": %s.*)", w->stem);
    }
}

static void terminal_block(const struct profile *p, const struct profile_totals *sum,
                           const struct outputs *o, const struct outputs_written *w,
                           struct buf *out)
{
    uint64_t length = length_ns(p);
    size_t processes = processes_with_time(p);
    buf_printf(out, "%.1f s, %.1f s CPU in %zu process%s (%.2f cores)", seconds(length),
               seconds(sum->cpu_ns), processes, processes == 1 ? "" : "es",
               (double)sum->cpu_ns / (double)length);
    struct share shares[SHARES_MAX];
    size_t count = shares_of(sum, shares);
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, "%s%s %.1f %%", i == 0 ? "\n  " : "   ", shares[i].name,
                   percent(shares[i].ns, sum->cpu_ns));
    }
    if (sum->cpu_ns > 0) {
        add_not_seen(out, sum);
    }
    double complete;
    if (stacks_complete(p, &complete)) {
        buf_printf(out, "\n  stacks: %.1f %% complete", complete);
    }
    buf_printf(out, "\n  cost: %.2f s CPU (%.1f %% of one core), %.0f MB",
               seconds(p->meta.own_cpu_ns), percent(p->meta.own_cpu_ns, length),
               (double)p->meta.own_rss_bytes / 1048576.0);
    add_files(out, o, w);
}

struct fields {
    struct log_field at[32];
    size_t count;
    struct buf text; /* of the values */
};

static void field(struct fields *f, const char *key, const char *format, double value)
{
    if (f->count == sizeof f->at / sizeof f->at[0]) {
        return;
    }
    size_t from = f->text.len;
    buf_printf(&f->text, format, value);
    /* the buffer was given its whole room before, so the slice stays where it is */
    f->at[f->count++] = (struct log_field){key, {f->text.ptr + from, f->text.len - from}};
}

static void fill_fields(struct fields *f, const struct profile *p, const struct profile_totals *sum)
{
    (void)buf_room(&f->text, TEXT_MAX - 64);
    field(f, "cpu_s", "%.2f", seconds(sum->cpu_ns));
    field(f, "window_s", "%.2f", seconds(length_ns(p)));
    field(f, "procs", "%.0f", (double)processes_with_time(p));
    struct share shares[SHARES_MAX];
    size_t count = shares_of(sum, shares);
    static const char *const keys[][2] = {{"native", "native_percent"}, {"kernel", "kernel_percent"},
                                          {"python", "python_percent"}, {"java", "java_percent"},
                                          {"ruby", "ruby_percent"},     {"php", "php_percent"},
                                          {"go", "go_percent"},         {"perl", "perl_percent"},
                                          {"javascript", "javascript_percent"}};
    for (size_t i = 0; i < count; i++) {
        for (unsigned k = 0; k < sizeof keys / sizeof keys[0]; k++) {
            if (strcmp(keys[k][0], shares[i].name) == 0) {
                field(f, keys[k][1], "%.1f", percent(shares[i].ns, sum->cpu_ns));
            }
        }
    }
    static const char *const missing[ACCOUNT_COUNT] = {
        "lost_percent", "kernel_hidden_percent", "native_noperf_percent", "unreadable_percent",
        "partial_percent"};
    for (unsigned a = 0; a < ACCOUNT_COUNT; a++) {
        if (sum->account_ns[a] > 0 || a == ACCOUNT_LOST) {
            field(f, missing[a], "%.1f", percent(sum->account_ns[a], sum->cpu_ns));
        }
    }
    static const char *const ends[STACK_END_COUNT] = {
        "stacks_complete", "stacks_truncated", "stacks_no_rule", "stacks_bad_memory",
        "stacks_guessed"};
    double complete;
    for (unsigned i = 0; stacks_complete(p, &complete) && i < STACK_END_COUNT; i++) {
        field(f, ends[i], "%.0f", (double)p->meta.stack_ends[i]);
    }
    field(f, "samples", "%.0f", (double)sum->count);
    field(f, "own_cpu_s", "%.3f", seconds(p->meta.own_cpu_ns));
    field(f, "own_rss_mb", "%.0f", (double)p->meta.own_rss_bytes / 1048576.0);
}

static void log_line(const struct profile *p, const struct profile_totals *sum,
                     const struct outputs *o, const struct outputs_written *w, struct buf *out)
{
    char end[TIME_TEXT_MAX];
    time_iso_seconds(p->meta.end_wall_ns, end);
    buf_printf(out, "%.5s cpu=%.1fs procs=%zu", end + 11, seconds(sum->cpu_ns),
               processes_with_time(p));
    struct share shares[SHARES_MAX];
    size_t count = shares_of(sum, shares);
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, " %s=%.0f%%", shares[i].name, percent(shares[i].ns, sum->cpu_ns));
    }
    for (unsigned a = 0; a < ACCOUNT_COUNT; a++) {
        if (a != ACCOUNT_LOST && sum->account_ns[a] > 0) {
            buf_printf(out, " %s=%.0f%%", not_seen_keys[a],
                       percent(sum->account_ns[a], sum->cpu_ns));
        }
    }
    uint64_t lost = sum->account_ns[ACCOUNT_LOST];
    if (lost == 0) {
        buf_text(out, " lost=0");
    } else {
        buf_printf(out, " lost=%.1fs", seconds(lost));
    }
    double complete;
    if (stacks_complete(p, &complete)) {
        buf_printf(out, " stacks=%.1f%%", complete);
    }
    buf_printf(out, " own=%.2fs/%.0fMB", seconds(p->meta.own_cpu_ns),
               (double)p->meta.own_rss_bytes / 1048576.0);
    if (w->formats != 0) {
        buf_printf(out, " to %s/%s", o->dir, w->stem);
    }
}

/* A window in which CPU time was used but not one stack was read is no success. */
static bool is_empty(const struct profile_totals *sum)
{
    return sum->cpu_ns > 0 && sum->cpu_ns == sum->leaf_ns[FRAME_ACCOUNT];
}

static void say_empty(struct log *log, const struct profile *p, const struct profile_totals *sum)
{
    struct str reason = profile_text(p, p->meta.reason);
    log_once(log, LOG_WARNING, "EMPTY: %.1f s CPU, no stack readable: %.*s", seconds(sum->cpu_ns),
            (int)reason.len, reason.ptr);
}

void summary_window(struct log *log, const struct profile *p, const struct outputs *outputs,
                    const struct outputs_written *written, const char *problem)
{
    struct profile_totals sum = profile_sum(p);
    struct buf text;
    struct fields fields = {0};
    buf_init(&text, 4 * TEXT_MAX); /* paths are long */
    buf_init(&fields.text, TEXT_MAX);
    if (log->terminal && log->format == LOG_TEXT) {
        terminal_block(p, &sum, outputs, written, &text);
    } else {
        log_line(p, &sum, outputs, written, &text);
    }
    fill_fields(&fields, p, &sum);
    log_event(log, LOG_INFO, "window", fields.at, fields.count, "%s", buf_cstr(&text));
    if (is_empty(&sum) && p->meta.reason != 0) {
        say_empty(log, p, &sum);
    }
    if (problem != NULL) {
        log_once(log, LOG_ERROR, "%s", problem);
    }
    buf_release(&text);
    buf_release(&fields.text);
}

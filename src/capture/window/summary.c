/* Writes a window's totals as a block of lines for terminals or as one line of key=value for other logs, and always as
 * fields for logfmt and JSON. Keys are promised to users and keep their names (left_out, unfollowed), whatever the
 * code calls these things. A window with CPU time but without a stack is reported as EMPTY, once. */
#include "capture/window/summary.h"
#include "base/time.h"
#include "capture/stacks/stops.h"
#include "capture/unseen.h"
#include "capture/window/run_end.h"
#include "capture/window/margin.h"
#include "capture/window/unread.h"
#include "encode/encode.h"

#include <stdio.h>

enum { TEXT_MAX = 2048 };

static double seconds(uint64_t ns)
{
    return (double)ns / (double)NS_PER_S;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0.0 : 100.0 * (double)part / (double)whole;
}

static const char *const not_seen_words[ACCOUNT_COUNT] = {
    [ACCOUNT_LOST] = "lost",
    [ACCOUNT_KERNEL_HIDDEN] = "kernel, hidden",
    [ACCOUNT_NATIVE_NO_PERF] = "native without perf",
    [ACCOUNT_UNREADABLE] = "unreadable",
    [ACCOUNT_PARTIAL] = "partial",
    [ACCOUNT_NO_SAMPLES] = "without runtime samples",
};

static const char *const not_seen_keys[ACCOUNT_COUNT] = {
    [ACCOUNT_LOST] = "lost",
    [ACCOUNT_KERNEL_HIDDEN] = "kernel_hidden",
    [ACCOUNT_NATIVE_NO_PERF] = "native_noperf",
    [ACCOUNT_UNREADABLE] = "unreadable",
    [ACCOUNT_PARTIAL] = "partial",
    [ACCOUNT_NO_SAMPLES] = "no_runtime_samples",
};

size_t summary_shares(const struct profile_totals *sum,
                      struct summary_share out[static FRAME_KIND_COUNT])
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
        out[at] = (struct summary_share){languages[kind].name, languages[kind].key,
                                        sum->leaf_ns[kind]};
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

static void add_not_seen(struct buf *out, const struct profile *p, const struct profile_totals *sum)
{
    uint64_t missing = sum->leaf_ns[FRAME_ACCOUNT];
    if (missing == 0) {
        buf_printf(out, "\n  nothing missing%s (100.0 %% of %.1f s)", unread_any(p, sum) ? " but names" : "",
                   seconds(sum->cpu_ns));
        return;
    }
    buf_printf(out, "\n  not seen: %.1f s (%.1f %%):", seconds(missing), percent(missing, sum->cpu_ns));
    const char *separator = " ";
    for (unsigned a = 0; a < ACCOUNT_COUNT; a++) {
        if (sum->account_ns[a] > 0) {
            buf_printf(out, "%s%.1f s %s", separator, seconds(sum->account_ns[a]),
                       not_seen_words[a]);
            separator = ", ";
        }
    }
}

/* Why, when it is much. */
static bool reason_of(const struct profile *p, const struct profile_totals *sum, struct str *out)
{
    *out = profile_text(p, p->meta.reason);
    return unseen_is_much(sum) && out->len > 0;
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

/* What became of the samples of interpreters, in the order of enum runtime_share. */
static const char *const share_words[SHARE_COUNT] = {
    [SHARE_PROVEN] = "proven to be of one moment",
    [SHARE_LATE] = "read late",
    [SHARE_ELSEWHERE] = "on another CPU",
    [SHARE_RAN_ON] = "not stopped",
    [SHARE_UNPROVABLE] = "not provable (the kernel does not tell when threads run)",
    [SHARE_UNREAD] = "not read",
    [SHARE_TORN] = "torn",
};

static bool interpreter_samples(const struct profile *p, uint64_t *out)
{
    *out = 0;
    for (unsigned i = 0; i < SHARE_COUNT; i++) {
        *out += p->meta.shares[i];
    }
    return *out > 0;
}

/* Share of them that were read whole, though perhaps of another moment. */
static bool interpreters_complete(const struct profile *p, double *out)
{
    uint64_t all;
    bool any = interpreter_samples(p, &all);
    *out = percent(all - p->meta.shares[SHARE_UNREAD] - p->meta.shares[SHARE_TORN], all);
    return any;
}

static void add_complete(struct buf *out, const struct profile *p)
{
    double native, interpreters;
    if (!stacks_complete(p, &native)) {
        return;
    }
    if (interpreters_complete(p, &interpreters)) {
        buf_printf(out, "\n  native stacks: %.1f %% complete, interpreters' %.1f %%", native, interpreters);
    } else {
        buf_printf(out, "\n  stacks: %.1f %% complete", native);
    }
}

static void add_shares(struct buf *out, const struct profile *p)
{
    uint64_t all;
    if (!interpreter_samples(p, &all)) {
        return;
    }
    buf_text(out, "\n  interpreters' stacks: ");
    const char *separator = "";
    for (unsigned i = 0; i < SHARE_COUNT; i++) {
        if (p->meta.shares[i] > 0 || i == SHARE_PROVEN) {
            buf_printf(out, "%s%.1f %% %s", separator, percent(p->meta.shares[i], all),
                       share_words[i]);
            separator = ", ";
        }
    }
    const uint64_t *consistent = p->meta.consistent;
    if (consistent[CONSISTENT_WHOLE] + consistent[CONSISTENT_PART] > 0) {
        buf_printf(out, "; %.1f %% consistent", percent(consistent[CONSISTENT_WHOLE], all));
    }
    if (consistent[CONSISTENT_PART] > 0) {
        buf_printf(out, ", %.1f %% in part", percent(consistent[CONSISTENT_PART], all));
    }
    if (p->meta.woven[WOVEN_UNMERGED] > 0) {
        buf_printf(out, "; %.1f %% not merged with the native ones",
                   percent(p->meta.woven[WOVEN_UNMERGED], all));
    }
}

static void add_files(struct buf *out, const struct outputs *o, const struct outputs_written *w)
{
    if (w->formats == 0) {
        return;
    }
    const struct encoder *page = NULL;
    for (unsigned i = 0; encoders[i] != NULL; i++) {
        page = (w->formats >> i & 1) != 0 && encoders[i]->is_page ? encoders[i] : page;
    }
    buf_printf(out, "\n  %s%s%s", o->dir, outputs_slash(o), page != NULL ? page->link : w->stem);
    const char *separator = page != NULL ? "  (also " : "";
    bool any = false;
    for (unsigned i = 0; encoders[i] != NULL; i++) {
        if ((w->formats >> i & 1) != 0 && !encoders[i]->is_page) {
            buf_printf(out, "%s%s", separator, encoders[i]->extension);
            separator = ", ";
            any = true;
        }
    }
    if (page != NULL && any) {
        buf_printf(out, ": %s.*)", w->stem);
    }
}

/* Of the windows before this one. */
static void add_uploads(struct buf *out, const struct profile_uploads *u)
{
    if (u->any) {
        buf_printf(out, "\n  uploads: %llu sent, %llu waiting", (unsigned long long)u->fresh,
                   (unsigned long long)u->waiting);
    }
    if (u->dropped > 0) {
        buf_printf(out, ", %llu lost", (unsigned long long)u->dropped);
    }
}

static void terminal_seen(const struct profile *p, const struct profile_totals *sum, struct buf *out)
{
    uint64_t length = length_ns(p);
    size_t processes = processes_with_time(p);
    buf_printf(out, "%.1f s, %.1f s CPU in %zu process%s (%.2f cores)", seconds(length),
               seconds(sum->cpu_ns), processes, processes == 1 ? "" : "es",
               (double)sum->cpu_ns / (double)length);
    struct summary_share shares[FRAME_KIND_COUNT];
    size_t count = summary_shares(sum, shares);
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, "%s%s %.1f %%", i == 0 ? "\n  " : "   ", shares[i].name,
                   percent(shares[i].ns, sum->cpu_ns));
        margin_add(out, " ± %.0f", shares[i].ns, sum);
    }
    struct str reason;
    if (sum->cpu_ns > 0) {
        add_not_seen(out, p, sum);
    }
    if (reason_of(p, sum, &reason)) {
        buf_printf(out, "\n  why: %.*s", (int)reason.len, reason.ptr);
    }
    add_complete(out, p);
    add_shares(out, p);
    stops_describe(&p->meta.stops, out);
    unread_add(out, p, sum, "\n  ");
    if (p->meta.excluded > 0) {
        buf_printf(out, "\n  excluded: %llu process%s", (unsigned long long)p->meta.excluded,
                   p->meta.excluded == 1 ? "" : "es");
    }
    if (p->meta.unsampled > 0) {
        buf_printf(out, "\n  too few descriptors: no stacks of %llu processes, the coolest ones",
                   (unsigned long long)p->meta.unsampled);
    }
}

static void terminal_cost(const struct profile *p, const struct outputs *o, const struct outputs_written *w,
                          const char *problem, struct buf *out)
{
    uint64_t length = length_ns(p);
    buf_printf(out, "\n  cost: %.2f s CPU (%.1f %% of one core), %.0f MB",
               seconds(p->meta.own_cpu_ns), percent(p->meta.own_cpu_ns, length),
               (double)p->meta.own_rss_bytes / 1048576.0);
    if (p->meta.budget != 0) {
        struct str budget = profile_text(p, p->meta.budget);
        buf_printf(out, "\n  budget: %.*s", (int)budget.len, budget.ptr);
    }
    add_uploads(out, &p->meta.uploads);
    add_files(out, o, w);
    if (w->formats == 0 && problem != NULL) {
        buf_printf(out, "\n  no files: %s", problem);
    }
}

struct fields {
    struct log_field at[60];
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
    struct summary_share shares[FRAME_KIND_COUNT];
    size_t count = summary_shares(sum, shares);
    for (size_t i = 0; i < count; i++) {
        field(f, shares[i].key, "%.1f", percent(shares[i].ns, sum->cpu_ns));
    }
    static const char *const missing[ACCOUNT_COUNT] = {
        "lost_percent", "kernel_hidden_percent", "native_noperf_percent", "unreadable_percent",
        "partial_percent", "no_runtime_samples_percent"};
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
    static const char *const shares_of_runtimes[SHARE_COUNT] = {
        "runtime_proven", "runtime_late", "runtime_elsewhere",
        "runtime_ran_on", "runtime_unprovable", "runtime_unread", "runtime_torn"};
    static const char *const woven[WOVEN_COUNT] = {"woven_exact", "woven_one_more",
                                                   "woven_unmerged", "woven_apart"};
    uint64_t read;
    bool reads = interpreter_samples(p, &read);
    for (unsigned i = 0; reads && i < SHARE_COUNT; i++) {
        field(f, shares_of_runtimes[i], "%.0f", (double)p->meta.shares[i]);
    }
    if (reads) {
        field(f, "runtime_consistent", "%.0f", (double)p->meta.consistent[CONSISTENT_WHOLE]);
        field(f, "runtime_consistent_in_part", "%.0f", (double)p->meta.consistent[CONSISTENT_PART]);
    }
    for (unsigned i = 0; reads && i < WOVEN_COUNT; i++) {
        field(f, woven[i], "%.0f", (double)p->meta.woven[i]);
    }
    if (p->meta.stops.count > 0) {
        field(f, "stops", "%.0f", (double)p->meta.stops.count);
        field(f, "stops_median_us", "%.1f", (double)p->meta.stops.median_ns / 1e3);
        field(f, "stops_p99_us", "%.1f", (double)p->meta.stops.long_ns / 1e3);
        field(f, "stops_eintr", "%.0f", (double)p->meta.stops.broken_calls);
    }
    field(f, "samples", "%.0f", (double)sum->count);
    if (p->meta.excluded > 0) {
        field(f, "left_out_procs", "%.0f", (double)p->meta.excluded);
    }
    if (p->meta.unsampled > 0) {
        field(f, "unfollowed_procs", "%.0f", (double)p->meta.unsampled);
    }
    if (p->meta.uploads.any) {
        field(f, "uploads_sent", "%.0f", (double)p->meta.uploads.fresh);
        field(f, "uploads_waiting", "%.0f", (double)p->meta.uploads.waiting);
        field(f, "uploads_dropped", "%.0f", (double)p->meta.uploads.dropped);
        field(f, "uploads_failures", "%.0f", (double)p->meta.uploads.failures);
    }
    field(f, "own_cpu_s", "%.3f", seconds(p->meta.own_cpu_ns));
    field(f, "own_rss_mb", "%.0f", (double)p->meta.own_rss_bytes / 1048576.0);
    if (p->meta.own_rss_peak_bytes > 0) {
        field(f, "own_rss_peak_mb", "%.0f", (double)p->meta.own_rss_peak_bytes / 1048576.0);
    }
    if (p->meta.mean_hz > 0) {
        field(f, "sampled_hz", "%.1f", p->meta.mean_hz);
    }
    if (p->meta.budget != 0 && f->count < sizeof f->at / sizeof f->at[0]) {
        f->at[f->count++] = (struct log_field){"budget", profile_text(p, p->meta.budget)};
    }
    struct str reason;
    if (reason_of(p, sum, &reason) && f->count < sizeof f->at / sizeof f->at[0]) {
        f->at[f->count++] = (struct log_field){"reason", reason};
    }
}

static void log_line(const struct profile *p, const struct profile_totals *sum,
                     const struct outputs *o, const struct outputs_written *w,
                     const char *problem, struct buf *out)
{
    char end[TIME_TEXT_MAX];
    time_iso_seconds(p->meta.end_wall_ns, end);
    buf_printf(out, "%.5s cpu=%.1fs procs=%zu", end + 11, seconds(sum->cpu_ns),
               processes_with_time(p));
    struct summary_share shares[FRAME_KIND_COUNT];
    size_t count = summary_shares(sum, shares);
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, " %s=%.0f%%", shares[i].name, percent(shares[i].ns, sum->cpu_ns));
        margin_add(out, "±%.0f", shares[i].ns, sum);
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
    struct str reason;
    if (reason_of(p, sum, &reason)) { /* the gate; what opens it was said once */
        struct str gate = str_cut(&reason, ';');
        buf_printf(out, " (%.*s)", (int)gate.len, gate.ptr);
    }
    double complete, whole;
    uint64_t read;
    bool reads = interpreter_samples(p, &read);
    if (stacks_complete(p, &complete)) {
        buf_printf(out, " %s=%.1f%%", reads ? "native_stacks" : "stacks", complete);
    }
    if (interpreters_complete(p, &whole)) {
        buf_printf(out, " interpreter_stacks=%.1f%% proven=%.1f%%", whole,
                   percent(p->meta.shares[SHARE_PROVEN], read));
        buf_text(out, p->meta.shares[SHARE_UNPROVABLE] > 0 ? " (the kernel does not tell when threads run)" : "");
        uint64_t consistent = p->meta.consistent[CONSISTENT_WHOLE] + p->meta.consistent[CONSISTENT_PART];
        if (consistent > 0) {
            buf_printf(out, " consistent=%.1f%%", percent(consistent, read));
        }
    }
    stops_tell(&p->meta.stops, out);
    if (p->meta.excluded > 0) {
        buf_printf(out, " left_out=%llu", (unsigned long long)p->meta.excluded);
    }
    if (p->meta.unsampled > 0) {
        buf_printf(out, " unfollowed=%llu", (unsigned long long)p->meta.unsampled);
    }
    const struct profile_uploads *u = &p->meta.uploads;
    if (u->any) {
        buf_printf(out, " sent=%llu waiting=%llu", (unsigned long long)u->fresh,
                   (unsigned long long)u->waiting);
    }
    if (u->dropped > 0) {
        buf_printf(out, " dropped=%llu", (unsigned long long)u->dropped);
    }
    buf_printf(out, " own=%.2fs/%.0fMB", seconds(p->meta.own_cpu_ns),
               (double)p->meta.own_rss_bytes / 1048576.0);
    if (p->meta.budget != 0) {
        struct str budget = profile_text(p, p->meta.budget);
        buf_printf(out, " (%.*s)", (int)budget.len, budget.ptr);
    }
    if (w->formats != 0) {
        buf_printf(out, " to %s%s%s", o->dir, outputs_slash(o), w->stem);
    } else if (problem != NULL) { /* which was said once */
        buf_text(out, " (no files)");
    }
}

static bool has_waiting_stack(const struct profile *p)
{
    bool found = false;
    vec_each(&p->waits, wait)
    {
        found = found || p->nodes.at[wait->node].parent != 0; /* more than "[off-CPU]" */
    }
    return found;
}

/* A window in which CPU time worth a word was used but not one stack was read, nor that of a thread that waits, is no
 * success. */
static bool is_empty(const struct profile *p, const struct profile_totals *sum)
{
    return !has_waiting_stack(p) && sum->cpu_ns == sum->leaf_ns[FRAME_ACCOUNT] && unseen_is_much(sum);
}

static void say_empty(struct log *log, const struct profile *p, const struct profile_totals *sum)
{
    struct str reason = profile_text(p, p->meta.reason);
    struct buf unread;
    buf_init(&unread, TEXT_MAX);
    unread_add(&unread, p, sum, "; ");
    /* the names in the reason change; its gate stands in each window's line */
    log_once_for(log, LOG_WARNING, "EMPTY", "EMPTY: %.1f s CPU, no stack readable: %.*s%s",
                 seconds(sum->cpu_ns), (int)reason.len, reason.ptr, buf_cstr(&unread));
    buf_release(&unread);
}

void summary_window(struct log *log, const struct profile *p, const struct outputs *outputs,
                    const struct outputs_written *written, const char *problem, struct profile *heaviest)
{
    struct profile_totals sum = profile_sum(p);
    struct buf text;
    struct fields fields = {0};
    buf_init(&text, 4 * TEXT_MAX); /* paths are long */
    buf_init(&fields.text, TEXT_MAX);
    if (log->terminal && log->format == LOG_TEXT) {
        terminal_seen(p, &sum, &text);
        run_end_add(log, heaviest, &text);
        terminal_cost(p, outputs, written, problem, &text);
    } else {
        log_line(p, &sum, outputs, written, problem, &text);
    }
    fill_fields(&fields, p, &sum);
    log_event(log, LOG_INFO, "window", fields.at, fields.count, "%s", buf_cstr(&text));
    if (is_empty(p, &sum) && p->meta.reason != 0) {
        say_empty(log, p, &sum);
    } else if (!log->terminal) {
        unread_say(log, p, &sum);
    }
    if (problem != NULL) {
        log_once(log, LOG_ERROR, "%s", problem);
    }
    buf_release(&text);
    buf_release(&fields.text);
}

/* The report of `pillion report` as text and as JSON. Both walk the same rows: kinds of code with what was not seen,
 * functions, paths, processes. What is CPU time or another time is told in seconds as text; counts and bytes are told
 * as they are. */
#include "encode/report_text.h"

#include "base/json.h"
#include "base/time.h"
#include "base/utf8.h"
#include "base/version.h"
#include "encode/value.h"

#include <stdlib.h>

enum { PATH_NODES_MAX = 16384 };

struct writer {
    const struct report *r;
    const struct profile *p;
    struct profile_totals sum;
    size_t top;
    struct buf *out;
    bool is_counted; /* no time: column names have no unit */
};

static struct writer writer_of(const struct report *r, const struct profile *p, size_t top, struct buf *out)
{
    return (struct writer){r, p, profile_sum(p), top, out, value_is_counted(p)};
}

static double percent(const struct writer *w, uint64_t part)
{
    return w->r->all == 0 ? 0.0 : 100.0 * (double)part / (double)w->r->all;
}

/* ---- processes ---- */

struct process_row {
    uint64_t weight;
    uint32_t process;
};

static int heavier(const void *left, const void *right)
{
    const struct process_row *a = left, *b = right;
    if (a->weight != b->weight) {
        return a->weight > b->weight ? -1 : 1;
    }
    return a->process < b->process ? -1 : 1;
}

/* Those with weight, the heaviest first; their number. Null when memory ends, or there are none. */
static struct process_row *processes_of(const struct profile *p, size_t *count)
{
    struct process_row *rows = calloc(p->processes.len + 1, sizeof *rows);
    *count = 0;
    for (size_t i = 0; rows != NULL && i < p->processes.len; i++) {
        rows[i].process = (uint32_t)i;
    }
    for (size_t i = 1; rows != NULL && i < p->samples.len; i++) {
        const struct sample *s = &p->samples.at[i];
        rows[p->threads.at[s->thread].process].weight += s->cpu_ns;
    }
    if (rows != NULL) {
        qsort(rows, p->processes.len, sizeof *rows, heavier);
        while (*count < p->processes.len && rows[*count].weight > 0) {
            ++*count;
        }
    }
    return rows;
}

static size_t process_count(const struct profile *p)
{
    size_t count;
    free(processes_of(p, &count));
    return count;
}

/* ---- kinds ---- */

/* The largest first: their number. */
static size_t kinds_of(const struct writer *w, uint8_t out[static FRAME_KIND_COUNT])
{
    size_t count = 0;
    for (uint8_t kind = 0; kind < FRAME_KIND_COUNT; kind++) {
        uint64_t weight = w->sum.leaf_ns[kind];
        if (kind == FRAME_ACCOUNT || weight == 0) {
            continue;
        }
        size_t at = count++;
        for (; at > 0 && w->sum.leaf_ns[out[at - 1]] < weight; at--) {
            out[at] = out[at - 1];
        }
        out[at] = kind;
    }
    return count;
}

/* ---- text ---- */

static void put_amount(const struct writer *w, uint64_t amount)
{
    if (w->is_counted) {
        buf_printf(w->out, " %12llu", (unsigned long long)amount);
    } else {
        buf_printf(w->out, " %12.3f", (double)amount / (double)NS_PER_S);
    }
}

static void put_line(const struct writer *w, const char *key, struct str text)
{
    if (text.len > 0) {
        buf_printf(w->out, "%s: ", key);
        utf8_visible(w->out, text);
        buf_byte(w->out, '\n');
    }
}

static void put_window(const struct writer *w)
{
    const struct profile_meta *m = &w->p->meta;
    char from[TIME_TEXT_MAX], to[TIME_TEXT_MAX];
    if (m->start_wall_ns == 0 || m->end_wall_ns <= m->start_wall_ns) {
        return;
    }
    time_iso_seconds(m->start_wall_ns, from);
    time_iso_seconds(m->end_wall_ns, to);
    buf_printf(w->out, "window: %sZ to %sZ, %.1f s\n", from, to,
               (double)(m->end_wall_ns - m->start_wall_ns) / (double)NS_PER_S);
}

static void put_head(const struct writer *w)
{
    struct str name = value_name(w->p), noun = w->is_counted ? value_noun(w->p) : STR("s");
    size_t processes = process_count(w->p);
    buf_text(w->out, "total: ");
    if (w->is_counted) {
        buf_printf(w->out, "%llu ", (unsigned long long)w->r->all);
    } else {
        buf_printf(w->out, "%.3f ", (double)w->r->all / (double)NS_PER_S);
    }
    utf8_visible(w->out, noun);
    if (!str_eq(noun, name)) {
        buf_text(w->out, " of ");
        utf8_visible(w->out, name);
    }
    buf_printf(w->out, ", %llu samples, %zu process%s\n", (unsigned long long)w->sum.count, processes,
               processes == 1 ? "" : "es");
    put_window(w);
    put_line(w, "service", profile_text(w->p, w->p->meta.service));
    put_line(w, "host", profile_text(w->p, w->p->meta.host));
    put_line(w, "how", profile_text(w->p, w->p->meta.mode));
    uint64_t missing = w->sum.leaf_ns[FRAME_ACCOUNT];
    if (missing > 0) {
        buf_printf(w->out, "not seen: %.1f %%\n", percent(w, missing));
        put_line(w, "why", profile_text(w->p, w->p->meta.reason));
    }
}

static void put_kinds(const struct writer *w)
{
    uint8_t kinds[FRAME_KIND_COUNT];
    size_t count = kinds_of(w, kinds);
    buf_printf(w->out, "\nshare_%% %12s  kind\n", w->is_counted ? "amount" : "seconds");
    for (size_t i = 0; i < count; i++) {
        buf_printf(w->out, "%7.2f", percent(w, w->sum.leaf_ns[kinds[i]]));
        put_amount(w, w->sum.leaf_ns[kinds[i]]);
        buf_printf(w->out, "  %s\n", languages[kinds[i]].name);
    }
    for (unsigned a = 0; a < ACCOUNT_COUNT; a++) {
        if (w->sum.account_ns[a] > 0) {
            buf_printf(w->out, "%7.2f", percent(w, w->sum.account_ns[a]));
            put_amount(w, w->sum.account_ns[a]);
            buf_printf(w->out, "  %s\n", account_name((enum account)a));
        }
    }
}

static size_t function_count(const struct writer *w)
{
    return w->r->functions.len < w->top ? w->r->functions.len : w->top;
}

static void put_functions(const struct writer *w)
{
    const char *own = w->is_counted ? "own" : "own_s", *total = w->is_counted ? "total" : "total_s";
    buf_printf(w->out, "\n  own_%% total_%% %12s %12s  kind        function\n", own, total);
    for (size_t i = 0; i < function_count(w); i++) {
        const struct report_function *f = &w->r->functions.at[i];
        buf_printf(w->out, "%7.2f %7.2f", percent(w, f->own), percent(w, f->total));
        put_amount(w, f->own);
        put_amount(w, f->total);
        buf_printf(w->out, "  %-10s  ", languages[f->kind].name);
        utf8_visible(w->out, profile_text(w->p, f->name));
        buf_byte(w->out, '\n');
    }
}

static size_t path_count(const struct writer *w)
{
    return w->r->paths.len < w->top ? w->r->paths.len : w->top;
}

static void put_paths(const struct writer *w)
{
    buf_printf(w->out, "\nshare_%% %12s  path\n", w->is_counted ? "amount" : "seconds");
    for (size_t i = 0; i < path_count(w); i++) {
        const struct report_path *path = &w->r->paths.at[i];
        buf_printf(w->out, "%7.2f", percent(w, path->total));
        put_amount(w, path->total);
        buf_text(w->out, "  ");
        report_path(w->r, w->p, path->node, REPORT_ANY, w->out);
        buf_byte(w->out, '\n');
    }
}

static void put_process(const struct writer *w, const struct process_row *row)
{
    const struct process *process = &w->p->processes.at[row->process];
    struct str container = profile_text(w->p, process->container);
    buf_printf(w->out, "%7.2f", percent(w, row->weight));
    put_amount(w, row->weight);
    if (process->pid != 0) {
        buf_printf(w->out, " %10u  ", process->pid);
    } else {
        buf_printf(w->out, " %10s  ", "-");
    }
    utf8_visible(w->out, profile_text(w->p, process->name));
    if (container.len > 0) {
        buf_text(w->out, " in ");
        utf8_visible(w->out, container);
    }
    buf_byte(w->out, '\n');
}

static void put_processes(const struct writer *w)
{
    size_t count;
    struct process_row *rows = processes_of(w->p, &count);
    buf_printf(w->out, "\nshare_%% %12s        pid  process\n", w->is_counted ? "amount" : "seconds");
    for (size_t i = 0; i < count && i < w->top; i++) {
        put_process(w, &rows[i]);
    }
    free(rows);
}

void report_text(const struct report *r, const struct profile *p, size_t top, struct buf *out)
{
    struct writer w = writer_of(r, p, top, out);
    put_head(&w);
    put_kinds(&w);
    put_functions(&w);
    put_paths(&w);
    put_processes(&w);
}

/* ---- JSON ---- */

static void key(const struct writer *w, const char *name)
{
    buf_printf(w->out, ", \"%s\": ", name);
}

/* Null when it is empty. */
static void member(const struct writer *w, const char *name, struct str text)
{
    key(w, name);
    if (text.len > 0) {
        json_text(w->out, text);
    } else {
        buf_text(w->out, "null");
    }
}

static void moment(const struct writer *w, const char *name, uint64_t wall_ns)
{
    char text[TIME_TEXT_MAX] = "";
    if (wall_ns != 0) {
        time_rfc3339(wall_ns, text);
    }
    member(w, name, str_of(text));
}

static void amount(const struct writer *w, uint64_t value)
{
    buf_printf(w->out, ", \"amount\": %llu, \"percent\": %.2f", (unsigned long long)value, percent(w, value));
}

static void begin_list(const struct writer *w, const char *name)
{
    key(w, name);
    buf_byte(w->out, '[');
}

/* An object whose first member is a name. */
static void begin_item(const struct writer *w, bool is_first, const char *name, struct str text)
{
    buf_printf(w->out, "%s{\"%s\": ", is_first ? "" : ", ", name);
    json_text(w->out, text);
}

static void json_kinds(const struct writer *w)
{
    uint8_t kinds[FRAME_KIND_COUNT];
    size_t count = kinds_of(w, kinds);
    begin_list(w, "kinds");
    for (size_t i = 0; i < count; i++) {
        begin_item(w, i == 0, "kind", str_of(languages[kinds[i]].name));
        amount(w, w->sum.leaf_ns[kinds[i]]);
        buf_byte(w->out, '}');
    }
    buf_byte(w->out, ']');
    begin_list(w, "not_seen");
    bool is_first = true;
    for (unsigned a = 0; a < ACCOUNT_COUNT; a++) {
        if (w->sum.account_ns[a] > 0) {
            begin_item(w, is_first, "name", str_of(account_name((enum account)a)));
            amount(w, w->sum.account_ns[a]);
            buf_byte(w->out, '}');
            is_first = false;
        }
    }
    buf_byte(w->out, ']');
    member(w, "not_seen_reason", profile_text(w->p, w->p->meta.reason));
}

static void json_functions(const struct writer *w)
{
    key(w, "function_count");
    buf_printf(w->out, "%zu", w->r->functions.len);
    begin_list(w, "functions");
    for (size_t i = 0; i < function_count(w); i++) {
        const struct report_function *f = &w->r->functions.at[i];
        begin_item(w, i == 0, "function", profile_text(w->p, f->name));
        member(w, "kind", str_of(languages[f->kind].name));
        buf_printf(w->out, ", \"own\": %llu, \"total\": %llu, \"own_percent\": %.2f, \"total_percent\": %.2f}",
                   (unsigned long long)f->own, (unsigned long long)f->total, percent(w, f->own), percent(w, f->total));
    }
    buf_byte(w->out, ']');
}

/* The functions from the root to a node. */
static void json_path(const struct writer *w, uint32_t node)
{
    VEC(uint32_t) nodes = {0};
    for (uint32_t n = node; n != 0 && nodes.len < PATH_NODES_MAX; n = w->r->fold.nodes.at[n].parent) {
        uint32_t *added = vec_push(&nodes);
        if (added == NULL) {
            break;
        }
        *added = n;
    }
    for (size_t i = nodes.len; i-- > 0;) {
        const struct fold_node *n = &w->r->fold.nodes.at[nodes.at[i]];
        begin_item(w, i == nodes.len - 1, "function", profile_text(w->p, n->name));
        member(w, "kind", str_of(languages[n->kind].name));
        buf_byte(w->out, '}');
    }
    vec_release(&nodes);
}

static void json_paths(const struct writer *w)
{
    begin_list(w, "paths");
    for (size_t i = 0; i < path_count(w); i++) {
        const struct report_path *path = &w->r->paths.at[i];
        buf_printf(w->out, "%s{\"amount\": %llu, \"percent\": %.2f, \"functions\": [", i == 0 ? "" : ", ",
                   (unsigned long long)path->total, percent(w, path->total));
        json_path(w, path->node);
        buf_text(w->out, "]}");
    }
    buf_byte(w->out, ']');
}

static void json_processes(const struct writer *w)
{
    size_t count;
    struct process_row *rows = processes_of(w->p, &count);
    key(w, "process_count");
    buf_printf(w->out, "%zu", count);
    begin_list(w, "processes");
    for (size_t i = 0; i < count && i < w->top; i++) {
        const struct process *process = &w->p->processes.at[rows[i].process];
        begin_item(w, i == 0, "process", profile_text(w->p, process->name));
        key(w, "pid");
        if (process->pid != 0) {
            buf_printf(w->out, "%u", process->pid);
        } else {
            buf_text(w->out, "null");
        }
        member(w, "container", profile_text(w->p, process->container));
        member(w, "runtime", profile_text(w->p, process->runtime));
        amount(w, rows[i].weight);
        buf_byte(w->out, '}');
    }
    buf_byte(w->out, ']');
    free(rows);
}

void report_json(const struct report *r, const struct profile *p, size_t top, struct buf *out)
{
    struct writer w = writer_of(r, p, top, out);
    const struct profile_meta *m = &p->meta;
    buf_text(out, "{\"version\": ");
    json_text(out, str_of(PILLION_VERSION));
    member(&w, "value", value_name(p));
    member(&w, "unit", w.is_counted ? value_noun(p) : STR(VALUE_TIME_UNIT));
    buf_printf(out, ", \"total\": %llu, \"samples\": %llu, \"frequency_hz\": %u", (unsigned long long)r->all,
               (unsigned long long)w.sum.count, m->frequency_hz);
    moment(&w, "start", m->start_wall_ns);
    moment(&w, "end", m->end_wall_ns);
    member(&w, "service", profile_text(p, m->service));
    member(&w, "host", profile_text(p, m->host));
    member(&w, "how", profile_text(p, m->mode));
    json_kinds(&w);
    json_functions(&w);
    json_paths(&w);
    json_processes(&w);
    buf_text(out, "}\n");
}

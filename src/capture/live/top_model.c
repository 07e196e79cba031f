/* Adds windows to the rows of `pillion top`, and makes what is shown of the last ones. A stack is walked once per
 * sample; a function that is on it twice is found by the number of the sample that it was met in last. Rows are never
 * removed: a row that is shown keeps its number, and a table that is full has its "(others)". */
#include "capture/live/top_model.h"
#include "base/ascii.h"

#include <stdlib.h>

enum { OTHERS = 1 }; /* of the first view; that of view v is OTHERS + v */

/* ---- rows ---- */

static uint64_t hash_row(const struct top_row *r)
{
    uint64_t place = (uint64_t)r->parent << 32 | (uint64_t)r->table << 8 | r->kind;
    return hash_u64(str_hash(r->name) ^ hash_u64(place ^ (r->table == TOP_LINES ? (uint64_t)r->line << 40 : 0)));
}

static uint64_t row_hash(const void *owner, uint32_t id)
{
    return hash_row(&((const struct top_model *)owner)->rows.at[id]);
}

static bool row_same(const void *owner, uint32_t id, const void *key)
{
    const struct top_row *a = &((const struct top_model *)owner)->rows.at[id], *b = key;
    return a->table == b->table && a->parent == b->parent && a->kind == b->kind &&
           (a->table != TOP_LINES || a->line == b->line) && str_eq(a->name, b->name);
}

static const struct intern_owner ops = {row_hash, row_same};

static struct str cut(struct str text)
{
    return str_sub(text, 0, TOP_NAME_MAX);
}

/* 0: there is no room. */
static uint32_t add_row(struct top_model *m, const struct top_row *key, uint64_t hash)
{
    struct str name = arena_copy(&m->text, key->name), file = arena_copy(&m->text, key->file);
    struct top_row *row = m->rows.len >= TOP_ROWS_MAX || name.ptr == NULL ? NULL : vec_push(&m->rows);
    if (row == NULL) {
        return 0;
    }
    *row = *key;
    row->name = name;
    row->file = file;
    uint32_t id = (uint32_t)(m->rows.len - 1);
    return intern_add(&m->ids, &ops, m, hash, id) ? id : 0;
}

/* Without room "(others)", where there is that: 0 for a line, and for a function that is counted twice. */
static uint32_t row_of(struct top_model *m, struct top_row key)
{
    key.name = cut(key.name);
    key.file = cut(key.file);
    uint64_t hash = hash_row(&key);
    uint32_t id = intern_find(&m->ids, &ops, m, hash, &key);
    id = id != 0 ? id : add_row(m, &key, hash);
    bool has_others = key.table < TOP_VIEWS && (key.table != TOP_FUNCTIONS || key.parent == 0);
    return id != 0 || !has_others ? id : OTHERS + (uint32_t)key.table;
}

bool top_init(struct top_model *m, uint64_t span_ns)
{
    *m = (struct top_model){.span_ns = span_ns};
    arena_init(&m->text, TOP_TEXT_BYTES);
    bool good = vec_push(&m->rows) != NULL;
    for (unsigned view = 0; view < TOP_VIEWS; view++) {
        struct top_row *others = good ? vec_push(&m->rows) : NULL;
        good = others != NULL;
        if (good) {
            *others = (struct top_row){.name = STR("(others)"), .table = (uint8_t)view, .kind = FRAME_NATIVE};
        }
    }
    return good;
}

void top_release(struct top_model *m)
{
    for (size_t i = 0; i < TOP_SLOTS; i++) {
        vec_release(&m->slots[i].parts);
    }
    vec_release(&m->rows);
    vec_release(&m->touched);
    intern_release(&m->ids);
    arena_release(&m->text);
    free(m->of_frame);
}

/* ---- one window ---- */

/* Row 0 is no row. */
static void touch(struct top_model *m, uint32_t id, uint64_t own_ns, uint64_t total_ns)
{
    struct top_row *row = &m->rows.at[id];
    if (id == 0) {
        return;
    }
    if (row->now.own_ns + row->now.total_ns == 0) {
        uint32_t *touched = vec_push(&m->touched);
        if (touched == NULL) {
            return;
        }
        *touched = id;
    }
    row->now.own_ns += own_ns;
    row->now.total_ns += total_ns;
}

/* Once per sample, whatever leads there. */
static void touch_total(struct top_model *m, uint32_t id, uint64_t ns)
{
    if (id != 0 && m->rows.at[id].met != m->samples_met) {
        m->rows.at[id].met = m->samples_met;
        touch(m, id, 0, ns);
    }
}

static uint32_t function_of(struct top_model *m, const struct profile *p, uint32_t frame, uint32_t parent)
{
    uint32_t *known = &m->of_frame[parent == 0 ? frame : m->frames + frame];
    if (*known == 0) {
        const struct frame *f = &p->frames.at[frame];
        *known = row_of(m, (struct top_row){.name = profile_text(p, f->name),
                                            .file = profile_text(p, f->file),
                                            .line = f->first_line,
                                            .table = TOP_FUNCTIONS,
                                            .parent = parent,
                                            .kind = f->kind});
    }
    return *known;
}

static uint32_t language_of(struct top_model *m, uint8_t kind)
{
    const char *name = kind == FRAME_ACCOUNT ? "(not seen)" : languages[kind].name;
    return row_of(m, (struct top_row){.name = str_of(name), .table = TOP_LANGUAGES, .kind = kind});
}

static uint32_t named(struct top_model *m, enum top_table table, const char *form, struct str name, uint32_t number,
                      uint32_t parent)
{
    struct buf text;
    buf_init(&text, TOP_NAME_MAX);
    buf_printf(&text, form, (int)(name.len < TOP_NAME_MAX / 2 ? name.len : TOP_NAME_MAX / 2), name.ptr, number);
    uint32_t row = row_of(m, (struct top_row){.name = buf_slice(&text), .table = (uint8_t)table, .parent = parent});
    buf_release(&text);
    return row;
}

/* True: functions of it are counted. */
static bool add_thread(struct top_model *m, const struct profile *p, uint32_t thread, uint64_t ns)
{
    const struct thread *t = &p->threads.at[thread];
    const struct process *process = &p->processes.at[t->process];
    uint32_t of_process =
        named(m, TOP_PROCESSES, "%.*s (pid %u)", profile_text(p, process->name), process->pid, 0);
    uint32_t of_thread = named(m, TOP_THREADS, "%.*s (tid %u)", profile_text(p, t->name), t->tid, of_process);
    touch(m, of_process, ns, ns);
    touch(m, of_thread, ns, ns);
    return m->only != 0 && (m->only == of_process || m->only == of_thread);
}

/* Below `parent`. */
static void add_functions(struct top_model *m, const struct profile *p, const struct sample *s, uint32_t parent)
{
    const struct frame *leaf = &p->frames.at[p->nodes.at[s->node].frame];
    uint32_t function = function_of(m, p, p->nodes.at[s->node].frame, parent);
    touch(m, function, s->cpu_ns, 0);
    if (leaf->line != 0 && function >= OTHERS + TOP_VIEWS) {
        struct top_row line = {.file = profile_text(p, leaf->file), .table = TOP_LINES, .parent = function};
        line.line = leaf->line;
        touch(m, row_of(m, line), s->cpu_ns, s->cpu_ns);
    }
    for (uint32_t node = s->node; node != 0; node = p->nodes.at[node].parent) {
        for (uint32_t f = p->nodes.at[node].frame; f != 0; f = p->frames.at[f].caller) {
            touch_total(m, function_of(m, p, f, parent), s->cpu_ns);
        }
    }
}

/* A language's own time is that of its leaves, as functions have it. */
static bool add_languages(struct top_model *m, const struct profile *p, const struct sample *s)
{
    uint32_t leaf = language_of(m, p->frames.at[p->nodes.at[s->node].frame].kind);
    touch(m, leaf, s->cpu_ns, 0);
    for (uint32_t node = s->node; node != 0; node = p->nodes.at[node].parent) {
        for (uint32_t f = p->nodes.at[node].frame; f != 0; f = p->frames.at[f].caller) {
            touch_total(m, language_of(m, p->frames.at[f].kind), s->cpu_ns);
        }
    }
    return m->only != 0 && m->only == leaf;
}

static void add_sample(struct top_model *m, const struct profile *p, const struct sample *s)
{
    m->samples_met++;
    bool only = add_languages(m, p, s);
    only = add_thread(m, p, s->thread, s->cpu_ns) || only;
    add_functions(m, p, s, 0);
    if (only) {
        add_functions(m, p, s, m->only);
    }
}

/* ---- the last windows ---- */

static void add_facts(struct top_facts *to, const struct top_facts *more)
{
    to->length_ns += more->length_ns;
    to->cpu_ns += more->cpu_ns;
    to->not_seen_ns += more->not_seen_ns;
    to->samples += more->samples;
    to->own_cpu_ns += more->own_cpu_ns;
}

/* Lets go of what the span is covered without. */
static void let_go(struct top_model *m, uint64_t length_ns)
{
    uint64_t kept_ns = length_ns;
    for (size_t i = 0; i < m->count; i++) {
        kept_ns += m->slots[(m->first + i) % TOP_SLOTS].facts.length_ns;
    }
    while (m->count > 0 && (m->count == TOP_SLOTS || kept_ns - m->slots[m->first].facts.length_ns >= m->span_ns)) {
        kept_ns -= m->slots[m->first].facts.length_ns;
        m->first = (m->first + 1) % TOP_SLOTS;
        m->count--;
    }
}

static void keep_window(struct top_model *m, const struct top_facts *facts)
{
    let_go(m, facts->length_ns);
    struct top_slot *slot = &m->slots[(m->first + m->count++) % TOP_SLOTS];
    slot->facts = *facts;
    slot->only = m->only;
    vec_clear(&slot->parts);
    vec_each(&m->touched, id)
    {
        struct top_row *row = &m->rows.at[*id];
        struct top_part *part = vec_push(&slot->parts);
        if (part != NULL) {
            *part = (struct top_part){*id, row->now};
        }
        row->sum.own_ns += row->now.own_ns;
        row->sum.total_ns += row->now.total_ns;
        row->now = (struct top_time){0};
    }
    vec_clear(&m->touched);
}

void top_add(struct top_model *m, const struct profile *p)
{
    const struct profile_meta *meta = &p->meta;
    struct profile_totals sum = profile_sum(p);
    struct top_facts facts = {.length_ns = meta->end_wall_ns - meta->start_wall_ns,
                              .cpu_ns = sum.cpu_ns,
                              .not_seen_ns = sum.leaf_ns[FRAME_ACCOUNT],
                              .samples = sum.count,
                              .own_cpu_ns = meta->own_cpu_ns};
    free(m->of_frame);
    m->frames = p->frames.len;
    m->of_frame = calloc(2 * p->frames.len + 1, sizeof *m->of_frame);
    for (size_t i = 1; m->of_frame != NULL && i < p->samples.len; i++) {
        if (p->samples.at[i].cpu_ns > 0) {
            add_sample(m, p, &p->samples.at[i]);
        }
    }
    m->processes = 0;
    for (size_t i = 1; i < p->processes.len; i++) {
        m->processes += p->processes.at[i].cpu_ns > 0;
    }
    m->own_rss_bytes = meta->own_rss_bytes;
    m->hz = meta->mean_hz > 0 ? meta->mean_hz : meta->frequency_hz;
    keep_window(m, &facts);
    add_facts(&m->sum, &facts);
    m->only_ns += sum.cpu_ns;
}

void top_only(struct top_model *m, uint32_t row)
{
    if (m->only != row) {
        m->only = row;
        m->only_ns = m->only_recent_ns = m->only_since_ns = 0;
    }
}

static bool is_below_only(const struct top_row *row)
{
    return row->table == TOP_FUNCTIONS && row->parent != 0;
}

uint64_t top_recent_ns(const struct top_model *m, const struct top_row *row)
{
    return is_below_only(row) ? m->only_recent_ns : m->recent.cpu_ns;
}

uint64_t top_since_ns(const struct top_model *m, const struct top_row *row)
{
    return is_below_only(row) ? m->only_since_ns : m->since.cpu_ns;
}

void top_refresh(struct top_model *m)
{
    vec_each(&m->rows, row)
    {
        row->recent = (struct top_time){0};
        row->since = row->sum;
    }
    m->recent = (struct top_facts){0};
    m->since = m->sum;
    m->only_recent_ns = 0;
    m->only_since_ns = m->only_ns;
    for (size_t i = 0; i < m->count; i++) {
        const struct top_slot *slot = &m->slots[(m->first + i) % TOP_SLOTS];
        add_facts(&m->recent, &slot->facts);
        m->only_recent_ns += slot->only == m->only ? slot->facts.cpu_ns : 0;
        vec_each(&slot->parts, part)
        {
            m->rows.at[part->row].recent.own_ns += part->time.own_ns;
            m->rows.at[part->row].recent.total_ns += part->time.total_ns;
        }
    }
}

/* ---- lists ---- */

static bool has_text(struct str text, struct str search)
{
    for (size_t at = 0; at + search.len <= text.len; at++) {
        size_t same = 0;
        while (same < search.len && ascii_lower(text.ptr[at + same]) == ascii_lower(search.ptr[same])) {
            same++;
        }
        if (same == search.len) {
            return true;
        }
    }
    return false;
}

static uint64_t key_of(const struct top_row *row, enum top_sort sort)
{
    switch (sort) {
    case TOP_BY_TOTAL:
        return row->recent.total_ns;
    case TOP_BY_OWN_SINCE:
        return row->since.own_ns;
    case TOP_BY_TOTAL_SINCE:
        return row->since.total_ns;
    default:
        return row->recent.own_ns;
    }
}

/* Equal ones by what is rarely equal, then by name: the order of two idle functions does not change by chance. */
static int compare(const void *a, const void *b, void *context)
{
    const struct top_entry *x = a, *y = b;
    const struct top_row *rows = context, *r = &rows[x->row], *s = &rows[y->row];
    if (x->key != y->key) {
        return x->key > y->key ? -1 : 1;
    }
    if (r->recent.total_ns != s->recent.total_ns) {
        return r->recent.total_ns > s->recent.total_ns ? -1 : 1;
    }
    if (r->since.total_ns != s->since.total_ns) {
        return r->since.total_ns > s->since.total_ns ? -1 : 1;
    }
    return str_compare(r->name, s->name);
}

static int compare_names(const void *a, const void *b, void *context)
{
    const struct top_entry *x = a, *y = b;
    const struct top_row *rows = context;
    int order = str_compare(rows[x->row].name, rows[y->row].name);
    return order != 0 ? order : compare(a, b, context);
}

void top_list_rows(const struct top_model *m, enum top_table table, uint32_t parent, enum top_sort sort,
                   struct str search, struct top_list *out)
{
    vec_clear(&out->at);
    for (uint32_t id = 1; id < m->rows.len; id++) {
        const struct top_row *row = &m->rows.at[id];
        if (row->table != table || row->since.total_ns == 0 ||
            ((table == TOP_LINES || table == TOP_FUNCTIONS) && row->parent != parent) ||
            !has_text(row->name, search)) {
            continue;
        }
        struct top_entry *entry = vec_push(&out->at);
        if (entry != NULL) {
            *entry = (struct top_entry){key_of(row, sort), id};
        }
    }
    if (out->at.len > 1) {
        qsort_r(out->at.at, out->at.len, sizeof *out->at.at, sort == TOP_BY_NAME ? compare_names : compare, m->rows.at);
    }
}

double top_percent(uint64_t part_ns, uint64_t whole_ns)
{
    return whole_ns == 0 ? 0.0 : 100.0 * (double)part_ns / (double)whole_ns;
}

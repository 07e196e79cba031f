/* What a flame graph's page holds of a profile: the folded tree of each view as numbers, each name
 * once, and what a process or a frame is. Written in the form that flame.js reads, as small as
 * possible. */
#include "encode/flame_data.h"

#include <stdlib.h>
#include <zlib.h>

#include "encode/flame.h"

static bool no_memory(struct err *err)
{
    return err_set(err, ERR_MEMORY, 0, "no memory to write the flame graph");
}

/* Pre-order without a stack. */

struct walk {
    const struct fold_node *at;
    uint32_t node, depth;
    uint32_t climbed; /* levels left before this node was reached */
};

static bool walk_next(struct walk *w)
{
    w->climbed = 0;
    if (w->at[w->node].first_child != 0) {
        w->node = w->at[w->node].first_child;
        w->depth++;
        return true;
    }
    while (w->node != 0) {
        uint32_t sibling = w->at[w->node].next_sibling;
        w->climbed++;
        if (sibling != 0) {
            w->node = sibling;
            return true;
        }
        w->node = w->at[w->node].parent;
        w->depth--;
    }
    return false;
}

static uint32_t file_kind(uint8_t kind)
{
    return kind < FRAME_KIND_COUNT ? kind : FLAME_KIND_PROCESS + (kind - FOLD_KIND_PROCESS);
}

static uint32_t find_entry(const struct flame_tally *t, uint32_t name, uint32_t kind)
{
    uint32_t id = t->entry_of[name];
    while (id != 0 && t->entries.at[id].kind != kind) {
        id = t->entries.at[id].other;
    }
    return id;
}

/* The root is entry 0, and so is a node whose entry found no memory. */
static uint32_t entry_of_node(const struct flame_tally *t, const struct fold_node *at, uint32_t n)
{
    return n == 0 ? 0 : find_entry(t, at[n].name, file_kind(at[n].kind));
}

static bool add_entry(struct flame_tally *t, uint32_t name, uint32_t kind, uint32_t *out)
{
    uint32_t id = find_entry(t, name, kind);
    if (id == 0) {
        struct flame_entry *added = vec_push(&t->entries);
        if (added == NULL) {
            return false;
        }
        *added = (struct flame_entry){.name = name, .kind = kind, .other = t->entry_of[name]};
        id = (uint32_t)(t->entries.len - 1);
        t->entry_of[name] = id;
    }
    *out = id;
    return true;
}

/* Everything below a node at the last allowed depth becomes one leaf in the place of its first
 * child. */
static void truncate_below(struct flame_tally *t, struct fold_node *at, uint32_t n)
{
    uint32_t child = at[n].first_child;
    if (child != 0) {
        uint64_t below_ns = at[n].total_ns - at[n].self_ns;
        at[child] = (struct fold_node){.self_ns = below_ns, .total_ns = below_ns, .parent = n,
                                       .name = t->truncated, .kind = FRAME_ACCOUNT};
    }
}

static bool tally_fold(struct flame_tally *t, size_t which)
{
    struct fold_node *at = t->folds[which]->nodes.at;
    struct walk w = {.at = at};
    uint32_t last = 0;
    while (walk_next(&w)) {
        for (uint32_t i = 0; i < w.climbed; i++, last = at[last].parent) {
            t->entries.at[entry_of_node(t, at, last)].open--;
        }
        if (w.depth == FLAME_DEPTH_MAX - 1) {
            truncate_below(t, at, w.node);
        }
        uint32_t id;
        if (!add_entry(t, at[w.node].name, file_kind(at[w.node].kind), &id)) {
            return false;
        }
        struct flame_entry *e = &t->entries.at[id];
        if (which == 0) {
            e->self_ns += at[w.node].self_ns;
            e->total_ns += e->open == 0 ? at[w.node].total_ns : 0;
        } else {
            e->was_self_ns += at[w.node].self_ns;
        }
        e->open++;
        t->node_count[which]++;
        last = w.node;
    }
    for (; last != 0; last = at[last].parent) {
        t->entries.at[entry_of_node(t, at, last)].open--;
    }
    return true;
}

bool flame_tally_init(struct flame_tally *tally, struct profile *p, struct fold *fold,
                      struct fold *base, struct err *err)
{
    struct flame_tally t = {.profile = p, .folds = {fold, base}, .fold_count = base ? 2 : 1};
    t.truncated = profile_cstring(p, "[truncated]");
    t.entry_of = calloc(p->strings.len, sizeof *t.entry_of);
    bool ok = t.entry_of != NULL && vec_push(&t.entries) != NULL;
    for (size_t i = 0; ok && i < t.fold_count; i++) {
        ok = tally_fold(&t, i);
    }
    if (!ok) {
        flame_tally_release(&t);
        return no_memory(err);
    }
    *tally = t;
    return true;
}

/* A child has a larger number than its caller. */
static void sum_chosen(const struct flame_tally *t, const struct fold *fold, const uint8_t *chosen, uint64_t *below)
{
    const struct fold_node *at = fold->nodes.at;
    for (size_t n = fold->nodes.len; n-- > 1;) {
        below[n] += chosen[entry_of_node(t, at, (uint32_t)n)] ? at[n].self_ns : 0;
        below[at[n].parent] += below[n];
    }
}

bool flame_tally_part(struct flame_tally *t, size_t which, const uint8_t *chosen, uint64_t *sums, struct err *err)
{
    const struct fold *fold = t->folds[which];
    const struct fold_node *at = fold->nodes.at;
    uint64_t *below = calloc(fold->nodes.len, sizeof *below);
    if (below == NULL) {
        return no_memory(err);
    }
    sum_chosen(t, fold, chosen, below);
    struct walk w = {.at = at};
    uint32_t last = 0;
    while (walk_next(&w)) {
        for (uint32_t i = 0; i < w.climbed; i++, last = at[last].parent) {
            t->entries.at[entry_of_node(t, at, last)].open--;
        }
        uint32_t id = entry_of_node(t, at, w.node);
        sums[id] += t->entries.at[id].open++ == 0 ? below[w.node] : 0;
        last = w.node;
    }
    for (; last != 0; last = at[last].parent) {
        t->entries.at[entry_of_node(t, at, last)].open--;
    }
    free(below);
    return true;
}

void flame_tally_release(struct flame_tally *tally)
{
    vec_release(&tally->entries);
    vec_release(&tally->lines);
    free(tally->entry_of);
    tally->entry_of = NULL;
}

void flame_tally_place(struct flame_tally *tally, uint32_t name, enum frame_kind kind,
                       uint32_t place)
{
    uint32_t id = find_entry(tally, name, kind);
    if (id == 0 || place == 0) {
        return;
    }
    struct flame_entry *e = &tally->entries.at[id];
    e->place = !e->placed || e->place == place ? place : 0;
    e->placed = true;
}

/* Lines. A frame is a function at a line, so time is summed by frame, and then by function and line. */

struct line_row {
    uint64_t ns;
    uint32_t entry, line;
};

static bool has_lines(uint8_t kind)
{
    return kind < FRAME_KIND_COUNT && languages[kind].form == NAME_WITH_FILE;
}

static void note_first_line(struct flame_entry *e, struct str name)
{
    uint32_t line;
    if (language_line_in(name, &line).len > 0) {
        e->first_line = e->first_line == 0 || e->first_line == line ? line : FLAME_LINE_SEVERAL;
    }
}

/* The entries of frames that may have lines; false: there is none. */
static bool find_entries(struct flame_tally *t, const struct profile *p, struct line_row *rows)
{
    bool any = false;
    for (size_t i = 1; i < p->frames.len; i++) {
        const struct frame *f = &p->frames.at[i];
        rows[i].line = f->line;
        rows[i].entry = has_lines(f->kind) ? find_entry(t, t->folds[0]->name_of[i], f->kind) : 0;
        if (rows[i].entry != 0) {
            note_first_line(&t->entries.at[rows[i].entry], profile_text(p, f->name));
            any = true;
        }
    }
    return any;
}

static void weigh_frames(const struct profile *p, struct line_row *rows, uint32_t *met)
{
    for (size_t i = 1; i < p->samples.len; i++) {
        for (uint32_t n = p->samples.at[i].node; n != 0; n = p->nodes.at[n].parent) {
            struct line_row *row = &rows[p->nodes.at[n].frame];
            if (row->entry != 0 && met[row->entry] != i) {
                met[row->entry] = (uint32_t)i;
                row->ns += p->samples.at[i].cpu_ns;
            }
        }
    }
}

static int by_entry_and_line(const void *left, const void *right)
{
    const struct line_row *a = left, *b = right;
    int order = (a->entry > b->entry) - (a->entry < b->entry);
    return order != 0 ? order : (a->line > b->line) - (a->line < b->line);
}

static int by_entry_and_weight(const void *left, const void *right)
{
    const struct line_row *a = left, *b = right;
    int order = (a->entry > b->entry) - (a->entry < b->entry);
    order = order != 0 ? order : (a->ns < b->ns) - (a->ns > b->ns);
    return order != 0 ? order : by_entry_and_line(left, right);
}

/* One row per function and line; how many. */
static size_t sum_rows(struct line_row *rows, size_t count)
{
    size_t kept = 0;
    qsort(rows, count, sizeof *rows, by_entry_and_line);
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && by_entry_and_line(&rows[kept - 1], &rows[i]) == 0) {
            rows[kept - 1].ns += rows[i].ns;
        } else {
            rows[kept++] = rows[i];
        }
    }
    qsort(rows, kept, sizeof *rows, by_entry_and_weight);
    return kept;
}

/* The rows of one function, heaviest first. */
static bool keep_lines(struct flame_tally *t, const struct line_row *rows, size_t count)
{
    struct flame_entry *e = &t->entries.at[rows->entry];
    uint64_t sum_ns = 0;
    e->lines = (uint32_t)t->lines.len;
    for (size_t i = 0; i < count; i++) {
        sum_ns += rows[i].ns;
    }
    for (size_t i = 0; i < count && e->line_count < FLAME_LINES_MAX; i++) {
        uint32_t share = (uint32_t)((double)rows[i].ns * 1000 / (double)(sum_ns + (sum_ns == 0)) + 0.5);
        struct flame_line *added = rows[i].line == 0 || share == 0 ? NULL : vec_push(&t->lines);
        if (added != NULL) {
            *added = (struct flame_line){rows[i].line, share};
            e->line_count++;
        } else if (rows[i].line != 0 && share != 0) {
            return false;
        }
    }
    return true;
}

bool flame_tally_lines(struct flame_tally *t, const struct profile *p, struct err *err)
{
    struct line_row *rows = calloc(p->frames.len, sizeof *rows);
    uint32_t *met = calloc(t->entries.len, sizeof *met);
    bool ok = rows != NULL && met != NULL;
    size_t count = 0;
    if (ok && find_entries(t, p, rows)) {
        weigh_frames(p, rows, met);
        count = sum_rows(rows, p->frames.len);
    }
    for (size_t i = 0, end; ok && i < count; i = end) {
        for (end = i + 1; end < count && rows[end].entry == rows[i].entry;) {
            end++;
        }
        ok = rows[i].entry == 0 || keep_lines(t, &rows[i], end - i);
    }
    free(rows);
    free(met);
    return ok || no_memory(err);
}

/* Deflate and base64, streaming. */

struct packer {
    struct page *page;
    bool ok;
    z_stream deflate;
    size_t in_len;
    unsigned char in[16384];
    unsigned char out[6 * 1024]; /* a multiple of 3: base64 without padding in between */
};

static bool packer_begin(struct packer *k, struct page *page)
{
    k->page = page;
    k->in_len = 0;
    k->deflate = (z_stream){0};
    k->deflate.next_out = k->out;
    k->deflate.avail_out = sizeof k->out;
    k->ok = deflateInit2(&k->deflate, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    return k->ok;
}

static void put_block(struct packer *k)
{
    page_base64(k->page, k->out, sizeof k->out - k->deflate.avail_out);
    page_markup(k->page, "\n");
    k->deflate.next_out = k->out;
    k->deflate.avail_out = sizeof k->out;
}

static void press(struct packer *k, int flush)
{
    k->deflate.next_in = k->in;
    k->deflate.avail_in = (unsigned)k->in_len;
    k->in_len = 0;
    int state = Z_OK;
    while (k->ok && state != Z_STREAM_END && (k->deflate.avail_in > 0 || flush == Z_FINISH)) {
        state = deflate(&k->deflate, flush);
        k->ok = k->page->ok && (state == Z_OK || state == Z_STREAM_END);
        if (k->deflate.avail_out == 0) {
            put_block(k);
        }
    }
}

/* The tree is small numbers in almost random order: looking for repeats other than runs takes five
 * times as long and saves nothing. */
static bool search_runs_only(struct packer *k)
{
    press(k, Z_NO_FLUSH);
    int state = Z_BUF_ERROR;
    while (k->ok && state == Z_BUF_ERROR) { /* it may have to finish a block first */
        state = deflateParams(&k->deflate, 6, Z_RLE);
        if (k->deflate.avail_out == 0) {
            put_block(k);
        }
    }
    k->ok = k->ok && state == Z_OK;
    return k->ok;
}

static bool packer_end(struct packer *k)
{
    press(k, Z_FINISH);
    put_block(k);
    deflateEnd(&k->deflate);
    return k->ok && k->page->ok;
}

static void pack_bytes(struct packer *k, const void *ptr, size_t len)
{
    const unsigned char *from = ptr;
    while (len > 0) {
        if (k->in_len == sizeof k->in) {
            press(k, Z_NO_FLUSH);
        }
        size_t room = sizeof k->in - k->in_len, part = len < room ? len : room;
        memcpy(k->in + k->in_len, from, part);
        k->in_len += part;
        from += part;
        len -= part;
    }
}

static inline void pack(struct packer *k, uint64_t value)
{
    if (sizeof k->in - k->in_len < 10) {
        press(k, Z_NO_FLUSH);
    }
    while (value >= 0x80) {
        k->in[k->in_len++] = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    k->in[k->in_len++] = (unsigned char)value;
}

static void pack_front_coded(struct packer *k, struct str before, struct str text)
{
    size_t shared = 0;
    while (shared < before.len && shared < text.len && before.ptr[shared] == text.ptr[shared]) {
        shared++;
    }
    pack(k, shared);
    pack(k, text.len - shared);
    pack_bytes(k, text.ptr + shared, text.len - shared);
}

bool flame_data_pack(struct page *page, struct str bytes)
{
    struct packer *k = malloc(sizeof *k);
    if (k == NULL || !packer_begin(k, page)) {
        free(k);
        return no_memory(page->err);
    }
    pack_bytes(k, bytes.ptr, bytes.len);
    bool ok = packer_end(k);
    free(k);
    return ok;
}

/* Names and places. */

struct sorted {
    struct str text;
    uint32_t kind, entry;
};

static int by_text_and_kind(const void *left, const void *right)
{
    const struct sorted *a = left, *b = right;
    int order = str_compare(a->text, b->text);
    return order != 0 ? order : (a->kind > b->kind) - (a->kind < b->kind);
}

static struct sorted *sort_entries(const struct flame_tally *t)
{
    size_t count = t->entries.len - 1;
    struct sorted *names = malloc((count + 1) * sizeof *names);
    if (names == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        const struct flame_entry *e = &t->entries.at[i + 1];
        names[i] = (struct sorted){profile_text(t->profile, e->name), e->kind, (uint32_t)(i + 1)};
    }
    if (count > 0) {
        qsort(names, count, sizeof *names, by_text_and_kind);
    }
    return names;
}

/* Numbers the places in the order of the names that live there; `number` is per string. */
static bool pack_places(struct packer *k, const struct flame_tally *t, const struct sorted *names,
                        uint32_t *number)
{
    VEC(uint32_t) places = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < t->entries.len - 1; i++) {
        uint32_t place = t->entries.at[names[i].entry].place;
        if (place != 0 && number[place] == 0) {
            uint32_t *added = vec_push(&places);
            ok = added != NULL;
            if (ok) {
                *added = place;
                number[place] = (uint32_t)places.len;
            }
        }
    }
    pack(k, places.len);
    struct str before = {0};
    vec_each(&places, place)
    {
        struct str text = profile_text(t->profile, *place);
        pack_front_coded(k, before, text);
        before = text;
    }
    vec_release(&places);
    return ok;
}

static void pack_lines(struct packer *k, const struct flame_tally *t, const struct flame_entry *e)
{
    pack(k, e->first_line != FLAME_LINE_SEVERAL ? e->first_line : 0);
    pack(k, e->line_count);
    for (size_t i = 0; i < e->line_count; i++) {
        pack(k, t->lines.at[e->lines + i].line);
        pack(k, t->lines.at[e->lines + i].share);
    }
}

static bool pack_names(struct packer *k, struct flame_tally *t)
{
    struct sorted *names = sort_entries(t);
    uint32_t *number = calloc(t->profile->strings.len, sizeof *number);
    bool ok = names != NULL && number != NULL && pack_places(k, t, names, number);
    pack(k, t->entries.len - 1);
    struct str before = {0};
    for (size_t i = 0; ok && i < t->entries.len - 1; i++) {
        struct flame_entry *e = &t->entries.at[names[i].entry];
        e->index = (uint32_t)i;
        pack_front_coded(k, before, names[i].text);
        before = names[i].text;
        pack(k, e->kind);
        pack(k, number[e->place]);
        if (has_lines(e->kind)) {
            pack_lines(k, t, e);
        }
    }
    t->entries.at[0].index = (uint32_t)(t->entries.len - 1);
    free(number);
    free(names);
    return ok;
}

/* The tree. */

static void pack_shape(struct packer *k, const struct fold *fold)
{
    struct walk w = {.at = fold->nodes.at};
    while (walk_next(&w)) {
        pack(k, w.climbed);
    }
}

static void pack_weight(struct packer *k, const struct fold *fold, uint64_t unit_ns, bool exact)
{
    struct walk w = {.at = fold->nodes.at};
    while (walk_next(&w)) {
        uint64_t self_ns = fold->nodes.at[w.node].self_ns;
        pack(k, self_ns == 0 ? 0 : 1 + self_ns / unit_ns);
    }
    w = (struct walk){.at = fold->nodes.at};
    while (!exact && walk_next(&w)) {
        uint64_t self_ns = fold->nodes.at[w.node].self_ns;
        if (self_ns != 0) {
            pack(k, self_ns % unit_ns);
        }
    }
}

/* The callees known of a name, most frequent first: flame.h says by what rule. */
struct callee {
    uint32_t entry, count;
    uint32_t next; /* 0 none */
};

struct callees {
    VEC(struct callee) list; /* element 0 unused */
};

static bool learn(struct flame_tally *t, struct callees *c, uint32_t caller, uint32_t last,
                  uint32_t callee, bool full)
{
    if (full) {
        c->list.at[last].entry = callee;
        c->list.at[last].count = 1;
        return true;
    }
    struct callee *added = vec_push(&c->list);
    if (added == NULL) {
        return false;
    }
    *added = (struct callee){.entry = callee, .count = 1};
    uint32_t id = (uint32_t)(c->list.len - 1);
    *(last != 0 ? &c->list.at[last].next : &t->entries.at[caller].callees) = id;
    return true;
}

/* Counts a use of the callee at `rank` and moves it before those used less. */
static void promote(struct callees *c, const uint32_t *path, size_t rank)
{
    struct callee used = c->list.at[path[rank]];
    used.count++;
    for (; rank > 0 && c->list.at[path[rank - 1]].count < used.count; rank--) {
        struct callee *to = &c->list.at[path[rank]], *from = &c->list.at[path[rank - 1]];
        to->entry = from->entry;
        to->count = from->count;
    }
    c->list.at[path[rank]].entry = used.entry;
    c->list.at[path[rank]].count = used.count;
}

static bool pack_callee(struct packer *k, struct flame_tally *t, struct callees *c,
                        uint32_t caller, uint32_t callee)
{
    uint32_t path[FLAME_CALLEES_MAX];
    size_t rank = 0;
    for (uint32_t id = t->entries.at[caller].callees; id != 0; id = c->list.at[id].next) {
        path[rank] = id;
        if (c->list.at[id].entry == callee) {
            pack(k, rank + 1);
            promote(c, path, rank);
            return true;
        }
        rank++;
    }
    pack(k, 0);
    pack(k, t->entries.at[callee].index);
    return learn(t, c, caller, rank > 0 ? path[rank - 1] : 0, callee, rank == FLAME_CALLEES_MAX);
}

static bool pack_callees(struct packer *k, struct flame_tally *t, struct callees *c,
                         const struct fold_node *at)
{
    struct walk w = {.at = at};
    while (walk_next(&w)) {
        if (!pack_callee(k, t, c, entry_of_node(t, at, at[w.node].parent),
                         entry_of_node(t, at, w.node))) {
            return false;
        }
    }
    return true;
}

/* When. A list of its own for each kind of number, as each has its own frequent values. */

enum times_list { COUNTS, STEPS, WEIGHTS, LISTS };

static bool pack_times(struct packer *k, const struct fold *fold, struct flame_times *times)
{
    for (enum times_list list = COUNTS; list < LISTS; list++) {
        struct walk w = {.at = fold->nodes.at};
        while (walk_next(&w)) {
            if (fold->nodes.at[w.node].self_ns == 0) {
                continue;
            }
            if (!flame_times_at(times, w.node)) {
                return false;
            }
            if (list == COUNTS) {
                pack(k, 2 * times->here.len + (times->rest > 0));
            } else if (list == WEIGHTS && times->rest > 0 && times->here.len > 0) {
                pack(k, times->rest);
            }
            uint32_t before = 0;
            for (size_t i = 0; list != COUNTS && i < times->here.len; i++) {
                pack(k, list == STEPS ? times->here.at[i].step - before : times->here.at[i].weight);
                before = times->here.at[i].step;
            }
        }
    }
    return true;
}

bool flame_data_write(struct flame_tally *tally, struct flame_times *times, struct str header, uint64_t unit_ns,
                      bool exact, struct page *page)
{
    struct packer *k = malloc(sizeof *k);
    struct callees callees = {0};
    if (k == NULL || !packer_begin(k, page)) {
        free(k);
        return no_memory(page->err);
    }
    pack(k, header.len);
    pack_bytes(k, header.ptr, header.len);
    bool memory = vec_push(&callees.list) != NULL && pack_names(k, tally);
    memory = memory && search_runs_only(k);
    for (size_t i = 0; memory && i < tally->fold_count; i++) {
        pack(k, tally->node_count[i]);
        pack_shape(k, tally->folds[i]);
        pack_weight(k, tally->folds[i], unit_ns, exact);
        memory = pack_callees(k, tally, &callees, tally->folds[i]->nodes.at);
    }
    if (memory && times->steps > 0) {
        memory = pack_times(k, tally->folds[0], times);
    }
    bool ok = packer_end(k) && memory;
    vec_release(&callees.list);
    free(k);
    return ok || (page->ok ? no_memory(page->err) : false);
}

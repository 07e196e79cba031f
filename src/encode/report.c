/* Which functions and paths of a profile are the heaviest, and how a person is told of them on a line. The fold has one
 * node per function and caller already; here its nodes are added up by function, walking the tree without recursion,
 * and paths are followed down its lists of children, which are sorted. */
#include "encode/report.h"

#include "base/map.h"
#include "base/utf8.h"

#include <stdlib.h>

enum {
    NAME_MAX_BYTES = 64 * 1024,
    PATH_SHARE = 20,       /* of all: a path goes on into callees that have it, */
    BEGINNING_SHARE = 100, /* and begins where a thread's first function has this */
    NARROW = 12,       /* columns that a name has at least */
    LINES_BEFORE = 20, /* columns before a name */
};

#define DOTS "..."
#define ARROW " > "

/* ---- functions ---- */

/* Rows are found by name and kind; `open` counts how often each stands in the stack that is being walked. */
struct sums {
    struct report *r;
    struct map rows;
    uint32_t *row_of; /* by node of the fold */
    VEC(uint32_t) open; /* by row */
};

static bool is_code(const struct fold_node *n)
{
    return n->kind < FRAME_KIND_COUNT && n->kind != FRAME_ACCOUNT;
}

static bool find_row(struct sums *s, uint32_t node)
{
    const struct fold_node *n = &s->r->fold.nodes.at[node];
    uint64_t key = (uint64_t)n->name << 8 | n->kind;
    struct map_slot *slot = map_find(&s->rows, key);
    if (slot != NULL) {
        s->row_of[node] = (uint32_t)slot->value;
        return true;
    }
    uint32_t row = s->row_of[node] = (uint32_t)s->r->functions.len;
    struct report_function *f = vec_push(&s->r->functions);
    if (f == NULL || vec_push(&s->open) == NULL || !map_put(&s->rows, key, row)) {
        return false;
    }
    *f = (struct report_function){.name = n->name, .kind = n->kind, .place = row};
    return true;
}

static bool enter(struct sums *s, uint32_t node)
{
    const struct fold_node *n = &s->r->fold.nodes.at[node];
    if (!is_code(n)) {
        return true;
    }
    if (!find_row(s, node)) {
        return false;
    }
    struct report_function *f = &s->r->functions.at[s->row_of[node]];
    f->own += n->self_ns;
    f->total += s->open.at[s->row_of[node]]++ == 0 ? n->total_ns : 0;
    return true;
}

static void leave(struct sums *s, uint32_t node)
{
    if (node != 0 && is_code(&s->r->fold.nodes.at[node])) {
        s->open.at[s->row_of[node]]--;
    }
}

/* The heaviest first, so rows come in an order that follows from the stacks alone. */
static bool walk(struct sums *s)
{
    const struct fold_node *nodes = s->r->fold.nodes.at;
    uint32_t n = nodes[0].first_child;
    while (n != 0) {
        if (!enter(s, n)) {
            return false;
        }
        if (nodes[n].first_child != 0) {
            n = nodes[n].first_child;
            continue;
        }
        leave(s, n);
        while (n != 0 && nodes[n].next_sibling == 0) {
            n = nodes[n].parent;
            leave(s, n);
        }
        n = nodes[n].next_sibling;
    }
    return true;
}

static int compare(const void *left, const void *right)
{
    const struct report_function *a = left, *b = right;
    if (a->own != b->own) {
        return a->own > b->own ? -1 : 1;
    }
    if (a->total != b->total) {
        return a->total > b->total ? -1 : 1;
    }
    return a->place < b->place ? -1 : 1;
}

static bool sum_functions(struct report *r)
{
    struct sums s = {.r = r, .row_of = calloc(r->fold.nodes.len, sizeof *s.row_of)};
    bool ok = s.row_of != NULL && walk(&s);
    if (ok && r->functions.len > 0) {
        qsort(r->functions.at, r->functions.len, sizeof *r->functions.at, compare);
    }
    map_release(&s.rows);
    free(s.row_of);
    vec_release(&s.open);
    return ok;
}

/* ---- paths ---- */

struct path_finder {
    const struct report *r;
    VEC(uint32_t) open; /* nodes that are on a path, and of which nobody has looked where it goes on */
    VEC(struct report_path) ends;
};

static bool push(struct path_finder *f, uint32_t node)
{
    uint32_t *added = vec_push(&f->open);
    if (added != NULL) {
        *added = node;
    }
    return added != NULL;
}

/* This node or the next of its siblings that is code. */
static uint32_t code_from(const struct report *r, uint32_t n)
{
    while (n != 0 && !is_code(&r->fold.nodes.at[n])) {
        n = r->fold.nodes.at[n].next_sibling;
    }
    return n;
}

/* Of the children of a node, the heaviest first, those that have so much. */
static bool push_children(struct path_finder *f, uint32_t node, uint64_t least)
{
    const struct fold_node *nodes = f->r->fold.nodes.at;
    bool ok = true;
    for (uint32_t n = code_from(f->r, nodes[node].first_child); ok && n != 0 && nodes[n].total_ns >= least;
         n = code_from(f->r, nodes[n].next_sibling)) {
        ok = push(f, n);
    }
    return ok;
}

static bool add_end(struct path_finder *f, uint32_t node)
{
    struct report_path *end = vec_push(&f->ends);
    if (end != NULL) {
        *end = (struct report_path){f->r->fold.nodes.at[node].total_ns, node, (uint32_t)f->ends.len};
    }
    return end != NULL;
}

static bool follow(struct path_finder *f, uint32_t node)
{
    const struct fold_node *n = &f->r->fold.nodes.at[node];
    uint32_t heaviest = code_from(f->r, n->first_child);
    uint64_t least = f->r->all / PATH_SHARE, total = f->r->fold.nodes.at[heaviest].total_ns;
    bool goes_on = heaviest != 0 && total >= least && total > n->self_ns;
    return goes_on ? push_children(f, node, least > 0 ? least : 1) : add_end(f, node);
}

static int heavier_path(const void *left, const void *right)
{
    const struct report_path *a = left, *b = right;
    return a->total != b->total ? (a->total > b->total ? -1 : 1) : (int)b->place - (int)a->place;
}

static bool find_paths(struct report *r)
{
    struct path_finder f = {.r = r};
    uint32_t first = code_from(r, r->fold.nodes.at[0].first_child);
    uint64_t least = r->all / BEGINNING_SHARE, most = r->fold.nodes.at[first].total_ns;
    bool ok = first == 0 || most == 0 || push_children(&f, 0, most < least ? most : least > 0 ? least : 1);
    while (ok && f.open.len > 0) {
        uint32_t node = f.open.at[--f.open.len];
        ok = follow(&f, node);
    }
    if (ok && f.ends.len > 0) {
        qsort(f.ends.at, f.ends.len, sizeof *f.ends.at, heavier_path);
    }
    vec_release(&f.open);
    r->paths.at = f.ends.at;
    r->paths.len = f.ends.len;
    r->paths.cap = f.ends.cap;
    return ok;
}

bool report_build(struct report *r, struct profile *p, struct err *err)
{
    *r = (struct report){0};
    if (!fold_build(&r->fold, p, FOLD_TOGETHER, err)) {
        return false;
    }
    r->all = r->fold.nodes.at[0].total_ns;
    if (!sum_functions(r) || !find_paths(r)) {
        report_release(r);
        return err_set(err, ERR_MEMORY, 0, "no memory for the functions of %zu samples", p->samples.len);
    }
    return true;
}

void report_release(struct report *r)
{
    fold_release(&r->fold);
    vec_release(&r->functions);
    vec_release(&r->paths);
}

/* ---- text ---- */

static size_t columns_of(uint32_t character)
{
    return character < 0x1100 ? 1 : 2;
}

static size_t width_of(struct str text)
{
    size_t width = 0;
    while (text.len > 0) {
        width += columns_of(utf8_take(&text));
    }
    return width;
}

/* How many bytes at the front have at most so many columns. */
static size_t front_of(struct str text, size_t columns)
{
    struct str rest = text;
    for (size_t width = 0; rest.len > 0;) {
        struct str before = rest;
        width += columns_of(utf8_take(&rest));
        if (width > columns) {
            return text.len - before.len;
        }
    }
    return text.len;
}

/* What is left of it when the front has lost so many columns, or one more. */
static struct str without_front(struct str text, size_t columns)
{
    for (size_t width = 0; text.len > 0 && width < columns;) {
        width += columns_of(utf8_take(&text));
    }
    return text;
}

/* "f (/app/web/a.py)" as "f (a.py)". */
static void add_short(struct str name, uint8_t kind, struct buf *out)
{
    size_t slash = str_find_last(name, '/'), open = str_find(name, '(');
    bool has_folder = languages[kind].form == NAME_WITH_FILE && slash < name.len && open < slash;
    utf8_visible(out, str_sub(name, 0, has_folder ? open + 1 : name.len));
    utf8_visible(out, has_folder ? str_sub(name, slash + 1, name.len) : STR(""));
}

void report_name(struct str name, uint8_t kind, size_t columns, struct buf *out)
{
    struct buf visible;
    buf_init(&visible, 6 * NAME_MAX_BYTES);
    add_short(str_sub(name, 0, NAME_MAX_BYTES), kind, &visible);
    struct str text = buf_slice(&visible);
    size_t width = width_of(text);
    if (width <= columns) {
        buf_str(out, text);
    } else {
        size_t kept = columns > sizeof DOTS - 1 ? columns - (sizeof DOTS - 1) : 1;
        buf_str(out, str_sub(text, 0, front_of(text, kept / 2)));
        buf_text(out, DOTS);
        buf_str(out, without_front(text, width - (kept - kept / 2)));
    }
    buf_release(&visible);
}

/* Writes a path from its end on, in reverse order of frames, so that the end is what fits. */
struct backwards {
    const struct report *r;
    const struct profile *p;
    VEC(uint32_t) nodes; /* that fit, the last first */
    size_t name_columns; /* of names but the last, which is what matters, */
    size_t last_columns;
    uint32_t last;
};

static void add_frame(const struct backwards *b, uint32_t node, struct buf *out)
{
    const struct fold_node *n = &b->r->fold.nodes.at[node];
    report_name(profile_text(b->p, n->name), n->kind, node == b->last ? b->last_columns : b->name_columns, out);
}

static size_t frame_width(const struct backwards *b, uint32_t node)
{
    struct buf name;
    buf_init(&name, 6 * NAME_MAX_BYTES);
    add_frame(b, node, &name);
    size_t width = width_of(buf_slice(&name));
    buf_release(&name);
    return width;
}

/* True: the path is cut. */
static bool fit_frames(struct backwards *b, uint32_t node, size_t columns)
{
    size_t width = 0;
    for (; node != 0; node = b->r->fold.nodes.at[node].parent) {
        bool is_first = b->r->fold.nodes.at[node].parent == 0;
        width += columns == REPORT_ANY ? 0 : frame_width(b, node) + (b->nodes.len > 0 ? sizeof ARROW - 1 : 0);
        bool fits = columns == REPORT_ANY || width + (is_first ? 0 : sizeof DOTS ARROW - 1) <= columns;
        uint32_t *added = fits || b->nodes.len == 0 ? vec_push(&b->nodes) : NULL;
        if (added == NULL) {
            return true;
        }
        *added = node;
    }
    return false;
}

void report_path(const struct report *r, const struct profile *p, uint32_t node, size_t columns, struct buf *out)
{
    struct backwards b = {r, p, .name_columns = columns, .last_columns = columns, .last = node};
    if (columns != REPORT_ANY) {
        b.name_columns = columns / 2 > NARROW ? columns / 2 : (size_t)NARROW;
        b.last_columns = columns >= sizeof DOTS ARROW + NARROW ? columns - (sizeof DOTS ARROW - 1) : (size_t)NARROW;
    }
    bool is_cut = fit_frames(&b, node, columns);
    buf_text(out, is_cut ? DOTS ARROW : "");
    for (size_t i = b.nodes.len; i-- > 0;) {
        add_frame(&b, b.nodes.at[i], out);
        buf_text(out, i > 0 ? ARROW : "");
    }
    vec_release(&b.nodes);
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0.0 : 100.0 * (double)part / (double)whole;
}

void report_lines(const struct report *r, const struct profile *p, size_t functions, size_t paths, size_t columns,
                  struct buf *out)
{
    size_t room = columns > LINES_BEFORE + NARROW ? columns - LINES_BEFORE : (size_t)NARROW;
    for (size_t i = 0; i < r->functions.len && i < functions && r->functions.at[i].own > 0; i++) {
        const struct report_function *f = &r->functions.at[i];
        buf_text(out, i == 0 ? "\n      own    total  heaviest functions" : "");
        buf_printf(out, "\n  %5.1f %%  %5.1f %%  ", percent(f->own, r->all), percent(f->total, r->all));
        report_name(profile_text(p, f->name), f->kind, room, out);
    }
    for (size_t i = 0; i < r->paths.len && i < paths; i++) {
        const struct report_path *path = &r->paths.at[i];
        buf_text(out, i == 0 ? "\n             total  heaviest paths" : "");
        buf_printf(out, "\n           %5.1f %%  ", percent(path->total, r->all));
        report_path(r, p, path->node, room, out);
    }
}

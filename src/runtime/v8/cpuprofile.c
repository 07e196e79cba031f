/* A profile is a tree of functions, each with how often it was met as the leaf, and at which of its lines. What was met
 * is a moment each, which stands for all the times. Lines of callers are not told. A function stands in the text before
 * those that it called: V8 writes it so, and nothing else is taken for a tree. */
#include "runtime/v8/inspector.h"
#include "base/json.h"
#include "base/map.h"
#include "base/vec.h"
#include "runtime/v8/private.h"

enum { NODES_MAX = 1 << 18, DEPTH_MAX = 512, TEXT_MAX = 16384 };

#define MOMENT_MAX_NS (60 * UINT64_C(1000000000)) /* what one may stand for (moments_read.h) */

struct call_node {
    struct str name, url; /* JSON; {null, 0}: none */
    struct str ticks;
    uint64_t hits;
    uint32_t line, column; /* 0: not known */
    uint32_t parent;       /* + 1; 0: none */
};

struct reader {
    VEC(struct call_node) nodes;
    struct map number_of; /* id -> its place + 1 */
    struct buf name, file;
    uint32_t tid;
    uint64_t hit_ns;
    struct buf *out;
};

static void note_children(struct reader *r, struct str children, uint32_t parent)
{
    struct str value;
    uint64_t id;
    while (r->number_of.len < NODES_MAX && json_next(&children, NULL, &value)) {
        if (json_u64_of(value, &id)) {
            (void)map_put(&r->number_of, id, (uint64_t)parent + 1);
        }
    }
}

/* Counted from 0 there. */
static uint32_t place_of(struct str call, const char *key)
{
    uint64_t number;
    return json_u64_of(json_member(call, key), &number) && number < UINT32_MAX ? (uint32_t)number + 1 : 0;
}

/* Is read again for each stack that it is in: of a long one nothing is told. */
static struct str short_text(struct str call, const char *key)
{
    struct str value = json_member(call, key);
    return value.len <= TEXT_MAX ? value : (struct str){0};
}

/* A child is named before it is told: what its number leads to then is its parent. */
static bool add_node(struct reader *r, struct str node)
{
    uint64_t id;
    if (!json_u64_of(json_member(node, "id"), &id) || r->nodes.len >= NODES_MAX) {
        return r->nodes.len < NODES_MAX;
    }
    const struct map_slot *slot = map_find(&r->number_of, id);
    uint32_t parent = slot != NULL ? (uint32_t)slot->value : 0;
    struct call_node *added = vec_push(&r->nodes);
    if (added == NULL) {
        return false;
    }
    struct str call = json_member(node, "callFrame");
    *added = (struct call_node){.name = short_text(call, "functionName"),
                                .url = short_text(call, "url"),
                                .ticks = json_member(node, "positionTicks"),
                                .line = place_of(call, "lineNumber"),
                                .column = place_of(call, "columnNumber"),
                                .parent = parent};
    (void)json_u64_of(json_member(node, "hitCount"), &added->hits);
    note_children(r, json_member(node, "children"), (uint32_t)r->nodes.len - 1);
    return true;
}

static void read_text(struct str value, struct buf *out)
{
    buf_clear(out);
    if (!json_text_of(value, out)) {
        buf_clear(out);
    }
}

static void keep_in_line(struct buf *out)
{
    for (size_t i = 0; i < out->len; i++) { /* a function may have any name, and a line of the text is a line */
        out->ptr[i] = (unsigned char)out->ptr[i] < ' ' ? ' ' : out->ptr[i];
    }
}

/* "(garbage collector)" and the like have no script. */
static void put_frame(struct reader *r, const struct call_node *n, uint64_t line)
{
    read_text(n->name, &r->name);
    read_text(n->url, &r->file);
    v8_tidy_url(&r->file);
    keep_in_line(&r->name);
    keep_in_line(&r->file);
    bool is_eval = n->line > 0 && r->file.len == 0 && r->name.len > 0 && r->name.ptr[0] != '(';
    buf_printf(r->out, "%llu ", (unsigned long long)line);
    v8_put_name(r->out, buf_slice(&r->name), is_eval ? STR("(eval)") : buf_slice(&r->file), n->line, n->column);
    buf_byte(r->out, '\n');
}

/* Whole, or where there is no more room not at all: a part of it would be another stack. */
static void put_moment(struct reader *r, const struct call_node *leaf, uint64_t line, uint64_t times)
{
    uint64_t stands_ns = times > MOMENT_MAX_NS / r->hit_ns ? MOMENT_MAX_NS : times * r->hit_ns;
    size_t before = r->out->len;
    bool waits = str_eq(leaf->name, STR("\"(program)\"")); /* native code, or nothing */
    buf_printf(r->out, "moment %llu\nthread %u %d \n", (unsigned long long)stands_ns, r->tid, waits);
    const struct call_node *n = leaf;
    for (unsigned depth = 0; depth < DEPTH_MAX && n->parent > 0; depth++) { /* the root is no function */
        put_frame(r, n, line);
        n = &r->nodes.at[n->parent - 1];
        line = 0;
    }
    r->out->len = r->out->failed ? before : r->out->len;
}

static void put_node(struct reader *r, const struct call_node *n)
{
    struct str rest = n->ticks, value;
    uint64_t line, ticks, left = n->hits;
    if (n->hits == 0 || str_eq(n->name, STR("\"(idle)\""))) {
        return;
    }
    while (!r->out->failed && json_next(&rest, NULL, &value)) {
        if (json_u64_of(json_member(value, "line"), &line) && json_u64_of(json_member(value, "ticks"), &ticks) &&
            ticks > 0 && ticks <= left) {
            put_moment(r, n, line, ticks);
            left -= ticks;
        }
    }
    if (left > 0) {
        put_moment(r, n, 0, left);
    }
}

void cpuprofile_write(struct str profile, uint32_t tid, uint64_t hit_ns, struct buf *out)
{
    struct reader r = {.tid = tid, .hit_ns = hit_ns > 0 ? hit_ns : 1, .out = out};
    struct str nodes = json_member(profile, "nodes"), node;
    buf_init(&r.name, TEXT_MAX);
    buf_init(&r.file, TEXT_MAX);
    while (json_next(&nodes, NULL, &node) && add_node(&r, node)) {
    }
    for (size_t i = 0; i < r.nodes.len && tid != 0 && !out->failed; i++) {
        put_node(&r, &r.nodes.at[i]);
    }
    vec_release(&r.nodes);
    map_release(&r.number_of);
    buf_release(&r.name);
    buf_release(&r.file);
}

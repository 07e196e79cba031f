#include "deliver/shrink.h"

#include "base/map.h"
#include "base/vec.h"
#include "deliver/otlp_cut.h"
#include "deliver/pprof_cut.h"

#include <stdlib.h>

enum {
    TRIES = 6,          /* of shrink_request; each aims below what is allowed */
    AIM_PERMILLE = 900, /* of it: light stacks compress worse than the whole */
    LEAST_PERMILLE = 5,
};

struct line {
    struct str text;  /* without its count */
    struct str head;  /* what names the process */
    uint64_t count;
    bool dropped;
};

/* What the dropped lines of one head counted. */
struct dropped {
    struct str head;
    uint64_t count;
};

struct lines {
    struct str header;       /* with its line end; empty: none */
    VEC(struct line) list;
    VEC(struct dropped) heads;
    struct map head_of_hash; /* -> place in heads */
};

/* ---- collapsed stacks ---- */

/* "index;container;comm", and an application's id where there is one; in files without a header
 * the first field. */
static struct str head_of(struct str stack, bool has_header)
{
    struct str rest = stack;
    for (unsigned i = 0; i < (has_header ? 3u : 1u); i++) {
        (void)str_cut(&rest, ';');
    }
    if (has_header && str_starts(rest, STR("appid: "))) {
        (void)str_cut(&rest, ';');
    }
    size_t len = stack.len - rest.len;
    return str_sub(stack, 0, rest.len > 0 && len > 0 ? len - 1 : len);
}

static bool read_lines(struct lines *lines, struct str text)
{
    struct str rest = text;
    bool has_header = str_starts(text, STR("#"));
    if (has_header) {
        struct str line = str_cut(&rest, '\n');
        lines->header = str_sub(text, 0, line.len);
    }
    while (rest.len > 0) {
        struct str row = str_cut(&rest, '\n'), stack = str_sub(row, 0, str_find_last(row, ' '));
        uint64_t count;
        if (!str_u64(str_sub(row, stack.len + 1, row.len), &count)) {
            continue; /* no reader takes such a line */
        }
        struct line *line = vec_push(&lines->list);
        if (line == NULL) {
            return false;
        }
        *line = (struct line){stack, head_of(stack, has_header), count, false};
    }
    return true;
}

struct weighed {
    uint64_t count;
    size_t at;
};

static int by_count(const void *left, const void *right)
{
    const struct weighed *a = left, *b = right;
    if (a->count != b->count) {
        return a->count > b->count ? -1 : 1;
    }
    return (a->at > b->at) - (a->at < b->at);
}

/* Marks what goes: the lightest lines, from where the bytes allowed are used up. */
static bool choose(struct lines *lines, size_t most_bytes)
{
    enum { COUNT_BYTES = 8 };
    struct weighed *order = calloc(lines->list.len + 1, sizeof *order);
    size_t used = lines->header.len;
    if (order == NULL) {
        return false;
    }
    for (size_t i = 0; i < lines->list.len; i++) {
        order[i] = (struct weighed){lines->list.at[i].count, i};
    }
    qsort(order, lines->list.len, sizeof *order, by_count);
    for (size_t i = 0; i < lines->list.len; i++) {
        struct line *line = &lines->list.at[order[i].at];
        /* what went before goes again, so that each head has one such line */
        bool went = str_ends(line->text, STR(";" SHRINK_FRAME));
        used += went ? 0 : line->text.len + COUNT_BYTES;
        line->dropped = went || used > most_bytes;
    }
    free(order);
    return true;
}

static struct dropped *dropped_of(struct lines *lines, struct str head)
{
    uint64_t hash = str_hash(head);
    for (struct map_slot *slot = map_find(&lines->head_of_hash, hash); slot != NULL;
         slot = map_next(&lines->head_of_hash, slot)) {
        if (str_eq(lines->heads.at[slot->value].head, head)) {
            return &lines->heads.at[slot->value];
        }
    }
    struct dropped *added = vec_push(&lines->heads);
    if (added == NULL || !map_add(&lines->head_of_hash, hash, lines->heads.len - 1)) {
        return NULL;
    }
    added->head = head;
    return added;
}

static bool sum_dropped(struct lines *lines)
{
    vec_each(&lines->list, line)
    {
        struct dropped *dropped = line->dropped ? dropped_of(lines, line->head) : NULL;
        if (line->dropped && dropped == NULL) {
            return false;
        }
        if (dropped != NULL) {
            dropped->count += line->count;
        }
    }
    return true;
}

static void put_line(struct buf *out, const char **end, struct str stack, const char *frame,
                     uint64_t count)
{
    buf_text(out, *end);
    buf_str(out, stack);
    buf_text(out, frame);
    buf_printf(out, " %llu", (unsigned long long)count);
    *end = "\n";
}

/* Where even a line per head is too much, there is one in all. */
static void put_heads(struct buf *out, const char **end, const struct lines *lines, bool in_one)
{
    uint64_t sum = 0;
    vec_each(&lines->heads, dropped)
    {
        sum += dropped->count;
        if (!in_one && dropped->count > 0) {
            put_line(out, end, dropped->head, ";" SHRINK_FRAME, dropped->count);
        }
    }
    if (in_one && sum > 0) {
        struct str head = lines->header.len > 0 ? STR("0;;" SHRINK_FRAME ";") : STR("");
        put_line(out, end, head, SHRINK_FRAME, sum);
    }
}

static size_t bytes_of_heads(const struct lines *lines)
{
    size_t bytes = 0;
    vec_each(&lines->heads, dropped)
    {
        bytes += dropped->head.len + sizeof SHRINK_FRAME + 8;
    }
    return bytes;
}

static void put_lines(struct buf *out, const struct lines *lines, size_t most_bytes)
{
    const char *end = lines->header.len > 0 ? "\n" : "";
    buf_str(out, lines->header);
    vec_each(&lines->list, line)
    {
        if (!line->dropped) {
            put_line(out, &end, line->text, "", line->count);
        }
    }
    put_heads(out, &end, lines, bytes_of_heads(lines) > most_bytes / 2);
}

static bool shrink_lines(struct str profile, unsigned permille, struct buf *out, struct err *err)
{
    struct lines lines = {0};
    size_t most = (size_t)((uint64_t)profile.len * permille / 1000);
    bool ok = read_lines(&lines, profile) && choose(&lines, most) && sum_dropped(&lines);
    if (ok) {
        put_lines(out, &lines, most);
    }
    vec_release(&lines.list);
    vec_release(&lines.heads);
    map_release(&lines.head_of_hash);
    return (ok && !out->failed) ||
           err_set(err, ERR_MEMORY, 0, "no memory to make a profile smaller");
}

/* ---- both ---- */

static unsigned permille_of(size_t from_bytes, size_t to_bytes)
{
    if (to_bytes == 0 || to_bytes >= from_bytes) {
        return 500;
    }
    size_t share = (size_t)((uint64_t)to_bytes * AIM_PERMILLE / from_bytes);
    return share < LEAST_PERMILLE ? LEAST_PERMILLE : (unsigned)share;
}

bool shrink(const struct delivery *delivery, size_t from_bytes, size_t to_bytes, struct buf *out,
            struct err *err)
{
    unsigned permille = permille_of(from_bytes, to_bytes);
    size_t before = out->len;
    bool ok;
    if (str_eq(delivery->format, STR("col"))) {
        ok = shrink_lines(delivery->profile, permille, out, err);
    } else if (str_eq(delivery->format, STR("pprof"))) {
        struct pprof_cut_result result;
        const struct pprof_cut_rules rules = {.permille = permille};
        ok = pprof_cut(delivery->profile, &rules, out, &result, err);
    } else if (str_eq(delivery->format, STR("otlp"))) {
        size_t most = (size_t)((uint64_t)delivery->profile.len * permille / 1000);
        ok = otlp_cut(delivery->profile, most, out, err);
    } else {
        return err_set(err, ERR_UNSUPPORTED, 0, "a profile as %.*s cannot be made smaller",
                       (int)delivery->format.len, delivery->format.ptr);
    }
    if (ok && out->len - before >= delivery->profile.len) {
        return err_set(err, ERR_LIMIT, 0, "a profile of %zu bytes cannot be made smaller",
                       delivery->profile.len);
    }
    return ok;
}

bool shrink_request(const struct backend *row, struct backend_context *context,
                    struct delivery *delivery, struct buf *kept, struct http_request *out,
                    struct buf *text, struct err *err)
{
    size_t at = text->len;
    for (unsigned i = 0; row->request(context, delivery, out, text, err); i++) {
        if (row->most_bytes == 0 || out->body.len <= row->most_bytes) {
            return true;
        }
        struct buf next;
        buf_init(&next, kept->max);
        if (i == TRIES) {
            return err_set(err, ERR_LIMIT, 0, "%s takes %zu bytes, and the profile still has %zu",
                           row->title, row->most_bytes, out->body.len);
        }
        if (!shrink(delivery, out->body.len, row->most_bytes, &next, err)) {
            buf_release(&next);
            return false;
        }
        buf_release(kept);
        *kept = next;
        delivery->profile = buf_slice(kept);
        delivery->shrunk = true;
        text->len = at;
    }
    return false;
}

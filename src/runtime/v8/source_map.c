/* Segments are numbers in base 64, five bits a digit, each the difference from the last one of its kind; in a line the
 * first starts from column 0. So a segment is known when all before it were read: marks tell what the numbers are
 * at every so-many-th. */
#include "runtime/v8/source_map.h"
#include "base/arena.h"
#include "base/json.h"
#include "base/vec.h"

#include <stdlib.h>

enum {
    FIELDS_MAX = 5, WITH_SOURCE = 4, /* a segment of one has no source, of five a name */
    MARK_EACH = 256,
    TEXTS_MAX = 8 << 20, MAPPINGS_MAX = 16 << 20,
    NAMES_MAX = 1 << 20,
    TEXT_MAX = 4096,
};

/* Where reading is, and the last segment. */
struct segment {
    size_t at; /* in the mappings: behind it */
    uint32_t line, fields;
    int64_t number[FIELDS_MAX]; /* column, source, its line and column, name; all from 0 */
};

struct source_map {
    struct buf mappings;
    struct arena texts;
    VEC(struct str) sources;
    VEC(struct str) names;
    VEC(struct segment) marks;
};

/* ---- segments ---- */

static int digit_of(char byte)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = byte != '\0' ? strchr(digits, byte) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

/* The lowest bit is the sign. False: no number begins here. */
static bool take_number(struct str text, size_t *at, int64_t *out)
{
    enum { BITS = 5, MORE = 1 << BITS, SHIFT_MAX = 35 };
    uint64_t value = 0;
    bool any = false, more = true;
    for (int shift = 0; more && *at < text.len && shift <= SHIFT_MAX; shift += BITS) {
        int digit = digit_of(text.ptr[*at]);
        if (digit < 0) {
            break;
        }
        (*at)++;
        any = true;
        more = (digit & MORE) != 0;
        value |= (uint64_t)(digit & (MORE - 1)) << shift;
    }
    *out = (value & 1) != 0 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
    return any && !more;
}

/* False: there is no other. */
static bool next_segment(const struct source_map *m, struct segment *s)
{
    struct str text = buf_slice(&m->mappings);
    for (; s->at < text.len && (text.ptr[s->at] == ';' || text.ptr[s->at] == ','); s->at++) {
        if (text.ptr[s->at] == ';') {
            s->line++;
            s->number[0] = 0;
        }
    }
    int64_t number;
    s->fields = 0;
    while (s->fields < FIELDS_MAX && take_number(text, &s->at, &number)) {
        s->number[s->fields] += number;
        s->fields++;
    }
    return s->fields > 0;
}

static bool is_behind(const struct segment *s, uint32_t line, int64_t column)
{
    return s->line > line || (s->line == line && s->number[0] > column);
}

/* Numbers add up over the whole text, so they stay far from their type's ends: each is of 36 bits, in at most 16 MB. */
static bool mark_all(struct source_map *m)
{
    struct segment s = {.at = 0}, before;
    size_t count = 0;
    for (before = s; next_segment(m, &s); before = s) {
        if (count++ % MARK_EACH == 0) {
            struct segment *mark = vec_push(&m->marks);
            if (mark == NULL) {
                return false;
            }
            *mark = before; /* reading on from here gives it again */
        }
    }
    return true;
}

/* ---- reading ---- */

/* "../src/./a.ts" from "/app/dist/" as "/app/src/a.ts". */
static void put_path(struct buf *out, struct str folder, struct str path)
{
    buf_clear(out);
    buf_str(out, folder);
    size_t root = out->len > 0 && out->ptr[0] == '/' ? 1 : 0;
    for (struct str rest = path; rest.len > 0;) {
        struct str part = str_cut(&rest, '/');
        if (str_eq(part, STR("..")) && out->len > root) {
            out->len -= out->ptr[out->len - 1] == '/';
            while (out->len > root && out->ptr[out->len - 1] != '/') {
                out->len--;
            }
        } else if (part.len > 0 && !str_eq(part, STR(".")) && !str_eq(part, STR(".."))) {
            buf_str(out, part);
            buf_text(out, rest.len > 0 ? "/" : "");
        }
    }
}

static struct str without_scheme(struct str text)
{
    static const struct str scheme = STR("file://");
    return str_starts(text, scheme) ? str_sub(text, scheme.len, text.len) : text;
}

/* Is it a URL, as bundlers give sources that are no files? It stays as it is then. */
static bool is_url(struct str text)
{
    return memmem(text.ptr, text.len, "://", 3) != NULL;
}

static struct str source_of(struct source_map *m, struct str root, struct str written, struct str folder,
                            struct buf *text)
{
    struct buf path;
    buf_init(&path, 3 * TEXT_MAX);
    buf_str(&path, root);
    buf_text(&path, root.len > 0 && root.ptr[root.len - 1] != '/' ? "/" : "");
    buf_str(&path, written);
    struct str whole = without_scheme(buf_slice(&path));
    struct str kept = arena_copy(&m->texts, whole);
    if (!is_url(whole)) {
        put_path(text, whole.len > 0 && whole.ptr[0] == '/' ? STR("/") : folder, whole);
        kept = arena_copy(&m->texts, buf_slice(text));
    }
    buf_release(&path);
    return kept;
}

static void read_text(struct str value, struct buf *out)
{
    buf_clear(out);
    if (!json_text_of(value, out)) {
        buf_clear(out);
    }
}

static bool read_names(struct source_map *m, struct str json, struct str path)
{
    struct buf text, root;
    struct str all = json_member(json, "sources"), value, *added = NULL;
    struct str folder = str_sub(path, 0, path.len - str_base_name(path).len);
    bool good = true;
    buf_init(&text, 4 * TEXT_MAX);
    buf_init(&root, TEXT_MAX);
    read_text(json_member(json, "sourceRoot"), &root);
    while (good && json_next(&all, NULL, &value)) {
        struct buf written;
        buf_init(&written, TEXT_MAX);
        read_text(value, &written);
        good = m->sources.len < NAMES_MAX && (added = vec_push(&m->sources)) != NULL;
        if (good) {
            *added = source_of(m, buf_slice(&root), buf_slice(&written), folder, &text);
        }
        buf_release(&written);
    }
    all = json_member(json, "names");
    while (good && json_next(&all, NULL, &value)) {
        read_text(value, &text);
        good = m->names.len < NAMES_MAX && (added = vec_push(&m->names)) != NULL;
        if (good) {
            *added = arena_copy(&m->texts, buf_slice(&text));
        }
    }
    buf_release(&text);
    buf_release(&root);
    return good && m->sources.len > 0;
}

struct source_map *source_map_read(struct str json, struct str path)
{
    uint64_t version;
    struct source_map *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return NULL;
    }
    buf_init(&m->mappings, MAPPINGS_MAX);
    arena_init(&m->texts, TEXTS_MAX);
    if (json_valid(json) && json_u64_of(json_member(json, "version"), &version) && version == 3 &&
        json_text_of(json_member(json, "mappings"), &m->mappings) && !m->mappings.failed &&
        read_names(m, json, path) && mark_all(m) && m->marks.len > 0) {
        buf_trim(&m->mappings);
        return m;
    }
    source_map_free(m);
    return NULL;
}

void source_map_free(struct source_map *m)
{
    if (m != NULL) {
        buf_release(&m->mappings);
        arena_release(&m->texts);
        vec_release(&m->sources);
        vec_release(&m->names);
        vec_release(&m->marks);
        free(m);
    }
}

size_t source_map_bytes(const struct source_map *m)
{
    return m->mappings.cap + m->texts.used_bytes + (m->sources.len + m->names.len) * sizeof(struct str) +
           m->marks.len * sizeof(struct segment);
}

/* ---- asking ---- */

bool source_map_find(const struct source_map *m, uint32_t line, uint32_t column, struct source_place *out)
{
    if (line == 0 || column == 0) {
        return false;
    }
    size_t low = 0, high = m->marks.len; /* marks that are not behind it */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        bool is_not = !is_behind(&m->marks.at[middle], line - 1, column - 1);
        *(is_not ? &low : &high) = middle + is_not;
    }
    struct segment s = low > 0 ? m->marks.at[low - 1] : (struct segment){.at = 0}, found = s;
    while (next_segment(m, &s) && !is_behind(&s, line - 1, column - 1)) {
        found = s;
    }
    const int64_t *n = found.number;
    if (found.fields < WITH_SOURCE || found.line != line - 1 || n[1] < 0 || n[1] >= (int64_t)m->sources.len ||
        n[2] < 0 || n[2] >= UINT32_MAX || n[3] < 0 || n[3] >= UINT32_MAX) {
        return false;
    }
    bool has_name = found.fields == FIELDS_MAX && n[4] >= 0 && n[4] < (int64_t)m->names.len;
    *out = (struct source_place){
        .file = m->sources.at[n[1]],
        .name = has_name ? m->names.at[n[4]] : STR(""),
        .line = (uint32_t)n[2] + 1,
        .column = (uint32_t)n[3] + 1,
        .is_exact = n[0] == (int64_t)column - 1,
    };
    return true;
}

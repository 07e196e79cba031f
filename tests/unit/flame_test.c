/* src/encode/flame*: the page is read back here by a decoder of its own. */
#include "encode/flame.h"

#include <bearssl_hash.h>
#include <zlib.h>

#include "base/cursor.h"
#include "base/time.h"
#include "encode/flame_text.h"
#include "encode/pprof.h"
#include "profile/fold.h"
#include "sample_profile.h"
#include "test.h"


#define BASE64 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

enum { PAGE_MAX_BYTES = 64 << 20, CONSTANT_MAX_BYTES = 48 * 1024 };

static struct profile *make(void)
{
    struct profile *p = calloc(1, sizeof *p);
    CHECK(profile_init(p, PAGE_MAX_BYTES, NULL));
    return p;
}

static void drop(struct profile *p)
{
    profile_release(p);
    free(p);
}

static struct buf write_page(struct profile *p, struct profile *base)
{
    struct buf page;
    struct err err = {0};
    buf_init(&page, PAGE_MAX_BYTES);
    struct sink sink = sink_of_buf(&page);
    CHECK(base != NULL ? flame_write_diff(p, base, NULL, &sink, NULL, &err) : flame_write(p, &sink, &err));
    CHECK_TEXT(err.text, "");
    (void)buf_cstr(&page);
    return page;
}

static bool has(const struct buf *page, const char *text)
{
    size_t len = strlen(text);
    return page->len >= len && memmem(page->ptr, page->len, text, len) != NULL;
}

/* What stands between two markers, the first after `from`. */
static struct str between(struct str page, const char *open, const char *close)
{
    const char *start = memmem(page.ptr, page.len, open, strlen(open));
    if (start == NULL) {
        return (struct str){NULL, 0};
    }
    start += strlen(open);
    size_t rest = page.len - (size_t)(start - page.ptr);
    const char *end = memmem(start, rest, close, strlen(close));
    return end == NULL ? (struct str){NULL, 0} : (struct str){start, (size_t)(end - start)};
}

/* ---- The other side of the format: base64, inflate, the lists of flame.h. */

static int value_of(char c)
{
    static const char digits[] = BASE64;
    const char *at = c == '\0' ? NULL : strchr(digits, c);
    return at == NULL ? -1 : (int)(at - digits);
}

static struct buf unbase64(struct str text)
{
    struct buf out;
    uint32_t bits = 0;
    int have = 0;
    buf_init(&out, PAGE_MAX_BYTES);
    for (size_t i = 0; i < text.len; i++) {
        int value = value_of(text.ptr[i]);
        CHECK(value >= 0 || text.ptr[i] == '\n' || text.ptr[i] == '=');
        if (value >= 0) {
            bits = bits << 6 | (uint32_t)value;
            have += 6;
            if (have >= 8) {
                have -= 8;
                buf_byte(&out, (char)(bits >> have));
            }
        }
    }
    return out;
}

static struct buf inflate_all(struct buf packed)
{
    struct buf out;
    z_stream z = {.next_in = (unsigned char *)packed.ptr, .avail_in = (unsigned)packed.len};
    buf_init(&out, PAGE_MAX_BYTES);
    CHECK(inflateInit2(&z, -15) == Z_OK);
    int state;
    do {
        z.next_out = (unsigned char *)buf_room(&out, 65536);
        z.avail_out = 65536;
        state = inflate(&z, Z_NO_FLUSH);
        out.len += 65536 - z.avail_out;
    } while (state == Z_OK);
    CHECK_INT(state, Z_STREAM_END);
    CHECK_INT(z.avail_in, 0);
    inflateEnd(&z);
    return out;
}

static struct buf unpack(const struct buf *page, const char *id)
{
    char open[96];
    snprintf(open, sizeof open, "<script type=\"application/octet-stream\" id=\"%s\">\n", id);
    struct buf packed = unbase64(between(buf_slice(page), open, "</script>"));
    struct buf out = inflate_all(packed);
    buf_release(&packed);
    return out;
}

struct name {
    char text[256];
    size_t len;
    uint64_t kind, place;
    uint64_t first_line, lines, line[FLAME_LINES_MAX], share[FLAME_LINES_MAX];
};

struct decoded {
    struct buf bytes;
    struct str header;
    char places[16][128];
    VEC(struct name) names;
    struct {
        uint32_t name[FLAME_CALLEES_MAX], count[FLAME_CALLEES_MAX];
        size_t len;
    } *callees;
    VEC(struct fold_node) tree[2]; /* name is an index of names */
    VEC(struct moment) times;      /* `sample` is the node; without one `step` is UINT32_MAX */
};

static void read_front_coded(struct cursor *c, char *text, size_t cap, size_t *len)
{
    size_t shared = cursor_uleb(c), rest = cursor_uleb(c);
    const char *from = cursor_take(c, rest);
    CHECK(shared <= *len && shared + rest < cap && (from != NULL || rest == 0));
    if (rest > 0) {
        memcpy(text + shared, from, rest);
    }
    *len = shared + rest;
    text[*len] = '\0';
}

static uint32_t read_name(struct cursor *c, struct decoded *d, uint32_t caller)
{
    uint64_t rank = cursor_uleb(c);
    __typeof__(d->callees) known = &d->callees[caller];
    if (rank == 0) {
        size_t last = known->len < FLAME_CALLEES_MAX ? known->len++ : known->len - 1;
        known->name[last] = (uint32_t)cursor_uleb(c);
        known->count[last] = 1;
        CHECK(known->name[last] < d->names.len);
        return known->name[last];
    }
    size_t at = rank - 1;
    CHECK(at < known->len);
    uint32_t name = known->name[at], count = known->count[at] + 1;
    for (; at > 0 && known->count[at - 1] < count; at--) {
        known->name[at] = known->name[at - 1];
        known->count[at] = known->count[at - 1];
    }
    known->name[at] = name;
    known->count[at] = count;
    return name;
}

static void read_tree(struct cursor *c, struct decoded *d, size_t which, uint64_t unit, bool exact)
{
    size_t n = cursor_uleb(c);
    __typeof__(d->tree[0]) *tree = &d->tree[which];
    vec_push(tree)->name = (uint32_t)d->names.len;
    uint32_t last = 0;
    for (size_t i = 1; i <= n; i++) {
        for (uint64_t climb = cursor_uleb(c); climb > 0; climb--) {
            last = tree->at[last].parent;
        }
        vec_push(tree)->parent = last;
        last = (uint32_t)i;
    }
    for (size_t i = 1; i <= n; i++) {
        tree->at[i].total_ns = cursor_uleb(c);
        tree->at[i].self_ns = tree->at[i].total_ns == 0 ? 0 : (tree->at[i].total_ns - 1) * unit;
    }
    for (size_t i = 1; i <= n && !exact; i++) {
        tree->at[i].self_ns += tree->at[i].total_ns == 0 ? 0 : cursor_uleb(c);
    }
    for (size_t i = 1; i <= n; i++) {
        tree->at[i].name = read_name(c, d, tree->at[tree->at[i].parent].name);
    }
}

static void read_lines(struct cursor *c, struct name *name)
{
    bool has = name->kind < FRAME_KIND_COUNT && languages[name->kind].form == NAME_WITH_FILE;
    name->first_line = has ? cursor_uleb(c) : 0;
    name->lines = has ? cursor_uleb(c) : 0;
    CHECK(name->lines <= FLAME_LINES_MAX);
    for (size_t i = 0; i < name->lines && i < FLAME_LINES_MAX; i++) {
        name->line[i] = cursor_uleb(c);
        name->share[i] = cursor_uleb(c);
    }
}

static void read_times(struct cursor *c, struct decoded *d)
{
    for (uint32_t i = 1; i < d->tree[0].len; i++) {
        uint64_t count = d->tree[0].at[i].self_ns == 0 ? 0 : cursor_uleb(c);
        if (count > 1 && count % 2 == 1) {
            *vec_push(&d->times) = (struct moment){.sample = i, .step = UINT32_MAX};
        }
        for (uint64_t k = 0; k < count / 2; k++) {
            *vec_push(&d->times) = (struct moment){.sample = i};
        }
    }
    uint32_t node = 0, step = 0;
    vec_each(&d->times, time)
    {
        if (time->step == 0) {
            step = (time->sample == node ? step : 0) + (uint32_t)cursor_uleb(c);
            time->step = step;
            node = time->sample;
        }
    }
    vec_each(&d->times, time)
    {
        time->weight = (uint32_t)cursor_uleb(c);
        CHECK(time->weight > 0);
    }
}

static struct decoded decode_block(const struct buf *page, const char *id)
{
    struct decoded d = {.bytes = unpack(page, id)};
    struct cursor c = cursor_of(d.bytes.ptr, d.bytes.len);
    size_t len = cursor_uleb(&c);
    d.header = (struct str){cursor_take(&c, len), len};
    len = 0;
    size_t places = cursor_uleb(&c);
    CHECK(places < 16);
    for (size_t i = 1; i <= places; i++) {
        memcpy(d.places[i], d.places[i - 1], sizeof d.places[i]);
        read_front_coded(&c, d.places[i], sizeof d.places[i], &len);
    }
    struct name name = {.len = 0};
    for (size_t i = cursor_uleb(&c); i > 0; i--) {
        struct name before = name;
        read_front_coded(&c, name.text, sizeof name.text, &name.len);
        name.kind = cursor_uleb(&c);
        name.place = cursor_uleb(&c);
        read_lines(&c, &name);
        int order = str_compare((struct str){before.text, before.len},
                                (struct str){name.text, name.len});
        CHECK(order < 0 || d.names.len == 0 || (order == 0 && before.kind < name.kind));
        *vec_push(&d.names) = name;
    }
    d.callees = calloc(d.names.len + 1, sizeof *d.callees);
    uint64_t unit = 0;
    CHECK(str_u64(between(d.header, "\"unit_ns\":", ","), &unit));
    bool exact = str_eq(between(d.header, "\"exact\":", ","), STR("true"));
    bool compared = str_eq(between(d.header, "\"compared\":", ","), STR("true"));
    for (size_t i = 0; i < 1u + compared; i++) {
        read_tree(&c, &d, i, unit, exact);
    }
    uint64_t steps = 0;
    if (str_u64(between(d.header, "\"steps\":", ","), &steps)) {
        read_times(&c, &d);
    }
    CHECK(!c.short_read);
    CHECK_INT(c.len, 0);
    return d;
}

static struct decoded decode(const struct buf *page)
{
    return decode_block(page, "data");
}

static void release(struct decoded *d)
{
    buf_release(&d->bytes);
    vec_release(&d->names);
    vec_release(&d->tree[0]);
    vec_release(&d->tree[1]);
    vec_release(&d->times);
    free(d->callees);
}

static uint64_t file_kind(uint8_t kind)
{
    return kind < FRAME_KIND_COUNT ? kind : (uint64_t)(kind - FOLD_KIND_PROCESS) + 64;
}

static uint32_t next_of(const struct fold *fold, uint32_t n)
{
    const struct fold_node *at = fold->nodes.at;
    if (at[n].first_child != 0) {
        return at[n].first_child;
    }
    while (n != 0 && at[n].next_sibling == 0) {
        n = at[n].parent;
    }
    return n == 0 ? 0 : at[n].next_sibling;
}

/* Node by node: parent, name, kind, weight, order. */
static void check_tree(const struct decoded *d, size_t which, struct profile *p, enum fold_top top)
{
    struct fold fold;
    CHECK(fold_build(&fold, p, top, NULL));
    CHECK_INT(d->tree[which].len, fold.nodes.len);
    uint32_t *place = calloc(fold.nodes.len, sizeof *place), i = 1;
    for (uint32_t n = next_of(&fold, 0); n != 0 && i < d->tree[which].len; n = next_of(&fold, n)) {
        const struct fold_node *got = &d->tree[which].at[i], *want = &fold.nodes.at[n];
        const struct name *name = &d->names.at[got->name];
        place[n] = i++;
        CHECK_INT(got->parent, place[want->parent]);
        CHECK_INT(got->self_ns, want->self_ns);
        CHECK_INT(name->kind, file_kind(want->kind));
        CHECK(str_eq((struct str){name->text, name->len}, profile_text(p, want->name)));
    }
    free(place);
    fold_release(&fold);
}

static void check_round_trip(struct profile *p)
{
    struct buf page = write_page(p, NULL);
    struct decoded d = decode(&page);
    check_tree(&d, 0, p, FOLD_BY_PROCESS);
    release(&d);
    buf_release(&page);
}

/* ---- Random profiles. */

static uint64_t seed;

static uint32_t below(uint32_t bound)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % bound);
}

static struct profile *make_random(uint32_t names, bool whole)
{
    struct profile *p = make();
    p->meta.period_ns = 10101010;
    uint32_t threads[4];
    for (uint32_t i = 0; i < 4; i++) {
        threads[i] = add_thread(p, add_process(p, 1 + i / 2, "proc", ""), i, i % 2 ? "io" : "proc");
    }
    for (unsigned i = 0; i < 1500; i++) {
        uint32_t node = 0;
        for (uint32_t depth = 1 + below(20); depth > 0; depth--) {
            char name[32];
            snprintf(name, sizeof name, "function_%u", below(names));
            node = add_name(p, node, name, (enum frame_kind)below(FRAME_ACCOUNT));
        }
        uint64_t ns = (1 + below(5)) * p->meta.period_ns + (whole ? 0 : below(20000000));
        profile_add(p, threads[below(4)], node, whole || below(9) ? ns : 1, 1);
    }
    return p;
}

static void every_node_and_weight_survives(void)
{
    static const uint32_t names[] = {1, 3, 40, 5000};
    for (unsigned i = 0; i < 8; i++) {
        seed = 77 + i;
        struct profile *p = make_random(names[i % 4], i < 4);
        check_round_trip(p);
        drop(p);
    }
    struct profile *p = make();
    fill_sample(p);
    check_round_trip(p);
    drop(p);
}

static void a_caller_of_a_thousand_functions_survives(void)
{
    struct profile *p = make();
    uint32_t t = add_thread(p, add_process(p, 1, "x", ""), 1, "x");
    for (unsigned i = 0; i < 3000; i++) {
        char name[32];
        snprintf(name, sizeof name, "callee_%u", i * i % 1000 < 50 ? i % 7 : i * i % 1000);
        uint32_t parent = add_name(p, 0, i % 3 ? "dispatch" : "dispatch2", FRAME_NATIVE);
        uint32_t again = add_name(p, parent, name, FRAME_NATIVE);
        profile_add(p, t, add_name(p, again, "dispatch", FRAME_NATIVE), 1 + i, 1);
    }
    check_round_trip(p);
    drop(p);
}

static void weights_beyond_32_bits_survive(void)
{
    struct profile *p = make();
    uint32_t t = add_thread(p, add_process(p, 1, "x", ""), 1, "x");
    p->meta.period_ns = 1000;
    profile_add(p, t, add_name(p, 0, "year", FRAME_NATIVE), UINT64_C(31557600000000000), 1);
    profile_add(p, t, add_name(p, 0, "blink", FRAME_NATIVE), 999, 1);
    check_round_trip(p);
    drop(p);
}

static void below_the_deepest_row_time_is_kept_as_truncated(void)
{
    struct profile *p = make();
    uint32_t t = add_thread(p, add_process(p, 1, "x", ""), 1, "x"), node = 0;
    for (unsigned i = 0; i < 70000; i++) {
        node = add_name(p, node, "f", FRAME_NATIVE);
        if (i % 1000 == 0) {
            profile_add(p, t, node, 100, 1);
        }
    }
    struct buf page = write_page(p, NULL);
    struct decoded d = decode(&page);
    uint64_t sum = 0;
    vec_each(&d.tree[0], n)
    {
        sum += n->self_ns;
    }
    CHECK_INT(d.tree[0].len, FLAME_DEPTH_MAX + 1); /* one node per row */
    CHECK_INT(sum, 7000);
    uint32_t last = d.tree[0].at[FLAME_DEPTH_MAX].name;
    CHECK_TEXT(d.names.at[last].text, "[truncated]");
    CHECK_INT(d.names.at[last].kind, FRAME_ACCOUNT);
    CHECK_INT(d.tree[0].at[FLAME_DEPTH_MAX].self_ns, 400); /* samples at 66,000 … 69,000 */
    release(&d);
    buf_release(&page);
    drop(p);
}

static void a_name_knows_its_library_unless_there_are_two(void)
{
    struct profile *p = make();
    uint32_t t = add_thread(p, add_process(p, 1, "x", ""), 1, "x");
    struct module a = {.path = profile_cstring(p, "/lib/a.so")};
    struct module b = {.path = profile_cstring(p, "/lib/b.so")};
    uint32_t lib_a = profile_module(p, &a), lib_b = profile_module(p, &b);
    profile_add(p, t, add_address(p, 0, lib_a, 1, "one", FRAME_NATIVE), 5, 1);
    profile_add(p, t, add_address(p, 0, lib_a, 9, "one", FRAME_NATIVE), 5, 1);
    profile_add(p, t, add_address(p, 0, lib_a, 2, "both", FRAME_NATIVE), 5, 1);
    profile_add(p, t, add_address(p, 0, lib_b, 2, "both", FRAME_NATIVE), 5, 1);
    struct frame python = {.name = profile_cstring(p, "go"), .file = profile_cstring(p, "go.py"),
                           .kind = FRAME_PYTHON};
    profile_add(p, t, profile_child(p, 0, profile_frame(p, &python)), 5, 1);
    struct buf page = write_page(p, NULL);
    struct decoded d = decode(&page);
    vec_each(&d.names, n)
    {
        const char *place = d.places[n->place];
        CHECK_TEXT(place, strcmp(n->text, "one") == 0 ? "/lib/a.so" :
                          strcmp(n->text, "go") == 0 ? "go.py" : "");
    }
    release(&d);
    buf_release(&page);
    drop(p);
}

static uint32_t add_line(struct profile *p, uint32_t parent, const char *name, uint32_t line)
{
    struct frame frame = {.name = profile_cstring(p, name), .line = line, .kind = FRAME_PYTHON};
    return profile_child(p, parent, profile_frame(p, &frame));
}

/* "first line, lines: line share …" of the name. */
static const char *lines_of(const struct decoded *d, const char *name)
{
    static char text[200];
    size_t len = 0;
    vec_each(&d->names, n)
    {
        for (size_t i = 0; strcmp(n->text, name) == 0 && i <= n->lines; i++) {
            unsigned long long a = i == 0 ? n->first_line : n->line[i - 1], b = i == 0 ? n->lines : n->share[i - 1];
            len += (size_t)snprintf(text + len, sizeof text - len, i == 0 ? "%llu, %llu:" : " %llu %llu", a, b);
        }
    }
    return len == 0 ? "not there" : text;
}

static void a_function_tells_where_it_begins_and_which_lines_it_executed(void)
{
    struct profile *p = make();
    uint32_t t = add_thread(p, add_process(p, 1, "py", ""), 1, "py");
    uint32_t main10 = add_line(p, 0, "main (a.py:1)", 10), main11 = add_line(p, 0, "main (a.py:1)", 11);
    profile_add(p, t, add_line(p, main10, "fib (a.py:20)", 21), 100, 1);
    uint32_t fib22 = add_line(p, main10, "fib (a.py:20)", 22);
    profile_add(p, t, add_line(p, fib22, "fib (a.py:20)", 21), 300, 1); /* the inner call is where it is */
    profile_add(p, t, add_line(p, fib22, "fib (a.py:20)", 22), 200, 1);
    profile_add(p, t, main11, 400, 1);
    profile_add(p, t, add_line(p, 0, "__init__ (a.py:30)", 31), 1, 1);
    profile_add(p, t, add_line(p, 0, "__init__ (a.py:40)", 41), 3, 1);
    for (uint32_t i = 0; i < 9; i++) {
        profile_add(p, t, add_line(p, 0, "many (a.py:50)", 51 + i), i < 8 ? i : 9000, 1);
    }
    profile_add(p, t, add_line(p, 0, "unknown (a.py:60)", 0), 5, 1);
    struct buf page = write_page(p, NULL);
    struct decoded d = decode(&page);
    CHECK_TEXT(lines_of(&d, "main (a.py)"), "1, 2: 10 600 11 400");
    CHECK(has(&page, "<td>python<td>main (a.py), line 10\n") && has(&page, "<td>unknown (a.py)\n"));
    CHECK_TEXT(lines_of(&d, "fib (a.py)"), "20, 2: 21 667 22 333");
    CHECK_TEXT(lines_of(&d, "__init__ (a.py)"), "0, 2: 41 750 31 250");
    CHECK_TEXT(lines_of(&d, "many (a.py)"), "50, 4: 59 997 58 1 57 1 56 1");
    CHECK_TEXT(lines_of(&d, "unknown (a.py)"), "60, 0:");
    release(&d);
    buf_release(&page);
    drop(p);
}

static void a_line_inserted_above_a_function_leaves_it_what_it_was(void)
{
    struct profile *p = make(), *base = make();
    struct profile *both[2] = {p, base};
    for (uint32_t i = 0; i < 2; i++) {
        char name[32];
        uint32_t t = add_thread(both[i], add_process(both[i], 1, "py", ""), 1, "py");
        snprintf(name, sizeof name, "main (a.py:%u)", 12 + i);
        profile_add(both[i], t, add_name(both[i], add_line(both[i], 0, name, 15 + i), "work", FRAME_NATIVE), 10, 1);
    }
    struct buf page = write_page(p, base);
    struct decoded d = decode(&page);
    CHECK_INT(d.names.len, 3); /* the thread, main and work */
    CHECK_TEXT(lines_of(&d, "main (a.py)"), "12, 1: 15 1000");
    for (size_t i = 1; i < d.tree[0].len; i++) {
        CHECK_INT(d.tree[0].at[i].name, d.tree[1].at[i].name);
    }
    release(&d);
    buf_release(&page);
    drop(p);
    drop(base);
}

static void a_comparison_holds_both_trees_whatever_the_pids(void)
{
    struct profile *p = make(), *base = make();
    fill_sample(p);
    uint32_t t = add_thread(base, add_process(base, 4711, "web", "shop"), 4712, "web");
    uint32_t only_before = add_name(base, 0, "gone", FRAME_NATIVE);
    profile_add(base, t, only_before, 3 * SAMPLE_PERIOD_NS, 3);
    profile_add(base, t, add_name(base, only_before, "query", FRAME_GO), SAMPLE_PERIOD_NS + 1, 1);
    struct buf page = write_page(p, base);
    struct decoded d = decode(&page);
    check_tree(&d, 0, p, FOLD_BY_COMM);
    check_tree(&d, 1, base, FOLD_BY_COMM);
    CHECK(has(&page, "Compared with profile (0.040 s CPU), relative to equal totals"));
    release(&d);
    buf_release(&page);
    drop(p);
    drop(base);
}

/* ---- The static part. */

static void base64_of(const void *ptr, size_t len, char out[64])
{
    static const char digits[] = BASE64;
    const unsigned char *from = ptr;
    uint32_t bits = 0;
    int have = 0;
    for (size_t i = 0; i < len; i++) {
        bits = bits << 8 | from[i];
        for (have += 8; have >= 6;) {
            have -= 6;
            *out++ = digits[bits >> have & 63];
        }
    }
    if (have > 0) {
        *out++ = digits[bits << (6 - have) & 63];
    }
    strcpy(out, len % 3 == 1 ? "==" : len % 3 == 2 ? "=" : "");
}

static void check_hash(const struct buf *page, const char *directive, struct str text)
{
    unsigned char hash[br_sha256_SIZE];
    char digits[64], source[80];
    br_sha256_context context;
    br_sha256_init(&context);
    br_sha256_update(&context, text.ptr, text.len);
    br_sha256_out(&context, hash);
    base64_of(hash, sizeof hash, digits);
    snprintf(source, sizeof source, "'sha256-%s'", digits);
    struct str allowed = between(buf_slice(page), directive, ";");
    CHECK(memmem(allowed.ptr, allowed.len, source, strlen(source)) != NULL);
}

static void the_policy_allows_exactly_what_the_page_holds(void)
{
    struct profile *p = make();
    fill_sample(p);
    struct buf page = write_page(p, NULL);
    struct buf script = unpack(&page, "code");
    CHECK(script.len > 10000 && str_starts(buf_slice(&script), STR("'use strict';")));
    check_hash(&page, "script-src ", buf_slice(&script));
    check_hash(&page, "script-src ", between(buf_slice(&page), "<script>", "</script>"));
    check_hash(&page, "style-src ", between(buf_slice(&page), "<style>", "</style>"));
    CHECK(has(&page, "content=\"default-src 'none'; script-src "));
    CHECK(has(&page, "; base-uri 'none'; form-action 'none'\">"));
    struct str head = between(buf_slice(&page), "<head>\n", "<title>");
    CHECK(str_starts(head, STR("<meta charset=\"utf-8\">\n"
                               "<meta http-equiv=\"Content-Security-Policy\"")));
    buf_release(&script);
    buf_release(&page);
    drop(p);
}

static void the_page_names_no_address_and_no_handler(void)
{
    struct profile *p = make();
    fill_sample(p);
    struct buf page = write_page(p, NULL);
    struct buf script = unpack(&page, "code");
    static const char *const forbidden[] = {"http:", "https:", "src=", "href=", "@import", "url(",
                                            " onload=", " onclick=", " onerror=", " style=",
                                            "javascript:"};
    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++) {
        CHECK(!has(&page, forbidden[i]));
    }
    static const char *const unsafe[] = {"innerHTML", "outerHTML", "insertAdjacentHTML", "eval(",
                                         "new Function", "document.write", "XMLHttpRequest",
                                         "fetch(", "WebSocket", "sendBeacon", "import("};
    for (size_t i = 0; i < sizeof unsafe / sizeof unsafe[0]; i++) {
        CHECK(!has(&script, unsafe[i]));
        CHECK(!has(&page, unsafe[i]));
    }
    buf_release(&script);
    buf_release(&page);
    drop(p);
}

static void the_constant_part_stays_below_48_kb(void)
{
    struct profile *p = make();
    struct buf page = write_page(p, NULL);
    struct str data = between(buf_slice(&page), "id=\"data\">\n", "</script>");
    CHECK(page.len - data.len <= CONSTANT_MAX_BYTES);
    buf_release(&page);
    fill_sample(p);
    page = write_page(p, NULL);
    data = between(buf_slice(&page), "id=\"data\">\n", "</script>");
    CHECK(page.len - data.len <= CONSTANT_MAX_BYTES);
    buf_release(&page);
    drop(p);
}

static void check_escaped(struct str name, const char *expected)
{
    struct profile *p = make();
    struct process process = {.pid = 1, .name = profile_string(p, name)};
    uint32_t t = profile_thread(p, profile_process(p, &process), 1, process.name);
    struct frame frame = {.name = process.name};
    profile_add(p, t, profile_child(p, 0, profile_frame(p, &frame)), 1, 1);
    p->meta.service = p->meta.host = p->meta.mode = p->meta.reason = process.name;
    struct buf page = write_page(p, NULL);
    struct str rest = buf_slice(&page);
    struct str title = between(rest, "<title>pillion \xc2\xb7 ", "</title>");
    CHECK_STR(title, expected);
    CHECK_STR(between(rest, "<small>pillion</small> ", "</h1>"), expected);
    CHECK_STR(between(rest, "<dt>Host</dt><dd>", "</dd>"), expected);
    CHECK_STR(between(rest, "<td>native<td>", "\n"), expected);
    buf_release(&page);
    drop(p);
}

static void names_cannot_leave_their_place(void)
{
    check_escaped(STR("plain_name"), "plain_name");
    check_escaped(STR("</title></h1></dd><script>alert(1)</script>"),
                  "&#60;/title&#62;&#60;/h1&#62;&#60;/dd&#62;"
                  "&#60;script&#62;alert(1)&#60;/script&#62;");
    check_escaped(STR("a & b \"c\" 'd' <e>"), "a &#38; b &#34;c&#34; &#39;d&#39; &#60;e&#62;");
    check_escaped(STR("nul\0tab\tline\ncr\r\x1b[31m\x7f"),
                  "nul\\x00tab\\x09line\\x0acr\\x0d\\x1b[31m\\x7f");
    check_escaped(STR("\xc2\x85\xc2\x9b" "c1"), "\\x85\\x9bc1");
    check_escaped(STR("\xe2\x80\xa8\xe2\x80\xa9"), "\\u2028\\u2029");
    check_escaped(STR("a\xe2\x80\xae" "b\xe2\x81\xa6\xe2\x80\x8b\xef\xbb\xbf"),
                  "a\\u202eb\\u2066\\u200b\\ufeff");
    check_escaped(STR("bad \xff\xc0\xaf \xed\xa0\x80 \xf5 \xe2\x82"),
                  "bad \\xff\\xc0\\xaf \\xed\\xa0\\x80 \\xf5 \\xe2\\x82");
    check_escaped(STR("gr\xc3\xb6\xc3\x9f \xe5\x85\xb3 \xf0\x9f\x94\xa5"),
                  "gr\xc3\xb6\xc3\x9f \xe5\x85\xb3 \xf0\x9f\x94\xa5");
    check_escaped(STR("--> ]]> <!--"), "--&#62; ]]&#62; &#60;!--");
}

static void a_long_name_ends_in_an_ellipsis(void)
{
    char name[2000], expected[600];
    memset(name, 'x', sizeof name);
    memset(expected, 'x', 512);
    strcpy(expected + 512, "\xe2\x80\xa6");
    check_escaped((struct str){name, sizeof name}, expected);
    expected[512] = '\0';
    check_escaped((struct str){name, 512}, expected);
}

static void check_not_seen(struct profile *p, const char *expected)
{
    struct buf page = write_page(p, NULL);
    CHECK_STR(between(buf_slice(&page), "<p id=\"unseen\" class=\"", "</p>"), expected);
    buf_release(&page);
}

static void what_was_not_seen_is_said_in_every_page(void)
{
    struct profile *p = make();
    uint32_t process = add_process(p, 1, "x", ""), t = add_thread(p, process, 1, "x");
    check_not_seen(p, "ok\"><b>Not seen:</b> no CPU time was used, or none could be seen; the "
                      "reason stands below");
    profile_add(p, t, add_name(p, 0, "f", FRAME_NATIVE), UINT64_C(118400000000), 1);
    check_not_seen(p, "ok\"><b>Not seen:</b> nothing missing (100.0 % of 118.4 s)");
    p->processes.at[process].cpu_ns = UINT64_C(118400000000);
    p->processes.at[process].remedy = profile_cstring(p, "Perl <is> not read");
    check_not_seen(p, "amber\"><b>Not seen:</b> nothing missing but names (100.0 % of 118.4 s). "
                      "<span>x: Perl &#60;is&#62; not read</span>");
    p->processes.at[process].remedy = 0;
    p->processes.at[process].cpu_ns = 0;
    profile_account(p, t, ACCOUNT_LOST, UINT64_C(1600000000));
    check_not_seen(p, "ok\"><b>Not seen:</b> 1.60 s of the CPU time (1.3 %): 1.60 s lost (1.3 %)");
    profile_account(p, t, ACCOUNT_KERNEL_HIDDEN, UINT64_C(10000000000));
    check_not_seen(p, "amber\"><b>Not seen:</b> 11.6 s of the CPU time (8.9 %): 1.60 s lost (1.2 %)"
                      " \xc2\xb7 10.0 s kernel, hidden (7.7 %)");
    p->processes.at[process].cpu_ns = UINT64_C(200000000000);
    p->meta.lost_records = 1234567;
    p->meta.reason = profile_cstring(p, "perf: EPERM <seccomp>");
    check_not_seen(p, "red\"><b>Not seen:</b> 81.6 s of the CPU time (40.8 %): 1.60 s lost (0.8 %)"
                      " \xc2\xb7 10.0 s kernel, hidden (5.0 %) \xc2\xb7 70.0 s in no sample (35.0 %)"
                      " \xc2\xb7 1,234,567 records lost. <span>perf: EPERM &#60;seccomp&#62;</span>");
    drop(p);
}

static void an_empty_page_gives_the_reason_in_the_graphs_place(void)
{
    struct profile *p = make();
    p->meta.end_wall_ns = UINT64_C(60000000000);
    struct buf page = write_page(p, NULL);
    CHECK(has(&page, "<h2>No CPU time was seen in 60.0 s</h2>\n<p>Nothing ran:"));
    CHECK(has(&page, "<p>No function was seen.</p>") && !has(&page, "<canvas"));
    buf_release(&page);
    p->meta.reason = profile_cstring(p, "perf_event_open: EPERM; allow it");
    page = write_page(p, NULL);
    CHECK(has(&page, "in 60.0 s</h2>\n<p>perf_event_open: EPERM; allow it</p>"));
    CHECK(has(&page, "class=\"red\""));
    buf_release(&page);
    drop(p);
}

static void the_table_counts_recursion_once(void)
{
    struct profile *p = make();
    uint32_t t = add_thread(p, add_process(p, 1, "x", ""), 1, "x");
    uint32_t fib = add_name(p, 0, "fib", FRAME_NATIVE);
    uint32_t deep = add_name(p, add_name(p, fib, "helper", FRAME_NATIVE), "fib", FRAME_NATIVE);
    profile_add(p, t, fib, UINT64_C(1000000000), 1);
    profile_add(p, t, add_name(p, deep, "leaf", FRAME_PYTHON), UINT64_C(3000000000), 1);
    struct buf page = write_page(p, NULL);
    struct str table = between(buf_slice(&page), "<tbody>\n", "</tbody>");
    CHECK_STR(table, "<tr><td>75.0 %<td>3.00 s<td>75.0 %<td>3.00 s<td>python<td>leaf\n"
                     "<tr><td>25.0 %<td>1.00 s<td>100.0 %<td>4.00 s<td>native<td>fib\n");
    buf_release(&page);
    drop(p);
}

static void the_table_holds_the_twenty_heaviest_functions(void)
{
    struct profile *p = make();
    uint32_t t = add_thread(p, add_process(p, 1, "x", ""), 1, "x");
    for (unsigned i = 0; i < 50; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%02u", i * 7 % 50);
        uint64_t ns = (1 + i * 7 % 50) * UINT64_C(1000000);
        profile_add(p, t, add_name(p, 0, name, FRAME_NATIVE), ns, 1);
    }
    profile_account(p, t, ACCOUNT_LOST, UINT64_C(5000000000));
    struct buf page = write_page(p, NULL);
    struct str table = between(buf_slice(&page), "<tbody>\n", "</tbody>");
    unsigned rows = 0;
    for (struct str line = str_cut(&table, '\n'); line.len > 0; line = str_cut(&table, '\n')) {
        char name[16];
        snprintf(name, sizeof name, "<td>f%02u", 49 - rows);
        CHECK(str_ends(line, str_of(name)));
        rows++;
    }
    CHECK_INT(rows, 20);
    buf_release(&page);
    drop(p);
}

static void the_header_tells_the_windows_facts(void)
{
    struct profile *p = make();
    fill_sample(p);
    p->meta.service = profile_cstring(p, "checkout");
    p->meta.host = profile_cstring(p, "ip-10-0-0-1");
    p->meta.mode = profile_cstring(p, "perf, user only");
    p->meta.frequency_hz = 99;
    p->meta.own_cpu_ns = 90000000;
    p->meta.own_rss_bytes = 9000000;
    struct buf page = write_page(p, NULL);
    CHECK(has(&page, "<title>pillion \xc2\xb7 checkout \xc2\xb7 2026-11-20 10:12:04 UTC \xc2\xb7 "
                     "60.0 s</title>"));
    CHECK(has(&page, "<dt>CPU time</dt><dd>0.48 s</dd>"));
    CHECK(has(&page, "<dt>Cores in use</dt><dd>0.01</dd>"));
    CHECK(has(&page, "<dt>Processes</dt><dd>2</dd>") && has(&page, "<dt>Threads</dt><dd>3</dd>"));
    CHECK(has(&page, "<dt>Rate</dt><dd>99 Hz</dd>"));
    CHECK(has(&page, "<dt>Host</dt><dd>ip-10-0-0-1</dd>"));
    CHECK(has(&page, "<dt>How</dt><dd>perf, user only</dd>"));
    CHECK(has(&page, "2026-11-20 10:11:04 \xe2\x80\x93 10:12:04 (60.0 s)"));
    CHECK(has(&page, "The profiler itself took 0.090 s CPU and 9.0 MB"));
    CHECK(has(&page, "<tr><td>63.3 %<td>0.31 s<td>12<td>web<td>shop<td>CPython 3.11.9"));
    buf_release(&page);
    drop(p);
}

struct failing {
    size_t left, calls;
};

static bool fail_later(void *context, const void *ptr, size_t len, struct err *err)
{
    struct failing *f = context;
    (void)ptr;
    f->calls++;
    if (len > f->left) {
        f->left = 0;
        return err_set(err, ERR_IO, 28, "disk full");
    }
    f->left -= len;
    return true;
}

/* 7 us of waiting, 3 ms of stalls, 5 cache misses. */
static void add_types(struct profile *p)
{
    const struct sample s = p->samples.at[1], other = p->samples.at[2];
    profile_add_wait(p, s.thread, s.node, 5000);
    profile_add_wait(p, other.thread, other.node, 2000);
    profile_add_event(p, profile_event_type(p, "stalls", "ms"), s.thread, s.node, 3);
    profile_add_event(p, profile_event_type(p, "cache <misses>", "count"), other.thread, other.node, 5);
}

/* A pprof file with so many objects, of a page each. */
static void put_runtime(struct profile *p, uint32_t pid, const char *type, uint64_t objects)
{
    struct profile *made = make();
    struct buf file;
    uint32_t t = add_thread(made, add_process(made, 0, "", ""), 0, "");
    uint32_t node = add_name(made, add_name(made, 0, "main.main", FRAME_GO), "main.make", FRAME_GO);
    profile_add_event(made, profile_event_type(made, "objects", "count"), t, node, objects);
    profile_add_event(made, profile_event_type(made, "space", "bytes"), t, node, objects * 4096);
    buf_init(&file, 1 << 20);
    struct sink sink = sink_of_buf(&file);
    CHECK(pprof_write(made, NULL, &sink, NULL) && runtime_profiles_put(&p->of_runtimes, pid, FRAME_GO, type, &file));
    buf_release(&file);
    drop(made);
}

static void a_full_disk_is_reported_wherever_it_strikes(void)
{
    struct profile *p = make();
    fill_sample(p);
    add_types(p);
    for (size_t room = 0;; room += 997) {
        struct failing f = {.left = room};
        struct err err = {0};
        struct sink sink = {fail_later, &f};
        if (flame_write(p, &sink, &err)) {
            CHECK(room > 20000);
            break;
        }
        CHECK(err.kind == ERR_IO && strcmp(err.text, "disk full") == 0);
        size_t calls = f.calls;
        CHECK(calls <= room / 500 + 60); /* it stops instead of going on in vain */
    }
    drop(p);
}

/* ---- Further sample types. */

/* label, header's value, unit and noun, total; node by node it is what the fold of `wanted` says */
static void check_type(const struct buf *page, const char *id, const char *value, const char *unit, uint64_t total)
{
    struct decoded d = decode_block(page, id);
    uint64_t sum = 0;
    vec_each(&d.tree[0], node)
    {
        sum += node->self_ns;
    }
    CHECK_INT(sum, total);
    CHECK_STR(between(d.header, "\"value\":\"", "\""), value);
    CHECK_STR(between(d.header, "\"unit\":\"", "\""), unit);
    release(&d);
}

static void each_type_has_a_block_of_its_own_behind_the_first(void)
{
    struct profile *p = make();
    fill_sample(p);
    struct buf alone = write_page(p, NULL);
    CHECK(!has(&alone, "<select") && !has(&alone, "data1"));
    add_types(p);
    struct buf page = write_page(p, NULL);
    /* up to the first block of the others the page is the same */
    size_t same = alone.len - strlen("</body>\n</html>\n");
    CHECK(page.len > same && memcmp(page.ptr, alone.ptr, same) == 0);
    CHECK_STR(between(buf_slice(&page), "hidden>\n", "</select>"),
              "<option value=\"0\">CPU time</option>\n<option value=\"1\">off_cpu</option>\n"
              "<option value=\"2\">wall</option>\n<option value=\"3\">cache &#60;misses&#62;</option>\n"
              "<option value=\"4\">stalls</option>\n");
    struct decoded d = decode(&page);
    check_tree(&d, 0, p, FOLD_BY_PROCESS);
    release(&d);
    check_type(&page, "data1", "off_cpu", "nanoseconds", 7000);
    check_type(&page, "data2", "wall", "nanoseconds", 7000 + profile_sum(p).cpu_ns);
    check_type(&page, "data3", "cache <misses>", "count", 5);
    check_type(&page, "data4", "stalls", "nanoseconds", 3000000); /* of 3 ms */
    CHECK(!has(&page, "Not in this page"));
    buf_release(&page);
    buf_release(&alone);
    drop(p);
}

/* Again and again, as the strings that views add are the profile's: nothing of it is lost or freed twice. */
static void a_page_leaves_the_profile_as_it_was(void)
{
    struct profile *p = make();
    fill_sample(p);
    add_types(p);
    put_runtime(p, 12, "heap", 1);
    struct buf first = write_page(p, NULL);
    size_t strings = p->strings.len, samples = p->samples.len;
    for (unsigned i = 0; i < 3; i++) {
        struct buf again = write_page(p, NULL);
        CHECK(again.len == first.len && memcmp(again.ptr, first.ptr, first.len) == 0);
        buf_release(&again);
    }
    CHECK(p->strings.len == strings && p->samples.len == samples && p->meta.value == 0);
    CHECK(profile_cstring(p, "off_cpu") != 0 && p->strings.len == strings);
    buf_release(&first);
    drop(p);
}

static void files_of_one_type_are_one_tree_with_a_box_per_process(void)
{
    struct profile *p = make();
    fill_sample(p);
    put_runtime(p, 12, "heap", 1);
    put_runtime(p, 30, "heap", 2);
    put_runtime(p, 12, "mutex", 4);
    struct buf text;
    buf_init(&text, 100);
    buf_text(&text, "{}");
    CHECK(runtime_profiles_put(&p->of_runtimes, 12, FRAME_GO, "metrics.json", &text)); /* is none */
    struct buf page = write_page(p, NULL);
    CHECK_STR(between(buf_slice(&page), "hidden>\n", "</select>"),
              "<option value=\"0\">CPU time</option>\n<option value=\"1\">space</option>\n"
              "<option value=\"2\">objects</option>\n<option value=\"3\">space (mutex)</option>\n"
              "<option value=\"4\">objects (mutex)</option>\n");
    check_type(&page, "data1", "space", "bytes", 3 * 4096);
    check_type(&page, "data4", "objects", "count", 4);
    struct decoded d = decode_block(&page, "data1");
    CHECK_STR(between(d.header, "\"processes\":[\n", "]]"), "[\"db\",\"\"],\n[\"web\",\"shop\"");
    uint64_t of_db = 0;
    for (size_t i = 1; i < d.tree[0].len; i++) {
        const struct fold_node *node = &d.tree[0].at[i];
        uint32_t top = (uint32_t)i;
        while (d.tree[0].at[top].parent != 0) {
            top = d.tree[0].at[top].parent;
        }
        of_db += strcmp(d.names.at[d.tree[0].at[top].name].text, "db (pid 30)") == 0 ? node->self_ns : 0;
    }
    CHECK_INT(of_db, 2 * 4096);
    release(&d);
    buf_release(&page);
    buf_release(&text);
    drop(p);
}

static void what_has_no_weight_or_no_name_is_not_offered(void)
{
    struct profile *p = make();
    fill_sample(p);
    profile_event_type(p, "nothing", "count");
    uint32_t nameless = profile_event_type(p, "", "count"), huge = profile_event_type(p, "huge", "count");
    profile_add_event(p, nameless, 1, p->samples.at[1].node, 9);
    profile_add_event(p, huge, 1, p->samples.at[1].node, UINT64_MAX); /* no sum could be made of it */
    struct buf page = write_page(p, NULL);
    CHECK(!has(&page, "<select") && !has(&page, "Not in this page"));
    buf_release(&page);
    drop(p);
}

static void a_profile_of_events_alone_begins_with_the_last(void)
{
    struct profile *p = make();
    uint32_t t = add_thread(p, add_process(p, 1, "x", ""), 1, "x"), node = add_name(p, 0, "main", FRAME_GO);
    profile_add_event(p, profile_event_type(p, "objects", "count"), t, node, 3);
    profile_add_event(p, profile_event_type(p, "space", "bytes"), t, node, 1234567);
    struct buf page = write_page(p, NULL);
    CHECK(has(&page, "<dt>space</dt><dd>1.23 MB</dd>") && has(&page, "Width is space.") && !has(&page, "CPU time"));
    CHECK(has(&page, "<tr><td>100.0 %<td>1.23 MB<td>100.0 %<td>1.23 MB<td>go<td>main\n"));
    check_type(&page, "data", "space", "bytes", 1234567);
    check_type(&page, "data1", "objects", "count", 3);
    CHECK_STR(between(buf_slice(&page), "hidden>\n", "</select>"),
              "<option value=\"0\">space</option>\n<option value=\"1\">objects</option>\n");
    buf_release(&page);
    drop(p);
}

static void without_cpu_time_the_others_are_offered(void)
{
    struct profile *p = make();
    uint32_t t = add_thread(p, add_process(p, 1, "x", ""), 1, "x");
    profile_add_wait(p, t, add_name(p, 0, "sleep", FRAME_NATIVE), 5000);
    struct buf page = write_page(p, NULL);
    CHECK(has(&page, "<h2>No CPU time was seen") && has(&page, "<canvas"));
    CHECK_STR(between(buf_slice(&page), "hidden>\n", "</select>"),
              "<option value=\"1\">off_cpu</option>\n<option value=\"2\">wall</option>\n");
    buf_release(&page);
    drop(p);
}

static void sizes_are_told_by_thousands(void)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {{0, "0 bytes"}, {999, "999 bytes"}, {1000, "1.00 kB"}, {12345, "12.3 kB"}, {999499, "999 kB"},
                {999501, "1.00 MB"}, {99949999, "99.9 MB"}, {99960000, "100 MB"}, {UINT64_C(1) << 62, "4.61 EB"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct buf out;
        struct page page;
        buf_init(&out, 100);
        struct sink sink = sink_of_buf(&out);
        page_begin(&page, &sink, NULL);
        page_size(&page, rows[i].bytes);
        CHECK(page_end(&page));
        CHECK_STR(buf_slice(&out), rows[i].text);
        buf_release(&out);
    }
}

/* ---- When. */

/* "name step:weight …" of a node, without time "-:weight". */
static void times_text(const struct decoded *d, struct buf *text)
{
    uint32_t node = 0;
    buf_init(text, 4096);
    vec_each(&d->times, time)
    {
        if (time->sample != node) {
            node = time->sample;
            buf_printf(text, "%s%s", text->len > 0 ? ", " : "", d->names.at[d->tree[0].at[node].name].text);
        }
        if (time->step == UINT32_MAX) {
            buf_printf(text, " -:%u", time->weight);
        } else {
            buf_printf(text, " %u:%u", time->step, time->weight);
        }
    }
}

static void check_times(struct profile *p, const char *steps, const char *want)
{
    struct buf page = write_page(p, NULL), got;
    struct decoded d = decode(&page);
    struct str told = between(d.header, "\"step_ns\":", ",\n\"kinds");
    CHECK_STR(told.ptr != NULL ? told : STR("none"), steps);
    check_tree(&d, 0, p, FOLD_BY_PROCESS);
    times_text(&d, &got);
    CHECK_TEXT(buf_cstr(&got), want);
    buf_release(&got);
    release(&d);
    buf_release(&page);
}

static void each_node_tells_when_its_time_was(void)
{
    struct profile *p = make();
    uint64_t unit = 16000000, ms = 1000000;
    p->meta.period_ns = unit;
    p->meta.start_wall_ns = 5 * NS_PER_S;
    p->meta.end_wall_ns = 6 * NS_PER_S;
    profile_keep_moments(p, 100 * ms);
    uint32_t web = add_process(p, 1, "web", ""), one = add_thread(p, web, 1, "web"), two = add_thread(p, web, 2, "web");
    uint32_t a = add_name(p, 0, "a", FRAME_NATIVE), b = add_name(p, a, "b", FRAME_NATIVE);
    profile_add_at(p, one, b, unit, 1, 995 * ms);
    profile_add_at(p, two, b, unit, 1, 105 * ms); /* threads of one name are one node */
    profile_add_at(p, one, b, 2 * unit, 1, 990 * ms);
    profile_add_at(p, one, a, 3 * unit, 1, 100 * ms);
    profile_add_at(p, one, a, 1, 1, 500 * ms);
    profile_account(p, one, ACCOUNT_LOST, unit); /* of this nobody knows when it was */
    profile_add(p, two, a, 2 * unit, 1);
    check_times(p, "10000000,\n\"steps\":100", "a -:32 0:48 40:1, b 0:16 89:48");
    drop(p);
}

static void a_profile_without_moments_has_no_times(void)
{
    struct profile *p = make();
    fill_sample(p);
    check_times(p, "none", "");
    profile_keep_moments(p, 0);
    check_times(p, "none", "");
    drop(p);
}

/* As many as there are, the page holds FLAME_MOMENTS_MAX, of the whole window. */
static void too_many_moments_are_told_in_longer_steps(void)
{
    struct profile *p = make();
    p->meta.period_ns = 16000000;
    profile_keep_moments(p, 0);
    uint32_t thread = add_thread(p, add_process(p, 1, "web", ""), 1, "web"), steps = 3 * FLAME_MOMENTS_MAX;
    p->moments.most = steps;
    uint32_t a = add_name(p, 0, "a", FRAME_NATIVE);
    for (uint64_t i = 0; i < steps; i++) {
        profile_add_at(p, thread, a, 16000000, 1, i * MOMENTS_STEP_NS);
    }
    struct buf page = write_page(p, NULL);
    struct decoded d = decode(&page);
    CHECK_STR(between(d.header, "\"step_ns\":", ",\n\"kinds"), "40000000,\n\"steps\":300000");
    CHECK_INT(d.times.len, 300000);
    CHECK_INT(d.times.at[299999].step, 299999);
    CHECK_INT(d.times.at[0].weight, 64);
    release(&d);
    buf_release(&page);
    drop(p);
}

TESTS({"every node and weight survives", every_node_and_weight_survives},
      {"a caller of a thousand functions survives", a_caller_of_a_thousand_functions_survives},
      {"weights beyond 32 bits survive", weights_beyond_32_bits_survive},
      {"below the deepest row, time is kept as [truncated]",
       below_the_deepest_row_time_is_kept_as_truncated},
      {"a name knows its library unless there are two",
       a_name_knows_its_library_unless_there_are_two},
      {"a function tells where it begins and which lines it executed",
       a_function_tells_where_it_begins_and_which_lines_it_executed},
      {"a line inserted above a function leaves it what it was",
       a_line_inserted_above_a_function_leaves_it_what_it_was},
      {"a comparison holds both trees, whatever the pids",
       a_comparison_holds_both_trees_whatever_the_pids},
      {"the policy allows exactly what the page holds",
       the_policy_allows_exactly_what_the_page_holds},
      {"the page names no address and no handler", the_page_names_no_address_and_no_handler},
      {"the constant part stays below 48 KB", the_constant_part_stays_below_48_kb},
      {"names cannot leave their place", names_cannot_leave_their_place},
      {"a long name ends in an ellipsis", a_long_name_ends_in_an_ellipsis},
      {"what was not seen is said in every page", what_was_not_seen_is_said_in_every_page},
      {"an empty page gives the reason in the graph's place",
       an_empty_page_gives_the_reason_in_the_graphs_place},
      {"the table counts recursion once", the_table_counts_recursion_once},
      {"the table holds the twenty heaviest functions",
       the_table_holds_the_twenty_heaviest_functions},
      {"the header tells the window's facts", the_header_tells_the_windows_facts},
      {"a full disk is reported wherever it strikes", a_full_disk_is_reported_wherever_it_strikes},
      {"each type has a block of its own, behind the first", each_type_has_a_block_of_its_own_behind_the_first},
      {"a page leaves the profile as it was", a_page_leaves_the_profile_as_it_was},
      {"files of one type are one tree with a box per process",
       files_of_one_type_are_one_tree_with_a_box_per_process},
      {"what has no weight or no name is not offered", what_has_no_weight_or_no_name_is_not_offered},
      {"a profile of events alone begins with the last", a_profile_of_events_alone_begins_with_the_last},
      {"without CPU time the others are offered", without_cpu_time_the_others_are_offered},
      {"each node tells when its time was", each_node_tells_when_its_time_was},
      {"a profile without moments has no times", a_profile_without_moments_has_no_times},
      {"too many moments are told in longer steps", too_many_moments_are_told_in_longer_steps},
      {"sizes are told by thousands", sizes_are_told_by_thousands})

/* src/runtime/go/delta: profiles are built field by field, their differences read field by field and compared
 * as text. Each field that is refused stands behind a profile that is sound without it. */
#include "runtime/go/delta/delta.h"

#include <inttypes.h>

#include "base/gzip.h"
#include "base/protobuf.h"
#include "runtime/go/delta/delta_snapshot.h"
#include "runtime/go/delta/delta_stacks.h"
#include "test.h"

enum { OUT_MAX = 64 << 20, NAMES_MAX = 64, COUNT = 4 };

static const char *const grows[] = {"alloc_objects", "alloc_space"};
static const char *const waits[] = {"contentions", "delay"};
static const char *const heap_types[] = {"alloc_objects", "count", "alloc_space", "bytes",
                                         "inuse_objects", "count", "inuse_space", "bytes"};
static const char *const mutex_types[] = {"contentions", "count", "delay", "nanoseconds"};

/* ---- A profile is made ---- */

struct row {
    uint64_t stack[4]; /* addresses, leaf first, ended by 0 */
    int64_t values[COUNT];
    const char *key, *text; /* a label, or none */
    int64_t number;
    const char *unit;
    const char *other_key; /* one more label; in front of the other in a raised file */
};

struct shape {
    const char *const *types;
    size_t columns;
    int64_t time, duration;
    bool texts_first, is_spread, is_plain, is_raised; /* spread: numbers not packed; raised: other ids */
    const char *extra; /* bytes behind it all */
    size_t extra_len;
};

static const struct shape heap = {.types = heap_types, .columns = 4, .time = 1000};
static const struct shape mutex = {.types = mutex_types, .columns = 2, .time = 1000};

struct maker {
    const struct shape *shape;
    const char *names[NAMES_MAX];
    char made[NAMES_MAX][20];
    size_t count;
    uint64_t known[NAMES_MAX]; /* addresses of locations; id: place + 1 */
    size_t locations;
    struct buf body;
};

static uint64_t name(struct maker *m, const char *text)
{
    for (size_t i = 0; i < m->count; i++) {
        if (strcmp(m->names[i], text) == 0) {
            return i;
        }
    }
    m->names[m->count] = text;
    return m->count++;
}

static void add(struct maker *m, unsigned number, struct buf *message)
{
    protobuf_message(&m->body, number, message);
    buf_release(message);
}

static struct buf started(void)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    return b;
}

static void add_type(struct maker *m, unsigned number, const char *type, const char *unit)
{
    struct buf b = started();
    protobuf_u64(&b, 1, name(m, type));
    protobuf_u64(&b, 2, name(m, unit));
    add(m, number, &b);
}

static uint64_t location(struct maker *m, uint64_t address)
{
    uint64_t shift = m->shape->is_raised ? 7 : 0;
    for (size_t i = 0; i < m->locations; i++) {
        if (m->known[i] == address) {
            return i + 1 + shift;
        }
    }
    uint64_t id = m->locations + 1 + shift;
    char *called = m->made[m->locations];
    m->known[m->locations++] = address;
    snprintf(called, sizeof m->made[0], "f%" PRIx64, address);
    struct buf b = started(), line = started();
    protobuf_u64(&line, 1, id);
    protobuf_u64(&line, 2, 10);
    protobuf_u64(&b, 1, id);
    protobuf_u64(&b, 2, 1);
    protobuf_u64(&b, 3, address);
    protobuf_message(&b, 4, &line);
    buf_release(&line);
    add(m, 4, &b);
    b = started();
    protobuf_u64(&b, 1, id);
    protobuf_u64(&b, 2, name(m, called));
    protobuf_u64(&b, 3, name(m, called));
    protobuf_u64(&b, 4, name(m, "f.go"));
    add(m, 5, &b);
    return id;
}

static void add_numbers(struct buf *out, unsigned field, const uint64_t *numbers, size_t count, bool is_spread)
{
    struct buf packed = started();
    for (size_t i = 0; i < count; i++) {
        if (is_spread) {
            protobuf_varint(out, field << 3);
            protobuf_varint(out, numbers[i]);
        }
        protobuf_varint(&packed, numbers[i]);
    }
    if (!is_spread) {
        protobuf_message(out, field, &packed);
    }
    buf_release(&packed);
}

static void add_label(struct maker *m, struct buf *sample, const struct row *row, bool is_other)
{
    struct buf label = started();
    protobuf_u64(&label, 1, name(m, is_other ? row->other_key : row->key));
    protobuf_u64(&label, 2, is_other || row->text == NULL ? 0 : name(m, row->text));
    protobuf_u64(&label, 3, is_other ? 0 : (uint64_t)row->number);
    protobuf_u64(&label, 4, is_other || row->unit == NULL ? 0 : name(m, row->unit));
    protobuf_message(sample, 3, &label);
    buf_release(&label);
}

static void add_row(struct maker *m, const struct row *row)
{
    struct buf b = started();
    uint64_t ids[4], values[COUNT];
    size_t depth = 0;
    for (; depth < 4 && row->stack[depth] != 0; depth++) {
        ids[depth] = location(m, row->stack[depth]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        values[i] = (uint64_t)row->values[i];
    }
    add_numbers(&b, 1, ids, depth, m->shape->is_spread);
    add_numbers(&b, 2, values, m->shape->columns, m->shape->is_spread);
    for (int i = 0; i < 2; i++) {
        bool is_other = (i == 1) != m->shape->is_raised;
        if ((is_other ? row->other_key : row->key) != NULL) {
            add_label(m, &b, row, is_other);
        }
    }
    add(m, 2, &b);
}

static void pack(struct buf *out, struct str bytes)
{
    struct gzip *gzip = malloc(sizeof *gzip);
    struct sink sink = sink_of_buf(out);
    CHECK(gzip_open_quick(gzip, &sink, NULL));
    struct sink plain = gzip_sink(gzip);
    CHECK(sink_write(&plain, bytes.ptr, bytes.len, NULL) && gzip_finish(gzip, NULL));
    gzip_release(gzip);
    free(gzip);
}

static struct buf make(const struct shape *shape, const struct row *rows, size_t count)
{
    struct maker *m = calloc(1, sizeof *m);
    struct buf texts = started(), out = started(), mapping = started();
    m->shape = shape;
    buf_init(&m->body, 1 << 20);
    (void)name(m, "");
    add_type(m, 11, "space", "bytes");
    protobuf_u64(&m->body, 12, 524288);
    for (size_t i = 0; i < shape->columns; i++) {
        add_type(m, 1, shape->types[2 * i], shape->types[2 * i + 1]);
    }
    for (size_t i = 0; i < count; i++) {
        add_row(m, &rows[i]);
    }
    protobuf_u64(&mapping, 1, 1);
    protobuf_u64(&mapping, 5, name(m, "/bin/app"));
    add(m, 3, &mapping);
    protobuf_u64(&m->body, 9, (uint64_t)shape->time);
    protobuf_u64(&m->body, 10, (uint64_t)shape->duration);
    buf_add(&m->body, shape->extra, shape->extra_len);
    for (size_t i = 0; i < m->count; i++) {
        protobuf_varint(&texts, 6 << 3 | 2);
        protobuf_varint(&texts, strlen(m->names[i]));
        buf_text(&texts, m->names[i]);
    }
    struct buf plain = started();
    buf_str(&plain, buf_slice(shape->texts_first ? &texts : &m->body));
    buf_str(&plain, buf_slice(shape->texts_first ? &m->body : &texts));
    if (shape->is_plain) {
        buf_str(&out, buf_slice(&plain));
    } else {
        pack(&out, buf_slice(&plain));
    }
    buf_release(&plain);
    buf_release(&texts);
    buf_release(&m->body);
    free(m);
    return out;
}

/* ---- A profile is read ---- */

struct reader {
    struct str texts[NAMES_MAX];
    size_t text_count, empty_texts, functions, locations;
    uint64_t function_of[NAMES_MAX][2], name_of[NAMES_MAX][2]; /* id → function's; id → text's */
    struct buf plain, out;
};

static uint64_t number_in(struct str message, unsigned number)
{
    struct cursor c = cursor_of(message.ptr, message.len);
    struct protobuf_field f;
    uint64_t value = 0;
    while (protobuf_next(&c, &f)) {
        value = f.number == number ? f.value : value;
    }
    return value;
}

static struct str message_in(struct str message, unsigned number)
{
    struct cursor c = cursor_of(message.ptr, message.len);
    struct protobuf_field f;
    struct str bytes = {0};
    while (protobuf_next(&c, &f)) {
        bytes = f.number == number ? f.bytes : bytes;
    }
    return bytes;
}

static uint64_t found(uint64_t (*table)[2], size_t count, uint64_t id)
{
    for (size_t i = 0; i < count; i++) {
        if (table[i][0] == id) {
            return table[i][1];
        }
    }
    CHECK(!"an id that is not there");
    return 0;
}

static void index_texts(struct reader *r)
{
    struct cursor c = cursor_of(r->plain.ptr, r->plain.len);
    struct protobuf_field f;
    while (protobuf_next(&c, &f)) {
        if (f.number == 6 && r->text_count < NAMES_MAX) {
            r->empty_texts += f.bytes.len == 0;
            r->texts[r->text_count++] = f.bytes;
        } else if (f.number == 4 && r->locations < NAMES_MAX) {
            r->function_of[r->locations][0] = number_in(f.bytes, 1);
            r->function_of[r->locations++][1] = number_in(message_in(f.bytes, 4), 1);
        } else if (f.number == 5 && r->functions < NAMES_MAX) {
            r->name_of[r->functions][0] = number_in(f.bytes, 1);
            r->name_of[r->functions++][1] = number_in(f.bytes, 2);
        }
    }
    CHECK(!c.short_read);
}

static void show_text(struct reader *r, uint64_t index)
{
    CHECK(index < r->text_count);
    buf_str(&r->out, index < r->text_count ? r->texts[index] : STR("?"));
}

/* "f1,f2 bytes=16: 1 16 0 0\n" */
static void show_sample(struct reader *r, struct str sample)
{
    struct cursor c = cursor_of(sample.ptr, sample.len);
    struct protobuf_field f;
    struct buf values = started();
    uint64_t number;
    bool is_damaged = false;
    while (protobuf_next(&c, &f)) {
        for (size_t at = 0; f.number == 1 && protobuf_packed_next(&f, &at, &number, &is_damaged);) {
            buf_text(&r->out, r->out.len > 0 && r->out.ptr[r->out.len - 1] != '\n' ? "," : "");
            show_text(r, found(r->name_of, r->functions, found(r->function_of, r->locations, number)));
        }
        for (size_t at = 0; f.number == 2 && protobuf_packed_next(&f, &at, &number, &is_damaged);) {
            buf_printf(&values, " %" PRId64, (int64_t)number);
        }
        if (f.number == 3) {
            buf_byte(&r->out, ' ');
            show_text(r, number_in(f.bytes, 1));
            buf_printf(&r->out, "=%" PRId64, (int64_t)number_in(f.bytes, 3));
            show_text(r, number_in(f.bytes, 2));
            show_text(r, number_in(f.bytes, 4));
        }
    }
    CHECK(!is_damaged);
    buf_byte(&r->out, ':');
    buf_str(&r->out, buf_slice(&values));
    buf_byte(&r->out, '\n');
    buf_release(&values);
}

static struct reader *read_profile(const struct buf *packed)
{
    struct reader *r = calloc(1, sizeof *r);
    struct protobuf_field f;
    buf_init(&r->plain, OUT_MAX);
    buf_init(&r->out, 1 << 20);
    CHECK(gzip_inflate(packed->ptr, packed->len, &r->plain, NULL));
    index_texts(r);
    struct cursor c = cursor_of(r->plain.ptr, r->plain.len);
    while (protobuf_next(&c, &f)) {
        if (f.number == 2) {
            show_sample(r, f.bytes);
        }
    }
    return r;
}

static void free_reader(struct reader *r)
{
    buf_release(&r->plain);
    buf_release(&r->out);
    free(r);
}

/* ---- Both ---- */

static void check_out(int line, struct buf *out, const char *expected)
{
    struct reader *r = read_profile(out);
    if (strcmp(buf_cstr(&r->out), expected) != 0) {
        printf("# line %d: the difference is\n%sexpected\n%s", line, buf_cstr(&r->out), expected);
        test_failures++;
    }
    free_reader(r);
}

static bool take(struct go_delta *d, const struct shape *shape, const struct row *rows, size_t count, bool baseline,
                 struct buf *out)
{
    struct buf in = make(shape, rows, count);
    struct err err = {0};
    bool ok = go_delta_take(d, buf_slice(&in), baseline, out, &err);
    CHECK(ok == (err.text[0] == '\0'));
    buf_release(&in);
    return ok;
}

#define ROWS(...) (const struct row[]){__VA_ARGS__}, sizeof((const struct row[]){__VA_ARGS__}) / sizeof(struct row)
#define GIVES(d, shape, rows, expected)                                                                               \
    do {                                                                                                              \
        struct buf out_;                                                                                              \
        buf_init(&out_, OUT_MAX);                                                                                     \
        CHECK(take(d, shape, rows, false, &out_));                                                                    \
        check_out(__LINE__, &out_, expected);                                                                         \
        buf_release(&out_);                                                                                           \
    } while (0)

static void growing_columns_are_subtracted(void)
{
    struct go_delta *d = go_delta_new(grows, 2);
    GIVES(d, &heap, ROWS({{1, 2}, {3, 48, 1, 16}, "bytes", NULL, 16, NULL}), "f1,f2 bytes=16: 3 48 1 16\n");
    GIVES(d, &heap, ROWS({{1, 2}, {5, 80, 2, 32}, "bytes", NULL, 16, NULL}), "f1,f2 bytes=16: 2 32 2 32\n");
    GIVES(d, &heap, ROWS({{1, 2}, {5, 80, 1, 16}, "bytes", NULL, 16, NULL}), "f1,f2 bytes=16: 0 0 1 16\n");
    go_delta_free(d);
    d = go_delta_new(waits, 2);
    GIVES(d, &mutex, ROWS({{1, 2}, {3, 500}}, {{3}, {1, 7}}), "f1,f2: 3 500\nf3: 1 7\n");
    GIVES(d, &mutex, ROWS({{1, 2}, {4, 900}}, {{3}, {1, 7}}), "f1,f2: 1 400\n");
    go_delta_free(d);
    d = go_delta_new(NULL, 0);
    GIVES(d, &mutex, ROWS({{1}, {3, 500}}), "f1: 3 500\n");
    GIVES(d, &mutex, ROWS({{1}, {3, 500}}), "f1: 3 500\n");
    go_delta_free(d);
}

static void what_is_all_zero_is_left_out(void)
{
    struct go_delta *d = go_delta_new(grows, 2);
    GIVES(d, &heap, ROWS({{1}, {0}}, {{2}, {1, 8}}), "f2: 1 8 0 0\n");
    GIVES(d, &heap, ROWS({{1}, {0}}, {{2}, {1, 8}}), "");
    go_delta_free(d);
}

static void new_and_vanished_stacks(void)
{
    struct go_delta *d = go_delta_new(grows, 2);
    GIVES(d, &heap, ROWS({{1}, {2, 16}}), "f1: 2 16 0 0\n");
    GIVES(d, &heap, ROWS({{2}, {1, 8}}), "f2: 1 8 0 0\n"); /* f1 gives nothing negative … */
    GIVES(d, &heap, ROWS({{2}, {1, 8}}, {{1}, {3, 24}}), "f1: 1 8 0 0\n"); /* … and is still known */
    GIVES(d, &heap, ROWS({{1}, {2, 20}}), "f1: -1 -4 0 0\n");
    go_delta_free(d);
}

static void duplicates_are_added_up_where_the_first_stood(void)
{
    struct go_delta *d = go_delta_new(grows, 2);
    GIVES(d, &heap, ROWS({{1}, {1, 2, 3, 4}}, {{2}, {1, 1}}, {{1}, {10, 20, 30, 40}}, {{1}, {100, 200, 300, 400}}),
          "f1: 111 222 333 444\nf2: 1 1 0 0\n");
    GIVES(d, &heap, ROWS({{1}, {112, 222}}, {{1}, {0, 1}}, {{2}, {1, 1}}, {{2}, {0, 0, 5, 5}}),
          "f1: 1 1 0 0\nf2: 0 0 5 5\n");
    GIVES(d, &heap, ROWS({{1}, {0, 0, 7, 7}}, {{1}, {112, 223, -7, -7}}), "");
    go_delta_free(d);
}

/* Each row differs in one thing from the first. */
static void what_identifies_a_sample(void)
{
    struct go_delta *d = go_delta_new(waits, 2);
    GIVES(d, &mutex,
          ROWS({{1, 2}, {1, 1}, "k", "t", 0, "u"}, {{2, 1}, {1, 2}, "k", "t", 0, "u"}, {{1}, {1, 3}, "k", "t", 0, "u"},
               {{1, 2}, {1, 4}, "l", "t", 0, "u"}, {{1, 2}, {1, 5}, "k", "s", 0, "u"},
               {{1, 2}, {1, 6}, "k", "t", 1, "u"}, {{1, 2}, {1, 7}, "k", "t", 0, "v"}, {{1, 2}, {1, 8}},
               {{1, 2, 2}, {1, 9}, "k", "t", 0, "u"}),
          "f1,f2 k=0tu: 1 1\nf2,f1 k=0tu: 1 2\nf1 k=0tu: 1 3\nf1,f2 l=0tu: 1 4\nf1,f2 k=0su: 1 5\nf1,f2 k=1tu: 1 6\n"
          "f1,f2 k=0tv: 1 7\nf1,f2: 1 8\nf1,f2,f2 k=0tu: 1 9\n");
    GIVES(d, &mutex, ROWS({{1, 2}, {1, 1}, "k", "t", 0, "u"}, {{1, 2}, {1, 9}, "k", "s", 0, "u"}),
          "f1,f2 k=0su: 0 4\n");
    go_delta_free(d);
}

static void labels_count_in_any_order(void)
{
    struct shape other = mutex;
    struct go_delta *d = go_delta_new(waits, 2);
    other.is_raised = true;
    GIVES(d, &mutex,
          ROWS({{1}, {1, 1}, "k", NULL, 0, NULL, "l"}, {{1}, {1, 2}, "l"}, {{1}, {1, 3}, "l", NULL, 0, NULL, "l"}),
          "f1 k=0 l=0: 1 1\nf1 l=0: 1 2\nf1 l=0 l=0: 1 3\n");
    GIVES(d, &other,
          ROWS({{1}, {1, 9}, "k", NULL, 0, NULL, "l"}, {{1}, {1, 9}, "l"}, {{1}, {1, 9}, "l", NULL, 0, NULL, "l"}),
          "f1 l=0 k=0: 0 8\nf1 l=0: 0 7\nf1 l=0 l=0: 0 6\n");
    go_delta_free(d);
}

static void ids_indices_and_order_of_the_file_say_nothing(void)
{
    struct shape other = heap;
    struct go_delta *d = go_delta_new(grows, 2);
    GIVES(d, &heap, ROWS({{1, 2}, {1, 8}, "bytes", NULL, 8, NULL}, {{3}, {1, 8}}),
          "f1,f2 bytes=8: 1 8 0 0\nf3: 1 8 0 0\n");
    for (int way = 1; way < 16; way++) {
        other.texts_first = way & 1;
        other.is_spread = way & 2;
        other.is_plain = way & 4;
        other.is_raised = way & 8;
        GIVES(d, &other,
              ROWS({{4}, {way}}, {{3}, {1 + way, 8}}, {{2, 1}, {0}}, {{1, 2}, {1, 8 + way}, "bytes", NULL, 8, NULL}),
              "f4: 1 0 0 0\nf3: 1 0 0 0\nf1,f2 bytes=8: 0 1 0 0\n");
    }
    go_delta_free(d);
}

static void only_what_samples_lead_to_is_kept(void)
{
    struct go_delta *d = go_delta_new(grows, 2);
    struct buf out;
    buf_init(&out, OUT_MAX);
    CHECK(take(d, &heap, ROWS({{1}, {1, 8}, "k", "t", 0, NULL}, {{2}, {1, 8}, "l", "s", 0, NULL}), false, &out));
    CHECK(take(d, &heap, ROWS({{1}, {1, 8}, "k", "t", 0, NULL}, {{2}, {2, 9}, "l", "s", 0, NULL}), false, &out));
    struct reader *r = read_profile(&out);
    CHECK_TEXT(buf_cstr(&r->out), "f2 l=0s: 1 1 0 0\n");
    CHECK_INT(r->locations, 1);
    CHECK_INT(r->functions, 1);
    /* The first, period, types, function, file, label, the same of the other sample, mapping; unit "count" is one. */
    CHECK_INT(r->text_count, 1 + 2 + 5 + 2 + 2 + 1 + 2 + 1);
    CHECK_INT(r->empty_texts, 1 + 1 + 2); /* the first, f1, its label */
    struct str plain = buf_slice(&r->plain);
    CHECK_STR(r->texts[number_in(message_in(plain, 3), 5)], "/bin/app");
    CHECK_STR(r->texts[number_in(message_in(plain, 11), 1)], "space");
    CHECK_INT(number_in(plain, 12), 524288);
    free_reader(r);
    buf_release(&out);
    go_delta_free(d);
}

static void fields_of_the_profile_are_passed_on(void)
{
    /* drop and keep frames, comments one by one and packed, default type: texts 1, 2, 3, 4 and 5, 6; then doc_url */
    static const char more[] = "\x38\x01\x40\x02\x68\x03\x6a\x02\x04\x05\x70\x06\x78\x07";
    struct shape shape = heap;
    struct go_delta *d = go_delta_new(grows, 2);
    struct buf out;
    buf_init(&out, OUT_MAX);
    shape.extra = more;
    shape.extra_len = sizeof more - 1;
    CHECK(take(d, &shape, ROWS({{1}, {1, 8}}), false, &out));
    struct reader *r = read_profile(&out);
    struct str plain = buf_slice(&r->plain);
    CHECK_INT(number_in(plain, 7), 1);
    CHECK_INT(number_in(plain, 8), 2);
    CHECK_STR(message_in(plain, 13), "\x04\x05");
    CHECK_INT(number_in(plain, 14), 6);
    CHECK_INT(number_in(plain, 15), 0);
    free_reader(r);
    buf_release(&out);
    go_delta_free(d);
}

static void durations_are_differences_of_times(void)
{
    static const int64_t times[] = {1000, 61000, 61000, 50000}, expected[] = {77, 60000, 0, -11000};
    struct go_delta *d = go_delta_new(grows, 2);
    struct buf out;
    buf_init(&out, OUT_MAX);
    for (int i = 0; i < 4; i++) {
        struct shape shape = heap;
        shape.time = times[i];
        shape.duration = 77;
        CHECK(take(d, &shape, ROWS({{1}, {1, 8}}), false, &out));
        struct reader *r = read_profile(&out);
        CHECK_INT(number_in(buf_slice(&r->plain), 9), times[i]);
        CHECK_INT((int64_t)number_in(buf_slice(&r->plain), 10), expected[i]);
        free_reader(r);
    }
    buf_release(&out);
    go_delta_free(d);
}

static void a_baseline_has_no_columns_that_grow(void)
{
    struct go_delta *d = go_delta_new(grows, 2);
    struct buf out;
    buf_init(&out, OUT_MAX);
    CHECK(take(d, &heap, ROWS({{1}, {9, 72}}, {{2}, {9, 72, 2, 16}}), true, &out));
    check_out(__LINE__, &out, "f2: 0 0 2 16\n");
    CHECK(take(d, &heap, ROWS({{1}, {10, 80}}, {{2}, {9, 72, 2, 16}}), true, &out)); /* only the first is one */
    check_out(__LINE__, &out, "f1: 1 8 0 0\nf2: 0 0 2 16\n");
    buf_release(&out);
    go_delta_free(d);
}

static void an_error_poisons(void)
{
    struct go_delta *d = go_delta_new(grows, 2);
    struct buf out;
    struct err err = {0};
    size_t nothing = go_delta_bytes(d);
    buf_init(&out, OUT_MAX);
    CHECK(!go_delta_take(d, STR("\xff"), false, &out, &err)); /* the very first, too */
    CHECK_INT(err.kind, ERR_MALFORMED);
    CHECK(take(d, &heap, ROWS({{1}, {9, 72}}), false, &out));
    CHECK_INT(out.len, 0);
    CHECK(take(d, &heap, ROWS({{1}, {10, 80, 1, 8}}), false, &out));
    check_out(__LINE__, &out, "f1: 1 8 1 8\n");
    CHECK(go_delta_bytes(d) > nothing);
    CHECK(!go_delta_take(d, STR("\x1f\x8b\x08 no more"), false, &out, &err));
    CHECK_INT(out.len, 0);
    CHECK_INT(go_delta_bytes(d), nothing);
    CHECK(!go_delta_take(d, STR(""), false, &out, &err));
    CHECK(take(d, &heap, ROWS({{1}, {30, 240}}), false, &out));
    CHECK_INT(out.len, 0);
    GIVES(d, &heap, ROWS({{1}, {31, 248}}, {{2}, {1, 8}}), "f1: 1 8 0 0\nf2: 1 8 0 0\n");
    buf_release(&out);
    buf_init(&out, 20); /* too small */
    CHECK(!take(d, &heap, ROWS({{1}, {40, 320}}), false, &out));
    CHECK_INT(out.len, 0);
    buf_release(&out);
    buf_init(&out, OUT_MAX);
    CHECK(take(d, &heap, ROWS({{1}, {50, 400}}), false, &out));
    CHECK_INT(out.len, 0);
    buf_release(&out);
    GIVES(d, &heap, ROWS({{1}, {51, 408}}), "f1: 1 8 0 0\n");
    go_delta_free(d);
}

/* The kind of error that these bytes behind a sound profile make. */
static enum err_kind kind_with(const char *bytes, size_t len)
{
    struct shape shape = heap;
    struct go_delta *d = go_delta_new(grows, 2);
    struct err err = {0};
    struct buf out;
    buf_init(&out, OUT_MAX);
    shape.extra = bytes;
    shape.extra_len = len;
    struct buf in = make(&shape, ROWS({{1}, {1, 8}}));
    CHECK(go_delta_take(d, buf_slice(&in), false, &out, &err) == (err.kind == ERR_NONE));
    CHECK((out.len > 0) == (err.kind == ERR_NONE));
    buf_release(&in);
    buf_release(&out);
    go_delta_free(d);
    return err.kind;
}

#define KIND_WITH(literal) kind_with(literal, sizeof(literal) - 1)

static void hostile_fields_are_refused(void)
{
    /* cut: the text's tag is eaten */
    CHECK_INT(KIND_WITH("\x12\x08\x0a\x01\x01\x12\x04\1\2\3\x34" "\x78\x00"), ERR_MALFORMED);
    /* a sound sample */
    CHECK_INT(KIND_WITH("\x12\x09\x0a\x01\x01\x12\x04\1\2\3\4"), ERR_NONE);
    /* of no location */
    CHECK_INT(KIND_WITH("\x12\x09\x0a\x01\x02\x12\x04\1\2\3\4"), ERR_MALFORMED);
    CHECK_INT(KIND_WITH("\x12\x0d\x0a\x05\xff\xff\xff\xff\x0f\x12\x04\1\2\3\4"), ERR_MALFORMED);
    /* three values, five */
    CHECK_INT(KIND_WITH("\x12\x08\x0a\x01\x01\x12\x03\1\2\3"), ERR_MALFORMED);
    CHECK_INT(KIND_WITH("\x12\x0a\x0a\x01\x01\x12\x05\1\2\3\4\5"), ERR_MALFORMED);
    /* a cut number */
    CHECK_INT(KIND_WITH("\x12\x09\x0a\x01\x01\x12\x04\1\2\3\xff"), ERR_MALFORMED);
    /* a label of no text */
    CHECK_INT(KIND_WITH("\x12\x0d\x0a\x01\x01\x12\x04\1\2\3\4\x1a\x02\x08\x63"), ERR_MALFORMED);
    CHECK_INT(KIND_WITH("\x12\x0d\x0a\x01\x01\x12\x04\1\2\3\4\x1a\x02\x10\x63"), ERR_MALFORMED);
    CHECK_INT(KIND_WITH("\x12\x0d\x0a\x01\x01\x12\x04\1\2\3\4\x1a\x02\x20\x63"), ERR_MALFORMED);
    CHECK_INT(KIND_WITH("\x12\x0d\x0a\x01\x01\x12\x04\1\2\3\4\x1a\x02\x20\xff"), ERR_MALFORMED);
    /* a location without an id */
    CHECK_INT(KIND_WITH("\x22\x02\x18\x05"), ERR_MALFORMED);
    /* and a wild one */
    CHECK_INT(KIND_WITH("\x22\x06\x08\xff\xff\xff\xff\x0f"), ERR_LIMIT);
    /* of a function 2¹⁸ + 1 */
    CHECK_INT(KIND_WITH("\x22\x08\x08\x01\x22\x04\x08\x81\x80\x10"), ERR_LIMIT);
    /* function 2¹⁸ need not be there */
    CHECK_INT(KIND_WITH("\x22\x08\x08\x01\x22\x04\x08\x80\x80\x10"), ERR_NONE);
    /* a function of no name */
    CHECK_INT(KIND_WITH("\x2a\x04\x08\x01\x10\x63"), ERR_MALFORMED);
    /* that is not used */
    CHECK_INT(KIND_WITH("\x2a\x04\x08\x09\x10\x63"), ERR_NONE);
    /* a mapping's file */
    CHECK_INT(KIND_WITH("\x1a\x02\x28\x63"), ERR_MALFORMED);
    /* a period's type */
    CHECK_INT(KIND_WITH("\x5a\x02\x08\x63"), ERR_MALFORMED);
    /* a fifth column */
    CHECK_INT(KIND_WITH("\x0a\x02\x08\x01"), ERR_UNSUPPORTED);
    /* a comment */
    CHECK_INT(KIND_WITH("\x68\x63"), ERR_MALFORMED);
    /* a default type */
    CHECK_INT(KIND_WITH("\x70\x63"), ERR_MALFORMED);
    /* a group */
    CHECK_INT(KIND_WITH("\x83\x01"), ERR_MALFORMED);
    /* field 0 */
    CHECK_INT(KIND_WITH("\x00\x01"), ERR_MALFORMED);
    CHECK_INT(KIND_WITH("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), ERR_MALFORMED);
    /* a sample of 256 MB */
    CHECK_INT(KIND_WITH("\x12\xff\xff\xff\x7f"), ERR_LIMIT);
    /* skipped, but not there */
    CHECK_INT(KIND_WITH("\x82\x01\xff\xff\xff\x7f"), ERR_MALFORMED);
    /* fields of tomorrow */
    CHECK_INT(KIND_WITH("\x82\x01\x02\xff\xff\x81\x01\1\2\3\4\5\6\7\x08\x85\x01\1\2\3\4"), ERR_NONE);
}

static void cut_snapshots_are_refused(void)
{
    for (int is_plain = 0; is_plain < 2; is_plain++) {
        struct shape shape = heap;
        shape.is_plain = is_plain;
        struct buf in = make(&shape, ROWS({{1, 2}, {1, 8}, "bytes", "t", 8, "u"}, {{3}, {1, 8}})), out;
        size_t refused = 0;
        buf_init(&out, OUT_MAX);
        for (size_t len = 0; len < in.len; len++) {
            char *copy = malloc(len + 1); /* so that a sanitizer sees a byte too many */
            struct go_delta *d = go_delta_new(grows, 2);
            memcpy(copy, in.ptr, len);
            char *exact = realloc(copy, len > 0 ? len : 1);
            refused += !go_delta_take(d, (struct str){exact, len}, false, &out, NULL);
            go_delta_free(d);
            free(exact);
        }
        CHECK(is_plain ? refused > in.len / 2 : refused == in.len);
        buf_release(&in);
        buf_release(&out);
    }
}

static void a_bomb_is_stopped(void)
{
    enum { MIB = 1 << 20 };
    struct go_delta *d = go_delta_new(grows, 2);
    struct gzip *gzip = malloc(sizeof *gzip);
    char *zeros = calloc(1, MIB);
    struct buf in, out;
    struct err err = {0};
    buf_init(&in, 4 * MIB);
    buf_init(&out, OUT_MAX);
    struct sink sink = sink_of_buf(&in);
    CHECK(gzip_open_quick(gzip, &sink, NULL));
    struct sink plain = gzip_sink(gzip);
    CHECK(sink_write(&plain, "\x82\x01\x80\x80\x80\x80\x01", 7, NULL)); /* one field of 256 MiB */
    for (int i = 0; i < 256; i++) {
        CHECK(sink_write(&plain, zeros, MIB, NULL));
    }
    CHECK(gzip_finish(gzip, NULL));
    gzip_release(gzip);
    CHECK(!go_delta_take(d, buf_slice(&in), false, &out, &err));
    CHECK_INT(err.kind, ERR_LIMIT);
    free(gzip);
    free(zeros);
    buf_release(&in);
    buf_release(&out);
    go_delta_free(d);
}

/* ---- More stacks than are kept ---- */

/* `count` stacks of one of 1,000 leaves and one of 1,000 callers, each with the same values; named "b1" and "b2". */
static struct buf crowd(uint32_t count, uint64_t objects, uint64_t living)
{
    struct buf plain, out;
    buf_init(&plain, OUT_MAX);
    buf_init(&out, OUT_MAX);
    for (int i = 0; i < 4; i++) {
        buf_add(&plain, "\x0a\x02\x08", 3);
        buf_byte(&plain, (char)(i + 1));
    }
    for (uint32_t id = 1; id <= 1000; id++) {
        struct buf b = started();
        protobuf_u64(&b, 1, id);
        protobuf_u64(&b, 3, 4096 + id);
        protobuf_message(&plain, 4, &b);
        buf_release(&b);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct buf b = started();
        const uint64_t ids[] = {1 + i / 1000, 1 + i % 1000}, values[] = {objects, 8 * objects, living, 8 * living};
        add_numbers(&b, 1, ids, 2, false);
        add_numbers(&b, 2, values, 4, false);
        protobuf_message(&plain, 2, &b);
        buf_release(&b);
    }
    static const char texts[] = "\x32\0\x32\x0d" "alloc_objects\x32\x0b" "alloc_space\x32\1a\x32\1b";
    buf_add(&plain, texts, sizeof texts - 1);
    pack(&out, buf_slice(&plain));
    buf_release(&plain);
    return out;
}

/* Samples in all, and the values of the one of [other]. */
static size_t count_samples(const struct buf *packed, int64_t *other)
{
    struct protobuf_field f, g;
    struct buf plain;
    size_t count = 0;
    buf_init(&plain, OUT_MAX);
    CHECK(gzip_inflate(packed->ptr, packed->len, &plain, NULL));
    struct cursor c = cursor_of(plain.ptr, plain.len);
    while (protobuf_next(&c, &f)) {
        count += f.number == 2;
        if (f.number == 2 && number_in(f.bytes, 1) == GO_ID_MAX + 1) {
            struct cursor s = cursor_of(f.bytes.ptr, f.bytes.len);
            while (protobuf_next(&s, &g)) {
                bool is_damaged = false;
                uint64_t value;
                for (size_t at = 0, i = 0; g.number == 2 && protobuf_packed_next(&g, &at, &value, &is_damaged); i++) {
                    other[i] = (int64_t)value;
                }
            }
        }
    }
    buf_release(&plain);
    return count;
}

static void what_is_too_much_becomes_one_sample(void)
{
    enum { MORE = 500 };
    static const uint64_t objects[] = {2, 5, 5}, living[] = {1, 0, 0};
    struct go_delta *d = go_delta_new(grows, 2);
    struct buf out;
    buf_init(&out, OUT_MAX);
    for (int i = 0; i < 3; i++) {
        struct buf in = crowd(GO_DELTA_STACKS_MAX + MORE, objects[i], living[i]);
        int64_t other[4] = {0};
        CHECK(go_delta_take(d, buf_slice(&in), false, &out, NULL));
        CHECK_INT(count_samples(&out, other), i == 2 ? 0 : GO_DELTA_STACKS_MAX + 1);
        CHECK_INT(other[0], i == 0 ? 2 * MORE : i == 1 ? 3 * MORE : 0);
        CHECK_INT(other[1], 8 * (i == 0 ? 2 * MORE : i == 1 ? 3 * MORE : 0));
        CHECK_INT(other[2], i == 0 ? MORE : 0);
        buf_release(&in);
    }
    CHECK(go_delta_bytes(d) < 30 * GO_DELTA_STACKS_MAX);
    buf_release(&out);
    go_delta_free(d);
}

static void the_one_sample_has_a_name(void)
{
    struct go_delta *d = go_delta_new(grows, 2);
    struct buf all = crowd(GO_DELTA_STACKS_MAX, 1, 0), one, out;
    buf_init(&out, OUT_MAX);
    CHECK(go_delta_take(d, buf_slice(&all), true, &out, NULL));
    CHECK_INT(count_samples(&out, NULL), 0);
    one = make(&heap, ROWS({{1}, {3, 24, 1, 8}, "bytes", NULL, 8, NULL}, {{2}, {1, 8}}));
    CHECK(go_delta_take(d, buf_slice(&one), false, &out, NULL));
    check_out(__LINE__, &out, "[other]: 4 32 1 8\n");
    CHECK(!go_delta_take(d, STR("\xff"), false, &out, NULL)); /* it is forgotten, too */
    CHECK(go_delta_take(d, buf_slice(&all), false, &out, NULL));
    CHECK(go_delta_take(d, buf_slice(&one), false, &out, NULL));
    check_out(__LINE__, &out, "[other]: 4 32 1 8\n");
    buf_release(&one);
    buf_release(&all);
    buf_release(&out);
    go_delta_free(d);
}

static void stacks_keep_their_number(void)
{
    enum { MANY = 5000 };
    struct go_identities s = {0};
    uint32_t number;
    CHECK_INT(go_identities_find(&s, 0), GO_STACK_NONE);
    for (uint64_t i = 0; i < MANY; i++) {
        CHECK(go_identities_add(&s, hash_u64(i), &number) && number == i);
        CHECK(go_identities_add(&s, hash_u64(i), &number) && number == i);
    }
    for (uint64_t i = 0; i < MANY; i++) {
        CHECK(go_identities_find(&s, hash_u64(i)) == i);
    }
    CHECK_INT(go_identities_find(&s, hash_u64(MANY)), GO_STACK_NONE);
    CHECK(go_identities_bytes(&s) < MANY * 40);
    go_identities_release(&s);
}

static void identities_chosen_to_collide_fill_the_table(void)
{
    struct go_identities s = {0};
    uint32_t number;
    for (uint64_t i = 0; i <= GO_IDENTITIES_STEPS_MAX; i++) {
        CHECK(go_identities_add(&s, i, &number) && number == i);
    }
    CHECK(go_identities_add(&s, GO_IDENTITIES_STEPS_MAX + 1, &number) && number == GO_STACK_NONE);
    CHECK(go_identities_add(&s, ~(uint64_t)0, &number) && number == GO_STACK_NONE); /* for good */
    CHECK(go_identities_add(&s, 7, &number) && number == 7);
    go_identities_release(&s);
}

TESTS({"columns that grow are subtracted, others are as they are", growing_columns_are_subtracted},
      {"what is all zero is left out", what_is_all_zero_is_left_out},
      {"new stacks begin with 0, vanished ones are known still, falling sums are negative", new_and_vanished_stacks},
      {"duplicates are added up where the first stood", duplicates_are_added_up_where_the_first_stood},
      {"addresses in order and labels identify a sample", what_identifies_a_sample},
      {"labels count in any order, each of them", labels_count_in_any_order},
      {"ids, indices and the order of the file say nothing", ids_indices_and_order_of_the_file_say_nothing},
      {"only what samples lead to is kept", only_what_samples_lead_to_is_kept},
      {"fields of the profile are passed on", fields_of_the_profile_are_passed_on},
      {"durations are differences of times", durations_are_differences_of_times},
      {"a baseline has no columns that grow", a_baseline_has_no_columns_that_grow},
      {"an error poisons: nothing, then good again", an_error_poisons},
      {"hostile fields are refused", hostile_fields_are_refused},
      {"cut snapshots are refused", cut_snapshots_are_refused},
      {"a bomb is stopped", a_bomb_is_stopped},
      {"what is too much becomes one sample", what_is_too_much_becomes_one_sample},
      {"the one sample is called [other]", the_one_sample_has_a_name},
      {"stacks keep their number", stacks_keep_their_number},
      {"identities chosen to collide fill the table", identities_chosen_to_collide_fill_the_table})

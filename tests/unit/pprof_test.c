/* src/encode/pprof*.c: written, read, and what must be refused. */
#include "encode/collapsed.h"
#include "encode/collapsed_read.h"
#include "base/gzip.h"
#include "encode/pprof.h"
#include "encode/pprof_read.h"
#include "base/protobuf.h"
#include "inlined_frame.h"
#include "sample_profile.h"
#include "test.h"

struct bench {
    struct profile p;
    struct buf bytes, text;
    struct err err;
};

static struct bench *set_up(void)
{
    struct bench *b = calloc(1, sizeof *b);
    CHECK(profile_init(&b->p, SAMPLE_MAX_BYTES, NULL));
    buf_init(&b->bytes, SAMPLE_MAX_BYTES);
    buf_init(&b->text, SAMPLE_MAX_BYTES);
    return b;
}

static void tear_down(struct bench *b)
{
    profile_release(&b->p);
    buf_release(&b->bytes);
    buf_release(&b->text);
    free(b);
}

static struct str write_plain(struct bench *b)
{
    struct sink sink = sink_of_buf(&b->bytes);
    buf_clear(&b->bytes);
    CHECK(pprof_write_plain(&b->p, NULL, &sink, &b->err));
    return buf_slice(&b->bytes);
}

static const char *lines_of(struct bench *b)
{
    struct sink sink = sink_of_buf(&b->text);
    buf_clear(&b->text);
    CHECK(collapsed_write(&b->p, NULL, &sink, &b->err));
    const char *lines = strchr(buf_cstr(&b->text), '\n');
    return lines == NULL ? "" : lines + 1;
}

/* A second look at what was written, independent of the reader: top-level fields by number. */
struct seen {
    struct str strings[200], record[6][200];
    unsigned string_count, count[6];
    uint64_t number[16];
};

static struct seen *look(struct str bytes)
{
    struct seen *seen = calloc(1, sizeof *seen);
    struct cursor c = cursor_of(bytes.ptr, bytes.len);
    struct protobuf_field f;
    while (protobuf_next(&c, &f)) {
        if (f.number == PPROF_STRING) {
            seen->strings[seen->string_count++] = f.bytes;
        } else if (f.number < 6) {
            seen->record[f.number][seen->count[f.number]++] = f.bytes;
        } else if (f.number < 16) {
            seen->number[f.number] = f.value;
        }
    }
    CHECK(!c.short_read);
    return seen;
}

/* The n-th value of a field within a record; 0 when it is not there. */
static uint64_t value_of(struct str record, unsigned number)
{
    struct cursor c = cursor_of(record.ptr, record.len);
    struct protobuf_field f;
    while (protobuf_next(&c, &f)) {
        if (f.number == number) {
            return f.value;
        }
    }
    return 0;
}

static struct str text_of(const struct seen *seen, struct str record, unsigned number)
{
    return seen->strings[value_of(record, number)];
}

static void the_frame_of_the_file(void)
{
    struct bench *b = set_up();
    fill_sample(&b->p);
    struct seen *s = look(write_plain(b));
    CHECK_STR(s->strings[0], "");
    CHECK_INT(s->count[PPROF_SAMPLE_TYPE], 2);
    CHECK_STR(text_of(s, s->record[1][0], 1), "samples");
    CHECK_STR(text_of(s, s->record[1][0], 2), "count");
    CHECK_STR(text_of(s, s->record[1][1], 1), "cpu");
    CHECK_STR(text_of(s, s->record[1][1], 2), "nanoseconds");
    CHECK_STR(s->strings[s->number[PPROF_DEFAULT_TYPE]], "cpu");
    CHECK_INT(s->number[PPROF_PERIOD], SAMPLE_PERIOD_NS);
    CHECK_INT(s->number[PPROF_TIME], UINT64_C(1795169464) * 1000000000);
    CHECK_INT(s->number[PPROF_DURATION], UINT64_C(60000000000));
    CHECK_INT(s->count[PPROF_SAMPLE], b->p.samples.len - 1);
    CHECK_INT(s->count[PPROF_LOCATION], b->p.frames.len - 1);
    CHECK_INT(s->count[PPROF_FUNCTION], 6);
    free(s);
    tear_down(b);
}

/* The values of a sample, packed. */
static void values_of(struct str record, uint64_t out[static 8])
{
    struct cursor c = cursor_of(record.ptr, record.len);
    struct protobuf_field f;
    memset(out, 0, 8 * sizeof *out);
    while (protobuf_next(&c, &f)) {
        struct cursor values = cursor_of(f.bytes.ptr, f.bytes.len);
        for (unsigned i = 0; f.number == PPROF_SAMPLE_VALUE && values.len > 0 && i < 8; i++) {
            out[i] = cursor_uleb(&values);
        }
    }
}

static void other_events_are_sample_types(void)
{
    struct bench *b = set_up();
    fill_sample(&b->p);
    size_t samples = b->p.samples.len - 1;
    uint32_t thread = b->p.samples.at[1].thread, node = b->p.samples.at[1].node;
    CHECK_INT(profile_event_type(&b->p, "page-faults", "count"), 0);
    CHECK_INT(profile_event_type(&b->p, "misses", "count"), 1);
    profile_add_event(&b->p, 0, thread, node, 41);
    profile_add_event(&b->p, 1, thread, node, 42);
    struct seen *s = look(write_plain(b));
    CHECK_INT(s->count[PPROF_SAMPLE_TYPE], 4);
    CHECK_STR(text_of(s, s->record[1][2], 1), "page-faults");
    CHECK_STR(text_of(s, s->record[1][3], 1), "misses");
    CHECK_STR(text_of(s, s->record[1][3], 2), "count");
    CHECK_STR(s->strings[s->number[PPROF_DEFAULT_TYPE]], "cpu");
    CHECK_INT(s->count[PPROF_SAMPLE], samples + 2);
    uint64_t value[8];
    values_of(s->record[PPROF_SAMPLE][0], value);
    CHECK(value[1] > 0 && value[2] == 0 && value[3] == 0);
    values_of(s->record[PPROF_SAMPLE][samples], value);
    CHECK(value[0] == 0 && value[1] == 0 && value[2] == 41 && value[3] == 0);
    values_of(s->record[PPROF_SAMPLE][samples + 1], value);
    CHECK(value[0] == 0 && value[1] == 0 && value[2] == 0 && value[3] == 42);
    free(s);
    tear_down(b);
}

static void mappings_begin_with_the_program(void)
{
    struct bench *b = set_up();
    fill_sample(&b->p);
    struct seen *s = look(write_plain(b));
    CHECK_INT(s->count[PPROF_MAPPING], 6);
    struct str first = s->record[PPROF_MAPPING][0];
    CHECK_STR(text_of(s, first, PPROF_MAPPING_FILE), "/usr/bin/web");
    CHECK_STR(text_of(s, first, PPROF_MAPPING_BUILD_ID), "abcdef0123456789");
    CHECK_INT(value_of(first, PPROF_MAPPING_START), 0x55550000);
    CHECK_INT(value_of(first, PPROF_MAPPING_OFFSET), 0x1000);
    CHECK_INT(value_of(first, PPROF_MAPPING_HAS_FUNCTIONS), 1);
    CHECK_STR(text_of(s, s->record[PPROF_MAPPING][1], PPROF_MAPPING_FILE), "/lib/libc.so.6");
    CHECK_STR(text_of(s, s->record[PPROF_MAPPING][2], PPROF_MAPPING_FILE), "[kernel.kallsyms]");
    CHECK_STR(text_of(s, s->record[PPROF_MAPPING][3], PPROF_MAPPING_FILE), "[go]");
    CHECK_STR(text_of(s, s->record[PPROF_MAPPING][4], PPROF_MAPPING_FILE), "[python]");
    CHECK_STR(text_of(s, s->record[PPROF_MAPPING][5], PPROF_MAPPING_FILE), "[not seen]");
    free(s);
    tear_down(b);
}

static void addresses_lie_inside_their_mapping(void)
{
    struct bench *b = set_up();
    fill_sample(&b->p);
    /* one outside the range that the module was seen with, on either side */
    uint32_t thread = b->p.samples.at[1].thread;
    profile_add(&b->p, thread, add_address(&b->p, 0, 2, 0x90000, "far", FRAME_NATIVE), 1, 1);
    profile_add(&b->p, thread, add_address(&b->p, 0, 2, 0x10, "near", FRAME_NATIVE), 1, 1);
    struct seen *s = look(write_plain(b));
    unsigned checked = 0;
    for (unsigned i = 0; i < s->count[PPROF_LOCATION]; i++) {
        struct str location = s->record[PPROF_LOCATION][i];
        uint64_t address = value_of(location, PPROF_LOCATION_ADDRESS);
        for (unsigned k = 0; address != 0 && k < s->count[PPROF_MAPPING]; k++) {
            struct str mapping = s->record[PPROF_MAPPING][k];
            if (value_of(mapping, 1) == value_of(location, PPROF_LOCATION_MAPPING)) {
                CHECK(address >= value_of(mapping, PPROF_MAPPING_START) &&
                      address < value_of(mapping, PPROF_MAPPING_LIMIT));
                checked++;
            }
        }
    }
    CHECK_INT(checked, 6);
    CHECK_INT(value_of(s->record[PPROF_MAPPING][0], PPROF_MAPPING_START), 0x5554f000);
    CHECK_INT(value_of(s->record[PPROF_MAPPING][0], PPROF_MAPPING_OFFSET), 0);
    free(s);
    tear_down(b);
}

static void samples_carry_values_and_labels(void)
{
    struct bench *b = set_up();
    fill_sample(&b->p);
    struct seen *s = look(write_plain(b));
    /* the third sample is the worker's: locations, values and five labels */
    struct cursor c = cursor_of(s->record[2][2].ptr, s->record[2][2].len);
    struct protobuf_field f;
    static const char *const labels[] = {"process_id", "12", "thread id", "14", "thread name",
                                         "worker", "comm", "web", "container", "shop"};
    unsigned at = 0;
    CHECK(protobuf_next(&c, &f) && f.number == PPROF_SAMPLE_LOCATION && f.bytes.len == 2);
    CHECK_INT(f.bytes.ptr[1], 1); /* the root, main, stands last */
    CHECK(protobuf_next(&c, &f) && f.number == PPROF_SAMPLE_VALUE);
    CHECK(f.bytes.len == 5 && memcmp(f.bytes.ptr, "\x10\x80\xd0\xa5\x4c", 5) == 0); /* 16, 16e7 */
    while (at < 10 && protobuf_next(&c, &f)) {
        CHECK_STR(text_of(s, f.bytes, PPROF_LABEL_KEY), labels[at]);
        CHECK_STR(text_of(s, f.bytes, PPROF_LABEL_TEXT), labels[at + 1]);
        at += 2;
    }
    CHECK(at == 10 && !protobuf_next(&c, &f));
    free(s);
    tear_down(b);
}

static void samples_that_were_forgotten_are_not_written(void)
{
    struct bench *b = set_up();
    fill_sample(&b->p);
    profile_forget_samples(&b->p, 2); /* db: one sample, and what was lost, which stays */
    struct seen *s = look(write_plain(b));
    CHECK_INT(s->count[PPROF_SAMPLE], b->p.samples.len - 2);
    for (unsigned i = 0; i < s->count[PPROF_SAMPLE]; i++) {
        uint64_t value[8];
        values_of(s->record[PPROF_SAMPLE][i], value);
        CHECK(value[1] > 0);
    }
    free(s);
    tear_down(b);
}

static void comments_say_what_was_not_seen(void)
{
    struct bench *b = set_up();
    fill_sample(&b->p);
    b->p.meta.reason = profile_cstring(&b->p, "line\nbreak");
    b->p.meta.budget = profile_cstring(&b->p, "sampled at 24.3 Hz instead of 100");
    b->p.meta.own_cpu_ns = 90000000;
    b->p.meta.own_rss_bytes = 3 << 20;
    b->p.meta.own_rss_peak_bytes = 4 << 20;
    b->p.meta.mean_hz = 24.25;
    struct seen *s = look(write_plain(b));
    unsigned found = 0;
    for (unsigned i = 0; i < s->string_count; i++) {
        found += str_eq(s->strings[i], STR("mode: perf, user and kernel"));
        found += str_eq(s->strings[i], STR("not seen: [lost] 0.025 s of 0.485 s CPU time"));
        found += str_eq(s->strings[i], STR("reason: line break"));
        found += str_eq(s->strings[i], STR("service: shop-web"));
        found += str_eq(s->strings[i], STR("budget: sampled at 24.3 Hz instead of 100"));
        found += str_eq(s->strings[i], STR("own cost: 0.090 s CPU, 3.0 MB, at most 4.0 MB; "
                                           "sampled at 24.2 Hz"));
    }
    CHECK_INT(found, 6);
    free(s);
    tear_down(b);
}

static void the_same_profile_gives_the_same_bytes(void)
{
    struct bench *a = set_up(), *b = set_up();
    fill_sample(&a->p);
    fill_sample(&b->p);
    profile_cstring(&b->p, "a string nothing refers to");
    CHECK(str_eq(write_plain(a), write_plain(b)));
    tear_down(a);
    tear_down(b);
}

static void what_is_written_is_read_back(void)
{
    struct bench *a = set_up(), *b = set_up();
    fill_sample(&a->p);
    struct sink sink = sink_of_buf(&a->bytes);
    CHECK(pprof_write(&a->p, NULL, &sink, &a->err));
    CHECK(gzip_is(a->bytes.ptr, a->bytes.len));
    CHECK(pprof_read(&b->p, buf_slice(&a->bytes), STR(""), &b->err));
    struct profile_totals before = profile_sum(&a->p), after = profile_sum(&b->p);
    CHECK_INT(after.cpu_ns, before.cpu_ns);
    CHECK_INT(after.count, before.count);
    CHECK_INT(after.account_ns[ACCOUNT_LOST], before.account_ns[ACCOUNT_LOST]);
    for (unsigned k = 0; k < FRAME_KIND_COUNT; k++) {
        CHECK_INT(after.leaf_ns[k], before.leaf_ns[k]);
    }
    for (size_t i = 1; i < a->p.processes.len; i++) {
        a->p.processes.at[i].start_ticks = 0; /* pprof has no place for it */
    }
    char *lines = strdup(lines_of(a));
    CHECK_TEXT(lines_of(b), lines);
    free(lines);
    CHECK_INT(b->p.meta.start_wall_ns, a->p.meta.start_wall_ns);
    CHECK_INT(b->p.meta.end_wall_ns, a->p.meta.end_wall_ns);
    CHECK_INT(b->p.meta.period_ns, SAMPLE_PERIOD_NS);
    CHECK_STR(profile_text(&b->p, b->p.meta.service), "shop-web");
    CHECK_INT(b->p.processes.at[1].pid, 12);
    CHECK_STR(profile_text(&b->p, b->p.processes.at[1].container), "shop");
    CHECK_STR(profile_text(&b->p, b->p.threads.at[2].name), "worker");
    CHECK_INT(b->p.threads.at[2].tid, 14);
    tear_down(a);
    tear_down(b);
}

static void addresses_survive_a_second_writing(void)
{
    struct bench *a = set_up(), *b = set_up(), *c = set_up();
    fill_sample(&a->p);
    CHECK(pprof_read(&b->p, write_plain(a), STR(""), &b->err));
    CHECK(pprof_read(&c->p, write_plain(b), STR(""), &c->err));
    CHECK_INT(b->bytes.len, a->bytes.len);
    struct seen *first = look(buf_slice(&a->bytes)), *second = look(write_plain(c));
    uint64_t sum[2] = {0};
    for (unsigned i = 0; i < first->count[PPROF_LOCATION]; i++) {
        sum[0] += value_of(first->record[PPROF_LOCATION][i], PPROF_LOCATION_ADDRESS);
        sum[1] += value_of(second->record[PPROF_LOCATION][i], PPROF_LOCATION_ADDRESS);
    }
    CHECK(sum[0] != 0 && sum[0] == sum[1]);
    free(first);
    free(second);
    tear_down(a);
    tear_down(b);
    tear_down(c);
}

/* The n-th message of a field within a record. */
static struct str part_of(struct str record, unsigned number, unsigned n)
{
    struct cursor c = cursor_of(record.ptr, record.len);
    struct protobuf_field f;
    while (protobuf_next(&c, &f)) {
        if (f.number == number && n-- == 0) {
            return f.bytes;
        }
    }
    return (struct str){NULL, 0};
}

static void fill_inlined(struct profile *p)
{
    struct module m = {.path = profile_cstring(p, "/bin/app"), .start = 0x400000,
                       .limit = 0x500000, .bias = 0x400000};
    uint32_t app = profile_module(p, &m);
    uint32_t t = add_thread(p, add_process(p, 1, "app", ""), 1, "app");
    uint32_t start = profile_child(p, 0, inlined_frame(p, app, 0x10, "main", 50, NULL));
    uint32_t leaf = inlined_frame(p, app, 0x20, "leaf", 2, "middle", 3, "real", 4, NULL);
    profile_add(p, t, profile_child(p, start, leaf), SAMPLE_PERIOD_NS, 1);
    p->meta.period_ns = SAMPLE_PERIOD_NS;
}

static void inlined_functions_are_lines_of_one_location(void)
{
    static const char *const names[] = {"leaf", "middle", "real"};
    static const char *const files[] = {"/src/leaf.c", "/src/middle.c", "/src/real.c"};
    struct bench *b = set_up();
    fill_inlined(&b->p);
    struct seen *s = look(write_plain(b));
    CHECK_INT(s->count[PPROF_LOCATION], 2);
    CHECK_INT(s->count[PPROF_FUNCTION], 4);
    CHECK_INT(part_of(s->record[PPROF_SAMPLE][0], PPROF_SAMPLE_LOCATION, 0).len, 2);
    CHECK_INT(value_of(s->record[PPROF_MAPPING][0], PPROF_MAPPING_HAS_LINES), 1);
    CHECK_INT(value_of(s->record[PPROF_MAPPING][0], PPROF_MAPPING_HAS_FILES), 1);
    CHECK_INT(value_of(s->record[PPROF_MAPPING][0], PPROF_MAPPING_HAS_INLINES), 1);
    struct str location = s->record[PPROF_LOCATION][1];
    CHECK_INT(value_of(location, PPROF_LOCATION_ADDRESS), 0x400020);
    for (unsigned i = 0; i < 3; i++) {
        struct str line = part_of(location, PPROF_LOCATION_LINE, i);
        CHECK_INT(value_of(line, PPROF_LINE_NUMBER), 2 + i);
        struct str function = {NULL, 0};
        for (unsigned k = 0; k < s->count[PPROF_FUNCTION]; k++) {
            if (value_of(s->record[PPROF_FUNCTION][k], PPROF_FUNCTION_ID) ==
                value_of(line, PPROF_LINE_FUNCTION)) {
                function = s->record[PPROF_FUNCTION][k];
            }
        }
        CHECK_STR(text_of(s, function, PPROF_FUNCTION_NAME), names[i]);
        CHECK_STR(text_of(s, function, PPROF_FUNCTION_FILE), files[i]);
    }
    CHECK_INT(part_of(location, PPROF_LOCATION_LINE, 3).len, 0);
    free(s);
    tear_down(b);
}

static void inlined_functions_are_read_back(void)
{
    struct bench *a = set_up(), *b = set_up();
    fill_inlined(&a->p);
    CHECK(pprof_read(&b->p, write_plain(a), STR(""), &b->err));
    uint32_t frame = b->p.nodes.at[b->p.samples.at[1].node].frame;
    CHECK_TEXT(inlined_text(&b->p, frame),
               "leaf:2@/src/leaf.c < middle:3@/src/middle.c < real:4@/src/real.c");
    CHECK_INT(b->p.frames.at[frame].address, 0x20);
    CHECK_INT(b->p.nodes.len, 3);
    CHECK_INT(write_plain(b).len, a->bytes.len);
    tear_down(a);
    tear_down(b);
}

/* A function compiled at run time lies in memory of no file: what tells it is its kind. */
static void generated_code_keeps_its_kind(void)
{
    struct bench *a = set_up(), *b = set_up();
    struct module m = {.path = profile_cstring(&a->p, "[anon]")};
    uint32_t t = add_thread(&a->p, add_process(&a->p, 1, "node", ""), 1, "node");
    uint32_t f = add_address(&a->p, 0, profile_module(&a->p, &m), 0x7f0000001000, "f", FRAME_JS);
    profile_add(&a->p, t, f, SAMPLE_PERIOD_NS, 1);
    CHECK(pprof_read(&b->p, write_plain(a), STR(""), &b->err));
    const struct frame *frame = &b->p.frames.at[b->p.nodes.at[b->p.samples.at[1].node].frame];
    CHECK_INT(frame->kind, FRAME_JS);
    CHECK_INT(frame->address, 0x7f0000001000);
    CHECK_STR(profile_text(&b->p, frame->name), "f");
    tear_down(a);
    tear_down(b);
}

/* col -> profile -> pprof -> profile -> col */
static void stacks_survive_the_way_through_all_formats(void)
{
    static const char text[] =
        "# {\"sampling_frequency\": 100}\n"
        ";app;main;[lost];f 1\n;app;[lost] 4\n;java;appid: java: x;a.b(I)V_[j];c_[i] 2\n"
        ";node;LazyCompile:f 3\n"
        ";perl;p_[perl];q_[js] 1\n;py;m (a.py:1)_[p];e_[pe];read_[k] 5\nc1;ruby;r_[rb];s_[php] 6";
    struct bench *a = set_up(), *b = set_up();
    struct collapsed_damage damage;
    CHECK(collapsed_read(&a->p, str_of(text), STR(""), &damage, &a->err));
    CHECK(pprof_read(&b->p, write_plain(a), STR(""), &b->err));
    char *lines = strdup(lines_of(a));
    CHECK_TEXT(lines_of(b), lines);
    CHECK_TEXT(lines, "0;;app;[lost] 4\n0;;app;main;[lost];f 1\n"
                      "0;;java;appid: java: x;a.b(I)V_[j];c_[i] 2\n"
                      "0;;node;LazyCompile:f 3\n0;;perl;p_[perl];q_[js] 1\n"
                      "0;;py;m (a.py:1)_[p];e_[pe];read_[k] 5\n0;c1;ruby;r_[rb];s_[php] 6");
    free(lines);
    CHECK_INT(profile_sum(&b->p).account_ns[ACCOUNT_LOST], 40000000);
    tear_down(a);
    tear_down(b);
}

/* --- files of other tools, by hand --- */

/* Appends a record whose numbers are given as field, value pairs ended by 0. */
static void record(struct buf *out, unsigned field, const unsigned *pairs)
{
    struct buf message;
    buf_init(&message, 1000);
    for (; pairs[0] != 0; pairs += 2) {
        protobuf_u64(&message, pairs[0], pairs[1]);
    }
    protobuf_message(out, field, &message);
    buf_release(&message);
}

#define RECORD(out, field, ...) record((out), (field), (const unsigned[]){__VA_ARGS__, 0})

static void strings(struct buf *out, const char *const *list)
{
    struct buf text;
    buf_init(&text, 1000);
    protobuf_message(out, PPROF_STRING, &text);
    for (; *list != NULL; list++) {
        buf_clear(&text);
        buf_text(&text, *list);
        protobuf_message(out, PPROF_STRING, &text);
    }
    buf_release(&text);
}

#define STRINGS(out, ...) strings((out), (const char *const[]){__VA_ARGS__, NULL})

/* Go's layout: numbers packed, the line a message within the location. */
static void location(struct buf *out, unsigned id, unsigned mapping, unsigned address,
                     const unsigned *functions)
{
    struct buf message, line;
    buf_init(&message, 1000);
    buf_init(&line, 1000);
    protobuf_u64(&message, PPROF_LOCATION_ID, id);
    protobuf_u64(&message, PPROF_LOCATION_MAPPING, mapping);
    protobuf_u64(&message, PPROF_LOCATION_ADDRESS, address);
    for (; *functions != 0; functions++) {
        buf_clear(&line);
        protobuf_u64(&line, PPROF_LINE_FUNCTION, *functions);
        protobuf_message(&message, PPROF_LOCATION_LINE, &line);
    }
    protobuf_message(out, PPROF_LOCATION, &message);
    buf_release(&message);
    buf_release(&line);
}

#define LOCATION(out, id, mapping, address, ...)                                                   \
    location((out), (id), (mapping), (address), (const unsigned[]){__VA_ARGS__})

static void goes_own_cpu_profile_is_read(void)
{
    struct bench *b = set_up();
    struct buf *out = &b->bytes;
    RECORD(out, PPROF_SAMPLE_TYPE, 1, 1, 2, 2);
    RECORD(out, PPROF_SAMPLE_TYPE, 1, 3, 2, 4);
    RECORD(out, PPROF_SAMPLE, 1, 2, 1, 1, 2, 3, 2, 30);
    RECORD(out, PPROF_SAMPLE, 1, 3, 1, 1, 2, 1, 2, 10);
    RECORD(out, PPROF_MAPPING, 1, 1, 2, 0x400000, 3, 0x500000, 5, 5);
    LOCATION(out, 1, 1, 0x401000, 1, 0);
    LOCATION(out, 2, 1, 0x402000, 3, 2, 0); /* 3 is inlined into 2 */
    LOCATION(out, 3, 1, 0x403010, 0);
    RECORD(out, PPROF_FUNCTION, 1, 1, 2, 6);
    RECORD(out, PPROF_FUNCTION, 1, 2, 2, 7, 4, 8);
    RECORD(out, PPROF_FUNCTION, 1, 3, 2, 9);
    STRINGS(out, "samples", "count", "cpu", "nanoseconds", "/srv/app", "main.main", "main.work",
            "/src/work.go", "main.add");
    RECORD(out, PPROF_PERIOD_TYPE, 1, 3, 2, 4);
    protobuf_u64(out, PPROF_PERIOD, 10);
    CHECK(pprof_read(&b->p, buf_slice(out), STR(""), &b->err));
    CHECK_TEXT(lines_of(b), "0;;app;main.main;[app+0x3010] 1\n"
                            "0;;app;main.main;main.work;main.add 3");
    CHECK_INT(profile_sum(&b->p).count, 4);
    CHECK_INT(b->p.meta.period_ns, 10);
    uint32_t frame = b->p.nodes.at[b->p.samples.at[1].node].frame;
    CHECK_TEXT(inlined_text(&b->p, frame), "main.add:0@ < main.work:0@/src/work.go");
    tear_down(b);
}

/* 40 lines: 32 are one frame, the outer 8 frames of their own, and none is lost. */
static void more_lines_than_any_compiler_makes_are_all_shown(void)
{
    struct bench *b = set_up();
    struct buf *out = &b->bytes;
    const char *names[43] = {"cpu", "nanoseconds"};
    char text[40][8];
    unsigned functions[41] = {0};
    for (unsigned i = 0; i < 40; i++) {
        snprintf(text[i], sizeof text[i], "f%u", i);
        names[2 + i] = text[i];
        functions[i] = i + 1;
        RECORD(out, PPROF_FUNCTION, 1, i + 1, 2, i + 3);
    }
    strings(out, names);
    RECORD(out, PPROF_SAMPLE_TYPE, 1, 1, 2, 2);
    RECORD(out, PPROF_SAMPLE, 1, 1, 2, 10101010);
    location(out, 1, 0, 0x1000, functions);
    CHECK(pprof_read(&b->p, buf_slice(out), STR(""), &b->err));
    CHECK_TEXT(lines_of(b), "0;;all;f39;f38;f37;f36;f35;f34;f33;f32;f31;f30;f29;f28;f27;f26;f25;f24;"
                            "f23;f22;f21;f20;f19;f18;f17;f16;f15;f14;f13;f12;f11;f10;f9;f8;f7;f6;"
                            "f5;f4;f3;f2;f1;f0 1");
    CHECK_INT(b->p.nodes.len, 1 + 9);
    tear_down(b);
}

/* One sample "f" with the given types and values, as field, value pairs. */
static bool read_type(struct bench *b, const char *type, const char *types, const char *period_unit,
                      unsigned period, const unsigned *values)
{
    struct buf *out = &b->bytes;
    const char *list[32] = {"f", period_unit};
    char *words = strdup(types);
    unsigned count = 2;
    for (char *w = strtok(words, "/ "); w != NULL; w = strtok(NULL, "/ ")) {
        list[count++] = w;
    }
    list[count] = NULL;
    strings(out, list);
    for (unsigned i = 2; i < count; i += 2) {
        RECORD(out, PPROF_SAMPLE_TYPE, 1, i + 1, 2, i + 2);
    }
    RECORD(out, PPROF_PERIOD_TYPE, 1, 2, 2, 2);
    protobuf_u64(out, PPROF_PERIOD, period);
    record(out, PPROF_SAMPLE, values);
    LOCATION(out, 1, 0, 0, 1, 0);
    RECORD(out, PPROF_FUNCTION, 1, 1, 2, 1);
    bool ok = pprof_read(&b->p, buf_slice(out), str_of(type), &b->err);
    free(words);
    return ok;
}

static bool read_values(struct bench *b, const char *types, const char *period_unit, unsigned period,
                        const unsigned *values)
{
    return read_type(b, "", types, period_unit, period, values);
}

static void cpu_time_is(const char *types, const char *unit, unsigned period, uint64_t cpu_ns,
                        const unsigned *values)
{
    struct bench *b = set_up();
    CHECK(read_values(b, types, unit, period, values));
    CHECK_INT(profile_sum(&b->p).cpu_ns, cpu_ns);
    tear_down(b);
}

#define SAMPLE(...) (const unsigned[]){1, 1, __VA_ARGS__, 0}

static void the_value_that_is_cpu_time_is_found(void)
{
    cpu_time_is("samples/count cpu/nanoseconds", "nanoseconds", 5, 70, SAMPLE(2, 3, 2, 70));
    cpu_time_is("wall/nanoseconds cpu/nanoseconds", "nanoseconds", 5, 70, SAMPLE(2, 3, 2, 70));
    cpu_time_is("cpu/nanoseconds wall/nanoseconds", "nanoseconds", 5, 3, SAMPLE(2, 3, 2, 70));
    cpu_time_is("contentions/count delay/nanoseconds off/nanoseconds", "count", 1, 70,
                SAMPLE(2, 3, 2, 70, 2, 9));
    cpu_time_is("cpu/microseconds", "", 0, 3000, SAMPLE(2, 3));
    cpu_time_is("samples/count", "nanoseconds", 50, 150, SAMPLE(2, 3));
    cpu_time_is("samples/count", "milliseconds", 2, 6000000, SAMPLE(2, 3));
    cpu_time_is("samples/count", "", 0, 3 * COLLAPSED_PERIOD_NS, SAMPLE(2, 3));
}

static void other_kinds_of_profile_are_named(void)
{
    struct bench *b = set_up();
    CHECK(!read_values(b, "inuse_objects/count inuse_space/bytes", "bytes", 512,
                       SAMPLE(2, 3, 2, 70)));
    CHECK_INT(b->err.kind, ERR_UNSUPPORTED);
    CHECK_TEXT(b->err.text, "this pprof file holds no CPU time: its values are "
                            "inuse_objects/count, inuse_space/bytes");
    tear_down(b);
}

/* What weighs, and what it is called, after reading one sample with these values. */
static void type_is(const char *type, const char *types, uint64_t weight, const char *value,
                    const char *unit, const unsigned *values)
{
    struct bench *b = set_up();
    CHECK(read_type(b, type, types, "nanoseconds", 10, values));
    CHECK_INT(profile_sum(&b->p).cpu_ns, weight);
    CHECK_STR(profile_text(&b->p, b->p.meta.value), value);
    CHECK_STR(profile_text(&b->p, b->p.meta.unit), unit);
    CHECK_INT(b->p.meta.period_ns, strcmp(unit, "count") == 0 ? 1 : 10);
    tear_down(b);
}

static void another_type_takes_the_place_of_cpu_time(void)
{
    static const char types[] =
        "samples/count cpu/nanoseconds off_cpu/nanoseconds delay/microseconds page-faults/count";
    const unsigned *values = SAMPLE(2, 3, 2, 70, 2, 500, 2, 6, 2, 41);
    type_is("", types, 70, "", "", values);
    type_is("cpu", types, 70, "", "", values);
    type_is("off_cpu", types, 500, "off_cpu", "nanoseconds", values);
    type_is("delay", types, 6000, "delay", "nanoseconds", values);
    type_is("page-faults", types, 41, "page-faults", "count", values);
    type_is("samples", types, 3, "samples", "count", values);
}

static void a_type_that_is_not_there(void)
{
    struct bench *b = set_up();
    CHECK(!read_type(b, "cpu", "samples/count wall/nanoseconds", "", 0, SAMPLE(2, 3, 2, 70)));
    CHECK_INT(b->err.kind, ERR_USAGE);
    CHECK_TEXT(b->err.text, "there is no sample type cpu in it; there is: samples, wall");
    buf_clear(&b->bytes);
    CHECK(read_type(b, "wall", "samples/count wall/nanoseconds", "", 0, SAMPLE(2, 3, 2, 70)));
    buf_clear(&b->bytes);
    CHECK(!read_type(b, "", "samples/count wall/nanoseconds", "", 0, SAMPLE(2, 3, 2, 70)));
    CHECK_TEXT(b->err.text, "CPU time cannot be added to wall, which the files before it hold");
    tear_down(b);
}

/* Through a collapsed file it keeps its name and what a count stands for; pprof has it as its type. */
static void another_type_is_written_under_its_name(void)
{
    struct bench *b = set_up();
    struct profile again;
    struct collapsed_damage damage;
    CHECK(read_type(b, "page-faults", "samples/count page-faults/count", "", 0,
                    SAMPLE(2, 1, 2, 41)));
    CHECK_TEXT(lines_of(b), "0;;all;f 41");
    CHECK(profile_init(&again, SAMPLE_MAX_BYTES, NULL));
    CHECK(!collapsed_read(&again, buf_slice(&b->text), STR("cpu"), &damage, &b->err));
    CHECK_TEXT(b->err.text, "there is no sample type cpu in it; there is: page-faults");
    CHECK(collapsed_read(&again, buf_slice(&b->text), STR("page-faults"), &damage, &b->err));
    CHECK_INT(profile_sum(&again).cpu_ns, 41);
    CHECK_STR(profile_text(&again, again.meta.unit), "count");
    profile_release(&again);
    struct seen *s = look(write_plain(b));
    CHECK_INT(s->count[PPROF_SAMPLE_TYPE], 2);
    CHECK_STR(text_of(s, s->record[1][1], 1), "page-faults");
    CHECK_STR(s->strings[s->number[PPROF_DEFAULT_TYPE]], "page-faults");
    free(s);
    tear_down(b);
}

static void labels_of_other_tools_are_taken(void)
{
    struct bench *b = set_up();
    struct buf *out = &b->bytes, sample, label;
    buf_init(&sample, 1000);
    buf_init(&label, 1000);
    STRINGS(out, "cpu", "ns", "pid", "thread_name", "pool-1", "unknown key");
    RECORD(out, PPROF_SAMPLE_TYPE, 1, 1, 2, 2);
    protobuf_u64(&sample, PPROF_SAMPLE_VALUE, 20000000);
    protobuf_u64(&label, PPROF_LABEL_KEY, 3);
    protobuf_u64(&label, PPROF_LABEL_NUMBER, 77);
    protobuf_message(&sample, PPROF_SAMPLE_LABEL, &label);
    buf_clear(&label);
    protobuf_u64(&label, PPROF_LABEL_KEY, 4);
    protobuf_u64(&label, PPROF_LABEL_TEXT, 5);
    protobuf_message(&sample, PPROF_SAMPLE_LABEL, &label);
    buf_clear(&label);
    protobuf_u64(&label, PPROF_LABEL_KEY, 6);
    protobuf_message(&sample, PPROF_SAMPLE_LABEL, &label);
    protobuf_message(out, PPROF_SAMPLE, &sample);
    CHECK(pprof_read(&b->p, buf_slice(out), STR(""), &b->err));
    CHECK_INT(b->p.processes.at[1].pid, 77);
    CHECK_STR(profile_text(&b->p, b->p.threads.at[1].name), "pool-1");
    CHECK(strstr(lines_of(b), "pool-1;[unknown]") != NULL);
    buf_release(&sample);
    buf_release(&label);
    tear_down(b);
}

static void what_a_runtime_tells_is_a_label_and_read_back(void)
{
    struct bench *a = set_up(), *b = set_up();
    uint32_t thread = add_thread(&a->p, add_process(&a->p, 5, "x", ""), 6, "n");
    uint32_t node = add_name(&a->p, 0, "f", FRAME_PYTHON);
    const struct str labels[PROFILE_LABELS] = {STR("held"), STR("pay; \xc3\xa9"), STR("2"),
                                               [PROFILE_LABEL_OWN] = STR("span id\0" "17\0k\0\xc3\xa9\0")};
    a->p.meta.period_ns = SAMPLE_PERIOD_NS;
    profile_add(&a->p, thread, node, 5 * SAMPLE_PERIOD_NS, 5);
    profile_add(&a->p, profile_labelled(&a->p, thread, labels), node, 7 * SAMPLE_PERIOD_NS, 7);
    CHECK(pprof_read(&b->p, write_plain(a), STR(""), &b->err));
    CHECK_INT(b->p.samples.len, 1 + 2);
    CHECK_INT(profile_thread_count(&b->p), 1);
    const struct sample *told = &b->p.samples.at[2];
    CHECK_INT(told->count, 7);
    CHECK_INT(b->p.threads.at[b->p.samples.at[1].thread].plain, 0);
    for (unsigned i = 0; i < PROFILE_LABELS; i++) {
        uint32_t text = b->p.threads.at[told->thread].label[i];
        CHECK(str_eq(profile_text(&b->p, text), labels[i]));
    }
    CHECK_TEXT(lines_of(b), "1;;n;f_[p] 12"); /* collapsed stacks have no place for them */
    tear_down(a);
    tear_down(b);
}

/* --- what must be refused --- */

static void refused(struct buf *bytes, enum err_kind kind, const char *sentence)
{
    struct bench *b = set_up();
    CHECK(!pprof_read(&b->p, buf_slice(bytes), STR(""), &b->err));
    CHECK_INT(b->err.kind, kind);
    CHECK(strstr(b->err.text, sentence) != NULL);
    if (strstr(b->err.text, sentence) == NULL) {
        printf("# said: %s\n", b->err.text);
    }
    buf_clear(bytes);
    tear_down(b);
}

/* The smallest valid file; a test then makes one thing wrong. */
static void start(struct buf *out)
{
    STRINGS(out, "cpu", "nanoseconds", "f");
    RECORD(out, PPROF_SAMPLE_TYPE, 1, 1, 2, 2);
    RECORD(out, PPROF_FUNCTION, 1, 1, 2, 3);
    LOCATION(out, 1, 0, 0, 1, 0);
    RECORD(out, PPROF_SAMPLE, 1, 1, 2, 5);
}

static void what_pprof_refuses_is_refused(void)
{
    struct buf out;
    buf_init(&out, 100000);
    struct bench *good = set_up();
    start(&out);
    CHECK(pprof_read(&good->p, buf_slice(&out), STR(""), &good->err));
    tear_down(good);
    buf_clear(&out);

    refused(&out, ERR_MALFORMED, "it is empty");
    protobuf_text(&out, PPROF_STRING, STR("x"));
    refused(&out, ERR_MALFORMED, "does not begin with the empty string");
    RECORD(&out, PPROF_SAMPLE_TYPE, 1, 0, 2, 0);
    refused(&out, ERR_MALFORMED, "no string table");
    start(&out);
    protobuf_u64(&out, PPROF_TIME, 7);
    protobuf_u64(&out, PPROF_TIME, 7);
    refused(&out, ERR_MALFORMED, "two profiles");
    start(&out);
    RECORD(&out, PPROF_SAMPLE_TYPE, 1, 1, 2, 9);
    refused(&out, ERR_MALFORMED, "string that does not exist");
    start(&out);
    RECORD(&out, PPROF_FUNCTION, 1, 2, 2, 4);
    refused(&out, ERR_MALFORMED, "string that does not exist");
    start(&out);
    RECORD(&out, PPROF_SAMPLE_TYPE, 1, 1, 2, 2);
    refused(&out, ERR_MALFORMED, "as many values");
    start(&out);
    RECORD(&out, PPROF_SAMPLE, 1, 2, 2, 5);
    refused(&out, ERR_MALFORMED, "location that does not exist");
    start(&out);
    LOCATION(&out, 2, 0, 0, 2, 0);
    refused(&out, ERR_MALFORMED, "function that does not exist");
    start(&out);
    RECORD(&out, PPROF_FUNCTION, 1, 0, 2, 3);
    refused(&out, ERR_MALFORMED, "id 0");
    start(&out);
    LOCATION(&out, 1, 0, 0, 1, 0);
    refused(&out, ERR_MALFORMED, "same id");
    start(&out);
    RECORD(&out, PPROF_MAPPING, 1, 1);
    RECORD(&out, PPROF_MAPPING, 1, 1);
    refused(&out, ERR_MALFORMED, "same id");
    STRINGS(&out, "f");
    RECORD(&out, PPROF_FUNCTION, 1, 1, 2, 1);
    LOCATION(&out, 1, 0, 0, 1, 0);
    RECORD(&out, PPROF_SAMPLE, 1, 1, 2, 5);
    refused(&out, ERR_MALFORMED, "no sample types");
    start(&out);
    protobuf_u64(&out, PPROF_SAMPLE, 5);
    refused(&out, ERR_MALFORMED, "a record is a number");
    buf_release(&out);
}

static void what_we_cannot_read_is_named(void)
{
    struct buf out, sample;
    buf_init(&out, 100000);
    buf_init(&sample, 100);
    buf_add(&out, "\x28\xb5\x2f\xfd....", 8);
    refused(&out, ERR_UNSUPPORTED, "zstd");
    start(&out);
    protobuf_u64(&sample, PPROF_SAMPLE_LOCATION, 1);
    protobuf_u64(&sample, PPROF_SAMPLE_VALUE, (uint64_t)-5);
    protobuf_message(&out, PPROF_SAMPLE, &sample);
    refused(&out, ERR_UNSUPPORTED, "negative");
    start(&out);
    buf_clear(&sample);
    protobuf_u64(&sample, PPROF_SAMPLE_LOCATION, 1);
    protobuf_u64(&sample, PPROF_SAMPLE_VALUE, INT64_MAX);
    protobuf_message(&out, PPROF_SAMPLE, &sample);
    refused(&out, ERR_LIMIT, "146 years");
    buf_release(&sample);
    buf_release(&out);
}

/* Whatever is cut off or flipped, the reader ends, with an error or a profile. */
static void every_cut_and_every_flipped_bit_is_survived(void)
{
    struct bench *a = set_up();
    fill_sample(&a->p);
    struct str bytes = write_plain(a);
    char *copy = malloc(bytes.len);
    unsigned refusals = 0;
    for (size_t i = 0; i < bytes.len; i++) {
        struct bench *b = set_up();
        memcpy(copy, bytes.ptr, i);
        refusals += !pprof_read(&b->p, (struct str){copy, i}, STR(""), &b->err);
        memcpy(copy, bytes.ptr, bytes.len);
        copy[i] = (char)(copy[i] ^ 1 << i % 8);
        refusals += !pprof_read(&b->p, (struct str){copy, bytes.len}, STR(""), &b->err);
        tear_down(b);
    }
    CHECK(refusals > bytes.len / 2);
    free(copy);
    tear_down(a);
}

static void a_full_sink_is_an_error(void)
{
    struct bench *b = set_up();
    fill_sample(&b->p);
    size_t whole = write_plain(b).len;
    for (size_t max = 1; max < whole; max += 31) {
        struct buf small;
        buf_init(&small, max);
        struct sink sink = sink_of_buf(&small);
        CHECK(!pprof_write_plain(&b->p, NULL, &sink, &b->err));
        buf_release(&small);
    }
    tear_down(b);
}

TESTS({"another sample type takes the place of CPU time", another_type_takes_the_place_of_cpu_time},
      {"a sample type that is not there is told from those that are", a_type_that_is_not_there},
      {"another sample type is written under its name", another_type_is_written_under_its_name},
      {"the frame of the file: types, times, tables", the_frame_of_the_file},
      {"other events are sample types of their own, behind CPU time", other_events_are_sample_types},
      {"mappings begin with the program", mappings_begin_with_the_program},
      {"addresses lie inside their mapping", addresses_lie_inside_their_mapping},
      {"samples carry values and labels", samples_carry_values_and_labels},
      {"samples that were forgotten are not written", samples_that_were_forgotten_are_not_written},
      {"comments say what was not seen", comments_say_what_was_not_seen},
      {"the same profile gives the same bytes", the_same_profile_gives_the_same_bytes},
      {"what is written is read back", what_is_written_is_read_back},
      {"addresses survive a second writing", addresses_survive_a_second_writing},
      {"inlined functions are lines of one location, innermost first",
       inlined_functions_are_lines_of_one_location},
      {"inlined functions are read back", inlined_functions_are_read_back},
      {"generated code keeps its kind", generated_code_keeps_its_kind},
      {"more lines than any compiler makes are all shown",
       more_lines_than_any_compiler_makes_are_all_shown},
      {"stacks survive the way through all formats", stacks_survive_the_way_through_all_formats},
      {"Go's own CPU profile is read, inlined code too", goes_own_cpu_profile_is_read},
      {"the value that is CPU time is found", the_value_that_is_cpu_time_is_found},
      {"other kinds of profile are named", other_kinds_of_profile_are_named},
      {"labels of other tools are taken", labels_of_other_tools_are_taken},
      {"what a runtime tells of a thread is a label, and is read back",
       what_a_runtime_tells_is_a_label_and_read_back},
      {"what pprof refuses is refused", what_pprof_refuses_is_refused},
      {"what we cannot read is named", what_we_cannot_read_is_named},
      {"every cut and every flipped bit is survived", every_cut_and_every_flipped_bit_is_survived},
      {"a full sink is an error", a_full_sink_is_an_error})

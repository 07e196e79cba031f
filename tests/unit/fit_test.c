/* src/encode/fit: as many stacks as there is room for, and the sums are what they were. */
#include "base/gzip.h"
#include "encode/encode.h"
#include "encode/pprof_read.h"
#include "otlp_read.h"
#include "sample_profile.h"

static const struct encoder *form(const char *name)
{
    return encoder_by_name(str_of(name));
}

static struct str written(const char *format, struct profile *p, const struct encode_rules *rules, struct buf *out)
{
    struct err err = {0};
    struct sink sink = sink_of_buf(out);
    buf_init(out, ROOM);
    CHECK(encode_write(form(format), p, rules, &sink, &err));
    CHECK_TEXT(err.text, "");
    return buf_slice(out);
}

static void cannot_be(const char *format, struct profile *p, const struct encode_rules *rules, enum err_kind kind)
{
    struct err err = {0};
    struct buf out;
    struct sink sink = sink_of_buf(&out);
    buf_init(&out, ROOM);
    CHECK(!encode_write(form(format), p, rules, &sink, &err));
    CHECK_INT(err.kind, kind);
    CHECK_INT(out.len, 0);
    buf_release(&out);
}

/* ---- collapsed stacks ---- */

#define LONG "a_function_with_a_long_name;another_function_with_a_long_name"
#define LONGER LONG ";" LONG ";" LONG ";" LONG

/* The lines behind the header, of what is read from `before`. */
static void col_is(const char *before, double share, const char *after)
{
    struct profile p;
    struct buf out;
    struct collapsed_damage damage = {0};
    CHECK(profile_init(&p, ROOM, NULL));
    CHECK(profile_read(&p, str_of(before), &damage, NULL));
    uint64_t sum_ns = profile_sum(&p).cpu_ns;
    struct str lines = written("col", &p, &(struct encode_rules){.share = share}, &out);
    (void)str_cut(&lines, '\n');
    CHECK_STR(lines, after);
    struct profile back;
    CHECK(profile_init(&back, ROOM, NULL));
    CHECK(profile_read(&back, buf_slice(&out), &damage, NULL));
    CHECK_INT(profile_sum(&back).cpu_ns, sum_ns);
    profile_release(&back);
    profile_release(&p);
    buf_release(&out);
}

static void the_lightest_lines_go_and_their_process_keeps_its_sum(void)
{
    col_is("sh;" LONGER ";a 5\nsh;" LONGER ";b 1\nsh;" LONGER ";c 1\npy;" LONGER ";d 9\npy;" LONGER ";e 2", 0.75,
           "0;;py;[dropped to fit] 2\n0;;py;" LONGER ";d 9\n0;;sh;[dropped to fit] 2\n0;;sh;" LONGER ";a 5");
}

static void what_went_before_goes_again(void)
{
    col_is("sh;" LONGER ";a 5\nsh;" LONGER ";b 1\nsh;" LONGER ";c 1\nsh;[dropped to fit] 2", 0.8,
           "0;;sh;[dropped to fit] 4\n0;;sh;" LONGER ";a 5");
}

static void where_even_processes_are_too_many_there_is_one_line(void)
{
    struct buf many;
    buf_init(&many, ROOM);
    for (unsigned i = 0; i < 1000; i++) {
        buf_printf(&many, "a_process_%u;main 1\n", i);
    }
    struct profile p;
    struct buf out;
    struct collapsed_damage damage = {0};
    CHECK(profile_init(&p, ROOM, NULL));
    CHECK(profile_read(&p, buf_slice(&many), &damage, NULL));
    struct str col = written("col", &p, &(struct encode_rules){.share = 0.1}, &out);
    CHECK(find(col, "\n0;;[dropped to fit];[dropped to fit] 9"));
    CHECK(!find(col, "main;[dropped to fit]"));
    profile_clear(&p);
    CHECK(profile_read(&p, col, &damage, NULL));
    CHECK_INT(profile_sum(&p).count, 1000);
    profile_release(&p);
    buf_release(&out);
    buf_release(&many);
}

static void an_application_stays_with_its_process(void)
{
    struct profile p;
    struct buf out;
    CHECK(profile_init(&p, ROOM, NULL));
    uint32_t sh = add_process(&p, 0, "sh", "");
    p.processes.at[sh].appid = profile_cstring(&p, "appid: x");
    for (unsigned i = 0; i < 100; i++) {
        char name[40];
        snprintf(name, sizeof name, "a_function_with_a_name_%02u", i);
        uint32_t node = add_name(&p, 0, name, FRAME_NATIVE);
        profile_add(&p, add_thread(&p, sh, 0, "sh"), node, (i == 0 ? 10 : 1) * SAMPLE_PERIOD_NS, 1);
    }
    p.meta.period_ns = SAMPLE_PERIOD_NS;
    struct str col = written("col", &p, &(struct encode_rules){.share = 0.6}, &out);
    CHECK(find(col, "0;;sh;appid: x;a_function_with_a_name_00 10"));
    CHECK(find(col, "\n0;;sh;appid: x;[dropped to fit] "));
    profile_release(&p);
    buf_release(&out);
}

/* ---- pprof ---- */

/* `count` stacks of their own names, the n-th with n samples; time spent waiting and page faults at some. */
static void fill_many(struct profile *p, unsigned count)
{
    uint32_t process = add_process(p, 12, "web", ""), parent = 0;
    uint32_t faults = profile_event_type(p, "page-faults", "count");
    for (unsigned i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "function_%u_%llx", i, (unsigned long long)hash_u64(i));
        uint32_t thread = add_thread(p, process, 12 + i % 3, "t");
        parent = i % 20 == 0 ? 0 : parent;
        parent = add_name(p, parent, name, FRAME_NATIVE);
        profile_add(p, thread, parent, (uint64_t)i * SAMPLE_PERIOD_NS, i);
        profile_add(p, add_thread(p, process, 100, "u"), parent, SAMPLE_PERIOD_NS, 1);
        if (i > 0) {
            profile_add_wait(p, thread, parent, 7 * i);
            profile_add_event(p, faults, thread, parent, 3 * i);
        }
    }
    p->meta.period_ns = SAMPLE_PERIOD_NS;
}

enum { MANY = 2000 };
/* 0 + 1 + … + 1999, and one more each, of 10 ms */
#define MANY_NS ((uint64_t)(1999 * 1000 + 2000) * SAMPLE_PERIOD_NS)

struct seen {
    struct profile_totals sum;
    uint64_t wait_ns, faults;
    size_t samples, plain_bytes;
    bool has_dropped, has_lightest, has_heaviest;
};

static struct seen seen_in(struct str file)
{
    struct profile p;
    struct buf plain;
    struct seen seen = {.wait_ns = 0};
    char heaviest[64];
    snprintf(heaviest, sizeof heaviest, "function_%u_%llx", MANY - 1, (unsigned long long)hash_u64(MANY - 1));
    buf_init(&plain, ROOM);
    CHECK(profile_init(&p, ROOM, NULL));
    CHECK(pprof_read_whole(&p, file, NULL));
    CHECK(gzip_inflate(file.ptr, file.len, &plain, NULL));
    seen.plain_bytes = plain.len;
    seen.sum = profile_sum(&p);
    seen.samples = p.samples.len - 1 + p.waits.len + p.occurrences.len;
    vec_each(&p.waits, wait)
    {
        seen.wait_ns += wait->wait_ns;
    }
    vec_each(&p.occurrences, o)
    {
        seen.faults += o->amount;
    }
    vec_each(&p.strings, text)
    {
        seen.has_dropped |= str_eq(*text, STR(ENCODE_DROPPED));
        seen.has_lightest |= str_starts(*text, STR("function_1_"));
        seen.has_heaviest |= str_eq(*text, str_of(heaviest));
    }
    profile_release(&p);
    buf_release(&plain);
    return seen;
}

static struct seen seen_with(const struct encode_rules *rules)
{
    struct profile p;
    struct buf out;
    CHECK(profile_init(&p, ROOM, NULL));
    fill_many(&p, MANY);
    struct seen seen = seen_in(written("pprof", &p, rules, &out));
    CHECK_INT(seen.sum.cpu_ns, MANY_NS);
    CHECK_INT(seen.sum.count, 1999 * 1000 + 2000);
    CHECK_INT(seen.wait_ns, 1999 * 1000 * 7);
    CHECK_INT(seen.faults, 1999 * 1000 * 3);
    profile_release(&p);
    buf_release(&out);
    return seen;
}

static void a_pprof_keeps_its_sums_and_its_heaviest_stacks(void)
{
    struct profile p;
    struct buf out;
    CHECK(profile_init(&p, ROOM, NULL));
    fill_many(&p, MANY);
    size_t before = written("pprof", &p, NULL, &out).len;
    for (unsigned round = 0; round < 4; round++) { /* each of what the one before left */
        struct buf next;
        CHECK(written("pprof", &p, &(struct encode_rules){.share = 0.5}, &next).len < before * 3 / 4);
        struct seen seen = seen_in(buf_slice(&next));
        CHECK_INT(seen.sum.cpu_ns, MANY_NS);
        CHECK_INT(seen.sum.count, 1999 * 1000 + 2000);
        CHECK_INT(seen.wait_ns, 1999 * 1000 * 7);
        CHECK_INT(seen.faults, 1999 * 1000 * 3);
        CHECK(seen.has_dropped && seen.has_heaviest && !seen.has_lightest);
        before = next.len;
        profile_clear(&p);
        CHECK(profile_read_whole(&p, buf_slice(&next), NULL, NULL));
        buf_release(&out);
        out = next;
    }
    profile_release(&p);
    buf_release(&out);
}

static void samples_and_bytes_are_bounded(void)
{
    struct seen seen = seen_with(NULL);
    CHECK(seen.samples == 8000 - 3 && !seen.has_dropped); /* one stack has no time and no sample */
    seen = seen_with(&(struct encode_rules){.most_samples = 9000});
    CHECK(seen.samples == 8000 - 3 && !seen.has_dropped);
    seen = seen_with(&(struct encode_rules){.most_samples = 100});
    CHECK(seen.samples <= 100 && seen.samples > 95 && seen.has_dropped);
    seen = seen_with(&(struct encode_rules){.most_bytes = 30000});
    CHECK(seen.plain_bytes <= 30000 && seen.plain_bytes > 29000 && seen.samples > 100);
    seen = seen_with(&(struct encode_rules){.most_bytes = 30000, .share = 0.5});
    CHECK(seen.plain_bytes <= 15000 && seen.plain_bytes > 13500); /* a stack of 20 new names has 900 */
}

static void without_threads_stacks_of_several_are_one(void)
{
    struct seen seen = seen_with(&(struct encode_rules){.merges_threads = true});
    CHECK_INT(seen.samples, 6000 - 2);
    seen = seen_with(&(struct encode_rules){.merges_threads = true, .most_samples = 1000});
    CHECK(seen.samples <= 1000 && seen.samples > 995);
}

static bool holds(struct str file, const char *text)
{
    struct buf plain;
    buf_init(&plain, ROOM);
    CHECK(gzip_inflate(file.ptr, file.len, &plain, NULL));
    bool found = find(buf_slice(&plain), text);
    buf_release(&plain);
    return found;
}

static void names_of_types_are_as_the_service_wants_them(void)
{
    static const struct encode_name names[] = {{"cpu", "cpu-time"}, {NULL, NULL}};
    struct profile p;
    struct buf out;
    CHECK(profile_init(&p, ROOM, NULL));
    fill_many(&p, 20);
    add_name(&p, 0, "cpu", FRAME_NATIVE);
    CHECK(holds(written("pprof", &p, NULL, &out), "page-faults"));
    buf_release(&out);
    struct str plain = written("pprof", &p, &(struct encode_rules){.plain_types = true}, &out);
    CHECK(holds(plain, "page_faults") && !holds(plain, "page-faults"));
    buf_release(&out);
    CHECK(holds(written("pprof", &p, &(struct encode_rules){.type_names = names}, &out), "cpu-time"));
    profile_release(&p);
    buf_release(&out);
}

static void what_cannot_be_so_small_is_told(void)
{
    struct profile p;
    CHECK(profile_init(&p, ROOM, NULL));
    cannot_be("pprof", &p, &(struct encode_rules){.most_bytes = 10}, ERR_LIMIT);
    fill_many(&p, MANY);
    cannot_be("pprof", &p, &(struct encode_rules){.most_bytes = 10}, ERR_LIMIT);
    cannot_be("otlp", &p, &(struct encode_rules){.most_bytes = 40}, ERR_LIMIT);
    cannot_be("col", &p, &(struct encode_rules){.most_bytes = 40}, ERR_LIMIT);
    profile_release(&p);
}

/* ---- OpenTelemetry ---- */

enum { STACKS = 50, SUM = 2 * 1000 * (STACKS * (STACKS + 1) / 2) }; /* few: rows are compared each with each */

/* Two processes with many stacks each, of which the first weigh most; page faults at some. */
static void fill_two(struct profile *p)
{
    uint32_t faults = profile_event_type(p, "page-faults", "count");
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t thread = add_thread(p, add_process(p, 10 + i, "sh", ""), 10 + i, "sh");
        for (uint32_t k = 0; k < STACKS; k++) {
            char name[40];
            snprintf(name, sizeof name, "a_function_with_a_name_%u_%u", i, k);
            uint32_t node = add_name(p, 0, name, FRAME_NATIVE);
            profile_add(p, thread, node, 1000 * (STACKS - k), 1);
            if (k == 0) {
                profile_add_event(p, faults, thread, node, 2);
            }
        }
    }
    p->meta.start_wall_ns = 1;
}

static void every_profile_of_opentelemetry_keeps_its_sum(void)
{
    struct profile p;
    struct buf whole, out;
    CHECK(profile_init(&p, ROOM, NULL));
    fill_two(&p);
    struct str before = written("otlp", &p, NULL, &whole);
    struct str after = written("otlp", &p, &(struct encode_rules){.most_bytes = before.len / 2}, &out);
    CHECK(after.len <= before.len / 2 && after.len > before.len * 2 / 5);
    CHECK_INT(parts(after, 1), 2);
    CHECK_INT(sum_of(after, "samples"), SUM);
    CHECK_INT(sum_of(after, "page_faults"), 4);
    for (unsigned i = 0; i < 2; i++) {
        struct str profile = part(part(part(after, 1, i), 2, 0), 2, 0);
        CHECK_INT(sum_of_profile(profile), SUM / 2);
    }
    CHECK(otlp_rows_are_unique(part(after, 2, 0)));
    CHECK(find(after, "a_function_with_a_name_0_0") && find(after, "a_function_with_a_name_1_0"));
    CHECK(!find(after, "a_function_with_a_name_0_49") && !find(before, ENCODE_DROPPED) && find(after, ENCODE_DROPPED));
    buf_release(&out);
    after = written("otlp", &p, &(struct encode_rules){.most_bytes = before.len}, &out);
    CHECK_INT(after.len, before.len); /* nothing goes where all fits */
    CHECK(!find(after, ENCODE_DROPPED));
    profile_release(&p);
    buf_release(&whole);
    buf_release(&out);
}

/* ---- the profile itself ---- */

static void the_profile_stays_what_it_was(void)
{
    struct profile p;
    struct buf before, small, after;
    CHECK(profile_init(&p, ROOM, NULL));
    fill_many(&p, 200);
    (void)written("pprof", &p, NULL, &before);
    (void)written("pprof", &p, &(struct encode_rules){.merges_threads = true, .share = 0.3}, &small);
    (void)written("pprof", &p, NULL, &after);
    CHECK(str_eq(buf_slice(&before), buf_slice(&after)));
    CHECK(small.len < before.len);
    profile_release(&p);
    buf_release(&before);
    buf_release(&small);
    buf_release(&after);
}

TESTS({"the lightest lines go, and their process keeps its sum",
       the_lightest_lines_go_and_their_process_keeps_its_sum},
      {"what went before goes again: a process has one such line", what_went_before_goes_again},
      {"an application stays with its process", an_application_stays_with_its_process},
      {"where even processes are too many there is one line", where_even_processes_are_too_many_there_is_one_line},
      {"a pprof keeps the sum of each column and its heaviest stacks, however often it is made smaller",
       a_pprof_keeps_its_sums_and_its_heaviest_stacks},
      {"samples and bytes are bounded, and hardly any room is left", samples_and_bytes_are_bounded},
      {"without threads, stacks of several are one", without_threads_stacks_of_several_are_one},
      {"names of sample types are as the service wants them", names_of_types_are_as_the_service_wants_them},
      {"what cannot be so small is told", what_cannot_be_so_small_is_told},
      {"every profile of OpenTelemetry keeps its sum", every_profile_of_opentelemetry_keeps_its_sum},
      {"the profile stays what it was", the_profile_stays_what_it_was})

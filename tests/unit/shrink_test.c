/* src/deliver/shrink and pprof_cut: smaller, and the sums are what they were. */
#include "base/gzip.h"
#include "base/protobuf.h"
#include "deliver/pprof_cut.h"
#include "deliver/shrink.h"
#include "encode/pprof.h"
#include "encode/pprof_read.h"
#include "sample_profile.h"
#include "deliver.h"

enum { ROOM = 32 * 1024 * 1024 };

/* ---- collapsed stacks ---- */

static uint64_t sum_of(struct str col)
{
    uint64_t sum = 0, count;
    while (col.len > 0) {
        struct str line = str_cut(&col, '\n');
        size_t blank = str_find_last(line, ' ');
        if (!str_starts(line, STR("#")) && str_u64(str_sub(line, blank + 1, line.len), &count)) {
            sum += count;
        }
    }
    return sum;
}

static void col_is(const char *before, size_t from, size_t to, const char *after)
{
    struct delivery delivery = delivery_of("col", str_of(before));
    struct buf out;
    struct err err = {0};
    buf_init(&out, ROOM);
    bool ok = shrink(&delivery, from, to, &out, &err);
    CHECK(ok == (after != NULL));
    if (after != NULL) {
        CHECK_TEXT(buf_cstr(&out), after);
        CHECK_INT(sum_of(buf_slice(&out)), sum_of(str_of(before)));
    } else {
        CHECK_INT(err.kind, ERR_LIMIT);
    }
    buf_release(&out);
}

#define LONG "a_function_with_a_long_name;another_function_with_a_long_name"
#define LONGER LONG ";" LONG ";" LONG ";" LONG

static void the_lightest_lines_go_and_their_process_keeps_its_sum(void)
{
    /* about half of 1180 bytes: the two lines that count most stay */
    col_is("# {}\n0;;sh;" LONGER ";a 5\n0;;sh;" LONGER ";b 1\n0;;sh;" LONGER ";c 1\n1;;py;" LONGER ";d 9\n"
           "1;;py;" LONGER ";e 2",
           0, 0,
           "# {}\n0;;sh;" LONGER ";a 5\n1;;py;" LONGER ";d 9\n0;;sh;[dropped to fit] 2\n"
           "1;;py;[dropped to fit] 2");
}

static void what_went_before_goes_again(void)
{
    col_is("# {}\n0;;sh;" LONGER ";a 5\n0;;sh;" LONGER ";b 1\n0;;sh;[dropped to fit] 2", 0, 0,
           "# {}\n0;;sh;" LONGER ";a 5\n0;;sh;[dropped to fit] 3");
}

static void an_application_stays_with_its_process(void)
{
    col_is("# {}\n0;;sh;appid: x;" LONGER ";a 5\n0;;sh;appid: x;" LONGER ";b 1\n0;;sh;appid: x;" LONGER ";c 1",
           0, 0, "# {}\n0;;sh;appid: x;" LONGER ";a 5\n0;;sh;appid: x;[dropped to fit] 2");
}

static void a_file_without_a_header_has_one_field_for_the_process(void)
{
    col_is("sh;" LONGER ";a 5\nsh;" LONGER ";b 1\npy;" LONGER ";c 1", 0, 0,
           "sh;" LONGER ";a 5\nsh;[dropped to fit] 1\npy;[dropped to fit] 1");
}

static void where_even_processes_are_too_many_there_is_one_line(void)
{
    col_is("# {}\n0;;" LONGER ";a 5\n1;;" LONGER "2;b 1", 1000, 10,
           "# {}\n0;;[dropped to fit];[dropped to fit] 6");
}

static void what_cannot_be_smaller_is_told(void)
{
    col_is("# {}\n0;;sh;main 5", 0, 0, NULL);
    col_is("# {}", 0, 0, NULL);
    col_is("", 0, 0, NULL);
    struct delivery html = delivery_of("html", STR("<html>"));
    struct buf out;
    struct err err = {0};
    buf_init(&out, ROOM);
    CHECK(!shrink(&html, 0, 0, &out, &err) && err.kind == ERR_UNSUPPORTED);
    buf_release(&out);
}

/* ---- pprof ---- */

static void write_pprof(struct profile *p, struct buf *out)
{
    struct err err = {0};
    struct sink sink = sink_of_buf(out);
    buf_init(out, ROOM);
    CHECK(pprof_write(p, &sink, &err));
}

/* `count` stacks of their own names, the n-th with n samples. */
static void fill_many(struct profile *p, unsigned count)
{
    uint32_t process = add_process(p, 12, "web", ""), parent = 0;
    for (unsigned i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "function_%u_%llx", i, (unsigned long long)hash_u64(i));
        uint32_t thread = add_thread(p, process, 12 + i % 3, "t");
        parent = i % 20 == 0 ? 0 : parent;
        parent = add_name(p, parent, name, FRAME_NATIVE);
        profile_add(p, thread, parent, (uint64_t)i * SAMPLE_PERIOD_NS, i);
        profile_add(p, add_thread(p, process, 100, "u"), parent, SAMPLE_PERIOD_NS, 1);
    }
    p->meta.period_ns = SAMPLE_PERIOD_NS;
}

struct read_back {
    struct profile p;
    struct profile_totals sum;
    bool has_dropped, has_lightest, has_heaviest;
};

static void read_back(struct str file, unsigned count, struct read_back *out)
{
    struct err err = {0};
    char lightest[64], heaviest[64];
    *out = (struct read_back){.has_dropped = false};
    snprintf(lightest, sizeof lightest, "function_1_%llx", (unsigned long long)hash_u64(1));
    snprintf(heaviest, sizeof heaviest, "function_%u_%llx", count - 1,
             (unsigned long long)hash_u64(count - 1));
    CHECK(profile_init(&out->p, ROOM, NULL));
    CHECK(pprof_read(&out->p, file, &err));
    out->sum = profile_sum(&out->p);
    vec_each(&out->p.strings, text)
    {
        out->has_dropped |= str_eq(*text, STR(SHRINK_FRAME));
        out->has_lightest |= str_eq(*text, str_of(lightest));
        out->has_heaviest |= str_eq(*text, str_of(heaviest));
    }
    profile_release(&out->p);
}

enum { MANY = 2000 };
/* 0 + 1 + … + 1999, and one more each, of 10 ms */
#define MANY_NS ((uint64_t)(1999 * 1000 + 2000) * SAMPLE_PERIOD_NS)

static void make_many(struct buf *file)
{
    struct profile p;
    CHECK(profile_init(&p, ROOM, NULL));
    fill_many(&p, MANY);
    write_pprof(&p, file);
    profile_release(&p);
}

static void a_pprof_keeps_its_sums_and_its_heaviest_stacks(void)
{
    struct buf file, out;
    struct err err = {0};
    struct read_back seen;
    make_many(&file);
    struct delivery delivery = delivery_of("pprof", buf_slice(&file));
    size_t before = file.len;
    for (unsigned round = 0; round < 4; round++) {
        buf_init(&out, ROOM);
        CHECK(shrink(&delivery, 0, 0, &out, &err));
        CHECK(out.len < before * 3 / 4);
        read_back(buf_slice(&out), MANY, &seen);
        CHECK_INT(seen.sum.cpu_ns, MANY_NS);
        CHECK_INT(seen.sum.count, 1999 * 1000 + 2000);
        CHECK(seen.has_dropped && seen.has_heaviest && !seen.has_lightest);
        before = out.len;
        buf_release(&file);
        file = out;
        delivery.profile = buf_slice(&file);
    }
    buf_release(&file);
}

static void rules_are_kept(const struct pprof_cut_rules *rules, struct pprof_cut_result *result)
{
    struct buf file, out, plain;
    struct err err = {0};
    struct read_back seen;
    make_many(&file);
    buf_init(&out, ROOM);
    buf_init(&plain, ROOM);
    CHECK(pprof_cut(buf_slice(&file), rules, &out, result, &err));
    read_back(buf_slice(&out), MANY, &seen);
    CHECK_INT(seen.sum.cpu_ns, MANY_NS);
    CHECK_INT(seen.has_dropped, result->dropped > 0);
    CHECK(gzip_inflate(out.ptr, out.len, &plain, &err));
    CHECK_INT(plain.len, result->plain_bytes);
    buf_release(&file);
    buf_release(&out);
    buf_release(&plain);
}

static void samples_and_bytes_are_bounded(void)
{
    struct pprof_cut_result result;
    rules_are_kept(&(struct pprof_cut_rules){.most_samples = 0}, &result);
    CHECK_INT(result.samples, 4000);
    CHECK_INT(result.dropped, 0);
    rules_are_kept(&(struct pprof_cut_rules){.most_samples = 100}, &result);
    CHECK_INT(result.samples, 99); /* and one for the others */
    CHECK_INT(result.dropped, 3901);
    rules_are_kept(&(struct pprof_cut_rules){.most_bytes = 30000}, &result);
    CHECK(result.plain_bytes <= 30000 && result.plain_bytes > 25000 && result.samples > 100);
}

static void without_labels_stacks_of_several_threads_are_one(void)
{
    static const char *const labels[] = {"thread id", "thread name", NULL};
    struct pprof_cut_result result;
    rules_are_kept(&(struct pprof_cut_rules){.drop_labels = labels}, &result);
    CHECK_INT(result.samples, 2000);
    CHECK_INT(result.merged, 2000);
}

static bool holds(struct str file, const char *text)
{
    struct buf plain;
    struct err err;
    buf_init(&plain, ROOM);
    CHECK(gzip_inflate(file.ptr, file.len, &plain, &err));
    bool found = memmem(plain.ptr, plain.len, text, strlen(text)) != NULL;
    buf_release(&plain);
    return found;
}

static void names_of_types_are_made_plain(void)
{
    struct profile p;
    struct buf file, out;
    struct err err = {0};
    struct pprof_cut_result result;
    CHECK(profile_init(&p, ROOM, NULL));
    fill_sample(&p);
    uint32_t event = profile_event_type(&p, "page-faults", "count");
    profile_add_event(&p, event, 1, 1, 5);
    write_pprof(&p, &file);
    buf_init(&out, ROOM);
    CHECK(holds(buf_slice(&file), "page-faults"));
    CHECK(pprof_cut(buf_slice(&file), &(struct pprof_cut_rules){.plain_types = true}, &out, &result, &err));
    CHECK(holds(buf_slice(&out), "page_faults") && !holds(buf_slice(&out), "page-faults"));
    buf_clear(&out);
    CHECK(pprof_cut(buf_slice(&file), &(struct pprof_cut_rules){.most_samples = 2}, &out, &result, &err));
    struct profile back;
    CHECK(profile_init(&back, ROOM, NULL));
    CHECK(pprof_read_type(&back, buf_slice(&out), STR("page-faults"), &err));
    CHECK_INT(profile_sum(&back).cpu_ns, 5); /* every column keeps its sum */
    profile_release(&back);
    profile_release(&p);
    buf_release(&file);
    buf_release(&out);
}

static void cut_fails(struct str file, const struct pprof_cut_rules *rules, enum err_kind kind)
{
    struct buf out;
    struct err err = {0};
    struct pprof_cut_result result;
    buf_init(&out, ROOM);
    CHECK(!pprof_cut(file, rules, &out, &result, &err));
    CHECK_INT(err.kind, kind);
    buf_release(&out);
}

static void what_is_no_pprof_is_refused(void)
{
    static const struct pprof_cut_rules any;
    cut_fails(STR(""), &any, ERR_MALFORMED);
    cut_fails(STR("hello, world"), &any, ERR_MALFORMED);
    cut_fails(STR("\x32\x00"), &any, ERR_UNSUPPORTED);     /* a text, no type */
    cut_fails((struct str){"\x0a\x00\x12\x02\x08\x01\x32\x00", 8}, &any, ERR_MALFORMED); /* no value */
    /* a sample of location 9, which is not there */
    cut_fails((struct str){"\x0a\x00\x12\x04\x08\x09\x10\x01\x32\x00", 10}, &any, ERR_MALFORMED);
    struct buf file;
    make_many(&file);
    cut_fails(str_sub(buf_slice(&file), 0, file.len / 2), &any, ERR_MALFORMED);
    cut_fails(buf_slice(&file), &(struct pprof_cut_rules){.most_bytes = 10}, ERR_LIMIT);
    buf_release(&file);
}

/* ---- both, before a request is sent ---- */

static void a_request_fits_what_the_service_takes(void)
{
    struct origin origin = origin_of_test();
    struct backend_context context = {.origin = &origin, .token = STR("t")};
    struct buf col, kept, text;
    struct err err = {0};
    struct http_request request;
    buf_init(&col, 64 << 20);
    buf_init(&kept, 64 << 20);
    buf_init(&text, 16 << 20);
    buf_text(&col, "# {\"containers\": [], \"application_metadata_enabled\": true}");
    uint64_t state = 1;
    for (unsigned i = 0; i < 60000; i++) {
        state = hash_u64(state + i); /* names that hardly compress */
        buf_printf(&col, "\n0;;sh;f%016llx;g%016llx;h%08x %u", (unsigned long long)state,
                   (unsigned long long)hash_u64(state), i, 1 + i % 7);
    }
    struct delivery delivery = delivery_of("col", buf_slice(&col));
    CHECK(shrink_request(backends[0], &context, &delivery, &kept, &request, &text, &err));
    CHECK(request.body.len <= 1048576 && request.body.len > 700000);
    CHECK(delivery.profile.ptr == kept.ptr && kept.len < col.len);
    CHECK_INT(sum_of(delivery.profile), sum_of(buf_slice(&col)));
    buf_clear(&text);
    CHECK(shrink_request(backends[0], &context, &delivery, &kept, &request, &text, &err));
    buf_release(&col);
    buf_release(&kept);
    buf_release(&text);
}

TESTS({"the lightest lines go, and their process keeps its sum",
       the_lightest_lines_go_and_their_process_keeps_its_sum},
      {"what went before goes again: a process has one such line", what_went_before_goes_again},
      {"an application stays with its process", an_application_stays_with_its_process},
      {"a file without a header has one field for the process",
       a_file_without_a_header_has_one_field_for_the_process},
      {"where even processes are too many there is one line",
       where_even_processes_are_too_many_there_is_one_line},
      {"what cannot be made smaller is told", what_cannot_be_smaller_is_told},
      {"a pprof keeps its sums and its heaviest stacks, however often it is made smaller",
       a_pprof_keeps_its_sums_and_its_heaviest_stacks},
      {"samples and bytes are bounded", samples_and_bytes_are_bounded},
      {"without labels, stacks of several threads are one", without_labels_stacks_of_several_threads_are_one},
      {"names of sample types are made plain, and every column keeps its sum", names_of_types_are_made_plain},
      {"what is no pprof is refused", what_is_no_pprof_is_refused},
      {"a request fits what the service takes", a_request_fits_what_the_service_takes})

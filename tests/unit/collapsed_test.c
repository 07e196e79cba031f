/* src/encode/collapsed*.c: the .col format, written and read. */
#include "encode/collapsed.h"
#include "encode/collapsed_read.h"
#include "encode/importer.h"
#include "base/json.h"
#include "inlined_frame.h"
#include "sample_profile.h"
#include "test.h"

/* One profile with one buffer to write it to; freed together. */
struct bench {
    struct profile p;
    struct buf text;
    struct collapsed_damage damage;
    struct encode_rules rules;
    struct err err;
};

static struct bench *set_up(void)
{
    struct bench *b = calloc(1, sizeof *b);
    CHECK(profile_init(&b->p, SAMPLE_MAX_BYTES, NULL));
    buf_init(&b->text, SAMPLE_MAX_BYTES);
    return b;
}

static void tear_down(struct bench *b)
{
    profile_release(&b->p);
    buf_release(&b->text);
    free(b);
}

static const char *write_col(struct bench *b)
{
    struct sink sink = sink_of_buf(&b->text);
    buf_clear(&b->text);
    CHECK(collapsed_write(&b->p, &b->rules, &sink, &b->err));
    return buf_cstr(&b->text);
}

/* The stacks without the header; "" without stacks. */
static const char *write_lines(struct bench *b)
{
    const char *lines = strchr(write_col(b), '\n');
    return lines == NULL ? "" : lines + 1;
}

static bool read_col(struct bench *b, const char *text)
{
    return collapsed_read(&b->p, str_of(text), STR(""), &b->damage, &b->err);
}

/* --- writing --- */

static void inlined_functions_are_frames(void)
{
    struct bench *b = set_up();
    uint32_t t = add_thread(&b->p, add_process(&b->p, 1, "app", ""), 1, "app");
    uint32_t leaf = inlined_frame(&b->p, 0, 0x20, "leaf", 2, "middle", 3, "real", 4, NULL);
    uint32_t node = profile_child(&b->p, add_name(&b->p, 0, "main", FRAME_NATIVE), leaf);
    profile_add(&b->p, t, add_name(&b->p, node, "below", FRAME_KERNEL), SAMPLE_PERIOD_NS, 1);
    profile_add(&b->p, t, node, 2 * SAMPLE_PERIOD_NS, 2);
    b->p.meta.period_ns = SAMPLE_PERIOD_NS;
    CHECK_TEXT(write_lines(b), "1;;app;main;real;middle;leaf 2\n"
                               "1;;app;main;real;middle;leaf;below_[k] 1");
    tear_down(b);
}

static void lines_are_as_gprofiler_writes_them(void)
{
    struct bench *b = set_up();
    fill_sample(&b->p);
    CHECK_TEXT(write_lines(b), "1;shop;web;main;memcpy 15\n"
                               "1;shop;worker;main;handle (shop/app.py:12)_[p] 16\n"
                               "2;;db;[lost] 3\n"
                               "2;;db;query;do_syscall_[k] 15");
    tear_down(b);
}

static uint32_t add_line(struct profile *p, uint32_t parent, const char *name, uint32_t line, enum frame_kind kind)
{
    struct frame frame = {.name = profile_cstring(p, name), .line = line, .kind = (uint8_t)kind};
    return profile_child(p, parent, profile_frame(p, &frame));
}

static void lines_being_executed_are_written_when_asked_for_and_come_back(void)
{
    struct bench *b = set_up(), *again = set_up();
    uint32_t t = add_thread(&b->p, add_process(&b->p, 1, "py", ""), 1, "py");
    uint32_t main15 = add_line(&b->p, 0, "main (a.py:12)", 15, FRAME_PYTHON);
    profile_add(&b->p, t, add_line(&b->p, main15, "c (a.c)", 7, FRAME_NATIVE), SAMPLE_PERIOD_NS, 1);
    profile_add(&b->p, t, add_line(&b->p, 0, "main (a.py:12)", 16, FRAME_PYTHON), 2 * SAMPLE_PERIOD_NS, 2);
    profile_add(&b->p, t, add_line(&b->p, 0, "main (a.py:12)", 0, FRAME_PYTHON), 4 * SAMPLE_PERIOD_NS, 4);
    profile_add(&b->p, t, add_line(&b->p, 0, "[code is gone]", 3, FRAME_PYTHON), 8 * SAMPLE_PERIOD_NS, 8);
    b->p.meta.period_ns = SAMPLE_PERIOD_NS;
    CHECK_TEXT(write_lines(b), "1;;py;[code is gone]_[p] 8\n1;;py;main (a.py:12)_[p] 6\n"
                               "1;;py;main (a.py:12)_[p];c (a.c) 1");
    static const char with[] = "1;;py;[code is gone]_[p] 8\n1;;py;main (a.py:12):15_[p];c (a.c) 1\n"
                               "1;;py;main (a.py:12):16_[p] 2\n1;;py;main (a.py:12)_[p] 4";
    b->rules.lines = again->rules.lines = true;
    CHECK_TEXT(write_lines(b), with);
    CHECK(read_col(again, write_col(b)));
    CHECK_INT(again->p.frames.at[2].line, 15);
    CHECK_STR(profile_text(&again->p, again->p.frames.at[2].name), "main (a.py:12)");
    CHECK_TEXT(write_lines(again), with);
    tear_down(again);
    tear_down(b);
}

static void the_header_says_what_the_file_is(void)
{
    struct bench *b = set_up();
    fill_sample(&b->p);
    b->p.meta.own_cpu_ns = 90000000;
    b->p.meta.own_rss_peak_bytes = 9000000;
    b->p.meta.mean_hz = 24.25;
    const char *text = write_col(b);
    struct str header = {text + 2, strcspn(text, "\n") - 2};
    CHECK(str_starts(str_of(text), STR("# {")) && json_valid(header));
    CHECK_STR(json_member(header, "containers"), "[\"shop\"]");
    CHECK_STR(json_member(header, "container_names_enabled"), "true");
    CHECK_STR(json_member(header, "application_metadata_enabled"), "true");
    CHECK_STR(json_member(header, "profiling_mode"), "\"cpu\"");
    CHECK_STR(json_member(header, "sampling_frequency"), "100");
    CHECK_STR(json_member(header, "start_time"), "\"2026-11-20T10:11:04\"");
    CHECK_STR(json_member(header, "end_time"), "\"2026-11-20T10:12:04\"");
    CHECK_STR(json_member(header, "htmlblob"), "null");
    CHECK_STR(json_member(header, "flamegraph_html"), "null");
    struct str metadata = json_member(header, "metadata");
    CHECK_STR(json_member(metadata, "hostname"), "\"box-1\"");
    CHECK_STR(json_member(metadata, "continuous"), "false");
    struct str arguments = json_member(metadata, "run_arguments");
    CHECK_STR(json_member(arguments, "service_name"), "\"shop-web\"");
    CHECK_STR(json_member(arguments, "profile_api_version"), "null");
    CHECK_STR(json_member(arguments, "duration"), "60");
    struct str own = json_member(header, "pillion"), entry;
    CHECK_STR(json_member(own, "cpu_ns"), "485000000");
    CHECK_STR(json_member(own, "period_ns"), "10000000");
    CHECK_STR(json_member(json_member(own, "not_seen"), "[lost]"), "25000000");
    CHECK_STR(json_member(json_member(own, "own"), "cpu_ns"), "90000000");
    CHECK_STR(json_member(json_member(own, "own"), "rss_peak_bytes"), "9000000");
    CHECK_STR(json_member(json_member(own, "own"), "frequency"), "24.250");
    CHECK_STR(json_member(json_member(own, "own"), "budget"), "null");
    CHECK_STR(json_member(json_member(own, "leaf_ns"), "python"), "160000000");
    struct str processes = json_member(header, "application_metadata");
    CHECK(json_next(&processes, NULL, &entry));
    CHECK_STR(entry, "null");
    CHECK(json_next(&processes, NULL, &entry));
    CHECK_STR(json_member(entry, "pid"), "12");
    CHECK_STR(json_member(entry, "runtime"), "\"CPython 3.11.9\"");
    tear_down(b);
}

/* By the studio's names; what is not known is left to who sends it. */
static void the_header_tells_of_the_machine_as_far_as_it_is_known(void)
{
    static const struct profile_machine machine = {
        .private_ip = {"10.1.2.3", 8}, .os_name = {"A \"B\"", 5}, .processors = 4, .pid = 42,
        .memory_bytes = UINT64_C(3) << 20, .boot_ns = UINT64_C(5000000000),
        .spawn_wall_ns = UINT64_C(1763634664) * 1000000000, /* 2025-11-20T10:31:04 */
    };
    struct bench *b = set_up();
    fill_sample(&b->p);
    b->p.meta.machine = &machine;
    const char *text = write_col(b);
    struct str header = {text + 2, strcspn(text, "\n") - 2};
    CHECK(json_valid(header));
    struct str metadata = json_member(header, "metadata");
    CHECK_STR(json_member(metadata, "pid"), "42");
    CHECK_STR(json_member(metadata, "private_ip"), "\"10.1.2.3\"");
    CHECK_STR(json_member(metadata, "os_name"), "\"A \\\"B\\\"\"");
    CHECK_STR(json_member(metadata, "processors"), "4");
    CHECK_STR(json_member(metadata, "memory_capacity_mb"), "3");
    CHECK_STR(json_member(metadata, "spawn_uptime_ms"), "5000");
    CHECK_STR(json_member(metadata, "spawn_time"), "\"2025-11-20T10:31:04\"");
    CHECK_STR(json_member(metadata, "agent_version"), "\"1.2.3\"");
    CHECK(json_member(metadata, "mac_address").ptr == NULL);
    CHECK(json_member(metadata, "libc_type").ptr == NULL);
    tear_down(b);
}

static void an_empty_profile_is_a_header(void)
{
    struct bench *b = set_up();
    const char *text = write_col(b);
    CHECK(strchr(text, '\n') == NULL);
    struct str header = str_of(text + 2);
    CHECK(json_valid(header));
    CHECK_STR(json_member(header, "start_time"), "null");
    CHECK_STR(json_member(header, "containers"), "[]");
    CHECK_STR(json_member(header, "application_metadata"), "[null]");
    tear_down(b);
}

static void field_is(const char *bytes, size_t len, const char *expected)
{
    struct buf b;
    buf_init(&b, 1000);
    collapsed_field(&b, (struct str){bytes, len});
    CHECK_TEXT(buf_cstr(&b), expected);
    buf_release(&b);
}

static void fields_never_break_a_line(void)
{
    field_is("plain name", 10, "plain name");
    field_is("a;b", 3, "a:b");
    field_is("a\r\nb\0c", 6, "a  b c");
    field_is(" \t a \n", 6, "a");
    field_is("", 0, "[unknown]");
    field_is("\n \0", 3, "[unknown]");
    field_is(";", 1, ":");
    field_is("\xff" "f", 2, "\xef\xbf\xbd" "f");
    field_is("a\xe2\x80\xa8" "b\xc2\x85" "c", 8, "a b c"); /* U+2028, U+0085 end lines too */
    field_is("caf\xc3\xa9", 5, "caf\xc3\xa9");
}

static void frame_is(const char *name, enum frame_kind kind, const char *written,
                     const char *read_name, enum frame_kind read_kind)
{
    struct buf b;
    buf_init(&b, 1000);
    collapsed_frame(&b, str_of(name), kind);
    CHECK_TEXT(buf_cstr(&b), written);
    struct str frame = buf_slice(&b);
    CHECK_INT(collapsed_kind(&frame), read_kind);
    CHECK_STR(frame, read_name);
    buf_release(&b);
}

static void kinds_are_suffixes_and_come_back(void)
{
    for (unsigned k = 0; k < FRAME_KIND_COUNT; k++) {
        char written[64];
        const char *suffix = languages[k].suffix;
        snprintf(written, sizeof written, "f%s", suffix);
        frame_is("f", (enum frame_kind)k, written, "f",
                 suffix[0] ? (enum frame_kind)k : FRAME_NATIVE);
    }
    frame_is("f_[k]", FRAME_KERNEL, "f_[k]_[k]", "f_[k]", FRAME_KERNEL);
    frame_is("f_[i]", FRAME_JVM, "f_[i]", "f_[i]", FRAME_JVM);
    frame_is("LazyCompile:*f a.js:1", FRAME_JS, "LazyCompile:*f a.js:1", "LazyCompile:*f a.js:1",
             FRAME_JS);
}

static void names_that_look_like_a_suffix_are_disarmed(void)
{
    frame_is("f_[k]", FRAME_NATIVE, "f_(k)", "f_(k)", FRAME_NATIVE);
    frame_is("f_[php]", FRAME_GO, "f_(php)", "f_(php)", FRAME_NATIVE);
    frame_is("f_[i]", FRAME_NATIVE, "f_(i)", "f_(i)", FRAME_NATIVE);
    frame_is("f_[net]", FRAME_NATIVE, "f_[net]", "f_[net]", FRAME_NATIVE);
    frame_is("_[k]", FRAME_NATIVE, "_[k]", "_[k]", FRAME_NATIVE); /* a name, no suffix of nothing */
    frame_is("f[k]", FRAME_NATIVE, "f[k]", "f[k]", FRAME_NATIVE);
}

static uint32_t one_thread(struct profile *p)
{
    return add_thread(p, add_process(p, 0, "x", ""), 0, "x");
}

static void counts_sum_up_to_the_rounded_total(void)
{
    struct bench *b = set_up();
    uint32_t thread = one_thread(&b->p);
    b->p.meta.period_ns = 10;
    for (unsigned i = 0; i < 1000; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%03u", i);
        profile_add(&b->p, thread, add_name(&b->p, 0, name, FRAME_NATIVE), 1 + i % 7, 1);
    }
    uint64_t sum = 0, total = profile_sum(&b->p).cpu_ns;
    struct str rest = str_of(write_lines(b));
    while (rest.len > 0) {
        uint64_t count;
        struct str line = str_cut(&rest, '\n');
        CHECK(str_u64(str_sub(line, str_find_last(line, ' ') + 1, 20), &count) && count > 0);
        sum += count;
    }
    CHECK_INT(sum, (total + 5) / 10);
    tear_down(b);
}

static void whole_samples_have_their_own_count(void)
{
    struct bench *b = set_up();
    uint32_t thread = one_thread(&b->p);
    b->p.meta.period_ns = 10101010;
    profile_add(&b->p, thread, add_name(&b->p, 0, "a", FRAME_NATIVE), 3 * 10101010, 3);
    profile_add(&b->p, thread, add_name(&b->p, 0, "b", FRAME_NATIVE), 10101010, 1);
    profile_add(&b->p, thread, add_name(&b->p, 0, "c", FRAME_NATIVE), 5050504, 1);
    profile_add(&b->p, thread, add_name(&b->p, 0, "d", FRAME_NATIVE), 1, 1);
    CHECK_TEXT(write_lines(b), "0;;x;a 3\n0;;x;b 1\n0;;x;d 1"); /* half a sample falls due at d */
    tear_down(b);
}

static void lines_that_are_written_alike_are_one(void)
{
    struct bench *b = set_up();
    uint32_t process = add_process(&b->p, 0, "x", ""), other = add_process(&b->p, 0, "x", "");
    CHECK_INT(process, other);
    uint32_t one = add_thread(&b->p, process, 1, "w;1"), two = add_thread(&b->p, process, 2, "w:1");
    b->p.meta.period_ns = 1;
    profile_add(&b->p, one, add_name(&b->p, 0, "a;b", FRAME_NATIVE), 1, 1);
    profile_add(&b->p, one, add_name(&b->p, 0, "a:b", FRAME_NATIVE), 2, 1);
    profile_add(&b->p, two, add_name(&b->p, 0, "a:b", FRAME_GO), 4, 1);
    CHECK_TEXT(write_lines(b), "0;;w:1;a:b 7");
    tear_down(b);
}

static void an_application_id_stands_behind_the_name(void)
{
    struct bench *b = set_up();
    uint32_t process = add_process(&b->p, 0, "java", "");
    b->p.processes.at[process].appid = profile_cstring(&b->p, "appid: java: a;b");
    uint32_t thread = add_thread(&b->p, process, 0, "java");
    b->p.meta.period_ns = 1;
    profile_add(&b->p, thread, add_name(&b->p, 0, "f", FRAME_JVM), 1, 1);
    const char *expected = "0;;java;appid: java: a:b;f_[j] 1";
    CHECK_TEXT(write_lines(b), expected);
    struct bench *again = set_up();
    CHECK(read_col(again, write_col(b)));
    CHECK_TEXT(write_lines(again), expected);
    tear_down(again);
    tear_down(b);
}

/* What another program told stands beside what is told here, and in the place of nothing. */
static void facts_of_others_stand_in_the_header(void)
{
    struct bench *b = set_up();
    const struct profile_external external = {STR("{\"team\": \"a\"}"),
                                              STR("{\"12\": {\"job\": 7, \"pid\": 1, \"x\": {}}, \"13\": [1]}")};
    fill_sample(&b->p);
    b->p.meta.external = &external;
    const char *text = write_col(b);
    struct str header = {text + 2, strcspn(text, "\n") - 2}, entry;
    CHECK(json_valid(header));
    CHECK_STR(json_member(json_member(header, "metadata"), "external_metadata"), "{\"team\": \"a\"}");
    struct str processes = json_member(header, "application_metadata");
    CHECK(json_next(&processes, NULL, &entry) && json_next(&processes, NULL, &entry));
    CHECK_STR(json_member(entry, "pid"), "12");
    CHECK_STR(json_member(entry, "job"), "7");
    CHECK_STR(json_member(entry, "x"), "{}");
    CHECK(json_next(&processes, NULL, &entry));
    CHECK_INT(json_member(entry, "job").len, 0);
    struct bench *again = set_up();
    CHECK(read_col(again, text));
    tear_down(again);
    tear_down(b);
}

static void an_endless_line_is_truncated(void)
{
    enum { FRAMES = 30, NAME = 1000 * 1000 };
    struct bench *b = calloc(1, sizeof *b);
    CHECK(profile_init(&b->p, 4 * SAMPLE_MAX_BYTES, NULL));
    buf_init(&b->text, 4 * SAMPLE_MAX_BYTES);
    char *name = malloc(NAME + 1);
    uint32_t node = 0, thread = one_thread(&b->p);
    for (int i = 0; i < FRAMES; i++) {
        memset(name, 'a' + i, NAME);
        name[NAME] = '\0';
        node = add_name(&b->p, node, name, FRAME_NATIVE);
    }
    b->p.meta.period_ns = 1;
    profile_add(&b->p, thread, node, 5, 1);
    struct str line = str_of(write_lines(b));
    CHECK(line.len < COLLAPSED_LINE_MAX && line.len > COLLAPSED_LINE_MAX / 2);
    CHECK(str_ends(line, STR(";[truncated] 5")));
    free(name);
    tear_down(b);
}

static void a_full_sink_is_an_error(void)
{
    struct bench *b = set_up();
    fill_sample(&b->p);
    size_t whole = strlen(write_col(b));
    for (size_t max = 1; max < whole; max += 97) {
        struct buf small;
        buf_init(&small, max);
        struct sink sink = sink_of_buf(&small);
        CHECK(!collapsed_write(&b->p, NULL, &sink, &b->err));
        CHECK_INT(b->err.kind, ERR_LIMIT);
        buf_release(&small);
    }
    tear_down(b);
}

/* --- reading --- */

static void our_own_file_comes_back_byte_for_byte(void)
{
    struct bench *b = set_up(), *again = set_up();
    fill_sample(&b->p);
    CHECK(read_col(again, write_col(b)));
    CHECK_INT(again->damage.lines, 0);
    char *lines = strdup(write_lines(b));
    CHECK_TEXT(write_lines(again), lines);
    free(lines);
    struct profile *p = &again->p;
    CHECK_INT(p->meta.start_wall_ns, b->p.meta.start_wall_ns);
    CHECK_INT(p->meta.end_wall_ns, b->p.meta.end_wall_ns);
    CHECK_INT(p->meta.period_ns, SAMPLE_PERIOD_NS);
    CHECK_INT(p->meta.frequency_hz, 100);
    CHECK_STR(profile_text(p, p->meta.service), "shop-web");
    CHECK_STR(profile_text(p, p->meta.host), "box-1");
    CHECK_STR(profile_text(p, p->meta.mode), "perf, user and kernel");
    CHECK_INT(profile_sum(p).process_cpu_ns, 490000000);
    CHECK_INT(profile_sum(p).account_ns[ACCOUNT_LOST], 3 * SAMPLE_PERIOD_NS);
    CHECK_INT(p->processes.at[1].pid, 12);
    CHECK_INT(p->processes.at[1].start_ticks, 120);
    CHECK_STR(profile_text(p, p->processes.at[1].name), "web");
    CHECK_STR(profile_text(p, p->processes.at[1].runtime), "CPython 3.11.9");
    CHECK_STR(profile_text(p, p->threads.at[2].name), "worker");
    tear_down(again);
    tear_down(b);
}

#define GPROFILER_HEADER                                                                           \
    "# {\"containers\": [\"c1\"], \"container_names_enabled\": true, \"metadata\": "               \
    "{\"hostname\": \"ip-10-0-0-1\", \"run_arguments\": {\"service_name\": \"svc\", "              \
    "\"frequency\": 11, \"profile_api_version\": %s}}, \"metrics\": {\"cpu_avg\": 1.5, "           \
    "\"mem_avg\": null}, \"application_metadata\": [null, {\"exe\": \"/usr/bin/python3\"}], "      \
    "\"application_metadata_enabled\": %s}\n"

static void gprofiler_files_are_read(void)
{
    struct bench *b = set_up();
    char text[2000];
    snprintf(text, sizeof text,
             GPROFILER_HEADER "0;;swapper;do_idle_[k] 10\n"
                              "1;c1;python3;main (app.py:3)_[p];read_[k] 5\n"
                              "0;;java;a/B.c(I)V_[j];d_[i];e_[1] 2\n"
                              "0;;node;LazyCompile:*f /a.js:1 3\n"
                              "0;;php;appid: php: x;f_[php] 1\n"
                              "0;;app;[Profiling error: exception X] 1\n"
                              "0;;go;main.main;foo 12 4",
             "null", "true");
    CHECK(read_col(b, text));
    struct profile_totals sum = profile_sum(&b->p);
    uint64_t period = 1000000000 / 11;
    CHECK_INT(b->damage.lines, 0);
    CHECK_INT(sum.cpu_ns, 26 * period);
    CHECK_INT(sum.count, 26);
    CHECK_INT(sum.leaf_ns[FRAME_KERNEL], 15 * period);
    CHECK_INT(sum.leaf_ns[FRAME_JVM], 2 * period);
    CHECK_INT(sum.leaf_ns[FRAME_JS], 3 * period);
    CHECK_INT(sum.leaf_ns[FRAME_PHP], 1 * period);
    CHECK_INT(sum.leaf_ns[FRAME_NATIVE], 5 * period);
    CHECK_INT(sum.process_cpu_ns, 26 * period);
    CHECK_INT(b->p.meta.frequency_hz, 11);
    CHECK_STR(profile_text(&b->p, b->p.meta.service), "svc");
    CHECK_TEXT(write_lines(b), "0;;app;[Profiling error: exception X] 1\n"
                               "0;;go;main.main;foo 12 4\n"
                               "0;;java;a/B.c(I)V_[j];d_[i];e_[1] 2\n"
                               "0;;node;LazyCompile:*f /a.js:1 3\n"
                               "0;;php;appid: php: x;f_[php] 1\n"
                               "0;;swapper;do_idle_[k] 10\n"
                               "0;c1;python3;main (app.py:3)_[p];read_[k] 5");
    tear_down(b);
}

static void the_header_says_which_fields_there_are(void)
{
    char text[2000];
    struct bench *b = set_up();
    snprintf(text, sizeof text, GPROFILER_HEADER "c1;python3;f 5", "null", "false");
    CHECK(read_col(b, text));
    snprintf(text, sizeof text, GPROFILER_HEADER "python3;f 5", "\"v1\"", "false");
    CHECK(read_col(b, text));
    CHECK_TEXT(write_lines(b), "0;;python3;f 5\n0;c1;python3;f 5");
    tear_down(b);
}

static void plain_stacks_are_read(void)
{
    struct bench *b = set_up();
    CHECK(read_col(b, "bash;main;run it 3\nbash;main 1\r\n\nsh;f\t2\n"));
    CHECK_INT(b->damage.lines, 0);
    CHECK_TEXT(write_lines(b), "0;;bash;main 1\n0;;bash;main;run it 3\n0;;sh;f 2");
    CHECK_INT(profile_sum(&b->p).cpu_ns, 6 * COLLAPSED_PERIOD_NS);
    CHECK_INT(b->p.processes.len, 3); /* by name: the file knows no ids */
    CHECK_STR(profile_text(&b->p, b->p.processes.at[2].name), "sh");
    CHECK_INT(b->p.processes.at[1].cpu_ns, 4 * COLLAPSED_PERIOD_NS);
    tear_down(b);
}

static void plain_stacks_without_names_are_read(void)
{
    struct bench *b = set_up();
    CHECK(read_col(b, "main;run 3\nmain 1\n"));
    CHECK_TEXT(write_lines(b), "0;;all;main 1\n0;;all;main;run 3");
    tear_down(b);
}

static void a_lost_header_is_noticed(void)
{
    struct bench *b = set_up();
    CHECK(read_col(b, "0;;bash;main;run 3\n12;c1;sh;f 1"));
    CHECK_TEXT(write_lines(b), "0;;bash;main;run 3\n0;c1;sh;f 1");
    tear_down(b);
}

static void damaged_lines_are_counted(void)
{
    struct bench *b = set_up();
    CHECK(read_col(b, "a;b 1\nno count\na;c 0\na;c -5\na;c 1x\n 7\n"
                      "a;d 18446744073709551616\na;e 2"));
    CHECK_INT(b->damage.lines, 6);
    CHECK_INT(b->damage.first_line, 2);
    CHECK_TEXT(write_lines(b), "0;;a;b 1\n0;;a;e 2");
    tear_down(b);
}

static void refused(const char *text, enum err_kind kind, const char *sentence)
{
    struct bench *b = set_up();
    CHECK(!read_col(b, text));
    CHECK_INT(b->err.kind, kind);
    CHECK_TEXT(b->err.text, sentence);
    tear_down(b);
}

static void files_that_are_something_else_are_refused(void)
{
    refused("hello\nworld\n", ERR_MALFORMED,
            "line 1: no collapsed stack, which is frames joined by ';', a blank and a count");
    refused("# {\"a\": 1\n0;;a;b 1", ERR_MALFORMED,
            "line 1: the header behind \"# \" is not valid JSON");
    refused("# {}\n\nhello", ERR_MALFORMED,
            "line 3: no collapsed stack, which is frames joined by ';', a blank and a count");
    refused("a;b 1\na;b 9223372036854775807", ERR_LIMIT,
            "line 2: the weights add up to more than 146 years of CPU time");
}

static void a_header_alone_is_an_empty_profile(void)
{
    struct bench *b = set_up();
    CHECK(read_col(b, "# {}"));
    CHECK(read_col(b, "# {}\n"));
    CHECK_INT(profile_sum(&b->p).cpu_ns, 0);
    tear_down(b);
}

static void several_files_are_summed(void)
{
    struct bench *b = set_up();
    CHECK(read_col(b, "# {\"sampling_frequency\": 100, \"start_time\": \"2026-11-20T10:11:04\"}\n"
                      ";a;f 3"));
    CHECK(read_col(b, "# {\"sampling_frequency\": 50, \"start_time\": \"2026-11-20T09:00:00\"}\n"
                      ";a;f 1\n;b;g 1"));
    CHECK_TEXT(write_lines(b), "0;;a;f 5\n0;;b;g 2");
    CHECK_INT(b->p.meta.start_wall_ns, UINT64_C(1795165200) * 1000000000);
    tear_down(b);
}

static void empty_fields_are_dropped(void)
{
    struct bench *b = set_up();
    CHECK(read_col(b, "a;;  ;b; c ; 1\nd;; 2\n;e 3"));
    CHECK_TEXT(write_lines(b), "0;;a;b;c 1\n0;;d;[unknown] 2");
    CHECK_INT(b->damage.lines, 1); /* a stack of nobody */
    tear_down(b);
}

static void deep_stacks_keep_their_leaf(void)
{
    enum { DEPTH = IMPORTER_DEPTH_MAX + 10 };
    struct bench *b = set_up();
    struct buf text;
    buf_init(&text, SAMPLE_MAX_BYTES);
    buf_text(&text, "a;first");
    for (int i = 0; i < DEPTH; i++) {
        buf_text(&text, ";f");
    }
    buf_text(&text, ";last 1");
    CHECK(read_col(b, buf_cstr(&text)));
    struct str line = str_of(write_lines(b));
    CHECK(str_starts(line, STR("0;;a;[truncated];f;f")) && str_ends(line, STR(";f;last 1")));
    CHECK_INT(b->p.nodes.len, 1 + 1 + IMPORTER_DEPTH_MAX);
    buf_release(&text);
    tear_down(b);
}

static void a_small_budget_loses_nothing_but_names(void)
{
    struct bench *b = calloc(1, sizeof *b);
    CHECK(profile_init(&b->p, 3000, NULL));
    buf_init(&b->text, SAMPLE_MAX_BYTES);
    struct buf text;
    buf_init(&text, SAMPLE_MAX_BYTES);
    for (int i = 0; i < 1000; i++) {
        buf_printf(&text, "p%d;f%d;g%d 2\n", i % 5, i, i * i);
    }
    CHECK(read_col(b, buf_cstr(&text)));
    struct profile_totals sum = profile_sum(&b->p);
    CHECK_INT(sum.cpu_ns, 2000 * COLLAPSED_PERIOD_NS);
    CHECK(sum.account_ns[ACCOUNT_LOST] > 0 && b->p.dropped > 0);
    buf_release(&text);
    tear_down(b);
}

TESTS({"inlined functions are frames, outermost first", inlined_functions_are_frames},
      {"lines being executed are written when asked for, and come back",
       lines_being_executed_are_written_when_asked_for_and_come_back},
      {"lines are as gProfiler writes them", lines_are_as_gprofiler_writes_them},
      {"the header says what the file is", the_header_says_what_the_file_is},
      {"the header tells of the machine as far as it is known",
       the_header_tells_of_the_machine_as_far_as_it_is_known},
      {"an empty profile is a header", an_empty_profile_is_a_header},
      {"fields never break a line", fields_never_break_a_line},
      {"kinds are suffixes and come back", kinds_are_suffixes_and_come_back},
      {"names that look like a suffix are disarmed", names_that_look_like_a_suffix_are_disarmed},
      {"counts sum up to the rounded total, none is zero", counts_sum_up_to_the_rounded_total},
      {"whole samples have their own count", whole_samples_have_their_own_count},
      {"lines that are written alike are one", lines_that_are_written_alike_are_one},
      {"facts of others stand in the header", facts_of_others_stand_in_the_header},
      {"an application id stands behind the name and comes back",
       an_application_id_stands_behind_the_name},
      {"an endless line is truncated", an_endless_line_is_truncated},
      {"a full sink is an error", a_full_sink_is_an_error},
      {"our own file comes back byte for byte", our_own_file_comes_back_byte_for_byte},
      {"gProfiler's files are read", gprofiler_files_are_read},
      {"the header says which fields there are", the_header_says_which_fields_there_are},
      {"plain stacks are read", plain_stacks_are_read},
      {"plain stacks without names are read", plain_stacks_without_names_are_read},
      {"a lost header is noticed", a_lost_header_is_noticed},
      {"damaged lines are skipped and counted", damaged_lines_are_counted},
      {"files that are something else are refused", files_that_are_something_else_are_refused},
      {"a header alone is an empty profile", a_header_alone_is_an_empty_profile},
      {"several files are summed in one unit", several_files_are_summed},
      {"empty fields are dropped, as the studio does", empty_fields_are_dropped},
      {"deep stacks keep their leaf", deep_stacks_keep_their_leaf},
      {"a small budget keeps the total", a_small_budget_loses_nothing_but_names})

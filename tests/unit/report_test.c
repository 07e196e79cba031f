/* src/encode/report and report_text: the heaviest functions and paths, and how they are told. */
#include "encode/report_text.h"
#include "base/json.h"
#include "sample_profile.h"
#include "test.h"

enum { TEXT_MAX = 1 << 16 };

struct scene {
    struct profile profile;
    uint32_t thread;
    struct report report;
    struct buf out;
};

static void begin(struct scene *s)
{
    *s = (struct scene){0};
    CHECK(profile_init(&s->profile, SAMPLE_MAX_BYTES, NULL));
    s->thread = add_thread(&s->profile, add_process(&s->profile, 7, "app", ""), 7, "app");
    buf_init(&s->out, TEXT_MAX);
}

static void build(struct scene *s)
{
    report_release(&s->report);
    CHECK(report_build(&s->report, &s->profile, NULL));
}

static void end(struct scene *s)
{
    report_release(&s->report);
    profile_release(&s->profile);
    buf_release(&s->out);
}

/* Adds "a;b;c" with a weight in percent of all, if all are 100. */
static void stack(struct scene *s, const char *text, unsigned weight)
{
    uint32_t node = 0;
    for (struct str rest = str_of(text), name; rest.len > 0;) {
        name = str_cut(&rest, ';');
        struct frame frame = {.name = profile_string(&s->profile, name), .kind = FRAME_PYTHON};
        node = profile_child(&s->profile, node, profile_frame(&s->profile, &frame));
    }
    profile_add(&s->profile, s->thread, node, weight * UINT64_C(10000000), weight);
}

/* "own total name" per function, in percent. */
static const char *functions(struct scene *s)
{
    build(s);
    buf_clear(&s->out);
    vec_each(&s->report.functions, f)
    {
        struct str name = profile_text(&s->profile, f->name);
        buf_printf(&s->out, "%llu %llu %.*s\n", (unsigned long long)(f->own * 100 / s->report.all),
                   (unsigned long long)(f->total * 100 / s->report.all), (int)name.len, name.ptr);
    }
    return buf_cstr(&s->out);
}

/* "total path" per path. */
static const char *paths(struct scene *s, size_t columns)
{
    build(s);
    buf_clear(&s->out);
    vec_each(&s->report.paths, path)
    {
        buf_printf(&s->out, "%llu ", (unsigned long long)(path->total * 100 / s->report.all));
        report_path(&s->report, &s->profile, path->node, columns, &s->out);
        buf_byte(&s->out, '\n');
    }
    return buf_cstr(&s->out);
}

static void own_and_total(void)
{
    struct scene s;
    begin(&s);
    stack(&s, "main;parse", 50);
    stack(&s, "main;serve;parse", 20);
    stack(&s, "main", 5);
    stack(&s, "main;serve", 25);
    CHECK_TEXT(functions(&s), "70 70 parse\n25 45 serve\n5 100 main\n");
    end(&s);
}

static void recursion_counts_once(void)
{
    struct scene s;
    begin(&s);
    stack(&s, "f;g;f;g;f", 60);
    stack(&s, "f", 20);
    stack(&s, "g;f", 20);
    CHECK_TEXT(functions(&s), "100 100 f\n0 80 g\n");
    end(&s);
}

static void names_of_two_kinds(void)
{
    struct scene s;
    begin(&s);
    stack(&s, "run", 60);
    profile_add(&s.profile, s.thread, add_name(&s.profile, 0, "run", FRAME_NATIVE), 400000000, 40);
    CHECK_TEXT(functions(&s), "60 60 run\n40 40 run\n");
    CHECK_INT(s.report.functions.at[1].kind, FRAME_NATIVE);
    end(&s);
}

static void not_seen_is_no_function(void)
{
    struct scene s;
    begin(&s);
    stack(&s, "f", 25);
    profile_account(&s.profile, s.thread, ACCOUNT_LOST, 750000000);
    CHECK_TEXT(functions(&s), "25 25 f\n");
    CHECK_TEXT(paths(&s, REPORT_ANY), "25 f\n");
    end(&s);
}

static void threads_of_all_processes_are_together(void)
{
    struct scene s;
    begin(&s);
    stack(&s, "main;work", 50);
    s.thread = add_thread(&s.profile, add_process(&s.profile, 8, "app", ""), 8, "other");
    stack(&s, "main;work", 50);
    CHECK_TEXT(paths(&s, REPORT_ANY), "100 main > work\n");
    CHECK_INT(s.report.functions.len, 2);
    end(&s);
}

/* Down to where no callee has a twentieth, or the function itself has as much as the heaviest one. */
static void where_paths_end(void)
{
    struct scene s;
    begin(&s);
    stack(&s, "main;serve;handle;parse", 40);
    stack(&s, "main;serve;handle;parse;read", 30);
    stack(&s, "main;serve;render;a", 4);
    stack(&s, "main;serve;render;b", 4);
    stack(&s, "main;log", 5);
    stack(&s, "main;tiny", 4);
    stack(&s, "idle;poll", 13);
    CHECK_TEXT(paths(&s, REPORT_ANY),
               "70 main > serve > handle > parse\n13 idle > poll\n8 main > serve > render\n5 main > log\n");
    end(&s);
}

static void flat_profiles_have_a_path(void)
{
    struct scene s;
    char name[] = "f00";
    begin(&s);
    for (unsigned i = 0; i < 200; i++) {
        name[1] = (char)('a' + i / 20), name[2] = (char)('a' + i % 20);
        stack(&s, name, i == 7 ? 2 : 1);
    }
    CHECK_TEXT(paths(&s, REPORT_ANY), "0 fah\n");
    end(&s);
}

static void narrow_paths(void)
{
    struct scene s;
    begin(&s);
    stack(&s, "main (/srv/app/main.py:3);serve (/srv/app/web.py:14);handle (/srv/app/web.py:9)", 1);
    CHECK_TEXT(paths(&s, REPORT_ANY), "100 main (main.py) > serve (web.py) > handle (web.py)\n");
    CHECK_TEXT(paths(&s, 49), "100 main (main.py) > serve (web.py) > handle (web.py)\n");
    CHECK_TEXT(paths(&s, 48), "100 ... > serve (web.py) > handle (web.py)\n");
    CHECK_TEXT(paths(&s, 38), "100 ... > serve (web.py) > handle (web.py)\n");
    CHECK_TEXT(paths(&s, 37), "100 ... > handle (web.py)\n");
    CHECK_TEXT(paths(&s, 20), "100 ... > handl...eb.py)\n");
    for (size_t columns = 18; columns < 60; columns++) {
        CHECK(strlen(paths(&s, columns)) <= columns + strlen("100 \n"));
    }
    end(&s);
}

static const char *name_in(const char *name, enum frame_kind kind, size_t columns)
{
    static char text[512];
    struct buf out;
    buf_init(&out, sizeof text - 1);
    report_name(str_of(name), (uint8_t)kind, columns, &out);
    snprintf(text, sizeof text, "%s", buf_cstr(&out));
    buf_release(&out);
    return text;
}

static void names(void)
{
    CHECK_TEXT(name_in("f (/app/a.py)", FRAME_PYTHON, 80), "f (a.py)");
    CHECK_TEXT(name_in("f(/app/a)", FRAME_NATIVE, 80), "f(/app/a)");
    CHECK_TEXT(name_in("operator/(int)", FRAME_PYTHON, 80), "operator/(int)");
    CHECK_TEXT(name_in("std::map<int, int>::find(int const&)", FRAME_NATIVE, 20), "std::map...t const&)");
    CHECK_TEXT(name_in("exactly", FRAME_NATIVE, 7), "exactly");
    CHECK_TEXT(name_in("one more", FRAME_NATIVE, 7), "on...re");
    CHECK_TEXT(name_in("函数函数函数", FRAME_NATIVE, 11), "函数...函数");
    CHECK_TEXT(name_in("", FRAME_NATIVE, 7), "");
}

static void hostile_names(void)
{
    CHECK_TEXT(name_in("a\033[2J\nb\x7f", FRAME_NATIVE, 80), "a\\x1b[2J\\x0ab\\x7f");
    CHECK_TEXT(name_in("\u202egnp.exe\u2066\u200b\u2028\ufeff", FRAME_NATIVE, 80),
               "\\u202egnp.exe\\u2066\\u200b\\u2028\\ufeff");
    CHECK_TEXT(name_in("\xff\xc3(", FRAME_NATIVE, 80), "\\xff\\xc3(");
    CHECK_TEXT(name_in("\xc2\x85 \xc3\xa9", FRAME_NATIVE, 80), "\\x85 \xc3\xa9");
}

static void terminal_lines(void)
{
    struct scene s;
    begin(&s);
    stack(&s, "main (/srv/shop.py:1);price (/srv/shop.py:7)", 62);
    stack(&s, "main (/srv/shop.py:1);tax", 28);
    stack(&s, "main (/srv/shop.py:1)", 10);
    build(&s);
    report_lines(&s.report, &s.profile, 2, 2, 76, &s.out);
    CHECK_TEXT(buf_cstr(&s.out), "\n      own    total  heaviest functions"
                                 "\n   62.0 %   62.0 %  price (shop.py)"
                                 "\n   28.0 %   28.0 %  tax"
                                 "\n             total  heaviest paths"
                                 "\n            62.0 %  main (shop.py) > price (shop.py)"
                                 "\n            28.0 %  main (shop.py) > tax");
    buf_clear(&s.out);
    report_lines(&s.report, &s.profile, 1, 1, 39, &s.out);
    CHECK_TEXT(buf_cstr(&s.out), "\n      own    total  heaviest functions"
                                 "\n   62.0 %   62.0 %  price (shop.py)"
                                 "\n             total  heaviest paths"
                                 "\n            62.0 %  ... > price...p.py)");
    end(&s);
}

static void nothing_seen(void)
{
    struct scene s;
    begin(&s);
    build(&s);
    report_lines(&s.report, &s.profile, 5, 2, 76, &s.out);
    profile_account(&s.profile, s.thread, ACCOUNT_NATIVE_NO_PERF, 5);
    build(&s);
    report_lines(&s.report, &s.profile, 5, 2, 76, &s.out);
    CHECK_INT(s.out.len, 0);
    end(&s);
}

static void as_text(void)
{
    struct scene s;
    begin(&s);
    profile_clear(&s.profile);
    fill_sample(&s.profile);
    s.profile.meta.reason = profile_cstring(&s.profile, "rings were full\x1b");
    build(&s);
    report_text(&s.report, &s.profile, 3, &s.out);
    CHECK_TEXT(buf_cstr(&s.out),
               "total: 0.485 s of CPU time, 46 samples, 2 processes\n"
               "window: 2026-11-20T10:11:04Z to 2026-11-20T10:12:04Z, 60.0 s\n"
               "service: shop-web\n"
               "host: box-1\n"
               "how: perf, user and kernel\n"
               "not seen: 5.2 %\n"
               "why: rings were full\\x1b\n"
               "\n"
               "share_%      seconds  kind\n"
               "  32.99        0.160  python\n"
               "  30.93        0.150  native\n"
               "  30.93        0.150  kernel\n"
               "   5.15        0.025  [lost]\n"
               "\n"
               "  own_% total_%        own_s      total_s  kind        function\n"
               "  32.99   32.99        0.160        0.160  python      handle (shop/app.py)\n"
               "  30.93   30.93        0.150        0.150  native      memcpy\n"
               "  30.93   30.93        0.150        0.150  kernel      do_syscall\n"
               "\n"
               "share_%      seconds  path\n"
               "  32.99        0.160  main > handle (app.py)\n"
               "  30.93        0.150  main > memcpy\n"
               "  30.93        0.150  query > do_syscall\n"
               "\n"
               "share_%      seconds        pid  process\n"
               "  63.92        0.310         12  web in shop\n"
               "  36.08        0.175         30  db\n");
    end(&s);
}

static void as_json(void)
{
    struct scene s;
    begin(&s);
    profile_clear(&s.profile);
    fill_sample(&s.profile);
    build(&s);
    report_json(&s.report, &s.profile, 1, &s.out);
    CHECK(json_valid(buf_slice(&s.out)));
    const char *from = strstr(buf_cstr(&s.out), "\"value\"");
    CHECK_TEXT(from,
               "\"value\": \"CPU time\", \"unit\": \"nanoseconds\", \"total\": 485000000, \"samples\": 46, "
               "\"frequency_hz\": 100, \"start\": \"2026-11-20T10:11:04.000Z\", \"end\": \"2026-11-20T10:12:04.000Z\", "
               "\"service\": \"shop-web\", \"host\": \"box-1\", \"how\": \"perf, user and kernel\", \"kinds\": ["
               "{\"kind\": \"python\", \"amount\": 160000000, \"percent\": 32.99}, "
               "{\"kind\": \"native\", \"amount\": 150000000, \"percent\": 30.93}, "
               "{\"kind\": \"kernel\", \"amount\": 150000000, \"percent\": 30.93}], \"not_seen\": ["
               "{\"name\": \"[lost]\", \"amount\": 25000000, \"percent\": 5.15}], \"not_seen_reason\": null, "
               "\"function_count\": 5, \"functions\": [{\"function\": \"handle (shop/app.py)\", \"kind\": \"python\", "
               "\"own\": 160000000, \"total\": 160000000, \"own_percent\": 32.99, \"total_percent\": 32.99}], "
               "\"paths\": [{\"amount\": 160000000, \"percent\": 32.99, \"functions\": ["
               "{\"function\": \"main\", \"kind\": \"native\"}, "
               "{\"function\": \"handle (shop/app.py)\", \"kind\": \"python\"}]}], "
               "\"process_count\": 2, \"processes\": ["
               "{\"process\": \"web\", \"pid\": 12, \"container\": \"shop\", \"runtime\": \"CPython 3.11.9\", "
               "\"amount\": 310000000, \"percent\": 63.92}]}\n");
    end(&s);
}

/* Bytes or events are told as they are; a file of another tool tells neither times nor pids. */
static void counts(void)
{
    struct scene s;
    begin(&s);
    profile_clear(&s.profile);
    s.thread = add_thread(&s.profile, add_process(&s.profile, 0, "app", ""), 0, "app");
    s.profile.meta.value = profile_cstring(&s.profile, "page-faults");
    s.profile.meta.unit = profile_cstring(&s.profile, "count");
    profile_add(&s.profile, s.thread, add_name(&s.profile, 0, "f", FRAME_NATIVE), 12, 12);
    build(&s);
    report_text(&s.report, &s.profile, 10, &s.out);
    CHECK_TEXT(buf_cstr(&s.out),
               "total: 12 page-faults, 12 samples, 1 process\n"
               "\n"
               "share_%       amount  kind\n"
               " 100.00           12  native\n"
               "\n"
               "  own_% total_%          own        total  kind        function\n"
               " 100.00  100.00           12           12  native      f\n"
               "\n"
               "share_%       amount  path\n"
               " 100.00           12  f\n"
               "\n"
               "share_%       amount        pid  process\n"
               " 100.00           12          -  app\n");
    buf_clear(&s.out);
    report_json(&s.report, &s.profile, 10, &s.out);
    CHECK(strstr(buf_cstr(&s.out), "\"unit\": \"page-faults\", \"total\": 12,") != NULL);
    CHECK(strstr(buf_cstr(&s.out), "\"start\": null, \"end\": null, \"service\": null,") != NULL);
    CHECK(strstr(buf_cstr(&s.out), "\"pid\": null,") != NULL);
    end(&s);
}

static void deep_stacks(void)
{
    struct scene s;
    begin(&s);
    uint32_t node = 0;
    for (unsigned i = 0; i < 50000; i++) {
        node = add_name(&s.profile, node, i % 2 != 0 ? "odd" : "even", FRAME_NATIVE);
    }
    profile_add(&s.profile, s.thread, node, 10, 1);
    CHECK_TEXT(paths(&s, 30), "100 ... > even > odd > even > odd\n");
    CHECK_TEXT(functions(&s), "100 100 odd\n0 100 even\n");
    buf_clear(&s.out);
    report_json(&s.report, &s.profile, 1, &s.out);
    end(&s);
}

TESTS({"a function has its own share and that of what it calls", own_and_total},
      {"recursion counts once", recursion_counts_once},
      {"one name in two languages is two functions", names_of_two_kinds},
      {"what was not seen is no function and no path, but counts in the whole", not_seen_is_no_function},
      {"the same stacks of several processes are one path", threads_of_all_processes_are_together},
      {"paths end where time is spent or shared out", where_paths_end},
      {"a flat profile has the path of its heaviest function", flat_profiles_have_a_path},
      {"a narrow path keeps its end", narrow_paths},
      {"a long name loses its middle, a file its folder", names},
      {"no name moves a cursor, forges a line or turns text around", hostile_names},
      {"lines for a terminal fit its columns", terminal_lines},
      {"a profile without a stack has no lines", nothing_seen},
      {"the text has a head and four tables", as_text},
      {"the object has the same", as_json},
      {"counts are told as counts", counts},
      {"a stack of 50,000 frames needs no recursion", deep_stacks})

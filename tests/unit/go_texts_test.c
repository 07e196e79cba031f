/* src/runtime/go/waits and metrics: texts of Go programs, as they are printed and as they are damaged. */
#include "runtime/go/metrics.h"
#include "runtime/go/waits.h"
#include "go_pprof_text.h"

/* ---- goroutines ---- */

static struct go_waits_told told;

/* The samples of a text; "error N" where it is refused. Sets told. */
static const char *waits_of_str(struct str dump)
{
    static char text[1 << 16];
    struct buf out;
    struct shown_pprof shown;
    struct err err = {0};
    told = (struct go_waits_told){0};
    buf_init(&out, 0);
    if (!go_waits_read(dump, 1700000000000000000, &out, &told, &err)) {
        snprintf(text, sizeof text, "error %d", err.kind);
        return text;
    }
    snprintf(text, sizeof text, "%s", pprof_show(&shown, &out));
    CHECK_INT(shown.time_ns, 1700000000000000000);
    CHECK_INT(shown.types, 2);
    pprof_unshow(&shown);
    buf_release(&out);
    return text;
}

static const char *waits_of(const char *dump)
{
    return waits_of_str(str_of(dump));
}

/* Go 1.26.8, with GODEBUG=tracebacklabels=1 for the last. */
static const char real[] =
    "goroutine 1029 [running]:\n"
    "runtime/pprof.writeGoroutineStacks({0x7ac380, 0x134ed8088690})\n"
    "\t/usr/local/go/src/runtime/pprof/pprof.go:804 +0x6b\n"
    "net/http/pprof.handler.ServeHTTP({0x134ed80a81a1, 0x9}, {0x7af398, 0x134ed7e9c000}, 0x134ed7e9a000)\n"
    "\t/usr/local/go/src/net/http/pprof/pprof.go:272 +0x52a\n"
    "created by net/http.(*Server).Serve in goroutine 1\n"
    "\t/usr/local/go/src/net/http/server.go:3581 +0x485\n"
    "\n"
    "goroutine 1 [IO wait]:\n"
    "internal/poll.runtime_pollWait(0x7d0ad2d43c00, 0x72)\n"
    "\t/usr/local/go/src/runtime/netpoll.go:351 +0x85\n"
    "internal/poll.(*FD).Accept(0x134ed7eac100)\n"
    "\t/usr/local/go/src/internal/poll/fd_unix.go:613 +0x28c\n"
    "main.main()\n"
    "\t/src/main.go:152 +0x5b0\n"
    "\n"
    "goroutine 7 [chan receive, 3 minutes, locked to thread]:\n"
    "main.(*worker).receive(...)\n"
    "\t/src/main.go:21\n"
    "main.main.func7({0x1, {0x2, ...}, 0x3?})\n"
    "\t/src/main.go:140 +0x1d\n"
    "created by main.start in goroutine 1\n"
    "\t/src/main.go:107 +0x2c\n"
    "\n"
    "goroutine 1008 [chan receive labels:{\"plain\": \"d7\", \"user\": \"a [b]: \\\"c\\\", 5 minutes]:\"}]:\n"
    "main.generic[...](0x0?)\n"
    "\t/src/main.go:155 +0x1d\n"
    "created by main.start in goroutine 1\n"
    "\t/src/main.go:107 +0x2c\n";

static void a_real_text_is_read(void)
{
    CHECK_TEXT(waits_of(real),
               "180000000000,1 main.(*worker).receive@/src/main.go:21 main.main.func7@/src/main.go:140 "
               "main.start@/src/main.go:107 state=chan receive lockedm=true goid=7/id\n"
               "0,1 internal/poll.runtime_pollWait@/usr/local/go/src/runtime/netpoll.go:351 "
               "internal/poll.(*FD).Accept@/usr/local/go/src/internal/poll/fd_unix.go:613 "
               "main.main@/src/main.go:152 state=IO wait\n"
               "0,1 main.generic[...]@/src/main.go:155 main.start@/src/main.go:107 state=chan receive\n");
    CHECK_INT(told.goroutines, 3);
    CHECK_INT(told.own, 1);
    CHECK_INT(told.damaged, 0);
    CHECK(!told.cut);
}

/* What stands in a first line, and the labels and value that follow from it. */
static void first_lines_are_taken_apart(void)
{
    static const struct {
        const char *line, *sample;
    } all[] = {
        {"goroutine 5 [select]:", "0,1 m.f@/a.go:1 state=select"},
        {"goroutine 5 [chan receive (nil chan), 2 minutes]:",
         "120000000000,1 m.f@/a.go:1 state=chan receive (nil chan) goid=5/id"},
        {"goroutine 5 gp=0xc000002380 m=nil [sleep]:", "0,1 m.f@/a.go:1 state=sleep"},
        {"goroutine 5 gp=0xc000002380 m=3 mp=0xc0001 [syscall, 1 minutes]:",
         "60000000000,1 m.f@/a.go:1 state=syscall goid=5/id"},
        {"goroutine 5 [runnable (scan), locked to thread]:", "0,1 m.f@/a.go:1 state=runnable lockedm=true"},
        {"goroutine 5 [chan send (leaked)]:", "0,1 m.f@/a.go:1 state=chan send leaked=true"},
        {"goroutine 5 [select (leaked) (scan)]:", "0,1 m.f@/a.go:1 state=select leaked=true"},
        {"goroutine 5 [chan receive (durable), synctest bubble 9]:", "0,1 m.f@/a.go:1 state=chan receive (durable)"},
        {"goroutine 5 [sleep, 8 minutes, synctest group 1]:", "480000000000,1 m.f@/a.go:1 state=sleep goid=5/id"},
        {"goroutine 5 [select] {user: d7, \"a b\": \"]: [\"}:", "0,1 m.f@/a.go:1 state=select"}, /* Go 1.27 */
        {"goroutine 5 [something new, what it may be, 2 minutes]:",
         "120000000000,1 m.f@/a.go:1 state=something new goid=5/id"},
        {"goroutine 5 []:", "0,1 m.f@/a.go:1 state=0/"},
        {"goroutine 5 [sleep, 18446744073709551615 minutes]:",
         "9223372036854775807,1 m.f@/a.go:1 state=sleep goid=5/id"},
        {"goroutine 5 [sleep, 99999999999999999999 minutes]:", "0,1 m.f@/a.go:1 state=sleep"},
        {"goroutine 5 [sleep, -3 minutes]:", "0,1 m.f@/a.go:1 state=sleep"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char dump[512], wanted[512];
        snprintf(dump, sizeof dump, "%s\nm.f()\n\t/a.go:1 +0x1\n", all[i].line);
        snprintf(wanted, sizeof wanted, "%s\n", all[i].sample);
        CHECK_TEXT(waits_of(dump), wanted);
    }
}

static void frames_are_taken_apart(void)
{
    static const struct {
        const char *lines, *frames;
    } all[] = {
        {"m.(*T[...]).f(0x1, {0x2, (0x3)})\n\t/a b:c/a.go:12 +0x1d\n", "m.(*T[...]).f@/a b:c/a.go:12"},
        {"m.f.(*T).g.func1(...)\n\t/a.go:12\n", "m.f.(*T).g.func1@/a.go:12"},
        {"m.f()\n\t/a.go:12 +0x1d fp=0xc1 sp=0xc0 pc=0x40\n", "m.f@/a.go:12"},
        {"panic({0x1?, 0x2?})\n\t/a.go:12\n", "panic@/a.go:12"},
        {"m.f()\n\tC:/a.go:12 +0x1d\n", "m.f@C:/a.go:12"},
        {"m.f()\n\t/a.go:12\n...52 frames elided...\nm.g()\n\t/a.go:13\n",
         "m.f@/a.go:12 [52 frames omitted]@:0 m.g@/a.go:13"},
        {"m.f()\n\t/a.go:12\n...additional frames elided...\ncreated by m.g\n\t/a.go:2 +0x9\n",
         "m.f@/a.go:12 [frames omitted]@:0 m.g@/a.go:2"},
        {"m.f()\n\t/a.go:12\ncreated by m.(*T).g.func1 in goroutine 17\n\t/a.go:2 +0x9\n",
         "m.f@/a.go:12 m.(*T).g.func1@/a.go:2"},
        {"m.f()\n\t/a.go:12\n[originating from goroutine 17]:\nm.h(...)\n\t/a.go:9\nanything\n", "m.f@/a.go:12"},
        {"\tgoroutine running on other thread; stack unavailable\ncreated by m.g\n\t/a.go:2 +0x9\n",
         "[unreadable]@:0 m.g@/a.go:2"},
        {"", "[unreadable]@:0"},
        {"read\n\t/libc.c:7 pc=0x401020\nnon-Go function\n\tpc=0x401000\n"
         "non-Go function at pc=0x40\nm.f()\n\t/a.go:12\n",
         "read@/libc.c:7 non-Go function@:0 non-Go function@:0 m.f@/a.go:12"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char dump[512], wanted[512];
        snprintf(dump, sizeof dump, "goroutine 5 [select]:\n%s", all[i].lines);
        snprintf(wanted, sizeof wanted, "0,1 %s state=select\n", all[i].frames);
        CHECK_TEXT(waits_of(dump), wanted);
    }
}

static void equal_stacks_of_equal_state_are_one_sample(void)
{
    CHECK_TEXT(waits_of("goroutine 1 [select]:\nm.f()\n\t/a.go:1\n\ngoroutine 2 [sleep]:\nm.f()\n\t/a.go:1\n\n"
                        "goroutine 3 [select]:\nm.f(0x3)\n\t/a.go:1 +0x9\n\ngoroutine 4 [select]:\nm.f()\n\t/a.go:2\n\n"
                        "goroutine 5 [select, locked to thread]:\nm.f()\n\t/a.go:1\n"),
               "0,2 m.f@/a.go:1 state=select\n0,1 m.f@/a.go:1 state=sleep\n0,1 m.f@/a.go:2 state=select\n"
               "0,1 m.f@/a.go:1 state=select lockedm=true\n");
}

/* Of 14 that wait 1, 2 … 14 minutes the last ten are named; the others are 1 + 2 + 3 + 4 minutes. */
static void only_those_that_wait_longest_are_named(void)
{
    struct buf dump;
    char named[64];
    buf_init(&dump, 1 << 16);
    for (int i = 1; i <= 14; i++) {
        buf_printf(&dump, "goroutine %d [select, %d minutes]:\nm.f()\n\t/a.go:1\n\n", 100 + i, i);
    }
    const char *text = waits_of_str(buf_slice(&dump));
    for (int i = 5; i <= 14; i++) {
        snprintf(named, sizeof named, "%d0000000000,1 m.f@/a.go:1 state=select goid=%d/id\n", 6 * i, 100 + i);
        CHECK(strstr(text, named) != NULL);
    }
    CHECK(strstr(text, "\n600000000000,4 m.f@/a.go:1 state=select\n") != NULL);
    CHECK(strstr(text, "goid=104/") == NULL);
    buf_release(&dump);
}

/* The one that prints is left out; one that runs elsewhere, or waits to print, is none of ours. */
static void the_goroutine_that_prints_the_text_is_left_out(void)
{
    CHECK_TEXT(waits_of("goroutine 1 [running]:\nruntime/pprof.writeGoroutineStacks()\n\t/a.go:1\n\n"
                        "goroutine 2 [running]:\nm.f()\n\t/a.go:1\n\n"
                        "goroutine 3 [semacquire]:\nruntime/pprof.writeGoroutineStacks()\n\t/a.go:1\n"),
               "0,1 m.f@/a.go:1 state=running\n0,1 runtime/pprof.writeGoroutineStacks@/a.go:1 state=semacquire\n");
    CHECK_INT(told.own, 1);
}

static void a_damaged_block_is_counted_and_left_out(void)
{
    static const char *const all[] = {
        "goroutine x [select]:\nm.f()\n\t/a.go:1\n",          /* no number */
        "goroutine 7 select:\nm.f()\n\t/a.go:1\n",            /* no brackets */
        "goroutine 7 [select\nm.f()\n\t/a.go:1\n",            /* not closed */
        "goroutine 7 [select] :\nm.f()\n\t/a.go:1\n",         /* something behind */
        "goroutine 7 [select]:\nm.f()\nm.g()\n\t/a.go:1\n",   /* no place */
        "goroutine 7 [select]:\nm.f()\n",                     /* nor there */
        "goroutine 7 [select]:\n\t/a.go:1\n",                 /* no function */
        "goroutine 7 [select]:\nm.f()\n\t/a.go\n",            /* no line */
        "goroutine 7 [select]:\nm.f()\n\t/a.go:99999999999\n",
        "goroutine 7 [select]:\nm.f()\n\t\n",
        "goroutine 7 [select]:\nm.f)\n\t/a.go:1\n",           /* more closed than opened */
        "goroutine 7 [select]:\n(0x1)\n\t/a.go:1\n",          /* no name */
        "goroutine 7 [select]:\n...7 frames elided...\n...8 frames elided...\n",
        "goroutine 7 [select]:\n...\n",
        "any text\n",
        "goroutine 7 [select]:\nm.f()\n\t/a.go:1\ncreated by \n\t/a.go:1\n",
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char dump[512];
        snprintf(dump, sizeof dump, "goroutine 1 [select]:\nm.f()\n\t/a.go:1\n\n%s\n%s", all[i],
                 "goroutine 2 [select]:\nm.f()\n\t/a.go:1\n");
        CHECK_TEXT(waits_of(dump), "0,2 m.f@/a.go:1 state=select\n");
        CHECK_INT(told.damaged, 1);
    }
}

/* Blocks are told apart by their first lines where the empty line is missing. */
static void a_first_line_ends_the_block_before_it(void)
{
    CHECK_TEXT(waits_of("goroutine 1 [select]:\nm.f()\ngoroutine 2 [sleep]:\nm.f()\n\t/a.go:1\n"),
               "0,1 m.f@/a.go:1 state=sleep\n");
    CHECK_INT(told.damaged, 1);
}

static void what_is_behind_the_last_whole_block_of_a_cut_text_is_left_out(void)
{
    size_t second = (size_t)(strstr(real, "goroutine 1 [IO") - real);
    size_t third = (size_t)(strstr(real, "goroutine 7 [") - real);
    for (size_t len = 0; len < sizeof real - 2; len++) {
        const char *text = waits_of_str((struct str){real, len});
        if (len < second - 1) {
            CHECK(strncmp(text, "error", 5) == 0 || real[len - 1] == '\n');
        } else if (real[len - 1] != '\n' && len > third) {
            CHECK(told.cut && told.own == 1 && told.damaged == 0 && told.goroutines >= 1);
        }
    }
    CHECK_TEXT(waits_of_str((struct str){real, second + 20}), "");
    CHECK(told.cut && told.own == 1 && told.goroutines == 0);
}

static void a_text_without_goroutines_is_an_error(void)
{
    CHECK_TEXT(waits_of(""), "error 3");
    CHECK_TEXT(waits_of("\n\n\n"), "error 3");
    CHECK_TEXT(waits_of("goroutine profile: total 7\n1 @ 0x47\n#\t0x47\n"), "error 3");
    CHECK_TEXT(waits_of("404 page not found\n"), "error 3");
    CHECK_INT(ERR_MALFORMED, 3);
    CHECK_TEXT(waits_of_str((struct str){real, (64u << 20) + 1}), "error 5");
    CHECK_INT(ERR_LIMIT, 5);
}

static void a_block_of_too_many_frames_is_damaged(void)
{
    struct buf dump;
    buf_init(&dump, 1 << 20);
    for (int frames = 512; frames <= 513; frames++) {
        buf_printf(&dump, "goroutine %d [select]:\n", frames);
        for (int i = 0; i < frames; i++) {
            buf_printf(&dump, "m.f%d()\n\t/a.go:%d +0x1\n", i % 7, i % 5);
        }
        buf_byte(&dump, '\n');
    }
    CHECK(strlen(waits_of_str(buf_slice(&dump))) > 512 * 5);
    CHECK_INT(told.goroutines, 1);
    CHECK_INT(told.damaged, 1);
    buf_release(&dump);
}

/* ---- metrics ---- */

static void add_ring(struct buf *out, const char *between, uint64_t first, uint64_t step)
{
    buf_byte(out, '[');
    for (uint64_t i = 0; i < GO_PAUSES; i++) {
        buf_printf(out, "%s%llu", i > 0 ? between : "", (unsigned long long)(first + i * step));
    }
    buf_byte(out, ']');
}

/* As /debug/pprof/heap?debug=1 ends. */
static struct go_memstats of_text(uint64_t alloc, uint64_t cycles)
{
    struct buf text;
    struct go_memstats out = {0};
    buf_init(&text, 1 << 20);
    buf_text(&text, "heap profile: 1: 2 [3: 4] @ heap/1048576\n1: 2 [3: 4] @ 0x1\n#\t0x1\tm.f+0x1\t/a.go:1\n\n\n"
                    "# runtime.MemStats\n# Alloc = 1\n");
    buf_printf(&text, "# TotalAlloc = %llu\n# Sys = 9\n# Lookups = 0\n# Mallocs = 300\n# Frees = 200\n",
               (unsigned long long)alloc);
    buf_printf(&text, "# HeapAlloc = %llu\n# Stack = 1 / 2\n# PauseNs = ", (unsigned long long)alloc / 2);
    add_ring(&text, " ", 1000, 1);
    buf_text(&text, "\n# PauseEnd = ");
    add_ring(&text, " ", 5, 1);
    buf_printf(&text, "\n# NumGC = %llu\n# NumForcedGC = 0\n# DebugGC = false\n# MaxRSS = 7\n",
               (unsigned long long)cycles);
    CHECK(go_memstats_of_text(buf_slice(&text), &out, NULL));
    buf_release(&text);
    return out;
}

/* As /debug/vars. */
static struct go_memstats of_json(uint64_t pauses, uint64_t cycles)
{
    struct buf text;
    struct go_memstats out = {0};
    buf_init(&text, 1 << 20);
    buf_text(&text, "{\n\"cmdline\": [\"/bin/app\"],\n\"memstats\": {\"Alloc\":1,\"TotalAlloc\":1000,\"Mallocs\":300,"
                    "\"Frees\":200,\"HeapAlloc\":500,");
    buf_printf(&text, "\"PauseTotalNs\":%llu,\"PauseNs\":", (unsigned long long)pauses);
    add_ring(&text, ",", 1000, 1);
    buf_printf(&text, ",\"NumGC\":%llu,\"GCCPUFraction\":0.01,", (unsigned long long)cycles);
    buf_text(&text, "\"BySize\":[{\"Size\":0,\"Mallocs\":7,\"Frees\":8}]}\n}\n");
    CHECK(go_memstats_of_json(buf_slice(&text), &out, NULL));
    buf_release(&text);
    return out;
}

static const char *metrics_of(const struct go_memstats *before, const struct go_memstats *now, uint64_t elapsed_ns)
{
    static char shown[1024];
    struct buf json;
    struct err err = {0};
    buf_init(&json, sizeof shown);
    bool ok = go_metrics(before, now, elapsed_ns, &json, &err);
    CHECK(ok || json.len == 0);
    snprintf(shown, sizeof shown, ok ? "%s" : "error %s%d", ok ? buf_cstr(&json) : "", err.kind);
    buf_release(&json);
    return shown;
}

static void rates_are_differences_over_the_time(void)
{
    struct go_memstats before = of_text(1000, 2), now = of_text(5000, 4);
    CHECK(go_memstats_goroutines(STR("goroutine profile: total 17\n1 @ 0x1\n"), &now, NULL));
    CHECK_TEXT(metrics_of(&before, &now, 2000000000),
               "[[\"go_alloc_bytes_per_sec\",2000],[\"go_allocs_per_sec\",0],[\"go_frees_per_sec\",0],"
               "[\"go_heap_growth_bytes_per_sec\",1000],[\"go_gcs_per_sec\",1],[\"go_gc_pause_time\",1.0025e-06],"
               "[\"go_max_gc_pause_time\",1003],[\"go_num_goroutine\",17]]");
}

static void the_sum_of_pauses_is_taken_where_it_is_told(void)
{
    struct go_memstats before = of_json(700, 255), now = of_json(6700, 258);
    CHECK_TEXT(metrics_of(&before, &now, 3000000000),
               "[[\"go_alloc_bytes_per_sec\",0],[\"go_allocs_per_sec\",0],[\"go_frees_per_sec\",0],"
               "[\"go_heap_growth_bytes_per_sec\",0],[\"go_gcs_per_sec\",1],[\"go_gc_pause_time\",2e-06],"
               "[\"go_max_gc_pause_time\",1255]]"); /* cycles 256, 257 and 258 are at 255, 0 and 1 */
}

/* 512 cycles, of which the pauses of 256 are known: 1000 … 1255 ns. */
static void of_more_cycles_than_the_ring_holds_the_last_stand_for_all(void)
{
    struct go_memstats before = of_text(1000, 1), now = of_text(1000, 513);
    const char *text = metrics_of(&before, &now, 1000000000);
    CHECK(strstr(text, "[\"go_gcs_per_sec\",512],[\"go_gc_pause_time\",0.00057728],") != NULL);
    CHECK(strstr(text, "[\"go_max_gc_pause_time\",1255]") != NULL);
}

static void without_a_cycle_there_is_no_pause(void)
{
    struct go_memstats before = of_text(1000, 3), now = of_text(900, 3);
    now.total_alloc = before.total_alloc;
    CHECK(strstr(metrics_of(&before, &now, 1000000000),
                 "[\"go_heap_growth_bytes_per_sec\",-50],[\"go_gcs_per_sec\",0],[\"go_gc_pause_time\",0],"
                 "[\"go_max_gc_pause_time\",0]]") != NULL);
}

static void counters_that_fell_give_nothing(void)
{
    const struct go_memstats before = of_json(700, 7);
    uint64_t *counters[5];
    for (size_t i = 0; i < 5; i++) {
        struct go_memstats now = before;
        counters[0] = &now.total_alloc;
        counters[1] = &now.mallocs;
        counters[2] = &now.frees;
        counters[3] = &now.num_gc;
        counters[4] = &now.pause_total_ns;
        --*counters[i];
        CHECK_TEXT(metrics_of(&before, &now, 1000), "error 2");
    }
    CHECK_INT(ERR_GONE, 2);
    CHECK_TEXT(metrics_of(&before, &before, 0), "error 8");
    CHECK_INT(ERR_USAGE, 8);
}

static void texts_without_the_numbers_are_refused(void)
{
    static const char *const texts[] = {"", "# runtime.MemStats\n", "# TotalAlloc = 1\n", "heap profile: 1: 2\n"};
    static const char *const documents[] = {
        "", "{", "[]", "7", "{\"memstats\":7}", "{\"memstats\":{}}", "{\"memstats\":{\"TotalAlloc\":\"1\"}}",
        "{\"memstats\":{\"TotalAlloc\":1,\"Mallocs\":1,\"Frees\":1,\"HeapAlloc\":1,\"NumGC\":1,\"PauseNs\":[1]}}",
        "{\"memstats\":{\"TotalAlloc\":1,\"Mallocs\":1,\"Frees\":1,\"HeapAlloc\":-1,\"NumGC\":1,\"PauseNs\":[]}}",
    };
    struct go_memstats out = {.mallocs = 77};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        CHECK(!go_memstats_of_text(str_of(texts[i]), &out, NULL));
    }
    for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++) {
        CHECK(!go_memstats_of_json(str_of(documents[i]), &out, NULL));
    }
    CHECK(!go_memstats_goroutines(STR("goroutine profile: total x\n"), &out, NULL));
    CHECK(!go_memstats_goroutines(STR(""), &out, NULL));
    CHECK(out.mallocs == 77 && !out.has_num_goroutine);
}

TESTS({"a real text of goroutines is read", a_real_text_is_read},
      {"first lines are taken apart", first_lines_are_taken_apart}, {"frames are taken apart", frames_are_taken_apart},
      {"equal stacks of equal state are one sample", equal_stacks_of_equal_state_are_one_sample},
      {"only those that wait longest are named", only_those_that_wait_longest_are_named},
      {"the goroutine that prints the text is left out", the_goroutine_that_prints_the_text_is_left_out},
      {"a damaged block is counted and left out", a_damaged_block_is_counted_and_left_out},
      {"a first line ends the block before it", a_first_line_ends_the_block_before_it},
      {"what is behind the last whole block of a cut text is left out",
       what_is_behind_the_last_whole_block_of_a_cut_text_is_left_out},
      {"a text without goroutines is an error", a_text_without_goroutines_is_an_error},
      {"a block of too many frames is damaged", a_block_of_too_many_frames_is_damaged},
      {"rates are differences over the time", rates_are_differences_over_the_time},
      {"the sum of pauses is taken where it is told", the_sum_of_pauses_is_taken_where_it_is_told},
      {"of more cycles than the ring holds the last stand for all",
       of_more_cycles_than_the_ring_holds_the_last_stand_for_all},
      {"without a cycle there is no pause", without_a_cycle_there_is_no_pause},
      {"counters that fell give nothing", counters_that_fell_give_nothing},
      {"texts without the numbers are refused", texts_without_the_numbers_are_refused})

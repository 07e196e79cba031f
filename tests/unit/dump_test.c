/* The dump of threads: circles of waiting threads, and how what was found is shown, as text and as JSON. */
#include "base/json.h"
#include "capture/live/dump.h"
#include "capture/live/dump_circle.h"
#include "capture/live/dump_locks.h"
#include "sample_profile.h"
#include "test.h"

#include <sys/syscall.h>

enum { OUT_MAX = 1 << 16 };

/* ---- circles ---- */

static struct dump_thread threads[6];

/* Holders by place, from 1; 0: waits for nobody. */
static uint32_t circles(const uint32_t *holders, size_t count)
{
    memset(threads, 0, sizeof threads);
    for (size_t i = 0; i < count; i++) {
        threads[i].holder = holders[i];
    }
    return circles_find(threads, count, 4);
}

static void three_are_one(void)
{
    static const uint32_t holders[] = {2, 3, 4, 2, 3, 0};
    CHECK_INT(circles(holders, 6), 1);
    CHECK_INT(threads[0].circle, 0); /* waits for one of them, and is none */
    CHECK_INT(threads[1].circle, 5);
    CHECK_INT(threads[2].circle, 5);
    CHECK_INT(threads[3].circle, 5);
    CHECK_INT(threads[4].circle, 0);
    CHECK_INT(threads[5].circle, 0);
}

static void two_of_two(void)
{
    static const uint32_t holders[] = {2, 1, 4, 3};
    CHECK_INT(circles(holders, 4), 2);
    CHECK_INT(threads[0].circle, 5);
    CHECK_INT(threads[1].circle, 5);
    CHECK_INT(threads[2].circle, 6);
    CHECK_INT(threads[3].circle, 6);
}

static void chains_end(void)
{
    static const uint32_t holders[] = {2, 3, 0, 3};
    CHECK_INT(circles(holders, 4), 0);
    static const uint32_t itself[] = {1};
    CHECK_INT(circles(itself, 1), 1);
    CHECK_INT(circles(NULL, 0), 0);
}

/* ---- what a thread waits for ---- */

static const char *waits(const char *format, long number)
{
    char place[160];
    snprintf(place, sizeof place, format, number);
    threads[0] = (struct dump_thread){.pid = 1};
    locks_note(&threads[0], place);
    return threads[0].wait;
}

static void calls_in_words(void)
{
    CHECK_TEXT(waits("%ld 0x7f00 0x80 0x2 0x0 0x0 0x0 0x7ffc00 0x7f01\n", SYS_futex), "lock or condition 0x7f00");
    CHECK_INT(threads[0].futex, 0x7f00);
    CHECK_INT(threads[0].expected, 2);
    CHECK_TEXT(waits("%ld 0x1f 0x0 0x0 0x0 0x0 0x0 0x7ffc00 0x7f01\n", SYS_wait4), "child 31");
    CHECK_TEXT(waits("%ld 0xffffffff 0x0 0x0 0x0 0x0 0x0 0x7ffc00 0x7f01\n", SYS_wait4), "child");
    CHECK_TEXT(waits("%ld 0x0 0x0 0x7f 0x0 0x0 0x0 0x7ffc00 0x7f01\n", SYS_clock_nanosleep), "sleep");
    (void)waits("%ld 0xfffff 0x0 0x7f 0x0 0x0 0x0 0x7ffc00 0x7f01\n", SYS_read);
    CHECK(strncmp(threads[0].wait, "read, descriptor 1048575", 24) == 0);
    CHECK_TEXT(waits("%ld 0x0 0x0 0x0 0x0 0x0 0x0 0x7ffc00 0x7f01\n", 9999), "system call 9999");
    CHECK_TEXT(waits("running\n", 0), "");
    CHECK_TEXT(waits("-1 0x7ffc00 0x7f01\n", 0), "");
    CHECK_TEXT(waits("%ld 0xzz\n", SYS_futex), "");
}

/* ---- what is shown ---- */

static struct profile profile;
static struct dump_found found;

static uint32_t stack_of(const char *name, uint32_t line, unsigned native)
{
    uint32_t node = 0;
    for (unsigned i = 0; i < native; i++) {
        char root[16];
        snprintf(root, sizeof root, "root%u", i);
        node = add_name(&profile, node, root, FRAME_NATIVE);
    }
    struct frame frame = {.name = profile_cstring(&profile, "shown"), .system_name = profile_cstring(&profile, name),
                          .file = profile_cstring(&profile, "app.py"), .line = line, .kind = FRAME_PYTHON};
    node = profile_child(&profile, node, profile_frame(&profile, &frame));
    return add_name(&profile, node, "[waits: lock]", FRAME_NATIVE);
}

static void add(uint32_t process, uint32_t tid, const char *name, char state, uint32_t node, const char *wait)
{
    struct dump_thread *t = vec_push(&found.threads);
    *t = (struct dump_thread){.pid = 7, .tid = tid, .inner = tid, .state = state, .node = node,
                              .thread = add_thread(&profile, process, tid, name)};
    snprintf(t->wait, sizeof t->wait, "%s", wait);
}

/* A main thread, two that wait alike, two in a deadlock, one that runs and whose name is hostile. */
static void fill(void)
{
    found = (struct dump_found){.wall_ns = UINT64_C(1700000000) * 1000000000, .mode = "perf", .circles = 1};
    CHECK(profile_init(&profile, SAMPLE_MAX_BYTES, NULL));
    uint32_t process = add_process(&profile, 7, "app", "");
    profile.processes.at[process].runtime = profile_cstring(&profile, "CPython 3.11.9");
    struct dump_process *p = vec_push(&found.processes);
    *p = (struct dump_process){.pid = 7, .process = process, .count = 6, .command = "python3 app.py"};
    uint32_t alike = stack_of("take", 5, 1), main_stack = stack_of("main", 9, 1);
    add(process, 7, "main", 'S', main_stack, "sleep");
    add(process, 8, "worker-1", 'S', alike, "lock or condition 0x10");
    add(process, 9, "worker-2", 'S', alike, "lock or condition 0x20");
    add(process, 10, "a", 'S', alike, "lock 0x30");
    add(process, 11, "b", 'S', alike, "lock 0x40");
    add(process, 12, "evil\n\x1b[31m\xff", 'R', stack_of("spin", 3, 30), "");
    found.threads.at[3].holder = 5;
    found.threads.at[4].holder = 4;
    found.threads.at[3].circle = found.threads.at[4].circle = 1;
}

static void forget(void)
{
    vec_release(&found.processes);
    vec_release(&found.threads);
    profile_release(&profile);
}

static const char *text_of(size_t rows, bool all_frames)
{
    static char copy[OUT_MAX];
    const struct dump_form form = {.rows = rows, .all_frames = all_frames};
    struct buf out;
    fill();
    buf_init(&out, OUT_MAX);
    dump_text(&found, &profile, &form, &out);
    snprintf(copy, sizeof copy, "%s", buf_cstr(&out));
    buf_release(&out);
    forget();
    return copy;
}

static size_t lines_in(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++) {
        count += *text == '\n';
    }
    return count;
}

static void whole_text(void)
{
    const char *text = text_of(0, false);
    const char *order[] = {"Process 7: python3 app.py\n"
                           "CPython 3.11.9, 6 threads, 2023-11-14T22:13:20.000Z, perf\n",
                           "\nDeadlock of 2 threads, each waits for what the next one holds: "
                           "10 (a) -> 11 (b) -> 10 (a)\n",
                           "\nThread 12 (evil??[31m\xef\xbf\xbd): running\n"
                           "    spin (app.py:3)\n    root29\n", "    root0\n",
                           "\nThread 10 (a): sleeping, waits: lock 0x30, held by 11 (b)\n"
                           "    take (app.py:5)\n    root0\n",
                           "\nThread 7 (main): sleeping, waits: sleep\n    main (app.py:9)\n",
                           "\n2 threads, sleeping, waits: lock or condition: 8 (worker-1), 9 (worker-2)\n"
                           "    take (app.py:5)\n    root0\n"};
    const char *at = text;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        const char *next = strstr(at, order[i]);
        CHECK(next != NULL);
        at = next != NULL ? next : at;
    }
    CHECK(strstr(text, "more") == NULL && strstr(text, "[waits") == NULL);
}

static void one_screen(void)
{
    const char *text = text_of(24, false);
    CHECK(lines_in(text) <= 24);
    CHECK(strstr(text, "spin (app.py:3)\n    ... and 30 native\n") != NULL);
    text = text_of(12, false);
    CHECK(lines_in(text) <= 12);
    CHECK(strstr(text, "more stacks; --all-frames shows everything\n") != NULL);
    text = text_of(12, true);
    CHECK(strstr(text, "more") == NULL && strstr(text, "    root17\n") != NULL);
}

static void whole_json(void)
{
    struct buf out;
    fill();
    snprintf(found.processes.at[0].why, sizeof found.processes.at[0].why, "because");
    buf_init(&out, OUT_MAX);
    dump_json(&found, &profile, &out);
    CHECK(json_valid(buf_slice(&out)));
    const char *text = buf_cstr(&out);
    CHECK(strstr(text, "\"pid\":7,\"command\":\"python3 app.py\",\"runtime\":\"CPython 3.11.9\","
                       "\"missing\":\"because\",\"deadlocks\":[[10,11]],\"threads\":[{\"tid\":7,\"name\":\"main\","
                       "\"state\":\"sleeping\",\"waits_for\":\"sleep\",\"frames\":[{\"function\":\"main\","
                       "\"file\":\"app.py\",\"line\":9,\"language\":\"python\"},"
                       "{\"function\":\"root0\",\"language\":\"native\"}]}") != NULL);
    CHECK(strstr(text, "\"waits_for\":\"lock 0x30\",\"holder\":11,\"deadlock\":1,") != NULL);
    buf_release(&out);
    forget();
}

TESTS({"threads that wait for each other are one deadlock, without those that wait for them", three_are_one},
      {"two deadlocks are two", two_of_two},
      {"a chain that ends is none", chains_end},
      {"what a thread waits for is told by its system call's arguments", calls_in_words},
      {"text: who runs, deadlocks, the main thread, equal stacks as one; names are inert", whole_text},
      {"a terminal gets one screen, and all of it when asked", one_screen},
      {"JSON has the same", whole_json})

/* What a thread waits for, as its syscall file tells. Numbers are those of this processor. */
#include "capture/stacks/readers.h"
#include "capture/stacks/waits.h"
#include "test.h"

#include <sys/syscall.h>

static const char *reason(const char *format, long number)
{
    static char text[128], out[32];
    snprintf(text, sizeof text, format, number);
    return waits_reason(str_of(text), out);
}

static void known_calls(void)
{
    static const char line[] = "%ld 0x7f00 0x80 0x2 0x0 0x0 0x0 0x7ffc00 0x7f01\n";
    CHECK_TEXT(reason(line, SYS_futex), "[waits: lock]");
    CHECK_TEXT(reason(line, SYS_epoll_pwait), "[waits: poll]");
    CHECK_TEXT(reason(line, SYS_clock_nanosleep), "[waits: sleep]");
    CHECK_TEXT(reason(line, SYS_recvfrom), "[waits: receive]");
    CHECK_TEXT(reason(line, 9999), "[waits: system call 9999]");
}

static void no_call(void)
{
    CHECK_TEXT(reason("running\n", 0), "");
    CHECK_TEXT(reason("-1 0x7ffc00 0x7f01\n", 0), ""); /* stopped outside of a call */
    CHECK_TEXT(reason("", 0), "");
    CHECK_TEXT(reason("99999999999999999999 0x0", 0), "");
}

/* A thread that sleeps, whatever file of it is read. */
static bool text_of_a_sleeper(void *context, uint32_t pid, uint32_t tid, const char *name, struct buf *out,
                              struct err *err)
{
    (void)context, (void)pid, (void)tid, (void)err;
    const char *text = strcmp(name, "schedstat") == 0 ? "100 0 1\n"
                                                      : "2 (a) S 0 0 0 0 -1 0 0 0 0 0 0 15 0 0 20 -5 1 0 12 0 0\n";
    buf_clear(out);
    buf_add(out, text, strlen(text));
    return true;
}

static void note_plan(const void *state, void *plan, const struct runtime_thread *thread, struct memory_batch *memory,
                      struct runtime_stack *out)
{
    (void)thread, (void)memory, (void)out;
    *(void **)(uintptr_t)state = plan;
}

static void plan_is_aligned(void)
{
    void *plan = NULL;
    struct err err;
    const struct world world = {.text = text_of_a_sleeper};
    struct images images = {.world = &world};
    struct targets targets = {.images = &images};
    const struct runtime runtime = {.walk = note_plan};
    struct reader reader = {.runtime = &runtime, .state = &plan, .pid = 2, .serial = 1};
    struct waits w;
    CHECK(waits_init(&w, NULL, NULL, &targets, &err));
    CHECK_INT(waits_node(&w, NULL, &reader, 2), 0);
    CHECK(plan != NULL);
    CHECK_INT((uintptr_t)plan % 16, 0);
    waits_release(&w);
}

TESTS_THAT_MEASURE({"a system call is told by what one waits for in it", known_calls},
      {"a thread outside of system calls waits for nothing that is known", no_call},
      {"a runtime's plan of a waiting thread is aligned", plan_is_aligned})

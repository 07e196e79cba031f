/* Looking at threads that wait, in a world that the test makes up. */
#include "capture/stacks/readers.h"
#include "capture/stacks/waits.h"
#include "test.h"

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

TESTS({"a runtime's plan of a waiting thread is aligned", plan_is_aligned})

/*
 * Any memory as a PHP process whose stack is walked and named. A sound process is made first (unit/php_process.h); the
 * input then changes it: one byte for the version, one for how the walk is called, and steps of six bytes (what to do,
 * where, which value), between which the thread is walked; some take effect between two pieces of a batch, as in a
 * running process.
 */
#include "../../src/base/utf8.h"
#include "../unit/php_process.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEP = 6, WALKS_MAX = 24, BATCHES_MAX = 200 };

static struct php_process process;
static const uint8_t *steps;
static size_t left;

/* A pointer into the memory, a small number, a large one, a pointer beside it. */
static uint64_t value_of(unsigned kind, uint64_t number)
{
    switch (kind & 3) {
    case 0:
        return PHP_BASE + number * 8;
    case 1:
        return number;
    case 2:
        return ~number;
    default:
        return PHP_BASE - 0x8000 + number;
    }
}

/* Where the structures are: globals, functions and texts; frames. */
static uint64_t place_of(uint64_t number)
{
    return (number & 0x1000) != 0 ? AT_PAGE + (number & 0xfff) * 8 : AT_GLOBALS + (number & 0xfff) * 8;
}

/* One step of the input; false when it was the end of a walk, or of the input. */
static bool step(struct php_process *p)
{
    if (left < STEP) {
        left = 0;
        return false;
    }
    const uint8_t *s = steps;
    uint64_t where = place_of((uint64_t)(s[1] | s[2] << 8)), number = (uint64_t)(s[3] | s[4] << 8);
    steps += STEP;
    left -= STEP;
    php_put(p, where, value_of(s[0] >> 4, number) << (s[5] & 31));
    return s[0] % 8 != 7;
}

static void at_piece(struct php_process *p, unsigned piece)
{
    if (piece % 3 == 1) {
        (void)step(p);
    }
}

static void walk(struct php *php, void *plan, void *names, uint8_t how)
{
    static struct runtime_stack stack;
    static struct runtime_name name[RUNTIME_FRAMES_MAX];
    struct memory_batch memory = {php_process_read, &process};
    struct runtime_thread thread = {.tid = PHP_TID, .proven_later = how & 4, .takes_parts = how & 8};
    process.reads = 0;
    php_walk(php, plan, &thread, &memory, &stack);
    if (stack.count > RUNTIME_FRAMES_MAX || stack.end >= RUNTIME_END_COUNT || process.reads > BATCHES_MAX ||
        (stack.end != RUNTIME_COMPLETE && stack.count != 0) ||
        !utf8_valid((struct str){stack.task, stack.task_bytes})) {
        abort();
    }
    php_name_frames(names, stack.frame, stack.count, &memory, name);
    for (uint32_t i = 0; i < stack.count; i++) {
        if (name[i].function.len > 2 * RUNTIME_NAME_MAX + 2 || name[i].file.len > RUNTIME_NAME_MAX) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint64_t plan[RUNTIME_PLAN_MAX / sizeof(uint64_t)];
    struct php *php;
    if (size < 2) {
        return 0;
    }
    if (data[1] & 32) {
        php_make_threads(&process, &php_families[data[0] % PHP_FAMILIES], 1 + data[0] % 5);
    } else {
        php_make(&process, &php_families[data[0] % PHP_FAMILIES]);
    }
    process.shows_urls = data[1] & 64;
    if (php_process_attach(&process, &php, NULL) != RUNTIME_YES) {
        abort();
    }
    void *names = php_open_names(php);
    memset(plan, 0, sizeof plan);
    steps = data + 2;
    left = size - 2;
    process.at_piece = data[1] & 16 ? at_piece : NULL;
    for (unsigned i = 0; i < WALKS_MAX && names != NULL; i++) {
        walk(php, plan, names, data[1]);
        while (step(&process)) {
        }
    }
    php_close_names(names);
    php_detach(php);
    return 0;
}

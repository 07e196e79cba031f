/*
 * Any memory as a Perl process whose threads are walked and named. A sound process is made first
 * (unit/perl_process.h); the input then changes it: one byte for the version, one for how the walk is called, and
 * steps of six bytes (what to do, where, which value), between which it is walked; some take effect between two
 * pieces of a batch, as in a running process.
 */
#include "../unit/perl_process.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEP = 6, WALKS_MAX = 24, BATCHES_MAX = 400 };

static struct perl_process process;
static const uint8_t *steps;
static size_t left;

/* A pointer into the memory, a small number, a large one, a pointer beside it. */
static uint64_t value_of(unsigned kind, uint64_t number)
{
    switch (kind & 3) {
    case 0:
        return PERL_BASE + number * 8;
    case 1:
        return number;
    case 2:
        return ~number;
    default:
        return PERL_BASE - 0x8000 + number;
    }
}

/* One step of the input; false when it was the end of a walk, or of the input. */
static bool step(struct perl_process *p)
{
    if (left < STEP) {
        left = 0;
        return false;
    }
    const uint8_t *s = steps;
    uint64_t where = (uint64_t)(s[1] | s[2] << 8) * 8, number = (uint64_t)(s[3] | s[4] << 8);
    steps += STEP;
    left -= STEP;
    if (where < PERL_BYTES - 8) {
        perl_put(p, where, value_of(s[0] >> 4, number) << (s[5] & 31));
    }
    return s[0] % 8 != 7;
}

static void at_piece(struct perl_process *p, unsigned piece)
{
    if (piece % 3 == 1) {
        (void)step(p);
    }
}

static void walk(struct perl *perl, void *plan, void *names, uint8_t how)
{
    static struct runtime_stack stack;
    static struct runtime_name name[RUNTIME_FRAMES_MAX];
    struct memory_batch memory = {perl_process_read, &process};
    const struct runtime_registers registers = {PERL_BASE + 0x110, 0, 0};
    struct runtime_thread thread = {.tid = how & 1 ? PERL_OTHER_TID : PERL_TID,
                                    .registers = how & 2 ? &registers : NULL,
                                    .proven_later = how & 4, .takes_parts = how & 8};
    process.reads = 0;
    perl_walk(perl, plan, &thread, &memory, &stack);
    if (stack.count > RUNTIME_FRAMES_MAX || stack.end >= RUNTIME_END_COUNT || process.reads > BATCHES_MAX ||
        (stack.end != RUNTIME_COMPLETE && stack.count != 0)) {
        abort();
    }
    perl_name_frames(names, stack.frame, stack.count, &memory, name);
    for (uint32_t i = 0; i < stack.count; i++) {
        if (name[i].function.len > RUNTIME_NAME_MAX || name[i].file.len > RUNTIME_NAME_MAX) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint64_t plan[RUNTIME_PLAN_MAX / sizeof(uint64_t)];
    struct perl *perl;
    if (size < 2) {
        return 0;
    }
    perl_make(&process, &perl_families[data[0] % PERL_FAMILIES]);
    process.binary.entersub = 0x100;
    process.binary.entersub_limit = 0x200;
    if (process.binary.interpreter != 0) {
        perl_add_thread(&process, data[0] & 64 ? 0x6a8 : 0x780);
    }
    if (perl_process_attach(&process, &perl, NULL) != RUNTIME_YES) {
        abort();
    }
    void *names = perl_open_names(perl);
    memset(plan, 0, sizeof plan);
    steps = data + 2;
    left = size - 2;
    process.at_piece = data[1] & 16 ? at_piece : NULL;
    for (unsigned i = 0; i < WALKS_MAX && names != NULL; i++) {
        walk(perl, plan, names, (uint8_t)(data[1] + (data[1] & 32 ? i : 0)));
        while (step(&process)) {
        }
    }
    perl_close_names(names);
    perl_detach(perl);
    return 0;
}

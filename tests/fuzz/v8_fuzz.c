/*
 * Any process as one of V8: a well-made one (tests/unit/v8_process.h), spoiled by records of a place (16 bits) and a
 * word, of which those at its memory's end are words of the sampled stack, or what the binary tells of its objects. It
 * is asked about addresses in its code and elsewhere, as leaves and as callers. What is told must be bounded, and cost
 * a bounded number of reads.
 */
#include "../unit/stack_words.h"
#include "../unit/v8_process.h"
#include "base/cursor.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CONSTANTS = 64, ASK_READS_MAX = 20000 };

static void spoil(struct v8_process *p, struct cursor c)
{
    memset(words, 0, sizeof words);
    words[7] = v8_tag(AT_SCRIPT);
    words[6] = v8_tag(AT_CLOSURES);
    words[4] = v8_tag(AT_BYTECODE);
    words[3] = v8_number(63);
    while (c.len >= 10) {
        uint32_t place = cursor_u16(&c);
        uint64_t word = cursor_u64(&c);
        uint32_t constants = V8_BYTES - CONSTANTS, first = constants - 8 * STACK_WORDS;
        if (place >= constants && place - constants < V8_CONSTANT_COUNT) {
            size_t which = place - constants;
            p->layout.at[which] = v8_is_sound(which, (int32_t)word) ? (int32_t)word : p->layout.at[which];
        } else if (place >= first && place < constants) {
            words[(place - first) / 8] = word;
        } else if (place <= V8_BYTES - 8) {
            v8_put(p, place, word, 8);
        }
    }
}

static void ask(struct v8_process *p, void *v8, uint64_t ip, bool leaf)
{
    static const uint64_t all[33] = {[12] = AT(AT_BYTECODE + 1), [9] = 67};
    const struct runtime_registers registers = {.ip = ip, .sp = STACK, .fp = STACK + 0x40, .all = leaf ? all : NULL};
    const struct runtime_place place = {leaf ? ip : ip - 1, &registers, &stack};
    struct runtime_resolved found;
    unsigned before = p->reads;
    bool known = runtime_v8.resolve(v8, &place, &found);
    if (p->reads - before > ASK_READS_MAX || (known && found.lines.count > PROFILE_INLINES_MAX)) {
        abort();
    }
    for (size_t i = 0; known && i < found.lines.count; i++) {
        volatile char last =
            found.lines.line[i].name.len > 0 ? found.lines.line[i].name.ptr[found.lines.line[i].name.len - 1] : 0;
        (void)last;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct v8_process p;
    struct err err = {0};
    void *v8;
    v8_make(&p);
    spoil(&p, cursor_of(data, size));
    if (v8_attach(&p, &v8, &err) != RUNTIME_YES) {
        return 0;
    }
    static const uint32_t codes[] = {AT_STREAM_CODE, AT_BASELINE_CODE, AT_REGEXP + 0x20, AT_BUILTINS, 0x8000};
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
            for (uint32_t at = 0; at < 0x100; at += 0x10) {
                ask(&p, v8, AT(codes[i] + at), (at & 0x10) != 0);
            }
        }
    }
    runtime_v8.detach(v8);
    return 0;
}

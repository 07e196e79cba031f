/*
 * Any process as one of HotSpot: a well-made one (tests/unit/java_process.h), spoiled by records of a place (16 bits)
 * and a word, of which those at places beyond its memory are words of the sampled stack. It is attached to, and asked
 * about addresses in its code and elsewhere, as leaves and as callers. What is told must be bounded, and cost a
 * bounded number of reads.
 */
#include "../unit/java_process.h"
#include "../unit/stack_words.h"
#include "base/cursor.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ATTACH_READS_MAX = 2000, ASK_READS_MAX = 6000 };

static void spoil(struct java_process *p, struct cursor c)
{
    memset(words, 0, sizeof words);
    words[8 - 1] = STACK + 0x60;
    words[8 - 3] = AT(AT_METHODS);
    while (c.len >= 10) {
        uint16_t place = cursor_u16(&c);
        uint64_t word = cursor_u64(&c);
        if (place >= JAVA_BYTES - STACK_WORDS * 8) {
            words[(place - (JAVA_BYTES - STACK_WORDS * 8)) / 8] = word;
        } else {
            java_put(p, place, word, 8);
        }
    }
}

static void ask(struct java_process *p, void *java, uint64_t ip, bool leaf)
{
    const struct runtime_registers registers = {.ip = ip, .sp = STACK, .fp = STACK + 0x40};
    const struct runtime_place place = {leaf ? ip : ip - 1, &registers, &stack};
    struct runtime_resolved found;
    unsigned before = p->reads;
    bool known = runtime_java.resolve(java, &place, &found);
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
    static struct java_process p;
    struct err err = {0};
    void *java;
    java_make(&p);
    spoil(&p, cursor_of(data, size));
    enum runtime_answer answer = java_attach(&p, &java, &err);
    if ((answer == RUNTIME_YES) != (java != NULL) || (answer != RUNTIME_YES && err.kind == ERR_NONE) ||
        p.reads > ATTACH_READS_MAX) {
        abort();
    }
    for (uint64_t at = 0; java != NULL && at < JAVA_BYTES; at += 0x40) {
        ask(&p, java, AT(at), (at & 0x80) != 0);
    }
    if (java != NULL) {
        runtime_java.detach(java);
    }
    return 0;
}

/*
 * The moved part of a function whose symbols are gone. Unwind tables still know each part's range,
 * and the parts jump to each other: the main part to the moved one with direct jumps that leave it
 * (E9 rel32 and 0F 8x rel32; B, B.cond, CBZ and TBZ on AArch64), the moved one back into the middle
 * of the main part, which no other function ever does. Instructions are not decoded: bytes that
 * only look like a jump lead to places that do not jump back.
 */
#include "runtime/common/ranges.h"

#include "base/cursor.h"

#include <stdlib.h>

enum {
    PART_MAX_BYTES = 1 << 20,
    CANDIDATES = 64,
    LOOKUPS_MAX = 65536,
    BACK_JUMPS = 2, /* that prove a part */
};

struct part {
    uint64_t start, limit;
    unsigned hits;
};

struct search {
    struct elf *elf;
    const struct runtime_code *code;
    uint64_t start, limit; /* of the main part */
    struct part parts[CANDIDATES];
    size_t count;
    unsigned lookups;
    unsigned back; /* jumps into the middle of the main part */
};

/* ---- jumps ---- */

static uint64_t x86_target(const unsigned char *p, size_t len, uint64_t address, size_t *bytes)
{
    *bytes = len >= 5 && p[0] == 0xe9                                    ? 5
             : len >= 6 && p[0] == 0x0f && (p[1] & 0xf0) == 0x80 ? 6
                                                                         : 0;
    struct cursor c = cursor_of(p + *bytes - (*bytes == 0 ? 0 : 4), *bytes == 0 ? 0 : 4);
    return address + *bytes + (uint64_t)(int64_t)(int32_t)cursor_u32(&c);
}

static uint64_t signed_words(uint32_t value, unsigned bits)
{
    uint64_t sign = 1ULL << (bits - 1);
    return (((uint64_t)value & (2 * sign - 1)) ^ sign) * 4 - sign * 4;
}

/* Arm ARM C4.1: unconditional, conditional, compare, test. */
static uint64_t aarch64_target(const unsigned char *p, size_t len, uint64_t address,
                               size_t *bytes)
{
    struct cursor c = cursor_of(p, len);
    uint32_t word = cursor_u32(&c);
    *bytes = len >= 4 ? 4 : 0;
    if ((word & 0xfc000000) == 0x14000000) {
        return address + signed_words(word, 26);
    }
    if ((word & 0xff000010) == 0x54000000 || (word & 0x7e000000) == 0x34000000) {
        return address + signed_words(word >> 5, 19);
    }
    if ((word & 0x7e000000) == 0x36000000) {
        return address + signed_words(word >> 5, 14);
    }
    *bytes = 0;
    return 0;
}

/* Calls `each` with where every direct jump of [start, limit) leads. */
static void each_jump(struct search *s, uint64_t start, uint64_t limit,
                      void (*each)(struct search *, uint64_t target))
{
    size_t len = limit - start < PART_MAX_BYTES ? (size_t)(limit - start) : PART_MAX_BYTES;
    unsigned char *code = malloc(len);
    uint64_t offset;
    bool arm = s->elf->machine == ELF_AARCH64;
    if (code != NULL && elf_offset_of(s->elf, start, &offset) &&
        elf_read(s->elf, offset, code, len, NULL)) {
        for (size_t at = 0; at < len; at += arm ? 4 : 1) {
            size_t bytes;
            uint64_t target = arm ? aarch64_target(code + at, len - at, start + at, &bytes)
                                  : x86_target(code + at, len - at, start + at, &bytes);
            if (bytes != 0) {
                each(s, target);
            }
        }
    }
    free(code);
}

/* ---- parts ---- */

static bool is_inside(const struct search *s, uint64_t address)
{
    return address > s->start && address < s->limit;
}

static struct part *part_of(struct search *s, uint64_t address)
{
    struct part found = {0};
    for (size_t i = 0; i < s->count; i++) {
        if (address >= s->parts[i].start && address < s->parts[i].limit) {
            return &s->parts[i];
        }
    }
    if (s->count == CANDIDATES || s->lookups++ >= LOOKUPS_MAX ||
        !s->code->function_at(s->code->context, address, &found.start, &found.limit) ||
        found.start >= found.limit || address < found.start || address >= found.limit ||
        is_inside(s, found.start) || (found.start <= s->start && found.limit > s->start)) {
        return NULL;
    }
    s->parts[s->count] = found;
    return &s->parts[s->count++];
}

static void take_leaving(struct search *s, uint64_t target)
{
    if (target < s->elf->text_start || target >= s->elf->text_limit || target == s->start ||
        is_inside(s, target)) {
        return;
    }
    struct part *part = part_of(s, target);
    if (part != NULL) {
        part->hits++;
    }
}

static void take_returning(struct search *s, uint64_t target)
{
    s->back += is_inside(s, target);
}

size_t code_find_cold(struct elf *elf, const struct runtime_code *code, uint64_t start,
                        uint64_t limit, struct code_range *out, size_t max)
{
    struct search s = {.elf = elf, .code = code, .start = start, .limit = limit};
    size_t count = 0;
    if (code == NULL) { /* nobody knows where functions end */
        return 0;
    }
    each_jump(&s, start, limit, take_leaving);
    for (size_t i = 0; i < s.count && count < max; i++) {
        s.back = 0;
        each_jump(&s, s.parts[i].start, s.parts[i].limit, take_returning);
        if (s.back >= BACK_JUMPS) {
            out[count++] =
                (struct code_range){s.parts[i].start, s.parts[i].limit, RUNTIME_NATIVE_LOOP};
        }
    }
    return count;
}

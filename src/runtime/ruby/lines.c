/* Which line a position is on. Up to 2.5 a table's entries begin with their position; from 2.6 on an index of bits
 * tells how many entries there are up to a position: nine counts of 7 bits in each of its first six words, for the
 * first 54 positions, then blocks of 512: how many before the block, before each of its small blocks of 64 (9 bits
 * each, none for the first), and the bits themselves. Zero words are as good as others: iseq.c, succ_index_lookup. */
#include "runtime/ruby/private.h"

enum {
    FIRST_WORDS = 6,
    A_WORD = 9,
    FIRST = FIRST_WORDS * A_WORD, /* positions that the first words tell */
    BLOCK = 512,
    BLOCK_BYTES = 80,
    SMALL_COUNTS = 8, /* in a block */
    SMALL_BITS = 16,
};

size_t ruby_index_bytes(uint32_t positions)
{
    size_t blocks = positions > FIRST ? (positions - FIRST + BLOCK - 1) / BLOCK : 0;
    return 8 * FIRST_WORDS + blocks * BLOCK_BYTES;
}

/* How many entries there are up to the position. */
static uint32_t rank_of(const struct ruby_lines *lines, uint32_t position)
{
    if (lines->index_bytes < 8 * FIRST_WORDS) {
        return 0;
    }
    if (position < FIRST) {
        return load_u64(lines->index + 8 * (position / A_WORD)) >> (7 * (position % A_WORD)) & 0x7f;
    }
    uint32_t in = (position - FIRST) % BLOCK, small = in / 64;
    size_t at = 8 * FIRST_WORDS + (size_t)((position - FIRST) / BLOCK) * BLOCK_BYTES;
    if (at + BLOCK_BYTES > lines->index_bytes) {
        return 0;
    }
    const unsigned char *block = lines->index + at;
    uint64_t before = small > 0 ? load_u64(block + SMALL_COUNTS) >> (9 * (small - 1)) & 0x1ff : 0;
    uint64_t bits = load_u64(block + SMALL_BITS + 8 * small) << (63 - in % 64);
    return load_u32(block) + (uint32_t)before + (uint32_t)__builtin_popcountll(bits);
}

static uint32_t rank_by_position(const struct ruby_lines *lines, uint32_t position)
{
    uint32_t low = 0, high = lines->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (load_u32(lines->entries + (size_t)middle * lines->entry_bytes) <= position) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

uint32_t ruby_line(const struct ruby_lines *lines, uint32_t position)
{
    uint32_t rank = lines->count <= 1   ? lines->count
                    : lines->by_position ? rank_by_position(lines, position)
                                         : rank_of(lines, position);
    if (rank == 0 || rank > lines->count) {
        return 0;
    }
    return load_u32(lines->entries + (size_t)(rank - 1) * lines->entry_bytes + (lines->by_position ? 4 : 0));
}

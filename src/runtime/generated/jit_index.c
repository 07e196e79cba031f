/* Generated code by address and time: an ordered list of blocks of the code that is there now, a list of what was
 * overwritten (the same address may hold other code later), and their texts. All of it stays within a
 * limit in bytes; the past goes first. */
#include "runtime/generated/jit_index.h"

#include <stdlib.h>

enum {
    BLOCK_CODES = 127, /* with the length 3 KiB */
    JOINED_CODES = BLOCK_CODES / 8 * 7, /* joined blocks keep room for additions */
    RESERVE_BYTES = 16384,              /* for new blocks and their list */
    RECLAIM_STEP = 64,
};

struct jit_block {
    size_t len;
    struct jit_code at[BLOCK_CODES];
};

void jit_index_release(struct jit_index *index)
{
    vec_each(&index->blocks, block) {
        free(*block);
    }
    vec_release(&index->blocks);
    vec_release(&index->past);
    jit_texts_release(&index->texts);
}

size_t jit_index_bytes(const struct jit_index *index)
{
    return index->blocks.len * sizeof(struct jit_block) +
           index->blocks.cap * sizeof *index->blocks.at +
           index->past.cap * sizeof *index->past.at + jit_texts_bytes(&index->texts);
}

static size_t room_of(const struct jit_index *index)
{
    size_t used = jit_index_bytes(index) + RESERVE_BYTES;
    return used < index->max_bytes ? index->max_bytes - used : 0;
}

static uint64_t limit_of(const struct jit_code *code)
{
    return code->start + code->bytes;
}

/* The last block that begins at or below `address`; the first when none does. */
static size_t block_of(const struct jit_index *index, uint64_t address)
{
    size_t low = 0, high = index->blocks.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (index->blocks.at[middle]->at[0].start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 ? low - 1 : 0;
}

/* How many codes of a block start below `address`. */
static size_t count_below(const struct jit_block *block, uint64_t address)
{
    size_t low = 0, high = block->len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (block->at[middle].start < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* ---- What is gone ---- */

static void forget_older_half(struct jit_index *index)
{
    size_t gone = index->past.len - index->past.len / 2;
    if (gone > 0) {
        index->past.len -= gone;
        memmove(index->past.at, index->past.at + gone, index->past.len * sizeof *index->past.at);
    }
}

static void remember(struct jit_index *index, const struct jit_code *code, uint64_t death_ns)
{
    if (code->birth_ns == 0 || death_ns <= code->birth_ns) {
        return; /* a perf map's, or never seen */
    }
    if (index->past.len == JIT_PAST_MAX ||
        (index->past.len == index->past.cap &&
         room_of(index) < (index->past.cap / 2 + 8) * sizeof *index->past.at)) {
        forget_older_half(index);
    }
    struct jit_past *past = index->past.len < index->past.cap || room_of(index) > 0
                                ? vec_push(&index->past)
                                : NULL;
    if (past != NULL) {
        uint64_t before = index->past.len > 1 ? past[-1].death_ns : 0;
        *past = (struct jit_past){*code, death_ns > before ? death_ns : before};
    }
}

static const struct jit_code *find_past(const struct jit_index *index, uint64_t address,
                                        uint64_t time_ns)
{
    for (size_t i = index->past.len; i > 0 && index->past.at[i - 1].death_ns > time_ns; i--) {
        const struct jit_code *code = &index->past.at[i - 1].code;
        if (address >= code->start && address < limit_of(code) && code->birth_ns <= time_ns) {
            return code;
        }
    }
    return NULL;
}

const struct jit_code *jit_index_find(const struct jit_index *index, uint64_t address,
                                      uint64_t time_ns)
{
    if (index->blocks.len > 0) {
        const struct jit_block *block = index->blocks.at[block_of(index, address)];
        size_t at = address == UINT64_MAX ? block->len : count_below(block, address + 1);
        if (at > 0 && address < limit_of(&block->at[at - 1]) &&
            block->at[at - 1].birth_ns <= time_ns) {
            return &block->at[at - 1];
        }
    }
    return find_past(index, address, time_ns);
}

/* ---- What is there ---- */

static void remove_block(struct jit_index *index, size_t at)
{
    free(index->blocks.at[at]);
    index->blocks.len--;
    memmove(&index->blocks.at[at], &index->blocks.at[at + 1],
            (index->blocks.len - at) * sizeof *index->blocks.at);
}

/* Takes codes [from, to) out of a block, which may become empty. */
static void take_out(struct jit_index *index, struct jit_block *block, size_t from, size_t to,
                     uint64_t time_ns)
{
    for (size_t i = from; i < to; i++) {
        remember(index, &block->at[i], time_ns);
    }
    memmove(&block->at[from], &block->at[to], (block->len - to) * sizeof block->at[0]);
    block->len -= to - from;
    index->names -= to - from;
    index->replaced += to - from;
}

/* Makes the range of new code free. */
static void clear_range(struct jit_index *index, const struct jit_code *code)
{
    size_t b = block_of(index, code->start);
    while (b < index->blocks.len && index->blocks.at[b]->at[0].start < limit_of(code)) {
        struct jit_block *block = index->blocks.at[b];
        size_t from = count_below(block, code->start), to = count_below(block, limit_of(code));
        if (from > 0 && limit_of(&block->at[from - 1]) > code->start) {
            remember(index, &block->at[from - 1], code->birth_ns);
            block->at[from - 1].bytes = (uint32_t)(code->start - block->at[from - 1].start);
        }
        take_out(index, block, from, to, code->birth_ns);
        if (block->len == 0) {
            remove_block(index, b);
        } else {
            b++;
        }
    }
}

static struct jit_block *new_block(struct jit_index *index, size_t at)
{
    struct jit_block *block = NULL;
    size_t list_bytes = (index->blocks.cap / 2 + 8) * sizeof block; /* vec's growth */
    if (jit_index_bytes(index) + sizeof *block + list_bytes <= index->max_bytes) {
        block = malloc(sizeof *block);
    }
    if (block == NULL || vec_push(&index->blocks) == NULL) {
        free(block);
        return NULL;
    }
    memmove(&index->blocks.at[at + 1], &index->blocks.at[at],
            (index->blocks.len - 1 - at) * sizeof *index->blocks.at);
    index->blocks.at[at] = block;
    block->len = 0;
    return block;
}

/* Halves a full block; behind its last code, where code made in order comes, it stays full. */
static struct jit_block *split(struct jit_index *index, size_t b, size_t *at)
{
    struct jit_block *block = index->blocks.at[b], *next = new_block(index, b + 1);
    size_t kept = *at == block->len ? block->len : block->len / 2;
    if (next == NULL) {
        return NULL;
    }
    next->len = block->len - kept;
    memcpy(next->at, &block->at[kept], next->len * sizeof next->at[0]);
    block->len = kept;
    if (*at < kept) {
        return block;
    }
    *at -= kept;
    return next;
}

/* Into a range that is free. */
static bool put(struct jit_index *index, const struct jit_code *code)
{
    size_t b = block_of(index, code->start);
    struct jit_block *block = index->blocks.len > 0 ? index->blocks.at[b] : new_block(index, 0);
    size_t at = block != NULL ? count_below(block, code->start) : 0;
    if (block != NULL && block->len == BLOCK_CODES) {
        block = split(index, b, &at);
    }
    if (block == NULL) {
        return false;
    }
    memmove(&block->at[at + 1], &block->at[at], (block->len - at) * sizeof block->at[0]);
    block->at[at] = *code;
    block->len++;
    index->names++;
    return true;
}

/* ---- When memory is used up ---- */

static void join_blocks(struct jit_index *index)
{
    size_t kept = 0;
    vec_each(&index->blocks, each) {
        struct jit_block *block = *each, *last = kept > 0 ? index->blocks.at[kept - 1] : NULL;
        if (last != NULL && last->len + block->len <= JOINED_CODES) {
            memcpy(&last->at[last->len], block->at, block->len * sizeof block->at[0]);
            last->len += block->len;
            free(block);
        } else {
            index->blocks.at[kept++] = block;
        }
    }
    index->blocks.len = kept;
}

static void each_code(struct jit_index *index, void (*visit)(struct jit_texts *, struct jit_code *))
{
    vec_each(&index->blocks, block) {
        for (size_t i = 0; i < (*block)->len; i++) {
            visit(&index->texts, &(*block)->at[i]);
        }
    }
    vec_each(&index->past, past) {
        visit(&index->texts, &past->code);
    }
}

static void mark(struct jit_texts *texts, struct jit_code *code)
{
    jit_text_mark(texts, code->text);
}

static void follow(struct jit_texts *texts, struct jit_code *code)
{
    code->text = jit_text_moved(texts, code->text);
}

/* False when nothing was tried, because little was replaced since the last time. */
static bool reclaim(struct jit_index *index)
{
    if (index->replaced < index->next_reclaim) {
        return false;
    }
    index->next_reclaim = index->replaced + index->names / 32 + RECLAIM_STEP;
    forget_older_half(index);
    join_blocks(index);
    each_code(index, mark);
    if (jit_texts_sweep(&index->texts)) {
        each_code(index, follow);
        jit_texts_settle(&index->texts);
    }
    return true;
}

/* ---- */

static bool add(struct jit_index *index, struct jit_code code, struct str name, struct str lines)
{
    code.text = jit_text_add(&index->texts, name, lines, room_of(index));
    return code.text != 0 && put(index, &code);
}

void jit_index_add(struct jit_index *index, struct jit_code code, struct str name,
                   struct str lines)
{
    clear_range(index, &code); /* what was there is gone even when the new finds no room */
    if (!add(index, code, name, lines) &&
        (!reclaim(index) || !add(index, code, name, lines))) {
        index->refused++;
    }
}

bool jit_index_move(struct jit_index *index, uint64_t from, uint64_t to, uint64_t time_ns)
{
    const struct jit_code *found = jit_index_find(index, from, UINT64_MAX);
    if (found == NULL || found->start != from || to > UINT64_MAX - found->bytes) {
        return false;
    }
    struct jit_code old = *found, code = {to, time_ns, old.bytes, old.text};
    old.birth_ns = time_ns; /* until when its place is not its own */
    clear_range(index, &old);
    clear_range(index, &code);
    if (!put(index, &code)) {
        index->refused++;
    }
    return true;
}

/*
 * What is held of the target's memory during a walk: one window (a piece of the data stack, or of
 * the heap around a deep chain) and slots, one frame each.
 */
#include "runtime/python/walk.h"

enum {
    WINDOW_SLACK = 256,      /* behind the predicted top: the thread may have called once more */
    PAGE = 4096,             /* or more: it only decides what is read together */
};

/* ---- batches ---- */

uint32_t walk_ask(struct walk *w, uint64_t address, void *out, uint32_t len)
{
    if (w->pieces == WALK_PIECES_MAX || !plausible(address) || len == 0) {
        return 0;
    }
    w->piece[w->pieces] = (struct memory_piece){address, out, len, 0};
    return ++w->pieces;
}

void walk_ask_word(struct walk *w, enum walk_word word, uint64_t address, uint32_t len)
{
    (void)walk_ask(w, address, &w->word[word], len);
}

bool walk_read(struct walk *w)
{
    struct err err;
    if (w->batches == WALK_BATCHES_MAX || w->unreadable) {
        return false;
    }
    if (w->pieces == 0) {
        return true;
    }
    w->batches++;
    w->unreadable = !memory_batch_read(w->memory, w->piece, w->pieces, &err);
    return !w->unreadable;
}

/* ---- the arena ---- */

void walk_drop_slots(struct walk *w)
{
    w->slots = w->slot_hint = w->slot_first = 0;
    w->used = w->slots_at;
}

/* Slots end at `limit`, the window gets the rest. */
static void limit_slots(struct walk *w, uint32_t limit)
{
    w->slots_limit = limit;
    w->window_at = (limit + 15) & ~15U;
    w->window_room = (WALK_ARENA - w->window_at) / (w->twice ? 2 : 1) & ~15U;
    w->window_bytes = 0;
}

/* For a new window: what the slots do not need. */
void walk_grow_window(struct walk *w)
{
    uint32_t limit = w->used + WALK_SLOTS_LEAST;
    limit_slots(w, least(limit, w->slots_limit));
}

void walk_divide(struct walk *w)
{
    const struct python_plan *plan = w->plan;
    uint32_t room, window = 0;
    w->slots_at = (w->used + 15) & ~15U;
    room = WALK_ARENA - w->slots_at;
    w->deep = false;
    if (!on_heap(w)) {
        uint64_t part = plan->top - plan->chunk + WINDOW_SLACK;
        window = part < room ? (uint32_t)part * (w->twice ? 2 : 1) + 64 : room;
        window = window < room - WALK_SLOTS_LEAST ? window : room - WALK_SLOTS_LEAST;
    }
    walk_drop_slots(w);
    limit_slots(w, w->slots_at + room - window);
}

unsigned char *walk_window_copy(struct walk *w, uint32_t copy)
{
    return w->arena + w->window_at + copy * w->window_room;
}

/* ---- asking ---- */

void walk_ask_window(struct walk *w, uint64_t start, uint64_t limit)
{
    uint64_t len = limit - start < w->window_room ? limit - start : w->window_room;
    w->window = start;
    w->window_bytes = w->window_again = 0;
    w->window_piece = walk_ask(w, start, walk_window_copy(w, 0), (uint32_t)len);
}

static void ask_window_again(struct walk *w)
{
    if (w->twice && w->window_piece != 0) {
        w->window_again = walk_ask(w, w->window, walk_window_copy(w, 1),
                                   w->piece[w->window_piece - 1].len);
    }
}

/* `limit`: where the first frame of interest ends, or the top. When the chunk's first frame is in
 * the window, its header is, too. */
void walk_ask_stack(struct walk *w, uint64_t chunk, uint64_t limit)
{
    uint64_t room = w->window_room - WALK_CHUNK_START;
    uint64_t start = limit - chunk > room ? limit - room : chunk;
    walk_ask_window(w, start - chunk < WALK_CHUNK_START ? chunk : start, limit);
}

static uint32_t aligned(uint32_t bytes)
{
    return (bytes + 7) & ~7U;
}

/* What is asked for in the order of addresses, into the arena. */
struct run {
    uint32_t piece;  /* the last one's index + 1; 0: none yet */
    uint32_t gaps;   /* room in the arena for bytes that nobody asked for */
};

/* Is it so near behind the run's last piece that it is read with it? A piece of its own costs the
 * kernel as much as the copy of two pages, because it looks the page up again. */
static bool is_near(const struct run *run, const struct memory_piece *last, uint64_t start,
                    uint32_t bytes)
{
    uint64_t limit = last->address + last->len;
    bool same_page = last->address / PAGE == (start + bytes - 1) / PAGE;
    return start >= last->address &&
           (start <= limit || (same_page && start - limit <= run->gaps));
}

static bool extend(struct walk *w, struct run *run, uint64_t start, uint32_t bytes, uint16_t *at)
{
    struct memory_piece *last = &w->piece[run->piece - 1];
    if (!is_near(run, last, start, bytes)) {
        return false;
    }
    uint32_t offset = (uint32_t)(start - last->address);
    uint32_t len = offset + bytes > last->len ? offset + bytes : last->len;
    uint32_t first = (uint32_t)((unsigned char *)last->out - w->arena);
    if (aligned(len) > w->slots_limit - first) {
        return false;
    }
    run->gaps -= offset > last->len ? offset - last->len : 0;
    last->len = len;
    w->used = first + aligned(len);
    *at = (uint16_t)(first + offset);
    return true;
}

/* Where in the arena the bytes at `start` will be: in the run's last piece, or in one of their own.
 * False: there is no room, or it is no address. */
static bool ask_next(struct walk *w, struct run *run, uint64_t start, uint32_t bytes, uint16_t *at)
{
    if (run->piece != 0 && extend(w, run, start, bytes, at)) {
        return true;
    }
    bool fits = aligned(bytes) <= w->slots_limit - w->used;
    run->piece = fits ? walk_ask(w, start, w->arena + w->used, bytes) : 0;
    *at = (uint16_t)w->used;
    w->used += run->piece != 0 ? aligned(bytes) : 0;
    return run->piece != 0;
}

void walk_sort(const uint64_t *addresses, uint32_t count, uint8_t *order)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        for (; at > 0 && addresses[order[at - 1]] > addresses[i]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = (uint8_t)i;
    }
}

/* The first of them, as many as there is room for. The order of the addresses finds what is near
 * each other; among the frames of one batch it does not matter which is read first. */
void walk_ask_slots(struct walk *w, const uint64_t *addresses, const uint8_t *order,
                    uint32_t count)
{
    uint32_t each = aligned(w->bytes), room = w->slots_limit - w->used, first = w->slots;
    uint32_t links = w->twice ? least(count, WALK_LINKED) * aligned(w->link_bytes) : 0;
    uint32_t fit = least(count, WALK_SLOTS_MAX - first);
    fit = least(fit, room > links ? (room - links) / each : 0);
    struct run run = {0, fit > 0 ? (room - links - fit * each) / (w->twice ? 2 : 1) : 0};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = first + order[i];
        if (order[i] < fit) {
            bool asked = ask_next(w, &run, addresses[order[i]] + w->first, w->bytes,
                                  &w->slot_at[slot]);
            w->slot[slot] = asked ? addresses[order[i]] : 0;
            w->slot_piece[slot] = (uint8_t)(asked ? run.piece - 1 : 0);
            w->slot_link[slot] = 0;
        }
    }
    w->slots = first + fit;
    w->slot_order = order;
    w->slot_asked = count;
}

/* Code and link of the first of them once more. */
static void ask_links(struct walk *w)
{
    struct run run = {0, 0};
    for (uint32_t i = 0; w->twice && i < w->slot_asked; i++) {
        uint32_t slot = w->slot_first + w->slot_order[i];
        if (w->slot_order[i] >= WALK_LINKED || slot >= w->slots || w->slot[slot] == 0) {
            continue;
        }
        uint32_t left = w->slots_limit - w->used, each = aligned(w->link_bytes);
        run.gaps = left > WALK_LINKED * each ? left - WALK_LINKED * each : 0;
        if (!ask_next(w, &run, w->slot[slot] + w->link_first, w->link_bytes,
                      &w->slot_link[slot])) {
            w->slot_link[slot] = 0;
        }
    }
}

/* ---- taking ---- */

static void take_window(struct walk *w)
{
    if (w->window_piece == 0) {
        return;
    }
    uint32_t once = w->piece[w->window_piece - 1].got, again = once;
    if (w->twice) {
        again = w->window_again != 0 ? w->piece[w->window_again - 1].got : 0;
    }
    w->window_bytes = once < again ? once : again;
}

/* What did not come is no slot. */
static void take_slots(struct walk *w)
{
    for (uint32_t i = w->slot_first; i < w->slots; i++) {
        const struct memory_piece *piece = &w->piece[w->slot_piece[i]];
        uint64_t offset = w->slot[i] + w->first - piece->address;
        if (piece->got < offset + w->bytes) {
            w->slot[i] = 0;
        }
    }
}

/* ---- the first batch ---- */

void walk_ask_frames(struct walk *w)
{
    const struct python_plan *plan = w->plan;
    w->window_piece = 0;
    if (!on_heap(w) && plausible(plan->chunk) && plan->top > plan->chunk &&
        plan->top - plan->chunk < WALK_CHUNK_MAX) {
        walk_ask_stack(w, plan->chunk, plan->top + WINDOW_SLACK);
    }
    walk_ask_slots(w, plan->outside, plan->order, plan->outside_count);
}

void walk_ask_frames_again(struct walk *w)
{
    ask_window_again(w);
    ask_links(w);
}

void walk_take_frames(struct walk *w)
{
    take_window(w);
    take_slots(w);
}

/* ---- looking ---- */

static bool in_window(const struct walk *w, uint64_t address)
{
    uint64_t start = address + w->first;
    return start >= w->window && start - w->window < w->window_bytes &&
           w->window_bytes - (start - w->window) >= w->bytes;
}

static bool look_in_window(struct walk *w, uint64_t address, struct walk_bytes *out)
{
    uint64_t offset = address + w->first - w->window;
    if (!in_window(w, address)) {
        return false;
    }
    out->at = walk_window_copy(w, 0) + offset;
    out->link = w->twice ? walk_window_copy(w, 1) + offset + (w->link_first - w->first) : NULL;
    out->outside = on_heap(w);
    return true;
}

static bool take_slot(struct walk *w, uint32_t i, struct walk_bytes *out)
{
    out->at = w->arena + w->slot_at[i];
    out->link = w->slot_link[i] != 0 ? w->arena + w->slot_link[i] : NULL;
    out->outside = true;
    w->slot_hint = i + 1;
    return true;
}

/* The chain mostly follows the order in which frames were asked for. */
bool walk_look(struct walk *w, uint64_t address, struct walk_bytes *out)
{
    if (look_in_window(w, address, out)) {
        return true;
    }
    if (w->slot_hint < w->slots && w->slot[w->slot_hint] == address) {
        return take_slot(w, w->slot_hint, out);
    }
    for (uint32_t i = 0; i < w->slots; i++) {
        if (w->slot[i] == address) {
            return take_slot(w, i, out);
        }
    }
    return false;
}


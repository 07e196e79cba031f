/*
 * What is held of the target's memory during a walk: one window (a piece of the data stack, or of
 * the heap around a deep chain) and slots, one frame each.
 */
#include "runtime/python/walk.h"

enum {
    WINDOW_SLACK = 256,      /* behind the predicted top: the thread may have called once more … */
    WINDOW_PARTS_SLACK = 1024, /* … or some times, where it is not to be read again */
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
    w->slots.count = w->slots.hint = w->slots.first = 0;
    w->room.used = w->room.slots_at;
}

/* Slots end at `limit`, the window gets the rest. */
static void limit_slots(struct walk *w, uint32_t limit)
{
    w->room.slots_limit = limit;
    w->room.window_at = (limit + 15) & ~15U;
    w->room.window_room = (WALK_ARENA - w->room.window_at) / (w->twice ? 2 : 1) & ~15U;
    w->window.bytes = 0;
}

/* For a new window: what the slots do not need. */
void walk_grow_window(struct walk *w)
{
    uint32_t limit = w->room.used + WALK_SLOTS_LEAST;
    limit_slots(w, least(limit, w->room.slots_limit));
}

static uint64_t slack(const struct walk *w)
{
    return w->part.wanted ? WINDOW_PARTS_SLACK : WINDOW_SLACK;
}

void walk_divide(struct walk *w)
{
    const struct python_plan *plan = w->plan;
    uint32_t room, window = 0;
    w->room.slots_at = (w->room.used + 15) & ~15U;
    room = WALK_ARENA - w->room.slots_at;
    w->deep = false;
    if (!on_heap(w)) {
        uint64_t part = plan->top - plan->chunk + slack(w);
        window = part < room ? (uint32_t)part * (w->twice ? 2 : 1) + 64 : room;
        window = window < room - WALK_SLOTS_LEAST ? window : room - WALK_SLOTS_LEAST;
    }
    walk_drop_slots(w);
    limit_slots(w, w->room.slots_at + room - window);
}

unsigned char *walk_window_copy(struct walk *w, uint32_t copy)
{
    return w->arena + w->room.window_at + copy * w->room.window_room;
}

/* ---- asking ---- */

void walk_ask_window(struct walk *w, uint64_t start, uint64_t limit)
{
    uint64_t len = limit - start < w->room.window_room ? limit - start : w->room.window_room;
    w->window.address = start;
    w->window.bytes = w->window.again = 0;
    w->window.piece = walk_ask(w, start, walk_window_copy(w, 0), (uint32_t)len);
}

static void ask_window_again(struct walk *w)
{
    if (w->twice && w->window.piece != 0) {
        w->window.again = walk_ask(w, w->window.address, walk_window_copy(w, 1),
                                   w->piece[w->window.piece - 1].len);
    }
}

/* `limit`: where the first frame of interest ends, or the top. When the chunk's first frame is in
 * the window, its header is, too. */
void walk_ask_stack(struct walk *w, uint64_t chunk, uint64_t limit)
{
    uint64_t room = w->room.window_room - WALK_CHUNK_START;
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
    if (aligned(len) > w->room.slots_limit - first) {
        return false;
    }
    run->gaps -= offset > last->len ? offset - last->len : 0;
    last->len = len;
    w->room.used = first + aligned(len);
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
    bool fits = aligned(bytes) <= w->room.slots_limit - w->room.used;
    run->piece = fits ? walk_ask(w, start, w->arena + w->room.used, bytes) : 0;
    *at = (uint16_t)w->room.used;
    w->room.used += run->piece != 0 ? aligned(bytes) : 0;
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
    uint32_t each = aligned(w->view.bytes), room = w->room.slots_limit - w->room.used, first = w->slots.count;
    uint32_t links = w->twice ? least(count, WALK_LINKED) * aligned(w->view.link_bytes) : 0;
    uint32_t fit = least(count, WALK_SLOTS_MAX - first);
    fit = least(fit, room > links ? (room - links) / each : 0);
    struct run run = {0, fit > 0 ? (room - links - fit * each) / (w->twice ? 2 : 1) : 0};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = first + order[i];
        if (order[i] < fit) {
            bool asked = ask_next(w, &run, addresses[order[i]] + w->view.first, w->view.bytes,
                                  &w->slots.at[slot]);
            w->slots.address[slot] = asked ? addresses[order[i]] : 0;
            w->slots.piece[slot] = (uint8_t)(asked ? run.piece - 1 : 0);
            w->slots.link[slot] = 0;
        }
    }
    w->slots.count = first + fit;
    w->slots.order = order;
    w->slots.asked = count;
}

/* Code and link of the first of them once more. */
static void ask_links(struct walk *w)
{
    struct run run = {0, 0};
    for (uint32_t i = 0; w->twice && i < w->slots.asked; i++) {
        uint32_t slot = w->slots.first + w->slots.order[i];
        if (w->slots.order[i] >= WALK_LINKED || slot >= w->slots.count || w->slots.address[slot] == 0) {
            continue;
        }
        uint32_t left = w->room.slots_limit - w->room.used, each = aligned(w->view.link_bytes);
        run.gaps = left > WALK_LINKED * each ? left - WALK_LINKED * each : 0;
        if (!ask_next(w, &run, w->slots.address[slot] + w->view.link_first, w->view.link_bytes,
                      &w->slots.link[slot])) {
            w->slots.link[slot] = 0;
        }
    }
}

/* ---- taking ---- */

static void take_window(struct walk *w)
{
    if (w->window.piece == 0) {
        return;
    }
    uint32_t once = w->piece[w->window.piece - 1].got, again = once;
    if (w->twice) {
        again = w->window.again != 0 ? w->piece[w->window.again - 1].got : 0;
    }
    w->window.bytes = once < again ? once : again;
}

/* What did not come is no slot. */
static void take_slots(struct walk *w)
{
    for (uint32_t i = w->slots.first; i < w->slots.count; i++) {
        const struct memory_piece *piece = &w->piece[w->slots.piece[i]];
        uint64_t offset = w->slots.address[i] + w->view.first - piece->address;
        if (piece->got < offset + w->view.bytes) {
            w->slots.address[i] = 0;
        }
    }
}

/* ---- the first batch ---- */

void walk_ask_frames(struct walk *w)
{
    const struct python_plan *plan = w->plan;
    w->window.piece = 0;
    if (!on_heap(w) && plausible(plan->chunk) && plan->top > plan->chunk &&
        plan->top - plan->chunk < WALK_CHUNK_MAX) {
        walk_ask_stack(w, plan->chunk, plan->top + slack(w));
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

/* ---- finding ---- */

static bool in_window(const struct walk *w, uint64_t address)
{
    uint64_t start = address + w->view.first;
    return start >= w->window.address && start - w->window.address < w->window.bytes &&
           w->window.bytes - (start - w->window.address) >= w->view.bytes;
}

static bool held_in_window(struct walk *w, uint64_t address, struct walk_bytes *out)
{
    uint64_t offset = address + w->view.first - w->window.address;
    if (!in_window(w, address)) {
        return false;
    }
    out->at = walk_window_copy(w, 0) + offset;
    out->link = w->twice ? walk_window_copy(w, 1) + offset + (w->view.link_first - w->view.first) : NULL;
    out->outside = on_heap(w);
    return true;
}

static bool take_slot(struct walk *w, uint32_t i, struct walk_bytes *out)
{
    out->at = w->arena + w->slots.at[i];
    out->link = w->slots.link[i] != 0 ? w->arena + w->slots.link[i] : NULL;
    out->outside = true;
    w->slots.hint = i + 1;
    return true;
}

/* The chain mostly follows the order in which frames were asked for. */
bool walk_held(struct walk *w, uint64_t address, struct walk_bytes *out)
{
    if (held_in_window(w, address, out)) {
        return true;
    }
    if (w->slots.hint < w->slots.count && w->slots.address[w->slots.hint] == address) {
        return take_slot(w, w->slots.hint, out);
    }
    for (uint32_t i = 0; i < w->slots.count; i++) {
        if (w->slots.address[i] == address) {
            return take_slot(w, i, out);
        }
    }
    return false;
}


/* What was not predicted, by further batches. Each fetches the missing frame, and with it what probably comes next: the
 * rest of its chunk, the older chunk, the frames behind it in the last stack, or in a recursion the same distances
 * again. Where copies are read twice, so are the top and the joint in each batch: a change makes the stack torn. */
#include "runtime/python/walk.h"

enum {
    CHUNK_OLDER = 0,         /* a chunk begins with {previous, size, top} and its data: */
    CHUNK_SIZE = 8,          /* Include/internal/pycore_pystate.h */
    CHUNK_DATA = 24,
    CHUNK_MIN = 4096,
    DEEP_MISSES = 3,         /* before a chain of heap objects is looked for in windows … */
    DEEP_DISTANCE = 2048,    /* … if its last two lay as near */
    GUESSES = 24,
};

/* ---- what probably comes next ---- */

static uint64_t recent(const struct walk *w, uint32_t back)
{
    return back <= w->chain.recents ? w->chain.recent[(w->chain.recents - back) % WALK_RECENT] : 0;
}

/* Recursion through the same functions repeats its distances at every turn of one, two … frames:
 * what follows `address` if it goes on like that. */
static uint32_t guess(const struct walk *w, uint64_t address, uint64_t out[GUESSES])
{
    for (uint32_t turn = 1; turn <= WALK_RECENT / 2; turn++) {
        uint64_t before = recent(w, turn), distance = address - before;
        if (w->chain.recents < 2 * turn || distance == 0 || before - recent(w, 2 * turn) != distance) {
            continue;
        }
        for (uint32_t i = 0; i < GUESSES; i++) {
            uint64_t last = i + 1 > turn ? out[i - turn] : i + 1 == turn ? address
                                                         : recent(w, turn - 1 - i);
            out[i] = last + distance;
        }
        return GUESSES;
    }
    return 0;
}

/* It, and in the order of the last stack what came behind it there; or else what is guessed. */
static void ask_chain(struct walk *w, uint64_t address)
{
    const struct python_plan *plan = w->plan;
    uint64_t guessed[1 + GUESSES] = {address};
    const uint64_t *wanted = guessed;
    uint32_t i = 0, count;
    if (w->slots.count + WALK_FOLLOWERS > WALK_SLOTS_MAX ||
        w->room.slots_limit - w->room.used < WALK_SLOTS_LEAST / 2) {
        walk_drop_slots(w);
    }
    w->slots.first = w->slots.count;
    while (i < plan->outside_count && plan->outside[i] != address) {
        i++;
    }
    if (i < plan->outside_count) {
        wanted = &plan->outside[i];
        count = least(plan->outside_count - i, WALK_FOLLOWERS);
    } else {
        count = 1 + guess(w, address, guessed + 1);
    }
    walk_sort(wanted, count, w->fetch_order);
    walk_ask_slots(w, wanted, w->fetch_order, count);
}

/* A deep chain of heap objects: its next ones are probably near, on the side where the last ones
 * were. */
static void ask_neighbourhood(struct walk *w, uint64_t address)
{
    uint64_t limit = address + w->view.first + w->view.bytes;
    if (!w->deep) {
        w->deep = true;
        walk_drop_slots(w);
        walk_grow_window(w);
    }
    if (recent(w, 1) > recent(w, 2)) {
        walk_ask_window(w, address, address + w->room.window_room);
    } else {
        walk_ask_window(w, limit > w->room.window_room ? limit - w->room.window_room : 0, limit);
    }
}

static bool is_deep(const struct walk *w, uint64_t address)
{
    int64_t distance = (int64_t)(address - recent(w, 1));
    return w->deep || (on_heap(w) && w->chain.misses > DEEP_MISSES && distance > -DEEP_DISTANCE &&
                       distance < DEEP_DISTANCE);
}

/* ---- older chunks ---- */

static bool in_chunk(const struct walk *w, uint64_t address)
{
    return address >= w->chain.chunk + CHUNK_DATA && address < w->chain.limit;
}

/* The chain has come to the first frame of its chunk: the next may be in the older one. */
static bool leaves_chunk(struct walk *w, uint64_t address)
{
    if (w->chain.lower - w->chain.chunk > WALK_CHUNK_START || w->window.address != w->chain.chunk ||
        w->window.bytes < CHUNK_DATA) {
        return false;
    }
    w->chain.older = load_u64(walk_window_copy(w, 0) + CHUNK_OLDER);
    return plausible(w->chain.older) && address > w->chain.older && address - w->chain.older < WALK_CHUNK_MAX;
}

static void ask_older(struct walk *w, uint64_t address)
{
    walk_ask_word(w, WORD_SIZE, w->chain.older + CHUNK_SIZE, 8);
    walk_ask_stack(w, w->chain.older, address + w->view.first + w->view.bytes);
}

static void enter_older(struct walk *w, uint64_t address)
{
    uint64_t size = w->word[WORD_SIZE];
    if (size < CHUNK_MIN || size > WALK_CHUNK_MAX || address - w->chain.older >= size) {
        w->window.bytes = 0;
        return;
    }
    w->chain.chunk = w->chain.older;
    w->chain.limit = w->chain.older + size;
    w->chain.lower = w->chain.limit;
}

/* ---- the batch ---- */

/* What brackets a further batch: the top as it was, and the frame whose link led here. */
static void ask_bracket(struct walk *w, unsigned char *joint)
{
    const struct python_layout *l = w->layout;
    if (!w->twice) {
        return;
    }
    if (w->chain.joint != 0) {
        (void)walk_ask(w, w->chain.joint + w->view.link_first, joint, w->view.link_bytes);
    }
    if (l->frames == PYTHON_FRAMES_CFRAME) {
        walk_ask_word(w, WORD_TOP_LAST, w->plan->cframe + l->thread.cframe_top, 8);
    }
    walk_ask_word(w, WORD_CFRAME_LAST, w->plan->thread + l->thread.frame, 8);
}

static bool bracket_holds(const struct walk *w, const unsigned char *joint)
{
    const struct python_layout *l = w->layout;
    bool by_cframe = l->frames == PYTHON_FRAMES_CFRAME;
    if (!w->twice) {
        return true;
    }
    return (by_cframe ? w->word[WORD_TOP_LAST] == w->chain.leaf &&
                            w->word[WORD_CFRAME_LAST] == w->plan->cframe
                      : w->word[WORD_CFRAME_LAST] == w->chain.leaf) &&
           (w->chain.joint == 0 ||
            (load_u64(joint + l->frame.code - w->view.link_first) == w->chain.joint_code &&
             load_u64(joint + l->frame.previous - w->view.link_first) == w->chain.joint_previous));
}

bool walk_fetch(struct walk *w, uint64_t address)
{
    unsigned char joint[WALK_FRAME_MAX] = {0};
    bool older = false, inside = !on_heap(w) && in_chunk(w, address);
    w->pieces = w->window.piece = 0;
    w->chain.misses++;
    if (is_deep(w, address)) {
        ask_neighbourhood(w, address);
    } else if (inside) {
        walk_grow_window(w);
        walk_ask_stack(w, w->chain.chunk, address + w->view.first + w->view.bytes);
    } else if (!on_heap(w) && leaves_chunk(w, address)) {
        older = true;
        walk_grow_window(w);
        ask_older(w, address);
    }
    w->slots.first = w->slots.count;
    w->slots.asked = 0;
    if (!inside) {
        ask_chain(w, address);
    }
    walk_ask_frames_again(w);
    ask_bracket(w, joint);
    if (!walk_read(w)) {
        return true; /* the walk ends where it is */
    }
    walk_take_frames(w);
    if (older) {
        enter_older(w, address);
    }
    return bracket_holds(w, joint);
}

/* The frames of a stack (walk.h): control frames from the leaf to the stack's end, each with its environment, which
 * says what kind of frame it is and, by the environments around it, which method it belongs to. Here is also what two
 * copies of the frames have in common. */
#include "runtime/ruby/walk.h"

enum {
    KEEP_LEAF = RUNTIME_FRAMES_MAX * 3 / 4,
    KEEP_ROOT = RUNTIME_FRAMES_MAX - KEEP_LEAF,
    HOPS_MAX = 16,     /* blocks in blocks */
    ROUNDS_MAX = HOPS_MAX, /* of further environments, */
    GROUP = 32,        /* for so many frames: there are slots for four each */

    FRAME_PC = 0, FRAME_SP = 8, FRAME_ISEQ = 16,

    FLAG_LOCAL = 2, FLAG_FINISH = 0x20, FLAG_BMETHOD = 0x40, FLAG_C = 0x80,
    KIND_MASK = 0x7fff0001, KIND_C = 0x55550001, KIND_DUMMY = 0x79990001, KIND_ANY = 0x11110001,

    OLD_DUMMY = 0xbbbb, /* 2.4: the upper half */
    OLDER_C = 0x61, OLDER_BLOCK_IN_C = 0x81, OLDER_FINISH = 0x200, OLDER_BMETHOD = 0x400, OLDER_MAX = 0x1000, /* 2.3 */
    OLDER_LOCAL = 2, /* a bit of the link */
};

/* vm_core.h, VM_FRAME_MAGIC_*: a digit four times, or 7888, 7999; and the mark of a small number. Of 2.4 a digit four
 * times for all of them. As 2.5 has them; 0: it is none. */
static uint64_t kind_of(const struct ruby_layout *l, uint64_t flags)
{
    static const uint32_t kinds[] = {0x11110001, 0x22220001, 0x33330001, 0x44440001, KIND_C,
                                     0x66660001, 0x77770001, 0x78880001, KIND_DUMMY};
    if (l->old_kinds) {
        uint64_t upper = flags >> 16;
        uint64_t kind = upper == OLD_DUMMY ? KIND_DUMMY : upper == KIND_C >> 16 ? KIND_C : KIND_ANY;
        bool is_kind = (flags & 1) != 0 && upper % 0x1111 == 0 && upper > 0 && upper <= OLD_DUMMY;
        return is_kind ? kind | (flags & 0xffff) : 0;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if ((flags & KIND_MASK) == kinds[i]) {
            return flags >> 32 == 0 ? flags : 0;
        }
    }
    return 0;
}

/* Of 2.3 the frame has them. */
static uint64_t kind_of_frame(const unsigned char *frame, uint64_t flags)
{
    uint64_t kind = flags & 0xff;
    if (flags >= OLDER_MAX || kind % 16 != 1 || kind < 0x11 || kind > 0xb1) {
        return 0;
    }
    uint64_t found = kind == OLDER_C                       ? KIND_C | FLAG_C
                     : kind == OLDER_BLOCK_IN_C            ? KIND_ANY | FLAG_C
                     : load_u64(frame + FRAME_ISEQ) == 0   ? KIND_DUMMY
                                                           : KIND_ANY;
    return found | ((flags & OLDER_FINISH) != 0 ? FLAG_FINISH : 0) | ((flags & OLDER_BMETHOD) != 0 ? FLAG_BMETHOD : 0);
}

/* An environment: which method, where it goes on, what it is; flags of 0: it is none. `frame`: whose it is, null: a
 * block's outer one. */
struct env {
    uint64_t method, link, flags;
};

static struct env env_of(const struct ruby_layout *l, const unsigned char *bytes, const unsigned char *frame)
{
    uint64_t word[WALK_ENV / 8];
    memcpy(word, bytes, sizeof word);
    if (!has(l->frame_flags)) {
        return (struct env){word[0], word[1], kind_of(l, word[2])};
    }
    uint64_t flags = frame != NULL ? kind_of_frame(frame, load_u64(frame + l->frame_flags)) : KIND_ANY;
    return (struct env){word[1], word[2], flags | (flags != 0 && (word[2] & OLDER_LOCAL) != 0 ? FLAG_LOCAL : 0)};
}

/* ---- what two copies have in common ---- */

static bool holds(const struct walk *w, uint64_t address)
{
    const struct walk_window *v = &w->window;
    uint32_t bytes = w->layout->frame_bytes;
    return address >= v->low && address < v->limit && v->limit - address >= bytes &&
           (w->plan->limit - address) % bytes == 0;
}

static uint64_t ep_of(const struct walk *w, const unsigned char *frame)
{
    return load_u64(frame + w->layout->frame_ep);
}

static bool same_function(const struct walk *w, const unsigned char *a, const unsigned char *b)
{
    return load_u64(a + FRAME_ISEQ) == load_u64(b + FRAME_ISEQ) && ep_of(w, a) == ep_of(w, b);
}

static bool same_place(const unsigned char *a, const unsigned char *b)
{
    return load_u64(a + FRAME_PC) == load_u64(b + FRAME_PC);
}

static bool is_same(const struct walk *w, const unsigned char *a, const unsigned char *b)
{
    return same_function(w, a, b) && same_place(a, b);
}

uint64_t stack_common(const struct walk *w)
{
    const struct walk_window *v = &w->window;
    uint64_t leaf = load_u64(w->ec + 16), top = most(most(leaf, w->cfp_between), w->cfp_last), from = 0;
    uint32_t bytes = w->layout->frame_bytes;
    if (!holds(w, leaf) || !holds(w, w->cfp_between) || !holds(w, w->cfp_last)) {
        return 0;
    }
    for (uint64_t at = v->limit - (v->limit - v->low) % bytes - bytes; at >= top; at -= bytes) {
        const unsigned char *a = v->frames[0] + (at - v->low), *b = v->frames[1] + (at - v->low);
        if (!same_function(w, a, b)) {
            break;
        }
        from = at;
        if (!same_place(a, b)) {
            break;
        }
    }
    return from;
}

/* ---- environments ---- */

/* Which method a frame belongs to: 1, `method` (0: none; RUBY_OF_BLOCK: made of a block); 0: to be asked for; -1:
 * contradicts itself. */
static int method_of(struct walk *w, const unsigned char *frame, uint64_t *method)
{
    const unsigned char *bytes;
    uint64_t ep = ep_of(w, frame);
    *method = 0;
    for (int hop = 0; hop < HOPS_MAX; hop++) {
        int held = stack_env(w, ep, &bytes);
        if (held <= 0) {
            return held == 0 ? 0 : hop == 0 ? -1 : 1;
        }
        struct env env = env_of(w->layout, bytes, hop == 0 ? frame : NULL);
        if (env.flags == 0) {
            return hop == 0 ? -1 : 1;
        }
        if ((env.flags & (FLAG_LOCAL | FLAG_BMETHOD)) != 0) {
            bool of_block = (env.flags & (FLAG_BMETHOD | FLAG_C)) == FLAG_BMETHOD;
            *method = env.method | (of_block ? RUBY_OF_BLOCK : 0);
            return 1;
        }
        ep = env.link & ~(uint64_t)3;
    }
    return 1;
}

static void remember_escaped(struct walk *w)
{
    struct ruby_plan *plan = w->plan;
    for (uint32_t i = 0; i < w->slots.count && plan->escaped_count < PLAN_ESCAPED; i++) {
        bool known = !w->slots.is_met[i];
        for (uint32_t k = 0; k < plan->escaped_count; k++) {
            known = known || plan->escaped[k] == w->slots.ep[i];
        }
        if (!known) {
            plan->escaped[plan->escaped_count++] = w->slots.ep[i];
        }
    }
}

/* The same frames as the window's, and the pointer to the leaf, read again around a batch. */
struct bracket {
    uint64_t cfp;
    uint32_t cfp_piece, piece;
    const unsigned char *frames;
};

static void ask_bracket(struct walk *w, struct bracket *b, unsigned number, uint64_t address, uint32_t len)
{
    unsigned char *frames = w->window.frames[1 - w->window.copy] + (size_t)number * GROUP * RUBY_FRAME_BYTES;
    if (w->twice) {
        b->frames = frames;
        b->cfp_piece = stack_ask(w, w->plan->ec + 16, &b->cfp, 8);
        b->piece = stack_ask(w, address, frames, len);
    }
}

/* Did the frames from `address` on stand? The first one may have run on. */
static bool brackets(const struct walk *w, const struct bracket *b, uint64_t address, uint32_t len)
{
    bool good = !w->twice || (stack_got(w, b->cfp_piece) && stack_got(w, b->piece) && b->cfp <= address);
    for (uint32_t at = 0; w->twice && good && at < len; at += w->layout->frame_bytes) {
        const unsigned char *held = stack_frame(w, address + at);
        good = same_function(w, held, b->frames + at) && (at == 0 || same_place(held, b->frames + at));
    }
    return good;
}

/* One batch of environments that frames from `address` on have elsewhere. False: torn. */
static bool read_envs(struct walk *w, uint64_t address, uint32_t len)
{
    struct bracket before, behind;
    w->pieces = 0;
    ask_bracket(w, &before, 0, address, len);
    stack_ask_slots(w);
    ask_bracket(w, &behind, 1, address, len);
    if (!stack_read(w)) {
        return false;
    }
    stack_take_slots(w);
    return brackets(w, &before, address, len) && brackets(w, &behind, address, len);
}

/* Reads the environments that frames of the window from `address` to `limit` have elsewhere. False: torn. */
static bool fetch_envs(struct walk *w, uint64_t address, uint64_t limit)
{
    for (int round = 0; round < ROUNDS_MAX; round++) {
        uint64_t method;
        uint32_t missing = 0;
        for (uint64_t at = address; at < limit; at += w->layout->frame_bytes) {
            missing += method_of(w, stack_frame(w, at), &method) == 0;
        }
        if (missing == 0) {
            return true;
        }
        if (!read_envs(w, address, (uint32_t)(limit - address))) {
            return false;
        }
    }
    return true;
}

/* ---- frames ---- */

static bool emit(struct walk *w, uint64_t address)
{
    struct runtime_stack *out = w->out;
    const unsigned char *frame = stack_frame(w, address), *bytes;
    uint64_t method, iseq = load_u64(frame + FRAME_ISEQ);
    int known = method_of(w, frame, &method);
    if (known < 0 || stack_env(w, ep_of(w, frame), &bytes) != 1) {
        return false;
    }
    uint64_t flags = env_of(w->layout, bytes, frame).flags;
    bool is_c = (flags & FLAG_C) != 0;
    uint64_t kind = flags & KIND_MASK;
    if (kind == KIND_C && iseq != 0) {
        return false;
    }
    if (kind == KIND_DUMMY || (is_c && (kind != KIND_C || method == 0))) {
        return true; /* what stands at the stack's end; a block in C */
    }
    if (!plausible(is_c ? method : iseq) || (is_c ? method : iseq) % 8 != 0) {
        return false;
    }
    out->frame[out->count++] = (struct runtime_frame){
        .code = is_c ? method : iseq,
        .position = is_c ? RUBY_C_FUNCTION : (uint32_t)(load_u64(frame + FRAME_PC) >> 3),
        .flags = WALK_UNCHECKED | (!is_c && (flags & FLAG_FINISH) != 0 ? RUNTIME_FRAME_ENTRY : 0U),
        .check = is_c ? 0 : method,
    };
    return true;
}

/* Reads the part of the stack that begins at `address`. False: torn. */
static bool next_window(struct walk *w, uint64_t address, uint64_t joint)
{
    unsigned char kept[RUBY_FRAME_BYTES], before[RUBY_FRAME_BYTES], behind[RUBY_FRAME_BYTES];
    uint32_t bytes = w->layout->frame_bytes;
    memcpy(kept, stack_frame(w, joint), bytes);
    /* callers' values are below those of the last frame met; a part that is left out goes before the stack's start */
    uint64_t top = address == joint + bytes ? load_u64(kept + FRAME_SP) : w->plan->stack + WALK_VALUES;
    w->pieces = 0;
    uint32_t first = stack_ask(w, joint, before, bytes);
    stack_ask_window(w, address, top);
    uint32_t last = stack_ask(w, joint, behind, bytes);
    if (!stack_read(w)) {
        return w->unreadable;
    }
    stack_take_window(w);
    return !w->twice || (stack_got(w, first) && stack_got(w, last) && is_same(w, kept, before) &&
                         is_same(w, kept, behind));
}

/* Where the walk goes on: of a deep stack the middle is left out. */
static uint64_t skip_middle(struct walk *w, uint64_t address)
{
    struct runtime_stack *out = w->out;
    uint64_t root = w->plan->limit - (uint64_t)KEEP_ROOT * w->layout->frame_bytes;
    if (out->count != KEEP_LEAF || address >= root || (out->frame[KEEP_LEAF - 1].flags & RUNTIME_FRAME_CUT) != 0) {
        return address;
    }
    out->frame[KEEP_LEAF - 1].flags |= RUNTIME_FRAME_CUT;
    return root;
}

/* Some frames of the window from `address` on, as many as have room for their environments; where it goes on, 0:
 * torn. */
static uint64_t walk_some(struct walk *w, uint64_t address)
{
    uint32_t bytes = w->layout->frame_bytes;
    uint64_t held = (w->window.limit - address) / bytes; /* whole frames */
    uint64_t limit = address + least(held, GROUP) * bytes;
    if (w->slots.count > WALK_SLOTS / 2) { /* those of frames that were dealt with */
        w->slots.count = w->slots.fetched = 0;
    }
    if (!fetch_envs(w, address, limit)) {
        return 0;
    }
    while (address < limit) {
        /* up to 3.0 the pointer to the leaf is set before the frame that it points to is complete */
        if (!emit(w, address) && (w->twice || address != w->cfp || w->ruby->version >= RUBY_VERSION(3, 1, 0))) {
            return 0;
        }
        uint64_t next = skip_middle(w, address + bytes);
        if (next != address + bytes) {
            return next;
        }
        address = next;
    }
    return address;
}

enum runtime_end stack_frames(struct walk *w)
{
    struct runtime_stack *out = w->out;
    uint64_t address = w->cfp;
    w->plan->escaped_count = 0;
    if (!holds(w, address)) {
        return RUNTIME_TORN;
    }
    while (address != 0 && address < w->plan->limit && !w->unreadable) {
        uint64_t start = address;
        if (!holds(w, address) && !next_window(w, address, w->joint)) {
            return RUNTIME_TORN;
        }
        if (w->unreadable || !holds(w, address)) {
            break;
        }
        address = walk_some(w, address);
        remember_escaped(w);
        w->joint = address > start ? least(address, w->window.limit) - w->layout->frame_bytes : start;
    }
    if (w->unreadable || address != w->plan->limit) {
        return w->unreadable ? RUNTIME_UNREADABLE : RUNTIME_TORN;
    }
    if (out->count == 0) {
        return RUNTIME_EMPTY;
    }
    out->frame[out->count - 1].flags |= RUNTIME_FRAME_ENTRY;
    return RUNTIME_COMPLETE;
}

/* Fingerprints of functions: memory of one that was freed may be another's by the time that frames are named. The plan
 * keeps those of the last stacks; in each sample those nearest to the leaf are read again, others in turn, and what was
 * not read for long before it is relied upon. */
#include "runtime/ruby/walk.h"

enum {
    TRUSTED = 64,      /* samples */
    SHORT_LIVED = 64,
    HURRY = 16,
    ISEQ_HEAD = 24,    /* flags, …, body */
    ISEQ_BODY = 16,
    ROUNDS_MAX = 24,
    KIND_TOP = 0, KIND_CLASS = 3, KIND_EVAL = 6, /* vm_core.h, iseq_type: the body's first word */
    ITEMS = PLAN_SETS * PLAN_WAYS,
};

uint32_t ruby_body_check(uint64_t address, const unsigned char *head)
{
    uint64_t hash = mix_u64(1, address);
    hash = mix_u64(hash, load_u64(head)); /* type and size */
    hash = mix_u64(hash, load_u64(head + 8));
    for (int at = 64; at < RUBY_BODY_HEAD; at += 8) {
        hash = mix_u64(hash, load_u64(head + at));
    }
    uint32_t low = hash >> 32 & ((1U << RUBY_CHECK_BITS) - 1);
    return low != 0 ? low : 1;
}

uint32_t ruby_method_check(const unsigned char *bytes)
{
    uint64_t hash = 1;
    for (int at = 0; at < RUBY_METHOD_BYTES; at += 8) {
        hash = mix_u64(hash, load_u64(bytes + at));
    }
    return (uint32_t)(hash >> 32) != 0 ? (uint32_t)(hash >> 32) : 1;
}

/* ---- the plan's table ---- */

static struct plan_item *set_of(struct ruby_plan *plan, uint64_t address)
{
    return &plan->item[mix_u64(address >> 3, 0) % PLAN_SETS * PLAN_WAYS];
}

/* In samples; counts are 16 bits wide, and the table is emptied when they begin anew. */
static uint32_t age(const struct ruby_plan *plan, uint16_t sample)
{
    return (uint16_t)(plan->sample - sample);
}

static struct plan_item *find(struct walk *w, uint64_t address)
{
    struct plan_item *set = set_of(w->plan, address);
    for (int i = 0; i < PLAN_WAYS; i++) {
        if (set[i].address == address) {
            uint32_t trusted = w->plan->short_lived > 0 ? 1 : TRUSTED;
            return age(w->plan, set[i].checked) <= trusted ? &set[i] : NULL;
        }
    }
    return NULL;
}

static struct plan_item *keep(struct walk *w, uint64_t address, uint64_t body, uint32_t check)
{
    struct plan_item *set = set_of(w->plan, address), *oldest = set;
    for (int i = 0; i < PLAN_WAYS && oldest->address != address; i++) {
        bool better = set[i].address == address || set[i].address == 0 ||
                      (oldest->address != 0 && age(w->plan, set[i].used) > age(w->plan, oldest->used));
        oldest = better ? &set[i] : oldest;
    }
    uint16_t now = (uint16_t)w->plan->sample;
    if (oldest->address == address && oldest->check != check) {
        w->plan->short_lived = SHORT_LIVED; /* the collector frees functions that the program makes */
    }
    *oldest = (struct plan_item){address, body, check, now, now};
    return oldest;
}

void stack_begin_checks(struct walk *w)
{
    w->plan->short_lived -= w->plan->short_lived > 0;
    w->plan->hurry -= w->plan->hurry > 0;
    if ((uint16_t)++w->plan->sample == 0) {
        memset(w->plan->item, 0, sizeof w->plan->item);
    }
}

/* ---- with the first batch ---- */

static void ask_again(struct walk *w, uint32_t number)
{
    struct walk_again *again = &w->again[w->again_count];
    struct plan_item *item = &w->plan->item[number];
    if (w->again_count == PLAN_AGAIN || item->address == 0) {
        return;
    }
    again->item = number;
    again->head = item->body != 0 ? stack_ask(w, item->address + ISEQ_BODY, &again->body, 8) : 0;
    again->piece = item->body != 0 ? stack_ask(w, item->body, again->bytes, RUBY_BODY_HEAD)
                                   : stack_ask(w, item->address + RUBY_METHOD_AT, again->bytes, RUBY_METHOD_BYTES);
    w->again_count++;
}

void stack_ask_checks(struct walk *w)
{
    struct ruby_plan *plan = w->plan;
    w->again_count = 0;
    for (int i = 0; i < 2; i++) {
        if (plan->leaves[i] != 0) {
            ask_again(w, plan->leaves[i] - 1U);
        }
    }
    for (uint32_t i = 0; i < ITEMS && w->again_count < PLAN_AGAIN; i++) {
        plan->turn = (plan->turn + 1) % ITEMS;
        if (age(plan, plan->item[plan->turn].used) <= 1) {
            ask_again(w, plan->turn);
        }
    }
}

void stack_take_checks(struct walk *w)
{
    for (uint32_t i = 0; i < w->again_count; i++) {
        const struct walk_again *again = &w->again[i];
        struct plan_item *item = &w->plan->item[again->item];
        bool stands = stack_got(w, again->piece) &&
                      (item->body == 0 || (stack_got(w, again->head) && again->body == item->body));
        if (!stands) {
            item->checked = (uint16_t)(w->plan->sample - TRUSTED - 1); /* it is read anew if it is met */
            continue;
        }
        uint32_t check = item->body != 0 ? ruby_body_check(item->body, again->bytes) : ruby_method_check(again->bytes);
        w->plan->short_lived = check != item->check ? SHORT_LIVED : w->plan->short_lived;
        item->check = check;
        item->checked = (uint16_t)w->plan->sample;
    }
}

/* ---- of those that are not known ---- */

/* The bytes of several functions, in the memory that held the window. */
struct unknown {
    uint64_t address;
    uint32_t piece;
    bool is_c, is_whole;
    unsigned char head[RUBY_METHOD_BYTES]; /* of a method, or of an instruction sequence its first bytes */
    unsigned char body[RUBY_BODY_HEAD];
};
_Static_assert(sizeof(struct unknown) * WALK_CHECKS <= WALK_FRAMES * RUBY_FRAME_BYTES, "no room for them");

static uint32_t collect(struct walk *w, struct unknown *all)
{
    const struct runtime_stack *out = w->out;
    uint32_t count = 0;
    for (uint32_t i = 0; i < out->count && count < WALK_CHECKS; i++) {
        uint64_t address = out->frame[i].code;
        bool known = (out->frame[i].flags & WALK_UNCHECKED) == 0;
        for (uint32_t k = 0; k < count && !known; k++) {
            known = all[k].address == address;
        }
        if (!known) {
            all[count++] = (struct unknown){.address = address, .is_c = out->frame[i].position == RUBY_C_FUNCTION};
        }
    }
    return count;
}

static bool read_heads(struct walk *w, struct unknown *all, uint32_t count)
{
    w->pieces = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct unknown *u = &all[i];
        u->piece = u->is_c ? stack_ask(w, u->address + RUBY_METHOD_AT, u->head, RUBY_METHOD_BYTES)
                           : stack_ask(w, u->address, u->head, ISEQ_HEAD);
    }
    bool read = stack_read(w);
    for (uint32_t i = 0; read && i < count; i++) {
        all[i].is_whole = stack_got(w, all[i].piece);
    }
    return read;
}

static bool read_bodies(struct walk *w, struct unknown *all, uint32_t count)
{
    w->pieces = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct unknown *u = &all[i];
        if (!u->is_c) {
            u->piece = stack_ask(w, load_u64(u->head + ISEQ_BODY), u->body, RUBY_BODY_HEAD);
        }
    }
    bool read = w->pieces == 0 || stack_read(w);
    for (uint32_t i = 0; read && i < count; i++) {
        all[i].is_whole = all[i].is_whole && (all[i].is_c || stack_got(w, all[i].piece));
    }
    return read;
}

/* Of a file, a class or a text: what runs them lets go of them once they have run. */
static bool runs_once(const struct unknown *u)
{
    uint32_t kind = load_u32(u->body);
    return !u->is_c && (kind == KIND_TOP || kind == KIND_CLASS || kind == KIND_EVAL);
}

static bool is_kept(struct ruby_plan *plan, uint64_t address)
{
    const struct plan_item *set = set_of(plan, address);
    bool kept = false;
    for (int i = 0; i < PLAN_WAYS; i++) {
        kept = kept || set[i].address == address;
    }
    return kept;
}

/* False: what was read is no function. */
static bool learn(struct walk *w, struct unknown *u)
{
    uint64_t body = u->is_c ? 0 : load_u64(u->head + ISEQ_BODY);
    if (!u->is_whole || (!u->is_c && !ruby_is_imemo(w->layout, load_u64(u->head), IMEMO_ISEQ))) {
        return false;
    }
    w->plan->hurry = runs_once(u) && !is_kept(w->plan, u->address) ? HURRY : w->plan->hurry;
    (void)keep(w, u->address, body, u->is_c ? ruby_method_check(u->head) : ruby_body_check(body, u->body));
    return true;
}

/* Gives frames that have none yet the fingerprints that are known; `all`: the others none. */
static void fill(struct walk *w, bool all)
{
    for (uint32_t i = 0; i < w->out->count; i++) {
        struct runtime_frame *frame = &w->out->frame[i];
        struct plan_item *item = (frame->flags & WALK_UNCHECKED) != 0 ? find(w, frame->code) : NULL;
        if (item != NULL) {
            item->used = (uint16_t)w->plan->sample;
        }
        if (item != NULL && i < 2) {
            w->plan->leaves[i] = (uint8_t)(item - w->plan->item + 1);
        }
        if (item != NULL || (all && (frame->flags & WALK_UNCHECKED) != 0)) {
            uint32_t check = item != NULL ? item->check : 0;
            frame->check = frame->position == RUBY_C_FUNCTION ? check : ruby_frame_check(frame->check, check);
            frame->flags &= ~(uint32_t)WALK_UNCHECKED;
        }
    }
}

static enum runtime_end read_unknown(struct walk *w, struct unknown *all, uint32_t count)
{
    if (!read_heads(w, all, count) || !read_bodies(w, all, count)) {
        return w->unreadable ? RUNTIME_UNREADABLE : RUNTIME_TORN;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!learn(w, &all[i])) {
            return RUNTIME_TORN;
        }
    }
    return RUNTIME_COMPLETE;
}

enum runtime_end stack_check(struct walk *w)
{
    struct unknown *all = (struct unknown *)(void *)w->window.frames;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        fill(w, false);
        uint32_t count = collect(w, all);
        enum runtime_end end = count > 0 ? read_unknown(w, all, count) : RUNTIME_COMPLETE;
        if (count == 0 || end != RUNTIME_COMPLETE) {
            fill(w, true);
            return end;
        }
    }
    fill(w, true);
    return RUNTIME_COMPLETE;
}

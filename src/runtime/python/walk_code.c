/*
 * Fingerprints of code objects. The plan keeps those of the last stacks; some are read again in
 * each sample, so that code objects which were freed and whose address was used again are noticed:
 * the ones nearest to the leaf always, the others in turn, and what was not read for TRUSTED
 * samples before it is relied upon. A program that was seen to use an address again has all of a
 * stack's code objects read in every sample, for a while. From 3.14 on the interpreter counts how
 * often code objects were destroyed: while the count stands still nothing needs to be read again,
 * and when it moves everything is.
 */
#include "runtime/python/walk.h"

enum {
    CALM = 32,               /* samples without a destroyed code object, to ask for none again */
    TRUSTED = 32,            /* samples */
    CHURN = 64,              /* samples */
    CODES = PLAN_SETS * PLAN_WAYS,
    SHORT_LIVED = 64,        /* samples; code that lives longer stays */
    CO_OPTIMIZED = 1,        /* set for functions only: Include/code.h */
    CODES_A_BATCH = 48,
    CODE_BATCHES = 8,        /* of one sample; what is still unknown then has no fingerprint */
};

/* ---- the plan's table ---- */

static struct plan_code *set_of(struct python_plan *plan, uint64_t code)
{
    uint64_t hash = (code >> 4) * 0x9e3779b97f4a7c15;
    return &plan->codes[(hash >> 60) % PLAN_SETS * PLAN_WAYS];
}

/* In samples; counts are 16 bits wide, and the table is emptied when they begin anew. */
static uint32_t age(const struct python_plan *plan, uint16_t sample)
{
    return (uint16_t)(plan->sample - sample);
}

static struct plan_code *find(struct python_plan *plan, uint64_t code)
{
    struct plan_code *set = set_of(plan, code);
    for (int i = 0; i < PLAN_WAYS; i++) {
        if (set[i].code == code) {
            return &set[i];
        }
    }
    return NULL;
}

/* Its entry, or the one of its set that was not used for longest. */
static struct plan_code *entry_for(struct python_plan *plan, uint64_t code)
{
    struct plan_code *set = set_of(plan, code), *oldest = set;
    struct plan_code *known = find(plan, code);
    if (known != NULL) {
        return known;
    }
    for (int i = 0; i < PLAN_WAYS; i++) {
        if (set[i].code == 0) {
            oldest = &set[i];
            break;
        }
        oldest = age(plan, set[i].used) > age(plan, oldest->used) ? &set[i] : oldest;
    }
    *oldest = (struct plan_code){.code = code, .used = (uint16_t)plan->sample};
    return oldest;
}

struct plan_code *walk_code(struct walk *w, uint64_t code)
{
    struct plan_code *known = find(w->plan, code);
    if (known == NULL) {
        return NULL;
    }
    known->used = (uint16_t)w->plan->sample;
    bool counted = has(w->layout->interp.code_generation);
    uint32_t most = counted ? UINT16_MAX : w->plan->churn != 0 ? 0 : TRUSTED;
    return age(w->plan, known->checked) <= most ? known : NULL;
}

void walk_begin_codes(struct walk *w)
{
    struct python_plan *plan = w->plan;
    plan->sample++;
    plan->churn -= plan->churn != 0;
    plan->short_lived -= plan->short_lived != 0;
    if ((uint16_t)plan->sample == 0) {
        memset(plan->codes, 0, sizeof plan->codes);
    }
}

/* ---- one code object's head ---- */

static bool is_code(const struct walk *w, const unsigned char *head)
{
    uint64_t type = w->python->code_type;
    return type == 0 || load_u64(head + w->layout->object.type) == type;
}

static struct plan_code *learn(struct walk *w, uint64_t code, const unsigned char *head)
{
    const struct python_layout *l = w->layout;
    struct plan_code *entry = entry_for(w->plan, code);
    uint64_t check = python_fingerprint(l, head);
    uint64_t units = load_u64(head + l->object.size);
    if (entry->check != check) {
        w->plan->churn = entry->check != 0 ? CHURN : w->plan->churn;
        if (has(l->code.flags) && (load_u32(head + l->code.flags) & CO_OPTIMIZED) == 0) {
            w->plan->short_lived = SHORT_LIVED;
        }
        entry->copy = 0;
    }
    entry->check = check;
    entry->checked = (uint16_t)w->plan->sample;
    entry->units = l->frames != PYTHON_FRAMES_HEAP && units < 1 << 26 ? (uint32_t)units : 0;
    return entry;
}

/* ---- in the first batch ---- */

uint32_t walk_heads(const struct walk *w)
{
    bool counted = has(w->layout->interp.code_generation);
    return counted && w->plan->calm >= CALM ? 0 : PLAN_LEAVES + PLAN_ROUND;
}

void walk_take_generation(struct walk *w)
{
    struct python_plan *plan = w->plan;
    uint64_t generation = w->word[WORD_GENERATION];
    uint32_t copies = (uint32_t)w->word[WORD_TLBC_GENERATION];
    if (generation == plan->generation) {
        plan->calm += plan->calm < CALM;
    } else {
        plan->calm = 0;
        memset(plan->codes, 0, sizeof plan->codes);
    }
    plan->generation = generation;
    for (size_t i = 0; copies != plan->tlbc_generation && i < CODES; i++) {
        plan->codes[i].copy = 0;
    }
    plan->tlbc_generation = copies;
}

/* In the order of their addresses: what lies near each other is read at once. */
static void add_head(struct walk *w, uint64_t code)
{
    uint32_t at = w->head.count;
    for (uint32_t i = 0; i < w->head.count; i++) {
        if (w->head.code[i] == code) {
            return;
        }
    }
    for (; at > 0 && w->head.code[at - 1] > code; at--) {
        w->head.code[at] = w->head.code[at - 1];
    }
    w->head.code[at] = code;
    w->head.count++;
}

void walk_ask_heads(struct walk *w)
{
    struct python_plan *plan = w->plan;
    uint32_t asked = 0;
    for (int i = 0; i < PLAN_LEAVES; i++) {
        if (plan->leaves[i] != 0 && plan->codes[plan->leaves[i] - 1].code != 0) {
            add_head(w, plan->codes[plan->leaves[i] - 1].code);
        }
    }
    for (int i = 0; i < CODES && w->head.count < PLAN_LEAVES + PLAN_ROUND; i++) {
        const struct plan_code *known = &plan->codes[plan->turn];
        plan->turn = (uint8_t)((plan->turn + 1) % CODES);
        if (known->code != 0 && age(plan, known->used) <= 1) {
            add_head(w, known->code);
        }
    }
    w->head.piece = w->pieces;
    for (uint32_t i = 0; i < w->head.count; i++) { /* the arena begins with them */
        uint64_t code = w->head.code[i];
        if (walk_ask(w, code, w->arena + asked * w->head.bytes, w->layout->code.bytes) != 0) {
            w->head.code[asked++] = code;
        }
    }
    w->head.count = asked;
}

void walk_take_heads(struct walk *w)
{
    for (uint32_t i = 0; i < w->head.count; i++) {
        const struct memory_piece *piece = &w->piece[w->head.piece + i];
        struct plan_code *known = find(w->plan, w->head.code[i]);
        if (piece->got == piece->len && is_code(w, piece->out)) {
            (void)learn(w, w->head.code[i], piece->out);
        } else if (known != NULL) {
            *known = (struct plan_code){0};
            w->plan->churn = CHURN;
        }
    }
}

/* ---- what is unknown after the walk ---- */

static bool lacks_check(const struct runtime_frame *frame)
{
    return frame->check == 0 && (frame->flags & RUNTIME_FRAME_SHIM) == 0;
}

/* Their code objects, each once; the slots are not needed any more. */
static uint32_t collect_unknown(struct walk *w)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->out->count && count < CODES_A_BATCH; i++) {
        uint64_t code = w->out->frame[i].code;
        uint32_t k = 0;
        while (k < count && w->slots.address[k] != code) {
            k++;
        }
        if (k == count && lacks_check(&w->out->frame[i])) {
            w->slots.address[count++] = code;
        }
    }
    return count;
}

/* A check, and whether the position can be one of that code object. */
static bool assign(struct walk *w, uint64_t code, const struct plan_code *entry)
{
    for (uint32_t i = 0; i < w->out->count; i++) {
        struct runtime_frame *frame = &w->out->frame[i];
        if (frame->code != code || !lacks_check(frame)) {
            continue;
        }
        frame->check = entry->check;
        if (entry->units != 0 && frame->position != UINT32_MAX &&
            frame->position >= 2 * (uint64_t)entry->units) {
            return false;
        }
    }
    return true;
}

/* co_tlbc: {ssize_t n; char *copy[n]} (Include/cpython/code.h of 3.14). */
static bool read_copies(struct walk *w, uint32_t count)
{
    struct { uint64_t n, copy; } got[CODES_A_BATCH];
    memset(got, 0, sizeof got);
    w->pieces = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t list = load_u64(w->arena + i * w->head.bytes + w->layout->code.tlbc);
        (void)walk_ask(w, list, &got[i].n, 8);
        (void)walk_ask(w, list + 8 + 8 * (uint64_t)w->copy_missing, &got[i].copy, 8);
    }
    if (!walk_read(w)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct plan_code *entry = find(w->plan, w->slots.address[i]);
        bool there = got[i].n > w->copy_missing && plausible(got[i].copy);
        if (entry != NULL && there) {
            entry->copy = got[i].copy;
        }
    }
    return true;
}

static bool take_unknown(struct walk *w, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct memory_piece *piece = &w->piece[i];
        if (piece->got != piece->len || !is_code(w, piece->out) ||
            !assign(w, w->slots.address[i], learn(w, w->slots.address[i], piece->out))) {
            return false;
        }
    }
    return w->copy_missing == 0 || !has(w->layout->code.tlbc) || read_copies(w, count) ||
           !w->unreadable;
}

bool walk_check_codes(struct walk *w)
{
    for (int batch = 0; batch < CODE_BATCHES; batch++) {
        uint32_t count = collect_unknown(w);
        if (count == 0) {
            return true;
        }
        w->pieces = 0;
        for (uint32_t i = 0; i < count; i++) {
            (void)walk_ask(w, w->slots.address[i], w->arena + i * w->head.bytes, w->layout->code.bytes);
        }
        if (w->pieces != count) {
            return false;
        }
        if (!walk_read(w)) {
            return true; /* without fingerprints */
        }
        if (!take_unknown(w, count)) {
            return false;
        }
    }
    return true;
}

#include "unwind/unwind.h"
#include "unwind/analyse.h"
#include "unwind/arch.h"

#include <stdlib.h>

enum {
    SLOTS = 4096,
    CHUNK_BYTES = 4096,       /* of memory beyond the dump: a page is there as a whole or not */
    VERIFIED_BYTES = 64,      /* of the dump's end, compared before memory behind it is believed */
    SCAN_WORDS = 512,
    SCANS_MAX = 2,            /* per stack */
    LEAF_CODE_BYTES = 32,     /* on either side, for analyse_leaf */
    CALL_BYTES = 8,           /* before a return address, for analyse_is_behind_call */
    WORD = 8,
    BELOW_SP = 2 * WORD,      /* where Go on AArch64 keeps the caller's frame pointer */
};

/* A frame larger than this is a wrong turn: whole stacks have 8 MiB. */
#define FRAME_BYTES_MAX (UINT64_C(64) << 20)

enum call_state { CALL_UNKNOWN, CALL_YES, CALL_NO };

/* 64 bytes, a line of the processor's cache. */
struct unwind_slot {
    uint64_t space, address; /* the key; space 0: empty */
    uint64_t bias, image;
    struct unwind_rule rule;
    uint8_t flags;           /* of the frame that this rule leads to */
    uint8_t call;            /* enum call_state: is the address within a call? */
    bool keeps_fp;           /* unwind_place.frame_pointers, or no table */
    bool is_go;
};

_Static_assert(sizeof(struct unwind_slot) <= 64, "a slot is a cache line");

enum step {
    STEP_ON,
    STEP_FAILED, /* walk.why says how the stack ends */
};

/* What is known while walking: the frame's registers and how to read memory. */
struct walk {
    struct unwinder *u;
    const struct unwind_space *space;
    const struct unwind_stack *stack;
    uint64_t address;  /* for look-up */
    uint64_t sp, fp;
    bool sp_known, fp_known; /* sp is a lower bound when it is not known */
    bool exact;              /* all registers are in `full`; address is the instruction's */
    bool switched;           /* behind a signal frame: memory may be another stack's */
    bool continued;          /* this step read beyond the dump */
    bool borrowed;           /* this step used a register that no rule has followed */
    bool verified, differs;  /* the dump was compared with the memory; it is not the same */
    uint64_t last_ra;        /* where the last return address of the dump stands; 0: none yet */
    unsigned scans;
    enum stack_end why;
    uint64_t chunk_address;  /* of chunk; 1: empty */
    const struct unwind_registers *full;
    struct unwind_registers interrupted; /* what `full` is behind a signal frame */
    unsigned char chunk[CHUNK_BYTES];
};

uint64_t unwind_ip(const struct unwind_registers *registers)
{
    return registers->at[arch_ip];
}

uint64_t unwind_sp(const struct unwind_registers *registers)
{
    return registers->at[arch_cfi.sp];
}

uint64_t unwind_perf_mask(void)
{
    return arch_perf_mask;
}

uint64_t unwind_code_address(uint64_t address)
{
    return address & arch_code_mask;
}

bool unwind_registers_of_perf(struct unwind_registers *out, uint64_t mask, const uint64_t *values)
{
    struct unwind_registers r = {.known = 0};
    for (; mask != 0; mask &= mask - 1, values++) {
        uint8_t number = arch_perf_order[__builtin_ctzll(mask)];
        if (number < UNWIND_REGISTERS) {
            r.at[number] = *values;
            r.known |= UINT64_C(1) << number;
        }
    }
    uint64_t needed = UINT64_C(1) << arch_ip | UINT64_C(1) << arch_cfi.sp;
    if ((r.known & needed) != needed) {
        return false;
    }
    *out = r;
    return true;
}

bool unwinder_init(struct unwinder *u, enum unwind_method method, struct err *err)
{
    struct unwind_slot *cache = calloc(SLOTS, sizeof *cache);
    if (cache == NULL) {
        return err_set(err, ERR_MEMORY, 0, "no memory for the unwinder's cache");
    }
    *u = (struct unwinder){.cache = cache, .method = method};
    return true;
}

void unwinder_release(struct unwinder *u)
{
    free(u->cache);
    u->cache = NULL;
}

static enum step fail(struct walk *w, enum stack_end why)
{
    w->why = why;
    return STEP_FAILED;
}

/* Code bytes: an image's from its file, which costs no access to the process. */
static bool read_code(const struct walk *w, const struct unwind_place *place, uint64_t address,
                      void *out, size_t len)
{
    if (place->table != NULL) {
        return unwind_table_code(place->table, address - place->bias, out, len);
    }
    const struct memory_reader *code = w->space->code;
    return code != NULL && code->read(code->context, address, out, len, NULL);
}

/* As much of [address - before, address + after) as the mapping holds. */
static bool read_around(const struct walk *w, const struct unwind_place *place, uint64_t address,
                        size_t before, size_t after, unsigned char *bytes, struct code *out)
{
    uint64_t start = address - place->start < before ? place->start : address - before;
    uint64_t limit = place->limit - address < after ? place->limit : address + after;
    *out = (struct code){start, bytes, (size_t)(limit - start)};
    return read_code(w, place, start, bytes, out->len);
}

/* Rules that only the code tells, and that an analysis of it gets wrong: the trampoline that
 * returns from signals, whose stack is the kernel's, and first functions, which align their SP. A
 * return address at the trampoline points at its first byte, so that what stands before is not it. */
static bool is_special(const struct walk *w, const struct unwind_place *place, uint64_t address,
                       struct unwind_rule *rule)
{
    unsigned char bytes[ARCH_ENTRY_CODE_BYTES + ARCH_SIGNAL_CODE_BYTES];
    struct code code;
    uint64_t next = w->exact ? address : address + 1;
    if (next >= place->limit ||
        !read_around(w, place, next, ARCH_ENTRY_CODE_BYTES, ARCH_SIGNAL_CODE_BYTES, bytes, &code)) {
        return false;
    }
    size_t before = (size_t)(next - code.address), back = w->exact && before > 8 ? 8 : 0;
    for (size_t i = before - back; i <= before; i++) {
        if (arch_is_signal_return(bytes + i, code.len - i)) {
            *rule = (struct unwind_rule){.kind = RULE_SIGNAL};
            return true;
        }
    }
    if (!w->exact && arch_is_entry(bytes, before)) {
        *rule = (struct unwind_rule){.kind = RULE_END};
        return true;
    }
    return false;
}

/* The rule for an address that no table describes. */
static struct unwind_rule fall_back(const struct walk *w, const struct unwind_place *place,
                                    uint64_t address, uint8_t *flags)
{
    unsigned char bytes[2 * LEAF_CODE_BYTES];
    struct code code;
    if (w->u->method == UNWIND_CFI_ONLY && place->table != NULL && !place->frame_pointers) {
        return (struct unwind_rule){.kind = RULE_NONE};
    }
    if (w->exact &&
        read_around(w, place, address, LEAF_CODE_BYTES, LEAF_CODE_BYTES, bytes, &code)) {
        struct unwind_rule rule = analyse_leaf(&code, address);
        if (rule.kind != RULE_NONE) {
            *flags = FRAME_ANALYSED;
            return rule;
        }
    }
    *flags = FRAME_BY_FP;
    return arch_fp_rule;
}

/* The rule that the image has for an address. Go's callers go by frame pointer though it may have
 * CFI: its runtime changes stacks below a call (systemstack), of which CFI knows nothing, and keeps
 * the frame pointers linked across. */
static struct unwind_rule image_rule(const struct walk *w, const struct unwind_place *place,
                                     uint64_t address, uint8_t *flags)
{
    bool analysed;
    struct unwind_rule rule = {.kind = RULE_NONE};
    if (place->table == NULL) {
        return rule;
    }
    if (place->frame_pointers) {
        unwind_table_no_analysis(place->table);
    }
    if (w->exact || !unwind_table_is_go(place->table)) {
        rule = unwind_table_rule(place->table, address - place->bias, &analysed);
        *flags = analysed ? FRAME_ANALYSED : 0;
    }
    return rule;
}

static void fill(const struct walk *w, struct unwind_slot *slot, const struct unwind_place *place,
                 uint64_t address)
{
    uint8_t flags = 0;
    struct unwind_rule rule = image_rule(w, place, address, &flags);
    if (rule.kind == RULE_NONE || flags != 0) {
        (void)is_special(w, place, address, &rule);
    }
    if (rule.kind == RULE_NONE) {
        rule = fall_back(w, place, address, &flags);
    }
    *slot = (struct unwind_slot){
        .space = w->space->id,
        .address = address,
        .bias = place->bias,
        .image = place->image,
        .rule = rule,
        .flags = flags,
        .keeps_fp = place->table == NULL || place->frame_pointers,
        .is_go = place->table != NULL && unwind_table_is_go(place->table),
    };
}

/* A trampoline may be the first code of its mapping; the byte before it, by which callers are looked
 * up, is then outside. */
static struct unwind_slot *fill_from_next(const struct walk *w, struct unwind_slot *slot)
{
    struct unwind_place place;
    if (w->exact || !w->space->find(w->space->context, w->address + 1, &place)) {
        return NULL;
    }
    fill(w, slot, &place, w->address);
    if (slot->rule.kind == RULE_SIGNAL) {
        return slot;
    }
    slot->space = 0;
    return NULL;
}

/* The slot of the walk's address, filled; null when nothing executable is mapped there. */
static inline struct unwind_slot *look_up(struct walk *w)
{
    uint64_t hash = (w->address ^ w->space->id << 40) * 0x9e3779b97f4a7c15;
    struct unwind_slot *slot = &w->u->cache[hash >> 52];
    if (slot->address == w->address && slot->space == w->space->id) {
        w->u->counters.hits++;
        return slot;
    }
    struct unwind_place place;
    if (w->space->find(w->space->context, w->address, &place)) {
        fill(w, slot, &place, w->address);
        return slot;
    }
    return fill_from_next(w, slot);
}

_Static_assert(SLOTS == 1 << (64 - 52), "the hash's upper bits number the slots");

static bool is_unchanged(const struct unwind_stack *s, size_t from, size_t len)
{
    unsigned char now[VERIFIED_BYTES];
    return s->beyond->read(s->beyond->context, s->base + from, now, len, NULL) &&
           memcmp(now, s->dump + from, len) == 0;
}

/* The dump is of the past; what lies behind it is read now. If the thread had returned that far in
 * the meantime, the dump's end would hardly be the same, nor its outermost return address. (Stale
 * bytes of a stack that was left altogether are; then no rule fits and nothing calls.) */
static bool verify(struct walk *w)
{
    const struct unwind_stack *s = w->stack;
    size_t len = s->len < VERIFIED_BYTES ? s->len : VERIFIED_BYTES;
    if (!w->verified) {
        w->verified = true;
        w->differs = (len > 0 && !is_unchanged(s, s->len - len, len)) ||
                     (w->last_ra != 0 && !is_unchanged(s, w->last_ra - s->base, WORD));
    }
    return !w->differs;
}

static bool load_beyond(struct walk *w, uint64_t address, uint64_t *out)
{
    const struct unwind_stack *s = w->stack;
    if (address < s->base - BELOW_SP && !w->switched) {
        w->why = STACK_BAD_MEMORY;
        return false;
    }
    if (s->beyond == NULL || !verify(w)) {
        w->why = STACK_TRUNCATED;
        return false;
    }
    w->why = STACK_BAD_MEMORY;
    uint64_t start = address - address % CHUNK_BYTES;
    if (address - start > CHUNK_BYTES - WORD) {
        return false;
    }
    if (w->chunk_address != start) {
        w->chunk_address = 1;
        if (!s->beyond->read(s->beyond->context, start, w->chunk, CHUNK_BYTES, NULL)) {
            return false;
        }
        w->chunk_address = start;
    }
    w->continued = true;
    memcpy(out, w->chunk + (address - start), WORD);
    return true;
}

static inline bool load(struct walk *w, uint64_t address, uint64_t *out)
{
    uint64_t at = address - w->stack->base;
    if (w->stack->len >= WORD && at <= w->stack->len - WORD) {
        memcpy(out, w->stack->dump + at, WORD);
        return true;
    }
    return load_beyond(w, address, out);
}

static inline bool register_value(struct walk *w, uint8_t reg, uint64_t *out)
{
    bool known;
    if (reg == arch_cfi.sp) {
        *out = w->sp;
        known = w->sp_known;
    } else if (reg == arch_cfi.fp) {
        *out = w->fp;
        known = w->fp_known;
    } else {
        known = reg < UNWIND_REGISTERS && (w->full->known >> reg & 1) != 0;
        *out = known ? w->full->at[reg] : 0;
        w->borrowed |= !w->exact;
    }
    if (!known) {
        w->why = STACK_NO_RULE;
    }
    return known;
}

/* A caller's return address is not in LR any more: its callee's took that place. Assembler that
 * keeps it in another register calls only what leaves that alone. */
static inline bool find_ra(struct walk *w, const struct unwind_rule *rule, uint64_t cfa,
                           uint64_t *ra)
{
    if (rule->ra_place == RA_REGISTER) {
        if (!w->exact && rule->ra == arch_cfi.ra) {
            w->why = STACK_NO_RULE;
            return false;
        }
        return register_value(w, (uint8_t)rule->ra, ra);
    }
    uint64_t at = rule->ra_place == RA_AT_BASE ? cfa - (uint64_t)(int64_t)rule->cfa : cfa;
    at += (uint64_t)(int64_t)rule->ra;
    bool good = load(w, at, ra);
    w->last_ra = w->continued ? w->last_ra : at;
    return good;
}

static inline bool find_cfa(struct walk *w, const struct unwind_rule *rule, uint64_t *cfa)
{
    if (rule->kind == RULE_CFA) {
        bool known = register_value(w, rule->cfa_reg, cfa);
        *cfa += (uint64_t)(int64_t)rule->cfa;
        return known;
    }
    if (rule->kind == RULE_PLT) {
        uint64_t ip = w->exact ? w->address : w->address + 1;
        bool known = register_value(w, arch_cfi.sp, cfa);
        *cfa += WORD + ((ip & 15) >= (uint64_t)rule->cfa ? WORD : 0);
        return known;
    }
    if (rule->kind == RULE_DEREF) {
        uint64_t base;
        if (!register_value(w, rule->cfa_reg, &base) ||
            !load(w, base + (uint64_t)(int64_t)rule->cfa, cfa)) {
            return false;
        }
        *cfa += (uint64_t)(int64_t)rule->addend;
        return true;
    }
    w->why = STACK_NO_RULE;
    return false;
}

static inline bool find_fp(struct walk *w, const struct unwind_rule *rule, uint64_t cfa,
                           uint64_t *fp, bool *known)
{
    uint64_t at = cfa;
    *fp = w->fp;
    *known = w->fp_known;
    switch (rule->fp_place) {
    case FP_SAME:
        return true;
    case FP_AT_CFA:
        break;
    case FP_AT_BASE:
        at = cfa - (uint64_t)(int64_t)rule->cfa;
        break;
    case FP_AT_FP:
        if (!w->fp_known) {
            return true;
        }
        at = w->fp;
        break;
    default:
        *known = false;
        return true;
    }
    *known = true;
    return load(w, at + (uint64_t)(int64_t)rule->fp, fp);
}

/* Go's CFI does not mention the frame pointer. It is this frame's own when it points into it: then
 * the caller's is what it points at. */
static inline bool find_go_fp(struct walk *w, uint64_t cfa, uint64_t *fp)
{
    bool own = w->fp_known && w->fp >= w->sp - BELOW_SP && w->fp < cfa;
    return !own || load(w, w->fp, fp);
}

static enum step step_over_signal(struct walk *w)
{
    struct unwind_registers r = {.known = 0};
    if (!w->sp_known) {
        return fail(w, STACK_NO_RULE);
    }
    bool before = w->switched;
    w->switched = true; /* the frame may be on another stack than the dump */
    for (uint8_t i = 0; i < UNWIND_REGISTERS; i++) {
        if (arch_signal_offset[i] == 0) {
            continue;
        }
        if (!load(w, w->sp + arch_signal_offset[i], &r.at[i])) {
            w->switched = before;
            return STEP_FAILED;
        }
        r.known |= UINT64_C(1) << i;
    }
    w->interrupted = r;
    w->full = &w->interrupted;
    w->exact = true;
    w->address = unwind_code_address(r.at[arch_ip]);
    w->sp = r.at[arch_cfi.sp];
    w->fp = r.at[arch_cfi.fp];
    w->sp_known = w->fp_known = true;
    return w->address == 0 ? fail(w, STACK_COMPLETE) : STEP_ON;
}

/* What it means that a step led nowhere. What was read after the sample is no contradiction. */
static enum stack_end failure_of(const struct walk *w, uint8_t flags)
{
    return w->continued                               ? STACK_TRUNCATED
           : (flags & FRAME_BY_FP) != 0 || w->borrowed ? STACK_NO_RULE
                                                       : STACK_BAD_MEMORY;
}

/* A caller's CFA is above its callee's; the same only when a leaf has pushed nothing, not even its
 * return address. Go's frame pointers may lead to another stack. */
static inline bool is_progress(struct walk *w, const struct unwind_rule *rule, uint64_t cfa,
                               bool other_stack)
{
    if (cfa % arch_cfa_alignment != 0) {
        return false;
    }
    if (cfa > w->sp && cfa - w->sp <= FRAME_BYTES_MAX) {
        return true;
    }
    w->switched |= other_stack;
    return other_stack || (cfa == w->sp && rule->ra_place == RA_REGISTER && w->exact);
}

/* Moves to the caller's frame by a rule; nothing has moved when it fails. */
static inline enum step step_over(struct walk *w, const struct unwind_rule *rule, uint8_t flags,
                                  bool is_go)
{
    uint64_t cfa, ra, fp;
    bool fp_known;
    w->continued = w->borrowed = false;
    if (rule->kind == RULE_END) {
        return fail(w, STACK_COMPLETE);
    }
    if (rule->kind == RULE_SIGNAL) {
        return step_over_signal(w);
    }
    if ((flags & FRAME_BY_FP) != 0 && w->fp_known && w->fp == 0) {
        return fail(w, STACK_COMPLETE);
    }
    if (!find_cfa(w, rule, &cfa)) {
        return STEP_FAILED;
    }
    if (!is_progress(w, rule, cfa, is_go && (flags & FRAME_BY_FP) != 0)) {
        return fail(w, failure_of(w, flags));
    }
    if (!find_ra(w, rule, cfa, &ra) || !find_fp(w, rule, cfa, &fp, &fp_known) ||
        (is_go && rule->fp_place == FP_SAME && !find_go_fp(w, cfa, &fp))) {
        return STEP_FAILED;
    }
    ra &= arch_code_mask;
    if (ra == 0) {
        return fail(w, STACK_COMPLETE);
    }
    w->address = ra - 1;
    w->sp = cfa;
    w->sp_known = (flags & FRAME_BY_FP) == 0 || arch_fp_gives_sp;
    w->fp = fp;
    w->fp_known = fp_known;
    w->exact = false;
    return STEP_ON;
}

/* Whether the address looks like one within a call; true when its code cannot be had. */
static bool is_in_call(struct walk *w, struct unwind_slot *slot, uint64_t address)
{
    unsigned char bytes[CALL_BYTES];
    struct unwind_place place;
    struct code code;
    if (slot->call == CALL_UNKNOWN) {
        slot->call = CALL_YES;
        if (w->space->find(w->space->context, address, &place) && address + 1 < place.limit &&
            read_around(w, &place, address + 1, CALL_BYTES, 0, bytes, &code) &&
            !analyse_is_behind_call(&code, address + 1)) {
            slot->call = CALL_NO;
        }
    }
    return slot->call == CALL_YES;
}

/* Steps and finds the next frame's slot; null, and nothing has moved, when that fails. */
static inline struct unwind_slot *step_to(struct walk *w, const struct unwind_rule *rule,
                                          uint8_t flags, bool is_go)
{
    uint64_t address = w->address, sp = w->sp, fp = w->fp;
    bool sp_known = w->sp_known, fp_known = w->fp_known, exact = w->exact;
    if (step_over(w, rule, flags, is_go) != STEP_ON) {
        return NULL;
    }
    struct unwind_slot *next = look_up(w);
    bool doubted = w->borrowed || w->continued || (flags & FRAME_BY_FP) != 0;
    if (next != NULL &&
        (!doubted || w->exact || next->keeps_fp || is_in_call(w, next, w->address))) {
        return next;
    }
    w->address = address;
    w->sp = sp;
    w->fp = fp;
    w->sp_known = sp_known;
    w->fp_known = fp_known;
    w->exact = exact;
    w->why = failure_of(w, flags);
    return NULL;
}

/* The slot of a word of the stack, if it looks like a return address. */
static struct unwind_slot *slot_of_word(struct walk *w, uint64_t word)
{
    struct unwind_place place;
    w->address = (word & arch_code_mask) - 1;
    if (word == 0 || !w->space->find(w->space->context, w->address, &place)) {
        return NULL;
    }
    struct unwind_slot *slot = look_up(w);
    return slot != NULL && is_in_call(w, slot, w->address) ? slot : NULL;
}

/* The first word of the stack that is an address behind a call. */
static struct unwind_slot *scan(struct walk *w)
{
    enum stack_end why = w->why;
    uint64_t address = w->address, start = (w->sp + WORD - 1) & ~(uint64_t)(WORD - 1), word;
    bool exact = w->exact;
    if (w->scans++ == SCANS_MAX) {
        return NULL;
    }
    w->exact = w->continued = false;
    for (size_t i = 0; i < SCAN_WORDS && load(w, start + i * WORD, &word); i++) {
        struct unwind_slot *slot = slot_of_word(w, word);
        if (slot != NULL) {
            w->sp = start + (i + 1) * WORD;
            w->sp_known = arch_fp_gives_sp;
            return slot;
        }
    }
    w->address = address;
    w->exact = exact;
    w->why = why;
    return NULL;
}

/* The caller's slot, by the frame's rule or what is left to try; *flags: how it was found. */
static inline struct unwind_slot *advance(struct walk *w, const struct unwind_slot *slot,
                                          uint8_t *flags)
{
    struct unwind_rule rule = slot->rule;
    bool keeps_fp = slot->keeps_fp, is_go = slot->is_go;
    *flags = slot->flags;
    struct unwind_slot *next = step_to(w, &rule, *flags, is_go);
    if (__builtin_expect(next != NULL || w->why <= STACK_TRUNCATED, 1)) {
        return next;
    }
    bool may_guess = w->u->method == UNWIND_HYBRID || keeps_fp;
    bool certain = *flags == 0 && rule.kind != RULE_NONE && w->why != STACK_NO_RULE;
    if (certain || !may_guess) {
        return NULL;
    }
    if ((*flags & FRAME_BY_FP) == 0) {
        *flags = FRAME_BY_FP;
        next = step_to(w, &arch_fp_rule, *flags, is_go);
        if (next != NULL || w->why <= STACK_TRUNCATED) {
            return next;
        }
    }
    *flags = FRAME_GUESSED;
    return w->u->method == UNWIND_HYBRID ? scan(w) : NULL;
}

/* The trampoline that returns from a signal was never called: its address is the one that will be
 * returned to, and what stands before it is another function. */
static void add_frame(struct walk *w, struct unwind_result *out, const struct unwind_slot *slot,
                      uint8_t flags)
{
    uint64_t bias = slot == NULL ? 0 : slot->bias;
    bool uncalled = slot != NULL && slot->rule.kind == RULE_SIGNAL && !w->exact;
    uint64_t address = w->address + uncalled;
    out->frame[out->count++] = (struct unwind_frame){
        .address = address,
        .elf_address = address - bias,
        .image = slot == NULL ? 0 : slot->image,
        .flags = (uint8_t)(flags | (w->exact || uncalled ? FRAME_EXACT : 0) |
                           (w->continued ? FRAME_CONTINUED : 0)),
    };
}

static void count_frame(struct unwind_counters *c, const struct unwind_frame *frame)
{
    c->by_fp += (frame->flags & FRAME_BY_FP) != 0;
    c->analysed += (frame->flags & FRAME_ANALYSED) != 0;
    c->guessed += (frame->flags & FRAME_GUESSED) != 0;
    c->continued += (frame->flags & FRAME_CONTINUED) != 0;
}

/* A leaf outside of all that is mapped as code: generated since, or a call to nowhere, of which the
 * return address is on top of the stack. */
static struct unwind_slot *leave_unmapped(struct walk *w, uint8_t *flags)
{
    static const struct unwind_slot nowhere = {.rule = {.kind = RULE_NONE}, .keeps_fp = true};
    return advance(w, &nowhere, flags);
}

void unwind(struct unwinder *u, const struct unwind_registers *registers,
            const struct unwind_stack *stack, const struct unwind_space *space, size_t max_frames,
            struct unwind_result *out)
{
    struct walk w;
    w.u = u;
    w.space = space;
    w.stack = stack;
    w.full = registers;
    w.address = unwind_code_address(registers->at[arch_ip]);
    w.sp = registers->at[arch_cfi.sp];
    w.fp = registers->at[arch_cfi.fp];
    w.sp_known = (registers->known >> arch_cfi.sp & 1) != 0;
    w.fp_known = (registers->known >> arch_cfi.fp & 1) != 0;
    w.exact = true;
    w.switched = w.continued = w.borrowed = w.verified = w.differs = false;
    w.last_ra = 0;
    w.scans = 0;
    w.why = STACK_NO_RULE;
    w.chunk_address = 1;
    out->count = 0;
    size_t max = max_frames < UNWIND_FRAMES_MAX ? max_frames : UNWIND_FRAMES_MAX;
    uint8_t flags = 0;
    bool guessed = false;
    struct unwind_slot *slot = look_up(&w);
    add_frame(&w, out, slot, 0);
    slot = slot == NULL ? leave_unmapped(&w, &flags) : advance(&w, slot, &flags);
    while (slot != NULL && out->count < max) {
        add_frame(&w, out, slot, flags);
        if (__builtin_expect(out->frame[out->count - 1].flags != 0, 0)) {
            guessed |= (flags & FRAME_GUESSED) != 0;
            count_frame(&u->counters, &out->frame[out->count - 1]);
        }
        slot = advance(&w, slot, &flags);
    }
    out->end = guessed ? STACK_GUESSED : slot != NULL ? STACK_TRUNCATED : w.why;
    u->counters.frames += out->count;
    u->counters.stacks[out->end]++;
}

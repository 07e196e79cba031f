/* Walks a stack: from the sampled registers, frame by frame, by the cached rule of each address, with
 * checks at every step. Ends at a known end of the stack, or with a verdict that says why it could
 * not go on. */
#include "unwind/unwind.h"
#include "unwind/walk.h"

#include <stdlib.h>
#include <string.h>

enum {
    SCAN_WORDS = 512,
    SCANS_MAX = 2, /* per stack */
};

/* A frame larger than this is a wrong turn: whole stacks have 8 MiB. */
#define FRAME_BYTES_MAX (UINT64_C(64) << 20)
/* Go's frame pointers may lead to another stack, of which no copy has anything. Frames as large as this are rare. */
#define GO_FRAME_BYTES (UINT64_C(16) << 10)

uint64_t unwind_perf_mask(void)
{
    return arch_perf_mask;
}

uint64_t unwind_code_address(uint64_t address)
{
    return address & arch_code_mask;
}

uint64_t unwind_ip(const struct unwind_registers *registers)
{
    return unwind_code_address(registers->at[arch_ip]);
}

uint64_t unwind_sp(const struct unwind_registers *registers)
{
    return registers->at[arch_cfi.sp];
}

uint64_t unwind_fp(const struct unwind_registers *registers)
{
    return registers->at[arch_cfi.fp];
}

uint64_t unwind_kept(const struct unwind_registers *registers, unsigned which)
{
    return registers->at[arch_kept + which];
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

uint64_t unwind_signal_frame(const struct unwind_registers *registers)
{
    return arch_signal_frame(registers);
}

void unwind_interrupted(const unsigned char frame[static UNWIND_SIGNAL_BYTES], uint64_t mask, uint64_t *values)
{
    for (; mask != 0; mask &= mask - 1, values++) {
        uint8_t number = arch_perf_order[__builtin_ctzll(mask)];
        if (number < UNWIND_REGISTERS && arch_signal_offset[number] != 0) {
            memcpy(values, frame + arch_signal_offset[number], sizeof *values);
        }
    }
}

struct unwind_registers unwind_registers_at(uint64_t ip, uint64_t sp)
{
    struct unwind_registers r = {.known = UINT64_C(1) << arch_ip | UINT64_C(1) << arch_cfi.sp};
    r.at[arch_ip] = ip;
    r.at[arch_cfi.sp] = sp;
    return r;
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

static bool fail(struct walk *w, enum stack_end why)
{
    w->why = why;
    return false;
}

/* What it means that a step led nowhere. Memory of after the sample contradicts nothing. */
static enum stack_end failure_of(const struct walk *w, const struct method *m)
{
    if (rule_is_somewhere(&m->rule)) {
        return STACK_NO_RULE;
    }
    if (w->continued) {
        return STACK_TRUNCATED;
    }
    return (m->flags & FRAME_BY_FP) != 0 || w->borrowed ? STACK_NO_RULE : STACK_BAD_MEMORY;
}

/* Registers that rules do not follow are as the sample, or the signal's frame, has them; a caller
 * that needs one is believed only if that leads after a call. When it does not, walk_recover finds
 * out what has become of it. */
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
        *out = w->recovered ? w->recovered_value : known ? w->full->at[reg] : 0;
        w->borrowed |= !w->exact;
        w->borrowed_reg = reg;
    }
    return known || fail(w, STACK_NO_RULE);
}

/* The slot of a word of the stack, if it looks like a return address. */
static struct unwind_slot *slot_of_word(struct walk *w, uint64_t word)
{
    struct unwind_place place;
    w->address = (word & arch_code_mask) - 1;
    if (word == 0 || !w->space->find(w->space->context, w->address, &place)) {
        return NULL; /* most words, without costing a slot */
    }
    struct unwind_slot *slot = slot_of(w);
    return slot != NULL && slot_is_in_call(w, slot) ? slot : NULL;
}

/* Wherever it is, and the copies of it that a loop leaves behind as it moves SP down: it is a word of the
 * frame that points up to a return address. Both together do not stand there by chance. */
static bool find_cfa_somewhere(struct walk *w, const struct unwind_rule *rule, uint64_t *cfa)
{
    uint64_t address = w->address, word, ra;
    bool exact = w->exact, found = false;
    for (size_t i = 0; i < SCAN_WORDS && !found; i++) {
        uint64_t at = w->sp + i * WORD;
        if (at - w->stack->base >= w->stack->len || !stack_load(w, at, &word)) {
            break;
        }
        uint64_t slot = word + (uint64_t)(int64_t)rule->addend - WORD;
        if (slot > at && slot - w->stack->base < w->stack->len && slot % WORD == 0 &&
            stack_load(w, slot, &ra)) {
            w->exact = false;
            found = slot_of_word(w, ra) != NULL;
            w->exact = exact;
        }
    }
    w->address = address;
    *cfa = found ? word + (uint64_t)(int64_t)rule->addend : 0;
    return found;
}

static inline bool find_cfa(struct walk *w, const struct unwind_rule *rule, uint64_t *cfa)
{
    uint64_t base;
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
        if (rule_is_somewhere(rule)) {
            return find_cfa_somewhere(w, rule, cfa) || fail(w, STACK_NO_RULE);
        }
        bool known = register_value(w, rule->cfa_reg, &base) &&
                     stack_load(w, base + (uint64_t)(int64_t)rule->cfa, cfa);
        *cfa = known ? *cfa + (uint64_t)(int64_t)rule->addend : 0;
        return known;
    }
    return fail(w, STACK_NO_RULE);
}

/* The lower end of a frame: what RA_AT_BASE and FP_AT_BASE count from. */
static inline uint64_t base_of(const struct unwind_rule *rule, uint64_t cfa)
{
    return cfa - (uint64_t)(int64_t)rule->cfa;
}

/* A caller's return address is not in LR any more: its callee's took that place. (It called what
 * does not return; the frame pointer then is of the next frame above that has one.) Assembler that
 * keeps it in another register calls only what leaves that alone. */
static inline bool is_ra_gone(const struct walk *w, const struct unwind_rule *rule)
{
    return rule->ra_place == RA_REGISTER && !w->exact && rule->ra == arch_cfi.ra;
}

static inline bool find_ra(struct walk *w, const struct unwind_rule *rule, uint64_t cfa,
                           uint64_t *ra)
{
    if (rule->ra_place == RA_REGISTER) {
        return register_value(w, (uint8_t)rule->ra, ra);
    }
    uint64_t at = rule->ra_place == RA_AT_BASE ? base_of(rule, cfa) : cfa;
    at += (uint64_t)(int64_t)rule->ra;
    bool good = stack_load(w, at, ra);
    w->last_ra = w->continued ? w->last_ra : at;
    return good;
}

/* Go's CFI does not mention the frame pointer. It is this frame's own when it points into it: then the caller's is what
 * it points at. On AArch64 it points below SP, of which the copy has nothing; and where there is no frame, SP is still
 * the caller's. On x86-64 it does so around a call of duffzero or duffcopy: the caller's stands where it always does,
 * and they themselves, which have no frame, leave it as it is (is_record_below). */
static inline bool find_go_fp(struct walk *w, uint64_t cfa, uint64_t *fp)
{
    bool own = w->fp_known && cfa > w->sp && w->fp >= w->sp - BELOW_SP && w->fp < cfa;
    if (!own || w->fp >= w->sp || stack_is_copied(w, w->fp)) {
        return !own || stack_load(w, w->fp, fp);
    }
    uint64_t saved = cfa + (uint64_t)(int64_t)arch_go_fp;
    if (arch_go_fp_place == FP_IS_CFA) {
        *fp = saved;
        return true;
    }
    return saved < w->sp || stack_load(w, saved, fp);
}

static inline bool find_fp(struct walk *w, const struct method *m, uint64_t cfa, uint64_t *fp,
                           bool *known)
{
    const struct unwind_rule *rule = &m->rule;
    uint64_t at = cfa;
    *fp = w->fp;
    *known = w->fp_known;
    switch (rule->fp_place) {
    case FP_SAME:
        return !m->is_go || find_go_fp(w, cfa, fp);
    case FP_AT_CFA:
        break;
    case FP_AT_BASE:
        at = base_of(rule, cfa);
        break;
    case FP_IS_CFA:
        *known = true;
        *fp = cfa + (uint64_t)(int64_t)rule->fp;
        return true;
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
    return stack_load(w, at + (uint64_t)(int64_t)rule->fp, fp);
}

static bool load_interrupted(struct walk *w, struct unwind_registers *r)
{
    for (uint8_t i = 0; i < UNWIND_REGISTERS; i++) {
        if (arch_signal_offset[i] != 0) {
            if (!stack_load(w, w->sp + arch_signal_offset[i], &r->at[i])) {
                return false;
            }
            r->known |= UINT64_C(1) << i;
        }
    }
    return true;
}

/* To the frame that a signal interrupted, which may be on another stack. */
static bool step_over_signal(struct walk *w)
{
    struct unwind_registers r = {.known = 0};
    if (!w->sp_known || !load_interrupted(w, &r)) {
        return w->sp_known ? false : fail(w, STACK_NO_RULE);
    }
    w->interrupted = r;
    w->full = &w->interrupted;
    w->exact = true;
    w->switched = true;
    w->address = unwind_code_address(r.at[arch_ip]);
    w->sp = r.at[arch_cfi.sp];
    w->fp = r.at[arch_cfi.fp];
    w->sp_known = w->fp_known = true;
    return w->address != 0 || fail(w, STACK_COMPLETE);
}

/* A caller's CFA is above its callee's; the same only when a leaf has pushed nothing, not even its
 * return address. Go's frame pointers may lead anywhere, and on AArch64 they stand a word below SP. */
static inline bool is_progress(const struct walk *w, const struct method *m, uint64_t cfa)
{
    bool go_fp = m->is_go && (m->flags & FRAME_BY_FP) != 0;
    if ((cfa & ((go_fp ? WORD : arch_cfa_alignment) - 1)) != 0) {
        return false;
    }
    if (cfa > w->sp && cfa - w->sp <= FRAME_BYTES_MAX) {
        return true;
    }
    return go_fp || (cfa == w->sp && m->rule.ra_place == RA_REGISTER && w->exact);
}

/* Moves to the caller's frame; when it fails, nothing has moved and w->why says why. */
static inline bool step_over(struct walk *w, const struct method *m)
{
    uint64_t cfa, ra, fp;
    bool fp_known, by_fp = (m->flags & FRAME_BY_FP) != 0;
    w->continued = w->borrowed = false;
    if (m->rule.kind == RULE_END || m->rule.kind == RULE_START) {
        w->at_start = true;
        return fail(w, STACK_COMPLETE);
    }
    if (__builtin_expect(w->chained > 0, 0)) {
        return chain_step(w, m);
    }
    if (m->rule.kind == RULE_SIGNAL) {
        return step_over_signal(w);
    }
    if (by_fp && w->fp_known && w->fp == 0) {
        return fail(w, m->keeps_fp ? STACK_COMPLETE : STACK_NO_RULE);
    }
    if (is_ra_gone(w, &m->rule)) {
        return fail(w, STACK_NO_RULE);
    }
    if (!find_cfa(w, &m->rule, &cfa)) {
        return false;
    }
    if (by_fp && m->is_go && !stack_is_copied(w, cfa - WORD)) {
        w->switched |= cfa - w->sp > GO_FRAME_BYTES; /* below, too */
        if (chain_begin(w)) {
            return chain_step(w, m);
        }
    }
    if (!is_progress(w, m, cfa)) {
        return fail(w, failure_of(w, m));
    }
    if (!find_ra(w, &m->rule, cfa, &ra) || !find_fp(w, m, cfa, &fp, &fp_known)) {
        return false;
    }
    ra &= arch_code_mask;
    if (ra == 0) {
        return fail(w, STACK_COMPLETE);
    }
    w->address = ra - 1;
    w->sp = cfa;
    w->sp_known = !by_fp || arch_fp_gives_sp;
    w->fp = fp;
    w->fp_known = fp_known;
    w->exact = false;
    return true;
}

bool walk_step(struct walk *w, const struct method *m)
{
    return step_over(w, m);
}

/* Where the step led: what is less than certain must lead after a call. */
static inline struct unwind_slot *arrive(struct walk *w, const struct method *m)
{
    struct unwind_slot *next = slot_of(w);
    bool doubted = w->borrowed || w->continued || (m->flags & FRAME_BY_FP) != 0;
    if (next == NULL || !doubted || w->exact || next->method.keeps_fp || next->method.rule.kind == RULE_START) {
        return next;
    }
    return slot_is_in_call(w, next) ? next : NULL;
}

/* Steps and finds the next frame's slot; null, and nothing has moved, when that fails. */
static inline struct unwind_slot *step_to(struct walk *w, const struct method *m)
{
    uint64_t address = w->address, sp = w->sp, fp = w->fp;
    bool sp_known = w->sp_known, fp_known = w->fp_known, exact = w->exact;
    size_t chained = w->chained;
    if (!step_over(w, m)) {
        return NULL;
    }
    struct unwind_slot *next = arrive(w, m);
    if (next == NULL) {
        w->address = address;
        w->sp = sp;
        w->fp = fp;
        w->sp_known = sp_known;
        w->fp_known = fp_known;
        w->exact = exact;
        w->chained = chained;
        w->why = failure_of(w, m);
    }
    return next;
}

/* The first word of the stack that is an address after a call. */
static struct unwind_slot *scan(struct walk *w)
{
    uint64_t address = w->address, start = (w->sp + WORD - 1) & ~(uint64_t)(WORD - 1), word;
    enum stack_end why = w->why;
    bool exact = w->exact;
    w->exact = w->continued = false;
    for (size_t i = 0; i < SCAN_WORDS && stack_load(w, start + i * WORD, &word); i++) {
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

/* Once more, with the right value of the register that the rule needs. */
static struct unwind_slot *step_recovered(struct walk *w, const struct method *m)
{
    if (!walk_recover(w)) {
        return NULL;
    }
    w->recovered = true;
    struct unwind_slot *next = step_to(w, m);
    w->recovered = false;
    return next;
}

static bool wants_fp(const struct method *m)
{
    return (m->rule.kind == RULE_CFA || m->rule.kind == RULE_DEREF) && m->rule.cfa_reg == arch_cfi.fp;
}

/* By SP alone, as the function's code has it. */
static struct unwind_slot *step_by_sp(struct walk *w, struct method *m)
{
    struct method by_sp = *m;
    if (!w->sp_known || !slot_by_sp(w, &by_sp)) {
        return NULL;
    }
    struct unwind_slot *next = step_to(w, &by_sp);
    m->flags = next != NULL ? by_sp.flags : m->flags;
    return next;
}

/* What Go code called without a frame stands above the record that the frame pointer leads to, which is not in the
 * copy: on AArch64 each function's is below its SP, and everywhere the one that was made for duffzero and duffcopy, so
 * that who goes by frame pointers alone finds their caller. */
static bool is_record_below(const struct walk *w, const struct method *m)
{
    bool by_fp = m->is_go && (m->flags & FRAME_BY_FP) != 0 && !w->exact;
    return by_fp && w->fp_known && w->sp_known && w->fp < w->sp && w->fp >= w->sp - BELOW_SP;
}

/* After a step that failed: what the code tells, the frame pointer, if that was not it, and a scan at last. */
static struct unwind_slot *try_harder(struct walk *w, struct method *m)
{
    bool may_guess = w->u->method == UNWIND_HYBRID;
    bool certain = m->flags == 0 && m->rule.kind != RULE_NONE && w->why != STACK_NO_RULE;
    struct unwind_slot *next = w->borrowed ? step_recovered(w, m) : NULL;
    if (next == NULL && !w->fp_known && wants_fp(m) && may_guess) {
        next = step_by_sp(w, m);
    }
    if (next != NULL || certain || !(may_guess || m->keeps_fp)) {
        return next;
    }
    if ((m->flags & FRAME_BY_FP) == 0 && !(w->fp_known && w->fp == 0)) {
        m->rule = arch_fp_rule;
        m->flags = FRAME_BY_FP;
        next = step_to(w, m);
        if (next != NULL || w->why <= STACK_TRUNCATED) {
            return next;
        }
    }
    bool bottom = (m->flags & FRAME_BY_FP) != 0 && w->fp_known && w->fp == 0;
    m->flags = FRAME_GUESSED;
    struct unwind_slot *guess = may_guess && w->scans++ < SCANS_MAX ? scan(w) : NULL;
    if (guess == NULL && bottom) {
        w->why = STACK_COMPLETE; /* a zero frame pointer, and nothing above it was called */
    }
    return guess;
}

static bool read_stack(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    struct walk *w = context;
    enum stack_end why = w->why;
    bool good = address % WORD == 0 && len % WORD == 0;
    for (size_t at = 0; good && at < len; at += WORD) {
        uint64_t word = 0;
        good = stack_load(w, address + at, &word);
        memcpy((char *)out + at, &word, WORD);
    }
    w->why = why;
    return good || err_set(err, ERR_MALFORMED, 0, "%#llx is not on the stack", (unsigned long long)address);
}

/* The method that a runtime gives for its code. */
static bool resolve(struct walk *w, struct method *m, uint64_t *sp)
{
    const struct memory_reader stack = {read_stack, w};
    w->asked = ++w->questions;
    uint64_t ip = w->exact ? w->address : w->address + 1;
    const uint64_t *registers = w->exact ? w->full->at : NULL;
    const struct unwind_question question = {w->asked, w->address, ip, w->sp, w->fp, &stack, registers};
    struct unwind_answer a;
    if (!w->space->resolve(w->space->context, &question, &a)) {
        return false;
    }
    if (a.way == UNWIND_BY_FRAME_POINTER) {
        *m = (struct method){.rule = arch_fp_rule, .flags = FRAME_BY_FP, .keeps_fp = true};
        *sp = a.value;
        return true;
    }
    bool linked = a.way == UNWIND_BY_LINK_REGISTER;
    uint64_t bytes = a.way == UNWIND_BY_CFA ? a.value - w->sp : linked ? a.value : a.value + WORD;
    bool knows = a.way == UNWIND_BY_CFA || w->sp_known;
    if (bytes > FRAME_BYTES_MAX || a.saved_fp > INT16_MAX || !knows || (linked && !arch_cfi.ra_is_register)) {
        return false;
    }
    *m = (struct method){.rule = {.kind = RULE_CFA,
                                  .cfa_reg = (uint8_t)arch_cfi.sp,
                                  .cfa = (int32_t)bytes,
                                  .ra_place = linked ? RA_REGISTER : RA_AT_CFA,
                                  .ra = linked ? (int16_t)arch_cfi.ra : -WORD,
                                  .fp_place = a.saved_fp != 0 ? FP_AT_CFA : FP_SAME,
                                  .fp = (int16_t)-(int32_t)a.saved_fp}};
    return true;
}

enum { PUSHED_MOST = 4 }; /* words that generated code keeps for some instructions below its frame */

/* By the runtime's method; null: it has none, or it leads nowhere. A CFA that is given needs no SP. */
static struct unwind_slot *step_resolved(struct walk *w, struct method *m)
{
    struct method given;
    bool sp_known = w->sp_known;
    uint64_t sp = 0;
    if (!resolve(w, &given, &sp)) {
        return NULL;
    }
    w->sp_known = true;
    struct unwind_slot *next = step_to(w, &given);
    for (unsigned n = 0; next == NULL && n < PUSHED_MOST && w->exact && given.rule.cfa_reg == arch_cfi.sp; n++) {
        given.rule.cfa += WORD;
        next = step_to(w, &given);
    }
    if (next != NULL) {
        *m = given;
        if (sp > w->sp && sp - w->sp <= FRAME_BYTES_MAX) {
            w->sp = sp;
            w->sp_known = true;
        }
    } else {
        w->sp_known = sp_known;
    }
    return next;
}

/* The caller's slot, by the frame's method or what is left to try; *flags: how it was found. The
 * method is copied because the caller may take the very slot. */
static inline struct unwind_slot *advance(struct walk *w, const struct method *method,
                                          uint8_t *flags)
{
    struct method m = *method;
    bool asks = __builtin_expect(w->space->resolve != NULL, 0) && (m.flags != 0 || m.rule.kind == RULE_NONE);
    struct unwind_slot *next = asks ? step_resolved(w, &m) : NULL;
    bool is_below = next == NULL && is_record_below(w, &m);
    if (__builtin_expect(is_below && arch_go_fp_place != FP_IS_CFA, 0)) {
        next = step_by_sp(w, &m); /* what is below SP by now is of another moment */
    }
    next = next == NULL ? step_to(w, &m) : next;
    if (__builtin_expect(next == NULL && is_below, 0)) {
        next = step_by_sp(w, &m);
    }
    bool by_go_fp = m.is_go && (m.flags & FRAME_BY_FP) != 0;
    if (__builtin_expect(next == NULL && by_go_fp && slot_is_outermost(w, &m), 0)) {
        w->at_start = true; /* without a frame: what was tried is that of the C code that started the thread */
        (void)fail(w, STACK_COMPLETE);
    }
    if (__builtin_expect(next == NULL && w->why > STACK_TRUNCATED, 0)) {
        next = try_harder(w, &m);
    }
    *flags = m.flags;
    return next;
}

/* The trampoline that returns from a signal was never called, nor was the start of a coroutine: its address is the one
 * that will be returned to, and what stands before it is another function. */
static inline void add_frame(struct walk *w, struct unwind_result *out,
                             const struct unwind_slot *slot, uint8_t flags)
{
    uint8_t kind = slot->method.rule.kind;
    bool uncalled = !w->exact && (kind == RULE_SIGNAL || kind == RULE_START);
    uint64_t address = w->address + uncalled;
    out->frame[out->count++] = (struct unwind_frame){
        .address = address,
        .elf_address = address - slot->bias,
        .image = slot->image,
        .flags = (uint8_t)(flags | (w->exact || uncalled ? FRAME_EXACT : 0) |
                           (w->continued ? FRAME_CONTINUED : 0)),
    };
}

/* Makes room by forgetting what is neither near the leaf nor, so far, near the root. */
static void leave_out(struct unwind_result *out, size_t max)
{
    size_t root = max / 4 > 1 ? max / 4 : 2, less = root / 2;
    out->joint = max - root;
    memmove(&out->frame[out->joint], &out->frame[out->joint + less],
            (root - less) * sizeof out->frame[0]);
    out->count -= less;
}

static void count_flags(struct unwind_counters *c, uint8_t flags)
{
    c->by_fp += (flags & FRAME_BY_FP) != 0;
    c->analysed += (flags & FRAME_ANALYSED) != 0;
    c->guessed += (flags & FRAME_GUESSED) != 0;
    c->continued += (flags & FRAME_CONTINUED) != 0;
}

static void walk_begin(struct walk *w, struct unwinder *u, const struct unwind_registers *r,
                       const struct unwind_stack *stack, const struct unwind_space *space)
{
    w->u = u;
    w->space = space;
    w->stack = stack;
    w->address = unwind_ip(r);
    w->sp = unwind_sp(r);
    w->fp = r->at[arch_cfi.fp];
    w->sp_known = (r->known >> arch_cfi.sp & 1) != 0;
    w->fp_known = (r->known >> arch_cfi.fp & 1) != 0;
    w->exact = true;
    w->continued = w->borrowed = w->recovered = w->switched = w->verified = w->differs = w->at_start = false;
    w->scans = 0;
    w->why = STACK_NO_RULE;
    w->last_ra = 0;
    w->chained = 0;
    w->full = r;
    w->chunk_address = 1;
    w->questions = w->asked = 0;
}

static void note_question(struct walk *w, struct unwind_result *out)
{
    out->frame[out->count - 1].question = w->asked;
    w->asked = 0;
}

/* A larger copy would have nothing for a stack that goes on elsewhere, or was lost. */
static size_t reach_of(const struct walk *w, enum stack_end end)
{
    const struct unwind_stack *s = w->stack;
    uint64_t outermost = w->sp - s->base, last = w->last_ra - s->base;
    if (!w->switched && end <= STACK_TRUNCATED) {
        return end == STACK_COMPLETE && outermost <= s->len ? (size_t)outermost : s->len;
    }
    return last <= s->len ? (size_t)last : 0;
}

void unwind(struct unwinder *u, const struct unwind_registers *registers,
            const struct unwind_stack *stack, const struct unwind_space *space, size_t max_frames,
            struct unwind_result *out)
{
    /* a leaf outside of all code that is mapped: generated since, or a call to nowhere, of which
     * the return address is on top of the stack */
    static const struct unwind_slot nowhere = {.method = {.keeps_fp = true}};
    struct walk w;
    uint8_t flags = 0, all_flags = 0;
    size_t max = max_frames < UNWIND_FRAMES_MAX ? max_frames : UNWIND_FRAMES_MAX;
    walk_begin(&w, u, registers, stack, space);
    size_t walked = 1;
    out->count = out->joint = 0;
    const struct unwind_slot *slot = slot_of(&w);
    slot = slot == NULL ? &nowhere : slot;
    add_frame(&w, out, slot, 0);
    while ((slot = advance(&w, &slot->method, &flags)) != NULL && walked < UNWIND_WALK_MAX) {
        if (__builtin_expect(w.asked != 0, 0)) {
            note_question(&w, out);
        }
        if (__builtin_expect(out->count == max, 0)) {
            leave_out(out, max);
        }
        walked++;
        add_frame(&w, out, slot, flags);
        uint8_t found = out->frame[out->count - 1].flags;
        if (__builtin_expect(found != 0, 0)) {
            all_flags |= found;
            count_flags(&u->counters, found);
        }
    }
    note_question(&w, out);
    out->end = (all_flags & FRAME_GUESSED) != 0 ? STACK_GUESSED
               : slot != NULL                   ? STACK_TRUNCATED
                                                : w.why;
    out->at_start = out->end == STACK_GUESSED ? w.at_start : out->end == STACK_COMPLETE;
    out->reach = reach_of(&w, out->end);
    u->counters.frames += walked;
    u->counters.stacks[out->end]++;
}

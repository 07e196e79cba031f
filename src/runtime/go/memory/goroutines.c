/* All goroutines of a process, each read at its own moment while they run on. They are taken by the hundred: one batch
 * reads what the runtime notes about each of them, the next one their stacks and then the same again; a goroutine that
 * is the same before and after had this stack. One that is not is tried again; when it has moved on each time, it is
 * counted as such, so that the number of goroutines is right.
 *
 * From where a stack is followed is as in runtime.saveg: from where a system call was entered, else from where the
 * scheduler left it. */
#include "runtime/go/memory/goroutines.h"

#include <stdlib.h>

#include "runtime/common/load.h"

enum {
    TRIES = 3,
    FIRST_BYTES = 2048, /* of each stack; most are not deeper */
    DEEP_BYTES = 64 << 10,
};

struct one {
    uint64_t address; /* of its g; 0: done */
    unsigned char g[GO_G_BYTES], again[GO_G_BYTES];
    unsigned char stack[FIRST_BYTES];
};

struct collector {
    struct go_memory *m;
    struct go_stacks *to;
    struct go_unwinder unwinder;
    struct go_stack stack;
    struct map classes; /* for go_goroutine_is_told */
    struct one *current;
    struct one all[GO_GOROUTINES_AT_ONCE];
    struct one *wanted[GO_GOROUTINES_AT_ONCE];
    struct memory_piece pieces[GO_GOROUTINES_AT_ONCE], stacks[2 * GO_GOROUTINES_AT_ONCE];
    unsigned char deep[DEEP_BYTES];
};

/* ---- one goroutine ---- */

static struct go_goroutine describe(const struct collector *c, const unsigned char *g, const char *state)
{
    const struct go_layout *layout = c->m->layout;
    unsigned status = go_status_of(c->m, g);
    bool waits = status == GO_WAITING || status == GO_SYSCALL || status == GO_LEAKED;
    return (struct go_goroutine){
        .state = state,
        .waitsince = waits ? go_field(g, layout->waitsince) : 0,
        .labels = go_field(g, layout->labels),
    };
}

/* One without a stack: by its first function. */
static void add_unseen(struct collector *c, const unsigned char *g, const char *state, const char *mark)
{
    struct go_goroutine one = describe(c, g, state);
    uint64_t pc = go_field(g, c->m->layout->startpc) + 1;
    one.mark = mark;
    one.pcs = &pc;
    one.count = 1;
    (void)go_stacks_add(c->to, &one);
}

/* False: it needs no stack, or cannot have one now. */
static bool place_stack(const struct collector *c, const unsigned char *g, struct go_stack *s)
{
    const struct go_layout *layout = c->m->layout;
    uint64_t syscall_sp = go_field(g, layout->syscall_sp);
    s->in_syscall = syscall_sp != 0;
    s->sp = s->in_syscall ? syscall_sp : go_field(g, GO_G_SP);
    s->pc = go_field(g, s->in_syscall ? layout->syscall_pc : GO_G_PC);
    s->lr = s->in_syscall ? 0 : go_field(g, layout->lr);
    s->limit = go_field(g, GO_G_STACK_HI);
    return go_has_stack(g) && s->sp >= go_field(g, GO_G_STACK_LO) && s->sp < s->limit && s->sp % 8 == 0;
}

static bool is_same(const struct go_memory *m, const unsigned char *before, const unsigned char *after)
{
    const struct go_layout *layout = m->layout;
    const uint16_t words[] = {GO_G_STACK_LO, GO_G_STACK_HI, GO_G_SP, GO_G_PC, layout->syscall_sp, layout->syscall_pc,
                              layout->goid, layout->startpc};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (go_field(before, words[i]) != go_field(after, words[i])) {
            return false;
        }
    }
    return go_status_of(m, before) == go_status_of(m, after) && before[layout->waitreason] == after[layout->waitreason];
}

/* More of a deep stack, with its goroutine behind it. */
static bool read_deeper(void *context, struct go_stack *s, uint64_t address)
{
    struct collector *c = context;
    if (address >= s->limit || s->limit - address < 8) {
        return false;
    }
    uint64_t left = s->limit - address;
    struct memory_piece pieces[] = {
        {.address = address, .out = c->deep, .len = (uint32_t)(left < DEEP_BYTES ? left : DEEP_BYTES)},
        {.address = c->current->address, .out = c->current->again, .len = c->m->layout->labels + 8U},
    };
    if (!memory_batch_read(c->m->process.memory, pieces, 2, &c->m->unread) || pieces[0].got < 8 ||
        pieces[1].got != pieces[1].len || !is_same(c->m, c->current->g, c->current->again)) {
        return false;
    }
    s->bytes = c->deep;
    s->start = address;
    s->len = pieces[0].got;
    return true;
}

/* False: it has to be tried again. */
static bool take_stack(struct collector *c, struct one *one, const struct memory_piece *stack,
                       const struct memory_piece *again)
{
    struct go_stack *s = &c->stack;
    if (again->got != again->len || !is_same(c->m, one->g, one->again)) {
        return false;
    }
    c->current = one;
    (void)place_stack(c, one->g, s);
    s->bytes = one->stack;
    s->start = stack->address;
    s->len = stack->got;
    if (!go_unwind(&c->unwinder, s)) {
        return false;
    }
    struct go_goroutine told = describe(c, one->g, go_state_of(c->m, one->g));
    told.pcs = s->pcs;
    told.count = s->count;
    one->address = 0;
    (void)go_stacks_add(c->to, &told); /* which keeps that it failed */
    return true;
}

/* ---- a hundred ---- */

static struct memory_piece piece_of_g(const struct collector *c, const struct one *one, unsigned char *to)
{
    return (struct memory_piece){.address = one->address, .out = to, .len = c->m->layout->labels + 8U};
}

/* What the runtime notes about those that are not done. */
static bool read_notes(struct collector *c, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (c->all[i].address != 0) {
            c->pieces[n++] = piece_of_g(c, &c->all[i], c->all[i].g);
        }
    }
    return n == 0 || memory_batch_read(c->m->process.memory, c->pieces, n, &c->m->unread);
}

/* Those that are not told, and those that run, are done here; of the others a stack is wanted. */
static bool wants_stack(struct collector *c, struct one *one, bool is_read, struct go_stack *s)
{
    unsigned status = go_status_of(c->m, one->g);
    bool lives = status != GO_IDLE && status != GO_DEAD && status < GO_DEAD_EXTRA;
    if (!is_read || !lives || !go_goroutine_is_told(c->m, &c->classes, one->g)) {
        one->address = 0;
        return false;
    }
    if (status == GO_RUNNING && go_field(one->g, c->m->layout->syscall_sp) == 0) {
        add_unseen(c, one->g, "running", "[running]");
        one->address = 0;
        return false;
    }
    return status != GO_COPIES && place_stack(c, one->g, s);
}

/* Whose stacks are wanted, of those that were just read, in their order; and where they are. */
static size_t choose(struct collector *c, size_t count)
{
    struct go_stack place = {0};
    size_t n = 0, read = 0;
    for (size_t i = 0; i < count; i++) {
        struct one *one = &c->all[i];
        if (one->address == 0) {
            continue;
        }
        bool is_read = c->pieces[read].got == c->pieces[read].len;
        read++;
        if (wants_stack(c, one, is_read, &place)) {
            uint64_t left = place.limit - place.sp;
            c->wanted[n] = one;
            c->stacks[n++] = (struct memory_piece){
                .address = place.sp, .out = one->stack, .len = (uint32_t)(left < FIRST_BYTES ? left : FIRST_BYTES)};
        }
    }
    return n;
}

static bool read_round(struct collector *c, size_t count)
{
    if (!read_notes(c, count)) {
        return false;
    }
    size_t n = choose(c, count);
    for (size_t i = 0; i < n; i++) {
        c->stacks[n + i] = piece_of_g(c, c->wanted[i], c->wanted[i]->again);
    }
    if (n > 0 && !memory_batch_read(c->m->process.memory, c->stacks, 2 * n, &c->m->unread)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        (void)take_stack(c, c->wanted[i], &c->stacks[i], &c->stacks[n + i]);
    }
    return true;
}

static bool read_chunk(struct collector *c, uint64_t at, size_t count)
{
    unsigned char raw[8 * GO_GOROUTINES_AT_ONCE];
    if (!go_peek(c->m, at, raw, 8 * count)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t address = load_u64(raw + 8 * i);
        c->all[i].address = plausible(address) ? address : 0;
    }
    for (unsigned i = 0; i < TRIES; i++) {
        if (!read_round(c, count)) {
            return false;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (c->all[i].address != 0) {
            add_unseen(c, c->all[i].g, "moved on", "[moved on]");
        }
    }
    return true;
}

bool go_goroutines_collect(struct go_memory *m, struct go_stacks *to, struct err *why)
{
    struct go_list list;
    if (m->goroutines == 0) {
        return err_set(why, ERR_UNSUPPORTED, 0, "goroutine profile: where the Go program keeps them was not found");
    }
    if (!go_goroutines_list(m, m->goroutines, &list)) {
        return go_unread(m, why, "goroutine profile");
    }
    if (list.count > GO_GOROUTINES_MAX) {
        return err_set(why, ERR_LIMIT, 0, "it has, or has had, more than %d goroutines at a time", GO_GOROUTINES_MAX);
    }
    struct collector *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return err_set(why, ERR_MEMORY, 0, "no memory for a Go program's goroutines");
    }
    c->m = c->unwinder.m = m;
    c->to = to;
    c->stack.more = read_deeper;
    c->stack.context = c;
    bool done = true;
    for (uint64_t i = 0; i < list.count && done; i += GO_GOROUTINES_AT_ONCE) {
        uint64_t left = list.count - i;
        done = read_chunk(c, list.at + 8 * i, (size_t)(left < GO_GOROUTINES_AT_ONCE ? left : GO_GOROUTINES_AT_ONCE)) &&
               !to->failed;
    }
    go_unwinder_release(&c->unwinder);
    map_release(&c->classes);
    free(c);
    return done || to->failed || go_unread(m, why, "goroutine profile");
}

/*
 * goroutines: a process's goroutines, and equal ones of them as one.
 *
 * goroutines.c reads them one after the other and hands each to go_stacks_add; stacks.c keeps each different one once,
 * with how often it was met, and writes the profile. So memory is that of different stacks, not of goroutines.
 */
#ifndef RUNTIME_GO_GOROUTINES_H
#define RUNTIME_GO_GOROUTINES_H

#include "runtime/common/load.h"
#include "runtime/go/memory/label_set.h"
#include "runtime/go/memory/memory_private.h"

enum {
    GO_GOROUTINES_AT_ONCE = 128,
    GO_STACKS_MAX_BYTES = 64 << 20,
    GO_LABEL_SETS_COMPARED = 1024, /* more different ones are not found equal */
};

/* What is told of one. Borrowed for the call. */
struct go_goroutine {
    const uint64_t *pcs; /* innermost first, as places take them */
    size_t count;
    const char *mark;    /* static text that stands for frames that are not known, innermost; null: none */
    const char *state;   /* lasts as long as go_memory */
    uint64_t waitsince;  /* monotonic; 0: not known, or it does not wait */
    uint64_t labels;     /* address of its labels; 0: none */
};

struct go_kept { /* equal goroutines */
    uint64_t first;  /* in go_stacks.pcs */
    uint32_t count, labels; /* labels: in go_stacks.labels, 0: none */
    const char *mark, *state;
    uint64_t goroutines, waited_ns;
};

struct go_stacks {
    struct go_memory *m;
    bool by_state;       /* those that wait for something else are not equal */
    uint64_t mono_ns;    /* now; 0: times are not wanted */
    struct map known;    /* hash -> index in kept */
    VEC(struct go_kept) kept;
    VEC(uint64_t) pcs;
    struct map label_sets; /* address -> index in labels; */
    VEC(struct str) labels; /* key, NUL, value, NUL, …; the first is empty */
    struct arena texts;
    uint64_t total;
    bool failed;         /* more than GO_STACKS_MAX_BYTES, or no memory */
};

bool go_stacks_open(struct go_stacks *s, struct go_memory *m);
void go_stacks_release(struct go_stacks *s);
bool go_stacks_add(struct go_stacks *s, const struct go_goroutine *one);

/* labels.c: the number of the set of labels at this address; 0: none, or it could not be read. And its texts. */
struct go_label_texts {
    const char *keys[GO_LABELS_MAX];
    struct str values[GO_LABELS_MAX];
};
uint32_t go_labels_number(struct go_stacks *s, uint64_t address);
size_t go_labels_of(const struct go_stacks *s, uint32_t number, struct go_label_texts *out);

/*
 * goroutine_kind.c: of a g that was read (GO_G_BYTES).
 */
enum go_status { /* runtime2.go: _Gidle, … */
    GO_IDLE, GO_RUNNABLE, GO_RUNNING, GO_SYSCALL, GO_WAITING, GO_DEAD = 6, GO_COPIES = 8, GO_PREEMPTED, GO_LEAKED,
    GO_DEAD_EXTRA,
};

static inline uint64_t go_field(const unsigned char *g, size_t at)
{
    return load_u64(g + at);
}

unsigned go_status_of(const struct go_memory *m, const unsigned char *g);
bool go_has_stack(const unsigned char *g);
const char *go_state_of(const struct go_memory *m, const unsigned char *g);

/* `classes`: what first functions are, by their addresses; zero at first. */
bool go_goroutine_is_told(struct go_memory *m, struct map *classes, const unsigned char *g);

struct go_list {
    uint64_t at, count; /* addresses of g's */
};
bool go_goroutines_list(struct go_memory *m, uint64_t slice, struct go_list *out);

/* goroutines.c */
bool go_goroutines_collect(struct go_memory *m, struct go_stacks *to, struct err *why);

#endif

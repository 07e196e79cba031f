/* sleeping: first the place and the stack's top, which say whether the thread had this stack before; only where it had
 * not, as much of the stack as is read ahead, and the unwinder, which reads what lies beyond that by itself, page by
 * page. */
#include "capture/stacks/sleeping.h"
#include "capture/stacks/reasons.h"
#include "os/clock.h"
#include "target/stat.h"

#include <stdlib.h>

enum {
    STACK_MAX = 64 * 1024,
    STACK_STEP = 4096,
    TOP_BYTES = 1024, /* of a stack: told apart by them */
};

bool sleeping_init(struct sleeping *s, struct stacks *stacks, struct err *err)
{
    *s = (struct sleeping){.stacks = stacks, .stack = malloc(STACK_MAX)};
    return s->stack != NULL || err_set(err, ERR_MEMORY, 0, "no memory to look at sleeping threads");
}

void sleeping_release(struct sleeping *s)
{
    map_release(&s->nodes);
    free(s->stack);
    *s = (struct sleeping){0};
}

void sleeping_allow(struct sleeping *s, unsigned more, unsigned most)
{
    s->reads = s->reads + more < most ? s->reads + more : most;
}

void sleeping_end_window(struct sleeping *s)
{
    map_clear(&s->nodes);
    s->node = 0;
}

void sleeping_keep(struct sleeping *s)
{
    if (s->node != 0) {
        (void)map_put(&s->nodes, s->key, s->node);
        s->node = 0;
    }
}

/* Reads on, page by page, until there are `most` bytes or no more. */
static size_t read_stack(struct sleeping *s, uint32_t pid, uint64_t sp, size_t got, size_t most)
{
    const struct world *world = s->stacks->targets->images->world;
    struct memory_reader memory = world->memory(world->context, pid, clock_mono_ns());
    while (got < most) {
        size_t step = STACK_STEP - (size_t)((sp + got) % STACK_STEP);
        step = step < STACK_MAX - got ? step : STACK_MAX - got;
        if (!memory.read(memory.context, sp + got, s->stack + got, step, NULL)) {
            break;
        }
        got += step;
    }
    return got;
}

static uint32_t unwound(struct sleeping *s, struct profile *p, const struct sleeping_thread *thread,
                        uint64_t sp, uint64_t ip, size_t got)
{
    char told[REASON_MAX];
    const char *reason = thread->reason;
    if (reason == NULL) {
        reason = reason_of(thread->target->pid, thread->place, told);
    }
    size_t len = read_stack(s, thread->target->pid, sp, got, STACK_MAX);
    const struct stacks_sleeper at = {.ip = ip,
                                      .sp = sp,
                                      .stack = s->stack,
                                      .len = len & ~(size_t)7,
                                      .time_ns = clock_mono_ns(),
                                      .leaf = reason[0] != '\0' ? reason : "[waits]",
                                      .caught = thread->caught};
    return stacks_node_of_sleeper(s->stacks, p, thread->target, &at);
}

/* One instruction may make several system calls, and one call may wait for several descriptors. */
static uint64_t key_of(const struct sleeping *s, const struct sleeping_thread *thread, uint64_t sp, uint64_t ip,
                       size_t got)
{
    struct reason_call call;
    struct str top = {(const char *)s->stack, got < TOP_BYTES ? got : TOP_BYTES};
    (void)reason_call_parse(thread->place, &call);
    uint64_t what = hash_u64(call.number) ^ call.descriptor;
    return hash_u64(hash_u64(hash_u64(hash_u64(thread->tid) ^ what) ^ sp) ^ ip) ^ str_hash(top);
}

/* The memo is of native stacks: below the same ones a runtime's may be another. */
uint32_t sleeping_node(struct sleeping *s, struct profile *p, const struct sleeping_thread *thread)
{
    uint64_t sp, ip;
    s->node = 0;
    if (!syscall_place(thread->place, &sp, &ip)) {
        return 0;
    }
    size_t got = read_stack(s, thread->target->pid, sp, 0, TOP_BYTES);
    uint64_t key = key_of(s, thread, sp, ip, got);
    const struct map_slot *slot = thread->caught != NULL ? NULL : map_find(&s->nodes, key);
    if (slot != NULL || s->reads == 0) {
        return slot == NULL ? 0 : (uint32_t)slot->value;
    }
    s->reads--;
    uint32_t node = unwound(s, p, thread, sp, ip, got);
    s->key = key;
    s->node = thread->caught == NULL ? node : 0;
    return node;
}

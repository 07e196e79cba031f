/* locks: the arguments of a system call into words. A descriptor's link says what it is, and a futex's memory who holds
 * it; or else what a runtime's code has on its stack does. What is read of the process is hostile: a wrong owner is one
 * that is no thread of it, and is not told. */
#include "capture/live/dump_locks.h"
#include "capture/stacks/reasons.h"
#include "os/clock.h"
#include "os/proc.h"

#include <stdio.h>
#include <sys/syscall.h>

enum {
    ARGUMENTS = 3,
    LINK_MAX = 96,
    TID_BITS = 0x3fffffff, /* FUTEX_TID_MASK */
    GLIBC_OWNER = 2,       /* word of pthread_mutex_t, and the kind */
    GLIBC_KIND = 4,
    GLIBC_WAITED = 2,      /* what the lock's word is while somebody waits */
    GLIBC_KINDS = 0x1ff,
    MUTEX_WORDS = 5,
};

struct call {
    uint64_t number, argument[ARGUMENTS];
};

static bool parse(struct str text, struct call *out)
{
    *out = (struct call){0};
    text = str_trim(text);
    bool good = str_u64(str_cut(&text, ' '), &out->number);
    for (size_t i = 0; good && i < ARGUMENTS; i++) {
        struct str word = str_cut(&text, ' ');
        good = str_starts(word, STR("0x")) && str_hex(str_sub(word, 2, word.len), &out->argument[i]);
    }
    return good;
}

static void tell_descriptor(struct dump_thread *t, const char *word, uint64_t fd)
{
    char name[24], link[LINK_MAX];
    snprintf(name, sizeof name, "fd/%u", (unsigned)fd);
    bool known = proc_link(t->pid, name, link, sizeof link);
    snprintf(t->wait, sizeof t->wait, "%s, descriptor %u%s%s%s", word, (unsigned)fd, known ? " (" : "",
             known ? link : "", known ? ")" : "");
}

/* Are they about the descriptor that is their first argument? */
static bool is_of_descriptor(const char *word, uint64_t number)
{
    static const char *const words[] = {"read", "write", "receive", "send", "accept", "connect", "control", "disk",
                                        "file lock"};
    bool is = number == SYS_epoll_pwait;
#ifdef SYS_epoll_wait
    is = is || number == SYS_epoll_wait;
#endif
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        is = is || strcmp(word, words[i]) == 0;
    }
    return is && number != SYS_io_getevents;
}

void locks_note(struct dump_thread *t, const char *place)
{
    struct call call;
    struct reason_call reason;
    t->wait[0] = '\0';
    t->futex = 0;
    if (!parse(str_of(place), &call) || !reason_call_parse(str_of(place), &reason)) {
        return;
    }
    if (call.number == SYS_futex) {
        t->futex = call.argument[0];
        t->expected = (uint32_t)call.argument[2];
        snprintf(t->wait, sizeof t->wait, "lock or condition 0x%llx", (unsigned long long)t->futex);
    } else if (reason.word == NULL) {
        snprintf(t->wait, sizeof t->wait, "system call %u", (unsigned)call.number);
    } else if (is_of_descriptor(reason.word, call.number)) {
        tell_descriptor(t, reason.word, call.argument[0]);
    } else if (call.number == SYS_wait4 && (int)call.argument[0] > 0) {
        snprintf(t->wait, sizeof t->wait, "child %d", (int)call.argument[0]);
    } else {
        snprintf(t->wait, sizeof t->wait, "%s", reason.word);
    }
}

/* ---- holders ---- */

static uint32_t by_inner(const struct dump_thread *threads, size_t count, uint32_t inner)
{
    for (size_t i = 0; i < count; i++) {
        if (threads[i].inner == inner && threads[i].state != 0) {
            return (uint32_t)i + 1;
        }
    }
    return 0;
}

static uint32_t owner_in(const uint32_t *mutex, const struct dump_thread *threads, size_t count)
{
    bool of_glibc = mutex[0] == GLIBC_WAITED && mutex[GLIBC_KIND] <= GLIBC_KINDS;
    uint32_t inner = of_glibc ? mutex[GLIBC_OWNER] : mutex[0] & TID_BITS;
    return inner > GLIBC_WAITED ? by_inner(threads, count, inner) : 0;
}

static uint32_t mutex_holder(const struct world *world, struct dump_thread *t, const struct dump_thread *threads,
                             size_t count)
{
    uint32_t first[MUTEX_WORDS] = {0}, again[MUTEX_WORDS] = {0};
    struct memory_reader memory = world->memory(world->context, t->pid, clock_mono_ns());
    bool good = memory.read(memory.context, t->futex, first, sizeof first, NULL);
    memory = world->memory(world->context, t->pid, clock_mono_ns());
    good = good && memory.read(memory.context, t->futex, again, sizeof again, NULL) &&
           memcmp(first, again, sizeof first) == 0;
    uint32_t holder = good ? owner_in(first, threads, count) : 0;
    if (holder != 0 && first[0] == threads[holder - 1].inner && t->expected == first[0]) { /* as pthread_join waits */
        snprintf(t->wait, sizeof t->wait, "end of a thread");
    }
    return holder != 0 && &threads[holder - 1] == t ? 0 : holder;
}

static struct str gil_of(const struct profile *p, const struct dump_thread *t)
{
    return t->thread == 0 ? STR("") : profile_text(p, p->threads.at[t->thread].label[PROFILE_LABEL_GIL]);
}

static bool has_lock(const struct dump_thread *t, uint64_t futex)
{
    bool has = false;
    for (size_t i = 0; i < WAITS_LOCKS; i++) {
        has = has || t->locks[i] == futex;
    }
    return has && t->futex != futex; /* else it waits itself */
}

/* Of a lock that notes no owner; 0: nobody has it, or several may. */
static uint32_t code_holder(const struct dump_thread *threads, size_t count, uint64_t futex)
{
    uint32_t holder = 0;
    for (size_t i = 0; i < count; i++) {
        if (has_lock(&threads[i], futex)) {
            if (holder != 0) {
                return 0;
            }
            holder = (uint32_t)i + 1;
        }
    }
    return holder;
}

static bool is_lock(const struct dump_thread *threads, size_t count, uint64_t address)
{
    bool is = false;
    for (size_t i = 0; i < count; i++) {
        for (size_t lock = 0; address != 0 && lock < WAITS_LOCKS; lock++) {
            is = is || threads[i].locks[lock] == address;
        }
    }
    return is;
}

/* Where each that waits has a futex of its own, before it stands a pointer to the lock (struct runtime, locks). */
static void find_lock(const struct world *world, struct dump_thread *t, const struct dump_thread *threads, size_t count)
{
    uint64_t lock = 0;
    struct memory_reader memory = world->memory(world->context, t->pid, clock_mono_ns());
    if (t->futex > sizeof lock && memory.read(memory.context, t->futex - sizeof lock, &lock, sizeof lock, NULL) &&
        is_lock(threads, count, lock)) {
        t->futex = lock;
    }
}

void locks_find_holders(const struct world *world, const struct profile *p, struct dump_thread *threads, size_t count)
{
    uint32_t gil = 0;
    for (size_t i = 0; i < count; i++) {
        find_lock(world, &threads[i], threads, count);
        gil = str_eq(gil_of(p, &threads[i]), STR("held")) ? (uint32_t)i + 1 : gil;
    }
    for (size_t i = 0; i < count; i++) {
        struct dump_thread *t = &threads[i];
        if (str_eq(gil_of(p, t), STR("waiting"))) {
            snprintf(t->wait, sizeof t->wait, "GIL");
            t->holder = gil;
        } else if (t->futex != 0 && t->node != 0) {
            t->holder = mutex_holder(world, t, threads, count);
            t->holder = t->holder != 0 ? t->holder : code_holder(threads, count, t->futex);
        }
    }
}

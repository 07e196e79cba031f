/* Threads that end before a listing of task/ has them, a thread for each request for example: at a tick the process's
 * runtime names who holds its lock and who began last, by lists of its own, and whoever of them runs is read like a
 * thread that is known. They have no clock of their own here; their time is what their process's clock has more. */
#include "base/time.h"
#include "capture/catch/perfless_private.h"

enum {
    TIDS_MAX = 1 << 22, /* the most that a kernel assigns (PID_MAX_LIMIT) */
    WORD_BITS = 64,
    MEET_S = 5, /* so long after the last of them */
};

_Static_assert(TIDS_MAX / WORD_BITS == PERFLESS_LISTED_WORDS, "a bit for each id");

/* ---- who is listed ---- */

void perfless_set_listed(struct perfless *t, uint32_t tid, bool is)
{
    uint64_t bit = 1ull << tid % WORD_BITS;
    if (tid < TIDS_MAX && is) {
        __atomic_fetch_or(&t->listed[tid / WORD_BITS], bit, __ATOMIC_RELAXED);
    } else if (tid < TIDS_MAX) {
        __atomic_fetch_and(&t->listed[tid / WORD_BITS], ~bit, __ATOMIC_RELAXED);
    }
}

static bool is_listed(const struct perfless *t, uint32_t tid)
{
    return tid >= TIDS_MAX ||
           (__atomic_load_n(&t->listed[tid / WORD_BITS], __ATOMIC_RELAXED) >> tid % WORD_BITS & 1) != 0;
}

/* ---- when ---- */

/* Where the process numbers its threads otherwise than we do, only those that are listed can be named. */
static bool can_name(const struct catch_target *target)
{
    bool can = false;
    for (; target != NULL && target->tid_count == 0; target = target->more ? target + 1 : NULL) {
        can = can || (target->runtime != NULL && target->runtime->running != NULL);
    }
    return can;
}

static void meet_on(struct perfless_process *p, uint64_t now_ns)
{
    __atomic_store_n(&p->meet_ns, now_ns + MEET_S * NS_PER_S, __ATOMIC_RELAXED);
}

void perfless_expect_unlisted(struct catcher *k, struct perfless_process *p)
{
    if (can_name(perfless_target_of(k, p))) {
        meet_on(p, k->round.begun_ns);
    }
}

bool perfless_meets_unlisted(const struct perfless_process *p, uint64_t now_ns)
{
    return now_ns < __atomic_load_n(&p->meet_ns, __ATOMIC_RELAXED);
}

/* ---- who runs ---- */

/* Another catcher may have it for a moment: the places are the home's to give. */
static struct perfless_thread *free_place(struct perfless_process *p)
{
    for (size_t i = 0; i < PERFLESS_MET; i++) {
        if (!__atomic_load_n(&p->met[i].in_use, __ATOMIC_ACQUIRE)) {
            return &p->met[i];
        }
    }
    return NULL;
}

bool perfless_has_handed_over(const struct perfless_process *p)
{
    for (size_t i = 0; i < PERFLESS_MET; i++) {
        if (__atomic_load_n(&p->met[i].in_use, __ATOMIC_ACQUIRE)) {
            return true;
        }
    }
    return false;
}

static void read_unless_elsewhere(struct catcher *k, const struct catch_target *target,
                                  struct perfless_thread *thread)
{
    if (target == NULL || perfless_read_if_interrupted(k, target, thread)) {
        if (thread->was_read) {
            meet_on(thread->process, k->round.begun_ns);
        }
        perfless_close_files(k->owner->perfless, thread);
        __atomic_store_n(&thread->in_use, false, __ATOMIC_RELEASE);
    }
}

static size_t name_running(const struct catch_target *target, uint32_t tids[PERFLESS_MET])
{
    struct remote_caller caller = {.remote = target->remote};
    struct memory_batch memory = remote_batch(&caller);
    size_t count = 0;
    for (; target != NULL; target = target->more ? target + 1 : NULL) {
        if (target->runtime != NULL && target->runtime->running != NULL) {
            count += target->runtime->running(target->state, &memory, tids + count, PERFLESS_MET - count);
        }
    }
    return count;
}

void perfless_meet_unlisted(struct catcher *k, struct perfless_process *p)
{
    uint32_t tids[PERFLESS_MET];
    const struct catch_target *target = perfless_target_of(k, p);
    size_t count = can_name(target) ? name_running(target, tids) : 0;
    for (size_t i = 0; i < count; i++) {
        struct perfless_thread *thread = is_listed(k->owner->perfless, tids[i]) ? NULL : free_place(p);
        if (thread != NULL) {
            *thread = (struct perfless_thread){
                .process = p, .tid = tids[i], .file = -1, .sched = -1, .unlisted = true, .in_use = true};
            read_unless_elsewhere(k, target, thread);
        }
    }
}

void perfless_take_unlisted(struct catcher *k, struct perfless_thread *thread)
{
    read_unless_elsewhere(k, perfless_target_of(k, thread->process), thread);
}

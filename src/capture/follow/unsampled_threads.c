/* Checks unsampled threads one after the other, by the CPU time that each used since its last check. A hot one gets
 * events where a descriptor is free; else in the place of an idle thread of its own process; else in that of another
 * process, by make_room. A check that finds the thread or its process gone frees the entry. */
#include "capture/follow/unsampled_threads.h"
#include "base/time.h"
#include "os/hot.h"


enum { CHECK_MS = 1000, HOT_SHARE = 100, IDLE_MS = UNSAMPLED_MARK_MS / 1000 };

void unsampled_add(struct unsampled_threads *l, uint32_t pid, const struct pid_list *tids)
{
    vec_each(&tids->ids, tid)
    {
        struct unsampled_thread *thread = vec_push(&l->threads);
        if (thread != NULL) {
            *thread = (struct unsampled_thread){.pid = pid, .tid = *tid};
        }
    }
}

void unsampled_release(struct unsampled_threads *l)
{
    vec_release(&l->threads);
}

bool unsampled_is_hot(const struct unsampled_thread *thread, uint64_t cpu_ns, uint64_t now_ns)
{
    return thread->asked_ns != 0 && cpu_ns > thread->cpu_ns && now_ns > thread->asked_ns &&
           (cpu_ns - thread->cpu_ns) * HOT_SHARE >= now_ns - thread->asked_ns;
}

uint64_t unsampled_rate_ns(uint64_t cpu_ns, uint64_t passed_ns)
{
    return passed_ns == 0 ? 0 : (uint64_t)((double)cpu_ns / (double)passed_ns * (double)NS_PER_S);
}

static void mark_all(struct unsampled_threads *l, struct perf *perf, uint64_t now_ns)
{
    uint32_t last = 0;
    if (now_ns < l->mark_ns) {
        return;
    }
    l->mark_ns = now_ns + UNSAMPLED_MARK_MS * NS_PER_MS;
    if (l->make_room != NULL) {
        perf_mark(perf, 0, IDLE_MS * NS_PER_MS);
        return;
    }
    vec_each(&l->threads, thread)
    {
        if (thread->pid != last) { /* they stand together */
            perf_mark(perf, thread->pid, IDLE_MS * NS_PER_MS);
        }
        last = thread->pid;
    }
}

/* On success the entry is free, or has the one that made room. */
static bool take_in(struct unsampled_threads *l, struct unsampled_thread *thread, struct perf *perf,
                    const struct target *target, uint64_t rate_ns, bool *is_free)
{
    const struct perf_how how = {.stack_bytes = target->copy.bytes, .caught = target->runtime.caught};
    struct err err = {0};
    uint32_t tid = thread->tid, idle = 0;
    *is_free = true;
    if (perf_follow_thread(perf, thread->pid, tid, &how, &err)) {
        return true;
    }
    if (err.kind != ERR_LIMIT) {
        return false; /* it has ended */
    }
    *is_free = false;
    if (!perf_give_up_idle(perf, thread->pid, &idle)) {
        *is_free = l->make_room != NULL && l->make_room(l->context, thread->pid, rate_ns) &&
                   perf_follow_thread(perf, thread->pid, tid, &how, NULL);
        return *is_free;
    }
    *thread = (struct unsampled_thread){.pid = thread->pid, .tid = idle};
    return perf_follow_thread(perf, thread->pid, tid, &how, NULL);
}

/* False: the entry is free. */
static bool check(struct unsampled_threads *l, struct unsampled_thread *thread, struct perf *perf,
                    struct targets *targets, uint64_t now_ns, size_t *taken)
{
    const struct target *target = targets_find(targets, thread->pid);
    bool known = target != NULL && !target->ended && !target->unsampled.is;
    uint64_t cpu_ns = known ? hot_thread_ns(thread->pid, thread->tid) : 0;
    bool is_free = cpu_ns == 0;
    if (is_free) {
        return false; /* gone: its CPU time is in the accounting; or its whole process was given up */
    }
    if (unsampled_is_hot(thread, cpu_ns, now_ns)) {
        uint32_t tid = thread->tid;
        uint64_t rate_ns = unsampled_rate_ns(cpu_ns - thread->cpu_ns, now_ns - thread->asked_ns);
        *taken += take_in(l, thread, perf, target, rate_ns, &is_free);
        if (is_free || thread->tid != tid) {
            return !is_free;
        }
    }
    thread->cpu_ns = cpu_ns;
    thread->asked_ns = now_ns;
    return true;
}

size_t unsampled_check(struct unsampled_threads *l, struct perf *perf, struct targets *targets,
                     uint64_t now_ns)
{
    size_t taken = 0, checks = l->threads.len;
    if ((checks == 0 && l->make_room == NULL) || now_ns < l->check_ns) {
        return 0;
    }
    l->check_ns = now_ns + CHECK_MS * NS_PER_MS;
    mark_all(l, perf, now_ns);
    checks = checks < UNSAMPLED_CHECKS_MAX ? checks : (size_t)UNSAMPLED_CHECKS_MAX;
    for (; checks > 0 && l->threads.len > 0; checks--) {
        l->next = l->next < l->threads.len ? l->next : 0;
        if (check(l, &l->threads.at[l->next], perf, targets, now_ns, &taken)) {
            l->next++;
        } else {
            vec_swap_out(&l->threads, l->next);
        }
    }
    perf_enable(perf);
    return taken;
}

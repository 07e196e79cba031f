/* The sampler's side of the perf-less sampler: makes and frees processes and threads, lists /proc/PID/task when
 * a process is published and when its number of threads has changed, gives threads to catchers, and settles
 * CPU time that no sample stands for. */
#include "capture/catch/perfless.h"
#include "base/time.h"
#include "capture/catch/perfless_private.h"
#include "os/clock.h"
#include "os/proc.h"
#include "target/stat.h"

#include <stdlib.h>

enum {
    DESCRIPTOR_SHARE = 4,
    LIST_SHARE = 200, /* listing takes at most so small a part of the time */
    COUNT_SHARE = 16,  /* their number is asked for again after that part of the time it has been the same, … */
    COUNT_MOST_MS = 250, /* … and after so long, while any runs */
    LIST_MOST_US = 20, /* for each thread: usually 3; what took longer was somebody else */
};

/* We have run: a kernel that counts nothing of that counts nothing at all. */
static bool has_schedstat(void)
{
    char text[128];
    struct proc_schedstat own = {0};
    int fd = proc_open_thread(proc_own_pid(), proc_own_pid(), "schedstat");
    size_t len = fd >= 0 ? proc_read_start(fd, text, sizeof text) : 0;
    if (fd >= 0) {
        proc_close(fd);
    }
    return schedstat_parse((struct str){text, len}, &own, NULL) && own.slices > 0;
}

struct perfless *perfless_init(struct catch *c)
{
    struct perfless *t = calloc(1, sizeof *t);
    if (t == NULL || (t->cpus = calloc(c->catcher_count, sizeof *t->cpus)) == NULL ||
        (t->listed = calloc(PERFLESS_LISTED_WORDS, sizeof *t->listed)) == NULL) {
        perfless_free(t);
        return NULL;
    }
    uint64_t files = proc_descriptor_limit() / DESCRIPTOR_SHARE;
    t->owner = c;
    t->cpu_count = c->catcher_count;
    t->period_ns = NS_PER_S / (c->frequency_hz > 0 ? c->frequency_hz : 1);
    t->tick_ns = proc_tick_ns();
    t->by_stat = !has_schedstat();
    c->unprovable = c->unprovable || t->by_stat;
    t->files_most = files < PERFLESS_FILES_MAX ? (uint32_t)files : PERFLESS_FILES_MAX;
    return t;
}

void perfless_set_period(struct perfless *t, uint64_t period_ns)
{
    __atomic_store_n(&t->period_ns, period_ns, __ATOMIC_RELAXED);
}

static void wake_home(struct perfless *t, const struct perfless_process *p)
{
    waker_set(t->owner->catchers[p->home]->waker);
}

/* ---- processes ---- */

static struct perfless_process *find_process(struct perfless *t, const struct catch_target *target)
{
    vec_each(&t->processes, slot)
    {
        if ((*slot)->pid == target->pid && (*slot)->serial == target->serial) {
            return *slot;
        }
    }
    return NULL;
}

static struct perfless_process *add_process(struct perfless *t, const struct catch_target *target)
{
    struct perfless_process **place = vec_push(&t->processes);
    struct perfless_process *p = place != NULL ? calloc(1, sizeof *p) : NULL;
    if (p == NULL) {
        t->processes.len -= place != NULL;
        return NULL;
    }
    *place = p;
    p->pid = target->pid;
    p->serial = target->serial;
    p->home = t->next_home++ % t->cpu_count;
    perfless_send(&t->cpus[p->home].process_inbox, p);
    return p;
}

static void free_threads(struct perfless_process *p)
{
    vec_each(&p->threads, slot)
    {
        proc_close((*slot)->file);
        proc_close((*slot)->sched);
        free(*slot);
    }
    vec_each(&p->left, slot)
    {
        free(*slot);
    }
    vec_release(&p->threads);
    vec_release(&p->left);
}

/* No catcher has them, so none gives them back. */
static void end_trials(struct perfless_process *p)
{
    size_t count = 0;
    vec_each(&p->threads, slot)
    {
        if ((*slot)->on_trial) {
            free(*slot);
        } else {
            p->threads.at[count++] = *slot;
        }
    }
    p->threads.len = count;
}

void perfless_publish(struct perfless *t, const struct catch_table *table, uint64_t now_ns)
{
    vec_each(&t->processes, slot)
    {
        (*slot)->published = false;
    }
    for (size_t i = 0; i < table->count; i++) {
        const struct catch_target *target = &table->target[i];
        struct perfless_process *p = NULL;
        bool again = i > 0 && target[-1].more; /* the same process, another of its runtimes */
        if (!again && catch_is_wanted(target, 0)) {
            p = find_process(t, target);
            p = p != NULL ? p : add_process(t, target);
        }
        if (p != NULL) {
            p->published = true;
        }
    }
    vec_each(&t->processes, slot)
    {
        if (!(*slot)->published && !(*slot)->gone) {
            end_trials(*slot);
            __atomic_store_n(&(*slot)->gone, true, __ATOMIC_RELEASE);
            wake_home(t, *slot);
        }
    }
    perfless_round(t, now_ns);
}

/* ---- threads ---- */

static int by_number(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

static struct perfless_thread *make_thread(struct perfless_process *p, uint32_t tid)
{
    struct perfless_thread *thread = calloc(1, sizeof *thread);
    if (thread != NULL) {
        thread->process = p;
        thread->tid = tid;
        thread->file = thread->sched = -1;
        thread->idle = true;
        thread->is_new = p->listing.listed_ns != 0;
    }
    return thread;
}

/* From now on a catcher has it. Of one that was on trial samples of unlisted threads stand for what it used before. */
static void introduce(struct perfless *t, struct perfless_thread *thread)
{
    thread->is_new = thread->is_new && !thread->on_trial;
    thread->on_trial = false;
    perfless_set_listed(t, thread->tid, true);
    perfless_send(&t->cpus[thread->process->home].inbox, thread);
}

static void tell_gone(struct perfless_process *p, struct perfless_thread *thread)
{
    __atomic_store_n(&thread->gone, true, __ATOMIC_RELAXED);
    __atomic_store_n(&p->any_gone, true, __ATOMIC_RELEASE);
}

/* False: it ended on trial, and is freed. */
static bool go_on_with(struct perfless *t, struct perfless_thread *thread, bool listed, bool *changed)
{
    if (thread->on_trial && !listed) {
        free(thread);
        return false;
    }
    if (thread->on_trial) {
        introduce(t, thread);
        *changed = true;
    } else if (!listed) {
        tell_gone(thread->process, thread);
        *changed = true;
    }
    return true;
}

/* Puts the listed threads beside the known ones; both are in order. True when there are others now. Where threads end
 * before they are listed a new one is on trial until it is listed again. */
static bool merge(struct perfless *t, struct perfless_process *p, bool on_trial)
{
    size_t known_count = p->threads.len, listed_count = t->ids.ids.len, count = 0;
    struct perfless_thread **known = p->threads.at;
    struct perfless_thread **merged = malloc((known_count + listed_count + 1) * sizeof *merged);
    const uint32_t *ids = t->ids.ids.at;
    bool changed = false;
    if (merged == NULL) {
        return false; /* the next listing has them */
    }
    for (size_t i = 0, j = 0; i < known_count || j < listed_count;) {
        if (j < listed_count && (i == known_count || ids[j] < known[i]->tid)) {
            struct perfless_thread *thread = make_thread(p, ids[j++]);
            if (thread != NULL) {
                merged[count++] = thread;
                thread->on_trial = on_trial;
            }
            if (thread != NULL && !on_trial) {
                introduce(t, thread);
                changed = true;
            }
            continue;
        }
        bool listed = j < listed_count && ids[j] == known[i]->tid;
        j += listed;
        if (go_on_with(t, known[i], listed, &changed)) {
            merged[count++] = known[i]; /* until its owner gives it back */
        }
        i++;
    }
    free(known);
    p->threads.at = merged;
    p->threads.len = count;
    p->threads.cap = known_count + listed_count + 1;
    return changed;
}

static void list_threads(struct perfless *t, struct perfless_process *p, uint64_t now_ns)
{
    if (!proc_list_threads(p->pid, &t->ids, NULL)) {
        return; /* it ended: its threads come back by themselves */
    }
    if (t->ids.ids.len > 1) {
        qsort(t->ids.ids.at, t->ids.ids.len, sizeof t->ids.ids.at[0], by_number);
    }
    __atomic_store_n(&p->thread_count, (uint32_t)t->ids.ids.len, __ATOMIC_RELAXED);
    if (merge(t, p, perfless_meets_unlisted(p, now_ns))) {
        wake_home(t, p);
    }
    p->listing.count = (uint32_t)t->ids.ids.len;
    vec_each(&p->threads, slot)
    {
        p->listing.count -= (*slot)->on_trial; /* it is to be listed again soon */
    }
    p->listing.listed_ns = now_ns;
}

static bool is_list_wanted(struct perfless_process *p, uint64_t now_ns)
{
    uint32_t count = proc_count_threads(p->pid);
    bool unlisted = __atomic_exchange_n(&p->unlisted, false, __ATOMIC_RELAXED);
    bool other = count != 0 && count != p->listing.count;
    p->listing.changed_ns = other ? now_ns : p->listing.changed_ns;
    return p->listing.listed_ns == 0 || unlisted || other ||
           now_ns - p->listing.listed_ns >= PERFLESS_LIST_MOST_MS * NS_PER_MS;
}

/* The longer their number has been the same, the less often it is asked for; time that no known thread explains has
 * them listed all the same. */
static uint64_t count_pause_ns(const struct perfless_process *p, uint64_t now_ns)
{
    uint64_t most_ns = COUNT_MOST_MS * NS_PER_MS, pause_ns = (now_ns - p->listing.changed_ns) / COUNT_SHARE;
    bool runs = __atomic_load_n(&p->active, __ATOMIC_RELAXED) > 0;
    return !runs ? PERFLESS_LIST_IDLE_MS * NS_PER_MS : pause_ns < most_ns ? pause_ns : most_ns;
}

/* Their number alone is cheap to learn, so it is checked more often than threads are listed. */
static void list_when_due(struct perfless *t, struct perfless_process *p, uint64_t now_ns)
{
    bool unlisted = __atomic_load_n(&p->unlisted, __ATOMIC_RELAXED);
    if (now_ns < p->listing.next_ns || (!unlisted && now_ns - p->listing.asked_ns < count_pause_ns(p, now_ns))) {
        return;
    }
    uint64_t pause_ns = PERFLESS_LIST_MS * NS_PER_MS, began_ns = clock_mono_ns();
    p->listing.asked_ns = now_ns;
    if (is_list_wanted(p, now_ns)) {
        list_threads(t, p, now_ns);
        uint64_t cost_ns = clock_mono_ns() - began_ns;
        uint64_t most_ns = (p->listing.count + 10) * (uint64_t)LIST_MOST_US * NS_PER_US;
        cost_ns = cost_ns < most_ns ? cost_ns : most_ns;
        pause_ns = cost_ns * LIST_SHARE > pause_ns ? cost_ns * LIST_SHARE : pause_ns;
    }
    p->listing.next_ns = now_ns + pause_ns;
}

/* ---- coming back ---- */

static void drop_thread(struct perfless *t, struct perfless_thread *thread)
{
    struct perfless_process *p = thread->process;
    perfless_set_listed(t, thread->tid, false);
    for (size_t i = 0; i < p->threads.len; i++) {
        if (p->threads.at[i] == thread) {
            p->threads.len--;
            memmove(&p->threads.at[i], &p->threads.at[i + 1],
                    (p->threads.len - i) * sizeof p->threads.at[0]);
            break;
        }
    }
    struct perfless_thread **place = thread->pending_ns + thread->early_ns > 0 ? vec_push(&p->left) : NULL;
    if (place != NULL) {
        *place = thread;
    } else {
        free(thread);
    }
}

static void take_back(struct perfless *t)
{
    for (struct perfless_thread *thread = perfless_receive(&t->outbox), *next; thread != NULL;
         thread = next) {
        next = thread->next;
        drop_thread(t, thread);
    }
    for (struct perfless_process *p = perfless_receive(&t->process_outbox); p != NULL; p = p->next) {
        p->returned = true;
    }
    for (size_t i = t->processes.len; i-- > 0;) {
        struct perfless_process *p = t->processes.at[i];
        if (p->returned && p->threads.len == 0 && p->left.len == 0) {
            free_threads(p);
            free(p);
            vec_swap_out(&t->processes, i);
        }
    }
}

void perfless_round(struct perfless *t, uint64_t now_ns)
{
    take_back(t);
    vec_each(&t->processes, slot)
    {
        if (!(*slot)->gone) {
            list_when_due(t, *slot, now_ns);
        }
    }
}

void perfless_settle(struct perfless *t,
                  void (*each)(void *context, uint32_t pid, uint32_t tid, uint64_t cpu_ns),
                  void *context)
{
    take_back(t);
    vec_each(&t->processes, slot)
    {
        struct perfless_process *p = *slot;
        for (size_t i = 0; i < p->threads.len + p->left.len; i++) {
            struct perfless_thread *thread = i < p->threads.len ? p->threads.at[i]
                                                             : p->left.at[i - p->threads.len];
            uint64_t left_ns = __atomic_exchange_n(&thread->pending_ns, 0, __ATOMIC_RELAXED) +
                               __atomic_exchange_n(&thread->early_ns, 0, __ATOMIC_RELAXED);
            if (left_ns > 0) {
                each(context, p->pid, thread->tid, left_ns);
            }
        }
        vec_each(&p->left, thread)
        {
            free(*thread);
        }
        vec_clear(&p->left);
    }
}

void perfless_free(struct perfless *t)
{
    if (t == NULL) {
        return;
    }
    take_back(t);
    vec_each(&t->processes, slot)
    {
        free_threads(*slot);
        free(*slot);
    }
    vec_release(&t->processes);
    vec_release(&t->ids.ids);
    free(t->listed);
    free(t->cpus);
    free(t);
}

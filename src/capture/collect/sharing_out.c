/* After a window's accounting is closed: the CPU time of each thread, which stands without a stack, goes to the samples
 * that its runtime has of it, in their proportion. Threads that have ended left their time to their process's first
 * one; light threads of the runtime's own run on others, that share theirs with them. */
#include "capture/collect/private.h"

#include <stdlib.h>

enum { NO_SAMPLES_OF = 0 };

/* Time of a thread without a stack. */
struct unseen_time {
    uint32_t tid, thread; /* the system's number, and its row in the profile */
    uint64_t cpu_ns, system_ns; /* system: of it, as far as that is told */
};

/* Samples that belong together. */
struct group {
    const struct collected_sample *at;
    size_t count;
};

struct share {
    struct profile *p;
    const struct window *window;
    const struct runtime *runtime;
    uint32_t pid;
    VEC(struct unseen_time) times;
};

static void note_time(void *context, uint32_t thread, uint64_t cpu_ns, bool is_system)
{
    struct share *s = context;
    uint32_t tid = s->p->threads.at[thread].tid;
    vec_each(&s->times, one)
    {
        if (one->tid == tid) {
            one->cpu_ns += cpu_ns;
            one->system_ns += is_system ? cpu_ns : 0;
            return;
        }
    }
    struct unseen_time *added = vec_push(&s->times);
    if (added != NULL) {
        *added = (struct unseen_time){tid, thread, cpu_ns, is_system ? cpu_ns : 0};
    } else {
        profile_account(s->p, thread, ACCOUNT_LOST, cpu_ns);
    }
}

/* ---- who has which samples ---- */

/* Those of threads that do not live come first, those of light ones last; a thread's own recorder before moments. */
static uint64_t key_of(const struct collected_sample *sample)
{
    return sample->is_virtual ? UINT64_MAX : sample->tid;
}

static int by_key(const void *a, const void *b)
{
    uint64_t one = key_of(a), other = key_of(b);
    const struct collected_sample *first = a, *second = b;
    int off = (one > other) - (one < other);
    return off != 0 ? off : first->of_moment - second->of_moment;
}

/* A recorder that meets some of many threads tells better of these where they were; moments tell of the others. */
static struct group group_of(const struct collected *c, uint64_t key)
{
    struct group g = {.at = c->samples.at, .count = 0};
    for (size_t i = 0; i < c->samples.len; i++) {
        const struct collected_sample *sample = &c->samples.at[i];
        g.at = key_of(sample) == key && g.count == 0 ? sample : g.at;
        g.count += key_of(sample) == key && sample->of_moment == g.at->of_moment;
    }
    return g;
}

/* Where samples are, and what is known of the time they stand for. */
enum place { RUNS, IN_NATIVE, IN_SYSTEM };

static enum place place_of(const struct collected_sample *sample)
{
    return !sample->may_wait ? RUNS : sample->in_system ? IN_SYSTEM : IN_NATIVE;
}

static uint64_t sum_of(struct group g, enum place place)
{
    uint64_t sum_ns = 0;
    for (size_t i = 0; i < g.count; i++) {
        sum_ns += place_of(&g.at[i]) == place ? g.at[i].cpu_ns : 0;
    }
    return sum_ns;
}

/* ---- sharing out ---- */

/* A recorder's clock is the wall's, a window's moments have the monotonic one: both were read when it began. */
static void add_share(struct share *s, uint32_t thread, const struct collected_sample *sample, uint64_t cpu_ns)
{
    uint64_t begin_ns = s->window->start_wall_ns;
    if (sample->wall_ns == 0) {
        profile_add(s->p, thread, sample->node, cpu_ns, 1);
    } else {
        uint64_t after_ns = sample->wall_ns > begin_ns ? sample->wall_ns - begin_ns : 0;
        profile_add_at(s->p, thread, sample->node, cpu_ns, 1, s->window->start_ns + after_ns);
    }
}

/* So much of a thread's time. A sample for whose thread there was no room stands with the one that ran. */
static void share_among(struct share *s, struct group g, enum place place, uint64_t cpu_ns,
                        const struct unseen_time *time)
{
    uint64_t sum_ns = sum_of(g, place), before_ns = 0, given_ns = 0;
    for (size_t i = 0; i < g.count && sum_ns > 0; i++) {
        if (place_of(&g.at[i]) == place) {
            before_ns += g.at[i].cpu_ns;
            uint64_t upto_ns = (uint64_t)((double)cpu_ns * ((double)before_ns / (double)sum_ns));
            upto_ns = before_ns == sum_ns || upto_ns > cpu_ns ? cpu_ns : upto_ns;
            uint32_t thread = g.at[i].thread != 0 ? g.at[i].thread : time->thread;
            add_share(s, thread, &g.at[i], upto_ns - given_ns);
            given_ns = upto_ns;
        }
    }
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Native code has what the samples of running code leave, for it may have waited, and functions that call the system
 * no more of it than the system used; all of it where there is nothing else. False: there are no samples. */
static bool share_out(struct share *s, struct group g, const struct unseen_time *time)
{
    uint64_t runs_ns = sum_of(g, RUNS), native_ns = sum_of(g, IN_NATIVE), system_ns = sum_of(g, IN_SYSTEM);
    uint64_t left_ns = time->cpu_ns > runs_ns ? time->cpu_ns - runs_ns : 0;
    if (runs_ns + native_ns + system_ns == 0) {
        return false;
    }
    bool any_other = runs_ns + native_ns > 0;
    uint64_t in_system_ns = any_other ? least(least(left_ns, system_ns), time->system_ns) : time->cpu_ns;
    left_ns -= least(left_ns, in_system_ns);
    uint64_t in_native_ns = runs_ns > 0 ? least(left_ns, native_ns) : native_ns > 0 ? left_ns : 0;
    share_among(s, g, IN_SYSTEM, in_system_ns, time);
    share_among(s, g, IN_NATIVE, in_native_ns, time);
    share_among(s, g, RUNS, time->cpu_ns - in_system_ns - in_native_ns, time);
    return true;
}

/* Of the first thread's time what samples of threads that ended stand for. */
static void share_out_ended(struct share *s, struct group g, struct unseen_time *first)
{
    uint64_t part_ns = least(sum_of(g, RUNS), first->cpu_ns);
    share_among(s, g, RUNS, part_ns, first);
    first->cpu_ns -= part_ns;
}

static bool carries(const struct share *s, const struct unseen_time *time)
{
    struct str name = profile_text(s->p, s->p->threads.at[time->thread].name);
    return s->runtime->collect->carriers != NULL && str_starts(name, str_of(s->runtime->collect->carriers));
}

/* Light threads run on whichever of these is free: what was sampled of all of them is one. */
static void join_carriers(const struct share *s, struct collected *c)
{
    vec_each(&s->times, time)
    {
        for (size_t i = 0; carries(s, time) && i < c->samples.len; i++) {
            c->samples.at[i].is_virtual |= c->samples.at[i].tid == time->tid;
        }
    }
}

static void share_out_all(struct share *s, struct collected *c)
{
    join_carriers(s, c);
    qsort(c->samples.at, c->samples.len, sizeof *c->samples.at, by_key);
    struct group ended = group_of(c, NO_SAMPLES_OF), light = group_of(c, UINT64_MAX);
    vec_each(&s->times, time)
    {
        struct group own = carries(s, time) ? light : group_of(c, time->tid);
        if (share_out(s, own, time)) {
            continue;
        }
        if (time->tid == s->pid) {
            share_out_ended(s, ended, time);
        }
        profile_account(s->p, time->thread, ACCOUNT_NO_SAMPLES, time->cpu_ns);
    }
}

static void share_out_of(struct collecting *c, struct collected *one)
{
    struct targets *targets = &c->follow->targets;
    const struct window *window = &c->follow->shared->window;
    struct share s = {.p = window->profile, .window = window, .runtime = one->runtime, .pid = one->pid};
    struct target *target = targets_find(targets, one->pid);
    bool is_shown = target != NULL && target->start_ticks == one->start_ticks && target->window == targets->window &&
                    target->process != 0;
    if (is_shown && one->why[0] != '\0') {
        s.p->processes.at[target->process].remedy = profile_cstring(s.p, one->why);
    }
    if (is_shown && one->samples.len > 0) {
        c->any_stack = true;
        profile_take_unseen(s.p, target->process, note_time, &s);
        share_out_all(&s, one);
        s.p->processes.at[target->process].capture_mode = CAPTURE_RUNTIME;
    }
    vec_release(&s.times);
    vec_clear(&one->samples);
}

static void window_end(void *state)
{
    struct collecting *c = state;
    vec_each(&c->all, one)
    {
        share_out_of(c, one);
    }
}

bool collecting_begins(const struct collecting *c)
{
    struct err why;
    bool begins = false;
    for (size_t i = 0; i < c->all.len; i++) {
        const struct collected *one = &c->all.at[i];
        begins |= one->job != NULL && collector_state(c->collector, one->job, &why) == COLLECT_BEGINS;
    }
    return begins;
}

const struct concern sharing_out_concern = {
    .name = "sharing out",
    .window_end = window_end,
};

/*
 * Who has no events for want of descriptors, and the exchange once a second: the hottest of them get events, the
 * coolest that have some give theirs up.
 */
#include "capture/follow/unsampled.h"
#include "base/time.h"
#include "capture/follow/inherit_group.h"
#include "capture/follow/unsampled_threads.h"
#include "os/clock.h"
#include "os/proc.h"

#include <stdlib.h>

enum {
    CHECK_MS = 1000,
    HOT_MOST = 8,       /* processes that get events per check, the hottest ones */
    COOLER_SHARE = 8,   /* of what a hot one uses: who uses less than this part makes room for it */
    ROOM_ATTEMPTS = 64, /* processes that are given up for one */
};

struct unsampled {
    struct follow *follow;
    struct unsampled_threads threads;
    uint64_t next_ns;
    bool any; /* some process has been, so far */
};

struct unsampled *unsampled_new(struct follow *f)
{
    struct unsampled *u = calloc(1, sizeof *u);
    if (u != NULL) {
        u->follow = f;
        f->unsampled = u;
    }
    return u;
}

static void release(void *state)
{
    struct unsampled *u = state;
    unsampled_release(&u->threads);
    free(u);
}

struct hot {
    struct target *target;
    uint64_t rate_ns; /* CPU time per second */
};

struct hottest {
    struct hot at[HOT_MOST];
    size_t count;
};

size_t unsampled_count(const struct unsampled *u)
{
    size_t count = 0;
    vec_each(&u->follow->targets.all, target)
    {
        count += u->any && (*target)->unsampled.is && !(*target)->ended;
    }
    return count;
}

/* ---- making room ---- */

static void mark(struct unsampled *u, struct target *target)
{
    target->unsampled = (struct target_unsampled){.is = true, .cpu_ns = target->unsampled.cpu_ns};
    targets_set_mode(&u->follow->targets, target, CAPTURE_PROC);
    u->any = true;
}

/* What inherited its events loses them, too. */
static void give_up(struct unsampled *u, uint32_t pid)
{
    struct follow *f = u->follow;
    struct inherit_group group = {0};
    struct target *target = targets_find(&f->targets, pid);
    f->hooks.drain(f->hooks.context);
    if (target != NULL) {
        (void)inherit_group_list(f->shared->perf, &f->targets, target, &group);
    }
    perf_give_up(f->shared->perf, pid);
    vec_each(&group.members, one)
    {
        if (f->hooks.adopted(f->hooks.context, *one)) {
            mark(u, *one);
        }
    }
    inherit_group_release(&group);
}

static bool make_room(void *context, uint32_t pid, uint64_t rate_ns)
{
    struct unsampled *u = context;
    struct shared *s = u->follow->shared;
    uint64_t recent_ns;
    uint32_t coolest = perf_coolest(s->perf, pid, &recent_ns);
    uint64_t mark_ns = UNSAMPLED_MARK_MS * NS_PER_MS;
    if (coolest == 0 ||
        unsampled_rate_ns(recent_ns, mark_ns) >= rate_ns / COOLER_SHARE) {
        return false;
    }
    log_say(&s->log, LOG_DEBUG, "pid %u makes room for pid %u, which is hot", coolest, pid);
    give_up(u, coolest);
    return true;
}

/* ---- who gets events ---- */

void unsampled_note_threads(struct unsampled *u, uint32_t pid)
{
    unsampled_add(&u->threads, pid, perf_unsampled(u->follow->shared->perf));
}

void unsampled_note_process(struct unsampled *u, struct target *target)
{
    log_once(&u->follow->shared->log, LOG_WARNING,
             "no descriptor is left for the events of pid %u and others: they are counted from "
             "/proc, without stacks, until they are among the hottest. %llu files may be open; "
             "raise the hard limit (ulimit -Hn)",
             target->pid, (unsigned long long)proc_descriptor_limit());
    mark(u, target);
}

static bool follow(struct unsampled *u, struct target *target, uint64_t rate_ns)
{
    struct follow *f = u->follow;
    struct shared *s = f->shared;
    const struct perf_how how = {.stack_bytes = target->copy.bytes, .caught = target->runtime.caught};
    struct err err = {0};
    bool good = perf_follow_process(s->perf, target->pid, &how, &err);
    for (unsigned i = 0; !good && err.kind == ERR_LIMIT && i < ROOM_ATTEMPTS; i++) {
        if (s->command_pid != 0 || !make_room(u, target->pid, rate_ns)) {
            return false;
        }
        err = (struct err){0};
        good = perf_follow_process(s->perf, target->pid, &how, &err);
    }
    target->unsampled.is = false; /* or may not be followed at all */
    if (!good) {
        return true;
    }
    f->hooks.gets_events(f->hooks.context, target);
    targets_set_mode(&f->targets, target, follow_perf_mode(f));
    perf_enable(s->perf);
    (void)targets_read_maps(&f->targets, target);
    if (err.kind == ERR_LIMIT) {
        unsampled_note_threads(u, target->pid);
    }
    return true;
}

static void note_hot(struct hottest *hottest, struct target *target, uint64_t rate_ns)
{
    size_t at = hottest->count < HOT_MOST ? hottest->count++ : HOT_MOST;
    for (; at > 0 && hottest->at[at - 1].rate_ns < rate_ns; at--) {
        if (at < HOT_MOST) {
            hottest->at[at] = hottest->at[at - 1];
        }
    }
    if (at < HOT_MOST) {
        hottest->at[at] = (struct hot){target, rate_ns};
    }
}

static void ask(struct target *target, uint64_t now_ns, struct hottest *hottest)
{
    uint64_t cpu_ns = 0;
    if (!target->unsampled.is || target->ended || targets_is_excluded(target, now_ns) ||
        !clock_process_cpu_ns(target->pid, &cpu_ns)) {
        return;
    }
    const struct unsampled_thread as_thread = {.cpu_ns = target->unsampled.cpu_ns,
                                          .asked_ns = target->unsampled.asked_ns};
    if (unsampled_is_hot(&as_thread, cpu_ns, now_ns)) {
        note_hot(hottest, target,
                 unsampled_rate_ns(cpu_ns - target->unsampled.cpu_ns, now_ns - target->unsampled.asked_ns));
    }
    target->unsampled.cpu_ns = cpu_ns;
    target->unsampled.asked_ns = now_ns;
}

static void exchange_processes(struct unsampled *u, uint64_t now_ns)
{
    struct hottest hottest = {.count = 0};
    vec_each(&u->follow->targets.all, target)
    {
        ask(*target, now_ns, &hottest);
    }
    for (size_t i = 0; i < hottest.count; i++) {
        if (!follow(u, hottest.at[i].target, hottest.at[i].rate_ns)) {
            break; /* the others are cooler */
        }
    }
}

static void check(void *state, uint64_t now_ns)
{
    struct unsampled *u = state;
    struct shared *s = u->follow->shared;
    if (!s->perf_on) {
        return;
    }
    bool is_short = u->any || u->threads.threads.len > 0;
    u->threads.context = u;
    u->threads.make_room = is_short && s->command_pid == 0 ? make_room : NULL;
    (void)unsampled_check(&u->threads, s->perf, &u->follow->targets, now_ns);
    if (u->any && now_ns >= u->next_ns) {
        u->next_ns = now_ns + CHECK_MS * NS_PER_MS;
        exchange_processes(u, now_ns);
    }
}

const struct concern unsampled_concern = {
    .name = "unsampled",
    .round = check,
    .release = release,
};

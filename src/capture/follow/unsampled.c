#include "base/time.h"
#include "capture/follow/inherit_group.h"
#include "capture/run/run_private.h"
#include "os/clock.h"
#include "os/proc.h"

enum {
    LOOK_MS = 1000,
    HOT_MOST = 8,       /* processes that get events per look, the hottest ones */
    COOLER_SHARE = 8,   /* of what a hot one uses: who uses less than this part makes room for it */
    ROOM_ATTEMPTS = 64, /* processes that are given up for one */
};

struct hot {
    struct target *target;
    uint64_t rate_ns; /* CPU time per second */
};

struct hottest {
    struct hot at[HOT_MOST];
    size_t count;
};

size_t session_count_unfollowed(struct session *s)
{
    size_t count = 0;
    vec_each(&s->targets.all, target)
    {
        count += s->any_unfollowed && (*target)->unsampled.is && !(*target)->ended;
    }
    return count;
}

/* ---- making room ---- */

static void mark_unfollowed(struct session *s, struct target *target)
{
    target->unsampled.is = true;
    target->unsampled.asked_ns = 0;
    target->capture_mode = CAPTURE_PROC;
    s->any_on_proc = s->any_unfollowed = true;
}

/* What inherited its events loses them, too. */
static void give_up(struct session *s, uint32_t pid)
{
    struct inherit_group group = {0};
    struct target *target = targets_find(&s->targets, pid);
    session_drain(s);
    if (target != NULL) {
        (void)inherit_group_list(&s->perf, &s->targets, target, &group);
    }
    perf_give_up(&s->perf, pid);
    vec_each(&group.members, one)
    {
        if (accounting_adopt(&s->accounting, *one)) {
            mark_unfollowed(s, *one);
        }
    }
    inherit_group_release(&group);
}

static bool make_room(void *context, uint32_t pid, uint64_t rate_ns)
{
    struct session *s = context;
    uint64_t recent_ns;
    uint32_t coolest = perf_coolest(&s->perf, pid, &recent_ns);
    uint64_t mark_ns = UNSAMPLED_MARK_MS * NS_PER_MS;
    if (coolest == 0 ||
        unsampled_rate_ns(recent_ns, mark_ns) >= rate_ns / COOLER_SHARE) {
        return false;
    }
    log_say(&s->log, LOG_DEBUG, "pid %u makes room for pid %u, which is hot", coolest, pid);
    give_up(s, coolest);
    return true;
}

/* ---- who gets events ---- */

void session_leave_unfollowed(struct session *s, struct target *target)
{
    log_once(&s->log, LOG_WARNING,
             "no descriptor is left for the events of pid %u and others: they are counted from "
             "/proc, without stacks, until they are among the hottest. %llu files may be open; "
             "raise the hard limit (ulimit -Hn)",
             target->pid, (unsigned long long)proc_descriptor_limit());
    mark_unfollowed(s, target);
}

static bool follow(struct session *s, struct target *target, uint64_t rate_ns)
{
    const struct perf_how how = {.stack_bytes = target->copy.bytes, .caught = target->runtime.caught};
    struct err err = {0};
    bool good = perf_follow_process(&s->perf, target->pid, &how, &err);
    for (unsigned i = 0; !good && err.kind == ERR_LIMIT && i < ROOM_ATTEMPTS; i++) {
        if (s->command_pid != 0 || !make_room(s, target->pid, rate_ns)) {
            return false;
        }
        err = (struct err){0};
        good = perf_follow_process(&s->perf, target->pid, &how, &err);
    }
    target->unsampled.is = false; /* or may not be followed at all */
    if (!good) {
        return true;
    }
    accounting_begin_events(&s->accounting, s->profile, target);
    target->capture_mode = (uint8_t)session_perf_mode(s);
    perf_enable(&s->perf);
    (void)targets_read_maps(&s->targets, target);
    if (err.kind == ERR_LIMIT) {
        unsampled_add(&s->unsampled, target->pid, perf_unsampled(&s->perf));
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

void session_look_at_unfollowed(struct session *s, uint64_t now_ns)
{
    if (!s->perf_on) {
        return;
    }
    bool is_short = s->any_unfollowed || s->unsampled.threads.len > 0;
    s->unsampled.context = s;
    s->unsampled.make_room = is_short && s->command_pid == 0 ? make_room : NULL;
    (void)unsampled_check(&s->unsampled, &s->perf, &s->targets, now_ns);
    if (!s->any_unfollowed || now_ns < s->next_unfollowed_ns) {
        return;
    }
    s->next_unfollowed_ns = now_ns + LOOK_MS * NS_PER_MS;
    struct hottest hottest = {.count = 0};
    vec_each(&s->targets.all, target)
    {
        ask(*target, now_ns, &hottest);
    }
    for (size_t i = 0; i < hottest.count; i++) {
        if (!follow(s, hottest.at[i].target, hottest.at[i].rate_ns)) {
            break; /* the others are cooler */
        }
    }
}

/* remapping: reading /proc/PID/maps again, of processes whose mappings no record tells. A few in each round, each at
 * its own pace (follow/maps_pace.h), and a process that may not be looked into is told once, unless it is just
 * becoming another program. */
#include "capture/stacks/remapping.h"
#include "base/time.h"
#include "os/access.h"
#include "os/proc.h"

#include <stdio.h>

enum {
    START_S = 5, /* so long libraries are loaded one after the other */
    MAPS_PER_ROUND = 16,
};

static bool has_long_been_running(const struct accounting *a, const struct target *target)
{
    uint64_t start_ticks = START_S * NS_PER_S / a->tick_ns;
    return target->start_ticks != 0 && target->start_ticks + start_ticks < a->began_ticks;
}

static void report_hidden(struct follow *f, const struct target *target)
{
    char why[ACCESS_TEXT_MAX], said[2 * ERR_TEXT_MAX];
    access_refusal(target->pid, ACCESS_LOOK, why);
    snprintf(said, sizeof said, "pid %u (%s) may not be looked into: %s", target->pid, target->name, why);
    log_once_for(&f->shared->log, LOG_WARNING, why, "%s. Its CPU time is counted without stacks", said);
    unseen_note_process(&f->shared->unseen, target->pid, said);
}

/* A process that is just becoming another program refuses for a moment what it allows before and after, and so does an
 * engine's own that starts a container: it is to be asked again. */
static bool is_passing(const struct accounting *a, const struct target *target)
{
    struct access_verdict verdict;
    access_verdict_of(target->pid, ACCESS_LOOK, &verdict);
    return !target->reread.was_hidden && (verdict.gate == ACCESS_GATE_MODULE || !has_long_been_running(a, target));
}

/* gVisor shows mappings to everybody, and files and memory only to whom Linux would show all. One that has ended has
 * no mappings and no root. */
static bool shows_files(const struct follow *f, const struct target *target)
{
    const struct world *world = f->shared->world;
    struct world_root root;
    return target->runtime.caught || target->maps.len == 0 || world->root_of(world->context, target->pid, &root);
}

void remapping_round(struct follow *f, const struct accounting *a, uint64_t now_ns)
{
    unsigned left = MAPS_PER_ROUND;
    vec_each(&f->targets.all, slot)
    {
        struct target *target = *slot;
        bool polled = target->capture_mode == CAPTURE_PROC || target->capture_mode == CAPTURE_RUNTIME;
        if (!polled || target->ended || targets_is_excluded(target, now_ns) ||
            target->account.idle_polls > 0 || now_ns < target->reread.pace.again_ns || left == 0) {
            continue;
        }
        left--;
        bool good = targets_read_maps(&f->targets, target) && shows_files(f, target);
        bool hidden = !good && proc_exists(target->pid);
        bool passing = hidden && is_passing(a, target);
        if (hidden && !passing) {
            report_hidden(f, target);
        }
        target->reread.was_hidden = hidden;
        const struct maps_reading reading = {
            .bytes = good ? f->targets.text.len : 0, /* a refusal leaves another process's text there */
            .is_new = !has_long_been_running(a, target),
            .found = target->runtime.caught,
            .passing = passing,
        };
        maps_pace_next(&target->reread.pace, &reading, now_ns);
    }
}

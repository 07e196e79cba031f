/* A pool of plans, one per thread that a catcher read lately; the one not used for longest makes room.
 * A plan also keeps the thread's stat file open, so that state and CPU cost one system call per sample,
 * and knows the thread's scheduling policy. */
#include "capture/catch/catch_plan.h"
#include "os/proc.h"
#include "target/stat.h"

#include <stdlib.h>

enum {
    ASK_RANK_EVERY = 256, /* uses: policy and nice seldom change */
    STAT_MAX = 1024,      /* a stat has some 350 bytes */
};

bool catch_plans_init(struct catch_plans *p, size_t count)
{
    *p = (struct catch_plans){
        .keys = calloc(count, sizeof *p->keys),
        .plans = calloc(count, sizeof *p->plans), /* untouched until a thread needs it */
        .count = count,
    };
    if (p->keys == NULL || p->plans == NULL) {
        p->count = 0;
        catch_plans_release(p);
        return false;
    }
    return true;
}

static void close_stat(struct catch_plan *plan)
{
    if (plan->opened) {
        proc_close(plan->stat);
        plan->opened = false;
    }
}

void catch_plans_release(struct catch_plans *p)
{
    for (size_t i = 0; i < p->count && i < p->turn; i++) {
        close_stat(&p->plans[i]);
    }
    free(p->keys);
    free(p->plans);
    *p = (struct catch_plans){0};
}

static void ask_rank(struct catch_plan *plan, uint32_t tid)
{
    plan->known = thread_rank_of(tid, &plan->policy, &plan->nice);
}

static void begin_anew(struct catch_plan *plan, uint32_t tid)
{
    close_stat(plan);
    memset(plan->bytes, 0, sizeof plan->bytes);
    ask_rank(plan, tid);
}

struct catch_plan *catch_plans_get(struct catch_plans *p, const struct catch_target *target,
                                   uint32_t tid)
{
    size_t at = 0, oldest = 0;
    for (; at < p->count; at++) {
        const struct catch_plan_key *key = &p->keys[at];
        if (key->tid == tid && key->pid == target->pid && key->used != 0) {
            break;
        }
        oldest = key->used < p->keys[oldest].used ? at : oldest;
    }
    bool kept = at < p->count && p->keys[at].serial == target->serial;
    at = at < p->count ? at : oldest;
    struct catch_plan *plan = &p->plans[at];
    p->turn++;
    p->keys[at] = (struct catch_plan_key){target->serial, p->turn, target->pid, tid};
    if (!kept) {
        begin_anew(plan, tid);
    } else if (p->turn % ASK_RANK_EVERY == 0) {
        ask_rank(plan, tid);
    }
    return plan;
}

/* 0 when the thread that the descriptor was opened for has ended. */
static size_t read_stat(struct catch_plan *plan, uint32_t pid, uint32_t tid, char *text)
{
    if (!plan->opened) {
        plan->stat = proc_open_thread(pid, tid, "stat");
        plan->opened = plan->stat >= 0;
    }
    return plan->opened ? proc_read_start(plan->stat, text, STAT_MAX) : 0;
}

bool catch_plan_stat(struct catch_plan *plan, uint32_t pid, uint32_t tid, char *state,
                     uint32_t *cpu)
{
    char text[STAT_MAX];
    size_t len = read_stat(plan, pid, tid, text);
    if (len == 0) {
        begin_anew(plan, tid); /* another thread has the id now, or none */
        len = read_stat(plan, pid, tid, text);
    }
    return len > 0 && stat_where((struct str){text, len}, state, cpu);
}

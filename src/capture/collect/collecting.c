#include "capture/collect/collecting.h"
#include "base/time.h"

#include <stdlib.h>

enum { CHECK_MS = 1000 };

struct collecting_row {
    struct follow *follow;
    struct collect collect;
    bool any;         /* some row of the registry has the verb */
    uint64_t next_ns; /* monotonic: of the next check for processes that are new or have ended */
};

struct collecting_row *collecting_new(struct follow *f, const struct runtime *const *rows)
{
    struct collecting_row *c = calloc(1, sizeof *c);
    if (c != NULL) {
        c->follow = f;
        collect_init(&c->collect, rows, f->shared->settings->sampling.frequency_hz);
    }
    for (; c != NULL && *rows != NULL; rows++) {
        c->any = c->any || (*rows)->start != NULL;
    }
    return c;
}

static uint32_t thread_of(void *context, struct profile *p, uint32_t pid, uint32_t tid)
{
    struct targets *targets = context;
    struct target *target = targets_find(targets, pid);
    return target == NULL ? 0 : targets_thread_id(targets, p, target, tid != 0 ? tid : pid);
}

static struct collect_into into_window(struct collecting_row *c)
{
    return (struct collect_into){c->follow->shared->window.profile, thread_of, &c->follow->targets};
}

static void check(void *state, uint64_t now_ns)
{
    struct collecting_row *c = state;
    const struct collect_into into = into_window(c);
    if (!c->any || now_ns < c->next_ns) {
        return;
    }
    c->next_ns = now_ns + CHECK_MS * NS_PER_MS;
    vec_each(&c->follow->targets.all, slot)
    {
        const struct target *target = *slot;
        if (target->ended || targets_is_excluded(target, now_ns)) {
            collect_leave(&c->collect, target->pid, &into);
        } else {
            (void)collect_start(&c->collect, target->pid, now_ns);
        }
    }
    collect_poll(&c->collect, &into);
}

static void window_end(void *state)
{
    struct collecting_row *c = state;
    const struct collect_into into = into_window(c);
    collect_poll(&c->collect, &into);
}

static void release(void *state)
{
    struct collecting_row *c = state;
    const struct collect_into into = into_window(c);
    collect_release(&c->collect, &into);
    free(c);
}

const struct concern collecting_concern = {
    .name = "collecting",
    .round = check,
    .window_end = window_end,
    .release = release,
};

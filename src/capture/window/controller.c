/* controller: looked at once a second, by its pid and the start that /proc told at first: a pid may be given to
 * another. Who waits to be reaped has ended. */
#include "capture/window/controller.h"
#include "base/time.h"
#include "target/stat.h"

#include <stdlib.h>

enum { LOOK_MS = 1000, TEXT_MAX = 64 * 1024 };

struct controller {
    struct shared *shared;
    uint32_t pid; /* 0: none, or it has ended */
    uint64_t start_ticks; /* 0: not known yet */
    uint64_t next_ns;
    struct buf text;
};

struct controller *controller_new(struct shared *shared)
{
    struct controller *c = calloc(1, sizeof *c);
    if (c != NULL) {
        *c = (struct controller){.shared = shared, .pid = shared->settings->scope.controller_pid};
        buf_init(&c->text, TEXT_MAX);
    }
    return c;
}

static bool is_there(struct controller *c)
{
    const struct world *world = c->shared->world;
    struct proc_stat stat;
    bool good = world->text(world->context, c->pid, 0, "stat", &c->text, NULL) &&
                stat_parse(buf_slice(&c->text), &stat, NULL) && !stat_has_ended(&stat);
    if (good && c->start_ticks == 0) {
        c->start_ticks = stat.start_ticks;
    }
    return good && c->start_ticks == stat.start_ticks;
}

static void look(void *state, uint64_t now_ns)
{
    struct controller *c = state;
    if (c->pid == 0 || now_ns < c->next_ns) {
        return;
    }
    c->next_ns = now_ns + LOOK_MS * NS_PER_MS;
    if (!is_there(c)) {
        log_say(&c->shared->log, LOG_INFO, "the controlling process, pid %u, has ended, and so does this run", c->pid);
        c->pid = 0;
        c->shared->finishing = true;
    }
}

static void release(void *state)
{
    struct controller *c = state;
    buf_release(&c->text);
    free(c);
}

const struct concern controller_concern = {
    .name = "controller",
    .while_suspended = true,
    .round = look,
    .release = release,
};

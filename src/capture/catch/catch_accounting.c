#include "capture/catch/catch_private.h"
#include "os/clock.h"
#include "os/proc.h"

enum {
    TEXT_MAX = 128,
    LEARN_EVERY = 4, /* of those that had not to wait, … */
    LEARN_FIRST = CATCH_LATENCIES, /* … once there are enough */
};

void catch_accounting_open(struct catch_accounting *b)
{
    struct catch_evidence unused;
    b->file = proc_open_own_schedstat();
    b->opened = b->file >= 0;
    catch_accounting_note(b, UINT64_MAX, &unused);
}

void catch_accounting_close(struct catch_accounting *b)
{
    if (b->opened) {
        proc_close(b->file);
    }
    b->opened = false;
}

/* The accounting of a thread that runs stand as they were when it got its CPU. When a tick has set them since,
 * that moment lies within the round, and the other is not known: 0. */
static uint64_t turn_began_ns(const struct proc_schedstat *now, uint64_t round_ns)
{
    uint64_t run_ns = clock_thread_cpu_ns(pthread_self()) - now->cpu_ns;
    uint64_t began_ns = clock_mono_ns() - run_ns;
    return began_ns <= round_ns ? began_ns : 0;
}

void catch_accounting_note(struct catch_accounting *b, uint64_t round_ns, struct catch_evidence *e)
{
    char text[TEXT_MAX];
    struct proc_schedstat now;
    size_t len = b->opened ? proc_read_start(b->file, text, sizeof text) : 0;
    e->accounting = schedstat_parse((struct str){text, len}, &now, NULL) && now.slices > 0;
    if (!e->accounting) {
        return;
    }
    e->turns = now.slices - b->last.slices;
    e->waited_ns = now.wait_ns - b->last.wait_ns;
    e->woken_ns = 0;
    b->last = now;
    bool next = e->waited_ns == 0;
    bool learns = next && (b->notes < LEARN_FIRST || b->notes % LEARN_EVERY == 0);
    b->notes += next;
    if (e->turns != 1 || (next && !learns)) {
        return;
    }
    uint64_t began_ns = turn_began_ns(&now, round_ns);
    e->woken_ns = began_ns > e->waited_ns ? began_ns - e->waited_ns : 0;
}

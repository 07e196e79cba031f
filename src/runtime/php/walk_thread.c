/* Where a thread has its globals. One of a build for threads is looked for in their table, by the number that its
 * pthread has, and kept in the plan; whether it is still the same one is told by each sample's first batch. A long
 * table is searched through in several samples. */
#include "runtime/php/walk.h"

enum {
    STEPS_MAX = 64,      /* entries looked at for one sample: two reads each */
    SLOTS = WALK_WINDOW / 8,
    MISSED_SAMPLES = 32,
};

/* Is this entry the thread's? `next` of its list. */
static bool is_its(struct walk *w, uint64_t address, uint64_t *next)
{
    const struct php_threads *t = &w->php->threads;
    struct walk_entry *e = &w->entry;
    struct memory_piece piece = {0, &e->tid, sizeof e->tid, 0};
    *next = 0;
    if (!walk_read_exactly(w->memory, address, e->bytes, sizeof e->bytes)) {
        return false;
    }
    *next = load_u64(e->bytes + ENTRY_NEXT);
    piece.address = load_u64(e->bytes + ENTRY_PTHREAD) + t->tid_in_pthread;
    return plausible(piece.address) && memory_batch_read(w->memory, &piece, 1, NULL) && piece.got == sizeof e->tid &&
           e->tid == w->tid;
}

static void take(struct walk *w, uint64_t entry)
{
    const struct php *php = w->php;
    *w->plan = (struct php_plan){.entry = entry, .pthread = load_u64(w->entry.bytes + ENTRY_PTHREAD),
                                 .root = entry + php->threads.offset + php->layout.stack};
}

/* From the plan's slot on. True: found. */
static bool search(struct walk *w)
{
    const struct php_threads *t = &w->php->threads;
    struct php_plan *plan = w->plan;
    unsigned char *slots = w->window.bytes[0];
    unsigned steps = 0;
    uint32_t first = plan->resume < t->size ? plan->resume : 0, count = (uint32_t)least(t->size - first, SLOTS), i = 0;
    if (!walk_read_exactly(w->memory, t->table + 8 * (uint64_t)first, slots, 8 * (size_t)count)) {
        return false;
    }
    for (; i < count && steps < STEPS_MAX; i++) {
        uint64_t entry = load_u64(slots + 8 * (size_t)i), next;
        for (unsigned k = 0; entry != 0 && k < THREADS_LIST_MAX; k++, steps++, entry = next) {
            if (is_its(w, entry, &next)) {
                take(w, entry);
                return true;
            }
        }
    }
    plan->resume = first + i < t->size ? first + i : 0;
    plan->missed = plan->resume == 0 ? MISSED_SAMPLES : 0;
    return false;
}

bool php_stack_find_thread(struct walk *w)
{
    struct php_plan *plan = w->plan;
    w->root_at = w->php->root;
    w->request.at = w->php->request;
    if (w->php->threads.size == 0) {
        return w->tid == w->php->tid;
    }
    if (plan->entry == 0 && plan->missed > 0) {
        plan->missed--;
        return false;
    }
    bool found = plan->entry != 0 || search(w);
    w->root_at = plan->root;
    w->request.at += w->php->request != 0 ? plan->entry : 0;
    return found;
}

void php_stack_ask_thread(struct walk *w)
{
    const struct php_plan *plan = w->plan;
    struct walk_entry *e = &w->entry;
    if (w->php->threads.size != 0) {
        e->piece = php_stack_ask(w, plan->entry, e->bytes, sizeof e->bytes);
        e->tid_piece = php_stack_ask(w, plan->pthread + w->php->threads.tid_in_pthread, &e->tid, sizeof e->tid);
    }
}

bool php_stack_is_thread(const struct walk *w)
{
    const struct walk_entry *e = &w->entry;
    return w->php->threads.size == 0 ||
           (php_stack_got(w, e->piece) && php_stack_got(w, e->tid_piece) && e->tid == w->tid &&
            load_u64(e->bytes + ENTRY_PTHREAD) == w->plan->pthread);
}

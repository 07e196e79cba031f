#include "capture/live/dump_circle.h"

static struct dump_thread *holder_of(struct dump_thread *threads, const struct dump_thread *t)
{
    return t->holder == 0 ? NULL : &threads[t->holder - 1];
}

/* Each thread waits for one at most: so many steps lead from it into the circle, if there is one, and once more round
 * it those in it get its number. */
uint32_t circles_find(struct dump_thread *threads, size_t count, uint32_t before)
{
    uint32_t found = 0;
    for (size_t i = 0; i < count; i++) {
        struct dump_thread *t = &threads[i];
        for (size_t steps = 0; t != NULL && t->circle == 0 && steps < count; steps++) {
            t = holder_of(threads, t);
        }
        found += t != NULL && t->circle == 0;
        while (t != NULL && t->circle == 0) {
            t->circle = before + found;
            t = holder_of(threads, t);
        }
    }
    return found;
}

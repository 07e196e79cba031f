/* When the time of each node of a flame graph was spent. Samples of a node are found by a search in the fold's places,
 * their moments by one in the profile's: nothing is kept per node, so three passes over the tree cost time, no memory.
 * Steps are doubled when there would be too many for a page. */
#include "encode/flame_times.h"

#include <stdlib.h>

#include "base/time.h"
#include "encode/flame.h"

enum { QUANTA = 16 };

/* How many would be left with steps doubled so often; of a node's several samples each counts. */
static size_t count_moments(const struct moments *m, unsigned shift)
{
    size_t count = 0;
    for (size_t i = 0; i < m->list.len; i++) {
        const struct moment *at = &m->list.at[i];
        count += i == 0 || at[-1].sample != at->sample || at[-1].step >> shift != at->step >> shift;
    }
    return count;
}

/* Of the window, and of what was seen after its end. */
static uint64_t count_steps(const struct profile *p)
{
    const struct profile_meta *meta = &p->meta;
    uint64_t window_ns = meta->end_wall_ns > meta->start_wall_ns ? meta->end_wall_ns - meta->start_wall_ns : 0;
    uint64_t steps = (window_ns + p->moments.step_ns - 1) / p->moments.step_ns;
    vec_each(&p->moments.list, moment)
    {
        steps = moment->step >= steps ? (uint64_t)moment->step + 1 : steps;
    }
    return steps;
}

struct flame_times flame_times_of(struct profile *p, const struct fold *fold, uint64_t unit_ns)
{
    struct flame_times t = {.p = p, .fold = fold};
    if (fold->places.len == 0) {
        return t;
    }
    moments_sort(&p->moments);
    uint64_t steps = count_steps(p);
    while (steps >> t.shift > FLAME_STEPS_MIN && count_moments(&p->moments, t.shift) > FLAME_MOMENTS_MAX) {
        t.shift++;
    }
    t.quantum_ns = unit_ns >= QUANTA ? unit_ns / QUANTA : NS_PER_MS / QUANTA;
    t.step_ns = p->moments.step_ns << t.shift;
    t.steps = (uint32_t)((steps - 1) >> t.shift) + 1;
    return t;
}

void flame_times_release(struct flame_times *t)
{
    vec_release(&t->here);
    *t = (struct flame_times){0};
}

static size_t first_place(const struct fold *fold, uint32_t node)
{
    size_t low = 0, high = fold->places.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (fold->places.at[middle].node < node) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The parts of one sample; *given_ns grows by what they are. */
static bool add_parts(struct flame_times *t, uint32_t sample, uint64_t *given_ns)
{
    uint64_t sum_ns = t->p->samples.at[sample].cpu_ns, part_ns;
    uint32_t step;
    struct moments_parts parts = moments_parts_of(&t->p->moments, sample, sum_ns);
    while (sum_ns > 0 && parts.weight > 0 && moments_part(&parts, &step, &part_ns)) {
        struct flame_time *time = vec_push(&t->here);
        if (time == NULL) {
            return false;
        }
        *time = (struct flame_time){step >> t->shift, part_ns};
        *given_ns += part_ns;
    }
    return true;
}

static int by_step(const void *left, const void *right)
{
    const struct flame_time *a = left, *b = right;
    return (a->step > b->step) - (a->step < b->step);
}

static uint64_t weight_of(const struct flame_times *t, uint64_t ns)
{
    uint64_t weight = (ns + t->quantum_ns / 2) / t->quantum_ns;
    return weight == 0 ? 1 : weight;
}

static void sum_steps(struct flame_times *t)
{
    size_t kept = 0;
    if (t->here.len > 1) {
        qsort(t->here.at, t->here.len, sizeof *t->here.at, by_step);
    }
    for (size_t i = 0; i < t->here.len; i++) {
        if (kept > 0 && t->here.at[kept - 1].step == t->here.at[i].step) {
            t->here.at[kept - 1].weight += t->here.at[i].weight;
        } else {
            t->here.at[kept++] = t->here.at[i];
        }
    }
    t->here.len = kept;
    vec_each(&t->here, time)
    {
        time->weight = weight_of(t, time->weight);
    }
}

bool flame_times_at(struct flame_times *t, uint32_t node)
{
    const struct fold *fold = t->fold;
    uint64_t own_ns = fold->nodes.at[node].self_ns, given_ns = 0;
    vec_clear(&t->here);
    for (size_t i = first_place(fold, node); i < fold->places.len && fold->places.at[i].node == node; i++) {
        if (!add_parts(t, fold->places.at[i].sample, &given_ns)) {
            return false;
        }
    }
    sum_steps(t);
    t->rest = own_ns > given_ns ? weight_of(t, own_ns - given_ns) : 0;
    return true;
}

/* When samples were taken, as a list that is appended to while sampling and sorted once by who writes it. What bounds
 * it is the length of a step: it doubles when the list is full, so that the whole of a run stays visible. Sorting and
 * merging then cost some milliseconds, once per doubling. */
#include "profile/moments.h"

#include "base/time.h"

enum { FREE_SHARE = 4, STEPS_LONGEST = 40 };

void moments_begin(struct moments *m, uint64_t origin_ns, size_t most)
{
    vec_clear(&m->list);
    m->most = most;
    m->origin_ns = origin_ns;
    m->step_ns = MOMENTS_STEP_NS;
}

static int by_sample(const void *a, const void *b)
{
    const struct moment *one = a, *other = b;
    int order = (one->sample > other->sample) - (one->sample < other->sample);
    return order != 0 ? order : (one->step > other->step) - (one->step < other->step);
}

static void add_weight(struct moment *to, uint32_t weight)
{
    to->weight = to->weight > UINT32_MAX - weight ? UINT32_MAX : to->weight + weight;
}

void moments_sort(struct moments *m)
{
    size_t kept = 0;
    if (m->list.len > 0) {
        qsort(m->list.at, m->list.len, sizeof *m->list.at, by_sample);
    }
    for (size_t i = 0; i < m->list.len; i++) {
        if (kept > 0 && by_sample(&m->list.at[kept - 1], &m->list.at[i]) == 0) {
            add_weight(&m->list.at[kept - 1], m->list.at[i].weight);
        } else {
            m->list.at[kept++] = m->list.at[i];
        }
    }
    m->list.len = kept;
}

static bool has_room(const struct moments *m)
{
    return m->list.len + m->most / FREE_SHARE < m->most;
}

/* With as many sums as there may be moments there is never room: then those that come are left out. */
static void coarsen(struct moments *m)
{
    for (unsigned i = 0; i < STEPS_LONGEST && !has_room(m); i++) {
        m->step_ns *= 2;
        vec_each(&m->list, moment)
        {
            moment->step /= 2;
        }
        moments_sort(m);
    }
}

void moments_add(struct moments *m, uint32_t sample, uint64_t time_ns, uint64_t weight_ns)
{
    if (m->most == 0) {
        return;
    }
    if (m->list.len >= m->most && m->step_ns < MOMENTS_STEP_NS << STEPS_LONGEST) {
        coarsen(m);
    }
    uint64_t step = time_ns > m->origin_ns ? (time_ns - m->origin_ns) / m->step_ns : 0;
    uint64_t weight = weight_ns / NS_PER_US;
    struct moment moment = {.sample = sample,
                            .step = step < UINT32_MAX ? (uint32_t)step : UINT32_MAX,
                            .weight = weight == 0 ? 1 : weight < UINT32_MAX ? (uint32_t)weight : UINT32_MAX};
    struct moment *last = m->list.len > 0 ? &m->list.at[m->list.len - 1] : NULL;
    if (last != NULL && by_sample(last, &moment) == 0) {
        add_weight(last, moment.weight);
        return;
    }
    struct moment *place = m->list.len < m->most ? vec_push(&m->list) : NULL;
    if (place != NULL) {
        *place = moment;
    }
}

void moments_shift(struct moments *m, uint64_t ns)
{
    uint64_t steps = m->step_ns == 0 ? 0 : ns / m->step_ns;
    vec_each(&m->list, moment)
    {
        moment->step = moment->step + steps < UINT32_MAX ? (uint32_t)(moment->step + steps) : UINT32_MAX;
    }
}

static size_t first_of(const struct moments *m, uint32_t sample)
{
    size_t low = 0, high = m->list.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->list.at[middle].sample < sample) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct moments_parts moments_parts_of(const struct moments *m, uint32_t sample, uint64_t sum_ns)
{
    struct moments_parts parts = {.sum_ns = sum_ns};
    size_t end = first_of(m, sample), first = end;
    while (end < m->list.len && m->list.at[end].sample == sample) {
        parts.weight += m->list.at[end++].weight;
    }
    if (end > first) {
        parts.next = &m->list.at[first];
        parts.end = parts.next + (end - first);
    }
    return parts;
}

bool moments_part(struct moments_parts *parts, uint32_t *step, uint64_t *part_ns)
{
    if (parts->next == parts->end) {
        return false;
    }
    const struct moment *moment = parts->next++;
    parts->given_weight += moment->weight;
    double upto = (double)parts->sum_ns * (parts->given_weight / parts->weight);
    uint64_t upto_ns = parts->next == parts->end || upto > (double)parts->sum_ns ? parts->sum_ns : (uint64_t)upto;
    *step = moment->step;
    *part_ns = upto_ns - parts->given_ns;
    parts->given_ns = upto_ns;
    return true;
}

/* What a catcher learns of its own CPU: from the latest 64 delays the limits T, U and D of the proof, the length
 * of its scheduler slice, and from the share of proven samples whether reading is worth its wake-ups.
 * Pure but for time stamps that the caller gives. */
#include "base/time.h"
#include "capture/catch/catch_private.h"

enum {
    LATE_FIRST_US = 100,
    LEFT_FIRST_US = 50,
    NO_WAIT_US = 20,     /* to have been next: where preemption is lazy even that takes a moment */
    SOON_FIRST = 8,
    SOON_SHARE = 3,      /* one in three was next */
    COPY_SIZE_STEP = 16 * 1024,
    SLICE_LEAST_US = 100,
    SLICE_MOST_US = 300, /* not shorter than the kernel's own any more, else */
    SLICE_WORKS = 4,     /* a slice outlasts the work several times */
    SLICE_STEP_US = 30,  /* smaller changes are not worth the call */
    WINDOW_S = 10,
    WINDOW_LEAST = 20,   /* samples before a share means something */
    PROVEN_SHARE = 5,    /* one in five, or it is not worth waking */
    AGAIN_S = 60,
};

void catch_learn_init(struct catch_learned *l, bool switches)
{
    *l = (struct catch_learned){.switches = switches,
                                .begins.most_ns = LATE_FIRST_US * NS_PER_US,
                                .slice_ns = SLICE_LEAST_US * NS_PER_US};
    for (size_t i = 0; i < CATCH_COPY_SIZES; i++) {
        l->leaves[i].most_ns = LEFT_FIRST_US * NS_PER_US;
    }
}

static size_t size_of_copy(size_t copied)
{
    size_t size = copied == 0 ? 0 : (copied - 1) / COPY_SIZE_STEP;
    return size < CATCH_COPY_SIZES ? size : CATCH_COPY_SIZES - 1;
}

/* True when there are enough again. */
static bool take_delay(struct catch_delays *d, uint64_t from_ns, uint64_t to_ns, size_t enough)
{
    d->latest_ns[d->count++] = to_ns > from_ns ? to_ns - from_ns : 0;
    if (d->count < enough) {
        return false;
    }
    d->count = 0;
    return true;
}

/* Where preemption is lazy nothing else proves: so a few decide at first. Of a catcher that mostly does not win its
 * wake-up those that hardly waited are chance, as the next timer tick was near, and are not typical. */
static void learn_soon(struct catch_learned *l, const struct catch_evidence *e)
{
    struct catch_delays *soon = &l->soon;
    bool next = e->preempted && e->waited_ns <= NO_WAIT_US * NS_PER_US;
    size_t enough = soon->most_ns == 0 ? SOON_FIRST : CATCH_LATENCIES;
    l->turns++;
    l->next += next;
    if (!next || e->woken_ns == 0 || !take_delay(soon, e->woken_ns, e->left_ns, enough)) {
        return;
    }
    bool usual = (uint64_t)l->next * SOON_SHARE >= l->turns;
    soon->most_ns = usual ? catch_soon_after(soon->latest_ns, enough, soon->most_ns) : 0;
    l->turns = l->next = 0;
}

void catch_learn_delays(struct catch_learned *l, const struct catch_evidence *e, size_t copied)
{
    struct catch_delays *begins = &l->begins, *leaves = &l->leaves[size_of_copy(copied)];
    if (take_delay(begins, e->sample_ns, e->start_ns, CATCH_LATENCIES)) {
        begins->most_ns = catch_late_after(begins->latest_ns, CATCH_LATENCIES, begins->most_ns,
                                           &begins->starved);
    }
    learn_soon(l, e);
    if (e->preempted && take_delay(leaves, e->sample_ns, e->left_ns, CATCH_LATENCIES)) {
        leaves->most_ns = catch_left_after(leaves->latest_ns, CATCH_LATENCIES, leaves->most_ns,
                                           &leaves->starved);
    }
}

uint64_t catch_learned_late(const struct catch_learned *l, size_t copied)
{
    return l->switches ? l->leaves[size_of_copy(copied)].most_ns : l->begins.most_ns;
}

bool catch_learned_starved(const struct catch_learned *l)
{
    bool starved = !l->switches && l->begins.starved;
    for (size_t i = 0; i < CATCH_COPY_SIZES && l->switches; i++) {
        starved = starved || l->leaves[i].starved;
    }
    return starved;
}

static uint64_t greatest_but_few(const uint64_t *values, size_t count)
{
    uint64_t top[CATCH_LATENCIES / 10 + 1] = {0}; /* a tenth may be longer; greatest first */
    size_t tops = sizeof top / sizeof top[0];
    for (size_t i = 0; i < count; i++) {
        uint64_t value = values[i];
        for (size_t at = 0; at < tops; at++) {
            if (value > top[at]) {
                uint64_t less = top[at];
                top[at] = value;
                value = less;
            }
        }
    }
    return top[tops - 1];
}

bool catch_learn_hold(struct catch_learned *l, uint64_t hold_ns)
{
    l->holds_ns[l->hold_count++] = hold_ns;
    if (l->hold_count < CATCH_LATENCIES) {
        return false;
    }
    l->hold_count = 0;
    uint64_t slice_ns = SLICE_WORKS * greatest_but_few(l->holds_ns, CATCH_LATENCIES);
    slice_ns = slice_ns < SLICE_LEAST_US * NS_PER_US ? SLICE_LEAST_US * NS_PER_US : slice_ns;
    slice_ns = slice_ns > SLICE_MOST_US * NS_PER_US ? SLICE_MOST_US * NS_PER_US : slice_ns;
    uint64_t change = slice_ns > l->slice_ns ? slice_ns - l->slice_ns : l->slice_ns - slice_ns;
    if (change < SLICE_STEP_US * NS_PER_US) {
        return false;
    }
    l->slice_ns = slice_ns;
    return true;
}

void catch_learn_verdict(struct catch_learned *l, enum catch_verdict verdict)
{
    l->tried++;
    l->proven += verdict == CATCH_PROVEN;
}

static void begin_window(struct catch_learned *l, uint64_t now_ns)
{
    l->window_ns = now_ns;
    l->tried = l->proven = 0;
}

bool catch_learn_round(struct catch_learned *l, uint64_t now_ns)
{
    if (l->again_ns != 0 && now_ns < l->again_ns) {
        return false;
    }
    if (l->again_ns != 0 || l->window_ns == 0) {
        l->again_ns = 0;
        begin_window(l, now_ns);
    }
    if (now_ns - l->window_ns < WINDOW_S * NS_PER_S || l->tried < WINDOW_LEAST) {
        return true;
    }
    bool worth = (uint64_t)l->proven * PROVEN_SHARE >= l->tried;
    begin_window(l, now_ns);
    if (!worth) {
        l->again_ns = now_ns + AGAIN_S * NS_PER_S;
    }
    return worth;
}

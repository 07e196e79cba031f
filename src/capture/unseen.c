#include "capture/unseen.h"
#include "base/time.h"

#include <stdio.h>

enum { MUCH_SHARE = 20, MUCH_MS = 50, MEMORY_S = 60 };

/* What has no sentence of its own was never sampled. */
static const char shorter[] = "processes or threads ran for less than a sample each, or pillion was not given a CPU "
                              "in time; raise -f, or give pillion a larger CPU weight";

void unseen_note(struct unseen *u, enum unseen_cause cause, const char *sentence)
{
    bool is_old = cause == UNSEEN_MEMORY && u->memory_age_ns > 0; /* it may be another's by now */
    if (u->why[cause][0] == '\0' || is_old) {
        snprintf(u->why[cause], sizeof u->why[cause], "%s", sentence);
    }
    if (cause == UNSEEN_MEMORY) {
        u->memory_age_ns = 0;
    }
}

void unseen_end_window(struct unseen *u, uint64_t window_ns)
{
    u->why[UNSEEN_BUDGET][0] = u->why[UNSEEN_RECORDS][0] = '\0';
    u->memory_age_ns += window_ns;
    if (u->memory_age_ns > MEMORY_S * NS_PER_S + window_ns) {
        u->why[UNSEEN_MEMORY][0] = '\0';
    }
}

static bool is_much(uint64_t part_ns, uint64_t whole_ns)
{
    return part_ns > whole_ns / MUCH_SHARE && part_ns > MUCH_MS * NS_PER_MS;
}

bool unseen_is_much(const struct profile_totals *sum)
{
    return is_much(sum->leaf_ns[FRAME_ACCOUNT], sum->cpu_ns);
}

/* The sentence, or null when there is none. */
static const char *add(const char *sentence, struct buf *out)
{
    if (sentence[0] == '\0') {
        return NULL;
    }
    buf_printf(out, "%s%s", out->len > 0 ? ". " : "", sentence);
    return sentence;
}

static const char *add_lost(const struct unseen *u, struct buf *out)
{
    bool told = add(u->why[UNSEEN_THREADS], out) != NULL;
    told = add(u->why[UNSEEN_BUDGET], out) != NULL || told;
    const char *news = add(u->why[UNSEEN_RECORDS], out);
    return news != NULL || told ? news : add(shorter, out);
}

const char *unseen_describe(const struct unseen *u, const struct profile_totals *sum, struct buf *out)
{
    const uint64_t *missing_ns = sum->account_ns;
    const char *hidden = NULL, *lost = NULL;
    bool much = unseen_is_much(sum);
    if (much && missing_ns[ACCOUNT_NATIVE_NO_PERF] + missing_ns[ACCOUNT_UNREADABLE] > 0) {
        (void)add(u->why[UNSEEN_MEMORY], out); /* of all gates the one that opens most often */
    }
    bool refused = add(u->why[UNSEEN_PERF], out) != NULL;
    if (much && !refused && is_much(missing_ns[ACCOUNT_KERNEL_HIDDEN], sum->cpu_ns)) {
        hidden = add(u->why[UNSEEN_KERNEL], out);
    }
    if (much && is_much(missing_ns[ACCOUNT_LOST], sum->cpu_ns)) {
        lost = add_lost(u, out);
    }
    return hidden != NULL ? hidden : lost;
}

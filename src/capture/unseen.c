/*
 * Which sentences explain what a window lacks: of each cause the first, of processes that refuse that of the heaviest;
 * and whether there is enough missing to be worth a word.
 */
#include "capture/unseen.h"
#include "base/time.h"

#include <stdio.h>

enum { MUCH_SHARE = 20, MUCH_MS = 50, PROCESS_S = 60 };

/* What has no sentence of its own was never sampled. */
static const char shorter[] = "processes or threads ran for less than a sample each, or pillion was not given a CPU "
                              "in time; raise -f, or give pillion a larger CPU weight";

void unseen_note(struct unseen *u, enum unseen_cause cause, const char *sentence)
{
    if (u->why[cause][0] == '\0') {
        snprintf(u->why[cause], sizeof u->why[cause], "%s", sentence);
    }
}

/* Its own place, or else a free one; null: there is none. */
static struct unseen_process *place_of(struct unseen *u, uint32_t pid)
{
    struct unseen_process *place = NULL;
    for (size_t i = UNSEEN_PROCESSES; i-- > 0;) {
        bool is_own = u->process[i].pid == pid;
        if (is_own || (u->process[i].pid == 0 && (place == NULL || place->pid == 0))) {
            place = &u->process[i];
        }
    }
    return place;
}

void unseen_note_process(struct unseen *u, uint32_t pid, const char *sentence)
{
    struct unseen_process *place = place_of(u, pid);
    if (place != NULL) {
        *place = (struct unseen_process){.pid = pid};
        snprintf(place->why, sizeof place->why, "%s", sentence);
    }
}

void unseen_end_window(struct unseen *u, uint64_t window_ns)
{
    u->why[UNSEEN_BUDGET][0] = u->why[UNSEEN_RECORDS][0] = '\0';
    for (size_t i = 0; i < UNSEEN_PROCESSES; i++) {
        struct unseen_process *process = &u->process[i];
        process->age_ns += window_ns;
        process->pid = process->age_ns > PROCESS_S * NS_PER_S + window_ns ? 0 : process->pid;
    }
}

static uint64_t cpu_of(const struct profile *p, uint32_t pid)
{
    uint64_t cpu_ns = 0;
    for (size_t i = 1; i < p->processes.len; i++) {
        cpu_ns += p->processes.at[i].pid == pid ? p->processes.at[i].cpu_ns : 0;
    }
    return cpu_ns;
}

/* "" when nobody refuses. */
static const char *heaviest(const struct unseen *u, const struct profile *p)
{
    const char *why = "";
    uint64_t most_ns = 0;
    for (size_t i = 0; i < UNSEEN_PROCESSES; i++) {
        uint64_t cpu_ns = u->process[i].pid == 0 ? 0 : cpu_of(p, u->process[i].pid);
        if (u->process[i].pid != 0 && (why[0] == '\0' || cpu_ns > most_ns)) {
            why = u->process[i].why;
            most_ns = cpu_ns;
        }
    }
    return why;
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

const char *unseen_describe(const struct unseen *u, const struct profile *p, const struct profile_totals *sum,
                            struct buf *out)
{
    const uint64_t *missing_ns = sum->account_ns;
    const char *hidden = NULL, *lost = NULL;
    bool much = unseen_is_much(sum);
    if (much && missing_ns[ACCOUNT_NATIVE_NO_PERF] + missing_ns[ACCOUNT_UNREADABLE] > 0) {
        (void)add(heaviest(u, p), out); /* of all gates the one that opens most often */
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

/*
 * fleet: ten thousand instances that upload to one server, on a virtual clock.
 *
 * When each sends what is decided by the product's own deliver/turn.c and deliver/retry.c; around them stands what
 * capture/upload/uploader_thread.c does with it: four windows in memory, all in a spool if there is one, one request at
 * a time.
 * Seeds are fixed, so each run has the same figures. One line of JSON for each scenario:
 *
 *   steady            requests a second that the fleet makes on average when all is well: instances / period
 *   peak_1s, peak_10s the fullest second, the fullest ten seconds (a second), of the span that is measured
 *   peak              peak_1s / steady, which is what the limits are about
 *   during            the same of the fault itself, where most requests fail
 *   produced = taken + lost + waiting     windows; lost: more than memory is for
 *   gone_99_s, gone_s how long after the fault until 99 %, all of what waited at its end were taken
 *
 * usage: fleet [SCENARIO...]
 */
#include "deliver/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S RETRY_BASE_NS
#define MS (S / 1000)
#define PERIOD (60 * S)
#define DAY (86400 * S) /* what went before is less */

enum {
    INSTANCES = 10000,
    MEMORY = 4,  /* UPLOADER_QUEUE */
    FILES = 128, /* more than any scenario leaves */
    SECONDS = 3600,
};

enum fault { WELL, REFUSES, HANGS, THROTTLES, NAMES_A_MOMENT, IS_SMALL };

struct scenario {
    const char *name;
    bool spool;
    unsigned backlog;   /* windows in the spool at the start */
    enum fault fault;
    unsigned from_s, to_s; /* of the fault */
    unsigned first_s, last_s; /* that are measured */
    bool alone;         /* as if there were no fleet: for comparison */
};

static const struct scenario scenarios[] = {
    {"together", .first_s = 60, .last_s = 1860},
    {"restarted-with-10-in-the-spool", .spool = true, .backlog = 10, .last_s = 1800},
    {"refused-spool", true, 0, REFUSES, 600, 1200, 1200, 3000, false},
    {"refused-memory", false, 0, REFUSES, 600, 1200, 1200, 3000, false},
    {"hung-spool", true, 0, HANGS, 600, 1200, 1200, 3000, false},
    {"hung-memory", false, 0, HANGS, 600, 1200, 1200, 3000, false},
    {"429-retry-after-60", false, 0, THROTTLES, 600, 720, 720, 1800, false},
    {"429-until-one-moment", false, 0, NAMES_A_MOMENT, 600, 720, 720, 1800, false},
    {"refused-a-minute-then-serves-1.5", false, 0, IS_SMALL, 600, 660, 660, 2460, false},
    {"together-without-spreading", .first_s = 60, .last_s = 1860, .alone = true},
    {"refused-spool-without-spreading", true, 0, REFUSES, 600, 1200, 1200, 3000, true},
};

/* ---- events, the earliest first ---- */

enum kind { WINDOW_ENDED, WAKES, ANSWERED };

struct event {
    uint64_t at_ns;
    uint32_t instance;
    enum kind kind;
};

struct instance {
    struct schedule turn;
    uint64_t start_ns, wake_ns;
    uint32_t ended;             /* windows */
    uint32_t queue[MEMORY];     /* in memory, the oldest first: their numbers */
    size_t queued;
    uint32_t files[FILES];
    size_t filed;
    bool busy, in_file;
    uint32_t current;
    enum verdict verdict;       /* that its answer will be */
    uint64_t retry_after_ns;
};

struct world {
    const struct scenario *scenario;
    struct instance *all;
    struct event *heap;
    size_t events, room;
    uint64_t now_ns, random;
    unsigned requests[SECONDS];
    uint64_t produced, taken, lost, retried;
    uint32_t *gone_s; /* when each was taken of what had waited at the fault's end */
    size_t gone, waited;
};

static void *grown(void *old, size_t bytes)
{
    void *new = realloc(old, bytes);
    if (new == NULL) {
        fputs("fleet: no memory\n", stderr);
        exit(1);
    }
    return new;
}

static void swap(struct event *a, struct event *b)
{
    struct event kept = *a;
    *a = *b;
    *b = kept;
}

static void push(struct world *w, uint64_t at_ns, uint32_t instance, enum kind kind)
{
    if (w->events == w->room) {
        w->room = w->room == 0 ? 65536 : 2 * w->room;
        w->heap = grown(w->heap, w->room * sizeof *w->heap);
    }
    size_t at = w->events++;
    w->heap[at] = (struct event){at_ns, instance, kind};
    for (; at > 0 && w->heap[at].at_ns < w->heap[(at - 1) / 2].at_ns; at = (at - 1) / 2) {
        swap(&w->heap[at], &w->heap[(at - 1) / 2]);
    }
}

static struct event pop(struct world *w)
{
    struct event first = w->heap[0];
    w->heap[0] = w->heap[--w->events];
    for (size_t at = 0, next; (next = 2 * at + 1) < w->events; at = next) {
        next += next + 1 < w->events && w->heap[next + 1].at_ns < w->heap[next].at_ns;
        if (w->heap[at].at_ns <= w->heap[next].at_ns) {
            break;
        }
        swap(&w->heap[at], &w->heap[next]);
    }
    return first;
}

/* 0 … most; splitmix64 */
static uint64_t random_to(struct world *w, uint64_t most)
{
    uint64_t z = w->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % (most + 1);
}

/* ---- the server ---- */

static void answer(struct world *w, struct instance *one, uint32_t number)
{
    const struct scenario *s = w->scenario;
    bool fails = s->fault != WELL && w->now_ns >= s->from_s * S && w->now_ns < s->to_s * S;
    bool is_full = w->requests[w->now_ns / S] >= INSTANCES * S / PERIOD * 3 / 2;
    fails = fails || (s->fault == IS_SMALL && is_full);
    uint64_t takes_ns = 50 * MS;
    one->verdict = fails ? VERDICT_LATER : VERDICT_TAKEN;
    one->retry_after_ns = 0;
    if (fails && s->fault == REFUSES) {
        takes_ns = MS;
    } else if (fails && s->fault == HANGS) {
        takes_ns = 10 * S; /* without progress; see deliver/client.h */
    } else if (fails && s->fault == THROTTLES) {
        one->retry_after_ns = 60 * S;
    } else if (fails && s->fault == NAMES_A_MOMENT) {
        one->retry_after_ns = s->to_s * S - w->now_ns;
    }
    push(w, w->now_ns + takes_ns, number, ANSWERED);
    w->requests[w->now_ns / S]++;
}

/* ---- an instance ---- */

static struct window_key key_of(const struct instance *one, uint32_t window)
{
    return (struct window_key){(DAY + one->start_ns + window * PERIOD) / MS, window};
}

static void remove_at(uint32_t *list, size_t *count, size_t at)
{
    memmove(list + at, list + at + 1, (--*count - at) * sizeof *list);
}

static void remove_one(uint32_t *list, size_t *count, uint32_t window)
{
    for (size_t at = 0; at < *count; at++) {
        if (list[at] == window) {
            remove_at(list, count, at);
            return;
        }
    }
}

static void enqueue(struct world *w, struct instance *one, uint32_t window)
{
    if (one->queued == MEMORY) {
        w->lost += !w->scenario->spool;
        if (window < one->queue[0]) {
            return; /* it is the oldest itself */
        }
        remove_at(one->queue, &one->queued, 0);
    }
    size_t at = one->queued++;
    for (; at > 0 && window < one->queue[at - 1]; at--) {
        one->queue[at] = one->queue[at - 1];
    }
    one->queue[at] = window;
}

static struct schedule_pick pick(const struct instance *one, uint64_t now_ns)
{
    struct window_key queue[MEMORY];
    struct schedule_waiting waiting = {.queue = queue, .queued = one->queued};
    for (size_t i = 0; i < one->queued; i++) {
        queue[i] = key_of(one, one->queue[i]);
    }
    for (size_t i = 0; i < one->filed && !waiting.filed; i++) {
        waiting.file = key_of(one, one->files[i]);
        waiting.filed = window_key_less(one->turn.after, waiting.file);
    }
    return schedule_next(&one->turn, &waiting, now_ns);
}

static void send(struct world *w, struct instance *one, uint32_t number, struct schedule_pick picked)
{
    one->in_file = picked.in_file;
    if (!picked.in_file) {
        one->current = one->queue[picked.at];
        remove_at(one->queue, &one->queued, picked.at);
    } else {
        for (size_t i = 0; i < one->filed; i++) { /* the one that was picked */
            if (window_key_less(one->turn.after, key_of(one, one->files[i]))) {
                one->current = one->files[i];
                break;
            }
        }
    }
    one->busy = true;
    schedule_try(&one->turn, key_of(one, one->current), picked.next);
    answer(w, one, number);
}

static void step(struct world *w, uint32_t number)
{
    struct instance *one = &w->all[number];
    struct schedule_pick picked = {0};
    if (one->busy) {
        return;
    }
    do {
        picked = pick(one, w->now_ns);
    } while (picked.next == RETRY_NOTHING && schedule_again(&one->turn));
    if (picked.next == RETRY_LIVE || picked.next == RETRY_BACKLOG) {
        send(w, one, number, picked);
    } else if (picked.next == RETRY_WAIT) {
        uint64_t wake_ns = schedule_wake_ns(&one->turn, w->now_ns);
        if (wake_ns != one->wake_ns) {
            one->wake_ns = wake_ns;
            push(w, wake_ns, number, WAKES);
        }
    }
}

static void end_window(struct world *w, uint32_t number)
{
    struct instance *one = &w->all[number];
    uint32_t window = one->ended++;
    w->produced++;
    if (w->scenario->spool && one->filed < FILES) {
        one->files[one->filed++] = window;
    }
    schedule_hold(&one->turn, key_of(one, window), w->now_ns);
    enqueue(w, one, window);
    /* symbols, encoding and writing take their time, never the same */
    push(w, one->start_ns + (one->ended + 1) * PERIOD + random_to(w, 500 * MS), number, WINDOW_ENDED);
}

static void note_taken(struct world *w, struct instance *one)
{
    uint64_t ended_ns = one->start_ns + (one->current + 1) * PERIOD, fault_ns = w->scenario->to_s * S;
    w->taken++;
    remove_one(one->files, &one->filed, one->current);
    remove_one(one->queue, &one->queued, one->current);
    if (ended_ns < fault_ns && w->now_ns >= fault_ns) {
        w->gone_s[w->gone++] = (uint32_t)((w->now_ns - fault_ns) / S);
    }
}

static void take_answer(struct world *w, uint32_t number)
{
    struct instance *one = &w->all[number];
    one->busy = false;
    schedule_note(&one->turn, key_of(one, one->current), one->verdict, one->retry_after_ns, w->now_ns);
    if (one->verdict == VERDICT_TAKEN) {
        note_taken(w, one);
    } else {
        w->retried++;
        if (!one->in_file) {
            enqueue(w, one, one->current);
        }
    }
}

/* ---- a scenario ---- */

static void begin(struct world *w, const struct scenario *scenario)
{
    *w = (struct world){.scenario = scenario, .random = 42};
    w->all = grown(NULL, INSTANCES * sizeof *w->all);
    w->gone_s = grown(NULL, INSTANCES * sizeof *w->gone_s * (FILES + MEMORY));
    memset(w->all, 0, INSTANCES * sizeof *w->all);
    for (uint32_t i = 0; i < INSTANCES; i++) {
        struct instance *one = &w->all[i];
        one->start_ns = random_to(w, S);
        schedule_begin(&one->turn, random_to(w, UINT64_MAX - 1), scenario->alone ? 0 : PERIOD, one->start_ns);
        for (; one->ended < scenario->backlog; one->ended++) {
            one->files[one->filed++] = one->ended;
        }
        w->produced += scenario->backlog;
        one->start_ns -= one->ended * PERIOD; /* they are of the time before; it wraps, and back */
        push(w, one->start_ns + (one->ended + 1) * PERIOD + random_to(w, 500 * MS), i, WINDOW_ENDED);
        push(w, one->start_ns + one->ended * PERIOD, i, WAKES);
        one->wake_ns = one->start_ns + one->ended * PERIOD;
    }
}

static void run(struct world *w)
{
    uint64_t end_ns = w->scenario->last_s * S;
    while (w->heap[0].at_ns < end_ns) {
        struct event event = pop(w);
        struct instance *one = &w->all[event.instance];
        w->now_ns = event.at_ns;
        if (event.kind == WAKES && event.at_ns != one->wake_ns) {
            continue; /* it was woken for something else meanwhile */
        }
        if (event.kind == WINDOW_ENDED) {
            end_window(w, event.instance);
        } else if (event.kind == ANSWERED) {
            take_answer(w, event.instance);
        }
        one->wake_ns = event.kind == WAKES ? 0 : one->wake_ns;
        step(w, event.instance);
    }
}

static double peak(const struct world *w, unsigned from_s, unsigned to_s, unsigned bin_s)
{
    unsigned most = 0;
    for (unsigned at = from_s; at + bin_s <= to_s; at += bin_s) {
        unsigned sum = 0;
        for (unsigned i = 0; i < bin_s; i++) {
            sum += w->requests[at + i];
        }
        most = sum > most ? sum : most;
    }
    return (double)most / bin_s;
}

static int by_number(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

static void report(struct world *w)
{
    const struct scenario *s = w->scenario;
    double steady = (double)INSTANCES * S / PERIOD, sum = 0;
    uint64_t waiting = 0, old = 0;
    for (uint32_t i = 0; i < INSTANCES; i++) {
        const struct instance *one = &w->all[i];
        waiting += s->spool ? one->filed : one->queued + one->busy;
        const uint32_t *list = s->spool ? one->files : one->queue;
        for (size_t at = 0; at < (s->spool ? one->filed : one->queued); at++) {
            old += one->start_ns + (list[at] + 1) * PERIOD < s->to_s * S;
        }
    }
    for (unsigned i = s->first_s; i < s->last_s; i++) {
        sum += w->requests[i];
    }
    qsort(w->gone_s, w->gone, sizeof *w->gone_s, by_number);
    printf("{\"name\": \"%s\", \"steady\": %.1f, \"mean\": %.1f, \"peak_1s\": %.0f, \"peak_10s\": %.1f, "
           "\"peak\": %.3f, \"during\": %.3f, \"produced\": %llu, \"taken\": %llu, \"lost\": %llu, "
           "\"waiting\": %llu, \"old\": %llu, \"failed\": %llu, \"gone_99_s\": %u, \"gone_s\": %u}\n",
           s->name, steady, sum / (s->last_s - s->first_s), peak(w, s->first_s, s->last_s, 1),
           peak(w, s->first_s, s->last_s, 10), peak(w, s->first_s, s->last_s, 1) / steady,
           peak(w, s->from_s, s->to_s, 1) / steady, (unsigned long long)w->produced,
           (unsigned long long)w->taken, (unsigned long long)w->lost, (unsigned long long)waiting,
           (unsigned long long)old, (unsigned long long)w->retried,
           w->gone > 0 ? w->gone_s[w->gone * 99 / 100] : 0, w->gone > 0 ? w->gone_s[w->gone - 1] : 0);
}

static bool is_asked_for(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0) {
            return true;
        }
    }
    return argc < 2;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        struct world w;
        if (!is_asked_for(scenarios[i].name, argc, argv)) {
            continue;
        }
        begin(&w, &scenarios[i]);
        run(&w);
        report(&w);
        free(w.all);
        free(w.heap);
        free(w.gone_s);
    }
    return 0;
}

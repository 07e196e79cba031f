/*
 * Keeps the profiler within --max-cpu and --max-memory: asks budget.h once a second, has events made anew with another
 * frequency or smaller copies of stacks, releases caches, ends windows early, and notes in each what was done without.
 */
#include "capture/window/limits.h"
#include "base/time.h"
#include "capture/account/budget.h"
#include "capture/follow/inherit_group.h"
#include "capture/follow/stack_copy.h"
#include "os/clock.h"
#include "os/proc.h"
#include "os/usage.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    WINDOW_USUAL_S = 60,
    CHECK_MS = 1000,
    GROUPS_PER_ROUND = 16, /* that get events with another frequency */
    WORDS_MAX = 512,
    MEMORY_LEAST = 8 << 20,
    ASKED_SHARE = 2,         /* of a container's memory, when --max-memory was given … */
    DEFAULT_SHARE = 4,       /* … and when not */
    RELEASE_MS = 10000,
    EARLIEST_MS = 5000,      /* a shorter window is none */
    KEPT_AWAY = 8 << 20,     /* what writing a last window may take */
    GATE_MAX = 160,
    USED_UP_BYTES = 256 << 20, /* by a program in the time between two checks */
    LOOK_MOST = 10,          /* checks */
    WORTH_SHARE = 16,        /* of the memory: a smaller profile's end frees too little */
};

struct limits {
    struct limits_reach reach;
    struct shared *shared;
    struct follow *follow;
    struct budget budget;
    uint64_t next_ns;            /* of the check once a second */
    uint32_t first_stack_bytes;  /* that were copied before stacks became coarse */
    bool by_groups;              /* events are made anew piece by piece */
    bool resizes;                /* not all copies have the size that follows from it yet */
    uint64_t next_release_ns;    /* caches are not given back before */
    unsigned releases;           /* of caches, in this window */
    bool is_frozen;              /* the profile takes no new stacks */
    struct usage_room container; /* what it has left, as of the latest look */
    uint64_t next_look_ns;       /* at that */
    uint64_t room_bytes;         /* that may be resident, as of then */
};

struct limits *limits_new(const struct limits_reach *reach)
{
    struct limits *l = calloc(1, sizeof *l);
    if (l != NULL) {
        l->reach = *reach;
        l->follow = reach->follow;
        l->shared = reach->follow->shared;
    }
    return l;
}

static struct budget_used used_so_far(const struct limits *l)
{
    uint64_t publish_ns = publisher_cpu_ns(l->reach.publisher) + uploads_cpu_ns(l->reach.uploads);
    return (struct budget_used){own_cost_ns(&l->shared->own, publish_ns), publish_ns};
}

static void setup(void *state)
{
    struct limits *l = state;
    const struct settings *settings = l->shared->settings;
    struct budget_used used = used_so_far(l);
    uint64_t window_ns = settings->sampling.window_ns, usual_ns = WINDOW_USUAL_S * NS_PER_S;
    if (!settings->sampling.continuous && window_ns < usual_ns) {
        window_ns = usual_ns; /* it is written once, which is no rate: a short look is not to be a coarse one */
    }
    budget_init(&l->budget, settings->budget.cpu_percent, l->shared->frequency_hz, window_ns, clock_mono_ns(),
                &used);
    if (l->shared->own.by_time || settings->live.on) { /* gVisor: attaching is thousands of calls; names at once */
        budget_allow_dear_start(&l->budget);
    }
    l->first_stack_bytes = l->follow->targets.stack_bytes;
    l->room_bytes = l->shared->memory_bytes;
}

/* ---- another frequency ---- */

/* What a process copies of its stacks with a sample; stack_copy.h goes on from there. */
static uint32_t stack_bytes_of(const struct limits *l, const struct target *target)
{
    if (target->copy.bytes == 0) {
        return 0;
    }
    return l->shared->throttle.coarse                ? (uint32_t)STACK_COPY_MIN_BYTES
           : target->runtime.caught            ? (uint32_t)STACK_COPY_MAX_BYTES
           : perf_sampling(l->shared->perf)->stack_bytes;
}

/* All that live, whoever they have their events from, and be it a process that is no more. */
static bool list_all(struct limits *l, struct inherit_group *out)
{
    for (size_t i = 0; i < l->follow->targets.all.len; i++) {
        struct target *one = l->follow->targets.all.at[i];
        struct target **place = follow_is_on_perf(one) ? vec_push(&out->members) : NULL;
        if (place == NULL && follow_is_on_perf(one)) {
            return false;
        }
        if (place != NULL) {
            *place = one;
        }
    }
    out->owner = out->members.len > 0 ? out->members.at[0] : NULL;
    return out->owner != NULL;
}

/* False: they go on as they were. Each sample tells the period that it stands for. */
static bool refollow(struct limits *l, const struct inherit_group *group)
{
    for (size_t i = 0; l->resizes && i < group->members.len; i++) {
        group->members.at[i]->copy.bytes = stack_bytes_of(l, group->members.at[i]);
    }
    return inherit_group_refollow(l->shared->perf, group, 0);
}

static bool refollow_all(struct limits *l)
{
    struct inherit_group all = {0};
    bool good = list_all(l, &all);
    if (good) {
        perf_retire(l->shared->perf, 0);
    }
    good = good && refollow(l, &all);
    inherit_group_release(&all);
    return good;
}

/* Twice as many descriptors for a moment were too many: one group needs fewer. */
static bool refollow_group(struct limits *l, uint32_t pid)
{
    struct inherit_group group = {0};
    struct target *target = targets_find(&l->follow->targets, pid);
    bool good = target != NULL && inherit_group_list(l->shared->perf, &l->follow->targets, target, &group) &&
                refollow(l, &group);
    inherit_group_release(&group);
    return good;
}

static void follow_changes(struct limits *l)
{
    l->by_groups = l->by_groups || !refollow_all(l);
    uint32_t pid = l->by_groups ? perf_outdated(l->shared->perf) : 0;
    for (unsigned i = 0; pid != 0 && i < GROUPS_PER_ROUND; i++) {
        if (!refollow_group(l, pid)) {
            perf_accept_outdated(l->shared->perf, pid);
        }
        pid = perf_outdated(l->shared->perf);
    }
    l->resizes = l->resizes && pid != 0;
    follow_newborn(l->follow);
}

static void change_copies(struct limits *l)
{
    bool coarse = l->budget.measure >= BUDGET_COARSE;
    if (coarse == l->shared->throttle.coarse || l->first_stack_bytes == 0) {
        return;
    }
    l->shared->throttle.coarse = l->reach.stacks->coarse = coarse;
    l->follow->targets.stack_bytes = coarse ? (uint32_t)STACK_COPY_MIN_BYTES : l->first_stack_bytes;
    perf_set_stack_bytes(l->shared->perf, l->follow->targets.stack_bytes);
    l->resizes = true;
    perf_outdate(l->shared->perf);
}

/* Rounds cost something, too, and what is sampled seldom need not be fetched as often. */
static void set_throttle(struct limits *l)
{
    const struct budget *b = &l->budget;
    struct throttle *t = &l->shared->throttle;
    uint32_t hz = b->frequency_hz > 0 ? b->frequency_hz : 1;
    t->active = b->measure != BUDGET_NOTHING;
    t->suspended = b->measure == BUDGET_SUSPENDED;
    t->frequency_hz = b->frequency_hz;
    t->stretch = t->active && b->asked_hz > hz ? b->asked_hz / hz : 1;
}

static void apply(struct limits *l)
{
    const struct budget *b = &l->budget;
    struct shared *s = l->shared;
    set_throttle(l);
    if (b->measure != BUDGET_NOTHING && b->frequency_hz > 0 && s->perf_on) {
        l->reach.accounting->unsampled_ns += NS_PER_S / b->frequency_hz * perf_ring_count(s->perf);
    }
    if (s->perf_on) {
        l->by_groups = false;
        change_copies(l);
        perf_set_frequency(s->perf, b->frequency_hz);
    }
    catching_throttle(l->reach.catching);
}

/* ---- messages ---- */

static void report(struct limits *l)
{
    const struct budget *b = &l->budget;
    double percent = l->shared->settings->budget.cpu_percent;
    log_say(&l->shared->log, LOG_DEBUG, "budget: %.2f %% of a core of late, %.2f %% may be; %u Hz from now on",
            100 * b->judged_rate, 100 * budget_sampling_share(b), b->frequency_hz);
    if (b->measure == BUDGET_SUSPENDED) {
        log_once(&l->shared->log, LOG_WARNING,
                 "SUSPENDED: even at %u Hz pillion would use more than --max-cpu %g %% of a core, so "
                 "nothing is sampled until the next window; CPU time is counted without stacks. Raise "
                 "--max-cpu",
                 (unsigned)BUDGET_FLOOR_HZ, percent);
        unseen_note(&l->shared->unseen, UNSEEN_BUDGET,
                    "nothing was sampled for a while, to stay within --max-cpu; raise it");
    } else if (b->measure != BUDGET_NOTHING) {
        log_once(&l->shared->log, LOG_WARNING,
                 "sampling at less than %u Hz now, to use no more than --max-cpu %g %% of a core",
                 b->asked_hz, percent);
    }
}

static void check_cpu(struct limits *l, uint64_t now_ns)
{
    struct budget_used used = used_so_far(l);
    if (budget_update(&l->budget, now_ns, &used)) {
        apply(l);
        report(l);
    }
}

/* ---- memory ---- */

void limits_choose_memory(struct shared *s)
{
    const struct settings *settings = s->settings;
    uint64_t limit = proc_own_memory_limit_bytes(), bytes = settings->budget.memory_bytes;
    uint64_t most = limit / (settings->budget.memory_given ? ASKED_SHARE : DEFAULT_SHARE);
    if (limit != 0 && most < bytes) {
        bytes = most > MEMORY_LEAST ? most : (uint64_t)MEMORY_LEAST;
        log_say(&s->log, LOG_INFO, "at most %llu MB of memory instead of %llu: this container has %llu",
                (unsigned long long)bytes >> 20, (unsigned long long)settings->budget.memory_bytes >> 20,
                (unsigned long long)limit >> 20);
    }
    s->memory_bytes = bytes;
    s->in_container = limit != 0;
    if (s->in_container) {
        proc_outweigh();
    }
}

static unsigned megabytes(uint64_t bytes)
{
    return (unsigned)(bytes >> 20);
}

static unsigned asked_megabytes(const struct limits *l)
{
    return megabytes(l->shared->memory_bytes);
}

/* What is nearly used up, and what to do about it. */
static void memory_gate(const struct limits *l, char *out, size_t out_bytes)
{
    if (l->room_bytes >= l->shared->memory_bytes) {
        snprintf(out, out_bytes, "most of --max-memory %u is in use: raise it", asked_megabytes(l));
    } else {
        snprintf(out, out_bytes, "of the %u MB that this container may use %u are left: give it more memory",
                 megabytes(l->container.limit_bytes), megabytes(l->container.left_bytes));
    }
}

/* What can be made again: unwind rules, symbols, names of generated code, room for the next profile. */
static void release_caches(struct limits *l, uint64_t now_ns)
{
    char gate[GATE_MAX];
    l->releases++;
    l->next_release_ns = now_ns + RELEASE_MS * NS_PER_MS;
    images_forget_rules(&l->follow->images);
    publisher_release_caches(l->reach.publisher);
    memory_gate(l, gate, sizeof gate);
    log_once(&l->shared->log, LOG_WARNING,
             "%s. Until then unwind tables and symbols are given back, and read again when they are needed", gate);
}

static void stop_growing(struct limits *l, uint64_t now_ns)
{
    char gate[GATE_MAX];
    bool worth = profile_bytes(l->shared->window.profile) > l->room_bytes / WORTH_SHARE;
    if (!worth || !publisher_ready(l->reach.publisher)) {
        return; /* it is not the profile that is large, or soon there is room again */
    }
    memory_gate(l, gate, sizeof gate);
    if (l->shared->settings->sampling.continuous && now_ns > l->shared->window.start_ns + EARLIEST_MS * NS_PER_MS) {
        l->shared->throttle.closes_early = true;
        log_once(&l->shared->log, LOG_WARNING, "%s. The window ends early", gate);
    } else if (!l->is_frozen) {
        l->is_frozen = true;
        profile_limit(l->shared->window.profile, profile_bytes(l->shared->window.profile));
        log_once(&l->shared->log, LOG_WARNING,
                 "%s. Until the window's end new stacks are kept as their leaf alone, below [budget]", gate);
    }
}

/* Where the kernel ends all of a container with the first that it chooses, to be the first is no help. */
static bool keeps_away(struct limits *l, uint64_t rss)
{
    const struct usage_room *room = &l->container;
    if (!room->together || room->left_bytes >= KEPT_AWAY || rss >= (room->limit_bytes - room->left_bytes) / 2) {
        return false;
    }
    log_say(&l->shared->log, LOG_WARNING,
            "this container has %u of %u MB left, and memory.oom.group ends all of it when they are used up: profiling "
            "ends here, so that it is not what uses them up. Give the container more memory",
            megabytes(room->left_bytes), megabytes(room->limit_bytes));
    return l->shared->finishing = true;
}

/* Five small files or more: the less is left, the sooner again. */
static void look_at_container(struct limits *l, uint64_t now_ns)
{
    if (!l->shared->in_container || now_ns < l->next_look_ns) {
        return;
    }
    if (!usage_memory_room("", &l->container)) {
        l->container = (struct usage_room){0};
    }
    uint64_t checks = l->container.left_bytes / USED_UP_BYTES;
    l->next_look_ns = now_ns + (checks < LOOK_MOST ? checks : (uint64_t)LOOK_MOST) * CHECK_MS * NS_PER_MS;
}

/* As asked for, and no more than the container has left besides. */
static uint64_t room_now(struct limits *l, uint64_t rss, uint64_t now_ns)
{
    uint64_t bytes = l->shared->memory_bytes;
    look_at_container(l, now_ns);
    uint64_t most = rss + l->container.left_bytes / 2; /* the other half is the program's */
    return l->container.limit_bytes != 0 && most < bytes ? most : bytes;
}

static void check_memory(struct limits *l, uint64_t now_ns)
{
    uint64_t rss = proc_own_rss_bytes();
    l->room_bytes = room_now(l, rss, now_ns);
    uint64_t most = l->room_bytes - publisher_aside_bytes(l->room_bytes);
    if (keeps_away(l, rss) || rss / 3 < most / 4) {
        return;
    }
    if (now_ns >= l->next_release_ns) {
        release_caches(l, now_ns);
    } else if (rss / 9 >= most / 10) { /* the publisher releases its own when it can */
        stop_growing(l, now_ns);
    }
}

/* ---- each round ---- */

static void keep(void *state, uint64_t now_ns)
{
    struct limits *l = state;
    if (l->shared->observer != NULL) {
        return; /* an observer sees all there is */
    }
    if (now_ns >= l->next_ns) {
        l->next_ns = now_ns + CHECK_MS * NS_PER_MS;
        check_cpu(l, now_ns);
        check_memory(l, now_ns);
    }
    if (l->shared->perf_on && perf_outdated(l->shared->perf) != 0) {
        follow_changes(l);
    }
}

/* ---- a window ---- */

static void cpu_words(const struct limits *l, const struct budget_window *w, struct buf *out)
{
    if (w->most == BUDGET_NOTHING) {
        return;
    }
    buf_printf(out, "sampled at %.3g Hz instead of %u to stay within --max-cpu %g %%", w->mean_hz,
               l->shared->frequency_hz, l->shared->settings->budget.cpu_percent);
    if (w->most >= BUDGET_COARSE && l->first_stack_bytes > 0) {
        buf_text(out, ", at last with short copies of stacks");
    }
    if (w->suspended_ns > 0) {
        buf_printf(out, ", and not at all for %.1f s", (double)w->suspended_ns / (double)NS_PER_S);
    }
    if (budget_windows_are_short(&l->budget)) {
        buf_printf(out, "; writing a window every %g s takes more than half of that, see -d",
                   (double)l->shared->settings->sampling.window_ns / (double)NS_PER_S);
    }
}

static void memory_words(const struct limits *l, uint64_t collapsed, struct buf *out)
{
    const char *before = out->len > 0 ? "; " : "";
    if (l->releases == 0 && collapsed == 0 && !l->shared->throttle.closes_early) {
        return;
    }
    buf_printf(out, "%sto stay within --max-memory %u", before, asked_megabytes(l));
    before = " ";
    if (l->releases > 0) {
        buf_printf(out, "%scaches were given back %u time%s", before, l->releases,
                   l->releases == 1 ? "" : "s");
        before = ", ";
    }
    if (collapsed > 0) {
        buf_printf(out, "%s%llu stacks are their leaf below [budget]", before,
                   (unsigned long long)collapsed);
        before = ", ";
    }
    if (l->shared->throttle.closes_early) {
        buf_printf(out, "%sthe window ended early", before);
    }
}

static void window_end(void *state)
{
    struct limits *l = state;
    struct budget_window window;
    struct budget_used used = used_so_far(l);
    struct buf words;
    buf_init(&words, WORDS_MAX);
    bool resumes = budget_end_window(&l->budget, clock_mono_ns(), &used, &window);
    cpu_words(l, &window, &words);
    memory_words(l, l->shared->window.profile->collapsed, &words);
    l->shared->window.profile->meta.mean_hz = window.mean_hz;
    bool needed = profile_need(l->shared->window.profile, true);
    l->shared->window.profile->meta.budget = profile_string(l->shared->window.profile, buf_slice(&words));
    (void)profile_need(l->shared->window.profile, needed);
    buf_release(&words);
    l->releases = 0;
    l->is_frozen = l->shared->throttle.closes_early = false;
    apply(l);
    if (resumes) {
        log_say(&l->shared->log, LOG_DEBUG, "budget: a new window, sampled again at %u Hz",
                l->budget.frequency_hz);
    }
}

const struct concern limits_concern = {
    .name = "limits",
    .while_suspended = true,
    .setup = setup,
    .round = keep,
    .window_end = window_end,
    .release = free,
};

#include "base/time.h"
#include "capture/dumps.h"
#include "capture/family.h"
#include "capture/session/session_private.h"
#include "os/clock.h"
#include "os/proc.h"

enum {
    LOOK_MS = 1000,
    FAMILIES_PER_ROUND = 16, /* that get events with another frequency */
    WORDS_MAX = 512,
    MEMORY_LEAST = 8 << 20,
    ASKED_SHARE = 2,         /* of a container's memory, when --max-memory was given … */
    DEFAULT_SHARE = 4,       /* … and when not */
    SHED_MS = 10000,
    EARLIEST_MS = 5000,      /* a shorter window is none */
    WORTH_SHARE = 16,        /* of the memory: a smaller profile's end frees too little */
};

static struct budget_used used_so_far(const struct session *s)
{
    uint64_t upload_ns = s->uploader != NULL ? uploader_cpu_ns(s->uploader) : 0;
    return (struct budget_used){clock_own_cpu_ns(), publisher_cpu_ns(s->publisher) + upload_ns};
}

void session_begin_budget(struct session *s)
{
    const struct settings *settings = s->settings;
    struct budget_used used = used_so_far(s);
    budget_init(&s->budget, settings->max_cpu_percent, settings->frequency_hz, settings->window_ns,
                clock_mono_ns(), &used);
    s->first_stack_bytes = s->targets.stack_bytes;
}

/* Rounds cost something, too, and what is sampled seldom need not be fetched as often. */
uint64_t session_slower_round_ns(const struct session *s, uint64_t usual_ns, uint64_t most_ns)
{
    const struct budget *b = &s->budget;
    if (b->measure == BUDGET_NOTHING) {
        return usual_ns;
    }
    uint64_t hz = b->frequency_hz > 0 ? b->frequency_hz : 1;
    uint64_t ns = usual_ns * (b->asked_hz / hz);
    return ns < usual_ns ? usual_ns : ns < most_ns ? ns : most_ns;
}

bool session_is_suspended(const struct session *s)
{
    return s->budget.measure == BUDGET_SUSPENDED;
}

/* ---- another frequency ---- */

/* What a process copies of its stacks with a sample; dumps.h goes on from there. */
static uint32_t stack_bytes_of(const struct session *s, const struct target *target)
{
    if (target->stack_bytes == 0) {
        return 0;
    }
    return s->is_coarse                ? (uint32_t)DUMPS_LEAST_BYTES
           : target->caught            ? (uint32_t)DUMPS_MOST_BYTES
           : s->perf.sampling.stack_bytes;
}

static bool is_on_perf(const struct target *target)
{
    return !target->ended && (target->rung == RUNG_PERF || target->rung == RUNG_PERF_USER);
}

/* All that live, whoever they have their events from, and be it a process that is no more. */
static bool list_all(struct session *s, struct family *out)
{
    for (size_t i = 0; i < s->targets.all.len; i++) {
        struct target *one = s->targets.all.at[i];
        struct target **place = is_on_perf(one) ? vec_push(&out->members) : NULL;
        if (place == NULL && is_on_perf(one)) {
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
static bool refollow(struct session *s, const struct family *family)
{
    for (size_t i = 0; s->resizes && i < family->members.len; i++) {
        family->members.at[i]->stack_bytes = stack_bytes_of(s, family->members.at[i]);
    }
    return family_refollow(&s->perf, family, 0);
}

static bool refollow_all(struct session *s)
{
    struct family all = {0};
    bool good = list_all(s, &all);
    for (size_t i = 0; good && i < s->perf.followers.len; i++) {
        s->perf.followers.at[i].retired = true;
    }
    good = good && refollow(s, &all);
    family_release(&all);
    return good;
}

/* Twice as many descriptors for a moment were too many: one family needs fewer. */
static bool refollow_family(struct session *s, uint32_t pid)
{
    struct family family = {0};
    struct target *target = targets_find(&s->targets, pid);
    bool good = target != NULL && family_list(&s->perf, &s->targets, target, &family) &&
                refollow(s, &family);
    family_release(&family);
    return good;
}

/* They are not asked again until something changes the next time. */
static void leave_as_they_are(struct session *s, uint32_t pid)
{
    vec_each(&s->perf.followers, f)
    {
        if (f->pid == pid) {
            f->frequency_hz = s->perf.sampling.frequency_hz;
        }
    }
}

static void follow_changes(struct session *s)
{
    s->by_families = s->by_families || !refollow_all(s);
    uint32_t pid = s->by_families ? perf_outdated(&s->perf) : 0;
    for (unsigned i = 0; pid != 0 && i < FAMILIES_PER_ROUND; i++) {
        if (!refollow_family(s, pid)) {
            leave_as_they_are(s, pid);
        }
        pid = perf_outdated(&s->perf);
    }
    s->resizes = s->resizes && pid != 0;
    session_follow_newborn(s);
}

static void change_copies(struct session *s)
{
    bool coarse = s->budget.measure >= BUDGET_COARSE;
    if (coarse == s->is_coarse || s->first_stack_bytes == 0) {
        return;
    }
    s->is_coarse = s->stacks.coarse = coarse;
    s->targets.stack_bytes = coarse ? (uint32_t)DUMPS_LEAST_BYTES : s->first_stack_bytes;
    s->perf.sampling.stack_bytes = s->targets.stack_bytes;
    s->resizes = true;
    vec_each(&s->perf.followers, f)
    {
        f->frequency_hz = UINT32_MAX; /* no events have this one: all are made anew */
    }
}

/* Each end of a task wakes the reader of its events' ring: with thousands per second that alone may be too much. Of the
 * other rings nobody is woken (perf_wait_aside); they are caught again once something is sampled (catch_one). */
static void let_go_of_caught(struct session *s)
{
    vec_each(&s->targets.all, slot)
    {
        struct target *target = *slot;
        if (is_on_perf(target) && target->reader != NULL) {
            target->caught = false;
        }
    }
}

static void apply(struct session *s)
{
    const struct budget *b = &s->budget;
    if (session_is_suspended(s)) {
        let_go_of_caught(s);
    }
    if (b->measure != BUDGET_NOTHING && b->frequency_hz > 0 && s->perf_on) {
        s->accounts.unsampled_ns += NS_PER_S / b->frequency_hz * s->perf.ring_count;
    }
    if (s->perf_on) {
        s->by_families = false;
        change_copies(s);
        s->perf.sampling.frequency_hz = b->frequency_hz;
    }
    if (s->catch != NULL) {
        catch_set_frequency(s->catch, b->frequency_hz);
    }
}

/* ---- what is said ---- */

static void say(struct session *s)
{
    const struct budget *b = &s->budget;
    double percent = s->settings->max_cpu_percent;
    log_say(&s->log, LOG_DEBUG, "budget: %.2f %% of a core of late, %.2f %% may be; %u Hz from now on",
            100 * b->judged_rate, 100 * budget_sampling_share(b), b->frequency_hz);
    if (b->measure == BUDGET_SUSPENDED) {
        log_once(&s->log, LOG_WARNING,
                 "SUSPENDED: even at %u Hz pillion would use more than --max-cpu %g %% of a core, so "
                 "nothing is sampled until the next window; CPU time is counted without stacks. Raise "
                 "--max-cpu",
                 (unsigned)BUDGET_FLOOR_HZ, percent);
        unseen_note(&s->unseen, UNSEEN_BUDGET,
                    "nothing was sampled for a while, to stay within --max-cpu; raise it");
    } else if (b->measure != BUDGET_NOTHING) {
        log_once(&s->log, LOG_WARNING,
                 "sampling at less than %u Hz now, to use no more than --max-cpu %g %% of a core",
                 b->asked_hz, percent);
    }
}

static void look_at_cpu(struct session *s, uint64_t now_ns)
{
    struct budget_used used = used_so_far(s);
    if (budget_tick(&s->budget, now_ns, &used)) {
        apply(s);
        say(s);
    }
}

/* ---- memory ---- */

uint64_t session_choose_memory(struct session *s)
{
    const struct settings *settings = s->settings;
    uint64_t limit = proc_own_memory_limit_bytes();
    uint64_t most = limit / (settings->max_memory_given ? ASKED_SHARE : DEFAULT_SHARE);
    s->memory_bytes = settings->max_memory_bytes;
    if (limit != 0 && most < s->memory_bytes) {
        s->memory_bytes = most > MEMORY_LEAST ? most : (uint64_t)MEMORY_LEAST;
        log_say(&s->log, LOG_INFO, "at most %llu MB of memory instead of %llu: this container has %llu",
                (unsigned long long)s->memory_bytes >> 20,
                (unsigned long long)settings->max_memory_bytes >> 20, (unsigned long long)limit >> 20);
    }
    return s->memory_bytes;
}

static unsigned megabytes(const struct session *s)
{
    return (unsigned)(s->memory_bytes >> 20);
}

/* What can be made again: unwind rules, symbols, names of generated code, room for the next profile. */
static void shed(struct session *s, uint64_t now_ns)
{
    s->sheds++;
    s->next_shed_ns = now_ns + SHED_MS * NS_PER_MS;
    images_forget_rules(&s->images);
    publisher_release_caches(s->publisher);
    log_once(&s->log, LOG_WARNING,
             "three quarters of --max-memory %u are in use: unwind tables and symbols are given back, and "
             "read again when they are needed. Raise --max-memory",
             megabytes(s));
}

static void stop_growing(struct session *s, uint64_t now_ns)
{
    bool worth = profile_bytes(s->profile) > s->memory_bytes / WORTH_SHARE;
    if (!worth || !publisher_ready(s->publisher)) {
        return; /* it is not the profile that is large, or soon there is room again */
    }
    if (s->settings->continuous && now_ns > s->window_start_ns + EARLIEST_MS * NS_PER_MS) {
        s->closes_early = true;
        log_once(&s->log, LOG_WARNING,
                 "--max-memory %u is nearly used up: the window ends early. Raise --max-memory",
                 megabytes(s));
    } else if (!s->is_frozen) {
        s->is_frozen = true;
        profile_limit(s->profile, profile_bytes(s->profile));
        log_once(&s->log, LOG_WARNING,
                 "--max-memory %u is nearly used up: until the window's end new stacks are kept as their "
                 "leaf alone, below [budget]. Raise --max-memory",
                 megabytes(s));
    }
}

static void look_at_memory(struct session *s, uint64_t now_ns)
{
    uint64_t rss = proc_own_rss_bytes();
    uint64_t most = s->memory_bytes - publisher_aside_bytes(s->memory_bytes);
    if (rss / 3 < most / 4) {
        return;
    }
    if (now_ns >= s->next_shed_ns) {
        shed(s, now_ns);
    } else if (rss / 9 >= most / 10) { /* the publisher sheds in its own time */
        stop_growing(s, now_ns);
    }
}

/* ---- each round ---- */

void session_keep_budget(struct session *s, uint64_t now_ns)
{
    if (s->recorder != NULL) {
        return; /* a recording is of all there is */
    }
    if (now_ns >= s->next_budget_ns) {
        s->next_budget_ns = now_ns + LOOK_MS * NS_PER_MS;
        look_at_cpu(s, now_ns);
        look_at_memory(s, now_ns);
    }
    if (s->perf_on && perf_outdated(&s->perf) != 0) {
        follow_changes(s);
    }
}

/* ---- a window ---- */

static void cpu_words(const struct session *s, const struct budget_window *w, struct buf *out)
{
    if (w->most == BUDGET_NOTHING) {
        return;
    }
    buf_printf(out, "sampled at %.3g Hz instead of %u to stay within --max-cpu %g %%", w->mean_hz,
               s->settings->frequency_hz, s->settings->max_cpu_percent);
    if (w->most >= BUDGET_COARSE && s->first_stack_bytes > 0) {
        buf_text(out, ", at last with short copies of stacks");
    }
    if (w->suspended_ns > 0) {
        buf_printf(out, ", and not at all for %.1f s", (double)w->suspended_ns / (double)NS_PER_S);
    }
    if (budget_windows_are_short(&s->budget)) {
        buf_printf(out, "; writing a window every %g s takes more than half of that, see -d",
                   (double)s->settings->window_ns / (double)NS_PER_S);
    }
}

static void memory_words(const struct session *s, uint64_t collapsed, struct buf *out)
{
    const char *before = out->len > 0 ? "; " : "";
    if (s->sheds == 0 && collapsed == 0 && !s->closes_early) {
        return;
    }
    buf_printf(out, "%sto stay within --max-memory %u", before, megabytes(s));
    before = " ";
    if (s->sheds > 0) {
        buf_printf(out, "%scaches were given back %u time%s", before, s->sheds,
                   s->sheds == 1 ? "" : "s");
        before = ", ";
    }
    if (collapsed > 0) {
        buf_printf(out, "%s%llu stacks are their leaf below [budget]", before,
                   (unsigned long long)collapsed);
        before = ", ";
    }
    if (s->closes_early) {
        buf_printf(out, "%sthe window ended early", before);
    }
}

void session_close_budget(struct session *s)
{
    struct budget_window window;
    struct budget_used used = used_so_far(s);
    struct buf words;
    buf_init(&words, WORDS_MAX);
    bool resumes = budget_end_window(&s->budget, clock_mono_ns(), &used, &window);
    cpu_words(s, &window, &words);
    memory_words(s, s->profile->collapsed, &words);
    s->profile->meta.mean_hz = window.mean_hz;
    bool needed = profile_need(s->profile, true);
    s->profile->meta.budget = profile_string(s->profile, buf_slice(&words));
    (void)profile_need(s->profile, needed);
    buf_release(&words);
    s->sheds = 0;
    s->is_frozen = s->closes_early = false;
    s->accounts.unsampled_ns = 0;
    apply(s);
    if (resumes) {
        log_say(&s->log, LOG_DEBUG, "budget: a new window, sampled again at %u Hz",
                s->budget.frequency_hz);
    }
}

/* Whom to ask, and reading what they wrote into the window: as events what is no CPU time; the samples of what runs are
 * kept aside until the window's accounting is final (sharing_out.c). A process is asked once it has run for a moment,
 * and what is read of it goes by its chunks, so that nothing counts twice. */
#include "capture/collect/private.h"
#include "base/gzip.h"
#include "base/time.h"
#include "encode/jfr_read.h"
#include "encode/moments_read.h"
#include "encode/pprof_read.h"
#include "os/clock.h"
#include "os/proc.h"
#include "os/thread.h"
#include "os/usage.h"
#include "profile/language.h"
#include "target/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    CHECK_MS = 500,
    READ_MS = 10000,         /* files that are complete are taken so often: their names may go with the process */
    NEW_MS = 1000,           /* a command may have begun so long before it is followed: it takes our place */
    AGE_MS = 1000,           /* a process that is younger may not yet be what it is going to be */
    HOT_SHARE = 10,          /* with -a a process is asked that uses more than this part of a core */
    WAIT_MS = 500,           /* at a window's end, for what is being read */
    PAUSE_LEAST_MS = 1000, PAUSE_MOST_MS = 30000,
    LATE_MS = 8000,          /* "not yet" is told from such a pause on */
    SAMPLES_MAX = 1 << 17,   /* kept of a process in a window */
    TEXT_MAX = 16384,
    PROCESSORS_MAX = 1024,
};

struct collecting *collecting_new(struct follow *f)
{
    struct collecting *c = calloc(1, sizeof *c);
    if (c != NULL) {
        c->follow = f;
        c->began_boot_ns = clock_boot_ns();
        unsigned cpus[PROCESSORS_MAX];
        c->collector = collector_new();
        c->processors = (unsigned)thread_allowed_cpus(cpus, PROCESSORS_MAX);
        buf_init(&c->text, TEXT_MAX);
    }
    if (c != NULL && c->collector == NULL) {
        free(c);
        return NULL;
    }
    return c;
}

void collecting_run(struct collecting *c)
{
    const struct shared *s = c->follow->shared;
    struct err err;
    bool dials = false, any = s->settings->runtime.attaches && shared_collects(s);
    for (size_t i = 0; runtimes[i] != NULL; i++) {
        const struct runtime_collect *collect = runtimes[i]->collect;
        enum runtime_mode mode = s->settings->runtime.mode[runtimes[i]->kind];
        bool is_aside = collect != NULL && collect->is_aside && mode != RUNTIME_DISABLED;
        bool is_opt_in = collect != NULL && collect->opt_in != NULL && mode == RUNTIME_COLLECT && shared_collects(s);
        is_opt_in = is_opt_in && !s->settings->runtime.only_light;
        dials = dials || is_opt_in || (is_aside && mode != RUNTIME_WALK && !s->settings->runtime.only_light);
        any = any || is_opt_in || is_aside;
    }
    if (any && !collector_run(c->collector, s->confined, dials, &err)) {
        log_say(&c->follow->shared->log, LOG_WARNING, "%s", err.text);
    }
}

bool collecting_any_stack(const struct collecting *c)
{
    return c->any_stack;
}

/* ---- whom to ask ---- */

/* Once for each `cause`. `coarse`: there are stacks. */
static void tell(struct collecting *c, struct collected *one, const char *cause, const struct err *why, bool coarse)
{
    struct shared *s = c->follow->shared;
    const struct target *target = targets_find(&c->follow->targets, one->pid);
    char text[2 * ERR_TEXT_MAX];
    bool is_aside = one->runtime->collect->is_aside;
    snprintf(one->why, sizeof one->why, "%s", is_aside ? "" : why->text);
    snprintf(text, sizeof text, "%s: the %s %s of pid %u are %s: %s", target != NULL ? target->name : "?",
             one->runtime->name, is_aside ? "profiles" : "stacks", one->pid,
             !coarse ? "not known" : is_aside ? "not whole" : "coarse", why->text);
    bool is_remark = is_aside && why->kind == ERR_UNSUPPORTED; /* what the program does not count */
    log_once_for(&s->log, is_remark ? LOG_INFO : LOG_WARNING, cause, "%s", text);
    if (!coarse && !is_aside) {
        unseen_note_process(&s->unseen, one->pid, text);
    }
}

/* The recorder takes memory of the process's container, where that may be ours. */
static bool has_room(const struct runtime_collect *collect, struct err *why)
{
    uint64_t needs_bytes = collect->needs_bytes;
    struct usage_room room;
    if (needs_bytes == 0 || !usage_memory_room("", &room) || room.left_bytes >= needs_bytes) {
        return true;
    }
    return err_set(why, ERR_LIMIT, EAGAIN,
                   "its recorder would take 20 to 30 MB, and the container has %u of %u MB left; give it %u MB more",
                   (unsigned)(room.left_bytes >> 20), (unsigned)(room.limit_bytes >> 20),
                   (unsigned)(needs_bytes >> 20));
}

/* With -a those that hardly run are let alone. */
static bool is_hot(struct collecting *c, struct collected *one, uint64_t now_ns)
{
    uint64_t cpu_ns = 0;
    if (c->follow->shared->settings->scope.mode != TARGET_ALL) {
        return true;
    }
    if (!clock_process_cpu_ns(one->pid, &cpu_ns)) {
        return false;
    }
    uint64_t used_ns = one->asked_ns == 0 ? 0 : cpu_ns - one->cpu_ns, passed_ns = now_ns - one->asked_ns;
    one->cpu_ns = cpu_ns;
    one->asked_ns = now_ns;
    return used_ns * HOT_SHARE > passed_ns;
}

static unsigned wanted_of(const struct collecting *c, const struct target *target)
{
    bool has_registers = follow_is_on_perf(target) || target->runtime.stops;
    if (c->follow->shared->settings->runtime.only_light) {
        return RUNTIME_WANTS_LIGHT;
    }
    return c->follow->shared->settings->runtime.collected | (has_registers ? 0 : RUNTIME_WANTS_CPU);
}

static struct collected *collected_of(struct collecting *c, const struct target *target, uint64_t now_ns)
{
    vec_each(&c->all, one)
    {
        if (one->pid == target->pid && one->start_ticks == target->start_ticks && one->program == target->program) {
            return one;
        }
    }
    struct collected *added = vec_push(&c->all);
    if (added != NULL) {
        *added = (struct collected){.pid = target->pid,
                                    .start_ticks = target->start_ticks,
                                    .program = target->program,
                                    .runtime = target->runtime.collects,
                                    .wanted = wanted_of(c, target),
                                    .first_ns = now_ns};
    }
    return added;
}

static unsigned peers_of(struct collecting *c, const struct runtime *runtime)
{
    unsigned count = 0;
    vec_each(&c->all, one)
    {
        count += one->runtime == runtime && !one->over;
    }
    return count;
}

/* Did it begin with the run, or later? */
static bool is_new(const struct collecting *c, const struct collected *one)
{
    bool is_command = c->follow->shared->settings->scope.mode == TARGET_COMMAND;
    return one->start_ticks * proc_tick_ns() + (is_command ? NEW_MS * NS_PER_MS : 0) >= c->began_boot_ns;
}

static void begin(struct collecting *c, struct collected *one, uint64_t now_ns)
{
    const struct shared *s = c->follow->shared;
    enum runtime_mode mode = s->settings->runtime.mode[one->runtime->kind];
    bool by_moments = mode == RUNTIME_MOMENTS, traces = mode == RUNTIME_TRACE || mode == RUNTIME_COLLECT_TRACE;
    bool records_cpu = mode == RUNTIME_COLLECT || mode == RUNTIME_COLLECT_TRACE;
    bool only_light = s->settings->runtime.only_light, is_asked_for = only_light || records_cpu || by_moments || traces;
    const struct runtime_target how = {
        .frequency_hz = s->settings->sampling.frequency_hz,
        .wanted = one->wanted,
        .processors = c->processors,
        .peers = peers_of(c, one->runtime),
        .by_moments = by_moments,
        .connects = mode != RUNTIME_WALK && !only_light,
        .records_cpu = records_cpu && !only_light,
        .traces = traces && !only_light,
        .addresses = s->settings->runtime.go_addresses,
        .is_new = is_new(c, one),
    };
    struct err why = {0};
    if (one->over || now_ns < one->retry_ns || (!only_light && now_ns - one->first_ns < AGE_MS * NS_PER_MS) ||
        !(is_asked_for || is_hot(c, one, now_ns))) {
        return;
    }
    if (!is_asked_for && !has_room(one->runtime->collect, &why)) {
        tell(c, one, "no room for a recorder", &why, false);
        one->retry_ns = now_ns + PAUSE_MOST_MS * NS_PER_MS;
        return;
    }
    one->job = collector_begin(c->collector, one->pid, one->runtime, &how);
    log_once(&c->follow->shared->log, LOG_INFO,
             "%sthe %s runtime of pid %u is asked for %s",
             (one->wanted & RUNTIME_WANTS_CPU) != 0 ? "there are no perf events: " : "", one->runtime->name, one->pid,
             by_moments ? "its threads' stacks up to ten times a second, which stops them for a moment each time"
                        : one->runtime->collect->price);
}

static void ask_all(struct collecting *c, uint64_t now_ns)
{
    vec_each(&c->follow->targets.all, slot)
    {
        const struct target *target = *slot;
        struct collected *one = NULL;
        bool may = target->runtime.collects != NULL && (target->runtime.collects->collect->is_aside ||
                                                        !c->follow->shared->settings->runtime.only_light);
        if (may && !target->ended && !targets_is_excluded(target, now_ns)) {
            one = collected_of(c, target, now_ns);
        }
        if (one != NULL && one->job == NULL) {
            begin(c, one, now_ns);
        }
    }
}

/* ---- what they wrote ---- */

/* The threads of a process in another PID namespace, by the numbers that it knows. Those that have ended meanwhile
 * stay: what is read may be of them. */
static void list_threads(struct collecting *c, struct collected *one)
{
    struct pid_list list = {0};
    struct proc_status status = {0};
    if (!proc_read(one->pid, 0, "status", &c->text, NULL) || !status_parse(buf_slice(&c->text), &status, NULL)) {
        return;
    }
    one->is_inner = status.ns_pid_depth > 1;
    if (one->is_inner && proc_list_threads(one->pid, &list, NULL)) {
        vec_each(&list.ids, tid)
        {
            if (proc_read(one->pid, *tid, "status", &c->text, NULL) &&
                status_parse(buf_slice(&c->text), &status, NULL)) {
                (void)map_put(&one->tids, status.ns_pid, *tid);
            }
        }
    }
    vec_release(&list.ids);
}

static uint32_t thread_of(void *context, uint32_t tid)
{
    const struct collecting *c = context;
    const struct map_slot *slot = c->reading->is_inner ? map_find(&c->reading->tids, tid) : NULL;
    return !c->reading->is_inner ? tid : slot != NULL ? (uint32_t)slot->value : 0;
}

static bool is_in_system(const struct collecting *c, const struct live_sample *sample)
{
    const struct profile *p = c->follow->shared->window.profile;
    const struct frame *leaf = &p->frames.at[p->nodes.at[sample->node].frame];
    return sample->may_wait && language_calls_system((enum frame_kind)leaf->kind, profile_text(p, leaf->name));
}

static void take_sample(void *context, const struct live_sample *sample)
{
    struct collecting *c = context;
    struct collected *one = c->reading;
    struct collected_sample *added = one->samples.len < SAMPLES_MAX ? vec_push(&one->samples) : NULL;
    if (added != NULL) {
        *added = (struct collected_sample){.tid = sample->tid != 0 ? thread_of(c, sample->tid) : 0,
                                           .thread = sample->thread,
                                           .node = sample->node,
                                           .cpu_ns = sample->cpu_ns,
                                           .wall_ns = sample->wall_ns,
                                           .may_wait = sample->may_wait,
                                           .in_system = is_in_system(c, sample),
                                           .of_moment = c->reads_moments,
                                           .is_virtual = sample->tid == 0};
    }
}

/* A runtime tells it once, and each window wants it. */
static void note_identity(struct profile *p, uint32_t id, struct collected *one)
{
    struct process *process = &p->processes.at[id];
    if (process->runtime != 0) {
        struct str told = profile_text(p, process->runtime);
        snprintf(one->release, sizeof one->release, "%.*s", (int)told.len, told.ptr);
    } else {
        process->runtime = profile_string(p, str_of(one->release));
    }
}

static void read_file(struct collecting *c, struct collected *one, struct target *target, struct str file)
{
    struct shared *s = c->follow->shared;
    struct profile *p = s->window.profile;
    struct err err = {0};
    struct live live = {.pid = one->pid,
                        .start_ticks = target->start_ticks,
                        .comm = str_of(target->name),
                        .process = targets_process_id(&c->follow->targets, p, target),
                        .thread = thread_of,
                        .sample = take_sample,
                        .context = c,
                        .shows_tiers = s->settings->runtime.shows_tiers,
                        .chunk_start_ns = one->chunk_start_ns,
                        .chunk_bytes = one->chunk_bytes};
    if (live.process == 0) {
        return;
    }
    c->reading = one;
    c->reads_moments = moments_are(file);
    bool good = true;
    if (c->reads_moments) {
        moments_read(p, file, one->runtime->kind, &live);
    } else if (gzip_is(file.ptr, file.len)) {
        good = pprof_read_live(p, file, &live, &err);
    } else {
        good = jfr_read_live(p, file, &live, &err);
    }
    if (!good) {
        log_say(&s->log, LOG_DEBUG, "pid %u: its recording: %s", one->pid, err.text);
    }
    one->chunk_start_ns = live.chunk_start_ns;
    one->chunk_bytes = live.chunk_bytes;
    note_identity(p, live.process, one);
}

static void take_file(struct collecting *c, struct collected *one, struct target *target, struct collected_file *file)
{
    struct profile *p = c->follow->shared->window.profile;
    one->came_late |= file->type[0] != '\0';
    if (file->type[0] == '\0') {
        read_file(c, one, target, buf_slice(&file->bytes));
    } else if (!runtime_profiles_put(&p->of_runtimes, one->pid, one->runtime->kind, file->type, &file->bytes)) {
        log_once(&c->follow->shared->log, LOG_WARNING, "there is no room for the %s profile of pid %u: %zu KB",
                 file->type, one->pid, file->bytes.len >> 10);
    }
}

static void take_files(struct collecting *c, struct collected *one)
{
    struct target *target = targets_find(&c->follow->targets, one->pid);
    struct collected_file file;
    size_t lost = 0;
    bool is_first = true;
    while (one->job != NULL && collector_take(c->collector, one->job, &file, &lost)) {
        if (lost > 0) {
            log_once(&c->follow->shared->log, LOG_WARNING,
                     "pid %u: %zu files of its recording came too fast to be read", one->pid, lost);
        }
        if (is_first) {
            list_threads(c, one);
            is_first = false;
        }
        log_say(&c->follow->shared->log, LOG_DEBUG, "pid %u: %zu bytes of its %s", one->pid, file.bytes.len,
                file.type[0] != '\0' ? file.type : "recording");
        if (target != NULL && target->start_ticks == one->start_ticks) {
            take_file(c, one, target, &file);
        }
        buf_release(&file.bytes);
    }
}

/* What could not begin now is tried again, with growing pauses; anything else never. */
static void look_at(struct collecting *c, struct collected *one, uint64_t now_ns)
{
    struct err why = {0};
    enum collect_state state = one->job != NULL ? collector_state(c->collector, one->job, &why) : COLLECT_BEGINS;
    if (state == COLLECT_RUNS && why.kind != ERR_NONE && one->why[0] == '\0') {
        tell(c, one, why.text, &why, true);
    }
    if (state != COLLECT_OVER) {
        return;
    }
    bool again = why.number == EAGAIN, is_late = one->pause_ns >= LATE_MS * NS_PER_MS;
    one->pause_ns = one->pause_ns == 0 ? PAUSE_LEAST_MS * NS_PER_MS : 2 * one->pause_ns;
    one->pause_ns = one->pause_ns < PAUSE_MOST_MS * NS_PER_MS ? one->pause_ns : PAUSE_MOST_MS * NS_PER_MS;
    one->retry_ns = now_ns + one->pause_ns;
    one->over = !again;
    take_files(c, one);
    collector_end(c->collector, one->job);
    one->job = NULL;
    if ((!again || is_late) && why.kind != ERR_GONE && why.kind != ERR_NONE) {
        tell(c, one, why.text, &why, false);
    }
}

static void take_all(struct collecting *c)
{
    vec_each(&c->all, one)
    {
        take_files(c, one);
    }
}

/* ---- the row ---- */

static void release_one(struct collected *one)
{
    map_release(&one->tids);
    vec_release(&one->samples);
}

static void drop_ended(struct collecting *c)
{
    for (size_t i = c->all.len; i-- > 0;) {
        struct collected *one = &c->all.at[i];
        const struct target *target = targets_find(&c->follow->targets, one->pid);
        if (target != NULL && target->start_ticks == one->start_ticks && target->program == one->program) {
            continue;
        }
        if (one->job != NULL) {
            collector_end(c->collector, one->job);
        }
        release_one(one);
        vec_swap_out(&c->all, i);
    }
}

static void check(void *state, uint64_t now_ns)
{
    struct collecting *c = state;
    if (!collector_runs(c->collector) || now_ns < c->next_ns) {
        return;
    }
    c->next_ns = now_ns + CHECK_MS * NS_PER_MS;
    ask_all(c, now_ns);
    if (c->all.len == 0) {
        return;
    }
    if (now_ns >= c->read_ns) {
        c->read_ns = now_ns + READ_MS * NS_PER_MS;
        collector_read(c->collector, false);
        vec_each(&c->all, one)
        {
            list_threads(c, one); /* while they are there */
        }
    }
    take_all(c);
    vec_each(&c->all, one)
    {
        look_at(c, one, now_ns);
        if (one->came_late && one->job != NULL) {
            collector_skip(c->collector, one->job); /* what is made next is of both windows */
        }
    }
}

/* At the end of the run what runs is ended, and what is written then is the window's, too. */
static void window_end(void *state)
{
    struct collecting *c = state;
    if (c->all.len == 0) {
        return;
    }
    if (c->follow->shared->finishing || !c->follow->shared->settings->sampling.continuous) {
        (void)collector_stop(c->collector);
    } else {
        collector_read(c->collector, true);
        collector_wait(c->collector, WAIT_MS * NS_PER_MS);
    }
    take_all(c);
}

static void window_begin(void *state)
{
    struct collecting *c = state;
    drop_ended(c);
    vec_each(&c->all, one)
    {
        one->came_late = false;
    }
}

static void release(void *state)
{
    struct collecting *c = state;
    collector_free(c->collector);
    vec_each(&c->all, one)
    {
        release_one(one);
    }
    vec_release(&c->all);
    buf_release(&c->text);
    free(c);
}

const struct concern collecting_concern = {
    .name = "collecting",
    .round = check,
    .window_begin = window_begin,
    .window_end = window_end,
    .release = release,
};

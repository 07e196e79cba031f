/*
 * Making a run: the state of each room, the lowest first, then the table of concerns in the order in which they are
 * walked. What perf is allowed to do was found out before (open.c), because a command waits for that alone. It is the
 * only file that knows all rooms.
 */
#include "capture/run/rooms.h"
#include "capture/follow/applications.h"
#include "capture/follow/cpus.h"
#include "capture/follow/stack_sizes.h"
#include "capture/live/top.h"
#include "capture/upload/heaviest.h"
#include "capture/upload/sender.h"
#include "capture/window/controller.h"
#include "capture/window/image_sweep.h"
#include "capture/window/limits.h"
#include "capture/window/status_line.h"
#include "os/confine.h"
#include "os/launch.h"
#include "os/secret.h"


enum { ORDER_MAX_BYTES = 8 << 20 };

void rooms_init(struct rooms *r, const struct run_input *input)
{
    const struct settings *settings = input->settings;
    if (settings->upload.wanted) { /* there may be a secret in our arguments */
        secret_leave_no_core();
    } else { /* nobody will read it */
        sender_hide_variables();
    }
    *r = (struct rooms){.input = input,
                        .shared = {.settings = settings,
                                   .world = input->world,
                                   .observer = input->observer,
                                   .init_fd = -1,
                                   .throttle = {.frequency_hz = settings->sampling.frequency_hz, .stretch = 1}}};
    r->signals = signals_open();
    r->uploads.shared = &r->shared;
}

/* ---- hooks of follow/ ---- */

static void drain(void *context)
{
    struct rooms *r = context;
    records_drain(r->records);
}

static bool adopted(void *context, struct target *target)
{
    struct rooms *r = context;
    return accounting_adopt(polling_accounting(r->polling), target);
}

static void gets_events(void *context, struct target *target)
{
    struct rooms *r = context;
    accounting_begin_events(polling_accounting(r->polling), r->shared.window.profile, target);
}

static bool timed(void *context, struct target *target)
{
    struct rooms *r = context;
    return catching_time(r->catching, target);
}

static bool used(void *context, struct target *target, uint64_t *cpu_ns)
{
    struct rooms *r = context;
    return accounting_cpu_time(polling_accounting(r->polling), target, cpu_ns);
}

/* ---- the rooms ---- */

static bool begin_observation(struct shared *s, struct err *err)
{
    const struct observed_format format = {
        .frequency_hz = s->settings->sampling.frequency_hz,
        .sample_type = s->format.sample_type,
        .registers = s->format.registers,
        .cfi_only = s->settings->sampling.perf_mode == PERF_DWARF,
    };
    if (!s->perf_on) {
        return err_set(err, ERR_USAGE, 0, "without perf events there is nothing to observe: %s",
                       s->access.why.text);
    }
    return s->observer->begin(s->observer->context, &format, err);
}

static bool make_follow(struct rooms *r, struct err *err)
{
    struct shared *s = &r->shared;
    const struct follow_hooks hooks = {
        .drain = drain, .adopted = adopted, .gets_events = gets_events, .timed = timed, .used = used, .context = r};
    if (s->observer != NULL && !begin_observation(s, err)) {
        return false;
    }
    follow_init(&r->follow, s, &hooks);
    r->find = find_new(&r->follow);
    r->bursts = bursts_new(&r->follow);
    r->duplicates = duplicates_new(&r->follow);
    r->polling = polling_new(&r->follow);
    bool good = unsampled_new(&r->follow) != NULL && r->find != NULL && r->bursts != NULL &&
                r->duplicates != NULL && r->polling != NULL;
    return good || err_set(err, ERR_MEMORY, 0, "no memory to follow processes");
}

/* Whatever samples carry is what stacks are made of. */
static bool make_stacks(struct rooms *r, struct err *err)
{
    struct shared *s = &r->shared;
    const struct sampling_settings *sampling = &s->settings->sampling;
    bool unwinds = s->stops || (s->perf_on && perf_sampling(s->perf)->stack_bytes > 0);
    bool sleepers = sampling->wall || sampling->off_cpu;
    enum unwind_method method =
        s->settings->sampling.perf_mode == PERF_DWARF ? UNWIND_CFI_ONLY : UNWIND_HYBRID;
    if ((unwinds || sleepers) && !unwinder_init(&r->unwinder, method, err)) {
        return false;
    }
    r->catching = catching_new(&r->follow, polling_accounting(r->polling));
    r->stops = r->catching == NULL ? NULL : stops_new(&r->follow, r->catching);
    if (r->stops == NULL || !stacks_init(&r->stacks, &r->follow.targets, catching_readers(r->catching),
                                            unwinds ? &r->unwinder : NULL, unwinds ? unwind_perf_mask() : 0)) {
        return err_set(err, ERR_MEMORY, 0, "no memory to unwind stacks");
    }
    r->stacks.of_sleepers = sleepers ? &r->unwinder : NULL;
    r->stacks.runtime_alone = s->settings->runtime.native_frames == NATIVE_OFF;
    return true;
}

static bool make_records(struct rooms *r, struct err *err)
{
    struct shared *s = &r->shared;
    uint64_t order_bytes = s->memory_bytes / 8 < ORDER_MAX_BYTES ? s->memory_bytes / 8 : ORDER_MAX_BYTES;
    const struct records_path path = {.follow = &r->follow,
                                      .find = r->find,
                                      .bursts = r->bursts,
                                      .duplicates = r->duplicates,
                                      .catching = r->catching,
                                      .accounting = polling_accounting(r->polling),
                                      .stacks = &r->stacks,
                                      .stops = r->stops,
                                      .extra = r->extra};
    r->records = records_new(&path, order_bytes);
    if (r->extra == NULL || r->records == NULL) {
        return err_set(err, ERR_MEMORY, 0, "no memory for records");
    }
    const struct extra_records_path extra = {
        .find = r->find, .stacks = &r->stacks, .catching = r->catching, .records = r->records};
    extra_records_connect(r->extra, &r->follow, &extra);
    if (r->input->dump != NULL) {
        r->dump = dump_new(s, &r->stacks, catching_readers(r->catching), &r->follow.targets, r->input->dump);
    }
    bool asked = r->input->dump == NULL && (s->settings->sampling.wall || s->settings->sampling.off_cpu);
    bool waits = asked && s->observer == NULL && !extra_records_watch_off_cpu(r->extra);
    r->waiting = waiting_new(s, &r->stacks, catching_readers(r->catching), &r->follow.targets, waits);
    return r->waiting != NULL || err_set(err, ERR_MEMORY, 0, "no memory to look at waiting threads");
}

static bool make_window(struct rooms *r, struct err *err)
{
    struct shared *s = &r->shared;
    /* two profiles, tables beside them, symbols: a quarter each leaves the rest for the rings */
    r->publisher = publisher_new(s, &r->follow.images, s->memory_bytes / PUBLISHER_PROFILE_SHARE, err);
    if (r->publisher == NULL) {
        return false;
    }
    s->window.profile = publisher_submit(r->publisher, NULL);
    r->windows = windows_new(&r->follow, r->catching, r->publisher);
    return r->windows != NULL || err_set(err, ERR_MEMORY, 0, "no memory for windows");
}

/* In the order in which they are walked: at a window's end what still adds to the profile comes before what closes
 * it. */
static bool make_rows(struct rooms *r, struct err *err)
{
    r->collecting = collecting_new(&r->follow);
    bool live = r->shared.settings->live.on;
    struct top *top = live ? top_new(&r->shared) : NULL;
    if (top != NULL || r->dump != NULL) {
        const struct whole_run_viewer viewer = top != NULL ? top_viewer(top) : dump_viewer(r->dump);
        publisher_show(r->publisher, &viewer);
    }
    if (r->dump != NULL && r->collecting != NULL) {
        dump_await(r->dump, r->collecting);
    }
    const struct limits_reach reach = {.follow = &r->follow,
                                       .accounting = polling_accounting(r->polling),
                                       .catching = r->catching,
                                       .stacks = &r->stacks,
                                       .publisher = r->publisher,
                                       .uploads = &r->uploads};
    const struct row rows[] = {
        {&extra_counters_concern, r->extra},
        {&records_concern, r->records},
        {&find_concern, r->find},
        {&polling_concern, r->polling},
        {&catching_concern, r->catching},
        {&stops_concern, r->stops},
        {&waiting_concern, r->waiting},
        {&extra_records_concern, r->extra},
        {&collecting_concern, r->collecting},
        {&dump_concern, r->dump},
        {&stack_sizes_concern, stack_sizes_new(&r->follow)},
        {&unsampled_concern, r->follow.unsampled},
        {&cpus_concern, cpus_new(&r->shared)},
        {&duplicates_concern, r->duplicates},
        {&reaping_concern, r->polling},
        {&closing_concern, r->polling},
        {&sharing_out_concern, r->collecting},
        {&bursts_concern, r->bursts},
        {&applications_concern, applications_new(&r->follow)},
        {&heaviest_concern, heaviest_new(&r->follow, runtimes)},
        {&window_facts_concern, r->windows},
        {&controller_concern, controller_new(&r->shared)},
        {&limits_concern, limits_new(&reach)},
        {&image_sweep_concern, image_sweep_new(&r->follow, r->catching, r->publisher)},
        {&window_submit_concern, r->windows},
        {&status_line_concern, status_line_new(&r->shared, r->windows)},
        {&top_concern, top},
    };
    bool good = true;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct concern *concern = rows[i].concern; /* two are of runs of their own kind */
        bool may_lack = (concern == &top_concern && !live) || (concern == &dump_concern && r->input->dump == NULL);
        good = good && (rows[i].state != NULL || may_lack);
        r->rows.at[r->rows.count++] = rows[i];
    }
    return good || err_set(err, ERR_MEMORY, 0, "no memory to begin");
}

bool rooms_make(struct rooms *r)
{
    struct shared *s = &r->shared;
    struct err err = {0};
    log_open(&s->log, s->settings);
    limits_choose_memory(s);
    bool good = s->perf != NULL || err_set(&err, ERR_MEMORY, 0, "no memory to begin");
    good = good && make_follow(r, &err) && make_stacks(r, &err) && make_records(r, &err) &&
                make_window(r, &err) && make_rows(r, &err);
    if (!good) {
        log_say(&s->log, LOG_ERROR, "%s", err.text);
    }
    return good;
}

bool rooms_start(struct rooms *r)
{
    struct shared *s = &r->shared;
    struct err err;
    const char *missing;
    s->confined = confine_process(s->stops, &missing); /* while there is one thread */
    if (!s->confined) {
        log_say(&s->log, LOG_DEBUG, "the profiler keeps its rights: a seccomp filter kills for giving them up");
    } else if (missing != NULL) {
        log_say(&s->log, LOG_DEBUG, "the profiler's own sandbox is without %s here", missing);
    }
    if (!publisher_start(r->publisher, s->confined, &err)) {
        log_say(&s->log, LOG_ERROR, "%s", err.text);
        return false;
    }
    collecting_run(r->collecting);
    return true;
}

bool rooms_release(struct rooms *r)
{
    struct shared *s = &r->shared;
    struct err err;
    if (r->catching == NULL || catching_end(r->catching)) {
        rows_release(&r->rows);
        perf_free(s->perf);
        stacks_release(&r->stacks);
        unwinder_release(&r->unwinder);
        follow_release(&r->follow);
    }
    if (s->observer != NULL && !s->observer->end(s->observer->context, &err)) {
        log_say(&s->log, LOG_ERROR, "%s", err.text);
        return false;
    }
    return true;
}

void rooms_end_window(struct rooms *r)
{
    rows_window_end(&r->rows);
    rows_window_begin(&r->rows);
}

#include "base/time.h"
#include "capture/session/session_private.h"

#include <stdio.h>

enum {
    ORDER_MAX_BYTES = 8 << 20,
    STACK_SMALL_BYTES = 8 * 1024,
    STACK_LEAST_BYTES = 512,
};

/* Whatever samples carry is what stacks are made of. */
static bool prepare_stacks(struct session *s, struct err *err)
{
    bool unwinds = s->perf_on && s->perf.sampling.stack_bytes > 0;
    enum unwind_method method =
        s->settings->sampling.perf_mode == PERF_DWARF ? UNWIND_CFI_ONLY : UNWIND_HYBRID;
    if (unwinds && !unwinder_init(&s->unwinder, method, err)) {
        return false;
    }
    s->reads_runtimes = s->recorder == NULL;
    readers_init(&s->readers, s->settings, &s->targets, &s->log);
    s->readers.unseen = &s->unseen;
    if (!stacks_init(&s->stacks, &s->targets, s->reads_runtimes ? &s->readers : NULL,
                     unwinds ? &s->unwinder : NULL, s->perf.sampling.registers)) {
        return err_set(err, ERR_MEMORY, 0, "no memory to unwind stacks");
    }
    session_prepare_off_cpu(s);
    s->watches_waits = s->settings->sampling.wall && s->reads_runtimes && !s->watches_off_cpu &&
                       waits_init(&s->waits, &s->stacks, &s->readers, &s->targets, NULL);
    s->stacks.runtime_alone = s->settings->runtime.native_frames == NATIVE_OFF;
    return true;
}

static bool begin_recording(struct session *s, struct err *err)
{
    const struct recording_format format = {
        .frequency_hz = s->settings->sampling.frequency_hz,
        .sample_type = s->format.sample_type,
        .registers = s->format.registers,
        .cfi_only = s->settings->sampling.perf_mode == PERF_DWARF,
    };
    if (!s->perf_on) {
        return err_set(err, ERR_USAGE, 0, "without perf events there is nothing to record: %s",
                       s->access.why.text);
    }
    s->recorder = recorder_open(s->settings->recording, &s->world, &format, err);
    return s->recorder != NULL;
}

bool session_setup(struct session *s)
{
    const struct settings *settings = s->settings;
    struct err err = {0};
    log_open(&s->log, settings);
    s->world = world_here();
    if (settings->recording != NULL && !begin_recording(s, &err)) {
        log_say(&s->log, LOG_ERROR, "%s", err.text);
        return false;
    }
    images_init(&s->images, s->recorder != NULL ? recorder_world(s->recorder) : &s->world);
    targets_init(&s->targets, &s->images, settings->naming.container_names);
    s->targets.stack_bytes = s->perf_on ? s->perf.sampling.stack_bytes : 0;
    s->targets.min_duration_ns = settings->scope.min_duration_ns;
    uint64_t memory_bytes = session_choose_memory(s);
    order_init(&s->order, memory_bytes / 8 < ORDER_MAX_BYTES ? memory_bytes / 8 : ORDER_MAX_BYTES);
    accounts_init(&s->accounts, &s->targets, NS_PER_S / settings->sampling.frequency_hz,
                  settings->scope.mode == TARGET_ALL && !s->perf_on);
    choose_init(&s->choose, settings, &s->log);
    s->accounts.choose = &s->choose;
    scan_init(&s->scan, &s->targets);
    /* two profiles, tables beside them, symbols: a quarter each leaves the rest for the rings */
    s->publisher = publisher_start(settings, &s->images, &s->log,
                                   memory_bytes / PUBLISHER_PROFILE_SHARE, &err);
    if (s->publisher == NULL) {
        log_say(&s->log, LOG_ERROR, "%s", err.text);
        return false;
    }
    s->profile = publisher_submit(s->publisher, NULL);
    if (!prepare_stacks(s, &err)) {
        log_say(&s->log, LOG_ERROR, "%s", err.text);
        return false;
    }
    return true;
}

/* What is copied of a stack per sample, to begin with: as much as lets a ring hold a third of a second
 * of samples, because the kernel copies what there is, not what was asked for, and a stack read later
 * from memory may have changed. */
static uint32_t first_stack_bytes(const struct settings *settings, uint64_t ring_bytes)
{
    uint64_t wanted = settings->sampling.stack_bytes;
    if (wanted == 0) {
        wanted = ring_bytes * 3 / settings->sampling.frequency_hz;
        wanted = wanted > STACK_SMALL_BYTES ? wanted : STACK_SMALL_BYTES;
        wanted = wanted < ring_bytes / 8 ? wanted : ring_bytes / 8;
    }
    wanted = wanted < PERF_STACK_MAX ? wanted : PERF_STACK_MAX;
    return wanted < STACK_LEAST_BYTES ? STACK_LEAST_BYTES : (uint32_t)wanted & ~7u;
}

/* What cannot be followed is not advised. */
static void leave_advice_out(struct session *s)
{
    enum perf_gate gate = s->access.gate;
    if (s->settings->origin.fixed_filter && s->access.why.kind != ERR_NONE &&
        (gate == PERF_GATE_SECCOMP || gate == PERF_GATE_PARANOID)) {
        err_set(&s->access.why, s->access.why.kind, s->access.why.number,
                "perf events refused (%s: %s); Fargate forbids changing it",
                err_name(s->access.why.number), perf_gate_name(gate));
    }
}

static void note_hidden_kernel(struct session *s)
{
    char why[ERR_TEXT_MAX];
    if (s->perf_on && !s->access.kernel) {
        snprintf(why, sizeof why, "kernel code may not be sampled (%s); %sadd CAP_PERFMON",
                 perf_gate_name(s->access.kernel_gate),
                 s->access.kernel_gate == PERF_GATE_PARANOID
                     ? "set kernel.perf_event_paranoid to 1 or less on the host, or "
                     : "");
        unseen_note(&s->unseen, UNSEEN_KERNEL, why);
    }
}

/* Opens perf as far as it is allowed. What is refused is a sentence, never the end of the run. */
void session_open_perf(struct session *s)
{
    if (s->settings->sampling.perf_mode == PERF_DISABLED) {
        err_set(&s->access.why, ERR_USAGE, 0, "perf events are off (--perf-mode disabled)");
        return;
    }
    perf_probe(&s->access);
    leave_advice_out(s);
    struct err err = {0};
    bool chains = s->settings->sampling.perf_mode == PERF_FP;
    const struct perf_sampling sampling = {
        .frequency_hz = s->settings->sampling.frequency_hz,
        .kernel = s->access.kernel,
        .stack_bytes = chains ? 0 : STACK_SMALL_BYTES,
        .registers = chains ? 0 : unwind_perf_mask(),
        .others = s->settings->sampling.events.count > 0 || s->settings->sampling.off_cpu,
    };
    s->perf_on = s->access.user && perf_open(&s->perf, &sampling, &err);
    if (s->perf_on && !chains) {
        s->perf.sampling.stack_bytes = first_stack_bytes(s->settings, perf_ring_bytes(&s->perf));
    }
    session_open_others(s);
    s->format = (struct record_format){perf_sample_type(&s->perf), sampling.registers};
    if (err.kind != ERR_NONE) {
        s->access.why = err;
    }
    note_hidden_kernel(s);
}

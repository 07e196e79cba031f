/*
 * Opening perf for a run, as far as it is allowed: the first thing that is done, for a command waits for it. What is
 * refused becomes a sentence with its remedy, and the run goes on without.
 */
#include "capture/run/rooms.h"

#include "os/proc.h"
#include "os/stop.h"

#include <stdio.h>

enum {
    STACK_SMALL_BYTES = 8 * 1024,
    STACK_LEAST_BYTES = 512,
};

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
static void leave_advice_out(struct shared *s)
{
    enum perf_gate gate = s->access.gate;
    if (s->settings->origin.fixed_filter && s->access.why.kind != ERR_NONE &&
        (gate == PERF_GATE_SECCOMP || gate == PERF_GATE_PARANOID)) {
        err_set(&s->access.why, s->access.why.kind, s->access.why.number,
                "perf events refused (%s: %s); Fargate forbids changing it",
                err_name(s->access.why.number), perf_gate_name(gate));
    }
}

static void note_hidden_kernel(struct shared *s)
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

/* Null: threads may be held. */
static const char *why_no_stops(const struct shared *s, bool chains)
{
    const char *why = NULL;
    if (s->perf_on && chains) { /* a thread whose samples perf takes is not held */
        why = "--perf-mode fp has stacks found by the kernel alone";
    } else if (s->stops_useless) {
        why = "this kernel does not tell which thread had a CPU (gVisor, or no schedstat)";
    } else {
        (void)stop_is_possible(&why);
    }
    return why;
}

static void allow_stops(struct shared *s, bool chains)
{
    bool wanted = s->settings->sampling.brief_stops;
    int accounting = proc_open_own_schedstat();
    proc_close(accounting);
    s->stops_useless = accounting < 0;
    const char *why = wanted ? why_no_stops(s, chains) : NULL;
    s->stops_hz = s->settings->sampling.stops_hz;
    s->stops = wanted && why == NULL;
    if (why != NULL) {
        snprintf(s->stops_refused, sizeof s->stops_refused, "%s", why);
    }
    s->frequency_hz = s->stops && !s->perf_on ? s->stops_hz : s->settings->sampling.frequency_hz;
}

void rooms_open_perf(struct rooms *r)
{
    struct shared *s = &r->shared;
    if (s->settings->sampling.perf_mode == PERF_DISABLED) {
        err_set(&s->access.why, ERR_USAGE, 0, "perf events are off (--perf-mode disabled)");
    } else {
        perf_probe(&s->access);
        leave_advice_out(s);
    }
    struct err err = {0};
    bool chains = s->settings->sampling.perf_mode == PERF_FP;
    const struct perf_sampling sampling = {
        .frequency_hz = s->settings->sampling.frequency_hz,
        .kernel = s->access.kernel,
        .stack_bytes = chains ? 0 : STACK_SMALL_BYTES,
        .registers = chains ? 0 : unwind_perf_mask(),
        .extra = s->settings->sampling.events.count > 0 || s->settings->sampling.off_cpu,
    };
    s->perf = perf_new(&err);
    s->perf_on = s->access.user && s->perf != NULL && perf_open(s->perf, &sampling, &err);
    if (s->perf_on && !chains) {
        perf_set_stack_bytes(s->perf, first_stack_bytes(s->settings, perf_ring_bytes(s->perf)));
    }
    allow_stops(s, chains);
    r->extra = extra_records_new(s);
    s->format = (struct record_format){s->perf_on ? perf_sample_type(s->perf) : 0, sampling.registers};
    if (err.kind != ERR_NONE) {
        s->access.why = err;
    }
    note_hidden_kernel(s);
}

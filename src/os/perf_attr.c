/* perf_attr: the event itself: the attributes of the CPU clock that samples a thread, the system call that
 * opens it, and the attempts on ourselves that show what may be used here, and which gate is closed where
 * it may not. */
#include "os/perf_private.h"
#include "base/time.h"
#include "os/trial.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t sample_type_of(const struct perf_sampling *sampling)
{
    uint64_t stacks = sampling->stack_bytes > 0
                          ? (uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)
                          : 0;
    return PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
           PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | stacks;
}

uint64_t perf_sample_type(const struct perf *p)
{
    return sample_type_of(&p->sampling);
}

/* An hour of CPU time is as good as never. */
static uint64_t period_of(const struct perf_sampling *sampling)
{
    return sampling->frequency_hz > 0 ? NS_PER_S / sampling->frequency_hz : 3600 * NS_PER_S;
}

int perf_open_event(const struct perf_event_attr *attr, int tid, int cpu)
{
    return (int)syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The software clock counts in nanoseconds, so a fixed period is exact where `freq` would only be
 * converted into one. */
struct perf_event_attr perf_plain_attr(const struct perf_sampling *sampling, bool on_exec)
{
    return (struct perf_event_attr){
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(struct perf_event_attr),
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = period_of(sampling),
        .sample_type = sample_type_of(sampling),
        .sample_regs_user = sampling->stack_bytes > 0 ? sampling->registers : 0,
        .sample_stack_user = sampling->stack_bytes,
        .disabled = 1,
        .inherit = 1,
        .exclude_kernel = !sampling->kernel,
        .exclude_callchain_kernel = !sampling->kernel,
        .exclude_hv = 1,
        .sample_id_all = 1,
        .mmap = 1,
        .mmap2 = 1,
        .comm = 1,
        .comm_exec = 1,
        .task = 1,
        .watermark = 1,
        .wakeup_watermark = 4096,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .enable_on_exec = on_exec,
    };
}

/* The event's own attribute, not its ring's, says whether a sample wakes the reader; records that are no
 * samples never do by themselves. */
struct perf_event_attr perf_caught_attr(const struct perf_sampling *sampling)
{
    struct perf_event_attr attr = perf_plain_attr(sampling, false);
    attr.watermark = 0;
    attr.wakeup_events = 1;
    attr.context_switch = sampling->switches;
    return attr;
}

struct perf_event_attr perf_own_attr(const struct perf_event_attr *attr)
{
    return (struct perf_event_attr){
        .type = attr->type,
        .size = sizeof(struct perf_event_attr),
        .config = attr->config,
        .disabled = 1,
        .inherit = 1,
        .inherit_thread = 1, /* Linux 5.13 */
        .exclude_kernel = attr->exclude_kernel, /* or it is refused; a clock counts the kernel's time all the same */
        .exclude_hv = 1,
    };
}

static void explain_refusal(struct perf_access *out, int number)
{
    const char *remedy = perf_gate_remedy(out->gate, false, &out->around);
    err_set(&out->why, err_kind_of(number), number, "perf events refused (%s: %s); %s",
            out->kills ? "SIGSYS" : err_name(number), perf_gate_name(out->gate),
            remedy[0] != '\0' ? remedy : "see pillion doctor");
}

/* 0, or the errno of the refusal. */
static int try_sampling(bool kernel)
{
    const struct perf_sampling sampling = {.frequency_hz = 1, .kernel = kernel};
    struct perf_event_attr attr = perf_plain_attr(&sampling, false);
    int fd = perf_open_event(&attr, 0, -1);
    if (fd < 0) {
        return errno;
    }
    close(fd);
    return 0;
}

static void try_call(void)
{
    (void)try_sampling(false);
}

void perf_probe(struct perf_access *out)
{
    *out = (struct perf_access){.kills = trial_run(try_call) == TRIAL_KILLED};
    out->kernel_number = out->kills ? EPERM : try_sampling(true);
    out->user = out->kernel = out->kernel_number == 0;
    if (out->kernel) {
        return;
    }
    perf_read_around(&out->around);
    out->kernel_gate = perf_gate_of(out->kernel_number, true, &out->around);
    out->number = out->kills ? EPERM : try_sampling(false);
    out->user = out->number == 0;
    out->gate = perf_gate_of(out->number, false, &out->around);
    if (!out->user) {
        explain_refusal(out, out->number);
    }
}

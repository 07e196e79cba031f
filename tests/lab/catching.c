/*
 * catching PID SECONDS [OPTION...]: catches the samples of a program that counts (programs/counter.c, burst.c)
 * and prints, as JSON, what was proven and what was true.
 *
 * The program's lines "TID WORD START LIMIT" come in on standard input. The runtime here knows one frame, whose
 * code is the thread's count as it stands in memory; progress is that count less the register's in the sample:
 * -1, 0 or 1 when the thread stood still (the store is one instruction behind).
 *
 *     --hz N       samples per second and thread (499)
 *     --stack N    bytes of stack per sample (8192)
 *     --work N     µs that a walk takes, before the count is read (5)
 *     --kernel     samples of kernel code, too
 *     --deep       no runtime: the stack beyond its copy is read, and must be the area
 *     --evidence FILE a line for each sample that was read, with its evidence (below)
 *
 * Linked with -Wl,--wrap=catch_prove it also keeps the evidence of each proof, prints it for proven samples whose
 * thread went on, and writes it to FILE: CPU, verdict, progress, the sample's time; in ns from there: left, start and
 * end of the read; D or T, how long the catcher waited, its turns, woken (from the sample), U.
 */
#include "base/time.h"
#include "capture/catch/catch.h"
#include "os/clock.h"
#include "unwind/unwind.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__x86_64__)
enum { COUNTING_REGISTER = 1 }; /* PERF_REG_X86_BX */
#else
enum { COUNTING_REGISTER = 19 };
#endif

enum { THREADS_MAX = 64, ROUND_MS = 20, FLUSH_MS = 5, PROOFS = 4096, WRONGS_MAX = 8 };

struct counting {
    uint32_t tid;
    uint64_t word, start, limit;
};

struct program {
    struct counting threads[THREADS_MAX];
    size_t count;
    uint64_t work_ns;
};

struct results {
    const struct program *program;
    struct record_format format;
    uint64_t samples, others, read;
    uint64_t verdicts[CATCH_VERDICT_COUNT], still[CATCH_VERDICT_COUNT]; /* still: of those read */
    uint64_t ends[RUNTIME_END_COUNT];
    uint64_t deep_full, deep_bytes, deep_wrong;
    int64_t worst;
    struct wrong {
        struct catch_evidence evidence;
        int64_t progress;
    } wrongs[WRONGS_MAX];
    size_t wrong_count;
    FILE *accounting; /* null: not asked for */
};

static const char *const verdict_names[] = {
    [CATCH_PROVEN] = "proven",     [CATCH_LATE] = "late",     [CATCH_OTHER_CPU] = "other_cpu",
    [CATCH_LONG] = "long",         [CATCH_MOVED] = "moved",   [CATCH_ASLEEP] = "asleep",
    [CATCH_NOT_PREEMPTED] = "not_preempted", [CATCH_UNPROVABLE] = "unprovable", [CATCH_UNREAD] = "unread",
};

/* ---- the runtime ---- */

static const struct counting *thread_of(const struct program *program, uint32_t tid)
{
    for (size_t i = 0; i < program->count; i++) {
        if (program->threads[i].tid == tid) {
            return &program->threads[i];
        }
    }
    return NULL;
}

static void walk(const void *state, void *plan, const struct runtime_thread *thread,
                 struct memory_batch *memory, struct runtime_stack *out)
{
    const struct program *program = state;
    const struct counting *counting = thread_of(program, thread->tid);
    uint64_t until = clock_mono_ns() + program->work_ns, value = 0, *first = plan; /* a plan is ours to write */
    out->end = RUNTIME_NO_THREAD;
    if (counting == NULL) {
        return;
    }
    if (!thread->proven_later) { /* again, because it was not proven: the report is about the first time */
        out->frame[0] = (struct runtime_frame){.code = *first};
        out->count = 1;
        out->end = RUNTIME_COMPLETE;
        return;
    }
    while (clock_mono_ns() < until) {
    }
    struct memory_piece piece = {.address = counting->word, .out = &value, .len = sizeof value};
    out->reads = 1;
    out->end = RUNTIME_UNREADABLE;
    if (memory_batch_read(memory, &piece, 1, NULL) && piece.got == sizeof value) {
        *first = value;
        out->frame[0] = (struct runtime_frame){.code = value};
        out->count = 1;
        out->end = RUNTIME_COMPLETE;
    }
}

static const struct runtime counting_runtime = {.name = "counting", .walk = walk};

/* ---- the evidence ---- */

enum catch_verdict __real_catch_prove(const struct catch_evidence *e, uint64_t late_ns);
enum catch_verdict __wrap_catch_prove(const struct catch_evidence *e, uint64_t late_ns);
#pragma weak __real_catch_prove

/* The latest proofs. Each is written before its sample is handed over, and read when that was. */
static struct proof {
    struct catch_evidence evidence;
    uint64_t late_ns;
} proofs[PROOFS];
static uint32_t proof_count;

enum catch_verdict __wrap_catch_prove(const struct catch_evidence *e, uint64_t late_ns)
{
    proofs[__atomic_fetch_add(&proof_count, 1, __ATOMIC_RELAXED) % PROOFS] = (struct proof){*e, late_ns};
    return __real_catch_prove(e, late_ns);
}

static const struct proof *proof_of(const struct record *record)
{
    for (size_t i = 0; i < PROOFS; i++) {
        if (proofs[i].evidence.sample_ns == record->time_ns && proofs[i].evidence.cpu == record->cpu) {
            return &proofs[i];
        }
    }
    return NULL;
}

static void keep_evidence(struct results *r, const struct record *record, int verdict, int64_t progress, bool wrong)
{
    const struct proof *j = r->accounting != NULL || wrong ? proof_of(record) : NULL;
    if (j == NULL) {
        return;
    }
    const struct catch_evidence *e = &j->evidence;
    if (wrong && r->wrong_count < WRONGS_MAX) {
        r->wrongs[r->wrong_count++] = (struct wrong){*e, progress};
    }
    if (r->accounting != NULL) {
        fprintf(r->accounting, "%u %s %" PRId64 " %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRIu64 " %" PRIu64
                " %" PRIu64 " %" PRId64 " %" PRIu64 "\n", e->cpu, verdict_names[verdict], progress, e->sample_ns,
                e->preempted ? (int64_t)(e->left_ns - e->sample_ns) : -1, (int64_t)(e->start_ns - e->sample_ns),
                (int64_t)(e->end_ns - e->sample_ns), j->late_ns, e->waited_ns, e->turns,
                e->woken_ns != 0 ? (int64_t)(e->woken_ns - e->sample_ns) : -1, e->soon_ns);
    }
}

/* ---- what was caught ---- */

static void check_deep(struct results *r, const struct counting *thread, const struct caught *caught)
{
    r->deep_full += caught->memory_address != 0;
    r->deep_bytes += caught->memory_bytes;
    const unsigned char *bytes = caught_memory(caught);
    for (uint32_t i = 0; i + 8 <= caught->memory_bytes; i += 8) {
        uint64_t address = caught->memory_address + i, word;
        memcpy(&word, bytes + i, sizeof word);
        if (address >= thread->start && address < thread->limit && word != address) {
            r->deep_wrong++;
            return;
        }
    }
}

static void check_count(struct results *r, const struct record *record, const struct caught *caught)
{
    uint64_t before = r->format.registers & ((UINT64_C(1) << COUNTING_REGISTER) - 1);
    if (caught->frame_count != 1 || record->as.sample.registers == NULL) {
        return;
    }
    int64_t progress = (int64_t)(caught->frame[0].code -
                                 record->as.sample.registers[__builtin_popcountll(before)]);
    bool still = progress >= -1 && progress <= 1;
    r->read++;
    r->still[caught->verdict] += still;
    bool wrong = caught->verdict == CATCH_PROVEN && !still;
    if (wrong && llabs(progress) > llabs(r->worst)) {
        r->worst = progress;
    }
    keep_evidence(r, record, caught->verdict, progress, wrong);
}

static void each(void *context, unsigned cpu, const void *ptr, size_t len,
                 const struct caught *caught)
{
    (void)cpu;
    struct results *r = context;
    struct record record;
    struct err err;
    if (!record_parse(ptr, len, &r->format, &record, &err)) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    if (caught == NULL) {
        r->others++;
        return;
    }
    const struct counting *thread = thread_of(r->program, record.tid);
    if (caught->tid != record.tid || caught->pid != record.pid) {
        fprintf(stderr, "caught is about %u, its record about %u\n", caught->tid, record.tid);
        exit(1);
    }
    if (thread == NULL) {
        return;
    }
    r->samples++;
    r->verdicts[caught->verdict]++;
    r->ends[caught->end] += caught->serial != 0;
    check_deep(r, thread, caught);
    check_count(r, &record, caught);
}

/* ---- the run ---- */

struct options {
    uint32_t pid, hz, stack_bytes, work_us;
    double seconds;
    bool kernel, deep;
    const char *accounting;
};

static struct options parse(int argc, char **argv)
{
    struct options o = {.hz = 499, .stack_bytes = 8192, .work_us = 5};
    if (argc < 3) {
        fprintf(stderr, "usage: catching PID SECONDS [OPTION...]\n");
        exit(2);
    }
    o.pid = (uint32_t)atoi(argv[1]);
    o.seconds = atof(argv[2]);
    for (int i = 3; i < argc; i++) {
        const char *name = argv[i];
        o.kernel |= strcmp(name, "--kernel") == 0;
        o.deep |= strcmp(name, "--deep") == 0;
        uint32_t *number = strcmp(name, "--hz") == 0      ? &o.hz
                           : strcmp(name, "--stack") == 0 ? &o.stack_bytes
                           : strcmp(name, "--work") == 0  ? &o.work_us
                                                          : NULL;
        if (strcmp(name, "--evidence") == 0 && i + 1 < argc) {
            o.accounting = argv[++i];
        }
        if (number != NULL && i + 1 < argc) {
            *number = (uint32_t)atoi(argv[++i]);
        }
    }
    return o;
}

static void read_lines(struct program *program)
{
    struct counting t;
    while (program->count < THREADS_MAX && scanf("%" SCNu32 " %" SCNx64 " %" SCNx64 " %" SCNx64, &t.tid, &t.word,
                                                 &t.start, &t.limit) == 4) {
        program->threads[program->count++] = t;
    }
}

static void need(bool good, const struct err *err)
{
    if (!good) {
        printf("{\"error\": \"%s\"}\n", err->text);
        exit(0);
    }
}

static void ignore(void *context, unsigned ring, const void *record, size_t len)
{
    (void)context, (void)ring, (void)record, (void)len;
}

static void report_wrongs(const struct results *r)
{
    printf(", \"wrongs\": [");
    for (size_t i = 0; i < r->wrong_count; i++) {
        const struct wrong *w = &r->wrongs[i];
        const struct catch_evidence *e = &w->evidence;
        printf("%s{\"cpu\": %u, \"went\": %" PRId64 ", \"left\": %" PRId64 ", \"start\": %" PRId64
               ", \"end\": %" PRId64 ", \"waited\": %" PRIu64 ", \"turns\": %" PRIu64
               ", \"woken\": %" PRId64 ", \"soon\": %" PRIu64 "}",
               i > 0 ? ", " : "", e->cpu, w->progress, (int64_t)(e->left_ns - e->sample_ns),
               (int64_t)(e->start_ns - e->sample_ns), (int64_t)(e->end_ns - e->sample_ns), e->waited_ns,
               e->turns, (int64_t)(e->woken_ns - e->sample_ns), e->soon_ns);
    }
    printf("]");
}

static void report(struct catch *c, const struct results *r, double own_cpu_us)
{
    printf("{\"samples\": %" PRIu64 ", \"others\": %" PRIu64 ", \"read\": %" PRIu64, r->samples, r->others, r->read);
    uint64_t still = 0;
    for (size_t i = 0; i < CATCH_VERDICT_COUNT; i++) {
        printf(", \"%s\": %" PRIu64, verdict_names[i], r->verdicts[i]);
        still += r->still[i];
    }
    printf(", \"still\": %" PRIu64 ", \"proven_still\": %" PRIu64 ", \"worst\": %" PRId64, still,
           r->still[CATCH_PROVEN], r->worst);
    printf(", \"deep_full\": %" PRIu64 ", \"deep_bytes\": %" PRIu64 ", \"deep_wrong\": %" PRIu64, r->deep_full,
           r->deep_bytes, r->deep_wrong);
    report_wrongs(r);
    printf(", \"complete\": %" PRIu64 ", \"own_cpu_us\": %.1f, \"trouble\": \"%s\", \"cpus\": [",
           r->ends[RUNTIME_COMPLETE], own_cpu_us, catch_trouble(c));
    for (size_t i = 0; i < catch_cpu_count(c); i++) {
        struct catch_counts n;
        catch_counts(c, i, &n);
        printf("%s{\"proven\": %" PRIu64 ", \"unread\": %" PRIu64 ", \"wakes\": %" PRIu64 ", \"lost\": %" PRIu64
               ", \"bound\": %d, \"starved\": %d, \"given_up\": %d}",
               i > 0 ? ", " : "", n.verdicts[CATCH_PROVEN], n.verdicts[CATCH_UNREAD], n.wakes, n.lost, n.bound,
               n.starved, n.given_up);
    }
    printf("]}\n");
}

static void run(const struct options *o, const struct program *program)
{
    struct err err = {0};
    struct perf *perf = perf_new(&err);
    struct remote remote;
    const struct perf_sampling sampling = {.frequency_hz = o->hz,
                                           .kernel = o->kernel,
                                           .stack_bytes = o->stack_bytes,
                                           .registers = unwind_perf_mask()};
    need(perf != NULL && perf_open(perf, &sampling, &err) && perf_open_caught(perf, &err), &err);
    need(remote_open(&remote, o->pid, program->threads[0].word, &err), &err);
    const struct perf_how how = {.stack_bytes = o->stack_bytes, .caught = true};
    need(perf_follow_process(perf, o->pid, &how, &err), &err);
    struct results r = {.program = program,
                        .format = {perf_sample_type(perf), sampling.registers},
                        .accounting = o->accounting != NULL ? fopen(o->accounting, "w") : NULL};
    struct catch *c = catch_init(o->hz, &err);
    need(c != NULL && catch_on_rings(c, perf, &r.format, &err), &err);
    const struct catch_target target = {.pid = o->pid,
                                        .runtime = o->deep ? NULL : &counting_runtime,
                                        .state = program,
                                        .remote = &remote,
                                        .serial = 1,
                                        .deep = o->deep};
    catch_publish(c, &target, 1);
    uint64_t cpu_ns = clock_own_cpu_ns(), until = clock_mono_ns() + (uint64_t)(o->seconds * NS_PER_S);
    perf_enable(perf);
    for (unsigned round = 0; clock_mono_ns() < until; round++) {
        clock_sleep_ns(ROUND_MS * NS_PER_MS);
        perf_drain(perf, ignore, NULL);
        catch_flush(c, FLUSH_MS * NS_PER_MS);
        catch_drain(c, each, &r);
        catch_publish(c, &target, 1); /* targets come and go at any time */
    }
    report(c, &r, (double)(clock_own_cpu_ns() - cpu_ns) / 1e3 / (double)(r.samples > 0 ? r.samples : 1));
    catch_publish(c, NULL, 0);
    catch_stop(c);
    remote_close(&remote);
    perf_free(perf);
}

int main(int argc, char **argv)
{
    const struct options o = parse(argc, argv);
    static struct program program;
    read_lines(&program);
    program.work_ns = o.work_us * NS_PER_US;
    if (program.count == 0) {
        fprintf(stderr, "no thread to catch\n");
        return 2;
    }
    run(&o, &program);
    return 0;
}

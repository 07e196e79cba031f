/*
 * ticking PID SECONDS [--hz N] [--work N]: reads a counting program (counter.c) without perf events, by ticks, and
 * prints as JSON what was proven and what was true. Linked with the product's objects, like lab/catching.c, whose input
 * it takes.
 *
 * No record tells where the thread stood, so the count is read twice, --work µs (20) apart: it stood still where both
 * are the same.
 */
#include "base/time.h"
#include "capture/catch/catch.h"
#include "os/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS_MAX = 64, ROUND_MS = 20 };

struct counting {
    uint32_t tid;
    uint64_t word;
};

struct program {
    struct counting threads[THREADS_MAX];
    size_t count;
    uint64_t work_ns;
};

struct results {
    uint64_t samples, read, still, verdicts[CATCH_VERDICT_COUNT], proven_still, weight_ns, settled_ns, worst;
};

static bool read_word(struct memory_batch *memory, uint64_t address, uint64_t *out)
{
    struct memory_piece piece = {.address = address, .out = out, .len = sizeof *out};
    return memory_batch_read(memory, &piece, 1, NULL) && piece.got == sizeof *out;
}

static void walk(const void *state, void *plan, const struct runtime_thread *thread, struct memory_batch *memory,
                 struct runtime_stack *out)
{
    const struct program *program = state;
    uint64_t first, last, *progress = plan; /* a plan is ours to write */
    out->end = RUNTIME_NO_THREAD;
    if (!thread->proven_later) { /* again, because it was not proven: the report is about the first time */
        out->frame[0] = (struct runtime_frame){.code = *progress};
        out->count = 1;
        out->end = RUNTIME_COMPLETE;
        return;
    }
    for (size_t i = 0; i < program->count; i++) {
        if (program->threads[i].tid != thread->tid || !read_word(memory, program->threads[i].word, &first)) {
            continue;
        }
        uint64_t until = clock_mono_ns() + program->work_ns;
        while (clock_mono_ns() < until) {
        }
        out->end = RUNTIME_UNREADABLE;
        if (read_word(memory, program->threads[i].word, &last)) {
            *progress = last - first;
            out->frame[0] = (struct runtime_frame){.code = *progress};
            out->count = 1;
            out->end = RUNTIME_COMPLETE;
        }
        return;
    }
}

static const struct runtime counting_runtime = {.name = "counting", .walk = walk};

static void each(void *context, unsigned cpu, const void *record, size_t len, const struct caught *caught)
{
    struct results *r = context;
    (void)cpu, (void)record, (void)len;
    if (caught == NULL) {
        return;
    }
    r->samples++;
    r->verdicts[caught->verdict]++;
    r->weight_ns += caught->weight_ns;
    if (caught->frame_count != 1) {
        return;
    }
    uint64_t progress = caught->frame[0].code;
    r->read++;
    r->still += progress == 0;
    r->proven_still += progress == 0 && caught->verdict == CATCH_PROVEN;
    if (caught->verdict == CATCH_PROVEN && progress > r->worst) {
        r->worst = progress;
    }
}

static void settle(void *context, uint32_t pid, uint32_t tid, uint64_t cpu_ns)
{
    (void)pid, (void)tid;
    ((struct results *)context)->settled_ns += cpu_ns;
}

static void report(struct catch *c, const struct results *r, uint64_t cpu_ns)
{
    printf("{\"samples\": %" PRIu64 ", \"read\": %" PRIu64 ", \"still\": %" PRIu64 ", \"proven\": %" PRIu64
           ", \"proven_still\": %" PRIu64 ", \"worst\": %" PRIu64,
           r->samples, r->read, r->still, r->verdicts[CATCH_PROVEN], r->proven_still, r->worst);
    printf(", \"long\": %" PRIu64 ", \"moved\": %" PRIu64 ", \"asleep\": %" PRIu64 ", \"unread\": %" PRIu64,
           r->verdicts[CATCH_LONG], r->verdicts[CATCH_MOVED], r->verdicts[CATCH_ASLEEP], r->verdicts[CATCH_UNREAD]);
    printf(", \"weight_ms\": %.1f, \"settled_ms\": %.1f, \"cpu_ms\": %.1f, \"trouble\": \"%s\"}\n",
           (double)r->weight_ns / 1e6, (double)r->settled_ns / 1e6, (double)cpu_ns / 1e6, catch_trouble(c));
}

static void need(bool good, const struct err *err)
{
    if (!good) {
        printf("{\"error\": \"%s\"}\n", err->text);
        exit(0);
    }
}

static void run(uint32_t pid, double seconds, uint32_t hz, const struct program *program)
{
    struct err err = {0};
    struct remote remote;
    struct results r = {0};
    uint64_t cpu_before_ns = 0, cpu_ns = 0;
    need(remote_open(&remote, pid, program->threads[0].word, &err), &err);
    struct catch *c = catch_init(hz, &err);
    need(c != NULL && catch_perfless(c, &err), &err);
    const struct catch_target target = {
        .pid = pid, .runtime = &counting_runtime, .state = program, .remote = &remote, .serial = 1};
    (void)clock_process_cpu_ns(pid, &cpu_before_ns);
    catch_publish(c, &target, 1);
    uint64_t until = clock_mono_ns() + (uint64_t)(seconds * NS_PER_S);
    while (clock_mono_ns() < until) {
        clock_sleep_ns(ROUND_MS * NS_PER_MS);
        catch_drain(c, each, &r);
    }
    (void)clock_process_cpu_ns(pid, &cpu_ns);
    catch_settle(c, settle, &r);
    report(c, &r, cpu_ns - cpu_before_ns);
    catch_publish(c, NULL, 0);
    catch_stop(c);
    remote_close(&remote);
}

int main(int argc, char **argv)
{
    static struct program program;
    uint32_t hz = 499, work_us = 20;
    struct counting t;
    for (int i = 3; i + 1 < argc; i += 2) {
        hz = strcmp(argv[i], "--hz") == 0 ? (uint32_t)atoi(argv[i + 1]) : hz;
        work_us = strcmp(argv[i], "--work") == 0 ? (uint32_t)atoi(argv[i + 1]) : work_us;
    }
    program.work_ns = work_us * NS_PER_US;
    while (program.count < THREADS_MAX && scanf("%" SCNu32 " %" SCNx64 " %*x %*x", &t.tid, &t.word) == 2) {
        program.threads[program.count++] = t;
    }
    if (argc < 3 || program.count == 0) {
        fprintf(stderr, "usage: ticking PID SECONDS [--hz N] [--work N], threads on standard input\n");
        return 2;
    }
    run((uint32_t)atoi(argv[1]), atof(argv[2]), hz, &program);
    return 0;
}

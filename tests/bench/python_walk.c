/*
 * python_walk PID FILE SAMPLES HZ: what reading a Python thread's stack costs, by the product's own
 * reader.
 *
 * FILE is the CPython that PID has mapped (the program itself or libpython); the main thread's stack
 * is read. The thread should be busy and confined to one CPU: the reader binds itself to that CPU
 * and wakes HZ times a second, so that it preempts the thread as the product's catchers do
 * (capture/catch/catch.h), and the thread stands still meanwhile.
 *
 * Prints JSON, of the samples whose stack was complete: system calls that read memory, frames, and
 * ns of wall time of a walk, of the system calls in it (nothing can be read without them), of the
 * look at the thread's stat that proves it, and of a read of one word, the least that a look at
 * another process costs.
 */
#include "capture/catch/catch_plan.h"
#include "files.h"
#include "os/clock.h"
#include "os/proc.h"
#include "target/maps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAPS_MAX_BYTES = 16 << 20, SAMPLES_MAX = 1 << 20, SLICE_NS = 200000, WARM_AFTER = 50 };

struct python_process {
    uint32_t pid;
    struct file file;
    const struct runtime *runtime;
    void *binary, *state;
    struct remote remote;
    struct buf text;
    VEC(struct runtime_map) maps;
    struct pid_list tids;
    uint64_t bias;
};

struct figures {
    uint64_t *walk_ns, *kernel_ns, *stat_ns, *word_ns;
    size_t count;
    uint64_t calls, frames, tried, still;
    uint64_t ends[RUNTIME_END_COUNT];
};

/* A batch that takes the time of its reads. */
struct timed {
    struct memory_batch memory;
    uint64_t ns;
};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "python_walk: %s: %s\n", what, why);
    exit(1);
}

/* ---- the process ---- */

static void read_maps(struct python_process *p, struct str path)
{
    struct map_line line;
    bool has_bias = false;
    buf_init(&p->text, MAPS_MAX_BYTES);
    if (!proc_read(p->pid, 0, "maps", &p->text, NULL)) {
        fail("maps", "cannot be read");
    }
    for (struct str rest = buf_slice(&p->text); maps_next(&rest, &line);) {
        bool of_binary = line.kind == MAPPING_FILE && str_eq(line.path, path);
        if (of_binary && !has_bias && (line.prot & MAPPING_EXEC) != 0) {
            has_bias = elf_bias(&p->file.elf, line.start, line.file_offset, proc_page_bytes(),
                                &p->bias);
        }
        *vec_push(&p->maps) = (struct runtime_map){
            .start = line.start,
            .limit = line.limit,
            .file_offset = line.file_offset,
            .prot = line.prot,
            .of_binary = of_binary,
            .anonymous = line.kind == MAPPING_ANON || line.kind == MAPPING_HEAP,
        };
    }
    if (!has_bias) {
        fail(path.ptr, "is not mapped there");
    }
}

static void recognise(struct python_process *p, const char *path)
{
    struct err why = {0};
    for (size_t i = 0; runtimes[i] != NULL && p->runtime == NULL; i++) {
        if (runtimes[i]->recognise != NULL &&
            runtimes[i]->recognise(&p->file.elf, str_of(path), NULL, &p->binary, &why) ==
            RUNTIME_YES) {
            p->runtime = runtimes[i];
        }
    }
    if (p->runtime == NULL) {
        fail(path, why.kind != ERR_NONE ? why.text : "is no runtime");
    }
}

static void attach(struct python_process *p, const char *path)
{
    struct err why = {0};
    file_open_path(&p->file, path);
    if (!p->file.is_elf) {
        fail(path, "is no ELF file");
    }
    recognise(p, path);
    read_maps(p, str_of(path));
    (void)proc_list_threads(p->pid, &p->tids, NULL);
    if (!remote_open(&p->remote, p->pid, p->maps.at[0].start, &why)) {
        fail("memory", why.text);
    }
    struct remote_caller caller = {.remote = &p->remote};
    struct memory_batch memory = remote_batch(&caller);
    struct runtime_process process = {
        .pid = p->pid, .bias = p->bias, .elf = &p->file.elf, .memory = &memory, .maps = p->maps.at,
        .map_count = p->maps.len, .tids = p->tids.ids.at, .tid_count = p->tids.ids.len,
    };
    if (p->runtime->attach(p->binary, &process, &p->state, &why) != RUNTIME_YES) {
        fail(path, why.text);
    }
}

static void detach(struct python_process *p)
{
    p->runtime->detach(p->state);
    p->runtime->forget(p->binary);
    remote_close(&p->remote);
    file_close(&p->file);
    vec_release(&p->maps);
    vec_release(&p->tids.ids);
    buf_release(&p->text);
}

/* ---- samples ---- */

static bool read_timed(void *context, struct memory_piece *pieces, size_t count, struct err *err)
{
    struct timed *timed = context;
    uint64_t start_ns = clock_mono_ns();
    bool good = memory_batch_read(&timed->memory, pieces, count, err);
    timed->ns += clock_mono_ns() - start_ns;
    return good;
}

static struct catch_plan *plan_of(struct python_process *p, struct catch_plans *plans)
{
    const struct catch_target target = {.pid = p->pid, .serial = 1};
    return catch_plans_get(plans, &target, p->pid);
}

static void sample(struct python_process *p, struct catch_plan *plan, bool counts,
                   struct figures *f)
{
    static struct runtime_stack stack;
    struct remote_caller caller = {.remote = &p->remote};
    struct timed timed = {.memory = remote_batch(&caller)};
    struct memory_batch memory = {read_timed, &timed};
    uint64_t value;
    struct memory_piece word = {p->maps.at[0].start, &value, sizeof value, 0};
    char state = 0;
    uint32_t cpu = UINT32_MAX;
    uint64_t start_ns = clock_mono_ns();
    const struct runtime_thread thread = {.tid = p->pid, .proven_later = true};
    p->runtime->walk(p->state, plan->bytes, &thread, &memory, &stack);
    uint64_t walked_ns = clock_mono_ns();
    (void)catch_plan_stat(plan, p->pid, p->pid, &state, &cpu);
    uint64_t proven_ns = clock_mono_ns();
    (void)memory_batch_read(&timed.memory, &word, 1, NULL);
    uint64_t end_ns = clock_mono_ns();
    if (!counts) {
        return;
    }
    f->tried++;
    f->ends[stack.end]++;
    f->still += state == 'R' && cpu == thread_cpu();
    if (stack.end == RUNTIME_COMPLETE) {
        f->walk_ns[f->count] = walked_ns - start_ns;
        f->kernel_ns[f->count] = timed.ns;
        f->stat_ns[f->count] = proven_ns - walked_ns;
        f->word_ns[f->count++] = end_ns - proven_ns;
        f->calls += caller.counts.calls - 1; /* without the word */
        f->frames += stack.count;
    }
}

static void settle(struct python_process *p, struct catch_plan *plan)
{
    struct thread_rank rank;
    char state;
    uint32_t cpu;
    struct err why = {0};
    if (!catch_plan_stat(plan, p->pid, p->pid, &state, &cpu) || !thread_bind(cpu, &why)) {
        fail("binding", why.text);
    }
    thread_rank(false, 0, SLICE_NS, &rank);
}

static void samples(struct python_process *p, size_t count, unsigned hz, struct figures *f)
{
    struct catch_plans plans;
    if (!catch_plans_init(&plans, 4)) {
        fail("plans", "no memory");
    }
    struct catch_plan *plan = plan_of(p, &plans);
    settle(p, plan);
    uint64_t next_ns = clock_mono_ns();
    for (size_t i = 0; i < WARM_AFTER + count; i++) {
        next_ns += 1000000000 / hz;
        uint64_t now_ns = clock_mono_ns();
        clock_sleep_ns(next_ns > now_ns ? next_ns - now_ns : 0);
        sample(p, plan, i >= WARM_AFTER, f);
    }
    catch_plans_release(&plans);
}

static void print_times(const char *name, uint64_t *ns, size_t count)
{
    qsort(ns, count, sizeof *ns, bench_by_number);
    printf(", \"%s\": {\"median\": %" PRIu64 ", \"p90\": %" PRIu64 ", \"p99\": %" PRIu64 "}", name,
           ns[count / 2], ns[count * 9 / 10], ns[count * 99 / 100]);
}

static void print(const struct python_process *p, struct figures *f)
{
    struct buf text;
    if (f->count == 0) {
        fail("samples", "none is complete");
    }
    buf_init(&text, 4096);
    p->runtime->describe(p->state, &text);
    printf("{\"runtime\": \"%s\", \"samples\": %" PRIu64 ", \"complete\": %zu, \"torn\": %" PRIu64
           ", \"still\": %" PRIu64 ", \"calls\": %.4f, \"frames\": %.2f",
           buf_cstr(&text), f->tried, f->count, f->ends[RUNTIME_TORN], f->still,
           (double)f->calls / (double)f->count, (double)f->frames / (double)f->count);
    print_times("walk_ns", f->walk_ns, f->count);
    print_times("kernel_ns", f->kernel_ns, f->count);
    print_times("stat_ns", f->stat_ns, f->count);
    print_times("word_ns", f->word_ns, f->count);
    printf("}\n");
    buf_release(&text);
}

int main(int argc, char **argv)
{
    static struct python_process process;
    struct figures figures = {0};
    size_t count = argc == 5 ? strtoul(argv[3], NULL, 10) : 0;
    process.pid = argc == 5 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    unsigned hz = argc == 5 ? (unsigned)strtoul(argv[4], NULL, 10) : 0;
    if (process.pid == 0 || count == 0 || count > SAMPLES_MAX || hz == 0) {
        fprintf(stderr, "usage: python_walk PID FILE SAMPLES HZ\n");
        return 2;
    }
    figures.walk_ns = calloc(count, sizeof *figures.walk_ns);
    figures.kernel_ns = calloc(count, sizeof *figures.kernel_ns);
    figures.stat_ns = calloc(count, sizeof *figures.stat_ns);
    figures.word_ns = calloc(count, sizeof *figures.word_ns);
    attach(&process, argv[2]);
    samples(&process, count, hz, &figures);
    print(&process, &figures);
    detach(&process);
    free(figures.walk_ns);
    free(figures.kernel_ns);
    free(figures.stat_ns);
    free(figures.word_ns);
    return 0;
}

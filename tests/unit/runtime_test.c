/*
 * What a runtime may be (runtime.h), by a row of this file's own for each verb alone: one that walks, one that
 * resolves addresses, one that collects a profile. That a row is all it takes is part of what is tested.
 */
#include "capture/code.h"
#include "capture/collect/collecting.h"
#include "capture/collect/collector.h"
#include "capture/stacks/stacks.h"
#include "jfr_recording.h"
#include "os/clock.h"
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PID = 0x7ffffff0, PERIOD = 10101010, SERIAL = 5 };

/* ---- a row that walks ---- */

/* Two frames; the plan counts samples, and the registers are those of the sample. */
static void walk(const void *state, void *plan, const struct runtime_thread *thread, struct memory_batch *memory,
                 struct runtime_stack *out)
{
    (void)memory;
    ++*(uint32_t *)plan;
    out->count = 2;
    out->end = RUNTIME_COMPLETE;
    out->frame[0] = (struct runtime_frame){.code = *(const uint32_t *)state, .flags = RUNTIME_FRAME_ENTRY};
    out->frame[1] = (struct runtime_frame){.code = thread->registers == NULL ? 0 : thread->registers->ip,
                                           .flags = RUNTIME_FRAME_ENTRY};
}

static enum runtime_native native_at(const void *binary, uint64_t elf_address)
{
    (void)binary;
    return elf_address >= 0x8000 && elf_address < 0x9000 ? RUNTIME_NATIVE_LOOP : RUNTIME_NATIVE_PLAIN;
}

static void name_frames(void *names, const struct runtime_frame *frames, size_t count, struct memory_batch *memory,
                        struct runtime_name *out)
{
    static const char *const functions[] = {"main", "work", "leaf"};
    (void)names;
    (void)memory;
    for (size_t i = 0; i < count; i++) {
        out[i] = (struct runtime_name){.function = str_of(functions[frames[i].code])};
    }
}

static const struct runtime walks = {
    .name = "walks", .kind = FRAME_PERL, .native_at = native_at, .walk = walk, .name_frames = name_frames};

/* ---- a row that resolves ---- */

#define CODE UINT64_C(0x7f0000000000)
static struct runtime_caller way; /* how to go on */
static unsigned unnamed;          /* addresses that are told without functions from now on; the first has them */
static const char *const *in_turn; /* what the next frames are called, whatever their address */
static uint64_t below;            /* of the last one: the word at its SP */

/* "inner", inlined into "outer", at any address of the code; nothing elsewhere. */
static bool resolve(void *state, const struct runtime_place *at, struct runtime_resolved *out)
{
    (void)state;
    if (at->address < CODE || at->address >= CODE + 0x1000) {
        return false;
    }
    CHECK(at->registers != NULL && at->stack != NULL);
    out->caller = way;
    if (in_turn != NULL && *in_turn != NULL) {
        struct str name = str_of(*in_turn++);
        out->lines = (struct code_lines){.kind = FRAME_JVM, .count = 1, .line[0] = {.name = name, .system_name = name}};
        CHECK(at->stack->read(at->stack->context, at->registers->sp, &below, sizeof below, NULL));
        return true;
    }
    if (unnamed > 0 && unnamed++ > 1) {
        return true;
    }
    out->lines.kind = FRAME_JVM;
    out->lines.count = 2;
    out->lines.line[0] = (struct source_line){STR("inner"), STR("inner"), STR("A.java"), 7};
    out->lines.line[1] = (struct source_line){STR("outer"), STR("outer"), STR("A.java"), 70};
    return true;
}

static const struct runtime resolves = {.name = "resolves", .kind = FRAME_JVM, .resolve = resolve};

/* ---- a row that collects ---- */

enum { KEPT_FILES = 16 };

/* What happens on the collector's thread, and what it is told. */
static struct {
    atomic_uint starts, polls, wholes, stops;
    atomic_bool is_late, ends, is_held; /* held: whatever it does takes until it is let go */
    atomic_uint pid, inner_pid, frequency_hz;
    atomic_bool reads_text;
    unsigned files; /* that the next conversations bring each */
    const struct buf *recording; /* what they are; null: texts */
    const char *type;            /* null: they are recordings, or moments */
} collected;

static void hold(void)
{
    while (collected.is_held) {
        usleep(1000);
    }
}

static void *start(const struct runtime_target *target, struct err *why)
{
    struct buf text;
    const struct process_port *port = target->port;
    buf_init(&text, 65536);
    collected.pid = port->pid;
    collected.inner_pid = port->inner_pid;
    collected.frequency_hz = (unsigned)target->frequency_hz;
    collected.reads_text = port->text(port->context, "cmdline", &text, NULL) && text.len > 0;
    buf_release(&text);
    collected.starts++;
    hold();
    if (collected.is_late) {
        err_set(why, ERR_UNSUPPORTED, EAGAIN, "it is starting");
        return NULL;
    }
    return &collected;
}

static void hand_over(const struct runtime_sink *sink, const char *what, unsigned conversation)
{
    for (unsigned i = 0; i < collected.files; i++) {
        struct buf file;
        buf_init(&file, 1 << 16);
        if (collected.recording != NULL) {
            buf_str(&file, buf_slice(collected.recording));
        } else {
            buf_printf(&file, "%s %u.%u", what, conversation, i + 1);
        }
        sink->file(sink->context, collected.type, &file);
        CHECK(file.len == 0);
        buf_release(&file);
    }
}

static bool poll(void *collection, bool whole, const struct runtime_sink *sink, struct err *why)
{
    CHECK(collection == &collected);
    collected.polls++;
    collected.wholes += whole;
    hold();
    hand_over(sink, whole ? "whole" : "part", collected.polls);
    return !collected.ends || err_set(why, ERR_GONE, 0, "the recording was stopped");
}

static void stop(void *collection, const struct runtime_sink *sink)
{
    CHECK(collection == &collected);
    collected.stops++;
    hold();
    hand_over(sink, "left", collected.stops);
}

static const struct runtime_collect collect = {.price = "a profile", .start = start, .poll = poll, .stop = stop};
static const struct runtime collects = {.name = "collects", .kind = FRAME_JVM, .collect = &collect};

const struct runtime *const runtimes[] = {&walks, &resolves, &collects, NULL};

/* ---- a process with code at 0x400000 and at CODE, of which no file is known ---- */

struct scene {
    struct settings settings;
    struct log log;
    struct world world;
    struct images images;
    struct targets targets;
    struct target *target;
    struct readers readers;
    struct reader reader;
    struct unwinder unwinder;
    struct stacks stacks;
    struct profile profile;
    uint32_t state;
};

static void begin(struct scene *s, const struct runtime *runtime, bool unwinds)
{
    *s = (struct scene){.log = {.fd = -1}, .state = 2};
    pthread_mutex_init(&s->log.lock, NULL);
    s->world = world_here();
    images_init(&s->images, &s->world);
    targets_init(&s->targets, &s->images, false);
    readers_init(&s->readers, &s->settings, &s->targets, &s->log);
    CHECK(unwinder_init(&s->unwinder, UNWIND_HYBRID, NULL));
    CHECK(stacks_init(&s->stacks, &s->targets, &s->readers, unwinds ? &s->unwinder : NULL, unwind_perf_mask()));
    CHECK(profile_init(&s->profile, 1 << 22, NULL));
    targets_comm(&s->targets, PID, PID, STR("app"), true);
    s->target = targets_find(&s->targets, PID);
    targets_map(&s->targets, s->target,
                &(struct mapped_file){0x400000, 0x500000, 0, 11, 8, 1, STR("/nowhere/app"), 0});
    targets_map(&s->targets, s->target,
                &(struct mapped_file){CODE, CODE + 0x100000, 0, 12, 8, 1, STR("/nowhere/code"), 0});
    s->reader = (struct reader){.target = s->target,
                                .program = s->target->program,
                                .serial = SERIAL,
                                .image = targets_known_mapping(s->target, 0x400000)->image,
                                .runtime = runtime,
                                .state = &s->state};
    s->target->runtime.reader = runtime != NULL ? &s->reader : NULL;
}

static void end(struct scene *s)
{
    stacks_release(&s->stacks);
    unwinder_release(&s->unwinder);
    profile_release(&s->profile);
    readers_release(&s->readers);
    map_release(&s->reader.frames);
    targets_release(&s->targets);
    images_release(&s->images);
}

/* Root first: names, and addresses of what has none. */
static size_t write_path(const struct profile *p, uint32_t node, char *out, size_t max)
{
    const struct node *n = &p->nodes.at[node];
    size_t used = n->parent == 0 ? 0 : write_path(p, n->parent, out, max);
    const struct frame *f = &p->frames.at[n->frame];
    struct str name = profile_text(p, f->name);
    int len = name.len > 0 ? snprintf(out + used, max - used, "%s%.*s", used > 0 ? ";" : "", (int)name.len, name.ptr)
                           : snprintf(out + used, max - used, "%s%llx", used > 0 ? ";" : "",
                                      (unsigned long long)f->address);
    return used + (size_t)len;
}

static const char *path(const struct profile *p, uint32_t node)
{
    static char text[1024];
    text[0] = '\0';
    (void)write_path(p, node, text, sizeof text);
    return text;
}

static const char *newest(const struct scene *s)
{
    return path(&s->profile, s->profile.samples.at[s->profile.samples.len - 1].node);
}

/* ---- walk ---- */

static void walk_only(void)
{
    struct scene s;
    begin(&s, &walks, false);
    struct {
        struct caught caught;
        struct runtime_frame frame[2];
    } one = {.caught = {.serial = SERIAL, .pid = PID, .tid = PID, .verdict = CATCH_PROVEN}};
    static struct runtime_stack stack;
    const struct runtime_registers registers = {1, 0, 0};
    const struct runtime_thread thread = {.tid = PID, .registers = &registers, .proven_later = true};
    uint32_t plan = 0;
    walks.walk(&s.state, &plan, &thread, NULL, &stack);
    CHECK_INT(plan, 1);
    one.caught.frame_count = stack.count;
    one.caught.end = stack.end;
    memcpy(one.frame, stack.frame, sizeof one.frame);
    static const uint64_t chain[] = {CHAIN_MARK_USER, 0x400100, 0x408011, 0x400301, 0x408021};
    struct record record = {.kind = RECORD_SAMPLE,
                            .pid = PID,
                            .tid = PID,
                            .user = true,
                            .as.sample = {.period_ns = PERIOD, .chain = chain, .chain_len = 5}};
    stacks_add(&s.stacks, &s.profile, &record, &one.caught);
    CHECK_TEXT(newest(&s), "work;300;leaf;100");
    end(&s);
}

/* ---- resolve ---- */

#if defined __aarch64__
enum { FP = 29, SP = 31, IP = 32, REGISTERS = 33 };
#else
enum { FP = 6, SP = 7, IP = 8, REGISTERS = 17 };
#endif

enum { STACK_BASE = 0x7ffe0000 };

/* The code calls itself once; its frames are of 24 bytes. The frame pointer is of no use unless `fp` says so. */
static const uint64_t words[8] = {0, 0, 0, CODE + 0x200, 0, 0, 0, 0x400200};
static const uint64_t linked[8] = {STACK_BASE + 0x20, CODE + 0x200, 0, 0, 0, 0x400200, 0, 0};

static const char *unwound(struct scene *s, const uint64_t *stack, uint64_t fp)
{
    uint64_t registers[REGISTERS] = {0};
    registers[FP] = fp;
    registers[SP] = STACK_BASE;
    registers[IP] = CODE + 0x100;
    struct record record = {.kind = RECORD_SAMPLE,
                            .pid = PID,
                            .tid = PID,
                            .time_ns = 1000,
                            .user = true,
                            .as.sample = {.period_ns = PERIOD,
                                          .registers = registers,
                                          .stack = (const unsigned char *)stack,
                                          .stack_len = sizeof words,
                                          .stack_room = sizeof words}};
    stacks_add(&s->stacks, &s->profile, &record, NULL);
    return newest(s);
}

static void resolve_only(void)
{
    struct scene s;
    begin(&s, &resolves, true);
    way = (struct runtime_caller){RUNTIME_RULE_FRAME_SIZE, 24, 0};
    CHECK_TEXT(unwound(&s, words, 0), "1ff;outer;inner;outer;inner");
    const struct frame *inner = NULL;
    for (size_t i = 1; i < s.profile.frames.len; i++) {
        inner = s.profile.frames.at[i].line == 7 ? &s.profile.frames.at[i] : inner;
    }
    CHECK(inner != NULL && inner->kind == FRAME_JVM && inner->address == 0);
    way = (struct runtime_caller){RUNTIME_RULE_FRAME_POINTER, 0, 0};
    CHECK_TEXT(unwound(&s, linked, STACK_BASE), "1ff;outer;inner;outer;inner");
    way = (struct runtime_caller){RUNTIME_RULE_CFA, STACK_BASE + 0x20, 0};
    CHECK_TEXT(unwound(&s, words, 0), "outer;inner;outer;inner"); /* a CFA that is no progress ends it */
    way = (struct runtime_caller){.rule = RUNTIME_RULE_NONE};
    CHECK_TEXT(unwound(&s, words, 0), "outer;inner"); /* names without a way on */
    way = (struct runtime_caller){RUNTIME_RULE_FRAME_SIZE, UINT64_MAX, 0};
    CHECK_TEXT(unwound(&s, words, 0), "outer;inner"); /* a way that cannot be */
    way = (struct runtime_caller){RUNTIME_RULE_FRAME_SIZE, 24, 0};
    unnamed = 1;
    CHECK_TEXT(unwound(&s, words, 0), "1ff;1ff;outer;inner"); /* the second is its address, not the first one's */
    unnamed = 0;
    end(&s);
}

/* An interpreter calls itself from one place: frames of the same address, each with its own function. */
static void same_address(void)
{
    static const char *const names[] = {"leaf", "middle", "root", NULL};
    static const uint64_t calls[8] = {STACK_BASE + 0x10, CODE + 0x200, STACK_BASE + 0x20, CODE + 0x200,
                                      0,                 0x400200,     0,                 0};
    struct scene s;
    begin(&s, &resolves, true);
    way = (struct runtime_caller){RUNTIME_RULE_FRAME_POINTER, 0, 0};
    in_turn = names;
    CHECK_TEXT(unwound(&s, calls, STACK_BASE), "1ff;root;middle;leaf");
    CHECK_INT(below, 0); /* right behind the return address */
    way.value = STACK_BASE + 0x18;
    in_turn = names + 1;
    CHECK_TEXT(unwound(&s, calls, STACK_BASE), "1ff;outer;inner;root;middle");
    CHECK_INT(below, CODE + 0x200); /* where the runtime says that the caller's SP was */
    in_turn = NULL;
    end(&s);
}

/* Where no runtime answers, the stack ends as it does without: the frame pointer is 0. */
static void nobody_resolves(void)
{
    struct scene s;
    begin(&s, NULL, true);
    CHECK_TEXT(unwound(&s, words, 0), "100");
    end(&s);
}

/* ---- collect ---- */

static void begin_collecting(void)
{
    memset(&collected, 0, sizeof collected);
    collected.files = 1;
}

/* One whose thread runs. */
static struct collector *collecting_thread(void)
{
    struct err err = {0};
    struct collector *c = collector_new();
    begin_collecting();
    CHECK(c != NULL && collector_run(c, false, false, &err) && collector_runs(c));
    return c;
}

static struct collect_job *job_of(struct collector *c, uint32_t pid)
{
    const struct runtime_target how = {.frequency_hz = 99, .wanted = RUNTIME_WANTS_CPU};
    struct collect_job *job = collector_begin(c, pid, &collects, &how);
    CHECK(job != NULL);
    return job;
}

enum { LONG_MS = 20000 };

static void await(const atomic_uint *count, unsigned expected)
{
    for (unsigned i = 0; i < LONG_MS && *count < expected; i++) {
        usleep(1000);
    }
    CHECK_INT(*count, expected);
}

/* The reason with which it came to that state. */
static const char *await_state(struct collector *c, const struct collect_job *job, enum collect_state expected)
{
    static struct err why;
    enum collect_state state = COLLECT_BEGINS;
    for (unsigned i = 0; i < LONG_MS && (state = collector_state(c, job, &why)) != expected; i++) {
        usleep(1000);
    }
    CHECK_INT(state, expected);
    return why.text;
}

/* All that was brought, oldest first. */
static const char *taken(struct collector *c, struct collect_job *job)
{
    static char text[256];
    struct collected_file file;
    size_t used = 0;
    text[0] = '\0';
    while (collector_take(c, job, &file, &(size_t){0})) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s%.*s", used > 0 ? ", " : "", file.type,
                                 file.type[0] != '\0' ? ": " : "", (int)file.bytes.len, file.bytes.ptr);
        buf_release(&file.bytes);
    }
    return text;
}

static void collect_only(void)
{
    struct collector *c = collecting_thread();
    struct collect_job *job = job_of(c, (uint32_t)getpid());
    CHECK_TEXT(await_state(c, job, COLLECT_RUNS), "");
    CHECK_INT(collected.pid, getpid());
    CHECK(collected.inner_pid != 0 && collected.reads_text);
    CHECK_INT(collected.frequency_hz, 99);
    CHECK_INT(collected.polls, 0); /* nobody has asked */
    CHECK_TEXT(taken(c, job), "");
    collected.files = 2;
    collector_read(c, false);
    collector_wait(c, UINT64_C(20000000000));
    CHECK_TEXT(taken(c, job), "part 1.1, part 1.2");
    CHECK_TEXT(taken(c, job), "");
    collector_read(c, true);
    collector_wait(c, UINT64_C(20000000000));
    collected.files = 1;
    collector_read(c, false);
    collector_wait(c, UINT64_C(20000000000));
    CHECK_TEXT(taken(c, job), "whole 2.1, whole 2.2, part 3.1");
    CHECK_INT(collected.wholes, 1);
    CHECK_INT(collected.starts, 1);
    collector_read(c, false);
    collector_wait(c, UINT64_C(20000000000));
    collector_end(c, job); /* with what was not taken */
    await(&collected.stops, 1);
    collector_free(c);
    CHECK_INT(collected.stops, 1);
}

/* What a runtime made in another form has its type; who brought something late is not asked for a whole the next time,
 * but for what there is. */
static void types_and_skips(void)
{
    struct collector *c = collecting_thread();
    struct collect_job *job = job_of(c, (uint32_t)getpid());
    CHECK_TEXT(await_state(c, job, COLLECT_RUNS), "");
    collected.files = 1;
    collected.type = "heap";
    collector_read(c, true);
    collector_wait(c, UINT64_C(20000000000));
    CHECK_TEXT(taken(c, job), "heap: whole 1.1");
    collector_skip(c, job);
    collector_read(c, true);
    collector_wait(c, UINT64_C(20000000000));
    CHECK_TEXT(taken(c, job), "heap: part 2.1");
    collector_read(c, true);
    collector_wait(c, UINT64_C(20000000000));
    CHECK_TEXT(taken(c, job), "heap: whole 3.1");
    collected.type = NULL;
    collected.files = 0;
    collector_end(c, job);
    await(&collected.stops, 1);
    collector_free(c);
}

static void what_is_left(void)
{
    struct collector *c = collecting_thread();
    struct collect_job *job = job_of(c, (uint32_t)getpid());
    CHECK_TEXT(await_state(c, job, COLLECT_RUNS), "");
    collector_read(c, false);
    CHECK(collector_stop(c));
    CHECK_TEXT(await_state(c, job, COLLECT_OVER), "");
    const char *brought = taken(c, job);
    CHECK(strcmp(brought, "left 1.1") == 0 || strcmp(brought, "part 1.1, left 1.1") == 0);
    CHECK_INT(collected.stops, 1);
    collector_read(c, true);
    collector_wait(c, UINT64_C(20000000000));
    CHECK(collector_stop(c)); /* there is nothing more */
    CHECK_TEXT(taken(c, job), "");
    CHECK_INT(collected.stops, 1);
    collector_end(c, job);
    collector_free(c);
}

static void ends_by_itself(void)
{
    struct collector *c = collecting_thread();
    struct collect_job *job = job_of(c, (uint32_t)getpid());
    CHECK_TEXT(await_state(c, job, COLLECT_RUNS), "");
    collected.ends = true;
    collector_read(c, false);
    CHECK_TEXT(await_state(c, job, COLLECT_OVER), "the recording was stopped");
    CHECK_TEXT(taken(c, job), "part 1.1, left 1.1");
    collector_read(c, false);
    collector_wait(c, UINT64_C(20000000000));
    CHECK_INT(collected.polls, 1);
    CHECK_INT(collected.stops, 1);
    collector_free(c);
    CHECK_INT(collected.stops, 1);
}

static void not_yet(void)
{
    struct err why;
    struct collector *c = collecting_thread();
    collected.is_late = true;
    struct collect_job *job = job_of(c, (uint32_t)getpid());
    CHECK_TEXT(await_state(c, job, COLLECT_OVER), "it is starting");
    CHECK(collector_state(c, job, &why) == COLLECT_OVER && why.number == EAGAIN);
    collector_read(c, true);
    collector_wait(c, UINT64_C(20000000000));
    CHECK_INT(collected.starts, 1);
    CHECK_INT(collected.polls + collected.stops, 0);
    collector_end(c, job);
    collected.is_late = false;
    job = job_of(c, (uint32_t)getpid());
    CHECK_TEXT(await_state(c, job, COLLECT_RUNS), "");
    CHECK_INT(collected.starts, 2);
    collector_free(c);
    CHECK_INT(collected.stops, 1);
}

static void of_another_process(void)
{
    struct collector *c = collecting_thread();
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    struct collect_job *job = job_of(c, (uint32_t)child), *gone = job_of(c, PID);
    CHECK_TEXT(await_state(c, job, COLLECT_RUNS), "");
    CHECK_INT(collected.pid, child);
    CHECK(await_state(c, gone, COLLECT_OVER)[0] != '\0');
    CHECK_INT(collected.starts, 1); /* of that there is nothing to be asked */
    kill(child, SIGKILL);
    CHECK(waitpid(child, NULL, 0) == child);
    collector_read(c, false); /* the row's matter, whether it is over */
    collector_wait(c, UINT64_C(20000000000));
    CHECK_TEXT(taken(c, job), "part 1.1");
    CHECK_TEXT(taken(c, gone), "");
    collector_free(c);
    CHECK_INT(collected.stops, 1);
}

static void let_go_while_it_begins(void)
{
    struct collector *c = collecting_thread();
    collected.is_held = true;
    struct collect_job *job = job_of(c, (uint32_t)getpid()), *second = job_of(c, (uint32_t)getpid());
    await(&collected.starts, 1);
    collector_wait(c, UINT64_C(20000000000)); /* not for what begins */
    CHECK_INT(collected.starts, 1);
    collector_end(c, job);
    collector_end(c, second); /* its turn has not come */
    collected.is_held = false;
    await(&collected.stops, 1);
    collector_free(c);
    CHECK_INT(collected.starts, 1);
    CHECK_INT(collected.polls, 0);
    CHECK_INT(collected.stops, 1);
}

static void not_waited_for(void)
{
    struct collector *c = collecting_thread();
    struct collect_job *job = job_of(c, (uint32_t)getpid());
    CHECK_TEXT(await_state(c, job, COLLECT_RUNS), "");
    collected.is_held = true;
    collector_read(c, false);
    await(&collected.polls, 1);
    collector_wait(c, 20000000); /* comes back, though it takes longer */
    CHECK_TEXT(taken(c, job), "");
    collector_read(c, true); /* noted for later, once */
    collector_read(c, false);
    collected.is_held = false;
    collector_wait(c, UINT64_C(20000000000));
    CHECK_TEXT(taken(c, job), "part 1.1, whole 2.1");
    collector_free(c);
}

/* Nobody takes them: what is kept of a process is bounded, and the oldest. */
static void more_than_is_kept(void)
{
    struct collector *c = collecting_thread();
    struct collect_job *job = job_of(c, (uint32_t)getpid());
    CHECK_TEXT(await_state(c, job, COLLECT_RUNS), "");
    for (unsigned i = 1; i <= KEPT_FILES + 3; i++) {
        collector_read(c, false);
        collector_wait(c, UINT64_C(20000000000));
    }
    CHECK_INT(collected.polls, KEPT_FILES + 3);
    const char *all = taken(c, job);
    CHECK(strncmp(all, "part 1.1, part 2.1, part 3.1", 28) == 0 && strstr(all, "part 17.1") == NULL);
    collector_free(c);
}

static void without_a_thread(void)
{
    const struct runtime_target how = {.frequency_hz = 99};
    struct collector *c = collector_new();
    begin_collecting();
    CHECK(!collector_runs(c));
    CHECK(collector_begin(c, (uint32_t)getpid(), &collects, &how) == NULL);
    collector_read(c, true);
    collector_wait(c, UINT64_MAX / 2);
    CHECK(collector_stop(c));
    collector_free(c);
    collector_free(NULL);
    CHECK_INT(collected.starts, 0);
}

/* ---- collect, as a run has it ---- */

struct run {
    struct scene scene;
    struct shared shared;
    struct follow follow;
    struct target *target;
    struct collecting *collecting;
    struct buf recording;
    uint64_t now_ns;
};

static void begin_run(struct run *r)
{
    memset(r, 0, sizeof *r);
    begin(&r->scene, &collects, false);
    begin_collecting();
    r->scene.settings.sampling.frequency_hz = 99;
    r->scene.settings.runtime.attaches = true;
    r->scene.settings.runtime.mode[FRAME_JVM] = RUNTIME_COLLECT; /* whatever room there is */
    r->shared = (struct shared){.settings = &r->scene.settings,
                                .log = {.fd = -1},
                                .world = &r->scene.world,
                                .finishing = true,
                                .window.profile = &r->scene.profile};
    pthread_mutex_init(&r->shared.log.lock, NULL);
    r->follow.shared = &r->shared;
    targets_init(&r->follow.targets, &r->scene.images, false);
    r->target = targets_get(&r->follow.targets, (uint32_t)getpid());
    r->target->runtime.collects = &collects;
    r->collecting = collecting_new(&r->follow);
    CHECK(r->collecting != NULL);
    collecting_run(r->collecting);
    buf_init(&r->recording, JFR_MADE_MAX);
    jfr_begin(&r->recording);
    jfr_sample(&r->recording, T_LOCK, (const uint64_t[]){3000, 5, 1}, 3);
    jfr_sample(&r->recording, T_SAMPLE, (const uint64_t[]){1000, 5, 1}, 3);
    jfr_end(&r->recording, 0);
    collected.recording = &r->recording;
    r->now_ns = clock_mono_ns();
}

static void end_run(struct run *r)
{
    collecting_concern.release(r->collecting);
    buf_release(&r->recording);
    targets_release(&r->follow.targets);
    map_release(&r->shared.log.said);
    end(&r->scene);
}

static void round_after(struct run *r, uint64_t ms)
{
    r->now_ns += ms * 1000000;
    collecting_concern.round(r->collecting, r->now_ns);
}

static void collected_by_a_run(void)
{
    struct run r;
    begin_run(&r);
    round_after(&r, 0);
    round_after(&r, 600);
    usleep(50000);
    CHECK_INT(collected.starts, 0); /* it may not yet be what it is going to be */
    round_after(&r, 600);
    await(&collected.starts, 1);
    round_after(&r, 600);
    collecting_concern.window_end(r.collecting);
    CHECK_INT(collected.starts, 1);
    CHECK_INT(collected.stops, 1);
    CHECK_INT(r.scene.profile.occurrences.len, 1);
    const struct occurrence *o = r.scene.profile.occurrences.at;
    CHECK(o != NULL && o->amount == 3000000 && r.scene.profile.threads.at[o->thread].tid == 4711);
    CHECK_TEXT(path(&r.scene.profile, o != NULL ? o->node : 0),
               "shop/B.na\303\257v;shop/A$$Lambda$3.g\303\266\360\235\204\236");
    CHECK_INT(profile_sum(&r.scene.profile).cpu_ns, 0); /* of what runs the accounting decides */
    end_run(&r);
    CHECK_INT(collected.stops, 1);
}

static void collected_later(void)
{
    struct run r;
    begin_run(&r);
    collected.is_late = true;
    round_after(&r, 0);
    for (unsigned i = 1; i <= 4; i++) { /* begun, seen to have failed; pauses grow */
        round_after(&r, 1500);
        if (collected.starts == 0) {
            await(&collected.starts, 1);
        }
        usleep(100000);
        round_after(&r, 600);
    }
    CHECK(collected.starts >= 2 && collected.starts <= 4);
    unsigned so_far = collected.starts;
    collected.is_late = false;
    round_after(&r, 60000);
    await(&collected.starts, so_far + 1);
    collecting_concern.window_end(r.collecting);
    CHECK_INT(r.scene.profile.occurrences.len, 1);
    end_run(&r);
    CHECK_INT(collected.stops, 1);
}

/* It ends with its process, and another program of the same pid is asked anew. */
static void collected_until_its_end(void)
{
    struct run r;
    begin_run(&r);
    round_after(&r, 0);
    round_after(&r, 1500);
    await(&collected.starts, 1);
    r.target->program++;
    collecting_concern.window_begin(r.collecting);
    await(&collected.stops, 1);
    round_after(&r, 600);
    round_after(&r, 1500);
    await(&collected.starts, 2);
    r.target->ended = true;
    targets_end_window(&r.follow.targets);
    collecting_concern.window_begin(r.collecting);
    await(&collected.stops, 2);
    end_run(&r);
}

TESTS({"a row that only walks: its frames stand in the place of its loop", walk_only},
      {"a row that only resolves: its functions stand in the stack, which goes on through them", resolve_only},
      {"frames of one address have a function each, and the stack pointer that the row says", same_address},
      {"where no row resolves the stack ends as it did", nobody_resolves},
      {"a row that only collects: its files come in order, each once", collect_only},
      {"types stand with files, and who was late is left out once", types_and_skips},
      {"when all is stopped what is left is handed over", what_is_left},
      {"a profile that ends by itself brings what it has, and why", ends_by_itself},
      {"what cannot begin yet says so, and can be begun again", not_yet},
      {"another process is asked by its number; one that is gone is over", of_another_process},
      {"a process that is let go of while it is begun is ended then", let_go_while_it_begins},
      {"a conversation that takes long is not waited for, and what is wanted meanwhile is done once", not_waited_for},
      {"of files that nobody takes the oldest are kept", more_than_is_kept},
      {"without a thread nobody is asked", without_a_thread},
      {"a run begins it with a process that is old enough, and reads what it brings into the window",
       collected_by_a_run},
      {"what could not begin is tried again", collected_later},
      {"it is ended with its program, and the next program begun", collected_until_its_end})

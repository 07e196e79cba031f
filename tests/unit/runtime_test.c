/*
 * What a runtime may be (runtime.h), by a row of this file's own for each verb alone: one that walks, one that
 * resolves addresses, one that collects a profile. That a row is all it takes is part of what is tested.
 */
#include "capture/code.h"
#include "capture/collect/collecting.h"
#include "capture/stacks/stacks.h"
#include "test.h"

#include <errno.h>

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

static struct {
    unsigned starts, polls, stops;
    bool is_late, ends;
} collected;

static const struct runtime_sample_type types[] = {{"alloc_space", "bytes"}, {"mutex", "nanoseconds"}, {NULL, NULL}};

static void *start(const struct runtime_target *target, struct err *why)
{
    CHECK_INT(target->pid, PID);
    CHECK_INT(target->frequency_hz, 99);
    collected.starts++;
    if (collected.is_late) {
        err_set(why, ERR_UNSUPPORTED, EAGAIN, "it is starting");
        return NULL;
    }
    return &collected;
}

static bool hand_over(const struct runtime_sink *sink, uint64_t bytes, uint64_t ns)
{
    const struct source_line frames[] = {{STR("allocate"), STR("allocate"), STR("B.java"), 3},
                                         {STR("run"), STR("run"), STR("B.java"), 30}};
    const uint64_t values[] = {bytes, ns};
    const struct runtime_sample sample = {frames, 2, PID + 1, 0, values};
    return sink->sample(sink->context, &sample);
}

static bool poll(void *collection, const struct runtime_sink *sink, struct err *why)
{
    CHECK(collection == &collected);
    collected.polls++;
    CHECK(hand_over(sink, 4096, 0));
    CHECK(hand_over(sink, 0, 500));
    return !collected.ends || err_set(why, ERR_GONE, 0, "the recording was stopped");
}

static void stop(void *collection, const struct runtime_sink *sink)
{
    CHECK(collection == &collected);
    collected.stops++;
    CHECK(hand_over(sink, 1, 0));
}

static const struct runtime collects = {
    .name = "collects", .kind = FRAME_JVM, .types = types, .start = start, .poll = poll, .stop = stop};

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

static uint32_t thread_of(void *context, struct profile *p, uint32_t pid, uint32_t tid)
{
    (void)context;
    const struct process process = {.pid = pid, .name = profile_cstring(p, "app")};
    return profile_thread(p, profile_process(p, &process), tid, 0);
}

static const struct occurrence *occurrence_of(const struct profile *p, const char *type)
{
    for (size_t i = 0; i < p->occurrences.len; i++) {
        const struct occurrence *o = &p->occurrences.at[i];
        if (str_eq(profile_text(p, p->event_types.at[o->event].name), str_of(type))) {
            return o;
        }
    }
    return NULL;
}

static void collect_only(void)
{
    struct scene s;
    struct collect c;
    begin(&s, NULL, false);
    const struct collect_into into = {&s.profile, thread_of, NULL};
    memset(&collected, 0, sizeof collected);
    collect_init(&c, runtimes, 99);
    CHECK(collect_start(&c, PID, 10));
    CHECK(!collect_start(&c, PID, 20)); /* once */
    CHECK_INT(collected.starts, 1);
    collect_poll(&c, &into);
    collect_poll(&c, &into);
    const struct occurrence *bytes = occurrence_of(&s.profile, "alloc_space");
    CHECK(bytes != NULL && bytes->amount == 8192);
    CHECK(bytes != NULL && s.profile.threads.at[bytes->thread].tid == PID + 1);
    CHECK_TEXT(path(&s.profile, bytes != NULL ? bytes->node : 0), "run;allocate");
    CHECK_STR(profile_text(&s.profile, s.profile.event_types.at[0].unit), "bytes");
    const struct occurrence *waited = occurrence_of(&s.profile, "mutex");
    CHECK(waited != NULL && waited->amount == 1000);
    CHECK_INT(s.profile.samples.len, 1); /* of CPU time: none but the first, which stands for none */
    collect_leave(&c, PID, &into);
    CHECK_INT(collected.stops, 1);
    bytes = occurrence_of(&s.profile, "alloc_space");
    CHECK(bytes != NULL && bytes->amount == 8193); /* what was left */
    collect_release(&c, &into);
    CHECK_INT(collected.stops, 1);
    end(&s);
}

static void collect_later(void)
{
    struct scene s;
    struct collect c;
    begin(&s, NULL, false);
    const struct collect_into into = {&s.profile, thread_of, NULL};
    memset(&collected, 0, sizeof collected);
    collected.is_late = true;
    collect_init(&c, runtimes, 99);
    CHECK(!collect_start(&c, PID, 1000));
    CHECK(!collect_start(&c, PID, 100000999)); /* not before */
    CHECK_INT(collected.starts, 1);
    CHECK(!collect_start(&c, PID, 100001000));
    CHECK_INT(collected.starts, 2);
    collected.is_late = false;
    collected.ends = true;
    CHECK(!collect_start(&c, PID, 300000999)); /* pauses grow */
    CHECK(collect_start(&c, PID, 300001000));
    collect_poll(&c, &into); /* it is over: stopped, and not begun again */
    CHECK_INT(collected.stops, 1);
    CHECK_TEXT(c.failed.text, "the recording was stopped");
    CHECK(!collect_start(&c, PID, UINT64_MAX));
    collect_release(&c, &into);
    CHECK_INT(collected.stops, 1);
    end(&s);
}

/* As the loop has it: begun once a process is followed, polled, and stopped when it has ended. */
static void collected_by_a_run(void)
{
    struct scene s;
    begin(&s, &collects, false);
    struct settings settings = {.sampling.frequency_hz = 99};
    struct shared shared = {.settings = &settings, .window.profile = &s.profile};
    struct follow follow = {.shared = &shared};
    memset(&collected, 0, sizeof collected);
    targets_init(&follow.targets, &s.images, false);
    struct target *target = targets_get(&follow.targets, PID);
    struct collecting_row *c = collecting_new(&follow, runtimes);
    CHECK(c != NULL && target != NULL);
    collecting_concern.round(c, 1);
    collecting_concern.round(c, 2); /* once a second */
    CHECK_INT(collected.starts, 1);
    CHECK_INT(collected.polls, 1);
    collecting_concern.window_end(c);
    CHECK_INT(collected.polls, 2);
    CHECK(occurrence_of(&s.profile, "alloc_space") != NULL);
    target->ended = true;
    collecting_concern.round(c, 2000000000);
    CHECK_INT(collected.stops, 1);
    collecting_concern.release(c);
    CHECK_INT(collected.stops, 1);
    targets_release(&follow.targets);
    end(&s);
}

TESTS({"a row that only walks: its frames stand in the place of its loop", walk_only},
      {"a row that only resolves: its functions stand in the stack, which goes on through them", resolve_only},
      {"frames of one address have a function each, and the stack pointer that the row says", same_address},
      {"where no row resolves the stack ends as it did", nobody_resolves},
      {"a row that only collects: its values arrive under their types, beside CPU time", collect_only},
      {"what cannot start now is tried again, what ended is not", collect_later},
      {"a run begins it with a process, polls it in each window, and stops it with the process", collected_by_a_run})

/*
 * Samples of a thread that runs an interpreter, with what a catcher read: the paths they become, root first.
 * The interpreter is a row of this file's own: its loop is the code at 0x408000 to 0x409000.
 */
#include "capture/stacks/stacks.h"
#include "test.h"

enum { PID = 0x7ffffff0, PERIOD = 10101010, SERIAL = 5, FRAMES_MAX = 8 };

static enum runtime_native native_at(const void *binary, uint64_t elf_address)
{
    (void)binary;
    return elf_address >= 0x8000 && elf_address < 0x9000   ? RUNTIME_NATIVE_LOOP
           : elf_address >= 0x9000 && elf_address < 0xa000 ? RUNTIME_NATIVE_PLUMBING
                                                           : RUNTIME_NATIVE_PLAIN;
}

static void name_frames(void *names, const struct runtime_frame *frames, size_t count,
                        struct memory_batch *memory, struct runtime_name *out)
{
    static const char *const functions[] = {"", "main", "work", "leaf"};
    (void)names;
    (void)memory;
    for (size_t i = 0; i < count; i++) {
        out[i] = (struct runtime_name){.function = str_of(functions[frames[i].code]),
                                       .file = STR("a.py"),
                                       .line = 10 * (uint32_t)frames[i].code + 5,
                                       .first_line = 10 * (uint32_t)frames[i].code};
    }
}

/* Samples here were walked already. */
static void walk(const void *state, void *plan, const struct runtime_thread *thread, struct memory_batch *memory,
                 struct runtime_stack *out)
{
    (void)state, (void)plan, (void)thread, (void)memory;
    out->end = RUNTIME_NO_THREAD;
}

static const struct runtime row = {.name = "toy",
                                   .kind = FRAME_PYTHON,
                                   .native_at = native_at,
                                   .walk = walk,
                                   .name_frames = name_frames};

/* Another one in the same process: its loop is the code at 0x7f0000000200 to 0x7f0000000300. */
static enum runtime_native other_native_at(const void *binary, uint64_t elf_address)
{
    (void)binary;
    return elf_address >= 0x200 && elf_address < 0x300 ? RUNTIME_NATIVE_LOOP : RUNTIME_NATIVE_PLAIN;
}

static const struct runtime other_row = {.name = "other",
                                         .kind = FRAME_PHP,
                                         .native_at = other_native_at,
                                         .walk = walk,
                                         .name_frames = name_frames};
const struct runtime *const runtimes[] = {&row, &other_row, NULL};

struct scene {
    struct settings settings;
    struct log log;
    struct world world;
    struct images images;
    struct targets targets;
    struct target *target;
    struct readers readers;
    struct reader reader, other;
    struct stacks stacks;
    struct profile profile;
};

/* Code at 0x400000, which is the interpreter, and at 0x7f0000000000, which is not. */
static void begin(struct scene *s)
{
    *s = (struct scene){.log = {.fd = -1}};
    pthread_mutex_init(&s->log.lock, NULL);
    s->world = world_here();
    images_init(&s->images, &s->world);
    targets_init(&s->targets, &s->images, false);
    readers_init(&s->readers, &s->settings, &s->targets, &s->log);
    CHECK(stacks_init(&s->stacks, &s->targets, &s->readers, NULL, 0));
    CHECK(profile_init(&s->profile, 1 << 22, NULL));
    targets_comm(&s->targets, PID, PID, STR("app"), true);
    s->target = targets_find(&s->targets, PID);
    targets_map(&s->targets, s->target,
                &(struct mapped_file){0x400000, 0x500000, 0, 11, 8, 1, STR("/nowhere/app"), 0});
    targets_map(&s->targets, s->target,
                &(struct mapped_file){0x7f0000000000, 0x7f0000100000, 0, 12, 8, 1,
                                      STR("/nowhere/lib.so"), 0});
    s->reader = (struct reader){.target = s->target,
                                .serial = SERIAL,
                                .program = s->target->program,
                                .image = targets_known_mapping(s->target, 0x400000)->image,
                                .runtime = &row};
    s->target->runtime.reader = &s->reader;
}

static void end(struct scene *s)
{
    stacks_release(&s->stacks);
    profile_release(&s->profile);
    readers_release(&s->readers);
    map_release(&s->reader.frames);
    map_release(&s->other.frames);
    targets_release(&s->targets);
    images_release(&s->images);
}

struct catch_of {
    struct caught caught;
    struct runtime_frame frame[FRAMES_MAX];
};

/* work called from main through C: two runs of the loop. */
static struct catch_of both_frames(void)
{
    return (struct catch_of){
        .caught = {.frame_count = 2,
                   .serial = SERIAL,
                   .pid = PID,
                   .tid = PID,
                   .weight_ns = 3000000,
                   .verdict = CATCH_PROVEN,
                   .end = RUNTIME_COMPLETE},
        .frame = {{.code = 2, .flags = RUNTIME_FRAME_ENTRY},
                  {.code = 1, .flags = RUNTIME_FRAME_ENTRY}}};
}

static size_t write_path(const struct profile *p, uint32_t node, char *out, size_t max)
{
    const struct node *n = &p->nodes.at[node];
    size_t used = n->parent == 0 ? 0 : write_path(p, n->parent, out, max);
    const struct frame *f = &p->frames.at[n->frame];
    struct str name = profile_text(p, f->name);
    out += used;
    max -= used;
    return used + (size_t)(f->address != 0
                               ? snprintf(out, max, "%s%llx", used > 0 ? ";" : "",
                                          (unsigned long long)f->address)
                               : snprintf(out, max, "%s%.*s", used > 0 ? ";" : "", (int)name.len,
                                          name.ptr));
}

static const char *newest(const struct scene *s)
{
    static char text[1024];
    text[0] = '\0';
    (void)write_path(&s->profile, s->profile.samples.at[s->profile.samples.len - 1].node, text,
                     sizeof text);
    return text;
}

/* In C that the interpreter called (libc), below two runs of its loop and its own plumbing. */
static const uint64_t in_c[] = {CHAIN_MARK_USER, 0x7f0000000100, 0x7f0000000201, 0x408011,
                                0x409021,        0x400301,       0x408031,       0x400041};

static const char *add_chain(struct scene *s, const uint64_t *chain, size_t len, const struct catch_of *caught)
{
    struct record record = {.kind = RECORD_SAMPLE,
                            .pid = PID,
                            .tid = PID,
                            .time_ns = 1000,
                            .user = true,
                            .as.sample = {.period_ns = PERIOD, .chain = chain, .chain_len = len}};
    stacks_add(&s->stacks, &s->profile, &record, caught == NULL ? NULL : &caught->caught);
    return newest(s);
}

static const char *add(struct scene *s, const struct catch_of *caught)
{
    return add_chain(s, in_c, sizeof in_c / sizeof in_c[0], caught);
}

static void proven(void)
{
    struct scene s;
    begin(&s);
    struct catch_of caught = both_frames();
    CHECK_TEXT(add(&s, &caught), "40;main (a.py:10);300;work (a.py:20);200;100");
    const struct frame *work = NULL;
    for (size_t i = 1; i < s.profile.frames.len; i++) {
        work = s.profile.frames.at[i].line == 25 ? &s.profile.frames.at[i] : work;
    }
    CHECK(work != NULL && work->kind == FRAME_PYTHON && work->first_line == 20);
    CHECK_INT(s.profile.samples.at[1].cpu_ns, PERIOD);
    CHECK_INT(s.stacks.shares[SHARE_PROVEN], 1);
    CHECK_INT(s.stacks.woven[WOVEN_EXACT], 1);
    end(&s);
}

static void being_pushed(void)
{
    struct scene s;
    begin(&s);
    struct catch_of caught = both_frames();
    caught.caught.frame_count = 1; /* the leaf-most loop has no frame yet */
    caught.frame[0] = caught.frame[1];
    CHECK_TEXT(add(&s, &caught), "40;main (a.py:10);300;200;100");
    CHECK_INT(s.stacks.woven[WOVEN_ONE_MORE], 1);
    end(&s);
}

static void unproven(void)
{
    struct scene s;
    begin(&s);
    struct catch_of caught = both_frames();
    caught.caught.verdict = CATCH_LATE;
    CHECK_TEXT(add(&s, &caught), "40;main (a.py:10);work (a.py:20);[~];200;100");
    CHECK_INT(s.stacks.shares[SHARE_LATE], 1);
    CHECK_INT(s.stacks.woven[WOVEN_APART], 1);
    end(&s);
}

/* Read twice: all of it, or from the root up to a frame, was the same both times. */
static void consistent(void)
{
    struct scene s;
    begin(&s);
    struct catch_of caught = both_frames();
    CHECK_TEXT(add(&s, &caught), "40;main (a.py:10);300;work (a.py:20);200;100");
    CHECK_INT(s.stacks.consistent[CONSISTENT_WHOLE], 0); /* it is proven, which is more */
    caught.caught.verdict = CATCH_UNPROVABLE;
    CHECK_TEXT(add(&s, &caught), "40;main (a.py:10);work (a.py:20);[~];200;100");
    CHECK_INT(s.stacks.shares[SHARE_UNPROVABLE], 1);
    CHECK_INT(s.stacks.consistent[CONSISTENT_WHOLE], 1);
    caught.frame[0].flags |= RUNTIME_FRAME_PART;
    CHECK_TEXT(add(&s, &caught), "40;main (a.py:10);work (a.py:20);[partial];[~];200;100");
    CHECK_INT(s.stacks.consistent[CONSISTENT_PART], 1);
    caught.caught.end = RUNTIME_TORN;
    (void)add(&s, &caught);
    CHECK_INT(s.stacks.consistent[CONSISTENT_WHOLE] + s.stacks.consistent[CONSISTENT_PART], 2);
    stacks_end_window(&s.stacks, &s.profile);
    CHECK_INT(s.profile.meta.consistent[CONSISTENT_PART], 1);
    CHECK_INT(s.stacks.consistent[CONSISTENT_PART], 0);
    end(&s);
}

static void torn(void)
{
    struct scene s;
    begin(&s);
    struct catch_of caught = both_frames();
    caught.caught.end = RUNTIME_TORN;
    CHECK_TEXT(add(&s, &caught), "40;[toy: torn];[~];200;100");
    caught.caught.end = RUNTIME_UNREADABLE;
    caught.caught.frame_count = 0;
    CHECK_TEXT(add(&s, &caught), "40;[toy: unreadable];[~];200;100");
    CHECK_INT(s.stacks.shares[SHARE_TORN], 2);
    CHECK_INT(s.stacks.shares[SHARE_PROVEN], 0);
    end(&s);
}

/* Generated code that calls the loop, and what of the interpreter calls it (300), run the function that the loop has;
 * other generated code (800) is a caller like any other. */
static void trampolines(void)
{
    static const uint64_t chain[] = {CHAIN_MARK_USER, 0x7f0000000100, 0x408011, 0x7e0000000411, 0x400301, 0x409021,
                                     0x7f0000000201,  0x7e0000000801, 0x409021, 0x408031,       0x7e0000000511,
                                     0x400301,        0x400041};
    struct scene s;
    begin(&s);
    targets_map(&s.targets, s.target,
                &(struct mapped_file){.start = 0x7e0000000000, .limit = 0x7e0000001000, .path = STR("//anon")});
    struct catch_of caught = both_frames();
    size_t len = sizeof chain / sizeof chain[0];
    CHECK_TEXT(add_chain(&s, chain, len, &caught), "40;main (a.py:10);7e0000000800;200;work (a.py:20);100");
    CHECK_INT(s.stacks.woven[WOVEN_EXACT], 1);
    CHECK_TEXT(add_chain(&s, chain, len, NULL),
               "40;300;7e0000000510;8030;9020;7e0000000800;200;9020;300;7e0000000410;8010;100");
    end(&s);
}

#define NATIVE "40;8030;300;9020;8010;200;100"

static void not_read(void)
{
    struct scene s;
    begin(&s);
    struct catch_of caught = both_frames();
    CHECK_TEXT(add(&s, NULL), NATIVE);
    CHECK_INT(s.stacks.shares[SHARE_UNREAD], 0); /* it was no catcher's */
    caught.caught.serial = 0;
    CHECK_TEXT(add(&s, &caught), NATIVE);
    CHECK_INT(s.stacks.shares[SHARE_UNREAD], 1);
    caught = both_frames();
    caught.caught.serial = SERIAL + 1; /* of an earlier program in this process */
    CHECK_TEXT(add(&s, &caught), NATIVE);
    caught = both_frames();
    caught.caught.end = RUNTIME_NO_THREAD;
    CHECK_TEXT(add(&s, &caught), NATIVE);
    CHECK_INT(s.stacks.shares[SHARE_PROVEN], 0);
    end(&s);
}

/* ---- two runtimes in one process ---- */

/* What a catcher hands over then: both, one behind the other. */
struct catch_of_both {
    struct catch_of first, second;
};

/* The other's "leaf" runs where it is called from the first one's "work". */
static struct catch_of_both both_runtimes(void)
{
    struct catch_of_both both = {both_frames(), both_frames()};
    both.first.caught.next_at = sizeof both.first;
    both.second.caught.serial = SERIAL + 1;
    both.second.caught.frame_count = 1;
    both.second.caught.verdict = CATCH_UNREAD; /* the first one's counts */
    both.second.frame[0] = (struct runtime_frame){.code = 3, .flags = RUNTIME_FRAME_ENTRY};
    return both;
}

static void begin_with_two(struct scene *s)
{
    begin(s);
    s->other = (struct reader){.target = s->target,
                               .serial = SERIAL + 1,
                               .program = s->target->program,
                               .image = targets_known_mapping(s->target, 0x7f0000000200)->image,
                               .runtime = &other_row};
    s->reader.next = &s->other;
}

static void two_runtimes(void)
{
    struct scene s;
    begin_with_two(&s);
    struct catch_of_both both = both_runtimes();
    CHECK_TEXT(add(&s, &both.first), "40;main (a.py:10);300;work (a.py:20);leaf (a.py:30);100");
    CHECK_INT(s.stacks.woven[WOVEN_EXACT], 1);
    CHECK_INT(s.stacks.shares[SHARE_PROVEN], 1); /* one sample */
    const struct frame *leaf = NULL;
    for (size_t i = 1; i < s.profile.frames.len; i++) {
        leaf = s.profile.frames.at[i].line == 35 ? &s.profile.frames.at[i] : leaf;
    }
    CHECK(leaf != NULL && leaf->kind == FRAME_PHP);
    both.first.caught.verdict = CATCH_LATE; /* whole, by their leaf-most frames of the loop */
    CHECK_TEXT(add(&s, &both.first), "40;main (a.py:10);work (a.py:20);leaf (a.py:30);[~];100");
    end(&s);
}

static void one_of_two(void)
{
    struct scene s;
    begin_with_two(&s);
    struct catch_of_both both = both_runtimes();
    both.first.caught.end = RUNTIME_NO_THREAD; /* a thread of the other one alone */
    both.first.caught.frame_count = 0;
    CHECK_TEXT(add(&s, &both.first), "40;8030;300;9020;8010;leaf (a.py:30);100");
    CHECK_INT(s.stacks.woven[WOVEN_EXACT], 1);
    both = both_runtimes();
    both.second.caught.end = RUNTIME_TORN;
    CHECK_TEXT(add(&s, &both.first), "40;main (a.py:10);work (a.py:20);[other: torn];[~];100");
    CHECK_INT(s.stacks.shares[SHARE_TORN], 1);
    end(&s);
}

static void marks(void)
{
    struct scene s;
    begin(&s);
    struct catch_of caught = both_frames();
    caught.frame[0].flags |= RUNTIME_FRAME_COLLECTS;
    caught.frame[1].flags |= RUNTIME_FRAME_CUT;
    CHECK_TEXT(add(&s, &caught),
               "40;main (a.py:10);[frames left out];300;work (a.py:20);[gc];200;100");
    caught = both_frames();
    caught.frame[0].code = 0; /* freed before it could be named */
    CHECK_TEXT(add(&s, &caught), "40;main (a.py:10);300;[code is gone];200;100");
    end(&s);
}

static void alone(void)
{
    struct scene s;
    begin(&s);
    struct catch_of caught = both_frames();
    s.stacks.runtime_alone = true;
    CHECK_TEXT(add(&s, &caught), "main (a.py:10);work (a.py:20)");
    CHECK_INT(s.stacks.shares[SHARE_PROVEN], 1);
    end(&s);
}

static void ticks_that_failed(void)
{
    struct scene s;
    begin(&s);
    struct catch_of caught = both_frames();
    caught.caught.end = RUNTIME_TORN;
    CHECK(stacks_add_perfless(&s.stacks, &s.profile, &caught.caught));
    CHECK_TEXT(newest(&s), "[partial]");
    caught.caught.end = RUNTIME_UNREADABLE;
    caught.caught.frame_count = 0;
    CHECK(stacks_add_perfless(&s.stacks, &s.profile, &caught.caught));
    CHECK(stacks_add_perfless(&s.stacks, &s.profile, &caught.caught));
    CHECK_TEXT(newest(&s), "[unreadable]");
    struct profile_totals sum = profile_sum(&s.profile);
    CHECK_INT(sum.account_ns[ACCOUNT_PARTIAL], 3000000);
    CHECK_INT(sum.account_ns[ACCOUNT_UNREADABLE], 6000000);
    CHECK_INT(sum.cpu_ns, 9000000);
    CHECK_INT(s.target->account.sampled_ns, 9000000);
    CHECK_INT(s.stacks.shares[SHARE_TORN], 3);
    end(&s);
}

static void ticks(void)
{
    struct scene s;
    begin(&s);
    struct catch_of caught = both_frames();
    CHECK(stacks_add_perfless(&s.stacks, &s.profile, &caught.caught));
    CHECK_TEXT(newest(&s), "main (a.py:10);work (a.py:20)");
    CHECK_INT(s.profile.samples.at[1].cpu_ns, 3000000); /* what the thread used, not a period */
    CHECK_INT(s.target->account.sampled_ns, 3000000);
    caught.caught.end = RUNTIME_NO_THREAD;
    CHECK(!stacks_add_perfless(&s.stacks, &s.profile, &caught.caught));
    CHECK_TEXT(newest(&s), "[native, no perf]");
    CHECK_INT(s.target->account.settled_ns, 3000000);
    CHECK_INT(s.target->account.sampled_ns, 3000000);
    end(&s);
}

TESTS({"a proven stack is woven into the native one", proven},
      {"a loop without a frame yet is passed over", being_pushed},
      {"a stack of another moment stands whole, its native leaf behind [~]", unproven},
      {"what was read twice with the same result counts as consistent", consistent},
      {"a stack that contradicts itself is one frame, and no time is lost", torn},
      {"generated code that runs the loop is not shown beside what the loop runs", trampolines},
      {"what was not read leaves the native stack", not_read},
      {"two runtimes of one process are woven by their own frames of the loop", two_runtimes},
      {"of two runtimes one may not know the thread, or be torn", one_of_two},
      {"a collector, a cut and freed code are said", marks},
      {"native frames can be left out", alone},
      {"without perf a sample weighs what its thread used", ticks},
      {"without perf a stack that was not read whole is accounted, and no time is lost", ticks_that_failed})

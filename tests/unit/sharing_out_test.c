/*
 * Threads' CPU time, shared out among the samples that their runtime has of them (capture/collect/sharing_out.c): which
 * samples have whose time, and that no nanosecond is lost or made. The window's accounting and what was collected are
 * made here.
 */
#include "capture/collect/private.h"
#include "sample_profile.h"
#include "test.h"

enum { PID = 0x7ffffff0, OTHER = 0x7ffffff8 };

#define MS UINT64_C(1000000)

static const struct runtime_collect collects = {.carriers = "ForkJoinPool-"}, has_none = {.price = ""};
static const struct runtime carries = {.name = "java", .kind = FRAME_JVM, .collect = &collects};
static const struct runtime plain = {.name = "plain", .kind = FRAME_JVM, .collect = &has_none};
const struct runtime *const runtimes[] = {&carries, &plain, NULL};

struct scene {
    struct world world;
    struct images images;
    struct settings settings;
    struct shared shared;
    struct follow follow;
    struct profile profile;
    struct target *target;
    uint32_t process;
    struct collecting collecting;
};

static void begin(struct scene *s)
{
    memset(s, 0, sizeof *s);
    s->world = world_here();
    images_init(&s->images, &s->world);
    CHECK(profile_init(&s->profile, SAMPLE_MAX_BYTES, NULL));
    s->shared = (struct shared){.settings = &s->settings, .log = {.fd = -1}, .window.profile = &s->profile};
    s->follow.shared = &s->shared;
    targets_init(&s->follow.targets, &s->images, false);
    s->target = targets_get(&s->follow.targets, PID);
    s->process = targets_process_id(&s->follow.targets, &s->profile, s->target);
    CHECK(s->process != 0);
    s->collecting.follow = &s->follow;
    struct collected *one = vec_push(&s->collecting.all);
    *one = (struct collected){.pid = PID,
                              .start_ticks = s->target->start_ticks,
                              .program = s->target->program,
                              .runtime = &carries};
}

static void end(struct scene *s)
{
    vec_release(&s->collecting.all.at[0].samples);
    vec_release(&s->collecting.all);
    targets_release(&s->follow.targets);
    images_release(&s->images);
    profile_release(&s->profile);
}

/* A thread that used so much without a stack. */
static uint32_t used(struct scene *s, uint32_t tid, const char *name, uint64_t cpu_ns)
{
    uint32_t thread = add_thread(&s->profile, s->process, tid, name);
    profile_account(&s->profile, thread, ACCOUNT_NATIVE_NO_PERF, cpu_ns);
    return thread;
}

enum kind { RUNS, MAY_WAIT, IN_SYSTEM, LIGHT, OF_MOMENT };

/* As its runtime has it, which may call the thread otherwise. */
static void met(struct scene *s, uint32_t tid, const char *name, const char *function, uint64_t cpu_ns, enum kind kind)
{
    struct collected_sample *added = vec_push(&s->collecting.all.at[0].samples);
    *added = (struct collected_sample){.tid = tid,
                                       .thread = add_thread(&s->profile, s->process, tid, name),
                                       .node = add_name(&s->profile, 0, function, FRAME_JVM),
                                       .cpu_ns = cpu_ns,
                                       .may_wait = kind == MAY_WAIT || kind == IN_SYSTEM,
                                       .in_system = kind == IN_SYSTEM,
                                       .of_moment = kind == OF_MOMENT,
                                       .is_virtual = kind == LIGHT};
}

static void share(struct scene *s)
{
    sharing_out_concern.window_end(&s->collecting);
    CHECK_INT(s->collecting.all.at[0].samples.len, 0);
}

/* "thread/tid function ns", of what has time. */
static const char *shown(const struct profile *p)
{
    static char text[1024];
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 1; i < p->samples.len && length < sizeof text; i++) {
        const struct sample *sample = &p->samples.at[i];
        const struct thread *thread = &p->threads.at[sample->thread];
        struct str name = profile_text(p, thread->name);
        struct str function = profile_text(p, p->frames.at[p->nodes.at[sample->node].frame].name);
        if (sample->cpu_ns > 0) {
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%.*s/%u %.*s %llu",
                                       length > 0 ? ", " : "", (int)name.len, name.ptr, thread->tid, (int)function.len,
                                       function.ptr, (unsigned long long)sample->cpu_ns);
        }
    }
    return text;
}

/* ---- who has how much ---- */

static void in_proportion(void)
{
    struct scene s;
    begin(&s);
    used(&s, 11, "worker", 1000);
    used(&s, 12, "other", 100);
    met(&s, 12, "other", "c", 20 * MS, RUNS); /* in any order */
    met(&s, 11, "worker 1", "a", 30 * MS, RUNS);
    met(&s, 12, "other", "d", 20 * MS, RUNS);
    met(&s, 11, "worker 1", "b", 10 * MS, RUNS);
    met(&s, 12, "other", "e", 20 * MS, RUNS);
    share(&s);
    struct profile_totals sum = profile_sum(&s.profile);
    CHECK_INT(sum.cpu_ns, 1100);
    CHECK_INT(sum.leaf_ns[FRAME_JVM], 1100);
    CHECK_INT(sum.count, 5);
    const char *text = shown(&s.profile);
    CHECK(strstr(text, "worker 1/11 a 750") != NULL && strstr(text, "worker 1/11 b 250") != NULL);
    CHECK(strstr(text, "other/12 c 33") != NULL && strstr(text, "other/12 e 3") != NULL); /* 33, 33 and 34 */
    CHECK_INT(s.profile.processes.at[s.process].capture_mode, CAPTURE_RUNTIME);
    end(&s);
}

/* A thread that the recorder has met has its samples alone; another one what moments tell. */
static void recorder_and_moments(void)
{
    struct scene s;
    begin(&s);
    used(&s, 11, "worker", 1000);
    used(&s, 12, "other", 100);
    met(&s, 11, "worker", "coarse", 100 * MS, OF_MOMENT);
    met(&s, 12, "other", "coarse", 100 * MS, OF_MOMENT);
    met(&s, 11, "worker", "a", 20 * MS, RUNS);
    share(&s);
    CHECK_INT(profile_sum(&s.profile).cpu_ns, 1100);
    const char *text = shown(&s.profile);
    CHECK(strstr(text, "worker/11 a 1000") != NULL && strstr(text, "other/12 coarse 100") != NULL);
    end(&s);
}

/* 40 ms of running code and 20 ms in native code, of a thread that used so much. */
static const char *native(uint64_t cpu_ns)
{
    struct scene s;
    begin(&s);
    used(&s, 11, "worker", cpu_ns);
    met(&s, 11, "w", "runs", 40 * MS, RUNS);
    met(&s, 11, "w", "reads", 20 * MS, MAY_WAIT);
    share(&s);
    const char *text = shown(&s.profile);
    CHECK_INT(profile_sum(&s.profile).cpu_ns, cpu_ns);
    end(&s);
    return text;
}

static void native_code(void)
{
    CHECK_TEXT(native(100 * MS), "w/11 reads 20000000, w/11 runs 80000000"); /* no more than it may have run */
    CHECK_TEXT(native(60 * MS), "w/11 reads 20000000, w/11 runs 40000000");
    CHECK_TEXT(native(50 * MS), "w/11 reads 10000000, w/11 runs 40000000"); /* what the others leave */
    CHECK_TEXT(native(40 * MS + 1), "w/11 reads 1, w/11 runs 40000000");
    CHECK_TEXT(native(40 * MS), "w/11 runs 40000000"); /* it waited */
    CHECK_TEXT(native(1), "w/11 runs 1");
    CHECK_TEXT(native(0), "");
}

/* 40 ms of running code and 100 ms in a function that calls the system, of a thread that used so much, 10 ms of it the
 * system's. */
static const char *system_call(uint64_t cpu_ns, uint64_t runs_ns)
{
    struct scene s;
    begin(&s);
    profile_account(&s.profile, used(&s, 11, "worker", cpu_ns - 10 * MS), ACCOUNT_KERNEL_HIDDEN, 10 * MS);
    if (runs_ns > 0) {
        met(&s, 11, "w", "runs", runs_ns, RUNS);
    }
    met(&s, 11, "w", "writes", 100 * MS, IN_SYSTEM);
    share(&s);
    const char *text = shown(&s.profile);
    CHECK_INT(profile_sum(&s.profile).cpu_ns, cpu_ns);
    end(&s);
    return text;
}

static void system_calls(void)
{
    CHECK_TEXT(system_call(100 * MS, 40 * MS), "w/11 writes 10000000, w/11 runs 90000000");
    CHECK_TEXT(system_call(45 * MS, 40 * MS), "w/11 writes 5000000, w/11 runs 40000000");
    CHECK_TEXT(system_call(100 * MS, 0), "w/11 writes 100000000");
}

static void only_native_code(void)
{
    struct scene s;
    begin(&s);
    used(&s, 11, "worker", 90 * MS);
    met(&s, 11, "w", "crc", 20 * MS, MAY_WAIT);
    met(&s, 11, "w", "zip", 40 * MS, MAY_WAIT);
    share(&s);
    CHECK_TEXT(shown(&s.profile), "w/11 crc 30000000, w/11 zip 60000000");
    end(&s);
}

static void no_samples(void)
{
    struct scene s;
    begin(&s);
    used(&s, 11, "worker", 50);
    used(&s, 12, "GC Thread#0", 70);
    used(&s, 13, "idle", 0);
    met(&s, 11, "w", "a", 1, RUNS);
    met(&s, 13, "idle", "waits", 100 * MS, MAY_WAIT); /* without time it has none */
    met(&s, 14, "gone", "b", 20 * MS, RUNS);          /* of whom the system knows nothing */
    share(&s);
    CHECK_TEXT(shown(&s.profile), "w/11 a 50, GC Thread#0/12 [no runtime samples] 70");
    CHECK_INT(profile_sum(&s.profile).account_ns[ACCOUNT_NO_SAMPLES], 70);
    CHECK_INT(profile_sum(&s.profile).account_ns[ACCOUNT_NATIVE_NO_PERF], 0);
    end(&s);
}

/* More than a double has digits for. */
static void large_sums(void)
{
    struct scene s;
    begin(&s);
    used(&s, 11, "worker", (UINT64_C(1) << 53) + 1);
    met(&s, 11, "w", "a", 20 * MS, RUNS);
    share(&s);
    CHECK_TEXT(shown(&s.profile), "w/11 a 9007199254740993");
    end(&s);
}

/* A sample that stands for nothing is none. */
static void samples_of_nothing(void)
{
    struct scene s;
    begin(&s);
    used(&s, 11, "worker", 50);
    used(&s, 12, "other", 60);
    met(&s, 11, "w", "a", 0, RUNS);
    met(&s, 11, "w", "b", 0, MAY_WAIT);
    met(&s, 12, "o", "c", 0, RUNS);
    met(&s, 12, "o", "d", 7, RUNS);
    met(&s, 12, "o", "e", 0, RUNS);
    share(&s);
    CHECK_TEXT(shown(&s.profile), "worker/11 [no runtime samples] 50, o/12 d 60");
    end(&s);
}

/* ---- whose time ---- */

/* Kernel code that may not be seen is its thread's, too, and a thread may have several rows. What perf or anybody else
 * knew stays. */
static void rows_of_a_thread(void)
{
    struct scene s;
    begin(&s);
    uint32_t thread = used(&s, 11, "before", 10);
    profile_account(&s.profile, thread, ACCOUNT_KERNEL_HIDDEN, 5);
    profile_account(&s.profile, thread, ACCOUNT_LOST, 3);
    used(&s, 11, "renamed", 20);
    profile_add(&s.profile, thread, add_name(&s.profile, 0, "native", FRAME_NATIVE), 4, 1);
    met(&s, 11, "w", "a", 20 * MS, RUNS);
    share(&s);
    CHECK_TEXT(shown(&s.profile), "before/11 [lost] 3, before/11 native 4, w/11 a 35");
    end(&s);
}

static void other_processes(void)
{
    struct scene s;
    begin(&s);
    uint32_t process = add_process(&s.profile, OTHER, "other", "");
    profile_account(&s.profile, add_thread(&s.profile, process, 11, "theirs"), ACCOUNT_NATIVE_NO_PERF, 9);
    used(&s, 11, "ours", 8);
    met(&s, 11, "w", "a", 20 * MS, RUNS);
    share(&s);
    CHECK_TEXT(shown(&s.profile), "theirs/11 [native, no perf] 9, w/11 a 8");
    CHECK(s.profile.processes.at[process].capture_mode != CAPTURE_RUNTIME);
    end(&s);
}

/* The first thread has their time: as much of it as their samples stand for. */
static void ended_threads(void)
{
    struct scene s;
    begin(&s);
    used(&s, PID, "java", 100 * MS);
    met(&s, 0, "task-1", "a", 20 * MS, RUNS);
    met(&s, 0, "task-2", "b", 40 * MS, RUNS);
    met(&s, 0, "task-2", "waits", 500 * MS, MAY_WAIT); /* nobody knows whether it ran */
    share(&s);
    CHECK_TEXT(shown(&s.profile),
               "task-1/0 a 20000000, task-2/0 b 40000000, java/2147483632 [no runtime samples] 40000000");
    end(&s);
    begin(&s); /* less than they stand for */
    used(&s, PID, "java", 30 * MS);
    met(&s, 0, "task-1", "a", 20 * MS, RUNS);
    met(&s, 0, "task-2", "b", 40 * MS, RUNS);
    share(&s);
    CHECK_TEXT(shown(&s.profile), "task-1/0 a 10000000, task-2/0 b 20000000");
    end(&s);
    begin(&s); /* it is no time of another thread */
    used(&s, 11, "worker", 30 * MS);
    met(&s, 0, "task-1", "a", 20 * MS, RUNS);
    share(&s);
    CHECK_TEXT(shown(&s.profile), "worker/11 [no runtime samples] 30000000");
    end(&s);
    begin(&s); /* nor of one that has samples of its own */
    used(&s, PID, "java", 30 * MS);
    met(&s, 0, "task-1", "a", 20 * MS, RUNS);
    met(&s, PID, "main", "b", 20 * MS, RUNS);
    share(&s);
    CHECK_TEXT(shown(&s.profile), "main/2147483632 b 30000000");
    end(&s);
}

static void light_threads(void)
{
    struct scene s;
    begin(&s);
    used(&s, 21, "ForkJoinPool-1-", 40 * MS); /* as the system has it, cut */
    used(&s, 22, "ForkJoinPool-1-", 16 * MS);
    used(&s, 23, "ForkJoinPool-2-", 8 * MS);
    used(&s, 24, "http-1", 7 * MS);
    met(&s, 0, "request", "handle", 40 * MS, LIGHT);
    met(&s, 0, "request", "answer", 8 * MS, LIGHT);
    met(&s, 23, "commonPool", "sum", 16 * MS, RUNS); /* what they run of their own is part of it */
    share(&s);
    CHECK_TEXT(shown(&s.profile), "request/0 handle 40000000, request/0 answer 8000000, commonPool/23 sum 16000000, "
                                  "http-1/24 [no runtime samples] 7000000");
    end(&s);
    begin(&s); /* none of them runs now */
    used(&s, 24, "http-1", 7 * MS);
    met(&s, 0, "request", "handle", 40 * MS, LIGHT);
    share(&s);
    CHECK_TEXT(shown(&s.profile), "http-1/24 [no runtime samples] 7000000");
    end(&s);
    begin(&s); /* of a runtime without such */
    s.collecting.all.at[0].runtime = &plain;
    used(&s, 21, "ForkJoinPool-1-", 40 * MS);
    met(&s, 0, "request", "handle", 30 * MS, LIGHT);
    share(&s);
    CHECK_TEXT(shown(&s.profile), "ForkJoinPool-1-/21 [no runtime samples] 40000000");
    end(&s);
}

/* The profile had no room for its thread, or for its stack. */
static void samples_without_room(void)
{
    struct scene s;
    begin(&s);
    used(&s, 11, "worker", 100);
    met(&s, 11, "w", "a", 20 * MS, RUNS);
    met(&s, 11, "w", "b", 20 * MS, RUNS);
    s.collecting.all.at[0].samples.at[0].thread = 0;
    s.collecting.all.at[0].samples.at[0].node = 0;
    s.collecting.all.at[0].samples.at[1].node = 0;
    share(&s);
    uint64_t sum_ns = 0;
    for (size_t i = 1; i < s.profile.samples.len; i++) {
        const struct sample *sample = &s.profile.samples.at[i];
        sum_ns += s.profile.threads.at[sample->thread].process == s.process ? sample->cpu_ns : 0;
    }
    CHECK_INT(sum_ns, 100);
    CHECK_INT(profile_sum(&s.profile).account_ns[ACCOUNT_LOST], 100);
    end(&s);
}

/* ---- when nothing is shared ---- */

static void nothing_collected(void)
{
    struct scene s;
    begin(&s);
    snprintf(s.collecting.all.at[0].why, sizeof s.collecting.all.at[0].why, "it does not listen");
    used(&s, 11, "worker", 50);
    uint8_t mode = s.profile.processes.at[s.process].capture_mode;
    share(&s);
    CHECK_TEXT(shown(&s.profile), "worker/11 [native, no perf] 50");
    CHECK_INT(s.profile.processes.at[s.process].capture_mode, mode);
    CHECK_STR(profile_text(&s.profile, s.profile.processes.at[s.process].remedy), "it does not listen");
    end(&s);
}

/* What was collected is of a process that had the number before, or that is not in the window. */
static void of_nobody_here(void)
{
    struct scene s;
    for (int i = 0; i < 2; i++) {
        begin(&s);
        used(&s, 11, "worker", 50);
        met(&s, 11, "w", "a", 20 * MS, RUNS);
        if (i == 0) {
            s.collecting.all.at[0].start_ticks = s.target->start_ticks + 1;
        } else {
            s.follow.targets.window++;
        }
        share(&s);
        CHECK_TEXT(shown(&s.profile), "worker/11 [native, no perf] 50");
        share(&s); /* and it is not kept for later */
        CHECK_TEXT(shown(&s.profile), "worker/11 [native, no perf] 50");
        end(&s);
    }
}

/* ---- sums ---- */

static uint64_t drawn(uint64_t *state, uint64_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (*state >> 33) % below;
}

/* Whatever the recorder says, within `most_ns` a sample. */
static void check_sums(uint64_t most_ns)
{
    static const char *const names[] = {"worker", "ForkJoinPool-1-", "java"};
    static const char *const functions[] = {"a", "b", "c", "d", "e"};
    unsigned wrong = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct scene s;
        uint64_t state = seed, sum_ns = 0;
        begin(&s);
        for (uint32_t tid = 0; tid < 8; tid++) {
            uint64_t cpu_ns = drawn(&state, 3) == 0 ? drawn(&state, 4) : drawn(&state, 60000 * MS);
            used(&s, tid == 0 ? PID : tid, names[drawn(&state, 3)], cpu_ns);
            sum_ns += cpu_ns;
        }
        for (uint64_t count = drawn(&state, 300); count > 0; count--) {
            uint32_t tid = (uint32_t)drawn(&state, 9);
            met(&s, tid, names[drawn(&state, 3)], functions[drawn(&state, 5)],
                drawn(&state, UINT32_MAX) * drawn(&state, UINT32_MAX) % most_ns,
                tid == 0 ? (enum kind)drawn(&state, 3) : (enum kind)drawn(&state, 2));
        }
        share(&s);
        uint64_t largest_ns = 0;
        for (size_t i = 1; i < s.profile.samples.len; i++) {
            uint64_t cpu_ns = s.profile.samples.at[i].cpu_ns;
            largest_ns = cpu_ns > largest_ns ? cpu_ns : largest_ns;
        }
        wrong += profile_sum(&s.profile).cpu_ns != sum_ns || largest_ns > sum_ns;
        end(&s);
    }
    CHECK_INT(wrong, 0);
}

static void conserved(void)
{
    check_sums(1);
    check_sums(40 * MS);
    check_sums(UINT64_C(1) << 40); /* the most that jfr_read gives */
}

TESTS({"a thread's time is its samples', in their proportion", in_proportion},
      {"moments tell of threads that a recorder has not met", recorder_and_moments},
      {"native code has what running code leaves, and no more than was met", native_code},
      {"what calls the system has no more than the system used", system_calls},
      {"a thread that was met in native code alone ran there", only_native_code},
      {"a thread that was not met has [no runtime samples], one that did not run nothing", no_samples},
      {"the last sample has what is left to the nanosecond", large_sums},
      {"samples that stand for nothing have nothing", samples_of_nothing},
      {"all that a thread used without a stack is shared, nothing else", rows_of_a_thread},
      {"another process keeps what it has", other_processes},
      {"threads that ended have their samples' part of the first thread's time", ended_threads},
      {"time of samples that had no room stays with the process", samples_without_room},
      {"light threads have the time of the threads that carry them", light_threads},
      {"where nothing was collected nothing changes, and the process says why", nothing_collected},
      {"what was collected of another process of that number is forgotten", of_nobody_here},
      {"no nanosecond is lost or made", conserved})

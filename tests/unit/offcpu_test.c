/* Time off the CPU, by records of switches. The threads are none of this machine's, so that none has a stack. */
#include "capture/stacks/offcpu.h"
#include "os/clock.h"
#include "os/proc.h"
#include "target/stat.h"
#include "test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PID = 0x7ffffff0, TID = PID + 1 };

struct scene {
    struct world world;
    struct images images;
    struct targets targets;
    struct stacks stacks;
    struct profile profile;
    struct offcpu offcpu;
};

static void begin(struct scene *s)
{
    *s = (struct scene){0};
    s->world = world_here();
    images_init(&s->images, &s->world);
    targets_init(&s->targets, &s->images, false);
    CHECK(stacks_init(&s->stacks, &s->targets, NULL, NULL, 0));
    CHECK(profile_init(&s->profile, 1 << 20, NULL));
    targets_comm(&s->targets, PID, PID, STR("app"), true);
    CHECK(offcpu_init(&s->offcpu, &s->stacks, NULL, &s->targets, 0, NULL));
}

static void end(struct scene *s)
{
    offcpu_release(&s->offcpu);
    stacks_release(&s->stacks);
    profile_release(&s->profile);
    targets_release(&s->targets);
    images_release(&s->images);
}

enum what { IN, OUT, PREEMPTED };

static void change(struct scene *s, uint32_t tid, uint64_t time_ns, enum what what)
{
    const struct record record = {.kind = RECORD_SWITCH,
                                  .pid = PID,
                                  .tid = tid,
                                  .time_ns = time_ns,
                                  .as.sched = {.out = what != IN, .preempt = what == PREEMPTED}};
    offcpu_switch(&s->offcpu, &s->profile, &record);
}

/* Time that was counted, and that is still to be shared out. */
static uint64_t waited(struct scene *s)
{
    uint64_t sum = 0;
    offcpu_settle(&s->offcpu, &s->profile);
    vec_each(&s->profile.waits, wait)
    {
        sum += wait->wait_ns;
    }
    return sum;
}

static void out_until_in(void)
{
    struct scene s;
    begin(&s);
    change(&s, TID, 1000, OUT);
    CHECK_INT(waited(&s), 0);
    change(&s, TID, 1700, IN);
    change(&s, TID, 2000, OUT);
    change(&s, TID, 2001, IN);
    CHECK_INT(waited(&s), 701);
    CHECK_INT(s.profile.waits.len, 1);
    const struct node *node = &s.profile.nodes.at[s.profile.waits.at[0].node];
    CHECK_STR(profile_text(&s.profile, s.profile.frames.at[node->frame].name), "[off-CPU]");
    CHECK_INT(s.profile.threads.at[s.profile.waits.at[0].thread].tid, TID);
    CHECK_INT(s.profile.samples.len, 1); /* none: it is no CPU time */
    end(&s);
}

static void preempted(void)
{
    struct scene s;
    begin(&s);
    change(&s, TID, 1000, PREEMPTED);
    change(&s, TID, 1700, IN);
    CHECK_INT(waited(&s), 0);
    end(&s);
}

static void missing_records(void)
{
    struct scene s;
    begin(&s);
    change(&s, TID, 1000, IN); /* nobody saw it leave */
    CHECK_INT(waited(&s), 0);
    change(&s, TID, 2000, OUT);
    change(&s, TID, 5000, OUT); /* nor come back: when is not known */
    change(&s, TID, 5100, IN);
    CHECK_INT(waited(&s), 100);
    change(&s, TID, 6000, OUT);
    offcpu_lost(&s.offcpu, &s.profile);
    change(&s, TID, 9000, IN);
    CHECK_INT(waited(&s), 100);
    end(&s);
}

static void window_ends(void)
{
    struct scene s;
    begin(&s);
    change(&s, TID, 1000, OUT);
    change(&s, TID + 1, 1500, OUT);
    change(&s, TID + 1, 1600, IN);
    offcpu_end_window(&s.offcpu, &s.profile, 3000);
    CHECK_INT(waited(&s), 2100); /* the first is still out: 2000; the second runs */
    profile_clear(&s.profile);
    targets_end_window(&s.targets);
    change(&s, TID, 3500, IN);
    CHECK_INT(waited(&s), 500);
    end(&s);
}

static void ends(void)
{
    struct scene s;
    begin(&s);
    for (uint32_t i = 0; i < 5; i++) {
        change(&s, TID + i, 1000, OUT);
    }
    offcpu_exit(&s.offcpu, &s.profile, PID, TID + 1); /* the last takes its place */
    change(&s, TID + 4, 1200, IN);
    CHECK_INT(waited(&s), 200);
    change(&s, TID + 1, 2000, IN); /* another thread by now */
    CHECK_INT(waited(&s), 200);
    offcpu_exit(&s.offcpu, &s.profile, PID, TID + 9);
    offcpu_end_window(&s.offcpu, &s.profile, 2000);
    CHECK_INT(waited(&s), 200 + 3 * 1000);
    CHECK_INT(s.offcpu.all.len, 5); /* one came anew */
    targets_find(&s.targets, PID)->ended = true;
    offcpu_end_window(&s.offcpu, &s.profile, 3000);
    CHECK_INT(s.offcpu.all.len, 0); /* all end with their process */
    CHECK_INT(s.offcpu.by_tid.len, 0);
    end(&s);
}

static bool place(const char *text, uint64_t *sp, uint64_t *ip)
{
    *sp = *ip = 0;
    return syscall_place(str_of(text), sp, ip);
}

static void places(void)
{
    uint64_t sp, ip;
    CHECK(place("230 0x0 0x0 0x7f01 0x7f02 0x0 0x0 0x7ffc1230 0x7fab45\n", &sp, &ip));
    CHECK_INT(sp, 0x7ffc1230);
    CHECK_INT(ip, 0x7fab45);
    CHECK(place("-1 0x7ffc1230 0x7fab45\n", &sp, &ip)); /* outside of calls: a fault */
    CHECK_INT(ip, 0x7fab45);
    CHECK(!place("running\n", &sp, &ip));
    CHECK(!place("", &sp, &ip));
    CHECK(!place("230 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0\n", &sp, &ip)); /* a kernel thread */
    CHECK(!place("230 1 2\n", &sp, &ip));
    CHECK(!place("230 0x 0xzz\n", &sp, &ip));
}

/* A child of ours that sleeps, once it does. */
static pid_t start_sleeper(struct scene *s)
{
    uint64_t sp, ip;
    struct buf text;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    struct target *target = targets_get(&s->targets, (uint32_t)child);
    target->capture_mode = CAPTURE_PERF;
    buf_init(&text, 4096);
    for (unsigned i = 0; i < 1000; i++) {
        if (proc_read((uint32_t)child, (uint32_t)child, "syscall", &text, NULL) &&
            syscall_place(buf_slice(&text), &sp, &ip)) {
            break;
        }
        clock_sleep_ns(10000000);
    }
    buf_release(&text);
    return child;
}

static void end_sleeper(pid_t child)
{
    kill(child, SIGKILL);
    CHECK(waitpid(child, NULL, 0) == child);
}

static struct str leaf_of(const struct scene *s, const struct wait *wait)
{
    const struct node *node = &s->profile.nodes.at[wait->node];
    return profile_text(&s->profile, s->profile.frames.at[node->frame].name);
}

/* What it waits for is its stack's leaf. */
static void reads_where(void)
{
    struct scene s;
    begin(&s);
    pid_t child = start_sleeper(&s);
    offcpu_look(&s.offcpu, &s.profile, clock_mono_ns());
    offcpu_look(&s.offcpu, &s.profile, clock_mono_ns());
    offcpu_end_window(&s.offcpu, &s.profile, clock_mono_ns());
    end_sleeper(child);
    CHECK_INT(s.profile.waits.len, 1);
    CHECK_STR(leaf_of(&s, &s.profile.waits.at[0]), "[waits: signal]");
    CHECK_INT(s.profile.threads.at[s.profile.waits.at[0].thread].tid, child);
    end(&s);
}

/* Eight short waits are seen; 96 that nobody saw take 1000 ns each. */
static void shares_out(void)
{
    struct scene s;
    begin(&s);
    pid_t child = start_sleeper(&s);
    uint64_t seen_ns = 0;
    for (unsigned i = 0; i < 104; i++) {
        uint64_t from_ns = clock_mono_ns(), until_ns = from_ns + 1000;
        struct record record = {.kind = RECORD_SWITCH,
                                .pid = (uint32_t)child,
                                .tid = (uint32_t)child,
                                .time_ns = from_ns,
                                .as.sched.out = true};
        offcpu_switch(&s.offcpu, &s.profile, &record);
        if (i % 13 == 0) {
            offcpu_look(&s.offcpu, &s.profile, clock_mono_ns());
            until_ns = clock_mono_ns();
            seen_ns += until_ns - from_ns;
        }
        record.time_ns = until_ns;
        record.as.sched.out = false;
        offcpu_switch(&s.offcpu, &s.profile, &record);
    }
    CHECK_INT(waited(&s), seen_ns + 96 * 1000);
    end_sleeper(child);
    CHECK_INT(s.profile.waits.len, 2);
    CHECK_INT(s.profile.waits.at[0].wait_ns, seen_ns);
    CHECK_INT(s.profile.waits.at[1].wait_ns, 96 * 1000);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_STR(leaf_of(&s, &s.profile.waits.at[i]), "[waits: signal]");
    }
    struct wait parent = {.node = s.profile.nodes.at[s.profile.waits.at[1].node].parent};
    CHECK_STR(leaf_of(&s, &parent), "[off-CPU]");
    end(&s);
}

TESTS_THAT_MEASURE({"a thread waits from leaving its CPU to coming back", out_until_in},
      {"a preempted thread does not wait", preempted},
      {"where records are missing nothing is made up", missing_records},
      {"a wait that outlasts the window is counted in both", window_ends},
      {"a thread that ended is forgotten, and no other", ends},
      {"the place where a thread sleeps is read", places},
      {"a thread that slept all the time is found, with what it waits for", reads_where},
      {"waits that nobody saw stand where short ones were seen, below [off-CPU]", shares_out})

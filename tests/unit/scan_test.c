/* Finding processes that begin, among real ones: children of this program come and go. */
#include "capture/follow/scan.h"
#include "base/time.h"
#include "child.h"
#include "os/clock.h"
#include "test.h"

#include <fcntl.h>

static void ids_in_order(void)
{
    CHECK(scan_is_new(100, 105, 101));
    CHECK(scan_is_new(100, 105, 105));
    CHECK(!scan_is_new(100, 105, 100));
    CHECK(!scan_is_new(100, 105, 106));
    /* the ids began again: 32767, then 300 */
    CHECK(scan_is_new(32760, 310, 32767));
    CHECK(scan_is_new(32760, 310, 300));
    CHECK(!scan_is_new(32760, 310, 311));
    CHECK(!scan_is_new(32760, 310, 32760));
    CHECK(!scan_is_new(100, 100, 100)); /* nothing began */
    CHECK(!scan_is_new(0, 105, 101));   /* not known */
    CHECK(!scan_is_new(100, 0, 101));
}

struct run {
    struct world world;
    struct images images;
    struct targets targets;
    struct scan scan;
    uint32_t wanted;        /* the pid that is watched */
    unsigned asked, others; /* how often for it, and for others */
    uint64_t start_ticks;
    enum scan_answer answer;
    uint64_t now_ns;
};

static void begin(struct run *r, enum scan_answer answer)
{
    *r = (struct run){.answer = answer, .now_ns = NS_PER_S};
    r->world = world_here();
    images_init(&r->images, &r->world);
    targets_init(&r->targets, &r->images, false);
    scan_init(&r->scan, &r->targets);
}

static void end(struct run *r)
{
    scan_release(&r->scan);
    targets_release(&r->targets);
    images_release(&r->images);
}

static enum scan_answer ask(void *context, const struct proc_stat *stat, struct scan_known *known)
{
    struct run *r = context;
    CHECK(stat->pid != (uint32_t)getpid());
    CHECK(!stat_is_kernel_thread(stat));
    CHECK_INT(stat->pid, known->pid);
    if (stat->pid != r->wanted) {
        r->others++;
        return SCAN_NEVER;
    }
    r->asked++;
    r->start_ticks = stat->start_ticks;
    if (r->answer == SCAN_TAKEN) {
        targets_begin(&r->targets, stat->pid)->start_ticks = stat->start_ticks;
    }
    known->excluded = r->answer == SCAN_LATER;
    return r->answer;
}

static void look(struct run *r, uint64_t later_ms)
{
    r->now_ns += later_ms * NS_PER_MS;
    scan_round(&r->scan, r->now_ns, ask, r);
}

static void new_ones_alone(void)
{
    struct run r;
    begin(&r, SCAN_NEVER);
    look(&r, 0);
    CHECK(r.scan.round == 1);
    pid_t child = child_that_sleeps();
    r.wanted = (uint32_t)child;
    uint64_t before = r.scan.checks, others = r.others;
    look(&r, 100);
    CHECK_INT(r.asked, 1);
    look(&r, 100);
    look(&r, SCAN_IDLE_MS);
    look(&r, 60000);
    CHECK_INT(r.asked, 1); /* it is remembered, however long */
    /* others may begin meanwhile; those that were there are not read again */
    CHECK(r.scan.checks - before < 20 + r.others - others);
    end(&r);
    end_child(child);
}

/* Goes on when it is told to, and has five children then. */
static pid_t start_many(void)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        raise(SIGSTOP);
        for (unsigned i = 0; i < 5; i++) {
            if (fork() == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                pause();
            }
        }
        for (;;) {
            pause();
        }
    }
    return pid;
}

static void strangers(void)
{
    struct run r;
    begin(&r, SCAN_STRANGER);
    pid_t child = start_many();
    r.wanted = (uint32_t)child;
    CHECK_INT(waitpid(child, NULL, WUNTRACED), child);
    look(&r, 0);
    CHECK_INT(r.asked, 1);
    look(&r, 100); /* by now it is none of those that began just now */
    CHECK_INT(kill(child, SIGCONT), 0);
    uint64_t settled = 0;
    for (unsigned i = 0; i < 200 && settled < 5; i++) {
        clock_sleep_ns(10 * NS_PER_MS);
        look(&r, 100);
        settled = 0;
        vec_each(&r.scan.known, known)
        {
            settled += known->stranger && known->pid != r.wanted && known->checks == 0;
        }
    }
    CHECK(r.scan.last_id == 0 || settled >= 5); /* under an emulator each has a thread, whose id is one, too */
    CHECK_INT(r.asked, 1); /* nor was any of the five asked about */
    end(&r);
    end_child(child);
}

static void taken_ones(void)
{
    struct run r;
    begin(&r, SCAN_TAKEN);
    pid_t child = child_that_sleeps();
    r.wanted = (uint32_t)child;
    look(&r, 0);
    look(&r, 60000);
    CHECK_INT(r.asked, 1); /* it is a target */
    kill(child, SIGKILL);
    siginfo_t info;
    CHECK_INT(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    targets_find(&r.targets, r.wanted)->ended = true; /* as its accounting said */
    r.scan.last_id = r.wanted - 1;
    look(&r, 60000);
    CHECK_INT(r.asked, 1); /* and it is still the same, until it is waited for … */
    CHECK_INT(r.targets.all.len, 1);
    targets_end_window(&r.targets);
    CHECK(targets_find(&r.targets, r.wanted) == NULL);
    r.scan.last_id = r.wanted - 1;
    look(&r, 60000);
    CHECK_INT(r.asked, 1); /* … also when the target was dropped */
    end(&r);
    end_child(child);
}

/* Whom we profile from the start on is no news, round after round. */
static void taken_before_the_first_round(void)
{
    struct run r;
    begin(&r, SCAN_NEVER);
    pid_t child = child_that_sleeps();
    targets_begin(&r.targets, (uint32_t)child);
    scan_note_taken(&r.scan, (uint32_t)child, 1);
    look(&r, 0);
    uint64_t before = r.scan.checks, others = r.others;
    for (unsigned i = 0; i < 15; i++) {
        look(&r, 100);
    }
    CHECK(r.scan.last_id == 0 || r.scan.checks - before < 10 + r.others - others);
    end(&r);
    end_child(child);
}

static void later_ones(void)
{
    struct run r;
    begin(&r, SCAN_LATER);
    pid_t child = child_that_sleeps();
    r.wanted = (uint32_t)child;
    look(&r, 0);
    CHECK_INT(r.asked, 1);
    CHECK_INT(scan_excluded(&r.scan), 1);
    for (unsigned i = 0; i < 100; i++) { /* 10 s: asked after 0.25, 0.75, 1.75, 3.75, 7.75 s, or the round behind */
        look(&r, 100);
    }
    CHECK_INT(r.asked, 6);
    for (unsigned i = 0; i < 600; i++) {
        look(&r, 1000);
    }
    CHECK(r.asked >= 6 + 19 && r.asked <= 6 + 22); /* at most half a minute apart */
    end_child(child);
    look(&r, SCAN_IDLE_MS + 1);
    CHECK_INT(scan_excluded(&r.scan), 1); /* of this window */
    scan_end_window(&r.scan);
    CHECK_INT(scan_excluded(&r.scan), 0);
    CHECK(map_find(&r.scan.by_pid, r.wanted) == NULL);
    end(&r);
}

static struct scan_known *known_of(struct run *r)
{
    return &r->scan.known.at[map_find(&r->scan.by_pid, r->wanted)->value];
}

/* As when a pid is given out again: what is remembered under it, and a target, are of another start. */
static void next_owner(void)
{
    struct run r;
    begin(&r, SCAN_NEVER);
    pid_t child = child_that_sleeps();
    r.wanted = (uint32_t)child;
    look(&r, 0);
    CHECK_INT(r.asked, 1);
    known_of(&r)->start_ticks--;
    r.scan.last_id = r.wanted - 1; /* as if it had been given out since the last list */
    look(&r, 100);
    if (r.scan.last_id == 0) {
        r.scan.list_ns = 0;
        look(&r, 60000);
    }
    CHECK_INT(r.asked, 2);
    r.answer = SCAN_TAKEN;
    known_of(&r)->start_ticks--;
    r.scan.last_id = r.wanted - 1;
    look(&r, 100);
    CHECK_INT(r.asked, 3);
    struct target *old = targets_find(&r.targets, r.wanted);
    old->start_ticks--;
    known_of(&r)->start_ticks--;
    r.scan.last_id = r.wanted - 1;
    look(&r, 100);
    CHECK_INT(r.asked, 4);
    CHECK(old->ended);
    CHECK(targets_find(&r.targets, r.wanted) != old);
    CHECK_INT(targets_find(&r.targets, r.wanted)->start_ticks, r.start_ticks);
    r.scan.last_id = r.wanted - 1;
    look(&r, 100);
    CHECK_INT(r.asked, 4); /* the same process is not asked about */
    end(&r);
    end_child(child);
}

TESTS_THAT_MEASURE({"the ids given out between two lists are known, also where they begin again", ids_in_order},
      {"a process that was looked at is not looked at again", new_ones_alone},
      {"what a stranger starts is not even asked about", strangers},
      {"a target is not asked about, nor when it has ended and was not waited for", taken_ones},
      {"a target that was one before the first round is not read in each", taken_before_the_first_round},
      {"what may change is asked about with growing pauses", later_ones},
      {"a pid that was given out again is another process", next_owner})

/* Whom a catcher of the perf-less sampler holds, at which moments, and what a moment without a sample leaves: a catcher
 * that no timer wakes, and a child of this program that spins. Who holds is another process than its parent. */
#include "base/time.h"
#include "capture/catch/perfless_private.h"
#include "child.h"
#include "os/clock.h"
#include "os/proc.h"
#include "test.h"
#include "unwind/unwind.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

enum { MS = 1000000, US = 1000, HZ = 100, TRIES = 400, DEEP_BYTES = 100 * 1024, BUFFER_BYTES = 512 * 1024 };

/* ---- children ---- */

/* What a child tells. */
struct told {
    volatile uint64_t turns, ready;
    unsigned cpu;
};
static struct told *told;

__attribute__((noinline)) static void spin(void)
{
    for (;;) {
        told->turns++;
    }
}

static void sleep_for_ever(void)
{
    told->turns = 1;
    for (;;) {
        pause();
    }
}

static void spin_below_much(void)
{
    volatile unsigned char large[DEEP_BYTES];
    memset((void *)large, 7, sizeof large);
    spin();
}

static uint64_t own_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* So that its clock and its switches stand still. */
static void run_and_freeze(void)
{
    for (unsigned i = 0; i < 20; i++) {
        clock_sleep_ns(100 * US);
    }
    while (own_cpu_ns() < 100 * MS) {
        told->turns++;
    }
    raise(SIGSTOP);
}

static pid_t child_that(void (*act)(void))
{
    memset((void *)told, 0, sizeof *told);
    CHECK_INT(thread_allowed_cpus(&told->cpu, 1), 1);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)thread_bind(told->cpu, NULL);
        act();
        _exit(0);
    }
    return pid;
}

/* ---- a catcher ---- */

static struct scene {
    pid_t pid;
    struct catch c;
    struct catcher here, there; /* … where the child runs, if it is not on the CPU of the other */
    struct catcher *list[2];
    struct remote remote;
    struct catch_target target;
    struct perfless_process process;
    struct perfless_thread thread;
    struct perfless_cpu *cpu; /* of `here` */
    struct { /* the newest sample, and how many there were */
        unsigned count;
        struct caught caught;
        struct unwind_registers registers;
    } heard;
} scene;

static void hear(void *context, const void *record, size_t len, const struct caught *caught)
{
    struct scene *s = context;
    CHECK(record == NULL && len == 0 && caught->tid == (uint32_t)s->pid);
    s->heard.count++;
    s->heard.caught = *caught;
    CHECK(unwind_registers_of_perf(&s->heard.registers, unwind_perf_mask(), caught_registers(caught)));
}

static void open_catcher(struct catcher *k, unsigned ring, unsigned cpu)
{
    *k = (struct catcher){.owner = &scene.c, .ring = ring, .cpu = cpu, .waker = waker_open()};
    k->hazard = &scene.c.hazards[ring];
    catch_learn_init(&k->learned, false);
    CHECK(catch_plans_init(&k->plans, 4) && catch_buffer_init(&k->buffer, BUFFER_BYTES));
}

/* `afar`: the child's CPU is another one's. */
static void begin(pid_t pid, bool afar)
{
    struct scene *s = &scene;
    *s = (struct scene){.pid = pid, .list = {&s->here, &s->there}};
    s->c = (struct catch){.catchers = s->list,
                          .catcher_count = 2,
                          .hazard_count = 2,
                          .frequency_hz = HZ,
                          .held_registers = unwind_perf_mask()};
    open_catcher(&s->here, 0, afar ? told->cpu + 1 : told->cpu);
    open_catcher(&s->there, 1, afar ? told->cpu : told->cpu + 1);
    CHECK((s->c.perfless = perfless_init(&s->c)) != NULL);
    CHECK(remote_open(&s->remote, (uint32_t)pid, (uintptr_t)told, NULL));
    s->target = (struct catch_target){
        .pid = (uint32_t)pid, .remote = &s->remote, .serial = 1, .stops = true, .stack_bytes = 8192};
    s->process.pid = (uint32_t)pid;
    s->thread = (struct perfless_thread){.process = &s->process, .tid = (uint32_t)pid, .file = -1, .sched = -1};
    s->cpu = perfless_cpu_of(&s->here);
    s->cpu->own_sched = s->cpu->own_schedstat = -1;
    s->here.round.begun_ns = clock_mono_ns();
    CHECK(stop_open(&s->here.stopper));
}

static void close_catcher(struct catcher *k)
{
    catch_plans_release(&k->plans);
    catch_buffer_release(&k->buffer);
    waker_close(k->waker);
}

static void end(void)
{
    struct scene *s = &scene;
    stop_close(&s->here.stopper);
    perfless_free(s->c.perfless);
    remote_close(&s->remote);
    close_catcher(&s->here);
    close_catcher(&s->there);
}

/* One look at the thread; false: it was handed over. */
static bool look(void)
{
    struct scene *s = &scene;
    s->here.round.has_read = false;
    bool stays = perfless_read_if_interrupted(&s->here, &s->target, &s->thread);
    CHECK(catch_settle_stop(&s->here));
    catch_buffer_drain(&s->here.buffer, hear, s);
    return stays;
}

/* On a busy machine a thread may not reach its stop in time. */
static bool look_until_held(void)
{
    struct scene *s = &scene;
    bool stays = true;
    for (unsigned i = 0; i < TRIES && stays && (i == 0 || !s->here.round.has_read); i++) {
        stays = look();
    }
    CHECK(!stays || s->here.round.has_read);
    return stays;
}

static bool is_in_spin(void)
{
    return unwind_ip(&scene.heard.registers) - (uint64_t)(uintptr_t)spin < 256;
}

/* ---- the process that holds ---- */

struct job {
    void (*run)(pid_t pid);
    pid_t pid;
};

static bool do_job(void *context)
{
    const struct job *job = context;
    job->run(job->pid);
    return true;
}

static bool able(void)
{
    const char *why;
    char text[128];
    int fd = proc_open_own_schedstat();
    if (fd < 0 || proc_read_start(fd, text, sizeof text) == 0) {
        test_skip = "the kernel tells no thread's CPU time here";
    } else if (!stop_is_possible(&why)) {
        test_skip = why;
    }
    proc_close(fd);
    told = told != NULL ? told : mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return test_skip == NULL && told != MAP_FAILED;
}

static void wait_until_asleep(uint32_t pid)
{
    char text[1024], state = 0;
    uint32_t cpu;
    int fd = proc_open_thread(pid, pid, "stat");
    for (unsigned i = 0; i < 5000 && state != 'S'; i++) {
        size_t len = proc_read_start(fd, text, sizeof text);
        CHECK(stat_where((struct str){text, len}, &state, &cpu));
        clock_sleep_ns(MS);
    }
    CHECK_INT(state, 'S');
    proc_close(fd);
}

static void beside(void (*act)(void), void (*run)(pid_t pid))
{
    if (!able()) {
        return;
    }
    struct job job = {run, child_that(act)};
    for (unsigned i = 0; i < 2000 && told->turns == 0; i++) {
        clock_sleep_ns(MS);
    }
    if (act == run_and_freeze) {
        CHECK_INT(waitpid(job.pid, NULL, WUNTRACED), job.pid);
    }
    if (act == sleep_for_ever) {
        wait_until_asleep((uint32_t)job.pid);
    }
    in_child(do_job, &job);
    kill(job.pid, SIGKILL);
    CHECK(waitpid(job.pid, NULL, 0) == job.pid);
}

/* ---- from afar ---- */

static void hold_afar(pid_t pid)
{
    struct scene *s = &scene;
    begin(pid, true);
    s->thread.turn_ns = 5 * MS;
    s->thread.pending_ns = 7 * MS;
    CHECK(look_until_held());
    CHECK(s->thread.hops == 0 && s->c.perfless->cpus[1].inbox == NULL);
    CHECK_INT(s->heard.count, 1);
    CHECK(s->heard.caught.verdict == CATCH_PROVEN && s->heard.caught.held_ns > 0 && is_in_spin());
    CHECK_INT(s->heard.caught.weight_ns, 7 * MS);
    s->cpu->active.count = 3; /* it has time for so many */
    s->thread.pending_ns = 1;
    CHECK(look_until_held());
    CHECK_INT(s->heard.count, 2);
    end();
}

static void held_afar(void)
{
    beside(spin, hold_afar);
}

static void be_handed_over(const char *why)
{
    struct scene *s = &scene;
    bool stays = look();
    if (stays || s->thread.hops != 1 || s->c.perfless->cpus[1].inbox != &s->thread || s->heard.count > 0) {
        printf("# %s\n", why);
        test_failures++;
    }
    end();
}

static void begin_afar(pid_t pid)
{
    begin(pid, true);
    scene.thread.turn_ns = 5 * MS;
    scene.thread.pending_ns = 1;
}

static void hand_over(pid_t pid)
{
    struct scene *s = &scene;
    begin_afar(pid);
    s->thread.turn_ns--;
    be_handed_over("its turns are shorter");
    begin_afar(pid);
    s->cpu->active.count = 4;
    be_handed_over("its catcher has too many of them");
    begin_afar(pid);
    s->target.stops = false;
    be_handed_over("it may not be held");
    begin_afar(pid);
    catch_plans_get(&s->here.plans, &s->target, s->thread.tid)->hold_again_ns = s->here.round.begun_ns + 1;
    be_handed_over("a stop has ended a call of it just now");
    begin_afar(pid);
    s->thread.turn_ns--;
    s->thread.hops = PERFLESS_HOPS;
    CHECK(look() && s->c.perfless->cpus[1].inbox == NULL && s->heard.count == 0);
    end();
}

static void handed_over(void)
{
    beside(spin, hand_over);
}

static int text_file(const char *text)
{
    int fd = memfd_create("text", 0);
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    return fd;
}

/* As if it ran, although it sleeps in a call: whoever is held in one has come as far as this. */
static void seem_to_run(void)
{
    char text[256];
    int len = snprintf(text, sizeof text, "1 (a) R");
    for (unsigned field = 4; field < 39; field++) {
        len += snprintf(text + len, sizeof text - (size_t)len, " 0");
    }
    snprintf(text + len, sizeof text - (size_t)len, " %u 0\n", told->cpu);
    struct catch_plan *plan = catch_plans_get(&scene.here.plans, &scene.target, scene.thread.tid);
    plan->stat = text_file(text);
    plan->opened = true;
}

/* Where the catcher waited for a turn to end, who is in a call by then was elsewhere at the tick; from another CPU
 * nothing was waited for. */
static void hold_in_calls(pid_t pid)
{
    for (unsigned afar = 0; afar < 2; afar++) {
        struct scene *s = &scene;
        begin(pid, afar);
        seem_to_run();
        s->thread.turn_ns = 5 * MS;
        s->thread.pending_ns = 3 * MS;
        s->cpu->late_ns = 21 * US;
        CHECK(look_until_held());
        CHECK_INT(s->here.held.call, STOP_IN_CALL);
        CHECK_INT(s->heard.count, afar);
        CHECK_INT(s->cpu->lates, 1 - afar);
        CHECK_INT(s->thread.pending_ns, afar ? 0 : 3 * MS); /* a later sample stands for it */
        end();
    }
}

static void any_moment_afar(void)
{
    beside(sleep_for_ever, hold_in_calls);
}

/* ---- how long turns are ---- */

static void measure_turns(pid_t pid)
{
    struct scene *s = &scene;
    bool ran = true;
    begin(pid, false);
    CHECK(perfless_check(&s->here, &s->thread, &ran) && !ran);
    CHECK_INT(s->thread.turn_ns, 0);
    s->thread.run_ns -= 40 * MS;
    s->thread.slices -= 7;
    CHECK(perfless_check(&s->here, &s->thread, &ran) && ran);
    CHECK_INT(s->thread.turn_ns, 5 * MS); /* seven ended, and the eighth goes on */
    s->thread.run_ns -= 40 * MS;
    CHECK(perfless_check(&s->here, &s->thread, &ran) && ran);
    CHECK_INT(s->thread.turn_ns, 40 * MS);
    s->thread.run_ns -= 40 * MS;
    s->thread.slices++; /* another thread had the id */
    CHECK(perfless_check(&s->here, &s->thread, &ran) && ran);
    CHECK_INT(s->thread.turn_ns, 0);
    proc_close(s->thread.file);
    end();
}

static void lengths_of_turns(void)
{
    beside(run_and_freeze, measure_turns);
}

/* ---- in doubt ---- */

static void come_late(pid_t pid)
{
    struct scene *s = &scene;
    begin(pid, false);
    s->thread.pending_ns = 10 * MS;
    s->cpu->late = true;
    s->cpu->late_ns = 201 * US; /* no system call takes so long */
    for (unsigned i = 0; i < PERFLESS_LATES_MAX; i++) {
        CHECK(look() && !s->here.round.has_read);
    }
    CHECK_INT(s->heard.count, 0);
    CHECK_INT(s->cpu->lates, PERFLESS_LATES_MAX);
    CHECK_INT(s->thread.pending_ns, 10 * MS);
    CHECK(look_until_held()); /* nothing better comes */
    s->thread.pending_ns += 5 * MS;
    s->cpu->lates = 0;
    s->cpu->late_ns = 200 * US; /* the kernel, which may not be interrupted */
    CHECK(look_until_held());
    CHECK_INT(s->heard.count, 2);
    CHECK_INT(s->heard.caught.weight_ns, 5 * MS);
    s->thread.pending_ns = 1;
    s->cpu->late_ns = 201 * US;
    s->here.rank.fifo = true; /* it waits for nobody else */
    CHECK(look_until_held());
    CHECK_INT(s->heard.count, 3);
    CHECK_INT(s->cpu->lates, 0); /* at once, both times */
    end();
}

static void late_catchers(void)
{
    beside(spin, come_late);
}

/* A kernel whose clock stands still between the decision that somebody has to go and his going: a catcher that has not
 * waited at all proves that it is one, and from then on each wait is one for a turn's end. */
static void leave_at_once(pid_t pid)
{
    struct scene *s = &scene;
    begin(pid, false);
    s->thread.pending_ns = 1;
    CHECK(look_until_held());
    CHECK_INT(s->heard.count, 1);
    CHECK(s->cpu->at_once > 1);
    uint8_t rounds = s->cpu->at_once;
    s->thread.pending_ns = 6 * MS;
    s->cpu->late_ns = 1;
    CHECK(look() && !s->here.round.has_read);
    CHECK_INT(s->cpu->at_once, rounds - 1);
    CHECK_INT(s->thread.pending_ns, 6 * MS);
    s->cpu->late_ns = 0;
    CHECK(look_until_held());
    CHECK_INT(s->heard.caught.weight_ns, 6 * MS);
    end();
}

static void who_leaves_at_once(void)
{
    beside(spin, leave_at_once);
}

static void set_last_ran(int fd, const char *text)
{
    CHECK(ftruncate(fd, 0) == 0 && pwrite(fd, text, strlen(text), 0) == (ssize_t)strlen(text));
}

/* Both moments are of the scheduler's clock, and told by files. */
static void doubt(pid_t pid)
{
    struct scene *s = &scene;
    begin(pid, false);
    s->cpu->own_sched = text_file("se.exec_start : 1.000000\n");
    s->thread.sched = text_file("se.exec_start : 1.003001\n");
    s->thread.pending_ns = 10 * MS;
    for (unsigned i = 0; i < 3; i++) {
        CHECK(look() && !s->here.round.has_read); /* his turn had ended before */
    }
    CHECK(s->cpu->doubts && s->cpu->asked);
    CHECK_INT(s->cpu->picked_ns, 1 * MS);
    CHECK(s->cpu->unproven == 3 && s->thread.misses == 3);
    CHECK_INT(s->heard.count, 0);
    CHECK_INT(s->thread.pending_ns, 10 * MS);
    set_last_ran(s->thread.sched, "se.exec_start : 1.003000\n");
    set_last_ran(s->cpu->own_sched, "se.exec_start : 9.000000\n"); /* it was asked this round */
    CHECK(look_until_held());
    CHECK_INT(s->heard.count, 1);
    CHECK_INT(s->heard.caught.weight_ns, 10 * MS);
    CHECK(s->cpu->unproven == 0 && s->thread.misses == 0);
    proc_close(s->cpu->own_sched);
    proc_close(s->thread.sched);
    end();
}

static void who_was_not_interrupted(void)
{
    beside(spin, doubt);
}

/* On a slow machine nothing ever proves who ran. */
static void never_prove(pid_t pid)
{
    struct scene *s = &scene;
    begin(pid, false);
    s->cpu->own_sched = text_file("se.exec_start : 1.000000\n");
    s->thread.sched = text_file("se.exec_start : 5.000000\n");
    s->thread.pending_ns = 10 * MS;
    for (unsigned i = 0; i < PERFLESS_UNPROVEN_MAX; i++) {
        CHECK(look() && !s->here.round.has_read);
    }
    CHECK_INT(s->cpu->unproven, PERFLESS_UNPROVEN_MAX);
    CHECK(look_until_held());
    CHECK_INT(s->heard.count, 1);
    CHECK_INT(s->thread.misses, 0); /* every so many times */
    s->thread.pending_ns = 1;
    CHECK(look() && !s->here.round.has_read);
    CHECK_INT(s->cpu->unproven, PERFLESS_UNPROVEN_MAX);
    proc_close(s->cpu->own_sched);
    proc_close(s->thread.sched);
    end();
}

static void nobody_is_ever_proven(void)
{
    beside(spin, never_prove);
}

/* What costs a sixth of a stop is asked ahead where the round before was in doubt, and only there. */
static void ask_ahead(pid_t pid)
{
    struct scene *s = &scene;
    begin(pid, false);
    s->cpu->own_sched = text_file("se.exec_start : 1.000000\n");
    s->cpu->active.count = 1;
    perfless_ask_ahead(&s->here, false);
    CHECK(!s->cpu->asked && s->cpu->picked_ns == 0);
    s->cpu->doubts = true;
    perfless_ask_ahead(&s->here, true); /* who wakes us has chosen the moment */
    CHECK(!s->cpu->asked && s->cpu->doubts);
    perfless_ask_ahead(&s->here, false);
    CHECK(s->cpu->asked && !s->cpu->doubts);
    CHECK_INT(s->cpu->picked_ns, 1 * MS);
    s->cpu->doubts = true;
    s->cpu->active.count = 0; /* nobody is looked at */
    perfless_ask_ahead(&s->here, false);
    CHECK(!s->cpu->asked && !s->cpu->doubts);
    proc_close(s->cpu->own_sched);
    end();
}

static void asked_ahead(void)
{
    beside(spin, ask_ahead);
}

/* ---- how much of a stack ---- */

/* Of a thread that runs nothing of the runtime: room for its frames is none for its stack. */
static void walk(const void *state, void *plan, const struct runtime_thread *thread, struct memory_batch *memory,
                 struct runtime_stack *out)
{
    (void)state, (void)plan, (void)memory;
    CHECK_INT(thread->tid, scene.thread.tid);
    out->end = RUNTIME_NO_THREAD;
}

static const struct runtime nothing = {.name = "nothing", .walk = walk};

static void take_stacks(pid_t pid)
{
    struct scene *s = &scene;
    begin(pid, false);
    s->thread.pending_ns = 1;
    CHECK(look_until_held());
    CHECK_INT(s->heard.caught.memory_bytes, 8192); /* it goes on behind that */
    CHECK_INT(s->heard.caught.memory_address, unwind_sp(&s->heard.registers));
    s->target.stack_bytes = DEEP_BYTES;
    s->thread.pending_ns = 1;
    CHECK(look_until_held());
    CHECK_INT(s->heard.caught.memory_bytes, DEEP_BYTES);
    s->target.runtime = &nothing;
    s->thread.pending_ns = 1;
    CHECK(look_until_held());
    CHECK_INT(s->heard.caught.memory_bytes, DEEP_BYTES);
    s->target.runtime = NULL;
    s->target.stack_bytes = CATCH_HELD_STACK_MAX;
    s->thread.pending_ns = 1;
    CHECK(look_until_held());
    CHECK(s->heard.caught.memory_bytes > DEEP_BYTES && is_in_spin());
    end();
}

static void as_much_as_was_asked_for(void)
{
    beside(spin_below_much, take_stacks);
}

/* It is cut, and all else of it is whole. */
static void take_little(pid_t pid)
{
    struct scene *s = &scene;
    begin(pid, false);
    catch_buffer_release(&s->here.buffer);
    CHECK(catch_buffer_init(&s->here.buffer, 16 * 1024));
    s->target.stack_bytes = DEEP_BYTES;
    s->target.chains = true;
    s->thread.pending_ns = 1;
    CHECK(look_until_held());
    CHECK_INT(s->heard.count, 1);
    CHECK(s->heard.caught.memory_bytes > 8192 && s->heard.caught.memory_bytes < 16 * 1024 && is_in_spin());
    CHECK(s->heard.caught.bytes <= 16 * 1024);
    CHECK_INT(s->here.tally.lost, 0);
    end();
}

static void no_more_than_there_is_room(void)
{
    beside(spin_below_much, take_little);
}

/* ---- the first look ---- */

static void look_first(pid_t pid)
{
    struct scene *s = &scene;
    bool ran = true;
    begin(pid, false);
    CHECK(perfless_check(&s->here, &s->thread, &ran) && !ran); /* it was there before: nobody knows when it used that */
    CHECK_INT(s->thread.pending_ns + s->thread.early_ns, 0);
    uint64_t used_ns = s->thread.run_ns;
    proc_close(s->thread.file);
    s->thread = (struct perfless_thread){
        .process = &s->process, .tid = (uint32_t)pid, .file = -1, .sched = -1, .is_new = true};
    CHECK(perfless_check(&s->here, &s->thread, &ran) && ran);
    CHECK_INT(s->thread.pending_ns, NS_PER_S / HZ); /* as much as one sample stands for */
    CHECK_INT(s->thread.pending_ns + s->thread.early_ns, used_ns);
    proc_close(s->thread.file);
    end();
}

static void first_looks(void)
{
    beside(run_and_freeze, look_first);
}

static void *run_catcher(void *context)
{
    perfless_run(context);
    return NULL;
}

static void wait_for_rounds(struct catcher *k, uint64_t count)
{
    for (unsigned i = 0; i < 20000 && __atomic_load_n(&k->round.count, __ATOMIC_ACQUIRE) < count; i++) {
        clock_sleep_ns(100 * US);
    }
}

/* Its catcher rests for seconds: it is listed by who publishes it, and looked at in the very next round. */
static void find_at_once(pid_t pid)
{
    struct scene *s = &scene;
    pthread_t thread;
    begin(pid, false);
    s->c.held_registers = 0;
    struct perfless *t = s->c.perfless;
    struct catch_table *table = catch_table_make(&s->target, 1);
    perfless_set_period(t, 20 * NS_PER_S);
    perfless_publish(t, table, clock_mono_ns());
    CHECK(t->cpus[0].inbox != NULL && t->cpus[0].inbox->tid == (uint32_t)pid);
    CHECK(waker_wait(s->there.waker, s->here.waker, 0));
    s->c.table = table;
    CHECK(pthread_create(&thread, NULL, run_catcher, &s->here) == 0);
    wait_for_rounds(&s->here, 1);
    __atomic_store_n(&s->c.stop, true, __ATOMIC_RELEASE);
    waker_set(s->here.waker);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(t->processes.len == 1 && t->processes.at[0]->threads.len == 1);
    CHECK(t->processes.at[0]->threads.at[0]->checked);
    end();
    free(table);
}

static void found_at_once(void)
{
    beside(spin, find_at_once);
}

TESTS_THAT_MEASURE({"a thread that runs for 5 ms at a time is held by its catcher, wherever it runs", held_afar},
      {"one of shorter turns, of a busy catcher, or that may not be held, goes to the catcher of its CPU", handed_over},
      {"from afar any moment is a sample, after a wait no moment in a call is", any_moment_afar},
      {"a thread's turns are as long as its switches tell", lengths_of_turns},
      {"a catcher that came late takes no sample, and a later one stands for the time", late_catchers},
      {"where preempted threads go at once, who waited at all takes no sample", who_leaves_at_once},
      {"who was not interrupted gives no sample, and a later one stands for the time", who_was_not_interrupted},
      {"where nobody is ever proven, a sample is taken now and then", nobody_is_ever_proven},
      {"when we got our CPU is asked ahead where somebody was in doubt, and only there", asked_ahead},
      {"of a held thread's stack as much is read as was asked for, and there is", as_much_as_was_asked_for},
      {"where there is less room its stack is cut, not its registers", no_more_than_there_is_room},
      {"what a new thread used before its first look is not all one sample's", first_looks},
      {"a process is listed as it is published, and looked at in the next round", found_at_once})

/* The kernel's accounting against what is attributed. The processes are real: children of this program that
 * burn CPU time on request. Where perf's counters matter, a struct perf holds a number. */
#include "capture/account/accounting.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/perf_private.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
enum { PERIOD = 10101010, GONE = 0x7ffffff0 };
#define TICK proc_tick_ns()

/* ---- processes that do as they are told ---- */

static uint64_t own_cpu_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

static void burn(unsigned ms)
{
    uint64_t until = own_cpu_ns(CLOCK_THREAD_CPUTIME_ID) + ms * MS;
    while (own_cpu_ns(CLOCK_THREAD_CPUTIME_ID) < until) {
        for (volatile unsigned i = 0; i < 20000; i++) {
        }
    }
}

static void burn_in_kernel(unsigned ms)
{
    int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    static char bytes[1 << 20];
    uint64_t until = own_cpu_ns(CLOCK_THREAD_CPUTIME_ID) + ms * MS;
    while (own_cpu_ns(CLOCK_THREAD_CPUTIME_ID) < until &&
           syscall(SYS_read, fd, bytes, sizeof bytes) > 0) { /* without the sanitizer's own work */
    }
    close(fd);
}

/* A child at the other end of two pipes. It obeys lines of the form "<letter> <number>":
 *   b ms   burn, s ms   burn in the kernel, t ms  burn in a new thread, p ms  end the first thread and
 *   burn in another, k ms  burn in a new thread that stays, i n  start n idle threads, e ms  end them,
 *   have another name and burn,
 *   z ms  leave a zombie that burnt, w ms  wait for a child that burnt, v     wait for all and exit,
 *   f     fork a child that obeys from now on until its "x", x   exit
 * and answers each with a byte: f when the child obeys, and once more when it has ended. */
struct worker {
    pid_t pid;
    int orders, answers;
};

static pid_t thread_tid;

static void *burn_in_thread(void *ms)
{
    thread_tid = gettid();
    burn((unsigned)(uintptr_t)ms);
    return NULL;
}

static void *burn_and_stay(void *ms)
{
    burn((unsigned)(uintptr_t)ms);
    thread_tid = gettid();
    pause();
    return NULL;
}

static pthread_t idle_threads[256];
static unsigned idle_count;

static void *idle(void *context)
{
    pause();
    return context;
}

static int answer_fd;

static void *outlive(void *ms)
{
    clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){0, 50000000}, NULL);
    burn((unsigned)(uintptr_t)ms);
    (void)!write(answer_fd, ".", 1);
    pause();
    return NULL;
}

__attribute__((noreturn)) static void obey(int orders, int answers)
{
    for (;;) {
        char order[16] = "";
        for (size_t i = 0; i < sizeof order - 1 && (i == 0 || order[i - 1] != '\n'); i++) {
            if (read(orders, &order[i], 1) != 1) {
                _exit(0);
            }
        }
        unsigned ms = (unsigned)atoi(order + 2);
        pthread_t thread;
        pid_t child;
        switch (order[0]) {
        case 'b':
            burn(ms);
            break;
        case 's':
            burn_in_kernel(ms);
            break;
        case 't':
            pthread_create(&thread, NULL, burn_in_thread, (void *)(uintptr_t)ms);
            pthread_join(thread, NULL);
            while (syscall(SYS_tkill, thread_tid, 0) == 0) { /* joined is not gone yet */
                usleep(1000);
            }
            break;
        case 'k':
            thread_tid = 0;
            pthread_create(&thread, NULL, burn_and_stay, (void *)(uintptr_t)ms);
            while (*(volatile pid_t *)&thread_tid == 0) {
                usleep(1000);
            }
            break;
        case 'i':
            for (unsigned i = 0; i < ms; i++) {
                pthread_create(&idle_threads[idle_count++], NULL, idle, NULL);
            }
            break;
        case 'p':
            answer_fd = answers;
            pthread_create(&thread, NULL, outlive, (void *)(uintptr_t)ms);
            pthread_exit(NULL);
        case 'e': /* as an exec does: the threads are gone, and the name is another */
            while (idle_count > 0) {
                pthread_cancel(idle_threads[--idle_count]);
                pthread_join(idle_threads[idle_count], NULL);
            }
            prctl(PR_SET_NAME, "after");
            burn(ms);
            break;
        case 'z':
        case 'w':
            child = fork();
            if (child == 0) {
                burn(ms);
                _exit(0);
            }
            CHECK(waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | (order[0] == 'z' ? WNOWAIT : 0)) == 0);
            break;
        case 'f':
            child = fork();
            if (child > 0) {
                waitpid(child, NULL, 0);
            }
            break;
        case 'v':
            while (wait(NULL) > 0) {
            }
            /* fall through */
        default:
            (void)!write(answers, ".", 1);
            _exit(0);
        }
        (void)!write(answers, ".", 1);
    }
}

static struct worker hire(void)
{
    int orders[2], answers[2];
    fflush(stdout);
    CHECK(pipe2(orders, O_CLOEXEC) == 0 && pipe2(answers, O_CLOEXEC) == 0);
    struct worker worker = {.pid = fork(), .orders = orders[1], .answers = answers[0]};
    if (worker.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(orders[1]);
        obey(orders[0], answers[1]);
    }
    close(orders[0]);
    close(answers[1]);
    return worker;
}

static void tell(const struct worker *worker, const char *order, unsigned number)
{
    dprintf(worker->orders, "%s %u\n", order, number);
    char answer;
    CHECK(read(worker->answers, &answer, 1) == 1);
}

static void dismiss(struct worker *worker)
{
    close(worker->orders);
    close(worker->answers);
    kill(worker->pid, SIGKILL);
    CHECK(waitpid(worker->pid, NULL, 0) == worker->pid);
}

static uint32_t child_of(pid_t pid)
{
    char path[64], text[64] = "";
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    for (unsigned i = 0; i < 10000 && text[0] == '\0'; i++) {
        FILE *file = fopen(path, "r");
        if (file == NULL || fgets(text, sizeof text, file) == NULL) {
            usleep(1000);
        }
        if (file != NULL) {
            fclose(file);
        }
    }
    return (uint32_t)atoi(text);
}

/* ---- accounting ---- */

struct fixture {
    struct world world;
    struct images images;
    struct targets targets;
    struct accounting accounting;
    struct profile profile;
    struct perf perf; /* its counters are one number */
};

static void begin(struct fixture *b)
{
    *b = (struct fixture){0};
    b->world = world_here();
    images_init(&b->images, &b->world);
    targets_init(&b->targets, &b->images, false);
    accounting_init(&b->accounting, &b->targets, PERIOD, false);
    CHECK(b->accounting.began_ticks > 0);
    b->accounting.began_ticks = 1; /* as if started before all of the test's processes */
    CHECK(profile_init(&b->profile, 1 << 22, NULL));
    b->perf.sampling.kernel = true;
}

static void end(struct fixture *b)
{
    profile_release(&b->profile);
    accounting_release(&b->accounting);
    targets_release(&b->targets);
    images_release(&b->images);
}

static struct target *follow(struct fixture *b, uint32_t pid, enum capture_mode mode)
{
    struct target *target = targets_get(&b->targets, pid);
    target->capture_mode = (uint8_t)mode;
    target->ended = !accounting_adopt(&b->accounting, target);
    return target;
}

static uint64_t attributed(const struct fixture *b)
{
    return profile_sum(&b->profile).cpu_ns;
}

static uint64_t account(const struct fixture *b, enum account which)
{
    return profile_sum(&b->profile).account_ns[which];
}

static bool near(uint64_t actual, uint64_t expected, uint64_t by)
{
    uint64_t apart = actual > expected ? actual - expected : expected - actual;
    if (apart > by) {
        printf("# %.3f s, expected %.3f s\n", (double)actual / 1e9, (double)expected / 1e9);
    }
    return apart <= by;
}

/* What the kernel tells of it. The sum is exact; how much of it is the system's it finds out by ticks, and of a process
 * that shares its CPU with others most ticks may meet the one or the other. */
static struct cpu_times told_of(const struct worker *worker)
{
    struct proc_stat stat = {0};
    struct buf text;
    buf_init(&text, 4096);
    CHECK(proc_read((uint32_t)worker->pid, 0, "stat", &text, NULL) &&
          stat_parse(buf_slice(&text), &stat, NULL));
    buf_release(&text);
    return (struct cpu_times){.user_ns = stat.utime_ticks * TICK, .system_ns = stat.stime_ticks * TICK};
}

static void look(struct fixture *b)
{
    accounting_discover(&b->accounting, 1);
    accounting_poll(&b->accounting, &b->profile);
}

/* ---- CAPTURE_PROC ---- */

static void since_adoption(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire();
    tell(&worker, "b", 150);
    follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    look(&b);
    CHECK(attributed(&b) <= TICK); /* its life before us is not ours */
    tell(&worker, "b", 200);
    look(&b);
    tell(&worker, "b", 100);
    accounting_close_window(&b.accounting, &b.profile, NULL, 7);
    CHECK(near(attributed(&b), 300 * MS, 3 * TICK));
    CHECK_INT(b.profile.meta.lost_records, 7);
    CHECK_INT(profile_sum(&b.profile).process_cpu_ns, attributed(&b));
    CHECK_INT(profile_sum(&b.profile).count, 0);
    dismiss(&worker);
    end(&b);
}

/* It began when we had begun already, and is dropped when it has ended: its parent does not wait for it yet. */
static void adopted_zombie(void)
{
    struct fixture b;
    begin(&b);
    follow(&b, (uint32_t)getpid(), CAPTURE_PROC);
    struct worker worker = hire();
    follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    tell(&worker, "b", 200);
    tell(&worker, "x", 0);
    for (unsigned i = 1; i <= 4; i++) {
        usleep(20 * 1000);
        accounting_discover(&b.accounting, i * 5000 * MS);
        accounting_poll(&b.accounting, &b.profile);
    }
    accounting_close_window(&b.accounting, &b.profile, NULL, 0);
    CHECK(near(attributed(&b), 200 * MS, 6 * TICK));
    dismiss(&worker);
    end(&b);
}

static void user_and_system(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire();
    follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    tell(&worker, "b", 100);
    tell(&worker, "s", 300);
    look(&b);
    struct cpu_times told = told_of(&worker);
    CHECK(told.user_ns > 0 && told.system_ns > 0);
    CHECK(near(account(&b, ACCOUNT_NATIVE_NO_PERF), told.user_ns, 3 * TICK));
    CHECK(near(account(&b, ACCOUNT_KERNEL_HIDDEN), told.system_ns, 3 * TICK));
    CHECK(near(attributed(&b), 400 * MS, 3 * TICK));
    dismiss(&worker);
    end(&b);
}

static void only_what_runs_stirs(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire();
    (void)follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    tell(&worker, "b", 100);
    look(&b);
    uint64_t ran_ns = b.accounting.stirred_ns;
    CHECK_INT(ran_ns, b.accounting.now_ns);
    for (unsigned i = 0; i < 3; i++) {
        usleep(20 * 1000);
        look(&b);
    }
    CHECK_INT(b.accounting.stirred_ns, ran_ns);
    tell(&worker, "b", 100);
    look(&b);
    CHECK_INT(b.accounting.stirred_ns, b.accounting.now_ns);
    dismiss(&worker);
    end(&b);
}

static void per_thread(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire();
    struct target *target = follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    tell(&worker, "b", 100);
    look(&b);
    tell(&worker, "t", 200); /* has ended when it is looked at */
    look(&b);
    CHECK(near(attributed(&b), 300 * MS, 3 * TICK)); /* ended threads' time is not lost */
    tell(&worker, "p", 150);
    look(&b);
    CHECK(near(attributed(&b), 450 * MS, 4 * TICK));
    uint64_t first = 0, other = 0;
    for (size_t i = 1; i < b.profile.samples.len; i++) {
        uint32_t tid = b.profile.threads.at[b.profile.samples.at[i].thread].tid;
        *(tid == target->pid ? &first : &other) += b.profile.samples.at[i].cpu_ns;
    }
    CHECK(near(other, 150 * MS, 3 * TICK)); /* and a living thread's is its own */
    CHECK(near(first, 300 * MS, 3 * TICK));
    dismiss(&worker);
    end(&b);
}

/* A process that ran before us: what its threads used then is not told of them, and takes nothing from others. */
static void threads_before_us(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire();
    tell(&worker, "k", 200);
    struct target *target = follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    tell(&worker, "b", 100);
    look(&b);
    uint64_t first = 0, other = 0;
    for (size_t i = 1; i < b.profile.samples.len; i++) {
        uint32_t tid = b.profile.threads.at[b.profile.samples.at[i].thread].tid;
        *(tid == target->pid ? &first : &other) += b.profile.samples.at[i].cpu_ns;
    }
    CHECK_INT(other, 0);
    CHECK(near(first, 100 * MS, 3 * TICK));
    dismiss(&worker);
    end(&b);
}

static void many_threads(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire();
    struct target *target = follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    tell(&worker, "i", 100); /* which takes a while, too */
    uint64_t seen = 0, before;
    unsigned looks = 0;
    do { /* fewer looks than it takes to read all threads once, and one more where the last did */
        tell(&worker, "b", 20);
        look(&b);
        before = seen;
        seen = attributed(&b);
    } while (++looks < 5 || seen > before);
    accounting_close_window(&b.accounting, &b.profile, NULL, 0);
    CHECK(looks < 10);
    CHECK(seen < attributed(&b)); /* not all had been shared out … */
    struct cpu_times told = told_of(&worker);
    CHECK(near(attributed(&b), told.user_ns + told.system_ns, 3 * TICK)); /* … but the window's end leaves nothing */
    CHECK_INT(profile_sum(&b.profile).process_cpu_ns, attributed(&b));
    profile_clear(&b.profile);
    targets_end_window(&b.targets);
    tell(&worker, "b", 40);
    look(&b);
    kill(worker.pid, SIGKILL);
    siginfo_t info;
    CHECK_INT(waitid(P_PID, (id_t)worker.pid, &info, WEXITED | WNOWAIT), 0);
    look(&b);
    CHECK(target->ended);
    CHECK(near(attributed(&b), 40 * MS, 2 * TICK)); /* nor does its own */
    dismiss(&worker);
    end(&b);
}

static uint64_t unsampled_of(struct fixture *b, const char *name);

/* Its threads are asked in turn: what waits for that when it becomes another program is not that one's. */
static void many_threads_before_an_exec(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire();
    struct target *target = follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    tell(&worker, "i", 100);
    do { /* of some twenty looks one asks all */
        tell(&worker, "b", 40);
        look(&b);
    } while (target->account.pending_user_ns + target->account.pending_system_ns < 150 * MS);
    tell(&worker, "e", 50);
    while (target->threads_seen > 1) {
        look(&b);
    }
    accounting_close_window(&b.accounting, &b.profile, NULL, 0);
    CHECK(near(unsampled_of(&b, "after"), 50 * MS, 3 * TICK));
    struct cpu_times told = told_of(&worker);
    CHECK(near(attributed(&b), told.user_ns + told.system_ns, 3 * TICK));
    dismiss(&worker);
    end(&b);
}

static void idle_then_busy(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire();
    follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    for (unsigned i = 0; i < 30; i++) {
        look(&b);
    }
    tell(&worker, "b", 50);
    for (unsigned i = 0; i < 10; i++) { /* looked at more rarely, but looked at */
        look(&b);
    }
    CHECK(near(attributed(&b), 50 * MS, 2 * TICK));
    dismiss(&worker);
    end(&b);
}

static void first_thread_ended(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire();
    struct target *target = follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    tell(&worker, "p", 50);
    look(&b);
    CHECK(!target->ended); /* though /proc shows the process as a zombie */
    CHECK(accounting_any_alive(&b.accounting));
    kill(worker.pid, SIGKILL);
    siginfo_t info;
    CHECK_INT(waitid(P_PID, (id_t)worker.pid, &info, WEXITED | WNOWAIT), 0);
    CHECK(!accounting_any_alive(&b.accounting));
    look(&b);
    CHECK(target->ended);
    CHECK(near(attributed(&b), 50 * MS, 3 * TICK));
    dismiss(&worker);
    end(&b);
}

static void children(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire(), stranger = hire();
    follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    tell(&worker, "f", 0);
    uint32_t child = child_of(worker.pid);
    CHECK(child > 0);
    tell(&worker, "b", 120);
    tell(&stranger, "b", 50);
    look(&b);
    struct target *found = targets_find(&b.targets, child);
    CHECK(found != NULL && found->capture_mode == CAPTURE_PROC);
    CHECK(targets_find(&b.targets, (uint32_t)stranger.pid) == NULL);
    CHECK(targets_find(&b.targets, (uint32_t)getpid()) == NULL);
    CHECK(near(attributed(&b), 120 * MS, 3 * TICK));
    dismiss(&stranger);
    dismiss(&worker);
    kill((pid_t)child, SIGKILL);
    end(&b);
}

/* Two generations below the target, each of which burns, ends and is waited for. `seen` tells which
 * are looked at while they live: 1 the child, 2 the grandchild. */
static void generations(unsigned seen)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire();
    follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    look(&b);
    tell(&worker, "f", 0);
    uint32_t child = child_of(worker.pid);
    tell(&worker, "b", 100);
    if (seen & 1) {
        look(&b);
    }
    tell(&worker, "f", 0);
    CHECK(child_of((pid_t)child) > 0);
    tell(&worker, "b", 200);
    if (seen & 2) {
        look(&b);
    }
    tell(&worker, "x", 0); /* the grandchild */
    char answer;
    CHECK(read(worker.answers, &answer, 1) == 1); /* the child has waited for it */
    if (seen & 4) {
        look(&b);
    }
    tell(&worker, "x", 0); /* the child */
    CHECK(read(worker.answers, &answer, 1) == 1);
    look(&b);
    look(&b);
    accounting_close_window(&b.accounting, &b.profile, NULL, 0);
    if (!near(attributed(&b), 300 * MS, 5 * TICK)) {
        CHECK_INT(seen, -1);
    }
    dismiss(&worker);
    end(&b);
}

/* It waited for its child, which takes some microseconds, and by its clock it did not run: what a hypervisor took away
 * meanwhile can be more. */
static void end_that_no_clock_shows(void)
{
    struct fixture b;
    uint64_t cpu_ns = 0;
    begin(&b);
    struct worker worker = hire();
    struct target *target = follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    look(&b);
    tell(&worker, "f", 0);
    tell(&worker, "b", 100);
    look(&b);
    tell(&worker, "x", 0);
    char answer;
    CHECK(read(worker.answers, &answer, 1) == 1);
    for (unsigned i = 0; i < 100 && target->account.clock_ns != cpu_ns; i++) { /* until it sleeps again */
        usleep(1000);
        target->account.clock_ns = cpu_ns;
        CHECK(clock_process_cpu_ns((uint32_t)worker.pid, &cpu_ns));
    }
    for (unsigned i = 0; i < 3; i++) {
        look(&b);
    }
    accounting_close_window(&b.accounting, &b.profile, NULL, 0);
    CHECK(near(attributed(&b), 100 * MS, 3 * TICK));
    dismiss(&worker);
    end(&b);
}

/* What it did between its last reading and its end is its own, though only its parent's times have it. */
static void end_of_a_child(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire();
    follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    tell(&worker, "f", 0);
    uint32_t child = child_of(worker.pid);
    look(&b);
    tell(&worker, "b", 150);
    look(&b);
    usleep(120000); /* as long as it burns below */
    tell(&worker, "b", 100);
    tell(&worker, "x", 0);
    char answer;
    CHECK(read(worker.answers, &answer, 1) == 1); /* its parent has waited for it */
    look(&b);
    accounting_close_window(&b.accounting, &b.profile, NULL, 0);
    CHECK_INT(profile_sum(&b.profile).process_cpu_ns, attributed(&b));
    for (size_t i = 1; i < b.profile.processes.len; i++) {
        const struct process *process = &b.profile.processes.at[i];
        CHECK(near(process->cpu_ns, process->pid == child ? 250 * MS : 0, 3 * TICK));
    }
    dismiss(&worker);
    end(&b);
}

static void every_generation_once(void)
{
    for (unsigned seen = 0; seen < 8; seen++) {
        generations(seen);
    }
}

/* Nobody waits for it, so what others of its parent's children used is not to be held against it. */
static void zombie_that_stays(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire();
    follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    tell(&worker, "z", 150);
    look(&b);
    CHECK(near(attributed(&b), 150 * MS, 2 * TICK));
    look(&b);
    CHECK_INT(b.accounting.zombies.len, 1);
    tell(&worker, "w", 100); /* which nobody sees */
    look(&b);
    CHECK(near(attributed(&b), 250 * MS, 3 * TICK));
    CHECK(near(account(&b, ACCOUNT_LOST), 100 * MS, 2 * TICK));
    tell(&worker, "v", 0);
    CHECK_INT(waitid(P_PID, (id_t)worker.pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
    look(&b);
    CHECK(near(attributed(&b), 250 * MS, 3 * TICK)); /* not a second time when it is waited for at last */
    CHECK_INT(b.accounting.zombies.len, 0);
    dismiss(&worker);
    end(&b);
}

static void children_before_us(void)
{
    struct fixture b;
    struct worker worker = hire();
    tell(&worker, "f", 0);
    uint32_t child = child_of(worker.pid);
    tell(&worker, "b", 400);
    begin(&b);
    b.accounting.began_ticks = UINT64_MAX; /* all of them are older than we */
    follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    look(&b);
    CHECK(attributed(&b) <= TICK);
    tell(&worker, "b", 50);
    look(&b);
    tell(&worker, "x", 0);
    char answer;
    CHECK(read(worker.answers, &answer, 1) == 1);
    CHECK(kill((pid_t)child, 0) != 0); /* the parent's accounting holds all of it now */
    look(&b);
    look(&b);
    CHECK(near(attributed(&b), 50 * MS, 3 * TICK));
    dismiss(&worker);
    end(&b);
}

/* Its next parent, we, waits for it. */
static void zombie_of_an_ended_parent(void)
{
    struct fixture b;
    begin(&b);
    CHECK_INT(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    follow(&b, (uint32_t)getpid(), CAPTURE_PROC);
    struct worker worker = hire();
    follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    tell(&worker, "z", 200);
    look(&b);
    uint64_t told_ns = attributed(&b);
    CHECK(told_ns >= 200 * MS - 2 * TICK);
    dismiss(&worker);
    look(&b);
    CHECK_INT(b.accounting.zombies.len, 1);
    CHECK(wait(NULL) > 0);
    look(&b);
    look(&b);
    CHECK(near(attributed(&b), told_ns, 4 * TICK));
    CHECK_INT(b.accounting.zombies.len, 0);
    CHECK_INT(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
    end(&b);
}

static void zombie_of_before(void)
{
    struct fixture b;
    struct worker worker = hire();
    tell(&worker, "z", 200);
    begin(&b);
    b.accounting.began_ticks = UINT64_MAX; /* both are older than we */
    follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    accounting_discover(&b.accounting, 1);
    accounting_refresh(&b.accounting, 1, false); /* forgets who has ended */
    accounting_poll(&b.accounting, &b.profile);
    CHECK_INT(b.accounting.zombies.len, 1);
    tell(&worker, "v", 0);
    CHECK_INT(waitid(P_PID, (id_t)worker.pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
    look(&b);
    CHECK(attributed(&b) <= 2 * TICK);
    dismiss(&worker);
    end(&b);
}

/* When ids have begun again from the lowest a child may stand before its parent. */
static void child_before_its_parent(void)
{
    struct fixture b;
    struct worker worker = hire();
    tell(&worker, "f", 0);
    begin(&b);
    follow(&b, child_of(worker.pid), CAPTURE_PROC);
    follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    tell(&worker, "b", 200);
    look(&b);
    tell(&worker, "x", 0);
    char answer;
    CHECK(read(worker.answers, &answer, 1) == 1);
    look(&b);
    look(&b);
    CHECK(near(attributed(&b), 200 * MS, 3 * TICK));
    dismiss(&worker);
    end(&b);
}

static void all_processes(void)
{
    struct fixture b;
    begin(&b);
    b.accounting.follow_all = true;
    b.accounting.began_ticks = UINT64_MAX;
    struct worker worker = hire();
    accounting_discover(&b.accounting, 1);
    CHECK(targets_find(&b.targets, (uint32_t)worker.pid) != NULL);
    CHECK(targets_find(&b.targets, (uint32_t)getpid()) == NULL); /* but ourselves */
    accounting_poll(&b.accounting, &b.profile);
    CHECK(attributed(&b) < 1000 * MS); /* not what they used since the machine started */
    dismiss(&worker);
    end(&b);
}

static void windows_add_up(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire();
    follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    uint64_t sum = 0;
    for (unsigned window = 0; window < 5; window++) {
        tell(&worker, "b", 65);
        accounting_close_window(&b.accounting, &b.profile, NULL, 0);
        sum += attributed(&b);
        CHECK_INT(profile_sum(&b.profile).process_cpu_ns, attributed(&b));
        profile_clear(&b.profile);
        targets_end_window(&b.targets);
    }
    CHECK(near(sum, 325 * MS, 3 * TICK)); /* what a tick rounds off is not lost */
    dismiss(&worker);
    end(&b);
}

static void gone(void)
{
    struct fixture b;
    begin(&b);
    struct target *target = targets_get(&b.targets, GONE);
    target->capture_mode = CAPTURE_PROC;
    CHECK(!accounting_adopt(&b.accounting, target));
    CHECK(!accounting_any_alive(&b.accounting));
    look(&b);
    accounting_close_window(&b.accounting, &b.profile, NULL, 0);
    CHECK_INT(attributed(&b), 0);
    end(&b);
}

static void no_proc(void)
{
    struct fixture b;
    begin(&b);
    b.accounting.began_ticks = 0; /* our own could not be read */
    struct target *target = targets_get(&b.targets, GONE);
    target->capture_mode = CAPTURE_PERF;
    CHECK(!accounting_adopt(&b.accounting, target));
    CHECK(!target->ended);
    accounting_close_window(&b.accounting, &b.profile, &b.perf, 0);
    profile_clear(&b.profile);
    targets_end_window(&b.targets);
    CHECK(targets_find(&b.targets, GONE) == target); /* and keeps its mappings */
    CHECK(!accounting_any_alive(&b.accounting));
    end(&b);
}

static void pid_of_another(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire();
    struct target *target = follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    tell(&worker, "b", 100);
    target->start_ticks += 1000; /* what is there now began later: another process */
    look(&b);
    CHECK(target->ended);
    CHECK_INT(attributed(&b), 0);
    dismiss(&worker);
    end(&b);
}

/* Three children that were not read again before somebody waited for them: each has its part of what they used, and
 * not the last one all. */
static void ends_of_several_children(void)
{
    enum { CHILDREN = 3, EACH_MS = 60 };
    struct fixture b;
    struct worker workers[CHILDREN];
    struct target *children[CHILDREN];
    begin(&b);
    (void)follow(&b, (uint32_t)getpid(), CAPTURE_PROC);
    for (unsigned i = 0; i < CHILDREN; i++) {
        workers[i] = hire();
        children[i] = follow(&b, (uint32_t)workers[i].pid, CAPTURE_PROC);
    }
    accounting_poll(&b.accounting, &b.profile);
    for (unsigned i = 0; i < CHILDREN; i++) {
        tell(&workers[i], "b", EACH_MS);
    }
    for (unsigned i = 0; i < CHILDREN; i++) {
        dismiss(&workers[i]);
    }
    accounting_close_window(&b.accounting, &b.profile, NULL, 0);
    for (unsigned i = 0; i < CHILDREN; i++) {
        uint32_t process = targets_process_id(&b.targets, &b.profile, children[i]);
        CHECK(near(b.profile.processes.at[process].cpu_ns, EACH_MS * MS, 3 * TICK));
    }
    end(&b);
}

static uint64_t waited_for_ns(void)
{
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 * MS +
           (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000;
}

/* Each has its time by its own clock, and what its parent's waited-for time has of it, cut to ticks, is that time: some
 * at one look, the rest at a later one, and none of it twice. The kernel tells what they used: an exit alone can take
 * milliseconds. */
static void little_of_many_children(void)
{
    enum { CHILDREN = 12, EACH_MS = 16 };
    struct fixture b;
    begin(&b);
    (void)follow(&b, (uint32_t)getpid(), CAPTURE_PROC);
    uint64_t earlier_ns = waited_for_ns(), before_ns = 0, own_ns = 0;
    CHECK(clock_process_cpu_ns((uint32_t)getpid(), &before_ns));
    for (unsigned i = 0; i < CHILDREN; i++) {
        struct worker worker = hire();
        struct target *child = follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
        earlier_ns += child->account.clock_ns; /* before it was followed */
        tell(&worker, "b", EACH_MS);
        accounting_poll(&b.accounting, &b.profile);
        CHECK(child->account.attributed_ns >= EACH_MS * MS);
        dismiss(&worker);
        accounting_poll(&b.accounting, &b.profile);
        accounting_poll(&b.accounting, &b.profile);
    }
    accounting_close_window(&b.accounting, &b.profile, NULL, 0);
    CHECK(clock_process_cpu_ns((uint32_t)getpid(), &own_ns));
    uint64_t used_ns = waited_for_ns() - earlier_ns + own_ns - before_ns;
    CHECK(near(profile_sum(&b.profile).process_cpu_ns, used_ns, 3 * TICK));
    end(&b);
}

/* ---- with perf ---- */

/* A worker that burnt `user_ms` and `system_ms` within the window, and its accounting. */
static struct target *after_work(struct fixture *b, struct worker *worker, enum capture_mode mode,
                                 unsigned user_ms, unsigned system_ms)
{
    begin(b);
    *worker = hire();
    tell(worker, "b", 60); /* before the window */
    struct target *target = follow(b, (uint32_t)worker->pid, mode);
    tell(worker, "b", user_ms);
    tell(worker, "s", system_ms);
    return target;
}

static void close_accounting(struct fixture *b, struct worker *worker)
{
    accounting_close_window(&b->accounting, &b->profile, &b->perf, 0);
    dismiss(worker);
}

static uint64_t sampled_part(struct fixture *b, struct target *target, uint64_t cpu_ns)
{
    struct frame frame = {.name = profile_cstring(&b->profile, "f"), .kind = FRAME_NATIVE};
    uint32_t node = profile_child(&b->profile, 0, profile_frame(&b->profile, &frame));
    profile_add(&b->profile, targets_thread_id(&b->targets, &b->profile, target, target->pid), node,
                cpu_ns, 1);
    target->account.sampled_ns += cpu_ns;
    return cpu_ns;
}

/* User and system time of the window, as the kernel gave it when it was last asked. */
static uint64_t accounted_ns(const struct target *target)
{
    const struct cpu_times *last = &target->account.last, *before = &target->account.before;
    return last->user_ns + last->system_ns - before->user_ns - before->system_ns;
}

/* Nobody can ask a process that was waited for; the last refresh has. */
static void refreshed(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF, 200, 0);
    sampled_part(&b, target, 185 * MS);
    accounting_refresh(&b.accounting, 1, false);
    CHECK_INT(target->account.read_ns, 1);
    uint64_t accounted = accounted_ns(target);
    target->account.since_read_ns = 10 * MS; /* one sample later than the refresh */
    dismiss(&worker);
    accounting_close_window(&b.accounting, &b.profile, &b.perf, 0);
    CHECK_INT(attributed(&b), accounted + 10 * MS);
    CHECK_INT(attributed(&b), profile_sum(&b.profile).process_cpu_ns);
    end(&b);
}

/* The counters run on in interrupts, as the sampling clock does: 4 % of a busy server. */
static void counters_beyond_the_accounting(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF, 200, 0);
    sampled_part(&b, target, 220 * MS);
    accounting_refresh(&b.accounting, 1, false);
    uint64_t accounted = accounted_ns(target);
    dismiss(&worker);
    targets_exit(&b.targets, target->pid, target->pid, 300 * MS);
    b.perf.ended_count_ns = 290 * MS;
    accounting_close_window(&b.accounting, &b.profile, &b.perf, 0);
    /* a period, and two ticks by which the accounting may be cut, are all that can be missing */
    CHECK(attributed(&b) <= accounted + 31 * MS);
    CHECK(attributed(&b) >= accounted);
    end(&b);
}

/* Nearly all of it kernel code that may not be sampled, after the last reading: the counters have it. */
static void hidden_after_the_refresh(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF_USER, 20, 0);
    accounting_refresh(&b.accounting, 100 * MS, false);
    dismiss(&worker);
    target->ended = true;
    target->ended_ns = 1100 * MS;
    *vec_push(&b.perf.ended) = (struct perf_count){target->pid, 800 * MS};
    b.perf.ended_count_ns = 800 * MS;
    accounting_close_window(&b.accounting, &b.profile, &b.perf, 0);
    CHECK(near(account(&b, ACCOUNT_KERNEL_HIDDEN), 800 * MS, 3 * TICK));
    vec_release(&b.perf.ended);
    end(&b);
}

/* What a refresh costs the kernel grows with the threads. */
static void rarely_refreshed(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF, 50, 0);
    sampled_part(&b, target, 45 * MS);
    accounting_refresh(&b.accounting, 1000 * MS, false);
    CHECK_INT(target->account.read_ns, 1000 * MS);
    target->threads_seen = 2000; /* half a millisecond each: once a second */
    accounting_refresh(&b.accounting, 1999 * MS, false);
    CHECK_INT(target->account.read_ns, 1000 * MS);
    accounting_refresh(&b.accounting, 1999 * MS, true); /* it is about to end */
    CHECK_INT(target->account.read_ns, 1999 * MS);
    CHECK_INT(target->threads_seen, 1); /* as the accounting says */
    target->began_ns = 1000 * MS; /* a sixteenth of its life */
    accounting_refresh(&b.accounting, 2050 * MS, false);
    CHECK_INT(target->account.read_ns, 1999 * MS);
    accounting_refresh(&b.accounting, 2249 * MS, false);
    CHECK_INT(target->account.read_ns, 2249 * MS);
    target->threads_seen = 2000;
    accounting_refresh(&b.accounting, 3249 * MS, false);
    CHECK_INT(target->account.read_ns, 3249 * MS);
    dismiss(&worker);
    end(&b);
}

static void refreshed_while_threads_end(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF, 50, 0);
    sampled_part(&b, target, 45 * MS);
    accounting_refresh(&b.accounting, 1000 * MS, false);
    accounting_refresh(&b.accounting, 1250 * MS, false);
    CHECK_INT(target->account.read_ns, 1000 * MS);
    target->threads_seen = 2000; /* began since then, … */
    target->threads_ended = 1990; /* … and most of them are gone */
    accounting_refresh(&b.accounting, 1750 * MS, false);
    CHECK_INT(target->account.read_ns, 1750 * MS);
    CHECK_INT(target->threads_ended, 0);
    dismiss(&worker);
    end(&b);
}

/* A pool of threads that hardly run each: no samples, and all of it since the last reading would be unknown. */
static void refreshed_without_samples(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF, 100, 0);
    accounting_refresh(&b.accounting, 1000 * MS, false);
    accounting_refresh(&b.accounting, 1250 * MS, false);
    CHECK_INT(target->account.read_ns, 1250 * MS);
    b.accounting.unsampled_ns = 50 * MS; /* sampling was suspended: it is no wonder */
    accounting_refresh(&b.accounting, 1400 * MS, false);
    CHECK_INT(target->account.read_ns, 1250 * MS);
    b.accounting.unsampled_ns = 0;
    target->capture_mode = CAPTURE_PERF_USER; /* kernel code has no samples */
    target->account.last.system_ns += target->account.last.user_ns;
    target->account.last.user_ns = 0;
    accounting_refresh(&b.accounting, 1450 * MS, false);
    CHECK_INT(target->account.read_ns, 1250 * MS);
    target->capture_mode = CAPTURE_PERF;
    sampled_part(&b, target, 90 * MS);
    accounting_refresh(&b.accounting, 1500 * MS, false);
    CHECK_INT(target->account.read_ns, 1250 * MS);
    dismiss(&worker);
    end(&b);
}

static void all_sampled(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF, 200, 0);
    sampled_part(&b, target, 185 * MS); /* less than 15 % below the accounting */
    close_accounting(&b, &worker);
    CHECK_INT(attributed(&b), profile_sum(&b.profile).process_cpu_ns);
    CHECK_INT(account(&b, ACCOUNT_LOST), 0);
    CHECK(near(profile_sum(&b.profile).process_cpu_ns, 200 * MS, 2 * TICK)); /* the kernel's word */
    end(&b);
}

static void partly_lost(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF, 300, 0);
    uint64_t seen = sampled_part(&b, target, 100 * MS);
    close_accounting(&b, &worker);
    CHECK_INT(attributed(&b), profile_sum(&b.profile).process_cpu_ns);
    CHECK_INT(account(&b, ACCOUNT_LOST), attributed(&b) - seen);
    CHECK(near(attributed(&b), 300 * MS, 2 * TICK));
    end(&b);
}

static void kernel_hidden(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF_USER, 100, 300);
    uint64_t system_ns = target->account.before.system_ns;
    sampled_part(&b, target, 20 * MS); /* and most user code was lost */
    b.perf.sampling.kernel = false;
    struct cpu_times told = told_of(&worker);
    uint64_t user_ns = told.user_ns - target->account.before.user_ns;
    close_accounting(&b, &worker);
    CHECK_INT(account(&b, ACCOUNT_KERNEL_HIDDEN), target->account.last.system_ns - system_ns);
    CHECK(near(account(&b, ACCOUNT_KERNEL_HIDDEN), told.system_ns - system_ns, 2 * TICK));
    CHECK(near(account(&b, ACCOUNT_LOST), user_ns > 20 * MS ? user_ns - 20 * MS : 0, 4 * TICK));
    CHECK(near(attributed(&b), 400 * MS, 3 * TICK));
    end(&b);
}

/* Drawn by lot, they stand for all; a few of them for nothing but themselves. */
static void sampled_in_bursts(void)
{
    struct fixture b;
    struct worker worker;
    for (uint32_t samples = 5; samples <= 50; samples += 45) {
        struct target *target = after_work(&b, &worker, CAPTURE_PERF, 300, 0);
        uint64_t seen = sampled_part(&b, target, 100 * MS);
        target->bursts.samples = samples;
        close_accounting(&b, &worker);
        CHECK_INT(attributed(&b), profile_sum(&b.profile).process_cpu_ns);
        CHECK_INT(account(&b, ACCOUNT_LOST), samples < 20 ? attributed(&b) - seen : 0);
        CHECK(near(attributed(&b), 300 * MS, 2 * TICK));
        end(&b);
    }
}

static uint64_t unsampled_of(struct fixture *b, const char *name);
static void note_name(struct fixture *b, struct target *target, const char *name, bool exec, uint64_t time_ns);

/* What few of them do not tell is lost, by the name of then. */
static void sampled_in_bursts_before_an_exec(void)
{
    for (uint32_t samples = 5; samples <= 50; samples += 45) {
        struct fixture b;
        struct worker worker;
        struct target *target = after_work(&b, &worker, CAPTURE_PERF, 300, 0);
        targets_comm(&b.targets, target->pid, target->pid, str_of("before"), true);
        uint64_t seen_ns = sampled_part(&b, target, 100 * MS);
        target->bursts.samples = samples;
        note_name(&b, target, "after", true, clock_mono_ns());
        CHECK(near(unsampled_of(&b, "before"), samples < 20 ? 300 * MS - seen_ns : 0, 2 * TICK));
        if (samples >= 20) { /* now more than it uses */
            tell(&worker, "b", 100);
            (void)sampled_part(&b, target, 200 * MS);
            target->bursts.samples = samples;
        }
        close_accounting(&b, &worker);
        uint64_t before_ns = 0;
        vec_each(&b.profile.samples, sample)
        {
            bool is_before = b.profile.threads.at[sample->thread].name == profile_cstring(&b.profile, "before");
            before_ns += is_before ? sample->cpu_ns : 0;
        }
        CHECK(near(before_ns, 300 * MS, 2 * TICK));
        CHECK(near(account(&b, ACCOUNT_LOST), samples < 20 ? unsampled_of(&b, "before") : 0, MS));
        CHECK(near(attributed(&b), (samples < 20 ? 300 : 400) * MS, 3 * TICK));
        end(&b);
    }
}

/* And was waited for before its record came: nobody can tell what it used until then. */
static void ended_before_its_exec_is_known(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF, 200, 0);
    targets_comm(&b.targets, target->pid, target->pid, str_of("before"), true);
    target->account.since_read_ns = sampled_part(&b, target, 100 * MS);
    target->bursts.samples = 50;
    target->ended_ns = clock_mono_ns();
    target->account.read_ns = target->ended_ns - 100 * MS; /* in the window before */
    target->account.ran_permille = 1000;
    dismiss(&worker);
    note_name(&b, target, "after", true, clock_mono_ns());
    accounting_close_window(&b.accounting, &b.profile, &b.perf, 0);
    uint64_t samples_ns = 0;
    vec_each(&b.profile.samples, sample)
    {
        samples_ns += sample->cpu_ns;
    }
    CHECK(near(samples_ns, profile_sum(&b.profile).process_cpu_ns, MS));
    end(&b);
}

/* Where kernel code may not be sampled they stand for the user's part. */
static void user_sampled_in_bursts(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF_USER, 200, 100);
    uint64_t system_ns = told_of(&worker).system_ns - target->account.before.system_ns;
    (void)sampled_part(&b, target, 500 * MS);
    target->bursts.samples = 50;
    close_accounting(&b, &worker);
    CHECK_INT(attributed(&b), profile_sum(&b.profile).process_cpu_ns);
    CHECK(near(account(&b, ACCOUNT_KERNEL_HIDDEN), system_ns, 2 * TICK));
    CHECK(near(attributed(&b), 300 * MS, 3 * TICK));
    end(&b);
}

static void more_sampled_than_accounted(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF, 30, 0);
    sampled_part(&b, target, 500 * MS);
    close_accounting(&b, &worker);
    CHECK_INT(attributed(&b), profile_sum(&b.profile).process_cpu_ns);
    CHECK_INT(account(&b, ACCOUNT_LOST), 0); /* a negative rest is no huge one */
    end(&b);
}

static void times_gone_back(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF, 30, 0);
    target->account.before.user_ns = UINT64_MAX; /* as if the accounting had been larger */
    target->account.before.system_ns = UINT64_MAX / 2;
    b.accounting.counted_ns = UINT64_MAX; /* and the counters too */
    close_accounting(&b, &worker);
    CHECK_INT(attributed(&b), 0);
    end(&b);
}

static struct target *ended(struct fixture *b, uint32_t pid, uint64_t lived_ns, uint64_t sampled_ns)
{
    targets_fork(&b->targets, pid, pid, GONE, GONE, 1000);
    struct target *target = targets_find(&b->targets, pid);
    target->capture_mode = CAPTURE_PERF;
    if (sampled_ns > 0) {
        sampled_part(b, target, sampled_ns);
    }
    targets_exit(&b->targets, pid, pid, 1000 + lived_ns);
    CHECK(target->ended);
    return target;
}

static void ended_between_samples(void)
{
    struct fixture b;
    begin(&b);
    for (uint32_t i = 1; i <= 10; i++) {
        ended(&b, GONE + i, i == 10 ? 3 * MS : 1 * MS, 0);
    }
    b.perf.ended_count_ns = 6 * MS; /* what the counters say of all of them */
    accounting_close_window(&b.accounting, &b.profile, &b.perf, 0);
    CHECK(near(attributed(&b), 6 * MS, 20)); /* none is dropped, none invented */
    CHECK(near(account(&b, ACCOUNT_LOST), 6 * MS, 20));
    CHECK(near(profile_sum(&b.profile).process_cpu_ns, 6 * MS, 20));
    uint64_t most = 0;
    for (size_t i = 1; i < b.profile.processes.len; i++) {
        uint64_t cpu_ns = b.profile.processes.at[i].cpu_ns;
        most = cpu_ns > most ? cpu_ns : most;
    }
    CHECK(near(most, 1500000, 1000)); /* the one that lived three times as long has three times */
    CHECK_INT(b.accounting.counted_ns, 6 * MS);
    end(&b);
}

/* Hundreds a second that nobody sees are one row and one entry, with all of their time. */
static void unseen_ones_are_folded(void)
{
    struct fixture b;
    begin(&b);
    targets_get(&b.targets, GONE)->capture_mode = CAPTURE_PROC; /* their parent, whom nobody asks here */
    for (uint32_t i = 1; i <= 300; i++) {
        ended(&b, GONE - i, 2 * MS, 0);
    }
    memcpy(ended(&b, GONE - 301, 400 * MS, 0)->name, "other", 6);
    ended(&b, GONE - 302, 900 * MS, 800 * MS);
    accounting_refresh(&b.accounting, 500 * MS, false);
    CHECK_INT(b.targets.aside.len, 302);
    accounting_refresh(&b.accounting, 800 * MS, false); /* their last records may still come */
    CHECK_INT(b.targets.aside.len, 302);
    accounting_refresh(&b.accounting, 3000 * MS, false);
    CHECK_INT(b.targets.aside.len, 3); /* one of each name, and the sampled one */
    b.perf.ended_count_ns = 800 * MS + 300 * MS + 5 * MS;
    accounting_close_window(&b.accounting, &b.profile, &b.perf, 0);
    CHECK(near(attributed(&b), 1105 * MS, 1 * MS));
    CHECK_INT(b.profile.processes.len, 4);
    uint64_t most = 0;
    for (size_t i = 1; i < b.profile.processes.len; i++) {
        const struct process *process = &b.profile.processes.at[i];
        bool other = process->name == profile_cstring(&b.profile, "other");
        if (!other && process->cpu_ns < 700 * MS) {
            most = process->cpu_ns;
        }
        CHECK(!other || near(process->cpu_ns, 5 * MS, 1 * MS)); /* as long as a period */
    }
    CHECK(near(most, 300 * MS, 6 * MS)); /* the last part of a period of the sampled one is in the sum as well */
    targets_end_window(&b.targets);
    CHECK_INT(b.targets.aside.len + b.targets.all.len, 0);
    ended(&b, GONE - 1, 2 * MS, 0); /* the next window folds by itself */
    accounting_refresh(&b.accounting, 4000 * MS, false);
    accounting_refresh(&b.accounting, 6000 * MS, false);
    CHECK_INT(b.targets.aside.len, 1);
    end(&b);
}

/* A compiler's driver that got events of its own (larger copies of stacks): they count for the compiler as well, which
 * inherited them, and whose end is all that is known of this part of the tree. */
static void driver_with_own_events(void)
{
    struct fixture b;
    begin(&b);
    struct target *parent = targets_get(&b.targets, GONE);
    parent->capture_mode = CAPTURE_PROC; /* whom nobody asks here */
    ended(&b, GONE - 1, 2 * MS, 0);
    ended(&b, GONE - 2, 2 * MS, 0)->runtime.followed_ns = 1;
    ended(&b, GONE - 3, 2 * MS, 0);
    ended(&b, GONE - 4, 500 * MS, 200 * MS);
    accounting_refresh(&b.accounting, 500 * MS, false);
    accounting_refresh(&b.accounting, 3000 * MS, false); /* folds those of one name */
    CHECK_INT(b.targets.aside.len, 3);
    *vec_push(&b.perf.ended) = (struct perf_count){GONE - 4, 1 * MS};
    *vec_push(&b.perf.ended) = (struct perf_count){GONE - 2, 450 * MS};
    b.perf.ended_count_ns = 451 * MS;
    accounting_close_window(&b.accounting, &b.profile, &b.perf, 0);
    CHECK(near(attributed(&b), 451 * MS, 1 * MS));
    vec_release(&b.perf.ended);
    end(&b);
}

/* Without perf, what ended has all its time in the profile and is forgotten. */
static void polled_ones_are_forgotten(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire(), older = hire();
    follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    follow(&b, (uint32_t)older.pid, CAPTURE_PROC);
    tell(&worker, "b", 100);
    tell(&older, "b", 50);
    look(&b);
    dismiss(&worker);
    look(&b); /* sees its end */
    look(&b);
    CHECK_INT(b.targets.aside.len, 0);
    CHECK_INT(b.targets.all.len, 1);
    accounting_close_window(&b.accounting, &b.profile, NULL, 0);
    CHECK(near(attributed(&b), 150 * MS, 3 * TICK));
    CHECK_INT(profile_sum(&b.profile).process_cpu_ns, attributed(&b));
    dismiss(&older);
    end(&b);
}

static void ended_with_samples(void)
{
    struct fixture b;
    begin(&b);
    ended(&b, GONE + 1, 900 * MS, 800 * MS);
    ended(&b, GONE + 2, 5 * MS, 0);
    b.perf.ended_count_ns = 805 * MS;
    accounting_close_window(&b.accounting, &b.profile, &b.perf, 0);
    CHECK(near(attributed(&b), 805 * MS, 1 * MS));
    end(&b);
}

static void counters_of_the_window(void)
{
    struct fixture b;
    begin(&b);
    b.perf.ended_count_ns = 5000 * MS; /* of windows before */
    b.accounting.counted_ns = 5000 * MS;
    ended(&b, GONE + 1, 1 * MS, 0);
    b.perf.ended_count_ns += 1 * MS;
    accounting_close_window(&b.accounting, &b.profile, &b.perf, 0);
    CHECK(near(attributed(&b), 1 * MS, 20));
    end(&b);
}

static void idle_target(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire();
    follow(&b, (uint32_t)worker.pid, CAPTURE_PERF);
    close_accounting(&b, &worker);
    CHECK_INT(attributed(&b), 0);
    CHECK_INT(b.profile.processes.len, 1); /* no row for who did nothing */
    end(&b);
}

static void full_profile(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF, 100, 0);
    (void)target;
    b.profile.max_bytes = b.profile.limit_bytes = 0;
    close_accounting(&b, &worker);
    CHECK_INT(b.profile.processes.at[0].cpu_ns, 0); /* "none" stays nothing */
    CHECK(near(attributed(&b), 100 * MS, 2 * TICK)); /* the time is told all the same */
    end(&b);
}

static void mode_changed(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF, 100, 0);
    sampled_part(&b, target, 100 * MS);
    CHECK(accounting_adopt(&b.accounting, target)); /* a set-uid program took the right away */
    target->capture_mode = CAPTURE_PROC;
    tell(&worker, "b", 100);
    close_accounting(&b, &worker);
    CHECK(near(attributed(&b), 200 * MS, 3 * TICK));
    CHECK_INT(profile_sum(&b.profile).process_cpu_ns, attributed(&b));
    end(&b);
}

/* ---- excluded ---- */

static void excluded_without_perf(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire();
    struct target *target = follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    target->filter.excluded = target->filter.skipped = true;
    tell(&worker, "b", 100);
    look(&b);
    tell(&worker, "f", 0);
    CHECK(child_of(worker.pid) > 0);
    look(&b);
    CHECK_INT(b.targets.all.len, 2); /* a child of it is followed: it may fit */
    tell(&worker, "b", 100);
    look(&b);
    tell(&worker, "x", 0);
    char answer;
    CHECK(read(worker.answers, &answer, 1) == 1);
    look(&b);
    CHECK(near(attributed(&b), 100 * MS, 2 * TICK)); /* the child's own; nothing of it stands for the parent */
    target->filter.excluded = false;
    tell(&worker, "b", 150);
    look(&b);
    CHECK(near(attributed(&b), 250 * MS, 4 * TICK));
    CHECK(!target->filter.skipped);
    target->filter.excluded = true;
    tell(&worker, "b", 100);
    accounting_close_window(&b.accounting, &b.profile, NULL, 0);
    CHECK(near(attributed(&b), 250 * MS, 4 * TICK));
    CHECK_INT(profile_sum(&b.profile).process_cpu_ns, attributed(&b));
    dismiss(&worker);
    end(&b);
}

/* One that came of age asleep, and was gone before anybody looked again. */
static void of_age_asleep(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire();
    struct target *target = follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    uint64_t now_ns = clock_mono_ns();
    target->filter.of_age_ns = now_ns + 3600 * NS_PER_S;
    target->filter.skipped = true;
    while (target->account.skipped_polls == 0) {
        look(&b); /* until it sleeps */
    }
    CHECK(target->filter.skipped);
    target->filter.of_age_ns = now_ns;
    for (unsigned i = 0; i < 20; i++) {
        look(&b);
    }
    dismiss(&worker);
    target->ended = true;
    selection_close_window(&b.targets, clock_mono_ns());
    CHECK(!target->filter.skipped);
    end(&b);
}

static void excluded_on_perf(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF, 200, 0);
    target->filter.excluded = target->filter.skipped = true;
    target->filter.excluded_ns = 190 * MS;
    close_accounting(&b, &worker);
    CHECK_INT(attributed(&b), 0);
    CHECK_INT(b.profile.processes.len, 1); /* it has no row */
    end(&b);
}

/* An exec changed the answer: what was dropped is taken off the accounting, and the rest is the samples'. */
static void excluded_for_a_part(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF, 300, 0);
    target->filter.excluded_ns = 100 * MS;
    sampled_part(&b, target, 195 * MS);
    close_accounting(&b, &worker);
    CHECK(near(attributed(&b), 200 * MS, 2 * TICK));
    CHECK_INT(profile_sum(&b.profile).process_cpu_ns, attributed(&b));
    CHECK_INT(account(&b, ACCOUNT_LOST), 0);
    end(&b);
}

/* Two that ended unseen, one of them excluded: what the counters have goes to both by their samples, so that
 * the other one gets no more than its own. */
static void excluded_and_ended(void)
{
    struct fixture b;
    begin(&b);
    struct target *in = targets_get(&b.targets, GONE), *out = targets_get(&b.targets, GONE + 1);
    in->capture_mode = out->capture_mode = CAPTURE_PERF;
    in->ended = out->ended = true;
    out->filter.excluded = out->filter.skipped = true;
    out->filter.excluded_ns = 300 * MS;
    sampled_part(&b, in, 100 * MS);
    b.perf.ended_count_ns = 440 * MS; /* a tenth more than was sampled */
    accounting_close_window(&b.accounting, &b.profile, &b.perf, 0);
    /* 40 ms more than was sampled: a period's tail for each, and a quarter of the rest for 100 of 400 ms */
    CHECK(near(attributed(&b), 115 * MS, MS));
    CHECK_INT(profile_sum(&b.profile).process_cpu_ns, attributed(&b));
    end(&b);
}

static struct target *child_on_perf(struct fixture *b, uint32_t pid, uint32_t parent, uint64_t time_ns)
{
    targets_fork(&b->targets, pid, pid, parent, parent, time_ns);
    struct target *child = targets_find(&b->targets, pid);
    child->capture_mode = CAPTURE_PERF;
    return child;
}

static uint64_t cpu_of(struct fixture *b, const char *name)
{
    uint64_t sum = 0;
    for (size_t i = 1; i < b->profile.processes.len; i++) {
        const struct process *process = &b->profile.processes.at[i];
        sum += process->name == profile_cstring(&b->profile, name) ? process->cpu_ns : 0;
    }
    return sum;
}

/* `for …; do sh -c 'burn; true'; done`: the shells hardly run, and are forgotten while what they started is not. */
static void middle_ones_forgotten(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire();
    struct target *root = follow(&b, (uint32_t)worker.pid, CAPTURE_PERF);
    for (uint32_t i = 0; i < 10; i++) {
        uint32_t shell = GONE - 2 * i - 1, burner = GONE - 2 * i - 2;
        uint64_t time_ns = (1 + i * 100) * MS;
        memcpy(child_on_perf(&b, shell, root->pid, time_ns)->name, "shell", 6);
        struct target *child = child_on_perf(&b, burner, shell, time_ns + MS);
        memcpy(child->name, "burner", 7);
        sampled_part(&b, child, 90 * MS);
        targets_exit(&b.targets, burner, burner, time_ns + 98 * MS);
        targets_exit(&b.targets, shell, shell, time_ns + 99 * MS);
    }
    accounting_refresh(&b.accounting, 1500 * MS, false);
    accounting_refresh(&b.accounting, 10000 * MS, false);
    CHECK(b.targets.aside.len < 20); /* shells are gone */
    *vec_push(&b.perf.ended) = (struct perf_count){root->pid, 980 * MS};
    b.perf.ended_count_ns = 980 * MS; /* 10 of it: what the root did, which the kernel's times do not have */
    accounting_close_window(&b.accounting, &b.profile, &b.perf, 0);
    CHECK(cpu_of(&b, "burner") >= 900 * MS && cpu_of(&b, "burner") <= 971 * MS); /* lived 97 each */
    CHECK(cpu_of(&b, "shell") > 10 * MS);
    CHECK(near(profile_sum(&b.profile).process_cpu_ns, 975 * MS, 10 * MS));
    CHECK_INT(attributed(&b), profile_sum(&b.profile).process_cpu_ns);
    vec_release(&b.perf.ended);
    dismiss(&worker);
    end(&b);
}

/* A pool's threads end: the kernel's times have what that took, their events do not. It is not what the children, too
 * short for a sample, did not use. */
static void ends_outside_of_events(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire();
    struct target *root = follow(&b, (uint32_t)worker.pid, CAPTURE_PERF);
    tell(&worker, "b", 300);
    for (uint32_t i = 0; i < 15; i++) {
        memcpy(child_on_perf(&b, GONE - i, root->pid, (1 + i * 20) * MS)->name, "child", 6);
        targets_exit(&b.targets, GONE - i, GONE - i, (13 + i * 20) * MS);
    }
    *vec_push(&b.perf.ended) = (struct perf_count){root->pid, 350 * MS, 200 * MS, true};
    b.perf.ended_count_ns = 350 * MS;
    accounting_close_window(&b.accounting, &b.profile, &b.perf, 0);
    CHECK(near(cpu_of(&b, "child"), 150 * MS, 5 * MS));
    CHECK(near(attributed(&b), 450 * MS, 3 * TICK));
    vec_release(&b.perf.ended);
    dismiss(&worker);
    end(&b);
}

/* Events of its own came in the place of inherited ones, when a part of the window was over. */
static void own_events_of_a_part(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire();
    struct target *target = follow(&b, (uint32_t)worker.pid, CAPTURE_PERF);
    target->began_ns = 1;
    tell(&worker, "b", 300);
    memcpy(child_on_perf(&b, GONE, target->pid, 100 * MS)->name, "child", 6);
    targets_exit(&b.targets, GONE, GONE, 400 * MS);
    *vec_push(&b.perf.ended) = (struct perf_count){target->pid, 310 * MS, 100 * MS, true};
    b.perf.ended_count_ns = 310 * MS;
    accounting_close_window(&b.accounting, &b.profile, &b.perf, 0);
    CHECK(cpu_of(&b, "child") <= 10 * MS);
    vec_release(&b.perf.ended);
    dismiss(&worker);
    end(&b);
}

static uint64_t unsampled_of(struct fixture *b, const char *name)
{
    uint64_t sum = 0;
    vec_each(&b->profile.samples, sample)
    {
        bool named = b->profile.threads.at[sample->thread].name == profile_cstring(&b->profile, name);
        sum += named && sample->count == 0 ? sample->cpu_ns : 0;
    }
    return sum;
}

static void note_name(struct fixture *b, struct target *target, const char *name, bool exec, uint64_t time_ns)
{
    struct record record = {.kind = RECORD_COMM, .pid = target->pid, .tid = target->pid, .time_ns = time_ns};
    record.as.comm.name = str_of(name);
    record.as.comm.exec = exec;
    accounting_note_rename(&b->accounting, &b->profile, &record);
    targets_comm(&b->targets, target->pid, target->pid, record.as.comm.name, exec);
}

/* "before", which used 200 ms by threads that are each too short for a sample. */
static struct target *pool_of_short_threads(struct fixture *b, struct worker *worker, unsigned lived_ms)
{
    struct target *target = after_work(b, worker, CAPTURE_PERF, 200, 0);
    targets_comm(&b->targets, target->pid, target->pid, str_of("before"), false);
    target->threads_seen = 40;
    target->began_ns = clock_mono_ns() - lived_ms * MS;
    return target;
}

/* Then it is another program: each name has its own. */
static void threads_before_an_exec(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = pool_of_short_threads(&b, &worker, 100);
    note_name(&b, target, "after", true, clock_mono_ns());
    note_name(&b, target, "last", true, clock_mono_ns()); /* to the next one nothing is left */
    CHECK(near(unsampled_of(&b, "before"), 200 * MS, 3 * TICK));
    CHECK_INT(unsampled_of(&b, "after") + unsampled_of(&b, "last"), 0);
    close_accounting(&b, &worker);
    CHECK(near(cpu_of(&b, "last"), 200 * MS, 3 * TICK));
    CHECK_INT(attributed(&b), profile_sum(&b.profile).process_cpu_ns);
    end(&b);
}

/* A name alone, without an exec; not again so soon after a reading, nor for the name that it has. */
static void threads_before_a_rename(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = pool_of_short_threads(&b, &worker, 100);
    note_name(&b, target, "before", false, clock_mono_ns());
    CHECK_INT(target->account.read_ns, 0);
    note_name(&b, target, "after", false, clock_mono_ns());
    CHECK(near(unsampled_of(&b, "before"), 200 * MS, 3 * TICK));
    uint64_t read_ns = target->account.read_ns;
    note_name(&b, target, "last", false, clock_mono_ns());
    CHECK_INT(target->account.read_ns, read_ns);
    dismiss(&worker);
    end(&b);
}

/* Samples tell a part of it, and what they miss is more than they are off by; but not where they stand for all. */
static void sampled_before_a_rename(void)
{
    for (unsigned seldom = 0; seldom < 2; seldom++) {
        struct fixture b;
        struct worker worker;
        struct target *target = after_work(&b, &worker, CAPTURE_PERF, 200, 0);
        targets_comm(&b.targets, target->pid, target->pid, str_of("before"), false);
        sampled_part(&b, target, 120 * MS);
        b.accounting.unsampled_ns = seldom == 1 ? 100 * MS : 0;
        note_name(&b, target, "after", true, clock_mono_ns());
        CHECK(near(unsampled_of(&b, "before"), seldom == 1 ? 0 : 80 * MS, TICK));
        dismiss(&worker);
        end(&b);
    }
}

/* The record of it is read later, and what it became may have run since. */
static void told_late_of_an_exec(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = pool_of_short_threads(&b, &worker, 400);
    note_name(&b, target, "after", true, clock_mono_ns() - 120 * MS); /* 280 of 400 ms of its life */
    CHECK(near(unsampled_of(&b, "before"), 140 * MS, TICK));
    dismiss(&worker);
    end(&b);
}

/* What it used in the window before is no part of this one. */
static void threads_of_an_earlier_window(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF, 200, 0);
    CHECK(accounting_adopt(&b.accounting, target));
    note_name(&b, target, "after", true, clock_mono_ns());
    CHECK_INT(account(&b, ACCOUNT_LOST), 0);
    dismiss(&worker);
    end(&b);
}

/* It lived for a millisecond, with four threads on two CPUs. */
static void short_with_threads(void)
{
    struct fixture b;
    begin(&b);
    struct target *target = child_on_perf(&b, GONE - 1, GONE, 1 * MS);
    target->threads_seen = 4;
    targets_exit(&b.targets, GONE - 1, GONE - 1, 2 * MS);
    b.perf.ended_count_ns = 2 * MS;
    accounting_close_window(&b.accounting, &b.profile, &b.perf, 0);
    CHECK_INT(profile_sum(&b.profile).process_cpu_ns, 2 * MS);
    end(&b);
}

/* A shell that lives as long as the child that it waits for, both without a sample: what they used is the child's. */
static void waits_for_its_child(void)
{
    struct fixture b;
    begin(&b);
    struct target *shell = child_on_perf(&b, GONE - 1, GONE, 1 * MS);
    targets_fork(&b.targets, GONE - 2, GONE - 2, GONE - 1, GONE - 1, 2 * MS);
    targets_exit(&b.targets, GONE - 2, GONE - 2, 11 * MS);
    targets_exit(&b.targets, GONE - 1, GONE - 1, 12 * MS);
    CHECK_INT(shell->account.waited.ns, 9 * MS);
    b.perf.ended_count_ns = 10 * MS;
    accounting_close_window(&b.accounting, &b.profile, &b.perf, 0);
    CHECK(near(b.profile.processes.at[targets_process_id(&b.targets, &b.profile, shell)].cpu_ns, 2 * MS, MS / 2));
    CHECK(near(profile_sum(&b.profile).process_cpu_ns, 10 * MS, 10));
    end(&b);
}

/* An ancestor that lives, as /proc has it: it used nothing, and what it waited for used `waited_ms`. Nobody reads it
 * again. */
static struct target *ancestor_of(struct fixture *b, unsigned waited_ms)
{
    struct target *ancestor = child_on_perf(b, GONE - 3, GONE, 1 * MS);
    ancestor->account.last.children_ns = waited_ms * MS;
    ancestor->account.read_ns = 2 * MS;
    b->accounting.follows_all = true;
    return ancestor;
}

/* The kernel takes a part of each start and end out of the events; who waited has it. */
static void what_events_miss(void)
{
    struct fixture b;
    begin(&b);
    (void)ancestor_of(&b, 40);
    targets_fork(&b.targets, GONE - 4, GONE - 4, GONE - 3, GONE - 3, 10 * MS);
    targets_exit(&b.targets, GONE - 4, GONE - 4, 12 * MS);
    b.perf.ended_count_ns = 25 * MS;
    accounting_close_window(&b.accounting, &b.profile, &b.perf, 0);
    CHECK(near(profile_sum(&b.profile).process_cpu_ns, 40 * MS, 10));
    CHECK_INT(b.accounting.accounted_ns, 40 * MS);
    end(&b);
}

/* Told when it ended; waited for a window later. */
static void waited_for_late(void)
{
    struct fixture b;
    begin(&b);
    struct target *ancestor = ancestor_of(&b, 0);
    ancestor->account.lifetime_ns = 0;
    b.accounting.accounted_ns = 40 * MS; /* in earlier windows */
    ancestor->account.last.children_ns = 50 * MS;
    targets_fork(&b.targets, GONE - 4, GONE - 4, GONE - 3, GONE - 3, 10 * MS);
    targets_exit(&b.targets, GONE - 4, GONE - 4, 12 * MS);
    b.perf.ended_count_ns = 2 * MS;
    accounting_close_window(&b.accounting, &b.profile, &b.perf, 0);
    CHECK(near(profile_sum(&b.profile).process_cpu_ns, 10 * MS, 10));
    end(&b);
}

/* A child that ran long before it was followed; and a parent whose earlier children are not followed. */
static void waited_for_of_before(void)
{
    for (unsigned follows_all = 0; follows_all < 2; follows_all++) {
        struct fixture b;
        begin(&b);
        (void)ancestor_of(&b, 500);
        b.accounting.follows_all = follows_all == 1;
        struct target *child = child_on_perf(&b, GONE - 4, GONE - 3, 10 * MS);
        child->account.lifetime_ns = follows_all == 1 ? 480 * MS : 0;
        targets_exit(&b.targets, GONE - 4, GONE - 4, 12 * MS);
        b.perf.ended_count_ns = 2 * MS;
        accounting_close_window(&b.accounting, &b.profile, &b.perf, 0);
        CHECK(near(profile_sum(&b.profile).process_cpu_ns, follows_all == 1 ? 20 * MS : 2 * MS, 10));
        end(&b);
    }
}

/* One that outlives its parent is not waited for. */
static void outlives_its_parent(void)
{
    struct fixture b;
    begin(&b);
    struct target *parent = child_on_perf(&b, GONE - 1, GONE, 1 * MS);
    targets_fork(&b.targets, GONE - 2, GONE - 2, GONE - 1, GONE - 1, 2 * MS);
    targets_exit(&b.targets, GONE - 1, GONE - 1, 11 * MS);
    targets_exit(&b.targets, GONE - 2, GONE - 2, 12 * MS);
    CHECK_INT(parent->account.waited.ns, 0);
    end(&b);
}

/* A pool of a hundred threads ends half as long after its reading as it ran before: it did the same since, and not what
 * a hundred periods are. */
static void pool_goes_on_as_it_did(void)
{
    struct fixture b;
    begin(&b);
    b.accounting.processors = 2;
    struct target *pool = child_on_perf(&b, GONE - 1, GONE, 1 * MS);
    struct target *other = child_on_perf(&b, GONE - 2, GONE, 290 * MS);
    pool->threads_seen = 100;
    pool->account.last.user_ns = 40 * MS;
    pool->account.read_ns = 201 * MS;
    pool->account.ran_permille = 200;
    targets_exit(&b.targets, GONE - 1, GONE - 1, 301 * MS);
    targets_exit(&b.targets, GONE - 2, GONE - 2, 301 * MS);
    b.perf.ended_count_ns = 70 * MS;
    accounting_close_window(&b.accounting, &b.profile, &b.perf, 0);
    CHECK(near(b.profile.processes.at[targets_process_id(&b.targets, &b.profile, pool)].cpu_ns, 60 * MS, MS));
    CHECK(near(b.profile.processes.at[targets_process_id(&b.targets, &b.profile, other)].cpu_ns, 10 * MS, MS));
    end(&b);
}

/* What /proc cuts to ticks is known to the process's clock: two readings of little work miss nothing between them. */
static void times_are_exact(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF, 4, 0);
    uint64_t before_ns = 0, after_ns = 0, read_ns = 0;
    CHECK(clock_process_cpu_ns(target->pid, &before_ns));
    CHECK(accounting_cpu_time(&b.accounting, target, &read_ns));
    CHECK(clock_process_cpu_ns(target->pid, &after_ns));
    CHECK(before_ns <= read_ns && read_ns <= after_ns);
    dismiss(&worker);
    end(&b);
}

/* It ended with less than a period, and its parent has not waited yet: the next window knows nothing of it. */
static void little_of_a_zombie(void)
{
    struct fixture b;
    struct worker worker;
    (void)after_work(&b, &worker, CAPTURE_PERF, 5, 0);
    tell(&worker, "x", 0);
    siginfo_t info;
    CHECK(waitid(P_PID, (id_t)worker.pid, &info, WEXITED | WNOWAIT) == 0);
    close_accounting(&b, &worker);
    CHECK(near(profile_sum(&b.profile).process_cpu_ns, 5 * MS, 4 * MS));
    end(&b);
}

static void ended_unread(void)
{
    struct fixture b;
    begin(&b);
    struct target *target = child_on_perf(&b, GONE - 1, GONE, 1 * MS);
    sampled_part(&b, target, 40 * MS);
    targets_exit(&b.targets, GONE - 1, GONE - 1, 101 * MS);
    b.perf.ended_count_ns = 100 * MS;
    accounting_close_window(&b.accounting, &b.profile, &b.perf, 1);
    CHECK(near(profile_sum(&b.profile).process_cpu_ns, 100 * MS, MS));
    CHECK(near(account(&b, ACCOUNT_LOST), 60 * MS, MS));
    end(&b);
}

/* Of a thousand threads that hardly run none has a sample; a busy one beside them does not stand for them. */
static void pool_of_threads(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF, 300, 0);
    target->threads_seen = 1000;
    uint64_t seen = sampled_part(&b, target, 200 * MS); /* of the busy one */
    close_accounting(&b, &worker);
    CHECK_INT(attributed(&b), profile_sum(&b.profile).process_cpu_ns);
    CHECK_INT(account(&b, ACCOUNT_LOST), attributed(&b) - seen);
    CHECK(near(attributed(&b), 300 * MS, 2 * TICK));
    end(&b);
}

static void more_than_there_was(void)
{
    struct fixture b;
    struct worker worker;
    (void)after_work(&b, &worker, CAPTURE_PERF, 200, 0);
    close_accounting(&b, &worker);
    CHECK_INT(accounting_excess_ns(&b.accounting, &b.profile, 300 * MS), 0);
    CHECK_INT(accounting_excess_ns(&b.accounting, &b.profile, profile_sum(&b.profile).process_cpu_ns), 0);
    CHECK(accounting_excess_ns(&b.accounting, &b.profile, 100 * MS) > 40 * MS);
    end(&b);
}

/* It found a descriptor in mid-window. */
static void events_begin(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire();
    struct target *target = follow(&b, (uint32_t)worker.pid, CAPTURE_PROC);
    tell(&worker, "b", 100);
    look(&b);
    tell(&worker, "b", 50);
    accounting_begin_events(&b.accounting, &b.profile, target);
    target->capture_mode = CAPTURE_PERF;
    uint64_t polled = account(&b, ACCOUNT_NATIVE_NO_PERF) + account(&b, ACCOUNT_KERNEL_HIDDEN);
    CHECK(near(polled, 150 * MS, 3 * TICK));
    tell(&worker, "b", 200);
    accounting_close_window(&b.accounting, &b.profile, &b.perf, 0);
    CHECK(near(account(&b, ACCOUNT_LOST), 200 * MS, 3 * TICK)); /* no sample came here */
    CHECK(near(attributed(&b), 350 * MS, 3 * TICK));
    CHECK_INT(profile_sum(&b.profile).process_cpu_ns, attributed(&b));
    dismiss(&worker);
    end(&b);
}

/* Its threads are too short for perf's samples: its runtime's take their place in mid-window. */
static void runtime_in_place_of_perf(uint64_t timed_ms, uint64_t lost_ms)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF, 300, 0);
    sampled_part(&b, target, 20 * MS);
    CHECK(accounting_end_events(&b.accounting, &b.profile, target));
    target->capture_mode = CAPTURE_RUNTIME;
    tell(&worker, "b", 300);
    look(&b);
    sampled_part(&b, target, timed_ms * MS);
    close_accounting(&b, &worker);
    CHECK(near(attributed(&b), 600 * MS, 3 * TICK));
    CHECK_INT(account(&b, ACCOUNT_NATIVE_NO_PERF), 0);
    CHECK(near(account(&b, ACCOUNT_LOST), lost_ms * MS, 3 * TICK));
    CHECK(near(profile_sum(&b.profile).process_cpu_ns, attributed(&b), MS));
    end(&b);
}

/* Perf's samples of short threads are of their last moments. */
static void few_are_forgotten(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF, 100, 0);
    sampled_part(&b, target, 40 * MS);
    CHECK(accounting_end_events(&b.accounting, &b.profile, target));
    CHECK_INT(attributed(&b), 0);
    CHECK_INT(target->account.sampled_ns, 0);
    dismiss(&worker);
    end(&b);
    target = after_work(&b, &worker, CAPTURE_PERF, 100, 0);
    sampled_part(&b, target, 80 * MS);
    CHECK(accounting_end_events(&b.accounting, &b.profile, target));
    CHECK_INT(target->account.sampled_ns, 80 * MS);
    dismiss(&worker);
    end(&b);
}

static void enough_stand_for_all(void)
{
    runtime_in_place_of_perf(280, 0);
}

static void too_few_do_not(void)
{
    runtime_in_place_of_perf(150, 600 - 150);
}

/* After some minutes perf has another try. */
static void perf_in_place_of_runtime(void)
{
    struct fixture b;
    begin(&b);
    struct worker worker = hire();
    struct target *target = follow(&b, (uint32_t)worker.pid, CAPTURE_RUNTIME);
    tell(&worker, "b", 200);
    look(&b);
    sampled_part(&b, target, 150 * MS);
    accounting_begin_events(&b.accounting, &b.profile, target);
    target->capture_mode = CAPTURE_PERF;
    tell(&worker, "b", 200);
    sampled_part(&b, target, 210 * MS);
    CHECK(accounting_end_events(&b.accounting, &b.profile, target));
    target->capture_mode = CAPTURE_RUNTIME;
    tell(&worker, "b", 300);
    look(&b);
    sampled_part(&b, target, 310 * MS);
    close_accounting(&b, &worker);
    CHECK(near(attributed(&b), 700 * MS, 4 * TICK));
    CHECK_INT(account(&b, ACCOUNT_NATIVE_NO_PERF) + account(&b, ACCOUNT_LOST), 0);
    CHECK(near(profile_sum(&b.profile).process_cpu_ns, attributed(&b), MS));
    end(&b);
}

/* In a session with perf one that had no events has a runtime after all. */
static void runtime_of_a_polled_one(void)
{
    struct fixture b;
    struct worker worker;
    struct target *target = after_work(&b, &worker, CAPTURE_PERF, 100, 0);
    sampled_part(&b, target, 100 * MS);
    CHECK(accounting_adopt(&b.accounting, target));
    target->capture_mode = CAPTURE_PROC;
    tell(&worker, "b", 100);
    look(&b);
    CHECK(accounting_end_events(&b.accounting, &b.profile, target));
    target->capture_mode = CAPTURE_RUNTIME;
    tell(&worker, "b", 100);
    look(&b);
    sampled_part(&b, target, 100 * MS);
    close_accounting(&b, &worker);
    CHECK(near(attributed(&b), 300 * MS, 4 * TICK));
    CHECK(near(profile_sum(&b.profile).process_cpu_ns, attributed(&b), MS));
    end(&b);
}

TESTS_THAT_MEASURE({"processes whose ancestors are forgotten count once", middle_ones_forgotten},
      {"what ended unread has what its tree's counters say", ended_unread},
      {"what lived for a moment may have used it once for each thread", short_with_threads},
      {"the ends of several children are shared out", ends_of_several_children},
      {"little of many children, each by its own clock", little_of_many_children},
      {"a shell that waits has not what its child used", waits_for_its_child},
      {"a child that outlives its parent is not waited for", outlives_its_parent},
      {"what events miss is in the time of who waited", what_events_miss},
      {"what was told is not told again when it is waited for", waited_for_late},
      {"nor what was before it was followed", waited_for_of_before},
      {"a pool has used at its end what it did before", pool_goes_on_as_it_did},
      {"times on perf are exact", times_are_exact},
      {"little of a zombie is told now", little_of_a_zombie},
      {"a pool of threads without samples is lost, and no weight of others", pool_of_threads},
      {"more CPU time than there was is noticed", more_than_there_was},
      {"what was polled and gets events keeps both parts", events_begin},
      {"a runtime's samples in place of perf's stand for the whole window, when there are enough",
       enough_stand_for_all},
      {"when there are too few the rest is lost", too_few_do_not},
      {"perf's samples are forgotten where most of the time has none", few_are_forgotten},
      {"perf's samples and a runtime's, in turns, explain a window together", perf_in_place_of_runtime},
      {"one without events whose runtime is read keeps both parts", runtime_of_a_polled_one},
      {"a process's time counts from its adoption", since_adoption},
      {"a process that was adopted is found once, also while it is a zombie", adopted_zombie},
      {"without perf nothing of what is excluded is attributed, and what fits again is",
       excluded_without_perf},
      {"a process that came of age asleep is not excluded", of_age_asleep},
      {"the accounting of an excluded process is no part of the profile", excluded_on_perf},
      {"a process that was excluded for a part of the window has the rest", excluded_for_a_part},
      {"what ended and was excluded takes nothing from the others, nor gives", excluded_and_ended},
      {"user and system time are told apart", user_and_system},
      {"only what runs stirs", only_what_runs_stirs},
      {"time goes to the thread that used it, and of ended threads to the first", per_thread},
      {"what threads used before us is not told of them", threads_before_us},
      {"the time of a process with many threads is shared out late, but whole", many_threads},
      {"but what it did before an exec is told under the name of then", many_threads_before_an_exec},
      {"a process that was idle for long is seen when it works", idle_then_busy},
      {"a process whose first thread has ended goes on", first_thread_ended},
      {"children of a target are found, strangers are not", children},
      {"the last part of a child's life is its own", end_of_a_child},
      {"children and grandchildren count once, whenever they are looked at", every_generation_once},
      {"a child counts once, when its parent is not seen to have run", end_that_no_clock_shows},
      {"a child that is not waited for takes nothing from others, and counts once", zombie_that_stays},
      {"what a child used before us is not counted, not even when it ends", children_before_us},
      {"nor what a zombie did before us, when it is waited for", zombie_of_before},
      {"a zombie whose parent ends without waiting counts once", zombie_of_an_ended_parent},
      {"a child counts once, also where it stands before its parent", child_before_its_parent},
      {"following all takes every process but ourselves, from now on", all_processes},
      {"windows add up to the whole", windows_add_up},
      {"a process that is gone is no error", gone},
      {"without /proc a process goes on until a record ends it", no_proc},
      {"a pid that belongs to another process now is not asked", pid_of_another},
      {"a process that ended has the accounting of the last refresh and its samples since", refreshed},
      {"kernel code that is hidden may run however long after the last refresh", hidden_after_the_refresh},
      {"counters that ran ahead of the accounting are not time that is missing", counters_beyond_the_accounting},
      {"a process of many threads is refreshed more rarely, but before its end", rarely_refreshed},
      {"a process whose threads come and go is refreshed each time", refreshed_while_threads_end},
      {"and so is one that has hardly any samples", refreshed_without_samples},
      {"what short threads used before an exec is told by the name of then", threads_before_an_exec},
      {"and before another name without an exec", threads_before_a_rename},
      {"and what samples missed", sampled_before_a_rename},
      {"and not what may have been used since by what it became", told_late_of_an_exec},
      {"of what was used before this window an exec tells nothing", threads_of_an_earlier_window},
      {"samples weigh their period as the accounting measures it", all_sampled},
      {"what samples do not explain is lost, and the parts sum up", partly_lost},
      {"samples of bursts stand for all of a process, when there are enough", sampled_in_bursts},
      {"but not for what it did before an exec", sampled_in_bursts_before_an_exec},
      {"nor twice where it ended before that exec is known", ended_before_its_exec_is_known},
      {"samples of bursts stand for the user's part where the kernel's is hidden",
       user_sampled_in_bursts},
      {"unseen kernel time is hidden, up to the system time", kernel_hidden},
      {"samples never weigh more than the accounted time", more_sampled_than_accounted},
      {"times that go back give nothing", times_gone_back},
      {"processes that ended between two samples share what the counters say",
       ended_between_samples},
      {"of hundreds of unseen processes one per name is kept, and has the time of all",
       unseen_ones_are_folded},
      {"what a process's events counted is its tree's, though it hardly ran itself", driver_with_own_events},
      {"what the ends of a process's threads take beside their events is no other's", ends_outside_of_events},
      {"but not by events that counted a part of the window", own_events_of_a_part},
      {"without perf a process that ended is forgotten, its time is not", polled_ones_are_forgotten},
      {"processes that ended with samples and without share it too", ended_with_samples},
      {"the counters count from window to window", counters_of_the_window},
      {"an idle process has no row", idle_target},
      {"a full profile loses no time and makes no row of nothing", full_profile},
      {"a process that changes its capture mode keeps both parts", mode_changed})

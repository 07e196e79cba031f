/* Caught rings, with real events and a child that burns a CPU. */
#include "os/perf_private.h"
#include "child.h"
#include "os/clock.h"
#include "os/proc.h"
#include "os/thread.h"
#include "sample/record.h"
#include "target/stat.h"
#include "test.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { MS = 1000000, HZ = 199, CPUS = 64 };

static const struct perf_sampling plain = {.frequency_hz = HZ};
static struct perf_access rights;

/* What the child does, and how far it is. */
struct shared {
    volatile uint32_t naps; /* between turns of 2 ms; 0: none */
    volatile uint32_t maps; /* mappings a turn: records that are no samples */
    volatile uint32_t napped; /* so far */
};
static struct shared *shared;

/* In user code: kernel code may be hidden from us. */
static void burn(uint64_t ns)
{
    struct timespec t;
    uint64_t end_ns = 0, now_ns;
    do {
        for (volatile unsigned i = 0; i < 20000; i++) {
        }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        now_ns = (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
        end_ns = end_ns == 0 ? now_ns + ns : end_ns;
    } while (now_ns < end_ns);
}

__attribute__((noreturn)) static void work(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent) { /* it may have ended before the signal was asked for */
        for (uint32_t i = 0; i < shared->maps; i++) {
            munmap(mmap(NULL, 4096, PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
        }
        burn(shared->naps > 0 ? 100000 : 2 * MS);
        for (uint32_t i = 0; i < shared->naps; i++) {
            clock_sleep_ns(20000);
            shared->napped++;
        }
    }
    _exit(0);
}

static pid_t start_worker(uint32_t naps, uint32_t maps)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared->naps = naps;
    shared->maps = maps;
    fflush(stdout);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        work(parent);
    }
    return pid;
}

static void end_worker(pid_t pid)
{
    kill(pid, SIGKILL);
    CHECK(waitpid(pid, NULL, 0) == pid);
    munmap(shared, sizeof *shared);
}

struct seen {
    uint32_t pid;
    uint64_t samples, others, switches, foreign, disorder;
    uint64_t last_ns;
};

/* The first fields of a sample: ip, pid and tid, time. */
static void count(void *context, unsigned ring, const void *record, size_t len)
{
    struct seen *seen = context;
    struct perf_event_header header;
    (void)ring;
    memcpy(&header, record, sizeof header);
    CHECK_INT(header.size, len);
    if (header.type != PERF_RECORD_SAMPLE) {
        seen->others++;
        seen->switches += header.type == PERF_RECORD_SWITCH;
        return;
    }
    uint32_t pid;
    uint64_t time_ns;
    memcpy(&pid, (const char *)record + 24, sizeof pid);
    memcpy(&time_ns, (const char *)record + 32, sizeof time_ns);
    seen->samples++;
    seen->foreign += pid != seen->pid;
    seen->disorder += time_ns < seen->last_ns;
    seen->last_ns = time_ns;
}

/* A reader of one caught ring, as a catcher is one. */
struct reader {
    struct perf *perf;
    unsigned ring;
    pthread_t thread;
    volatile bool stop;
    uint64_t wakes, empty, crowded;
    uint64_t queued_ns; /* when it was to run, and had no CPU */
    struct seen seen;
};

static uint64_t own_queued_ns(void)
{
    char text[128];
    struct proc_schedstat s = {0};
    int fd = proc_open_own_schedstat();
    size_t len = fd < 0 ? 0 : proc_read_start(fd, text, sizeof text);
    proc_close(fd);
    return schedstat_parse((struct str){text, len}, &s, NULL) ? s.wait_ns : 0;
}

static void *read_ring(void *context)
{
    struct reader *r = context;
    struct pollfd one = {.fd = perf_caught_fd(r->perf, r->ring), .events = POLLIN};
    (void)thread_bind(perf_caught_cpu(r->perf, r->ring), NULL);
    while (!r->stop) {
        if (poll(&one, 1, 100) != 1) {
            continue;
        }
        uint64_t before = r->seen.samples;
        perf_drain_caught(r->perf, r->ring, count, &r->seen);
        r->wakes++;
        r->empty += r->seen.samples == before;
        r->crowded += r->seen.samples > before + 1;
    }
    perf_drain_caught(r->perf, r->ring, count, &r->seen);
    r->queued_ns = own_queued_ns();
    return NULL;
}

static unsigned start_readers(struct perf *p, struct reader *readers, uint32_t pid)
{
    unsigned started = 0;
    for (unsigned i = 0; i < p->ring_count && i < CPUS; i++) {
        readers[i] = (struct reader){.perf = p, .ring = i, .seen.pid = pid};
        if (perf_caught_fd(p, i) >= 0) {
            CHECK_INT(pthread_create(&readers[i].thread, NULL, read_ring, &readers[i]), 0);
            started++;
        }
    }
    return started;
}

/* The sums of all readers. */
static struct reader stop_readers(struct perf *p, struct reader *readers)
{
    struct reader sum = {0};
    for (unsigned i = 0; i < p->ring_count && i < CPUS; i++) {
        struct reader *r = &readers[i];
        r->stop = true;
        if (perf_caught_fd(p, i) < 0) {
            continue;
        }
        pthread_join(r->thread, NULL);
        sum.wakes += r->wakes;
        sum.empty += r->empty;
        sum.crowded += r->crowded;
        sum.queued_ns += r->queued_ns;
        sum.seen.samples += r->seen.samples;
        sum.seen.others += r->seen.others;
        sum.seen.switches += r->seen.switches;
        sum.seen.foreign += r->seen.foreign;
        sum.seen.disorder += r->seen.disorder;
    }
    return sum;
}

static bool open_both(struct perf *p, const struct perf_sampling *sampling)
{
    struct err err = {0};
    struct perf_sampling allowed = *sampling;
    perf_probe(&rights);
    allowed.kernel = rights.kernel;
    if (!perf_open(p, &allowed, &err)) {
        return false;
    }
    if (!perf_open_caught(p, &err)) {
        perf_close(p);
        return false;
    }
    CHECK(perf_open_caught(p, &err)); /* the second call is nothing */
    return true;
}

#define OPEN_BOTH(p, sampling)                                                                     \
    if (!open_both(p, sampling)) {                                                                 \
        perf_free(p);                                                                              \
        SKIP("no perf events, or no memory for two rings, here");                                  \
    }

static void follow(struct perf *p, pid_t pid, const struct perf_how *how)
{
    struct err err = {0};
    CHECK(perf_follow_process(p, (uint32_t)pid, how, &err));
}

/* Before its time is counted: whoever counts may have to wait for a CPU, and it would go on. */
static void stop_worker(pid_t pid)
{
    kill(pid, SIGSTOP);
    CHECK(waitpid(pid, NULL, WUNTRACED) == pid);
}

static const struct perf_how in_caught = {.caught = true}, in_plain = {.caught = false};

/* Samples of what counts `ns` of CPU time, at HZ: within two of it, where kernel code is seen. */
static bool about(uint64_t samples, uint64_t ns)
{
    uint64_t due = ns * HZ / (1000 * (uint64_t)MS);
    return (samples + 2 >= due || (!rights.kernel && samples > due / 20)) && samples <= due + 2;
}

static void wakes_once_each(void)
{
    struct perf *p = perf_new(NULL);
    OPEN_BOTH(p, &plain);
    pid_t pid = start_worker(0, 1);
    static struct reader readers[CPUS];
    follow(p, pid, &in_caught);
    CHECK(start_readers(p, readers, (uint32_t)pid) > 0);
    perf_enable(p);
    uint64_t until_ns = clock_mono_ns() + 1000 * (uint64_t)MS;
    while (clock_mono_ns() < until_ns) { /* the sampler's questions take no wake-up away */
        CHECK(!perf_wait(p, (const int[]){-1, -1}, 1 * MS));
        CHECK_INT(perf_reap(p), 1);
    }
    stop_worker(pid);
    uint64_t cpu_ns = perf_count_ns(p);
    struct reader all = stop_readers(p, readers);
    CHECK(about(all.seen.samples, cpu_ns));
    CHECK_INT(all.seen.foreign + all.seen.disorder, 0);
    CHECK(all.seen.others > all.seen.samples); /* mappings and switches */
    CHECK(all.empty <= 2); /* which wake nobody, but for half a ring of them */
    /* a loaded machine may let a reader sleep over one: as many at the most as come while it waits for a CPU */
    uint64_t late = all.queued_ns * HZ / (1000 * (uint64_t)MS);
    CHECK(all.crowded * 10 <= all.seen.samples + 10 * late);
    CHECK(all.wakes <= all.seen.samples + 2 && (all.wakes + late) * 10 >= all.seen.samples * 8);
    struct seen none = {0};
    perf_drain(p, count, &none);
    CHECK_INT(none.samples + none.others, 0);
    perf_free(p);
    end_worker(pid);
}

static void tells_of_switches(void)
{
    struct perf *p = perf_new(NULL);
    OPEN_BOTH(p, &plain);
    if (!p->sampling.switches) {
        perf_free(p);
        SKIP("this kernel tells of no switches");
    }
    pid_t pid = start_worker(1, 0);
    static struct reader readers[CPUS];
    follow(p, pid, &in_caught);
    start_readers(p, readers, (uint32_t)pid);
    perf_enable(p);
    uint32_t before = shared->napped;
    for (unsigned i = 0; i < 2000 && shared->napped - before < 500; i++) {
        clock_sleep_ns(10 * MS);
    }
    uint32_t naps = shared->napped - before;
    struct reader all = stop_readers(p, readers);
    CHECK(naps >= 500);
    CHECK(all.seen.switches > naps); /* out and in: two for each, but for one that is over at once */
    perf_free(p);
    end_worker(pid);
}

/* Half a ring of other records asks to be read, or samples would find no room. */
static void other_records_do_not_fill_it(void)
{
    struct perf *p = perf_new(NULL);
    OPEN_BOTH(p, &plain);
    pid_t pid = start_worker(0, 2000);
    static struct reader readers[CPUS];
    follow(p, pid, &in_caught);
    start_readers(p, readers, (uint32_t)pid);
    perf_enable(p);
    clock_sleep_ns(1000 * MS);
    stop_worker(pid);
    uint64_t cpu_ns = perf_count_ns(p);
    struct reader all = stop_readers(p, readers);
    CHECK(about(all.seen.samples, cpu_ns));
    CHECK(all.seen.others * 48 > 2 * perf_caught_bytes(p));
    perf_free(p);
    end_worker(pid);
}

/* Until it has had so much CPU time more: each kind of ring has its share, whoever else wants the CPUs. */
static void let_work(struct perf *p, uint64_t ns)
{
    uint64_t end_ns = perf_count_ns(p) + ns;
    for (unsigned i = 0; i < 2000 && perf_count_ns(p) < end_ns; i++) {
        clock_sleep_ns(10 * MS);
    }
}

/* There and back, while it works: the sum is what its CPU time is worth, within a sample for each change. */
static void changes_rings(void)
{
    struct perf *p = perf_new(NULL);
    OPEN_BOTH(p, &plain);
    pid_t pid = start_worker(0, 0);
    static struct reader readers[CPUS];
    struct seen in_rings = {.pid = (uint32_t)pid};
    follow(p, pid, &in_plain);
    start_readers(p, readers, (uint32_t)pid);
    perf_enable(p);
    enum { CHANGES = 6 };
    for (unsigned i = 0; i < CHANGES; i++) {
        let_work(p, 200 * MS);
        perf_retire(p, (uint32_t)pid);
        follow(p, pid, i % 2 == 0 ? &in_caught : &in_plain);
        perf_replace(p, false);
        CHECK_INT(p->followers.len, 1);
    }
    let_work(p, 200 * MS);
    stop_worker(pid);
    uint64_t cpu_ns = perf_count_ns(p);
    struct reader all = stop_readers(p, readers);
    perf_drain(p, count, &in_rings);
    uint64_t due = cpu_ns * HZ / (1000 * (uint64_t)MS), got = all.seen.samples + in_rings.samples;
    CHECK(got + CHANGES + 2 >= due && got <= due + CHANGES + 2);
    CHECK(all.seen.samples > due / 4 && in_rings.samples > due / 4);
    CHECK_INT(all.seen.foreign + in_rings.foreign, 0);
    perf_free(p);
    end_worker(pid);
}

/* ---- other events ---- */

enum { OTHER_FAULTS, OTHER_SWITCHES, OTHER_NONE, OTHERS, PAGES = 400, NAPS = 10 };

struct others_seen {
    uint64_t samples[OTHERS], switches, strangers;
};

static void count_other(void *context, unsigned other, const void *record, size_t len)
{
    struct others_seen *seen = context;
    struct perf_event_header header;
    memcpy(&header, record, sizeof header);
    CHECK_INT(header.size, len);
    if (other >= OTHERS) {
        seen->strangers++;
    } else if (header.type == PERF_RECORD_SAMPLE) {
        seen->samples[other]++;
    } else if (header.type == PERF_RECORD_SWITCH) {
        CHECK_INT(other, OTHER_SWITCHES);
        seen->switches++;
    }
}

__attribute__((noreturn)) static void touch_and_nap(int go)
{
    char byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    CHECK(read(go, &byte, 1) == 1);
    volatile char *at = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise((void *)at, PAGES * 4096, MADV_NOHUGEPAGE);
    for (unsigned i = 0; i < PAGES; i++) {
        at[i * 4096] = 1;
    }
    for (unsigned i = 0; i < NAPS; i++) {
        clock_sleep_ns(MS);
    }
    _exit(0);
}

static bool open_with_others(struct perf *p, struct perf_extra *others)
{
    struct err err = {0};
    struct perf_sampling sampling = plain;
    perf_probe(&rights);
    sampling.kernel = rights.kernel;
    sampling.extra = true;
    return perf_open(p, &sampling, &err) && perf_open_extra(p, others, OTHERS);
}

static void other_events(void)
{
    struct perf *p = perf_new(NULL);
    struct perf_extra others[OTHERS] = {
        [OTHER_FAULTS] = {.name = "page-faults", .type = PERF_TYPE_SOFTWARE,
                          .config = PERF_COUNT_SW_PAGE_FAULTS, .period = 4},
        [OTHER_SWITCHES] = {.name = "switches", .switches = true},
        [OTHER_NONE] = {.name = "nothing", .type = PERF_TYPE_SOFTWARE, .config = 9999, .period = 1},
    };
    if (!open_with_others(p, others)) {
        perf_free(p);
        SKIP("no perf events, or no memory for two rings, here");
    }
    CHECK_INT(others[OTHER_FAULTS].refused.kind, ERR_NONE);
    CHECK(others[OTHER_NONE].refused.kind != ERR_NONE);
    int go[2];
    CHECK_INT(pipe(go), 0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        touch_and_nap(go[0]);
    }
    follow(p, pid, &in_plain);
    perf_enable(p);
    CHECK(write(go[1], "", 1) == 1);
    CHECK(waitpid(pid, NULL, 0) == pid);
    CHECK_INT(perf_reap(p), 0); /* what was written before is told all the same */
    struct others_seen seen = {0};
    perf_drain_extra(p, count_other, &seen);
    uint32_t most;
    uint64_t counted = perf_take_extra_count(p, OTHER_FAULTS, &most);
    CHECK(counted >= PAGES && counted < PAGES + 100); /* and a few of its own */
    CHECK_INT(most, pid);
    /* each CPU on which it ran counts for itself */
    CHECK(seen.samples[OTHER_FAULTS] <= counted / 4 &&
          seen.samples[OTHER_FAULTS] + p->ring_count >= counted / 4);
    CHECK_INT(perf_take_extra_count(p, OTHER_FAULTS, &most), 0);
    CHECK(seen.switches >= 2 * NAPS);
    CHECK_INT(seen.samples[OTHER_SWITCHES] + seen.samples[OTHER_NONE] + seen.strangers, 0);
    perf_free(p);
    close(go[0]);
    close(go[1]);
}

static void children_are_caught(void)
{
    struct perf *p = perf_new(NULL);
    OPEN_BOTH(p, &plain);
    int go[2];
    CHECK_INT(pipe(go), 0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) { /* a parent that only waits, and a child that works */
        char byte;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        CHECK(read(go[0], &byte, 1) == 1);
        pid_t child = fork();
        if (child == 0) {
            burn(300 * MS);
            _exit(0);
        }
        CHECK(write(go[1], &child, sizeof child) > 0);
        waitpid(child, NULL, 0);
        _exit(0);
    }
    static struct reader readers[CPUS];
    follow(p, pid, &in_caught);
    start_readers(p, readers, 0);
    perf_enable(p);
    CHECK_INT(write(go[1], "x", 1), 1);
    bool ended = false;
    for (unsigned i = 0; !ended && i < 100; i++) { /* told when it and all it started have ended */
        ended = perf_wait(p, (const int[]){-1, -1}, 100 * MS);
    }
    CHECK(ended);
    CHECK_INT(waitpid(pid, NULL, 0), pid);
    CHECK_INT(perf_reap(p), 0);
    struct reader all = stop_readers(p, readers);
    CHECK(about(all.seen.samples, perf_count_ns(p)));
    CHECK(!rights.kernel || all.seen.samples >= 55); /* 300 ms */
    perf_free(p);
    close(go[0]);
    close(go[1]);
}

static void large_stacks_fit(void)
{
    const struct perf_sampling stacks = {
        .frequency_hz = HZ, .stack_bytes = PERF_STACK_MAX & ~7U, .registers = 1 << 8};
    struct perf *p = perf_new(NULL);
    OPEN_BOTH(p, &stacks);
    pid_t pid = start_worker(0, 0);
    static struct reader readers[CPUS];
    const struct perf_how how = {.stack_bytes = stacks.stack_bytes, .caught = true};
    follow(p, pid, &how);
    start_readers(p, readers, (uint32_t)pid);
    perf_enable(p);
    clock_sleep_ns(500 * MS);
    stop_worker(pid);
    uint64_t cpu_ns = perf_count_ns(p);
    struct reader all = stop_readers(p, readers);
    CHECK(all.seen.samples > 0 && about(all.seen.samples, cpu_ns));
    CHECK_INT(all.seen.foreign + all.seen.disorder, 0); /* records that wrap are whole */
    perf_free(p);
    end_worker(pid);
}

/* The rings of both kinds within what an ordinary user may lock: 516 KiB per CPU and `ulimit -l`. */
static bool with_little_memory(void *context)
{
    (void)context;
    const struct rlimit little = {64 << 10, 64 << 10};
    struct perf *p = perf_new(NULL);
    CHECK_INT(setrlimit(RLIMIT_MEMLOCK, &little), 0);
    drop_root();
    if (!perf_open(p, &plain, NULL)) {
        perf_free(p);
        return false;
    }
    CHECK(perf_open_caught(p, NULL));
    CHECK(perf_caught_bytes(p) >= 64 << 10 && perf_ring_bytes(p) >= 128 << 10);
    perf_free(p);
    return true;
}

static void share_locked_memory(void)
{
    if (!in_child(with_little_memory, NULL)) {
        SKIP("an ordinary user has no perf events here");
    }
}

static void needs_rings(void)
{
    struct perf *p = perf_new(NULL);
    struct err err = {0};
    if (!perf_open(p, &plain, &err)) {
        perf_free(p);
        SKIP("no perf events here");
    }
    CHECK(!perf_follow_process(p, (uint32_t)getpid(), &in_caught, &err));
    CHECK_INT(err.kind, ERR_UNSUPPORTED);
    CHECK_INT(perf_caught_fd(p, 0), -1);
    CHECK_INT(perf_caught_bytes(p), 0);
    perf_drain_caught(p, 0, count, NULL);
    perf_free(p);
}

/* As if a CPU had come, and another had never been there. */
static void other_cpus(void)
{
    struct perf *p = perf_new(NULL);
    struct perf_cpus cpus;
    struct err err = {0};
    if (!perf_open(p, &plain, &err)) {
        perf_free(p);
        SKIP("no perf events here");
    }
    perf_check_cpus(p, &cpus);
    CHECK(cpus.absent_count < p->ring_count);
    CHECK_INT(cpus.new_count, 0);
    unsigned count = p->ring_count, first = perf_caught_cpu(p, 0), online = count - cpus.absent_count;
    p->ring_count = 0;
    perf_check_cpus(p, &cpus);
    CHECK_INT(cpus.new_count, online);
    CHECK_INT(cpus.without_ring, first);
    CHECK_INT(cpus.absent_count, 0);
    p->ring_count = count;
    perf_free(p);
}

/* ---- bursts ---- */

static void *short_thread(void *unused)
{
    burn(MS / 2);
    return unused;
}

static pid_t start_starter(void)
{
    fflush(stdout);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pthread_t one;
        while (getppid() == parent && pthread_create(&one, NULL, short_thread, NULL) == 0) {
            pthread_join(one, NULL);
        }
        _exit(0);
    }
    return pid;
}

struct periods {
    uint64_t usual, burst;
};

static void count_periods(void *context, unsigned ring, const void *record, size_t len)
{
    struct periods *seen = context;
    struct perf_event_header header;
    uint64_t period;
    (void)ring;
    memcpy(&header, record, sizeof header);
    if (header.type == PERF_RECORD_SAMPLE && len >= 56) {
        memcpy(&period, (const char *)record + 48, sizeof period);
        seen->burst += period == PERF_BURST_PERIOD_NS;
        seen->usual += period != PERF_BURST_PERIOD_NS;
    }
}

/* Of `ns` of time, and how much CPU time it was for the process. */
static struct periods drain_for(struct perf *p, uint64_t ns, uint64_t *cpu_ns)
{
    struct periods seen = {0};
    uint64_t before_ns = perf_count_ns(p), end_ns = clock_mono_ns() + ns;
    while (clock_mono_ns() < end_ns) {
        (void)perf_wait(p, (const int[]){-1, -1}, 5 * MS);
        perf_drain(p, count_periods, &seen);
    }
    *cpu_ns = perf_count_ns(p) - before_ns;
    return seen;
}

static void bursts(void)
{
    struct perf *p = perf_new(NULL);
    struct err err = {0};
    uint64_t cpu_ns;
    perf_probe(&rights);
    const struct perf_sampling sampling = {.frequency_hz = HZ, .kernel = rights.kernel};
    if (!rights.kernel || !perf_open(p, &sampling, &err)) {
        perf_free(p);
        SKIP("kernel code may not be sampled here");
    }
    pid_t pid = start_starter();
    follow(p, pid, &in_plain);
    CHECK(perf_burst_follow(p, (uint32_t)pid, false, &err));
    CHECK(perf_burst_is_followed(p, (uint32_t)pid, false));
    CHECK(!perf_burst_is_followed(p, (uint32_t)pid, true)); /* other rings */
    CHECK(!perf_burst_is_followed(p, (uint32_t)getpid(), false));
    perf_enable(p);
    struct periods seen = drain_for(p, 200 * MS, &cpu_ns);
    CHECK_INT(seen.burst, 0); /* off at first */
    perf_burst_set(p, true);
    seen = drain_for(p, 300 * MS, &cpu_ns);
    perf_burst_set(p, false);
    /* each thread's last part of a period is missing */
    uint64_t due = cpu_ns / PERF_BURST_PERIOD_NS;
    CHECK(seen.burst > due / 2 && seen.burst < due + due / 4);
    CHECK(cpu_ns < 50 * MS || seen.usual < due / 20);
    (void)drain_for(p, 10 * MS, &cpu_ns); /* what was still in the rings */
    seen = drain_for(p, 100 * MS, &cpu_ns);
    CHECK_INT(seen.burst, 0);
    perf_burst_end(p, (uint32_t)pid);
    CHECK(!perf_burst_is_followed(p, (uint32_t)pid, false));
    CHECK(!perf_burst_follow(p, (uint32_t)pid, true, &err)); /* there are no caught rings */
    kill(pid, SIGKILL);
    CHECK(waitpid(pid, NULL, 0) == pid);
    CHECK(!perf_burst_follow(p, (uint32_t)pid, false, &err));
    perf_free(p);
}

/* ---- ends ---- */

struct tasks {
    uint64_t began, ended, lost;
    struct record_format format;
};

static void count_task(void *context, unsigned ring, const void *record, size_t len)
{
    struct tasks *tasks = context;
    struct record r;
    (void)ring;
    CHECK(record_parse(record, len, &tasks->format, &r, NULL));
    tasks->began += r.kind == RECORD_FORK;
    tasks->ended += r.kind == RECORD_EXIT;
    tasks->lost += r.kind == RECORD_LOST;
}

static void *meets(void *others)
{
    burn(MS / 4);
    pthread_barrier_wait(others);
    return NULL;
}

/* ---- what a process's own threads count ---- */

enum { OWN_MS = 100, CHILD_MS = 200 };

static void *wait_for_end(void *context)
{
    pause();
    return context;
}

/* It has many threads when it is followed; a thread and a child begin later. */
__attribute__((noreturn)) static void be_family(int ready, int go)
{
    pthread_t thread;
    char one = '.';
    for (unsigned i = 0; i < PERF_OWN_THREADS_MIN; i++) {
        pthread_create(&thread, NULL, wait_for_end, NULL);
    }
    (void)!write(ready, &one, 1);
    (void)!read(go, &one, 1);
    pid_t child = fork();
    if (child == 0) {
        burn(CHILD_MS * (uint64_t)MS);
        _exit(0);
    }
    burn(OWN_MS * (uint64_t)MS);
    waitpid(child, NULL, 0);
    (void)!write(ready, &one, 1);
    pause();
    _exit(0);
}

static void add_count(void *context, const struct perf_count *count)
{
    struct perf_count *sum = context;
    sum->count_ns += count->count_ns;
    sum->own_ns += count->own_ns;
    sum->own_is_counted = sum->own_is_counted || count->own_is_counted;
}

static void counts_own_threads_apart(void)
{
    struct perf *p = perf_new(NULL);
    OPEN_BOTH(p, &plain);
    int ready[2], go[2];
    char one;
    CHECK(pipe(ready) == 0 && pipe(go) == 0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        be_family(ready[1], go[0]);
    }
    CHECK(read(ready[0], &one, 1) == 1);
    follow(p, pid, &in_plain);
    perf_enable(p);
    CHECK(write(go[1], &one, 1) == 1);
    CHECK(read(ready[0], &one, 1) == 1);
    struct perf_count sum = {0};
    perf_each_count(p, add_count, &sum);
    if (sum.own_is_counted) { /* not before Linux 5.13 */
        CHECK(sum.own_ns >= OWN_MS * (uint64_t)MS && sum.own_ns < (OWN_MS + CHILD_MS / 2) * (uint64_t)MS);
        CHECK(sum.count_ns >= sum.own_ns + CHILD_MS * (uint64_t)MS - 5 * MS);
    }
    kill(pid, SIGKILL);
    CHECK(waitpid(pid, NULL, 0) == pid);
    uint64_t own_ns = sum.own_ns;
    CHECK_INT(perf_reap(p), 0); /* what was told is not told again */
    perf_each_count(p, add_count, &sum);
    CHECK(sum.own_ns - own_ns < OWN_MS * (uint64_t)MS / 2);
    perf_free(p);
    for (unsigned i = 0; i < 2; i++) {
        close(ready[i]);
        close(go[i]);
    }
}

enum { MEETINGS = 1500, MEETING_THREADS = 4 };

static void meet(void)
{
    pthread_t threads[MEETING_THREADS];
    pthread_barrier_t all;
    pthread_barrier_init(&all, NULL, MEETING_THREADS);
    for (unsigned i = 0; i < MEETING_THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, meets, &all) == 0);
    }
    for (unsigned i = 0; i < MEETING_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* Nothing that an end writes goes to another CPU's ring, where records would be lost and the ring in the end. */
static void ends_at_the_same_moment(void)
{
    struct perf *p = perf_new(NULL);
    const struct perf_sampling sampling = {.frequency_hz = HZ};
    OPEN_BOTH(p, &sampling);
    int go[2];
    CHECK_INT(pipe(go), 0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        char one;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        CHECK(read(go[0], &one, 1) == 1);
        for (unsigned i = 0; i < MEETINGS; i++) {
            pid_t child = fork();
            if (child == 0) {
                meet();
                _exit(0);
            }
            waitpid(child, NULL, 0);
        }
        _exit(0);
    }
    follow(p, pid, &(struct perf_how){0});
    perf_enable(p);
    CHECK_INT(write(go[1], "x", 1), 1);
    struct tasks tasks = {.format = {perf_sample_type(p), 0}};
    while (waitpid(pid, NULL, WNOHANG) == 0) {
        perf_drain(p, count_task, &tasks);
        usleep(1000);
    }
    perf_drain(p, count_task, &tasks);
    CHECK_INT(tasks.lost, 0);
    CHECK_INT(tasks.began, MEETINGS * (1 + MEETING_THREADS));
    CHECK_INT(tasks.ended, MEETINGS * (1 + MEETING_THREADS) + 1);
    perf_free(p);
    close(go[0]);
    close(go[1]);
}

TESTS_THAT_MEASURE({"of tasks that end at the same moment no record is lost", ends_at_the_same_moment},
      {"what a process's own threads count is told apart from its children's", counts_own_threads_apart},
      {"bursts sample threads that are too short for a period", bursts},
      {"CPUs that came or went since are told apart", other_cpus},
      {"other events tell whose they are, and are counted to the last", other_events},
      {"each caught sample wakes its ring's reader, once, and nothing else does", wakes_once_each},
      {"caught rings tell when a thread left its CPU", tells_of_switches},
      {"records that are no samples do not crowd samples out", other_records_do_not_fill_it},
      {"a process changes rings and loses and doubles no more than a sample", changes_rings},
      {"children of a caught process are caught, and the end of all is told", children_are_caught},
      {"the largest copies of stacks fit", large_stacks_fit},
      {"an ordinary user has memory for both sets of rings", share_locked_memory},
      {"without caught rings nothing is caught", needs_rings})

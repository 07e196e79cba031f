/*
 * soak: the uploader for a day, in a minute.
 *
 * The product's own uploader, with its threads, queue, spool and connections, sends a window a minute to a server that
 * is often unwell (faulty.h). The clock runs faster by FACTOR: the linker puts the functions below in the place of
 * those that tell time and that wait (--wrap, build/bench.mk), so that nothing of the product is changed for it. Every
 * six hours the uploader is stopped and started again.
 *
 * At the end the server is well, and what waits is asked for. Then each window has to be somewhere: taken by the
 * server, refused by it, in the spool, or counted as lost; and the uploader's own counts have to add up.
 *
 * usage: soak HOURS FACTOR SEED DIR [memory]     DIR: of the log, and of the spool unless there is memory alone
 */
#include "../unit/sample_profile.h"
#include "base/time.h"
#include "capture/upload/uploader.h"
#include "faulty.h"
#include "os/clock.h"
#include "os/thread.h"

#include <dirent.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    WINDOW_S = 60,
    RUN_WINDOWS = 360,  /* of one uploader */
    PROFILE_MAX = 16 << 20,
    END_MS = 20000,     /* real, for what waits at the end */
    GRACE_MS = 3000,    /* real */
    FIRST_START_S = 1795132800, /* 2026-11-20 00:00 */
};

/* ---- the clock ---- */

static uint64_t began_ns, factor = 1;

static uint64_t real_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void real_sleep(uint64_t ns)
{
    struct timespec t = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
    nanosleep(&t, NULL);
}

/* Since the beginning, as all but this program sees it. */
static uint64_t passed_ns(void)
{
    return (real_ns() - began_ns) * factor;
}

uint64_t __wrap_clock_mono_ns(void);
uint64_t __wrap_clock_mono_ns(void)
{
    return NS_PER_S + passed_ns();
}

uint64_t __wrap_clock_wall_ns(void);
uint64_t __wrap_clock_wall_ns(void)
{
    return FIRST_START_S * NS_PER_S + passed_ns();
}

static uint64_t mono_of(void *context)
{
    (void)context;
    return __wrap_clock_mono_ns();
}

static uint64_t wall_of(void *context)
{
    (void)context;
    return __wrap_clock_wall_ns();
}

struct clock __wrap_clock_system(void);
struct clock __wrap_clock_system(void)
{
    return (struct clock){mono_of, wall_of, NULL};
}

void __wrap_clock_sleep_ns(uint64_t ns);
void __wrap_clock_sleep_ns(uint64_t ns)
{
    real_sleep(ns / factor);
}

bool __real_waker_wait(int waker, int fd, uint64_t timeout_ns);
bool __wrap_waker_wait(int waker, int fd, uint64_t timeout_ns);
bool __wrap_waker_wait(int waker, int fd, uint64_t timeout_ns)
{
    return __real_waker_wait(waker, fd, timeout_ns / factor);
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    uint64_t ns = timeout_ms < 0 ? 0 : (uint64_t)timeout_ms * NS_PER_MS / factor;
    struct timespec t = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
    return ppoll(fds, count, timeout_ms < 0 ? NULL : &t, NULL);
}

/* ---- what the process uses ---- */

struct vitals {
    uint64_t rss_kb, descriptors;
};

static size_t count_files(const char *dir, void (*each)(void *context, const char *name), void *context)
{
    size_t count = 0;
    DIR *open_dir = opendir(dir);
    for (struct dirent *entry; open_dir != NULL && (entry = readdir(open_dir)) != NULL;) {
        bool is_file = entry->d_name[0] != '.' && strcmp(entry->d_name, "lock") != 0;
        count += is_file;
        if (is_file && each != NULL) {
            each(context, entry->d_name);
        }
    }
    if (open_dir != NULL) {
        closedir(open_dir);
    }
    return count;
}

static struct vitals vitals_now(void)
{
    unsigned long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu %lu", &all, &resident) != 2) {
        resident = 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return (struct vitals){resident * (uint64_t)sysconf(_SC_PAGESIZE) / 1024,
                           count_files("/proc/self/fd", NULL, NULL) - 1}; /* but the folder's own */
}

/* ---- a run ---- */

struct soak {
    struct settings settings;
    struct log log;
    struct faulty *faulty;
    struct uploader *up;
    struct profile profile;
    char host[64], spool[512], log_file[512];
    bool in_memory;
    unsigned windows, starts;
    uint64_t attempts, failures;
    struct vitals at[11]; /* at 0 %, 10 % … */
};

static bool fail(const char *what)
{
    fprintf(stderr, "soak: %s\n", what);
    return false;
}

static bool start_uploader(struct soak *s)
{
    struct err err = {0};
    s->up = uploader_start(&s->settings, false, &s->log, &err);
    s->starts++;
    return s->up != NULL || fail(err.text);
}

static void stop_uploader(struct soak *s)
{
    struct uploader_counts counts;
    uploader_counts(s->up, &counts);
    s->attempts += counts.attempts;
    s->failures += counts.failures;
    (void)uploader_stop(s->up, GRACE_MS * NS_PER_MS * factor);
    s->up = NULL;
}

static void fill_settings(struct soak *s, const char *dir)
{
    snprintf(s->host, sizeof s->host, "http://127.0.0.1:%u/in/{start}/{sequence}", s->faulty->port);
    snprintf(s->spool, sizeof s->spool, "%s/spool", dir);
    snprintf(s->log_file, sizeof s->log_file, "%s/log", dir);
    s->settings = (struct settings){
        .scope.mode = TARGET_ALL,
        .sampling.frequency_hz = 99,
        .sampling.window_ns = WINDOW_S * NS_PER_S,
        .sampling.continuous = true,
        .budget.memory_bytes = 64 << 20,
        .service_name = "soak",
        .log.level = LOG_INFO,
        .log.file = s->log_file,
        .upload = {.wanted = true,
                   .backends = backend_bit("http"),
                   .server_host = s->host,
                   .timeout_ns = 120 * NS_PER_S,
                   .verify = true,
                   .spool_dir = s->in_memory ? NULL : s->spool,
                   .spool_max_bytes = 64 << 20},
    };
}

static void await(uint64_t moment_ns)
{
    uint64_t now_ns = passed_ns();
    if (now_ns < moment_ns) {
        real_sleep((moment_ns - now_ns) / factor);
    }
}

static bool send_windows(struct soak *s)
{
    for (unsigned i = 0; i < s->windows; i++) {
        if (i == 0 || i * 10 / s->windows != (i - 1) * 10 / s->windows) {
            s->at[i * 10 / s->windows] = vitals_now();
        }
        if (i > 0 && i % RUN_WINDOWS == 0) {
            stop_uploader(s);
            if (!start_uploader(s)) {
                return false;
            }
        }
        await((i + 1) * WINDOW_S * NS_PER_S);
        s->profile.meta.start_wall_ns = (FIRST_START_S + (uint64_t)i * WINDOW_S) * NS_PER_S;
        s->profile.meta.end_wall_ns = s->profile.meta.start_wall_ns + WINDOW_S * NS_PER_S;
        uploader_submit(s->up, &s->profile);
    }
    return true;
}

/* The server is well now, and somebody asks for what waits. */
static void clear_up(struct soak *s)
{
    struct uploader_counts counts;
    for (uint64_t until_ns = real_ns() + END_MS * NS_PER_MS; real_ns() < until_ns;) {
        uploader_counts(s->up, &counts);
        if (counts.waiting == 0) {
            break;
        }
        uploader_refresh(s->up);
        real_sleep(50 * NS_PER_MS);
    }
    s->at[10] = vitals_now();
    stop_uploader(s);
}

/* ---- the account ---- */

struct tally {
    const struct soak *soak;
    bool *is_kept;
    unsigned arrived, duplicates, refused, kept, missing;
    uint64_t sent, lost; /* by the uploaders' own words */
};

static void note_kept(void *context, const char *name)
{
    struct tally *a = context;
    uint64_t window = (strtoull(name, NULL, 10) / 1000 - FIRST_START_S) / WINDOW_S;
    if (window < a->soak->windows) {
        a->is_kept[window] = true;
    }
}

static void read_words(struct tally *a)
{
    char line[512];
    FILE *file = fopen(a->soak->log_file, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        unsigned long long sent, kb, kept, lost;
        const char *words = strstr(line, "uploads: ");
        if (words != NULL && sscanf(words, "uploads: %llu sent (%llu KB), %llu kept in the spool, %llu lost",
                                    &sent, &kb, &kept, &lost) == 4) {
            a->sent += sent;
            a->lost += lost;
        } else if (strstr(line, "warning") != NULL) {
            printf("# %s", line);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

static bool draw_up(const struct soak *s)
{
    struct tally a = {.soak = s, .is_kept = calloc(s->windows, sizeof(bool))};
    count_files(s->spool, note_kept, &a);
    read_words(&a);
    for (unsigned i = 0; i < s->windows; i++) {
        bool arrived = s->faulty->taken[i] > 0;
        a.arrived += arrived;
        a.duplicates += arrived ? s->faulty->taken[i] - 1 : 0;
        a.kept += !arrived && a.is_kept[i];
        a.refused += !arrived && !a.is_kept[i] && s->faulty->refused[i] > 0;
        a.missing += !arrived && !a.is_kept[i] && s->faulty->refused[i] == 0;
    }
    size_t files = count_files(s->spool, NULL, NULL);
    free(a.is_kept);
    printf("windows %u = arrived %u + refused %u + kept %u + lost %u; duplicates %u\n", s->windows, a.arrived,
           a.refused, a.kept, a.missing, a.duplicates);
    printf("words %u = sent %llu + lost %llu + files %zu; attempts %llu failures %llu starts %u\n", s->windows,
           (unsigned long long)a.sent, (unsigned long long)a.lost, files, (unsigned long long)s->attempts,
           (unsigned long long)s->failures, s->starts);
    printf("met:");
    for (int i = 0; i < FAULTY_COUNT; i++) {
        printf(" %s %u", faulty_name((enum faulty_weather)i), s->faulty->met[i]);
    }
    printf("; strange %u\nvitals:", s->faulty->strange);
    for (int i = 0; i <= 10; i++) {
        printf(" %llu KB %llu fds%s", (unsigned long long)s->at[i].rss_kb,
               (unsigned long long)s->at[i].descriptors, i < 10 ? "," : "\n");
    }
    bool adds_up = a.sent + a.lost + files == s->windows;
    bool accounted = a.missing + a.refused <= a.lost && (s->in_memory || a.missing == 0);
    return (adds_up || fail("the uploaders' words do not add up")) &&
           (accounted || fail("windows are nowhere, and nobody said so"));
}

int main(int argc, char **argv)
{
    static struct soak s;
    struct err err = {0};
    /* glibc keeps a heap for each thread, and from the second one on what was large and freed; the
     * product's C library does neither */
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    if (argc < 5) {
        fail("HOURS FACTOR SEED DIR [memory]");
        return 2;
    }
    s.windows = (unsigned)strtoul(argv[1], NULL, 10) * 3600 / WINDOW_S;
    factor = strtoull(argv[2], NULL, 10);
    s.in_memory = argc > 5;
    s.faulty = faulty_new();
    if (s.faulty == NULL || s.windows == 0 || s.windows > FAULTY_WINDOWS || factor == 0 ||
        !profile_init(&s.profile, PROFILE_MAX, &err)) {
        fail("no memory, or numbers that make no sense");
        return 2;
    }
    fill_sample(&s.profile);
    began_ns = real_ns();
    s.faulty->seed = strtoull(argv[3], NULL, 10);
    s.faulty->first_start_s = FIRST_START_S;
    s.faulty->well_from_ns = s.windows * (uint64_t)WINDOW_S * NS_PER_S;
    s.faulty->now_ns = passed_ns;
    pid_t server = faulty_start(s.faulty);
    fill_settings(&s, argv[4]);
    log_open(&s.log, &s.settings);
    bool ok = server > 0 && start_uploader(&s) && send_windows(&s);
    if (ok) {
        clear_up(&s);
        log_close(&s.log);
        ok = draw_up(&s);
    }
    if (server > 0) {
        kill(server, SIGKILL);
        waitpid(server, NULL, 0);
    }
    profile_release(&s.profile);
    return ok ? 0 : 1;
}

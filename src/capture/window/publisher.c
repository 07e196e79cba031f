/* The publisher's thread: takes a finished window, names its frames, has its files written and its
 * deliveries encoded, writes the summary, and gives the emptied profile back. What it may keep for
 * the next window depends on the memory that is resident. */
#include "capture/window/publisher.h"
#include "base/err.h"
#include "base/time.h"
#include "capture/window/external.h"
#include "capture/window/heartbeat.h"
#include "capture/window/machine.h"
#include "capture/window/silent.h"
#include "capture/window/summary.h"
#include "capture/upload/uploader.h"
#include "os/clock.h"
#include "os/confine.h"
#include "os/proc.h"
#include "os/sandbox.h"
#include "os/usage.h"
#include "symbol/namer.h"
#include "encode/encode.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    STACK_BYTES = 1 << 20, /* the demangler recurses; musl's default of 128 KiB is too little */
    NAMER_MAX_BYTES = 16 << 20,
    LEAST_PROFILE_SHARE = 16, /* of the memory: a smaller one is not worth a window */
    RUNNING_BYTES = 9 << 20,
    ASIDE_MAX_BYTES = 5 << 20,
    UNPACK_SHARE = 4,  /* of the memory, for packed symbols, and as much again to unpack them */
    CHECKSUM_BYTES = 128 << 20, /* of debug files that only a checksum proves, per window */
    SANDBOX_SHARE = 2, /* of it, for the child that reads debug information */
    INLINES_BUDGET_S = 5, /* of CPU-hungry DWARF per window; what is late has its symbol */
};

/* In bytes. */
struct publisher_memory {
    uint64_t most, names; /* that may be used, and of it for names */
    uint64_t running;     /* resident at least, once symbols and unwind tables are read */
    uint64_t tight;       /* resident: from there on nothing is kept for the next window */
};

/* The namer, and what it reads by. */
struct publisher_naming {
    struct namer namer;
    struct symbol_source source;
    struct debug_source debug;
    struct clock clock;
    struct sandbox sandbox;
    struct images *images;
    uint64_t checksum_bytes; /* that may still be read in this window, see debug_source */
    bool inlines;
};

struct publisher {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct profile profiles[2];
    struct profile *full; /* waiting or being published; null when ready */
    bool confined;        /* os/confine.h: its thread, from the first window on */
    bool begun;           /* that */
    bool runs;            /* its thread */
    bool stop, expects_last, last; /* what is submitted next is the run's last window; what is published is */
    bool releases, tries; /* it is asked to */
    bool busy;            /* it does, or publishes */
    unsigned failed; /* windows */
    unsigned silent_told; /* silent.h */

    struct log *log;
    struct outputs outputs;
    struct whole_run run;
    struct uploader *uploader; /* null: windows are not uploaded */
    uint64_t sent;             /* of them, when the last summary was written */
    struct publisher_naming naming;
    struct publisher_memory memory;
    const struct shared *shared;
    uint64_t own_cpu_ns; /* of the process, when the window before was closed */
    struct usage usage;  /* then; at first when the thread began */
    const struct settings *settings;
    struct machine machine;
    struct external external;
};

static bool is_gone(void *context, uint64_t image)
{
    return images_is_gone(context, image);
}

static void note_uploads(struct publisher *pub, struct profile *p)
{
    struct uploader_counts counts;
    if (pub->uploader != NULL) {
        uploader_counts(pub->uploader, &counts);
        p->meta.uploads = (struct profile_uploads){
            .any = true,
            .sent = counts.sent,
            .fresh = counts.sent - pub->sent,
            .waiting = counts.waiting,
            .dropped = counts.dropped,
            .failures = counts.failures,
            .cpu_ns = uploader_cpu_ns(pub->uploader),
        };
        pub->sent = counts.sent;
    }
}

static void note_usage(struct publisher *pub, struct profile *p)
{
    struct usage now;
    if (!pub->settings->origin.metrics) {
        return;
    }
    usage_read("", &now);
    double cpu = usage_cpu_percent(&pub->usage, &now);
    double memory = usage_memory_percent(&pub->usage, &now);
    pub->usage = now;
    p->meta.usage = (struct profile_usage){cpu >= 0 && memory >= 0, cpu, memory};
}

/* Before anything of a target is looked at: what this machine is called takes a socket to ask. */
static void begin(struct publisher *pub)
{
    if (!pub->begun) {
        pub->begun = true;
        machine_learn(&pub->machine, pub->uploader, pub->outputs.formats);
        if (pub->confined) {
            confine_reader();
        }
    }
}

static void begin_namer(struct publisher *pub)
{
    namer_init(&pub->naming.namer, &pub->naming.source, pub->memory.names);
    pub->naming.namer.debug = &pub->naming.debug;
    pub->naming.namer.clock = &pub->naming.clock;
    pub->naming.namer.sandbox = &pub->naming.sandbox;
    pub->naming.namer.inlines = pub->naming.inlines;
    pub->naming.namer.inlines_budget_ns = INLINES_BUDGET_S * NS_PER_S;
}

/* The profile has copies of those that it needs. */
static void forget_names(struct publisher *pub)
{
    namer_release(&pub->naming.namer);
    begin_namer(pub);
    images_forget_names(pub->naming.images);
}

/* True: memory is short. Encoders need some next, so names go before them. */
static bool make_room(struct publisher *pub)
{
    bool tight = proc_own_rss_bytes() >= pub->memory.tight;
    if (tight) {
        forget_names(pub);
    }
    return tight;
}

/* A debug file of another build is a mistake somewhere; where there are no symbols at all, the frames show it. */
static void log_problems(struct publisher *pub)
{
    struct namer_problem problem;
    while (namer_next_problem(&pub->naming.namer, &problem)) {
        struct str path = images_path(pub->naming.images, problem.image);
        const char *instead = problem.is_of_lines   ? "; inlined functions and lines are missing"
                              : problem.has_symbols ? "; its own symbols are used"
                                                    : "";
        log_once(pub->log, problem.has_symbols || problem.is_of_lines ? LOG_INFO : LOG_DEBUG, "%.*s: %s%s",
                 (int)path.len, path.ptr, problem.why, instead);
    }
}

/* Of the threads that own_cost.h leaves to the kernel's clocks, and children. */
static uint64_t background_ns(const struct publisher *pub)
{
    uint64_t upload_ns = pub->uploader != NULL ? uploader_cpu_ns(pub->uploader) : 0;
    return publisher_cpu_ns(pub) + upload_ns;
}

/* A trace costs its program something, so it is not made for nobody without a word. */
static void say_traces_left(struct publisher *pub, const struct profile *p)
{
    bool is_taken = (pub->outputs.formats & encoder_bit("pprof")) != 0 ||
                    (pub->uploader != NULL && uploader_takes_sets(pub->uploader));
    vec_each(&p->of_runtimes.all, made)
    {
        if (!is_taken && runtime_profile_is_trace(str_of(made->type))) {
            log_once(pub->log, LOG_WARNING, "nothing takes execution traces here: files do (-o, with pprof among the "
                                            "formats), and --backend datadog");
        }
    }
}

/* True: memory is short, and the profile's is not to be kept. */
static bool publish(struct publisher *pub, struct profile *p)
{
    struct err err = {0};
    struct outputs_written written;
    begin(pub);
    note_usage(pub, p);
    p->meta.host = pub->settings->origin.metadata ? p->meta.host : 0;
    namer_drop(&pub->naming.namer, is_gone, pub->naming.images);
    pub->naming.checksum_bytes = CHECKSUM_BYTES;
    profile_limit(p, SIZE_MAX);
    if (!namer_run(&pub->naming.namer, p, &err)) {
        log_once(pub->log, LOG_WARNING, "%s; some frames stay unnamed", err.text);
        err.kind = ERR_NONE;
    }
    log_problems(pub);
    silent_say(pub->log, pub->naming.images->world, &pub->silent_told);
    uint64_t own_ns = own_cost_ns(&pub->shared->own, background_ns(pub));
    p->meta.own_cpu_ns = own_ns - pub->own_cpu_ns;
    p->meta.own_rss_bytes = proc_own_rss_bytes();
    uint64_t peak_bytes = proc_own_rss_peak_bytes(); /* the kernel counts them apart */
    p->meta.own_rss_peak_bytes = peak_bytes > p->meta.own_rss_bytes ? peak_bytes : p->meta.own_rss_bytes;
    pub->own_cpu_ns = own_ns;
    note_uploads(pub, p);
    machine_note(&pub->machine, p);
    external_note(&pub->external, p);
    bool tight = make_room(pub);
    if (whole_run_shows(&pub->run, p)) {
        return tight;
    }
    if (pub->uploader != NULL) {
        uploader_submit(pub->uploader, p); /* first: of a window that is a file, or in the log, the spool has a copy */
    }
    bool ok = outputs_write(&pub->outputs, p, &written, &err);
    pub->failed += !ok;
    heartbeat_beat(pub->log, ok ? pub->settings->output.heartbeat_file : NULL);
    say_traces_left(pub, p);
    whole_run_add(&pub->run, p, &written);
    if (written.removed) {
        log_once(pub->log, LOG_INFO, "the newest %d windows of this run are kept, of %d MB at most; "
                                     "--max-output-files 0 keeps all", OUTPUTS_RUN_SETS, OUTPUTS_RUN_BYTES / 1000000);
    }
    const char *problem = err.kind != ERR_NONE ? err.text : "no memory to write files";
    struct profile *heaviest = pub->last && pub->run.windows <= 1 ? p : NULL; /* else it is told of the whole run */
    summary_window(pub->log, p, &pub->outputs, &written, ok ? NULL : problem, heaviest);
    return tight;
}

/* The other profile is being filled. */
static void release_caches(struct publisher *pub, struct profile *idle)
{
    forget_names(pub);
    if (idle != NULL) {
        profile_shrink(idle);
    }
}

/* The same words as at a window's end, where they are not repeated. */
static void try_outputs(struct publisher *pub)
{
    struct err err;
    if (!outputs_try(&pub->outputs, &err)) {
        log_once(pub->log, LOG_ERROR, "%s", err.text);
        return;
    }
    heartbeat_beat(pub->log, pub->settings->output.heartbeat_file);
}

static void *publisher_main(void *context)
{
    struct publisher *pub = context;
    struct profile *idle = NULL; /* since it was published */
    if (pub->settings->origin.metrics) {
        usage_read("", &pub->usage);
    }
    pthread_mutex_lock(&pub->lock);
    for (;;) {
        while (pub->full == NULL && !pub->stop && !pub->releases && !pub->tries) {
            pthread_cond_wait(&pub->changed, &pub->lock);
        }
        if (pub->full == NULL && pub->stop) {
            break;
        }
        struct profile *p = pub->full;
        bool tries = pub->tries;
        pub->tries = false;
        pub->busy = true;
        pthread_mutex_unlock(&pub->lock);
        if (tries) {
            try_outputs(pub);
        }
        if (p != NULL) {
            bool tight = publish(pub, p);
            profile_clear(p);
            if (tight) {
                profile_shrink(p);
            }
            idle = p;
        }
        pthread_mutex_lock(&pub->lock);
        if (pub->releases) {
            pub->releases = false;
            pthread_mutex_unlock(&pub->lock);
            release_caches(pub, idle);
            pthread_mutex_lock(&pub->lock);
        }
        pub->busy = false;
        pub->full = NULL;
        pthread_cond_broadcast(&pub->changed);
    }
    pthread_mutex_unlock(&pub->lock);
    return NULL;
}

static void release(struct publisher *pub)
{
    whole_run_release(&pub->run);
    namer_release(&pub->naming.namer);
    outputs_release(&pub->outputs);
    profile_release(&pub->profiles[0]);
    profile_release(&pub->profiles[1]);
    machine_release(&pub->machine);
    external_release(&pub->external);
    pthread_mutex_destroy(&pub->lock);
    pthread_cond_destroy(&pub->changed);
    free(pub);
}

uint64_t publisher_aside_bytes(uint64_t memory_bytes)
{
    uint64_t share = memory_bytes / 4;
    return share < ASIDE_MAX_BYTES ? share : (uint64_t)ASIDE_MAX_BYTES;
}

struct publisher *publisher_new(struct shared *shared, struct images *images, size_t profile_max_bytes,
                                struct err *err)
{
    const struct settings *settings = shared->settings;
    struct publisher *pub = calloc(1, sizeof *pub);
    if (pub == NULL) {
        err_set(err, ERR_MEMORY, 0, "no memory for the publisher");
        return NULL;
    }
    pub->log = &shared->log;
    pub->shared = shared;
    pub->settings = settings;
    machine_init(&pub->machine, settings);
    external_init(&pub->external, settings->origin.external_metadata, pub->log);
    outputs_init(&pub->outputs, settings);
    if (!pub->log->terminal) {
        outputs_name_here(&pub->outputs);
    }
    pthread_mutex_init(&pub->lock, NULL);
    pthread_cond_init(&pub->changed, NULL);
    pub->naming.source = images_source(images);
    pub->naming.debug = images_debug_source(images);
    pub->naming.clock = clock_system();
    pub->naming.images = images;
    pub->naming.inlines = settings->naming.inlines;
    pub->memory.names = profile_max_bytes < NAMER_MAX_BYTES ? profile_max_bytes : NAMER_MAX_BYTES;
    pub->memory.most = (uint64_t)profile_max_bytes * PUBLISHER_PROFILE_SHARE;
    pub->naming.debug.crc_left_bytes = &pub->naming.checksum_bytes;
    pub->naming.debug.unpack_bytes = (size_t)pub->memory.most / UNPACK_SHARE;
    pub->naming.sandbox = sandbox_system(pub->memory.most / SANDBOX_SHARE);
    bool is_little = pub->memory.most / 2 < RUNNING_BYTES;
    pub->memory.running = is_little ? pub->memory.most / 2 : (uint64_t)RUNNING_BYTES;
    pub->memory.tight = (pub->memory.most - publisher_aside_bytes(pub->memory.most)) / 4 * 3;
    begin_namer(pub);
    if (!profile_init(&pub->profiles[0], profile_max_bytes, err) ||
        !profile_init(&pub->profiles[1], profile_max_bytes, err) ||
        !whole_run_init(&pub->run, settings, pub->log, profile_max_bytes, err)) {
        release(pub);
        return NULL;
    }
    return pub;
}

bool publisher_start(struct publisher *pub, bool confined, struct err *err)
{
    pthread_attr_t attr;
    pub->confined = confined;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    int number = pthread_create(&pub->thread, &attr, publisher_main, pub);
    pthread_attr_destroy(&attr);
    pub->runs = number == 0;
    return pub->runs || err_no_thread(err, number, "the publisher's thread");
}

/* What the next profile may have: what is left, when `full` has gone and windows wait, is for it and
 * for a request that is made of it. With the lock held. */
static size_t next_bytes(const struct publisher *pub, const struct profile *full)
{
    size_t max = pub->profiles[0].max_bytes, most = max - max / PUBLISHER_NAMES_SHARE;
    uint64_t rss = proc_own_rss_bytes(), gone = full != NULL ? profile_bytes(full) : 0;
    uint64_t stays = rss > gone ? rss - gone : 0;
    if (pub->uploader == NULL) {
        return most;
    }
    stays = stays > pub->memory.running ? stays : pub->memory.running;
    stays += uploader_most_bytes(pub->uploader);
    uint64_t left = pub->memory.most > stays ? pub->memory.most - stays : 0;
    uint64_t share = left / (1 + uploader_making_times(pub->uploader));
    uint64_t least = pub->memory.most / LEAST_PROFILE_SHARE;
    share = share > least ? share : least;
    return share < most ? (size_t)share : most;
}

void publisher_upload(struct publisher *pub, struct uploader *up, struct profile *present)
{
    pthread_mutex_lock(&pub->lock);
    pub->uploader = up;
    profile_limit(present, next_bytes(pub, present));
    if (up == NULL && pub->outputs.formats == 0) {
        pub->outputs.formats = encoder_defaults();
    }
    pthread_mutex_unlock(&pub->lock);
}

bool publisher_ready(struct publisher *pub)
{
    pthread_mutex_lock(&pub->lock);
    bool ready = pub->full == NULL && !pub->busy;
    pthread_mutex_unlock(&pub->lock);
    return ready;
}

static void ask(struct publisher *pub, bool *what)
{
    pthread_mutex_lock(&pub->lock);
    *what = true;
    pthread_cond_broadcast(&pub->changed);
    pthread_mutex_unlock(&pub->lock);
}

void publisher_release_caches(struct publisher *pub)
{
    ask(pub, &pub->releases);
}

void publisher_show(struct publisher *pub, const struct whole_run_viewer *viewer)
{
    pub->run.viewer = *viewer;
}

void publisher_try(struct publisher *pub)
{
    ask(pub, &pub->tries);
}

const char *publisher_dir(const struct publisher *pub)
{
    return pub->outputs.dir;
}

uint64_t publisher_cpu_ns(const struct publisher *pub)
{
    return (pub->runs ? clock_thread_cpu_ns(pub->thread) : 0) + clock_children_cpu_ns();
}

struct profile *publisher_submit(struct publisher *pub, struct profile *full)
{
    pthread_mutex_lock(&pub->lock);
    while (pub->full != NULL || pub->busy) {
        pthread_cond_wait(&pub->changed, &pub->lock);
    }
    struct profile *empty = full == &pub->profiles[0] ? &pub->profiles[1] : &pub->profiles[0];
    profile_limit(empty, next_bytes(pub, full));
    pub->last = pub->expects_last;
    pub->full = full; /* null only asks for the first empty one */
    pthread_cond_broadcast(&pub->changed);
    pthread_mutex_unlock(&pub->lock);
    return empty;
}

void publisher_expect_last(struct publisher *pub)
{
    pub->expects_last = true;
}

void publisher_wait(struct publisher *pub)
{
    pthread_mutex_lock(&pub->lock);
    while (pub->full != NULL) {
        pthread_cond_wait(&pub->changed, &pub->lock);
    }
    pthread_mutex_unlock(&pub->lock);
}

void publisher_end_run(struct publisher *pub)
{
    publisher_wait(pub);
    pub->failed += !whole_run_end(&pub->run, &pub->outputs);
}

unsigned publisher_stop(struct publisher *pub)
{
    ask(pub, &pub->stop);
    if (pub->runs) {
        pthread_join(pub->thread, NULL);
    }
    unsigned failed = pub->failed;
    release(pub);
    return failed;
}

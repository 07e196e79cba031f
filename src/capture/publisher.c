#include "capture/publisher.h"
#include "base/err.h"
#include "base/time.h"
#include "capture/summary.h"
#include "os/clock.h"
#include "os/proc.h"
#include "symbol/namer.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    STACK_BYTES = 1 << 20, /* the demangler recurses; musl's default of 128 KiB is too little */
    NAMER_MAX_BYTES = 16 << 20,
    INLINES_BUDGET_S = 5, /* of CPU-hungry DWARF per window; what is late has its symbol */
};

struct publisher {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct profile profiles[2];
    struct profile *full; /* waiting or being published; null when ready */
    bool stop;
    unsigned failed; /* windows */

    struct log *log;
    struct outputs outputs;
    struct symbol_source source;
    struct debug_source debug;
    struct clock clock;
    struct namer namer;
    uint64_t own_cpu_ns; /* of the process, when the window before was closed */
};

static void publish(struct publisher *pub, struct profile *p)
{
    struct err err = {0};
    struct outputs_written written;
    if (!namer_run(&pub->namer, p, &err)) {
        log_once(pub->log, LOG_WARNING, "%s; some frames stay unnamed", err.text);
    }
    uint64_t own_ns = clock_own_cpu_ns();
    p->meta.own_cpu_ns = own_ns - pub->own_cpu_ns;
    p->meta.own_rss_bytes = proc_own_rss_bytes();
    pub->own_cpu_ns = own_ns;
    err = (struct err){0};
    bool ok = outputs_write(&pub->outputs, p, &written, &err);
    pub->failed += !ok;
    summary_window(pub->log, p, &pub->outputs, &written, ok ? NULL : err.text);
}

static void *publisher_main(void *context)
{
    struct publisher *pub = context;
    pthread_mutex_lock(&pub->lock);
    for (;;) {
        while (pub->full == NULL && !pub->stop) {
            pthread_cond_wait(&pub->changed, &pub->lock);
        }
        if (pub->full == NULL) {
            break;
        }
        struct profile *p = pub->full;
        pthread_mutex_unlock(&pub->lock);
        publish(pub, p);
        profile_clear(p);
        pthread_mutex_lock(&pub->lock);
        pub->full = NULL;
        pthread_cond_broadcast(&pub->changed);
    }
    pthread_mutex_unlock(&pub->lock);
    return NULL;
}

static void release(struct publisher *pub)
{
    namer_release(&pub->namer);
    profile_release(&pub->profiles[0]);
    profile_release(&pub->profiles[1]);
    pthread_mutex_destroy(&pub->lock);
    pthread_cond_destroy(&pub->changed);
    free(pub);
}

struct publisher *publisher_start(const struct settings *settings, struct images *images,
                                  struct log *log, size_t profile_max_bytes, struct err *err)
{
    struct publisher *pub = calloc(1, sizeof *pub);
    if (pub == NULL) {
        err_set(err, ERR_MEMORY, 0, "no memory for the publisher");
        return NULL;
    }
    pub->log = log;
    outputs_init(&pub->outputs, settings);
    pthread_mutex_init(&pub->lock, NULL);
    pthread_cond_init(&pub->changed, NULL);
    pub->source = images_source(images);
    pub->debug = images_debug_source(images);
    pub->clock = clock_system();
    namer_init(&pub->namer, &pub->source, NAMER_MAX_BYTES);
    pub->namer.debug = &pub->debug;
    pub->namer.clock = &pub->clock;
    pub->namer.inlines = settings->inlines;
    pub->namer.inlines_budget_ns = INLINES_BUDGET_S * NS_PER_S;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    bool ok = profile_init(&pub->profiles[0], profile_max_bytes, err) &&
              profile_init(&pub->profiles[1], profile_max_bytes, err);
    int number = ok ? pthread_create(&pub->thread, &attr, publisher_main, pub) : 0;
    pthread_attr_destroy(&attr);
    if (!ok || number != 0) {
        if (ok) {
            err_errno(err, number, "cannot start the publisher's thread");
        }
        release(pub);
        return NULL;
    }
    return pub;
}

bool publisher_ready(struct publisher *pub)
{
    pthread_mutex_lock(&pub->lock);
    bool ready = pub->full == NULL;
    pthread_mutex_unlock(&pub->lock);
    return ready;
}

struct profile *publisher_submit(struct publisher *pub, struct profile *full)
{
    pthread_mutex_lock(&pub->lock);
    while (pub->full != NULL) {
        pthread_cond_wait(&pub->changed, &pub->lock);
    }
    struct profile *empty = full == &pub->profiles[0] ? &pub->profiles[1] : &pub->profiles[0];
    pub->full = full; /* null only asks for the first empty one */
    pthread_cond_broadcast(&pub->changed);
    pthread_mutex_unlock(&pub->lock);
    return empty;
}

void publisher_wait(struct publisher *pub)
{
    pthread_mutex_lock(&pub->lock);
    while (pub->full != NULL) {
        pthread_cond_wait(&pub->changed, &pub->lock);
    }
    pthread_mutex_unlock(&pub->lock);
}

unsigned publisher_stop(struct publisher *pub)
{
    pthread_mutex_lock(&pub->lock);
    pub->stop = true;
    pthread_cond_broadcast(&pub->changed);
    pthread_mutex_unlock(&pub->lock);
    pthread_join(pub->thread, NULL);
    unsigned failed = pub->failed;
    release(pub);
    return failed;
}

/* The thread, its jobs and what was asked of them. A conversation is held without the lock: what it uses of a job is
 * the thread's alone, and what it brings is put there afterwards. Whoever waits is woken when nothing is left to do,
 * and looks for itself a hundred times a second, for that may be after the next thing was asked. */
#include "capture/collect/collector.h"
#include "base/time.h"
#include "base/vec.h"
#include "os/client.h"
#include "os/clock.h"
#include "os/confine.h"
#include "os/thread.h"

#include <pthread.h>
#include <stdio.h>

enum {
    STACK_BYTES = 256 << 10,
    FILES_MAX = 16, /* that wait in a job */
    END_MS = 6000, /* for the conversations that end what runs */
    AGAIN_MS = 1000, /* wishes are looked for though nobody woke the thread: where writing fails nobody can */
};

enum wish { WISH_READ = 1, WISH_WHOLE = 2, WISH_STOP = 4 };

struct files {
    struct collected_file at[FILES_MAX];
    size_t count, lost; /* lost: there was no room */
};

struct collect_job {
    const struct runtime *runtime;
    struct runtime_target how;
    uint32_t pid;
    struct client client; /* the thread's */
    void *collection;     /* likewise; null: none runs */
    uint64_t tick_ns, ticked_ns; /* likewise, monotonic: the next moment is asked for, 0: none is; the last was */
    unsigned wishes;      /* bits of enum wish */
    enum collect_state state;
    struct err why;
    struct files files;
    bool busy, forgotten, skips;
};

struct collector {
    pthread_t thread;
    pthread_mutex_t lock;
    VEC(struct collect_job *) jobs;
    const void *turns[FRAME_KIND_COUNT]; /* of the conversations with each runtime (runtime.h) */
    int wake, done; /* wakers: of the thread; of who waits for it */
    bool runs, confined, dials, ends;
};

static void release_files(struct files *f)
{
    for (size_t i = 0; i < f->count; i++) {
        buf_release(&f->at[i].bytes);
    }
    f->count = 0;
}

static void free_job(struct collect_job *job)
{
    release_files(&job->files);
    free(job);
}

/* ---- the thread ---- */

static void keep(void *context, const char *type, struct buf *bytes)
{
    struct files *f = context;
    if (f->count < FILES_MAX) {
        struct collected_file *file = &f->at[f->count++];
        file->bytes = *bytes;
        snprintf(file->type, sizeof file->type, "%s", type != NULL ? type : "");
        buf_init(bytes, bytes->max);
    } else {
        f->lost++;
    }
}

static bool begin(struct collect_job *job, struct err *why)
{
    if (!client_open(&job->client, job->pid, why)) {
        return false;
    }
    job->how.port = &job->client.port;
    job->collection = job->runtime->collect->start(&job->how, why);
    if (job->collection == NULL) {
        client_close(&job->client);
        return false;
    }
    job->ticked_ns = clock_mono_ns();
    uint64_t usual_ns = job->runtime->collect->tick_ms * NS_PER_MS;
    job->tick_ns = job->runtime->collect->tick != NULL ? job->ticked_ns + usual_ns : 0;
    return true;
}

/* A process that takes long to tell is asked less often. False: there is no more to be told, and why is to be asked. */
static bool tick(struct collect_job *job)
{
    uint64_t begun_ns = clock_mono_ns();
    bool goes_on = job->runtime->collect->tick(job->collection, begun_ns - job->ticked_ns);
    uint64_t took_ns = clock_mono_ns() - begun_ns, pause_ns = job->runtime->collect->tick_part * took_ns;
    uint64_t usual_ns = job->runtime->collect->tick_ms * NS_PER_MS;
    job->ticked_ns = begun_ns;
    job->tick_ns = goes_on ? begun_ns + (pause_ns > usual_ns ? pause_ns : usual_ns) : 0;
    return goes_on;
}

/* One conversation; false: the profile is over. */
static bool converse(struct collect_job *job, unsigned wishes, struct files *brought, struct err *why)
{
    const struct runtime_sink sink = {keep, brought};
    if (job->collection == NULL) {
        return (wishes & WISH_STOP) == 0 && begin(job, why);
    }
    if (wishes == 0 && tick(job)) {
        return true;
    }
    bool goes_on = (wishes & WISH_STOP) == 0 &&
                   job->runtime->collect->poll(job->collection, (wishes & WISH_WHOLE) != 0, &sink, why);
    if (goes_on && job->tick_ns == 0 && job->runtime->collect->tick != NULL && why->kind != ERR_NONE) {
        job->tick_ns = clock_mono_ns() + job->runtime->collect->tick_ms * NS_PER_MS; /* it had only something to tell */
    }
    if (!goes_on) {
        job->runtime->collect->stop(job->collection, &sink);
        job->collection = NULL;
        client_close(&job->client);
    }
    return goes_on;
}

static bool is_wanted(const struct collect_job *job, uint64_t now_ns)
{
    bool ticks = job->tick_ns != 0 && now_ns >= job->tick_ns;
    return job->state == COLLECT_BEGINS || (job->state == COLLECT_RUNS && (job->wishes != 0 || ticks));
}

static void put_files(struct collect_job *job, struct files *brought)
{
    for (size_t i = 0; i < brought->count; i++) {
        keep(&job->files, brought->at[i].type, &brought->at[i].bytes);
    }
    job->files.lost += brought->lost;
    release_files(brought);
}

/* With the lock, which is let go of for as long as the conversation takes. */
static void serve(struct collector *c, struct collect_job *job)
{
    unsigned wishes = job->wishes;
    struct files brought = {.count = 0};
    struct err why = {0};
    job->busy = true;
    job->wishes = 0;
    pthread_mutex_unlock(&c->lock);
    bool runs = converse(job, wishes, &brought, &why);
    pthread_mutex_lock(&c->lock);
    job->busy = false;
    job->state = runs ? COLLECT_RUNS : COLLECT_OVER;
    if (!runs || why.kind != ERR_NONE) { /* what start told stays */
        job->why = why;
    }
    put_files(job, &brought);
}

static struct collect_job *next_job(struct collector *c)
{
    uint64_t now_ns = clock_mono_ns();
    vec_each(&c->jobs, job)
    {
        if (is_wanted(*job, now_ns)) {
            return *job;
        }
    }
    return NULL;
}

/* Until the next moment is to be told, or wishes are looked for again. */
static uint64_t time_left(struct collector *c)
{
    uint64_t now_ns = clock_mono_ns(), left_ns = AGAIN_MS * NS_PER_MS;
    vec_each(&c->jobs, job)
    {
        bool ticks = (*job)->state == COLLECT_RUNS && (*job)->tick_ns != 0;
        uint64_t own_ns = !ticks ? UINT64_MAX : (*job)->tick_ns > now_ns ? (*job)->tick_ns - now_ns : 0;
        left_ns = own_ns < left_ns ? own_ns : left_ns;
    }
    return left_ns;
}

static void sweep(struct collector *c)
{
    for (size_t i = c->jobs.len; i-- > 0;) {
        struct collect_job *job = c->jobs.at[i];
        if (job->forgotten && !job->busy && job->state == COLLECT_OVER) {
            vec_swap_out(&c->jobs, i);
            free_job(job);
        }
    }
}

static void *collector_main(void *argument)
{
    struct collector *c = argument;
    if (c->confined) {
        confine_client(c->dials);
    }
    pthread_mutex_lock(&c->lock);
    for (;;) {
        struct collect_job *job = next_job(c);
        if (job != NULL) {
            serve(c, job);
            sweep(c);
            continue;
        }
        waker_set(c->done);
        if (c->ends) {
            break;
        }
        uint64_t left_ns = time_left(c);
        pthread_mutex_unlock(&c->lock);
        (void)waker_wait(c->wake, -1, left_ns);
        pthread_mutex_lock(&c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* ---- the sampler's side ---- */

struct collector *collector_new(void)
{
    struct collector *c = calloc(1, sizeof *c);
    if (c != NULL) {
        pthread_mutex_init(&c->lock, NULL);
        c->wake = c->done = -1;
    }
    return c;
}

bool collector_run(struct collector *c, bool confined, bool dials, struct err *err)
{
    pthread_attr_t attr;
    c->dials = dials;
    c->confined = confined;
    c->wake = waker_open();
    c->done = waker_open();
    if (c->wake < 0 || c->done < 0) {
        return err_set(err, ERR_LIMIT, 0, "no descriptors for the collector's thread");
    }
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    int number = pthread_create(&c->thread, &attr, collector_main, c);
    pthread_attr_destroy(&attr);
    c->runs = number == 0;
    return c->runs || err_no_thread(err, number, "the collector's thread");
}

bool collector_runs(const struct collector *c)
{
    return c->runs;
}

struct collect_job *collector_begin(struct collector *c, uint32_t pid, const struct runtime *runtime,
                                    const struct runtime_target *how)
{
    struct collect_job *job = c->runs ? calloc(1, sizeof *job) : NULL;
    if (job == NULL) {
        return NULL;
    }
    *job = (struct collect_job){.pid = pid, .runtime = runtime, .how = *how};
    job->how.turn = &c->turns[runtime->kind];
    pthread_mutex_lock(&c->lock);
    struct collect_job **place = vec_push(&c->jobs);
    if (place != NULL) {
        *place = job;
    }
    pthread_mutex_unlock(&c->lock);
    if (place == NULL) {
        free(job);
        return NULL;
    }
    waker_set(c->wake);
    return job;
}

enum collect_state collector_state(struct collector *c, const struct collect_job *job, struct err *why)
{
    pthread_mutex_lock(&c->lock);
    enum collect_state state = job->state;
    *why = job->why;
    pthread_mutex_unlock(&c->lock);
    return state;
}

static void wish_of_all(struct collector *c, unsigned wishes)
{
    pthread_mutex_lock(&c->lock);
    vec_each(&c->jobs, job)
    {
        unsigned own = (*job)->skips ? wishes & ~(unsigned)WISH_WHOLE : wishes;
        (*job)->wishes |= (*job)->state == COLLECT_RUNS || (wishes & WISH_STOP) != 0 ? own : 0;
        (*job)->skips = (*job)->skips && (wishes & WISH_WHOLE) == 0;
    }
    pthread_mutex_unlock(&c->lock);
    waker_set(c->wake);
}

void collector_skip(struct collector *c, struct collect_job *job)
{
    pthread_mutex_lock(&c->lock);
    job->skips = true;
    pthread_mutex_unlock(&c->lock);
}

void collector_read(struct collector *c, bool whole)
{
    if (c->runs) {
        wish_of_all(c, WISH_READ | (whole ? WISH_WHOLE : 0));
    }
}

/* A process that is just being begun may take seconds: it is not waited for, but where all is to end. */
static bool is_idle(struct collector *c, bool ends)
{
    bool idle = true;
    pthread_mutex_lock(&c->lock);
    vec_each(&c->jobs, job)
    {
        idle = idle && ((*job)->state == COLLECT_OVER ||
                        (!ends && ((*job)->state == COLLECT_BEGINS || ((*job)->wishes == 0 && !(*job)->busy))));
    }
    pthread_mutex_unlock(&c->lock);
    return idle;
}

static bool wait_until_idle(struct collector *c, bool ends, uint64_t most_ns)
{
    enum { LOOK_MS = 10 };
    uint64_t until_ns = clock_mono_ns() + most_ns;
    bool idle;
    while (!(idle = is_idle(c, ends)) && clock_mono_ns() < until_ns) {
        (void)waker_wait(c->done, -1, LOOK_MS * NS_PER_MS);
    }
    return idle;
}

void collector_wait(struct collector *c, uint64_t most_ns)
{
    if (c->runs) {
        (void)wait_until_idle(c, false, most_ns);
    }
}

bool collector_take(struct collector *c, struct collect_job *job, struct collected_file *file, size_t *lost)
{
    struct files *f = &job->files;
    pthread_mutex_lock(&c->lock);
    *lost = f->lost;
    f->lost = 0;
    bool any = f->count > 0;
    if (any) {
        *file = f->at[0];
        memmove(f->at, f->at + 1, --f->count * sizeof *f->at);
    }
    pthread_mutex_unlock(&c->lock);
    return any;
}

void collector_end(struct collector *c, struct collect_job *job)
{
    pthread_mutex_lock(&c->lock);
    job->wishes |= WISH_STOP;
    job->forgotten = true;
    sweep(c);
    pthread_mutex_unlock(&c->lock);
    waker_set(c->wake);
}

bool collector_stop(struct collector *c)
{
    bool all = true;
    if (c->runs) {
        wish_of_all(c, WISH_STOP);
        all = wait_until_idle(c, true, END_MS * NS_PER_MS);
    }
    return all;
}

void collector_free(struct collector *c)
{
    if (c == NULL) {
        return;
    }
    if (c->runs) {
        if (!collector_stop(c)) {
            return; /* the thread is held up, and uses all of it */
        }
        pthread_mutex_lock(&c->lock);
        c->ends = true;
        pthread_mutex_unlock(&c->lock);
        waker_set(c->wake);
        pthread_join(c->thread, NULL);
    }
    vec_each(&c->jobs, job)
    {
        free_job(*job);
    }
    vec_release(&c->jobs);
    waker_close(c->wake);
    waker_close(c->done);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

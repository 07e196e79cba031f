/* The sampler's side of the catchers: starts one per CPU, publishes the table of what may be read, empties their
 * buffers and stops them. Runs on one thread; what catchers share with it is atomic. Waits are bounded: a catcher
 * may be held up in the kernel. */
#include "capture/catch/catch.h"
#include "base/time.h"
#include "capture/catch/catch_private.h"
#include "capture/catch/perfless_private.h"
#include "os/clock.h"
#include "os/proc.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum {
    STACK_BYTES = 128 * 1024, /* address space: what is not used is never there */
    PLANS_MAX = 64,
    PLANS_LEAST = 4,
    DESCRIPTOR_SHARE = 8, /* of what may be open: events take three quarters, images the rest */
    IDLE_MOST_MS = 250,
    IDLE_LEAST_MS = 10,
    RECORD_BYTES = 1024, /* of a sample, beside its stack */
    PATIENCE_MS = 1000,  /* with a catcher that the kernel holds up */
    RETRY_US = 50,
    SELDOM_S = 10,
};

struct catch *catch_init(uint32_t frequency_hz, struct err *err)
{
    struct catch *c = calloc(1, sizeof *c);
    if (c == NULL || (c->trouble = calloc(1, CATCH_TROUBLE_MAX)) == NULL) {
        free(c);
        err_set(err, ERR_MEMORY, 0, "no memory for catchers");
        return NULL;
    }
    c->frequency_hz = frequency_hz;
    c->at_once_most = CATCH_AT_ONCE_MAX;
    c->half_full = waker_open();
    return c;
}

void catch_charge(struct catch *c, struct own_cost *own)
{
    c->own = own->by_time ? own : NULL;
    c->unprovable = own->by_time; /* clocks that stand still prove nothing */
}

/* ---- catchers ---- */

static void release_catcher(struct catcher *k)
{
    if (k == NULL) {
        return;
    }
    catch_plans_release(&k->plans);
    catch_buffer_release(&k->buffer);
    if (k->deep != NULL) {
        catch_buffer_release(k->deep);
        free(k->deep);
    }
    waker_close(k->waker);
    free(k);
}

static struct catcher *make_catcher(struct catch *c, unsigned cpu, size_t plan_count)
{
    struct catcher *k = calloc(1, sizeof *k);
    if (k == NULL) {
        return NULL;
    }
    *k = (struct catcher){.owner = c,
                          .cpu = cpu,
                          .waker = waker_open(),
                          .hazard = &c->hazards[c->hazard_count]};
    catch_learn_init(&k->learned, c->switches);
    if (!catch_buffer_init(&k->buffer, CATCH_BUFFER_BYTES) ||
        !catch_plans_init(&k->plans, plan_count) || k->waker < 0) {
        release_catcher(k);
        return NULL;
    }
    c->hazard_count++;
    return k;
}

/* How many plans, each with a descriptor, a catcher may have when there are `catchers` of them. */
static size_t plans_of_each(size_t catchers)
{
    uint64_t each = proc_descriptor_limit() / DESCRIPTOR_SHARE / (catchers > 0 ? catchers : 1);
    return each < PLANS_LEAST ? PLANS_LEAST : each > PLANS_MAX ? PLANS_MAX : each;
}

/* Catchers whose thread could not be started keep their hazard: nobody names a table there. */
static bool make_list(struct catch *c)
{
    if (c->catchers == NULL) {
        c->catchers = calloc(CATCH_CPUS_MAX, sizeof *c->catchers);
    }
    return c->catchers != NULL && c->hazard_count < CATCH_CPUS_MAX;
}

/* Makes a catcher for a CPU, without starting it; null when memory or descriptors end. */
static struct catcher *add_catcher(struct catch *c, unsigned cpu, size_t plan_count)
{
    struct catcher *k = make_list(c) ? make_catcher(c, cpu, plan_count) : NULL;
    if (k != NULL) {
        c->catchers[c->catcher_count++] = k;
    }
    return k;
}

struct start {
    struct catcher *catcher;
    void (*run)(struct catcher *k);
};

static void *run_thread(void *context)
{
    struct start start = *(struct start *)context;
    free(context);
    start.run(start.catcher);
    return NULL;
}

/* Signals are the first thread's business. */
static int create_thread(struct catcher *k, struct start *start)
{
    pthread_attr_t attr;
    sigset_t all, before;
    int number = pthread_attr_init(&attr);
    if (number != 0) {
        return number;
    }
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    sigdelset(&all, SIGSYS); /* confine.h */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    number = pthread_create(&k->thread, &attr, run_thread, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return number;
}

static bool start_catcher(struct catcher *k, void (*run)(struct catcher *k), struct err *err)
{
    struct start *start = malloc(sizeof *start);
    if (start == NULL) {
        return err_set(err, ERR_MEMORY, 0, "no memory to start a catcher");
    }
    *start = (struct start){k, run};
    int number = create_thread(k, start);
    k->started = number == 0;
    if (!k->started) {
        free(start);
        return err_errno(err, number, "cannot start a catcher for CPU %u", k->cpu);
    }
    return true;
}

/* ---- rings ---- */

/* Drained by the sampler. */
static bool leave_ring(struct catch *c, unsigned ring)
{
    if (c->left.ring == NULL) {
        c->left.ring = calloc(perf_ring_count(c->perf), sizeof *c->left.ring);
        c->rest = make_catcher(c, 0, PLANS_LEAST);
    }
    if (c->left.ring == NULL || c->rest == NULL) {
        return false;
    }
    c->left.ring[c->left.count++] = ring;
    return true;
}

static bool start_on_ring(struct catch *c, unsigned ring)
{
    struct catcher *k = add_catcher(c, perf_caught_cpu(c->perf, ring), c->plan_count);
    if (k == NULL) {
        return false;
    }
    k->ring = ring;
    if (!start_catcher(k, catch_run_ring, NULL)) {
        release_catcher(c->catchers[--c->catcher_count]);
        return false;
    }
    return true;
}

/* Half of a ring's time to fill, at one busy thread per CPU. */
static uint64_t idle_ns_of(const struct perf *perf)
{
    uint64_t per_s = (uint64_t)perf_sampling(perf)->frequency_hz *
                     (perf_sampling(perf)->stack_bytes + RECORD_BYTES);
    uint64_t ns = per_s > 0 ? perf_caught_bytes(perf) / 2 * NS_PER_S / per_s : 0;
    ns = ns < IDLE_LEAST_MS * NS_PER_MS ? IDLE_LEAST_MS * NS_PER_MS : ns;
    return ns > IDLE_MOST_MS * NS_PER_MS ? IDLE_MOST_MS * NS_PER_MS : ns;
}

bool catch_on_rings(struct catch *c, struct perf *perf, const struct record_format *format,
                    struct err *err)
{
    c->perf = perf;
    c->format = *format;
    c->switches = perf_sampling(perf)->switches;
    c->idle_ns = idle_ns_of(perf);
    unsigned count = perf_ring_count(perf);
    c->plan_count = plans_of_each(count);
    bool at_once = count <= c->at_once_most;
    for (unsigned ring = 0; ring < count; ring++) {
        if (perf_caught_fd(perf, ring) >= 0 && !(at_once && start_on_ring(c, ring)) &&
            !leave_ring(c, ring)) {
            return err_set(err, ERR_MEMORY, 0, "no memory for the catchers of %u CPUs", count);
        }
    }
    return true;
}

/* ---- without perf ---- */

/* All are there before one of them starts: they hand threads over to each other. */
static bool add_for_cpus(struct catch *c, struct err *err)
{
    unsigned cpus[CATCH_CPUS_MAX];
    size_t count = thread_allowed_cpus(cpus, CATCH_CPUS_MAX - 1);
    for (size_t i = 0; i < count; i++) {
        struct catcher *k = add_catcher(c, cpus[i], plans_of_each(count));
        if (k == NULL) {
            return err_set(err, ERR_MEMORY, 0, "no memory for the catchers of %zu CPUs", count);
        }
        k->ring = (unsigned)i;
    }
    c->perfless = count > 0 ? perfless_init(c) : NULL;
    return c->perfless != NULL || err_set(err, ERR_MEMORY, 0, "no memory for catchers");
}

bool catch_perfless(struct catch *c, struct err *err)
{
    bool good = add_for_cpus(c, err);
    for (size_t i = 0; good && i < c->catcher_count; i++) {
        good = start_catcher(c->catchers[i], perfless_run, err);
    }
    return good;
}

void catch_settle(struct catch *c,
                  void (*each)(void *context, uint32_t pid, uint32_t tid, uint64_t cpu_ns),
                  void *context)
{
    if (c->perfless != NULL) {
        perfless_settle(c->perfless, each, context);
    }
}

void catch_set_frequency(struct catch *c, uint32_t frequency_hz)
{
    if (c->perfless != NULL) {
        perfless_set_period(c->perfless, frequency_hz > 0 ? NS_PER_S / frequency_hz
                                                    : SELDOM_S * NS_PER_S);
    }
}

/* ---- targets ---- */

static void add_deep_buffers(struct catch *c)
{
    for (size_t i = 0; i < c->catcher_count; i++) {
        struct catch_buffer *deep = c->catchers[i]->deep == NULL ? malloc(sizeof *deep) : NULL;
        if (deep != NULL && catch_buffer_init(deep, CATCH_DEEP_BYTES)) {
            __atomic_store_n(&c->catchers[i]->deep, deep, __ATOMIC_RELEASE);
        } else {
            free(deep); /* stacks beyond their copy go to the other buffer, less of them */
        }
    }
}

static bool wait_until_unused(struct catch *c)
{
    uint64_t patience_ns = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    bool unused = catch_table_collect(c->table, c->hazards, c->hazard_count);
    while (!unused && clock_mono_ns() < patience_ns) {
        clock_sleep_ns(RETRY_US * NS_PER_US);
        unused = catch_table_collect(c->table, c->hazards, c->hazard_count);
    }
    return unused;
}

bool catch_publish(struct catch *c, const struct catch_target *targets, size_t count)
{
    struct catch_table *table = catch_table_make(targets, count);
    if (table == NULL && (table = catch_table_make(NULL, 0)) == NULL) {
        return false; /* what was published stays in use */
    }
    for (size_t i = 0; i < table->count && !c->any_deep; i++) {
        c->any_deep = table->target[i].deep;
    }
    if (c->any_deep) {
        add_deep_buffers(c);
    }
    catch_table_replace(&c->table, table);
    if (c->perfless != NULL) {
        perfless_publish(c->perfless, table, clock_mono_ns());
    }
    return wait_until_unused(c);
}

/* ---- what they caught ---- */

struct hand_over {
    unsigned cpu;
    void (*each)(void *context, unsigned cpu, const void *record, size_t len,
                 const struct caught *caught);
    void *context;
};

static void hand_over(void *context, const void *record, size_t len, const struct caught *caught)
{
    const struct hand_over *h = context;
    h->each(h->context, h->cpu, record, len, caught);
}

static void drain_catcher(struct catcher *k, struct hand_over *h)
{
    __atomic_store_n(&k->asked_for_room, false, __ATOMIC_RELAXED);
    h->cpu = k->cpu;
    catch_buffer_drain(&k->buffer, hand_over, h);
    if (k->deep != NULL) {
        catch_buffer_drain(k->deep, hand_over, h);
    }
}

/* What is there is taken first: nobody else waits for it. */
static bool drain_left_ring(struct catch *c, unsigned ring, struct hand_over *h)
{
    bool used = !perf_caught_is_empty(c->perf, ring);
    if (used) {
        c->rest->cpu = perf_caught_cpu(c->perf, ring);
        catch_drain_ring(c->rest, ring);
        drain_catcher(c->rest, h);
    }
    return used;
}

static void drain_left(struct catch *c, struct hand_over *h)
{
    for (size_t i = 0; i < c->left.count;) {
        bool used = drain_left_ring(c, c->left.ring[i], h);
        if (!used || c->left.for_good) {
            i++;
        } else if (start_on_ring(c, c->left.ring[i])) {
            c->left.ring[i] = c->left.ring[--c->left.count];
            c->any_deep ? add_deep_buffers(c) : (void)0;
        } else {
            c->left.for_good = true;
        }
    }
}

void catch_drain(struct catch *c,
                 void (*each)(void *context, unsigned cpu, const void *record, size_t len,
                              const struct caught *caught),
                 void *context)
{
    struct hand_over h = {0, each, context};
    waker_clear(c->half_full);
    if (c->perfless != NULL) {
        perfless_round(c->perfless, clock_mono_ns());
    }
    for (size_t i = 0; i < c->catcher_count; i++) {
        drain_catcher(c->catchers[i], &h);
    }
    drain_left(c, &h);
}

int catch_fd(const struct catch *c)
{
    return c->half_full;
}

size_t catch_cpu_count(const struct catch *c)
{
    return c->catcher_count;
}

/* ---- the end ---- */

/* False: the kernel holds it up. Then it keeps all that it uses until the process ends. */
static bool join(struct catcher *k)
{
    uint64_t until_ns = clock_wall_ns() + PATIENCE_MS * NS_PER_MS;
    struct timespec until = {(time_t)(until_ns / NS_PER_S), (long)(until_ns % NS_PER_S)};
    if (!k->started || pthread_timedjoin_np(k->thread, NULL, &until) == 0) {
        return true;
    }
    pthread_detach(k->thread);
    return false;
}

bool catch_stop(struct catch *c)
{
    if (c == NULL) {
        return true;
    }
    bool all_ended = true;
    __atomic_store_n(&c->stop, true, __ATOMIC_RELEASE);
    for (size_t i = 0; i < c->catcher_count; i++) {
        waker_set(c->catchers[i]->waker);
    }
    for (size_t i = 0; i < c->catcher_count; i++) {
        all_ended = join(c->catchers[i]) && all_ended;
    }
    if (!all_ended) {
        return false;
    }
    for (size_t i = 0; i < c->catcher_count; i++) {
        release_catcher(c->catchers[i]);
    }
    release_catcher(c->rest);
    if (c->table != NULL) {
        (void)catch_table_collect(c->table, c->hazards, c->hazard_count);
    }
    free(c->table);
    perfless_free(c->perfless);
    free(c->catchers);
    free(c->left.ring);
    waker_close(c->half_full);
    free(c->trouble);
    free(c);
    return true;
}

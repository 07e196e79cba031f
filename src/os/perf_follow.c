/* perf_follow: the threads that are followed, one event per CPU each: opening them, with the ids of their
 * process where ours are refused, counting, giving some up, replacing them by others of another size or
 * frequency, closing them. The list is in the order of the events' ids: a sample's follower is searched by it. */
#include "os/perf_private.h"
#include "base/map.h"
#include "os/access.h"
#include "os/hot.h"
#include "os/identity.h"
#include "os/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
    LIST_AGAIN_MAX = 8, /* rounds of listing threads while new ones keep appearing */
    REAP_BATCH = 128,   /* followers that are asked in one call whether they have ended */
};

void perf_close_follower(struct perf *p, struct perf_follower *f)
{
    perf_extra_unfollow(p, f);
    for (unsigned i = 0; i < p->ring_count; i++) {
        if (f->fds[i] >= 0) {
            close(f->fds[i]);
        }
    }
    if (f->end_fd >= 0) {
        close(f->end_fd);
    }
    if (f->own_fd >= 0) {
        close(f->own_fd);
    }
    free(f->fds);
}

static bool refuse_target(uint32_t tid, int number, struct err *err)
{
    if (number == EACCES || number == EPERM) {
        return err_set(err, ERR_DENIED, number,
                       "perf events refused on thread %u (%s: other uid, more capabilities or not "
                       "dumpable); run as its user or add SYS_PTRACE",
                       tid, err_name(number));
    }
    if (number == EMFILE || number == ENFILE) {
        return err_set(err, ERR_LIMIT, number,
                       "too many threads for the limit of open files (%s); raise ulimit -n",
                       err_name(number));
    }
    return err_errno(err, number, "cannot follow thread %u", tid);
}

static bool refuse_process(uint32_t pid, int number, struct err *err)
{
    char why[ACCESS_TEXT_MAX];
    access_refusal(pid, ACCESS_LOOK, why);
    return err_set(err, ERR_DENIED, number, "perf events refused on pid %u (%s): %s", pid,
                   err_name(number), why);
}

static bool follow_on_cpu(struct perf *p, struct perf_follower *f, unsigned i,
                          const struct perf_ring *ring, const struct perf_event_attr *attr,
                          struct err *err)
{
    int fd = perf_open_event(attr, (int)f->tid, (int)ring->cpu);
    if (fd < 0 && (errno == ENODEV || (errno == EINVAL && f->fds[0] >= 0))) {
        return true; /* this CPU went off-line */
    }
    if (fd < 0) {
        return refuse_target(f->tid, errno, err);
    }
    f->fds[i] = fd; /* closed with the others if this fails */
    if (fd >= p->fd_limit) {
        return refuse_target(f->tid, EMFILE, err);
    }
    if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) < 0) {
        return err_errno(err, errno, "cannot send thread %u's samples to CPU %u's ring", f->tid,
                         ring->cpu);
    }
    return true;
}

/* Polling an event takes its ring's mark away, that it wants to be read: the sampler, asking whether a
 * task has ended, would take a catcher's. So a caught follower has one event more, which writes nothing and
 * belongs to one of the sampler's own rings (without any ring an event always says that it hung up). */
static bool follow_end(struct perf *p, struct perf_follower *f, struct err *err)
{
    const struct perf_ring *ring = p->rings;
    while (!ring->open) { /* one is, or perf_open had failed */
        ring++;
    }
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_SW_DUMMY,
        .inherit = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .use_clockid = 1, /* as its ring's */
        .clockid = CLOCK_MONOTONIC,
    };
    f->end_fd = perf_open_event(&attr, (int)f->tid, (int)ring->cpu);
    if (f->end_fd < 0) {
        return refuse_target(f->tid, errno, err);
    }
    if (f->end_fd >= p->fd_limit) {
        return refuse_target(f->tid, EMFILE, err);
    }
    return ioctl(f->end_fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) == 0 ||
           err_errno(err, errno, "cannot watch for the end of thread %u", f->tid);
}

/* Ids grow, and nobody else here opens events meanwhile. */
static void note_ids(const struct perf *p, struct perf_follower *f)
{
    for (unsigned i = 0; i < p->ring_count; i++) {
        uint64_t id;
        if (f->fds[i] >= 0 && ioctl(f->fds[i], PERF_EVENT_IOC_ID, &id) == 0) {
            f->first_id = f->first_id == 0 ? id : f->first_id;
            f->last_id = id;
        }
    }
    if (f->first_id == 0 && p->followers.len > 1) { /* it has none, and stands in the others' order */
        f->first_id = f->last_id = f[-1].last_id;
    }
}

static bool follow(struct perf *p, uint32_t pid, uint32_t tid, const struct perf_event_attr *attr,
                   bool caught, struct err *err)
{
    const struct perf_ring *rings = caught ? p->caught : p->rings;
    struct perf_follower *f = vec_push(&p->followers);
    if (f == NULL || (f->fds = malloc(p->ring_count * sizeof *f->fds)) == NULL) {
        p->followers.len -= f != NULL;
        return err_set(err, ERR_MEMORY, 0, "no memory to follow thread %u", tid);
    }
    f->pid = pid;
    f->tid = tid;
    f->frequency_hz = p->sampling.frequency_hz;
    f->end_fd = f->own_fd = -1;
    f->extra = NULL;
    memset(f->fds, -1, p->ring_count * sizeof *f->fds);
    bool ok = !caught || follow_end(p, f, err);
    for (unsigned i = 0; ok && i < p->ring_count; i++) {
        ok = !rings[i].open || follow_on_cpu(p, f, i, &rings[i], attr, err);
    }
    if (!ok) {
        perf_close_follower(p, f);
        p->followers.len--;
        return false;
    }
    note_ids(p, f);
    perf_extra_follow(p, f, attr);
    return true;
}

bool perf_follow(struct perf *p, uint32_t tid, bool on_exec, struct err *err)
{
    struct perf_event_attr attr = perf_plain_attr(&p->sampling, on_exec);
    if (!follow(p, tid, tid, &attr, false, err)) {
        return false;
    }
    p->followers.at[p->followers.len - 1].enabled = on_exec; /* the exec does it */
    return true;
}

int perf_end_of(const struct perf *p, const struct perf_follower *f)
{
    int fd = f->end_fd;
    for (unsigned i = 0; fd < 0 && i < p->ring_count; i++) {
        fd = f->fds[i];
    }
    return fd;
}

/* Where poll itself fails, and always may: a run must not wait for ever for an end that nobody tells. */
static bool is_gone(const struct perf_follower *f)
{
    return kill((pid_t)f->pid, 0) < 0 && errno == ESRCH;
}

static bool has_ended(const struct perf *p, const struct perf_follower *f)
{
    struct pollfd one = {.fd = perf_end_of(p, f)};
    int ready = one.fd < 0 ? 0 : poll(&one, 1, 0);
    return one.fd < 0 || (ready < 0 ? is_gone(f) : (one.revents & POLLHUP) != 0);
}

static bool is_followed(const struct perf *p, uint32_t tid)
{
    vec_each(&p->followers, f)
    {
        if (f->tid == tid && !f->retired && !has_ended(p, f)) {
            return true;
        }
    }
    return false;
}

size_t perf_follower_count(const struct perf *p)
{
    return p->followers.len;
}

bool perf_is_followed(const struct perf *p, uint32_t pid)
{
    vec_each(&p->followers, f)
    {
        if (f->pid == pid) {
            return true;
        }
    }
    return false;
}

/* A record that is longer than its ring is never written: two are to fit. */
static uint32_t fitting_stack(const struct perf *p, const struct perf_how *how)
{
    enum { RECORD_REST_BYTES = 2048 }; /* header, registers, a chain of 127 */
    uint64_t most = perf_caught_bytes(p) / 2 - RECORD_REST_BYTES;
    return !how->caught || how->stack_bytes <= most ? how->stack_bytes : (uint32_t)most & ~7U;
}

static unsigned open_count(const struct perf *p)
{
    unsigned count = 0;
    for (unsigned i = 0; i < p->ring_count; i++) {
        count += p->rings[i].open;
    }
    return count;
}

/* How many threads more may be followed, about, with so many events beside the one for each CPU: descriptors in use
 * have the lowest numbers. */
static size_t threads_that_fit(const struct perf *p, unsigned more)
{
    int fd = -1;
    for (unsigned i = 0; fd < 0 && i < p->ring_count; i++) {
        fd = p->rings[i].open ? fcntl(p->rings[i].fd, F_DUPFD_CLOEXEC, 0) : -1;
    }
    if (fd < 0) {
        return 0;
    }
    close(fd);
    return fd >= p->fd_limit ? 0 : (size_t)(p->fd_limit - fd) / (open_count(p) + more);
}

/* The kernel asks for the real ids of the caller to be those of the process; from a refusal on, until the last
 * thread is followed, they are. */
struct as_user {
    bool tried, taken;
};

static bool follow_as_user(struct perf *p, uint32_t pid, uint32_t tid,
                           const struct perf_event_attr *attr, bool caught, struct as_user *as,
                           struct err *err)
{
    struct identity identity;
    if (follow(p, pid, tid, attr, caught, err)) {
        return true;
    }
    if (as->tried || (err->number != EACCES && err->number != EPERM)) {
        return false;
    }
    as->tried = true;
    as->taken = identity_of(pid, &identity) && identity_take_real(&identity);
    return as->taken && follow(p, pid, tid, attr, caught, err);
}

struct follow_all {
    const struct perf_event_attr *attr;
    bool caught, any;
    bool full; /* no descriptor is left */
    bool counts_own;
    struct as_user as;
};

/* Where it cannot be had, what the follower counts has the time of all that it starts. */
static void count_own(const struct perf *p, struct perf_follower *f, const struct perf_event_attr *attr)
{
    struct perf_event_attr own = perf_own_attr(attr);
    f->own_fd = perf_open_event(&own, (int)f->tid, -1);
    if (f->own_fd >= p->fd_limit) {
        close(f->own_fd);
        f->own_fd = -1;
    }
}

static void follow_listed(struct perf *p, uint32_t pid, const struct pid_list *threads,
                          struct follow_all *all, struct err *err)
{
    vec_each(&threads->ids, tid)
    {
        struct err one = {0};
        bool known = is_followed(p, *tid);
        if (known || (!all->full && follow_as_user(p, pid, *tid, all->attr, all->caught, &all->as, &one))) {
            if (!known && all->counts_own) {
                count_own(p, &p->followers.at[p->followers.len - 1], all->attr);
            }
            all->any = true;
            continue;
        }
        all->full = all->full || one.kind == ERR_LIMIT;
        uint32_t *left = all->full ? vec_push(&p->unsampled.ids) : NULL;
        if (left != NULL) {
            *left = *tid;
        } else if (one.number != ESRCH && err != NULL) {
            *err = one;
        }
    }
}

/* The soft limit was raised already. */
static void tell_left(const struct perf *p, uint32_t pid, size_t threads, struct err *err)
{
    err_set(err, ERR_LIMIT, EMFILE,
            "%zu of the %zu threads of pid %u are unsampled, those with the least CPU time: their events need "
            "%zu descriptors, but only %llu files may be open; raise the hard limit (ulimit -Hn)",
            p->unsampled.ids.len, threads, pid, threads * open_count(p),
            (unsigned long long)proc_descriptor_limit());
}

bool perf_follow_process(struct perf *p, uint32_t pid, const struct perf_how *how, struct err *err)
{
    vec_clear(&p->unsampled.ids);
    if (how->caught && p->caught == NULL) {
        return err_set(err, ERR_UNSUPPORTED, 0, "cannot catch the samples of pid %u: there are no rings for it", pid);
    }
    struct perf_sampling sampling = p->sampling;
    sampling.stack_bytes = fitting_stack(p, how);
    struct perf_event_attr attr =
        how->caught ? perf_caught_attr(&sampling) : perf_plain_attr(&sampling, false);
    struct follow_all all = {.attr = &attr, .caught = how->caught};
    struct pid_list threads = {0};
    bool listed = proc_list_threads(pid, &threads, err);
    if (listed && threads.ids.len > threads_that_fit(p, how->caught)) {
        hot_first(pid, &threads);
    }
    /* samples come first: half of the room is left to others */
    all.counts_own = listed && threads.ids.len >= PERF_OWN_THREADS_MIN &&
                     threads.ids.len <= threads_that_fit(p, how->caught + 1U) / 2;
    for (unsigned round = 0; listed && round < LIST_AGAIN_MAX; round++) {
        size_t before = p->followers.len;
        follow_listed(p, pid, &threads, &all, err);
        /* a thread started by one that was not yet followed is seen by listing again */
        if (all.full || p->followers.len == before || !proc_list_threads(pid, &threads, NULL)) {
            break;
        }
    }
    if (all.as.taken) {
        identity_leave_real();
    }
    if (all.full) {
        tell_left(p, pid, threads.ids.len, err);
    }
    vec_release(&threads.ids);
    if (listed && !all.any && (err == NULL || err->number == 0)) {
        return err_set(err, ERR_GONE, ESRCH, "pid %u ended before it could be followed", pid);
    }
    if (listed && !all.any && err != NULL && err->kind == ERR_DENIED) {
        return refuse_process(pid, err->number, err);
    }
    return all.any;
}

const struct pid_list *perf_unsampled(const struct perf *p)
{
    return &p->unsampled;
}

uint32_t perf_outdated(const struct perf *p)
{
    vec_each(&p->followers, f)
    {
        if (f->frequency_hz != p->sampling.frequency_hz) {
            return f->pid;
        }
    }
    return 0;
}

void perf_outdate(struct perf *p)
{
    vec_each(&p->followers, f)
    {
        f->frequency_hz = UINT32_MAX; /* no events have this one */
    }
}

void perf_accept_outdated(struct perf *p, uint32_t pid)
{
    vec_each(&p->followers, f)
    {
        f->frequency_hz = f->pid == pid ? p->sampling.frequency_hz : f->frequency_hz;
    }
}

bool perf_follow_thread(struct perf *p, uint32_t pid, uint32_t tid, const struct perf_how *how,
                        struct err *err)
{
    struct perf_sampling sampling = p->sampling;
    sampling.stack_bytes = fitting_stack(p, how);
    struct perf_event_attr attr =
        how->caught ? perf_caught_attr(&sampling) : perf_plain_attr(&sampling, false);
    return is_followed(p, tid) || follow(p, pid, tid, &attr, how->caught, err);
}

static void set_own(const struct perf_follower *f, unsigned long request)
{
    if (f->own_fd >= 0) {
        (void)ioctl(f->own_fd, request, 0);
    }
}

void perf_enable(struct perf *p)
{
    vec_each(&p->followers, f)
    {
        for (unsigned i = 0; !f->enabled && i < p->ring_count; i++) {
            if (f->fds[i] >= 0) {
                (void)ioctl(f->fds[i], PERF_EVENT_IOC_ENABLE, 0);
            }
        }
        if (!f->enabled) {
            set_own(f, PERF_EVENT_IOC_ENABLE);
            perf_extra_set(p, f, PERF_EVENT_IOC_ENABLE);
        }
        f->enabled = true;
    }
}

static uint64_t read_count(int fd)
{
    uint64_t count = 0;
    return fd >= 0 && read(fd, &count, sizeof count) == sizeof count ? count : 0;
}

static uint64_t follower_count_ns(const struct perf *p, const struct perf_follower *f)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < p->ring_count; i++) {
        sum += read_count(f->fds[i]);
    }
    return sum;
}

/* What it counted since it was asked last. */
static struct perf_count take_count(const struct perf *p, struct perf_follower *f)
{
    uint64_t count_ns = follower_count_ns(p, f), own_ns = read_count(f->own_fd);
    struct perf_count count = {.pid = f->pid, .own_is_counted = f->own_fd >= 0};
    if (count_ns > f->reported_ns) {
        count.count_ns = count_ns - f->reported_ns;
        f->reported_ns = count_ns;
    }
    if (own_ns > f->own_reported_ns) {
        count.own_ns = own_ns - f->own_reported_ns;
        f->own_reported_ns = own_ns;
    }
    return count;
}

void perf_mark(struct perf *p, uint32_t pid, uint64_t idle_ns)
{
    vec_each(&p->followers, f)
    {
        if ((pid == 0 || f->pid == pid) && f->enabled) {
            uint64_t count_ns = follower_count_ns(p, f);
            f->recent_ns = count_ns - f->marked_ns;
            f->idle = f->recent_ns <= idle_ns;
            f->marked_ns = count_ns;
            f->marks++;
        }
    }
}

/* Leaves its place empty: remove_ended comes after the last one. */
static void end_follower(struct perf *p, struct perf_follower *f)
{
    struct perf_count count = f->duplicate ? (struct perf_count){0} : take_count(p, f);
    struct perf_count *ended = count.count_ns > 0 || count.own_ns > 0 ? vec_push(&p->ended) : NULL;
    if (ended != NULL) {
        *ended = count;
    }
    p->ended_count_ns += f->reported_ns;
    perf_close_follower(p, f);
    f->fds = NULL;
}

/* The others stay in the order of their ids. */
static void remove_ended(struct perf *p)
{
    size_t kept = 0;
    vec_each(&p->followers, f)
    {
        if (f->fds != NULL) {
            p->followers.at[kept++] = *f;
        }
    }
    p->followers.len = kept;
}

bool perf_give_up_idle(struct perf *p, uint32_t pid, uint32_t *tid)
{
    vec_each(&p->followers, f)
    {
        if (f->pid == pid && f->idle && f->tid != pid) {
            *tid = f->tid;
            end_follower(p, f);
            remove_ended(p);
            return true;
        }
    }
    return false;
}

/* Of the followers of one process together; UINT64_MAX: one of them is too young to tell. */
static bool add_recent(struct map *sums, const struct perf_follower *f)
{
    const struct map_slot *slot = map_find(sums, f->pid);
    uint64_t sum = slot == NULL ? 0 : slot->value;
    bool young = f->marks < 2 || sum == UINT64_MAX;
    return map_put(sums, f->pid, young ? UINT64_MAX : sum + f->recent_ns);
}

uint32_t perf_coolest(const struct perf *p, uint32_t except, uint64_t *recent_ns)
{
    struct map sums = {0};
    uint32_t coolest = 0;
    *recent_ns = UINT64_MAX;
    bool good = true;
    vec_each(&p->followers, f)
    {
        good = good && add_recent(&sums, f);
    }
    map_each(&sums, slot)
    {
        if (good && slot->key != except && slot->value < *recent_ns) {
            *recent_ns = slot->value;
            coolest = (uint32_t)slot->key;
        }
    }
    map_release(&sums);
    return coolest;
}

void perf_give_up(struct perf *p, uint32_t pid)
{
    vec_each(&p->followers, f)
    {
        if (f->pid == pid) {
            end_follower(p, f);
        }
    }
    remove_ended(p);
}

static struct perf_follower *find(const struct perf *p, uint64_t id)
{
    size_t from = 0, to = p->followers.len;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (p->followers.at[middle].last_id < id) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    bool found = from < p->followers.len && p->followers.at[from].first_id <= id;
    return found ? &p->followers.at[from] : NULL;
}

uint64_t perf_follower_of(const struct perf *p, uint64_t event, bool *duplicate)
{
    const struct perf_follower *f = find(p, event);
    *duplicate = f != NULL && f->duplicate;
    return f == NULL ? 0 : f->first_id;
}

void perf_set_duplicate(struct perf *p, uint64_t follower)
{
    struct perf_follower *f = find(p, follower);
    if (f != NULL) {
        f->duplicate = true;
    }
}

void perf_retire(struct perf *p, uint32_t pid)
{
    vec_each(&p->followers, f)
    {
        f->retired = f->retired || pid == 0 || f->pid == pid;
    }
}

static void disable(const struct perf *p, const struct perf_follower *f)
{
    for (unsigned i = 0; i < p->ring_count; i++) {
        if (f->fds[i] >= 0) {
            (void)ioctl(f->fds[i], PERF_EVENT_IOC_DISABLE, 0);
        }
    }
    set_own(f, PERF_EVENT_IOC_DISABLE);
    perf_extra_set(p, f, PERF_EVENT_IOC_DISABLE);
}

void perf_replace(struct perf *p, bool keep)
{
    vec_each(&p->followers, f)
    {
        if (f->retired && !keep) {
            disable(p, f);
        }
    }
    if (!keep) {
        perf_enable(p);
    }
    vec_each(&p->followers, f)
    {
        bool ends = keep ? !f->enabled && !f->retired : f->retired;
        f->retired = false;
        if (ends) {
            end_follower(p, f);
        }
    }
    remove_ended(p);
}

void perf_stop_duplicates(struct perf *p)
{
    vec_each(&p->followers, f)
    {
        if (f->duplicate) {
            disable(p, f);
        }
    }
}

void perf_end_duplicates(struct perf *p)
{
    vec_each(&p->followers, f)
    {
        if (f->duplicate) {
            end_follower(p, f);
        }
    }
    remove_ended(p);
}

uint64_t perf_count_ns(struct perf *p)
{
    uint64_t sum = p->ended_count_ns;
    vec_each(&p->followers, f)
    {
        sum += follower_count_ns(p, f);
    }
    return sum;
}

void perf_each_count(struct perf *p, void (*each)(void *context, const struct perf_count *count), void *context)
{
    vec_each(&p->ended, ended)
    {
        each(context, ended);
    }
    vec_clear(&p->ended);
    vec_each(&p->followers, f)
    {
        struct perf_count count = take_count(p, f);
        if (count.count_ns > 0 || count.own_ns > 0) {
            each(context, &count);
        }
    }
}

/* Asks followers [from, limit). */
static void reap_some(struct perf *p, size_t from, size_t limit)
{
    struct pollfd fds[REAP_BATCH];
    for (size_t i = from; i < limit; i++) {
        fds[i - from] = (struct pollfd){.fd = perf_end_of(p, &p->followers.at[i])};
    }
    bool told = poll(fds, limit - from, 0) >= 0;
    for (size_t i = from; i < limit; i++) {
        struct perf_follower *f = &p->followers.at[i];
        if (fds[i - from].fd < 0 || (told ? (fds[i - from].revents & POLLHUP) != 0 : is_gone(f))) {
            end_follower(p, f);
        }
    }
}

size_t perf_reap(struct perf *p)
{
    for (size_t from = 0, limit; from < p->followers.len; from = limit) {
        limit = from + REAP_BATCH < p->followers.len ? from + REAP_BATCH : p->followers.len;
        reap_some(p, from, limit);
    }
    remove_ended(p);
    return p->followers.len;
}

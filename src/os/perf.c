/* perf: all of it together. Opens the sets of rings so that each has its share of the memory that may be
 * locked, waits for them, drains them, and closes everything. Events, rings and followers are the other
 * files' matter (perf_private.h). */
#include "os/perf_private.h"
#include "base/time.h"
#include "os/proc.h"

#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    AWAITED_AMONG = 64,  /* first threads of a command have their events early */
};

static bool list_cpus(struct perf *p, struct err *err)
{
    uint32_t *cpus = malloc(CPU_COUNT_MAX * sizeof *cpus);
    size_t count = cpus == NULL ? 0 : perf_list_cpus(cpus); /* not our own affinity: a target may run elsewhere */
    p->rings = calloc(count, sizeof *p->rings);
    p->scratch = malloc(PERF_RECORD_MAX_BYTES);
    p->polled = malloc((2 * count + PERF_WAIT_FDS + 1) * sizeof *p->polled);
    if (cpus == NULL || p->rings == NULL || p->scratch == NULL || p->polled == NULL) {
        free(cpus);
        return err_set(err, ERR_MEMORY, 0, "no memory for %zu perf rings", count);
    }
    for (size_t i = 0; i < count; i++) {
        /* one thread drains them all, so one scratch buffer serves them all */
        p->rings[i] = (struct perf_ring){.cpu = cpus[i], .fd = -1, .scratch = p->scratch};
    }
    p->ring_count = (unsigned)count;
    free(cpus);
    return true;
}

/* Raises the limit of descriptors as far as allowed; what events may use of it. */
static int raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    uint64_t most = proc_descriptor_limit();
    return most > INT_MAX ? INT_MAX : (int)(most - most / 4);
}

/* The kernel lets who holds CAP_IPC_LOCK in the first user namespace lock whatever it likes. */
static bool locks_without_bound(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    char map[64];
    if (syscall(SYS_capget, &head, data) != 0 || (data[0].effective >> CAP_IPC_LOCK & 1) == 0) {
        return false;
    }
    size_t len = proc_read_file("/proc/self/uid_map", map, sizeof map);
    struct str whole = str_trim((struct str){map, len});
    return str_ends(whole, STR(" 4294967295"));
}

/* Two sets of rings share the memory that an ordinary user may lock, and the second is made later: so
 * the first leaves the other what that wishes, or at least a quarter of its own size. */
static bool leaves_room(struct perf *p)
{
    if (locks_without_bound()) {
        return true;
    }
    uint64_t wish = perf_further_pages(p) * proc_page_bytes(), share = perf_ring_bytes(p) / 4;
    uint64_t least = wish < share ? wish : share;
    bool room = perf_open_caught(p, NULL) && perf_caught_bytes(p) >= least &&
                (!p->sampling.extra || perf_extra_have_room(p, least));
    perf_close_caught(p);
    return room;
}

static bool open_plain(struct perf *p, size_t pages, struct err *err)
{
    size_t fewer = pages;
    while (perf_open_rings(p, p->rings, &fewer, err)) {
        if (leaves_room(p)) {
            return true;
        }
        perf_close_rings(p->rings, p->ring_count);
        if (fewer <= PERF_RING_MIN_PAGES) { /* there is none for the other set at all */
            return perf_open_rings(p, p->rings, &pages, err);
        }
        fewer /= 2;
    }
    return false;
}

const struct perf_sampling *perf_sampling(const struct perf *p)
{
    return &p->sampling;
}

void perf_set_frequency(struct perf *p, uint32_t frequency_hz)
{
    p->sampling.frequency_hz = frequency_hz;
}

void perf_set_stack_bytes(struct perf *p, uint32_t stack_bytes)
{
    p->sampling.stack_bytes = stack_bytes;
}

unsigned perf_ring_count(const struct perf *p)
{
    return p->ring_count;
}

void perf_await(struct perf *p, uint32_t pid)
{
    p->awaited_pid = pid;
}

static bool any_open(const struct perf *p)
{
    return perf_rings_bytes(p->rings, p->ring_count) > 0;
}

struct perf *perf_new(struct err *err)
{
    struct perf *p = calloc(1, sizeof *p);
    if (p == NULL) {
        (void)err_set(err, ERR_MEMORY, 0, "no memory for perf events");
    }
    return p;
}

bool perf_open(struct perf *p, const struct perf_sampling *sampling, struct err *err)
{
    *p = (struct perf){.sampling = *sampling};
    p->fd_limit = raise_descriptor_limit();
    bool ok = list_cpus(p, err) && open_plain(p, perf_first_pages(p), err);
    if (ok && !any_open(p)) {
        ok = err_set(err, ERR_UNSUPPORTED, ENODEV, "no CPU of this machine supports perf events");
    }
    if (!ok) {
        perf_close(p);
    }
    return ok;
}

void perf_close(struct perf *p)
{
    vec_each(&p->followers, f)
    {
        perf_close_follower(p, f);
    }
    vec_release(&p->followers);
    vec_release(&p->unsampled.ids);
    vec_release(&p->ended);
    perf_close_rings(p->rings, p->ring_count);
    free(p->rings);
    free(p->scratch);
    free(p->polled);
    perf_close_caught(p);
    perf_close_extra(p);
    perf_close_bursts(p);
    *p = (struct perf){0};
}

void perf_free(struct perf *p)
{
    if (p != NULL) {
        perf_close(p);
        free(p);
    }
}

/* Whose end is an event to wake for: the only one's, or the launched command's, also when each of its threads has
 * events of its own. Null: nobody's. */
static const struct perf_follower *awaited(const struct perf *p)
{
    if (p->followers.len == 1) {
        return &p->followers.at[0];
    }
    for (size_t i = 0; p->awaited_pid != 0 && i < p->followers.len && i < AWAITED_AMONG; i++) {
        if (p->followers.at[i].tid == p->awaited_pid) {
            return &p->followers.at[i];
        }
    }
    return NULL;
}

static nfds_t add_extra(struct pollfd *fds, const int extra_fds[static PERF_WAIT_FDS])
{
    nfds_t count = 0;
    for (unsigned i = 0; i < PERF_WAIT_FDS; i++) {
        if (extra_fds[i] >= 0) {
            fds[count++] = (struct pollfd){.fd = extra_fds[i], .events = POLLIN};
        }
    }
    return count;
}

static int wait_for(struct pollfd *fds, nfds_t count, uint64_t timeout_ns)
{
    struct timespec timeout = {(time_t)(timeout_ns / NS_PER_S), (long)(timeout_ns % NS_PER_S)};
    return ppoll(fds, count, &timeout, NULL);
}

bool perf_wait_aside(struct perf *p, const int extra_fds[static PERF_WAIT_FDS], uint64_t timeout_ns)
{
    struct pollfd fds[PERF_WAIT_FDS];
    nfds_t count = add_extra(fds, extra_fds);
    (void)wait_for(fds, count, timeout_ns);
    const struct perf_follower *end = awaited(p);
    struct pollfd one = {.fd = end == NULL ? -1 : perf_end_of(p, end)};
    return end != NULL && wait_for(&one, 1, 0) > 0 && (one.revents & POLLHUP) != 0;
}

bool perf_wait(struct perf *p, const int extra_fds[static PERF_WAIT_FDS], uint64_t timeout_ns)
{
    struct pollfd *fds = p->polled;
    nfds_t count = add_extra(fds, extra_fds);
    for (unsigned i = 0; i < p->ring_count; i++) {
        if (p->rings[i].open) {
            fds[count++] = (struct pollfd){.fd = p->rings[i].fd, .events = POLLIN};
        }
        if (perf_extra_fd(p, i) >= 0) {
            fds[count++] = (struct pollfd){.fd = perf_extra_fd(p, i), .events = POLLIN};
        }
    }
    const struct perf_follower *end = awaited(p);
    if (end != NULL) {
        fds[count++] = (struct pollfd){.fd = perf_end_of(p, end)};
    }
    return wait_for(fds, count, timeout_ns) > 0 && end != NULL &&
           (fds[count - 1].revents & POLLHUP) != 0;
}

void perf_drain(struct perf *p,
                void (*each)(void *context, unsigned ring, const void *record, size_t len),
                void *context)
{
    for (unsigned i = 0; i < p->ring_count; i++) {
        if (p->rings[i].open) {
            perf_drain_ring(&p->rings[i], i, each, context);
        }
    }
}

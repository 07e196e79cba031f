/* perf_burst: one more event for every thread of a process, with a short period, which is on for short moments
 * only, so that threads too young for a sample are sampled like the others (perf.h, "Bursts"). Their samples
 * go to the ring of the process's other ones. */
#include "os/identity.h"
#include "os/perf_private.h"
#include "os/proc.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    BURST_STACK_BYTES = 8 * 1024, /* what lies deeper is read from memory, as far as it can be */
    BURST_RING_SHARE = 64,        /* of a ring: what a sample's stack may take, at ten thousand per second */
    BURST_STACK_LEAST = 512,
};

static struct perf_burst *find(const struct perf *p, uint32_t pid)
{
    vec_each(&p->bursts, burst)
    {
        if (burst->pid == pid) {
            return burst;
        }
    }
    return NULL;
}

/* Mappings, names, starts and ends are recorded by the process's other events. */
static struct perf_event_attr attr_of(const struct perf *p, bool caught)
{
    struct perf_sampling sampling = p->sampling;
    uint64_t ring_bytes = caught ? perf_caught_bytes(p) : perf_ring_bytes(p);
    uint64_t most = ring_bytes / BURST_RING_SHARE & ~UINT64_C(7);
    most = most < BURST_STACK_LEAST ? BURST_STACK_LEAST : most < BURST_STACK_BYTES ? most : BURST_STACK_BYTES;
    sampling.stack_bytes = sampling.stack_bytes < most ? sampling.stack_bytes : (uint32_t)most;
    struct perf_event_attr attr =
        caught ? perf_caught_attr(&sampling) : perf_plain_attr(&sampling, false);
    attr.sample_period = PERF_BURST_PERIOD_NS;
    attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = attr.context_switch = 0;
    return attr;
}

/* 0, or the errno that stands in the way. A thread that has ended, or a CPU that went away, is nothing. */
static int follow_thread(struct perf *p, struct perf_burst *burst, uint32_t tid,
                         const struct perf_event_attr *attr)
{
    const struct perf_ring *rings = burst->caught ? p->caught : p->rings;
    for (unsigned i = 0; i < p->ring_count; i++) {
        int fd = rings[i].open ? perf_open_event(attr, (int)tid, (int)rings[i].cpu) : -1;
        if (fd < 0) {
            if (!rings[i].open || errno == ENODEV || errno == ESRCH) {
                continue;
            }
            return errno;
        }
        int *place = fd < p->fd_limit ? vec_push(&burst->fds) : NULL;
        if (place == NULL || ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, rings[i].fd) < 0) {
            int number = place == NULL ? EMFILE : errno;
            burst->fds.len -= place != NULL;
            close(fd);
            return number;
        }
        *place = fd;
    }
    return 0;
}

static void close_all(struct perf_burst *burst)
{
    vec_each(&burst->fds, fd)
    {
        close(*fd);
    }
    vec_clear(&burst->fds);
}

static int follow_threads(struct perf *p, struct perf_burst *burst, const struct pid_list *threads)
{
    const struct perf_event_attr attr = attr_of(p, burst->caught);
    int number = 0;
    for (size_t i = 0; number == 0 && i < threads->ids.len; i++) {
        number = follow_thread(p, burst, threads->ids.at[i], &attr);
    }
    if (number != 0) {
        close_all(burst);
    }
    return number;
}

static bool refuse(uint32_t pid, int number, struct err *err)
{
    return err_errno(err, number, "cannot sample the short-lived threads of pid %u", pid);
}

/* As perf_follow_process does, with the process's real ids where ours are refused. */
static int follow_as_user(struct perf *p, struct perf_burst *burst, const struct pid_list *threads)
{
    struct identity identity;
    int number = follow_threads(p, burst, threads);
    if ((number == EACCES || number == EPERM) && identity_of(burst->pid, &identity) &&
        identity_take_real(&identity)) {
        number = follow_threads(p, burst, threads);
        identity_leave_real();
    }
    return number;
}

bool perf_burst_follow(struct perf *p, uint32_t pid, bool caught, struct err *err)
{
    struct pid_list threads = {0};
    if (caught && p->caught == NULL) {
        return err_set(err, ERR_UNSUPPORTED, 0, "cannot catch the samples of pid %u: there are no rings for it", pid);
    }
    if (!proc_list_threads(pid, &threads, err)) {
        return false;
    }
    perf_burst_end(p, pid);
    if (threads.ids.len > PERF_BURST_THREADS_MAX) {
        vec_release(&threads.ids);
        return err_set(err, ERR_LIMIT, 0, "pid %u has too many threads to sample its short-lived ones", pid);
    }
    struct perf_burst *burst = vec_push(&p->bursts);
    int number = burst == NULL ? ENOMEM : 0;
    if (burst != NULL) {
        *burst = (struct perf_burst){.pid = pid, .caught = caught};
        number = follow_as_user(p, burst, &threads);
        if (number != 0) {
            vec_release(&burst->fds);
            p->bursts.len--;
        }
    }
    vec_release(&threads.ids);
    return number == 0 || refuse(pid, number, err);
}

bool perf_burst_is_followed(const struct perf *p, uint32_t pid, bool caught)
{
    const struct perf_burst *burst = find(p, pid);
    return burst != NULL && burst->caught == caught;
}

static void set_all(const struct perf *p, unsigned long request)
{
    vec_each(&p->bursts, burst)
    {
        vec_each(&burst->fds, fd)
        {
            (void)ioctl(*fd, request, 0);
        }
    }
}

/* A thread that begins at that very moment may be given an event that is on, which all that are started by whom it
 * is exchanged with inherit (seen once in ten times, with two thousand threads per second). */
void perf_burst_set(struct perf *p, bool on)
{
    enum { STOPS = 3 };
    for (unsigned i = 0; i < (on ? 1 : STOPS); i++) {
        set_all(p, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE);
    }
}

void perf_burst_end(struct perf *p, uint32_t pid)
{
    struct perf_burst *burst = find(p, pid);
    if (burst != NULL) {
        close_all(burst);
        vec_release(&burst->fds);
        vec_swap_out(&p->bursts, (size_t)(burst - p->bursts.at));
    }
}

uint32_t perf_burst_pid(const struct perf *p, size_t place)
{
    return place < p->bursts.len ? p->bursts.at[place].pid : 0;
}

void perf_close_bursts(struct perf *p)
{
    while (p->bursts.len > 0) {
        perf_burst_end(p, p->bursts.at[0].pid);
    }
    vec_release(&p->bursts);
}

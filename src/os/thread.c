/* What catching needs of a thread: being bound to one CPU, a rank that preempts the sampled thread
 * (FIFO, or a short slice), precise sleeping, and a waker that ends another thread's wait. Refusals
 * are kept as sentences, never fatal. */
#include "os/thread.h"
#include "base/time.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- CPUs ---- */

enum { CPUS_MAX = 8192 }; /* the kernel's own greatest number */

/* cpu_set_t ends at 1024; sched_getaffinity refuses a set that is smaller than the machine's. */
struct cpus {
    unsigned long word[CPUS_MAX / (CHAR_BIT * sizeof(unsigned long))];
};

enum { WORD_BITS = CHAR_BIT * sizeof(unsigned long) };

bool thread_bind(unsigned cpu, struct err *err)
{
    struct cpus set = {{0}};
    if (cpu < CPUS_MAX) {
        set.word[cpu / WORD_BITS] = 1UL << cpu % WORD_BITS;
    }
    if (sched_setaffinity(0, sizeof set, (const cpu_set_t *)&set) == 0) {
        return true;
    }
    if (errno == EINVAL) {
        return err_set(err, ERR_DENIED, EINVAL,
                       "CPU %u is not in the allowed set (cpuset); samples on it cannot be caught",
                       cpu);
    }
    return err_errno(err, errno, "cannot bind a thread to CPU %u", cpu);
}

unsigned thread_cpu(void)
{
    int cpu = sched_getcpu();
    return cpu < 0 ? UINT_MAX : (unsigned)cpu;
}

size_t thread_allowed_cpus(unsigned *out, size_t max)
{
    struct cpus set = {{0}};
    size_t count = 0;
    /* of the process's first thread: the calling one may be bound already */
    if (sched_getaffinity(getpid(), sizeof set, (cpu_set_t *)&set) < 0) {
        return 0;
    }
    for (unsigned cpu = 0; cpu < CPUS_MAX && count < max; cpu++) {
        if ((set.word[cpu / WORD_BITS] >> cpu % WORD_BITS & 1) != 0) {
            out[count++] = cpu;
        }
    }
    return count;
}

bool thread_cpus_outside(uint32_t tid, unsigned *count)
{
    struct cpus own = {{0}}, other = {{0}};
    if (sched_getaffinity(getpid(), sizeof own, (cpu_set_t *)&own) < 0 ||
        sched_getaffinity((pid_t)tid, sizeof other, (cpu_set_t *)&other) < 0) {
        return false;
    }
    *count = 0;
    for (size_t i = 0; i < sizeof own.word / sizeof own.word[0]; i++) {
        *count += (unsigned)__builtin_popcountl(other.word[i] & ~own.word[i]);
    }
    return true;
}

/* ---- rank ---- */

/* The first version of the kernel's struct sched_attr, which every kernel takes; the C libraries have
 * no wrapper, or a new one. */
struct rank_attr {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns; /* with policy OTHER: the slice, from 6.12 on */
    uint64_t deadline_ns;
    uint64_t period_ns;
};

static bool set_rank(int policy, int nice, uint64_t slice_ns)
{
    struct rank_attr attr = {
        .size = sizeof attr,
        .policy = (uint32_t)policy,
        .nice = nice,
        .priority = policy == SCHED_FIFO ? 1 : 0,
        .runtime_ns = slice_ns,
    };
    return syscall(SYS_sched_setattr, 0, &attr, 0) == 0;
}

bool thread_rank_of(uint32_t tid, int *policy, int *nice)
{
    struct rank_attr attr = {0};
    if (syscall(SYS_sched_getattr, tid, &attr, sizeof attr, 0) != 0) {
        return false;
    }
    *policy = (int)attr.policy;
    *nice = attr.nice;
    return true;
}

static void note_refusal(struct thread_rank *out, int number, const char *what)
{
    if (out->refused.kind == ERR_NONE) {
        (void)err_errno(&out->refused, number, "%s was refused", what);
    }
}

/* Nice values are passed along: the call sets all of a rank at once. */
static void rank_other(int nice, int present_nice, uint64_t slice_ns, struct thread_rank *out)
{
    if (set_rank(SCHED_OTHER, nice, slice_ns)) {
        out->slice = slice_ns != 0;
        return;
    }
    int number = errno;
    if (number == EPERM || number == EACCES) {
        if (nice != present_nice && set_rank(SCHED_OTHER, present_nice, slice_ns)) {
            out->slice = slice_ns != 0;
            note_refusal(out, number, "a lower nice value");
            return;
        }
        note_refusal(out, number, "scheduling policy OTHER");
        return;
    }
    if (set_rank(SCHED_OTHER, present_nice, 0)) {
        note_refusal(out, number, "a scheduling slice");
        return;
    }
    note_refusal(out, number, "scheduling policy OTHER");
}

void thread_rank(bool fifo, int nice, uint64_t slice_ns, struct thread_rank *out)
{
    int policy = SCHED_OTHER, present_nice = 0;
    *out = (struct thread_rank){0};
    (void)thread_rank_of(0, &policy, &present_nice);
    if (fifo) {
        out->fifo = set_rank(SCHED_FIFO, present_nice, 0);
        if (!out->fifo) {
            note_refusal(out, errno, "scheduling policy FIFO");
        }
    }
    if (!out->fifo) {
        rank_other(nice, present_nice, slice_ns, out);
    }
    out->nice = present_nice;
    (void)thread_rank_of(0, &policy, &out->nice);
}

void thread_wake_exactly(void)
{
    (void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
}

/* ---- waiting ---- */

int waker_open(void)
{
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void waker_set(int fd)
{
    const uint64_t one = 1;
    if (write(fd, &one, sizeof one) < 0) {
        return; /* it counts 2^64 - 1 unread ones: it is set */
    }
}

void waker_clear(int fd)
{
    uint64_t count;
    if (read(fd, &count, sizeof count) < 0) {
        return; /* it was not set */
    }
}

bool waker_wait(int waker, int fd, uint64_t timeout_ns)
{
    struct pollfd fds[2] = {{.fd = waker, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    struct timespec timeout = {(time_t)(timeout_ns / NS_PER_S), (long)(timeout_ns % NS_PER_S)};
    if (ppoll(fds, fd >= 0 ? 2 : 1, &timeout, NULL) <= 0) {
        return false;
    }
    if ((fds[0].revents & POLLIN) != 0) {
        waker_clear(waker);
    }
    return (fds[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0; /* a read returns at once */
}

void waker_close(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

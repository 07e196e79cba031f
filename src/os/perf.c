#include "os/perf.h"
#include "base/time.h"
#include "os/file.h"
#include "os/proc.h"
#include "target/cpulist.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    RING_FIRST_PAGES = 128, /* 512 KiB with 4 KiB pages */
    RING_STACK_PAGES = 512, /* with copies of stacks; on more CPUs less, so that all rings together */
    RING_STACK_PAGES_SUM = 2048, /* take 8 MiB, until each has its least */
    RING_LEAST_PAGES = 8,
    RING_WAKE_SHARE = 2, /* a ring that is half full asks to be read: a sixth of a second is left */
    RECORD_MAX_BYTES = 65536, /* header.size is 16 bits */
    LIST_AGAIN_MAX = 8, /* rounds of listing threads while new ones keep appearing */
};

struct perf_ring {
    unsigned cpu;
    int fd;
    struct perf_event_mmap_page *page;
    size_t map_bytes;
    bool open; /* false: this CPU went away */
};

static uint64_t sample_type_of(const struct perf_sampling *sampling)
{
    uint64_t stacks = sampling->stack_bytes > 0
                          ? (uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)
                          : 0;
    return PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
           PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | stacks;
}

uint64_t perf_sample_type(const struct perf *p)
{
    return sample_type_of(&p->sampling);
}

uint64_t perf_period_ns(const struct perf *p)
{
    return NS_PER_S / p->sampling.frequency_hz;
}

static int open_event(const struct perf_event_attr *attr, int tid, int cpu)
{
    return (int)syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The software clock counts in nanoseconds, so a fixed period is exact where `freq` would only be
 * converted into one. */
static struct perf_event_attr sampling_attr(const struct perf_sampling *sampling, bool on_exec)
{
    return (struct perf_event_attr){
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(struct perf_event_attr),
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = NS_PER_S / sampling->frequency_hz,
        .sample_type = sample_type_of(sampling),
        .sample_regs_user = sampling->stack_bytes > 0 ? sampling->registers : 0,
        .sample_stack_user = sampling->stack_bytes,
        .disabled = 1,
        .inherit = 1,
        .exclude_kernel = !sampling->kernel,
        .exclude_callchain_kernel = !sampling->kernel,
        .exclude_callchain_user = sampling->stack_bytes > 0,
        .exclude_hv = 1,
        .sample_id_all = 1,
        .mmap = 1,
        .mmap2 = 1,
        .comm = 1,
        .comm_exec = 1,
        .task = 1,
        .watermark = 1,
        .wakeup_watermark = 4096,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .enable_on_exec = on_exec,
    };
}

const char *perf_gate_name(enum perf_gate gate)
{
    static const char *const names[] = {
        [PERF_GATE_NONE] = "open",
        [PERF_GATE_SECCOMP] = "seccomp filter",
        [PERF_GATE_PARANOID] = "kernel.perf_event_paranoid",
        [PERF_GATE_NO_KERNEL_SUPPORT] = "kernel without perf events",
        [PERF_GATE_GVISOR] = "gVisor sandbox",
        [PERF_GATE_MEMLOCK] = "locked-memory limit",
        [PERF_GATE_TARGET] = "rights on the target",
        [PERF_GATE_MODULE] = "seccomp filter or security module",
        [PERF_GATE_OTHER] = "unknown gate",
    };
    return names[gate];
}

/* Without the right, level 2 refuses kernel code, and a level above refuses all. */
static bool paranoid_refuses(bool kernel)
{
    char text[16] = "";
    int fd = open("/proc/sys/kernel/perf_event_paranoid", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) {
        close(fd);
    }
    return got <= 0 || atoi(text) > (kernel ? 1 : 2);
}

static enum perf_gate gate_of(int number, bool kernel)
{
    switch (number) {
    case EPERM:
        return PERF_GATE_SECCOMP;
    case EACCES:
        return paranoid_refuses(kernel) ? PERF_GATE_PARANOID : PERF_GATE_MODULE;
    case ENOSYS:
        /* a filter may answer ENOSYS as well as a kernel built without perf; the kernel shows
         * this file exactly when it has perf */
        return access("/proc/sys/kernel/perf_event_paranoid", F_OK) == 0
                   ? PERF_GATE_SECCOMP
                   : PERF_GATE_NO_KERNEL_SUPPORT;
    case ENODEV:
        return PERF_GATE_GVISOR;
    default:
        return PERF_GATE_OTHER;
    }
}

static const char *remedy_of(enum perf_gate gate)
{
    switch (gate) {
    case PERF_GATE_SECCOMP:
        return "allow perf_event_open in the container's seccomp profile, or add CAP_PERFMON";
    case PERF_GATE_PARANOID:
        return "set kernel.perf_event_paranoid to 2 or less on the host";
    case PERF_GATE_MODULE:
        return "the paranoid level is not the cause: allow perf_event_open in the seccomp profile or "
               "the security module's policy";
    case PERF_GATE_NO_KERNEL_SUPPORT:
        return "this kernel cannot be changed for it";
    case PERF_GATE_GVISOR:
        return "use a runtime class without gVisor";
    default:
        return "see pillion doctor";
    }
}

static void explain_refusal(struct perf_access *out, int number)
{
    out->number = number;
    out->gate = gate_of(number, false);
    err_set(&out->why, err_kind_of(number), number, "perf events refused (%s: %s); %s",
            err_name(number), perf_gate_name(out->gate), remedy_of(out->gate));
}

/* 0, or the errno of the refusal. */
static int try_sampling(bool kernel)
{
    const struct perf_sampling sampling = {.frequency_hz = 1, .kernel = kernel};
    struct perf_event_attr attr = sampling_attr(&sampling, false);
    int fd = open_event(&attr, 0, -1);
    if (fd < 0) {
        return errno;
    }
    close(fd);
    return 0;
}

void perf_probe(struct perf_access *out)
{
    *out = (struct perf_access){0};
    int number = try_sampling(true);
    out->user = out->kernel = number == 0;
    if (number == 0) {
        return;
    }
    out->kernel_gate = gate_of(number, true);
    number = try_sampling(false);
    out->user = number == 0;
    if (!out->user) {
        explain_refusal(out, number);
    }
}

static bool map_ring(struct perf_ring *ring, size_t pages)
{
    ring->map_bytes = (pages + 1) * proc_page_bytes();
    void *at = mmap(NULL, ring->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
    if (at == MAP_FAILED) {
        return false;
    }
    ring->page = at;
    ring->open = true;
    return true;
}

/* The dummy event exists only to own the ring: it never fires, and it lives as long as we do. The
 * ring takes its wake-up mark from it, hence a new event for every size that is tried. */
static int open_owner(const struct perf *p, const struct perf_ring *ring, size_t pages)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_SW_DUMMY,
        .sample_type = perf_sample_type(p) & ~(uint64_t)(PERF_SAMPLE_REGS_USER |
                                                         PERF_SAMPLE_STACK_USER),
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .sample_id_all = 1,
        .watermark = 1,
        .wakeup_watermark = (uint32_t)(pages * proc_page_bytes() / RING_WAKE_SHARE),
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
    };
    return open_event(&attr, 0, (int)ring->cpu);
}

static bool open_ring(const struct perf *p, struct perf_ring *ring, size_t *pages,
                      struct err *err)
{
    for (;; *pages /= 2) {
        ring->fd = open_owner(p, ring, *pages);
        if (ring->fd < 0) {
            bool absent = errno == ENODEV || errno == EINVAL; /* the CPU went off-line */
            return absent || err_errno(err, errno, "cannot open perf events on CPU %u", ring->cpu);
        }
        if (map_ring(ring, *pages)) {
            return true;
        }
        int number = errno;
        close(ring->fd);
        ring->fd = -1;
        if ((number != EPERM && number != ENOMEM) || *pages <= RING_LEAST_PAGES) {
            return err_errno(err, number,
                             "cannot map a perf ring of %zu KiB; raise the locked-memory limit "
                             "(ulimit -l) or kernel.perf_event_mlock_kb",
                             ring->map_bytes >> 10);
        }
    }
}

/* The CPUs to open events on. Not our own affinity: a target may run elsewhere. */
static size_t online_cpus(uint32_t cpus[static CPU_COUNT_MAX])
{
    struct buf text;
    size_t count = 0;
    if (file_read_all("/sys/devices/system/cpu/online", 64 * 1024, &text, NULL)) {
        (void)cpulist_parse(buf_slice(&text), cpus, CPU_COUNT_MAX, &count, NULL);
        buf_release(&text);
    }
    if (count == 0) { /* /sys is not mounted: holes in the numbering are then found by ENODEV */
        long configured = sysconf(_SC_NPROCESSORS_CONF);
        while (count < (size_t)configured && count < CPU_COUNT_MAX) {
            cpus[count] = (uint32_t)count;
            count++;
        }
    }
    return count;
}

static bool list_cpus(struct perf *p, struct err *err)
{
    uint32_t cpus[CPU_COUNT_MAX];
    size_t count = online_cpus(cpus);
    p->rings = calloc(count, sizeof *p->rings);
    p->scratch = malloc(RECORD_MAX_BYTES);
    if (p->rings == NULL || p->scratch == NULL) {
        return err_set(err, ERR_MEMORY, 0, "no memory for %zu perf rings", count);
    }
    for (size_t i = 0; i < count; i++) {
        p->rings[i] = (struct perf_ring){.cpu = cpus[i], .fd = -1};
    }
    p->ring_count = (unsigned)count;
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

bool perf_open(struct perf *p, const struct perf_sampling *sampling, struct err *err)
{
    *p = (struct perf){.sampling = *sampling};
    p->fd_limit = raise_descriptor_limit();
    unsigned opened = 0;
    bool ok = list_cpus(p, err);
    size_t pages = sampling->stack_bytes > 0 ? RING_STACK_PAGES : RING_FIRST_PAGES;
    while (pages > RING_FIRST_PAGES && pages * p->ring_count > RING_STACK_PAGES_SUM) {
        pages /= 2;
    }
    for (unsigned i = 0; ok && i < p->ring_count; i++) {
        ok = open_ring(p, &p->rings[i], &pages, err);
        opened += p->rings[i].open;
    }
    if (ok && opened == 0) {
        ok = err_set(err, ERR_UNSUPPORTED, ENODEV, "no CPU here takes perf events");
    }
    if (!ok) {
        perf_close(p);
    }
    return ok;
}

static void close_follower(const struct perf *p, struct perf_follower *f)
{
    for (unsigned i = 0; i < p->ring_count; i++) {
        if (f->fds[i] >= 0) {
            close(f->fds[i]);
        }
    }
    free(f->fds);
}

void perf_close(struct perf *p)
{
    vec_each(&p->followers, f)
    {
        close_follower(p, f);
    }
    vec_release(&p->followers);
    for (unsigned i = 0; i < p->ring_count; i++) {
        if (p->rings[i].open) {
            munmap(p->rings[i].page, p->rings[i].map_bytes);
            close(p->rings[i].fd);
        }
    }
    free(p->rings);
    free(p->scratch);
    *p = (struct perf){0};
}

uint64_t perf_ring_bytes(const struct perf *p)
{
    for (unsigned i = 0; i < p->ring_count; i++) {
        if (p->rings[i].open) {
            return p->rings[i].map_bytes - proc_page_bytes();
        }
    }
    return 0;
}

static bool refuse_target(uint32_t tid, int number, struct err *err)
{
    if (number == EACCES || number == EPERM) {
        return err_set(err, ERR_DENIED, number,
                       "thread %u refuses perf events (%s: other uid, more capabilities or not "
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

static bool follow_on_cpu(struct perf *p, struct perf_follower *f, unsigned i,
                          const struct perf_event_attr *attr, struct err *err)
{
    int fd = open_event(attr, (int)f->tid, (int)p->rings[i].cpu);
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
    if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, p->rings[i].fd) < 0) {
        return err_errno(err, errno, "cannot send thread %u's samples to CPU %u's ring", f->tid,
                         p->rings[i].cpu);
    }
    return true;
}

static bool follow(struct perf *p, uint32_t pid, uint32_t tid, const struct perf_event_attr *attr,
                   struct err *err)
{
    struct perf_follower *f = vec_push(&p->followers);
    if (f == NULL || (f->fds = malloc(p->ring_count * sizeof *f->fds)) == NULL) {
        p->followers.len -= f != NULL;
        return err_set(err, ERR_MEMORY, 0, "no memory to follow thread %u", tid);
    }
    f->pid = pid;
    f->tid = tid;
    memset(f->fds, -1, p->ring_count * sizeof *f->fds);
    bool ok = true;
    for (unsigned i = 0; ok && i < p->ring_count; i++) {
        ok = !p->rings[i].open || follow_on_cpu(p, f, i, attr, err);
    }
    if (!ok) {
        close_follower(p, f);
        p->followers.len--;
    }
    return ok;
}

bool perf_follow(struct perf *p, uint32_t tid, bool on_exec, struct err *err)
{
    struct perf_event_attr attr = sampling_attr(&p->sampling, on_exec);
    if (!follow(p, tid, tid, &attr, err)) {
        return false;
    }
    p->followers.at[p->followers.len - 1].enabled = on_exec; /* the exec does it */
    return true;
}

static bool has_ended(const struct perf *p, const struct perf_follower *f)
{
    for (unsigned i = 0; i < p->ring_count; i++) {
        if (f->fds[i] >= 0) {
            struct pollfd one = {.fd = f->fds[i]};
            return poll(&one, 1, 0) == 1 && (one.revents & POLLHUP) != 0;
        }
    }
    return true;
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

bool perf_follow_process(struct perf *p, uint32_t pid, uint32_t stack_bytes, struct err *err)
{
    struct perf_sampling sampling = p->sampling;
    sampling.stack_bytes = stack_bytes;
    struct perf_event_attr attr = sampling_attr(&sampling, false);
    struct pid_list threads = {0};
    bool any = false;
    bool listed = proc_list_threads(pid, &threads, err);
    for (unsigned round = 0; listed && round < LIST_AGAIN_MAX; round++) {
        size_t before = p->followers.len;
        vec_each(&threads.ids, tid)
        {
            struct err one;
            if (is_followed(p, *tid) || follow(p, pid, *tid, &attr, &one)) {
                any = true;
            } else if (one.number != ESRCH && err != NULL) {
                *err = one;
            }
        }
        /* a thread started by one that was not yet followed is seen by listing again */
        if (p->followers.len == before || !proc_list_threads(pid, &threads, NULL)) {
            break;
        }
    }
    vec_release(&threads.ids);
    if (listed && !any && (err == NULL || err->number == 0)) {
        return err_set(err, ERR_GONE, ESRCH, "pid %u ended before it could be followed", pid);
    }
    return any;
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
        f->enabled = true;
    }
}

static uint64_t follower_count_ns(const struct perf *p, const struct perf_follower *f)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < p->ring_count; i++) {
        uint64_t count = 0;
        if (f->fds[i] >= 0 && read(f->fds[i], &count, sizeof count) == sizeof count) {
            sum += count;
        }
    }
    return sum;
}

void perf_retire(struct perf *p, uint32_t pid)
{
    vec_each(&p->followers, f)
    {
        f->retired = f->retired || f->pid == pid;
    }
}

static void disable(const struct perf *p, const struct perf_follower *f)
{
    for (unsigned i = 0; i < p->ring_count; i++) {
        if (f->fds[i] >= 0) {
            (void)ioctl(f->fds[i], PERF_EVENT_IOC_DISABLE, 0);
        }
    }
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
    for (size_t i = 0; i < p->followers.len;) {
        struct perf_follower *f = &p->followers.at[i];
        bool ends = keep ? !f->enabled && !f->retired : f->retired;
        f->retired = false;
        if (!ends) {
            i++;
            continue;
        }
        p->ended_count_ns += follower_count_ns(p, f);
        close_follower(p, f);
        vec_swap_out(&p->followers, i);
    }
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

bool perf_wait(struct perf *p, int extra_fd, uint64_t timeout_ns)
{
    struct pollfd fds[CPU_COUNT_MAX + 2];
    nfds_t count = 0;
    for (unsigned i = 0; i < p->ring_count; i++) {
        if (p->rings[i].open) {
            fds[count++] = (struct pollfd){.fd = p->rings[i].fd, .events = POLLIN};
        }
    }
    if (extra_fd >= 0) {
        fds[count++] = (struct pollfd){.fd = extra_fd, .events = POLLIN};
    }
    bool single = p->followers.len == 1; /* a launched command: its end is an event to wake for */
    if (single) {
        fds[count++] = (struct pollfd){.fd = p->followers.at[0].fds[0]};
    }
    struct timespec timeout = {(time_t)(timeout_ns / NS_PER_S), (long)(timeout_ns % NS_PER_S)};
    return ppoll(fds, count, &timeout, NULL) > 0 && single &&
           (fds[count - 1].revents & POLLHUP) != 0;
}

/* A record that wraps around the end of the ring, made contiguous. */
static const void *unwrapped(const struct perf *p, const unsigned char *data, uint64_t size,
                             uint64_t at, size_t len)
{
    size_t first = (size_t)(size - at);
    if (len <= first) {
        return data + at;
    }
    memcpy(p->scratch, data + at, first);
    memcpy(p->scratch + first, data, len - first);
    return p->scratch;
}

static void drain_ring(struct perf *p, unsigned index,
                       void (*each)(void *context, unsigned ring, const void *record, size_t len),
                       void *context)
{
    struct perf_event_mmap_page *page = p->rings[index].page;
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = page->data_tail;
    /* kernels before 4.1 leave these zero: the data then follows the first page */
    uint64_t offset = page->data_offset != 0 ? page->data_offset : proc_page_bytes();
    uint64_t size = page->data_size != 0 ? page->data_size : p->rings[index].map_bytes - offset;
    const unsigned char *data = (const unsigned char *)page + offset;
    while (tail < head) {
        struct perf_event_header header;
        uint64_t at = tail & (size - 1);
        memcpy(&header, unwrapped(p, data, size, at, sizeof header), sizeof header);
        if (header.size < sizeof header || header.size > head - tail) {
            tail = head; /* never seen; without a length the rest cannot be found */
            break;
        }
        each(context, index, unwrapped(p, data, size, at, header.size), header.size);
        tail += header.size;
    }
    __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

void perf_drain(struct perf *p,
                void (*each)(void *context, unsigned ring, const void *record, size_t len),
                void *context)
{
    for (unsigned i = 0; i < p->ring_count; i++) {
        if (p->rings[i].open) {
            drain_ring(p, i, each, context);
        }
    }
}

size_t perf_reap(struct perf *p)
{
    for (size_t i = 0; i < p->followers.len;) {
        struct perf_follower *f = &p->followers.at[i];
        if (!has_ended(p, f)) {
            i++;
            continue;
        }
        p->ended_count_ns += follower_count_ns(p, f);
        close_follower(p, f);
        vec_swap_out(&p->followers, i);
    }
    return p->followers.len;
}

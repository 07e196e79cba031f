/* The CPU clock event and its rings: probes what the kernel allows, opens and maps one ring per CPU
 * within the locked memory that may be used, waits for records and drains them. A second set, the
 * caught rings, wakes a reader per CPU at each sample. */
#include "os/perf_private.h"
#include "base/time.h"
#include "os/access.h"
#include "os/proc.h"
#include "os/ring_memory.h"
#include "target/cpulist.h"

#include <errno.h>
#include <limits.h>
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
    RING_PAGES_SUM = 2048,   /* take 8 MiB, until each has its least: */
    RING_MANY_PAGES = 32,    /* half of it is a tenth of a second's samples of one thread at 99 Hz */
    RING_MANY_HZ = 250,      /* at more than this RING_FIRST_PAGES are the least */
    RING_LEAST_PAGES = 8,
    CAUGHT_FIRST_PAGES = 64, /* four of the longest records with 4 KiB pages; on more CPUs less, so that */
    CAUGHT_PAGES_SUM = 2048, /* all rings together take 8 MiB, until each has its least */
    AWAITED_AMONG = 64, /* first threads of a command have their events early */
    RING_WAKE_SHARE = 2, /* a ring that is half full asks to be read: a sixth of a second is left */
};

static uint64_t sample_type_of(const struct perf_sampling *sampling)
{
    uint64_t stacks = sampling->stack_bytes > 0
                          ? (uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)
                          : 0;
    return PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
           PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | stacks;
}

uint64_t perf_sample_type(const struct perf *p)
{
    return sample_type_of(&p->sampling);
}

/* An hour of CPU time is as good as never. */
static uint64_t period_of(const struct perf_sampling *sampling)
{
    return sampling->frequency_hz > 0 ? NS_PER_S / sampling->frequency_hz : 3600 * NS_PER_S;
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

int perf_open_event(const struct perf_event_attr *attr, int tid, int cpu)
{
    return (int)syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The software clock counts in nanoseconds, so a fixed period is exact where `freq` would only be
 * converted into one. */
struct perf_event_attr perf_plain_attr(const struct perf_sampling *sampling, bool on_exec)
{
    return (struct perf_event_attr){
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(struct perf_event_attr),
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = period_of(sampling),
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

/* The event's own attribute, not its ring's, says whether a sample wakes the reader; records that are no
 * samples never do by themselves. */
struct perf_event_attr perf_caught_attr(const struct perf_sampling *sampling)
{
    struct perf_event_attr attr = perf_plain_attr(sampling, false);
    attr.watermark = 0;
    attr.wakeup_events = 1;
    attr.context_switch = sampling->switches;
    return attr;
}

static void explain_refusal(struct perf_access *out, int number)
{
    const char *remedy = perf_gate_remedy(out->gate, false, &out->around);
    err_set(&out->why, err_kind_of(number), number, "perf events refused (%s: %s); %s",
            err_name(number), perf_gate_name(out->gate),
            remedy[0] != '\0' ? remedy : "see pillion doctor");
}

/* 0, or the errno of the refusal. */
static int try_sampling(bool kernel)
{
    const struct perf_sampling sampling = {.frequency_hz = 1, .kernel = kernel};
    struct perf_event_attr attr = perf_plain_attr(&sampling, false);
    int fd = perf_open_event(&attr, 0, -1);
    if (fd < 0) {
        return errno;
    }
    close(fd);
    return 0;
}

void perf_probe(struct perf_access *out)
{
    *out = (struct perf_access){0};
    out->kernel_number = try_sampling(true);
    out->user = out->kernel = out->kernel_number == 0;
    if (out->kernel) {
        return;
    }
    perf_read_around(&out->around);
    out->kernel_gate = perf_gate_of(out->kernel_number, true, &out->around);
    out->number = try_sampling(false);
    out->user = out->number == 0;
    out->gate = perf_gate_of(out->number, false, &out->around);
    if (!out->user) {
        explain_refusal(out, out->number);
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
        .exclude_callchain_kernel = 1, /* Linux 7 refuses chains without it to who may not see the kernel */
        .exclude_hv = 1,
        .sample_id_all = 1,
        .watermark = 1,
        .wakeup_watermark = (uint32_t)(pages * proc_page_bytes() / RING_WAKE_SHARE),
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
    };
    return perf_open_event(&attr, 0, (int)ring->cpu);
}

/* What a set of rings holds; its own set holds nothing for a ring: all of it is given back before a smaller
 * size is tried. */
static uint64_t held_bytes(const struct perf *p, const struct perf_ring *set,
                           const struct perf_ring *ring)
{
    uint64_t sum = 0;
    bool own = set == NULL || (ring >= set && ring < set + p->ring_count);
    for (unsigned i = 0; !own && i < p->ring_count; i++) {
        sum += set[i].open ? set[i].map_bytes : 0;
    }
    return sum;
}

static struct ring_memory memory_of(const struct perf *p)
{
    struct ring_memory memory = ring_memory_here(p->ring_count);
    struct perf_cpus cpus;
    perf_look_at_cpus(p, &cpus);
    memory.absent = cpus.absent_count;
    return memory;
}

static void explain_ring(const struct perf *p, const struct perf_ring *ring, int number,
                         struct err *err)
{
    const struct ring_memory memory = memory_of(p);
    if (number != EPERM || memory.unlimited) {
        err_errno(err, number, "cannot map a perf ring of %zu KiB", ring->map_bytes >> 10);
        return;
    }
    uint64_t held = held_bytes(p, p->rings, ring) + held_bytes(p, p->caught, ring);
    (void)ring_memory_refused(&memory, ring->map_bytes >> 10, held >> 10, err);
}

enum ring_answer { RING_GOOD, RING_REFUSED, RING_FAILED };

/* Refused: a smaller one may be had. */
static enum ring_answer open_ring(const struct perf *p, struct perf_ring *ring, size_t pages,
                                  struct err *err)
{
    ring->fd = open_owner(p, ring, pages);
    if (ring->fd < 0) {
        bool absent = errno == ENODEV || errno == EINVAL; /* the CPU went off-line */
        err_errno(err, errno, "cannot open perf events on CPU %u", ring->cpu);
        return absent ? RING_GOOD : RING_FAILED;
    }
    if (map_ring(ring, pages)) {
        return RING_GOOD;
    }
    int number = errno;
    close(ring->fd);
    ring->fd = -1;
    explain_ring(p, ring, number, err);
    return number == EPERM || number == ENOMEM ? RING_REFUSED : RING_FAILED;
}

void perf_close_rings(struct perf_ring *rings, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (rings[i].open) {
            munmap(rings[i].page, rings[i].map_bytes);
            close(rings[i].fd);
        }
        rings[i].open = false;
        rings[i].fd = -1;
    }
}

/* All of a set, of one size: `pages`, or as many as are granted. */
bool perf_open_rings(const struct perf *p, struct perf_ring *rings, size_t *pages,
                     struct err *err)
{
    for (;; *pages /= 2) {
        struct err one;
        enum ring_answer answer = RING_GOOD;
        for (unsigned i = 0; answer == RING_GOOD && i < p->ring_count; i++) {
            answer = open_ring(p, &rings[i], *pages, &one);
        }
        if (answer == RING_GOOD) {
            return true;
        }
        perf_close_rings(rings, p->ring_count);
        if (answer == RING_FAILED || *pages <= RING_LEAST_PAGES) {
            return err_set(err, one.kind, one.number, "%s", one.text);
        }
    }
}

static bool list_cpus(struct perf *p, struct err *err)
{
    uint32_t cpus[CPU_COUNT_MAX];
    size_t count = perf_list_cpus(cpus); /* not our own affinity: a target may run elsewhere */
    p->rings = calloc(count, sizeof *p->rings);
    p->scratch = malloc(PERF_RECORD_MAX_BYTES);
    if (p->rings == NULL || p->scratch == NULL) {
        return err_set(err, ERR_MEMORY, 0, "no memory for %zu perf rings", count);
    }
    for (size_t i = 0; i < count; i++) {
        /* one thread drains them all, so one scratch buffer serves them all */
        p->rings[i] = (struct perf_ring){.cpu = cpus[i], .fd = -1, .scratch = p->scratch};
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

static uint64_t bytes_of(const struct perf_ring *rings, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (rings[i].open) {
            return rings[i].map_bytes - proc_page_bytes();
        }
    }
    return 0;
}

/* Kernels before 4.3 do not know the bit, and refuse what they do not know. */
static bool can_tell_switches(void)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_SW_DUMMY,
        .disabled = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .context_switch = 1,
    };
    int fd = perf_open_event(&attr, 0, -1);
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

static void free_caught(struct perf *p)
{
    if (p->caught != NULL) {
        perf_close_rings(p->caught, p->ring_count);
        free(p->caught[0].scratch);
        free(p->caught);
    }
    p->caught = NULL;
}

/* One block holds the scratch buffers of all rings; what is never used of it costs no memory. */
static bool list_caught(struct perf *p, struct err *err)
{
    p->caught = calloc(p->ring_count, sizeof *p->caught);
    unsigned char *scratch = malloc((size_t)p->ring_count * PERF_RECORD_MAX_BYTES);
    if (p->caught == NULL || scratch == NULL) {
        free(p->caught);
        free(scratch);
        p->caught = NULL;
        return err_set(err, ERR_MEMORY, 0, "no memory for %u perf rings", p->ring_count);
    }
    for (unsigned i = 0; i < p->ring_count; i++) {
        p->caught[i] = (struct perf_ring){.cpu = p->rings[i].cpu,
                                          .fd = -1,
                                          .scratch = scratch + (size_t)i * PERF_RECORD_MAX_BYTES};
    }
    return true;
}

size_t perf_wished_pages(const struct perf *p)
{
    size_t pages = CAUGHT_FIRST_PAGES;
    while (pages > RING_LEAST_PAGES && pages * p->ring_count > CAUGHT_PAGES_SUM) {
        pages /= 2;
    }
    return pages;
}

bool perf_open_caught(struct perf *p, struct err *err)
{
    if (p->caught != NULL) {
        return true;
    }
    size_t pages = perf_wished_pages(p);
    bool ok = list_caught(p, err) && perf_open_rings(p, p->caught, &pages, err);
    if (!ok) {
        free_caught(p);
    }
    p->sampling.switches = ok && can_tell_switches();
    return ok;
}

int perf_caught_fd(const struct perf *p, unsigned ring)
{
    return p->caught != NULL && p->caught[ring].open ? p->caught[ring].fd : -1;
}

unsigned perf_caught_cpu(const struct perf *p, unsigned ring)
{
    return p->rings[ring].cpu;
}

bool perf_caught_is_empty(const struct perf *p, unsigned ring)
{
    if (p->caught == NULL || !p->caught[ring].open) {
        return true;
    }
    const struct perf_event_mmap_page *page = p->caught[ring].page;
    return __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE) ==
           __atomic_load_n(&page->data_tail, __ATOMIC_RELAXED);
}

uint64_t perf_caught_bytes(const struct perf *p)
{
    return p->caught == NULL ? 0 : bytes_of(p->caught, p->ring_count);
}

/* Two sets of rings share the memory that an ordinary user may lock, and the second is made later: so
 * the first leaves the other what that wishes, or at least a quarter of its own size. */
static bool leaves_room(struct perf *p)
{
    uint64_t wish = perf_wished_pages(p) * proc_page_bytes(), share = perf_ring_bytes(p) / 4;
    uint64_t least = wish < share ? wish : share;
    bool room = perf_open_caught(p, NULL) && perf_caught_bytes(p) >= least &&
                (!p->sampling.others || perf_others_have_room(p, least));
    free_caught(p);
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
        if (fewer <= RING_LEAST_PAGES) { /* there is none for the other set at all */
            return perf_open_rings(p, p->rings, &pages, err);
        }
        fewer /= 2;
    }
    return false;
}

static size_t wished_pages(const struct perf *p)
{
    size_t pages = p->sampling.stack_bytes > 0 ? RING_STACK_PAGES : RING_FIRST_PAGES;
    size_t least = p->sampling.frequency_hz > RING_MANY_HZ ? RING_FIRST_PAGES : RING_MANY_PAGES;
    while (pages > least && pages * p->ring_count > RING_PAGES_SUM) {
        pages /= 2;
    }
    return pages;
}

/* The size that open_plain comes to when `kib` may be locked in all, by the rule of leaves_room. */
static size_t pages_within(const struct perf *p, uint64_t kib)
{
    uint64_t most = kib / (proc_page_bytes() >> 10);
    size_t pages = wished_pages(p);
    for (; pages > RING_LEAST_PAGES; pages /= 2) {
        size_t other = perf_wished_pages(p), least = other < pages / 4 ? other : pages / 4;
        while (other > RING_LEAST_PAGES && other / 2 >= least) {
            other /= 2;
        }
        if ((pages + 1 + other + 1) * p->ring_count <= most) {
            break;
        }
    }
    return pages;
}

bool perf_rings_are_short(const struct perf *p, struct err *why)
{
    const struct ring_memory memory = memory_of(p);
    uint64_t page_kib = proc_page_bytes() >> 10, got_kib = perf_ring_bytes(p) >> 10;
    uint64_t due_kib = pages_within(p, ring_memory_kib(&memory)) * page_kib;
    if (got_kib == 0 || got_kib >= due_kib) {
        return false;
    }
    ring_memory_is_short(&memory, got_kib, due_kib, why);
    return true;
}

static bool any_open(const struct perf *p)
{
    return bytes_of(p->rings, p->ring_count) > 0;
}

bool perf_open(struct perf *p, const struct perf_sampling *sampling, struct err *err)
{
    *p = (struct perf){.sampling = *sampling};
    p->fd_limit = raise_descriptor_limit();
    bool ok = list_cpus(p, err) && open_plain(p, wished_pages(p), err);
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
    vec_release(&p->left.ids);
    vec_release(&p->ended);
    perf_close_rings(p->rings, p->ring_count);
    free(p->rings);
    free(p->scratch);
    free_caught(p);
    perf_close_others(p);
    perf_close_bursts(p);
    *p = (struct perf){0};
}

uint64_t perf_ring_bytes(const struct perf *p)
{
    return bytes_of(p->rings, p->ring_count);
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

static nfds_t add_extra(struct pollfd *fds, const int extra_fds[static PERF_EXTRA_FDS])
{
    nfds_t count = 0;
    for (unsigned i = 0; i < PERF_EXTRA_FDS; i++) {
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

bool perf_wait_aside(struct perf *p, const int extra_fds[static PERF_EXTRA_FDS], uint64_t timeout_ns)
{
    struct pollfd fds[PERF_EXTRA_FDS];
    nfds_t count = add_extra(fds, extra_fds);
    (void)wait_for(fds, count, timeout_ns);
    const struct perf_follower *end = awaited(p);
    struct pollfd one = {.fd = end == NULL ? -1 : perf_end_of(p, end)};
    return end != NULL && wait_for(&one, 1, 0) > 0 && (one.revents & POLLHUP) != 0;
}

bool perf_wait(struct perf *p, const int extra_fds[static PERF_EXTRA_FDS], uint64_t timeout_ns)
{
    struct pollfd fds[2 * CPU_COUNT_MAX + PERF_EXTRA_FDS + 1];
    nfds_t count = add_extra(fds, extra_fds);
    for (unsigned i = 0; i < p->ring_count; i++) {
        if (p->rings[i].open) {
            fds[count++] = (struct pollfd){.fd = p->rings[i].fd, .events = POLLIN};
        }
        if (perf_other_fd(p, i) >= 0) {
            fds[count++] = (struct pollfd){.fd = perf_other_fd(p, i), .events = POLLIN};
        }
    }
    const struct perf_follower *end = awaited(p);
    if (end != NULL) {
        fds[count++] = (struct pollfd){.fd = perf_end_of(p, end)};
    }
    return wait_for(fds, count, timeout_ns) > 0 && end != NULL &&
           (fds[count - 1].revents & POLLHUP) != 0;
}

/* A record that wraps around the end of the ring, made contiguous. */
static const void *unwrapped(const struct perf_ring *ring, const unsigned char *data,
                             uint64_t size, uint64_t at, size_t len)
{
    size_t first = (size_t)(size - at);
    if (len <= first) {
        return data + at;
    }
    memcpy(ring->scratch, data + at, first);
    memcpy(ring->scratch + first, data, len - first);
    return ring->scratch;
}

void perf_drain_ring(const struct perf_ring *ring, unsigned index,
                     void (*each)(void *context, unsigned ring, const void *record, size_t len),
                     void *context)
{
    struct perf_event_mmap_page *page = ring->page;
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = page->data_tail;
    /* kernels before 4.1 leave these zero: the data then follows the first page */
    uint64_t offset = page->data_offset != 0 ? page->data_offset : proc_page_bytes();
    uint64_t size = page->data_size != 0 ? page->data_size : ring->map_bytes - offset;
    const unsigned char *data = (const unsigned char *)page + offset;
    while (tail < head) {
        struct perf_event_header header;
        uint64_t at = tail & (size - 1);
        memcpy(&header, unwrapped(ring, data, size, at, sizeof header), sizeof header);
        if (header.size < sizeof header || header.size > head - tail) {
            tail = head; /* never seen; without a length the rest cannot be found */
            break;
        }
        each(context, index, unwrapped(ring, data, size, at, header.size), header.size);
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
            perf_drain_ring(&p->rings[i], i, each, context);
        }
    }
}

void perf_drain_caught(struct perf *p, unsigned ring,
                       void (*each)(void *context, unsigned ring, const void *record, size_t len),
                       void *context)
{
    if (perf_caught_fd(p, ring) >= 0) {
        perf_drain_ring(&p->caught[ring], ring, each, context);
    }
}

/* perf_ring: rings and the memory they lock. A set has one ring per CPU, all of one size, which is halved
 * while the kernel refuses it; records are handed out contiguous. The first set is the sampler's, the
 * second (caught rings) has readers of its own. */
#include "os/perf_private.h"
#include "os/ring_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    RING_FIRST_PAGES = 128, /* 512 KiB with 4 KiB pages */
    RING_STACK_PAGES = 512, /* with copies of stacks; on more CPUs less, so that all rings together */
    RING_PAGES_SUM = 2048,   /* take 8 MiB, until each has its least: */
    RING_MANY_PAGES = 32,    /* half of it is a tenth of a second's samples of one thread at 99 Hz */
    RING_MANY_HZ = 250,      /* at more than this RING_FIRST_PAGES are the least */
    CAUGHT_FIRST_PAGES = 64, /* four of the longest records with 4 KiB pages; on more CPUs less, so that */
    CAUGHT_PAGES_SUM = 2048, /* all rings together take 8 MiB, until each has its least */
    RING_WAKE_SHARE = 2, /* a ring that is half full asks to be read: a sixth of a second is left */
};

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
    perf_check_cpus(p, &cpus);
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
        if (answer == RING_FAILED || *pages <= PERF_RING_MIN_PAGES) {
            return err_set(err, one.kind, one.number, "%s", one.text);
        }
    }
}

uint64_t perf_rings_bytes(const struct perf_ring *rings, unsigned count)
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

void perf_close_caught(struct perf *p)
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

size_t perf_further_pages(const struct perf *p)
{
    size_t pages = CAUGHT_FIRST_PAGES;
    while (pages > PERF_RING_MIN_PAGES && pages * p->ring_count > CAUGHT_PAGES_SUM) {
        pages /= 2;
    }
    return pages;
}

bool perf_open_caught(struct perf *p, struct err *err)
{
    if (p->caught != NULL) {
        return true;
    }
    size_t pages = perf_further_pages(p);
    bool ok = list_caught(p, err) && perf_open_rings(p, p->caught, &pages, err);
    if (!ok) {
        perf_close_caught(p);
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
    return p->caught == NULL ? 0 : perf_rings_bytes(p->caught, p->ring_count);
}

size_t perf_first_pages(const struct perf *p)
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
    size_t pages = perf_first_pages(p);
    for (; pages > PERF_RING_MIN_PAGES; pages /= 2) {
        size_t other = perf_further_pages(p), least = other < pages / 4 ? other : pages / 4;
        while (other > PERF_RING_MIN_PAGES && other / 2 >= least) {
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

uint64_t perf_ring_bytes(const struct perf *p)
{
    return perf_rings_bytes(p->rings, p->ring_count);
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

void perf_drain_caught(struct perf *p, unsigned ring,
                       void (*each)(void *context, unsigned ring, const void *record, size_t len),
                       void *context)
{
    if (perf_caught_fd(p, ring) >= 0) {
        perf_drain_ring(&p->caught[ring], ring, each, context);
    }
}

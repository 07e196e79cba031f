/* perf_extra: events besides the CPU clock (-e, --off-cpu), in rings of their own: which of them exist here,
 * one descriptor per event, thread and CPU, the kernel's count of each, and their records, told apart by the
 * events' ids. */
#include "os/perf_private.h"
#include "base/map.h"
#include "os/proc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
    STACK_SHARE = 32,    /* of a ring: what a sample's stack may take; events come in bursts */
    STACK_ALIGNMENT = 8,
};

/* Of tasks that are followed no more, since it was asked for last. */
struct perf_ended_count {
    uint64_t sum, most;
    uint32_t pid; /* whose is `most` */
};

/* The rings and what is sampled into them. A record tells by its id which event it comes from;
 * every descriptor has an id of its own, and what it inherits says the same one. */
struct perf_extras {
    struct perf_ring *rings;
    unsigned char *scratch;
    struct perf_extra event[PERF_EXTRA_MAX];
    size_t count;
    struct map ids;       /* id -> place in `event` */
    VEC(uint64_t) closed; /* ids that write no more, until what they wrote was read */
    struct perf_ended_count ended[PERF_EXTRA_MAX];
    uint64_t short_threads;
};

/* A follower's: one descriptor per event and CPU, -1 where there is none. */
struct perf_extra_fds {
    uint64_t reported[PERF_EXTRA_MAX]; /* of each event's count */
    int fd[];
};

static bool is_open(const struct perf_extras *o, size_t other)
{
    return o->event[other].refused.kind == ERR_NONE;
}

/* ---- attributes ---- */

/* A software event of fixed period whose samples carry their period is sampled each time it
 * happens, whatever the period (kernel/events/core.c, perf_swevent_event): they go without, and
 * all weigh the same. */
static uint64_t sample_type_of(const struct perf *p, const struct perf_extra *other)
{
    uint64_t type = perf_sample_type(p) | PERF_SAMPLE_IDENTIFIER;
    return other->period > 0 ? type & ~(uint64_t)PERF_SAMPLE_PERIOD : type;
}

uint64_t perf_extra_sample_type(const struct perf *p, unsigned other)
{
    return sample_type_of(p, &p->extra->event[other]);
}

static void set_stack(const struct perf *p, struct perf_event_attr *attr)
{
    if (attr->sample_stack_user > 0) {
        uint64_t ring_bytes = (uint64_t)perf_further_pages(p) * proc_page_bytes();
        for (unsigned i = 0; p->extra->rings != NULL && i < p->ring_count; i++) {
            if (p->extra->rings[i].open) {
                ring_bytes = p->extra->rings[i].map_bytes;
            }
        }
        uint64_t most = ring_bytes / STACK_SHARE & ~(uint64_t)(STACK_ALIGNMENT - 1);
        attr->sample_stack_user =
            attr->sample_stack_user < most ? attr->sample_stack_user : (uint32_t)most;
    }
}

/* Like the clock's, except for what is counted; records of mappings and tasks are left to the
 * clock. */
static struct perf_event_attr attr_of(const struct perf *p, const struct perf_extra *other,
                                      const struct perf_event_attr *clock)
{
    struct perf_event_attr attr = *clock;
    attr.type = other->switches ? (uint32_t)PERF_TYPE_SOFTWARE : other->type;
    attr.config = other->switches ? (uint64_t)PERF_COUNT_SW_DUMMY : other->config;
    attr.sample_type = sample_type_of(p, other);
    attr.freq = other->period == 0 && !other->switches;
    attr.sample_period = other->period;
    if (attr.freq) {
        attr.sample_freq = other->frequency_hz;
    }
    attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = 0;
    attr.watermark = 1; /* its ring's owner says when to wake */
    attr.wakeup_watermark = 4096;
    attr.context_switch = other->switches;
    if (other->switches) {
        attr.sample_period = 0;
        attr.sample_type &= ~(uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
        attr.sample_regs_user = attr.sample_stack_user = 0;
    }
    set_stack(p, &attr);
    return attr;
}

/* ---- what there is ---- */

static void explain(struct perf_extra *other, int number)
{
    struct err *err = &other->refused;
    if (number == ENOENT && other->type == PERF_TYPE_HARDWARE) {
        err_set(err, ERR_UNSUPPORTED, number,
                "%s cannot be sampled: this machine has no such hardware counter (%s), like "
                "most virtual machines",
                other->name, err_name(number));
    } else if (number == ENOENT || number == EOPNOTSUPP) {
        err_set(err, ERR_UNSUPPORTED, number, "%s cannot be sampled on this machine (%s)",
                other->name, err_name(number));
    } else if (number == EINVAL && other->switches) {
        err_set(err, ERR_UNSUPPORTED, number, "this kernel cannot record %s (%s); Linux 4.3 or later is needed",
                other->name, err_name(number));
    } else if (number == EINVAL) {
        err_set(err, ERR_UNSUPPORTED, number,
                "the kernel refuses to sample %s with these settings (%s); try a lower frequency (f=)",
                other->name, err_name(number));
    } else {
        err_errno(err, number, "%s cannot be sampled", other->name);
    }
}

static void probe(const struct perf *p, struct perf_extra *other)
{
    const struct perf_event_attr clock = {
        .size = sizeof clock,
        .sample_stack_user = p->sampling.stack_bytes,
        .sample_regs_user = p->sampling.stack_bytes > 0 ? p->sampling.registers : 0,
        .disabled = 1,
        .exclude_kernel = !p->sampling.kernel,
        .exclude_callchain_kernel = !p->sampling.kernel,
        .exclude_hv = 1,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
    };
    struct perf_event_attr attr = attr_of(p, other, &clock);
    int fd = perf_open_event(&attr, 0, -1);
    if (fd < 0) {
        explain(other, errno);
    } else {
        close(fd);
    }
}

static bool list_rings(struct perf *p, struct perf_extras *o, struct err *err)
{
    o->rings = calloc(p->ring_count, sizeof *o->rings);
    o->scratch = malloc(PERF_RECORD_MAX_BYTES);
    if (o->rings == NULL || o->scratch == NULL) {
        return err_set(err, ERR_MEMORY, 0, "no memory for %u perf rings", p->ring_count);
    }
    for (unsigned i = 0; i < p->ring_count; i++) {
        o->rings[i] =
            (struct perf_ring){.cpu = p->rings[i].cpu, .fd = -1, .scratch = o->scratch};
    }
    return true;
}

static void free_extra(struct perf *p, struct perf_extras *o)
{
    if (o == NULL) {
        return;
    }
    if (o->rings != NULL) {
        perf_close_rings(o->rings, p->ring_count);
    }
    free(o->rings);
    free(o->scratch);
    map_release(&o->ids);
    vec_release(&o->closed);
    free(o);
}

void perf_close_extra(struct perf *p)
{
    free_extra(p, p->extra);
    p->extra = NULL;
}

bool perf_extra_have_room(struct perf *p, uint64_t least_bytes)
{
    struct perf_extras *o = calloc(1, sizeof *o);
    size_t pages = perf_further_pages(p);
    bool room = o != NULL && list_rings(p, o, NULL) && perf_open_rings(p, o->rings, &pages, NULL) &&
                pages * proc_page_bytes() >= least_bytes;
    free_extra(p, o);
    return room;
}

bool perf_open_extra(struct perf *p, struct perf_extra *others, size_t count)
{
    struct err err = {0};
    size_t pages = perf_further_pages(p);
    p->extra = calloc(1, sizeof *p->extra);
    bool ok = p->extra != NULL && list_rings(p, p->extra, &err) &&
              perf_open_rings(p, p->extra->rings, &pages, &err);
    bool any = false;
    for (size_t i = 0; ok && i < count; i++) {
        if (others[i].refused.kind == ERR_NONE) {
            probe(p, &others[i]);
        }
        p->extra->event[i] = others[i];
        any = any || others[i].refused.kind == ERR_NONE;
    }
    for (size_t i = 0; !ok && i < count; i++) {
        (void)err_set(&others[i].refused, err.kind == ERR_NONE ? ERR_MEMORY : err.kind, err.number,
                "%s cannot be sampled: %s", others[i].name, err.text);
    }
    if (!any) {
        perf_close_extra(p);
        return false;
    }
    p->extra->count = count;
    return true;
}

bool perf_has_extra(const struct perf *p)
{
    return p->extra != NULL;
}

int perf_extra_fd(const struct perf *p, unsigned ring)
{
    return p->extra != NULL && p->extra->rings[ring].open ? p->extra->rings[ring].fd : -1;
}

/* ---- following ---- */

static size_t slot_of(const struct perf *p, size_t other, unsigned ring)
{
    return other * p->ring_count + ring;
}

/* False: descriptors have run out. A task that has ended, and a CPU that went away, are nothing. */
static bool follow_on_ring(struct perf *p, struct perf_follower *f, size_t other, unsigned ring,
                           const struct perf_event_attr *attr)
{
    struct perf_extras *o = p->extra;
    uint64_t id;
    int fd = perf_open_event(attr, (int)f->tid, (int)o->rings[ring].cpu);
    if (fd < 0) {
        return errno != EMFILE && errno != ENFILE;
    }
    if (fd >= p->fd_limit || ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, o->rings[ring].fd) < 0 ||
        ioctl(fd, PERF_EVENT_IOC_ID, &id) < 0 || !map_put(&o->ids, id, other)) {
        close(fd);
        return false;
    }
    f->extra->fd[slot_of(p, other, ring)] = fd;
    return true;
}

void perf_extra_follow(struct perf *p, struct perf_follower *f,
                        const struct perf_event_attr *clock)
{
    struct perf_extras *o = p->extra;
    if (o == NULL) {
        return;
    }
    size_t slots = o->count * p->ring_count;
    f->extra = malloc(sizeof *f->extra + slots * sizeof f->extra->fd[0]);
    bool good = f->extra != NULL;
    if (good) {
        memset(f->extra->reported, 0, sizeof f->extra->reported);
        memset(f->extra->fd, -1, slots * sizeof f->extra->fd[0]);
    }
    for (size_t other = 0; good && other < o->count; other++) {
        const struct perf_event_attr attr = attr_of(p, &o->event[other], clock);
        for (unsigned i = 0; good && is_open(o, other) && i < p->ring_count; i++) {
            good = !o->rings[i].open || follow_on_ring(p, f, other, i, &attr);
        }
    }
    o->short_threads += !good;
}

static uint64_t count_of(const struct perf *p, const struct perf_follower *f, size_t other)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < p->ring_count; i++) {
        uint64_t count = 0;
        int fd = f->extra->fd[slot_of(p, other, i)];
        if (fd >= 0 && read(fd, &count, sizeof count) == sizeof count) {
            sum += count;
        }
    }
    return sum;
}

/* What a follower has counted since this was called last. */
static uint64_t take_count(const struct perf *p, struct perf_follower *f, size_t other)
{
    uint64_t now = count_of(p, f, other), before = f->extra->reported[other];
    f->extra->reported[other] = now > before ? now : before;
    return now > before ? now - before : 0;
}

static void note_ended(struct perf_ended_count *ended, uint32_t pid, uint64_t count)
{
    ended->sum += count;
    if (count > ended->most) {
        ended->most = count;
        ended->pid = pid;
    }
}

static void close_event(struct perf_extras *o, int fd)
{
    uint64_t id;
    if (ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0) {
        uint64_t *place = vec_push(&o->closed);
        if (place != NULL) {
            *place = id;
        }
    }
    close(fd);
}

void perf_extra_unfollow(struct perf *p, struct perf_follower *f)
{
    struct perf_extras *o = p->extra;
    if (f->extra == NULL) {
        return;
    }
    for (size_t other = 0; other < o->count; other++) {
        note_ended(&o->ended[other], f->pid, take_count(p, f, other));
    }
    for (size_t i = 0; i < o->count * p->ring_count; i++) {
        if (f->extra->fd[i] >= 0) {
            close_event(o, f->extra->fd[i]);
        }
    }
    free(f->extra);
    f->extra = NULL;
}

void perf_extra_set(const struct perf *p, const struct perf_follower *f, unsigned long request)
{
    size_t slots = f->extra == NULL ? 0 : p->extra->count * p->ring_count;
    for (size_t i = 0; i < slots; i++) {
        if (f->extra->fd[i] >= 0) {
            (void)ioctl(f->extra->fd[i], request, 0);
        }
    }
}

uint64_t perf_take_extra_count(struct perf *p, unsigned other, uint32_t *pid)
{
    struct perf_ended_count sum = p->extra->ended[other];
    p->extra->ended[other] = (struct perf_ended_count){0};
    vec_each(&p->followers, f)
    {
        if (f->extra != NULL) {
            note_ended(&sum, f->pid, take_count(p, f, other));
        }
    }
    *pid = sum.pid;
    return sum.sum;
}

uint64_t perf_extra_short(const struct perf *p)
{
    return p->extra == NULL ? 0 : p->extra->short_threads;
}

/* ---- records ---- */

struct drain {
    const struct perf_extras *extra;
    void (*each)(void *context, unsigned other, const void *record, size_t len);
    void *context;
};

/* The id is a sample's first word and the last one of every other record. */
static void on_record(void *context, unsigned ring, const void *record, size_t len)
{
    const struct drain *d = context;
    struct perf_event_header header;
    uint64_t id = 0;
    (void)ring;
    memcpy(&header, record, sizeof header);
    if (len >= sizeof header + sizeof id) {
        size_t at = header.type == PERF_RECORD_SAMPLE ? sizeof header : len - sizeof id;
        memcpy(&id, (const char *)record + at, sizeof id);
    }
    const struct map_slot *slot = map_find(&d->extra->ids, id);
    d->each(d->context, slot == NULL ? PERF_EXTRA_MAX : (unsigned)slot->value, record, len);
}

/* What had been closed before the rings were emptied has no record in them any more. */
static void forget_closed(struct perf_extras *o, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct map_slot *slot = map_find(&o->ids, o->closed.at[i]);
        if (slot != NULL) {
            map_remove(&o->ids, slot);
        }
    }
    vec_clear(&o->closed);
}

void perf_drain_extra(struct perf *p,
                       void (*each)(void *context, unsigned other, const void *record, size_t len),
                       void *context)
{
    if (p->extra == NULL) {
        return;
    }
    struct drain drain = {p->extra, each, context};
    size_t closed = p->extra->closed.len;
    for (unsigned i = 0; i < p->ring_count; i++) {
        if (p->extra->rings[i].open) {
            perf_drain_ring(&p->extra->rings[i], i, on_record, &drain);
        }
    }
    forget_closed(p->extra, closed);
}

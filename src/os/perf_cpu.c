#include "os/file.h"
#include "os/perf_private.h"

#include <sched.h>
#include <stdlib.h>

enum { SMALL_FILE_BYTES = 64 * 1024, ABSENT_SHARE = 4 };

/* Returns how many the file lists; 0 when /sys does not tell. */
static size_t read_list(const char *path, uint32_t cpus[static CPU_COUNT_MAX])
{
    struct buf text;
    size_t count = 0;
    if (file_read_all(path, SMALL_FILE_BYTES, &text, NULL)) {
        (void)cpulist_parse(buf_slice(&text), cpus, CPU_COUNT_MAX, &count, NULL);
        buf_release(&text);
    }
    return count;
}

static size_t online(uint32_t cpus[static CPU_COUNT_MAX])
{
    return read_list("/sys/devices/system/cpu/online", cpus);
}

/* A thread's events on a CPU that is off-line wait for it. A few such CPUs may come back; where they are many, as
 * with simultaneous multithreading switched off, they will not, and each would cost every thread a descriptor. */
static size_t with_absent(uint32_t cpus[static CPU_COUNT_MAX], size_t online_count)
{
    uint32_t *present = malloc(CPU_COUNT_MAX * sizeof *present);
    size_t count = present == NULL ? 0 : read_list("/sys/devices/system/cpu/present", present);
    size_t most = online_count / ABSENT_SHARE > 0 ? online_count / ABSENT_SHARE : 1;
    bool added = count > online_count && count - online_count <= most;
    if (added) {
        memcpy(cpus, present, count * sizeof *cpus);
    }
    free(present);
    return added ? count : online_count;
}

/* Not how many there are: a container's CPUs are rarely the first ones. */
static size_t last_allowed(void)
{
    cpu_set_t allowed;
    size_t last = 0;
    CPU_ZERO(&allowed);
    (void)sched_getaffinity(0, sizeof allowed, &allowed);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        last = CPU_ISSET(cpu, &allowed) ? cpu : last;
    }
    return last;
}

size_t perf_list_cpus(uint32_t cpus[static CPU_COUNT_MAX])
{
    size_t count = online(cpus);
    if (count > 0) {
        return with_absent(cpus, count);
    }
    /* /sys is not mounted: up to the last CPU that we may use; holes in the numbering are then found by ENODEV */
    size_t configured = last_allowed() + 1;
    while (count < configured && count < CPU_COUNT_MAX) {
        cpus[count] = (uint32_t)count;
        count++;
    }
    return count;
}

/* Both lists rise. */
void perf_check_cpus(const struct perf *p, struct perf_cpus *out)
{
    uint32_t *cpus = malloc(CPU_COUNT_MAX * sizeof *cpus);
    size_t count = cpus == NULL ? 0 : online(cpus), at = 0;
    *out = (struct perf_cpus){0}; /* and that is all where /sys does not tell */
    for (unsigned i = 0; count > 0 && i < p->ring_count; i++) {
        for (; at < count && cpus[at] < p->rings[i].cpu; at++) {
            out->without_ring = out->new_count++ == 0 ? cpus[at] : out->without_ring;
        }
        bool is_there = at < count && cpus[at] == p->rings[i].cpu;
        if (is_there && !p->rings[i].open) {
            out->without_ring = out->new_count++ == 0 ? cpus[at] : out->without_ring;
        }
        out->absent_count += !is_there;
        at += is_there;
    }
    for (; at < count; at++) {
        out->without_ring = out->new_count++ == 0 ? cpus[at] : out->without_ring;
    }
    free(cpus);
}

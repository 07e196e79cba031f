#include "os/hot.h"
#include "target/stat.h"

#include <stdlib.h>

enum { TEXT_BYTES = 1024 };

struct heat {
    uint64_t cpu_ns;
    size_t place; /* in the list before: qsort keeps no order by itself */
    uint32_t tid;
};

static size_t read_once(int fd, char text[static TEXT_BYTES])
{
    size_t len = fd < 0 ? 0 : proc_read_start(fd, text, TEXT_BYTES);
    if (fd >= 0) {
        proc_close(fd);
    }
    return len;
}

uint64_t hot_thread_ns(uint32_t pid, uint32_t tid)
{
    char text[TEXT_BYTES];
    struct proc_schedstat sched = {0};
    struct proc_stat stat;
    size_t len = read_once(proc_open_thread(pid, tid, "schedstat"), text);
    if (schedstat_parse((struct str){text, len}, &sched, NULL) && sched.slices > 0) {
        return sched.cpu_ns;
    }
    len = read_once(proc_open_thread(pid, tid, "stat"), text);
    if (!stat_parse((struct str){text, len}, &stat, NULL)) {
        return 0;
    }
    return (stat.utime_ticks + stat.stime_ticks) * proc_tick_ns();
}

static int hotter_first(const void *a, const void *b)
{
    const struct heat *left = a, *right = b;
    if (left->cpu_ns != right->cpu_ns) {
        return left->cpu_ns < right->cpu_ns ? 1 : -1;
    }
    return left->place < right->place ? -1 : left->place > right->place;
}

void hot_first(uint32_t pid, struct pid_list *threads)
{
    size_t count = threads->ids.len;
    struct heat *heat = count < 2 ? NULL : malloc(count * sizeof *heat);
    if (heat == NULL) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t tid = threads->ids.at[i];
        heat[i] = (struct heat){hot_thread_ns(pid, tid), i, tid};
    }
    qsort(heat, count, sizeof *heat, hotter_first);
    for (size_t i = 0; i < count; i++) {
        threads->ids.at[i] = heat[i].tid;
    }
    free(heat);
}

/* Reads how busy the container or the machine is: the control groups that are ours and visible, else
 * /proc/stat and /proc/meminfo. The tightest quota and the tightest limit count. target/usage parses
 * the texts and does the arithmetic. */
#include "os/usage.h"

#include "os/clock.h"
#include "os/file.h"
#include "target/cgroup.h"

#include <stdio.h>

enum {
    PATH_MAX_BYTES = 4096,
    FILE_MAX_BYTES = 64 * 1024,
    STAT_MAX_BYTES = 4 * 1024 * 1024, /* a line has a number for every interrupt there is */
};

/* One of our groups as a controller has it. */
struct group {
    const char *root;
    unsigned version;
    struct str path;
};

static bool read_below(const char *root, const char *path, size_t max_bytes, struct buf *out)
{
    char whole[PATH_MAX_BYTES];
    int len = snprintf(whole, sizeof whole, "%s%s", root, path);
    return len > 0 && (size_t)len < sizeof whole && file_read_all(whole, max_bytes, out, NULL);
}

static bool read_file(const struct group *group, const char *controller, const char *name,
                      struct buf *out)
{
    char path[PATH_MAX_BYTES];
    int len = snprintf(path, sizeof path, "/sys/fs/cgroup%s%s%.*s/%s",
                       group->version == 1 ? "/" : "", group->version == 1 ? controller : "",
                       (int)group->path.len, group->path.ptr, name);
    return len > 0 && (size_t)len < sizeof path &&
           read_below(group->root, path, FILE_MAX_BYTES, out);
}

static bool read_number(const struct group *group, const char *controller, const char *name,
                        uint64_t *out)
{
    struct buf text;
    if (!read_file(group, controller, name, &text)) {
        return false;
    }
    bool ok = usage_number(buf_slice(&text), out);
    buf_release(&text);
    return ok;
}

static bool read_value(const struct group *group, const char *controller, const char *name,
                       const char *key, uint64_t *out)
{
    struct buf text;
    if (!read_file(group, controller, name, &text)) {
        return false;
    }
    bool ok = usage_value(buf_slice(&text), str_of(key), out);
    buf_release(&text);
    return ok;
}

/* The group that it is in. False: that was the outermost that is mounted here. */
static bool step_out(struct group *group)
{
    bool any = group->path.len > 0;
    while (group->path.len > 0 && group->path.ptr[--group->path.len] != '/') {
    }
    return any;
}

/* ---- CPU ---- */

static bool read_quota(const struct group *group, double *cores)
{
    struct buf quota, period;
    bool ok = false;
    if (group->version == 2) {
        if (read_file(group, "", "cpu.max", &quota)) {
            ok = usage_cpu_max(buf_slice(&quota), cores);
            buf_release(&quota);
        }
    } else if (read_file(group, "cpu", "cpu.cfs_quota_us", &quota)) {
        if (read_file(group, "cpu", "cpu.cfs_period_us", &period)) {
            ok = usage_quota(buf_slice(&quota), buf_slice(&period), cores);
            buf_release(&period);
        }
        buf_release(&quota);
    }
    return ok;
}

static bool read_cpu_ns(const struct group *group, uint64_t *out)
{
    if (group->version == 1) {
        return read_number(group, "cpuacct", "cpuacct.usage", out);
    }
    uint64_t us;
    if (!read_value(group, "", "cpu.stat", "usage_usec", &us)) {
        return false;
    }
    *out = us * 1000;
    return true;
}

/* With version 1 quotas and counters belong to different controllers: they describe the same processes
 * only where both have the same group. */
static bool group_of_cpu(struct str groups, struct group *out)
{
    struct str accounting;
    unsigned version;
    return cgroup_of(groups, STR("cpu"), &out->version, &out->path) &&
           (out->version == 2 || (cgroup_of(groups, STR("cpuacct"), &version, &accounting) &&
                                  version == 1 && str_eq(out->path, accounting)));
}

static void look_at_groups_cpu(struct group group, unsigned processors, struct usage *out)
{
    double least = processors > 0 ? processors : UINT32_MAX;
    do {
        double cores;
        uint64_t used;
        if (read_quota(&group, &cores) && cores < least && read_cpu_ns(&group, &used)) {
            least = cores;
            out->cores = cores;
            out->used = used;
            out->there = clock_mono_ns();
        }
    } while (step_out(&group));
}

/* ---- memory ---- */

static const char *const limit_files[] = {"memory.limit_in_bytes", "memory.max"};
static const char *const use_files[] = {"memory.usage_in_bytes", "memory.current"};

static void look_at_groups_memory(struct group group, struct usage *out)
{
    static const char *const files[] = {"total_inactive_file", "inactive_file"};
    uint64_t least = out->memory_there > 0 ? out->memory_there : UINT64_MAX;
    unsigned at = group.version - 1;
    do {
        uint64_t limit, used, reclaimed = 0;
        if (read_number(&group, "memory", limit_files[at], &limit) && limit > 0 && limit < least &&
            read_number(&group, "memory", use_files[at], &used)) {
            (void)read_value(&group, "memory", "memory.stat", files[at], &reclaimed);
            least = limit;
            out->memory_there = limit;
            out->memory_used = reclaimed < used ? used - reclaimed : 0;
        }
    } while (step_out(&group));
}

/* False: it has no limit, or that is not to be seen. */
static bool room_of(const struct group *group, struct usage_room *out)
{
    static const char *const cached[2][2] = {{"total_inactive_file", "total_active_file"},
                                             {"inactive_file", "active_file"}};
    uint64_t used = 0, part;
    unsigned at = group->version - 1;
    if (!read_number(group, "memory", limit_files[at], &out->limit_bytes) ||
        !read_number(group, "memory", use_files[at], &used)) {
        return false;
    }
    for (unsigned i = 0; i < 2; i++) {
        bool known = read_value(group, "memory", "memory.stat", cached[at][i], &part);
        used -= known ? (part < used ? part : used) : 0;
    }
    out->left_bytes = used < out->limit_bytes ? out->limit_bytes - used : 0;
    return true;
}

static bool ends_together(const struct group *group)
{
    uint64_t together = 0;
    return group->version == 2 && read_number(group, "memory", "memory.oom.group", &together) && together == 1;
}

/* ---- all ---- */

bool usage_memory_room(const char *root, struct usage_room *out)
{
    struct buf groups;
    struct group group = {.root = root};
    struct usage_room room;
    bool any = false, together = false;
    if (!read_below(root, "/proc/self/cgroup", FILE_MAX_BYTES, &groups)) {
        return false;
    }
    bool more = cgroup_of_memory(buf_slice(&groups), &group.version, &group.path);
    for (; more; more = step_out(&group)) {
        together = together || ends_together(&group);
        if (room_of(&group, &room) && (!any || room.left_bytes < out->left_bytes)) {
            *out = room;
            out->together = together;
            any = true;
        }
    }
    buf_release(&groups);
    return any;
}

static unsigned look_at_machine(const char *root, struct usage *out)
{
    struct usage_machine machine = {0};
    struct buf text;
    if (read_below(root, "/proc/stat", STAT_MAX_BYTES, &text)) {
        if (usage_of_stat(buf_slice(&text), &machine)) {
            out->used = machine.busy_ticks;
            out->there = machine.all_ticks;
        }
        buf_release(&text);
    }
    if (read_below(root, "/proc/meminfo", FILE_MAX_BYTES, &text)) {
        (void)usage_of_meminfo(buf_slice(&text), &out->memory_there, &out->memory_used);
        buf_release(&text);
    }
    return machine.processors;
}

void usage_read(const char *root, struct usage *out)
{
    struct buf groups;
    *out = (struct usage){0};
    unsigned processors = look_at_machine(root, out);
    if (!read_below(root, "/proc/self/cgroup", FILE_MAX_BYTES, &groups)) {
        return;
    }
    struct group group = {.root = root};
    if (group_of_cpu(buf_slice(&groups), &group)) {
        look_at_groups_cpu(group, processors, out);
    }
    if (cgroup_of_memory(buf_slice(&groups), &group.version, &group.path)) {
        look_at_groups_memory(group, out);
    }
    buf_release(&groups);
}

/* Our own control group: its path, and the CPU time and memory that it and the groups around it may use, read
 * through /sys/fs/cgroup as it is mounted here. Reads version 1 and version 2; target/cgroup parses
 * the texts. */
#include "os/proc.h"

#include "target/cgroup.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GROUP_TEXT_BYTES = 16384, GROUP_PATH_MAX = 1280, LINE_BYTES = 64 };

/* The kernel's number of the first namespace of control groups (include/linux/proc_ns.h). */
#define NAMESPACE_OF_THE_HOST 0xeffffffb

static void add_file(struct buf *out, const char *mount, struct str group, const char *name)
{
    char path[GROUP_PATH_MAX], line[LINE_BYTES];
    snprintf(path, sizeof path, "%s%.*s/%s", mount, (int)group.len, group.ptr, name);
    buf_add(out, line, proc_read_file(path, line, sizeof line));
}

/* Version 2 has both numbers in one file. */
static uint64_t cpu_limit_in(const char *mount, struct str group, unsigned version)
{
    struct buf text;
    buf_init(&text, 2 * LINE_BYTES);
    if (version == 1) {
        add_file(&text, mount, group, "cpu.cfs_quota_us");
        add_file(&text, mount, group, "cpu.cfs_period_us");
    } else {
        add_file(&text, mount, group, "cpu.max");
    }
    uint64_t millis = cgroup_cpu_millis(buf_slice(&text));
    buf_release(&text);
    return millis;
}

/* 0: there is no limit. */
static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a != 0 && (b == 0 || a < b) ? a : b;
}

static uint64_t cpu_limit(unsigned version, struct str group)
{
    static const char *const mounts[2][3] = {
        {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpuacct,cpu"},
        {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"},
    };
    uint64_t least = 0;
    for (size_t i = 0; i < 3 && mounts[version - 1][i] != NULL; i++) {
        least = lesser(cpu_limit_in(mounts[version - 1][i], group, version), least);
    }
    return least;
}

/* Version 1 writes "none" as a number near 2^63. */
static uint64_t memory_limit(unsigned version, struct str group)
{
    static const char *const mounts[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"};
    static const char *const files[] = {"memory.limit_in_bytes", "memory.max"};
    struct buf text;
    uint64_t limit;
    buf_init(&text, LINE_BYTES);
    add_file(&text, mounts[version - 1], group, files[version - 1]);
    bool known = str_u64(str_trim(buf_slice(&text)), &limit) && limit < UINT64_C(1) << 60;
    buf_release(&text);
    return known ? limit : 0;
}

static bool read_own_group(struct str controller, struct buf *text, unsigned *version,
                           struct str *group)
{
    buf_init(text, GROUP_TEXT_BYTES);
    return proc_read(proc_own_pid(), 0, "cgroup", text, NULL) &&
           cgroup_of(buf_slice(text), controller, version, group);
}

/* The least limit from our group up to the root that is mounted here. */
static uint64_t own_limit(struct str controller, uint64_t (*limit_of)(unsigned version, struct str group))
{
    struct buf text;
    struct str group = {0};
    unsigned version;
    uint64_t least = 0;
    bool known = read_own_group(controller, &text, &version, &group);
    while (known) {
        least = lesser(limit_of(version, group), least);
        known = group.len > 0;
        while (group.len > 0 && group.ptr[--group.len] != '/') {
        }
    }
    buf_release(&text);
    return least;
}

uint64_t proc_own_cpu_limit_millis(void)
{
    return own_limit(STR("cpu"), cpu_limit);
}

uint64_t proc_own_memory_limit_bytes(void)
{
    return own_limit(STR("memory"), memory_limit);
}

uint64_t proc_own_cgroup_inode(void)
{
    static const char *const mounts[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"};
    struct stat entry;
    struct str group = {0};
    struct buf text;
    unsigned version;
    uint64_t inode = 0;
    if (stat("/proc/self/ns/cgroup", &entry) != 0 || entry.st_ino == NAMESPACE_OF_THE_HOST) {
        return 0;
    }
    if (read_own_group(STR("memory"), &text, &version, &group)) {
        char path[GROUP_PATH_MAX];
        snprintf(path, sizeof path, "%s%.*s", mounts[version - 1], (int)group.len, group.ptr);
        inode = stat(path, &entry) == 0 ? entry.st_ino : 0;
    }
    buf_release(&text);
    return inode;
}

/* Our own control group: its path, and the CPU time that it and the groups around it may use, read
 * through /sys/fs/cgroup as it is mounted here. Reads version 1 and version 2; target/cgroup parses
 * the texts. */
#include "os/proc.h"

#include "target/cgroup.h"

#include <fcntl.h>
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
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = fd < 0 ? 0 : proc_read_start(fd, line, sizeof line);
    buf_add(out, line, len);
    if (fd >= 0) {
        close(fd);
    }
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

static uint64_t least_of(const char *const *mounts, size_t count, struct str group,
                         unsigned version)
{
    uint64_t least = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t millis = cpu_limit_in(mounts[i], group, version);
        least = millis != 0 && (least == 0 || millis < least) ? millis : least;
    }
    return least;
}

static bool read_own_group(struct str controller, struct buf *text, unsigned *version,
                           struct str *group)
{
    buf_init(text, GROUP_TEXT_BYTES);
    return proc_read(proc_own_pid(), 0, "cgroup", text, NULL) &&
           cgroup_of(buf_slice(text), controller, version, group);
}

uint64_t proc_own_cpu_limit_millis(void)
{
    static const char *const first[] = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct",
                                        "/sys/fs/cgroup/cpuacct,cpu"};
    static const char *const second[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    struct buf text;
    struct str group = {0};
    unsigned version;
    uint64_t least = 0;
    bool known = read_own_group(STR("cpu"), &text, &version, &group);
    while (known) { /* from the group up to the root that is mounted here */
        uint64_t millis =
            version == 1 ? least_of(first, 3, group, 1) : least_of(second, 2, group, 2);
        least = millis != 0 && (least == 0 || millis < least) ? millis : least;
        known = group.len > 0;
        while (group.len > 0 && group.ptr[--group.len] != '/') {
        }
    }
    buf_release(&text);
    return least;
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

/* Single attempts for the doctor: each function does one thing that a profile needs, on ourselves, on
 * a child or on a process, undoes it, and returns the errno. What the errno means is decided by
 * os/access and os/perf_gate. */
#include "os/probe.h"
#include "os/identity.h"
#include "os/perf_private.h"
#include "os/proc.h"
#include "target/cgroup.h"
#include "target/cpulist.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_BYTES = 96, GROUP_PATH_BYTES = 1024, LOW_NICE = -20, STATUS_BYTES = 64 * 1024 };

/* ---- /proc/PID ---- */

static int open_of(uint32_t pid, const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC);
    if (fd < 0 && identity_visit(pid, errno)) {
        fd = open(path, flags | O_CLOEXEC);
        identity_return();
    }
    return fd;
}

uint64_t probe_own_address(void)
{
    static const uint64_t word = 0x70726f6265;
    return (uint64_t)(uintptr_t)&word;
}

int probe_memory_call(uint32_t pid, uint64_t address)
{
    uint64_t word;
    struct iovec local = {&word, sizeof word};
    struct iovec remote = {(void *)(uintptr_t)address, sizeof word};
    ssize_t got = process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0);
    return got >= 0 || errno == EFAULT ? 0 : errno;
}

int probe_memory_file(uint32_t pid, uint64_t address)
{
    char path[PATH_BYTES];
    uint64_t word;
    snprintf(path, sizeof path, "/proc/%u/mem", pid);
    int fd = open_of(pid, path, O_RDONLY);
    if (fd < 0) {
        return errno;
    }
    ssize_t got = pread(fd, &word, sizeof word, (off_t)address);
    int number = got >= 0 || errno == EIO || errno == EFAULT || errno == EINVAL ? 0 : errno;
    close(fd);
    return number;
}

int probe_text(uint32_t pid, const char *name)
{
    char path[PATH_BYTES], text[64];
    snprintf(path, sizeof path, "/proc/%u/%s", pid, name);
    int fd = open_of(pid, path, O_RDONLY);
    if (fd < 0) {
        return errno;
    }
    int number = read(fd, text, sizeof text) < 0 ? errno : 0;
    close(fd);
    return number;
}

int probe_root(uint32_t pid)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/proc/%u/root", pid);
    int fd = open_of(pid, path, O_PATH | O_DIRECTORY);
    if (fd < 0) {
        return errno;
    }
    close(fd);
    return 0;
}

int probe_map_file(uint32_t pid, uint64_t start, uint64_t limit)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/proc/%u/map_files/%llx-%llx", pid, (unsigned long long)start,
             (unsigned long long)limit);
    int fd = open_of(pid, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return errno;
    }
    close(fd);
    return 0;
}

int probe_kernel_names(bool *hidden)
{
    char text[256];
    int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text);
    int number = got < 0 ? errno : got == 0 ? ENODATA : 0;
    if (fd >= 0) {
        close(fd);
    }
    *hidden = true; /* symbols of per-CPU data begin at 0 anyway: one other address is enough */
    for (ssize_t i = 0, digits = 0; i < got; i++, digits++) {
        digits = i == 0 || text[i - 1] == '\n' ? 0 : digits;
        *hidden = *hidden && (digits >= 16 || text[i] == '0');
    }
    return number;
}

int probe_folder(const char *path)
{
    return faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

/* ---- events ---- */

static struct perf_event_attr attr_of(enum probe_event event)
{
    const struct perf_sampling sampling = {.frequency_hz = 1};
    struct perf_event_attr attr = perf_plain_attr(&sampling, false);
    if (event == PROBE_SWITCHES) {
        attr.config = PERF_COUNT_SW_DUMMY;
        attr.context_switch = 1;
    } else if (event == PROBE_CYCLES) {
        attr.type = PERF_TYPE_HARDWARE;
        attr.config = PERF_COUNT_HW_CPU_CYCLES;
        attr.sample_period = 1000 * 1000 * 1000;
    }
    return attr;
}

int probe_event(enum probe_event event, uint32_t tid)
{
    struct identity identity;
    const struct perf_event_attr attr = attr_of(event);
    int fd = perf_open_event(&attr, (int)tid, -1);
    int number = fd < 0 ? errno : 0;
    bool refused = number == EACCES || number == EPERM;
    if (refused && tid != 0 && identity_of(tid, &identity) && identity_take_real(&identity)) {
        fd = perf_open_event(&attr, (int)tid, -1);
        number = fd < 0 ? errno : 0;
        identity_leave_real();
    }
    if (fd >= 0) {
        close(fd);
    }
    return number;
}

/* ---- a child ---- */

__attribute__((noreturn)) static void wait_for_end(int pipe)
{
    char byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)!read(pipe, &byte, 1);
    _exit(0);
}

bool probe_child_start(struct probe_child *child, struct err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return err_errno(err, errno, "cannot create a pipe");
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        wait_for_end(ends[0]);
    }
    int number = errno;
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        return err_no_thread(err, number, "a child process for tests");
    }
    *child = (struct probe_child){(uint32_t)pid, ends[1]};
    return true;
}

void probe_child_end(struct probe_child *child)
{
    close(child->pipe);
    while (waitpid((pid_t)child->pid, NULL, 0) < 0 && errno == EINTR) {
    }
}

/* ---- scheduling ---- */

struct catcher {
    uint64_t slice_ns;
    struct probe_catcher *out;
};

static void *be_catcher(void *context)
{
    struct catcher *c = context;
    struct probe_catcher *out = c->out;
    unsigned *cpus = malloc(CPU_COUNT_MAX * sizeof *cpus);
    size_t count = cpus == NULL ? 0 : thread_allowed_cpus(cpus, CPU_COUNT_MAX);
    out->allowed = (unsigned)count;
    for (size_t i = 0; i < count; i++) {
        struct err err = {0};
        bool bound = thread_bind(cpus[i], &err);
        out->bound += bound;
        out->bind_number = bound || out->bind_number != 0 ? out->bind_number : err.number;
    }
    int nice;
    thread_rank(true, LOW_NICE, c->slice_ns, &out->rank);
    (void)thread_rank_of(0, &out->policy, &nice);
    free(cpus);
    return NULL;
}

bool probe_catcher(uint64_t slice_ns, struct probe_catcher *out)
{
    pthread_t thread;
    *out = (struct probe_catcher){0};
    (void)thread_rank_of(0, &out->own_policy, &out->own_nice);
    struct catcher c = {slice_ns, out};
    return pthread_create(&thread, NULL, be_catcher, &c) == 0 && pthread_join(thread, NULL) == 0;
}

/* ---- control groups ---- */

/* Where a hierarchy is mounted, and in it what file has a group's weight. */
struct hierarchy {
    const char *mount, *file;
};

static uint64_t number_in(const struct hierarchy *h, struct str group)
{
    char path[GROUP_PATH_BYTES], text[32];
    uint64_t number;
    snprintf(path, sizeof path, "%s%.*s/%s", h->mount, (int)group.len, group.ptr, h->file);
    return str_u64(str_trim((struct str){text, proc_read_file(path, text, sizeof text)}), &number) ? number : 0;
}

/* 0: it cannot be read, or the group is not below what is mounted here. */
static uint64_t weight_of(unsigned version, struct str group)
{
    static const struct hierarchy places[][3] = {
        {{"/sys/fs/cgroup/cpu", "cpu.shares"},
         {"/sys/fs/cgroup/cpu,cpuacct", "cpu.shares"},
         {"/sys/fs/cgroup/cpuacct,cpu", "cpu.shares"}},
        {{"/sys/fs/cgroup", "cpu.weight"}, {"/sys/fs/cgroup/unified", "cpu.weight"}},
    };
    for (size_t i = 0; i < 3 && places[version - 1][i].mount != NULL; i++) {
        uint64_t weight = number_in(&places[version - 1][i], group);
        if (weight != 0) {
            return weight;
        }
    }
    return 0;
}

/* A process that is in the common group itself weighs as its nice value says: 0 is the unit. */
static uint64_t weight_at(unsigned version, struct str group)
{
    return group.len > 0 ? weight_of(version, group) : version == 1 ? 1024 : 100;
}

/* In a control-group namespace our own group is "/", which is what is mounted, and a neighbour's is "/../x",
 * of which nothing is. */
static void weigh(struct str own, struct str other, struct probe_weights *out)
{
    struct cgroup_parting parting;
    out->same = !cgroup_part(own, other, &parting);
    if (out->same) {
        return;
    }
    if (str_starts(other, STR("/.."))) {
        out->own = weight_of(out->version, STR(""));
        return;
    }
    out->own = weight_at(out->version, parting.first);
    out->other = weight_at(out->version, parting.second);
}

static bool read_group(uint32_t pid, struct buf *text, unsigned *version, struct str *group,
                       struct err *err)
{
    buf_init(text, STATUS_BYTES);
    if (!proc_read(pid, 0, "cgroup", text, err)) {
        return false;
    }
    (void)cgroup_of(buf_slice(text), STR("cpu"), version, group);
    return true;
}

int probe_weights(uint32_t pid, struct probe_weights *out)
{
    struct buf own_text, text;
    struct str own = {0}, other = {0};
    unsigned own_version = 0, version = 0;
    struct err err = {0};
    *out = (struct probe_weights){0};
    bool read = read_group(proc_own_pid(), &own_text, &own_version, &own, &err);
    read = read_group(pid, &text, &version, &other, read ? &err : NULL) && read;
    if (read && own_version == version && version != 0) {
        out->version = version;
        weigh(own, other, out);
    } else {
        out->same = true; /* there are no groups */
    }
    buf_release(&own_text);
    buf_release(&text);
    return read ? 0 : err.number != 0 ? err.number : ENOENT;
}

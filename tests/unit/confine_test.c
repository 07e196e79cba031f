/* src/os/confine: what each kind of thread may do afterwards, what it may not, and that the latter is told. */
#include "os/confine.h"
#include "base/time.h"
#include "child.h"
#include "os/clock.h"
#include "os/launch.h"
#include "os/proc.h"
#include "os/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <sys/uio.h>

static int signals;

/* Refused, and told. */
static void refused(long result, int call)
{
    int told = 0, number = errno;
    CHECK_INT(result, -1);
    CHECK_INT(number, EPERM);
    CHECK_INT(signals_next(signals, &told), SIGNAL_REFUSED);
    CHECK_INT(told, call);
    CHECK_INT(signals_next(signals, NULL), 0);
}

#define REFUSED(call, ...) refused((errno = 0, syscall(call, __VA_ARGS__)), call)

/* False: an emulator has no filters. */
static bool begin_with(bool stops)
{
    signals = signals_open();
    const char *missing;
    CHECK(signals >= 0 && confine_process(stops, &missing));
    return prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER;
}

static bool begin(void)
{
    return begin_with(false);
}

static uint64_t rights(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct set[2] = {{0}};
    CHECK_INT(syscall(SYS_capget, &header, set), 0);
    CHECK(set[0].effective == set[0].permitted && set[1].effective == set[1].permitted);
    return set[0].permitted | (uint64_t)set[1].permitted << 32;
}

static void give_up(int capability)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct set[2] = {{0}};
    CHECK_INT(syscall(SYS_capget, &header, set), 0);
    set[capability / 32].effective &= ~(1u << capability % 32);
    set[capability / 32].permitted &= ~(1u << capability % 32);
    CHECK_INT(syscall(SYS_capset, &header, set), 0);
}

static bool has(int capability)
{
    return (rights() >> capability & 1) != 0;
}

static bool a_process(void *context)
{
    (void)context;
    if (!begin()) {
        return false;
    }
    char *nothing[] = {NULL};
    CHECK_INT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
    REFUSED(SYS_execve, "/bin/true", nothing, nothing);
    REFUSED(SYS_chroot, "/");
    REFUSED(SYS_mount, "none", "/", "tmpfs", 0, NULL);
    REFUSED(SYS_ptrace, PTRACE_SEIZE, INT32_MAX, NULL, NULL);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fd >= 0 && close(fd) == 0);
    return true;
}

/* Who stops threads may trace, but for those who speak with servers. */
static bool a_stopper(void *context)
{
    (void)context;
    if (!begin_with(true)) {
        return false;
    }
    confine_reader();
    CHECK(syscall(SYS_ptrace, PTRACE_SEIZE, INT32_MAX, NULL, NULL) == -1 && errno == ESRCH);
    CHECK_INT(signals_next(signals, NULL), 0);
    confine_sender(NULL);
    REFUSED(SYS_ptrace, PTRACE_SEIZE, INT32_MAX, NULL, NULL);
    return true;
}

static bool a_reader(void *context)
{
    (void)context;
    int pair[2], word = 5, copy = 0;
    if (!begin()) {
        return false;
    }
    confine_reader();
    REFUSED(SYS_socket, AF_INET, SOCK_STREAM, 0);
    REFUSED(SYS_socket, AF_UNIX, SOCK_STREAM, 0);
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CHECK_INT(send(pair[0], "x", 1, 0), 1);
    struct iovec here = {&copy, sizeof copy}, there = {&word, sizeof word};
    CHECK_INT(process_vm_readv(getpid(), &here, 1, &there, 1, 0), sizeof word);
    CHECK_INT(copy, 5);
    return true;
}

static bool a_sender(void *context)
{
    const char *folder = context;
    char spool[128], file[160], other[160], text[8];
    struct iovec none = {NULL, 0};
    bool is_root = geteuid() == 0;
    (void)snprintf(spool, sizeof spool, "%s/spool", folder);
    (void)snprintf(file, sizeof file, "%s/window", spool);
    (void)snprintf(other, sizeof other, "%s/other", spool);
    if (!begin()) {
        return false;
    }
    confine_sender(spool);
    REFUSED(SYS_process_vm_readv, getpid(), &none, 1, &none, 1, 0);
    REFUSED(SYS_perf_event_open, NULL, 0, -1, -1, 0);
    REFUSED(SYS_setresuid, 0, 0, 0);
    REFUSED(SYS_kill, getpid(), 0);
    REFUSED(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    CHECK_INT(rights() & ~(UINT64_C(1) << CAP_DAC_OVERRIDE | UINT64_C(1) << CAP_DAC_READ_SEARCH), 0);
    CHECK(!is_root || has(CAP_DAC_OVERRIDE));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fd >= 0 && close(fd) == 0);
    fd = open("/etc/passwd", O_RDONLY);
    CHECK(fd >= 0 && read(fd, text, sizeof text) == sizeof text && close(fd) == 0);
    fd = open(file, O_WRONLY | O_CREAT, 0600);
    CHECK(fd >= 0 && close(fd) == 0 && rename(file, other) == 0 && unlink(other) == 0);
    CHECK(signals_next(signals, NULL) == 0);
    if (syscall(444, NULL, 0, 1) < 1) { /* Landlock's version */
        printf("# no Landlock here: which files a sender may open is not tested\n");
        return true;
    }
    CHECK(open("/proc/1/maps", O_RDONLY) < 0 && errno == EACCES);
    CHECK(open("/proc/self/mem", O_RDONLY) < 0 && errno == EACCES);
    (void)snprintf(other, sizeof other, "%s/beside", folder);
    CHECK(open(other, O_WRONLY | O_CREAT, 0600) < 0 && errno == EACCES);
    return true;
}

static bool may_compute(long number)
{
    static const long calls[] = {
        SYS_read, SYS_write, SYS_recvmsg, SYS_close, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise,
        SYS_brk, SYS_futex, SYS_sched_yield, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_clock_gettime, SYS_gettid,
        SYS_sigaltstack, SYS_exit, SYS_exit_group, SYS_tkill};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (calls[i] == number) {
            return true;
        }
    }
    return false;
}

/* Each number there is, and some beyond. */
static bool every_call(void *context)
{
    enum { NUMBERS = 600, URETPROBE = 335, UPROBE = 336 }; /* which no filter sees */
    (void)context;
    if (!confine_computing()) {
        return false;
    }
    for (long number = 0; number < NUMBERS; number++) {
        if (!may_compute(number) && number != URETPROBE && number != UPROBE) {
            errno = 0;
            CHECK(syscall(number, -1, -1, -1, -1, -1, -1) == -1 && errno == EPERM);
        }
    }
    CHECK(syscall(SYS_read, -1, NULL, 0) == -1 && errno == EBADF);
    CHECK(syscall(SYS_recvmsg, -1, NULL, 0) == -1 && errno == EBADF);
    CHECK(syscall(SYS_close, -1) == -1 && errno == EBADF);
    CHECK(syscall(SYS_munmap, 1, 1) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_sched_yield) == 0 && syscall(SYS_gettid) > 0);
    return true;
}

static bool one_that_computes(void *context)
{
    (void)context;
    signals = signals_open();
    pid_t self = (pid_t)syscall(SYS_gettid), parent = getppid();
    if (!confine_computing()) {
        return false;
    }
    errno = 0;
    CHECK(open("/etc/passwd", O_RDONLY) < 0 && errno == EPERM);
    CHECK(socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM);
    CHECK(syscall(SYS_tkill, parent, 0) < 0 && errno == EPERM);
    CHECK_INT(syscall(SYS_tkill, self, 0), 0);
    CHECK_INT(signals_next(signals, NULL), 0);
    return true;
}

static bool who_may_trace(void *context)
{
    (void)context;
    if (!has(CAP_SYS_PTRACE) || !has(CAP_CHOWN) || !begin()) {
        return false;
    }
    CHECK(has(CAP_SYS_PTRACE) && has(CAP_SETUID) && has(CAP_DAC_OVERRIDE));
    CHECK(!has(CAP_CHOWN) && !has(CAP_NET_ADMIN) && !has(CAP_SYS_CHROOT) && !has(CAP_KILL));
    return true;
}

static bool who_may_not_trace(void *context)
{
    (void)context;
    if (!has(CAP_SYS_PTRACE) || !has(CAP_CHOWN)) {
        return false;
    }
    give_up(CAP_SYS_PTRACE);
    uint64_t before = rights();
    (void)begin();
    CHECK_INT(rights(), before);
    return true;
}

/* From now on the kernel answers so. False: it has no filters. */
static bool filter(int call, uint32_t answer)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof code / sizeof code[0], code};
    CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static bool where_it_kills(void *context)
{
    const char *missing;
    if (!filter(*(int *)context, SECCOMP_RET_KILL_PROCESS)) {
        return false;
    }
    CHECK(!confine_process(false, &missing));
    return true;
}

struct refusal {
    int call;
    const char *missing;
};

static bool where_it_refuses(void *context)
{
    const struct refusal *r = context;
    const char *missing;
    if (!filter(r->call, SECCOMP_RET_ERRNO | EPERM)) {
        return false;
    }
    CHECK(confine_process(false, &missing));
    CHECK_TEXT(missing, r->missing);
    return true;
}

/* ---- os/sandbox ---- */

static void crash(void *argument, const struct sandbox_port *port)
{
    (void)argument;
    (void)port;
    *(volatile int *)8 = 0;
}

static void abort_at_the_limit(void *argument, const struct sandbox_port *port)
{
    (void)argument;
    (void)port;
    while (mmap(NULL, 64 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) {
    }
    abort();
}

static void give_up_at_once(void *argument, const struct sandbox_port *port)
{
    (void)argument;
    (void)port;
    abort();
}

static void crash_at_the_limit(void *argument, const struct sandbox_port *port)
{
    while (mmap(NULL, 64 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) {
    }
    crash(argument, port);
}

/* The file's only page goes while it is mapped, as by a target that writes its file anew. */
static void read_what_was_cut(void *argument, const struct sandbox_port *port)
{
    void *mapped = NULL;
    size_t len = 0;
    if (port->take(port->context, &mapped, &len)) {
        char done = 1;
        port->write(port->context, &done, 1);
        while (((volatile char *)mapped)[0] == 0) {
        }
    }
    (void)argument;
}

static void a_file_that_becomes_shorter(void)
{
    struct sandbox sandbox = sandbox_system(8 << 20);
    struct err err;
    char taken;
    int file = memfd_create("file", MFD_CLOEXEC);
    CHECK(file >= 0 && ftruncate(file, 4096) == 0);
    struct memory_reader reader = proc_file_reader(file);
    void *child = sandbox.start(sandbox.context, read_what_was_cut, NULL, &err);
    CHECK(child != NULL && sandbox.give(child, &reader));
    bool ran = sandbox.read(child, &taken, 1, clock_mono_ns() + 10 * NS_PER_S) == 1;
    CHECK_INT(ftruncate(file, 0), 0);
    CHECK_INT(sandbox.read(child, &taken, 1, clock_mono_ns() + 10 * NS_PER_S), 0);
    enum sandbox_end end = sandbox.end(child);
    close(file);
    if (!ran && end == SANDBOX_DENIED) {
        SKIP("no seccomp filters here");
    }
    CHECK_INT(end, SANDBOX_FILE_LOST);
}

static void a_crash_for_want_of_memory(void)
{
    struct sandbox sandbox = sandbox_system(8 << 20);
    struct {
        void (*run)(void *argument, const struct sandbox_port *port);
        enum sandbox_end end;
    } rows[] = {{crash, SANDBOX_CRASHED}, {crash_at_the_limit, SANDBOX_NO_MEMORY},
                {give_up_at_once, SANDBOX_CRASHED}, {abort_at_the_limit, SANDBOX_NO_MEMORY}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct err err;
        char nothing;
        void *child = sandbox.start(sandbox.context, rows[i].run, NULL, &err);
        CHECK(child != NULL);
        CHECK_INT(sandbox.read(child, &nothing, 1, clock_mono_ns() + 10 * NS_PER_S), 0);
        enum sandbox_end end = sandbox.end(child);
        if (end == SANDBOX_DENIED) {
            SKIP("no seccomp filters here");
        }
        CHECK_INT(end, rows[i].end);
    }
}

/* ---- tests ---- */

static void process(void)
{
    if (!in_child(a_process, NULL)) {
        SKIP("no seccomp filters here");
    }
}

static void reader(void)
{
    if (!in_child(a_reader, NULL)) {
        SKIP("no seccomp filters here");
    }
}

static void sender(void)
{
    char folder[] = "/tmp/confine-XXXXXX", spool[64];
    CHECK(mkdtemp(folder) != NULL);
    (void)snprintf(spool, sizeof spool, "%s/spool", folder);
    CHECK_INT(mkdir(spool, 0700), 0);
    bool ran = in_child(a_sender, folder);
    CHECK(rmdir(spool) == 0 && rmdir(folder) == 0);
    if (!ran) {
        SKIP("no seccomp filters here");
    }
}

static void computing(void)
{
    if (!in_child(one_that_computes, NULL) || !in_child(every_call, NULL)) {
        SKIP("no seccomp filters here");
    }
}

static void tracer(void)
{
    if (!in_child(who_may_trace, NULL)) {
        SKIP("wants root with all capabilities, and seccomp filters");
    }
}

static void no_tracer(void)
{
    if (!in_child(who_may_not_trace, NULL)) {
        SKIP("wants root with all capabilities");
    }
}

static void stopper(void)
{
    if (!in_child(a_stopper, NULL)) {
        SKIP("no seccomp filters here");
    }
}

static void killers(void)
{
    static int calls[] = {SYS_capset, SYS_seccomp, 444, 446};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (!in_child(where_it_kills, &calls[i])) {
            SKIP("no seccomp filters here");
        }
    }
}

static void refusers(void)
{
    static struct refusal rows[] = {{444, "Landlock"}, {SYS_prctl, "filters of system calls"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!in_child(where_it_refuses, &rows[i])) {
            SKIP("no seccomp filters here");
        }
    }
}

TESTS({"a confined process executes and mounts nothing, and tells who tried", process},
      {"a thread that reads targets has no sockets but pairs", reader},
      {"a thread that sends reads no target, makes no process, writes into its spool alone", sender},
      {"where threads are stopped who reads targets may trace, and who sends may not", stopper},
      {"a child that computes opens nothing", computing},
      {"who may trace keeps the rights that reading takes, and no others", tracer},
      {"who may not trace keeps all, for targets have them", no_tracer},
      {"what a filter kills for is not tried", killers},
      {"what a filter refuses is told, and the rest holds", refusers},
      {"a child that crashes at its limit wanted memory, and any other crashed", a_crash_for_want_of_memory},
      {"a child whose mapped file becomes shorter lost it", a_file_that_becomes_shorter})

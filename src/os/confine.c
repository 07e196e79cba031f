/* Gives up rights, system calls and files that a kind of thread has no use for: capset, seccomp, Landlock. The lists of
 * calls are this program's own: what its libraries can make at all, less what a kind of thread has no business with.
 */
#include "os/confine.h"
#include "os/launch.h"
#include "os/proc.h"
#include "os/trial.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* ---- capabilities, of the calling thread ---- */

#define BIT(number) (UINT64_C(1) << (number))
enum { PERFMON = 38, CHECKPOINT_RESTORE = 40 }; /* not in every kernel's headers */

static const uint64_t sender_rights = BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH);
static const uint64_t reader_rights =
    BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_IPC_LOCK) |
    BIT(CAP_SYS_PTRACE) | BIT(CAP_SYS_NICE) | BIT(CAP_SYS_RESOURCE) | BIT(CAP_SYSLOG) | BIT(CAP_SYS_ADMIN) |
    BIT(PERFMON) | BIT(CHECKPOINT_RESTORE);

/* Distributions' kernels have levels above 2, and some ask for SYS_ADMIN there, whoever has PERFMON. */
static bool is_admin_for_perf(void)
{
    char text[16] = "";
    return proc_read_file("/proc/sys/kernel/perf_event_paranoid", text, sizeof text - 1) == 0 || atoi(text) > 2;
}

static uint64_t rights_to_keep(uint64_t has)
{
    uint64_t keep = reader_rights;
    if ((has & BIT(CAP_SYS_PTRACE)) == 0) {
        return has;
    }
    if ((has & BIT(PERFMON)) != 0 && (has & BIT(CHECKPOINT_RESTORE)) != 0 && !is_admin_for_perf()) {
        keep &= ~BIT(CAP_SYS_ADMIN); /* before 5.9 it is what these two are since */
    }
    return has & keep;
}

static uint64_t sender_keeps(uint64_t has)
{
    return has & sender_rights;
}

static void drop_rights(uint64_t (*keep)(uint64_t has))
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct set[2] = {{0}};
    if (syscall(SYS_capget, &header, set) != 0) {
        return;
    }
    uint64_t left = keep(set[0].permitted | (uint64_t)set[1].permitted << 32);
    for (unsigned i = 0; i < 2; i++) {
        uint32_t half = (uint32_t)(left >> 32 * i);
        set[i].permitted &= half;
        set[i].effective &= half;
        set[i].inheritable &= half;
    }
    (void)syscall(SYS_capset, &header, set);
}

/* ---- system calls ---- */

/* What this program can make. A later processor's kernel has only the general one of some. */
static const uint16_t all_calls[] = {
    SYS_read, SYS_process_vm_readv, SYS_pread64, SYS_futex, SYS_ppoll, SYS_openat, SYS_close, SYS_clock_gettime,
    SYS_clock_nanosleep, SYS_ioctl, SYS_write, SYS_fstat, SYS_lseek, SYS_readlinkat, SYS_getcpu, SYS_getdents64,
#ifdef SYS_open
    SYS_open, SYS_poll, SYS_stat, SYS_readlink, SYS_fork, SYS_rename, SYS_mkdir, SYS_unlink, SYS_symlink, SYS_chmod,
    SYS_pipe, SYS_signalfd, SYS_eventfd, SYS_getrlimit, SYS_setrlimit, SYS_lstat, SYS_access, SYS_arch_prctl,
#endif
    SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_brk, SYS_readv, SYS_writev, SYS_preadv,
    SYS_pwrite64, SYS_newfstatat, SYS_statx, SYS_statfs, SYS_fstatfs, SYS_ftruncate, SYS_fsync, SYS_fcntl, SYS_flock,
    SYS_utimensat, SYS_dup, SYS_dup3, SYS_getcwd, SYS_unlinkat, SYS_renameat, SYS_renameat2, SYS_mkdirat, SYS_symlinkat,
    SYS_linkat,
    SYS_fchmod, SYS_fchmodat, SYS_faccessat, SYS_faccessat2, SYS_openat2, SYS_umask, SYS_pipe2, SYS_eventfd2,
    SYS_signalfd4,
    SYS_perf_event_open, SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_getsockname, SYS_getpeername,
    SYS_setsockopt, SYS_getsockopt, SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_shutdown,
    SYS_clone, SYS_set_tid_address, SYS_set_robust_list, SYS_gettid, SYS_getpid, SYS_getppid, SYS_exit, SYS_exit_group,
    SYS_wait4, SYS_waitid, SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn,
    SYS_rt_sigtimedwait, SYS_rt_sigqueueinfo, SYS_rt_sigpending, SYS_sigaltstack, SYS_restart_syscall, SYS_setsid,
    SYS_getpgid, SYS_getsid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_setresuid, SYS_setresgid,
    SYS_setfsuid, SYS_setfsgid, SYS_prctl, SYS_seccomp, SYS_capget, SYS_capset, 444, 445, 446, /* Landlock's */
    SYS_sched_yield, SYS_sched_setattr, SYS_sched_getattr, SYS_sched_setscheduler, SYS_sched_setaffinity,
    SYS_sched_getaffinity, SYS_prlimit64, SYS_getrusage, SYS_sysinfo, SYS_uname, SYS_gettimeofday, SYS_clock_getres,
    SYS_nanosleep, SYS_getrandom, 424, 434, /* of pidfd */
#ifdef __SANITIZE_ADDRESS__ /* the tests' build: another C library */
    SYS_clone3, SYS_rseq,
#endif
};

static const uint16_t stop_calls[] = {SYS_ptrace, SYS_timer_create, SYS_timer_settime, SYS_timer_delete};

static const uint16_t no_reader_makes[] = {SYS_socket, SYS_connect, SYS_bind};

static const uint16_t no_sender_makes[] = {
    SYS_process_vm_readv, SYS_perf_event_open, SYS_setresuid, SYS_setresgid, SYS_setfsuid, SYS_setfsgid, SYS_setsid,
    SYS_kill, SYS_tgkill, SYS_symlinkat, SYS_linkat, SYS_ptrace,
#ifdef SYS_fork
    SYS_fork, SYS_symlink,
#endif
};

static const uint16_t no_client_makes[] = {SYS_bind, SYS_perf_event_open, SYS_ptrace};

static const uint16_t computing_calls[] = {
    SYS_read, SYS_write, SYS_recvmsg, SYS_close, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_brk,
    SYS_futex, SYS_sched_yield, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_clock_gettime, SYS_gettid, SYS_sigaltstack,
    SYS_exit, SYS_exit_group,
};

enum { CALLS_MAX = 200, LEAST_FILTER = 16 };

struct program {
    struct sock_filter at[4 * CALLS_MAX + LEAST_FILTER];
    unsigned short count;
    bool faulty; /* a jump is too far */
};

static void add(struct program *p, struct sock_filter one)
{
    p->at[p->count++] = one;
}

#define STEP(...) ((struct sock_filter)BPF_STMT(__VA_ARGS__))
#define JUMP(...) ((struct sock_filter)BPF_JUMP(__VA_ARGS__))
#define LOAD(offset) STEP(BPF_LD | BPF_W | BPF_ABS, offset)
#define LOW_HALF_OF_FIRST offsetof(struct seccomp_data, args[0]) /* both processors keep the low half first */

/* Where ranges of listed numbers begin and end, ascending: a number is listed if an odd count of edges is not above
 * it. */
struct edges {
    uint16_t at[2 * CALLS_MAX];
    size_t count;
};

static int by_number(const void *a, const void *b)
{
    return *(const uint16_t *)a - *(const uint16_t *)b;
}

static void find_edges(const uint16_t *calls, size_t count, struct edges *out)
{
    uint16_t sorted[CALLS_MAX];
    memcpy(sorted, calls, count * sizeof *calls);
    qsort(sorted, count, sizeof *sorted, by_number);
    out->count = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && sorted[i] <= sorted[i - 1] + 1) { /* the range goes on */
            out->count--;
        } else {
            out->at[out->count++] = sorted[i];
        }
        out->at[out->count++] = (uint16_t)(sorted[i] + 1);
    }
}

/* `before` edges are known not to be above the number; the `left` after them are asked. */
static void decide(struct program *p, const struct edges *edges, size_t before, size_t left, uint32_t listed,
                   uint32_t others)
{
    size_t half = left / 2, jump = p->count;
    if (left == 0) {
        add(p, STEP(BPF_RET | BPF_K, before % 2 != 0 ? listed : others));
        return;
    }
    add(p, JUMP(BPF_JMP | BPF_JGE | BPF_K, edges->at[before + half], 0, 0));
    decide(p, edges, before, half, listed, others);
    size_t over = p->count - jump - 1;
    p->faulty |= over > UINT8_MAX;
    p->at[jump].jt = (uint8_t)over;
    decide(p, edges, before + half + 1, left - half - 1, listed, others);
}

/* `listed` is what becomes of the calls in the list, `others` of the rest. A kernel has one of the two processors; what
 * it runs besides, 32-bit calls, has other numbers. The number is searched for by halves: a kernel goes through the
 * filter for each number there is when it is set, and older ones at each call. */
static void list_calls(struct program *p, const uint16_t *calls, size_t count, uint32_t listed, uint32_t others)
{
    add(p, LOAD(offsetof(struct seccomp_data, arch)));
    add(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 2, 0));
    add(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_AARCH64, 1, 0));
    add(p, STEP(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    add(p, LOAD(offsetof(struct seccomp_data, nr)));
    struct edges edges;
    find_edges(calls, count, &edges);
    decide(p, &edges, 0, edges.count, listed, others);
}

/* Number -1 is a call that a tracer has taken out, to have it fail in its own way. */
static void let_tracers(struct program *p)
{
    add(p, LOAD(offsetof(struct seccomp_data, nr)));
    add(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, UINT32_MAX, 0, 1));
    add(p, STEP(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

/* A clone that makes no thread makes a process. Goes on with the number loaded. */
static void refuse_processes(struct program *p)
{
    add(p, LOAD(offsetof(struct seccomp_data, nr)));
    add(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3));
    add(p, LOAD(LOW_HALF_OF_FIRST));
    add(p, JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0));
    add(p, STEP(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
}

/* Without the flag kernels before 5.16 slow the thread down as if it ran a stranger's code. */
static bool install(struct program *p)
{
    const struct sock_fprog set = {p->count, p->at};
    return !p->faulty &&
           (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &set) == 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &set) == 0);
}

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static void refuse(const uint16_t *calls, size_t count, bool processes)
{
    struct program p = {.count = 0};
    if (processes) {
        refuse_processes(&p);
    }
    list_calls(&p, calls, count, SECCOMP_RET_TRAP, SECCOMP_RET_ALLOW);
    (void)install(&p);
}

/* ---- what was refused ---- */

/* Instead of the call, which fails. */
static void tell(int number, siginfo_t *info, void *context)
{
    int before = errno;
    ucontext_t *at = context;
    (void)number;
#ifdef __x86_64__
    at->uc_mcontext.gregs[REG_RAX] = -EPERM;
#else
    at->uc_mcontext.regs[0] = (uint64_t)-EPERM;
#endif
    (void)sigqueue(getpid(), SIGNAL_REFUSED, (union sigval){.sival_int = info->si_syscall});
    errno = before;
}

/* ---- files ---- */

/* landlock(7); headers of older kernels do not have it. */
enum {
    CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446,
    BENEATH = 1, VERSION = 1,
    READS = 1 << 2 | 1 << 3,                                  /* files, folders */
    WRITES = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8,      /* files; removes, makes both */
    HANDLED = (1 << 13) - 1,                                  /* of version 1: execute and special files as well */
};

struct beneath {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

static void allow_below(int rules, int folder, const char *name, uint64_t what)
{
    int fd = openat(folder, name, O_PATH | O_CLOEXEC);
    struct beneath rule = {what, fd};
    if (fd < 0) {
        return;
    }
    if (syscall(ADD_RULE, rules, BENEATH, &rule, 0) != 0 && errno == EINVAL) {
        rule.allowed &= (uint64_t)(1 << 1 | 1 << 2); /* it is a file */
        (void)syscall(ADD_RULE, rules, BENEATH, &rule, 0);
    }
    close(fd);
}

/* Everything but /proc: what is configured may lie anywhere, and change its place. */
static void allow_reading(int rules)
{
    DIR *root = opendir("/");
    for (const struct dirent *one; root != NULL && (one = readdir(root)) != NULL;) {
        if (strcmp(one->d_name, ".") != 0 && strcmp(one->d_name, "..") != 0 && strcmp(one->d_name, "proc") != 0) {
            allow_below(rules, dirfd(root), one->d_name, READS);
        }
    }
    if (root != NULL) {
        closedir(root);
    }
}

static void hide_files(const char *spool)
{
    uint64_t handled = HANDLED;
    int rules = (int)syscall(CREATE_RULESET, &handled, sizeof handled, 0);
    if (rules < 0) {
        return;
    }
    allow_reading(rules);
    if (spool != NULL) {
        allow_below(rules, AT_FDCWD, spool, READS | WRITES);
    }
    (void)syscall(RESTRICT_SELF, rules, 0);
    close(rules);
}

/* ---- kinds of threads ---- */

/* The attempts that a filter may kill for. */
static void try_calls(void)
{
    static const uint16_t anything[] = {SYS_exit_group};
    struct program p = {.count = 0};
    drop_rights(rights_to_keep);
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    hide_files(NULL);
    list_calls(&p, anything, COUNT(anything), SECCOMP_RET_ALLOW, SECCOMP_RET_ALLOW);
    (void)install(&p);
}

bool confine_process(bool stops, const char **missing)
{
    struct program p = {.count = 0};
    uint16_t calls[COUNT(all_calls) + COUNT(stop_calls)];
    memcpy(calls, all_calls, sizeof all_calls);
    memcpy(calls + COUNT(all_calls), stop_calls, sizeof stop_calls);
    struct sigaction action = {.sa_flags = SA_SIGINFO};
    *missing = NULL;
    if (trial_run(try_calls) != TRIAL_PASSED) {
        return false;
    }
    action.sa_sigaction = tell;
    sigaction(SIGSYS, &action, NULL);
    drop_rights(rights_to_keep);
    let_tracers(&p);
    list_calls(&p, calls, COUNT(all_calls) + (stops ? COUNT(stop_calls) : 0), SECCOMP_RET_ALLOW, SECCOMP_RET_TRAP);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || !install(&p)) {
        *missing = "filters of system calls";
    } else if (syscall(CREATE_RULESET, NULL, 0, VERSION) < 0) {
        *missing = "Landlock";
    }
    return true;
}

void confine_reader(void)
{
    refuse(no_reader_makes, COUNT(no_reader_makes), false);
}

/* Goes on with the number loaded. */
static void refuse_other_families(struct program *p, bool dials)
{
    unsigned char families = dials ? 3 : 1;
    add(p, LOAD(offsetof(struct seccomp_data, nr)));
    add(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, (unsigned char)(families + 2)));
    add(p, LOAD(LOW_HALF_OF_FIRST));
    if (dials) {
        add(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 3, 0));
        add(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 2, 0));
    }
    add(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 1, 0));
    add(p, STEP(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
}

void confine_client(bool dials)
{
    struct program p = {.count = 0};
    refuse_other_families(&p, dials);
    list_calls(&p, no_client_makes, COUNT(no_client_makes), SECCOMP_RET_TRAP, SECCOMP_RET_ALLOW);
    (void)install(&p);
}

void confine_sender(const char *spool)
{
    drop_rights(sender_keeps);
    hide_files(spool);
    refuse(no_sender_makes, COUNT(no_sender_makes), true);
}

/* To itself: how abort ends a thread. */
static void let_raise(struct program *p)
{
    add(p, LOAD(offsetof(struct seccomp_data, nr)));
    add(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tkill, 0, 3));
    add(p, LOAD(LOW_HALF_OF_FIRST));
    add(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)syscall(SYS_gettid), 0, 1));
    add(p, STEP(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

bool confine_computing(void)
{
    struct program p = {.count = 0};
    let_raise(&p);
    list_calls(&p, computing_calls, COUNT(computing_calls), SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EPERM);
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && install(&p);
}

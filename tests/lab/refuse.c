/*
 * refuse ERRNO SYSCALL[,SYSCALL...] -- COMMAND [ARGS...]
 *
 * Runs COMMAND with a seccomp filter that answers the named system calls with ERRNO (EPERM, ENOSYS,
 * EACCES, some others, or a number) and allows all others: what a container engine's profile does to a program,
 * without a container. KILL instead of ERRNO ends the process that makes one by SIGSYS, as systemd's SystemCallFilter=
 * does. Linked statically so that it works in any root.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KILL (-1)

#ifdef __x86_64__
#define MACHINE AUDIT_ARCH_X86_64
#else
#define MACHINE AUDIT_ARCH_AARCH64
#endif
#define CALLS_MAX 32

static const struct {
    const char *name;
    int number;
} calls[] = {
    {"perf_event_open", SYS_perf_event_open},
    {"process_vm_readv", SYS_process_vm_readv},
    {"ptrace", SYS_ptrace},
    {"kcmp", SYS_kcmp},
    {"pidfd_open", SYS_pidfd_open},
    {"pidfd_getfd", SYS_pidfd_getfd},
    {"memfd_create", SYS_memfd_create},
    {"close_range", SYS_close_range},
    {"setsid", SYS_setsid},
    {"prctl", SYS_prctl},
    {"clone3", SYS_clone3},
    {"timerfd_create", SYS_timerfd_create},
    {"epoll_create1", SYS_epoll_create1},
    {"signalfd4", SYS_signalfd4},
    {"statx", SYS_statx},
    {"renameat2", SYS_renameat2},
    {"sched_setaffinity", SYS_sched_setaffinity},
    {"sched_setattr", SYS_sched_setattr},
    {"socketpair", SYS_socketpair},
    {"clone", SYS_clone},
    {"waitid", SYS_waitid},
    {"mmap", SYS_mmap},
    {"wait4", SYS_wait4},
    {"rt_sigtimedwait", SYS_rt_sigtimedwait},
#ifdef SYS_fork /* newer processors have clone alone */
    {"fork", SYS_fork},
    {"access", SYS_access},
    {"stat", SYS_stat},
    {"poll", SYS_poll},
#else
    {"fork", SYS_clone},
    {"access", SYS_faccessat},
    {"stat", SYS_newfstatat},
    {"poll", SYS_ppoll},
#endif
};

static const struct {
    const char *name;
    int number;
} errors[] = {{"EPERM", EPERM}, {"ENOSYS", ENOSYS}, {"EACCES", EACCES}, {"EINVAL", EINVAL}, {"EMFILE", EMFILE},
            {"ENODEV", ENODEV}, {"E2BIG", E2BIG}, {"EAGAIN", EAGAIN}, {"ENOMEM", ENOMEM}, {"KILL", KILL}};

static unsigned answer_of(int error)
{
    return error == KILL ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | ((unsigned)error & SECCOMP_RET_DATA);
}

static int fail(const char *what)
{
    fprintf(stderr, "refuse: %s\n", what);
    return 125;
}

static int call_number(const char *name)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (strcmp(calls[i].name, name) == 0)
            return calls[i].number;
    return -1;
}

static int error_number(const char *name)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (strcmp(errors[i].name, name) == 0)
            return errors[i].number;
    return atoi(name);
}

int main(int argc, char **argv)
{
    if (argc < 5 || strcmp(argv[3], "--") != 0)
        return fail("usage: refuse ERRNO SYSCALL[,SYSCALL...] -- COMMAND [ARGS...]");
    int error = error_number(argv[1]);
    struct sock_filter filter[5 + CALLS_MAX * 2];
    unsigned short used = 0;
    /* Another processor's numbers mean other calls: leave them alone. */
    filter[used++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    filter[used++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0);
    filter[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[used++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    int count = 0;
    for (char *name = strtok(argv[2], ","); name; name = strtok(NULL, ",")) {
        int number = call_number(name);
        if (number < 0 || ++count > CALLS_MAX)
            return fail(name);
        filter[used++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1);
        filter[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer_of(error));
    }
    filter[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = used, .filter = filter};
    /* Root may install a filter without this, and engines do; without root it is the only way. */
    if (geteuid() != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return fail("PR_SET_NO_NEW_PRIVS");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
        return fail("PR_SET_SECCOMP");
    execvp(argv[4], argv + 4);
    return fail("exec");
}

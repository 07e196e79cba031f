/* A child process that may compute and nothing else: fork, limits, seccomp, a socket over which descriptors are given.
 * The parent's half waits with deadlines and reaps; the child's half never returns into the caller.
 */
#include "os/sandbox.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/confine.h"
#include "os/launch.h"
#include "os/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_DONE = 0, EXIT_NO_MEMORY = 3, EXIT_DENIED = 4, REFUSED = 0 };

struct child {
    pid_t pid;
    int fd;
};

/* What comes with a descriptor. */
struct given {
    uint64_t bytes; /* REFUSED: there is none */
};

union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

/* ---- the child ---- */

static int fd_of(void *context)
{
    return (int)(intptr_t)context;
}

static bool port_write(void *context, const void *ptr, size_t len)
{
    const char *from = ptr;
    while (len > 0) {
        ssize_t put = write(fd_of(context), from, len);
        if (put <= 0) {
            return false;
        }
        from += put;
        len -= (size_t)put;
    }
    return true;
}

static bool port_take(void *context, void **ptr, size_t *len)
{
    struct given given;
    union control control = {0};
    struct iovec part = {&given, sizeof given};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = sizeof control};
    if (recvmsg(fd_of(context), &message, MSG_WAITALL) != sizeof given || given.bytes == REFUSED ||
        CMSG_FIRSTHDR(&message) == NULL) {
        return false;
    }
    int fd;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    *len = (size_t)given.bytes;
    *ptr = mmap(NULL, *len, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    return *ptr != MAP_FAILED;
}

/* The segments that may be written, and the stack, in pages: the sixth number of statm. */
static uint64_t data_bytes(void)
{
    unsigned long long pages = 0;
    char text[256] = "";
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    (void)close(fd);
    return got > 0 && sscanf(text, "%*s %*s %*s %*s %*s %llu", &pages) == 1
               ? pages * (uint64_t)sysconf(_SC_PAGESIZE)
               : 0;
}

static bool limit(int resource, uint64_t most)
{
    struct rlimit now;
    if (getrlimit(resource, &now) == 0 && now.rlim_max < most) {
        most = now.rlim_max;
    }
    return setrlimit(resource, &(struct rlimit){most, most}) == 0;
}

/* A crash is one for the kernel to tell, whatever handles signals in the parent. */
static void forget_handlers(void)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGPIPE};
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++) {
        (void)signal(crashes[i], SIG_DFL);
    }
}

__attribute__((noreturn)) static void no_memory(void)
{
    _exit(EXIT_NO_MEMORY);
}

/* A library that does not look at what malloc answers crashes near the child's limit, or aborts. Any other crash comes
 * again when this returns. */
static void tell_want(int number)
{
    enum { NEAR = 4 << 20 }; /* its tables grow by doubling */
    (void)number;
    if (mmap(NULL, NEAR, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) {
        no_memory();
    }
}

__attribute__((noreturn)) static void be_child(int fd, pid_t parent, uint64_t most_bytes,
                                               void (*run)(void *argument, const struct sandbox_port *port),
                                               void *argument)
{
    const struct sandbox_port port = {port_write, port_take, no_memory, (void *)(intptr_t)fd};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NAME, "pillion-lines");
    if (getppid() != parent) {
        _exit(EXIT_DONE);
    }
    launch_close_from(0, fd);
    proc_be_first_to_go();
    forget_handlers();
    uint64_t has = data_bytes();
    bool limited = has > 0 && limit(RLIMIT_DATA, has + most_bytes) && limit(RLIMIT_CPU, SANDBOX_CPU_S) &&
                   limit(RLIMIT_CORE, 0);
    const struct sigaction once = {.sa_handler = tell_want, .sa_flags = (int)SA_RESETHAND};
    (void)sigaction(SIGSEGV, &once, NULL);
    (void)sigaction(SIGABRT, &once, NULL);
    if (!limited || !confine_computing()) {
        _exit(EXIT_DENIED);
    }
    run(argument, &port);
    _exit(EXIT_DONE);
}

/* ---- the parent ---- */

static void *start(void *context, void (*run)(void *argument, const struct sandbox_port *port), void *argument,
                   struct err *err)
{
    int ends[2];
    struct child *child = calloc(1, sizeof *child);
    pid_t parent = getpid();
    if (child == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        err_errno(err, child == NULL ? ENOMEM : errno, "cannot make a socket to a child");
        free(child);
        return NULL;
    }
    pid_t pid = fork();
    if (pid == 0) {
        be_child(ends[1], parent, (uintptr_t)context, run, argument);
    }
    int number = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        free(child);
        err_no_thread(err, number, "a child");
        return NULL;
    }
    *child = (struct child){.pid = pid, .fd = ends[0]};
    return child;
}

static int left_ms(uint64_t deadline_ns)
{
    uint64_t now_ns = clock_mono_ns();
    uint64_t left = now_ns < deadline_ns ? (deadline_ns - now_ns) / NS_PER_MS + 1 : 0;
    return left < 60000 ? (int)left : 60000;
}

static ptrdiff_t read_from(void *context, void *to, size_t max, uint64_t deadline_ns)
{
    const struct child *child = context;
    struct pollfd one = {.fd = child->fd, .events = POLLIN};
    for (int wait_ms = left_ms(deadline_ns); wait_ms > 0; wait_ms = left_ms(deadline_ns)) {
        ssize_t got = poll(&one, 1, wait_ms) > 0 ? recv(child->fd, to, max, MSG_DONTWAIT) : -1;
        if (got >= 0) {
            return got;
        }
        if (errno == ECONNRESET) {
            return 0;
        }
    }
    return -1;
}

static bool give(void *context, const struct memory_reader *file)
{
    int descriptor = file == NULL ? -1 : proc_descriptor_of(file);
    const struct child *child = context;
    struct given given = {REFUSED};
    union control control = {.header = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
                                        .cmsg_len = CMSG_LEN(sizeof(int))}};
    struct iovec part = {&given, sizeof given};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct stat st;
    if (descriptor >= 0 && fstat(descriptor, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        given.bytes = (uint64_t)st.st_size;
        memcpy(CMSG_DATA(&control.header), &descriptor, sizeof descriptor);
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
    }
    return sendmsg(child->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof given;
}

static enum sandbox_end end_of(int status)
{
    if (WIFSIGNALED(status)) {
        return WTERMSIG(status) == SIGKILL  ? SANDBOX_STOPPED
               : WTERMSIG(status) == SIGBUS ? SANDBOX_FILE_LOST
                                            : SANDBOX_CRASHED;
    }
    switch (WEXITSTATUS(status)) {
    case EXIT_DONE:
        return SANDBOX_DONE;
    case EXIT_DENIED:
        return SANDBOX_DENIED;
    case EXIT_NO_MEMORY:
        return SANDBOX_NO_MEMORY;
    default: /* a library's own last word */
        return SANDBOX_CRASHED;
    }
}

/* One that is exiting already, or has crashed, ends as it would have. */
static enum sandbox_end end(void *context)
{
    struct child *child = context;
    int status = 0;
    pid_t got;
    (void)kill(child->pid, SIGKILL);
    close(child->fd);
    while ((got = waitpid(child->pid, &status, 0)) < 0 && errno == EINTR) {
    }
    free(child);
    return got < 0 ? SANDBOX_STOPPED : end_of(status);
}

struct sandbox sandbox_system(uint64_t data_bytes)
{
    return (struct sandbox){start, read_from, give, end, (void *)(uintptr_t)data_bytes};
}

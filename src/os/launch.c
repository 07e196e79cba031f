/* Starts a command with a profiler beside it. In `exec` mode this process becomes the command; in
 * `init` mode it stays, forwards signals, reaps children and restarts a profiler that died. Nothing
 * that fails on the profiler's side may stop the command. */
#include "os/launch.h"
#include "base/str.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/console.h"
#include "os/proc.h"
#include "os/trial.h"
#include "os/usage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    INIT_FD = STDERR_FILENO + 1, /* the profiler's */
    OWN_FD_LEAST = 10, /* our descriptors stay clear of a caller's closed 0, 1, 2 */
    BACKOFF_FIRST_S = 1,
    BACKOFF_MAX_S = 60,
    ROOM_LEAST_MB = 8, /* for a profiler to begin once more */
    REFUSED_PAUSE_MS = 20,
    PENDING_MAX = 1024, /* of them before the command's start; who sends for ever does not hold it up */
};

/* ---- finding the command ---- */

/* The answers of an exec, too. Another one says something of the call alone: a filter, no memory. */
static bool is_of_the_file(int number)
{
    return number == ENOENT || number == ENOTDIR || number == EACCES || number == ELOOP || number == ENAMETOOLONG;
}

/* As far as the mode tells, which is a call less that a filter may kill for (trial.h), and no system's own answer: what
 * an access list or a mount says of it in addition is said by the exec, and the search goes on then. */
static bool is_runnable_file(const char *path, int *number)
{
    struct stat st;
    if (stat(path, &st) < 0) {
        *number = errno;
        return !is_of_the_file(errno);
    }
    if (S_ISDIR(st.st_mode)) {
        *number = EISDIR;
        return false;
    }
    *number = (st.st_mode & 0111) != 0 ? 0 : EACCES;
    return *number == 0;
}

static int not_runnable(const char *argv0, int number, struct err *err)
{
    if (number == ENOENT || number == ENOTDIR || number == 0) {
        err_set(err, ERR_GONE, number, "%s: not found", argv0);
        return LAUNCH_NOT_FOUND;
    }
    if (number == EISDIR) {
        err_set(err, ERR_DENIED, number, "%s: not executable: it is a directory", argv0);
    } else if (number == EACCES) {
        err_set(err, ERR_DENIED, number, "%s: not executable; try: chmod +x %s", argv0, argv0);
    } else {
        err_errno(err, number, "%s: not executable", argv0);
    }
    return LAUNCH_NOT_EXECUTABLE;
}

int launch_find(const char *argv0, char *path, size_t path_bytes, struct err *err)
{
    int number = ENOENT;
    if (strchr(argv0, '/') != NULL) {
        if ((size_t)snprintf(path, path_bytes, "%s", argv0) >= path_bytes) {
            return not_runnable(argv0, ENAMETOOLONG, err);
        }
        return is_runnable_file(path, &number) ? 0 : not_runnable(argv0, number, err);
    }
    const char *search = getenv("PATH");
    struct str rest = str_of(search != NULL ? search : "/usr/local/bin:/bin:/usr/bin");
    int seen = ENOENT; /* a file without the right to run it explains more than "not found" */
    bool more = argv0[0] != '\0';
    while (more) {
        more = str_find(rest, ':') < rest.len;
        struct str dir = str_cut(&rest, ':');
        int len = snprintf(path, path_bytes, "%.*s%s%s", (int)dir.len, dir.ptr,
                           dir.len > 0 ? "/" : "", argv0);
        if (len > 0 && (size_t)len < path_bytes && is_runnable_file(path, &number)) {
            return 0;
        }
        seen = number == EACCES ? EACCES : seen;
    }
    return not_runnable(argv0, seen, err);
}

/* The file is there and may be run, yet the kernel says ENOENT: what the file itself asks for is not. */
static int lacks_interpreter(const char *path, const char *argv0, struct err *err)
{
    char head[256] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, head, sizeof head - 1);
    if (fd >= 0) {
        close(fd);
    }
    if (got > 2 && memcmp(head, "#!", 2) == 0) {
        char *name = head + 2 + strspn(head + 2, " \t");
        name[strcspn(name, " \t\r\n")] = '\0';
        err_set(err, ERR_GONE, ENOENT, "%s: its interpreter %s does not exist", argv0, name);
    } else {
        err_set(err, ERR_GONE, ENOENT,
                "%s: its loader does not exist; was it built for another C library?", argv0);
    }
    return LAUNCH_NOT_FOUND;
}

static int not_started(const char *path, const char *argv0, int number, struct err *err)
{
    int missing;
    return number == ENOENT && is_runnable_file(path, &missing) ? lacks_interpreter(path, argv0, err)
                                                                : not_runnable(argv0, number, err);
}

/* Does not return when it works. A script without a #! line runs in the shell, as execvp has it. */
static void exec_command(const char *path, char *const *argv)
{
    execve(path, argv, environ);
    if (errno != ENOEXEC) {
        return;
    }
    size_t count = 0;
    while (argv[count] != NULL) {
        count++;
    }
    char **with_shell = calloc(count + 2, sizeof *with_shell);
    if (with_shell != NULL) {
        memcpy(&with_shell[1], argv, (count + 1) * sizeof *argv);
        union {
            const char *text;
            char *arg;
        } name = {"sh"}, script = {path}; /* execve takes but does not change its arguments */
        with_shell[0] = name.arg; /* busybox is what it is called */
        with_shell[1] = script.arg;
        execve("/bin/sh", with_shell, environ);
        free(with_shell);
        errno = ENOEXEC;
    }
}

/* ---- descriptors ---- */

static int high_fd(int fd)
{
    if (fd < 0 || fd >= OWN_FD_LEAST) {
        return fd;
    }
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, OWN_FD_LEAST);
    int number = errno == EINVAL ? EMFILE : errno; /* the limit is below */
    close(fd);
    errno = number;
    return moved;
}

/* [0] is the command's end, [1] the profiler's. The profiler says that it is ready; the end closes by
 * itself when the command is exec'd, and carries one byte when that failed. Or [0] is the end of the parent that
 * stays: the profiler says that it goes on alone, or ends. */
static bool make_pair(int fds[static 2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0) {
        return false;
    }
    fds[0] = high_fd(fds[0]);
    fds[1] = high_fd(fds[1]);
    return fds[0] >= 0 && fds[1] >= 0;
}

/* Puts /dev/null in place of a standard descriptor; in a root without /dev it is only closed. */
static void discard(int fd)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0) {
        close(fd);
    } else if (null != fd) {
        dup2(null, fd);
        close(null);
    }
}

/* Those that /proc lists: a limit of a million descriptors costs nothing then. Not by close_range, for which a filter
 * may kill (trial.h). False: there is no /proc. */
static bool close_listed(int from, int keep)
{
    DIR *stream = opendir("/proc/self/fd");
    for (struct dirent *entry; stream != NULL && (entry = readdir(stream)) != NULL;) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd >= from && fd != keep && fd != dirfd(stream)) {
            close(fd);
        }
    }
    return stream != NULL && closedir(stream) == 0;
}

void launch_close_from(int from, int keep)
{
    long limit = close_listed(from, keep) ? 0 : sysconf(_SC_OPEN_MAX);
    for (int fd = from; fd < limit && fd < 65536; fd++) {
        if (fd != keep) {
            close(fd);
        }
    }
}

/* ---- the profiler's process ---- */

static void default_signals(void)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    for (int sig = 1; sig < NSIG; sig++) {
        (void)sigaction(sig, &plain, NULL);
    }
    sigset_t later; /* for signals_open: a command may have ended before that */
    sigemptyset(&later);
    sigaddset(&later, SIGTERM);
    sigaddset(&later, SIGNAL_COMMAND_ENDED);
    sigprocmask(SIG_SETMASK, &later, NULL);
}

__attribute__((noreturn)) static void become_profiler(const struct launch *launch,
                                                      struct launch_target target)
{
    setsid();
    prctl(PR_SET_NAME, "pillion");
    proc_be_first_to_go(); /* the command goes on with what its memory limit leaves it */
    if (!launch->shows) {
        discard(STDIN_FILENO);
        discard(STDOUT_FILENO);
    }
    if (fcntl(STDERR_FILENO, F_GETFD) < 0) {
        discard(STDERR_FILENO);
    }
    if (target.init_fd >= 0) {
        target.init_fd = dup3(target.init_fd, INIT_FD, O_CLOEXEC);
    }
    launch_close_from(target.init_fd >= 0 ? INIT_FD + 1 : INIT_FD, target.link_fd);
    default_signals();
    _exit(launch->run(launch->context, &target));
}

/* Reads up to `len` bytes within the bound: their number, 0 at the other's end, -1 when time is up. */
static ssize_t read_within(int fd, void *out, size_t len, uint64_t bound_ms)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    uint64_t end_ns = clock_mono_ns() + bound_ms * NS_PER_MS;
    for (;;) {
        uint64_t now_ns = clock_mono_ns();
        int left_ms = now_ns >= end_ns ? 0 : (int)((end_ns - now_ns) / NS_PER_MS) + 1;
        int ready = poll(&one, 1, left_ms);
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        return ready <= 0 ? -1 : read(fd, out, len);
    }
}

void launch_leave(int init_fd)
{
    (void)send(init_fd, "x", 1, MSG_NOSIGNAL);
    close(init_fd);
}

void launch_end(uint32_t pid)
{
    (void)kill((pid_t)pid, SIGTERM);
}

bool launch_ready(struct launch_target *target)
{
    if (target->link_fd < 0) {
        return true;
    }
    int32_t pid = (int32_t)getpid();
    char failed;
    target->late = send(target->link_fd, &pid, sizeof pid, MSG_NOSIGNAL) != sizeof pid;
    bool started = read_within(target->link_fd, &failed, 1, LAUNCH_READY_MAX_MS) <= 0;
    close(target->link_fd);
    target->link_fd = -1;
    return started;
}

/* ---- the command's process ---- */

/* What it writes would be in the middle of what the profiler shows; its standard error only on the same terminal.
 * Returns what standard error was, for a message that it cannot be started. */
static int leave_screen(void)
{
    int before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, OWN_FD_LEAST);
    if (isatty(STDERR_FILENO) == 1 && console_is_same(STDOUT_FILENO, STDERR_FILENO)) {
        discard(STDERR_FILENO);
    }
    if (isatty(STDIN_FILENO) == 1) {
        discard(STDIN_FILENO);
    }
    discard(STDOUT_FILENO);
    return before;
}

/* Becomes the command; on failure tells the profiler that there is none, and returns 126 or 127. */
static int start_command(const struct launch *launch, const char *path, int link, struct err *err)
{
    int before = launch->shows ? leave_screen() : -1;
    exec_command(path, launch->argv);
    if (errno == EACCES) {
        execvp(launch->argv[0], launch->argv); /* what may not run is passed over, as in a shell */
    }
    int number = errno;
    if (before >= 0) {
        (void)dup2(before, STDERR_FILENO);
    }
    (void)send(link, "x", 1, MSG_NOSIGNAL);
    return not_started(path, launch->argv[0], number, err);
}

/* What a container's limits and filters are for is no reason not to start the command. */
static const char *remedy_of(int number)
{
    switch (number) {
    case EAGAIN:
        return "raise the limit of processes (pids.max of the container, ulimit -u)";
    case EMFILE:
    case ENFILE:
        return "raise the limit of open files (ulimit -n)";
    case ENOMEM:
    case ENOBUFS:
        return "give the container more memory";
    default:
        return "allow clone, fork and socketpair in the seccomp profile";
    }
}

static void say_no_process(int number)
{
    dprintf(STDERR_FILENO, "pillion: no profile: cannot start a process: %s; %s\n", strerror(number),
            remedy_of(number));
}

/* All that this process asks for beyond what every program does, as the command or as its parent. */
static void try_calls(void)
{
    int pair[2] = {-1, -1};
    (void)socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
    (void)send(pair[0], "x", 1, MSG_NOSIGNAL);
    (void)prctl(PR_GET_CHILD_SUBREAPER, &pair[0]);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    siginfo_t info;
    sigset_t none;
    sigemptyset(&none);
    (void)waitid(P_PID, (id_t)pid, &info, WEXITED);
    (void)sigtimedwait(&none, &info, &(struct timespec){0});
}

static bool may_have_profiler(void)
{
    if (trial_run(try_calls) != TRIAL_KILLED) {
        return true;
    }
    dprintf(STDERR_FILENO, "pillion: no profile: a seccomp profile kills what starts a profiler; allow socketpair, "
                           "sendto, prctl, fork, waitid and rt_sigtimedwait\n");
    return false;
}

/* ---- exec: this process becomes the command ---- */

struct beside {
    const struct launch *launch;
    struct launch_target target;
};

static int be_profiler(void *context)
{
    const struct beside *b = context;
    become_profiler(b->launch, b->target);
}

/* Whoever's parent ends becomes a child of this process. */
static bool adopts_orphans(void)
{
    int reaper = 0;
    return getpid() == 1 || (prctl(PR_GET_CHILD_SUBREAPER, &reaper) == 0 && reaper != 0);
}

/* Runs `be` in a child with a stack of its own, whose end sends no signal (trial.h); its number, or -1 and errno. */
static pid_t clone_child(int (*be)(void *context), int flags, struct beside *b)
{
    enum { STACK_BYTES = 1 << 20, GUARD_BYTES = 1 << 16 }; /* the largest page there is */
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) {
        return -1;
    }
    pid_t pid = mprotect(stack, GUARD_BYTES, PROT_NONE) == 0 ? clone(be, stack + STACK_BYTES, flags, b) : -1;
    int number = errno;
    if (pid < 0) {
        (void)munmap(stack, STACK_BYTES);
    }
    errno = number;
    return pid;
}

/* A child that waits without __WALL or __WCLONE do not find: a command that waits for all its children would wait for
 * the profiler, which waits for the command. Clone, for a child that a process adopts is found by every wait
 * (kernel/exit.c, reparent_leader). When it ends it stays a zombie until the command ends, too. */
static bool start_unwaited(struct beside *b)
{
    return clone_child(be_profiler, 0, b) > 0;
}

static int be_between(void *context)
{
    pid_t profiler = fork();
    if (profiler == 0) {
        (void)be_profiler(context);
    }
    return profiler > 0 ? 0 : errno;
}

/* It has the memory of who waits for it, as by a vfork, for all that it does is to fork: a command waits a tenth of a
 * millisecond less. */
static pid_t start_between(struct beside *b)
{
#ifdef __SANITIZE_ADDRESS__ /* the tests' build: it takes another stack for a mistake */
    pid_t pid = trial_fork();
    if (pid == 0) {
        _exit(be_between(b));
    }
    return pid;
#else
    return clone_child(be_between, CLONE_VM | CLONE_VFORK, b);
#endif
}

/* A grandchild, which is nobody's here once the process between has ended. */
static bool start_detached(struct beside *b)
{
    pid_t between = start_between(b);
    int status = 0;
    while (between > 0 && waitpid(between, &status, __WALL) < 0 && errno == EINTR) {
    }
    errno = between < 0 ? errno : WIFEXITED(status) ? WEXITSTATUS(status) : ENOMEM;
    return between > 0 && errno == 0;
}

/* Waits for the profiler, which may read this process from then on. */
static void await_profiler(int link)
{
    int32_t pid = 0;
    ssize_t got = read_within(link, &pid, sizeof pid, LAUNCH_READY_MAX_MS);
    if (got == sizeof pid) {
        (void)prctl(PR_SET_PTRACER, (unsigned long)pid);
    } else if (got == 0) {
        dprintf(STDERR_FILENO, "pillion: no profile: the profiler died before it could begin\n");
    }
}

static int run_exec(const struct launch *launch, const char *path, struct err *err)
{
    int link[2] = {-1, -1};
    bool linked = make_pair(link);
    struct beside beside = {
        launch, {.pid = (uint32_t)getpid(), .fresh = true, .init_fd = -1, .link_fd = link[1]}};
    if (linked && (adopts_orphans() ? start_unwaited(&beside) : start_detached(&beside))) {
        close(link[1]);
        await_profiler(link[0]);
    } else {
        say_no_process(errno);
    }
    return start_command(launch, path, link[0], err);
}

/* ---- init: this process stays ---- */

struct init {
    const struct launch *launch;
    pid_t command, profiler;
    int profiler_fd; /* [0] of a pair with it, -1: there is none */
    bool command_ended;
    int status; /* the command's, as of waitpid */
    uint64_t restart_at_ns; /* 0: the profiler runs, or is not wanted any more */
    unsigned backoff_s;
    char *variables; /* a copy of the environment, for a profiler that comes later; null: there is none */
    size_t variables_bytes;
};

/* The environment lies in one piece, as the kernel has put it there. */
static size_t environment_bytes(void)
{
    size_t len = 0;
    for (char **at = environ; *at != NULL && *at == environ[0] + len; at++) {
        len += strlen(*at) + 1;
    }
    return len;
}

/* The command has its own; here it is readable in /proc for as long as this process stays. */
static void hide_environment(struct init *init)
{
    size_t len = environment_bytes();
    init->variables = len == 0 ? NULL : malloc(len);
    if (init->variables != NULL) {
        memcpy(init->variables, environ[0], len);
        init->variables_bytes = len;
    }
    init->launch->hide(init->launch->context);
}

/* A profiler takes from it what it needs, and hides it as well. */
static void show_environment(const struct init *init)
{
    if (init->variables != NULL) {
        memcpy(environ[0], init->variables, init->variables_bytes);
    }
}

static void start_profiler(struct init *init, bool fresh, int link_fd)
{
    int pair[2] = {-1, -1};
    init->restart_at_ns = 0;
    (void)make_pair(pair);
    init->profiler = fork();
    if (init->profiler == 0) {
        show_environment(init);
        become_profiler(init->launch, (struct launch_target){.pid = (uint32_t)init->command,
                                                             .fresh = fresh,
                                                             .init_fd = pair[1],
                                                             .link_fd = link_fd});
    }
    if (init->profiler < 0) {
        say_no_process(errno);
    }
    close(pair[1]);
    close(init->profiler_fd);
    init->profiler_fd = pair[0];
}

static int exit_code(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The kernel ended it for want of memory, and would end the next one: or the command, which is larger. */
static bool is_short_of_memory(int status)
{
    struct usage_room room;
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL || !usage_memory_room("", &room) ||
        room.left_bytes >= ROOM_LEAST_MB << 20) {
        return false;
    }
    dprintf(STDERR_FILENO,
            "pillion: the profiler was killed, and of the %u MB that this container may use %u are left: "
            "profiling ends; give it more memory\n",
            (unsigned)(room.limit_bytes >> 20), (unsigned)(room.left_bytes >> 20));
    return true;
}

/* A profiler that ended by itself with 0 or 1 had nothing more to do; any other end is a crash. */
static void note_profiler_end(struct init *init, int status)
{
    init->profiler = 0;
    if (init->command_ended || (WIFEXITED(status) && WEXITSTATUS(status) <= 1) || is_short_of_memory(status)) {
        return;
    }
    if (WIFSIGNALED(status)) {
        dprintf(STDERR_FILENO, "pillion: the profiler was ended by signal %d; the next begins in %u s\n",
                WTERMSIG(status), init->backoff_s);
    }
    init->restart_at_ns = clock_mono_ns() + init->backoff_s * NS_PER_S;
    init->backoff_s = init->backoff_s * 2 > BACKOFF_MAX_S ? BACKOFF_MAX_S : init->backoff_s * 2;
}

static bool take_child(struct init *init, const siginfo_t *child)
{
    if (child->si_code == CLD_STOPPED || child->si_code == CLD_CONTINUED) {
        siginfo_t taken; /* without WEXITED: it may have been killed since, and that must stay */
        (void)waitid(P_PID, (id_t)child->si_pid, &taken, WSTOPPED | WCONTINUED | WNOHANG);
        /* the shell that waits for us must see its job stop; PID 1 cannot be stopped */
        if (child->si_code == CLD_STOPPED && child->si_pid == init->command && getpid() != 1) {
            raise(SIGSTOP);
        }
        return true;
    }
    if (child->si_pid == init->command) {
        /* stays a zombie while the profiler reads its final CPU times */
        init->command_ended = true;
        init->status = child->si_code == CLD_EXITED ? child->si_status << 8 : child->si_status;
        return false;
    }
    int status = 0;
    (void)waitpid(child->si_pid, &status, WNOHANG);
    if (child->si_pid == init->profiler) {
        note_profiler_end(init, status);
    }
    return true;
}

/* Where waitid is refused: ends alone, and the command is no zombie then. */
static void reap_by_waitpid(struct init *init)
{
    int status;
    for (pid_t pid; !init->command_ended && (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid == init->command) {
            init->command_ended = true;
            init->status = status;
        } else if (pid == init->profiler) {
            note_profiler_end(init, status);
        }
    }
}

static void reap(struct init *init)
{
    siginfo_t child;
    int failed;
    do {
        child.si_pid = 0;
        failed = waitid(P_ALL, 0, &child, WEXITED | WSTOPPED | WNOHANG | WNOWAIT);
    } while (failed == 0 && child.si_pid != 0 && take_child(init, &child));
    if (failed != 0) {
        reap_by_waitpid(init);
    }
}

/* The terminal sends its signals to the whole foreground group, hence to the command as well; only
 * what was sent to this process alone is passed on. A hang-up goes to the session's leader alone. An alarm was set for
 * the command, by who started us: it outlives an exec, and no fork. */
static void forward(const struct init *init, const siginfo_t *info)
{
    bool from_terminal = info->si_code == SI_KERNEL && info->si_signo != SIGALRM;
    if (from_terminal && !(info->si_signo == SIGHUP && getsid(0) == getpid())) {
        return;
    }
    if (info->si_code == SI_QUEUE || info->si_signo >= SIGRTMIN) {
        sigqueue(init->command, info->si_signo, info->si_value);
    } else {
        kill(init->command, info->si_signo);
    }
}

/* What was sent to the caller while he blocked it: a fork does not take it along, an exec would. An end of a child is
 * for the loop below. */
static void hand_pending_on(const struct init *init, const sigset_t *all)
{
    const struct timespec at_once = {0};
    sigset_t pending = *all;
    siginfo_t info;
    sigdelset(&pending, SIGCHLD);
    for (unsigned i = 0; i < PENDING_MAX && sigtimedwait(&pending, &info, &at_once) > 0; i++) {
        forward(init, &info);
    }
}

/* One signal, or the time until `until_ns` (0: no bound). */
static void serve_one(struct init *init, const sigset_t *all, uint64_t until_ns)
{
    uint64_t now_ns = clock_mono_ns();
    uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    struct timespec left = {(time_t)(left_ns / NS_PER_S), (long)(left_ns % NS_PER_S)};
    siginfo_t info;
    int sig = until_ns == 0 ? sigwaitinfo(all, &info) : sigtimedwait(all, &info, &left);
    if (sig < 0 && errno != EAGAIN && errno != EINTR) { /* refused: ends are looked for, other signals stay pending */
        clock_sleep_ns(REFUSED_PAUSE_MS * NS_PER_MS);
        sig = SIGCHLD;
    }
    if (sig == SIGCHLD) {
        reap(init);
    } else if (sig > 0) {
        forward(init, &info);
    }
}

static void serve_command(struct init *init, const sigset_t *all)
{
    while (!init->command_ended) {
        serve_one(init, all, init->restart_at_ns);
        if (init->restart_at_ns != 0 && clock_mono_ns() >= init->restart_at_ns) {
            start_profiler(init, false, -1);
        }
    }
}

/* The command's status, after the profiler has had its time to write the last window. PID 1 takes everybody with it;
 * another leaves the profiler alone with what the command left behind. */
static int await_flush(struct init *init)
{
    bool is_first = getpid() == 1;
    uint64_t bound_ms = launch_in_container() ? LAUNCH_FLUSH_CONTAINER_MAX_MS : LAUNCH_FLUSH_MAX_MS;
    char goes_on;
    if (WIFSIGNALED(init->status) && WTERMSIG(init->status) == SIGINT && isatty(STDERR_FILENO) == 1) {
        dprintf(STDERR_FILENO, "\n"); /* behind the terminal's "^C", as a shell does */
    }
    if (init->profiler > 0) {
        kill(init->profiler, is_first ? SIGTERM : SIGNAL_COMMAND_ENDED);
        (void)read_within(init->profiler_fd, &goes_on, 1, bound_ms);
    }
    (void)waitpid(init->command, NULL, 0);
    if (WIFSIGNALED(init->status) && WTERMSIG(init->status) == SIGSYS) {
        dprintf(STDERR_FILENO, "pillion: the command was ended by SIGSYS: it made a system call that a seccomp profile "
                               "does not allow; that profile, or what the command sets itself, decides it\n");
    }
    return exit_code(init->status);
}

/* In the command's process: waits for the profiler, then becomes the command. `parent` may have been killed before
 * the kernel was asked to tell of that, and the wait ends with it as with a profiler that is ready. */
__attribute__((noreturn)) static void become_command(const struct launch *launch, const char *path, pid_t parent,
                                                     int link, const sigset_t *mask,
                                                     const struct sigaction *child_action)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    int32_t ready; /* or its death: the parent says it */
    (void)read_within(link, &ready, sizeof ready, LAUNCH_READY_MAX_MS);
    if (getppid() != parent) {
        raise(SIGKILL);
    }
    (void)prctl(PR_SET_PTRACER, (unsigned long)parent); /* and what descends from it */
    sigaction(SIGCHLD, child_action, NULL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    struct err err;
    int status = start_command(launch, path, link, &err);
    dprintf(STDERR_FILENO, "pillion: %s\n", err.text);
    _exit(status);
}

static int run_init(const struct launch *launch, const char *path, struct err *err)
{
    struct init init = {.launch = launch, .profiler_fd = -1, .backoff_s = BACKOFF_FIRST_S};
    sigset_t all, before;
    /* Every number, also 32 to 34, which the C library keeps for itself: a command built with another
     * library has its first real-time signals there. Hence not sigfillset and sigprocmask. */
    memset(&all, 0xff, sizeof all);
    sigemptyset(&before);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, _NSIG / 8);
    /* a caller's SIG_IGN would make the kernel reap our children before we can */
    struct sigaction plain = {.sa_handler = SIG_DFL}, child_action;
    sigaction(SIGCHLD, &plain, &child_action);
    int link[2] = {-1, -1};
    pid_t own = getpid();
    int adopts = 0; /* no fork has that */
    (void)prctl(PR_GET_CHILD_SUBREAPER, &adopts);
    init.command = make_pair(link) ? fork() : -1;
    if (init.command < 0) { /* a limit of processes or descriptors: the command comes first */
        say_no_process(errno);
        sigaction(SIGCHLD, &child_action, NULL);
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, _NSIG / 8);
        return start_command(launch, path, link[0], err);
    }
    if (init.command == 0) {
        close(link[1]);
        if (adopts != 0) {
            (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
        }
        become_command(launch, path, own, link[0], &before, &child_action);
    }
    close(link[0]);
    hand_pending_on(&init, &all); /* before there is a profiler that lets the command go */
    start_profiler(&init, true, link[1]);
    close(link[1]);
    discard(STDIN_FILENO); /* so that the command alone holds its pipes and locks */
    discard(STDOUT_FILENO);
    launch_close_from(STDERR_FILENO + 1, init.profiler_fd);
    if (launch->hide != NULL) {
        hide_environment(&init);
    }
    serve_command(&init, &all);
    return await_flush(&init);
}

int launch_run(const struct launch *launch, struct err *err)
{
    char path[4096];
    int status = launch_find(launch->argv[0], path, sizeof path, err);
    if (status != 0) {
        return status;
    }
    if (launch->alone || !may_have_profiler()) {
        return start_command(launch, path, -1, err);
    }
    return launch->init ? run_init(launch, path, err) : run_exec(launch, path, err);
}

/* ---- signals to the profiler ---- */

int signals_open(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL);
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGHUP);
    sigaddset(&wanted, SIGUSR1);
    sigaddset(&wanted, SIGUSR2);
    sigaddset(&wanted, SIGNAL_COMMAND_ENDED);
    sigaddset(&wanted, SIGNAL_REFUSED);
    sigprocmask(SIG_BLOCK, &wanted, NULL);
    return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

int signals_next(int fd, int *value)
{
    struct signalfd_siginfo info;
    if (fd < 0 || read(fd, &info, sizeof info) != sizeof info) {
        return 0;
    }
    if (value != NULL) {
        *value = info.ssi_int;
    }
    return (int)info.ssi_signo;
}

void signals_default(void)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGINT);
    sigaction(SIGTERM, &plain, NULL);
    sigaction(SIGINT, &plain, NULL);
    sigprocmask(SIG_UNBLOCK, &ending, NULL);
}

void signals_wait(int fd, uint64_t timeout_ns)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    struct timespec timeout = {(time_t)(timeout_ns / NS_PER_S), (long)(timeout_ns % NS_PER_S)};
    (void)ppoll(&one, fd >= 0, &timeout, NULL);
}

/*
 * launch: starting a command with a profiler beside it, so that the command cannot tell.
 *
 * Two shapes:
 *
 *   exec   this process becomes the command and keeps its PID. The profiler is a grandchild in a
 *          session of its own, so it is neither the command's child nor in its process group. As PID 1 and
 *          with PR_SET_CHILD_SUBREAPER, where orphans become the command's children, it is a child that only
 *          waits with __WALL or __WCLONE find.
 *   init   this process stays, does nothing but forward signals, reap children and return the
 *          command's status; command and profiler are its children. A profiler that dies is started
 *          again with back-off (1 s doubling to 60 s).
 *
 * In both the command waits, before its exec, until the profiler is ready, has died, or a bound
 * (LAUNCH_READY_MAX_MS) has passed: profiling never prevents a start. The command keeps its
 * environment, descriptors, signal mask and dispositions, limits, process group and directory. It
 * names the profiler with PR_SET_PTRACER, so that Yama's scope 1 lets the profiler read it. Below an
 * init that is killed it is killed, too (PR_SET_PDEATHSIG).
 *
 * The profiler process gets /dev/null as standard input and output, keeps standard error, closes
 * every other descriptor, and runs `run`; what it returns is its exit status. It calls launch_ready
 * once when sampling is armed. In init mode it is sent a signal when the command has ended: SIGTERM by
 * PID 1, with which all ends; else SIGNAL_COMMAND_ENDED, after which it may go on with what the command
 * left behind. Until it calls launch_leave, for that or because all is written, or ends, it has LAUNCH_FLUSH_MAX_MS
 * (LAUNCH_FLUSH_CONTAINER_MAX_MS in a container, within the grace of its stop).
 *
 * launch_run returns the exit status for this process: 127 and 126 for a command that cannot be
 * started (the sentence is in `err`), 128 + signal for one that was killed. In exec mode it returns
 * only in these error cases.
 */
#ifndef OS_LAUNCH_H
#define OS_LAUNCH_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum {
    LAUNCH_READY_MAX_MS = 1000,
    LAUNCH_FLUSH_MAX_MS = 2000,
    LAUNCH_FLUSH_CONTAINER_MAX_MS = 5000,
    LAUNCH_NOT_EXECUTABLE = 126,
    LAUNCH_NOT_FOUND = 127,
    SIGNAL_COMMAND_ENDED = 35, /* the first real-time one that the C library leaves us */
    SIGNAL_REFUSED = 36,       /* by confine.h: a system call, whose number is the signal's value */
};

struct launch_target {
    uint32_t pid;  /* the command's */
    bool fresh;    /* it has not been exec'd yet: arm sampling for its exec. False: it runs already */
    int init_fd;   /* to the parent that waits for this profiler's last window; -1: none does */
    bool late;     /* set by launch_ready: the command did not wait any longer, its exec is past */
    int link_fd;   /* to the waiting command; launch_ready closes it */
};

struct launch {
    char *const *argv; /* NULL-terminated, argv[0] is searched in PATH like execvp does */
    bool alone;        /* without a profiler: the command takes this process's place, nothing else happens */
    bool init;         /* the shape */
    bool shows;        /* the profiler keeps standard input and output, for a screen there; the command has neither that
                        * terminal's keys nor that output, and as standard error not that terminal */
    int (*run)(void *context, struct launch_target *target);
    void (*hide)(void *context); /* init: overwrites the secrets in this process's environment; null: there are none */
    void *context;
};

/* The shape that `auto` means here. Init: as PID 1, when standard error is a terminal, and where a container may end
 * with this process, as its first one or the first one's child. Exec: where somebody counts on the PID (LISTEN_PID,
 * NOTIFY_SOCKET, or systemd is the parent), and everywhere else. */
bool launch_prefers_init(void);

/* Does a supervisor know the command by this PID (sd_listen_fds, sd_notify)? Then init is not to be had. */
bool launch_pid_is_told(uint32_t pid);

/* In a PID namespace of its own, of which systemd is not the first process. */
bool launch_in_container(void);

int launch_run(const struct launch *launch, struct err *err);

/* Tells the waiting command that it may start, and waits until it has. False when it could not be
 * started: there is nothing to profile then. */
bool launch_ready(struct launch_target *target);

/* Lets the waiting parent return the command's status; the profiler goes on alone. */
void launch_leave(int init_fd);

/* Asks a process to end, ourselves as well (SIGTERM). */
void launch_end(uint32_t pid);

/* Closes every descriptor from `from` on but `keep` (below `from`: none is kept). */
void launch_close_from(int from, int keep);

/* Finds what argv0 would run: 0 and the path, or 126 / 127 and the sentence why. */
int launch_find(const char *argv0, char *path, size_t path_bytes, struct err *err);

/* The signals of a profiler process, as a descriptor to wait for. Blocks TERM, INT, HUP, USR1, USR2 and
 * SIGNAL_COMMAND_ENDED and SIGNAL_REFUSED, ignores PIPE and XFSZ. Returns -1 when the system has none. */
int signals_open(void);

/* Gives TERM and INT their default effect back: the next one ends this process at once. */
void signals_default(void);

/* Waits until a signal is pending or the time is up. */
void signals_wait(int fd, uint64_t timeout_ns);

/* The next pending signal's number, or 0; and the value that came with it, unless that is null. */
int signals_next(int fd, int *value);

#endif

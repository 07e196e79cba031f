/*
 * trial: system calls that a seccomp filter may kill for are made by a child first.
 *
 * A filter refuses a call with an errno, which does no harm, or kills who makes it: systemd's SystemCallFilter= does,
 * unless it is told otherwise. What kills the profiler costs the profile, and what kills the process that the command
 * is to have costs the command. Where no filter is in place nothing is tried: a child is some 0.2 ms.
 */
#ifndef OS_TRIAL_H
#define OS_TRIAL_H

#include <sys/types.h>

enum trial {
    TRIAL_PASSED,     /* or there is no filter */
    TRIAL_KILLED,
    TRIAL_NO_PROCESS, /* no child could be made; errno */
};

/* Runs `attempt` in a child, which leaves no core. What it opens is closed with it. */
enum trial trial_run(void (*attempt)(void));

/* A child whose end sends no signal: the caller's mask may block SIGCHLD, and a command would then be born with one
 * pending for a child it never had. It is waited for with __WALL. What runs in it may make system calls, fork and exit:
 * the C library knows nothing of it. */
pid_t trial_fork(void);

#endif

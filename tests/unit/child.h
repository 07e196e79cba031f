/*
 * child: a part of a test in a process of its own, where it may drop rights, change limits, mounts and
 * descriptors. Its failed checks count as the caller's.
 */
#ifndef CHILD_H
#define CHILD_H

#include "test.h"

#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_NOBODY = 65534, CHILD_SKIPPED = 77 };

/* Runs `part` in a child. False when it could not be run there: it returned false. */
static inline bool in_child(bool (*part)(void *context), void *context)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        test_failures = 0;
        bool ran = part(context);
        fflush(stdout);
        _exit(test_failures > 0 ? 1 : ran ? 0 : CHILD_SKIPPED);
    }
    int status = -1;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == CHILD_SKIPPED));
    return !WIFEXITED(status) || WEXITSTATUS(status) != CHILD_SKIPPED;
}

/* A process that does nothing until it is ended. */
static inline pid_t child_that_sleeps(void)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            pause();
        }
    }
    CHECK(pid > 0);
    return pid;
}

static inline void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    CHECK_INT(waitpid(pid, NULL, 0), pid);
}

/* Becomes an ordinary user when it is root. */
static inline void drop_root(void)
{
    if (geteuid() == 0) {
        CHECK(setgroups(0, NULL) == 0 && setgid(CHILD_NOBODY) == 0 && setuid(CHILD_NOBODY) == 0);
    }
}

/* Mounts a small file system at `dir`, seen by this process alone; false without the right to. */
static inline bool mount_small(const char *dir, const char *size_option)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("small", dir, "tmpfs", 0, size_option) == 0;
}

#endif

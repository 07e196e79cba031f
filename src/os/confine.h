/*
 * confine: what a thread of the profiler gives up, because it will not need it.
 *
 * Whoever takes a thread over, by a file or by a server's answer, has what that thread has. So each kind
 * of thread keeps the rights, the system calls and the files that its work takes:
 *
 *   confine_process    once, while there is one thread: no new rights ever (PR_SET_NO_NEW_PRIVS), no system
 *                      call that this program never makes, and, where it may trace, no capability that
 *                      reading targets does not need. Without CAP_SYS_PTRACE they stay: the kernel lets a
 *                      process be read only by who has all of its capabilities.
 *                      `stops`: it keeps those of os/stop.h.
 *   confine_reader     a thread that reads targets: no sockets but to our own children.
 *   confine_sender     a thread that speaks with servers: no capability but to read configured files, no
 *                      memory or events of others, no new process, no changed user; and where the kernel
 *                      has Landlock, no file of /proc, so no target's files or memory, and nothing
 *                      written but below `spool`.
 *   confine_client     a thread that speaks with targets as their own tools do: no sockets but Unix ones and, if it
 *                      `dials`, those of the internet's protocols, none to be connected to, no events. It may read
 *                      their memory: their files it opens, too, as their user.
 *   confine_computing  a child that only computes: memory, its socket, the end. For os/sandbox.
 *
 * Reader, sender and client are for threads of a process for which confine_process was true. Threads that they start
 * are confined as they are. A command is none of them: that is another process, with what it was started with.
 *
 * What is refused fails with EPERM and is told: SIGNAL_REFUSED with the call's number is queued to this
 * process, which keeps it blocked (launch.h, signals_open); SIGSYS must not be blocked. A child that computes
 * tells nobody.
 *
 * Landlock is not for a thread that reads targets: it also forbids to read a process that is not behind it.
 *
 * Where an older kernel or a container's filter refuses a part, the rest holds, and confine_process says which
 * is missing. What a filter kills for is not tried (trial.h).
 *
 * Sources: capabilities(7), seccomp(2), landlock(7), ptrace(2) "Ptrace access mode checking".
 */
#ifndef OS_CONFINE_H
#define OS_CONFINE_H

#include <stdbool.h>

/* False, and nothing has changed: a filter would kill for the attempt. `missing`: what of the confinement the kernel
 * refuses, null for nothing; it stays valid. */
bool confine_process(bool stops, const char **missing);

void confine_reader(void);

void confine_client(bool dials);

/* `spool`: a folder that is there, or null. */
void confine_sender(const char *spool);

/* False: not at all, by the reason in errno. */
bool confine_computing(void);

#endif

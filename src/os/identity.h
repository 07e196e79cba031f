/*
 * identity: making single calls as the user of the process that is profiled.
 *
 * Root without SYS_PTRACE (a stock container) may not access a process of another user: the kernel's check
 * demands that the caller's user and group are those of the process, all of them (real, effective, saved).
 * With SETUID and SETGID, which such a container has, a thread can make its own so for a moment:
 *
 *   opening below /proc/PID (maps, mem, exe, root, …) is checked against the FILE SYSTEM ids: identity_visit. What is
 *   open stays readable whoever reads it, /proc/PID/mem included, so nothing else is done meanwhile.
 *   perf_event_open and process_vm_readv are checked against the REAL ids: identity_take_real.
 *   what a server asks of who connects, and whether a signal may be sent, are the EFFECTIVE ids:
 *   identity_take_effective.
 *
 * The effective and saved ids stay ours, so no capability is lost for good. While a thread visits it has no
 * right to pass over file permissions, and while it has taken real ids the process's user may send us
 * signals: both are kept to single system calls.
 *
 * The system calls are made directly, because they concern the calling thread alone; the C library's would
 * change all threads. A change of file system ids makes this process undumpable, which is undone, unless the
 * program itself was started with more rights than its user has.
 *
 * Nothing helps against a process that is not dumpable, has capabilities that we lack, is in another user
 * namespace, or is guarded by Yama.
 *
 * Sources: ptrace(2) "Ptrace access mode checking", credentials(7), setfsuid(2), prctl(2) PR_SET_DUMPABLE.
 */
#ifndef OS_IDENTITY_H
#define OS_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

struct identity {
    uint32_t uid, gid;
};

/* The user and group that a process runs as. False: it is gone, it has several at once (a set-uid program), or
 * they are our own. */
bool identity_of(uint32_t pid, struct identity *out);

/* After a refusal with the errno `number`: takes the file system ids of the process. False, and all is as it was,
 * errno included, when it was no refusal or they cannot be taken. identity_return must follow true; it keeps
 * errno. */
bool identity_visit(uint32_t pid, int number);
void identity_return(void);

/* Likewise the real ids. */
bool identity_take_real(const struct identity *identity);
void identity_leave_real(void);

/* The effective ids, and those of the file system with them: as who connects to a socket and sends a signal. The real
 * ones stay ours. */
bool identity_take_effective(const struct identity *identity);
void identity_leave_effective(void);

#endif

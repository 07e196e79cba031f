/*
 * client: speaking with a process as its runtime's own tools do (struct process_port of base/iface.h).
 *
 * Everything is done as the process's user: while a call lasts the calling thread has its effective ids
 * (identity.h), where these are not ours and may be taken. Names are resolved below the process's root, links within
 * that root only (foreign.h), and what they lead to is looked at before it is used: a socket is connected to by the
 * very inode that was found.
 *
 * A signal is sent to the very process that was asked (pidfd, where the kernel has it) and only when it has a handler
 * for it: a signal without one would end the process.
 *
 * TCP goes to loopback addresses, of a process that has our network namespace: what listens there may be looked for
 * in its own descriptors before.
 *
 * Its memory is read by the ways of remote.h.
 *
 * Calls wait: `ask` and `dial` for as long as they are told, `pause` likewise. For a thread of its own.
 *
 * Call order: client_open; calls of `port`; client_close, also when client_open has failed.
 *
 * Sources: unix(7), pidfd_send_signal(2), proc_pid_status(5) SigCgt, proc_pid_fd(5), namespaces(7).
 */
#ifndef OS_CLIENT_H
#define OS_CLIENT_H

#include "base/iface.h"
#include "os/identity.h"
#include "os/remote.h"

struct client {
    struct process_port port;
    int root, cwd;      /* O_PATH; -1: not there */
    int program;        /* -1: not opened */
    struct remote remote;
    struct remote_caller caller;
    bool as_user;
    struct identity user;
    struct net *net;    /* null: nothing was dialed */
};

/* `c` must not be moved: it is the port's context. */
bool client_open(struct client *c, uint32_t pid, struct err *err);
void client_close(struct client *c);

#endif

/*
 * outside: what is seen of a process before it is asked anything, for rows that speak with it (struct process_port).
 *
 * Sources: proc_pid_status(5) State; proc_pid_net(5): net/tcp and net/tcp6, in whose lines addresses are words of the
 * machine in hexadecimal digits, and state 0A is a socket that listens.
 */
#ifndef RUNTIME_COMMON_OUTSIDE_H
#define RUNTIME_COMMON_OUTSIDE_H

#include "base/iface.h"

/* A signal would wait until it runs again. */
bool outside_is_stopped(const struct process_port *port);

struct outside_socket {
    uint64_t inode;
    uint16_t port;
    bool is_v6;
};

/* The sockets that listen for TCP in its network namespace, whoever has them, on loopback or any address. */
size_t outside_listening(const struct process_port *port, struct outside_socket *out, size_t most);

#endif

/*
 * net_private: what the files of os/net share.
 *
 *     net.c        streams, connecting
 *     net_names.c  names, asked for on a thread of their own, and kept
 *     net_own.c    what this machine is called
 */
#ifndef OS_NET_PRIVATE_H
#define OS_NET_PRIVATE_H

#include "os/net.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { NET_HOST_MAX = 256, NET_ADDRESSES_MAX = 16 };

union net_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
};

struct net_addresses {
    char host[NET_HOST_MAX]; /* "": none */
    uint64_t until_ns;       /* while they are believed */
    size_t count;
    union net_address at[NET_ADDRESSES_MAX];
};

/* net.c: until `fd` (or, with -1, nothing) is ready, the wake descriptor is set, or time is up. */
bool net_wait(int fd, short events, int wake, uint64_t deadline_ns, struct err *err);

/* net.c: the descriptor, moved where it is none of 0, 1 and 2, which a caller may have closed: what is printed would go
 * to the server. */
int net_clear_of_standard(int fd);

/* net.c: of an address of IPv4 or IPv6. */
socklen_t net_length_of(const union net_address *a);
void net_set_port(union net_address *a, uint16_t port);
void net_show(const union net_address *a, char out[static INET6_ADDRSTRLEN]);

/* net_names.c: names that are known or being asked for. */
struct net_names;
struct net_names *net_names_new(void);
void net_names_free(struct net_names *names);

/* The addresses of a name, which stay with `names`; their order may be changed, and an empty host makes them
 * forgotten. Null: err. */
struct net_addresses *net_names_find(struct net_names *names, const char *host, int wake,
                                     uint64_t deadline_ns, struct err *err);

#endif

/*
 * net: connections.
 *
 * net_dialer connects to names, addresses and Unix sockets with deadlines; its streams do not block longer than
 * asked, raise no SIGPIPE, and send without delay. Names are resolved by the C library (/etc/hosts, resolv.conf;
 * TCP for truncated answers): never on the sampler's thread. Addresses of a name are kept for 60 s. Addresses are
 * tried in their order, IPv4 and IPv6 alternating, 3 s each.
 *
 * The C library's resolver cannot be interrupted, so it runs on a thread of its own, for which a dial waits
 * 5 s at most; a later result serves the next dial. That thread takes no signals and outlives net_free for
 * as long as it still waits; at most NET_LOOKUPS_MAX run at once. Addresses in figures need none.
 *
 * A stream tries before it waits: what is there is read after the deadline, too. A dial that could reach
 * none of its addresses forgets them; the one that was reached is the first of the next dial.
 *
 * A wake descriptor (os/thread.h's waker) ends every wait with ERR_NETWORK and ECANCELED.
 * One dialer and its streams belong to one thread at a time.
 *
 * Source: getaddrinfo(3), connect(2), poll(2), unix(7), netdevice(7).
 */
#ifndef OS_NET_H
#define OS_NET_H

#include "base/iface.h"

enum { NET_LOOKUPS_MAX = 4 };

struct net;

/* wake: a descriptor that ends all waits once it is readable, or -1. Also fails when the kernel
 * gives no random bytes: every connection needs them. */
struct net *net_new(int wake, struct err *err);
void net_free(struct net *net);
struct dialer net_dialer(struct net *net);

/* Did the last dial fail because its name has no address, or no name server responded? */
bool net_is_unresolved(const struct net *net);

/* The address and the MAC ("02:42:ac:11:00:02") of the interface that the default route uses; without
 * such a route, of the first one that is up and not a loopback; "" where there is none. Nothing is sent
 * to find out. */
void net_own_address(char ip[static 64], char mac[static 24]);

/* Random bytes from the kernel. */
void net_random(void *context, void *to, size_t len);

#endif

/* Host names to addresses. The C library's resolver cannot be interrupted, so each look-up runs on a
 * thread of its own and the dialer waits for it up to a deadline. Results are kept for a minute,
 * shared by all that dial the same name. */
#include "base/time.h"
#include "os/clock.h"
#include "os/net_private.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define RESOLVE_NS (5 * NS_PER_S)
#define CACHED_NS (60 * NS_PER_S)

enum {
    CACHE_MAX = 8, /* names: back ends, proxies, where redirects lead */
    RESOLVER_STACK = 512 * 1024,
};

/* A name that is being asked for. Its thread and whoever waits for it both hold it. */
struct lookup {
    atomic_int holders;
    int done;   /* an eventfd */
    int result; /* of getaddrinfo; valid, as the list is, once `done` is set */
    struct net_addresses list;
};

struct net_names {
    struct net_addresses cache[CACHE_MAX];
    struct lookup *lookups[NET_LOOKUPS_MAX];
};

static bool take_address(const struct addrinfo *info, union net_address *out)
{
    if ((info->ai_family != AF_INET && info->ai_family != AF_INET6) ||
        info->ai_addrlen > sizeof *out) {
        return false;
    }
    memset(out, 0, sizeof *out);
    memcpy(out, info->ai_addr, info->ai_addrlen);
    return true;
}

static const struct addrinfo *next_of(const struct addrinfo *info, int family, bool same)
{
    while (info != NULL && (info->ai_family == family) != same) {
        info = info->ai_next;
    }
    return info;
}

/* In the resolver's order, but IPv4 and IPv6 alternate: of a family without a route one address is tried
 * before the other family has its chance. */
static void take_list(const struct addrinfo *info, struct net_addresses *out)
{
    out->count = 0;
    if (info == NULL) {
        return;
    }
    int first = info->ai_family;
    const struct addrinfo *of[2] = {info, next_of(info, first, false)};
    for (unsigned turn = 0; out->count < NET_ADDRESSES_MAX && (of[0] != NULL || of[1] != NULL);
         turn ^= 1) {
        const struct addrinfo *now = of[turn];
        if (now != NULL) {
            out->count += take_address(now, &out->at[out->count]);
            of[turn] = next_of(now->ai_next, first, turn == 0);
        }
    }
}

static int resolve(const char *host, int flags, struct net_addresses *out)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};
    struct addrinfo *found = NULL;
    int result = getaddrinfo(host, NULL, &hints, &found);
    if (result == 0) {
        take_list(found, out);
        freeaddrinfo(found);
    }
    return result == 0 && out->count == 0 ? EAI_NONAME : result;
}

static void let_go(struct lookup *l)
{
    if (atomic_fetch_sub(&l->holders, 1) == 1) {
        close(l->done);
        free(l);
    }
}

static void *run_lookup(void *context)
{
    struct lookup *l = context;
    l->result = resolve(l->list.host, 0, &l->list);
    uint64_t one = 1;
    while (write(l->done, &one, sizeof one) < 0 && errno == EINTR) {
    }
    let_go(l);
    return NULL;
}

static int start_thread(struct lookup *l)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    int number = pthread_attr_init(&attr);
    if (number != 0) {
        return number;
    }
    (void)pthread_attr_setstacksize(&attr, RESOLVER_STACK);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    sigdelset(&all, SIGSYS); /* confine.h */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    number = pthread_create(&thread, &attr, run_lookup, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return number;
}

static struct lookup *start_lookup(const char *host, struct err *err)
{
    struct lookup *l = calloc(1, sizeof *l);
    if (l == NULL) {
        (void)err_set(err, ERR_MEMORY, ENOMEM, "no memory to resolve a name");
        return NULL;
    }
    snprintf(l->list.host, sizeof l->list.host, "%s", host);
    l->done = net_clear_of_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    int number = l->done < 0 ? errno : 0;
    atomic_init(&l->holders, 2);
    if (number == 0) {
        number = start_thread(l);
    }
    if (number != 0) {
        (void)err_set(err, ERR_NETWORK, number, "cannot resolve a name: %s", strerror(number));
        if (l->done >= 0) {
            close(l->done);
        }
        free(l);
        return NULL;
    }
    return l;
}

static bool is_done(const struct lookup *l)
{
    struct pollfd set = {l->done, POLLIN, 0};
    return poll(&set, 1, 0) > 0;
}

static struct net_addresses *cached_as(struct net_names *names, const char *host)
{
    for (size_t i = 0; i < CACHE_MAX; i++) {
        if (strcmp(names->cache[i].host, host) == 0) {
            return &names->cache[i];
        }
    }
    return NULL;
}

/* A slot for a name that is not in the cache: an empty one, or that of the oldest. */
static struct net_addresses *free_slot(struct net_names *names)
{
    struct net_addresses *oldest = &names->cache[0];
    for (size_t i = 0; i < CACHE_MAX; i++) {
        struct net_addresses *slot = &names->cache[i];
        if (slot->host[0] == '\0') {
            return slot;
        }
        oldest = slot->until_ns < oldest->until_ns ? slot : oldest;
    }
    return oldest;
}

static struct net_addresses *put_in_cache(struct net_names *names, const struct net_addresses *list)
{
    struct net_addresses *slot = cached_as(names, list->host);
    slot = slot != NULL ? slot : free_slot(names);
    *slot = *list;
    slot->until_ns = clock_mono_ns() + CACHED_NS;
    return slot;
}

/* Takes over what came too late for the dials that asked for it. */
static void collect(struct net_names *names)
{
    for (size_t i = 0; i < NET_LOOKUPS_MAX; i++) {
        struct lookup *l = names->lookups[i];
        if (l == NULL || !is_done(l)) {
            continue;
        }
        if (l->result == 0) {
            (void)put_in_cache(names, &l->list);
        }
        names->lookups[i] = NULL;
        let_go(l);
    }
}

/* The slot of the lookup for this name, which is under way or begins now. */
static struct lookup **lookup_for(struct net_names *names, const char *host, struct err *err)
{
    struct lookup **empty = NULL;
    for (size_t i = 0; i < NET_LOOKUPS_MAX; i++) {
        struct lookup **slot = &names->lookups[i];
        if (*slot != NULL && strcmp((*slot)->list.host, host) == 0) {
            return slot;
        }
        empty = *slot == NULL ? slot : empty;
    }
    if (empty == NULL) {
        (void)err_set(err, ERR_NETWORK, EAGAIN,
                      "cannot resolve the name %s: %d other look-ups are still waiting; check the name "
                      "servers in resolv.conf",
                      host, NET_LOOKUPS_MAX);
        return NULL;
    }
    *empty = start_lookup(host, err);
    return *empty == NULL ? NULL : empty;
}

static bool not_resolved(const char *host, int result, struct err *err)
{
    if (result == EAI_AGAIN) {
        return err_set(err, ERR_NETWORK, 0,
                       "cannot resolve the name %s now: no name server in resolv.conf responded",
                       host);
    }
    return err_set(err, ERR_NETWORK, 0, "cannot resolve the name %s: %s; check the spelling and resolv.conf",
                   host, gai_strerror(result));
}

static struct net_addresses *resolve_anew(struct net_names *names, const char *host, int wake,
                                          uint64_t deadline_ns, struct err *err)
{
    struct err why = {0};
    struct lookup **slot = lookup_for(names, host, err);
    if (slot == NULL) {
        return NULL;
    }
    uint64_t latest_ns = clock_mono_ns() + RESOLVE_NS;
    uint64_t until_ns = deadline_ns < latest_ns ? deadline_ns : latest_ns;
    if (!net_wait((*slot)->done, POLLIN, wake, until_ns, &why)) {
        bool late = why.number == ETIMEDOUT;
        (void)err_set(err, ERR_NETWORK, why.number, "cannot resolve the name %s yet: %s", host,
                      late ? "no name server in resolv.conf responded in time" : why.text);
        return NULL; /* it goes on, and the next dial may find it done */
    }
    struct lookup *l = *slot;
    struct net_addresses *found = NULL;
    *slot = NULL;
    if (l->result == 0) {
        found = put_in_cache(names, &l->list);
    } else {
        (void)not_resolved(host, l->result, err);
    }
    let_go(l);
    return found;
}

struct net_addresses *net_names_find(struct net_names *names, const char *host, int wake,
                                     uint64_t deadline_ns, struct err *err)
{
    struct net_addresses figures = {0};
    collect(names);
    struct net_addresses *found = cached_as(names, host);
    if (found != NULL && clock_mono_ns() < found->until_ns) {
        return found;
    }
    if (resolve(host, AI_NUMERICHOST, &figures) == 0) {
        snprintf(figures.host, sizeof figures.host, "%s", host);
        return put_in_cache(names, &figures);
    }
    return resolve_anew(names, host, wake, deadline_ns, err);
}

struct net_names *net_names_new(void)
{
    return calloc(1, sizeof(struct net_names));
}

void net_names_free(struct net_names *names)
{
    for (size_t i = 0; names != NULL && i < NET_LOOKUPS_MAX; i++) {
        if (names->lookups[i] != NULL) {
            let_go(names->lookups[i]);
        }
    }
    free(names);
}

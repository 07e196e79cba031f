/* What this machine is called on the network: its own address, found by asking the kernel which
 * source address it would use, and the hardware address of that interface. No packet is sent. Uploads
 * use both to tell machines apart. */
#include "os/net_private.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The address that a packet to `to` would come from. Connecting a datagram socket sends nothing. */
static bool source_towards(const char *to, int family, union net_address *out)
{
    union net_address there = {0};
    socklen_t len = sizeof *out;
    there.any.sa_family = (sa_family_t)family;
    net_set_port(&there, 9);
    if (inet_pton(family, to,
                  family == AF_INET ? (void *)&there.v4.sin_addr : &there.v6.sin6_addr) != 1) {
        return false;
    }
    int fd = net_clear_of_standard(socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd < 0) {
        return false;
    }
    bool ok = connect(fd, &there.any, net_length_of(&there)) == 0 &&
              getsockname(fd, &out->any, &len) == 0;
    close(fd);
    return ok;
}

static bool is_same_address(const struct sockaddr *a, const union net_address *b)
{
    if (a == NULL || a->sa_family != b->any.sa_family) {
        return false;
    }
    union net_address own;
    memcpy(&own, a, a->sa_family == AF_INET ? sizeof own.v4 : sizeof own.v6);
    return a->sa_family == AF_INET
               ? own.v4.sin_addr.s_addr == b->v4.sin_addr.s_addr
               : memcmp(&own.v6.sin6_addr, &b->v6.sin6_addr, sizeof own.v6.sin6_addr) == 0;
}

/* The name of the interface that has the address. */
static bool interface_of(const union net_address *address, char out[static IF_NAMESIZE])
{
    struct ifaddrs *list = NULL;
    bool found = false;
    if (getifaddrs(&list) != 0) {
        return false;
    }
    for (struct ifaddrs *i = list; i != NULL && !found; i = i->ifa_next) {
        if (is_same_address(i->ifa_addr, address)) {
            snprintf(out, IF_NAMESIZE, "%s", i->ifa_name);
            found = true;
        }
    }
    freeifaddrs(list);
    return found;
}

static bool first_of_all(union net_address *out)
{
    struct ifaddrs *list = NULL;
    bool found = false;
    if (getifaddrs(&list) != 0) {
        return false;
    }
    for (struct ifaddrs *i = list; i != NULL && !found; i = i->ifa_next) {
        bool useful = (i->ifa_flags & IFF_UP) != 0 && (i->ifa_flags & IFF_LOOPBACK) == 0;
        if (useful && i->ifa_addr != NULL && i->ifa_addr->sa_family == AF_INET) {
            memcpy(&out->v4, i->ifa_addr, sizeof out->v4);
            found = true;
        }
    }
    freeifaddrs(list);
    return found;
}

static void mac_of(const char *interface, char out[static 24])
{
    static const unsigned char none[6];
    struct ifreq request = {0};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", interface);
    int fd = net_clear_of_standard(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd < 0) {
        return;
    }
    bool ok = ioctl(fd, SIOCGIFHWADDR, &request) == 0;
    close(fd);
    const unsigned char *mac = (const unsigned char *)request.ifr_hwaddr.sa_data;
    if (ok && memcmp(mac, none, sizeof none) != 0) {
        snprintf(out, 24, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
                 mac[5]);
    }
}

void net_own_address(char ip[static 64], char mac[static 24])
{
    union net_address own = {0};
    char interface[IF_NAMESIZE] = "";
    ip[0] = mac[0] = '\0';
    /* Addresses of the documentation (RFC 5737, 3849): no route is more special than the default one. */
    if (!source_towards("192.0.2.1", AF_INET, &own) &&
        !source_towards("2001:db8::1", AF_INET6, &own) && !first_of_all(&own)) {
        return;
    }
    net_show(&own, ip);
    if (interface_of(&own, interface)) {
        mac_of(interface, mac);
    }
}

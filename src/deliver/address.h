/*
 * address: IP addresses as they are written, and what kind they are.
 *
 * An IPv4 address in IPv6 clothes (::ffff:10.0.0.1) is that IPv4 address. The zone of a link-local address
 * (fe80::1%eth0) is read over.
 *
 * Source: RFC 4291, RFC 6890.
 */
#ifndef DELIVER_ADDRESS_H
#define DELIVER_ADDRESS_H

#include "base/str.h"

struct address {
    unsigned char bytes[16];
    size_t len; /* 4 or 16 */
};

/* False when the text is no address: a name, perhaps. IPv6 without brackets. */
bool address_parse(struct address *out, struct str text);

/* From its 4 or 16 bytes, false for other lengths. */
bool address_take(struct address *out, const unsigned char *bytes, size_t len);

bool address_eq(const struct address *a, const struct address *b);

/* Are the first `bits` the same? False for addresses of different families. */
bool address_within(const struct address *a, const struct address *network, unsigned bits);

bool address_is_loopback(const struct address *a);
bool address_is_link_local(const struct address *a);
bool address_is_metadata(const struct address *a); /* where clouds have their services: link-local, or fd00:ec2::254 */

/* A loopback address, localhost, or a name below it (RFC 6761). */
bool host_is_loopback(struct str host);

#endif

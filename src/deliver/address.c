/* IP addresses: read as they are written or taken as bytes, compared, and told apart by what they are for: loopback,
 * link-local, services of clouds. An IPv4 address in IPv6 clothes is that IPv4 address. Names are known only where
 * they need no resolver: localhost. */
#include "deliver/address.h"
#include "base/ascii.h"

#include <arpa/inet.h>

enum { V4_LEN = 4, V6_LEN = 16, MAPPED_AT = 12 };

static void unwrap_mapped(struct address *a)
{
    static const unsigned char mapped[MAPPED_AT] = {[10] = 0xff, [11] = 0xff};
    if (memcmp(a->bytes, mapped, MAPPED_AT) == 0) {
        memmove(a->bytes, a->bytes + MAPPED_AT, V4_LEN);
        memset(a->bytes + V4_LEN, 0, V6_LEN - V4_LEN);
        a->len = V4_LEN;
    }
}

bool address_parse(struct address *out, struct str text)
{
    char plain[INET6_ADDRSTRLEN];
    bool is_v6 = str_find(text, ':') < text.len;
    if (is_v6) {
        text = str_sub(text, 0, str_find(text, '%'));
    }
    if (text.len == 0 || text.len >= sizeof plain || str_find(text, '\0') < text.len) {
        return false;
    }
    memcpy(plain, text.ptr, text.len);
    plain[text.len] = '\0';
    struct address a = {.len = is_v6 ? V6_LEN : V4_LEN};
    if (inet_pton(is_v6 ? AF_INET6 : AF_INET, plain, a.bytes) != 1) {
        return false;
    }
    if (is_v6) {
        unwrap_mapped(&a);
    }
    *out = a;
    return true;
}

bool address_take(struct address *out, const unsigned char *bytes, size_t len)
{
    if (len != V4_LEN && len != V6_LEN) {
        return false;
    }
    *out = (struct address){.len = len};
    memcpy(out->bytes, bytes, len);
    if (len == V6_LEN) {
        unwrap_mapped(out);
    }
    return true;
}

bool address_eq(const struct address *a, const struct address *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

bool address_within(const struct address *a, const struct address *network, unsigned bits)
{
    if (a->len != network->len || bits > a->len * 8) {
        return false;
    }
    size_t whole = bits / 8;
    if (memcmp(a->bytes, network->bytes, whole) != 0) {
        return false;
    }
    unsigned mask = bits % 8 == 0 ? 0 : 0xffu << (8 - bits % 8) & 0xffu;
    return mask == 0 || ((a->bytes[whole] ^ network->bytes[whole]) & mask) == 0;
}

bool address_is_loopback(const struct address *a)
{
    static const struct address one = {.bytes = {[V6_LEN - 1] = 1}, .len = V6_LEN};
    return a->len == V4_LEN ? a->bytes[0] == 127 : address_eq(a, &one);
}

bool address_is_link_local(const struct address *a)
{
    if (a->len == V4_LEN) {
        return a->bytes[0] == 169 && a->bytes[1] == 254;
    }
    return a->bytes[0] == 0xfe && (a->bytes[1] & 0xc0) == 0x80;
}

bool address_is_metadata(const struct address *a)
{
    static const struct address aws_v6 = {{0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54}, V6_LEN};
    return address_is_link_local(a) || address_eq(a, &aws_v6);
}

bool host_is_loopback(struct str host)
{
    struct address a;
    if (address_parse(&a, host)) {
        return address_is_loopback(&a);
    }
    if (str_ends(host, STR("."))) {
        host.len--;
    }
    return ascii_same(host, STR("localhost")) || ascii_ends(host, STR(".localhost"));
}

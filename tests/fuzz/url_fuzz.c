/* Any text as an address, a proxy and a list of exemptions: what is accepted stays within the text and can be put into
 * a request. */
#include "deliver/proxy.h"
#include "deliver/url.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void check_part(struct str part, const uint8_t *data, size_t size)
{
    uintptr_t at = (uintptr_t)part.ptr, begin = (uintptr_t)data;
    check(part.len == 0 || (at >= begin && at + part.len <= begin + size));
    for (size_t i = 0; i < part.len; i++) {
        check(part.ptr[i] != '\r' && part.ptr[i] != '\n' && part.ptr[i] != '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct err err = {0};
    struct url url;
    if (!url_parse(&url, text, 4040, &err)) {
        check(err.kind == ERR_USAGE && err.text[0] != '\0');
    } else {
        check(url.host.len > 0 && url.host.len <= 254 && (url.port != 0) == !url.is_unix);
        check_part(url.path, data, size);
        if (!url.is_unix) {
            check_part(url.host, data, size);
        }
    }
    struct str list = text;
    struct str first = str_cut(&list, '\n');
    struct proxies proxies = {.https = first, .http = first, .exempt = list};
    struct proxy proxy;
    if (proxy_for(&proxies, true, STR("example.com"), 443, &proxy, &err)) {
        check(proxy.host.len > 0 && proxy.port != 0);
        check_part(proxy.host, data, size);
    }
    (void)proxy_for(&proxies, false, STR("2001:db8::1"), 80, &proxy, &err);
    return 0;
}

/* Any bytes as what a server says, in reads of any size (the first byte says which), to a client
 * whose randomness is fixed: recorded answers of a real server carry it through the whole
 * handshake. */
#include "deliver/tls.h"

#include <psa/crypto.h>
#include <stdlib.h>

/* The second engine's keys, the same each time. */
psa_status_t mbedtls_psa_external_get_random(mbedtls_psa_external_random_context_t *context, uint8_t *to, size_t room,
                                             size_t *len)
{
    (void)context;
    memset(to, 7, room);
    *len = room;
    return PSA_SUCCESS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct server {
    const uint8_t *says;
    size_t len, at_once;
};

static ptrdiff_t server_read(void *context, void *to, size_t len, uint64_t deadline_ns, struct err *err)
{
    struct server *s = context;
    (void)deadline_ns;
    (void)err;
    len = len < s->len ? len : s->len;
    len = len < s->at_once ? len : s->at_once;
    if (len > 0) {
        memcpy(to, s->says, len);
    }
    s->says += len;
    s->len -= len;
    return (ptrdiff_t)len;
}

static ptrdiff_t server_write(void *context, const void *from, size_t len, uint64_t deadline_ns,
                              struct err *err)
{
    (void)context;
    (void)from;
    (void)deadline_ns;
    (void)err;
    return (ptrdiff_t)len;
}

static bool server_readable(void *context)
{
    const struct server *s = context;
    return s->len > 0;
}

static void server_close(void *context)
{
    (void)context;
}

static void hear(const uint8_t *data, size_t size, bool second)
{
    struct server s = {data + 1, size - 1, 1 + 64 * (size_t)data[0]};
    struct stream under = {server_read, server_write, server_readable, server_close, &s}, out;
    struct tls_settings settings = {.wall_ns = 1796083200000000000};
    struct tls_session session = {.second = second};
    struct err err = {0};
    memset(settings.seed, 7, sizeof settings.seed);
    if (!tls_open(&under, STR("a.example.com"), &settings, &session, 1, &out, &err)) {
        if (err.kind == ERR_NONE) {
            abort();
        }
        return;
    }
    char bytes[512];
    (void)out.write(out.context, "GET / HTTP/1.0\r\n\r\n", 18, 1, &err);
    (void)out.readable(out.context);
    while (out.read(out.context, bytes, sizeof bytes, 1, &err) > 0) {
    }
    out.close(out.context);
    tls_session_forget(&session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0) {
        hear(data, size, false);
        hear(data, size, true);
    }
    return 0;
}

/* OpenTelemetry's profiles on their way: any bytes as a profile are sent in each release or
 * refused, and made smaller without losing anything that is counted; what was cut can be cut
 * again. */
#include "deliver/backend_private.h"
#include "deliver/otlp_cut.h"
#include "deliver/otlp_pass.h"

#include <stdlib.h>

enum { OUT_MAX_BYTES = 16 * 1024 * 1024 };

__attribute__((weak)) bool http_add(struct http_request *request, struct str name, struct str value,
                                    bool secret)
{
    (void)request, (void)name, (void)value, (void)secret;
    return true;
}

/* The values of all samples, however often their fields are there. */
static uint64_t sum_in(struct str message, unsigned depth)
{
    static const uint8_t path[] = {1, 2, 2, 2, 4}; /* resource, scope, profile, sample, values */
    struct cursor c = cursor_of(message.ptr, message.len);
    struct protobuf_field f;
    uint64_t sum = 0, value;
    bool damaged = false;
    while (protobuf_next(&c, &f)) {
        if (f.number != path[depth]) {
            continue;
        }
        for (size_t at = 0; depth == 4 && protobuf_packed_next(&f, &at, &value, &damaged);) {
            sum += value;
        }
        sum += depth < 4 ? sum_in(f.bytes, depth + 1) : 0;
    }
    return sum;
}

static void cut(struct str request)
{
    struct buf once, twice;
    buf_init(&once, OUT_MAX_BYTES);
    buf_init(&twice, OUT_MAX_BYTES);
    if (otlp_cut(request, request.len / 2 + 64, &once, NULL)) {
        struct str smaller = buf_slice(&once);
        if (sum_in(smaller, 0) != sum_in(request, 0) || smaller.len > request.len / 2 + 64 ||
            !otlp_cut(smaller, smaller.len + 64, &twice, NULL)) {
            abort();
        }
    }
    buf_release(&once);
    buf_release(&twice);
}

static void ask(struct str profile)
{
    static const struct origin origin = {.service = STR("s"), .hostname = STR("h")};
    for (uint8_t minor = 8; minor <= 10; minor++) {
        struct backend_context context = {.origin = &origin, .otlp_minor = minor};
        struct delivery delivery = {.format = STR("otlp"), .profile = profile};
        struct http_request request;
        struct buf text;
        buf_init(&text, OUT_MAX_BYTES);
        (void)otlp_request(&context, &delivery, &request, &text, NULL);
        buf_release(&text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str request = {(const char *)data, size};
    cut(request);
    ask(request);
    return 0;
}

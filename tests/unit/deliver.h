/* What the tests of back ends share: where they come from, a delivery, an answer. */
#ifndef TEST_DELIVER_H
#define TEST_DELIVER_H

#include "deliver/backend.h"
#include "test.h"

#define START_NS (UINT64_C(1763634664) * 1000000000) /* 2025-11-20T10:31:04 */
#define END_NS (START_NS + UINT64_C(60) * 1000000000)

/* Weak: the program's own, where something else of its file is linked as well. */
__attribute__((weak)) bool http_add(struct http_request *request, struct str name, struct str value,
                                    bool secret)
{
    if (request->header_count == HTTP_HEADERS_MAX) {
        return false;
    }
    request->headers[request->header_count++] = (struct http_header){name, value, secret};
    return true;
}

static inline struct origin origin_of_test(void)
{
    return (struct origin){
        .service = STR("shop"), .hostname = STR("web-1"), .private_ip = STR("10.1.2.3"),
        .mac_address = STR("0A:58:0A:01:02:03"), .cloud_provider = STR("Unknown"),
        .processors = 4, .memory_bytes = UINT64_C(8) << 30, .os_name = STR("Debian GNU/Linux"),
        .os_release = STR("12"), .kernel_release = STR("6.1.0"), .kernel_version = STR("#1 SMP"),
        .hardware_type = STR("x86_64"), .libc_type = STR("glibc"), .libc_version = STR("2.36"),
        .pid = 42, .spawn_wall_ns = START_NS, .boot_ns = UINT64_C(5) * 1000000000,
        .run_mode = STR("container"), .deployment_type = STR("containers"),
    };
}

static inline struct delivery delivery_of(const char *format, struct str profile)
{
    return (struct delivery){.start_wall_ns = START_NS, .end_wall_ns = END_NS, .frequency_hz = 99,
                             .format = str_of(format), .profile = profile, .sequence = 7,
                             .cpu_percent = -1, .memory_percent = -1};
}

/* The header's value; "(none)" without it. */
static inline struct str header_of(const struct http_request *request, const char *name)
{
    for (size_t i = 0; i < request->header_count; i++) {
        if (str_eq(request->headers[i].name, str_of(name))) {
            return request->headers[i].value;
        }
    }
    return STR("(none)");
}

/* Why the row leaves the tag out, or the platform's fact of this name; "" when it does not. */
static inline const char *why_left_out(const struct backend *row,
                                       const struct backend_context *context, const char *name)
{
    static struct omissions all; /* the sentence lives as long as the program */
    const char *why = "";
    all.count = 0;
    row->omits(context, &all);
    for (size_t i = 0; i < all.count; i++) {
        why = str_eq(all.list[i].fact.name, str_of(name)) ? all.list[i].why : why;
    }
    return why;
}

static inline enum verdict judged(const struct backend *row, struct backend_context *context,
                                  unsigned status, const char *body, struct err *err)
{
    struct http_response answer = {.status = status};
    buf_init(&answer.body, HTTP_BODY_MAX);
    buf_text(&answer.body, body);
    *err = (struct err){0};
    enum verdict verdict = row->classify(context, &answer, err);
    buf_release(&answer.body);
    return verdict;
}

#endif

/* What is sent and what is answered: a profile of any bytes is made smaller or refused, a header
 * line of any bytes becomes one that is JSON, so does an event of facts of any bytes, and an
 * address of any bytes is one or none; an answer of any bytes is judged. The first byte chooses. */
#include "base/json.h"
#include "deliver/backend_private.h"
#include "capture/upload/shipment.h"

#include <stdlib.h>

enum { OUT_MAX_BYTES = 16 * 1024 * 1024 };

__attribute__((weak)) bool http_add(struct http_request *request, struct str name, struct str value,
                                    bool secret)
{
    (void)request, (void)name, (void)value, (void)secret;
    return true;
}

static void make_smaller(const struct backend *row, const char *format, struct str profile)
{
    static const struct origin origin = {.service = STR("s"), .hostname = STR("h")};
    struct backend_context context = {.origin = &origin};
    struct delivery delivery = {.format = str_of(format), .profile = profile, .is_raw = true};
    struct shipment shipment;
    struct err err;
    shipment_init(&shipment, row, &delivery, OUT_MAX_BYTES);
    if (shipment_build(&shipment, &context, &err)) {
        size_t before = shipment.delivery.profile.len;
        if (shipment_smaller(&shipment, &context, &err) && shipment.delivery.profile.len >= before) {
            abort();
        }
    }
    shipment_release(&shipment);
}

static void write_header(const struct backend_context *context, struct str line, struct buf *out)
{
    const struct delivery delivery = {.format = STR("col"), .cpu_percent = -1};
    studio_header(out, line, context, &delivery);
    if (!out->failed && !json_valid(str_sub(buf_slice(out), 2, out->len))) {
        abort();
    }
}

/* What is left out is of what was known, and has a reason. */
static void leave_out(const struct backend_context *context)
{
    const struct origin *origin = context->origin;
    for (size_t i = 0; backends[i] != NULL; i++) {
        struct omissions all = {.count = 0};
        if (backends[i]->omits != NULL) {
            backends[i]->omits(context, &all);
        }
        for (size_t k = 0; k < all.count; k++) {
            if (all.list[k].why[0] == '\0') {
                abort();
            }
        }
        if (all.count > origin->tag_count + origin->resource_count + 1) {
            abort();
        }
    }
}

/* Fields of the input, one per line, are all that is known of a machine. */
static void write_event(struct str rest, struct buf *out)
{
    struct origin origin = {.processors = 2};
    struct backend_context context = {.origin = &origin};
    const struct delivery delivery = {.sequence = 1};
    struct str *const facts[] = {&origin.service, &origin.hostname, &origin.kernel_version,
                                 &origin.container_id, &origin.hardware_type};
    for (size_t i = 0; i < 5; i++) {
        *facts[i] = str_cut(&rest, '\n');
    }
    while (rest.len > 0 && origin.tag_count < 32) {
        struct str value = str_cut(&rest, '\n'), name = str_cut(&value, '=');
        origin.resource[origin.resource_count++] = (struct fact){name, value};
        origin.arguments[origin.argument_count++] = (struct fact){name, value};
        origin.tags[origin.tag_count++] = (struct fact){name, value};
    }
    datadog_event(out, &context, &delivery);
    if (!out->failed && !json_valid(buf_slice(out))) {
        abort();
    }
    leave_out(&context);
}

static struct str every_variable(void *context, const char *name)
{
    (void)name;
    return *(const struct str *)context;
}

static bool nothing_exists(void *context, const char *path)
{
    (void)context, (void)path;
    return false;
}

static void find_address(struct str text, bool agentless, struct buf *out)
{
    struct backend_context context = {0};
    struct backend_place place = {.variable = every_variable, .exists = nothing_exists,
                                  .context = &text, .agentless = agentless};
    buf_clear(out);
    (void)datadog_address(&context, &place, out, NULL);
    place.given = text;
    buf_clear(out);
    (void)datadog_address(&context, &place, out, NULL);
}

static void judge(struct backend_context *context, struct str body)
{
    static const unsigned statuses[] = {200, 400, 404, 413, 422, 500};
    for (size_t i = 0; backends[i] != NULL; i++) {
        for (size_t k = 0; k < sizeof statuses / sizeof statuses[0]; k++) {
            struct http_response answer = {.status = statuses[k]};
            struct err err = {0};
            buf_init(&answer.body, HTTP_BODY_MAX);
            buf_str(&answer.body, body);
            if (!answer.body.failed && backends[i]->classify(context, &answer, &err) != VERDICT_TAKEN &&
                strstr(err.text, "SECRET-1") != NULL) {
                abort();
            }
            buf_release(&answer.body);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct origin origin = {.service = STR("s"), .hostname = STR("h")};
    struct backend_context context = {.origin = &origin, .token = STR("SECRET-1")};
    struct str rest = str_sub((struct str){(const char *)data, size}, 1, size);
    struct buf out;
    buf_init(&out, OUT_MAX_BYTES);
    switch (size == 0 ? -1 : data[0]) {
    case 'c':
        make_smaller(backend_by_name(STR("studio")), "col", rest);
        break;
    case 'p':
        make_smaller(backend_by_name(STR("otlp")), "pprof", rest);
        break;
    case 'x':
        make_smaller(backend_by_name(STR("pyroscope")), "pprof", rest);
        break;
    case 'h':
        write_header(&context, rest, &out);
        break;
    case 'e':
        write_event(rest, &out);
        break;
    case 'a':
        find_address(rest, true, &out);
        find_address(rest, false, &out);
        break;
    default:
        judge(&context, rest);
    }
    buf_release(&out);
    return 0;
}

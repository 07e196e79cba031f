/* What OpenTelemetry's own variables say of a sender: address, headers, patience, certificates.
 * Source: the specification's "OpenTelemetry Protocol Exporter". The variable for profiles counts
 * before the one for all signals. */
#include "base/time.h"
#include "capture/upload/sender_private.h"

#include <stdlib.h>

enum { VALUE_MAX_BYTES = 16 * 1024, GRPC_PORT = 4317 };

#define ALL "OTEL_EXPORTER_OTLP_"
#define PROFILES "OTEL_EXPORTER_OTLP_PROFILES_"

static struct str variable(const char *for_profiles, const char *for_all)
{
    struct str value = str_trim(sender_variable(NULL, for_profiles));
    return value.len > 0 ? value : str_trim(sender_variable(NULL, for_all));
}

static const char *path_of(const char *for_profiles, const char *for_all)
{
    struct str value = sender_variable(NULL, for_profiles);
    value = value.len > 0 ? value : sender_variable(NULL, for_all);
    return value.len > 0 ? value.ptr : NULL; /* of the environment: it ends with a NUL */
}

/* "%20" is a blank; what is no such escape stays. */
static size_t unescape(struct str text, char out[static VALUE_MAX_BYTES])
{
    size_t len = 0;
    for (size_t i = 0; i < text.len && len < VALUE_MAX_BYTES; i++) {
        int high = i + 2 < text.len ? str_digit(text.ptr[i + 1]) : 16;
        int low = i + 2 < text.len ? str_digit(text.ptr[i + 2]) : 16;
        bool is_escape = text.ptr[i] == '%' && high < 16 && low < 16;
        out[len++] = is_escape ? (char)(high * 16 + low) : text.ptr[i];
        i += is_escape ? 2 : 0;
    }
    return len;
}

/* "name=value,name=value" */
static bool add_headers(struct sender *s, struct err *err)
{
    struct str rest = variable(PROFILES "HEADERS", ALL "HEADERS");
    char *value = rest.len > 0 ? malloc(VALUE_MAX_BYTES) : NULL;
    bool ok = rest.len == 0 || value != NULL || err_set(err, ERR_MEMORY, 0, "no memory");
    while (ok && rest.len > 0) {
        struct str pair = str_trim(str_cut(&rest, ',')), name = str_trim(str_cut(&pair, '='));
        size_t len = unescape(str_trim(pair), value);
        ok = name.len == 0 || sender_add_header(s, name, (struct str){value, len}, err);
    }
    if (!ok) {
        err_set(err, ERR_USAGE, 0, ALL "HEADERS expects NAME=VALUE,NAME=VALUE, at most %d of them",
                SETTINGS_HEADERS_MAX);
    }
    if (value != NULL) {
        explicit_bzero(value, VALUE_MAX_BYTES);
    }
    free(value);
    return ok;
}

/* Only where the command line says nothing. */
static void find_certificates(struct sender *s)
{
    if (s->ca_file == NULL) {
        s->ca_file = path_of(PROFILES "CERTIFICATE", ALL "CERTIFICATE");
    }
    if (s->client_cert == NULL) {
        s->client_cert = path_of(PROFILES "CLIENT_CERTIFICATE", ALL "CLIENT_CERTIFICATE");
        s->client_key = path_of(PROFILES "CLIENT_KEY", ALL "CLIENT_KEY");
    }
}

bool sender_open_otlp(struct sender *s, struct err *err)
{
    uint64_t timeout_ms = 0;
    struct str whole = sender_variable(NULL, PROFILES "ENDPOINT");
    s->context.service_given = s->settings->service_name != NULL;
    s->context.whole_path = whole.len > 0 && str_eq(str_of(s->address), whole);
    if (str_u64(variable(PROFILES "TIMEOUT", ALL "TIMEOUT"), &timeout_ms) &&
        timeout_ms < UINT64_MAX / NS_PER_MS) {
        s->context.timeout_ns = timeout_ms * NS_PER_MS;
    }
    if (s->context.url.port == GRPC_PORT) { /* says what the other would, and more */
        sender_warn(s, "port 4317 is usually gRPC's; profiles go by HTTP: give port 4318 of the same server");
    } else if (str_eq(variable(PROFILES "PROTOCOL", ALL "PROTOCOL"), STR("grpc"))) {
        sender_warn(s, ALL "PROTOCOL is grpc; profiles go by HTTP, usually to port 4318");
    }
    find_certificates(s);
    return add_headers(s, err);
}

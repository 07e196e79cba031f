/* The back end Datadog: a form of two files (event.json and the profile), to an agent or to the
 * service itself, and what its responses mean. Where it goes is found in datadog_address.c, the
 * event is written by datadog_event.c. */
#include "base/time.h"
#include "base/version.h"
#include "base/ascii.h"
#include "deliver/backend_private.h"
#include "deliver/escape.h"
#include "deliver/multipart.h"

#define AGENT_PATH "/profiling/v1/input"
#define INTAKE_PATH "/api/v2/profile"

enum { EVENT_MAX_BYTES = 256 * 1024, ENTITY_MAX_BYTES = 128 };

/* What the family "native" has in these places: ddprof's names. */
static const struct encode_name type_names[] = {
    {"cpu", "cpu-time"}, {"samples", "cpu-samples"}, {NULL, NULL},
};
static const struct encode_rules datadog_rules = {.type_names = type_names};

/* ---- the body ---- */

struct places {
    struct span target, form, entity, body;
};

static void put_body(const struct backend_context *context, const struct delivery *delivery,
                     struct buf *text, struct places *at)
{
    char boundary[MULTIPART_BOUNDARY_MAX];
    struct buf event;
    buf_init(&event, EVENT_MAX_BYTES);
    datadog_event(&event, context, delivery);
    struct multipart_part parts[2 + DELIVERY_MORE_MAX] = {
        {"event", "event.json", "application/json", buf_slice(&event)},
    };
    char names[1 + DELIVERY_MORE_MAX][DATADOG_NAME_MAX];
    for (size_t i = 0; i <= delivery->more_count; i++) {
        datadog_name(delivery, i, names[i]);
        parts[1 + i] = (struct multipart_part){names[i], names[i], "application/octet-stream",
                                               i == 0 ? delivery->profile : delivery->more[i - 1].profile};
    }
    multipart_boundary(parts, 2 + delivery->more_count, boundary);
    size_t start = text->len;
    buf_printf(text, "multipart/form-data; boundary=%s", boundary);
    at->form = span_since(text, start);
    start = text->len;
    multipart_put(text, boundary, parts, 2 + delivery->more_count);
    at->body = span_since(text, start);
    text->failed |= event.failed;
    buf_release(&event);
}

/* ---- where to ---- */

/* An address may name the place itself, or what stands before an agent's; of the intake it is the
 * whole when there is any. */
static struct span put_target(struct backend_context *context, struct buf *text)
{
    size_t at = text->len;
    if (context->url.path.len > 0) { /* the first time: the client puts it before the target */
        context->path = context->url.path;
        context->url.path = STR("");
    }
    bool is_whole = context->agentless ? context->path.len > 0
                                       : str_ends(context->path, STR(AGENT_PATH));
    buf_str(text, context->path);
    if (!is_whole) {
        buf_text(text, context->agentless ? INTAKE_PATH : AGENT_PATH);
    }
    return span_since(text, at);
}

/* ---- headers ---- */

static bool is_container(struct str id)
{
    for (size_t i = 0; i < id.len; i++) {
        if (!ascii_is_alnum(id.ptr[i]) && id.ptr[i] != '-' && id.ptr[i] != '_') {
            return false;
        }
    }
    return id.len > 0 && id.len <= ENTITY_MAX_BYTES;
}

/* Whose tags an agent is to add: a container's id, or the inode of its cgroup. */
static struct span put_entity(const struct origin *origin, struct buf *text)
{
    size_t at = text->len;
    if (is_container(origin->container_id)) {
        buf_text(text, "ci-");
        buf_str(text, origin->container_id);
    } else if (origin->cgroup_inode != 0) {
        buf_printf(text, "in-%llu", (unsigned long long)origin->cgroup_inode);
    }
    return span_since(text, at);
}

/* One of no value is none. */
static bool add(struct http_request *out, struct str name, struct str value)
{
    return value.len == 0 || http_add(out, name, value, false);
}

static bool add_headers(const struct backend_context *context, struct http_request *out,
                        struct str form, struct str entity, struct err *err)
{
    struct str id = context->origin->container_id, external = context->external_env;
    bool has_key = context->agentless && !backend_is_given(context, "DD-API-KEY");
    bool ok = add(out, STR("Content-Type"), form) &&
              add(out, STR("DD-EVP-ORIGIN"), STR("pillion")) &&
              add(out, STR("DD-EVP-ORIGIN-VERSION"), STR(PILLION_VERSION)) &&
              add(out, STR("Datadog-Container-ID"), is_container(id) ? id : STR("")) &&
              add(out, STR("Datadog-Entity-ID"), entity) &&
              add(out, STR("Datadog-External-Env"), escape_is_header(external) ? external : STR(""));
    if (ok && has_key) {
        ok = http_add(out, STR("DD-API-KEY"), context->token, true);
    }
    return (ok || err_set(err, ERR_LIMIT, 0, "more than %d headers", HTTP_HEADERS_MAX)) &&
           backend_add_headers(context, out, STR(""), err);
}

static bool datadog_request(struct backend_context *context, const struct delivery *delivery,
                     struct http_request *out, struct buf *text, struct err *err)
{
    struct places at = {0};
    if (!backend_check_format("Datadog", "pprof", delivery, err)) {
        return false;
    }
    at.target = put_target(context, text);
    at.entity = put_entity(context->origin, text);
    put_body(context, delivery, text, &at);
    return backend_post(out, text, at.target, at.body, err) &&
           add_headers(context, out, span_of(text, at.form), span_of(text, at.entity), err);
}

/* ---- answers ---- */

/* Null: what the status says of any service is right of this one, too. */
static const char *remedy_of(const struct backend_context *context, unsigned status)
{
    if (status == 404 && !context->agentless) {
        return "an agent of version 7.20 or later, with APM and profiling on, is needed there";
    }
    if (status == 401 || status == 403) {
        return context->agentless ? "the API key is not one of this site (DD_API_KEY, DD_SITE)"
                                  : "the agent's API key is wrong, or the agent refuses us";
    }
    return NULL;
}

static enum verdict datadog_classify(struct backend_context *context, const struct http_response *response,
                           struct err *err)
{
    const char *title = context->agentless ? "Datadog" : "the Datadog agent";
    enum verdict verdict = backend_classify(context, title, response, err);
    const char *remedy = remedy_of(context, response->status);
    if (verdict != VERDICT_TAKEN && remedy != NULL) {
        backend_blame(context, title, response, remedy, err);
    }
    return verdict;
}

const struct backend backend_datadog = {
    .name = "datadog",
    .title = "Datadog",
    .format = "pprof",
    .rules = &datadog_rules,
    .default_port = 8126,
    .most_bytes = 10 * 1024 * 1024,
    .env_host = "DD_TRACE_AGENT_URL DD_AGENT_HOST DD_TRACE_AGENT_PORT",
    .env_token = "DD_API_KEY",
    .env_service = "DD_SERVICE",
    .keeps_token = true,
    .takes_sets = true,
    .own_names_of = "go",
    /* The greatest age of its profiles is not documented; of its logs it is 18 hours. */
    .most_age_ns = UINT64_C(18) * 3600 * NS_PER_S,
    .address = datadog_address,
    .request = datadog_request,
    .classify = datadog_classify,
    .omits = datadog_omits,
};

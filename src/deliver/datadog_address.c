/* Where profiles for Datadog go: to an agent, which is found as Datadog's tracers find it (variables,
 * Unix socket, default host), or, agentless, to the intake of a site. Variables and files are asked for
 * through functions, so that this is pure. */
#include "base/time.h"
#include "base/ascii.h"
#include "deliver/backend_private.h"

#define AGENT_SOCKET "/var/run/datadog/apm.socket"
#define INTAKE "https://intake.profile."
#define SITE "datadoghq.com"

enum { AGENT_PORT = 8126, SITE_MAX_BYTES = 200, TIMEOUT_MAX_S = 3600 };

static struct str variable(const struct backend_place *place, const char *name)
{
    return str_trim(place->variable(place->context, name));
}

/* ---- the intake ---- */

/* A host's name and nothing else: it becomes part of one that is sent a key. */
static bool is_site(struct str site)
{
    for (size_t i = 0; i < site.len; i++) {
        bool is_joint = site.ptr[i] == '.' || site.ptr[i] == '-';
        bool is_inside = i > 0 && i + 1 < site.len && site.ptr[i - 1] != '.';
        if (!ascii_is_alnum(site.ptr[i]) && !(is_joint && is_inside)) {
            return false;
        }
    }
    return site.len > 0 && site.len <= SITE_MAX_BYTES;
}

static bool put_intake(struct str site, struct buf *out, struct err *err)
{
    if (!is_site(site)) {
        return err_set(err, ERR_USAGE, 0, "DD_SITE is not a host name, such as datadoghq.eu");
    }
    buf_text(out, INTAKE);
    buf_str(out, site);
    return true;
}

static bool find_intake(const struct backend_place *place, struct buf *out, struct err *err)
{
    struct str whole = variable(place, "DD_PROFILING_URL"), site = variable(place, "DD_SITE");
    if (whole.len > 0) {
        buf_str(out, whole);
        return true;
    }
    return put_intake(site.len > 0 ? site : STR(SITE), out, err);
}

/* ---- the agent ---- */

/* An agent speaks plain HTTP unless another scheme is written; a path is its socket's. */
static void put_agent(struct buf *out, struct str text)
{
    bool has_scheme = ascii_starts(text, STR("http://")) || ascii_starts(text, STR("https://")) ||
                      ascii_starts(text, STR("unix:"));
    if (text.len > 0 && text.ptr[0] == '/') {
        buf_text(out, "unix://");
    } else if (!has_scheme && memmem(text.ptr, text.len, "://", 3) == NULL) {
        buf_text(out, "http://");
    }
    buf_str(out, text);
}

static void put_host_port(struct buf *out, struct str host, unsigned port)
{
    bool is_v6 = host.len > 0 && host.ptr[0] != '[' && str_find(host, ':') < host.len;
    buf_text(out, is_v6 ? "http://[" : "http://");
    buf_str(out, host.len > 0 ? host : STR("localhost"));
    buf_printf(out, "%s:%u", is_v6 ? "]" : "", port != 0 ? port : AGENT_PORT);
}

static void find_agent(const struct backend_place *place, struct buf *out)
{
    struct str url = variable(place, "DD_TRACE_AGENT_URL"), host = str_trim(place->agent_host);
    if (url.len > 0 && !place->agent_told) {
        put_agent(out, url);
    } else if (host.len > 0 || place->agent_port != 0) {
        put_host_port(out, host, place->agent_port);
    } else if (place->exists(place->context, AGENT_SOCKET)) {
        buf_text(out, "unix://" AGENT_SOCKET);
    } else {
        put_host_port(out, STR(""), 0);
    }
}

/* ---- what is given ---- */

/* A bare name without an agent is a site, as ddprof's --url has it. */
static bool put_given(const struct backend_place *place, struct buf *out, struct err *err)
{
    struct str given = str_trim(place->given);
    bool is_name = str_find(given, ':') == given.len && str_find(given, '/') == given.len;
    if (place->agentless && is_name) {
        return put_intake(given, out, err);
    }
    if (place->agentless) {
        buf_str(out, given);
    } else {
        put_agent(out, given);
    }
    return true;
}

/* ---- patience ---- */

/* A decimal number off the front of the text; < 0: there is none. */
static double take_number(struct str *text)
{
    enum { DIGITS_MAX = 15 };
    double number = 0, scale = 1;
    size_t at = 0, digits = 0;
    for (bool point = false; at < text->len && digits <= DIGITS_MAX; at++) {
        char c = text->ptr[at];
        if (c == '.' && !point) {
            point = true;
        } else if (ascii_is_digit(c)) {
            number = number * 10 + (c - '0');
            scale *= point ? 10 : 1;
            digits++;
        } else {
            break;
        }
    }
    *text = str_sub(*text, at, text->len);
    return digits > 0 && digits <= DIGITS_MAX ? number / scale : -1;
}

/* A unit's nanoseconds; 0: there is none. */
static double take_unit(struct str *text)
{
    static const struct {
        struct str name;
        double ns;
    } units[] = {{{"ms", 2}, 1e6}, {{"us", 2}, 1e3}, {{"ns", 2}, 1},
                 {{"h", 1}, 3600e9}, {{"m", 1}, 60e9}, {{"s", 1}, 1e9}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (str_starts(*text, units[i].name)) {
            *text = str_sub(*text, units[i].name.len, text->len);
            return units[i].ns;
        }
    }
    return 0;
}

/* "1m30s", "500ms", "1.5h": durations of Go. 0: it is none. */
static uint64_t go_duration_ns(struct str text)
{
    const double most = (double)TIMEOUT_MAX_S * (double)NS_PER_S;
    double sum = 0;
    while (text.len > 0) {
        double number = take_number(&text), unit = take_unit(&text);
        if (number < 0 || unit == 0) {
            return 0;
        }
        sum += number * unit;
        sum = sum < most ? sum : most;
    }
    return (uint64_t)sum;
}

bool datadog_address(struct backend_context *context, const struct backend_place *place,
                     struct buf *out, struct err *err)
{
    context->agentless = place->agentless;
    context->external_env = variable(place, "DD_EXTERNAL_ENV");
    context->git_commit = variable(place, "DD_GIT_COMMIT_SHA");
    context->git_repository = variable(place, "DD_GIT_REPOSITORY_URL");
    struct str tags = variable(place, "DD_EXPERIMENTAL_PROPAGATE_PROCESS_TAGS_ENABLED");
    context->no_process_tags = ascii_same(tags, STR("false")) || str_eq(tags, STR("0"));
    context->timeout_ns = go_duration_ns(variable(place, "DD_PROFILING_UPLOAD_TIMEOUT"));
    if (place->given.len > 0) {
        return put_given(place, out, err);
    }
    if (place->agentless) {
        return find_intake(place, out, err);
    }
    find_agent(place, out);
    return true;
}

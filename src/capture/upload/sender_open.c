#include "capture/upload/sender_private.h"
#include "capture/upload/trust_files.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/secret.h"

#include <stdio.h>
#include <stdlib.h>

enum { PEM_MAX_BYTES = 1 << 20, ADDRESS_MAX_BYTES = 8 * 1024 };

static const struct {
    unsigned bit;
    const char *name;
} names[] = {{UPLOAD_STUDIO, "studio"}, {UPLOAD_PYROSCOPE, "pyroscope"}, {UPLOAD_HTTP, "http"},
             {UPLOAD_DATADOG, "datadog"}, {UPLOAD_OTLP, "otlp"}};
enum { NAME_COUNT = sizeof names / sizeof names[0] };

struct str sender_variable(void *context, const char *name)
{
    (void)context;
    return str_of(getenv(name));
}

/* Those that tell the profiled program's own libraries where to send, as well: an address or a
 * token that was given to us is not meant for whom they name. */
static struct str variable_of_ours(void *context, const char *name)
{
    struct str text = str_of(name);
    bool is_shared = str_starts(text, STR("DD_")) || str_starts(text, STR("OTEL_"));
    return is_shared ? STR("") : sender_variable(context, name);
}

static const struct backend *found_by_variables(const struct upload_settings *upload)
{
    bool is_told =
        upload->server_host != NULL || upload->token != NULL || upload->token_file != NULL;
    return backend_from_environment(is_told ? variable_of_ours : sender_variable, NULL);
}

bool sender_choose(const struct upload_settings *upload, const struct backend *rows[BACKEND_COUNT],
                   size_t *count, struct err *err)
{
    *count = 0;
    for (size_t i = 0; i < NAME_COUNT; i++) {
        const struct backend *row =
            (upload->backends & names[i].bit) != 0 ? backend_by_name(str_of(names[i].name)) : NULL;
        if (row != NULL && *count < BACKEND_COUNT) {
            rows[(*count)++] = row;
        }
    }
    if (upload->backends == 0) {
        rows[0] = found_by_variables(upload);
        rows[0] = rows[0] != NULL ? rows[0] : backend_by_name(STR("studio"));
        *count = rows[0] != NULL;
    }
    return *count > 0 || err_set(err, ERR_USAGE, 0, "no back end to upload to");
}

/* ---- values of several back ends in one option ---- */

/* How many bytes of "NAME=" the text begins with, and whose; 0: none. */
static size_t name_bytes(struct str text, struct str *name)
{
    for (size_t i = 0; i < NAME_COUNT; i++) {
        struct str one = str_of(names[i].name);
        if (str_starts(text, one) && text.len > one.len && text.ptr[one.len] == '=') {
            *name = one;
            return one.len + 1;
        }
    }
    return 0;
}

/* Where the value ends: before a comma that a back end's name follows. */
static size_t value_bytes(struct str text)
{
    struct str name;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == ',' && name_bytes(str_sub(text, i + 1, text.len), &name) > 0) {
            return i;
        }
    }
    return text.len;
}

/* The value of `wanted` in the list; empty when it has none. */
static struct str value_of(const char *list, struct str wanted, bool takes_nameless)
{
    struct str rest = str_of(list), nameless = {0};
    while (rest.len > 0) {
        struct str name = {0};
        size_t skipped = name_bytes(rest, &name);
        rest = str_sub(rest, skipped, rest.len);
        struct str value = str_sub(rest, 0, value_bytes(rest));
        if (skipped > 0 && str_eq(name, wanted)) {
            return value;
        }
        nameless = skipped == 0 ? value : nameless;
        rest = str_sub(rest, value.len + 1, rest.len);
    }
    return takes_nameless ? nameless : STR("");
}

enum { NAME_MAX_BYTES = 64 };

/* The next of several names with blanks between; longer ones are nobody's. */
static bool next_name(struct str *rest, char name[static NAME_MAX_BYTES])
{
    while (rest->len > 0) {
        struct str one = str_cut(rest, ' ');
        if (one.len > 0 && one.len < NAME_MAX_BYTES) {
            memcpy(name, one.ptr, one.len);
            name[one.len] = '\0';
            return true;
        }
    }
    return false;
}

/* The first that is set, and its name; else empty. */
static struct str named_value(const char *variables, char name[static NAME_MAX_BYTES])
{
    for (struct str rest = str_of(variables); next_name(&rest, name);) {
        struct str value = sender_variable(NULL, name);
        if (value.len > 0) {
            return value;
        }
    }
    name[0] = '\0';
    return STR("");
}

static struct str value_of_environment(const char *variables)
{
    char name[NAME_MAX_BYTES];
    return named_value(variables, name);
}

static char *copy_of(struct str text)
{
    char *copy = text.len == 0 ? NULL : malloc(text.len + 1);
    if (copy != NULL) {
        memcpy(copy, text.ptr, text.len);
        copy[text.len] = '\0';
    }
    return copy;
}

/* ---- what is known at once ---- */

static bool exists(void *context, const char *path)
{
    (void)context;
    return file_exists(path);
}

/* Of a back end that knows more places than one variable names. */
static char *address_by_row(struct sender *s, struct str given, struct err *err)
{
    const struct upload_settings *upload = &s->settings->upload;
    const struct backend_place place = {
        .variable = sender_variable,
        .exists = exists,
        .given = given,
        .agent_host = str_of(upload->agent_host),
        .agent_port = upload->agent_port,
        .agent_told = upload->agent_told,
        .agentless = upload->agentless,
    };
    struct buf text;
    buf_init(&text, ADDRESS_MAX_BYTES);
    char *address = s->row->address(&s->context, &place, &text, err)
                        ? copy_of(buf_slice(&text)) : NULL;
    buf_release(&text);
    return address;
}

/* `from`: who gave the address; empty: one of several variables, or nobody. */
static bool parse_address(struct sender *s, const char *from, struct err *err)
{
    struct err why = {0};
    if (url_parse(&s->context.url, str_of(s->address), s->row->default_port, &why)) {
        return true;
    }
    return err_set(err, why.kind, why.number, "%s%s%s", from, from[0] != '\0' ? ": " : "", why.text);
}

static bool find_address(struct sender *s, bool alone, struct err *err)
{
    struct str wanted = str_of(s->row->name);
    struct str text = value_of(s->settings->upload.server_host, wanted, true);
    char from[NAME_MAX_BYTES] = "";
    if (text.len > 0) {
        (void)snprintf(from, sizeof from, "--server-host");
    }
    if (s->row->address != NULL) {
        s->address = address_by_row(s, text, err);
        return s->address != NULL && parse_address(s, from, err);
    }
    text = text.len > 0 ? text : named_value(s->row->env_host, from);
    text = text.len > 0 ? text : str_of(s->row->default_host);
    s->address = copy_of(text);
    if (s->address == NULL) {
        return err_set(err, ERR_USAGE, 0, "%s wants an address: give --server-host %s%sURL",
                       s->row->name, alone ? "" : s->row->name, alone ? "" : "=");
    }
    return parse_address(s, from, err);
}

/* It becomes part of a header's line. */
static bool is_printable(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 0x7f) {
            return false;
        }
    }
    return true;
}

static bool take_token(struct sender *s, char *token, struct err *err)
{
    secret_forget(s->token);
    s->token = token;
    s->context.token = str_of(token);
    return is_printable(s->context.token) ||
           err_set(err, ERR_USAGE, 0,
                   "the token for %s holds a line end or another control character", s->row->name);
}

static bool find_token(struct sender *s, bool alone, struct err *err)
{
    const struct upload_settings *upload = &s->settings->upload;
    struct str wanted = str_of(s->row->name);
    if (s->row->keeps_token && !s->context.agentless) {
        return true;
    }
    struct str given = value_of(upload->token, wanted, alone);
    struct str file = value_of(upload->token_file, wanted, alone);
    bool is_told = given.len > 0 || file.len > 0;
    struct str found = is_told ? given : value_of_environment(s->row->env_token);
    s->token_file = found.len > 0 ? NULL : copy_of(file);
    bool needs_token = s->row->needs_token || s->row->keeps_token;
    if (found.len == 0 && s->token_file == NULL && needs_token) {
        return err_set(err, ERR_USAGE, 0, "%s wants a token: set PILLION_TOKEN_FILE%s%s%s",
                       s->row->name, alone ? "" : " to ", alone ? "" : s->row->name,
                       alone ? "" : "=FILE");
    }
    return take_token(s, copy_of(found), err);
}

bool sender_add_header(struct sender *s, struct str name, struct str value, struct err *err)
{
    struct backend_context *context = &s->context;
    size_t room = sizeof context->headers / sizeof context->headers[0];
    char *copy = name.len == 0 || value.len == 0 ? NULL : copy_of(value);
    char *copied_name = copy_of(name);
    if (copy == NULL || copied_name == NULL || context->header_count == room ||
        !is_printable(name) || !is_printable(value) || str_find(name, ' ') < name.len) {
        secret_forget(copy);
        free(copied_name);
        return err_set(err, ERR_USAGE, 0, "--header wants NAME:VALUE, at most %zu times", room);
    }
    s->header_texts[context->header_count] = copied_name;
    context->headers[context->header_count++] = (struct fact){str_of(copied_name), str_of(copy)};
    return true;
}

static bool add_header(struct sender *s, const char *text, struct err *err)
{
    struct str value = str_of(text), name = str_trim(str_cut(&value, ':'));
    return sender_add_header(s, name, str_trim(value), err);
}

static bool find_headers(struct sender *s, bool alone, struct err *err)
{
    const struct upload_settings *upload = &s->settings->upload;
    s->context.method = upload->method == UPLOAD_PUT ? STR("PUT") : STR("POST");
    s->context.tenant = value_of_environment(s->row->env_tenant);
    bool takes = alone || str_eq(str_of(s->row->name), STR("http"));
    if (!takes && upload->headers.count > 0 && (upload->backends & UPLOAD_HTTP) == 0) {
        s->warning = "--header is not sent: of several back ends http alone gets it";
    }
    for (size_t i = 0; takes && i < upload->headers.count; i++) {
        if (!add_header(s, upload->headers.at[i], err)) {
            return false;
        }
    }
    return true;
}

/* What is the back end's alone. */
static bool find_own(struct sender *s, struct err *err)
{
    const struct upload_settings *upload = &s->settings->upload;
    s->ca_file = upload->ca_file;
    s->client_cert = upload->client_cert;
    s->client_key = upload->client_key;
    return !str_eq(str_of(s->row->name), STR("otlp")) || sender_open_otlp(s, err);
}

static void begin_client(struct sender *s)
{
    struct client_settings settings = {
        .dialer = net_dialer(s->net),
        .clock = clock_system(),
        .random = net_random,
        .tls = {.trust = &s->trust, .verify = s->settings->upload.verify, .identity = s->identity},
    };
    proxies_from(&settings.proxies, sender_variable, NULL);
    client_init(&s->client, &settings);
}

const struct origin *sender_origin(struct sender *s)
{
    if (s->settings->origin.metadata || s->row->names_host) {
        return origin_now(s->here);
    }
    s->bare = *origin_now(s->here);
    s->bare.hostname = STR("");
    return &s->bare;
}

struct sender *sender_new(const struct settings *settings, const struct backend *row, bool alone,
                          const struct origin_here *here, int wake, struct err *err)
{
    struct sender *s = calloc(1, sizeof *s);
    if (s == NULL) {
        err_set(err, ERR_MEMORY, 0, "no memory to upload");
        return NULL;
    }
    s->settings = settings;
    s->row = row;
    s->here = here;
    s->context.origin = sender_origin(s);
    s->reread = true;
    bool ok = find_address(s, alone, err) && find_token(s, alone, err) &&
              find_headers(s, alone, err) && find_own(s, err);
    s->net = ok ? net_new(wake, err) : NULL;
    if (s->net == NULL) {
        sender_free(s);
        return NULL;
    }
    begin_client(s);
    return s;
}

static void release_certificates(struct sender *s)
{
    trust_release(&s->trust);
    s->trust = (struct trust){0};
    tls_identity_free(s->identity);
    s->identity = NULL;
}

void sender_free(struct sender *s)
{
    if (s == NULL) {
        return;
    }
    if (s->net != NULL) {
        client_release(&s->client);
        net_free(s->net);
    }
    release_certificates(s);
    for (size_t i = 0; i < s->context.header_count; i++) {
        free(s->header_texts[i]);
        secret_forget((char *)(uintptr_t)s->context.headers[i].value.ptr);
    }
    secret_forget(s->token);
    free(s->token_file);
    free(s->address);
    free(s);
}

static void hide(const char *text)
{
    if (text != NULL) {
        secret_forget(secret_take((char *)(uintptr_t)text));
    }
}

static void hide_variables(const char *variables)
{
    char name[NAME_MAX_BYTES];
    for (struct str rest = str_of(variables); next_name(&rest, name);) {
        hide(getenv(name));
    }
}

void sender_hide_secrets(const struct upload_settings *upload)
{
    hide(upload->token);
    for (size_t i = 0; i < upload->headers.count; i++) {
        hide(upload->headers.at[i]);
    }
    hide_variables("PILLION_TOKEN GPROFILER_TOKEN PILLION_HEADER "
                   "OTEL_EXPORTER_OTLP_HEADERS OTEL_EXPORTER_OTLP_PROFILES_HEADERS");
    for (size_t i = 0; i < BACKEND_COUNT; i++) {
        hide_variables(backends[i].env_token);
    }
}

/* ---- what is in files ---- */

bool sender_read_token(struct sender *s, struct err *err)
{
    if (s->token_file == NULL || (s->token != NULL && !s->reread)) {
        return true;
    }
    char *fresh = secret_read_file(s->token_file, err);
    if (fresh == NULL) {
        return false;
    }
    return take_token(s, fresh, err);
}

static bool add_pins(struct sender *s, struct err *err)
{
    struct str rest = str_of(s->settings->upload.pins);
    while (rest.len > 0) {
        if (!trust_add_pin(&s->trust, str_trim(str_cut(&rest, ',')), err)) {
            return false;
        }
    }
    return true;
}

static bool read_identity(struct sender *s, struct err *err)
{
    struct buf chain, key;
    if (s->client_cert == NULL) {
        return true;
    }
    const char *key_path = s->client_key != NULL ? s->client_key : s->client_cert;
    if (!file_read_all(s->client_cert, PEM_MAX_BYTES, &chain, err)) {
        return false;
    }
    if (file_read_all(key_path, PEM_MAX_BYTES, &key, err)) {
        s->identity = tls_identity_new(buf_slice(&chain), buf_slice(&key), err);
        if (key.len > 0) {
            explicit_bzero(key.ptr, key.len);
        }
        buf_release(&key);
    }
    buf_release(&chain);
    return s->identity != NULL;
}

static bool read_certificates(struct sender *s, struct err *err)
{
    const struct upload_settings *upload = &s->settings->upload;
    client_release(&s->client);
    release_certificates(s);
    bool ok = !upload->verify ||
              trust_files_load(&s->trust, s->ca_file, sender_variable, NULL, err);
    ok = ok && add_pins(s, err) && read_identity(s, err);
    begin_client(s);
    return ok;
}

bool sender_prepare(struct sender *s, struct err *err)
{
    if (!sender_read_token(s, err)) {
        return false;
    }
    if (s->context.url.tls && (!s->prepared || s->reread) && !read_certificates(s, err)) {
        s->prepared = false;
        return false;
    }
    s->prepared = true;
    s->reread = false;
    return true;
}

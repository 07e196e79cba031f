/* Makes a sender ready: address, token, headers, and later, before the first delivery, what lies in files:
 * certificates, pins, token files. They are read again when sender_refresh asks, or when the service did
 * not take what was read. */
#include "capture/upload/sender_private.h"
#include "capture/upload/trust_files.h"
#include "encode/encode.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/secret.h"

#include <stdio.h>
#include <stdlib.h>

enum { PEM_MAX_BYTES = 1 << 20, ADDRESS_MAX_BYTES = 8 * 1024 };

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
                        ? sender_copy(buf_slice(&text)) : NULL;
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
    struct str text = sender_value(s->settings->upload.server_host, wanted, true);
    char from[SENDER_NAME_MAX] = "";
    if (text.len > 0) {
        (void)snprintf(from, sizeof from, "--server-host");
    }
    if (s->row->address != NULL) {
        s->schemeless = text.len > 0 && !url_has_scheme(text);
        s->address = address_by_row(s, text, err);
        return s->address != NULL && parse_address(s, from, err);
    }
    text = text.len > 0 ? text : sender_named(s->row->env_host, from);
    text = text.len > 0 ? text : str_of(s->row->default_host);
    s->schemeless = !url_has_scheme(text);
    s->address = sender_copy(text);
    if (s->address == NULL) {
        return err_set(err, ERR_USAGE, 0, "%s needs an address: give --server-host %s%sURL",
                       s->row->name, alone ? "" : s->row->name, alone ? "" : "=");
    }
    return parse_address(s, from, err);
}

static bool take_token(struct sender *s, char *token, struct err *err)
{
    secret_forget(s->token);
    s->token = token;
    s->context.token = str_of(token);
    return sender_is_printable(s->context.token) ||
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
    struct str given = sender_value(upload->token, wanted, alone);
    struct str file = sender_value(upload->token_file, wanted, alone);
    bool is_told = given.len > 0 || file.len > 0;
    struct str found = is_told ? given : sender_value_of_environment(s->row->env_token);
    s->token_file = found.len > 0 ? NULL : sender_copy(file);
    bool needs_token = s->row->needs_token || s->row->keeps_token;
    if (found.len == 0 && s->token_file == NULL && needs_token) {
        return err_set(err, ERR_USAGE, 0, "%s needs a token: set PILLION_TOKEN_FILE%s%s%s",
                       s->row->name, alone ? "" : " to ", alone ? "" : s->row->name,
                       alone ? "" : "=FILE");
    }
    return take_token(s, sender_copy(found), err);
}

static bool add_header(struct sender *s, const char *text, struct err *err)
{
    struct str value = str_of(text), name = str_trim(str_cut(&value, ':'));
    return sender_add_header(s, name, str_trim(value), err);
}

static bool one_takes_headers(unsigned wanted)
{
    size_t i = 0;
    while (backends[i] != NULL && !(backends[i]->takes_headers && (wanted >> i & 1) != 0)) {
        i++;
    }
    return backends[i] != NULL;
}

static bool find_headers(struct sender *s, bool alone, struct err *err)
{
    const struct upload_settings *upload = &s->settings->upload;
    s->context.method = upload->method == UPLOAD_PUT ? STR("PUT") : STR("POST");
    s->context.tenant = sender_value_of_environment(s->row->env_tenant);
    bool takes = alone || s->row->takes_headers;
    if (!takes && upload->headers.count > 0 && !one_takes_headers(upload->backends)) {
        sender_warn(s, "--header is not sent: of several back ends http alone gets it");
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
    return !s->row->reads_otel || sender_open_otlp(s, err);
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

/* Of what was asked for beside CPU time. */
static void warn_of_types(struct sender *s)
{
    const struct sampling_settings *sampling = &s->settings->sampling;
    const struct encoder *encoder = encoder_by_name(str_of(s->row->format));
    bool is_asked = sampling->wall || sampling->off_cpu || sampling->events.count > 0;
    if (is_asked && encoder != NULL && encoder->is_cpu_alone) {
        sender_warn(s, "it takes CPU time alone; off_cpu, wall and other events are in pprof files (-o)");
    }
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
    warn_of_types(s);
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

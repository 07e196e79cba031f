/* Sends to one back end: makes a request of a delivery, or several (shipment.h), sends it, has the row
 * classify the response, and tries again at once where that helps (a fallback, fewer stacks after a
 * 413). Also its questions: is the service there, what would be sent. */
#include "capture/upload/sender.h"
#include "capture/upload/sender_private.h"
#include "base/ascii.h"
#include "capture/upload/shipment.h"
#include "deliver/address.h"
#include "os/clock.h"

#include <stdio.h>

enum {
    ATTEMPTS_MAX = 12,
    MEMORY_SHARE = 4,
    TEXT_LEAST_BYTES = 16 << 20,
    REDACTED_LEAST = 4,
    ADDRESS_MAX_BYTES = 32 * 1024,
};

/* ---- one request ---- */

/* A server may repeat what it was sent. */
static void redact(struct err *err, const char *secret)
{
    size_t len = secret == NULL ? 0 : strlen(secret);
    if (len < REDACTED_LEAST) {
        return;
    }
    for (char *at; (at = strstr(err->text, secret)) != NULL;) {
        memset(at, '*', 3);
        memmove(at + 3, at + len, strlen(at + len) + 1);
    }
}

static void redact_all(const struct sender *sender, struct err *err)
{
    redact(err, sender->token);
    for (size_t i = 0; i < sender->context.header_count; i++) {
        redact(err, sender->context.headers[i].value.ptr); /* they end with a NUL */
    }
}

static size_t most_bytes(const struct sender *sender)
{
    size_t share = sender->settings->budget.memory_bytes / MEMORY_SHARE;
    return share > TEXT_LEAST_BYTES ? share : TEXT_LEAST_BYTES;
}

static void begin_making(const struct sender *sender)
{
    if (sender->making != NULL) {
        pthread_mutex_lock(sender->making);
    }
}

static void end_making(const struct sender *sender)
{
    if (sender->making != NULL) {
        pthread_mutex_unlock(sender->making);
    }
}

void sender_share_lock(struct sender *sender, pthread_mutex_t *making)
{
    sender->making = making;
}

static bool build(struct sender *sender, struct shipment *s, struct err *err)
{
    sender->context.now_wall_ns = clock_wall_ns();
    sender->context.origin = sender_origin(sender);
    begin_making(sender);
    bool ok = shipment_build(s, &sender->context, err);
    end_making(sender);
    return ok;
}

/* After the service responded that it is too large. */
static bool make_smaller(struct sender *sender, struct shipment *s)
{
    struct err why;
    begin_making(sender);
    bool ok = shipment_smaller(s, &sender->context, &why);
    end_making(sender);
    return ok;
}

static enum verdict exchange(struct sender *sender, struct shipment *s, uint64_t deadline_ns,
                             struct sender_outcome *out)
{
    struct http_response response = {0};
    if (!sender_prepare(sender, &out->err)) {
        return VERDICT_CONFIG;
    }
    if (!build(sender, s, &out->err)) {
        return out->err.kind == ERR_USAGE ? VERDICT_CONFIG : VERDICT_REFUSED;
    }
    if (!client_send(&sender->client, &sender->context.url, &s->request, deadline_ns, &response,
                     &out->err)) {
        return sender->client.config ? VERDICT_CONFIG : VERDICT_LATER;
    }
    out->retry_after_ns = response.retry_after_ns;
    enum verdict verdict = sender->row->classify(&sender->context, &response, &out->err);
    http_response_release(&response);
    return verdict;
}

static enum verdict ask(struct sender *sender, const struct sender_question *question,
                        struct shipment *s, uint64_t deadline_ns, struct sender_outcome *out)
{
    struct http_response response = {0};
    if (!sender_prepare(sender, &out->err)) {
        return VERDICT_CONFIG;
    }
    if (question->make == NULL) {
        return VERDICT_TAKEN;
    }
    if (!question->make(&sender->context, question->what, &s->request, &s->text, &out->err)) {
        return VERDICT_CONFIG;
    }
    if (!client_send(&sender->client, &sender->context.url, &s->request, deadline_ns, &response,
                     &out->err)) {
        return sender->client.config ? VERDICT_CONFIG : VERDICT_LATER;
    }
    out->status = response.status;
    out->retry_after_ns = response.retry_after_ns;
    enum verdict verdict = question->classify(&sender->context, &response, &out->err);
    http_response_release(&response);
    return verdict;
}

void sender_check_files(struct sender *sender, struct sender_outcome *out)
{
    *out = (struct sender_outcome){0};
    out->verdict = sender_prepare(sender, &out->err) ? VERDICT_TAKEN : VERDICT_CONFIG;
    redact_all(sender, &out->err);
}

void sender_ask(struct sender *sender, const struct sender_question *question, uint64_t deadline_ns,
                struct sender_outcome *out)
{
    struct shipment shipment;
    *out = (struct sender_outcome){0};
    shipment_init(&shipment, sender->row, &(struct delivery){0}, most_bytes(sender));
    sender->context.now_wall_ns = clock_wall_ns();
    sender->context.origin = sender_origin(sender);
    out->verdict = ask(sender, question, &shipment, deadline_ns, out);
    shipment_release(&shipment);
    if (out->verdict == VERDICT_CONFIG) {
        sender->reread = true; /* a token that was renewed */
    }
    redact_all(sender, &out->err);
}

static bool make_check(struct backend_context *context, const void *what, struct http_request *out,
                       struct buf *text, struct err *err)
{
    const struct backend *row = what;
    return row->health(context, out, text, err);
}

void sender_check(struct sender *sender, uint64_t deadline_ns, struct sender_outcome *out)
{
    const struct sender_question question = {
        .make = sender->row->health != NULL ? make_check : NULL,
        .what = sender->row,
        .classify = sender->row->classify,
    };
    sender_ask(sender, &question, deadline_ns, out);
}

static enum sender_gate gate_of_response(enum verdict verdict, unsigned status)
{
    if (verdict != VERDICT_CONFIG) {
        return SENDER_SERVER;
    }
    return status == 400 || status == 401 || status == 403 ? SENDER_TOKEN : SENDER_ADDRESS;
}

static enum sender_gate gate_of(const struct sender *sender, enum verdict verdict, unsigned status)
{
    if (status != 0) {
        return gate_of_response(verdict, status);
    }
    switch (sender->client.stage) {
    case CLIENT_CONNECT:
        return net_is_unresolved(sender->net) ? SENDER_NAME : SENDER_CONNECT;
    case CLIENT_PROXY:
        return SENDER_PROXY;
    case CLIENT_TLS:
        return SENDER_TLS;
    case CLIENT_RESPONSE:
        return verdict == VERDICT_CONFIG ? SENDER_ADDRESS : SENDER_SERVER;
    default:
        return SENDER_SETTING;
    }
}

static enum verdict reach(struct sender *sender, uint64_t deadline_ns, struct err *err)
{
    bool ok = client_reach(&sender->client, &sender->context.url, deadline_ns, err);
    return ok ? VERDICT_TAKEN : sender->client.config ? VERDICT_CONFIG : VERDICT_LATER;
}

void sender_try(struct sender *sender, uint64_t deadline_ns, bool *confirmed, struct sender_outcome *out)
{
    *out = (struct sender_outcome){.verdict = VERDICT_CONFIG, .gate = SENDER_SETTING};
    *confirmed = false;
    if (!sender_prepare(sender, &out->err)) {
        redact_all(sender, &out->err);
        return;
    }
    if (sender->row->health != NULL) {
        sender_check(sender, deadline_ns, out);
        *confirmed = out->verdict == VERDICT_TAKEN;
    } else {
        out->verdict = reach(sender, deadline_ns, &out->err);
        redact_all(sender, &out->err);
    }
    out->gate = out->verdict == VERDICT_TAKEN ? SENDER_OPEN : gate_of(sender, out->verdict, out->status);
}

/* A row that changes its mind for ever, or a service that takes nothing however small, is given
 * up for now. */
static enum verdict bounded(enum verdict verdict, unsigned attempts)
{
    bool again = verdict == VERDICT_AGAIN || verdict == VERDICT_SMALLER;
    return !again || attempts < ATTEMPTS_MAX    ? verdict
           : verdict == VERDICT_SMALLER         ? VERDICT_REFUSED
                                                : VERDICT_LATER;
}

static void send_request(struct sender *sender, const struct delivery *delivery, uint64_t deadline_ns,
                         struct sender_outcome *out)
{
    struct shipment shipment;
    *out = (struct sender_outcome){.verdict = VERDICT_AGAIN};
    shipment_init(&shipment, sender->row, delivery, most_bytes(sender));
    for (unsigned i = 1; out->verdict == VERDICT_AGAIN || out->verdict == VERDICT_SMALLER; i++) {
        out->err = (struct err){0};
        out->verdict = bounded(exchange(sender, &shipment, deadline_ns, out), i);
        if (out->verdict == VERDICT_SMALLER && !make_smaller(sender, &shipment)) {
            out->verdict = VERDICT_REFUSED; /* the service's sentence says more than ours */
        }
    }
    shipment_release(&shipment);
}

/* What one request tells of a delivery: all of it, or its n-th profile. */
static struct delivery part_of(const struct sender *sender, const struct delivery *delivery, size_t n)
{
    struct delivery part = *delivery;
    if (!sender->row->takes_sets && n > 0) {
        part.type = delivery->more[n - 1].type;
        part.profile = delivery->more[n - 1].profile;
    }
    part.more_count = sender->row->takes_sets ? part.more_count : 0;
    return part;
}

/* A profile that is refused does not keep the others; the first trouble is told. */
void sender_send(struct sender *sender, struct delivery *delivery, uint64_t deadline_ns,
                 struct sender_outcome *out)
{
    size_t count = sender->row->takes_sets ? 1 : 1 + delivery->more_count;
    *out = (struct sender_outcome){.verdict = VERDICT_TAKEN};
    while (delivery->taken < count) {
        struct delivery part = part_of(sender, delivery, delivery->taken);
        struct sender_outcome now;
        send_request(sender, &part, deadline_ns, &now);
        bool is_over = now.verdict == VERDICT_TAKEN || now.verdict == VERDICT_REFUSED;
        if (out->verdict == VERDICT_TAKEN || !is_over) {
            *out = now;
        }
        delivery->taken += is_over;
        if (!is_over) {
            break;
        }
    }
    if (out->verdict == VERDICT_CONFIG) {
        sender->reread = true; /* a token that was renewed */
    }
    redact_all(sender, &out->err);
}

bool sender_show(struct sender *sender, const struct delivery *delivery, struct buf *out,
                 struct err *err)
{
    struct shipment shipment;
    struct buf address;
    shipment_init(&shipment, sender->row, delivery, most_bytes(sender));
    buf_init(&address, ADDRESS_MAX_BYTES);
    bool ok = sender_read_token(sender, err) && build(sender, &shipment, err) &&
              client_address(&sender->context.url, &shipment.request, &address, err);
    if (ok) {
        buf_printf(out, "# %s, %s\n", sender->row->name, sender->address);
        http_show(&shipment.request, out);
    }
    buf_release(&address);
    shipment_release(&shipment);
    return ok;
}

void sender_refresh(struct sender *sender)
{
    sender->reread = true;
}

uint64_t sender_timeout_ns(const struct sender *sender)
{
    const struct upload_settings *upload = &sender->settings->upload;
    uint64_t own_ns = sender->context.timeout_ns;
    return upload->timeout_given || own_ns == 0 ? upload->timeout_ns : own_ns;
}

const char *sender_name(const struct sender *sender)
{
    return sender->row->name;
}

const char *sender_warning(const struct sender *sender, size_t at)
{
    return at < sender->warning_count ? sender->warnings[at] : NULL;
}

static bool holds(struct str text, const char *word)
{
    for (size_t i = 0; i < text.len; i++) {
        if (ascii_starts(str_sub(text, i, text.len), str_of(word))) {
            return true;
        }
    }
    return false;
}

/* Of headers that were given the name tells: X-Scope-OrgID is none. */
static bool has_secret(const struct sender *sender)
{
    static const char *const words[] = {"auth", "token", "key", "secret", "cookie"};
    enum { WORDS = sizeof words / sizeof words[0] };
    const struct backend_context *context = &sender->context;
    bool found = sender->token != NULL || sender->token_file != NULL;
    for (size_t i = 0; i < context->header_count * WORDS && !found; i++) {
        found = holds(context->headers[i / WORDS].name, words[i % WORDS]);
    }
    return found;
}

const char *sender_exposure(const struct sender *sender)
{
    const struct url *url = &sender->context.url;
    if (url->tls || url->is_unix || host_is_loopback(url->host)) {
        return NULL;
    }
    if (has_secret(sender)) {
        return sender->schemeless
                   ? "the address has no scheme, which means http:// here: the token is sent to another machine, "
                     "where anyone in between can read it: give an https:// address"
                   : "the token is sent to another machine over plain http, where anyone in between can read it: "
                     "give an https:// address";
    }
    return sender->schemeless ? "the address has no scheme, which means http:// here: write it, or https:// if that "
                                "is meant"
                              : NULL;
}

void sender_where(const struct sender *sender, char *out, size_t out_bytes)
{
    const struct url *url = &sender->context.url;
    bool is_v6 = str_find(url->host, ':') < url->host.len;
    if (url->is_unix) {
        snprintf(out, out_bytes, "unix:%.*s", (int)url->host.len, url->host.ptr);
    } else {
        snprintf(out, out_bytes, is_v6 ? "%s://[%.*s]:%u" : "%s://%.*s:%u", url->tls ? "https" : "http",
                 (int)url->host.len, url->host.ptr, url->port);
    }
}

uint64_t sender_address_hash(const struct sender *sender)
{
    return str_hash(str_of(sender->address));
}

/* What both engines of TLS have of a connection: the stream below, the name, what is for the handshake, and the
 * sentences for its ends. Whether the other engine may please a server better is found here, too, where the reason of a
 * refusal is put into words. */
#include <errno.h>
#include <stdlib.h>

#include "deliver/peer.h"
#include "deliver/tls_error.h"

#define RSASSA_PSS "1.2.840.113549.1.1.10"

ptrdiff_t tls_link_read(struct tls_link *link, void *to, size_t len, uint64_t deadline_ns, struct err *err)
{
    ptrdiff_t got = link->under.read(link->under.context, to, len, deadline_ns, err);
    for (ptrdiff_t i = 0; i < got && link->first_len < sizeof link->first; i++) {
        link->first[link->first_len++] = ((const unsigned char *)to)[i];
    }
    return got;
}

/* What a server says to 1.2 that wants 1.3, Extended Master Secret (some miss it late, and call that an error of their
 * own) or other signatures, unless it is the client's certificate that it misses; and what certificates have
 * that only the second engine knows. */
static bool may_please_second(const struct tls_failure *f)
{
    switch (f->code) {
    case BR_ERR_RECV_FATAL_ALERT + BR_ALERT_HANDSHAKE_FAILURE:
    case BR_ERR_RECV_FATAL_ALERT + BR_ALERT_PROTOCOL_VERSION:
    case BR_ERR_RECV_FATAL_ALERT + BR_ALERT_INSUFFICIENT_SECURITY:
    case BR_ERR_RECV_FATAL_ALERT + BR_ALERT_INTERNAL_ERROR:
        return !f->asked_for_certificate || f->settings->identity != NULL;
    case BR_ERR_X509_LIMIT_EXCEEDED: /* of a key's size */
        return true;
    case BR_ERR_X509_UNSUPPORTED:
    case BR_ERR_X509_WRONG_KEY_TYPE:
        return f->peer != NULL && strcmp(f->peer->blamed.oid, RSASSA_PSS) == 0;
    default:
        return false;
    }
}

bool tls_link_explain(struct tls_link *link, int code, struct err *err)
{
    struct tls_failure f = {
        .code = code,
        .host = str_of(link->host),
        .settings = &link->settings,
        .peer = link->peer,
        .first_len = link->first_len,
        .asked_for_certificate = link->asked_for_certificate,
        .speaks_13 = link->second,
    };
    memcpy(f.first, link->first, sizeof f.first);
    link->other_may = may_please_second(&f);
    return tls_error(err, &f);
}

bool tls_link_cut(const struct tls_link *link, struct err *err)
{
    return err_set(err, ERR_NETWORK, ECONNRESET, "TLS with %s: the connection was closed before the server ended the "
                   "session", link->host);
}

/* Empty records, one after the other, would keep the caller beyond its deadline. */
bool tls_link_held_up(const struct tls_link *link, struct err *err)
{
    return err_set(err, ERR_NETWORK, ECONNABORTED, "TLS with %s: the server keeps sending and says nothing",
                   link->host);
}

/* Some that want 1.3 close without a word. */
static void guess(struct tls_link *link, int number)
{
    link->other_may = link->is_guess = link->first_len == 0 && (number == ECONNRESET || number == EPIPE);
}

bool tls_link_lost(struct tls_link *link, const struct err *why, struct err *err)
{
    guess(link, why->number);
    return err_set(err, ERR_NETWORK, why->number, "TLS with %s: %s", link->host, why->text);
}

bool tls_link_closed(struct tls_link *link, struct err *err)
{
    guess(link, ECONNRESET);
    const char *after = link->asked_for_certificate && link->settings.identity == NULL
                            ? ", after it had asked for a client certificate"
                            : "";
    return err_set(err, ERR_NETWORK, ECONNRESET, "TLS with %s: the server closed the connection during the handshake%s",
                   link->host, after);
}

bool tls_link_is_address(const struct tls_link *link)
{
    unsigned char address[16];
    size_t len;
    return address_of(str_of(link->host), address, &len);
}

void tls_link_shaken(struct tls_link *link)
{
    free(link->peer);
    link->peer = NULL;
    explicit_bzero(link->settings.seed, sizeof link->settings.seed);
    link->settings.trust = NULL;
}

void tls_link_release(struct tls_link *link)
{
    tls_link_shaken(link);
    link->under.close(link->under.context);
}

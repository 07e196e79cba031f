/* TLS over a stream: which engine speaks it with which server (tls12.c, tls13.c), and what is remembered of a server
 * from one connection to the next. On a new connection, after a refusal by one engine, the other one
 * has its turn: the caller connects. */
#include "deliver/tls.h"

#include <errno.h>
#include <stdlib.h>

#include "deliver/peer.h"

static bool make_link(struct tls_link *link, struct str host, struct err *err)
{
    if (host.len > 0 && host.ptr[host.len - 1] == '.') {
        host.len--;
    }
    if (host.len == 0 || host.len > TLS_HOST_MAX || memchr(host.ptr, '\0', host.len) != NULL) {
        return err_set(err, ERR_USAGE, 0, "a host of %zu characters: 1 to %d are possible", host.len, TLS_HOST_MAX);
    }
    link->peer = calloc(1, sizeof *link->peer);
    if (link->peer == NULL) {
        return err_set(err, ERR_MEMORY, 0, "no memory for a TLS connection");
    }
    memcpy(link->host, host.ptr, host.len);
    return true;
}

void tls_session_forget(struct tls_session *session)
{
    if (session->ticket != NULL) {
        explicit_bzero(session->ticket, session->ticket_len);
        free(session->ticket);
    }
    explicit_bzero(session, sizeof *session);
}

/* A refusal of the first engine calls for the second, and stays so; what only looks like one, once. A session that the
 * second engine took up binds it to its version: without one it may do better. */
static void start_anew(struct tls_session *session, const struct tls_link *link)
{
    if (session != NULL) {
        bool had = session->ticket != NULL, guessed = session->guessed;
        tls_session_forget(session);
        session->again = TLS13 && link->other_may && (!link->second || (had && !link->is_guess));
        session->guessed = session->again && link->is_guess;
        session->second = session->again || (link->second && !guessed);
    }
}

bool tls_open(struct stream *under, struct str host, const struct tls_settings *settings,
              struct tls_session *session, uint64_t deadline_ns, struct stream *out,
              struct err *err)
{
    bool second = TLS13 && session != NULL && session->second;
    struct tls_link link = {.under = *under, .settings = *settings, .deadline_ns = deadline_ns, .second = second};
    if (!make_link(&link, host, err)) {
        under->close(under->context);
        return false;
    }
    if (second ? tls13_open(&link, session, out, err) : tls12_open(&link, session, out, err)) {
        if (session != NULL) {
            session->guessed = false;
        }
        return true;
    }
    start_anew(session, &link);
    return false;
}

bool tls_failed_by_config(const struct err *err)
{
    return (err->kind == ERR_NETWORK && err->number == EPROTONOSUPPORT) || err->kind == ERR_USAGE;
}

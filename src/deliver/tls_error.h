/*
 * tls_error: why a handshake failed, in one sentence with its remedy.
 */
#ifndef DELIVER_TLS_ERROR_H
#define DELIVER_TLS_ERROR_H

#include "deliver/peer.h"

struct tls_failure {
    int code;                /* BearSSL's: an error, or an alert + 256 */
    struct str host;
    const struct tls_settings *settings;
    const struct peer *peer; /* null: none any more */
    unsigned char first[3];  /* what the server's bytes began with */
    size_t first_len;
    bool asked_for_certificate;
    bool speaks_13; /* the engine that failed */
};

/* Always false. `number` becomes EPROTONOSUPPORT when someone has to change something, else ECONNABORTED. */
bool tls_error(struct err *err, const struct tls_failure *failure);

#endif

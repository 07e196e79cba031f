/*
 * tls13_chain: what BearSSL cannot verify, verified by mbedTLS: certificates with RSA-PSS signatures, RSA keys of up to
 * 8192 bits.
 */
#ifndef DELIVER_TLS13_CHAIN_H
#define DELIVER_TLS13_CHAIN_H

#include "deliver/peer.h"

/* Signatures, keys' sizes and who may sign; dates and names are the peer's. PEER_UNREADABLE: this engine does not know
 * the kind either. Memory: some 6 KB for each certificate, until it returns. */
peer_verify tls13_chain_verify;

#endif

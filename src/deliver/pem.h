/*
 * pem: certificates and keys as text.
 *
 * Takes one block after another from a text in which anything may stand between them, whether or
 * not the last line ends. Not in constant time: what is decoded is the user's own file, read once.
 *
 * Source: RFC 7468; RFC 1421 for the old heads ("Proc-Type: 4,ENCRYPTED").
 */
#ifndef DELIVER_PEM_H
#define DELIVER_PEM_H

#include "base/str.h"

struct pem_block {
    struct str label;  /* "CERTIFICATE" */
    struct str base64; /* with its line ends */
    bool encrypted;    /* by an old head */
};

/* The next block with its end; false when there is none. */
bool pem_next(struct str *text, struct pem_block *out);

/* At most this many bytes come of a block. */
static inline size_t pem_room(const struct pem_block *block)
{
    return block->base64.len / 4 * 3 + 3;
}

/* How many bytes there were; 0 when it is not base64. `out` has pem_room bytes. */
size_t pem_decode(const struct pem_block *block, unsigned char *out);

/* The same for any text of base64. */
size_t base64_decode(struct str text, unsigned char *out, size_t room);

#endif

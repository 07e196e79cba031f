/*
 * escape: texts as addresses and headers may hold them.
 *
 * Source: RFC 3986 2.3, RFC 4648 4, RFC 9110 5.5.
 */
#ifndef DELIVER_ESCAPE_H
#define DELIVER_ESCAPE_H

#include "base/str.h"

/* Percent-encodes all but letters, digits and "-._~". */
void escape_url(struct buf *out, struct str text);

void escape_base64(struct buf *out, struct str bytes);

/* Whether a text may be a header's value as it is: no control characters, a line end least of
 * all. */
bool escape_is_header(struct str text);

#endif

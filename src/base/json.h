/*
 * json: just enough of RFC 8259 to write headers and to read them back.
 *
 * Writing: json_text quotes a text; the rest of a document is written by its author. The output is
 * ASCII: characters above U+007E are \u escapes, malformed bytes are U+FFFD.
 *
 * Reading works on slices of the text, without a tree and without allocation: json_valid is called
 * once for the whole document (at most JSON_DEPTH_MAX nested values); after that a value is a slice,
 * json_member finds a member of an object, json_next steps through an array or object, and the
 * json_…_of functions say what a value is. A value that is not there is the slice {null, 0}; every
 * function accepts it and fails.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/str.h"

enum { JSON_DEPTH_MAX = 64 };

void json_text(struct buf *out, struct str text);

/* The same without the quotes, for a text that is written in parts. A part must end between
 * characters. */
void json_escaped(struct buf *out, struct str text);

bool json_valid(struct str document);

/* The value of the first member `key` (plain ASCII) of an object. */
struct str json_member(struct str object, const char *key);

/* Steps through an array (key may be null) or an object. `rest` starts as the whole value and is
 * the loop's state. */
bool json_next(struct str *rest, struct str *key, struct str *value);

/* Appends the text of a string value. */
bool json_text_of(struct str value, struct buf *out);
bool json_u64_of(struct str value, uint64_t *out);
bool json_bool_of(struct str value, bool *out);

#endif

/*
 * say: pillion's own sentences on standard error.
 *
 * "pillion: " comes first. On a terminal lines are broken at 76 columns with the rest indented by
 * two; elsewhere a message is one line, as collectors of logs want it. Control characters are
 * shown as '?'. One message is one write.
 */
#ifndef CLI_SAY_H
#define CLI_SAY_H

#include "base/str.h"

enum { SAY_COLUMNS = 76 };

/* Appends the message as it is shown; columns = 0 does not break lines. */
void say_format(struct str text, size_t columns, struct buf *out);

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes a result that was asked for to standard output; says why when that fails. */
bool say_result(struct str text);

/* Every line of `lines` is one message that begins with "warning: ". */
void say_warnings(struct str lines);

#endif

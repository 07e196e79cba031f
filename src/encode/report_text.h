/*
 * report_text: a profile's report for scripts and for people who ask a machine.
 *
 * Text: a head of "key: value" lines, then tables that stand apart by an empty line, each with a line of column names.
 * Columns are right-aligned numbers, then words without blanks; what may hold blanks comes last. Nothing depends on a
 * terminal or a locale. Whatever comes from a file is shown by utf8_visible, so a name is never more than its line.
 *
 * JSON: one object in ASCII that ends with a line end. Keys are only ever added. Amounts are integers of `unit`.
 *
 * docs/report.md describes both. Errors: none but the buffer's own limit.
 */
#ifndef ENCODE_REPORT_TEXT_H
#define ENCODE_REPORT_TEXT_H

#include "encode/report.h"

/* At most `top` functions, paths and processes. */
void report_text(const struct report *r, const struct profile *p, size_t top, struct buf *out);
void report_json(const struct report *r, const struct profile *p, size_t top, struct buf *out);

#endif

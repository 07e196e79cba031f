/*
 * value: one text into one value, as an option's row demands.
 *
 * Errors are half sentences that continue the option's name: `wants 1 to 10000 samples per second,
 * got "10k"`. A secret is never repeated.
 */
#ifndef CLI_VALUE_H
#define CLI_VALUE_H

#include "cli/request.h"

/* Stores what `text` says into the request. Not for actions. */
bool value_store(const struct option *row, const char *text, struct request *out, struct err *err);

void value_store_flag(const struct option *row, bool value, struct request *out);

/* Of a row with choices: those that are on when nobody says anything. */
void value_store_default_choices(const struct option *row, struct request *out);

/* 1/true/yes/on/y, 0/false/no/off/n, in any case. */
bool value_flag(const char *text, bool *out);

/* "smart, fp, dwarf or disabled" of what is listed and there is. */
void value_choices(const struct option *row, const char *last_join, struct buf *out);

/* "col,html,pprof" of those that hold by default */
void value_default_choices(const struct option *row, struct buf *out);

/* "1 to 10000", "1 s to 24 h", "8 MB to 16 GB" */
void value_range(const struct option *row, struct buf *out);

/* The text, quoted, cut at 60 bytes, control characters as '?'. */
void value_quote(const char *text, struct buf *out);

#endif

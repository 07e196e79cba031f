/*
 * utf8: names as every output format may hold them.
 *
 * Names come from symbol tables and foreign memory and may be any bytes. Formats that people and
 * other programs read are UTF-8: each byte that is not part of a well-formed sequence (Unicode
 * 15.0, table 3-7: no over-long forms, no surrogates, nothing above U+10FFFF) becomes U+FFFD.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/str.h"

/* The character at the front of `text`, taken off it. U+FFFD, and one byte taken, when malformed.
 * `text` is not empty. */
uint32_t utf8_take(struct str *text);

/* Whether all of it is well-formed. */
bool utf8_valid(struct str text);

/* Appends `text` with malformed bytes replaced. */
void utf8_add(struct buf *out, struct str text);

/* C0, DEL and C1: what moves a terminal's cursor. */
bool utf8_is_control(uint32_t character);

/* Shows nothing itself but changes how others are shown: bidirectional controls, separators, characters of no width. */
bool utf8_is_invisible(uint32_t character);

/* Appends `text` so that a person sees all of it: control characters and malformed bytes are "\x1b", invisible ones
 * "\u202e". */
void utf8_visible(struct buf *out, struct str text);

/* Appends as much of `text` as fits into `columns` of a terminal, and returns how many it takes. What would act on the
 * terminal (controls, line ends, changes of direction) and what is malformed is shown as \xNN of each byte. A character
 * takes one column, two where it is East Asian or an emoji, none where it combines: the rule of most terminals, not of
 * all. */
size_t utf8_add_shown(struct buf *out, struct str text, size_t columns);

/* Appends one character, at most U+10FFFF. */
void utf8_put(struct buf *out, uint32_t character);

#endif

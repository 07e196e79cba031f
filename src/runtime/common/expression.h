/*
 * expression: small regular expressions, as people write them to pick out arguments.
 *
 *     a  .  [a-z]  [^=]  \d \w \s  \.     one byte
 *     x*  x+  x?                          of what stands before
 *     xy  x|y  (x)  (?:x)
 *     ^  $                                the beginning and the end
 *
 * What fits anywhere in a text is found. The time is bounded by the length of both: there is no going back.
 */
#ifndef RUNTIME_COMMON_EXPRESSION_H
#define RUNTIME_COMMON_EXPRESSION_H

#include "base/err.h"
#include "base/str.h"

enum { EXPRESSION_STEPS_MAX = 128, EXPRESSION_DEPTH_MAX = 16 };

struct expression_step {
    uint8_t kind;
    int16_t a, b;       /* where it goes on, from here */
    uint32_t bytes[8];  /* a bit for each */
};

struct expression {
    struct expression_step at[EXPRESSION_STEPS_MAX];
    int count;
};

/* False: it is none, or too large, by the reason in `err`. */
bool expression_parse(struct expression *e, const char *text, struct err *err);

bool expression_finds(const struct expression *e, struct str text);

#endif

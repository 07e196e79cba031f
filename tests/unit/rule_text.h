/* rule_text: an unwind rule as one short text, so that tests compare words.
 *
 *     r7+8 ra-8 fp=          CFA = register 7 + 8, return address at CFA - 8, FP unchanged
 *     *(r6-8)+0 ra-8 fp*+0   CFA = *(register 6 - 8), FP at *(FP + 0)
 *     r31+0 ra:r30 fp-16     return address in register 30, FP at CFA - 16
 *     plt11, signal, end, none; fp? is a lost FP
 *
 * What is found from the CFA's base is written as its distance from the CFA, which is the same. */
#ifndef RULE_TEXT_H
#define RULE_TEXT_H

#include "unwind/rule.h"

#include <stdio.h>

static inline void rule_text_cfa(const struct unwind_rule *r, char *out, size_t room)
{
    if (r->kind == RULE_DEREF) {
        snprintf(out, room, "*(r%d%+d)%+d", r->cfa_reg, r->cfa, r->addend);
    } else if (r->kind == RULE_PLT) {
        snprintf(out, room, "plt%d", r->cfa);
    } else {
        snprintf(out, room, "r%d%+d", r->cfa_reg, r->cfa);
    }
}

static inline const char *rule_text(struct unwind_rule r)
{
    static char text[4][100];
    static unsigned turn;
    static const char *const kinds[] = {[RULE_NONE] = "none", [RULE_SIGNAL] = "signal",
                                        [RULE_END] = "end"};
    char *out = text[turn++ % 4], cfa[40], ra[20], fp[20];
    if (r.kind == RULE_NONE || r.kind == RULE_SIGNAL || r.kind == RULE_END) {
        return kinds[r.kind];
    }
    rule_text_cfa(&r, cfa, sizeof cfa);
    snprintf(ra, sizeof ra, r.ra_place == RA_REGISTER ? "ra:r%d" : "ra%+d",
             r.ra_place == RA_AT_BASE ? r.ra - r.cfa : r.ra);
    snprintf(fp, sizeof fp, r.fp_place == FP_SAME ? "fp=" : r.fp_place == FP_UNKNOWN ? "fp?"
                          : r.fp_place == FP_AT_FP ? "fp*%+d" : "fp%+d",
             r.fp_place == FP_AT_BASE ? r.fp - r.cfa : r.fp);
    snprintf(out, 100, "%s %s %s", cfa, ra, fp);
    return out;
}

#endif

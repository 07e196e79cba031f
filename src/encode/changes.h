/*
 * changes: which functions of two profiles differ by more than the chance of sampling.
 *
 * A profile is a number of samples, and the next run would have drawn others. For each function it is asked whether its
 * own samples, and those with its callees, could be of one rate before and now.
 *
 *   - Shares alone mislead: when one function grows, all others' shares shrink. So amounts are compared, on the scale
 *     that most functions agree upon (the median of their ratios; then the sums of those that it fits): what
 *     changed is what does not fit, and a second run that was twice as long changed nothing.
 *   - A function's own samples are tested against those of the functions that did not change (two proportions, with the
 *     skew of small counts). With its callees: its amount less the scale's, with the variance of both, of which what it
 *     has in common with the scale is taken out.
 *   - So many are tested that some would differ by chance: all of a comparison are marked wrongly in at most
 *     1 of 20 cases. Each function has a part of that twentieth as large as its part of the samples, and what is
 *     marked leaves its part to the others (Holm's method, weighted).
 *   - A caller of what is marked is marked if its amount with callees differs as well, by the usual 1.96 deviations: it
 *     is the same change once more.
 *   - Where functions surely vary more than independent samples would (they do, from run to run), the deviation is
 *     made larger, up to twice. Functions of the kernel vary with what else the machine does (interrupts): they say
 *     for themselves how much, twice at least, and have no say in the scale, unless the program is mostly kernel.
 *
 * Samples are those that were taken; time that was only accounted, like "[lost]", is none. Of profiles of other
 * values than time, and of those without CHANGES_SAMPLES_LEAST samples, nothing is told.
 *
 * Power: of 20,000 samples each, a function of half the time is marked in 9 of 10 cases when it takes 8 % more, one of
 * a tenth when it takes 17 % more; tests/bench/diff_noise.py measures it.
 *
 *     struct changes c;
 *     bool ok = changes_find(&c, &f->tally, f->p, f->base, err);
 *     … c.list, c.own[entry], c.all[entry] …
 *     changes_release(&c);
 */
#ifndef ENCODE_CHANGES_H
#define ENCODE_CHANGES_H

#include "encode/flame_data.h"

enum { CHANGES_SAMPLES_LEAST = 50 };

struct change {
    uint32_t entry;       /* of the tally */
    bool is_own;          /* of its own samples; else with callees, and no function below explains it */
    double was, now;      /* shares of the samples, 0 … 1 */
    double bound;         /* what their difference may be by chance */
    double ratio;         /* now of before, against what did not change: what was tested. 0: gone; negative: new */
};

struct changes {
    bool is_told;
    double samples[2];    /* now, before */
    size_t tested;        /* functions */
    size_t callers;       /* of these marked because of what they call, and hence not in the list */
    int8_t *own, *all;    /* by entry: -1 shrank, 1 grew, 0 within chance; with callees */
    VEC(struct change) list; /* the largest difference first */
};

/* Private parts of the tally are used and left as they were. ERR_MEMORY. */
bool changes_find(struct changes *c, struct flame_tally *tally, const struct profile *p, const struct profile *base,
                  struct err *err);
void changes_release(struct changes *c);

/* As text for a terminal, a line each: "grew    merge 50.3 % → 51.6 % (+1.3 points, ± 1.0; × 1.05)". */
void changes_write(const struct changes *c, const struct flame_tally *tally, struct buf *out);

/* The same for the page: a section, and what its script marks, as a member of the data block's header. */
void changes_put(struct page *page, const struct changes *c, const struct flame_tally *tally);
void changes_json(struct buf *json, const struct changes *c, const struct flame_tally *tally);

#endif

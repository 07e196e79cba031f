/*
 * fit: a profile as its reader wants it: with as many stacks as there is room for.
 *
 * A view of the profile is made that any encoder can write. The heaviest stacks stay; what the others count, in
 * every column, goes to a stack of the one frame "[dropped to fit]", so that all sums stay what they were. A stack's
 * weight is its share of all that its sample type counts. What was dropped before is dropped again: there is one such
 * stack. With rules->merges_threads threads of one program, container and application are one.
 *
 *     fit_init(&fit, p, &rules, FIT_BY_THREAD, write, &err)
 *     … write(&fit.view, …)
 *     fit_release(&fit)
 *
 * How much fits is found by writing: the whole once, then (when it is too large) a few guesses, the last of which
 * leaves at most a 32nd of the room unused, unless that takes more than FIT_TRIES.
 *
 * Memory: 40 bytes per sample, twice, and 32 per thread and process. The profile gets one frame and one node more.
 *
 * Errors: ERR_LIMIT when it is too large even without any stack; those of `write`.
 */
#ifndef ENCODE_FIT_H
#define ENCODE_FIT_H

#include "base/encode_rules.h"
#include "base/iface.h"
#include "profile/profile.h"

enum { FIT_TRIES = 12 };

/* Which dropped stacks stand apart. Where even these take more than half of the room there is one
 * in all. */
enum fit_apart { FIT_ONE, FIT_BY_PROCESS, FIT_BY_THREAD };

typedef bool fit_write(struct profile *p, const struct encode_rules *rules, struct sink *out, struct err *err);

struct fit {
    struct profile view; /* its samples, waits, occurrences, threads and processes are its own, all else is p's */
    struct fit_items *items;
};

bool fit_init(struct fit *fit, struct profile *p, const struct encode_rules *rules, enum fit_apart apart,
              fit_write *write, struct err *err);
void fit_release(struct fit *fit);

#endif

/*
 * origin_ask: the platform is asked where we run, while everything else goes on.
 *
 * On a thread of its own, for ASK_MAX_MS in all; nothing waits for it. Who is asked, and what, is the
 * table of origin/platform.h: nobody where neither the environment nor the machine's firmware tells
 * of a platform, and then there is no thread. What was learnt is there for origin_now as soon as a
 * platform has been asked, and so joins the first upload that is made after it.
 *
 * Never through a proxy, whatever the environment says; no redirect is followed; an address that
 * does not connect within a second is given up; a response of RESPONSE_MAX_BYTES or more, one that was
 * cut, and one without the platform's mark is none. A token stays here.
 *
 *     origin_ask_start(&here, get, context)   on here.facts nothing changes from then on
 *     origin_ask_stop(&here)                  cuts what waits; origin_release does it
 */
#ifndef CAPTURE_ORIGIN_ASK_H
#define CAPTURE_ORIGIN_ASK_H

#include "capture/upload/origin.h"

/* `get` is used before it returns only. */
void origin_ask_start(struct origin_here *here, bool confined,
                      struct str (*get)(void *context, const char *name), void *context);
void origin_ask_stop(struct origin_here *here);

#endif

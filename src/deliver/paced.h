/*
 * paced: a stream on which something has to move.
 *
 * Ends a wait after stall_ns without progress, and every call once its deadline has passed, also when bytes are
 * there: a server that sends one now and then cannot hold a request beyond its time. A write that makes no
 * progress while something can be read fails with EAGAIN; nothing is lost, it can be written again.
 */
#ifndef DELIVER_PACED_H
#define DELIVER_PACED_H

#include "base/iface.h"

/* Takes `under`, also when it fails (then it is closed). */
bool paced_open(struct stream *under, struct clock clock, uint64_t stall_ns, struct stream *out,
                struct err *err);

#endif

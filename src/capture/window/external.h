/*
 * external: facts for the header of collapsed stacks that another program has written into a file
 * (--external-metadata), in gProfiler's form:
 *
 *     {"static": {"key": "value"}, "application": {"PID": {"key": "value"}}}
 *
 *     external_init(&x, path, &log)
 *     external_note(&x, p)            into each profile; what it points to is lent until external_release
 *     external_release(&x)
 *
 * "static" is read once and holds for the run, "application" for one window: it is read again at the end of each. A
 * file that was changed more than EXTERNAL_AGE_S ago is not believed: its writer has ended. What is wrong with it is
 * told once. Used by the publisher's thread.
 */
#ifndef CAPTURE_WINDOW_EXTERNAL_H
#define CAPTURE_WINDOW_EXTERNAL_H

#include "capture/log.h"
#include "profile/profile.h"

enum { EXTERNAL_AGE_S = 300, EXTERNAL_MAX_BYTES = 1 << 20 };

struct external {
    const char *path; /* null: none */
    struct log *log;
    bool has_static;
    struct buf fixed, applications; /* "static" and "application", as a header has them */
    struct buf text;                /* the file, as it was read last */
    struct profile_external facts;
};

void external_init(struct external *x, const char *path, struct log *log);
void external_note(struct external *x, struct profile *p);
void external_release(struct external *x);

#endif

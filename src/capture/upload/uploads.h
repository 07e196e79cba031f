/*
 * uploads: the uploader of a run (uploader.h): started once the command runs, stopped last, within the grace period
 * that the end has.
 */
#ifndef CAPTURE_UPLOAD_UPLOADS_H
#define CAPTURE_UPLOAD_UPLOADS_H

#include "capture/shared.h"
#include "capture/upload/uploader.h"

struct uploads {
    struct shared *shared;
    struct uploader *uploader; /* null: windows are not uploaded */
    uint64_t failures;         /* before uploads_hurry */
};

/* Whoever attaches and asked for uploads alone has nothing without them; a command runs in any case, and has files. */
bool uploads_are_all(const struct settings *settings);

/* Starts the uploader, when it is wanted; after the command was let go. False when it was wanted and cannot be had. */
bool uploads_begin(struct uploads *u);

/* What waits is tried at once. A spool is no safe place where it ends with the container. */
void uploads_hurry(struct uploads *u);

/* After that: does anything wait still, and has nothing failed? */
bool uploads_wait(const struct uploads *u);

/* How long sending may take when so much of the end has passed; `init`: a parent waits that is killed sooner. */
uint64_t uploads_grace_ms(uint64_t passed_ms, bool init);

/* Sends what is left. The end began at finish_ns, monotonic. */
void uploads_end(struct uploads *u, uint64_t finish_ns);

uint64_t uploads_cpu_ns(const struct uploads *u);

#endif

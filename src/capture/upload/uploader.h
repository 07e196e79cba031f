/*
 * uploader: the threads that send finished windows to back ends, and keep what could not be sent.
 *
 * The publisher hands each window over, encoded; a slow or absent server delays nothing. Every back
 * end has a thread of its own, so that one that does not response holds up no other. Kept in memory is what an
 * eighth of --max-memory has room for, 512 deliveries per back end at most (the oldest goes first, counted); with a
 * spool directory all that is not yet sent lies there as well (deliver/spool.h), is taken up after a
 * restart, and is bounded by size and age. Failures are treated by their class (enum verdict), each
 * reported once per cause. At the end what is left gets one more chance, for at most grace_ns.
 *
 * A window of full length is first tried after this instance's offset within the period, the
 * backlog at a pace that a fleet can have together (deliver/schedule.h); neither in a run of one window,
 * nor on uploader_refresh, nor at the end.
 *
 *     uploader_start(settings, confined, log, err)
 *     uploader_submit(up, profile)       on the publisher's thread, after the window was named
 *     uploader_counts(up, &counts)
 *     uploader_stop(up, grace_ns)
 *
 * With a spool a window is in a file before it is tried for the first time, and the file is removed
 * when it was taken, or will never be: a profiler that is killed loses none. What a server took but
 * could not say so is sent again, and may then be there twice. What runtimes made of themselves goes with the window
 * where the service takes it: of the process with the most CPU time, or else of the first, in the same delivery, of
 * others in deliveries of their own.
 *
 * Memory: encoded windows take an eighth of --max-memory at most; a window larger than that is not
 * kept, nor read from the spool. What is read from there, one file for each back end, is on top.
 * Windows are encoded and requests made one at a time, over all back ends; what that takes is left
 * free by whoever fills profiles (uploader_making_times). Each thread has 256 KiB of stack, of
 * which it touches some 60.
 */
#ifndef CAPTURE_UPLOADER_H
#define CAPTURE_UPLOADER_H

#include "capture/log.h"
#include "capture/settings.h"
#include "deliver/backend.h"
#include "profile/profile.h"

struct uploader;

struct uploader_counts {
    uint64_t sent, waiting, spooled, dropped; /* deliveries */
    uint64_t attempts, failures, bytes;
    char trouble[200]; /* the last failure's sentence, "" when the last attempt was good */
};

/* Overwrites the secrets in our own arguments and environment, and leaves no core from now on. */
struct uploader *uploader_start(const struct settings *settings, bool confined, struct log *log, struct err *err);

/* Before the first window: what may be used is not what --max-memory says, but this. */
void uploader_limit(struct uploader *up, uint64_t memory_bytes);

/* Making a request of a window takes for a moment so many times what its profile has. */
unsigned uploader_making_times(const struct uploader *up);

/* Encoded windows have at most so many bytes. */
size_t uploader_most_bytes(const struct uploader *up);

/* Does some back end take what runtimes make beside profiles, too: figures and traces? */
bool uploader_takes_sets(const struct uploader *up);

void uploader_submit(struct uploader *up, struct profile *p);
void uploader_counts(struct uploader *up, struct uploader_counts *out);

/* CPU time that its threads have used so far. */
uint64_t uploader_cpu_ns(const struct uploader *up);

/* Where its windows come from. */
const struct origin *uploader_origin(const struct uploader *up);

/* "studio, pyroscope" */
void uploader_describe(const struct uploader *up, char *out, size_t out_bytes);

/* HUP: tokens and certificates are read again, and what waits is tried at once. */
void uploader_refresh(struct uploader *up);

/* How many deliveries are lost with it: not sent, and in no spool. */
uint64_t uploader_stop(struct uploader *up, uint64_t grace_ns);

#endif

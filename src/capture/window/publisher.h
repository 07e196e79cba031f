/*
 * publisher: the thread that turns a finished window into files and a summary.
 *
 * The sampler hands a whole profile over and gets an empty one back; a slow disk or a large symbol
 * table delays the next hand-over, never a sample. At most one window waits.
 *
 *     publisher_new(...), and publisher_start once the profiler may have threads
 *     if (publisher_ready(pub)) profile = publisher_submit(pub, profile);
 *     publisher_stop(pub);        waits for the window that is being published
 *
 * Memory: names and the profile of a window are kept for the next one, unless three quarters of
 * what may be used, without what is set aside, are resident once it was named. Then names go before
 * the files are made, and the profile's memory after it. A profile that is to be uploaded has a
 * third of what is left, where requests take twice its size (uploader_making_times).
 *
 * Ownership: the publisher owns a submitted profile until publisher_submit returns the other one,
 * cleared. Profiles that runtimes made are published with it.
 */
#ifndef CAPTURE_PUBLISHER_H
#define CAPTURE_PUBLISHER_H

#include "capture/follow/images.h"
#include "capture/shared.h"
#include "capture/window/outputs.h"
#include "capture/window/whole_run.h"

struct publisher;
struct uploader;

enum { PUBLISHER_PROFILE_SHARE = 4 }; /* of the memory that may be used is a profile's bound */

/* Of what may be used is kept free for reading the kernel's symbols and writing files. */
uint64_t publisher_aside_bytes(uint64_t memory_bytes);

/* Of what is shared it uses the settings, the log and the own cost. */
struct publisher *publisher_new(struct shared *shared, struct images *images, size_t profile_max_bytes,
                                struct err *err);

/* Its thread. `confined`: this process has given up rights, and the thread is to go on with that (os/confine.h). */
bool publisher_start(struct publisher *pub, bool confined, struct err *err);

/* Before the first window ends: has every one handed to the uploader after its files were written.
 * `present` is the profile that is being filled. Null: none can be, and the usual files are written
 * when none were asked for. */
void publisher_upload(struct publisher *pub, struct uploader *up, struct profile *present);

enum { PUBLISHER_NAMES_SHARE = 4 }; /* of a profile's bound is left for the names that frames get */

/* Has it try at once whether files can be written, and say so when not: better than a minute later. */
void publisher_try(struct publisher *pub);

/* Before publisher_start: has windows shown instead of written. */
void publisher_show(struct publisher *pub, const struct whole_run_viewer *viewer);

/* Where it writes, in words. */
const char *publisher_dir(const struct publisher *pub);

/* Has it finished with the window before? */
bool publisher_ready(struct publisher *pub);

/* Has it give back, between two windows, all that it can make again. */
void publisher_release_caches(struct publisher *pub);

/* CPU time that its thread has used so far. */
uint64_t publisher_cpu_ns(const struct publisher *pub);

/* Waits until ready, takes `full` and returns an empty profile. */
struct profile *publisher_submit(struct publisher *pub, struct profile *full);

/* What is submitted next is the run's last window: its summary, or that of the whole run, has more (run_end.h).
 * By who submits. */
void publisher_expect_last(struct publisher *pub);

/* Waits until what was submitted is published. */
void publisher_wait(struct publisher *pub);

/* After the last window: waits for it, and has the files of the whole run written, if they are wanted. */
void publisher_end_run(struct publisher *pub);

/* Finishes what was submitted and ends the thread. The number of windows whose files could not all be
 * written. */
unsigned publisher_stop(struct publisher *pub);

#endif

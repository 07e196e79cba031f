/*
 * recording: the raw inputs of a run, kept so that the run can be repeated without any right.
 *
 * Concept. A recorder stands between capture and the system (world.h) and between the rings and the
 * session, and writes down what passes: ring records in the order they were drained, texts of /proc, the
 * pages of mapped files and of processes' memory that were read. A recording played back answers the
 * same questions with the same bytes, and says of everything else that it is not there. So it holds
 * what the pipeline asked when it was made, no more: a few hundred KiB for a program of 100 MB.
 *
 * Writing. recorder_new; recorder_world and recorder_observer go to capture_run (capture/observer.h);
 * recorder_release. The file is made when the observer begins. The sampler and the publisher may use a
 * recorder at the same time. A full disk ends the recording, never the run: the observer's end reports it.
 *
 * Reading. recording_open takes the whole file; recording_world answers from it; recording_replay hands
 * the steps back in their order. recording_release.
 *
 * Memory differs from moment to moment: the pages of a process are kept per sample, named by its time.
 *
 * Format: gzip of "PILLREC1" and chunks {u8 kind, u32 length, bytes}, numbers little-endian; the kinds
 * and their fields are the enum and the functions in recording.c. Not for exchange: a recording is
 * read by the version of the format that wrote it.
 */
#ifndef LAB_RECORDING_H
#define LAB_RECORDING_H

#include "capture/observer.h"
#include "capture/world.h"

/* ---- writing ---- */

struct recorder;

/* `path` and `world` are borrowed. */
struct recorder *recorder_new(const char *path, const struct world *world);
const struct world *recorder_world(struct recorder *r);
struct observer recorder_observer(struct recorder *r);
void recorder_release(struct recorder *r);

/* ---- reading ---- */

struct recording;

struct recording *recording_open(const char *path, struct err *err);
void recording_release(struct recording *r);
const struct observed_format *recording_format(const struct recording *r);
struct world recording_world(struct recording *r);

struct recording_steps {
    void (*target)(void *context, uint32_t pid, bool running);
    void (*ring)(void *context, const void *record, size_t len);
    void (*round)(void *context, bool last);
    void *context;
};
void recording_replay(struct recording *r, const struct recording_steps *steps);

#endif

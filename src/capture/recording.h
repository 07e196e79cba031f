/*
 * recording: the raw inputs of a run, kept so that the run can be repeated without any right.
 *
 * Concept. A recorder stands between capture and the system (world.h) and between the rings and the
 * session, and writes down what passes: ring records in the order they were drained, texts of /proc, the
 * pages of mapped files and of processes' memory that were read. A recording played back answers the
 * same questions with the same bytes, and says of everything else that it is not there. So it holds
 * what the pipeline asked when it was made, no more: a few hundred KiB for a program of 100 MB.
 *
 * Writing. recorder_open; recorder_world in place of world_here; recorder_target, recorder_ring and
 * recorder_round as things happen; recorder_close. The sampler and the publisher may use it at the same
 * time. A full disk ends the recording, never the run: recorder_close says it.
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
#ifndef CAPTURE_RECORDING_H
#define CAPTURE_RECORDING_H

#include "capture/world.h"

struct recording_format {
    uint32_t frequency_hz;
    uint64_t sample_type, registers; /* the mask of registers tells the processor */
    uint8_t cfi_only;       /* made with --perf-mode dwarf */
};

/* ---- writing ---- */

struct recorder;

struct recorder *recorder_open(const char *path, const struct world *world,
                               const struct recording_format *format, struct err *err);
const struct world *recorder_world(struct recorder *r);

/* A process that is followed from here on; with `running`, one whose mappings are read from /proc. */
void recorder_target(struct recorder *r, uint32_t pid, bool running);
void recorder_ring(struct recorder *r, const void *record, size_t len);

/* All rings were drained once; `last`: and what waits was handed out. */
void recorder_round(struct recorder *r, bool last);

/* False, with the reason, when not everything could be written. `r` is gone in any case. */
bool recorder_close(struct recorder *r, struct err *err);

/* ---- reading ---- */

struct recording;

struct recording *recording_open(const char *path, struct err *err);
void recording_release(struct recording *r);
const struct recording_format *recording_format(const struct recording *r);
struct world recording_world(struct recording *r);

struct recording_steps {
    void (*target)(void *context, uint32_t pid, bool running);
    void (*ring)(void *context, const void *record, size_t len);
    void (*round)(void *context, bool last);
    void *context;
};
void recording_replay(struct recording *r, const struct recording_steps *steps);

#endif

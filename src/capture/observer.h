/*
 * observer: what a caller of capture_run may see of the raw inputs of a run.
 *
 * Concept. Capture asks the system through a struct world (world.h) and drains rings. Whoever stands
 * between capture and the system passes a world of its own, and an observer that is called for each ring
 * record. The product passes world_here() and no observer; the tests' recorder writes both down.
 *
 * Order. `begin` once, when the perf events are open and before any other call; `target`, `ring` and
 * `round` as things happen, from the sampler's thread; `end` last, when nothing is asked of the world any
 * more, unless the run failed before it began. The observer outlives the run.
 *
 * An observed run depends on its ring records alone: no runtime is read, no burst is made, the
 * profiler's own budget is not enforced, and mapped files stay open. Without perf events it fails.
 */
#ifndef CAPTURE_OBSERVER_H
#define CAPTURE_OBSERVER_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct observed_format {
    uint32_t frequency_hz;
    uint64_t sample_type, registers; /* the mask of registers tells the processor */
    uint8_t cfi_only;                /* made with --perf-mode dwarf */
};

struct observer {
    /* False ends the run with this error. */
    bool (*begin)(void *context, const struct observed_format *format, struct err *err);
    /* A process that is followed from here on; with `running`, one whose mappings are read from /proc. */
    void (*target)(void *context, uint32_t pid, bool running);
    void (*ring)(void *context, const void *record, size_t len);
    /* All rings were drained once; `last`: and what waits was handed out. */
    void (*round)(void *context, bool last);
    /* False fails the run with this error. */
    bool (*end)(void *context, struct err *err);
    void *context;
};

#endif

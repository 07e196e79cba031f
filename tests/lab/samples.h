/*
 * samples: the samples of a recording, kept in memory with what was mapped where.
 *
 * For measurements and comparisons. The records go through the product's own order, targets and
 * images; then every sample stays, with its registers, its copy of the stack and its process's
 * mappings, and can be unwound as often as wanted and by whomever.
 *
 * A life is a process from one exec to the next. Its mappings are those of the sample at hand
 * while the recording is played, later those of its last sample: code that was unloaded and
 * replaced within a life is then seen as what replaced it.
 */
#ifndef LAB_SAMPLES_H
#define LAB_SAMPLES_H

#include "capture/follow/targets.h"
#include "recording.h"
#include "sample/order.h"
#include "unwind/unwind.h"

struct lab_life {
    uint32_t pid;
    uint64_t space; /* of the target when `maps` was copied */
    VEC(struct mapping) maps; /* by start */
};

struct lab_sample {
    uint64_t time_ns;
    uint32_t pid, tid, life;
    struct unwind_registers registers;
    unsigned char *stack;
    size_t stack_len;
};

struct samples {
    struct recording *recording;
    struct world world;
    struct record_format format;
    struct images images;
    struct targets targets;
    struct order order;
    struct map life_of; /* pid to index */
    VEC(struct lab_life) lives;
    VEC(struct lab_sample) all; /* in time order; those with registers of a 64-bit process */
    uint64_t without;           /* samples that have none */
    void (*each)(void *context, const struct lab_sample *sample);
    void *context;
};

/* With `each`, hands every sample out at its place in the recording. */
bool samples_load(struct samples *s, const char *path,
                  void (*each)(void *context, const struct lab_sample *sample), void *context,
                  struct err *err);
void samples_release(struct samples *s);

/* The executable mapping of the sample's process that holds `address`, or null. */
const struct mapping *samples_mapping(const struct samples *s, const struct lab_sample *sample,
                                      uint64_t address);

/* The process's memory as it was read for this sample. Good until the next call. */
struct memory_reader samples_memory(struct samples *s, const struct lab_sample *sample);

#endif

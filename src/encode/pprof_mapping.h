/*
 * pprof_mapping: which mappings a pprof file has, and in which order.
 *
 * Every module that holds a frame is one mapping, whose number is the module's id; a kind of code
 * that has frames without a module is one more, numbered behind the modules. The first in `order` is
 * the main program, by which tools name the profile.
 */
#ifndef ENCODE_PPROF_MAPPING_H
#define ENCODE_PPROF_MAPPING_H

#include "profile/profile.h"

struct pprof_mapping {
    uint64_t start, limit, file_offset;
    bool used, has_functions, has_files, has_lines, has_inlines;
};

struct pprof_mappings {
    struct pprof_mapping *at; /* by number: module ids, then kinds */
    size_t count;
    uint32_t *order; /* the used ones */
    size_t used;
};

/* Of the frames that `used` holds for (functions.h); null: of all. */
bool pprof_mappings_init(struct pprof_mappings *m, const struct profile *p, const uint8_t *used, struct err *err);
void pprof_mappings_release(struct pprof_mappings *m);

/* The number of the mapping a frame lies in, 0 none. */
uint32_t pprof_mapping_of(const struct profile *p, const struct frame *frame);

/* Where the frame was at run time. */
uint64_t pprof_address_of(const struct profile *p, const struct frame *frame);

#endif

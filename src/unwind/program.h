/*
 * program: runs the programs of CIEs and FDEs, see cfi.h. What the operations and expressions mean:
 * DWARF 5 sections 6.4.2 and 2.5.
 */
#ifndef UNWIND_PROGRAM_H
#define UNWIND_PROGRAM_H

#include "unwind/cfi.h"

/* Runs `program` on *state. With a `row`, as cfi_each_row for the code [start, limit); without one,
 * a CIE's, which only changes the state. */
bool cfi_run(const struct cfi_machine *machine, const struct cfi_cie *cie, struct cursor program,
             struct cfi_state *state, uint64_t start, uint64_t limit,
             bool (*row)(void *context, uint64_t address, const struct unwind_rule *rule),
             void *context);

#endif

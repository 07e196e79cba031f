/*
 * code: joins the namer with runtimes that know names of code: tables in files, and generated code; and the unwinder
 * with those whose tables tell how large frames are.
 *
 * Asked by the publisher; depths by the sampler. `rows` is the registry (runtime.h), which ends with null.
 */
#ifndef CAPTURE_CODE_H
#define CAPTURE_CODE_H

#include "runtime/generated/jit.h"
#include "runtime/runtime.h"
#include "unwind/table.h"

/* The first row that knows the file's code. False: none does. `elf` is borrowed until the source is closed. */
bool code_of_file(const struct runtime *const *rows, struct elf *elf, struct code_source *out);

/* What the first row that knows the file's code tells of its frames, for its unwind table. Opened when it is asked
 * first. Without memory it is empty. `elf` is borrowed until it is released. */
struct unwind_depths code_depths(const struct runtime *const *rows, struct elf *elf);

/* Names that a perf map or jitdump told, as the first row that knows them reads them. `names` is borrowed. Without
 * memory the source is empty. */
void code_of_generated(const struct runtime *const *rows, struct jit_names *names, struct code_source *out);

/* Appends to `out` what a name in a perf map or jitdump means to people, by the first row that reads it. */
bool code_read_name(const struct runtime *const *rows, struct str raw, struct buf *out, struct runtime_named *named);

#endif

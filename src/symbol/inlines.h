/*
 * inlines: which functions were inlined at an address, and the source lines, from DWARF.
 *
 * Concept. For the publisher: given the image's DWARF (in the file itself or its debug file) and an
 * address, the chain of inlined functions innermost first, each with the file and line where it is
 * in it, the last one being the function that really exists. The address table that a file may have
 * (.debug_aranges) is optional in practice, so a list of compile units by their ranges is built
 * once.
 *
 * Costs. Sections stay in the file (dwarf.h): listing the units reads about 1 KB per unit; a unit
 * is read whole when an address falls in it. A look-up is bounded by the deadline given: what is
 * not done by then is answered 0, counted in inlines_late, and the next one goes on where listing
 * was. Memory is bounded by INLINES_MAX_BYTES; a packed section or a unit larger than that is as if
 * it were not there.
 *
 * Call order. inlines_open; where inlines_alternate_path tells one, open that file and hand it to
 * inlines_alternate; inlines_lookup per address, best in rising order; inlines_release. One thread
 * per handle.
 *
 * The last function may be without a name: assembler code has lines only.
 *
 * What is not told: functions of split units (their .dwo files are not looked for) and the file of
 * a call site in a line table that is damaged.
 *
 * Format: DWARF 2 to 5; .gnu_debugaltlink (dwz): a path, NUL, the build id of that file.
 */
#ifndef SYMBOL_INLINES_H
#define SYMBOL_INLINES_H

#include "profile/profile.h"
#include "symbol/files.h"

enum { INLINES_MAX_BYTES = 64 << 20 };

struct inlines;

/* Null with `err` set when the image has no DWARF or it is packed in a way not known here
 * (ERR_UNSUPPORTED). `files` is borrowed. */
struct inlines *inlines_open(struct symbol_files *files, struct err *err);
void inlines_release(struct inlines *inlines);

/* Where the file may be that dwz moved what several files share to: attempt 0 is the path that this
 * file names, 1 that of its build id (some name a path relative to their own folder, which is not
 * known here). "" when there is no such attempt. Borrowed. */
enum { INLINES_ALTERNATE_ATTEMPTS = 2 };
const char *inlines_alternate_path(const struct inlines *inlines, unsigned attempt);

/* That file, which must have the build id that was asked for. The reader is borrowed until
 * inlines_release. */
bool inlines_alternate(struct inlines *inlines, const struct memory_reader *file, struct err *err);

/* Names are those of DWARF: linkage names (to be demangled) in system_name where there are,
 * plain ones in name. Texts are borrowed until inlines_release. Returns how many of out[max]
 * were filled; 0: nothing is known, or the deadline (CLOCK_MONOTONIC, ns, as `clock` tells) has
 * passed. */
size_t inlines_lookup(struct inlines *inlines, uint64_t address, uint64_t deadline_ns,
                      const struct clock *clock, struct source_line *out, size_t max);

/* Look-ups that the deadline ended. */
uint64_t inlines_late(const struct inlines *inlines);

/* Memory held. */
size_t inlines_bytes(const struct inlines *inlines);

#endif

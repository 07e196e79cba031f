/*
 * dump: the text of a Go program's goroutines, taken apart (waits.h says what becomes of it).
 *
 * Call order: go_dump_next for one block after another, over what is left of the text. A block ends before an empty
 * line or the next line that begins a goroutine; one that does not begin so is damaged. What it gives borrows the text
 * and the struct it is given in, which therefore is not copied.
 *
 * Format: Go source src/runtime/traceback.go.
 */
#ifndef RUNTIME_GO_DUMP_H
#define RUNTIME_GO_DUMP_H

#include "runtime/go/table/table.h"

enum { GO_DUMP_FRAMES_MAX = 512 };

struct go_goroutine_head { /* the first line */
    uint64_t id;
    struct str state;
    uint64_t minutes; /* that it has been waiting */
    bool is_locked, is_leaked;
};

struct go_goroutine {
    struct go_goroutine_head head;
    size_t count;
    struct go_frame frames[GO_DUMP_FRAMES_MAX]; /* leaf first, at least one; a word in brackets has no file */
    char omitted[48];                           /* "[50 frames omitted]" */
};

/* False: this line, without its end, does not begin a goroutine. */
bool go_dump_head(struct str line, struct go_goroutine_head *out);

/* Takes the next block off the text; *damaged: it is no goroutine. False: there is none. */
bool go_dump_next(struct str *rest, struct go_goroutine *out, bool *damaged);

#endif

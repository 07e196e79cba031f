/*
 * collapsed_read: collapsed stacks of several writers into a profile.
 *
 * Three dialects, told apart per file:
 *   - a first line "# {…}" (gProfiler version 1 and 2, pillion): it says whether lines begin with an
 *     index and a container, which window it was, and what one count stands for;
 *   - no such line, but the first lines all begin with "<number>;": the same without its header;
 *   - else plain stacks, "name;frame;frame count". When some line has only one field, the first
 *     field cannot be the name of a process; then all fields are frames and the process is "all".
 *
 * A count is worth the period: "period_ns" of our own header, else one second / the frequency the
 * header names, else the period the profile has already, else COLLAPSED_PERIOD_NS. Frame kinds come
 * from their suffixes (collapsed_kind); a stack that is only one of the accounts' names is that
 * account. Processes come with their ids when our header describes them.
 *
 * Damage. A line without a count, with a count of 0 or one that is no number is skipped and counted
 * in `damage`; a file of which no line could be read, or whose header is broken, is ERR_MALFORMED,
 * with the number of the line. An empty profile (a header and nothing else) is no error.
 *
 * The bytes are read once, in place, line by line; nothing is kept of them.
 */
#ifndef ENCODE_COLLAPSED_READ_H
#define ENCODE_COLLAPSED_READ_H

#include "profile/profile.h"

struct collapsed_damage {
    uint64_t lines;      /* how many were skipped */
    uint64_t first_line; /* where the first of them stands, counted from 1 */
};

/* `type` is the sample type that is wanted, "" any: a file holds one, "cpu" unless our own header names another one.
 * ERR_USAGE when it is not that, and the sentence says which it is. */
bool collapsed_read(struct profile *p, struct str file, struct str type, struct collapsed_damage *damage,
                    struct err *err);

#endif

/*
 * flame: a profile as one self-contained HTML page with an interactive flame graph.
 *
 * The page needs no network, no other file and no server. What a reader sees without running its
 * script (header, what was not seen, the 20 heaviest functions, the processes) is written as plain
 * HTML; the call tree follows as one block of data, and a constant script draws it.
 *
 * flame_write writes one profile, flame_write_diff compares `p` with `base` relative to equal
 * totals. Frames must be named. Both add a few strings to the profiles (process labels) and change
 * nothing else in them. They build a fold (40 bytes per node, profile/fold.h) and stream it out:
 * beyond the fold they need about 0.4 MB, 60 bytes per distinct name and 12 per distinct (caller,
 * callee) pair, never the file as a whole.
 *
 * flame_write offers all that the profile has (flame_types.h): CPU time first, in the static part and
 * in the first data block, then each further sample type in a block of its own. Of a profile that
 * holds events alone the first is one of them. Types are built, written and freed one after the
 * other. A further one is left out when the page would be larger with it than FLAME_PAGE_MAX_BYTES
 * (its block is made aside to know that), or when its file cannot be read: the page says so at its
 * end. Of more than FLAME_TYPES_MAX the last are passed over. A comparison is of one type.
 *
 * A profile with moments (profile/moments.h) has them in the first data block, of CPU time, for the strip of time above
 * the graph. Of more than FLAME_MOMENTS_MAX neighbouring steps are joined, until there are as few or the window has
 * only FLAME_STEPS_MIN: an hour is known from end to end, less finely. That needs 8 bytes per sample, beside the fold.
 * A comparison and further types have none.
 *
 * Errors: ERR_MEMORY, or whatever the sink reports; part of the file may have been written then.
 *
 * Safety. Names come from foreign processes. In the data block they are base64, which no HTML
 * parser can misread; in the static part they pass through one escape function. The page carries a
 * content security policy that allows exactly the embedded script and style, by hash, and no
 * connection to anywhere.
 *
 * Data blocks, version 3. Each is an element `script` of a type that no browser runs. The first, with
 * id "data", stands before the page's script and is that of the static part. Those of further types,
 * "data1", "data2" … follow the script, so that the first graph waits for none of them; then, if there
 * is any, a `select` with id "type": an option per block, its value the block's number, its text the
 * label. There is no option 0 when the first block's tree has no weight. Each block is whole by
 * itself: it has its own header (of which "value", "unit" and "noun" say what is counted, absent for
 * CPU time), places, names and tree. A block is base64 (with line feeds) of a raw deflate stream of
 *
 *     header   length, JSON text (UTF-8; invalid bytes are replaced by the reader)
 *     places   count, then each front-coded: length of the prefix shared with the one before,
 *              length of the rest, the rest. Files and libraries; place 0 is not stored: unknown
 *     names    count, then each front-coded in byte order, followed by kind and place, and where the kind's names
 *              have a file and line (struct language), by the function's first line (0: unknown, or functions of
 *              that name begin at several), the number of lines it executed, at most FLAME_LINES_MAX, heaviest
 *              first, and each with its thousandths of the function's time
 *     tree     node count n without the root, then four lists, nodes in pre-order, heaviest child
 *              first:
 *       shape     n numbers: levels to climb from the previous node (at first the root) before this
 *                 node is its child
 *       weight    n numbers: 0 for no time of its own, else 1 + whole units
 *       rest      only if the header's "exact" is false: per node with own time, nanoseconds beyond
 *                 the whole units
 *       name      n numbers: the place (from 1) of the name in the list of names known below the
 *                 same caller *name*, anywhere in the tree; 0 for one not in the list, followed by
 *                 the index of the name. The root counts as the name after the last
 *
 *     times    only if the header has "steps", a number, and "step_ns", how long one is; the first begins at
 *              "start_ms". When samples were taken, three lists of the nodes with own time, in pre-order:
 *       count     twice the number of the node's steps with time, and 1 more when part of its time has none
 *       step      those steps: the first, then how many later than the one before
 *       weight    if the node has steps: of its time without one, if any, and of each step. Its own time is shared out
 *                 by these; what they are a number of is not told
 *
 * The lists of callees are learnt alike by writer and reader. Each entry counts its uses. A name
 * not in the list is appended with count 1, or replaces the last entry of a list that has
 * FLAME_CALLEES_MAX. A name found is counted and moves forward past all with a smaller count.
 *
 * All numbers are unsigned LEB128. Weights are nanoseconds, or of what is no time a number of it (the
 * names above say nanoseconds all the same), in units of 1. A comparison has a second tree, that of
 * `base`; the name lists learnt from the first go on. Kinds: enum frame_kind, then
 * FLAME_KIND_PROCESS … Header fields are listed where they are written, in flame_block.c. A tree
 * deeper than FLAME_DEPTH_MAX is cut: what lies below becomes one frame "[truncated]" per cut, with the
 * time of everything under it.
 */
#ifndef ENCODE_FLAME_H
#define ENCODE_FLAME_H

#include "base/encode_rules.h"
#include "base/iface.h"
#include "base/str.h"
#include "profile/profile.h"

enum {
    FLAME_FORMAT_VERSION = 3,
    FLAME_KIND_PROCESS = 64,
    FLAME_KIND_THREAD,
    FLAME_KIND_CONTAINER,
    FLAME_DEPTH_MAX = 65535,
    FLAME_CALLEES_MAX = 127,
    FLAME_LINES_MAX = 5,
    FLAME_MOMENTS_MAX = 400000,     /* about 1 MB of a page */
    FLAME_STEPS_MIN = 100,
    FLAME_TYPES_MAX = 64,           /* beside the first */
    FLAME_PAGE_MAX_BYTES = 2500000, /* further ones make no larger page */
};

bool flame_write(struct profile *p, struct sink *out, struct err *err);

/* `words`, if not null, receives what grew and shrank as lines of text (changes.h). Of `rules` the reader of sources is
 * looked at; it may be null. */
bool flame_write_diff(struct profile *p, struct profile *base, const struct encode_rules *rules, struct sink *out,
                      struct buf *words, struct err *err);

#endif

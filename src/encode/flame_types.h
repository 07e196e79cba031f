/*
 * flame_types: the sample types that a flame graph page can offer beside CPU time, one after the other, each as a
 * profile of its own.
 *
 * Of the window itself what its threads waited ("off_cpu", and with CPU time "wall"), and what was counted at its
 * stacks (its event types). Then of what runtimes made in pprof's form (profile/runtime_profile.h), file type by file
 * type, those of all processes in one: there is a box per process, as there is of CPU time. Of a file's types the
 * last comes first, the one that pprof's own tools show unless asked. Types without a name or without weight are
 * passed over.
 *
 *     flame_types_init(&t, p);
 *     while (flame_types_next(&t)) { … t.label, t.view, or t.why … }
 *     flame_types_release(&t);
 *
 * A label is the type's name, and of a runtime's with the file in brackets, "delay (mutex)", but for names that tell
 * it themselves ("inuse_space", "goroutine"). It is made of foreign bytes.
 *
 * Ownership: the view shares all with the profile that it is of, but its samples; strings that are added to it stay
 * that profile's. It is gone with the next call. While it is there nobody else adds to that profile.
 *
 * Memory: a type's samples (24 bytes per stack), and one file type's files, read: as much as half of the window's own
 * bound, beside them for a while a file unpacked, as much again. Stacks that do not fit are "[lost]"; a larger file
 * is not read.
 */
#ifndef ENCODE_FLAME_TYPES_H
#define ENCODE_FLAME_TYPES_H

#include "profile/profile.h"

enum { FLAME_TYPE_LABEL_MAX = 96 };

struct flame_types {
    char label[FLAME_TYPE_LABEL_MAX];
    struct profile view;
    struct err why;       /* its kind is not ERR_NONE: files of type `label` cannot be read, and there is no view */
    /* Private. */
    struct profile *p, *of; /* the window; whose types these are: it, or `read` */
    struct profile read;
    bool has_view, has_read;
    size_t type;          /* the next one of `of` */
    size_t file;          /* the next place in p->of_runtimes */
};

void flame_types_init(struct flame_types *t, struct profile *p);
bool flame_types_next(struct flame_types *t);
void flame_types_release(struct flame_types *t);

/* Has the profile anything that may become one? */
bool flame_types_any(const struct profile *p);

#endif

/*
 * targets_private: what the files of targets share.
 *
 *     targets.c          the table
 *     targets_records.c  what records say
 *     targets_maps.c     mappings
 *     targets_ids.c      rows in the running profile
 */
#ifndef CAPTURE_FOLLOW_TARGETS_PRIVATE_H
#define CAPTURE_FOLLOW_TARGETS_PRIVATE_H

#include "capture/follow/targets.h"

enum { MAPS_WAIT_FIRST_MS = 100 }; /* until the mappings are read once more, in vain; doubles */

/* Replaces t->text by a text of /proc. */
bool targets_text(struct targets *t, uint32_t pid, uint32_t tid, const char *name);

void targets_set_name(char name[static COMM_MAX], struct str text);
void targets_name_from_proc(struct targets *t, struct target *target);

/* Its start by /proc, if it is not known; of one that is gone a time that tells it from the next owner of its pid. */
void targets_learn_start(struct targets *t, struct target *target);

/* Whoever has the pid now; the one before has ended. Null when memory ends. */
struct target *targets_fresh(struct targets *t, uint32_t pid);

/* Its last thread has ended: only what accounting needs is kept. */
void targets_end(struct targets *t, struct target *target);

/* Null: there is none of this id. */
struct target_thread *targets_find_thread(struct targets *t, uint32_t tid);
void targets_drop_thread(struct targets *t, size_t index);

#endif

/*
 * door: files of other processes that may never answer, opened and read by a child of ours.
 *
 * A file system that does not answer (target/mounts.h) holds whoever asks it in a wait that no signal ends, and with
 * one thread the whole process: it could not even exit. So what lies on such a file system, and what is looked up where
 * there is one, is opened and read by a child. It has DOOR_BOUND_MS for each request. One that does not answer is left
 * behind, killed as soon as the kernel can; its files fail from then on, nothing of the kind is opened for DOOR_SHUT_S,
 * and then another child tries. While DOOR_LEFT_MAX of them are left behind there is none.
 *
 * The child is made when it is needed first, by fork, with nothing but the memory of that moment and one socket; files
 * are opened as foreign.h has it. Where fork is refused, such files cannot be opened.
 *
 * Threads: any; requests are served one after the other.
 *
 *     door_new
 *     door_is_needed → door_open_mapped, door_open_under, door_open_perf_map → the reader → door_close
 *     door_free
 */
#ifndef OS_DOOR_H
#define OS_DOOR_H

#include "base/iface.h"
#include "os/foreign.h"

enum { DOOR_BOUND_MS = 500, DOOR_SHUT_S = 30, DOOR_LEFT_MAX = 4, DOOR_PATH_MAX = 200 /* of a path that is told */ };

struct door;

/* Null when memory ends. door_free comes after door_close of every file. */
struct door *door_new(void);
void door_free(struct door *d);

/* May what a process (0: this one) sees at `path` not answer? Of an empty path: anything that it sees. */
bool door_is_needed(uint32_t pid, struct str path);

/* Like those of foreign.h. `out` reads; `handle` is for door_close. */
bool door_open_mapped(struct door *d, uint32_t pid, const struct foreign_mapping *mapping, struct memory_reader *out,
                      void **handle, struct err *err);
bool door_open_under(struct door *d, int root, const char *path, struct memory_reader *out, void **handle);
bool door_open_perf_map(struct door *d, uint32_t pid, struct memory_reader *out, void **handle);
void door_close(void *handle);

/* Is this such a reader? */
bool door_reads(const struct memory_reader *file);

/* How many children have been left behind so far, and the file that the latest of them was asked for. */
unsigned door_left_count(struct door *d, char path[static DOOR_PATH_MAX]);

#endif

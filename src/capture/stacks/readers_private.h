/*
 * readers_private: what the files of readers share.
 *
 *     readers.c         the runtimes of a process: attaching, listing, dropping
 *     readers_table.c   what catchers may read
 *     readers_attach.c  one process and one of its runtimes
 *     readers_binary.c  what an image is to the runtimes
 *     readers_frames.c  samples: whose frame it is, and what a frame is called
 */
#ifndef CAPTURE_READERS_PRIVATE_H
#define CAPTURE_READERS_PRIVATE_H

#include "capture/stacks/readers.h"

/* What its runtime calls the thread; of struct thread_namer. */
bool readers_name_thread(void *context, struct target *target, struct target_thread *thread, struct buf *out);

/* What the image holds, asked once; null: no runtime. */
const struct readers_binary *readers_binary_of(struct readers *r, uint64_t image);
void readers_forget_binary(struct readers_binary *binary);

/* A library that its program has loaded meanwhile, perhaps, which tells more of it. */
void readers_find_extension(struct readers *r, const struct reader *reader);

/* Who only resolves addresses, or only tells labels, is of no use where there are no registers; a null runtime is that
 * of native stacks. `binary` is what the runtime made of the file. */
bool readers_is_of_use(const struct runtime *runtime, const void *binary, const struct target *target);

/* Is the runtime asked for a profile of its own: for what nobody else can tell, or for all where it cannot be read? */
bool readers_is_collected(const struct readers *r, const struct target *target, const struct readers_binary *binary);

/* Null, with the reason: the process has the runtime but it cannot be read (now). */
struct reader *readers_attach(struct readers *r, struct target *target, const struct mapping *mapping,
                              const struct readers_binary *binary, struct err *why);
void readers_free(struct reader *reader);

/* `probe`: an address that must be readable. */
bool readers_open_memory(struct reader *reader, uint32_t pid, uint64_t probe, struct err *why);

/* Lists the threads of a process in another PID namespace again, when that is due; true when they have changed. */
bool readers_list_tids_again(struct readers *r, struct reader *reader, uint64_t now_ns);

#endif

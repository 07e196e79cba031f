/*
 * jfr_read: a recording of JDK Flight Recorder (.jfr), the JDK's own or async-profiler's, into a profile.
 *
 * What is read of it are its stacks. As CPU time: jdk.CPUTimeSample (25 and later), each for its own period of CPU
 * time; else jdk.ExecutionSample, each for the period that the recording says it had (20 ms where it does not). The
 * latter count running Java code by a clock on the wall, some threads a tick: shares are right where all threads run,
 * and the sum is no CPU time. Other sample types, by name:
 *
 *     native        samples of threads in native code, waiting or not
 *     alloc_space   bytes allocated, as ObjectAllocationSample or the two TLAB events estimate them
 *     lock          time spent waiting for a monitor
 *     park          time spent parked (java.util.concurrent's locks, queues and pools)
 *
 * Frames are "package/Class.method" of kind FRAME_JVM, with their line; native and kernel code, which async-profiler
 * has, too, by its name alone. Names that were given to classes at run time lose the address at their end. A stack
 * that the recorder cut (64 frames unless it was told otherwise) has "[truncated]" at its root. The process is named
 * "java", its runtime as the JVM calls itself.
 *
 * The recording may be one that the JVM is still writing: what its header covers is read. Errors are those of
 * jfr_chunk.h; ERR_UNSUPPORTED when it has stacks, but none of CPU time, and no type was asked for: the sentence lists
 * those there are. Limits: JFR_FRAMES_MAX frames in all stacks together.
 */
#ifndef ENCODE_JFR_READ_H
#define ENCODE_JFR_READ_H

#include "encode/live.h"

enum { JFR_FRAMES_MAX = 64 * 1024 * 1024 };

bool jfr_is(struct str file);

/* `type`: as in pprof_read.h. */
bool jfr_read(struct profile *p, struct str file, struct str type, struct err *err);

/* What is new since the last time: samples of what runs go to `sample`, other types into the profile, as events. */
bool jfr_read_live(struct profile *p, struct str file, struct live *live, struct err *err);

/* CPU time, and beside it every other type as an event of that name. */
bool jfr_read_whole(struct profile *p, struct str file, struct err *err);

#endif

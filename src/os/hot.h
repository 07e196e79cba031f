/*
 * hot: which threads of a process have used most CPU time.
 *
 * For choices that are made when something does not suffice for all threads: what a thread has used since it
 * began is known at once, what it uses now only after a while.
 */
#ifndef OS_HOT_H
#define OS_HOT_H

#include "os/proc.h"

/* CPU time of a thread; 0 when it is gone. In nanoseconds; on kernels without schedstat as coarse as
 * clock ticks. */
uint64_t hot_thread_ns(uint32_t pid, uint32_t tid);

/* Puts those that used most to the front. In ties, and when memory ends, the order stays. */
void hot_first(uint32_t pid, struct pid_list *threads);

#endif

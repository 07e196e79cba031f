/*
 * proc: the text files of /proc, and what is known here of this process and its machine.
 *
 * The texts are handed to target/ for parsing; nothing is interpreted here. A process that is gone
 * gives ERR_GONE, a missing right ERR_DENIED. All calls are bounded: a file longer than the
 * buffer's maximum is cut there (maps of a hostile process have no natural end).
 *
 * What is shown to a process's own user only is asked for as that user when we are refused (identity.h).
 */
#ifndef OS_PROC_H
#define OS_PROC_H

#include "base/err.h"
#include "base/iface.h"
#include "base/vec.h"

/* Replaces `out` by /proc/PID/NAME, or /proc/PID/task/TID/NAME when tid is not 0. */
bool proc_read(uint32_t pid, uint32_t tid, const char *name, struct buf *out, struct err *err);

/* The start of a small file by its path; 0 bytes: it cannot be read. */
size_t proc_read_file(const char *path, void *out, size_t max_bytes);

/* Opens a thread's "stat", "schedstat" or "sched" (which some kernels do not have), to be read again and again while
 * that thread lives; -1: it is gone. */
int proc_open_thread(uint32_t pid, uint32_t tid, const char *name);
int proc_open_own_sched(void); /* of the calling thread */
int proc_open_own_schedstat(void);

/* Reads an open file from its start; 0 bytes when there is nothing (left). */
size_t proc_read_start(int fd, void *out, size_t max_bytes);

struct pid_list {
    VEC(uint32_t) ids;
};

/* The id that was assigned last; 0: unknown. While it stays the same nothing new has begun. */
uint32_t proc_last_id(void);

/* Replaces the list by all processes visible in this PID namespace. */
bool proc_list_processes(struct pid_list *out, struct err *err);

/* Replaces the list by the threads of a process. */
bool proc_list_threads(uint32_t pid, struct pid_list *out, struct err *err);

/* How many threads a process has, without listing them; 0: unknown. */
uint32_t proc_count_threads(uint32_t pid);

/* Where the link /proc/PID/exe or cwd leads, without a " (deleted)" suffix. */
bool proc_link(uint32_t pid, const char *name, char *out, size_t out_bytes);

void proc_close(int fd);

/* Reads an open file at offsets; the descriptor stays the caller's. */
struct memory_reader proc_file_reader(int fd);

/* The descriptor of such a reader; -1: it is another. */
int proc_descriptor_of(const struct memory_reader *file);

/* Opens /proc/kallsyms; proc_read_next hands out its text in order, 0 bytes at the end. */
bool proc_open_kernel_symbols(int *out, struct err *err);
bool proc_read_next(int fd, void *out, size_t max_bytes, size_t *len, struct err *err);

/* Resident memory of this process. */
uint64_t proc_own_rss_bytes(void);

/* Pages of this program's own file are let go; those that are used come back, at a microsecond each. For after what is
 * done once or seldom: without it each page that was ever used counts as this process's memory. */
void proc_let_go_of_code(void);

/* Its peak; 0: unknown. */
uint64_t proc_own_rss_peak_bytes(void);

/* Where memory is short the kernel ends this process before any other of its control group. Needs no right. */
void proc_be_first_to_go(void);

/* For a container with a limit, once: the score above counts whole thousandths of the limit only, so that a program
 * that fills it may have up to 999 pages more. More pages than that count as this process's from now on in every tool
 * that shows resident memory, but not in the two numbers above; it takes 64 KB. */
void proc_outweigh(void);

/* How much memory the container that we run in may have: the least limit of our control group and those
 * above it, as far as they are visible here. 0: none is. */
uint64_t proc_own_memory_limit_bytes(void);

/* The same for CPU time, in thousandths of a processor. 0: no limit is. */
uint64_t proc_own_cpu_limit_millis(void);

/* The inode of our control group, which tells containers of a machine apart where their ids are hidden.
 * 0: unknown, or we are in no control-group namespace of our own. */
uint64_t proc_own_cgroup_inode(void);

/* Length of the ticks that stat counts in. */
uint64_t proc_tick_ns(void);

uint64_t proc_page_bytes(void);

/* How many descriptors this process may have open. */
uint64_t proc_descriptor_limit(void);

/* The vdso that the kernel mapped into this process: the same bytes as in every 64-bit process.
 * {NULL, 0} when there is none. */
struct str proc_own_vdso(void);

/* False: nothing above that reads can be had. */
bool proc_is_mounted(void);

bool proc_exists(uint32_t pid);
bool proc_thread_exists(uint32_t pid, uint32_t tid);

/* The host's name as this UTS namespace has it; "" when there is none. */
void proc_host_name(char *out, size_t out_bytes);

uint32_t proc_own_pid(void);
uint32_t proc_own_uid(void);

#endif

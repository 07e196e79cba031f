/*
 * remote: another process's memory, read while it runs and without stopping it.
 *
 * Needs what ptrace's attach check needs: the same user and a dumpable target, or SYS_PTRACE, and no
 * Yama level that says otherwise. What is read may change under the reader: it is the caller's to
 * prove that it did not matter.
 *
 * Errors: ERR_DENIED (a right is missing), ERR_GONE (the process ended), ERR_MALFORMED (nothing is
 * mapped there).
 *
 * Source: process_vm_readv(2).
 */
#ifndef OS_REMOTE_H
#define OS_REMOTE_H

#include "base/iface.h"

#include <stdint.h>

/* A reader of the process's memory; needs no release. A read is exact: a range that is mapped in part
 * is an error. */
struct memory_reader remote_reader(uint32_t pid);

#endif

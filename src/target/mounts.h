/*
 * mounts: which of the file systems that a process sees may leave a reader without an answer, from the text of
 * /proc/PID/mountinfo.
 *
 * A disk answers, or the program that runs from it stands still itself. A server (NFS, SMB, Ceph, …) may be gone, and
 * a program that implements a file system (FUSE, which needs no right within a user namespace) may do as it likes:
 * whoever looks up a name there, opens or reads a file, waits for as long as they please. The text asks none of them.
 *
 * Format: proc(5), "/proc/PID/mountinfo".
 */
#ifndef TARGET_MOUNTS_H
#define TARGET_MOUNTS_H

#include "base/str.h"

/* Is an absolute path, whose links are resolved, on such a file system? Of an empty path: is there any such file
 * system, but below /proc, /sys and /dev, where no program's files are? */
bool mounts_may_hang(struct str text, struct str path);

#endif

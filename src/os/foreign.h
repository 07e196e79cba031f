/*
 * foreign: files as another process sees them, which may have been put there by whoever runs in it.
 *
 * A name below another process's root leads where that process wants it to: through links out of its root, to a
 * terminal, a pipe, a device that does something when it is opened. So a name is first resolved without being opened
 * (O_PATH), links within that root only (openat2 with RESOLVE_IN_ROOT; on kernels before 5.6, or where a filter
 * refuses that call, component by component); what it leads to must be a regular file, and where an inode is known
 * that one; and only that very file is then opened for reading.
 *
 * What is shown to a process's own user only is asked for as that user when we are refused (identity.h).
 *
 * Descriptors are the caller's, to be closed by proc_close. False, or an error, when the process or the file is gone
 * or may not be read.
 *
 * Sources: openat2(2), open(2) O_PATH, path_resolution(7), proc_pid_root(5).
 */
#ifndef OS_FOREIGN_H
#define OS_FOREIGN_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

/*
 * Opens the file that a process has mapped at `path` (as maps or an MMAP2 record name it, hence
 * relative to the process's root, and without links). `inode` identifies it: a file of another inode is
 * not what is mapped and is refused, except on overlay file systems, whose mappings name the inode
 * of a lower layer. Tried in order: /proc/PID/exe, PATH below the process's root, PATH here (which helps
 * when the process is gone already), and the mapping itself, which is there whatever became of the
 * name, but asks for CHECKPOINT_RESTORE or SYS_ADMIN.
 */
struct foreign_mapping {
    struct str path;
    uint64_t inode, start, limit;
};
bool foreign_open_mapped(uint32_t pid, const struct foreign_mapping *mapping, int *out, struct err *err);

/* Names the file system that a process sees: its root directory and its mount namespace. */
struct foreign_root {
    uint64_t device, inode, mounts;
};
bool foreign_root_of(uint32_t pid, struct foreign_root *out);

/* Keeps a process's root open, for files below it when the process is gone. */
bool foreign_open_root(uint32_t pid, int *out);

/* A folder of ours as such a root. */
bool foreign_open_folder(const char *path, int *out);

/* Opens a regular file below such a root (-1: our own), links followed within it. `path` is absolute. */
bool foreign_open_under(int root, const char *path, int *out);

/* The same of anything that is there, not opened (O_PATH); a last link is not followed. */
bool foreign_find_under(int root, const char *path, int *out);

/* The folder that a process works in, as foreign_open_root has its root. */
bool foreign_open_cwd(uint32_t pid, int *out);

/* Opens /tmp/perf-PID.map as the process sees it (its own root, its innermost PID), if the process's
 * user or root owns it: anybody may write to /tmp. */
bool foreign_open_perf_map(uint32_t pid, int *out);

#endif

/*
 * file: whole files in, whole files out.
 *
 * Reading: file_read_all takes everything up to a maximum; a longer file is an error (ERR_LIMIT),
 * never a silent cut. It works for /proc and for pipes, where the size is not known before.
 *
 * Writing: file_create_atomic opens a temporary file beside the final name, without a name of its own where the file
 * system has that (not NFS, FAT, FUSE, an overlay before Linux 6.1) and there is /proc; bytes go through
 * file_sink; file_commit gives it the final name in one step (rename), so that a reader sees the old
 * file or the whole new one; file_abandon removes it. One of the two ends every writer. A leftover
 * temporary file of a killed run never blocks the next one. "-" as a path means standard output and
 * is not atomic. file_create_named does the same for a path that the user wrote down: a device or a
 * pipe with this name (/dev/stdout, /dev/null, a shell's >(command)) is written into, as by the
 * shell's >; a rename would put a file in its place. It is not for names in folders of others, who
 * could plant a pipe there that is waited for.
 *
 * Errors name the file as given and say what helps: ENOSPC, EROFS, EACCES.
 */
#ifndef OS_FILE_H
#define OS_FILE_H

#include "base/err.h"
#include "base/iface.h"
#include "base/str.h"

bool file_read_all(const char *path, size_t max_bytes, struct buf *out, struct err *err);

/* Shows a file in pieces, the last one first, until `look` is true: for words that are late in a large file. A piece
 * goes on for FILE_PIECE_OVERLAP bytes into the one that was shown before. False: it cannot be read. */
enum { FILE_PIECE_OVERLAP = 64 };
bool file_look_back(const char *path, bool (*look)(void *context, struct str piece), void *context);

/* All of it to a descriptor; false with errno. */
bool file_write(int fd, struct str bytes);

struct file_writer {
    int fd;
    size_t used;
    uint64_t put; /* bytes in all */
    bool is_stdout;
    bool is_nameless; /* until it is committed */
    bool is_in_place; /* a device or a pipe: closed at the end, but neither renamed nor removed */
    char path[4096];
    char temporary[4096 + 32];
    char pending[16 * 1024];
};

bool file_create_atomic(struct file_writer *w, const char *path, struct err *err);
bool file_create_named(struct file_writer *w, const char *path, struct err *err);
struct sink file_sink(struct file_writer *w);
bool file_commit(struct file_writer *w, struct err *err);
void file_abandon(struct file_writer *w);

/* Makes DIR and its parents as needed and proves that files can be made in it: by one without a name, or, where the
 * file system has none, by a probe that is created and removed. */
bool file_prepare_dir(const char *dir, struct err *err);

/* The folder that relative names are below, as an absolute one; "." when it has none here, or none
 * that leads there with our rights. */
void file_working_dir(char *out, size_t out_bytes);

/* Points the symbolic link DIR/name at `target` (relative), replacing what is there in one step. */
bool file_link(const char *dir, const char *name, const char *target, struct err *err);

bool file_exists(const char *path);

/* A link to a folder is one; a link to a file is no file. */
bool file_is_folder(const char *path);
bool file_is_regular(const char *path);

/* Sets when it was changed last to now, and leaves what is in it; makes it if it is missing. */
bool file_touch(const char *path, struct err *err);

/* Seconds since it was changed last; false: it is not there. */
bool file_age(const char *path, uint64_t *seconds);

/* Removes a file; a missing file is not an error. */
bool file_remove(const char *path, struct err *err);

/* Calls `each` with the name of every entry of `dir` (without . and ..), in no order. */
bool file_list(const char *dir, void (*each)(void *context, const char *name), void *context,
               struct err *err);

/* Copies this program into DIR under the name "pillion", mode 755, atomically. */
bool file_copy_self(const char *dir, struct buf *path_out, struct err *err);

#endif

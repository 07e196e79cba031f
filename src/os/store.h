/*
 * store: a folder of small files that one process owns, and that survives it.
 *
 * Files appear whole (temporary name, then rename) with mode 600, the folder has mode 700. That holds for
 * whoever reads them while the machine runs, and after a kill. Nothing is forced to the disk (fsync): it
 * would wait for, and hurry, what all others on the machine write. So a power cut may leave the files of
 * the last half minute empty or short; a reader has to know a whole one. Its owner holds a lock on the file
 * "lock" in it, which the kernel lets go when the process ends, however it ends. When the folder has an
 * owner already, a folder below it ("2", "3" …) is taken; what ended owners left in the others is taken
 * over.
 *
 *     store_open(&store, dir, &err)
 *     store_put(&store, name, bytes, &err)     store_get(&store, name, max, &buf, &err)
 *     store_each(&store, each, context)        store_remove(&store, name)
 *     store_close(&store)
 *
 * What is in the folder is sent with our tokens. So it, and those below it, must belong to our user or to root, and
 * only files of our user count, with one name each; in a volume that all may write to (an emptyDir) others' files are
 * let be. Folders below it are no links.
 *
 * Names are chosen by the caller and hold no slash. Those that end in ".tmp" are the store's own;
 * such that are older than an hour are removed when it is opened.
 *
 * Errors name the folder and what helps; ERR_LIMIT: the file is larger than was allowed for.
 *
 * Source: flock(2), rename(2), statvfs(3).
 */
#ifndef OS_STORE_H
#define OS_STORE_H

#include "base/err.h"
#include "base/str.h"

enum { STORE_OWNERS_MAX = 64, STORE_PATH_MAX = 4096 };

struct store {
    int dir_fd, lock_fd;
    char path[STORE_PATH_MAX];
};

bool store_open(struct store *store, const char *dir, struct err *err);

/* The folder itself, which is there; `below`: with what ended owners left in the folders below it. ERR_DENIED with
 * EWOULDBLOCK: it has an owner. */
bool store_take(struct store *store, const char *dir, bool below, struct err *err);
void store_close(struct store *store);

bool store_put(struct store *store, const char *name, struct str bytes, struct err *err);
bool store_get(struct store *store, const char *name, size_t max_bytes, struct buf *out,
               struct err *err);
void store_remove(struct store *store, const char *name);

/* Calls `each` with every file but the store's own, in no order. */
void store_each(struct store *store, void (*each)(void *context, const char *name, uint64_t bytes),
                void *context);

/* The folder is still where it was opened. */
bool store_is_there(const struct store *store);

/* Bytes that are free in its file system for us; UINT64_MAX when that is unknown. */
uint64_t store_free_bytes(const struct store *store);

#endif

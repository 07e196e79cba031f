/* The files of a spool: windows that wait to be uploaded. Each owner has a folder with a lock, files
 * appear whole by a rename, and the folders of owners that have ended are taken over. What a file
 * contains is deliver/spool's matter. */
#include "os/store.h"
#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum {
    TEMPORARY_AGE_S = 3600,
    OTHERS = EKEYREJECTED, /* an errno that no call here gives: the folder is another user's */
};

static const char lock_name[] = "lock";

static bool failed(const char *what, const char *path, int number, struct err *err)
{
    return err_set(err, err_kind_of(number), number, "cannot %s the spool %s: %s (%s); give another --spool-dir",
                   what, path, strerror(number), err_name(number));
}

static bool of_others(const char *path, struct err *err)
{
    return err_set(err, ERR_DENIED, EPERM,
                   "the spool %s belongs to another user, who may put files there that are sent with our tokens; "
                   "give another --spool-dir, or chown it", path);
}

/* ---- opening ---- */

/* Whoever owns a folder or may write to its parents may exchange what is in it: root's, or our own user's. */
static bool is_ours(int fd)
{
    struct stat st;
    errno = OTHERS;
    return fstat(fd, &st) == 0 && (st.st_uid == geteuid() || st.st_uid == 0);
}

static bool make_folder(const char *path)
{
    char part[STORE_PATH_MAX];
    size_t len = (size_t)snprintf(part, sizeof part, "%s", path);
    while (len > 1 && part[len - 1] == '/') { /* what stands after is no folder: the last one is not a parent */
        part[--len] = '\0';
    }
    for (char *at = part + 1; *at != '\0'; at++) {
        if (*at == '/') {
            *at = '\0';
            (void)mkdir(part, 0755);
            *at = '/';
        }
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* The lock of a folder; -1 with errno, EWOULDBLOCK when it has an owner. */
static int lock_folder(int dir_fd)
{
    int fd = openat(dir_fd, lock_name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
        int number = errno;
        close(fd);
        errno = number;
        return -1;
    }
    return fd;
}

/* False with errno. */
static bool take_folder(struct store *store, const char *path, bool below)
{
    int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (below ? O_NOFOLLOW : 0));
    int lock_fd = dir_fd < 0 || !is_ours(dir_fd) ? -1 : lock_folder(dir_fd);
    if (lock_fd < 0) {
        int number = errno;
        if (dir_fd >= 0) {
            close(dir_fd);
        }
        errno = number;
        return false;
    }
    store->dir_fd = dir_fd;
    store->lock_fd = lock_fd;
    snprintf(store->path, sizeof store->path, "%s", path);
    return true;
}

static void folder_of(const char *dir, unsigned number, char out[static STORE_PATH_MAX])
{
    if (number <= 1) {
        snprintf(out, STORE_PATH_MAX, "%s", dir);
    } else {
        snprintf(out, STORE_PATH_MAX, "%s/%u", dir, number);
    }
}

static bool is_own_name(const char *name)
{
    return strcmp(name, lock_name) == 0 || str_ends(str_of(name), STR(".tmp"));
}

/* In a folder that others may write to, too, only our own user's files are ours. */
static bool is_own_file(const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1;
}

/* Calls `each` with the files of an open folder. */
static void list(int dir_fd,
                 void (*each)(void *context, int dir_fd, const char *name, const struct stat *st),
                 void *context)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (stream == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        struct stat st;
        if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_own_file(&st)) {
            each(context, dir_fd, entry->d_name, &st);
        }
    }
    closedir(stream);
}

/* Where the name is there already nothing is lost: it is found at the next start. */
static void take_over_file(void *context, int from_fd, const char *name, const struct stat *st)
{
    const struct store *store = context;
    (void)st;
    if (!is_own_name(name) && faccessat(store->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
        (void)renameat(from_fd, name, store->dir_fd, name);
    }
}

static void take_over(struct store *store, const char *path)
{
    int dir_fd = strcmp(path, store->path) == 0
                     ? -1
                     : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir_fd < 0) {
        return;
    }
    int lock_fd = is_ours(dir_fd) ? lock_folder(dir_fd) : -1;
    if (lock_fd >= 0) {
        list(dir_fd, take_over_file, store);
        close(lock_fd);
    }
    close(dir_fd);
}

static void remove_leftover(void *context, int dir_fd, const char *name, const struct stat *st)
{
    const time_t *now = context;
    if (str_ends(str_of(name), STR(".tmp")) && st->st_mtime + TEMPORARY_AGE_S < *now) {
        (void)unlinkat(dir_fd, name, 0);
    }
}

static bool make_and_take_folder(struct store *store, const char *path, bool below)
{
    return make_folder(path) && take_folder(store, path, below);
}

/* What ended owners left in the folder, and below it. */
static void take_over_all(struct store *store, const char *dir)
{
    char path[STORE_PATH_MAX];
    for (unsigned number = 1; number <= STORE_OWNERS_MAX; number++) {
        folder_of(dir, number, path);
        take_over(store, path);
    }
    time_t now = time(NULL);
    list(store->dir_fd, remove_leftover, &now);
}

bool store_take(struct store *store, const char *dir, bool below, struct err *err)
{
    if (strlen(dir) + 8 > STORE_PATH_MAX) {
        return err_set(err, ERR_LIMIT, ENAMETOOLONG, "the path %.60s... is too long", dir);
    }
    if (!take_folder(store, dir, false)) {
        return errno == EWOULDBLOCK ? err_set(err, ERR_DENIED, errno, "the spool %s is in use", dir)
               : errno == OTHERS    ? of_others(dir, err)
                                    : failed("use", dir, errno, err);
    }
    if (below) {
        take_over_all(store, dir);
    }
    return true;
}

bool store_open(struct store *store, const char *dir, struct err *err)
{
    char path[STORE_PATH_MAX];
    if (strlen(dir) + 8 > sizeof path) {
        return err_set(err, ERR_LIMIT, ENAMETOOLONG, "the path %.60s... is too long", dir);
    }
    unsigned number = 1;
    for (folder_of(dir, number, path); !make_and_take_folder(store, path, number > 1); folder_of(dir, number, path)) {
        bool is_passed_over = number > 1 && (errno == OTHERS || errno == ELOOP || errno == ENOTDIR);
        if (errno != EWOULDBLOCK && !is_passed_over) {
            return errno == OTHERS ? of_others(path, err) : failed("use", path, errno, err);
        }
        if (++number > STORE_OWNERS_MAX) {
            return err_set(err, ERR_LIMIT, 0, "the spool %s is in use by %d processes; give another --spool-dir",
                           dir, STORE_OWNERS_MAX);
        }
    }
    take_over_all(store, dir);
    return true;
}

void store_close(struct store *store)
{
    close(store->dir_fd);
    close(store->lock_fd);
}

/* ---- files ---- */

bool store_put(struct store *store, const char *name, struct str bytes, struct err *err)
{
    char temporary[300];
    snprintf(temporary, sizeof temporary, ".%.255s.tmp", name);
    (void)unlinkat(store->dir_fd, temporary, 0);
    int fd = openat(store->dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                    0600);
    if (fd < 0) {
        return failed("write to", store->path, errno, err);
    }
    int number = file_write(fd, bytes) ? 0 : errno;
    number = close(fd) < 0 && number == 0 ? errno : number;
    if (number == 0 && renameat(store->dir_fd, temporary, store->dir_fd, name) < 0) {
        number = errno;
    }
    if (number != 0) {
        (void)unlinkat(store->dir_fd, temporary, 0);
        return failed("write to", store->path, number, err);
    }
    return true;
}

bool store_get(struct store *store, const char *name, size_t max_bytes, struct buf *out,
               struct err *err)
{
    struct stat st;
    int fd = openat(store->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return err_errno(err, errno, "cannot open %s/%s", store->path, name);
    }
    char *room = NULL;
    bool ok = fstat(fd, &st) == 0 && is_own_file(&st) && st.st_size >= 0;
    if (ok && (uint64_t)st.st_size > max_bytes) {
        close(fd);
        return err_set(err, ERR_LIMIT, 0, "%s/%s has more than %zu bytes", store->path, name,
                       max_bytes);
    }
    if (ok) {
        buf_init(out, (size_t)st.st_size + 1);
        room = buf_room(out, (size_t)st.st_size + 1);
    }
    ssize_t got = 0;
    size_t most = room != NULL ? (size_t)st.st_size + 1 : 0;
    while (room != NULL && (got = read(fd, room + out->len, most - out->len)) > 0) {
        out->len += (size_t)got; /* one that grew meanwhile fills the spare byte, and is damaged */
    }
    close(fd);
    if (room == NULL || got < 0) {
        if (room != NULL) {
            buf_release(out);
        }
        return err_set(err, ERR_IO, 0, "cannot read %s/%s", store->path, name);
    }
    return true;
}

void store_remove(struct store *store, const char *name)
{
    (void)unlinkat(store->dir_fd, name, 0);
}

struct visit {
    void (*each)(void *context, const char *name, uint64_t bytes);
    void *context;
};

static void visit_file(void *context, int dir_fd, const char *name, const struct stat *st)
{
    const struct visit *visit = context;
    (void)dir_fd;
    if (!is_own_name(name)) {
        visit->each(visit->context, name, (uint64_t)st->st_size);
    }
}

void store_each(struct store *store, void (*each)(void *context, const char *name, uint64_t bytes),
                void *context)
{
    struct visit visit = {each, context};
    list(store->dir_fd, visit_file, &visit);
}

bool store_is_there(const struct store *store)
{
    struct stat ours, there;
    return fstat(store->dir_fd, &ours) == 0 && stat(store->path, &there) == 0 && ours.st_ino == there.st_ino &&
           ours.st_dev == there.st_dev;
}

uint64_t store_free_bytes(const struct store *store)
{
    struct statvfs fs;
    return fstatvfs(store->dir_fd, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize : UINT64_MAX;
}

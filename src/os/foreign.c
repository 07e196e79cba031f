/*
 * Resolves names below another process's root without opening what they lead to, and opens what proves to be a regular
 * file, by its own link below /proc/self/fd. Where openat2 is not to be had the same is done component by component.
 */
#include "os/foreign.h"
#include "os/identity.h"
#include "os/proc.h"
#include "target/status.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    NAME_MAX_BYTES = 96,   /* of a link below /proc/PID */
    PATH_MAX_BYTES = 4096,
    DEPTH_MAX = 64,        /* folders below each other */
    LINKS_MAX = 40,        /* as the kernel has it */
    STATUS_BYTES = 16384,
};

/* That may be followed. */
enum links { LINKS_NONE, LINKS_OF_FOLDERS, LINKS_ALL };

static int keep_errno(int closed, int result)
{
    int number = errno;
    if (closed >= 0) {
        close(closed);
    }
    errno = number;
    return result;
}

/* ---- links of /proc/PID ---- */

static void link_of(char out[static NAME_MAX_BYTES], uint32_t pid, const char *name)
{
    snprintf(out, NAME_MAX_BYTES, "/proc/%u/%s", pid, name);
}

/* Below /proc/PID some things are shown to the process's own user only. */
static int path_of(uint32_t pid, const char *name, int flags)
{
    char path[NAME_MAX_BYTES];
    link_of(path, pid, name);
    int fd = open(path, O_PATH | O_CLOEXEC | flags);
    if (fd < 0 && identity_visit(pid, errno)) {
        fd = open(path, O_PATH | O_CLOEXEC | flags);
        identity_return();
    }
    return fd;
}

static bool stat_of(uint32_t pid, const char *name, struct stat *out)
{
    char path[NAME_MAX_BYTES];
    link_of(path, pid, name);
    int failed = stat(path, out);
    if (failed < 0 && identity_visit(pid, errno)) {
        failed = stat(path, out);
        identity_return();
    }
    return failed == 0;
}

/* ---- resolving a name by hand ---- */

/* The folders from the root down to the one that is looked in. */
struct walk {
    int folders[DEPTH_MAX];
    unsigned depth;          /* of them are open; the first is the caller's */
    unsigned links;
    char rest[PATH_MAX_BYTES]; /* still to be resolved */
};

static void go_up_to(struct walk *w, unsigned depth)
{
    while (w->depth > depth) {
        close(w->folders[--w->depth]);
    }
}

/* Puts a link's target before what is still to be resolved. */
static bool put_before(struct walk *w, int folder, const char *name)
{
    char target[PATH_MAX_BYTES], whole[2 * PATH_MAX_BYTES];
    ssize_t len = readlinkat(folder, name, target, sizeof target - 1);
    if (len < 0 || ++w->links > LINKS_MAX) {
        errno = len < 0 ? errno : ELOOP;
        return false;
    }
    target[len] = '\0';
    if (snprintf(whole, sizeof whole, "%s/%s", target, w->rest) >= PATH_MAX_BYTES) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(w->rest, whole, strlen(whole) + 1);
    if (target[0] == '/') {
        go_up_to(w, 1);
    }
    return true;
}

/* Takes the next component of the rest: its length, 0 when there is none left. */
static size_t next_name(struct walk *w, char name[static PATH_MAX_BYTES])
{
    size_t from = strspn(w->rest, "/"), len = strcspn(w->rest + from, "/");
    memcpy(name, w->rest + from, len);
    name[len] = '\0';
    memmove(w->rest, w->rest + from + len, strlen(w->rest + from + len) + 1);
    return len;
}

/* -1, or what the rest leads to. */
static int walk_on(struct walk *w, enum links links)
{
    char name[PATH_MAX_BYTES];
    while (next_name(w, name) > 0) {
        struct stat st;
        int folder = w->folders[w->depth - 1];
        bool is_last = w->rest[strspn(w->rest, "/")] == '\0';
        if (strcmp(name, ".") == 0) {
            continue;
        }
        if (strcmp(name, "..") == 0) {
            go_up_to(w, w->depth > 1 ? w->depth - 1 : 1);
            continue;
        }
        int fd = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0) {
            return keep_errno(fd, -1);
        }
        if (S_ISLNK(st.st_mode)) {
            close(fd);
            errno = ELOOP;
            if (links == LINKS_NONE || (links == LINKS_OF_FOLDERS && is_last) || !put_before(w, folder, name)) {
                return -1;
            }
            continue;
        }
        if (is_last || w->depth == DEPTH_MAX) {
            errno = ENAMETOOLONG;
            return is_last ? fd : keep_errno(fd, -1);
        }
        w->folders[w->depth++] = fd;
    }
    errno = EISDIR;
    return -1;
}

static int walk_by_hand(int root, const char *path, enum links links)
{
    struct walk w = {.folders = {root}, .depth = 1};
    snprintf(w.rest, sizeof w.rest, "%s", path);
    int fd = walk_on(&w, links);
    int number = errno;
    go_up_to(&w, 1);
    errno = number;
    return fd;
}

/* ---- opening ---- */

/* What a name below a root leads to, not opened. */
static int resolve(int root, const char *path, enum links links)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC | (links == LINKS_ALL ? 0 : O_NOFOLLOW),
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    how.resolve |= links == LINKS_NONE ? RESOLVE_NO_SYMLINKS : 0;
    int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    return fd < 0 && (errno == ENOSYS || errno == EPERM) ? walk_by_hand(root, path, links) : fd;
}

/* Reads what was resolved, and closes that; -1 when it is no regular file. */
static int reopen(uint32_t pid, int fd)
{
    struct stat st;
    char own[NAME_MAX_BYTES];
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        errno = fd < 0 ? errno : ESTALE;
        return keep_errno(fd, -1);
    }
    snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
    int opened = open(own, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (opened < 0 && pid != 0 && identity_visit(pid, errno)) {
        opened = open(own, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        identity_return();
    }
    return keep_errno(fd, opened);
}

static bool is_overlay(int fd)
{
    enum { OVERLAYFS_SUPER_MAGIC = 0x794c7630 };
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 && (unsigned long)fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

/* The same, if it is the mapped file. */
static int reopen_if_same(uint32_t pid, int fd, uint64_t inode, bool by_name)
{
    struct stat st;
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_ino != inode && !(by_name && is_overlay(fd))) {
        close(fd);
        errno = ESTALE;
        return -1;
    }
    return reopen(pid, fd);
}

static int open_by_path(uint32_t pid, int root, const char *path, uint64_t inode)
{
    int fd = root < 0 ? -1 : reopen_if_same(pid, resolve(root, path, LINKS_NONE), inode, true);
    return keep_errno(root, fd);
}

static int open_named(uint32_t pid, struct str name, uint64_t inode)
{
    char path[PATH_MAX_BYTES];
    if (name.len == 0 || name.len >= sizeof path || name.ptr[0] != '/') {
        errno = ENOENT;
        return -1;
    }
    snprintf(path, sizeof path, "%.*s", (int)name.len, name.ptr);
    int fd = open_by_path(pid, path_of(pid, "root", O_DIRECTORY), path, inode);
    return fd >= 0 ? fd : open_by_path(pid, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), path, inode);
}

bool foreign_open_mapped(uint32_t pid, const struct foreign_mapping *mapping, int *out, struct err *err)
{
    char name[NAME_MAX_BYTES];
    int fd = reopen_if_same(pid, path_of(pid, "exe", 0), mapping->inode, false);
    if (fd < 0) {
        fd = open_named(pid, mapping->path, mapping->inode);
    }
    int number = errno;
    if (fd < 0) {
        snprintf(name, sizeof name, "map_files/%llx-%llx", (unsigned long long)mapping->start,
                 (unsigned long long)mapping->limit);
        fd = reopen_if_same(pid, path_of(pid, name, 0), mapping->inode, true);
    }
    if (fd < 0) {
        return err_errno(err, number, "cannot open %.*s as mapped by pid %u",
                         (int)mapping->path.len, mapping->path.ptr, pid);
    }
    *out = fd;
    return true;
}

bool foreign_root_of(uint32_t pid, struct foreign_root *out)
{
    struct stat root, mounts;
    if (!stat_of(pid, "root", &root) || !stat_of(pid, "ns/mnt", &mounts)) {
        return false;
    }
    *out = (struct foreign_root){root.st_dev, root.st_ino, mounts.st_ino};
    return true;
}

static bool open_folder(uint32_t pid, const char *name, int *out)
{
    int fd = path_of(pid, name, O_DIRECTORY);
    if (fd < 0) {
        return false;
    }
    *out = fd;
    return true;
}

bool foreign_open_root(uint32_t pid, int *out)
{
    return open_folder(pid, "root", out);
}

bool foreign_open_cwd(uint32_t pid, int *out)
{
    return open_folder(pid, "cwd", out);
}

bool foreign_open_folder(const char *path, int *out)
{
    *out = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *out >= 0;
}

bool foreign_find_under(int root, const char *path, int *out)
{
    int fd = resolve(root, path, LINKS_OF_FOLDERS);
    if (fd < 0) {
        return false;
    }
    *out = fd;
    return true;
}

bool foreign_open_under(int root, const char *path, int *out)
{
    int own = root < 0 ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    int from = root < 0 ? own : root;
    int fd = from < 0 || path[0] != '/' ? -1 : reopen(0, resolve(from, path, LINKS_ALL));
    (void)keep_errno(own, 0);
    if (fd < 0) {
        return false;
    }
    *out = fd;
    return true;
}

/* The pid as the process itself knows it, and its user. */
static uint32_t innermost_pid(uint32_t pid, uint32_t *uid)
{
    struct buf text;
    struct proc_status status;
    buf_init(&text, STATUS_BYTES);
    bool good = proc_read(pid, 0, "status", &text, NULL) &&
                status_parse(buf_slice(&text), &status, NULL);
    buf_release(&text);
    if (!good) {
        return 0;
    }
    *uid = status.uid.effective;
    return status.ns_pid != 0 ? status.ns_pid : pid;
}

bool foreign_open_perf_map(uint32_t pid, int *out)
{
    char path[NAME_MAX_BYTES];
    struct stat st;
    uint32_t uid = 0, inner = innermost_pid(pid, &uid);
    int root = inner == 0 ? -1 : path_of(pid, "root", O_DIRECTORY);
    if (root < 0) {
        return false;
    }
    snprintf(path, sizeof path, "/tmp/perf-%u.map", inner);
    int fd = reopen(pid, resolve(root, path, LINKS_OF_FOLDERS));
    (void)keep_errno(root, 0);
    if (fd < 0) {
        return false;
    }
    if (fstat(fd, &st) < 0 || (st.st_uid != uid && st.st_uid != 0)) {
        close(fd);
        return false;
    }
    *out = fd;
    return true;
}

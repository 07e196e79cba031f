/* Whole files in and out. Reads are bounded; writes go to a temporary file that gets its final name by
 * a rename, so that a reader sees the old file or the whole new one. Errors name the file, the cause
 * and what to do. */
#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool read_fd(int fd, const char *path, size_t max_bytes, struct buf *out, struct err *err)
{
    for (;;) {
        char chunk[16 * 1024];
        ssize_t got = read(fd, chunk, sizeof chunk);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return err_errno(err, errno, "cannot read %s", path);
        }
        if (got == 0) {
            return true;
        }
        if ((size_t)got > max_bytes - out->len) {
            bool large = max_bytes >= 1 << 20;
            return err_set(err, ERR_LIMIT, 0, "%s is larger than %zu %s", path,
                           large ? max_bytes >> 20 : max_bytes, large ? "MB" : "bytes");
        }
        buf_add(out, chunk, (size_t)got);
        if (out->failed) {
            return err_set(err, ERR_MEMORY, 0, "no memory to read %s", path);
        }
    }
}

bool file_read_all(const char *path, size_t max_bytes, struct buf *out, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return err_errno(err, errno, "cannot open %s", path);
    }
    buf_init(out, max_bytes + 1);
    bool ok = read_fd(fd, path, max_bytes, out, err);
    close(fd);
    if (!ok) {
        buf_release(out);
    }
    return ok;
}

bool file_look_back(const char *path, bool (*look)(void *context, struct str piece), void *context)
{
    enum { PIECE = 32 * 1024 };
    char piece[PIECE + FILE_PIECE_OVERLAP];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t got = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? 0 : -1;
    off_t end = got < 0 ? 0 : st.st_size;
    for (bool found = false; got >= 0 && end > 0 && !found;) {
        end = (end - 1) / PIECE * PIECE;
        got = pread(fd, piece, sizeof piece, end);
        found = got > 0 && look(context, (struct str){piece, (size_t)got});
    }
    if (fd >= 0) {
        close(fd);
    }
    return got >= 0;
}

bool file_write(int fd, struct str bytes)
{
    while (bytes.len > 0) {
        ssize_t put = write(fd, bytes.ptr, bytes.len);
        if (put < 0 && errno != EINTR) {
            return false;
        }
        bytes = str_sub(bytes, put > 0 ? (size_t)put : 0, bytes.len);
    }
    return true;
}

static const char *write_reason(int number)
{
    switch (number) {
    case EROFS:
        return "read-only";
    case ENOSPC:
        return "disk full";
    case EDQUOT:
        return "quota used up";
    default:
        return strerror(number);
    }
}

static bool write_error(const char *path, int number, struct err *err)
{
    bool full = number == ENOSPC || number == EDQUOT;
    return err_set(err, err_kind_of(number), number, "cannot write %s (%s, %s); %s", path,
                   write_reason(number), err_name(number),
                   full ? "free space there or give -o DIR" : "give -o DIR");
}

/* A folder to give does not help standard output. */
static bool writer_error(const struct file_writer *w, int number, struct err *err)
{
    return w->is_stdout ? err_errno(err, number, "cannot write %s", w->path)
                        : write_error(w->path, number, err);
}

static bool flush_pending(struct file_writer *w, struct err *err)
{
    size_t len = w->used;
    w->used = w->put = 0;
    return file_write(w->fd, (struct str){w->pending, len}) || writer_error(w, errno, err);
}

/* Gives a file without a name its temporary one: by its entry in /proc, or, without one, as Linux lets us from 6.10 on,
 * and before with CAP_DAC_READ_SEARCH. A link does not replace what is there, as a rename does. */
static bool link_nameless(const struct file_writer *w, int fd)
{
    char entry[32];
    snprintf(entry, sizeof entry, "/proc/self/fd/%d", fd);
    (void)unlink(w->temporary);
    return linkat(AT_FDCWD, entry, AT_FDCWD, w->temporary, AT_SYMLINK_FOLLOW) == 0 ||
           (errno == ENOENT && linkat(fd, "", AT_FDCWD, w->temporary, AT_EMPTY_PATH) == 0);
}

/* Without a name, so that who is killed meanwhile leaves nothing. -1: none can be made, or none that could be linked:
 * without /proc that is tried, with another one, as a file is linked once. */
static int open_nameless(const struct file_writer *w, bool again)
{
    char dir[sizeof w->path + 4];
    const char *slash = strrchr(w->path, '/');
    snprintf(dir, sizeof dir, "%.*s.", slash == NULL ? 0 : (int)(slash - w->path) + 1, w->path);
    int fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0 || again || file_exists("/proc/self/fd")) {
        return fd;
    }
    bool links = link_nameless(w, fd);
    (void)unlink(w->temporary);
    close(fd);
    return links ? open_nameless(w, true) : -1;
}

bool file_create_atomic(struct file_writer *w, const char *path, struct err *err)
{
    w->used = w->put = 0;
    w->is_in_place = false;
    w->is_stdout = strcmp(path, "-") == 0;
    if ((size_t)snprintf(w->path, sizeof w->path, "%s", w->is_stdout ? "standard output" : path) >=
        sizeof w->path) {
        return err_set(err, ERR_LIMIT, ENAMETOOLONG, "the path %.60s... is too long", path);
    }
    if (w->is_stdout) {
        w->fd = STDOUT_FILENO;
        return true;
    }
    /* the pid keeps two profilers that share a directory apart; what is there was left by a killed
     * run, or planted in a directory that others can write: it is not written through */
    snprintf(w->temporary, sizeof w->temporary, "%s.%ld.tmp", w->path, (long)getpid());
    w->fd = open_nameless(w, false);
    w->is_nameless = w->fd >= 0;
    if (w->is_nameless) {
        return true;
    }
    (void)unlink(w->temporary);
    w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return w->fd >= 0 || write_error(w->path, errno, err);
}

bool file_create_named(struct file_writer *w, const char *path, struct err *err)
{
    struct stat st;
    bool is_special = strcmp(path, "-") != 0 && stat(path, &st) == 0 && !S_ISREG(st.st_mode) &&
                      !S_ISDIR(st.st_mode);
    if (!is_special) {
        return file_create_atomic(w, path, err);
    }
    w->used = w->put = 0;
    w->is_stdout = false;
    w->is_in_place = true;
    w->is_nameless = false;
    w->temporary[0] = '\0';
    snprintf(w->path, sizeof w->path, "%s", path); /* stat took it, so it is shorter */
    w->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return w->fd >= 0 || write_error(path, errno, err);
}

static bool sink_to_file(void *context, const void *ptr, size_t len, struct err *err)
{
    struct file_writer *w = context;
    w->put += len;
    if (len > sizeof w->pending - w->used && !flush_pending(w, err)) {
        return false;
    }
    if (len > sizeof w->pending) {
        return file_write(w->fd, (struct str){ptr, len}) || writer_error(w, errno, err);
    }
    memcpy(w->pending + w->used, ptr, len);
    w->used += len;
    return true;
}

struct sink file_sink(struct file_writer *w)
{
    return (struct sink){sink_to_file, w};
}

bool file_commit(struct file_writer *w, struct err *err)
{
    if (!flush_pending(w, err)) {
        file_abandon(w);
        return false;
    }
    if (w->is_stdout) {
        return true;
    }
    if (w->is_nameless && !link_nameless(w, w->fd)) {
        int number = errno;
        file_abandon(w);
        return write_error(w->path, number, err);
    }
    w->is_nameless = false;
    /* close may report what a network or quota file system refused */
    int failed = close(w->fd) < 0 ? errno : 0;
    w->fd = -1;
    if (failed == 0 && !w->is_in_place && rename(w->temporary, w->path) < 0) {
        failed = errno;
    }
    if (failed != 0) {
        file_abandon(w);
        return write_error(w->path, failed, err);
    }
    return true;
}

void file_abandon(struct file_writer *w)
{
    if (w->is_stdout) {
        return;
    }
    if (w->fd >= 0) {
        close(w->fd);
        w->fd = -1;
    }
    if (!w->is_in_place && !w->is_nameless) {
        unlink(w->temporary);
    }
}

static bool make_parents(const char *dir, struct err *err)
{
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s", dir) >= sizeof path) {
        return err_set(err, ERR_LIMIT, ENAMETOOLONG, "the path %.60s... is too long", dir);
    }
    for (char *at = path + 1; at[-1] != '\0'; at++) {
        if (*at != '/' && *at != '\0') {
            continue;
        }
        char kept = *at;
        *at = '\0';
        struct stat st;
        int number = mkdir(path, 0755) < 0 ? errno : 0;
        if (number != 0 && (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))) {
            return write_error(path, number, err); /* stat would say of each that it is not there */
        }
        *at = kept;
    }
    return true;
}

void file_working_dir(char *out, size_t out_bytes)
{
    /* "(unreachable)": outside of our root. A folder above it may be closed to us */
    if (getcwd(out, out_bytes) == NULL || out[0] != '/' || !file_exists(out)) {
        snprintf(out, out_bytes, ".");
    }
}

/* Without a name, so that nothing is left behind by who is killed meanwhile. A folder that was removed takes such a
 * file all the same (tmpfs). */
static bool takes_nameless(const char *dir)
{
    struct stat st;
    int fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    return fd >= 0 && close(fd) == 0 && stat(dir, &st) == 0 && st.st_nlink > 0;
}

/* Some file systems have none without a name (NFS, FAT, FUSE, an older overlay), and the reason of a refusal is that of
 * an ordinary file. */
static bool takes_named(const char *dir, struct err *err)
{
    char probe[4096];
    snprintf(probe, sizeof probe, "%s/.pillion.%ld.tmp", dir, (long)getpid());
    (void)unlink(probe); /* a pipe that somebody planted there would be waited for */
    int fd = open(probe, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return write_error(dir, errno, err);
    }
    close(fd);
    unlink(probe);
    return true;
}

bool file_prepare_dir(const char *dir, struct err *err)
{
    return make_parents(dir, err) && (takes_nameless(dir) || takes_named(dir, err));
}

bool file_link(const char *dir, const char *name, const char *target, struct err *err)
{
    char path[4096], temporary[4096 + 32];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", dir, name) >= sizeof path) {
        return err_set(err, ERR_LIMIT, ENAMETOOLONG, "the path %.60s... is too long", dir);
    }
    snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid());
    unlink(temporary); /* a killed run may have left one */
    if (symlink(target, temporary) < 0 || rename(temporary, path) < 0) {
        int number = errno;
        unlink(temporary);
        return write_error(path, number, err);
    }
    return true;
}

bool file_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* A pipe of this name is not waited for. */
bool file_touch(const char *path, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
    int failed = fd < 0 || futimens(fd, NULL) != 0 ? errno : 0;
    if (fd >= 0) {
        close(fd);
    }
    return failed == 0 || err_errno(err, failed, "cannot touch %s", path);
}

bool file_age(const char *path, uint64_t *seconds)
{
    struct stat st;
    struct timespec now;
    if (stat(path, &st) != 0) {
        return false;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    *seconds = now.tv_sec > st.st_mtime ? (uint64_t)(now.tv_sec - st.st_mtime) : 0;
    return true;
}

bool file_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool file_is_regular(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool file_remove(const char *path, struct err *err)
{
    if (unlink(path) < 0 && errno != ENOENT) {
        return err_errno(err, errno, "cannot remove %s", path);
    }
    return true;
}

bool file_list(const char *dir, void (*each)(void *context, const char *name), void *context,
               struct err *err)
{
    DIR *stream = opendir(dir);
    if (stream == NULL) {
        return err_errno(err, errno, "cannot list %s", dir);
    }
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            each(context, entry->d_name);
        }
    }
    closedir(stream);
    return true;
}

static bool copy_fd(int from, struct file_writer *w, struct err *err)
{
    for (;;) {
        char chunk[16 * 1024];
        ssize_t got = read(from, chunk, sizeof chunk);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return err_errno(err, errno, "cannot read this program's own file");
        }
        if (got == 0) {
            return true;
        }
        if (!sink_to_file(w, chunk, (size_t)got, err)) {
            return false;
        }
    }
}

bool file_copy_self(const char *dir, struct buf *path_out, struct err *err)
{
    int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (self < 0) {
        return err_errno(err, errno, "cannot open /proc/self/exe; is /proc mounted?");
    }
    char path[4096];
    struct file_writer w;
    bool ok = (size_t)snprintf(path, sizeof path, "%s/pillion", dir) < sizeof path;
    ok = ok ? make_parents(dir, err) && file_create_atomic(&w, path, err)
            : err_set(err, ERR_LIMIT, ENAMETOOLONG, "the path %.60s... is too long", dir);
    if (ok) {
        ok = copy_fd(self, &w, err) && (fchmod(w.fd, 0755) == 0 || write_error(path, errno, err));
        if (!ok) {
            file_abandon(&w);
        }
        ok = ok && file_commit(&w, err);
    }
    close(self);
    if (ok) {
        buf_text(path_out, path);
    }
    return ok;
}

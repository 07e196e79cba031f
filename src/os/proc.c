#include "os/proc.h"
#include "base/time.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { PROC_PATH_MAX = 96, READ_CHUNK = 4096 };

static void proc_path(char out[static PROC_PATH_MAX], uint32_t pid, uint32_t tid, const char *name)
{
    if (tid == 0) {
        snprintf(out, PROC_PATH_MAX, "/proc/%u/%s", pid, name);
    } else {
        snprintf(out, PROC_PATH_MAX, "/proc/%u/task/%u/%s", pid, tid, name);
    }
}

bool proc_read(uint32_t pid, uint32_t tid, const char *name, struct buf *out, struct err *err)
{
    char path[PROC_PATH_MAX];
    proc_path(path, pid, tid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_errno(err, errno, "cannot open %s", path);
    }
    buf_clear(out);
    ssize_t got = 0;
    int failed = 0;
    do {
        char *room = out->max - out->len < READ_CHUNK ? NULL : buf_room(out, READ_CHUNK);
        got = room == NULL ? 0 : read(fd, room, READ_CHUNK);
        failed = got < 0 ? errno : 0;
        out->len += got > 0 ? (size_t)got : 0;
    } while (got > 0 || failed == EINTR);
    close(fd);
    return failed == 0 || err_errno(err, failed, "cannot read %s", path);
}

static bool list_numbers(const char *dir, struct pid_list *out, struct err *err)
{
    DIR *stream = opendir(dir);
    if (stream == NULL) {
        return err_errno(err, errno, "cannot list %s", dir);
    }
    vec_clear(&out->ids);
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        uint64_t number;
        if (str_u64(str_of(entry->d_name), &number)) {
            uint32_t *id = vec_push(&out->ids);
            if (id != NULL) {
                *id = (uint32_t)number;
            }
        }
    }
    closedir(stream);
    return true;
}

bool proc_list_processes(struct pid_list *out, struct err *err)
{
    return list_numbers("/proc", out, err);
}

bool proc_list_threads(uint32_t pid, struct pid_list *out, struct err *err)
{
    char path[PROC_PATH_MAX];
    proc_path(path, pid, 0, "task");
    return list_numbers(path, out, err);
}

bool proc_exe(uint32_t pid, char *out, size_t out_bytes)
{
    char path[PROC_PATH_MAX];
    proc_path(path, pid, 0, "exe");
    ssize_t len = readlink(path, out, out_bytes - 1);
    if (len < 0) {
        return false;
    }
    struct str text = {out, (size_t)len};
    if (str_ends(text, STR(" (deleted)"))) {
        text.len -= sizeof " (deleted)" - 1;
    }
    out[text.len] = '\0';
    return true;
}

static bool is_overlay(int fd)
{
    enum { OVERLAYFS_SUPER_MAGIC = 0x794c7630 };
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 && (unsigned long)fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

/* Opens a regular file and proves that it is the mapped one; -1 when not. O_NONBLOCK because a
 * hostile process may have put a pipe at the path meanwhile. */
static int open_if_same(const char *path, uint64_t inode, bool by_name)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return -1;
    }
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        (st.st_ino == inode || (by_name && is_overlay(fd)))) {
        return fd;
    }
    close(fd);
    errno = ESTALE;
    return -1;
}

bool proc_open_mapped(uint32_t pid, struct str path, uint64_t inode, int *out, struct err *err)
{
    char name[4096 + 64];
    proc_path(name, pid, 0, "exe");
    int fd = open_if_same(name, inode, false);
    if (fd < 0 && path.len > 0 && path.len < 4096 && path.ptr[0] == '/') {
        snprintf(name, sizeof name, "/proc/%u/root%.*s", pid, (int)path.len, path.ptr);
        fd = open_if_same(name, inode, true);
        if (fd < 0) {
            snprintf(name, sizeof name, "%.*s", (int)path.len, path.ptr);
            fd = open_if_same(name, inode, true);
        }
    }
    if (fd < 0) {
        return err_errno(err, errno, "cannot open %.*s as mapped by pid %u", (int)path.len,
                         path.ptr, pid);
    }
    *out = fd;
    return true;
}

bool proc_identify(int fd, struct file_identity *out)
{
    struct stat st;
    if (fstat(fd, &st) < 0) {
        return false;
    }
    *out = (struct file_identity){
        .device = st.st_dev,
        .inode = st.st_ino,
        .size_bytes = (uint64_t)st.st_size,
        .modified_ns = (uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec,
    };
    return true;
}

void proc_close(int fd)
{
    close(fd);
}

static bool read_at(void *context, uint64_t offset, void *out, size_t len, struct err *err)
{
    int fd = (int)(intptr_t)context;
    char *to = out;
    while (len > 0) {
        ssize_t got = pread(fd, to, len, (off_t)offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return err_errno(err, errno, "cannot read at offset %llu", (unsigned long long)offset);
        }
        if (got == 0) {
            return err_set(err, ERR_MALFORMED, 0, "the file ends before offset %llu",
                           (unsigned long long)offset + len);
        }
        to += got;
        offset += (uint64_t)got;
        len -= (size_t)got;
    }
    return true;
}

struct memory_reader proc_file_reader(int fd)
{
    return (struct memory_reader){read_at, (void *)(intptr_t)fd};
}

bool proc_open_kernel_symbols(int *out, struct err *err)
{
    int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_errno(err, errno, "cannot open /proc/kallsyms");
    }
    *out = fd;
    return true;
}

bool proc_read_next(int fd, void *out, size_t max_bytes, size_t *len, struct err *err)
{
    ssize_t got;
    do {
        got = read(fd, out, max_bytes);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return err_errno(err, errno, "cannot read");
    }
    *len = (size_t)got;
    return true;
}

uint64_t proc_own_rss_bytes(void)
{
    struct buf text;
    buf_init(&text, 4 * READ_CHUNK);
    uint64_t pages = 0;
    char name[] = "statm";
    if (proc_read(proc_own_pid(), 0, name, &text, NULL)) {
        struct str rest = buf_slice(&text);
        (void)str_cut(&rest, ' ');
        (void)str_u64(str_cut(&rest, ' '), &pages);
    }
    buf_release(&text);
    return pages * proc_page_bytes();
}

uint64_t proc_tick_ns(void)
{
    return NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
}

uint64_t proc_page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t proc_descriptor_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

/* The vdso is an ELF image of a page or two; its section table ends it. */
struct str proc_own_vdso(void)
{
    const char *at = (const char *)getauxval(AT_SYSINFO_EHDR);
    if (at == NULL) {
        return (struct str){NULL, 0};
    }
    Elf64_Ehdr header;
    memcpy(&header, at, sizeof header);
    return (struct str){at, header.e_shoff + (size_t)header.e_shentsize * header.e_shnum};
}

bool proc_exists(uint32_t pid)
{
    char path[PROC_PATH_MAX];
    proc_path(path, pid, 0, "stat");
    return access(path, F_OK) == 0;
}

void proc_host_name(char *out, size_t out_bytes)
{
    out[0] = '\0';
    (void)gethostname(out, out_bytes);
    out[out_bytes - 1] = '\0';
}

uint32_t proc_own_pid(void)
{
    return (uint32_t)getpid();
}

uint32_t proc_own_uid(void)
{
    return (uint32_t)geteuid();
}

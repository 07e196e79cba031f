/*
 * The files of /proc, read or opened but not interpreted (target/ does that), and what the kernel says there of this
 * process. Where root is refused as root, the call is repeated as the user of that process (os/identity).
 */
#include "os/proc.h"
#include "base/time.h"
#include "os/identity.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    PROC_PATH_MAX = 96,
    READ_CHUNK = 4096,
    WEIGHT_PAGES = 16,    /* as many as a fault maps at once; together more than 999 */
    WEIGHT_MAPPINGS = 64,
};

static void proc_path(char out[static PROC_PATH_MAX], uint32_t pid, uint32_t tid, const char *name)
{
    if (tid == 0) {
        snprintf(out, PROC_PATH_MAX, "/proc/%u/%s", pid, name);
    } else {
        snprintf(out, PROC_PATH_MAX, "/proc/%u/task/%u/%s", pid, tid, name);
    }
}

/* A C library that is made for old kernels, too, sets close-on-exec by a call of its own. */
static int open_text(const char *path)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

/* Below /proc/PID some things are shown to the process's own user only. */
static ssize_t read_link_of(uint32_t pid, const char *path, char *out, size_t max_bytes)
{
    ssize_t len = readlink(path, out, max_bytes);
    if (len < 0 && identity_visit(pid, errno)) {
        len = readlink(path, out, max_bytes);
        identity_return();
    }
    return len;
}

/* These come whole with the first read, if there is room; of longer ones a read may give less than there is. */
static bool is_one_record(const char *name)
{
    return strcmp(name, "stat") == 0 || strcmp(name, "schedstat") == 0;
}

/* 0, or an errno; `opened` tells what failed. */
static int read_text(const char *path, bool once, struct buf *out, bool *opened)
{
    int fd = open_text(path);
    *opened = fd >= 0;
    if (fd < 0) {
        return errno;
    }
    buf_clear(out);
    ssize_t got = 0;
    int failed = 0;
    do {
        char *room = out->max - out->len < READ_CHUNK ? NULL : buf_room(out, READ_CHUNK);
        got = room == NULL ? 0 : read(fd, room, READ_CHUNK);
        failed = got < 0 ? errno : 0;
        out->len += got > 0 ? (size_t)got : 0;
    } while ((got > 0 && (!once || got == READ_CHUNK)) || failed == EINTR);
    close(fd);
    return failed;
}

bool proc_read(uint32_t pid, uint32_t tid, const char *name, struct buf *out, struct err *err)
{
    char path[PROC_PATH_MAX];
    bool opened, once = is_one_record(name);
    proc_path(path, pid, tid, name);
    int failed = read_text(path, once, out, &opened);
    if (failed != 0 && identity_visit(pid, failed)) {
        failed = read_text(path, once, out, &opened);
        identity_return();
    }
    return failed == 0 || err_errno(err, failed, "cannot %s %s", opened ? "read" : "open", path);
}

size_t proc_read_file(const char *path, void *out, size_t max_bytes)
{
    int fd = open_text(path);
    size_t len = fd >= 0 ? proc_read_start(fd, out, max_bytes) : 0;
    if (fd >= 0) {
        proc_close(fd);
    }
    return len;
}

uint32_t proc_last_id(void)
{
    char text[128];
    struct str line = str_trim((struct str){text, proc_read_file("/proc/loadavg", text, sizeof text)});
    size_t blank = str_find_last(line, ' ');
    uint64_t id = 0;
    return blank < line.len && str_u64(str_sub(line, blank + 1, line.len), &id) ? (uint32_t)id : 0;
}

int proc_open_thread(uint32_t pid, uint32_t tid, const char *name)
{
    char path[PROC_PATH_MAX];
    proc_path(path, pid, tid, name);
    return open_text(path);
}

int proc_open_own_sched(void)
{
    return open_text("/proc/thread-self/sched");
}

int proc_open_own_schedstat(void)
{
    return open_text("/proc/thread-self/schedstat");
}

size_t proc_read_start(int fd, void *out, size_t max_bytes)
{
    ssize_t got = pread(fd, out, max_bytes, 0);
    return got > 0 ? (size_t)got : 0;
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

/* A folder has a link for each folder in it, and two of its own. */
uint32_t proc_count_threads(uint32_t pid)
{
    char path[PROC_PATH_MAX];
    struct stat st;
    proc_path(path, pid, 0, "task");
    return stat(path, &st) == 0 && st.st_nlink > 2 ? (uint32_t)st.st_nlink - 2 : 0;
}

bool proc_link(uint32_t pid, const char *name, char *out, size_t out_bytes)
{
    char path[PROC_PATH_MAX];
    proc_path(path, pid, 0, name);
    ssize_t len = read_link_of(pid, path, out, out_bytes - 1);
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

int proc_descriptor_of(const struct memory_reader *file)
{
    return file->read == read_at ? (int)(intptr_t)file->context : -1;
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

/* The program comes first, and is all there is of a static one. */
static int let_go(struct dl_phdr_info *own, size_t size, void *context)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    (void)size;
    (void)context;
    for (unsigned i = 0; i < own->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &own->dlpi_phdr[i];
        uintptr_t begin = (own->dlpi_addr + part->p_vaddr) & ~(page - 1);
        uintptr_t end = (own->dlpi_addr + part->p_vaddr + part->p_memsz) & ~(page - 1);
        if (part->p_type == PT_LOAD && (part->p_flags & PF_W) == 0 && begin < end) {
            (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
        }
    }
    return 1;
}

void proc_let_go_of_code(void)
{
    (void)dl_iterate_phdr(let_go, NULL);
}

/* What a line of our status says, but for what proc_outweigh maps. Asked every second: no memory is got and given back
 * for it. */
static uint64_t own_resident_bytes(const char *line)
{
    char path[PROC_PATH_MAX], text[4096];
    uint64_t bytes[2] = {0};
    proc_path(path, proc_own_pid(), 0, "status");
    text[proc_read_file(path, text, sizeof text - 1)] = '\0';
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? line : "\nRssShmem:", *at = strstr(text, name);
        bytes[i] = at != NULL ? strtoull(at + strlen(name), NULL, 10) * 1024 : 0;
    }
    return bytes[0] > bytes[1] ? bytes[0] - bytes[1] : 0;
}

uint64_t proc_own_rss_bytes(void)
{
    return own_resident_bytes("\nVmRSS:");
}

void proc_be_first_to_go(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, "1000", 4);
        close(fd);
    }
}

/* Shared pages, as reclaim does not take them; mapped again and again, as each mapping counts. */
void proc_outweigh(void)
{
    size_t bytes = WEIGHT_PAGES * (size_t)proc_page_bytes();
    char *first = mmap(NULL, bytes, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (unsigned i = 0; i < WEIGHT_MAPPINGS && first != MAP_FAILED; i++) {
        const volatile char *page = i == 0 ? first : mremap(first, 0, bytes, MREMAP_MAYMOVE);
        if (page == MAP_FAILED) {
            return;
        }
        for (size_t at = 0; at < bytes; at += proc_page_bytes()) {
            (void)page[at];
        }
    }
}

uint64_t proc_own_rss_peak_bytes(void)
{
    return own_resident_bytes("\nVmHWM:");
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

/* Not by access, which filters kill for. */
static bool is_there(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

bool proc_is_mounted(void)
{
    return is_there("/proc/self");
}

bool proc_exists(uint32_t pid)
{
    char path[PROC_PATH_MAX];
    proc_path(path, pid, 0, "stat");
    return is_there(path);
}

bool proc_thread_exists(uint32_t pid, uint32_t tid)
{
    char path[PROC_PATH_MAX];
    proc_path(path, pid, tid, "");
    return is_there(path);
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

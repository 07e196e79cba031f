/* Reads another process's memory while it runs: by process_vm_readv, many pieces in one call, else by
 * /proc/PID/mem. Finds out once per process which of the two is allowed, and names the gate when
 * neither is. */
#include "os/remote.h"
#include "os/access.h"
#include "os/identity.h"
#include "os/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    PARTS_MAX = 512, /* per call; both tables are on the stack of a small thread: 16 KiB */
    GAP_MAX = 2048,  /* bytes between two pieces that are read with them: that costs less than another
                      * part, for which the kernel looks mapping and page up again */
};

/* ---- refusals ---- */

static bool refuse(uint32_t pid, int number, struct err *err)
{
    if (number == ESRCH) {
        return err_set(err, ERR_GONE, number, "pid %u ended", pid);
    }
    if (number == EPERM || number == EACCES) {
        char why[ACCESS_TEXT_MAX];
        access_refusal(pid, ACCESS_MEMORY, why);
        return err_set(err, ERR_DENIED, number, "cannot read the memory of pid %u (%s): %s", pid,
                       err_name(number), why);
    }
    return err_errno(err, number, "cannot read the memory of pid %u", pid);
}

static bool refuse_address(uint32_t pid, uint64_t address, struct err *err)
{
    return err_set(err, ERR_MALFORMED, EFAULT, "pid %u has nothing mapped at %#llx", pid,
                   (unsigned long long)address);
}

/* ---- one range ---- */

static int open_mem(uint32_t pid)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%u/mem", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && identity_visit(pid, errno)) {
        fd = open(path, O_RDONLY | O_CLOEXEC);
        identity_return();
    }
    return fd;
}

/* The bytes read: fewer than `len` where the mapping ends, 0 where nothing is mapped; or -errno. The
 * file gives 0 bytes when the memory it was opened for is gone, which is ESRCH here. */
static ssize_t read_file(int mem, uint64_t address, void *out, size_t len)
{
    ssize_t got = pread(mem, out, len, (off_t)address);
    if (got == 0) {
        return -ESRCH;
    }
    bool unmapped = got < 0 && (errno == EIO || errno == EFAULT || errno == EINVAL);
    return unmapped ? 0 : got < 0 ? -errno : got;
}

static ssize_t read_call(uint32_t pid, uint64_t address, void *out, size_t len)
{
    struct iovec local = {out, len};
    struct iovec remote = {(void *)(uintptr_t)address, len};
    ssize_t got = process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0);
    return got >= 0 ? got : errno == EFAULT ? 0 : -errno;
}

/* Of these the other way may know nothing: a seccomp filter, a kernel without the call. */
static bool is_other_way_open(ssize_t got)
{
    return got == -ENOSYS || got == -EPERM;
}

static ssize_t read_once_by_file(uint32_t pid, uint64_t address, void *out, size_t len)
{
    int mem = open_mem(pid);
    if (mem < 0) {
        return errno == ENOENT ? -ESRCH : -errno;
    }
    ssize_t got = read_file(mem, address, out, len);
    close(mem);
    return got;
}

static bool read_remote(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    uint32_t pid = (uint32_t)(uintptr_t)context;
    if (len == 0) {
        return true;
    }
    ssize_t got = read_call(pid, address, out, len);
    if (is_other_way_open(got)) {
        got = read_once_by_file(pid, address, out, len);
    }
    if (got == (ssize_t)len) {
        return true;
    }
    return got < 0 ? refuse(pid, (int)-got, err) : refuse_address(pid, address + (uint64_t)got, err);
}

struct memory_reader remote_reader(uint32_t pid)
{
    return (struct memory_reader){read_remote, (void *)(uintptr_t)pid};
}

/* ---- opening ---- */

static bool open_file_way(struct remote *r, uint32_t pid, uint64_t probe, struct err *err)
{
    uint64_t word;
    int mem = open_mem(pid);
    if (mem < 0) {
        return refuse(pid, errno == ENOENT ? ESRCH : errno, err);
    }
    ssize_t got = read_file(mem, probe, &word, sizeof word);
    if (got != sizeof word) {
        close(mem);
        return got < 0 ? refuse(pid, (int)-got, err) : refuse_address(pid, probe, err);
    }
    *r = (struct remote){pid, mem};
    return true;
}

bool remote_open(struct remote *r, uint32_t pid, uint64_t probe, struct err *err)
{
    uint64_t word;
    ssize_t got = read_call(pid, probe, &word, sizeof word);
    if (is_other_way_open(got)) {
        return open_file_way(r, pid, probe, err);
    }
    if (got != sizeof word) {
        return got < 0 ? refuse(pid, (int)-got, err) : refuse_address(pid, probe, err);
    }
    *r = (struct remote){pid, -1};
    return true;
}

void remote_close(struct remote *r)
{
    if (r->mem >= 0) {
        close(r->mem);
    }
    r->mem = -1;
}

/* ---- batches ---- */

static bool give_up(struct remote_caller *caller, struct memory_piece *pieces, size_t count,
                    int number, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        pieces[i].got = 0;
    }
    caller->counts.gone += number == ESRCH;
    caller->counts.denied += number == EPERM || number == EACCES;
    /* in a catcher there is no time for the reason in words */
    const char *why = number == ESRCH ? "the process ended" : err_name(number);
    return err_set(err, err_kind_of(number), number, "cannot read the memory of pid %u any more: %s",
                   caller->remote->pid, why);
}

static bool batch_by_file(struct remote_caller *caller, struct memory_piece *pieces, size_t count,
                          struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        struct memory_piece *piece = &pieces[i];
        if (piece->len == 0) {
            continue;
        }
        ssize_t got = read_file(caller->remote->mem, piece->address, piece->out, piece->len);
        caller->counts.calls++;
        if (got < 0) {
            return give_up(caller, pieces, count, (int)-got, err);
        }
        piece->got = (uint32_t)got;
        caller->counts.bytes += (uint64_t)got;
        caller->counts.unmapped += piece->got < piece->len;
    }
    return true;
}

/* A call's worth of parts: pieces that follow each other upwards are one, and what lies between them
 * goes nowhere. `single`: a part for each piece and page, since faults are reported by whole parts. */
struct parts {
    struct iovec local[PARTS_MAX], remote[PARTS_MAX];
    unsigned locals, remotes;
    size_t bytes;
    bool single;
    unsigned char nowhere[GAP_MAX];
};

static void add_local(struct parts *p, void *out, size_t len)
{
    p->local[p->locals++] = (struct iovec){out, len};
    p->bytes += len;
}

static void add_part(struct parts *p, uint64_t address, void *out, size_t len)
{
    struct iovec *last = p->remotes > 0 ? &p->remote[p->remotes - 1] : NULL;
    uint64_t end = last != NULL ? (uint64_t)(uintptr_t)last->iov_base + last->iov_len : 0;
    uint64_t gap = address - end;
    if (last == NULL || p->single || gap > GAP_MAX) {
        p->remote[p->remotes++] = (struct iovec){(void *)(uintptr_t)address, len};
    } else {
        last->iov_len += gap + len;
        if (gap > 0) {
            add_local(p, p->nowhere, gap);
        }
    }
    add_local(p, out, len);
}

/* What is not read yet of the pieces from `first` on. */
static void list_parts(struct parts *p, const struct memory_piece *pieces, size_t first,
                       size_t count, size_t page)
{
    p->locals = p->remotes = 0;
    p->bytes = 0;
    for (size_t i = first; i < count; i++) {
        for (uint32_t done = pieces[i].got; done < pieces[i].len;) {
            uint64_t address = pieces[i].address + done;
            size_t part = pieces[i].len - done;
            size_t left = page - (size_t)(address & (page - 1));
            part = p->single && left < part ? left : part;
            if (p->locals + 2 > PARTS_MAX) {
                return;
            }
            add_part(p, address, (char *)pieces[i].out + done, part);
            done += (uint32_t)part;
        }
    }
}

/* Credits `got` bytes to the pieces from `first` on; the first piece that is not complete. */
static size_t credit(struct remote_caller *caller, const struct parts *p,
                     struct memory_piece *pieces, size_t first, size_t count, size_t got)
{
    for (unsigned i = 0; i < p->locals && got > 0; i++) {
        size_t taken = p->local[i].iov_len < got ? p->local[i].iov_len : got;
        got -= taken;
        if (p->local[i].iov_base == p->nowhere) {
            continue;
        }
        while (pieces[first].got == pieces[first].len) {
            first++;
        }
        pieces[first].got += (uint32_t)taken;
        caller->counts.bytes += taken;
    }
    while (first < count && pieces[first].got == pieces[first].len) {
        first++;
    }
    return first;
}

/* A part that came to nothing may have failed for any of its pages: once more, one by one. */
static bool is_told(const struct parts *p, size_t got)
{
    size_t before = 0;
    unsigned i = 0;
    for (; i < p->remotes && before + p->remote[i].iov_len <= got; i++) {
        before += p->remote[i].iov_len;
    }
    return p->single || got > before;
}

static bool batch_by_call(struct remote_caller *caller, struct memory_piece *pieces, size_t count,
                          struct err *err)
{
    struct parts parts;
    size_t page = (size_t)proc_page_bytes();
    parts.single = false;
    for (size_t first = 0; first < count;) {
        list_parts(&parts, pieces, first, count, page);
        if (parts.remotes == 0) {
            break;
        }
        ssize_t got = process_vm_readv((pid_t)caller->remote->pid, parts.local, parts.locals,
                                       parts.remote, parts.remotes, 0);
        caller->counts.calls++;
        if (got < 0 && errno != EFAULT) {
            return give_up(caller, pieces, count, errno, err);
        }
        size_t bytes = got < 0 ? 0 : (size_t)got;
        first = credit(caller, &parts, pieces, first, count, bytes);
        if (bytes < parts.bytes && is_told(&parts, bytes)) {
            caller->counts.unmapped++; /* the piece that it stopped in is not mapped further */
            first++;
        } else if (bytes < parts.bytes) {
            parts.single = true;
        }
    }
    return true;
}

static bool batch_read(void *context, struct memory_piece *pieces, size_t count, struct err *err)
{
    struct remote_caller *caller = context;
    for (size_t i = 0; i < count; i++) {
        pieces[i].got = 0;
    }
    return caller->remote->mem >= 0 ? batch_by_file(caller, pieces, count, err)
                                    : batch_by_call(caller, pieces, count, err);
}

struct memory_batch remote_batch(struct remote_caller *caller)
{
    return (struct memory_batch){batch_read, caller};
}

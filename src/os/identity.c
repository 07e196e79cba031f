/* Each id is set by a system call of the calling thread alone, and asked for again where setting tells no failure. What
 * the kernel does besides, making this process undumpable, is undone. Nothing here reads by the functions of proc.c,
 * which come here when they are refused. */
#include "os/identity.h"
#include "target/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH_BYTES = 32, STATUS_BYTES = 8 * 1024, KEEP = -1 };

/* Not by proc_read, which would come here when it is refused. */
static bool read_status(uint32_t pid, struct proc_status *out)
{
    char path[PATH_BYTES], text[STATUS_BYTES];
    snprintf(path, sizeof path, "/proc/%u/status", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (fd >= 0) {
        close(fd);
    }
    return got > 0 && status_parse((struct str){text, (size_t)got}, out, NULL);
}

static bool is_one(const struct proc_ids *ids)
{
    return ids->real == ids->effective && ids->real == ids->saved;
}

bool identity_of(uint32_t pid, struct identity *out)
{
    struct proc_status status;
    if (!read_status(pid, &status) || !is_one(&status.uid) || !is_one(&status.gid) ||
        (status.uid.real == geteuid() && status.gid.real == getegid())) {
        return false;
    }
    *out = (struct identity){status.uid.real, status.gid.real};
    return true;
}

/* ---- file system ids ---- */

/* setfsuid tells the id before, and no failure: whether it worked is asked with one that cannot be set. */
static bool set_files(const struct identity *to)
{
    (void)syscall(SYS_setfsgid, to->gid);
    (void)syscall(SYS_setfsuid, to->uid);
    return (uint32_t)syscall(SYS_setfsuid, KEEP) == to->uid &&
           (uint32_t)syscall(SYS_setfsgid, KEEP) == to->gid;
}

void identity_return(void)
{
    int number = errno;
    const struct identity own = {geteuid(), getegid()};
    (void)syscall(SYS_setfsuid, own.uid);
    (void)syscall(SYS_setfsgid, own.gid);
    if (getauxval(AT_SECURE) == 0) {
        (void)prctl(PR_SET_DUMPABLE, 1);
    }
    errno = number;
}

bool identity_visit(uint32_t pid, int number)
{
    struct identity identity;
    bool good = (number == EACCES || number == EPERM) && identity_of(pid, &identity);
    if (good && !set_files(&identity)) {
        identity_return();
        good = false;
    }
    errno = number;
    return good;
}

/* ---- real ids ---- */

bool identity_take_real(const struct identity *identity)
{
    if (syscall(SYS_setresgid, identity->gid, KEEP, KEEP) == 0 &&
        syscall(SYS_setresuid, identity->uid, KEEP, KEEP) == 0) {
        return true;
    }
    identity_leave_real();
    return false;
}

void identity_leave_real(void)
{
    int number = errno;
    (void)syscall(SYS_setresuid, geteuid(), KEEP, KEEP);
    (void)syscall(SYS_setresgid, getegid(), KEEP, KEEP);
    errno = number;
}

/* ---- effective ids ---- */

bool identity_take_effective(const struct identity *identity)
{
    if (syscall(SYS_setresgid, KEEP, identity->gid, KEEP) == 0 &&
        syscall(SYS_setresuid, KEEP, identity->uid, KEEP) == 0) {
        return true;
    }
    identity_leave_effective();
    return false;
}

void identity_leave_effective(void)
{
    int number = errno;
    (void)syscall(SYS_setresuid, KEEP, getuid(), KEEP);
    (void)syscall(SYS_setresgid, KEEP, getgid(), KEEP);
    if (getauxval(AT_SECURE) == 0) {
        (void)prctl(PR_SET_DUMPABLE, 1);
    }
    errno = number;
}

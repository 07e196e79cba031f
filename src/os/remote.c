#include "os/remote.h"

#include <errno.h>
#include <sys/uio.h>

static bool read_remote(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    pid_t pid = (pid_t)(uintptr_t)context;
    struct iovec local = {out, len};
    struct iovec remote = {(void *)(uintptr_t)address, len};
    ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (got == (ssize_t)len) {
        return true;
    }
    if (got >= 0 || errno == EFAULT) {
        return err_set(err, ERR_MALFORMED, EFAULT, "pid %d has nothing mapped at %#llx", (int)pid,
                       (unsigned long long)address + (got > 0 ? (uint64_t)got : 0));
    }
    return err_errno(err, errno, "cannot read the memory of pid %d", (int)pid);
}

struct memory_reader remote_reader(uint32_t pid)
{
    return (struct memory_reader){read_remote, (void *)(uintptr_t)pid};
}

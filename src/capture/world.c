/*
 * world: the system itself as the answerer of capture's questions. Files and roots are descriptors,
 * carried in the handle; nothing is kept between two calls.
 */
#include "capture/world.h"
#include "os/proc.h"
#include "os/remote.h"

/* A root's handle is its descriptor + 1: null means our own. */
static void *handle_of_root(int fd)
{
    return (void *)(intptr_t)(fd + 1);
}

static int root_fd(void *handle)
{
    return (int)(intptr_t)handle - 1;
}

static int fd_of(const struct world_file *file)
{
    return (int)(intptr_t)file->handle;
}

static struct world_file file_of(int fd)
{
    return (struct world_file){proc_file_reader(fd), (void *)(intptr_t)fd};
}

static bool here_text(void *context, uint32_t pid, uint32_t tid, const char *name, struct buf *out,
                      struct err *err)
{
    (void)context;
    return proc_read(pid, tid, name, out, err);
}

static bool here_mapped(void *context, uint32_t pid, const struct world_mapping *mapping,
                        struct world_file *out, struct err *err)
{
    const struct proc_mapping wanted = {mapping->path, mapping->inode, mapping->start,
                                        mapping->limit};
    int fd;
    (void)context;
    if (!proc_open_mapped(pid, &wanted, &fd, err)) {
        return false;
    }
    *out = file_of(fd);
    return true;
}

static bool here_root_of(void *context, uint32_t pid, struct world_root *out)
{
    struct proc_root root;
    (void)context;
    if (!proc_root_of(pid, &root)) {
        return false;
    }
    *out = (struct world_root){root.device, root.inode, root.mounts};
    return true;
}

static bool here_open_root(void *context, uint32_t pid, void **out)
{
    int fd;
    (void)context;
    if (!proc_open_root(pid, &fd)) {
        return false;
    }
    *out = handle_of_root(fd);
    return true;
}

static void here_close_root(void *context, void *root)
{
    (void)context;
    proc_close(root_fd(root));
}

static bool here_under(void *context, void *root, const char *path, struct world_file *out)
{
    int fd;
    (void)context;
    if (!proc_open_under(root_fd(root), path, &fd)) {
        return false;
    }
    *out = file_of(fd);
    return true;
}

static bool here_perf_map(void *context, uint32_t pid, struct world_file *out)
{
    int fd;
    (void)context;
    if (!proc_open_perf_map(pid, &fd)) {
        return false;
    }
    *out = file_of(fd);
    return true;
}

static void here_close(void *context, struct world_file *file)
{
    (void)context;
    proc_close(fd_of(file));
}

static struct memory_reader here_memory(void *context, uint32_t pid, uint64_t moment_ns)
{
    (void)context;
    (void)moment_ns;
    return remote_reader(pid);
}

struct world world_here(void)
{
    return (struct world){
        .text = here_text,
        .mapped = here_mapped,
        .root_of = here_root_of,
        .open_root = here_open_root,
        .close_root = here_close_root,
        .under = here_under,
        .perf_map = here_perf_map,
        .close = here_close,
        .memory = here_memory,
        .vdso = proc_own_vdso(),
        .kernel_symbols = true,
    };
}

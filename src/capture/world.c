/*
 * world: the system itself as the answerer of capture's questions. Files and roots are carried in the handle; nothing
 * is kept between two calls. What may not answer goes through the door, which is the context (null: all answers).
 */
#include "capture/world.h"
#include "os/door.h"
#include "os/foreign.h"
#include "os/proc.h"
#include "os/remote.h"

#include <string.h>

enum { LINK_MAX = 4096, PIECE_BYTES = 65536 };

/* A root's handle is its descriptor + 1, and in the last bit whether anything below it may not answer; null means our
 * own. */
static void *handle_of_root(int fd, bool may_hang)
{
    return (void *)((intptr_t)(fd + 1) * 2 + may_hang);
}

static int root_fd(void *handle)
{
    return (int)((intptr_t)handle / 2) - 1;
}

static bool root_may_hang(void *handle)
{
    return ((intptr_t)handle & 1) != 0;
}

/* An odd handle is a descriptor, any other is the door's. */
static struct world_file file_of(int fd)
{
    return (struct world_file){proc_file_reader(fd), (void *)((intptr_t)fd * 2 + 1)};
}

static bool here_text(void *context, uint32_t pid, uint32_t tid, const char *name, struct buf *out,
                      struct err *err)
{
    (void)context;
    if (strcmp(name, "cwd") != 0) {
        return proc_read(pid, tid, name, out, err);
    }
    char folder[LINK_MAX];
    bool good = proc_link(pid, name, folder, sizeof folder);
    buf_clear(out);
    buf_text(out, good ? folder : "");
    return good || err_set(err, ERR_DENIED, 0, "cannot read where cwd of pid %u leads", pid);
}

static bool here_mapped(void *context, uint32_t pid, const struct world_mapping *mapping,
                        struct world_file *out, struct err *err)
{
    const struct foreign_mapping wanted = {mapping->path, mapping->inode, mapping->start, mapping->limit};
    int fd;
    if (context != NULL && door_is_needed(pid, mapping->path)) {
        out->may_stall = true;
        return door_open_mapped(context, pid, &wanted, &out->reader, &out->handle, err);
    }
    if (!foreign_open_mapped(pid, &wanted, &fd, err)) {
        return false;
    }
    *out = file_of(fd);
    return true;
}

static bool here_root_of(void *context, uint32_t pid, struct world_root *out)
{
    struct foreign_root root;
    (void)context;
    if (!foreign_root_of(pid, &root)) {
        return false;
    }
    *out = (struct world_root){root.device, root.inode, root.mounts};
    return true;
}

static bool here_open_root(void *context, uint32_t pid, void **out)
{
    int fd;
    (void)context;
    if (!foreign_open_root(pid, &fd)) {
        return false;
    }
    *out = handle_of_root(fd, context != NULL && door_is_needed(pid, STR("")));
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
    if (context != NULL && (root == NULL ? door_is_needed(0, str_of(path)) : root_may_hang(root))) {
        return door_open_under(context, root_fd(root), path, &out->reader, &out->handle);
    }
    if (!foreign_open_under(root_fd(root), path, &fd)) {
        return false;
    }
    *out = file_of(fd);
    return true;
}

static bool here_perf_map(void *context, uint32_t pid, struct world_file *out)
{
    int fd;
    if (context != NULL && door_is_needed(pid, STR(""))) {
        return door_open_perf_map(context, pid, &out->reader, &out->handle);
    }
    if (!foreign_open_perf_map(pid, &fd)) {
        return false;
    }
    *out = file_of(fd);
    return true;
}

static void here_close(void *context, struct world_file *file)
{
    (void)context;
    if (((intptr_t)file->handle & 1) != 0) {
        proc_close((int)((intptr_t)file->handle / 2));
    } else {
        door_close(file->handle);
    }
}

static struct memory_reader here_memory(void *context, uint32_t pid, uint64_t moment_ns)
{
    (void)context;
    (void)moment_ns;
    return remote_reader(pid);
}

static unsigned here_silent(void *context, char path[static WORLD_SILENT_MAX])
{
    return context == NULL ? 0 : door_left_count(context, path);
}

struct world world_behind(struct door *door)
{
    struct world world = world_here();
    world.context = door;
    return world;
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
        .silent = here_silent,
        .vdso = proc_own_vdso(),
        .kernel_symbols = true,
    };
}

/* How long it is is seen when there is no more. */
bool world_read(const struct world *world, uint32_t pid, const char *path, struct buf *out)
{
    struct world_file file;
    void *root;
    buf_clear(out);
    if (!world->open_root(world->context, pid, &root)) {
        return false;
    }
    bool good = world->under(world->context, root, path, &file);
    world->close_root(world->context, root);
    if (!good) {
        return false;
    }
    for (size_t piece = PIECE_BYTES; piece > 0;) {
        char *room = buf_room(out, piece);
        if (room != NULL && file.reader.read(file.reader.context, out->len, room, piece, NULL)) {
            out->len += piece;
        } else {
            piece = room != NULL ? piece / 2 : 0;
        }
    }
    world->close(world->context, &file);
    return !out->failed;
}

/* images_open: opening what an image is read from: the file itself while a path leads to it, else what a process has
 * loaded of it; the root that the process sees; its perf map; the vdso. Descriptors are counted here, with the lock,
 * for the publisher opens perf maps as well. */
#include "capture/follow/images_private.h"
#include "base/err.h"
#include "os/proc.h"

#include <stdlib.h>

static bool same_root(const struct world_root *a, const struct world_root *b)
{
    return a->device == b->device && a->inode == b->inode && a->mounts == b->mounts;
}

/* Distinct roots are few: containers of a task. */
static void *root_of(struct images *images, uint32_t pid)
{
    const struct world *world = images->world;
    struct world_root root, own;
    if (!world->root_of(world->context, pid, &root)) {
        return NULL;
    }
    vec_each(&images->roots, known)
    {
        if (same_root(&known->root, &root)) {
            return known->handle;
        }
    }
    struct images_root *fresh =
        images->roots.len < IMAGES_ROOTS_MAX ? vec_push(&images->roots) : NULL;
    if (fresh == NULL) {
        return NULL;
    }
    *fresh = (struct images_root){.root = root};
    bool ours = world->root_of(world->context, proc_own_pid(), &own) && same_root(&own, &root);
    if (!ours && !world->open_root(world->context, pid, &fresh->handle)) {
        fresh->handle = NULL;
    }
    return fresh->handle;
}

struct elf *image_headers(const struct memory_reader *file)
{
    struct elf *elf = calloc(1, sizeof *elf);
    if (elf != NULL && !elf_open(elf, file, NULL)) {
        free(elf);
        return NULL;
    }
    return elf;
}

/* The publisher opens perf maps meanwhile: both may think that the last descriptor is theirs, and one more is open. */
static bool may_open(struct images *images)
{
    pthread_mutex_lock(&images->lock);
    bool may = images->open_count < images->open_max;
    pthread_mutex_unlock(&images->lock);
    return may;
}

/* The file itself; or, deleted or replaced since, what the process has loaded of it. */
static bool open_file(struct images *images, struct image *image, uint32_t pid,
                      const struct mapped_file *file)
{
    const struct world *world = images->world;
    const struct world_mapping mapping = {file->path, file->inode, file->start, file->limit};
    struct err err = {0};
    if (may_open(images) && world->mapped(world->context, pid, &mapping, &image->file, &err)) {
        image->is_open = true;
        pthread_mutex_lock(&images->lock);
        images->open_count++;
        pthread_mutex_unlock(&images->lock);
        return true;
    }
    if (err.kind == ERR_NETWORK) {
        image->file.may_stall = true;
        return false; /* it does not answer, and would not for pages that the process has not read yet */
    }
    /* a record is of code only: linkers lay out what comes before it as it is in the file */
    uint64_t base = file->base != 0 ? file->base : file->start - file->file_offset;
    struct memory_reader memory = world->memory(world->context, pid, 0);
    if (!elf_memory_copy(&image->loaded, &memory, base, NULL)) {
        return false;
    }
    image->file.reader = elf_memory_reader(&image->loaded);
    return true;
}

void images_open(struct images *images, struct image *image, uint32_t pid,
                       const struct mapped_file *file)
{
    if (!open_file(images, image, pid, file)) {
        images->unopened++;
        return;
    }
    image->root = root_of(images, pid);
    image->loads = image_headers(&image->file.reader);
    image->has_headers = image->loads != NULL;
    image->frame_pointers = image->loads != NULL && elf_is_go(image->loads);
}

void images_open_perf_map(struct images *images, struct image *image)
{
    struct world_file map;
    pthread_mutex_lock(&images->lock);
    bool full = images->open_count >= images->open_max;
    pthread_mutex_unlock(&images->lock);
    if (full || !images->world->perf_map(images->world->context, image->pid, &map)) {
        return;
    }
    pthread_mutex_lock(&images->lock);
    bool late = image->has_map; /* the other thread was first */
    if (!late) {
        images->open_count++;
        image->map = map;
        image->has_map = true;
    }
    pthread_mutex_unlock(&images->lock);
    if (late) {
        images->world->close(images->world->context, &map);
    }
}

bool images_read_vdso(void *context, uint64_t offset, void *out, size_t len, struct err *err)
{
    const struct images *images = context;
    struct str vdso = images->world->vdso;
    if (offset > vdso.len || len > vdso.len - offset) {
        return err_set(err, ERR_MALFORMED, 0, "the vdso ends before offset %llu",
                       (unsigned long long)offset + len);
    }
    memcpy(out, vdso.ptr + offset, len);
    return true;
}

/* images_names: images as the publisher reads them: files with symbols, the kernel's symbols, names of generated code
 * from perf maps and jitdumps, debug files below the root of a process. The sampler owns the list of images, so each is
 * looked up under the list's lock; what is derived here, its own unwind table too, is never the sampler's. */
#include "capture/follow/images_private.h"
#include "base/err.h"
#include "capture/code.h"
#include "os/proc.h"

#include <stdlib.h>

enum {
    NAMING_TABLE_MAX_BYTES = 512 << 10,
    FEED_BYTES = 64 * 1024,
    FEED_MOST_BYTES = 128 << 20, /* per window and file: the rest comes with the next ones */
};

static bool read_kernel_text(void *context, void *out, size_t max, size_t *len, struct err *err)
{
    return proc_read_next((int)(intptr_t)context, out, max, len, err);
}

static bool open_kernel(const struct world *world, struct symbol_image *out, struct err *err)
{
    int fd;
    if (!world->kernel_symbols) {
        return err_set(err, ERR_GONE, 0, "a recording has no kernel symbols");
    }
    if (!proc_open_kernel_symbols(&fd, err)) {
        return false;
    }
    *out = (struct symbol_image){.kind = SYMBOL_IMAGE_KALLSYMS,
                                 .text = read_kernel_text,
                                 .text_context = (void *)(intptr_t)fd,
                                 .handle = (void *)(intptr_t)fd};
    return true;
}

/* No runtime writes so many: it is a hole, and there may be no end of it. */
static bool is_hole(const char *bytes, size_t len)
{
    return len == FEED_BYTES && bytes[0] == '\0' && memcmp(bytes, bytes + 1, len - 1) == 0;
}

/* Bytes of a file from *fed on, in pieces, until there are no more. A piece that is not there whole is
 * asked for in halves, down to a byte: the reader knows no file size. */
static bool feed_rest(struct image *image, const struct memory_reader *file, uint64_t *fed,
                      bool (*feed)(struct jit_names *names, const void *ptr, size_t len))
{
    char *bytes = malloc(FEED_BYTES);
    uint64_t most = *fed + FEED_MOST_BYTES;
    bool good = bytes != NULL;
    for (size_t len = FEED_BYTES; good && len > 0 && *fed < most;) {
        if (file->read(file->context, *fed, bytes, len, NULL)) {
            good = !is_hole(bytes, len) && feed(image->names, bytes, len);
            *fed += len;
        } else {
            len /= 2;
        }
    }
    free(bytes);
    return good;
}

static bool feed_map(struct jit_names *names, const void *ptr, size_t len)
{
    jit_feed_map(names, ptr, len);
    return true;
}

static bool feed_dump(struct jit_names *names, const void *ptr, size_t len)
{
    return jit_feed_dump(names, ptr, len, NULL);
}

/* What the program has written since the last time. */
static bool open_generated(struct images *images, struct image *image, struct symbol_image *out)
{
    if (!image->has_map) { /* of code that was met once and is remembered, nobody asked again */
        images_open_perf_map(images, image);
    }
    pthread_mutex_lock(&images->lock);
    struct image *dump = images_at(images, image->jitdump);
    struct memory_reader map = image->has_map ? image->map.reader : (struct memory_reader){0};
    pthread_mutex_unlock(&images->lock);
    if (image->names == NULL) {
        image->names = jit_names_new(JIT_NAMES_MAX_BYTES);
    }
    if (image->names != NULL && map.read != NULL) {
        (void)feed_rest(image, &map, &image->map_fed, feed_map);
    }
    if (image->names != NULL && dump != NULL && dump->file.reader.read != NULL &&
        !feed_rest(image, &dump->file.reader, &image->dump_fed, feed_dump)) {
        pthread_mutex_lock(&images->lock);
        image->jitdump = IMAGE_NONE; /* it is none */
        pthread_mutex_unlock(&images->lock);
    }
    *out = (struct symbol_image){.kind = SYMBOL_IMAGE_GENERATED};
    code_of_generated(runtimes, image->names, &out->code);
    return true;
}

void images_forget_names(struct images *images)
{
    pthread_mutex_lock(&images->lock); /* none goes meanwhile */
    vec_each(&images->slots, slot)
    {
        if (slot->image != NULL) {
            image_forget_names(slot->image);
        }
    }
    pthread_mutex_unlock(&images->lock);
}

static bool source_open(void *context, uint64_t key, struct symbol_image *out, struct err *err)
{
    struct images *images = context;
    if (key == IMAGE_KERNEL) {
        return open_kernel(images->world, out, err);
    }
    if (key == IMAGE_VDSO) {
        *out = (struct symbol_image){.file = {images_read_vdso, images}};
        return true;
    }
    struct image *image = images_locked_at(images, key);
    if (image != NULL && image->is_generated) {
        return open_generated(images, image, out);
    }
    if (image == NULL || image->file.reader.read == NULL) {
        return err_set(err, ERR_GONE, 0, "the file was gone before it could be opened");
    }
    *out = (struct symbol_image){.kind = SYMBOL_IMAGE_ELF, .file = image->file.reader};
    return true;
}

static void source_close(void *context, struct symbol_image *image)
{
    (void)context;
    if (image->kind == SYMBOL_IMAGE_KALLSYMS) {
        proc_close((int)(intptr_t)image->handle);
    }
    code_source_close(&image->code);
}

static bool source_code(void *context, struct elf *elf, struct code_source *out)
{
    (void)context;
    return code_of_file(runtimes, elf, out);
}

/* Unwind tables know the extents of functions that have no symbols. The sampler's own tables are not
 * the publisher's to use. */
static bool source_function(void *context, uint64_t key, uint64_t address, uint64_t *start,
                            uint64_t *limit)
{
    struct image *image = images_locked_at(context, key);
    if (image == NULL || image->file.reader.read == NULL) {
        return false;
    }
    if (image->naming_elf == NULL && (image->naming_elf = image_headers(&image->file.reader)) != NULL) {
        image->naming_table = unwind_table_new(image->naming_elf, NAMING_TABLE_MAX_BYTES);
    }
    return image->naming_table != NULL &&
           unwind_table_function(image->naming_table, address, start, limit);
}

struct symbol_source images_source(struct images *images)
{
    return (struct symbol_source){source_open, source_close, images, source_function, source_code};
}

static bool debug_open(void *context, uint64_t key, const char *path, struct memory_reader *out,
                       void **handle)
{
    struct images *images = context;
    const struct world *world = images->world;
    const struct image *image = images_locked_at(images, key);
    struct world_file file;
    if (image == NULL ||
        (!world->under(world->context, image->root, path, &file) &&
         (image->root == NULL || !world->under(world->context, NULL, path, &file)))) {
        return false;
    }
    *out = file.reader;
    *handle = file.handle;
    return true;
}

static void debug_close(void *context, void *handle)
{
    const struct images *images = context;
    struct world_file file = {.handle = handle};
    images->world->close(images->world->context, &file);
}

static struct str debug_path(void *context, uint64_t key)
{
    return images_path(context, key);
}

struct debug_source images_debug_source(struct images *images)
{
    return (struct debug_source){.open = debug_open, .close = debug_close, .path = debug_path, .context = images};
}

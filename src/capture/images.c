#include "capture/images.h"
#include "base/err.h"
#include "elf/elf.h"
#include "os/proc.h"

#include <stdlib.h>

struct image {
    char *path;
    uint32_t major, minor;
    uint64_t inode;
    int fd;             /* -1: could not be opened */
    struct elf *loads;  /* its headers, for the bias of mappings; null without */
};

void images_init(struct images *images)
{
    uint64_t share = proc_descriptor_limit() / 8; /* perf events and output files need some, too */
    *images = (struct images){.open_max = share < IMAGES_OPEN_MAX ? share : IMAGES_OPEN_MAX};
    pthread_mutex_init(&images->lock, NULL);
}

static void free_image(struct image *image)
{
    if (image->fd >= 0) {
        proc_close(image->fd);
    }
    if (image->loads != NULL) {
        elf_release(image->loads);
        free(image->loads);
    }
    free(image->path);
    free(image);
}

void images_release(struct images *images)
{
    vec_each(&images->files, image)
    {
        free_image(*image);
    }
    vec_release(&images->files);
    map_release(&images->by_identity);
    pthread_mutex_destroy(&images->lock);
}

static uint64_t identity_of(struct str path, uint32_t major, uint32_t minor, uint64_t inode)
{
    uint64_t device = (uint64_t)major << 32 | minor;
    return hash_u64(inode ^ hash_u64(device)) ^ (inode == 0 ? str_hash(path) : 0);
}

static struct image *image_at(struct images *images, uint64_t key)
{
    size_t index = (size_t)(key - IMAGE_FIRST_FILE);
    return key >= IMAGE_FIRST_FILE && index < images->files.len ? images->files.at[index] : NULL;
}

/* The same file under another name (a hard link, another mount namespace) is the same image. */
static uint64_t find_image(struct images *images, uint64_t identity, uint32_t major, uint32_t minor,
                           uint64_t inode)
{
    for (struct map_slot *slot = map_find(&images->by_identity, identity); slot != NULL;
         slot = map_next(&images->by_identity, slot)) {
        const struct image *image = image_at(images, slot->value);
        if (image->inode == inode && image->major == major && image->minor == minor) {
            return slot->value;
        }
    }
    return IMAGE_NONE;
}

static void open_image(struct images *images, struct image *image, uint32_t pid, struct str path)
{
    if (images->open_count >= images->open_max ||
        !proc_open_mapped(pid, path, image->inode, &image->fd, NULL)) {
        images->unopened++;
        return;
    }
    images->open_count++;
    image->loads = calloc(1, sizeof *image->loads);
    struct memory_reader reader = proc_file_reader(image->fd);
    if (image->loads != NULL && !elf_open(image->loads, &reader, NULL)) {
        free(image->loads);
        image->loads = NULL;
    }
}

static struct image *make_image(struct str path, uint32_t major, uint32_t minor, uint64_t inode)
{
    struct image *image = calloc(1, sizeof *image);
    char *copy = image == NULL ? NULL : malloc(path.len + 1);
    if (copy == NULL) {
        free(image);
        return NULL;
    }
    memcpy(copy, path.ptr, path.len);
    copy[path.len] = '\0';
    *image = (struct image){.path = copy, .major = major, .minor = minor, .inode = inode, .fd = -1};
    return image;
}

static uint64_t add_image(struct images *images, struct image *image, uint64_t identity)
{
    uint64_t key = IMAGE_FIRST_FILE + images->files.len;
    struct image **place = vec_push(&images->files);
    if (place == NULL || !map_add(&images->by_identity, identity, key)) {
        images->files.len -= place != NULL;
        return IMAGE_ANON;
    }
    *place = image;
    return key;
}

uint64_t images_file(struct images *images, uint32_t pid, struct str path, uint32_t major,
                     uint32_t minor, uint64_t inode)
{
    uint64_t identity = identity_of(path, major, minor, inode);
    pthread_mutex_lock(&images->lock);
    uint64_t key = find_image(images, identity, major, minor, inode);
    pthread_mutex_unlock(&images->lock);
    if (key != IMAGE_NONE) {
        return key;
    }
    struct image *image = make_image(path, major, minor, inode);
    if (image == NULL) {
        return IMAGE_ANON;
    }
    open_image(images, image, pid, path);
    pthread_mutex_lock(&images->lock);
    key = add_image(images, image, identity);
    pthread_mutex_unlock(&images->lock);
    if (key == IMAGE_ANON) {
        free_image(image);
    }
    return key;
}

uint64_t images_bias(struct images *images, uint64_t key, uint64_t map_start, uint64_t file_offset)
{
    pthread_mutex_lock(&images->lock);
    const struct image *image = image_at(images, key);
    const struct elf *loads = image == NULL ? NULL : image->loads;
    pthread_mutex_unlock(&images->lock);
    uint64_t bias = 0;
    if (loads != NULL && elf_bias(loads, map_start, file_offset, proc_page_bytes(), &bias)) {
        return bias;
    }
    if (key == IMAGE_VDSO) {
        return map_start; /* the vdso is linked at 0 */
    }
    /* without headers an address can at least say where in the file it is */
    return key == IMAGE_ANON ? 0 : map_start - file_offset;
}

struct str images_path(struct images *images, uint64_t key)
{
    switch (key) {
    case IMAGE_KERNEL:
        return STR("[kernel]");
    case IMAGE_VDSO:
        return STR("[vdso]");
    case IMAGE_NONE:
    case IMAGE_ANON:
        return STR("[anon]");
    default:
        break;
    }
    pthread_mutex_lock(&images->lock);
    const struct image *image = image_at(images, key);
    struct str path = image == NULL ? STR("[unknown]") : str_of(image->path);
    pthread_mutex_unlock(&images->lock);
    return path;
}

/* ---- for the publisher ---- */

static bool read_vdso(void *context, uint64_t offset, void *out, size_t len, struct err *err)
{
    (void)context;
    struct str vdso = proc_own_vdso();
    if (offset > vdso.len || len > vdso.len - offset) {
        return err_set(err, ERR_MALFORMED, 0, "the vdso ends before offset %llu",
                       (unsigned long long)offset + len);
    }
    memcpy(out, vdso.ptr + offset, len);
    return true;
}

static bool read_kernel_text(void *context, void *out, size_t max, size_t *len, struct err *err)
{
    return proc_read_next((int)(intptr_t)context, out, max, len, err);
}

static bool open_kernel(struct symbol_image *out, struct err *err)
{
    int fd;
    if (!proc_open_kernel_symbols(&fd, err)) {
        return false;
    }
    *out = (struct symbol_image){.kind = SYMBOL_IMAGE_KALLSYMS,
                                 .text = read_kernel_text,
                                 .text_context = (void *)(intptr_t)fd,
                                 .handle = (void *)(intptr_t)fd};
    return true;
}

static bool source_open(void *context, uint64_t key, struct symbol_image *out, struct err *err)
{
    struct images *images = context;
    if (key == IMAGE_KERNEL) {
        return open_kernel(out, err);
    }
    if (key == IMAGE_VDSO) {
        *out = (struct symbol_image){.file = {read_vdso, NULL}};
        return true;
    }
    pthread_mutex_lock(&images->lock);
    const struct image *image = image_at(images, key);
    int fd = image == NULL ? -1 : image->fd;
    pthread_mutex_unlock(&images->lock);
    if (fd < 0) {
        return err_set(err, ERR_GONE, 0, "the file was gone before it could be opened");
    }
    *out = (struct symbol_image){.kind = SYMBOL_IMAGE_ELF, .file = proc_file_reader(fd)};
    return true;
}

static void source_close(void *context, struct symbol_image *image)
{
    (void)context;
    if (image->kind == SYMBOL_IMAGE_KALLSYMS) {
        proc_close((int)(intptr_t)image->handle);
    }
}

struct symbol_source images_source(struct images *images)
{
    return (struct symbol_source){source_open, source_close, images};
}

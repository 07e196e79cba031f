/* images: the list of files whose code is mapped, under keys that are never used again, and what the sampler derives
 * from each: headers, unwind rules, the bias of its mappings. Opening, sweeping and what the publisher reads are the
 * other files' (images_private.h). */
#include "capture/follow/images_private.h"
#include "base/time.h"
#include "capture/code.h"
#include "os/proc.h"

#include <stdlib.h>

enum {
    TABLE_MAX_BYTES = 4 << 20, /* of unwind rules per image; all of cc1plus takes 3 MB */
    PERF_MAP_FIRST_MS = 10,    /* until a perf map is looked for again; doubles up to */
    PERF_MAP_MOST_MS = 1000,
};

void images_init(struct images *images, const struct world *world)
{
    uint64_t share = proc_descriptor_limit() / 8; /* perf events and output files need some, too */
    size_t most = share < IMAGES_OPEN_MAX ? share : IMAGES_OPEN_MAX;
    *images = (struct images){.world = world,
                              .round = 1,
                              .open_max = most,
                              .kept_max = most / 4 < IMAGES_KEPT_MAX ? most / 4 : IMAGES_KEPT_MAX};
    pthread_mutex_init(&images->lock, NULL);
}

void image_free_elf(struct elf *elf)
{
    if (elf != NULL) {
        elf_release(elf);
        free(elf);
    }
}

void image_forget_names(struct image *image)
{
    unwind_table_free(image->naming_table);
    image_free_elf(image->naming_elf);
    jit_names_free(image->names);
    image->naming_table = NULL;
    image->naming_elf = NULL;
    image->names = NULL;
    image->map_fed = image->dump_fed = 0;
}

static void free_image(const struct world *world, struct image *image)
{
    if (image == NULL) {
        return;
    }
    elf_memory_release(&image->loaded);
    image_forget_rules(image);
    image_forget_names(image);
    image_free_elf(image->loads);
    if (image->is_open) {
        world->close(world->context, &image->file);
    }
    if (image->has_map) {
        world->close(world->context, &image->map);
    }
    free(image->path);
    free(image);
}

/* One that is in no list, or no more. */
void images_close(struct images *images, struct image *image)
{
    pthread_mutex_lock(&images->lock); /* the publisher opens perf maps */
    images->open_count -= image->is_open + (size_t)image->has_map;
    pthread_mutex_unlock(&images->lock);
    free_image(images->world, image);
}

void images_release(struct images *images)
{
    vec_each(&images->slots, slot)
    {
        free_image(images->world, slot->image);
    }
    vec_each(&images->roots, root)
    {
        if (root->handle != NULL) {
            images->world->close_root(images->world->context, root->handle);
        }
    }
    free_image(images->world, images->vdso);
    vec_release(&images->slots);
    vec_release(&images->free_slots);
    vec_release(&images->unmapped);
    vec_release(&images->roots);
    map_release(&images->by_identity);
    pthread_mutex_destroy(&images->lock);
}

static uint64_t identity_of(struct str path, uint32_t major, uint32_t minor, uint64_t inode)
{
    uint64_t device = (uint64_t)major << 32 | minor;
    return hash_u64(inode ^ hash_u64(device)) ^ (inode == 0 ? str_hash(path) : 0);
}

struct image *images_at(struct images *images, uint64_t key)
{
    size_t index = images_place(key) - IMAGE_FIRST_FILE;
    return key >= IMAGE_FIRST_FILE && index < images->slots.len &&
                   images->slots.at[index].key == key
               ? images->slots.at[index].image
               : NULL;
}

struct image *images_locked_at(struct images *images, uint64_t key)
{
    pthread_mutex_lock(&images->lock);
    struct image *image = images_at(images, key);
    pthread_mutex_unlock(&images->lock);
    return image;
}

/* The same file under another name (a hard link, another mount namespace) is the same image. */
static uint64_t find_image(struct images *images, uint64_t identity, uint32_t major, uint32_t minor,
                           uint64_t inode)
{
    for (struct map_slot *slot = map_find(&images->by_identity, identity); slot != NULL;
         slot = map_next(&images->by_identity, slot)) {
        const struct image *image = images_at(images, slot->value);
        if (!image->is_generated && image->inode == inode && image->major == major &&
            image->minor == minor) {
            return slot->value;
        }
    }
    return IMAGE_NONE;
}

static struct image *make_image(struct str path)
{
    struct image *image = calloc(1, sizeof *image);
    char *copy = image == NULL ? NULL : malloc(path.len + 1);
    if (copy == NULL) {
        free(image);
        return NULL;
    }
    memcpy(copy, path.ptr, path.len);
    copy[path.len] = '\0';
    image->path = copy;
    return image;
}

/* Of a new image; 0: there are too many, or memory ends. */
static uint64_t take_key(struct images *images)
{
    if (images->free_slots.len > 0) {
        size_t index = images->free_slots.at[--images->free_slots.len];
        return images->slots.at[index].key += IMAGES_MAX;
    }
    struct images_slot *slot =
        images->slots.len < IMAGES_MAX ? vec_push(&images->slots) : NULL;
    return slot == NULL ? 0 : (slot->key = IMAGE_FIRST_FILE + images->slots.len - 1);
}

/* The key of an image made just now; IMAGE_ANON, and the image is gone, when memory ends. */
static uint64_t add_image(struct images *images, struct image *image, uint64_t identity)
{
    pthread_mutex_lock(&images->lock);
    uint64_t key = take_key(images);
    bool good = key != 0 && map_add(&images->by_identity, identity, key);
    if (good) {
        image->key = key;
        image->identity = identity;
        image->mapped = ++images->moment;
        images->slots.at[images_place(key) - IMAGE_FIRST_FILE].image = image;
        images->count++;
    }
    pthread_mutex_unlock(&images->lock);
    if (!good) {
        images_close(images, image);
    }
    return good ? key : (uint64_t)IMAGE_ANON;
}

uint64_t images_file(struct images *images, uint32_t pid, const struct mapped_file *file)
{
    uint64_t identity = identity_of(file->path, file->major, file->minor, file->inode);
    pthread_mutex_lock(&images->lock);
    uint64_t key = find_image(images, identity, file->major, file->minor, file->inode);
    pthread_mutex_unlock(&images->lock);
    if (key != IMAGE_NONE) {
        images_at(images, key)->mapped = ++images->moment;
        return key;
    }
    struct image *image = make_image(file->path);
    if (image == NULL) {
        return IMAGE_ANON;
    }
    image->major = file->major;
    image->minor = file->minor;
    image->inode = file->inode;
    images_open(images, image, pid, file);
    return add_image(images, image, identity);
}

uint64_t images_generated(struct images *images, uint32_t pid, uint64_t started)
{
    uint64_t identity = hash_u64((uint64_t)pid << 32 ^ hash_u64(started) ^ IMAGE_ANON);
    pthread_mutex_lock(&images->lock);
    struct map_slot *slot = map_find(&images->by_identity, identity);
    while (slot != NULL) {
        const struct image *image = images_at(images, slot->value);
        if (image->is_generated && image->pid == pid && image->inode == started) {
            break;
        }
        slot = map_next(&images->by_identity, slot);
    }
    uint64_t key = slot == NULL ? (uint64_t)IMAGE_NONE : slot->value;
    pthread_mutex_unlock(&images->lock);
    if (key != IMAGE_NONE) {
        return key;
    }
    struct image *image = make_image(STR("[anon]"));
    if (image == NULL) {
        return IMAGE_ANON;
    }
    image->is_generated = image->frame_pointers = true;
    image->perf_map_wait_ns = PERF_MAP_FIRST_MS * NS_PER_MS;
    image->pid = pid;
    image->inode = started;
    return add_image(images, image, identity);
}

void images_find_perf_map(struct images *images, uint64_t key, uint64_t now_ns)
{
    struct image *image = images_locked_at(images, key);
    if (image == NULL || !image->is_generated || image->has_map ||
        now_ns < image->perf_map_retry_ns) {
        return;
    }
    image->perf_map_retry_ns = now_ns + image->perf_map_wait_ns;
    image->perf_map_wait_ns *= image->perf_map_wait_ns < PERF_MAP_MOST_MS * NS_PER_MS ? 2 : 1;
    images_open_perf_map(images, image);
}

bool images_has_names(struct images *images, uint64_t generated)
{
    pthread_mutex_lock(&images->lock);
    const struct image *image = images_at(images, generated);
    bool has = image != NULL && image->is_generated && (image->has_map || image->jitdump != IMAGE_NONE);
    pthread_mutex_unlock(&images->lock);
    return has;
}

void images_set_jitdump(struct images *images, uint64_t generated, uint64_t dump)
{
    pthread_mutex_lock(&images->lock);
    struct image *image = images_at(images, generated);
    if (image != NULL && image->is_generated) {
        image->jitdump = dump;
    }
    pthread_mutex_unlock(&images->lock);
}

static struct image *vdso_image(struct images *images)
{
    if (images->vdso == NULL && (images->vdso = make_image(STR("[vdso]"))) != NULL) {
        struct memory_reader reader = {images_read_vdso, images};
        images->vdso->loads = image_headers(&reader);
    }
    return images->vdso;
}

/* Read again if they were given back. */
static struct elf *loads_of(struct image *image)
{
    if (image->loads == NULL && image->has_headers) {
        image->loads = image_headers(&image->file.reader);
    }
    return image->loads;
}

struct unwind_table *images_table(struct images *images, uint64_t key)
{
    struct image *image =
        key == IMAGE_VDSO ? vdso_image(images) : images_locked_at(images, key);
    if (image == NULL || image->table_made) {
        return image == NULL ? NULL : image->table;
    }
    struct elf *loads = loads_of(image);
    image->table_made = true;
    image->table = loads == NULL ? NULL : unwind_table_new(loads, TABLE_MAX_BYTES);
    if (image->table != NULL && unwind_table_is_go(image->table)) {
        unwind_table_take_depths(image->table, code_depths(runtimes, loads));
    }
    return image->table;
}

void image_forget_rules(struct image *image)
{
    if (image != NULL) {
        unwind_table_free(image->table);
        image->table = NULL;
        image->table_made = false;
    }
}

void images_forget_rules(struct images *images)
{
    vec_each(&images->slots, slot) /* only the sampler changes them */
    {
        image_forget_rules(slot->image);
    }
    image_forget_rules(images->vdso);
}

struct elf *images_elf(struct images *images, uint64_t key)
{
    struct image *image = images_locked_at(images, key);
    return image == NULL ? NULL : loads_of(image);
}

bool images_has_frame_pointers(struct images *images, uint64_t key)
{
    const struct image *image = images_locked_at(images, key);
    return image != NULL && image->frame_pointers;
}

bool images_may_stall(struct images *images, uint64_t key)
{
    const struct image *image = images_locked_at(images, key);
    return image != NULL && image->file.may_stall;
}

bool images_is_generated(struct images *images, uint64_t key)
{
    const struct image *image = images_at(images, key);
    return image != NULL && image->is_generated;
}

uint64_t images_bias(struct images *images, uint64_t key, uint64_t map_start, uint64_t file_offset)
{
    struct image *image = images_locked_at(images, key);
    const struct elf *loads = image == NULL ? NULL : loads_of(image);
    uint64_t bias = 0;
    if (loads != NULL && elf_bias(loads, map_start, file_offset, proc_page_bytes(), &bias)) {
        return bias;
    }
    if (key == IMAGE_VDSO) {
        return map_start; /* the vdso is linked at 0 */
    }
    /* without headers an address can at least say where in the file it is */
    bool has_file = key >= IMAGE_FIRST_FILE && image != NULL && !image->is_generated;
    return has_file ? map_start - file_offset : 0;
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
    const struct image *image = images_locked_at(images, key);
    return image == NULL ? STR("[unknown]") : str_of(image->path);
}

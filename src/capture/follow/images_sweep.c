/* images_sweep: which images nobody needs any more. Those that no process has mapped and no profile names are released,
 * but for the ones that were mapped last: a compiler that is started again in a moment has its tables still. At
 * most `kept_max` of these are kept, open files only, with IMAGES_KEPT_BYTES of unwind rules. */
#include "capture/follow/images_private.h"

#include <stdlib.h>

void images_mark(struct images *images, uint64_t key)
{
    struct image *image = images_at(images, key); /* only the sampler changes the list */
    if (image != NULL) {
        image->mapped = ++images->moment;
        image->marked = images->round;
    }
}

void images_need(struct images *images, uint64_t key, uint32_t window)
{
    struct image *image = images_at(images, key);
    if (image != NULL) {
        image->window = window;
    }
}

bool images_is_gone(struct images *images, uint64_t key)
{
    return key >= IMAGE_FIRST_FILE && images_locked_at(images, key) == NULL;
}

/* A jitdump is needed as long as the code that it describes. */
static void mark_dump_of(struct images *images, const struct image *image)
{
    struct image *dump = images_at(images, image->jitdump);
    if (dump == NULL) {
        return;
    }
    if (image->marked == images->round) {
        dump->marked = images->round;
    }
    dump->window = dump->window > image->window ? dump->window : image->window;
}

static bool list_unmapped(struct images *images)
{
    vec_clear(&images->unmapped);
    vec_each(&images->slots, slot)
    {
        if (slot->image == NULL || slot->image->marked == images->round) {
            continue;
        }
        struct image **place = vec_push(&images->unmapped);
        if (place == NULL) {
            return false;
        }
        *place = slot->image;
    }
    return true;
}

static int last_mapped_first(const void *left, const void *right)
{
    const struct image *a = *(struct image *const *)left, *b = *(struct image *const *)right;
    if (a->is_open != b->is_open) {
        return a->is_open ? -1 : 1;
    }
    return (a->mapped < b->mapped) - (a->mapped > b->mapped);
}

static size_t rules_bytes(const struct image *image)
{
    size_t bytes = image->table == NULL ? 0 : unwind_table_stats(image->table).bytes;
    vec_each(&image->loaded.pieces, piece)
    {
        bytes += piece->bytes;
    }
    return bytes;
}

static void remove_image(struct images *images, struct image *image)
{
    struct map_slot *slot = map_find(&images->by_identity, image->identity);
    size_t index = images_place(image->key) - IMAGE_FIRST_FILE;
    uint32_t *place = vec_push(&images->free_slots);
    if (place != NULL) { /* else its key is never given out again */
        *place = (uint32_t)index;
    }
    while (slot != NULL && slot->value != image->key) {
        slot = map_next(&images->by_identity, slot);
    }
    if (slot != NULL) {
        map_remove(&images->by_identity, slot);
    }
    images->slots.at[index].image = NULL;
    images->count--;
}

/* Roots without an image: containers that are gone. */
static void close_roots(struct images *images)
{
    for (size_t i = images->roots.len; i-- > 0;) {
        const struct images_root *root = &images->roots.at[i];
        bool used = root->handle == NULL && images->roots.len <= IMAGES_ROOTS_MAX / 2;
        for (size_t k = 0; !used && k < images->slots.len; k++) {
            used = images->slots.at[k].image != NULL &&
                   images->slots.at[k].image->root == root->handle;
        }
        if (!used && root->handle != NULL) {
            images->world->close_root(images->world->context, root->handle);
        }
        if (!used) {
            vec_swap_out(&images->roots, i);
        }
    }
}

/* Those that were mapped last, as many as may stay, are passed over: an open file only, because without it
 * nothing keeps its inode's number from being another file's. */
static size_t release_unmapped(struct images *images, uint32_t since)
{
    size_t released = 0, bytes = 0;
    for (size_t i = 0; i < images->unmapped.len; i++) {
        struct image *image = images->unmapped.at[i];
        bytes += rules_bytes(image);
        if (i < images->kept_max && bytes <= IMAGES_KEPT_BYTES && image->is_open) {
            if (image->window < since) {
                pthread_mutex_lock(&images->lock); /* the publisher may be forgetting them, too */
                image_forget_names(image);
                pthread_mutex_unlock(&images->lock);
            }
            continue;
        }
        image_forget_rules(image);
        image_free_elf(image->loads);
        image->loads = NULL;
        if (image->window < since) {
            pthread_mutex_lock(&images->lock);
            remove_image(images, image);
            pthread_mutex_unlock(&images->lock);
            images_close(images, image);
            released++;
        }
    }
    return released;
}

size_t images_sweep(struct images *images, uint32_t since)
{
    pthread_mutex_lock(&images->lock); /* the publisher notes which dump is none */
    vec_each(&images->slots, slot)
    {
        if (slot->image != NULL) {
            mark_dump_of(images, slot->image);
        }
    }
    pthread_mutex_unlock(&images->lock);
    bool listed = list_unmapped(images);
    images->round++;
    if (!listed || images->unmapped.len == 0) {
        return 0;
    }
    qsort(images->unmapped.at, images->unmapped.len, sizeof *images->unmapped.at,
          last_mapped_first);
    size_t released = release_unmapped(images, since);
    close_roots(images);
    return released;
}

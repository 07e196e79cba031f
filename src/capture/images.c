#include "capture/images.h"
#include "base/err.h"
#include "base/time.h"
#include "capture/code.h"
#include "elf/elf.h"
#include "elf/memory.h"
#include "os/proc.h"

#include <stdlib.h>

enum {
    TABLE_MAX_BYTES = 4 << 20,         /* of unwind rules per image; all of cc1plus takes 3 MB */
    NAMING_TABLE_MAX_BYTES = 512 << 10,
    PERF_MAP_FIRST_MS = 10, /* until a perf map is looked for again; doubles up to */
    PERF_MAP_MOST_MS = 1000,
    FEED_BYTES = 64 * 1024,
};

struct image {
    char *path;
    uint32_t major, minor;
    uint64_t inode;
    bool is_open, is_generated;
    struct world_file file;      /* its reader is null when there is nothing to read */
    struct elf_memory loaded;    /* without is_open: what `file` reads from */
    void *root;                  /* of the process that mapped it first */

    /* the sampler's */
    uint64_t key, identity;
    uint64_t mapped;             /* the moment when some process mapped it last, or was found to have */
    uint64_t marked;             /* the last sweep at which one had it mapped */
    uint32_t window;             /* the last one whose profile names it */
    bool has_headers;
    struct elf *loads;           /* its headers, for the bias of mappings; made again when they are needed */
    struct unwind_table *table;
    bool table_made, frame_pointers;
    uint64_t perf_map_retry_ns, perf_map_wait_ns;

    /* the publisher's */
    struct elf *naming_elf;
    struct unwind_table *naming_table; /* the extents of functions without symbols */
    struct jit_names *names;
    uint64_t map_fed, dump_fed;  /* bytes */

    /* of a generated image; written by the sampler, with the lock */
    uint32_t pid;
    bool has_map;
    struct world_file map;
    uint64_t jitdump;            /* image key, 0 none */
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

static void free_elf(struct elf *elf)
{
    if (elf != NULL) {
        elf_release(elf);
        free(elf);
    }
}

static void free_image(const struct world *world, struct image *image)
{
    if (image == NULL) {
        return;
    }
    elf_memory_release(&image->loaded);
    unwind_table_free(image->table);
    unwind_table_free(image->naming_table);
    free_elf(image->loads);
    free_elf(image->naming_elf);
    jit_names_free(image->names);
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
static void close_image(struct images *images, struct image *image)
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

static struct image *image_at(struct images *images, uint64_t key)
{
    size_t index = images_place(key) - IMAGE_FIRST_FILE;
    return key >= IMAGE_FIRST_FILE && index < images->slots.len &&
                   images->slots.at[index].key == key
               ? images->slots.at[index].image
               : NULL;
}

static struct image *locked_image_at(struct images *images, uint64_t key)
{
    pthread_mutex_lock(&images->lock);
    struct image *image = image_at(images, key);
    pthread_mutex_unlock(&images->lock);
    return image;
}

/* The same file under another name (a hard link, another mount namespace) is the same image. */
static uint64_t find_image(struct images *images, uint64_t identity, uint32_t major, uint32_t minor,
                           uint64_t inode)
{
    for (struct map_slot *slot = map_find(&images->by_identity, identity); slot != NULL;
         slot = map_next(&images->by_identity, slot)) {
        const struct image *image = image_at(images, slot->value);
        if (!image->is_generated && image->inode == inode && image->major == major &&
            image->minor == minor) {
            return slot->value;
        }
    }
    return IMAGE_NONE;
}

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

/* Go's compiler keeps frame pointers and writes no .eh_frame. */
static bool is_go(struct elf *elf)
{
    return elf_section(elf, ".gopclntab") != NULL ||
           elf_section(elf, ".data.rel.ro.gopclntab") != NULL ||
           elf_section(elf, ".note.go.buildid") != NULL;
}

static struct elf *headers_of(const struct memory_reader *file)
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
    if (may_open(images) &&
        world->mapped(world->context, pid, &mapping, &image->file, NULL)) {
        image->is_open = true;
        pthread_mutex_lock(&images->lock);
        images->open_count++;
        pthread_mutex_unlock(&images->lock);
        return true;
    }
    /* a record tells of code only: linkers lay out what comes before it as it is in the file */
    uint64_t base = file->base != 0 ? file->base : file->start - file->file_offset;
    struct memory_reader memory = world->memory(world->context, pid, 0);
    if (!elf_memory_copy(&image->loaded, &memory, base, NULL)) {
        return false;
    }
    image->file.reader = elf_memory_reader(&image->loaded);
    return true;
}

static void open_image(struct images *images, struct image *image, uint32_t pid,
                       const struct mapped_file *file)
{
    if (!open_file(images, image, pid, file)) {
        images->unopened++;
        return;
    }
    image->root = root_of(images, pid);
    image->loads = headers_of(&image->file.reader);
    image->has_headers = image->loads != NULL;
    image->frame_pointers = image->loads != NULL && is_go(image->loads);
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
        close_image(images, image);
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
        image_at(images, key)->mapped = ++images->moment;
        return key;
    }
    struct image *image = make_image(file->path);
    if (image == NULL) {
        return IMAGE_ANON;
    }
    image->major = file->major;
    image->minor = file->minor;
    image->inode = file->inode;
    open_image(images, image, pid, file);
    return add_image(images, image, identity);
}

/* ---- generated code ---- */

uint64_t images_generated(struct images *images, uint32_t pid, uint64_t started)
{
    uint64_t identity = hash_u64((uint64_t)pid << 32 ^ hash_u64(started) ^ IMAGE_ANON);
    pthread_mutex_lock(&images->lock);
    struct map_slot *slot = map_find(&images->by_identity, identity);
    while (slot != NULL) {
        const struct image *image = image_at(images, slot->value);
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

static void open_perf_map(struct images *images, struct image *image)
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

void images_find_perf_map(struct images *images, uint64_t key, uint64_t now_ns)
{
    struct image *image = locked_image_at(images, key);
    if (image == NULL || !image->is_generated || image->has_map ||
        now_ns < image->perf_map_retry_ns) {
        return;
    }
    image->perf_map_retry_ns = now_ns + image->perf_map_wait_ns;
    image->perf_map_wait_ns *= image->perf_map_wait_ns < PERF_MAP_MOST_MS * NS_PER_MS ? 2 : 1;
    open_perf_map(images, image);
}

void images_set_jitdump(struct images *images, uint64_t generated, uint64_t dump)
{
    pthread_mutex_lock(&images->lock);
    struct image *image = image_at(images, generated);
    if (image != NULL && image->is_generated) {
        image->jitdump = dump;
    }
    pthread_mutex_unlock(&images->lock);
}

/* ---- for the sampler ---- */

static bool read_vdso(void *context, uint64_t offset, void *out, size_t len, struct err *err)
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

static struct image *vdso_image(struct images *images)
{
    if (images->vdso == NULL && (images->vdso = make_image(STR("[vdso]"))) != NULL) {
        struct memory_reader reader = {read_vdso, images};
        images->vdso->loads = headers_of(&reader);
    }
    return images->vdso;
}

/* Read again if they were given back. */
static struct elf *loads_of(struct image *image)
{
    if (image->loads == NULL && image->has_headers) {
        image->loads = headers_of(&image->file.reader);
    }
    return image->loads;
}

struct unwind_table *images_table(struct images *images, uint64_t key)
{
    struct image *image =
        key == IMAGE_VDSO ? vdso_image(images) : locked_image_at(images, key);
    if (image == NULL || image->table_made) {
        return image == NULL ? NULL : image->table;
    }
    struct elf *loads = loads_of(image);
    image->table_made = true;
    image->table = loads == NULL ? NULL : unwind_table_new(loads, TABLE_MAX_BYTES);
    return image->table;
}

static void forget_rules_of(struct image *image)
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
        forget_rules_of(slot->image);
    }
    forget_rules_of(images->vdso);
}

struct elf *images_elf(struct images *images, uint64_t key)
{
    struct image *image = locked_image_at(images, key);
    return image == NULL ? NULL : loads_of(image);
}

bool images_has_frame_pointers(struct images *images, uint64_t key)
{
    const struct image *image = locked_image_at(images, key);
    return image != NULL && image->frame_pointers;
}

uint64_t images_bias(struct images *images, uint64_t key, uint64_t map_start, uint64_t file_offset)
{
    struct image *image = locked_image_at(images, key);
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
    const struct image *image = locked_image_at(images, key);
    return image == NULL ? STR("[unknown]") : str_of(image->path);
}

/* ---- what nobody needs any more ---- */

static void forget_names_of(struct image *image)
{
    unwind_table_free(image->naming_table);
    free_elf(image->naming_elf);
    jit_names_free(image->names);
    image->naming_table = NULL;
    image->naming_elf = NULL;
    image->names = NULL;
    image->map_fed = image->dump_fed = 0;
}

void images_mark(struct images *images, uint64_t key)
{
    struct image *image = image_at(images, key); /* only the sampler changes the list */
    if (image != NULL) {
        image->mapped = ++images->moment;
        image->marked = images->round;
    }
}

void images_need(struct images *images, uint64_t key, uint32_t window)
{
    struct image *image = image_at(images, key);
    if (image != NULL) {
        image->window = window;
    }
}

bool images_is_gone(struct images *images, uint64_t key)
{
    return key >= IMAGE_FIRST_FILE && locked_image_at(images, key) == NULL;
}

/* A jitdump is needed as long as the code that it describes. */
static void mark_dump_of(struct images *images, const struct image *image)
{
    struct image *dump = image_at(images, image->jitdump);
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
                forget_names_of(image);
                pthread_mutex_unlock(&images->lock);
            }
            continue;
        }
        forget_rules_of(image);
        free_elf(image->loads);
        image->loads = NULL;
        if (image->window < since) {
            pthread_mutex_lock(&images->lock);
            remove_image(images, image);
            pthread_mutex_unlock(&images->lock);
            close_image(images, image);
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

/* ---- for the publisher ---- */

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

/* Bytes of a file from *fed on, in pieces, until there are no more. A piece that is not there whole is
 * asked for in halves, down to a byte: the reader knows no file size. */
static bool feed_rest(struct image *image, const struct memory_reader *file, uint64_t *fed,
                      bool (*feed)(struct jit_names *names, const void *ptr, size_t len))
{
    char *bytes = malloc(FEED_BYTES);
    bool good = bytes != NULL;
    for (size_t len = FEED_BYTES; good && len > 0;) {
        if (file->read(file->context, *fed, bytes, len, NULL)) {
            good = feed(image->names, bytes, len);
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
        open_perf_map(images, image);
    }
    pthread_mutex_lock(&images->lock);
    struct image *dump = image_at(images, image->jitdump);
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
            forget_names_of(slot->image);
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
        *out = (struct symbol_image){.file = {read_vdso, images}};
        return true;
    }
    struct image *image = locked_image_at(images, key);
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
    struct image *image = locked_image_at(context, key);
    if (image == NULL || image->file.reader.read == NULL) {
        return false;
    }
    if (image->naming_elf == NULL && (image->naming_elf = headers_of(&image->file.reader)) != NULL) {
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
    const struct image *image = locked_image_at(images, key);
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
    return (struct debug_source){debug_open, debug_close, debug_path, images};
}

/*
 * images: the files whose code the targets run, kept open from the moment they are first mapped.
 *
 * A process may be gone, and its file deleted, before its profile is symbolised; an open descriptor
 * is all that is needed then, and it pins the inode, so that device and inode identify the file for
 * as long as we run. The root a process sees is kept open as well, for the debug files that belong to
 * its libraries. An image is made by the sampler when a mapping appears; the sampler uses its headers
 * and unwind tables, the publisher reads the file through images_source, and each keeps what it
 * derives to itself.
 *
 * A file that no path leads to any more is read back from the memory of a process that has it mapped
 * (elf/memory.h), as far as it was loaded.
 *
 * Code that a process generates has no file: all of it is one image per process, whose names come from
 * the process's perf map or jitdump. The perf map appears when the program likes, so it is searched for when
 * code of the image is met (images_find_perf_map, with back-off), while the process is there.
 *
 * Descriptors are bounded (IMAGES_OPEN_MAX, an eighth of the limit); later images are kept without
 * one and their code stays "[file]", which `unopened` counts.
 *
 * Life. An image is needed while a process has it mapped, and while a profile that names it is filled or
 * published. images_sweep releases the others, but for those that were mapped last: a compiler that is started
 * again in a moment has its tables still. What else is derived from an image (stacks.h, readers.h, namer.h)
 * goes by its key, and keys are never used again; images_place is a small number for tables of it.
 *
 * Ownership. The sampler makes, marks and sweeps; it alone changes the list, with the lock. The publisher asks
 * for images of the profile it has only, and those are not released before it is through: `since` of
 * images_sweep says so. What it derives (names) is then the sampler's to free.
 */
#ifndef CAPTURE_FOLLOW_IMAGES_H
#define CAPTURE_FOLLOW_IMAGES_H

#include "base/map.h"
#include "base/vec.h"
#include "capture/world.h"
#include "symbol/files.h"
#include "symbol/namer.h"
#include "unwind/table.h"

#include <pthread.h>

enum {
    IMAGES_OPEN_MAX = 4096, /* files and perf maps */
    IMAGES_ROOTS_MAX = 64,  /* further ones have no debug files of their own */
    IMAGES_MAX = 1 << 15,   /* at once; code of further ones cannot be told apart */
    IMAGES_KEPT_MAX = 64,   /* that nobody needs, those that were mapped last, a quarter of the descriptors … */
    IMAGES_KEPT_BYTES = 8 << 20, /* … with their unwind rules */
};

/* Keys that are no files; real images follow. */
enum {
    IMAGE_NONE = 0,
    IMAGE_KERNEL = 1,
    IMAGE_VDSO = 2,
    IMAGE_ANON = 3, /* code that cannot be told apart: of another processor mode, or memory ended */
    IMAGE_FIRST_FILE = 4,
};

struct image;

struct images_root {
    struct world_root root;
    void *handle; /* null: it is our own */
};

struct images_slot {
    struct image *image; /* null: its key may be given out once more, IMAGES_MAX higher */
    uint64_t key;
};

struct images {
    const struct world *world;
    pthread_mutex_t lock;
    VEC(struct images_slot) slots;
    VEC(uint32_t) free_slots;
    size_t count;
    uint64_t round;         /* the sweep that comes next */
    uint64_t moment;        /* counts what is mapped */
    VEC(struct image *) unmapped; /* scratch of images_sweep */
    VEC(struct images_root) roots;
    struct image *vdso;
    struct map by_identity;
    size_t open_count, open_max, kept_max;
    uint64_t unopened;
};

/* Keys of the images there are at one moment differ in this, too. */
static inline size_t images_place(uint64_t image)
{
    return image < IMAGE_FIRST_FILE
               ? (size_t)image
               : (size_t)(IMAGE_FIRST_FILE + (image - IMAGE_FIRST_FILE) % IMAGES_MAX);
}

/* `world` is borrowed. */
void images_init(struct images *images, const struct world *world);
void images_release(struct images *images);

/* The image of a file that process `pid` has mapped; opens it when it is new. IMAGE_ANON when memory
 * ends. `path` is the mapping's name. */
struct mapped_file {
    uint64_t start, limit, file_offset, inode; /* of an executable mapping */
    uint32_t major, minor;
    struct str path;
    uint64_t base; /* where the file's beginning is mapped; 0 not known */
};
uint64_t images_file(struct images *images, uint32_t pid, const struct mapped_file *file);

/* The image of all code that process `pid` generates. A process that took a dead one's pid gets another
 * by another start. */
uint64_t images_generated(struct images *images, uint32_t pid, uint64_t started);

/* Looks for the perf map of a generated image, unless it is known or was searched for just now. */
void images_find_perf_map(struct images *images, uint64_t image, uint64_t now_ns);

/* Has a perf map or a jitdump been found that names the code of a generated image? */
bool images_has_names(struct images *images, uint64_t image);

/* The file `image` is the jitdump of the code that `generated` stands for. */
void images_set_jitdump(struct images *images, uint64_t generated, uint64_t image);

/* Notes that some process has the image mapped, for the images_sweep that follows. */
void images_mark(struct images *images, uint64_t image);

/* Notes that the profile of this window names the image. */
void images_need(struct images *images, uint64_t image, uint32_t window);

/* Releases what is not marked and not named by the profile of window `since` or a later one, but for the
 * kept_max that were mapped last. The caller holds no key that it has not marked. Returns how many. */
size_t images_sweep(struct images *images, uint32_t since);

/* Was it released? */
bool images_is_gone(struct images *images, uint64_t image);

/* The unwind rules of an image, made on first use; null when it has none (no file, no ELF). For the
 * sampler. */
struct unwind_table *images_table(struct images *images, uint64_t image);

/* Gives back what can be made again. The sampler's: unwind rules; tables that images_table returned are no
 * more. The publisher's: its own rules and names of generated code, of a perf map or jitdump that it reads
 * anew. */
void images_forget_rules(struct images *images);
void images_forget_names(struct images *images);

/* The headers of an image, for the sampler; null when it has no file or is no ELF. */
struct elf *images_elf(struct images *images, uint64_t image);

/* True for code that is known to keep frame pointers although it has no unwind tables. */
bool images_has_frame_pointers(struct images *images, uint64_t image);

/* Would who reads its code from a process wait for a file system that may not answer? Of pages that the process has not
 * read, or that the kernel has dropped. */
bool images_may_stall(struct images *images, uint64_t image);

/* Is it code that a process generates? For the sampler. */
bool images_is_generated(struct images *images, uint64_t image);

/* What to subtract from a runtime address in the mapping to get an ELF address. */
uint64_t images_bias(struct images *images, uint64_t image, uint64_t map_start,
                     uint64_t file_offset);

/* The name shown for an image: a path, "[kernel]", "[vdso]", "[anon]". Borrowed. */
struct str images_path(struct images *images, uint64_t image);

/* How the publisher reads images, and the debug files beside them. */
struct debug_source images_debug_source(struct images *images);
struct symbol_source images_source(struct images *images);

#endif

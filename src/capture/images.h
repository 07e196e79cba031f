/*
 * images: the files whose code the targets run, kept open from the moment they are first mapped.
 *
 * A process may be gone, and its file deleted, before its profile is symbolised; an open descriptor
 * is all that is needed then, and it pins the inode, so that device and inode identify the file for
 * as long as we run. An image is made by the sampler when a mapping appears and read by the
 * publisher through images_source. Images live until images_release.
 *
 * Descriptors are bounded (IMAGES_OPEN_MAX, an eighth of the limit); later images are kept without one
 * and their code stays
 * "[file+0xoffset]", which images_unopened counts.
 */
#ifndef CAPTURE_IMAGES_H
#define CAPTURE_IMAGES_H

#include "base/map.h"
#include "base/vec.h"
#include "symbol/namer.h"

#include <pthread.h>

enum { IMAGES_OPEN_MAX = 4096 };

/* Keys that are no files; real images follow. */
enum {
    IMAGE_NONE = 0,
    IMAGE_KERNEL = 1,
    IMAGE_VDSO = 2,
    IMAGE_ANON = 3, /* memory without a file: generated code */
    IMAGE_FIRST_FILE = 4,
};

struct image;

struct images {
    pthread_mutex_t lock;
    VEC(struct image *) files; /* image key - IMAGE_FIRST_FILE */
    struct map by_identity;
    size_t open_count, open_max;
    uint64_t unopened;
};

void images_init(struct images *images);
void images_release(struct images *images);

/* The image of a file that process `pid` has mapped; opens it when it is new. IMAGE_ANON when memory
 * ends. `path` is the mapping's name. */
uint64_t images_file(struct images *images, uint32_t pid, struct str path, uint32_t major,
                     uint32_t minor, uint64_t inode);

/* What to subtract from a runtime address in the mapping to get an ELF address. */
uint64_t images_bias(struct images *images, uint64_t image, uint64_t map_start,
                     uint64_t file_offset);

/* The name shown for an image: a path, "[kernel]", "[vdso]", "[anon]". Borrowed. */
struct str images_path(struct images *images, uint64_t image);

/* How the publisher reads images. */
struct symbol_source images_source(struct images *images);

#endif

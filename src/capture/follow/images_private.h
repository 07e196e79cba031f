/*
 * images_private: what the files of images share.
 *
 *     images.c        the list, and what the sampler derives
 *     images_open.c   opening
 *     images_sweep.c  releasing what nobody needs
 *     images_names.c  for the publisher
 */
#ifndef CAPTURE_FOLLOW_IMAGES_PRIVATE_H
#define CAPTURE_FOLLOW_IMAGES_PRIVATE_H

#include "capture/follow/images.h"
#include "elf/elf.h"
#include "elf/memory.h"

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

/* The image of a key, or null. The list is the sampler's to change, with the lock: others read it with the lock. */
struct image *images_at(struct images *images, uint64_t key);
struct image *images_locked_at(struct images *images, uint64_t key);

/* One that is in no list, or no more. */
void images_close(struct images *images, struct image *image);

void image_free_elf(struct elf *elf);
void image_forget_rules(struct image *image);
void image_forget_names(struct image *image);

/* Null when it is no ELF file. */
struct elf *image_headers(const struct memory_reader *file);

/* Opens the file of a new image, or counts it in `unopened`. */
void images_open(struct images *images, struct image *image, uint32_t pid, const struct mapped_file *file);

/* Of a generated image, by either thread. */
void images_open_perf_map(struct images *images, struct image *image);

/* A memory_reader's, with the images as its context. */
bool images_read_vdso(void *context, uint64_t offset, void *out, size_t len, struct err *err);

#endif

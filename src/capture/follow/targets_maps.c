/* targets_maps: where a process's executable mappings are: a sorted list that never overlaps, fed by records and by
 * /proc/PID/maps, searched for every address. Each change makes a new `space`, so that what others remember about
 * addresses of the process ends with it. */
#include "capture/follow/targets_private.h"
#include "base/time.h"
#include "target/maps.h"

#include <string.h>

enum { MAPS_WAIT_MAX_MS = 10000 };

/* What is remembered about the addresses of the process holds no more. */
static void changed_space(struct targets *t, struct target *target)
{
    target->space = ++t->spaces;
}

/* Index of the first mapping that ends behind `address`. */
static size_t first_ending_behind(const struct target *target, uint64_t address)
{
    size_t low = 0, high = target->maps.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (target->maps.at[middle].limit > address) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static bool insert_mapping(struct target *target, size_t at, struct mapping mapping)
{
    if (vec_push(&target->maps) == NULL) {
        return false;
    }
    struct mapping *place = &target->maps.at[at];
    memmove(place + 1, place, (target->maps.len - 1 - at) * sizeof *place);
    *place = mapping;
    return true;
}

/* Cuts [start, limit) out of what is mapped: a new mapping replaces what it covers. */
static void cut_out(struct target *target, uint64_t start, uint64_t limit)
{
    size_t at = first_ending_behind(target, start);
    while (at < target->maps.len && target->maps.at[at].start < limit) {
        struct mapping *old = &target->maps.at[at];
        struct mapping behind = *old;
        if (old->limit > limit) { /* the part behind stays */
            behind.file_offset += limit - behind.start;
            behind.start = limit;
            if (old->start >= start) {
                *old = behind;
                return;
            }
            old->limit = start;
            (void)insert_mapping(target, at + 1, behind);
            return;
        }
        if (old->start < start) {
            old->limit = start;
            at++;
            continue;
        }
        memmove(old, old + 1, (target->maps.len - 1 - at) * sizeof *old);
        target->maps.len--;
    }
}

/* Code without a file is the process's own making. */
static uint64_t generated_image(struct targets *t, struct target *target)
{
    if (target->generated == IMAGE_NONE) {
        targets_learn_start(t, target);
        target->generated = images_generated(t->images, target->pid, target->start_ticks);
    }
    return target->generated;
}

/* "…/jit-PID.dump", mapped executable only to be noticed. */
static bool is_jitdump(struct str path)
{
    size_t slash = str_find_last(path, '/');
    struct str name = slash == path.len ? path : str_sub(path, slash + 1, path.len);
    return str_starts(name, STR("jit-")) && str_ends(name, STR(".dump"));
}

static uint64_t image_of(struct targets *t, struct target *target, const struct mapped_file *file)
{
    switch (mapping_kind_of(file->path)) {
    case MAPPING_VDSO:
        /* below 4 GiB it is that of a 32-bit process, which is not the one mapped here */
        return file->start >> 32 != 0 ? IMAGE_VDSO : IMAGE_ANON;
    case MAPPING_FILE:
    case MAPPING_MEMFD:
        return images_file(t->images, target->pid, file);
    default:
        return generated_image(t, target);
    }
}

void targets_map(struct targets *t, struct target *target, const struct mapped_file *file)
{
    if (file->limit <= file->start) {
        return;
    }
    struct mapping mapping = {.start = file->start,
                              .limit = file->limit,
                              .file_offset = file->file_offset,
                              .image = image_of(t, target, file)};
    if (is_jitdump(file->path)) {
        images_set_jitdump(t->images, generated_image(t, target), mapping.image);
        return;
    }
    mapping.bias = images_bias(t->images, mapping.image, file->start, file->file_offset);
    changed_space(t, target);
    size_t count = target->maps.len;
    cut_out(target, file->start, file->limit);
    t->unmapped += target->maps.len < count;
    (void)insert_mapping(target, first_ending_behind(target, file->start), mapping);
}

/* The name as the file system has it. Borrowed until the next one. */
static struct str name_of_file(struct targets *t, struct str path)
{
    if (str_find(path, '\\') == path.len) {
        return path;
    }
    buf_clear(&t->path);
    map_path_decode(path, &t->path);
    return t->path.failed ? path : buf_slice(&t->path);
}

bool targets_read_maps(struct targets *t, struct target *target)
{
    /* a process that is ending has an empty text: what is known of it is worth more */
    if (!targets_text(t, target->pid, 0, "maps") || t->text.len == 0) {
        return false;
    }
    struct str rest = buf_slice(&t->text);
    struct map_line line;
    struct mapped_file file = {0};
    t->unmapped += target->maps.len > 0;
    vec_clear(&target->maps);
    while (maps_next(&rest, &line)) {
        bool same = line.inode != 0 && line.inode == file.inode;
        uint64_t base = line.file_offset == 0 ? line.start : same ? file.base : 0;
        file = (struct mapped_file){line.start,     line.limit,     line.file_offset, line.inode,
                                    line.dev_major, line.dev_minor, line.path,        base};
        if ((line.prot & MAPPING_EXEC) != 0) {
            file.path = name_of_file(t, line.path);
            targets_map(t, target, &file);
        }
    }
    target->reread.has_all = true;
    return true;
}

/* The last samples of one that has ended may still wait in the rings; its mappings go with its last record,
 * or with the window. */
static void mark_images_of(struct images *images, const struct target *target)
{
    vec_each(&target->maps, mapping)
    {
        images_mark(images, mapping->image);
    }
    if (!target->ended) {
        images_mark(images, target->generated);
    }
}

void targets_mark_images(const struct targets *t)
{
    vec_each(&t->all, target)
    {
        mark_images_of(t->images, *target);
    }
    vec_each(&t->aside, target)
    {
        mark_images_of(t->images, *target);
    }
}

static struct mapping *holding(struct target *target, uint64_t address)
{
    size_t at = first_ending_behind(target, address);
    return at < target->maps.len && target->maps.at[at].start <= address ? &target->maps.at[at]
                                                                         : NULL;
}

struct mapping *targets_known_mapping(struct target *target, uint64_t address)
{
    return holding(target, address);
}

struct mapping *targets_mapping(struct targets *t, struct target *target, uint64_t address,
                                uint64_t now_ns)
{
    struct mapping *mapping = holding(target, address);
    if (mapping != NULL || target->ended || now_ns < target->reread.retry_ns) {
        return mapping;
    }
    bool again = target->reread.has_all;
    if (!targets_read_maps(t, target) || again) {
        /* a miss after the first reading is rarely worth another, and a refusal stays one */
        target->reread.retry_ns = now_ns + target->reread.wait_ns;
        target->reread.wait_ns *= 2;
        if (target->reread.wait_ns > MAPS_WAIT_MAX_MS * NS_PER_MS) {
            target->reread.wait_ns = MAPS_WAIT_MAX_MS * NS_PER_MS;
        }
    }
    return holding(target, address);
}

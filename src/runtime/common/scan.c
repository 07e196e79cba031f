/* What stripped programs have no symbols for is searched for in their writable data. */
#include "runtime/common/find.h"

#include <stdlib.h>

enum {
    PIECE_BYTES = 64 * 1024,
    SCAN_MAX_BYTES = 16 << 20,
    PROT_WRITE = 2,
};

/* .bss is the end of the file's writable mapping and the nameless memory right behind it. */
static bool is_bss(const struct runtime_process *process, size_t index)
{
    const struct runtime_map *map = &process->maps[index];
    const struct runtime_map *before = index > 0 ? map - 1 : NULL;
    return (map->prot & PROT_WRITE) != 0 && map->anonymous && before != NULL &&
           before->limit == map->start && before->of_binary;
}

static bool is_data(const struct runtime_process *process, size_t index)
{
    const struct runtime_map *map = &process->maps[index];
    return (map->prot & PROT_WRITE) != 0 && map->of_binary;
}

static bool scan_map(struct find *f, const struct runtime_map *map, size_t overlap,
                     unsigned char *buffer, uint64_t *left,
                     bool (*each)(void *, const struct find_piece *), void *context)
{
    uint64_t at = map->start;
    while (at < map->limit && *left >= PIECE_BYTES) {
        uint64_t len = map->limit - at < PIECE_BYTES ? map->limit - at : PIECE_BYTES;
        struct memory_piece read = {.address = at, .out = buffer, .len = (uint32_t)len};
        if (!memory_batch_read(f->process->memory, &read, 1, f->unread)) {
            return false;
        }
        struct find_piece piece = {buffer, read.got, at};
        *left -= PIECE_BYTES;
        if (each(context, &piece)) {
            return true;
        }
        if (read.got < len || len < PIECE_BYTES) {
            return false;
        }
        at += len - overlap;
    }
    return false;
}

bool find_scan(struct find *f, size_t overlap,
               bool (*each)(void *context, const struct find_piece *piece), void *context)
{
    unsigned char *buffer = malloc(PIECE_BYTES);
    uint64_t left = SCAN_MAX_BYTES;
    bool found = false;
    for (unsigned pass = 0; pass < 2; pass++) { /* .bss is smaller, and mostly what is wanted */
        for (size_t i = 0; buffer != NULL && !found && i < f->process->map_count; i++) {
            found = (pass == 0 ? is_bss(f->process, i) : is_data(f->process, i)) &&
                    scan_map(f, &f->process->maps[i], overlap, buffer, &left, each, context);
        }
    }
    free(buffer);
    return found;
}
